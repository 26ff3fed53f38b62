/* reduce_wait.c - what steps wait for: timers and signals. */
#include "flow/group.h"
#include "flow/map_items.h"
#include "model/words.h"

/* Amends of older programs left arms without a way on. A graph began its first step then; what a
 * tree did, which was to go on behind the select, is found again in its history. */
static bool has_way(const struct turn *turn, const struct plan_step *step, uint32_t arm)
{
    if (!step->kind->leads_by_arm)
        return true;
    if (turn->plan->is_tree)
        return turn->event->is_recorded || arm < turn->plan->nodes[step->node].child_count;
    return arm < step->target_count;
}

void take_arm(struct turn *turn, enum lifecycle_transition transition,
              const struct attempt *attempt, uint32_t arm, str payload)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    const struct step_kind *kind = step->kind;
    str result = payload;
    pawl_status status = PAWL_OK;

    turn->item = map_item_of(turn->plan, memory_find_map(turn->memory, attempt->map), attempt->plan,
                             attempt->item);
    if (kind->arm_result)
        status = kind->arm_result(turn, attempt, arm, payload, &result);
    turn->item = (struct template_item){ .name = STR_NONE };
    if (status != PAWL_OK) {
        step_spoil(turn, attempt, status);
        return;
    }
    if (turn->status == PAWL_OK && !has_way(turn, step, arm))
        turn_fail(turn, PAWL_CONFLICT,
                  "the select '%.*s' has no arm %u any more; amend the instance "
                  "to a definition with an arm that waits for this",
                  STR_ARG(words_shown(step->name)), arm);
    if (turn->status == PAWL_OK)
        step_succeed(turn, transition, attempt, result, arm);
}

static bool has_timer(const struct turn *turn, const struct attempt *live, uint32_t *out_arm)
{
    str name = turn->event->name;

    *out_arm = memory_find_arm(turn->memory, live->ordinal, true, name);
    if (*out_arm != ARM_NONE)
        return true;
    if (str_eq(name, TIMER_RETRY))
        return live->is_backing_off;
    if (str_eq(name, TIMER_WORKER))
        return live->status == STEP_READY && turn->plan->steps[live->plan].worker_ms > 0;
    return str_eq(name, TIMER_TIMEOUT) && !live->is_backing_off && live->status != STEP_READY &&
           turn->plan->steps[live->plan].timeout_ms > 0 &&
           !group_is_stopping(turn->memory, &turn->plan->steps[live->plan]);
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
        turn_fail(turn, PAWL_NOT_AWAITING, "no timer '%.*s' is armed",
                  STR_ARG(words_shown(turn->event->name)));
    } else if (arm != ARM_NONE) {
        take_arm(turn, LIFE_T_TIMER, live, arm, RESULT_NULL);
    } else if (str_eq(turn->event->name, TIMER_WORKER)) {
        step_fail(turn, LIFE_T_STEP_TIMEOUT, live, RETRY_FAILED, ERROR_WORKER);
    } else if (!live->is_backing_off && step_is_group(turn->plan, &turn->plan->steps[live->plan])) {
        group_time_out(turn, live);
    } else if (!live->is_backing_off) {
        step_time_out(turn, live);
    } else {
        turn_draft(turn, LIFE_T_STEP_RETRY, live, STR_NONE);
        begin_again(turn, live);
        if (step_is_group(turn->plan, &turn->plan->steps[live->plan]))
            group_begin_again(turn, live);
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
        const struct live_arm *arm = &memory->arms[i];

        if (arm->is_timer || !str_eq(arm->name, event->name) || !event_is_for(event, arm->value))
            continue;
        take_arm(turn, LIFE_T_SIGNAL, memory_find(memory, arm->ordinal), arm->index, payload);
        return;
    }
    keep_signal(turn, payload);
}
