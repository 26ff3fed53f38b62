/* grow.h - arrays that grow in an arena. */
#ifndef PAWL_MODEL_GROW_H
#define PAWL_MODEL_GROW_H

#include "base/arena.h"

/* `items` if there is room for one more of `size` bytes, else a copy of twice the capacity.
 * NULL, and nothing changed, if there is no memory. */
void *grow_array(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size);

#endif
