/* write_commit.c - a turn to write: begin, then commit or rollback.
 *
 * The line that matters is the one that asks for COMMIT. Before it, a failure has changed
 * nothing. After it, the outcome of a failure is unknown: a failed sync, and a failed write of the
 * commit frame, have each been seen to leave rows that were there after reopening. So the
 * store is then broken until it is opened again, through SQLite's recovery. A full disk is the
 * exception: the store is reopened at once, and if the commit is not there, nothing happened.
 * Inside a host's transaction that line is the host's: there our turn only becomes a part of it. */
#include "base/assert.h"
#include "base/planted.h"
#include "sqlite_int.h"

static const char end_commit[] = "COMMIT", end_rollback[] = "ROLLBACK";

/* End the transaction, if SQLite has not done so itself. */
static void abandon(struct sqlite_store *store)
{
    struct scope scope;

    if (store->is_joined)
        join_abandon(store);
    if (store->is_joined || sqlite3_get_autocommit(store->writer.db))
        return;
    scope_init(&scope, store->heap, 0);
    connection_run(&store->writer, &scope, end_rollback);
    scope_fini(&scope);
    if (!sqlite3_get_autocommit(store->writer.db))
        atomic_store(&store->broken, true);
}

static void end_turn(struct sqlite_store *store)
{
    ASSERT(store->in_turn);
    store->in_turn = store->is_joined = false;
    if (!store->own && !store->is_attached)
        sidecar_unlock(&store->sidecar);
}

static bool is_full(const struct sqlite_store *store)
{
    return (sqlite3_extended_errcode(store->writer.db) & 0xff) == SQLITE_FULL;
}

/* The turn has failed before its end was asked for. */
static pawl_status undo(struct sqlite_store *store, struct scope *scope, pawl_status status)
{
    bool was_joined = store->is_joined;

    if (status == PAWL_STORAGE_FAILURE && is_full(store))
        store->base.trouble = TROUBLE_FULL;
    if (status == PAWL_STORAGE_FAILURE && !atomic_load(&store->base.is_gone))
        watch_check(store, scope); /* damaged files may be the cause */
    sqlite_rollback(&store->base);
    return was_joined ? join_words(store, scope, status) : status;
}

pawl_status sqlite_begin(struct store *base, struct scope *scope, struct store_tip *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *end;
    pawl_status status;

    ASSERT(!store->in_turn);
    TRY(sqlite_check(store, scope));
    if (store->is_read_only)
        return readonly_refuse(store, scope);
    /* Both ways out are prepared before the way in is taken: neither may lack memory then. */
    TRY(statement_get(&store->writer, scope, end_commit, &end));
    TRY(statement_get(&store->writer, scope, end_rollback, &end));
    if (!store->own && !store->is_attached)
        TRY(sidecar_lock(&store->sidecar, scope, LOCK_SHARED));
    store->in_turn = true;
    if (PLANTED(ACK_BEFORE_COMMIT) && !sqlite3_get_autocommit(store->writer.db))
        connection_run(&store->writer, scope, end_commit);
    status = store->is_attached ? join_begin(store, scope)
                                : connection_run(&store->writer, scope, "BEGIN IMMEDIATE");
    if (status == PAWL_OK)
        status = tip_refresh(store, scope);
    if (status != PAWL_OK)
        return undo(store, scope, status);
    *out = store->tip;
    return PAWL_OK;
}

void sqlite_rollback(struct store *base)
{
    struct sqlite_store *store = sqlite_store_of(base);

    abandon(store);
    end_turn(store);
}

/* Contract (5): positions go on where the log ends. */
static pawl_status check_position(struct sqlite_store *store, struct scope *scope,
                                  const struct commit *commit)
{
    uint64_t next = store->tip.pos + 1;

    if (commit->record_count == 0 || commit->records[0].pos == next)
        return PAWL_OK;
    return scope_fail(scope, PAWL_CONFLICT,
                      "the next position is %llu, the commit begins with %llu",
                      (unsigned long long)next, (unsigned long long)commit->records[0].pos);
}

/* The rows that follow from the log, but for snapshots. */
static const char delete_derived[] =
    "DELETE FROM pawl_head; DELETE FROM pawl_step; DELETE FROM pawl_timer; DELETE FROM pawl_wait;"
    "DELETE FROM pawl_interest;"
    "DELETE FROM pawl_child; DELETE FROM pawl_pause; DELETE FROM pawl_kept; DELETE FROM pawl_key";

