/* sort.c - see sort.h. */
#include "base/sort.h"

/* What is sorted, asked and changed by places. */
struct sorting {
    bool (*is_before)(const struct sorting *sorting, size_t a, size_t b);
    void (*swap)(const struct sorting *sorting, size_t a, size_t b);
    const struct node **nodes;
    node_compare *compare_nodes;
    void *nodes_context;
    uint32_t *indices;
    index_compare *compare_indices;
    const void *indices_context;
};

static void sift_down(const struct sorting *sorting, size_t at, size_t count)
{
    for (size_t child = 2 * at + 1; child < count; at = child, child = 2 * at + 1) {
        if (child + 1 < count && sorting->is_before(sorting, child, child + 1))
            child++;
        if (!sorting->is_before(sorting, at, child))
            return;
        sorting->swap(sorting, at, child);
    }
}

static void sort(const struct sorting *sorting, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sift_down(sorting, at, count);
    for (size_t end = count; end-- > 1;) {
        sorting->swap(sorting, 0, end);
        sift_down(sorting, 0, end);
    }
}

/* ---- Nodes ---- */

static bool is_node_before(const struct sorting *sorting, size_t a, size_t b)
{
    return sorting->compare_nodes(sorting->nodes_context, sorting->nodes[a], sorting->nodes[b]) < 0;
}

static void swap_nodes(const struct sorting *sorting, size_t a, size_t b)
{
    const struct node *kept = sorting->nodes[a];

    sorting->nodes[a] = sorting->nodes[b];
    sorting->nodes[b] = kept;
}

void sort_nodes(const struct node **nodes, size_t count, node_compare *compare, void *context)
{
    sort(&(struct sorting){ .is_before = is_node_before,
                            .swap = swap_nodes,
                            .nodes = nodes,
                            .compare_nodes = compare,
                            .nodes_context = context },
         count);
}

int node_by_key(void *context, const struct node *a, const struct node *b)
{
    (void)context;
    return str_compare(a->key, b->key);
}

int compare_strs(const void *a, const void *b)
{
    return str_compare(*(const str *)a, *(const str *)b);
}

int compare_numbers_first(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* ---- Indices ---- */

static bool is_index_before(const struct sorting *sorting, size_t a, size_t b)
{
    return sorting->compare_indices(sorting->indices_context, sorting->indices[a],
                                    sorting->indices[b]) < 0;
}

static void swap_indices(const struct sorting *sorting, size_t a, size_t b)
{
    uint32_t kept = sorting->indices[a];

    sorting->indices[a] = sorting->indices[b];
    sorting->indices[b] = kept;
}

void sort_indices(uint32_t *items, uint32_t count, index_compare *compare, const void *context)
{
    sort(&(struct sorting){ .is_before = is_index_before,
                            .swap = swap_indices,
                            .indices = items,
                            .compare_indices = compare,
                            .indices_context = context },
         count);
}
