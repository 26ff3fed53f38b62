/* engine_keys.c - idempotency keys: promise (9) of engine/engine.h, on every backend, for owners
 * and for shared writers. */
#include "engine_fixture.h"
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>

#define DAY_MS INT64_C(86400000)

#define TRIP                                                                                       \
    "name: trip\nsteps:\n  start: {name: pack, tool: set, args: {bag: 1}, next: wait}\n"           \
    "  wait: {tool: sleep, args: {for: 1h}, done: true}\n"

static pawl_status fire_once(struct world *world, const char *id, const char *action,
                             const char *key, pawl_fired *out)
{
    return pawl_fire(world->p, id, &(pawl_fire_args){ .action = action, .idempotency_key = key },
                     out, &world->error);
}

static pawl_status call(struct world *world, const char *operation, const char *input, char *out,
                        size_t size)
{
    char *answer;
    pawl_status status = pawl_call(world->p, operation, input, &answer, &world->error);

    snprintf(out, size, "%s", answer ? answer : "");
    pawl_free(world->p, answer);
    return status;
}

/* The same call twice: the same answer twice. */
static void expect_same(struct world *world, const char *operation, const char *input,
                        const char *part)
{
    char first[512], second[512];

    EXPECT_OK(call(world, operation, input, first, sizeof first));
    EXPECT_HAS(first, part);
    EXPECT_OK(call(world, operation, input, second, sizeof second));
    EXPECT_TEXT(second, first);
}

static void restart(struct world *world, bool own)
{
    world_close(world);
    world->options.own = own;
    world_open(world);
}

WORLD_TEST(keys, a_repeated_fire_is_one_entry_and_the_same_answer) /* (9) */
{
    pawl_fired first, again;
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(fire_once(world, id, "pay", "k1", &first));
    EXPECT_OK(world_fire(world, id, "note"));
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(fire_once(world, id, "pay", "k1", &again));
        EXPECT_TEXT(again.new_state, "paid");
        EXPECT_TEXT(again.transition_id, first.transition_id);
        EXPECT_EQ(again.sequence_number, 1);
        restart(world, i % 2 == 0);
    }
    EXPECT_TEXT(world_actions(world, id), "pay note");
    world_expect_valid(world);
}

WORLD_TEST(keys, a_repeated_create_is_one_instance_of_each_kind) /* (9) */
{
    static const char *const kinds[] = { "order", "trip", "ticker" };

    world_define(world, ORDER);
    world_define(world, TRIP);
    for (int i = 0; i < 6; i++) {
        pawl_create_args args = { .definition = kinds[i % 3],
                                  .idempotency_key = i < 3 ? "a" : "b" };
        char input[128], answer[512];
        pawl_id first, again;

        if (i % 3) /* a key is for one call */
            args.idempotency_key = kinds[i % 3];
        EXPECT_OK(pawl_create(world->p, &args, &first, &world->error));
        restart(world, i % 2 == 0);
        EXPECT_OK(pawl_create(world->p, &args, &again, &world->error));
        EXPECT_TEXT(again.text, first.text);
        snprintf(input, sizeof input, "{\"definition\":\"%s\",\"idempotency_key\":\"%s\"}",
                 args.definition, args.idempotency_key);
        EXPECT_OK(call(world, "instance.create", input, answer, sizeof answer));
        EXPECT_HAS(answer, first.text); /* whichever way it comes, it is the same call */
        EXPECT_HAS(answer, i % 3 ? "\"current_state\":\"running\"" : "\"current_state\":\"new\"");
    }
    world_expect_valid(world);
}

WORLD_TEST(keys, the_answer_to_a_repeated_create_tells_the_state_of_that_time)
{
    const char *input = "{\"definition\":\"order\",\"idempotency_key\":\"k\"}";
    char first[512], again[512], id[27];

    world_define(world, ORDER);
    EXPECT_OK(call(world, "instance.create", input, first, sizeof first));
    EXPECT(sscanf(first, "{\"instance_id\":\"%26[^\"]", id) == 1);
    EXPECT_OK(world_fire(world, id, "pay"));
    EXPECT_OK(call(world, "instance.create", input, again, sizeof again));
    EXPECT_TEXT(again, first);
}

