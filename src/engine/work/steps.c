/* steps.c - ready steps are started when a thread, or a worker elsewhere, is there to run them.
 *
 * Only an owner runs tools: what runs inside it dies with it, and the next owner knows that
 * such attempts are lost. Starting is a recorded event like any other; where it can it rides
 * in the commit that made the step ready. runners.c runs what was started. */
#include "engine/parts.h"
#include <stdio.h>

void job_free(struct engine *engine, struct job *job)
{
    deaths_leave(engine, job);
    runners_count(engine, &job->bytes, 0);
    scope_fini(&job->scope);
    heap_free(engine->heap, job, sizeof *job);
}

static pawl_status job_new(struct engine *engine, struct actor *actor, uint32_t ordinal,
                           struct scope *scope, struct job **out)
{
    struct job *job = heap_new(engine->heap, sizeof *job);
    pawl_status status;

    TRY_MEMORY(scope, job);
    scope_init(&job->scope, engine->heap, LIMIT_SCOPE);
    arena_init_small(&job->scope.arena, engine->heap, LIMIT_SCOPE); /* most need less than that */
    job->ordinal = ordinal;
    job->creator = arena_text(&job->scope.arena, actor->creator);
    job->trace = arena_text(&job->scope.arena, actor->trace);
    status = work_call(actor->definition, actor->memory, ordinal, &job->scope, &job->call);
    if (status) {
        scope->error = job->scope.error;
        job_free(engine, job);
        return status;
    }
    *out = job;
    return PAWL_OK;
}

/* Its arguments cannot be made: they are too large, or an expression has failed. */
static bool is_unmakable(pawl_status status)
{
    return status == PAWL_TOO_LARGE || status == PAWL_INVALID_REQUEST;
}

/* Why its arguments cannot be made, as a JSON string. */
static str why_unmakable(struct actor *actor, uint32_t ordinal, struct scope *scope)
{
    struct scope scratch;
    struct flow_call call;
    struct buf quoted;
    pawl_status status;

    scope_init(&scratch, scope->arena.heap, LIMIT_SCOPE);
    status = work_call(actor->definition, actor->memory, ordinal, &scratch, &call);
    buf_init(&quoted, scope->arena.heap, 0);
    json_text(&quoted, status == PAWL_INVALID_REQUEST ? scratch.error.message
                                                      : "too-large: the arguments after templates");
    scope_fini(&scratch);
    return buf_take(&quoted, &scope->arena);
}

/* Arguments that cannot be made: the step fails for good, as if its tool had refused. */
pawl_status steps_fail_started(struct actor *actor, struct scope *scope, const struct event *start,
                                struct decision *decision)
{
    struct event failed = { .kind = EVENT_STEP_FAILED,
                            .at_ms = start->at_ms,
                            .ordinal = start->ordinal,
                            .no_retry = true,
                            .is_leased = true,
                            .payload = why_unmakable(actor, start->ordinal, scope) };

    TRY_MEMORY(scope, failed.payload.data);
    return actor_step(actor, &failed, scope, decision);
}

/* A step whose tool is pure need not be recorded before it is run: start and end are one decision,
 * and so is what follows. Not in a creation, whose answer is that the flow runs; and not without
 * end, for a loop has to be seen, paused and cancelled too. */
static bool may_end_at_once(const struct event *cause, const struct decision *decision,
                            const struct scope *scope, str tool)
{
    return toolbox_is_pure(tool) && cause->kind != EVENT_START &&
           decision->count < CHAIN_DRAFTS && scope->arena.used < CHAIN_BYTES;
}

static pawl_status end_at_once(struct engine *engine, struct actor *actor, struct scope *scope,
                               const struct event *start, struct job *job,
                               struct decision *decision)
{
    struct tool_result result = { 0 };
    pawl_tool_call call = { .tool = arena_text(&job->scope.arena, job->call.tool),
                            .args = arena_text(&job->scope.arena, job->call.args),
                            .step = arena_text(&job->scope.arena, job->call.step),
                            .created_by = job->creator,
                            .attempt = job->call.attempt };
    struct event end = { .at_ms = start->at_ms, .ordinal = start->ordinal, .is_leased = true };

