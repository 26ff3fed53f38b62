/* module.c - a module as its server sees it: children to ask, to end, and to begin again.
 *
 * One child takes one turn at a time; another is begun when all that live are busy, up to CHILDREN.
 */
#include "module/module.h"
#include "module/module_int.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURN_MS  5000  /* a turn that takes longer does not come back */
#define LOAD_MS  30000 /* until a module has said what it has */
#define TRIES    2     /* of one turn that ends its process */
#define CHILDREN 4u    /* turns at once */

extern char **environ;

struct child_process {
    pid_t pid; /* 0: none */
    int in, out;
    int cpu; /* where it has to run; -1: anywhere */
    bool is_busy; /* the thread that set it uses the child */
};

struct module {
    const struct heap *heap;
    pthread_mutex_t lock; /* of the children's is_busy, and of a pid whose child is not */
    pthread_cond_t freed; /* one of them is no longer busy */
    bool is_retired;      /* a newer build takes the turns: none of the children stays */
    struct scope kept;    /* paths, types */
    char *program, *path;
    struct image image;
    char digest[2 * SHA_SIZE + 1];
    void (*report)(void *context, const char *words);
    void *context;
    struct child_process children[CHILDREN];
    int turn_ms;
    bool is_near;
    struct ahead ahead; /* is_near; under the lock */
    struct module_type *types;
    uint32_t type_count;
};

/* ---- The child ------------------------------------------------------------------------ */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* How it ended, in words; it is killed if it lives. */
static void end_child(struct child_process *child, char words[64])
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

