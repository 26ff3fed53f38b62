/* http_mcp.c - /mcp: one message a POST; of a legacy session also its stream and its end. */
#include "surface/mcp/http_mcp.h"

static const struct op_param no_params[] = { { 0 } };
static const struct op_header stream_headers[] = {
    { "X-Accel-Buffering", "no", &stream_headers[1] },
    { "Cache-Control", "no-store", NULL },
};

/* A row lies in its server. */
static struct mcp_server *server_of(const struct op *op, enum mcp_row row)
{
    const char *rows = (const char *)(op - row);

    return (struct mcp_server *)(uintptr_t)(rows - offsetof(struct mcp_server, rows));
}

static pawl_status exchange_of(struct op_call *call, enum mcp_row row, struct rpc_exchange **out)
{
    *out = exchange_new(server_of(call->op, row), OVER_HTTP);
    TRY_MEMORY(call->scope, *out);
    (*out)->headers = call->request_headers;
    if (caller_keep(*out, &call->who) == PAWL_OK)
        return PAWL_OK;
    exchange_free(*out);
    return scope_no_memory(call->scope);
}

/* ---- Answers ---- */

static pawl_status answer_error(struct op_call *call, struct rpc_exchange *exchange,
                                struct buf *out)
{
    error_print(exchange, out);
    call->http_status = exchange->http_status;
    exchange_free(exchange);
    return PAWL_OK;
}

static pawl_status answer_nothing(struct op_call *call, struct rpc_exchange *exchange, int http)
{
    call->http_status = http;
    call->content_type = "";
    exchange_free(exchange);
    return PAWL_OK;
}

/* The client learns its session's id with the answer to initialize. */
static pawl_status add_session(struct op_call *call, const struct rpc_exchange *exchange)
{
    struct op_header *header;

    if (!str_is(exchange->method_name, "initialize") || !exchange->session)
        return PAWL_OK;
    header = ARENA_NEW(&call->scope->arena, struct op_header);
    TRY_MEMORY(call->scope, header);
    header->name = "Mcp-Session-Id";
    header->value = arena_text(&call->scope->arena, str_of(exchange->session->id));
    TRY_MEMORY(call->scope, header->value);
    call->answer_headers = header;
    return PAWL_OK;
}

static pawl_status answer(struct op_call *call, struct rpc_exchange *exchange, struct buf *out)
{
    pawl_status status = PAWL_OK;

    exchange->headers = (struct op_headers){ 0 };
    if (exchange->is_done && !exchange->is_stream) {
        status = add_session(call, exchange);
        call->http_status = exchange->http_status;
        call->lacks = exchange->http_status == 403 ? exchange->lacks : NULL;
        buf_str(out, buf_view(&exchange->answer));
        exchange_free(exchange);
        return status;
    }
    exchange_take(exchange, out);
    call->content_type = "text/event-stream";
    call->answer_headers = stream_headers;
    if (exchange->is_done)
        exchange_free(exchange);
    else
        call->pieces = &exchange->pieces;
    return PAWL_OK;
}

/* ---- POST ---- */

static void take_notification(struct rpc_exchange *exchange)
{
    if (str_is(exchange->method_name, "notifications/cancelled"))
        exchange_cancelled(exchange);
}

/* One message of a batch; its answer, if it has one, is added. */
static void run_in_batch(struct rpc_exchange *batch, struct node *message, struct buf *out)
{
    struct rpc_exchange *one = exchange_new(batch->server, OVER_HTTP);

    if (!one)
        return;
    one->headers = batch->headers;
    if (caller_keep(one, &batch->who) == PAWL_OK)
        exchange_in_batch(one, message, out);
    else
        exchange_refused_in_batch(one, out);
    exchange_free(one);
}

/* 2025-03-26 alone has batches. */
static pawl_status run_batch(struct op_call *call, struct rpc_exchange *exchange, struct buf *out)
{
    str id = exchange->headers.get(exchange->headers.context, "Mcp-Session-Id");
    struct node *next;

    exchange->session = id.data ? session_find(exchange->server, id, &exchange->who) : NULL;
    if (!exchange->session || exchange->session->version != MCP_2025_03_26 ||
        exchange->message->count == 0 || exchange->message->count > RPC_BATCH_MAX) {
        rpc_fail(exchange, RPC_REQUEST, "expected one message, found a batch");
        return answer_error(call, exchange, out);
    }
    json_open(out, '[');
    for (struct node *one = exchange->message->first; one; one = next) {
        next = one->next;
        run_in_batch(exchange, one, out);
    }
    json_close(out, ']');
    if (out->size == 2) {
        buf_clear(out);
        return answer_nothing(call, exchange, 202);
    }
    exchange_free(exchange);
    return PAWL_OK;
}

