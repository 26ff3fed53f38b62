/* worker_claims.c - a worker's claim, on one shard or on many. */
#include "api/worker_claims.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/guard.h"
#include "env/env.h"

/* A wake that comes while the call runs is noted; it is called only while it waits. */
enum claim_state { CLAIM_RUNS, CLAIM_WAITS, CLAIM_WOKEN };

/* ---- Waking ---- */

/* A thread that waits for a claim on several shards. */
struct claim_sleeper {
    struct guard lock;
    pthread_cond_t called;
    bool is_called;
};

static void wake_sleeper(struct claim_sleeper *sleeper)
{
    guard_lock(&sleeper->lock);
    sleeper->is_called = true;
    pthread_cond_signal(&sleeper->called);
    guard_unlock(&sleeper->lock);
}

static void wake_call(struct claim_wait *claim, bool is_slow)
{
    if (claim->sleeper)
        wake_sleeper(claim->sleeper);
    if (!claim->call->waiter || atomic_exchange(&claim->state, CLAIM_WOKEN) != CLAIM_WAITS)
        return;
    claim->wait.is_slow = is_slow;
    claim->call->waiter->wake(claim->call->waiter->context);
}

static void wake_shard(void *context)
{
    const struct shard_claim *one = context;

    wake_call(one->of, one->of->shard_count > 1 || engine_claim_is_slow(one->waiting));
}

static void wake(void *context)
{
    struct claim_wait *claim = context;

    wake_call(claim, claim->shard_count > 1);
}

static bool is_there(const struct claim_wait *claim)
{
    const struct waiter *waiter = claim->call->waiter;

    return !waiter || !waiter->is_there || waiter->is_there(waiter->context);
}

static bool caller_is_there(void *context)
{
    return is_there(context);
}

static bool claimer_is_there(void *context)
{
    return is_there(((const struct shard_claim *)context)->of);
}

struct waiter claim_waiter(struct claim_wait *claim)
{
    return (struct waiter){ wake, caller_is_there, claim };
}

void claim_will_wait(struct claim_wait *claim)
{
    atomic_store(&claim->state, CLAIM_WAITS);
}

/* ---- Opening ---- */

pawl_status claim_open(struct op_call *call, const struct claim_args *args, struct claim_wait *out)
{
    static _Atomic uint32_t turn; /* each begins with another one */
    uint32_t count = shards_count(call->p);
    struct claim_budget *budget = count > 1 ? &out->budget : NULL;

    out->call = call;
    out->shards = ARENA_ARRAY(&call->scope->arena, struct shard_claim, count);
    out->claimed = ARENA_ARRAY(&call->scope->arena, struct claimed, args->max);
    TRY_MEMORY(call->scope, out->shards && out->claimed);
    out->budget.left = args->max;
    for (uint32_t i = 0; i < count; i++) {
        struct shard_claim *one = &out->shards[out->shard_count];
        struct waiter waiter = { wake_shard, claimer_is_there, one };

        if (!op_has_shard(call, i))
            continue;
        *one = (struct shard_claim){ .of = out, .engine = shard_at(call->p, i)->engine };
        TRY(engine_claim_open(one->engine, call->scope, args, &waiter, budget, &one->waiting));
        out->shard_count++;
    }
    if (out->shard_count == 0)
        return scope_fail(call->scope, PAWL_IN_USE, "this node owns no shard now");
    out->first = out->shard_count > 1 ? turn++ % out->shard_count : 0;
    return PAWL_OK;
}

struct shard_claim *claim_on(struct claim_wait *claim, const pawl *shard)
{
    struct shard_claim *found = NULL;

    for (uint32_t i = 0; claim->shards && i < claim->shard_count; i++) {
        struct shard_claim *one = &claim->shards[i];

        if (one->engine == shard->engine) {
            found = one;
        } else if (engine_claim_insists(one->engine, one->waiting)) {
            claim->first = i;
            return NULL;
        }
    }
    return found;
}

/* ---- Taking ---- */

/* What one shard gives; *is_parked: nothing yet. */
static void take_one(struct claim_wait *claim, struct shard_claim *one, bool may_wait,
                     bool *is_parked)
{
    struct claimed *claimed = NULL;
    uint32_t count = 0;
    pawl_status status = engine_claim_take(one->engine, claim->call->scope, one->waiting, may_wait,
                                           &claimed, &count, is_parked);

    if (status != PAWL_OK && claim->failed == PAWL_OK) {
        claim->failed = status;
        claim->error = claim->call->scope->error;
    }
    if (*is_parked)
        return;
    one->is_over = true;
    for (uint32_t i = 0; i < count; i++)
        claim->claimed[claim->count++] = claimed[i];
}

static bool may_go_on_waiting(const struct claim_wait *claim, bool may_wait)
{
    return may_wait && claim->count == 0 && claim->failed == PAWL_OK;
}

/* Each in turn. */
static bool take_round(struct claim_wait *claim, bool may_wait)
{
    bool is_parked, any = false;

    for (uint32_t i = 0; i < claim->shard_count; i++) {
        struct shard_claim *one = &claim->shards[(claim->first + i) % claim->shard_count];

        if (one->is_over)
            continue;
        take_one(claim, one, may_go_on_waiting(claim, may_wait), &is_parked);
        any = any || is_parked;
    }
    return any;
}

