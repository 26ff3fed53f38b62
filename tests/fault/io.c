/* io.c - every call to the disk fails in turn, in every way, while each behavior is driven:
 * the answers stay honest, nothing acknowledged is lost, and the store goes on afterwards. */
#include "fault/scenario.h"
#include "fault/stage.h"
#include "fault/vfs.h"
#include <stdio.h>

struct tally {
    uint64_t rounds, refusals, unknowns;
};

/* The pawl that met the fault goes on when it has passed. */
static void finish_in_place(struct witness *w)
{
    disk_disarm();
    if (!w->p)
        EXPECT_OK(witness_open(w));
    EXPECT_OK(witness_sweep(w));
    witness_finish(w);
}

/* One run with the n-th call failing; then, the fault lifted, to the end, by the same pawl or
 * by the next. */
static bool run_round(const char *name, struct disk_plan plan, bool in_place, struct tally *tally)
{
    struct witness w;

    witness_init(&w, scenario_find(name), stage_url);
    disk_load(stage_path);
    disk_arm(plan);
    for (int i = 0; i < 2 && !w.p; i++)
        witness_open(&w);
    if (w.p)
        witness_act(&w, 3);
    if (in_place)
        finish_in_place(&w);
    witness_close(&w);
    disk_disarm();
    EXPECT(disk_is_closed());
    EXPECT_OK(witness_open(&w));
    witness_finish(&w);
    witness_close(&w);
    tally->rounds++;
    tally->refusals += w.refusals;
    tally->unknowns += w.unknowns;
    return disk_has_failed();
}

/* From plan.at on, by `stride`, to the end of the scenario. At least one call fails. */
static void fail_by(const char *name, bool in_place, struct disk_plan plan, uint64_t stride)
{
    struct tally tally = { 0 };
    bool has_failed = run_round(name, plan, in_place, &tally);

    for (; !has_failed && plan.at > 1; has_failed = run_round(name, plan, in_place, &tally))
        plan.at /= 2; /* there are not so many calls */
    EXPECT(has_failed);
    for (; has_failed; has_failed = run_round(name, plan, in_place, &tally))
        plan.at += stride;
    printf("# %s: %" PRIu64 " rounds, %" PRIu64 " refusals, %" PRIu64 " unknown\n", name,
           tally.rounds, tally.refusals, tally.unknowns);
}

/* Every second n in the long tier; from day to day every 62nd, and every 122nd where a fault
 * lasts, unless it is one of writes, which are few. */
static void fail_each(const char *name, bool in_place, struct disk_plan plan)
{
    uint64_t daily = plan.for_ever && plan.ops != DISK_WRITE ? 61 : 31;

    stage_begin();
    plan.at += 2 * (test_first(daily, 1) - 1);
    fail_by(name, in_place, plan, 2 * test_stride(daily, 1));
}

