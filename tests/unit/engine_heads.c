/* engine_heads.c - which heads are remembered, and that forgetting one changes nothing. */
#include "engine/parts.h"
#include "engine_fixture.h"

#define MANY 10000u

static void add(struct heads *heads, uint64_t instance)
{
    struct head head = { .instance = instance, .pos = instance * 10, .seq = 1 };

    EXPECT(heads_add(heads, &head) != NULL);
}

TEST(heads, a_released_head_is_gone_and_its_place_is_taken_by_the_next)
{
    struct heads heads;

    EXPECT(heads_init(&heads, &heap_libc));
    for (uint64_t i = 1; i <= MANY; i++)
        add(&heads, i);
    for (uint64_t i = 2; i <= MANY; i += 2)
        heads_release(&heads, i);
    for (uint64_t i = 1; i <= MANY; i++) {
        const struct head *head = heads_find(&heads, i);

        EXPECT((head != NULL) == (i % 2 == 1));
        EXPECT(!head || head->pos == i * 10);
    }
    for (uint64_t i = 1; i <= MANY / 2; i++)
        add(&heads, MANY + i);
    EXPECT_EQ(heads.count, MANY);
    EXPECT(heads_find(&heads, 1) && heads_find(&heads, MANY + 1) && !heads_find(&heads, 2));
    heads_fini(&heads);
}

TEST(heads, a_head_whose_row_lags_is_not_released)
{
    struct heads heads;
    struct head out;
    uint64_t flushed;

    EXPECT(heads_init(&heads, &heap_libc));
    add(&heads, 7);
    EXPECT(heads_mark_dirty(&heads, heads_find(&heads, 7)));
    heads_release(&heads, 7);
    EXPECT(heads_find(&heads, 7) != NULL);
    EXPECT_EQ(heads_slice(&heads, 1, 70, &out, &flushed), 1);
    EXPECT_EQ(out.instance, 7);
    heads_release(&heads, 7);
    EXPECT(heads_find(&heads, 7) == NULL);
    heads_release(&heads, 7); /* of one that is not there: nothing */
    heads_fini(&heads);
}

/* More than are remembered: those that were let go are restored, head and all, and go on. */
TEST(heads, instances_that_were_forgotten_wake_where_they_stood)
{
    static char ids[ACTORS_KEPT + 1000][27];
    size_t count = sizeof ids / sizeof *ids;
    struct world world;

    world_begin(&world, "memory");
    for (size_t i = 0; i < count; i++)
        memcpy(ids[i], world_create(&world, "ticker", NULL), 27);
    for (size_t i = 0; i < count; i += 40) {
        EXPECT_OK(pawl_signal(world.p, ids[i], "slower", NULL, "ann", &world.error));
        EXPECT_OK(pawl_signal(world.p, ids[i], "stop", NULL, "ann", &world.error));
        world_expect_state(&world, ids[i], "completed");
        EXPECT_TEXT(world_actions(&world, ids[i]), "start signal signal finish");
    }
    world_expect_valid(&world);
    world_end(&world);
}

/* ---- Restored before their timers fall due ---- */

/* As the thread that fires timers does before it rests. */
static bool restore_ahead(struct test *t, struct world *world)
{
    struct engine *engine = world->p->engine;
    bool has_looked;

    guard_lock(&engine->lock);
    has_looked = timers_restore_ahead(engine, &t->scope);
    guard_unlock(&engine->lock);
    return has_looked;
}

static uint32_t count_loaded(const struct world *world)
{
    const struct actors *actors = &world->p->engine->actors;
    uint32_t count = 0;

    for (uint32_t i = 0; i < actors->count; i++)
        count += actors->items[i]->is_loaded;
    return count;
}

/* Nothing is remembered of what was before, and it is known when the next timer is due. */
static void open_again(struct world *world)
{
    world_close(world);
    world_open(world);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_EQ(count_loaded(world), 0);
}

WORLD_TEST(heads, what_falls_due_in_a_moment_is_restored_before_that_and_fires_when_it_is_due)
{
    char ids[100][27];
    size_t count = sizeof ids / sizeof *ids;

    for (size_t i = 0; i < count; i++)
        memcpy(ids[i], world_create(world, "ticker", NULL), 27);
    EXPECT_OK(pawl_signal(world->p, ids[0], "slower", NULL, "ann", &world->error));
    EXPECT_OK(pawl_signal(world->p, ids[0], "slower", NULL, "ann", &world->error));
    open_again(world);
    EXPECT(restore_ahead(t, world));
    EXPECT_EQ(count_loaded(world), count - 1); /* not the one that is due in four seconds */
    EXPECT(!restore_ahead(t, world));
    world_advance(world, 999);
    EXPECT_TEXT(world_actions(world, ids[1]), "start");
    world_advance(world, 1);
    for (size_t i = 1; i < count; i++)
        EXPECT_TEXT(world_actions(world, ids[i]), "start timer");
    EXPECT_TEXT(world_actions(world, ids[0]), "start signal signal");
    world_expect_valid(world);
}

TEST(heads, what_was_restored_ahead_is_forgotten_when_its_timers_have_fired)
{
    struct world world;

    world_begin(&world, "memory");
    world_define(&world, "name: rest\nsteps:\n  pause: {wait: {timer: 1s}, done: true}\n");
    for (size_t i = 0; i < ACTORS_KEPT + 1000; i++)
        (void)world_create(&world, "rest", NULL);
    open_again(&world);
    EXPECT(restore_ahead(t, &world));
    EXPECT_EQ(count_loaded(&world), ACTORS_KEPT + 1000);
    world_advance(&world, 1000);
    world_advance(&world, 1000);
    EXPECT(restore_ahead(t, &world));
    EXPECT(world.p->engine->actors.count <= ACTORS_KEPT);
    EXPECT(!restore_ahead(t, &world));
    world_end(&world);
}
