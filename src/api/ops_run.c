/* ops_run.c - run an operation: merge what came apart, check it against the table, handle. */
#include "api/key.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "api/station.h"
#include "base/limits.h"
#include "base/trace.h"

#define ANSWER_RESERVE 8192 /* more than the answer of anything that writes needs */

struct merge {
    struct scope *scope;
    const struct op *op;
    struct node *input, *last;
    str key; /* idempotency; data NULL: none */
    struct op_principal who;
};

const struct op *op_find(str name)
{
    for (const struct op *op = ops; op->name; op++)
        if (str_is(name, op->name))
            return op;
    return NULL;
}

const struct op_param *op_param_find(const struct op *op, str name)
{
    for (const struct op_param *param = op->params; param->name; param++)
        if (str_is(name, param->name))
            return param;
    return NULL;
}

static void append(struct merge *merge, struct node *node)
{
    if (merge->last)
        merge->last->next = node;
    else
        merge->input->first = node;
    merge->last = node;
    merge->input->count++;
}

static pawl_status append_text(struct merge *merge, str name, str value)
{
    struct node *node = ARENA_NEW(&merge->scope->arena, struct node);

    TRY_MEMORY(merge->scope, node);
    node->kind = NODE_STRING;
    node->key = name;
    node->text = arena_str(&merge->scope->arena, value.data ? value : STR(""));
    TRY_MEMORY(merge->scope, node->text.data);
    append(merge, node);
    return PAWL_OK;
}

pawl_status op_unknown(struct scope *scope, const struct op *op, str name, bool is_filter,
                       bool labels)
{
    struct buf known;
    pawl_status status;

    buf_init(&known, scope->arena.heap, 2048);
    for (const struct op_param *param = op->params; param->name; param++)
        if (is_filter ? param->place == IN_QUERY : param->place != IN_PATH)
            buf_item(&known, str_of(param->name));
    if (labels)
        buf_item(&known, STR("label.NAME"));
    status = scope_fail(scope, is_filter ? PAWL_INVALID_QUERY : PAWL_INVALID_REQUEST,
                        "unknown %s '%.*s': %s takes %s", is_filter ? "filter" : "field",
                        STR_ARG(name), op->name, known.size ? buf_text(&known) : "none");
    buf_fini(&known);
    return status;
}

static pawl_status merge_pair(struct merge *merge, const struct op_pair *pair)
{
    const struct op_param *param = op_param_find(merge->op, pair->name);
    bool any = pair->place == IN_QUERY && (merge->op->flags & OP_ANY_QUERY);

    if (!any && (!param || param->place != pair->place))
        return op_unknown(merge->scope, merge->op, pair->name, false, false);
    if (!any && node_find_str(merge->input, pair->name))
        return scope_fail(merge->scope, PAWL_INVALID_REQUEST, "'%.*s' is given twice",
                          STR_ARG(pair->name));
    return append_text(merge, pair->name, pair->value);
}

/* `whole`: the members are all there is (pawl_call), so path and query may be among them. */
static pawl_status merge_members(struct merge *merge, struct node *object, bool whole)
{
    if (object->kind != NODE_OBJECT)
        return scope_fail(merge->scope, PAWL_INVALID_REQUEST,
                          "the input: expected a JSON object, found %s",
                          node_kind_name(object->kind));
    for (struct node *member = object->first, *next; member; member = next) {
        const struct op_param *param = op_param_find(merge->op, member->key);
        bool is_query = param ? param->place == IN_QUERY : merge->op->flags & OP_ANY_QUERY;

        next = member->next;
        if (param ? !whole && param->place != IN_BODY : !whole || !is_query)
            return op_unknown(merge->scope, merge->op, member->key, false, false);
        member->next = NULL;
        if (member->kind != NODE_NULL || is_query)
            append(merge, member);
    }
    return PAWL_OK;
}

