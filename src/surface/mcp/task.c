/* task.c - an instance as a task: one view of it, and how each era prints it. There is no table of
 * tasks: the id of a task is that of its instance, and each call looks at the instance again. */
#include "base/json_scan.h"
#include "base/time.h"
#include "surface/mcp/mcp_int.h"

/* ---- The view ---- */

static pawl_status not_found(struct rpc_exchange *exchange, str id)
{
    str shown = id.size > 64 ? (str){ id.data, 64 } : id;

    while (shown.size > 0 && !str_is_utf8(shown, false))
        shown.size--;
    return rpc_fail(exchange, RPC_PARAMS, "Task not found: %.*s", STR_ARG(shown));
}

/* Who acts: the token's actor, or the one of this process. */
static str caller_actor(const struct rpc_exchange *exchange)
{
    return exchange->who.name.data ? exchange->who.actor : str_of(exchange->server->options.actor);
}

/* A token that names its actor owns what that actor has created. Of one without an actor, and of a
 * local caller, the scopes alone decide. */
static bool is_owned(const struct rpc_exchange *exchange, const struct node *instance)
{
    if (!exchange->who.name.data || !exchange->who.actor.data)
        return true;
    return str_eq(node_text(instance, "created_by"), exchange->who.actor);
}

static bool is_one_of_codes(const struct node *error)
{
    int64_t code = 0;

    return node_to_i64(node_find(error, "code"), &code) && code >= -32768 && code <= -32000 &&
           node_text(error, "message").data;
}

static void read_end(struct task_view *out)
{
    str kind = node_text(out->instance, "terminal_kind"),
        status = node_text(out->instance, "status");
    const struct node *error = node_find(out->instance, "error");

    out->status = TASK_COMPLETED;
    if (str_is(kind, "cancel") || str_is(status, "cancelled"))
        out->status = TASK_CANCELLED;
    else if (str_is(kind, "failure") && error && error->kind == NODE_OBJECT &&
             is_one_of_codes(error))
        out->error = error;
    if (out->error)
        out->status = TASK_FAILED;
}

static pawl_status read_waiting(struct rpc_exchange *exchange, struct task_view *out)
{
    struct node *why;

    TRY(op_ask_node(exchange, "instance.why", MEMBERS({ "instance_id", out->id }), &why));
    out->waiting = node_find(why, "waiting_for");
    out->status = TASK_WORKING;
    for (const struct node *one = out->waiting ? out->waiting->first : NULL; one; one = one->next)
        if (gate_is_for(exchange, one))
            out->status = TASK_INPUT;
    return PAWL_OK;
}

/* A task is looked at often: null is left out, as are objects that nothing here looks at. */
static bool is_used(str key, str value)
{
    if (value.size == 0 || value.data[0] == 'n')
        return false;
    return value.data[0] != '{' || str_is(key, "result") || str_is(key, "error");
}

/* Of a list, and of a result, only the bytes. */
static pawl_status read_members(struct rpc_exchange *exchange, str text, struct node **out)
{
    struct arena *arena = &exchange->turn->work.arena;
    struct node *object = ARENA_NEW(arena, struct node), **link, *one;
    struct json_scan scan;
    str key, value;

    TRY_MEMORY(&exchange->turn->work, object);
    object->kind = NODE_OBJECT;
    object->raw = text;
    link = &object->first;
    json_scan_begin(&scan, text);
    while (json_scan_next(&scan, &key, &value)) {
        if (!is_used(key, value))
            continue;
        one = ARENA_NEW(arena, struct node);
        TRY_MEMORY(&exchange->turn->work, one);
        json_peek(arena, value, one);
        if (str_is(key, "error") && one->kind == NODE_OBJECT)
            TRY(node_read_json(&exchange->turn->work, value, &one));
        one->key = key;
        *link = one;
        link = &one->next;
    }
    *out = object;
    return PAWL_OK;
}

