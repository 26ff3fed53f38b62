/* renew.c - a newer build takes the turns of an instance: what it declares is in force from then on, by
 * an entry `amend`. */
#include "base/limits.h"
#include "code/code_int.h"

/* A state that was migrated before registrations were recorded with it says nothing. */
str code_declared(const struct work *work, const struct code_binding *binding)
{
    const struct code_plan *plan = plan_in_force(work->definition, work->memory);

    return str_eq(plan->source, binding->source) || (work->memory->version > 0 && !work->memory->plan)
               ? STR_NONE
               : plan->source;
}

const struct code_plan *code_work_plan(const struct work *work)
{
    return work->plan ? work->plan : plan_in_force(work->definition, work->memory);
}

enum code_step_kind code_called_kind(const struct work *work)
{
    const pawl_code_type *type = plan_of(work->definition)->binding->type;

    if (work->answer.is_spawn)
        return CODE_CHILD;
    for (const char *const *name = type->calls; name && *name; name++)
        if (str_is(work->answer.call, *name))
            return CODE_CALL;
    return CODE_EXTERNAL;
}

static bool is_plan_due(const struct work *work, const struct code_binding *binding)
{
    const struct code_plan *plan = plan_in_force(work->definition, work->memory);
    uint32_t index;

    if (!binding->source.data || str_eq(plan->source, binding->source))
        return false;
    return work->answer.migrated.data ||
           (work->answer.call.data &&
            !plan_has(plan, code_called_kind(work), work->answer.call, &index));
}

static pawl_status add_plan(struct work *work, const struct code_binding *binding,
                            struct effect_list *effects)
{
    struct code_plan *plan = ARENA_NEW(&work->scope->arena, struct code_plan);
    struct effect effect = { .kind = EFFECT_PLAN, .state = binding->source };
    struct buf buf;
    pawl_status status =
        plan ? plan_extend(work->scope, plan_in_force(work->definition, work->memory), binding->type,
                           plan)
             : scope_no_memory(work->scope);

    if (status != PAWL_OK)
        return status;
    buf_init(&buf, work->scope->arena.heap, LIMIT_SCOPE);
    plan_print_steps(plan, &buf);
    effect.input = buf_keep(&buf, &work->scope->arena);
    buf_fini(&buf);
    if (!effect.input.data)
        return scope_no_memory(work->scope);
    work->plan = plan;
    return code_add(work, effects, effect);
}

pawl_status code_add_amend(struct work *work, const struct code_binding *binding, uint32_t version)
{
    bool has_plan = is_plan_due(work, binding), is_migrated = work->answer.migrated.data != NULL;
    struct effect state = { .kind = EFFECT_STATE, .state = work->answer.migrated };
    struct draft *draft;
    pawl_status status = PAWL_OK;

    work->plan = NULL;
    if (!has_plan && !is_migrated)
        return PAWL_OK;
    draft = decision_add(work->scope, &work->decision, LIFE_T_AMEND);
    if (!draft)
        return scope_no_memory(work->scope);
    if (is_migrated) {
        work->before = work->answer.migrated;
        status = code_add(work, &draft->effects, state);
    }
    if (status == PAWL_OK && is_migrated)
        status = code_add(work, &draft->effects,
                          (struct effect){ .kind = EFFECT_VERSION, .attempt = version });
    return status == PAWL_OK && has_plan ? add_plan(work, binding, &draft->effects) : status;
}
