/* tip.c - the tip after a commit, and numbers from it, for every backend and for callers that keep
 * a copy of it. */
#include "store/store.h"

static void note_standing(struct store_tip *tip, const struct standing_change *change)
{
    if (change->row.what != CONTROL_CLOCK || !change->is_put)
        return;
    if (str_is(change->row.id, CLOCK_TEST)) {
        tip->test_now_ms = change->row.due_at_ms;
        tip->test_is_old = false;
    } else {
        tip->clock_offset_ms = change->row.due_at_ms;
        tip->clock_pos = change->row.pos;
    }
}

void tip_advance(struct store_tip *tip, const struct commit *commit)
{
    if (commit->record_count > 0) {
        const struct record *last = &commit->records[commit->record_count - 1];

        tip->pos = last->pos;
        tip->at_ms = last->at_ms;
        if (last->has_root)
            memcpy(tip->root, last->root, SHA_SIZE);
    }
    for (size_t i = 0; i < commit->value_count; i++)
        if (commit->values[i].id > tip->last_value)
            tip->last_value = commit->values[i].id;
    if (commit->definition_count > 0)
        tip->last_definition = commit->definitions[commit->definition_count - 1].id;
    if (commit->instance_count > 0)
        tip->last_instance = commit->instances[commit->instance_count - 1].number;
    if (commit->flushed > 0)
        tip->flushed = commit->flushed;
    for (size_t i = 0; i < commit->standing_count; i++)
        note_standing(tip, &commit->standing[i]);
}

uint64_t tip_new_instance(const struct store_tip *tip, uint64_t index)
{
    uint64_t next = tip->last_instance + 1;

    return next + (tip->offset + tip->stride - next % tip->stride) % tip->stride +
           index * tip->stride;
}
