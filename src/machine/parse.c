/* parse.c - a document becomes a machine: its keys, its states, their kinds. */
#include "base/limits.h"
#include "machine/machine_int.h"
#include "model/input_schema.h"
#include "model/mcp_key.h"
#include "model/retention_key.h"
#include "model/words.h"

/* What makes a definition something else than a machine. */
static const char *const flow_keys[] = { "steps", "do", "dopar", "try", NULL };

void compiler_check_keys(struct compiler *compiler, const struct node *object,
                         const struct known_key *keys, const char *path)
{
    const struct known_key *const tables[] = { keys, NULL };

    for (const struct node *node = object->first; node && !compiler->is_inline; node = node->next) {
        const struct node at_key = compiler_at_key(node);
        char hint[KEY_HINT_SIZE] = "";

        if (keys_have(keys, node->key))
            continue;
        if (compiler->report.error_count < FINDINGS_MAX) /* a hint that is not shown costs time */
            keys_hint(tables, node->key, hint);
        compiler_error(compiler, &at_key, "unknown key '%s%.*s'; %s", path,
                       STR_ARG(words_shown(node->key)), hint);
    }
}

bool compiler_read_name(struct compiler *compiler, const struct node *node, const char *what,
                        str *out)
{
    if (node->kind != NODE_STRING) {
        compiler_error(compiler, node, "%s: expected a string, found %s", what,
                       node_kind_name(node->kind));
    } else if (str_is_blank(node->text)) {
        compiler_error(compiler, node,
                       "%s: expected at least one character that is not white space, found none",
                       what);
    } else if (node->text.size > LIMIT_ACTION) {
        compiler_error(compiler, node, "%s: expected at most %d bytes, found %zu", what,
                       LIMIT_ACTION, node->text.size);
    } else {
        *out = node->text;
        return true;
    }
    return false;
}

static int compare_names(const void *context, uint32_t a, uint32_t b)
{
    const struct state *states = context;
    int order = str_compare(states[a].name, states[b].name);

    return order != 0 ? order : a < b ? -1 : a > b;
}

static uint32_t find_state(const struct compiler *compiler, str name)
{
    const struct definition *definition = compiler->definition;
    uint32_t low = 0, high = definition->state_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2, state = compiler->by_name[middle];
        int order = str_compare(definition->states[state].name, name);

        if (order == 0)
            return state;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return STATE_NONE;
}

uint32_t compiler_read_state(struct compiler *compiler, const struct node *node, const char *what)
{
    uint32_t state = STATE_NONE;
    str name;

    if (!compiler_read_name(compiler, node, what, &name))
        return STATE_NONE;
    state = find_state(compiler, name);
    if (state == STATE_NONE)
        compiler_error(compiler, node,
                       "%s: expected one of 'states', found '%.*s'; declare it there or correct "
                       "the name",
                       what, STR_ARG(words_shown(name)));
    return state;
}

/* The array under `key`, or NULL and an error if it is missing or something else. */
static const struct node *find_array(struct compiler *compiler, const char *key,
                                     const char *purpose)
{
    const struct node *node = node_find(compiler->document, key);

    if (!node)
        compiler_error(compiler, compiler->document, "'%s' is missing: expected %s", key, purpose);
    else if (node->kind != NODE_ARRAY)
        compiler_error(compiler, node, "'%s': expected %s, found %s", key, purpose,
                       node_kind_name(node->kind));
    return node && node->kind == NODE_ARRAY ? node : NULL;
}

static void read_state_name(struct compiler *compiler, const struct node *node)
{
    struct definition *definition = compiler->definition;
    uint32_t index = definition->state_count;
    str name;

    if (!compiler_read_name(compiler, node, "a state", &name))
        return;
    if (!compiler->is_inline && str_is(name, "*"))
        compiler_error(compiler, node,
                       "a state of a registered definition cannot be called '*', "
                       "which stands for every state; call it something else");
    definition->states[index].name = name;
    compiler->state_nodes[index] = node;
    compiler->by_name[index] = index;
    definition->state_count++;
}

