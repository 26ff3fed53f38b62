/* runners.c - threads that run tools, and the end of what is over.
 *
 * A step's timeout runs from its start, and a cancel must reach what has begun. So a step is
 * started only if a thread takes it: there are as many places as workers, and each worker is a
 * thread. While tools take next to no time the commits between them do: then more steps are
 * started, so that they share commits. One of them may turn out to be slow. The next in the queue
 * does not wait behind it: a watcher, a thread beyond the workers, takes what no worker has taken
 * within LATE_MS, and leaves its post to another thread. Tools that take no time at all (log, set,
 * fail) have one more thread, which runs nothing else.
 *
 * When a commit ends a step (a cancel, a timeout, the end of its instance), its run is withdrawn:
 * what has not begun is dropped, a program is killed with all that it began. When a caller pauses
 * an instance, what has not begun is not begun, and a program is killed if its step may be
 * repeated. Its attempt is given back when all of it is gone, so that no resume can start it beside
 * itself. */
#include "engine/parts.h"
#include <stdio.h>

/* ---- Places ---- */

static bool is_quick(str tool)
{
    return str_is(tool, "log") || str_is(tool, "set") || str_is(tool, "fail");
}

/* Steps that may be under way at once while tools take next to no time. */
static uint32_t places_when_brisk(const struct engine *engine)
{
    uint32_t workers = engine->options.workers ? engine->options.workers : 1;

    if (workers >= PLACES_MAX)
        return workers;
    return workers * JOBS_WHEN_BRISK < PLACES_MAX ? workers * JOBS_WHEN_BRISK : PLACES_MAX;
}

static uint32_t places(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    if (engine->work.brisk_jobs >= BRISK_STREAK)
        return places_when_brisk(engine);
    return engine->options.workers ? engine->options.workers : 1;
}

/* Queued arguments, and answers that wait for their commit, may be a megabyte each. What has not
 * begun waits until there is room again; one always has it. */
bool runners_have_room(const struct engine *engine)
{
    return engine->work.bytes_under_way < WORK_BYTES + (size_t)LIMIT_TEXT * engine->options.workers;
}

void runners_count(struct engine *engine, size_t *counted, size_t bytes)
{
    engine->work.bytes_under_way += bytes - *counted;
    *counted = bytes;
}

bool runner_reserve(struct engine *engine, struct job *job)
{
    uint32_t most;

    guard_lock(&engine->lock);
    most = is_quick(job->call.tool) ? JOBS_QUICK : places(engine);
    job->holds_place = engine->work.jobs_under_way < most && runners_have_room(engine) &&
                       leases_make_room(engine, 1);
    engine->work.jobs_under_way += job->holds_place;
    if (job->holds_place)
        runners_count(engine, &job->bytes, job->scope.arena.used);
    guard_unlock(&engine->lock);
    return job->holds_place;
}

/* ---- Threads beyond the workers ----
 *
 * The first is for quick tools. The others begin as the watcher and become workers. Each ends when
 * it has had nothing to do for a while; its place in the list is joined when it is used again, or
 * at the end. */

static uint32_t runners_max(const struct engine *engine)
{
    return 1 + places_when_brisk(engine) - engine->options.workers;
}

bool runners_init(struct engine *engine)
{
    engine->work.runners = heap_new(engine->heap, sizeof *engine->work.runners * runners_max(engine));
    return engine->work.runners != NULL;
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
    if (engine->work.watcher || engine->stopping || engine->env->is_simulated)
        return;
    for (uint32_t i = 1; i < runners_max(engine) && !engine->work.watcher; i++)
        if (engine->work.runners[i].state != RUNNER_ALIVE) {
            engine->work.watcher = &engine->work.runners[i];
            begin_runner(engine, engine->work.watcher);
            if (engine->work.runners[i].state != RUNNER_ALIVE)
                engine->work.watcher = NULL;
            return;
        }
}

void runners_join(struct engine *engine)
{
    for (uint32_t i = 0; i < runners_max(engine); i++) {
        bool was_begun;

        guard_lock(&engine->lock); /* it may be about to note its end */
        was_begun = engine->work.runners[i].state != RUNNER_NONE;
        guard_unlock(&engine->lock);
        if (was_begun)
            pthread_join(engine->work.runners[i].thread, NULL);
    }
}

/* ---- Jobs ---- */

static void put_last(struct job_list *list, struct job *job)
{
    job->next = NULL;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
    list->count++;
}

static struct job *take_first(struct job_list *list)
{
    struct job *job = list->first;

    if (!job)
        return NULL;
    list->first = job->next;
    if (!list->first)
        list->last = NULL;
    list->count--;
    return job;
}

