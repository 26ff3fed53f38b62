/* read.c - one row by its number: records, instances, values, snapshots; the past of an instance.
 *
 * All reads take turns on the reader connection. Each copies what it found into the arena and
 * resets its statement before the lock is given back, so that no snapshot stays open to hold
 * up the WAL. */
#include "base/assert.h"
#include "read_int.h"
#include "store/past.h"

pawl_status reader_enter(struct sqlite_store *store, struct scope *scope)
{
    pawl_status status;

    pthread_mutex_lock(&store->read_lock); /* first: reopen() holds it while there is no reader */
    status = sqlite_check(store, scope);
    if (status != PAWL_OK) {
        pthread_mutex_unlock(&store->read_lock);
        return status;
    }
    store->is_guest = store->is_attached && !sqlite3_get_autocommit(store->reader.db);
    ASSERT(store->is_guest || sqlite3_get_autocommit(store->reader.db));
    return PAWL_OK;
}

/* A read that failed for want of memory or disk may have ended the host's transaction. */
static void note_lost(struct sqlite_store *store)
{
    if (!store->is_guest || !sqlite3_get_autocommit(store->reader.db))
        return;
    /* Only an attached store comes here, and that is used by one thread at a time. */
    if (store->is_joined || !store->in_turn)
        store->has_lost = true;
}

void reader_leave(struct sqlite_store *store)
{
    ASSERT(store->is_guest || sqlite3_get_autocommit(store->reader.db));
    note_lost(store);
    pthread_mutex_unlock(&store->read_lock);
}

/* COMMIT is prepared first: ending the snapshot must not lack memory. In the host's transaction
 * there is a snapshot already, and its end is the host's. */
pawl_status reader_begin(struct sqlite_store *store, struct scope *scope)
{
    sqlite3_stmt *commit;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = statement_get(&store->reader, scope, STATEMENT_COMMIT, "COMMIT", &commit);
    if (status == PAWL_OK && !store->is_guest)
        status = connection_run(&store->reader, scope, STATEMENT_BEGIN_READ, "BEGIN");
    if (status != PAWL_OK)
        reader_leave(store);
    return status;
}

void reader_end(struct sqlite_store *store)
{
    struct scope scope;

    scope_init(&scope, store->heap, 0);
    if (!store->is_guest && !sqlite3_get_autocommit(store->reader.db) &&
        connection_run(&store->reader, &scope, STATEMENT_COMMIT, "COMMIT") != PAWL_OK)
        atomic_store(&store->broken, true); /* a read that cannot even end */
    note_lost(store);
    scope_fini(&scope);
    pthread_mutex_unlock(&store->read_lock);
}

