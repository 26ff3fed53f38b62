/* engine_machine.c - a machine through the whole engine, on every backend. Numbers in
 * parentheses are the promises of engine/engine.h. */
#include "engine_fixture.h"
#include <pthread.h>
#include <stdio.h>

WORLD_TEST(machine, a_fire_that_is_accepted_is_one_entry_and_survives_a_restart)
{
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    world_close(world);
    world_open(world);
    world_expect_state(world, id, "paid");
    EXPECT_TEXT(world_actions(world, id), "pay");
    world_expect_valid(world);
}

WORLD_TEST(machine, a_refused_fire_names_the_legal_actions_and_changes_nothing) /* (1), D23 */
{
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_EQ(world_fire(world, id, "ship"), PAWL_INVALID_TRANSITION);
    EXPECT_TEXT(world->error.message, "no 'ship' from 'new'; legal now: pay, drop");
    EXPECT_TEXT(world_actions(world, id), "");
    EXPECT_OK(world_fire(world, id, "pay"));
    EXPECT_EQ(world_fire(world, id, "ship"), PAWL_GUARD_NOT_SATISFIED);
    EXPECT_TEXT(world_actions(world, id), "pay");
}

WORLD_TEST(machine, numbers_go_on_without_a_gap_after_a_restart) /* (3), D35 inv 6 */
{
    const char *id;
    pawl_fired fired;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    for (uint64_t n = 2; n < 200; n++) {
        if (n % 50 == 0) {
            world_close(world);
            world_open(world);
        }
        EXPECT_OK(
            pawl_fire(world->p, id, &(pawl_fire_args){ .action = "note" }, &fired, &world->error));
        EXPECT_EQ(fired.sequence_number, n);
    }
    world_expect_valid(world);
}

WORLD_TEST(machine, a_terminal_state_takes_nothing_more) /* D35 inv 4 */
{
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "drop"));
    EXPECT_EQ(world_fire(world, id, "drop"), PAWL_TERMINAL);
    EXPECT_EQ(world_fire(world, id, "no such action"), PAWL_TERMINAL);
    EXPECT_EQ(pawl_cancel(world->p, id, NULL, NULL, NULL, &world->error), PAWL_TERMINAL);
    EXPECT_EQ(pawl_signal(world->p, id, "x", NULL, NULL, &world->error), PAWL_TERMINAL);
}

WORLD_TEST(machine, cancel_takes_the_declared_way_or_is_refused) /* A17, A18 */
{
    const char *first, *second;
    pawl_fired fired;

    world_define(world, ORDER);
    first = world_create(world, "order", NULL);
    second = world_create(world, "order", NULL);
    EXPECT_OK(pawl_cancel(world->p, first, "ann", NULL, &fired, &world->error));
    EXPECT_TEXT(fired.new_state, "dropped");
    EXPECT_OK(world_fire(world, second, "pay"));
    EXPECT_EQ(pawl_cancel(world->p, second, NULL, NULL, NULL, &world->error),
              PAWL_NO_CANCEL_TRANSITION);
    world_expect_state(world, second, "paid");
}

/* D18: the order of rejections, each pair of neighbours. */
WORLD_TEST(machine, rejections_come_in_the_order_of_the_contract)
{
    static const char unknown[] = "00000000ZZ0123456789ABCDEF";
    const pawl_fire_args late = { .action = "pay", .fired_at = "2999-01-01T00:00:00Z" };
    const pawl_fire_args undeclared = { .action = "x", .fired_at = "2999-01-01T00:00:00Z" };
    const pawl_fire_args unguarded = { .action = "ship", .fired_at = "2999-01-01T00:00:00Z" };
    const pawl_fire_args early = { .action = "pay", .fired_at = "2001-01-01T00:00:00Z" };
    const pawl_fire_args stale = { .action = "pay", .expected_sequence = 9, .actor_ref = " " };
    pawl_fired fired;
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_EQ(world_fire(world, unknown, " "), PAWL_INVALID_REQUEST);
    EXPECT_EQ(pawl_fire(world->p, unknown, &late, &fired, NULL), PAWL_NOT_KNOWN);
    EXPECT_EQ(pawl_fire(world->p, id, &undeclared, &fired, NULL), PAWL_INVALID_TRANSITION);
    EXPECT_EQ(pawl_fire(world->p, id, &late, &fired, NULL), PAWL_INVALID_REQUEST);
    EXPECT_EQ(pawl_fire(world->p, id, &early, &fired, NULL), PAWL_INVALID_REQUEST);
    EXPECT_EQ(pawl_fire(world->p, id, &stale, &fired, NULL), PAWL_CONFLICT);
    EXPECT_OK(world_fire(world, id, "pay"));
    EXPECT_EQ(pawl_fire(world->p, id, &unguarded, &fired, NULL), PAWL_GUARD_NOT_SATISFIED);
    EXPECT_TEXT(world_actions(world, id), "pay");
}

