/* drain.c - one drain: all that waits shares one commit.
 *
 * One thread at a time drains: it takes that role in drain_if_free(), and nowhere else. Which
 * thread that is, and who waits for it, is for the shell to say (shell/waits.c).
 *
 * An owner decides first and takes the store's turn only if something was accepted. A writer
 * that shares its store takes the turn first: only then is what it reads still true when it
 * writes. */
#include "engine/parts.h"
#include "model/shard.h"

#define TOLD_AT_ONCE 32u

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
        engine_tell_watchers(engine); /* an unknown outcome may have been a commit */
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
    on_end_tell(engine, request->scope ? request->scope : &engine->writer.scope, at_ms);
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

void writer_mark_id(const struct engine *engine, uint8_t id[2])
{
    ASSERT_DRAINING(engine);
    shard_mark_alarm(id, engine->writer.tip.offset, engine->writer.tip.stride);
}

uint32_t writer_definition_id(const struct engine *engine)
{
    ASSERT_DRAINING(engine);
    return engine->writer.tip.last_definition + engine->writer.batch.definition_count + 1;
}

/* The last one of that name; with a version, of that. */
const struct definition_row *writer_find_definition(const struct engine *engine, str name,
                                                    uint32_t version)
{
    const struct batch *batch = &engine->writer.batch;

    ASSERT_DRAINING(engine);
    for (uint32_t i = batch->definition_count; i > 0; i--)
        if (str_eq(batch->definitions[i - 1].name, name) &&
            (version == 0 || batch->definitions[i - 1].version == version))
            return &batch->definitions[i - 1];
    return NULL;
}

void writer_note_highest(struct engine *engine)
{
    struct engine_group *group = engine->options.group;
    uint64_t mine = engine->writer.tip.last_instance, seen = group ? group->highest : mine;

    while (seen < mine && !atomic_compare_exchange_weak(&group->highest, &seen, mine))
        continue;
}

int64_t writer_commit_ms(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->writer.commit_ms;
}

static void after_commit(struct engine *engine)
{
    bool kept;

    engine->env->reached(engine->env, POINT_AFTER_COMMIT);
    commit_note_success(engine);
    guard_lock(&engine->lock);
    engine->writer.commit_failed = false;
    engine->writer.commits++;
    engine->writer.commit_ms = engine->writer.commit_us / 1000;
    kept = commit_accept(engine);
    writer_note_highest(engine);
    engine_tell_watchers(engine);
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
    if (store_trouble(engine->store) == TROUBLE_TAKEN) {
        engine->writer.broken = engine->writer.is_taken = true; /* the store is another's now */
        engine_log(engine, PAWL_LOG_ERROR, engine->options.member ? "shard.lost" : "store.lost",
                   engine->writer.scope.error.message);
    } else
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

/* Ids of several shards sort by creation, as far as this process creates them. */
static void raise_numbers(struct engine *engine)
{
    uint64_t highest = engine->options.group ? engine->options.group->highest : 0;

    if (highest <= engine->writer.tip.last_instance)
        return;
    guard_lock(&engine->lock);
    engine->writer.tip.last_instance = highest;
    guard_unlock(&engine->lock);
}

/* Outside of any turn to write. What fails is tried again when it is asked for again, and by the
 * next commit that erases. */
static void scrub_if_asked(struct engine *engine)
{
    if (!engine->writer.scrub_asked)
        return;
    engine->writer.scrub_asked = false;
    atomic_store(&engine->writer.is_unscrubbed,
                 store_scrub(engine->store, &engine->writer.scope) != PAWL_OK);
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
    writer_read_ahead(engine, list);
    raise_numbers(engine);
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

bool writer_has_rest(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->writer.broken || engine->writer.is_suspect || lags(engine) ||
           commit_is_due_again(engine);
}

/* Waiting threads are woken for some of them at a time, not for each. The lock is released
 * meanwhile. */
static void make_calls(struct engine *engine, struct request *calls)
{
    uint32_t count = 0;

    ASSERT_LOCKED(engine);
    shell_hold(engine);
    guard_unlock(&engine->lock);
    engine->env->reached(engine->env, POINT_AFTER_ACK);
    while (calls) {
        struct request *next = calls->next;

        calls->after(engine, calls);
        calls = next;
        if (++count % TOLD_AT_ONCE == 0)
            shell_tell(engine);
    }
    guard_lock(&engine->lock);
    engine->writer.answers += count;
    shell_let_go(engine);
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
            shell_answered(list);
        list = next;
    }
    shell_drained(engine);
    make_calls(engine, calls);
}

bool writer_take(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    if (engine->writer.drainer)
        return false;
    thread_note(&engine->writer.drainer, thread_self());
    return true;
}

void writer_give(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    thread_note(&engine->writer.drainer, 0);
}

/* Takes the drain's role, drains once and gives the role back; false: another thread has it. The
 * lock is released meanwhile. */
static bool drain_if_free(struct engine *engine, uint32_t sweep)
{
    struct request *list;

    ASSERT_LOCKED(engine);
    if (!writer_take(engine))
        return false;
    list = take_requests(engine);
    guard_unlock(&engine->lock);
    process(engine, list, sweep);
    scrub_if_asked(engine);
    batch_clear(&engine->writer.batch);
    scope_clear(&engine->writer.scope);
    guard_lock(&engine->lock);
    writer_give(engine);
    engine->writer.drains++;
    finish(engine, list);
    engine_set_wakeup(engine);
    return true;
}

void writer_queue(struct engine *engine, struct request *request)
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
    if (!engine->writer.drainer) /* which looks again when it is done */
        shell_queued(engine);
}

