/* drain.c - one drain: all that waits shares one commit.
 *
 * In a library the first caller becomes leader and drains for the others; a server has a
 * thread that does nothing else. An owner decides first and takes the store's turn only if
 * something was accepted; everybody else takes the turn first, because only then is what it
 * reads still true when it writes. */
#include "engine/engine_int.h"
#include <stdlib.h>

static int compare_rows(const void *a, const void *b)
{
    const struct head_row *left = a, *right = b;

    return left->instance < right->instance ? -1 : left->instance > right->instance;
}

static void add_row(struct batch *batch, const struct head *head)
{
    ASSERT(batch->row_count < batch->row_capacity);
    batch->rows[batch->row_count++] = (struct head_row){
        .instance = head->instance, .seq = head->seq, .pos = head->pos, .state = head->state
    };
}

static bool room_for_rows(struct batch *batch, uint32_t more)
{
    uint32_t need = batch->head_count + more + 2;
    void *rows;

    if (need <= batch->row_capacity)
        return true;
    rows = heap_resize(batch->heap, batch->rows, sizeof *batch->rows * batch->row_capacity,
                       sizeof *batch->rows * need);
    if (!rows)
        return false;
    batch->rows = rows;
    batch->row_capacity = need;
    return true;
}

static bool may_lag(const struct engine *engine, const struct head *head)
{
    return engine->options.own && !(head->flags & HEAD_NOW);
}

/* Lagging rows that go with this commit. An instance that the batch itself writes is passed
 * over: its newer row is there already. */
static pawl_status add_slice(struct engine *engine, uint32_t limit)
{
    struct batch *batch = &engine->batch;
    struct head *slice = ARENA_ARRAY(&engine->scope.arena, struct head, limit + 1);
    pawl_status status = PAWL_OK;
    uint32_t count;

    if (!slice || !room_for_rows(batch, limit))
        return scope_no_memory(&engine->scope);
    pthread_mutex_lock(&engine->lock);
    count = heads_slice(&engine->heads, limit, engine->tip.pos, slice, &batch->flushed);
    pthread_mutex_unlock(&engine->lock);
    for (uint32_t i = 0; i < count && !status; i++) {
        const struct head *pending = batch_find(batch, slice[i].instance);

        status = heads_make_whole(engine, &engine->scope, &slice[i]);
        if (!status && !(pending && !may_lag(engine, pending)))
            add_row(batch, &slice[i]);
    }
    return status;
}

#define SLICE_LEAST 128u /* rows; fewer would write the same page again with every commit */

/* How many lagging rows should go along: all of them where nothing may lag. Else a cycle begins
 * late, so that many of its rows share a page, but in time to end before the tail of the log is
 * longer than LIMIT_LAG, at one row for each record: no commit has to wait for many. */
static uint32_t slice_size(const struct engine *engine)
{
    const struct heads *heads = &engine->heads;
    uint32_t lag = heads_lag(heads), records = engine->batch.record_count;
    bool is_due = heads->cycle_next < heads->cycle_count ||
                  engine->tip.pos - engine->tip.flushed + lag >= LIMIT_LAG;

    if (!engine->options.own)
        return lag;
    if (!is_due)
        return 0;
    return records > SLICE_LEAST ? records : SLICE_LEAST;
}

static pawl_status add_rows(struct engine *engine, uint32_t slice)
{
    struct batch *batch = &engine->batch;
    bool all_right = true;

    if (!room_for_rows(batch, slice))
        return scope_no_memory(&engine->scope);
    for (uint32_t i = 0; i < batch->head_count; i++) {
        if (may_lag(engine, &batch->heads[i]))
            all_right = false;
        else
            add_row(batch, &batch->heads[i]);
    }
    if (slice) {
        pawl_status status = add_slice(engine, slice);

        if (status)
            return status;
    }
    if (all_right && heads_lag(&engine->heads) == 0 &&
        (slice || !engine->options.own || engine->tip.pos - engine->tip.flushed > LIMIT_SLICE))
        batch->flushed = engine->tip.pos + batch->record_count;
    qsort(batch->rows, batch->row_count, sizeof *batch->rows, compare_rows);
    return PAWL_OK;
}

static void add_root(struct engine *engine)
{
    struct batch *batch = &engine->batch;
    struct record *last = &batch->records[batch->record_count - 1];

    root_begin(engine->sha, engine->tip.root);
    for (uint32_t i = 0; i < batch->record_count; i++)
        root_add(engine->sha, batch->records[i].hash);
    root_end(engine->sha, last->root);
    last->has_root = true;
}

