/* answers.c - what workers say of their steps: one answer, or a whole turn's in one commit.
 *
 * Each answer is accepted or refused on its own. Those of one call are put into the mailboxes
 * before any is decided, and go to the drain together; those of one instance are one decision
 * (mailbox.c). */
#include "engine/parts.h"
#include "model/words.h"

static pawl_status fail_lease(struct scope *scope, uint32_t ordinal)
{
    return scope_fail(scope, PAWL_LEASE_LOST,
                      "the lease of attempt %u is not yours, or not any more", ordinal);
}

static pawl_status find_step(struct engine *engine, struct scope *scope, str step_id,
                             struct head *head, uint32_t *ordinal, bool *is_code)
{
    struct definition_slot *slot;
    uint64_t number = 0;

    if (str_is_blank(step_id))
        return scope_fail(scope, PAWL_INVALID_REQUEST, "step_id: expected a step's id, found none");
    if (step_id.size <= ID_SIZE + 1 || step_id.data[ID_SIZE] != '.' ||
        !str_to_u64(str_from(step_id, ID_SIZE + 1), &number) || number == 0 || number > UINT32_MAX)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no step '%.*s'",
                          STR_ARG(words_shown(step_id)));
    TRY(engine_locate(engine, scope, (str){ step_id.data, ID_SIZE }, head, &slot));
    if (slot->definition->kind == KIND_MACHINE)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no step '%.*s': a machine has none",
                          STR_ARG(words_shown(step_id)));
    *ordinal = (uint32_t)number;
    *is_code = slot->definition->kind == KIND_CODE;
    return PAWL_OK;
}

/* Which instance it is for, and whether its lease is held; refused at once if not. */
static pawl_status address(struct engine *engine, struct scope *scope, struct step_answer *answer,
                           struct mail *mail, bool *is_code)
{
    struct head head;
    pawl_status status =
        find_step(engine, scope, answer->step_id, &head, &answer->event.ordinal, is_code);

    if (!status && answer->lease.data &&
        !lease_is_held(engine, head.instance, answer->event.ordinal, answer->lease))
        status = fail_lease(scope, answer->event.ordinal);
    answer->event.is_leased = answer->lease.data != NULL;
    mail->instance = status ? 0 : head.instance;
    mail->event = answer->event;
    return status;
}

/* ---- What becomes of a step ---- */

/* An approval below the count ends nothing. */
static bool ends_gate(const struct effect_list *effects, uint32_t ordinal)
{
    for (uint32_t i = 0; i < effects->count; i++)
        if (effects->items[i].kind == EFFECT_END && effects->items[i].ordinal == ordinal)
            return true;
    return false;
}

enum step_status step_outcome(int32_t transition, const struct effect_list *effects,
                              uint32_t ordinal)
{
    switch (transition) {
    case LIFE_T_STEP_START:
        return STEP_RUNNING;
    case LIFE_T_STEP_FAIL:
    case LIFE_T_STEP_TIMEOUT:
    case LIFE_T_GATE_REJECT:
        return STEP_FAILED;
    case LIFE_T_GATE_WAIT:
        return STEP_PENDING;
    case LIFE_T_GATE_APPROVE:
        return ends_gate(effects, ordinal) ? STEP_DONE : STEP_PENDING;
    default:
        return STEP_DONE;
    }
}

/* What the answer with this key came to the first time: the last entry about its step, up to the
 * one with the key. */
static pawl_status first_outcome(struct engine *engine, struct scope *scope, const uint8_t *key,
                                 uint32_t ordinal, enum step_status *out)
{
    struct effect_list effects = { 0 };
    struct record record = { 0 };

    TRY(keys_find(engine, scope, key, &record));
    while ((record.what < 0 || record.ordinal != ordinal) && record.prev)
        TRY(store_record(engine->store, scope, record.prev, &record));
    if (record.what < 0 || record.ordinal != ordinal)
        return scope_fail(scope, PAWL_NOT_KNOWN, "no entry speaks of this step");
    TRY(effects_read(scope, record.body, &effects));
    *out = step_outcome(record.what, &effects, ordinal);
    return PAWL_OK;
}

/* ---- Sending ---- */

/* A lease ends with its answer; one that is refused may have been accepted before, by its key. */
static void conclude(struct engine *engine, struct mail *mail, struct step_answer *answer)
{
    struct record record;

    if (!mail->status && answer->lease.data) {
        guard_lock(&engine->lock);
        lease_drop(engine, mail->instance, answer->event.ordinal);
        guard_unlock(&engine->lock);
    }
    answer->outcome = mail->outcome;
    if (keys_explain(engine, &mail->own, answer->key, &mail->status, &record)) {
        mail->status = PAWL_OK;
        mail->is_repeat = true;
    }
    if (!mail->status && mail->is_repeat)
        mail->status = first_outcome(engine, &mail->own, answer->key, answer->event.ordinal,
                                     &answer->outcome);
    answer->status = mail->status;
    answer->error = mail->own.error;
    scope_fini(&mail->own);
}

/* What was sent and is not over: the caller's answers, and a mail for each. */
struct answering {
    struct mail_group group; /* first: it is found by it */
    struct step_answer *answers;
    struct mail *mails;
    struct mail **sent; /* those that were not refused at once */
    uint32_t count, sent_count;
    bool has_code; /* one of them is an answer to code */
    struct waiting_claim *waiting;
    struct waiter waiter;
};

static void prepare_mail(struct engine *engine, const struct scope *scope,
                         struct answering *answering, uint32_t index)
{
    struct step_answer *answer = &answering->answers[index];
    struct mail *mail = &answering->mails[index];
    bool is_code = false;

