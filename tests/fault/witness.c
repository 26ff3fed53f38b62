/* witness.c - drives a scenario and holds every answer against what is there. */
#include "base/node.h"
#include "fault/scenario.h"
#include "fault/scenario_int.h"
#include <stdio.h>

#define BEGUN_AT INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */

#define SIGNALLER "bob" /* does nothing else */

static pawl_error error;

/* Failures that say: nothing happened, or: look again. Anything else is no honest answer to
 * a fault. */
static void expect_honest(const struct witness *w, const char *doing, pawl_status status)
{
    if (status != PAWL_STORAGE_FAILURE && status != PAWL_NO_MEMORY &&
        status != PAWL_OUTCOME_UNKNOWN)
        test_fail(__FILE__, __LINE__, "%s, %s: answered %s: %s", w->scenario->name, doing,
                  pawl_status_name(status), error.message);
}

void witness_init(struct witness *w, const struct scenario *scenario, const char *url)
{
    *w = (struct witness){ .scenario = scenario };
    snprintf(w->url, sizeof w->url, "%s", url);
}

pawl_status witness_open(struct witness *w)
{
    pawl_options options = { .own = w->scenario->own, .test_clock = true };
    pawl_status status;

    if (w->heap) {
        options.resize = w->heap->resize;
        options.resize_context = w->heap->context;
    }
    error = (pawl_error){ 0 };
    w->env = env_sim_new(BEGUN_AT, 7);
    status = pawl_open_env(&w->p, w->url, &options, w->env, &error);
    EXPECT(!w->p == (status != PAWL_OK));
    if (status == PAWL_OK)
        status = scenario_register(w->p, &error);
    if (status == PAWL_OK)
        return PAWL_OK;
    expect_honest(w, "opening", status);
    witness_close(w);
    return status;
}

void witness_close(struct witness *w)
{
    pawl_close(w->p);
    w->p = NULL;
}

/* ---- Looking ---- */

/* How many entries there are at least; more than were seen, where the last look failed. */
static uint32_t known(const struct witness *w)
{
    return w->count > w->promised ? w->count : w->promised;
}

/* Is the definition there? */
static bool look_for_definition(struct witness *w)
{
    char input[64], *text = NULL;
    pawl_status status;

    snprintf(input, sizeof input, "{\"name\":\"%s\"}", w->scenario->definition);
    status = pawl_call(w->p, "definition.get", input, &text, &error);
    pawl_free(w->p, text);
    if (status == PAWL_NOT_KNOWN) {
        EXPECT(!w->is_defined);
        return true;
    }
    if (status != PAWL_OK) {
        expect_honest(w, "reading the definition", status);
        return false;
    }
    if (w->scenario->source)
        EXPECT(w->is_defined || w->may_grow);
    w->is_defined = true;
    return true;
}

/* Which instance is there? One at most. */
static bool look_for_instance(struct witness *w)
{
    char *text = NULL, *found;
    pawl_status status = pawl_call(w->p, "instance.list", "{}", &text, &error);

    if (status != PAWL_OK) {
        expect_honest(w, "listing", status);
        return false;
    }
    found = strstr(text, "\"instance_id\":\"");
    if (found) {
        EXPECT(!strstr(found + 1, "\"instance_id\":\""));
        found += strlen("\"instance_id\":\"");
        EXPECT(!w->id[0] || strncmp(w->id, found, 26) == 0);
        EXPECT(w->id[0] || w->may_grow);
        memcpy(w->id, found, 26);
    } else
        EXPECT(!w->id[0]);
    pawl_free(w->p, text);
    return true;
}

static void note_entry(struct witness *w, const pawl_entry *entry, uint32_t index)
{
    EXPECT_EQ(entry->sequence_number, index + 1);
    EXPECT(index < ENTRIES_MAX);
    w->has_heard = w->has_heard || (entry->actor_ref && strcmp(entry->actor_ref, SIGNALLER) == 0);
    if (index >= w->count)
        memcpy(w->seen[index], entry->hash, 65);
    else if (memcmp(w->seen[index], entry->hash, 65) != 0)
        test_fail(__FILE__, __LINE__, "%s: entry %u has changed since it was seen",
                  w->scenario->name, index + 1);
}

