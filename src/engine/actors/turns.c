/* turns.c - a turn: the events of one instance that are decided together, in stages, and what
 * follows their commit.
 *
 * The thread that has the turn (`busy`) decides without the lock, and hands the decision to the
 * drain, which compares the seq that it was made against. */
#include "engine/parts.h"

#define RIDERS_MAX    256u  /* answers of one instance in one decision ... */
#define RIDERS_DRAFTS 1024u /* ... as long as it has not grown past this, ... */
#define RIDERS_ACTOR  (LIMIT_SCOPE / 2) /* ... nor what the actor remembers, which is made small
                                         * between decisions */

/* A decision on its way through the drain. */
struct actor_turn {
    struct actor *actor;
    struct mail *mail;
    struct decision decision;
    struct job *jobs;
    struct child_plan *child_plans;
    struct mail *riders; /* answers decided on top of it, the last one first */
    bool is_poison;      /* its code ended its process more than once, it could not be decided, or
                            its instance is at a bound */
    uint32_t death; /* the mark of a turn that runs code in this process; 0: none */
    struct request request;
    struct decision_request decide;
};

void actor_release(struct engine *engine, struct actor *actor)
{
    ASSERT_LOCKED(engine);
    actor->busy = false;
    if (!actor->first)
        return;
    actor->next_runnable = NULL;
    if (engine->actors.runnable_last)
        engine->actors.runnable_last->next_runnable = actor;
    else
        engine->actors.runnable = actor;
    engine->actors.runnable_last = actor;
    actor->busy = true; /* the thread that takes it from the list has the turn */
    shell_changed(engine);
}

/* Give the turn back, and wake the thread that waits for its end. */
static void end_turn(struct engine *engine, struct actor *actor)
{
    actor_release(engine, actor);
    shell_changed(engine);
}

static struct mail *take_mail(struct actor *actor)
{
    struct mail *mail = actor->first;

    actor->first = mail->next;
    if (!actor->first)
        actor->last = NULL;
    return mail;
}

static struct scope *scope_of(struct mail *mail)
{
    return mail->scope ? mail->scope : &mail->own;
}

/* The turn is over for those that rode along as well; or they have to be decided again. */
static void finish_riders(struct engine *engine, struct actor_turn *turn, pawl_status status)
{
    while (turn->riders) {
        struct mail *mail = turn->riders;

        turn->riders = mail->next;
        if (status)
            scope_of(mail)->error = scope_of(turn->mail)->error;
        mail_finish(engine, mail, status ? status : mail->status);
    }
}

/* As the first of its actor. Its job was dropped, and the place with it. */
static void put_back(struct engine *engine, struct actor *actor, struct mail *mail)
{
    if (mail->event.kind == EVENT_STEP_START && !mail->claim && !mail->holds_place) {
        mail->holds_place = true;
        engine->work.jobs_under_way++;
    }
    mail->next = actor->first;
    actor->first = mail;
    if (!actor->last)
        actor->last = mail;
}

/* Decide all mails of the turn again; `alone`: each by itself, so that none fails the others. */
static void put_all_back(struct engine *engine, struct actor_turn *turn, bool alone)
{
    if (alone && turn->riders)
        mail_renew_scope(engine, turn->mail);
    while (turn->riders) {
        struct mail *mail = turn->riders;

        turn->riders = mail->next;
        mail->may_ride = mail->may_ride && !alone;
        put_back(engine, turn->actor, mail);
    }
    turn->mail->may_ride = turn->mail->may_ride && !alone;
    put_back(engine, turn->actor, turn->mail);
}

