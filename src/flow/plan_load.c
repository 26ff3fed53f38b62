/* plan_load.c - a printed plan, read back and made ready to run. */
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

/* Does a template stand somewhere in `node`? The results it asks for get their slots. */
static bool scan_templates(struct plan *plan, const struct node *node)
{
    struct template_part part;
    bool found = false;

    if (node->kind == NODE_STRING)
        for (str rest = node->text; template_next(&rest, &part);) {
            found = found || template_is_replaced(&part);
            plan->asks_instance = plan->asks_instance || part.kind == TEMPLATE_INSTANCE;
            if (part.kind == TEMPLATE_STEP)
                want_results(plan, part.path);
        }
    for (const struct node *child = node->first; child; child = child->next)
        found = scan_templates(plan, child) || found;
    return found;
}

static void want_named(struct plan *plan, str condition)
{
    size_t at = 0;
    str name;

    while (!condition_is_pattern(condition) && expr_next_step(condition, &at, &name)) {
        uint32_t index = plan_find(plan, name);

        if (index != STEP_NONE && plan->steps[index].result_slot == STEP_NONE)
            plan->steps[index].result_slot = plan->slot_count++;
    }
}

static void scan_conditions(struct plan *plan, const struct plan_step *step)
{
    for (uint32_t i = 0; step->way == WAY_BRANCH && i < step->target_count; i++) {
        str condition = step->targets[i].condition;

        want_named(plan, condition);
        plan->asks_instance =
            plan->asks_instance || (!condition_is_pattern(condition) &&
                                    memmem(condition.data, condition.size, "instance", 8));
    }
}

/* ---- Members --------------------------------------------------------------------- */

