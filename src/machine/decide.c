/* decide.c - (state, action) -> decision.
 *
 * Nothing here reads a clock, rolls a die or touches a store: the same arguments give the same
 * decision. The rules themselves are the lifecycle's too and stand in model/fire.c. */
#include "machine/machine.h"
#include "model/fire.h"

static pawl_status decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out)
{
    pawl_status status;

    switch (event->kind) {
    case EVENT_FIRE:
        return fire_decide(definition, standing, event, scope, out);
    case EVENT_CANCEL:
        return fire_decide_cancel(definition, standing, event, scope, out);
    case EVENT_UNKNOWN:
    case EVENT_START:
    case EVENT_TIMER:
    case EVENT_SIGNAL:
    case EVENT_STEP_START:
    case EVENT_STEP_DONE:
    case EVENT_STEP_FAILED:
    case EVENT_STEP_LOST:
    case EVENT_STEP_TIMEOUT:
    case EVENT_APPROVE:
    case EVENT_REJECT:
    case EVENT_CHILD_DONE:
    case EVENT_CHILD_FAILED:
        break;
    }
    status = fire_check_open(definition, standing, scope);
    if (status != PAWL_OK)
        return status;
    return fire_fail_legal(definition, standing, scope, PAWL_NOT_AWAITING,
                           "a machine waits for actions, never for timers, signals or steps; "
                           "fire one");
}

const struct behavior machine_behavior = { .kind = KIND_MACHINE, .decide = decide };
