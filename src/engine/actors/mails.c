/* mails.c - events without a waiting caller: tools that answer, timers, children. They own
 * themselves. Made, sent, and used again. */
#include "engine/parts.h"

/* Waking thousands takes as many mails, one after the other: what they hold is used again. */
struct mail *mail_new(struct engine *engine)
{
    struct mail *mail = engine->actors.spare_mails;

    ASSERT_LOCKED(engine);
    if (mail) {
        struct scope own = mail->own;

        engine->actors.spare_mails = mail->next;
        engine->actors.spare_count--;
        own.trace = STR_NONE; /* of who sent it before */
        own.arena.is_full = false;
        *mail = (struct mail){ .own = own, .is_owned = true };
        return mail;
    }
    mail = heap_new(engine->heap, sizeof *mail);
    if (mail) {
        scope_init(&mail->own, engine->heap, LIMIT_SCOPE);
        mail->is_owned = true;
    }
    return mail;
}

void mail_free(struct engine *engine, struct mail *mail)
{
    runners_count(engine, &mail->bytes, 0);
    if (engine->actors.spare_count < MAILS_SPARED) {
        scope_clear(&mail->own);
        if (mail->own.arena.used <= SPARE_BYTES) {
            mail->next = engine->actors.spare_mails;
            engine->actors.spare_mails = mail;
            engine->actors.spare_count++;
            return;
        }
    }
    scope_fini(&mail->own);
    heap_free(engine->heap, mail, sizeof *mail);
}

void mail_fini(struct engine *engine)
{
    while (engine->actors.spare_mails) {
        struct mail *mail = engine->actors.spare_mails;

        engine->actors.spare_mails = mail->next;
        scope_fini(&mail->own);
        heap_free(engine->heap, mail, sizeof *mail);
    }
}

void mail_renew_scope(struct engine *engine, struct mail *mail)
{
    struct event event = mail->event;
    /* Any of them may be in the scope of the mail: a payload, why it failed or is poison, which
     * worker is gone. */
    str *const texts[] = { &event.name,   &event.payload, &event.actor,
                           &event.reason, &event.given,   &event.failure,
                           &event.poison, &event.filter,  &event.filter_written };
    struct scope fresh;

    ASSERT(!mail->scope || mail->scope == &mail->own);
    scope_init(&fresh, engine->heap, LIMIT_SCOPE);
    fresh.trace = mail->own.trace;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = arena_str(&fresh.arena, *texts[i]);
    if (fresh.arena.failed) { /* no memory at all: it stays as it is, and is tried again */
        scope_fini(&fresh);
        return;
    }
    mail->event = event;
    scope_fini(&mail->own);
    mail->own = fresh;
}

/* When the first of those that were set aside is tried again. There is one. */
int64_t mail_retry_ms(const struct engine *engine)
{
    int64_t first_ms = INT64_MAX;

    ASSERT_LOCKED(engine);
    for (const struct mail *mail = engine->actors.later; mail; mail = mail->next)
        first_ms = mail->retry_at_ms < first_ms ? mail->retry_at_ms : first_ms;
    return first_ms;
}

struct mail *mail_to(struct engine *engine, uint64_t instance, const struct event *event)
{
    struct mail *mail = mail_new(engine);

    if (mail) {
        mail->instance = instance;
        mail->event = *event;
    }
    return mail;
}

bool mail_send(struct engine *engine, struct mail *mail)
{
    struct actor *actor = mail ? actor_get(engine, mail->instance) : NULL;

    ASSERT_LOCKED(engine);
    ASSERT(!mail || mail->is_owned);
    if (actor) {
        engine->actors.mail_under_way++;
        mail_deliver(engine, actor, mail);
        engine_set_wakeup(engine);
    } else if (mail)
        mail_free(engine, mail);
    return actor != NULL;
}

void mail_send_all(struct engine *engine, struct mail *const *mails, uint32_t count)
{
    engine->actors.mail_under_way += count;
    mail_deliver_all(engine, mails, count);
    engine_set_wakeup(engine);
}

/* Together, so that they are restored with one look at the store and share commits. An instance
 * that refuses has not failed. */
pawl_status mail_wake_all(struct engine *engine, struct scope *scope, const uint64_t *numbers,
                          uint32_t count)
{
    const struct event wake = { .kind = EVENT_WAKE };
    struct mail_group group = { 0 };
    struct mail *mails[WAKES_AT_ONCE];
    uint32_t made;

    ASSERT(count <= WAKES_AT_ONCE);
    guard_lock(&engine->lock);
    for (made = 0; made < count; made++) {
        mails[made] = mail_to(engine, numbers[made], &wake);
        if (!mails[made])
            break;
        mails[made]->group = &group;
    }
    group.left = made;
    engine->actors.mail_under_way += made;
    mail_deliver_all(engine, mails, made);
    while (group.left)
        shell_wait(engine);
    guard_unlock(&engine->lock);
    scope->error = group.error;
    return !group.error.status && made < count ? scope_no_memory(scope) : group.error.status;
}

static void free_list(struct engine *engine, struct mail **list)
{
    while (*list) {
        struct mail *mail = *list;

        *list = mail->next;
        mail_free(engine, mail);
    }
}

/* No caller waits for these, and their causes are still in the store. */
void mail_drop_all(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->actors.count; i++) {
        free_list(engine, &engine->actors.items[i]->first);
        engine->actors.items[i]->last = NULL;
    }
    free_list(engine, &engine->actors.later);
}
