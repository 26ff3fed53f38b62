/* check.c - the ledger against the store. Each rule has its name from docs/internals/simulation.md. */
#include "sim/sim.h"
#include "store/store.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS_MAX 16
#define LINES_MAX 12

/* What is known of one history while it is read. */
struct reading {
    struct sim *sim;
    struct subject *subject;
    uint32_t index, count; /* of the subject; of entries so far */
    char state[24];
    int64_t recorded_ms, ticked_ms, rested_ms; /* of the entry before; when a timer was armed */
    bool has_ended;
    struct {
        char name[32];
        uint32_t started, completed, failed; /* entries */
    } steps[STEPS_MAX];
    uint32_t step_count;
    uint32_t ticks, signals;
    char lines[LINES_MAX][160]; /* the last entries, in words */
};

#define FAIL(r, rule, ...) check_failed((r), (rule), __VA_ARGS__)

static _Noreturn void check_failed(const struct reading *r, const char *rule, const char *format,
                                   ...) __attribute__((format(printf, 3, 4)));

static _Noreturn void check_failed(const struct reading *r, const char *rule, const char *format,
                                   ...)
{
    char words[400];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    for (uint32_t i = r->count > LINES_MAX ? r->count - LINES_MAX + 1 : 1; i <= r->count; i++)
        sim_note(r->sim, "entry %u: %s", i, r->lines[i % LINES_MAX]);
    sim_fail(r->sim, rule, "s%u (%s, %s), entry %u: %s", r->index,
             process_names[r->subject->process], r->subject->id, r->count, words);
}

/* ---- All processes ---- */

static void check_identity(struct reading *r, const pawl_entry *entry)
{
    if (entry->sequence_number != r->count)
        FAIL(r, "I6 total order", "it has the number %" PRIu64, entry->sequence_number);
    if (r->count > ENTRIES_MAX)
        FAIL(r, "C15 bounded", "more than %u entries", ENTRIES_MAX);
    if (r->count <= r->subject->count && strcmp(r->subject->hashes[r->count - 1], entry->hash) != 0)
        FAIL(r, "I5 append-only", "it has changed since it was seen");
    memcpy(r->subject->hashes[r->count - 1], entry->hash, 65);
    if (entry->recorded_at_ms < r->recorded_ms)
        FAIL(r, "clock", "it was recorded before the one before it");
    if (r->count > 1 && strcmp(entry->from_state, r->state) != 0)
        FAIL(r, "I7 replay", "it leaves %s, and %s was reached", entry->from_state, r->state);
    if (r->has_ended)
        FAIL(r, "I4 terminal", "%s after the end", entry->action);
    snprintf(r->state, sizeof r->state, "%s", entry->to_state);
}

/* The client's act that an actor_ref names; NULL: none of ours. */
static struct act *act_of(struct reading *r, const pawl_entry *entry)
{
    unsigned long number;

    if (!entry->actor_ref || entry->actor_ref[0] != 'c')
        return NULL;
    number = strtoul(entry->actor_ref + 1, NULL, 10);
    if (number >= r->sim->act_count)
        FAIL(r, "C2 no phantom", "its actor %s has made no call", entry->actor_ref);
    return &r->sim->acts[number];
}

static void check_act(struct reading *r, const pawl_entry *entry)
{
    struct act *act = act_of(r, entry);

    if (!act || act->kind == ACT_CREATE)
        return;
    if (act->subject != r->index)
        FAIL(r, "C2 no phantom", "%s was sent to s%u", entry->actor_ref, act->subject);
    if (act->kind != ACT_SIGNAL && strcmp(act->action, entry->action) != 0)
        FAIL(r, "C2 no phantom", "%s is %s, and was %s", entry->actor_ref, entry->action,
             act->action);
    if (act->outcome == OUTCOME_REFUSED)
        FAIL(r, "C3 refused", "%s was refused", entry->actor_ref);
    if (act->seen++)
        FAIL(r, "C4 once", "%s has two entries", entry->actor_ref);
    if (act->outcome == OUTCOME_DONE && act->seq && act->seq != entry->sequence_number)
        FAIL(r, "C1 durable", "%s was answered as entry %" PRIu64, entry->actor_ref, act->seq);
}

/* ---- Timers ---- */

/* A process that opens the store has only the wall clock to tell how much time has passed: if that
 * was set, the store's clock and all due times may have been shifted, and recorded times before and
 * after cannot be compared. */
