/* sweep.c - the second line of defence: ends what a program began when its keeper cannot.
 *
 * A program may kill or stop its keeper, since both run as one user. What it began is then found in
 * /proc: the descendants of the keeper and of the program, the program's process group, and
 * processes with the step's key in their environment, which they inherit in any session. A process
 * under a keeper of its own belongs to another step, or to a later attempt. A pid and its start
 * time name one process for good, so no other process is ever signalled. */
#include "tool/sweep.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOUND_MAX 512 /* in one look */
#define DEPTH_MAX 256 /* of a process below init */

struct process {
    pid_t pid, parent, group;
    char state, name[16], started[SWEEP_START_SIZE];
};

static int open_proc(pid_t pid, const char *file)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* "PID (NAME) STATE PARENT GROUP ..." with the start time as field 22; a name may hold anything. */
static bool parse_stat(char *text, struct process *out)
{
    const char *name = strchr(text, '('), *rest = strrchr(text, ')');
    int parent, group;

    if (!name || !rest)
        return false;
    (void)snprintf(out->name, sizeof out->name, "%.*s", (int)(rest - name - 1), name + 1);
    if (sscanf(rest,
               ") %c %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %23s",
               &out->state, &parent, &group, out->started) != 4)
        return false;
    out->parent = parent;
    out->group = group;
    return true;
}

static bool read_process(pid_t pid, struct process *out)
{
    char text[1024];
    int fd = open_proc(pid, "stat");
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

    *out = (struct process){ .pid = pid };
    if (fd >= 0)
        (void)close(fd);
    if (size <= 0)
        return false;
    text[size] = '\0';
    return parse_stat(text, out);
}

void sweep_start_of(pid_t pid, char started[SWEEP_START_SIZE])
{
    struct process process;

    started[0] = '\0';
    if (read_process(pid, &process))
        memcpy(started, process.started, SWEEP_START_SIZE);
}

/* ---- Which are the program's -------------------------------------------------------- */

struct match { /* of one text in a list of texts that end with NUL */
    const char *wanted;
    size_t size, matched;
    bool differs;
};

static bool match_byte(struct match *match, char byte)
{
    if (byte == '\0') {
        bool is_same = !match->differs && match->matched == match->size;

        match->matched = 0;
        match->differs = false;
        return is_same;
    }
    if (match->matched < match->size && match->wanted[match->matched] == byte)
        match->matched++;
    else
        match->differs = true;
    return false;
}

static bool has_marker(pid_t pid, const char *marker)
{
    struct match match = { .wanted = marker, .size = marker ? strlen(marker) : 0 };
    int fd = marker ? open_proc(pid, "environ") : -1;
    char data[4096];
    ssize_t size;
    bool is_found = false;

    while (fd >= 0 && !is_found && (size = read(fd, data, sizeof data)) > 0)
        for (ssize_t i = 0; i < size && !is_found; i++)
            is_found = match_byte(&match, data[i]);
    if (fd >= 0)
        (void)close(fd);
    return is_found;
}

/* The group keeps the program's pid as its number until its last process has ended. */
static bool is_in_group(const struct sweep *sweep, const struct process *process)
{
    char started[SWEEP_START_SIZE];

    if (sweep->program <= 0 || process->group != sweep->program)
        return false;
    sweep_start_of(sweep->program, started);
    return started[0] == '\0' || strcmp(started, sweep->started) == 0;
}

/* Looks at the process and at those above it. */
static bool belongs(const struct sweep *sweep, struct process process)
{
    bool is_part = false, is_program;

    for (int depth = 0; depth < DEPTH_MAX && process.pid > 1 && process.pid != getpid(); depth++) {
        is_program = process.pid == sweep->program && strcmp(process.started, sweep->started) == 0;
        if (process.pid == sweep->keeper)
            return depth > 0;
        if (strcmp(process.name, KEEPER_NAME) == 0)
            return false;
        is_part = is_part || is_program || is_in_group(sweep, &process) ||
                  has_marker(process.pid, sweep->marker);
        if (!read_process(process.parent, &process))
            break;
    }
    return is_part;
}

/* ---- Finding and ending them ---------------------------------------------------------- */

/* All are found before the first is killed: a process that loses its parent loses its place. */
static int find(const struct sweep *sweep, struct process *found)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    int count = 0;

    while (folder && count < FOUND_MAX && (entry = readdir(folder))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && pid != getpid() && read_process(pid, &found[count]) &&
            found[count].state != 'Z' && belongs(sweep, found[count]))
            count++;
    }
    if (folder)
        (void)closedir(folder);
    return count;
}

/* Kernels before 5.3 have no descriptor of a process: there a pid is taken at its word. */
static bool kill_process(const struct process *process)
{
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    bool is_old = fd < 0 && errno == ENOSYS, is_sent = false;
    char started[SWEEP_START_SIZE];

    sweep_start_of(process->pid, started);
    if (strcmp(started, process->started) == 0)
        is_sent = is_old ? kill(process->pid, SIGKILL) == 0
                         : fd >= 0 && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
    if (fd >= 0)
        (void)close(fd);
    return is_sent;
}

int sweep_once(const struct sweep *sweep)
{
    struct process found[FOUND_MAX];
    int count = find(sweep, found), killed = 0;

    for (int i = 0; i < count; i++)
        killed += kill_process(&found[i]);
    return killed;
}