    TRY(actor_step(actor, start, scope, decision));
    if (job->scope.arena.failed)
        return scope_no_memory(scope);
    TRY(toolbox_run(engine->toolbox, &call, 0, NULL, &job->scope, &result));
    end.kind = result.failed ? EVENT_STEP_FAILED : EVENT_STEP_DONE;
    end.no_retry = result.is_final;
    end.payload = arena_str(&scope->arena, result.json);
    return end.payload.data ? actor_step(actor, &end, scope, decision) : scope_no_memory(scope);
}

/* Who runs it: this process, if its tool is here and there is a place, or a worker that waits for
 * it already. */
static bool find_runner(struct engine *engine, const struct actor *actor, struct job *job)
{
    if (!toolbox_serves(engine->toolbox, job->call.tool, actor->creator)) {
        job->claim = waiting_reserve(engine, &job->call, job->ordinal);
        return job->claim != NULL;
    }
    if (deaths_ask(engine, actor, job) != DEATHS_FEW) /* its own event says why */
        return false;
    return runner_reserve(engine, job);
}

static void drop_job(struct engine *engine, struct job *job)
{
    guard_lock(&engine->lock);
    steps_drop(engine, job);
    guard_unlock(&engine->lock);
}

/* Start one ready attempt on top of the decision, if there is a runner and then a place for it: one
 * without a runner takes no place from others. */
static pawl_status start_one(struct engine *engine, struct actor *actor, struct scope *scope,
                             const struct event *cause, uint32_t ordinal, struct decision *decision,
                             struct job **jobs)
{
    struct event start = { .kind = EVENT_STEP_START, .at_ms = cause->at_ms, .ordinal = ordinal };
    struct job *job = NULL;
    struct quota_set quotas;
    bool may_take;
    pawl_status status = job_new(engine, actor, ordinal, scope, &job);

    if (status == PAWL_NOT_AWAITING) /* it asks what it is called, and is being made: later */
        return PAWL_OK;
    if (is_unmakable(status)) {
        scope->error = (pawl_error){ .status = PAWL_OK };
        TRY(actor_step(actor, &start, scope, decision));
        return steps_fail_started(actor, scope, &start, decision);
    }
    TRY(status);
    status = quotas_of_next(engine, actor, job, scope, &quotas, &may_take);
    if (!status && may_take && quotas.count == 0 &&
        may_end_at_once(cause, decision, scope, job->call.tool)) {
        status = end_at_once(engine, actor, scope, &start, job, decision);
        job_free(engine, job);
        return status;
    }
    if (status || !may_take || !find_runner(engine, actor, job)) {
        job_free(engine, job);
        return status;
    }
    if (!quotas_admit_next(engine, actor, ordinal, &quotas)) {
        drop_job(engine, job);
        return PAWL_OK;
    }
    job->next = *jobs;
    *jobs = job; /* dropped with the others if the decision fails */
    if (job->claim)
        start.actor = job->claim->worker;
    status = actor_step(actor, &start, scope, decision);
    if (!status && job->claim)
        claim_tell(job->claim, decision, decision->count - 1);
    return status;
}

pawl_status steps_chain(struct engine *engine, struct actor *actor, struct scope *scope,
                        const struct event *event, struct decision *decision, uint32_t *seen,
                        struct job **jobs)
{
    if (!engine->options.own || actor->is_paused || decision->hold.data)
        return PAWL_OK;
    for (uint32_t d; (d = *seen) < decision->count; ++*seen)
        for (uint32_t e = 0; e < decision->drafts[d].effects.count; e++)
            if (effect_makes_ready(&decision->drafts[d].effects.items[e]) &&
                actor->seq < engine->options.max_entries &&
                actor->definition->states[actor->state].terminal == TERMINAL_NOT)
                TRY(start_one(engine, actor, scope, event,
                              decision->drafts[d].effects.items[e].ordinal, decision, jobs));
    return PAWL_OK;
}

/* Jobs whose commit did not happen, or that were only vehicles. */
void steps_drop(struct engine *engine, struct job *jobs)
{
    ASSERT_LOCKED(engine);
    while (jobs) {
        struct job *next = jobs->next;

        engine->work.jobs_under_way -= jobs->holds_place;
        if (jobs->claim && !jobs->claim->ready)
            waiting_settle(engine, jobs->claim, false);
        job_free(engine, jobs);
        jobs = next;
    }
}

