/* verb_sql.c - sql: rows as a table, or as paragraphs where they are too wide; what is longer than
 * the terminal goes through the reader's pager. */
#include "surface/cli/cli.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define READABLE_COLUMNS 10           /* on average: with less, a table says nothing */
#define USUAL            "less -FRSX" /* ends by itself if it fits, keeps colours, does not wrap */

/* Send what is written from now on through a pager, if this is a terminal with fewer rows than
 * `lines` ($PAGER, else less; PAGER=cat: never). False: it goes where it went. */
static bool pager_begin(struct term *term, uint32_t lines)
{
    const char *pager = getenv("PAGER");
    uint32_t rows = (uint32_t)term_rows(term->out);
    FILE *out;

    if (!term->tty || rows == 0 || lines < rows || (pager && strcmp(pager, "cat") == 0))
        return false;
    fflush(term->out);
    out = popen(pager && *pager ? pager : USUAL, "w");
    if (!out)
        return false;
    signal(SIGINT, SIG_IGN); /* a key of the pager's, from now on */
    term->out = out;
    return true;
}

/* Waits until the reader has read. */
static void pager_end(struct term *term, bool has_begun)
{
    if (!has_begun)
        return;
    pclose(term->out);
    term->out = stdout;
    signal(SIGINT, SIG_DFL);
}

/* Wider than the terminal: each row as a paragraph, a column a line. */
static void put_paragraphs(const struct term *term, const struct text_table *table)
{
    for (uint32_t row = 0; row < table->row_count; row++) {
        if (row > 0)
            fputc('\n', term->out);
        for (uint32_t i = 0; i < table->column_count; i++) {
            term_cell(term, DIM, str_of(table->heads[i]), 24, 26);
            term_cell(term, PLAIN, table->cells[row * table->column_count + i], term->width - 26,
                      0);
            fputc('\n', term->out);
        }
    }
}

static void put_rows_paged(struct term *term, const struct text_table *table)
{
    bool is_wide = term->tty && (int)table->column_count * READABLE_COLUMNS > term->width;
    uint32_t lines = is_wide ? table->row_count * (table->column_count + 1) : table->row_count + 1;
    bool is_paged = pager_begin(term, lines);

    if (is_wide)
        put_paragraphs(term, table);
    else
        table_print(term, table, &(struct table_pages){ 0 });
    pager_end(term, is_paged);
}

static void render_rows(struct cli *cli, const struct node *answer)
{
    const struct node *columns = node_find(answer, "columns"), *rows = node_find(answer, "rows");
    uint32_t count = columns ? columns->count : 0, at = 0;
    const char *heads[TABLE_COLUMNS_MAX];
    str *cells;

    if (count == 0 || count > TABLE_COLUMNS_MAX) {
        fputs(count ? "too many columns for a table: use --json\n" : "no rows\n", cli->term.out);
        return;
    }
    cells = ARENA_ARRAY(&cli->scope.arena, str, (size_t)count * (rows->count + 1));
    for (const struct node *column = columns->first; column; column = column->next)
        heads[at++] = column->text.data;
    at = 0;
    for (const struct node *row = rows->first; cells && row; row = row->next)
        for (const struct node *cell = row->first; cell; cell = cell->next)
            cells[at++] = cell->kind == NODE_NULL ? STR("") : cell->text; /* of a number as well */
    if (cells)
        put_rows_paged(&cli->term, &(struct text_table){ .column_count = count,
                                                         .row_count = rows->count,
                                                         .heads = heads,
                                                         .cells = cells });
}

int verb_sql(struct cli *cli)
{
    return verb_do(cli, USE_READ, cli->verb->operation, render_rows);
}