static pawl_status merge_request(struct merge *merge, const struct op_request *request)
{
    for (uint32_t i = 0; i < request->pair_count; i++)
        TRY(merge_pair(merge, &request->pairs[i]));
    if (merge->op->flags & OP_TEXT_BODY)
        return append_text(merge, STR("text"), request->text);
    return request->body ? merge_members(merge, request->body, false) : PAWL_OK;
}

/* Filters are texts in a URL: the handler checks them and reports invalid-query. */
static pawl_status check_params(struct merge *merge)
{
    for (const struct op_param *param = merge->op->params; param->name; param++)
        if (param->place != IN_QUERY)
            TRY(op_check_value(merge->scope, param, node_find(merge->input, param->name), ""));
    return PAWL_OK;
}

static pawl_status answer_lost(struct scope *scope, const struct op *op)
{
    if (!(op->flags & OP_WRITES))
        return scope_no_memory(scope);
    return scope_fail(scope, PAWL_OUTCOME_UNKNOWN,
                      "%s was accepted, but there is no memory for its answer; look again",
                      op->name);
}

static pawl_status check(pawl *p, struct merge *merge, struct op_call *out)
{
    const struct op *op = merge->op;

    TRY(check_params(merge));
    *out = (struct op_call){
        .p = p,
        .scope = merge->scope,
        .op = op,
        .input = merge->input,
        .http_status = op->http_status,
        .content_type = "application/json",
        .who = merge->who,
    };
    if (merge->key.data && (op->flags & OP_WRITES))
        TRY(key_of_input(merge->scope, merge->who.name, merge->key, op, merge->input, &out->key));
    out->key_text = out->key ? merge->key : STR_NONE;
    out->p = shard_route(p, op, merge->input, out->key);
    if (out->key && (op->flags & OP_NO_KEY))
        return scope_fail(merge->scope, PAWL_INVALID_REQUEST,
                          "%s takes no idempotency key: its answer is not kept", op->name);
    return PAWL_OK;
}

bool op_has_pages(const struct op *op)
{
    return op_param_find(op, STR("limit")) != NULL;
}

static pawl_status too_large(const struct op_call *call, size_t limit)
{
    const struct op *op = call->op;

    if (op_has_pages(op))
        return scope_fail(call->scope, PAWL_TOO_LARGE,
                          "the answer would be over %zu MiB: ask for a page of it (limit, and then "
                          "after)",
                          limit >> 20);
    return scope_fail(call->scope, PAWL_TOO_LARGE, "the answer would be over %zu MiB%s%s",
                      limit >> 20, op->method ? ": a server sends it in pieces, at " : "",
                      op->method ? op->path : "");
}

/* All of them; for a caller that reads on by itself, one. */
static pawl_status take_pieces(struct op_call *call, struct buf *out)
{
    bool is_last = false;
    pawl_status status = PAWL_OK;

    if (call->pieces->sleep) /* what there is goes out at once */
        return PAWL_OK;
    while (status == PAWL_OK && !is_last && !(call->takes_pieces && out->size >= OP_PIECE)) {
        status = call->pieces->read(call->pieces, call->scope, out, &is_last);
        if (status == PAWL_OK && out->failed)
            status = out->size > out->limit / 2 ? too_large(call, out->limit)
                                                : scope_no_memory(call->scope);
    }
    if (status != PAWL_OK || is_last) {
        call->pieces->close(call->pieces);
        call->pieces = NULL;
    }
    return status;
}

/* It has ended with this status. */
static pawl_status conclude(struct op_call *call, pawl_status status, struct buf *out,
                            struct op_answer *answer)
{
    struct scope *scope = call->scope;
    bool writes = call->op->flags & OP_WRITES;

    if (status == PAWL_OK && call->pieces)
        status = take_pieces(call, out);
    if (status == PAWL_NO_MEMORY && !writes && scope->arena.used > scope->arena.limit / 2)
        status = too_large(call, scope->arena.limit);
    if (status == PAWL_OK && out->failed) {
        op_not_sent(call->p, &call->given);
        status = answer_lost(scope, call->op);
    }
    if (status == PAWL_STORAGE_FAILURE && !call->wait) /* a commit knows itself */
        engine_suspect(call->p->engine);
    station_leave(call);
    if (status == PAWL_OK)
        *answer = (struct op_answer){ call->http_status,    call->content_type, call->stream,
                                      call->pieces,         call->given,        call->page,
                                      call->answer_headers, call->lacks };
    return status;
}

