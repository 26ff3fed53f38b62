/* on_end.c - `starts: {on_end: {completed, failed, cancelled}}`: the actions that the end of what a
 * transition started fires, and who else fires what is `by: engine`. */
#include "machine/machine_int.h"
#include "model/words.h"

static const struct node *on_end_of(const struct declared *declared)
{
    const struct node *starts =
        declared->node->kind == NODE_OBJECT ? node_find(declared->node, "starts") : NULL;

    return starts && starts->kind == NODE_OBJECT ? node_find(starts, "on_end") : NULL;
}

/* In the order of the keys, whatever the order in the document. */
void compiler_print_on_end(const struct node *starts, struct buf *out)
{
    const struct node *on_end = node_find(starts, "on_end");

    if (!on_end || on_end->kind != NODE_OBJECT || on_end->count == 0)
        return;
    json_put_open(out, "on_end", '{');
    for (const struct known_key *key = on_end_keys; key->word; key++)
        json_opt_str(out, key->word, node_text(on_end, key->word));
    json_close(out, '}');
}

/* No caller is there to assert a guard. A reason is given: what has ended, and how. */
static void check_action(struct compiler *compiler, const struct node *node)
{
    const struct definition *definition = compiler->definition;
    const struct transition *found = NULL;
    str name;

    if (!compiler_read_name(compiler, node, "'on_end'", &name))
        return;
    for (uint32_t i = 0; i < definition->transition_count; i++) {
        if (!str_eq(definition->transitions[i].action, name))
            continue;
        found = &definition->transitions[i];
        if (!found->guard.data)
            continue;
        compiler_error(compiler, node,
                       "'on_end': '%.*s' from '%.*s' has a guard, which only a caller can assert; "
                       "use an action without",
                       STR_ARG(words_shown(name)),
                       STR_ARG(words_shown(definition->states[found->from].name)));
        return;
    }
    if (!found)
        compiler_error(compiler, node,
                       "'on_end': no transition of this machine has the action '%.*s'; declare "
                       "one or correct the name",
                       STR_ARG(words_shown(name)));
}

static void check_on_end(struct compiler *compiler, const struct declared *declared)
{
    const struct node *on_end = on_end_of(declared);
    const struct state *to = &compiler->definition->states[declared->to];

    if (!on_end || on_end->kind == NODE_NULL)
        return;
    if (on_end->kind != NODE_OBJECT || on_end->count == 0) {
        compiler_error(compiler, on_end,
                       "'on_end': expected {completed, failed, cancelled}, each an action, found "
                       "%s",
                       on_end->kind == NODE_OBJECT ? "none" : node_kind_name(on_end->kind));
        return;
    }
    compiler_check_keys(compiler, on_end, on_end_keys, "starts.on_end.");
    if (to->terminal != TERMINAL_NOT)
        compiler_error(compiler, on_end,
                       "'on_end': this transition leads to '%.*s', which is terminal; nothing can "
                       "be fired there",
                       STR_ARG(words_shown(to->name)));
    for (const struct node *node = on_end->first; node; node = node->next)
        if (keys_have(on_end_keys, node->key))
            check_action(compiler, node);
}

static bool is_on_end(const struct compiler *compiler, str action)
{
    for (uint32_t i = 0; i < compiler->declared_count; i++) {
        const struct node *on_end = on_end_of(&compiler->declared[i]);

        for (const struct node *node = on_end ? on_end->first : NULL; node; node = node->next)
            if (node->kind == NODE_STRING && str_eq(node->text, action))
                return true;
    }
    return false;
}

/* What only the engine may fire, and nothing makes it fire. */
static void check_by_engine(struct compiler *compiler, const struct declared *declared)
{
    const struct definition *definition = compiler->definition;
    bool is_fired = is_on_end(compiler, declared->action);

    for (uint32_t i = 0; i < definition->deadline_count && !is_fired; i++)
        is_fired = str_eq(definition->deadlines[i].name, declared->action);
    if (!is_fired)
        compiler_warn(compiler, node_find(declared->node, "by"),
                      "nothing ever fires '%.*s': it is 'by: engine', and neither a deadline nor "
                      "an 'on_end' names it",
                      STR_ARG(words_shown(declared->action)));
}

void compiler_check_on_end(struct compiler *compiler)
{
    for (uint32_t i = 0; i < compiler->declared_count; i++) {
        check_on_end(compiler, &compiler->declared[i]);
        if (compiler->declared[i].by_engine)
            check_by_engine(compiler, &compiler->declared[i]);
    }
}
