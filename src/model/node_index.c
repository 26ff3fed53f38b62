/* node_index.c - members found by key and list items by value in large documents. */
#include "model/node_index.h"
#include "base/grow.h"
#include "base/sort.h"
#include "model/decimal.h"

#define FEW 16 /* are searched one by one */

void node_index_init(struct node_index *index, struct arena *arena)
{
    *index = (struct node_index){ .arena = arena };
    map_init(&index->numbers, arena->heap);
}

void node_index_fini(struct node_index *index)
{
    map_fini(&index->numbers);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static int by_value(void *context, const struct node *a, const struct node *b)
{
    return node_index_compare(context, a, b);
}

/* The children of `parent` in order: members by key, items by value. NULL: no memory. */
static const struct node **sort_children(struct node_index *index, const struct node *parent)
{
    const struct node **children =
        ARENA_ARRAY(index->arena, const struct node *, (size_t)parent->count + 1);
    size_t count = 0;

    for (const struct node *child = parent->first; child && children; child = child->next)
        children[count++] = child;
    if (children)
        sort_nodes(children, count, parent->kind == NODE_OBJECT ? node_by_key : by_value, index);
    return children;
}

static const struct node **sorted_children(struct node_index *index, const struct node *parent)
{
    uint32_t number = map_get(&index->numbers, (uint64_t)(uintptr_t)parent);
    const struct node **children;

    if (number != MAP_NONE)
        return index->sorted[number];
    children = sort_children(index, parent);
    if (!children || !GROW(index->arena, index->sorted, index->count, index->capacity))
        return NULL;
    if (map_put(&index->numbers, (uint64_t)(uintptr_t)parent, index->count))
        index->sorted[index->count++] = children;
    return children;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static int compare_members(struct node_index *index, const struct node *a, const struct node *b)
{
    const struct node **left = sorted_children(index, a), **right = sorted_children(index, b);
    int order = left && right ? 0 : -1; /* no memory */

    for (uint32_t i = 0; i < a->count && order == 0; i++) {
        order = str_compare(left[i]->key, right[i]->key);
        if (order == 0)
            order = node_index_compare(index, left[i], right[i]);
    }
    return order;
}

static int compare_items(struct node_index *index, const struct node *a, const struct node *b)
{
    const struct node *other = b->first;
    int order = 0;

    for (const struct node *item = a->first; item && order == 0; item = item->next) {
        order = node_index_compare(index, item, other);
        other = other->next;
    }
    return order;
}

int node_index_compare(struct node_index *index, const struct node *a, const struct node *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    switch (a->kind) {
    case NODE_NULL:
        return 0;
    case NODE_BOOL:
        return (int)a->truth - (int)b->truth;
    case NODE_NUMBER:
        return decimal_compare(a->text, b->text);
    case NODE_STRING:
        return str_compare(a->text, b->text);
    case NODE_ARRAY:
    case NODE_OBJECT:
        break;
    }
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return a->kind == NODE_ARRAY ? compare_items(index, a, b) : compare_members(index, a, b);
}

/* ---- Searching ------------------------------------------------------------------------------- */

/* Among sorted children; `wanted` is compared as `compare` compares them. */
static const struct node *search(struct node_index *index, const struct node **children,
                                 uint32_t count, const struct node *wanted, node_compare *compare)
{
    uint32_t first = 0;

    while (count > 0) {
        uint32_t half = count / 2;
        int order = compare(index, wanted, children[first + half]);

        if (order == 0)
            return children[first + half];
        first = order > 0 ? first + half + 1 : first;
        count = order > 0 ? count - half - 1 : half;
    }
    return NULL;
}

const struct node *node_index_member(struct node_index *index, const struct node *object, str key)
{
    const struct node **members = object && object->kind == NODE_OBJECT && object->count > FEW
                                      ? sorted_children(index, object)
                                      : NULL;

    if (!members)
        return node_find_str(object, key);
    return search(index, members, object->count, &(struct node){ .key = key }, node_by_key);
}

bool node_index_has(struct node_index *index, const struct node *array, const struct node *value)
{
    const struct node **items = array->count > FEW ? sorted_children(index, array) : NULL;

    if (items)
        return search(index, items, array->count, value, by_value) != NULL;
    for (const struct node *item = array->first; item; item = item->next)
        if (node_index_compare(index, item, value) == 0)
            return true;
    return false;
}
