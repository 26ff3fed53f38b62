/* fold.c - an event decided on top of what an actor remembers, and what it remembers then.
 *
 * Memory changes by what was decided, entry by entry, as it will be read back. */
#include "engine/parts.h"

/* Fold one draft into the actor's memory, as it will be read back. */
static pawl_status fold_draft(struct actor *actor, const struct draft *draft, int64_t at_ms,
                              struct scope *scope)
{
    const struct definition *definition = actor->definition;
    const struct behavior *behavior = behavior_of(definition->kind);
    struct entry_view entry = entry_of_draft(draft);

    entry.seq = actor->seq + 1;
    entry.at_ms = at_ms;
    actor->bytes_since_snapshot += 64 + draft->payload.size + draft->effects.count * 24;
    if (draft->keep.data)
        return behavior->keep(actor->memory, draft->keep, entry.payload, scope, &actor->arena);
    actor->state = definition->transitions[draft->transition].to;
    actor->seq++;
    return behavior->apply(definition, actor->memory, &entry, scope, &actor->arena);
}

static pawl_status append_drafts(struct scope *scope, struct decision *all,
                                 const struct decision *more)
{
    if (all->count == 0) {
        *all = *more;
        return PAWL_OK;
    }
    for (uint32_t i = 0; i < more->count; i++) {
        struct draft *draft = decision_add(scope, all, 0);

        TRY_MEMORY(scope, draft);
        *draft = more->drafts[i];
    }
    all->hold = more->hold;
    all->hold_by = more->hold_by;
    return PAWL_OK;
}

/* Decide one event on top of what `out` already holds, and fold it. */
pawl_status actor_step(struct actor *actor, const struct event *event, struct scope *scope,
                       struct decision *out)
{
    struct decision more = { 0 };
    struct standing standing = { .state = actor->state,
                                 .seq = actor->seq,
                                 .memory = actor->memory };
    pawl_status status;

    payloads_decide(actor, out, &more);
    status = behavior_of(actor->definition->kind)
                 ->decide(actor->definition, &standing, event, scope, &more);
    for (uint32_t i = 0; i < more.count && !status; i++)
        status = fold_draft(actor, &more.drafts[i], event->at_ms, scope);
    if (!status)
        status = append_drafts(scope, out, &more);
    payloads_decide(actor, out, NULL);
    return status;
}

static bool wakes_by_itself(const struct engine *engine, const struct actor *actor)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);

    return behavior->wakes && !actor->is_paused && actor->seq < engine->options.max_entries &&
           behavior->wakes(actor->memory);
}

bool actor_has_kept(const struct engine *engine, const struct actor *actor)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);

    return wakes_by_itself(engine, actor) ||
           (behavior->has_kept && !actor->is_paused && behavior->has_kept(actor->memory));
}

pawl_status actor_decide(struct engine *engine, struct actor *actor, const struct event *event,
                         struct scope *scope, struct decision *out, struct job **jobs)
{
    const struct event wake = { .kind = EVENT_WAKE, .at_ms = event->at_ms };
    uint32_t first = out->count, seen = first, seq = actor->seq;
    bool wakes;

    TRY(actor_step(actor, event, scope, out));
    TRY(bounds_event(engine, actor, event, seq, scope));
    if (event->kind == EVENT_STEP_START && !(*jobs && (*jobs)->ordinal == event->ordinal))
        TRY(steps_fail_started(actor, scope, event, out));
    do { /* what has begun to wait may find its signal kept, and what follows that may begin */
        TRY(steps_chain(engine, actor, scope, event, out, &seen, jobs));
        wakes = out->count - first < WAKE_DRAFTS && !out->hold.data &&
                scope->arena.used < LIMIT_SCOPE / 2 && wakes_by_itself(engine, actor);
        if (wakes)
            TRY(actor_step(actor, &wake, scope, out));
    } while (wakes);
    return bounds_decision(engine, actor, scope);
}

/* What was folded when it was decided learns when it was recorded. */
void actor_restamp(struct actor *actor, const struct decision *decision)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);

    for (uint32_t i = 0; behavior->restamp && i < decision->count; i++)
        behavior->restamp(actor->memory, &decision->drafts[i].effects);
}

/* The arena of a long-lived actor holds what was folded away: it is loaded again when it has
 * doubled since the last time, or grown by an eighth of what it may have. Loading costs as much as
 * the actor is large, so what it costs for each event does not depend on that. */
void actor_compact(struct actor *actor)
{
    size_t grown = actor->arena.used - actor->loaded_size;
    size_t most = actor->arena.limit / 8;

    if (grown > ACTOR_BYTES && grown > (actor->loaded_size < most ? actor->loaded_size : most))
        actor->is_loaded = false;
}
