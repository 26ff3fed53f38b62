/* engine_clock.c - time: jumps both ways, and the clock that tests move. */
#include "base/time.h"
#include "engine/parts.h"
#include "engine_fixture.h"
#include <pthread.h>
#include <stdio.h>

#define HOUR INT64_C(3600000)
#define YEAR (365 * 24 * HOUR)

/* The last entry. Checks that no entry was recorded before the one before it. */
static pawl_entry last_entry(struct world *world, const char *id)
{
    pawl_history *history;
    pawl_entry entry = { 0 };
    int64_t last = 0;

    EXPECT_OK(pawl_history_open(world->p, id, NULL, &history, &world->error));
    while (pawl_history_next(history, &entry)) {
        EXPECT(entry.recorded_at_ms >= last);
        last = entry.recorded_at_ms;
    }
    EXPECT_OK(pawl_history_close(history, &world->error));
    return entry;
}

static void jump_to(struct world *world, int64_t wall_ms)
{
    env_sim_set_wall(world->env, wall_ms);
}

WORLD_TEST(clock, fired_at_is_the_wall_clock_and_recorded_at_never_goes_back) /* promise (5) */
{
    const char *id;

    world_define(world, ORDER);
    jump_to(world, NOON - 2 * YEAR);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    EXPECT_EQ(last_entry(world, id).fired_at_ms, NOON - 2 * YEAR);
    EXPECT_EQ(last_entry(world, id).recorded_at_ms, NOON);
    jump_to(world, NOON + 10 * YEAR);
    EXPECT_OK(world_fire(world, id, "note"));
    EXPECT_EQ(last_entry(world, id).fired_at_ms, NOON + 10 * YEAR);
    jump_to(world, NOON - HOUR);
    env_sim_advance(world->env, 5);
    EXPECT_OK(world_fire(world, id, "note"));
    EXPECT_EQ(last_entry(world, id).fired_at_ms, NOON - HOUR + 5);
    EXPECT_EQ(last_entry(world, id).recorded_at_ms, NOON + 5);
    world_expect_valid(world);
}

WORLD_TEST(clock, a_reading_years_ahead_and_back_leaves_no_trace)
{
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    jump_to(world, NOON + 10 * YEAR);
    EXPECT_OK(world_fire(world, id, "pay"));
    jump_to(world, NOON + 7);
    EXPECT_OK(world_fire(world, id, "note"));
    EXPECT_EQ(last_entry(world, id).fired_at_ms, NOON + 7);
    EXPECT_EQ(last_entry(world, id).recorded_at_ms, NOON + 7);
    EXPECT_EQ(engine_clock_offset_ms(world->p->engine), 0);
    world_expect_valid(world);
}

static pawl_status fire_at(struct world *world, const char *id, const char *fired_at)
{
    return pawl_fire(world->p, id,
                     &(pawl_fire_args){ .action = "note", .fired_at = fired_at }, NULL,
                     &world->error);
}

WORLD_TEST(clock, the_future_is_judged_by_the_wall_clock)
{
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    jump_to(world, NOON + YEAR);
    EXPECT_OK(fire_at(world, id, "2027-05-01T11:59:00Z"));
    EXPECT_EQ(fire_at(world, id, "2027-05-01T12:00:01Z"), PAWL_INVALID_REQUEST);
    jump_to(world, NOON + HOUR);
    EXPECT_EQ(fire_at(world, id, "2026-05-01T13:00:01Z"), PAWL_INVALID_REQUEST);
    EXPECT_OK(fire_at(world, id, "2026-05-01T13:00:00Z"));
    EXPECT_OK(fire_at(world, id, " \t ")); /* not supplied */
    EXPECT_EQ(last_entry(world, id).fired_at_ms, NOON + HOUR);
    world_expect_valid(world);
}