/* ---- Starting, waiting, going on ---- */

/* An answer that is kept for a key must be known at the end. */
static bool has_kept_answer(const struct op_call *call)
{
    return call->key && !(call->op->flags & OP_KEY_IN_RECORD) && !call->part.data;
}

/* What is read in pieces ends with the last of them. */
static void close_answer(const struct op_call *call, struct buf *out)
{
    if (!(call->op->flags & OP_RAW_ANSWER) && !call->pieces)
        json_close(out, '}');
}

/* Where *waits is set, the call may be another thread's already. */
pawl_status op_handle(struct op_call *call, struct buf *out)
{
    bool *waits = call->waits;
    size_t begun = out->size;
    pawl_status status;

    if (!(call->op->flags & OP_RAW_ANSWER))
        json_open(out, '{');
    status = spread_is_sum(call) ? spread_sum(call, out) : call->op->handle(call, out);
    if (*waits)
        return PAWL_OK;
    close_answer(call, out);
    if (status != PAWL_OK)
        out->size = begun;
    return status;
}

/* What changes the store must not fail for want of room for its answer afterwards. */
pawl_status op_start_here(struct op_call *call, struct buf *out, struct op_answer *answer,
                          bool *waits)
{
    pawl_status status;

    *waits = false;
    call->waits = waits;
    if (call->op->flags & OP_WRITES)
        buf_reserve(out, ANSWER_RESERVE);
    if (out->failed)
        status = scope_no_memory(call->scope);
    else
        status = has_kept_answer(call) ? key_run(call, out) : op_handle(call, out);
    return *waits ? PAWL_OK : conclude(call, status, out, answer);
}

static struct op_wait again = { .is_slow = true };

/* By another node perhaps, which takes a while: not by a thread that reads requests, on which the
 * end of other calls depends. */
static pawl_status run_again(struct op_call *call, pawl_status status, struct buf *out,
                             struct op_answer *answer, bool *waits)
{
    const struct waiter *waiter = call->waiter;
    bool may = station_may_run_again(call, status);

    if (may && call->is_near && !waiter) {
        call->is_elsewhere = true;
        call->again = status;
        return status;
    }
    if (!waiter || !may)
        return station_run_again(call, status, out, answer);
    call->again = status;
    call->wait = &again;
    call->waiter = NULL;
    *waits = true;
    waiter->wake(waiter->context);
    return PAWL_OK;
}

pawl_status op_start(struct op_call *call, struct buf *out, struct op_answer *answer, bool *waits)
{
    size_t begun = out->size;
    bool is_shared = call->p && station_of(call->p);
    pawl_status status;

    *waits = false;
    if (!is_shared)
        return op_start_here(call, out, answer, waits);
    call->is_elsewhere = false;
    status = station_run(call, out, answer, waits);
    if (status == PAWL_OK || call->is_elsewhere)
        return status;
    out->size = begun;
    return run_again(call, status, out, answer, waits);
}

bool op_is_away(const struct op_call *call)
{
    return station_call_is_away(call);
}

bool op_may_be_away(pawl *p, const struct op *op)
{
    return station_may_be_away(p, op);
}

bool op_has_nodes(pawl *p)
{
    return station_of(p) != NULL;
}

void op_count_streams(pawl *p, int by)
{
    station_count_streams(p, by);
}

enum op_reach op_reach(const struct op_call *call)
{
    return station_reach(call);
}

void op_waits(struct op_call *call, struct op_wait *wait)
{
    ASSERT(call->waiter);
    call->wait = wait;
    *call->waits = true;
}