static pawl_status read_states(struct compiler *compiler)
{
    const struct node *states = find_array(compiler, "states", "an array with every state's name");
    struct definition *definition = compiler->definition;
    struct arena *arena = &compiler->scope->arena;

    if (states && (states->count == 0 || states->count > LIMIT_STATES)) {
        compiler_error(compiler, states, "'states': expected 1 to %d names, found %u", LIMIT_STATES,
                       states->count);
        states = NULL;
    }
    if (!states)
        return PAWL_OK;
    definition->states = ARENA_ARRAY(arena, struct state, states->count);
    compiler->state_nodes = ARENA_ARRAY(arena, const struct node *, states->count);
    compiler->by_name = ARENA_ARRAY(arena, uint32_t, states->count);
    TRY_MEMORY(compiler->scope, !arena->failed);
    for (const struct node *node = states->first; node; node = node->next)
        read_state_name(compiler, node);
    sort_indices(compiler->by_name, definition->state_count, compare_names, definition->states);
    return PAWL_OK;
}

static void check_names(struct compiler *compiler)
{
    const struct definition *definition = compiler->definition;
    const uint32_t *by_name = compiler->by_name;

    for (uint32_t i = 1; i < definition->state_count; i++) {
        const struct state *state = &definition->states[by_name[i]];
        const struct node *first = compiler->state_nodes[by_name[i - 1]];

        if (str_eq(definition->states[by_name[i - 1]].name, state->name))
            compiler_error(compiler, compiler->state_nodes[by_name[i]],
                           "state '%.*s' is declared twice, first at line %u, column %u; keep one",
                           STR_ARG(words_shown(state->name)), first->line, first->column);
    }
}

static void read_terminals(struct compiler *compiler)
{
    struct state *states = compiler->definition->states;
    const struct node *terminals;

    if (!node_find(compiler->document, "terminal_states"))
        return;
    terminals = find_array(compiler, "terminal_states", "an array of names of states");
    for (const struct node *node = terminals ? terminals->first : NULL; node; node = node->next) {
        uint32_t state = compiler_read_state(compiler, node, "a terminal state");

        if (state == STATE_NONE)
            continue;
        if (states[state].terminal != TERMINAL_NOT)
            compiler_warn(compiler, node, "terminal state '%.*s' is listed twice; keep one",
                          STR_ARG(words_shown(states[state].name)));
        states[state].terminal = TERMINAL_PLAIN;
    }
}

static enum terminal_kind read_kind(struct compiler *compiler, const struct node *node)
{
    str found = node->kind == NODE_STRING ? node->text : str_of(node_kind_name(node->kind));

    for (enum terminal_kind kind = TERMINAL_SUCCESS; kind <= TERMINAL_CANCEL; kind++)
        if (node->kind == NODE_STRING && str_is(node->text, terminal_kind_name(kind)))
            return kind;
    compiler_error(compiler, node,
                   "the kind of '%.*s': expected success, failure or cancel, found '%.*s'",
                   STR_ARG(words_shown(node->key)), STR_ARG(words_shown(found)));
    return TERMINAL_PLAIN;
}

static void set_kind(struct compiler *compiler, const struct node *node)
{
    uint32_t state = find_state(compiler, node->key);
    struct state *states = compiler->definition->states;
    str name = words_shown(node->key);

    if (state == STATE_NONE)
        compiler_error(compiler, node,
                       "'terminal_kinds' gives a kind to '%.*s', which is not one of 'states'; "
                       "declare it there or correct the name",
                       STR_ARG(name));
    else if (states[state].terminal == TERMINAL_NOT)
        compiler_error(compiler, node,
                       "'terminal_kinds' gives a kind to '%.*s', which is not terminal; list it "
                       "in 'terminal_states' or leave its kind out",
                       STR_ARG(name));
    else if (node->kind != NODE_NULL)
        states[state].terminal = read_kind(compiler, node);
}

static void read_kinds(struct compiler *compiler)
{
    const struct node *kinds = node_find(compiler->document, "terminal_kinds");

    if (!kinds || kinds->kind == NODE_NULL)
        return;
    if (kinds->kind != NODE_OBJECT)
        compiler_error(compiler, kinds,
                       "'terminal_kinds': expected an object from terminal state to kind, found %s",
                       node_kind_name(kinds->kind));
    else
        for (const struct node *node = kinds->first; node; node = node->next)
            set_kind(compiler, node);
}

/* A kind is the author's word, never guessed from a name (A14): without it consumers could
 * not tell a failure from a cancel. A bare inline machine may do without (X5). */
static void check_every_kind(struct compiler *compiler)
{
    const struct definition *definition = compiler->definition;

    for (uint32_t s = 0; s < definition->state_count && !compiler->is_inline; s++)
        if (definition->states[s].terminal == TERMINAL_PLAIN)
            compiler_error(compiler, compiler->state_nodes[s],
                           "terminal state '%.*s' has no kind; add it to 'terminal_kinds' as "
                           "success, failure or cancel",
                           STR_ARG(words_shown(definition->states[s].name)));
}

