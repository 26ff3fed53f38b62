/* grow.c - the capacity doubles, so that adding one item after another takes linear time. */
#include "base/grow.h"
#include "base/assert.h"

#define CAPACITY_MIN 8u

static uint32_t capacity_for(uint32_t capacity, uint32_t need)
{
    capacity = capacity > 0 ? capacity : CAPACITY_MIN;
    while (capacity < need && capacity <= UINT32_MAX / 2)
        capacity *= 2;
    return capacity;
}

bool arena_grow(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    uint32_t wanted = capacity_for(*capacity, count + 1);
    void *old, *bigger;

    ASSERT(count <= *capacity);
    if (count < *capacity)
        return true;
    memcpy(&old, items, sizeof old);
    bigger = wanted > count ? arena_alloc(arena, wanted * size) : NULL;
    if (!bigger)
        return false;
    if (count > 0)
        memcpy(bigger, old, count * size);
    memcpy(items, &bigger, sizeof bigger);
    *capacity = wanted;
    return true;
}

bool heap_grow(const struct heap *heap, void *items, uint32_t *capacity, uint32_t need, size_t size)
{
    uint32_t wanted = capacity_for(*capacity, need);
    void *old, *bigger;

    if (need <= *capacity)
        return true;
    memcpy(&old, items, sizeof old);
    bigger = wanted >= need ? heap_resize(heap, old, *capacity * size, wanted * size) : NULL;
    if (!bigger)
        return false;
    memcpy(items, &bigger, sizeof bigger);
    *capacity = wanted;
    return true;
}