    /* An approval has checks of its own, which are made for the first event of a turn only. */
    *mail = (struct mail){ .key = answer->key,
                           .may_ride = !answer->key && (answer->event.kind == EVENT_STEP_DONE ||
                                                        answer->event.kind == EVENT_STEP_FAILED) };
    scope_init(&mail->own, engine->heap, LIMIT_SCOPE);
    mail->own.trace = scope->trace;
    mail->own.alarm = scope->alarm;
    mail->own.is_alarms = scope->is_alarms;
    mail->scope = &mail->own;
    mail->status = address(engine, &mail->own, answer, mail, &is_code);
    mail->is_done = mail->status != PAWL_OK;
    answering->has_code = answering->has_code || is_code;
    if (!mail->status)
        answering->sent[answering->sent_count++] = mail;
}

static pawl_status prepare(struct engine *engine, struct scope *scope, struct step_answer *answers,
                           uint32_t count, struct answering **out)
{
    struct answering *answering = ARENA_NEW(&scope->arena, struct answering);

    TRY_MEMORY(scope, answering);
    *answering = (struct answering){ .answers = answers, .count = count };
    answering->mails = ARENA_ARRAY(&scope->arena, struct mail, count + 1);
    answering->sent = ARENA_ARRAY(&scope->arena, struct mail *, count + 1);
    TRY_MEMORY(scope, answering->mails && answering->sent);
    for (uint32_t i = 0; i < count; i++)
        prepare_mail(engine, scope, answering, i);
    *out = answering;
    return PAWL_OK;
}

static void conclude_all(struct engine *engine, struct answering *answering)
{
    for (uint32_t i = 0; i < answering->count; i++)
        conclude(engine, &answering->mails[i], &answering->answers[i]);
}

pawl_status engine_step_answer_all(struct engine *engine, struct scope *scope,
                                   struct step_answer *answers, uint32_t count,
                                   struct waiting_claim *waiting)
{
    struct answering *answering;

    TRY(prepare(engine, scope, answers, count, &answering));
    if (waiting)
        engine_claim_offer(engine, waiting);
    guard_lock(&engine->lock);
    mail_deliver_all(engine, answering->sent, answering->sent_count);
    for (uint32_t i = 0; i < count; i++)
        while (!answering->mails[i].is_done)
            shell_wait(engine);
    engine_pass_news(engine);
    guard_unlock(&engine->lock);
    conclude_all(engine, answering);
    return PAWL_OK;
}

/* ---- Without a waiting caller ---- */

#define ANSWERS_AT_ONCE 64u /* more are worth a thread of their own */

static void all_answered(struct engine *engine, struct mail_group *group)
{
    struct answering *answering = (struct answering *)group;

    ASSERT_LOCKED(engine);
    if (answering->waiting)
        waiting_answered(engine, answering->waiting);
    else
        answering->waiter.wake(answering->waiter.context);
}

/* The sender is one of the group until it has sent them all: `wake` may free what they are. */
pawl_status engine_step_answers_start(struct engine *engine, struct scope *scope,
                                      struct step_answer *answers, uint32_t count,
                                      struct waiting_claim *waiting, const struct waiter *waiter,
                                      struct answering **out, bool *needs_thread)
{
    struct answering *answering;

    *needs_thread = count > ANSWERS_AT_ONCE;
    if (*needs_thread)
        return PAWL_OK;
    TRY(prepare(engine, scope, answers, count, &answering));
    *needs_thread = answering->has_code;
    for (uint32_t i = 0; *needs_thread && i < count; i++)
        scope_fini(&answering->mails[i].own);
    if (*needs_thread)
        return PAWL_OK;
    answering->group =
        (struct mail_group){ .left = answering->sent_count + 1, .done = all_answered };
    answering->waiting = waiting;
    answering->waiter = *waiter;
    for (uint32_t i = 0; i < answering->sent_count; i++)
        answering->sent[i]->group = &answering->group;
    *out = answering;
    if (waiting) {
        waiting_answering(waiting);
        engine_claim_offer(engine, waiting);
    }
    shell_lead_begin(engine);
    guard_lock(&engine->lock);
    mail_deliver_all(engine, answering->sent, answering->sent_count);
    mail_group_leave(engine, &answering->group);
    guard_unlock(&engine->lock);
    shell_lead_end(engine);
    return PAWL_OK;
}

void engine_step_answers_end(struct engine *engine, struct answering *answering)
{
    guard_lock(&engine->lock); /* the thread that woke us may still hold it */
    guard_unlock(&engine->lock);
    conclude_all(engine, answering);
}

pawl_status engine_step_answer(struct engine *engine, struct scope *scope,
                               struct step_answer *answer)
{
    TRY(engine_step_answer_all(engine, scope, answer, 1, NULL));
    if (answer->status)
        scope->error = answer->error;
    return answer->status;
}

pawl_status engine_step_heartbeat(struct engine *engine, struct scope *scope, str step_id,
                                  str lease, int64_t extend_ms, str progress,
                                  int64_t *out_expires_at_ms)
{
    struct live live;
    struct head head;
    uint32_t ordinal;
    bool is_live = false, is_code;

    TRY(find_step(engine, scope, step_id, &head, &ordinal, &is_code));
    TRY(store_live(engine->store, scope, head.instance, &live));
    for (uint32_t i = 0; i < live.step_count; i++) /* a lease may outlive its attempt */
        is_live = is_live || live.steps[i].ordinal == ordinal;
    return is_live && lease_extend(engine, head.instance, ordinal, lease, extend_ms, progress,
                                   out_expires_at_ms)
               ? PAWL_OK
               : fail_lease(scope, ordinal);
}
