/* reduce.c - (plan, memory, event) -> drafts of entries.
 *
 * Nothing here changes the memory, reads a clock or does I/O: the same arguments give the
 * same decision, live, on replay and in the simulator alike. */
#include "base/assert.h"
#include "base/grow.h"
#include "base/json_scan.h"
#include "base/node.h"
#include "flow/flow_int.h"
#include "model/fire.h"
#include "model/live_rows.h"
#include "model/words.h"

/* ---- Drafts and their effects -------------------------------------------------------------- */

void turn_draft(struct turn *turn, enum lifecycle_transition transition,
                const struct attempt *attempt, str payload)
{
    struct draft *added;

    if (turn->status != PAWL_OK)
        return;
    added = decision_add(turn->scope, &turn->decision, transition);
    if (!added) {
        turn->status = scope_no_memory(turn->scope);
        return;
    }
    added->payload = payload;
    if (turn->decision.count == 1) { /* what follows it is the engine's own doing */
        added->actor = turn->event->actor;
        added->reason = turn->event->reason;
    }
    if (attempt) {
        added->step = attempt->plan + 1;
        added->ordinal = attempt->ordinal;
        added->attempt = attempt->attempt;
    }
    if (turn->plan->notify)
        turn_notify(turn, transition, attempt, payload);
}

void turn_cause(struct turn *turn, struct effect effect)
{
    if (turn->status == PAWL_OK)
        turn->status = effect_add(turn->scope,
                                  &turn->decision.drafts[turn->decision.count - 1].effects, effect);
}

void turn_arm(struct turn *turn, uint32_t ordinal, str name, int64_t due_at_ms)
{
    turn_cause(turn,
               (struct effect){
                   .kind = EFFECT_ARM, .ordinal = ordinal, .name = name, .due_at_ms = due_at_ms });
}

struct attempt turn_create(struct turn *turn, uint32_t plan, uint32_t number,
                           enum step_status status)
{
    struct attempt attempt = { .plan = plan,
                               .ordinal = ++turn->ordinal_last,
                               .attempt = number,
                               .first_ordinal = turn->ordinal_last,
                               .status = status };

    if (turn->plan->steps[plan].of != STEP_NONE) {
        attempt.map = turn->item_map;
        attempt.item = turn->item.index;
    }

    turn_cause(turn, (struct effect){ .kind = EFFECT_STEP,
                                      .ordinal = attempt.ordinal,
                                      .plan = plan,
                                      .attempt = number,
                                      .status = status });
    if (status == STEP_READY)
        turn_await_worker(turn, &attempt);
    return attempt;
}

void turn_await_worker(struct turn *turn, const struct attempt *attempt)
{
    int64_t worker_ms = turn->plan->steps[attempt->plan].worker_ms;

    if (worker_ms > 0)
        turn_arm(turn, attempt->ordinal, TIMER_WORKER, turn->event->at_ms + worker_ms);
}

void turn_note_over(struct turn *turn, uint32_t ordinal)
{
    if (GROW(&turn->scope->arena, turn->over, turn->over_count, turn->over_capacity))
        turn->over[turn->over_count++] = ordinal;
    else
        turn->status = scope_no_memory(turn->scope);
}

void turn_end(struct turn *turn, const struct attempt *attempt)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];

    turn_note_over(turn, attempt->ordinal);
    for (uint32_t i = 0; attempt->ordinal > turn->memory->ordinal_last && i < turn->begun_count;
         i++)
        if (turn->begun[i].attempt.ordinal == attempt->ordinal)
            turn->begun[i].is_over = true;
    turn_cause(turn, (struct effect){ .kind = EFFECT_END,
                                      .ordinal = attempt->ordinal,
                                      .is_bare = step_is_taken(step) && step->timeout_ms == 0 &&
                                                 step->worker_ms == 0 });
}

struct template_source turn_source(const struct turn *turn)
{
    return (struct template_source){ .plan = turn->plan,
                                     .memory = turn->memory,
                                     .fresh_slot = turn->fresh_slot,
                                     .fresh = turn->fresh,
                                     .older = turn->older,
                                     .context = turn->context,
                                     .names_conditions =
                                         turn->compiler >= COMPILER_NAMED_CONDITIONS,
                                     .is_nameless = turn->event->kind == EVENT_START };
}

struct template_source turn_step_source(const struct turn *turn, const struct plan_step *step)
{
    struct template_source source = turn_source(turn);
    const struct flow_memory *memory = turn->memory;
    struct tree_errors errors = turn->nodes.pages ? turn->errors : memory->errors;
    struct node_pages pages = turn->nodes;
    struct tree_walk walk = { .plan = turn->plan,
                              .states = pages.pages ? NULL : memory->nodes,
                              .copy = &pages,
                              .errors = tree_errors_of(turn->compiler, &errors) };

