/* quotas.h - limits of what works at once or begins in a time (work/quotas.c, quota_look.c,
 * writer/quota_recover.c). Private to src/engine; part of work.h, under the engine's lock.
 *
 * Rules:
 *  (1) A step is started only with a place in each of its buckets. It keeps them until its row
 *      is deleted; an instance keeps its own until it ends.
 *  (2) Places are taken in one order, and a step that waits for one keeps those that it has.
 *  (3) A rate counts any span of its length: the times of the last `max` starts are remembered.
 *  (4) All that is counted can be counted again from rows and log: quotas_recover(). */
#ifndef PAWL_ENGINE_QUOTAS_H
#define PAWL_ENGINE_QUOTAS_H

#include "base/guard.h"
#include "base/map.h"
#include "flow/flow.h"

struct actor;
struct batch;
struct job;
struct ready_step;

#define QUOTAS_MAX          (FLOW_QUOTAS + 2) /* of a flow, of its step, and of its tool */
#define QUOTA_NONE          UINT32_MAX
#define QUOTA_WITH_INSTANCE (UINT32_MAX - 1) /* in place of a bucket: its instance waits */

/* One limit of an attempt. What has the same name is counted together. */
struct quota {
    str name;
    uint32_t max;
    int64_t per_ms; /* 0: of what works at once */
    bool is_of_flow; /* it counts instances */
};
struct quota_set {
    struct quota items[QUOTAS_MAX];
    uint32_t count;
    int32_t priority;
};

struct quota_bucket {
    str name; /* data NULL: it is free, and `next` the next free one */
    uint64_t hash;
    uint32_t next; /* with the same hash */
    uint32_t max;
    int64_t per_ms;
    uint32_t held;   /* places that are taken */
    uint32_t let_in; /* rates: steps that may begin, and have not yet */
    int64_t *starts; /* rates: a ring of times, by the leases' clock */
    uint32_t first_start, start_count, start_capacity;
    struct ready_step *waiting;
};

/* What an attempt has, or waits for; ordinal 0: its instance. */
struct quota_hold {
    uint64_t instance;
    uint32_t ordinal;
    uint32_t next; /* with the same key; of a free one: the next free one */
    uint32_t buckets[QUOTAS_MAX];
    uint32_t bucket_count;
    uint32_t waits_in; /* a bucket, QUOTA_WITH_INSTANCE or QUOTA_NONE */
    uint32_t let_into; /* a bucket of a rate that lets it in, from 1; 0: none */
    bool has_begun;    /* its rates have counted it */
    uint32_t first;         /* of an instance: its attempts ... */
    uint32_t before, after; /* ... in a list */
    uint32_t queue; /* while it waits: where it waited before ... */
    uint64_t since; /* ... and since when */
    int32_t priority;
};

struct quotas {
    struct quota_bucket *buckets;
    uint32_t bucket_count, bucket_capacity, free_bucket;
    uint32_t sweep_at; /* with so many, those that say nothing go */
    struct map bucket_places;
    struct quota_hold *holds;
    uint32_t hold_count, hold_capacity, free_hold;
    struct map hold_places;
    bool is_suspect; /* a commit's outcome was not known: quotas_mend() */
    int64_t next_ms; /* none that waits may begin before, by the leases' clock; INT64_MAX: none */
};

/* An attempt that is about to be started. */
struct quota_step {
    uint64_t instance;
    uint32_t ordinal;
    const struct quota_set *quotas;
    bool may_wait;  /* else it stays where it is */
    bool is_forced; /* it is under way: rates do not count it again */
    uint32_t queue; /* to which it returns: a tool's, or QUOTA_HERE */
    uint64_t since;
};
#define QUOTA_HERE UINT32_MAX
enum quota_verdict { QUOTA_TAKEN, QUOTA_WAITS, QUOTA_LATER, QUOTA_NO_MEMORY };

