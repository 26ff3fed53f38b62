/* alike.c - names that differ only in case, blanks, hyphens or underscores. They are different
 * names (D13), and hardly ever meant to be. */
#include "machine/machine_int.h"
#include "model/words.h"

struct named {
    str text;
    const struct node *node;
};

struct names {
    const char *what; /* "guard" */
    struct named *items;
    uint32_t *order, count;
};

static int compare_names(const void *context, uint32_t a, uint32_t b)
{
    const struct named *items = context;
    int order = words_compare_loosely(items[a].text, items[b].text);

    if (order == 0)
        order = str_compare(items[a].text, items[b].text);
    return order != 0 ? order : a < b ? -1 : a > b;
}

/* Told at the one that was written later. */
static void warn(struct compiler *compiler, const struct names *names, uint32_t a, uint32_t b)
{
    const struct named *first = &names->items[a < b ? a : b];
    const struct named *second = &names->items[a < b ? b : a];

    compiler_warn(compiler, second->node,
                  "%s '%.*s' is another one than '%.*s' at line %u, column %u; if they should be "
                  "the same, write them alike",
                  names->what, STR_ARG(words_shown(second->text)),
                  STR_ARG(words_shown(first->text)), first->node->line, first->node->column);
}

/* In this order, equal names stand together, the first one first, beside those like them. */
static void check(struct compiler *compiler, const struct names *names)
{
    uint32_t group = 0; /* the first of the present name */

    sort_indices(names->order, names->count, compare_names, names->items);
    for (uint32_t i = 1; i < names->count; i++) {
        str before = names->items[names->order[group]].text;
        str now = names->items[names->order[i]].text;

        if (str_eq(before, now))
            continue;
        if (words_compare_loosely(before, now) == 0)
            warn(compiler, names, names->order[group], names->order[i]);
        group = i;
    }
}

static void add(struct names *names, str text, const struct node *node)
{
    names->items[names->count] = (struct named){ text, node };
    names->order[names->count] = names->count;
    names->count++;
}

static void check_states(struct compiler *compiler, struct names *names)
{
    names->what = "state";
    names->count = 0;
    for (uint32_t s = 0; s < compiler->definition->state_count; s++)
        add(names, compiler->definition->states[s].name, compiler->state_nodes[s]);
    check(compiler, names);
}

static void check_member(struct compiler *compiler, struct names *names, const char *key)
{
    names->what = key;
    names->count = 0;
    for (uint32_t i = 0; i < compiler->declared_count; i++) {
        const struct node *node = node_find(compiler->declared[i].node, key);

        if (node && node->kind == NODE_STRING)
            add(names, node->text, node);
    }
    check(compiler, names);
}

pawl_status compiler_check_alike(struct compiler *compiler)
{
    struct arena *arena = &compiler->scope->arena;
    uint32_t states = compiler->definition->state_count, transitions = compiler->declared_count;
    uint32_t most = states > transitions ? states : transitions;
    struct names names = { 0 };

    names.items = ARENA_ARRAY(arena, struct named, most);
    names.order = ARENA_ARRAY(arena, uint32_t, most);
    TRY_MEMORY(compiler->scope, !arena->failed);
    check_states(compiler, &names);
    check_member(compiler, &names, "action");
    check_member(compiler, &names, "guard");
    return PAWL_OK;
}
