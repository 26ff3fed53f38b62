/* ops_work.c - steps for those who work on them: claim, heartbeat, complete, fail; and for
 * those who decide: approve, reject. */
#include "api/key.h"
#include "api/ops_int.h"
#include "base/limits.h"
#include "base/time.h"
#include "engine/workers.h"
#include "flow/flow.h"
#include "model/rights.h"

#define CLAIM_MAX   1000
#define CLAIM_TOOLS 64

/* ---- Reading ---- */

static pawl_status read_duration(const struct op_call *call, const struct node *object,
                                 const char *name, int64_t *out_ms)
{
    const struct node *node = node_find(object, name);

    if (!node || node->kind == NODE_NULL ||
        (node->kind == NODE_STRING && duration_parse(node->text, out_ms)))
        return PAWL_OK;
    return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                      "%s: expected a duration like \"30s\", found %.*s", name,
                      STR_ARG(node->raw.data ? node->raw : node->text));
}

static pawl_status read_tools(const struct op_call *call, const struct node *list,
                              struct claim_args *out)
{
    str *tools = ARENA_ARRAY(&call->scope->arena, str, CLAIM_TOOLS);

    TRY_MEMORY(call->scope, tools);
    if (!list || list->kind != NODE_ARRAY || list->count == 0 || list->count > CLAIM_TOOLS)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "tools: expected a list of 1..%d names of tools", CLAIM_TOOLS);
    for (const struct node *item = list->first; item; item = item->next) {
        if (item->kind != NODE_STRING || str_is_blank(item->text))
            return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                              "tools: expected names of tools, found %s",
                              node_kind_name(item->kind));
        tools[out->tool_count++] = item->text;
    }
    out->tools = tools;
    return PAWL_OK;
}

/* `object` is the request of step.claim, or the member `claim` of a worker's turn. */
static pawl_status read_claim(const struct op_call *call, const struct node *object,
                              struct claim_args *out)
{
    const struct node *max = node_find(object, "max"), *worker = node_find(object, "worker");
    int64_t n = 1;

    TRY(read_tools(call, node_find(object, "tools"), out));
    if (!worker || worker->kind != NODE_STRING || str_is_blank(worker->text))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "worker: expected the worker's name, found none");
    if (worker->text.size > LIMIT_ACTION) /* entries name it as their actor */
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "worker: expected at most %d bytes, found %zu", LIMIT_ACTION,
                          worker->text.size);
    if (actor_is_reserved(worker->text))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST, "'worker' %s", ACTOR_RESERVED_WORDS);
    if (max && (!node_to_i64(max, &n) || n < 1 || n > CLAIM_MAX))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST, "max: expected 1..%d", CLAIM_MAX);
    out->max = (uint32_t)n;
    out->worker = worker->text;
    TRY(read_duration(call, object, "wait", &out->wait_ms));
    return read_duration(call, object, "lease", &out->lease_ms);
}

/* ---- Claims ---- */

static void print_claimed(const struct claimed *claimed, struct buf *out)
{
    char key[WORK_KEY_SIZE];

    json_open(out, '{');
    json_put_fmt(out, "step_id", "%s.%u", claimed->id, claimed->ordinal);
    json_put_text(out, "lease", claimed->token);
    json_put_text(out, "instance_id", claimed->id);
    json_put_str(out, "name", claimed->call.step);
    json_put_str(out, "tool", claimed->call.tool);
    json_put_raw(out, "args", claimed->call.args);
    json_put_u64(out, "attempt", claimed->call.attempt);
    work_key(&claimed->call, claimed->id, key);
    json_put_text(out, "idempotency_key", key);
    json_put_time(out, "lease_expires_at", claimed->expires_at_ms);
    json_opt_str(out, "traceparent", claimed->trace);
    json_close(out, '}');
}

/* A claim, and what waits for it without a thread. */
struct claim_wait {
    struct op_wait wait;
    struct op_call *call;
    struct waiting_claim *waiting; /* NULL: a turn that claims nothing */
};

static void wake_claim(void *context)
{
    struct claim_wait *claim = context;

    if (!claim->call->waiter)
        return;
    claim->wait.is_slow = claim->waiting && engine_claim_is_slow(claim->waiting);
    claim->call->waiter->wake(claim->call->waiter->context);
}