/* It is committed: what the engine keeps in memory follows the store. */
static void turn_took(struct engine *engine, struct actor_turn *turn)
{
    struct actor *actor = turn->actor;

    if (turn->decide.snapshot.data) {
        actor->snapshot_size = turn->decide.snapshot.size;
        actor->bytes_since_snapshot = 0;
    }
    actor_restamp(actor, &turn->decision);
    untaken_forget(engine, actor->instance);
    steps_note_ready(engine, actor, &turn->decision);
    pause_told(engine, &turn->decision);
    if (turn->mail->event.kind == EVENT_AMEND) {
        quotas_amended(engine, actor->instance);
        claims_amended(engine, actor);
    }
    steps_act(engine, actor->instance, turn->jobs);
    if (actor->memory && actor_has_kept(engine, actor)) /* more than one decision could take */
        mail_wake(engine, actor->instance);
}

/* After the commit, or its refusal. */
static void turn_over(struct engine *engine, struct request *request)
{
    struct actor_turn *turn = request->context;
    struct actor *actor = turn->actor;
    pawl_status status = request->status;

    ASSERT_UNLOCKED(engine);
    deaths_end(engine, &turn->death);
    guard_lock(&engine->lock);
    family_over(engine, turn->child_plans, status || turn->decide.is_repeat);
    turn->mail->is_repeat = turn->decide.is_repeat;
    if (turn->decide.is_repeat)
        turn->mail->is_kept = turn->decide.was_kept;
    if (status || turn->decide.is_repeat) {
        actor->is_loaded = false;
        steps_drop(engine, turn->jobs);
    } else {
        turn_took(engine, turn);
    }
    if (status && reduces_failed(request)) { /* decide again, to fail with its words */
        turn->mail->event.failure = error_as_json(scope_of(turn->mail));
        request->is_stale = turn->mail->event.failure.data != NULL;
    }
    if (request->is_stale) { /* decided against an older entry: decide again */
        put_all_back(engine, turn, false);
    } else {
        finish_riders(engine, turn, status);
        mail_finish(engine, turn->mail, status);
    }
    end_turn(engine, actor);
    guard_unlock(&engine->lock);
    heap_free(engine->heap, turn, sizeof *turn);
}

/* Code takes each of its turns by itself, but for the answers of one request. */
static bool can_ride(const struct actor *actor, const struct mail *mail)
{
    return mail->may_ride &&
           (!(mail->is_owned || mail->claim) || actor->definition->kind == KIND_FLOW);
}

/* The next one that waits for the same instance, if it may; NULL: none. */
static struct mail *take_rider(struct engine *engine, const struct actor_turn *turn,
                               const struct scope *scope, uint32_t count)
{
    struct mail *mail = NULL;

    if (!can_ride(turn->actor, turn->mail) || count >= RIDERS_MAX ||
        turn->decision.count >= RIDERS_DRAFTS || scope->arena.used >= CHAIN_BYTES ||
        turn->actor->arena.used >= RIDERS_ACTOR)
        return NULL;
    guard_lock(&engine->lock);
    if (turn->actor->first && can_ride(turn->actor, turn->actor->first))
        mail = take_mail(turn->actor);
    guard_unlock(&engine->lock);
    return mail;
}

/* What the drafts from `from` on make of the step that an answer is about. */
static void note_outcome(struct mail *mail, const struct decision *decision, uint32_t from)
{
    mail->outcome = STEP_DONE;
    mail->is_kept = false;
    for (uint32_t i = from; i < decision->count; i++) {
        mail->is_kept =
            mail->is_kept || decision->drafts[i].keep.data; /* an amend may go before it */
        if (decision->drafts[i].ordinal == mail->event.ordinal)
            mail->outcome = step_outcome((int32_t)decision->drafts[i].transition,
                                         &decision->drafts[i].effects, mail->event.ordinal);
    }
}

/* Refused without a trace, as a late answer is; anything else may have left half of itself behind.
 */
static bool is_clean_refusal(pawl_status status)
{
    return status == PAWL_LEASE_LOST || status == PAWL_TERMINAL || status == PAWL_NOT_AWAITING ||
           status == PAWL_NOT_KNOWN || status == PAWL_INVALID_REQUEST || status == PAWL_PAUSED ||
           status == PAWL_OVERLOADED;
}

