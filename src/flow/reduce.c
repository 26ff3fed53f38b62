/* reduce.c - (plan, memory, event) -> drafts of entries.
 *
 * Nothing here changes the memory, reads a clock or does I/O: the same arguments give the
 * same decision, live, on replay and in the simulator alike. */
#include "base/assert.h"
#include "base/time.h"
#include "flow/flow_int.h"
#include "model/fire.h"
#include "model/words.h"

#define RESULT_NULL   STR("null")
#define ERROR_TIMEOUT STR("\"timeout\"")
/* A tree's result is its context; until steps can augment it, it stays as it began. */
#define CONTEXT_EMPTY STR("{}")

/* A decision in the making. `status` is sticky: after a failure the rest does nothing. */
struct turn {
    const struct plan *plan;
    const struct flow_memory *memory;
    const struct event *event;
    struct scope *scope;
    struct decision decision;
    pawl_status status;
};

/* Begin the next draft; the effects that follow are its. */
static void draft(struct turn *turn, enum lifecycle_transition transition,
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
}

static void cause(struct turn *turn, struct effect effect)
{
    if (turn->status == PAWL_OK)
        turn->status = effect_add(turn->scope,
                                  &turn->decision.drafts[turn->decision.count - 1].effects, effect);
}

static void arm(struct turn *turn, const struct attempt *attempt, enum timer_kind kind,
                int64_t after_ms)
{
    cause(turn, (struct effect){ .kind = EFFECT_ARM,
                                 .ordinal = attempt->ordinal,
                                 .name = timer_name(kind, &turn->plan->steps[attempt->plan]),
                                 .due_at_ms = turn->event->at_ms + after_ms });
}

static void disarm(struct turn *turn, const struct attempt *attempt)
{
    if (attempt->timer != TIMER_NONE)
        cause(turn, (struct effect){
                        .kind = EFFECT_DISARM,
                        .ordinal = attempt->ordinal,
                        .name = timer_name(attempt->timer, &turn->plan->steps[attempt->plan]) });
}

static void end(struct turn *turn, const struct attempt *attempt)
{
    cause(turn, (struct effect){ .kind = EFFECT_END, .ordinal = attempt->ordinal });
    disarm(turn, attempt);
}

static struct attempt create(struct turn *turn, uint32_t plan, uint32_t number,
                             enum step_status status)
{
    struct attempt attempt = {
        .plan = plan, .ordinal = turn->memory->ordinal_last + 1, .attempt = number, .status = status
    };

    cause(turn, (struct effect){ .kind = EFFECT_STEP,
                                 .ordinal = attempt.ordinal,
                                 .plan = plan,
                                 .attempt = number,
                                 .status = status });
    return attempt;
}

/* ---- Going on: the next step, or the end ----------------------------------------- */

static str quoted(struct turn *turn, const char *message)
{
    struct buf buf;
    str kept;

    buf_init(&buf, turn->scope->arena.heap, LIMIT_TEXT);
    json_text(&buf, message);
    kept = buf_keep(&buf, &turn->scope->arena);
    buf_fini(&buf);
    if (!kept.data && turn->status == PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
    return kept;
}

/* Why a step's args are no good, as its error. The scope's own error is taken back: the
 * decision is made, and it is that the step fails. */
static str take_error(struct turn *turn)
{
    str error = quoted(turn, turn->scope->error.message);

    if (turn->status == PAWL_OK)
        turn->scope->error = (pawl_error){ .status = PAWL_OK };
    return error;
}

static str shown_json(const struct node *node)
{
    return node && node->raw.data ? words_shown(node->raw) : STR("nothing");
}

/* How long to sleep, or false with the reason in *error. */
static bool sleep_duration(struct turn *turn, const struct plan_step *step,
                           const struct template_source *source, int64_t *out_ms, str *error)
{
    struct node *args = NULL;
    const struct node *duration = NULL;
    str text;
    pawl_status status = template_expand(source, step, turn->scope, &text);

    if (status == PAWL_OK)
        status = node_read_json(turn->scope, text, &args);
    if (status == PAWL_OK)
        duration = node_find(args, "for");
    if (duration && duration->kind == NODE_STRING && duration_parse(duration->text, out_ms))
        return true;
    if (status == PAWL_NO_MEMORY)
        turn->status = status;
    else if (status == PAWL_OK)
        (void)scope_fail(turn->scope, PAWL_INVALID_REQUEST,
                         "sleep: expected a duration like \"30s\" in 'for', found %.*s",
                         STR_ARG(shown_json(duration)));
    *error = take_error(turn);
    return false;
}

/* `sleep` is no tool but a durable timer: its row waits, and nobody runs it. */
static void begin_sleep(struct turn *turn, uint32_t index, const struct template_source *source)
{
    const struct plan_step *step = &turn->plan->steps[index];
    struct attempt attempt = create(turn, index, 1, STEP_PENDING);
    int64_t duration_ms = 0;
    str error = STR_NONE;

    if (turn->status != PAWL_OK)
        return;
    if (sleep_duration(turn, step, source, &duration_ms, &error)) {
        arm(turn, &attempt, TIMER_SLEEP, duration_ms);
        return;
    }
    draft(turn, LIFE_T_STEP_FAIL, &attempt, error);
    end(turn, &attempt);
    draft(turn, LIFE_T_FAIL, NULL, error);
}

static void begin_step(struct turn *turn, uint32_t index, uint32_t fresh_slot, str fresh)
{
    struct template_source source = { turn->plan, turn->memory, fresh_slot, fresh };

    if (step_is_sleep(&turn->plan->steps[index]))
        begin_sleep(turn, index, &source);
    else
        create(turn, index, 1, STEP_READY);
}

static void complete(struct turn *turn, enum lifecycle_transition transition,
                     const struct attempt *attempt, str result)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];

    draft(turn, transition, attempt, result);
    end(turn, attempt);
    if (step->next != STEP_NONE)
        begin_step(turn, step->next, step->result_slot, result);
    else
        draft(turn, LIFE_T_FINISH, NULL, turn->plan->is_tree ? CONTEXT_EMPTY : result);
}