    if (step->of != STEP_NONE) {
        source.item = turn->item;
        step = &turn->plan->steps[step->of];
    }
    if (turn->plan->is_tree)
        source.last_error = tree_last_error(&walk, step->node);
    return source;
}

str turn_take(struct turn *turn, struct buf *buf)
{
    str text = buf_take(buf, &turn->scope->arena);

    if (!text.data && turn->status == PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
    return text;
}

str turn_quoted(struct turn *turn, str message)
{
    struct buf buf;

    buf_init(&buf, turn->scope->arena.heap, LIMIT_TEXT);
    json_str(&buf, message);
    return turn_take(turn, &buf);
}

str turn_take_error(struct turn *turn)
{
    str error = turn_quoted(turn, str_of(turn->scope->error.message));

    if (turn->status == PAWL_OK)
        turn->scope->error = (pawl_error){ .status = PAWL_OK };
    return error;
}

/* ---- Steps that are taken to a tool ---------------------------------------------------------- */

/* The attempt an event speaks of, if it stands as it must; a late answer changes nothing (B34). */
static const struct attempt *expect(struct turn *turn, enum step_status status)
{
    const struct attempt *attempt = memory_find(turn->memory, turn->event->ordinal);

    if (attempt && attempt->status == status)
        return attempt;
    if (turn->event->ordinal > turn->memory->ordinal_last)
        turn_fail(turn, PAWL_NOT_KNOWN, "there is no step %u", turn->event->ordinal);
    else
        turn_fail(turn, PAWL_LEASE_LOST, "attempt %u is %s, not %s; another worker may have it",
                  turn->event->ordinal, attempt ? step_status_name(attempt->status) : "over",
                  step_status_name(status));
    return NULL;
}

static void decide_start(struct turn *turn)
{
    if (turn->event->given.data) {
        decide_restart(turn);
        return;
    }
    turn_draft(turn, LIFE_T_START, NULL, STR_NONE);
    turn_keep_signals(turn, NULL, turn->plan);
    flow_begin(turn, NULL);
}

static void decide_step_start(struct turn *turn)
{
    const struct attempt *attempt = expect(turn, STEP_READY);
    int64_t timeout_ms;

    if (!attempt)
        return;
    timeout_ms = turn->plan->steps[attempt->plan].timeout_ms;
    turn_draft(turn, LIFE_T_STEP_START, attempt, STR_NONE);
    turn_cause(turn, (struct effect){ .kind = EFFECT_RUN, .ordinal = attempt->ordinal });
    if (turn->plan->steps[attempt->plan].worker_ms > 0)
        turn_cause(turn, (struct effect){ .kind = EFFECT_DISARM,
                                          .ordinal = attempt->ordinal,
                                          .name = TIMER_WORKER });
    if (timeout_ms > 0)
        turn_arm(turn, attempt->ordinal, TIMER_TIMEOUT, turn->event->at_ms + timeout_ms);
}

/* An external step is never claimed: it is ended from where it waits. */
static const struct attempt *expect_running(struct turn *turn)
{
    const struct attempt *attempt = memory_find(turn->memory, turn->event->ordinal);

    bool is_external = attempt && turn->plan->steps[attempt->plan].kind->is_external;

    if (is_external && attempt->status == STEP_PENDING && !attempt->is_backing_off)
        return attempt;
    if (!attempt || turn->event->is_leased || is_external)
        return expect(turn, STEP_RUNNING);
    turn_fail(turn, PAWL_INVALID_REQUEST,
              "lease: missing; only an external step is ended without one");
    return NULL;
}

/* Its worker is gone and may have done the work: what must not be done twice is not tried again, as
 * after the death of the process that ran it. */
static bool is_lost(const struct turn *turn, const struct attempt *attempt)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];

    if (turn->event->kind == EVENT_STEP_LOST)
        return true;
    return turn->event->is_worker_gone &&
           turn->compiler >= COMPILER_HELD_WORKERS && !step->is_idempotent &&
           retry_is_due(step, attempt->attempt, RETRY_TIMEOUT);
}

/* No worker has it, and nothing of it runs: the same attempt is ready again, with its key. */
static void decide_returned(struct turn *turn)
{
    const struct attempt *attempt = expect(turn, STEP_RUNNING);

    if (!attempt)
        return;
    turn_draft(turn, LIFE_T_STEP_RETRY, attempt, STR_NONE);
    if (turn->plan->steps[attempt->plan].timeout_ms > 0)
        turn_cause(turn, (struct effect){ .kind = EFFECT_DISARM,
                                          .ordinal = attempt->ordinal,
                                          .name = TIMER_TIMEOUT });
    turn_cause(turn, (struct effect){ .kind = EFFECT_READY, .ordinal = attempt->ordinal });
    turn_await_worker(turn, attempt);
}