void runner_add(struct engine *engine, struct job *job)
{
    const struct head *head = heads_find(&engine->writer.heads, job->instance);

    ASSERT_LOCKED(engine);
    if (!job->call.is_timed) /* its own timer watches over it else */
        lease_add(engine, &(struct lease){ .instance = job->instance,
                                           .ordinal = job->ordinal,
                                           .length_ms = job->call.timeout_ms });
    job->is_held = head && (head->flags & HEAD_PAUSED); /* by the commit that started it */
    job->is_quick = is_quick(job->call.tool);
    job->queued_at_ms = engine->env->tick_ms(engine->env);
    put_last(job->is_quick ? &engine->work.quick : &engine->work.jobs, job);
    if (!engine->work.runners || engine->stopping)
        return; /* the host runs it; or no thread does any more */
    if (engine->work.quick.count + engine->work.jobs.count <= engine->work.idle_runners)
        pthread_cond_signal(&engine->work.tools);
    else if (job->is_quick)
        begin_runner(engine, &engine->work.runners[0]);
    else
        begin_watcher(engine);
}

static bool answer(struct engine *engine, const struct job *job, const struct tool_result *result)
{
    struct event event = {
        .kind = result->failed ? EVENT_STEP_FAILED : EVENT_STEP_DONE,
        .ordinal = job->ordinal,
        .is_leased = true,
        .no_retry = result->is_final || (result->is_late && job->call.is_once),
    };
    struct mail *mail = mail_to(engine, job->instance, &event);

    if (!mail) {
        engine_log(engine, PAWL_LOG_ERROR, "step.unanswered",
                   "no memory to record a tool's answer; its timeout will");
        return false;
    }
    mail->event.payload = arena_str(&mail->own.arena, result->json);
    mail->may_ride = true;
    runners_count(engine, &mail->bytes, mail->own.arena.used);
    if (mail->event.payload.data)
        return mail_send(engine, mail);
    mail_free(engine, mail);
    return false;
}

/* Nothing of it is left, so that the same attempt may be started again. */
static bool give_back(struct engine *engine, const struct job *job)
{
    struct event event = { .kind = EVENT_STEP_RETURNED,
                           .ordinal = job->ordinal,
                           .is_leased = true,
                           .actor = STR("pawl/server"),
                           .reason = STR("paused while it ran") };
    struct mail *mail = mail_to(engine, job->instance, &event);

    if (mail)
        mail->may_ride = true;
    return mail_send(engine, mail);
}

/* False: the watch over the step stays, and ends it. */
static bool tell(struct engine *engine, const struct job *job, const struct tool_result *result)
{
    if (job->is_over)
        return true;
    if (job->is_held && result->is_cut)
        return give_back(engine, job);
    /* What was killed because we stop has not failed: the next owner finds it lost. */
    if (engine->stopping && result->failed)
        return false;
    return answer(engine, job, result);
}

/* Call the tool. */
static void call_tool(struct engine *engine, struct job *job, struct tool_result *result)
{
    char key[WORK_KEY_SIZE];
    pawl_tool_call call = { .instance_id = job->id,
                            .idempotency_key = key,
                            .created_by = job->creator,
                            .traceparent = job->trace,
                            .attempt = job->call.attempt };
    uint32_t death;

    ASSERT_UNLOCKED(engine);
    engine_id_of(engine, &job->scope, job->instance, job->id);
    work_key(&job->call, job->id, key);
    call.tool = arena_text(&job->scope.arena, job->call.tool);
    call.args = arena_text(&job->scope.arena, job->call.args);
    call.step = arena_text(&job->scope.arena, job->call.step);
    engine->env->reached(engine->env, POINT_BEFORE_TOOL);
    deaths_begin_call(engine, job, &death);
    if (call.tool && call.args && call.step)
        toolbox_run(engine->toolbox, &call,
                    job->call.timeout_ms ? job->call.timeout_ms + TOOL_GRACE_MS : 0, &job->stop,
                    &job->scope, result);
    deaths_end(engine, &death);
    engine->env->reached(engine->env, POINT_AFTER_TOOL);
}

/* A thread may be put aside in the middle of a tool that takes no time: one that seems slow halves
 * the count. */
static void note_pace(struct engine *engine, int64_t took_ms)
{
    ASSERT_LOCKED(engine);
    if (took_ms > BRISK_MS)
        engine->work.brisk_jobs /= 2;
    else if (engine->work.brisk_jobs < 2 * BRISK_STREAK)
        engine->work.brisk_jobs++;
}

/* Run a job to its end. The lock is released meanwhile. */
static void run_job(struct engine *engine, struct job *job)
{
    struct tool_result result = { .failed = true, .json = STR("\"no-memory\"") };
    int64_t begun_ms = engine->env->tick_ms(engine->env);
    struct job **link = &engine->work.running;
    bool may_begin = !job->is_held;

    ASSERT_LOCKED(engine);
    job->next = engine->work.running;
    engine->work.running = job;
    guard_unlock(&engine->lock);
    if (may_begin)
        call_tool(engine, job, &result);
    else
        result.is_cut = true;
    guard_lock(&engine->lock);
    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    engine->work.jobs_under_way -= job->holds_place;
    note_pace(engine, engine->env->tick_ms(engine->env) - begun_ms);
    if (tell(engine, job, &result) && !job->call.is_timed)
        lease_drop(engine, job->instance, job->ordinal);
    job_free(engine, job);
    engine_changed(engine);
}