static struct commit commit_of(const struct engine *engine)
{
    const struct batch *batch = &engine->batch;

    return (struct commit){
        .records = batch->records,
        .record_count = batch->record_count,
        .values = batch->values,
        .value_count = batch->value_count,
        .definitions = batch->definitions,
        .definition_count = batch->definition_count,
        .instances = batch->instances,
        .instance_count = batch->instance_count,
        .heads = batch->rows,
        .head_count = batch->row_count,
        .live = batch->live,
        .live_count = batch->live_count,
        .snapshots = batch->snapshots,
        .snapshot_count = batch->snapshot_count,
        .flushed = batch->flushed,
        .test_now_ms = engine->options.test_clock ? engine->test_now_ms : 0,
    };
}

/* After the commit: what was pending is now true. */
static bool accept_batch(struct engine *engine)
{
    struct batch *batch = &engine->batch;
    struct store_tip *tip = &engine->tip;
    bool kept = true;

    if (batch->record_count) {
        const struct record *last = &batch->records[batch->record_count - 1];

        tip->pos = last->pos;
        tip->at_ms = last->at_ms;
        memcpy(tip->root, last->root, SHA_SIZE);
    }
    tip->last_value += batch->value_count;
    tip->last_instance += batch->instance_count;
    tip->last_definition += batch->definition_count;
    if (batch->flushed)
        tip->flushed = batch->flushed;
    for (uint32_t i = 0; i < batch->head_count && engine->options.own; i++) {
        struct head head = batch->heads[i], *cached;

        if (!head.instance)
            continue;
        head.flags &= (uint8_t)~HEAD_NOW;
        cached = heads_add(&engine->heads, &head);
        if (may_lag(engine, &batch->heads[i]))
            kept = kept && cached && heads_mark_dirty(&engine->heads, cached);
    }
    engine->clock_moved = false;
    timers_note(engine, batch);
    return kept;
}

static void fail_request(struct engine *engine, struct request *request, pawl_status status)
{
    request->status = status;
    if (request->scope)
        request->scope->error = engine->scope.error;
    for (size_t i = 0; i < request->fire_count; i++)
        if (request->fires[i].status == PAWL_OK)
            request->fires[i].status = status;
}

static void fail_accepted(struct engine *engine, struct request *list, pawl_status status)
{
    for (; list; list = list->next)
        if (list->accepted)
            fail_request(engine, list, status);
}

/* What we hold in memory may now be wrong: forget it, and look at what is there. If even that
 * fails nothing more is written until it succeeds: the next drain tries again. */
static void start_over(struct engine *engine, bool reopen)
{
    pawl_error kept = engine->scope.error;
    pawl_status status;

    pthread_mutex_lock(&engine->lock);
    heads_clear(&engine->heads);
    pthread_mutex_unlock(&engine->lock);
    engine->generation++;
    intern_clear(&engine->interned);
    status = reopen ? engine_reopen(engine) : recover(engine, &engine->scope);
    engine->broken = status != PAWL_OK;
    engine->scope.error = kept;
}

static pawl_status mend(struct engine *engine)
{
    if (engine->broken)
        start_over(engine, true);
    return engine->broken ? scope_fail(&engine->scope, PAWL_STORAGE_FAILURE,
                                       "the store failed and could not be opened again yet")
                          : PAWL_OK;
}

static pawl_status write_batch(struct engine *engine)
{
    struct commit commit;
    struct store_tip tip;
    pawl_status status = PAWL_OK;

    if (engine->options.own) {
        engine->env->reached(engine->env, POINT_BEFORE_BEGIN);
        status = store_begin(engine->store, &engine->scope, &tip);
        if (status)
            return status;
        if (tip.pos != engine->tip.pos) {
            store_rollback(engine->store);
            return scope_fail(&engine->scope, PAWL_STORAGE_FAILURE,
                              "the log ends at %llu, not at %llu: somebody has written to a store "
                              "that we own",
                              (unsigned long long)tip.pos, (unsigned long long)engine->tip.pos);
        }
    }
    if (engine->batch.record_count)
        add_root(engine);
    commit = commit_of(engine);
    engine->env->reached(engine->env, POINT_BEFORE_COMMIT);
    return store_commit(engine->store, &engine->scope, &commit);
}