/* An event on top of what the turn holds. */
static pawl_status decide_one(struct engine *engine, struct actor_turn *turn, struct mail *mail,
                              struct scope *scope)
{
    struct job *prepared = NULL; /* what the decision makes ready goes before it */
    uint32_t before = turn->decision.count;
    bool is_start = mail->event.kind == EVENT_STEP_START;
    pawl_status status = PAWL_OK;

    if (turn->actor->is_paused && pause_bars(mail->event.kind))
        status = pause_refusal(scope);
    if (status && is_start) /* it is looked for at resume; others need not wait for that */
        quotas_leave(engine, turn->actor->instance, mail->event.ordinal);
    if (!status && is_start)
        status = steps_prepare(engine, turn->actor, mail, scope, &turn->jobs, &prepared);
    lease_explain(engine, scope, turn->actor, &mail->event);
    if (!status)
        status =
            actor_decide(engine, turn->actor, &mail->event, scope, &turn->decision, &turn->jobs);
    if (status) { /* it leaves no job: its own, not one that another start of the step has */
        if (prepared && turn->jobs == prepared) {
            turn->jobs = prepared->next;
            job_free(engine, prepared);
        }
        return status;
    }
    if (is_start)
        steps_hand_over(mail, prepared, &turn->decision, before);
    note_outcome(mail, &turn->decision, before);
    return PAWL_OK;
}

static void refuse_rider(struct engine *engine, struct actor_turn *turn, struct mail *mail,
                         struct scope *scope)
{
    scope_of(mail)->error = scope->error;
    scope->error = (pawl_error){ .status = PAWL_OK };
    if (mail->status != PAWL_NOT_AWAITING || mail->event.kind != EVENT_STEP_START)
        return;
    guard_lock(&engine->lock);
    steps_leave_unserved(engine, turn->actor, mail);
    guard_unlock(&engine->lock);
}

/* Other steps of this instance that begin or end, decided on top: one commit, each with its own
 * end. */
static pawl_status ride_along(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                              pawl_status status)
{
    struct mail *mail;
    uint32_t count = 0;

    while ((mail = take_rider(engine, turn, scope, count++)) != NULL) {
        uint32_t before = turn->decision.count;

        mail->next = turn->riders;
        turn->riders = mail;
        mail->event.at_ms = turn->mail->event.at_ms;
        mail->event.is_held = turn->actor->is_paused;
        mail->status = mail->claim ? waiting_check(engine, scope, mail->claim) : PAWL_OK;
        if (!mail->status)
            mail->status = decide_one(engine, turn, mail, scope);
        if (!mail->status)
            continue;
        if (!is_clean_refusal(mail->status) || turn->decision.count != before ||
            (mail->status == PAWL_PAUSED && !turn->actor->is_paused)) /* it is to be paused */
            return mail->status;
        refuse_rider(engine, turn, mail, scope);
    }
    return status;
}

/* The state of its instance, which the decision is made against. */
static pawl_status stand_turn(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                              pawl_status status)
{
    struct actor *actor = turn->actor;

    actor->is_at_bound = false;
    payloads_decide(actor, NULL, NULL);
    actor_compact(actor);
    status = actor_load(engine, scope, actor);
    if (status && actor->is_too_large && turn->mail->event.kind == EVENT_CANCEL)
        status = poison_stand(engine, scope, actor);
    turn->mail->event.at_ms = engine_now_ms(engine);
    turn->decide = (struct decision_request){ .instance = actor->instance,
                                              .expected_seq = actor->seq,
                                              .expected_pos = engine->options.own ? 0 : actor->pos,
                                              .decided_at_ms = turn->mail->event.at_ms,
                                              .decision = &turn->decision,
                                              .trace = actor->trace,
                                              .key = turn->mail->key,
                                              .out = turn->mail->out };
    if (!status)
        status = pause_look(engine, scope, actor->instance, &actor->is_paused);
    turn->decide.knew_pause = turn->mail->event.is_held = actor->is_paused;
    return status;
}

