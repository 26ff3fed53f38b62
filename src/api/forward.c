/* forward.c - a call that needs the owner of its shard: run here where this node is the owner, else
 * by the node that is. While the shard has no owner it waits.
 *
 * What certainly did not happen (IN_USE, nothing sent) is tried again. What may have happened is
 * tried again only with an idempotency key: that is in the log, so the answer is the same. */
#include "api/forward.h"
#include "api/ops_int.h"
#include "api/outgoing.h"
#include "api/shards.h"
#include "api/station_int.h"
#include "base/assert.h"
#include "env/env.h"
#include <stdio.h>

/* A read whose answer has what only the owner's memory knows: who asks for steps, and signals that
 * were refused. */
static bool is_of_memory(const struct op *op)
{
    return op->handle == op_instance_why || op->handle == op_instance_view ||
           op->handle == op_worker_list;
}

bool station_may_be_away(pawl *p, const struct op *op)
{
    return station_of(p) && (is_of_memory(op) || op->handle == op_turn_complete);
}

static bool has_shards(const struct op_call *call)
{
    return call->p && station_of(call->p) && shards_count(call->p) > 1;
}

/* Turns of code are with one process: the only owner, or, of several shards, the node that the
 * worker calls, which decides for its own. */
static bool is_of_turns(const struct op *op)
{
    return op->handle == op_turn_offer || op->handle == op_turn_claim ||
           op->handle == op_turn_complete;
}

/* Does it need the owner? What only reads is read from the database where others own. */
static bool needs_owner(const struct op_call *call)
{
    if (is_of_turns(call->op))
        return !has_shards(call);
    return (call->op->flags & OP_WRITES) && !(call->op->flags & OP_FIRST_STORE);
}

static bool is_sum(const struct op_call *call)
{
    return call->op->handle == op_instance_cancel_many || call->op->handle == op_signal_broadcast ||
           call->op->handle == op_subject_erase;
}

/* What it does on each shard is added up; the shard of its key, or the home shard, begins. */
bool spread_is_sum(const struct op_call *call)
{
    return has_shards(call) && !call->part.data && is_sum(call);
}

void station_place(struct op_call *call)
{
    uint64_t shard;

    if (!has_shards(call) || is_sum(call))
        return;
    if (str_to_u64(call->part, &shard) && shard < shards_count(call->p))
        call->p = shard_at(call->p, (uint32_t)shard);
    call->part = STR_NONE;
}

/* It uses what is here, and goes on elsewhere by itself. */
static bool is_of_own(const struct op_call *call)
{
    bool claims = call->op->handle == op_step_claim || call->op->handle == op_step_complete_many;

    if (!has_shards(call)) /* the answer to a key is kept by the owner */
        return claims && !call->key_text.data;
    return claims || call->op->handle == op_batch;
}

/* Is it about every shard, or about none? Then all have to be here. */
static bool is_of_all(const struct op_call *call)
{
    return (call->op->where == AT_ALL || call->op->where == AT_HERE) && !spread_is_sum(call);
}

/* It can be repeated, whatever became of it. */
static bool is_repeatable(const struct op_call *call)
{
    return call->key_text.data && !(call->op->flags & OP_NO_KEY);
}

/* Alarms fire again at the next owner. */
static bool is_of_alarm(const struct op_call *call)
{
    return call->scope->alarm.data || call->scope->is_alarms;
}

/* ---- At another node ---- */

struct forwarding {
    struct op_call *call;
    const struct station_where *where;
    int64_t until_ms; /* a step may be waited for meanwhile, so this is about the node alone */
};

static bool may_wait(void *context)
{
    const struct forwarding *asking = context;

    return station_is_up(asking->call->p, asking->where->node);
}

static void sign_what(const struct op_call *call, const struct op_outgoing *out,
                      struct station_signing *what)
{
    *what = (struct station_signing){ .method = str_of(call->op->method),
                                      .target = str_of(out->target),
                                      .key = call->key_text,
                                      .part = call->part,
                                      .trace = call->scope->trace,
                                      .who = call->who };
    station_body_hash(call->p, out->body, what->body);
}

