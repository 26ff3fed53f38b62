/* pg_open.c - opening, reopening and closing a store in PostgreSQL. */
#include "base/assert.h"
#include "base/limits.h"
#include "postgres_int.h"
#include <stdio.h>

void postgres_link(struct postgres_store *store, struct pg_link *link, int deadline_ms)
{
    *link = (struct pg_link){
        .pq = store->writer.pq, .url = &store->url, .env = store->env, .deadline_ms = deadline_ms
    };
    snprintf(link->name, sizeof link->name, "pawl/%s", store->node);
}

pawl_status postgres_check(struct postgres_store *store, struct scope *scope)
{
    if (!atomic_load(&store->broken))
        return PAWL_OK;
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the outcome of the last commit is not known: the store has to be"
                      " reopened");
}

pawl_status postgres_fail_owned(struct scope *scope, const struct shard_row *row)
{
    return scope_fail(scope, PAWL_IN_USE,
                      "the store is owned by node"
                      " %.*s%s%.*s",
                      STR_ARG(row->node), row->address.size ? " at " : "", STR_ARG(row->address));
}

/* ---- Owning ---- */

/* A shard whose owner is dead or gone is free. An owner whose lease has run out is declared dead
 * first. */
static pawl_status claim(struct postgres_store *store, struct scope *scope)
{
    struct pg_link *link = &store->writer;
    struct shard_row row;
    char old[NODE_MAX + 8] = "";
    bool is_dead = true;

    TRY(shard_read(link, scope, store->url.shard, &row));
    if (row.node.data) {
        TRY(shard_look_at_owner(link, scope, &row, &is_dead));
        snprintf(old, sizeof old, "pawl/%.*s", STR_ARG(row.node));
    }
    if (!is_dead)
        return postgres_fail_owned(scope, &row);
    TRY(shard_claim(link, scope, store->url.shard, row.epoch, store->node, *old ? old : NULL,
                    &row));
    store->epoch = row.epoch;
    store->tip = row.tip;
    return PAWL_OK;
}

static pawl_status own(struct postgres_store *store, struct scope *scope,
                       const struct store_options *options)
{
    pawl_status status;

    TRY(node_register(&store->writer, scope, store->node, store->address, options->secret,
                      store->url.ttl_ms));
    status = claim(store, scope);
    if (status == PAWL_CONFLICT) /* two started at once */
        status = scope_fail(scope, PAWL_IN_USE, "another node has just claimed this store");
    if (status == PAWL_OK)
        status = beat_start(store, scope);
    if (status != PAWL_OK) {
        pawl_error kept = scope->error;

        (void)node_leave(&store->writer, scope, store->node);
        scope->error = kept;
    }
    return status;
}

/* ---- Opening ---- */

static void postgres_free(struct postgres_store *store)
{
    if (store->writer.pq) {
        link_close(&store->writer);
        link_close(&store->reader);
        link_close(&store->beater);
    }
    for (int i = 0; i < AHEAD_THREADS; i++)
        pg_ahead_fini(&store->ahead[i]);
    sha_free(store->sha);
    sha_free(store->write_sha);
    pthread_mutex_destroy(&store->read_lock);
    pthread_mutex_destroy(&store->ahead_lock);
    scope_fini(&store->work);
    scope_fini(&store->kept);
    heap_free(store->heap, store, sizeof *store);
}

static struct postgres_store *postgres_new(const struct store_options *options)
{
    struct postgres_store *store = heap_new(options->heap, sizeof *store);

    if (!store)
        return NULL;
    store->base.ops = &postgres_store_ops;
    store->heap = options->heap;
    store->env = options->env;
    store->own = options->own;
    store->base.may_return = true;
    store->lost = options->lost;
    store->lost_context = options->lost_context;
    store->stop_fd = -1;
    scope_init(&store->kept, store->heap, 0);
    scope_init(&store->work, store->heap, WRITE_LIMIT);
    pthread_mutex_init(&store->read_lock, NULL); /* neither fails: no attributes */
    pthread_mutex_init(&store->ahead_lock, NULL);
    for (int i = 0; i < AHEAD_THREADS; i++)
        pg_ahead_init(&store->ahead[i], store);
    store->sha = sha_new(store->heap);
    store->write_sha = sha_new(store->heap);
    return store;
}

