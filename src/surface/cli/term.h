/* term.h - output for people: colours where they are wanted, widths, times, tables. */
#ifndef PAWL_SURFACE_CLI_TERM_H
#define PAWL_SURFACE_CLI_TERM_H

#include "base/node.h"
#include <stdio.h>

enum style { PLAIN, BOLD, DIM, GOOD, BAD, WARN, LIVE, ACCENT };

struct term {
    FILE *out;
    bool tty, colour;
    int width; /* columns */
};

/* Colours only on a terminal and without NO_COLOR. */
void term_init(struct term *term, FILE *out);

void term_measure(struct term *term); /* its width, read again */
int term_rows(FILE *out);             /* 0: it is no terminal, or does not say */

/* "always", "never" or "auto" (as term_init() has it); false: none of them. */
bool term_set_colour(struct term *term, const char *when);

void term_put(const struct term *term, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As much of a text as fits `width` columns, control characters made visible, "…" where it
 * was cut; then spaces up to `pad` columns. */
void term_cell(const struct term *term, enum style style, str text, int width, int pad);

/* The whole text from the column `used` on, broken at spaces where it can be into further lines
 * that begin with `prefix`; what is longer than TERM_LINES of them is cut with "…". Off a terminal
 * it is one line. */
#define TERM_LINES 12
void term_wrap(const struct term *term, enum style style, str text, int used, const char *prefix);

/* Is it a terminal with room for few columns? Then what can be found elsewhere is left out. */
bool term_is_slim(const struct term *term);

/* Columns that a text takes, one for each character. */
int term_columns(str text);
/* Does this character end a line, or change the direction in which what follows is read? A stored
 * text could look like another one. */
bool turns_text(str text, size_t at);

/* ---- Members of answers ---- */

str member_str(const struct node *object, const char *key);     /* "" if absent or null */
str member_json(const struct node *object, const char *key);    /* its JSON; STR_NONE if null */
int64_t member_int(const struct node *object, const char *key); /* 0 if absent */
bool member_true(const struct node *object, const char *key);
/* "1 entry", "3 entries", in the arena; "" without memory. */
const char *counted(struct arena *arena, int64_t count, const char *one, const char *many);

/* ---- Words ---- */

#define STATUS_WAITING "waiting" /* where the wire says `suspended` */
str status_shown(const struct node *instance); /* its status in words, or `ended` where no kind is
                                                  declared */
str status_words(str status);        /* of the wire, as it is shown */
enum style status_style(str status); /* running, waiting, completed, ...; the wire's word, too */
const char *status_mark(str status); /* one character */

#define MOMENT_SIZE 40
/* "2026-05-01 14:03:07Z". */
void moment_print(str rfc3339, char out[MOMENT_SIZE]);
void moment_cut(char moment[MOMENT_SIZE]); /* to minutes: "2026-05-01 14:03Z" */
/* The same, next to another one: without the date if both have the same. */
void moment_print_beside(const char *other, str rfc3339, char out[MOMENT_SIZE]);
/* "in 5 min", "3 s ago". */
void distance_print(str rfc3339, char out[MOMENT_SIZE]);
void until_print(str rfc3339, char out[MOMENT_SIZE]); /* "in 5 min", "overdue by 3 s" */
/* "+1.2 s": how much later than `before`; "" if it is not, or either is absent. */
void elapsed_print(str before, str after, char out[MOMENT_SIZE]);
void span_print(int64_t ms, char out[MOMENT_SIZE]); /* "1.2 s", "3 min", "2 d" */
int64_t now_ms(void);

/* The number in an instance's or step's id, as `pawl_instances.number`, for typing. 0: none. */
uint64_t id_number(str id);
/* On a narrow terminal that number, in decimal. */
#define SHORT_ID_SIZE 24
str short_id(const struct term *term, str id, char text[SHORT_ID_SIZE]);

/* ---- Tables ---- */

#define TABLE_COLUMNS_MAX 64
#define TABLE_CELL_MAX    1000000 /* nothing is wider: not cut */

/* A table as wide as it must be and the terminal allows: columns that are too wide share
 * what is left. Off a terminal nothing is cut. */
struct text_table {
    uint32_t column_count, row_count;
    const char *const *heads; /* NULL: none */
    const str *cells;         /* row by row */
    const enum style *styles; /* one for each cell, or NULL */
    uint32_t whole;           /* a bit for each column that is cut only if no other can be */
    uint32_t below;           /* likewise, that go to a second line where a row does not fit,
                                 the last ones first */
    const char *indent;
};

/* Of one page of several: it keeps the columns where they are. Zero at first. */
struct table_pages {
    int widths[TABLE_COLUMNS_MAX]; /* at least */
    uint32_t below;                /* those that are in a second line */
};
void table_print(const struct term *term, const struct text_table *table,
                 struct table_pages *pages);

#endif
