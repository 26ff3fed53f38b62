/* transitions.c - the transitions as they were written, and no two for the same action. */
#include "base/limits.h"
#include "machine/machine_int.h"
#include "model/words.h"

/* The member that is written instead of `key`, or NULL. */
static const struct node *find_mistake(const struct node *transition, const char *key)
{
    for (const struct node *node = transition->first; node; node = node->next) {
        const char *meant = keys_meant(transition_keys, node->key);

        if (meant && strcmp(meant, key) == 0)
            return node;
    }
    return NULL;
}

/* The member under `key`, or NULL and an error. A registered definition has an error at a key that
 * is written instead of it already; one is enough. */
static const struct node *find_member(struct compiler *compiler, const struct node *transition,
                                      const char *key)
{
    const struct node *node = node_find(transition, key);
    const struct node *mistake = node ? NULL : find_mistake(transition, key);

    if (mistake && compiler->is_inline)
        compiler_error(compiler, transition,
                       "a transition has no '%s'; did you mean it by '%.*s'?", key,
                       STR_ARG(words_shown(mistake->key)));
    else if (!node && !mistake)
        compiler_error(compiler, transition,
                       "a transition has no '%s'; it needs from_state, action and to_state", key);
    return node;
}

static uint32_t read_from(struct compiler *compiler, const struct node *transition)
{
    const struct node *node = find_member(compiler, transition, "from_state");
    const struct state *states = compiler->definition->states;
    uint32_t state;

    if (!node)
        return STATE_NONE;
    if (!compiler->is_inline && node->kind == NODE_STRING && str_is(node->text, "*"))
        return STATE_ANY;
    state = compiler_read_state(compiler, node, "'from_state'");
    if (state != STATE_NONE && states[state].terminal != TERMINAL_NOT)
        compiler_error(compiler, node,
                       "a transition leaves '%.*s', which is terminal; nothing may leave a "
                       "terminal state",
                       STR_ARG(words_shown(states[state].name)));
    return state;
}

static bool read_requires_reason(struct compiler *compiler, const struct node *transition)
{
    const struct node *node = node_find(transition, "requires_reason");

    if (!node || node->kind == NODE_NULL)
        return false;
    if (node->kind != NODE_BOOL)
        compiler_error(compiler, node, "'requires_reason': expected true or false, found %s",
                       node_kind_name(node->kind));
    return node->truth;
}

/* An engine's transition is fired by a deadline, or by what was started: on_end.c. */
static bool read_by(struct compiler *compiler, const struct node *transition)
{
    const struct node *node = node_find(transition, "by");

    if (!node || node->kind == NODE_NULL)
        return false;
    if (node->kind != NODE_STRING ||
        (!str_is(node->text, "caller") && !str_is(node->text, "engine")))
        compiler_error(compiler, node, "'by': expected caller or engine, found %.*s",
                       STR_ARG(node->kind == NODE_STRING ? words_shown(node->text)
                                                         : str_of(node_kind_name(node->kind))));
    return node->kind == NODE_STRING && str_is(node->text, "engine");
}

/* "order" or "order@2": whether there is one is seen when it is started. */
static bool read_started(struct compiler *compiler, const struct node *starts)
{
    const struct node *node = node_find(starts, "definition");
    str name, started;
    uint32_t version;

    if (!node)
        compiler_error(compiler, starts,
                       "'starts': expected {definition, input, on_end}, found no 'definition'");
    else if (!compiler_read_name(compiler, node, "'definition'", &name))
        return false;
    else if (reference_split(name, &started, &version) && definition_name_is_valid(started))
        return true;
    else
        compiler_error(compiler, node, "'definition': expected name or name@version, found '%.*s'",
                       STR_ARG(words_shown(name)));
    return false;
}

/* What is started gets what is given here, and beside it `event`: what has happened. */
static bool check_given(struct compiler *compiler, const struct node *given)
{
    if (!given || given->kind == NODE_NULL)
        return true;
    if (given->kind != NODE_OBJECT)
        compiler_error(compiler, given, "'input': expected an object, found %s",
                       node_kind_name(given->kind));
    else if (node_find(given, "event"))
        compiler_error(compiler, node_find(given, "event"),
                       "'input': 'event' is filled in when it is started; take another name");
    else
        return true;
    return false;
}

static void note_reference(struct compiler *compiler, const struct node *transition,
                           const struct node *definition)
{
    const struct node *action = node_find(transition, "action");

    if (compiler->report.findings && !compiler->is_inline)
        findings_refer(compiler->report.findings, compiler->scope,
                       &(struct reference){ .owner = "action",
                                            .key = "starts",
                                            .of = action ? action->text : STR(""),
                                            .name = definition->text,
                                            .line = definition->line,
                                            .column = definition->column });
}

