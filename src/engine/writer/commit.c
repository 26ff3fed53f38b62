/* commit.c - a batch becomes a commit: rows that go along, the root, the writing, and what is
 * true afterwards. By the drain alone. */
#include "base/sort.h"
#include "engine/parts.h"
#include <stdlib.h>

static void add_row(struct batch *batch, const struct head *head)
{
    ASSERT(batch->row_count < batch->row_capacity);
    batch->rows[batch->row_count++] = row_of_head(head);
}

static bool room_for_rows(struct batch *batch, uint32_t more)
{
    uint32_t need = batch->head_count + more + 2;

    return HEAP_GROW(batch->heap, batch->rows, batch->row_capacity, need);
}

static bool may_lag(const struct engine *engine, const struct head *head)
{
    return engine->options.own && !(head->flags & HEAD_NOW);
}

/* Lagging rows that go with this commit. An instance that the batch itself writes is passed
 * over: its newer row is there already. */
static pawl_status add_slice(struct engine *engine, uint32_t limit)
{
    struct batch *batch = &engine->writer.batch;
    uint32_t lag = heads_lag(&engine->writer.heads), most = limit < lag ? limit : lag, count;
    struct head *slice = ARENA_ARRAY(&engine->writer.scope.arena, struct head, most + 1);

    TRY_MEMORY(&engine->writer.scope, slice && room_for_rows(batch, most));
    guard_lock(&engine->lock);
    count =
        heads_slice(&engine->writer.heads, most, engine->writer.tip.pos, slice, &batch->flushed);
    guard_unlock(&engine->lock);
    for (uint32_t i = 0; i < count; i++) {
        const struct head *pending = batch_find(batch, slice[i].instance);

        TRY(heads_make_whole(engine, &engine->writer.scope, &slice[i]));
        if (!pending || may_lag(engine, pending))
            add_row(batch, &slice[i]);
    }
    return PAWL_OK;
}

#define SLICE_LEAST 128u /* rows; fewer would write the same page again with every commit */

/* How many lagging rows should go along: all of them where nothing may lag. Else a cycle begins
 * late, so that many of its rows share a page, but in time to end, at one row for each record,
 * before more than LIMIT_LAG rows lag and the tail of the log is twice as long: no commit has to
 * wait for many rows, and opening after a death has not much to read. */
uint32_t commit_slice(const struct engine *engine)
{
    const struct heads *heads = &engine->writer.heads;
    uint32_t lag = heads_lag(heads), records = engine->writer.batch.record_count;
    bool is_due = heads->cycle_next < heads->cycle_count ||
                  engine->writer.tip.pos - engine->writer.tip.flushed + lag >= 2u * LIMIT_LAG;

    if (!engine->options.own)
        return lag;
    if (!is_due)
        return 0;
    return records > SLICE_LEAST ? records : SLICE_LEAST;
}

static pawl_status add_rows(struct engine *engine, uint32_t slice)
{
    struct batch *batch = &engine->writer.batch;
    bool all_right = true;

    TRY_MEMORY(&engine->writer.scope, room_for_rows(batch, slice));
    for (uint32_t i = 0; i < batch->head_count; i++) {
        if (may_lag(engine, &batch->heads[i]))
            all_right = false;
        else
            add_row(batch, &batch->heads[i]);
    }
    if (slice)
        TRY(add_slice(engine, slice));
    if ((all_right && heads_lag(&engine->writer.heads) == 0 &&
         (slice || !engine->options.own || engine->writer.tip.pos - engine->writer.tip.flushed > LIMIT_SLICE)) ||
        PLANTED(FLUSHED_TOO_FAR))
        batch->flushed = engine->writer.tip.pos + batch->record_count;
    qsort(batch->rows, batch->row_count, sizeof *batch->rows, compare_numbers_first);
    return PAWL_OK;
}

static void add_root(struct engine *engine)
{
    struct batch *batch = &engine->writer.batch;
    struct record *last = &batch->records[batch->record_count - 1];

    root_begin(engine->writer.sha, engine->writer.tip.root);
    for (uint32_t i = PLANTED(ROOT_LEAVES_OUT) && batch->record_count > 1; i < batch->record_count;
         i++)
        root_add(engine->writer.sha, batch->records[i].hash);
    root_end(engine->writer.sha, last->root);
    last->has_root = true;
}

static struct commit commit_of(const struct engine *engine)
{
    const struct batch *batch = &engine->writer.batch;

    return (struct commit){
#define X(type, items, name) .items = batch->items, .name##_count = batch->name##_count,
        COMMITTED_LISTS(X)
#undef X
            .heads = batch->rows,
        .head_count = batch->row_count,
        .keys_before_ms =
            batch->key_count ? batch->keys[batch->key_count - 1].at_ms - KEY_KEPT_MS : 0,
        .reduces = batch->reduces,
        .reduce_count = batch->reduce_count,
        .flushed = batch->flushed,
        .shift_ms = batch->shift_ms,
    };
}

