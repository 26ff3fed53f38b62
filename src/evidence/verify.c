/* verify.c - the check of a whole store: the log once from front to back, then the rows.
 *
 * Records are taken in batches, so that nothing is read while a scan is open: a backend
 * need not allow that. A writer may append meanwhile: a row that differs is compared
 * again after catching up, before it is reported. */
#include "base/assert.h"
#include "base/limits.h"
#include "evidence/verify_int.h"
#include "model/shard.h"
#include <stdio.h>

#define BATCH_FULL PAWL_OVERLOADED /* ends a scan; never leaves this file */

/* A checkpoint costs as much as some records for every instance. */
#define KEEP_EVERY_MIN    (UINT64_C(1) << 20)
#define KEEP_EVERY_CHAINS 4

/* ---- saying what is wrong ---- */

pawl_status verify_bad(struct verify *v, const char *format, ...)
{
    va_list args;

    v->report->valid = false;
    v->report->bad_pos = v->where_pos;
    v->report->bad_seq = v->where_seq;
    va_start(args, format);
    (void)vsnprintf(v->report->what, sizeof v->report->what, format, args);
    va_end(args);
    return PAWL_STORAGE_FAILURE;
}

void verify_at(struct verify *v, uint64_t pos, uint64_t instance, uint64_t seq)
{
    v->where_pos = pos;
    v->where_instance = instance;
    v->where_seq = seq;
}

/* The id of what is being looked at, if anything knows it. */
static void name_instance(struct verify *v)
{
    const struct chain *chain = verify_find_chain(v, v->where_instance);
    struct instance_row row;

    if (v->where_instance == 0)
        return;
    scope_clear(&v->scope);
    if (chain)
        id_print(chain->number, chain->random, v->report->bad_instance);
    else if (v->where_instance <= ID_NUMBER_MAX &&
             store_instance(v->store, &v->scope, v->where_instance, &row) == PAWL_OK)
        id_print(v->where_instance, row.random, v->report->bad_instance);
}

/* A store that can't be read where it was read a moment ago is a finding too. */
static pawl_status conclude(struct verify *v, pawl_status status, pawl_error *error)
{
    if (!v->request->definition.data)
        v->report->instances = v->chain_count > 0 ? v->chain_count - 1 : 0;
    v->report->pos = v->pos;
    v->report->last = v->tip.pos > v->pos ? v->tip.pos : v->pos;
    memcpy(v->report->root, v->root, SHA_SIZE);
    v->report->stopped = status == VERIFY_STOPPED;
    if (status == PAWL_OK || status == VERIFY_STOPPED)
        return PAWL_OK;
    if (status != PAWL_STORAGE_FAILURE) {
        if (error)
            *error = v->scope.error;
        return status;
    }
    if (v->report->valid) {
        pawl_error seen = v->scope.error;

        (void)verify_bad(v, "the store can't be read here: %.200s",
                         seen.message[0] ? seen.message : "no reason was given");
    }
    name_instance(v);
    return PAWL_OK;
}

/* ---- the log ---- */

static pawl_status keep_record(void *context, const struct record *record)
{
    struct verify *v = context;
    struct record *copy = &v->records[v->record_count];

    if (v->record_count == BATCH_SIZE)
        return BATCH_FULL;
    *copy = *record;
    copy->body = arena_str(&v->batch, record->body);
    copy->key = arena_str(&v->batch, record->key);
    if (v->batch.failed)
        return PAWL_NO_MEMORY;
    v->record_count++;
    if (record->pos != v->pos + v->record_count) /* a gap: nothing behind it will be looked at */
        return BATCH_FULL;
    return v->batch.used > LIMIT_SCOPE / 4 ? BATCH_FULL : PAWL_OK;
}

static pawl_status read_batch(struct verify *v)
{
    pawl_status status;

    arena_clear(&v->batch);
    scope_clear(&v->scope);
    v->record_count = 0;
    verify_at(v, v->pos + 1, 0, 0);
    status = store_scan(v->store, &v->scope, v->pos + 1, keep_record, v);
    if (status == PAWL_NO_MEMORY && v->batch.failed)
        return scope_no_memory(&v->scope);
    return status == BATCH_FULL ? PAWL_OK : status;
}

static pawl_status check_root(struct verify *v, const struct record *record)
{
    if (!v->in_commit)
        root_begin(v->root_sha, v->root);
    root_add(v->root_sha, record->hash);
    v->in_commit = !record->has_root;
    if (!record->has_root)
        return PAWL_OK;
    root_end(v->root_sha, v->root);
    if (memcmp(v->root, record->root, SHA_SIZE) != 0)
        return verify_bad(v, "the root of this commit does not follow from the one before");
    return verify_all_replays_over(v);
}

