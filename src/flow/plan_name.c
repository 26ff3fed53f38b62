/* plan_name.c - the words of a plan, and its steps by name. */
#include "flow/plan.h"

/* clang-format off */
static const char *const way_kind_words[] = {
#define X(name, word) [WAY_##name] = (word),
    WAY_MAP(X)
#undef X
};

static const char *const node_kind_words[] = {
#define X(name, word) [PLAN_##name] = (word),
    NODE_KIND_MAP(X)
#undef X
};
/* clang-format on */

const char *way_kind_name(enum way_kind kind)
{
    return way_kind_words[kind];
}

const char *plan_node_kind_name(enum plan_node_kind kind)
{
    return node_kind_words[kind];
}

static bool is_before(const struct plan_name *left, const struct plan_name *right)
{
    int order = str_compare(left->text, right->text);

    return order != 0 ? order < 0 : left->step < right->step;
}

/* Let the name at `root` sink to its place in the heap of the first `count`. */
static void sink(struct plan_name *names, uint32_t root, uint32_t count)
{
    struct plan_name name = names[root];

    for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && is_before(&names[child], &names[child + 1]))
            child++;
        if (!is_before(&name, &names[child]))
            break;
        names[root] = names[child];
        root = child;
    }
    names[root] = name;
}

/* Heapsort: no document makes it slow, and unlike qsort() it takes no memory. */
void plan_sort_names(struct plan_name *names, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sink(names, i, count);
    for (uint32_t last = count; last-- > 1;) {
        struct plan_name greatest = names[0];

        names[0] = names[last];
        names[last] = greatest;
        sink(names, 0, last);
    }
}

const struct plan_name *plan_find_name(const struct plan_name *names, uint32_t count, str text)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (str_compare(names[middle].text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && str_eq(names[low].text, text) ? &names[low] : NULL;
}

uint32_t plan_find(const struct plan *plan, str name)
{
    const struct plan_name *found = plan_find_name(plan->names, plan->count, name);

    return found ? found->step : STEP_NONE;
}
