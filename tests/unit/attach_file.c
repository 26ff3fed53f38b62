/* attach_file.c - our tables as guests in a host's file: who may, what stays the host's. */
#include "attach_fixture.h"
#include "store/sqlite/sqlite_int.h"
#include <stdio.h>
#include <unistd.h>

TEST(attach, the_numbers_in_the_header_stay_the_hosts)
{
    struct host host;

    host_begin(&host);
    host_attach(&host);
    EXPECT_EQ(host_number(&host, "PRAGMA application_id"), 77);
    EXPECT_EQ(host_number(&host, "PRAGMA user_version"), 12);
    EXPECT_EQ(host_number(&host, "SELECT value > 1 FROM pawl_meta WHERE key = 'schema'"), 1);
    host_define(&host, LAMP);
    pawl_close(host.p);
    host_attach(&host); /* a second time: everything is there */
    EXPECT_OK(host_fire(&host, host_create(&host, "lamp"), "press"));
    host_expect_valid(&host); /* opened by URL, like any store */
    host_end(&host);
}

static bool has_head(struct host *host)
{
    char path[112];

    snprintf(path, sizeof path, "%s-head", host->path);
    return access(path, F_OK) == 0;
}

TEST(attach, a_hosts_file_gets_no_head_beside_it)
{
    struct host host;
    const char *id;
    pawl *p;

    host_begin(&host);
    host_attach(&host);
    host_define(&host, LAMP); /* a commit of its own, outside of the host's transactions */
    id = host_create(&host, "lamp");
    host_run(&host, "BEGIN IMMEDIATE");
    EXPECT_OK(host_fire(&host, id, "press"));
    host_run(&host, "COMMIT");
    EXPECT(!has_head(&host));
    pawl_close(host.p);
    host.p = NULL;
    EXPECT(!has_head(&host));
    EXPECT_OK(pawl_open(&p, host.url, NULL, &host.error)); /* by URL */
    EXPECT_OK(pawl_define(p, LANTERN, sizeof LANTERN - 1, NULL, &host.error));
    pawl_close(p);
    EXPECT(!has_head(&host));
    host_end(&host);
}

TEST(attach, a_host_with_thousands_of_views_has_a_valid_store)
{
    struct host host;

    host_begin(&host);
    host_attach(&host);
    host_define(&host, LAMP);
    EXPECT_OK(host_fire(&host, host_create(&host, "lamp"), "press"));
    /* In the order of names they stand before pawl_. CREATE VIEW would take a millisecond each. */
    host_run(&host, "PRAGMA writable_schema = ON;"
                    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 4200)"
                    " INSERT INTO sqlite_schema SELECT 'view', 'a' || i, 'a' || i, 0,"
                    " 'CREATE VIEW a' || i || ' AS SELECT 1' FROM n;"
                    "PRAGMA writable_schema = RESET; CREATE TABLE crate (id)");
    host_expect_valid(&host);
    host_end(&host);
}

/* What the first release would have left in a host's file. */
static void put_first_schema(struct host *host)
{
    host_begin(host);
    host_run(host, sqlite_schema[0][1].data);
    host_run(host, "PRAGMA application_id = 77; PRAGMA user_version = 12;"
                   "INSERT INTO pawl_meta VALUES ('schema', 1), ('created_at', 1),"
                   " ('store_id', randomblob(16))");
}

static void expect_newest_schema(struct host *host)
{
    EXPECT_EQ(host_number(host, "SELECT value FROM pawl_meta WHERE key = 'schema'"),
              sqlite_schema_version());
    EXPECT_EQ(host_number(host, "SELECT count(*) FROM pawl_instances"), 0);
    EXPECT_EQ(host_number(host, "PRAGMA application_id"), 77);
    EXPECT_EQ(host_number(host, "PRAGMA user_version"), 12);
}

TEST(attach, an_older_schema_in_a_hosts_file_is_migrated_by_whoever_comes_first)
{
    struct host host;
    pawl *p;

    put_first_schema(&host);
    host_attach(&host);
    expect_newest_schema(&host);
    host_end(&host);
    put_first_schema(&host);
    EXPECT_OK(pawl_open(&p, host.url, NULL, &host.error));
    pawl_close(p);
    expect_newest_schema(&host);
    host_run(&host, "UPDATE pawl_meta SET value = 99 WHERE key = 'schema'");
    EXPECT_EQ(pawl_attach(&host.p, host.db, NULL, &host.error), PAWL_STORAGE_FAILURE);
    EXPECT_HAS(host.error.message, "schema 99");
    EXPECT_EQ(pawl_open(&p, host.url, NULL, &host.error), PAWL_STORAGE_FAILURE);
    host_end(&host);
}

