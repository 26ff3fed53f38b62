/* run_request.c - what was asked for is run: here if it is quick, without any thread if it is
 * OP_ASYNC, else by a worker. Meanwhile the connection is suspended and this thread reads other
 * requests. */
#include "api/stores.h"
#include "api/world.h"
#include "surface/http/stream_int.h"
#include <poll.h>
#include <strings.h>

/* ---- Content types ---- */

/* "application/json; charset=utf-8" is application/json. */
static bool is_type(str header, const char *type)
{
    size_t size = strlen(type);

    if (header.size < size || strncasecmp(header.data, type, size) != 0)
        return false;
    return header.size == size || memchr("; \t", header.data[size], 3) != NULL;
}

static void add_format(struct web_request *request, struct route *route)
{
    str header = request_header(request, "Content-Type");
    str format = STR_NONE;

    if (is_type(header, "application/json"))
        format = STR("json");
    else if (is_type(header, "application/yaml") || is_type(header, "application/x-yaml"))
        format = STR("yaml");
    if (format.data && op_param_find(route->op, STR("format")) && route->count < HTTP_PAIRS_MAX)
        route->pairs[route->count++] = (struct op_pair){ STR("format"), format, IN_BODY };
}

/* ---- From a route to a call ---- */

/* A browser that reconnects sends the id of the last event it saw: it wins over the query. */
static void add_last_event(struct web_request *request, struct route *route)
{
    str last = request_header(request, "Last-Event-ID");
    uint32_t kept = 0;

    if (last.size == 0)
        return;
    for (uint32_t i = 0; i < route->count; i++)
        if (!str_is(route->pairs[i].name, "after"))
            route->pairs[kept++] = route->pairs[i];
    route->count = kept;
    if (route->count < HTTP_PAIRS_MAX)
        route->pairs[route->count++] = (struct op_pair){ STR("after"), last, IN_QUERY };
}

/* Connections that begin with a stream have a thread that serves nothing else: however many there
 * are, no request waits for them. Streams on other connections are limited. */
static pawl_status take_place(struct web_request *request)
{
    struct http_server *server = request->server;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_DAEMON);

    if (!server->stream_daemon || (info && info->daemon == server->stream_daemon))
        return PAWL_OK;
    request->is_shared_stream = true;
    if (atomic_fetch_add(&server->shared_streams, 1) < SHARED_STREAMS_MAX)
        return PAWL_OK;
    request->is_last = true;
    return scope_fail(&request->scope, PAWL_OVERLOADED,
                      "%u streams share connections with other requests: open this one on a "
                      "connection of its own",
                      SHARED_STREAMS_MAX);
}

/* What the request held is let go: a stream may last for days. HEAD gets the headers alone. */
static pawl_status become_stream(struct web_request *request)
{
    struct hub *hub;

    request->result.content_type = "text/event-stream";
    buf_fini(&request->answer);
    if (str_is(request->method, "HEAD"))
        return PAWL_OK;
    TRY(take_place(request));
    hub = sibling_hub(request->server, request->p);
    if (hub)
        request->stream = stream_begin(hub, request->connection, &request->result.stream);
    TRY_MEMORY(&request->scope, request->stream);
    body_release(request);
    request->store = STR_NONE; /* its name goes with the scope */
    scope_fini(&request->scope);
    scope_init(&request->scope, &heap_libc, LIMIT_SCOPE);
    return PAWL_OK;
}

/* The pairs of a route are kept in the scope: another thread may need them. */
static pawl_status find(struct web_request *request)
{
    struct scope *scope = &request->scope;
    struct op_pair *pairs;
    struct route route;

    TRY(route_find(scope, request->server->options.mounts, request->method, str_of(request->target),
                   &route, request->allow));
    request->op = route.op;
    request->is_mounted = route.is_mounted;
    request->store = route.op->flags & OP_FIRST_STORE ? STR("default") : route.store;
    if (route.op->flags & OP_TEXT_BODY)
        add_format(request, &route);
    if (route.op->flags & OP_STREAM)
        add_last_event(request, &route);
    pairs = ARENA_ARRAY(&scope->arena, struct op_pair, route.count + 1);
    TRY_MEMORY(scope, pairs);
    memcpy(pairs, route.pairs, sizeof *pairs * route.count);
    request->call.pairs = pairs;
    request->call.pair_count = route.count;
    return PAWL_OK;
}

/* A connection that is suspended does not notice that its client has gone: by its end, perhaps
 * behind a request that has not been read, or by a reset. */
static bool client_is_there(void *context)
{
    const struct web_request *request = context;
    struct pollfd look = { .fd = connection_fd(request->connection), .events = POLLRDHUP };

    return poll(&look, 1, 0) <= 0;
}

