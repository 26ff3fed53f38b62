/* live.c - effects of entries become changes of live rows: steps, timers, waits. */
#include "engine/parts.h"

uint32_t live_room(const struct decision *decision)
{
    uint32_t room = decision->hold.data ? 2 : 1;

    for (uint32_t i = 0; i < decision->count; i++)
        room += decision->drafts[i].effects.count + 1;
    return room;
}

static bool live_of(const struct effect *effect, const struct draft *draft, int64_t at_ms,
                    struct live_change *out)
{
    out->ordinal = effect->ordinal;
    out->name = effect->name;
    out->plan = draft->step ? draft->step - 1 : 0;
    out->attempt = draft->attempt;
    switch (effect->kind) {
    case EFFECT_STEP:
        out->kind = LIVE_STEP_PUT;
        out->plan = effect->plan;
        out->attempt = effect->attempt;
        out->status = effect->status;
        out->ready_at_ms = effect->status == STEP_READY ? at_ms : 0;
        return true;
    case EFFECT_READY:
    case EFFECT_RUN:
        out->kind = LIVE_STEP_PUT;
        out->status = effect->kind == EFFECT_READY ? STEP_READY : STEP_RUNNING;
        out->ready_at_ms = effect->kind == EFFECT_READY ? at_ms : 0;
        out->name = effect->lease;
        out->due_at_ms = effect->lease_ms;
        return true;
    case EFFECT_END:
        out->kind = LIVE_STEP_DELETE;
        out->is_bare = effect->is_bare;
        return true;
    case EFFECT_ARM:
        out->kind = LIVE_TIMER_PUT;
        out->due_at_ms = effect->due_at_ms;
        out->wall = effect->wall;
        return true;
    case EFFECT_DISARM:
        out->kind = LIVE_TIMER_DELETE;
        return !PLANTED(DISARM_LOST);
    case EFFECT_AWAIT:
        out->kind = LIVE_WAIT_PUT;
        out->value = effect->state;
        return true;
    case EFFECT_SPAWN:
        out->kind = LIVE_CHILD_PUT;
        out->child = effect->child;
        out->abandon = effect->is_abandoned;
        return effect->child != 0; /* else it could not be created */
    case EFFECT_LEAVE:
        out->kind = LIVE_WAIT_DELETE;
        return true;
    case EFFECT_STATE:
    case EFFECT_TAKE:
    case EFFECT_PLAN:
    case EFFECT_REDRIVE:
    case EFFECT_CALL:
    case EFFECT_VERSION:
    case EFFECT_REDUCE:
    case EFFECT_SNAPSHOT:
        break;
    }
    return false;
}

static const struct effect *find_effect(const struct draft *draft, enum effect_kind kind,
                                        const struct effect *like, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (draft->effects.items[i].kind == kind &&
            draft->effects.items[i].ordinal == like->ordinal &&
            str_eq(draft->effects.items[i].name, like->name))
            return &draft->effects.items[i];
    return NULL;
}

/* A timer or wait that is taken back and at once there again, as code does with each turn: the row
 * is written over, and need not go first; a wait that is the same as before need not be written. */
static bool comes_back(const struct draft *draft, uint32_t at)
{
    const struct effect *effect = &draft->effects.items[at], *gone;
    uint32_t count = draft->effects.count;

    if (effect->kind == EFFECT_DISARM)
        return find_effect(draft, EFFECT_ARM, effect, at + 1, count) != NULL;
    if (effect->kind == EFFECT_LEAVE)
        return find_effect(draft, EFFECT_AWAIT, effect, at + 1, count) != NULL;
    gone = effect->kind == EFFECT_AWAIT ? find_effect(draft, EFFECT_LEAVE, effect, 0, at) : NULL;
    return gone && str_eq(gone->state, effect->state);
}

/* What an instance that ends may have left: looking for rows is most of what taking them away
 * costs. */
static unsigned rows_of(struct engine *engine, const struct head *head,
                        const struct definition *definition)
{
    unsigned rows =
        definition->kind == KIND_MACHINE ? ROWS_TIMERS : ROWS_STEPS | ROWS_TIMERS | ROWS_WAITS;

    if (family_is_possible(engine, definition))
        rows |= ROWS_CHILDREN;
    return head->flags & HEAD_PAUSED ? rows | ROWS_PAUSE : rows;
}

/* `ends`: the decision goes on to the instance's end, which takes all rows away; only children are
 * noted, because they have to be left behind. */
void live_from_draft(struct engine *engine, struct head *head, const struct definition *definition,
                     const struct draft *draft, int64_t at_ms, bool ends)
{
    struct batch *batch = &engine->writer.batch;

    if (definition->states[head->state].terminal != TERMINAL_NOT) {
        ASSERT(batch->live_count < batch->live_capacity);
        batch->live[batch->live_count++] =
            (struct live_change){ .kind = LIVE_CLEAR,
                                  .instance = head->instance,
                                  .rows = rows_of(engine, head, definition) };
        head->flags &= (uint8_t)~HEAD_PAUSED;
        return;
    }
    for (uint32_t i = 0; i < draft->effects.count; i++) {
        struct live_change change = { .instance = head->instance,
                                      .test = (head->flags & HEAD_TEST) != 0 };

        if (ends && draft->effects.items[i].kind != EFFECT_SPAWN)
            continue;
        if (comes_back(draft, i) || !live_of(&draft->effects.items[i], draft, at_ms, &change))
            continue;
        ASSERT(batch->live_count < batch->live_capacity);
        batch->live[batch->live_count++] = change;
    }
}
