/* fold.c - histories, read entry by entry with rules of the checker's own. Each rule has its name from
 * docs/internals/simulation.md. */
#include "sim/reading.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void fold_fail(struct sim *sim, const struct subject *subject, const char *rule,
                         const char *format, ...)
{
    const struct fold *fold = &subject->fold;
    char words[400];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    for (uint32_t i = fold->count > LINES_MAX ? fold->count - LINES_MAX + 1 : 1; i <= fold->count;
         i++)
        sim_note(sim, "entry %u: %s", i, fold->lines[i % LINES_MAX]);
    sim_fail(sim, rule, "s%u (%s, %s), entry %u: %s", subject_index(sim, subject),
             process_names[subject->process], subject->id, fold->count, words);
}

static bool is(const pawl_entry *entry, const char *action)
{
    return strcmp(entry->action, action) == 0;
}

bool reading_is(const struct reading *r, const char *action)
{
    return is(r->entry, action);
}

bool reading_is_of(const struct reading *r, const char *step)
{
    return r->entry->step && strcmp(r->entry->step, step) == 0;
}

/* ---- All processes ---- */

static void check_identity(struct reading *r)
{
    struct subject *subject = r->subject;
    const pawl_entry *entry = r->entry;
    struct fold *fold = r->fold;

    if (entry->sequence_number != fold->count)
        FAIL(r, "I6 total order", "it has the number %" PRIu64, entry->sequence_number);
    if (fold->count > ENTRIES_MAX)
        FAIL(r, "C15 bounded", "more than %u entries", ENTRIES_MAX);
    if (fold->count <= subject->count &&
        strncmp(subject->hashes[fold->count - 1], entry->hash, 16) != 0)
        FAIL(r, "I5 append-only", "it has changed since it was seen");
    memcpy(subject->hashes[fold->count - 1], entry->hash, 16);
    if (entry->recorded_at_ms < fold->recorded_ms)
        FAIL(r, "clock", "it was recorded before the one before it");
    if (fold->count > 1 && strcmp(entry->from_state, fold->state) != 0)
        FAIL(r, "I7 replay", "it leaves %s, and %s was reached", entry->from_state, fold->state);
    if (fold->has_ended)
        FAIL(r, "I4 terminal", "%s after the end", entry->action);
    snprintf(fold->state, sizeof fold->state, "%s", entry->to_state);
}

/* The client's act that an actor_ref names; NULL: none of ours. */
static struct act *act_of(struct reading *r)
{
    const char *actor = r->entry->actor_ref;
    unsigned long number;

    if (!actor || actor[0] != 'c')
        return NULL;
    number = strtoul(actor + 1, NULL, 10);
    if (number >= r->sim->act_count)
        FAIL(r, "C2 no phantom", "its actor %s has made no call", actor);
    return &r->sim->acts[number];
}

/* Was the call sent to this instance, or to one that it belongs to? */
static bool concerns(const struct sim *sim, const struct act *act, uint32_t index)
{
    for (; index != SUBJECTS_MAX; index = sim->subjects[index].parent)
        if (act->kind == ACT_BROADCAST || act->subject == index)
            return true;
    return false;
}

/* What has to clean up first is cancelled by two entries: the first ends what runs, and the last is
 * that of any cancel. */
static bool is_named(const struct act *act, const pawl_entry *entry)
{
    if (act->kind == ACT_CANCEL && (is(entry, "clean-up") || is(entry, "compensate")))
        return true;
    if (act->kind == ACT_SIGNAL || act->kind == ACT_BROADCAST)
        return is(entry, "signal");
    if (act->kind == ACT_APPROVE) /* what it leads to is recorded with it */
        return act->is_reject || is(entry, "gate.approve");
    return is(entry, act->action);
}

