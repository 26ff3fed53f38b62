/* attach.c - a host that joins pawl to its transactions, on a disk that fails and loses power: its
 * rows and pawl's entries are both there or both not, whenever and however it ends. */
#include "fault/sqlite_heap.h"
#include "fault/stage.h"
#include "fault/vfs.h"
#include "lib/fault.h"
#include "lib/test.h"
#include <pawl.h>
#include <sqlite3.h>
#include <stdio.h>

#define PARCELS 6

static const char lamp[] =
    "name: lamp\nstates: [off, on]\ninitial_state: off\nterminal_states: []\ntransitions:\n"
    "  - {from_state: off, action: press, to_state: on}\n"
    "  - {from_state: on, action: press, to_state: off}\n";

enum outcome { NOT_TRIED, COMMITTED, TAKEN_BACK, UNKNOWN };

struct host {
    char path[128];
    sqlite3 *db;
    pawl *p;
    pawl_options options;
    enum outcome outcomes[PARCELS];
};

struct tally {
    uint64_t rounds, faults, unknowns, taken_back;
};

static bool run_sql(struct host *host, const char *text)
{
    return sqlite3_exec(host->db, text, NULL, NULL, NULL) == SQLITE_OK;
}

/* A file of the host's, on the real disk; nobody has attached to it yet. */
static void make_file(struct host *host)
{
    *host = (struct host){ 0 };
    snprintf(host->path, sizeof host->path, "%s.host", stage_path);
    EXPECT_EQ(
        sqlite3_open_v2(host->path, &host->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix"),
        SQLITE_OK);
    EXPECT(run_sql(host, "PRAGMA journal_mode = WAL; PRAGMA user_version = 12;"
                         "CREATE TABLE parcel (id INTEGER PRIMARY KEY)"));
    EXPECT_EQ(sqlite3_close(host->db), SQLITE_OK);
    host->db = NULL;
}

static void leave(struct host *host)
{
    pawl_close(host->p);
    host->p = NULL;
    EXPECT_EQ(sqlite3_close(host->db), SQLITE_OK);
    host->db = NULL;
}

static bool enter(struct host *host)
{
    if (sqlite3_open(host->path, &host->db) == SQLITE_OK &&
        pawl_attach(&host->p, host->db, &host->options, NULL) == PAWL_OK &&
        pawl_define(host->p, lamp, sizeof lamp - 1, NULL, NULL) == PAWL_OK)
        return true;
    leave(host);
    return false;
}

/* The host's row, and an instance that was fired once. */
static bool write_both(struct host *host, int number)
{
    char sql[64], subject[16];
    pawl_fired fired;
    pawl_id id;

    snprintf(sql, sizeof sql, "INSERT INTO parcel VALUES (%d)", number);
    snprintf(subject, sizeof subject, "%d", number);
    return run_sql(host, sql) &&
           pawl_create(host->p, &(pawl_create_args){ .definition = "lamp", .subject_ref = subject },
                       &id, NULL) == PAWL_OK &&
           pawl_fire(host->p, id.text, &(pawl_fire_args){ .action = "press", .actor_ref = "ann" },
                     &fired, NULL) == PAWL_OK;
}

static enum outcome try_parcel(struct host *host, int number)
{
    if (!run_sql(host, "BEGIN IMMEDIATE"))
        return TAKEN_BACK;
    if (!write_both(host, number) || number % 3 == 2) {
        if (!sqlite3_get_autocommit(host->db))
            run_sql(host, "ROLLBACK");
        return TAKEN_BACK;
    }
    return run_sql(host, "COMMIT") ? COMMITTED : UNKNOWN;
}

/* After a COMMIT that failed only a new connection knows what is there. */
static void drive(struct host *host)
{
    for (int i = 0; i < PARCELS; i++) {
        if (!host->db && !enter(host))
            continue;
        host->outcomes[i] = try_parcel(host, i + 1);
        if (host->outcomes[i] == UNKNOWN || !sqlite3_get_autocommit(host->db))
            leave(host);
    }
    if (host->db)
        leave(host);
}

static int64_t number_of(struct host *host, const char *sql, int number)
{
    sqlite3_stmt *statement;
    int64_t found;

    EXPECT_EQ(sqlite3_prepare_v2(host->db, sql, -1, &statement, NULL), SQLITE_OK);
    if (sqlite3_bind_parameter_count(statement))
        EXPECT_EQ(sqlite3_bind_int(statement, 1, number), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    found = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return found;
}

static void expect_both_or_neither(struct host *host, struct tally *tally)
{
    for (int i = 0; i < PARCELS; i++) {
        int64_t rows = number_of(host, "SELECT count(*) FROM parcel WHERE id = ?1", i + 1);
        int64_t entries = number_of(host,
                                    "SELECT coalesce(sum(sequence_number), 0) FROM pawl_instances"
                                    " WHERE subject_ref = CAST(?1 AS TEXT)",
                                    i + 1);

        EXPECT_EQ(rows, entries);
        EXPECT(host->outcomes[i] != COMMITTED || rows == 1);
        EXPECT((host->outcomes[i] != TAKEN_BACK && host->outcomes[i] != NOT_TRIED) || rows == 0);
        tally->unknowns += host->outcomes[i] == UNKNOWN;
        tally->taken_back += host->outcomes[i] == TAKEN_BACK;
    }
    EXPECT_EQ(number_of(host, "PRAGMA user_version", 0), 12);
}

static void expect_sound(struct host *host, struct tally *tally)
{
    char *text;

    EXPECT(enter(host));
    expect_both_or_neither(host, tally);
    EXPECT_OK(pawl_call(host->p, "store.verify", "{}", &text, NULL));
    EXPECT_HAS(text, "\"valid\":true");
    pawl_free(host->p, text);
    EXPECT_EQ(try_parcel(host, PARCELS + 1), COMMITTED); /* and it goes on */
    leave(host);
}

static bool run_round(struct host *host, struct disk_plan plan, uint64_t seed, struct tally *tally)
{
    memset(host->outcomes, 0, sizeof host->outcomes);
    disk_load(host->path);
    disk_arm(plan);
    drive(host);
    disk_disarm();
    if (plan.fault == FAULT_POWER)
        disk_power_on(seed);
    tally->rounds++;
    tally->faults += disk_has_failed();
    expect_sound(host, tally);
    return disk_has_failed();
}

static void fail_each(struct disk_plan plan, uint64_t daily, uint64_t whole, uint64_t seeds)
{
    struct tally tally = { 0 };
    struct host host;
    bool failed = true;

    stage_begin();
    make_file(&host);
    for (plan.at = test_first(daily, whole); failed; plan.at += test_stride(daily, whole))
        for (uint64_t seed = 0; seed < seeds && failed; seed++)
            failed = run_round(&host, plan, test_seed() + plan.at * 9 + seed, &tally);
    EXPECT(tally.faults > (test_is_long() ? 5 : 0));
    printf("# %" PRIu64 " rounds, %" PRIu64 " faults, %" PRIu64 " taken back, %" PRIu64
           " unknown\n",
           tally.rounds, tally.faults, tally.taken_back, tally.unknowns);
}

/* ---- A disk ---- */

TEST(attach, a_power_cut_at_each_sync_leaves_row_and_entry_both_or_neither)
{
    fail_each((struct disk_plan){ .ops = DISK_SYNC, .fault = FAULT_POWER }, 2, 1, 4);
}

TEST(attach, a_power_cut_at_each_change_leaves_row_and_entry_both_or_neither)
{
    fail_each((struct disk_plan){ .ops = DISK_CHANGES, .fault = FAULT_POWER }, 8, 2, 1);
}

TEST(attach, each_call_that_fails_once_leaves_row_and_entry_both_or_neither)
{
    fail_each((struct disk_plan){ .ops = DISK_ALL, .fault = FAULT_EIO }, 29, 4, 1);
}

TEST(attach, each_change_that_was_done_but_said_to_have_failed_leaves_both_or_neither)
{
    fail_each((struct disk_plan){ .ops = DISK_CHANGES, .fault = FAULT_AFTER }, 11, 3, 1);
}

TEST(attach, a_disk_that_fills_up_leaves_row_and_entry_both_or_neither)
{
    fail_each((struct disk_plan){ .ops = DISK_CHANGES, .fault = FAULT_FULL, .for_ever = true }, 11,
              3, 1);
}

/* ---- Memory ---- */

static bool run_short_of_memory(struct host *host, uint64_t ours, uint64_t sqlites,
                                struct tally *tally)
{
    struct fault_heap fault;
    bool failed;

    memset(host->outcomes, 0, sizeof host->outcomes);
    disk_load(host->path);
    fault_init(&fault, ours, FAULT_ONCE);
    host->options =
        (pawl_options){ .resize = fault.heap.resize, .resize_context = fault.heap.context };
    sqlite_heap_arm(sqlites, false);
    drive(host);
    failed = fault.has_failed || sqlite_heap_has_failed();
    sqlite_heap_arm(0, false);
    EXPECT_EQ(fault.live, 0);
    EXPECT_EQ(sqlite_heap_live(), 0);
    host->options = (pawl_options){ 0 };
    expect_sound(host, tally);
    tally->rounds++;
    return failed;
}

TEST(attach, each_allocation_of_ours_that_fails_leaves_row_and_entry_both_or_neither)
{
    struct tally tally = { 0 };
    struct host host;

    stage_begin();
    make_file(&host);
    for (uint64_t n = test_first(11, 1); run_short_of_memory(&host, n, 0, &tally);)
        n += test_stride(11, 1);
    EXPECT(tally.rounds > (test_is_long() ? 10 : 1));
    printf("# %" PRIu64 " rounds\n", tally.rounds);
}

/* How often SQLite allocates until the host has joined: mostly to make and parse the schema. */
static uint64_t count_joining(struct host *host)
{
    uint64_t count;

    disk_load(host->path);
    sqlite_heap_arm(0, false);
    EXPECT(enter(host));
    count = sqlite_heap_count();
    leave(host);
    return count;
}

TEST(attach, each_allocation_of_sqlite_that_fails_leaves_row_and_entry_both_or_neither)
{
    struct tally tally = { 0 };
    uint64_t n, joining;
    struct host host;

    stage_begin();
    make_file(&host);
    joining = count_joining(&host);
    for (n = test_first(5003, 7); run_short_of_memory(&host, 0, n, &tally);)
        n += test_stride(n < joining ? 5003 : 127, 7);
    EXPECT(n > joining);
    EXPECT(tally.rounds > (test_is_long() ? 10 : 1));
    printf("# %" PRIu64 " rounds\n", tally.rounds);
}