WORLD_TEST(machine, a_batch_gives_each_fire_its_own_answer)
{
    pawl_batch_fire fires[4] = { 0 };
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    fires[0] = (pawl_batch_fire){ .id = id, .args = { .action = "ship" } };
    fires[1] = (pawl_batch_fire){ .id = id, .args = { .action = "pay", .actor_ref = "ann" } };
    fires[2] = (pawl_batch_fire){ .id = id, .args = { .action = "note", .actor_ref = "bob" } };
    fires[3] = (pawl_batch_fire){ .id = "nobody", .args = { .action = "pay" } };
    EXPECT_OK(pawl_fire_batch(world->p, fires, 4, &world->error));
    EXPECT_EQ(fires[0].status, PAWL_INVALID_TRANSITION);
    EXPECT_EQ(fires[1].fired.sequence_number, 1);
    EXPECT_EQ(fires[2].fired.sequence_number, 2);
    EXPECT_EQ(fires[3].status, PAWL_NOT_KNOWN);
    EXPECT_TEXT(world_actions(world, id), "pay note");
    world_expect_valid(world);
}

struct racer {
    struct world *world;
    const char *id;
    pawl_status paid; /* what the one-shot transition was answered */
    int notes;
};

static void *race(void *context)
{
    struct racer *racer = context;
    pawl_fired fired;

    racer->paid =
        pawl_fire(racer->world->p, racer->id, &(pawl_fire_args){ .action = "pay" }, &fired, NULL);
    for (int i = 0; i < 50; i++)
        racer->notes += pawl_fire(racer->world->p, racer->id,
                                  &(pawl_fire_args){ .action = "note", .actor_ref = "x" }, &fired,
                                  NULL) == PAWL_OK;
    return NULL;
}

WORLD_TEST(machine, of_many_threads_that_fire_one_transition_one_wins) /* D38 */
{
    struct racer racers[8];
    pthread_t threads[8];
    int won = 0, notes = 0;
    const char *id, *actions;
    int entries = 1;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    for (int i = 0; i < 8; i++) {
        racers[i] = (struct racer){ .world = world, .id = id };
        EXPECT(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        EXPECT(racers[i].paid == PAWL_OK || racers[i].paid == PAWL_INVALID_TRANSITION);
        won += racers[i].paid == PAWL_OK;
        notes += racers[i].notes;
    }
    EXPECT_EQ(won, 1);
    actions = world_actions(world, id);
    for (const char *c = actions; *c; c++)
        entries += *c == ' ';
    EXPECT_EQ(entries, notes + 1);
    world_expect_valid(world);
}

/* (6): rows lag behind the log; every read sees through that, also after a restart. */
WORLD_TEST(machine, what_was_acknowledged_is_read_though_rows_lag)
{
    static pawl_id ids[300];
    pawl_fired fired;

    world_define(world, ORDER);
    for (int i = 0; i < 300; i++)
        EXPECT_OK(pawl_create(world->p, &(pawl_create_args){ .definition = "order" }, &ids[i],
                              &world->error));
    for (int i = 0; i < 300; i += 2) {
        EXPECT_OK(pawl_fire(world->p, ids[i].text, &(pawl_fire_args){ .action = "pay" }, &fired,
                            &world->error));
        world_expect_state(world, ids[i].text, "paid");
    }
    for (int i = 0; i < 300; i++)
        world_expect_state(world, ids[i].text, i % 2 ? "new" : "paid");
    world_close(world);
    world_open(world);
    for (int i = 0; i < 300; i++)
        world_expect_state(world, ids[i].text, i % 2 ? "new" : "paid");
    world_expect_valid(world);
}

WORLD_TEST(machine, the_declaration_comes_back_byte_for_byte) /* D12 */
{
    static const char text[] = "{ \"states\":[\"a\",\"b\"], \"x\": 1.50,\n \"initial_state\":\"a\","
                               "\"terminal_states\":[\"b\"],\"transitions\":[]}";
    pawl_id first, second;
    char *out, input[128];

    EXPECT_OK(
        pawl_create(world->p, &(pawl_create_args){ .declaration = text }, &first, &world->error));
    EXPECT_OK(
        pawl_create(world->p, &(pawl_create_args){ .declaration = text }, &second, &world->error));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", second.text);
    EXPECT_OK(pawl_call(world->p, "instance.declaration", input, &out, &world->error));
    EXPECT_TEXT(out, text);
    pawl_free(world->p, out);
    world_expect_valid(world);
}

WORLD_TEST(machine, a_definition_put_again_is_the_same_version_and_another_text_the_next)
{
    pawl_defined defined;

    world_define(world, ORDER);
    EXPECT_OK(pawl_define(world->p, ORDER, sizeof ORDER - 1, &defined, &world->error));
    EXPECT_EQ(defined.version, 1);
    EXPECT(!defined.is_new);
    EXPECT_OK(pawl_define(world->p, ORDER "\n", sizeof ORDER, &defined, &world->error));
    EXPECT_EQ(defined.version, 2);
    EXPECT_OK(pawl_define(world->p, ORDER, sizeof ORDER - 1, &defined, &world->error));
    EXPECT_EQ(defined.version, 3);
    world_expect_valid(world);
}
