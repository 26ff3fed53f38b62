/* clients.c - callers who create instances, fire machines and read, and who note what they know
 * afterwards. */
#include "sim/sim.h"
#include <stdio.h>

#define BATCH_MAX 5
#define LONG_AGO  "1999-01-01T00:00:00.000Z" /* before any clock of the simulation */

/* ---- The ledger ---- */

uint32_t act_index(const struct sim *sim, const struct act *act)
{
    return (uint32_t)(act - sim->acts);
}

uint32_t subject_index(const struct sim *sim, const struct subject *subject)
{
    return (uint32_t)(subject - sim->subjects);
}

struct act *new_act(struct sim *sim, enum act_kind kind, uint32_t subject, const char *action)
{
    struct act *act = &sim->acts[sim->act_count++];

    if (sim->act_count > ACTS_MAX)
        sim_fail(sim, "C14 progress", "the ledger is full");
    *act = (struct act){
        .kind = kind, .subject = subject, .action = action, .sent_at = ++sim->moment
    };
    return act;
}

struct subject *new_subject(struct sim *sim, enum process process, uint32_t act)
{
    struct subject *subject = &sim->subjects[sim->subject_count++];

    if (sim->subject_count > SUBJECTS_MAX)
        sim_fail(sim, "C2 no phantom", "there are more than %u instances", SUBJECTS_MAX);
    memset(subject, 0, sizeof *subject);
    subject->process = process;
    subject->act = act;
    subject->parent = subject->of = subject->sender = SUBJECTS_MAX;
    if (process == PROCESS_DOOR)
        snprintf(subject->state, sizeof subject->state, "shut");
    return subject;
}

bool is_unknown(pawl_status status)
{
    return status == PAWL_OUTCOME_UNKNOWN;
}

static enum outcome outcome_of(pawl_status status)
{
    return status == PAWL_OK ? OUTCOME_DONE : is_unknown(status) ? OUTCOME_OPEN : OUTCOME_REFUSED;
}

