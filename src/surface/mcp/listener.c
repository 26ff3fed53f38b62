/* listener.c - what clients subscribe to: changed lists, changed resources, tasks. Modern by
 * subscriptions/listen, legacy by the stream of a session. */
#include "surface/mcp/mcp_int.h"

/* One resource or task that a listener follows. */
struct followed {
    struct followed *next;
    str uri; /* data NULL: a task */
    str id;
    int64_t seen; /* entries; -1: not looked yet */
};

struct listener {
    bool tools, prompts, resources;
    uint64_t tools_seen, prompts_seen;
    struct followed *first;
};

#define FOLLOWED_MAX 256u

/* ---- What is wanted ---- */

static bool is_true(const struct node *wanted, const char *name)
{
    const struct node *value = node_find(wanted, name);

    return value && value->kind == NODE_BOOL && value->truth;
}

static pawl_status follow(struct rpc_exchange *exchange, struct listener *listener, str uri, str id)
{
    struct followed *one = ARENA_NEW(&exchange->scope.arena, struct followed);

    TRY_MEMORY(&exchange->work, one);
    *one = (struct followed){ listener->first, uri, id, -1 };
    listener->first = one;
    return PAWL_OK;
}

static pawl_status follow_all(struct rpc_exchange *exchange, struct listener *listener,
                              const struct node *wanted)
{
    uint32_t count = 0;
    str id;

    for (const struct node *one = node_first(wanted, "resourceSubscriptions"); one; one = one->next)
        if (one->text.data && count++ < FOLLOWED_MAX)
            TRY(follow(exchange, listener, one->text, uri_process(one->text, &id) ? id : STR_NONE));
    for (const struct node *one = node_first(wanted, "taskIds"); one; one = one->next) {
        struct task_view view;

        if (one->text.data && count++ < FOLLOWED_MAX &&
            task_read(exchange, one->text, &view) == PAWL_OK)
            TRY(follow(exchange, listener, STR_NONE, one->text));
    }
    exchange->error.code = 0; /* of a task that is not the caller's: it is left out */
    return PAWL_OK;
}

static void put_honoured(const struct listener *listener, struct buf *out)
{
    json_put_open(out, "notifications", '{');
    if (listener->tools)
        json_put_bool(out, "toolsListChanged", true);
    if (listener->prompts)
        json_put_bool(out, "promptsListChanged", true);
    if (listener->resources)
        json_put_bool(out, "resourcesListChanged", true);
    for (int tasks = 0; tasks < 2; tasks++) {
        bool has_any = false;

        for (const struct followed *one = listener->first; one; one = one->next)
            has_any |= (one->uri.data == NULL) == (tasks == 1);
        if (!has_any)
            continue;
        json_put_open(out, tasks ? "taskIds" : "resourceSubscriptions", '[');
        for (const struct followed *one = listener->first; one; one = one->next)
            if ((one->uri.data == NULL) == (tasks == 1))
                json_str(out, tasks ? one->id : one->uri);
        json_close(out, ']');
    }
    json_close(out, '}');
}

/* Every message of the stream says which one it is. */
static void put_subscription(struct rpc_exchange *exchange, struct buf *out)
{
    if (!is_modern(exchange->version))
        return;
    json_put_open(out, "_meta", '{');
    json_put_raw(out, META_PREFIX "subscriptionId", exchange->id);
    json_close(out, '}');
}

static void tell(struct rpc_exchange *exchange, const char *method, str members)
{
    struct buf params;

    buf_init(&params, &heap_libc, LIMIT_SCOPE);
    buf_str(&params, members);
    put_subscription(exchange, &params);
    exchange_notify(exchange, method, buf_view(&params));
    buf_fini(&params);
}

/* ---- What has changed ---- */

static void tell_updated(struct rpc_exchange *exchange, str uri)
{
    struct buf members;

    buf_init(&members, &heap_libc, LIMIT_TEXT + 64);
    json_put_str(&members, "uri", uri);
    tell(exchange, "notifications/resources/updated", buf_view(&members));
    buf_fini(&members);
}

static void tell_task(struct rpc_exchange *exchange, const struct task_view *view)
{
    struct buf members;

    buf_init(&members, &heap_libc, LIMIT_SCOPE);
    task_print_whole(exchange, view, &members);
    tell(exchange, "notifications/tasks", buf_view(&members));
    buf_fini(&members);
}

/* How many entries it has; -1: it cannot be seen. */
static int64_t count_entries(struct rpc_exchange *exchange, str id, struct task_view *view)
{
    int64_t next = 0;

    if (!id.data || task_read(exchange, id, view) != PAWL_OK) {
        exchange->error.code = 0;
        return -1;
    }
    node_to_i64(node_find(view->instance, "next_sequence_number"), &next);
    return next;
}

static void look(struct rpc_exchange *exchange, struct followed *one)
{
    struct task_view view;
    int64_t count = count_entries(exchange, one->id, &view);
    bool has_changed = count >= 0 && one->seen >= 0 && count != one->seen;

    if (count >= 0)
        one->seen = count;
    if (has_changed && one->uri.data)
        tell_updated(exchange, one->uri);
    else if (has_changed)
        tell_task(exchange, &view);
}

/* The counter has moved on since the listener looked. */
static bool has_moved(_Atomic uint64_t *counter, uint64_t *seen)
{
    uint64_t now = atomic_load(counter);
    bool has = now != *seen;

    *seen = now;
    return has;
}

