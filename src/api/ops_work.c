/* ops_work.c - steps for those who work on them: claim, heartbeat, complete, fail; and for
 * those who decide: approve, reject. */
#include "api/key.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "api/worker_claims.h"
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

void op_not_sent(pawl *p, const struct op_given *given)
{
    for (uint32_t i = 0; i < given->count; i++)
        engine_claim_return(shard_of_instance(p, given->steps[i].instance)->engine,
                            &given->steps[i], 1);
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
    TRY(claim_open(call, &args, waiting));
    return claim_run(call, waiting, false, out);
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
    str progress = op_json(call, "progress");

    TRY(read_duration(call, call->input, "extend", &extend_ms));
    if (progress.size > LIMIT_PROGRESS)
        return scope_fail(call->scope, PAWL_TOO_LARGE,
                          "progress: expected at most %u bytes of JSON, found %zu", LIMIT_PROGRESS,
                          progress.size);
    if (!lease_of(call->input).data)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "lease: expected the token that step.claim gave, found none");
    TRY(engine_step_heartbeat(op_engine(call), call->scope, op_text(call, "step_id"),
                              lease_of(call->input), extend_ms, progress, &expires_at_ms));
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
    pawl *shard;                 /* of all of them; NULL: they are of several */
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

pawl_status op_check_claim(struct op_call *call)
{
    struct claim_args args = { 0 };

    return read_claim(call, call->input, &args);
}

pawl_status op_check_turn(struct op_call *call)
{
    const struct node *claimed = node_find(call->input, "claim");
    struct turn_wait turn = { .claim.call = call };
    struct claim_args args = { 0 };

    return read_turn(call, &turn, claimed && claimed->kind != NODE_NULL ? claimed : NULL, &args);
}

/* The answers are known: what is printed of them, and the claim. */
static pawl_status end_turn(struct op_call *call, struct turn_wait *turn, bool is_stopping,
                            struct buf *out)
{
    json_put_open(out, "results", '[');
    for (uint32_t i = 0; i < turn->count; i++)
        print_answered(&turn->answers[i], out);
    json_close(out, ']');
    if (turn->claim.shards)
        return claim_run(call, &turn->claim, is_stopping, out);
    claim_print(call, &turn->claim, out);
    return PAWL_OK;
}

/* By a thread that may wait: those of each shard in one commit. What the first make ready may be
 * started for the claim in their own commit. */
static pawl_status send_shard(struct op_call *call, struct turn_wait *turn, pawl *shard,
                              struct step_answer *some, bool *has_claimed)
{
    struct shard_claim *claim = *has_claimed ? NULL : claim_on(&turn->claim, shard);
    uint32_t count = 0, next = 0;

    for (uint32_t i = 0; i < turn->count; i++)
        if (shard_of_id(call->p, turn->answers[i].step_id) == shard)
            some[count++] = turn->answers[i];
    if (count == 0)
        return PAWL_OK;
    *has_claimed = true;
    TRY(engine_step_answer_all(shard->engine, call->scope, some, count,
                               claim ? claim->waiting : NULL));
    for (uint32_t i = 0; i < turn->count; i++)
        if (shard_of_id(call->p, turn->answers[i].step_id) == shard)
            turn->answers[i] = some[next++];
    return PAWL_OK;
}

static pawl_status send_turn(struct op_call *call, struct turn_wait *turn)
{
    struct step_answer *some =
        ARENA_ARRAY(&call->scope->arena, struct step_answer, turn->count + 1);
    bool has_claimed = false;

    TRY_MEMORY(call->scope, some);
    for (uint32_t i = 0; i < shards_count(call->p); i++)
        TRY(send_shard(call, turn, shard_at(call->p, i), some, &has_claimed));
    return PAWL_OK;
}

/* The shard of all answers; NULL: of several, or of no answer at all. */
static pawl *one_shard(const struct op_call *call, const struct turn_wait *turn)
{
    pawl *shard = NULL;

    for (uint32_t i = 0; i < turn->count; i++) {
        pawl *of = shard_of_id(call->p, turn->answers[i].step_id);

        if (shard && of != shard)
            return NULL;
        shard = of;
    }
    return shard || shards_count(call->p) > 1 ? shard : call->p;
}

static pawl_status turn_go_on(struct op_call *call, bool is_stopping, struct buf *out)
{
    struct turn_wait *turn = (struct turn_wait *)call->wait;

    if (turn->answering)
        engine_step_answers_end(turn->shard->engine, turn->answering);
    else
        TRY(send_turn(call, turn));
    return end_turn(call, turn, is_stopping, out);
}

/* Without a thread. What may take long, or concerns several shards, goes on at once, by a thread
 * that may wait. */
static pawl_status start_turn(struct op_call *call, struct turn_wait *turn)
{
    struct waiter waiter = claim_waiter(&turn->claim);
    bool *waits = call->waits; /* once it is started, the call is another thread's */
    struct shard_claim *claim;
    bool needs_thread = true;
    pawl_status status = PAWL_OK;

    turn->claim.wait.go_on = turn_go_on;
    turn->shard = one_shard(call, turn);
    op_waits(call, &turn->claim.wait);
    claim_will_wait(&turn->claim);
    if (turn->shard) {
        claim = claim_on(&turn->claim, turn->shard);
        status = engine_step_answers_start(turn->shard->engine, call->scope, turn->answers,
                                           turn->count, claim ? claim->waiting : NULL, &waiter,
                                           &turn->answering, &needs_thread);
    }
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
        TRY(claim_open(call, &args, &turn->claim));
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