/* A group of its own, and none of the signals that we hold back. */
static int spawn(const struct module *module, struct child_process *child, int in, int out)
{
    char *argv[] = { module->program, (char *)(uintptr_t) "--module-host", module->path, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int failed;

    sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, module->image.fd, IMAGE_FD); /* the last */
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    failed = posix_spawn(&child->pid, module->program, &actions, &attributes, argv, environ);
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

/* Begin a child and hear its first words: the frame lives in the scope. */
static pawl_status begin_child(const struct module *module, struct child_process *child,
                               struct scope *scope, str *hello)
{
    int request[2] = { -1, -1 }, answer[2] = { -1, -1 }, failed;
    char words[64];
    enum frame_end end;

    failed = make_pipe(request) && make_pipe(answer) ? spawn(module, child, request[0], answer[1])
                                                     : errno;
    close_fd(&request[0]);
    close_fd(&answer[1]);
    child->in = answer[0];
    child->out = request[1];
    child->cpu = -1;
    (void)fcntl(child->out, F_SETFL, O_NONBLOCK); /* frame_write() waits for slow readers */
    if (failed) {
        end_child(child, words);
        return fail_start(module, scope, failed);
    }
    end = frame_read(child->in, LOAD_MS, scope, hello);
    if (end == FRAME_OK)
        return PAWL_OK;
    end_child(child, words);
    return scope_fail(scope, PAWL_NOT_KNOWN, "module '%s' ended its process while loading (%s)",
                      module->path, end == FRAME_LATE ? "it did not come back" : words);
}

static pawl_status check_hello(struct scope *scope, str hello, struct node **out)
{
    struct node *error, *root;

    TRY(node_read_json(scope, hello, &root));
    error = node_find(root, "error");
    *out = node_find(root, "types");
    return *out ? PAWL_OK
                : scope_fail(scope, PAWL_NOT_KNOWN, "%.*s",
                             STR_ARG(error ? error->text : STR("a module said nothing")));
}

/* ---- One turn ------------------------------------------------------------------------- */

static pawl_status need_child(const struct module *module, struct child_process *child, struct scope *scope)
{
    struct node *types;
    str hello;

    if (child->pid)
        return PAWL_OK;
    TRY(begin_child(module, child, scope, &hello));
    return check_hello(scope, hello, &types);
}

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

static enum frame_end ask(const struct module *module, struct child_process *child, struct scope *scope,
                          const struct buf *request, str *out)
{
    enum frame_end end;

    if (module->is_near)
        come_near(child);
    end = frame_write(child->out, module->turn_ms, request);
    return end == FRAME_OK ? frame_read(child->in, module->turn_ms, scope, out) : end;
}

static pawl_status ask_twice(const struct module *module, struct child_process *child,
                             const char *type, struct scope *scope, struct buf *request, str *out)
{
    char words[64] = "";

    for (int i = 0; i < TRIES; i++) {
        enum frame_end end;

        TRY(need_child(module, child, scope));
        end = ask(module, child, scope, request, out);
        if (end == FRAME_OK)
            return PAWL_OK;
        if (end == FRAME_NO_MEMORY)
            return scope_no_memory(scope);
        end_child(child, words);
        request->size = str_before(buf_view(request), '\0').size; /* no turn more than this one */
        if (end == FRAME_LATE)
            (void)snprintf(words, sizeof words, "no answer in %d ms", module->turn_ms);
    }
    return scope_fail(scope, PAWL_PAUSED,
                      "the code of '%s' ended its process twice on this event (%s); set the module "
                      "'%s' right, then resume",
                      type, words, module->path);
}

/* One that lives if there is one, else one to be begun; waits while all are busy. */
static struct child_process *take_child(struct module *module)
{
    struct child_process *found = NULL;

    pthread_mutex_lock(&module->lock);
    for (;;) {
        for (uint32_t i = 0; i < CHILDREN; i++) {
            struct child_process *child = &module->children[i];

            if (!child->is_busy && (!found || (child->pid && !found->pid)))
                found = child;
        }
        if (found)
            break;
        pthread_cond_wait(&module->freed, &module->lock);
    }
    found->is_busy = true;
    pthread_mutex_unlock(&module->lock);
    return found;
}

static void give_child_back(struct module *module, struct child_process *child, bool went_too_far)
{
    char words[64];

    pthread_mutex_lock(&module->lock);
    child->is_busy = false;
    module->ahead.is_off = module->ahead.is_off || went_too_far;
    if (module->is_retired)
        end_child(child, words);
    pthread_cond_signal(&module->freed);
    pthread_mutex_unlock(&module->lock);
}

static void cut_folders(const char *path, const char *words, char *out, size_t size)
{
    const char *name = image_file_name(path), *found;

    out[0] = '\0';
    while ((found = strstr(words, path))) {
        size_t used = strlen(out);

        (void)snprintf(out + used, size - used, "%.*s%s", (int)(found - words), words, name);
        words = found + strlen(path);
    }
    (void)snprintf(out + strlen(out), size - strlen(out), "%s", words);
}

/* The log gets the path. What callers read and what is recorded names the file alone. */
static void report(const struct module *module, struct scope *scope)
{
    char words[sizeof scope->error.message];

    memcpy(words, scope->error.message, sizeof words);
    module->report(module->context, words);
    cut_folders(module->path, words, scope->error.message, sizeof scope->error.message);
}

static pawl_status ask_child(struct module *module, const char *type, struct scope *scope,
                             struct buf *request, str *out)
{
    struct child_process *child = take_child(module);
    size_t size = request->size;
    pawl_status status = ask_twice(module, child, type, scope, request, out);

    give_child_back(module, child, request->size < size);
    if (status == PAWL_PAUSED || status == PAWL_NOT_KNOWN)
        report(module, scope);
    return status;
}

/* Is the turn taken already? Else the request says how many more are to be taken. */
static bool is_taken_ahead(struct module *module, const char *type, struct buf *request,
                           struct scope *scope, struct turn_answer *out)
{
    bool is_taken;

    pthread_mutex_lock(&module->lock);
    is_taken = ahead_take(&module->ahead, type, buf_view(request), scope, out);
    if (!is_taken && module->ahead.count > 0) {
        buf_byte(request, '\0');
        buf_u64(request, module->ahead.count);
    }
    pthread_mutex_unlock(&module->lock);
    return is_taken;
}

static pawl_status take_answer(struct module *module, const char *type, str answers,
                               struct scope *scope, struct turn_answer *out)
{
    str answer = STR_NONE;

    (void)str_take(&answers, '\0', &answer);
    TRY(wire_read_answer(scope, answer, out));
    if (!module->is_near)
        return PAWL_OK;
    pthread_mutex_lock(&module->lock);
    ahead_keep(&module->ahead, type, out, answers);
    pthread_mutex_unlock(&module->lock);
    return PAWL_OK;
}

static pawl_status run_turn(const struct code_binding *binding, const struct turn_request *request,
                            struct scope *scope, struct turn_answer *out)
{
    struct module *module = binding->context;
    const char *type = binding->type->name;
    pawl_status status = PAWL_OK;
    struct buf frame;
    str answers = STR_NONE;

    buf_init(&frame, module->heap, FRAME_MAX);
    wire_print_request(type, request, &frame);
    if (!module->is_near || !is_taken_ahead(module, type, &frame, scope, out)) {
        status = ask_child(module, type, scope, &frame, &answers);
        if (status == PAWL_OK)
            status = take_answer(module, type, answers, scope, out);
    }
    buf_fini(&frame);
    return status;
}

/* ---- Opening -------------------------------------------------------------------------- */

static const char *const *names_of(struct scope *scope, const struct node *source, const char *key)
{
    const struct node *list = node_find(source, key);
    const char **names = ARENA_ARRAY(&scope->arena, const char *, list ? list->count + 1u : 1u);
    uint32_t count = 0;

    for (const struct node *name = list ? list->first : NULL; name && names; name = name->next)
        names[count++] = name->text.data;
    return list ? (const char *const *)names : NULL;
}

static void elsewhere(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    (void)event;
    pawl_turn_fail(turn, "\"this handler is in another process\"");
}

static pawl_status read_type(struct module *module, const struct node *source,
                             struct module_type *out)
{
    pawl_code_type *type = ARENA_NEW(&module->kept.arena, pawl_code_type);
    const struct node *name = node_find(source, "code"), *version = node_find(source, "version");
    int64_t number = 1;

    TRY_MEMORY(&module->kept, type);
    if (version)
        (void)node_to_i64(version, &number);
    type->name = name ? name->text.data : NULL;
    type->version = (uint32_t)number;
    type->timers = names_of(&module->kept, source, "timers");
    type->signals = names_of(&module->kept, source, "signals");
    type->calls = names_of(&module->kept, source, "calls");
    type->externals = names_of(&module->kept, source, "externals");
    type->children = names_of(&module->kept, source, "children");
    type->buffered = names_of(&module->kept, source, "buffered");
    type->phases = names_of(&module->kept, source, "phases");
    type->handle = elsewhere;
    *out = (struct module_type){ { .type = type, .run = run_turn, .context = module, .source = source->raw } };
    return module->kept.arena.failed ? scope_no_memory(&module->kept) : PAWL_OK;
}

static pawl_status read_types(struct module *module)
{
    struct node *types = NULL;
    str hello;

    TRY(begin_child(module, &module->children[0], &module->kept, &hello));
    TRY(check_hello(&module->kept, hello, &types));
    module->types = ARENA_ARRAY(&module->kept.arena, struct module_type, types->count + 1u);
    TRY_MEMORY(&module->kept, module->types);
    for (const struct node *type = types->first; type; type = type->next)
        TRY(read_type(module, type, &module->types[module->type_count++]));
    return PAWL_OK;
}

static struct module *make_module(const struct heap *heap, const struct module_options *options)
{
    struct module *module = heap_new(heap, sizeof *module);

    if (!module)
        return NULL;
    *module = (struct module){ .heap = heap,
                               .turn_ms = options->turn_ms > 0 ? options->turn_ms : TURN_MS,
                               .is_near = options->is_near,
                               .report = options->report,
                               .context = options->context,
                               .image.fd = -1 };
    for (uint32_t i = 0; i < CHILDREN; i++)
        module->children[i] = (struct child_process){ .in = -1, .out = -1 };
    ahead_init(&module->ahead, heap);
    pthread_mutex_init(&module->lock, NULL);
    pthread_cond_init(&module->freed, NULL);
    scope_init(&module->kept, heap, LIMIT_SCOPE);
    module->program = arena_text(&module->kept.arena, str_of(options->program));
    module->path = arena_text(&module->kept.arena, str_of(options->path));
    return module;
}

pawl_status module_open(const struct heap *heap, const struct module_options *options,
                        struct scope *scope, struct module **out)
{
    struct module *module = make_module(heap, options);
    pawl_status status;

    TRY_MEMORY(scope, module);
    status = module->program && module->path
                 ? image_read(&module->kept, module->path, &module->image)
                 : scope_no_memory(&module->kept);
    sha_hex(module->image.sha, SHA_SIZE, module->digest);
    if (status == PAWL_OK)
        status = read_types(module);
    if (status == PAWL_OK) {
        *out = module;
        return PAWL_OK;
    }
    scope->error = module->kept.error;
    module_close(module);
    return status;
}

pawl_status module_open_again(const struct module *module, struct scope *scope, struct module **out)
{
    struct module_options options = { .program = module->program,
                                      .path = module->path,
                                      .turn_ms = module->turn_ms,
                                      .is_near = module->is_near,
                                      .report = module->report,
                                      .context = module->context };

    return module_open(module->heap, &options, scope, out);
}

void module_retire(struct module *module)
{
    char words[64];

    pthread_mutex_lock(&module->lock);
    module->is_retired = true;
    for (uint32_t i = 0; i < CHILDREN; i++)
        if (!module->children[i].is_busy)
            end_child(&module->children[i], words);
    pthread_mutex_unlock(&module->lock);
}

void module_close(struct module *module)
{
    const struct heap *heap;
    char words[64];

    if (!module)
        return;
    heap = module->heap;
    for (uint32_t i = 0; i < CHILDREN; i++)
        end_child(&module->children[i], words);
    image_close(&module->image);
    scope_fini(&module->kept);
    ahead_fini(&module->ahead);
    pthread_cond_destroy(&module->freed);
    pthread_mutex_destroy(&module->lock);
    heap_free(heap, module, sizeof *module);
}

uint32_t module_type_count(const struct module *module)
{
    return module->type_count;
}

const struct module_type *module_type_at(const struct module *module, uint32_t index)
{
    return &module->types[index];
}

bool module_is_retired(struct module *module)
{
    bool is_retired;

    pthread_mutex_lock(&module->lock);
    is_retired = module->is_retired;
    pthread_mutex_unlock(&module->lock);
    return is_retired;
}

const char *module_path(const struct module *module)
{
    return module->path;
}

const char *module_file_name(const struct module *module)
{
    return image_file_name(module->path);
}

const char *module_digest(const struct module *module)
{
    return module->digest;
}
