/* attach_join.c - join my transaction: the host's rows and pawl's entries, both or neither. */
#include "attach_fixture.h"
#include <stdio.h>

#define HOST_TEST(test_name)                                                                       \
    static void test_name##_of(struct host *host);                                                 \
    TEST(attach, test_name)                                                                        \
    {                                                                                              \
        struct host host;                                                                          \
        host_begin(&host);                                                                         \
        host_attach(&host);                                                                        \
        test_name##_of(&host);                                                                     \
        host_end(&host);                                                                           \
    }                                                                                              \
    static void test_name##_of(struct host *host)

HOST_TEST(a_commit_makes_the_hosts_row_and_the_entries_durable_together)
{
    const char *id;

    host_run(host, "BEGIN IMMEDIATE; INSERT INTO parcel VALUES (1, 'x')");
    host_define(host, LAMP);
    id = host_create(host, "lamp");
    EXPECT_OK(host_fire(host, id, "press"));
    host_expect_state(host, id, "on");
    EXPECT_EQ(other_number(host, "SELECT count(*) FROM parcel"), 0);
    EXPECT_EQ(other_number(host, "SELECT count(*) FROM pawl_log"), 0);
    host_run(host, "COMMIT");
    EXPECT_EQ(other_number(host, "SELECT count(*) FROM parcel"), 1);
    EXPECT_EQ(other_number(host, "SELECT count(*) FROM pawl_history"), 1);
    host_expect_state(host, id, "on");
    host_expect_valid(host);
}

HOST_TEST(a_rollback_takes_both_back_and_pawl_knows_it)
{
    char kept[27], gone[27];
    const char *state;

    host_define(host, LAMP);
    snprintf(kept, sizeof kept, "%s", host_create(host, "lamp"));
    host_run(host, "BEGIN IMMEDIATE; INSERT INTO parcel VALUES (1, 'x')");
    EXPECT_OK(host_fire(host, kept, "press"));
    snprintf(gone, sizeof gone, "%s", host_create(host, "lamp"));
    EXPECT_OK(host_fire(host, gone, "press"));
    host_run(host, "ROLLBACK");
    host_expect_state(host, kept, "off");
    EXPECT_EQ(pawl_current(host->p, gone, &state, NULL), PAWL_NOT_KNOWN);
    EXPECT_EQ(host_fire(host, gone, "press"), PAWL_NOT_KNOWN);
    EXPECT_EQ(host_number(host, "SELECT count(*) FROM parcel"), 0);
    /* And it goes on where the log really ends: sequence numbers, positions, actors, roots. */
    EXPECT_OK(host_fire(host, kept, "press"));
    EXPECT_EQ(host_number(host, "SELECT max(pos) = count(*) FROM pawl_log"), 1);
    EXPECT_EQ(host_number(host, "SELECT max(seq) FROM pawl_log"), 1);
    host_expect_valid(host);
}

HOST_TEST(a_definition_that_was_rolled_back_is_forgotten)
{
    const char *id;

    host_run(host, "BEGIN IMMEDIATE");
    host_define(host, LAMP);
    EXPECT_OK(host_fire(host, host_create(host, "lamp"), "press")); /* it is in memory now */
    host_run(host, "ROLLBACK; BEGIN IMMEDIATE");
    host_define(host, LANTERN); /* gets the number of the one that is gone */
    id = host_create(host, "lamp");
    EXPECT_OK(host_fire(host, id, "press"));
    EXPECT_OK(host_fire(host, id, "press"));
    host_expect_state(host, id, "bright");
    host_run(host, "COMMIT");
    host_expect_state(host, id, "bright");
    EXPECT_EQ(host_number(host, "SELECT count(*) FROM pawl_definition"), 1);
    host_expect_valid(host);
}

HOST_TEST(a_definition_that_another_process_put_instead_is_found)
{
    const char *id;
    pawl *other;

    host_run(host, "BEGIN IMMEDIATE");
    host_define(host, LAMP);
    EXPECT_OK(host_fire(host, host_create(host, "lamp"), "press"));
    host_run(host, "ROLLBACK");
    EXPECT_OK(pawl_open(&other, host->url, NULL, &host->error));
    EXPECT_OK(pawl_define(other, LANTERN, sizeof LANTERN - 1, NULL, &host->error));
    pawl_close(other);
    id = host_create(host, "lamp");
    EXPECT_OK(host_fire(host, id, "press"));
    host_expect_state(host, id, "dim");
}

