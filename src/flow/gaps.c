/* gaps.c - what the templates of a flow read of an input that does not have it. */
#include "flow/flow_int.h"

struct search {
    struct scope *scope;
    str input;
    struct input_gap *gaps;
    uint32_t count, max;
};

static void add_gap(struct search *search, str path, str step)
{
    for (uint32_t i = 0; i < search->count; i++)
        if (str_eq(search->gaps[i].path, path))
            return;
    if (search->count < search->max)
        search->gaps[search->count++] = (struct input_gap){ .path = path, .step = step };
}

/* `text` is JSON as a plan keeps it: outside its strings it has no "{{". A path with an escape in
 * it is passed over. */
static void search_text(struct search *search, str text, str step)
{
    struct template_part part;

    while (template_next(&text, &part))
        if (part.kind == TEMPLATE_INPUT && part.path.data && !str_has(part.path, '\\') &&
            !template_walk(&search->scope->arena, search->input, part.path).data)
            add_gap(search, part.path, step);
}

uint32_t flow_input_gaps(struct scope *scope, const struct definition *definition, str input,
                         struct input_gap *out, uint32_t max)
{
    const struct plan *plan = plan_of(definition);
    struct search search = { .scope = scope, .input = input, .gaps = out, .max = max };

    for (uint32_t i = 0; i < plan->count && search.count < max; i++)
        search_text(&search, plan->steps[i].args, plan->steps[i].name);
    if (plan->output.data)
        search_text(&search, plan->output, STR("output"));
    return search.count;
}
