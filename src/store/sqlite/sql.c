/* sql.c - read-only SQL for people, over the pawl_... views.
 *
 * A reader has a connection of its own, opened read-only: a statement that takes minutes delays no
 * other caller, and the authorizer that allows nothing but reading holds for it alone. A statement
 * has a time limit: while it runs, the log cannot be checkpointed behind it. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "sqlite_int.h"

#define LOOK_STEPS 1000 /* of the virtual machine, between two readings of the clock */

static bool is_among(const char *name, const char *const *names)
{
    for (; name && *names; names++)
        if (sqlite3_stricmp(name, *names) == 0)
            return true;
    return false;
}

/* Those that tell what is there; of some only without a value, which would set them. */
static bool is_harmless_pragma(const char *name, const char *value)
{
    static const char *const harmless[] = { "table_info", "table_xinfo", "table_list", "index_list",
                                            "index_info", "index_xinfo", NULL };
    static const char *const asking[] = {
        "user_version",    "page_count", "freelist_count", "page_size", "quick_check",
        "integrity_check", NULL
    };

    return is_among(name, harmless) || (!value && is_among(name, asking));
}

static int authorize(void *context, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
    (void)context;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
        return is_harmless_pragma(first, second) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

/* ---- The time limit ---- */

struct sql_patience {
    struct env *env;
    int64_t limit_ms, until_ms; /* 0: none */
    bool is_over;
};

static int look_at_clock(void *context)
{
    struct sql_patience *patience = context;

    patience->is_over = patience->env->tick_ms(patience->env) >= patience->until_ms;
    return patience->is_over;
}

static pawl_status fail_late(struct scope *scope, const struct sql_patience *patience)
{
    char limit[TIME_TEXT_SIZE];

    duration_print(patience->limit_ms, limit);
    return scope_fail(scope, PAWL_TOO_LARGE,
                      "the statement took longer than %s and was stopped: ask for less, or give it "
                      "more time with --timeout",
                      limit);
}

pawl_status sql_fail(struct scope *scope, sqlite3 *db)
{
    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_NOMEM:
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_BUSY:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_NOTADB:
        return sqlite_fail(scope, db, "running SQL");
    default:
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s", sqlite3_errmsg(db));
    }
}

/* One statement that only reads, and behind it nothing but white space and comments. */
static pawl_status prepare(sqlite3 *db, struct scope *scope, str text, sqlite3_stmt **out)
{
    const char *rest = NULL, *end = text.data + text.size;
    sqlite3_stmt *second = NULL;

    if (sqlite3_prepare_v2(db, text.data, (int)text.size, out, &rest) != SQLITE_OK)
        return sql_fail(scope, db);
    if (!*out)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "expected a statement, found none");
    if (sqlite3_prepare_v2(db, rest, (int)(end - rest), &second, NULL) != SQLITE_OK || second) {
        sqlite3_finalize(second);
        return scope_fail(scope, PAWL_INVALID_REQUEST, "expected one statement, found more");
    }
    if (!sqlite3_stmt_readonly(*out))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "expected a statement that only reads, found one that writes");
    return PAWL_OK;
}

static str value_of(struct arena *arena, sqlite3_stmt *statement, int index)
{
    const void *data;
    size_t size;
    char *hex;

    switch (sqlite3_column_type(statement, index)) {
    case SQLITE_NULL:
        return STR_NONE;
    case SQLITE_BLOB:
        data = sqlite3_column_blob(statement, index);
        size = (size_t)sqlite3_column_bytes(statement, index);
        hex = arena_alloc(arena, 2 * size + 1);
        if (hex)
            sha_hex(data, size, hex);
        return (str){ hex, hex ? 2 * size : 0 };
    default:
        data = sqlite3_column_text(statement, index);
        size = (size_t)sqlite3_column_bytes(statement, index);
        arena->failed = arena->failed || !data;
        return arena_str(arena, (str){ data, size });
    }
}

