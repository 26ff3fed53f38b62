/* open_file.c - opening a store's file, making it where it is missing, and closing it. */
#include "base/assert.h"
#include "base/planted.h"
#include "sqlite_int.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 64 /* for what is put behind the path: "-owner", "-head-STOREID" */

pawl_status sqlite_check(struct sqlite_store *store, struct scope *scope)
{
    if (!atomic_load(&store->broken))
        return store->is_immutable ? readonly_check(store, scope) : PAWL_OK;
    if (atomic_load(&store->base.is_gone))
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: %s", store->path, watch_words(store));
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "a commit to %s failed and its outcome is not known: reopen the store",
                      store->path);
}

/* The absolute path of `name`, without links; the file itself need not be there. */
static bool resolve(const char *name, char out[PATH_MAX])
{
    char directory[PATH_MAX];
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    int size;

    if (realpath(name, out))
        return true;
    if (errno != ENOENT || !base[0])
        return false;
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(base - name) : 1,
             slash ? name : ".");
    if (!realpath(directory, out))
        return false;
    size = (int)strlen(out);
    return snprintf(out + size, (size_t)(PATH_MAX - size), "%s%s", size > 1 ? "/" : "", base) <
           PATH_MAX - size;
}

pawl_status sqlite_find_path(struct sqlite_store *store, struct scope *scope, str name)
{
    char text[PATH_MAX];

    if (name.size == 0 || str_has(name, '\0'))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "a store's URL is sqlite:FILE, and FILE is missing");
    if (name.size >= PATH_MAX - PATH_ROOM)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "the path of the store is too long");
    snprintf(text, sizeof text, "%.*s", STR_ARG(name));
    errno = 0;
    if (!resolve(text, store->path))
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: %s", text,
                          strerror(errno ? errno : ENAMETOOLONG));
    if (strlen(store->path) >= PATH_MAX - PATH_ROOM)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "the path of the store is too long");
    snprintf(store->witness.path, PATH_MAX, "%.*s-head", PATH_MAX - PATH_ROOM, store->path);
    store->sidecar.database = store->path;
    snprintf(store->sidecar.path, PATH_MAX, "%.*s-owner", PATH_MAX - PATH_ROOM, store->path);
    return PAWL_OK;
}

static bool exists(const struct sqlite_store *store)
{
    struct stat info;

    return stat(store->path, &info) == 0;
}

/* Do what needs the file to oneself. An owner has it anyway. */
static pawl_status enter_alone(struct sqlite_store *store, struct scope *scope)
{
    if (store->own)
        return PAWL_OK;
    TRY(sidecar_lock(&store->sidecar, scope, LOCK_EXCLUSIVE));
    /* What a dead owner left there would be taken for ours. */
    return sidecar_announce(&store->sidecar, scope, NULL, false);
}

static void leave_alone(struct sqlite_store *store)
{
    if (!store->own)
        sidecar_close(&store->sidecar);
}

static pawl_status make_if_missing(struct sqlite_store *store, struct scope *scope, bool create)
{
    pawl_status status;

    if (exists(store))
        return PAWL_OK;
    if (!create)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no store at %s", store->path);
    status = enter_alone(store, scope);
    if (status == PAWL_OK && !exists(store)) /* no other process made it */
        status = sqlite_create(store, scope);
    leave_alone(store);
    return status;
}

static pawl_status not_ours(struct sqlite_store *store, struct scope *scope, const char *found)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "%s is not a pawl store: expected a file that pawl made, found %s",
                      store->path, found);
}

/* A plain file with something in it; SQLite would take an empty one for a new database. */
static pawl_status check_file(struct sqlite_store *store, struct scope *scope)
{
    struct stat info;

    if (stat(store->path, &info) != 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: %s", store->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return not_ours(store, scope, "no file");
    if (info.st_size == 0)
        return not_ours(store, scope, "an empty file");
    if (info.st_nlink > 1)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s has %lu names (hard links), and each would get a write-ahead log of "
                          "its own: expected one; copy the file instead, and delete the others",
                          store->path, (unsigned long)info.st_nlink);
    return PAWL_OK;
}

/* Is it ours, and of which schema? Looks without changing anything. In a file of our own, the
 * header says it: SQLite need not parse the schema, which is most of what opening a connection
 * costs. */