/* ---- Away and back ---- */

/* Counted first, then looked: the thread that stops the server sets the flag first, then looks at
 * the count. */
static bool try_away(struct web_request *request, bool *is_away)
{
    atomic_fetch_add(&request->server->away, 1);
    if (atomic_load(&request->server->is_stopping)) {
        atomic_fetch_sub(&request->server->away, 1);
        return false;
    }
    *is_away = true;
    request->stage = STAGE_AWAY;
    MHD_suspend_connection(request->connection);
    return true;
}

/* For a request whose scope is still its own: a call that was started may be writing to it. */
static pawl_status go_away(struct web_request *request, bool *is_away)
{
    return try_away(request, is_away)
               ? PAWL_OK
               : scope_fail(&request->scope, PAWL_OVERLOADED, "the server is stopping");
}

/* Once resumed the request may be gone; the count is the last that is touched, because the server
 * may go when it is 0. */
void request_come_back(struct web_request *request, enum request_stage stage)
{
    struct http_server *server = request->server;

    request->stage = stage;
    MHD_resume_connection(request->connection);
    atomic_fetch_sub(&server->away, 1);
}

/* ---- Running ---- */

/* Its connection is suspended. What was started by its connection's thread goes back to it, unless
 * that may take a while. */
static void end_suspension(struct web_request *request)
{
    if (request->running.wait->is_slow)
        work_add(&request->server->work, request);
    else
        request_come_back(request, STAGE_BACK);
}

static bool change_start(struct web_request *request, int to)
{
    int from = START_HERE;

    return atomic_compare_exchange_strong(&request->start, &from, to);
}

/* By the engine, which must not be held up. What has gone on since, or was started by a worker, is
 * parked or will be. */
static void on_wake(void *context)
{
    struct web_request *request = context;

    if (!(request->op->flags & OP_ASYNC) || request->goes_on)
        work_wake(&request->server->work, request);
    else if (!change_start(request, START_WOKEN)) /* else the thread that started it goes on */
        end_suspension(request);
}

static str get_header(const void *context, const char *name)
{
    return request_header(context, name);
}

/* The rest of the call, and whether its caller may: that may depend on the body. */
static pawl_status prepare(struct web_request *request)
{
    str body = buf_view(&request->body);

    if (request->by_node.header.data)
        TRY(op_check_signed_body(request->p, &request->scope, &request->by_node, body));
    /* Whatever it calls itself, it must be JSON: curl -d says it is a form. A page of another site
     * that sends one is known by its Origin. */
    if (request->op->flags & OP_TEXT_BODY)
        request->call.text = body;
    else if (strcmp(request->op->method, "GET") != 0 && body.size > 0)
        TRY(node_read_json(&request->scope, body, &request->call.body));
    request->call.key = request_header(request, "Idempotency-Key");
    request->waiter = (struct waiter){ on_wake, client_is_there, request };
    request->call.waiter = &request->waiter;
    request->call.takes_pieces = true;
    request->call.headers = (struct op_headers){ get_header, request, is_tls(request->server) };
    TRY(op_authorize(request->p, &request->scope, request->op, &request->call));
    return op_prepare(request->p, request->op, &request->call, &request->scope, &request->running);
}

static pawl_status set_up(struct web_request *request)
{
    pawl_status status = request->is_set_up ? PAWL_OK : prepare(request);

    request->is_set_up = status == PAWL_OK;
    return status;
}

/* It may last for days: what the request held is let go. */
static void become_live(struct web_request *request)
{
    body_release(request);
    if (!(request->op->flags & OP_FIRST_STORE))
        return; /* the name of its store is in the scope */
    scope_fini(&request->scope);
    scope_init(&request->scope, &heap_libc, LIMIT_SCOPE);
}

static bool is_live(const struct web_request *request)
{
    return request->result.pieces && request->result.pieces->sleep;
}

static pawl_status run(struct web_request *request, bool *waits)
{
    TRY(set_up(request));
    TRY(op_start(&request->running, &request->answer, &request->result, waits));
    if (*waits)
        return PAWL_OK;
    if (is_live(request))
        become_live(request);
    if (request->op->flags & OP_FIGURES)
        metrics_print(request->server, &request->answer);
    return request->op->flags & OP_STREAM ? become_stream(request) : PAWL_OK;
}

/* ---- By a worker ---- */

/* By a worker: the store is opened, and the connection's own thread goes on from there. A caller
 * without a token does not learn which stores there are. */
