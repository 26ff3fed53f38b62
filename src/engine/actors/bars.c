/* bars.c - does a flow's definition allow cancelling it where it stands? Decided from the rows, for
 * readers and for the drain, which has no reducer. flow/cancel.c decides the same from memory. */
#include "engine/parts.h"

bool bars_cancel(const struct definition *definition, const struct live *live)
{
    enum cancel_rule rule =
        definition->kind == KIND_FLOW ? flow_cancel_rule(definition) : CANCEL_ALWAYS;

    for (uint32_t i = 0; rule == CANCEL_NOT_FROM && i < live->step_count; i++)
        if (flow_step_bars_cancel(definition, live->steps[i].plan))
            return true;
    return rule == CANCEL_NEVER;
}

/* ---- recording ---- */

/* Does this batch delete the row, in change number `from` or later? */
static bool is_taken_away(const struct batch *batch, uint32_t from, uint64_t instance,
                          uint32_t ordinal)
{
    for (uint32_t i = from; i < batch->live_count; i++) {
        const struct live_change *change = &batch->live[i];

        if (change->instance == instance &&
            (change->kind == LIVE_CLEAR ||
             (change->kind == LIVE_STEP_DELETE && change->ordinal == ordinal)))
            return true;
    }
    return false;
}

/* Checks the rows in the store and the rows that this batch adds. */
static pawl_status check_steps(struct engine *engine, struct scope *scope, uint64_t instance,
                               const struct definition *definition, bool *out)
{
    const struct batch *batch = &engine->writer.batch;
    struct live live = { 0 };
    pawl_status status = store_live(engine->store, scope, instance, &live);

    ASSERT_DRAINING(engine);
    for (uint32_t i = 0; !status && !*out && i < live.step_count; i++)
        *out = flow_step_bars_cancel(definition, live.steps[i].plan) &&
               !is_taken_away(batch, 0, instance, live.steps[i].ordinal);
    for (uint32_t i = 0; !status && !*out && i < batch->live_count; i++)
        *out = batch->live[i].kind == LIVE_STEP_PUT && batch->live[i].instance == instance &&
               flow_step_bars_cancel(definition, batch->live[i].step.plan) &&
               !is_taken_away(batch, i + 1, instance, batch->live[i].ordinal);
    return status;
}

pawl_status bars_look(struct engine *engine, struct scope *scope, const struct head *head,
                      const struct definition *definition, bool *out)
{
    ASSERT_DRAINING(engine);
    *out = false;
    if (definition->kind != KIND_FLOW)
        return PAWL_OK;
    if (engine->actors.has_amends)
        TRY(amended_in_drain(engine, scope, head, &definition));
    *out = flow_cancel_rule(definition) == CANCEL_NEVER;
    return flow_cancel_rule(definition) == CANCEL_NOT_FROM
               ? check_steps(engine, scope, head->instance, definition, out)
               : PAWL_OK;
}
