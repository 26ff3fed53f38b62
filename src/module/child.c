/* child.c - the process in which a module's code runs: load it, list what it has, take turns until
 * the parent closes the pipe. */
#include "module/module_int.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pawl_main.h>
#include <unistd.h>

#define TEXT_OF(number) #number
#define PATH_OF(number) "/proc/self/fd/" TEXT_OF(number)
#define IMAGE_PATH PATH_OF(IMAGE_FD)
#define AHEAD_SIZE      ((size_t)64 << 10) /* of the answers together, but for the last one */

struct child {
    int in, out; /* the pipes; 0 and 1 are the code's own */
    const pawl_module *module;
    const pawl_code_type **types; /* copies, with the names as they are called outside; NULL ends */
    struct scope kept;            /* theirs */
};

/* What the code prints goes to stderr, not into an answer. */
static bool take_pipes(struct child *child)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    child->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    child->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return nothing >= 0 && child->in >= 0 && child->out >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
           dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

static bool say(const struct child *child, struct buf *frame)
{
    bool ok = frame_write(child->out, -1, frame) == FRAME_OK;

    buf_fini(frame);
    return ok;
}

static pawl_status check_module(struct scope *scope, const char *path, const pawl_module *module)
{
    if (!module || module->abi != PAWL_MODULE_ABI)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "module '%s' was built for ABI %u of pawl %s, and this is ABI %u of %s; "
                          "build it again with this version's headers",
                          path, module ? module->abi : 0, module ? module->version : "?",
                          PAWL_MODULE_ABI, PAWL_VERSION);
    if (module->type_size != sizeof(pawl_code_type) || module->var_size != sizeof(pawl_var))
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "module '%s' was built with other headers of ABI %u: a type has %u bytes "
                          "there and %zu here; build it again with this version's headers",
                          path, module->abi, module->type_size, sizeof(pawl_code_type));
    return PAWL_OK;
}

/* What the loader said, without the place where it found the bytes. */
static const char *loader_words(void)
{
    const char *words = dlerror();

    if (words && strncmp(words, IMAGE_PATH ": ", strlen(IMAGE_PATH ": ")) == 0)
        words += strlen(IMAGE_PATH ": ");
    return words ? words : "";
}

static pawl_status load(struct scope *scope, const char *path, struct child *child)
{
    const pawl_module *(*open_module)(void);
    void *library = dlopen(IMAGE_PATH, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "pawl_module_open") : NULL;

    if (!symbol)
        return scope_fail(scope, PAWL_NOT_KNOWN, "module '%s' %s: %s", path,
                          library ? "is not a module: it has no PAWL_MODULE()" : "cannot be loaded",
                          loader_words());
    (void)close(IMAGE_FD); /* it is mapped */
    memcpy(&open_module, &symbol, sizeof symbol); /* C has no cast for it */
    child->module = open_module();
    return check_module(scope, path, child->module);
}

static pawl_status copy_types(struct child *child)
{
    const pawl_code_fn *types = child->module->types;
    uint32_t count = 0;

    while (types[count])
        count++;
    child->types = ARENA_ARRAY(&child->kept.arena, const pawl_code_type *, count + 1);
    for (uint32_t i = 0; i < count && child->types; i++)
        child->types[i] = code_copy(&child->kept.arena, types[i]());
    return child->kept.arena.failed ? scope_no_memory(&child->kept) : PAWL_OK;
}

static pawl_status print_types(struct child *child, struct buf *frame)
{
    TRY(copy_types(child));
    json_open(frame, '{');
    json_put_u64(frame, "pawl", TURN_PROTOCOL);
    json_put_open(frame, "types", '[');
    for (const pawl_code_type **type = child->types; *type; type++) {
        struct code_binding binding = { .type = *type, .run = code_run };
        struct definition *definition;

        TRY(code_compile(&child->kept, &binding, &definition));
        json_raw(frame, definition->plan_text);
    }
    json_close(frame, ']');
    json_close(frame, '}');
    return PAWL_OK;
}

static bool introduce(struct child *child, const char *path)
{
    struct buf frame;
    pawl_status status;

    scope_init(&child->kept, &heap_libc, LIMIT_SCOPE);
    buf_init(&frame, &heap_libc, FRAME_MAX);
    status = load(&child->kept, path, child);
    if (status == PAWL_OK)
        status = print_types(child, &frame);
    if (status != PAWL_OK) {
        buf_clear(&frame);
        json_open(&frame, '{');
        json_put_text(&frame, "error", child->kept.error.message);
        json_close(&frame, '}');
    }
    return say(child, &frame) && status == PAWL_OK;
}

static const pawl_code_type *find_type(const struct child *child, const struct node *request)
{
    const struct node *name = node_find(request, "type");

    for (const pawl_code_type **type = child->types; *type && name; type++)
        if (str_is(name->text, (*type)->name))
            return *type;
    return NULL;
}

/* As many turns more, as long as their answers are short. */
static void go_ahead(const struct code_binding *binding, struct scope *scope,
                     struct turn_answer answer, uint64_t count, struct buf *frame)
{
    struct turn_request next;

    for (; count > 0 && frame->size < AHEAD_SIZE && ahead_foresee(&answer, &next); count--) {
        if (code_run(binding, &next, scope, &answer) != PAWL_OK)
            return;
        buf_byte(frame, '\0');
        wire_print_answer(&answer, frame);
    }
}

static void take_turn(const struct child *child, struct scope *scope, str text, struct buf *frame)
{
    struct code_binding binding = { .run = code_run };
    struct turn_request request;
    struct turn_answer answer;
    struct node *root = NULL;
    uint64_t ahead = 0;
    pawl_status status = node_read_json(scope, str_before(text, '\0'), &root);

    if (status == PAWL_OK)
        binding.type = find_type(child, root);
    if (!binding.type || !wire_read_request(root, &request))
        status = scope_fail(scope, PAWL_NOT_KNOWN, "the module has no such type");
    if (status == PAWL_OK)
        status = code_run(&binding, &request, scope, &answer);
    scope->error.status = status;
    if (status == PAWL_OK) {
        wire_print_answer(&answer, frame);
        if (str_to_u64(str_after(text, '\0'), &ahead))
            go_ahead(&binding, scope, answer, ahead, frame);
    } else
        wire_print_failure(&scope->error, frame);
}

int module_host(const char *path)
{
    struct child child = { .in = -1, .out = -1 };
    struct scope scope;
    struct buf frame;
    bool ok = take_pipes(&child);
    str text;

    if (ok && path_is_script(str_of(path)))
        return script_child(path, child.in, child.out);
    ok = ok && introduce(&child, path);
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    buf_init(&frame, &heap_libc, FRAME_MAX);
    while (ok) {
        ok = frame_read(child.in, -1, &scope, &text) == FRAME_OK;
        if (ok)
            take_turn(&child, &scope, text, &frame);
        ok = ok && frame_write(child.out, -1, &frame) == FRAME_OK;
        buf_clear(&frame);
        scope_clear(&scope);
    }
    buf_fini(&frame);
    scope_fini(&scope);
    scope_fini(&child.kept);
    return 0;
}
