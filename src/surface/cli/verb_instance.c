/* verb_instance.c - start, fire, signal, cancel, list, why: one operation each. */
#include "base/limits.h"
#include "surface/cli/view.h"

/* Steps and timers run only while a process owns the store: if none does, print how to run them. */
static void hint_started(struct cli *cli, str id)
{
    struct node *instance;
    bool served = cli->target.remote != NULL;

    if (!cli->term.tty)
        return;
    if (!served && cli_ask_id(cli, "instance.get", id.data, &instance) == PAWL_OK)
        served = str_is(member_str(instance, "kind"), "machine");
    term_put(&cli->term, DIM, "look: %s show %.10s\n", cli->command, id.data);
    if (!served)
        term_put(&cli->term, DIM, "its steps and timers run with: %s resume %.10s, or serve\n",
                 cli->command, id.data);
}

void put_start_warnings(const struct node *answer)
{
    struct term errors;

    fflush(stdout);
    term_init(&errors, stderr);
    for (const struct node *item = node_first(answer, "warnings"); item; item = item->next) {
        term_put(&errors, PLAIN, "pawl: ");
        term_put(&errors, WARN, "warning");
        term_put(&errors, PLAIN, ": ");
        term_cell(&errors, PLAIN, member_str(item, "message"), LIMIT_TEXT, 0);
        fputc('\n', stderr);
    }
}

static void render_started(struct cli *cli, const struct node *answer)
{
    str id = member_str(answer, "instance_id");

    fprintf(cli->term.out, "%.*s\n", STR_ARG(id));
    put_start_warnings(answer);
    hint_started(cli, id);
}

/* Of start, and of redrive: both create one. */
int verb_start(struct cli *cli)
{
    const char *declaration = args_option(cli, "declaration");
    struct node *answer = NULL;
    pawl_status status;

    if (strcmp(cli->verb->name, "start") == 0 && (declaration != NULL) == (cli->operand_count == 1))
        return usage_fail(cli, "start needs a DEFINITION or --declaration FILE, and not both");
    status = target_open(cli, USE_EXISTING, NULL);
    if (status == PAWL_OK)
        status = cli_ask_typed(cli, cli->verb->operation, NULL, &answer);
    if (status == PAWL_OK)
        last_note(cli, member_str(answer, "instance_id"));
    if (status == PAWL_INVALID_DECLARATION && cli->declaration.data)
        return report_declaration(cli, declaration, cli->declaration);
    return verb_conclude(cli, status, answer, render_started);
}

/* The bytes that were supplied and nothing else; on a terminal the line is ended. */
int verb_declaration(struct cli *cli)
{
    struct buf input;

    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK ||
        input_typed(cli, &input, NULL) != PAWL_OK)
        return report(cli);
    return verb_put_text(cli, cli->verb->operation, &input, cli->term.tty);
}

void render_current(struct cli *cli, const struct node *answer)
{
    term_cell(&cli->term, PLAIN, member_str(answer, "current_state"), LIMIT_ACTION, 0);
    fputc('\n', cli->term.out);
}

static void put_value(struct cli *cli, const struct node *answer, const char *member)
{
    str json = node_raw(answer, member);

    fprintf(cli->term.out, "%.*s\n", STR_ARG(json.data ? json : STR("null")));
}

void render_variables(struct cli *cli, const struct node *answer)
{
    put_value(cli, answer, "variables");
}

void render_value(struct cli *cli, const struct node *answer)
{
    put_value(cli, answer, "value");
}

static enum style kind_style(str terminal_kind)
{
    if (str_is(terminal_kind, "success"))
        return GOOD;
    if (str_is(terminal_kind, "failure"))
        return BAD;
    return str_is(terminal_kind, "cancel") ? DIM : BOLD;
}

void render_fired(struct cli *cli, const struct node *answer)
{
    term_cell(&cli->term, kind_style(member_str(answer, "terminal_kind")),
              member_str(answer, "new_state"), LIMIT_ACTION, 0);
    if (member_int(answer, "sequence_number") > 0)
        term_put(&cli->term, DIM, "  entry %lld", (long long)member_int(answer, "sequence_number"));
    fputc('\n', cli->term.out);
}

void render_status(struct cli *cli, const struct node *answer)
{
    str status = status_words(member_str(answer, "status"));

    term_put(&cli->term, status_style(status), "%.*s\n", STR_ARG(status));
}

static void render_cancelled(struct cli *cli, const struct node *answer)
{
    fprintf(cli->term.out, "cancelled %lld, refused %lld\n",
            (long long)member_int(answer, "cancelled"), (long long)member_int(answer, "refused"));
}

