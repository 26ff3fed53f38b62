/* definition_load.c - the way back from the canonical text.
 *
 * The text is read in an arena of its own: a tree of nodes is ten times the definition, and
 * a definition lives as long as the engine. */
#include "base/limits.h"
#include "base/node_own.h"
#include "model/definition.h"
#include "model/input_schema.h"

#define DEADLINE_MAX_MS                                                                            \
    (INT64_C(40000) * 24 * 3600 * 1000) /* above what a duration can be: no sum overflows */

struct loading {
    struct scope *scope; /* the definition's */
    const struct node *document;
    struct definition *definition;
};

static pawl_status fail_damaged(struct scope *scope, const char *what)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the store holds a compiled definition that is damaged: %s; restore it from "
                      "a backup, or look closer with 'pawl verify'",
                      what);
}

/* A copy in the definition's arena; false if it is no string. No memory shows in the arena. */
static bool read_text(const struct loading *loading, const struct node *node, str *out)
{
    if (!node || node->kind != NODE_STRING)
        return false;
    *out = arena_str(&loading->scope->arena, node->text);
    return true;
}

bool terminal_kind_read(str name, enum terminal_kind *out)
{
    for (enum terminal_kind kind = TERMINAL_PLAIN; kind <= TERMINAL_CANCEL; kind++) {
        const char *known = terminal_kind_name(kind);

        if (name.data && str_is(name, known ? known : "plain")) {
            *out = kind;
            return true;
        }
    }
    return false;
}

static pawl_status load_states(struct loading *loading)
{
    struct definition *definition = loading->definition;
    const struct node *states = node_find(loading->document, "states");
    struct state *state;

    if (!states || states->kind != NODE_ARRAY || states->count == 0)
        return fail_damaged(loading->scope, "it has no states");
    definition->states = ARENA_ARRAY(&loading->scope->arena, struct state, states->count);
    TRY_MEMORY(loading->scope, definition->states);
    state = definition->states;
    for (const struct node *node = states->first; node; node = node->next, state++)
        if (!read_text(loading, node_find(node, "name"), &state->name) ||
            (node_find(node, "terminal") &&
             !terminal_kind_read(node_text(node, "terminal"), &state->terminal)))
            return fail_damaged(loading->scope, "a state is not one");
    definition->state_count = states->count;
    if (!node_to_u32(node_find(loading->document, "initial"), UINT32_MAX, &definition->initial) ||
        definition->initial >= definition->state_count)
        return fail_damaged(loading->scope, "the initial state is not one of its states");
    return PAWL_OK;
}

static bool load_transition(const struct loading *loading, const struct node *node,
                            struct transition *out)
{
    const struct definition *definition = loading->definition;
    const struct node *guard = node_find(node, "guard"), *by = node_find(node, "by");
    const struct node *reason = node_find(node, "requires_reason");
    const struct node *starts = node_find(node, "starts");
    const struct node *started = node_find(starts, "definition");

    if (starts && (!started || started->kind != NODE_STRING))
        return false;
    if (!node_to_u32(node_find(node, "from"), UINT32_MAX, &out->from) ||
        out->from >= definition->state_count)
        return false;
    if (!node_to_u32(node_find(node, "to"), UINT32_MAX, &out->to) ||
        out->to >= definition->state_count)
        return false;
    if (definition->states[out->from].terminal != TERMINAL_NOT)
        return false;
    if (!read_text(loading, node_find(node, "action"), &out->action))
        return false;
    if (guard && !read_text(loading, guard, &out->guard))
        return false;
    if ((reason && reason->kind != NODE_BOOL) || (by && !str_is(by->text, "engine")))
        return false;
    out->requires_reason = reason && reason->truth;
    out->starts = starts ? starts->raw : STR_NONE;
    out->by_engine = by != NULL;
    return true;
}

static pawl_status load_transitions(struct loading *loading)
{
    struct definition *definition = loading->definition;
    const struct node *transitions = node_find(loading->document, "transitions");
    struct transition *transition;

    if (!transitions || transitions->kind != NODE_ARRAY)
        return fail_damaged(loading->scope, "it has no transitions");
    transition = ARENA_ARRAY(&loading->scope->arena, struct transition, transitions->count);
    TRY_MEMORY(loading->scope, transition);
    definition->transitions = transition;
    definition->transition_count = transitions->count;
    for (const struct node *node = transitions->first; node; node = node->next, transition++)
        if (!load_transition(loading, node, transition))
            return fail_damaged(loading->scope, "a transition is not one");
    return PAWL_OK;
}

static bool load_deadline(const struct definition *definition, const struct node *node,
                          struct deadline *out)
{
    const struct node *after = node_find(node, "after");
    const struct transition *transition;

