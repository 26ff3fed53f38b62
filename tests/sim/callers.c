/* callers.c - callers of flows and code, who signal, approve, pause, amend and redrive. */
#include "sim/sim.h"
#include <stdio.h>

#define PAD_MAX 2500 /* bytes: enough of them make an instance write a snapshot */

/* ---- Signals ---- */

static const char *signal_of(enum process process)
{
    return process == PROCESS_ORDER || process == PROCESS_LOAD ? "paid"
           : process == PROCESS_KEEPER                         ? "more"
           : process == PROCESS_CLERK                          ? "note"
                                                               : NULL;
}

/* The same for each repetition: it depends on the call alone. */
static uint32_t pad_of(const struct act *act, uint32_t number)
{
    return strcmp(act->action, "note") == 0 ? number * 997 % PAD_MAX : 0;
}

static void send_signal(struct sim *sim, struct act *act)
{
    static char pad[PAD_MAX];
    uint32_t number = act_index(sim, act);
    struct node *answer;
    pawl_status status;

    memset(pad, 'x', sizeof pad);
    status = sim_ask(sim, &answer, "signal.send",
                     "{\"instance_id\":\"%s\",\"name\":\"%s\",\"actor_ref\":\"c%u\","
                     "\"idempotency_key\":\"k%u\",\"payload\":{\"n\":%u,\"pad\":\"%.*s\"}}",
                     sim->subjects[act->subject].id, act->action, number, number, number,
                     (int)pad_of(act, number), pad);
    if (status == PAWL_OK && !act->was_sent)
        act->is_delivered = sim_number(answer, "delivered") == 1;
    note_outcome(sim, act, status);
}

/* To all that await or keep it. It has no key: an open one is not repeated. */
void caller_broadcast(struct sim *sim)
{
    enum process process = dice_chance(&sim->dice, 500) ? PROCESS_CLERK : PROCESS_KEEPER;
    struct act *act = new_act(sim, ACT_BROADCAST, SUBJECTS_MAX, signal_of(process));
    uint32_t number = act_index(sim, act);
    struct node *answer;
    pawl_status status = sim_ask(sim, &answer, "signal.broadcast",
                                 "{\"name\":\"%s\",\"actor_ref\":\"c%u\",\"payload\":{\"n\":%u}}",
                                 act->action, number, number);

    note_outcome(sim, act, status);
    if (status == PAWL_OK)
        act->delivered = sim_number(answer, "delivered");
    else
        act->outcome = OUTCOME_OPEN; /* it is many commits: some may have been made */
}

/* ---- Gates ---- */

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

static void send_approval(struct sim *sim, struct act *act)
{
    uint32_t number = act_index(sim, act);
    struct node *answer;

    note_outcome(sim, act,
                 sim_ask(sim, &answer, act->is_reject ? "step.reject" : "step.approve",
                         "{\"step_id\":\"%s\",\"actor_ref\":\"c%u\",\"idempotency_key\":\"k%u\"}",
                         act->step, number, number));
}

void caller_approve(struct sim *sim, struct subject *subject, bool is_reject)
{
    char step[64];
    struct act *act;

    if (subject->process != PROCESS_ORDER || !find_gate(sim, subject, step))
        return;
    act = new_act(sim, ACT_APPROVE, subject_index(sim, subject),
                  is_reject ? "gate.reject" : "gate.approve");
    act->is_reject = is_reject;
    memcpy(act->step, step, sizeof act->step);
    send_approval(sim, act);
}

/* ---- Pauses ---- */

/* Entries when it was paused. */
static uint32_t count_entries(struct sim *sim, const struct subject *subject)
{
    struct node *answer;

    return sim_look(sim, &answer, "instance.get", "{\"instance_id\":\"%s\"}", subject->id) ==
                   PAWL_OK
               ? (uint32_t)sim_number(answer, "next_sequence_number") - 1
               : UINT32_MAX;
}

