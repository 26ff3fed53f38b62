/* engine_flight.c - fires that nobody waits for: told once, after they are durable. */
#include "base/limits.h"
#include "engine_fixture.h"
#include <pthread.h>
#include <stdlib.h>

#define FLIGHTS 500

struct flight {
    struct fire_call call; /* first: what `done` is given */
    struct scope scope;
    struct tower *tower;
};

struct tower {
    struct world *world;
    pthread_mutex_t lock;
    pthread_cond_t landed;
    uint32_t count, refused, early;
    struct flight flights[FLIGHTS];
};

/* Whoever is told finds the entry there. */
static void done(struct fire_call *call)
{
    struct flight *flight = (struct flight *)call;
    struct tower *tower = flight->tower;

    pthread_mutex_lock(&tower->lock);
    tower->count++;
    tower->refused += call->fire.status != PAWL_OK;
    if (call->fire.status == PAWL_OK &&
        engine_position(tower->world->p->engine) < call->fire.fired.seq)
        tower->early++;
    pthread_cond_signal(&tower->landed);
    pthread_mutex_unlock(&tower->lock);
}

static void launch(struct tower *tower, struct flight *flight, const char *id, const char *action)
{
    scope_init(&flight->scope, &heap_libc, LIMIT_SCOPE);
    flight->tower = tower;
    flight->call = (struct fire_call){
        .scope = &flight->scope,
        .fire.args = { .id = str_of(id), .action = str_of(action) },
        .done = done,
    };
    engine_fire_start(tower->world->p->engine, &flight->call);
}

static void launch_all(struct tower *tower, const char *id)
{
    launch(tower, &tower->flights[0], id, "pay");
    for (uint32_t i = 1; i < FLIGHTS; i++)
        launch(tower, &tower->flights[i], id, i % 10 == 9 ? "drop" : "note");
    pthread_mutex_lock(&tower->lock);
    while (tower->count < FLIGHTS)
        pthread_cond_wait(&tower->landed, &tower->lock);
    pthread_mutex_unlock(&tower->lock);
}

static void expect_all(struct tower *tower)
{
    uint64_t seq = 0;

    EXPECT_EQ(tower->count, FLIGHTS);
    EXPECT_EQ(tower->refused, FLIGHTS / 10);
    EXPECT_EQ(tower->early, 0);
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        const struct batch_fire *fire = &tower->flights[i].call.fire;

        if (i % 10 == 9) {
            EXPECT_EQ(fire->status, PAWL_INVALID_TRANSITION);
            EXPECT_HAS(fire->words, "drop");
        } else {
            EXPECT_EQ(fire->fired.seq, ++seq);
        }
        scope_fini(&tower->flights[i].scope);
    }
}

static struct tower *tower_new(struct world *world)
{
    struct tower *tower = calloc(1, sizeof *tower);

    tower->world = world;
    pthread_mutex_init(&tower->lock, NULL);
    pthread_cond_init(&tower->landed, NULL);
    return tower;
}

WORLD_TEST(flight, without_threads_a_fire_is_done_when_it_was_started)
{
    struct tower *tower = tower_new(world);

    world_define(world, ORDER);
    launch_all(tower, world_create(world, "order", NULL));
    expect_all(tower);
    free(tower);
}

TEST(flight, fires_that_nobody_waits_for_are_told_in_order_and_share_commits)
{
    struct world world;
    struct tower *tower;
    struct engine_figures figures;
    uint64_t records, commits = 0;

    world_begin(&world, "sqlite");
    world_close(&world);
    world.options.workers = 1;
    world_open(&world);
    tower = tower_new(&world);
    world_define(&world, ORDER);
    launch_all(tower, world_create(&world, "order", NULL));
    expect_all(tower);
    engine_figures(world.p->engine, &figures);
    records = figures.position;
    for (int i = 0; i <= HISTOGRAM_BOUNDS; i++)
        commits += figures.commit->counts[i];
    EXPECT(records > FLIGHTS / 2);
    EXPECT(commits < records);
    world_expect_valid(&world);
    world_end(&world);
    free(tower);
}
