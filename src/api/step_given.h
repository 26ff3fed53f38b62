/* step_given.h - what an attempt was given, where no memory is near: worked out from the entries
 * that its arguments are made from. */
#ifndef PAWL_API_STEP_GIVEN_H
#define PAWL_API_STEP_GIVEN_H

#include "api/ops_int.h"
#include "flow/flow.h"

struct step_given {
    struct engine *engine;
    const struct instance_view *view;
    const void *later;           /* a memory as it was after a later entry; NULL: not known */
    struct scope *kept;          /* lasts as long as this */
    struct last_result *results; /* by step; NULL: not asked yet */
    /* The look back for some of them. */
    const struct flow_sources *sources;
    uint64_t known; /* they are up to this entry */
    struct scope record;
    pawl_status seen;
};

/* *is_known false: only the whole memory can tell. Attempts are asked for in their order. */
pawl_status step_given_read(struct step_given *given, const struct flow_attempt *attempt,
                            struct scope *scope, struct flow_call *out, bool *is_known);

#endif