TEST(attach, a_file_of_the_hosts_is_no_store_before_somebody_attaches)
{
    struct host host;
    pawl *p;

    host_begin(&host);
    EXPECT_EQ(pawl_open(&p, host.url, NULL, &host.error), PAWL_STORAGE_FAILURE);
    EXPECT_HAS(host.error.message, "not a pawl store");
    host_end(&host);
}

TEST(attach, a_store_of_pawls_own_can_be_attached_to)
{
    struct host host;
    char own[80];
    pawl *p;

    host_begin(&host);
    sqlite3_close(host.db);
    snprintf(own, sizeof own, "%s/pawl.db", host.folder);
    snprintf(host.url, sizeof host.url, "sqlite:%s", own);
    EXPECT_OK(pawl_open(&p, host.url, NULL, &host.error));
    EXPECT_OK(pawl_define(p, LAMP, sizeof LAMP - 1, NULL, &host.error));
    pawl_close(p);
    EXPECT_EQ(sqlite3_open(own, &host.db), SQLITE_OK);
    host_attach(&host);
    EXPECT_OK(host_fire(&host, host_create(&host, "lamp"), "press"));
    EXPECT(host_number(&host, "PRAGMA user_version") > 1);
    EXPECT_EQ(host_number(&host, "SELECT count(*) FROM pawl_meta WHERE key = 'schema'"), 0);
    host_expect_valid(&host);
    host_end(&host);
}

TEST(attach, no_owner_can_be_beside_an_attachment)
{
    struct host host;
    pawl *owner;

    host_begin(&host);
    host_attach(&host);
    EXPECT_EQ(pawl_open(&owner, host.url, &(pawl_options){ .own = true }, &host.error),
              PAWL_IN_USE);
    pawl_close(host.p);
    host.p = NULL;
    EXPECT_OK(pawl_open(&owner, host.url, &(pawl_options){ .own = true }, &host.error));
    EXPECT_EQ(pawl_attach(&host.p, host.db, NULL, &host.error), PAWL_IN_USE);
    EXPECT_HAS(host.error.message, "is owned by process");
    EXPECT(host.p == NULL);
    pawl_close(owner);
    host_attach(&host);
    host_end(&host);
}

TEST(attach, what_an_owner_left_behind_is_put_right_inside_the_hosts_transaction)
{
    struct host host;
    pawl_fired fired;
    pawl_id id;
    pawl *owner;

    host_begin(&host);
    host_attach(&host);
    host_define(&host, LAMP);
    pawl_close(host.p);
    EXPECT_OK(pawl_open(&owner, host.url, &(pawl_options){ .own = true }, &host.error));
    EXPECT_OK(pawl_create(owner, &(pawl_create_args){ .definition = "lamp" }, &id, &host.error));
    EXPECT_OK(
        pawl_fire(owner, id.text, &(pawl_fire_args){ .action = "press" }, &fired, &host.error));
    pawl_close(owner);
    /* As a death would have left it: the row as it was created, the log ahead. */
    host_run(&host, "UPDATE pawl_head SET seq = 0, state = 0, pos = 2 WHERE inst = 1;"
                    "UPDATE pawl_meta SET value = 2 WHERE key = 'flushed'");
    host_attach(&host);
    host_run(&host, "BEGIN IMMEDIATE");
    EXPECT_OK(host_fire(&host, id.text, "press"));
    host_run(&host, "ROLLBACK");
    host_expect_state(&host, id.text, "on");
    host_run(&host, "BEGIN IMMEDIATE");
    EXPECT_OK(host_fire(&host, id.text, "press"));
    host_run(&host, "COMMIT");
    host_expect_state(&host, id.text, "off");
    host_expect_valid(&host);
    host_end(&host);
}