WORLD_TEST(clock, a_fire_before_its_instance_came_to_be_is_refused_and_names_the_clock)
{
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    jump_to(world, NOON - HOUR);
    EXPECT_EQ(world_fire(world, id, "note"), PAWL_INVALID_REQUEST);
    EXPECT_TEXT(world->error.message,
                "this machine's clock reads 2026-05-01T11:00:00.000Z, before the instance was "
                "created at 2026-05-01T12:00:00.000Z; set the clock, or stop the server and run "
                "`pawl doctor --accept-clock`");
    EXPECT_EQ(last_entry(world, id).sequence_number, 1);
    jump_to(world, NOON);
    EXPECT_OK(world_fire(world, id, "note"));
    world_expect_valid(world);
}

WORLD_TEST(clock, a_timer_is_never_refused_for_a_clock_that_went_back)
{
    const char *id = world_create(world, "ticker", NULL);

    jump_to(world, NOON - YEAR);
    world_advance(world, 1000);
    EXPECT_TEXT(world_actions(world, id), "start timer");
    EXPECT_EQ(last_entry(world, id).fired_at_ms, NOON); /* not before the instance was created */
    EXPECT_EQ(last_entry(world, id).recorded_at_ms, NOON + 1000);
    world_expect_valid(world);
}

static const int64_t jumps[] = { HOUR, -HOUR, 10 * YEAR, -10 * YEAR, 1500, -1500 };

WORLD_TEST(clock, no_jump_moves_a_duration_whenever_it_comes) /* promise (4) */
{
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++)
        for (int64_t at = 0; at <= 1000; at += 250) {
            const char *id = world_create(world, "ticker", NULL);

            world_advance(world, at < 1000 ? at : 999);
            jump_to(world, world->env->now_ms(world->env) + jumps[i]);
            world_advance(world, at < 1000 ? 999 - at : 0);
            EXPECT_TEXT(world_actions(world, id), "start");
            world_advance(world, 1);
            EXPECT_TEXT(world_actions(world, id), "start timer");
            EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
            jump_to(world, world->env->now_ms(world->env) - jumps[i]);
        }
    world_expect_valid(world);
}

/* What lasts a second and then leaves an entry. */
static const struct lasting {
    const char *name, *text;
    const char *claim; /* NULL: no worker elsewhere has the step */
    const char *ending; /* the entry that ends it */
} lasting[] = {
    { "backoff",
      "name: backoff\nsteps: {a: {tool: fail, args: {error: rain}, done: true,"
      " retry: {max: 2, backoff: [1s]}}}\n",
      NULL, "step.start" },
    { "timeout", "name: timeout\nsteps: {a: {tool: far, timeout: 1s, done: true}}\n",
      "{\"tools\":[\"far\"],\"worker\":\"w\",\"lease\":\"1h\"}", "step.timeout" },
    { "lease", "name: lease\nsteps: {a: {tool: near, done: true}}\n",
      "{\"tools\":[\"near\"],\"worker\":\"w\",\"lease\":\"1s\"}", "step.timeout" },
};

static const char *begin_lasting(struct world *world, const struct lasting *one)
{
    const char *id = world_create(world, one->name, NULL);
    char *out;

    world_advance(world, 0);
    if (one->claim) {
        EXPECT_OK(pawl_call(world->p, "step.claim", one->claim, &out, &world->error));
        EXPECT_HAS(out, "\"lease\":");
        pawl_free(world->p, out);
    }
    return id;
}

/* The wall clock jumps `at` ms after it has begun, and back when it is over. */
static void expect_a_second(struct world *world, const struct lasting *one, int64_t jump,
                            int64_t at)
{
    const char *id = begin_lasting(world, one);
    char before[256];
    size_t size;

    snprintf(before, sizeof before, "%s", world_actions(world, id));
    world_advance(world, at);
    jump_to(world, world->env->now_ms(world->env) + jump);
    world_advance(world, 999 - at);
    EXPECT_TEXT(world_actions(world, id), before);
    world_advance(world, 1);
    size = strlen(before);
    EXPECT(strncmp(world_actions(world, id), before, size) == 0);
    EXPECT_HAS(world_actions(world, id) + size, one->ending);
    jump_to(world, world->env->now_ms(world->env) - jump);
    pawl_fire(world->p, id, &(pawl_fire_args){ .action = "cancel" }, NULL, &world->error);
}

