/* run_op.c - operations, run as the caller may. The input is taken apart as HTTP has it, so that
 * the same checks are made. */
#include "surface/mcp/mcp_int.h"

#define PAIRS_MAX 64

static str text_of(const struct node *value)
{
    if (value->kind == NODE_BOOL)
        return value->truth ? STR("true") : STR("false");
    return value->kind == NODE_STRING || value->kind == NODE_NUMBER ? value->text : value->raw;
}

struct split {
    struct op_pair pairs[PAIRS_MAX];
    uint32_t count;
    struct node body;
    struct node *last;
    str text;
};

static pawl_status add_member(struct rpc_exchange *exchange, const struct op *op,
                              struct split *split, struct node *member)
{
    const struct op_param *param = op_param_find(op, member->key);
    bool is_query = param ? param->place == IN_QUERY : op->flags & OP_ANY_QUERY;

    if (member->kind == NODE_NULL)
        return PAWL_OK;
    if ((op->flags & OP_TEXT_BODY) && str_is(member->key, "text")) {
        split->text = member->text;
        return PAWL_OK;
    }
    if (is_query || (param && param->place == IN_PATH) || (op->flags & OP_TEXT_BODY)) {
        if (split->count == PAIRS_MAX)
            return scope_fail(&exchange->turn->work, PAWL_INVALID_REQUEST,
                              "more than %d parameters", PAIRS_MAX);
        split->pairs[split->count++] = (struct op_pair){
            member->key,
            text_of(member),
            param ? param->place : IN_QUERY,
        };
        return PAWL_OK;
    }
    *(split->last ? &split->last->next : &split->body.first) = member;
    split->last = member;
    split->body.count++;
    return PAWL_OK;
}

static pawl_status take_apart(struct rpc_exchange *exchange, const struct op *op,
                              struct node *input, struct split *split)
{
    *split = (struct split){ .body.kind = NODE_OBJECT };
    if (input && input->kind != NODE_OBJECT)
        return scope_fail(&exchange->turn->work, PAWL_INVALID_REQUEST,
                          "expected an object, found %s", node_kind_name(input->kind));
    for (struct node *member = input ? input->first : NULL, *next; member; member = next) {
        next = member->next;
        member->next = NULL;
        TRY(add_member(exchange, op, split, member));
    }
    return PAWL_OK;
}

/* Who acts where no token says so. */
static pawl_status add_actor(struct rpc_exchange *exchange, const struct op *op,
                             struct split *split)
{
    const char *actor = exchange->server->options.actor;
    const struct op_param *param = op_param_find(op, STR("actor_ref"));
    struct node *node;

    if (!actor || exchange->who.name.data || !param || param->place != IN_BODY ||
        node_find(&split->body, "actor_ref"))
        return PAWL_OK;
    node = ARENA_NEW(&exchange->turn->work.arena, struct node);
    TRY_MEMORY(&exchange->turn->work, node);
    node->kind = NODE_STRING;
    node->key = STR("actor_ref");
    node->text = str_of(actor);
    return add_member(exchange, op, split, node);
}

static pawl_status authorize(struct rpc_exchange *exchange, const struct op *op,
                             const struct op_request *request)
{
    pawl_status status = op_authorize(exchange->server->p, &exchange->turn->work, op, request);

    exchange->lacks = status == PAWL_FORBIDDEN ? op->scope : NULL;
    return status;
}

bool op_is_allowed(struct rpc_exchange *exchange, const char *operation, str definition)
{
    struct node name = { .kind = NODE_STRING, .key = STR("definition"), .text = definition };
    struct node body = { .kind = NODE_OBJECT, .first = &name, .count = 1 };
    const struct op_request request = { .who = exchange->who, .body = &body };
    const struct op *op = op_find(str_of(operation));
    struct scope *work = &exchange->turn->work;

    if (!definition.data)
        return op_authorize_early(work, op, &exchange->who) == PAWL_OK;
    return op_authorize(exchange->server->p, work, op, &request) == PAWL_OK;
}

