/* runners.c - tools are run, and the end of what is over. The threads are the shell's.
 *
 * A step's timeout runs from its start, and a cancel must reach what has begun. So a step is
 * started only if a thread takes it: there are as many places as workers, and each worker is a
 * thread. While tools take next to no time the commits between them do: then more steps are
 * started, so that they share commits (shell/tool_threads.c).
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

uint32_t runners_places(const struct engine *engine)
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
        return runners_places(engine);
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

/* Where it can be called with others; is another one of the same known? */
static const void *place_of(struct engine *engine, const struct job *job)
{
    const struct job *last = engine->work.jobs.last;

    if (job->call.is_timed || job->is_alone)
        return NULL;
    if (last && last->place && !job->creator && !last->creator &&
        str_eq(last->call.tool, job->call.tool))
        return last->place;
    return toolbox_place(engine->toolbox, job->call.tool, str_of(job->creator));
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
    job->place = job->is_quick ? NULL : place_of(engine, job);
    put_last(job->is_quick ? &engine->work.quick : &engine->work.jobs, job);
    if (!job->place || engine->work.parties < PARTIES_MAX) /* else who ends a party looks */
        shell_job(engine, job->is_quick);
}

/* NULL: no memory. */
static struct mail *make_answer(struct engine *engine, const struct job *job,
                                const struct tool_result *result)
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
        return NULL;
    }
    mail->event.payload = arena_str(&mail->own.arena, result->json);
    mail->may_ride = true;
    runners_count(engine, &mail->bytes, mail->own.arena.used);
    if (mail->event.payload.data)
        return mail;
    mail_free(engine, mail);
    return NULL;
}

static bool answer(struct engine *engine, const struct job *job, const struct tool_result *result)
{
    struct mail *mail = make_answer(engine, job, result);

    return mail && mail_send(engine, mail);
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

/* False: no memory. */
static bool prepare_call(struct engine *engine, struct job *job, char key[WORK_KEY_SIZE],
                         pawl_tool_call *call)
{
    engine_id_of(engine, &job->scope, job->instance, job->id);
    work_key(&job->call, job->id, key);
    *call = (pawl_tool_call){ .instance_id = job->id,
                              .idempotency_key = key,
                              .created_by = job->creator,
                              .traceparent = job->trace,
                              .attempt = job->call.attempt,
                              .tool = arena_text(&job->scope.arena, job->call.tool),
                              .args = arena_text(&job->scope.arena, job->call.args),
                              .step = arena_text(&job->scope.arena, job->call.step) };
    return call->tool && call->args && call->step;
}

/* Call the tool. */
static void call_tool(struct engine *engine, struct job *job, struct tool_result *result)
{
    char key[WORK_KEY_SIZE];
    pawl_tool_call call;
    uint32_t death;
    bool is_whole;

    ASSERT_UNLOCKED(engine);
    is_whole = prepare_call(engine, job, key, &call);
    engine->env->reached(engine->env, POINT_BEFORE_TOOL);
    deaths_begin_call(engine, job, &death);
    if (is_whole)
        toolbox_run(engine->toolbox, &call,
                    job->call.timeout_ms ? job->call.timeout_ms + TOOL_GRACE_MS : 0, &job->stop,
                    &job->scope, result);
    deaths_end(engine, &death);
    engine->env->reached(engine->env, POINT_AFTER_TOOL);
}

/* Where a commit takes milliseconds, in a database elsewhere, so may a tool beside it. */
static int64_t brisk_ms(const struct engine *engine)
{
    int64_t commit_ms = writer_commit_ms(engine);

    return commit_ms < BRISK_MS ? BRISK_MS : commit_ms < BRISK_MS_MOST ? commit_ms : BRISK_MS_MOST;
}

/* A thread may be put aside in the middle of a tool that takes no time: one that seems slow halves
 * the count. */
static void note_pace(struct engine *engine, int64_t took_ms)
{
    ASSERT_LOCKED(engine);
    if (took_ms > brisk_ms(engine))
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
    shell_changed(engine);
}

/* ---- Several together ---- */

struct party {
    struct job *jobs[PARTY_MAX];
    struct scope *scopes[PARTY_MAX];
    struct tool_item items[PARTY_MAX];
    pawl_tool_call calls[PARTY_MAX];
    char keys[PARTY_MAX][WORK_KEY_SIZE];
    struct tool_result results[PARTY_MAX];
    uint32_t deaths[PARTY_MAX], count;
};

static bool may_join(const struct job *job, const void *place)
{
    return job && job->place == place && !job->is_held;
}

static void join(struct engine *engine, struct party *party, struct job *job)
{
    uint32_t i = party->count++;

    party->jobs[i] = job;
    party->scopes[i] = &job->scope;
    party->results[i] = (struct tool_result){ .failed = true, .json = STR("\"no-memory\"") };
    job->next = engine->work.running;
    engine->work.running = job;
}

static void call_party(struct engine *engine, struct party *party)
{
    uint32_t count = 0;

    ASSERT_UNLOCKED(engine);
    engine->env->reached(engine->env, POINT_BEFORE_TOOL);
    for (uint32_t i = 0; i < party->count; i++) {
        struct job *job = party->jobs[i];

        if (!prepare_call(engine, job, party->keys[i], &party->calls[i]))
            break; /* no memory for this one, nor for what follows */
        deaths_begin_call(engine, job, &party->deaths[i]);
        party->items[i] = (struct tool_item){
            .call = &party->calls[i],
            .type = job->call.type.data ? arena_text(&job->scope.arena, job->call.type) : NULL,
            .number = job->call.number,
            .mark = job->call.mark,
            .at_ms = engine_now_ms(engine)
        };
        count++;
    }
    if (count > 0)
        toolbox_run_party(engine->toolbox, party->items, count, party->scopes, party->results);
    for (uint32_t i = 0; i < count; i++)
        deaths_end(engine, &party->deaths[i]);
    engine->env->reached(engine->env, POINT_AFTER_TOOL);
}

static void leave_running(struct engine *engine, struct job *job)
{
    struct job **link = &engine->work.running;

    ASSERT_LOCKED(engine);
    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    engine->work.jobs_under_way -= job->holds_place;
}

/* Their answers share commits. An ordinary answer, of which nothing else has to be said. */
static struct mail *usual_answer(struct engine *engine, const struct job *job,
                                 const struct tool_result *result)
{
    return job->is_over || (engine->stopping && result->failed) ? NULL
                                                                : make_answer(engine, job, result);
}

static void end_party(struct engine *engine, struct party *party)
{
    struct mail *mails[PARTY_MAX];
    uint32_t count = 0;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < party->count; i++) {
        struct job *job = party->jobs[i];
        struct mail *mail;

        leave_running(engine, job);
        mail = usual_answer(engine, job, &party->results[i]);
        if (mail)
            mails[count++] = mail;
        if ((mail || job->is_over) && !job->call.is_timed)
            lease_drop(engine, job->instance, job->ordinal);
        job_free(engine, job);
    }
    mail_send_all(engine, mails, count);
}

