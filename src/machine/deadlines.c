/* deadlines.c - `deadlines: [{state, after, action}]`, once the transitions are known. */
#include "base/limits.h"
#include "base/time.h"
#include "machine/machine_int.h"
#include "model/words.h"

/* The member under `key`, or NULL and an error. */
static const struct node *find_member(struct compiler *compiler, const struct node *deadline,
                                      const char *key)
{
    const struct node *node = node_find(deadline, key);

    if (!node)
        compiler_error(compiler, deadline,
                       "a deadline has no '%s'; it needs state, after and action", key);
    return node;
}

static uint32_t read_state(struct compiler *compiler, const struct node *deadline)
{
    const struct node *node = find_member(compiler, deadline, "state");
    uint32_t state =
        node ? compiler_read_state(compiler, node, "a deadline's 'state'") : STATE_NONE;
    const struct state *states = compiler->definition->states;

    if (state == STATE_NONE || states[state].terminal == TERMINAL_NOT)
        return state;
    compiler_error(compiler, node,
                   "a deadline's 'state': expected one that is not terminal, found '%.*s'; nothing "
                   "leaves a terminal state",
                   STR_ARG(words_shown(states[state].name)));
    return STATE_NONE;
}

static bool read_after(struct compiler *compiler, const struct node *deadline, int64_t *out_ms)
{
    const struct node *node = find_member(compiler, deadline, "after");

    if (!node)
        return false;
    if (node->kind == NODE_STRING && duration_parse(node->text, out_ms) && *out_ms > 0)
        return true;
    compiler_error(compiler, node,
                   "a deadline's 'after': expected a duration above 0 like \"500ms\", \"30s\", "
                   "\"5m\", \"72h\" or \"7d\", found %s%.*s",
                   node->kind == NODE_STRING ? "" : node_kind_name(node->kind),
                   STR_ARG(node->kind == NODE_STRING ? words_shown(node->text) : STR("")));
    return false;
}

/* A deadline has no caller that could assert a guard or give a reason. */
static bool check_transition(struct compiler *compiler, const struct node *node,
                             const struct transition *transition)
{
    const char *what = transition->guard.data        ? "has a guard"
                       : transition->requires_reason ? "requires a reason"
                                                     : NULL;

    if (what)
        compiler_error(compiler, node,
                       "a deadline's 'action': '%.*s' %s, which no timer can satisfy; use an "
                       "action without",
                       STR_ARG(words_shown(transition->action)), what);
    return !what;
}

static const struct transition *read_action(struct compiler *compiler, const struct node *deadline,
                                            uint32_t state)
{
    const struct node *node = find_member(compiler, deadline, "action");
    const struct definition *definition = compiler->definition;
    const struct transition *transition;
    str name;

    if (!node || !compiler_read_name(compiler, node, "a deadline's 'action'", &name) ||
        state == STATE_NONE)
        return NULL;
    transition = definition_find(definition, state, name);
    if (!transition) {
        compiler_error(compiler, node,
                       "a deadline's 'action': no '%.*s' is declared from '%.*s'; declare that "
                       "transition or correct the name",
                       STR_ARG(words_shown(name)),
                       STR_ARG(words_shown(definition->states[state].name)));
        return NULL;
    }
    return check_transition(compiler, node, transition) ? transition : NULL;
}

static void add_deadline(struct compiler *compiler, const struct node *node,
                         const struct transition *transition, int64_t after_ms)
{
    struct definition *definition = compiler->definition;
    uint32_t index = definition_transition_index(definition, transition);

    for (uint32_t i = 0; i < definition->deadline_count; i++)
        if (definition->deadlines[i].transition == index) {
            compiler_error(compiler, node,
                           "a second deadline fires '%.*s' from '%.*s'; keep one of them",
                           STR_ARG(words_shown(transition->action)),
                           STR_ARG(words_shown(definition->states[transition->from].name)));
            return;
        }
    definition->deadlines[definition->deadline_count++] =
        (struct deadline){ .state = transition->from,
                           .transition = index,
                           .name = transition->action,
                           .after_ms = after_ms };
}

static void read_deadline(struct compiler *compiler, const struct node *node)
{
    const struct transition *transition;
    int64_t after_ms = 0;
    bool has_after;

    if (node->kind != NODE_OBJECT) {
        compiler_error(compiler, node,
                       "a deadline: expected an object with state, after and action, found %s",
                       node_kind_name(node->kind));
        return;
    }
    transition = read_action(compiler, node, read_state(compiler, node));
    has_after = read_after(compiler, node, &after_ms);
    compiler_check_keys(compiler, node, deadline_keys, "");
    if (transition && has_after)
        add_deadline(compiler, node, transition, after_ms);
}

pawl_status compiler_read_deadlines(struct compiler *compiler)
{
    const struct node *deadlines = node_find(compiler->document, "deadlines");
    struct definition *definition = compiler->definition;

    if (!deadlines || deadlines->kind == NODE_NULL)
        return PAWL_OK;
    if (deadlines->kind != NODE_ARRAY || deadlines->count > LIMIT_DEADLINES) {
        compiler_error(compiler, deadlines,
                       "'deadlines': expected an array of at most %d like {state: S, after: 3d, "
                       "action: A}, found %s",
                       LIMIT_DEADLINES,
                       deadlines->kind == NODE_ARRAY ? "more" : node_kind_name(deadlines->kind));
        return PAWL_OK;
    }
    definition->deadlines =
        ARENA_ARRAY(&compiler->scope->arena, struct deadline, (size_t)deadlines->count + 1);
    TRY_MEMORY(compiler->scope, definition->deadlines);
    for (const struct node *node = deadlines->first; node; node = node->next)
        read_deadline(compiler, node);
    return PAWL_OK;
}
