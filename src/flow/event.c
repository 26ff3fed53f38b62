/* event.c - which event made an entry, as far as the entry tells: reduce.c read backwards.
 *
 * A check of a history decides each event again and compares (evidence/verify_replay.c). Who
 * adds an entry that begins a decision says here what made it; entries that only follow
 * (finish, fail) have no event of their own. */
#include "flow/flow_int.h"

/* The name and row that the first effect of this kind speaks of. */
static bool find_name(const struct entry_view *entry, enum effect_kind kind, struct event *out)
{
    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++)
        if (entry->effects->items[i].kind == kind) {
            out->name = entry->effects->items[i].name;
            out->ordinal = entry->effects->items[i].ordinal;
            return true;
        }
    return false;
}

/* Whether the tool forbade another attempt is not recorded; a lost one says so. */
static bool fail_event(const struct entry_view *entry, uint32_t n, struct event *out)
{
    out->kind = n < 2 ? EVENT_STEP_FAILED : EVENT_STEP_LOST;
    out->no_retry = n == 1;
    return n < 2 || (n == 2 && str_eq(entry->payload, ERROR_LOST));
}

/* The entry that a timer made takes it back. */
static bool timer_event(const struct entry_view *entry, struct event *out)
{
    out->kind = EVENT_TIMER;
    return find_name(entry, EFFECT_DISARM, out);
}

static bool signal_event(const struct entry_view *entry, struct event *out)
{
    out->kind = EVENT_SIGNAL;
    return find_name(entry, EFFECT_LEAVE, out);
}

static bool one(struct event *out, enum event_kind kind)
{
    out->kind = kind;
    return true;
}

static bool first_event(const struct entry_view *entry, struct event *out)
{
    switch ((enum lifecycle_transition)entry->transition) {
    case LIFE_T_START:
        return one(out, EVENT_START);
    case LIFE_T_STEP_START:
        return one(out, EVENT_STEP_START);
    case LIFE_T_STEP_COMPLETE:
        return one(out, EVENT_STEP_DONE);
    case LIFE_T_STEP_RETRY:
    case LIFE_T_STEP_TIMEOUT:
    case LIFE_T_TIMER:
        return timer_event(entry, out);
    case LIFE_T_SIGNAL:
        return signal_event(entry, out);
    case LIFE_T_CANCEL:
    case LIFE_T_CANCEL_CREATED:
        return one(out, EVENT_CANCEL);
    case LIFE_T_STEP_FAIL:
    case LIFE_T_GATE_APPROVE:
    case LIFE_T_GATE_REJECT:
    case LIFE_T_CHILD:
    case LIFE_T_AMEND:
    case LIFE_T_FINISH:
    case LIFE_T_FAIL:
    case LIFE_T_COUNT:
        break;
    }
    return false;
}

bool flow_event_of(const struct definition *definition, const void *memory,
                   const struct entry_view *entry, uint32_t n, struct event *out)
{
    (void)definition, (void)memory;
    *out = (struct event){ .at_ms = entry->at_ms,
                           .fired_at_ms = entry->at_ms,
                           .payload = entry->payload,
                           .reason = entry->reason,
                           .ordinal = entry->ordinal };
    if (entry->transition == LIFE_T_STEP_FAIL)
        return fail_event(entry, n, out);
    return n == 0 && first_event(entry, out);
}
