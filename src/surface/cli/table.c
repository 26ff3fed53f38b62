/* table.c - rows and columns that fit the terminal. */
#include "base/assert.h"
#include "surface/cli/term.h"

#define GAP        2
#define COLUMN_MIN 6

static int widest(const struct table *table, uint32_t column)
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
struct layout {
    int widths[TABLE_COLUMNS_MAX];
    uint32_t count, below; /* below: a bit for each such column */
    int room;
};

static bool is_in(uint32_t columns, uint32_t column)
{
    return column < 32 && columns >> column & 1;
}

static int sum(const struct layout *layout)
{
    int total = -GAP;

    for (uint32_t i = 0; i < layout->count; i++)
        if (!is_in(layout->below, i))
            total += layout->widths[i] + GAP;
    return total;
}

/* Take from the widest column that is not in `whole` until the row fits, one character at a time. */
static void squeeze(struct layout *layout, uint32_t whole)
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
static str cell_at(const struct table *table, int64_t row, uint32_t column)
{
    return row < 0 ? str_of(table->heads[column])
                   : table->cells[(uint32_t)row * table->column_count + column];
}

static enum style style_at(const struct table *table, int64_t row, uint32_t column)
{
    if (row < 0)
        return DIM;
    return table->styles ? table->styles[(uint32_t)row * table->column_count + column] : PLAIN;
}

/* Behind the width of the first column: each as wide as it is, the last as there is room for. */
static void print_below(const struct term *term, const struct table *table,
                        const struct layout *layout, int64_t row)
{
    int used = layout->widths[0] + GAP;

    fprintf(term->out, "%s%*s", table->indent ? table->indent : "", used, "");
    for (uint32_t i = 0; i < layout->count; i++) {
        str cell = cell_at(table, row, i);
        int width = term_columns(cell), room = layout->room - used;

        if (!is_in(layout->below, i) || width == 0 || room <= 1)
            continue;
        term_cell(term, style_at(table, row, i), cell, room, 0);
        used += (width < room ? width : room) + GAP;
        fputs(used < layout->room ? "  " : "", term->out);
    }
    fputc('\n', term->out);
}

static void print_row(const struct term *term, const struct table *table,
                      const struct layout *layout, int64_t row)
{
    fputs(table->indent ? table->indent : "", term->out);
    for (uint32_t i = 0; i < layout->count; i++) {
        int width = term->tty || row < 0 ? layout->widths[i] : TABLE_CELL_MAX;
        bool last = i + 1 == layout->count;

        if (!is_in(layout->below, i))
            term_cell(term, style_at(table, row, i), cell_at(table, row, i), width,
                      last ? 0 : layout->widths[i] + GAP);
    }
    fputc('\n', term->out);
    if (layout->below)
        print_below(term, table, layout, row);
}

void table_print(const struct term *term, const struct table *table)
{
    struct layout layout = { .count = table->column_count,
                             .room = term->width - term_columns(str_of(table->indent)) };

    ASSERT(table->column_count > 0 && table->column_count <= TABLE_COLUMNS_MAX);
    for (uint32_t i = 0; i < table->column_count; i++)
        layout.widths[i] = widest(table, i);
    if (term->tty) {
        if (sum(&layout) > layout.room)
            layout.below = table->below;
        squeeze(&layout, table->whole);
        squeeze(&layout, 0);
    }
    if (table->heads)
        print_row(term, table, &layout, -1);
    for (uint32_t row = 0; row < table->row_count; row++)
        print_row(term, table, &layout, row);
}