static void check_early(struct reading *r, int64_t armed_ms, int64_t after_ms, int64_t at_ms)
{
    if (at_ms < armed_ms + after_ms && !(r->sim->jumps && r->sim->crashes))
        FAIL(r, "C10 timers", "a timer of %" PRId64 " ms fires %" PRId64 " ms early", after_ms,
             armed_ms + after_ms - at_ms);
}

/* ---- The machine ---- */

static void check_door(struct reading *r, const pawl_entry *entry)
{
    const struct door_way *way = door_way(entry->from_state, entry->action);

    if (!way || strcmp(way->to, entry->to_state) != 0)
        FAIL(r, "I3 declared transitions", "%s --%s-> %s", entry->from_state, entry->action,
             entry->to_state);
    if (entry->guard_satisfied != way->has_guard)
        FAIL(r, "I8 guards", "the guard of %s was %sasserted", entry->action,
             entry->guard_satisfied ? "" : "not ");
    if (way->needs_reason && !entry->reason)
        FAIL(r, "I3 declared transitions", "%s without a reason", entry->action);
    if (entry->actor_ref && strcmp(entry->actor_ref, "pawl/timer") == 0)
        check_early(r, r->recorded_ms, DOOR_DEADLINE_MS, entry->recorded_at_ms);
    r->has_ended = door_is_end(entry->to_state);
}

/* ---- Flows ---- */

static uint32_t step_index(struct reading *r, const char *name)
{
    for (uint32_t i = 0; i < r->step_count; i++)
        if (strcmp(r->steps[i].name, name) == 0)
            return i;
    if (r->step_count == STEPS_MAX)
        FAIL(r, "C11 joins", "more than %u steps", STEPS_MAX);
    snprintf(r->steps[r->step_count].name, sizeof r->steps->name, "%s", name);
    return r->step_count++;
}

static bool is_completed(struct reading *r, const char *name)
{
    return r->steps[step_index(r, name)].completed > 0;
}

static void check_order(struct reading *r, const char *step)
{
    for (const struct order_rule *rule = order_rules; rule->step; rule++)
        if (rule->process == r->subject->process && strcmp(rule->step, step) == 0 &&
            !is_completed(r, rule->before))
            FAIL(r, "C11 joins", "%s begins before the end of %s", step, rule->before);
}

static void check_started(struct reading *r, const pawl_entry *entry)
{
    uint32_t index = step_index(r, entry->step);

    check_order(r, entry->step);
    if (r->steps[index].completed)
        FAIL(r, "X1 one result", "%s is started after its end", entry->step);
    if (entry->attempt != ++r->steps[index].started || entry->attempt > ATTEMPTS_MAX)
        FAIL(r, "X4 attempts", "attempt %u of %s is its start %u", entry->attempt, entry->step,
             r->steps[index].started);
}

/* A result of a worker names the claim that it was sent for. */
static void check_nonce(struct reading *r, const pawl_entry *entry)
{
    const char *at = entry->payload ? strstr(entry->payload, "\"nonce\":") : NULL;
    unsigned long nonce = at ? strtoul(at + 8, NULL, 10) : 0;
    const struct claim *claim = &r->sim->claims[nonce % CLAIMS_MAX];

    if (!at || strcmp(entry->step, "end") == 0)
        return;
    if (nonce >= r->sim->claim_count || !claim->is_sent)
        FAIL(r, "C8 effects", "a result that no worker has sent: %s", entry->payload);
    if (strcmp(claim->name, entry->step) != 0 || claim->attempt != entry->attempt)
        FAIL(r, "C9 fenced", "attempt %u of %s has the result of attempt %u of %s", entry->attempt,
             entry->step, claim->attempt, claim->name);
}

static void check_completed(struct reading *r, const pawl_entry *entry)
{
    uint32_t index = step_index(r, entry->step);

    check_nonce(r, entry);
    check_order(r, entry->step);
    if (r->steps[index].completed++)
        FAIL(r, "X1 one result", "%s is completed twice", entry->step);
}

static void check_timer(struct reading *r, const pawl_entry *entry)
{
    if (entry->step && strcmp(entry->step, "rest") == 0)
        check_early(r, r->rested_ms, REST_MS, entry->recorded_at_ms);
}

static bool is(const pawl_entry *entry, const char *action)
{
    return strcmp(entry->action, action) == 0;
}