/* One by its id, or all that belong together. */
int verb_cancel(struct cli *cli)
{
    bool many = args_option(cli, "correlation") != NULL;

    if (many == (cli->operand_count == 1))
        return usage_fail(cli, "cancel needs an ID or --correlation ID, and not both");
    return many ? verb_do(cli, USE_EXISTING, "instance.cancel_many", render_cancelled)
                : verb_do(cli, USE_EXISTING, "instance.cancel", render_fired);
}

static void render_erased(struct cli *cli, const struct node *answer)
{
    const struct node *name = node_find(answer, "name_erased"),
                      *log = node_find(answer, "left_in_log");
    long long left = (long long)member_int(answer, "left");

    fprintf(cli->term.out, "erased %lld (%lld values), before %lld, left %lld\n",
            (long long)member_int(answer, "erased"), (long long)member_int(answer, "values"),
            (long long)member_int(answer, "erased_before"), left);
    if (left > 0)
        fprintf(cli->term.out, "those that are left have not ended or are on hold; erase again "
                               "when they have\n");
    if (name && name->truth)
        fprintf(cli->term.out, "the subject's name is erased\n");
    if (log && log->truth)
        fprintf(cli->term.out, "a reader holds the write-ahead log, which still has a part of it: "
                               "run this again\n");
}

/* One by its id, or all of a subject. */
int verb_erase(struct cli *cli)
{
    bool many = args_option(cli, "subject") != NULL;

    if (many == (cli->operand_count == 1))
        return usage_fail(cli, "erase needs an ID or --subject REF, and not both");
    return verb_do(cli, USE_EXISTING, many ? "subject.erase" : "instance.erase", render_erased);
}

/* ---- archive ---- */

static void print_archived(struct cli *cli, int64_t archived, int64_t records, int64_t left)
{
    fprintf(cli->term.out, "archived %lld (%lld records), left %lld\n", (long long)archived,
            (long long)records, (long long)left);
    if (left > 0)
        fprintf(cli->term.out, "those that are left are on hold, have children that go on, or are "
                               "the newest of the store\n");
}

static void render_archived(struct cli *cli, const struct node *answer)
{
    print_archived(cli, member_int(answer, "archived"), member_int(answer, "records"),
                   member_int(answer, "left"));
}

/* Call after call, until no more can be moved. */
static int archive_many(struct cli *cli)
{
    int64_t archived = 0, records = 0;
    struct node *answer;

    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK)
        return report(cli);
    do {
        if (cli_ask_typed(cli, "store.archive", NULL, &answer) != PAWL_OK)
            return report(cli);
        archived += member_int(answer, "archived");
        records += member_int(answer, "records");
        if (cli->json)
            print_json(cli, answer->raw);
    } while (member_true(answer, "more") && member_int(answer, "archived") > 0);
    if (!cli->json)
        print_archived(cli, archived, records, member_int(answer, "left"));
    return EXIT_DONE;
}

int verb_archive(struct cli *cli)
{
    bool many =
        args_option(cli, "definition") || args_option(cli, "ended-before") || args_flag(cli, "all");

    if (many == (cli->operand_count == 1))
        return usage_fail(cli, "archive needs an ID, or one of --definition, --ended-before and "
                               "--all");
    return many ? archive_many(cli)
                : verb_do(cli, USE_EXISTING, "instance.archive", render_archived);
}

void render_held(struct cli *cli, const struct node *answer)
{
    const struct node *held = node_find(answer, "held"), *changed = node_find(answer, "changed");

    fprintf(cli->term.out, "%s%s\n", held && held->truth ? "on hold" : "not on hold",
            changed && changed->truth ? "" : ", as before");
}

void render_amended(struct cli *cli, const struct node *answer)
{
    str name = member_str(answer, "definition");

    fprintf(cli->term.out, "moved to %.*s@%lld\n", STR_ARG(name),
            (long long)member_int(answer, "version"));
}

void render_signalled(struct cli *cli, const struct node *answer)
{
    long long kept = (long long)member_int(answer, "kept");
    long long full = (long long)member_int(answer, "full");
    long long refused = (long long)member_int(answer, "refused");
    long long delivered = (long long)member_int(answer, "delivered");

    if (delivered > 0 || kept == 0)
        fprintf(cli->term.out, "delivered to %lld\n", delivered);
    if (kept > 0)
        fprintf(cli->term.out, "kept by %lld until it is awaited\n", kept);
    if (full > 0)
        fprintf(cli->term.out,
                "not kept by %lld: each keeps %u signals already that nothing takes\n", full,
                LIMIT_KEPT_SIGNALS);
    if (refused > 0)
        fprintf(cli->term.out, "rejected by %lld: the payload does not fit; the log names them\n",
                refused);
}

