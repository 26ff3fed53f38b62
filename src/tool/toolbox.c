/* toolbox.c - which tools there are, and a call from its arguments to its answer. */
#include "base/assert.h"
#include "base/limits.h"
#include "model/definition.h"
#include "model/words.h"
#include "tool/remote/mcp_servers.h"
#include "tool/tool_int.h"
#include <stdio.h>

#define KNOWN_SIZE_MAX 400 /* of the list of tools in a message */

/* ---- The box ----------------------------------------------------------------------- */

struct toolbox *toolbox_new(const struct toolbox_options *options)
{
    struct toolbox *toolbox = heap_new(options->heap, sizeof *toolbox);

    if (!toolbox)
        return NULL;
    toolbox->options = *options;
    scope_init(&toolbox->scope, options->heap, LIMIT_SCOPE);
    if (pthread_mutex_init(&toolbox->lock, NULL) != 0) {
        heap_free(options->heap, toolbox, sizeof *toolbox);
        return NULL;
    }
    return toolbox;
}

void toolbox_free(struct toolbox *toolbox)
{
    const struct heap *heap;
    struct host_tool *next;

    if (!toolbox)
        return;
    ASSERT(!toolbox->running);
    heap = toolbox->options.heap;
    for (struct host_tool *tool = toolbox->tools; tool; tool = next) {
        next = tool->next;
        heap_free(heap, tool, tool->size);
    }
    remote_free(toolbox->remote);
    curl_api_free(toolbox);
    scope_fini(&toolbox->scope);
    pthread_mutex_destroy(&toolbox->lock);
    heap_free(heap, toolbox, sizeof *toolbox);
}

pawl_status toolbox_set_rules(struct toolbox *toolbox, str text, struct scope *scope)
{
    str kept = arena_str(&toolbox->scope.arena, text);
    struct node *tools = NULL;
    pawl_status status =
        kept.data ? node_read(&toolbox->scope, kept, &tools) : scope_no_memory(&toolbox->scope);

    if (status == PAWL_OK)
        status = tool_rules_read(&toolbox->scope, tools, &toolbox->rules);
    if (status != PAWL_OK)
        return scope_fail(scope, status, "tools: %s", toolbox->scope.error.message);
    if (toolbox->rules.has_exec)
        toolbox->options.allow_exec = toolbox->rules.exec;
    if (toolbox->rules.server_count > 0)
        TRY_MEMORY(scope, toolbox->remote = remote_new(toolbox));
    return PAWL_OK;
}

/* Tools are only ever added, and stay where they are until the box goes. */
static const struct host_tool *find_host_tool(const struct toolbox *toolbox, str name)
{
    for (const struct host_tool *tool = toolbox->tools; tool; tool = tool->next)
        if (str_is(name, tool->name))
            return tool;
    return NULL;
}

static const struct host_tool *get_host_tool(const struct toolbox *toolbox, str name)
{
    /* A look changes nothing but the lock. */
    pthread_mutex_t *lock = &((struct toolbox *)(uintptr_t)toolbox)->lock;
    const struct host_tool *tool;

    pthread_mutex_lock(lock);
    tool = find_host_tool(toolbox, name);
    pthread_mutex_unlock(lock);
    return tool;
}

bool toolbox_has(const struct toolbox *toolbox, str name)
{
    return builtin_find(name) || get_host_tool(toolbox, name) ||
           tool_rules_reply(&toolbox->rules, name, 1);
}

const struct tool_limits *toolbox_limits(const struct toolbox *toolbox, str name)
{
    return toolbox->rules.has_limits ? tool_rules_limits(&toolbox->rules, name) : NULL;
}

bool toolbox_has_limits(const struct toolbox *toolbox, int64_t *per_max_ms)
{
    *per_max_ms = toolbox->rules.per_max_ms;
    return toolbox->rules.has_limits;
}

bool toolbox_is_of_host(const struct toolbox *toolbox, str name)
{
    return get_host_tool(toolbox, name) != NULL;
}

bool toolbox_serves(const struct toolbox *toolbox, str name, str creator)
{
    return toolbox_has(toolbox, name) || !tool_rules_allow(&toolbox->rules, name, creator);
}

bool toolbox_is_pure(str name)
{
    return str_is(name, "set") || str_is(name, "fail");
}

/* ---- For those who ask what there is ---- */

void toolbox_print_tool(str name, const char *kind, bool is_on, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "tool", name);
    json_put_text(out, "kind", kind);
    json_put_bool(out, "on", is_on);
    json_close(out, '}');
}

