/* mailbox.c - events of one instance are decided in order, one decision in flight.
 *
 * A thread that sends takes the turn if it is free. Otherwise the mail waits, and the thread that
 * ends the turn passes it on. The drain never runs a reducer or a handler: it only compares the seq
 * a decision was made against. */
#include "engine/parts.h"

/* The store failed, not the event: nothing is lost if it is tried again. What was committed
 * after all (an unknown outcome) is refused then as late. Due timers come again by themselves, and
 * so do ready steps. */
static bool set_aside(struct engine *engine, struct mail *mail, pawl_status status)
{
    if (!mail->is_owned || mail->group ||
        (!status_is_ours(status) && !(mail->is_poison && status == PAWL_PAUSED)))
        return false;
    if (mail->event.kind == EVENT_STEP_START) {
        steps_lose_ready(engine);
        return false;
    }
    engine->actors.mail_under_way -= mail->is_poison; /* it rests until its instance is resumed */
    runners_count(engine, &mail->bytes, 0);           /* others need not wait for it */
    mail->retry_at_ms = engine->env->tick_ms(engine->env) + RETRY_STORE_MS;
    mail->next = engine->actors.later;
    engine->actors.later = mail;
    return true;
}

/* Not those that do not wait for it now, which were asked for nothing, or that are full. */
static void note_refusal(struct refusals *refusals, const struct mail *mail, pawl_status status)
{
    if (status != PAWL_INVALID_REQUEST && status != PAWL_NOT_KNOWN)
        return;
    if (refusals->count < REFUSALS_NAMED) {
        refusals->instances[refusals->count] = mail->instance;
        refusals->reasons[refusals->count] = mail->own.error;
    }
    refusals->count++;
}

static void tell_group(struct mail_group *group, const struct mail *mail, pawl_status status)
{
    pawl_error error;

    if (!status) {
        group->kept += mail->is_kept;
        return;
    }
    error = mail->own.error;
    error.status = status;
    if (group->refusals)
        note_refusal(group->refusals, mail, status);
    group->refused++;
    group->full += status == PAWL_OVERLOADED;
    group->late += status == PAWL_NOT_AWAITING;
    if (!group->refusal.status)
        group->refusal = error;
    if (status_is_ours(status) && !group->error.status)
        group->error = error;
}

void mail_group_leave(struct engine *engine, struct mail_group *group)
{
    ASSERT_LOCKED(engine);
    if (--group->left == 0 && group->done)
        group->done(engine, group);
}

/* Of what the engine sent itself. not-known: its handler is not registered yet, or not in this
 * program, as `why` says. A step whose tool is not in this program waits for a worker. A timer may
 * come late: a resume took its turn. What a broadcast meets is logged by signals.c. */
static bool is_worth_a_warning(const struct mail *mail, pawl_status status)
{
    enum event_kind kind = mail->event.kind;

    return !(mail->group && mail->group->refusals) && status != PAWL_LEASE_LOST &&
           status != PAWL_TERMINAL && status != PAWL_PAUSED && status != PAWL_NOT_KNOWN &&
           kind != EVENT_WAKE &&
           (status != PAWL_NOT_AWAITING || (kind != EVENT_STEP_START && kind != EVENT_TIMER));
}

void mail_finish(struct engine *engine, struct mail *mail, pawl_status status)
{
    if (set_aside(engine, mail, status))
        return;
    mail->status = status;
    mail->is_done = true;
    if (mail->group)
        tell_group(mail->group, mail, status);
    if (mail->holds_place)
        engine->work.jobs_under_way--;
    if (mail->group)
        mail_group_leave(engine, mail->group);
    if (!mail->is_owned)
        return;
    engine->actors.mail_under_way--;
    untaken_note(engine, mail, status);
    if (mail->event.kind == EVENT_WAKE && status == PAWL_NOT_KNOWN)
        engine->actors.wakes.was_refused = true;
    if (mail->event.kind == EVENT_CHILD && status == PAWL_NOT_KNOWN)
        engine->actors.ended_refused = true;
    if (status && is_worth_a_warning(mail, status))
        engine_log(engine, PAWL_LOG_WARN, "event.refused", mail->own.error.message);
    mail_free(engine, mail);
}

/* Without memory the next event does it. */
void mail_wake(struct engine *engine, uint64_t instance)
{
    ASSERT_LOCKED(engine);
    (void)mail_send(engine, mail_to(engine, instance, &(struct event){ .kind = EVENT_WAKE }));
}