static bool read_u32(const struct node *node, uint32_t max, uint32_t *out)
{
    int64_t n;

    if (!node_to_i64(node, &n) || n < 0 || n > max)
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool read_text(const struct node *node, str *out)
{
    if (!node || node->kind != NODE_STRING)
        return false;
    *out = node->text;
    return true;
}

static bool read_texts(struct scope *scope, const struct node *list, str **out, uint32_t *count)
{
    if (!list)
        return true;
    *out = ARENA_ARRAY(&scope->arena, str, list->count + 1);
    for (const struct node *item = list->first; item && *out; item = item->next)
        if (!read_text(item, &(*out)[(*count)++]))
            return false;
    return *out != NULL;
}

static bool read_backoff(struct scope *scope, const struct node *list, struct plan_step *step)
{
    if (!list || list->kind != NODE_ARRAY)
        return false;
    step->backoff_ms = ARENA_ARRAY(&scope->arena, int64_t, list->count + 1);
    for (const struct node *item = list->first; item && step->backoff_ms; item = item->next)
        if (!node_to_i64(item, &step->backoff_ms[step->backoff_count++]))
            return false;
    return step->backoff_ms != NULL;
}

static bool read_augments(struct scope *scope, const struct node *list, struct plan_step *step)
{
    if (!list)
        return true;
    step->augments = ARENA_ARRAY(&scope->arena, struct plan_augment, list->count + 1);
    for (const struct node *pair = list->first; pair && step->augments; pair = pair->next) {
        struct plan_augment *augment = &step->augments[step->augment_count++];

        if (pair->count != 2 || !read_text(pair->first, &augment->dest) ||
            !read_text(pair->first->next, &augment->source))
            return false;
    }
    return step->augments != NULL;
}

/* ---- The way on -------------------------------------------------------------------- */

static bool read_target(const struct plan *plan, enum way_kind way, const struct node *node,
                        struct plan_target *out)
{
    if (way == WAY_BRANCH) {
        if (node->kind != NODE_ARRAY || node->count < 2 || node->count > 3 ||
            !read_text(node->first, &out->condition))
            return false;
        out->is_quoted = node->count == 3;
        if (out->is_quoted && !condition_is_quoted(out->condition))
            return false;
        node = node->first->next;
    }
    return read_u32(node, plan->count - 1, &out->step);
}

static bool read_way(struct scope *scope, const struct plan *plan, const struct node *node,
                     struct plan_step *step)
{
    const struct node *way = NULL;

    step->way = plan->is_tree ? WAY_TREE : WAY_DONE;
    for (enum way_kind kind = WAY_NEXT; kind < WAY_TREE && !way; kind++) {
        way = node_find(node, way_kind_name(kind));
        if (way)
            step->way = kind;
    }
    if (!way)
        return true;
    step->targets = ARENA_ARRAY(&scope->arena, struct plan_target, way->count + 1);
    if (!step->targets)
        return false;
    if (step->way == WAY_NEXT || step->way == WAY_JOIN)
        return read_target(plan, step->way, way, &step->targets[step->target_count++]);
    for (const struct node *item = way->first; item; item = item->next)
        if (!read_target(plan, step->way, item, &step->targets[step->target_count++]))
            return false;
    return way->kind == NODE_ARRAY;
}

/* ---- Steps -------------------------------------------------------------------------- */

static bool read_optional(const struct node *node, struct plan_step *step)
{
    const struct node *timeout = node_find(node, "timeout"), *jitter = node_find(node, "jitter");
    const struct node *tool = node_find(node, "tool"), *count = node_find(node, "count");

    return (!timeout || node_to_i64(timeout, &step->timeout_ms)) &&
           (!jitter || read_u32(jitter, 1000, &step->jitter_permille)) &&
           (!tool || read_text(tool, &step->tool)) &&
           (!count || read_u32(count, LIMIT_STEPS, &step->approval_count));
}

static bool read_step(struct scope *scope, const struct plan *plan, const struct node *node,
                      struct plan_step *step)
{
    const struct node *idempotent = node_find(node, "idempotent");
    const struct node *once = node_find(node, "once"), *kind = node_find(node, "kind");

    *step = (struct plan_step){ .result_slot = STEP_NONE, .node = NODE_NONE, .approval_count = 1 };
    step->args_node = node_find(node, "args");
    if (!step->args_node || !read_optional(node, step))
        return false;
    step->kind = step_kind_find(kind ? kind->text : STR("tool"), step->tool);
    if (!step->kind || (step->args_node->kind != NODE_OBJECT && step->kind->has_own_args))
        return false;
    step->args = step->args_node->raw;
    step->is_idempotent = idempotent && idempotent->truth;
    step->is_once = once && once->truth;
    return read_text(node_find(node, "name"), &step->name) && read_way(scope, plan, node, step) &&
           read_u32(node_find(node, "max"), LIMIT_ATTEMPTS, &step->attempt_count_max) &&
           read_backoff(scope, node_find(node, "backoff"), step) &&
           read_augments(scope, node_find(node, "augment"), step) &&
           read_texts(scope, node_find(node, "by"), &step->approvers, &step->approver_count);
}

static bool read_steps(struct scope *scope, const struct node *list, struct plan *plan)
{
    uint32_t index = 0;

    if (!list || list->kind != NODE_ARRAY || (list->count == 0 && !plan->is_tree))
        return false;
    plan->count = list->count;
    plan->steps = ARENA_ARRAY(&scope->arena, struct plan_step, plan->count + 1);
    for (const struct node *item = list->first; item && plan->steps; item = item->next)
        if (!read_step(scope, plan, item, &plan->steps[index++]))
            return false;
    return plan->steps != NULL;
}

/* `cancel` is absent, false, or the list of steps that bar it. */
static bool read_cancel(const struct node *rule, struct plan *plan)
{
    uint32_t step;

    if (!rule)
        return true;
    if (rule->kind == NODE_BOOL) {
        plan->cancel = CANCEL_NEVER;
        return !rule->truth;
    }
    plan->cancel = CANCEL_NOT_FROM;
    for (const struct node *item = rule->first; item; item = item->next) {
        if (plan->count == 0 || !read_u32(item, plan->count - 1, &step))
            return false;
        plan->steps[step].bars_cancel = true;
    }
    return rule->kind == NODE_ARRAY;
}

static bool read_plan(struct scope *scope, const struct node *document, struct plan *plan)
{
    const struct node *tree = node_find(document, "tree");
    str notation;

    if (!read_text(node_find(document, "notation"), &notation))
        return false;
    plan->is_tree = str_is(notation, "tree");
    plan->output_node = node_find(document, "output");
    plan->output = plan->output_node ? plan->output_node->raw : STR_NONE;
    plan->tree = tree ? tree->raw : STR_NONE;
    return read_texts(scope, node_find(document, "buffered"), &plan->buffered,
                      &plan->buffered_count) &&
           read_steps(scope, node_find(document, "steps"), plan) &&
           read_cancel(node_find(document, "cancel"), plan) &&
           (plan->is_tree ? plan_load_tree(scope, tree, plan)
                          : read_u32(node_find(document, "first"), plan->count - 1, &plan->first));
}

static pawl_status index_names(struct scope *scope, struct plan *plan)
{
    plan->names = ARENA_ARRAY(&scope->arena, struct plan_name, plan->count + 1);
    if (!plan->names)
        return scope_no_memory(scope);
    for (uint32_t i = 0; i < plan->count; i++)
        plan->names[i] = (struct plan_name){ plan->steps[i].name, i };
    plan_sort_names(plan->names, plan->count);
    return PAWL_OK;
}

static pawl_status make_ready(struct scope *scope, struct plan *plan)
{
    pawl_status status = index_names(scope, plan);

    if (status != PAWL_OK)
        return status;
    for (uint32_t i = 0; i < plan->count; i++)
        plan->steps[i].has_template = scan_templates(plan, plan->steps[i].args_node);
    if (plan->output_node)
        plan->output_has_template = scan_templates(plan, plan->output_node);
    for (uint32_t i = 0; i < plan->count; i++)
        scan_conditions(plan, &plan->steps[i]);
    return plan->is_tree ? PAWL_OK : plan_find_reach(scope, plan);
}

pawl_status plan_load(struct scope *scope, str text, struct plan **out)
{
    struct node *document = NULL;
    struct plan *plan = ARENA_NEW(&scope->arena, struct plan);
    pawl_status status = plan ? node_read_own(scope, text, &document) : PAWL_NO_MEMORY;
    bool is_plan = status == PAWL_OK && read_plan(scope, document, plan);

    if (status == PAWL_NO_MEMORY || scope->arena.failed)
        return scope_no_memory(scope);
    if (!is_plan)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the compiled plan of a flow cannot be read; verify the store");
    status = make_ready(scope, plan);
    if (status == PAWL_OK)
        *out = plan;
    return status;
}
