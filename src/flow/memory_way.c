/* memory_way.c - who began an attempt of a graph: the way of the step that ended, or a join.
 *
 * An entry says what began, not why. It matters only where a branch waits at a join whose step
 * other ways lead to as well: if one of them begins that step, the branch still waits (B15). */
#include "base/json_scan.h"
#include "flow/flow_int.h"

uint32_t memory_taken_arm(str payload, struct scope *scope)
{
    struct node arm;
    int64_t number;
    str value;

    if (!json_member(&scope->arena, payload, STR("arm"), &value))
        return 0;
    json_peek(&scope->arena, value, &arm);
    return node_to_i64(&arm, &number) && number >= 0 ? (uint32_t)number : 0;
}

/* Which way the step took, with this result or error: the memory has by now what its conditions
 * read. */
static pawl_status find_chosen(const struct flow_memory *memory, const struct plan_step *step,
                               str result, bool is_failure, struct scope *scope, uint32_t *chosen)
{
    struct template_source source = { .plan = memory->plan,
                                      .memory = memory,
                                      .fresh_slot = STEP_NONE };
    pawl_status status = is_failure ? condition_choose_error(scope, &source, step, result, chosen)
                                    : condition_choose(scope, &source, step, result, chosen);

    if (status_is_trouble(status))
        return status;
    if (status != PAWL_OK) { /* it could be told once, or nothing had begun */
        scope->error = (pawl_error){ .status = PAWL_OK };
        *chosen = STEP_NONE;
    }
    if (step->way == WAY_ARMS && !is_failure)
        *chosen = memory_taken_arm(result, scope);
    return PAWL_OK;
}

/* How many attempts of `plan` the way of a step begins. */
static pawl_status count_begun(const struct flow_memory *memory, const struct plan_step *step,
                               str result, bool is_failure, uint32_t plan, struct scope *scope,
                               uint32_t *out)
{
    uint32_t chosen = STEP_NONE;

    TRY(find_chosen(memory, step, result, is_failure, scope, &chosen));
    *out = is_failure && chosen != STEP_NONE && step->errors[chosen].step == plan;
    if (is_failure)
        return PAWL_OK;
    for (uint32_t i = 0; i < step->target_count; i++)
        *out += way_begins(step, i, chosen) && step->targets[i].step == plan;
    return PAWL_OK;
}

pawl_status memory_end_join(struct flow_memory *memory, const struct attempt *subject,
                            const struct entry_view *entry, const struct effect *effect,
                            struct scope *scope)
{
    str result = entry->payload.data ? entry->payload : RESULT_NULL;
    uint32_t before = 0, begun = 0;

    for (const struct effect *other = entry->effects->items; other < effect; other++)
        before += other->kind == EFFECT_STEP && other->plan == effect->plan;
    if (subject->ordinal > 0)
        TRY(count_begun(memory, &memory->plan->steps[subject->plan], result,
                        lifecycle_is_failure(entry->transition), effect->plan, scope, &begun));
    /* What the way begins comes first, then the joins that are complete. */
    if (effect->attempt == 1 && before >= begun) {
        memory->joins[effect->plan] = false;
        memory->join_count--;
    }
    return PAWL_OK;
}
