/* event.c - which event made an entry, as far as the entry tells: reduce.c read backwards.
 *
 * A check of a history decides each event again and compares (evidence/verify_replay.c). Who
 * adds an entry that begins a decision says here what made it; entries that only follow
 * (finish, fail, gate.wait) have no event of their own. */
#include "flow/flow_int.h"

/* {"arm":N,"payload":X}, as reduce.c prints it. */
static bool read_select(str result, uint32_t *arm, str *payload)
{
    static const str middle = STR_INIT(",\"payload\":");
    uint64_t n;

    if (!str_starts(result, STR("{\"arm\":")) || result.data[result.size - 1] != '}')
        return false;
    result = str_from(result, sizeof "{\"arm\":" - 1);
    for (size_t size = 1; size < result.size; size++)
        if (str_starts(str_from(result, size), middle) &&
            str_to_u64((str){ result.data, size }, &n)) {
            *arm = (uint32_t)n;
            *payload = str_from(result, size + middle.size);
            payload->size--;
            return true;
        }
    return false;
}

/* The name of what the entry's attempt waited for, and the payload that came with it. */
static bool arm_event(const struct plan *plan, const struct flow_memory *memory,
                      const struct entry_view *entry, bool is_filtered, struct event *out)
{
    const struct attempt *attempt = memory_find(memory, entry->ordinal);
    uint32_t wanted = 0, index = 0;

    if (!attempt || (plan->steps[attempt->plan].kind == STEP_KIND_SELECT &&
                     !read_select(entry->payload, &wanted, &out->payload)))
        return false;
    for (uint32_t i = 0; i < memory->arm_count; i++)
        if (memory->arms[i].ordinal == entry->ordinal && index++ == wanted) {
            out->name = memory->arms[i].name;
            out->filter = is_filtered ? memory->arms[i].value : STR_NONE;
            return true;
        }
    return false;
}

/* The one it was sent to, or one of those that a broadcast's filter left. */
static bool signal_event(const struct plan *plan, const struct flow_memory *memory,
                         const struct entry_view *entry, uint32_t n, struct event *out)
{
    out->kind = EVENT_SIGNAL;
    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++)
        if (entry->effects->items[i].kind == EFFECT_TAKE) {
            out->kind = EVENT_WAKE;
            return n == 0;
        }
    return n < 2 && arm_event(plan, memory, entry, n == 1, out);
}

static bool child_event(const struct entry_view *entry, struct event *out)
{
    bool ends = false;

    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++)
        ends = ends || entry->effects->items[i].kind == EFFECT_END;
    out->kind = EVENT_CHILD;
    out->outcome = ends                                     ? TERMINAL_SUCCESS
                   : str_eq(entry->payload, NOTE_CANCELLED) ? TERMINAL_CANCEL
                                                            : TERMINAL_FAILURE;
    if (out->outcome == TERMINAL_FAILURE && str_starts(entry->payload, NOTE_FAILED)) {
        out->payload = str_from(entry->payload, NOTE_FAILED.size);
        out->payload.size--;
    }
    return true;
}

/* Whether the tool forbade another attempt is not recorded; a lost one says so. */
static bool fail_event(const struct entry_view *entry, uint32_t n, struct event *out)
{
    static const enum event_kind kinds[] = { EVENT_STEP_FAILED, EVENT_STEP_FAILED,
                                             EVENT_STEP_SPOILED, EVENT_STEP_LOST };

    if (n >= sizeof kinds / sizeof kinds[0])
        return false;
    out->kind = kinds[n];
    out->no_retry = n == 1;
    return kinds[n] != EVENT_STEP_LOST || str_eq(entry->payload, ERROR_LOST);
}

/* By the watch over whoever works on it, or by the step's own timer. */
static bool timeout_event(uint32_t n, struct event *out)
{
    out->kind = n == 0 ? EVENT_STEP_TIMEOUT : EVENT_TIMER;
    out->name = TIMER_TIMEOUT;
    return n < 2;
}

/* Its backoff is over, its worker could not be sent it, or a pause ended it. */
static bool retry_event(uint32_t n, struct event *out)
{
    out->kind = n == 0 ? EVENT_TIMER : EVENT_STEP_RETURNED;
    out->name = TIMER_RETRY;
    return n < 2;
}

/* An approval that brings no result of its own says "approved". */
static bool approve_event(uint32_t n, struct event *out)
{
    out->kind = EVENT_APPROVE;
    if (n == 0)
        out->payload = STR_NONE;
    return n < 2;
}

static bool one(struct event *out, enum event_kind kind)
{
    out->kind = kind;
    return true;
}

static bool first_event(const struct plan *plan, const struct flow_memory *memory,
                        const struct entry_view *entry, struct event *out)
{
    switch ((enum lifecycle_transition)entry->transition) {
    case LIFE_T_START:
        out->given = entry->payload;
        return one(out, EVENT_START);
    case LIFE_T_STEP_START:
        return one(out, EVENT_STEP_START);
    case LIFE_T_STEP_COMPLETE:
        return one(out, EVENT_STEP_DONE);
    case LIFE_T_TIMER:
        return one(out, EVENT_TIMER) && arm_event(plan, memory, entry, false, out);
    case LIFE_T_GATE_REJECT:
        return one(out, EVENT_REJECT);
    case LIFE_T_CANCEL:
    case LIFE_T_CANCEL_CREATED:
        return one(out, EVENT_CANCEL);
    case LIFE_T_SIGNAL:
    case LIFE_T_AMEND:
        out->given = amend_plan_text(entry->effects);
        return one(out, EVENT_AMEND);
    case LIFE_T_STEP_FAIL:
    case LIFE_T_STEP_TIMEOUT:
    case LIFE_T_STEP_RETRY:
    case LIFE_T_GATE_APPROVE:
    case LIFE_T_CHILD:
    case LIFE_T_FINISH:
    case LIFE_T_FAIL:
    case LIFE_T_GATE_WAIT:
    case LIFE_T_COUNT:
        break;
    }
    return false;
}

bool flow_event_of(const struct definition *definition, const void *memory,
                   const struct entry_view *entry, uint32_t n, struct event *out)
{
    const struct plan *plan = ((const struct flow_memory *)memory)->plan;

    *out = (struct event){ .at_ms = entry->at_ms,
                           .payload = entry->payload,
                           .reason = entry->reason,
                           .actor = entry->actor,
                           .is_leased = true,
                           .ordinal = entry->ordinal };
    if (entry->transition == LIFE_T_STEP_FAIL)
        return fail_event(entry, n, out);
    if (entry->transition == LIFE_T_STEP_TIMEOUT)
        return timeout_event(n, out);
    if (entry->transition == LIFE_T_STEP_RETRY)
        return retry_event(n, out);
    if (entry->transition == LIFE_T_GATE_APPROVE)
        return approve_event(n, out);
    (void)definition;
    if (entry->transition == LIFE_T_SIGNAL)
        return signal_event(plan, memory, entry, n, out);
    if (entry->transition == LIFE_T_CHILD)
        return n == 0 && child_event(entry, out);
    return n == 0 && first_event(plan, memory, entry, out);
}
