/* drain.c - one drain: all that waits shares one commit.
 *
 * One thread at a time drains: it takes that role in drain_if_free(), and nowhere else. In a
 * library the first caller becomes leader and drains for the others; a server has a thread that
 * does nothing else. Waking that one costs more than a short commit's work. So the thread that
 * reads requests drains what it has queued itself, if none drains and little is queued; what was
 * queued meanwhile is left to the drain's thread. A thread that moves a test clock drains all that
 * it queues.
 *
 * An owner decides first and takes the store's turn only if something was accepted. A writer that
 * shares its store takes the turn first: only then is what it reads still true when it writes. */
#include "engine/parts.h"

#define TOLD_AT_ONCE 32u
/* More requests than this, and any after a slower commit, are left to the drain's thread. */
#define LED_AT_ONCE   8u
#define LED_WITHIN_US 20000
#define EXPECTED     512u /* instances */

static void fail_request(struct engine *engine, struct request *request, pawl_status status)
{
    request->status = status;
    if (request->scope)
        request->scope->error = engine->writer.scope.error;
    for (size_t i = 0; i < request->fire_count; i++)
        if (request->fires[i].status == PAWL_OK)
            request->fires[i].status = status;
}

/* What we hold in memory may now be wrong: forget it, and look at what is there. If even that
 * fails nothing more is written until it succeeds: the next drain tries again. */
static void start_over(struct engine *engine, bool reopen)
{
    pawl_error kept = engine->writer.scope.error;
    pawl_status status;

    guard_lock(&engine->lock);
    heads_clear(&engine->writer.heads);
    guard_unlock(&engine->lock);
    engine->actors.generation++;
    intern_clear(&engine->writer.interned);
    status = reopen ? engine_reopen(engine) : recover(engine, &engine->writer.scope);
    engine->writer.broken = status != PAWL_OK;
    engine->writer.scope.error = kept;
    guard_lock(&engine->lock);
    if (!engine->writer.broken)
        engine_tell_watcher(engine); /* an unknown outcome may have been a commit */
    guard_unlock(&engine->lock);
}

static pawl_status mend(struct engine *engine)
{
    struct store_tip tip;

    if (engine->writer.broken && store_trouble(engine->store) == TROUBLE_GONE)
        return store_tip(engine->store, &engine->writer.scope, &tip); /* sets the error message */
    if (engine->writer.broken && store_trouble(engine->store) == TROUBLE_TAKEN)
        return store_reopen(engine->store, &engine->writer.scope); /* the same: IN_USE */
    if (engine->writer.broken)
        start_over(engine, true);
    return engine->writer.broken ? scope_fail(&engine->writer.scope, PAWL_STORAGE_FAILURE,
                                       "the store failed and could not be opened again yet")
                          : PAWL_OK;
}

/* A shared writer's turn: what we knew may be old. Rows that a dead owner left behind are
 * put right in the same commit. */
static pawl_status take_turn(struct engine *engine)
{
    struct store_tip tip;
    pawl_status status;

    ASSERT_DRAINING(engine);
    if (engine->options.own)
        return PAWL_OK;
    engine->env->reached(engine->env, POINT_BEFORE_BEGIN);
    TRY(store_begin(engine->store, &engine->writer.scope, &tip));
    engine_set_tip(engine, &tip);
    clock_follow_tip(engine);
    guard_lock(&engine->lock);
    heads_clear(&engine->writer.heads);
    guard_unlock(&engine->lock);
    intern_clear(&engine->writer.interned);
    status = recover_tail(engine, &engine->writer.scope);
    if (status)
        store_rollback(engine->store);
    return status;
}

/* Commits an alarm's request together with the alarm's end if the alarm is in force; else drops
 * it. */
static void decide_request(struct engine *engine, struct request *request, int64_t at_ms)
{
    bool is_alarm = request->scope && request->scope->alarm.data;

    if (is_alarm && !alarm_permits(engine, request))
        return;
    request->status = request->drain(engine, request, at_ms);
    if (is_alarm && request->accepted)
        alarm_fired(engine, request, at_ms);
}

