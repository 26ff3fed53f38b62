/* counts.c - how many instances stand where, and how they are doing. */
#include "engine/parts.h"

static void add_status(const struct state_count *state, uint64_t by_status[STATUS_COUNT])
{
    enum instance_status ended = instance_status_ended(state->terminal);

    if (ended) {
        by_status[ended] += state->total;
        return;
    }
    by_status[STATUS_RUNNING] += state->running;
    by_status[STATUS_SUSPENDED] += state->total - state->running - state->paused;
    by_status[STATUS_PAUSED] += state->paused;
}

pawl_status engine_counts(struct engine *engine, struct scope *scope, str definition,
                          uint32_t version, struct counts *out)
{
    struct counts counts = { 0 };

    TRY(store_counts(engine->store, scope, definition, version, &counts.states,
                     &counts.state_count));
    for (uint32_t i = 0; i < counts.state_count; i++) {
        add_status(&counts.states[i], counts.by_status);
        if (counts.states[i].terminal == TERMINAL_PLAIN)
            counts.without_kind += counts.states[i].total;
        counts.total += counts.states[i].total;
    }
    *out = counts;
    return PAWL_OK;
}
