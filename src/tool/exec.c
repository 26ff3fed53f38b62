/* exec.c - run a program as a tool: argv without a shell, a value on stdin, a result on stdout.
 *
 * It runs under a keeper (keeper.c), and every process that it started ends with it: when it exits,
 * when its time is over, when its output is too long, and when we die. It has its own variables. */
#include "base/limits.h"
#include "base/time.h"
#include "model/words.h"
#include "tool/exec_int.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAIL_SIZE   1024 /* of stderr, for the error's words */
#define SLICE_MS    10   /* how often to look, where the kernel cannot tell of an exit */
#define LOOK_MS     500  /* how often to look at a keeper, which its program may have stopped */

enum ending { ENDED_ITSELF, ENDED_BY_TIME, ENDED_BY_SIZE };

struct program {
    struct call *call;
    struct exec_order order;
    char **environment;
    const char *marker; /* NULL: none */
    int input, output, errors; /* ours; -1: closed */
    int theirs[2];             /* where its stdout and stderr go */
    int exit_fd;               /* readable when it has ended; -1: there is no such thing */
    struct running running;
    struct buf said;          /* on stdout */
    char tail[2 * TAIL_SIZE]; /* the end of what it said on stderr */
    size_t tail_size;
    int64_t begun_ms, waited_ms;
    enum ending ending;
};

/* ---- Descriptors ---------------------------------------------------------------------- */

static bool fail_errno(struct program *program, const char *what, int number)
{
    char words[128];

    call_fail(program->call, "exec '%.*s': %s: %s", STR_ARG(words_shown(str_of(program->order.argv[0]))),
              what, strerror_r(number, words, sizeof words));
    return false;
}

static bool write_all(int fd, str text)
{
    while (text.size > 0) {
        ssize_t size = write(fd, text.data, text.size);

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        text = str_from(text, (size_t)size);
    }
    return lseek(fd, 0, SEEK_SET) == 0;
}

/* A file in memory, not a pipe: a program that never reads it cannot hold us up. */
static bool open_input(struct program *program)
{
    program->input = launch_raise(memfd_create("pawl-input", MFD_CLOEXEC));
    if (program->input < 0)
        return fail_errno(program, "no file for its input", errno);
    return write_all(program->input, program->order.input) ||
           fail_errno(program, "cannot write its input", errno);
}

static bool open_pipe(struct program *program, int *ours, int *theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail_errno(program, "no pipe for its output", errno);
    *ours = launch_raise(ends[0]);
    *theirs = launch_raise(ends[1]);
    if (*ours < 0 || *theirs < 0 || fcntl(*ours, F_SETFL, O_NONBLOCK) != 0)
        return fail_errno(program, "no pipe for its output", errno);
    return true;
}

static void close_all(struct program *program)
{
    fd_close(&program->input);
    fd_close(&program->output);
    fd_close(&program->errors);
    fd_close(&program->theirs[0]);
    fd_close(&program->theirs[1]);
    fd_close(&program->exit_fd);
}

/* ---- Starting --------------------------------------------------------------------------- */

/* Started and entered in one step, so that toolbox_kill_all() and
 * toolbox_stop() miss none. */
static int spawn(struct program *program, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes)
{
    struct launch launch = { program->order.argv, program->environment, actions, attributes,
                             program->marker };
    struct toolbox *toolbox = program->call->toolbox;
    int number;

    pthread_mutex_lock(&toolbox->lock);
    number = keeper_begin(&program->running.keeper, &launch);
    program->running.stop = program->call->stop;
    program->running.next = toolbox->running;
    toolbox->running = &program->running;
    if (program->running.stop && program->running.stop->is_asked)
        keeper_stop(&program->running.keeper);
    pthread_mutex_unlock(&toolbox->lock);
    return number ? number : keeper_started(&program->running.keeper);
}

