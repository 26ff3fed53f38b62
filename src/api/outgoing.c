/* outgoing.c - (operation, input) -> path, query and body; and a problem back to its status. */
#include "api/outgoing.h"
#include "base/limits.h"

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

static bool goes_into(const struct op *op, enum op_place place, const struct node *member)
{
    for (const struct op_param *param = op->params; param && param->name; param++)
        if (str_is(member->key, param->name))
            return param->place == place;
    return place == (op->flags & OP_ANY_QUERY ? IN_QUERY : IN_BODY);
}

/* "/v1/..." of a store is "/v1/stores/NAME/...". */
static pawl_status put_path(struct scope *scope, const struct op *op, const char *store,
                            const struct node *input, struct buf *target)
{
    bool is_inside = store[0] && strncmp(op->path, "/v1/", 4) == 0;

    buf_str(target, str_of(is_inside ? store : ""));
    for (const char *at = op->path + (is_inside ? 3 : 0); *at; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        const struct node *member;

        if (!end) {
            buf_byte(target, (unsigned char)*at);
            continue;
        }
        member = node_find_str(input, (str){ at + 1, (size_t)(end - at - 1) });
        if (!member || text_of(member).size == 0)
            return scope_fail(scope, PAWL_INVALID_REQUEST, "%.*s must not be empty",
                              (int)(end - at - 1), at + 1);
        put_escaped(target, text_of(member));
        at = end;
    }
    return PAWL_OK;
}

static void put_query(const struct op *op, const struct node *input, struct buf *target)
{
    char mark = '?';

    for (const struct node *member = input->first; member; member = member->next) {
        if (!goes_into(op, IN_QUERY, member))
            continue;
        buf_byte(target, (unsigned char)mark);
        put_escaped(target, member->key);
        buf_byte(target, '=');
        put_escaped(target, text_of(member));
        mark = '&';
    }
}

static const char *type_of_text(const struct node *input, str text, bool guesses)
{
    str format = node_text(input, "format");

    if (!format.data && !guesses)
        return "text/plain";
    if (format.data ? str_is(format, "json") : text_looks_like_json(text))
        return "application/json";
    return "application/yaml";
}

static void put_member(struct buf *body, const struct node *member)
{
    json_key_str(body, member->key);
    if (member->raw.data)
        json_raw(body, member->raw);
    else
        json_str(body, member->text);
}

static void put_body(const struct op *op, const struct node *input, bool guesses_format,
                     struct buf *body, struct op_outgoing *out)
{
    if (strcmp(op->method, "GET") == 0)
        return;
    if (op->flags & OP_TEXT_BODY) {
        const struct node *text = node_find(input, "text");

        out->body = text ? text->text : STR("");
        out->content_type = type_of_text(input, out->body, guesses_format);
        return;
    }
    out->content_type = "application/json";
    json_open(body, '{');
    for (const struct node *member = input->first; member; member = member->next)
        if (goes_into(op, IN_BODY, member) && !str_is(member->key, "idempotency_key"))
            put_member(body, member);
    json_close(body, '}');
}

pawl_status op_print_request(struct scope *scope, const struct op *op, const char *store,
                             const struct node *input, bool guesses_format, struct op_outgoing *out)
{
    struct buf target, body;
    pawl_status status;

    *out = (struct op_outgoing){ .body = STR("") };
    buf_init(&target, scope->arena.heap, TARGET_MAX);
    buf_init(&body, scope->arena.heap, LIMIT_SCOPE);
    status = put_path(scope, op, store, input, &target);
    if (status == PAWL_OK) {
        put_query(op, input, &target);
        put_body(op, input, guesses_format, &body, out);
        out->target = arena_text(&scope->arena, str_of(buf_text(&target)));
        if (body.size > 0)
            out->body = buf_keep(&body, &scope->arena);
        if (target.failed || body.failed || !out->target || !out->body.data)
            status = scope_fail(scope, PAWL_TOO_LARGE, "the request is too large");
    }
    buf_fini(&target);
    buf_fini(&body);
    return status;
}

static pawl_status status_of(str token)
{
#define X(name, code, text, http, meaning)                                                         \
    if (str_is(token, text))                                                                       \
        return PAWL_##name;
    PAWL_STATUS_MAP(X)
#undef X
    return PAWL_OK;
}

pawl_status op_read_problem(struct scope *scope, str body)
{
    struct node *problem;
    str reason, detail;

    if (node_read_json(scope, body, &problem) != PAWL_OK)
        return PAWL_OK;
    reason = node_text(problem, "reason");
    detail = node_text(problem, "detail");
    if (!reason.data || !detail.data || status_of(reason) == PAWL_OK)
        return PAWL_OK;
    return scope_fail(scope, status_of(reason), "%.*s", STR_ARG(detail));
}
