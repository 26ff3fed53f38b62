/* decide.c - (state, action) -> decision.
 *
 * Nothing here reads a clock, rolls a die or touches a store: the same arguments give the same
 * decision. The rules themselves are the lifecycle's too and stand in model/fire.c. */
#include "machine/machine.h"
#include "model/deadline.h"
#include "model/fire.h"
#include "model/words.h"

/* A deadline that has passed fires its action as a caller would; the state it counts for is the one
 * the instance is in now, since the entry that brought it there. */
static pawl_status decide_timer(const struct definition *definition,
                                const struct standing *standing, const struct event *event,
                                struct scope *scope, struct decision *out)
{
    pawl_status status = fire_check_open(definition, standing, scope);
    const struct deadline *deadline;

    if (status != PAWL_OK)
        return status;
    deadline = deadline_find(definition, standing->state, event->name);
    if (!deadline)
        return fire_fail_legal(definition, standing, scope, PAWL_NOT_AWAITING,
                               "no timer '%.*s' is armed", STR_ARG(words_shown(event->name)));
    if (!event->is_forced && event->at_ms < standing->entered_at_ms + deadline->after_ms &&
        event->due_at_ms != standing->entered_at_ms + deadline->after_ms)
        return scope_fail(scope, PAWL_NOT_AWAITING, "the timer '%.*s' is not due yet",
                          STR_ARG(words_shown(event->name)));
    return fire_decide(definition, standing, event, scope, out);
}

/* What the one entry does to the timers of a machine that has any. */
static pawl_status add_effects(const struct definition *definition, const struct standing *standing,
                               const struct event *event, struct scope *scope,
                               struct decision *decision)
{
    struct draft *draft = &decision->drafts[0];
    uint32_t to = definition->transitions[draft->transition].to;

    return deadline_effects(scope, definition->deadlines, definition->deadline_count,
                            standing->state, to, definition->states[to].terminal != TERMINAL_NOT,
                            event->at_ms, &draft->effects);
}

static pawl_status decide_event(const struct definition *definition,
                                const struct standing *standing, const struct event *event,
                                struct scope *scope, struct decision *out)
{
    switch (event->kind) {
    case EVENT_FIRE:
        return fire_decide(definition, standing, event, scope, out);
    case EVENT_CANCEL:
        return fire_decide_cancel(definition, standing, event, scope, out);
    case EVENT_TIMER:
        return decide_timer(definition, standing, event, scope, out);
    case EVENT_UNKNOWN:
    case EVENT_START:
    case EVENT_SIGNAL:
    case EVENT_STEP_START:
    case EVENT_STEP_DONE:
    case EVENT_STEP_FAILED:
    case EVENT_STEP_LOST:
    case EVENT_STEP_RETURNED:
    case EVENT_STEP_SPOILED:
    case EVENT_STEP_TIMEOUT:
    case EVENT_APPROVE:
    case EVENT_REJECT:
    case EVENT_CHILD:
    case EVENT_AMEND:
    case EVENT_WAKE:
        break;
    }
    TRY(fire_check_open(definition, standing, scope));
    return fire_fail_legal(definition, standing, scope, PAWL_NOT_AWAITING,
                           "a machine waits for actions, never for signals or steps; fire one");
}

static pawl_status decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out)
{
    TRY(decide_event(definition, standing, event, scope, out));
    return definition->deadline_count > 0 ? add_effects(definition, standing, event, scope, out)
                                          : PAWL_OK;
}

const struct behavior machine_behavior = { .kind = KIND_MACHINE, .decide = decide };