static bool start(struct program *program)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int number;

    number = posix_spawn_file_actions_init(&actions);
    if (number != 0)
        return fail_errno(program, "could not be started", number);
    number = posix_spawnattr_init(&attributes);
    if (number == 0) {
        const int fds[3] = { program->input, program->theirs[0], program->theirs[1] };

        number = launch_actions(&actions, fds, program->order.cwd);
        if (number == 0)
            number = launch_attributes(&attributes);
        if (number == 0)
            number = spawn(program, &actions, &attributes);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    fd_close(&program->input);
    fd_close(&program->theirs[0]);
    fd_close(&program->theirs[1]);
    if (number != 0)
        return fail_errno(program, "could not be started", number);
    program->exit_fd = (int)syscall(SYS_pidfd_open, program->running.keeper.pid, 0);
    return true;
}

/* ---- Listening ---------------------------------------------------------------------------- */

static void add_said(struct program *program, const char *data, size_t size)
{
    if (program->said.size + size > LIMIT_EXEC_OUTPUT)
        program->ending = ENDED_BY_SIZE;
    else
        buf_add(&program->said, data, size);
}

static void add_tail(struct program *program, const char *data, size_t size)
{
    if (size > TAIL_SIZE) {
        data += size - TAIL_SIZE;
        size = TAIL_SIZE;
    }
    if (program->tail_size + size > sizeof program->tail) {
        program->tail_size -= TAIL_SIZE; /* full means more than TAIL_SIZE: keep its end */
        memmove(program->tail, program->tail + TAIL_SIZE, program->tail_size);
    }
    memcpy(program->tail + program->tail_size, data, size);
    program->tail_size += size;
}

/* Read what is there, at most `size_max`: a program may write faster than we read. */
static void listen_to(struct program *program, int *fd, size_t size_max)
{
    char data[16384];
    ssize_t size = 1;

    for (size_t total = 0; *fd >= 0 && total < size_max && size > 0; total += (size_t)size) {
        size = read(*fd, data, sizeof data);
        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (size <= 0)
            fd_close(fd);
        else if (fd == &program->output)
            add_said(program, data, (size_t)size);
        else
            add_tail(program, data, (size_t)size);
        if (program->ending != ENDED_ITSELF)
            return;
    }
}

/* It has ended with everything it started, but its keeper is not reaped: the pid stays taken until
 * reap(). */
