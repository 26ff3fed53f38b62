/* listener.c - what clients subscribe to: changed lists, changed resources, tasks. Modern by
 * subscriptions/listen, legacy by the stream of a session. */
#include "surface/mcp/mcp_int.h"

/* One resource or task that a listener follows. */
struct followed {
    struct followed *next;
    struct mcp_watch watch;
    str uri; /* data NULL: a task */
    str id;  /* of a task */
    int64_t seen;
};

struct listener {
    bool tools, prompts, resources;
    uint64_t tools_seen, prompts_seen;
    struct followed *first;
    uint32_t count;
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
    struct followed *one = ARENA_NEW(&exchange->arena, struct followed);
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number = 0;

    TRY_MEMORY(&exchange->turn->work, one);
    *one = (struct followed){ listener->first,
                              { 0 },
                              arena_str(&exchange->arena, uri),
                              arena_str(&exchange->arena, id),
                              -1 };
    TRY_MEMORY(&exchange->turn->work, one->uri.data || one->id.data);
    if (!uri.data)
        (void)id_parse(id, &number, random);
    exchange_follow(exchange, &one->watch, uri.data ? uri_instance(uri) : number);
    listener->first = one;
    listener->count++;
    return PAWL_OK;
}

/* What there is for this caller. */
static pawl_status follow_all(struct rpc_exchange *exchange, struct listener *listener,
                              const struct node *wanted)
{
    for (const struct node *one = node_first(wanted, "resourceSubscriptions"); one; one = one->next)
        if (one->text.data && listener->count < FOLLOWED_MAX &&
            resource_stamp(exchange, one->text) >= 0)
            TRY(follow(exchange, listener, one->text, STR_NONE));
    for (const struct node *one = node_first(wanted, "taskIds"); one; one = one->next) {
        struct task_view view;

        if (one->text.data && listener->count < FOLLOWED_MAX &&
            task_look(exchange, one->text, &view) == PAWL_OK)
            TRY(follow(exchange, listener, STR_NONE, one->text));
    }
    exchange->turn->error.code = 0; /* of a task that is not the caller's: it is left out */
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

/* How many entries a task has; -1: it cannot be seen. */
static int64_t task_stamp(struct rpc_exchange *exchange, str id, struct task_view *view)
{
    int64_t next = -1;

    if (task_look(exchange, id, view) == PAWL_OK)
        node_to_i64(node_find(view->instance, "next_sequence_number"), &next);
    exchange->turn->error.code = 0;
    return next;
}

/* `lists_moved`: definitions have changed. */
static void look(struct rpc_exchange *exchange, struct followed *one, bool lists_moved)
{
    bool may_have = watch_take(exchange->server, &one->watch) || one->seen < 0 ||
                    (lists_moved && !one->watch.instance);
    struct task_view view;
    int64_t stamp, seen = one->seen;

    if (!may_have)
        return;
    stamp =
        one->uri.data ? resource_stamp(exchange, one->uri) : task_stamp(exchange, one->id, &view);
    if (stamp < 0 || stamp == seen)
        return;
    one->seen = stamp;
    if (seen >= 0 && one->uri.data)
        tell_updated(exchange, one->uri);
    else if (seen >= 0)
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

/* True: definitions have changed. */
static bool look_at_lists(struct rpc_exchange *exchange, struct listener *listener)
{
    bool tools = has_moved(&exchange->server->tools_changed, &listener->tools_seen);
    bool prompts = has_moved(&exchange->server->prompts_changed, &listener->prompts_seen);

    if (tools && listener->tools)
        tell(exchange, "notifications/tools/list_changed", STR(""));
    if (tools && listener->resources) /* definitions are both */
        tell(exchange, "notifications/resources/list_changed", STR(""));
    if (prompts && listener->prompts)
        tell(exchange, "notifications/prompts/list_changed", STR(""));
    return tools;
}

/* ---- Modern ---- */

static bool needs_lists(const struct listener *listener)
{
    bool needs = listener->tools || listener->prompts || listener->resources;

    for (const struct followed *one = listener->first; one; one = one->next)
        needs |= one->uri.data && !one->watch.instance;
    return needs;
}

static pawl_status read_wanted(struct rpc_exchange *exchange, const struct node *wanted,
                               struct listener **out)
{
    struct listener *listener = ARENA_NEW(&exchange->arena, struct listener);

    TRY_MEMORY(&exchange->turn->work, listener);
    listener->tools = is_true(wanted, "toolsListChanged");
    listener->prompts = is_true(wanted, "promptsListChanged");
    listener->resources = is_true(wanted, "resourcesListChanged");
    listener->tools_seen = atomic_load(&exchange->server->tools_changed);
    listener->prompts_seen = atomic_load(&exchange->server->prompts_changed);
    TRY(follow_all(exchange, listener, wanted));
    *out = listener;
    return PAWL_OK;
}

static void acknowledge(struct rpc_exchange *exchange, const struct listener *listener)
{
    struct buf honoured;

    buf_init(&honoured, &heap_libc, LIMIT_SCOPE);
    put_honoured(listener, &honoured);
    tell(exchange, "notifications/subscriptions/acknowledged", buf_view(&honoured));
    buf_fini(&honoured);
}

static pawl_status begin(struct rpc_exchange *exchange, struct listener **out)
{
    const struct node *wanted = node_find(exchange->params, "notifications");
    struct arena message;
    pawl_status status;

    if (!wanted || wanted->kind != NODE_OBJECT)
        return rpc_fail(exchange, RPC_PARAMS, "params.notifications: expected an object");
    if (node_find(wanted, "taskIds") && !exchange->caps.tasks)
        return rpc_need(exchange, "{\"extensions\":{\"" TASKS_WORD "\":{}}}");
    status = exchange_settle(exchange, &message);
    if (status == PAWL_OK)
        status = read_wanted(exchange, wanted, out);
    arena_fini(&message);
    TRY(status);
    exchange->kept = *out;
    if (needs_lists(*out))
        exchange_follow_lists(exchange);
    watcher_join(exchange);
    acknowledge(exchange, *out);
    json_put_raw(&exchange->meta_out, META_PREFIX "subscriptionId", exchange->id);
    return PAWL_OK;
}

pawl_status method_listen(struct rpc_exchange *exchange, struct buf *result)
{
    struct listener *listener = (struct listener *)(uintptr_t)exchange->kept;
    bool lists_moved;

    (void)result;
    if (!listener)
        TRY(begin(exchange, &listener));
    lists_moved = look_at_lists(exchange, listener);
    for (struct followed *one = listener->first; one; one = one->next)
        look(exchange, one, lists_moved);
    exchange->ends_well = true;
    exchange_wait(exchange, 0);
    return PAWL_OK;
}

/* ---- Legacy ---- */

/* A copy of one subscription: the session's may go while we look. */
struct looked {
    struct looked *next;
    str uri;
    int64_t seen;
};

static struct looked *copy_changed(struct rpc_exchange *exchange, bool lists_moved)
{
    struct arena *arena = &exchange->turn->work.arena;
    struct looked *first = NULL;

    guard_lock(&exchange->server->lock);
    for (struct subscription *one = exchange->session->subscriptions; one; one = one->next) {
        struct looked *copy;

        if (!one->watch.has_changed && !(lists_moved && !one->watch.instance))
            continue;
        copy = ARENA_NEW(arena, struct looked);
        if (!copy)
            break;
        one->watch.has_changed = false;
        *copy = (struct looked){ first, arena_str(arena, str_of(one->uri)), one->seen };
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

static pawl_status begin_stream(struct rpc_exchange *exchange, struct listener **out)
{
    struct listener *listener = ARENA_NEW(&exchange->arena, struct listener);

    TRY_MEMORY(&exchange->turn->work, listener);
    listener->tools = listener->prompts = listener->resources = true;
    has_moved(&exchange->server->tools_changed, &listener->tools_seen);
    has_moved(&exchange->server->prompts_changed, &listener->prompts_seen);
    exchange->kept = *out = listener;
    exchange->is_stream = true;
    exchange_follow_lists(exchange);
    return PAWL_OK;
}

/* What a session's client has subscribed to. It ends with the session. */
pawl_status method_stream(struct rpc_exchange *exchange, struct buf *result)
{
    struct listener *listener = (struct listener *)(uintptr_t)exchange->kept;
    bool lists_moved;

    (void)result;
    if (!listener)
        TRY(begin_stream(exchange, &listener));
    lists_moved = look_at_lists(exchange, listener);
    for (const struct looked *one = copy_changed(exchange, lists_moved); one; one = one->next) {
        int64_t stamp = resource_stamp(exchange, one->uri);

        if (stamp < 0 || stamp == one->seen)
            continue;
        note_seen(exchange, one->uri, stamp);
        tell_updated(exchange, one->uri);
    }
    exchange->ends_well = true;
    if (!exchange->session->has_ended)
        exchange_wait(exchange, 0);
    return PAWL_OK;
}
