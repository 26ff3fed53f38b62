/* check.c - the ledger against the store: which instances there are, and what of the ledger they have.
 * Each rule has its name from docs/internals/simulation.md. */
#include "sim/sim.h"
#include "store/store.h"
#include <stdio.h>
#include <stdlib.h>

#define FAIL(sim, subject, rule, ...) fold_fail((sim), (subject), (rule), __VA_ARGS__)

/* ---- Which instances there are ---- */

static enum process process_of(struct sim *sim, str definition)
{
    for (uint32_t i = 0; i < PROCESS_COUNT; i++)
        if (str_is(definition, process_names[i]))
            return (enum process)i;
    sim_fail(sim, "C2 no phantom", "an instance of %.*s", STR_ARG(definition));
}

static uint32_t find_id(const struct sim *sim, str id)
{
    for (uint32_t i = 0; i < sim->subject_count && id.data; i++)
        if (str_is(id, sim->subjects[i].id))
            return i;
    return SUBJECTS_MAX;
}

/* It was made by a redrive, because its parent spawned it, or to tell of another one. */
static struct subject *adopt(struct sim *sim, const struct node *row, uint32_t act)
{
    struct subject *subject = new_subject(sim, process_of(sim, sim_text(row, "definition")), act);

    subject->created = OUTCOME_DONE;
    if (subject->process == PROCESS_NOTICE && !sim_text(row, "retry_of").data)
        senders_meet(sim, subject, row);
    subject->parent = find_id(sim, sim_text(row, "parent_id"));
    subject->of = find_id(sim, sim_text(row, "retry_of"));
    if (subject->of != SUBJECTS_MAX) {
        subject->number = sim->subjects[subject->of].number;
        subject->rounds = sim->subjects[subject->of].rounds;
    } else if (subject->parent != SUBJECTS_MAX)
        subject->rounds = sim->subjects[subject->parent].process == PROCESS_ORDER ? 2 : 1;
    return subject;
}

/* The act that an instance says that it was created by. */
static struct act *creator_of(struct sim *sim, const struct node *row)
{
    str actor = sim_text(row, "created_by");
    unsigned long number = actor.size > 1 ? strtoul(actor.data + 1, NULL, 10) : ACTS_MAX;

    if (number >= sim->act_count ||
        (sim->acts[number].kind != ACT_CREATE && sim->acts[number].kind != ACT_REDRIVE))
        sim_fail(sim, "C2 no phantom", "%.*s was created by %.*s",
                 STR_ARG(sim_text(row, "instance_id")), STR_ARG(actor));
    return &sim->acts[number];
}

/* An instance that was not known before: a child, a redriven one, or one whose creator has no answer. */
static struct subject *meet(struct sim *sim, const struct node *row)
{
    struct subject *subject;
    struct act *act;

    if (sim_text(row, "parent_id").data ||
        (str_is(sim_text(row, "definition"), process_names[PROCESS_NOTICE]) &&
         !sim_text(row, "retry_of").data))
        return adopt(sim, row, ACTS_MAX);
    act = creator_of(sim, row);
    if (act->outcome == OUTCOME_REFUSED)
        sim_fail(sim, "C3 refused", "%s c%u was refused, and is there", act->action,
                 act_index(sim, act));
    if (act->kind == ACT_REDRIVE) {
        if (act->made[0] && !str_is(sim_text(row, "instance_id"), act->made))
            sim_fail(sim, "C4 once", "c%u redrove s%u twice", act_index(sim, act), act->subject);
        snprintf(act->made, sizeof act->made, "%.*s", STR_ARG(sim_text(row, "instance_id")));
        if (!str_is(sim_text(row, "retry_of"), sim->subjects[act->subject].id))
            sim_fail(sim, "C2 no phantom", "c%u redrove another one", act_index(sim, act));
        return adopt(sim, row, act_index(sim, act));
    }
    subject = &sim->subjects[act->subject];
    if (subject->id[0])
        sim_fail(sim, "C4 once", "s%u is there twice", act->subject);
    return subject;
}

/* ---- One instance ---- */

/* It ends at 0: each signal cost one more tick, and its result says both. */
static void check_keeper(struct sim *sim, const struct subject *subject, const struct node *result)
{
    const struct fold *fold = &subject->fold;

    if (sim_number(result, "ticks") != fold->ticks || sim_number(result, "heard") != fold->signals)
        FAIL(sim, subject, "C7 replay",
             "it counted %" PRId64 " ticks and %" PRId64 " signals; its history has %u and %u",
             sim_number(result, "ticks"), sim_number(result, "heard"), fold->ticks, fold->signals);
    if (fold->ticks != fold->signals + subject->rounds)
        FAIL(sim, subject, "C7 replay", "%u ticks and %u signals", fold->ticks, fold->signals);
}