WORLD_TEST(clock, no_jump_moves_a_timeout_a_backoff_or_a_lease)
{
    for (size_t kind = 0; kind < sizeof lasting / sizeof *lasting; kind++) {
        world_define(world, lasting[kind].text);
        for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++)
            for (int64_t at = 0; at <= 999; at += 333)
                expect_a_second(world, &lasting[kind], jumps[i], at);
    }
    world_expect_valid(world);
}

WORLD_TEST(clock, a_jump_that_was_seen_moves_no_duration_over_a_restart_either)
{
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        const char *id = world_create(world, "ticker", NULL);
        int64_t wall = world->env->now_ms(world->env);

        jump_to(world, wall + jumps[i]);
        world_advance(world, 400);
        world->now_ms = wall + jumps[i] + 400;
        world_close(world);
        world_open(world);
        world_advance(world, 599);
        EXPECT_TEXT(world_actions(world, id), "start");
        world_advance(world, 1);
        EXPECT_TEXT(world_actions(world, id), "start timer");
        world_expect_valid(world);
        world->now_ms = wall + jumps[i] + 1000;
        world_close(world);
        world_open(world);
        EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
    }
}

WORLD_TEST(clock, an_absolute_time_follows_the_wall_clock_wherever_it_goes)
{
    const char *id;

    world_define(world, "name: later\ndo: [{name: w, wait: {until: '2026-05-01T13:00:00Z'}}]\n");
    id = world_create(world, "later", NULL);
    world_advance(world, 1000);
    world_expect_state(world, id, "running");
    jump_to(world, NOON + HOUR - 1);
    world_advance(world, 0);
    world_expect_state(world, id, "running");
    world_advance(world, 1);
    world_expect_state(world, id, "completed");
    id = world_create(world, "later", NULL); /* in the past: at once */
    world_advance(world, 0);
    world_expect_state(world, id, "completed");
    jump_to(world, NOON - HOUR);
    id = world_create(world, "later", NULL);
    world_advance(world, 2 * HOUR - 1);
    world_expect_state(world, id, "running");
    world_expect_valid(world);
    world_close(world);
    world_open(world);
    world_advance(world, 0);
    EXPECT_EQ(pawl_next_due(world->p), 1);
    world_advance(world, 1);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

WORLD_TEST(clock, across_a_restart_the_wall_clock_decides_how_much_time_has_passed)
{
    const char *id = world_create(world, "ticker", NULL);

    world_close(world);
    world->now_ms = NOON + 999;
    world_open(world);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "start timer");
}

static void note_warning(void *context, pawl_log_level level, const char *event, const char *text)
{
    char *words = context;

    EXPECT_EQ(words[0], '\0'); /* one is enough */
    EXPECT_EQ(level, PAWL_LOG_WARN);
    snprintf(words, 400, "%s: %s", event, text);
}

WORLD_TEST(clock, a_jump_found_at_opening_is_reported_and_stops_nothing)
{
    char words[400] = "";
    const char *id = world_create(world, "ticker", NULL);

    world->options.log = note_warning;
    world->options.log_context = words;
    world_close(world);
    world->now_ms = NOON - 999;
    world_open(world);
    EXPECT_TEXT(words, "");
    world_close(world);
    world->now_ms = NOON - 2 * HOUR;
    world_open(world);
    EXPECT_TEXT(words,
                "health.degraded: clock-jumped: the store's clock is 7200 s ahead of this "
                "machine's, which was ahead once or has been set back; durations are not affected; "
                "stop the server and run `pawl doctor --accept-clock`");
    world_advance(world, 999);
    EXPECT_TEXT(world_actions(world, id), "start");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "start timer");
    world_expect_valid(world);
}

