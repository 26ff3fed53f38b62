/* step_counts.c - how many instances of a definition are at which step. Live rows never lag, so
 * the tail of the log is not looked at. */
#include "tail.h"

static const char select_steps[] =
    "SELECT d.version, p.plan, count(*) FROM pawl_step p"
    " JOIN pawl_instance i ON i.number = p.inst JOIN pawl_definition d ON d.id = i.definition"
    " WHERE d.name = ?1 GROUP BY d.version, p.plan ORDER BY d.version, p.plan";

static void read_count(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(struct step_count *)out = (struct step_count){
        .version = column_u32(statement, 0),
        .plan = column_u32(statement, 1),
        .total = column_u64(statement, 2),
    };
}

static pawl_status count_steps(sqlite3 *db, struct scope *scope, str name, struct step_count **out,
                               uint32_t *count)
{
    sqlite3_stmt *statement = NULL;
    void *rows = NULL;
    pawl_status status;

    if (sqlite3_prepare_v2(db, select_steps, -1, &statement, NULL) != SQLITE_OK)
        return sqlite_fail(scope, db, "preparing to count steps");
    bind_text(statement, 1, name);
    status = read_rows(scope, statement, read_count, sizeof **out, UINT32_MAX, &rows, count);
    sqlite3_finalize(statement);
    if (status == PAWL_OK)
        *out = rows;
    return status;
}

pawl_status sqlite_step_counts(struct store *base, struct scope *scope, str name,
                               struct step_count **out, uint32_t *count)
{
    struct connection connection;
    pawl_status status = scan_open(sqlite_store_of(base), scope, &connection);

    if (status != PAWL_OK)
        return status;
    status = count_steps(connection.db, scope, name, out, count);
    scan_close(&connection);
    return status;
}