static void check_act(struct reading *r)
{
    const pawl_entry *entry = r->entry;
    struct act *act = act_of(r);
    uint64_t bit = UINT64_C(1) << r->index;

    if (!act || act->kind == ACT_CREATE || act->kind == ACT_REDRIVE ||
        (r->subject->sender != SUBJECTS_MAX && is(entry, "start")))
        return;
    if (!concerns(r->sim, act, r->index))
        FAIL(r, "C2 no phantom", "%s was sent to s%u", entry->actor_ref, act->subject);
    if (!is_named(act, entry))
        FAIL(r, "C2 no phantom", "%s is %s, and was %s", entry->actor_ref, entry->action,
             act->action);
    if (act->outcome == OUTCOME_REFUSED)
        FAIL(r, "C3 refused", "%s was refused", entry->actor_ref);
    if (act->kind == ACT_CANCEL && (r->fold->is_cleaning || r->fold->is_undoing) &&
        (is(entry, "cancel") || is(entry, "compensate")))
        return;
    if (act->seen & bit)
        FAIL(r, "C4 once", "%s has two entries", entry->actor_ref);
    act->seen |= bit;
    if (act->subject != r->index)
        return;
    act->entry = entry->sequence_number;
    if (act->outcome == OUTCOME_DONE && act->seq && act->seq != entry->sequence_number)
        FAIL(r, "C1 durable", "%s was answered as entry %" PRIu64, entry->actor_ref, act->seq);
}

static bool is_one_of(const pawl_entry *entry, const char *const *actions)
{
    for (; *actions; actions++)
        if (is(entry, *actions))
            return true;
    return false;
}

/* What is paused takes nothing but the answers to what it had begun, and its end. Code handles such an
 * answer later; a flow goes on to what follows from it, but begins and hears nothing. */
static bool is_allowed_held(enum process process, const pawl_entry *entry)
{
    static const char *const answers[] = { "cancel",     "step.complete", "step.fail",
                                           "step.retry", "step.timeout",  "amend",
                                           NULL };
    static const char *const events[] = { "step.start",   "timer", "signal",
                                          "gate.approve", "child", NULL };

    if (process == PROCESS_DOOR || process == PROCESS_DESK)
        return false;
    return process == PROCESS_KEEPER || process == PROCESS_CLERK ? is_one_of(entry, answers)
                                                                 : !is_one_of(entry, events);
}

static void check_held(struct reading *r)
{
    const struct subject *subject = r->subject;
    const struct act *act = act_of(r);

    if (subject->held != HELD_YES || subject->held_count == UINT32_MAX ||
        r->fold->count <= subject->held_count || (act && act->kind == ACT_CANCEL) ||
        r->fold->is_cleaning || r->fold->is_undoing || is_allowed_held(subject->process, r->entry))
        return;
    FAIL(r, "paused", "%s, and it had %u entries when it was paused", r->entry->action,
         subject->held_count);
}

/* ---- Timers ---- */

/* A process that opens the store has only the wall clock to tell how much time has passed: if that
 * was set, the store's clock and all due times may have been shifted, and recorded times before and
 * after cannot be compared. */
void reading_early(struct reading *r, int64_t armed_ms, int64_t after_ms)
{
    int64_t at_ms = r->entry->recorded_at_ms;

    if (at_ms < armed_ms + after_ms && !(r->sim->jumps && r->sim->life > 1))
        FAIL(r, "C10 timers", "a timer of %" PRId64 " ms fires %" PRId64 " ms early", after_ms,
             armed_ms + after_ms - at_ms);
}

/* ---- The machine ---- */

static void check_door(struct reading *r)
{
    const pawl_entry *entry = r->entry;
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
        reading_early(r, r->fold->recorded_ms, DOOR_DEADLINE_MS);
    r->fold->has_ended = door_is_end(entry->to_state);
}

/* ---- Flows ---- */

uint32_t reading_step(struct reading *r, const char *name)
{
    struct fold *fold = r->fold;

    for (uint32_t i = 0; i < fold->step_count; i++)
        if (strcmp(fold->steps[i].name, name) == 0)
            return i;
    if (fold->step_count == STEPS_MAX)
        FAIL(r, "C11 joins", "more than %u steps", STEPS_MAX);
    memset(&fold->steps[fold->step_count], 0, sizeof fold->steps[0]);
    snprintf(fold->steps[fold->step_count].name, sizeof fold->steps->name, "%s", name);
    return fold->step_count++;
}