/* A creation without a key may be anywhere: it is for the shard that was chosen. */
static str part_of(struct op_call *call, char shard[16])
{
    const struct station *node = station_of(call->p);

    if (call->part.data || call->op->where != AT_KEYED || !has_shards(call))
        return call->part;
    (void)snprintf(shard, 16, "%u", (unsigned)(station_shard_of(call->p) - node->shards));
    return str_of(shard);
}

static pawl_status ask(struct op_call *call, const struct station_where *where, struct buf *out,
                       struct peer_answer *answer)
{
    struct station *node = station_of(call->p);
    struct forwarding asking = { call, where, 0 };
    struct op_outgoing outgoing;
    struct station_signing what;
    char signature[SIGNED_SIZE], shard[16];
    str as;

    TRY(op_print_request(call->scope, call->op, "", call->input, false, &outgoing));
    sign_what(call, &outgoing, &what);
    what.part = part_of(call, shard);
    TRY(station_sign(call->p, call->scope, &what, where->node, signature, &as));
    {
        const struct peer_header headers[] = {
            { SIGNED_HEADER, str_of(signature) },
            { AS_HEADER, as },
            { OP_SIGNED_PART, what.part },
            { "Content-Type", str_of(outgoing.content_type) },
            { "Idempotency-Key", call->key_text },
            { "traceparent", call->scope->trace },
            { NULL, STR_NONE },
        };
        const struct peer_request request = { .method = call->op->method,
                                              .target = outgoing.target,
                                              .headers = headers,
                                              .body = outgoing.body,
                                              .may_wait = may_wait,
                                              .context = &asking };

        peer_call(node->peers, call->scope, where->address, &request, out, answer);
    }
    guard_lock(&node->lock);
    node->forwarded++;
    guard_unlock(&node->lock);
    return PAWL_OK;
}

static pawl_status take_answer(struct op_call *call, const struct peer_answer *peer, size_t begun,
                               struct buf *out, struct op_answer *answer)
{
    pawl_status status = PAWL_OK;

    if (peer->status ==
        401) { /* its caller is known: the node there is not the one that was asked */
        out->size = begun;
        return scope_fail(call->scope, PAWL_IN_USE, "another node has taken that address");
    }
    if (peer->status >= 300) {
        str problem = arena_str(&call->scope->arena, str_from(buf_view(out), begun));

        out->size = begun;
        status = op_read_problem(call->scope, problem);
        return status != PAWL_OK
                   ? status
                   : scope_fail(call->scope, PAWL_STORAGE_FAILURE,
                                "a node answered %d, but not as a pawl server does", peer->status);
    }
    *answer = (struct op_answer){ .http_status = peer->status,
                                  .content_type = peer->type ? peer->type : "application/json" };
    return PAWL_OK;
}

/* NOT_KNOWN never comes of a node that is not there: that is IN_USE (nothing happened) or
 * OUTCOME_UNKNOWN. */
pawl_status forward_there(struct op_call *call, const struct station_where *where, struct buf *out,
                          struct op_answer *answer)
{
    struct peer_answer peer;
    size_t begun = out->size;

    TRY(ask(call, where, out, &peer));
    if (peer.end == PEER_ANSWERED)
        return take_answer(call, &peer, begun, out, answer);
    station_suspect(call->p);
    if (peer.end == PEER_NOT_SENT)
        return scope_fail(call->scope, PAWL_IN_USE, "node %s at %s: %s", where->node,
                          where->address, peer.why);
    return scope_fail(call->scope, PAWL_OUTCOME_UNKNOWN,
                      "the call was sent to node %s at %s, and not answered: %s", where->node,
                      where->address, peer.why);
}

/* ---- Here ---- */

static pawl_status run_here(struct op_call *call, struct buf *out, struct op_answer *answer,
                            bool *waits)
{
    call->entered = is_of_all(call) ? ENTERED_ALL : ENTERED_ONE;
    return op_start_here(call, out, answer, waits);
}

/* Without leaving the thread. */
static pawl_status run_here_whole(struct op_call *call, struct buf *out, struct op_answer *answer)
{
    bool waits = false;
    pawl_status status;

    call->waiter = NULL;
    status = run_here(call, out, answer, &waits);
    ASSERT(!waits);
    return status;
}

