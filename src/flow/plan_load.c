/* plan_load.c - make a printed plan ready to run: which results are kept, what reaches which
 * join. */
#include "base/node.h"
#include "expr/expr.h"
#include "flow/flow_int.h"

/* ---- What templates ask for ------------------------------------------------------ */

static void want_results(struct plan *plan, str path)
{
    str rest;
    uint32_t index;

    for (size_t below = SIZE_MAX; (index = template_step(plan, path, below, &rest)) != STEP_NONE;) {
        struct plan_step *step = &plan->steps[index];

        if (step->result_slot == STEP_NONE)
            step->result_slot = plan->slot_count++;
        below = step->name.size;
    }
}

static void scan_expression(struct plan *plan, str text)
{
    size_t at = 0;
    str name;

    while (expr_next_step(text, &at, &name)) {
        uint32_t index = plan_find(plan, name);

        if (index != STEP_NONE && plan->steps[index].result_slot == STEP_NONE)
            plan->steps[index].result_slot = plan->slot_count++;
    }
    plan->asks_instance = plan->asks_instance || memmem(text.data, text.size, "instance", 8);
}

/* Does a template stand somewhere in `node`? The results it asks for get their slots. */
static bool scan_templates(struct plan *plan, const struct node *node)
{
    struct template_part part;
    bool found = false;

    if (node->kind == NODE_STRING)
        for (str rest = node->text; template_next(plan->calculates, &rest, &part);) {
            found = found || template_is_replaced(&part);
            plan->asks_instance = plan->asks_instance || part.kind == TEMPLATE_INSTANCE;
            if (part.kind == TEMPLATE_STEP)
                want_results(plan, part.path);
            else if (part.kind == TEMPLATE_VALUE)
                scan_expression(plan, part.path);
        }
    for (const struct node *child = node->first; child; child = child->next)
        found = scan_templates(plan, child) || found;
    return found;
}

static void scan_condition(struct plan *plan, str condition)
{
    if (condition.data && !condition_is_pattern(condition))
        scan_expression(plan, condition);
}

static void scan_conditions(struct plan *plan, const struct plan_step *step)
{
    for (uint32_t i = 0; step->way == WAY_BRANCH && i < step->target_count; i++)
        scan_condition(plan, step->targets[i].condition);
    for (uint32_t i = 0; i < step->error_count; i++)
        scan_condition(plan, step->errors[i].condition);
    for (const struct node *arm = node_first(step->args_node, "arms");
         arm && step->kind->leads_by_arm; arm = arm->next)
        if (node_find(arm, "if"))
            scan_condition(plan, node_find(arm, "if")->text);
}

/* ---- Loading --------------------------------------------------------------------- */

static pawl_status make_ready(struct scope *scope, struct plan *plan)
{
    plan->names = ARENA_ARRAY(&scope->arena, struct plan_name, plan->count + 1);
    TRY_MEMORY(scope, plan->names);
    for (uint32_t i = 0; i < plan->count; i++)
        plan->names[i] = (struct plan_name){ plan->steps[i].name, i };
    plan_sort_names(plan->names, plan->count);
    for (uint32_t i = 0; i < plan->count; i++)
        plan->steps[i].has_template = scan_templates(plan, plan->steps[i].args_node) ||
                                      plan->steps[i].of != STEP_NONE ||
                                      (plan->steps[i].undoes != STEP_NONE &&
                                       plan->steps[plan->steps[i].undoes].of != STEP_NONE);
    if (plan->output_node)
        plan->output_has_template = scan_templates(plan, plan->output_node);
    plan->has_quotas = quotas_any(&plan->quotas);
    for (uint32_t i = 0; i < plan->count; i++) {
        scan_conditions(plan, &plan->steps[i]);
        plan->has_quotas = plan->has_quotas || quotas_any(&plan->steps[i].quotas);
    }
    plan->asks_instance = plan->asks_instance || plan->notify;
    for (const struct node *query = plan->queries ? plan->queries->first : NULL; query;
         query = query->next)
        scan_expression(plan, query->text);
    return plan->is_tree ? PAWL_OK : plan_find_reach(scope, plan);
}

pawl_status plan_load(struct scope *scope, str text, struct plan **out)
{
    struct node *document = NULL;
    struct plan *plan = ARENA_NEW(&scope->arena, struct plan);
    pawl_status status = plan ? node_read_own(scope, text, &document) : PAWL_NO_MEMORY;
    bool is_plan = status == PAWL_OK && plan_read(scope, document, plan);

    if (status == PAWL_NO_MEMORY || scope->arena.failed)
        return scope_no_memory(scope);
    if (!is_plan)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the compiled plan of a flow cannot be read; verify the store");
    TRY(make_ready(scope, plan));
    *out = plan;
    return PAWL_OK;
}
