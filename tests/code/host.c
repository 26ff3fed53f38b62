/* host.c - a full pawl that has the rows which combat changes, and no code of its own: modules of all languages run in it. */
#include <pawl_main.h>
#include <sqlite3.h>

static bool apply_damage(void *context, struct sqlite3 *db, const char *args, char *words,
                         size_t size)
{
    char *sql = sqlite3_mprintf(
        "CREATE TABLE IF NOT EXISTS hit (args TEXT); INSERT INTO hit VALUES (%Q)", args);
    bool done = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;

    (void)context;
    if (!done)
        sqlite3_snprintf((int)size, words, "no damage done: %s", sqlite3_errmsg(db));
    sqlite3_free(sql);
    return done;
}

static pawl_status opened(void *context, pawl *p, pawl_error *error)
{
    return pawl_reduce_register(p, "apply_damage", apply_damage, context, error);
}

int main(int argc, char **argv)
{
    return pawl_main_with(argc, argv, NULL, opened, NULL);
}
