/* ops_metrics.c - metrics.get: what the engine has counted, for Prometheus; and the world, for
 * surfaces that count as well. */
#include "api/ops_int.h"
#include "api/shards.h"
#include "api/station.h"
#include "api/world.h"
#include "env/env.h"
#include "env/trim.h"

/* All shards of this process together. */
static void add_figures(struct engine *engine, struct engine_figures *sum,
                        struct histogram *commits)
{
    struct engine_figures one;

    engine_figures(engine, &one);
    histogram_join(commits, one.commit);
    sum->failed += one.failed;
    sum->position += one.position;
    sum->flushed += one.flushed;
    sum->wal_bytes += one.wal_bytes;
    sum->conditions |= one.conditions;
    sum->queued += one.queued;
    sum->retention_erased += one.retention_erased;
    sum->retention_held += one.retention_held;
    if (one.claims > sum->claims) /* a claim waits on every shard */
        sum->claims = one.claims;
}

pawl_status op_metrics_get(struct op_call *call, struct buf *out)
{
    struct engine_figures figures = { 0 };
    struct histogram commits = { 0 };

    for (uint32_t i = 0; i < shards_count(call->p); i++)
        if (!station_of(call->p) || engine_owns(shard_at(call->p, i)->engine))
            add_figures(shard_at(call->p, i)->engine, &figures, &commits);
    call->content_type = "text/plain; version=0.0.4; charset=utf-8";
    figure_head(out, "pawl_commit_seconds", "histogram", "Time of a commit, its sync included.");
    figure_histogram(out, "pawl_commit_seconds", NULL, NULL, &commits);
    figure_alone(out, "pawl_records_total", "counter", "Records in the log.", figures.position);
    figure_alone(out, "pawl_commits_failed_total", "counter", "Commits that the store refused.",
                 figures.failed);
    figure_alone(out, "pawl_queue_depth", "gauge", "Decisions that wait for the next commit.",
                 figures.queued);
    figure_alone(out, "pawl_claims_waiting", "gauge", "Claims of workers that wait for a step.",
                 figures.claims);
    figure_alone(out, "pawl_flush_lag_records", "gauge",
                 "Records that the rows of instances lag behind the log.",
                 figures.position - figures.flushed);
    figure_alone(out, "pawl_health_conditions", "gauge",
                 "Conditions that /healthz reports; 0 is healthy.", figures.conditions);
    figure_alone(out, "pawl_wal_bytes", "gauge", "Size of the write-ahead log in use.",
                 figures.wal_bytes);
    figure_alone(out, "pawl_retention_erased_total", "counter",
                 "Instances that were erased because their definition says so.",
                 figures.retention_erased);
    figure_alone(out, "pawl_retention_held", "gauge",
                 "Instances whose time is over, and that are on hold.", figures.retention_held);
    station_print_figures(call->p, out);
    return PAWL_OK;
}

int64_t world_tick_us(pawl *p)
{
    struct env *env = engine_env(p->engine);

    return env->tick_us(env);
}

int64_t world_now_ms(pawl *p)
{
    struct env *env = engine_env(p->engine);

    return env->now_ms(env);
}

void world_random(pawl *p, void *out, size_t size)
{
    struct env *env = engine_env(p->engine);

    env->random(env, out, size);
}

bool world_secret(char out[WORLD_SECRET_SIZE])
{
    struct env *env = env_os_new(&heap_libc);
    uint8_t random[WORLD_SECRET_SIZE / 2];

    if (!env)
        return false;
    env->random(env, random, sizeof random);
    env->close(env);
    sha_hex(random, sizeof random, out);
    return true;
}

bool world_same_secret(const char *secret, const char *given, size_t given_size)
{
    size_t size = strlen(secret);
    unsigned char differ = given_size != size;

    for (size_t i = 0; i < size; i++)
        differ |= (unsigned char)(secret[i] ^ given[i < given_size ? i : 0]);
    return differ == 0;
}

void world_share_memory(void)
{
    memory_share_pools();
}
