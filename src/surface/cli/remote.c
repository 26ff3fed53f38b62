/* remote.c - (operation, input) -> method, path, query and body; the answer, or the problem
 * as a status with the server's words. The reverse of what the HTTP surface does. */
#include "surface/cli/remote.h"
#include "base/assert.h"

#define TARGET_MAX ((size_t)64 << 10)

static void put_escaped(struct buf *out, str text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte && strchr(plain, byte))
            buf_byte(out, byte);
        else
            buf_fmt(out, "%%%02X", byte);
    }
}

/* A member as text: a string's characters, anything else as it is written. */
static str text_of(const struct node *node)
{
    if (node->kind == NODE_STRING)
        return node->text;
    return node->raw;
}

static const struct op_param *find_param(const struct op *op, str name)
{
    for (const struct op_param *param = op->params; param && param->name; param++)
        if (str_is(name, param->name))
            return param;
    return NULL;
}

static enum op_place place_of(const struct op *op, const struct node *member)
{
    const struct op_param *param = find_param(op, member->key);

    if (param)
        return param->place;
    return op->flags & OP_ANY_QUERY ? IN_QUERY : IN_BODY;
}

/* "/v1/..." of a store is "/v1/stores/NAME/...". */
static pawl_status put_path(const struct client *client, const struct op *op,
                            const struct node *input, struct scope *scope, struct buf *out)
{
    bool is_inside = client->store[0] && strncmp(op->path, "/v1/", 4) == 0;

    buf_str(out, str_of(is_inside ? client->store : ""));
    for (const char *at = op->path + (is_inside ? 3 : 0); *at; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        const struct node *member;

        if (!end) {
            buf_byte(out, (unsigned char)*at);
            continue;
        }
        member = node_find_str(input, (str){ at + 1, (size_t)(end - at - 1) });
        if (!member || text_of(member).size == 0)
            return scope_fail(scope, PAWL_INVALID_REQUEST, "%.*s must not be empty",
                              (int)(end - at - 1), at + 1);
        put_escaped(out, text_of(member));
        at = end;
    }
    return PAWL_OK;
}

static void put_query(const struct op *op, const struct node *input, struct buf *out)
{
    char mark = '?';

    for (const struct node *member = input->first; member; member = member->next) {
        if (place_of(op, member) != IN_QUERY)
            continue;
        buf_byte(out, (unsigned char)mark);
        put_escaped(out, member->key);
        buf_byte(out, '=');
        put_escaped(out, text_of(member));
        mark = '&';
    }
}

static void put_body(const struct op *op, const struct node *input, struct buf *body,
                     struct http_request *request)
{
    const struct node *text = node_find(input, "text");

    if (strcmp(op->method, "GET") == 0)
        return;
    request->content_type = "application/json";
    if (op->flags & OP_TEXT_BODY) {
        request->body = text ? text->text : STR("");
        if (!text_looks_like_json(request->body))
            request->content_type = "application/yaml";
        return;
    }
    json_open(body, '{');
    for (const struct node *member = input->first; member; member = member->next) {
        if (place_of(op, member) != IN_BODY || str_is(member->key, "idempotency_key"))
            continue;
        json_key_str(body, member->key);
        json_raw(body, member->raw);
    }
    json_close(body, '}');
    request->body = buf_view(body);
}

static pawl_status status_of(str token)
{
#define X(name, code, text, http, meaning)                                                         \
    if (str_is(token, text))                                                                       \
        return PAWL_##name;
    PAWL_STATUS_MAP(X)
#undef X
    return PAWL_STORAGE_FAILURE;
}

/* A header ends where its line does: a key with a line end in it would be another request. */
static pawl_status put_key(const struct node *input, struct scope *scope,
                           struct http_request *request)
{
    const struct node *key = node_find(input, "idempotency_key");

    if (!key)
        return PAWL_OK;
    if (!key_is_plain(key->text))
        return scope_fail(scope, PAWL_INVALID_REQUEST, KEY_EXPECTED);
    request->key = key->text;
    return PAWL_OK;
}

/* A rejection keeps its token and words; what no pawl server would say is a broken store. */
static pawl_status reject(const struct client *client, const struct http_response *response,
                          struct scope *scope)
{
    struct node *problem, *reason, *detail;

    if (node_read_json(scope, response->body, &problem) == PAWL_OK) {
        reason = node_find(problem, "reason");
        detail = node_find(problem, "detail");
        if (reason && detail && status_of(reason->text) != PAWL_OK)
            return scope_fail(scope, status_of(reason->text), "%.*s", STR_ARG(detail->text));
    }
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "%s://%s:%s answered %d, but not as a pawl server does: another program "
                      "listens there, or a proxy answered in its place",
                      client->scheme, client->host, client->port, response->status);
}

/* Where the answer goes: into the scope, or to `put` as it comes. */
struct answer_to {
    str *whole;
    put_piece_fn put;
    void *context;
};

static pawl_status send_request(struct client *client, const struct http_request *request,
                                struct scope *scope, const struct answer_to *to,
                                struct http_response *out)
{
    return to->put ? client_send_pieces(client, request, scope, to->put, to->context, out)
                   : client_send(client, request, scope, out);
}

static pawl_status send_op(struct client *client, const struct op *op,
                           const struct node *input, struct scope *scope,
                           const struct answer_to *to)
{
    struct http_request request = { .method = op->method };
    struct http_response response;
    struct buf target, body;
    pawl_status status;

    buf_init(&target, scope->arena.heap, TARGET_MAX);
    buf_init(&body, scope->arena.heap, CLIENT_ANSWER_MAX);
    status = put_path(client, op, input, scope, &target);
    if (status == PAWL_OK) {
        put_query(op, input, &target);
        put_body(op, input, &body, &request);
        status = put_key(input, scope, &request);
    }
    if (status == PAWL_OK) {
        request.target = buf_text(&target);
        status = target.failed || body.failed
                     ? scope_fail(scope, PAWL_TOO_LARGE, "the request is too large")
                     : send_request(client, &request, scope, to, &response);
    }
    if (status == PAWL_OK && response.status >= 300)
        status = reject(client, &response, scope);
    if (status == PAWL_OK && to->whole)
        *to->whole = response.body;
    buf_fini(&target);
    buf_fini(&body);
    return status;
}

static pawl_status call(struct client *client, const char *operation, str input,
                        struct scope *scope, const struct answer_to *to)
{
    const struct op *op = op_find(str_of(operation));
    struct node *members;

    ASSERT(op);
    if (!op->method)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "%s works on a store's file, not through its server at %s://%s:%s",
                          operation, client->scheme, client->host, client->port);
    if (node_read_json(scope, input, &members) != PAWL_OK)
        return scope->error.status;
    return send_op(client, op, members, scope, to);
}

pawl_status remote_call(struct client *client, const char *operation, str input,
                        struct scope *scope, str *out)
{
    return call(client, operation, input, scope, &(struct answer_to){ .whole = out });
}

pawl_status remote_call_pieces(struct client *client, const char *operation, str input,
                               struct scope *scope, put_piece_fn put, void *context)
{
    return call(client, operation, input, scope,
                &(struct answer_to){ .put = put, .context = context });
}
