/* senders.c - instances that others start: one for each reason, and no other. What is erased stays
 * erased. A rate holds over all instances. */
#include "sim/sim.h"
#include <stdlib.h>

#define FAIL(sim, subject, rule, ...) fold_fail((sim), (subject), (rule), __VA_ARGS__)

/* ---- Notices ---- */

/* Has this one a reason to start a notice? */
static bool is_sender(const struct subject *subject)
{
    const char *state = subject->fold.state;

    if (subject->process == PROCESS_DESK)
        return subject->fold.count > 0;
    return subject->process == PROCESS_TRIP &&
           (strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0);
}

static uint32_t count_notices(const struct sim *sim, const struct subject *subject)
{
    uint32_t index = subject_index(sim, subject), count = 0;

    for (uint32_t i = 0; i < sim->subject_count; i++)
        count += sim->subjects[i].sender == index;
    return count;
}

bool senders_owe(const struct sim *sim, const struct subject *subject)
{
    return is_sender(subject) && count_notices(sim, subject) == 0;
}

void senders_meet(struct sim *sim, struct subject *notice, const struct node *row)
{
    const struct node *input = node_find(row, "input");
    const struct node *event = input ? node_find(input, "event") : NULL;
    str id = sim_text(event, "instance_id"), on = sim_text(event, "on");

    for (uint32_t i = 0; i < sim->subject_count && id.data; i++)
        if (str_is(id, sim->subjects[i].id))
            notice->sender = i;
    if (notice->sender == SUBJECTS_MAX)
        sim_fail(sim, "C2 no phantom", "a notice of %.*s", STR_ARG(id));
    if (on.data && !str_is(on, sim->subjects[notice->sender].fold.state))
        FAIL(sim, &sim->subjects[notice->sender], "C2 no phantom", "a notice that it has %.*s",
             STR_ARG(on));
}

static const struct subject *find(const struct sim *sim, const char *id)
{
    for (uint32_t i = 0; i < sim->subject_count; i++)
        if (strcmp(sim->subjects[i].id, id) == 0)
            return &sim->subjects[i];
    return NULL;
}

void senders_check(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->subject_count; i++) {
        const struct subject *subject = &sim->subjects[i], *told;
        uint32_t count = count_notices(sim, subject);

        if (count > is_sender(subject))
            FAIL(sim, subject, "C4 once", "it has sent %u notices", count);
        told = subject->fold.told[0] ? find(sim, subject->fold.told_of) : NULL;
        if (subject->fold.told[0] &&
            (!told || told->sender != i || strcmp(told->fold.state, subject->fold.told) != 0))
            FAIL(sim, subject, "C11 joins", "it was told that %s is %s", subject->fold.told_of,
                 subject->fold.told);
    }
}

/* ---- What is erased ---- */

static bool has_calls(const struct sim *sim, const struct subject *subject)
{
    for (uint32_t i = 0; i < sim->act_count; i++)
        if (sim->acts[i].kind == ACT_ERASE && sim->acts[i].outcome != OUTCOME_REFUSED &&
            sim->acts[i].subject == subject_index(sim, subject))
            return true;
    return false;
}

/* By a call, or by the definition's retention when its time has come. */
void check_erased(struct sim *sim, struct subject *subject, const struct node *row)
{
    const struct node *erased = node_find(row, "erased");
    int64_t now_ms = engine_now_ms(sim->nodes[0]->engine);
    bool is_erased = erased && erased->kind == NODE_OBJECT;

    if (!is_erased && (subject->erased == HELD_YES || subject->is_erased))
        FAIL(sim, subject, "C1 durable", "it was erased, and is there again");
    if (!is_erased || subject->is_erased)
        return;
    subject->is_erased = true;
    if (!subject->fold.has_ended)
        FAIL(sim, subject, "erasing", "it is erased before its end");
    if (has_calls(sim, subject))
        return;
    if (subject->process != PROCESS_LOAD)
        FAIL(sim, subject, "C2 no phantom", "it is erased, and nobody has asked for that");
    if (now_ms < subject->fold.recorded_ms + RETENTION_MS && !(sim->jumps && sim->life > 1))
        FAIL(sim, subject, "C10 timers", "it is erased %" PRId64 " ms early",
             subject->fold.recorded_ms + RETENTION_MS - now_ms);
}

void check_retention(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->subject_count; i++)
        if (sim->subjects[i].process == PROCESS_LOAD && sim->subjects[i].id[0] &&
            !sim->subjects[i].is_erased)
            FAIL(sim, &sim->subjects[i], "C14 progress",
                 "it has ended long ago, and is not erased");
}

/* ---- A rate ---- */

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

void check_rate(struct sim *sim)
{
    int64_t *at = sim->booked_ms;

    if (sim->jumps && sim->life > 1)
        return;
    qsort(at, sim->booked_count, sizeof *at, compare_times);
    for (uint32_t i = BOOKED_MOST; i < sim->booked_count; i++)
        if (at[i] - at[i - BOOKED_MOST] < BOOKED_WITHIN_MS)
            sim_fail(sim, "limits", "%u trips begin within %" PRId64 " ms", BOOKED_MOST + 1,
                     at[i] - at[i - BOOKED_MOST]);
}
