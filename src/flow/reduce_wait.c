/* reduce_wait.c - what steps wait for: timers, signals, children. */
#include "base/node.h"
#include "flow/flow_int.h"
#include "model/interest.h"
#include "model/words.h"

#define ERROR_CHILD_FAILED    STR("\"child-failed\"")
#define ERROR_CHILD_CANCELLED STR("\"child-cancelled\"")
#define ERROR_CHILD_BEGIN     STR("{\"reason\":\"child-failed\",\"error\":")
#define CHILD_COMPILER        3 /* from this compiler on, the step's error holds the child's */
#define BROADCAST_COMPILER    3 /* from this compiler on, a flow keeps broadcasts */

/* ---- Timers and signals ------------------------------------------------------------------------
 */

/* A wait's result is what it waited for; a select's says which arm it was. */
static str arm_result(struct turn *turn, const struct plan_step *step, uint32_t arm, str payload)
{
    struct buf buf;
    str kept;

    if (step->kind != STEP_KIND_SELECT)
        return payload;
    buf_init(&buf, turn->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_open(&buf, '{');
    json_key(&buf, "arm");
    json_u64(&buf, arm);
    json_key(&buf, "payload");
    json_raw(&buf, payload);
    json_close(&buf, '}');
    kept = buf_keep(&buf, &turn->scope->arena);
    buf_fini(&buf);
    if (!kept.data)
        turn->status = scope_no_memory(turn->scope);
    return kept;
}

static void take_arm(struct turn *turn, enum lifecycle_transition transition,
                     const struct attempt *attempt, uint32_t arm, str payload)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    str result = arm_result(turn, step, arm, payload);

    if (turn->status == PAWL_OK)
        step_succeed(turn, transition, attempt, result, arm);
}

static bool has_timer(const struct turn *turn, const struct attempt *live, uint32_t *out_arm)
{
    str name = turn->event->name;

    *out_arm = memory_find_arm(turn->memory, live->ordinal, true, name);
    if (*out_arm != UINT32_MAX)
        return true;
    if (str_eq(name, TIMER_RETRY))
        return live->is_backing_off;
    return str_eq(name, TIMER_TIMEOUT) && !live->is_backing_off && live->status != STEP_READY &&
           turn->plan->steps[live->plan].timeout_ms > 0;
}

/* The attempt that has this timer; by the timer's name alone if no ordinal is given. */
static const struct attempt *find_timed(const struct turn *turn, uint32_t *out_arm)
{
    const struct flow_memory *memory = turn->memory;
    const struct attempt *live = memory_find(memory, turn->event->ordinal);

    if (turn->event->ordinal > 0)
        return live && has_timer(turn, live, out_arm) ? live : NULL;
    for (uint32_t i = 0; i < memory->live_count; i++)
        if (has_timer(turn, &memory->live[i], out_arm))
            return &memory->live[i];
    return NULL;
}

/* A timer that is not armed now belongs to an attempt that is over. */
void decide_timer(struct turn *turn)
{
    uint32_t arm;
    const struct attempt *live = find_timed(turn, &arm);

    if (!live) {
        turn->status = scope_fail(turn->scope, PAWL_NOT_AWAITING, "no timer '%.*s' is armed",
                                  STR_ARG(words_shown(turn->event->name)));
    } else if (arm != UINT32_MAX) {
        take_arm(turn, LIFE_T_TIMER, live, arm, RESULT_NULL);
    } else if (!live->is_backing_off) {
        step_fail(turn, LIFE_T_STEP_TIMEOUT, live, RETRY_TIMEOUT, ERROR_TIMEOUT);
    } else {
        turn_draft(turn, LIFE_T_STEP_RETRY, live, STR_NONE);
        begin_again(turn, live);
    }
}

/* Nothing awaits it yet, or the instance is paused. */
static void keep_signal(struct turn *turn, str payload)
{
    const struct event *event = turn->event;

    if (event->is_held && (!plan_keeps(turn->plan, event->name) || event->filter.data))
        turn->status = scope_fail(turn->scope, PAWL_PAUSED, PAUSED_WORDS);
    else if (!plan_keeps(turn->plan, event->name) || event->filter.data)
        turn->status =
            scope_fail(turn->scope, PAWL_NOT_AWAITING, "nothing waits for the signal '%.*s'",
                       STR_ARG(words_shown(event->name)));
    else if (turn->memory->signal_count == LIMIT_KEPT_SIGNALS)
        turn->status = scope_fail(turn->scope, PAWL_OVERLOADED,
                                  "%u signals are kept already and nothing takes them",
                                  turn->memory->signal_count);
    else
        turn_draft(turn, LIFE_T_SIGNAL, NULL, payload);
    if (turn->status == PAWL_OK)
        turn->decision.drafts[0].keep = event->name;
}

/* The oldest wait for it: arms are in the order in which they began to wait. */
void decide_signal(struct turn *turn)
{
    const struct flow_memory *memory = turn->memory;
    const struct event *event = turn->event;
    str payload = event->payload.data ? event->payload : RESULT_NULL;

    for (uint32_t i = 0; i < memory->arm_count && !event->is_held; i++) {
        uint32_t ordinal = memory->arms[i].ordinal;

        if (memory->arms[i].is_timer || !str_eq(memory->arms[i].name, event->name) ||
            (event->filter.data && !str_eq(memory->arms[i].value, event->filter)))
            continue;
        take_arm(turn, LIFE_T_SIGNAL, memory_find(memory, ordinal),
                 memory_find_arm(memory, ordinal, false, event->name), payload);
        return;
    }
    keep_signal(turn, payload);
}

