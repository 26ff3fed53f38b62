/* tool_threads.c - threads that run tools.
 *
 * Each worker is a thread. While tools take next to no time, more steps are started than there
 * are workers (work/runners.c). One of them may turn out to be slow. The next in the queue does
 * not wait behind it: a watcher, a thread beyond the workers, takes what no worker has taken
 * within LATE_MS, and leaves its post to another thread. Tools that take no time at all (log,
 * set, fail) have one more thread, which runs nothing else. */
#include "engine/parts.h"

#define LATE_MS        5    /* a started step that no worker took by then gets another thread */
#define RUNNER_IDLE_MS 1000 /* a thread beyond the workers ends after so long without work */

void *tools_thread(void *context)
{
    struct engine *engine = context;

    panic_set(engine->options.panic);
    guard_lock(&engine->lock);
    while (!engine->stopping) {
        if (engine_work(engine, NULL, WORK_TOOLS))
            continue;
        engine->shell.idle_runners++;
        guard_wait(&engine->lock, &engine->shell.tools);
        engine->shell.idle_runners--;
    }
    guard_unlock(&engine->lock);
    return NULL;
}

/* ---- Threads beyond the workers ----
 *
 * The first is for quick tools. The others begin as the watcher and become workers. Each ends when
 * it has had nothing to do for a while; its place in the list is joined when it is used again, or
 * at the end. */

static uint32_t runners_max(const struct engine *engine)
{
    return 1 + runners_places(engine) - engine->options.workers;
}

bool tools_start(struct engine *engine)
{
    engine->shell.runners =
        heap_new(engine->heap, sizeof *engine->shell.runners * runners_max(engine));
    return engine->shell.runners != NULL;
}

void tools_fini(struct engine *engine)
{
    heap_free(engine->heap, engine->shell.runners,
              sizeof *engine->shell.runners * runners_max(engine));
}

static void *spare_thread(void *context);

static void begin_runner(struct engine *engine, struct runner *runner)
{
    if (runner->state == RUNNER_ALIVE)
        return;
    if (runner->state == RUNNER_ENDED)
        pthread_join(runner->thread, NULL); /* it has given up the lock for good */
    runner->engine = engine;
    runner->state = RUNNER_ALIVE;
    if (pthread_create(&runner->thread, NULL, spare_thread, runner) != 0)
        runner->state = RUNNER_NONE; /* the job waits for a thread that is free */
}

/* There is one watcher at a time. Simulated time does not pass by waiting: then there is no
 * watcher. */
static void begin_watcher(struct engine *engine)
{
    if (engine->shell.watcher || engine->stopping || engine->env->is_simulated)
        return;
    for (uint32_t i = 1; i < runners_max(engine) && !engine->shell.watcher; i++)
        if (engine->shell.runners[i].state != RUNNER_ALIVE) {
            engine->shell.watcher = &engine->shell.runners[i];
            begin_runner(engine, engine->shell.watcher);
            if (engine->shell.runners[i].state != RUNNER_ALIVE)
                engine->shell.watcher = NULL;
            return;
        }
}

void tools_stop(struct engine *engine)
{
    for (uint32_t i = 0; i < runners_max(engine); i++) {
        bool was_begun;

        guard_lock(&engine->lock); /* it may be about to note its end */
        was_begun = engine->shell.runners[i].state != RUNNER_NONE;
        guard_unlock(&engine->lock);
        if (was_begun)
            pthread_join(engine->shell.runners[i].thread, NULL);
    }
}

void shell_job(struct engine *engine, bool is_quick)
{
    ASSERT_LOCKED(engine);
    if (!engine->shell.runners || engine->stopping)
        return; /* the host runs it; or no thread does any more */
    if (engine->work.quick.count + engine->work.jobs.count <= engine->shell.idle_runners)
        pthread_cond_signal(&engine->shell.tools);
    else if (is_quick)
        begin_runner(engine, &engine->shell.runners[0]);
    else
        begin_watcher(engine);
}

/* Wait for work; false: there was none for a while. */
static bool wait_for_work(struct engine *engine, bool is_for_quick)
{
    int64_t until_ms = engine->env->tick_ms(engine->env) + RUNNER_IDLE_MS;
    pthread_cond_t *condition = is_for_quick ? &engine->shell.changed : &engine->shell.tools;

    engine->shell.idle_runners += !is_for_quick;
    if (engine->env->is_simulated)
        guard_wait(&engine->lock, condition);
    else
        shell_wait_for(engine, condition, RUNNER_IDLE_MS);
    engine->shell.idle_runners -= !is_for_quick;
    return engine->env->tick_ms(engine->env) < until_ms;
}

/* Until a job has waited for LATE_MS; false: there was none for a while, or the engine stops. */
static bool watch(struct engine *engine)
{
    int64_t now_ms = engine->env->tick_ms(engine->env), until_ms = now_ms + RUNNER_IDLE_MS;

    while (!engine->stopping && (now_ms < until_ms || engine->work.jobs.first)) {
        const struct job *first = engine->work.jobs.first;

        if (first && now_ms - first->queued_at_ms >= LATE_MS)
            return true;
        shell_wait_for(engine, &engine->shell.late, LATE_MS);
        now_ms = engine->env->tick_ms(engine->env);
        if (first)
            until_ms = now_ms + RUNNER_IDLE_MS;
    }
    return false;
}

static void work(struct engine *engine, bool is_for_quick)
{
    bool has_waited = false;

    while (!engine->stopping) {
        if (engine_work(engine, NULL, is_for_quick ? WORK_QUICK : WORK_TOOLS)) {
            has_waited = false;
            continue;
        }
        if (has_waited) /* and looked once more: a wake-up may have come with the end of the wait */
            break;
        has_waited = !wait_for_work(engine, is_for_quick);
    }
}

static void *spare_thread(void *context)
{
    struct runner *runner = context;
    struct engine *engine = runner->engine;
    bool has_work = true;

    panic_set(engine->options.panic);
    guard_lock(&engine->lock);
    if (runner == engine->shell.watcher) {
        has_work = watch(engine);
        engine->shell.watcher = NULL;
        if (has_work && engine->work.jobs.count > 1)
            begin_watcher(engine);
    }
    if (has_work)
        work(engine, runner == &engine->shell.runners[0]);
    runner->state = RUNNER_ENDED;
    guard_unlock(&engine->lock);
    return NULL;
}
