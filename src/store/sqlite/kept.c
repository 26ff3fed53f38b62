/* kept.c - tokens and alarms: named rows that last from one control record to another. */
#include "read_int.h"

static const char select_one[] =
    "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE what = ?1 AND id = ?2";
static const char select_all[] =
    "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE what = ?2 ORDER BY due, id LIMIT ?1";
static const char select_alarms[] =
    "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE what = -5 AND wall IS NULL"
    " ORDER BY due, id LIMIT ?1";
static const char select_alarms_by_wall[] =
    "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE what = -5 AND wall = 1"
    " ORDER BY due, id LIMIT ?1";
static const char put_one[] =
    "INSERT OR REPLACE INTO pawl_kept (what, id, due, pos, firing, wall)"
    " VALUES (?1, ?2, ?3, ?4, nullif(?5, 0), ?6)";
static const char delete_one[] = "DELETE FROM pawl_kept WHERE what = ?1 AND id = ?2";

static void read_kept(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    *(struct kept_row *)out = (struct kept_row){
        .what = (int32_t)column_i64(statement, 0),
        .id = column_str(statement, 1, arena),
        .due_at_ms = column_i64(statement, 2),
        .pos = column_u64(statement, 3),
        .firing_ms = column_i64(statement, 4),
        .wall = column_u64(statement, 5) != 0,
    };
}

pawl_status sqlite_kept(struct store *base, struct scope *scope, int32_t what, str id,
                        struct kept_row *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = statement_get(&store->reader, scope, STATEMENT_KEPT, select_one, &statement);
    if (status == PAWL_OK) {
        bind_i64(statement, 1, what);
        bind_text(statement, 2, id);
        status = read_row(scope, statement, "token or alarm", read_kept, out);
    }
    reader_leave(store);
    return status;
}

/* ?1 is the limit; ?2 is `what`, unless that is NULL. */
static pawl_status read_list(struct store *base, struct scope *scope, enum statement number,
                             const char *text, const int32_t *what, uint32_t limit,
                             struct kept_row **out, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    void *rows = NULL;
    sqlite3_stmt *statement;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = statement_get(&store->reader, scope, number, text, &statement);
    if (status == PAWL_OK) {
        bind_u64(statement, 1, limit);
        if (what)
            bind_i64(statement, 2, *what);
        status = read_rows(scope, statement, read_kept, sizeof **out, limit, &rows, count);
    }
    reader_leave(store);
    if (status == PAWL_OK)
        *out = rows;
    return status;
}

pawl_status sqlite_kept_list(struct store *base, struct scope *scope, int32_t what, uint32_t limit,
                             struct kept_row **out, uint32_t *count)
{
    return read_list(base, scope, STATEMENT_KEPT_LIST, select_all, &what, limit, out, count);
}

/* In these statements `what` is a literal: only so their partial indexes are used. */
pawl_status sqlite_alarms(struct store *base, struct scope *scope, bool wall, uint32_t limit,
                          struct kept_row **out, uint32_t *count)
{
    return wall ? read_list(base, scope, STATEMENT_ALARMS_BY_WALL, select_alarms_by_wall, NULL,
                            limit, out, count)
                : read_list(base, scope, STATEMENT_ALARMS, select_alarms, NULL, limit, out, count);
}

static pawl_status write_one(struct connection *writer, struct scope *scope,
                             const struct kept_change *change)
{
    sqlite3_stmt *statement;
    pawl_status status =
        statement_get(writer, scope, change->is_put ? STATEMENT_PUT_KEPT : STATEMENT_DELETE_KEPT,
                      change->is_put ? put_one : delete_one, &statement);

    if (status != PAWL_OK)
        return status;
    bind_i64(statement, 1, change->row.what);
    bind_text(statement, 2, change->row.id);
    if (change->is_put) {
        bind_i64(statement, 3, change->row.due_at_ms);
        bind_u64(statement, 4, change->row.pos);
        bind_i64(statement, 5, change->row.firing_ms);
        bind_optional(statement, 6, change->row.wall);
    }
    return statement_run(statement, scope);
}

/* Deletes the row that held the test clock before there were clock records. */
static pawl_status drop_old_clock(struct connection *writer, struct scope *scope)
{
    if (sqlite3_exec(writer->db, "DELETE FROM pawl_meta WHERE key = 'test_now'", NULL, NULL, NULL))
        return sqlite_fail(scope, writer->db, "dropping the old test clock");
    return PAWL_OK;
}

pawl_status write_kept(struct connection *writer, struct scope *scope, const struct commit *commit)
{
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < commit->kept_count && status == PAWL_OK; i++) {
        status = write_one(writer, scope, &commit->kept[i]);
        if (status == PAWL_OK && commit->kept[i].row.what == CONTROL_CLOCK &&
            str_is(commit->kept[i].row.id, CLOCK_TEST))
            status = drop_old_clock(writer, scope);
    }
    return status;
}