/* That a repeated call is refused says nothing about the first one. */
void note_outcome(struct sim *sim, struct act *act, pawl_status status)
{
    if (status == PAWL_OK && !act->done_at)
        act->done_at = ++sim->moment;
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

/* ---- Creating ---- */

static void send_create(struct sim *sim, struct act *act)
{
    struct subject *subject = &sim->subjects[act->subject];
    struct node *answer;
    uint32_t number = act_index(sim, act);
    char version[16] = "", items[64] = "";
    pawl_status status;

    for (uint32_t i = 0; i < item_count(subject) && subject->process == PROCESS_LOAD; i++)
        snprintf(items + strlen(items), sizeof items - strlen(items), "%s%u%s",
                 i ? "," : ",\"items\":[", i, i + 1 < item_count(subject) ? "" : "]");
    if (act->version)
        snprintf(version, sizeof version, "@%u", act->version);
    status = sim_ask(sim, &answer, "instance.create",
                     "{\"definition\":\"%s%s\",\"input\":{\"n\":%u,\"count\":%u%s},"
                     "\"subject_ref\":\"s%u\",\"actor_ref\":\"c%u\",\"idempotency_key\":\"k%u\"}",
                     process_names[subject->process], version, subject->number, subject->rounds,
                     items, act->subject, number, number);
    if (act->outcome == OUTCOME_DONE && outcome_of(status) == OUTCOME_REFUSED &&
        !world_is_faulty(sim))
        sim_fail(sim, "C4 once", "a repeated create is refused: %s", sim->error.message);
    note_outcome(sim, act, status);
    subject->created = act->outcome;
    if (status != PAWL_OK)
        return;
    if (subject->id[0] && !str_is(sim_text(answer, "instance_id"), subject->id))
        sim_fail(sim, "C4 once", "s%u was created twice", act->subject);
    snprintf(subject->id, sizeof subject->id, "%.*s", STR_ARG(sim_text(answer, "instance_id")));
}

static void create(struct sim *sim)
{
    enum process process = (enum process)dice_below(&sim->dice, PROCESS_NOTICE);
    struct subject *subject;
    struct act *act;

    if (sim->create_count == CREATES_MAX)
        return;
    sim->create_count++;
    act = new_act(sim, ACT_CREATE, sim->subject_count, "create");
    subject = new_subject(sim, process, act_index(sim, act));
    subject->number = act_index(sim, act);
    subject->rounds = 1 + act->subject % 3;
    act->version = process == PROCESS_ORDER ? 1 + dice_below(&sim->dice, 2) : 0;
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
    return subject->process == PROCESS_DOOR && subject->state[0] &&
           strcmp(subject->state, DOOR_DEADLINE_STATE) != 0 && subject->held == HELD_NO;
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
    if (act->is_early && expected == PAWL_OK)
        expected = PAWL_INVALID_REQUEST;
    else if (status == PAWL_INVALID_REQUEST && sim->wall_ms < sim->latest_ms)
        return; /* the clock was set back to before its creation */
    if (status != expected)
        sim_fail(sim, "I3 declared transitions", "%s of s%u in %s: expected %s, answered %s",
                 act->action, act->subject, subject->state, pawl_status_name(expected),
                 pawl_status_name(status));
}

/* What is known once it is answered. `was_certain`: its state was, when it was asked. */
static void note_fire(struct sim *sim, struct act *act, pawl_status status, uint64_t seq,
                      str new_state, bool was_certain)
{
    struct subject *subject = &sim->subjects[act->subject];
    bool is_first = !act->was_sent && !sim->is_healing;

    if (was_certain && status != PAWL_STORAGE_FAILURE && status != PAWL_NO_MEMORY &&
        !is_unknown(status))
        check_prediction(sim, subject, act, status);
    note_outcome(sim, act, status);
    if (is_unknown(status))
        subject->state[0] = '\0';
    if (status != PAWL_OK)
        return;
    if (act->seq && act->seq != seq)
        sim_fail(sim, "C4 once", "c%u was entry %" PRIu64 ", and now is %" PRIu64,
                 act_index(sim, act), act->seq, seq);
    if (act->expected && seq != act->expected)
        sim_fail(sim, "conflict", "entry %" PRIu64 " was expected, and it is %" PRIu64,
                 act->expected, seq);
    act->seq = seq;
    if (seq > subject->last_seq) {
        subject->last_seq = seq;
        note_state(subject, new_state);
    } else if (is_first && was_certain)
        sim_fail(sim, "C5 order", "entry %" PRIu64 " comes after %" PRIu64, seq, subject->last_seq);
}

static void send_fire(struct sim *sim, struct act *act)
{
    struct subject *subject = &sim->subjects[act->subject];
    uint32_t number = act_index(sim, act), meddled = sim->meddled;
    bool was_certain = !act->was_sent && is_certain(subject);
    struct node *answer;
    char expected[48] = "";
    pawl_status status;

    if (act->expected)
        snprintf(expected, sizeof expected, ",\"expected_sequence\":%" PRIu64, act->expected);
    status =
        sim_ask(sim, &answer, "instance.fire",
                "{\"instance_id\":\"%s\",\"action\":\"%s\",\"actor_ref\":\"c%u\"%s%s%s%s,"
                "\"payload\":{\"n\":%u},\"idempotency_key\":\"k%u\"}",
                subject->id, act->action, number, act->guard ? ",\"guard_satisfied\":true" : "",
                act->has_reason ? ",\"reason\":\"why not\"" : "",
                act->is_early ? ",\"fired_at\":\"" LONG_AGO "\"" : "", expected, number, number);
    note_fire(sim, act, status,
              status == PAWL_OK ? (uint64_t)sim_number(answer, "sequence_number") : 0,
              sim_text(answer, "new_state"), was_certain && sim->meddled == meddled);
    if (sim->meddled != meddled)
        subject->state[0] = '\0';
}

static struct act *draw_fire(struct sim *sim, const struct subject *subject)
{
    struct act *act = new_act(sim, ACT_FIRE, subject_index(sim, subject), NULL);
    uint32_t index = 0;

    for (uint32_t drawn = dice_below(&sim->dice, 7); drawn > 0 && door_way_at(index + 1); drawn--)
        index++;
    act->action = door_way_at(index)->action;
    act->guard = dice_chance(&sim->dice, 700);
    act->has_reason = dice_chance(&sim->dice, 700);
    act->is_early = dice_chance(&sim->dice, 60);
    if (dice_chance(&sim->dice, 200))
        act->expected = subject->last_seq + 1 + dice_below(&sim->dice, 2);
    return act;
}

/* ---- Batches ---- */

struct batch {
    struct act *acts[BATCH_MAX];
    pawl_batch_fire fires[BATCH_MAX];
    char actors[BATCH_MAX][12], keys[BATCH_MAX][12];
    uint32_t count;
};

static void add_fire(struct sim *sim, struct batch *batch, const struct subject *subject)
{
    uint32_t i = batch->count++;
    struct act *act = draw_fire(sim, subject);

    batch->acts[i] = act;
    snprintf(batch->actors[i], sizeof batch->actors[i], "c%u", act_index(sim, act));
    snprintf(batch->keys[i], sizeof batch->keys[i], "k%u", act_index(sim, act));
    batch->fires[i] = (pawl_batch_fire){
        .id = subject->id,
        .args = { .action = act->action,
                  .actor_ref = batch->actors[i],
                  .guard_satisfied = act->guard,
                  .reason = act->has_reason ? "why not" : NULL,
                  .fired_at = act->is_early ? LONG_AGO : NULL,
                  .expected_sequence = (int64_t)act->expected,
                  .idempotency_key = batch->keys[i] },
    };
}

static void send_batch(struct sim *sim, struct batch *batch)
{
    pawl_status status = pawl_fire_batch(sim_node(sim), batch->fires, batch->count, &sim->error);
    bool is_lost = !sim->is_healing && dice_chance(&sim->dice, sim->swarm.lost);

    sim_note(sim, "a batch of %u: %s%s", batch->count, pawl_status_name(status),
             is_lost ? ", and the answer is lost" : "");
    if (status != PAWL_OK && !world_is_faulty(sim))
        sim_fail(sim, "honest failures", "a batch failed without a fault: %s", sim->error.message);
    for (uint32_t i = 0; i < batch->count; i++) {
        const pawl_batch_fire *fire = &batch->fires[i];
        pawl_status its = is_lost             ? PAWL_OUTCOME_UNKNOWN
                          : status != PAWL_OK ? status
                                              : fire->status;

        sim->unknown_count += is_unknown(its);
        sim_note(sim, "  %s: %s %" PRIu64, batch->acts[i]->action, pawl_status_name(its),
                 its == PAWL_OK ? fire->fired.sequence_number : 0);
        note_fire(sim, batch->acts[i], its, fire->fired.sequence_number,
                  str_of(its == PAWL_OK ? fire->fired.new_state : ""),
                  is_certain(&sim->subjects[batch->acts[i]->subject]) && !sim->is_shared);
    }
}

static void fire(struct sim *sim, struct subject *subject)
{
    struct batch batch = { .count = 0 };
    uint32_t count = dice_chance(&sim->dice, 150) ? 2 + dice_below(&sim->dice, BATCH_MAX - 1) : 1;

    if (count == 1) {
        send_fire(sim, draw_fire(sim, subject));
        return;
    }
    while (batch.count < count)
        add_fire(sim, &batch, subject);
    send_batch(sim, &batch);
}

/* ---- All kinds ---- */

/* Its leases may end with it, and those of its children. */
void doubt_leases(struct sim *sim, const struct subject *subject)
{
    uint32_t index = subject_index(sim, subject);

    for (uint32_t i = 0; i < sim->claim_count; i++) {
        uint32_t of = sim->claims[i].subject;

        if (of == index || of == SUBJECTS_MAX || sim->subjects[of].parent != SUBJECTS_MAX)
            sim->claims[i].may_be_lost = true;
    }
}

static void send_cancel(struct sim *sim, struct act *act)
{
    struct subject *subject = &sim->subjects[act->subject];
    uint32_t number = act_index(sim, act), meddled = sim->meddled;
    struct node *answer;
    pawl_status status =
        sim_ask(sim, &answer, "instance.cancel",
                "{\"instance_id\":\"%s\",\"actor_ref\":\"c%u\",\"idempotency_key\":\"k%u\"}",
                subject->id, number, number);

    note_outcome(sim, act, status);
    if (status == PAWL_OK && subject->process == PROCESS_DOOR && subject->state[0] &&
        sim->meddled == meddled && strcmp(subject->state, "shut") != 0 &&
        strcmp(subject->state, "gone") != 0 && strcmp(subject->state, DOOR_DEADLINE_STATE) != 0)
        sim_fail(sim, "I3 declared transitions", "a door in %s was cancelled", subject->state);
    subject->state[0] = '\0';
    if (status == PAWL_OK && !str_is(sim_text(answer, "new_state"), "running"))
        subject->held = HELD_NO; /* what has ended is not paused; what cleans up first may be */
    doubt_leases(sim, subject);
}

/* ---- Repeated and open calls ---- */

void client_retry(struct sim *sim, uint32_t index)
{
    struct act *act = &sim->acts[index];

    if (sim->swarm.jumps_years) /* a key holds for seven days */
        return;
    if (act->outcome == OUTCOME_REFUSED || act->kind == ACT_BROADCAST ||
        (act->kind != ACT_CREATE && !sim->subjects[act->subject].id[0]))
        return;
    sim_note(sim, "again, c%u:", index);
    if (act->kind == ACT_CREATE)
        send_create(sim, act);
    else if (act->kind == ACT_FIRE)
        send_fire(sim, act);
    else if (act->kind == ACT_CANCEL)
        send_cancel(sim, act);
    else
        caller_retry(sim, act);
}

/* ---- Reading ---- */

static void read_instance(struct sim *sim, struct subject *subject)
{
    uint64_t known = subject->last_seq;
    struct node *answer;

    if (sim_look(sim, &answer, "instance.get", "{\"instance_id\":\"%s\"}", subject->id) != PAWL_OK)
        return;
    if (sim_number(answer, "next_sequence_number") <= (int64_t)known)
        sim_fail(sim, "C6 reads",
                 "s%u: entry %" PRIu64 " was acknowledged, and the next is %" PRId64,
                 subject_index(sim, subject), known, sim_number(answer, "next_sequence_number"));
    if (subject->process == PROCESS_DOOR && is_certain(subject) &&
        !str_is(sim_text(answer, "current_state"), subject->state))
        sim_fail(sim, "C6 reads", "s%u is in %.*s, and not in %s", subject_index(sim, subject),
                 STR_ARG(sim_text(answer, "current_state")), subject->state);
}

/* An entry is among those of its own time. */
static void read_by_time(struct sim *sim, struct subject *subject)
{
    struct node *answer, *again;
    const struct node *entries;
    str at;

    if (sim_look(sim, &answer, "instance.history",
                 "{\"instance_id\":\"%s\",\"sequence_from\":\"1\",\"sequence_to\":\"1\"}",
                 subject->id) != PAWL_OK)
        return;
    entries = node_find(answer, "entries");
    if (!entries || !entries->first)
        return;
    at = sim_text(entries->first, "fired_at");
    if (sim_look(sim, &again, "instance.history",
                 "{\"instance_id\":\"%s\",\"fired_after\":\"%.*s\",\"fired_before\":\"%.*s\"}",
                 subject->id, STR_ARG(at), STR_ARG(at)) != PAWL_OK)
        return;
    entries = node_find(again, "entries");
    if (!entries || !entries->first || sim_number(entries->first, "sequence_number") != 1)
        sim_fail(sim, "D29 bounds", "s%u: entry 1 is not among those of %.*s",
                 subject_index(sim, subject), STR_ARG(at));
}

void client_read(struct sim *sim)
{
    struct subject *subject = draw_subject(sim);

    if (dice_chance(&sim->dice, 50) && !sim->is_shared)
        world_rival(sim);
    else if (subject && dice_chance(&sim->dice, 100))
        read_by_time(sim, subject);
    else if (subject)
        read_instance(sim, subject);
}

/* ---- One act ---- */

static void act_on(struct sim *sim, struct subject *subject)
{
    if (dice_chance(&sim->dice, sim->swarm.pause))
        caller_pause(sim, subject, subject->held == HELD_NO);
    else if (dice_chance(&sim->dice, 40))
        send_cancel(sim, new_act(sim, ACT_CANCEL, subject_index(sim, subject),
                                 subject->process == PROCESS_DOOR ? "remove" : "cancel"));
    else if (subject->process == PROCESS_DOOR)
        fire(sim, subject);
    else
        caller_act(sim, subject);
}

void client_act(struct sim *sim)
{
    struct subject *subject = draw_subject(sim);

    if (sim->act_count >= ACTS_MAX - 256)
        return;
    if (sim->act_count && dice_chance(&sim->dice, sim->swarm.repeat))
        client_retry(sim, dice_below(&sim->dice, sim->act_count));
    else if (!subject || dice_chance(&sim->dice, 80))
        create(sim);
    else if (dice_chance(&sim->dice, 30))
        caller_broadcast(sim);
    else
        act_on(sim, subject);
}

/* ---- Towards the end ---- */

static void push_door(struct sim *sim, struct subject *subject)
{
    struct act *act = new_act(sim, ACT_FIRE, subject_index(sim, subject), NULL);

    act->guard = act->has_reason = true;
    act->action = strcmp(subject->state, "open") == 0     ? "shut"
                  : strcmp(subject->state, "locked") == 0 ? "break"
                                                          : "remove";
    send_fire(sim, act);
}

void client_push_desk(struct sim *sim, struct subject *subject)
{
    const char *state = subject->fold.state;
    struct act *act;

    if (strcmp(state, "busy") == 0 || strcmp(state, "closed") == 0)
        return;
    act = new_act(sim, ACT_FIRE, subject_index(sim, subject),
                  strcmp(state, "sad") == 0 ? "leave" : "send");
    send_fire(sim, act);
}

void client_push(struct sim *sim, struct subject *subject)
{
    if (subject->held != HELD_NO)
        caller_pause(sim, subject, false);
    if (subject->process == PROCESS_DOOR)
        push_door(sim, subject);
    else if (subject->process == PROCESS_DESK)
        client_push_desk(sim, subject);
    else if (subject->process == PROCESS_ORDER)
        caller_approve(sim, subject, false);
}
