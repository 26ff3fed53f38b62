/* claims.c - ready steps for workers elsewhere: the oldest first.
 *
 * A step whose tool is not in this process, and that no claim was waiting for (waiting_claims.c),
 * waits in its tool's queue. A claim takes the oldest steps of its tools and starts them as any
 * other start: an event, an entry, a commit. The entry and the step's row hold the token's hash.
 *
 * A lease that is not delivered would cost an attempt. So a step is started only if the answer has
 * room for its arguments and the client is still there; else it returns to its place in the queue.
 * What the answer needs of a started step is in its job, so that no memory of the request is asked
 * for after the commit. */
#include "engine/parts.h"
#include "model/words.h"
#include <stdio.h>

/* So many turns of workers may go before a step that waits: theirs cost no commit of their own, but
 * a flow that goes round would hold the others up for ever (B32). */
#define TURNS_AHEAD 8u

/* ---- Queues by tool ---- */

static struct tool_queue *find_queue(const struct engine *engine, str tool)
{
    for (uint32_t i = 0; i < engine->work.queue_count; i++)
        if (str_eq(engine->work.queues[i].tool, tool))
            return &engine->work.queues[i];
    return NULL;
}

static bool claims_have(const struct engine *engine, str tool)
{
    const struct tool_queue *queue = find_queue(engine, tool);

    return queue && queue->oldest;
}

bool claims_wait(const struct engine *engine, const struct claim_args *args)
{
    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < args->tool_count; i++)
        if (claims_have(engine, args->tools[i]))
            return true;
    return false;
}

/* Queues are few, one for each tool that is not here, and stay until the end. NULL: no memory. */
static struct tool_queue *get_queue(struct engine *engine, str tool)
{
    uint32_t count = engine->work.queue_count;
    struct tool_queue *queues = find_queue(engine, tool);
    char *name;

    if (queues)
        return queues;
    name = heap_new(engine->heap, tool.size);
    queues = name ? heap_resize(engine->heap, engine->work.queues, count * sizeof *queues,
                                (count + 1) * sizeof *queues)
                  : NULL;
    if (!queues) {
        heap_free(engine->heap, name, tool.size);
        return NULL;
    }
    engine->work.queues = queues;
    memcpy(name, tool.data, tool.size);
    queues[count] = (struct tool_queue){ .tool = { name, tool.size } };
    return &queues[engine->work.queue_count++];
}

bool claims_add(struct engine *engine, str tool, uint64_t instance, uint32_t ordinal,
                uint64_t since, int32_t priority)
{
    struct tool_queue *queue = get_queue(engine, tool);
    struct ready_step *step = ready_new(engine, instance, ordinal, since, priority);

    ASSERT_LOCKED(engine);
    if (!queue || !step) {
        heap_free(engine->heap, step, sizeof *step);
        return false;
    }
    step->queue = (uint32_t)(queue - engine->work.queues);
    ready_put(&queue->oldest, step);
    if (!waiting_call(engine, tool) && engine->work.unclaimed)
        engine->work.unclaimed(engine->work.unclaimed_context);
    return true;
}

bool claims_add_to(struct engine *engine, uint32_t queue, uint64_t instance, uint32_t ordinal,
                   uint64_t since, int32_t priority)
{
    str tool = engine->work.queues[queue].tool;

    return toolbox_has(engine->toolbox, tool)
               ? steps_add_ready(engine, instance, ordinal, since, priority)
               : claims_add(engine, tool, instance, ordinal, since, priority);
}

/* The oldest step of these tools; NULL: none. */
static struct ready_step *take(struct engine *engine, const struct claim_args *args)
{
    struct tool_queue *oldest = NULL;

    for (uint32_t i = 0; i < args->tool_count; i++) {
        struct tool_queue *queue = find_queue(engine, args->tools[i]);

        if (queue && queue->oldest && (!oldest || ready_is_older(queue->oldest, oldest->oldest)))
            oldest = queue;
    }
    return oldest ? ready_take(&oldest->oldest) : NULL;
}

