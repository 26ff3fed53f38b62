/* sagas.c - what histories must keep to that undo what was done, take their way after an error, keep
 * to limits, or start something else. */
#include "sim/reading.h"
#include <stdio.h>

static const char *const undoable[] = { "book", "hire" };
#define UNDOABLE (sizeof undoable / sizeof *undoable)

/* ---- Compensations ---- */

static bool is_undo_of(const struct reading *r, const char *step)
{
    char name[32];

    snprintf(name, sizeof name, "%s.compensate", step);
    return reading_is_of(r, name);
}

/* Done, and not undone. */
static bool stands(struct reading *r, const char *step)
{
    uint32_t index = reading_step(r, step);

    return r->fold->steps[index].completed && !r->fold->steps[index].undone_at;
}

static bool is_undo(const struct reading *r)
{
    return is_undo_of(r, undoable[0]) || is_undo_of(r, undoable[1]);
}

/* The last one is undone first. */
static void check_undo(struct reading *r, size_t which)
{
    const char *step = undoable[which];
    uint32_t done_at = r->fold->steps[reading_step(r, step)].done_at;

    if (!r->fold->is_undoing || !stands(r, step))
        FAIL(r, "saga", "%s is undone, and %s", step,
             r->fold->is_undoing ? "is not done" : "nothing has failed");
    for (size_t i = 0; i < UNDOABLE; i++)
        if (stands(r, undoable[i]) &&
            r->fold->steps[reading_step(r, undoable[i])].done_at > done_at)
            FAIL(r, "saga", "%s is undone before %s", step, undoable[i]);
    if (reading_is(r, "step.complete"))
        r->fold->steps[reading_step(r, step)].undone_at = r->fold->count;
}

static void check_undone(struct reading *r)
{
    bool is_well = strcmp(r->entry->to_state, "completed") == 0;

    if (strcmp(r->entry->to_state, "running") == 0)
        return;
    if (is_well && r->fold->is_undoing)
        FAIL(r, "saga", "what was undone has completed");
    for (size_t i = 0; i < UNDOABLE; i++)
        if (!is_well && stands(r, undoable[i]))
            FAIL(r, "saga", "it is %s, and %s is not undone", r->entry->to_state, undoable[i]);
}

/* ---- Errors ---- */

static void note_failure(struct reading *r)
{
    const char *payload = r->entry->payload ? r->entry->payload : "";

    snprintf(r->fold->failed, sizeof r->fold->failed, "%s", r->entry->step);
    if (reading_is_of(r, "bill") && strstr(payload, "\"clumsy\""))
        r->fold->is_refused = true;
    if (r->entry->reason && strcmp(r->entry->reason, "no worker took it in time") == 0)
        reading_early(r, r->fold->recorded_ms, NO_WORKER_MS);
}

/* `bill` leads on when it fails, so the trip does not fail with it. */
static void check_error(struct reading *r)
{
    bool was_bill = strcmp(r->fold->failed, "bill") == 0;

    if (reading_is(r, "step.retry") && reading_is_of(r, "bill") && r->fold->is_refused)
        FAIL(r, "X4 attempts", "bill is tried again after an error that never is");
    if (was_bill &&
        (reading_is(r, "fail") || (reading_is(r, "compensate") && r->entry->payload &&
                                   strstr(r->entry->payload, "\"because\":\"failed\""))))
        FAIL(r, "C15 rescue", "bill failed, and the way on was not taken");
    if (reading_is(r, "step.start") && r->entry->attempt == 1 && !was_bill &&
        (reading_is_of(r, "late") || reading_is_of(r, "mend")))
        FAIL(r, "C15 rescue", "%s begins, and %s failed last", r->entry->step,
             r->fold->failed[0] ? r->fold->failed : "nothing");
}

/* ---- Limits ---- */

static void note_booking(struct reading *r)
{
    struct sim *sim = r->sim;

    if (sim->booked_count < BOOKED_MAX)
        sim->booked_ms[sim->booked_count++] = r->entry->recorded_at_ms;
}

/* ---- A trip ---- */

static void check_start(struct reading *r)
{
    const struct fold *fold = r->fold;

    if (fold->is_undoing && !is_undo(r))
        FAIL(r, "saga", "%s begins after what was done is undone", r->entry->step);
    if (reading_is_of(r, "book"))
        note_booking(r);
    if (reading_is_of(r, "pay") && !fold_is_completed(fold, "bill") &&
        !fold_is_completed(fold, "late") && !fold_is_completed(fold, "mend"))
        FAIL(r, "C11 joins", "pay begins before the end of bill");
}

void sagas_trip(struct reading *r)
{
    if (reading_is(r, "compensate"))
        r->fold->is_undoing = true;
    if (reading_is(r, "step.start"))
        check_start(r);
    for (size_t i = 0; i < UNDOABLE; i++) {
        if (is_undo_of(r, undoable[i]) &&
            (reading_is(r, "step.start") || reading_is(r, "step.complete")))
            check_undo(r, i);
        if (reading_is(r, "step.complete") && reading_is_of(r, undoable[i]))
            r->fold->steps[reading_step(r, undoable[i])].done_at = r->fold->count;
    }
    check_error(r);
    if ((reading_is(r, "step.fail") || reading_is(r, "step.timeout")) && r->entry->step)
        note_failure(r);
    check_undone(r);
}

/* ---- A machine that starts a flow, and is told of its end ---- */

static const struct {
    const char *from, *action, *to;
    bool is_told;
} ways[] = {
    { "fresh", "send", "busy", false },
    { "busy", "cheer", "closed", true },
    { "busy", "sadden", "sad", true },
    { "sad", "leave", "closed", false },
};

static void note_told(struct reading *r)
{
    struct scope *scope = &r->sim->scope;
    struct node *told = NULL;

    if (!r->entry->payload)
        return;
    EXPECT_OK(node_read_json(scope, arena_str(&scope->arena, str_of(r->entry->payload)), &told));
    snprintf(r->fold->told, sizeof r->fold->told, "%.*s", STR_ARG(sim_text(told, "status")));
    snprintf(r->fold->told_of, sizeof r->fold->told_of, "%.*s",
             STR_ARG(sim_text(told, "instance_id")));
    if ((strcmp(r->fold->told, "completed") == 0) != reading_is(r, "cheer"))
        FAIL(r, "C11 joins", "it was told of %s by %s", r->fold->told, r->entry->action);
}

void sagas_desk(struct reading *r)
{
    const pawl_entry *entry = r->entry;
    const char *actor = entry->actor_ref ? entry->actor_ref : "";

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].from, entry->from_state) != 0 ||
            strcmp(ways[i].to, entry->to_state) != 0 || !reading_is(r, ways[i].action))
            continue;
        if (ways[i].is_told != (strcmp(actor, "pawl/on_end") == 0))
            FAIL(r, "I3 declared transitions", "%s by %s", entry->action, actor);
        if (ways[i].is_told)
            note_told(r);
        r->fold->has_ended = strcmp(entry->to_state, "closed") == 0;
        return;
    }
    FAIL(r, "I3 declared transitions", "%s --%s-> %s", entry->from_state, entry->action,
         entry->to_state);
}
