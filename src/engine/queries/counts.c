/* counts.c - how many instances stand where, and how they are doing. */
#include "engine/parts.h"

pawl_status engine_counts(struct engine *engine, struct scope *scope, str definition,
                          uint32_t version, struct counts *out)
{
    struct counts counts = { 0 };

    TRY(store_counts(engine->store, scope, definition, version, &counts.states,
                     &counts.state_count));
    for (uint32_t i = 0; i < counts.state_count; i++) {
        const struct state_count *state = &counts.states[i];
        enum instance_status ended = instance_status_ended(state->terminal);

        if (ended) {
            counts.by_status[ended] += state->total;
        } else {
            counts.by_status[STATUS_RUNNING] += state->running;
            counts.by_status[STATUS_SUSPENDED] += state->total - state->running - state->paused;
            counts.by_status[STATUS_PAUSED] += state->paused;
        }
        if (state->terminal == TERMINAL_PLAIN)
            counts.without_kind += state->total;
        counts.total += state->total;
    }
    *out = counts;
    return PAWL_OK;
}
