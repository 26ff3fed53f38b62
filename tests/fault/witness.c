/* witness.c - holds every answer against what is there. witness_act.c does the acts. */
#include "base/limits.h"
#include "base/node.h"
#include "fault/scenario_int.h"
#include <stdio.h>

#define BEGUN_AT INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */

pawl_error witness_error;

/* Failures that say: nothing happened, or: look again. Anything else is no honest answer to
 * a fault. */
void witness_expect_honest(const struct witness *w, const char *doing, pawl_status status)
{
    if (status != PAWL_STORAGE_FAILURE && status != PAWL_NO_MEMORY &&
        status != PAWL_OUTCOME_UNKNOWN)
        test_fail(__FILE__, __LINE__, "%s, act %u, %s: answered %s: %s", w->scenario->name, w->next,
                  doing, pawl_status_name(status), witness_error.message);
}

void witness_init(struct witness *w, const struct scenario *scenario, const char *url)
{
    *w = (struct witness){ .scenario = scenario };
    snprintf(w->url, sizeof w->url, "%s", url);
}

pawl_status witness_open(struct witness *w)
{
    pawl_options options = { .own = w->scenario->own, .test_clock = !w->jumps };
    pawl_status status;

    if (w->heap) {
        options.resize = w->heap->resize;
        options.resize_context = w->heap->context;
    }
    witness_error = (pawl_error){ 0 };
    w->env = env_sim_new(BEGUN_AT, 7);
    status = pawl_open_env(&w->p, w->url, &options, w->env, &witness_error);
    EXPECT(!w->p == (status != PAWL_OK));
    if (status == PAWL_OK)
        status = scenario_register(w->p, &witness_error);
    if (status == PAWL_OK)
        return PAWL_OK;
    witness_expect_honest(w, "opening", status);
    witness_close(w);
    return status;
}

void witness_close(struct witness *w)
{
    pawl_close(w->p);
    w->p = NULL;
}

/* ---- Looking ---- */

/* More than were seen, where the last look failed. */
uint32_t seen_known(const struct seen *seen)
{
    return seen->count > seen->promised ? seen->count : seen->promised;
}

/* Call an operation and read its answer into `scope`; NULL where it can not be had. */
static struct node *ask(struct witness *w, struct scope *scope, const char *operation,
                        const char *input, pawl_status *status)
{
    struct node *node = NULL;
    char *text = NULL;

    *status = pawl_call(w->p, operation, input, &text, &witness_error);
    if (*status == PAWL_OK)
        EXPECT_OK(node_read_json(scope, arena_str(&scope->arena, str_of(text)), &node));
    pawl_free(w->p, text);
    return node;
}

static void note_definition(struct witness *w, const struct node *definition)
{
    int64_t version = 0;

    EXPECT(node_to_i64(node_find(definition, "version"), &version));
    EXPECT(version >= w->version);
    if (w->scenario->source)
        EXPECT(version <= w->version + w->is_open);
    w->version = (uint32_t)version;
}

/* Which version of the definition is there? */
static bool look_for_definition(struct witness *w)
{
    struct scope scope;
    struct node *node;
    pawl_status status;
    char input[64];

    if (!w->scenario->definition)
        return true;
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    snprintf(input, sizeof input, "{\"name\":\"%s\"}", w->scenario->definition);
    node = ask(w, &scope, "definition.get", input, &status);
    if (status == PAWL_NOT_KNOWN)
        EXPECT_EQ(w->version, 0);
    else if (status != PAWL_OK)
        witness_expect_honest(w, "reading the definition", status);
    else
        note_definition(w, node);
    scope_fini(&scope);
    return status == PAWL_OK || status == PAWL_NOT_KNOWN;
}

/* A row of the list; its subject says which instance it is. */
static void note_instance(struct witness *w, const struct node *row)
{
    const struct node *subject = node_find(row, "subject_ref"), *id = node_find(row, "instance_id");
    uint32_t index = subject && subject->text.size == 3 ? (uint32_t)(subject->text.data[2] - '1')
                                                        : INSTANCES_MAX;
    struct seen *seen = &w->instances[index % INSTANCES_MAX];

    EXPECT(index < INSTANCES_MAX);
    EXPECT_EQ(id->text.size, 26);
    EXPECT(!seen->id[0] || memcmp(seen->id, id->text.data, 26) == 0);
    EXPECT(seen->id[0] || w->is_open);
    memcpy(seen->id, id->text.data, 26);
}

static uint32_t count_instances(const struct witness *w)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        count += w->instances[i].id[0] != '\0';
    return count;
}