/* How many entries; w->count if they can't be read. */
static bool look_at_history(struct witness *w, uint32_t *out)
{
    pawl_history *history = NULL;
    pawl_entry entry;
    uint32_t count = 0;
    pawl_status status = pawl_history_open(w->p, w->id, NULL, &history, &error);

    while (status == PAWL_OK && pawl_history_next(history, &entry))
        note_entry(w, &entry, count++);
    if (status == PAWL_OK)
        status = pawl_history_close(history, &error);
    if (status != PAWL_OK)
        expect_honest(w, "reading the history", status);
    *out = count;
    return status == PAWL_OK;
}

bool witness_look(struct witness *w)
{
    uint32_t count = 0;

    if ((!w->is_defined || w->looks_closely) && !look_for_definition(w))
        return false;
    if ((!w->id[0] || w->looks_closely) && !look_for_instance(w))
        return false;
    if (w->id[0] && !look_at_history(w, &count))
        return false;
    if (count < w->promised || count < w->count)
        test_fail(__FILE__, __LINE__, "%s: %u entries are there, %u were promised, %u were seen",
                  w->scenario->name, count, w->promised, w->count);
    if (count > known(w) + (w->may_grow ? w->most : 0))
        test_fail(__FILE__, __LINE__, "%s: %u entries are there, %u are known of, act %u",
                  w->scenario->name, count, w->count, w->next);
    w->count = count;
    w->may_grow = false;
    return true;
}

/* ---- Acting ---- */

static pawl_status fire(struct witness *w, const struct act *act)
{
    pawl_fire_args args = { .action = act->name, .payload = act->payload, .actor_ref = "ann" };
    pawl_fired fired;
    pawl_status status;

    args.guard_satisfied = strcmp(act->name, "lock") == 0;
    args.reason = strcmp(act->name, "unlock") == 0 ? "she came back" : NULL;
    status = pawl_fire(w->p, w->id, &args, &fired, &error);
    if (status == PAWL_OK) {
        EXPECT_EQ(fired.sequence_number, known(w) + 1);
        w->promised = known(w) + 1;
    }
    return status;
}

static pawl_status cancel(struct witness *w)
{
    pawl_fired fired;
    pawl_status status = pawl_cancel(w->p, w->id, "ann", "enough", &fired, &error);

    if (status == PAWL_OK) {
        EXPECT_EQ(fired.sequence_number, known(w) + 1);
        w->promised = known(w) + 1;
    }
    return status;
}

static pawl_status create(struct witness *w)
{
    pawl_create_args args = { .definition = w->scenario->definition,
                              .input = w->scenario->input,
                              .subject_ref = "S-1",
                              .labels = "{\"of\":\"test\"}" };
    pawl_id id;
    pawl_status status = pawl_create(w->p, &args, &id, &error);

    if (status == PAWL_OK) {
        memcpy(w->id, id.text, sizeof w->id);
        w->may_grow = true; /* a flow begins at once */
        w->most = ENTRIES_MAX;
    }
    return status;
}

static pawl_status define(struct witness *w)
{
    pawl_defined defined;
    pawl_status status =
        pawl_define(w->p, w->scenario->source, strlen(w->scenario->source), &defined, &error);

    if (status == PAWL_OK) {
        EXPECT_EQ(defined.version, 1);
        w->is_defined = true;
    }
    return status;
}

static pawl_status signal_it(struct witness *w, const struct act *act)
{
    pawl_status status = pawl_signal(w->p, w->id, act->name, act->payload, SIGNALLER, &error);

    if (status == PAWL_OK) {
        w->may_grow = true;
        w->most = ENTRIES_MAX;
    }
    return status;
}

static pawl_status act_out(struct witness *w, const struct act *act)
{
    switch (act->kind) {
    case ACT_DEFINE:
        return define(w);
    case ACT_CREATE:
        return create(w);
    case ACT_FIRE:
        return fire(w, act);
    case ACT_CANCEL:
        return cancel(w);
    case ACT_SIGNAL:
        return signal_it(w, act);
    case ACT_ADVANCE:
        env_sim_advance(w->env, act->by_ms); /* real time passes too: a pause after a failure */
        w->may_grow = true;
        w->most = ENTRIES_MAX;
        return pawl_test_advance(w->p, act->by_ms, &error);
    }
    return PAWL_INVALID_REQUEST;
}

