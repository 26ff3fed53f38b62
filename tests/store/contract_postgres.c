/* contract_postgres.c - what a store in PostgreSQL promises beyond the contract: round trips, the
 * fence, and the claim after an unknown outcome. */
#include "model/shard.h"
#include "store/contract.h"
#include "store/postgres/postgres_int.h"

/* ---- An owner, and a session beside it ---- */

struct far {
    struct stand stand;
    struct postgres_store *owner;
    struct pg_link beside;
};

/* A lease of half a second: an exchange may take three quarters of it. */
static void far_begin(struct far *far, struct test *t, const char *parameters)
{
    struct stand *s = &far->stand;

    *far = (struct far){ .stand = { .test = t, .scope = &t->scope } };
    test_postgres_url("store", s->url);
    strncat(s->url, parameters, sizeof s->url - strlen(s->url) - 1);
    s->env = env_os_new(&heap_libc);
    EXPECT_OK(stand_open(s, (struct store_options){ .create = true, .own = true }, &s->store));
    far->owner = postgres_of(s->store);
    pg_node_link(far->owner->node, &far->beside, 5000);
    snprintf(far->beside.name, sizeof far->beside.name, "a test");
    EXPECT_OK(link_connect(&far->beside, s->scope));
}

static void far_end(struct far *far)
{
    link_close(&far->beside);
    store_close(far->stand.store);
    far->stand.env->close(far->stand.env);
}

static void run_beside(struct far *far, const char *text)
{
    EXPECT(link_script(&far->beside, text) == LINK_OK);
}

/* ---- Round trips ---- */

TEST(store_postgres, a_commit_is_one_round_trip_and_a_turn_of_an_owner_costs_none)
{
    struct far far;
    struct change c;
    uint64_t before;

    far_begin(&far, t, "");
    put_orders(&far.stand, 8);
    before = far.owner->writer->round_trips;
    c = change_begin(&far.stand);
    c.lag = true;
    EXPECT_EQ(far.owner->writer->round_trips, before);
    add_entry(&c, 1, 1, 0, PAID); /* records alone */
    EXPECT_OK(change_commit(&c));
    EXPECT_EQ(far.owner->writer->round_trips, before + 1);
    c = change_begin(&far.stand);
    add_value(&c, STR("ann"), true);
    add_step(&c, 1, 1, STEP_READY);
    add_key(&c, 7, add_entry(&c, 2, 1, 0, PAID));
    add_snapshot(&c, 2, 1, STR("{}"));
    EXPECT_OK(change_commit(&c));
    EXPECT_EQ(far.owner->writer->round_trips, before + 2);
    far_end(&far);
}

TEST(store_postgres, what_is_expected_of_many_instances_is_read_in_one_round_trip)
{
    uint64_t numbers[64], before;
    struct far far;

    far_begin(&far, t, "");
    put_orders(&far.stand, 64);
    for (uint64_t i = 0; i < 64; i++)
        numbers[i] = i + 1;
    EXPECT_OK(store_tip(far.stand.store, far.stand.scope, &(struct store_tip){ 0 }));
    before = far.owner->reader->round_trips;
    EXPECT_OK(
        store_expect(far.stand.store, far.stand.scope,
                     &(struct expectation){ .instances = numbers,
                                            .instance_count = 64,
                                            .rows = EXPECT_HEADS | EXPECT_ROWS | EXPECT_RECORDS }));
    EXPECT_EQ(far.owner->reader->round_trips, before + 1);
    for (uint64_t i = 0; i < 64; i++) {
        struct head_row head;

        EXPECT_OK(store_head(far.stand.store, far.stand.scope, i + 1, true, &head));
        EXPECT_OK(
            store_instance(far.stand.store, far.stand.scope, i + 1, &(struct instance_row){ 0 }));
        EXPECT_OK(store_record(far.stand.store, far.stand.scope, head.pos, &(struct record){ 0 }));
    }
    EXPECT_EQ(far.owner->reader->round_trips, before + 1);
    far_end(&far);
}

/* ---- Packed rows ---- */