#define IO_TEST(scenario, test_name, in_place, ...)                                                \
    TEST(scenario, test_name##_at_odd_calls)                                                       \
    {                                                                                              \
        fail_each(#scenario, in_place, (struct disk_plan){ .at = 1, __VA_ARGS__ });                \
    }                                                                                              \
    TEST(scenario, test_name##_at_even_calls)                                                      \
    {                                                                                              \
        fail_each(#scenario, in_place, (struct disk_plan){ .at = 2, __VA_ARGS__ });                \
    }

/* Every way to fail: its name, whether the pawl that met it goes on, and the plan. */
#define IO_PLAN_MAP(X, scenario)                                                                   \
    X(scenario, each_call_that_fails_once, true, .ops = DISK_ALL, .fault = FAULT_EIO)              \
    X(scenario, each_call_from_which_on_the_disk_is_dead, false, .ops = DISK_ALL,                  \
      .fault = FAULT_EIO, .for_ever = true)                                                        \
    X(scenario, each_call_from_which_on_the_disk_is_dead_until_it_works_again, true,               \
      .ops = DISK_ALL, .fault = FAULT_EIO, .for_ever = true)                                       \
    X(scenario, each_change_from_which_on_the_disk_can_only_be_read, false, .ops = DISK_CHANGES,   \
      .fault = FAULT_EIO, .for_ever = true)                                                        \
    X(scenario, each_write_that_finds_the_disk_full_once, false, .ops = DISK_WRITE,                \
      .fault = FAULT_FULL)                                                                         \
    X(scenario, each_write_from_which_on_the_disk_is_full, false, .ops = DISK_WRITE,               \
      .fault = FAULT_FULL, .for_ever = true)                                                       \
    X(scenario, each_write_from_which_on_the_disk_is_full_until_it_has_room_again, true,           \
      .ops = DISK_WRITE, .fault = FAULT_FULL, .for_ever = true)                                    \
    X(scenario, each_write_that_is_cut_short, true, .ops = DISK_WRITE, .fault = FAULT_SHORT)       \
    X(scenario, each_change_that_is_made_but_said_to_have_failed, true, .ops = DISK_CHANGES,       \
      .fault = FAULT_AFTER)                                                                        \
    X(scenario, each_change_after_which_all_are_said_to_have_failed, false, .ops = DISK_CHANGES,   \
      .fault = FAULT_AFTER, .for_ever = true)

#define IO_TESTS(scenario) IO_PLAN_MAP(IO_TEST, scenario)

IO_TESTS(machine)
IO_TESTS(shared)
IO_TESTS(flow)
IO_TESTS(code)

/* What else machines can do, in every way to fail, at every n in the long tier; from day to day at
 * few, which differ from scenario to scenario and from plan to plan. */
#define IO_PLAN(scenario, plan_name, goes_on, ...) { goes_on, { __VA_ARGS__ } },

static const struct {
    bool in_place;
    struct disk_plan plan;
} plans[] = { IO_PLAN_MAP(IO_PLAN, any) };

static void fail_as_planned(const char *name, size_t i)
{
    struct disk_plan plan = plans[i].plan;
    uint64_t daily = plan.ops == DISK_ALL ? 199 : 83;

    plan.at = 1 + (test_first(daily, 1) + 13 * i) % (test_is_long() ? 1 : daily);
    fail_by(name, plans[i].in_place, plan, test_stride(daily, 1));
}

static void fail_here_and_there(const char *name)
{
    stage_begin();
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        fail_as_planned(name, i);
}

#define IO_SCENARIO(scenario)                                                                      \
    TEST(scenario, every_way_to_fail_here_and_there)                                               \
    {                                                                                              \
        fail_here_and_there(#scenario);                                                            \
    }

IO_SCENARIO(inline)
IO_SCENARIO(inline_shared)
IO_SCENARIO(versions)
IO_SCENARIO(versions_shared)
IO_SCENARIO(batch)
IO_SCENARIO(batch_shared)

/* What waits for its time, or is held: from day to day each meets two ways to fail, others on the
 * next day. */
static void fail_in_two_ways(const char *name)
{
    uint64_t today = test_first(5, 1);

    stage_begin();
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (test_is_long() || i % 5 == today % 5)
            fail_as_planned(name, i);
}

#define IO_WAITING(scenario)                                                                       \
    TEST(scenario, every_way_to_fail_while_it_waits)                                               \
    {                                                                                              \
        fail_in_two_ways(#scenario);                                                               \
    }

IO_WAITING(deadline)
IO_WAITING(deadline_shared)
IO_WAITING(held)
IO_WAITING(held_shared)
IO_WAITING(held_flow)
IO_WAITING(held_code)

TEST(machine, the_scenarios_end_as_they_should_where_nothing_fails)
{
    stage_begin();
    for (const struct scenario *s = scenarios; s->name; s++) {
        struct tally tally = { 0 };

        EXPECT(!run_round(s->name, (struct disk_plan){ 0 }, false, &tally));
        EXPECT_EQ(tally.refusals, 0);
    }
}

/* ---- keys: whatever the answer was, the call can be repeated ---- */

static pawl *open_door(const char *id_key, bool own, pawl_id *id)
{
    const char *source = scenario_find("machine")->source;
    pawl *p;

    EXPECT_OK(pawl_open_env(&p, stage_url, &(pawl_options){ .own = own },
                            env_sim_new(INT64_C(1777593600000), 3), NULL));
    EXPECT_OK(pawl_define(p, source, strlen(source), NULL, NULL));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "door", .idempotency_key = id_key },
                          id, NULL));
    return p;
}

/* Fire with a key until it is answered with success, the n-th change of the disk failing. */
static bool fire_round(uint64_t n, enum disk_fault fault, bool own, uint32_t *unknowns)
{
    const pawl_fire_args fire = { .action = "open", .idempotency_key = "once" };
    pawl_fired fired;
    pawl_status status;
    pawl_id id, again;
    bool has_failed;
    pawl *p;

    disk_load(stage_path);
    p = open_door("the door", own, &id);
    disk_arm((struct disk_plan){ .ops = DISK_CHANGES, .fault = fault, .at = n });
    for (int i = 0; (status = pawl_fire(p, id.text, &fire, &fired, NULL)) != PAWL_OK; i++) {
        EXPECT(i < 4);
        EXPECT(status == PAWL_STORAGE_FAILURE || status == PAWL_OUTCOME_UNKNOWN);
        *unknowns += status == PAWL_OUTCOME_UNKNOWN;
    }
    has_failed = disk_has_failed();
    disk_disarm();
    pawl_close(p);
    p = open_door("the door", own, &again);
    EXPECT_TEXT(again.text, id.text);
    EXPECT_OK(pawl_fire(p, id.text, &fire, &fired, NULL));
    EXPECT_EQ(fired.sequence_number, 1);
    EXPECT_OK(pawl_fire(p, id.text, &(pawl_fire_args){ .action = "shut" }, &fired, NULL));
    EXPECT_EQ(fired.sequence_number, 2); /* so there was one */
    pawl_close(p);
    return has_failed;
}

static void repeat_each(bool own)
{
    static const enum disk_fault faults[] = { FAULT_EIO, FAULT_AFTER };
    uint32_t unknowns = 0;

    stage_begin();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (uint64_t n = 1; fire_round(n, faults[i], own, &unknowns); n++)
            continue;
    EXPECT(unknowns > 1);
}

TEST(keys, a_call_that_met_a_failing_disk_is_repeated_and_happens_once_for_an_owner)
{
    repeat_each(true);
}

TEST(keys, a_call_that_met_a_failing_disk_is_repeated_and_happens_once_for_a_shared_writer)
{
    repeat_each(false);
}
