/* node_build.c - growing a tree of nodes, child by child, without recursion. */
#include "base/assert.h"
#include "base/node_int.h"
#include "base/sort.h"
#include "base/text_int.h"

#define SHOWN_SIZE_MAX 64 /* of a key in an error */
#define FEW_KEYS       16 /* are compared each with each: sorting them takes longer */

struct node *tree_top(const struct tree *tree)
{
    return tree->depth > 0 ? tree->open[tree->depth - 1] : NULL;
}

pawl_status tree_fail(struct tree *tree, struct place place, const char *expected,
                      const char *found)
{
    return scope_fail(tree->scope, PAWL_INVALID_REQUEST,
                      "line %u, column %u: expected %s, found %s", place.line, place.column,
                      expected, found);
}

static void append(struct tree *tree, struct node *node)
{
    struct node *parent = tree_top(tree);
    struct node **last = tree->depth > 0 ? &tree->last[tree->depth - 1] : &tree->root;

    if (parent) {
        if (parent->first)
            (*last)->next = node;
        else
            parent->first = node;
        parent->count++;
    }
    *last = node;
}

pawl_status tree_add(struct tree *tree, enum node_kind kind, struct place place, str key,
                     struct place key_place, struct node **out)
{
    struct node *node = ARENA_NEW(&tree->scope->arena, struct node);

    TRY_MEMORY(tree->scope, node);
    node->kind = kind;
    node->line = place.line;
    node->column = place.column;
    node->key = key;
    node->key_line = key_place.line;
    node->key_column = key_place.column;
    append(tree, node);
    *out = node;
    return PAWL_OK;
}

pawl_status tree_open(struct tree *tree, struct node *node)
{
    struct place place = { node->line, node->column };

    if (tree->depth == (tree->is_own ? NODE_OWN_DEPTH_MAX : NODE_DEPTH_MAX))
        return tree_fail(tree, place,
                         tree->is_own ? "at most 128 levels of nesting"
                                      : "at most 64 levels of nesting",
                         "one more");
    tree->open[tree->depth] = node;
    tree->last[tree->depth] = NULL;
    tree->depth++;
    return PAWL_OK;
}

/* By key, then by place: of two equal keys the second comes second. */
static int compare_keys(void *context, const struct node *a, const struct node *b)
{
    int order = str_compare(a->key, b->key);

    (void)context;
    if (order == 0)
        order = (a->key_line > b->key_line) - (a->key_line < b->key_line);
    if (order == 0)
        order = (a->key_column > b->key_column) - (a->key_column < b->key_column);
    return order;
}

static pawl_status fail_twice(struct tree *tree, const struct node *member)
{
    str shown = utf8_head(member->key, SHOWN_SIZE_MAX);

    return scope_fail(tree->scope, PAWL_INVALID_REQUEST,
                      "line %u, column %u: expected each key once, found '%.*s' again",
                      member->key_line, member->key_column, STR_ARG(shown));
}

static pawl_status check_few_keys(struct tree *tree, const struct node *object)
{
    for (const struct node *member = object->first; member; member = member->next)
        for (const struct node *before = object->first; before != member; before = before->next)
            if (str_eq(before->key, member->key))
                return fail_twice(tree, member);
    return PAWL_OK;
}

static pawl_status check_keys(struct tree *tree, const struct node *object)
{
    const struct node **members;
    size_t count = 0;

    if (object->count <= FEW_KEYS)
        return check_few_keys(tree, object);
    members = ARENA_ARRAY(&tree->scope->arena, const struct node *, object->count);
    TRY_MEMORY(tree->scope, members);
    for (const struct node *child = object->first; child; child = child->next)
        members[count++] = child;
    ASSERT(count == object->count);
    sort_nodes(members, count, compare_keys, NULL);
    for (size_t i = 1; i < count; i++)
        if (str_eq(members[i - 1]->key, members[i]->key))
            return fail_twice(tree, members[i]);
    return PAWL_OK;
}

pawl_status tree_close(struct tree *tree)
{
    struct node *node = tree_top(tree);

    ASSERT(node);
    tree->depth--;
    return node->kind == NODE_OBJECT ? check_keys(tree, node) : PAWL_OK;
}
