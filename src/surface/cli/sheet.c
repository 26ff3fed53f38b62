/* sheet.c - see sheet.h. */
#include "surface/cli/sheet.h"
#include "base/assert.h"
#include "base/time.h"
#include "surface/cli/term.h"
#include <string.h>

#define WORDS_COLUMNS 76 /* of a paragraph as text */
#define CELL_COLUMNS  40 /* of a table as text: what is longer shifts the rest of its row */

/* Black on white, on A4 or Letter, and on a screen of any width. */
static const char page_style[] =
    "@page{margin:16mm}"
    "body{font:10pt/1.4 sans-serif;color:#000;background:#fff;max-width:190mm;margin:1em auto;"
    "padding:0 1em}"
    "h1{font-size:15pt;overflow-wrap:anywhere}"
    "h2{font-size:12pt;border-bottom:1px solid #000;margin:1.8em 0 .5em}"
    "h3{font-size:10pt;margin:1.2em 0 .2em;padding-top:.3em;border-top:1px solid #ccc;"
    "overflow-wrap:anywhere}"
    "table{border-collapse:collapse;width:100%}"
    "th{text-align:left;font-weight:normal;color:#444;vertical-align:top}"
    ".facts th{width:10em}"
    ".rows th{border-bottom:1px solid #999}.rows tr>*{padding-right:10px}"
    ".rows td{border-bottom:1px solid #ddd}.rows td:not(:last-child){"
    "overflow-wrap:break-word;max-width:14em}thead{display:table-header-group}"
    "td{vertical-align:top}th,td{padding:1px 6px 1px 0}"
    "td,pre{font-family:monospace;font-size:8.5pt;white-space:pre-wrap;overflow-wrap:anywhere}"
    "td.at{white-space:nowrap}"
    "pre{border:1px solid #999;padding:6px}"
    ".note{color:#555;font-size:7.5pt}"
    ".good,.bad{border:2px solid #000;padding:6px 10px;font-weight:bold}"
    ".good{border-color:#047857}.bad{border-color:#b91c1c;background:#fee2e2}"
    "h2,h3{break-after:avoid}tr{break-inside:avoid}"
    "@media(max-width:600px){.facts th,.facts td{display:block;width:auto}.facts td{padding-left:"
    "1em}.rows{display:block;overflow-x:auto}}";

/* A control character, or one that would make the rest of the text read in another direction. */
static bool is_hidden(str text, size_t at)
{
    unsigned char byte = (unsigned char)text.data[at];
    bool is_c1 = byte == 0xC2 && at + 1 < text.size && (unsigned char)text.data[at + 1] < 0xA0;

    return byte < 0x20 || byte == 0x7F || is_c1 || turns_text(text, at);
}

/* Its bytes are shown, not sent; how many these are. */
static size_t put_hidden(const struct sheet *sheet, str text, size_t at)
{
    size_t size = 0;

    do
        fprintf(sheet->out, "\\x%02x", (unsigned char)text.data[at + size++]);
    while (at + size < text.size && ((unsigned char)text.data[at + size] & 0xC0) == 0x80);
    return size;
}

/* A line feed is one only where lines are kept. */
static void put_text(const struct sheet *sheet, str text, bool has_lines)
{
    for (size_t at = 0, size; at < text.size; at += size) {
        char byte = text.data[at];

        size = 1;
        if (byte == '\n' && has_lines)
            fputc('\n', sheet->out);
        else if (is_hidden(text, at))
            size = put_hidden(sheet, text, at);
        else if (sheet->is_html && strchr("&<>\"'", byte))
            fprintf(sheet->out, "&#%d;", byte);
        else
            fputc(byte, sheet->out);
    }
}

static void end_table(struct sheet *sheet)
{
    if (sheet->in_table && sheet->is_html)
        fputs("</table>\n", sheet->out);
    sheet->in_table = false;
}

static void put_heading(struct sheet *sheet, const char *tag, str title, char line)
{
    end_table(sheet);
    if (sheet->is_html)
        fprintf(sheet->out, "<%s>", tag);
    else
        fputc('\n', sheet->out);
    put_text(sheet, title, false);
    if (sheet->is_html) {
        fprintf(sheet->out, "</%s>\n", tag);
        return;
    }
    fputc('\n', sheet->out);
    for (int i = term_columns(title); line && i > 0; i--)
        fputc(line, sheet->out);
    fputs(line ? "\n" : "", sheet->out);
}

void sheet_begin(struct sheet *sheet, str title)
{
    if (sheet->is_html) {
        fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
              "<meta http-equiv=\"Content-Security-Policy\" "
              "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>",
              sheet->out);
        put_text(sheet, title, false);
        fprintf(sheet->out, "</title>\n<style>%s</style></head><body>\n", page_style);
    }
    put_heading(sheet, "h1", title, '=');
}

void sheet_section(struct sheet *sheet, const char *title)
{
    put_heading(sheet, "h2", str_of(title), '-');
}

void sheet_entry(struct sheet *sheet, str title)
{
    put_heading(sheet, "h3", title, 0);
}

/* ---- Facts ---- */

static void begin_fact(struct sheet *sheet, const char *name)
{
    if (sheet->is_html && !sheet->in_table)
        fputs("<table class=\"facts\">\n", sheet->out);
    sheet->in_table = true;
    fprintf(sheet->out, sheet->is_html ? "<tr><th>%s</th><td>" : "  %-18s", name);
}

