/* call.c - what a runner and a reader ask of a flow. */
#include "flow/compile.h"
#include "flow/map_items.h"
#include "flow/undo.h"

#define WATCHDOG_MS 120000 /* B33: of a step that says nothing itself */

pawl_status flow_call(const struct definition *definition, const void *state, uint32_t ordinal,
                      struct scope *scope, struct flow_call *out)
{
    const struct flow_memory *memory = state;
    const struct plan *plan = memory->plan;
    const struct attempt *attempt = memory_find(memory, ordinal);
    const struct plan_step *step;
    struct template_source source = { .plan = plan, .memory = memory };
    struct tree_errors errors = memory->errors;
    struct tree_walk walk = { .plan = plan, .states = memory->nodes };
    str args;

    walk.errors = tree_errors_of(definition->compiler, &errors);
    if (!attempt)
        return scope_fail(scope, PAWL_LEASE_LOST, "attempt %u is over", ordinal);
    step = &plan->steps[attempt->plan];
    if (plan->is_tree)
        source.last_error =
            tree_last_error(&walk, step->of == STEP_NONE ? step->node : plan->steps[step->of].node);
    source.item =
        map_item_of(plan, memory_find_map(memory, attempt->map), attempt->plan, attempt->item);
    args = memory_undo_args(memory, attempt->plan);
    if (args.data)
        args = arena_str(&scope->arena, args);
    else
        TRY(template_expand(&source, step, scope, &args));
    if (!step->has_template)
        args = arena_str(&scope->arena, args);
    *out =
        (struct flow_call){ .is_timed = step->timeout_ms > 0,
                            .is_idempotent = step->is_idempotent,
                            .is_once = step->is_once,
                            .step = arena_str(&scope->arena, step->name),
                            .tool = arena_str(&scope->arena, step->tool),
                            .args = args,
                            .attempt = attempt->attempt,
                            .first_ordinal = attempt->first_ordinal,
                            .key = arena_str(&scope->arena, attempt->key),
                            .timeout_ms = step->timeout_ms > 0 ? step->timeout_ms : WATCHDOG_MS };
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

str flow_tool_of(const struct definition *definition, const void *memory, uint32_t ordinal)
{
    const struct plan *plan = ((const struct flow_memory *)memory)->plan;
    const struct attempt *attempt = memory_find(memory, ordinal);
    const struct plan_step *step = attempt ? &plan->steps[attempt->plan] : NULL;

    (void)definition;
    return step && step_is_taken(step) ? step->tool : STR_NONE;
}

/* It was given in place of an idempotency key, which a step without a tool does not need. */
str flow_child_before(const void *state, uint32_t ordinal)
{
    const struct flow_memory *memory = state;
    const struct attempt *attempt = memory_find(memory, ordinal);

    return attempt && memory->plan->steps[attempt->plan].kind->may_spawn ? attempt->key : STR_NONE;
}

/* The index may come from the rows of a damaged store: then NULL. */
static const struct plan_step *step_at(const struct definition *definition, uint32_t plan_index)
{
    const struct plan *plan = plan_of(definition);

    return plan_index < plan->count ? &plan->steps[plan_index] : NULL;
}

str flow_step_name(const struct definition *definition, uint32_t plan_index)
{
    const struct plan_step *step = step_at(definition, plan_index);

    return step ? step->name : STR("?");
}

str flow_plan_tool(const struct definition *definition, uint32_t plan_index)
{
    const struct plan_step *step = step_at(definition, plan_index);

    return step ? step->tool : STR_NONE;
}

str flow_step_tool(const struct definition *definition, uint32_t plan_index)
{
    const struct plan_step *step = step_at(definition, plan_index);

    return step && step_is_taken(step) ? step->tool : STR_NONE;
}

/* A path of a tree, like do.1.dopar.0: groups and places, a group first and a place last. */
static bool is_path(str name)
{
    static const char *const groups[] = { "do",     "dopar", "try", "rescue", "finally",
                                          "select", "if",    "map", NULL };
    bool is_first = true;
    uint64_t place;

    for (;;) {
        str word = str_before(name, '.');

        if (!str_is_one_of(word, groups) && (is_first || !str_to_u64(word, &place)))
            return false;
        if (word.size == name.size)
            return !is_first && str_to_u64(word, &place);
        name = str_from(name, word.size + 1);
        is_first = false;
    }
}

static bool is_unnamed(const struct definition *definition, const struct plan_step *step)
{
    return step && plan_of(definition)->is_tree && is_path(step->name);
}

str flow_unnamed_tool(const struct definition *definition, uint32_t plan_index)
{
    const struct plan_step *step = step_at(definition, plan_index);

    return is_unnamed(definition, step) ? step->tool : STR_NONE;
}

const char *flow_unnamed_kind(const struct definition *definition, uint32_t plan_index)
{
    const struct plan_step *step = step_at(definition, plan_index);

    return is_unnamed(definition, step) && !step->tool.data ? step->kind->word : NULL;
}

str flow_step_name_now(const void *memory, uint32_t plan_index)
{
    const struct plan *plan = ((const struct flow_memory *)memory)->plan;

    return plan_index < plan->count ? plan->steps[plan_index].name : STR("?");
}

uint32_t flow_step_count(const struct definition *definition)
{
    return plan_of(definition)->count;
}

bool flow_has_step(const struct definition *definition, str name)
{
    return plan_find(plan_of(definition), name) != STEP_NONE;
}

const char *flow_step_kind(const struct definition *definition, uint32_t plan_index)
{
    return plan_of(definition)->steps[plan_index].kind->word;
}

bool flow_step_is_joined(const struct definition *definition, uint32_t plan_index)
{
    return plan_is_joined(plan_of(definition), plan_index);
}

const char *flow_step_why(const struct definition *definition, uint32_t plan_index)
{
    const struct plan_step *step = step_at(definition, plan_index);

    return step ? step->kind->why : NULL;
}

uint32_t flow_step_attempts(const struct definition *definition, uint32_t plan_index)
{
    const struct plan_step *step = step_at(definition, plan_index);

    return step ? step->attempt_count_max : 0;
}

uint32_t flow_step_node(const struct definition *definition, uint32_t plan_index)
{
    return plan_of(definition)->is_tree ? plan_of(definition)->steps[plan_index].node : NODE_NONE;
}

uint32_t flow_step_at(const struct definition *definition, uint32_t node)
{
    const struct plan *plan = plan_of(definition);

    return plan->is_tree && node < plan->node_count ? plan->nodes[node].step : STEP_NONE;
}

bool flow_step_is_taken(const struct definition *definition, uint32_t plan_index)
{
    return step_is_taken(&plan_of(definition)->steps[plan_index]);
}

uint32_t flow_live_ordinal(const void *state, uint32_t plan_index)
{
    const struct flow_memory *memory = state;

    for (uint32_t i = 0; i < memory->live_count; i++)
        if (memory->live[i].plan == plan_index)
            return memory->live[i].ordinal;
    return 0;
}

void flow_mark_live(const void *state, bool *is_live)
{
    const struct flow_memory *memory = state;

    for (uint32_t i = 0; i < memory->live_count; i++)
        is_live[memory->live[i].plan] = true;
}

void flow_print_context(const void *memory, struct buf *out)
{
    context_print(((const struct flow_memory *)memory)->context, out);
}

bool flow_keeps(const struct definition *definition, str signal)
{
    return plan_keeps(plan_of(definition), signal);
}

bool flow_asks_instance(const struct definition *definition)
{
    return plan_of(definition)->asks_instance;
}
