/* clients.c - callers who create, fire, cancel, signal, approve, pause and read, and who note what
 * they know afterwards. */
#include "sim/sim.h"
#include <stdio.h>

/* ---- The ledger ---- */

static struct act *new_act(struct sim *sim, enum act_kind kind, uint32_t subject)
{
    struct act *act = &sim->acts[sim->act_count++];

    *act = (struct act){ .kind = kind, .subject = subject };
    return act;
}

static bool is_unknown(pawl_status status)
{
    return status == PAWL_OUTCOME_UNKNOWN;
}

static enum outcome outcome_of(pawl_status status)
{
    return status == PAWL_OK ? OUTCOME_DONE : is_unknown(status) ? OUTCOME_OPEN : OUTCOME_REFUSED;
}

/* That a repeated call is refused says nothing about the first one. */
static void note_outcome(struct act *act, pawl_status status)
{
    if (!act->was_sent || status == PAWL_OK)
        act->outcome = outcome_of(status);
    act->was_sent = true;
}

static struct subject *draw_subject(struct sim *sim)
{
    struct subject *subject =
        sim->subject_count ? &sim->subjects[dice_below(&sim->dice, sim->subject_count)] : NULL;

    return subject && subject->id[0] ? subject : NULL;
}

static uint32_t index_of(const struct sim *sim, const struct subject *subject)
{
    return (uint32_t)(subject - sim->subjects);
}

/* ---- Creating ---- */

static void send_create(struct sim *sim, struct act *act)
{
    struct subject *subject = &sim->subjects[act->subject];
    struct node *answer;
    uint32_t number = (uint32_t)(act - sim->acts);
    pawl_status status = sim_ask(sim, &answer, "instance.create",
                                 "{\"definition\":\"%s\",\"input\":{\"n\":%u,\"count\":%u},"
                                 "\"subject_ref\":\"s%u\",\"actor_ref\":\"c%u\","
                                 "\"idempotency_key\":\"k%u\"}",
                                 process_names[subject->process], number, 1 + act->subject % 3,
                                 act->subject, number, number);

    if (act->outcome == OUTCOME_DONE && outcome_of(status) == OUTCOME_REFUSED &&
        !world_is_faulty(sim))
        sim_fail(sim, "C4 once", "a repeated create is refused: %s", sim->error.message);
    note_outcome(act, status);
    subject->created = act->outcome;
    if (status != PAWL_OK)
        return;
    if (subject->id[0] && !str_is(sim_text(answer, "instance_id"), subject->id))
        sim_fail(sim, "C4 once", "s%u was created twice", act->subject);
    snprintf(subject->id, sizeof subject->id, "%.*s", STR_ARG(sim_text(answer, "instance_id")));
}

void client_create(struct sim *sim)
{
    struct subject *subject;
    struct act *act;

    if (sim->subject_count == SUBJECTS_MAX)
        return;
    subject = &sim->subjects[sim->subject_count];
    /* Only an owner runs steps. */
    *subject =
        (struct subject){ .process = sim->swarm.is_shared
                                         ? PROCESS_DOOR
                                         : (enum process)dice_below(&sim->dice, PROCESS_COUNT) };
    if (subject->process == PROCESS_DOOR)
        snprintf(subject->state, sizeof subject->state, "shut");
    act = new_act(sim, ACT_CREATE, sim->subject_count++);
    act->action = "create";
    send_create(sim, act);
}

/* ---- Machines ---- */

/* What a fire must be answered with; OK where the state is not certain. */
static pawl_status predict(const struct subject *subject, const struct act *act)
{
    const struct door_way *way = door_way(subject->state, act->action);

    if (door_is_end(subject->state))
        return PAWL_TERMINAL;
    if (!way)
        return PAWL_INVALID_TRANSITION;
    if (way->needs_reason && !act->has_reason)
        return PAWL_REASON_REQUIRED;
    if (way->has_guard && !act->guard)
        return PAWL_GUARD_NOT_SATISFIED;
    return PAWL_OK;
}

