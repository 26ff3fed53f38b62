/* engine_owner.c - who may write: owners, shared writers, threads of a server. */
#include "engine_fixture.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(owner, a_second_program_beside_an_owner_is_told_who_owns_the_store)
{
    struct world world;
    pawl *second;
    pawl_error error;

    world_begin(&world, "sqlite");
    EXPECT_EQ(pawl_open(&second, world.url, &(pawl_options){ .own = true }, &error), PAWL_IN_USE);
    EXPECT_HAS(error.message, "process");
    EXPECT(second == NULL);
    world_end(&world);
}

TEST(owner, a_shared_writer_beside_an_owner_may_read_but_not_write)
{
    struct world world;
    const char *id, *state;
    pawl *second;
    pawl_error error;
    pawl_fired fired;

    world_begin(&world, "sqlite");
    world_define(&world, ORDER);
    id = world_create(&world, "order", NULL);
    EXPECT_OK(world_fire(&world, id, "pay"));
    EXPECT_OK(pawl_open(&second, world.url, NULL, &error));
    EXPECT_OK(pawl_current(second, id, &state, &error));
    EXPECT_TEXT(state, "paid");
    EXPECT_EQ(pawl_fire(second, id, &(pawl_fire_args){ .action = "note" }, &fired, &error),
              PAWL_IN_USE);
    pawl_close(second);
    EXPECT_TEXT(world_actions(&world, id), "pay");
    world_end(&world);
}

/* ---- A store that another process takes over ---- */

static const struct store_ops *real_ops;
static struct store_ops taken_ops;
static uint32_t reopened;

static pawl_status commit_taken(struct store *store, struct scope *scope,
                                const struct commit *commit)
{
    (void)commit;
    real_ops->rollback(store);
    return scope_fail(scope, PAWL_IN_USE, "node 2 has claimed this shard");
}

static pawl_status count_reopen(struct store *store, struct scope *scope)
{
    reopened++;
    return real_ops->reopen(store, scope);
}

static void take_over(struct world *world)
{
    struct store *store = engine_store(world->p->engine);

    real_ops = store->ops;
    taken_ops = *real_ops;
    taken_ops.commit = commit_taken;
    taken_ops.reopen = count_reopen;
    store->ops = &taken_ops;
}

/* SCALE.md 8.2: the batch is dropped, requests fail with in-use, and the store is not opened again. */
static void expect_over(const char *backend)
{
    struct world world;
    const char *id, *state;

    world_begin(&world, backend);
    world_define(&world, ORDER);
    id = world_create(&world, "order", NULL);
    take_over(&world);
    EXPECT_EQ(world_fire(&world, id, "pay"), PAWL_IN_USE);
    taken_ops.commit = real_ops->commit; /* even if it could write again */
    EXPECT_EQ(world_fire(&world, id, "pay"), PAWL_IN_USE);
    EXPECT_HAS(world.error.message, "another process");
    world_advance(&world, 60000);
    EXPECT_EQ(world_fire(&world, id, "pay"), PAWL_IN_USE);
    EXPECT_OK(pawl_current(world.p, id, &state, &world.error));
    EXPECT_TEXT(state, "new");
    EXPECT_EQ(reopened, 0);
    world_close(&world);
    world_open(&world);
    EXPECT_OK(world_fire(&world, id, "pay"));
    world_end(&world);
}

TEST(owner, a_commit_that_answers_in_use_ends_the_engine)
{
    (void)t;
    expect_over("sqlite");
    expect_over("memory");
}

TEST(owner, two_shared_writers_never_fork_a_history)
{
    struct world world;
    const char *id;
    pawl *other;
    pawl_error error;
    pawl_fired fired;

    world_begin(&world, "sqlite");
    world_close(&world);
    world.options.own = false;
    world_open(&world);
    world_define(&world, ORDER);
    id = world_create(&world, "order", NULL);
    EXPECT_OK(pawl_open(&other, world.url, NULL, &error));
    EXPECT_OK(world_fire(&world, id, "pay"));
    for (uint64_t n = 2; n < 100; n++) {
        EXPECT_OK(pawl_fire(n % 3 ? other : world.p, id, &(pawl_fire_args){ .action = "note" },
                            &fired, &error));
        EXPECT_EQ(fired.sequence_number, n);
    }
    pawl_close(other);
    world_expect_valid(&world);
    world_end(&world);
}