/* ---- Until it is done ---- */

/* Once a try may have happened, a failure says nothing of it; a rejection does, since the key would
 * have been found. */
static bool is_worth_repeating(const struct op_call *call, pawl_status status, bool is_unknown)
{
    if (status == PAWL_IN_USE)
        return true;
    if (!is_repeatable(call))
        return false;
    return status == PAWL_OUTCOME_UNKNOWN ||
           (is_unknown && (status == PAWL_STORAGE_FAILURE || status == PAWL_OVERLOADED ||
                           status == PAWL_NO_MEMORY));
}

static pawl_status fail_late(struct op_call *call, bool is_unknown)
{
    if (is_unknown)
        return scope_fail(call->scope, PAWL_OUTCOME_UNKNOWN,
                          "the call was sent, and its shard had no owner that answered for %d s: "
                          "repeat it with the same key",
                          FORWARD_WAIT_MS / 1000);
    return scope_fail(call->scope, PAWL_OVERLOADED,
                      "no node has owned the call's shard for %d s: nothing happened; try later",
                      FORWARD_WAIT_MS / 1000);
}

#define AGAIN_MS 200 /* between two tries, though nothing is known to have changed */

static pawl_status try_once(struct op_call *call, struct buf *out, struct op_answer *answer,
                            struct station_where *where)
{
    enum station_place place = station_find(call->p, is_of_all(call), where);

    if (place == STATION_HERE && station_enter(call->p, is_of_all(call)))
        return run_here_whole(call, out, answer);
    if (place == STATION_THERE)
        return forward_there(call, where, out, answer);
    return scope_fail(call->scope, PAWL_IN_USE, "its shard has no owner now");
}

int64_t forward_until_ms(const struct op_call *call)
{
    return station_tick_ms(station_of(call->p)) + FORWARD_WAIT_MS;
}

bool forward_may_repeat(const struct op_call *call, pawl_status status)
{
    return is_worth_repeating(call, status, false);
}

bool forward_pause(struct op_call *call, uint64_t change, int64_t until_ms)
{
    struct station *node = station_of(call->p);
    int64_t now_ms = station_tick_ms(node);

    if (now_ms >= until_ms)
        return false;
    guard_lock(&node->lock);
    node->repeated++;
    guard_unlock(&node->lock);
    station_await(call->p, change, now_ms + AGAIN_MS < until_ms ? now_ms + AGAIN_MS : until_ms);
    return true;
}

static pawl_status run_until_done(struct op_call *call, pawl_status status, struct buf *out,
                                  struct op_answer *answer)
{
    int64_t until_ms = forward_until_ms(call);
    bool is_unknown = status == PAWL_OUTCOME_UNKNOWN;
    struct station_where where;

    for (;;) {
        status = try_once(call, out, answer, &where);
        is_unknown = is_unknown || status == PAWL_OUTCOME_UNKNOWN;
        if (!is_worth_repeating(call, status, is_unknown))
            return status;
        if (!forward_pause(call, where.change, until_ms))
            return fail_late(call, is_unknown);
    }
}

void station_leave(struct op_call *call)
{
    if (call->entered == ENTERED_SOME)
        station_exit_these(call->p, call->own_shards);
    else if (call->entered != ENTERED_NOT)
        station_exit(call->p, call->entered == ENTERED_ALL);
    call->entered = ENTERED_NOT;
}

static bool others_own_some(const struct op_call *call)
{
    struct station_where where;

    for (uint32_t i = 0; i < shards_count(call->p); i++)
        if (station_find(shard_at(call->p, i), false, &where) != STATION_HERE)
            return true;
    return false;
}

/* Workers ask every node: one that owns something has heard of them. */
static bool is_memory_away(const struct op_call *call, struct station_where *where)
{
    if (!is_of_memory(call->op) || call->is_forwarded)
        return false;
    for (uint32_t i = 0; call->op->handle == op_worker_list && i < shards_count(call->p); i++)
        if (station_find(shard_at(call->p, i), false, where) == STATION_HERE)
            return false;
    return station_find(call->p, false, where) == STATION_THERE;
}

