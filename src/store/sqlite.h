/* sqlite.h - where a host meets our SQLite: its connection, and its statements in our commits. */
#ifndef PAWL_STORE_SQLITE_H
#define PAWL_STORE_SQLITE_H

#include "store/store.h"

struct sqlite3;

/* Join a host's connection: its file holds our tables from now on, and a turn that falls into a
 * transaction of the host's is a part of that one (contracts (1) and (2) then speak of the host's
 * COMMIT; a rollback of the host's takes back what commit() had accepted). One thread at a time,
 * the one that uses the connection. INVALID_REQUEST names what is wrong with the connection;
 * IN_USE, OVERLOADED. `options->own` must be false. store_close() leaves the connection to the
 * host. */
pawl_status store_attach(struct sqlite3 *connection, const struct store_options *options,
                         struct scope *scope, struct store **out);

/* Something of the host's own that is done with the commit, or undoes it. A store in memory calls
 * it without a database. */
#define REDUCE_WORDS 400
struct reduce {
    const char *name, *args;
    bool (*run)(void *context, struct sqlite3 *db, const char *args, char *words, size_t size);
    void *context;
    bool has_failed; /* out: it was the cause that nothing was committed */
};

/* Calls it, for a store. False: `words` may say why, and end in NUL. */
bool reduce_run(const struct reduce *reduce, struct sqlite3 *db, char words[REDUCE_WORDS]);
/* Is this thread inside one? Then it must not wait for a commit: it is in one. */
bool reduce_is_under_way(void);

#endif
