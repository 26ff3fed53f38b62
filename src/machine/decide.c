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
    const struct deadline *deadline;

    TRY(fire_check_open(definition, standing, scope));
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

static pawl_status decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out)
{
    struct draft *draft;
    uint32_t to;

    if (event->kind == EVENT_FIRE) {
        TRY(fire_decide(definition, standing, event, scope, out));
    } else if (event->kind == EVENT_CANCEL) {
        TRY(fire_decide_cancel(definition, standing, event, scope, out));
    } else if (event->kind == EVENT_TIMER) {
        TRY(decide_timer(definition, standing, event, scope, out));
    } else {
        TRY(fire_check_open(definition, standing, scope));
        return fire_fail_legal(definition, standing, scope, PAWL_NOT_AWAITING,
                               "a machine waits for actions, never for signals or steps; fire one");
    }
    if (definition->deadline_count == 0)
        return PAWL_OK;
    draft = &out->drafts[0];
    to = definition->transitions[draft->transition].to;
    return deadline_effects(scope, definition->deadlines, definition->deadline_count,
                            standing->state, to, definition->states[to].terminal != TERMINAL_NOT,
                            event->at_ms, &draft->effects);
}

const struct behavior machine_behavior = { .kind = KIND_MACHINE, .decide = decide };
