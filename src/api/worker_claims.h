/* worker_claims.h - a worker's claim on all shards of a store: steps are given by any of them, and
 * no more than it asked for by all together.
 *
 * Each shard has a waiting claim (engine/workers.h). The first that has something wakes the call;
 * then all are taken, and what is still being committed for one is waited for. */
#ifndef PAWL_API_WORKER_CLAIMS_H
#define PAWL_API_WORKER_CLAIMS_H

#include "api/ops.h"
#include "engine/workers.h"

struct claim_sleeper;
struct claim_wait;

/* On one shard. */
struct shard_claim {
    struct claim_wait *of;
    struct engine *engine;
    struct waiting_claim *waiting;
    bool is_over; /* it has given what it will give */
};

struct claim_wait {
    struct op_wait wait; /* first */
    struct op_call *call;
    struct shard_claim *shards; /* NULL: a turn that claims nothing */
    uint32_t shard_count;
    struct claim_budget budget;
    struct claimed *claimed; /* what it has so far */
    uint32_t count;
    pawl_status failed; /* the first that one of them failed with, and its words */
    pawl_error error;
    uint32_t first;                /* the shard that is asked first, and then its followers */
    _Atomic int state;             /* enum claim_state */
    struct claim_sleeper *sleeper; /* the calling thread waits; NULL: it does not */
};

/* Lives in the call's scope. */
pawl_status claim_open(struct op_call *call, const struct claim_args *args, struct claim_wait *out);
/* The one that what is answered to this shard may be given to at once; NULL: it claims nothing, or
 * steps of another shard have waited long enough. */
struct shard_claim *claim_on(struct claim_wait *claim, const pawl *shard);
/* Wakes the call for another reason than a step. claim_will_wait() comes before. */
struct waiter claim_waiter(struct claim_wait *claim);
void claim_will_wait(struct claim_wait *claim);

/* What there is, or nothing yet: then it waits, without a thread if the call has a waiter. The end
 * of every answer that a claim is a part of: `steps`. */
pawl_status claim_run(struct op_call *call, struct claim_wait *claim, bool is_stopping,
                      struct buf *out);
void claim_print(struct op_call *call, const struct claim_wait *claim, struct buf *out);

#endif