/* A number, and one that JSON can say: an infinite one has no digits. */
static bool is_number(int type, str text)
{
    return (type == SQLITE_INTEGER || type == SQLITE_FLOAT) && text.size > 0 &&
           text.data[text.size - 1] >= '0' && text.data[text.size - 1] <= '9';
}

struct sql_row {
    struct scope scope; /* emptied for each row */
    uint32_t count;
    str *names, *values; /* names are in the caller's scope */
    bool *are_numbers;
};

static pawl_status give_row(struct sql_row *row, struct scope *scope, sqlite3_stmt *statement,
                            row_fn fn, void *context)
{
    struct arena *arena = &row->scope.arena;

    scope_clear(&row->scope);
    row->values = ARENA_ARRAY(arena, str, row->count);
    row->are_numbers = ARENA_ARRAY(arena, bool, row->count);
    for (uint32_t i = 0; i < row->count && row->values && row->are_numbers; i++) {
        int type = sqlite3_column_type(statement, (int)i); /* before it is read as text */

        row->values[i] = value_of(arena, statement, (int)i);
        row->are_numbers[i] = is_number(type, row->values[i]);
    }
    TRY_MEMORY(scope, !arena->failed);
    return fn(context, row->count, row->names, row->values, row->are_numbers);
}

static pawl_status run(struct sql_row *row, struct scope *scope, sqlite3_stmt *statement, row_fn fn,
                       void *context)
{
    int code;

    row->count = (uint32_t)sqlite3_column_count(statement);
    row->names = ARENA_ARRAY(&scope->arena, str, row->count);
    for (uint32_t i = 0; i < row->count && row->names; i++) {
        const char *name = sqlite3_column_name(statement, (int)i);

        row->names[i] = arena_str(&scope->arena, str_of(name ? name : ""));
    }
    TRY_MEMORY(scope, !scope->arena.failed);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        TRY(give_row(row, scope, statement, fn, context));
    return code == SQLITE_DONE ? PAWL_OK : sql_fail(scope, sqlite3_db_handle(statement));
}

static pawl_status give_rows(struct sqlite_store *store, sqlite3 *db, struct scope *scope, str text,
                             int64_t limit_ms, row_fn fn, void *context)
{
    struct sql_patience patience = { .env = store->env, .limit_ms = limit_ms };
    struct sql_row row = { 0 };
    sqlite3_stmt *statement = NULL;
    pawl_status status;

    scope_init(&row.scope, store->heap, LIMIT_SCOPE);
    if (limit_ms > 0) {
        patience.until_ms = store->env->tick_ms(store->env) + limit_ms;
        sqlite3_progress_handler(db, LOOK_STEPS, look_at_clock, &patience);
    }
    status = prepare(db, scope, text, &statement);
    if (status == PAWL_OK)
        status = run(&row, scope, statement, fn, context);
    if (status != PAWL_OK && patience.is_over)
        status = fail_late(scope, &patience);
    sqlite3_finalize(statement);
    scope_fini(&row.scope);
    return status;
}

pawl_status sqlite_sql(struct store *base, struct scope *scope, str text, int64_t limit_ms,
                       row_fn fn, void *context)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection connection;
    pawl_status status;

    if (text.size > LIMIT_TEXT || str_has(text, '\0'))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "expected SQL without NUL, of at most %u bytes", LIMIT_TEXT);
    TRY(connection_open_sql(store, scope, &connection));
    /* Labels, payloads and compiled texts are JSON. Its table functions declare themselves when
     * they are first named, which the authorizer would refuse; without memory for that, it does. */
    (void)sqlite3_exec(connection.db, "SELECT 1 FROM json_each('0'), json_tree('0') LIMIT 0", NULL,
                       NULL, NULL);
    status = sqlite_sql_shards(store, connection.db, scope);
    sqlite3_set_authorizer(connection.db, authorize, NULL);
    if (status == PAWL_OK)
        status = give_rows(store, connection.db, scope, text, limit_ms, fn, context);
    connection_close(&connection);
    return status;
}