WORLD_TEST(keys, the_same_key_for_another_call_is_a_conflict)
{
    const char *first, *second;
    pawl_fired fired;
    pawl_id id;

    world_define(world, ORDER);
    first = world_create(world, "order", NULL);
    second = world_create(world, "order", NULL);
    EXPECT_OK(fire_once(world, first, "pay", "k", &fired));
    EXPECT_EQ(fire_once(world, first, "note", "k", &fired), PAWL_CONFLICT);  /* another body */
    EXPECT_EQ(fire_once(world, second, "pay", "k", &fired), PAWL_CONFLICT);  /* another path */
    EXPECT_EQ(fire_once(world, second, "none", "k", &fired), PAWL_CONFLICT); /* refused anyway */
    EXPECT_HAS(world->error.message, "idempotency key");
    EXPECT_EQ(pawl_create(world->p,
                          &(pawl_create_args){ .definition = "order", .idempotency_key = "k" }, &id,
                          &world->error),
              PAWL_CONFLICT); /* another operation */
    EXPECT_TEXT(world_actions(world, first), "pay");
    EXPECT_TEXT(world_actions(world, second), "");
}

WORLD_TEST(keys, only_accepted_calls_are_remembered)
{
    pawl_fired fired;
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_EQ(fire_once(world, id, "note", "k", &fired), PAWL_INVALID_TRANSITION);
    EXPECT_OK(world_fire(world, id, "pay"));
    EXPECT_OK(fire_once(world, id, "note", "k", &fired));
    EXPECT_EQ(fired.sequence_number, 2);
    EXPECT_TEXT(world_actions(world, id), "pay note");
}

WORLD_TEST(keys, a_key_is_remembered_for_7_days_and_no_longer)
{
    pawl_fired fired;
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    EXPECT_OK(fire_once(world, id, "note", "k", &fired));
    world_advance(world, 7 * DAY_MS);
    EXPECT_OK(fire_once(world, id, "note", "k", &fired));
    EXPECT_EQ(fired.sequence_number, 2);
    world_advance(world, 1);
    EXPECT_OK(fire_once(world, id, "note", "k", &fired));
    EXPECT_EQ(fired.sequence_number, 3);
    EXPECT_OK(fire_once(world, id, "note", "k", &fired));
    EXPECT_EQ(fired.sequence_number, 3);
    world_expect_valid(world);
}

static int64_t count_keys(struct world *world)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t count;

    EXPECT(sqlite3_open_v2(world->url + strlen("sqlite:"), &db, SQLITE_OPEN_READONLY, NULL) ==
           SQLITE_OK);
    EXPECT(sqlite3_prepare_v2(db, "SELECT count(*) FROM pawl_key", -1, &statement, NULL) ==
           SQLITE_OK);
    EXPECT(sqlite3_step(statement) == SQLITE_ROW);
    count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return count;
}

TEST(keys, rows_older_than_7_days_are_removed_a_few_at_a_time)
{
    struct world world;
    pawl_fired fired;
    const char *id;
    char key[24];

    world_begin(&world, "sqlite");
    world_define(&world, ORDER);
    id = world_create(&world, "order", NULL);
    EXPECT_OK(world_fire(&world, id, "pay"));
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "old %d", i);
        EXPECT_OK(fire_once(&world, id, "note", key, &fired));
    }
    EXPECT_EQ(count_keys(&world), 20);
    world_advance(&world, 7 * DAY_MS + 1);
    for (int i = 0; i < 12; i++) {
        snprintf(key, sizeof key, "new %d", i);
        EXPECT_OK(fire_once(&world, id, "note", key, &fired));
        EXPECT_EQ(count_keys(&world), i < 10 ? 19 - i : i + 1);
    }
    world_expect_valid(&world);
    world_end(&world);
}

