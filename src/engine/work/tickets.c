/* tickets.c - claims that wait for steps: by tool, the longest first, without a thread.
 *
 * A decision that makes a step ready looks for a ticket of its tool and starts the step for it in
 * the very same commit (steps.c): the worker gets it when that is durable, and no second commit is
 * made. A step that found none goes to its tool's queue, and the claim that waits for that tool by then is
 * called.
 *
 * A ticket is listed while it may be given steps. It is called once, and then its owner comes and
 * takes what there is (engine_claim_take); never while a step of it is still being committed. What
 * it was called for and leaves, because it is full or its owner has gone, calls another one. */
#include "engine/parts.h"

#define LEASE_MAX_MS (INT64_C(7) * 86400 * 1000)
#define WAIT_MAX_MS  300000
/* Each holds a thread, perhaps of a server's; more are answered at once. */
#define SLEEPERS_MAX 8u

struct ticket {
    struct ticket *next, **link; /* link NULL: not listed */
    struct claim_args args;
    struct waiter waiter;
    int64_t until_ms;        /* by the tick: as long as it may wait */
    struct claimed *claimed; /* of args.max */
    uint32_t taken;          /* of them: for steps that are committed, under way, or were refused */
    uint32_t under_way, granted;
    size_t size;  /* of the arguments of what it has, or will have if it is committed */
    bool is_full; /* a step did not fit: those behind it stay ready */
    bool is_called;
};

_Static_assert(LIMIT_CLAIM_TEXT >= LIMIT_TEXT, "an answer has room for any one step");

/* ---- The list ---- */

static void list(struct engine *engine, struct ticket *ticket)
{
    ASSERT_LOCKED(engine);
    ticket->next = NULL;
    ticket->link = engine->work.tickets_end;
    *engine->work.tickets_end = ticket;
    engine->work.tickets_end = &ticket->next;
}

static void unlist(struct engine *engine, struct ticket *ticket)
{
    ASSERT_LOCKED(engine);
    if (!ticket->link)
        return;
    *ticket->link = ticket->next;
    *(ticket->next ? &ticket->next->link : &engine->work.tickets_end) = ticket->link;
    ticket->link = NULL;
}

static void call(struct engine *engine, struct ticket *ticket)
{
    ASSERT_LOCKED(engine);
    unlist(engine, ticket);
    if (ticket->is_called)
        return;
    ticket->is_called = true;
    ticket->waiter.wake(ticket->waiter.context);
}

static bool serves(const struct ticket *ticket, str tool)
{
    for (uint32_t i = 0; i < ticket->args.tool_count; i++)
        if (str_eq(ticket->args.tools[i], tool))
            return true;
    return false;
}

static bool has_room(const struct ticket *ticket, size_t size)
{
    return !ticket->is_full && size <= LIMIT_CLAIM_TEXT - ticket->size;
}

/* A connection that is suspended does not notice that its client has gone. */
static bool is_there(const struct ticket *ticket)
{
    return !ticket->waiter.is_there || ticket->waiter.is_there(ticket->waiter.context);
}

/* The first that can be given a step of this tool; those whose owners have gone are called. */
static struct ticket *find(struct engine *engine, const struct flow_call *step)
{
    struct ticket *next;

    for (struct ticket *ticket = engine->work.tickets; ticket; ticket = next) {
        next = ticket->next;
        if (!serves(ticket, step->tool) || ticket->taken == ticket->args.max ||
            !has_room(ticket, step->args.size))
            continue;
        if (is_there(ticket))
            return ticket;
        if (ticket->under_way == 0)
            call(engine, ticket);
        else
            unlist(engine, ticket); /* called when that is over */
    }
    return NULL;
}

/* Those whose owners have gone are called as well: they take nothing. */
void tickets_call(struct engine *engine, str tool)
{
    bool is_heard = false;
    struct ticket *next;

    ASSERT_LOCKED(engine);
    for (struct ticket *ticket = engine->work.tickets; ticket && !is_heard; ticket = next) {
        next = ticket->next;
        if (ticket->under_way || !serves(ticket, tool))
            continue;
        is_heard = is_there(ticket);
        call(engine, ticket);
    }
}

void tickets_call_all(struct engine *engine)
{
    struct ticket *next;

    ASSERT_LOCKED(engine);
    for (struct ticket *ticket = engine->work.tickets; ticket; ticket = next) {
        next = ticket->next;
        if (ticket->under_way == 0)
            call(engine, ticket);
        else
            unlist(engine, ticket);
    }
}

