/* verb_check.c - check: what is wrong or odd with definitions, and, against the instances that
 * are under way, whether a new version is safe. */
#include "surface/cli/cli.h"

/* "exits missing: pay, ship" */
static str verdict_of(struct cli *cli, const struct node *row)
{
    const struct node *action = node_first(row, "missing");
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

static void fill_row(struct cli *cli, const struct text_table *table, const struct node *row,
                     str *cells, enum style *styles)
{
    cells[0] = member_str(row, table->heads[0]);
    cells[1] = member_json(row, "instances");
    cells[2] = verdict_of(cli, row);
    styles[2] = str_is(member_str(row, "verdict"), "safe") ? GOOD : BAD;
}

static void put_rows(struct cli *cli, const struct node *rows, const char *what)
{
    const char *heads[] = { what, "instances", "verdict" };
    struct text_table table = { .column_count = 3, .heads = heads };

    rows_print(cli, rows, &table, fill_row, &(struct table_pages){ 0 });
}

static void put_against(struct cli *cli, const char *path, const struct node *against)
{
    str name = member_str(against, "name");
    bool is_safe = member_true(against, "safe");
    long long instances = 0;

    for (const struct node *row = node_first(against, "states"); row; row = row->next)
        instances += member_int(row, "instances");
    put_rows(cli, node_find(against, "states"), "state");
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
    const struct node *against;
    bool valid;
    str text;

    TRY(file_read(&cli->scope, path, &text));
    TRY(findings_ask(cli, path, text, args_option(cli, "against"), &checked));
    against = node_find(checked.answer, "against");
    valid = !node_first(checked.answer, "errors");
    *good = valid && (!against || member_true(against, "safe"));
    if (cli->json) {
        print_json(cli, checked.answer->raw);
        return PAWL_OK;
    }
    findings_put(&cli->term, &checked, "errors");
    findings_put(&cli->term, &checked, "warnings");
    findings_put_section(&cli->term, &checked);
    if (valid)
        fprintf(cli->term.out, "%s: valid\n", path);
    if (valid && against)
        put_against(cli, path, against);
    return PAWL_OK;
}

int verb_check(struct cli *cli)
{
    bool all_good = true, good = false;

    if (args_option(cli, "against") && cli->operand_count > 1)
        return usage_fail(cli, "--against goes with one file");
    if (!can_read_all(cli))
        return EXIT_USAGE;
    /* To look at a text needs no store; to compare it with instances does. */
    if ((args_option(cli, "against") ? target_open(cli, USE_EXISTING, NULL)
                                     : target_open_any(cli, NULL)))
        return report(cli);
    for (uint32_t i = 0; i < cli->operand_count; i++) {
        if (config_is_named(cli->operands[i])) {
            if (config_check(cli, cli->operands[i]) != PAWL_OK)
                return report(cli);
            continue;
        }
        if (check_file(cli, cli->operands[i], &good) != PAWL_OK)
            return report(cli);
        all_good = all_good && good;
    }
    return all_good ? EXIT_DONE : EXIT_REJECTED;
}
