/* event.c - which event made an entry, as far as the entry tells: reduce.c read backwards.
 *
 * A check of a history decides each event again and compares (evidence/verify_replay.c). Who
 * adds an entry that begins a decision adds a row here; entries that only follow (finish, fail,
 * gate.wait) have no event of their own. */
#include "flow/flow_int.h"

/* The name of what the entry's attempt waited for, and the payload that came with it. */
static bool arm_event(const struct flow_memory *memory, const struct entry_view *entry,
                      bool is_filtered, struct event *out)
{
    const struct attempt *attempt = memory_find(memory, entry->ordinal);
    const struct step_kind *kind = attempt ? memory->plan->steps[attempt->plan].kind : NULL;
    uint32_t wanted = 0;

    if (!kind || (kind->read_arm && !kind->read_arm(entry->payload, &wanted, &out->payload)))
        return false;
    for (uint32_t i = 0; i < memory->arm_count; i++)
        if (memory->arms[i].ordinal == entry->ordinal && memory->arms[i].index == wanted) {
            out->name = memory->arms[i].name;
            out->filter = is_filtered ? memory->arms[i].value : STR_NONE;
            return true;
        }
    return false;
}

static bool timer_event(const struct flow_memory *memory, const struct entry_view *entry,
                        uint32_t n, struct event *out)
{
    return n == 0 && arm_event(memory, entry, false, out);
}

/* The one it was sent to, or one of those that a broadcast's filter left; or it was kept. */
static bool signal_event(const struct flow_memory *memory, const struct entry_view *entry,
                         uint32_t n, struct event *out)
{
    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++)
        if (entry->effects->items[i].kind == EFFECT_TAKE) {
            out->kind = EVENT_WAKE;
            return n == 0;
        }
    return n < 2 && arm_event(memory, entry, n == 1, out);
}

/* Its kind knows. */
static bool kind_event(const struct flow_memory *memory, const struct entry_view *entry, uint32_t n,
                       struct event *out)
{
    const struct attempt *attempt = memory_find(memory, entry->ordinal);
    const struct step_kind *kind = attempt ? memory->plan->steps[attempt->plan].kind : NULL;

    return kind && kind->event && kind->event(entry, n, out);
}

/* Whether the tool forbade another attempt is not recorded; a lost one says so. */
static bool fail_event(const struct flow_memory *memory, const struct entry_view *entry, uint32_t n,
                       struct event *out)
{
    static const enum event_kind kinds[] = { EVENT_STEP_FAILED, EVENT_STEP_FAILED,
                                             EVENT_STEP_SPOILED, EVENT_STEP_LOST };

    (void)memory;
    if (n >= sizeof kinds / sizeof kinds[0])
        return false;
    out->kind = kinds[n];
    out->no_retry = n == 1;
    return kinds[n] != EVENT_STEP_LOST || str_eq(entry->payload, ERROR_LOST);
}

/* The event that made an entry, by its transition; `find`: where it tells more, or several can have
 * made it. */
static const struct {
    enum event_kind kind,
        other; /* other: a timer, or the watch over its worker, can have made it */
    bool (*find)(const struct flow_memory *memory, const struct entry_view *entry, uint32_t n,
                 struct event *out);
} events[LIFE_T_COUNT] = {
    [LIFE_T_START] = { .kind = EVENT_START },
    [LIFE_T_STEP_START] = { .kind = EVENT_STEP_START },
    [LIFE_T_STEP_COMPLETE] = { .kind = EVENT_STEP_DONE },
    [LIFE_T_STEP_FAIL] = { .kind = EVENT_STEP_FAILED, .find = fail_event },
    [LIFE_T_STEP_TIMEOUT] = { .kind = EVENT_STEP_TIMEOUT, .other = EVENT_TIMER },
    /* Its backoff is over, its worker could not be sent it, or a pause ended it. */
    [LIFE_T_STEP_RETRY] = { .kind = EVENT_TIMER, .other = EVENT_STEP_RETURNED },
    [LIFE_T_TIMER] = { .kind = EVENT_TIMER, .find = timer_event },
    [LIFE_T_SIGNAL] = { .kind = EVENT_SIGNAL, .find = signal_event },
    [LIFE_T_GATE_APPROVE] = { .kind = EVENT_APPROVE, .find = kind_event },
    [LIFE_T_GATE_REJECT] = { .kind = EVENT_REJECT, .find = kind_event },
    [LIFE_T_CHILD] = { .kind = EVENT_CHILD, .find = kind_event },
    [LIFE_T_AMEND] = { .kind = EVENT_AMEND },
    [LIFE_T_CANCEL] = { .kind = EVENT_CANCEL },
    [LIFE_T_COMPENSATE] = { .kind = EVENT_CANCEL },
    [LIFE_T_CLEAN_UP] = { .kind = EVENT_CANCEL },
    [LIFE_T_CANCEL_CREATED] = { .kind = EVENT_CANCEL },
};

bool flow_event_of(const struct definition *definition, const void *memory,
                   const struct entry_view *entry, uint32_t n, struct event *out)
{
    (void)definition;
    *out = (struct event){ .kind = events[entry->transition].kind,
                           .at_ms = entry->at_ms,
                           .payload = entry->payload,
                           .reason = entry->reason,
                           .actor = entry->actor,
                           .is_leased = true,
                           .is_recorded = true,
                           .ordinal = entry->ordinal };
    if (out->kind == EVENT_START)
        out->given = entry->payload;
    if (out->kind == EVENT_AMEND)
        out->given = amend_plan_text(entry->effects);
    if (events[entry->transition].find)
        return events[entry->transition].find(memory, entry, n, out);
    if (events[entry->transition].other == EVENT_UNKNOWN)
        return n == 0 && out->kind != EVENT_UNKNOWN;
    out->name = entry->transition == LIFE_T_STEP_RETRY ? TIMER_RETRY : TIMER_TIMEOUT;
    if (n > 0)
        out->kind = events[entry->transition].other;
    if (entry->transition == LIFE_T_STEP_TIMEOUT && str_eq(entry->payload, ERROR_WORKER)) {
        out->kind = EVENT_TIMER;
        out->name = TIMER_WORKER;
        return n == 0;
    }
    return n < 2;
}
