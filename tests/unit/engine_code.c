/* engine_code.c - a C handler through the whole engine. */
#include "engine_fixture.h"
#include <stdio.h>

static void expect_get(struct world *world, const char *id, const char *part)
{
    char input[64], *out;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.get", input, &out, &world->error));
    EXPECT_HAS(out, part);
    pawl_free(world->p, out);
}

static void expect_why(struct world *world, const char *id, const char *part)
{
    char input[64], *out;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.why", input, &out, &world->error));
    EXPECT_HAS(out, part);
    pawl_free(world->p, out);
}

WORLD_TEST(code, variables_and_timers_survive_restarts) /* E1, E7 */
{
    const char *id = world_create(world, "ticker", NULL);

    for (int i = 0; i < 5; i++) {
        world_advance(world, 600);
        world_close(world);
        world_open(world);
        world_advance(world, 400);
    }
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, "ann", &world->error));
    world_expect_state(world, id, "completed");
    expect_get(world, id, "\"result\":5");
    world_expect_valid(world);
}

WORLD_TEST(code, the_first_of_timer_and_signal_wins_and_the_other_is_disarmed) /* E11, E12 */
{
    const char *id = world_create(world, "ticker", NULL);

    expect_why(world, id, "\"kind\":\"timer\",\"name\":\"tick\"");
    expect_why(world, id, "\"kind\":\"signal\",\"name\":\"stop\"");
    world_advance(world, 900);
    EXPECT_OK(pawl_signal(world->p, id, "slower", NULL, NULL, &world->error));
    world_advance(world, 1999); /* the tick of the first second is gone; two seconds anew */
    EXPECT_TEXT(world_actions(world, id), "start signal");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "start signal timer");
    world_expect_valid(world);
}

WORLD_TEST(code, a_signal_that_nothing_awaits_is_refused_by_name) /* E16 */
{
    const char *id = world_create(world, "ticker", NULL);

    EXPECT_EQ(pawl_signal(world->p, id, "faster", NULL, NULL, &world->error), PAWL_NOT_AWAITING);
    EXPECT_TEXT(world_actions(world, id), "start");
}

WORLD_TEST(code, cancel_always_works_and_nothing_happens_afterwards) /* E26, X6 */
{
    const char *id = world_create(world, "ticker", NULL);

    EXPECT_OK(pawl_cancel(world->p, id, NULL, NULL, NULL, &world->error));
    world_advance(world, 5000);
    EXPECT_TEXT(world_actions(world, id), "start cancel");
    EXPECT_EQ(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error), PAWL_TERMINAL);
    world_expect_valid(world);
}

WORLD_TEST(code, timers_of_a_test_instance_fire_only_by_hand) /* E25 */
{
    pawl_id id;

    EXPECT_OK(pawl_create(world->p, &(pawl_create_args){ .definition = "ticker", .test = true },
                          &id, &world->error));
    world_advance(world, 60000);
    EXPECT_TEXT(world_actions(world, id.text), "start");
    EXPECT_OK(pawl_test_fire_timer(world->p, id.text, "tick", &world->error));
    EXPECT_TEXT(world_actions(world, id.text), "start timer");
    EXPECT_EQ(pawl_test_fire_timer(world->p, id.text, "tock", &world->error), PAWL_NOT_AWAITING);
}

WORLD_TEST(code, a_hundred_turns_fold_to_the_same_state_after_a_restart)
{
    const char *id = world_create(world, "ticker", NULL);

    for (int i = 0; i < 100; i++)
        world_advance(world, 1000);
    world_close(world);
    world_open(world);
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
    expect_get(world, id, "\"result\":100");
    world_expect_valid(world);
}