/* An instance's steps, out of this queue and into the list. */
static void take_of(struct tool_queue *queue, uint64_t instance, struct ready_step **list)
{
    struct ready_step *all = ready_list(&queue->oldest), *step;

    while ((step = all) != NULL) {
        all = step->next;
        step->next = NULL;
        if (step->instance != instance) {
            ready_put(&queue->oldest, step);
            continue;
        }
        step->next = *list;
        *list = step;
    }
}

/* To the queue of the tool that it has now, at its age; false: it is not for workers any more, or
 * there is no memory. */
static bool move_step(struct engine *engine, const struct actor *actor, struct ready_step *step)
{
    str tool = work_tool_of(actor->definition, actor->memory, step->ordinal);
    struct tool_queue *queue;

    if (!tool.data || toolbox_serves(engine->toolbox, tool, actor->creator))
        return false;
    queue = get_queue(engine, tool);
    if (!queue)
        return false;
    step->queue = (uint32_t)(queue - engine->work.queues);
    ready_put(&queue->oldest, step);
    waiting_call(engine, tool);
    return true;
}

void claims_amended(struct engine *engine, const struct actor *actor)
{
    struct ready_step *all = NULL, *step;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < engine->work.queue_count; i++)
        take_of(&engine->work.queues[i], actor->instance, &all);
    while ((step = all) != NULL) {
        all = step->next;
        step->next = NULL;
        if (!move_step(engine, actor, step))
            ready_put(&engine->work.ready, step); /* looked at when it starts */
    }
}

/* A tool was registered: what waited for it is run here. */
void claims_release(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < engine->work.queue_count; i++) {
        struct tool_queue *queue = &engine->work.queues[i];

        if (!queue->oldest || !toolbox_has(engine->toolbox, queue->tool))
            continue;
        ready_put(&engine->work.ready, queue->oldest);
        queue->oldest = NULL;
    }
}

/* Before all that is ready is looked up again: nothing waits twice. */
void claims_forget(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < engine->work.queue_count; i++)
        ready_free(engine, &engine->work.queues[i].oldest);
}

void claims_fini(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->work.queue_count; i++) {
        ready_free(engine, &engine->work.queues[i].oldest);
        heap_free(engine->heap, (char *)(uintptr_t)engine->work.queues[i].tool.data,
                  engine->work.queues[i].tool.size);
    }
    heap_free(engine->heap, engine->work.queues, engine->work.queue_count * sizeof *engine->work.queues);
}

/* ---- Starting what was claimed ---- */

/* The lease goes into the entry and the row that the commit writes. */
void claim_tell(const struct claimed *claim, const struct decision *decision, uint32_t from)
{
    for (uint32_t d = from; d < decision->count; d++)
        for (uint32_t e = 0; e < decision->drafts[d].effects.count; e++) {
            struct effect *effect = &decision->drafts[d].effects.items[e];

            if (effect->kind == EFFECT_RUN && effect->ordinal == claim->ordinal) {
                effect->lease = str_of(claim->lease);
                effect->lease_ms = claim->lease_ms;
            }
        }
}

/* The commit is durable: the step is the worker's. */
void claim_hand_out(struct engine *engine, uint64_t instance, struct claimed *claim,
                    struct job *job)
{
    struct lease lease = { .instance = instance,
                           .ordinal = claim->ordinal,
                           .length_ms = claim->lease_ms };

    ASSERT_LOCKED(engine);
    memcpy(lease.hash, claim->lease, sizeof lease.hash);
    (void)snprintf(lease.worker, sizeof lease.worker, "%.*s", STR_ARG(words_shown(claim->worker)));
    lease_add(engine, &lease);
    claim->instance = instance;
    claim->expires_at_ms = clock_read(engine).wall_ms + claim->lease_ms;
    claim->job = job; /* its call lives in it */
    shell_changed(engine);
}

void engine_claim_told(struct engine *engine, struct claimed *claimed, uint32_t count)
{
    guard_lock(&engine->lock);
    for (uint32_t i = 0; i < count; i++) {
        steps_drop(engine, claimed[i].job);
        claimed[i].job = NULL;
    }
    guard_unlock(&engine->lock);
}

