/* poison.c - an event that can never be decided, because its instance has outgrown what one
 * decision may hold, pauses it; and such an instance can still be cancelled.
 *
 * Only the limit counts, not a want of memory, which passes. */
#include "engine/parts.h"
#include "model/fire.h"
#include "model/rights.h"

/* An event without a waiting caller is tried again. One that can never be decided would be tried
 * for ever: at the second time its instance is paused with the message, and resume tries it once
 * more. */
bool poison_noted(struct actor *actor, const struct mail *mail, struct scope *scope,
                  pawl_status status)
{
    bool is_full = scope->arena.is_full || actor->arena.is_full || actor->is_too_large;

    if (status != PAWL_NO_MEMORY || !mail->is_owned || !is_full) {
        actor->failures = status ? actor->failures : 0;
        return false;
    }
    if (++actor->failures < POISON_AT)
        return false;
    scope_fail(
        scope, PAWL_NO_MEMORY,
        "poison: an event (of attempt %u) could not be decided, %u times: it needs more memory "
        "than one decision may have; resume the instance to try once more",
        mail->event.ordinal, actor->failures);
    return true;
}

/* If the instance cannot be paused now, its event fails like one that met a failing store, and is
 * retried. An instance that has ended meanwhile rejects it. */
pawl_status poison_hold(struct engine *engine, struct scope *scope, const struct actor *actor,
                        pawl_status status, bool *is_held)
{
    pawl_status held = pause_poisoned(engine, scope, actor);

    *is_held = held == PAWL_OK || held == PAWL_TERMINAL;
    return *is_held ? status : held;
}

/* Where it stands, without what it remembers. */
pawl_status poison_stand(struct engine *engine, struct scope *scope, struct actor *actor)
{
    struct instance_row row;
    struct definition_slot *slot;
    struct head_row head;

    scope->error = (pawl_error){ .status = PAWL_OK };
    TRY(head_row_now(engine, scope, actor->instance, &head));
    TRY(store_instance(engine->store, scope, actor->instance, &row));
    TRY(definitions_get(engine, scope, row.definition, &slot));
    arena_clear(&actor->arena);
    actor->memory = NULL;
    actor->definition = slot->definition;
    actor->state = head.state;
    actor->seq = (uint32_t)head.seq;
    actor->pos = head.pos;
    return PAWL_OK;
}

/* Applies the definition's `cancel` to the instance's rows. */
static pawl_status check_rule(struct engine *engine, struct scope *scope, const struct actor *actor)
{
    const struct definition *definition = actor->definition;
    struct live live = { 0 };
    struct head head;

    TRY(head_fixed(engine, scope, actor->instance, &head));
    TRY(store_live(engine->store, scope, actor->instance, &live));
    TRY(amended_definition(engine, scope, &head, &definition));
    if (bars_cancel(definition, &live))
        return scope_fail(scope, PAWL_NO_CANCEL_TRANSITION,
                          "no way to cancel: the definition's 'cancel' does not allow it here");
    return PAWL_OK;
}

/* To be cancelled it need not be remembered: its rows go, and its children are found in the store.
 */
pawl_status poison_cancel(struct engine *engine, struct actor *actor, const struct event *event,
                          struct scope *scope, struct decision *out)
{
    struct standing standing = { .state = actor->state, .seq = actor->seq };

    ASSERT(event->kind == EVENT_CANCEL);
    actor->is_loaded = false;
    if (actor->definition->kind == KIND_FLOW)
        TRY(check_rule(engine, scope, actor));
    return fire_decide_cancel(actor->definition, &standing, event, scope, out);
}

/* Was it paused by the engine itself, and not by a caller? */
pawl_status poison_holds(struct engine *engine, struct scope *scope, uint64_t pause_pos, bool *out)
{
    struct record record;
    str actor;

    *out = false;
    if (!pause_pos)
        return PAWL_OK;
    TRY(store_record(engine->store, scope, pause_pos, &record));
    TRY(value_text(engine, scope, record.actor, &actor));
    *out = actor_is_reserved(actor);
    return PAWL_OK;
}

/* A flow whose definition forbids cancelling it, but which the engine has paused, cannot end by
 * itself: to cancel it is its only way out. The drain checks that it is still paused by the record
 * at *pos. `pawl verify` knows the same exception. */
pawl_status poison_free(struct engine *engine, const struct actor *actor, const struct event *event,
                        struct scope *scope, uint64_t *pos, struct decision *out)
{
    struct standing standing = { .state = actor->state, .seq = actor->seq };
    struct live live = { 0 };
    struct head_row head;
    bool is_poison;

    if (actor->definition->kind != KIND_FLOW || event->kind != EVENT_CANCEL)
        return PAWL_NO_CANCEL_TRANSITION;
    TRY(head_row_now(engine, scope, actor->instance, &head));
    TRY(store_live(engine->store, scope, actor->instance, &live));
    TRY(poison_holds(engine, scope, live.paused_pos, &is_poison));
    if (!is_poison)
        return PAWL_NO_CANCEL_TRANSITION;
    scope->error = (pawl_error){ .status = PAWL_OK };
    *pos = head.pos;
    return fire_decide_cancel(actor->definition, &standing, event, scope, out);
}
