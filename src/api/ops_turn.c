/* ops_turn.c - turns of code for workers elsewhere: what they have, claims, answers. */
#include "api/api.h"
#include "api/modules.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/limits.h"
#include "base/time.h"
#include "engine/workers.h"
#include "model/rights.h"
#include "model/words.h"
#include "module/afar.h"

#define LEASE_LONGEST_MS 60000

/* ---- What the store is to them ---- */

static pawl_status bind(void *context, struct scope *scope, const struct code_binding *binding)
{
    pawl *p = context;

    for (uint32_t i = 0; i < shards_count(p); i++)
        TRY(engine_code_bind(shard_at(p, i)->engine, binding, scope));
    return PAWL_OK;
}

static bool is_taken(void *context, const char *name)
{
    return api_has_code(context, name);
}

static void came(void *context)
{
    pawl *p = context;

    for (uint32_t i = 0; i < shards_count(p); i++)
        engine_code_came(shard_at(p, i)->engine);
}

static pawl_status afar_of(const struct op_call *call, struct afar **out)
{
    pawl *p = call->p;
    const struct afar_host host = { bind, is_taken, came, p };

    pthread_mutex_lock(&p->modules_lock);
    if (!p->afar)
        p->afar = afar_new(&p->heap, engine_env(p->engine), &host);
    *out = p->afar;
    pthread_mutex_unlock(&p->modules_lock);
    TRY_MEMORY(call->scope, *out);
    return PAWL_OK;
}

/* ---- An offer ---- */

static pawl_status check_worker(const struct op_call *call, str worker)
{
    if (str_is_blank(worker) || worker.size > LIMIT_ACTION)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "worker: expected a name of 1..%d bytes, found %zu", LIMIT_ACTION,
                          worker.size);
    return actor_is_reserved(worker)
               ? scope_fail(call->scope, PAWL_INVALID_REQUEST, "'worker' %s", ACTOR_RESERVED_WORDS)
               : PAWL_OK;
}

pawl_status op_turn_offer(struct op_call *call, struct buf *out)
{
    char session[AFAR_TOKEN + 1];
    struct afar *afar;

    TRY(check_worker(call, op_text(call, "worker")));
    TRY(afar_of(call, &afar));
    TRY(afar_offer(afar, call->scope, op_text(call, "worker"), node_find(call->input, "hello"),
                   session));
    json_put_text(out, "session", session);
    return PAWL_OK;
}

/* ---- A claim ---- */

/* A wake that comes while the call runs is noted; it is called only while it waits. */
enum { TAKE_RUNS, TAKE_WAITS, TAKE_WOKEN };

struct turn_take {
    struct op_wait wait; /* first: the call waits for it */
    struct op_call *call;
    struct afar *afar;
    struct afar_claim claim;
    int64_t until_ms;
    str answered; /* what came of the answers: members of the answer */
    _Atomic int state;
};

static void wake(void *context)
{
    struct turn_take *take = context;

    if (atomic_exchange(&take->state, TAKE_WOKEN) == TAKE_WAITS)
        take->call->waiter->wake(take->call->waiter->context);
}

static bool caller_is_there(void *context)
{
    const struct waiter *waiter = ((const struct turn_take *)context)->call->waiter;

    return !waiter || !waiter->is_there || waiter->is_there(waiter->context);
}

static pawl_status finish(const struct turn_take *take, const struct buf *turns, struct buf *out)
{
    buf_str(out, take->answered);
    json_put_open(out, "turns", '[');
    buf_str(out, buf_view(turns));
    json_close(out, ']');
    return PAWL_OK;
}

/* Where it has to wait, the call is another thread's as soon as the state says so. */
static pawl_status take_on(struct op_call *call, bool is_stopping, struct buf *out)
{
    struct turn_take *take = (struct turn_take *)call->wait;
    pawl_status status;
    struct buf turns;

    for (;;) {
        int64_t left = take->until_ms - afar_now(take->afar);
        int runs = TAKE_RUNS;
        bool waits;

        atomic_store(&take->state, TAKE_RUNS);
        buf_init(&turns, call->scope->arena.heap, LIMIT_SCOPE);
        status = afar_take(take->afar, call->scope, &take->claim, left > 0 && !is_stopping, &turns,
                           &waits);
        if (status == PAWL_OK && !waits)
            status = finish(take, &turns, out);
        buf_fini(&turns);
        if (status != PAWL_OK || !waits)
            return status;
        take->wait.left_ms = left;
        op_waits(call, &take->wait);
        if (atomic_compare_exchange_strong(&take->state, &runs, TAKE_WAITS))
            return PAWL_OK;
        *call->waits = false; /* it was woken meanwhile */
    }
}