static void check_clerk(struct sim *sim, const struct subject *subject, const struct node *result)
{
    const struct fold *fold = &subject->fold;
    int64_t bonus = sim_number(result, "bonus");

    if (sim_number(result, "notes") != fold->signals ||
        sim_number(result, "bored") != fold->ticks ||
        sim_number(result, "sum") != (int64_t)fold->sum)
        FAIL(sim, subject, "C7 replay",
             "it read %" PRId64 " notes of %" PRId64 " and was bored %" PRId64
             " times; its history has %u of %" PRIu64 " and %u",
             sim_number(result, "notes"), sim_number(result, "sum"), sim_number(result, "bored"),
             fold->signals, fold->sum, fold->ticks);
    if (fold->signals + fold->ticks != subject->rounds)
        FAIL(sim, subject, "C7 replay", "%u notes and %u times bored", fold->signals, fold->ticks);
    if (bonus != -1 && bonus != BONUS)
        FAIL(sim, subject, "C7 replay", "the bonus is %" PRId64, bonus);
}

static void check_result(struct sim *sim, const struct subject *subject, const struct node *row)
{
    if (strcmp(subject->fold.state, "completed") != 0)
        return;
    if (subject->process == PROCESS_KEEPER)
        check_keeper(sim, subject, node_find(row, "result"));
    if (subject->process == PROCESS_CLERK)
        check_clerk(sim, subject, node_find(row, "result"));
}

/* Entries after those that are known; the last of these once more, for its hash covers all before. */
static void read_history(struct sim *sim, struct subject *subject)
{
    uint32_t known = subject->fold.count;
    pawl_history_query query = { .sequence_from = known };
    pawl_history *history = NULL;
    pawl_entry entry;
    pawl_status status =
        pawl_history_open(sim->nodes[0], subject->id, &query, &history, &sim->error);

    if (status != PAWL_OK)
        FAIL(sim, subject, "C1 durable", "its history cannot be read: %s", sim->error.message);
    while (pawl_history_next(history, &entry))
        if (known && entry.sequence_number == known) {
            if (strncmp(subject->hashes[known - 1], entry.hash, 16) != 0)
                FAIL(sim, subject, "I5 append-only", "it has changed since it was seen");
        } else
            fold_entry(sim, subject, &entry);
    status = pawl_history_close(history, &sim->error);
    if (status != PAWL_OK)
        FAIL(sim, subject, "C1 durable", "its history cannot be read: %s", sim->error.message);
}

static void check_row(struct sim *sim, struct subject *subject, const struct node *row)
{
    const struct fold *fold = &subject->fold;
    int64_t next = sim_number(row, "next_sequence_number");

    if (fold->count == 0)
        fold_begin(sim, subject);
    if (next != (int64_t)fold->count + 1 || subject->life != sim->life)
        read_history(sim, subject);
    subject->life = sim->life;
    check_erased(sim, subject, row);
    if (fold->count && !str_is(sim_text(row, "current_state"), fold->state))
        FAIL(sim, subject, "I7 replay", "its history ends in %s, and it is in %.*s", fold->state,
             STR_ARG(sim_text(row, "current_state")));
    if (next != (int64_t)fold->count + 1)
        FAIL(sim, subject, "I6 total order", "the next entry is %" PRId64, next);
    if (fold->count < subject->count || fold->count < subject->last_seq)
        FAIL(sim, subject, "C1 durable",
             "%u entries were seen, %" PRIu64 " acknowledged, %u are there", subject->count,
             subject->last_seq, fold->count);
    check_result(sim, subject, row);
    if (subject->process == PROCESS_DOOR)
        snprintf(subject->state, sizeof subject->state, "%s", fold->count ? fold->state : "shut");
    subject->has_ended = fold->has_ended;
    subject->last_seq = subject->count = fold->count;
}

static void check_listed(struct sim *sim, const struct node *row)
{
    str id = sim_text(row, "instance_id");
    uint32_t index = find_id(sim, id);
    struct subject *subject = index == SUBJECTS_MAX ? meet(sim, row) : &sim->subjects[index];

    snprintf(subject->id, sizeof subject->id, "%.*s", STR_ARG(id));
    if (subject->created == OUTCOME_REFUSED)
        FAIL(sim, subject, "C3 refused", "it was refused, and is there");
    if (subject->is_listed)
        FAIL(sim, subject, "C6 reads", "it is listed twice");
    subject->is_listed = true;
    check_row(sim, subject, row);
}

/* By pages: each goes on where the one before it stopped. */
static void read_list(struct sim *sim)
{
    uint32_t limit = 3 + dice_below(&sim->dice, 30);
    struct node *answer;
    const struct node *rows;
    char after[128] = "";
    str next;

    for (uint32_t i = 0; i < sim->subject_count; i++)
        sim->subjects[i].is_listed = false;
    do {
        if (sim_look(sim, &answer, "instance.list", "{\"order\":\"oldest\",\"limit\":%u%s}", limit,
                     after) != PAWL_OK)
            sim_fail(sim, "C1 durable", "the list cannot be read: %s", sim->error.message);
        rows = node_find(answer, "instances");
        for (const struct node *row = rows ? rows->first : NULL; row; row = row->next)
            check_listed(sim, row);
        next = sim_text(answer, "next");
        snprintf(after, sizeof after, ",\"after\":\"%.*s\"", STR_ARG(next));
    } while (next.data);
}

/* ---- What was promised ---- */