/* Nothing was accepted, and nothing else is worth a commit. */
static void end_without_commit(struct engine *engine)
{
    if (!engine->options.own)
        store_rollback(engine->store);
    if (engine->writer.batch.value_count)
        intern_clear(&engine->writer.interned);
}

static void after_commit(struct engine *engine)
{
    bool kept;

    engine->env->reached(engine->env, POINT_AFTER_COMMIT);
    commit_note_success(engine);
    guard_lock(&engine->lock);
    engine->writer.commit_failed = false;
    kept = commit_accept(engine);
    engine_tell_watcher(engine);
    guard_unlock(&engine->lock);
    if (!kept)
        start_over(engine, false);
}

static void after_failure(struct engine *engine, struct request *list, pawl_status status)
{
    bool is_reduce = list && reduces_failed(list);

    for (struct request *request = list; request; request = request->next)
        if (request->accepted)
            fail_request(engine, request, status);
    guard_lock(&engine->lock);
    engine->writer.commit_failed = !is_reduce;
    guard_unlock(&engine->lock);
    if (!is_reduce)
        engine_log(engine, PAWL_LOG_ERROR, "commit.failed", engine->writer.scope.error.message);
    if (!is_reduce && (status == PAWL_STORAGE_FAILURE || status == PAWL_OUTCOME_UNKNOWN ||
                       status == PAWL_IN_USE))
        commit_note_failure(engine, status);
    if (store_trouble(engine->store) == TROUBLE_TAKEN)
        engine->writer.broken = true; /* for good: the store is another process's now */
    else
        start_over(engine, status == PAWL_OUTCOME_UNKNOWN);
}

static pawl_status timed_commit(struct engine *engine, uint32_t slice)
{
    int64_t begun_us = engine->env->tick_us(engine->env);
    pawl_status status = commit_batch(engine, slice);

    engine->writer.commit_us = engine->env->tick_us(engine->env) - begun_us;
    if (status)
        engine->writer.commits_failed++;
    else
        histogram_add(&engine->writer.commit_times, engine->writer.commit_us);
    return status;
}

/* The instances of the fires, which are about to be read. */
static void expect_fires(struct engine *engine, const struct request *list)
{
    uint64_t numbers[EXPECTED];
    uint8_t random[ID_RANDOM_SIZE];
    struct expectation fires = { .instances = numbers,
                                 .rows = EXPECT_HEADS | EXPECT_ROWS | EXPECT_RECORDS };

    for (const struct request *r = list; r; r = r->next)
        for (size_t i = 0; i < r->fire_count && fires.instance_count < EXPECTED; i++)
            if (id_parse(r->fires[i].args.id, &numbers[fires.instance_count], random))
                fires.instance_count++;
    (void)store_expect(engine->store, &engine->writer.scope, &fires); /* what fails, fails again */
}

/* Everything between taking requests and telling how they ended. */
static void process(struct engine *engine, struct request *list, uint32_t sweep)
{
    pawl_status status = mend(engine);
    int64_t at_ms;
    uint32_t slice;

    ASSERT_DRAINING(engine);
    if (!status)
        status = take_turn(engine);
    engine->writer.now = clock_read(engine);
    at_ms = engine->writer.now.at_ms;
    for (struct request *r = list; r && status; r = r->next)
        fail_request(engine, r, status);
    if (status)
        return;
    if (engine->writer.interned.count > LIMIT_ACTORS)
        intern_clear(&engine->writer.interned);
    if (engine->store->ops->expect)
        expect_fires(engine, list);
    for (struct request *r = list; r; r = r->next)
        decide_request(engine, r, at_ms);
    slice = sweep ? sweep : commit_slice(engine);
    if (engine->writer.batch.record_count && !engine->writer.batch_status && !engine->writer.batch.shift_ms)
        engine->writer.batch_status = clock_note(engine, &engine->writer.now);
    if (!engine->writer.batch.record_count && !slice && !engine->writer.batch_status) {
        end_without_commit(engine);
        return;
    }
    if (list && list->accepted && list->reduce_count) {
        engine->writer.batch.reduces = list->reduces;
        engine->writer.batch.reduce_count = list->reduce_count;
    }
    status = timed_commit(engine, slice);
    if (status)
        after_failure(engine, list, status);
    else
        after_commit(engine);
}