/* Run what waits for the same place, to its end. The lock is released meanwhile. */
static bool run_party(struct engine *engine)
{
    const void *place = engine->work.jobs.first->place;
    struct party *party = heap_new(engine->heap, sizeof *party);
    int64_t begun_ms = engine->env->tick_ms(engine->env), took_ms;

    ASSERT_LOCKED(engine);
    if (!party)
        return false;
    party->count = 0;
    do
        join(engine, party, take_first(&engine->work.jobs));
    while (party->count < PARTY_MAX && may_join(engine->work.jobs.first, place));
    engine->work.parties++;
    guard_unlock(&engine->lock);
    call_party(engine, party);
    guard_lock(&engine->lock);
    took_ms = (engine->env->tick_ms(engine->env) - begun_ms) / party->count;
    for (uint32_t i = 0; i < party->count; i++)
        note_pace(engine, took_ms);
    end_party(engine, party);
    engine->work.parties--;
    heap_free(engine->heap, party, sizeof *party);
    shell_changed(engine);
    return true;
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

void runners_forget(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    steps_drop(engine, engine->work.quick.first);
    steps_drop(engine, engine->work.jobs.first);
    engine->work.quick = engine->work.jobs = (struct job_list){ 0 };
}

void runners_fini(struct engine *engine)
{
    guard_lock(&engine->lock);
    runners_forget(engine);
    guard_unlock(&engine->lock);
}

/* ---- Working ---- */

bool runner_run_quick(struct engine *engine)
{
    struct job *job = take_first(&engine->work.quick);

    ASSERT_LOCKED(engine);
    if (job)
        run_job(engine, job);
    return job != NULL;
}

static bool may_begin_party(const struct engine *engine)
{
    const struct job *first = engine->work.jobs.first;

    return engine->work.parties < PARTIES_MAX && first && first->place &&
           may_join(first, first->place);
}

/* What has a place waits for it while as many parties are under way as there may be. */
static struct job *take_next(struct engine *engine)
{
    struct job_list *list = &engine->work.jobs;
    struct job *before = NULL, *job = list->first;

    if (engine->work.parties < PARTIES_MAX)
        return take_first(list);
    while (job && job->place && !job->is_held) {
        before = job;
        job = job->next;
    }
    if (!job || !before)
        return job ? take_first(list) : NULL;
    before->next = job->next;
    if (list->last == job)
        list->last = before;
    list->count--;
    return job;
}

bool runner_run_one(struct engine *engine)
{
    struct job *job;

    if (runner_run_quick(engine))
        return true;
    if (may_begin_party(engine) && run_party(engine))
        return true;
    job = take_next(engine);
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