/* After an unknown outcome: did it happen? Moving time twice does no harm. */
static bool has_happened(const struct witness *w, const struct act *act, uint32_t before)
{
    switch (act->kind) {
    case ACT_DEFINE:
        return w->is_defined;
    case ACT_CREATE:
        return w->id[0] != '\0';
    case ACT_FIRE:
    case ACT_CANCEL:
        return w->count > before;
    case ACT_SIGNAL:
        return w->has_heard;
    case ACT_ADVANCE:
        break;
    }
    return false;
}

static void note_refusal(struct witness *w, const struct act *act, pawl_status status)
{
    expect_honest(w, "acting", status);
    w->refusals++;
    if (status != PAWL_OUTCOME_UNKNOWN)
        return;
    w->unknowns++;
    w->may_grow = true;
    w->most = act->kind == ACT_FIRE || act->kind == ACT_CANCEL ? 1 : ENTRIES_MAX;
}

/* An act whose outcome is not known and can't be looked up ends the round: it is looked up by
 * whoever opens the store next. */
static bool act_once(struct witness *w)
{
    const struct act *act = &w->scenario->acts[w->next];
    uint32_t before = known(w);
    pawl_status status = act_out(w, act);
    bool was_unknown, can_look;

    if (status != PAWL_OK)
        note_refusal(w, act, status);
    was_unknown = status == PAWL_OUTCOME_UNKNOWN;
    can_look = witness_look(w) || witness_look(w); /* what fails once works the second time */
    if (status == PAWL_OK || (was_unknown && can_look && has_happened(w, act, before)))
        w->next++;
    return can_look || !was_unknown;
}

/* Look up whether the act that the pawl before left open has happened. */
static bool catch_up(struct witness *w)
{
    uint32_t before = known(w);
    bool was_open = w->may_grow;

    if (!witness_look(w) && !witness_look(w))
        return false;
    if (w->next < w->scenario->act_count && was_open &&
        has_happened(w, &w->scenario->acts[w->next], before))
        w->next++;
    return true;
}

void witness_act(struct witness *w, uint32_t refusals_max)
{
    uint32_t limit = w->refusals + refusals_max;

    if (!catch_up(w))
        return;
    while (w->next < w->scenario->act_count && w->refusals < limit)
        if (!act_once(w))
            return;
}

/* ---- The end ---- */

static bool shows(struct witness *w, const char *part)
{
    char input[64], *text = NULL;
    bool has;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", w->id);
    EXPECT_OK(pawl_call(w->p, "instance.get", input, &text, &error));
    has = strstr(text, part) != NULL;
    pawl_free(w->p, text);
    return has;
}

static bool has_ended(struct witness *w)
{
    return !shows(w, "\"running\"") && !shows(w, "\"suspended\"");
}

static void check_store(struct witness *w)
{
    struct verify_report report;

    EXPECT_OK(verify_run(engine_store(w->p->engine), &heap_libc,
                         &(struct verify_request){ .flows = &flow_behavior }, &report, &error));
    if (!report.valid)
        test_fail(__FILE__, __LINE__, "%s: verify found, at record %" PRIu64 ": %s",
                  w->scenario->name, report.bad_pos, report.what);
    EXPECT_EQ(report.entries, w->count);
    EXPECT_EQ(report.instances, 1);
}

static void check_end(struct witness *w)
{
    const struct scenario *s = w->scenario;
    const char *state = NULL;

    EXPECT_OK(pawl_current(w->p, w->id, &state, &error));
    EXPECT_TEXT(state, s->end);
    EXPECT(!s->result || shows(w, s->result));
    if (w->count < s->entries || (s->is_exact && w->count > s->entries))
        test_fail(__FILE__, __LINE__, "%s: expected %u entries, found %u", s->name, s->entries,
                  w->count);
}

void witness_finish(struct witness *w)
{
    static const struct act hour = { .kind = ACT_ADVANCE, .by_ms = 3600000 };

    w->looks_closely = true;
    EXPECT(catch_up(w));
    w->looks_closely = false;
    while (w->next < w->scenario->act_count) {
        uint32_t next = w->next;

        EXPECT(act_once(w));
        EXPECT_EQ(w->next, next + 1); /* without faults each act succeeds */
    }
    for (int i = 0; i < 24 && !has_ended(w); i++) {
        EXPECT_OK(act_out(w, &hour));
        EXPECT(witness_look(w));
    }
    check_end(w);
    check_store(w);
}
