/* news.c - what the core reports wakes the threads that it concerns, and no others. */
#include "engine/parts.h"

/* The thread that rests is woken if there is something for it, not for each commit. */
static void end_rest(struct engine *engine)
{
    if (engine->shell.rests_until_ms != INT64_MIN &&
        (engine->stopping || actors_have_work(engine) || engine->shell.advances > 0 ||
         steps_are_lost(engine) || timers_are_due(engine) ||
         timers_next_due(engine) < engine->shell.rests_until_ms))
        pthread_cond_signal(&engine->shell.look);
}

/* Threads that run tools are not woken for what does not concern them: there are many of them. One
 * is enough to start what is ready; shell_job() wakes one for each job. */
static void wake(struct engine *engine)
{
    engine->shell.has_news = false;
    pthread_cond_broadcast(&engine->shell.changed);
    end_rest(engine);
    if (engine->stopping)
        pthread_cond_broadcast(&engine->shell.tools);
    else if (steps_can_start(engine))
        pthread_cond_signal(&engine->shell.tools);
}

void shell_changed(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    engine->shell.has_news = true;
    if (!engine->shell.is_telling)
        wake(engine);
}

void shell_hold(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    engine->shell.is_telling = true;
}

void shell_tell(struct engine *engine)
{
    guard_lock(&engine->lock);
    wake(engine);
    guard_unlock(&engine->lock);
}

void shell_let_go(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    engine->shell.is_telling = false;
    if (engine->shell.has_news)
        wake(engine);
}

void shell_queued(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    shell_lead_note(engine);
    if (!shell_leads(engine))
        pthread_cond_signal(&engine->shell.more);
}

/* One of those who wait has to lead now, if there is no thread that commits. That thread may not
 * know of what a mover has queued. */
void shell_drained(struct engine *engine)
{
    struct request *next = engine->writer.first;

    ASSERT_LOCKED(engine);
    if (engine->shell.thread_count && (next || (engine->shell.rests && writer_has_rest(engine))))
        pthread_cond_signal(&engine->shell.more);
    if (engine->shell.wait_for_drain || (next && !engine->shell.thread_count))
        shell_changed(engine);
    while (next && next->after)
        next = next->next;
    if (next && !engine->shell.thread_count)
        pthread_cond_signal(&next->wake);
}

void shell_answered(struct request *request)
{
    pthread_cond_signal(&request->wake);
}

void shell_is_suspect(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    pthread_cond_broadcast(&engine->shell.more);
}
