/* sheet.h - a page to print: facts under headings, as text or as one HTML file. Everything that
 * is put on it is escaped. */
#ifndef PAWL_SURFACE_CLI_SHEET_H
#define PAWL_SURFACE_CLI_SHEET_H

#include "base/str.h"
#include <stdbool.h>
#include <stdio.h>

struct sheet {
    FILE *out;
    bool is_html;
    bool in_table; /* facts are being put */
};

void sheet_begin(struct sheet *sheet, str title);
void sheet_section(struct sheet *sheet, const char *title);
void sheet_entry(struct sheet *sheet, str title);                  /* a heading below a section */
void sheet_fact(struct sheet *sheet, const char *name, str value); /* none, if value is empty */
void sheet_block(struct sheet *sheet, str text);                   /* lines as they are */
void sheet_words(struct sheet *sheet, str text);                   /* a paragraph */
void sheet_end(struct sheet *sheet);

#endif
