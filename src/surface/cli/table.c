/* table.c - rows and columns that fit the terminal. */
#include "base/assert.h"
#include "surface/cli/term.h"

#define GAP        2
#define COLUMN_MIN 6

static int widest(const struct text_table *table, uint32_t column)
{
    int width = table->heads ? term_columns(str_of(table->heads[column])) : 0;

    for (uint32_t row = 0; row < table->row_count; row++) {
        int columns = term_columns(table->cells[row * table->column_count + column]);

        if (columns > width)
            width = columns;
    }
    return width;
}

/* How it is laid out: which columns are in the line, how wide they are, which are below it. */
struct table_layout {
    int widths[TABLE_COLUMNS_MAX];
    uint32_t count, below; /* below: a bit for each such column */
    int room;
};

static bool is_in(uint32_t columns, uint32_t column)
{
    return column < 32 && columns >> column & 1;
}

static int sum(const struct table_layout *layout)
{
    int total = -GAP;

    for (uint32_t i = 0; i < layout->count; i++)
        if (!is_in(layout->below, i))
            total += layout->widths[i] + GAP;
    return total;
}

/* Shorten the widest column that is not in `whole`, a character at a time, until the row fits. */
static void squeeze(struct table_layout *layout, uint32_t whole)
{
    int *widths = layout->widths;

    whole |= layout->below;
    while (sum(layout) > layout->room) {
        uint32_t widest_column = layout->count;

        for (uint32_t i = 0; i < layout->count; i++)
            if (!is_in(whole, i) &&
                (widest_column == layout->count || widths[i] > widths[widest_column]))
                widest_column = i;
        if (widest_column == layout->count || widths[widest_column] <= COLUMN_MIN)
            return;
        widths[widest_column]--;
    }
}

/* A row's cells, or the heads where `row` is below 0. */
static str cell_at(const struct text_table *table, int64_t row, uint32_t column)
{
    return row < 0 ? str_of(table->heads[column])
                   : table->cells[(uint32_t)row * table->column_count + column];
}

static enum style style_at(const struct text_table *table, int64_t row, uint32_t column)
{
    if (row < 0)
        return DIM;
    return table->styles ? table->styles[(uint32_t)row * table->column_count + column] : PLAIN;
}

/* Behind the width of the first column, one after the other; nothing is cut. */
static void print_below(const struct term *term, const struct text_table *table,
                        const struct table_layout *layout, int64_t row)
{
    char prefix[64];
    int used = 0;

    snprintf(prefix, sizeof prefix, "%s%*s", table->indent ? table->indent : "",
             layout->widths[0] + GAP, "");
    for (uint32_t i = 0; i < layout->count; i++) {
        str cell = cell_at(table, row, i);
        int width = term_columns(cell);

        if (!is_in(layout->below, i) || width == 0)
            continue;
        if (used > 0 && used + GAP + width <= term->width) {
            used += fprintf(term->out, "%*s", GAP, "");
        } else {
            fprintf(term->out, "%s%s", used > 0 ? "\n" : "", prefix);
            used = term_columns(str_of(prefix));
        }
        term_wrap(term, style_at(table, row, i), cell, used, prefix);
        used += width;
    }
    if (used > 0)
        fputc('\n', term->out);
}

static void print_row(const struct term *term, const struct text_table *table,
                      const struct table_layout *layout, int64_t row)
{
    uint32_t last = layout->count - 1;

    /* Spaces at the end of a line that fills the terminal are a line more: none behind the last. */
    while (last > 0 && is_in(layout->below, last))
        last--;
    fputs(table->indent ? table->indent : "", term->out);
    for (uint32_t i = 0; i < layout->count; i++) {
        int width = term->tty || row < 0 ? layout->widths[i] : TABLE_CELL_MAX;

        if (!is_in(layout->below, i))
            term_cell(term, style_at(table, row, i), cell_at(table, row, i), width,
                      i == last ? 0 : layout->widths[i] + GAP);
    }
    fputc('\n', term->out);
    if (layout->below)
        print_below(term, table, layout, row);
}

void table_print(const struct term *term, const struct text_table *table, struct table_pages *pages)
{
    struct table_layout layout = { .count = table->column_count,
                                   .room = term->width - term_columns(str_of(table->indent)) };

    ASSERT(table->column_count > 0 && table->column_count <= TABLE_COLUMNS_MAX);
    for (uint32_t i = 0; i < table->column_count; i++) {
        int width = widest(table, i);

        layout.widths[i] = width > pages->widths[i] ? width : pages->widths[i];
    }
    if (term->tty) {
        layout.below = pages->below;
        for (uint32_t i = layout.count; i > 0 && sum(&layout) > layout.room; i--)
            layout.below |= table->below & 1u << (i - 1);
        pages->below = layout.below;
        squeeze(&layout, table->whole);
        squeeze(&layout, 0);
    }
    memcpy(pages->widths, layout.widths, sizeof layout.widths);
    if (table->heads)
        print_row(term, table, &layout, -1);
    for (uint32_t row = 0; row < table->row_count; row++)
        print_row(term, table, &layout, row);
}