void toolbox_print_tools(struct toolbox *toolbox, struct buf *out)
{
    const struct builtin *builtin;

    for (size_t i = 0; (builtin = builtin_at(i)); i++) {
        str name = str_of(builtin->name);
        bool is_on = !(str_is(name, "exec") && !toolbox->options.allow_exec) &&
                     !(str_is(name, "http") && !toolbox->rules.http);

        if (!builtin->is_inner)
            toolbox_print_tool(name, "built-in", is_on, out);
    }
    toolbox_print_tool(STR("mcp"), "built-in", toolbox->remote != NULL, out);
    toolbox_print_tool(STR("sleep"), "built-in", true, out);
    pthread_mutex_lock(&toolbox->lock);
    for (const struct host_tool *tool = toolbox->tools; tool; tool = tool->next)
        toolbox_print_tool(str_of(tool->name), "host", true, out);
    pthread_mutex_unlock(&toolbox->lock);
}

void toolbox_print_servers(struct toolbox *toolbox, struct scope *scope, struct buf *out)
{
    remote_print_servers(toolbox, scope, out);
}

/* ---- Registering --------------------------------------------------------------------- */

static pawl_status refuse(pawl_error *error, pawl_status status, const char *before,
                          const char *name, const char *after)
{
    str shown = words_shown(str_of(name));

    if (error) {
        error->status = status;
        (void)snprintf(error->message, sizeof error->message, "%s'%.*s'%s", before, STR_ARG(shown),
                       after);
    }
    return status;
}

static struct host_tool *new_host_tool(const struct heap *heap, const char *name, pawl_tool_fn fn,
                                       const struct tool_party *party, void *context)
{
    size_t size = sizeof(struct host_tool) + strlen(name) + 1;
    struct host_tool *tool = heap_new(heap, size);

    if (!tool)
        return NULL;
    *tool = (struct host_tool){ .size = size, .fn = fn, .context = context, .party = party };
    memcpy(tool->name, name, strlen(name) + 1);
    return tool;
}

pawl_status toolbox_register(struct toolbox *toolbox, const char *name, pawl_tool_fn fn,
                             void *context, pawl_error *error)
{
    return toolbox_register_party(toolbox, name, fn, NULL, context, error);
}

pawl_status toolbox_register_party(struct toolbox *toolbox, const char *name, pawl_tool_fn fn,
                                   const struct tool_party *party, void *context, pawl_error *error)
{
    struct host_tool *tool;
    bool is_taken;

    if (!name || !definition_name_is_valid(str_of(name)))
        return refuse(error, PAWL_INVALID_REQUEST, "", name,
                      " cannot name a tool: 1..128 of A-Z a-z 0-9 . _ / -");
    if (!fn)
        return refuse(error, PAWL_INVALID_REQUEST, "the tool ", name, " has no function");
    tool = new_host_tool(toolbox->options.heap, name, fn, party, context);
    if (!tool)
        return refuse(error, PAWL_NO_MEMORY, "no memory for the tool ", name, "");
    pthread_mutex_lock(&toolbox->lock);
    is_taken = builtin_find(str_of(name)) || str_is(str_of(name), "sleep") ||
               find_host_tool(toolbox, str_of(name));
    if (!is_taken) {
        tool->next = toolbox->tools;
        toolbox->tools = tool;
    }
    pthread_mutex_unlock(&toolbox->lock);
    if (!is_taken)
        return PAWL_OK;
    heap_free(toolbox->options.heap, tool, tool->size);
    return refuse(error, PAWL_INVALID_REQUEST, "there is already a tool ", name, "");
}

/* ---- Answers ------------------------------------------------------------------------- */

bool call_no_memory(struct call *call)
{
    call->status = scope_no_memory(call->scope);
    return false;
}

void call_result(struct call *call, str json)
{
    call->result.failed = false;
    call->result.json = arena_str(&call->scope->arena, json);
    if (!call->result.json.data)
        call_no_memory(call);
}