static bool claimer_is_there(void *context)
{
    const struct waiter *waiter = ((struct claim_wait *)context)->call->waiter;

    return !waiter || !waiter->is_there || waiter->is_there(waiter->context);
}

static struct waiter waiter_of(struct claim_wait *claim)
{
    return (struct waiter){ wake_claim, claimer_is_there, claim };
}

static pawl_status open_claim(struct op_call *call, const struct claim_args *args,
                              struct claim_wait *out)
{
    struct waiter waiter = waiter_of(out);

    return engine_claim_open(op_engine(call), call->scope, args, &waiter, &out->waiting);
}

/* The end of every answer that a claim is a part of. */
static void give_claimed(struct op_call *call, struct claimed *claimed, uint32_t count,
                         struct buf *out)
{
    json_put_open(out, "steps", '[');
    for (uint32_t i = 0; i < count; i++)
        print_claimed(&claimed[i], out);
    json_close(out, ']');
    engine_claim_told(op_engine(call), claimed, count);
    call->given = (struct op_given){ claimed, count };
}

/* What there is, or nothing yet: then it waits. */
static pawl_status claim_go_on(struct op_call *call, bool is_stopping, struct buf *out)
{
    struct claim_wait *waiting = (struct claim_wait *)call->wait;
    struct claimed *claimed;
    uint32_t count;
    bool is_parked;
    pawl_status status;

    waiting->wait.left_ms =
        is_stopping ? 0 : engine_claim_left_ms(op_engine(call), waiting->waiting);
    status = engine_claim_take(op_engine(call), call->scope, waiting->waiting,
                               waiting->wait.left_ms > 0, &claimed, &count, &is_parked);
    if (is_parked)
        op_waits(call, call->wait);
    if (status != PAWL_OK || is_parked)
        return status;
    give_claimed(call, claimed, count, out);
    if (!out->failed)
        return PAWL_OK;
    op_not_sent(call->p, &call->given);
    return scope_no_memory(call->scope);
}

/* Without a waiter the caller's own thread waits. */
static pawl_status claim(struct op_call *call, struct claim_wait *waiting, bool is_stopping,
                         struct buf *out)
{
    struct claimed *claimed;
    uint32_t count;

    if (!call->waiter) {
        TRY(engine_claim_wait(op_engine(call), call->scope, waiting->waiting, &claimed, &count));
        give_claimed(call, claimed, count, out);
        return PAWL_OK;
    }
    waiting->wait.go_on = claim_go_on;
    call->wait = &waiting->wait;
    return claim_go_on(call, is_stopping, out);
}

void op_not_sent(pawl *p, const struct op_given *given)
{
    if (given->count > 0)
        engine_claim_return(p->engine, given->steps, given->count);
}

struct op_given op_given_copy(const struct op_given *given)
{
    struct claimed *copy = heap_new(&heap_libc, given->count * sizeof *copy);

    if (copy)
        memcpy(copy, given->steps, given->count * sizeof *copy);
    return (struct op_given){ copy, copy ? given->count : 0 };
}

void op_given_free(struct op_given *given)
{
    union {
        const struct claimed *kept;
        struct claimed *ours;
    } steps = { given->steps };

    heap_free(&heap_libc, steps.ours, given->count * sizeof *steps.ours);
    *given = (struct op_given){ 0 };
}

pawl_status op_step_claim(struct op_call *call, struct buf *out)
{
    struct claim_wait *waiting = ARENA_NEW(&call->scope->arena, struct claim_wait);
    struct claim_args args = { 0 };

    TRY_MEMORY(call->scope, waiting);
    *waiting = (struct claim_wait){ .call = call };
    TRY(read_claim(call, call->input, &args));
    TRY(open_claim(call, &args, waiting));
    return claim(call, waiting, false, out);
}

/* ---- Answers ---- */

/* A lease, where it is given; null counts as missing, and so does "". */
static str lease_of(const struct node *object)
{
    str lease = node_text(object, "lease");

    return lease.size > 0 ? lease : STR_NONE;
}

static struct event event_of(const struct node *object, bool is_failure)
{
    const struct node *retry = node_find(object, "retry");

