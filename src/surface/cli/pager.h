/* pager.h - private to the command line: a long answer through $PAGER. */
#ifndef PAWL_SURFACE_CLI_PAGER_H
#define PAWL_SURFACE_CLI_PAGER_H

#include "surface/cli/term.h"

/* Send what is written from now on through a pager, if this is a terminal with fewer rows than
 * `lines` ($PAGER, else less; PAGER=cat: never). False: it goes where it went. */
bool pager_begin(struct term *term, uint32_t lines);
void pager_end(struct term *term, bool has_begun); /* waits until the reader has read */

#endif