/* A shared writer's turn: what we knew may be old. Rows that a dead owner left behind are
 * put right in the same commit. */
static pawl_status take_turn(struct engine *engine)
{
    pawl_status status;

    if (engine->options.own)
        return PAWL_OK;
    engine->env->reached(engine->env, POINT_BEFORE_BEGIN);
    status = store_begin(engine->store, &engine->scope, &engine->tip);
    if (status)
        return status;
    if (!engine->tip.pos)
        root_first(engine->sha, engine->tip.store_id, engine->tip.root);
    pthread_mutex_lock(&engine->lock);
    heads_clear(&engine->heads);
    pthread_mutex_unlock(&engine->lock);
    intern_clear(&engine->interned);
    status = recover_tail(engine, &engine->scope);
    if (status)
        store_rollback(engine->store);
    return status;
}

static void decide_request(struct engine *engine, struct request *request, int64_t at_ms)
{
    switch (request->kind) {
    case REQUEST_FIRE:
        drain_fires(engine, request, at_ms);
        break;
    case REQUEST_CREATE:
        drain_create(engine, request, at_ms);
        break;
    case REQUEST_DEFINE:
        request->status = drain_define(engine, request, at_ms);
        break;
    case REQUEST_DECISION:
        drain_decision(engine, request, at_ms);
        break;
    case REQUEST_CLOCK:
        request->accepted = true;
        break;
    }
}

/* Nothing was accepted, and nothing else is worth a commit. */
static void end_without_commit(struct engine *engine)
{
    if (!engine->options.own)
        store_rollback(engine->store);
    if (engine->batch.value_count)
        intern_clear(&engine->interned);
}

static pawl_status finish_batch(struct engine *engine, uint32_t slice)
{
    pawl_status status = engine->batch_status;

    engine->batch_status = PAWL_OK;
    if (!status)
        status = add_rows(engine, slice);
    if (status && !engine->options.own)
        store_rollback(engine->store);
    return status ? status : write_batch(engine);
}

static void after_commit(struct engine *engine)
{
    bool kept;

    engine->env->reached(engine->env, POINT_AFTER_COMMIT);
    pthread_mutex_lock(&engine->lock);
    engine->commit_failed = false;
    kept = accept_batch(engine);
    pthread_mutex_unlock(&engine->lock);
    if (!kept)
        start_over(engine, false);
}

static void after_failure(struct engine *engine, struct request *list, pawl_status status)
{
    fail_accepted(engine, list, status);
    pthread_mutex_lock(&engine->lock);
    engine->commit_failed = true;
    pthread_mutex_unlock(&engine->lock);
    engine_log(engine, PAWL_LOG_ERROR, "commit.failed", engine->scope.error.message);
    start_over(engine, status == PAWL_OUTCOME_UNKNOWN);
}

/* Everything between taking requests and telling how they ended. No lock is held. */
static void process(struct engine *engine, struct request *list, uint32_t sweep)
{
    pawl_status status = mend(engine);
    int64_t at_ms;
    uint32_t slice;

    if (!status)
        status = take_turn(engine);
    at_ms = clock_at(engine);
    for (struct request *r = list; r && status; r = r->next)
        fail_request(engine, r, status);
    if (status)
        return;
    if (engine->interned.count > LIMIT_ACTORS)
        intern_clear(&engine->interned);
    for (struct request *r = list; r; r = r->next)
        decide_request(engine, r, at_ms);
    slice = sweep ? sweep : slice_size(engine);
    if (!engine->batch.record_count && !engine->clock_moved && !slice && !engine->batch_status) {
        end_without_commit(engine);
        return;
    }
    status = finish_batch(engine, slice);
    if (status)
        after_failure(engine, list, status);
    else
        after_commit(engine);
}

static struct request *take_requests(struct engine *engine)
{
    struct request *list = engine->first, *last = list;

    for (uint32_t count = 1; last && last->next && count < LIMIT_DRAIN; count++)
        last = last->next;
    engine->first = last ? last->next : NULL;
    if (!engine->first)
        engine->last = NULL;
    if (last)
        last->next = NULL;
    return list;
}

