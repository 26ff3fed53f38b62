/* process.c - the processes in which a module's code runs: begun, asked, ended, and what each still
 * has of the instances it took turns of. */
#include "module/module_int.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD_MS      30000 /* until a module has said what it has */
#define TAKE_BEST_MS 5
#define BUSY_MS      50
#define BEGINS_MS    500
#define TAKE_ONE_MS  50 /* a child that is busy for longer is not waited for */

extern char **environ;

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void process_end(struct child_process *child, char words[64])
{
    int how = 0;

    words[0] = '\0';
    close_fd(&child->in);
    close_fd(&child->out);
    if (child->pid == 0)
        return;
    /* A child that ended by itself is distinguished from one that we end. A moment is enough: its
     * pipe is closed. */
    (void)kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(how) && WTERMSIG(how) != SIGKILL)
        (void)snprintf(words, 64, "signal %d", WTERMSIG(how));
    else if (WIFEXITED(how))
        (void)snprintf(words, 64, "exit status %d", WEXITSTATUS(how));
    child->pid = 0;
    child->held_from = child->numbers + 1;
}

/* Out of the way of 0 and 1, which a host may have closed. */
static bool make_pipe(int pipe_fds[2])
{
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        int raised = fcntl(pipe_fds[i], F_DUPFD_CLOEXEC, 3);

        (void)close(pipe_fds[i]);
        pipe_fds[i] = raised;
    }
    return pipe_fds[0] >= 0 && pipe_fds[1] >= 0;
}

/* Ours, and the version of the protocol: by it a program knows that it was begun to take turns, and
 * not by hand or by a test. NULL: no memory. */
static char **environment(struct scope *scope)
{
    char **named, protocol[32];
    uint32_t count = 0;

    while (environ && environ[count])
        count++;
    named = ARENA_ARRAY(&scope->arena, char *, count + 2);
    if (!named)
        return NULL;
    (void)snprintf(protocol, sizeof protocol, "PAWL_TURN_PROTOCOL=%d", TURN_PROTOCOL);
    named[0] = arena_text(&scope->arena, str_of(protocol));
    for (uint32_t i = 0; i < count; i++)
        named[i + 1] = environ[i];
    named[count + 1] = NULL;
    return named[0] ? named : NULL;
}

/* A group of its own, and none of the signals that we hold back. */
static int spawn(const struct module *module, struct child_process *child, char **named, int in,
                 int out)
{
    char *host[] = { module->program, (char *)(uintptr_t) "--module-host", module->path, NULL };
    char **argv = module->command ? module->command : host;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int failed;

    sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (!module->command) /* the last */
        (void)posix_spawn_file_actions_adddup2(&actions, module->image.fd, IMAGE_FD);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    failed = posix_spawnp(&child->pid, argv[0], &actions, &attributes, argv, named);
    if (failed)
        child->pid = 0;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static pawl_status fail_start(const struct module *module, struct scope *scope, int number)
{
    char words[128];

    return scope_fail(scope, PAWL_NOT_KNOWN, "module '%s': no process for it: %s", module->path,
                      strerror_r(number, words, sizeof words));
}

/* What a program that ends while it loads may lack. An older Node refuses an option in its own
 * words. */
static const char *loading_hint(const struct module *module)
{
    str path = str_of(module->path);

    if (!module->command)
        return "";
    if (path.size > 3 && str_eq(str_from(path, path.size - 3), STR(".ts")))
        return "; a .ts file needs Node 22.6 or newer, and has to call workflow()";
    return "; it has to speak the protocol of docs/turn-protocol.md, "
           "as the clients for Python and Node do";
}

pawl_status process_begin(const struct module *module, struct child_process *child,
                          struct scope *scope, str *hello)
{
    int request[2] = { -1, -1 }, answer[2] = { -1, -1 }, failed;
    char words[64], **named = environment(scope);
    enum frame_end end;

    TRY_MEMORY(scope, named);
    failed = make_pipe(request) && make_pipe(answer)
                 ? spawn(module, child, named, request[0], answer[1])
                 : errno;
    close_fd(&request[0]);
    close_fd(&answer[1]);
    child->in = answer[0];
    child->out = request[1];
    child->cpu = -1;
    (void)fcntl(child->out, F_SETFL, O_NONBLOCK); /* frame_write() waits for slow readers */
    if (failed) {
        process_end(child, words);
        return fail_start(module, scope, failed);
    }
    end = frame_read(child->in, LOAD_MS, scope, hello);
    if (end == FRAME_OK)
        return PAWL_OK;
    process_end(child, words);
    return scope_fail(scope, PAWL_NOT_KNOWN, "module '%s' ended its process while loading (%s)%s",
                      module->path, end == FRAME_LATE ? "it did not come back" : words,
                      loading_hint(module));
}

/* ---- What it says first ---------------------------------------------------------------------- */

pawl_status hello_read(struct scope *scope, const char *path, str hello, struct node **out)
{
    const struct node *error, *types;
    int64_t protocol = 0;

    if (node_read_json(scope, hello, out) != PAWL_OK || (*out)->kind != NODE_OBJECT)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "module '%s': its first frame is not a JSON object; see "
                          "docs/turn-protocol.md",
                          path);
    error = node_find(*out, "error");
    if (error)
        return scope_fail(scope, PAWL_NOT_KNOWN, "%.*s", STR_ARG(error->text));
    if (!node_find(*out, "pawl") || !node_to_i64(node_find(*out, "pawl"), &protocol) ||
        protocol != TURN_PROTOCOL)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "module '%s' speaks version %lld of the turn protocol, and this program "
                          "version %d; use a client of this release",
                          path, (long long)protocol, TURN_PROTOCOL);
    types = node_find(*out, "types");
    if (!types || types->kind != NODE_ARRAY)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "module '%s': its first frame has no list 'types'; see "
                          "docs/turn-protocol.md",
                          path);
    return PAWL_OK;
}

