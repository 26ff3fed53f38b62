/* attempts.c - the attempts of an instance, in creation order, folded from its entries.
 *
 * For reading only: a window of them (instance.steps), or what is asked of a whole history when the
 * flow is amended or run again. */
#include "base/grow.h"
#include "flow/flow_int.h"

#define SPARSE_LEAST 1024u           /* attempts, before any are left out */
#define STEPS_MAX    (1u << 20) /* indexes: plans of several amends together */

/* Ordinals run 1, 2, 3, ...: an attempt is at its ordinal's place, unless some were left out. */
static struct flow_attempt *find_attempt(const struct flow_attempts *attempts, uint32_t ordinal)
{
    uint32_t low = 0, high = attempts->count;

    if (!attempts->is_sparse)
        return ordinal > attempts->after && ordinal - attempts->after <= attempts->count
                   ? &attempts->items[ordinal - attempts->after - 1]
                   : NULL;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (attempts->items[middle].ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low < attempts->count && attempts->items[low].ordinal == ordinal ? &attempts->items[low]
                                                                            : NULL;
}

static struct flow_step_past *step_past(struct scope *scope, struct flow_attempts *attempts,
                                        uint32_t plan)
{
    while (plan < STEPS_MAX && plan >= attempts->step_count) {

        if (!GROW(&scope->arena, attempts->steps, attempts->step_count, attempts->step_capacity))
            return NULL;
        attempts->steps[attempts->step_count++] = (struct flow_step_past){ 0 };
    }
    return plan < STEPS_MAX ? &attempts->steps[plan] : NULL;
}

/* ---- Leaving out what nothing asks for ------------------------------------------------------- */

/* A last one that began another is older than that, and wanted itself: it is still found. */
static void leave_out(struct flow_attempts *attempts)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < attempts->count; i++) {
        struct flow_attempt *attempt = &attempts->items[i];
        const struct flow_step_past *step = &attempts->steps[attempt->plan];
        const struct flow_attempt *before = find_attempt(attempts, attempt->begun_by);
        bool is_unfinished = attempt->status == STEP_FAILED || attempt->status == STEP_CANCELLED;

        attempt->is_left_out = attempt->status > STEP_RUNNING &&
                               (!is_unfinished || attempt->is_retried) &&
                               attempt->ordinal != step->last && attempt->ordinal != step->done &&
                               !(before && attempts->steps[before->plan].last == before->ordinal);
    }
    for (uint32_t i = 0; i < attempts->count; i++)
        if (!attempts->items[i].is_left_out)
            attempts->items[kept++] = attempts->items[i];
    attempts->count = kept;
    attempts->sparse_next = 2 * kept;
}

/* ---- Folding --------------------------------------------------------------------------------- */

/* Where it belongs among the attempts of its step. */
static pawl_status place_attempt(struct scope *scope, struct flow_attempts *attempts,
                                 const struct effect *effect, const struct entry_view *entry,
                                 struct flow_attempt *out)
{
    struct flow_step_past *step = step_past(scope, attempts, effect->plan);
    struct flow_attempt *before = find_attempt(attempts, entry->ordinal);

    /* The attempt that it repeats, which its entry ended. */
    if (before && (before->plan != effect->plan || before->attempt + 1 != effect->attempt))
        before = NULL;
    if (!step)
        return effect->plan < STEPS_MAX
                   ? scope_no_memory(scope)
                   : scope_fail(scope, PAWL_STORAGE_FAILURE,
                                "the history of a flow names a step that it cannot have; verify "
                                "the store");
    out->first = before ? before->first : effect->ordinal;
    out->round = before ? before->round : step->rounds;
    step->rounds += effect->attempt == 1;
    step->last = attempts->made = effect->ordinal;
    if (before)
        before->is_retried = true;
    return PAWL_OK;
}

static pawl_status add_attempt(struct scope *scope, struct flow_attempts *attempts,
                               const struct effect *effect, const struct entry_view *entry)
{
    struct flow_attempt added = { .ordinal = effect->ordinal,
                                  .plan = effect->plan,
                                  .attempt = effect->attempt,
                                  .status = effect->status,
                                  .begun_by = entry->ordinal,
                                  .made_seq = entry->seq,
                                  .made_pos = attempts->pos,
                                  .created_at_ms = entry->at_ms,
                                  .ready_at_ms = effect->status == STEP_READY ? entry->at_ms : 0 };

    TRY(attempts->max ? PAWL_OK : place_attempt(scope, attempts, effect, entry, &added));
    if (attempts->is_sparse && attempts->count >= SPARSE_LEAST &&
        attempts->count >= attempts->sparse_next)
        leave_out(attempts);
    TRY_MEMORY(scope, GROW(&scope->arena, attempts->items, attempts->count, attempts->capacity));
    attempts->live++;
    attempts->items[attempts->count++] = added;
    return PAWL_OK;
}

enum step_status flow_end_status(uint32_t transition)
{
    if (lifecycle_is_stop(transition))
        return STEP_CANCELLED;
    return lifecycle_is_failure(transition) ? STEP_FAILED : STEP_DONE;
}

static pawl_status end_attempt(struct scope *scope, struct flow_attempts *attempts,
                               struct flow_attempt *attempt, const struct entry_view *entry)
{
    bool has_texts = !attempts->max && !attempts->is_sparse;
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
    else if (attempt->status == STEP_DONE)
        attempt->result = payload;
    if (attempt->status == STEP_DONE && !attempts->max && entry->ordinal == attempt->ordinal &&
        attempts->steps[attempt->plan].done < attempt->ordinal)
        attempts->steps[attempt->plan].done = attempt->ordinal;
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
    uint32_t last = attempts->max ? attempts->after + attempts->count : attempts->made;
    bool is_inside = !attempts->max || (effect->ordinal > attempts->after &&
                                        effect->ordinal - attempts->after <= attempts->max);

    if ((effect->kind == EFFECT_STEP || needs_attempt(effect->kind)) && !is_inside)
        return PAWL_OK;
    if (effect->kind == EFFECT_STEP && effect->ordinal == last + 1)
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
    } else if (effect->kind == EFFECT_SPAWN && attempt && !attempts->max && effect->name.size > 0) {
        attempt->child = arena_str(&scope->arena, effect->name);
        return attempt->child.data ? PAWL_OK : scope_no_memory(scope);
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

pawl_status flow_attempts_apply(struct scope *scope, struct flow_attempts *attempts,
                                const struct entry_view *entry)
{
    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++)
        TRY(apply_effect(scope, attempts, entry, &entry->effects->items[i]));
    if (!flow_is_end(entry->transition))
        return PAWL_OK;
    /* Nothing outlives the end: what was still live is cancelled by it. */
    for (uint32_t i = 0; i < attempts->count; i++)
        if (attempts->items[i].status <= STEP_RUNNING) {
            attempts->items[i].status = STEP_CANCELLED;
            attempts->items[i].completed_at_ms = entry->at_ms;
        }
    attempts->live = 0;
    return PAWL_OK;
}

const struct flow_attempt *flow_last_result(const struct flow_attempts *attempts, uint32_t plan_index)
{
    uint32_t ordinal = plan_index < attempts->step_count ? attempts->steps[plan_index].done : 0;

    return ordinal ? find_attempt(attempts, ordinal) : NULL;
}
