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
    return node->kind == NODE_STRING ? node->text : node->raw;
}

/* An operation on its way out. */
struct outgoing {
    const struct client *client;
    const struct op *op;
    const struct node *input;
    struct scope *scope;
    struct buf target, body;
    struct http_request request;
};

static bool goes_into(const struct outgoing *out, enum op_place place, const struct node *member)
{
    for (const struct op_param *param = out->op->params; param && param->name; param++)
        if (str_is(member->key, param->name))
            return param->place == place;
    return place == (out->op->flags & OP_ANY_QUERY ? IN_QUERY : IN_BODY);
}

/* "/v1/..." of a store is "/v1/stores/NAME/...". */
static pawl_status put_path(struct outgoing *out)
{
    const char *store = out->client->store, *path = out->op->path;
    bool is_inside = store[0] && strncmp(path, "/v1/", 4) == 0;

    buf_str(&out->target, str_of(is_inside ? store : ""));
    for (const char *at = path + (is_inside ? 3 : 0); *at; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        const struct node *member;

        if (!end) {
            buf_byte(&out->target, (unsigned char)*at);
            continue;
        }
        member = node_find_str(out->input, (str){ at + 1, (size_t)(end - at - 1) });
        if (!member || text_of(member).size == 0)
            return scope_fail(out->scope, PAWL_INVALID_REQUEST, "%.*s must not be empty",
                              (int)(end - at - 1), at + 1);
        put_escaped(&out->target, text_of(member));
        at = end;
    }
    return PAWL_OK;
}

static void put_query(struct outgoing *out)
{
    char mark = '?';

    for (const struct node *member = out->input->first; member; member = member->next) {
        if (!goes_into(out, IN_QUERY, member))
            continue;
        buf_byte(&out->target, (unsigned char)mark);
        put_escaped(&out->target, member->key);
        buf_byte(&out->target, '=');
        put_escaped(&out->target, text_of(member));
        mark = '&';
    }
}

static void put_body(struct outgoing *out)
{
    const struct node *text = node_find(out->input, "text");

    if (strcmp(out->op->method, "GET") == 0)
        return;
    out->request.content_type = "application/json";
    if (out->op->flags & OP_TEXT_BODY) {
        out->request.body = text ? text->text : STR("");
        if (!text_looks_like_json(out->request.body))
            out->request.content_type = "application/yaml";
        return;
    }
    json_open(&out->body, '{');
    for (const struct node *member = out->input->first; member; member = member->next)
        if (goes_into(out, IN_BODY, member) && !str_is(member->key, "idempotency_key")) {
            json_key_str(&out->body, member->key);
            json_raw(&out->body, member->raw);
        }
    json_close(&out->body, '}');
    out->request.body = buf_view(&out->body);
}

static pawl_status make_request(struct outgoing *out)
{
    const struct node *key = node_find(out->input, "idempotency_key");

    TRY(put_path(out));
    put_query(out);
    put_body(out);
    /* A header ends where its line does: a key with a line end in it would be another request. */
    if (key && !key_is_plain(key->text))
        return scope_fail(out->scope, PAWL_INVALID_REQUEST, KEY_EXPECTED);
    out->request.key = key ? key->text : STR_NONE;
    out->request.method = out->op->method;
    out->request.target = buf_text(&out->target);
    return out->target.failed || out->body.failed
               ? scope_fail(out->scope, PAWL_TOO_LARGE, "the request is too large")
               : PAWL_OK;
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

/* A rejection keeps its token and words; what no pawl server would say is a broken store. */
static pawl_status reject(const struct client *client, const struct http_response *response,
                          struct scope *scope)
{
    struct node *problem;

    if (node_read_json(scope, response->body, &problem) == PAWL_OK) {
        str reason = node_text(problem, "reason"), detail = node_text(problem, "detail");

        if (reason.data && detail.data && status_of(reason) != PAWL_OK)
            return scope_fail(scope, status_of(reason), "%.*s", STR_ARG(detail));
    }
    return scope_fail(
        scope, PAWL_STORAGE_FAILURE,
        "%s answered %d, but not as a pawl server does: another program listens there, "
        "or a proxy answered in its place",
        client->address, (int)response->status);
}

pawl_status remote_call(struct client *client, const char *operation, str input,
                        struct scope *scope, const struct answer_to *to)
{
    struct outgoing out = { .client = client, .op = op_find(str_of(operation)), .scope = scope };
    struct http_response response;
    struct node *members;
    pawl_status status;

    ASSERT(out.op);
    if (!out.op->method)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "%s works on a store's file, not through its server at %s", operation,
                          client->address);
    TRY(node_read_json(scope, input, &members));
    out.input = members;
    buf_init(&out.target, scope->arena.heap, TARGET_MAX);
    buf_init(&out.body, scope->arena.heap, CLIENT_ANSWER_MAX);
    status = make_request(&out);
    if (status == PAWL_OK)
        status = client_send(client, &out.request, scope, to, &response);
    buf_fini(&out.target);
    buf_fini(&out.body);
    if (status == PAWL_OK && response.status >= 300)
        return reject(client, &response, scope);
    if (status == PAWL_OK && to->whole)
        *to->whole = response.body;
    return status;
}