#define PUT(name, key)                                                                             \
    "{\"name\":\"" name "\",\"text\":\"states: [a]\\ninitial_state: a\\nterminal_states: []\\n"    \
    "transitions: []\\n\",\"idempotency_key\":\"" key "\"}"

WORLD_TEST(keys, a_repeated_put_answers_as_the_first_time_new_or_not)
{
    char first[512];

    EXPECT_OK(call(world, "definition.put", PUT("order", "one"), first, sizeof first));
    EXPECT_HAS(first, "\"version\":1");
    world_define(world, ORDER); /* version 2 */
    expect_same(world, "definition.put", PUT("order", "one"), "\"version\":1");
    expect_same(world, "definition.put", PUT("order", "two"), "\"version\":3");
    /* This very text is the newest: there is no new version, but an answer to repeat. */
    expect_same(world, "definition.put", PUT("order", "three"), "\"version\":3");
    world_define(world, ORDER);
    expect_same(world, "definition.put", PUT("order", "three"), "\"version\":3");
    EXPECT_EQ(call(world, "definition.put", PUT("other", "one"), first, sizeof first),
              PAWL_CONFLICT);
    world_expect_valid(world);
}

WORLD_TEST(keys, a_repeated_signal_is_delivered_once_even_when_nothing_awaits_it_any_more)
{
    const char *id = world_create(world, "ticker", NULL);
    char slower[128], stop[128];

    snprintf(slower, sizeof slower,
             "{\"instance_id\":\"%s\",\"name\":\"slower\","
             "\"idempotency_key\":\"s1\"}",
             id);
    snprintf(stop, sizeof stop,
             "{\"instance_id\":\"%s\",\"name\":\"stop\","
             "\"idempotency_key\":\"s2\"}",
             id);
    expect_same(world, "signal.send", slower, "{\"delivered\":1}");
    EXPECT_TEXT(world_actions(world, id), "start signal");
    expect_same(world, "signal.send", stop, "{\"delivered\":1}"); /* it has ended by then */
    restart(world, false);
    expect_same(world, "signal.send", stop, "{\"delivered\":1}");
    expect_same(world, "signal.send", slower, "{\"delivered\":1}");
    world_expect_valid(world);
}

WORLD_TEST(keys, a_repeated_cancel_is_one_cancel_of_each_kind)
{
    static const char *const kinds[] = { "order", "trip", "ticker" };

    world_define(world, ORDER);
    world_define(world, TRIP);
    for (int i = 0; i < 3; i++) {
        const char *id = world_create(world, kinds[i], NULL);
        char input[128];

        snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"idempotency_key\":\"c%d\"}", id,
                 i);
        expect_same(world, "instance.cancel", input, "\"terminal_kind\":\"cancel\"");
        restart(world, i % 2 == 0);
        expect_same(world, "instance.cancel", input, "\"terminal_kind\":\"cancel\"");
    }
    world_expect_valid(world);
}

WORLD_TEST(keys, one_key_twice_in_one_batch_is_one_entry)
{
    pawl_batch_fire fires[3] = { 0 };
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    for (int i = 0; i < 3; i++)
        fires[i] = (pawl_batch_fire){
            .id = id, .args = { .action = "note", .idempotency_key = i == 1 ? "other" : "same" }
        };
    EXPECT_OK(pawl_fire_batch(world->p, fires, 3, &world->error));
    EXPECT_EQ(fires[0].fired.sequence_number, 2);
    EXPECT_EQ(fires[1].fired.sequence_number, 3);
    EXPECT_OK(fires[2].status);
    EXPECT_EQ(fires[2].fired.sequence_number, 2);
    EXPECT_TEXT(world_actions(world, id), "pay note note");
    world_expect_valid(world);
}

