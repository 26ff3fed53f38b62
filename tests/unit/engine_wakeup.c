/* engine_wakeup.c - a host that polls: pawl_fd() is readable exactly while pawl_run_due() has
 * something to do. The clock is the world's; what a real clock does is seen by
 * examples/embed/loop.c. */
#include "engine_fixture.h"
#include <poll.h>
#include <pthread.h>

static bool is_readable(pawl *p)
{
    struct pollfd polled = { .fd = pawl_fd(p), .events = POLLIN };
    int count = poll(&polled, 1, 0);

    EXPECT(polled.fd >= 0 && count >= 0);
    EXPECT_EQ(count == 1, pawl_next_due(p) == 0); /* the two always agree */
    return count == 1;
}

static void begin(struct world *world)
{
    world_begin(world, "sqlite");
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT(!is_readable(world->p));
}

TEST(wakeup, is_readable_when_a_timer_is_due_and_not_before)
{
    struct world world;
    const char *id;

    begin(&world);
    id = world_create(&world, "ticker", "{}");
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    EXPECT(pawl_next_due(world.p) > 0);
    env_sim_advance(world.env, pawl_next_due(world.p) - 1);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    env_sim_advance(world.env, 1);
    EXPECT_EQ(pawl_next_due(world.p), 0);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    EXPECT_HAS(world_actions(&world, id), "timer");
    world_end(&world);
}

TEST(wakeup, is_readable_when_rows_of_an_owner_lag_and_not_when_they_are_written)
{
    struct world world;

    begin(&world);
    world_define(&world, ORDER);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    EXPECT_OK(world_fire(&world, world_create(&world, "order", NULL), "pay"));
    EXPECT(is_readable(world.p));
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    world_end(&world);
}

static void *create_flow(void *context)
{
    pawl_id id;

    return pawl_create(context, &(pawl_create_args){ .definition = "hello" }, &id, NULL) ? context
                                                                                         : NULL;
}

TEST(wakeup, is_readable_when_another_thread_made_work)
{
    static const char flow[] =
        "name: hello\nsteps:\n  start: {tool: set, args: {a: 1}, done: true}\n";
    struct world world;
    pthread_t thread;
    void *failed;

    begin(&world);
    world_define(&world, flow);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    EXPECT_EQ(pthread_create(&thread, NULL, create_flow, world.p), 0);
    pthread_join(thread, &failed);
    EXPECT(!failed);
    EXPECT(is_readable(world.p));
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    EXPECT_EQ(pawl_next_due(world.p), -1);
    world_end(&world);
}

static void nothing(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, "1");
}

TEST(wakeup, is_readable_when_the_tool_that_a_step_waits_for_is_registered)
{
    static const char flow[] = "name: late\nsteps:\n  start: {tool: late, args: {}, done: true}\n";
    struct world world;
    const char *id;

    begin(&world);
    world_define(&world, flow);
    id = world_create(&world, "late", "{}");
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    EXPECT_OK(pawl_tool_register(world.p, "late", nothing, NULL, &world.error));
    EXPECT(is_readable(world.p));
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    world_expect_state(&world, id, "completed");
    world_end(&world);
}

TEST(wakeup, is_never_readable_where_workers_do_the_work)
{
    struct pollfd polled = { .events = POLLIN };
    struct world world;

    world_begin(&world, "sqlite");
    world_close(&world);
    world.options.workers = 1;
    world_open(&world);
    polled.fd = pawl_fd(world.p);
    EXPECT(polled.fd >= 0 && polled.fd == pawl_fd(world.p));
    world_define(&world, ORDER);
    EXPECT_OK(world_fire(&world, world_create(&world, "order", NULL), "pay"));
    EXPECT_EQ(poll(&polled, 1, 0), 0);
    world_end(&world);
}

/* A timer that nobody here can handle must not keep a host's loop spinning. */
TEST(wakeup, is_not_readable_for_a_while_when_a_due_timer_has_no_handler_here)
{
    pawl_code_type here_once = ticker_type;
    struct world world;

    here_once.name = "here-once";
    begin(&world);
    EXPECT_OK(pawl_code_register(world.p, &here_once, &world.error));
    world_create(&world, "here-once", "{}");
    world_close(&world);
    world.now_ms += 3600000;
    world_open(&world);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT(!is_readable(world.p));
    EXPECT(pawl_next_due(world.p) > 0);
    world_end(&world);
}