/* A tree that ends well has rescued what failed, and has always tidied up. */
static void check_finished(struct reading *r)
{
    if (r->subject->process == PROCESS_TREE && !is_completed(r, "risky") && !is_completed(r, "mop"))
        FAIL(r, "C11 joins", "risky failed, and was not rescued");
    if (r->subject->process == PROCESS_TREE && !is_completed(r, "last"))
        FAIL(r, "C11 joins", "it ends before its last step");
}

static void check_flow(struct reading *r, const pawl_entry *entry)
{
    if (is(entry, "step.start"))
        check_started(r, entry);
    else if (is(entry, "step.complete") && entry->step)
        check_completed(r, entry);
    else if (is(entry, "step.retry") &&
             entry->step) /* an attempt that was given back keeps its number */
        r->steps[step_index(r, entry->step)].started = entry->attempt - 1;
    else if (is(entry, "step.fail") && entry->step)
        r->steps[step_index(r, entry->step)].failed++;
    else if ((is(entry, "timer") || is(entry, "signal") || is(entry, "child") ||
              is(entry, "gate.approve")) &&
             entry->step) {
        check_timer(r, entry);
        r->steps[step_index(r, entry->step)].completed++;
    }
    if (is(entry, "finish"))
        check_finished(r);
    if (is(entry, "step.complete") && entry->step && strcmp(entry->step, "ship") == 0)
        r->rested_ms = entry->recorded_at_ms;
}

/* ---- Code ---- */

static void check_keeper(struct reading *r, const pawl_entry *entry)
{
    bool is_tick = is(entry, "timer");

    if (is_tick)
        check_early(r, r->ticked_ms, TICK_MS, entry->recorded_at_ms);
    r->ticks += is_tick;
    r->signals += is(entry, "signal");
    if (is_tick || is(entry, "start") || is(entry, "signal"))
        r->ticked_ms = entry->recorded_at_ms;
}

/* It began with 1 to 3 and ends at 0: each signal cost one more tick, and its result says both. */
static void check_kept(struct reading *r, const struct node *instance)
{
    const struct node *result = node_find(instance, "result");

    if (!str_is(sim_text(instance, "current_state"), "completed"))
        return;
    if (sim_number(result, "ticks") != r->ticks || sim_number(result, "heard") != r->signals)
        FAIL(r, "C7 replay",
             "it counted %" PRId64 " ticks and %" PRId64 " signals; its history has %u and %u",
             sim_number(result, "ticks"), sim_number(result, "heard"), r->ticks, r->signals);
    if (r->ticks != r->signals + 1 + r->index % 3)
        FAIL(r, "C7 replay", "%u ticks and %u signals", r->ticks, r->signals);
}

/* ---- An instance ---- */

static void check_entry(struct reading *r, const pawl_entry *entry)
{
    r->count++;
    snprintf(r->lines[r->count % LINES_MAX], sizeof r->lines[0], "%" PRId64 " %s %s %s %u %.60s",
             entry->recorded_at_ms, entry->action, entry->step ? entry->step : "-",
             entry->actor_ref ? entry->actor_ref : "-", entry->attempt,
             entry->payload ? entry->payload : "");
    check_identity(r, entry);
    check_act(r, entry);
    switch (r->subject->process) {
    case PROCESS_DOOR:
        check_door(r, entry);
        break;
    case PROCESS_ORDER:
    case PROCESS_TREE:
        check_flow(r, entry);
        break;
    case PROCESS_KEEPER:
        check_keeper(r, entry);
        break;
    case PROCESS_COUNT:
        break;
    }
    if (r->subject->process != PROCESS_DOOR)
        r->has_ended =
            strcmp(entry->to_state, "running") != 0 && strcmp(entry->to_state, "created") != 0;
    r->recorded_ms = entry->recorded_at_ms;
}

static bool read_history(struct reading *r)
{
    struct sim *sim = r->sim;
    pawl_history *history = NULL;
    pawl_entry entry;
    pawl_status status;

    for (uint32_t i = 0; i < sim->act_count; i++)
        if (sim->acts[i].subject == r->index)
            sim->acts[i].seen = 0;
    status = pawl_history_open(sim->nodes[0], r->subject->id, NULL, &history, &sim->error);
    if (status != PAWL_OK)
        FAIL(r, "C1 durable", "its history cannot be read: %s", sim->error.message);
    while (pawl_history_next(history, &entry))
        check_entry(r, &entry);
    status = pawl_history_close(history, &sim->error);
    if (status != PAWL_OK)
        FAIL(r, "C1 durable", "its history cannot be read: %s", sim->error.message);
    return true;
}

