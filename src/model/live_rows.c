/* live_rows.c - how the effects of an entry change live rows. */
#include "model/live_rows.h"
#include "base/ids.h"

/* A row for an attempt, or another status of the row of this entry's attempt. */
static bool put_step(const struct effect *effect, uint32_t step, uint32_t attempt, int64_t at_ms,
                     struct live_change *out)
{
    out->kind = LIVE_STEP_PUT;
    out->step.plan = step ? step - 1 : 0;
    out->step.attempt = attempt;
    out->step.status = effect->kind == EFFECT_READY ? STEP_READY : STEP_RUNNING;
    out->step.lease = effect->lease;
    out->step.lease_ms = effect->lease_ms;
    if (effect->kind == EFFECT_STEP) {
        out->step.plan = effect->plan;
        out->step.attempt = effect->attempt;
        out->step.status = effect->status;
    }
    out->step.ready_at_ms = out->step.status == STEP_READY ? at_ms : 0;
    return true;
}

/* A child that could not be created has no id, and leaves nothing behind. */
static bool put_child(const struct effect *effect, struct live_change *out)
{
    out->kind = LIVE_CHILD_PUT;
    out->child.number = effect->child;
    out->child.is_abandoned = effect->is_abandoned;
    return effect->child != 0 || id_parse(effect->name, &out->child.number, NULL);
}

static bool put_named(enum live_change_kind kind, const struct effect *effect,
                      struct live_change *out)
{
    out->kind = kind;
    out->name = effect->name;
    if (kind == LIVE_WAIT_PUT)
        out->wait.value = effect->state;
    if (kind == LIVE_TIMER_PUT) {
        out->timer.due_at_ms = effect->due_at_ms;
        out->timer.wall = effect->wall;
    }
    return true;
}

bool live_change_of(const struct effect *effect, uint32_t step, uint32_t attempt, int64_t at_ms,
                    struct live_change *out)
{
    out->ordinal = effect->ordinal;
    switch (effect->kind) {
    case EFFECT_STEP:
    case EFFECT_READY:
    case EFFECT_RUN:
        return put_step(effect, step, attempt, at_ms, out);
    case EFFECT_END:
        out->kind = LIVE_STEP_DELETE;
        out->step.is_bare = effect->is_bare;
        return true;
    case EFFECT_ARM:
        return put_named(LIVE_TIMER_PUT, effect, out);
    case EFFECT_DISARM:
        return put_named(LIVE_TIMER_DELETE, effect, out);
    case EFFECT_AWAIT:
        return put_named(LIVE_WAIT_PUT, effect, out);
    case EFFECT_LEAVE:
        return put_named(LIVE_WAIT_DELETE, effect, out);
    case EFFECT_SPAWN:
        return put_child(effect, out);
    case EFFECT_STATE:
    case EFFECT_TAKE:
    case EFFECT_PLAN:
    case EFFECT_REDRIVE:
    case EFFECT_CALL:
    case EFFECT_VERSION:
    case EFFECT_REDUCE:
    case EFFECT_SNAPSHOT:
    case EFFECT_NOTE:
    case EFFECT_SEND: /* its alarm is a standing row */
        break; /* nothing of it is live */
    }
    return false;
}
