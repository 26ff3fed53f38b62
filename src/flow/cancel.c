/* cancel.c - may a flow be cancelled where it stands? Always, never, or not from some of its steps,
 * as its plan says. */
#include "flow/stop.h"
#include "flow/undo.h"
#include "model/fire.h"
#include "model/words.h"

/* Rejects with `status` a cancel that the plan does not allow. */
static pawl_status check_rule(const struct flow_memory *memory, struct scope *scope,
                              pawl_status status)
{
    uint32_t i = 0;

    if (memory->plan->cancel == CANCEL_NEVER)
        return scope_fail(scope, status,
                          "no way to cancel: the definition says 'cancel: false'; the flow ends by "
                          "its own steps");
    while (i < memory->live_count && !memory->plan->steps[memory->live[i].plan].bars_cancel)
        i++;
    if (i == memory->live_count)
        return PAWL_OK;
    return scope_fail(
        scope, status,
        "no way to cancel while step '%.*s' is %s: the definition's 'cancel.not_from' "
        "names it; cancel when that step is over",
        STR_ARG(words_shown(memory->plan->steps[memory->live[i].plan].name)),
        step_status_name(memory->live[i].status));
}

/* One that is being undone or cleans up ends by itself, and a second cancel changes nothing. While
 * it cleans up, one that the engine has paused may be cancelled all the same (poison.c). */
static pawl_status check_undoing(const struct flow_memory *memory, struct scope *scope)
{
    if (memory->undoing == UNDO_NOT && memory->is_cancelling)
        return scope_fail(scope, PAWL_NO_CANCEL_TRANSITION,
                          "it is being cancelled already; it ends when its 'finally' is done");
    if (memory->undoing == UNDO_NOT)
        return PAWL_OK;
    return scope_fail(scope, PAWL_CONFLICT,
                      "it is being undone already, because it %s; it ends when its compensations "
                      "are done",
                      memory->undoing == UNDO_FAILING ? "failed" : "was cancelled");
}

pawl_status cancel_decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out)
{
    TRY(fire_check_open(definition, standing, scope));
    TRY(check_rule(standing->memory, scope, PAWL_NO_CANCEL_TRANSITION));
    TRY(check_undoing(standing->memory, scope));
    if (stop_cleans(standing->memory))
        return turn_run(decide_clean_up, definition, standing, event, scope, out);
    if (undo_or_cancel(standing->memory))
        return turn_run(decide_undo_cancel, definition, standing, event, scope, out);
    return fire_decide_cancel(definition, standing, event, scope, out);
}

/* A caller can fire `cancel` only: where that is not allowed, nothing can be fired. */
pawl_status cancel_decide_fire(const struct definition *definition, const struct standing *standing,
                               const struct event *event, struct scope *scope, struct decision *out)
{
    pawl_status status = fire_check_open(definition, standing, scope);

    if (status == PAWL_OK)
        status = check_rule(standing->memory, scope, PAWL_INVALID_TRANSITION);
    if (status == PAWL_INVALID_TRANSITION && !str_is(event->name, "cancel"))
        return scope_fail(scope, status, "no '%.*s' from '%.*s'; nothing can be fired now",
                          STR_ARG(words_shown(event->name)),
                          STR_ARG(definition->states[standing->state].name));
    if (status == PAWL_OK && str_is(event->name, "cancel"))
        return cancel_decide(definition, standing, event, scope, out);
    return status != PAWL_OK ? status : fire_decide(definition, standing, event, scope, out);
}

/* ---- For callers that have the instance's rows, not its memory ---- */

enum cancel_rule flow_cancel_rule(const struct definition *definition)
{
    return plan_of(definition)->cancel;
}

bool flow_undoes(const struct definition *definition)
{
    return plan_of(definition)->has_undo || plan_of(definition)->cleans;
}

bool flow_step_bars_cancel(const struct definition *definition, uint32_t plan_index)
{
    const struct plan *plan = plan_of(definition);

    return plan_index < plan->count && plan->steps[plan_index].bars_cancel;
}