static pawl_status read_header(struct sqlite_store *store, struct scope *scope, struct schema *out)
{
    int flags = store->is_read_only ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
    char foreign[96];
    sqlite3 *db = NULL;
    pawl_status status;

    if (sqlite3_open_v2(sqlite_name(store), &db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        status = db ? sqlite_fail(scope, db, store->path) : scope_no_memory(scope);
    } else {
        sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS); /* the last to close holds the file shortly */
        status = schema_read(db, scope, out);
    }
    snprintf(foreign, sizeof foreign,
             "a SQLite database of another program (application_id 0x%08X)",
             (unsigned)out->application_id);
    if (db && sqlite3_errcode(db) == SQLITE_NOTADB)
        status = not_ours(store, scope, "no SQLite database");
    else if (status == PAWL_OK && out->is_hosted && out->version == 0)
        status = not_ours(store, scope, foreign);
    sqlite3_close(db);
    return status;
}

pawl_status schema_check(struct sqlite_store *store, struct scope *scope,
                         const struct schema *schema)
{
    if (schema->version <= sqlite_schema_version())
        return PAWL_OK;
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "%s has schema %u, this pawl knows up to %u; use a newer pawl", store->path,
                      schema->version, sqlite_schema_version());
}

static pawl_status refuse_triggers(struct sqlite_store *store, struct scope *scope,
                                   const struct connection *connection)
{
    return schema_refuse_triggers(connection->db, scope, store->path, store->witness.is_off);
}

/* Reads the version again once it is alone: another process may have migrated it. */
static pawl_status migrate_alone(struct sqlite_store *store, struct scope *scope)
{
    struct connection connection = { 0 };
    struct schema schema = { 0 };
    pawl_status status = enter_alone(store, scope);

    if (status == PAWL_OK)
        status = read_header(store, scope, &schema);
    if (status == PAWL_OK)
        status = schema_check(store, scope, &schema);
    if (status == PAWL_OK && schema.version < sqlite_schema_version())
        status = connection_open(&connection, scope, store->path, USE_WRITER);
    if (status == PAWL_OK && connection.db)
        status = refuse_triggers(store, scope, &connection);
    if (status == PAWL_OK && connection.db)
        status = sqlite_migrate(store, connection.db, scope, &schema);
    connection_close(&connection);
    leave_alone(store);
    return status;
}

static pawl_status check_schema(struct sqlite_store *store, struct scope *scope)
{
    struct schema schema = { 0 };

    TRY(check_file(store, scope));
    TRY(read_header(store, scope, &schema));
    store->witness.is_off = schema.is_hosted;
    TRY(schema_check(store, scope, &schema));
    if (schema.version == sqlite_schema_version())
        return PAWL_OK;
    if (!store->is_read_only)
        return migrate_alone(store, scope);
    return scope_fail(
        scope, PAWL_STORAGE_FAILURE,
        "%s has schema %u and is read-only for this user: expected schema %u; copy it "
        "into a folder that you may write, where it is migrated",
        store->path, schema.version, sqlite_schema_version());
}

/* WAL that was turned off is turned on again; a file system without it is rejected. */
static pawl_status ensure_wal(struct sqlite_store *store, struct scope *scope)
{
    sqlite3 *db = store->writer.db;
    sqlite3_stmt *statement = NULL;
    pawl_status status = PAWL_OK;
    const char *mode;

    if (sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        status = sqlite_fail(scope, db, store->path);
    } else {
        mode = (const char *)sqlite3_column_text(statement, 0);
        if (!mode || strcmp(mode, "wal") != 0)
            status =
                scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: expected journal mode wal, found %s",
                           store->path, mode ? mode : "none");
    }
    sqlite3_finalize(statement);
    /* SQLite opens its log with the first read, and only then closes what changed.c maps. */
    if (status == PAWL_OK &&
        sqlite3_exec(db, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL) != SQLITE_OK)
        status = sqlite_fail(scope, db, store->path);
    return status;
}

static pawl_status connect(struct sqlite_store *store, struct scope *scope)
{
    pawl_status status;

    if (store->is_read_only) { /* they cannot write, and nothing looks after the log */
        TRY(connection_open(&store->writer, scope, store->uri, USE_READER));
        TRY(refuse_triggers(store, scope, &store->writer));
        return connection_open(&store->reader, scope, store->uri, USE_READER);
    }
    status = connection_open(&store->writer, scope, store->path, USE_WRITER);
    if (status == PAWL_OK)
        status = refuse_triggers(store, scope, &store->writer);
    if (status == PAWL_OK)
        status = ensure_wal(store, scope);
    if (status == PAWL_OK)
        status = connection_open(&store->reader, scope, store->path, USE_READER);
    if (status == PAWL_OK)
        status = connection_open(&store->keeper, scope, store->path, USE_KEEPER);
    if (status == PAWL_OK)
        sqlite3_wal_hook(store->writer.db, wal_hook, store); /* instead of SQLite's own keeping */
    watch_begin(store);
    return status;
}

