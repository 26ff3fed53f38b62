/* sort.c - heapsort: n log n whatever the input, in place. */
#include "machine/machine_int.h"

struct sorting {
    uint32_t *items;
    int (*compare)(const void *context, uint32_t a, uint32_t b);
    const void *context;
};

static bool is_before(const struct sorting *sorting, uint32_t a, uint32_t b)
{
    return sorting->compare(sorting->context, sorting->items[a], sorting->items[b]) < 0;
}

static void swap(const struct sorting *sorting, uint32_t a, uint32_t b)
{
    uint32_t item = sorting->items[a];

    sorting->items[a] = sorting->items[b];
    sorting->items[b] = item;
}

static void sift_down(const struct sorting *sorting, uint32_t at, uint32_t count)
{
    for (uint32_t child = 2 * at + 1; child < count; at = child, child = 2 * at + 1) {
        if (child + 1 < count && is_before(sorting, child, child + 1))
            child++;
        if (!is_before(sorting, at, child))
            return;
        swap(sorting, at, child);
    }
}

void sort_indices(uint32_t *items, uint32_t count,
                  int (*compare)(const void *context, uint32_t a, uint32_t b), const void *context)
{
    struct sorting sorting = { items, compare, context };

    for (uint32_t at = count / 2; at-- > 0;)
        sift_down(&sorting, at, count);
    for (uint32_t end = count; end-- > 1;) {
        swap(&sorting, 0, end);
        sift_down(&sorting, 0, end);
    }
}
