/* sources.c - what the arguments of a step are made from: for a reader of a long history, which
 * looks for these results alone and does not fold what came before. */
#include "expr/expr.h"
#include "flow/flow_int.h"
#include "flow/memory.h"

struct asking {
    const struct plan *plan;
    bool *is_asked; /* by step */
    bool is_whole;
};

/* As template.c finds it: each step that the path may mean. */
static void ask_result(struct asking *asking, str path)
{
    uint32_t index;
    str rest;

    for (size_t below = SIZE_MAX;
         path.data && (index = template_step(asking->plan, path, below, &rest)) != STEP_NONE;
         below = asking->plan->steps[index].name.size)
        asking->is_asked[index] = true;
}

/* The last result of each step that puts something there, in their order, gives the value; but the
 * order of the members of an object is that in which they were put first. The context of a tree has
 * errors as well, and that of a graph the last one that led to another step. */
static void ask_context(struct asking *asking, str path)
{
    asking->is_whole = asking->is_whole || asking->plan->is_tree || !path.data ||
                       str_starts(path, CONTEXT_LAST_ERROR);
    for (uint32_t i = 0; !asking->is_whole && i < asking->plan->count; i++)
        for (uint32_t j = 0; j < asking->plan->steps[i].augment_count; j++) {
            str dest = asking->plan->steps[i].augments[j].dest;

            asking->is_whole =
                asking->is_whole ||
                (dest.size > path.size && str_starts(dest, path) && dest.data[path.size] == '.');
            asking->is_asked[i] =
                asking->is_asked[i] || str_eq(str_before(dest, '.'), str_before(path, '.'));
        }
}

/* Of the context an expression may look at anything. */
static void ask_expression(struct asking *asking, str text)
{
    size_t at = 0;
    str name;

    asking->is_whole = asking->is_whole || memmem(text.data, text.size, "context", 7);
    while (expr_next_step(text, &at, &name)) {
        uint32_t index = plan_find(asking->plan, name);

        if (index != STEP_NONE)
            asking->is_asked[index] = true;
    }
}

static void ask(struct asking *asking, const struct node *node)
{
    struct template_part part;

    for (str rest = node->text;
         node->kind == NODE_STRING && template_next(asking->plan->calculates, &rest, &part);) {
        if (part.kind == TEMPLATE_VALUE)
            ask_expression(asking, part.path);
        if (part.kind == TEMPLATE_STEP)
            ask_result(asking, part.path);
        if (part.kind == TEMPLATE_CONTEXT)
            ask_context(asking, part.path);
    }
    for (const struct node *child = node->first; child; child = child->next)
        ask(asking, child);
}

pawl_status flow_sources(const struct definition *definition, uint32_t plan_index,
                         struct scope *scope, struct flow_sources *out)
{
    const struct plan *plan = plan_of(definition);
    struct asking asking = { .plan = plan };

    ASSERT(plan_index < plan->count);
    *out = (struct flow_sources){ 0 };
    if (!plan->steps[plan_index].has_template)
        return PAWL_OK;
    /* Its item, or what was noted for it, is in the memory alone. */
    if (plan->steps[plan_index].of != STEP_NONE || plan->steps[plan_index].undoes != STEP_NONE) {
        out->is_whole = true;
        return PAWL_OK;
    }
    asking.is_asked = ARENA_ARRAY(&scope->arena, bool, plan->count);
    out->steps = ARENA_ARRAY(&scope->arena, uint32_t, plan->count);
    TRY_MEMORY(scope, asking.is_asked && out->steps);
    ask(&asking, plan->steps[plan_index].args_node);
    out->is_whole = asking.is_whole;
    for (uint32_t i = 0; i < plan->count; i++)
        if (asking.is_asked[i])
            out->steps[out->count++] = i;
    return PAWL_OK;
}

uint32_t flow_done(const void *state, uint32_t plan_index)
{
    const struct flow_memory *memory = state;

    return memory->done && plan_index < memory->plan->count ? memory->done[plan_index]
                                                            : FLOW_DONE_UNKNOWN;
}

pawl_status flow_recall_live(void *memory, const struct flow_attempt *attempt, struct scope *scope,
                             struct arena *arena)
{
    struct attempt live = { .plan = attempt->plan,
                            .ordinal = attempt->ordinal,
                            .attempt = attempt->attempt,
                            .first_ordinal = attempt->ordinal,
                            .status = STEP_READY };

    return memory_add_live(memory, &live, arena) ? PAWL_OK : scope_no_memory(scope);
}