/* ---- Failing: another attempt, or the end ------------------------------------------ */

static void retry(struct turn *turn, const struct attempt *failed, enum retry_cause why)
{
    const struct plan_step *step = &turn->plan->steps[failed->plan];
    struct attempt next;

    if (why == RETRY_LOST) { /* nothing was wrong with the step: it need not wait */
        create(turn, failed->plan, failed->attempt + 1, STEP_READY);
        return;
    }
    next = create(turn, failed->plan, failed->attempt + 1, STEP_PENDING);
    arm(turn, &next, TIMER_RETRY, retry_delay_ms(step, failed->attempt));
}

static void fail(struct turn *turn, const struct attempt *attempt, enum retry_cause why, str error)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];

    draft(turn, why == RETRY_TIMEOUT ? LIFE_T_STEP_TIMEOUT : LIFE_T_STEP_FAIL, attempt, error);
    end(turn, attempt);
    if (!turn->event->no_retry && retry_is_due(step, attempt->attempt, why))
        retry(turn, attempt, why);
    else
        draft(turn, LIFE_T_FAIL, NULL, error);
}

/* ---- Events ------------------------------------------------------------------------ */

static void decide_start(struct turn *turn)
{
    draft(turn, LIFE_T_START, NULL, STR_NONE);
    begin_step(turn, turn->plan->first, STEP_NONE, STR_NONE);
}

/* The attempt an event speaks of, if it stands as it must; a late answer changes nothing (B34). */
static const struct attempt *expect(struct turn *turn, enum step_status status)
{
    const struct attempt *attempt = memory_find(turn->memory, turn->event->ordinal);

    if (attempt && attempt->status == status)
        return attempt;
    turn->status =
        scope_fail(turn->scope, PAWL_LEASE_LOST, "attempt %u is %s, not %s; it is not yours",
                   turn->event->ordinal, attempt ? step_status_name(attempt->status) : "over",
                   step_status_name(status));
    return NULL;
}

static void decide_step_start(struct turn *turn)
{
    const struct attempt *attempt = expect(turn, STEP_READY);
    int64_t timeout_ms;

    if (!attempt)
        return;
    timeout_ms = turn->plan->steps[attempt->plan].timeout_ms;
    draft(turn, LIFE_T_STEP_START, attempt, STR_NONE);
    cause(turn, (struct effect){ .kind = EFFECT_RUN, .ordinal = attempt->ordinal });
    if (timeout_ms > 0)
        arm(turn, attempt, TIMER_TIMEOUT, timeout_ms);
}

static void decide_step_end(struct turn *turn)
{
    const struct attempt *attempt = expect(turn, STEP_RUNNING);
    str payload = turn->event->payload.data ? turn->event->payload : RESULT_NULL;

    if (!attempt)
        return;
    if (turn->event->kind == EVENT_STEP_DONE)
        complete(turn, LIFE_T_STEP_COMPLETE, attempt, payload);
    else if (turn->event->kind == EVENT_STEP_FAILED)
        fail(turn, attempt, RETRY_FAILED, payload);
    else
        fail(turn, attempt, RETRY_LOST, ERROR_LOST);
}

