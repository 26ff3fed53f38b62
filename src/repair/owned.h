/* owned.h - private to repair: a store opened as its owner, without an engine, for one repair. */
#ifndef PAWL_REPAIR_OWNED_H
#define PAWL_REPAIR_OWNED_H

#include "base/scope.h"
#include "store/store.h"

struct owned {
    struct env *env;
    struct store *store;
    struct scope scope;
};

/* IN_USE: another process owns it. owned_close() in either case. */
pawl_status owned_open(struct owned *owned, const char *url);
/* Returns `status`; if that is not OK, *error is the scope's error. */
pawl_status owned_close(struct owned *owned, pawl_status status, pawl_error *error);

#endif
