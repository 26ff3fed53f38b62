/* keeper.c - a small process between us and a program: it starts the program, and ends everything
 * that the program started.
 *
 * A process leaves its process group with one call (setsid), and a process that loses its parent is
 * given to init, out of our reach. So the keeper becomes a subreaper first: orphans of the
 * program's descendants become its own children, however often they fork and in any session. It
 * ends them all when the program has ended, on request, and when the host has died. It is a fork of
 * a process with many threads: it allocates nothing, takes no lock, and only makes system calls.
 *
 * The program runs as the same user, so it can kill or stop the keeper. The host therefore waits
 * for a keeper only for a limited time, resumes one that was stopped, and ends what a lost one
 * leaves (sweep.c). */
#include "tool/tool_int.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define FDS_MAX 1024 /* closed one by one where the kernel cannot close a range */

#define SLICE_MS       20    /* how often a keeper that does not report is resumed */
#define START_LIMIT_MS 10000 /* to start a program, whose file may be far away */
#define END_LIMIT_MS   3000  /* to end everything; a process in the kernel may take longer */
#define SWEEPS_MAX     200   /* of a program that forks as fast as it is killed */
#define SWEEPS_CLEAN   5     /* a process within exec() shows no environment: look several times */
#define SWEEP_PAUSE_MS 10

struct report {
    int32_t number; /* first the errno of the start, then the exit status */
    int32_t program;
};

struct kept_process {
    int control, report, children; /* its pipes; a signalfd for children that ended */
    pid_t program;
    bool has_ended; /* the program, and its status */
    int status;
};

/* ---- In the keeper ---- */

static void close_between(int first, int last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    for (int fd = first; fd <= last && fd < FDS_MAX; fd++)
        (void)close(fd);
}

static void swap_if_wrong(int *a, int *b)
{
    int first = *a < *b ? *a : *b, second = *a < *b ? *b : *a;

    *a = first;
    *b = second;
}

/* Closes everything of the host: its sockets, and the file that says who owns a store. */
static void close_others(const struct kept_process *kept)
{
    int a = kept->control, b = kept->report, c = kept->children;

    swap_if_wrong(&a, &b);
    swap_if_wrong(&b, &c);
    swap_if_wrong(&a, &b);
    close_between(0, a - 1);
    close_between(a + 1, b - 1);
    close_between(b + 1, c - 1);
    close_between(c + 1, INT32_MAX);
}

static void write_report(const struct kept_process *kept, int number)
{
    struct report report = { number, kept->program };
    ssize_t written = write(kept->report, &report, sizeof report); /* SIGPIPE is blocked */

    (void)written; /* no reader: the host has died */
}

/* Reaps every ended child except the program: until that is reaped, its pid and group are not
 * reused. */
static bool program_has_ended(const struct kept_process *kept)
{
    for (;;) {
        siginfo_t info = { .si_pid = 0 };

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return false;
        if (info.si_pid == kept->program)
            return true;
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
}

/* Waits until the program has ended, or the host asks for the end or has died. */
static void watch(const struct kept_process *kept)
{
    struct pollfd doors[] = { { kept->control, POLLIN, 0 }, { kept->children, POLLIN, 0 } };
    struct signalfd_siginfo info;

    while (!program_has_ended(kept)) {
        if (poll(doors, 2, -1) > 0 && doors[0].revents)
            return;
        while (read(kept->children, &info, sizeof info) > 0)
            ;
    }
}

/* Kills the listed children that we may kill, and counts them; -1: the kernel does not list
 * them. */
static int kill_children(void)
{
    char list[4096];
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC), count = 0;
    ssize_t size = fd >= 0 ? read(fd, list, sizeof list) : -1;
    pid_t pid = 0;

    if (fd >= 0)
        (void)close(fd);
    for (ssize_t i = 0; i < size; i++) {
        if (list[i] >= '0' && list[i] <= '9') {
            pid = pid * 10 + (list[i] - '0');
            continue;
        }
        count += pid > 0 && kill(pid, SIGKILL) == 0;
        pid = 0;
    }
    return size < 0 ? -1 : count;
}

static void note_end(struct kept_process *kept, pid_t pid, int status)
{
    if (pid != kept->program)
        return;
    kept->has_ended = true;
    kept->status = status;
}

/* A process that dies leaves its children to us, so this repeats until none is left. A process that
 * we may not kill (it runs as another user) is not waited for. */
static void end_all(struct kept_process *kept)
{
    int status = 0;
    bool is_ours;
    pid_t pid;

    (void)kill(-kept->program, SIGKILL);
    is_ours = kill(kept->program, SIGKILL) == 0 || errno != EPERM;
    pid = waitpid(kept->program, &status, is_ours ? 0 : WNOHANG);
    note_end(kept, pid, status);
    while (kill_children() > 0 && (pid = waitpid(-1, &status, 0)) > 0)
        note_end(kept, pid, status);
}

