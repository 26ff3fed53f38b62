/* sqlite_watch.c - files that are cut or changed under a store that is open: noticed at the next
 * commit. What a server answers then is tested in tests/http/run_storage.py. */
#include "store/contract.h"
#include "store/sqlite/sqlite_int.h"
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_TEST(test_name)                                                                      \
    static void body_##test_name(struct stand *s);                                                 \
    TEST(sqlite_watch, test_name)                                                                  \
    {                                                                                              \
        stand_run(t, "sqlite", body_##test_name);                                                  \
    }                                                                                              \
    static void body_##test_name(struct stand *s)

static const char *file_of(struct stand *s, const char *name)
{
    static char paths[2][128];
    static int next;
    char *path = paths[next++ % 2];

    (void)snprintf(path, sizeof *paths, "%s/%s", s->dir, name);
    return path;
}

static void run_sql(const char *path, const char *text)
{
    sqlite3 *db;

    EXPECT(sqlite3_open(path, &db) == SQLITE_OK);
    EXPECT(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    EXPECT(sqlite3_close(db) == SQLITE_OK);
}

static pawl_status write_one(struct stand *s)
{
    struct change c = change_begin(s);

    add_record(&c, 0, 0, CONTROL_KEYED);
    return change_commit(&c);
}

static void own(struct stand *s)
{
    store_close(s->store);
    EXPECT_OK(stand_open(s, (struct store_options){ .own = true }, &s->store));
    put_orders(s, 3);
}

static void expect_stopped(struct stand *s, const char *words)
{
    struct store_tip tip;
    pawl_status status = store_begin(s->store, s->scope, &tip);

    if (status == PAWL_OK) {
        store_rollback(s->store);
        status = write_one(s);
    }
    EXPECT(status == PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, words);
    EXPECT(store_trouble(s->store) == TROUBLE_GONE);
    EXPECT(store_begin(s->store, s->scope, &tip) == PAWL_STORAGE_FAILURE); /* and so it stays */
    EXPECT(store_reopen(s->store, s->scope) == PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, words);
}

WATCH_TEST(nothing_is_acknowledged_into_a_wal_that_was_truncated)
{
    own(s);
    EXPECT(truncate(file_of(s, "store.db-wal"), 0) == 0);
    expect_stopped(s, "-wal file was truncated");
}

/* What a check finds if another program runs `sql` after the index was read and before the files are
 * looked at, or after that. */
static const char *look_while(struct stand *s, const char *sql, bool before_files)
{
    struct sqlite_store *store = sqlite_store_of(s->store);
    struct wal_index index = unchanged_index(store);
    struct stat found[WATCHED_COUNT];
    const char *what;

    if (before_files)
        run_sql(file_of(s, "store.db"), sql);
    EXPECT(stat(file_of(s, "store.db"), &found[0]) == 0);
    EXPECT(stat(file_of(s, "store.db-wal"), &found[1]) == 0);
    EXPECT(stat(file_of(s, "store.db-shm"), &found[2]) == 0);
    if (!before_files)
        run_sql(file_of(s, "store.db"), sql);
    return unchanged_check(store, &index, found, &what);
}

WATCH_TEST(a_wal_that_grows_or_begins_again_while_it_is_looked_at_was_not_truncated)
{
    static const char *const works[] = {
        "CREATE TABLE IF NOT EXISTS host(a); INSERT INTO host VALUES (zeroblob(90000))",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "INSERT INTO host VALUES (zeroblob(90000)); PRAGMA wal_checkpoint(TRUNCATE)",
        "DELETE FROM host; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
    };

    put_orders(s, 3);
    for (size_t i = 0; i < 2 * sizeof works / sizeof *works; i++) {
        EXPECT(!look_while(s, works[i / 2], i % 2));
        EXPECT_OK(write_one(s));
    }
}

WATCH_TEST(a_wal_that_lost_its_last_byte_is_noticed)
{
    struct stat info;

    own(s);
    EXPECT(stat(file_of(s, "store.db-wal"), &info) == 0);
    EXPECT(truncate(file_of(s, "store.db-wal"), info.st_size - 1) == 0);
    expect_stopped(s, "-wal file was truncated");
}

WATCH_TEST(nothing_is_acknowledged_over_a_database_that_was_truncated)
{
    own(s);
    EXPECT(truncate(file_of(s, "store.db"), 8192) == 0);
    expect_stopped(s, "database file was truncated");
}

WATCH_TEST(what_other_programs_do_by_the_same_name_stops_no_owner)
{
    static const char *const works[] = {
        "CREATE TABLE host(a); INSERT INTO host VALUES (1)",
        "PRAGMA wal_checkpoint",
        "INSERT INTO host SELECT zeroblob(100000)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "DELETE FROM host; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
    };

    own(s);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        run_sql(file_of(s, "store.db"), works[i]);
        EXPECT_OK(write_one(s));
        EXPECT_OK(write_one(s));
    }
    EXPECT(store_trouble(s->store) == TROUBLE_NONE);
}

/* ---- Other processes ---- */

struct second {
    pid_t pid;
    int line; /* a byte each way: open it, it is open */
};

/* Writes as an owner, or, given `text`, as some program. */
static void be_second(struct stand *s, const char *name, const char *text, int line)
{
    char byte;

    (void)snprintf(s->url, sizeof s->url, "sqlite:%.80s", file_of(s, name));
    if (read(line, &byte, 1) != 1)
        _exit(1);
    if (text)
        run_sql(file_of(s, name), text);
    else if (stand_open(s, (struct store_options){ .own = true }, &s->store) != PAWL_OK ||
             write_one(s) != PAWL_OK)
        _exit(1);
    if (write(line, "!", 1) != 1)
        _exit(1);
    _exit(read(line, &byte, 1) == 1); /* until the test ends */
}

/* A process that will use the store as well. It begins while this one has no connection: SQLite's
 * must not be inherited. */
static struct second second_new(struct stand *s, const char *name, const char *text)
{
    struct second second;
    int lines[2];

    store_close(s->store);
    s->store = NULL;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, lines) == 0);
    second.pid = fork();
    EXPECT(second.pid >= 0);
    if (second.pid == 0) {
        close(lines[0]);
        be_second(s, name, text, lines[1]);
    }
    close(lines[1]);
    second.line = lines[0];
    return second;
}

