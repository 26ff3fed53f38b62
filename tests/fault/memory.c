/* memory.c - every allocation fails in turn, ours and SQLite's, once and for ever: NO_MEMORY
 * or success, nothing lost, nothing leaked, and the same pawl goes on. */
#include "fault/scenario.h"
#include "fault/sqlite_heap.h"
#include "fault/stage.h"
#include "fault/vfs.h"
#include <stdio.h>

static void open_at_last(struct witness *w)
{
    for (int i = 0; i < 2 && !w->p; i++)
        witness_open(w);
}

/* ---- Our own memory ---- */

static bool run_ours(const char *name, bool on_disk, uint64_t n, enum fault_mode mode)
{
    struct fault_heap fault;
    struct witness w;
    bool has_failed;

    witness_init(&w, scenario_find(name), on_disk ? stage_url : "memory:");
    if (on_disk)
        disk_load(stage_path);
    fault_init(&fault, n, mode);
    w.heap = &fault.heap;
    open_at_last(&w);
    if (w.p)
        witness_act(&w, 3);
    has_failed = fault.has_failed;
    fault.fail_at = 0;
    if (!w.p)
        EXPECT_OK(witness_open(&w));
    witness_finish(&w);
    witness_close(&w);
    EXPECT_EQ(fault.live, 0);
    EXPECT_EQ(fault.live_size, 0);
    return has_failed;
}

/* From day to day every `daily`-th of ours, in the long tier each. */
static void fail_ours_by(const char *name, bool on_disk, enum fault_mode mode, uint64_t daily)
{
    uint64_t n = test_first(daily, 1);

    while (run_ours(name, on_disk, n, mode))
        n += test_stride(daily, 1);
    EXPECT(n > 10);
    printf("# %s: %" PRIu64 " allocations\n", name, n - 1);
}

static void fail_in_memory(const char *name, enum fault_mode mode)
{
    stage_begin();
    fail_ours_by(name, false, mode, 7);
}

/* ---- SQLite's ---- */

static bool run_sqlites(const char *name, uint64_t n, bool for_ever)
{
    struct witness w;
    bool has_failed;

    witness_init(&w, scenario_find(name), stage_url);
    disk_load(stage_path);
    sqlite_heap_arm(n, for_ever);
    open_at_last(&w);
    if (w.p)
        witness_act(&w, 3);
    has_failed = sqlite_heap_has_failed();
    sqlite_heap_arm(0, false);
    witness_close(&w);
    EXPECT_EQ(sqlite_heap_live(), 0);
    EXPECT_OK(witness_open(&w));
    witness_finish(&w);
    witness_close(&w);
    EXPECT_EQ(sqlite_heap_live(), 0);
    return has_failed;
}

/* How often SQLite allocates while a store opens: more than nine times of ten it parses the schema,
 * and what happens afterwards is what differs from scenario to scenario. */
static uint64_t count_opening(const char *name)
{
    struct witness w;
    uint64_t count;

    witness_init(&w, scenario_find(name), stage_url);
    disk_load(stage_path);
    sqlite_heap_arm(0, false);
    EXPECT_OK(witness_open(&w));
    count = sqlite_heap_count();
    witness_close(&w);
    return count;
}

/* All others open their store as one of these two does, an owner and one that shares it. */
static uint64_t whole_opening(const char *name)
{
    return strcmp(name, "machine") == 0 || strcmp(name, "shared") == 0 ? 5 : 101;
}

/* From day to day by the strides given, in the long tier by 5: on another day by others. */
static void fail_sqlites_by(const char *name, bool for_ever, uint64_t opening, uint64_t acting)
{
    uint64_t n = test_first(opening, 5), rounds = 0, opened = count_opening(name);

    for (; run_sqlites(name, n, for_ever); rounds++)
        n += n < opened ? test_stride(opening, whole_opening(name)) : test_stride(acting, 5);
    EXPECT(n > opened);
    EXPECT(rounds > (test_is_long() ? 3 : 0));
    printf("# %s: %" PRIu64 " allocations of SQLite, %" PRIu64 " rounds\n", name, n, rounds);
}

static void fail_each_of_sqlites(const char *name, bool for_ever)
{
    stage_begin();
    fail_sqlites_by(name, for_ever, 5003, 127);
}

/* From day to day every 17th one on the disk, where it is the store that allocates. */
static void fail_on_disk(const char *name, enum fault_mode mode)
{
    stage_begin();
    fail_ours_by(name, true, mode, 17);
}

#define MEMORY_TESTS(scenario)                                                                     \
    TEST(scenario, in_memory_each_allocation_that_fails_once)                                      \
    {                                                                                              \
        fail_in_memory(#scenario, FAULT_ONCE);                                                     \
    }                                                                                              \
    TEST(scenario, in_memory_each_allocation_from_which_on_there_is_none)                          \
    {                                                                                              \
        fail_in_memory(#scenario, FAULT_FOR_EVER);                                                 \
    }                                                                                              \
    TEST(scenario, on_disk_each_allocation_that_fails_once)                                        \
    {                                                                                              \
        fail_on_disk(#scenario, FAULT_ONCE);                                                       \
    }                                                                                              \
    TEST(scenario, on_disk_each_allocation_from_which_on_there_is_none)                            \
    {                                                                                              \
        fail_on_disk(#scenario, FAULT_FOR_EVER);                                                   \
    }                                                                                              \
    TEST(scenario, an_allocation_of_sqlite_that_fails_once)                                        \
    {                                                                                              \
        fail_each_of_sqlites(#scenario, false);                                                    \
    }                                                                                              \
    TEST(scenario, an_allocation_of_sqlite_from_which_on_there_is_none)                            \
    {                                                                                              \
        fail_each_of_sqlites(#scenario, true);                                                     \
    }

MEMORY_TESTS(machine)
MEMORY_TESTS(shared)
MEMORY_TESTS(flow)
MEMORY_TESTS(code)

/* What else machines can do: each allocation in the long tier, here and there from day to day. */
static void fail_here_and_there(const char *name, uint64_t stride)
{
    stage_begin();
    for (int mode = FAULT_ONCE; mode <= FAULT_FOR_EVER; mode++) {
        fail_ours_by(name, false, mode, stride);
        fail_ours_by(name, true, mode, 2 * stride - 1);
        fail_sqlites_by(name, mode == FAULT_FOR_EVER, 9001, 3 * stride);
    }
}

#define MEMORY_SCENARIO(scenario, stride)                                                          \
    TEST(scenario, an_allocation_that_fails)                                                       \
    {                                                                                              \
        fail_here_and_there(#scenario, stride);                                                    \
    }

MEMORY_SCENARIO(inline, 41)
MEMORY_SCENARIO(inline_shared, 47)
MEMORY_SCENARIO(versions, 59)
MEMORY_SCENARIO(versions_shared, 61)
MEMORY_SCENARIO(batch, 37)
MEMORY_SCENARIO(batch_shared, 47)
MEMORY_SCENARIO(deadline, 71)
MEMORY_SCENARIO(deadline_shared, 113)
MEMORY_SCENARIO(held, 127)
MEMORY_SCENARIO(held_shared, 149)
MEMORY_SCENARIO(held_flow, 83)
MEMORY_SCENARIO(held_code, 89)