static void read_starts(struct compiler *compiler, const struct node *transition, str *out)
{
    const struct node *node = node_find(transition, "starts"), *given = node_find(node, "input");
    struct buf text;

    if (!node || node->kind == NODE_NULL)
        return;
    if (node->kind != NODE_OBJECT) {
        compiler_error(compiler, node, "'starts': expected {definition, input, on_end}, found %s",
                       node_kind_name(node->kind));
        return;
    }
    compiler_check_keys(compiler, node, starts_keys, "starts.");
    if (!read_started(compiler, node) || !check_given(compiler, given))
        return;
    note_reference(compiler, transition, node_find(node, "definition"));
    buf_init(&text, compiler->scope->arena.heap, LIMIT_TEXT);
    json_open(&text, '{');
    json_put_str(&text, "definition", node_find(node, "definition")->text);
    if (given && given->kind == NODE_OBJECT) {
        json_key(&text, "input");
        node_print(given, &text);
    }
    compiler_print_on_end(node, &text);
    json_close(&text, '}');
    *out = buf_take(&text, &compiler->scope->arena);
}

static void read_transition(struct compiler *compiler, const struct node *node,
                            struct declared *out)
{
    const struct node *member;

    *out = (struct declared){ .node = node, .from = STATE_NONE, .to = STATE_NONE };
    if (node->kind != NODE_OBJECT) {
        compiler_error(compiler, node,
                       "a transition: expected an object with from_state, action and to_state, "
                       "found %s",
                       node_kind_name(node->kind));
        return;
    }
    out->from = read_from(compiler, node);
    member = find_member(compiler, node, "action");
    if (member)
        (void)compiler_read_name(compiler, member, "'action'", &out->action);
    member = find_member(compiler, node, "to_state");
    if (member)
        out->to = compiler_read_state(compiler, member, "'to_state'");
    member = node_find(node, "guard");
    if (member && member->kind != NODE_NULL)
        (void)compiler_read_name(compiler, member, "'guard'", &out->guard);
    out->requires_reason = read_requires_reason(compiler, node);
    out->by_engine = read_by(compiler, node);
    read_starts(compiler, node, &out->starts);
    compiler_check_keys(compiler, node, transition_keys, "");
}

static int compare_exits(const void *context, uint32_t a, uint32_t b)
{
    const struct declared *declared = context;
    int order;

    if (declared[a].from != declared[b].from)
        return declared[a].from < declared[b].from ? -1 : 1;
    order = str_compare(declared[a].action, declared[b].action);
    return order != 0 ? order : a < b ? -1 : a > b;
}

/* Twice the same (from, action) leaves open what firing it means, even if both say the same. */
static void check_unique(struct compiler *compiler)
{
    for (uint32_t i = 1; i < compiler->declared_count; i++) {
        const struct declared *first = &compiler->declared[compiler->by_exit[i - 1]];
        const struct declared *second = &compiler->declared[compiler->by_exit[i]];

        if (second->from == STATE_NONE || !second->action.data || first->from != second->from ||
            !str_eq(first->action, second->action))
            continue;
        compiler_error(compiler, second->node,
                       "'%.*s' is declared twice for the same from_state, first at line %u, "
                       "column %u; keep one",
                       STR_ARG(words_shown(second->action)), first->node->line,
                       first->node->column);
    }
}

static pawl_status read_all(struct compiler *compiler, const struct node *transitions)
{
    struct arena *arena = &compiler->scope->arena;
    uint32_t count = 0;

    compiler->declared = ARENA_ARRAY(arena, struct declared, transitions->count);
    compiler->by_exit = ARENA_ARRAY(arena, uint32_t, transitions->count);
    TRY_MEMORY(compiler->scope, !arena->failed);
    for (const struct node *node = transitions->first; node; node = node->next, count++) {
        read_transition(compiler, node, &compiler->declared[count]);
        compiler->by_exit[count] = count;
    }
    compiler->declared_count = count;
    sort_indices(compiler->by_exit, count, compare_exits, compiler->declared);
    check_unique(compiler);
    return PAWL_OK;
}

pawl_status compiler_read_transitions(struct compiler *compiler)
{
    const struct node *transitions = node_find(compiler->document, "transitions");

    if (!transitions)
        compiler_error(compiler, compiler->document,
                       "'transitions' is missing: expected an array, which may be empty");
    else if (transitions->kind != NODE_ARRAY)
        compiler_error(compiler, transitions, "'transitions': expected an array, found %s",
                       node_kind_name(transitions->kind));
    else if (transitions->count > LIMIT_TRANSITIONS)
        compiler_error(compiler, transitions, "'transitions': expected at most %d, found %u",
                       LIMIT_TRANSITIONS, transitions->count);
    else
        return read_all(compiler, transitions);
    return PAWL_OK;
}
