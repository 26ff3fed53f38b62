/* bounds.c - how many entries and live steps one instance may have. At the bound it is paused, with
 * a reason that names the bound.
 *
 * An event that would add an entry at the bound is rejected before any of it is recorded. So is a
 * decision that would leave too many live steps. Steps that already run may still end: the answers
 * of workers are recorded while the instance is paused. Cancel and amend are always possible. */
#include "engine/parts.h"

void bounds_init(struct engine_options *options)
{
    if (!options->max_entries)
        options->max_entries = LIMIT_ENTRIES;
    if (!options->max_live_steps)
        options->max_live_steps = LIMIT_LIVE_STEPS;
}

static pawl_status too_many_entries(const struct engine *engine, struct scope *scope)
{
    return scope_fail(scope, PAWL_PAUSED,
                      "limit: the instance has reached max_entries, %u entries; cancel it, or "
                      "raise max_entries and resume it",
                      engine->options.max_entries);
}

static pawl_status too_many_steps(const struct engine *engine, struct scope *scope)
{
    return scope_fail(scope, PAWL_PAUSED,
                      "limit: the instance needs more live steps than max_live_steps, %u; cancel "
                      "it, or raise max_live_steps and resume it",
                      engine->options.max_live_steps);
}

pawl_status bounds_standing(const struct engine *engine, struct scope *scope, uint32_t seq,
                            uint32_t live_steps)
{
    if (seq >= engine->options.max_entries)
        return too_many_entries(engine, scope);
    return live_steps > engine->options.max_live_steps ? too_many_steps(engine, scope) : PAWL_OK;
}

pawl_status bounds_event(const struct engine *engine, struct actor *actor,
                         const struct event *event, uint32_t seq_before, struct scope *scope)
{
    if (seq_before < engine->options.max_entries || actor->seq == seq_before || actor->is_paused ||
        event->kind == EVENT_CANCEL || event->kind == EVENT_AMEND)
        return PAWL_OK;
    actor->is_at_bound = true;
    return too_many_entries(engine, scope);
}

pawl_status bounds_decision(const struct engine *engine, struct actor *actor, struct scope *scope)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);

    if (!behavior->live_steps || actor->is_paused ||
        behavior->live_steps(actor->memory) <= engine->options.max_live_steps ||
        actor->definition->states[actor->state].terminal != TERMINAL_NOT)
        return PAWL_OK;
    actor->is_at_bound = true;
    return too_many_steps(engine, scope);
}
