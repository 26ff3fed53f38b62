/* waiting_claims.c - claims that wait for steps: by tool, the longest first, without a thread.
 *
 * A decision that makes a step ready looks for a waiting claim of its tool and starts the step for
 * it in the very same commit (steps.c): the worker gets it when that is durable, and no second
 * commit is made. A step that found none goes to its tool's queue, and the claim that waits for
 * that tool by then is called.
 *
 * A waiting claim is listed while it may be given steps. It is called once, and then its owner
 * comes and takes what there is (engine_claim_take); never while a step of it is still being
 * committed. What it was called for and leaves, because it is full or its owner has gone, calls
 * another one. */
#include "engine/parts.h"

#define LEASE_MAX_MS (INT64_C(7) * 86400 * 1000)
#define WAIT_MAX_MS  300000
/* Each holds a thread, perhaps of a server's; more are answered at once. */
#define SLEEPERS_MAX 8u

struct waiting_claim {
    struct waiting_claim *next, **link; /* link NULL: not listed */
    struct claim_args args;
    struct waiter waiter;
    struct claim_budget *budget; /* shared with those on other shards; NULL: none */
    int64_t until_ms;        /* by the tick: as long as it may wait */
    struct claimed *claimed; /* of args.max */
    uint32_t taken;          /* of them: for steps that are committed, under way, or were refused */
    uint32_t under_way, granted;
    size_t size;  /* of the arguments of what it has, or will have if it is committed */
    bool is_full; /* a step did not fit: those behind it stay ready */
    bool is_called;
    bool is_answering; /* its owner's answers are under way: it is called when they are done */
    bool is_slow;      /* when it was called, other steps were ready: to take them needs a commit */
};

_Static_assert(LIMIT_CLAIM_TEXT >= LIMIT_TEXT, "an answer has room for any one step");

/* ---- The list ---- */

static void list(struct engine *engine, struct waiting_claim *waiting)
{
    ASSERT_LOCKED(engine);
    waiting->next = NULL;
    waiting->link = engine->work.waiting_end;
    *engine->work.waiting_end = waiting;
    engine->work.waiting_end = &waiting->next;
}

static void unlist(struct engine *engine, struct waiting_claim *waiting)
{
    ASSERT_LOCKED(engine);
    if (!waiting->link)
        return;
    *waiting->link = waiting->next;
    *(waiting->next ? &waiting->next->link : &engine->work.waiting_end) = waiting->link;
    waiting->link = NULL;
}

/* While a step of it is being committed, or its owner's answers are, it is only taken from the
 * list: it is called when that is over. */
static void call(struct engine *engine, struct waiting_claim *waiting)
{
    ASSERT_LOCKED(engine);
    unlist(engine, waiting);
    if (waiting->is_called || waiting->is_answering || waiting->under_way)
        return;
    waiting->is_called = true;
    waiting->is_slow = waiting->granted < waiting->args.max && claims_wait(engine, &waiting->args);
    waiting->waiter.wake(waiting->waiter.context);
}

static bool serves(const struct waiting_claim *waiting, str tool)
{
    for (uint32_t i = 0; i < waiting->args.tool_count; i++)
        if (str_eq(waiting->args.tools[i], tool))
            return true;
    return false;
}

static bool has_room(const struct waiting_claim *waiting, size_t size)
{
    size_t taken = waiting->budget ? waiting->budget->size : waiting->size;

    return !waiting->is_full && taken <= LIMIT_CLAIM_TEXT && size <= LIMIT_CLAIM_TEXT - taken;
}

static void add_size(struct waiting_claim *waiting, size_t size)
{
    waiting->size += size;
    if (waiting->budget)
        waiting->budget->size += size;
}

bool waiting_may_have(struct waiting_claim *waiting)
{
    uint32_t left = waiting->budget ? waiting->budget->left : 1;

    while (waiting->budget && left > 0 &&
           !atomic_compare_exchange_weak(&waiting->budget->left, &left, left - 1))
        continue;
    return left > 0;
}

void waiting_has_not(struct waiting_claim *waiting)
{
    if (waiting->budget)
        waiting->budget->left++;
}

/* A connection that is suspended does not notice that its client has gone. One whose answers are
 * under way has just sent them: to ask the kernel for each step that they make ready costs more
 * than the step's lease. */
