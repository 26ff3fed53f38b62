/* map.c - open addressing with linear probing. Removing closes the gap, so there are
 * no tombstones and a look-up never gets slower with age. */
#include "base/map.h"
#include "base/assert.h"
#include <string.h>

#define MAP_CAPACITY_MIN 16u
#define MAP_CAPACITY_MAX (1u << 31)

void map_init(struct map *map, const struct heap *heap)
{
    *map = (struct map){ .heap = heap };
}

void map_fini(struct map *map)
{
    heap_free(map->heap, map->slots, map->capacity * sizeof *map->slots);
    map_init(map, map->heap);
}

void map_clear(struct map *map)
{
    if (map->slots)
        memset(map->slots, 0, map->capacity * sizeof *map->slots);
    map->count = 0;
}

/* Where a key would like to stand. Mixed well: keys are often consecutive numbers. */
static uint32_t home(const struct map *map, uint64_t key)
{
    key = (key ^ key >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    key = (key ^ key >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)(key ^ key >> 31) & (map->capacity - 1);
}

/* The slot that holds the key, or the free one where it belongs. */
static uint32_t find(const struct map *map, uint64_t key)
{
    uint32_t at = home(map, key);

    while (map->slots[at].key != 0 && map->slots[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

static bool grow(struct map *map)
{
    struct map bigger = { .heap = map->heap };

    if (map->capacity == MAP_CAPACITY_MAX)
        return false;
    bigger.capacity = map->capacity > 0 ? map->capacity * 2 : MAP_CAPACITY_MIN;
    bigger.count = map->count;
    bigger.slots = heap_new(map->heap, bigger.capacity * sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key != 0)
            bigger.slots[find(&bigger, map->slots[i].key)] = map->slots[i];
    map_fini(map);
    *map = bigger;
    return true;
}

bool map_has_room(const struct map *map, uint32_t count)
{
    return map->capacity / 4 * 3 >= count;
}

bool map_reserve(struct map *map, uint32_t count)
{
    while (!map_has_room(map, count))
        if (!grow(map))
            return false;
    return true;
}

bool map_put(struct map *map, uint64_t key, uint32_t value)
{
    uint32_t at;

    ASSERT(key != 0);
    ASSERT(value != MAP_NONE);
    if (!map_has_room(map, map->count + 1) && map_get(map, key) == MAP_NONE && !grow(map))
        return false;
    at = find(map, key);
    map->count += map->slots[at].key == 0;
    map->slots[at] = (struct map_slot){ key, value };
    return true;
}

uint32_t map_get(const struct map *map, uint64_t key)
{
    uint32_t at;

    if (map->count == 0 || key == 0)
        return MAP_NONE;
    at = find(map, key);
    return map->slots[at].key == key ? map->slots[at].value : MAP_NONE;
}

void map_remove(struct map *map, uint64_t key)
{
    uint32_t mask = map->capacity - 1, gap, at;

    if (map_get(map, key) == MAP_NONE)
        return;
    gap = at = find(map, key);
    for (;;) {
        at = (at + 1) & mask;
        if (map->slots[at].key == 0)
            break;
        /* May this one move back? Only if its home is not between the gap and it. */
        if (((at - home(map, map->slots[at].key)) & mask) >= ((at - gap) & mask)) {
            map->slots[gap] = map->slots[at];
            gap = at;
        }
    }
    map->slots[gap] = (struct map_slot){ 0, 0 };
    map->count--;
}
