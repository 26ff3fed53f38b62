/* tree_stop.c - a part of a tree is stopped, because it was cancelled or its time is over.
 *
 * Where a `try` is open, its `finally` still runs, the innermost first, and what it does it does as
 * ever. All else there ends: no rescue begins, no other member of a `do`. Each node on the way is
 * marked, until it is settled, as failed. */
#include "flow/memory.h"

static bool has_finally(const struct plan *plan, const struct plan_node *node)
{
    return node->kind == PLAN_TRY && !plan->nodes[node->children[TRY_FINALLY]].is_empty;
}

static enum settled begin_finally(const struct tree_walk *walk, uint32_t index)
{
    tree_state_of(walk, index)->at = TRY_FINALLY;
    (void)tree_begin(walk, walk->plan->nodes[index].children[TRY_FINALLY]);
    return TREE_GOES_ON;
}

/* What stopped it is what its finally sees. */
static enum settled stop_try(const struct tree_walk *walk, uint32_t index)
{
    const struct plan_node *node = &walk->plan->nodes[index];
    uint32_t at = tree_state_of(walk, index)->at, holder = 0;

    if (at == TRY_FINALLY)
        return TREE_GOES_ON;
    if (has_finally(walk->plan, node))
        tree_error_keep(walk, index, &holder);
    if (tree_stop(walk, node->children[at]) == TREE_GOES_ON)
        return TREE_GOES_ON;
    return has_finally(walk->plan, node) ? begin_finally(walk, index) : TREE_FAILED;
}

static enum settled stop_dopar(const struct tree_walk *walk, uint32_t index)
{
    const struct plan_node *node = &walk->plan->nodes[index];
    uint32_t open = 0;

    for (uint32_t i = 0; i < node->child_count; i++)
        open += tree_stop(walk, node->children[i]) == TREE_GOES_ON;
    tree_state_of(walk, index)->at = open;
    return open > 0 ? TREE_GOES_ON : TREE_FAILED;
}

/* Its step, or what follows one of its arms. */
static enum settled stop_arms(const struct tree_walk *walk, uint32_t index)
{
    const struct plan_node *node = &walk->plan->nodes[index];
    enum settled settled = TREE_FAILED;

    if (walk->stays(walk->stops, node->step))
        return TREE_GOES_ON;
    for (uint32_t i = 0; i < node->child_count; i++)
        if (tree_stop(walk, node->children[i]) == TREE_GOES_ON)
            settled = TREE_GOES_ON;
    return settled;
}

static enum settled stop_node(const struct tree_walk *walk, uint32_t index)
{
    const struct plan_node *node = &walk->plan->nodes[index];

    switch (node->kind) {
    case PLAN_LEAF:
        return walk->stays(walk->stops, node->step) ? TREE_GOES_ON : TREE_FAILED;
    case PLAN_ARMS:
        return stop_arms(walk, index);
    case PLAN_DO:
        return tree_stop(walk, node->children[tree_state_of(walk, index)->at]);
    case PLAN_DOPAR:
        return stop_dopar(walk, index);
    case PLAN_GROUP:
        (void)walk->stays(walk->stops, node->step); /* its limits end with it */
        return tree_stop(walk, node->children[0]);
    case PLAN_TRY:
        break;
    }
    return stop_try(walk, index);
}

enum settled tree_stop(const struct tree_walk *walk, uint32_t index)
{
    struct node_state *state = tree_state_of(walk, index);
    enum settled settled;

    if (!state->is_open)
        return TREE_FAILED;
    settled = stop_node(walk, index);
    state = tree_state_of(walk, index);
    state->has_failed = true;
    state->is_stopping = settled == TREE_GOES_ON;
    state->is_open = settled == TREE_GOES_ON;
    if (settled != TREE_GOES_ON)
        tree_error_drop(walk, index);
    return settled;
}

bool tree_stop_goes_on(const struct tree_walk *walk, uint32_t parent, uint32_t place, bool *outcome,
                       uint32_t *holder)
{
    const struct plan_node *node = &walk->plan->nodes[parent];
    struct node_state *state = tree_state_of(walk, parent);

    *outcome = false;
    tree_error_forget(walk, holder);
    if (node->kind == PLAN_DOPAR && --state->at > 0)
        return true;
    if (has_finally(walk->plan, node) && place != TRY_FINALLY)
        return begin_finally(walk, parent) == TREE_GOES_ON;
    tree_error_lift(walk, parent, holder);
    state->is_stopping = false;
    return false;
}
