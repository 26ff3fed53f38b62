/* shard_ids.c - a store of several shards: which ids a new one gets. Where the others lie is the
 * backend's to say. */
#include "base/assert.h"
#include "base/redact.h"
#include "model/shard.h"
#include "store/owner.h"
#include "store/store.h"

pawl_status store_new_ids(const struct store_options *options, struct scope *scope,
                          struct store_tip *out)
{
    const struct store_shard *as = &options->shard;
    struct sha *sha;

    *out = (struct store_tip){ .stride = as->shards > 1 ? as->shards : 1, .offset = as->shard };
    ASSERT(shards_are_valid(out->stride) && out->offset < out->stride);
    options->env->random(options->env, out->whole_id, STORE_ID_SIZE);
    if (as->whole_id)
        memcpy(out->whole_id, as->whole_id, STORE_ID_SIZE);
    else if (options->store_id) /* a copy */
        memcpy(out->whole_id, options->store_id, STORE_ID_SIZE);
    memcpy(out->store_id, out->whole_id, STORE_ID_SIZE);
    if (out->stride == 1)
        return PAWL_OK;
    sha = sha_new(options->heap);
    TRY_MEMORY(scope, sha);
    shard_store_id(sha, out->whole_id, as->shard, as->shards, out->store_id);
    sha_free(sha);
    return PAWL_OK;
}

pawl_status store_check_home(const struct store_tip *tip, struct scope *scope)
{
    if (tip->offset == SHARD_HOME)
        return PAWL_OK;
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "this is shard %u of a store that has %u: open the store, not its shard",
                      tip->offset, tip->stride);
}

pawl_status store_check_shard(struct store *store, struct scope *scope, uint32_t shard,
                              const struct store_tip *whole)
{
    struct store_tip tip;

    TRY(store_tip(store, scope, &tip));
    if (tip.offset == shard && tip.stride == whole->stride &&
        memcmp(tip.whole_id, whole->whole_id, STORE_ID_SIZE) == 0)
        return PAWL_OK;
    return scope_fail(
        scope, PAWL_STORAGE_FAILURE,
        "shard %u: expected that of this store, found shard %u of %u of %s store; put "
        "the right file back",
        shard, tip.offset, tip.stride,
        memcmp(tip.whole_id, whole->whole_id, STORE_ID_SIZE) ? "another" : "this");
}

/* One in memory without a name goes with its handle, and so do its shards. */
static pawl_status memory_url(struct scope *scope, str url, uint32_t shard, const char **out)
{
    struct buf text;

    buf_init(&text, scope->arena.heap, 4096);
    buf_str(&text, url);
    if (shard > 0 && url.size > strlen("memory:"))
        buf_fmt(&text, "#%u", shard);
    *out = buf_take(&text, &scope->arena).data;
    return *out ? PAWL_OK : scope_no_memory(scope);
}

static pawl_status postgres_shard_url(struct scope *scope, str url, uint32_t shard,
                                      const char **out)
{
    struct buf text;

    buf_init(&text, scope->arena.heap, 8192);
    buf_str(&text, str_before(url, '#'));
    buf_fmt(&text, "#%u", shard);
    *out = buf_take(&text, &scope->arena).data;
    return *out ? PAWL_OK : scope_no_memory(scope);
}

pawl_status store_shard_url(struct scope *scope, str url, uint32_t shard, bool make,
                            const char **out)
{
    if (shard > 0 && str_starts(url, STR("sqlite:")))
        return sqlite_shard_url(scope, url, shard, make, out);
    if (shard > 0 && url_is_postgres(url))
        return postgres_shard_url(scope, url, shard, out);
    if (shard == 0 || str_starts(url, STR("memory:")))
        return memory_url(scope, url, shard, out);
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "several shards: expected a store sqlite:FILE, postgres://HOST/DATABASE or "
                      "memory:, found '%.*s'",
                      STR_ARG(url_redact(&scope->arena, url)));
}