static pawl_status count_record(void *context, const struct record *record)
{
    EXPECT_EQ(record->pos, ++*(uint64_t *)context);
    EXPECT(record->has_root == (record->pos == 300));
    return PAWL_OK;
}

TEST(store_postgres, a_large_commit_is_several_rows_of_at_most_128_records)
{
    uint64_t seen = 0;
    struct far far;
    struct change c;

    far_begin(&far, t, "");
    c = change_begin(&far.stand);
    for (int i = 0; i < 300; i++)
        add_record(&c, 0, 0, CONTROL_TOKEN);
    EXPECT_OK(change_commit(&c));
    run_beside(&far, "SELECT 1 / (count(*) - 2) + 1 / (count(*) - 4) FROM pawl_log WHERE n <= 128");
    EXPECT_OK(store_scan(far.stand.store, far.stand.scope, 1, count_record, &seen));
    EXPECT_EQ(seen, 300);
    far_end(&far);
}

/* ---- The fence ---- */

static void expect_fenced(struct test *t, bool is_records_alone)
{
    struct far far;
    struct change c;
    struct store *other;
    struct store_tip tip;

    far_begin(&far, t, "");
    put_orders(&far.stand, 1);
    c = change_begin(&far.stand);
    c.lag = is_records_alone;
    add_entry(&c, 1, 1, 0, PAID);
    run_beside(&far, "UPDATE pawl_shard SET epoch = epoch + 1, node = NULL");
    EXPECT_EQ(change_commit(&c), PAWL_IN_USE);
    EXPECT_EQ(tip_of(&far.stand).pos, 1);
    EXPECT_EQ(store_begin(far.stand.store, far.stand.scope, &tip), PAWL_IN_USE);
    EXPECT_EQ(store_reopen(far.stand.store, far.stand.scope), PAWL_IN_USE);
    other = stand_another(&far.stand); /* and the others go on */
    EXPECT_OK(store_begin(other, far.stand.scope, &tip));
    EXPECT_EQ(tip.pos, 1);
    store_rollback(other);
    store_close(other);
    far_end(&far);
}

TEST(store_postgres, a_commit_after_anothers_claim_is_in_use_and_leaves_nothing)
{
    expect_fenced(t, false);
}

TEST(store_postgres, a_commit_of_records_alone_after_anothers_claim_leaves_nothing)
{
    expect_fenced(t, true);
}

TEST(store_postgres, an_owner_that_was_declared_dead_begins_no_more_turns)
{
    struct far far;
    struct store_tip tip;
    pawl_status status;

    far_begin(&far, t, "&lease=500");
    run_beside(&far, "UPDATE pawl_node SET state = 3");
    do {
        status = store_begin(far.stand.store, far.stand.scope, &tip);
        if (status == PAWL_OK)
            store_rollback(far.stand.store);
    } while (status == PAWL_OK); /* until its next beat, which is at most a twelfth of a second */
    EXPECT_EQ(status, PAWL_IN_USE);
    far_end(&far);
}

/* ---- Trains: two shards of eight that have the same connection ---- */

struct rider {
    struct far far; /* its stand and store */
    struct change change;
    pawl_status status;
    pthread_t thread;
};

static void *ride(void *context)
{
    struct rider *rider = context;

    rider->status = change_commit(&rider->change);
    return NULL;
}

/* Wait until so many wait. */
static void count_waiting(struct shared_link *lane, int wanted)
{
    int count;

    do {
        count = 0;
        pthread_mutex_lock(&lane->queue_lock);
        for (struct waiting_commit *one = lane->queue; one; one = one->next)
            count++;
        pthread_mutex_unlock(&lane->queue_lock);
    } while (count != wanted);
}

#define RIDERS 2