static pawl_status check_next(struct verify *v, const struct record *record)
{
    scope_clear(&v->scope);
    verify_at(v, v->pos + 1, 0, 0);
    if (record->pos != v->pos + 1)
        return verify_bad(v, "the record at this position is missing");
    verify_at(v, record->pos, record->instance, record->seq);
    TRY(verify_time(v, record));
    TRY(record->what == CONTROL_GONE ? verify_gone(v, record) : verify_record(v, record));
    TRY(check_root(v, record));
    v->pos = record->pos;
    return PAWL_OK;
}

/* ---- stopping, and keeping checkpoints ---- */

pawl_status verify_tell(struct verify *v, enum verify_part part, uint64_t done, uint64_t all)
{
    if (v->request->progress && !v->request->progress(v->request->context, part, done, all))
        v->stop_asked = true;
    return v->stop_asked ? VERIFY_STOPPED : PAWL_OK;
}

/* After a record of the log, while the log alone is looked at. A checkpoint is kept, and a
 * check stops, between commits only. */
static pawl_status rest(struct verify *v)
{
    uint64_t limit = v->request->limit, every = v->request->keep_every;

    if (!v->in_log || v->in_commit)
        return PAWL_OK;
    if (v->stop_asked || (limit > 0 && v->pos - v->begun_pos >= limit && v->pos < v->tip.pos))
        return VERIFY_STOPPED;
    if (every == 0)
        every = (uint64_t)v->chain_count * KEEP_EVERY_CHAINS;
    if (v->request->keep_every == 0 && every < KEEP_EVERY_MIN)
        every = KEEP_EVERY_MIN;
    if (v->request->keep && !v->archived_count && v->pos - v->kept_pos >= every)
        verify_keep_checkpoint(v);
    return PAWL_OK;
}

pawl_status verify_catch_up(struct verify *v)
{
    TRY(read_batch(v));
    while (v->record_count > 0) {
        for (uint32_t i = 0; i < v->record_count; i++) {
            TRY(check_next(v, &v->records[i]));
            TRY(rest(v));
        }
        (void)verify_tell(v, VERIFY_RECORDS, v->pos, v->tip.pos > v->pos ? v->tip.pos : v->pos);
        TRY(read_batch(v));
    }
    if (v->in_commit) {
        verify_at(v, v->pos, 0, 0);
        return verify_bad(v, "the last record has no root: the end of a commit is missing");
    }
    return PAWL_OK;
}

static pawl_status check_log(struct verify *v)
{
    pawl_status status;

    v->in_log = true;
    status = verify_catch_up(v);
    v->in_log = false;
    return status;
}

/* ---- the store ---- */

/* A shard's id says which shard of which store it is. */
static pawl_status check_shard(struct verify *v)
{
    uint8_t id[STORE_ID_SIZE];

    verify_at(v, 0, 0, 0);
    if (v->tip.stride == 1)
        return PAWL_OK;
    if (!shards_are_valid(v->tip.stride) || v->tip.offset >= v->tip.stride)
        return verify_bad(v, "it is said to be shard %u of %u", v->tip.offset, v->tip.stride);
    shard_store_id(v->root_sha, v->tip.whole_id, v->tip.offset, v->tip.stride, id);
    if (memcmp(id, v->tip.store_id, sizeof id) != 0)
        return verify_bad(v, "its store_id is not that of shard %u of %u", v->tip.offset,
                          v->tip.stride);
    return PAWL_OK;
}

static pawl_status check_tip(struct verify *v)
{
    verify_at(v, 0, 0, 0);
    if (v->pos < v->tip.pos)
        return verify_bad(v, "the log ends at %llu, but the store says %llu",
                          (unsigned long long)v->pos, (unsigned long long)v->tip.pos);
    if (v->tip.flushed > v->tip.pos)
        return verify_bad(v, "head rows are said to be right up to %llu, but the log ends at %llu",
                          (unsigned long long)v->tip.flushed, (unsigned long long)v->tip.pos);
    if (v->pos > 0 && v->pos == v->tip.pos && memcmp(v->root, v->tip.root, SHA_SIZE) != 0)
        return verify_bad(v, "the store's root is not that of the last commit");
    return PAWL_OK;
}

/* From the beginning, or from the checkpoint of an earlier check. */
static pawl_status begin(struct verify *v)
{
    pawl_status status = v->request->checkpoint.data ? verify_resume(v) : VERIFY_STOPPED;

    if (status == VERIFY_STOPPED) {
        root_first(v->root_sha, v->tip.store_id, v->root);
        status = PAWL_OK;
    }
    v->begun_pos = v->kept_pos = v->report->resumed = v->pos;
    return status;
}

