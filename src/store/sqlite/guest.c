/* guest.c - our tables as guests in a host's file, over the host's own connection.
 *
 * The host writes its rows and calls us inside one transaction of its own: both or neither. So
 * there is one connection for everything, it is the host's, and so is the end of a transaction:
 *
 *   in a transaction of the host's   each turn is a SAVEPOINT of ours: a turn that is refused or
 *                                    fails undoes itself and nothing else; COMMIT and ROLLBACK
 *                                    are never ours;
 *   in none                          a turn begins and commits its own transaction.
 *
 * Whatever we would remember may be rolled back unseen (the hooks that would tell belong to the
 * host, and ROLLBACK TO has none), so nothing is: the tip is read again with every turn.
 * The sidecar is locked shared for life: no owner, whose rows lag, can be beside us, while
 * other shared writers go on in between the host's transactions. */
#include "base/assert.h"
#include "base/limits.h"
#include "sqlite_int.h"
#include "store/sqlite.h"
#include <stdio.h>

static pawl_status refuse(struct scope *scope, const char *expected, const char *found)
{
    return scope_fail(scope, PAWL_INVALID_REQUEST, "attaching: expected %s, found %s", expected,
                      found);
}

/* What reads beside a writer needs the WAL. The host's file is not changed for it. */
static pawl_status check_wal(sqlite3 *db, struct scope *scope)
{
    sqlite3_stmt *statement = NULL;
    const char *mode = NULL;
    pawl_status status = PAWL_OK;

    if (sqlite3_prepare_v2(db, "PRAGMA main.journal_mode", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        mode = (const char *)sqlite3_column_text(statement, 0);
    if (!mode)
        status = sqlite_fail(scope, db, "attaching");
    else if (strcmp(mode, "wal") != 0)
        status = refuse(scope, "journal mode wal (PRAGMA journal_mode = WAL, once)", mode);
    sqlite3_finalize(statement);
    return status;
}

static pawl_status check_connection(sqlite3 *db, struct scope *scope)
{
    const char *path = sqlite3_db_filename(db, "main");

    if (!sqlite3_get_autocommit(db))
        return refuse(scope, "a connection outside of a transaction", "one inside");
    if (!path || !path[0])
        return refuse(scope, "a connection to a file", "a database in memory");
    if (sqlite3_db_readonly(db, "main") != 0)
        return refuse(scope, "a connection that may write", "one that only reads");
    /* A host may have set SQLite's limit below what we bind: binding would fail. */
    if (sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1) < (int)LIMIT_SCOPE ||
        sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, -1) < STATEMENT_VARIABLES)
        return refuse(scope, "SQLite's usual limits", "sqlite3_limit() set lower");
    return check_wal(db, scope);
}

static pawl_status look(struct sqlite_store *store, struct scope *scope, struct schema *schema)
{
    TRY(schema_read(store->writer.db, scope, schema));
    TRY(schema_check(store, scope, schema));
    return schema_refuse_triggers(store->writer.db, scope, store->path, schema->is_hosted);
}

/* Our tables, where they are missing or old; alone, and looked at again once alone. */
static pawl_status settle_schema(struct sqlite_store *store, struct scope *scope)
{
    struct schema schema = { 0 };
    pawl_status status = look(store, scope, &schema);

    if (status != PAWL_OK || schema.version == sqlite_schema_version())
        return status;
    status = sidecar_lock(&store->sidecar, scope, LOCK_EXCLUSIVE);
    if (status == PAWL_OK)
        status = sidecar_announce(&store->sidecar, scope, NULL, false);
    if (status == PAWL_OK)
        status = look(store, scope, &schema);
    if (status == PAWL_OK && schema.version < sqlite_schema_version())
        status = sqlite_migrate(store, store->writer.db, scope, &schema);
    sidecar_close(&store->sidecar);
    return status;
}

pawl_status store_attach(sqlite3 *db, const struct store_options *options, struct scope *scope,
                         struct store **out)
{
    struct sqlite_store *store;
    pawl_status status;