/* A step that no thread and no worker has taken: what it waits for is its tool. */
bool lacks_worker(const struct node *item)
{
    return str_is(member_str(item, "kind"), "step") && str_is(member_str(item, "status"), "ready") &&
           !member_true(item, "here");
}

/* Which tool a step is for, and what happens with it. */
void put_tool(struct cli *cli, const struct node *item)
{
    str tool = member_str(item, "tool"), status = member_str(item, "status");

    if (tool.size == 0)
        return;
    if (lacks_worker(item))
        term_put(&cli->term, WARN, "  waits for a worker with the tool ");
    else
        term_put(&cli->term, DIM, "  %.*s, tool ", STR_ARG(status));
    term_cell(&cli->term, PLAIN, tool, LIMIT_ACTION, 0);
}

/* An instance that waits for nothing: whether it has ended, and how. */
static void put_end(struct cli *cli, const struct node *ended)
{
    str error = member_json(ended, "error");

    fputs("waits for nothing", cli->term.out);
    if (ended) {
        fprintf(cli->term.out, ": it has ended, %.*s",
                STR_ARG(status_words(member_str(ended, "status"))));
        if (error.size > 0)
            fputs(" with ", cli->term.out);
        term_wrap(&cli->term, BAD, error, 40, "  ");
    }
    fputc('\n', cli->term.out);
    if (ended && member_true(ended, "can_redrive"))
        term_put(&cli->term, DIM, "  run it again from where it ended: %s redrive %s\n",
                 cli->command, cli->operands[0]);
}

/* It was cancelled, or has failed, and is not over yet. */
static void put_winding_up(struct cli *cli, const struct node *since, const char *what)
{
    str who = member_str(since, "actor_ref"), reason = member_str(since, "reason");
    char moment[MOMENT_SIZE];

    if (!since)
        return;
    moment_print(member_str(since, "since"), moment);
    fprintf(cli->term.out, "it %s since %s", what, moment);
    if (who.size > 0)
        fprintf(cli->term.out, " by %.*s", STR_ARG(who));
    if (reason.size > 0)
        fprintf(cli->term.out, " because: %.*s", STR_ARG(reason));
    fputs("; no other step begins but what cleans up\n", cli->term.out);
}

void render_why(struct cli *cli, const struct node *answer)
{
    const struct node *first = node_first(answer, "waiting_for");

    put_winding_up(cli, node_find(answer, "cancelling"), "is being cancelled");
    put_winding_up(cli, node_find(answer, "undoing"), "has failed and is being undone");
    if (!first)
        put_end(cli, node_find(answer, "ended"));
    if (member_str(answer, "retried_as").size > 0)
        fprintf(cli->term.out, "run again as %.*s\n", STR_ARG(member_str(answer, "retried_as")));
    for (const struct node *item = first; item; item = item->next) {
        char moment[MOMENT_SIZE], distance[MOMENT_SIZE];
        str kind = member_str(item, "kind");

        moment_print(member_str(item, "until"), moment);
        until_print(member_str(item, "until"), distance);
        fprintf(cli->term.out, "%-8.*s ", STR_ARG(kind));
        term_cell(&cli->term, BOLD, member_str(item, "name"), LIMIT_ACTION, 0);
        if (moment[0])
            fprintf(cli->term.out, "  %s (%s)", moment, distance);
        put_tool(cli, item);
        fputc('\n', cli->term.out);
        put_causes(cli, cli->operands[0], item);
    }
}

/* ---- counts ---- */

static void put_count(struct cli *cli, int64_t count, str name)
{
    fprintf(cli->term.out, "%9lld  ", (long long)count);
    term_cell(&cli->term, status_style(name), name, LIMIT_ACTION, 0);
    fputc('\n', cli->term.out);
}

static int64_t count_of(const struct node *item)
{
    int64_t count = 0;

    (void)node_to_i64(item, &count);
    return count;
}

/* Ends that declare no kind are not shown as success, though the wire counts them as completed. */
static void put_statuses(struct cli *cli, const struct node *item, int64_t without_kind)
{
    for (; item; item = item->next) {
        int64_t count = count_of(item);
        bool is_split = without_kind > 0 && str_is(item->key, "completed");

        if (!is_split || count > without_kind)
            put_count(cli, is_split ? count - without_kind : count, status_words(item->key));
        if (is_split)
            put_count(cli, without_kind, STR("ended"));
    }
}

void render_counts(struct cli *cli, const struct node *answer)
{
    put_statuses(cli, node_first(answer, "by_status"), member_int(answer, "without_kind"));
    term_put(&cli->term, DIM, "by state:\n");
    for (const struct node *item = node_first(answer, "by_state"); item; item = item->next)
        put_count(cli, count_of(item), item->key);
    fprintf(cli->term.out, "%9lld  in all\n", (long long)member_int(answer, "total"));
}

