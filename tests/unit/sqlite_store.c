/* sqlite_store.c - what only the SQLite store promises: its file, its owner, its views. What
 * it shares with every other store is tested in tests/store/contract.c. */
#include "base/time.h"
#include "store/contract.h"
#include "store/owner.h"
#include "store/sqlite/sqlite_int.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SQLITE_TEST(test_name)                                                                     \
    static void body_##test_name(struct stand *s);                                                 \
    TEST(sqlite_store, test_name)                                                                  \
    {                                                                                              \
        stand_run(t, "sqlite", body_##test_name);                                                  \
    }                                                                                              \
    static void body_##test_name(struct stand *s)

static const char *path_of(struct stand *s, const char *suffix)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", s->dir, suffix);
    return path;
}

static void put_file(struct stand *s, const char *name, const char *text)
{
    FILE *file = fopen(path_of(s, name), "w");

    EXPECT(file);
    EXPECT(fputs(text, file) >= 0);
    EXPECT(fclose(file) == 0);
}

static bool has_file(struct stand *s, const char *name)
{
    return access(path_of(s, name), F_OK) == 0;
}

static int64_t size_of(struct stand *s, const char *name)
{
    struct stat info;

    EXPECT(stat(path_of(s, name), &info) == 0);
    return info.st_size;
}