static void open_store(struct web_request *request)
{
    request->status = store_enter(request->server->p, &request->scope, request->store, &request->p);
    if (request->status != PAWL_OK) {
        pawl_error error = request->scope.error;
        pawl_status status = request_authenticate_nowhere(request);

        request->p = NULL;
        if (status == PAWL_OK)
            request->scope.error = error;
        else
            request->status = status;
    }
    request_come_back(request, request->status == PAWL_OK ? STAGE_OPENED : STAGE_BACK);
}

static pawl_status go_on(struct web_request *request, bool *waits)
{
    pawl_status status;

    request->goes_on = true;
    status = op_go_on(&request->running, atomic_load(&request->server->is_stopping),
                      &request->answer, &request->result, waits);
    if (status == PAWL_OK && !*waits && is_live(request))
        become_live(request);
    return status;
}

/* To a worker of the reach that began it. */
static void add_again(struct web_request *request)
{
    struct http_server *server = request->server;

    work_add(request->reach == OP_NEAR ? &server->work : &server->farther[request->reach], request);
}

/* By the thread that makes the next piece of a live answer. */
static void on_live(void *context)
{
    add_again(context);
}

/* The connection stays suspended; woken, the request may be another thread's before this returns.
 */
static void sleep_until_woken(struct web_request *request)
{
    struct buf was = request->answer;

    buf_init(&request->answer, was.heap, was.limit);
    buf_fini(&was);
    if (!request->result.pieces->sleep(request->result.pieces, on_live, request))
        add_again(request);
}

/* By a worker. A failure can no longer be answered: the connection ends before the answer does. */
static void read_piece(struct web_request *request)
{
    bool is_last = false;

    buf_clear(&request->answer);
    request->sent = 0;
    request->status = request->result.pieces->read(request->result.pieces, &request->scope,
                                                   &request->answer, &is_last);
    if (request->status == PAWL_OK && request->answer.failed)
        request->status = scope_no_memory(&request->scope);
    if (request->status == PAWL_OK && !is_last && request->answer.size == 0 && is_live(request)) {
        sleep_until_woken(request);
        return;
    }
    if (is_last || request->status != PAWL_OK)
        request_close_pieces(request);
    request_come_back(request, STAGE_BACK);
}

bool request_read_on(struct web_request *request)
{
    bool is_away = false;

    if (go_away(request, &is_away) != PAWL_OK)
        return false;
    request->is_reading_on = true;
    add_again(request);
    return true;
}

void request_close_pieces(struct web_request *request)
{
    if (request->result.pieces)
        request->result.pieces->close(request->result.pieces);
    request->result.pieces = NULL;
}

/* By a worker of another reach. Without a thread for it there, it is answered so. */
static void send_on(struct web_request *request, enum op_reach reach)
{
    request->reach = reach;
    if (work_add_lazily(&request->server->farther[reach], request))
        return;
    request->status = scope_no_memory(&request->scope);
    request_come_back(request, STAGE_BACK);
}

/* How far has it to reach before it can go on? */
static enum op_reach reach_of(struct web_request *request)
{
    return request->is_mounted && op_has_nodes(request->p) ? OP_FAR : op_reach(&request->running);
}

static void work_on(struct web_request *request)
{
    bool waits = false;

    request->running.is_near = request->reach == OP_NEAR;
    request->status = request->is_waiting || request->running.again ? go_on(request, &waits)
                                                                    : run(request, &waits);
    if (request->running.is_elsewhere && request->reach == OP_NEAR) {
        send_on(request, OP_FAR);
        return;
    }
    request->is_waiting = waits;
    if (waits) {
        request->reach = OP_NEAR; /* whoever goes on looks again */
        work_park(&request->server->work, request, request->running.wait->left_ms);
        return;
    }
    if (request->status == PAWL_OK)
        answer_prepare(request, true);
    request_come_back(request, STAGE_BACK);
}

/* By a worker. */
void request_work(struct web_request *request)
{
    enum op_reach reach;

    if (request->is_reading_on) {
        read_piece(request);
        return;
    }
    if (!request->p) {
        open_store(request);
        return;
    }
    request->status = request->is_waiting ? PAWL_OK : set_up(request);
    if (request->status != PAWL_OK) {
        request_come_back(request, STAGE_BACK);
        return;
    }
    reach = reach_of(request);
    if (reach > request->reach)
        send_on(request, reach);
    else
        work_on(request);
}

/* By the connection's thread. False: it waits again, for what may take long. */
static bool go_on_here(struct web_request *request)
{
    bool waits, is_away = false;

    request->running.is_near = true;
    request->status = go_on(request, &waits);
    while (waits &&
           go_away(request, &is_away) != PAWL_OK) { /* the server stops: soon it will not */
        (void)poll(NULL, 0, 1);
        request->status = go_on(request, &waits);
    }
    request->is_waiting = waits;
    if (waits)
        work_park(&request->server->work, request, request->running.wait->left_ms);
    return !waits;
}

