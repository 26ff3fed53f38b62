/* report.c - the table that people read and the file that programs read. */
#include "bench.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void beside(struct row *row, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(row->beside, sizeof row->beside, format, args);
    va_end(args);
}

static bool reaches(const struct row *row, double mark)
{
    return row->sense == AT_LEAST ? row->value >= mark : row->value <= mark;
}

static const char *verdict(const struct row *row)
{
    if (row->sense == TOLD)
        return "-";
    if (!reaches(row, row->gate))
        return "MISSED";
    return row->stretch > 0 && reaches(row, row->stretch) ? "stretch" : "gate";
}

static void print_number(char *out, size_t size, double value, const char *unit)
{
    int digits = value < 10 ? 2 : value < 100 ? 1 : 0;

    if (value == 0)
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%.*f %s", digits, value, unit);
}

static void print_row(FILE *out, const struct row *row)
{
    char value[32], gate[32] = "-", stretch[32] = "-";

    print_number(value, sizeof value, row->value, row->unit);
    if (row->sense != TOLD) {
        print_number(gate, sizeof gate, row->gate, row->unit);
        print_number(stretch, sizeof stretch, row->stretch, row->unit);
    }
    fprintf(out, "%-62s %12s %10s %10s  %-8s %s\n", row->what, value, gate, stretch, verdict(row),
            row->beside);
}

void report(struct bench *bench, const struct row *row)
{
    if (bench->row_count == ROWS_MAX)
        die("more than %d rows", ROWS_MAX);
    bench->rows[bench->row_count++] = *row;
    print_row(stderr, row);
}

void report_table(const struct bench *bench)
{
    size_t missed = 0;

    printf("%-62s %12s %10s %10s  %-8s %s\n", "what", "measured", "gate", "stretch", "verdict",
           "absolute");
    for (size_t i = 0; i < bench->row_count; i++) {
        print_row(stdout, &bench->rows[i]);
        missed += strcmp(verdict(&bench->rows[i]), "MISSED") == 0;
    }
    printf("%zu measured, %zu below their gate%s\n", bench->row_count, missed,
           bench->quick ? " (--quick: sizes too small to judge by)" : "");
}

void report_json(const struct bench *bench)
{
    FILE *file = bench->json ? fopen(bench->json, "w") : NULL;

    if (!bench->json)
        return;
    if (!file)
        die("cannot write %s", bench->json);
    fputs("{\n", file);
    for (size_t i = 0; i < bench->row_count; i++)
        fprintf(file, "  \"%s\": %.6g%s\n", bench->rows[i].key, bench->rows[i].value,
                i + 1 < bench->row_count ? "," : "");
    fputs("}\n", file);
    if (fclose(file) != 0)
        die("cannot write %s", bench->json);
}