pawl_status read_row(struct scope *scope, sqlite3_stmt *statement, const char *what,
                     row_reader *read, void *out)
{
    bool row = false;
    pawl_status status = statement_step(statement, scope, &row);

    if (status != PAWL_OK)
        return status;
    if (!row)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such %s", what);
    read(statement, &scope->arena, out);
    sqlite3_reset(statement);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

/* How one row is found by its number. */
struct finder {
    enum statement id;
    const char *text, *what;
    row_reader *read;
};

/* Under the read lock. */
static pawl_status find_row(struct sqlite_store *store, struct scope *scope,
                            const struct finder *finder, uint64_t n, void *out)
{
    sqlite3_stmt *statement;
    pawl_status status = statement_get(&store->reader, scope, finder->id, finder->text, &statement);

    if (status == PAWL_OK && n > INT64_MAX)
        status = scope_fail(scope, PAWL_NOT_KNOWN, "there is no such %s", finder->what);
    if (status != PAWL_OK)
        return status;
    bind_u64(statement, 1, n);
    return read_row(scope, statement, finder->what, finder->read, out);
}

static pawl_status read_by_number(struct store *base, struct scope *scope,
                                  const struct finder *finder, uint64_t n, void *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = find_row(store, scope, finder, n, out);
    reader_leave(store);
    return status;
}

/* ---- Records ---- */

#define RECORD_COLUMNS                                                                             \
    "pos, inst, seq, prev, skip, what, flags, at, coalesce(fired, at), step, ord, attempt, actor," \
    " payload, reason, body, key, hash, root"

static const char select_record[] = "SELECT " RECORD_COLUMNS " FROM pawl_log WHERE pos = ?1";
static const char select_records[] =
    "SELECT " RECORD_COLUMNS " FROM pawl_log WHERE pos >= ?1 ORDER BY pos LIMIT ?2";

static void read_record(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct record record = {
        .pos = column_u64(statement, 0),
        .instance = column_u64(statement, 1),
        .seq = column_u64(statement, 2),
        .prev = column_u64(statement, 3),
        .skip = column_u64(statement, 4),
        .what = (int32_t)column_i64(statement, 5),
        .flags = column_u32(statement, 6),
        .at_ms = column_i64(statement, 7),
        .fired_at_ms = column_i64(statement, 8),
        .step = column_u32(statement, 9),
        .ordinal = column_u32(statement, 10),
        .attempt = column_u32(statement, 11),
        .actor = column_u64(statement, 12),
        .payload = column_u64(statement, 13),
        .reason = column_u64(statement, 14),
        .body = column_str(statement, 15, arena),
        .key = column_str(statement, 16, arena),
        .has_root = sqlite3_column_type(statement, 18) != SQLITE_NULL,
    };

    column_bytes(statement, 17, record.hash, SHA_SIZE);
    column_bytes(statement, 18, record.root, SHA_SIZE);
    if (!arena->failed)
        *(struct record *)out = record;
}

static const struct finder record_finder = { STATEMENT_RECORD, select_record, "record",
                                             read_record };

pawl_status sqlite_record(struct store *store, struct scope *scope, uint64_t pos,
                          struct record *out)
{
    return read_by_number(store, scope, &record_finder, pos, out);
}

/* In one transaction, which would be half of what a record costs. */
pawl_status sqlite_records(struct store *base, struct scope *scope, const uint64_t *positions,
                           uint32_t count, struct record *out, uint32_t *read)
{
    struct sqlite_store *store = sqlite_store_of(base);
    size_t begun = scope->arena.used;
    pawl_status status = reader_begin(store, scope);

    *read = 0;
    if (status != PAWL_OK)
        return status;
    for (; status == PAWL_OK && *read < count; (*read)++) {
        if (*read > 0 && scope->arena.used - begun >= RECORDS_BYTES)
            break;
        status = find_row(store, scope, &record_finder, positions[*read], &out[*read]);
    }
    reader_end(store);
    return status;
}

/* A scan reads ahead a page at a time: the lock is free while `fn` runs, and `fn` may read. */
#define PAGE_RECORDS 1000
#define PAGE_SIZE    ((size_t)1 << 20)

struct page {
    struct scope scope; /* emptied for each page */
    struct record *records;
    size_t count;
};

static pawl_status step_page(sqlite3_stmt *statement, struct page *page)
{
    bool row = true;
    pawl_status status = PAWL_OK;

    while (page->count < PAGE_RECORDS && page->scope.arena.used < PAGE_SIZE) {
        status = statement_step(statement, &page->scope, &row);
        if (status != PAWL_OK || !row)
            return status;
        read_record(statement, &page->scope.arena, &page->records[page->count]);
        if (page->scope.arena.failed)
            break;
        page->count++;
    }
    sqlite3_reset(statement);
    return page->scope.arena.failed ? scope_no_memory(&page->scope) : PAWL_OK;
}

static pawl_status read_page(struct sqlite_store *store, uint64_t from, struct page *page)
{
    sqlite3_stmt *statement;
    pawl_status status;

    scope_clear(&page->scope);
    page->count = 0;
    page->records = ARENA_ARRAY(&page->scope.arena, struct record, PAGE_RECORDS);
    if (!page->records)
        return scope_no_memory(&page->scope);
    status = reader_enter(store, &page->scope);
    if (status != PAWL_OK)
        return status;
    status =
        statement_get(&store->reader, &page->scope, STATEMENT_SCAN, select_records, &statement);
    if (status == PAWL_OK) {
        bind_u64(statement, 1, from);
        bind_u64(statement, 2, PAGE_RECORDS);
        status = step_page(statement, page);
    }
    reader_leave(store);
    return status;
}

pawl_status sqlite_scan(struct store *base, struct scope *scope, uint64_t from, record_fn fn,
                        void *context)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct page page;
    pawl_status status;

    scope_init(&page.scope, store->heap, LIMIT_SCOPE);
    do {
        status = read_page(store, from, &page);
        if (status != PAWL_OK) {
            scope_fail(scope, status, "%s", page.scope.error.message);
            break;
        }
        for (size_t i = 0; i < page.count && status == PAWL_OK; i++) {
            from = page.records[i].pos + 1;
            status = fn(context, &page.records[i]);
        }
    } while (status == PAWL_OK && page.count > 0);
    scope_fini(&page.scope);
    return status;
}

/* ---- Instances ---- */

static const char select_instance[] =
    "SELECT number, random, definition, instantiated_at, created_pos, creator, subject, input,"
    " metadata, parent, correlation, labels, test FROM pawl_instance WHERE number = ?1";

static void read_instance(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct instance_row row = {
        .number = column_u64(statement, 0),
        .definition = column_u32(statement, 2),
        .instantiated_at_ms = column_i64(statement, 3),
        .created_pos = column_u64(statement, 4),
        .creator = column_u64(statement, 5),
        .subject = column_u64(statement, 6),
        .input = column_u64(statement, 7),
        .metadata = column_u64(statement, 8),
        .parent = column_u64(statement, 9),
        .correlation = column_str(statement, 10, arena),
        .labels = column_str(statement, 11, arena),
        .test = column_u64(statement, 12) != 0,
    };

    column_bytes(statement, 1, row.random, ID_RANDOM_SIZE);
    if (!arena->failed)
        *(struct instance_row *)out = row;
}