static void start_keeping(struct kept_process *kept)
{
    sigset_t all;

    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* the program begins with none blocked */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, KEEPER_NAME, 0, 0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    kept->children = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

static _Noreturn void keep(const struct launch *launch, int control, int report)
{
    struct kept_process kept = { .control = control, .report = report };
    int number;

    start_keeping(&kept);
    number = posix_spawnp(&kept.program, launch->argv[0], launch->actions, launch->attributes,
                          launch->argv, launch->environment);
    close_others(&kept);
    write_report(&kept, number);
    if (number == 0) {
        watch(&kept);
        end_all(&kept);
        if (kept.has_ended)
            write_report(&kept, kept.status);
    }
    _exit(0);
}

/* ---- In the host ---- */

void fd_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

int keeper_begin(struct keeper *keeper, const struct launch *launch)
{
    int control[2] = { -1, -1 }, report[2] = { -1, -1 }, number = 0;

    *keeper = KEEPER_NONE;
    keeper->marker = launch->marker;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0 ||
        pipe2(report, O_CLOEXEC) != 0)
        number = errno;
    else if ((keeper->pid = fork()) == 0)
        keep(launch, control[0], report[1]);
    else if (keeper->pid < 0)
        number = errno;
    fd_close(&control[0]);
    fd_close(&report[1]);
    keeper->control = control[1];
    keeper->report = report[0];
    return number;
}

/* A keeper that has ended stays our child until keeper_end(), so its pid is its own. */
static bool is_alive(const struct keeper *keeper)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_PID, (id_t)keeper->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

static void send_signal(const struct keeper *keeper, int number)
{
    if (is_alive(keeper))
        (void)kill(keeper->pid, number);
}

void keeper_resume(const struct keeper *keeper)
{
    send_signal(keeper, SIGCONT);
}

/* False: it has died without a report, or the time is over. */
static bool read_report(const struct keeper *keeper, struct report *out, int limit_ms)
{
    struct pollfd door = { keeper->report, POLLIN, 0 };
    bool was_alive = true;

    for (int waited_ms = 0; poll(&door, 1, 0) <= 0 && was_alive && waited_ms < limit_ms;) {
        was_alive = is_alive(keeper); /* what it wrote before its end is read */
        keeper_resume(keeper);
        if (was_alive && poll(&door, 1, SLICE_MS) == 0)
            waited_ms += SLICE_MS;
    }
    return (door.revents & POLLIN) && read(keeper->report, out, sizeof *out) == sizeof *out;
}

int keeper_started(struct keeper *keeper)
{
    struct report report;

    keeper->has_reported = read_report(keeper, &report, START_LIMIT_MS);
    if (!keeper->has_reported)
        return 0; /* the program may run, and may have killed its keeper */
    sweep_start_of(report.program, keeper->started);
    keeper->program = keeper->started[0] != '\0' ? report.program : 0;
    keeper->has_failed = report.number != 0;
    return report.number;
}

void keeper_stop(const struct keeper *keeper)
{
    ssize_t sent = send(keeper->control, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);

    (void)sent; /* it has ended already, or was asked before */
}

static void sweep(const struct keeper *keeper)
{
    struct sweep what = { keeper->pid, keeper->program, keeper->started, keeper->marker };
    int clean = 0;

    for (int i = 0; i < SWEEPS_MAX && clean < SWEEPS_CLEAN; i++) {
        clean = sweep_once(&what) > 0 ? 0 : clean + 1;
        (void)poll(NULL, 0, SWEEP_PAUSE_MS);
    }
}

/* While a keeper lives, all that its program began is below it: a sweep before its end finds
 * more. */
static void end_keeper(const struct keeper *keeper, bool is_lost)
{
    if (is_lost && is_alive(keeper))
        sweep(keeper);
    send_signal(keeper, SIGKILL);
    while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (is_lost)
        sweep(keeper);
}

bool keeper_end(struct keeper *keeper, int *status)
{
    struct report report = { 0, 0 };
    bool is_known = false;

    if (keeper->pid > 0) {
        keeper_stop(keeper);
        is_known = (keeper->has_reported || read_report(keeper, &report, END_LIMIT_MS)) &&
                   read_report(keeper, &report, END_LIMIT_MS);
        end_keeper(keeper, !is_known && !keeper->has_failed);
    }
    *status = report.number;
    fd_close(&keeper->control);
    fd_close(&keeper->report);
    keeper->pid = 0;
    return is_known;
}
