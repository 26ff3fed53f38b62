/* draft_rows.c - the changes of live rows that a draft brings to the batch. */
#include "engine/parts.h"

uint32_t live_room(const struct decision *decision)
{
    uint32_t room = decision->hold.data ? 2 : 1;

    for (uint32_t i = 0; i < decision->count; i++)
        room += decision->drafts[i].effects.count + 1;
    return room;
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

/* Looking for rows is most of what taking them away costs, so each has to be one that may be there
 * when its instance ends. */
static const unsigned rows_of[LIVE_CLEAR + 1] = { [LIVE_STEP_PUT] = ROWS_STEPS,
                                                  [LIVE_TIMER_PUT] = ROWS_TIMERS,
                                                  [LIVE_WAIT_PUT] = ROWS_WAITS,
                                                  [LIVE_CHILD_PUT] = ROWS_CHILDREN };

/* A step that becomes ready and is started in one commit is written once. */
static struct live_change *row_for(struct batch *batch, const struct live_change *change)
{
    struct live_change *last = batch->live_count ? &batch->live[batch->live_count - 1] : NULL;

    if (last && change->kind == LIVE_STEP_PUT && last->kind == LIVE_STEP_PUT &&
        last->instance == change->instance && last->ordinal == change->ordinal)
        return last;
    ASSERT(batch->live_count < batch->live_capacity);
    return &batch->live[batch->live_count++];
}

/* `ends`: the decision goes on to the instance's end, which takes all rows away; only children are
 * noted, because they have to be left behind. */
void live_from_draft(struct engine *engine, struct head *head, const struct definition *definition,
                     const struct draft *draft, int64_t at_ms, bool ends)
{
    struct batch *batch = &engine->writer.batch;
    unsigned rows = live_rows_of(engine, definition);

    if (definition->states[head->state].terminal != TERMINAL_NOT) {
        ASSERT(batch->live_count < batch->live_capacity);
        batch->live[batch->live_count++] =
            (struct live_change){ .kind = LIVE_CLEAR,
                                  .instance = head->instance,
                                  .rows = rows | (head->flags & HEAD_PAUSED ? ROWS_PAUSE : 0) };
        head->flags &= (uint8_t)~HEAD_PAUSED;
        return;
    }
    for (uint32_t i = 0; i < draft->effects.count; i++) {
        const struct effect *effect = &draft->effects.items[i];
        struct live_change change = { .instance = head->instance };

        if ((ends && effect->kind != EFFECT_SPAWN) || comes_back(draft, i) ||
            (effect->kind == EFFECT_DISARM && PLANTED(DISARM_LOST)) ||
            !live_change_of(effect, draft->step, draft->attempt, at_ms, &change))
            continue;
        if (change.kind == LIVE_TIMER_PUT)
            change.timer.test = (head->flags & HEAD_TEST) != 0;
        ASSERT(!(rows_of[change.kind] & ~rows));
        *row_for(batch, &change) = change;
    }
}
