/* fire.c - which transition an action takes, and why it may not. */
#include "model/fire.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/planted.h"
#include "model/words.h"
#include <stdio.h>

static str state_shown(const struct definition *definition, const struct standing *standing)
{
    ASSERT(standing->state < definition->state_count);
    return words_shown(definition->states[standing->state].name);
}

pawl_status fire_check_open(const struct definition *definition, const struct standing *standing,
                            struct scope *scope)
{
    str state = state_shown(definition, standing);

    if (definition->states[standing->state].terminal == TERMINAL_NOT || PLANTED(TERMINAL_LEFT))
        return PAWL_OK;
    return scope_fail(scope, PAWL_TERMINAL,
                      "the instance has ended in '%.*s'; nothing leaves a terminal state, create "
                      "a new instance instead",
                      STR_ARG(state));
}

pawl_status fire_fail_legal(const struct definition *definition, const struct standing *standing,
                            struct scope *scope, pawl_status status, const char *format, ...)
{
    char head[sizeof scope->error.message];
    struct buf legal;
    va_list args;

    va_start(args, format);
    if (vsnprintf(head, sizeof head, format, args) < 0)
        head[0] = '\0';
    va_end(args);
    /* One action more than a message can hold: what is cut off then was never to be seen. */
    buf_init(&legal, scope->arena.heap, sizeof head + LIMIT_ACTION + 2);
    definition_legal_actions(definition, standing->state, &legal);
    if (legal.failed && legal.size < sizeof head)
        status = scope_no_memory(scope);
    else
        status = scope_fail(scope, status, "%s; legal now: %.*s", head, STR_ARG(buf_view(&legal)));
    buf_fini(&legal);
    return status;
}

static pawl_status decide_one(const struct definition *definition,
                              const struct transition *transition, const struct event *event,
                              struct scope *scope, struct decision *out)
{
    struct decision decision = { 0 };
    struct draft *draft;

    draft = decision_add(scope, &decision, definition_transition_index(definition, transition));
    TRY_MEMORY(scope, draft);
    draft->payload = event->payload;
    draft->reason = event->reason;
    draft->actor = event->actor;
    draft->guard =
        transition->guard.data != NULL || (PLANTED(GUARD_NOTED) && event->guard_satisfied);
    *out = decision;
    return PAWL_OK;
}

static pawl_status check_reason(const struct transition *transition, const struct event *event,
                                str state, struct scope *scope)
{
    bool has_reason = event->reason.data && !str_is_blank(event->reason);

    if (!transition->requires_reason || has_reason || PLANTED(REASON_UNASKED))
        return PAWL_OK;
    return scope_fail(scope, PAWL_REASON_REQUIRED,
                      "'%.*s' from '%.*s' wants a reason; pass it in 'reason'",
                      STR_ARG(words_shown(transition->action)), STR_ARG(state));
}

static pawl_status check_conditions(const struct transition *transition, const struct event *event,
                                    str state, struct scope *scope)
{
    str action = words_shown(transition->action), guard = words_shown(transition->guard);

    TRY(check_reason(transition, event, state, scope));
    if (transition->guard.data && !event->guard_satisfied && !PLANTED(GUARD_UNASKED))
        return scope_fail(scope, PAWL_GUARD_NOT_SATISFIED,
                          "'%.*s' from '%.*s' is guarded by '%.*s'; once that holds, assert "
                          "guard_satisfied",
                          STR_ARG(action), STR_ARG(state), STR_ARG(guard));
    return PAWL_OK;
}

pawl_status fire_decide(const struct definition *definition, const struct standing *standing,
                        const struct event *event, struct scope *scope, struct decision *out)
{
    str state = state_shown(definition, standing), action = words_shown(event->name);
    const struct transition *transition;

    TRY(fire_check_open(definition, standing, scope));
    transition = definition_find(definition, standing->state, event->name);
    if (!transition || (transition->by_engine && !event->by_engine && event->kind != EVENT_TIMER))
        return fire_fail_legal(definition, standing, scope, PAWL_INVALID_TRANSITION,
                               "no '%.*s' from '%.*s'", STR_ARG(action), STR_ARG(state));
    TRY(check_conditions(transition, event, state, scope));
    return decide_one(definition, transition, event, scope, out);
}

pawl_status fire_decide_cancel(const struct definition *definition, const struct standing *standing,
                               const struct event *event, struct scope *scope, struct decision *out)
{
    str state = state_shown(definition, standing);
    const struct transition *transition;

    TRY(fire_check_open(definition, standing, scope));
    transition = definition_find_cancel(definition, standing->state);
    if (!transition)
        return fire_fail_legal(definition, standing, scope, PAWL_NO_CANCEL_TRANSITION,
                               "no way to cancel from '%.*s': no unguarded transition leads to a "
                               "terminal state of kind cancel; fire an action instead",
                               STR_ARG(state));
    TRY(check_reason(transition, event, state, scope));
    return decide_one(definition, transition, event, scope, out);
}
