/* sheet.h - a page to print: facts under headings, as text or as one HTML file. Everything that
 * is put on it is escaped. */
#ifndef PAWL_SURFACE_CLI_SHEET_H
#define PAWL_SURFACE_CLI_SHEET_H

#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sheet {
    FILE *out;
    bool is_html;
    bool in_table; /* facts are being put */
};

void sheet_begin(struct sheet *sheet, str title);
void sheet_verdict(struct sheet *sheet, bool is_good, str words); /* what counts most */
void sheet_section(struct sheet *sheet, const char *title);
void sheet_entry(struct sheet *sheet, str title);                  /* a heading below a section */
void sheet_fact(struct sheet *sheet, const char *name, str value); /* none, if value is empty */
/* The same with a second line, which says something of the value. */
void sheet_noted(struct sheet *sheet, const char *name, str value, const char *note_name, str note);
void sheet_block(struct sheet *sheet, str text); /* lines as they are */
void sheet_words(struct sheet *sheet, str text); /* a paragraph */
void sheet_end(struct sheet *sheet);

/* Rows under heads: `cells` row by row. Nothing is cut. Nothing at all without rows. */
#define SHEET_COLUMNS_MAX 8u
void sheet_table(struct sheet *sheet, const char *const *heads, const str *cells, uint32_t columns,
                 uint32_t rows);

#endif
