/* keeper.h - private to tool: a program under a process of ours that ends all it began. */
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
    int control, report; /* a byte, or our end, ends it all; how it began, and how the program ended */
};

#define KEEPER_NONE ((struct keeper){ .control = -1, .report = -1 })

/* 0, or errno; keeper_end() all the same. */
int keeper_begin(struct keeper *keeper, const struct launch *launch);
/* Once: 0 if the program runs, else why it could not be started, as errno. */
int keeper_started(const struct keeper *keeper);
void keeper_stop(const struct keeper *keeper); /* from any thread, before keeper_end() */
/* All that the program began has ended when this returns. False: how the program ended is not known. */
bool keeper_end(struct keeper *keeper, int *status);

#endif
