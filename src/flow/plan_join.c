/* plan_join.c - which steps of a graph can still reach which join (B15).
 *
 * A join's target begins when no live step can still arrive. Found once, when
 * the plan is loaded: a bit for each step and join, by walking the ways backwards. */
#include "flow/plan.h"

/* Where ways come from: those into step s are from[start[s] .. start[s + 1]). */
struct origins {
    uint32_t *start, *from, *stack;
};

static bool has_bit(const uint8_t *bits, uint32_t index)
{
    return bits[index / 8] >> index % 8 & 1;
}

static void set_bit(uint8_t *bits, uint32_t index)
{
    bits[index / 8] |= (uint8_t)(1u << index % 8);
}

bool plan_is_joined(const struct plan *plan, uint32_t step)
{
    return !plan->is_tree && step < plan->count && plan->reach[step];
}

bool plan_can_reach(const struct plan *plan, uint32_t join, uint32_t step)
{
    return has_bit(plan->reach[join], step);
}

static bool find_origins(struct scope *scope, const struct plan *plan, struct origins *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        count += step_lead_count(&plan->steps[i]);
    out->start = ARENA_ARRAY(&scope->arena, uint32_t, plan->count + 2);
    out->from = ARENA_ARRAY(&scope->arena, uint32_t, count + 1);
    out->stack = ARENA_ARRAY(&scope->arena, uint32_t, plan->count);
    if (!out->start || !out->from || !out->stack)
        return false;
    for (uint32_t i = 0; i < plan->count; i++)
        for (uint32_t t = 0; t < step_lead_count(&plan->steps[i]); t++)
            out->start[step_lead(&plan->steps[i], t) + 2]++;
    for (uint32_t i = 2; i < plan->count + 2; i++)
        out->start[i] += out->start[i - 1];
    for (uint32_t i = 0; i < plan->count; i++)
        for (uint32_t t = 0; t < step_lead_count(&plan->steps[i]); t++)
            out->from[out->start[step_lead(&plan->steps[i], t) + 1]++] = i;
    return true;
}

/* Who goes through the join's own target has arrived already: ways into it are not followed
 * further back, except the joining ones it all begins with. */
static void spread(const struct plan *plan, const struct origins *origins, uint8_t *bits,
                   uint32_t join)
{
    uint32_t depth = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].way == WAY_JOIN && plan->steps[i].targets[0].step == join) {
            set_bit(bits, i);
            origins->stack[depth++] = i;
        }
    while (depth > 0) {
        uint32_t step = origins->stack[--depth];

        if (step == join)
            continue;
        for (uint32_t i = origins->start[step]; i < origins->start[step + 1]; i++)
            if (!has_bit(bits, origins->from[i])) {
                set_bit(bits, origins->from[i]);
                origins->stack[depth++] = origins->from[i];
            }
    }
}

pawl_status plan_find_reach(struct scope *scope, struct plan *plan)
{
    struct origins origins;

    plan->reach = ARENA_ARRAY(&scope->arena, uint8_t *, plan->count);
    TRY_MEMORY(scope, plan->reach && find_origins(scope, plan, &origins));
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t join = plan->steps[i].way == WAY_JOIN ? plan->steps[i].targets[0].step : STEP_NONE;

        if (join == STEP_NONE || plan->reach[join])
            continue;
        plan->reach[join] = ARENA_ARRAY(&scope->arena, uint8_t, plan->count / 8 + 1);
        TRY_MEMORY(scope, plan->reach[join]);
        spread(plan, &origins, plan->reach[join], join);
    }
    return PAWL_OK;
}