/* What is refused only after the event itself was decided. */
static pawl_status check_late(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                              pawl_status status)
{
    const struct mail *mail = turn->mail;

    if (turn->actor->is_paused && mail->event.kind == EVENT_FIRE)
        return pause_refusal(scope);
    if (mail->event.late)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s", mail->event.late);
    return mail->fire ? fire_check_late(engine, scope, mail->fire, turn->actor->instance,
                                        turn->decide.expected_seq, clock_now(engine))
                      : status;
}

/* ---- The stages of a decision ---- */

/* What could not be decided is tried again once its instance was resumed. This is checked before
 * the instance is loaded: that may be what fails. */
static pawl_status admit(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                         pawl_status status)
{
    bool is_paused = false;

    if (turn->mail->is_poison)
        TRY(pause_look(engine, scope, turn->actor->instance, &is_paused));
    if (is_paused)
        return pause_refusal(scope);
    return turn->mail->claim ? waiting_check(engine, scope, turn->mail->claim) : status;
}

/* The event itself. An instance that could not be loaded can be cancelled nevertheless. */
static pawl_status decide_event(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                                pawl_status status)
{
    struct event *event = &turn->mail->event;

    (void)status;
    TRY(deaths_begin(engine, turn->actor, event, scope, &turn->death));
    return turn->actor->memory ? decide_one(engine, turn, turn->mail, scope)
                               : poison_cancel(engine, turn->actor, event, scope, &turn->decision);
}

static pawl_status judge_poison(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                                pawl_status status)
{
    if (status == PAWL_NO_CANCEL_TRANSITION && turn->actor->is_paused)
        status = poison_free(engine, turn->actor, &turn->mail->event, scope,
                             &turn->decide.expected_pos, &turn->decision);
    if (poison_noted(turn->actor, turn->mail, scope, status))
        turn->is_poison = turn->mail->is_poison = true;
    return status;
}

/* Reduces run in the commit, and may be its death. Children that it spawns count for themselves. */
static pawl_status survive(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                           pawl_status status)
{
    (void)scope;
    if (status || !reduces_any(&turn->decision))
        deaths_end(engine, &turn->death);
    turn->is_poison = turn->is_poison || (status == PAWL_PAUSED && !turn->actor->is_paused);
    return status;
}

static pawl_status plan_children(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                                 pawl_status status)
{
    status = family_plan(engine, scope, turn->actor, NULL, turn->mail->event.at_ms, &turn->decision,
                         &turn->child_plans);
    turn->decide.child_plans = turn->child_plans;
    return status;
}

/* Code remembers the id of its child, which has none before the drain. */
static pawl_status complete(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                            pawl_status status)
{
    const struct fire_args *fire = turn->mail->fire;

    if (fire && fire->has_fired_at)
        turn->decide.fired_at_ms = fire->fired_at_ms;
    turn->decide.definition = turn->actor->definition;
    if (!(turn->child_plans && turn->actor->definition->kind == KIND_CODE))
        turn->decide.snapshot = snapshot_if_due(engine, turn->actor, scope, &turn->decision);
    return status;
}

/* In this order. A stage is given the status of those before it, and returns the status from then
 * on. */
enum stage_use {
    ADMITS,  /* its failure is the answer: nothing was begun that others would have to end */
    IF_OK,   /* left out after a failure */
    ALWAYS,  /* it handles failures */
};
static const struct stage {
    enum stage_use use;
    pawl_status (*run)(struct engine *engine, struct actor_turn *turn, struct scope *scope,
                       pawl_status status);
} stages[] = {
    { ADMITS, admit },
    { IF_OK, stand_turn }, /* loads the instance: all that follows needs it */
    { IF_OK, decide_event },
    { ALWAYS, judge_poison }, /* a cancel that the paused instance's own plan forbids; and it
                                  counts failures of this event alone, so before riders */
    { IF_OK, ride_along },
    { ALWAYS, survive }, /* the last code of this turn has run, but for children's starts */
    { IF_OK, plan_children },
    { IF_OK, check_late }, /* refusals that must not hide those of the event itself */
    { IF_OK, complete },   /* the snapshot has all that was decided */
};