static pawl_status prepare(struct postgres_store *store, struct scope *scope, str rest,
                           const struct store_options *options)
{
    int deadline_ms;

    TRY_MEMORY(scope, store->sha && store->write_sha);
    TRY(pg_url_read(scope, &store->kept.arena, rest, &store->url));
    store->address =
        options->address ? arena_text(&store->kept.arena, str_of(options->address)) : NULL;
    TRY_MEMORY(scope, !store->kept.arena.failed);
    node_name(store->env, store->node);
    store->writer.pq = pq_get(scope);
    if (!store->writer.pq)
        return PAWL_STORAGE_FAILURE;
    deadline_ms = options->own ? store->url.ttl_ms / 4 * 3 : SHARE_DEADLINE_MS;
    postgres_link(store, &store->writer, SHARE_DEADLINE_MS); /* making a schema may take longer */
    postgres_link(store, &store->reader, READ_DEADLINE_MS);
    postgres_link(store, &store->beater, deadline_ms);
    TRY(link_connect(&store->writer, scope));
    TRY(postgres_find_schema(store, scope, options));
    store->writer.deadline_ms = deadline_ms;
    return PAWL_OK;
}

static pawl_status postgres_open(str rest, const struct store_options *options, struct scope *scope,
                                 struct store **out)
{
    struct postgres_store *store = postgres_new(options);
    pawl_status status;

    TRY_MEMORY(scope, store);
    status = prepare(store, scope, rest, options);
    if (status == PAWL_OK && options->own)
        status = own(store, scope, options);
    if (status != PAWL_OK) {
        postgres_free(store);
        return status;
    }
    *out = &store->base;
    return PAWL_OK;
}

static void postgres_close(struct store *base)
{
    struct postgres_store *store = postgres_of(base);
    struct scope scope;

    if (store->in_turn)
        postgres_rollback(base);
    beat_stop(store);
    scope_init(&scope, store->heap, 0);
    if (store->own && store->writer.conn && !atomic_load(&store->broken)) {
        (void)shard_release(&store->writer, &scope, store->url.shard, store->epoch);
        (void)node_leave(&store->writer, &scope, store->node);
    }
    scope_fini(&scope);
    postgres_free(store);
}

/* ---- Reopening: claiming, never looking ---- */

/* Ours still: epoch + 1 waits for what was under way, and keeps out what has not begun. */
static pawl_status reclaim(struct postgres_store *store, struct scope *scope)
{
    struct shard_row row;
    pawl_status status =
        shard_claim(&store->writer, scope, store->url.shard, store->epoch, store->node, NULL, &row);

    if (status == PAWL_CONFLICT) {
        store->base.trouble = TROUBLE_TAKEN;
        return scope_fail(scope, PAWL_IN_USE,
                          "another node has claimed this shard: nothing more is written here");
    }
    TRY(status);
    store->epoch = row.epoch;
    store->tip = row.tip;
    return PAWL_OK;
}

/* The row of a shared writer is free once its last transaction has ended. */
static pawl_status wait_for_turn(struct postgres_store *store, struct scope *scope)
{
    struct shard_row row;

    TRY(shard_lock(&store->writer, scope, store->url.shard, &row));
    return link_script(&store->writer, "ROLLBACK") == LINK_OK
               ? PAWL_OK
               : link_fail(&store->writer, scope, "reopening");
}

static pawl_status postgres_reopen(struct store *base, struct scope *scope)
{
    struct postgres_store *store = postgres_of(base);

    ASSERT(!store->in_turn);
    link_close(&store->writer);
    TRY(link_connect(&store->writer, scope));
    TRY(store->own ? reclaim(store, scope) : wait_for_turn(store, scope));
    atomic_fetch_add(&store->changes, 1);
    atomic_store(&store->broken, false);
    return PAWL_OK;
}

const struct store_ops postgres_store_ops = {
    .scheme = "postgres",
    .open = postgres_open,
    .close = postgres_close,
    .reopen = postgres_reopen,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .expect = postgres_expect,
    .sql = postgres_sql,
    .facts = postgres_facts,
    STORE_READ_OPS(postgres),
};
