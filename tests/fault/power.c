/* power.c - the power is cut at every sync and every write, and what was not synced is kept,
 * lost or torn as the seed says: nothing acknowledged is lost, and the store opens again. */
#include "fault/scenario.h"
#include "fault/stage.h"
#include "fault/vfs.h"
#include <stdio.h>

struct tally {
    uint64_t rounds, cuts, lost;
};

/* Drive until the power goes; true if it went. */
static bool drive_until_cut(struct witness *w, unsigned ops, uint64_t at, uint64_t seed,
                            struct tally *tally)
{
    bool went;

    disk_arm((struct disk_plan){ .ops = ops, .fault = FAULT_POWER, .at = at });
    witness_open(w);
    if (w->p)
        witness_act(w, 1);
    witness_close(w);
    went = disk_has_failed();
    disk_power_on(seed);
    tally->cuts += went;
    tally->lost += disk_lost();
    return went;
}

/* Cut at the n-th call; on odd seeds once more while the store recovers. */
static bool run_round(const char *name, unsigned ops, uint64_t at, uint64_t seed,
                      struct tally *tally)
{
    struct witness w;
    bool went;

    witness_init(&w, scenario_find(name), stage_url);
    disk_load(stage_path);
    went = drive_until_cut(&w, ops, at, seed, tally);
    if (went && seed % 2)
        drive_until_cut(&w, DISK_CHANGES, 1 + seed * 7 % 23, seed * 31 + at, tally);
    EXPECT_OK(witness_open(&w));
    witness_finish(&w);
    witness_close(&w);
    tally->rounds++;
    return went;
}

/* From day to day at each `daily`-th call that counts, in the long tier at each. */
static void cut_by(const char *name, unsigned ops, uint64_t seeds, uint64_t daily)
{
    struct tally tally = { 0 };
    bool went = true;

    stage_begin();
    for (uint64_t at = test_first(daily, 1); went; at += test_stride(daily, 1))
        for (uint64_t i = 0; i < seeds && went; i++)
            went = run_round(name, ops, at, test_seed() + at * 9 + i, &tally);
    EXPECT(tally.cuts > (test_is_long() ? 3 : 0));
    EXPECT(tally.lost > 0 || test_stride(daily, 1) > 1); /* else this proves nothing */
    printf("# %s: %" PRIu64 " rounds, %" PRIu64 " cuts, %" PRIu64 " writes lost or torn\n", name,
           tally.rounds, tally.cuts, tally.lost);
}

#define POWER_TESTS(scenario)                                                                      \
    TEST(scenario, a_power_cut_at_each_sync_loses_nothing_acknowledged)                            \
    {                                                                                              \
        cut_by(#scenario, DISK_SYNC, test_is_long() ? 16 : 2, 1);                                  \
    }                                                                                              \
    TEST(scenario, a_power_cut_at_each_change_loses_nothing_acknowledged)                          \
    {                                                                                              \
        cut_by(#scenario, DISK_CHANGES, test_is_long() ? 2 : 1, 7);                                \
    }

POWER_TESTS(machine)
POWER_TESTS(shared)
POWER_TESTS(flow)
POWER_TESTS(code)

/* What else machines can do: at each change in the long tier, here and there from day to day. */
#define POWER_SCENARIO(scenario, daily)                                                            \
    TEST(scenario, a_power_cut_loses_nothing_acknowledged)                                         \
    {                                                                                              \
        cut_by(#scenario, DISK_CHANGES, test_is_long() ? 2 : 1, daily);                            \
    }

POWER_SCENARIO(inline, 7)
POWER_SCENARIO(inline_shared, 11)
POWER_SCENARIO(versions, 11)
POWER_SCENARIO(versions_shared, 13)
POWER_SCENARIO(batch, 7)
POWER_SCENARIO(batch_shared, 11)
POWER_SCENARIO(deadline, 13)
POWER_SCENARIO(deadline_shared, 17)
POWER_SCENARIO(held, 17)
POWER_SCENARIO(held_shared, 19)
POWER_SCENARIO(held_flow, 11)
POWER_SCENARIO(held_code, 13)
