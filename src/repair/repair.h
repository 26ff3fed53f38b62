/* repair.h - work on a store without an owner: rebuild the rows that follow from its log, replace
 * what FILE-head remembers, copy it into another backend. */
#ifndef PAWL_REPAIR_REPAIR_H
#define PAWL_REPAIR_REPAIR_H

#include "base/buf.h"
#include <pawl.h>

struct rebuild_options {
    bool (*progress)(void *context, const char *what, uint64_t done, uint64_t all);
    void *context;
};

/* Open the store at `url` as its owner, without an engine (which would act on what its rows say),
 * check the log, and rewrite the rows. IN_USE while another process owns it; if the log itself is
 * not valid nothing is written. Into `out`: {rebuilt, heads, steps, timers, waits, pauses, kept,
 * keys, differences, what: [...]}, or {rebuilt: false, what} . */
pawl_status rebuild_store(const char *url, const struct rebuild_options *options, struct buf *out,
                          pawl_error *error);

/* Makes FILE-head remember the log of the store at `url` as it is now. The previous line and the
 * name `who` stay in a line of their own there. Opened as above. Into `out`: {accepted, position,
 * what}: what was found; accepted is false if there was nothing to accept. */
pawl_status accept_head(const char *url, str who, struct buf *out, pawl_error *error);

/* Copies the store at `from` into a new one at `to`: same store id, positions and roots. The copy
 * is checked, and its other rows are made from its log; leases of workers are not copied. IN_USE
 * while a process owns either; CONFLICT: there is a store at `to`. Into `out`: {copied, records,
 * instances, values, store_id, root, shards (if several)}, or copied: false with what and
 * position. */
pawl_status copy_store(const char *from, const char *to, const struct rebuild_options *options,
                       struct buf *out, pawl_error *error);

#endif
