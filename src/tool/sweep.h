/* sweep.h - private to tool: finds what a program left running, without its keeper's help. */
#ifndef PAWL_TOOL_SWEEP_H
#define PAWL_TOOL_SWEEP_H

#include <sys/types.h>

#define KEEPER_NAME "pawl-keeper" /* of every keeper's process */

struct sweep {
    pid_t keeper;        /* alive or dead */
    pid_t program;       /* 0: not known */
    const char *started; /* when the program did, as /proc says it; "": not known */
    const char *marker;  /* NAME=VALUE in the environment of all that it began; NULL: none */
};

#define SWEEP_START_SIZE 24

/* When this process started, as text; "" if it is unknown. */
void sweep_start_of(pid_t pid, char started[SWEEP_START_SIZE]);
/* Kills what it finds, and counts it. Call it again until it returns 0. */
int sweep_once(const struct sweep *sweep);

#endif
