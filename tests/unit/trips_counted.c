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

/* Rows that lag are written when nothing has happened for a moment: on a busy machine that may fall
 * into a measurement, so the least of several counts. */
#define TURNS 5

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

TEST(trips_postgres, a_fire_in_memory_is_one_round_trip)
{
    uint64_t before, found = UINT64_MAX;
    struct world world;
    const char *id;

    begin(&world);
    id = world_create(&world, "order", NULL);
    EXPECT_EQ(world_fire(&world, id, "pay"), PAWL_OK);
    for (int i = 0; i < TURNS; i++) {
        before = trips(&world);
        EXPECT_EQ(world_fire(&world, id, "note"), PAWL_OK);
        found = least(found, trips(&world) - before);
    }
    EXPECT_EQ(found, 1);
    world_end(&world);
}

TEST(trips_postgres, a_page_of_100_instances_is_two_round_trips)
{
    uint64_t before, found = UINT64_MAX;
    struct world world;

    begin(&world);
    for (int i = 0; i < PAGE + 20; i++)
        (void)world_create(&world, "order", NULL);
    call(&world, "instance.list", "{\"limit\":100}");
    for (int i = 0; i < TURNS; i++) {
        before = trips(&world);
        call(&world, "instance.list", "{\"limit\":100}");
        found = least(found, trips(&world) - before);
    }
    EXPECT_EQ(found, 2); /* which, and all of each */
    world_end(&world);
}

/* By different actors, each with a key: 192 reads, and a commit. */
static uint64_t fire_cold(struct world *world, char (*ids)[ID_SIZE + 1], int turn)
{
    char actors[COLD][24], keys[COLD][24];
    pawl_batch_fire fires[COLD];
    uint64_t before;

    world_close(world);
    world_open(world);
    EXPECT_EQ(world_fire(world, ids[COLD], "note"), PAWL_OK); /* reads their definition */
    for (int i = 0; i < COLD; i++) {
        snprintf(actors[i], sizeof actors[i], "ann %d-%d", turn, i);
        snprintf(keys[i], sizeof keys[i], "key %d-%d", turn, i);
        fires[i] = (pawl_batch_fire){
            .id = ids[i],
            .args = { .action = "note", .actor_ref = actors[i], .idempotency_key = keys[i] }
        };
    }
    before = trips(world);
    EXPECT_EQ(pawl_fire_batch(world->p, fires, COLD, &world->error), PAWL_OK);
    for (int i = 0; i < COLD; i++)
        EXPECT_EQ(fires[i].status, PAWL_OK);
    return trips(world) - before;
}

TEST(trips_postgres, cold_fires_of_64_instances_are_two_round_trips)
{
    static char ids[COLD + 1][ID_SIZE + 1];
    uint64_t found = UINT64_MAX;
    struct world world;

    begin(&world);
    for (int i = 0; i <= COLD; i++) {
        snprintf(ids[i], sizeof ids[i], "%s", world_create(&world, "order", NULL));
        EXPECT_EQ(world_fire(&world, ids[i], "pay"), PAWL_OK);
    }
    for (int i = 0; i < TURNS; i++)
        found = least(found, fire_cold(&world, ids, i));
    EXPECT_EQ(found, 2);
    world_end(&world);
}

static uint64_t create(struct world *world, const char *key)
{
    pawl_create_args args = { .definition = "order", .actor_ref = "ann", .idempotency_key = key };
    uint64_t before = trips(world);
    pawl_id id;

    EXPECT_EQ(pawl_create(world->p, &args, &id, &world->error), PAWL_OK);
    return trips(world) - before;
}

TEST(trips_postgres, a_creation_is_one_round_trip_and_two_with_a_key)
{
    uint64_t found = UINT64_MAX, with_key = UINT64_MAX;
    struct world world;

    begin(&world);
    (void)create(&world, NULL);
    for (int i = 0; i < TURNS; i++) {
        char key[16];

        snprintf(key, sizeof key, "k%d", i);
        found = least(found, create(&world, NULL));
        with_key = least(with_key, create(&world, key));
    }
    EXPECT_EQ(found, 1);
    EXPECT_EQ(with_key, 2); /* one to look for it */
    world_end(&world);
}

/* ---- Flows ---- */

static void add_one(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)call;
    ++*(int *)context;
    pawl_answer_result(answer, "{}");
}

/* What a tool is called with was read when its step was decided. */
TEST(trips_postgres, each_step_of_a_flow_is_one_round_trip)
{
    static const char flow[] = "name: ten\nsteps:\n"
                               "  a: {tool: add, next: b}\n  b: {tool: add, next: c}\n"
                               "  c: {tool: add, next: d}\n  d: {tool: add, done: true}\n";
    uint64_t before, found = UINT64_MAX;
    struct world world;
    int calls = 0;

    begin(&world);
    world_define(&world, flow);
    EXPECT_EQ(pawl_tool_register(world.p, "add", add_one, &calls, &world.error), PAWL_OK);
    for (int i = 0; i < TURNS; i++) {
        before = trips(&world);
        (void)world_create(&world, "ten", NULL);
        EXPECT_EQ(pawl_run_due(world.p, &world.error), PAWL_OK);
        found = least(found, trips(&world) - before);
    }
    EXPECT_EQ(calls, 4 * TURNS);
    EXPECT_EQ(found, 1 + 1 + 4); /* made, the first one started, and each one done */
    world_end(&world);
}
