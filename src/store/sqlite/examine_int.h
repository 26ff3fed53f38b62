/* examine_int.h - private to examine.c and examine_copies.c. */
#ifndef PAWL_STORE_SQLITE_EXAMINE_INT_H
#define PAWL_STORE_SQLITE_EXAMINE_INT_H

#include "sqlite_int.h"

struct examining {
    struct sqlite_store *store;
    sqlite3 *db;
    struct scope *scope;
    bad_row_fn fn;
    void *context;
};

typedef pawl_status (*examine_fn)(void *context, sqlite3_stmt *statement);

/* `fn` gets each row. INVALID_REQUEST: it cannot be prepared. */
pawl_status examine_run(const struct examining *examining, const char *text, examine_fn fn,
                        void *context);
/* Reports a finding at a position or at an instance (0: neither), and returns what the caller says.
 */
pawl_status examine_bad(const struct examining *examining, uint64_t pos, uint64_t instance,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
str examine_text(sqlite3_stmt *statement, int column); /* until the next step; NULL is "" */

/* examine_copies.c */
pawl_status examine_definitions(struct examining *examining);
pawl_status examine_labels(struct examining *examining);

#endif
