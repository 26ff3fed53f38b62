/* reduce_wait.c - what steps wait for: timers, signals, children. */
#include "base/node.h"
#include "flow/flow_int.h"
#include "model/words.h"

#define ERROR_CHILD_FAILED    STR("\"child-failed\"")
#define ERROR_CHILD_CANCELLED STR("\"child-cancelled\"")
#define ERROR_CHILD_BEGIN     STR("{\"reason\":\"child-failed\",\"error\":")
#define CHILD_COMPILER        3 /* from this compiler on, the step's error holds the child's */

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

void take_arm(struct turn *turn, enum lifecycle_transition transition,
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
        step_time_out(turn, live);
    } else {
        turn_draft(turn, LIFE_T_STEP_RETRY, live, STR_NONE);
        begin_again(turn, live);
    }
}

/* The oldest wait for it: arms are in the order in which they began to wait. */
void decide_signal(struct turn *turn)
{
    const struct flow_memory *memory = turn->memory;
    const struct event *event = turn->event;
    str payload = event->payload.data ? event->payload : RESULT_NULL;
    bool waits = event->is_held || is_behind_kept(turn);

    for (uint32_t i = 0; i < memory->arm_count && !waits; i++) {
        uint32_t ordinal = memory->arms[i].ordinal;

        if (memory->arms[i].is_timer || !str_eq(memory->arms[i].name, event->name) ||
            !event_is_for(event, memory->arms[i].value))
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
