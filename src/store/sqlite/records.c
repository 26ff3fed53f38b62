/* records.c - records: at positions, along an instance's chain, and all in order. */
#include "read_int.h"
#include "store/instance_log.h"

const char select_record[] = "SELECT " RECORD_COLUMNS " FROM pawl_log WHERE pos = ?1";
static const char select_records[] =
    "SELECT " RECORD_COLUMNS " FROM pawl_log WHERE pos >= ?1 ORDER BY pos LIMIT ?2";

void read_record(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct record *record = out;

    *record = (struct record){
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
    column_bytes(statement, 17, record->hash, SHA_SIZE);
    column_bytes(statement, 18, record->root, SHA_SIZE);
}

/* In one transaction, which would be half of what a record costs. */
pawl_status sqlite_records(struct store *base, struct scope *scope, const uint64_t *positions,
                           uint32_t count, struct record *out, uint32_t *read)
{
    struct sqlite_store *store = sqlite_store_of(base);
    size_t begun = scope->arena.used;
    pawl_status status = PAWL_OK;

    *read = 0;
    TRY(reader_begin(store, scope));
    for (; status == PAWL_OK && *read < count; (*read)++) {
        if (*read > 0 && scope->arena.used - begun >= RECORDS_BYTES)
            break;
        status = sqlite_find_inside(
            base, scope, &(struct find_query){ FIND_RECORD, { positions[*read] } }, &out[*read]);
    }
    reader_end(store);
    return status;
}

/* A scan reads ahead a page at a time: the lock is free while `fn` runs, and `fn` may read. */
#define PAGE_RECORDS 1000
#define PAGE_SIZE    ((size_t)1 << 20)

struct record_page {
    struct scope scope; /* emptied for each page */
    struct record *records;
    size_t count;
};

static pawl_status step_page(sqlite3_stmt *statement, struct record_page *page)
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

static pawl_status read_page(struct sqlite_store *store, uint64_t from, struct record_page *page)
{
    sqlite3_stmt *statement;
    pawl_status status;

    scope_clear(&page->scope);
    page->count = 0;
    page->records = ARENA_ARRAY(&page->scope.arena, struct record, PAGE_RECORDS);
    TRY_MEMORY(&page->scope, page->records);
    TRY(reader_enter(store, &page->scope));
    status = statement_get(&store->reader, &page->scope, select_records, &statement);
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
    struct record_page page;
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

/* ---- Along a chain: the columns that lie before the texts in a row ---- */

static const char select_chain[] = "SELECT pos, seq, prev, skip, what, step, actor, "
                                   "coalesce(fired, at) FROM pawl_log WHERE pos = ?1";

static void read_bare_record(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct record *record = out;

    (void)arena;
    record->pos = column_u64(statement, 0);
    record->seq = column_u64(statement, 1);
    record->prev = column_u64(statement, 2);
    record->skip = column_u64(statement, 3);
    record->what = (int32_t)column_i64(statement, 4);
    record->step = column_u32(statement, 5);
    record->actor = column_u64(statement, 6);
    record->fired_at_ms = column_i64(statement, 7);
}

/* In one transaction: most of the cost of a row would be the one around it. */
static pawl_status follow(struct sqlite_store *store, struct scope *scope,
                          struct chain_query *query, struct record *out, uint32_t room,
                          uint32_t *count)
{
    size_t begun = scope->arena.used;
    sqlite3_stmt *statement;
    pawl_status status = statement_get(
        &store->reader, scope, query->with_texts ? select_record : select_chain, &statement);

    while (status == PAWL_OK && query->pos && *count < room &&
           scope->arena.used - begun < RECORDS_BYTES) {
        struct record *record = &out[*count];

        bind_u64(statement, 1, query->pos);
        status = read_row(scope, statement, "record",
                          query->with_texts ? read_record : read_bare_record, record);
        if (status == PAWL_OK) {
            query->pos = chain_next(query, record);
            ++*count;
        }
    }
    return status;
}

pawl_status sqlite_records_of(struct store *base, struct scope *scope, struct chain_query *query,
                              struct record *out, uint32_t room, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status;

    if (query->pos > INT64_MAX)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such record");
    TRY(reader_begin(store, scope));
    status = follow(store, scope, query, out, room, count);
    reader_end(store);
    return status;
}
