/* plan_tree.c - the nodes of a tree, from its printed form: a step's index, or
 * ["do",...], ["dopar",...], ["try",FORMS,RESCUE,FINALLY], ["select",STEP,ARM,...],
 * ["group",STEP,NODE]. */
#include "base/grow.h"
#include "base/node.h"
#include "flow/plan.h"

struct tree_loader {
    struct scope *scope;
    struct plan *plan;
    uint32_t capacity;
};

static bool set_step(struct tree_loader *loader, uint32_t node, const struct node *text)
{
    struct plan *plan = loader->plan;
    int64_t step;

    if (!node_to_i64(text, &step) || step < 0 || step >= plan->count ||
        plan->steps[step].node != NODE_NONE)
        return false;
    plan->nodes[node].step = (uint32_t)step;
    plan->steps[step].node = node;
    return true;
}

static uint32_t load_node(struct tree_loader *loader, const struct node *text, uint32_t parent,
                          uint32_t place);

/* The nodes may move while they grow: the index is what lasts. */
static bool load_children(struct tree_loader *loader, uint32_t node, const struct node *first)
{
    uint32_t count = 0;
    uint32_t *children;

    for (const struct node *child = first; child; child = child->next)
        count++;
    children = ARENA_ARRAY(&loader->scope->arena, uint32_t, count + 1);
    if (!children)
        return false;
    count = 0;
    for (const struct node *child = first; child; child = child->next) {
        children[count] = load_node(loader, child, node, count);
        if (children[count++] == NODE_NONE)
            return false;
    }
    loader->plan->nodes[node].children = children;
    loader->plan->nodes[node].child_count = count;
    return true;
}

static bool is_empty(const struct plan *plan, const struct plan_node *node)
{
    if (node->step != STEP_NONE && node->kind != PLAN_GROUP)
        return false;
    /* Forms that do nothing cannot fail: a rescue alone is never begun. */
    for (uint32_t i = 0; i < node->child_count; i++)
        if (!plan->nodes[node->children[i]].is_empty &&
            !(node->kind == PLAN_TRY && i == TRY_RESCUE))
            return false;
    return true;
}

static bool load_group(struct tree_loader *loader, uint32_t node, const struct node *text)
{
    const struct node *first = text->first;
    enum plan_node_kind kind = PLAN_DO;

    if (text->kind != NODE_ARRAY || !first || first->kind != NODE_STRING)
        return false;
    while (kind <= PLAN_GROUP && !str_is(first->text, plan_node_kind_name(kind)))
        kind++;
    if (kind > PLAN_GROUP)
        return false;
    loader->plan->nodes[node].kind = kind;
    first = first->next;
    if (kind == PLAN_ARMS || kind == PLAN_GROUP) {
        if (!first || !set_step(loader, node, first))
            return false;
        first = first->next;
    }
    if (!load_children(loader, node, first))
        return false;
    if (kind == PLAN_GROUP)
        return loader->plan->nodes[node].child_count == 1;
    return kind != PLAN_TRY || loader->plan->nodes[node].child_count == TRY_PART_COUNT;
}

/* Depth is that of the printed text, which the reader bounds. */
static uint32_t load_node(struct tree_loader *loader, const struct node *text, uint32_t parent,
                          uint32_t place)
{
    struct plan *plan = loader->plan;
    uint32_t node = plan->node_count;

    if (!GROW(&loader->scope->arena, plan->nodes, plan->node_count, loader->capacity))
        return NODE_NONE;
    plan->nodes[plan->node_count++] = (struct plan_node){
        .kind = PLAN_LEAF, .parent = parent, .place = place, .step = STEP_NONE
    };
    if (!(text->kind == NODE_NUMBER ? set_step(loader, node, text)
                                    : load_group(loader, node, text)))
        return NODE_NONE;
    plan->nodes[node].is_empty = is_empty(plan, &plan->nodes[node]);
    return node;
}

bool plan_load_tree(struct scope *scope, const struct node *tree, struct plan *plan)
{
    struct tree_loader loader = { .scope = scope, .plan = plan };

    if (!tree || load_node(&loader, tree, NODE_NONE, 0) == NODE_NONE)
        return false;
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].node == NODE_NONE && !plan->steps[i].kind->is_gone &&
            plan->steps[i].of == STEP_NONE && plan->steps[i].undoes == STEP_NONE)
            return false; /* nothing would ever begin it */
    return true;
}