    if (!node_to_u32(node_find(node, "state"), UINT32_MAX, &out->state) ||
        !node_to_u32(node_find(node, "transition"), UINT32_MAX, &out->transition) ||
        out->transition >= definition->transition_count)
        return false;
    transition = &definition->transitions[out->transition];
    out->name = transition->action;
    return transition->from == out->state && !transition->guard.data &&
           !transition->requires_reason && after && node_to_i64(after, &out->after_ms) &&
           out->after_ms > 0 && out->after_ms <= DEADLINE_MAX_MS;
}

/* Machines alone have them, and most have none. */
static pawl_status load_deadlines(struct loading *loading)
{
    struct definition *definition = loading->definition;
    const struct node *deadlines = node_find(loading->document, "deadlines");
    struct deadline *deadline;

    if (!deadlines)
        return PAWL_OK;
    if (deadlines->kind != NODE_ARRAY || deadlines->count == 0 ||
        deadlines->count > LIMIT_DEADLINES || definition->kind != KIND_MACHINE)
        return fail_damaged(loading->scope, "its deadlines are not a list of deadlines");
    deadline = ARENA_ARRAY(&loading->scope->arena, struct deadline, deadlines->count);
    TRY_MEMORY(loading->scope, deadline);
    definition->deadlines = deadline;
    definition->deadline_count = deadlines->count;
    for (const struct node *node = deadlines->first; node; node = node->next, deadline++)
        if (!load_deadline(definition, node, deadline))
            return fail_damaged(loading->scope, "a deadline is not one");
    return PAWL_OK;
}

static void note_defect(void *context, const struct node *at, const char *message)
{
    (void)at;
    (void)message;
    *(bool *)context = true;
}

/* The schema of the input, which lives as long as the definition. */
static pawl_status load_input(struct loading *loading)
{
    struct definition *definition = loading->definition;
    const struct node *input = node_find(loading->document, "input");
    struct node *schema;
    bool is_bad = false;

    if (!input)
        return PAWL_OK;
    if (input->kind != NODE_OBJECT || definition->kind == KIND_CODE)
        return fail_damaged(loading->scope, "the schema of its input is not an object");
    definition->input_text = arena_str(&loading->scope->arena, input->raw);
    TRY_MEMORY(loading->scope, definition->input_text.data);
    TRY(node_read_json(loading->scope, definition->input_text, &schema));
    input_schema_check(schema, note_defect, &is_bad);
    if (is_bad)
        return fail_damaged(loading->scope, "the schema of its input says what no schema may");
    definition->input_schema = schema;
    return PAWL_OK;
}

static pawl_status load_head(struct loading *loading)
{
    struct definition *definition = loading->definition;
    const struct node *plan = node_find(loading->document, "plan");

    if (!node_to_u32(node_find(loading->document, "compiler"), UINT32_MAX, &definition->compiler))
        return fail_damaged(loading->scope, "it has no compiler's number");
    if (definition->compiler == 0 || definition->compiler > COMPILER_NUMBER)
        return scope_fail(loading->scope, PAWL_STORAGE_FAILURE,
                          "a definition was compiled by compiler %u, and this version of pawl "
                          "knows 1 to %d; open the store with the version that wrote it",
                          definition->compiler, COMPILER_NUMBER);
    definition->kind = definition_kind_read(node_text(loading->document, "kind"));
    if (definition->kind == KIND_UNKNOWN)
        return fail_damaged(loading->scope, "its kind is unknown");
    if (plan)
        definition->plan_text = arena_str(&loading->scope->arena, plan->raw);
    return PAWL_OK;
}

static pawl_status load_all(struct loading *loading)
{
    TRY(load_head(loading));
    TRY(load_states(loading));
    TRY(load_transitions(loading));
    TRY(load_deadlines(loading));
    TRY(load_input(loading));
    TRY_MEMORY(loading->scope, !loading->scope->arena.failed);
    return definition_index(loading->definition, loading->scope);
}

pawl_status definition_load(struct scope *scope, str compiled, struct definition **out)
{
    struct definition *definition = ARENA_NEW(&scope->arena, struct definition);
    struct scope reading;
    struct node *document;
    pawl_status status;

    TRY_MEMORY(scope, definition);
    scope_init(&reading, scope->arena.heap, LIMIT_SCOPE);
    status = node_read_own(&reading, compiled, &document);
    if (status == PAWL_OK)
        status = load_all(&(struct loading){ scope, document, definition });
    else if (status == PAWL_NO_MEMORY)
        status = scope_no_memory(scope);
    else
        status = fail_damaged(scope, reading.error.message);
    scope_fini(&reading);
    if (status == PAWL_OK)
        *out = definition;
    return status;
}