void engine_claims_end(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine->work.claims_ended = true;
    tickets_call_all(engine);
    guard_unlock(&engine->lock);
}

uint32_t tickets_count(const struct engine *engine)
{
    uint32_t count = 0;

    ASSERT_LOCKED(engine);
    for (const struct ticket *ticket = engine->work.tickets; ticket; ticket = ticket->next)
        count++;
    return count;
}

/* ---- A step for a ticket ---- */

struct claimed *ticket_reserve(struct engine *engine, const struct flow_call *step,
                               uint32_t ordinal)
{
    struct claimed *claimed = NULL;
    struct ticket *ticket = NULL;

    guard_lock(&engine->lock);
    if (engine->work.tickets && !engine->stopping && leases_make_room(engine, 1))
        ticket = find(engine, step);
    if (ticket) {
        claimed = &ticket->claimed[ticket->taken++];
        *claimed = (struct claimed){ .ordinal = ordinal,
                                     .worker = ticket->args.worker,
                                     .lease_ms = ticket->args.lease_ms,
                                     .ticket = ticket,
                                     .size = step->args.size,
                                     .status = PAWL_LEASE_LOST };
        ticket->under_way++;
        ticket->size += claimed->size;
    }
    guard_unlock(&engine->lock);
    if (claimed)
        claim_token(engine, claimed);
    return claimed;
}

/* The commit is over. One that got nothing stays where it is, unless it is not listed any more, or
 * a step has come meanwhile: for that it could not be called. */
void ticket_settle(struct engine *engine, struct claimed *claimed, bool is_granted)
{
    struct ticket *ticket = claimed->ticket;

    if (!is_granted)
        ticket_give_back(claimed);
    claimed->status = is_granted ? PAWL_OK : PAWL_LEASE_LOST;
    ticket->granted += is_granted;
    if (--ticket->under_way > 0)
        return;
    if (ticket->granted || !ticket->link || claims_wait(engine, &ticket->args))
        call(engine, ticket);
    else
        ticket->taken = 0;
}

/* ---- A step from its queue ---- */

bool ticket_serves(const struct claimed *claimed, str tool)
{
    return serves(claimed->ticket, tool);
}

void ticket_give_back(struct claimed *claimed)
{
    claimed->ticket->size -= claimed->size;
    claimed->size = 0;
}

static pawl_status refuse(struct scope *scope, struct claimed *claimed)
{
    claimed->stays_ready = true;
    return scope_fail(scope, PAWL_OVERLOADED,
                      "the claim's answer is full, or its client has gone; the step stays ready");
}

pawl_status ticket_check(struct engine *engine, struct scope *scope, struct claimed *claimed)
{
    struct ticket *ticket = claimed->ticket;
    bool is_open;

    guard_lock(&engine->lock);
    is_open = !ticket->is_full && is_there(ticket);
    guard_unlock(&engine->lock);
    return is_open ? PAWL_OK : refuse(scope, claimed);
}

pawl_status ticket_charge(struct engine *engine, struct scope *scope, struct claimed *claimed,
                          size_t size)
{
    struct ticket *ticket = claimed->ticket;
    bool fits;

    guard_lock(&engine->lock);
    ticket_give_back(claimed); /* it may be decided again */
    fits = has_room(ticket, size);
    claimed->size = fits ? size : 0;
    ticket->size += claimed->size;
    ticket->is_full = ticket->is_full || !fits;
    guard_unlock(&engine->lock);
    return fits ? PAWL_OK : refuse(scope, claimed);
}

/* ---- Its owner ---- */

pawl_status engine_claim_open(struct engine *engine, struct scope *scope,
                              const struct claim_args *args, const struct waiter *waiter,
                              struct ticket **out)
{
    int64_t wait_ms = args->wait_ms < WAIT_MAX_MS ? args->wait_ms : WAIT_MAX_MS;
    struct ticket *ticket = ARENA_NEW(&scope->arena, struct ticket);
    struct claimed *claimed = ARENA_ARRAY(&scope->arena, struct claimed, args->max);

