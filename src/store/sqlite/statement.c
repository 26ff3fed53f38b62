/* statement.c - connections, and the statements kept prepared on them. */
#include "base/assert.h"
#include "sqlite_int.h"
#include <stdio.h>

/* Pages kept in memory, in KiB. A commit that touches more spills into the WAL early, which
 * costs time, never truth. */
#define WRITER_CACHE_KIB 8192
#define READER_CACHE_KIB 2048

pawl_status sqlite_fail(struct scope *scope, sqlite3 *db, const char *doing)
{
    int code = sqlite3_extended_errcode(db);

    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return scope_no_memory(scope);
    case SQLITE_FULL:
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: the disk is full", doing);
    case SQLITE_BUSY:
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: another process has been writing for more than %d ms", doing,
                          BUSY_TIMEOUT_MS);
    case SQLITE_CANTOPEN:
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: the file cannot be opened: expected that this user may read and "
                          "write it, and make files beside it",
                          doing);
    case SQLITE_READONLY:
        return scope_fail(
            scope, PAWL_STORAGE_FAILURE,
            "%s: expected that this user may write the file and make files beside it, "
            "found that it or its folder is read-only",
            doing);
    case SQLITE_IOERR:
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: %s (SQLite code %d)", doing,
                          code == SQLITE_IOERR_SHMSIZE
                              ? "there is no room for the file's -shm: the disk is full"
                              : "the system reports an error of the disk",
                          code);
    default:
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: %s (SQLite code %d)", doing,
                          sqlite3_errmsg(db), code);
    }
}

/* The first pragma that needs the schema makes SQLite parse all of it. The keeper asks for none:
 * a checkpoint syncs by default, and reading the data version opens the log. */
static const char keeper_settings[] = "PRAGMA cell_size_check = ON; PRAGMA data_version";

static int run_settings(sqlite3 *db, enum connection_use use)
{
    char text[256];

    if (use == USE_KEEPER && !sqlite3_compileoption_used("DEFAULT_SYNCHRONOUS=0") &&
        !sqlite3_compileoption_used("DEFAULT_WAL_SYNCHRONOUS=0"))
        return sqlite3_exec(db, keeper_settings, NULL, NULL, NULL);
    snprintf(text, sizeof text,
             "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON;"
             "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -%d; PRAGMA query_only = %s",
             use == USE_WRITER ? WRITER_CACHE_KIB : READER_CACHE_KIB,
             use == USE_WRITER || use == USE_KEEPER ? "OFF" : "ON");
    return sqlite3_exec(db, text, NULL, NULL, NULL);
}

static int configure(sqlite3 *db, enum connection_use use)
{
    int code;

    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    code = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    /* People's SQL goes through an authorizer of its own, and views that read JSON. */
    if (code == SQLITE_OK)
        code = sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, use == USE_SQL, NULL);
    return code == SQLITE_OK ? run_settings(db, use) : code;
}

pawl_status connection_open(struct connection *connection, struct scope *scope, const char *path,
                            enum connection_use use)
{
    bool is_uri = strncmp(path, "file:", 5) == 0; /* a path is absolute; a URI may only be read */
    int flags = SQLITE_OPEN_NOMUTEX;
    pawl_status status = PAWL_OK;
    sqlite3 *db = NULL;

    ASSERT(!connection->db);
    flags |= use == USE_SQL || is_uri ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    flags |= is_uri ? SQLITE_OPEN_URI : 0;
    if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK || configure(db, use) != SQLITE_OK) {
        status = db ? sqlite_fail(scope, db, path) : scope_no_memory(scope);
        sqlite3_close(db);
        return status;
    }
    *connection = (struct connection){ .db = db };
    return PAWL_OK;
}

pawl_status connection_open_sql(struct sqlite_store *store, struct scope *scope,
                                struct connection *out)
{
    *out = (struct connection){ 0 };
    TRY(sqlite_check(store, scope));
    return connection_open(out, scope, sqlite_name(store), USE_SQL);
}

void connection_close(struct connection *connection)
{
    int code;

    for (int i = 0; i < STATEMENT_SLOTS; i++)
        sqlite3_finalize(connection->cache[i].statement);
    code = connection->is_borrowed ? SQLITE_OK : sqlite3_close(connection->db);
    ASSERT(code == SQLITE_OK); /* no statement was forgotten */
    *connection = (struct connection){ 0 };
}