/* ---- Children ----------------------------------------------------------------------------------
 */

static str enclose(struct turn *turn, str begin, str error)
{
    struct buf buf;
    str kept;

    buf_init(&buf, turn->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    buf_str(&buf, begin);
    buf_str(&buf, error);
    buf_str(&buf, STR("}"));
    kept = buf_keep(&buf, &turn->scope->arena);
    buf_fini(&buf);
    if (!kept.data)
        turn->status = scope_no_memory(turn->scope);
    return kept;
}

static str child_note(struct turn *turn, str error)
{
    return turn->event->outcome == TERMINAL_CANCEL ? NOTE_CANCELLED
                                                   : enclose(turn, NOTE_FAILED, error);
}

/* What the child failed with, for the rescue. That of a grandchild is passed on as it is: it
 * grows with no generation. */
static str child_error(struct turn *turn, str error)
{
    if (turn->event->outcome == TERMINAL_CANCEL)
        return ERROR_CHILD_CANCELLED;
    if (turn->compiler < CHILD_COMPILER || str_eq(error, RESULT_NULL) ||
        error.size > LIMIT_TEXT - ERROR_CHILD_BEGIN.size - 1)
        return ERROR_CHILD_FAILED;
    return str_starts(error, ERROR_CHILD_BEGIN) ? error : enclose(turn, ERROR_CHILD_BEGIN, error);
}

/* A child that ends well ends the step that waits for it. Of one that does not there is a note,
 * with what it said, and the step fails: a fold must not have to guess which it was. */
void decide_child(struct turn *turn)
{
    const struct attempt *attempt = memory_find(turn->memory, turn->event->ordinal);
    str payload = turn->event->payload.data ? turn->event->payload : RESULT_NULL;
    enum terminal_kind outcome = turn->event->outcome;

    if (!attempt || turn->plan->steps[attempt->plan].kind != STEP_KIND_SPAWN) {
        turn->status = scope_fail(turn->scope, PAWL_NOT_AWAITING, "nothing waits for this child");
    } else if (outcome != TERMINAL_FAILURE && outcome != TERMINAL_CANCEL) {
        step_succeed(turn, LIFE_T_CHILD, attempt, payload, 0);
    } else {
        turn_draft(turn, LIFE_T_CHILD, attempt, child_note(turn, payload));
        step_fail(turn, LIFE_T_STEP_FAIL, attempt, RETRY_FAILED, child_error(turn, payload));
    }
}

/* ---- Kept signals ------------------------------------------------------------------------------
 */

static void note_interest(struct turn *turn, enum effect_kind kind, str signal)
{
    str name = interest_name(&turn->scope->arena, signal, STR_NONE);

    if (!name.data)
        turn->status = scope_no_memory(turn->scope);
    turn_cause(turn, (struct effect){ .kind = kind, .name = name });
}

void turn_keep_signals(struct turn *turn, const struct plan *before, const struct plan *plan)
{
    if (turn->compiler < BROADCAST_COMPILER)
        return;
    for (uint32_t i = 0; before && i < before->buffered_count; i++)
        if (!plan_keeps(plan, before->buffered[i]))
            note_interest(turn, EFFECT_LEAVE, before->buffered[i]);
    for (uint32_t i = 0; i < plan->buffered_count; i++)
        note_interest(turn, EFFECT_AWAIT, plan->buffered[i]);
}

/* The first wait, by age, whose signal was kept, and the oldest such signal. */
static const struct live_arm *find_kept(const struct flow_memory *memory,
                                        const struct kept_signal **out)
{
    for (uint32_t a = 0; a < memory->arm_count; a++)
        for (uint32_t s = 0; s < memory->signal_count && !memory->arms[a].is_timer; s++)
            if (str_eq(memory->signals[s].name, memory->arms[a].name)) {
                *out = &memory->signals[s];
                return &memory->arms[a];
            }
    return NULL;
}

bool flow_wakes(const void *memory)
{
    const struct kept_signal *signal;

    return ((const struct flow_memory *)memory)->signal_count > 0 && find_kept(memory, &signal);
}

void decide_wake(struct turn *turn)
{
    const struct kept_signal *signal = NULL;
    const struct live_arm *arm = find_kept(turn->memory, &signal);

    if (!arm) {
        turn->status = scope_fail(turn->scope, PAWL_NOT_AWAITING, "no kept signal is awaited");
        return;
    }
    take_arm(turn, LIFE_T_SIGNAL, memory_find(turn->memory, arm->ordinal),
             memory_find_arm(turn->memory, arm->ordinal, false, arm->name), signal->payload);
    if (turn->status == PAWL_OK)
        turn->status = effect_add(turn->scope, &turn->decision.drafts[0].effects,
                                  (struct effect){ .kind = EFFECT_TAKE, .name = signal->name });
}