/* Every process of one load runs the same build: a shared object's bytes are ours, and of a command
 * the process says which it is. */
static pawl_status check_build(const struct module *module, const struct node *hello,
                               struct scope *scope)
{
    str build = node_text(hello, "build");

    if (!module->command || !module->digest[0] || str_is(build, module->digest))
        return PAWL_OK;
    return scope_fail(
        scope, PAWL_NOT_KNOWN,
        "module '%s' has changed since it was loaded; load it again (kill -HUP of the "
        "server), or put the old files back",
        module->path);
}

pawl_status process_need(const struct module *module, struct child_process *child,
                         struct scope *scope)
{
    struct node *root = NULL;
    char words[64];
    pawl_status status;
    str hello;

    if (child->pid)
        return PAWL_OK;
    TRY(process_begin(module, child, scope, &hello));
    status = hello_read(scope, module->path, hello, &root);
    if (status == PAWL_OK)
        status = check_build(module, root, scope);
    if (status != PAWL_OK)
        process_end(child, words);
    return status;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* On the processor of the thread that asks, which does nothing while it waits: to wake a process on
 * another one takes longer than the turn. */
static void come_near(struct child_process *child)
{
    int cpu = sched_getcpu();
    cpu_set_t here;

    if (cpu < 0 || cpu == child->cpu)
        return;
    CPU_ZERO(&here);
    CPU_SET(cpu, &here);
    if (sched_setaffinity(child->pid, sizeof here, &here) == 0)
        child->cpu = cpu;
}

enum frame_end process_ask(const struct module *module, struct child_process *child, int wait_ms,
                           struct scope *scope, const struct buf *request, str *out)
{
    enum frame_end end;

    if (module->is_near)
        come_near(child);
    end = frame_write(child->out, wait_ms, request);
    return end == FRAME_OK ? frame_read(child->in, wait_ms, scope, out) : end;
}

/* False: nothing was freed until then, by the tick. */
static bool wait_until(struct module *module, int64_t until_ms)
{
    struct timespec at = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };

    return pthread_cond_timedwait(&module->freed, &module->lock, &at) != ETIMEDOUT;
}

/* How long to wait for one of them before another process is begun: one that works is free in a
 * moment, or does not come back; one that begins is nearly there. */
