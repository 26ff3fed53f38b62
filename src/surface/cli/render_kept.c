/* render_kept.c - instances on hold, and what is due by the retention of definitions, as tables. */
#include "surface/cli/cli.h"
#include "surface/cli/view.h"

static str moment_cell(struct cli *cli, str rfc3339)
{
    char moment[MOMENT_SIZE] = "";

    if (rfc3339.size)
        moment_print(rfc3339, moment);
    return arena_str(&cli->scope.arena, str_of(moment));
}

static str number_cell(const struct node *row, const char *key)
{
    const struct node *number = node_find(row, key);

    return number ? number->raw : STR("");
}

enum { HOLD_ID, HOLD_SINCE, HOLD_BY, HOLD_REASON, HOLD_COLUMNS };
static const char *const hold_heads[HOLD_COLUMNS] = { "ID", "SINCE", "BY", "REASON" };

static void fill_hold(struct cli *cli, const struct text_table *table, const struct node *row,
                      str *cells, enum style *styles)
{
    (void)table;
    (void)styles;
    cells[HOLD_ID] = member_str(row, "instance_id");
    cells[HOLD_SINCE] = moment_cell(cli, member_str(row, "held_at"));
    cells[HOLD_BY] = member_str(row, "actor_ref");
    cells[HOLD_REASON] = member_str(row, "reason");
}

void render_holds(struct cli *cli, const struct node *answer)
{
    struct text_table table = { .column_count = HOLD_COLUMNS,
                                .heads = hold_heads,
                                .whole = 1u << HOLD_ID | 1u << HOLD_SINCE };

    if (!rows_print(cli, node_find(answer, "holds"), &table, fill_hold, &(struct table_pages){ 0 }))
        fprintf(cli->term.out, "no instance is on hold\n");
    else if (member_true(answer, "more"))
        term_put(&cli->term, DIM, "there are more: --limit\n");
}

enum {
    KEPT_NAME,
    KEPT_AFTER,
    KEPT_THEN,
    KEPT_DUE,
    KEPT_SINCE,
    KEPT_HELD,
    KEPT_ERASED,
    KEPT_COLUMNS
};
static const char *const kept_heads[KEPT_COLUMNS] = { "DEFINITION", "AFTER END", "THEN",  "DUE",
                                                      "SINCE",      "ON HOLD",   "ERASED" };

static void fill_kept(struct cli *cli, const struct text_table *table, const struct node *row,
                      str *cells, enum style *styles)
{
    (void)table;
    cells[KEPT_NAME] = member_str(row, "definition");
    cells[KEPT_AFTER] = member_str(row, "after_end");
    cells[KEPT_THEN] = member_str(row, "then");
    cells[KEPT_DUE] = number_cell(row, "due");
    cells[KEPT_SINCE] = moment_cell(cli, member_str(row, "oldest_due_at"));
    cells[KEPT_HELD] = number_cell(row, "held");
    cells[KEPT_ERASED] = number_cell(row, "erased");
    if (member_int(row, "due") > 0)
        styles[KEPT_DUE] = WARN;
}

void render_retention(struct cli *cli, const struct node *answer)
{
    struct text_table table = { .column_count = KEPT_COLUMNS,
                                .heads = kept_heads,
                                .whole = 1u << KEPT_NAME | 1u << KEPT_AFTER };

    if (!rows_print(cli, node_find(answer, "retention"), &table, fill_kept,
                    &(struct table_pages){ 0 }))
        fprintf(cli->term.out, "no definition has a `retention`\n");
}
