/* grow.h - arrays that grow, in an arena or on the heap. `items` is a pointer of the caller's, and
 * may move. False: no memory, and nothing has changed. */
#ifndef PAWL_BASE_GROW_H
#define PAWL_BASE_GROW_H

#include "base/arena.h"

/* Room for one more. The old copy stays until the arena goes. */
#define GROW(arena, items, count, capacity)                                                        \
    ((count) < (capacity) || arena_grow((arena), &(items), (count), &(capacity), sizeof *(items)))

/* Room for `need` items. */
#define HEAP_GROW(heap, items, capacity, need)                                                     \
    ((need) <= (capacity) || heap_grow((heap), &(items), &(capacity), (need), sizeof *(items)))

/* Takes the item at `place` out of an array. */
#define ARRAY_DROP(items, count, place)                                                            \
    memmove(&(items)[place], &(items)[(place) + 1], (--(count) - (place)) * sizeof *(items))

/* The same where only the size of an item is known; `items` is the address of the pointer. */
bool arena_grow(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size);
bool heap_grow(const struct heap *heap, void *items, uint32_t *capacity, uint32_t need,
               size_t size);

#endif
