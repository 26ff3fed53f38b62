/* sqlite_fault.c - the SQLite store when something fails: each write, sync and allocation in
 * turn. What comes out must be true: nothing changed, all changed, or not known. */
#include "fault/sqlite_heap.h"
#include "lib/fault.h"
#include "store/contract.h"
#include "store/sqlite/sqlite_int.h"

#define FAULT_TEST(test_name)                                                                      \
    static void body_##test_name(struct stand *s);                                                 \
    TEST(sqlite_fault, test_name)                                                                  \
    {                                                                                              \
        stand_run(t, "sqlite", body_##test_name);                                                  \
    }                                                                                              \
    static void body_##test_name(struct stand *s)

static sqlite3 *writer_of(struct stand *s)
{
    return sqlite_store_of(s->store)->writer.db;
}

/* A commit of every kind of row. */
static pawl_status commit_some(struct stand *s)
{
    static const char bytes[9000];
    struct change c = change_begin(s);
    struct instance_row *row;

    add_definition(&c, STR("order"), c.tip.last_definition + 1, STR("name: order\n"));
    row = add_instance(&c, c.tip.last_definition);
    row->input = add_value(&c, (str){ bytes, sizeof bytes }, false)->id;
    add_live(&c, (struct live_change){ .kind = LIVE_TIMER_PUT,
                                       .instance = row->number,
                                       .name = STR("lapse"),
                                       .timer.due_at_ms = T0 });
    add_snapshot(&c, row->number, 0, STR("{}"));
    return change_commit(&c);
}

/* How many of those are there; that each is whole is checked. */
static uint64_t count_whole(struct stand *s)
{
    struct store_tip tip;
    struct value value;
    struct record record;
    struct instance_row row;
    struct head_row head;
    struct live live;

    EXPECT_OK(store_tip(s->store, s->scope, &tip));
    EXPECT_EQ(tip.pos, tip.last_instance);
    EXPECT_EQ(tip.pos, tip.last_value);
    EXPECT_EQ(tip.pos, tip.last_definition);
    EXPECT_EQ(tip.pos, tip.flushed);
    if (tip.pos > 0) {
        EXPECT_OK(store_value(s->store, s->scope, tip.pos, &value));
        EXPECT_EQ(value.bytes.size, 9000);
        EXPECT_OK(store_record(s->store, s->scope, tip.pos, &record));
        EXPECT(record.has_root);
        EXPECT_OK(store_instance(s->store, s->scope, tip.pos, &row));
        EXPECT_OK(store_head(s->store, s->scope, tip.pos, true, &head));
        EXPECT_OK(store_live(s->store, s->scope, tip.pos, &live));
        EXPECT_EQ(live.timer_count, 1);
    }
    return tip.pos;
}

/* What was answered is what is there, after reopening as well. */
static void expect_truth(struct stand *s, pawl_status status, uint64_t before)
{
    uint64_t after = count_whole(s);

    EXPECT(status == PAWL_OK || status == PAWL_STORAGE_FAILURE || status == PAWL_NO_MEMORY ||
           status == PAWL_OUTCOME_UNKNOWN);
    if (status == PAWL_OK)
        EXPECT_EQ(after, before + 1);
    else if (status == PAWL_OUTCOME_UNKNOWN)
        EXPECT(after == before || after == before + 1);
    else
        EXPECT_EQ(after, before);
}

FAULT_TEST(a_row_that_can_not_be_written_undoes_the_commit_and_the_store_goes_on)
{
    struct change c;

    EXPECT_OK(commit_some(s));
    c = change_begin(s);
    add_value(&c, STR("x"), false);
    add_value(&c, STR("y"), false)->id = 1; /* taken */
    EXPECT(change_commit(&c) == PAWL_STORAGE_FAILURE);
    EXPECT_EQ(count_whole(s), 1);
    EXPECT_OK(commit_some(s));
    EXPECT_EQ(count_whole(s), 2);
}

FAULT_TEST(a_full_disk_is_said_so_and_changes_nothing)
{
    char text[64];

    EXPECT_OK(commit_some(s));
    EXPECT(sqlite3_exec(writer_of(s), "PRAGMA max_page_count = 1", NULL, NULL, NULL) == SQLITE_OK);
    EXPECT(commit_some(s) == PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "the disk is full");
    EXPECT_EQ(count_whole(s), 1);
    (void)snprintf(text, sizeof text, "PRAGMA max_page_count = %d", 1 << 30);
    EXPECT(sqlite3_exec(writer_of(s), text, NULL, NULL, NULL) == SQLITE_OK);
    EXPECT_OK(commit_some(s));
    EXPECT_EQ(count_whole(s), 2);
}

static int refuse(void *context)
{
    (void)context;
    return 1;
}

FAULT_TEST(a_failed_commit_is_not_known_and_the_store_must_be_reopened)
{
    struct store_tip tip;
    struct record record;

    EXPECT_OK(commit_some(s));
    sqlite3_commit_hook(writer_of(s), refuse, NULL);
    EXPECT(commit_some(s) == PAWL_OUTCOME_UNKNOWN);
    EXPECT_HAS(s->scope->error.message, "reopen");
    EXPECT(store_begin(s->store, s->scope, &tip) == PAWL_STORAGE_FAILURE);
    EXPECT_HAS(s->scope->error.message, "reopen");
    EXPECT(store_tip(s->store, s->scope, &tip) == PAWL_STORAGE_FAILURE);
    EXPECT(store_record(s->store, s->scope, 1, &record) == PAWL_STORAGE_FAILURE);
    stand_reopen(s);
    EXPECT_EQ(count_whole(s), 1);
    EXPECT_OK(commit_some(s));
}

/* ---- A disk that fails ---- */

static struct {
    bool armed, for_ever, has_failed;
    uint64_t count, fail_at;
    sqlite3_vfs *real;
    struct {
        const sqlite3_io_methods *original;
        sqlite3_io_methods patched;
    } methods[4]; /* files with and without locks have tables of their own */
} disk;

static bool disk_fails(void)
{
    bool fails = disk.armed &&
                 (++disk.count == disk.fail_at || (disk.for_ever && disk.count > disk.fail_at));

    disk.has_failed = disk.has_failed || fails;
    return fails;
}

static int faulty_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    return disk_fails() ? SQLITE_IOERR_WRITE
                        : disk.methods[0].original->xWrite(file, data, size, at);
}

