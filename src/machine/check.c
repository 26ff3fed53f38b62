/* check.c - what is legal but odd in a registered definition: states nothing leads to, and
 * states from which no instance can end (D11: both are allowed). */
#include "machine/machine_int.h"
#include "model/words.h"

/* Neighbours of state s: states[start[s] .. start[s + 1]). */
struct graph {
    uint32_t count;
    uint32_t *start, *states;
};

static uint32_t tail(const struct transition *transition, bool backward)
{
    return backward ? transition->to : transition->from;
}

/* The graph of the transitions, or of their reverse. */
static pawl_status make_graph(struct compiler *compiler, bool backward, struct graph *out)
{
    const struct definition *definition = compiler->definition;
    struct arena *arena = &compiler->scope->arena;
    struct graph graph = { .count = definition->state_count };
    uint32_t *next = ARENA_ARRAY(arena, uint32_t, graph.count + 1);

    graph.start = ARENA_ARRAY(arena, uint32_t, graph.count + 1);
    graph.states = ARENA_ARRAY(arena, uint32_t, definition->transition_count);
    if (arena->failed)
        return scope_no_memory(compiler->scope);
    for (uint32_t i = 0; i < definition->transition_count; i++)
        graph.start[tail(&definition->transitions[i], backward) + 1]++;
    for (uint32_t s = 0; s < graph.count; s++) {
        graph.start[s + 1] += graph.start[s];
        next[s] = graph.start[s];
    }
    for (uint32_t i = 0; i < definition->transition_count; i++) {
        const struct transition *transition = &definition->transitions[i];

        graph.states[next[tail(transition, backward)]++] = tail(transition, !backward);
    }
    *out = graph;
    return PAWL_OK;
}

/* Mark everything that can be reached from what is marked. */
static pawl_status spread(struct compiler *compiler, const struct graph *graph, bool *marks)
{
    uint32_t *queue = ARENA_ARRAY(&compiler->scope->arena, uint32_t, graph->count);
    uint32_t size = 0;

    if (!queue)
        return scope_no_memory(compiler->scope);
    for (uint32_t s = 0; s < graph->count; s++)
        if (marks[s])
            queue[size++] = s;
    for (uint32_t at = 0; at < size; at++)
        for (uint32_t i = graph->start[queue[at]]; i < graph->start[queue[at] + 1]; i++)
            if (!marks[graph->states[i]]) {
                marks[graph->states[i]] = true;
                queue[size++] = graph->states[i];
            }
    return PAWL_OK;
}

/* Which states can be reached from the initial one, or (backward) reach a terminal one? */
static pawl_status mark(struct compiler *compiler, bool backward, bool **out)
{
    const struct definition *definition = compiler->definition;
    bool *marks = ARENA_ARRAY(&compiler->scope->arena, bool, definition->state_count);
    struct graph graph = { 0 };
    pawl_status status;

    if (!marks)
        return scope_no_memory(compiler->scope);
    status = make_graph(compiler, backward, &graph);
    if (status != PAWL_OK)
        return status;
    for (uint32_t s = 0; s < definition->state_count; s++)
        marks[s] =
            backward ? definition->states[s].terminal != TERMINAL_NOT : s == definition->initial;
    *out = marks;
    return spread(compiler, &graph, marks);
}

static bool has_terminal(const struct definition *definition)
{
    for (uint32_t s = 0; s < definition->state_count; s++)
        if (definition->states[s].terminal != TERMINAL_NOT)
            return true;
    return false;
}

static void warn_about(struct compiler *compiler, uint32_t state, bool reached, bool ends)
{
    const struct node *node = compiler->state_nodes[state];
    str name = words_shown(compiler->definition->states[state].name);

    if (!reached)
        compiler_warn(compiler, node, "no way leads from the initial state to '%.*s'",
                      STR_ARG(name));
    else if (!ends)
        compiler_warn(compiler, node,
                      "no way leads from '%.*s' to a terminal state: an instance "
                      "in it never ends",
                      STR_ARG(name));
}

pawl_status compiler_check(struct compiler *compiler)
{
    const struct definition *definition = compiler->definition;
    bool *reached = NULL, *ends = NULL, may_end = has_terminal(definition);
    pawl_status status;

    if (compiler->is_inline)
        return PAWL_OK;
    status = mark(compiler, false, &reached);
    if (status == PAWL_OK)
        status = mark(compiler, true, &ends);
    if (status != PAWL_OK)
        return status;
    if (!may_end)
        compiler_warn(compiler, compiler->document,
                      "there is no terminal state: instances never end");
    for (uint32_t s = 0; s < definition->state_count; s++)
        warn_about(compiler, s, reached[s], ends[s] || !may_end);
    return PAWL_OK;
}
