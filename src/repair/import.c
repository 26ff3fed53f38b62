/* import.c - an export file taken in: what is there already is left alone, the rest is verified in
 * memory, then written as one commit. */
#include "base/limits.h"
#include "flow/flow.h"
#include "model/shard.h"
#include "repair/import_int.h"

pawl_status import_open(const char *url, struct scope *scope, struct import **out)
{
    struct import *import = ARENA_NEW(&scope->arena, struct import);
    pawl_status status;

    TRY_MEMORY(scope, import);
    import->scope = scope;
    map_init(&import->by_commitment, &heap_libc);
    map_init(&import->by_number, &heap_libc);
    map_init(&import->by_body, &heap_libc);
    import->sha = sha_new(&heap_libc);
    import->env = env_os_new(&heap_libc);
    import->owned = ARENA_NEW(&scope->arena, struct owned);
    status = import->sha && import->env && import->owned ? PAWL_OK : scope_no_memory(scope);
    if (status == PAWL_OK) {
        status = owned_make(import->owned, url, NULL, 0);
        if (status != PAWL_OK)
            scope->error = import->owned->scope.error;
    }
    if (status == PAWL_OK)
        *out = import;
    else
        import_close(import);
    return status;
}

void import_close(struct import *import)
{
    pawl_error ignored;

    if (!import)
        return;
    if (import->owned && import->owned->env)
        (void)owned_close(import->owned, PAWL_OK, &ignored);
    if (import->env)
        import->env->close(import->env);
    sha_free(import->sha);
    map_fini(&import->by_commitment);
    map_fini(&import->by_number);
    map_fini(&import->by_body);
}

void import_not_before(struct import *import, int64_t now_ms)
{
    import->not_before_ms = now_ms;
}

void import_store_id(const struct import *import, uint8_t out[STORE_ID_SIZE])
{
    memcpy(out, import->owned->tip.store_id, STORE_ID_SIZE);
}

uint64_t import_count(const struct import *import)
{
    return import->record_count;
}

/* ---- What is there already ---- */

static bool count_one(void *context, const struct record *record)
{
    (void)record;
    ++*(uint64_t *)context;
    return false;
}

/* The last hash covers all before it. */
static pawl_status find_there(struct import *import, struct carried_instance *one)
{
    struct store *store =
        import->owned->shards[shard_of_number(one->row.number, import->owned->count)];
    struct scope *scope = import->scope;
    struct instance_row row;
    struct head_row head;
    struct record last;
    uint64_t count = 0;
    char id[ID_SIZE + 1];
    pawl_status status = store_instance(store, scope, one->row.number, &row);

    if (status != PAWL_OK)
        return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    TRY(store_head(store, scope, one->row.number, false, &head));
    TRY(store_record(store, scope, head.pos, &last));
    TRY(store_walk(store, scope, &(struct chain_query){ .pos = head.pos, .skip_from = UINT64_MAX },
                   count_one, &count));
    id_print(one->row.number, row.random, id);
    if (strcmp(id, one->id) != 0)
        return scope_fail(scope, PAWL_CONFLICT,
                          "instance %s: its number belongs to another one here, %s; an id is for "
                          "ever, so import it into a store where the number is free",
                          one->id, id);
    one->is_there = count == one->record_count && memcmp(last.hash, one->last_hash, SHA_SIZE) == 0;
    if (one->is_there)
        return PAWL_OK;
    return scope_fail(scope, PAWL_CONFLICT,
                      "instance %s is here already with other records: %llu here, %llu in the file",
                      one->id, (unsigned long long)count, (unsigned long long)one->record_count);
}

/* A family lies in one shard, so that what one member does to another is one commit. */
static pawl_status check_families(struct import *import)
{
    const uint32_t shards = import->owned->count;

    for (uint32_t i = 0; i < import->instance_count; i++) {
        const struct carried_instance *one = &import->instances[i];
        uint32_t shard = shard_of_number(one->row.number, shards),
                 of_parent = shard_of_number(one->row.parent, shards);

        if (one->row.parent && shard != of_parent)
            return scope_fail(import->scope, PAWL_CONFLICT,
                              "instance %s: its number belongs to shard %u of this store, that of "
                              "its parent %s to shard %u; a family lies in one shard, so import "
                              "it into a store of one",
                              one->id, shard, one->parent, of_parent);
    }
    return PAWL_OK;
}