static long patience_ms(const struct child_process *children, uint32_t count)
{
    long found = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (children[i].is_busy && found == 0)
            found = BUSY_MS;
        if (children[i].is_busy && !children[i].is_begun)
            found = BEGINS_MS;
    }
    return found;
}

static struct child_process *any_idle(struct child_process *children, uint32_t count, bool lives)
{
    for (uint32_t i = 0; i < count; i++)
        if (!children[i].is_busy && (!lives || children[i].pid))
            return &children[i];
    return NULL;
}

/* The one that has the instance in memory; of turns else the first, so that few have them all. */
static struct child_process *best(struct child_process *children, uint32_t count, uint64_t key)
{
    for (uint32_t i = 0; key && i < count; i++)
        if (held_find(&children[i], key))
            return &children[i];
    return key ? &children[0] : NULL;
}

/* One that is busy for longer than a moment is not waited for. */
static struct child_process *choose(struct child_process *children, uint32_t count, uint64_t key,
                                    bool is_late, bool is_over)
{
    struct child_process *found = best(children, count, key);

    if (found && !found->is_busy && (found->pid || is_over || key))
        return found;
    if (found && !is_late)
        return NULL;
    found = any_idle(children, count, true);
    return found || !(is_over || patience_ms(children, count) == 0)
               ? found
               : any_idle(children, count, false);
}

struct child_process *process_take(struct module *module, struct child_process *children,
                                   uint32_t count, uint64_t key)
{
    int64_t now = module->env->tick_ms(module->env), soon = now + TAKE_BEST_MS, until;
    bool is_late = false, is_over = false;
    struct child_process *found;

    pthread_mutex_lock(&module->lock);
    until = now + patience_ms(children, count);
    while (!(found = choose(children, count, key, is_late, is_over))) {
        if (is_over)
            pthread_cond_wait(&module->freed, &module->lock);
        else if (!wait_until(module, is_late ? until : soon)) {
            is_over = is_late;
            is_late = true;
        }
    }
    found->is_busy = true;
    pthread_mutex_unlock(&module->lock);
    return found;
}

/* A turn that does not come back keeps its child: others do not wait for that. */
struct child_process *process_take_one(struct module *module, struct child_process *child)
{
    int64_t until = module->env->tick_ms(module->env) + TAKE_ONE_MS;

    pthread_mutex_lock(&module->lock);
    while (child->is_busy && wait_until(module, until))
        continue;
    for (uint32_t i = 0; child->is_busy && i < CHILDREN; i++)
        if (!module->children[i].is_busy)
            child = &module->children[i];
    if (child->is_busy)
        child = NULL;
    else
        child->is_busy = true;
    pthread_mutex_unlock(&module->lock);
    return child;
}

void process_give_back(struct module *module, struct child_process *child)
{
    char words[64];

    pthread_mutex_lock(&module->lock);
    child->is_busy = false;
    if (module->is_retired)
        process_end(child, words);
    child->is_begun = child->pid != 0;
    pthread_cond_broadcast(&module->freed); /* some wait for a caller, some for a taker of turns */
    pthread_mutex_unlock(&module->lock);
}

/* ---- What a child still has ------------------------------------------------------------------ */

/* 0 stands for none. */
uint64_t held_key(uint64_t mark, str id)
{
    uint64_t key = journal_chain(mark, id);

    return key ? key : 1;
}

uint64_t held_find(const struct child_process *child, uint64_t key)
{
    const struct held *row = child->held ? &child->held[key % HELD_ROWS] : NULL;

    return row && row->key == key && row->number >= child->held_from ? row->number : 0;
}

/* Without memory for the table each request carries the whole state. */
void held_put(const struct heap *heap, struct child_process *child, uint64_t key, uint64_t number)
{
    if (!child->held)
        child->held = heap_new(heap, sizeof *child->held * HELD_ROWS);
    if (child->held)
        child->held[key % HELD_ROWS] = (struct held){ key, number };
}

void held_free(const struct heap *heap, struct child_process *child)
{
    if (child->held)
        heap_free(heap, child->held, sizeof *child->held * HELD_ROWS);
    child->held = NULL;
}
