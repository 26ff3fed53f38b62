/* migrate.c - numbered migrations, embedded from schema/: all that are missing, or none. A new file
 * of our own gets what they make together, without the steps between (tools/flatten).
 *
 * A file of our own says by application_id and user_version whose it is and which migrations it
 * has. In a file of a host's, where our tables are guests, both numbers are the host's: there
 * pawl_meta's `schema` is the number, and a migration puts the host's two back before it ends. */
#include "base/assert.h"
#include "sqlite_int.h"
#include <stdio.h>

uint32_t sqlite_schema_version(void)
{
    uint32_t count = 0;

    while (sqlite_schema[count][0].data)
        count++;
    return count;
}

static int read_number(sqlite3 *db, const char *text, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, text, -1, &statement, NULL);

    *out = 0;
    if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Our number in a host's file; 0: we are not in it. */
static int read_hosted(sqlite3 *db, int64_t *out)
{
    int64_t is_there;
    int code = read_number(db,
                           "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"
                           " AND name = 'pawl_meta'",
                           &is_there);

    *out = 0;
    if (code == SQLITE_OK && is_there)
        code = read_number(db, "SELECT value FROM pawl_meta WHERE key = 'schema'", out);
    return code;
}

pawl_status schema_read(sqlite3 *db, struct scope *scope, struct schema *out)
{
    int64_t number = 0, user_version = 0;
    int code = read_number(db, "PRAGMA application_id", &number);

    if (code == SQLITE_OK)
        code = read_number(db, "PRAGMA user_version", &user_version);
    out->application_id = (int32_t)number;
    out->user_version = (int32_t)user_version;
    out->is_hosted = number != SQLITE_APPLICATION_ID;
    if (code == SQLITE_OK && out->is_hosted)
        code = read_hosted(db, &user_version);
    if (code != SQLITE_OK)
        return sqlite_fail(scope, db, "reading the header");
    out->version = user_version > 0 && user_version <= UINT32_MAX ? (uint32_t)user_version : 0;
    return PAWL_OK;
}

/* What says which migrations a host's file has, and the numbers that are the host's own. */
static int put_hosted(sqlite3 *db, const struct schema *schema)
{
    char text[256];

    snprintf(text, sizeof text,
             "PRAGMA application_id = %d; PRAGMA user_version = %d;"
             "INSERT OR REPLACE INTO pawl_meta VALUES ('schema', %u)",
             (int)schema->application_id, (int)schema->user_version, sqlite_schema_version());
    return sqlite3_exec(db, text, NULL, NULL, NULL);
}

static int apply_some(sqlite3 *db, uint32_t from, uint32_t to, bool is_hosted)
{
    int code = SQLITE_OK;

    for (uint32_t i = from; i < to && code == SQLITE_OK; i++) {
        uint64_t number = 0; /* "002_views.sql" is the second */
        bool is_seed;        /* it makes things whose names a host may want for itself */

        ASSERT(str_to_u64((str){ sqlite_schema[i][0].data, 3 }, &number) && number == i + 1);
        is_seed = number == 9 || number == 13 || number == 21 || number == 24;
        if (!is_hosted || !is_seed)
            code = sqlite3_exec(db, sqlite_schema[i][1].data, NULL, NULL, NULL);
    }
    return code;
}

int schema_make(sqlite3 *db, uint32_t version, bool is_hosted)
{
    ASSERT(version <= sqlite_schema_version());
    if (version == sqlite_schema_version() && !is_hosted)
        return sqlite3_exec(db, sqlite_flat[0][1].data, NULL, NULL, NULL);
    return apply_some(db, 0, version, is_hosted);
}

pawl_status sqlite_migrate(struct sqlite_store *store, sqlite3 *db, struct scope *scope,
                           const struct schema *schema)
{
    uint32_t newest = sqlite_schema_version();
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    pawl_status status;

    ASSERT(schema->version <= newest);
    if (code == SQLITE_OK)
        code = schema->version == 0 ? schema_make(db, newest, schema->is_hosted)
                                    : apply_some(db, schema->version, newest, schema->is_hosted);
    if (code == SQLITE_OK && schema->is_hosted)
        code = put_hosted(db, schema);
    if (code == SQLITE_OK && schema->version == 0)
        code = sqlite_put_facts(store, db);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return PAWL_OK;
    status = sqlite_fail(scope, db, "migrating the store");
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
