/* tree.c - the walk through a tree: what begins when a node is begun, what follows when one
 * is settled (C3-C6, C11-C19).
 *
 * One rule everywhere: what was dispatched runs to its end. A dopar is settled when its last
 * branch is, so that rescue and finally never begin beside something that still runs. */
#include "base/planted.h"
#include "flow/memory.h"

#define PAGE_NODES 64u

bool node_pages_init(struct node_pages *pages, const struct plan *plan,
                     const struct node_state *states, struct arena *arena)
{
    *pages = (struct node_pages){ .states = states, .count = plan->node_count, .arena = arena };
    pages->pages =
        ARENA_ARRAY(arena, struct node_state *, plan->node_count / PAGE_NODES + 1);
    return pages->pages != NULL;
}

struct node_state *tree_state_of(const struct tree_walk *walk, uint32_t node)
{
    struct node_pages *copy = walk->copy;
    uint32_t first = node - node % PAGE_NODES;
    struct node_state **page;

    if (walk->states)
        return &walk->states[node];
    page = &copy->pages[node / PAGE_NODES];
    if (!*page) {
        uint32_t left = copy->count - first;

        *page = arena_copy(copy->arena, &copy->states[first],
                           (left < PAGE_NODES ? left : PAGE_NODES) * sizeof *copy->states);
    }
    return *page ? &(*page)[node % PAGE_NODES] : &copy->spare;
}

static struct node_state *open_node(const struct tree_walk *walk, uint32_t node, uint32_t at)
{
    struct node_state *state = tree_state_of(walk, node);

    *state = (struct node_state){ .at = at, .is_open = true };
    return state;
}

/* Nothing to do there: it is empty, or was done by another instance already. */
static bool is_idle(const struct tree_walk *walk, uint32_t node)
{
    return walk->plan->nodes[node].is_empty ||
           (walk->redo && walk->redo->outcomes[node] == REDO_DONE);
}

/* The first child at or after `from` that has something to do; child_count: none. */
static uint32_t next_child(const struct tree_walk *walk, const struct plan_node *node,
                           uint32_t from)
{
    while (from < node->child_count && is_idle(walk, node->children[from]))
        from++;
    return from;
}

static void begin_step(const struct tree_walk *walk, const struct plan_node *node)
{
    if (walk->begin)
        walk->begin(walk->context, node->step);
}

static void begin_all(const struct tree_walk *walk, const struct plan_node *node, uint32_t index)
{
    struct node_state *state = open_node(walk, index, 0);

    for (uint32_t i = 0; i < node->child_count; i++)
        state->at += !is_idle(walk, node->children[i]);
    for (uint32_t i = 0; i < node->child_count; i++)
        if (!is_idle(walk, node->children[i]))
            (void)tree_begin(walk, node->children[i]);
}

/* Forms, then finally: the rescue is begun only by forms that failed. */
static uint32_t first_part(const struct tree_walk *walk, const struct plan_node *node)
{
    uint32_t rescue = node->children[TRY_RESCUE];
    bool is_rescued = walk->redo && !walk->plan->nodes[rescue].is_empty &&
                      walk->redo->outcomes[node->children[TRY_FORMS]] == REDO_FAILED &&
                      walk->redo->outcomes[rescue] == REDO_DONE;

    return is_idle(walk, node->children[TRY_FORMS]) || is_rescued ? TRY_FINALLY : TRY_FORMS;
}

/* A select that had its arm goes on below that arm. */
static enum settled begin_arms(const struct tree_walk *walk, const struct plan_node *node,
                               uint32_t index)
{
    uint32_t arm = walk->redo ? walk->redo->arms[index] : NODE_NONE;

    open_node(walk, index, 0);
    if (arm != NODE_NONE && !is_idle(walk, node->children[arm])) {
        tree_state_of(walk, index)->at = arm;
        return tree_begin(walk, node->children[arm]);
    }
    begin_step(walk, node);
    return TREE_GOES_ON;
}

enum settled tree_begin(const struct tree_walk *walk, uint32_t index)
{
    const struct plan_node *node = &walk->plan->nodes[index];
    uint32_t at;

    if (is_idle(walk, index))
        return TREE_SUCCEEDED;
    switch (node->kind) {
    case PLAN_ARMS:
        return begin_arms(walk, node, index);
    case PLAN_LEAF:
        open_node(walk, index, 0);
        begin_step(walk, node);
        return TREE_GOES_ON;
    case PLAN_DOPAR:
        begin_all(walk, node, index);
        return TREE_GOES_ON;
    case PLAN_GROUP:
        begin_step(walk, node);
        break;
    case PLAN_DO:
    case PLAN_TRY:
        break;
    }
    at = node->kind == PLAN_TRY     ? first_part(walk, node)
         : node->kind == PLAN_GROUP ? 0
                                    : next_child(walk, node, 0);
    open_node(walk, index, at);
    return tree_begin(walk, node->children[at]);
}

/* A child of a `do` is settled: the next one, or the end. True: something was begun. */
static bool do_goes_on(const struct tree_walk *walk, uint32_t index, uint32_t place,
                       bool is_success)
{
    const struct plan_node *node = &walk->plan->nodes[index];
    uint32_t at = is_success ? next_child(walk, node, place + 1) : node->child_count;

    if (at == node->child_count)
        return false;
    tree_state_of(walk, index)->at = at;
    (void)tree_begin(walk, node->children[at]);
    return true;
}

/* What failed the forms or the rescue is kept until the try is settled: rescue and finally see it.
 * A finally that fails brings its own. */
