/* compile_tree.c - the groups of a tree and its leaves (C1-C7).
 *
 * A step without a name is called by its path: do.1.dopar.0. The tree is written down as it is
 * walked, in the form that plan_tree.c reads. */
#include "flow/compile.h"
#include <stdio.h>

/* `parent` with one more word, in the arena; data NULL: no memory. At most 64 words, because the
 * document is no deeper. */
static str path_with(struct compilation *compiler, str parent, const char *word, uint32_t index)
{
    struct buf buf;

    buf_init(&buf, compiler->scope->arena.heap, 0);
    buf_str(&buf, parent);
    if (parent.size > 0)
        buf_byte(&buf, '.');
    if (word)
        buf_str(&buf, str_of(word));
    else
        buf_u64(&buf, index);
    return compile_take(compiler, &buf);
}

static void compile_node(struct compilation *compiler, const struct node *node, str path);

/* ["do",...] or ["dopar",...]: the children of a list. */
static void compile_list(struct compilation *compiler, const struct node *list, const char *kind,
                         str path)
{
    uint32_t index = 0;

    json_open(&compiler->tree, '[');
    json_text(&compiler->tree, kind);
    if (list && list->kind != NODE_ARRAY)
        compile_error(compiler, list, "'%.*s' must be an array of steps, found %s",
                      STR_ARG(list->key), node_kind_name(list->kind));
    for (const struct node *node = list && list->kind == NODE_ARRAY ? list->first : NULL; node;
         node = node->next) {
        str name = path_with(compiler, path, NULL, index++);

        if (name.data)
            compile_node(compiler, node, name);
    }
    json_close(&compiler->tree, ']');
}

/* ["group",STEP, in front of what has a limit of its own. */
static bool open_limits(struct compilation *compiler, const struct node *group, str name)
{
    uint32_t step;

    if (!node_find(group, "timeout") && !node_find(group, "retry"))
        return false;
    step = compile_limits(compiler, group, name);
    json_open(&compiler->tree, '[');
    json_text(&compiler->tree, "group");
    json_u64(&compiler->tree, step);
    return true;
}

/* Of a try the limits are for its steps: its rescue sees what came of them. */
static void compile_try(struct compilation *compiler, const struct node *group, str parent)
{
    static const char *const parts[] = { "try", "rescue", "finally" };

    compiler->cleans = compiler->cleans || node_find(group, "finally");
    json_open(&compiler->tree, '[');
    json_text(&compiler->tree, "try");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        str path = path_with(compiler, parent, parts[i], 0);
        bool has_limits = i == 0 && open_limits(compiler, group, path);

        compile_list(compiler, node_find(group, parts[i]), "do", path);
        if (has_limits)
            json_close(&compiler->tree, ']');
    }
    json_close(&compiler->tree, ']');
}

static void compile_group(struct compilation *compiler, const struct node *group, const char *kind,
                          str parent)
{
    str path = path_with(compiler, parent, kind, 0);
    bool has_limits;

    if (strcmp(kind, "try") == 0) {
        compile_try(compiler, group, parent);
        return;
    }
    has_limits = open_limits(compiler, group, path);
    compile_list(compiler, node_find(group, kind), kind, path);
    if (has_limits)
        json_close(&compiler->tree, ']');
}

/* The keys of the group that an element is; NULL: a leaf. Two at once are an error. */
static const struct known_key *find_group(struct compilation *compiler, const struct node *node)
{
    const struct known_key *found = NULL;

    for (const struct known_key *const *group = group_keys; *group; group++) {
        const struct node *list = node_find(node, (*group)->word);

        if (list && found)
            compile_error(compiler, list,
                          "'%s' and '%s' do not go together: a group is of one kind",
                          (*group)->word, found->word);
        found = list ? *group : found;
    }
    return found;
}

/* ["select",STEP,["do",...],...]: what follows each arm. */
static void compile_arms(struct compilation *compiler, const struct node *node, uint32_t step,
                         str path)
{
    const struct step_kind *kind = compiler->steps[step].plan.kind;
    str group = path_with(compiler, path, kind->key, 0);

    json_open(&compiler->tree, '[');
    json_text(&compiler->tree, "select");
    json_u64(&compiler->tree, step);
    for (uint32_t i = 0; i < kind->arm_count(node); i++)
        compile_list(compiler, kind->arm(node, i), "do", path_with(compiler, group, NULL, i));
    json_close(&compiler->tree, ']');
}

/* Depth is bounded by the document's. */
static void compile_node(struct compilation *compiler, const struct node *node, str path)
{
    const struct known_key *const tables[] = { find_group(compiler, node), NULL };
    const struct step_kind *kind;
    uint32_t step;
    char after[32];

    if (tables[0]) {
        (void)snprintf(after, sizeof after, " beside '%s'", tables[0]->word);
        compile_tables(compiler, NULL, node, tables, "", after);
        compile_group(compiler, node, tables[0]->word, path);
        return;
    }
    step = compile_step(compiler, node, STR_NONE, path);
    if (step == STEP_NONE)
        return;
    kind = compiler->steps[step].plan.kind;
    if (kind->leads_by_arm && kind->arm_count(node) > 0)
        compile_arms(compiler, node, step, path);
    else
        json_u64(&compiler->tree, step);
}

/* It has no path: without a name it is called by its tool, or by its kind. */
static str leaf_name(const struct node *leaf)
{
    const struct node *tool = node_find(leaf, "action");

    if (!tool)
        tool = node_find(leaf, "tool");
    if (tool && tool->kind == NODE_STRING)
        return tool->text;
    for (uint32_t i = 0; i < STEP_KIND_COUNT; i++)
        if (!step_kinds[i]->is_tool && step_kinds[i]->key && node_find(leaf, step_kinds[i]->key))
            return str_of(step_kinds[i]->word);
    return STR("gate");
}

void compile_leaf(struct compilation *compiler, const struct node *document)
{
    compiler->is_tree = true;
    compiler->leaf = document;
    compile_node(compiler, document, leaf_name(document));
}

void compile_tree(struct compilation *compiler, const struct node *document, const char *root)
{
    compiler->is_tree = true;
    compile_group(compiler, document, root, STR(""));
}