HOST_TEST(a_name_that_was_handed_out_outlives_the_rollback)
{
    const char *before, *id;

    host_run(host, "BEGIN IMMEDIATE");
    host_define(host, LAMP);
    EXPECT_OK(pawl_current(host->p, host_create(host, "lamp"), &before, &host->error));
    host_run(host, "ROLLBACK");
    host_define(host, LANTERN);
    id = host_create(host, "lamp");
    host_expect_state(host, id, "dark");
    EXPECT_TEXT(before, "off");
}

HOST_TEST(a_rollback_to_a_savepoint_of_the_hosts_is_known_too)
{
    const char *id;

    host_run(host, "BEGIN IMMEDIATE; INSERT INTO parcel VALUES (1, 'x'); SAVEPOINT mine");
    host_define(host, LAMP);
    EXPECT_OK(host_fire(host, host_create(host, "lamp"), "press"));
    host_run(host, "ROLLBACK TO mine");
    host_define(host, LANTERN);
    id = host_create(host, "lamp");
    EXPECT_OK(host_fire(host, id, "press"));
    host_run(host, "COMMIT");
    host_expect_state(host, id, "dim");
    EXPECT_EQ(host_number(host, "SELECT count(*) FROM parcel"), 1);
    host_expect_valid(host);
}

HOST_TEST(a_refused_call_undoes_itself_and_nothing_else)
{
    const char *id;

    host_define(host, LAMP);
    id = host_create(host, "lamp");
    host_run(host, "BEGIN IMMEDIATE; INSERT INTO parcel VALUES (1, 'x')");
    EXPECT_OK(host_fire(host, id, "press"));
    EXPECT_EQ(host_fire(host, id, "kick"), PAWL_INVALID_TRANSITION);
    EXPECT_EQ(host_fire(host, "nobody", "press"), PAWL_NOT_KNOWN);
    host_run(host, "INSERT INTO parcel VALUES (2, 'y'); COMMIT");
    EXPECT_EQ(host_number(host, "SELECT count(*) FROM parcel"), 2);
    EXPECT_EQ(host_number(host, "SELECT count(*) FROM pawl_history"), 1);
    host_expect_valid(host);
}

HOST_TEST(outside_of_a_transaction_each_call_commits_its_own)
{
    host_define(host, LAMP);
    EXPECT_EQ(other_number(host, "SELECT count(*) FROM pawl_definition"), 1);
    EXPECT_OK(host_fire(host, host_create(host, "lamp"), "press"));
    EXPECT(sqlite3_get_autocommit(host->db));
    EXPECT_EQ(other_number(host, "SELECT count(*) FROM pawl_history"), 1);
}

HOST_TEST(other_shared_writers_take_turns_with_the_hosts_transactions)
{
    char id[27];
    pawl_fired fired;
    pawl *other;

    host_define(host, LAMP);
    snprintf(id, sizeof id, "%s", host_create(host, "lamp"));
    EXPECT_OK(pawl_open(&other, host->url, NULL, &host->error));
    for (uint64_t i = 1; i < 40; i += 2) {
        host_run(host, "BEGIN IMMEDIATE");
        EXPECT_OK(host_fire(host, id, "press"));
        host_run(host, i % 3 ? "COMMIT" : "ROLLBACK; BEGIN IMMEDIATE");
        if (i % 3 == 0) {
            EXPECT_OK(host_fire(host, id, "press"));
            host_run(host, "COMMIT");
        }
        EXPECT_OK(
            pawl_fire(other, id, &(pawl_fire_args){ .action = "press" }, &fired, &host->error));
        EXPECT_EQ(fired.sequence_number, i + 1);
    }
    pawl_close(other);
    host_expect_valid(host);
}