static bool try_goes_on(const struct tree_walk *walk, uint32_t index, uint32_t part, bool *outcome,
                        uint32_t *holder)
{
    const struct plan_node *node = &walk->plan->nodes[index];
    struct node_state *state = tree_state_of(walk, index);
    bool has_rescue = !walk->plan->nodes[node->children[TRY_RESCUE]].is_empty;
    bool has_finally = !walk->plan->nodes[node->children[TRY_FINALLY]].is_empty;
    bool is_success = *outcome, is_over = part == TRY_FINALLY;

    if (!is_over && !is_success)
        tree_error_keep(walk, index, holder);
    if (!is_over)
        state->has_failed = !is_success;
    *outcome = !state->has_failed && is_success;
    if (part == TRY_FORMS && !is_success && has_rescue && !PLANTED(RESCUE_MISSED))
        state->at = TRY_RESCUE;
    else if (!is_over && has_finally)
        state->at = TRY_FINALLY;
    else {
        if (!*outcome && (!is_over || is_success))
            tree_error_lift(walk, index, holder);
        tree_error_drop(walk, index);
        return false;
    }
    (void)tree_begin(walk, node->children[state->at]);
    return true;
}

static bool dopar_goes_on(const struct tree_walk *walk, uint32_t index, bool *outcome,
                          uint32_t *holder)
{
    struct node_state *state = tree_state_of(walk, index);

    if (!*outcome)
        tree_error_keep(walk, index, holder);
    state->has_failed = state->has_failed || !*outcome;
    *outcome = !state->has_failed;
    if (--state->at > 0 && !PLANTED(DOPAR_HASTY))
        return true;
    tree_error_lift(walk, index, holder);
    return false;
}

/* Its step ends with what is in it, or has another attempt. What stopped it is its error. */
static bool group_goes_on(const struct tree_walk *walk, uint32_t index, bool *outcome,
                          uint32_t *holder)
{
    struct node_state *state = tree_state_of(walk, index);

    if (state->error != 0) {
        tree_error_forget(walk, holder);
        tree_error_lift(walk, index, holder);
    }
    if (!walk->over || !walk->over(walk->over_context, walk->plan->nodes[index].step, *outcome,
                                   *holder ? &walk->errors->rows[*holder - 1].text : NULL))
        return false;
    tree_error_forget(walk, holder);
    return true;
}

/* A child of `parent` at `place` is settled. True: the tree goes on below it. */
static bool goes_on(const struct tree_walk *walk, uint32_t parent, uint32_t place, bool *outcome,
                    uint32_t *holder)
{
    if (tree_state_of(walk, parent)->is_stopping && !PLANTED(FORWARD_STOPPED))
        return tree_stop_goes_on(walk, parent, place, outcome, holder);
    switch (walk->plan->nodes[parent].kind) {
    case PLAN_DO:
        return do_goes_on(walk, parent, place, *outcome);
    case PLAN_DOPAR:
        return dopar_goes_on(walk, parent, outcome, holder);
    case PLAN_TRY:
        return try_goes_on(walk, parent, place, outcome, holder);
    case PLAN_GROUP:
        return group_goes_on(walk, parent, outcome, holder);
    case PLAN_ARMS:
    case PLAN_LEAF:
        break;
    }
    return false;
}

enum settled tree_settle(const struct tree_walk *walk, uint32_t node, bool is_success)
{
    bool outcome = is_success;
    uint32_t holder = 0; /* where the error lies that goes up; 0: it is the step's own */

    for (;;) {
        const struct plan_node *settled = &walk->plan->nodes[node];

        tree_state_of(walk, node)->is_open = false;
        if (settled->parent == NODE_NONE) {
            tree_error_end(walk, holder);
            return outcome ? TREE_SUCCEEDED : TREE_FAILED;
        }
        if (goes_on(walk, settled->parent, settled->place, &outcome, &holder))
            return TREE_GOES_ON;
        node = settled->parent;
    }
}

/* Does the failure of this child fail its parent, whatever else is done? */
static bool fails_parent(const struct plan *plan, const struct plan_node *node)
{
    const struct plan_node *parent = &plan->nodes[node->parent];

    return parent->kind != PLAN_TRY || node->place != TRY_FORMS ||
           plan->nodes[parent->children[TRY_RESCUE]].is_empty;
}

bool flow_must_fail(const void *memory)
{
    const struct flow_memory *flow = memory;
    const struct plan *plan = flow->plan;

    for (uint32_t i = 0; plan->is_tree && i < plan->node_count; i++) {
        const struct plan_node *node = &plan->nodes[i];
        bool is_finally = node->kind == PLAN_TRY && flow->nodes[i].at == TRY_FINALLY;

        /* It is open, and a branch of it has failed, or what its finally follows. */
        if (!flow->nodes[i].is_open || !flow->nodes[i].has_failed ||
            (node->kind != PLAN_DOPAR && !is_finally))
            continue;
        while (node->parent != NODE_NONE && fails_parent(plan, node))
            node = &plan->nodes[node->parent];
        if (node->parent == NODE_NONE)
            return true;
    }
    return false;
}

enum settled tree_take_arm(const struct tree_walk *walk, uint32_t index, uint32_t arm)
{
    const struct plan_node *node = &walk->plan->nodes[index];

    if (arm >= node->child_count || walk->plan->nodes[node->children[arm]].is_empty)
        return tree_settle(walk, index, true);
    tree_state_of(walk, index)->at = arm;
    return tree_begin(walk, node->children[arm]);
}
