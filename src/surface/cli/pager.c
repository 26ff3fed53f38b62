/* pager.c - what is longer than the terminal goes through the reader's pager. */
#include "surface/cli/pager.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define USUAL "less -FRSX" /* ends by itself if it fits, keeps colours, does not wrap */

bool pager_begin(struct term *term, uint32_t lines)
{
    const char *pager = getenv("PAGER");
    uint32_t rows = (uint32_t)term_rows(term->out);
    FILE *out;

    if (!term->tty || rows == 0 || lines < rows || (pager && strcmp(pager, "cat") == 0))
        return false;
    fflush(term->out);
    out = popen(pager && *pager ? pager : USUAL, "w");
    if (!out)
        return false;
    signal(SIGINT, SIG_IGN); /* a key of the pager's, from now on */
    term->out = out;
    return true;
}

void pager_end(struct term *term, bool has_begun)
{
    if (!has_begun)
        return;
    pclose(term->out);
    term->out = stdout;
    signal(SIGINT, SIG_DFL);
}