/* It was started, and waits. It may be woken at once, because this thread has committed it: then
 * the connection is not suspended. If the server stops, that will be soon. */
static bool is_suspended(struct web_request *request, bool *is_away)
{
    while (atomic_load(&request->start) == START_HERE) {
        if (try_away(request, is_away)) {
            if (!change_start(request, START_AWAY))
                end_suspension(request);
            return true;
        }
        (void)poll(NULL, 0, 1);
    }
    if (!request->running.wait->is_slow || !try_away(request, is_away))
        return false;
    work_add(&request->server->work, request);
    return true;
}

static pawl_status hand_over(struct web_request *request, bool *is_away)
{
    if (!work_has_room(&request->server->work)) {
        count_refused(request->server, HTTP_LIMIT_WORK);
        return scope_fail(&request->scope, PAWL_OVERLOADED,
                          "%u requests are waiting already; try later", WORK_MAX);
    }
    TRY(go_away(request, is_away));
    work_add(&request->server->work, request);
    return PAWL_OK;
}

/* Without a worker. */
static pawl_status start_async(struct web_request *request, bool *is_away)
{
    bool waits;

    TRY(set_up(request));
    if (op_is_away(&request->running)) { /* by a worker, which waits for another node */
        request->goes_on = true;
        return hand_over(request, is_away);
    }
    request->status = op_start(&request->running, &request->answer, &request->result, &waits);
    request->is_waiting = waits;
    if (!waits && request->status == PAWL_OK && is_live(request))
        become_live(request);
    if (waits && (is_suspended(request, is_away) || !go_on_here(request)))
        *is_away = true; /* another thread has it */
    return *is_away ? PAWL_OK : request->status;
}

/* ---- By its head ---- */

/* Before the body is read: an unauthenticated caller learns nothing from its errors. */
static pawl_status admit(struct web_request *request)
{
    TRY(request_authenticate(request, request->p));
    TRY(op_authorize_early(&request->scope, request->op, &request->call.who));
    request->is_admitted = true;
    return PAWL_OK;
}

/* A worker opens a store that is not open, if the request has a token or none is needed. A short
 * body is read first: the connection is best suspended after the whole request. */
static pawl_status open_later(struct web_request *request, bool *is_away)
{
    bool is_short = request->length <= HTTP_EARLY_MAX && !request_header(request, "Expect").data;

    if (!request_has_token(request) && request->server->needs_token)
        return request_authenticate_nowhere(request);
    return is_short ? PAWL_OK : hand_over(request, is_away);
}

bool request_enter(struct web_request *request)
{
    bool is_away = false;
    pawl_status status = PAWL_OK;

    if (request->stage == STAGE_BACK) /* its store could not be opened */
        return false;
    if (request->stage == STAGE_COMING)
        status = find(request);
    if (request->stage == STAGE_COMING && status == PAWL_OK) {
        request->p = store_enter_open(request->server->p, request->store);
        status = request->p ? PAWL_OK : open_later(request, &is_away);
    }
    if (is_away)
        return true;
    if (status == PAWL_OK && request->p)
        status = admit(request);
    request->status = status;
    return false;
}

/* ---- The whole request is there ---- */

bool request_is_quick(const struct web_request *request)
{
    const struct op_headers headers = { get_header, request, is_tls(request->server) };

    return request->op->flags & OP_QUICK ||
           (request->op->is_quick && request->op->is_quick(&headers));
}

/* An operation that keeps its answer for a key may have to wait for another call with that key. */
static pawl_status start(struct web_request *request, bool *is_away)
{
    unsigned flags = request->op->flags;
    bool waits = false; /* what is quick does not */

    if (!request->p)
        return hand_over(request, is_away);
    TRY(request->is_admitted ? PAWL_OK : admit(request));
    if (request->is_mounted && !work_has_room(&request->server->work)) {
        request->goes_on = true;
        return hand_over(request, is_away); /* which refuses it: it may need a worker */
    }
    if ((flags & OP_ASYNC) &&
        ((flags & OP_KEY_IN_RECORD) || !request_header(request, "Idempotency-Key").data))
        return start_async(request, is_away);
    if ((flags & OP_QUICK) && !op_may_be_away(request->p, request->op))
        return run(request, &waits);
    return hand_over(request, is_away);
}

bool request_run(struct web_request *request)
{
    bool is_away = false;
    pawl_status status;

    if (request->stage == STAGE_BACK)
        return request->is_waiting && !go_on_here(request);
    if (request->status != PAWL_OK)
        return false;
    status = start(request, &is_away);
    if (!is_away) /* else another thread has it, and may have finished it already */
        request->status = status;
    return is_away;
}