static void decide_step_end(struct turn *turn)
{
    const struct attempt *attempt = expect_running(turn);
    str payload = turn->event->payload.data ? turn->event->payload : RESULT_NULL;

    if (!attempt)
        return;
    if (turn->event->kind == EVENT_STEP_DONE)
        step_succeed(turn, LIFE_T_STEP_COMPLETE, attempt, payload, 0);
    else if (turn->event->kind == EVENT_STEP_FAILED)
        step_fail(turn, LIFE_T_STEP_FAIL, attempt, RETRY_FAILED, payload);
    else if (is_lost(turn, attempt))
        step_fail(turn, LIFE_T_STEP_FAIL, attempt, RETRY_LOST, ERROR_LOST);
    else
        step_time_out(turn, attempt);
}

/* What came for a wait or a gate was no use (a condition that cannot be told). Told by its entry
 * alone: no caller sends this, a check of the history finds it. */
static void decide_spoiled(struct turn *turn)
{
    const struct attempt *attempt = expect(turn, STEP_PENDING);

    if (!attempt)
        return;
    turn->is_hopeless = true;
    step_fail(turn, LIFE_T_STEP_FAIL, attempt, RETRY_FAILED, turn->event->payload);
}

/* What is sent to one step: its kind decides. */
static void decide_sent(struct turn *turn)
{
    const struct event *event = turn->event;
    const struct attempt *attempt = memory_find(turn->memory, event->ordinal);
    const struct step_kind *kind = attempt ? turn->plan->steps[attempt->plan].kind : NULL;

    if (kind && kind->on[event->kind])
        kind->on[event->kind](turn, attempt);
    else if (event->kind == EVENT_CHILD)
        turn_fail(turn, PAWL_NOT_AWAITING, "nothing waits for this child");
    else if (event->ordinal > turn->memory->ordinal_last)
        turn_fail(turn, PAWL_NOT_KNOWN, "there is no step %u", event->ordinal);
    else
        turn_fail(turn, PAWL_NOT_AWAITING,
                  attempt ? "step %u is not a gate: it needs no approval"
                          : "step %u has been decided already, or is over",
                  event->ordinal);
}

/* ---- Events ------------------------------------------------------------------------ */

/* Steps that could not even begin fail in the same decision, one after another; what a failure
 * begins may fail likewise. Some kinds have an entry that says that they have begun. */
static void follow_begun(struct turn *turn)
{
    while (turn->status == PAWL_OK && !turn->is_finished && turn->begun_seen < turn->begun_count) {
        struct begun begun = turn->begun[turn->begun_seen];
        const struct step_kind *kind = turn->plan->steps[begun.attempt.plan].kind;
        bool was_hopeless = turn->is_hopeless;

        turn->begun_seen++;
        if (begun.error.data) {
            turn->is_hopeless = true; /* the same arguments would fail again */
            step_fail(turn, LIFE_T_STEP_FAIL, &begun.attempt, RETRY_FAILED, begun.error);
            turn->is_hopeless = was_hopeless;
        } else if (kind->begun) {
            kind->begun(turn, &begun.attempt);
        }
    }
}

pawl_status turn_run(void (*handle)(struct turn *turn), const struct definition *definition,
                     const struct standing *standing, const struct event *event,
                     struct scope *scope, struct decision *out)
{
    const struct flow_memory *memory = standing->memory;
    struct turn turn = { .plan = memory->plan,
                         .compiler = definition->compiler,
                         .memory = memory,
                         .event = event,
                         .scope = scope,
                         .ordinal_last = memory->ordinal_last,
                         .fresh_slot = STEP_NONE,
                         .is_cancelling = memory->is_cancelling,
                         .undo_noted = STEP_NONE };

    ASSERT(turn.plan && turn.memory);
    handle(&turn);
    follow_begun(&turn);
    if (turn.status != PAWL_OK)
        return turn.status;
    *out = turn.decision;
    return PAWL_OK;
}

