/* plan.c - what a registration printed, read back; and the handler that is bound to it. */
#include "code/code_int.h"

static pawl_status read_steps(struct scope *scope, const struct node *names, struct code_plan *plan)
{
    str *steps = ARENA_ARRAY(&scope->arena, str, plan->step_count + (names ? names->count : 0));

    if (!steps)
        return scope_no_memory(scope);
    if (plan->step_count)
        memcpy(steps, plan->steps, sizeof *steps * plan->step_count);
    plan->steps = steps;
    for (const struct node *name = names ? names->first : NULL; name; name = name->next)
        steps[plan->step_count++] = name->text;
    return PAWL_OK;
}

static pawl_status read_buffered(struct scope *scope, const struct node *names,
                                 struct code_plan *plan)
{
    plan->buffered = ARENA_ARRAY(&scope->arena, str, names ? names->count + 1u : 1u);
    if (!plan->buffered)
        return scope_no_memory(scope);
    for (const struct node *name = names ? names->first : NULL; name; name = name->next)
        plan->buffered[plan->buffered_count++] = name->text;
    return PAWL_OK;
}

pawl_status code_prepare(struct definition *definition, struct scope *scope)
{
    struct code_plan *plan = ARENA_NEW(&scope->arena, struct code_plan);
    struct node *root = NULL, *name, *version;
    int64_t number = 1;
    pawl_status status;

    if (!plan)
        return scope_no_memory(scope);
    status = definition->plan_text.data ? node_read_json(scope, definition->plan_text, &root)
                                        : PAWL_STORAGE_FAILURE;
    name = node_find(root, "code");
    version = node_find(root, "version");
    if (status == PAWL_NO_MEMORY)
        return status;
    if (status != PAWL_OK || !name || name->kind != NODE_STRING || !version ||
        !node_to_i64(version, &number) || number < 1 || number > UINT32_MAX)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the plan of a code definition is damaged; look closer with 'pawl "
                          "verify'");
    plan->name = name->text;
    plan->version = (uint32_t)number;
    status = read_steps(scope, node_find(root, "calls"), plan);
    plan->call_count = plan->step_count;
    if (status == PAWL_OK)
        status = read_steps(scope, node_find(root, "externals"), plan);
    plan->external_end = plan->step_count;
    if (status == PAWL_OK)
        status = read_steps(scope, node_find(root, "children"), plan);
    if (status == PAWL_OK)
        status = read_buffered(scope, node_find(root, "buffered"), plan);
    if (status == PAWL_OK) {
        definition->plan = plan;
        definition->may_spawn = plan->step_count > plan->external_end;
    }
    return status;
}

void code_bind(struct definition *definition, const struct code_binding *binding)
{
    struct code_plan *plan = definition->plan;

    plan->binding = binding;
}

str code_step_name(const struct definition *definition, uint32_t plan_index)
{
    const struct code_plan *plan = plan_of(definition);

    /* The index may come from the rows of a damaged store. */
    return plan_index < plan->step_count ? plan->steps[plan_index] : STR("?");
}

bool code_step_is_external(const struct definition *definition, uint32_t plan_index)
{
    const struct code_plan *plan = plan_of(definition);

    return plan_index >= plan->call_count && plan_index < plan->external_end;
}

bool code_step_is_spawn(const struct definition *definition, uint32_t plan_index)
{
    const struct code_plan *plan = plan_of(definition);

    return plan_index >= plan->external_end && plan_index < plan->step_count;
}

static const struct code_attempt *find_call(const void *memory, uint32_t ordinal)
{
    const struct code_memory *mine = memory;

    return mine->call.ordinal == ordinal && ordinal > 0 ? &mine->call : NULL;
}

str code_tool_of(const struct definition *definition, const void *memory, uint32_t ordinal)
{
    const struct code_attempt *call = find_call(memory, ordinal);

    return call && call->plan < plan_of(definition)->call_count
               ? code_step_name(definition, call->plan)
               : STR_NONE;
}

pawl_status code_call(const struct definition *definition, const void *memory, uint32_t ordinal,
                      struct scope *scope, struct code_call *out)
{
    const struct code_memory *mine = memory;
    const struct code_attempt *call = find_call(memory, ordinal);
    str args;

    if (!call)
        return scope_fail(scope, PAWL_LEASE_LOST, "attempt %u is over", ordinal);
    args = arena_str(&scope->arena, (str){ mine->args.data, mine->args.size });
    if (mine->args.data && !args.data)
        return scope_no_memory(scope);
    *out = (struct code_call){ .name = code_step_name(definition, call->plan),
                               .args = args,
                               .attempt = call->attempt,
                               .first_ordinal = call->first_ordinal };
    return PAWL_OK;
}