static struct request *take_requests(struct engine *engine)
{
    struct request *list = engine->writer.first, *last = list;
    uint32_t count = 1;

    ASSERT_LOCKED(engine);
    /* A reduce may undo its commit: it is alone in it. */
    for (; last && !last->reduce_count && last->next && !last->next->reduce_count &&
           count < LIMIT_DRAIN;
         count++)
        last = last->next;
    engine->writer.queued -= last ? count : 0;
    engine->writer.first = last ? last->next : NULL;
    if (!engine->writer.first)
        engine->writer.last = NULL;
    if (last)
        last->next = NULL;
    return list;
}

static bool lags(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->options.own && !engine->writer.broken &&
           (heads_lag(&engine->writer.heads) ||
            engine->writer.tip.flushed < engine->writer.tip.pos);
}

/* Is there something for the drain's thread in a quiet moment? */
static bool has_rest(struct engine *engine)
{
    return engine->writer.broken || engine->writer.is_suspect || lags(engine) ||
           commit_is_due_again(engine);
}

/* The drain is free: one of those who wait has to lead now, if there is no drain's thread. That one
 * may not know of what a mover has queued. */
static void pass_on(struct engine *engine)
{
    struct request *next = engine->writer.first;

    if (engine->thread_count && (next || (engine->writer.rests && has_rest(engine))))
        pthread_cond_signal(&engine->writer.more);
    if (engine->writer.wait_for_drain || (next && !engine->thread_count))
        engine_changed(engine);
    while (next && next->after)
        next = next->next;
    if (next && !engine->thread_count)
        pthread_cond_signal(&next->wake);
}

/* Threads that run tools are not woken for what does not concern them: there are many of them. One
 * is enough to start what is ready; runner_add() wakes one for each job. */
static void wake(struct engine *engine)
{
    engine->writer.has_news = false;
    pthread_cond_broadcast(&engine->changed);
    timers_end_rest(engine);
    if (engine->stopping)
        pthread_cond_broadcast(&engine->work.tools);
    else if (engine->work.ready)
        pthread_cond_signal(&engine->work.tools);
}

void engine_changed(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    engine->writer.has_news = true;
    if (!engine->writer.is_telling)
        wake(engine);
}

/* A commit may end the turns of a thousand instances: waiting threads are woken for some of them at
 * a time, not for each. The lock is released meanwhile. */
static void make_calls(struct engine *engine, struct request *calls)
{
    uint32_t count = 0;

    ASSERT_LOCKED(engine);
    engine->writer.is_telling = true;
    guard_unlock(&engine->lock);
    engine->env->reached(engine->env, POINT_AFTER_ACK);
    while (calls) {
        struct request *next = calls->next;

        calls->after(engine, calls);
        calls = next;
        if (++count % TOLD_AT_ONCE == 0) {
            guard_lock(&engine->lock);
            wake(engine);
            guard_unlock(&engine->lock);
        }
    }
    guard_lock(&engine->lock);
    engine->writer.is_telling = false;
    if (engine->writer.has_news)
        engine_changed(engine);
}

/* Tell those who wait, then those who left a call to be made. The list may be gone as soon
 * as its owners know, so `next` is read first. */
static void finish(struct engine *engine, struct request *list)
{
    struct request *calls = NULL;

    ASSERT_LOCKED(engine);
    while (list) {
        struct request *next = list->next;

        if (list->after) {
            list->next = calls;
            calls = list;
        }
        list->is_done = true;
        if (!list->after)
            pthread_cond_signal(&list->wake);
        list = next;
    }
    pass_on(engine);
    make_calls(engine, calls);
}