static void fail_in_words(struct call *call, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void fail_in_words(struct call *call, const char *format, va_list args)
{
    char message[2048]; /* room for what a program said on stderr */
    struct buf json;

    if (vsnprintf(message, sizeof message, format, args) < 0)
        message[0] = '\0';
    buf_init(&json, call->scope->arena.heap, LIMIT_TEXT);
    json_text(&json, message);
    call->result.failed = true;
    call->result.json = buf_take(&json, &call->scope->arena);
    if (!call->result.json.data)
        call_no_memory(call);
}

void call_fail(struct call *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_in_words(call, format, args);
    va_end(args);
}

bool call_refuse(struct call *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_in_words(call, format, args);
    va_end(args);
    call->result.is_final = true;
    return false;
}

#define ARGUMENTS_MAX 16 /* of one tool */

static bool refuse_unknown(struct call *call, str name, const struct known_key *known)
{
    const char *words[ARGUMENTS_MAX + 1] = { NULL }, *nearest, *text;
    struct buf list;

    buf_init(&list, call->scope->arena.heap, KNOWN_SIZE_MAX);
    for (size_t i = 0; known[i].word && i < ARGUMENTS_MAX; i++) {
        words[i] = known[i].word;
        buf_item(&list, str_of(words[i]));
    }
    nearest = words_nearest(name, words);
    text = buf_text(&list);
    name = words_shown(name);
    if (nearest)
        call_refuse(call, "%s: unknown argument '%.*s'; did you mean '%s'?", call->given->tool,
                    STR_ARG(name), nearest);
    else
        call_refuse(call, "%s: unknown argument '%.*s'; known: %s", call->given->tool,
                    STR_ARG(name), text);
    buf_fini(&list);
    return false;
}

bool call_knows(struct call *call, const struct known_key *known)
{
    for (const struct node *argument = call->args->first; argument; argument = argument->next) {
        const struct known_key *key = known;

        while (key->word && !str_is(argument->key, key->word))
            key++;
        if (!key->word)
            return refuse_unknown(call, argument->key, known);
    }
    return true;
}

/* In a scope of its own: a megabyte of small values makes many times that in nodes. */
void call_outside(struct call *call, const char *who, str text)
{
    struct scope check;
    struct node *node;
    pawl_status status;

    text = str_trim(text, " \t\r\n");
    if (text.size == 0)
        text = STR("null");
    scope_init(&check, call->scope->arena.heap, 2 * LIMIT_SCOPE);
    status = node_read_json(&check, text, &node);
    if (status == PAWL_OK)
        call_result(call, text);
    else if (status == PAWL_NO_MEMORY)
        call_no_memory(call);
    else
        call_fail(call, "%s is not JSON: %s", who, check.error.message);
    scope_fini(&check);
}

struct pawl_tool_answer {
    struct buf json;
    bool failed, is_too_large, is_final;
};

static void set_answer(pawl_tool_answer *answer, const char *json, bool failed)
{
    str text = str_of(json);

    if (!answer)
        return;
    answer->failed = failed;
    answer->is_too_large = text.size > LIMIT_TEXT;
    buf_clear(&answer->json);
    if (!answer->is_too_large)
        buf_str(&answer->json, text);
}

void pawl_answer_result(pawl_tool_answer *answer, const char *json)
{
    set_answer(answer, json, false);
}

void pawl_answer_error(pawl_tool_answer *answer, const char *json)
{
    set_answer(answer, json, true);
}

void toolbox_answer_is_final(pawl_tool_answer *answer)
{
    answer->is_final = answer->failed;
}

/* ---- Running ------------------------------------------------------------------------- */

static void take_answer(struct call *call, pawl_tool_answer *answer)
{
    if (answer->json.failed)
        call_no_memory(call);
    else if (answer->is_too_large)
        call_fail(call, "the answer of '%s' is over %u bytes", call->given->tool, LIMIT_TEXT);
    else
        call_outside(call, "the tool's answer", buf_view(&answer->json));
    if (answer->failed)
        call->result.failed = true;
    if (answer->is_final)
        call->result.is_final = true;
    buf_fini(&answer->json);
}

static void run_host_tool(struct call *call, const struct host_tool *tool)
{
    pawl_tool_answer answer = { .failed = false };

    buf_init(&answer.json, call->scope->arena.heap, LIMIT_TEXT);
    tool->fn(tool->context, call->given, &answer);
    take_answer(call, &answer);
}

const void *toolbox_place(const struct toolbox *toolbox, str name, str creator)
{
    const struct host_tool *tool;

    if (builtin_find(name) || tool_rules_reply(&toolbox->rules, name, 1) ||
        !tool_rules_allow(&toolbox->rules, name, creator))
        return NULL;
    tool = get_host_tool(toolbox, name);
    return tool && tool->party && tool->party->is_quick(tool->context)
               ? tool->party->place(tool->context)
               : NULL;
}

void toolbox_run_party(struct toolbox *toolbox, struct tool_item *items, uint32_t count,
                       struct scope *const *scopes, struct tool_result *out)
{
    const struct host_tool *tool = NULL;
    pawl_tool_answer answers[PARTY_MAX] = { { .failed = false } };
    pawl_tool_answer *each[PARTY_MAX];

    ASSERT(count > 0 && count <= PARTY_MAX);
    for (uint32_t i = 0; i < count; i++) {
        tool = get_host_tool(toolbox, str_of(items[i].call->tool));
        items[i].context = tool->context;
        buf_init(&answers[i].json, scopes[i]->arena.heap, LIMIT_TEXT);
        each[i] = &answers[i];
    }
    tool->party->run(items, count, each);
    for (uint32_t i = 0; i < count; i++) {
        struct call call = { .toolbox = toolbox, .given = items[i].call, .scope = scopes[i] };

        take_answer(&call, &answers[i]);
        if (call.status == PAWL_OK)
            out[i] = call.result;
    }
}

static void run_builtin(struct call *call, const struct builtin *builtin)
{
    struct node *args = NULL;
    pawl_status status = node_read_json(call->scope, str_of(call->given->args), &args);

    if (status == PAWL_NO_MEMORY)
        call->status = status;
    else if (status != PAWL_OK || (args->kind != NODE_OBJECT && !builtin->takes_any))
        call_refuse(call, "%s: its args must be %s", builtin->name,
                    builtin->takes_any ? "JSON" : "a JSON object");
    call->args = args;
    if (call->status == PAWL_OK && !call->result.failed)
        builtin->run(call);
}

static void fail_unknown(struct call *call)
{
    const struct builtin *builtin;
    struct buf known;
    str name = words_shown(str_of(call->given->tool));

    buf_init(&known, call->scope->arena.heap, KNOWN_SIZE_MAX);
    for (size_t i = 0; (builtin = builtin_at(i)); i++)
        if (!builtin->is_inner)
            buf_item(&known, str_of(builtin->name));
    pthread_mutex_lock(&call->toolbox->lock);
    for (const struct host_tool *tool = call->toolbox->tools; tool; tool = tool->next)
        buf_item(&known, str_of(tool->name));
    pthread_mutex_unlock(&call->toolbox->lock);
    call_fail(call, "unknown tool '%.*s'; known: %.*s%s", STR_ARG(name), STR_ARG(buf_view(&known)),
              known.failed ? ", ..." : "");
    buf_fini(&known);
}

/* B27: the rights of a step are those of who created its instance. */
static void fail_forbidden(struct call *call)
{
    str creator = str_of(call->given->created_by);

    if (creator.data)
        call_refuse(call, "forbidden: '%s' is not for '%.*s': tools.%s.for names who may use it",
                    call->given->tool, STR_ARG(words_shown(creator)), call->given->tool);
    else
        call_refuse(call, "forbidden: '%s' is for named creators, and this instance has none",
                    call->given->tool);
}

/* The progress and the result of `mcp` are what a server answers to the call. */
static bool is_mcp_call(const struct call *call)
{
    return strcmp(call->given->tool, "mcp.call") == 0;
}

static void call_told(struct call *call, const struct tool_reply *reply)
{
    struct buf done;

    if (reply->failed || !is_mcp_call(call)) {
        call_result(call, reply->json);
        call->result.failed = reply->failed;
        return;
    }
    buf_init(&done, call->scope->arena.heap, LIMIT_TEXT);
    json_open(&done, '{');
    json_put_text(&done, "state", "done");
    json_put_raw(&done, "result", reply->json);
    json_close(&done, '}');
    call_result(call, done.failed ? STR("null") : buf_view(&done));
    buf_fini(&done);
}

pawl_status toolbox_run(struct toolbox *toolbox, const pawl_tool_call *given, int64_t timeout_ms,
                        struct tool_stop *stop, struct scope *scope, struct tool_result *out)
{
    struct call call = { .toolbox = toolbox,
                         .given = given,
                         .scope = scope,
                         .timeout_ms = timeout_ms,
                         .stop = stop };
    const struct builtin *builtin = builtin_find(str_of(given->tool));
    const struct host_tool *tool = builtin ? NULL : get_host_tool(toolbox, str_of(given->tool));
    const struct tool_reply *reply =
        tool_rules_reply(&toolbox->rules, str_of(given->tool), given->attempt);

    if (is_mcp_call(&call))
        reply = tool_rules_reply(&toolbox->rules, STR("mcp"), given->attempt);
    if (!tool_rules_allow(&toolbox->rules, str_of(given->tool), str_of(given->created_by)))
        fail_forbidden(&call);
    else if (reply)
        call_told(&call, reply);
    else if (builtin)
        run_builtin(&call, builtin);
    else if (tool)
        run_host_tool(&call, tool);
    else
        fail_unknown(&call);
    if (call.status != PAWL_OK)
        return call.status;
    *out = call.result;
    return PAWL_OK;
}

void toolbox_stop(struct toolbox *toolbox, struct tool_stop *stop)
{
    pthread_mutex_lock(&toolbox->lock);
    stop->is_asked = true;
    for (const struct running *running = toolbox->running; running; running = running->next)
        if (running->stop == stop)
            keeper_stop(&running->keeper);
    pthread_mutex_unlock(&toolbox->lock);
}

void toolbox_go_on(struct toolbox *toolbox)
{
    toolbox->is_stopping = false;
}

void toolbox_kill_all(struct toolbox *toolbox)
{
    toolbox->is_stopping = true;
    remote_stop(toolbox->remote);
    pthread_mutex_lock(&toolbox->lock);
    for (const struct running *running = toolbox->running; running; running = running->next)
        keeper_stop(&running->keeper);
    pthread_mutex_unlock(&toolbox->lock);
}