/* What is cut off at the end of a chain no hash can tell. */
static pawl_status check_counts(struct import *import)
{
    for (uint32_t i = 0; i < import->instance_count; i++) {
        const struct carried_instance *one = &import->instances[i];

        if (one->record_count == 0 || one->record_count != one->said_count)
            return scope_fail(import->scope, PAWL_INVALID_REQUEST,
                              "instance %s: expected %llu records, found %llu in the file", one->id,
                              (unsigned long long)one->said_count,
                              (unsigned long long)one->record_count);
    }
    return PAWL_OK;
}

/* Removing a value's bytes from a file is not enough to declare it erased. */
static pawl_status check_erased(struct import *import)
{
    char hex[2 * SHA_SIZE + 1];

    for (uint32_t i = 0; i < import->value_count; i++) {
        if (import->values[i].bytes.data || import->values[i].is_named)
            continue;
        sha_hex(import->values[i].commitment, SHA_SIZE, hex);
        return scope_fail(import->scope, PAWL_INVALID_REQUEST,
                          "value %s: expected its bytes, or an `erased` line that names it, found "
                          "neither",
                          hex);
    }
    return PAWL_OK;
}

/* ---- Verified in memory ---- */

static pawl_status put(struct import *import, struct store *store, struct scope *scope,
                       struct commit *commit)
{
    struct store_tip tip;
    pawl_status status;

    TRY(store_begin(store, scope, &tip));
    status = import_build(import, store, &tip, scope, commit);
    if (status != PAWL_OK || commit->record_count + commit->definition_count == 0) {
        store_rollback(store);
        return status;
    }
    return store_commit(store, scope, commit);
}

static pawl_status verify(struct store *store, struct scope *scope)
{
    struct verify_request request = { .flows = &flow_behavior };
    struct verify_report report;
    pawl_status status = verify_run(store, &heap_libc, &request, &report, &scope->error);

    if (status != PAWL_OK || report.valid)
        return status;
    return scope_fail(scope, PAWL_INVALID_REQUEST, "instance %s, entry %llu: %.200s",
                      report.bad_instance[0] ? report.bad_instance : "(none)",
                      (unsigned long long)report.bad_seq, report.what);
}

static pawl_status try_in_memory(struct import *import)
{
    struct store_options options = { .create = true, .heap = &heap_libc, .env = import->env };
    struct store *store = NULL;
    struct commit commit;
    struct scope scope;
    pawl_status status;

    scope_init(&scope, &heap_libc, SIZE_MAX);
    for (uint32_t i = 0; i < import->instance_count; i++)
        import->instances[i].is_taken = true;
    status = store_open(STR("memory:"), &options, &scope, &store);
    if (status == PAWL_OK)
        status = put(import, store, &scope, &commit);
    if (status == PAWL_OK)
        status = verify(store, &scope);
    store_close(store);
    return scope_leave(&scope, import->scope, status);
}

/* ---- The end ---- */

struct import_sums {
    uint64_t instances, records, definitions;
};

/* What belongs to this shard; the home shard has every definition. */
static pawl_status put_shard(struct import *import, uint32_t shard, struct import_sums *sums)
{
    struct commit commit = { 0 };
    struct scope scope;
    pawl_status status;

    for (uint32_t i = 0; i < import->instance_count; i++)
        import->instances[i].is_taken =
            !import->instances[i].is_there &&
            shard_of_number(import->instances[i].row.number, import->owned->count) == shard;
    scope_init(&scope, &heap_libc, SIZE_MAX);
    status = put(import, import->owned->shards[shard], &scope, &commit);
    sums->instances += commit.instance_count;
    sums->records += commit.record_count;
    if (shard == SHARD_HOME)
        sums->definitions = commit.definition_count;
    return scope_leave(&scope, import->scope, status);
}

pawl_status import_finish(struct import *import, struct buf *out)
{
    struct import_sums sums = { 0 };
    uint32_t there = 0;

    if (import->line == 0)
        return scope_fail(import->scope, PAWL_INVALID_REQUEST,
                          "expected " EXPORT_HEADER ", found an empty file");
    TRY(check_counts(import));
    TRY(check_erased(import));
    TRY(check_families(import));
    TRY(try_in_memory(import));
    for (uint32_t i = 0; i < import->instance_count; i++) {
        TRY(find_there(import, &import->instances[i]));
        there += import->instances[i].is_there;
    }
    for (uint32_t i = 0; i < import->owned->count; i++)
        TRY(put_shard(import, i, &sums));
    json_open(out, '{');
    json_put_u64(out, "instances", sums.instances);
    json_put_u64(out, "records", sums.records);
    json_put_u64(out, "definitions", sums.definitions);
    json_put_u64(out, "already_there", there);
    json_close(out, '}');
    return PAWL_OK;
}