static void riders_begin(struct rider *riders, struct test *t, const bool *is_records_alone)
{
    static struct scope scopes[RIDERS];
    struct store_options options = { .create = true, .own = true, .shard = { .shards = 8 } };
    struct stand *home = &riders[0].far.stand;
    char name[32];

    *home = (struct stand){ .test = t, .scope = &t->scope };
    snprintf(name, sizeof name, "train_%d_%d", is_records_alone[0], is_records_alone[1]);
    test_postgres_url(name, home->url);
    home->env = env_os_new(&heap_libc);
    EXPECT_OK(stand_open(home, options, &home->store));
    riders[1].far.stand = *home;
    (void)snprintf(riders[1].far.stand.url, sizeof home->url, "%.*s#4", TEST_POSTGRES_URL,
                   home->url);
    options.beside = home->store;
    EXPECT_OK(stand_open(&riders[1].far.stand, options, &riders[1].far.stand.store));
    for (int i = 0; i < RIDERS; i++) {
        struct stand *s = &riders[i].far.stand;

        scope_init(&scopes[i], &heap_libc, 0);
        s->scope = &scopes[i];
        riders[i].change = change_begin(s);
        riders[i].change.lag = is_records_alone[i];
        add_record(&riders[i].change, 0, 0, CONTROL_TOKEN);
        if (!is_records_alone[i])
            add_value(&riders[i].change, STR("ann"), true);
    }
}

/* Both wait for the connection, and then get it. When they have gone it is ours again: who was taken
 * along does not need it any more. */
static uint64_t riders_go(struct rider *riders)
{
    struct shared_link *lane = postgres_of(riders[0].far.stand.store)->lane;
    uint64_t before;

    EXPECT(lane == postgres_of(riders[1].far.stand.store)->lane);
    pthread_mutex_lock(&lane->lock);
    before = lane->link.round_trips;
    for (int i = 0; i < RIDERS; i++) {
        EXPECT(pthread_create(&riders[i].thread, NULL, ride, &riders[i]) == 0);
        count_waiting(lane, i + 1);
    }
    pthread_mutex_unlock(&lane->lock);
    count_waiting(lane, 0);
    pthread_mutex_lock(&lane->lock);
    for (int i = 0; i < RIDERS; i++)
        pthread_join(riders[i].thread, NULL);
    pthread_mutex_unlock(&lane->lock);
    return lane->link.round_trips - before;
}

static void riders_end(struct rider *riders)
{
    for (int i = RIDERS; i-- > 0;) {
        store_close(riders[i].far.stand.store);
        scope_fini(riders[i].far.stand.scope);
    }
    riders[0].far.stand.env->close(riders[0].far.stand.env);
}

static void take_shard_4(struct rider *riders)
{
    struct pg_link beside;

    pg_node_link(postgres_of(riders[0].far.stand.store)->node, &beside, 5000);
    EXPECT_OK(link_connect(&beside, riders[0].far.stand.scope));
    EXPECT(link_script(&beside, "UPDATE pawl_shard SET epoch = epoch + 1 WHERE shard = 4") ==
           LINK_OK);
    link_close(&beside);
}

TEST(store_postgres, commits_of_shards_that_wait_for_one_connection_are_one_round_trip)
{
    for (int kinds = 0; kinds < 4; kinds++) {
        struct rider riders[RIDERS] = { 0 };

        riders_begin(riders, t, (bool[]){ kinds & 1, kinds & 2 });
        EXPECT_EQ(riders_go(riders), 1);
        for (int i = 0; i < RIDERS; i++) {
            EXPECT_OK(riders[i].status);
            EXPECT_EQ(tip_of(&riders[i].far.stand).pos, 1);
            riders[i].change = change_begin(&riders[i].far.stand); /* and the next goes on there */
            add_record(&riders[i].change, 0, 0, CONTROL_TOKEN);
            EXPECT_OK(change_commit(&riders[i].change));
        }
        riders_end(riders);
    }
}

TEST(store_postgres, a_fenced_commit_in_a_train_takes_no_other_with_it)
{
    for (int kinds = 0; kinds < 4; kinds++) {
        struct rider riders[RIDERS] = { 0 };

        riders_begin(riders, t, (bool[]){ kinds & 1, kinds & 2 });
        take_shard_4(riders);
        (void)riders_go(riders);
        EXPECT_OK(riders[0].status);
        EXPECT_EQ(riders[1].status, PAWL_IN_USE);
        EXPECT_EQ(tip_of(&riders[0].far.stand).pos, 1);
        EXPECT_EQ(tip_of(&riders[1].far.stand).pos, 0);
        riders_end(riders);
    }
}