static void put_mail(struct actor *actor, struct mail *mail)
{
    mail->next = NULL;
    if (actor->last)
        actor->last->next = mail;
    else
        actor->first = mail;
    actor->last = mail;
}

void mail_deliver(struct engine *engine, struct actor *actor, struct mail *mail)
{
    put_mail(actor, mail);
    if (actor->busy)
        return;
    actor->busy = true;
    actor_take_turn(engine, actor, NULL);
}

/* Those whose turn is ours, restored together as far as they have to be. The lock is released
 * meanwhile. */
static void load_all(struct engine *engine, struct actor *mine)
{
    ASSERT_LOCKED(engine);
    while (mine) {
        struct actor *some[ACTORS_AT_ONCE];
        uint32_t count = 0;

        for (; mine && count < ACTORS_AT_ONCE; mine = mine->next_runnable)
            some[count++] = mine;
        guard_unlock(&engine->lock);
        actors_load(engine, some, count);
        guard_lock(&engine->lock);
    }
}

void mail_deliver_all(struct engine *engine, struct mail *const *mails, uint32_t count)
{
    struct actor *mine = NULL; /* those whose turn is ours now */
    struct request *gathered = NULL;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < count; i++) {
        struct actor *actor = actor_get(engine, mails[i]->instance);

        if (!actor) {
            mail_finish(engine, mails[i], PAWL_NO_MEMORY);
            continue;
        }
        put_mail(actor, mails[i]);
        if (actor->busy)
            continue;
        actor->busy = true;
        actor->next_runnable = mine;
        mine = actor;
    }
    load_all(engine, mine);
    while (mine) {
        struct actor *next = mine->next_runnable;

        actor_take_turn(engine, mine, &gathered);
        mine = next;
    }
    engine_submit_list(engine, gathered);
}

/* An event that met a failing store, when its time has come. */
static bool try_again(struct engine *engine)
{
    struct mail **link = &engine->actors.later, *mail;
    int64_t now_ms = *link ? engine->env->tick_ms(engine->env) : 0;
    struct actor *actor;

    while (*link && now_ms < (*link)->retry_at_ms)
        link = &(*link)->next;
    mail = *link;
    actor = mail && !engine->stopping ? actor_get(engine, mail->instance) : NULL;
    if (!actor)
        return false;
    *link = mail->next;
    engine->actors.mail_under_way += mail->is_poison;
    mail_deliver(engine, actor, mail);
    return true;
}

bool actors_take_turn(struct engine *engine)
{
    struct actor *actor = engine->actors.runnable;

    ASSERT_LOCKED(engine);
    if (!actor)
        return false;
    engine->actors.runnable = actor->next_runnable;
    if (!engine->actors.runnable)
        engine->actors.runnable_last = NULL;
    actor_take_turn(engine, actor, NULL);
    return true;
}

bool actors_pass_on(struct engine *engine)
{
    return family_tell(engine) || try_again(engine);
}

bool actors_have_work(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->actors.runnable || engine->actors.ended_count || engine->actors.later;
}

/* An engine without threads reports the ends of children to their parents here. */
void engine_pass_news(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    while (engine->actors.ended_count && !shell_has_threads(engine) &&
           engine_work(engine, NULL, WORK_WAITING))
        continue;
}

/* Deliver, and wait for the answer. */
static pawl_status send_mail(struct engine *engine, struct scope *scope, uint64_t instance,
                             struct mail *mail)
{
    struct actor *actor;

    guard_lock(&engine->lock);
    actor = actor_get(engine, instance);
    if (!actor) {
        guard_unlock(&engine->lock);
        return scope_no_memory(scope);
    }
    mail_deliver(engine, actor, mail);
    while (!mail->is_done)
        shell_wait(engine);
    engine_pass_news(engine);
    guard_unlock(&engine->lock);
    return mail->status;
}

pawl_status engine_send(struct engine *engine, struct scope *scope, uint64_t instance,
                        const struct event *event, const struct fire_args *fire, const uint8_t *key,
                        struct fired *out)
{
    struct mail mail = { .event = *event, .scope = scope, .fire = fire, .out = out, .key = key };

    return send_mail(engine, scope, instance, &mail);
}

pawl_status mail_signal(struct engine *engine, struct scope *scope, uint64_t instance,
                        const struct event *event, const uint8_t *key, bool *is_kept)
{
    struct mail mail = { .event = *event, .scope = scope, .key = key };
    pawl_status status = send_mail(engine, scope, instance, &mail);

    *is_kept = mail.is_kept;
    return status;
}