/* Which instances are there? None twice, and none that was there before is missing. */
static bool look_for_instances(struct witness *w)
{
    struct scope scope;
    struct node *node;
    pawl_status status;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    node = ask(w, &scope, "instance.list", "{}", &status);
    if (status != PAWL_OK)
        witness_expect_honest(w, "listing", status);
    else {
        const struct node *rows = node_find(node, "instances");

        for (const struct node *row = rows->first; row; row = row->next)
            note_instance(w, row);
        EXPECT_EQ(rows->count, count_instances(w));
    }
    scope_fini(&scope);
    return status == PAWL_OK;
}

static void note_entry(struct witness *w, struct seen *seen, const pawl_entry *entry,
                       uint32_t index)
{
    EXPECT_EQ(entry->sequence_number, index + 1);
    EXPECT(index < ENTRIES_MAX);
    seen->has_heard =
        seen->has_heard || (entry->actor_ref && strcmp(entry->actor_ref, SIGNALLER) == 0);
    if (index >= seen->count)
        memcpy(seen->hashes[index], entry->hash, 65);
    else if (memcmp(seen->hashes[index], entry->hash, 65) != 0)
        test_fail(__FILE__, __LINE__, "%s: entry %u has changed since it was seen",
                  w->scenario->name, index + 1);
}

static void expect_not_early(const struct witness *w, const pawl_entry *entry, int64_t last_ms)
{
    if (last_ms && entry->actor_ref && strcmp(entry->actor_ref, "pawl/timer") == 0)
        EXPECT(entry->recorded_at_ms >= last_ms + w->scenario->held_ms);
}

static bool look_at_history(struct witness *w, struct seen *seen, uint32_t *out)
{
    pawl_history *history = NULL;
    pawl_entry entry;
    uint32_t count = 0;
    int64_t last_ms = 0;
    pawl_status status = pawl_history_open(w->p, seen->id, NULL, &history, &witness_error);

    while (status == PAWL_OK && pawl_history_next(history, &entry)) {
        EXPECT(entry.recorded_at_ms >= last_ms);
        expect_not_early(w, &entry, last_ms);
        last_ms = entry.recorded_at_ms;
        note_entry(w, seen, &entry, count++);
    }
    if (status == PAWL_OK)
        status = pawl_history_close(history, &witness_error);
    if (status != PAWL_OK)
        witness_expect_honest(w, "reading the history", status);
    *out = count;
    return status == PAWL_OK;
}

static bool look_at_status(struct witness *w, const struct seen *seen, bool *is_held)
{
    struct scope scope;
    struct node *node;
    pawl_status status;
    char input[64];

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", seen->id);
    node = ask(w, &scope, "instance.get", input, &status);
    if (status != PAWL_OK)
        witness_expect_honest(w, "reading the instance", status);
    else
        *is_held = str_is(node_find(node, "status")->text, "paused");
    scope_fini(&scope);
    return status == PAWL_OK;
}

static void note_status(struct witness *w, uint32_t index, bool is_held)
{
    struct seen *seen = &w->instances[index];

    if (is_held != seen->is_held && !seen->may_turn)
        test_fail(__FILE__, __LINE__, "%s, act %u: %u is %s", w->scenario->name, w->next, index,
                  is_held ? "held, and nobody held it" : "not held, and nobody let it go");
    seen->is_held = is_held;
    seen->may_turn = false;
}

/* All that is known of, and no more than the last act can have added. */
static void note_count(struct witness *w, uint32_t index, uint32_t count)
{
    struct seen *seen = &w->instances[index];

    if (count < seen->promised || count < seen->count)
        test_fail(__FILE__, __LINE__, "%s: %u entries of %u are there, %u were promised, %u seen",
                  w->scenario->name, count, index, seen->promised, seen->count);
    if (count > seen_known(seen) + seen->room)
        test_fail(__FILE__, __LINE__, "%s: %u entries of %u are there, %u are known of, act %u",
                  w->scenario->name, count, index, seen_known(seen), w->next);
    seen->count = count;
}

/* An act that was left open has happened to all of its instances, or to none. */
static void expect_whole(const struct witness *w, const uint32_t *before, const uint32_t *room)
{
    uint32_t grown = 0, all = 0;

    for (uint32_t i = 0; i < INSTANCES_MAX; i++) {
        if (room[i] == ENTRIES_MAX) /* time was moved: any number may come */
            return;
        grown += w->instances[i].count - before[i];
        all += room[i];
    }
    if (grown != 0 && grown != all)
        test_fail(__FILE__, __LINE__, "%s, act %u: %u entries of %u are there", w->scenario->name,
                  w->next, grown, all);
}

