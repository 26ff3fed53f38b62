/* tail.h - private to the SQLite store: where instances stand, for reads that look at many.
 *
 * Head rows are right up to the flushed position; the entries behind it are the newer truth.
 * A tail holds the last of them for each instance, read once, so that a scan of a million rows
 * asks memory and not the log. Rows and tail must be of one snapshot. */
#ifndef PAWL_STORE_SQLITE_TAIL_H
#define PAWL_STORE_SQLITE_TAIL_H

#include "base/map.h"
#include "read_int.h"

/* The state by the head row `h` of the instance `i`; one without a row is where it began. */
#define HEAD_STATE                                                                                 \
    "coalesce(h.state, (SELECT CAST(substr(d.compiled, instr(d.compiled, '\"initial\":') + 10, "   \
    "10)"                                                                                          \
    " AS INTEGER) FROM pawl_definition d WHERE d.id = i.definition), 0)"

/* Opens a connection for a read that may take long, with one snapshot for all of it. Closing the
 * connection ends the snapshot. */
pawl_status scan_open(struct sqlite_store *store, struct scope *scope, struct connection *out);

struct tail {
    struct map entries; /* instance -> the transition of its last entry */
    struct map places;  /* and how far behind the flushed position that entry is */
    uint64_t flushed;
    struct map targets; /* definition and transition -> the state it leads to */
    sqlite3_stmt *target; /* the connection's */
};

/* Reads the tail on a connection in a transaction. tail_end() must follow, also after a failure. */
pawl_status tail_begin(struct tail *tail, struct connection *connection, const struct heap *heap,
                       struct scope *scope);
void tail_end(struct tail *tail);

/* The position of an instance's last entry, where its head row says `row_pos`. */
uint64_t tail_pos(const struct tail *tail, uint64_t instance, uint64_t row_pos);

/* The state of an instance whose head row says `row_state`. */
pawl_status tail_state(struct tail *tail, struct scope *scope, uint64_t instance,
                       uint32_t definition, uint32_t row_state, uint32_t *out);

#endif
