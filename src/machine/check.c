/* check.c - what is legal but odd in a registered definition: states nothing leads to, states
 * from which no instance can end (D11: both are allowed), kinds that no end can have, states in
 * which cancelling is refused. */
#include "machine/machine_int.h"
#include "model/words.h"
#include <stdio.h>

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
    TRY_MEMORY(compiler->scope, !arena->failed);
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

    TRY_MEMORY(compiler->scope, queue);
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

    TRY_MEMORY(compiler->scope, marks);
    TRY(make_graph(compiler, backward, &graph));
    for (uint32_t s = 0; s < definition->state_count; s++)
        marks[s] =
            backward ? definition->states[s].terminal != TERMINAL_NOT : s == definition->initial;
    *out = marks;
    return spread(compiler, &graph, marks);
}

/* What the walks found, by index of the state. */
struct machine_ways {
    bool *reached; /* from the initial state */
    bool *ends;    /* a terminal state can be reached from it */
};

static void check_ways(struct compiler *compiler, const struct machine_ways *ways)
{
    const struct definition *definition = compiler->definition;
    bool has_terminal = false;

    for (uint32_t s = 0; s < definition->state_count; s++)
        has_terminal = has_terminal || definition->states[s].terminal != TERMINAL_NOT;
    if (!has_terminal)
        compiler_warn(compiler, compiler->document,
                      "there is no terminal state: instances never end; list the last states "
                      "under 'terminal_states'");
    for (uint32_t s = 0; s < definition->state_count; s++) {
        str name = words_shown(definition->states[s].name);

        if (!ways->reached[s])
            compiler_warn(compiler, compiler->state_nodes[s],
                          "no way leads from the initial state to '%.*s'; add a transition to it, "
                          "or remove it",
                          STR_ARG(name));
        else if (has_terminal && !ways->ends[s])
            compiler_warn(compiler, compiler->state_nodes[s],
                          "no way leads from '%.*s' to a terminal state: an instance in it never "
                          "ends; add a transition that leads on, or make it terminal",
                          STR_ARG(name));
    }
}

/* ---- Kinds ---- */

static bool can_end_as(const struct definition *definition, const struct machine_ways *ways,
                       enum terminal_kind kind)
{
    for (uint32_t s = 0; s < definition->state_count; s++)
        if (ways->reached[s] && definition->states[s].terminal == kind)
            return true;
    return false;
}

/* The first entry of `terminal_kinds` with this kind, or NULL. */
static const struct node *find_kind(const struct compiler *compiler, enum terminal_kind kind)
{
    const struct node *kinds = node_find(compiler->document, "terminal_kinds");

    for (const struct node *node = kinds ? kinds->first : NULL; node; node = node->next)
        if (str_is(node->text, terminal_kind_name(kind)))
            return node;
    return NULL;
}

/* Who waits for failures or cancels of this machine waits in vain. */
static void check_kinds(struct compiler *compiler, const struct machine_ways *ways)
{
    for (enum terminal_kind kind = TERMINAL_SUCCESS; kind <= TERMINAL_CANCEL; kind++) {
        const struct node *node = find_kind(compiler, kind);
        const struct node at_key = node ? compiler_at_key(node) : (struct node){ 0 };

        if (node && !can_end_as(compiler->definition, ways, kind))
            compiler_warn(compiler, &at_key,
                          "no instance can end with the kind %s: no way leads to '%.*s'; add a "
                          "transition to it, or remove it",
                          terminal_kind_name(kind), STR_ARG(words_shown(node->key)));
    }
}

/* ---- Guards ---- */

/* Does an earlier transition name this guard, or one that can be fired? */
static bool is_told_or_used(const struct compiler *compiler, const struct machine_ways *ways,
                            uint32_t at)
{
    for (uint32_t i = 0; i < compiler->declared_count; i++) {
        const struct declared *other = &compiler->declared[i];
        bool is_reached =
            other->from == STATE_ANY || (other->from != STATE_NONE && ways->reached[other->from]);

        if (other->guard.data && str_eq(other->guard, compiler->declared[at].guard) &&
            (i < at || is_reached))
            return true;
    }
    return false;
}

/* Warn of a guard whose transition can never be taken. */
static void check_guards(struct compiler *compiler, const struct machine_ways *ways)
{
    for (uint32_t i = 0; i < compiler->declared_count; i++) {
        const struct declared *declared = &compiler->declared[i];

        if (declared->guard.data && !is_told_or_used(compiler, ways, i))
            compiler_warn(compiler, declared->node,
                          "the guard '%.*s' is never asked for: no way leads to '%.*s'; add a "
                          "transition to that state, or remove this one",
                          STR_ARG(words_shown(declared->guard)),
                          STR_ARG(words_shown(compiler->definition->states[declared->from].name)));
    }
}

/* ---- Cancelling ---- */

/* As many names as a message has room for; the rest is counted. */
struct name_list {
    char text[160];
    size_t size;
    uint32_t count, left_out;
};

static void list_add(struct name_list *list, str name)
{
    const char *comma = list->count > 0 ? ", " : "";

    list->count++;
    if (list->left_out > 0 ||
        list->size + name.size + sizeof ", '' and 4096 more" > sizeof list->text)
        list->left_out++;
    else
        list->size += (size_t)snprintf(list->text + list->size, sizeof list->text - list->size,
                                       "%s'%.*s'", comma, STR_ARG(name));
}

/* Only a machine that knows cancelling is asked where it does not; and in one warning. */
static void check_cancel(struct compiler *compiler, const struct machine_ways *ways)
{
    const struct definition *definition = compiler->definition;
    struct name_list list = { 0 };
    uint32_t first = 0;

    if (!can_end_as(definition, ways, TERMINAL_CANCEL))
        return;
    for (uint32_t s = 0; s < definition->state_count; s++) {
        if (definition->states[s].terminal != TERMINAL_NOT || !ways->reached[s] ||
            definition_find_cancel(definition, s))
            continue;
        first = list.count > 0 ? first : s;
        list_add(&list, words_shown(definition->states[s].name));
    }
    if (list.left_out > 0)
        (void)snprintf(list.text + list.size, sizeof list.text - list.size, " and %u more",
                       list.left_out);
    if (list.count > 0)
        compiler_warn(compiler, compiler->state_nodes[first],
                      "an instance cannot be cancelled in every state; if it should be, add a "
                      "transition without a guard to a cancel state from %s",
                      list.text);
}

pawl_status compiler_check(struct compiler *compiler)
{
    struct machine_ways ways = { 0 };

    if (compiler->is_inline)
        return PAWL_OK;
    TRY(mark(compiler, false, &ways.reached));
    TRY(mark(compiler, true, &ways.ends));
    check_ways(compiler, &ways);
    check_kinds(compiler, &ways);
    check_guards(compiler, &ways);
    check_cancel(compiler, &ways);
    return compiler_check_alike(compiler);
}
