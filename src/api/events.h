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
#include "model/shard.h"
#include <pawl.h>

/* `committed` is called after each commit, on a thread that must not be held up: it may wake a
 * thread, no more. NULL ends the watching of this context; after that call has returned it is not
 * called any more. False: too many watch already. */
bool events_watch(pawl *p, void (*committed)(void *context, uint64_t position), void *context);
void events_end(pawl *p, struct shard_vector *out); /* the last records that are durable */

/* What lives for that call. */
struct log_event {
    const char *kind; /* EVENT_ENTRY or EVENT_CREATED */
    uint32_t shard;
    uint64_t position, instance;
    const struct shard_vector *after; /* where a reader stands that has seen it */
    str json;
};
#define EVENT_ENTRY   "entry"
#define EVENT_CREATED "created" /* only in the stream of all instances */
typedef pawl_status (*event_fn)(void *context, const struct log_event *event);

/* Events behind *at: the entries of `instance` (an id), or the creations and entries of all (""),
 * about `limit` of each shard at most, and none behind `until` (NULL: to the end). *at moves with
 * each event that `fn` takes, and then to where there is no other: read on behind it. */
pawl_status events_read(pawl *p, struct scope *scope, const char *instance, struct shard_vector *at,
                        const struct shard_vector *until, uint32_t limit, event_fn fn,
                        void *context);

/* A position, or a number, of each shard as text: opaque, safe in a header and in a URL. That of a
 * store that is alone has the shape of an id. */
#define EVENT_CURSOR_SIZE SHARD_VECTOR_TEXT
void event_cursor_print(const struct shard_vector *at, struct buf *out);
bool event_cursor_parse(str text, uint32_t shards, struct shard_vector *out);

/* Has one that stands at `at` seen all up to `until`? */
bool vector_reaches(const struct shard_vector *at, const struct shard_vector *until);
/* Copies no more than there is: one that has few shards may be short. */
size_t vector_size(uint32_t shards);
void vector_copy(struct shard_vector *to, const struct shard_vector *from);

#endif
