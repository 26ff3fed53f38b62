/* expand.c - `from_state: "*"` becomes one transition for every state that is not terminal.
 *
 * They stand where the `*` stood, in the order of `states`; a state that declares the action
 * itself keeps its own. What is stored knows no wildcard (X4, D26). */
#include "base/assert.h"
#include "base/limits.h"
#include "machine/machine_int.h"
#include "model/words.h"

/* Does `state` declare this action itself? */
static bool is_declared(const struct compiler *compiler, uint32_t state, str action)
{
    uint32_t low = 0, high = compiler->declared_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct declared *declared = &compiler->declared[compiler->by_exit[middle]];
        int order = declared->from < state   ? -1
                    : declared->from > state ? 1
                                             : str_compare(declared->action, action);

        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* The next state, from `state` on, that the transition leaves; or STATE_NONE. */
static uint32_t next_from(const struct compiler *compiler, const struct declared *declared,
                          uint32_t state)
{
    const struct definition *definition = compiler->definition;

    if (declared->from != STATE_ANY)
        return state <= declared->from ? declared->from : STATE_NONE;
    for (; state < definition->state_count; state++)
        if (definition->states[state].terminal == TERMINAL_NOT &&
            !is_declared(compiler, state, declared->action))
            return state;
    return STATE_NONE;
}

/* Each state that a `*` passes over has a transition of its own, so the work is bounded by
 * what is declared and what is made. */
static uint32_t count_transitions(const struct compiler *compiler)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < compiler->declared_count; i++) {
        const struct declared *declared = &compiler->declared[i];

        for (uint32_t from = next_from(compiler, declared, 0); from != STATE_NONE;
             from = next_from(compiler, declared, from + 1))
            if (++count > LIMIT_TRANSITIONS)
                return count;
    }
    return count;
}

static void add_transitions(struct compiler *compiler, const struct declared *declared)
{
    struct definition *definition = compiler->definition;
    uint32_t before = definition->transition_count;

    for (uint32_t from = next_from(compiler, declared, 0); from != STATE_NONE;
         from = next_from(compiler, declared, from + 1))
        definition->transitions[definition->transition_count++] =
            (struct transition){ .from = from,
                                 .to = declared->to,
                                 .action = declared->action,
                                 .guard = declared->guard,
                                 .requires_reason = declared->requires_reason,
                                 .by_engine = declared->by_engine,
                                 .starts = declared->starts };
    if (definition->transition_count == before)
        compiler_warn(compiler, declared->node,
                      "this '*' stands for no state: every state that is not terminal declares "
                      "'%.*s' itself; remove it",
                      STR_ARG(words_shown(declared->action)));
}

pawl_status compiler_expand(struct compiler *compiler)
{
    struct definition *definition = compiler->definition;
    uint32_t count = count_transitions(compiler);

    if (count > LIMIT_TRANSITIONS) {
        compiler_error(compiler, node_find(compiler->document, "transitions"),
                       "'transitions': expected at most %d once '*' is expanded, found more",
                       LIMIT_TRANSITIONS);
        return PAWL_OK;
    }
    definition->transitions = ARENA_ARRAY(&compiler->scope->arena, struct transition, count);
    TRY_MEMORY(compiler->scope, definition->transitions);
    for (uint32_t i = 0; i < compiler->declared_count; i++)
        add_transitions(compiler, &compiler->declared[i]);
    ASSERT(definition->transition_count == count);
    return definition_index(definition, compiler->scope);
}
