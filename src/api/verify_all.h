/* verify_all.h - the check of a whole store, for a surface that shows how far it has come. */
#ifndef PAWL_API_VERIFY_ALL_H
#define PAWL_API_VERIFY_ALL_H

#include "base/buf.h"
#include <pawl.h>

typedef void (*verify_progress)(void *context, uint64_t pos, uint64_t last);

/* The answer of the operation store.verify into `out`: {valid, records, entries, instances,
 * first_bad?, what?, instance_id?, position?}. `progress` may be NULL. Fails only where the store
 * cannot be read. */
pawl_status verify_all(pawl *p, verify_progress progress, void *context, struct buf *out,
                       pawl_error *error);

#endif