/* An owner that dies leaves rows behind the log; the next opener sees and mends that. */
TEST(owner, whoever_opens_after_an_owners_death_finds_all_that_was_acknowledged)
{
    struct world world;
    char ids[50][27];
    int status;
    pid_t child;

    world_begin(&world, "sqlite");
    world_define(&world, ORDER);
    for (int i = 0; i < 50; i++)
        memcpy(ids[i], world_create(&world, "order", NULL), 27);
    world_close(&world);
    child = fork();
    if (child == 0) {
        world_open(&world);
        for (int i = 0; i < 50; i++)
            if (world_fire(&world, ids[i], "pay"))
                _exit(1);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, &status, 0);
    EXPECT(WIFSIGNALED(status));
    world.options.own = false;
    world_open(&world);
    for (int i = 0; i < 50; i++)
        world_expect_state(&world, ids[i], "paid");
    EXPECT_OK(world_fire(&world, ids[7], "note"));
    world_expect_valid(&world);
    world_close(&world);
    world.options.own = true;
    world_open(&world);
    EXPECT_TEXT(world_actions(&world, ids[7]), "pay note");
    world_expect_valid(&world);
    world_end(&world);
}

/* ---- a server's threads ---- */

struct client {
    pawl *p;
    int failed;
};

static void *drive(void *context)
{
    struct client *client = context;
    pawl_error error;
    pawl_fired fired;
    pawl_id order, flow, ticker;
    const char *state = "";

    client->failed = 1;
    for (int i = 0; i < 10; i++) {
        if (pawl_create(client->p, &(pawl_create_args){ .definition = "order" }, &order, &error) ||
            pawl_create(client->p, &(pawl_create_args){ .definition = "pair" }, &flow, &error) ||
            pawl_create(client->p, &(pawl_create_args){ .definition = "ticker" }, &ticker,
                        &error) ||
            pawl_fire(client->p, order.text, &(pawl_fire_args){ .action = "pay" }, &fired,
                      &error) ||
            pawl_signal(client->p, ticker.text, "slower", NULL, NULL, &error) ||
            pawl_signal(client->p, ticker.text, "stop", NULL, NULL, &error))
            return NULL;
        while (strcmp(state, "completed") != 0 && strcmp(state, "failed") != 0)
            if (pawl_current(client->p, flow.text, &state, &error))
                return NULL;
        if (strcmp(state, "completed") != 0)
            return NULL;
        state = "";
    }
    client->failed = 0;
    return NULL;
}

TEST(owner, many_threads_share_a_server_and_every_instance_ends_as_it_should)
{
    struct world world;
    struct client clients[6];
    pthread_t threads[6];

    world_begin(&world, "sqlite");
    world_close(&world);
    world.options.workers = 3;
    EXPECT_OK(pawl_open(&world.p, world.url, &world.options, &world.error));
    EXPECT_OK(pawl_code_register(world.p, &ticker_type, &world.error));
    world_define(&world, ORDER);
    world_define(&world, "name: pair\nsteps:\n"
                         "  start: {name: a, tool: set, args: {x: 1}, next: b}\n"
                         "  b: {tool: set, args: {y: \"{{steps.a.result.x}}\"}, done: true}\n");
    for (int i = 0; i < 6; i++) {
        clients[i] = (struct client){ .p = world.p };
        EXPECT(pthread_create(&threads[i], NULL, drive, &clients[i]) == 0);
    }
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 6; i++)
        EXPECT_EQ(clients[i].failed, 0);
    world_expect_valid(&world);
    pawl_close(world.p);
    world.p = NULL;
    world_end(&world);
}
