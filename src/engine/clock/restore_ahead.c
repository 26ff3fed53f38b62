/* restore_ahead.c - flows and code whose timers fall due soon are restored before that, while the
 * thread that fires has nothing else to do: restoring is much of what waking an instance costs.
 *
 * It is a hint and fires nothing: what was not restored in time is restored when its timer fires.
 * Memory is bounded, by instances and by bytes. */
#include "engine/parts.h"

#define AHEAD_MS    2000 /* the thread rests for at most a second, so at least one is left */
#define AHEAD_MOST  12288u
#define AHEAD_BYTES (16u << 20)

/* Deadlines of machines have nothing to restore. */
static uint32_t leave_out_machines(struct engine *engine, struct scope *scope,
                                   struct live_timer *due, uint32_t count)
{
    struct definition_slot *slot;
    uint32_t left = 0;

    for (uint32_t i = 0; i < count; i++)
        if (due[i].definition && !definitions_get(engine, scope, due[i].definition, &slot) &&
            slot->definition->kind != KIND_MACHINE)
            due[left++] = due[i];
    return left;
}

/* The first of them, with one look at the store; returns how many were looked at. The lock is
 * released meanwhile. */
static uint32_t restore_some(struct engine *engine, const struct live_timer *due, uint32_t count,
                             size_t *bytes)
{
    struct actor *some[ACTORS_AT_ONCE], *actor;
    uint32_t taken = 0, seen = 0;

    ASSERT_LOCKED(engine);
    for (; seen < count && taken < ACTORS_AT_ONCE; seen++) {
        actor = actor_take_ahead(engine, due[seen].instance);
        if (actor)
            some[taken++] = actor;
    }
    guard_unlock(&engine->lock);
    actors_load(engine, some, taken);
    guard_lock(&engine->lock);
    for (uint32_t i = 0; i < taken; i++) {
        *bytes += some[i]->arena.used;
        actor_release(engine, some[i]);
    }
    return seen;
}

/* What falls due by one of the clocks until then. It ends when something is due, or when a turn
 * waits that this thread has to take. */
static void restore_until(struct engine *engine, struct scope *scope, bool wall, int64_t until_ms)
{
    struct live_timer *due;
    size_t bytes = 0;
    uint32_t count = 0, seen = 0;

    ASSERT_LOCKED(engine);
    guard_unlock(&engine->lock);
    scope_clear(scope);
    if (!store_due(engine->store, scope, wall, until_ms, AHEAD_MOST, &due, &count))
        count = leave_out_machines(engine, scope, due, count);
    guard_lock(&engine->lock);
    while (seen < count && bytes < AHEAD_BYTES && !timers_are_due(engine) &&
           !actors_are_runnable(engine) && !engine->stopping)
        seen += restore_some(engine, due + seen, count - seen, &bytes);
}

/* It looks when half of the time is over that it has looked ahead. */
bool timers_restore_ahead(struct engine *engine, struct scope *scope)
{
    struct moment now = clock_read(engine);
    bool is_due = timers_next_due(engine) <= now.at_ms + AHEAD_MS;

    ASSERT_LOCKED(engine);
    if (!engine->options.own || engine->options.test_clock ||
        now.at_ms + AHEAD_MS / 2 < engine->clock.restored_until_ms ||
        (!is_due && !actors_are_ahead(engine)))
        return false;
    actors_forget_ahead(engine);
    if (is_due) {
        engine->clock.restored_until_ms = now.at_ms + AHEAD_MS;
        restore_until(engine, scope, false, now.at_ms + AHEAD_MS);
        restore_until(engine, scope, true, now.wall_ms + AHEAD_MS);
    }
    return true;
}
