/* call.c - what a runner and a reader ask of a flow. */
#include "flow/flow_int.h"

pawl_status flow_call(const struct definition *definition, const void *state, uint32_t ordinal,
                      struct scope *scope, struct flow_call *out)
{
    const struct plan *plan = plan_of(definition);
    const struct flow_memory *memory = state;
    const struct attempt *attempt = memory_find(memory, ordinal);
    const struct plan_step *step;
    pawl_status status;
    str args;

    if (!attempt)
        return scope_fail(scope, PAWL_LEASE_LOST, "attempt %u is over", ordinal);
    step = &plan->steps[attempt->plan];
    status = template_expand(&(struct template_source){ .plan = plan, .memory = memory }, step,
                             scope, &args);
    if (status != PAWL_OK)
        return status;
    *out = (struct flow_call){ .step = step->name,
                               .tool = step->tool,
                               .args = args,
                               .attempt = attempt->attempt,
                               .first_ordinal = attempt->first_ordinal,
                               .timeout_ms = step->timeout_ms };
    return PAWL_OK;
}

str flow_step_name(const struct definition *definition, uint32_t plan_index)
{
    /* The index may come from the rows of a damaged store. */
    return plan_index < plan_of(definition)->count ? plan_of(definition)->steps[plan_index].name
                                                   : STR("?");
}

uint32_t flow_step_count(const struct definition *definition)
{
    return plan_of(definition)->count;
}

bool flow_has_step(const struct definition *definition, str name)
{
    return plan_find(plan_of(definition), name) != STEP_NONE;
}

bool flow_step_is_idempotent(const struct definition *definition, uint32_t plan_index)
{
    return plan_index < plan_of(definition)->count &&
           plan_of(definition)->steps[plan_index].is_idempotent;
}