static bool is_started(const struct decision *decision, uint32_t ordinal)
{
    for (uint32_t i = 0; i < decision->count; i++)
        if (decision->drafts[i].transition == LIFE_T_STEP_START &&
            decision->drafts[i].ordinal == ordinal)
            return true;
    return false;
}

bool steps_add_ready(struct engine *engine, uint64_t instance, uint32_t ordinal, uint64_t since,
                     int32_t priority)
{
    struct ready_step *ready = ready_new(engine, instance, ordinal, since, priority);

    ASSERT_LOCKED(engine);
    if (ready)
        ready_put(&engine->work.ready, ready);
    return ready != NULL;
}

/* It could not be started: its row is in the store, and is found again when the store, or memory,
 * has had a rest. Trying at once would fail at once, without end. */
void steps_lose_ready(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    engine->work.ready_look_ms = engine->env->tick_ms(engine->env) + RETRY_STORE_MS;
    engine->work.ready_lost = true;
}

static bool may_look(const struct engine *engine)
{
    return engine->env->tick_ms(engine->env) >= engine->work.ready_look_ms;
}

bool steps_are_lost(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->work.ready_lost && may_look(engine);
}

bool steps_can_start(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->work.ready && (!engine->work.ready_lost || may_look(engine));
}

/* In this process if its tool is here, else for the worker that claims it. */
bool steps_wait_again(struct engine *engine, str tool, str creator, uint64_t instance,
                      uint32_t ordinal, uint64_t since, int32_t priority)
{
    ASSERT_LOCKED(engine);
    return toolbox_serves(engine->toolbox, tool, creator)
               ? steps_add_ready(engine, instance, ordinal, since, priority)
               : claims_add(engine, tool, instance, ordinal, since, priority);
}

static bool note_one(struct engine *engine, const struct actor *actor, uint32_t ordinal,
                     uint64_t since)
{
    str tool = work_tool_of(actor->definition, actor->memory, ordinal);

    return !tool.data || /* over already */
           steps_wait_again(engine, tool, actor->creator, actor->instance, ordinal, since,
                            quotas_priority(engine, actor, ordinal));
}

/* Ready steps that found no place: remembered until there is one. */
void steps_note_ready(struct engine *engine, const struct actor *actor,
                      const struct decision *decision)
{
    ASSERT_LOCKED(engine);
    if (!engine->options.own)
        return;
    for (uint32_t d = 0; d < decision->count; d++)
        for (uint32_t e = 0; e < decision->drafts[d].effects.count; e++) {
            const struct effect *effect = &decision->drafts[d].effects.items[e];

            if (effect_makes_ready(effect) && !is_started(decision, effect->ordinal) &&
                !note_one(engine, actor, effect->ordinal, engine->writer.tip.pos))
                engine->work.ready_lost = true; /* found again by recover_steps() */
        }
}

/* The first that was started first: a decision puts each job before those it started earlier. */
static struct job *in_order(struct job *jobs)
{
    struct job *first = NULL;

    while (jobs) {
        struct job *next = jobs->next;

        jobs->next = first;
        first = jobs;
        jobs = next;
    }
    return first;
}

/* The commit is durable: take the jobs to their tools, or to who waits for them. */
void steps_act(struct engine *engine, uint64_t instance, struct job *jobs)
{
    ASSERT_LOCKED(engine);
    jobs = in_order(jobs);
    while (jobs) {
        struct claimed *claim = jobs->claim;
        struct job *next = jobs->next;

        jobs->instance = instance;
        jobs->next = NULL;
        jobs->claim = NULL;
        if (claim)
            claim_hand_out(engine, instance, claim, jobs);
        else
            runner_add(engine, jobs);
        if (claim && !claim->ready)
            waiting_settle(engine, claim, true);
        jobs = next;
    }
    shell_changed(engine);
    engine_set_wakeup(engine);
}

/* Can the claim that took it from its queue still run it? An amend may have changed its tool. */
static pawl_status check_served(struct engine *engine, const struct actor *actor,
                                struct claimed *claim, const struct flow_call *call,
                                struct scope *scope)
{
    if (claim ? waiting_serves(claim, call->tool)
              : toolbox_serves(engine->toolbox, call->tool, actor->creator))
        return claim ? waiting_charge(engine, scope, claim, call->args.size) : PAWL_OK;
    return scope_fail(scope, PAWL_NOT_AWAITING,
                      "step '%.*s' waits for a tool '%.*s', which is not here",
                      STR_ARG(call->step), STR_ARG(call->tool));
}