static pawl_status read_instance(struct rpc_exchange *exchange, str id, struct task_view *out)
{
    static const char *const ends[] = { "completed", "failed", "cancelled", NULL };
    struct node *instance = NULL;
    str text;
    pawl_status status =
        op_ask_text(exchange, "instance.get", MEMBERS({ "instance_id", id }), &text);

    *out = (struct task_view){ .id = id, .arena = &exchange->turn->work.arena };
    if (status == PAWL_NOT_KNOWN || status == PAWL_FORBIDDEN || status == PAWL_INVALID_REQUEST)
        return not_found(exchange, id);
    TRY(status);
    TRY(read_members(exchange, text, &instance));
    if (!is_owned(exchange, instance))
        return not_found(exchange, id);
    out->instance = instance;
    out->has_ended = str_is_one_of(node_text(instance, "status"), ends);
    if (out->has_ended)
        read_end(out);
    return PAWL_OK;
}

pawl_status task_read(struct rpc_exchange *exchange, str id, struct task_view *out)
{
    TRY(read_instance(exchange, id, out));
    return out->has_ended ? PAWL_OK : read_waiting(exchange, out);
}

/* A machine asks no one, and its actions are with the instance. */
pawl_status task_look(struct rpc_exchange *exchange, str id, struct task_view *out)
{
    TRY(read_instance(exchange, id, out));
    if (out->has_ended || str_is(node_text(out->instance, "kind"), "machine"))
        return PAWL_OK;
    return read_waiting(exchange, out);
}

bool task_is_stuck(const struct task_view *view)
{
    static const char *const kinds[] = { "approval", "signal", "action", "pause", NULL };

    if (!view->waiting || !view->waiting->first)
        return false;
    for (const struct node *one = view->waiting->first; one; one = one->next)
        if (!str_is_one_of(node_text(one, "kind"), kinds))
            return false;
    return true;
}

/* ---- Words ---- */

/* Seed 000's words: what has not begun is pending. */
static const char *seed_word(const struct task_view *view)
{
    str kind = node_text(view->instance, "terminal_kind");
    int64_t next = 0;

    if (!view->has_ended)
        return node_to_i64(node_find(view->instance, "next_sequence_number"), &next) && next == 1
                   ? "pending"
                   : "running";
    if (view->status == TASK_CANCELLED)
        return "canceled";
    return str_is(kind, "failure") ? "failure" : "success";
}

/* Legacy: a tool that reports an error has failed. */
static const char *task_word(const struct rpc_exchange *exchange, const struct task_view *view)
{
    static const char *const words[] = { "working", "input_required", "completed", "failed",
                                         "cancelled" };
    bool is_failure = str_is(node_text(view->instance, "terminal_kind"), "failure");

    if (!is_modern(exchange->version) && view->status == TASK_COMPLETED && is_failure)
        return "failed";
    return words[view->status];
}

static void put_waiting(const struct node *one, struct buf *out)
{
    str kind = node_text(one, "kind"), name = node_text(one, "name");

    if (str_is(kind, "approval"))
        buf_fmt(out, "waiting for the approval '%.*s'; approval_decide decides it", STR_ARG(name));
    else if (str_is(kind, "action"))
        buf_fmt(out, "waiting for an action: %.*s", STR_ARG(name));
    else if (str_is(kind, "step"))
        buf_fmt(out, "step %.*s is %.*s", STR_ARG(name), STR_ARG(node_text(one, "status")));
    else if (str_is(kind, "pause"))
        buf_str(out, STR("paused"));
    else
        buf_fmt(out, "waiting for the %.*s '%.*s'", STR_ARG(kind), STR_ARG(name));
}

static bool put_actions(const struct task_view *view, str actions, struct buf *out)
{
    struct json_scan scan;
    str key, one, action;
    bool has_any = false;

    for (json_scan_begin(&scan, actions); json_scan_next(&scan, &key, &one); has_any = true) {
        buf_str(out, has_any ? STR(", ") : STR("waiting for an action: "));
        if (json_member(view->arena, one, STR("action"), &action) && action.size > 2)
            buf_str(out, json_unescape(view->arena, (str){ action.data + 1, action.size - 2 }));
    }
    return has_any;
}