/* The door may shut by itself: its state is certain only where no deadline runs. */
static bool is_certain(const struct subject *subject)
{
    return subject->state[0] && strcmp(subject->state, DOOR_DEADLINE_STATE) != 0 &&
           subject->held == HELD_NO;
}

static void note_state(struct subject *subject, str state)
{
    snprintf(subject->state, sizeof subject->state, "%.*s", STR_ARG(state));
    subject->has_ended = subject->has_ended || door_is_end(subject->state);
}

static void check_prediction(struct sim *sim, const struct subject *subject, const struct act *act,
                             pawl_status status)
{
    pawl_status expected = predict(subject, act);

    if (act->expected && expected == PAWL_OK)
        return; /* a conflict is looked at elsewhere */
    if (status == PAWL_INVALID_REQUEST && sim->wall_ms < sim->latest_ms)
        return; /* the clock was set back to before its creation */
    if (status != expected)
        sim_fail(sim, "I3 declared transitions", "%s of s%u in %s: expected %s, answered %s",
                 act->action, act->subject, subject->state, pawl_status_name(expected),
                 pawl_status_name(status));
}

static void note_fired(struct sim *sim, struct act *act, const struct node *answer, bool is_first)
{
    struct subject *subject = &sim->subjects[act->subject];
    uint64_t seq = (uint64_t)sim_number(answer, "sequence_number");

    if (act->outcome == OUTCOME_DONE && act->seq && act->seq != seq)
        sim_fail(sim, "C4 once", "c%u was entry %" PRIu64 ", and now is %" PRIu64,
                 (uint32_t)(act - sim->acts), act->seq, seq);
    if (act->expected && seq != act->expected)
        sim_fail(sim, "conflict", "entry %" PRIu64 " was expected, and it is %" PRIu64,
                 act->expected, seq);
    act->seq = seq;
    if (seq > subject->last_seq) {
        subject->last_seq = seq;
        note_state(subject, sim_text(answer, "new_state"));
    } else if (is_first)
        sim_fail(sim, "C5 order", "entry %" PRIu64 " comes after %" PRIu64, seq, subject->last_seq);
}

/* Other kinds of outcomes leave the state uncertain. */
static void send_fire(struct sim *sim, struct act *act, bool is_first)
{
    struct subject *subject = &sim->subjects[act->subject];
    uint32_t number = (uint32_t)(act - sim->acts);
    bool was_certain = is_first && is_certain(subject);
    struct node *answer;
    char expected[48] = "";
    pawl_status status;

    if (act->expected)
        snprintf(expected, sizeof expected, ",\"expected_sequence\":%" PRIu64, act->expected);
    status =
        sim_ask(sim, &answer, "instance.fire",
                "{\"instance_id\":\"%s\",\"action\":\"%s\",\"actor_ref\":\"c%u\"%s%s%s,"
                "\"payload\":{\"n\":%u},\"idempotency_key\":\"k%u\"}",
                subject->id, act->action, number, act->guard ? ",\"guard_satisfied\":true" : "",
                act->has_reason ? ",\"reason\":\"why not\"" : "", expected, number, number);
    if (was_certain && status != PAWL_STORAGE_FAILURE && status != PAWL_NO_MEMORY &&
        !is_unknown(status))
        check_prediction(sim, subject, act, status);
    if (status == PAWL_OK)
        note_fired(sim, act, answer, is_first);
    else if (is_unknown(status))
        subject->state[0] = '\0';
    note_outcome(act, status);
    subject->may_move = true;
}

static void fire(struct sim *sim, struct subject *subject)
{
    struct act *act = new_act(sim, ACT_FIRE, index_of(sim, subject));
    uint32_t index = 0;

    for (uint32_t drawn = dice_below(&sim->dice, 7); drawn > 0 && door_way_at(index + 1); drawn--)
        index++;
    act->action = door_way_at(index)->action;
    act->guard = dice_chance(&sim->dice, 700);
    act->has_reason = dice_chance(&sim->dice, 700);
    if (dice_chance(&sim->dice, 200))
        act->expected = subject->last_seq + 1 + dice_below(&sim->dice, 2);
    send_fire(sim, act, true);
}

/* ---- All kinds ---- */