    return (struct event){ .kind = is_failure ? EVENT_STEP_FAILED : EVENT_STEP_DONE,
                           .payload = node_raw(object, is_failure ? "error" : "result"),
                           .no_retry = retry && retry->kind == NODE_BOOL && !retry->truth };
}

/* The status is the step's, whatever was asked for: a result may fail it (a condition that cannot
 * be evaluated), an approval may leave it pending. */
static pawl_status answer(struct op_call *call, struct event event, struct buf *out)
{
    struct step_answer answer = { .step_id = op_text(call, "step_id"),
                                  .lease = lease_of(call->input),
                                  .event = event,
                                  .key = call->key };

    TRY(engine_step_answer(op_engine(call), call->scope, &answer));
    json_put_text(out, "status", step_status_name(answer.outcome));
    return PAWL_OK;
}

pawl_status op_step_complete(struct op_call *call, struct buf *out)
{
    return answer(call, event_of(call->input, false), out);
}

pawl_status op_step_fail(struct op_call *call, struct buf *out)
{
    return answer(call, event_of(call->input, true), out);
}

pawl_status op_step_heartbeat(struct op_call *call, struct buf *out)
{
    int64_t extend_ms = 0, expires_at_ms = 0;

    TRY(read_duration(call, call->input, "extend", &extend_ms));
    if (!lease_of(call->input).data)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "lease: expected the token that step.claim gave, found none");
    TRY(engine_step_heartbeat(op_engine(call), call->scope, op_text(call, "step_id"),
                              lease_of(call->input), extend_ms, &expires_at_ms));
    json_put_text(out, "status", step_status_name(STEP_RUNNING));
    json_put_time(out, "lease_expires_at", expires_at_ms);
    return PAWL_OK;
}

/* ---- A worker's whole turn ---- */

/* step.complete's row, or step.fail's, with what both take. */
static const struct op answer_row = {
    .name = "steps",
    .params =
        (const struct op_param[]){
            { "step_id", IN_BODY, OP_STRING, true, "the step" },
            { "lease", IN_BODY, OP_STRING, false, "the token that step.claim gave" },
            { "result", IN_BODY, OP_JSON, false, "what came of it; or else:" },
            { "error", IN_BODY, OP_JSON, false, "what went wrong" },
            { "retry", IN_BODY, OP_BOOL, false, "false ends the step's attempts" },
            { NULL, IN_BODY, OP_STRING, false, NULL },
        },
};

/* One that is refused does not hold up the others; its reason is printed in its place. */
static void print_answered(const struct step_answer *answered, struct buf *out)
{
    char detail[OP_DETAIL_SIZE];
    pawl_status status = answered->status;

    json_open(out, '{');
    json_put_str(out, "step_id", answered->step_id);
    if (status == PAWL_OK) {
        json_put_text(out, "status", step_status_name(answered->outcome));
    } else {
        json_put_text(out, "reason", pawl_status_name(status));
        json_put_text(out, "detail", op_detail(status, answered->error.message, detail));
    }
    json_close(out, '}');
}

/* A worker's turn: its answers, then its claim. */
struct turn_wait {
    struct claim_wait claim; /* first: the call waits for it */
    struct step_answer *answers;
    uint32_t count;
    struct answering *answering; /* NULL: not sent yet */
};

/* Each has a part of the turn's key, so that a turn that was cut short can be repeated. */
static pawl_status read_answer(const struct op_call *call, const struct node *item,
                               struct turn_wait *turn)
{
    bool is_failure = node_find(item, "error") != NULL;
    struct step_answer *next = &turn->answers[turn->count];

    if (item->kind != NODE_OBJECT)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "steps: expected {step_id, lease, result} or {step_id, lease, error}");
    if (is_failure && node_find(item, "result"))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "steps: one has a result and an error; it can have one");
    TRY(op_check_part(call->scope, &answer_row, item, "steps."));
    *next = (struct step_answer){ .step_id = node_find(item, "step_id")->text,
                                  .lease = lease_of(item),
                                  .event = event_of(item, is_failure) };
    return key_nth(call->scope, call->key, turn->count++, &next->key);
}

