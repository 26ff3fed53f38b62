/* engine_clock.c - time: jumps both ways, and the clock that tests move. */
#include "engine_fixture.h"
#include <stdio.h>

static void expect_times_never_fall(struct world *world, const char *id)
{
    pawl_history *history;
    pawl_entry entry;
    int64_t last = 0;

    EXPECT_OK(pawl_history_open(world->p, id, NULL, &history, &world->error));
    while (pawl_history_next(history, &entry)) {
        EXPECT(entry.fired_at_ms >= last);
        last = entry.fired_at_ms;
    }
    EXPECT_OK(pawl_history_close(history, &world->error));
}

WORLD_TEST(clock, the_stores_clock_never_goes_back_though_the_wall_clock_does) /* promise (5) */
{
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    env_sim_set_wall(world->env, NOON - 3600000);
    EXPECT_OK(world_fire(world, id, "note"));
    env_sim_set_wall(world->env, NOON + 10 * 365 * INT64_C(86400000));
    EXPECT_OK(world_fire(world, id, "note"));
    env_sim_set_wall(world->env, NOON);
    EXPECT_OK(world_fire(world, id, "note"));
    expect_times_never_fall(world, id);
    world_expect_valid(world);
}

static void note_warning(void *context, pawl_log_level level, const char *event, const char *text)
{
    char *words = context;

    EXPECT_EQ(words[0], '\0'); /* one is enough */
    EXPECT_EQ(level, PAWL_LOG_WARN);
    snprintf(words, 200, "%s: %s", event, text);
}

WORLD_TEST(clock, a_wall_clock_far_behind_the_stores_is_warned_of_once_at_opening)
{
    char words[200] = "";

    world->options.log = note_warning;
    world->options.log_context = words;
    world_create(world, "ticker", NULL);
    world_close(world);
    world->now_ms = NOON - 59999;
    world_open(world);
    EXPECT_TEXT(words, "");
    world_close(world);
    world->now_ms = NOON - 7200000;
    world_open(world);
    EXPECT_TEXT(words, "clock.behind: the store's clock is 7200 s ahead of this machine's; timers "
                       "wait by as much");
}

WORLD_TEST(clock, a_timer_is_never_early_when_the_wall_clock_is_set_back) /* promise (4) */
{
    const char *id = world_create(world, "ticker", NULL);

    world_advance(world, 500);
    env_sim_set_wall(world->env, NOON - 1000000);
    world_advance(world, 499);
    EXPECT_TEXT(world_actions(world, id), "start");
    env_sim_set_wall(world->env, NOON + 1000);
    world_advance(world, 0);
    EXPECT_TEXT(world_actions(world, id), "start timer");
}

WORLD_TEST(clock, an_overdue_timer_fires_at_once_after_a_restart_and_once)
{
    const char *id = world_create(world, "ticker", NULL);

    world_close(world);
    world->now_ms += 3600000;
    world_open(world);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start timer");
}

WORLD_TEST(clock, the_test_clock_stands_still_moves_by_advance_and_is_kept)
{
    const char *id;

    world_close(world);
    world->options.test_clock = true;
    world_open(world);
    id = world_create(world, "ticker", NULL);
    env_sim_advance(world->env, 100000);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start");
    EXPECT_OK(pawl_test_advance(world->p, 3500, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start timer timer timer");
    world_close(world);
    world->now_ms = NOON - 5;
    world_open(world);
    EXPECT_OK(pawl_test_advance(world->p, 499, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start timer timer timer");
    EXPECT_OK(pawl_test_advance(world->p, 1, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start timer timer timer timer");
    world_expect_valid(world);
}

WORLD_TEST(clock, thirty_days_of_ticks_take_no_time_at_all)
{
    const char *id;

    world_close(world);
    world->options.test_clock = true;
    world_open(world);
    world_define(world, "name: month\nsteps:\n"
                        "  start: {name: wait, tool: sleep, args: {for: 30d}, next: end}\n"
                        "  end: {tool: set, args: {}, done: true}\n");
    id = world_create(world, "month", NULL);
    EXPECT_OK(pawl_test_advance(world->p, INT64_C(30) * 86400000 - 1, &world->error));
    world_expect_state(world, id, "running");
    EXPECT_OK(pawl_test_advance(world->p, 1, &world->error));
    world_expect_state(world, id, "completed");
}

WORLD_TEST(clock, each_due_thing_happens_at_its_due_time)
{
    pawl_history *history;
    pawl_entry entry;
    const char *id;
    int64_t at = NOON;

    world_close(world);
    world->options.test_clock = true;
    world_open(world);
    id = world_create(world, "ticker", NULL);
    EXPECT_OK(pawl_test_advance(world->p, 10000, &world->error));
    EXPECT_OK(pawl_history_open(world->p, id, NULL, &history, &world->error));
    for (; pawl_history_next(history, &entry); at += 1000)
        EXPECT_EQ(entry.fired_at_ms, at);
    EXPECT_EQ(at, NOON + 11000);
    EXPECT_OK(pawl_history_close(history, &world->error));
}
