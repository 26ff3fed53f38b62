/* base_memory.c - what the arena, growing arrays and the map promise. */
#include "base/grow.h"
#include "base/limits.h"
#include "base/map.h"
#include "lib/fault.h"
#include "lib/test.h"
#include <stdalign.h>

TEST(arena, what_it_gives_is_zeroed_aligned_and_apart)
{
    unsigned char *before = NULL;

    for (size_t size = 0; size < 3000; size += 7) {
        unsigned char *data = arena_alloc(&t->scope.arena, size);

        EXPECT(data != NULL && data != before);
        EXPECT_EQ((uintptr_t)data % alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            EXPECT(data[i] == 0);
        memset(data, 0xAA, size);
        before = data;
    }
}

TEST(arena, memory_is_zeroed_again_after_clearing)
{
    for (int round = 0; round < 3; round++) {
        unsigned char *data = arena_alloc(&t->scope.arena, 100);

        for (size_t i = 0; i < 100; i++)
            EXPECT(data[i] == 0);
        memset(data, 0xAA, 100);
        arena_clear(&t->scope.arena);
    }
}

TEST(arena, it_never_takes_more_than_its_limit_and_stays_failed)
{
    struct fault_heap fault;
    struct arena arena;

    fault_init(&fault, 0, FAULT_ONCE);
    arena_init(&arena, &fault.heap, 10000);
    while (arena_alloc(&arena, 100))
        EXPECT(fault.live_size <= 10000);
    EXPECT(arena.failed);
    EXPECT(arena.used > 9000 && arena.used <= 10000); /* and most of it could be used */
    EXPECT_EQ(arena.used, fault.live_size);
    EXPECT(arena_alloc(&arena, 1) == NULL);
    arena_clear(&arena);
    EXPECT(!arena.failed && arena_alloc(&arena, 5000) != NULL);
    EXPECT(arena_alloc(&arena, SIZE_MAX) == NULL && arena.failed);
    arena_clear(&arena);
    EXPECT(arena_alloc(&arena, SIZE_MAX - 40) == NULL);
    arena_fini(&arena);
    EXPECT_EQ(fault.live, 0);
}

TEST(arena, clearing_does_not_keep_a_huge_block)
{
    struct fault_heap fault;
    struct arena arena;

    fault_init(&fault, 0, FAULT_ONCE);
    arena_init(&arena, &fault.heap, 0);
    EXPECT_EQ(arena.limit, LIMIT_SCOPE);
    for (int i = 0; i < 10; i++)
        EXPECT(arena_alloc(&arena, 1 << 20) && arena_alloc(&arena, 10));
    arena_clear(&arena);
    EXPECT(fault.live <= 1);
    EXPECT(fault.live_size <= 256 << 10);
    EXPECT_EQ(arena.used, fault.live_size);
    arena_fini(&arena);
    EXPECT_EQ(fault.live, 0);
}

TEST(arena, a_large_value_does_not_waste_the_block_in_use)
{
    struct fault_heap fault;
    struct arena arena;

    fault_init(&fault, 0, FAULT_ONCE);
    arena_init(&arena, &fault.heap, 0);
    for (int i = 0; i < 100; i++)
        EXPECT(arena_alloc(&arena, 16) && arena_alloc(&arena, 100000));
    EXPECT(fault.live_size < 101 * 100000 + 20000);
    arena_fini(&arena);
}

TEST(arena, copies_end_in_nul_and_none_stays_none)
{
    struct arena *arena = &t->scope.arena;
    str copy = arena_str(arena, (str){ "abcdef", 3 });

    EXPECT_STR(copy, "abc");
    EXPECT_EQ(copy.data[3], '\0');
    EXPECT_STR(arena_str(arena, STR("")), "");
    EXPECT(arena_str(arena, STR_NONE).data == NULL);
    EXPECT(arena_text(arena, STR_NONE) == NULL);
    EXPECT(arena_copy(arena, "", 0) != NULL);
    EXPECT(memcmp(arena_copy(arena, "xy", 2), "xy", 2) == 0);
}

TEST(arena, without_memory_every_answer_is_none)
{
    struct fault_heap fault;
    struct arena arena;

    fault_init(&fault, 1, FAULT_FOR_EVER);
    arena_init(&arena, &fault.heap, 0);
    EXPECT(arena_str(&arena, STR("a")).data == NULL && arena.failed);
    EXPECT(arena_text(&arena, STR("a")) == NULL && arena_copy(&arena, "a", 1) == NULL);
    arena_fini(&arena);
}

TEST(map, it_answers_like_a_plain_array_through_puts_and_removes)
{
    static uint32_t model[2000];
    uint32_t count = 0;
    uint64_t seed = 7;
    struct map map;

    map_init(&map, &heap_libc);
    memset(model, 0xFF, sizeof model);
    for (int i = 0; i < 200000; i++) {
        uint64_t key;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        key = (seed >> 33) % 1999 + 1;
        EXPECT_EQ(map_get(&map, key), model[key]);
        if (seed >> 62 == 0) {
            map_remove(&map, key);
            model[key] = MAP_NONE;
        } else {
            EXPECT(map_put(&map, key, (uint32_t)i));
            model[key] = (uint32_t)i;
        }
    }
    for (uint64_t key = 1; key < 2000; key++) {
        EXPECT_EQ(map_get(&map, key), model[key]);
        count += model[key] != MAP_NONE;
    }
    EXPECT_EQ(map.count, count);
    map_fini(&map);
}

TEST(map, an_empty_one_finds_and_removes_nothing)
{
    struct map map;

    map_init(&map, &heap_libc);
    EXPECT_EQ(map_get(&map, 1), MAP_NONE);
    map_remove(&map, 1);
    map_clear(&map);
    EXPECT(map_put(&map, UINT64_MAX, 3));
    EXPECT(map_put(&map, UINT64_MAX, 4));
    EXPECT_EQ(map.count, 1);
    EXPECT_EQ(map_get(&map, UINT64_MAX), 4);
    EXPECT_EQ(map_get(&map, 0), MAP_NONE);
    map_clear(&map);
    EXPECT_EQ(map.count, 0);
    EXPECT_EQ(map_get(&map, UINT64_MAX), MAP_NONE);
    map_fini(&map);
    map_fini(&map);
}

TEST(map, a_put_without_memory_changes_nothing)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct map map;

        map_init(&map, &fault.heap);
        for (uint32_t key = 1; key <= 1000; key++)
            if (!map_put(&map, key, key)) {
                EXPECT_EQ(map.count, key - 1);
                EXPECT_EQ(map_get(&map, key), MAP_NONE);
                EXPECT(map_put(&map, key, key)); /* the fault was for once */
            }
        EXPECT_EQ(map.count, 1000);
        map_fini(&map);
    }
}

TEST(grow, an_array_on_the_heap_keeps_its_items_and_has_room_for_as_many_as_were_asked_for)
{
    uint32_t *items = NULL, capacity = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        EXPECT(HEAP_GROW(&heap_libc, items, capacity, i + 1));
        items[i] = i;
    }
    EXPECT(HEAP_GROW(&heap_libc, items, capacity, 5000));
    EXPECT(capacity >= 5000);
    for (uint32_t i = 0; i < 1000; i++)
        EXPECT_EQ(items[i], i);
    heap_free(&heap_libc, items, capacity * sizeof *items);
}

TEST(grow, without_memory_nothing_changes)
{
    struct arena arena;
    uint64_t *items = NULL, *before;
    uint32_t count = 0, capacity = 0;

    arena_init(&arena, &heap_libc, 8192);
    while (GROW(&arena, items, count, capacity))
        items[count] = count + 1, count++;
    before = items;
    EXPECT_EQ(count, capacity);
    EXPECT(!GROW(&arena, items, count, capacity) && items == before);
    EXPECT_EQ(items[count - 1], count);
    arena_fini(&arena);
}
