/* workers.c - workers that claim steps and answer them: in time, late, twice, or never. */
#include "sim/sim.h"
#include <stdio.h>

#define TOOLS                                                                                      \
    "[\"pick\",\"pack\",\"label\",\"left\",\"right\",\"risky\",\"fetch\",\"row\",\"tell\"]"
#define PAD_MAX  3000 /* bytes of a result, at most */
#define TURN_MAX 4    /* answers of one turn */

static uint32_t subject_of(struct sim *sim, str instance_id)
{
    for (uint32_t i = 0; i < sim->subject_count; i++)
        if (str_is(instance_id, sim->subjects[i].id))
            return i;
    return SUBJECTS_MAX; /* its creator does not know of it yet */
}

static bool is_same(const struct claim *claim, str step_id, uint32_t attempt)
{
    return str_is(step_id, claim->step_id) && claim->attempt == attempt;
}

/* One `hire` of all trips is under way at a time. */
static void check_limit(struct sim *sim, const struct claim *claim)
{
    for (const struct claim *other = sim->claims; other < claim; other++)
        if (strcmp(claim->name, "hire") == 0 && strcmp(other->name, "hire") == 0 &&
            claim_holds(sim, other))
            sim_fail(sim, "limits", "%s was leased while %s is under way", claim->step_id,
                     other->step_id);
}

static void note_claim(struct sim *sim, const struct node *step, int64_t lease_ms)
{
    str step_id = sim_text(step, "step_id");
    uint32_t attempt = (uint32_t)sim_number(step, "attempt");
    struct claim *claim;

    for (uint32_t i = 0; i < sim->claim_count; i++)
        if (is_same(&sim->claims[i], step_id, attempt))
            sim_fail(sim, "C8 effects", "attempt %u of %.*s was leased twice", attempt,
                     STR_ARG(step_id));
    if (attempt > ATTEMPTS_MAX)
        sim_fail(sim, "C8 effects", "attempt %u of %.*s", attempt, STR_ARG(step_id));
    if (sim->claim_count == CLAIMS_MAX)
        sim_fail(sim, "C8 effects", "more than %u steps were leased", CLAIMS_MAX);
    claim = &sim->claims[sim->claim_count++];
    *claim = (struct claim){ .subject = subject_of(sim, sim_text(step, "instance_id")),
                             .attempt = attempt,
                             .item = ITEMS_MAX,
                             .until_ms = sim->elapsed_ms + lease_ms,
                             .life = sim->life };
    snprintf(claim->step_id, sizeof claim->step_id, "%.*s", STR_ARG(step_id));
    snprintf(claim->lease, sizeof claim->lease, "%.*s", STR_ARG(sim_text(step, "lease")));
    snprintf(claim->name, sizeof claim->name, "%.*s", STR_ARG(sim_text(step, "name")));
    if (node_find(step, "args") && sim_number(node_find(step, "args"), "n") >= 0 &&
        str_is(sim_text(step, "tool"), "row"))
        claim->item = (uint32_t)sim_number(node_find(step, "args"), "n");
    claim->may_be_lost = strcmp(claim->name, "knock") == 0; /* its group has a timeout */
    check_limit(sim, claim);
}

static void note_claims(struct sim *sim, const struct node *answer, int64_t lease_ms)
{
    const struct node *steps = answer ? node_find(answer, "steps") : NULL;

    for (const struct node *step = steps ? steps->first : NULL; step; step = step->next)
        note_claim(sim, step, lease_ms);
}

static void claim(struct sim *sim, uint32_t max)
{
    uint32_t lease_s = 5 + dice_below(&sim->dice, 60);
    int64_t before_ms = sim->elapsed_ms;
    struct node *answer;

    if (sim_ask(sim, &answer, "step.claim",
                "{\"tools\":" TOOLS ",\"worker\":\"w\",\"max\":%u,\"lease\":\"%us\"}", max,
                lease_s) == PAWL_OK)
        note_claims(sim, answer, lease_s * 1000 - (sim->elapsed_ms - before_ms));
}

/* ---- Answers ---- */

/* A later attempt was leased already. Code may call a tool again: then attempts begin again. */
static bool is_overtaken(const struct sim *sim, const struct claim *claim)
{
    for (const struct claim *later = claim + 1; later < sim->claims + sim->claim_count; later++)
        if (claim->subject != SUBJECTS_MAX && later->subject == claim->subject &&
            later->item == claim->item && strcmp(later->name, claim->name) == 0)
            return later->attempt > claim->attempt;
    return false;
}

