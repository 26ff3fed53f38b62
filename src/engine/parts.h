/* parts.h - an engine: its six parts, and what they share. Private to src/engine.
 *
 *   writer.h    requests become commits, in one drain
 *   actors.h    flows and code: what is remembered of them, one decision in flight each
 *   work.h      steps that run here or are claimed, and their leases
 *   clock.h     the store's clock and what falls due by it
 *   registry.h  definitions, types of code, reduces, rights
 *   queries.h   what callers read
 *
 * Each part has a struct of its own, under the lock that its header names; most of them share the
 * engine's. A lock is taken in this order: the engine's, the registry's, one of a part's own. */
#ifndef PAWL_ENGINE_PARTS_H
#define PAWL_ENGINE_PARTS_H

#include "base/assert.h"
#include "base/grow.h"
#include "engine/actors.h"
#include "engine/clock.h"
#include "engine/health.h"
#include "engine/queries.h"
#include "engine/registry.h"
#include "engine/work.h"
#include "engine/writer.h"

struct engine {
    struct engine_options options;
    const struct heap *heap;
    struct env *env;
    struct store *store;
    struct toolbox *toolbox;
    struct health *health; /* health.h */

    struct guard lock;
    pthread_cond_t changed; /* mail done, jobs queued, the drain free */
    _Atomic bool stopping;  /* threads but the drain end as soon as they can */
    pthread_t *threads;
    uint32_t thread_count;

    struct writer writer;
    struct actors actors;
    struct work work;
    struct clock clock;
    struct registry registry;
};

/* What a function relies on; checked in every build. */
#define ASSERT_LOCKED(engine)   ASSERT_HOLDS(&(engine)->lock)
#define ASSERT_UNLOCKED(engine) ASSERT_RELEASED(&(engine)->lock)
#define ASSERT_DRAINING(engine) \
    ASSERT_THREAD(thread_is_self(&(engine)->writer.drainer), "this thread drains")
#define ASSERT_LOCKED_OR_DRAINING(engine)                                                 \
    ASSERT_THREAD(thread_is_self(&(engine)->lock.owner) || thread_is_self(&(engine)->writer.drainer), \
                  "this thread holds the lock, or drains")

/* Did we fail, and not what was asked for? */
static inline bool status_is_ours(pawl_status status)
{
    return status == PAWL_NO_MEMORY || status == PAWL_STORAGE_FAILURE ||
           status == PAWL_OUTCOME_UNKNOWN;
}

/* ... or was the engine busy? The same call may succeed later. */
static inline bool status_is_passing(pawl_status status)
{
    return status_is_ours(status) || status == PAWL_IN_USE || status == PAWL_OVERLOADED;
}

/* An amended instance goes on by a plan that its definition does not know. */
static inline bool family_is_possible(const struct engine *engine,
                                      const struct definition *definition)
{
    return definition->may_spawn || (definition->kind != KIND_MACHINE && engine->actors.has_amends);
}

#endif