bool witness_look(struct witness *w)
{
    uint32_t before[INSTANCES_MAX], room[INSTANCES_MAX], counts[INSTANCES_MAX] = { 0 };
    bool is_held[INSTANCES_MAX] = { 0 };

    if ((w->is_open || w->looks_closely) && (!look_for_definition(w) || !look_for_instances(w)))
        return false;
    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        if (w->instances[i].id[0] && (!look_at_history(w, &w->instances[i], &counts[i]) ||
                                      !look_at_status(w, &w->instances[i], &is_held[i])))
            return false;
    for (uint32_t i = 0; i < INSTANCES_MAX; i++) {
        before[i] = seen_known(&w->instances[i]);
        room[i] = w->instances[i].room;
        note_count(w, i, counts[i]);
        note_status(w, i, is_held[i]);
        w->instances[i].room = 0;
    }
    expect_whole(w, before, room);
    w->is_open = false;
    return true;
}

/* ---- The end ---- */

static bool shows(struct witness *w, const struct seen *seen, const char *part)
{
    char input[64], *text = NULL;
    bool has;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", seen->id);
    EXPECT_OK(pawl_call(w->p, "instance.get", input, &text, &witness_error));
    has = strstr(text, part) != NULL;
    pawl_free(w->p, text);
    return has;
}

static bool has_ended(struct witness *w)
{
    const char *state = NULL;

    for (uint32_t i = 0; i < INSTANCES_MAX && w->scenario->ends[i]; i++) {
        EXPECT_OK(pawl_current(w->p, w->instances[i].id, &state, &witness_error));
        if (strcmp(state, w->scenario->ends[i]) != 0)
            return false;
    }
    return true;
}

static void check_store(struct witness *w)
{
    struct verify_report report;
    uint32_t entries = 0;

    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        entries += w->instances[i].count;
    EXPECT_OK(verify_run(engine_store(w->p->engine), &heap_libc,
                         &(struct verify_request){ .flows = &flow_behavior }, &report,
                         &witness_error));
    if (!report.valid)
        test_fail(__FILE__, __LINE__, "%s: verify found, at record %" PRIu64 ": %s",
                  w->scenario->name, report.bad_pos, report.what);
    EXPECT_EQ(report.entries, entries);
    EXPECT_EQ(report.instances, count_instances(w));
}

static void check_declaration(struct witness *w)
{
    char input[64], *text = NULL;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", w->instances[0].id);
    EXPECT_OK(pawl_call(w->p, "instance.declaration", input, &text, &witness_error));
    EXPECT_TEXT(text, w->scenario->declaration);
    pawl_free(w->p, text);
}

static void check_end(struct witness *w, uint32_t index)
{
    const struct scenario *s = w->scenario;
    const struct seen *seen = &w->instances[index];
    const char *state = NULL;

    EXPECT_OK(pawl_current(w->p, seen->id, &state, &witness_error));
    EXPECT_TEXT(state, s->ends[index]);
    if (seen->count < s->entries[index] || (s->is_exact && seen->count > s->entries[index]))
        test_fail(__FILE__, __LINE__, "%s: expected %u entries of %u, found %u", s->name,
                  s->entries[index], index, seen->count);
}

static void check_shown(struct witness *w)
{
    for (uint32_t i = 0; i < SHOWS_MAX && w->scenario->shows[i]; i++)
        if (!shows(w, &w->instances[0], w->scenario->shows[i]))
            test_fail(__FILE__, __LINE__, "%s: it does not show %s", w->scenario->name,
                      w->scenario->shows[i]);
}

void witness_finish(struct witness *w)
{
    static const struct act hour = { .kind = ACT_ADVANCE, .by_ms = 3600000 };

    w->looks_closely = true;
    EXPECT(witness_catch_up(w));
    w->looks_closely = false;
    while (w->scenario->acts[w->next].kind != ACT_END) {
        uint32_t next = w->next;

        EXPECT(witness_act_once(w));
        EXPECT_EQ(w->next, next + 1); /* without faults each act succeeds */
    }
    for (int i = 0; i < 24 && !has_ended(w); i++) {
        EXPECT_OK(witness_do(w, &hour));
        EXPECT(witness_look(w));
    }
    for (uint32_t i = 0; i < INSTANCES_MAX && w->scenario->ends[i]; i++)
        check_end(w, i);
    check_shown(w);
    if (w->scenario->declaration)
        check_declaration(w);
    check_store(w);
}