/* Everything up to COMMIT. */
static pawl_status write_all(struct sqlite_store *store, struct scope *scope,
                             const struct commit *commit)
{
    sqlite3 *db = store->writer.db;

    /* On a connection that we share with the host, a failed read may have ended it all. */
    if (sqlite3_get_autocommit(db)) {
        ASSERT(store->is_attached);
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "an error while reading ended the transaction");
    }
    TRY(check_position(store, scope, commit));
    if (commit->is_rebuild && sqlite3_exec(db, delete_derived, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_fail(scope, db, "deleting rows");
    TRY(write_rows(&store->writer, scope, commit));
    TRY(write_live(&store->writer, scope, commit));
    TRY(write_keys(&store->writer, scope, commit));
    TRY(write_standing(&store->writer, scope, commit));
    if (commit->departed_count)
        TRY(write_departed(&store->writer, scope, commit));
    TRY(write_reduces(store, scope, commit));
    TRY(watch_check(store, scope));
    return store->is_joined ? join_release(store, scope) : PAWL_OK;
}

/* What comes out is OK or OUTCOME_UNKNOWN, never anything else. */
static pawl_status ask_for_commit(struct sqlite_store *store, struct scope *scope)
{
    char words[sizeof scope->error.message];

    if (PLANTED(ACK_BEFORE_COMMIT)) /* the next turn will ask for it */
        return PAWL_OK;
    if (connection_run(&store->writer, scope, end_commit) == PAWL_OK)
        return PAWL_OK;
    if (is_full(store))
        store->base.trouble = TROUBLE_FULL;
    atomic_store(&store->broken, true);
    memcpy(words, scope->error.message, sizeof words);
    abandon(store);
    return scope_fail(scope, PAWL_OUTCOME_UNKNOWN, "committing to %s: %s; reopen the store",
                      store->path, words);
}

/* COMMIT failed because the disk is full. SQLite reports that when there was no room for a part of
 * what it had to write. (A failed sync, which may have done its work, reports another error.)
 * Reopening recovers the write-ahead log. If the commit's last record is not there then, nothing of
 * the commit is, and nothing of it will appear: frames without a commit frame are ignored, and
 * overwritten by the next commit. If it is there, it may not be on the disk yet: the outcome stays
 * unknown. */
static pawl_status settle_full(struct sqlite_store *store, struct scope *scope,
                               const struct commit *commit)
{
    const struct record *last = &commit->records[commit->record_count - 1];
    struct record found;
    struct scope looking;
    bool is_absent;

    scope_init(&looking, store->heap, 0);
    is_absent = sqlite_reopen(&store->base, &looking) == PAWL_OK;
    if (is_absent) {
        pawl_status status = sqlite_find_row(
            &store->base, &looking, &(struct find_query){ FIND_RECORD, { last->pos } }, &found);

        is_absent = status == PAWL_NOT_KNOWN ||
                    (status == PAWL_OK && memcmp(found.hash, last->hash, SHA_SIZE) != 0);
    }
    scope_fini(&looking);
    if (is_absent)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the disk is full and nothing was written to %s: make room, then try "
                          "again",
                          store->path);
    atomic_store(&store->broken, true);
    return PAWL_OUTCOME_UNKNOWN;
}

pawl_status sqlite_commit(struct store *base, struct scope *scope, const struct commit *commit)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status;

    ASSERT(store->in_turn);
    store->base.trouble = TROUBLE_NONE;
    status = write_all(store, scope, commit);
    if (status != PAWL_OK) {
        status = undo(store, scope, status);
        if (atomic_load(&store->base.is_gone))
            watch_rescue(store);
        return status;
    }
    status = store->is_joined ? PAWL_OK : ask_for_commit(store, scope);
    if (status == PAWL_OK) {
        tip_advance(&store->tip, commit);
        atomic_fetch_add(&store->changes, 1);
        if (!store->is_joined)
            witness_note(store, commit->record_count == 0);
    }
    end_turn(store);
    if (status == PAWL_OK)
        wal_keep_small(store);
    else if (store->base.trouble == TROUBLE_FULL && commit->record_count > 0 && !store->is_attached)
        status = settle_full(store, scope, commit);
    return status;
}
