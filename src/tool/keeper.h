/* keeper.h - private to tool: runs a program under a process of ours that ends all it started. */
#ifndef PAWL_TOOL_KEEPER_H
#define PAWL_TOOL_KEEPER_H

#include "tool/sweep.h"
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch { /* all of it made before the fork */
    char **argv, **environment;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
    const char *marker; /* a variable of the environment that no other step has; NULL: none */
};

/* launch.c: what is to be set before the fork. Each answers 0, or an errno. */
int launch_actions(posix_spawn_file_actions_t *actions, const int fds[3], const char *cwd);
/* A process group of its own, no signal blocked, and signals that hosts often ignore at default. */
int launch_attributes(posix_spawnattr_t *attributes);
/* The same file out of the way of 0, 1 and 2, which a host may have closed. */
int launch_raise(int fd);

struct keeper {
    pid_t pid;           /* of the keeper; 0: none */
    int control, report; /* a byte or our death ends it; start and exit status */
    bool has_reported;   /* how the start went */
    bool has_failed;     /* to start: there is no program */
    pid_t program;       /* 0: not known */
    char started[SWEEP_START_SIZE];
    const char *marker;
};

void fd_close(int *fd); /* and -1 from then on; may be that already */

#define KEEPER_NONE ((struct keeper){ .control = -1, .report = -1 })

/* 0, or errno; call keeper_end() in either case. */
int keeper_begin(struct keeper *keeper, const struct launch *launch);
/* To be called once: the errno of a failed start, 0 if the program runs or may run. */
int keeper_started(struct keeper *keeper);
void keeper_stop(const struct keeper *keeper); /* from any thread, before keeper_end() */
/* Resumes a keeper that its program has stopped. */
void keeper_resume(const struct keeper *keeper);
/* Returns within seconds, also if the program has killed or stopped its keeper. Everything that the
 * program started has then ended, except what sweep.h cannot find. False: its exit status is
 * unknown. */
bool keeper_end(struct keeper *keeper, int *status);

#endif
