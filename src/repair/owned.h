/* owned.h - private to repair: a store opened as its owner, without an engine, for one repair; with
 * all of its shards. */
#ifndef PAWL_REPAIR_OWNED_H
#define PAWL_REPAIR_OWNED_H

#include "base/scope.h"
#include "store/store.h"

struct owned {
    struct env *env;
    struct store *store;   /* the home shard */
    struct store **shards; /* all of them, that one first */
    uint32_t count;
    struct store_tip tip; /* of the home shard, when it was opened */
    struct scope scope;
};

/* IN_USE: another process owns it. owned_close() in either case. */
pawl_status owned_open(struct owned *owned, const char *url);
/* The same; a store that is missing is made: with this id (NULL: a new one) and so many shards. One
 * that is there keeps its own. */
pawl_status owned_make(struct owned *owned, const char *url, const uint8_t *store_id,
                       uint32_t shards);
/* Returns `status`; if that is not OK, *error is the scope's error. */
pawl_status owned_close(struct owned *owned, pawl_status status, pawl_error *error);

#endif
