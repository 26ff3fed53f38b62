/* verb_check.c - check: what is wrong or odd with definitions, and, against the instances that
 * are under way, whether a new version is safe. */
#include "surface/cli/cli.h"
#include <unistd.h>

enum { COLUMN_NAME, COLUMN_INSTANCES, COLUMN_VERDICT, COLUMN_COUNT };

/* "exits missing: pay, ship" */
static str verdict_of(struct cli *cli, const struct node *row)
{
    const struct node *missing = node_find(row, "missing");
    const struct node *action = missing ? missing->first : NULL;
    struct buf words;
    str kept;

    if (!action)
        return member_str(row, "verdict");
    buf_init(&words, &heap_libc, CLI_ANSWER_MAX);
    buf_str(&words, member_str(row, "verdict"));
    for (const char *mark = ": "; action; action = action->next, mark = ", ") {
        buf_str(&words, str_of(mark));
        buf_str(&words, action->text);
    }
    kept = buf_take(&words, &cli->scope.arena);
    return kept.data ? kept : member_str(row, "verdict");
}

static void put_rows(struct cli *cli, const struct node *rows, const char *what)
{
    const char *heads[COLUMN_COUNT] = { what, "instances", "verdict" };
    uint32_t count = rows ? rows->count : 0, at = 0;
    str *cells = ARENA_ARRAY(&cli->scope.arena, str, (size_t)count * COLUMN_COUNT + 1);
    enum style *styles =
        ARENA_ARRAY(&cli->scope.arena, enum style, (size_t)count * COLUMN_COUNT + 1);

    if (count == 0 || !cells || !styles)
        return;
    for (const struct node *row = rows->first; row; row = row->next, at += COLUMN_COUNT) {
        bool is_safe = str_is(member_str(row, "verdict"), "safe");

        cells[at + COLUMN_NAME] = member_str(row, what);
        cells[at + COLUMN_INSTANCES] = member_json(row, "instances");
        cells[at + COLUMN_VERDICT] = verdict_of(cli, row);
        styles[at + COLUMN_VERDICT] = is_safe ? GOOD : BAD;
    }
    table_print(&cli->term, &(struct text_table){ .column_count = COLUMN_COUNT,
                                             .row_count = count,
                                             .heads = heads,
                                             .cells = cells,
                                             .styles = styles });
}

static int64_t count_instances(const struct node *states)
{
    int64_t sum = 0;

    for (const struct node *row = states ? states->first : NULL; row; row = row->next)
        sum += member_int(row, "instances");
    return sum;
}

static void put_against(struct cli *cli, const char *path, const struct node *against)
{
    const struct node *states = node_find(against, "states");
    str name = member_str(against, "name");
    bool is_safe = member_true(against, "safe");
    long long instances = count_instances(states);

    put_rows(cli, states, "state");
    put_rows(cli, node_find(against, "steps"), "step");
    fprintf(cli->term.out, "%s: ", path);
    term_put(&cli->term, is_safe ? GOOD : BAD, "%s", is_safe ? "safe" : "not safe");
    if (instances == 0)
        fprintf(cli->term.out, " against %.*s: none of its instances is under way\n",
                STR_ARG(name));
    else
        fprintf(cli->term.out, " against %.*s, of which %lld %s under way\n", STR_ARG(name),
                instances, instances == 1 ? "instance is" : "instances are");
}

/* *good: no error, and safe if that was asked. */
static pawl_status check_file(struct cli *cli, const char *path, bool *good)
{
    struct checked checked;
    const struct node *errors, *against;
    bool valid;
    str text;

    if (file_read(&cli->scope, path, &text) != PAWL_OK ||
        findings_ask(cli, path, text, args_option(cli, "against"), &checked) != PAWL_OK)
        return cli->scope.error.status;
    errors = node_find(checked.answer, "errors");
    against = node_find(checked.answer, "against");
    valid = !errors || errors->count == 0;
    *good = valid && (!against || member_true(against, "safe"));
    if (cli->json) {
        print_json(cli, checked.raw);
        return PAWL_OK;
    }
    findings_put(&cli->term, &checked, "errors");
    findings_put(&cli->term, &checked, "warnings");
    if (valid)
        fprintf(cli->term.out, "%s: valid\n", path);
    if (valid && against)
        put_against(cli, path, against);
    return PAWL_OK;
}

/* To look at a text needs no store; to compare it with instances does. */
static pawl_status open_store(struct cli *cli)
{
    const char *file = store_file(cli->store);

    if (args_option(cli, "against"))
        return target_open(cli, USE_EXISTING, NULL);
    if (file && access(file, F_OK) != 0)
        cli->store = "memory:";
    return target_open(cli, USE_CREATE, NULL);
}

int verb_check(struct cli *cli)
{
    bool all_good = true, good = false;

    if (args_option(cli, "against") && cli->operand_count > 1)
        return usage_fail(cli, "--against goes with one file");
    if (!can_read_all(cli))
        return EXIT_USAGE;
    if (open_store(cli) != PAWL_OK)
        return report(cli, &cli->scope.error);
    for (uint32_t i = 0; i < cli->operand_count; i++) {
        if (config_is_named(cli->operands[i])) {
            if (config_check(cli, cli->operands[i]) != PAWL_OK)
                return report(cli, &cli->scope.error);
            continue;
        }
        if (check_file(cli, cli->operands[i], &good) != PAWL_OK)
            return report(cli, &cli->scope.error);
        all_good = all_good && good;
    }
    return all_good ? EXIT_DONE : EXIT_REJECTED;
}
