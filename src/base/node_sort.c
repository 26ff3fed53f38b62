/* node_sort.c - nodes in an order.
 *
 * Heapsort: no hostile choice of keys makes it slow (as it would a hash table), and, unlike qsort(), it
 * takes no memory behind the host's back. */
#include "base/node.h"

struct sorting {
    const struct node **nodes;
    node_compare *compare;
    void *context;
};

static bool is_before(const struct sorting *sorting, size_t a, size_t b)
{
    return sorting->compare(sorting->context, sorting->nodes[a], sorting->nodes[b]) < 0;
}

static void swap(const struct sorting *sorting, size_t a, size_t b)
{
    const struct node *kept = sorting->nodes[a];

    sorting->nodes[a] = sorting->nodes[b];
    sorting->nodes[b] = kept;
}

static void sift_down(const struct sorting *sorting, size_t at, size_t count)
{
    for (size_t child = 2 * at + 1; child < count; at = child, child = 2 * at + 1) {
        if (child + 1 < count && is_before(sorting, child, child + 1))
            child++;
        if (!is_before(sorting, at, child))
            return;
        swap(sorting, at, child);
    }
}

void node_sort(const struct node **nodes, size_t count, node_compare *compare, void *context)
{
    struct sorting sorting = { nodes, compare, context };

    for (size_t at = count / 2; at-- > 0;)
        sift_down(&sorting, at, count);
    for (size_t end = count; end-- > 1;) {
        swap(&sorting, 0, end);
        sift_down(&sorting, 0, end);
    }
}