static pawl_status prepare(struct rpc_exchange *exchange, const struct op *op, struct node *input,
                           const struct waiter *waiter, struct op_call *out)
{
    struct scope *work = &exchange->turn->work;
    struct op_request request = { .who = exchange->who, .trace = work->trace, .waiter = waiter };
    struct split split;

    TRY(take_apart(exchange, op, input, &split));
    TRY(add_actor(exchange, op, &split));
    request.pairs = split.pairs;
    request.pair_count = split.count;
    request.body = op->flags & OP_TEXT_BODY ? NULL : &split.body;
    request.text = split.text;
    request.key = node_text(exchange->meta, "pawl/idempotencyKey");
    TRY(authorize(exchange, op, &request));
    return op_prepare(exchange->server->p, op, &request, work, out);
}

pawl_status op_ask(struct rpc_exchange *exchange, const char *operation, struct node *input,
                   struct buf *out)
{
    const struct op *op = op_find(str_of(operation));
    struct op_answer answer;
    struct op_call call;
    bool waits;

    ASSERT(op);
    TRY(prepare(exchange, op, input, NULL, &call));
    return op_start(&call, out, &answer, &waits);
}

/* A key whose answer is kept may have to wait for another call with that key. */
static bool may_wait(const struct rpc_exchange *exchange, const struct op *op)
{
    bool has_key = node_text(exchange->meta, "pawl/idempotencyKey").data != NULL;

    return has_key && (op->flags & OP_WRITES) && !(op->flags & OP_KEY_IN_RECORD);
}

pawl_status op_begin(struct rpc_exchange *exchange, const char *operation, struct node *input,
                     struct buf *out)
{
    const struct op *op = op_find(str_of(operation));
    struct op_call *call = ARENA_NEW(&exchange->turn->work.arena, struct op_call);
    struct op_answer answer;
    bool waits;

    ASSERT(op);
    TRY_MEMORY(&exchange->turn->work, call);
    exchange->needs_thread = may_wait(exchange, op) || !(op->flags & (OP_ASYNC | OP_QUICK));
    if (exchange->needs_thread)
        return PAWL_OK;
    TRY(prepare(exchange, op, input, op->flags & OP_ASYNC ? exchange->waiter : NULL, call));
    exchange->needs_thread = op_is_away(call);
    if (exchange->needs_thread)
        return PAWL_OK;
    exchange->under_way = call;
    TRY(op_start(call, out, &answer, &waits));
    if (!waits)
        exchange->under_way = NULL;
    return PAWL_OK;
}

/* The nodes of `members`, in the scope of this turn. */
static pawl_status make_input(struct rpc_exchange *exchange, const struct op_member *members,
                              struct node **out)
{
    struct node **link;

    *out = ARENA_NEW(&exchange->turn->work.arena, struct node);
    TRY_MEMORY(&exchange->turn->work, *out);
    (*out)->kind = NODE_OBJECT;
    link = &(*out)->first;
    for (; members->name; members++) {
        struct node *node;

        if (!members->text.data && !members->json.data)
            continue;
        if (members->json.data) {
            TRY(node_read_json(&exchange->turn->work, members->json, &node));
        } else {
            node = ARENA_NEW(&exchange->turn->work.arena, struct node);
            TRY_MEMORY(&exchange->turn->work, node);
            node->kind = NODE_STRING;
            node->text = members->text;
        }
        node->key = str_of(members->name);
        *link = node;
        link = &node->next;
        (*out)->count++;
    }
    return PAWL_OK;
}

pawl_status op_ask_text(struct rpc_exchange *exchange, const char *operation,
                        const struct op_member *members, str *out)
{
    struct node *input;
    struct buf answer;
    pawl_status status;

    *out = STR_NONE;
    TRY(make_input(exchange, members, &input));
    buf_init(&answer, &heap_libc, LIMIT_SCOPE);
    status = op_ask(exchange, operation, input, &answer);
    if (status == PAWL_OK)
        *out = buf_keep(&answer, &exchange->turn->work.arena);
    buf_fini(&answer);
    TRY(status);
    TRY_MEMORY(&exchange->turn->work, out->data);
    return PAWL_OK;
}

pawl_status op_ask_node(struct rpc_exchange *exchange, const char *operation,
                        const struct op_member *members, struct node **out)
{
    str text;

    TRY(op_ask_text(exchange, operation, members, &text));
    return node_read_json(&exchange->turn->work, text, out);
}
