/* map.h - a table from numbers to small indices, open addressing, power of two.
 * Keys are never 0. Values are indices into an array of the caller's. */
#ifndef PAWL_BASE_MAP_H
#define PAWL_BASE_MAP_H

#include "base/heap.h"
#include <stdbool.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map_slot {
    uint64_t key;
    uint32_t value;
};

struct map {
    const struct heap *heap;
    struct map_slot *slots;
    uint32_t capacity, count;
};

void map_init(struct map *map, const struct heap *heap);
void map_fini(struct map *map);
void map_clear(struct map *map); /* forgets all, keeps its size */
bool map_put(struct map *map, uint64_t key, uint32_t value); /* replaces; false: no memory */
bool map_has_room(const struct map *map, uint32_t count);    /* for so many in all */
bool map_reserve(struct map *map, uint32_t count);           /* makes it; false: no memory */
uint32_t map_get(const struct map *map, uint64_t key);       /* MAP_NONE if absent */
void map_remove(struct map *map, uint64_t key);              /* absent is fine */

#endif
