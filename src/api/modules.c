/* modules.c - the types of a module become code types of a store, when it is loaded and when its
 * file is read again. What was loaded once stays until the store closes, because turns may be under
 * way in it; the newest build of a file takes the turns that begin. */
#include "api/modules.h"
#include "api/api.h"
#include "api/shards.h"
#include "api/stores_int.h"
#include "module/module.h"
#include "tool/tool.h"
#include <stdio.h>

#define DIGEST_SHOWN 12  /* characters in the log */
#define QUICK_MS     2   /* a step that takes no longer takes next to no time; */
#define QUICK_STREAK 16u /* after so many in a row several are called together */

static _Atomic bool are_expected;

void api_modules_expect(void)
{
    are_expected = true;
}

bool api_modules_are_expected(void)
{
    return are_expected;
}

void api_modules_ready(pawl *p)
{
    for (uint32_t i = 0; i < shards_count(p); i++)
        engine_alarms_go(shard_at(p, i)->engine);
}

/* ---- Its tools -------------------------------------------------------------------------- */

/* A tool that a module brought to a store. The newest build that has it runs its calls. */
struct module_tool {
    struct module_tool *next;
    struct module *_Atomic module;
    _Atomic uint32_t
        pace; /* calls in a row that took next to no time; each that did not halves it */
    size_t size;
    char name[];
};

static void note_pace(struct module_tool *tool, const struct module_answer *answer)
{
    uint32_t pace = tool->pace;

    if (answer->was_lost)
        tool->pace = 0;
    else if (answer->took_ms > QUICK_MS)
        tool->pace = pace / 2;
    else if (pace < 2 * QUICK_STREAK)
        tool->pace = pace + 1;
}

static void tell_answer(struct scope *scope, const struct module_answer *found,
                        pawl_tool_answer *answer)
{
    const char *text = arena_text(&scope->arena, found->json);

    if (!text)
        pawl_answer_error(answer, "\"no memory\"");
    else if (found->has_failed)
        pawl_answer_error(answer, text);
    else
        pawl_answer_result(answer, text);
    if (found->is_final)
        toolbox_answer_is_final(answer);
}

static void run_tool(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct module_tool *tool = context;
    struct module_answer out;
    struct scope scope;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    module_call(tool->module, call, &scope, &out);
    note_pace(tool, &out);
    tell_answer(&scope, &out, answer);
    scope_fini(&scope);
}

/* Several that take next to no time go to one process together. */
static bool is_quick(void *context)
{
    struct module_tool *tool = context;

    return tool->pace >= QUICK_STREAK && module_takes_many(tool->module);
}

static void *place_of(void *context)
{
    return ((struct module_tool *)context)->module;
}

static void run_party(const struct tool_item *items, uint32_t count,
                      pawl_tool_answer *const *answers)
{
    struct module *module = ((struct module_tool *)items[0].context)->module;
    struct module_call calls[PARTY_MAX];
    struct scope scope;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    for (uint32_t i = 0; i < count; i++)
        calls[i] = (struct module_call){ .call = items[i].call,
                                         .type = items[i].type,
                                         .number = items[i].number,
                                         .mark = items[i].mark,
                                         .at_ms = items[i].at_ms };
    module_call_many(module, calls, count, &scope);
    for (uint32_t i = 0; i < count; i++) {
        note_pace(items[i].context, &calls[i].answer);
        tell_answer(&scope, &calls[i].answer, answers[i]);
    }
    scope_fini(&scope);
}

static const struct tool_party party = { is_quick, place_of, run_party };

/* NULL: no memory. */
static struct module_tool *new_tool(pawl *p, const char *name, struct module *module)
{
    size_t size = sizeof(struct module_tool) + strlen(name) + 1;
    struct module_tool *tool = heap_new(&p->heap, size);

    if (!tool)
        return NULL;
    tool->size = size;
    tool->module = module;
    memcpy(tool->name, name, strlen(name) + 1);
    return tool;
}

static pawl_status bind_tool(pawl *p, struct scope *scope, struct module *module, const char *name)
{
    struct module_tool *tool = p->module_tools;

    while (tool && strcmp(tool->name, name) != 0)
        tool = tool->next;
    if (tool) {
        tool->module = module;
        return PAWL_OK;
    }
    tool = new_tool(p, name, module);
    TRY_MEMORY(scope, tool);
    tool->next = p->module_tools;
    p->module_tools = tool;
    for (uint32_t i = 0; i < shards_count(p); i++) {
        struct engine *engine = shard_at(p, i)->engine;

        TRY(toolbox_register_party(engine_toolbox(engine), name, run_tool, &party, tool,
                                   &scope->error));
        engine_tools_changed(engine);
    }
    return PAWL_OK;
}

