/* walk.c - see walk.h. */
#include "walk.h"
#include "api/api.h"
#include <stdio.h>
#include <string.h>

#define NOON INT64_C(1777636800000) /* 2026-05-01T12:00:00Z; the clock stands still */
#define MOST 1296                   /* sequences: CALLS to the power of DEPTH */

struct walker {
    const struct chart *chart;
    char declaration[1500], url[40], told[80];
    pawl *p;
    pawl_error error;
    unsigned count; /* sequences */
    pawl_id ids[MOST];
    struct trace traces[MOST];
    struct shown shown[MOST];
};

static const char *const call_names[CALLS] = { "left",   "left!",   "right",
                                               "right!", "unknown", "cancel" };

static bool fail(const struct walker *walker, unsigned sequence, int depth, int round,
                 const char *what, char *words, size_t size)
{
    size_t used = (size_t)snprintf(words, size, "%s; chart %u %s, calls:", what,
                                   walker->chart->number, walker->declaration);
    unsigned divisor = 1;

    for (int i = 1; i < depth; i++)
        divisor *= CALLS;
    for (int i = 0; i <= round && used < size; i++, divisor /= CALLS)
        used += (size_t)snprintf(words + used, size - used, " %s",
                                 call_names[sequence / divisor % CALLS]);
    return false;
}

static bool open_store(struct walker *walker)
{
    return pawl_open_env(&walker->p, walker->url, &(pawl_options){ .own = true },
                         env_sim_new(NOON, 7), &walker->error) == PAWL_OK;
}

/* ---- reading ---- */

static void copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

static void read_entry(const pawl_entry *from, struct shown_entry *out)
{
    *out = (struct shown_entry){ .number = from->sequence_number,
                                 .has_actor = from->actor_ref != NULL,
                                 .has_reason = from->reason != NULL,
                                 .guard = from->guard_satisfied,
                                 .fired_at_ms = from->fired_at_ms };
    copy(out->id, sizeof out->id, from->transition_id);
    copy(out->from, sizeof out->from, from->from_state);
    copy(out->action, sizeof out->action, from->action);
    copy(out->to, sizeof out->to, from->to_state);
    copy(out->actor, sizeof out->actor, from->actor_ref);
    copy(out->reason, sizeof out->reason, from->reason);
    copy(out->hash, sizeof out->hash, from->hash);
}

static bool read_declaration(struct walker *walker, const char *id, struct shown *out)
{
    struct scope scope;
    str text = STR_NONE;
    pawl_status status;

    scope_init(&scope, &heap_libc, 0);
    status = engine_declaration(walker->p->engine, &scope, str_of(id), &text);
    if (!status)
        snprintf(out->declaration, sizeof out->declaration, "%.*s", STR_ARG(text));
    scope_fini(&scope);
    return status == PAWL_OK;
}

static void read_shown(struct walker *walker, const char *id, struct shown *out)
{
    const char *state = NULL;
    pawl_history *history = NULL;
    pawl_entry entry;

    out->is_known = false;
    out->count = 0;
    if (pawl_current(walker->p, id, &state, &walker->error) ||
        pawl_history_open(walker->p, id, NULL, &history, &walker->error))
        return;
    copy(out->state, sizeof out->state, state);
    while (out->count <= DEPTH && pawl_history_next(history, &entry))
        read_entry(&entry, &out->entries[out->count++]);
    out->is_known =
        pawl_history_close(history, &walker->error) == PAWL_OK && read_declaration(walker, id, out);
}

/* ---- calling ---- */

static pawl_status make_call(struct walker *walker, const char *id, enum call call,
                             pawl_fired *fired)
{
    static const char *const actions[] = { "left", "left", "right", "right", "neither" };
    bool asserted = call == FIRE_A_ASSERTED || call == FIRE_B_ASSERTED || call == FIRE_UNKNOWN;

    if (call == CANCEL)
        return pawl_cancel(walker->p, id, NULL, NULL, fired, &walker->error);
    return pawl_fire(walker->p, id,
                     &(pawl_fire_args){ .action = actions[call],
                                        .guard_satisfied = asserted,
                                        .actor_ref = asserted ? "ann" : NULL },
                     fired, &walker->error);
}