void caller_pause(struct sim *sim, struct subject *subject, bool is_pause)
{
    struct node *answer;
    pawl_status status = sim_ask(sim, &answer, is_pause ? "instance.pause" : "instance.resume",
                                 "{\"instance_id\":\"%s\"}", subject->id);

    if (is_unknown(status))
        subject->held = HELD_MAYBE;
    else if (status == PAWL_OK)
        subject->held = is_pause ? HELD_YES : HELD_NO;
    if (subject->held == HELD_YES)
        subject->held_count = count_entries(sim, subject);
    doubt_leases(sim, subject);
}

/* ---- Another definition, and another run ---- */

static void send_amend(struct sim *sim, struct act *act)
{
    uint32_t number = act_index(sim, act);
    struct node *answer;
    pawl_status status = sim_ask(sim, &answer, "instance.amend",
                                 "{\"instance_id\":\"%s\",\"definition\":\"order@2\","
                                 "\"actor_ref\":\"c%u\",\"idempotency_key\":\"k%u\"}",
                                 sim->subjects[act->subject].id, number, number);

    note_outcome(sim, act, status);
    if (status == PAWL_OK)
        act->seq = (uint64_t)sim_number(answer, "sequence_number");
}

static void send_redrive(struct sim *sim, struct act *act)
{
    uint32_t number = act_index(sim, act);
    struct node *answer;
    pawl_status status =
        sim_ask(sim, &answer, "instance.redrive",
                "{\"instance_id\":\"%s\",\"actor_ref\":\"c%u\",\"idempotency_key\":\"k%u\"}",
                sim->subjects[act->subject].id, number, number);

    note_outcome(sim, act, status);
    if (status != PAWL_OK)
        return;
    if (act->made[0] && !str_is(sim_text(answer, "instance_id"), act->made))
        sim_fail(sim, "C4 once", "c%u redrove s%u twice", number, act->subject);
    snprintf(act->made, sizeof act->made, "%.*s", STR_ARG(sim_text(answer, "instance_id")));
}

/* ---- Erasing ---- */

static void send_erase(struct sim *sim, struct act *act)
{
    struct subject *subject = &sim->subjects[act->subject];
    uint32_t number = act_index(sim, act);
    struct node *answer;
    pawl_status status =
        sim_ask(sim, &answer, "instance.erase",
                "{\"instance_id\":\"%s\",\"actor_ref\":\"c%u\",\"idempotency_key\":\"k%u\"}",
                subject->id, number, number);

    note_outcome(sim, act, status);
    if (status == PAWL_OK)
        subject->erased = HELD_YES;
    else if (is_unknown(status) && subject->erased == HELD_NO)
        subject->erased = HELD_MAYBE;
}

/* ---- One act ---- */

void caller_retry(struct sim *sim, struct act *act)
{
    if (act->kind == ACT_SIGNAL)
        send_signal(sim, act);
    else if (act->kind == ACT_APPROVE)
        send_approval(sim, act);
    else if (act->kind == ACT_AMEND)
        send_amend(sim, act);
    else if (act->kind == ACT_REDRIVE)
        send_redrive(sim, act);
    else if (act->kind == ACT_ERASE)
        send_erase(sim, act);
}

void caller_act(struct sim *sim, struct subject *subject)
{
    uint32_t index = subject_index(sim, subject), drawn = dice_below(&sim->dice, 100);

    if (subject->process == PROCESS_DESK)
        client_push_desk(sim, subject);
    else if (drawn < 10 && (subject->process == PROCESS_TRIP || subject->process == PROCESS_LOAD))
        send_erase(sim, new_act(sim, ACT_ERASE, index, "erase"));
    else if (subject->has_ended && drawn < 30 && sim->subject_count < SUBJECTS_MAX - 28)
        send_redrive(sim, new_act(sim, ACT_REDRIVE, index, "redrive"));
    else if (drawn < 60 && signal_of(subject->process))
        send_signal(sim, new_act(sim, ACT_SIGNAL, index, signal_of(subject->process)));
    else if (drawn < 70 && subject->process == PROCESS_ORDER)
        send_amend(sim, new_act(sim, ACT_AMEND, index, "amend"));
    else
        caller_approve(sim, subject, dice_chance(&sim->dice, 100));
}
