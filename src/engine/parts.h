/* parts.h - an engine: its six parts, and what they share. Private to src/engine.
 *
 *   writer.h    requests become commits, in one drain
 *   actors.h    flows and code: what is remembered of them, one decision in flight each
 *   work.h      steps that run here or are claimed, and their leases
 *   clock.h     the store's clock and what falls due by it
 *   registry.h  definitions, types of code, reduces, rights
 *   queries.h   what callers read
 *   shell.h     threads, and callers that wait; the six others know none
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
#include "engine/shell.h"
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
    _Atomic bool stopping; /* threads but the drain end as soon as they can */

    struct writer writer;
    struct actors actors;
    struct work work;
    struct clock clock;
    struct registry registry;
    struct shell shell;
};

/* A unit of work of these kinds, if there is one (tick.c). The lock is held, and released
 * meanwhile. `scope`: for WORK_TIMERS, which clears it. */
enum work_kind {
    WORK_TURNS = 1,   /* instances with mail; ends of children; what met a failing store */
    WORK_COMMITS = 2, /* what is queued */
    WORK_LED = 4,     /* the same, if that is for this thread to do */
    WORK_QUICK = 8,   /* tools that take no time */
    WORK_TOOLS = 16,  /* all tools, and steps that wait for one */
    WORK_TIMERS = 32, /* what falls due */
    WORK_ROWS = 64,   /* rows that lag; a store that failed */
    WORK_WAITING = WORK_TURNS | WORK_LED, /* by a caller that waits */
};
bool engine_work(struct engine *engine, struct scope *scope, unsigned kinds);

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

/* Rows that an instance may have, but for that of a pause. An amended one goes on by a plan that
 * its definition does not know. */
static inline unsigned live_rows_of(const struct engine *engine,
                                    const struct definition *definition)
{
    if (definition->kind == KIND_MACHINE)
        return ROWS_TIMERS;
    return engine->actors.has_amends ? ROWS_ALL & ~(unsigned)ROWS_PAUSE : definition->live_rows;
}

static inline bool family_is_possible(const struct engine *engine,
                                      const struct definition *definition)
{
    return (live_rows_of(engine, definition) & ROWS_CHILDREN) != 0;
}

#endif