static void read_initial(struct compiler *compiler)
{
    const struct node *node = node_find(compiler->document, "initial_state");
    struct definition *definition = compiler->definition;
    uint32_t state;

    if (!node) {
        compiler_error(compiler, compiler->document,
                       "'initial_state' is missing: expected the name of one of 'states'");
        return;
    }
    state = compiler_read_state(compiler, node, "'initial_state'");
    if (state == STATE_NONE)
        return;
    definition->initial = state;
    if (definition->states[state].terminal != TERMINAL_NOT)
        compiler_error(compiler, node,
                       "'initial_state': expected a state that is not terminal, found '%.*s'; "
                       "its instances would have ended before they began",
                       STR_ARG(words_shown(definition->states[state].name)));
}

/* What only a registered definition promises: a name, one kind of process, no more than we do. */
static void check_registered(struct compiler *compiler)
{
    const struct node *name = node_find(compiler->document, "name");

    if (name && (name->kind != NODE_STRING || !definition_name_is_valid(name->text)))
        compiler_error(compiler, name,
                       "'name': expected 1 to %d of A-Z a-z 0-9 . _ / -, found something else",
                       LIMIT_NAME);
    for (const char *const *key = flow_keys; *key; key++)
        if (node_find(compiler->document, *key))
            compiler_error(compiler, node_find(compiler->document, *key),
                           "'states' makes a machine and '%s' a flow; a definition is one of them",
                           *key);
}

static void report_schema(void *context, const struct node *at, const char *message)
{
    compiler_error(context, at, "%s", message);
}

/* What an instance may be started with. Inline the word means nothing (D12). */
static void read_input(struct compiler *compiler)
{
    const struct node *input = node_find(compiler->document, "input");

    if (!input || compiler->is_inline)
        return;
    input_schema_check(input, report_schema, compiler);
    compiler->definition->input_schema = input;
    compiler->definition->input_text = node_keep(input, &compiler->scope->arena);
    if (!compiler->definition->input_text.data)
        compiler->scope->arena.failed = true;
}

/* Everything as it was written. Where the states themselves are missing, what refers to them
 * is not even looked at: its errors would only hide the one that matters. */
static pawl_status read_document(struct compiler *compiler)
{
    const struct node *document = compiler->document;

    if (document->kind != NODE_OBJECT) {
        compiler_error(compiler, document,
                       "expected an object with states, initial_state and transitions, found %s",
                       node_kind_name(document->kind));
        return PAWL_OK;
    }
    if (!compiler->is_inline)
        check_registered(compiler);
    compiler_check_keys(compiler, document, machine_keys, "");
    read_input(compiler);
    if (!compiler->is_inline && node_find(document, "mcp"))
        mcp_key_check(node_find(document, "mcp"), report_schema, compiler);
    if (!compiler->is_inline && node_find(document, "retention"))
        retention_key_check(node_find(document, "retention"), report_schema, compiler);
    TRY(read_states(compiler));
    if (compiler->definition->state_count == 0)
        return PAWL_OK;
    check_names(compiler);
    read_terminals(compiler);
    read_kinds(compiler);
    check_every_kind(compiler);
    read_initial(compiler);
    return compiler_read_transitions(compiler);
}

pawl_status machine_compile(struct scope *scope, const struct node *document, bool is_inline,
                            struct findings *findings, struct definition **out)
{
    struct definition *definition = ARENA_NEW(&scope->arena, struct definition);
    struct compiler compiler = {
        .scope = scope,
        .report = { scope, findings, .is_inline = is_inline },
        .document = document,
        .is_inline = is_inline,
        .definition = definition,
    };

    TRY_MEMORY(scope, definition);
    definition->kind = KIND_MACHINE;
    definition->compiler = COMPILER_NUMBER;
    TRY(read_document(&compiler));
    if (compiler.report.error_count == 0)
        TRY(compiler_expand(&compiler));
    if (compiler.report.error_count == 0)
        TRY(compiler_read_deadlines(&compiler));
    if (compiler.report.error_count == 0)
        compiler_check_on_end(&compiler);
    if (compiler.report.error_count == 0)
        TRY(compiler_check(&compiler));
    TRY_MEMORY(scope, !scope->arena.failed);
    if (compiler.report.error_count > 0)
        return scope->error.status;
    *out = definition;
    return PAWL_OK;
}