static int faulty_sync(sqlite3_file *file, int flags)
{
    return disk_fails() ? SQLITE_IOERR_FSYNC : disk.methods[0].original->xSync(file, flags);
}

/* The same methods, but for two; which do the same in every table. */
static const sqlite3_io_methods *patch(const sqlite3_io_methods *methods)
{
    size_t i = 0;

    while (disk.methods[i].original && disk.methods[i].original != methods)
        EXPECT(++i < sizeof disk.methods / sizeof *disk.methods);
    disk.methods[i].original = methods;
    disk.methods[i].patched = *methods;
    disk.methods[i].patched.xWrite = faulty_write;
    disk.methods[i].patched.xSync = faulty_sync;
    return &disk.methods[i].patched;
}

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int code = disk.real->xOpen(vfs, name, file, flags, out);

    if (code == SQLITE_OK && file->pMethods)
        file->pMethods = patch(file->pMethods);
    return code;
}

static void use_faulty_disk(struct stand *s)
{
    static sqlite3_vfs vfs;

    store_close(s->store);
    disk.real = sqlite3_vfs_find(NULL);
    vfs = *disk.real;
    vfs.zName = "faulty";
    vfs.xOpen = faulty_open;
    EXPECT(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK);
    s->store = stand_another(s);
}

static void arm_disk(uint64_t fail_at, bool for_ever)
{
    disk.armed = true;
    disk.for_ever = for_ever;
    disk.has_failed = false;
    disk.count = 0;
    disk.fail_at = fail_at;
}

/* `cache_pages` small: the commit spills into the WAL before COMMIT is asked for. */
static void fail_each_write(struct stand *s, bool for_ever, int cache_pages)
{
    uint32_t unknown = 0;
    char text[64];

    use_faulty_disk(s);
    (void)snprintf(text, sizeof text, "PRAGMA cache_size = %d", cache_pages);
    for (uint64_t n = 1; n == 1 || disk.has_failed; n++) {
        uint64_t before = count_whole(s);
        pawl_status status;

        EXPECT(sqlite3_exec(writer_of(s), text, NULL, NULL, NULL) == SQLITE_OK);
        arm_disk(n, for_ever);
        status = commit_some(s);
        unknown += status == PAWL_OUTCOME_UNKNOWN;
        EXPECT(disk.has_failed || status == PAWL_OK);
        disk.armed = for_ever; /* a dead disk stays dead while we close */
        store_close(s->store);
        disk.armed = false;
        s->store = stand_another(s);
        expect_truth(s, status, before);
        scope_clear(s->scope);
    }
    EXPECT(unknown > 0);
}

