/* keeper.h - private to tool: runs a program under a process of ours that ends all it started. */
#ifndef PAWL_TOOL_KEEPER_H
#define PAWL_TOOL_KEEPER_H

#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch { /* all of it made before the fork */
    char **argv, **environment;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
};

struct keeper {
    pid_t pid;           /* of the keeper; 0: none */
    int control, report; /* a byte or our death ends it; start and exit status */
};

#define KEEPER_NONE ((struct keeper){ .control = -1, .report = -1 })

/* 0, or errno; call keeper_end() in either case. */
int keeper_begin(struct keeper *keeper, const struct launch *launch);
/* To be called once: 0 if the program runs, else the errno of the failed start. */
int keeper_started(const struct keeper *keeper);
void keeper_stop(const struct keeper *keeper); /* from any thread, before keeper_end() */
/* When this returns, everything that the program started has ended. False: its exit status is
 * unknown. */
bool keeper_end(struct keeper *keeper, int *status);

#endif