/* Every attempt of a step may have been used up: then its flow has failed, and its leases are gone. */
static bool may_have_failed(const struct sim *sim, uint32_t subject)
{
    for (uint32_t i = 0; i < sim->claim_count; i++)
        if (sim->claims[i].subject == subject && sim->claims[i].attempt == ATTEMPTS_MAX)
            return true;
    return sim->unknown_count > 0; /* attempts that nobody knows of */
}

/* The lease holds: by the time that has really passed, and nothing was done that may end it. */
bool claim_holds(const struct sim *sim, const struct claim *claim)
{
    const struct subject *subject = &sim->subjects[claim->subject];

    return claim->subject != SUBJECTS_MAX && !claim->may_be_lost && claim->life == sim->life &&
           !sim->is_faulty && sim->elapsed_ms + 1000 < claim->until_ms && !claim->is_over &&
           !claim->is_sent && subject->held == HELD_NO && subject->parent == SUBJECTS_MAX &&
           !may_have_failed(sim, claim->subject);
}

static void check_answer(struct sim *sim, struct claim *claim, pawl_status status, bool was_due)
{
    if (status == PAWL_OK && is_overtaken(sim, claim) && !claim->is_over)
        sim_fail(sim, "C9 fenced", "attempt %u of %s ended after a later one was leased",
                 claim->attempt, claim->step_id);
    if (was_due && status == PAWL_LEASE_LOST)
        sim_fail(sim, "C9 fenced", "the lease of %s was lost before its time", claim->step_id);
    if (status != PAWL_OUTCOME_UNKNOWN && status != PAWL_STORAGE_FAILURE &&
        status != PAWL_NO_MEMORY)
        claim->is_over = true;
}

/* What the worker found: the claim's number, and something to carry. The same when it is repeated. */
static const char *result_of(uint32_t nonce, char out[PAD_MAX + 64])
{
    int size = snprintf(out, 64, "{\"nonce\":%u,\"pad\":\"", nonce);
    uint32_t pad = nonce % 3 ? 0 : nonce * 991 % PAD_MAX;

    memset(out + size, 'y', pad);
    snprintf(out + size + pad, 4, "\"}");
    return out;
}

static void complete(struct sim *sim, struct claim *claim)
{
    bool must = claim_holds(sim, claim);
    struct node *answer;
    char result[PAD_MAX + 64];
    uint32_t nonce = (uint32_t)(claim - sim->claims);
    pawl_status status;

    status = sim_ask(sim, &answer, "step.complete",
                     "{\"step_id\":\"%s\",\"lease\":\"%s\",\"result\":%s,"
                     "\"idempotency_key\":\"w%u\"}",
                     claim->step_id, claim->lease, result_of(nonce, result), nonce);
    claim->is_sent = claim->is_sent || status == PAWL_OK || status == PAWL_OUTCOME_UNKNOWN;
    claim->is_taken = claim->is_taken || status == PAWL_OK;
    check_answer(sim, claim, status, must);
}

static void fail(struct sim *sim, struct claim *claim)
{
    bool must = claim_holds(sim, claim), is_last = dice_chance(&sim->dice, 250);
    struct node *answer;

    if (claim->is_sent)
        return;
    check_answer(sim, claim,
                 sim_ask(sim, &answer, "step.fail",
                         "{\"step_id\":\"%s\",\"lease\":\"%s\",\"error\":\"%s\"%s}", claim->step_id,
                         claim->lease, dice_chance(&sim->dice, 500) ? "clumsy" : "tired",
                         is_last ? ",\"retry\":false" : ""),
                 must);
    claim->may_be_lost = true;
    if (is_last && claim->subject != SUBJECTS_MAX) /* its flow fails, perhaps */
        doubt_leases(sim, &sim->subjects[claim->subject]);
}

/* An answer with a lease that was never given. */
static void forge(struct sim *sim, const struct claim *claim)
{
    struct node *answer;
    char lease[40];

    snprintf(lease, sizeof lease, "%s", claim->lease);
    lease[0] = lease[0] == '0' ? '1' : '0';
    if (sim_ask(sim, &answer, "step.complete",
                "{\"step_id\":\"%s\",\"lease\":\"%s\",\"result\":\"forged\"}", claim->step_id,
                lease) == PAWL_OK)
        sim_fail(sim, "C9 fenced", "an answer to %s with a wrong lease was taken", claim->step_id);
}

