/* trips_counted.c - how many round trips to PostgreSQL an operation costs, an owner's: each is a
 * network's latency. A count that grows is a defect. */
#include "engine/engine.h"
#include "engine_fixture.h"
#include "store/postgres/postgres_int.h"
#include <stdio.h>

#define PAGE 100
#define COLD 64

static uint64_t trips(const struct world *world)
{
    const struct pg_node *node = postgres_of(engine_store(world->p->engine))->node;
    uint64_t count = 0;

    for (uint32_t i = 0; i < NODE_LINKS; i++)
        count += node->lanes[i].link.round_trips + node->readers[i].link.round_trips;
    return count;
}

static void begin(struct world *world)
{
    world_begin(world, "postgres");
    world_define(world, ORDER);
}

static void call(struct world *world, const char *operation, const char *input)
{
    char *answer = NULL;

    EXPECT_EQ(pawl_call(world->p, operation, input, &answer, &world->error), PAWL_OK);
    pawl_free(world->p, answer);
}

TEST(trips_postgres, a_fire_in_memory_is_one_round_trip)
{
    struct world world;
    uint64_t before;
    const char *id;

    begin(&world);
    id = world_create(&world, "order", NULL);
    EXPECT_EQ(world_fire(&world, id, "pay"), PAWL_OK);
    before = trips(&world);
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(world_fire(&world, id, "note"), PAWL_OK);
    EXPECT_EQ(trips(&world), before + 10);
    world_end(&world);
}

TEST(trips_postgres, a_page_of_100_instances_is_two_round_trips)
{
    struct world world;
    uint64_t before;

    begin(&world);
    for (int i = 0; i < PAGE + 20; i++)
        (void)world_create(&world, "order", NULL);
    call(&world, "instance.list", "{\"limit\":100}");
    before = trips(&world);
    call(&world, "instance.list", "{\"limit\":100}");
    EXPECT_EQ(trips(&world) - before, 2); /* which, and all of each */
    world_end(&world);
}

/* By different actors, each with a key: 192 reads, and a commit. */
TEST(trips_postgres, cold_fires_of_64_instances_are_two_round_trips)
{
    static char ids[COLD + 1][ID_SIZE + 1], actors[COLD][16], keys[COLD][16];
    pawl_batch_fire fires[COLD];
    struct world world;
    uint64_t before;

    begin(&world);
    for (int i = 0; i <= COLD; i++)
        snprintf(ids[i], sizeof ids[i], "%s", world_create(&world, "order", NULL));
    world_close(&world);
    world_open(&world);
    EXPECT_EQ(world_fire(&world, ids[COLD], "pay"), PAWL_OK); /* reads their definition */
    for (int i = 0; i < COLD; i++) {
        snprintf(actors[i], sizeof actors[i], "ann %d", i);
        snprintf(keys[i], sizeof keys[i], "key %d", i);
        fires[i] = (pawl_batch_fire){
            .id = ids[i],
            .args = { .action = "pay", .actor_ref = actors[i], .idempotency_key = keys[i] }
        };
    }
    before = trips(&world);
    EXPECT_EQ(pawl_fire_batch(world.p, fires, COLD, &world.error), PAWL_OK);
    for (int i = 0; i < COLD; i++)
        EXPECT_EQ(fires[i].status, PAWL_OK);
    EXPECT_EQ(trips(&world) - before, 2);
    world_end(&world);
}

/* One to look for the key, and the commit. */
TEST(trips_postgres, a_creation_is_one_round_trip_and_two_with_a_key)
{
    pawl_create_args args = { .definition = "order", .actor_ref = "ann" };
    struct world world;
    uint64_t before;
    pawl_id id;

    begin(&world);
    EXPECT_EQ(pawl_create(world.p, &args, &id, &world.error), PAWL_OK);
    before = trips(&world);
    EXPECT_EQ(pawl_create(world.p, &args, &id, &world.error), PAWL_OK);
    EXPECT_EQ(trips(&world) - before, 1);
    args.idempotency_key = "k";
    EXPECT_EQ(pawl_create(world.p, &args, &id, &world.error), PAWL_OK);
    EXPECT_EQ(trips(&world) - before, 3);
    world_end(&world);
}