/* Its leases may end with it. */
static void doubt_leases(struct sim *sim, const struct subject *subject)
{
    for (uint32_t i = 0; i < sim->claim_count; i++)
        if (sim->claims[i].subject == index_of(sim, subject) ||
            sim->claims[i].subject == SUBJECTS_MAX)
            sim->claims[i].may_be_lost = true;
}

static void send_cancel(struct sim *sim, struct act *act)
{
    struct subject *subject = &sim->subjects[act->subject];
    uint32_t number = (uint32_t)(act - sim->acts);
    struct node *answer;
    pawl_status status =
        sim_ask(sim, &answer, "instance.cancel",
                "{\"instance_id\":\"%s\",\"actor_ref\":\"c%u\",\"idempotency_key\":\"k%u\"}",
                subject->id, number, number);

    note_outcome(act, status);
    if (status == PAWL_OK && subject->process == PROCESS_DOOR && subject->state[0] &&
        strcmp(subject->state, "shut") != 0 && strcmp(subject->state, "gone") != 0 &&
        strcmp(subject->state, DOOR_DEADLINE_STATE) != 0)
        sim_fail(sim, "I3 declared transitions", "a door in %s was cancelled", subject->state);
    subject->state[0] = '\0';
    subject->may_move = true;
    doubt_leases(sim, subject);
}

static void cancel(struct sim *sim, struct subject *subject)
{
    struct act *act = new_act(sim, ACT_CANCEL, index_of(sim, subject));

    act->action = subject->process == PROCESS_DOOR ? "remove" : "cancel";
    send_cancel(sim, act);
}

static void send_signal(struct sim *sim, struct act *act)
{
    struct subject *subject = &sim->subjects[act->subject];
    uint32_t number = (uint32_t)(act - sim->acts);
    struct node *answer;
    pawl_status status = sim_ask(sim, &answer, "signal.send",
                                 "{\"instance_id\":\"%s\",\"name\":\"%s\",\"payload\":{\"n\":%u},"
                                 "\"actor_ref\":\"c%u\",\"idempotency_key\":\"k%u\"}",
                                 subject->id, act->action, number, number, number);

    note_outcome(act, status);
    subject->may_move = true;
}

static void send_a_signal(struct sim *sim, struct subject *subject)
{
    struct act *act;

    if (subject->process != PROCESS_ORDER && subject->process != PROCESS_KEEPER)
        return;
    act = new_act(sim, ACT_SIGNAL, index_of(sim, subject));
    act->action = subject->process == PROCESS_ORDER ? "paid" : "more";
    send_signal(sim, act);
}

/* The gate of an order, if it waits. */
static bool find_gate(struct sim *sim, const struct subject *subject, char out[64])
{
    struct node *answer;
    const struct node *steps;

    if (sim_look(sim, &answer, "instance.steps", "{\"instance_id\":\"%s\"}", subject->id) !=
        PAWL_OK)
        return false;
    steps = node_find(answer, "steps");
    for (const struct node *step = steps ? steps->first : NULL; step; step = step->next)
        if (str_is(sim_text(step, "name"), "sign") && str_is(sim_text(step, "status"), "pending")) {
            snprintf(out, 64, "%.*s", STR_ARG(sim_text(step, "step_id")));
            return true;
        }
    return false;
}

static void approve(struct sim *sim, struct subject *subject)
{
    char step[64];
    struct act *act;
    struct node *answer;
    uint32_t number;

    if (subject->process != PROCESS_ORDER || !find_gate(sim, subject, step))
        return;
    act = new_act(sim, ACT_APPROVE, index_of(sim, subject));
    act->action = "gate.approve";
    number = (uint32_t)(act - sim->acts);
    act->outcome =
        outcome_of(sim_ask(sim, &answer, "step.approve",
                           "{\"step_id\":\"%s\",\"actor_ref\":\"%s\",\"idempotency_key\":\"k%u\"}",
                           step, dice_chance(&sim->dice, 500) ? "ann" : "bob", number));
    subject->may_move = true;
}