static bool is_there(const struct waiting_claim *waiting)
{
    return waiting->is_answering || !waiting->waiter.is_there ||
           waiting->waiter.is_there(waiting->waiter.context);
}

/* The first that can be given a step of this tool; those whose owners have gone are called. */
static struct waiting_claim *find(struct engine *engine, const struct flow_call *step)
{
    struct waiting_claim *next;

    for (struct waiting_claim *waiting = engine->work.waiting; waiting; waiting = next) {
        next = waiting->next;
        if (!serves(waiting, step->tool) || waiting->taken == waiting->args.max ||
            !has_room(waiting, step->args.size))
            continue;
        if (!is_there(waiting))
            call(engine, waiting);
        else if (waiting_may_have(waiting))
            return waiting;
    }
    return NULL;
}

/* Those whose owners have gone are called as well: they take nothing. */
bool waiting_call(struct engine *engine, str tool)
{
    bool is_heard = false;
    struct waiting_claim *next;

    ASSERT_LOCKED(engine);
    for (struct waiting_claim *waiting = engine->work.waiting; waiting && !is_heard;
         waiting = next) {
        next = waiting->next;
        if (waiting->under_way || !serves(waiting, tool))
            continue;
        is_heard = is_there(waiting);
        call(engine, waiting);
    }
    return is_heard;
}

void waiting_call_all(struct engine *engine)
{
    struct waiting_claim *next;

    ASSERT_LOCKED(engine);
    for (struct waiting_claim *waiting = engine->work.waiting; waiting; waiting = next) {
        next = waiting->next;
        call(engine, waiting);
    }
}

void engine_claims_end(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine->work.claims_ended = true;
    waiting_call_all(engine);
    guard_unlock(&engine->lock);
}

void engine_watch_unclaimed(struct engine *engine, void (*unclaimed)(void *context), void *context)
{
    guard_lock(&engine->lock);
    engine->work.unclaimed = unclaimed;
    engine->work.unclaimed_context = context;
    guard_unlock(&engine->lock);
}

bool engine_claims_are_ended(struct engine *engine)
{
    return engine->work.claims_ended;
}

bool waiting_has(const struct engine *engine, str worker)
{
    ASSERT_LOCKED(engine);
    for (const struct waiting_claim *item = engine->work.waiting; item; item = item->next)
        if (str_eq(item->args.worker, worker))
            return true;
    return false;
}

uint32_t waiting_count(const struct engine *engine)
{
    uint32_t count = 0;

    ASSERT_LOCKED(engine);
    for (const struct waiting_claim *waiting = engine->work.waiting; waiting;
         waiting = waiting->next)
        count++;
    return count;
}

/* ---- A step for a waiting claim ---- */

struct claimed *waiting_reserve(struct engine *engine, const struct flow_call *step,
                                uint32_t ordinal)
{
    struct claimed *claimed = NULL;
    struct waiting_claim *waiting = NULL;

    guard_lock(&engine->lock);
    if (engine->work.waiting && !engine->stopping && leases_make_room(engine, 1))
        waiting = find(engine, step);
    if (waiting) {
        claimed = &waiting->claimed[waiting->taken++];
        *claimed = (struct claimed){ .ordinal = ordinal,
                                     .worker = waiting->args.worker,
                                     .lease_ms = waiting->args.lease_ms,
                                     .waiting = waiting,
                                     .size = step->args.size,
                                     .status = PAWL_LEASE_LOST };
        waiting->under_way++;
        add_size(waiting, claimed->size);
    }
    guard_unlock(&engine->lock);
    if (claimed)
        claim_token(engine, claimed);
    return claimed;
}

/* The commit is over. One that got nothing stays where it is, unless it is not listed any more, or
 * a step has come meanwhile: for that it could not be called. */
void waiting_settle(struct engine *engine, struct claimed *claimed, bool is_granted)
{
    struct waiting_claim *waiting = claimed->waiting;

    if (!is_granted) {
        waiting_give_back(claimed);
        waiting_has_not(waiting);
    }
    claimed->status = is_granted ? PAWL_OK : PAWL_LEASE_LOST;
    waiting->granted += is_granted;
    if (--waiting->under_way > 0)
        return;
    if (waiting->granted || !waiting->link || waiting->budget ||
        claims_wait(engine, &waiting->args)) /* with a budget: others may have waited for this */
        call(engine, waiting);
    else
        waiting->taken = 0;
}