/* A step of whatever kind has ended: a select's result says which arm. */
static void decide_after(struct turn *turn)
{
    const struct attempt *attempt = expect(turn, STEP_RUNNING);
    const struct plan_step *step;
    uint32_t arm = 0;
    str told;

    if (!attempt)
        return;
    step = &turn->plan->steps[attempt->plan];
    if (step->way == WAY_ARMS &&
        !json_member(&turn->scope->arena, turn->event->payload, STR("arm"), &told))
        turn_fail(turn, PAWL_INVALID_REQUEST, "result: expected {\"arm\": 0 to %u}, found %.*s",
                  step->target_count - 1, STR_ARG(words_shown(turn->event->payload)));
    if (step->way == WAY_ARMS && turn->status == PAWL_OK)
        arm = memory_taken_arm(turn->event->payload, turn->scope);
    if (step->way == WAY_ARMS && arm >= step->target_count)
        turn_fail(turn, PAWL_INVALID_REQUEST, "result: expected {\"arm\": 0 to %u}, found %u",
                  step->target_count - 1, arm);
    else if (turn->status == PAWL_OK)
        step_succeed(turn, LIFE_T_STEP_COMPLETE, attempt, turn->event->payload, arm);
}

pawl_status flow_after(const struct definition *definition, const struct standing *standing,
                       uint32_t ordinal, str result, struct scope *scope, struct decision *out)
{
    struct event event = {
        .kind = EVENT_STEP_DONE, .ordinal = ordinal, .is_leased = true, .payload = result
    };

    return turn_run(decide_after, definition, standing, &event, scope, out);
}

/* cancel.c decides FIRE and CANCEL. */
static void (*const handlers[EVENT_KIND_COUNT])(struct turn *turn) = {
    [EVENT_START] = decide_start,
    [EVENT_TIMER] = decide_timer,
    [EVENT_SIGNAL] = decide_signal,
    [EVENT_STEP_START] = decide_step_start,
    [EVENT_STEP_DONE] = decide_step_end,
    [EVENT_STEP_FAILED] = decide_step_end,
    [EVENT_STEP_TIMEOUT] = decide_step_end,
    [EVENT_STEP_LOST] = decide_step_end,
    [EVENT_STEP_RETURNED] = decide_returned,
    [EVENT_STEP_SPOILED] = decide_spoiled,
    [EVENT_AMEND] = decide_amend,
    [EVENT_APPROVE] = decide_sent,
    [EVENT_REJECT] = decide_sent,
    [EVENT_CHILD] = decide_sent,
    [EVENT_WAKE] = decide_wake,
};

static pawl_status decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out)
{
    if (event->kind == EVENT_FIRE)
        return cancel_decide_fire(definition, standing, event, scope, out);
    if (event->kind == EVENT_CANCEL)
        return cancel_decide(definition, standing, event, scope, out);
    if (event->kind == EVENT_START && standing->state != LIFE_CREATED) {
        TRY(fire_check_open(definition, standing, scope));
        return fire_fail_legal(definition, standing, scope, PAWL_INVALID_TRANSITION,
                               "it has been started already");
    }
    if (!handlers[event->kind])
        return scope_fail(scope, PAWL_INVALID_REQUEST, "a flow does not know this event");
    if (event->expected_seq && event->expected_seq != standing->seq)
        return scope_fail(scope, PAWL_CONFLICT, "the instance has changed meanwhile");
    /* What is not about one attempt, which would be over: an ended instance says so. */
    if (event->kind == EVENT_SIGNAL || event->kind == EVENT_AMEND)
        TRY(fire_check_open(definition, standing, scope));
    return turn_run(handlers[event->kind], definition, standing, event, scope, out);
}

static unsigned rows_of_step(const struct plan_step *step)
{
    const struct node *arm = step->kind->has_arms ? node_first(step->args_node, "arms") : NULL;
    unsigned rows = step->kind->may_spawn ? ROWS_CHILDREN : 0;

    for (; arm; arm = arm->next)
        rows |= node_find(arm, "signal") ? ROWS_WAITS : 0;
    return rows;
}

static pawl_status prepare(struct definition *definition, struct scope *scope)
{
    struct plan *plan = NULL;

    TRY(plan_load(scope, definition->plan_text, &plan));
    definition->live_rows = ROWS_STEPS | ROWS_TIMERS | (plan->buffered_count ? ROWS_WAITS : 0);
    for (uint32_t i = 0; i < plan->count; i++)
        definition->live_rows |= rows_of_step(&plan->steps[i]);
    definition->plan = plan;
    return PAWL_OK;
}

static uint32_t live_steps(const void *memory)
{
    return ((const struct flow_memory *)memory)->live_count;
}

const struct behavior flow_behavior = {
    .kind = KIND_FLOW,
    .prepare = prepare,
    .decide = decide,
    .memory_new = flow_memory_new,
    .attach = flow_attach,
    .introduce = flow_introduce,
    .apply = flow_apply,
    .event_of = flow_event_of,
    .keep = flow_keep,
    .step_name = flow_step_name_now,
    .live_steps = live_steps,
    .wakes = flow_wakes,
    .memory_print = flow_memory_print,
    .memory_load = flow_memory_load,
};