/* Have the heads that the batch is about to change ready: committing has pushed them out. */
static void expect_heads(struct engine *engine, uint32_t first)
{
    const struct batch *batch = &engine->writer.batch;
    uint64_t numbers[HEADS_EXPECTED];
    uint32_t count = 0;

    for (uint32_t i = first; i < batch->head_count && count < HEADS_EXPECTED; i++)
        numbers[count++] = batch->heads[i].instance;
    heads_expect(&engine->writer.heads, numbers, count);
}

/* After the commit: what was pending is now true. */
bool commit_accept(struct engine *engine)
{
    struct batch *batch = &engine->writer.batch;
    const struct commit commit = commit_of(engine);
    bool kept = true;

    ASSERT_LOCKED(engine);
    tip_advance(&engine->writer.tip, &commit);
    for (uint32_t i = 0; i < batch->head_count && engine->options.own; i++) {
        struct head head = batch->heads[i], *cached;

        if (i % HEADS_EXPECTED == 0)
            expect_heads(engine, i);
        if (!head.instance)
            continue;
        head.flags &= (uint8_t)~HEAD_NOW;
        cached = heads_add(&engine->writer.heads, &head);
        if (may_lag(engine, &batch->heads[i]))
            kept = kept && cached && heads_mark_dirty(&engine->writer.heads, cached);
    }
    engine->writer.heads.is_whole = engine->writer.heads.is_whole && kept;
    clock_copy_tip(engine);
    if (batch->shift_ms)
        clock_shifted(engine);
    clock_committed(engine);
    timers_note(engine, batch);
    runners_withdraw(engine, batch);
    quotas_committed(engine, batch);
    family_note(engine, batch);
    archive_committed(engine, batch);
    return kept;
}

static pawl_status write_batch(struct engine *engine)
{
    struct commit commit;
    struct store_tip tip;

    if (engine->options.own) {
        engine->env->reached(engine->env, POINT_BEFORE_BEGIN);
        TRY(store_begin(engine->store, &engine->writer.scope, &tip));
        if (tip.pos != engine->writer.tip.pos) {
            store_rollback(engine->store);
            return scope_fail(&engine->writer.scope, PAWL_STORAGE_FAILURE,
                              "the log ends at %llu, not at %llu: another process has written to "
                              "a store that this one owns",
                              (unsigned long long)tip.pos,
                              (unsigned long long)engine->writer.tip.pos);
        }
    }
    if (engine->writer.batch.record_count)
        add_root(engine);
    commit = commit_of(engine);
    engine->env->reached(engine->env, POINT_BEFORE_COMMIT);
    return store_commit(engine->store, &engine->writer.scope, &commit);
}

pawl_status commit_batch(struct engine *engine, uint32_t slice)
{
    pawl_status status = engine->writer.batch_status;

    ASSERT_DRAINING(engine);
    engine->writer.batch_status = PAWL_OK;
    if (!status)
        status = add_rows(engine, slice);
    if (status && !engine->options.own)
        store_rollback(engine->store);
    return status ? status : write_batch(engine);
}

/* ---- Health of commits ---- */

void commit_note_failure(struct engine *engine, pawl_status status)
{
    if (store_trouble(engine->store) == TROUBLE_GONE) {
        health_set(engine, HEALTH_STORAGE_GONE,
                   "the store's files were deleted, replaced, truncated or changed by another "
                   "program under this process, which acknowledges nothing any more; its log names "
                   "the file; stop the process, check the files, and start it again");
    } else if (store_trouble(engine->store) == TROUBLE_FULL) {
        health_clear(engine, HEALTH_COMMIT_FAILED);
        health_set(engine, HEALTH_DISK_FULL,
                   "the disk is full: nothing can be recorded until there is room");
    } else {
        health_clear(engine, HEALTH_DISK_FULL);
        health_set(engine, HEALTH_COMMIT_FAILED,
                   "the last commit failed with %s, and none has succeeded since; the server's log "
                   "has the cause",
                   pawl_status_name(status));
    }
}

void commit_note_success(struct engine *engine)
{
    health_clear(engine, HEALTH_COMMIT_FAILED);
    health_clear(engine, HEALTH_DISK_FULL);
    if (store_trouble(engine->store) != TROUBLE_LINKED)
        health_clear(engine, HEALTH_LINKED);
    else
        health_set(engine, HEALTH_LINKED,
                   "the store's file has a second name (a hard link): a process that opens it by "
                   "that name writes to another log; delete the name, and copy the file instead");
}

/* While there are no requests, try a commit now and then, so that health can recover. */
bool commit_is_due_again(struct engine *engine)
{
    return engine->options.own &&
           (health_has(engine, HEALTH_COMMIT_FAILED) || health_has(engine, HEALTH_DISK_FULL));
}