void task_message(const struct task_view *view, struct buf *out)
{
    uint32_t count = 0;

    if (view->has_ended) {
        buf_fmt(out, "ended in %.*s", STR_ARG(node_text(view->instance, "current_state")));
        return;
    }
    for (const struct node *one = view->waiting ? view->waiting->first : NULL; one && count < 3;
         one = one->next, count++) {
        if (count > 0)
            buf_str(out, STR("; "));
        put_waiting(one, out);
    }
    if (count == 0 && (view->waiting || !view->arena ||
                       !put_actions(view, node_raw(view->instance, "actions"), out)))
        buf_fmt(out, "in %.*s", STR_ARG(node_text(view->instance, "current_state")));
}

/* ---- Printing ---- */

static void put_message(const struct task_view *view, struct buf *out)
{
    struct buf words;

    buf_init(&words, &heap_libc, LIMIT_TEXT);
    task_message(view, &words);
    json_put_str(out, "statusMessage", buf_view(&words));
    buf_fini(&words);
}

/* A process that has run for long will not end in the next second. */
static uint64_t poll_interval(const struct task_view *view)
{
    int64_t begun = 0, changed = 0, age;

    time_parse(node_text(view->instance, "instantiated_at"), &begun);
    time_parse(node_text(view->instance, "updated_at"), &changed);
    age = changed - begun;
    return age < 10000 ? 500 : age < 60000 ? 1000 : 5000;
}

static void put_meta(const struct task_view *view, struct buf *out)
{
    json_put_text(out, "pawl/status", seed_word(view));
    json_put_str(out, "pawl/terminalKind", node_text(view->instance, "terminal_kind"));
    json_put_str(out, "pawl/state", node_text(view->instance, "current_state"));
    if (view->has_ended && !node_text(view->instance, "terminal_kind").data)
        json_put_text(out, "pawl/warning", "the terminal state declares no kind");
}

/* From its creation until what it holds is erased. The newest version of its definition decides
 * that; without `retention` it is kept. */
static void put_ttl(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out)
{
    const char *name = is_modern(exchange->version) ? "ttlMs" : "ttl";
    str definition = node_text(view->instance, "definition");
    struct definition_tool tool;
    int64_t begun, ended;

    if (!view->has_ended || !definition.data ||
        definition_tool_read(exchange, definition, &tool) != PAWL_OK)
        tool.kept_ms = -1;
    if (tool.kept_ms >= 0 && time_parse(node_text(view->instance, "instantiated_at"), &begun) &&
        time_parse(node_text(view->instance, "updated_at"), &ended))
        json_put_i64(out, name, ended - begun + tool.kept_ms);
    else
        json_put_raw(out, name, STR("null"));
}

void task_print(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out)
{
    bool modern = is_modern(exchange->version);

    json_put_str(out, "taskId", view->id);
    json_put_text(out, "status", task_word(exchange, view));
    put_message(view, out);
    json_put_str(out, "createdAt", node_text(view->instance, "instantiated_at"));
    json_put_str(out, "lastUpdatedAt", node_text(view->instance, "updated_at"));
    put_ttl(exchange, view, out);
    json_put_u64(out, modern ? "pollIntervalMs" : "pollInterval", poll_interval(view));
}

/* ---- Results ---- */

/* A text as it is, anything else as JSON. */
static void put_value(struct buf *out, const struct node *value)
{
    json_put_open(out, "content", '[');
    json_open(out, '{');
    json_put_text(out, "type", "text");
    json_key(out, "text");
    json_str(out, value->kind == NODE_STRING ? value->text : value->raw);
    json_close(out, '}');
    json_close(out, ']');
}

void task_result(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out)
{
    const struct node *result = node_find(view->instance, "result"),
                      *error = node_find(view->instance, "error");
    bool is_failure = str_is(node_text(view->instance, "terminal_kind"), "failure");
    struct node state = { .kind = NODE_STRING, .text = node_text(view->instance, "current_state") };

    if (result && result->kind == NODE_NULL)
        result = NULL;
    if (is_failure || view->status == TASK_CANCELLED) {
        put_value(out, error && error->kind != NODE_NULL ? error : &state);
        json_put_bool(out, "isError", true);
        return;
    }
    put_value(out, result ? result : &state);
    structured_put(exchange, view, result, out);
    json_put_bool(out, "isError", false);
}

