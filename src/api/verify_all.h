/* verify_all.h - the check of a store, for a surface that shows how far it has come. */
#ifndef PAWL_API_VERIFY_ALL_H
#define PAWL_API_VERIFY_ALL_H

#include "base/buf.h"
#include <pawl.h>

struct verify_options {
    str definition; /* NAME or NAME@VERSION: its instances; data NULL: the whole store */

    /* How far it is with its "records", "instances" or "values". False: stop soon. */
    bool (*progress)(void *context, const char *what, uint64_t done, uint64_t all);

    /* For the whole store: see evidence/evidence.h. */
    uint64_t limit, keep_every;
    str checkpoint; /* that `keep` was given once: go on from there; data NULL: begin */
    void (*keep)(void *context, str checkpoint);
    void *context;
};

/* The members of store.verify's answer into `out`: {valid, records, entries, instances, root?,
 * first_bad?, what?, instance_id?, position?}; where a check went on, `resumed_at` or, if the
 * checkpoint could not be used, `not_resumed`. One that was stopped has no `valid`, but
 * `stopped_at` and `last`. Fails only where the store cannot be read; NOT_KNOWN for a
 * definition. */
pawl_status verify_all(pawl *p, const struct verify_options *options, struct buf *out,
                       pawl_error *error);

/* A file with a trigger on our tables is not opened. To verify, that error is a finding. */
bool verify_is_finding(const pawl_error *error);

#endif