bool fold_is_completed(const struct fold *fold, const char *step)
{
    for (uint32_t i = 0; i < fold->step_count; i++)
        if (strcmp(fold->steps[i].name, step) == 0)
            return fold->steps[i].completed > 0 || fold->steps[i].is_reused;
    return false;
}

void reading_follow(struct reading *r, const char *step, const char *before)
{
    if (!fold_is_completed(r->fold, before))
        FAIL(r, "C11 joins", "%s begins before the end of %s", step, before);
}

/* Which way an order goes from `ship` to `paid`: by its input, and by the version that it had then. */
static void check_way(struct reading *r, const char *step)
{
    bool is_even = r->subject->number % 2 == 0;

    if (strcmp(step, "rest") == 0 || strcmp(step, "brief") == 0) {
        if (is_even != (strcmp(step, "rest") == 0))
            FAIL(r, "B13 branches", "an order of %u goes by %s", r->subject->number, step);
        r->fold->way_version = r->fold->version;
    }
    if (strcmp(step, "paid") == 0)
        reading_follow(r, step, is_even ? "rest" : "brief");
    if (strcmp(step, "paid") == 0 && r->fold->way_version == 2)
        reading_follow(r, step, "extra");
}

/* A try that fails goes by its rescue to its end. */
static void check_rescue(struct reading *r, const char *step)
{
    if (r->fold->is_cleaning && strcmp(step, "tidy") != 0)
        FAIL(r, "cancel", "%s begins after the cancel", step);
    if (strcmp(step, "tidy") == 0 && r->subject->of == SUBJECTS_MAX && !r->fold->is_cleaning &&
        !fold_is_completed(r->fold, "risky") && !r->fold->steps[reading_step(r, "note")].completed)
        FAIL(r, "C15 rescue", "risky failed, and tidy begins without its rescue");
}

static void check_order(struct reading *r, const char *step)
{
    for (const struct order_rule *rule = order_rules; rule->step; rule++)
        if (rule->process == r->subject->process && strcmp(rule->step, step) == 0)
            reading_follow(r, step, rule->before);
    if (r->subject->process == PROCESS_TREE)
        check_rescue(r, step);
}

static uint32_t attempts_of(const char *step)
{
    return strcmp(step, "risky") == 0 || strcmp(step, "pay") == 0 || strcmp(step, "tell") == 0
               ? RISKY_ATTEMPTS_MAX
           : strcmp(step, "bill") == 0   ? BILL_ATTEMPTS_MAX
           : strstr(step, ".compensate") ? UNDO_ATTEMPTS_MAX
                                         : ATTEMPTS_MAX;
}

static void check_started(struct reading *r)
{
    const pawl_entry *entry = r->entry;
    uint32_t index = reading_step(r, entry->step);
    uint32_t most = attempts_of(entry->step);

    check_order(r, entry->step);
    if (r->fold->steps[index].completed)
        FAIL(r, "X1 one result", "%s is started after its end", entry->step);
    if (r->fold->steps[index].is_reused && r->subject->process != PROCESS_TREE &&
        r->subject->process != PROCESS_LOAD)
        FAIL(r, "X1 one result", "%s is started, and has a result from before", entry->step);
    if (entry->attempt != ++r->fold->steps[index].started || entry->attempt > most)
        FAIL(r, "X4 attempts", "attempt %u of %s is its start %u", entry->attempt, entry->step,
             r->fold->steps[index].started);
}

/* A result of a worker names the claim that it was sent for. What is erased names nothing. */
struct claim *reading_nonce(struct reading *r)
{
    const pawl_entry *entry = r->entry;
    const char *at = entry->payload ? strstr(entry->payload, "\"nonce\":") : NULL;
    unsigned long nonce = at ? strtoul(at + 8, NULL, 10) : 0;
    struct claim *claim = &r->sim->claims[nonce % CLAIMS_MAX];