/* ---- list ---- */

enum {
    LIST_ID,
    LIST_DEFINITION,
    LIST_STATE,
    LIST_STATUS,
    LIST_SUBJECT,
    LIST_UPDATED,
    LIST_COLUMNS
};
static const char *const list_heads[LIST_COLUMNS] = { "ID",     "DEFINITION", "STATE",
                                                      "STATUS", "SUBJECT",    "UPDATED" };

static str definition_of(struct cli *cli, const struct node *row)
{
    str name = member_str(row, "definition");
    size_t size = name.size + 24;
    char *text = arena_alloc(&cli->scope.arena, size);

    if (name.size == 0 || !text)
        return STR("(inline)");
    snprintf(text, size, "%.*s@%lld", STR_ARG(name), (long long)member_int(row, "version"));
    return str_of(text);
}

static void fill_row(struct cli *cli, const struct text_table *table, const struct node *row,
                     str *cells, enum style *styles)
{
    char *moment = arena_alloc(&cli->scope.arena, MOMENT_SIZE);
    char *number = arena_alloc(&cli->scope.arena, SHORT_ID_SIZE);
    str id = member_str(row, "instance_id"), status = status_shown(row);

    (void)table;
    if (moment)
        moment_print(member_str(row, "updated_at"), moment);
    if (moment && term_is_slim(&cli->term))
        moment_cut(moment);
    cells[LIST_ID] = number ? short_id(&cli->term, id, number) : id;
    cells[LIST_DEFINITION] = definition_of(cli, row);
    cells[LIST_STATE] = member_str(row, "current_state");
    cells[LIST_STATUS] = status;
    cells[LIST_SUBJECT] = member_str(row, "subject_ref");
    cells[LIST_UPDATED] = str_of(moment);
    styles[LIST_STATE] = styles[LIST_STATUS] = status_style(status);
    styles[LIST_UPDATED] = DIM;
}

void put_list(struct cli *cli, const struct node *answer)
{
    struct text_table table = { .column_count = LIST_COLUMNS,
                                .heads = list_heads,
                                .whole = 1u << LIST_ID | 1u << LIST_STATUS | 1u << LIST_UPDATED,
                                .below = 1u << LIST_STATE | 1u << LIST_SUBJECT };

    if (!rows_print(cli, node_find(answer, "instances"), &table, fill_row,
                    &(struct table_pages){ 0 }))
        fputs("no instances\n", cli->term.out);
}

/* A word as a shell takes it. */
static void print_shell_word(struct buf *out, const char *word)
{
    const char *plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";

    if (*word && strspn(word, plain) == strlen(word)) {
        buf_fmt(out, " %s", word);
        return;
    }
    buf_str(out, STR(" '"));
    for (; *word; word++)
        buf_str(out, *word == '\'' ? STR("'\\''") : (str){ word, 1 });
    buf_str(out, STR("'"));
}

void put_next_page(struct cli *cli, str after)
{
    struct buf line;

    buf_init(&line, &heap_libc, CLI_ANSWER_MAX);
    buf_fmt(&line, "more: %s %s", cli->command, cli->verb->name);
    for (uint32_t i = 0; i < cli->operand_count; i++)
        print_shell_word(&line, cli->operands[i]);
    for (uint32_t i = 0; i < cli->given_count; i++) {
        const struct given *given = &cli->given[i];

        if (strcmp(given->option->name, "after") == 0)
            continue;
        buf_fmt(&line, " --%s", given->option->name);
        if (given->value)
            print_shell_word(&line, given->value);
    }
    buf_fmt(&line, " --after %.*s\n", STR_ARG(after));
    term_put(&cli->term, DIM, "%s", buf_text(&line));
    buf_fini(&line);
}

/* Why the paused ones among them are. */
static void put_reasons(struct cli *cli, const struct node *row)
{
    for (; row; row = row->next) {
        str reason = member_str(node_find(row, "pause"), "reason");
        char number[SHORT_ID_SIZE];
        str id = short_id(&cli->term, member_str(row, "instance_id"), number);

        if (reason.size > 0)
            term_put(&cli->term, DIM, "%.*s is paused: %.*s\n", STR_ARG(id), STR_ARG(reason));
    }
}

void render_list(struct cli *cli, const struct node *answer)
{
    str next = member_str(answer, "next");

    put_list(cli, answer);
    put_reasons(cli, node_first(answer, "instances"));
    if (next.size > 0)
        put_next_page(cli, next);
}