static void check_promised(struct reading *r)
{
    if (r->count < r->subject->count || r->count < r->subject->last_seq)
        FAIL(r, "C1 durable", "%u entries were seen, %" PRIu64 " acknowledged, %u are there",
             r->subject->count, r->subject->last_seq, r->count);
    for (uint32_t i = 0; i < r->sim->act_count; i++) {
        const struct act *act = &r->sim->acts[i];

        if (act->subject == r->index && act->outcome == OUTCOME_DONE && !act->seen &&
            (act->kind == ACT_FIRE || act->kind == ACT_CANCEL))
            FAIL(r, "C1 durable", "c%u (%s) was acknowledged, and is not there", i, act->action);
    }
}

/* What is paused takes nothing; a flow may end what it had begun. */
static void check_held(struct reading *r)
{
    struct subject *subject = r->subject;
    bool is_strict = subject->process == PROCESS_DOOR || subject->process == PROCESS_KEEPER;

    if (subject->held == HELD_YES && is_strict && !subject->may_move &&
        subject->held_count != r->count)
        FAIL(r, "paused", "it had %u entries when it was paused", subject->held_count);
    subject->held_count = r->count;
    subject->may_move = false;
}

static void check_instance(struct reading *r)
{
    struct sim *sim = r->sim;
    struct node *instance;

    if (sim_look(sim, &instance, "instance.get", "{\"instance_id\":\"%s\"}", r->subject->id) !=
        PAWL_OK)
        FAIL(r, "C1 durable", "it cannot be read: %s", sim->error.message);
    if (r->count && !str_is(sim_text(instance, "current_state"), r->state))
        FAIL(r, "I7 replay", "its history ends in %s, and it is in %.*s", r->state,
             STR_ARG(sim_text(instance, "current_state")));
    if (sim_number(instance, "next_sequence_number") != r->count + 1)
        FAIL(r, "I6 total order", "the next entry is %" PRId64,
             sim_number(instance, "next_sequence_number"));
    if (r->subject->process == PROCESS_KEEPER)
        check_kept(r, instance);
    if (r->subject->process == PROCESS_DOOR)
        snprintf(r->subject->state, sizeof r->subject->state, "%s", r->count ? r->state : "shut");
    r->subject->has_ended = r->has_ended;
    r->subject->count = r->count;
    if (r->count > r->subject->last_seq)
        r->subject->last_seq = r->count;
}

/* An instance whose creator does not know of it: it is there once, or not at all. */
static bool find_subject(struct sim *sim, uint32_t index)
{
    struct subject *subject = &sim->subjects[index];
    struct node *answer;
    const struct node *rows;

    if (sim_look(sim, &answer, "instance.list", "{\"subject_ref\":\"s%u\"}", index) != PAWL_OK)
        sim_fail(sim, "C1 durable", "the list cannot be read: %s", sim->error.message);
    rows = node_find(answer, "instances");
    if (rows->count > 1)
        sim_fail(sim, "C4 once", "s%u is there %zu times", index, (size_t)rows->count);
    if (rows->count == 0 && subject->created == OUTCOME_DONE)
        sim_fail(sim, "C1 durable", "s%u was created, and is not there", index);
    if (rows->count == 1 && subject->created == OUTCOME_REFUSED)
        sim_fail(sim, "C3 refused", "s%u was refused, and is there", index);
    if (rows->count == 1)
        snprintf(subject->id, sizeof subject->id, "%.*s",
                 STR_ARG(sim_text(rows->first, "instance_id")));
    return rows->count == 1;
}

void check_all(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->subject_count; i++) {
        struct reading r = { .sim = sim, .subject = &sim->subjects[i], .index = i };

        if (!find_subject(sim, i))
            continue;
        read_history(&r);
        check_promised(&r);
        check_held(&r);
        check_instance(&r);
    }
    stream_follow(sim);
}

void check_store(struct sim *sim)
{
    struct verify_report report;

    EXPECT_OK(verify_run(engine_store(sim->nodes[0]->engine), &heap_libc,
                         &(struct verify_request){ .flows = &flow_behavior }, &report,
                         &sim->error));
    if (!report.valid)
        sim_fail(sim, "C13 evidence", "verify found, at record %" PRIu64 ": %s", report.bad_pos,
                 report.what);
}