    if (!engine->options.own)
        return scope_fail(scope, PAWL_IN_USE,
                          "only the owner of a store hands out its steps; open it with 'own', or "
                          "ask its server");
    if (!ticket || !claimed)
        return scope_no_memory(scope);
    *ticket = (struct ticket){ .args = *args,
                               .waiter = *waiter,
                               .claimed = claimed,
                               .until_ms = engine->env->tick_ms(engine->env) + wait_ms };
    ticket->args.lease_ms = args->lease_ms > 0 ? args->lease_ms : LEASE_DEFAULT_MS;
    if (ticket->args.lease_ms > LEASE_MAX_MS)
        ticket->args.lease_ms = LEASE_MAX_MS;
    *out = ticket;
    return PAWL_OK;
}

void engine_claim_offer(struct engine *engine, struct ticket *ticket)
{
    guard_lock(&engine->lock);
    if (!claims_insist(engine, &ticket->args))
        list(engine, ticket);
    guard_unlock(&engine->lock);
}

int64_t engine_claim_left_ms(struct engine *engine, const struct ticket *ticket)
{
    int64_t left_ms = ticket->until_ms - engine->env->tick_ms(engine->env);

    return left_ms > 0 ? left_ms : 0;
}

/* It is given no more; true: nothing of it is under way. */
static bool withdraw(struct engine *engine, struct ticket *ticket)
{
    bool is_settled;

    guard_lock(&engine->lock);
    unlist(engine, ticket);
    ticket->is_called = false;
    is_settled = ticket->under_way == 0;
    guard_unlock(&engine->lock);
    return is_settled;
}

/* List it, unless a step has come since its queues were looked through; true: it waits. */
static bool park(struct engine *engine, struct ticket *ticket)
{
    bool waits;

    guard_lock(&engine->lock);
    waits = !claims_wait(engine, &ticket->args) && !engine->stopping && !engine->work.claims_ended;
    ticket->taken = ticket->granted = 0;
    ticket->is_full = false;
    ticket->size = 0;
    if (waits)
        list(engine, ticket);
    guard_unlock(&engine->lock);
    return waits;
}

pawl_status engine_claim_take(struct engine *engine, struct scope *scope, struct ticket *ticket,
                              bool may_wait, struct claimed **out, uint32_t *count, bool *is_parked)
{
    pawl_status status;

    *is_parked = !withdraw(engine, ticket);
    if (*is_parked)
        return PAWL_OK;
    *out = ticket->claimed;
    *count = claims_unpack(engine, ticket->claimed, ticket->taken);
    do {
        status = is_there(ticket)
                     ? claim_now(engine, scope, &ticket->args, ticket, ticket->claimed, count)
                     : PAWL_OK;
        may_wait = may_wait && !status && *count == 0 && is_there(ticket) &&
                   engine_claim_left_ms(engine, ticket) > 0 && !engine->stopping &&
                   !engine->work.claims_ended;
        *is_parked = may_wait && park(engine, ticket);
    } while (may_wait && !*is_parked);
    if (!*is_parked)
        claims_pass_on(engine, &ticket->args);
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
                               const struct ticket *ticket)
{
    int64_t left_ms;

    guard_lock(&engine->lock);
    while (!sleeper->is_called &&
           ((left_ms = engine_claim_left_ms(engine, ticket)) > 0 || ticket->under_way))
        engine_wait_for(engine, &sleeper->called, left_ms > 0 ? left_ms : 1000);
    sleeper->is_called = false;
    guard_unlock(&engine->lock);
}

pawl_status engine_claim_wait(struct engine *engine, struct scope *scope, struct ticket *ticket,
                              struct claimed **out, uint32_t *count)
{
    struct sleeper sleeper = { .is_called = false };
    bool may_wait, is_parked;
    pawl_status status;

    engine_cond_init(&sleeper.called);
    guard_lock(&engine->lock);
    ticket->waiter = (struct waiter){ .wake = wake_sleeper, .context = &sleeper };
    may_wait = engine->work.sleeper_count++ < SLEEPERS_MAX;
    guard_unlock(&engine->lock);
    do {
        status = engine_claim_take(engine, scope, ticket, may_wait, out, count, &is_parked);
        if (is_parked)
            sleep_until_called(engine, &sleeper, ticket);
    } while (is_parked);
    guard_lock(&engine->lock);
    engine->work.sleeper_count--;
    guard_unlock(&engine->lock);
    pthread_cond_destroy(&sleeper.called);
    return status;
}
