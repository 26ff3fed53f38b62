/* engine.c - opening and closing: what is allocated once. */
#include "engine/parts.h"
#include "store/sqlite.h"
#include <stdio.h>

void engine_log(struct engine *engine, pawl_log_level level, const char *event, const char *text)
{
    if (engine->options.log)
        engine->options.log(engine->options.log_context, level, event, text);
}

struct toolbox *engine_toolbox(struct engine *engine)
{
    return engine->toolbox;
}

const struct heap *engine_heap(struct engine *engine)
{
    return engine->heap;
}

uint32_t engine_shards(struct engine *engine)
{
    uint32_t shards;

    guard_lock(&engine->lock);
    shards = engine->writer.tip.stride;
    guard_unlock(&engine->lock);
    return shards;
}

struct store *engine_store(struct engine *engine)
{
    return engine->store;
}

struct env *engine_env(struct engine *engine)
{
    return engine->env;
}

void engine_figures(struct engine *engine, struct engine_figures *out)
{
    struct health_finding findings[HEALTH_COUNT];

    *out = (struct engine_figures){ .commit = &engine->writer.commit_times,
                                    .failed = engine->writer.commits_failed,
                                    .conditions = engine_health(engine, findings),
                                    .wal_bytes = engine->store->wal_bytes,
                                    .retention_erased = engine->clock.retention_erased,
                                    .retention_held = engine->clock.retention_held };
    guard_lock(&engine->lock);
    out->position = engine->writer.tip.pos;
    out->flushed = engine->writer.tip.flushed;
    out->queued = engine->writer.queued;
    out->claims = waiting_count(engine);
    guard_unlock(&engine->lock);
}

bool engine_has_test_clock(const struct engine *engine)
{
    return engine->options.test_clock;
}

static void say_lost(void *context, const char *words)
{
    engine_log(context, PAWL_LOG_ERROR, "store.lost", words);
}

static pawl_status open_store(struct engine *engine, const char *url, struct scope *scope)
{
    struct store_options options = { .own = engine->options.own,
                                     .member = engine->options.member,
                                     .address = engine->options.address,
                                     .secret = engine->options.secret,
                                     .create = !engine->options.must_exist,
                                     .shard = engine->options.shard,
                                     .beside =
                                         engine->options.home ? engine->options.home->store : NULL,
                                     .lost = say_lost,
                                     .lost_context = engine,
                                     .env = engine->env,
                                     .heap = engine->heap };

    if (engine->options.connection)
        return store_attach(engine->options.connection, &options, scope, &engine->store);
    return store_open(str_of(url), &options, scope, &engine->store);
}

static bool init_parts(struct engine *engine)
{
    guard_init(&engine->lock);
    guard_init(&engine->registry.lock);
    shell_init(engine);
    engine->work.waiting_end = &engine->work.waiting;
    scope_init(&engine->writer.scope, engine->heap, LIMIT_SCOPE);
    batch_init(&engine->writer.batch, engine->heap);
    map_init(&engine->actors.map, engine->heap);
    map_init(&engine->actors.untaken.map, engine->heap);
    starters_init(engine);
    arena_init(&engine->registry.code_arena, engine->heap, LIMIT_SCOPE);
    guard_init(&engine->clock.lock);
    guard_init(&engine->clock.keeping);
    guard_init(&engine->actors.deaths.lock);
    engine->clock.next_due_ms = engine->clock.next_wall_ms = engine->work.next_lease_ms = INT64_MAX;
    engine->clock.wakeup = (struct env_wakeup){ -1, -1, -1 };
    engine->clock.retention_ms = INT64_MAX;
    engine->clock.retention_is_stale = true;
    engine->health = health_new(engine->heap);
    engine->writer.sha = sha_new(engine->heap);
    engine->work.lease_sha = sha_new(engine->heap);
    map_init(&engine->work.lease_places, engine->heap);
    quotas_init(engine);
    engine->toolbox =
        toolbox_new(&(struct toolbox_options){ .heap = engine->heap,
                                               .env = engine->env,
                                               .allow_exec = engine->options.allow_exec,
                                               .log = engine->options.log,
                                               .log_context = engine->options.log_context });
    return heads_init(&engine->writer.heads, engine->heap) &&
           intern_init(&engine->writer.interned, engine->heap) && engine->writer.sha && engine->work.lease_sha &&
           engine->toolbox && engine->health;
}

static void free_parts(struct engine *engine)
{
    deaths_close(engine);
    store_close(engine->store);
    if (engine->toolbox)
        toolbox_free(engine->toolbox);
    steps_fini(engine);
    family_fini(engine);
    untaken_fini(engine);
    retention_fini(engine);
    refused_signals_fini(engine);
    starters_fini(engine);
    workers_fini(engine);
    actors_fini(engine);
    mail_fini(engine);
    definitions_fini(engine);
    if (engine->writer.heads.heap)
        heads_fini(&engine->writer.heads);
    if (engine->writer.interned.heap)
        intern_fini(&engine->writer.interned);
    batch_fini(&engine->writer.batch);
    scope_fini(&engine->writer.scope);
    sha_free(engine->writer.sha);
    sha_free(engine->work.lease_sha);
    health_free(engine->health);
    shell_fini(engine);
    guard_fini(&engine->registry.lock);
    guard_fini(&engine->clock.lock);
    guard_fini(&engine->clock.keeping);
    guard_fini(&engine->actors.deaths.lock);
    guard_fini(&engine->lock);
    env_wakeup_free(&engine->clock.wakeup);
    heap_free(engine->heap, engine, sizeof *engine);
}

static pawl_status begin_work(struct engine *engine, struct scope *scope)
{
    TRY(recover(engine, scope));
    engine_ask_witness(engine, scope);
    clock_start(engine);
    clock_realign(engine, scope);
    wakes_look(engine);
    if (!engine->options.own)
        return PAWL_OK;
    TRY(quotas_recover(engine, scope));
    TRY(recover_steps(engine, scope));
    if (engine->options.workers && !shell_start(engine))
        return scope_fail(scope, PAWL_NO_MEMORY, "could not start %u threads",
                          engine->options.workers + 2);
    return PAWL_OK;
}

pawl_status engine_open(const char *url, const struct engine_options *options, struct scope *scope,
                        struct engine **out)
{
    struct engine *engine = heap_new(options->heap, sizeof *engine);
    pawl_status status;

    if (!engine) {
        options->env->close(options->env);
        return scope_no_memory(scope);
    }
    engine->options = *options;
    bounds_init(&engine->options);
    engine->heap = options->heap;
    engine->env = options->env;
    status = init_parts(engine) ? PAWL_OK : scope_no_memory(scope);
    if (!status && options->tools)
        status = toolbox_set_rules(engine->toolbox, str_of(options->tools), scope);
    if (!status)
        status = retention_init(engine, scope);
    if (!status)
        status = open_store(engine, url, scope);
    if (!status)
        status = begin_work(engine, scope);
    if (status) {
        engine_close(engine);
        return status;
    }
    workers_init(engine);
    *out = engine;
    return PAWL_OK;
}

void engine_stop(struct engine *engine)
{
    shell_stop(engine);
}

void engine_close(struct engine *engine)
{
    struct env *env = engine->env;

    shell_stop(engine);
    if (engine->store && !engine->writer.broken) {
        guard_lock(&engine->lock);
        while (engine_work(engine, NULL, WORK_WAITING))
            continue;
        guard_unlock(&engine->lock);
        engine_sweep(engine);
    }
    mail_drop_all(engine);
    free_parts(engine);
    env->close(env);
}