static pawl_status read_turn(const struct op_call *call, struct turn_wait *turn,
                             const struct node *claimed, struct claim_args *args)
{
    const struct node *steps = node_find(call->input, "steps");

    if (!steps || steps->kind != NODE_ARRAY || steps->count > CLAIM_MAX)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "steps: expected a list of at most %d answers", CLAIM_MAX);
    turn->answers = ARENA_ARRAY(&call->scope->arena, struct step_answer, steps->count + 1);
    TRY_MEMORY(call->scope, turn->answers);
    for (const struct node *item = steps->first; item; item = item->next)
        TRY(read_answer(call, item, turn));
    if (!claimed)
        return PAWL_OK;
    TRY(op_check_part(call->scope, op_find(STR("step.claim")), claimed, "claim."));
    return read_claim(call, claimed, args);
}

/* The answers are known: what is printed of them, and the claim. */
static pawl_status end_turn(struct op_call *call, struct turn_wait *turn, bool is_stopping,
                            struct buf *out)
{
    json_put_open(out, "results", '[');
    for (uint32_t i = 0; i < turn->count; i++)
        print_answered(&turn->answers[i], out);
    json_close(out, ']');
    if (turn->claim.waiting)
        return claim(call, &turn->claim, is_stopping, out);
    give_claimed(call, NULL, 0, out);
    return PAWL_OK;
}

/* By a thread that may wait. What the answers make ready may be started for the claim in their own
 * commit. */
static pawl_status send_turn(struct op_call *call, struct turn_wait *turn)
{
    return engine_step_answer_all(op_engine(call), call->scope, turn->answers, turn->count,
                                  turn->claim.waiting);
}

static pawl_status turn_go_on(struct op_call *call, bool is_stopping, struct buf *out)
{
    struct turn_wait *turn = (struct turn_wait *)call->wait;

    if (turn->answering)
        engine_step_answers_end(op_engine(call), turn->answering);
    else
        TRY(send_turn(call, turn));
    return end_turn(call, turn, is_stopping, out);
}

/* Without a thread. What may take long goes on at once, by a thread that may wait. */
static pawl_status start_turn(struct op_call *call, struct turn_wait *turn)
{
    struct waiter waiter = waiter_of(&turn->claim);
    bool *waits = call->waits; /* once it is started, the call is another thread's */
    bool needs_thread;
    pawl_status status;

    turn->claim.wait.go_on = turn_go_on;
    op_waits(call, &turn->claim.wait);
    status =
        engine_step_answers_start(op_engine(call), call->scope, turn->answers, turn->count,
                                  turn->claim.waiting, &waiter, &turn->answering, &needs_thread);
    if (status != PAWL_OK) {
        *waits = false;
        return status;
    }
    if (needs_thread) {
        turn->claim.wait.is_slow = true;
        call->waiter->wake(call->waiter->context);
    }
    return PAWL_OK;
}

pawl_status op_step_complete_many(struct op_call *call, struct buf *out)
{
    struct turn_wait *turn = ARENA_NEW(&call->scope->arena, struct turn_wait);
    const struct node *claimed = node_find(call->input, "claim");
    struct claim_args args = { 0 };

    TRY_MEMORY(call->scope, turn);
    *turn = (struct turn_wait){ .claim.call = call };
    if (claimed && claimed->kind == NODE_NULL)
        claimed = NULL;
    TRY(read_turn(call, turn, claimed, &args));
    if (claimed)
        TRY(open_claim(call, &args, &turn->claim));
    if (call->waiter)
        return start_turn(call, turn);
    TRY(send_turn(call, turn));
    return end_turn(call, turn, false, out);
}

/* ---- Gates ---- */

static struct event decision_of(struct op_call *call, enum event_kind kind)
{
    return (struct event){ .kind = kind,
                           .actor = op_ref(call, "actor_ref"),
                           .reason = op_told(call, "reason"),
                           .payload = op_json(call, "payload"),
                           .late = op_ref_defect(call, "actor_ref") };
}

pawl_status op_step_approve(struct op_call *call, struct buf *out)
{
    return answer(call, decision_of(call, EVENT_APPROVE), out);
}

pawl_status op_step_reject(struct op_call *call, struct buf *out)
{
    return answer(call, decision_of(call, EVENT_REJECT), out);
}