/* ---- A step from its queue ---- */

bool waiting_serves(const struct claimed *claimed, str tool)
{
    return serves(claimed->waiting, tool);
}

void waiting_give_back(struct claimed *claimed)
{
    claimed->waiting->size -= claimed->size;
    if (claimed->waiting->budget)
        claimed->waiting->budget->size -= claimed->size;
    claimed->size = 0;
}

static pawl_status refuse(struct scope *scope, struct claimed *claimed)
{
    claimed->stays_ready = true;
    return scope_fail(scope, PAWL_OVERLOADED,
                      "the claim's answer is full, or its client has gone; the step stays ready");
}

pawl_status waiting_check(struct engine *engine, struct scope *scope, struct claimed *claimed)
{
    struct waiting_claim *waiting = claimed->waiting;
    bool is_open;

    guard_lock(&engine->lock);
    is_open = !waiting->is_full && is_there(waiting);
    guard_unlock(&engine->lock);
    return is_open ? PAWL_OK : refuse(scope, claimed);
}

pawl_status waiting_charge(struct engine *engine, struct scope *scope, struct claimed *claimed,
                           size_t size)
{
    struct waiting_claim *waiting = claimed->waiting;
    bool fits;

    guard_lock(&engine->lock);
    waiting_give_back(claimed); /* it may be decided again */
    fits = has_room(waiting, size);
    claimed->size = fits ? size : 0;
    add_size(waiting, claimed->size);
    waiting->is_full = waiting->is_full || !fits;
    guard_unlock(&engine->lock);
    return fits ? PAWL_OK : refuse(scope, claimed);
}

/* ---- Its owner ---- */

pawl_status engine_claim_open(struct engine *engine, struct scope *scope,
                              const struct claim_args *args, const struct waiter *waiter,
                              struct claim_budget *budget, struct waiting_claim **out)
{
    int64_t wait_ms = args->wait_ms < WAIT_MAX_MS ? args->wait_ms : WAIT_MAX_MS;
    struct waiting_claim *waiting = ARENA_NEW(&scope->arena, struct waiting_claim);
    struct claimed *claimed = ARENA_ARRAY(&scope->arena, struct claimed, args->max);

    if (!engine->options.own)
        return scope_fail(scope, PAWL_IN_USE,
                          "only the owner of a store hands out its steps; open it with 'own', or "
                          "ask its server");
    TRY_MEMORY(scope, waiting && claimed);
    *waiting = (struct waiting_claim){ .args = *args,
                                       .waiter = *waiter,
                                       .budget = budget,
                                       .claimed = claimed,
                                       .until_ms = engine->env->tick_ms(engine->env) + wait_ms };
    waiting->args.lease_ms = args->lease_ms > 0 ? args->lease_ms : LEASE_DEFAULT_MS;
    if (waiting->args.lease_ms > LEASE_MAX_MS)
        waiting->args.lease_ms = LEASE_MAX_MS;
    workers_ask(engine, args);
    *out = waiting;
    return PAWL_OK;
}

void engine_claim_offer(struct engine *engine, struct waiting_claim *waiting)
{
    guard_lock(&engine->lock);
    if (!claims_insist(engine, &waiting->args))
        list(engine, waiting);
    guard_unlock(&engine->lock);
}

bool engine_claim_insists(struct engine *engine, const struct waiting_claim *waiting)
{
    bool insists;

    guard_lock(&engine->lock);
    insists = claims_insist(engine, &waiting->args);
    guard_unlock(&engine->lock);
    return insists;
}

void waiting_answering(struct waiting_claim *waiting)
{
    ASSERT(!waiting->link);
    waiting->is_answering = true;
}

void waiting_answered(struct engine *engine, struct waiting_claim *waiting)
{
    ASSERT_LOCKED(engine);
    waiting->is_answering = false;
    call(engine, waiting);
}

bool engine_claim_is_slow(const struct waiting_claim *waiting)
{
    return waiting->is_slow;
}