/* Takes the drain's role, drains once and gives the role back; false: another thread has it. The
 * lock is released meanwhile. */
static bool drain_if_free(struct engine *engine, uint32_t sweep)
{
    struct request *list;

    ASSERT_LOCKED(engine);
    if (engine->writer.drainer)
        return false;
    thread_note(&engine->writer.drainer, thread_self());
    list = take_requests(engine);
    guard_unlock(&engine->lock);
    process(engine, list, sweep);
    batch_clear(&engine->writer.batch);
    scope_clear(&engine->writer.scope);
    guard_lock(&engine->lock);
    thread_note(&engine->writer.drainer, 0);
    engine->writer.drains++;
    finish(engine, list);
    engine_set_wakeup(engine);
    return true;
}

static _Thread_local const struct engine *led; /* by this thread, which drains what it queues */

/* Is it for the calling thread to drain what it queues? */
static bool leads(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return !engine->thread_count || led == engine ||
           (engine->clock.has_mover && pthread_equal(engine->clock.mover, pthread_self()));
}

bool engine_drain(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->writer.first && leads(engine) && drain_if_free(engine, 0);
}

/* The lock is released meanwhile. */
static void wait_until_free(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    engine->writer.wait_for_drain++;
    while (engine->writer.drainer)
        guard_wait(&engine->lock, &engine->changed);
    engine->writer.wait_for_drain--;
}

static void enqueue(struct engine *engine, struct request *request)
{
    ASSERT_LOCKED(engine);
    request->next = NULL;
    request->is_done = request->is_again = request->accepted = false;
    engine->writer.queued++;
    if (engine->writer.last)
        engine->writer.last->next = request;
    else
        engine->writer.first = request;
    engine->writer.last = request;
    if (!leads(engine) && !engine->writer.drainer) /* which looks again when it is done */
        pthread_cond_signal(&engine->writer.more);
}

void engine_lead_begin(struct engine *engine)
{
    ASSERT(!led);
    led = engine;
}

/* What its commit leads to is for the drain's thread. */
void engine_lead_end(struct engine *engine)
{
    ASSERT(led == engine);
    led = NULL;
    guard_lock(&engine->lock);
    if (engine->writer.first && engine->thread_count && !engine->writer.drainer) {
        if (engine->writer.queued <= LED_AT_ONCE && engine->writer.commit_us <= LED_WITHIN_US)
            drain_if_free(engine, 0);
        else
            pthread_cond_signal(&engine->writer.more);
    }
    guard_unlock(&engine->lock);
}

static void wait_for(struct engine *engine, struct request *request)
{
    ASSERT_LOCKED(engine);
    while (!request->is_done)
        if (!engine_drain(engine))
            guard_wait(&engine->lock, &request->wake);
}

/* Once more, if its key was being used by another call of that commit: what became of that one
 * is known now. */
pawl_status engine_submit(struct engine *engine, struct request *request)
{
    pthread_cond_init(&request->wake, NULL);
    guard_lock(&engine->lock);
    do {
        enqueue(engine, request);
        wait_for(engine, request);
    } while (request->is_again);
    engine_pass_news(engine);
    guard_unlock(&engine->lock);
    pthread_cond_destroy(&request->wake);
    return request->status;
}

/* Together, so that they share a commit; each has its status. */
void engine_submit_all(struct engine *engine, struct request **requests, size_t count)
{
    guard_lock(&engine->lock);
    for (size_t i = 0; i < count; i++) {
        pthread_cond_init(&requests[i]->wake, NULL);
        enqueue(engine, requests[i]);
    }
    for (size_t i = 0; i < count; i++) {
        wait_for(engine, requests[i]);
        pthread_cond_destroy(&requests[i]->wake);
    }
    engine_pass_news(engine);
    guard_unlock(&engine->lock);
    for (size_t i = 0; i < count; i++)
        if (requests[i]->is_again)
            engine_submit(engine, requests[i]);
}

