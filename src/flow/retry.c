/* retry.c - whether a failed attempt is tried again, and when (B29, B30, X8). */
#include "base/json_scan.h"
#include "base/planted.h"
#include "flow/flow_int.h"

/* A lost attempt may have done its work: only an idempotent step may do it again. */
bool retry_is_due(const struct plan_step *step, uint32_t attempt, enum retry_cause cause)
{
    if (cause == RETRY_LOST && !step->is_idempotent)
        return false;
    return attempt < step->attempt_count_max + PLANTED(RETRY_UNCOUNTED);
}

/* ---- Which errors --------------------------------------------------------------------------- */

static bool is_listed(const str *kinds, uint32_t count, str kind)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(kinds[i], kind))
            return true;
    return false;
}

/* A text is of its own kind, and of that before its colon: "timeout: its outcome is unknown". */
static bool is_of(const str *kinds, uint32_t count, const struct node *value)
{
    bool is_text = value->kind == NODE_STRING;

    return (is_text || value->kind == NODE_NUMBER) &&
           (is_listed(kinds, count, value->text) ||
            (is_text && is_listed(kinds, count, str_before(value->text, ':'))));
}

/* An object says its kind by one of these. */
static bool has_kind(const str *kinds, uint32_t count, str error, struct arena *arena)
{
    static const str members[] = { STR_INIT("kind"), STR_INIT("code"), STR_INIT("reason"),
                                   STR_INIT("status") };
    struct node value;
    str text;

    json_peek(arena, error, &value);
    if (value.kind != NODE_OBJECT)
        return is_of(kinds, count, &value);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!json_member(arena, error, members[i], &text))
            continue;
        json_peek(arena, text, &value);
        if (is_of(kinds, count, &value))
            return true;
    }
    return false;
}

bool retry_takes(const struct plan_step *step, str error, struct arena *arena)
{
    if (has_kind(step->retry_never, step->retry_never_count, error, arena))
        return PLANTED(RETRY_NEVER_IGNORED);
    return step->retry_on_count == 0 ||
           has_kind(step->retry_on, step->retry_on_count, error, arena);
}

/* ---- When ------------------------------------------------------------------------------------ */

/* Up to `jitter` of the delay is added. The seed need not be random, only differ: it is mixed
 * (the finisher of splitmix64) so that neighbours spread. */
int64_t retry_delay_ms(const struct plan_step *step, uint32_t attempt, uint64_t seed)
{
    uint32_t index = attempt - 1;
    int64_t delay_ms, most;

    if (step->backoff_count == 0)
        return 0;
    delay_ms = step->backoff_ms[index < step->backoff_count ? index : step->backoff_count - 1];
    most = delay_ms / 1000 * step->jitter_permille;
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return delay_ms + (most > 0 ? (int64_t)((seed ^ seed >> 31) % (uint64_t)most) : 0);
}

int64_t *retry_expand(struct arena *arena, int64_t initial_ms, int64_t factor_permille,
                      int64_t max_ms, uint32_t attempt_count_max, uint32_t *out_count)
{
    uint32_t wanted = attempt_count_max > 1 ? attempt_count_max - 1 : 1, count = 0;
    int64_t *list = ARENA_ARRAY(arena, int64_t, wanted);
    int64_t ms = initial_ms < max_ms ? initial_ms : max_ms;

    if (!list)
        return NULL;
    /* The last value is repeated, so the list may end where it no longer grows. */
    while (count < wanted && (count == 0 || ms > list[count - 1])) {
        list[count++] = ms;
        ms = ms * factor_permille / 1000;
        ms = ms < max_ms ? ms : max_ms;
    }
    *out_count = count;
    return list;
}
