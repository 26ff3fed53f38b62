/* demo.h - private to the demo: the commands it types, in a folder of its own. */
#ifndef PAWL_SURFACE_CLI_DEMO_H
#define PAWL_SURFACE_CLI_DEMO_H

#include "surface/cli/cli.h"
#include <sys/types.h>

struct demo {
    struct cli *cli;
    bool fast, failed; /* failed: something did not go as told */
    char folder[64];
    char program[4096]; /* this binary */
};

/* Make the folder and go there. False: it cannot be made. */
bool demo_begin(struct demo *demo);
void demo_end(struct demo *demo); /* removes it, unless --keep */

void demo_pause(const struct demo *demo, long ms); /* none with --fast */
void demo_title(struct demo *demo, const char *text);
void demo_write(struct demo *demo, const char *name, str text);

/* Say, type and run `pawl ARGUMENTS` (split at blanks; '...' keeps them), and expect this exit
 * status. */
void demo_run(struct demo *demo, int expected, const char *arguments);

/* The same without a word, its --json answer parsed into the cli's scope. NULL: none came. */
struct node *demo_ask(struct demo *demo, const char *arguments);

/* Begin one and let it run; its process. -1: it could not be begun. */
pid_t demo_begin_child(struct demo *demo, const char *arguments);

/* Remember whether something is as told, and say so if it is not. */
void demo_expect(struct demo *demo, bool as_told, const char *what);

/* Change one byte of an entry's hash in a copy of the store. False: not found. */
bool demo_tamper(struct demo *demo, const char *from, const char *to, str hash);

#endif