/* Without memory it is lost as that of a worker that died. */
void engine_claim_return(struct engine *engine, const struct claimed *claimed, uint32_t count)
{
    guard_lock(&engine->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct event event = { .kind = EVENT_STEP_RETURNED,
                               .ordinal = claimed[i].ordinal,
                               .is_leased = true,
                               .actor = STR("pawl/server"),
                               .reason = STR("the answer to the claim could not be sent") };

        if (lease_is_given(engine, &claimed[i]) &&
            mail_send(engine, mail_to(engine, claimed[i].instance, &event)))
            lease_drop(engine, claimed[i].instance, claimed[i].ordinal);
    }
    engine_set_wakeup(engine);
    guard_unlock(&engine->lock);
}

/* What the answer says of it; its texts stay in the job. */
static pawl_status unpack(struct engine *engine, struct claimed *claim)
{
    struct job *job = claim->job;
    struct head head;
    pawl_status status;

    if (!job) /* too large: it has failed in the same commit */
        return PAWL_LEASE_LOST;
    claim->call = job->call;
    claim->trace = str_of(job->trace);
    status = head_fixed(engine, &job->scope, claim->instance, &head);
    if (status)
        engine_claim_told(engine, claim, 1);
    else
        id_print(claim->instance, head.random, claim->id);
    return status;
}

uint32_t claims_unpack(struct engine *engine, struct claimed *claimed, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        if (!claimed[i].status && unpack(engine, &claimed[i]) == PAWL_OK)
            claimed[kept++] = claimed[i];
    return kept;
}

