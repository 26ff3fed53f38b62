/* waits.c - callers that wait: each does what it can meanwhile, and sleeps if that is nothing.
 *
 * In a library the first caller becomes leader and drains for the others; a server has a thread
 * that does nothing else. Waking that one costs more than a short commit's work. So the thread
 * that reads requests drains what it has queued itself, if none drains and little is queued;
 * what was queued meanwhile is left to that thread. A thread that moves a test clock drains all
 * that it queues. */
#include "engine/parts.h"

/* More requests of others than this, and any after a slower commit, are left to the thread that
 * commits. What the thread has queued itself is one turn of a worker, whose answers are bounded. */
#define LED_AT_ONCE   8u
#define LED_WITHIN_US 20000

void shell_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void shell_wait_for(struct engine *engine, pthread_cond_t *condition, int64_t for_ms)
{
    int64_t until = engine->env->tick_ms(engine->env) + for_ms;
    struct timespec at = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };

    guard_wait_until(&engine->lock, condition, &at);
}

void shell_sleep(struct engine *engine)
{
    guard_wait(&engine->lock, &engine->shell.changed);
}

void shell_sleep_for(struct engine *engine, int64_t for_ms)
{
    shell_wait_for(engine, &engine->shell.changed, for_ms);
}

void shell_wait(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    if (!engine_work(engine, NULL, WORK_WAITING))
        shell_sleep(engine);
}

/* ---- Who drains ---- */

static _Thread_local const struct engine *led; /* by this thread, which drains what it queues */
static _Thread_local uint32_t led_count;       /* requests that it has queued since */

bool shell_leads(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return !engine->shell.thread_count || led == engine ||
           (engine->shell.has_mover && pthread_equal(engine->shell.mover, pthread_self()));
}

void shell_lead_begin(struct engine *engine)
{
    ASSERT(!led);
    led = engine;
    led_count = 0;
}

void shell_lead_note(const struct engine *engine)
{
    if (led == engine)
        led_count++;
}

/* What its commit leads to is for the thread that commits. Without one it is done here, for no
 * other thread is sure to come by. */
void shell_lead_end(struct engine *engine)
{
    ASSERT(led == engine);
    led = NULL;
    guard_lock(&engine->lock);
    while (!engine->shell.thread_count && engine_work(engine, NULL, WORK_WAITING))
        continue;
    if (engine->writer.first && !engine->writer.drainer) {
        if (engine->writer.queued <= LED_AT_ONCE + led_count &&
            engine->writer.commit_us <= LED_WITHIN_US)
            engine_work(engine, NULL, WORK_COMMITS);
        else
            pthread_cond_signal(&engine->shell.more);
    }
    guard_unlock(&engine->lock);
}

/* ---- Requests ---- */

static void wait_for(struct engine *engine, struct request *request)
{
    ASSERT_LOCKED(engine);
    while (!request->is_done)
        if (!shell_leads(engine) || !engine_work(engine, NULL, WORK_COMMITS))
            guard_wait(&engine->lock, &request->wake);
}

/* Once more, if its key was being used by another call of that commit: what became of that one
 * is known now. */
pawl_status shell_submit(struct engine *engine, struct request *request)
{
    pthread_cond_init(&request->wake, NULL);
    guard_lock(&engine->lock);
    do {
        writer_queue(engine, request);
        wait_for(engine, request);
    } while (request->is_again);
    engine_pass_news(engine);
    guard_unlock(&engine->lock);
    pthread_cond_destroy(&request->wake);
    return request->status;
}

/* Together, so that they share a commit; each has its status. */
void shell_submit_all(struct engine *engine, struct request **requests, size_t count)
{
    guard_lock(&engine->lock);
    for (size_t i = 0; i < count; i++) {
        pthread_cond_init(&requests[i]->wake, NULL);
        writer_queue(engine, requests[i]);
    }
    for (size_t i = 0; i < count; i++) {
        wait_for(engine, requests[i]);
        pthread_cond_destroy(&requests[i]->wake);
    }
    engine_pass_news(engine);
    guard_unlock(&engine->lock);
    for (size_t i = 0; i < count; i++)
        if (requests[i]->is_again)
            shell_submit(engine, requests[i]);
}

/* ---- The clock of tests ---- */

/* One at a time: two that go on side by side would turn the clock back for each other. */
void shell_begin_advance(struct engine *engine)
{
    guard_lock(&engine->lock);
    while (engine->shell.advances > 0)
        guard_wait(&engine->lock, &engine->shell.advanced);
    engine->shell.advances++;
    if (!engine->shell.has_mover) {
        engine->shell.has_mover = true;
        engine->shell.mover = pthread_self();
    }
    shell_changed(engine); /* the thread for what falls due, so that it waits for us */
    guard_unlock(&engine->lock);
}

void shell_end_advance(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine->shell.advances--;
    if (pthread_equal(engine->shell.mover, pthread_self()))
        engine->shell.has_mover = false;
    pthread_cond_broadcast(&engine->shell.advanced);
    pthread_cond_signal(&engine->shell.more); /* what a failed advance has left in the queue */
    guard_unlock(&engine->lock);
}
