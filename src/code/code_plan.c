/* code_plan.c - what a registration printed, read back; and the handler that is bound to it. */
#include "code/code_int.h"
#include "model/live_rows.h"

static pawl_status read_steps(struct scope *scope, const struct node *names,
                              enum code_step_kind kind, struct code_plan *plan)
{
    struct code_step *steps =
        ARENA_ARRAY(&scope->arena, struct code_step, plan->step_count + (names ? names->count : 0));

    TRY_MEMORY(scope, steps);
    if (plan->step_count)
        memcpy(steps, plan->steps, sizeof *steps * plan->step_count);
    plan->steps = steps;
    for (const struct node *name = names ? names->first : NULL; name; name = name->next)
        steps[plan->step_count++] = (struct code_step){ name->text, kind };
    return PAWL_OK;
}

pawl_status plan_read_buffered(struct scope *scope, const struct node *registration,
                               struct code_plan *plan)
{
    const struct node *names = node_find(registration, "buffered");

    plan->buffered = ARENA_ARRAY(&scope->arena, str, names ? names->count + 1u : 1u);
    TRY_MEMORY(scope, plan->buffered);
    for (const struct node *name = names ? names->first : NULL; name; name = name->next)
        plan->buffered[plan->buffered_count++] = name->text;
    return PAWL_OK;
}

bool plan_is_replayed(const struct node *registration)
{
    const struct node *replay = node_find(registration, "replay");

    return replay && str_is(replay->raw, "true");
}

/* A new build of the same version may await its first signal: rows of waits are always possible. */
static unsigned rows_of(const struct code_plan *plan)
{
    unsigned rows = ROWS_TIMERS | ROWS_WAITS;

    if (plan->step_count > 0)
        rows |= ROWS_STEPS;
    if (plan->step_count > 0 && plan->steps[plan->step_count - 1].kind == CODE_CHILD)
        rows |= ROWS_CHILDREN;
    return rows;
}

pawl_status code_prepare(struct definition *definition, struct scope *scope)
{
    struct code_plan *plan = ARENA_NEW(&scope->arena, struct code_plan);
    struct node *root = NULL, *name, *version;
    int64_t number = 1;
    pawl_status status;

    TRY_MEMORY(scope, plan);
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
    plan->source = definition->plan_text;
    TRY(read_steps(scope, node_find(root, "calls"), CODE_CALL, plan));
    TRY(read_steps(scope, node_find(root, "externals"), CODE_EXTERNAL, plan));
    TRY(read_steps(scope, node_find(root, "children"), CODE_CHILD, plan));
    TRY(plan_read_buffered(scope, root, plan));
    plan->is_replayed = plan_is_replayed(root);
    definition->plan = plan;
    definition->live_rows = rows_of(plan);
    return PAWL_OK;
}

void code_bind(struct definition *definition, const struct code_binding *binding)
{
    struct code_plan *plan = definition->plan;

    plan->binding = binding;
}

/* The index may come from the rows of a damaged store. */
static str step_name(const struct code_plan *plan, uint32_t index)
{
    return index < plan->step_count ? plan->steps[index].name : STR("?");
}

static bool is_step(const struct code_plan *plan, uint32_t index, enum code_step_kind kind)
{
    return index < plan->step_count && plan->steps[index].kind == kind;
}

str code_step_name(const struct definition *definition, uint32_t plan_index)
{
    return step_name(plan_of(definition), plan_index);
}

const char *code_step_why(const struct definition *definition, uint32_t plan_index)
{
    const struct code_plan *plan = plan_of(definition);

    return is_step(plan, plan_index, CODE_EXTERNAL) ? "step"
           : is_step(plan, plan_index, CODE_CHILD)  ? "child"
                                                    : NULL;
}

uint32_t code_version(const struct definition *definition)
{
    return plan_of(definition)->version;
}

uint32_t code_step_count(const struct definition *definition)
{
    return plan_of(definition)->step_count;
}

str code_step_name_now(const struct definition *definition, const void *memory, uint32_t plan_index)
{
    return step_name(plan_in_force(definition, memory), plan_index);
}

bool code_memory_spawns(const struct definition *definition, const struct code_memory *memory,
                        uint32_t plan_index)
{
    return is_step(plan_in_force(definition, memory), plan_index, CODE_CHILD);
}

str code_type_name(const struct definition *definition)
{
    return plan_of(definition)->name;
}

bool code_runs_here(const struct definition *definition)
{
    const struct code_binding *binding = plan_of(definition)->binding;

    return binding && binding->run == code_run;
}

str code_tool_of(const struct definition *definition, const void *memory, uint32_t ordinal)
{
    const struct code_attempt *call = code_memory_call(memory, ordinal);

    return call && is_step(plan_in_force(definition, memory), call->plan, CODE_CALL)
               ? code_step_name_now(definition, memory, call->plan)
               : STR_NONE;
}

pawl_status code_call(const struct definition *definition, const void *memory, uint32_t ordinal,
                      struct scope *scope, struct code_call *out)
{
    const struct code_memory *mine = memory;
    const struct code_attempt *call = code_memory_call(mine, ordinal);
    str key = STR_NONE;

    if (!call)
        return scope_fail(scope, PAWL_LEASE_LOST, "attempt %u is over", ordinal);
    if (call->key.size > 0)
        key = arena_str(&scope->arena, (str){ call->key.data, call->key.size });
    *out = (struct code_call){
        .name = arena_str(&scope->arena, code_step_name_now(definition, mine, call->plan)),
        .tool = arena_str(&scope->arena, code_tool_of(definition, memory, ordinal)),
        .args = arena_str(&scope->arena, (str){ call->args.data, call->args.size }),
        .key = key,
        .attempt = call->attempt,
        .first_ordinal = call->first_ordinal,
        .number = call->number,
        .mark = mine->journal.taken_mark
    };
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}
