/* ops_token.c - create, list and revoke tokens. The secret is returned once and stored nowhere. */
#include "api/ops_int.h"
#include "base/time.h"

#define EXPIRES_MS ((int64_t)90 * 24 * 3600 * 1000)

static pawl_status read_token(struct op_call *call, int64_t *due_at_ms)
{
    str expires = op_text(call, "expires"), scopes = op_text(call, "scopes");
    int64_t after_ms = EXPIRES_MS;

    if (expires.data && (!duration_parse(expires, &after_ms) || after_ms <= 0))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'expires': expected a duration like 30m, 72h or 90d, found '%.*s'",
                          STR_ARG(expires));
    if (!scopes_are_valid(scopes))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'scopes': expected a list like read,write:order of read, write, work, "
                          "define, test, admin and all, each with a definition's name behind a ':' "
                          "or without, found '%.*s'",
                          STR_ARG(scopes));
    if (op_text(call, "actor").data && op_text(call, "actor").size == 0)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'actor' is empty: name the user of the token, or leave it out for a "
                          "token that may name any actor");
    *due_at_ms = engine_wall_ms(op_engine(call)) + after_ms;
    return defect_status(call->scope, op_ref_defect(call, "actor"));
}

pawl_status op_token_create(struct op_call *call, struct buf *out)
{
    char secret[65], hash[2 * SHA_SIZE + 1], id[STANDING_ID_SIZE + 1];
    struct keep_args args = { .what = CONTROL_TOKEN };
    struct buf more;
    pawl_status status;

    TRY(read_token(call, &args.due_at_ms));
    TRY(token_secret(call, secret, hash));
    buf_init(&more, call->scope->arena.heap, 4096);
    json_open(&more, '{');
    json_put_text(&more, "hash", hash);
    json_put_str(&more, "scopes", op_text(call, "scopes"));
    json_opt_str(&more, "name", op_ref(call, "name"));
    json_opt_str(&more, "actor", op_ref(call, "actor"));
    json_close(&more, '}');
    args.more = buf_view(&more);
    status = more.failed ? scope_no_memory(call->scope)
                         : engine_keep(op_engine(call), call->scope, &args, id);
    buf_fini(&more);
    if (status != PAWL_OK)
        return status;
    json_put_text(out, "token_id", id);
    json_put_fmt(out, "token", "%s.%s", id, secret);
    json_put_time(out, "expires_at", args.due_at_ms);
    explicit_bzero(secret, sizeof secret);
    return PAWL_OK;
}

pawl_status op_token_revoke(struct op_call *call, struct buf *out)
{
    struct keep_args args = { .what = CONTROL_TOKEN,
                              .id = op_text(call, "token_id"),
                              .over = STR("revoked"),
                              .key = call->key };
    pawl_status status = engine_keep(op_engine(call), call->scope, &args, NULL);

    if (status == PAWL_NOT_KNOWN)
        return scope_fail(call->scope, status, "no token '%.*s'", STR_ARG(args.id));
    json_put_bool(out, "revoked", true);
    return status;
}

static void print_token(const struct op_call *call, const struct standing_fact *token,
                        struct buf *out)
{
    struct node *body = NULL;
    const struct node *more;

    if (node_read_json(call->scope, token->body, &body) != PAWL_OK)
        return;
    more = node_find(body, "more");
    json_open(out, '{');
    json_put_str(out, "token_id", token->id);
    json_put_str(out, "scopes", node_text(more, "scopes"));
    json_put_str(out, "name", node_text(more, "name"));
    if (node_find(more, "actor"))
        json_put_str(out, "actor", node_text(more, "actor"));
    json_put_time(out, "created_at", token->at_ms);
    json_put_time(out, "expires_at", token->due_at_ms);
    json_close(out, '}');
}

pawl_status op_token_list(struct op_call *call, struct buf *out)
{
    struct standing_fact *tokens = NULL;
    uint32_t count = 0;

    TRY(engine_standing_list(op_engine(call), call->scope, CONTROL_TOKEN, 1000, &tokens, &count));
    json_put_open(out, "tokens", '[');
    for (uint32_t i = 0; i < count; i++)
        print_token(call, &tokens[i], out);
    json_close(out, ']');
    return PAWL_OK;
}