static void pause_or_resume(struct sim *sim, struct subject *subject, bool is_pause)
{
    struct node *answer;
    pawl_status status = sim_ask(sim, &answer, is_pause ? "instance.pause" : "instance.resume",
                                 "{\"instance_id\":\"%s\"}", subject->id);

    if (is_unknown(status))
        subject->held = HELD_MAYBE;
    else if (status == PAWL_OK)
        subject->held = is_pause ? HELD_YES : HELD_NO;
    subject->may_move = true; /* until the next check has counted its entries */
    doubt_leases(sim, subject);
}

/* ---- Repeated and open calls ---- */

void client_retry(struct sim *sim, uint32_t index)
{
    struct act *act = &sim->acts[index];

    if (sim->swarm.jumps_years) /* a key holds for seven days */
        return;
    if (act->outcome == OUTCOME_REFUSED ||
        (act->kind != ACT_CREATE && !sim->subjects[act->subject].id[0]))
        return;
    sim_note(sim, "again, c%u:", index);
    switch (act->kind) {
    case ACT_CREATE:
        send_create(sim, act);
        break;
    case ACT_FIRE:
        send_fire(sim, act, false);
        break;
    case ACT_CANCEL:
        send_cancel(sim, act);
        break;
    case ACT_SIGNAL:
        send_signal(sim, act);
        break;
    case ACT_APPROVE:
        break;
    }
}

/* ---- Reading ---- */

void client_read(struct sim *sim)
{
    struct subject *subject = draw_subject(sim);
    struct node *answer;

    if (!subject ||
        sim_look(sim, &answer, "instance.get", "{\"instance_id\":\"%s\"}", subject->id) != PAWL_OK)
        return;
    if (sim_number(answer, "next_sequence_number") <= (int64_t)subject->last_seq)
        sim_fail(
            sim, "C6 reads", "s%u: entry %" PRIu64 " was acknowledged, and the next is %" PRId64,
            index_of(sim, subject), subject->last_seq, sim_number(answer, "next_sequence_number"));
    if (subject->process == PROCESS_DOOR && is_certain(subject) &&
        !str_is(sim_text(answer, "current_state"), subject->state))
        sim_fail(sim, "C6 reads", "s%u is in %.*s, and not in %s", index_of(sim, subject),
                 STR_ARG(sim_text(answer, "current_state")), subject->state);
}

/* ---- One act ---- */

static void act_on(struct sim *sim, struct subject *subject)
{
    uint32_t drawn = dice_below(&sim->dice, 100);

    if (dice_chance(&sim->dice, sim->swarm.pause))
        pause_or_resume(sim, subject, subject->held == HELD_NO);
    else if (drawn < 4)
        cancel(sim, subject);
    else if (subject->process == PROCESS_DOOR)
        fire(sim, subject);
    else if (drawn < 50)
        send_a_signal(sim, subject);
    else
        approve(sim, subject);
}

void client_act(struct sim *sim)
{
    struct subject *subject = draw_subject(sim);

    if (sim->act_count >= ACTS_MAX - 64)
        return;
    if (sim->act_count && dice_chance(&sim->dice, sim->swarm.repeat)) {
        client_retry(sim, dice_below(&sim->dice, sim->act_count));
        return;
    }
    if (!subject || dice_chance(&sim->dice, 80))
        client_create(sim);
    else
        act_on(sim, subject);
}

/* ---- Towards the end ---- */

static void push_door(struct sim *sim, struct subject *subject)
{
    struct act *act = new_act(sim, ACT_FIRE, index_of(sim, subject));

    act->guard = act->has_reason = true;
    act->action = strcmp(subject->state, "open") == 0     ? "shut"
                  : strcmp(subject->state, "locked") == 0 ? "break"
                                                          : "remove";
    send_fire(sim, act, false);
}

void client_push(struct sim *sim, struct subject *subject)
{
    if (sim->act_count >= ACTS_MAX)
        sim_fail(sim, "C14 progress", "the ledger is full");
    if (subject->held != HELD_NO)
        pause_or_resume(sim, subject, false);
    if (subject->process == PROCESS_DOOR)
        push_door(sim, subject);
    else if (subject->process == PROCESS_ORDER)
        approve(sim, subject);
}