FAULT_TEST(each_write_that_fails_once_leaves_the_truth)
{
    fail_each_write(s, false, 2000);
}

FAULT_TEST(each_write_from_which_on_the_disk_is_dead_leaves_the_truth)
{
    fail_each_write(s, true, 2000);
}

FAULT_TEST(each_write_that_fails_in_a_commit_that_spills_leaves_the_truth)
{
    fail_each_write(s, false, 4);
}

/* ---- A heap that fails ---- */

static pawl_status read_all(struct stand *s)
{
    struct list_query query = { .status = STATUS_SUSPENDED, .limit = 10 };
    struct definition_row definition;
    struct head_row head;
    struct live live;
    struct store_tip tip;
    uint64_t *numbers;
    uint32_t count;
    pawl_status status = store_tip(s->store, s->scope, &tip);

    if (status == PAWL_OK)
        status = store_head(s->store, s->scope, 1, false, &head);
    if (status == PAWL_OK)
        status = store_live(s->store, s->scope, 1, &live);
    if (status == PAWL_OK)
        status = store_find_definition(s->store, s->scope, STR("order"), 0, NULL, &definition);
    if (status == PAWL_OK)
        status = store_list(s->store, s->scope, &query, &numbers, &count);
    return status;
}

/* The n-th allocation fails in a turn, a commit and some reads. */
static void fail_allocation(struct stand *s, uint64_t n, bool *has_failed)
{
    uint64_t before = count_whole(s);
    struct store_tip tip;
    pawl_status status;

    sqlite_heap_arm(n, false);
    status = store_begin(s->store, s->scope, &tip);
    if (status == PAWL_OK) {
        store_rollback(s->store);
        status = commit_some(s);
    }
    if (status == PAWL_OK)
        EXPECT(read_all(s) == PAWL_OK || sqlite_heap_has_failed());
    *has_failed = sqlite_heap_has_failed();
    sqlite_heap_arm(0, false);
    EXPECT(*has_failed || status == PAWL_OK);
    if (status == PAWL_OUTCOME_UNKNOWN)
        stand_reopen(s);
    expect_truth(s, status, before);
    scope_clear(s->scope);
}

static void body_warm(struct stand *s)
{
    bool has_failed = true;

    EXPECT_OK(commit_some(s));
    EXPECT_OK(read_all(s));
    for (uint64_t n = test_first(11, 1); has_failed; n += test_stride(11, 1))
        fail_allocation(s, n, &has_failed);
}

TEST(sqlite_fault, each_allocation_of_sqlite_that_fails_leaves_the_truth)
{
    sqlite_heap_install(); /* before SQLite is used for the first time in this process */
    stand_run(t, "sqlite", body_warm);
}

/* Just opened, so that every statement is yet to be prepared: thousands of allocations, of
 * which every 17th is tried, from day to day every 199th. */
static void body_cold(struct stand *s)
{
    bool has_failed = true;

    EXPECT_OK(commit_some(s));
    for (uint64_t n = test_first(199, 17); has_failed; n += test_stride(199, 17)) {
        stand_reopen(s);
        fail_allocation(s, n, &has_failed);
    }
}

TEST(sqlite_fault, an_allocation_of_sqlite_that_fails_while_preparing_leaves_the_truth)
{
    sqlite_heap_install(); /* before SQLite is used for the first time in this process */
    stand_run(t, "sqlite", body_cold);
}

FAULT_TEST(each_allocation_of_ours_that_fails_while_opening_leaves_nothing)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct store *store;
        pawl_status status = stand_open(s, (struct store_options){ .heap = &fault.heap }, &store);

        EXPECT(status == (fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK));
        if (status == PAWL_OK)
            store_close(store);
    }
}