static void send_all(struct engine *engine, const struct scope *scope, struct mail *mails,
                     struct claimed *claimed, uint32_t count)
{
    guard_lock(&engine->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct actor *actor = actor_get(engine, claimed[i].instance);

        mails[i] = (struct mail){ .status = PAWL_NO_MEMORY }; /* until it is known */
        scope_init(&mails[i].own, engine->heap, LIMIT_SCOPE);
        mails[i].own.trace = scope->trace;
        mails[i].scope = &mails[i].own;
        mails[i].claim = &claimed[i];
        mails[i].ready_since = claimed[i].ready->since;
        mails[i].may_ride = true;
        mails[i].event = (struct event){ .kind = EVENT_STEP_START,
                                         .ordinal = claimed[i].ordinal,
                                         .actor = claimed[i].worker };
        mails[i].is_done = !actor;
        if (actor)
            mail_deliver(engine, actor, &mails[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        while (!mails[i].is_done)
            shell_wait(engine);
    guard_unlock(&engine->lock);
    for (uint32_t i = 0; i < count; i++) {
        claimed[i].status = mails[i].status;
        if (!claimed[i].status)
            claimed[i].status = unpack(engine, &claimed[i]);
        scope_fini(&mails[i].own);
    }
}

/* ---- One claim ---- */

void claim_token(struct engine *engine, struct claimed *claimed)
{
    uint8_t random[LEASE_TOKEN_SIZE / 2];

    engine->env->random(engine->env, random, sizeof random);
    sha_hex(random, sizeof random, claimed->token);
    guard_lock(&engine->lock);
    lease_hash(engine, str_of(claimed->token), claimed->lease);
    guard_unlock(&engine->lock);
}

static struct ready_step *take_for(struct engine *engine, const struct claim_args *args,
                                   struct waiting_claim *waiting)
{
    struct ready_step *step = NULL;

    if (!claims_wait(engine, args) || !waiting_may_have(waiting))
        return NULL;
    step = take(engine, args);
    if (!step)
        waiting_has_not(waiting);
    return step;
}

/* Steps that are waiting, taken out of their queues. */
static uint32_t take_some(struct engine *engine, const struct claim_args *args, uint32_t max,
                          struct waiting_claim *waiting, struct claimed *out, bool *is_short)
{
    struct ready_step *step;
    uint32_t count = 0;

    guard_lock(&engine->lock);
    *is_short = !leases_make_room(engine, max);
    if (*is_short)
        max = 0;
    while (count < max && (step = take_for(engine, args, waiting)) != NULL)
        out[count++] = (struct claimed){ .instance = step->instance,
                                         .ordinal = step->ordinal,
                                         .worker = args->worker,
                                         .lease_ms = args->lease_ms,
                                         .waiting = waiting,
                                         .ready = step };
    guard_unlock(&engine->lock);
    return count;
}

/* Cancelled or ended meanwhile: it is dropped; paused: found again when it is resumed; amended:
 * it waits in another queue. */
static bool is_gone(pawl_status status)
{
    return status == PAWL_LEASE_LOST || status == PAWL_TERMINAL || status == PAWL_NOT_KNOWN ||
           status == PAWL_PAUSED || status == PAWL_NOT_AWAITING;
}

/* It was not started: back into its queue, dropped, or found again later because it met
 * a failing store (recover_ready). */
static void let_go(struct engine *engine, struct claimed *claimed, pawl_status *worst)
{
    guard_lock(&engine->lock);
    waiting_give_back(claimed);
    waiting_has_not(claimed->waiting);
    if (claimed->stays_ready) { /* before those that became ready later */
        ready_put(&engine->work.queues[claimed->ready->queue].oldest, claimed->ready);
        claimed->ready = NULL;
        claims_release(engine); /* its tool may have been registered meanwhile */
    } else if (!is_gone(claimed->status)) {
        engine->work.ready_lost = true;
        *worst = claimed->status;
    }
    guard_unlock(&engine->lock);
}

/* Those that were started move to the front; true: some stay ready, and no more is to be taken. */
static bool keep_started(struct engine *engine, struct claimed *claimed, uint32_t count,
                         uint32_t *kept, pawl_status *worst)
{
    struct claimed *started = claimed;
    bool is_full = false;

    for (uint32_t i = 0; i < count; i++) {
        is_full = is_full || claimed[i].stays_ready;
        if (claimed[i].status)
            let_go(engine, &claimed[i], worst);
        heap_free(engine->heap, claimed[i].ready, sizeof *claimed[i].ready);
        claimed[i].ready = NULL;
        if (!claimed[i].status)
            *started++ = claimed[i];
    }
    *kept += (uint32_t)(started - claimed);
    return is_full;
}

/* Started together, so that they share their commits. */
static pawl_status start_all(struct engine *engine, struct scope *scope,
                             const struct claim_args *args, struct waiting_claim *waiting,
                             struct mail *mails, struct claimed *out, uint32_t *count)
{
    pawl_status status = PAWL_OK;
    bool is_full = false;

    while (*count < args->max && !status && !is_full) {
        struct claimed *more = out + *count;
        bool is_short;
        uint32_t taken = take_some(engine, args, args->max - *count, waiting, more, &is_short);

        if (is_short) /* of memory to watch over them */
            status = scope_no_memory(scope);
        if (taken == 0)
            break;
        for (uint32_t i = 0; i < taken; i++)
            claim_token(engine, &more[i]);
        send_all(engine, scope, mails, more, taken);
        is_full = keep_started(engine, more, taken, count, &status);
    }
    return status;
}

/* A claim that waits comes here whenever it is called, so its scope is asked for nothing. */
pawl_status claim_now(struct engine *engine, struct scope *scope, const struct claim_args *args,
                      struct waiting_claim *waiting, struct claimed *out, uint32_t *count)
{
    size_t size = args->max * sizeof(struct mail);
    struct mail *mails;
    pawl_status status;
    bool has_ready;

    guard_lock(&engine->lock);
    has_ready = claims_wait(engine, args);
    guard_unlock(&engine->lock);
    if (!has_ready)
        return PAWL_OK;
    mails = heap_new(engine->heap, size);
    status =
        mails ? start_all(engine, scope, args, waiting, mails, out, count) : scope_no_memory(scope);
    heap_free(engine->heap, mails, size);
    return *count > 0 ? PAWL_OK : status;
}

bool claims_insist(struct engine *engine, const struct claim_args *args)
{
    bool insists = false;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < args->tool_count; i++) {
        struct tool_queue *queue = find_queue(engine, args->tools[i]);

        if (!queue || !queue->oldest || ++queue->passed_over < TURNS_AHEAD)
            continue;
        queue->passed_over = 0;
        insists = true;
    }
    return insists;
}

void claims_pass_on(struct engine *engine, const struct claim_args *args)
{
    guard_lock(&engine->lock);
    for (uint32_t i = 0; i < args->tool_count; i++)
        if (claims_have(engine, args->tools[i]))
            waiting_call(engine, args->tools[i]);
    guard_unlock(&engine->lock);
}
