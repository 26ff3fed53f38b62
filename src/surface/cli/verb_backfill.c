/* verb_backfill.c - backfill: an instance for each slot of a schedule in a span that has passed.
 *
 * Each is created with an idempotency key that names its slot, so that a second call, or one that
 * was cut short and is made again, starts each slot once. */
#include "base/time.h"
#include "surface/cli/cli.h"
#include <stdio.h>

#define PAGE      1000
#define SLOTS_MAX 10000 /* of one call */

struct backfill {
    struct cli *cli;
    const char *definition, *cron, *every, *zone, *input, *actor;
    int64_t from_ms, to_ms;
    int64_t count;
    bool is_over;
};

static str text_or_none(const char *text)
{
    return text ? str_of(text) : STR_NONE;
}

static bool read_time(struct cli *cli, const char *option, int64_t *out, bool *is_wrong)
{
    const char *text = args_option(cli, option);

    if (!text)
        return false;
    *is_wrong = *is_wrong || !time_parse(str_of(text), out);
    return true;
}

/* {{slot}} and {{local}} stand for the slot; without an input it says both. */
static str input_of(struct backfill *work, str slot, str local)
{
    const char *rest = work->input ? work->input : "{\"slot\":\"{{slot}}\",\"local\":\"{{local}}\"}";
    struct buf buf;

    buf_init(&buf, work->cli->scope.arena.heap, CLI_MEMORY_MAX);
    while (*rest) {
        bool is_slot = strncmp(rest, "{{slot}}", 8) == 0, is_local = strncmp(rest, "{{local}}", 9) == 0;

        if (is_slot || is_local) {
            buf_str(&buf, is_slot ? slot : local);
            rest += is_slot ? 8 : 9;
        } else {
            buf_byte(&buf, *rest++);
        }
    }
    return buf_take(&buf, &work->cli->scope.arena);
}

static pawl_status start_one(struct backfill *work, const struct node *row)
{
    struct cli *cli = work->cli;
    str slot = member_str(row, "slot"), local = member_str(row, "local"), id;
    char key[128];
    struct node *answer;
    pawl_status status;

    snprintf(key, sizeof key, "backfill-%.80s@%.*s", work->definition, STR_ARG(slot));
    status = cli_ask(cli, "instance.create",
                     WITH({ "definition", str_of(work->definition) },
                          { "input", .json = input_of(work, slot, local) },
                          { "actor_ref", text_or_none(work->actor) },
                          { "idempotency_key", str_of(key) }),
                     &answer);
    if (status == PAWL_CONFLICT)
        return scope_fail(&cli->scope, PAWL_CONFLICT,
                          "slot %.*s was started before with another input or actor",
                          STR_ARG(slot));
    TRY(status);
    id = member_str(answer, "instance_id");
    if (cli->json)
        print_json(cli, answer->raw);
    else
        fprintf(cli->term.out, "%.*s  %.*s\n", STR_ARG(local), STR_ARG(id));
    work->count++;
    return PAWL_OK;
}

static pawl_status start_page(struct backfill *work)
{
    char after[TIME_TEXT_SIZE];
    struct node *answer;

    time_print(work->from_ms - 1000, after);
    TRY(cli_ask(work->cli, "schedule.preview",
                WITH({ "cron", text_or_none(work->cron) }, { "every", text_or_none(work->every) },
                     { "zone", text_or_none(work->zone) }, { "after", str_of(after) },
                     { "limit", .number = PAGE }),
                &answer));
    work->is_over = true;
    for (const struct node *row = node_find(answer, "slots")->first; row; row = row->next) {
        int64_t slot_ms;

        if (!time_parse(member_str(row, "slot"), &slot_ms) || slot_ms >= work->to_ms)
            return PAWL_OK;
        if (work->count == SLOTS_MAX)
            return scope_fail(&work->cli->scope, PAWL_INVALID_REQUEST,
                              "more than %d slots: the last one was before %.*s; go on with --from "
                              "that",
                              SLOTS_MAX, STR_ARG(member_str(row, "slot")));
        TRY(start_one(work, row));
        work->from_ms = slot_ms + 1000;
        work->is_over = false;
    }
    return PAWL_OK;
}

int verb_backfill(struct cli *cli)
{
    struct backfill work = { .cli = cli,
                             .definition = cli->operands[0],
                             .cron = cli->operand_count > 1 ? cli->operands[1] : NULL,
                             .every = args_option(cli, "every"),
                             .zone = args_option(cli, "zone"),
                             .input = args_option(cli, "input"),
                             .actor = args_option(cli, "actor") };
    bool is_wrong = false, has_from = read_time(cli, "from", &work.from_ms, &is_wrong),
         has_to = read_time(cli, "to", &work.to_ms, &is_wrong);

    if (!has_from || !has_to || is_wrong)
        return usage_fail(cli, "backfill needs --from and --to, times like 2026-05-01T00:00:00Z");
    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK)
        return report(cli);
    while (!work.is_over)
        if (start_page(&work) != PAWL_OK)
            return report(cli);
    if (!cli->json)
        fprintf(cli->term.out, "%s\n", counted(&cli->scope.arena, work.count, "slot", "slots"));
    return EXIT_DONE;
}