/* One call, its answer, and everything that is shown afterwards. */
static const char *step(struct walker *walker, unsigned sequence, enum call call)
{
    struct trace *trace = &walker->traces[sequence];
    const char *wanted = chart_call(walker->chart, trace, call);
    const char *id = walker->ids[sequence].text;
    struct shown now;
    pawl_fired fired = { 0 };
    pawl_status status = make_call(walker, id, call, &fired);
    const char *broken;

    if (strcmp(pawl_status_name(status), wanted) != 0) {
        snprintf(walker->told, sizeof walker->told, "expected %s, was told %s", wanted,
                 pawl_status_name(status));
        return walker->told;
    }
    if (status == PAWL_OK && (strcmp(fired.new_state, place_name(trace->place)) != 0 ||
                              fired.sequence_number != (uint64_t)trace->length))
        return "the answer tells another state or number";
    read_shown(walker, id, &now);
    broken = judge(walker->chart, walker->declaration, trace, &walker->shown[sequence], &now, NOON);
    walker->shown[sequence] = now;
    return broken;
}

static bool round_of_calls(struct walker *walker, int depth, int round, char *words, size_t size)
{
    unsigned divisor = 1;

    for (int i = round + 1; i < depth; i++)
        divisor *= CALLS;
    for (unsigned i = 0; i < walker->count; i++) {
        const char *broken = step(walker, i, (enum call)(i / divisor % CALLS));

        if (broken)
            return fail(walker, i, depth, round, broken, words, size);
    }
    return true;
}

/* ---- the whole ---- */

static bool create_all(struct walker *walker, int depth)
{
    walker->count = 1;
    for (int i = 0; i < depth; i++)
        walker->count *= CALLS;
    for (unsigned i = 0; i < walker->count; i++) {
        walker->traces[i] = (struct trace){ 0 };
        if (pawl_create(walker->p, &(pawl_create_args){ .declaration = walker->declaration },
                        &walker->ids[i], &walker->error))
            return false;
        walker->shown[i].count = 0; /* D16: no genesis entry */
    }
    return true;
}

/* What no chart can change, the evidence of all that was written, and how many there are. */
static const char *check_store(struct walker *walker)
{
    struct verify_report report;
    pawl_fired fired;

    if (pawl_fire(walker->p, walker->ids[0].text, &(pawl_fire_args){ .action = " " }, &fired,
                  &walker->error) != PAWL_INVALID_REQUEST)
        return "a blank action is not refused";
    if (pawl_fire(walker->p, "00000000000000000000000000", &(pawl_fire_args){ .action = "left" },
                  &fired, &walker->error) != PAWL_NOT_KNOWN)
        return "an unknown instance is not refused";
    if (walker->chart->number % 4 != 0)
        return NULL;
    if (verify_run(engine_store(walker->p->engine), &heap_libc, &(struct verify_request){ 0 },
                   &report, &walker->error) ||
        !report.valid)
        return "the store is not valid";
    return report.instances == walker->count ? NULL : "10: the number of instances has changed";
}

/* Invariant 6 lives through restarts: after the second round, for some of the charts. */
static bool restart(struct walker *walker)
{
    pawl_close(walker->p);
    walker->p = NULL;
    return open_store(walker);
}

bool walk_chart(const struct chart *chart, int depth, struct walked *count, char *words,
                size_t size)
{
    static struct walker walker;
    bool restarts = chart->number % 16 == 0, good;
    const char *broken;

    walker.chart = chart;
    chart_print(chart, walker.declaration, sizeof walker.declaration);
    snprintf(walker.url, sizeof walker.url,
             restarts ? "memory:scope-%u%s" : "memory:", chart->number,
             chart->backwards ? "b" : "");
    good = open_store(&walker) && create_all(&walker, depth);
    if (!good)
        snprintf(words, size, "%s; %s", walker.error.message, walker.declaration);
    for (int round = 0; round < depth && good; round++) {
        good = round_of_calls(&walker, depth, round, words, size);
        if (good && round == 1 && restarts)
            good = restart(&walker);
        count->calls += walker.count;
    }
    broken = good ? check_store(&walker) : NULL;
    if (broken)
        good = fail(&walker, 0, depth, -1, broken, words, size);
    count->charts++;
    count->sequences += walker.count;
    pawl_close(walker.p);
    walker.p = NULL;
    return good;
}

bool walk_charts(unsigned first, unsigned most, unsigned step, int places, int depth,
                 struct walked *count, char *words, size_t size)
{
    struct chart_walk walk = { 0 };
    struct chart chart;

    while (chart_next(&walk, &chart)) {
        bool good = true;

        if (chart.number < first || (chart.number - first) % step != 0 || chart.places > places)
            continue;
        if ((chart.number - first) / step >= most)
            break;
        for (int order = 0; order <= chart_has_two_ways_to_cancel(&chart) && good; order++) {
            good = walk_chart(&chart, depth, count, words, size);
            chart.backwards = !chart.backwards;
        }
        if (!good)
            return false;
    }
    return true;
}
