/* rebuild.c - the rows that follow from the log, thrown away and written anew, in one turn. */
#include "base/assert.h"
#include "sqlite_int.h"

static const char throw_away[] =
    "DELETE FROM pawl_head; DELETE FROM pawl_step; DELETE FROM pawl_timer; DELETE FROM pawl_wait;"
    "DELETE FROM pawl_interest;"
    "DELETE FROM pawl_child; DELETE FROM pawl_pause; DELETE FROM pawl_kept; DELETE FROM pawl_key";
static const char drop_snapshot[] = "DELETE FROM pawl_snapshot WHERE inst = ?1";

static pawl_status drop_snapshots(sqlite3 *db, struct scope *scope, const struct commit *commit)
{
    sqlite3_stmt *statement = NULL;
    pawl_status status = PAWL_OK;

    if (commit->snapshot_count == 0)
        return PAWL_OK;
    if (sqlite3_prepare_v2(db, drop_snapshot, -1, &statement, NULL) != SQLITE_OK)
        return sqlite_fail(scope, db, "dropping a snapshot");
    for (size_t i = 0; i < commit->snapshot_count && status == PAWL_OK; i++) {
        ASSERT(!commit->snapshots[i].text.data);
        bind_u64(statement, 1, commit->snapshots[i].instance);
        status = statement_run(statement, scope);
    }
    sqlite3_finalize(statement);
    return status;
}

pawl_status sqlite_rebuild(struct store *base, struct scope *scope, const struct commit *commit)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct commit rows = *commit;
    pawl_status status = PAWL_OK;

    ASSERT(store->in_turn);
    if (sqlite3_exec(store->writer.db, throw_away, NULL, NULL, NULL) != SQLITE_OK)
        status = sqlite_fail(scope, store->writer.db, "throwing rows away");
    if (status == PAWL_OK)
        status = drop_snapshots(store->writer.db, scope, commit);
    if (status != PAWL_OK) {
        sqlite_rollback(base);
        return status;
    }
    rows.snapshot_count = 0;
    return sqlite_commit(base, scope, &rows);
}
