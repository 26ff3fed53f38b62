/* read_tip.c - where the store stands.
 *
 * `changes` has to grow with every commit. SQLite reports to a connection only whether
 * *another* connection has committed since it looked last (PRAGMA data_version), so we count: one
 * for each commit of ours, one for each time a connection of ours finds the file changed. A
 * change may be counted twice, by writer and reader; it is never missed. */
#include "read_int.h"

static const char data_version[] = "PRAGMA data_version";

static const char select_tip[] =
    "SELECT coalesce((SELECT max(pos) FROM pawl_log), 0),"
    " coalesce((SELECT value FROM pawl_meta WHERE key = 'flushed'), 0),"
    " coalesce((SELECT max(number) FROM pawl_instance), 0),"
    " coalesce((SELECT max(id) FROM pawl_value), 0),"
    " coalesce((SELECT max(id) FROM pawl_definition), 0),"
    " coalesce((SELECT at FROM pawl_log ORDER BY pos DESC LIMIT 1), 0),"
    " (SELECT due FROM pawl_kept WHERE what = -11 AND id = '" CLOCK_TEST "'),"
    " (SELECT value FROM pawl_meta WHERE key = 'store_id'),"
    " (SELECT value FROM pawl_meta WHERE key = 'test_now'),"
    " (SELECT due FROM pawl_kept WHERE what = -11 AND id = '" CLOCK_WALL "'),"
    " (SELECT pos FROM pawl_kept WHERE what = -11 AND id = '" CLOCK_WALL "'),"
    " (SELECT root FROM pawl_log WHERE root IS NOT NULL ORDER BY pos DESC LIMIT 1),"
    " (SELECT value FROM pawl_meta WHERE key = 'whole_id'),"
    " coalesce((SELECT value FROM pawl_meta WHERE key = 'shard'), 0),"
    " coalesce((SELECT value FROM pawl_meta WHERE key = 'shards'), 1)";

static void load_tip(sqlite3_stmt *statement, struct arena *arena, void *found)
{
    struct store_tip *out = found;

    (void)arena;
    *out = (struct store_tip){
        .pos = column_u64(statement, 0),
        .flushed = column_u64(statement, 1),
        .last_instance = column_u64(statement, 2),
        .last_value = column_u64(statement, 3),
        .last_definition = column_u32(statement, 4),
        .at_ms = column_i64(statement, 5),
        .test_now_ms = column_i64(statement, 6),
        .clock_offset_ms = column_i64(statement, 9),
        .clock_pos = column_u64(statement, 10),
        .offset = column_u32(statement, 13),
        .stride = column_u32(statement, 14),
    };
    out->test_is_old = !out->test_now_ms && column_i64(statement, 8) != 0;
    if (out->test_is_old)
        out->test_now_ms = column_i64(statement, 8);
    column_bytes(statement, 7, out->store_id, STORE_ID_SIZE);
    column_bytes(statement, 11, out->root, SHA_SIZE);
    column_bytes(statement, out->stride > 1 ? 12 : 7, out->whole_id, STORE_ID_SIZE);
    if (out->flushed > out->pos) /* a log whose tail was cut off: verify tells, we just go on */
        out->flushed = out->pos;
}

/* All but `changes`. */
static pawl_status sqlite_read_tip(struct connection *connection, struct scope *scope,
                                   struct store_tip *out)
{
    sqlite3_stmt *statement;

    TRY(statement_get(connection, scope, select_tip, &statement));
    return read_row(scope, statement, "tip", load_tip, out);
}

/* The log of an owner ends where it left it. */
static pawl_status read_tip_again(struct sqlite_store *store, struct scope *scope)
{
    uint64_t pos = store->tip.pos;
    pawl_status status = sqlite_read_tip(&store->writer, scope, &store->tip);

    if (status != PAWL_OK || !store->own || !store->tip_known || store->tip.pos == pos)
        return status;
    watch_second_owner(store);
    return sqlite_check(store, scope);
}

/* A host may have rolled back what an attached store has written: it looks each time. */
pawl_status tip_refresh(struct sqlite_store *store, struct scope *scope)
{
    uint64_t version;

    TRY(read_one_number(&store->writer, scope, data_version, &version));
    if (!store->tip_known || store->is_attached || version != store->writer_version) {
        TRY(read_tip_again(store, scope));
        store->tip_known = true;
        store->writer_version = version;
        atomic_fetch_add(&store->changes, 1);
    }
    store->tip.changes = atomic_load(&store->changes);
    return PAWL_OK;
}

/* In the reader's snapshot. */
static pawl_status look(struct sqlite_store *store, struct scope *scope, struct store_tip *out)
{
    uint64_t version;

    TRY(read_one_number(&store->reader, scope, data_version, &version));
    TRY(sqlite_read_tip(&store->reader, scope, out));
    if (version != store->reader_version || store->is_attached)
        atomic_fetch_add(&store->changes, 1);
    store->reader_version = version;
    out->changes = atomic_load(&store->changes);
    return PAWL_OK;
}

pawl_status sqlite_tip(struct store *base, struct scope *scope, struct store_tip *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status;

    TRY(reader_begin(store, scope));
    status = look(store, scope, out);
    reader_end(store);
    return status;
}
