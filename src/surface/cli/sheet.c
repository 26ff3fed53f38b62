/* sheet.c - see sheet.h. */
#include "surface/cli/sheet.h"

#define WORDS_COLUMNS 76 /* of a paragraph as text */

static const char page_style[] =
    "@page{size:A4;margin:18mm}"
    "body{font:10pt/1.4 sans-serif;color:#000;background:#fff;max-width:180mm;margin:1em auto;"
    "padding:0 1em}"
    "h1{font-size:15pt}h2{font-size:12pt;border-bottom:1px solid #000;margin-top:1.6em}"
    "h3{font-size:10pt;margin:1.2em 0 .2em}"
    "table{border-collapse:collapse;width:100%}"
    "th{width:9em;text-align:left;font-weight:normal;color:#444;vertical-align:top}"
    "th,td{padding:1px 6px 1px 0}"
    "td,pre{font-family:monospace;font-size:8.5pt;white-space:pre-wrap;overflow-wrap:anywhere}"
    "pre{border:1px solid #999;padding:6px}"
    "h2,h3{break-after:avoid}tr{break-inside:avoid}";

/* A control character is shown, not sent; a line feed is one only where lines are kept. */
static void put_text(const struct sheet *sheet, str text, bool has_lines)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte == '\n' && has_lines)
            fputc('\n', sheet->out);
        else if (byte < 0x20 || byte == 0x7F)
            fprintf(sheet->out, "\\x%02x", byte);
        else if (sheet->is_html &&
                 (byte == '&' || byte == '<' || byte == '>' || byte == '"' || byte == '\''))
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
    for (size_t i = 0; line && i < title.size; i++)
        fputc(line, sheet->out);
    fputs(line ? "\n" : "", sheet->out);
}

void sheet_begin(struct sheet *sheet, str title)
{
    if (sheet->is_html) {
        fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
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

void sheet_fact(struct sheet *sheet, const char *name, str value)
{
    if (value.size == 0)
        return;
    if (sheet->is_html && !sheet->in_table)
        fputs("<table>\n", sheet->out);
    sheet->in_table = true;
    fprintf(sheet->out, sheet->is_html ? "<tr><th>%s</th><td>" : "  %-18s", name);
    put_text(sheet, value, false);
    fputs(sheet->is_html ? "</td></tr>\n" : "\n", sheet->out);
}

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

void sheet_words(struct sheet *sheet, str text)
{
    end_table(sheet);
    fputs(sheet->is_html ? "<p>" : "\n", sheet->out);
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

void sheet_end(struct sheet *sheet)
{
    end_table(sheet);
    if (sheet->is_html)
        fputs("</body></html>\n", sheet->out);
}
