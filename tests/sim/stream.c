/* stream.c - a subscriber of the log: what it gets has no gap and no repeat, and is what is there. */
#include "base/sha.h"
#include "sim/sim.h"
#include <stdio.h>
#include <stdlib.h>

struct following {
    struct sim *sim;
    uint32_t checked; /* of what was streamed before, if this reads it again */
    bool is_check;
};

static void add(struct sim *sim, const struct streamed *event)
{
    if (sim->stream_count == sim->stream_capacity) {
        sim->stream_capacity = sim->stream_capacity ? sim->stream_capacity * 2 : 256;
        sim->stream = realloc(sim->stream, sizeof *sim->stream * sim->stream_capacity);
    }
    sim->stream[sim->stream_count++] = *event;
}

static void compare(struct following *following, const struct streamed *event)
{
    const struct streamed *then = &following->sim->stream[following->checked];

    if (following->checked >= following->sim->stream_count)
        sim_fail(following->sim, "C12 streams", "an entry at %" PRIu64 " was not streamed",
                 event->pos);
    if (then->pos != event->pos || strcmp(then->id, event->id) != 0 || then->seq != event->seq ||
        strcmp(then->hash, event->hash) != 0)
        sim_fail(following->sim, "C12 streams",
                 "streamed entry %" PRIu64 " of %s at %" PRIu64 ", and %" PRIu64
                 " of %s at %" PRIu64 " is there",
                 then->seq, then->id, then->pos, event->seq, event->id, event->pos);
    following->checked++;
}

static pawl_status on_entry(void *context, str id, const struct entry *entry)
{
    struct following *following = context;
    struct streamed event = { .pos = entry->record->pos, .seq = entry->record->seq };

    snprintf(event.id, sizeof event.id, "%.*s", STR_ARG(id));
    sha_hex(entry->record->hash, (sizeof event.hash - 1) / 2, event.hash);
    if (following->is_check)
        compare(following, &event);
    else
        add(following->sim, &event);
    return PAWL_OK;
}

static uint64_t last_position(const struct sim *sim)
{
    return sim->stream_count ? sim->stream[sim->stream_count - 1].pos : 0;
}

static void read_from(struct following *following, uint64_t after)
{
    struct sim *sim = following->sim;
    struct engine *engine = sim->nodes[0]->engine;
    uint64_t reached = after;

    while (reached < engine_position(engine)) {
        uint64_t before = reached;
        pawl_status status =
            engine_entries(engine, &sim->scope, before, 100, on_entry, following, &reached);

        if (status != PAWL_OK && !world_is_faulty(sim))
            sim_fail(sim, "C12 streams", "the log cannot be read: %s", sim->scope.error.message);
        if (status != PAWL_OK || reached == before)
            return;
    }
}

void stream_follow(struct sim *sim)
{
    read_from(&(struct following){ .sim = sim }, last_position(sim));
}

void stream_check(struct sim *sim)
{
    struct following following = { .sim = sim, .is_check = true };

    read_from(&following, 0);
    if (following.checked != sim->stream_count)
        sim_fail(sim, "C12 streams", "%u entries were streamed, %u are there", sim->stream_count,
                 following.checked);
}
