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

static int sum(const int *widths, uint32_t count)
{
    int total = 0;

    for (uint32_t i = 0; i < count; i++)
        total += widths[i] + GAP;
    return total - GAP;
}

/* Take from the widest column that is not in `whole` until the row fits, one character at a time. */
static void squeeze(int *widths, uint32_t count, uint32_t whole, int room)
{
    while (sum(widths, count) > room) {
        uint32_t widest_column = count;

        for (uint32_t i = 0; i < count; i++)
            if (!(i < 32 && whole >> i & 1) &&
                (widest_column == count || widths[i] > widths[widest_column]))
                widest_column = i;
        if (widest_column == count || widths[widest_column] <= COLUMN_MIN)
            return;
        widths[widest_column]--;
    }
}

static void print_heads(const struct term *term, const struct table *table, const int *widths)
{
    fputs(table->indent ? table->indent : "", term->out);
    for (uint32_t i = 0; i < table->column_count; i++) {
        bool last = i + 1 == table->column_count;

        term_cell(term, DIM, str_of(table->heads[i]), widths[i], last ? 0 : widths[i] + GAP);
    }
    fputc('\n', term->out);
}

static void print_row(const struct term *term, const struct table *table, const int *widths,
                      uint32_t row)
{
    fputs(table->indent ? table->indent : "", term->out);
    for (uint32_t i = 0; i < table->column_count; i++) {
        uint32_t cell = row * table->column_count + i;
        bool last = i + 1 == table->column_count;

        term_cell(term, table->styles ? table->styles[cell] : PLAIN, table->cells[cell],
                  term->tty ? widths[i] : TABLE_CELL_MAX, last ? 0 : widths[i] + GAP);
    }
    fputc('\n', term->out);
}

void table_print(const struct term *term, const struct table *table)
{
    int widths[TABLE_COLUMNS_MAX];
    int indent = term_columns(str_of(table->indent));

    ASSERT(table->column_count > 0 && table->column_count <= TABLE_COLUMNS_MAX);
    for (uint32_t i = 0; i < table->column_count; i++)
        widths[i] = widest(table, i);
    if (term->tty) {
        squeeze(widths, table->column_count, table->whole, term->width - indent);
        squeeze(widths, table->column_count, 0, term->width - indent);
    }
    if (table->heads)
        print_heads(term, table, widths);
    for (uint32_t row = 0; row < table->row_count; row++)
        print_row(term, table, widths, row);
}
