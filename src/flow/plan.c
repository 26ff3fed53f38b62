/* plan.c - the compiled plan: printed in one canonical form, and loaded from it. */
#include "flow/flow_int.h"

/* ---- Print --------------------------------------------------------------------- */

static void print_step(const struct plan_step *step, struct buf *out)
{
    json_open(out, '{');
    json_key(out, "name");
    json_str(out, step->name);
    json_key(out, "tool");
    json_str(out, step->tool);
    json_key(out, "args");
    json_raw(out, step->args);
    if (step->next != STEP_NONE) {
        json_key(out, "next");
        json_u64(out, step->next);
    }
    json_key(out, "max");
    json_u64(out, step->attempt_count_max);
    json_key(out, "backoff");
    json_open(out, '[');
    for (uint32_t i = 0; i < step->backoff_count; i++)
        json_i64(out, step->backoff_ms[i]);
    json_close(out, ']');
    json_key(out, "timeout");
    json_i64(out, step->timeout_ms);
    json_key(out, "idempotent");
    json_bool(out, step->is_idempotent);
    json_close(out, '}');
}

void plan_print(const struct plan *plan, struct buf *out)
{
    json_open(out, '{');
    json_key(out, "notation");
    json_text(out, plan->is_tree ? "tree" : "graph");
    json_key(out, "first");
    json_u64(out, plan->first);
    json_key(out, "steps");
    json_open(out, '[');
    for (uint32_t i = 0; i < plan->count; i++)
        print_step(&plan->steps[i], out);
    json_close(out, ']');
    json_close(out, '}');
}

/* ---- Names --------------------------------------------------------------------- */

static bool is_before(const struct plan_name *left, const struct plan_name *right)
{
    int order = str_compare(left->text, right->text);

    return order != 0 ? order < 0 : left->step < right->step;
}

/* Let the name at `root` sink to its place in the heap of the first `count`. */
static void sink(struct plan_name *names, uint32_t root, uint32_t count)
{
    struct plan_name name = names[root];

    for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && is_before(&names[child], &names[child + 1]))
            child++;
        if (!is_before(&name, &names[child]))
            break;
        names[root] = names[child];
        root = child;
    }
    names[root] = name;
}

/* Heapsort: no document makes it slow, and unlike qsort() it takes no memory. */
void plan_sort_names(struct plan_name *names, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sink(names, i, count);
    for (uint32_t last = count; last-- > 1;) {
        struct plan_name greatest = names[0];

        names[0] = names[last];
        names[last] = greatest;
        sink(names, 0, last);
    }
}

const struct plan_name *plan_find_name(const struct plan_name *names, uint32_t count, str text)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (str_compare(names[middle].text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && str_eq(names[low].text, text) ? &names[low] : NULL;
}

uint32_t plan_find(const struct plan *plan, str name)
{
    const struct plan_name *found = plan_find_name(plan->names, plan->count, name);

    return found ? found->step : STEP_NONE;
}

static pawl_status index_names(struct scope *scope, struct plan *plan)
{
    plan->names = ARENA_ARRAY(&scope->arena, struct plan_name, plan->count);
    if (!plan->names)
        return scope_no_memory(scope);
    for (uint32_t i = 0; i < plan->count; i++)
        plan->names[i] = (struct plan_name){ plan->steps[i].name, i };
    plan_sort_names(plan->names, plan->count);
    return PAWL_OK;
}

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
            found = found || part.kind == TEMPLATE_INPUT || part.kind == TEMPLATE_STEP;
            if (part.kind == TEMPLATE_STEP)
                want_results(plan, part.path);
        }
    for (const struct node *child = node->first; child; child = child->next)
        found = scan_templates(plan, child) || found;
    return found;
}

/* ---- Load ------------------------------------------------------------------------ */

static bool read_u32(const struct node *object, const char *key, uint32_t max, uint32_t *out)
{
    int64_t n;

    if (!node_to_i64(node_find(object, key), &n) || n < 0 || n > max)
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool read_text(const struct node *object, const char *key, str *out)
{
    const struct node *node = node_find(object, key);

    if (!node || node->kind != NODE_STRING)
        return false;
    *out = node->text;
    return true;
}

static bool read_backoff(struct scope *scope, const struct node *list, struct plan_step *step)
{
    if (!list || list->kind != NODE_ARRAY)
        return false;
    step->backoff_ms = ARENA_ARRAY(&scope->arena, int64_t, list->count);
    for (const struct node *item = list->first; item && step->backoff_ms; item = item->next)
        if (!node_to_i64(item, &step->backoff_ms[step->backoff_count++]))
            return false;
    return step->backoff_ms != NULL;
}

static bool read_step(struct scope *scope, const struct plan *plan, const struct node *node,
                      struct plan_step *step)
{
    const struct node *idempotent = node_find(node, "idempotent");

    *step = (struct plan_step){ .next = STEP_NONE, .result_slot = STEP_NONE };
    step->args_node = node_find(node, "args");
    if (!step->args_node || step->args_node->kind != NODE_OBJECT)
        return false;
    step->args = step->args_node->raw;
    step->is_idempotent = idempotent && idempotent->truth;
    if (node_find(node, "next") && !read_u32(node, "next", plan->count - 1, &step->next))
        return false;
    return read_text(node, "name", &step->name) && read_text(node, "tool", &step->tool) &&
           read_u32(node, "max", LIMIT_ATTEMPTS, &step->attempt_count_max) &&
           node_to_i64(node_find(node, "timeout"), &step->timeout_ms) &&
           read_backoff(scope, node_find(node, "backoff"), step);
}

static bool read_steps(struct scope *scope, const struct node *list, struct plan *plan)
{
    uint32_t index = 0;

    if (!list || list->kind != NODE_ARRAY || list->count == 0)
        return false;
    plan->count = list->count;
    plan->steps = ARENA_ARRAY(&scope->arena, struct plan_step, plan->count);
    for (const struct node *item = list->first; item && plan->steps; item = item->next)
        if (!read_step(scope, plan, item, &plan->steps[index++]))
            return false;
    return plan->steps != NULL;
}

static bool read_plan(struct scope *scope, const struct node *document, struct plan *plan)
{
    str notation;

    if (!read_text(document, "notation", &notation) ||
        !read_steps(scope, node_find(document, "steps"), plan))
        return false;
    plan->is_tree = str_is(notation, "tree");
    return read_u32(document, "first", plan->count - 1, &plan->first);
}

pawl_status plan_load(struct scope *scope, str text, struct plan **out)
{
    struct node *document = NULL;
    struct plan *plan = ARENA_NEW(&scope->arena, struct plan);
    pawl_status status = plan ? node_read_json(scope, text, &document) : PAWL_NO_MEMORY;
    bool is_plan = status == PAWL_OK && read_plan(scope, document, plan);

    if (status == PAWL_NO_MEMORY || scope->arena.failed)
        return scope_no_memory(scope);
    if (!is_plan)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the compiled plan of a flow cannot be read; verify the store");
    status = index_names(scope, plan);
    if (status != PAWL_OK)
        return status;
    for (uint32_t i = 0; i < plan->count; i++)
        plan->steps[i].has_template = scan_templates(plan, plan->steps[i].args_node);
    *out = plan;
    return PAWL_OK;
}