WORLD_TEST(clock, an_accepted_clock_is_the_wall_clock_and_every_duration_keeps_its_length)
{
    int64_t ahead_ms;
    struct scope scope;
    const char *id;

    world_close(world);
    world->now_ms = NOON + 10 * YEAR; /* one run under a clock that was years ahead */
    world_open(world);
    id = world_create(world, "ticker", NULL);
    world_advance(world, 400);
    world_close(world);
    world->now_ms = NOON;
    world_open(world);
    scope_init(&scope, &heap_libc, 0);
    EXPECT_OK(engine_accept_clock(world->p->engine, &scope, &ahead_ms));
    EXPECT(ahead_ms > 10 * YEAR - 1000);
    EXPECT_EQ(engine_now_ms(world->p->engine), NOON);
    EXPECT_OK(engine_accept_clock(world->p->engine, &scope, &ahead_ms));
    EXPECT_EQ(ahead_ms, 0);
    scope_fini(&scope);
    world_expect_valid(world);
    world_advance(world, 599);
    EXPECT_TEXT(world_actions(world, id), "start");
    world_advance(world, 401); /* the time while closed is unknown: not early, and not years late */
    EXPECT_TEXT(world_actions(world, id), "start timer");
    EXPECT_EQ(last_entry(world, world_create(world, "ticker", NULL)).recorded_at_ms, NOON + 1000);
    world_expect_valid(world);
}

static void *create_and_cancel(void *context)
{
    struct world *world = context;
    pawl_error error;
    pawl_id id;

    for (int i = 0; i < 200; i++) {
        EXPECT_OK(pawl_create(world->p, &(pawl_create_args){ .definition = "hold" }, &id, &error));
        EXPECT_OK(pawl_fire(world->p, id.text, &(pawl_fire_args){ .action = "cancel" }, NULL,
                            &error));
    }
    return NULL;
}

/* The thread sanitizer judges it. */
WORLD_TEST(clock, jumps_are_recorded_while_other_threads_decide_by_the_clock)
{
    pthread_t threads[2];

    world_define(world, "name: hold\ndo: [{name: w, wait: {signal: go}}]\n");
    for (size_t i = 0; i < 2; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, create_and_cancel, world), 0);
    for (int i = 1; i <= 400; i++) {
        jump_to(world, NOON + i * HOUR);
        world_advance(world, 1);
    }
    for (size_t i = 0; i < 2; i++)
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    world_expect_valid(world);
}

/* What is due is unknown then: the first run asks the store. */
WORLD_TEST(clock, right_after_opening_something_is_due_at_once)
{
    world_create(world, "ticker", NULL);
    world_close(world);
    world_open(world);
    EXPECT_EQ(pawl_next_due(world->p), 0);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_EQ(pawl_next_due(world->p), 1000);
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

WORLD_TEST(clock, the_test_clock_is_not_moved_past_the_last_year_or_back)
{
    world_close(world);
    world->options.test_clock = true;
    world_open(world);
    EXPECT_EQ(pawl_test_advance(world->p, INT64_MAX, &world->error), PAWL_INVALID_REQUEST);
    EXPECT_HAS(world->error.message, "ends before the year 10000");
    EXPECT_EQ(pawl_test_advance(world->p, -1, &world->error), PAWL_INVALID_REQUEST);
    EXPECT_OK(pawl_test_advance(world->p, TIME_LAST_MS - NOON, &world->error));
    EXPECT_EQ(pawl_test_advance(world->p, 1, &world->error), PAWL_INVALID_REQUEST);
    EXPECT_EQ(engine_now_ms(world->p->engine), TIME_LAST_MS);
}

static void *advance_often(void *context)
{
    struct world *world = context;
    pawl_error error;

    for (int i = 0; i < 20; i++)
        EXPECT_OK(pawl_test_advance(world->p, 1000, &error));
    return NULL;
}

WORLD_TEST(clock, advances_of_several_threads_add_up)
{
    pthread_t threads[3];
    char input[64], *out;
    const char *id;

    world_close(world);
    world->options.test_clock = true;
    world_open(world);
    id = world_create(world, "ticker", NULL);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, advance_often, world), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ(engine_now_ms(world->p->engine), NOON + 60000);
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.get", input, &out, &world->error));
    EXPECT_HAS(out, "\"result\":60");
    pawl_free(world->p, out);
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