/* quotas.c */
void quotas_init(struct engine *engine);
void quotas_fini(struct engine *engine);
void quotas_forget(struct engine *engine); /* all: another process owns the store */
enum quota_verdict quotas_take(struct engine *engine, const struct quota_step *step);
void quotas_committed(struct engine *engine, const struct batch *batch); /* what has ended */
void quotas_amended(struct engine *engine, uint64_t instance); /* it may have other limits now */
/* The attempt does not begin now. Lock not held. */
void quotas_leave(struct engine *engine, uint64_t instance, uint32_t ordinal);
/* The row of it is gone; ordinal 0: the instance has ended. */
void quotas_give_back(struct engine *engine, uint64_t instance, uint32_t ordinal);
void quotas_open(struct engine *engine);       /* those whose time has come */
bool quotas_count_start(struct engine *engine, const struct quota *quota, int64_t ago_ms);
void quotas_have_begun(struct engine *engine, uint64_t instance, uint32_t ordinal);
/* What an attempt waits for; NULL: nothing. The bucket lives until the lock is released. */
const struct quota_bucket *quotas_blocking(struct engine *engine, uint64_t instance, uint32_t ordinal);

/* quota_rate.c */
void bucket_forget_starts(struct quota_bucket *bucket, int64_t at_ms);
/* False: no memory. */
bool bucket_note_start(struct engine *engine, struct quota_bucket *bucket, int64_t at_ms);
/* Places that are free; those that were let in and have not begun yet are not. */
uint32_t bucket_room(struct quota_bucket *bucket, int64_t at_ms);
/* When the next may begin in a bucket where one waits: INT64_MAX: when another one has ended. */
int64_t bucket_opens_ms(const struct quota_bucket *bucket);

/* quota_look.c. Lock not held. */
/* Limits by what they are of; they are added. */
pawl_status quotas_add_flow(struct scope *scope, str definition, const struct flow_quotas *quotas,
                            struct quota_set *out);
pawl_status quotas_add_tool(struct engine *engine, struct scope *scope, str tool,
                            struct quota_set *out);
/* The limits of an attempt, by its memory; texts live in the scope. */
pawl_status quotas_of(struct engine *engine, struct actor *actor, uint32_t ordinal, str tool,
                      struct scope *scope, struct quota_set *out);
/* The same, and its places are taken. LEASE_LOST: it waits for one, and needs not be remembered. */
pawl_status quotas_admit(struct engine *engine, struct actor *actor, const struct job *job,
                         const struct quota_step *step, struct scope *scope);
/* Of what becomes ready: its limits, and whether its places can be taken in this decision yet. */
pawl_status quotas_of_next(struct engine *engine, struct actor *actor, const struct job *job,
                           struct scope *scope, struct quota_set *out, bool *may_take);
/* May it be started in the same decision? Its places are taken. */
bool quotas_admit_next(struct engine *engine, const struct actor *actor, uint32_t ordinal,
                       const struct quota_set *set);
/* Of an attempt that becomes ready. */
int32_t quotas_priority(struct engine *engine, const struct actor *actor, uint32_t ordinal);
/* What an attempt waits for, as JSON: {"limit":"rate","definition","step" or "tool","key","max",
 * "per_ms"}; data NULL: for no limit. */
pawl_status quotas_explain(struct engine *engine, struct scope *scope, uint64_t instance,
                           uint32_t ordinal, str *out);

/* writer/quota_recover.c: when a store is opened, before anything runs: what is under way, and
 * what began lately. */
pawl_status quotas_recover(struct engine *engine, struct scope *scope);
/* Of these, what is under way; once more is not counted twice. */
pawl_status quotas_recover_running(struct engine *engine, struct scope *scope);

/* quota_mend.c: after an unknown outcome. What has its turn just now is left to another call. */
void quotas_doubt(struct engine *engine);
bool quotas_are_doubted(const struct engine *engine);
pawl_status quotas_mend(struct engine *engine, struct scope *scope);

#endif