/* The slot of a text, or the free one where it belongs. */
static size_t slot_of(const struct connection *connection, const char *text)
{
    size_t at = (size_t)(((uint64_t)(uintptr_t)text * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
    size_t tried = 0;

    for (at %= STATEMENT_SLOTS; connection->cache[at].text && connection->cache[at].text != text;
         at = (at + 1) % STATEMENT_SLOTS)
        ASSERT(tried++ < STATEMENT_SLOTS);
    return at;
}

pawl_status statement_get(struct connection *connection, struct scope *scope, const char *text,
                          sqlite3_stmt **out)
{
    size_t at = slot_of(connection, text);
    sqlite3_stmt **kept = &connection->cache[at].statement;

    if (!*kept && sqlite3_prepare_v3(connection->db, text, -1, SQLITE_PREPARE_PERSISTENT, kept,
                                     NULL) != SQLITE_OK)
        return sqlite_fail(scope, connection->db, "preparing a statement");
    connection->cache[at].text = text;
    ASSERT(!sqlite3_stmt_busy(*kept));
    *out = *kept;
    return PAWL_OK;
}

pawl_status statement_step(sqlite3_stmt *statement, struct scope *scope, bool *row)
{
    int code = sqlite3_step(statement);
    pawl_status status = PAWL_OK;

    *row = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return PAWL_OK;
    if (code != SQLITE_DONE)
        status = sqlite_fail(scope, sqlite3_db_handle(statement), "running a statement");
    sqlite3_reset(statement);
    return status;
}

pawl_status statement_run(sqlite3_stmt *statement, struct scope *scope)
{
    bool row;
    pawl_status status = statement_step(statement, scope, &row);

    ASSERT(!row);
    return status;
}

pawl_status connection_run(struct connection *connection, struct scope *scope, const char *text)
{
    sqlite3_stmt *statement = NULL;

    TRY(statement_get(connection, scope, text, &statement));
    return statement_run(statement, scope);
}

/* Binding borrowed bytes and numbers allocates nothing: it fails only if we are wrong. */
#define BIND(call)                                                                                 \
    do {                                                                                           \
        int code = (call);                                                                         \
        ASSERT(code == SQLITE_OK);                                                                 \
    } while (0)

void bind_u64(sqlite3_stmt *statement, int index, uint64_t n)
{
    ASSERT(n <= INT64_MAX);
    BIND(sqlite3_bind_int64(statement, index, (int64_t)n));
}

void bind_i64(sqlite3_stmt *statement, int index, int64_t n)
{
    BIND(sqlite3_bind_int64(statement, index, n));
}

/* 0 is NULL. */
static void bind_optional(sqlite3_stmt *statement, int index, uint64_t n)
{
    if (n > 0)
        bind_u64(statement, index, n);
    else
        BIND(sqlite3_bind_null(statement, index));
}

void bind_text(sqlite3_stmt *statement, int index, str s)
{
    BIND(sqlite3_bind_text64(statement, index, s.data, s.size, SQLITE_STATIC, SQLITE_UTF8));
}

void bind_blob(sqlite3_stmt *statement, int index, str s)
{
    BIND(sqlite3_bind_blob64(statement, index, s.data, s.size, SQLITE_STATIC));
}

void bind_bytes(sqlite3_stmt *statement, int index, const uint8_t *bytes, size_t size)
{
    ASSERT(bytes);
    BIND(sqlite3_bind_blob64(statement, index, bytes, size, SQLITE_STATIC));
}

uint64_t column_u64(sqlite3_stmt *statement, int index)
{
    return (uint64_t)sqlite3_column_int64(statement, index);
}

uint32_t column_u32(sqlite3_stmt *statement, int index)
{
    return (uint32_t)sqlite3_column_int64(statement, index);
}

int64_t column_i64(sqlite3_stmt *statement, int index)
{
    return sqlite3_column_int64(statement, index);
}

/* Text is read as a blob too: that neither converts nor stops at a NUL. */
static str column_view(sqlite3_stmt *statement, int index)
{
    const char *data = sqlite3_column_blob(statement, index);
    int size = sqlite3_column_bytes(statement, index);

    if (sqlite3_column_type(statement, index) == SQLITE_NULL)
        return STR_NONE;
    return data ? (str){ data, (size_t)size } : STR("");
}

str column_str(sqlite3_stmt *statement, int index, struct arena *arena)
{
    return arena_str(arena, column_view(statement, index));
}

void column_bytes(sqlite3_stmt *statement, int index, uint8_t *out, size_t size)
{
    str view = column_view(statement, index);

    memset(out, 0, size);
    if (view.size == size && size > 0)
        memcpy(out, view.data, size);
}

static void bind_param(sqlite3_stmt *statement, int index, const struct param *param)
{
    switch (param->kind) {
    case PARAM_NUMBER:
        bind_u64(statement, index, param->n);
        break;
    case PARAM_SIGNED:
        bind_i64(statement, index, param->i);
        break;
    case PARAM_OPTIONAL:
        bind_optional(statement, index, param->n);
        break;
    case PARAM_TEXT:
        bind_text(statement, index, param->s);
        break;
    case PARAM_BLOB:
        bind_blob(statement, index, param->s);
        break;
    }
}

pawl_status connection_put(struct connection *connection, struct scope *scope, const char *text,
                           const struct param *params, size_t count)
{
    sqlite3_stmt *statement;

    TRY(statement_get(connection, scope, text, &statement));
    for (size_t i = 0; i < count; i++)
        bind_param(statement, (int)i + 1, &params[i]);
    return statement_run(statement, scope);
}