void sheet_fact(struct sheet *sheet, const char *name, str value)
{
    if (value.size == 0)
        return;
    begin_fact(sheet, name);
    put_text(sheet, value, false);
    fputs(sheet->is_html ? "</td></tr>\n" : "\n", sheet->out);
}

void sheet_noted(struct sheet *sheet, const char *name, str value, const char *note_name, str note)
{
    begin_fact(sheet, name);
    put_text(sheet, value, false);
    fprintf(sheet->out, sheet->is_html ? "<br><span class=\"note\">%s " : "\n    %-16s", note_name);
    put_text(sheet, note, false);
    fputs(sheet->is_html ? "</span></td></tr>\n" : "\n", sheet->out);
}

/* ---- Tables ---- */

static int width_left(int width, str cell)
{
    int columns = term_columns(cell);

    return columns < width ? width - columns : 0;
}

static void put_row(struct sheet *sheet, const str *cells, const int *widths, uint32_t columns)
{
    int owed = 0; /* spaces before the next text: a line ends without any */

    fputs(sheet->is_html ? "<tr>" : "  ", sheet->out);
    for (uint32_t i = 0; i < columns; i++) {
        int64_t at_ms;

        if (sheet->is_html)
            fputs(time_parse(cells[i], &at_ms) ? "<td class=\"at\">" : "<td>", sheet->out);
        else if (cells[i].size > 0)
            fprintf(sheet->out, "%*s", owed, "");
        put_text(sheet, cells[i], false);
        fputs(sheet->is_html ? "</td>" : "", sheet->out);
        owed = (cells[i].size > 0 ? 0 : owed) + width_left(widths[i], cells[i]) + 2;
    }
    fputs(sheet->is_html ? "</tr>\n" : "\n", sheet->out);
}

static void put_heads(struct sheet *sheet, const char *const *heads, const int *widths,
                      uint32_t columns)
{
    fputs(sheet->is_html ? "<table class=\"rows\"><thead><tr>" : "  ", sheet->out);
    for (uint32_t i = 0; i < columns; i++)
        if (sheet->is_html)
            fprintf(sheet->out, "<th>%s</th>", heads[i]);
        else
            fprintf(sheet->out, "%-*s", i + 1 < columns ? widths[i] + 2 : 0, heads[i]);
    fputs(sheet->is_html ? "</tr></thead><tbody>\n" : "\n", sheet->out);
}

void sheet_table(struct sheet *sheet, const char *const *heads, const str *cells, uint32_t columns,
                 uint32_t rows)
{
    int widths[SHEET_COLUMNS_MAX];

    ASSERT(columns > 0 && columns <= SHEET_COLUMNS_MAX);
    if (rows == 0)
        return;
    end_table(sheet);
    for (uint32_t i = 0; i < columns; i++) {
        widths[i] = term_columns(str_of(heads[i]));
        for (uint32_t row = 0; row < rows; row++) {
            int width = term_columns(cells[row * columns + i]);

            widths[i] = width > widths[i] && width <= CELL_COLUMNS ? width : widths[i];
        }
    }
    put_heads(sheet, heads, widths, columns);
    for (uint32_t row = 0; row < rows; row++)
        put_row(sheet, &cells[row * columns], widths, columns);
    fputs(sheet->is_html ? "</tbody></table>\n" : "", sheet->out);
}

/* ---- Texts ---- */

void sheet_block(struct sheet *sheet, str text)
{
    end_table(sheet);
    fputs(sheet->is_html ? "<pre>" : "\n", sheet->out);
    put_text(sheet, text, true);
    fputs(sheet->is_html ? "</pre>\n" : "\n", sheet->out);
}

/* As much of it as fits a line, up to a space; a longer word is a line. */
static str line_of(str text)
{
    size_t size = 0;

    for (size_t i = 0; i <= text.size && (i <= WORDS_COLUMNS || size == 0); i++)
        if (i == text.size || text.data[i] == ' ')
            size = i;
    return (str){ text.data, size };
}

static void put_paragraph(struct sheet *sheet, str text)
{
    while (!sheet->is_html && text.size > WORDS_COLUMNS) {
        str line = line_of(text);

        fputs("  ", sheet->out);
        put_text(sheet, line, false);
        fputc('\n', sheet->out);
        text = line.size < text.size ? str_from(text, line.size + 1) : STR("");
    }
    fputs(sheet->is_html ? "" : "  ", sheet->out);
    put_text(sheet, text, false);
    fputs(sheet->is_html ? "</p>\n" : "\n", sheet->out);
}

void sheet_words(struct sheet *sheet, str text)
{
    end_table(sheet);
    fputs(sheet->is_html ? "<p>" : "\n", sheet->out);
    put_paragraph(sheet, text);
}

void sheet_verdict(struct sheet *sheet, bool is_good, str words)
{
    end_table(sheet);
    if (sheet->is_html)
        fprintf(sheet->out, "<p class=\"%s\">", is_good ? "good" : "bad");
    else
        fputc('\n', sheet->out);
    put_paragraph(sheet, words);
}

void sheet_end(struct sheet *sheet)
{
    end_table(sheet);
    if (sheet->is_html)
        fputs("</body></html>\n", sheet->out);
}