int64_t engine_claim_left_ms(struct engine *engine, const struct waiting_claim *waiting)
{
    int64_t left_ms = waiting->until_ms - engine->env->tick_ms(engine->env);

    return left_ms > 0 ? left_ms : 0;
}

/* It is given no more; true: nothing of it is under way. */
static bool withdraw(struct engine *engine, struct waiting_claim *waiting)
{
    bool is_settled;

    guard_lock(&engine->lock);
    unlist(engine, waiting);
    waiting->is_called = false;
    is_settled = waiting->under_way == 0;
    guard_unlock(&engine->lock);
    return is_settled;
}

/* Those on other shards have been given all that it asked for, or are about to be. */
static bool has_enough(const struct waiting_claim *waiting)
{
    return waiting->budget && waiting->budget->left == 0;
}

/* List it, unless a step has come since its queues were looked through; true: it waits. */
static bool park(struct engine *engine, struct waiting_claim *waiting)
{
    bool waits;

    guard_lock(&engine->lock);
    waits = (!claims_wait(engine, &waiting->args) || has_enough(waiting)) && !engine->stopping &&
            !engine->work.claims_ended;
    waiting->taken = waiting->granted = 0;
    waiting->is_full = false;
    add_size(waiting, (size_t)0 - waiting->size);
    if (waits)
        list(engine, waiting);
    guard_unlock(&engine->lock);
    return waits;
}

pawl_status engine_claim_take(struct engine *engine, struct scope *scope,
                              struct waiting_claim *waiting, bool may_wait, struct claimed **out,
                              uint32_t *count, bool *is_parked)
{
    pawl_status status;

    *is_parked = !withdraw(engine, waiting);
    if (*is_parked)
        return PAWL_OK;
    *out = waiting->claimed;
    *count = claims_unpack(engine, waiting->claimed, waiting->taken);
    do {
        status = is_there(waiting)
                     ? claim_now(engine, scope, &waiting->args, waiting, waiting->claimed, count)
                     : PAWL_OK;
        may_wait = may_wait && !status && *count == 0 && is_there(waiting) &&
                   engine_claim_left_ms(engine, waiting) > 0 && !engine->stopping &&
                   !engine->work.claims_ended;
        *is_parked = may_wait && park(engine, waiting);
    } while (may_wait && !*is_parked);
    if (!*is_parked)
        claims_pass_on(engine, &waiting->args);
    return status;
}

/* ---- A caller that waits in its own thread ---- */

struct sleeper {
    pthread_cond_t called;
    bool is_called;
};

static void wake_sleeper(void *context)
{
    struct sleeper *sleeper = context;

    sleeper->is_called = true;
    pthread_cond_signal(&sleeper->called);
}

static void sleep_until_called(struct engine *engine, struct sleeper *sleeper,
                               const struct waiting_claim *waiting)
{
    int64_t left_ms;

    guard_lock(&engine->lock);
    while (!sleeper->is_called &&
           ((left_ms = engine_claim_left_ms(engine, waiting)) > 0 || waiting->under_way))
        shell_wait_for(engine, &sleeper->called, left_ms > 0 ? left_ms : 1000);
    sleeper->is_called = false;
    guard_unlock(&engine->lock);
}

pawl_status engine_claim_wait(struct engine *engine, struct scope *scope,
                              struct waiting_claim *waiting, struct claimed **out, uint32_t *count)
{
    struct sleeper sleeper = { .is_called = false };
    bool may_wait, is_parked;
    pawl_status status;

    shell_cond_init(&sleeper.called);
    guard_lock(&engine->lock);
    waiting->waiter = (struct waiter){ .wake = wake_sleeper, .context = &sleeper };
    may_wait = engine->work.sleeper_count++ < SLEEPERS_MAX;
    guard_unlock(&engine->lock);
    do {
        status = engine_claim_take(engine, scope, waiting, may_wait, out, count, &is_parked);
        if (is_parked)
            sleep_until_called(engine, &sleeper, waiting);
    } while (is_parked);
    guard_lock(&engine->lock);
    engine->work.sleeper_count--;
    guard_unlock(&engine->lock);
    pthread_cond_destroy(&sleeper.called);
    return status;
}