static bool has_ended(const struct program *program)
{
    siginfo_t info = { .si_pid = 0 };

    if (waitid(P_PID, (id_t)program->running.keeper.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return errno != EINTR;
    return info.si_pid != 0;
}

/* How long poll() may wait: 0 the time is over. A simulated clock may stand still, so the time
 * spent waiting counts as well. */
static int time_left(const struct program *program)
{
    const struct call *call = program->call;
    struct env *env = call->toolbox->options.env;
    int64_t spent, left, slice = program->exit_fd >= 0 ? LOOK_MS : SLICE_MS;

    if (call->timeout_ms <= 0)
        return (int)slice;
    spent = env->tick_ms(env) - program->begun_ms;
    spent = spent > program->waited_ms ? spent : program->waited_ms;
    left = call->timeout_ms > spent ? call->timeout_ms - spent : 0;
    return (int)(left < slice ? left : slice);
}

static void look(struct program *program, int left_ms)
{
    struct pollfd fds[] = { { program->output, POLLIN, 0 },
                            { program->errors, POLLIN, 0 },
                            { program->exit_fd, POLLIN, 0 } };

    if (poll(fds, sizeof fds / sizeof fds[0], left_ms) == 0) {
        program->waited_ms += left_ms;
        keeper_resume(&program->running.keeper);
    }
    listen_to(program, &program->output, LIMIT_EXEC_OUTPUT);
    listen_to(program, &program->errors, LIMIT_EXEC_OUTPUT);
}

/* A box or a call that is asked to stop does not rely on the keeper's end: the program may keep it
 * from ending. */
static void watch(struct program *program)
{
    while (program->ending == ENDED_ITSELF && !has_ended(program) &&
           !call_is_stopping(program->call)) {
        int left_ms = time_left(program);

        if (left_ms == 0)
            program->ending = ENDED_BY_TIME;
        else
            look(program, left_ms);
    }
}

/* ---- Ending -------------------------------------------------------------------------------- */

/* A program that ended by itself as it was to be ended has answered. */
static bool is_cut(const struct program *program, bool is_known, int status)
{
    const struct tool_stop *stop = program->call->stop;

    return stop && stop->is_asked && program->ending == ENDED_ITSELF &&
           (!is_known || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

/* Its exit status; false: unknown. After this nothing that it started is left. */
static bool reap(struct program *program, int *status)
{
    struct toolbox *toolbox = program->call->toolbox;
    struct running **link = &toolbox->running;
    bool is_known;

    pthread_mutex_lock(&toolbox->lock);
    while (*link && *link != &program->running)
        link = &(*link)->next;
    if (*link)
        *link = program->running.next;
    pthread_mutex_unlock(&toolbox->lock);
    is_known = keeper_end(&program->running.keeper, status);
    listen_to(program, &program->output, LIMIT_EXEC_OUTPUT);
    listen_to(program, &program->errors, LIMIT_EXEC_OUTPUT);
    return is_known;
}

static void fail_ended(struct program *program, int status)
{
    str name = words_shown(str_of(program->order.argv[0]));
    str tail = { program->tail, program->tail_size };
    bool by_signal = WIFSIGNALED(status);

    while (tail.size > 0 && memchr(" \t\r\n", tail.data[tail.size - 1], 4))
        tail.size--;
    if (tail.size > TAIL_SIZE)
        tail = str_from(tail, tail.size - TAIL_SIZE);
    call_fail(program->call, "exec '%.*s' ended %s %d%s%.*s", STR_ARG(name),
              by_signal ? "by signal" : "with status",
              by_signal ? WTERMSIG(status) : WEXITSTATUS(status), tail.size > 0 ? "; stderr: " : "",
              STR_ARG(tail));
}

static void answer(struct program *program, bool is_known, int status)
{
    str name = words_shown(str_of(program->order.argv[0]));
    char limit[TIME_TEXT_SIZE];

    if (program->ending == ENDED_BY_TIME) {
        duration_print(program->call->timeout_ms, limit);
        call_fail(program->call, "timeout: exec '%.*s' took longer than %s and was killed",
                  STR_ARG(name), limit);
        program->call->result.is_late = true;
    } else if (program->ending == ENDED_BY_SIZE) {
        call_fail(program->call, "exec '%.*s' printed more than %u bytes and was killed",
                  STR_ARG(name), LIMIT_EXEC_OUTPUT);
    } else if (program->said.failed) {
        call_no_memory(program->call);
    } else if (!is_known) {
        call_fail(program->call,
                  "exec '%.*s': its exit status is unknown; its keeper was killed, "
                  "or it runs as another user and could not be",
                  STR_ARG(name));
    } else if (status != 0) {
        fail_ended(program, status);
    } else {
        exec_output_read(program->call, program->order.as, buf_view(&program->said));
    }
}

static bool open_all(struct program *program)
{
    return open_input(program) && open_pipe(program, &program->output, &program->theirs[0]) &&
           open_pipe(program, &program->errors, &program->theirs[1]);
}

void exec_run(struct call *call)
{
    struct env *env = call->toolbox->options.env;
    struct program program = {
        .call = call, .input = -1, .output = -1, .errors = -1, .theirs = { -1, -1 }, .exit_fd = -1
    };
    int status;

    if (!call->toolbox->options.allow_exec) {
        call_refuse(call, "exec is off; 'pawl run' has it on, pawl.yaml turns it on with tools: "
                          "{exec: true}, a host opens its store with allow_exec");
        return;
    }
    if (!exec_order_read(call, &program.order))
        return;
    program.environment = environment_make(call, program.order.variables, &program.marker);
    if (!program.environment) {
        call_no_memory(call);
        return;
    }
    buf_init(&program.said, call->scope->arena.heap, LIMIT_EXEC_OUTPUT);
    program.begun_ms = env->tick_ms(env);
    program.running.keeper = KEEPER_NONE;
    if (open_all(&program) && start(&program)) {
        bool is_known;

        watch(&program);
        is_known = reap(&program, &status);
        answer(&program, is_known, status);
        call->result.is_cut = is_cut(&program, is_known, status);
    }
    (void)reap(&program, &status); /* it could not be started */
    close_all(&program);
    buf_fini(&program.said);
}
