/* events.h - following a store: its entries in commit order, for surfaces that stream them.
 *
 * The operations `events` and `instance.events` say where a stream begins. A surface
 * reads on from there, and is woken after each commit. An entry is never reported before it is
 * durable. Reading on from the position that was reached neither skips nor repeats an entry. */
#ifndef PAWL_API_EVENTS_H
#define PAWL_API_EVENTS_H

#include "base/buf.h"
#include "base/ids.h"
#include "base/scope.h"
#include <pawl.h>

/* `committed` is called after each commit, on a thread that must not be held up: it may wake a
 * thread, no more. NULL ends the watching of this context; after that call has returned it is not
 * called any more. False: too many watch already. */
bool events_watch(pawl *p, void (*committed)(void *context, uint64_t position), void *context);
uint64_t events_position(pawl *p); /* of the last record that is durable */

/* What lives for that call. */
struct log_event {
    const char *kind; /* EVENT_ENTRY or EVENT_CREATED */
    uint64_t position, instance;
    str json;
};
#define EVENT_ENTRY   "entry"
#define EVENT_CREATED "created" /* only in the stream of all instances */
typedef pawl_status (*event_fn)(void *context, const struct log_event *event);

/* Events behind `after`: the entries of `instance` (an id), or the creations and entries of all
 * (""); about `limit` of them at most.
 * *reached: read on behind this. */
pawl_status events_read(pawl *p, struct scope *scope, const char *instance, uint64_t after,
                        uint32_t limit, event_fn fn, void *context, uint64_t *reached);

/* A position in the shape of an id: opaque, safe in a header and in a URL. */
void event_cursor_print(uint64_t position, char out[ID_SIZE + 1]);
bool event_cursor_parse(str text, uint64_t *position);

#endif