static pawl_status read_span(const struct op_call *call, const char *name, int64_t least,
                             int64_t most, int64_t *out)
{
    str text = op_text(call, name);

    if (!text.data || (duration_parse(text, out) && *out >= least && *out <= most))
        return PAWL_OK;
    return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                      "%s: expected a duration of %lld to %lld ms, like \"10s\", found %.*s", name,
                      (long long)least, (long long)most, STR_ARG(words_shown(text)));
}

static pawl_status read_take(const struct op_call *call, struct turn_take *take)
{
    const struct node *max = node_find(call->input, "max");
    int64_t count = 1, wait_ms = 0, lease_ms = AFAR_LEASE_MS;

    if (max && max->kind != NODE_NULL &&
        (!node_to_i64(max, &count) || count < 1 || count > AFAR_TURNS))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST, "max: expected 1..%u", AFAR_TURNS);
    TRY(read_span(call, "wait", 0, LEASE_LONGEST_MS, &wait_ms));
    TRY(read_span(call, "lease", 100, LEASE_LONGEST_MS, &lease_ms));
    take->claim = (struct afar_claim){ .session = op_text(call, "session"),
                                       .max = (uint32_t)count,
                                       .lease_ms = lease_ms,
                                       .waiter = { wake, caller_is_there, take } };
    if (!call->waiter)
        take->claim.waiter.wake = NULL; /* as one line of a batch it does not wait */
    take->until_ms = afar_now(take->afar) + wait_ms;
    return PAWL_OK;
}

/* ---- Answers ---- */

static pawl_status answer_one(struct afar *afar, struct scope *scope, const struct node *item)
{
    const struct node *answer = node_find(item, "answer");

    if (item->kind != NODE_OBJECT || !answer || answer->kind != NODE_OBJECT)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "expected {turn_id, lease, answer}, where the answer is an object of the "
                          "turn protocol");
    return afar_answer(afar, scope, node_text(item, "turn_id"), node_text(item, "lease"),
                       answer->raw);
}

static void print_outcome(const struct node *item, pawl_status status, const pawl_error *error,
                          struct buf *out)
{
    char detail[OP_DETAIL_SIZE];

    json_open(out, '{');
    json_put_str(out, "turn_id", node_text(item, "turn_id"));
    if (status != PAWL_OK) {
        json_put_text(out, "reason", pawl_status_name(status));
        json_put_text(out, "detail", op_detail(status, error->message, detail));
    }
    json_close(out, '}');
}

/* One that is refused does not hold up the others. */
static pawl_status answer_all(struct op_call *call, struct turn_take *take)
{
    const struct node *answers = node_find(call->input, "answers");
    struct buf buf;

    if (answers && (answers->kind != NODE_ARRAY || answers->count > AFAR_TURNS))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "answers: expected a list of at most %u", AFAR_TURNS);
    buf_init(&buf, call->scope->arena.heap, LIMIT_SCOPE);
    json_key(&buf, "results");
    json_open(&buf, '[');
    for (const struct node *item = answers ? answers->first : NULL; item; item = item->next) {
        pawl_status status = answer_one(take->afar, call->scope, item);

        print_outcome(item, status, &call->scope->error, &buf);
        call->scope->error = (pawl_error){ .status = PAWL_OK };
    }
    json_close(&buf, ']');
    take->answered = buf_take(&buf, &call->scope->arena);
    TRY_MEMORY(call->scope, take->answered.data);
    return PAWL_OK;
}

pawl_status op_turn_claim(struct op_call *call, struct buf *out)
{
    struct turn_take *take = ARENA_NEW(&call->scope->arena, struct turn_take);

    TRY_MEMORY(call->scope, take);
    *take = (struct turn_take){ .call = call, .wait.go_on = take_on };
    TRY(afar_of(call, &take->afar));
    TRY(read_take(call, take));
    TRY(answer_all(call, take));
    call->wait = &take->wait;
    return take_on(call, false, out);
}

pawl_status op_turn_complete(struct op_call *call, struct buf *out)
{
    struct afar *afar;

    TRY(afar_of(call, &afar));
    TRY(answer_one(afar, call->scope, call->input));
    json_put_str(out, "turn_id", op_text(call, "turn_id"));
    return PAWL_OK;
}
