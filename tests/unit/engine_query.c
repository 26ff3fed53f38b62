/* engine_query.c - what is asked about many instances at once, on every backend. */
#include "engine_fixture.h"
#include <stdio.h>

static const char *ask(struct world *world, const char *operation, const char *input)
{
    static char answer[1 << 16];
    char *given = NULL;

    if (pawl_call(world->p, operation, input, &given, &world->error))
        test_fail(__FILE__, __LINE__, "%s: %s", operation, world->error.message);
    snprintf(answer, sizeof answer, "%s", given ? given : "");
    pawl_free(world->p, given);
    return answer;
}

/* ---- counts (A42) ---- */

static void make_orders(struct world *world)
{
    world_define(world, ORDER);
    for (int i = 0; i < 5; i++) {
        const char *id = world_create(world, "order", NULL);

        if (i > 0)
            EXPECT_OK(world_fire(world, id, i == 4 ? "drop" : "pay"));
    }
}

#define ORDERS_COUNTED                                                                             \
    "{\"by_state\":{\"dropped\":1,\"new\":1,\"paid\":3},"                                          \
    "\"by_status\":{\"suspended\":4,\"cancelled\":1},\"total\":5}"

WORLD_TEST(query, counts_are_by_state_and_by_status_of_all_that_was_acknowledged) /* (6), A42 */
{
    EXPECT_TEXT(ask(world, "instance.counts", "{}"),
                "{\"by_state\":{},\"by_status\":{},\"total\":0}");
    make_orders(world);
    EXPECT_TEXT(ask(world, "instance.counts", "{}"), ORDERS_COUNTED); /* its rows lag */
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(ask(world, "instance.counts", "{}"), ORDERS_COUNTED); /* they do not */
    world_close(world);
    world->options.own = false;
    world_open(world);
    EXPECT_TEXT(ask(world, "instance.counts", "{}"), ORDERS_COUNTED);
}

WORLD_TEST(query, counts_take_one_definition_or_one_version_of_it)
{
    make_orders(world);
    world_define(world, ORDER "# another text\n");
    world_create(world, "order", NULL);
    EXPECT_TEXT(ask(world, "instance.counts", "{\"definition\":\"order@2\"}"),
                "{\"by_state\":{\"new\":1},\"by_status\":{\"suspended\":1},\"total\":1}");
    EXPECT_TEXT(ask(world, "instance.counts", "{\"definition\":\"order@1\"}"), ORDERS_COUNTED);
    EXPECT_HAS(ask(world, "instance.counts", "{\"definition\":\"order\"}"), "\"total\":6");
    EXPECT_TEXT(ask(world, "instance.counts", "{\"definition\":\"ord\"}"),
                "{\"by_state\":{},\"by_status\":{},\"total\":0}");
}

WORLD_TEST(query, a_flow_at_work_counts_as_running_and_one_that_waits_as_suspended)
{
    world_define(world,
                 "name: pair\nsteps:\n  start: {name: one, tool: nobody/has-it, done: true}\n");
    world_define(
        world, "name: nap\nsteps:\n  start: {name: z, tool: sleep, args: {for: 1h}, done: true}\n");
    world_create(world, "pair", NULL);
    world_create(world, "nap", NULL);
    EXPECT_TEXT(ask(world, "instance.counts", "{}"),
                "{\"by_state\":{\"running\":2},\"by_status\":{\"running\":1,\"suspended\":1},"
                "\"total\":2}");
}

WORLD_TEST(query, counts_refuse_what_they_do_not_know)
{
    char *answer = NULL;

    EXPECT_EQ(
        pawl_call(world->p, "instance.counts", "{\"colour\":\"red\"}", &answer, &world->error),
        PAWL_INVALID_QUERY);
    EXPECT_EQ(
        pawl_call(world->p, "instance.counts", "{\"definition\":\"a@b\"}", &answer, &world->error),
        PAWL_INVALID_QUERY);
}

/* ---- cancelling what belongs together (E29) ---- */

WORLD_TEST(query, a_correlation_of_thousands_is_cancelled_and_nothing_else)
{
    pawl_create_args args = { .definition = "order", .correlation_id = "many" };
    pawl_id id;

    world_define(world, ORDER);
    world_create(world, "order", NULL);
    for (int i = 0; i < 2100; i++)
        EXPECT_OK(pawl_create(world->p, &args, &id, &world->error));
    EXPECT_OK(world_fire(world, id.text, "pay"));
    EXPECT_TEXT(ask(world, "instance.cancel_many", "{\"correlation_id\":\"many\"}"),
                "{\"cancelled\":2099,\"refused\":1}");
    EXPECT_TEXT(ask(world, "instance.counts", "{}"),
                "{\"by_state\":{\"dropped\":2099,\"new\":1,\"paid\":1},"
                "\"by_status\":{\"suspended\":2,\"cancelled\":2099},\"total\":2101}");
}