static void second_open(const struct second *second)
{
    char byte = '!';

    EXPECT(write(second->line, &byte, 1) == 1);
    EXPECT(read(second->line, &byte, 1) == 1);
}

static void second_stop(const struct second *second)
{
    EXPECT(kill(second->pid, SIGKILL) == 0);
    EXPECT(waitpid(second->pid, NULL, 0) == second->pid);
    close(second->line);
}

WATCH_TEST(what_another_program_wrote_through_a_second_name_stops_the_owner)
{
    struct second second =
        second_new(s, "second.db", "CREATE TABLE host(a); INSERT INTO host VALUES (1)");

    own(s);
    EXPECT(link(file_of(s, "store.db"), file_of(s, "second.db")) == 0);
    EXPECT_OK(write_one(s)); /* the name alone is reported, and nothing else */
    EXPECT(store_trouble(s->store) == TROUBLE_LINKED);
    second_open(&second);
    expect_stopped(s, "database file was changed by another program");
    second_stop(&second);
}

WATCH_TEST(what_another_program_moved_into_the_file_stops_the_owner_when_the_name_is_gone_again)
{
    struct second second = second_new(s, "second.db", "CREATE TABLE host(a); PRAGMA wal_checkpoint");

    own(s);
    EXPECT(link(file_of(s, "store.db"), file_of(s, "second.db")) == 0);
    second_open(&second);
    EXPECT(unlink(file_of(s, "second.db")) == 0);
    expect_stopped(s, "database file was changed by another program, not through");
    second_stop(&second);
}

/* The file is moved, opened under its new name, and linked back: the first owner finds its file. */
WATCH_TEST(a_second_owner_by_another_name_stops_the_first_before_it_has_written_to_the_file)
{
    struct second second = second_new(s, "second.db", NULL);

    own(s);
    EXPECT(rename(file_of(s, "store.db"), file_of(s, "second.db")) == 0);
    second_open(&second);
    EXPECT(link(file_of(s, "second.db"), file_of(s, "store.db")) == 0);
    expect_stopped(s, "also owned by a second process under another name");
    second_stop(&second);
}

WATCH_TEST(a_second_owner_by_the_same_name_stops_the_first)
{
    struct second second = second_new(s, "store.db", NULL);

    own(s);
    EXPECT(unlink(file_of(s, "store.db-owner")) == 0);
    second_open(&second);
    expect_stopped(s, "was written by another process");
    second_stop(&second);
}
