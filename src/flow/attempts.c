/* attempts.c - every attempt of an instance, in creation order, folded from its entries.
 *
 * For reading only (instance.steps): unlike the memory, it grows with the history, or is a window
 * of it. */
#include "flow/flow_int.h"
#include "model/grow.h"

static pawl_status add_attempt(struct scope *scope, struct flow_attempts *attempts,
                               const struct effect *effect, const struct entry_view *entry)
{
    struct flow_attempt *items = grow_array(&scope->arena, attempts->items, attempts->count,
                                            &attempts->capacity, sizeof *items);

    if (!items)
        return scope_no_memory(scope);
    attempts->items = items;
    attempts->live++;
    items[attempts->count++] =
        (struct flow_attempt){ .ordinal = effect->ordinal,
                               .plan = effect->plan,
                               .attempt = effect->attempt,
                               .status = effect->status,
                               .begun_by = entry->ordinal,
                               .made_seq = entry->seq,
                               .created_at_ms = entry->at_ms,
                               .ready_at_ms = effect->status == STEP_READY ? entry->at_ms : 0 };
    return PAWL_OK;
}

/* Ordinals run 1, 2, 3, ... so an attempt lies at its ordinal's place. */
static struct flow_attempt *find_attempt(const struct flow_attempts *attempts, uint32_t ordinal)
{
    return ordinal > attempts->after && ordinal - attempts->after <= attempts->count
               ? &attempts->items[ordinal - attempts->after - 1]
               : NULL;
}

/* Is it one that is kept? */
static bool is_inside(const struct flow_attempts *attempts, uint32_t ordinal)
{
    return !attempts->max ||
           (ordinal > attempts->after && ordinal - attempts->after <= attempts->max);
}

enum step_status flow_end_status(uint32_t transition)
{
    return lifecycle_is_failure(transition) ? STEP_FAILED : STEP_DONE;
}

static pawl_status end_attempt(struct scope *scope, struct flow_attempts *attempts,
                               struct flow_attempt *attempt, const struct entry_view *entry)
{
    bool has_texts = !attempts->max && !attempts->is_bare;
    str payload = has_texts ? arena_str(&scope->arena, entry->payload) : STR_NONE;

    if (has_texts && entry->payload.data && !payload.data)
        return scope_no_memory(scope);
    attempts->live -= attempt->status <= STEP_RUNNING;
    attempt->status = flow_end_status(entry->transition);
    attempt->completed_at_ms = entry->at_ms;
    attempt->ended_pos = attempts->pos;
    attempt->ended_seq = entry->seq;
    if (attempt->status == STEP_FAILED)
        attempt->error = payload;
    else
        attempt->result = payload;
    return PAWL_OK;
}

static bool needs_attempt(enum effect_kind kind)
{
    return kind == EFFECT_READY || kind == EFFECT_RUN || kind == EFFECT_END;
}

static pawl_status apply_effect(struct scope *scope, struct flow_attempts *attempts,
                                const struct entry_view *entry, const struct effect *effect)
{
    struct flow_attempt *attempt = find_attempt(attempts, effect->ordinal);

    if ((effect->kind == EFFECT_STEP || needs_attempt(effect->kind)) &&
        !is_inside(attempts, effect->ordinal))
        return PAWL_OK;
    if (effect->kind == EFFECT_STEP && effect->ordinal == attempts->after + attempts->count + 1)
        return add_attempt(scope, attempts, effect, entry);
    if (effect->kind == EFFECT_STEP || (needs_attempt(effect->kind) && !attempt))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the history of a flow names attempt %u out of order; verify the store",
                          effect->ordinal);
    if (effect->kind == EFFECT_READY) {
        attempt->status = STEP_READY;
        attempt->ready_at_ms = entry->at_ms;
        attempt->started_at_ms = 0; /* it was given back */
    } else if (effect->kind == EFFECT_RUN) {
        attempt->status = STEP_RUNNING;
        attempt->started_at_ms = entry->at_ms;
    } else if (effect->kind == EFFECT_END) {
        return end_attempt(scope, attempts, attempt, entry);
    }
    return PAWL_OK;
}

bool flow_is_end(uint32_t transition)
{
    return transition == LIFE_T_FINISH || transition == LIFE_T_FAIL ||
           transition == LIFE_T_CANCEL || transition == LIFE_T_CANCEL_CREATED;
}

/* Nothing outlives the end: what was still live is cancelled by it. */
static void cancel_live(struct flow_attempts *attempts, int64_t at_ms)
{
    for (uint32_t i = 0; i < attempts->count; i++)
        if (attempts->items[i].status <= STEP_RUNNING) {
            attempts->items[i].status = STEP_CANCELLED;
            attempts->items[i].completed_at_ms = at_ms;
        }
    attempts->live = 0;
}

pawl_status flow_attempts_apply(struct scope *scope, struct flow_attempts *attempts,
                                const struct entry_view *entry)
{
    uint32_t count = entry->effects ? entry->effects->count : 0;
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < count && status == PAWL_OK; i++)
        status = apply_effect(scope, attempts, entry, &entry->effects->items[i]);
    if (status == PAWL_OK && flow_is_end(entry->transition))
        cancel_live(attempts, entry->at_ms);
    return status;
}

const struct flow_attempt *flow_last_result(const struct flow_attempts *attempts, uint32_t plan_index)
{
    for (uint32_t i = attempts->count; i > 0; i--)
        if (attempts->items[i - 1].plan == plan_index && attempts->items[i - 1].status == STEP_DONE)
            return &attempts->items[i - 1];
    return NULL;
}
