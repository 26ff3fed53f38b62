/* threads.c - the engine's own threads: one commits, one does what falls due, the others run tools
 * (tool_threads.c). */
#include "engine/parts.h"

#define PAUSE_MOVED_MS 1000 /* while a call moves the clock of tests, and does all that is due */

bool shell_has_threads(const struct engine *engine)
{
    return engine->shell.thread_count > 0;
}

void shell_init(struct engine *engine)
{
    struct shell *shell = &engine->shell;
    pthread_cond_t *const all[] = { &shell->changed,  &shell->more,  &shell->look,
                                    &shell->advanced, &shell->tools, &shell->late };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        shell_cond_init(all[i]);
    shell->rests_until_ms = INT64_MIN;
}

void shell_fini(struct engine *engine)
{
    struct shell *shell = &engine->shell;
    pthread_cond_t *const all[] = { &shell->changed,  &shell->more,  &shell->look,
                                    &shell->advanced, &shell->tools, &shell->late };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        pthread_cond_destroy(all[i]);
    tools_fini(engine);
}

/* ---- The thread that commits ---- */

/* The lock is released meanwhile. */
static void wait_until_free(struct engine *engine)
{
    engine->shell.wait_for_drain++;
    while (engine->writer.drainer)
        shell_sleep(engine);
    engine->shell.wait_for_drain--;
}

/* A quiet moment is used to put lagging rows right. Each wait gives up the lock: another thread may
 * drain after it, so that it is the next round that looks. */
static void rest_from_commits(struct engine *engine)
{
    int64_t for_ms = writer_rest_ms(engine);
    uint64_t drains = engine->writer.drains; /* it was quiet if there are no more afterwards */

    if (for_ms >= 0) {
        shell_wait_for(engine, &engine->shell.more, for_ms);
        if (drains == engine->writer.drains)
            engine_work(engine, NULL, WORK_ROWS);
        return;
    }
    engine->shell.rests = true;
    guard_wait(&engine->lock, &engine->shell.more);
    engine->shell.rests = false;
}

static void *commits_thread(void *context)
{
    struct engine *engine = context;

    panic_set(engine->options.panic);
    guard_lock(&engine->lock);
    while (!engine->shell.drain_stopping || engine->writer.first) {
        if (engine->writer.drainer)
            wait_until_free(engine);
        else if (!engine_work(engine, NULL, WORK_COMMITS))
            rest_from_commits(engine);
    }
    guard_unlock(&engine->lock);
    return NULL;
}

void shell_take_drain(struct engine *engine)
{
    guard_lock(&engine->lock);
    do
        wait_until_free(engine);
    while (!writer_take(engine));
    guard_unlock(&engine->lock);
}

void shell_give_drain(struct engine *engine)
{
    guard_lock(&engine->lock);
    writer_give(engine);
    shell_drained(engine);
    shell_changed(engine);
    guard_unlock(&engine->lock);
}

/* ---- The thread for what falls due ---- */

static void rest_until_due(struct engine *engine)
{
    int64_t for_ms = timers_pause_ms(engine);

    engine->shell.rests_until_ms = clock_at(engine) + for_ms;
    shell_wait_for(engine, &engine->shell.look, for_ms);
    engine->shell.rests_until_ms = INT64_MIN;
}

static void *timers_thread(void *context)
{
    struct engine *engine = context;
    struct scope scope;

    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    panic_set(engine->options.panic);
    guard_lock(&engine->lock);
    while (!engine->stopping) {
        if (engine->shell.advances > 0) /* the call that moves the clock does all this */
            shell_wait_for(engine, &engine->shell.advanced, PAUSE_MOVED_MS);
        else if (!engine_work(engine, &scope, WORK_TURNS | WORK_TIMERS))
            rest_until_due(engine);
    }
    guard_unlock(&engine->lock);
    scope_fini(&scope);
    return NULL;
}

/* ---- All of them ---- */

bool shell_start(struct engine *engine)
{
    uint32_t wanted = engine->options.workers + 2;

    if (!tools_start(engine))
        return false;
    engine->shell.threads = heap_new(engine->heap, sizeof *engine->shell.threads * wanted);
    if (!engine->shell.threads)
        return false;
    for (uint32_t i = 0; i < wanted; i++) {
        void *(*body)(void *) = i == 0 ? commits_thread : i == 1 ? timers_thread : tools_thread;
        int failed;

        guard_lock(&engine->lock);
        failed = pthread_create(&engine->shell.threads[i], NULL, body, engine);
        engine->shell.thread_count += !failed;
        guard_unlock(&engine->lock);
        if (failed)
            return false;
    }
    return true;
}

void shell_stop(struct engine *engine)
{
    uint32_t count = engine->shell.thread_count;

    if (count == 0)
        return;
    guard_lock(&engine->lock);
    engine->stopping = true;
    waiting_call_all(engine);
    shell_changed(engine);
    guard_unlock(&engine->lock);
    toolbox_kill_all(engine->toolbox);
    for (uint32_t i = count; i > 1; i--)
        pthread_join(engine->shell.threads[i - 1], NULL);
    tools_stop(engine);
    /* The one that commits (the first) goes last: the others may still have waited for it. */
    guard_lock(&engine->lock);
    engine->shell.drain_stopping = true;
    pthread_cond_signal(&engine->shell.more);
    guard_unlock(&engine->lock);
    pthread_join(engine->shell.threads[0], NULL);
    engine->shell.thread_count = 0;
    heap_free(engine->heap, engine->shell.threads,
              sizeof *engine->shell.threads * (engine->options.workers + 2));
}

void shell_again(struct engine *engine)
{
    tools_fini(engine);
    guard_lock(&engine->lock);
    engine->shell.runners = engine->shell.watcher = NULL;
    engine->shell.threads = NULL;
    engine->shell.drain_stopping = engine->stopping = false;
    guard_unlock(&engine->lock);
    toolbox_go_on(engine->toolbox);
}