/* ---- An unknown outcome ---- */

TEST(store_postgres, after_an_unknown_outcome_the_claim_says_how_it_ended)
{
    struct far far;
    struct record record;
    struct store_tip tip;
    struct change c;
    int64_t epoch;

    far_begin(&far, t, "&lease=800");
    put_orders(&far.stand, 1);
    run_beside(&far, "BEGIN; SELECT 1 FROM pawl_shard FOR UPDATE");
    c = change_begin(&far.stand);
    add_entry(&c, 1, 1, 0, PAID);
    EXPECT_EQ(change_commit(&c),
              PAWL_OUTCOME_UNKNOWN); /* it waits for the row, past its deadline */
    EXPECT_EQ(store_record(far.stand.store, far.stand.scope, 1, &record), PAWL_STORAGE_FAILURE);
    EXPECT_EQ(store_begin(far.stand.store, far.stand.scope, &tip), PAWL_STORAGE_FAILURE);
    epoch = far.owner->epoch;
    run_beside(&far, "ROLLBACK"); /* the one that was cut off may go on now */
    EXPECT_OK(store_reopen(far.stand.store, far.stand.scope));
    EXPECT_EQ(far.owner->epoch, epoch + 1);
    EXPECT_OK(store_begin(far.stand.store, far.stand.scope, &tip));
    store_rollback(far.stand.store);
    EXPECT_EQ(store_record(far.stand.store, far.stand.scope, 2, &record),
              tip.pos == 2 ? PAWL_OK : PAWL_NOT_KNOWN);
    EXPECT(tip.pos == 1 || tip.pos == 2);
    c = change_begin(&far.stand);
    add_entry(&c, 1, tip.pos, 0, PAID);
    EXPECT_OK(change_commit(&c));
    EXPECT_EQ(tip_of(&far.stand).pos, tip.pos + 1);
    far_end(&far);
}

/* ---- What people see ---- */

TEST(store_postgres, a_password_is_in_no_message)
{
    static const char *const urls[] = {
        "postgres://ann:hunter2@127.0.0.1:1/x",
        "postgres://ann:hunter2@127.0.0.1:1/x?schema=UPPER",
        "postgres://ann@127.0.0.1:1/x?password=hunter2",
        "postgres://ann:hunter2@127.0.0.1:1/x?no_such_parameter=1",
        "postgre://ann:hunter2@127.0.0.1:1/x",
        "postgres:ann:hunter2@x",
    };
    struct stand s = { .test = t, .scope = &t->scope };
    struct store *store;

    s.env = env_os_new(&heap_libc);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        snprintf(s.url, sizeof s.url, "%s", urls[i]);
        EXPECT(stand_open(&s, (struct store_options){ .create = true }, &store) != PAWL_OK);
        EXPECT(!strstr(s.scope->error.message, "hunter2"));
    }
    s.env->close(s.env);
}

/* docs/format.md has these two. */
TEST(store_format, the_id_of_a_shard_is_a_hash_of_its_stores_id_and_its_place)
{
    struct sha *sha = sha_new(&heap_libc);
    const uint8_t zeros[STORE_ID_SIZE] = { 0 };
    uint8_t id[STORE_ID_SIZE];
    char text[2 * STORE_ID_SIZE + 1];

    (void)t;
    shard_store_id(sha, zeros, 0, 1, id);
    sha_hex(id, sizeof id, text);
    EXPECT_TEXT(text, "0fd81405e65561ec0de71aa46b5ddd90");
    shard_store_id(sha, zeros, 17, 64, id);
    sha_hex(id, sizeof id, text);
    EXPECT_TEXT(text, "d92b972330ae712b383c1bf7a0bfe3aa");
    sha_free(sha);
}
