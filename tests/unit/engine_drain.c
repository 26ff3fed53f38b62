/* engine_drain.c - one thread at a time drains: the drain's own, the one that moves a test clock,
 * the one that mends a store that failed. */
#include "api/world.h"
#include "engine/parts.h"
#include "engine_fixture.h"
#include <stdio.h>

enum { FIRES = 40, MENDS = 20 };

/* ---- Who is in a commit ---- */

static _Atomic int inside, most_inside;
static void (*reached_before)(struct env *env, enum env_point point);

static void count_commits(struct env *env, enum env_point point)
{
    if (point == POINT_BEFORE_BEGIN) {
        int now = ++inside;

        if (now > most_inside)
            most_inside = now;
    } else if (point == POINT_AFTER_COMMIT)
        inside--;
    reached_before(env, point);
}

/* With threads of its own, in the real world: theirs are real waits. */
static void open_with_threads(struct world *world, const pawl_code_type *type)
{
    struct env *env = env_os_new(&heap_libc);

    world_close(world);
    world->env = env;
    EXPECT(env);
    reached_before = env->reached;
    env->reached = count_commits;
    inside = most_inside = 0;
    world->options = (pawl_options){ .own = true, .workers = 2, .test_clock = true };
    EXPECT_OK(pawl_open_env(&world->p, world->url, &world->options, env, &world->error));
    EXPECT_OK(pawl_code_register(world->p, type, &world->error));
    world_define(world, ORDER);
}

static void *fire_often(void *context)
{
    struct world *world = context;
    const char *id = world_create(world, "order", NULL);

    EXPECT_EQ(pawl_fire(world->p, id, &(pawl_fire_args){ .action = "pay" }, NULL, NULL), PAWL_OK);
    for (int i = 1; i < FIRES; i++)
        EXPECT_EQ(pawl_fire(world->p, id, &(pawl_fire_args){ .action = "note" }, NULL, NULL),
                  PAWL_OK);
    return NULL;
}

WORLD_TEST(drain, one_thread_at_a_time_commits_while_one_moves_the_clock_and_another_fires)
{
    const char *id;
    pthread_t thread;

    open_with_threads(world, &ticker_type);
    id = world_create(world, "ticker", NULL);
    EXPECT(pthread_create(&thread, NULL, fire_often, world) == 0);
    for (int i = 0; i < FIRES; i++)
        EXPECT_OK(pawl_test_advance(world->p, 1000, &world->error));
    pthread_join(thread, NULL);
    EXPECT_EQ(most_inside, 1);
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

/* ---- A call of another thread while a handler runs ---- */

static struct {
    pthread_barrier_t begun;
    _Atomic bool was_fired;
} slow;

/* Its timer's turn lasts until another thread's fire has been recorded. */
static void handle_slowly(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    if (event->kind == PAWL_EVENT_START) {
        pawl_turn_timer(turn, "tick", 1000);
        return;
    }
    pthread_barrier_wait(&slow.begun);
    while (!slow.was_fired)
        sched_yield();
    pawl_turn_complete(turn, NULL);
}

static void *fire_meanwhile(void *context)
{
    struct world *world = context;
    const char *id = world_create(world, "order", NULL);

    pthread_barrier_wait(&slow.begun);
    EXPECT_EQ(pawl_fire(world->p, id, &(pawl_fire_args){ .action = "pay" }, NULL, NULL), PAWL_OK);
    slow.was_fired = true;
    return NULL;
}

WORLD_TEST(drain, a_fire_is_recorded_while_an_advance_waits_for_a_handler)
{
    static const char *const timers[] = { "tick", NULL };
    const pawl_code_type type = { .name = "slow", .timers = timers, .handle = handle_slowly };
    const char *id;
    pthread_t thread;

    slow.was_fired = false;
    pthread_barrier_init(&slow.begun, NULL, 2);
    open_with_threads(world, &type);
    id = world_create(world, "slow", NULL);
    EXPECT(pthread_create(&thread, NULL, fire_meanwhile, world) == 0);
    EXPECT_OK(pawl_test_advance(world->p, 1000, &world->error));
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&slow.begun);
    world_expect_state(world, id, "completed");
}

/* ---- A store that failed ---- */

static void *wake_drain(void *context)
{
    struct world *world = context;

    for (int i = 0; i < MENDS; i++)
        engine_suspect(world->p->engine);
    return NULL;
}

/* As a commit leaves it whose outcome is not known, and after which the store did not open. */
static void break_store(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine->shell.wait_for_drain++;
    while (engine->writer.drainer)
        guard_wait(&engine->lock, &engine->shell.changed);
    engine->shell.wait_for_drain--;
    engine->writer.broken = true;
    guard_unlock(&engine->lock);
}

WORLD_TEST(drain, a_caller_and_the_drains_thread_mend_a_store_one_after_the_other)
{
    const char *id;
    pthread_t thread;

    open_with_threads(world, &ticker_type);
    id = world_create(world, "order", NULL);
    EXPECT(pthread_create(&thread, NULL, wake_drain, world) == 0);
    for (int i = 0; i < MENDS; i++) {
        engine_mend(world->p->engine);
        break_store(world->p->engine);
    }
    pthread_join(thread, NULL);
    engine_mend(world->p->engine);
    EXPECT_EQ(world_fire(world, id, "pay"), PAWL_OK);
    world_expect_valid(world);
}

static void *mend_often(void *context)
{
    struct world *world = context;

    for (int i = 0; i < MENDS; i++) {
        break_store(world->p->engine);
        engine_mend(world->p->engine);
    }
    return NULL;
}

WORLD_TEST(drain, a_clock_moves_on_while_another_caller_mends_the_store)
{
    const char *id;
    pthread_t thread;

    open_with_threads(world, &ticker_type);
    id = world_create(world, "ticker", NULL);
    EXPECT(pthread_create(&thread, NULL, mend_often, world) == 0);
    for (int i = 0; i < MENDS; i++)
        EXPECT_OK(pawl_test_advance(world->p, 1000, &world->error));
    pthread_join(thread, NULL);
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
    world_expect_state(world, id, "completed");
}

/* ---- So many turns ---- */

WORLD_TEST(drain, after_so_many_turns_of_the_clock_nothing_is_left_under_way)
{
    int64_t moved_ms;
    const char *id;

    world_close(world);
    world->options.test_clock = true;
    world_open(world);
    id = world_create(world, "ticker", NULL);
    EXPECT_OK(world_take_turns(world->p, id, 2, 10000, &moved_ms, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start timer timer");
    EXPECT_EQ(moved_ms, 2000);
}
