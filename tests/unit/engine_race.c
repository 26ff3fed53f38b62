/* engine_race.c - eight threads for one transition (D38): on one pawl, whoever drains; and each
 * with a pawl of its own on one store, which keeps them apart as it does processes. */
#include "engine_fixture.h"
#include <pthread.h>
#include <stdio.h>

enum { RACERS = 8, ROUNDS = 6 };

struct racer {
    pawl *p;
    const char *id;
    pthread_barrier_t *line;
    pawl_status status, noted; /* of the transition that only one can have, and of one for all */
};

static void *run(void *context)
{
    struct racer *racer = context;

    pthread_barrier_wait(racer->line);
    racer->status =
        pawl_fire(racer->p, racer->id, &(pawl_fire_args){ .action = "pay" }, NULL, NULL);
    racer->noted =
        pawl_fire(racer->p, racer->id, &(pawl_fire_args){ .action = "note" }, NULL, NULL);
    return NULL;
}

/* One instance; the statuses of all are looked at when all are back. */
static void race(struct world *world, pawl *const handles[RACERS])
{
    struct racer racers[RACERS];
    pthread_t threads[RACERS];
    pthread_barrier_t line;
    const char *id = world_create(world, "order", NULL);
    int won = 0, lost = 0;

    pthread_barrier_init(&line, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){ .p = handles[i], .id = id, .line = &line };
        EXPECT(pthread_create(&threads[i], NULL, run, &racers[i]) == 0);
    }
    for (int i = 0; i < RACERS; i++) {
        pthread_join(threads[i], NULL);
        won += racers[i].status == PAWL_OK;
        lost += racers[i].status == PAWL_INVALID_TRANSITION;
        EXPECT_EQ(racers[i].noted, PAWL_OK); /* what it remembers of its turn is old by now */
    }
    pthread_barrier_destroy(&line);
    EXPECT_EQ(won, 1);
    EXPECT_EQ(lost, RACERS - 1);
    EXPECT_TEXT(world_actions(world, id), "pay note note note note note note note note");
}

static void race_on_one(struct world *world, pawl_options options)
{
    pawl *handles[RACERS];

    world_close(world);
    EXPECT_OK(pawl_open(&world->p, world->url, &options, &world->error));
    world_define(world, ORDER);
    for (int i = 0; i < RACERS; i++)
        handles[i] = world->p;
    for (int round = 0; round < ROUNDS; round++)
        race(world, handles);
    world_expect_valid(world);
    pawl_close(world->p);
    world->p = NULL;
}

WORLD_TEST(race, of_eight_threads_of_an_owner_one_wins)
{
    race_on_one(world, (pawl_options){ .own = true });
}

WORLD_TEST(race, of_eight_threads_of_a_server_one_wins)
{
    race_on_one(world, (pawl_options){ .own = true, .workers = 2 });
}

WORLD_TEST(race, of_eight_threads_that_share_the_store_one_wins)
{
    race_on_one(world, (pawl_options){ 0 });
}

WORLD_TEST(race, of_eight_handles_without_an_owner_one_wins)
{
    pawl *handles[RACERS];

    world_close(world);
    for (int i = 0; i < RACERS; i++)
        EXPECT_OK(pawl_open(&handles[i], world->url, NULL, &world->error));
    world->p = handles[0];
    world_define(world, ORDER);
    for (int round = 0; round < ROUNDS; round++)
        race(world, handles);
    world_expect_valid(world);
    for (int i = 0; i < RACERS; i++)
        pawl_close(handles[i]);
    world->p = NULL;
}
