/* whole_log.c - all that is shown of an instance, in few statements: its row with its texts and its
 * head, its live rows, and its records with their texts, the last one first. */
#include "base/grow.h"
#include "read_int.h"

#define TEXT_OF(value) "(SELECT bytes FROM pawl_value WHERE id = " value ")"

/* ?2: is the tail of the log to be looked at? */
static const char select_whole[] =
    "SELECT " INSTANCE_COLUMNS
    ", " TEXT_OF("input") ", " TEXT_OF("creator") ", " TEXT_OF("subject") ", " TEXT_OF(
        "metadata") ", inst, seq, pos, state, EXISTS (SELECT 1 FROM pawl_pause WHERE inst = ?1),"
                    " ?2 AND EXISTS (SELECT 1 FROM pawl_log WHERE inst = ?1"
                    " AND pos > (SELECT value FROM pawl_meta WHERE key = 'flushed')),"
                    " (SELECT kind FROM pawl_definition WHERE id = definition)"
                    " FROM pawl_instance LEFT JOIN pawl_head ON inst = number WHERE number = ?1";

/* The chain as positions, so that a row of it is small. It ends with entry 1. */
#define BACK "CASE WHEN what >= 0 AND seq <= 1 THEN NULL ELSE prev END"
static const char select_chain[] =
    "WITH RECURSIVE chain(at_pos, back) AS (SELECT pos, " BACK " FROM pawl_log WHERE pos = ?1"
    " UNION ALL SELECT pos, " BACK " FROM chain JOIN pawl_log ON pos = back LIMIT ?2)"
    " SELECT " RECORD_COLUMNS ", " TEXT_OF("payload") ", " TEXT_OF("reason") ", " TEXT_OF(
        "actor") " FROM chain CROSS JOIN pawl_log ON pos = at_pos";

struct whole_row {
    struct instance_log *log;
    bool has_head, has_tail;
};

static void read_whole(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct whole_row *row = out;
    struct instance_log *log = row->log;
    int at = INSTANCE_COLUMN_COUNT;

    read_instance(statement, arena, &log->instance);
    log->input = column_str(statement, at++, arena);
    log->creator = column_str(statement, at++, arena);
    log->subject = column_str(statement, at++, arena);
    log->metadata = column_str(statement, at++, arena);
    row->has_head = sqlite3_column_type(statement, at) != SQLITE_NULL;
    row->has_tail = column_u32(statement, at + 5) != 0;
    log->kind = (int)column_i64(statement, at + 6);
    log->head = (struct head_row){
        .instance = column_u64(statement, at),
        .seq = column_u64(statement, at + 1),
        .pos = column_u64(statement, at + 2),
        .state = column_u32(statement, at + 3),
        .paused = column_u32(statement, at + 4) != 0,
    };
}

static pawl_status read_rows_of(struct sqlite_store *store, struct scope *scope,
                                const struct instance_log_query *query, struct instance_log *log)
{
    struct whole_row row = { .log = log };
    sqlite3_stmt *statement;
    pawl_status status;

    TRY(statement_get(&store->reader, scope, select_whole, &statement));
    bind_u64(statement, 1, query->instance);
    bind_u64(statement, 2, !query->is_known && !query->trust_rows);
    TRY(read_row(scope, statement, "instance", read_whole, &row));
    if (query->is_known)
        log->head = query->head;
    else if (!row.has_head || row.has_tail)
        TRY(head_find(&store->reader, scope, query->instance, query->trust_rows, &log->head));
    if (log->head.seq <= INSTANCE_LOG_RECORDS)
        return PAWL_OK;
    status = sqlite_find_inside(&store->base, scope,
                                &(struct find_query){ FIND_SNAPSHOT, { query->instance } },
                                &log->snapshot);
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static pawl_status read_link(struct scope *scope, sqlite3_stmt *statement,
                             struct instance_log_record *out)
{
    int at = RECORD_COLUMN_COUNT;

    *out = (struct instance_log_record){ 0 };
    read_record(statement, &scope->arena, &out->record);
    out->payload = column_str(statement, at, &scope->arena);
    out->reason = column_str(statement, at + 1, &scope->arena);
    out->actor = column_str(statement, at + 2, &scope->arena);
    TRY_MEMORY(scope, !scope->arena.failed);
    return record_is_sound(&out->record, out->record.pos) ? PAWL_OK
                                                          : store_fail_damaged(scope, "a record");
}

static bool is_first(const struct record *record)
{
    return record->what >= 0 && record->seq <= 1;
}

/* As many as fit; not a step further than the first entry. */
static pawl_status read_links(struct scope *scope, sqlite3_stmt *statement, uint32_t records_max,
                              struct instance_log *log)
{
    size_t begun = scope->arena.used;
    uint32_t capacity = 0;
    bool row = true;

    while (log->record_count < records_max && scope->arena.used - begun < INSTANCE_LOG_BYTES) {
        struct instance_log_record *next;

        TRY(statement_step(statement, scope, &row));
        if (!row)
            return PAWL_OK;
        TRY_MEMORY(scope, GROW(&scope->arena, log->records, log->record_count, capacity));
        next = &log->records[log->record_count++];
        TRY(read_link(scope, statement, next));
        if (is_first(&next->record))
            return PAWL_OK;
    }
    return PAWL_OK;
}

pawl_status sqlite_read_whole(struct sqlite_store *store, struct scope *scope,
                              struct instance_log_query *query)
{
    struct instance_log log = { .is_whole = true };
    uint32_t records_max;
    sqlite3_stmt *statement;
    pawl_status status;

    TRY(read_rows_of(store, scope, query, &log));
    TRY(live_read(store, scope, query->instance, &log.live));
    TRY(statement_get(&store->reader, scope, select_chain, &statement));
    records_max = instance_log_max(query, &log);
    bind_u64(statement, 1, log.head.pos);
    bind_u64(statement, 2, records_max);
    status = read_links(scope, statement, records_max, &log);
    sqlite3_reset(statement);
    *query->out = log;
    query->is_read = status == PAWL_OK;
    return status;
}
