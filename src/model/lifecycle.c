/* lifecycle.c - the machine that every flow and every code instance runs. */
#include "model/definition.h"

/* clang-format off */
static const struct state lifecycle_states[] = {
#define X(name, text, terminal) { STR_INIT(text), (terminal) },
    LIFECYCLE_STATES(X)
#undef X
};

static const struct transition lifecycle_transitions[] = {
#define X(name, action, from, to, engine) \
    { LIFE_##from, LIFE_##to, STR_INIT(action), { NULL, 0 }, false, (engine) },
    LIFECYCLE_TRANSITIONS(X)
#undef X
};
/* clang-format on */

bool lifecycle_is_failure(uint32_t transition)
{
    return transition == LIFE_T_STEP_FAIL || transition == LIFE_T_STEP_TIMEOUT ||
           transition == LIFE_T_GATE_REJECT;
}

bool lifecycle_is_stop(uint32_t transition)
{
    return transition == LIFE_T_COMPENSATE || transition == LIFE_T_CLEAN_UP;
}

pawl_status definition_set_lifecycle(struct definition *definition, struct scope *scope)
{
    struct arena *arena = &scope->arena;
    struct state *states = arena_copy(arena, lifecycle_states, sizeof lifecycle_states);
    struct transition *transitions =
        arena_copy(arena, lifecycle_transitions, sizeof lifecycle_transitions);

    TRY_MEMORY(scope, states && transitions);
    definition->states = states;
    definition->state_count = LIFE_STATE_COUNT;
    definition->initial = LIFE_CREATED;
    definition->transitions = transitions;
    definition->transition_count = LIFE_T_COUNT;
    return definition_index(definition, scope);
}
