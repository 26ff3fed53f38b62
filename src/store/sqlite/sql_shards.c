/* sql_shards.c - SQL over all shards of a store: their files are attached to the reader's
 * connection, and each table and view becomes a temporary view of all of them, with the shard as
 * its last column, as in PostgreSQL. */
#include "base/grow.h"
#include "base/limits.h"
#include "sqlite_int.h"
#include <stdio.h>

/* Of the file itself; 1: it is alone, or is not the first of several. */
static pawl_status count_shards(sqlite3 *db, struct scope *scope, uint32_t *out)
{
    static const char text[] =
        "SELECT CASE (SELECT value FROM pawl_meta WHERE key = 'shard') WHEN 0 THEN"
        " (SELECT value FROM pawl_meta WHERE key = 'shards') END";
    sqlite3_stmt *statement = NULL;
    bool is_read = sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK &&
                   sqlite3_step(statement) == SQLITE_ROW;

    *out = is_read ? column_u32(statement, 0) : 0;
    *out = *out > 1 ? *out : 1;
    sqlite3_finalize(statement);
    return is_read ? PAWL_OK : sqlite_fail(scope, db, "reading the number of shards");
}

static pawl_status attach(sqlite3 *db, struct scope *scope, const char *path, uint32_t shard)
{
    const char *url;
    char text[64];
    sqlite3_stmt *statement = NULL;
    struct buf home;
    int code;

    buf_init(&home, scope->arena.heap, LIMIT_TEXT);
    buf_fmt(&home, "sqlite:%s", path);
    TRY(store_shard_url(scope, buf_take(&home, &scope->arena), shard, false, &url));
    snprintf(text, sizeof text, "ATTACH ?1 AS s%u", shard);
    code = sqlite3_prepare_v2(db, text, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, url + strlen("sqlite:"), -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? PAWL_OK : sqlite_fail(scope, db, url);
}

static pawl_status read_objects(sqlite3 *db, struct scope *scope, str **names, uint32_t *count)
{
    static const char text[] = "SELECT name FROM main.sqlite_schema WHERE type IN ('table', 'view')"
                               " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    sqlite3_stmt *statement = NULL;
    uint32_t capacity = 0;
    int code = sqlite3_prepare_v2(db, text, -1, &statement, NULL);

    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!GROW(&scope->arena, *names, *count, capacity))
            break;
        (*names)[*count].data = arena_text(&scope->arena, column_str(statement, 0, &scope->arena));
        ++*count;
        code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    TRY_MEMORY(scope, !scope->arena.failed);
    return code == SQLITE_DONE ? PAWL_OK : sqlite_fail(scope, db, "reading the schema");
}

/* Names are those of our own schema, and are quoted. */
static pawl_status unite(sqlite3 *db, struct scope *scope, str name, uint32_t shards)
{
    sqlite3_str *text = sqlite3_str_new(db);
    char *made;
    int code = SQLITE_NOMEM;

    sqlite3_str_appendf(text, "CREATE TEMP VIEW \"%w\" AS", name.data);
    for (uint32_t i = 0; i < shards; i++)
        if (i == 0)
            sqlite3_str_appendf(text, " SELECT *, 0 AS shard FROM main.\"%w\"", name.data);
        else
            sqlite3_str_appendf(text, " UNION ALL SELECT *, %u FROM s%u.\"%w\"", i, i, name.data);
    made = sqlite3_str_finish(text);
    if (made)
        code = sqlite3_exec(db, made, NULL, NULL, NULL);
    sqlite3_free(made);
    return code == SQLITE_OK ? PAWL_OK : sqlite_fail(scope, db, "uniting the shards' tables");
}

static pawl_status unite_all(sqlite3 *db, struct scope *scope, uint32_t shards)
{
    str *names = NULL;
    uint32_t count = 0;
    pawl_status status = read_objects(db, scope, &names, &count);

    if (sqlite3_exec(db, "PRAGMA query_only = OFF", NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_fail(scope, db, "uniting the shards' tables");
    for (uint32_t i = 0; i < count && status == PAWL_OK; i++)
        status = unite(db, scope, names[i], shards);
    if (status == PAWL_OK &&
        sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL) != SQLITE_OK)
        status = sqlite_fail(scope, db, "uniting the shards' tables");
    return status;
}

pawl_status sqlite_sql_shards(struct sqlite_store *store, sqlite3 *db, struct scope *scope)
{
    uint32_t shards, most = (uint32_t)sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, -1) + 1;

    TRY(count_shards(db, scope, &shards));
    if (shards > most)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "this store has %u shards, each a file of its own, and SQLite can read "
                          "%u files together: ask one of FILE and FILE-shards/ with sqlite3",
                          shards, most);
    for (uint32_t i = 1; i < shards; i++)
        TRY(attach(db, scope, store->path, i));
    return shards > 1 ? unite_all(db, scope, shards) : PAWL_OK;
}
