/* key.c - from an idempotency key and an input to the bytes that ride in a record; and the
 * answer of those operations that have no record to rebuild it from. */
#include "api/key.h"
#include "api/ops_int.h"
#include "base/limits.h"
#include <stdlib.h>

static int compare_members(const void *a, const void *b)
{
    const struct key_member *left = a, *right = b;

    return str_compare(left->name, right->name);
}

bool key_is_plain(str key)
{
    bool is_plain = key.size > 0 && key.size <= LIMIT_NAME && key.data[0] != ' ' &&
                    key.data[key.size - 1] != ' ' && str_is_utf8(key, false);

    for (size_t i = 0; i < key.size && is_plain; i++)
        is_plain = (unsigned char)key.data[i] >= ' ' && key.data[i] != 0x7f;
    return is_plain;
}

static void print_members(const struct key_member *members, uint32_t count, struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!members[i].value.data)
            continue;
        buf_varint(out, members[i].name.size);
        buf_str(out, members[i].name);
        buf_byte(out, members[i].is_text ? 's' : 'j');
        buf_varint(out, members[i].value.size);
        buf_str(out, members[i].value);
    }
}

pawl_status key_of_members(struct scope *scope, str principal, str key, const char *operation,
                           struct key_member *members, uint32_t count, const uint8_t **out)
{
    uint8_t *made = arena_alloc(&scope->arena, KEY_SIZE);
    struct sha *sha = sha_new(scope->arena.heap);
    struct buf request;
    pawl_status status = PAWL_OK;

    if (!key_is_plain(key))
        status = scope_fail(scope, PAWL_INVALID_REQUEST, KEY_EXPECTED);
    buf_init(&request, scope->arena.heap, LIMIT_SCOPE);
    qsort(members, count, sizeof *members, compare_members);
    print_members(members, count, &request);
    if (!status && (!made || !sha || request.failed))
        status = scope_no_memory(scope);
    if (!status) {
        key_make(sha, principal.data ? principal : STR("local"), key, str_of(operation),
                 buf_view(&request), made);
        *out = made;
    }
    buf_fini(&request);
    sha_free(sha);
    return status;
}

pawl_status key_of_input(struct scope *scope, str principal, str key, const struct op *op,
                         const struct node *input, const uint8_t **out)
{
    struct key_member *members = ARENA_ARRAY(&scope->arena, struct key_member, input->count + 1);
    uint32_t count = 0;

    TRY_MEMORY(scope, members);
    for (const struct node *node = input->first; node; node = node->next) {
        if ((op->flags & OP_TEXT_BODY) && str_is(node->key, "format"))
            continue; /* a header's, and not every surface has headers */
        members[count++] = (struct key_member){
            .name = node->key,
            .value = node->kind == NODE_STRING ? node->text : node->raw,
            .is_text = node->kind == NODE_STRING,
        };
    }
    return key_of_members(scope, principal, key, op->name, members, count, out);
}

pawl_status key_nth(struct scope *scope, const uint8_t *key, uint64_t n, const uint8_t **out)
{
    uint8_t *made = key ? arena_alloc(&scope->arena, KEY_SIZE) : NULL;
    struct sha *sha = made ? sha_new(scope->arena.heap) : NULL;

    if (key && !sha)
        return scope_no_memory(scope);
    if (sha)
        key_part(sha, key, n, made);
    sha_free(sha);
    *out = made;
    return PAWL_OK;
}

/* ---- operations without a record of their own ---- */

/* The answer is in the payload, so that personal data in it can be erased. Older ones are in the
 * body. */
static pawl_status answer_again(struct op_call *call, str kept, str payload, struct buf *out)
{
    bool is_batch = call->op->handle == op_batch; /* of no lines: there is nothing to keep */
    struct node *body, *status, *answer;
    int64_t http_status;

    TRY(node_read_json(call->scope, kept, &body));
    status = node_find(body, "status");
    answer = node_find(body, "answer");
    if (!status || (!answer && !payload.data && !is_batch) || !node_to_i64(status, &http_status))
        return scope_fail(call->scope, PAWL_STORAGE_FAILURE,
                          "what was kept with this key is no answer: run pawl verify");
    call->http_status = (int)http_status;
    if (is_batch)
        call->content_type = OP_BATCH_TYPE;
    buf_str(out, payload.data || !answer ? payload : answer->raw);
    return PAWL_OK;
}

static pawl_status keep_answer(struct op_call *call, const struct buf *answer)
{
    struct buf body;
    pawl_status status = PAWL_NO_MEMORY;

    buf_init(&body, call->scope->arena.heap, LIMIT_SCOPE);
    json_open(&body, '{');
    json_put_text(&body, "operation", call->op->name);
    json_put_i64(&body, "status", call->http_status);
    json_close(&body, '}');
    if (!body.failed && !answer->failed)
        status = engine_key_keep(op_engine(call), call->scope, call->key, buf_view(&body),
                                 buf_view(answer));
    buf_fini(&body);
    if (status == PAWL_OK)
        return PAWL_OK;
    return scope_fail(call->scope, PAWL_OUTCOME_UNKNOWN,
                      "%s was done, but its key could not be kept; look again", call->op->name);
}

pawl_status key_run(struct op_call *call, struct buf *out)
{
    struct engine *engine = op_engine(call);
    struct key_turn turn;
    str kept = STR_NONE, payload = STR_NONE;
    pawl_status status;

    engine_key_enter(engine, &turn, call->key);
    status = engine_key_find(engine, call->scope, call->key, &kept, &payload);
    if (status == PAWL_OK) {
        status = answer_again(call, kept, payload, out);
    } else if (status == PAWL_NOT_KNOWN) {
        status = op_handle(call, out);
        if (status == PAWL_OK)
            status = keep_answer(call, out);
    }
    engine_key_leave(engine, &turn);
    return status;
}