WORLD_TEST(keys, a_key_that_no_header_could_carry_is_refused)
{
    static const char *const keys[] = { "", " a", "a ", "a\nb", "a\x7f" };
    char long_key[130];
    pawl_fired fired;
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        EXPECT_EQ(fire_once(world, id, "pay", keys[i], &fired), PAWL_INVALID_REQUEST);
    memset(long_key, 'k', sizeof long_key);
    long_key[129] = '\0';
    EXPECT_EQ(fire_once(world, id, "pay", long_key, &fired), PAWL_INVALID_REQUEST);
    long_key[128] = '\0';
    EXPECT_OK(fire_once(world, id, "pay", long_key, &fired));
}

/* ---- racing ---- */

struct racer {
    pawl *p;
    const char *id;
    pawl_status status;
    pawl_fired fired;
    pawl_id created;
};

static void *race(void *context)
{
    struct racer *racer = context;
    pawl_fire_args fire = { .action = "note", .idempotency_key = "fire" };
    pawl_create_args create = { .definition = "ticker", .idempotency_key = "create" };
    pawl_error error;

    racer->status = pawl_fire(racer->p, racer->id, &fire, &racer->fired, &error);
    if (!racer->status)
        racer->status = pawl_create(racer->p, &create, &racer->created, &error);
    return NULL;
}

static void expect_one(struct racer *racers, int count)
{
    pthread_t threads[16];

    for (int i = 0; i < count; i++)
        EXPECT(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++) {
        EXPECT_OK(racers[i].status);
        EXPECT_EQ(racers[i].fired.sequence_number, 2);
        EXPECT_TEXT(racers[i].created.text, racers[0].created.text);
    }
}

static void race_in(struct world *world, bool own, uint32_t workers)
{
    struct racer racers[16];
    const char *id;

    world_close(world);
    world->options = (pawl_options){ .own = own, .workers = workers };
    world_open(world);
    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    for (int i = 0; i < 16; i++)
        racers[i] = (struct racer){ .p = world->p, .id = id };
    expect_one(racers, 16);
    EXPECT_TEXT(world_actions(world, id), "pay note");
    world_expect_valid(world);
}

WORLD_TEST(keys, racing_calls_with_one_key_are_one_entry_and_equal_answers_for_a_server)
{
    race_in(world, true, 2);
}

WORLD_TEST(keys, racing_calls_with_one_key_are_one_entry_and_equal_answers_for_shared_writers)
{
    race_in(world, false, 0);
}

TEST(keys, two_programs_with_one_key_make_one_entry)
{
    struct world world;
    struct racer racers[16];
    pawl_error error;
    const char *id;
    pawl *other;

    world_begin(&world, "sqlite");
    restart(&world, false);
    world_define(&world, ORDER);
    id = world_create(&world, "order", NULL);
    EXPECT_OK(world_fire(&world, id, "pay"));
    EXPECT_OK(pawl_open_env(&other, world.url, NULL, env_sim_new(NOON, 8), &error));
    EXPECT_OK(pawl_code_register(other, &ticker_type, &error));
    for (int i = 0; i < 16; i++)
        racers[i] = (struct racer){ .p = i % 2 ? other : world.p, .id = id };
    expect_one(racers, 16);
    pawl_close(other);
    EXPECT_TEXT(world_actions(&world, id), "pay note");
    world_expect_valid(&world);
    world_end(&world);
}

TEST(keys, an_operation_without_a_record_of_its_own_is_answered_again_too)
{
    struct world world;

    world_begin(&world, "sqlite");
    world_close(&world);
    world.options.test_clock = true;
    world_open(&world);
    expect_same(&world, "test.advance", "{\"by\":\"1h\",\"idempotency_key\":\"k\"}",
                "13:00:00.000Z");
    EXPECT_OK(call(&world, "test.advance", "{\"by\":\"1h\"}", (char[512]){ 0 }, 512));
    expect_same(&world, "test.advance", "{\"by\":\"1h\",\"idempotency_key\":\"k\"}",
                "13:00:00.000Z");
    world_expect_valid(&world);
    world_end(&world);
}
