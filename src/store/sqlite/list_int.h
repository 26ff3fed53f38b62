/* list_int.h - private to list.c and list_plan.c: a list on its way. */
#ifndef PAWL_STORE_SQLITE_LIST_INT_H
#define PAWL_STORE_SQLITE_LIST_INT_H

#include "tail.h"

/* Which index gives the numbers. Definitions: one statement for each, and their numbers merged. */
enum driver { BY_SUBJECT, BY_CORRELATION, BY_LABEL, BY_RUNNING, BY_PAUSED, BY_ENDED, BY_DEFINITION, BY_NUMBER };

#define DEFINITIONS_MERGED 16 /* where more of them match, all instances are looked at */

struct listing {
    struct sqlite_store *store;
    struct scope *scope;
    const struct list_query *query;
    struct connection *connection; /* the reader, or one of its own */
    enum driver driver;
    uint32_t definitions[DEFINITIONS_MERGED + 1];
    uint32_t definition_count;
    uint32_t label; /* the one that drives */
    uint64_t first; /* of the numbers that can match */
    bool by_state;  /* states have to be looked at */
    unsigned terminals;
    bool by_end;                  /* and where in the log it ended: between these, inclusive */
    uint64_t end_first, end_last;
    struct tail tail;
    struct map fitting;  /* definition and state -> is it one that is asked for? */
    sqlite3_stmt *state; /* its name and kind; the connection's */
    uint64_t *numbers;
    uint32_t count;
};

/* Choose what drives, and where the numbers that can match begin. */
pawl_status list_plan(struct listing *listing);

#endif