static const struct finder instance_finder = { STATEMENT_INSTANCE, select_instance, "instance",
                                               read_instance };

pawl_status sqlite_instance(struct store *store, struct scope *scope, uint64_t number,
                            struct instance_row *out)
{
    return read_by_number(store, scope, &instance_finder, number, out);
}

/* ---- Values ---- */

#define VALUE_COLUMNS "id, commitment, salt, bytes, interned"

static const char select_value[] = "SELECT " VALUE_COLUMNS " FROM pawl_value WHERE id = ?1";
static const char select_interned[] =
    "SELECT " VALUE_COLUMNS " FROM pawl_value WHERE interned = 1 AND bytes = ?1";

struct value_column {
    struct value value;
    bool is_bare; /* its commitment is not stored: it follows from salt and bytes */
};

static void read_value(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct value_column found = {
        .value = { .id = column_u64(statement, 0),
                   .bytes = column_str(statement, 3, arena),
                   .interned = column_u64(statement, 4) == 1 },
        .is_bare = sqlite3_column_type(statement, 1) == SQLITE_NULL,
    };

    column_bytes(statement, 1, found.value.commitment, SHA_SIZE);
    column_bytes(statement, 2, found.value.salt, SALT_SIZE);
    if (!arena->failed)
        *(struct value_column *)out = found;
}

/* The value whole. With neither commitment nor bytes it keeps zeros, for verify to find. */
static void give_value(struct sqlite_store *store, struct value_column *found, struct value *out)
{
    struct value *value = &found->value;

    if (found->is_bare && value->bytes.data) {
        sha_begin(store->sha);
        sha_add(store->sha, value->salt, SALT_SIZE);
        sha_add(store->sha, value->bytes.data, value->bytes.size);
        sha_end(store->sha, value->commitment);
    }
    *out = *value;
}

static const struct finder value_finder = { STATEMENT_VALUE, select_value, "value", read_value };

/* Under the read lock, to the end: the hasher belongs to one at a time. */
pawl_status sqlite_value(struct store *base, struct scope *scope, uint64_t id, struct value *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct value_column found;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = find_row(store, scope, &value_finder, id, &found);
    if (status == PAWL_OK)
        give_value(store, &found, out);
    reader_leave(store);
    return status;
}

pawl_status sqlite_find_value(struct store *base, struct scope *scope, str bytes, struct value *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct value_column found;
    sqlite3_stmt *statement;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status =
        statement_get(&store->reader, scope, STATEMENT_FIND_VALUE, select_interned, &statement);
    if (status == PAWL_OK) {
        bind_blob(statement, 1, bytes);
        status = read_row(scope, statement, "value", read_value, &found);
    }
    if (status == PAWL_OK)
        give_value(store, &found, out);
    reader_leave(store);
    return status;
}

/* ---- Snapshots ---- */

static const char select_snapshot[] = "SELECT inst, seq, text FROM pawl_snapshot WHERE inst = ?1";

static void read_snapshot(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct snapshot_row row = {
        .instance = column_u64(statement, 0),
        .seq = column_u64(statement, 1),
        .text = column_str(statement, 2, arena),
    };

    if (!arena->failed)
        *(struct snapshot_row *)out = row;
}

static const struct finder snapshot_finder = { STATEMENT_SNAPSHOT, select_snapshot, "snapshot",
                                               read_snapshot };

pawl_status sqlite_snapshot(struct store *store, struct scope *scope, uint64_t instance,
                            struct snapshot_row *out)
{
    return read_by_number(store, scope, &snapshot_finder, instance, out);
}

/* ---- The past of instances: all of it in one transaction ---- */

static pawl_status past_instance(struct store *store, struct scope *scope, uint64_t number,
                                 struct instance_row *out)
{
    return find_row(sqlite_store_of(store), scope, &instance_finder, number, out);
}

static pawl_status past_record(struct store *store, struct scope *scope, uint64_t pos,
                               struct record *out)
{
    return find_row(sqlite_store_of(store), scope, &record_finder, pos, out);
}

/* Its text: nobody asks for its commitment here. */
static pawl_status past_value(struct store *store, struct scope *scope, uint64_t id,
                              struct value *out)
{
    struct value_column found;
    pawl_status status = find_row(sqlite_store_of(store), scope, &value_finder, id, &found);

    if (status == PAWL_OK)
        *out = found.value;
    return status;
}

static pawl_status past_snapshot(struct store *store, struct scope *scope, uint64_t instance,
                                 struct snapshot_row *out)
{
    return find_row(sqlite_store_of(store), scope, &snapshot_finder, instance, out);
}

pawl_status sqlite_pasts(struct store *base, struct scope *scope, struct past_query *queries,
                         uint32_t count)
{
    static const struct past_reads reads = { sqlite_head_inside, past_instance, past_record,
                                             past_value, past_snapshot };
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status = reader_begin(store, scope);

    if (status != PAWL_OK)
        return status;
    status = past_gather(&reads, base, scope, queries, count);
    reader_end(store);
    return status;
}