typedef pawl_status (*check_fn)(struct verify *v);

static pawl_status verify_whole(struct verify *v)
{
    static const check_fn checks[] = {
        check_shard,
        check_log,
        check_tip,
        verify_all_archived,
        verify_all_definitions,
        verify_all_rows,
        verify_all_values,
        verify_all_erasures,
        verify_all_keys,
        verify_all_standing,
        verify_schema,
        verify_tables,
        NULL,
    };
    static const check_fn of_log[] = {
        check_log,         verify_all_archived, verify_all_definitions,
        verify_all_values, verify_all_erasures, NULL
    };
    bool is_of_log = v->request->log_alone || v->request->rebuild;
    pawl_status status = begin(v);

    for (const check_fn *check = is_of_log ? of_log : checks; status == PAWL_OK && *check; check++)
        status = (*check)(v);
    if (status == PAWL_OK && v->request->rebuild)
        status = verify_rebuild(v);
    if (status == VERIFY_STOPPED && v->request->keep && !v->archived_count)
        verify_keep_checkpoint(v);
    return status;
}

static pawl_status verify_open(struct verify *v)
{
    v->sha = sha_new(v->heap);
    v->root_sha = sha_new(v->heap);
    v->records = heap_new(v->heap, BATCH_SIZE * sizeof *v->records);
    v->values = heap_new(v->heap, VALUE_CACHE_SIZE * sizeof *v->values);
    v->replays = heap_new(v->heap, REPLAYS_KEPT * sizeof *v->replays);
    TRY_MEMORY(&v->scope, v->sha && v->root_sha && v->records && v->values && v->replays);
    TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, v->chains, v->chain_capacity, 1));
    v->chains[0] = (struct chain){ .number = 0 };
    v->chain_count = 1;
    return store_tip(v->store, &v->scope, &v->tip);
}

void verify_forget_chain(struct verify *v, struct chain *chain)
{
    verify_drop_fold(v, chain);
    verify_drop_replay(v, chain);
}

static void verify_close(struct verify *v)
{
    for (uint32_t i = 0; i < v->chain_count; i++)
        verify_forget_chain(v, &v->chains[i]);
    heap_free(v->heap, v->chains, v->chain_capacity * sizeof *v->chains);
    heap_free(v->heap, v->rules, v->rules_capacity * sizeof *v->rules);
    heap_free(v->heap, v->records, BATCH_SIZE * sizeof *v->records);
    heap_free(v->heap, v->values, VALUE_CACHE_SIZE * sizeof *v->values);
    heap_free(v->heap, v->replays, REPLAYS_KEPT * sizeof *v->replays);
    heap_free(v->heap, v->checked, v->checked_count * sizeof *v->checked);
    heap_free(v->heap, v->erasures, v->erasure_capacity * sizeof *v->erasures);
    verify_drop_standing(v);
    verify_drop_archived(v);
    heap_free(v->heap, v->keys, v->key_capacity * sizeof *v->keys);
    map_fini(&v->chain_map);
    map_fini(&v->rules_map);
    map_fini(&v->erasure_map);
    buf_fini(&v->body);
    sha_free(v->sha);
    sha_free(v->root_sha);
    arena_fini(&v->batch);
    scope_fini(&v->plans);
    scope_fini(&v->scope);
}

pawl_status verify_run(struct store *store, const struct heap *heap,
                       const struct verify_request *request, struct verify_report *report,
                       pawl_error *error)
{
    struct verify v = { .store = store,
                        .heap = heap,
                        .request = request,
                        .whole = request->instance == 0 && !request->definition.data,
                        .report = report };
    pawl_status status;

    ASSERT(store && heap && report);
    ASSERT(!request->flows || (request->flows->event_of && request->flows->memory_new));
    *report = (struct verify_report){ .valid = true };
    scope_init(&v.scope, heap, LIMIT_SCOPE);
    scope_init(&v.plans, heap, SIZE_MAX);
    arena_init(&v.batch, heap, LIMIT_SCOPE);
    buf_init(&v.body, heap, LIMIT_SCOPE);
    map_init(&v.chain_map, heap);
    map_init(&v.rules_map, heap);
    map_init(&v.erasure_map, heap);
    map_init(&v.archived_map, heap);
    map_init(&v.departed_map, heap);
    map_init(&v.last_map, heap);
    status = verify_open(&v);
    if (status == PAWL_OK)
        status = request->definition.data
                     ? verify_instances_of(&v, request->definition, request->version)
                 : v.whole ? verify_whole(&v)
                           : verify_one_instance(&v, request->instance);
    status = conclude(&v, status, error);
    verify_close(&v);
    return status;
}