/* ---- Its types -------------------------------------------------------------------------- */

static pawl_status bind_type(pawl *p, struct scope *scope, const struct code_binding *binding)
{
    for (uint32_t i = 0; i < shards_count(p); i++)
        TRY(engine_code_bind(shard_at(p, i)->engine, binding, scope));
    return PAWL_OK;
}

static pawl_status bind_types(pawl *p, struct scope *scope, struct module *module)
{
    pawl_status status = PAWL_OK;
    const char *name;

    pthread_mutex_lock(&p->modules_lock);
    for (uint32_t i = 0; status == PAWL_OK && (name = module_tool_at(module, i)); i++)
        status = bind_tool(p, scope, module, name);
    pthread_mutex_unlock(&p->modules_lock);
    for (uint32_t i = 0; status == PAWL_OK && i < module_type_count(module); i++)
        status = bind_type(p, scope, &module_type_at(module, i)->binding);
    return status;
}

static void report(void *context, const char *words)
{
    engine_log(context, PAWL_LOG_ERROR, "module.failed", words);
}

/* Keeps it until the store closes. */
static pawl_status add_module(pawl *p, struct scope *scope, struct module *module)
{
    struct module **modules;

    pthread_mutex_lock(&p->modules_lock);
    modules = heap_resize(&p->heap, p->modules, sizeof(void *) * p->module_count,
                          sizeof(void *) * (p->module_count + 1));
    if (modules) {
        p->modules = modules;
        p->modules[p->module_count++] = module;
    }
    pthread_mutex_unlock(&p->modules_lock);
    if (modules)
        return PAWL_OK;
    module_close(module);
    return scope_no_memory(scope);
}

/* Those that take turns, in the order in which they were loaded. */
static pawl_status modules_in_use(pawl *p, struct scope *scope, struct module ***out,
                                  uint32_t *count)
{
    *count = 0;
    pthread_mutex_lock(&p->modules_lock);
    *out = ARENA_ARRAY(&scope->arena, struct module *, p->module_count + 1u);
    for (uint32_t i = 0; *out && i < p->module_count; i++)
        if (!module_is_retired(p->modules[i]))
            (*out)[(*count)++] = p->modules[i];
    pthread_mutex_unlock(&p->modules_lock);
    return *out ? PAWL_OK : scope_no_memory(scope);
}

pawl_status api_module_load(pawl *p, const char *program, const char *path, int turn_ms,
                            pawl_error *error)
{
    struct module_options options = { .env = engine_env(p->engine),
                                      .program = program,
                                      .path = path,
                                      .turn_ms = turn_ms,
                                      .is_near = engine_has_test_clock(p->engine),
                                      .report = report,
                                      .context = p->engine };
    struct module *module = NULL;
    struct scope scope;
    pawl_status status;

    api_enter(p, &scope);
    status = module_open(&p->heap, &options, &scope, &module);
    if (status == PAWL_OK)
        status = add_module(p, &scope, module);
    if (status == PAWL_OK)
        status = bind_types(p, &scope, module);
    return api_leave(&scope, status, error);
}

pawl_status api_modules_share(pawl *p, pawl_error *error)
{
    pawl_status status = PAWL_OK;
    struct module **modules;
    struct scope scope;
    uint32_t count = 0;

    api_enter(p, &scope);
    if (p->first)
        status = modules_in_use(p->first, &scope, &modules, &count);
    for (uint32_t i = 0; i < count && status == PAWL_OK; i++)
        status = bind_types(p, &scope, modules[i]);
    return api_leave(&scope, status, error);
}

/* ---- The file again --------------------------------------------------------------------- */

/* A store beside the first that is open now; one that opens later asks for them itself. */
static void bind_beside(void *context, pawl *p)
{
    struct scope scope;
    pawl_status status;

    api_enter(p, &scope);
    status = bind_types(p, &scope, context);
    if (status != PAWL_OK)
        engine_log(p->engine, PAWL_LOG_ERROR, "module.failed", scope.error.message);
    (void)api_leave(&scope, status, NULL);
}

