/* verb_verify.c - verify, sql: the store itself. */
#include "api/verify_all.h"
#include "base/limits.h"
#include "surface/cli/cli.h"

#define BAR_COLUMNS      32
#define READABLE_COLUMNS 10 /* on average: with less, a table says nothing */

/* ---- verify ---- */

static void draw_bar(const struct term *term, uint64_t done, uint64_t all)
{
    int filled = all ? (int)(done * BAR_COLUMNS / all) : BAR_COLUMNS;

    fputs("\r\033[K  ", term->out);
    for (int i = 0; i < BAR_COLUMNS; i++)
        term_put(term, i < filled ? GOOD : DIM, i < filled ? "█" : "░");
    fprintf(term->out, " %llu of %llu", (unsigned long long)done, (unsigned long long)all);
    fflush(term->out);
}

static void show_progress(void *context, uint64_t pos, uint64_t last)
{
    struct cli *cli = context;

    if (cli->term.tty && !cli->json)
        draw_bar(&cli->term, pos, last);
}

static void clear_bar(const struct cli *cli)
{
    if (cli->term.tty && !cli->json)
        fputs("\r\033[K", cli->term.out);
}

void render_verified(struct cli *cli, const struct node *answer)
{
    struct term *term = &cli->term;
    str instance = member_str(answer, "instance_id");

    if (member_true(answer, "valid")) {
        term_put(term, GOOD, "✔ valid");
        fprintf(term->out, "  %lld entries", (long long)member_int(answer, "entries"));
        if (member_int(answer, "instances") > 0)
            fprintf(term->out, " of %lld instances", (long long)member_int(answer, "instances"));
        fputc('\n', term->out);
        return;
    }
    term_put(term, BAD, "✘ not valid");
    fputs("  ", term->out);
    if (instance.size > 0)
        fprintf(term->out, "%.*s ", STR_ARG(instance));
    if (member_int(answer, "first_bad") > 0)
        fprintf(term->out, "entry %lld ", (long long)member_int(answer, "first_bad"));
    term_cell(term, PLAIN, member_str(answer, "what"), 1000, 0);
    fputc('\n', term->out);
}

static pawl_status verify_local(struct cli *cli, str *out)
{
    struct buf answer;
    pawl_status status;

    buf_init(&answer, &heap_libc, CLI_ANSWER_MAX);
    status = verify_all(cli->target.local, show_progress, cli, &answer, &cli->scope.error);
    clear_bar(cli);
    if (status == PAWL_OK)
        *out = buf_keep(&answer, &cli->scope.arena);
    buf_fini(&answer);
    return status;
}

static pawl_status verify_remote(struct cli *cli, str *out)
{
    struct node *answer;
    struct buf input;

    input_init(&input);
    json_close(&input, '}');
    return target_ask(cli, &cli->scope, "store.verify", &input, &answer, out);
}

static pawl_status verify_one(struct cli *cli, str *out)
{
    struct node *answer;
    const char *id;
    pawl_status status = id_resolve(cli, cli->operands[0], &id);

    if (status != PAWL_OK)
        return status;
    return target_ask_id(cli, &cli->scope, "instance.verify", id, &answer, out);
}

int verb_verify(struct cli *cli)
{
    struct node *answer;
    str text = STR_NONE;
    pawl_status status = target_open(cli, USE_READ, NULL);

    if (status == PAWL_OK && cli->operand_count > 0)
        status = verify_one(cli, &text);
    else if (status == PAWL_OK)
        status = cli->target.local ? verify_local(cli, &text) : verify_remote(cli, &text);
    if (status == PAWL_OK)
        status = node_read_json(&cli->scope, text, &answer);
    if (status != PAWL_OK)
        return report(cli, &cli->scope.error);
    if (cli->json)
        print_json(cli, text);
    else
        render_verified(cli, answer);
    return member_true(answer, "valid") ? EXIT_DONE : EXIT_REJECTED;
}

/* ---- sql ---- */

/* Wider than the terminal: each row as a paragraph, a column a line. */
static void put_paragraphs(const struct term *term, const struct table *table)
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

static void put_rows(const struct term *term, const struct table *table)
{
    if (term->tty && (int)table->column_count * READABLE_COLUMNS > term->width)
        put_paragraphs(term, table);
    else
        table_print(term, table);
}

void render_rows(struct cli *cli, const struct node *answer)
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
            cells[at++] = cell->kind == NODE_NULL ? STR("") : cell->text;
    if (cells)
        put_rows(&cli->term, &(struct table){ .column_count = count,
                                              .row_count = rows->count,
                                              .heads = heads,
                                              .cells = cells });
}

int verb_sql(struct cli *cli)
{
    struct node *answer;
    str text;

    if (target_open(cli, USE_READ, NULL) != PAWL_OK || verb_call(cli, &answer, &text) != PAWL_OK)
        return report(cli, &cli->scope.error);
    if (cli->json)
        print_json(cli, text);
    else
        render_rows(cli, answer);
    return EXIT_DONE;
}