static void look_at_lists(struct rpc_exchange *exchange, struct listener *listener)
{
    bool tools = has_moved(&exchange->server->tools_changed, &listener->tools_seen);
    bool prompts = has_moved(&exchange->server->prompts_changed, &listener->prompts_seen);

    if (tools && listener->tools)
        tell(exchange, "notifications/tools/list_changed", STR(""));
    if (tools && listener->resources) /* definitions are both */
        tell(exchange, "notifications/resources/list_changed", STR(""));
    if (prompts && listener->prompts)
        tell(exchange, "notifications/prompts/list_changed", STR(""));
}

/* ---- Modern ---- */

/* One instance alone wakes only those who follow it. */
static void watch(struct rpc_exchange *exchange, const struct listener *listener)
{
    bool is_alone = !listener->tools && !listener->prompts && !listener->resources;

    for (const struct followed *one = listener->first; one; one = one->next)
        is_alone &= one->id.data && str_eq(one->id, listener->first->id);
    if (is_alone && listener->first)
        exchange_watch(exchange, listener->first->id);
    else
        exchange_watch_all(exchange);
}

static pawl_status begin(struct rpc_exchange *exchange, struct listener **out)
{
    const struct node *wanted = node_find(exchange->params, "notifications");
    struct listener *listener = ARENA_NEW(&exchange->scope.arena, struct listener);
    struct buf honoured;

    TRY_MEMORY(&exchange->work, listener);
    if (!wanted || wanted->kind != NODE_OBJECT)
        return rpc_fail(exchange, RPC_PARAMS, "params.notifications: expected an object");
    if (node_find(wanted, "taskIds") && !exchange->caps.tasks)
        return rpc_need(exchange, "{\"extensions\":{\"" TASKS_WORD "\":{}}}");
    listener->tools = is_true(wanted, "toolsListChanged");
    listener->prompts = is_true(wanted, "promptsListChanged");
    listener->resources = is_true(wanted, "resourcesListChanged");
    listener->tools_seen = atomic_load(&exchange->server->tools_changed);
    listener->prompts_seen = atomic_load(&exchange->server->prompts_changed);
    TRY(follow_all(exchange, listener, wanted));
    watch(exchange, listener);
    buf_init(&honoured, &heap_libc, LIMIT_SCOPE);
    put_honoured(listener, &honoured);
    tell(exchange, "notifications/subscriptions/acknowledged", buf_view(&honoured));
    buf_fini(&honoured);
    exchange->kept = *out = listener;
    return PAWL_OK;
}

pawl_status method_listen(struct rpc_exchange *exchange, struct buf *result)
{
    struct listener *listener = (struct listener *)(uintptr_t)exchange->kept;

    (void)result;
    if (!listener)
        TRY(begin(exchange, &listener));
    look_at_lists(exchange, listener);
    for (struct followed *one = listener->first; one; one = one->next)
        look(exchange, one);
    if (exchange->meta_out.size == 0)
        json_put_raw(&exchange->meta_out, META_PREFIX "subscriptionId", exchange->id);
    exchange->ends_well = true;
    exchange_wait(exchange, 0);
    return PAWL_OK;
}

/* ---- Legacy ---- */

/* A copy of one subscription: the session's may go while we look. */
struct looked {
    struct looked *next;
    str uri, id;
    int64_t seen;
};

static struct looked *copy_subscriptions(struct rpc_exchange *exchange)
{
    struct arena *arena = &exchange->work.arena;
    struct looked *first = NULL;

    guard_lock(&exchange->server->lock);
    for (const struct subscription *one = exchange->session->subscriptions; one; one = one->next) {
        struct looked *copy = ARENA_NEW(arena, struct looked);

        if (!copy)
            break;
        *copy = (struct looked){ first, arena_str(arena, str_of(one->uri)), STR_NONE, one->seen };
        uri_process(copy->uri, &copy->id);
        first = copy;
    }
    guard_unlock(&exchange->server->lock);
    return first;
}

static void note_seen(struct rpc_exchange *exchange, str uri, int64_t seen)
{
    guard_lock(&exchange->server->lock);
    for (struct subscription *one = exchange->session->subscriptions; one; one = one->next)
        if (str_is(uri, one->uri))
            one->seen = seen;
    guard_unlock(&exchange->server->lock);
}

/* What a session's client has subscribed to. It ends with the session. */
pawl_status method_stream(struct rpc_exchange *exchange, struct buf *result)
{
    struct listener *listener = (struct listener *)(uintptr_t)exchange->kept;

    (void)result;
    if (!listener) {
        listener = ARENA_NEW(&exchange->scope.arena, struct listener);
        TRY_MEMORY(&exchange->work, listener);
        listener->tools = listener->prompts = listener->resources = true;
        has_moved(&exchange->server->tools_changed, &listener->tools_seen);
        has_moved(&exchange->server->prompts_changed, &listener->prompts_seen);
        exchange->kept = listener;
        exchange->is_stream = true;
        exchange_watch_all(exchange);
    }
    look_at_lists(exchange, listener);
    for (const struct looked *one = copy_subscriptions(exchange); one; one = one->next) {
        struct task_view view;
        int64_t count = count_entries(exchange, one->id, &view);

        if (count < 0 || count == one->seen)
            continue;
        note_seen(exchange, one->uri, count);
        if (one->seen >= 0)
            tell_updated(exchange, one->uri);
    }
    exchange->ends_well = true;
    if (!exchange->session->has_ended)
        exchange_wait(exchange, 0);
    return PAWL_OK;
}