void engine_post_request(struct engine *engine, struct request *request)
{
    ASSERT(request->after);
    guard_lock(&engine->lock);
    enqueue(engine, request);
    guard_unlock(&engine->lock);
}

/* Under one lock: so no thread drains a part of them. */
void engine_post_all(struct engine *engine, struct request *list)
{
    ASSERT_LOCKED(engine);
    while (list) {
        struct request *next = list->next;

        ASSERT(list->after);
        enqueue(engine, list);
        list = next;
    }
}

/* Drain what is queued, unless another thread does. */
void engine_lead(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    while (engine_drain(engine))
        continue;
}

/* After a failure that was not mended at once: see whether it has passed. */
void engine_mend(struct engine *engine)
{
    guard_lock(&engine->lock);
    if (engine->writer.broken)
        drain_if_free(engine, 0);
    guard_unlock(&engine->lock);
}

/* Rows that lag, written without waiting for a commit of records. */
void engine_sweep(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine->writer.commit_failed = false;
    while (lags(engine) && !engine->writer.commit_failed) {
        wait_until_free(engine);
        engine->env->reached(engine->env, POINT_BEFORE_SWEEP);
        drain_if_free(engine, LIMIT_SLICE);
    }
    guard_unlock(&engine->lock);
}

void engine_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void engine_wait_for(struct engine *engine, pthread_cond_t *condition, int64_t for_ms)
{
    int64_t until = engine->env->tick_ms(engine->env) + for_ms;
    struct timespec at = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };

    guard_wait_until(&engine->lock, condition, &at);
}

void engine_wait_changed(struct engine *engine, int64_t for_ms)
{
    ASSERT_LOCKED(engine);
    engine_wait_for(engine, &engine->changed, for_ms);
}

/* A read failed: its cause may be damaged files, which a commit notices. */
void engine_suspect(struct engine *engine)
{
    if (!engine->options.own)
        return;
    guard_lock(&engine->lock);
    engine->writer.is_suspect = true;
    pthread_cond_broadcast(&engine->writer.more);
    guard_unlock(&engine->lock);
}

/* The server's drain: nothing but this. A quiet moment is used to put lagging rows right. Each wait
 * gives up the lock: another thread may drain after it, so that it is the next round that looks. */
void *drain_thread(void *context)
{
    struct engine *engine = context;
    uint64_t drains; /* before a wait: it was quiet if there are no more */

    panic_set(engine->options.panic);
    guard_lock(&engine->lock);
    while (!engine->writer.drain_stopping || engine->writer.first) {
        if (engine->writer.drainer)
            wait_until_free(engine);
        else if (engine->writer.first)
            drain_if_free(engine, 0);
        else if (engine->writer.broken && !engine->writer.drain_stopping) {
            engine_wait_for(engine, &engine->writer.more, RETRY_STORE_MS);
            drain_if_free(engine, 0);
        } else if (has_rest(engine) && !engine->writer.drain_stopping) {
            engine->writer.is_suspect = false;
            drains = engine->writer.drains;
            /* A disk that takes no rows now may take them later; the log says it all meanwhile. */
            engine_wait_for(engine, &engine->writer.more,
                            engine->writer.commit_failed ? RETRY_STORE_MS : FLUSH_AFTER_MS);
            if (!engine->writer.first && !engine->writer.drainer &&
                drains == engine->writer.drains) {
                engine->env->reached(engine->env, POINT_BEFORE_SWEEP);
                drain_if_free(engine, LIMIT_SLICE);
            }
        } else {
            engine->writer.rests = true;
            guard_wait(&engine->lock, &engine->writer.more);
            engine->writer.rests = false;
        }
    }
    guard_unlock(&engine->lock);
    return NULL;
}
