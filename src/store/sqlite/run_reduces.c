/* run_reduces.c - the host's own statements inside our transaction: both are there, or neither
 * (E13).
 *
 * An authorizer keeps them from our tables and from the transaction itself. What it cannot see, a
 * conflict clause that rolls everything back or a statement left open, is looked for afterwards. */
#include "base/planted.h"
#include "sqlite_int.h"
#include "store/sqlite.h"
#include <strings.h>

static _Thread_local bool is_in_reduce;

bool reduce_run(const struct reduce *reduce, struct sqlite3 *db, char words[REDUCE_WORDS])
{
    bool ok;

    words[0] = '\0';
    is_in_reduce = true;
    ok = reduce->run(reduce->context, db, reduce->args, words, REDUCE_WORDS);
    is_in_reduce = false;
    words[REDUCE_WORDS - 1] = '\0';
    return ok;
}

bool reduce_is_under_way(void)
{
    return is_in_reduce;
}

static bool is_ours(const char *name)
{
    return name && strncasecmp(name, "pawl_", strlen("pawl_")) == 0;
}

static int authorize(void *context, int action, const char *first, const char *second,
                     const char *database, const char *within)
{
    (void)context;
    (void)database;
    (void)within;
    switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
    case SQLITE_PRAGMA:
        return SQLITE_DENY;
    default:
        return is_ours(first) || is_ours(second) ? SQLITE_DENY : SQLITE_OK;
    }
}

static bool has_open_statement(sqlite3 *db)
{
    for (sqlite3_stmt *at = sqlite3_next_stmt(db, NULL); at; at = sqlite3_next_stmt(db, at))
        if (sqlite3_stmt_busy(at))
            return true;
    return false;
}

/* The words of the host, of SQLite, or ours; NULL: all is well. */
static const char *run(sqlite3 *db, const struct reduce *reduce, char words[REDUCE_WORDS])
{
    bool ok;

    sqlite3_set_authorizer(db, authorize, NULL);
    ok = reduce_run(reduce, db, words);
    sqlite3_set_authorizer(db, NULL, NULL);
    if (sqlite3_get_autocommit(db))
        return "it ended the transaction";
    if (has_open_statement(db))
        return "it left a statement open; reset or finalize it";
    if (ok || PLANTED(REDUCE_KEPT))
        return NULL;
    return words[0] ? words : "it said no";
}

pawl_status write_reduces(struct sqlite_store *store, struct scope *scope,
                          const struct commit *commit)
{
    char words[REDUCE_WORDS];

    for (size_t i = 0; i < commit->reduce_count; i++) {
        struct reduce *reduce = &commit->reduces[i];
        const char *why = run(store->writer.db, reduce, words);

        reduce->has_failed = why != NULL;
        if (why)
            return scope_fail(scope, PAWL_CONFLICT, "reduce '%s': %s", reduce->name, why);
    }
    return PAWL_OK;
}