static pawl_status take_ownership(struct sqlite_store *store, struct scope *scope,
                                  const struct store_options *options)
{
    if (!options->own || (!options->create && !exists(store)))
        return PAWL_OK; /* the latter fails soon, and should leave no sidecar behind */
    TRY(sidecar_lock(&store->sidecar, scope, LOCK_EXCLUSIVE));
    store->own = true; /* closing unlocks it */
    TRY(sidecar_keep_secret(&store->sidecar, scope, options->secret));
    TRY(sidecar_announce(&store->sidecar, scope, options->address, true));
    if (PLANTED(OWNER_UNLOCKED))
        sidecar_unlock(&store->sidecar);
    return PAWL_OK;
}

static void sqlite_close_store(struct store *base)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct scope scope;

    if (store->in_turn)
        sqlite_rollback(base);
    if (!atomic_load(&store->broken))
        witness_flush(store);
    if (store->witness.fd >= 0)
        close(store->witness.fd);
    sha_free(store->witness.sha);
    watch_end(store);
    connection_close(&store->keeper);
    connection_close(&store->reader);
    connection_close(&store->writer);
    if (store->own) {
        scope_init(&scope, store->heap, 0);
        sidecar_announce(&store->sidecar, &scope, NULL, false);
        sidecar_keep_secret(&store->sidecar, &scope, NULL);
        scope_fini(&scope);
    }
    sidecar_close(&store->sidecar);
    readonly_end(store);
    pthread_mutex_destroy(&store->read_lock);
    sha_free(store->sha);
    heap_free(store->heap, store, sizeof *store);
}

pawl_status sqlite_reopen(struct store *base, struct scope *scope)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status;

    ASSERT(!store->in_turn);
    if (store->is_attached)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the connection is the host's: close it and attach to a new one");
    if (atomic_load(&store->base.is_gone) || watch_check(store, scope) != PAWL_OK)
        return sqlite_check(store, scope); /* the files there are no longer ours */
    pthread_mutex_lock(&store->read_lock);
    atomic_store(&store->broken, true);
    connection_close(&store->keeper);
    connection_close(&store->reader);
    connection_close(&store->writer);
    store->tip_known = false;
    status = connect(store, scope);
    atomic_store(&store->broken, status != PAWL_OK);
    pthread_mutex_unlock(&store->read_lock);
    return status == PAWL_OK ? witness_begin(store, scope) : status;
}

struct sqlite_store *sqlite_store_new(const struct store_options *options)
{
    struct sqlite_store *store = heap_new(options->heap, sizeof *store);

    if (!store)
        return NULL;
    store->base.ops = &sqlite_store_ops;
    store->heap = options->heap;
    store->env = options->env;
    store->sha = sha_new(options->heap);
    store->witness = (struct witness_file){ .sha = sha_new(options->heap), .fd = -1 };
    if (!store->sha || !store->witness.sha) {
        sha_free(store->sha);
        sha_free(store->witness.sha);
        heap_free(options->heap, store, sizeof *store);
        return NULL;
    }
    store->sidecar.fd = -1;
    pthread_mutex_init(&store->read_lock, NULL);
    return store;
}

static pawl_status sqlite_open_store(str rest, const struct store_options *options,
                                     struct scope *scope, struct store **out)
{
    struct sqlite_store *store = sqlite_store_new(options);
    pawl_status status;

    ASSERT(options->env);
    TRY_MEMORY(scope, store);
    status = store_new_ids(options, scope, &store->made);
    if (status == PAWL_OK)
        status = sqlite_find_path(store, scope, rest);
    if (status == PAWL_OK)
        status = readonly_begin(store, scope, options->own);
    if (status == PAWL_OK)
        status = take_ownership(store, scope, options);
    if (status == PAWL_OK)
        status = make_if_missing(store, scope, options->create);
    if (status == PAWL_OK)
        status = check_schema(store, scope);
    if (status == PAWL_OK)
        status = connect(store, scope);
    if (status == PAWL_OK)
        status = witness_begin(store, scope);
    if (status != PAWL_OK) {
        sqlite_close_store(&store->base);
        return status;
    }
    store->base.file = store->is_read_only ? NULL : store->path;
    *out = &store->base;
    return PAWL_OK;
}

const struct store_ops sqlite_store_ops = {
    .scheme = "sqlite",
    .archives = true,
    .open = sqlite_open_store,
    .close = sqlite_close_store,
    .reopen = sqlite_reopen,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    STORE_READ_OPS(sqlite),
    .sql = sqlite_sql,
    .objects = sqlite_objects,
    .examine = sqlite_examine,
    .facts = sqlite_facts,
    .scrub = sqlite_scrub,
    .witness = sqlite_witness,
};
