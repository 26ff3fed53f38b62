/* recover.c - after a death: what lags is read from the tail of the log, what ran is lost. */
#include "engine/engine_int.h"

/* One record of the tail: its instance's row is older than this. */
static pawl_status note_tail(void *context, const struct record *record)
{
    struct engine *engine = context;
    struct head *cached, head = { .instance = record->instance,
                                  .pos = record->pos,
                                  .seq = (uint32_t)record->seq,
                                  .skip = SKIP_UNKNOWN,
                                  .flags = HEAD_RAW };
    bool ok;

    if (!record->instance || (PLANTED(TAIL_CUT) && record->pos == engine->tip.pos))
        return PAWL_OK;
    pthread_mutex_lock(&engine->lock);
    cached = heads_find(&engine->heads, record->instance);
    if (!cached && record->what < 0 && record->what != CONTROL_CREATE) {
        pthread_mutex_unlock(&engine->lock);
        return PAWL_OK; /* a pause: it was written with its row */
    }
    if (cached)
        head = *cached;
    head.pos = record->pos;
    head.seq = (uint32_t)record->seq;
    memcpy(head.hash, record->hash, SHA_SIZE);
    if (record->what >= 0) {
        head.state = (uint16_t)record->what;
        head.flags = (uint8_t)((head.flags & ~HEAD_FRESH) | HEAD_RAW);
    } else if (record->what == CONTROL_CREATE) {
        head.flags |= HEAD_FRESH;
    }
    cached = heads_add(&engine->heads, &head);
    ok = cached && heads_mark_dirty(&engine->heads, cached);
    pthread_mutex_unlock(&engine->lock);
    return ok ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status recover_tail(struct engine *engine, struct scope *scope)
{
    pawl_status status = PAWL_OK;

    if (engine->tip.flushed < engine->tip.pos)
        status = store_scan(engine->store, scope, engine->tip.flushed + 1, note_tail, engine);
    if (status)
        return status == PAWL_NO_MEMORY ? scope_no_memory(scope) : status;
    pthread_mutex_lock(&engine->lock);
    engine->heads.is_whole = true;
    pthread_mutex_unlock(&engine->lock);
    return PAWL_OK;
}

/* Others read the clock meanwhile, and it knows the time of the last record. */
void engine_set_tip(struct engine *engine, const struct store_tip *tip)
{
    pthread_mutex_lock(&engine->lock);
    engine->tip = *tip;
    if (!tip->pos)
        root_first(engine->sha, tip->store_id, engine->tip.root);
    pthread_mutex_unlock(&engine->lock);
}

pawl_status recover(struct engine *engine, struct scope *scope)
{
    struct store_tip tip;
    pawl_status status = store_tip(engine->store, scope, &tip);

    if (status)
        return status;
    engine_set_tip(engine, &tip);
    pthread_mutex_lock(&engine->lock);
    if (engine->options.test_clock && engine->test_now_ms < tip.test_now_ms)
        engine->test_now_ms = tip.test_now_ms;
    engine->next_due_ms = INT64_MIN; /* not known: look */
    pthread_mutex_unlock(&engine->lock);
    return recover_tail(engine, scope);
}

/* Attempts of one instance: those that ran have died with their process; ready ones wait. */
pawl_status recover_instance(struct engine *engine, struct scope *scope, uint64_t number,
                             bool after_death)
{
    struct live live;
    pawl_status status = store_live(engine->store, scope, number, &live);

    if (status)
        return status;
    pthread_mutex_lock(&engine->lock);
    for (uint32_t i = 0; i < live.step_count && !status; i++) {
        struct mail *mail;

        if (live.steps[i].status == STEP_READY) {
            status =
                steps_add_ready(engine, number, live.steps[i].ordinal) ? PAWL_OK : PAWL_NO_MEMORY;
            continue;
        }
        if (live.steps[i].status != STEP_RUNNING || !after_death)
            continue;
        if (live.steps[i].lease.size == LEASE_TOKEN_SIZE) { /* its worker lives on: a full period */
            struct lease lease = { .instance = number,
                                   .ordinal = live.steps[i].ordinal,
                                   .length_ms = live.steps[i].lease_ms };

            memcpy(lease.token, live.steps[i].lease.data, LEASE_TOKEN_SIZE);
            lease_add(engine, &lease);
            continue;
        }
        mail = mail_new(engine);
        if (mail)
            mail->event = (struct event){ .kind = EVENT_STEP_LOST,
                                          .ordinal = live.steps[i].ordinal,
                                          .is_leased = true };
        if (!mail || !engine_mail(engine, number, mail))
            status = PAWL_NO_MEMORY;
    }
    pthread_mutex_unlock(&engine->lock);
    return status ? scope_no_memory(scope) : PAWL_OK;
}

static pawl_status recover_all(struct engine *engine, struct scope *scope, bool after_death)
{
    uint64_t after = 0, *numbers;
    uint32_t count;
    pawl_status status;

    do {
        status = store_busy(engine->store, scope, after, 1000, &numbers, &count);
        for (uint32_t i = 0; i < count && !status; i++)
            status = recover_instance(engine, scope, after = numbers[i], after_death);
    } while (!status && count == 1000);
    return status;
}

pawl_status recover_steps(struct engine *engine, struct scope *scope)
{
    return recover_all(engine, scope, true);
}

/* One that is found twice does no harm: it can be started only once. */
void recover_ready(struct engine *engine)
{
    struct scope scope;

    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    if (recover_all(engine, &scope, false) == PAWL_OK)
        engine->ready_lost = false;
    scope_fini(&scope);
}

/* Close, open, replay. Steps under way in this process go on: they have not died. */
pawl_status engine_reopen(struct engine *engine)
{
    struct scope scope;
    pawl_status status;

    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    status = store_reopen(engine->store, &scope);
    if (!status)
        status = recover(engine, &scope);
    engine_log(engine, status ? PAWL_LOG_ERROR : PAWL_LOG_WARN,
               status ? "store.lost" : "store.reopened",
               status ? scope.error.message : "after an unknown outcome");
    scope_fini(&scope);
    return status;
}