static pawl_status decide_mail(struct engine *engine, struct actor_turn *turn, struct scope *scope)
{
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        if (status && stages[i].use == IF_OK)
            continue;
        status = stages[i].run(engine, turn, scope, status);
        if (status && stages[i].use == ADMITS)
            return status;
    }
    return status;
}

/* An answer comes once, and its turn was what could not be taken: now that the instance is held it
 * is recorded, and handled at resume. */
static bool is_answer(const struct actor_turn *turn)
{
    enum event_kind kind = turn->mail->event.kind;

    return kind == EVENT_STEP_DONE || kind == EVENT_STEP_FAILED || kind == EVENT_STEP_TIMEOUT ||
           kind == EVENT_STEP_LOST || kind == EVENT_STEP_RETURNED;
}

/* This program has not got what its turn needs: the code, a reduce, a variable of the build. The
 * answer comes once, so it is recorded; its turn is owed, and is tried as any timer that is due. */
static bool defer(struct actor_turn *turn, pawl_status status)
{
    struct event *event = &turn->mail->event;

    if (status != PAWL_NOT_KNOWN || event->is_deferred || !is_answer(turn) || !turn->actor->memory ||
        turn->actor->definition->kind != KIND_CODE)
        return false;
    event->is_deferred = true;
    return true;
}

static void refuse(struct engine *engine, struct actor_turn *turn, pawl_status status)
{
    struct actor *actor = turn->actor;

    deaths_end(engine, &turn->death);
    steps_drop(engine, turn->jobs);
    family_over(engine, turn->child_plans, true);
    if (status == PAWL_NOT_AWAITING && turn->mail->event.kind == EVENT_STEP_START && !turn->riders)
        steps_leave_unserved(engine, actor, turn->mail);
    if (turn->decision.count)
        actor->is_loaded = false; /* a part was folded already */
    if ((turn->is_poison && is_answer(turn)) || turn->riders || defer(turn, status))
        put_all_back(engine, turn, true);
    else
        mail_finish(engine, turn->mail, status);
    end_turn(engine, actor);
    heap_free(engine->heap, turn, sizeof *turn);
}

/* Take the actor's next mail to the drain, or into `gathered`. `busy` is ours. */
void actor_take_turn(struct engine *engine, struct actor *actor, struct request **gathered)
{
    struct mail *mail = take_mail(actor);
    struct scope *scope = scope_of(mail);
    struct actor_turn *turn = heap_new(engine->heap, sizeof *turn);
    pawl_status status;

    ASSERT_LOCKED(engine);
    if (!turn) {
        mail_finish(engine, mail, scope_no_memory(scope));
        end_turn(engine, actor);
        return;
    }
    *turn = (struct actor_turn){ .actor = actor, .mail = mail };
    guard_unlock(&engine->lock);
    status = decide_mail(engine, turn, scope);
    if (turn->is_poison)
        status = poison_hold(engine, scope, actor, status, &turn->is_poison);
    turn->request = (struct request){ .drain = drain_decision,
                                      .scope = scope,
                                      .decide = &turn->decide,
                                      .after = turn_over,
                                      .context = turn };
    if (!status)
        status = reduces_of(engine, scope, &turn->decision, turn->child_plans, &turn->request);
    if (!status && gathered) {
        turn->request.next = *gathered;
        *gathered = &turn->request;
    } else if (!status)
        engine_submit(engine, &turn->request);
    guard_lock(&engine->lock);
    if (status)
        refuse(engine, turn, status);
}
