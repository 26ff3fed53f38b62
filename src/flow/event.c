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

/* By the watch over its worker, or by the step's own timer. */
static bool timeout_event(const struct flow_memory *memory, const struct entry_view *entry,
                          uint32_t n, struct event *out)
{
    (void)memory, (void)entry;
    out->kind = n == 0 ? EVENT_STEP_TIMEOUT : EVENT_TIMER;
    out->name = TIMER_TIMEOUT;
    return n < 2;
}

/* Its backoff is over, its worker could not be sent it, or a pause ended it. */
static bool retry_event(const struct flow_memory *memory, const struct entry_view *entry,
                        uint32_t n, struct event *out)
{
    (void)memory, (void)entry;
    out->kind = n == 0 ? EVENT_TIMER : EVENT_STEP_RETURNED;
    out->name = TIMER_RETRY;
    return n < 2;
}

/* The event that made an entry, by its transition; `find`: where it tells more, or several can have
 * made it. */
static const struct {
    enum event_kind kind;
    bool (*find)(const struct flow_memory *memory, const struct entry_view *entry, uint32_t n,
                 struct event *out);
} events[LIFE_T_COUNT] = {
    [LIFE_T_START] = { EVENT_START, NULL },
    [LIFE_T_STEP_START] = { EVENT_STEP_START, NULL },
    [LIFE_T_STEP_COMPLETE] = { EVENT_STEP_DONE, NULL },
    [LIFE_T_STEP_FAIL] = { EVENT_STEP_FAILED, fail_event },
    [LIFE_T_STEP_TIMEOUT] = { EVENT_STEP_TIMEOUT, timeout_event },
    [LIFE_T_STEP_RETRY] = { EVENT_TIMER, retry_event },
    [LIFE_T_TIMER] = { EVENT_TIMER, timer_event },
    [LIFE_T_SIGNAL] = { EVENT_SIGNAL, signal_event },
    [LIFE_T_GATE_APPROVE] = { EVENT_APPROVE, kind_event },
    [LIFE_T_GATE_REJECT] = { EVENT_REJECT, kind_event },
    [LIFE_T_CHILD] = { EVENT_CHILD, kind_event },
    [LIFE_T_AMEND] = { EVENT_AMEND, NULL },
    [LIFE_T_CANCEL] = { EVENT_CANCEL, NULL },
    [LIFE_T_CANCEL_CREATED] = { EVENT_CANCEL, NULL },
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
    return n == 0 && out->kind != EVENT_UNKNOWN;
}
