/* grow.h - arrays that grow in an arena. */
#ifndef PAWL_MODEL_GROW_H
#define PAWL_MODEL_GROW_H

#include "base/arena.h"

/* Makes room for one more in `items`, which may move; false: no memory, and nothing has changed. */
#define GROW(arena, items, count, capacity)                                                        \
    ((items) = grow_items((arena), (items), (count), &(capacity), sizeof *(items)),                \
     (count) < (capacity))

/* `items` if there is room for one more of `size` bytes, else a copy of twice the capacity. If there
 * is no memory: `items` as they are, or NULL from grow_array(). */
void *grow_items(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size);
void *grow_array(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size);

#endif