pawl_status task_error(struct rpc_exchange *exchange, const struct task_view *view)
{
    int64_t code = RPC_INTERNAL;

    node_to_i64(node_find(view->error, "code"), &code);
    rpc_fail(exchange, (int)code, "%.*s", STR_ARG(node_text(view->error, "message")));
    exchange->turn->error.data = arena_str(&exchange->arena, node_raw(view->error, "data"));
    exchange->turn->error.http = 200;
    return PAWL_INVALID_REQUEST;
}

/* What a caller without tasks gets of a process that goes on: how to follow it. */
void task_handle(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out)
{
    struct buf words;

    (void)exchange;
    buf_init(&words, &heap_libc, LIMIT_TEXT);
    buf_fmt(&words, "The process %.*s is under way: ", STR_ARG(view->id));
    task_message(view, &words);
    buf_fmt(&words, ". process_get follows it.");
    tool_result_text(out, buf_view(&words), false);
    buf_fini(&words);
    json_put_open(out, "structuredContent", '{');
    json_put_str(out, "process_id", view->id);
    json_put_str(out, "state", node_text(view->instance, "current_state"));
    json_put_str(out, "status", node_text(view->instance, "status"));
    json_put_raw(out, "actions", node_raw(view->instance, "actions"));
    json_put_raw(out, "waiting_for", view->waiting ? view->waiting->raw : STR("[]"));
    json_close(out, '}');
}

/* ---- Methods of both eras ---- */

static pawl_status read_id(struct rpc_exchange *exchange, str *out)
{
    *out = node_text(exchange->params, "taskId");
    if (!out->data)
        return rpc_fail(exchange, RPC_PARAMS, "params.taskId: expected a string");
    return PAWL_OK;
}

static void put_detail(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out)
{
    if (view->status == TASK_INPUT) {
        gates_print(exchange, view, out);
    } else if (view->status == TASK_FAILED) {
        json_put_open(out, "error", '{');
        json_put_raw(out, "code", node_raw(view->error, "code"));
        json_put_raw(out, "message", node_raw(view->error, "message"));
        json_opt_raw(out, "data", node_raw(view->error, "data"));
        json_close(out, '}');
    } else if (view->status == TASK_COMPLETED) {
        json_put_open(out, "result", '{');
        json_put_text(out, "resultType", "complete");
        task_result(exchange, view, out);
        json_close(out, '}');
    }
}

/* A notification has the same members. */
void task_print_whole(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out)
{
    task_print(exchange, view, out);
    if (is_modern(exchange->version))
        put_detail(exchange, view, out);
}

pawl_status method_tasks_get(struct rpc_exchange *exchange, struct buf *result)
{
    struct task_view view;
    str id;

    TRY(read_id(exchange, &id));
    TRY(task_look(exchange, id, &view));
    task_print_whole(exchange, &view, result);
    put_meta(&view, &exchange->meta_out);
    return PAWL_OK;
}

pawl_status task_created(struct rpc_exchange *exchange, const struct task_view *view,
                         struct buf *result)
{
    struct task_view begun = *view;

    put_meta(view, &exchange->meta_out);
    if (is_modern(exchange->version)) {
        exchange->result_type = "task";
        task_print(exchange, view, result);
        return PAWL_OK;
    }
    begun.status = TASK_WORKING; /* as the legacy era wants each task to begin */
    begun.has_ended = false;
    json_put_open(result, "task", '{');
    task_print(exchange, &begun, result);
    json_close(result, '}');
    return PAWL_OK;
}

static pawl_status cancel(struct rpc_exchange *exchange, str id)
{
    str reason = node_text(exchange->meta, "pawl/reason");
    struct node *answer;

    return op_ask_node(exchange, "instance.cancel",
                       MEMBERS({ "instance_id", id },
                               { "reason", reason.data ? reason : STR("cancelled by its client") }),
                       &answer);
}

/* An end that came first is acknowledged in the modern era, and an error in the legacy one. That a
 * process cannot be cancelled from where it stands is an error in both: an acknowledgement would
 * promise what will not happen. */
