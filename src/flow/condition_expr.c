/* condition_expr.c - conditions beyond the six: Lua expressions (src/expr), and what they see. */
#include "base/planted.h"
#include "expr/expr.h"
#include "flow/flow_int.h"
#include "model/words.h"

struct view {
    struct scope *scope;
    const struct template_source *source;
    const struct node *result;
};

static const struct node *read_value(const struct view *view, str json, pawl_status *status)
{
    struct node *node = NULL;

    if (json.data && *status == PAWL_OK)
        *status = node_read_own(view->scope, json, &node);
    return node;
}

static const struct node *find_global(void *context, str name, pawl_status *status)
{
    const struct view *view = context;
    const struct template_source *source = view->source;

    if (str_is(name, "result"))
        return view->result;
    if (str_is(name, "input"))
        return read_value(view, source->memory->input, status);
    if (str_is(name, "context"))
        return read_value(
            view, source->context.data ? source->context : memory_context(source->memory), status);
    if (str_is(name, "instance"))
        return read_value(view, source->memory->instance, status);
    return NULL;
}

static bool find_step(void *context, str name, const struct node **out, pawl_status *status)
{
    const struct view *view = context;
    const struct template_source *source = view->source;
    uint32_t step = plan_find(source->plan, name);
    uint32_t slot = step == STEP_NONE ? STEP_NONE : source->plan->steps[step].result_slot;

    if (slot == STEP_NONE)
        return false;
    *out = slot == source->fresh_slot
               ? view->result
               : read_value(view, kept_view(&source->memory->results[slot]), status);
    return true;
}

pawl_status condition_holds(struct scope *scope, const struct template_source *source,
                            const struct plan_target *target, const struct node *result, bool *out)
{
    struct view view = { scope, source, result };
    struct expr_world world = { find_global, find_step, &view };

    if (!condition_is_pattern(target->condition))
        return expr_holds(scope, target->condition, &world, out);
    *out = condition_matches(target, result);
    return PAWL_OK;
}

/* Which condition of which step cannot be told: "step 'check': condition 2, 'result > 3': attempt to
 * ...". Older versions record the words alone (compiler 3). */
static pawl_status name_condition(struct scope *scope, const struct plan_step *step, uint32_t index,
                                  pawl_status status)
{
    static const char line[] = "condition:1: ", plain[] = "condition: ";
    char words[sizeof scope->error.message];
    const char *shown = words;

    memcpy(words, scope->error.message, sizeof words);
    if (strncmp(words, line, sizeof line - 1) == 0)
        shown += sizeof line - 1;
    else if (strncmp(words, plain, sizeof plain - 1) == 0)
        shown += sizeof plain - 1;
    return scope_fail(scope, status, "step '%.*s': condition %u, '%.*s': %s",
                      STR_ARG(words_shown(step->name)), index + 1,
                      STR_ARG(words_shown(step->targets[index].condition)), shown);
}

pawl_status condition_choose(struct scope *scope, const struct template_source *source,
                             const struct plan_step *step, str result, uint32_t *out)
{
    struct node *value = NULL;
    pawl_status status = PAWL_OK;
    bool holds = false;

    *out = STEP_NONE;
    if (step->way == WAY_BRANCH)
        status = node_read_own(scope, result, &value);
    for (uint32_t i = 0;
         value && i < step->target_count && status == PAWL_OK && (!holds || PLANTED(BRANCH_LAST));
         i++) {
        status = condition_holds(scope, source, &step->targets[i], value, &holds);
        if (status == PAWL_OK && holds)
            *out = step->targets[i].step;
        if (status != PAWL_OK && status != PAWL_NO_MEMORY && source->names_conditions)
            status = name_condition(scope, step, i, status);
    }
    return status;
}
