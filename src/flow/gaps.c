/* gaps.c - what the templates of a flow read of an input that does not have it. */
#include "flow/flow_int.h"

struct search {
    struct scope *scope;
    str input;
    struct input_gap *gaps;
    uint32_t count, max;
    bool calculates;
};

static void add_gap(struct search *search, str path, str step)
{
    for (uint32_t i = 0; i < search->count; i++)
        if (str_eq(search->gaps[i].path, path))
            return;
    if (search->count < search->max)
        search->gaps[search->count++] = (struct input_gap){ .path = path, .step = step };
}

/* What an expression looks at is not followed. */
static void search_node(struct search *search, const struct node *node, str step)
{
    struct template_part part;

    for (str rest = node->text;
         node->kind == NODE_STRING && template_next(search->calculates, &rest, &part);)
        if (part.kind == TEMPLATE_INPUT && part.path.data &&
            !template_walk(&search->scope->arena, search->input, part.path).data)
            add_gap(search, part.path, step);
    for (const struct node *child = node->first; child; child = child->next)
        search_node(search, child, step);
}

uint32_t flow_input_gaps(struct scope *scope, const struct definition *definition, str input,
                         struct input_gap *out, uint32_t max)
{
    const struct plan *plan = plan_of(definition);
    struct search search = {
        .scope = scope, .input = input, .gaps = out, .max = max, .calculates = plan->calculates
    };

    for (uint32_t i = 0; i < plan->count && search.count < max; i++)
        search_node(&search, plan->steps[i].args_node, plan->steps[i].name);
    if (plan->output_node)
        search_node(&search, plan->output_node, STR("output"));
    return search.count;
}