    if (!at || !entry->step || strcmp(entry->step, "end") == 0 || strcmp(entry->step, "rows") == 0)
        return NULL;
    if (nonce >= r->sim->claim_count || !claim->is_sent)
        FAIL(r, "C8 effects", "a result that no worker has sent: %.60s", entry->payload);
    if (strcmp(claim->name, entry->step) != 0 || claim->attempt != entry->attempt)
        FAIL(r, "C9 fenced", "attempt %u of %s has the result of attempt %u of %s", entry->attempt,
             entry->step, claim->attempt, claim->name);
    claim->is_seen = true;
    return claim;
}

/* A rescue sees what went wrong. */
static void check_error_known(struct reading *r)
{
    const char *payload = r->entry->payload ? r->entry->payload : "";

    if (!strstr(payload, "\"why\":\"") || strstr(payload, "\"why\":\"\""))
        FAIL(r, "C27 errors", "a rescue does not know what went wrong: %.60s", payload);
}

static void end_step(struct reading *r)
{
    const char *step = r->entry->step;
    uint32_t index = reading_step(r, step);

    check_order(r, step);
    if (r->subject->process == PROCESS_ORDER)
        check_way(r, step);
    if (r->fold->steps[index].completed++)
        FAIL(r, "X1 one result", "%s is completed twice", step);
    if (strcmp(step, "note") == 0)
        check_error_known(r);
}

/* Of a child that did not end well there is an entry, and then its step fails. */
static void fail_step(struct reading *r)
{
    const char *step = r->entry->step;
    uint32_t index = reading_step(r, step);
    bool is_spawn =
        strcmp(step, "one") == 0 || strcmp(step, "two") == 0 || strcmp(step, "mind") == 0;

    if (r->fold->steps[index].completed && !is_spawn)
        FAIL(r, "X1 one result", "%s fails after its end", step);
    r->fold->steps[index].completed = 0;
}

/* A tree that ends well has rescued what failed, and has always tidied up. */
static void check_finished(struct reading *r)
{
    if (r->subject->process != PROCESS_TREE || strcmp(r->fold->state, "completed") != 0)
        return;
    if (!fold_is_completed(r->fold, "risky") && !fold_is_completed(r->fold, "mop"))
        FAIL(r, "C11 joins", "risky failed, and was not rescued");
    if (!fold_is_completed(r->fold, "last"))
        FAIL(r, "C11 joins", "it ends before its last step");
}

static void note_flow(struct reading *r)
{
    const pawl_entry *entry = r->entry;

    if (is(entry, "amend"))
        r->fold->version = 2;
    else if (is(entry, "step.start"))
        check_started(r);
    else if (is(entry, "step.complete") && entry->step) {
        reading_nonce(r);
        end_step(r);
    } else if (is(entry, "step.retry") && entry->step) /* given back: it keeps its number */
        r->fold->steps[reading_step(r, entry->step)].started = entry->attempt - 1;
    else if (is(entry, "step.fail") && entry->step)
        fail_step(r);
    else if (is(entry, "gate.approve") && entry->step) {
        if (++r->fold->approvals == APPROVALS)
            end_step(r);
    } else if ((is(entry, "timer") || is(entry, "signal") || is(entry, "child")) && entry->step) {
        if (is(entry, "timer") && strcmp(entry->step, "rest") == 0)
            reading_early(r, r->fold->rested_ms, REST_MS);
        end_step(r);
    }
    if (is(entry, "finish"))
        check_finished(r);
}

static void check_flow(struct reading *r)
{
    const pawl_entry *entry = r->entry;

    r->fold->is_cleaning = r->fold->is_cleaning || is(entry, "clean-up");
    r->fold->is_cancelling = r->fold->is_cancelling || r->fold->is_cleaning ||
                             (is(entry, "compensate") && entry->payload &&
                              strstr(entry->payload, "\"because\":\"cancelled\""));
    if (groups_is_item(r))
        groups_item(r);
    else
        note_flow(r);
    if (is(entry, "start") || (is(entry, "step.complete") && reading_is_of(r, "ship")))
        r->fold->rested_ms = entry->recorded_at_ms;
    if (r->subject->process == PROCESS_TRIP)
        sagas_trip(r);
    if (r->subject->process == PROCESS_LOAD)
        groups_load(r);
    if (r->subject->process == PROCESS_TREE)
        groups_tree(r);
}

