/* judge.c - see judge.h. Each check says the number of the invariant that it holds. */
#include "judge.h"
#include <string.h>

static int place_of(const struct chart *chart, const char *name)
{
    for (int place = 0; place < chart->places; place++)
        if (strcmp(name, place_name(place)) == 0)
            return place;
    return NOWHERE;
}

static int hand_of(const char *name)
{
    for (int hand = 0; hand < HANDS; hand++)
        if (strcmp(name, hand_name(hand)) == 0)
            return hand;
    return NOWHERE;
}

/* From the declaration and the entry alone. */
static const char *judge_declared(const struct chart *chart, const struct shown_entry *entry)
{
    int from = place_of(chart, entry->from), hand = hand_of(entry->action);
    int to = place_of(chart, entry->to);

    if (from == NOWHERE || to == NOWHERE || hand == NOWHERE)
        return "3: an entry names what was never declared";
    if (chart->ending[from] != GOES_ON)
        return "4: an entry leaves a terminal state";
    if (chart->leads_to[from][hand] != to)
        return "3: an entry is not a declared transition";
    if (entry->guard != (chart->gated[from][hand] != 0))
        return "8: guard_satisfied is not told exactly where a guard is declared";
    return NULL;
}

static const char *judge_order(const struct shown *now)
{
    const char *stands = place_name(0);

    for (int i = 0; i < now->count; i++) {
        if (now->entries[i].number != (uint64_t)i + 1)
            return "6: numbers do not run 1..N";
        if (strcmp(now->entries[i].from, stands) != 0)
            return "7: an entry does not begin where the one before it ended";
        stands = now->entries[i].to;
    }
    return strcmp(stands, now->state) == 0 ? NULL : "7: replay does not give the current state";
}

static const char *judge_complete(const struct shown *now, int64_t at_ms)
{
    for (int i = 0; i < now->count; i++) {
        const struct shown_entry *entry = &now->entries[i];

        if (!entry->id[0] || strlen(entry->hash) != 64 || entry->fired_at_ms != at_ms)
            return "9: an entry is not complete";
        for (int k = 0; k < i; k++)
            if (strcmp(entry->id, now->entries[k].id) == 0)
                return "9: a transition_id stands twice";
    }
    return NULL;
}

/* What was told is what is there, and nothing else. */
static const char *judge_told(const struct trace *trace, const struct shown *now)
{
    if (now->count != trace->length)
        return "5: there are not as many entries as successes";
    for (int i = 0; i < now->count; i++) {
        const struct shown_entry *entry = &now->entries[i];

        if (strcmp(entry->from, place_name(trace->steps[i].from)) != 0 ||
            strcmp(entry->to, place_name(trace->steps[i].to)) != 0 ||
            strcmp(entry->action, hand_name(trace->steps[i].hand)) != 0)
            return "5: an entry is not the transition that was accepted";
        if (entry->has_actor != trace->steps[i].named ||
            (entry->has_actor && strcmp(entry->actor, "ann") != 0))
            return "9: actor_ref is not told exactly where it was supplied";
        if (entry->has_reason)
            return "9: a reason is reported where none was given";
    }
    return strcmp(now->state, place_name(trace->place)) == 0 ? NULL : "2: it stands elsewhere";
}

/* D39: what was there is still there, byte for byte. */
static const char *judge_growth(const struct shown *before, const struct shown *now)
{
    if (now->count < before->count)
        return "10: an entry is gone";
    for (int i = 0; i < before->count; i++)
        if (strcmp(now->entries[i].hash, before->entries[i].hash) != 0 ||
            strcmp(now->entries[i].id, before->entries[i].id) != 0)
            return "5: an entry has changed";
    return NULL;
}

const char *judge(const struct chart *chart, const char *declaration, const struct trace *trace,
                  const struct shown *before, const struct shown *now, int64_t at_ms)
{
    const char *broken = NULL;

    if (!now->is_known)
        return "10: an instance is gone";
    if (strcmp(now->declaration, declaration) != 0)
        return "1: the declaration is not what was supplied";
    if (place_of(chart, now->state) == NOWHERE)
        return "2: the current state is not a declared one";
    for (int i = 0; i < now->count && !broken; i++)
        broken = judge_declared(chart, &now->entries[i]);
    if (!broken)
        broken = judge_order(now);
    if (!broken)
        broken = judge_complete(now, at_ms);
    if (!broken)
        broken = judge_growth(before, now);
    return broken ? broken : judge_told(trace, now);
}