/* The attempt whose timer it is; by the timer's name alone if no ordinal is given. */
static const struct attempt *find_timed(const struct turn *turn)
{
    const struct flow_memory *memory = turn->memory;

    return memory_find(memory, turn->event->ordinal ? turn->event->ordinal : memory->live.ordinal);
}

/* A timer that is not armed now belongs to an attempt that is over. */
static void decide_timer(struct turn *turn)
{
    const struct event *event = turn->event;
    const struct attempt *live = find_timed(turn);

    if (!live || live->timer == TIMER_NONE ||
        !str_eq(event->name, timer_name(live->timer, &turn->plan->steps[live->plan]))) {
        turn->status = scope_fail(turn->scope, PAWL_NOT_AWAITING, "no timer '%.*s' is armed",
                                  STR_ARG(words_shown(event->name)));
        return;
    }
    if (live->timer == TIMER_SLEEP) {
        complete(turn, LIFE_T_TIMER, live, RESULT_NULL);
    } else if (live->timer == TIMER_TIMEOUT) {
        fail(turn, live, RETRY_TIMEOUT, ERROR_TIMEOUT);
    } else {
        draft(turn, LIFE_T_STEP_RETRY, live, STR_NONE);
        disarm(turn, live);
        cause(turn, (struct effect){ .kind = EFFECT_READY, .ordinal = live->ordinal });
    }
}

static pawl_status refuse_start(const struct definition *definition,
                                const struct standing *standing, struct scope *scope)
{
    pawl_status status = fire_check_open(definition, standing, scope);

    return status != PAWL_OK ? status
                             : fire_fail_legal(definition, standing, scope, PAWL_INVALID_TRANSITION,
                                               "it has been started already");
}

static pawl_status refuse_signal(const struct definition *definition,
                                 const struct standing *standing, const struct event *event,
                                 struct scope *scope)
{
    pawl_status status = fire_check_open(definition, standing, scope);

    return status != PAWL_OK
               ? status
               : scope_fail(scope, PAWL_NOT_AWAITING, "nothing waits for the signal '%.*s'",
                            STR_ARG(words_shown(event->name)));
}

static pawl_status run_turn(void (*handle)(struct turn *turn), const struct definition *definition,
                            const struct standing *standing, const struct event *event,
                            struct scope *scope, struct decision *out)
{
    struct turn turn = {
        .plan = plan_of(definition), .memory = standing->memory, .event = event, .scope = scope
    };

    ASSERT(turn.plan && turn.memory);
    handle(&turn);
    if (turn.status != PAWL_OK)
        return turn.status;
    *out = turn.decision;
    return PAWL_OK;
}

static pawl_status decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out)
{
    switch (event->kind) {
    case EVENT_FIRE:
        return fire_decide(definition, standing, event, scope, out);
    case EVENT_CANCEL:
        return fire_decide_cancel(definition, standing, event, scope, out);
    case EVENT_SIGNAL:
        return refuse_signal(definition, standing, event, scope);
    case EVENT_START:
        if (standing->state != LIFE_CREATED)
            return refuse_start(definition, standing, scope);
        return run_turn(decide_start, definition, standing, event, scope, out);
    case EVENT_TIMER:
        return run_turn(decide_timer, definition, standing, event, scope, out);
    case EVENT_STEP_START:
        return run_turn(decide_step_start, definition, standing, event, scope, out);
    case EVENT_STEP_DONE:
    case EVENT_STEP_FAILED:
    case EVENT_STEP_LOST:
        return run_turn(decide_step_end, definition, standing, event, scope, out);
    case EVENT_UNKNOWN:
        break;
    }
    return scope_fail(scope, PAWL_INVALID_REQUEST, "a flow does not know this event");
}

static pawl_status prepare(struct definition *definition, struct scope *scope)
{
    struct plan *plan = NULL;
    pawl_status status = plan_load(scope, definition->plan_text, &plan);

    if (status == PAWL_OK)
        definition->plan = plan;
    return status;
}

const struct behavior flow_behavior = {
    .kind = KIND_FLOW,
    .prepare = prepare,
    .decide = decide,
    .memory_new = flow_memory_new,
    .apply = flow_apply,
    .memory_print = flow_memory_print,
    .memory_load = flow_memory_load,
    .event_of = flow_event_of,
};
