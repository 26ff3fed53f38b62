/* term.c - colours, widths and cells of a terminal. */
#include "surface/cli/term.h"
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80
#define WIDTH_MIN     20
#define SLIM          72 /* columns */
#define SHORT_LINE    30 /* likewise: it may be half empty */

static const char *const style_codes[] = {
    [PLAIN] = "",       [BOLD] = "\033[1m",  [DIM] = "\033[2m",   [GOOD] = "\033[32m",
    [BAD] = "\033[31m", [WARN] = "\033[33m", [LIVE] = "\033[36m", [ACCENT] = "\033[1;36m",
};

static int width_of(FILE *out)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = 0;

    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width == 0 && columns)
        width = atoi(columns);
    if (width <= 0)
        width = WIDTH_DEFAULT;
    return width < WIDTH_MIN ? WIDTH_MIN : width;
}

void term_init(struct term *term, FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    const char *name = getenv("TERM");

    term->out = out;
    term->tty = isatty(fileno(out)) == 1;
    term->colour = term->tty && !(no_color && *no_color) && !(name && strcmp(name, "dumb") == 0);
    term->width = width_of(out);
}

int term_rows(FILE *out)
{
    struct winsize size;

    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

void term_measure(struct term *term)
{
    term->width = width_of(term->out);
}

bool term_set_colour(struct term *term, const char *when)
{
    if (!when)
        return false;
    if (strcmp(when, "always") == 0 || strcmp(when, "never") == 0)
        term->colour = strcmp(when, "always") == 0;
    else if (strcmp(when, "auto") != 0)
        return false;
    return true;
}

void term_put(const struct term *term, enum style style, const char *format, ...)
{
    bool paint = term->colour && style != PLAIN;
    va_list arguments;

    if (paint)
        fputs(style_codes[style], term->out);
    va_start(arguments, format);
    vfprintf(term->out, format, arguments);
    va_end(arguments);
    if (paint)
        fputs("\033[0m", term->out);
}

static size_t character_size(str text, size_t at)
{
    size_t end = at + 1;

    while (end < text.size && ((unsigned char)text.data[end] & 0xC0) == 0x80)
        end++;
    return end - at;
}

bool term_is_slim(const struct term *term)
{
    return term->tty && term->width < SLIM;
}

int term_columns(str text)
{
    int columns = 0;

    for (size_t at = 0; at < text.size; at += character_size(text, at))
        columns++;
    return columns;
}

/* U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
bool turns_text(str text, size_t at)
{
    const unsigned char *bytes = (const unsigned char *)text.data + at;
    size_t left = text.size - at;

    if (left >= 2 && bytes[0] == 0xD8)
        return bytes[1] == 0x9C;
    if (left < 3 || bytes[0] != 0xE2)
        return false;
    if (bytes[1] == 0x81)
        return bytes[2] >= 0xA6 && bytes[2] <= 0xA9;
    return bytes[1] == 0x80 &&
           (bytes[2] == 0x8E || bytes[2] == 0x8F || (bytes[2] >= 0xA8 && bytes[2] <= 0xAE));
}

/* What is stored may hold escape sequences: a terminal must never see them. What is put in the
 * place of this character; 0: nothing. */
static char instead_of(str text, size_t at, size_t size)
{
    unsigned char first = (unsigned char)text.data[at];

    if (first == '\n' || first == '\t')
        return ' ';
    if (first < 0x20 || first == 0x7F || turns_text(text, at))
        return '?';
    return first == 0xC2 && size == 2 && (unsigned char)text.data[at + 1] < 0xA0 ? '?' : 0; /* C1 */
}

/* At most so many columns; the columns that were put. */
static int put_columns(FILE *out, str text, int most)
{
    size_t at = 0, put = 0; /* up to where the text is out */
    int columns = 0;

    for (size_t size; at < text.size && columns < most; at += size, columns++) {
        char instead;

        size = character_size(text, at);
        instead = instead_of(text, at, size);
        if (!instead)
            continue;
        fwrite(text.data + put, 1, at - put, out);
        fputc(instead, out);
        put = at + size;
    }
    if (at > put)
        fwrite(text.data + put, 1, at - put, out);
    return columns;
}

void term_cell(const struct term *term, enum style style, str text, int width, int pad)
{
    bool paint = term->colour && style != PLAIN;
    bool cut = term_columns(text) > width;
    int columns;

    if (paint)
        fputs(style_codes[style], term->out);
    columns = put_columns(term->out, text, cut ? width - 1 : width);
    if (cut) {
        fputs("…", term->out);
        columns++;
    }
    if (paint)
        fputs("\033[0m", term->out);
    if (pad > columns)
        fprintf(term->out, "%*s", pad - columns, "");
}

/* The bytes of a text that a line of `room` columns takes: to its last space, or all that fit if
 * the line would be half empty. */
static size_t line_size(str text, int room)
{
    int least = room < SHORT_LINE ? 0 : room / 2;
    size_t at = 0, space = 0;

    for (int columns = 0; at < text.size && columns < room; columns++) {
        if (columns > least && text.data[at] == ' ')
            space = at;
        at += character_size(text, at);
    }
    return space > 0 && at < text.size && text.data[at] != ' ' ? space : at;
}

void term_wrap(const struct term *term, enum style style, str text, int used, const char *prefix)
{
    int room = term->tty ? term->width - used : TABLE_CELL_MAX;

    for (int line = 1; term_columns(text) > room && line < TERM_LINES; line++) {
        size_t size = line_size(text, room);

        term_cell(term, style, (str){ text.data, size }, room, 0);
        term_put(term, DIM, "\n%s", prefix);
        text = str_from(text, size);
        while (text.size > 0 && text.data[0] == ' ')
            text = str_from(text, 1);
        room = term->width - term_columns(str_of(prefix));
    }
    term_cell(term, style, text, room, 0);
}