/* Where it waited before its start was sent. */
static uint32_t queue_of(const struct mail *mail)
{
    return mail->claim && mail->claim->ready ? mail->claim->ready->queue : QUOTA_HERE;
}

pawl_status steps_prepare(struct engine *engine, struct actor *actor, const struct mail *mail,
                          struct scope *scope, struct job **jobs, struct job **out)
{
    enum death_verdict verdict = DEATHS_FEW;
    struct job *job = NULL;
    pawl_status status;

    if (!mail->claim && !runners_have_room(engine)) /* it stays ready */
        return scope_fail(scope, PAWL_NOT_AWAITING, "too much is under way to start another step");
    status = job_new(engine, actor, mail->event.ordinal, scope, &job);
    if (status == PAWL_NO_MEMORY)
        return status;
    if (status) { /* over, or too large: deciding says so */
        scope->error = (pawl_error){ .status = PAWL_OK };
        return PAWL_OK;
    }
    status = check_served(engine, actor, mail->claim, &job->call, scope);
    if (!status && !mail->claim)
        verdict = deaths_ask(engine, actor, job);
    if (verdict != DEATHS_FEW)
        status = deaths_refuse(engine, actor, &job->call, verdict, scope);
    if (!status)
        status = quotas_admit(engine, actor, job,
                              &(struct quota_step){ .instance = actor->instance,
                                                    .ordinal = mail->event.ordinal,
                                                    .may_wait = true,
                                                    .queue = queue_of(mail),
                                                    .since = mail->ready_since },
                              scope);
    if (status) {
        job_free(engine, job);
        return status;
    }
    if (!mail->claim)
        runners_count(engine, &job->bytes, job->scope.arena.used);
    job->next = *jobs;
    *jobs = *out = job;
    return PAWL_OK;
}

/* The place that the mail was sent with is the job's from now on. */
void steps_hand_over(struct mail *mail, struct job *job, const struct decision *decision,
                     uint32_t from)
{
    if (mail->claim)
        claim_tell(mail->claim, decision, from);
    if (!job)
        return; /* it was too large */
    job->claim = mail->claim;
    job->holds_place = mail->holds_place;
    mail->holds_place = false;
}

/* A ready step whose tool is not here: a worker may claim it, or the tool may be registered. */
void steps_leave_unserved(struct engine *engine, const struct actor *actor, const struct mail *mail)
{
    ASSERT_LOCKED(engine);
    if (!note_one(engine, actor, mail->event.ordinal, mail->ready_since))
        engine->work.ready_lost = true;
}

void engine_tools_changed(struct engine *engine)
{
    guard_lock(&engine->lock);
    claims_release(engine);
    shell_changed(engine);
    engine_set_wakeup(engine);
    guard_unlock(&engine->lock);
}

/* Start a step that found no place when it became ready. */
void steps_start_ready(struct engine *engine)
{
    struct ready_step *ready = ready_take(&engine->work.ready);
    struct event event = { .kind = EVENT_STEP_START, .ordinal = ready->ordinal };
    struct mail *mail = mail_to(engine, ready->instance, &event);

    ASSERT_LOCKED(engine);
    if (mail) {
        mail->ready_since = ready->since;
        mail->holds_place = mail->may_ride = true;
    }
    (void)leases_make_room(engine, 1); /* without it the start says so in its place */
    engine->work.jobs_under_way++;
    if (!mail_send(engine, mail)) {
        engine->work.jobs_under_way--;
        steps_lose_ready(engine);
    }
    heap_free(engine->heap, ready, sizeof *ready);
}

void steps_forget_ready(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    ready_free(engine, &engine->work.ready);
    claims_forget(engine);
}

void steps_forget_all(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    runners_forget(engine);
    steps_forget_ready(engine);
    leases_forget(engine);
    quotas_forget(engine);
    engine->work.ready_lost = engine->work.claims_ended = false;
    engine->work.jobs_under_way = 0;
}

void steps_fini(struct engine *engine)
{
    runners_fini(engine);
    ready_free(engine, &engine->work.ready);
    claims_fini(engine);
    leases_fini(engine);
    quotas_fini(engine);
}
