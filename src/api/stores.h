/* stores.h - the stores beside the one that was opened: made, listed, opened when they are used
 * and closed when they rest.
 *
 * They are independent (D1): each has its own file, ids, definitions, keys, alarms, tokens, clock
 * and owner. What holds:
 *  (1) A store is open at most once in this process, and only while it is in this list.
 *  (2) Between store_enter() and store_leave() it stays open.
 *  (3) One that is closed is opened again before anything in it falls due. */
#ifndef PAWL_API_STORES_H
#define PAWL_API_STORES_H

#include "base/scope.h"
#include "store/beside.h"
#include <pawl.h>

/* Called on the thread that opens or closes; only users of that store wait for it. */
struct store_hooks {
    pawl_status (*opened)(void *context, pawl *p, pawl_error *error); /* before it is used */
    void (*closing)(void *context, pawl *p);                          /* it has no users any more */
    void *context;
};
void stores_set_hooks(pawl *p, const struct store_hooks *hooks); /* NULL: none */

/* Make a store; *is_new: there was none. INVALID_REQUEST: no name. */
pawl_status stores_put(pawl *p, struct scope *scope, str name, bool *is_new);

/* All of them: the default first, then the others in byte order. */
pawl_status stores_names(pawl *p, struct scope *scope, str **out, uint32_t *count);

/* The store `name`, opened if need be; the default is `p` itself. NOT_KNOWN; OVERLOADED: too many
 * are in use. */
pawl_status store_enter(pawl *p, struct scope *scope, str name, pawl **out);
/* The same if that takes no time; NULL: it is not open. */
pawl *store_enter_open(pawl *p, str name);
void store_leave(pawl *p); /* of store_enter(); any other is left alone */

/* Look at every store that is there: what fell due while it was closed, or was under way at a
 * death, waits for that. It is done by stores_tend(). */
pawl_status stores_wake(pawl *p, struct scope *scope);

/* Open what falls due, close what rests. To be called every second or so, by one thread. */
void stores_tend(pawl *p);

/* No claim waits any more, in any that is open: their server is about to stop. */
void stores_end_claims(pawl *p);

uint32_t stores_open_count(pawl *p); /* beside the first */

#endif
