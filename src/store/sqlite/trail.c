/* trail.c - an instance's records, from one of them back, without their texts.
 *
 * Who looks for a few of many entries looks at these columns, which lie before the texts in a row,
 * and reads the texts of those that it wants. */
#include "read_int.h"
#include "store/past.h"

static const char select_trail[] =
    "SELECT pos, seq, prev, skip, what, actor, coalesce(fired, at) FROM pawl_log WHERE pos = ?1";

static void read_trail(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(struct trail_row *)out = (struct trail_row){
        .pos = column_u64(statement, 0),
        .seq = column_u64(statement, 1),
        .prev = column_u64(statement, 2),
        .skip = column_u64(statement, 3),
        .what = (int32_t)column_i64(statement, 4),
        .actor = column_u64(statement, 5),
        .fired_at_ms = column_i64(statement, 6),
    };
}

/* In one transaction: most of the cost of a row would be the one around it. */
static pawl_status follow(struct sqlite_store *store, struct scope *scope,
                          const struct trail_query *query, struct trail_row *out, uint32_t *count,
                          uint64_t *rest)
{
    uint64_t pos = query->pos;
    sqlite3_stmt *statement;
    pawl_status status =
        statement_get(&store->reader, scope, STATEMENT_TRAIL, select_trail, &statement);

    for (*count = 0; status == PAWL_OK && pos && *count < TRAIL_ROWS;) {
        bind_u64(statement, 1, pos);
        status = read_row(scope, statement, "record", read_trail, &out[*count]);
        if (status == PAWL_OK)
            pos = trail_next(query, &out[(*count)++]);
    }
    *rest = pos;
    return status;
}

pawl_status sqlite_trail(struct store *base, struct scope *scope, const struct trail_query *query,
                         struct trail_row out[TRAIL_ROWS], uint32_t *count, uint64_t *rest)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status;

    if (query->pos > INT64_MAX)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such record");
    status = reader_begin(store, scope);
    if (status != PAWL_OK)
        return status;
    status = follow(store, scope, query, out, count, rest);
    reader_end(store);
    return status;
}