/* As somebody with a shell of his own would. */
static void run_sql(struct stand *s, const char *name, const char *text)
{
    sqlite3 *db;

    EXPECT(sqlite3_open(path_of(s, name), &db) == SQLITE_OK);
    EXPECT(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    EXPECT(sqlite3_close(db) == SQLITE_OK);
}

static pawl_status open_named(struct stand *s, const char *name, struct store_options options)
{
    struct store *store = NULL;
    pawl_status status;

    (void)snprintf(s->url, sizeof s->url, "sqlite:%.80s", path_of(s, name));
    status = stand_open(s, options, &store);
    EXPECT(status == PAWL_OK || !store);
    store_close(store);
    return status;
}

/* ---- The file ---- */

SQLITE_TEST(what_a_crash_left_of_a_new_store_is_cleared_away)
{
    put_file(s, "b.db-new-123", "half a store");
    put_file(s, "b.db-new-123-wal", "");
    put_file(s, "b.db-new-notes", "somebody's own");
    put_file(s, "c.db-new-9", "of another store");
    EXPECT_OK(open_named(s, "b.db", (struct store_options){ .create = true }));
    EXPECT(has_file(s, "b.db"));
    EXPECT(!has_file(s, "b.db-new-123"));
    EXPECT(!has_file(s, "b.db-new-123-wal"));
    EXPECT(has_file(s, "b.db-new-notes"));
    EXPECT(has_file(s, "c.db-new-9"));
    EXPECT_OK(open_named(s, "b.db", (struct store_options){ 0 }));
}

SQLITE_TEST(a_store_that_is_missing_leaves_nothing_behind_when_it_is_not_made)
{
    EXPECT(open_named(s, "b.db", (struct store_options){ 0 }) == PAWL_NOT_KNOWN);
    EXPECT(open_named(s, "b.db", (struct store_options){ .own = true }) == PAWL_NOT_KNOWN);
    EXPECT(!has_file(s, "b.db"));
    EXPECT(!has_file(s, "b.db-owner"));
}

SQLITE_TEST(a_newer_schema_is_refused_in_words)
{
    store_close(s->store);
    run_sql(s, "store.db", "PRAGMA user_version = 99");
    EXPECT(stand_open(s, (struct store_options){ 0 }, &s->store) == PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "has schema 99, this pawl knows up to");
    EXPECT_HAS(s->scope->error.message, "use a newer pawl");
    s->store = NULL;
}

SQLITE_TEST(an_older_schema_is_migrated)
{
    store_close(s->store);
    run_sql(
        s, "store.db",
        "DROP VIEW pawl_ids; DROP VIEW pawl_current; DROP VIEW pawl_instances;"
        "DROP VIEW pawl_history; DROP VIEW pawl_definitions; DROP VIEW pawl_states;"
        "DROP VIEW pawl_transitions; DROP VIEW pawl_steps; DROP VIEW pawl_labels;"
        "DROP VIEW workflows; DROP VIEW workflow_steps; DROP VIEW pawl_timers;"
        "DROP VIEW pawl_attempted; DROP VIEW pawl_attempts; DROP VIEW pawl_tree;"
        "DROP VIEW pawl_code;"
        " DROP TABLE pawl_label; DROP INDEX pawl_instance_definition;"
        "ALTER TABLE pawl_step DROP COLUMN lease; ALTER TABLE pawl_step DROP COLUMN lease_ms;"
        "ALTER TABLE pawl_step DROP COLUMN ready_at;"
        "DROP TABLE pawl_key; DROP TABLE pawl_pause; DROP TABLE pawl_kept; DROP TABLE pawl_child;"
        "DROP TABLE pawl_interest;"
        "DROP INDEX pawl_wait_name; DROP INDEX pawl_wait_value;"
        "ALTER TABLE pawl_wait DROP COLUMN value;"
        "DROP INDEX pawl_timer_due; DROP INDEX pawl_timer_wall;"
        "ALTER TABLE pawl_timer DROP COLUMN wall; ALTER TABLE pawl_timer DROP COLUMN shift;"
        "CREATE INDEX pawl_timer_due ON pawl_timer (due, inst, ord, name) WHERE test = 0;"
        "PRAGMA user_version = 1");
    s->store = stand_another(s);
    run_sql(s, "store.db", "SELECT * FROM pawl_instances");
}

SQLITE_TEST(what_is_no_store_is_refused_in_words_and_left_alone)
{
    put_file(s, "empty.db", "");
    EXPECT(open_named(s, "empty.db", (struct store_options){ .create = true }) ==
           PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "empty.db is not a pawl store: expected a file that "
                                        "pawl made, found an empty file");
    EXPECT_EQ(size_of(s, "empty.db"), 0);

    put_file(s, "text.db", "this is a shopping list: milk, bread, and a state machine, please");
    EXPECT(open_named(s, "text.db", (struct store_options){ .create = true }) ==
           PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "found no SQLite database");

    run_sql(s, "other.db", "CREATE TABLE t (a); PRAGMA application_id = 7");
    EXPECT(open_named(s, "other.db", (struct store_options){ .own = true, .create = true }) ==
           PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "found a SQLite database of another program "
                                        "(application_id 0x00000007)");

    EXPECT(open_named(s, ".", (struct store_options){ .create = true }) == PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "found no file");
}

SQLITE_TEST(a_wal_that_lost_its_store_is_not_played_into_a_new_one)
{
    put_file(s, "b.db-wal", "");
    EXPECT(open_named(s, "b.db", (struct store_options){ .create = true }) == PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "b.db-wal lies there without its store");
    EXPECT(!has_file(s, "b.db"));
}

static void expect_moved(struct stand *s, pawl_status status)
{
    EXPECT(status == PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "entries were moved into the database");
}

SQLITE_TEST(every_call_after_a_deleted_wal_reports_that_its_entries_were_moved)
{
    struct store_tip tip;
    struct change c;

    put_orders(s, 1);
    EXPECT(unlink(path_of(s, "store.db-wal")) == 0);
    c = change_begin(s);
    add_instance(&c, 1);
    EXPECT(change_commit(&c) == PAWL_STORAGE_FAILURE);
    expect_moved(s, store_tip(s->store, s->scope, &tip));
    expect_moved(s, store_reopen(s->store, s->scope)); /* looks at the files once more */
    expect_moved(s, store_tip(s->store, s->scope, &tip));
    stand_reopen(s);
    EXPECT_OK(store_tip(s->store, s->scope, &tip));
    EXPECT_EQ(tip.last_instance, 1);
}

static void set_url(struct stand *s, const char *url)
{
    (void)snprintf(s->url, sizeof s->url, "%s", url);
}

SQLITE_TEST(an_unknown_url_is_refused)
{
    set_url(s, "oracle:x");
    EXPECT(stand_open(s, (struct store_options){ 0 }, &s->store) == PAWL_INVALID_REQUEST);
    set_url(s, "sqlite:");
    EXPECT(stand_open(s, (struct store_options){ 0 }, &s->store) == PAWL_INVALID_REQUEST);
    set_url(s, "sqlite:/no/such/folder/x.db");
    EXPECT(stand_open(s, (struct store_options){ .create = true }, &s->store) ==
           PAWL_STORAGE_FAILURE);
}

/* ---- The owner ---- */

/* A process that owns the store and has let its rows lag; it lives until it is killed. */
static pid_t start_owner(struct stand *s, const char *address)
{
    int ready[2];
    char byte;
    pid_t pid;

    EXPECT(pipe(ready) == 0);
    pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        struct store_options options = { .own = true, .address = address };
        struct change c;

        if (stand_open(s, options, &s->store) != PAWL_OK)
            _exit(1);
        c = change_begin(s);
        c.lag = true;
        add_entry(&c, 1, 1, 0, PAID);
        if (change_commit(&c) != PAWL_OK || write(ready[1], "!", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    EXPECT(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return pid;
}

static void stop(pid_t pid)
{
    EXPECT(kill(pid, SIGKILL) == 0);
    EXPECT(waitpid(pid, NULL, 0) == pid);
}

SQLITE_TEST(an_owner_in_another_process_is_named_and_its_death_frees_the_store)
{
    char words[64], address[64];
    int found = -1;
    struct store *other;
    struct store_tip tip;
    struct head_row head;
    pid_t pid;

    put_orders(s, 1);
    store_close(s->store);
    pid = start_owner(s, "http://127.0.0.1:7295");
    (void)snprintf(words, sizeof words, "owned by process %ld at http://127.0.0.1:7295", (long)pid);

    EXPECT(stand_open(s, (struct store_options){ .own = true }, &other) == PAWL_IN_USE);
    EXPECT_HAS(s->scope->error.message, words);
    s->store = stand_another(s); /* a reader needs no lock, and sees through the lag */
    EXPECT_OK(store_head(s->store, s->scope, 1, false, &head));
    EXPECT_EQ(head.state, PAID);
    EXPECT(store_begin(s->store, s->scope, &tip) == PAWL_IN_USE);
    EXPECT_HAS(s->scope->error.message, words);
    EXPECT_OK(sqlite_owner(str_from(str_of(s->url), 7), address, sizeof address, &found));
    EXPECT_TEXT(address, "http://127.0.0.1:7295");
    EXPECT_EQ(found, pid);

    stop(pid);
    EXPECT_OK(sqlite_owner(str_from(str_of(s->url), 7), address, sizeof address, &found));
    EXPECT_TEXT(address, "");
    EXPECT_EQ(found, 0);
    EXPECT_OK(store_begin(s->store, s->scope, &tip)); /* also while rows lag */
    EXPECT(tip.flushed < tip.pos);
    store_rollback(s->store);
    EXPECT_OK(stand_open(s, (struct store_options){ .own = true }, &other));
    store_close(other);
}

SQLITE_TEST(an_owner_that_closes_takes_its_name_away)
{
    struct store *owner;
    struct store_tip tip;

    store_close(s->store);
    EXPECT_OK(stand_open(s, (struct store_options){ .own = true, .address = "here" }, &owner));
    EXPECT(size_of(s, "store.db-owner") > 0);
    s->store = stand_another(s);
    EXPECT(store_begin(s->store, s->scope, &tip) == PAWL_IN_USE); /* also within one process */
    store_close(owner);
    EXPECT_EQ(size_of(s, "store.db-owner"), 0);
    EXPECT_OK(store_begin(s->store, s->scope, &tip));
    store_rollback(s->store);
}

SQLITE_TEST(an_owner_waits_for_a_writer_in_its_turn_but_not_for_ever)
{
    struct store *owner;
    struct store_tip tip;

    put_file(s, "store.db-owner", "4711 left by a dead one\n");
    EXPECT_OK(store_begin(s->store, s->scope, &tip));
    EXPECT(stand_open(s, (struct store_options){ .own = true }, &owner) == PAWL_IN_USE);
    EXPECT(!strstr(s->scope->error.message, "4711"));
    store_rollback(s->store);
    EXPECT_OK(stand_open(s, (struct store_options){ .own = true }, &owner));
    store_close(owner);
}

SQLITE_TEST(a_sidecar_that_was_deleted_and_made_anew_still_excludes)
{
    struct store *owner;
    struct store_tip tip;

    EXPECT_OK(store_begin(s->store, s->scope, &tip)); /* has it open now */
    store_rollback(s->store);
    EXPECT(unlink(path_of(s, "store.db-owner")) == 0);
    EXPECT_OK(stand_open(s, (struct store_options){ .own = true }, &owner));
    EXPECT(store_begin(s->store, s->scope, &tip) == PAWL_IN_USE);
    store_close(owner);
}

/* Two processes that make and write one store at once lose nothing. */
static _Noreturn void give_up(struct stand *s)
{
    fprintf(stderr, "# a rival: %s\n", s->scope->error.message);
    _exit(1);
}

static _Noreturn void write_as_rival(struct stand *s)
{
    if (stand_open(s, (struct store_options){ .create = true }, &s->store) != PAWL_OK)
        give_up(s);
    for (int i = 0; i < 25; i++) {
        struct change c = { .stand = s, .store = s->store };

        if (store_begin(s->store, s->scope, &c.tip) != PAWL_OK)
            give_up(s);
        add_value(&c, STR("v"), false);
        add_record(&c, 0, 0, CONTROL_KEYED);
        if (change_commit(&c) != PAWL_OK)
            give_up(s);
    }
    store_close(s->store);
    _exit(0);
}

SQLITE_TEST(rivals_that_make_and_write_one_store_at_once_lose_nothing)
{
    struct store_tip tip;
    int how;

    store_close(s->store);
    (void)snprintf(s->url, sizeof s->url, "sqlite:%.80s", path_of(s, "rivals.db"));
    for (int i = 0; i < 4; i++)
        if (fork() == 0)
            write_as_rival(s);
    for (int i = 0; i < 4; i++) {
        EXPECT(wait(&how) > 0);
        EXPECT_EQ(how, 0);
    }
    s->store = stand_another(s);
    EXPECT_OK(store_tip(s->store, s->scope, &tip));
    EXPECT_EQ(tip.pos, 100);
    EXPECT_EQ(tip.last_value, 100);
}

/* ---- The WAL ---- */

static void write_much(struct stand *s, int commits)
{
    static const char bytes[65536];

    for (int i = 0; i < commits; i++) {
        struct change c = change_begin(s);

        add_value(&c, (str){ bytes, sizeof bytes }, false);
        add_record(&c, 0, 0, CONTROL_KEYED);
        EXPECT_OK(change_commit(&c));
        scope_clear(s->scope);
    }
}

SQLITE_TEST(the_wal_stays_small_over_many_commits)
{
    write_much(s, 600); /* 40 MB */
    EXPECT(size_of(s, "store.db-wal") < 8 << 20);
}

SQLITE_TEST(a_wal_that_a_reader_held_up_is_cut_when_it_is_gone)
{
    sqlite3 *db;

    EXPECT(sqlite3_open(path_of(s, "store.db"), &db) == SQLITE_OK);
    EXPECT(sqlite3_exec(db, "BEGIN; SELECT * FROM pawl_meta", NULL, NULL, NULL) == SQLITE_OK);
    write_much(s, 1200); /* 80 MB */
    EXPECT(size_of(s, "store.db-wal") > 64 << 20);
    EXPECT(sqlite3_close(db) == SQLITE_OK);
    write_much(s, 200);
    EXPECT(size_of(s, "store.db-wal") < 16 << 20);
}

/* ---- Bytes ---- */

SQLITE_TEST(bytes_with_nul_come_back_whole)
{
    str bytes = STR("a\0b\0"), labels = STR("{\"k\":\"\0\"}"), name = STR("n\0m");
    struct instance_row instance;
    struct definition_row definition;
    struct snapshot_row snapshot;
    struct live live;
    struct change c = change_begin(s);
    uint32_t id = add_definition(&c, name, 1, bytes)->id;
    struct instance_row *row = add_instance(&c, id);

    row->correlation = bytes;
    row->labels = labels;
    add_live(&c, (struct live_change){ .kind = LIVE_WAIT_PUT, .instance = 1, .name = name });
    add_snapshot(&c, 1, 0, bytes);
    EXPECT_OK(change_commit(&c));
    stand_reopen(s);
    EXPECT_OK(store_instance(s->store, s->scope, 1, &instance));
    EXPECT(same_bytes(instance.correlation, bytes));
    EXPECT(same_bytes(instance.labels, labels));
    EXPECT_OK(store_find_definition(s->store, s->scope, name, 0, NULL, &definition));
    EXPECT(same_bytes(definition.source, bytes));
    EXPECT_OK(store_snapshot(s->store, s->scope, 1, &snapshot));
    EXPECT(same_bytes(snapshot.text, bytes));
    EXPECT_OK(store_live(s->store, s->scope, 1, &live));
    EXPECT(live.wait_count == 1 && same_bytes(live.waits[0].name, name));
}

/* Stores of before schema 11 have the commitment of every value. */
SQLITE_TEST(a_commitment_is_told_whether_it_is_stored_or_follows_from_the_value)
{
    struct value value, made;
    struct change c = change_begin(s);

    made = *add_value(&c, STR("ada"), true);
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    EXPECT(memcmp(value.commitment, made.commitment, SHA_SIZE) == 0);
    EXPECT_OK(store_find_value(s->store, s->scope, STR("ada"), &value));
    EXPECT(memcmp(value.commitment, made.commitment, SHA_SIZE) == 0);
    run_sql(s, "store.db", "UPDATE pawl_value SET commitment = zeroblob(31) || x'07'");
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    EXPECT_EQ(value.commitment[31], 7); /* as it stands there, for verify to compare */
}

SQLITE_TEST(an_erased_value_keeps_its_commitment_alone)
{
    struct value value, first;
    struct change c = change_begin(s);

    first = *add_value(&c, STR("ada"), true);
    EXPECT_OK(change_commit(&c));
    c = change_begin(s);
    first.bytes = STR_NONE;
    *ADD(&c, values, 1) = first;
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    EXPECT(!value.bytes.data);
    EXPECT_EQ(value.salt[0], 0);
    EXPECT(memcmp(value.commitment, first.commitment, SHA_SIZE) == 0);
    EXPECT(store_find_value(s->store, s->scope, STR("ada"), &value) == PAWL_NOT_KNOWN);
}

/* ---- A new file ---- */

static str digest_of_schema(struct test *t, sqlite3 *db)
{
    static const char text[] =
        "SELECT group_concat(line, char(10)) FROM (SELECT type || name || tbl_name || sql AS line"
        " FROM sqlite_schema WHERE sql IS NOT NULL UNION ALL SELECT 'meta' || key || quote(value)"
        " FROM pawl_meta UNION ALL SELECT 'version' || user_version FROM pragma_user_version"
        " UNION ALL SELECT 'application' || application_id FROM pragma_application_id ORDER BY 1)";
    sqlite3_stmt *statement = NULL;
    str found;

    EXPECT(sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK);
    EXPECT(sqlite3_step(statement) == SQLITE_ROW);
    found = column_str(statement, 0, &t->scope.arena);
    EXPECT(sqlite3_finalize(statement) == SQLITE_OK);
    return found;
}

TEST(sqlite_store, a_new_file_has_what_all_migrations_make_one_after_the_other)
{
    uint32_t newest = sqlite_schema_version();
    sqlite3 *at_once, *in_turn;
    str wanted;

    EXPECT(sqlite3_open(":memory:", &at_once) == SQLITE_OK);
    EXPECT(sqlite3_open(":memory:", &in_turn) == SQLITE_OK);
    EXPECT(schema_make(at_once, newest, false) == SQLITE_OK);
    EXPECT(schema_make(in_turn, newest - 1, false) == SQLITE_OK);
    EXPECT(sqlite3_exec(in_turn, sqlite_schema[newest - 1][1].data, NULL, NULL, NULL) == SQLITE_OK);
    wanted = digest_of_schema(t, in_turn);
    EXPECT(wanted.size > 20000);
    EXPECT(str_eq(digest_of_schema(t, at_once), wanted));
    EXPECT(sqlite3_close(at_once) == SQLITE_OK);
    EXPECT(sqlite3_close(in_turn) == SQLITE_OK);
}
