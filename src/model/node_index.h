/* node_index.h - members found by key and list items by value in large documents.
 *
 * What is searched is sorted once, the first time, and kept for the next search. If there is no
 * memory for that, it is searched one by one: the arena is `failed` then, and the caller says
 * so. */
#ifndef PAWL_MODEL_NODE_INDEX_H
#define PAWL_MODEL_NODE_INDEX_H

#include "base/map.h"
#include "base/node.h"

struct node_index {
    struct arena *arena;
    struct map numbers;          /* a node's address: its place in `sorted`, */
    const struct node ***sorted; /* which has its children in order */
    uint32_t count, capacity;
};

void node_index_init(struct node_index *index, struct arena *arena);
void node_index_fini(struct node_index *index);

/* NULL: `object` is not an object, or has no such member. */
const struct node *node_index_member(struct node_index *index, const struct node *object, str key);
bool node_index_has(struct node_index *index, const struct node *array, const struct node *value);

/* As JSON Schema says: numbers by value, objects in any order of their members. 0: equal. */
int node_index_compare(struct node_index *index, const struct node *a, const struct node *b);

#endif
