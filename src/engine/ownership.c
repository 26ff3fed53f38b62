/* ownership.c - a store that several nodes serve: this one begins to own it, or gives it up, while
 * its callers go on reading. docs/internals/cluster.md says who decides that.
 *
 * An engine that does not own reads the store at each call, and writes nothing (its store answers
 * IN_USE). The caller of these two lets no call in that writes or claims. */
#include "engine/parts.h"

/* What was remembered follows from a log that others have gone on with. By the drain. */
static void forget_rows(struct engine *engine)
{
    ASSERT_DRAINING(engine);
    guard_lock(&engine->lock);
    heads_clear(&engine->writer.heads);
    guard_unlock(&engine->lock);
    engine->actors.generation++;
    intern_clear(&engine->writer.interned);
}

/* No thread of ours runs, no call is under way: what is left are events whose causes are in the
 * store, for its next owner. */
static void forget_work(struct engine *engine)
{
    guard_lock(&engine->lock);
    mail_drop_all(engine);
    steps_forget_all(engine);
    engine->actors.mail_under_way = 0;
    engine->actors.ended_count = engine->actors.ended_told = 0;
    engine->actors.ended_lost = false;
    engine->clock.next_due_ms = engine->clock.next_wall_ms = INT64_MAX;
    guard_unlock(&engine->lock);
}

static pawl_status begin_owning(struct engine *engine, struct scope *scope)
{
    forget_rows(engine);
    engine->options.own = true;
    engine->writer.broken = engine->writer.is_taken = false;
    guard_lock(&engine->lock);
    engine->clock.retention_is_stale = true; /* others may have put instances on its list */
    guard_unlock(&engine->lock);
    TRY(recover(engine, scope));
    clock_follow_tip(engine);
    return PAWL_OK;
}

pawl_status engine_own(struct engine *engine, struct scope *scope, engine_owning take,
                       void *context)
{
    pawl_status status;

    ASSERT(!engine->options.own);
    shell_take_drain(engine);
    status = take(context, engine->store, scope);
    if (status == PAWL_OK)
        status = begin_owning(engine, scope);
    shell_give_drain(engine);
    if (status == PAWL_OK && engine->options.own) {
        engine_ask_witness(engine, scope);
        clock_realign(engine, scope);
        wakes_look(engine);
        status = quotas_recover(engine, scope);
    }
    if (status == PAWL_OK && engine->options.own)
        status = recover_steps(engine, scope);
    if (status == PAWL_OK && engine->options.workers && !shell_start(engine))
        status = scope_fail(scope, PAWL_NO_MEMORY, "could not start %u threads",
                            engine->options.workers + 2);
    return status;
}

/* What was queued is committed first, and rows that lag are written: the next owner has less to
 * read. A store that another has taken refuses both at once. */
static void finish(struct engine *engine)
{
    shell_stop(engine);
    guard_lock(&engine->lock);
    while (engine_work(engine, NULL, WORK_WAITING))
        continue;
    guard_unlock(&engine->lock);
    if (!engine->writer.broken)
        engine_sweep(engine);
}

pawl_status engine_disown(struct engine *engine, struct scope *scope, engine_owning give,
                          void *context)
{
    pawl_status status;

    ASSERT(engine->options.own);
    engine_claims_end(engine);
    finish(engine);
    shell_take_drain(engine);
    status = give(context, engine->store, scope);
    engine->options.own = false;
    engine->writer.broken = engine->writer.is_taken = false;
    engine->actors.has_amends = true;
    commit_note_success(engine); /* what failed is the next owner's to try */
    forget_rows(engine);
    shell_give_drain(engine);
    forget_work(engine);
    shell_again(engine);
    return status;
}

bool engine_owns(const struct engine *engine)
{
    return engine->options.own;
}

bool engine_is_taken(const struct engine *engine)
{
    return engine->writer.is_taken;
}
