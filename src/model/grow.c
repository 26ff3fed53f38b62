/* grow.c - arrays that grow in an arena. The old copy stays until the arena goes. */
#include "model/grow.h"
#include "base/assert.h"

#define CAPACITY_MIN 8u

void *grow_array(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    uint32_t wanted = *capacity > 0 ? *capacity * 2 : CAPACITY_MIN;
    void *bigger;

    ASSERT(count <= *capacity);
    if (count < *capacity)
        return items;
    if (wanted <= *capacity)
        return NULL;
    bigger = arena_alloc(arena, wanted * size);
    if (!bigger)
        return NULL;
    if (count > 0)
        memcpy(bigger, items, count * size);
    *capacity = wanted;
    return bigger;
}