/* ---- Code ---- */

/* The timers that code itself has armed; others begin with a tilde. */
static bool is_tick(const pawl_entry *entry)
{
    return is(entry, "timer") && !(entry->payload && strstr(entry->payload, ":\"~"));
}

static void check_code(struct reading *r)
{
    const pawl_entry *entry = r->entry;
    struct fold *fold = r->fold;
    const char *n = entry->payload ? strstr(entry->payload, "\"n\":") : NULL;

    if (is_tick(entry))
        reading_early(r, fold->ticked_ms,
                      r->subject->process == PROCESS_CLERK ? BORED_MS : TICK_MS);
    fold->ticks += is_tick(entry);
    if (is(entry, "signal")) {
        fold->signals++;
        fold->sum += n ? strtoull(n + 4, NULL, 10) : 0;
    }
    if (is(entry, "step.complete"))
        reading_nonce(r);
    if (!is(entry, "step.start") && !is(entry, "step.retry") && !is(entry, "step.fail") &&
        !is(entry, "amend"))
        fold->ticked_ms = entry->recorded_at_ms;
}

/* ---- An entry ---- */

/* Its first entry comes next: what a redriven flow reuses is what the one before it had reached. */
void fold_begin(struct sim *sim, struct subject *subject)
{
    uint32_t index = subject_index(sim, subject);
    const struct fold *before =
        subject->of == SUBJECTS_MAX ? NULL : &sim->subjects[subject->of].fold;

    memset(&subject->fold, 0, sizeof subject->fold);
    subject->fold.version = subject->act == ACTS_MAX ? 0 : sim->acts[subject->act].version;
    for (uint32_t i = 0; i < sim->act_count; i++) {
        sim->acts[i].seen &= ~(UINT64_C(1) << index);
        if (sim->acts[i].subject == index)
            sim->acts[i].entry = 0;
    }
    for (uint32_t i = 0; i < sim->claim_count; i++)
        if (sim->claims[i].subject == index)
            sim->claims[i].is_seen = false;
    if (!before || subject->process == PROCESS_KEEPER || subject->process == PROCESS_CLERK)
        return;
    subject->fold.step_count = before->step_count;
    for (uint32_t i = 0; i < before->step_count; i++) {
        memcpy(subject->fold.steps[i].name, before->steps[i].name, sizeof before->steps[i].name);
        subject->fold.steps[i].is_reused = before->steps[i].completed || before->steps[i].is_reused;
    }
}

void fold_entry(struct sim *sim, struct subject *subject, const pawl_entry *entry)
{
    struct fold *fold = &subject->fold;
    struct reading r = { sim, subject, fold, subject_index(sim, subject), entry };

    fold->count++;
    snprintf(fold->lines[fold->count % LINES_MAX], sizeof fold->lines[0],
             "%" PRId64 " %s %s %s %u %.60s", entry->recorded_at_ms, entry->action,
             entry->step ? entry->step : "-", entry->actor_ref ? entry->actor_ref : "-",
             entry->attempt, entry->payload ? entry->payload : "");
    check_identity(&r);
    check_act(&r);
    check_held(&r);
    if (subject->is_erased && entry->payload)
        FAIL(&r, "erasing", "it is erased, and its payload is there: %.60s", entry->payload);
    if (subject->process == PROCESS_DOOR)
        check_door(&r);
    else if (subject->process == PROCESS_DESK)
        sagas_desk(&r);
    else if (subject->process == PROCESS_KEEPER || subject->process == PROCESS_CLERK)
        check_code(&r);
    else
        check_flow(&r);
    if (subject->process != PROCESS_DOOR && subject->process != PROCESS_DESK)
        fold->has_ended =
            strcmp(entry->to_state, "running") != 0 && strcmp(entry->to_state, "created") != 0;
    fold->recorded_ms = entry->recorded_at_ms;
}
