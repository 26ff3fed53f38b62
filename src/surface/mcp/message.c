/* message.c - JSON-RPC: what a message is, and how an error is printed. */
#include "surface/mcp/mcp_int.h"
#include <stdio.h>

/* ---- Errors ---- */

static int http_of(const struct rpc_exchange *exchange, int code)
{
    switch (code) {
    case RPC_METHOD:
        return is_modern(exchange->version) ? 404 : 200;
    case RPC_PARSE:
    case RPC_REQUEST:
    case RPC_HEADERS:
    case RPC_CAPABILITY:
    case RPC_VERSION:
        return 400;
    default:
        return 200;
    }
}

pawl_status rpc_fail(struct rpc_exchange *exchange, int code, const char *format, ...)
{
    va_list arguments;

    exchange->turn->error = (struct rpc_error){ .code = code };
    va_start(arguments, format);
    vsnprintf(exchange->turn->error.message, sizeof exchange->turn->error.message, format,
              arguments);
    va_end(arguments);
    return PAWL_INVALID_REQUEST;
}

/* Not the caller's is as good as not there. What the store or this process lacks is our error. */
pawl_status rpc_fail_as(struct rpc_exchange *exchange, pawl_status status)
{
    char detail[OP_DETAIL_SIZE];
    bool is_ours = status == PAWL_NO_MEMORY || status == PAWL_STORAGE_FAILURE ||
                   status == PAWL_OUTCOME_UNKNOWN || status == PAWL_OVERLOADED ||
                   status == PAWL_IN_USE;

    if (exchange->turn->error.code)
        return status;
    return rpc_fail(exchange, is_ours ? RPC_INTERNAL : RPC_PARAMS, "%s: %s",
                    pawl_status_name(status),
                    op_detail(status, exchange->turn->work.error.message, detail));
}

pawl_status rpc_need(struct rpc_exchange *exchange, const char *capabilities)
{
    struct buf data;

    rpc_fail(exchange, RPC_CAPABILITY,
             "the client has to declare a capability for this: requiredCapabilities names it");
    buf_init(&data, &heap_libc, LIMIT_TEXT);
    buf_fmt(&data, "{\"requiredCapabilities\":%s}", capabilities);
    exchange->turn->error.data = buf_take(&data, &exchange->arena);
    return PAWL_INVALID_REQUEST;
}

/* An error without a readable id has none; `null` is for the legacy era's JSON-RPC readers. */
void error_print(struct rpc_exchange *exchange, struct buf *out)
{
    const struct rpc_error *error = &exchange->turn->error;
    str message = str_of(error->message);

    while (message.size > 0 && !str_is_utf8(message, false)) /* a character was cut */
        message.size--;
    json_open(out, '{');
    json_put_text(out, "jsonrpc", "2.0");
    json_opt_raw(out, "id", exchange->id);
    json_put_open(out, "error", '{');
    json_put_i64(out, "code", error->code);
    json_put_str(out, "message", message);
    json_opt_raw(out, "data", error->data);
    json_close(out, '}');
    json_close(out, '}');
    exchange->http_status = error->http ? error->http : http_of(exchange, error->code);
}

/* ---- Messages ---- */

/* A string or an integer. */
static bool is_id(const struct node *id)
{
    int64_t number;

    return id->kind == NODE_STRING || (id->kind == NODE_NUMBER && node_to_i64(id, &number));
}

static bool take_id(struct rpc_exchange *exchange, const struct node *id)
{
    if (!id)
        return true;
    if (!is_id(id)) {
        rpc_fail(exchange, RPC_REQUEST, "id: expected a string or an integer, found %s",
                 node_kind_name(id->kind));
        return false;
    }
    exchange->id = id->raw;
    return true;
}

static bool take_params(struct rpc_exchange *exchange, struct node *params)
{
    if (params && params->kind != NODE_OBJECT) {
        rpc_fail(exchange, RPC_PARAMS, "params: expected an object, found %s",
                 node_kind_name(params->kind));
        exchange->turn->error.http = 400;
        return false;
    }
    exchange->params = params;
    exchange->meta = node_find(params, "_meta");
    exchange->progress_token = node_raw(exchange->meta, "progressToken");
    return true;
}

bool message_take(struct rpc_exchange *exchange, struct node *message)
{
    exchange->message = message;
    if (message->kind != NODE_OBJECT || !str_is(node_text(message, "jsonrpc"), "2.0")) {
        rpc_fail(exchange, RPC_REQUEST,
                 "expected a JSON-RPC message: an object with \"jsonrpc\": \"2.0\"");
        return false;
    }
    if (!take_id(exchange, node_find(message, "id")))
        return false;
    exchange->method_name = node_text(message, "method");
    if (!exchange->method_name.data &&
        (!exchange->id.data || (!node_find(message, "result") && !node_find(message, "error")))) {
        rpc_fail(exchange, RPC_REQUEST, "expected a method, or the answer to a request");
        return false;
    }
    return take_params(exchange, node_find(message, "params"));
}

/* The text is copied: an exchange may outlive the bytes that it came in. */
bool message_read(struct rpc_exchange *exchange, str text)
{
    struct node *message = NULL;
    pawl_status status = PAWL_NO_MEMORY;
    str kept = arena_str(&exchange->arena, text.data ? text : STR(""));

    if (kept.data)
        status = exchange_read(exchange, node_read_json, kept, &message);
    if (status == PAWL_OK) {
        exchange->message = message;
        return message->kind == NODE_ARRAY || message_take(exchange, message);
    }
    if (status == PAWL_NO_MEMORY)
        rpc_fail(exchange, RPC_INTERNAL, "no memory for this message");
    else
        rpc_fail(exchange, RPC_PARSE, "not JSON: %s", exchange->turn->work.error.message);
    return false;
}

const struct node *reply_result(struct rpc_exchange *exchange)
{
    struct node *message;

    if (!exchange->reply.data ||
        node_read_json(&exchange->turn->work, exchange->reply, &message) != PAWL_OK)
        return NULL;
    return node_find(message, "result");
}