    ASSERT(db);
    ASSERT(options->env && options->heap && !options->own);
    TRY(check_connection(db, scope));
    store = sqlite_store_new(options);
    TRY_MEMORY(scope, store);
    store->is_attached = store->witness.is_off = true;
    store->writer = store->reader = (struct connection){ .db = db, .is_borrowed = true };
    status = store_new_ids(options, scope, &store->made);
    if (status == PAWL_OK)
        status = sqlite_find_path(store, scope, str_of(sqlite3_db_filename(db, "main")));
    if (status == PAWL_OK)
        status = settle_schema(store, scope);
    if (status == PAWL_OK)
        status = sidecar_lock(&store->sidecar, scope, LOCK_SHARED); /* for life */
    if (status != PAWL_OK) {
        store_close(&store->base);
        return status;
    }
    store->base.file = store->path;
    *out = &store->base;
    return PAWL_OK;
}

/* ---- a turn inside the host's transaction ---- */

/* A statement that writes nothing takes the turn to write all the same. */
static const char take_turn[] = "DELETE FROM pawl_meta WHERE 0";
static const char release[] = "RELEASE pawl_turn";
static const char rollback_to[] = "ROLLBACK TO pawl_turn";

static pawl_status fail_busy(struct sqlite_store *store, struct scope *scope)
{
    int code = sqlite3_extended_errcode(store->writer.db);

    if ((code & 0xff) != SQLITE_BUSY && (code & 0xff) != SQLITE_LOCKED)
        return sqlite_fail(scope, store->writer.db, "joining the transaction");
    return scope_fail(
        scope, PAWL_OVERLOADED,
        code == SQLITE_BUSY_SNAPSHOT
            ? "the transaction has read what another connection has changed since: roll "
              "back, and begin with BEGIN IMMEDIATE"
            : "another connection is writing, or a statement of this one: try again "
              "(sqlite3_busy_timeout() says how long SQLite waits)");
}

/* Once SQLite has rolled the host's transaction back by itself, a host that has not noticed would
 * go on calling as if it were inside, and we would commit what its rows no longer go with. */
static pawl_status check_lost(struct sqlite_store *store, struct scope *scope)
{
    store->has_lost = store->has_lost && !store->is_joined;
    if (!store->has_lost)
        return PAWL_OK;
    return scope_fail(
        scope, PAWL_STORAGE_FAILURE,
        "SQLite has rolled back the host's transaction after an error: begin it again");
}

static pawl_status join(struct sqlite_store *store, struct scope *scope)
{
    struct connection *host = &store->writer;
    sqlite3_stmt *end;

    TRY(statement_get(host, scope, release, &end));
    TRY(statement_get(host, scope, rollback_to, &end));
    TRY(connection_run(host, scope, "SAVEPOINT pawl_turn"));
    store->has_savepoint = true;
    return connection_run(host, scope, take_turn);
}

pawl_status join_begin(struct sqlite_store *store, struct scope *scope)
{
    pawl_status status;

    store->is_joined = !sqlite3_get_autocommit(store->writer.db);
    store->has_savepoint = false;
    TRY(check_lost(store, scope));
    status = store->is_joined ? join(store, scope)
                              : connection_run(&store->writer, scope, "BEGIN IMMEDIATE");
    return status == PAWL_STORAGE_FAILURE ? fail_busy(store, scope) : status;
}

pawl_status join_release(struct sqlite_store *store, struct scope *scope)
{
    ASSERT(store->has_savepoint);
    return connection_run(&store->writer, scope, release);
}

/* Some errors (a full disk, a failed read) make SQLite roll back everything, the host's rows
 * included; there is then nothing of ours left to undo. If undoing our part alone fails, all of it
 * has to go: half of a turn must not become durable by the host's COMMIT. */
void join_abandon(struct sqlite_store *store)
{
    struct scope scope;

    scope_init(&scope, store->heap, 0);
    if (store->has_savepoint && !sqlite3_get_autocommit(store->writer.db) &&
        (connection_run(&store->writer, &scope, rollback_to) != PAWL_OK ||
         join_release(store, &scope) != PAWL_OK))
        sqlite3_exec(store->writer.db, "ROLLBACK", NULL, NULL, NULL);
    store->has_lost = sqlite3_get_autocommit(store->writer.db) != 0;
    scope_fini(&scope);
}

pawl_status join_words(struct sqlite_store *store, struct scope *scope, pawl_status status)
{
    char words[sizeof scope->error.message - 80];

    if (!store->has_lost)
        return status;
    snprintf(words, sizeof words, "%.*s", (int)sizeof words - 1, scope->error.message);
    return scope_fail(scope, status, "%s; SQLite has rolled back the host's whole transaction",
                      words);
}