void engine_submit(struct engine *engine, struct request *request)
{
    ASSERT(request->after);
    guard_lock(&engine->lock);
    writer_queue(engine, request);
    guard_unlock(&engine->lock);
}

bool writer_drain(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->writer.first && drain_if_free(engine, 0);
}

/* Under one lock: so no thread drains a part of them. */
void engine_submit_list(struct engine *engine, struct request *list)
{
    ASSERT_LOCKED(engine);
    while (list) {
        struct request *next = list->next;

        ASSERT(list->after);
        writer_queue(engine, list);
        list = next;
    }
}

/* After a failure that was not mended at once: see whether it has passed. */
void engine_mend(struct engine *engine)
{
    guard_lock(&engine->lock);
    if (engine->writer.broken)
        drain_if_free(engine, 0);
    guard_unlock(&engine->lock);
}

int64_t writer_rest_ms(struct engine *engine)
{
    if (!writer_has_rest(engine))
        return -1;
    /* A disk that takes no rows now may take them later; the log says it all meanwhile. */
    return engine->writer.broken || engine->writer.commit_failed ? RETRY_STORE_MS : FLUSH_AFTER_MS;
}

bool writer_tidy(struct engine *engine)
{
    if (engine->writer.first || engine->writer.drainer || !writer_has_rest(engine))
        return false;
    engine->writer.is_suspect = false;
    if (!engine->writer.broken)
        engine->env->reached(engine->env, POINT_BEFORE_SWEEP);
    return drain_if_free(engine, engine->writer.broken ? 0 : LIMIT_SLICE);
}

/* Rows that lag, written without waiting for a commit of records. */
void engine_sweep(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine->writer.commit_failed = false;
    while (lags(engine) && !engine->writer.commit_failed && writer_tidy(engine))
        continue;
    guard_unlock(&engine->lock);
}

/* A read failed: its cause may be damaged files, which a commit notices. */
void engine_suspect(struct engine *engine)
{
    if (!engine->options.own)
        return;
    guard_lock(&engine->lock);
    engine->writer.is_suspect = true;
    shell_is_suspect(engine);
    guard_unlock(&engine->lock);
}