static void extend(struct sim *sim, struct claim *claim)
{
    struct node *answer;
    int64_t before_ms = sim->elapsed_ms;
    pawl_status status = sim_ask(sim, &answer, "step.heartbeat",
                                 "{\"step_id\":\"%s\",\"lease\":\"%s\",\"extend\":\"30s\"}",
                                 claim->step_id, claim->lease);

    if (status == PAWL_OK)
        claim->until_ms = before_ms + 30000;
    else
        claim->may_be_lost = true;
}

/* ---- Turns: several answers and the next claim in one request ---- */

struct turn {
    struct claim *claims[TURN_MAX];
    uint32_t count;
    char text[INPUT_MAX / 2];
    size_t size;
};

static bool has(const struct turn *turn, const struct claim *claim)
{
    for (uint32_t i = 0; i < turn->count; i++)
        if (turn->claims[i] == claim)
            return true;
    return false;
}

static void add_answer(struct sim *sim, struct turn *turn, struct claim *claim)
{
    if (claim->is_over || claim->is_sent || has(turn, claim))
        return;
    turn->size += (size_t)snprintf(
        turn->text + turn->size, sizeof turn->text - turn->size,
        "%s{\"step_id\":\"%s\",\"lease\":\"%s\",\"result\":{\"nonce\":%u}}", turn->count ? "," : "",
        claim->step_id, claim->lease, (uint32_t)(claim - sim->claims));
    turn->claims[turn->count++] = claim;
}

/* Each answer has its own outcome. */
static void note_results(struct sim *sim, struct turn *turn, const struct node *answer)
{
    const struct node *results = answer ? node_find(answer, "results") : NULL;
    const struct node *result = results ? results->first : NULL;

    for (uint32_t i = 0; i < turn->count && result; i++, result = result->next) {
        bool is_taken = sim_text(result, "status").data != NULL;
        bool is_open = str_is(sim_text(result, "reason"), "outcome-unknown");

        turn->claims[i]->is_over = !is_open;
        turn->claims[i]->is_taken = is_taken;
        turn->claims[i]->is_sent = is_taken || is_open;
        sim->unknown_count += is_open;
    }
}

static void take_turn(struct sim *sim, struct claim *claim)
{
    struct turn turn = { .count = 0 };
    struct node *answer;
    int64_t before_ms = sim->elapsed_ms;
    pawl_status status;

    add_answer(sim, &turn, claim);
    for (uint32_t i = 0; i < TURN_MAX - 1; i++)
        add_answer(sim, &turn, &sim->claims[dice_below(&sim->dice, sim->claim_count)]);
    status = sim_ask(sim, &answer, "step.complete_many",
                     "{\"steps\":[%s],\"claim\":{\"tools\":" TOOLS
                     ",\"worker\":\"w\",\"max\":2,\"lease\":\"30s\"}}",
                     turn.text);
    for (uint32_t i = 0; i < turn.count; i++)
        turn.claims[i]->is_sent = turn.claims[i]->may_be_lost = true;
    if (status != PAWL_OK)
        return;
    note_results(sim, &turn, answer);
    note_claims(sim, answer, 30000 - (sim->elapsed_ms - before_ms));
}

static struct claim *draw_claim(struct sim *sim)
{
    struct claim *claim;

    if (!sim->claim_count)
        return NULL;
    claim = &sim->claims[dice_below(&sim->dice, sim->claim_count)];
    if (claim->is_over && !dice_chance(&sim->dice, sim->swarm.repeat))
        return NULL;
    return claim;
}

void worker_act(struct sim *sim)
{
    struct claim *claimed = draw_claim(sim);
    uint32_t drawn = dice_below(&sim->dice, 100);

    if (!claimed || drawn < 35) {
        if (sim->claim_count < CLAIMS_MAX - 64)
            claim(sim, 1 + dice_below(&sim->dice, 3));
    } else if (drawn < 70)
        complete(sim, claimed);
    else if (drawn < 78)
        fail(sim, claimed);
    else if (drawn < 81)
        forge(sim, claimed);
    else if (drawn < 90)
        extend(sim, claimed);
    else if (sim->claim_count < CLAIMS_MAX - 64)
        take_turn(sim, claimed);
}

void worker_finish_all(struct sim *sim)
{
    uint32_t first = sim->claim_count;

    claim(sim, 50);
    for (uint32_t i = first; i < sim->claim_count; i++)
        complete(sim, &sim->claims[i]);
}