/* It is there, if it was acknowledged. */
static bool must_have_entry(const struct act *act)
{
    return act->kind == ACT_FIRE || act->kind == ACT_CANCEL || act->kind == ACT_AMEND ||
           act->kind == ACT_APPROVE || (act->kind == ACT_SIGNAL && act->is_delivered);
}

/* It was cancelled by another call before: this one had the same answer, and changed nothing. */
static bool came_second(const struct sim *sim, const struct act *act)
{
    return act->kind == ACT_CANCEL && sim->subjects[act->subject].fold.is_cancelling;
}

static void check_promise(struct sim *sim, const struct act *act)
{
    if (act->outcome != OUTCOME_DONE)
        return;
    if (must_have_entry(act) && !act->entry && !came_second(sim, act))
        FAIL(sim, &sim->subjects[act->subject], "C1 durable",
             "c%u (%s) was acknowledged, and is not there", act_index(sim, act), act->action);
    if (act->kind == ACT_BROADCAST && __builtin_popcountll(act->seen) < act->delivered)
        sim_fail(sim, "C1 durable", "c%u was delivered to %" PRId64 " instances, and %d have it",
                 act_index(sim, act), act->delivered, __builtin_popcountll(act->seen));
    if (act->kind == ACT_REDRIVE && find_id(sim, str_of(act->made)) == SUBJECTS_MAX)
        sim_fail(sim, "C1 durable", "c%u made %s, which is not there", act_index(sim, act),
                 act->made);
}

/* Signals that are kept are taken in the order in which they were accepted. */
static void check_queue(struct sim *sim, const struct act *later)
{
    for (const struct act *act = sim->acts; act < later; act++)
        if (act->kind == ACT_SIGNAL && act->subject == later->subject &&
            act->outcome == OUTCOME_DONE && act->done_at < later->sent_at &&
            (!act->entry || act->entry > later->entry))
            FAIL(sim, &sim->subjects[act->subject], "C5 order",
                 "c%u was accepted before c%u was sent, which is entry %" PRIu64,
                 act_index(sim, act), act_index(sim, later), later->entry);
}

/* One run of a failed instance at a time; a child ends with its parent, but for one that cleans up
 * first: its `finally` runs after the parent's commit, and then it ends as everything does. */
static void check_family(struct sim *sim, const struct subject *subject)
{
    uint32_t index = subject_index(sim, subject), heirs = 0;

    if (subject->parent != SUBJECTS_MAX && sim->subjects[subject->parent].has_ended &&
        !subject->has_ended && subject->process != PROCESS_TREE)
        FAIL(sim, subject, "C11 joins", "its parent s%u has ended", subject->parent);
    for (uint32_t i = 0; i < sim->subject_count; i++)
        heirs += sim->subjects[i].of == index &&
                 strcmp(sim->subjects[i].fold.state, "failed") != 0 &&
                 strcmp(sim->subjects[i].fold.state, "cancelled") != 0;
    if (heirs > 1)
        FAIL(sim, subject, "C4 once", "%u instances run it again", heirs);
}

/* Its result was erased with the instance, which may not have been known when it was leased. */
static bool is_gone(const struct sim *sim, const struct claim *claim)
{
    uint32_t index = find_id(sim, (str){ claim->step_id, ID_SIZE });

    return index != SUBJECTS_MAX && sim->subjects[index].is_erased;
}

static void check_promises(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->subject_count; i++) {
        const struct subject *subject = &sim->subjects[i];

        if (!subject->is_listed && (subject->id[0] || subject->created == OUTCOME_DONE))
            FAIL(sim, subject, "C1 durable", "it was created, and is not there");
        check_family(sim, subject);
    }
    senders_check(sim);
    for (uint32_t i = 0; i < sim->act_count; i++) {
        check_promise(sim, &sim->acts[i]);
        if (sim->acts[i].kind == ACT_SIGNAL && sim->acts[i].entry)
            check_queue(sim, &sim->acts[i]);
    }
    for (uint32_t i = 0; i < sim->claim_count; i++)
        if (sim->claims[i].is_taken && !sim->claims[i].is_seen && !is_gone(sim, &sim->claims[i]))
            sim_fail(sim, "C1 durable",
                     "the result of attempt %u of %s was taken, and is not there",
                     sim->claims[i].attempt, sim->claims[i].step_id);
}

/* ---- Checks ---- */

void check_all(struct sim *sim)
{
    read_list(sim);
    check_promises(sim);
    stream_follow(sim);
}

void check_store(struct sim *sim)
{
    struct verify_report report;

    EXPECT_OK(
        verify_run(engine_store(sim->nodes[0]->engine), &heap_libc,
                   &(struct verify_request){ .flows = &flow_behavior, .is_schema_known = true },
                   &report, &sim->error));
    if (!report.valid)
        sim_fail(sim, "C13 evidence", "verify found, at record %" PRIu64 ": %s", report.bad_pos,
                 report.what);
}

void check_whole(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->subject_count; i++)
        sim->subjects[i].fold.count = 0;
    sim->booked_count = 0;
    check_all(sim);
    check_rate(sim);
    check_store(sim);
    tally_check(sim);
}
