/* migrate.c - numbered migrations, embedded from schema/: all that are missing, or none. */
#include "base/assert.h"
#include "sqlite_int.h"

uint32_t sqlite_schema_version(void)
{
    uint32_t count = 0;

    while (sqlite_schema[count][0].data)
        count++;
    return count;
}

/* "002_views.sql" is the second. */
static void check_number(uint32_t index)
{
    str name = sqlite_schema[index][0];
    uint64_t number = 0;

    ASSERT(name.size > 4);
    ASSERT(str_to_u64((str){ name.data, 3 }, &number));
    ASSERT(number == index + 1);
}

pawl_status sqlite_migrate(sqlite3 *db, struct scope *scope, uint32_t version)
{
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    uint32_t newest = sqlite_schema_version();
    pawl_status status;

    ASSERT(version <= newest);
    for (uint32_t i = version; i < newest && code == SQLITE_OK; i++) {
        check_number(i);
        code = sqlite3_exec(db, sqlite_schema[i][1].data, NULL, NULL, NULL);
    }
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return PAWL_OK;
    status = sqlite_fail(scope, db, "migrating the store");
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