/* The drain is free: one of those who wait has to lead now, if no thread does. */
static void pass_on(struct engine *engine)
{
    struct request *next = engine->first;

    if (engine->sweepers || (next && !engine->thread_count))
        pthread_cond_broadcast(&engine->changed);
    while (next && next->after)
        next = next->next;
    if (next && !engine->thread_count)
        pthread_cond_signal(&next->wake);
}

/* Tell those who wait, then those who left a call to be made. The list may be gone as soon
 * as its owners know, so `next` is read first. */
static void finish(struct engine *engine, struct request *list)
{
    struct request *calls = NULL;

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
    pthread_mutex_unlock(&engine->lock);
    engine->env->reached(engine->env, POINT_AFTER_ACK);
    while (calls) {
        struct request *next = calls->next;

        calls->after(engine, calls);
        calls = next;
    }
    pthread_mutex_lock(&engine->lock);
}

static void drain_once(struct engine *engine, uint32_t sweep)
{
    struct request *list = take_requests(engine);

    ASSERT(!engine->draining);
    engine->draining = true;
    pthread_mutex_unlock(&engine->lock);
    process(engine, list, sweep);
    batch_clear(&engine->batch);
    scope_clear(&engine->scope);
    pthread_mutex_lock(&engine->lock);
    engine->draining = false;
    finish(engine, list);
}

void engine_drain(struct engine *engine)
{
    drain_once(engine, 0);
}

static void enqueue(struct engine *engine, struct request *request)
{
    request->next = NULL;
    request->is_done = false;
    if (engine->last)
        engine->last->next = request;
    else
        engine->first = request;
    engine->last = request;
    pthread_cond_signal(&engine->work);
}

pawl_status engine_submit(struct engine *engine, struct request *request)
{
    pthread_cond_init(&request->wake, NULL);
    pthread_mutex_lock(&engine->lock);
    enqueue(engine, request);
    while (!request->is_done) {
        if (engine->draining || engine->thread_count)
            pthread_cond_wait(&request->wake, &engine->lock);
        else
            engine_drain(engine);
    }
    pthread_mutex_unlock(&engine->lock);
    pthread_cond_destroy(&request->wake);
    return request->status;
}

void engine_post_request(struct engine *engine, struct request *request)
{
    ASSERT(request->after);
    pthread_mutex_lock(&engine->lock);
    enqueue(engine, request);
    pthread_mutex_unlock(&engine->lock);
}

/* Drain what is queued if nobody else does; lock held. */
void engine_lead(struct engine *engine)
{
    while (engine->first && !engine->draining && !engine->thread_count)
        engine_drain(engine);
}

static bool lags(const struct engine *engine)
{
    return engine->options.own && !engine->broken &&
           (heads_lag(&engine->heads) || engine->tip.flushed < engine->tip.pos);
}

/* Rows that lag, written without waiting for a commit of records. */
void engine_sweep(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->commit_failed = false;
    while (lags(engine) && !engine->commit_failed) {
        engine->sweepers++;
        while (engine->draining)
            pthread_cond_wait(&engine->changed, &engine->lock);
        engine->sweepers--;
        engine->env->reached(engine->env, POINT_BEFORE_SWEEP);
        drain_once(engine, LIMIT_SLICE);
    }
    pthread_mutex_unlock(&engine->lock);
}

static void wait_for(struct engine *engine, pthread_cond_t *condition, int64_t for_ms)
{
    int64_t until = engine->env->tick_ms(engine->env) + for_ms;
    struct timespec at = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };

    pthread_cond_timedwait(condition, &engine->lock, &at);
}

void engine_wait_changed(struct engine *engine, int64_t for_ms)
{
    wait_for(engine, &engine->changed, for_ms);
}

/* The server's drain: nothing but this. A quiet moment is used to put lagging rows right. */
void *drain_thread(void *context)
{
    struct engine *engine = context;

    pthread_mutex_lock(&engine->lock);
    while (!engine->drain_stopping || engine->first) {
        if (engine->first)
            engine_drain(engine);
        else if (lags(engine) && !engine->drain_stopping) {
            /* A disk that takes no rows now may take them later; the log says it all meanwhile. */
            wait_for(engine, &engine->work,
                     engine->commit_failed ? RETRY_STORE_MS : FLUSH_AFTER_MS);
            if (!engine->first) {
                engine->env->reached(engine->env, POINT_BEFORE_SWEEP);
                drain_once(engine, LIMIT_SLICE);
            }
        } else
            pthread_cond_wait(&engine->work, &engine->lock);
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}
