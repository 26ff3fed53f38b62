/* grow.c - arrays that grow in an arena. The old copy stays until the arena goes. */
#include "model/grow.h"
#include "base/assert.h"

#define CAPACITY_MIN 8u

void *grow_items(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    uint32_t wanted = *capacity > 0 ? *capacity * 2 : CAPACITY_MIN;
    void *bigger;

    ASSERT(count <= *capacity);
    if (count < *capacity)
        return items;
    bigger = wanted > *capacity ? arena_alloc(arena, wanted * size) : NULL;
    if (!bigger)
        return items;
    if (count > 0)
        memcpy(bigger, items, count * size);
    *capacity = wanted;
    return bigger;
}

void *grow_array(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    void *grown = grow_items(arena, items, count, capacity, size);

    return count < *capacity ? grown : NULL;
}