/* A message that waits for a worker, or for a commit. */
struct post_wait {
    struct op_wait wait; /* first */
    struct op_call *call;
    struct rpc_exchange *exchange;
    struct waiter waiter; /* of the operation that it has under way */
};

/* By the drain perhaps. */
static void on_answer(void *context)
{
    struct post_wait *waiting = context;
    const struct waiter *waiter = waiting->call->waiter;

    waiting->wait.is_slow = waiting->exchange->under_way->wait->is_slow;
    waiter->wake(waiter->context);
}

static bool is_there(void *context)
{
    const struct waiter *waiter = ((struct post_wait *)context)->call->waiter;

    return !waiter->is_there || waiter->is_there(waiter->context);
}

/* A worker runs it. */
static pawl_status hand_over(struct post_wait *waiting)
{
    const struct waiter *waiter = waiting->call->waiter;

    waiting->wait.is_slow = true;
    waiter->wake(waiter->context);
    return PAWL_OK;
}

static pawl_status post_go_on(struct op_call *call, bool is_stopping, struct buf *out);

static struct post_wait *begin_wait(struct op_call *call, struct rpc_exchange *exchange)
{
    struct post_wait *waiting = ARENA_NEW(&call->scope->arena, struct post_wait);

    if (!waiting)
        return NULL;
    *waiting = (struct post_wait){
        { .go_on = post_go_on }, call, exchange, { on_answer, is_there, waiting }
    };
    op_waits(call, &waiting->wait);
    return waiting;
}

/* On the thread that has read it, which has others to read. */
static pawl_status start(struct op_call *call, struct rpc_exchange *exchange, struct buf *out)
{
    struct post_wait *waiting = begin_wait(call, exchange);

    if (!waiting) {
        exchange_free(exchange);
        return scope_no_memory(call->scope);
    }
    if (!exchange_is_quick(exchange))
        return hand_over(waiting);
    exchange_start(exchange, &waiting->waiter);
    if (exchange->needs_thread)
        return hand_over(waiting);
    if (exchange->under_way)
        return PAWL_OK;
    *call->waits = false;
    call->wait = NULL;
    return answer(call, exchange, out);
}

static str text_of(const struct op_call *call)
{
    const struct node *text = node_find(call->input, "text");

    return text ? text->text : STR("");
}

static pawl_status take_message(struct op_call *call, struct buf *out)
{
    struct rpc_exchange *exchange;

    TRY(exchange_of(call, ROW_POST, &exchange));
    if (!message_read(exchange, text_of(call)))
        return answer_error(call, exchange, out);
    if (exchange->message->kind == NODE_ARRAY)
        return run_batch(call, exchange, out);
    if (!era_enter(exchange))
        return answer_error(call, exchange, out);
    if (!exchange->method_name.data) {
        exchange_answered(exchange);
        return answer_nothing(call, exchange, 202);
    }
    if (!exchange->id.data) {
        take_notification(exchange);
        return answer_nothing(call, exchange, 202);
    }
    if (call->waiter)
        return start(call, exchange, out);
    exchange_run(exchange);
    return answer(call, exchange, out);
}

static pawl_status post_go_on(struct op_call *call, bool is_stopping, struct buf *out)
{
    struct rpc_exchange *exchange = ((struct post_wait *)call->wait)->exchange;

    if (!exchange) {
        call->waiter = NULL;
        return take_message(call, out);
    }
    if (!exchange_go_on(exchange, is_stopping))
        return answer(call, exchange, out);
    *call->waits = true;
    return PAWL_OK;
}

#define SHORT_MESSAGE ((size_t)64 << 10)

/* A long message, or a batch, is not even read by a thread that has others to read. */
static pawl_status post(struct op_call *call, struct buf *out)
{
    str text = text_of(call);
    struct post_wait *waiting;
    bool is_long = text.size > SHORT_MESSAGE || str_starts(str_trim(text, " \t\r\n"), STR("["));

    if (!call->waiter || !is_long)
        return take_message(call, out);
    waiting = begin_wait(call, NULL);
    TRY_MEMORY(call->scope, waiting);
    return hand_over(waiting);
}