pawl_status method_tasks_cancel(struct rpc_exchange *exchange, struct buf *result)
{
    struct task_view view;
    pawl_status status;
    str id;

    TRY(read_id(exchange, &id));
    TRY(read_instance(exchange, id, &view));
    if (is_modern(exchange->version) && view.has_ended)
        return PAWL_OK;
    if (view.has_ended)
        return rpc_fail(exchange, RPC_PARAMS, "the task has ended already: it is %s",
                        task_word(exchange, &view));
    status = cancel(exchange, id);
    if (status == PAWL_TERMINAL && is_modern(exchange->version))
        return PAWL_OK;
    TRY(status);
    if (is_modern(exchange->version))
        return PAWL_OK;
    TRY(task_read(exchange, id, &view));
    view.status = TASK_CANCELLED;
    task_print(exchange, &view, result);
    put_meta(&view, &exchange->meta_out);
    return PAWL_OK;
}

/* Modern. Keys that are unknown, or answered already, are left alone. */
pawl_status method_tasks_update(struct rpc_exchange *exchange, struct buf *result)
{
    const struct node *responses = node_find(exchange->params, "inputResponses");
    struct task_view view;
    str id;

    (void)result;
    TRY(read_id(exchange, &id));
    TRY(task_read(exchange, id, &view));
    if (!responses || responses->kind != NODE_OBJECT)
        return rpc_fail(exchange, RPC_PARAMS, "params.inputResponses: expected an object");
    for (const struct node *one = view.waiting ? view.waiting->first : NULL; one; one = one->next) {
        str key = node_text(one, "step_id");

        if (gate_is_for(exchange, one) && node_find_str(responses, key))
            TRY(gate_decide(exchange, key, node_find_str(responses, key)));
    }
    return PAWL_OK;
}

/* ---- Methods of the legacy era ---- */

pawl_status method_tasks_result(struct rpc_exchange *exchange, struct buf *result)
{
    struct task_view view;
    str id;

    TRY(read_id(exchange, &id));
    exchange_watch(exchange, id);
    TRY(task_read(exchange, id, &view));
    if (!view.has_ended) {
        TRY(gate_ask(exchange, &view));
        if (!exchange->waits)
            exchange_wait(exchange, 0);
        return PAWL_OK;
    }
    if (view.error)
        return task_error(exchange, &view);
    if (view.status == TASK_CANCELLED)
        return rpc_fail(exchange, RPC_INTERNAL, "the task was cancelled");
    task_result(exchange, &view, result);
    json_put_open(&exchange->meta_out, RELATED_TASK, '{');
    json_put_str(&exchange->meta_out, "taskId", view.id);
    json_close(&exchange->meta_out, '}');
    put_meta(&view, &exchange->meta_out);
    return PAWL_OK;
}

static pawl_status put_listed(struct rpc_exchange *exchange, const struct node *instances,
                              struct buf *result)
{
    json_put_open(result, "tasks", '[');
    for (const struct node *one = instances ? instances->first : NULL; one; one = one->next) {
        struct task_view view = { .id = node_text(one, "instance_id"), .instance = one };
        static const char *const ends[] = { "completed", "failed", "cancelled", NULL };

        if (!is_owned(exchange, one))
            continue;
        view.has_ended = str_is_one_of(node_text(one, "status"), ends);
        if (view.has_ended)
            read_end(&view);
        json_open(result, '{');
        task_print(exchange, &view, result);
        json_close(result, '}');
    }
    json_close(result, ']');
    return PAWL_OK;
}

pawl_status method_tasks_list(struct rpc_exchange *exchange, struct buf *result)
{
    const struct node *cursor = node_find(exchange->params, "cursor");
    struct node *page;
    pawl_status status = op_ask_node(
        exchange, "instance.list",
        MEMBERS({ "limit", STR("50") }, { "after", cursor ? cursor->text : STR_NONE }), &page);

    if (status == PAWL_INVALID_QUERY)
        return rpc_fail(exchange, RPC_PARAMS, "params.cursor: expected a nextCursor of ours");
    TRY(status);
    TRY(put_listed(exchange, node_find(page, "instances"), result));
    if (node_text(page, "next").data)
        json_put_str(result, "nextCursor", node_text(page, "next"));
    return PAWL_OK;
}

bool caller_may_decide(const struct rpc_exchange *exchange, const struct node *by)
{
    str actor = caller_actor(exchange);

    if (!by || by->kind != NODE_ARRAY)
        return true;
    for (const struct node *one = by->first; one; one = one->next)
        if (actor.data && str_eq(one->text, actor))
            return true;
    return false;
}