/* ---- Withdrawing ---- */

static bool is_of(const struct job *job, const struct live_change *change)
{
    return job->instance == change->instance &&
           (change->kind == LIVE_CLEAR ||
            (change->kind == LIVE_STEP_DELETE && job->ordinal == change->ordinal));
}

/* What no thread has taken yet. */
static void drop_queued(struct engine *engine, struct job_list *list,
                        const struct live_change *change)
{
    struct job_list kept = { 0 };
    struct job *job;

    while ((job = take_first(list))) {
        if (!is_of(job, change)) {
            put_last(&kept, job);
            continue;
        }
        lease_drop(engine, job->instance, job->ordinal);
        job->next = NULL;
        steps_drop(engine, job);
    }
    *list = kept;
}

/* What has not begun is given back by the thread that takes it: here a commit is under way. */
static void hold(struct engine *engine, uint64_t instance)
{
    for (struct job *job = engine->work.quick.first; job; job = job->next)
        job->is_held = job->is_held || job->instance == instance;
    for (struct job *job = engine->work.jobs.first; job; job = job->next)
        job->is_held = job->is_held || job->instance == instance;
    for (struct job *job = engine->work.running; job; job = job->next)
        if (job->instance == instance && job->call.is_idempotent) {
            job->is_held = true;
            toolbox_stop(engine->toolbox, &job->stop);
        }
}

void runners_withdraw(struct engine *engine, const struct batch *batch)
{
    ASSERT_LOCKED(engine);
    if (!engine->work.running && !engine->work.jobs.first && !engine->work.quick.first)
        return;
    for (uint32_t i = 0; i < batch->live_count; i++) {
        const struct live_change *change = &batch->live[i];

        if (change->kind == LIVE_PAUSE_PUT && change->pause.ends_runs)
            hold(engine, change->instance);
        if (change->kind != LIVE_CLEAR && change->kind != LIVE_STEP_DELETE)
            continue;
        drop_queued(engine, &engine->work.quick, change);
        drop_queued(engine, &engine->work.jobs, change);
        for (struct job *job = engine->work.running; job; job = job->next)
            if (is_of(job, change)) {
                job->is_over = true;
                toolbox_stop(engine->toolbox, &job->stop);
            }
    }
}

void runners_fini(struct engine *engine)
{
    guard_lock(&engine->lock);
    steps_drop(engine, engine->work.quick.first);
    steps_drop(engine, engine->work.jobs.first);
    guard_unlock(&engine->lock);
    heap_free(engine->heap, engine->work.runners,
              sizeof *engine->work.runners * runners_max(engine));
}

/* ---- Working ---- */

bool runner_run_one(struct engine *engine)
{
    struct job *job = take_first(&engine->work.quick);

    ASSERT_LOCKED(engine);
    if (!job)
        job = take_first(&engine->work.jobs);
    if (job) {
        run_job(engine, job);
        return true;
    }
    if (steps_can_start(engine) && engine->work.jobs_under_way < places(engine) &&
        runners_have_room(engine)) {
        steps_start_ready(engine);
        return true;
    }
    return false;
}

void *runner_thread(void *context)
{
    struct engine *engine = context;

    panic_set(engine->options.panic);
    guard_lock(&engine->lock);
    while (!engine->stopping) {
        if (runner_run_one(engine))
            continue;
        engine->work.idle_runners++;
        guard_wait(&engine->lock, &engine->work.tools);
        engine->work.idle_runners--;
    }
    guard_unlock(&engine->lock);
    return NULL;
}

static bool run_quick(struct engine *engine)
{
    struct job *job = take_first(&engine->work.quick);

    if (job)
        run_job(engine, job);
    return job != NULL;
}

/* Wait for work; false: there was none for a while. */
static bool wait_for_work(struct engine *engine, bool is_for_quick)
{
    int64_t until_ms = engine->env->tick_ms(engine->env) + RUNNER_IDLE_MS;
    pthread_cond_t *condition = is_for_quick ? &engine->changed : &engine->work.tools;

    engine->work.idle_runners += !is_for_quick;
    if (engine->env->is_simulated)
        guard_wait(&engine->lock, condition);
    else
        engine_wait_for(engine, condition, RUNNER_IDLE_MS);
    engine->work.idle_runners -= !is_for_quick;
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
        engine_wait_for(engine, &engine->work.late, LATE_MS);
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
        if (is_for_quick ? run_quick(engine) : runner_run_one(engine)) {
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
    if (runner == engine->work.watcher) {
        has_work = watch(engine);
        engine->work.watcher = NULL;
        if (has_work && engine->work.jobs.count > 1)
            begin_watcher(engine);
    }
    if (has_work)
        work(engine, runner == &engine->work.runners[0]);
    runner->state = RUNNER_ENDED;
    guard_unlock(&engine->lock);
    return NULL;
}