pawl_status op_go_on_here(struct op_call *call, bool is_stopping, struct buf *out,
                          struct op_answer *answer, bool *waits)
{
    pawl_status status;

    *waits = false;
    call->waits = waits;
    status = call->wait->go_on(call, is_stopping, out);
    if (*waits)
        return PAWL_OK;
    close_answer(call, out);
    return conclude(call, status, out, answer);
}

pawl_status op_go_on(struct op_call *call, bool is_stopping, struct buf *out,
                     struct op_answer *answer, bool *waits)
{
    pawl_status status;

    *waits = false;
    if (call->again)
        return station_run_again(call, call->again, out, answer);
    if (call->roaming)
        return roaming_go_on(call, is_stopping, out, answer, waits);
    status = op_go_on_here(call, is_stopping, out, answer, waits);
    if (*waits)
        return PAWL_OK;
    if (status == PAWL_OK || !station_of(call->p))
        return status;
    out->size = 0;
    return run_again(call, status, out, answer, waits);
}

pawl_status op_perform(struct op_call *call, struct buf *out, struct op_answer *answer)
{
    bool waits;
    pawl_status status;

    ASSERT(!call->waiter);
    status = op_start(call, out, answer, &waits);
    ASSERT(!waits);
    return status;
}

/* ---- A request that came apart ---- */

static pawl_status merge_begin(struct merge *merge, struct scope *scope, const struct op *op)
{
    *merge = (struct merge){ .scope = scope, .op = op };
    merge->input = ARENA_NEW(&scope->arena, struct node);
    TRY_MEMORY(scope, merge->input);
    merge->input->kind = NODE_OBJECT;
    return PAWL_OK;
}

pawl_status op_prepare(pawl *p, const struct op *op, const struct op_request *request,
                       struct scope *scope, struct op_call *out)
{
    struct merge merge;
    pawl_status status = merge_begin(&merge, scope, op);

    if (status == PAWL_OK)
        status = merge_request(&merge, request);
    merge.key = request->key;
    merge.who = request->who;
    if (trace_is_valid(request->trace))
        scope->trace = request->trace;
    if (status == PAWL_OK)
        status = check(p, &merge, out);
    if (status == PAWL_OK && !has_kept_answer(out))
        out->waiter = request->waiter;
    out->takes_pieces = request->takes_pieces;
    out->request_headers = request->headers;
    out->is_forwarded = request->is_forwarded;
    out->part = request->part;
    if (status == PAWL_OK && request->part.data)
        station_place(out);
    return status;
}

/* ---- By name ---- */

/* Where there is no header for it, the key is a member of the input; not of the call itself. */
static pawl_status take_key(struct merge *merge, struct node *input)
{
    struct node **at = &input->first;

    if (input->kind != NODE_OBJECT || !(merge->op->flags & OP_WRITES))
        return PAWL_OK;
    while (*at && !str_is((*at)->key, "idempotency_key"))
        at = &(*at)->next;
    if (!*at)
        return PAWL_OK;
    if ((*at)->kind != NODE_STRING)
        return scope_fail(merge->scope, PAWL_INVALID_REQUEST,
                          "'idempotency_key': expected a string, found %s",
                          node_kind_name((*at)->kind));
    merge->key = (*at)->text;
    *at = (*at)->next;
    input->count--;
    return PAWL_OK;
}

pawl_status op_prepare_whole(pawl *p, const struct op *op, struct node *input,
                             const struct op_principal *who, struct scope *scope,
                             struct op_call *out)
{
    struct merge merge;

    TRY(merge_begin(&merge, scope, op));
    if (who)
        merge.who = *who;
    TRY(take_key(&merge, input));
    TRY(merge_members(&merge, input, true));
    return check(p, &merge, out);
}

static pawl_status merge_text(struct merge *merge, struct scope *scope, const struct op *op,
                              str input_json)
{
    struct node *input;

    TRY(node_read_json(scope, input_json, &input));
    TRY(merge_begin(merge, scope, op));
    return merge_members(merge, input, true);
}