TEST(attach, a_connection_that_will_not_do_is_refused_in_words)
{
    struct host host;
    sqlite3 *db;

    host_begin(&host);
    EXPECT_EQ(pawl_attach(&host.p, NULL, NULL, &host.error), PAWL_INVALID_REQUEST);
    EXPECT_EQ(pawl_attach(&host.p, host.db, &(pawl_options){ .own = true }, &host.error),
              PAWL_INVALID_REQUEST);
    EXPECT_HAS(host.error.message, "an attachment is shared");
    EXPECT_EQ(pawl_attach(&host.p, host.db, &(pawl_options){ .workers = 1 }, &host.error),
              PAWL_INVALID_REQUEST);
    host_run(&host, "BEGIN");
    EXPECT_EQ(pawl_attach(&host.p, host.db, NULL, &host.error), PAWL_INVALID_REQUEST);
    EXPECT_HAS(host.error.message, "outside of a transaction");
    host_run(&host, "COMMIT; PRAGMA journal_mode = DELETE");
    EXPECT_EQ(pawl_attach(&host.p, host.db, NULL, &host.error), PAWL_INVALID_REQUEST);
    EXPECT_HAS(host.error.message, "journal mode wal");
    EXPECT_HAS(host.error.message, "found delete");
    host_run(&host, "PRAGMA journal_mode = WAL");
    sqlite3_limit(host.db, SQLITE_LIMIT_LENGTH, 1000);
    EXPECT_EQ(pawl_attach(&host.p, host.db, NULL, &host.error), PAWL_INVALID_REQUEST);
    sqlite3_limit(host.db, SQLITE_LIMIT_LENGTH, 1000000000);
    EXPECT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
    EXPECT_EQ(pawl_attach(&host.p, db, NULL, &host.error), PAWL_INVALID_REQUEST);
    sqlite3_close(db);
    EXPECT_EQ(sqlite3_open_v2(host.path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    EXPECT_EQ(pawl_attach(&host.p, db, NULL, &host.error), PAWL_INVALID_REQUEST);
    EXPECT_HAS(host.error.message, "one that only reads");
    sqlite3_close(db);
    EXPECT_EQ(host_number(&host, "SELECT count(*) FROM sqlite_schema"), 1); /* nothing was made */
    host_end(&host);
}

TEST(attach, closing_leaves_the_connection_to_the_host)
{
    struct host host;

    host_begin(&host);
    host_attach(&host);
    host_define(&host, LAMP);
    host_run(&host, "BEGIN IMMEDIATE; INSERT INTO parcel VALUES (1, 'x')");
    host_create(&host, "lamp");
    pawl_close(host.p);
    host.p = NULL;
    EXPECT(!sqlite3_get_autocommit(host.db));
    host_run(&host, "COMMIT");
    EXPECT_EQ(other_number(&host, "SELECT count(*) FROM parcel"), 1);
    EXPECT_EQ(other_number(&host, "SELECT count(*) FROM pawl_instance"), 1);
    host_end(&host);
}

/* ---- flows and code ---- */

static void tick(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    if (event->kind == PAWL_EVENT_START)
        pawl_turn_timer(turn, "once", 1000);
    else
        pawl_turn_complete(turn, "\"rung\"");
}

TEST(attach, a_timer_whose_firing_was_rolled_back_fires_again)
{
    static const char *const timers[] = { "once", NULL };
    const pawl_code_type type = { .name = "bell", .timers = timers, .handle = tick };
    struct host host;
    const char *id;

    host_begin(&host);
    EXPECT_OK(pawl_attach(&host.p, host.db, &(pawl_options){ .test_clock = true }, &host.error));
    EXPECT_OK(pawl_code_register(host.p, &type, &host.error));
    host_run(&host, "BEGIN IMMEDIATE");
    host_create(&host, "bell");
    host_run(&host, "ROLLBACK");
    EXPECT_EQ(pawl_next_due(host.p), -1); /* the timer was never armed */
    id = host_create(&host, "bell");
    EXPECT(pawl_next_due(host.p) > 0);
    host_run(&host, "BEGIN IMMEDIATE");
    EXPECT_OK(pawl_test_advance(host.p, 1000, &host.error));
    host_expect_state(&host, id, "completed");
    host_run(&host, "ROLLBACK");
    host_expect_state(&host, id, "running");
    EXPECT_EQ(pawl_next_due(host.p), 0);
    EXPECT_OK(pawl_run_due(host.p, &host.error));
    host_expect_state(&host, id, "completed");
    host_expect_valid(&host);
    host_end(&host);
}

TEST(attach, a_flow_is_created_here_and_its_steps_are_run_by_the_next_owner)
{
    static const char flow[] =
        "name: hello\nsteps:\n  start: {tool: set, args: {a: 1}, done: true}\n";
    struct host host;
    char id[27];
    pawl *owner;

    host_begin(&host);
    host_attach(&host);
    host_run(&host, "BEGIN IMMEDIATE");
    host_define(&host, flow);
    snprintf(id, sizeof id, "%s", host_create(&host, "hello"));
    host_run(&host, "COMMIT");
    EXPECT_OK(pawl_run_due(host.p, &host.error));
    host_expect_state(&host, id, "running");
    pawl_close(host.p);
    host.p = NULL;
    EXPECT_OK(pawl_open(&owner, host.url, &(pawl_options){ .own = true }, &host.error));
    EXPECT_OK(pawl_run_due(owner, &host.error));
    pawl_close(owner);
    host_attach(&host);
    host_expect_state(&host, id, "completed");
    host_expect_valid(&host);
    host_end(&host);
}