/* The types are bound all, or the build before goes on with those that are not. */
static pawl_status replace(pawl *p, struct scope *scope, struct module *old, struct module *fresh)
{
    pawl_status status;

    TRY(add_module(p, scope, fresh));
    status = bind_types(p, scope, fresh);
    module_retire(status == PAWL_OK ? old : fresh);
    if (status == PAWL_OK)
        stores_each_open(p, bind_beside, fresh);
    return status;
}

/* digest: of the build that was read; NULL: it was refused. */
static void log_reload(pawl *p, const struct module *old, const char *digest, bool is_same,
                       const char *why)
{
    const char *before = module_digest(old);
    char line[700];

    if (!digest)
        (void)snprintf(line, sizeof line,
                       "%s; the build that was loaded before goes on: sha256 %.*s", why,
                       DIGEST_SHOWN, before);
    else if (is_same)
        (void)snprintf(line, sizeof line, "module '%s': the file is as it was: sha256 %.*s",
                       module_path(old), DIGEST_SHOWN, digest);
    else
        (void)snprintf(line, sizeof line,
                       "module '%s': turns that begin now run in sha256 %.*s, those under way end "
                       "in sha256 %.*s",
                       module_path(old), DIGEST_SHOWN, digest, DIGEST_SHOWN, before);
    engine_log(p->engine, digest ? PAWL_LOG_INFO : PAWL_LOG_ERROR,
               digest ? "module.reloaded" : "module.refused", line);
}

static void reload(pawl *p, struct scope *scope, struct module *old)
{
    struct module *fresh = NULL;
    pawl_status status = module_open_again(old, scope, &fresh);
    bool is_same = status == PAWL_OK && strcmp(module_digest(old), module_digest(fresh)) == 0;
    char digest[DIGEST_SHOWN + 1] = "";

    if (status == PAWL_OK)
        (void)snprintf(digest, sizeof digest, "%s", module_digest(fresh));
    if (is_same)
        module_close(fresh);
    else if (status == PAWL_OK)
        status = replace(p, scope, old, fresh);
    log_reload(p, old, status == PAWL_OK ? digest : NULL, is_same, scope->error.message);
}

void api_modules_reload(pawl *p)
{
    struct module **modules;
    struct scope scope;
    uint32_t count;
    pawl_status status;

    api_enter(p, &scope);
    status = modules_in_use(p, &scope, &modules, &count);
    for (uint32_t i = 0; status == PAWL_OK && i < count; i++)
        reload(p, &scope, modules[i]);
    if (status == PAWL_OK && count == 0)
        engine_log(p->engine, PAWL_LOG_INFO, "module.reloaded", "there is no module to load again");
    (void)api_leave(&scope, status, NULL);
}

/* ---- The rest ---------------------------------------------------------------------------- */

static void print_module(const struct module *module, struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "file", module_file_name(module));
    json_put_text(out, "sha256", module_digest(module));
    json_put_open(out, "types", '[');
    for (uint32_t i = 0; i < module_type_count(module); i++)
        json_text(out, module_type_at(module, i)->binding.type->name);
    json_close(out, ']');
    json_close(out, '}');
}

pawl_status api_modules_print(pawl *p, struct scope *scope, struct buf *out)
{
    struct module **modules;
    uint32_t count;
    pawl_status status = modules_in_use(p->first ? p->first : p, scope, &modules, &count);

    json_put_open(out, "modules", '[');
    for (uint32_t i = 0; status == PAWL_OK && i < count; i++)
        print_module(modules[i], out);
    json_close(out, ']');
    return status;
}

const char *api_module_type(pawl *p, uint32_t index)
{
    const char *found = NULL;

    pthread_mutex_lock(&p->modules_lock);
    for (uint32_t i = 0; i < p->module_count && !found; i++) {
        uint32_t count = module_type_count(p->modules[i]);

        if (index < count)
            found = module_type_at(p->modules[i], index)->binding.type->name;
        else
            index -= count;
    }
    pthread_mutex_unlock(&p->modules_lock);
    return found;
}

bool api_has_code(pawl *p, const char *name)
{
    return engine_has_code(p->engine, str_of(name));
}

void api_modules_close(pawl *p)
{
    for (uint32_t i = 0; i < p->module_count; i++)
        module_close(p->modules[i]);
    heap_free(&p->heap, p->modules, sizeof(void *) * p->module_count);
    for (struct module_tool *tool = p->module_tools, *next; tool; tool = next) {
        next = tool->next;
        heap_free(&p->heap, tool, tool->size);
    }
}

int api_module_host(const char *path)
{
    return module_host(path);
}