HOST_TEST(a_transaction_that_read_what_was_changed_since_is_told_to_begin_again)
{
    char id[27];
    pawl_fired fired;
    pawl *other;

    host_define(host, LAMP);
    snprintf(id, sizeof id, "%s", host_create(host, "lamp"));
    EXPECT_OK(pawl_open(&other, host->url, NULL, &host->error));
    host_run(host, "BEGIN; SELECT count(*) FROM parcel");
    EXPECT_OK(pawl_fire(other, id, &(pawl_fire_args){ .action = "press" }, &fired, &host->error));
    EXPECT_EQ(host_fire(host, id, "press"), PAWL_OVERLOADED);
    EXPECT_HAS(host->error.message, "BEGIN IMMEDIATE");
    EXPECT(!sqlite3_get_autocommit(host->db)); /* its end is the host's */
    host_run(host, "ROLLBACK; BEGIN");         /* one that only began is taken along */
    EXPECT_OK(host_fire(host, id, "press"));
    host_run(host, "COMMIT");
    host_expect_state(host, id, "off");
    pawl_close(other);
}

HOST_TEST(a_writer_in_the_way_is_overloaded_and_nothing_else)
{
    const char *id;
    sqlite3 *other;

    host_define(host, LAMP);
    id = host_create(host, "lamp");
    EXPECT_EQ(sqlite3_open(host->path, &other), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    EXPECT_EQ(host_fire(host, id, "press"), PAWL_OVERLOADED);
    host_run(host, "BEGIN");
    EXPECT_EQ(host_fire(host, id, "press"), PAWL_OVERLOADED);
    EXPECT_EQ(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    EXPECT_OK(host_fire(host, id, "press"));
    host_run(host, "COMMIT");
    sqlite3_close(other);
    host_expect_state(host, id, "on");
}

HOST_TEST(a_transaction_that_sqlite_gave_up_takes_no_more_calls_until_it_is_begun_again)
{
    static char payload[300000] = "\"";
    pawl_fired fired;
    char id[27];

    memset(payload + 1, 'x', sizeof payload - 3);
    payload[sizeof payload - 2] = '"';
    host_define(host, LAMP);
    snprintf(id, sizeof id, "%s", host_create(host, "lamp"));
    host_run(host,
             "PRAGMA max_page_count = 60; BEGIN IMMEDIATE; INSERT INTO parcel VALUES (1, 'x')");
    EXPECT_EQ(pawl_fire(host->p, id, &(pawl_fire_args){ .action = "press", .payload = payload },
                        &fired, &host->error),
              PAWL_STORAGE_FAILURE);
    EXPECT_HAS(host->error.message, "rolled back the host's whole transaction");
    EXPECT(sqlite3_get_autocommit(host->db));
    EXPECT_EQ(host_fire(host, id, "press"), PAWL_STORAGE_FAILURE); /* a host that did not look */
    EXPECT_HAS(host->error.message, "begin it again");
    host_expect_state(host, id, "off");
    host_run(host, "BEGIN IMMEDIATE; INSERT INTO parcel VALUES (1, 'x')");
    EXPECT_OK(host_fire(host, id, "press"));
    host_run(host, "COMMIT");
    EXPECT_OK(host_fire(host, id, "press"));
    host_expect_valid(host);
}

HOST_TEST(a_batch_of_fires_is_part_of_the_transaction)
{
    pawl_batch_fire fires[3] = { 0 };
    char id[27];

    host_define(host, LAMP);
    snprintf(id, sizeof id, "%s", host_create(host, "lamp"));
    for (int i = 0; i < 3; i++)
        fires[i] = (pawl_batch_fire){ .id = id, .args = { .action = i == 1 ? "kick" : "press" } };
    host_run(host, "BEGIN IMMEDIATE");
    EXPECT_OK(pawl_fire_batch(host->p, fires, 3, &host->error));
    EXPECT_EQ(fires[1].status, PAWL_INVALID_TRANSITION);
    EXPECT_EQ(fires[2].fired.sequence_number, 2);
    host_run(host, "ROLLBACK");
    EXPECT_EQ(host_number(host, "SELECT count(*) FROM pawl_history"), 0);
}
