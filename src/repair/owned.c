/* owned.c - see owned.h. */
#include "repair/owned.h"
#include "base/limits.h"
#include "env/env.h"

static pawl_status open_shard(struct owned *owned, const char *url, uint32_t shard,
                              struct store_options options)
{
    const char *at;

    options.shard = (struct store_shard){ shard, owned->count, owned->tip.whole_id };
    options.beside = owned->store;
    options.create = options.create && owned->tip.pos == 0; /* else a missing file is a lost one */
    TRY(store_shard_url(&owned->scope, str_of(url), shard, options.create, &at));
    TRY(store_open(str_of(at), &options, &owned->scope, &owned->shards[shard]));
    return store_check_shard(owned->shards[shard], &owned->scope, shard, &owned->tip);
}

static pawl_status open_all(struct owned *owned, const char *url,
                            const struct store_options *options)
{
    TRY(store_open(str_of(url), options, &owned->scope, &owned->store));
    TRY(store_tip(owned->store, &owned->scope, &owned->tip));
    TRY(store_check_home(&owned->tip, &owned->scope));
    owned->shards = ARENA_ARRAY(&owned->scope.arena, struct store *, owned->tip.stride);
    TRY_MEMORY(&owned->scope, owned->shards);
    owned->count = owned->tip.stride;
    owned->shards[0] = owned->store;
    for (uint32_t i = 1; i < owned->count; i++)
        TRY(open_shard(owned, url, i, *options));
    return PAWL_OK;
}

static pawl_status begin(struct owned *owned, const char *url, struct store_options options)
{
    *owned = (struct owned){ .env = env_os_new(&heap_libc) };
    scope_init(&owned->scope, &heap_libc, LIMIT_SCOPE);
    options.own = true;
    options.env = owned->env;
    options.heap = &heap_libc;
    return owned->env ? open_all(owned, url, &options) : scope_no_memory(&owned->scope);
}

pawl_status owned_open(struct owned *owned, const char *url)
{
    return begin(owned, url, (struct store_options){ 0 });
}

pawl_status owned_make(struct owned *owned, const char *url, const uint8_t *store_id,
                       uint32_t shards)
{
    return begin(owned, url,
                 (struct store_options){
                     .create = true, .store_id = store_id, .shard = { .shards = shards } });
}

pawl_status owned_close(struct owned *owned, pawl_status status, pawl_error *error)
{
    for (uint32_t i = owned->count; i > 1; i--)
        store_close(owned->shards[i - 1]);
    store_close(owned->store);
    if (owned->env)
        owned->env->close(owned->env);
    if (status != PAWL_OK)
        *error = owned->scope.error;
    scope_fini(&owned->scope);
    return status;
}