pawl_status op_check(struct scope *scope, const struct op *op, str input_json)
{
    struct merge merge;

    TRY(merge_text(&merge, scope, op, input_json));
    return check_params(&merge);
}

/* The caller that set the alarm was authorised then, but the instance may have been amended to
 * another definition since. */
pawl_status op_call_keyed(pawl *p, const struct op *op, str input_json,
                          const struct op_principal *who, str key, struct scope *scope,
                          struct buf *out)
{
    struct op_answer answer;
    struct op_call call;
    struct merge merge;

    TRY(merge_text(&merge, scope, op, input_json));
    if (who->scopes.data)
        TRY(op_authorize(p, scope, op,
                         &(struct op_request){ .body = merge.input,
                                               .who = { who->name, who->scopes, STR_NONE } }));
    merge.key = key;
    merge.who = *who;
    TRY(check(p, &merge, &call));
    return op_perform(&call, out, &answer);
}

static pawl_status call_by_name(pawl *p, const struct op *op, const char *input_json,
                                struct scope *scope, struct buf *out)
{
    struct op_answer answer;
    struct op_call call;
    struct node *input;

    TRY(node_read_json(scope, str_of(input_json ? input_json : "{}"), &input));
    TRY(op_prepare_whole(p, op, input, NULL, scope, &call));
    return op_perform(&call, out, &answer);
}

static pawl_status put_pieces(struct op_answer *answer, struct scope *scope, struct buf *piece,
                              put_piece_fn put, void *context)
{
    bool is_last = false;

    for (;;) {
        if (!put(context, scope, buf_view(piece)))
            return PAWL_STORAGE_FAILURE;
        if (!answer->pieces || is_last)
            return PAWL_OK;
        buf_clear(piece);
        TRY(answer->pieces->read(answer->pieces, scope, piece, &is_last));
        TRY_MEMORY(scope, !piece->failed);
    }
}

pawl_status op_call_pieces(pawl *p, const char *operation, str input_json, struct scope *scope,
                           put_piece_fn put, void *context)
{
    struct op_answer answer = { 0 };
    struct op_call call;
    struct node *input;
    struct buf piece;
    const struct op *op = op_find(str_of(operation));
    pawl_status status;

    ASSERT(op);
    TRY(node_read_json(scope, input_json, &input));
    TRY(op_prepare_whole(p, op, input, NULL, scope, &call));
    call.takes_pieces = true;
    buf_init(&piece, &p->heap, LIMIT_SCOPE);
    status = op_perform(&call, &piece, &answer);
    if (status == PAWL_OK)
        status = put_pieces(&answer, scope, &piece, put, context);
    if (answer.pieces)
        answer.pieces->close(answer.pieces);
    buf_fini(&piece);
    return status;
}

/* The buffer's block becomes the caller's, cut to what pawl_free() takes it to be. */
static char *take_text(struct buf *buf)
{
    size_t size = strlen(buf_text(buf)) + 1;
    char *text = heap_resize(buf->heap, buf->data, buf->capacity, size);

    if (text)
        *buf = (struct buf){ .heap = buf->heap };
    return text;
}

pawl_status pawl_call(pawl *p, const char *operation, const char *input_json, char **out,
                      pawl_error *error)
{
    const struct op *op;
    struct scope scope;
    struct buf answer;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(operation), GIVEN(out));

    if (out)
        *out = NULL;
    if (status)
        return status;
    op = op_find(str_of(operation));
    api_enter(p, &scope);
    buf_init(&answer, &p->heap, LIMIT_SCOPE);
    if (op)
        status = call_by_name(p, op, input_json, &scope, &answer);
    else
        status = scope_fail(&scope, PAWL_NOT_KNOWN, "no operation '%s'", operation);
    if (status == PAWL_OK) {
        *out = take_text(&answer);
        if (!*out)
            status = answer_lost(&scope, op);
    }
    buf_fini(&answer);
    return api_leave(&scope, status, error);
}
