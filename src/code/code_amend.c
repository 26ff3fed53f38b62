/* code_amend.c - an instance goes on by another registration than it was created with.
 *
 * Steps keep their indexes, so that what was recorded means what it meant; what the new
 * registration has besides comes behind them. The entry `amend` has both: the registration and
 * all steps. */
#include "base/limits.h"
#include "code/code_int.h"

bool plan_has(const struct code_plan *plan, enum code_step_kind kind, str name, uint32_t *index)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == kind && str_eq(plan->steps[i].name, name)) {
            *index = i;
            return true;
        }
    return false;
}

/* ---- A registration more --------------------------------------------------------------------- */

static void add_steps(struct code_plan *plan, enum code_step_kind kind, const char *const *names)
{
    uint32_t index;

    for (; names && *names; names++)
        if (!plan_has(plan, kind, str_of(*names), &index))
            plan->steps[plan->step_count++] = (struct code_step){ str_of(*names), kind };
}

static pawl_status set_buffered(struct scope *scope, const char *const *names,
                                struct code_plan *plan)
{
    plan->buffered = ARENA_ARRAY(&scope->arena, str, names_count(names) + 1);
    TRY_MEMORY(scope, plan->buffered);
    for (; names && *names; names++)
        plan->buffered[plan->buffered_count++] = str_of(*names);
    return PAWL_OK;
}

pawl_status plan_extend(struct scope *scope, const struct code_plan *before,
                        const pawl_code_type *type, struct code_plan *out)
{
    uint32_t most = before->step_count + names_count(type->calls) + names_count(type->externals) +
                    names_count(type->children);

    *out = (struct code_plan){ .name = before->name,
                               .is_replayed = before->is_replayed,
                               .steps = ARENA_ARRAY(&scope->arena, struct code_step, most + 1),
                               .step_count = before->step_count };
    TRY_MEMORY(scope, out->steps);
    if (before->step_count > 0)
        memcpy(out->steps, before->steps, sizeof *out->steps * before->step_count);
    add_steps(out, CODE_CALL, type->calls);
    add_steps(out, CODE_EXTERNAL, type->externals);
    add_steps(out, CODE_CHILD, type->children);
    return set_buffered(scope, type->buffered, out);
}

/* [[WORD,NAME],...] */
void plan_print_steps(const struct code_plan *plan, struct buf *out)
{
    json_open(out, '[');
    for (uint32_t i = 0; i < plan->step_count; i++) {
        json_open(out, '[');
        json_text(out, plan_step_words[plan->steps[i].kind]);
        json_str(out, plan->steps[i].name);
        json_close(out, ']');
    }
    json_close(out, ']');
}

/* ---- Read back ------------------------------------------------------------------------------- */

static pawl_status fail_damaged(struct scope *scope)
{
    return code_fail_entry(scope, "has a plan that cannot follow the one before");
}

static bool read_step(const struct node *node, struct code_step *out)
{
    uint32_t word;

    if (!plan_step_read(node, &word, &out->name))
        return false;
    out->kind = (enum code_step_kind)word;
    return true;
}

/* Those of before have to stay where they were. */
static bool read_steps(const struct code_plan *before, const struct node *list,
                       struct code_plan *plan)
{
    const struct node *node = list->first;

    for (; node; node = node->next, plan->step_count++) {
        struct code_step *step = &plan->steps[plan->step_count];

        if (!read_step(node, step))
            return false;
        if (plan->step_count < before->step_count &&
            (step->kind != before->steps[plan->step_count].kind ||
             !str_eq(step->name, before->steps[plan->step_count].name)))
            return false;
    }
    return plan->step_count >= before->step_count;
}

static pawl_status read_amended(struct scope *scope, const struct code_plan *before,
                                const struct effect *effect, struct code_plan *plan)
{
    struct node *root = NULL, *list = NULL;
    pawl_status status = node_read_json(scope, effect->state, &root);

    if (status == PAWL_OK)
        status = effect->input.data ? node_read_json(scope, effect->input, &list)
                                    : PAWL_STORAGE_FAILURE;
    if (status == PAWL_NO_MEMORY)
        return status;
    if (status != PAWL_OK || list->kind != NODE_ARRAY)
        return fail_damaged(scope);
    plan->steps = ARENA_ARRAY(&scope->arena, struct code_step, list->count + 1u);
    TRY_MEMORY(scope, plan->steps);
    if (!read_steps(before, list, plan))
        return fail_damaged(scope);
    return plan_read_buffered(scope, root, plan);
}

static bool keep_plan(struct arena *arena, struct code_plan *plan)
{
    struct code_step *steps = ARENA_ARRAY(arena, struct code_step, plan->step_count + 1u);
    str *buffered = ARENA_ARRAY(arena, str, plan->buffered_count + 1u);

    for (uint32_t i = 0; steps && i < plan->step_count; i++)
        steps[i] = (struct code_step){ arena_str(arena, plan->steps[i].name), plan->steps[i].kind };
    for (uint32_t i = 0; buffered && i < plan->buffered_count; i++)
        buffered[i] = arena_str(arena, plan->buffered[i]);
    plan->steps = steps;
    plan->buffered = buffered;
    plan->source = arena_str(arena, plan->source);
    return !arena->failed;
}

pawl_status plan_amended(struct scope *scope, const struct code_plan *before,
                         const struct effect *effect, struct arena *arena, struct code_plan **out)
{
    struct code_plan *plan = ARENA_NEW(arena, struct code_plan);

    TRY_MEMORY(scope, plan);
    plan->name = before->name;
    plan->version = before->version;
    plan->source = effect->state;
    TRY(read_amended(scope, before, effect, plan));
    TRY_MEMORY(scope, keep_plan(arena, plan));
    *out = plan;
    return PAWL_OK;
}

bool code_has_plan(const struct effect_list *effects)
{
    return effects_first(effects, EFFECT_PLAN) != NULL;
}

pawl_status code_plan_version(struct scope *scope, const struct effect_list *effects, uint32_t *out)
{
    const struct effect *effect = effects_first(effects, EFFECT_PLAN);
    struct node *root = NULL;
    int64_t version = 0;
    pawl_status status = effect ? node_read_json(scope, effect->state, &root) : PAWL_OK;

    if (status == PAWL_NO_MEMORY)
        return status;
    *out = root && node_to_i64(node_find(root, "version"), &version) && version > 0 &&
                   version <= UINT32_MAX
               ? (uint32_t)version
               : 0;
    return PAWL_OK;
}

pawl_status code_amended(struct scope *scope, const struct definition *definition,
                         const struct effect_list *effects, struct definition **out)
{
    const struct effect *effect = effects_first(effects, EFFECT_PLAN);
    struct definition *amended = arena_copy(&scope->arena, definition, sizeof *definition);
    struct code_plan *plan = NULL;

    TRY_MEMORY(scope, amended);
    if (effect) {
        TRY(plan_amended(scope, plan_of(definition), effect, &scope->arena, &plan));
        plan->binding = plan_of(definition)->binding;
        amended->plan = plan;
    }
    *out = amended;
    return PAWL_OK;
}