/* ---- Of a session ---- */

/* NULL: the answer is made. */
static struct rpc_exchange *enter_session(struct op_call *call, enum mcp_row row, struct buf *out,
                                          pawl_status *status)
{
    struct rpc_exchange *exchange;
    str id;

    *status = exchange_of(call, row, &exchange);
    if (*status != PAWL_OK)
        return NULL;
    id = call->request_headers.get
             ? call->request_headers.get(call->request_headers.context, "Mcp-Session-Id")
             : STR_NONE;
    exchange->session = id.data ? session_find(exchange->server, id, &exchange->who) : NULL;
    if (exchange->session)
        return exchange;
    rpc_fail(exchange, RPC_REQUEST,
             id.data ? "no such session: initialize again" : "2026-07-28 takes POST alone");
    exchange->turn->error.http = id.data ? 404 : 405;
    *status = answer_error(call, exchange, out);
    return NULL;
}

static pawl_status get(struct op_call *call, struct buf *out)
{
    pawl_status status;
    struct rpc_exchange *exchange = enter_session(call, ROW_GET, out, &status);

    if (!exchange)
        return status;
    exchange->version = exchange->session->version;
    exchange->method = &stream_method;
    exchange_run(exchange);
    return answer(call, exchange, out);
}

static pawl_status delete_session(struct op_call *call, struct buf *out)
{
    pawl_status status;
    struct rpc_exchange *exchange = enter_session(call, ROW_DELETE, out, &status);

    if (!exchange)
        return status;
    session_end(exchange->server, exchange->session);
    return answer_nothing(call, exchange, 204);
}

/* ---- RFC 9728 ---- */

/* Tokens are made by `pawl token create`: there is no authorization server to name. */
static pawl_status metadata(struct op_call *call, struct buf *out)
{
    str host = call->request_headers.get
                   ? call->request_headers.get(call->request_headers.context, "Host")
                   : STR_NONE;

    json_open(out, '{');
    json_key(out, "resource");
    buf_fmt(out, "\"%s://%.*s/mcp\"", call->request_headers.is_tls ? "https" : "http",
            STR_ARG(host));
    json_put_text(out, "resource_name", "pawl");
    json_put_open(out, "bearer_methods_supported", '[');
    json_text(out, "header");
    json_close(out, ']');
    buf_str(out, STR(",\"scopes_supported\":[\"read\",\"write\",\"work\",\"define\",\"admin\"]}"));
    return PAWL_OK;
}

/* By the header that repeats the method: a message that says something else is refused. */
static bool is_quick(const struct op_headers *headers)
{
    str name = headers->get(headers->context, "Mcp-Method");
    const struct mcp_method *method = name.data ? method_find(name) : NULL;

    return method && method->is_quick;
}

#define MCP_FLAGS (OP_RAW_ANSWER | OP_FIRST_STORE)

void rows_fill(struct mcp_server *server)
{
    static const struct op rows[MCP_ROWS] = {
        [ROW_POST] = { "mcp.post", "POST", "/mcp",
                       MCP_FLAGS | OP_TEXT_BODY | OP_ASYNC | OP_KEY_IN_RECORD, 200, "one message",
                       no_params, post, "any", .is_quick = is_quick },
        [ROW_GET] = { "mcp.get", "GET", "/mcp", MCP_FLAGS, 200, "the stream of a session",
                      no_params, get, "any" },
        [ROW_DELETE] = { "mcp.delete", "DELETE", "/mcp", MCP_FLAGS, 204, "the end of a session",
                         no_params, delete_session, "any" },
        [ROW_METADATA] = { "mcp.metadata", "GET", "/.well-known/oauth-protected-resource",
                           MCP_FLAGS | OP_QUICK, 200, "how to get in", no_params, metadata,
                           "none" },
        [ROW_METADATA_MCP] = { "mcp.metadata", "GET", "/.well-known/oauth-protected-resource/mcp",
                               MCP_FLAGS | OP_QUICK, 200, "how to get in", no_params, metadata,
                               "none" },
    };

    memcpy(server->rows, rows, sizeof rows);
}