bool station_call_is_away(const struct op_call *call)
{
    struct station_where where;

    if (!call->p || !station_of(call->p))
        return false;
    if (!needs_owner(call))
        return is_memory_away(call, &where);
    if (is_of_own(call))
        return !call->is_forwarded && others_own_some(call);
    return call->part.data || spread_is_sum(call) ||
           station_find(call->p, is_of_all(call), &where) != STATION_HERE;
}

static bool is_long(const struct op_call *call)
{
    return call->op->handle == op_turn_claim ||
           (call->op->handle == op_step_claim && call->key_text.data);
}

enum op_reach station_reach(const struct op_call *call)
{
    if (!call->p || !station_of(call->p) || call->part.data)
        return OP_NEAR;
    if (call->roaming)
        return roaming_looks(call) ? OP_FAR : OP_NEAR;
    if (spread_is_sum(call))
        return call->is_forwarded ? OP_SUM : OP_FAR;
    if (call->is_forwarded || (!call->again && !station_call_is_away(call)))
        return OP_NEAR;
    return is_long(call) ? OP_LONG : OP_FAR;
}

/* The thread that has it must not wait for other nodes, and it has to. */
static pawl_status go_elsewhere(struct op_call *call)
{
    call->is_elsewhere = true;
    return scope_fail(call->scope, PAWL_IN_USE, "another node owns what the call is about");
}

static pawl_status fail_stale(struct op_call *call)
{
    return scope_fail(call->scope, PAWL_OVERLOADED,
                      "this node has not reached the database for most of its lease: another may "
                      "own what is asked for; try later");
}

/* A part of a call, or one that uses what is here. */
static pawl_status run_some(struct op_call *call, struct buf *out, struct op_answer *answer,
                            bool *waits)
{
    uint32_t count = 0;

    if (call->is_near && !call->is_forwarded && others_own_some(call))
        return go_elsewhere(call);
    if (!call->is_forwarded && call->op->handle == op_step_claim && others_own_some(call))
        return roaming_begin(call, STR_NONE, out, answer, waits);
    if (!call->is_forwarded && call->op->handle == op_step_complete_many && others_own_some(call))
        return spread_turn(call, out, answer, waits);
    TRY(call->part.data ? spread_begin_part(call) : spread_begin_own(call, &count));
    return op_start_here(call, out, answer, waits);
}

/* If the owner does not answer, the rows say what they know. */
static pawl_status read_there(struct op_call *call, const struct station_where *where,
                              struct buf *out, struct op_answer *answer, bool *waits)
{
    size_t begun = out->size;
    pawl_status status;

    if (call->is_near)
        return go_elsewhere(call);
    status = forward_there(call, where, out, answer);
    if (status != PAWL_IN_USE && status != PAWL_OUTCOME_UNKNOWN)
        return status;
    out->size = begun;
    return op_start_here(call, out, answer, waits);
}

pawl_status station_run(struct op_call *call, struct buf *out, struct op_answer *answer,
                        bool *waits)
{
    struct station_where where;

    if (!needs_owner(call) && is_memory_away(call, &where))
        return read_there(call, &where, out, answer, waits);
    if (!needs_owner(call))
        return station_may_read(call->p) ? op_start_here(call, out, answer, waits)
                                         : fail_stale(call);
    if ((call->part.data && is_sum(call)) || is_of_own(call))
        return run_some(call, out, answer, waits);
    if (station_enter(call->p, is_of_all(call)))
        return run_here(call, out, answer, waits);
    if (call->is_forwarded || is_of_alarm(call))
        return scope_fail(call->scope, PAWL_IN_USE, "this node does not own the call's shard");
    if (call->is_near)
        return go_elsewhere(call);
    return run_until_done(call, PAWL_OK, out, answer);
}

bool station_may_run_again(const struct op_call *call, pawl_status status)
{
    return !call->is_forwarded && !is_of_alarm(call) && !is_of_own(call) &&
           is_worth_repeating(call, status, false);
}

pawl_status station_run_again(struct op_call *call, pawl_status status, struct buf *out,
                              struct op_answer *answer)
{
    call->again = PAWL_OK;
    return station_may_run_again(call, status) ? run_until_done(call, status, out, answer) : status;
}