/* True: some have to be waited for. Once there is something, they are waited for only while a step
 * of theirs is being committed. */
static bool take_all(struct claim_wait *claim, bool may_wait)
{
    bool is_parked = take_round(claim, may_wait);

    if (is_parked && may_wait && !may_go_on_waiting(claim, true))
        is_parked = take_round(claim, false);
    return is_parked;
}

/* One that gave nothing is asked again the next time. */
static void begin_again(struct claim_wait *claim)
{
    if (claim->count == 0 && claim->failed == PAWL_OK)
        for (uint32_t i = 0; i < claim->shard_count; i++)
            claim->shards[i].is_over = false;
}

/* A shard that is on its way to another node waits until it is unused. */
static int64_t left_ms(const struct claim_wait *claim)
{
    for (uint32_t i = 0; i < claim->shard_count; i++)
        if (engine_claims_are_ended(claim->shards[i].engine))
            return 0;
    return engine_claim_left_ms(claim->shards[0].engine, claim->shards[0].waiting);
}

/* ---- The answer ---- */

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

void claim_print(struct op_call *call, const struct claim_wait *claim, struct buf *out)
{
    json_put_open(out, "steps", '[');
    for (uint32_t i = 0; i < claim->count; i++)
        print_claimed(&claim->claimed[i], out);
    json_close(out, ']');
    for (uint32_t i = 0; i < claim->count; i++)
        engine_claim_told(shard_of_instance(call->p, claim->claimed[i].instance)->engine,
                          &claim->claimed[i], 1);
    call->given = (struct op_given){ claim->claimed, claim->count };
}

static pawl_status finish(struct op_call *call, struct claim_wait *claim, struct buf *out)
{
    if (claim->count == 0 && claim->failed != PAWL_OK) {
        call->scope->error = claim->error;
        return claim->failed;
    }
    claim_print(call, claim, out);
    if (!out->failed)
        return PAWL_OK;
    op_not_sent(call->p, &call->given);
    return scope_no_memory(call->scope);
}

/* ---- Without a thread ---- */

/* Where it has to wait, the call is another thread's as soon as the state says so. */
static pawl_status claim_go_on(struct op_call *call, bool is_stopping, struct buf *out)
{
    struct claim_wait *claim = (struct claim_wait *)call->wait;
    int runs = CLAIM_RUNS;

    for (;;) {
        atomic_store(&claim->state, CLAIM_RUNS);
        claim->wait.left_ms = is_stopping ? 0 : left_ms(claim);
        begin_again(claim);
        if (!take_all(claim, claim->wait.left_ms > 0))
            return finish(call, claim, out);
        op_waits(call, call->wait);
        runs = CLAIM_RUNS;
        if (atomic_compare_exchange_strong(&claim->state, &runs, CLAIM_WAITS))
            return PAWL_OK;
        *call->waits = false; /* it was woken meanwhile */
    }
}

/* ---- A caller that waits in its own thread ---- */

/* One whose time is over waits for a commit that is under way. */
static void sleep_until_woken(const struct claim_wait *claim, struct env *env)
{
    struct claim_sleeper *sleeper = claim->sleeper;
    int64_t wait_ms = left_ms(claim), until_ms = env->tick_ms(env) + (wait_ms > 0 ? wait_ms : 1000);
    struct timespec at = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };

    guard_lock(&sleeper->lock);
    if (!sleeper->is_called)
        guard_wait_until(&sleeper->lock, &sleeper->called, &at);
    sleeper->is_called = false;
    guard_unlock(&sleeper->lock);
}

static void sleeper_init(struct claim_sleeper *sleeper)
{
    pthread_condattr_t monotonic;

    guard_init(&sleeper->lock);
    sleeper->is_called = false;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sleeper->called, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void claim_asleep(struct op_call *call, struct claim_wait *claim)
{
    struct env *env = engine_env(op_engine(call));
    struct claim_sleeper sleeper;

    sleeper_init(&sleeper);
    claim->sleeper = &sleeper;
    for (begin_again(claim); take_all(claim, left_ms(claim) > 0); begin_again(claim))
        sleep_until_woken(claim, env);
    claim->sleeper = NULL;
    pthread_cond_destroy(&sleeper.called);
    guard_fini(&sleeper.lock);
}

static pawl_status claim_in_thread(struct op_call *call, struct claim_wait *claim, struct buf *out)
{
    if (claim->shard_count > 1)
        claim_asleep(call, claim);
    else
        TRY(engine_claim_wait(claim->shards->engine, call->scope, claim->shards->waiting,
                              &claim->claimed, &claim->count));
    return finish(call, claim, out);
}

pawl_status claim_run(struct op_call *call, struct claim_wait *claim, bool is_stopping,
                      struct buf *out)
{
    if (!call->waiter)
        return claim_in_thread(call, claim, out);
    claim->wait.go_on = claim_go_on;
    call->wait = &claim->wait;
    return claim_go_on(call, is_stopping, out);
}
