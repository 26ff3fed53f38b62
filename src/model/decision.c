/* decision.c - what happens next, as drafts of entries. */
#include "model/decision.h"
#include "base/limits.h"
#include "model/record.h"

struct draft *decision_add(struct scope *scope, struct decision *decision, uint32_t transition)
{
    uint32_t count = decision->count;

    /* Full at 0, 1, 2, 4, 8, ...: the count alone tells the capacity. It begins with one, which is
     * all that a fire needs. */
    if ((count & (count - 1)) == 0) {
        uint32_t capacity = count > 0 ? count * 2 : 1;
        struct draft *bigger = ARENA_ARRAY(&scope->arena, struct draft, capacity);

        if (!bigger)
            return NULL;
        if (count > 0)
            memcpy(bigger, decision->drafts, count * sizeof *bigger);
        decision->drafts = bigger;
    }
    decision->drafts[count] = (struct draft){ .transition = transition };
    decision->count = count + 1;
    return &decision->drafts[count];
}

bool event_is_for(const struct event *event, str value)
{
    return !event->filter.data || str_eq(value, event->filter) ||
           (event->filter_written.data && str_eq(value, event->filter_written));
}

pawl_status kept_check_room(struct scope *scope, const struct kept_signal *signals, uint32_t count,
                            str payload)
{
    size_t size = payload.size;

    for (uint32_t i = 0; i < count; i++)
        size += signals[i].payload.size;
    if (count == LIMIT_KEPT_SIGNALS)
        return scope_fail(scope, PAWL_OVERLOADED,
                          "%u signals are kept already and nothing takes them", count);
    if (size > LIMIT_KEPT_TEXT)
        return scope_fail(scope, PAWL_OVERLOADED,
                          "%u signals are kept already and nothing takes them: with this one their "
                          "payloads would be over %u MiB",
                          count, LIMIT_KEPT_TEXT >> 20);
    return PAWL_OK;
}

struct entry_view entry_of_draft(const struct draft *draft)
{
    return (struct entry_view){ .transition = draft->transition,
                                .step = draft->step,
                                .ordinal = draft->ordinal,
                                .attempt = draft->attempt,
                                .payload = draft->payload,
                                .reason = draft->reason,
                                .actor = draft->actor,
                                .effects = &draft->effects };
}

struct entry_view entry_of_record(const struct record *record, const struct effect_list *effects)
{
    return (struct entry_view){ .seq = (uint32_t)record->seq,
                                .transition = (uint32_t)record->what,
                                .step = record->step,
                                .ordinal = record->ordinal,
                                .attempt = record->attempt,
                                .effects = effects,
                                .at_ms = record->at_ms };
}
