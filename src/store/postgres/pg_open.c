/* pg_open.c - opening, reopening and closing a store in PostgreSQL. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/planted.h"
#include "postgres_int.h"
#include <stdio.h>

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

pawl_status postgres_fail_no_row(struct scope *scope, uint32_t shard)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "shard %u has no row in pawl_shard", shard);
}

pawl_status pg_check_log(const struct postgres_store *store, struct scope *scope,
                         const struct shard_row *row)
{
    const struct store_tip *known = &store->acknowledged, *found = &row->tip;

    if (found->pos > known->pos ||
        (found->pos == known->pos &&
         (found->pos == 0 || memcmp(found->root, known->root, SHA_SIZE) == 0)))
        return PAWL_OK;
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "shard %u went backwards: this node has acknowledged position %llu, and the "
                      "log %s %llu; a standby without it was promoted, or a backup restored. This "
                      "node leaves the shard alone until it is started again",
                      store->shard, (unsigned long long)known->pos,
                      known->pos > found->pos ? "ends at" : "is another one at",
                      (unsigned long long)found->pos);
}

/* ---- Owning ---- */

/* A shard whose owner is dead or gone is free. An owner whose lease has run out is declared dead
 * first. */
static pawl_status claim(struct postgres_store *store, struct scope *scope)
{
    struct pg_link *link = store->writer;
    struct shard_row row;
    char old[NODE_MAX + 8] = "";
    bool is_dead = true;

    TRY(shard_read(link, scope, store->shard, &row));
    if (!row.is_there)
        return postgres_fail_no_row(scope, store->shard);
    if (row.node.data) {
        TRY(shard_look_at_owner(link, scope, &row, &is_dead));
        snprintf(old, sizeof old, "pawl/%.*s", STR_ARG(row.node));
    }
    if (!is_dead)
        return postgres_fail_owned(scope, &row);
    TRY(shard_claim(link, scope, store->shard, row.epoch, store->node->name, *old ? old : NULL,
                    &row));
    store->epoch = row.epoch;
    store->tip = row.tip;
    return PAWL_OK;
}

static pawl_status own(struct postgres_store *store, struct scope *scope, const char *secret)
{
    pawl_status status;

    TRY(link_connect(store->writer, scope));
    TRY(pg_node_own(store->node, store->writer, scope, secret, store));
    status = claim(store, scope);
    if (status == PAWL_CONFLICT) /* two started at once */
        status = scope_fail(scope, PAWL_IN_USE, "another node has just claimed this store");
    if (status != PAWL_OK) {
        pawl_error kept = scope->error;

        pg_node_disown(store->node, store->writer, store);
        scope->error = kept;
    }
    return status;
}

/* ---- Opening ---- */

static void postgres_free(struct postgres_store *store)
{
    shared_link_fini(&store->alone);
    for (int i = 0; store->node && i < AHEAD_THREADS; i++)
        pg_ahead_fini(&store->ahead[i]);
    if (store->node)
        pg_node_leave(store->node);
    sha_free(store->sha);
    sha_free(store->write_sha);
    pthread_mutex_destroy(&store->ahead_lock);
    scope_fini(&store->work);
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
    store->is_member = options->member && !options->own;
    store->base.may_return = true;
    store->lost = options->lost;
    store->lost_context = options->lost_context;
    scope_init(&store->work, store->heap, WRITE_LIMIT);
    shared_link_init(&store->alone);
    pthread_mutex_init(&store->ahead_lock, NULL);
    for (int i = 0; i < AHEAD_THREADS; i++)
        pg_ahead_init(&store->ahead[i], store);
    store->sha = sha_new(store->heap);
    store->write_sha = sha_new(store->heap);
    return store;
}

static pawl_status fail_shard(struct postgres_store *store, struct scope *scope)
{
    return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: the store has shards 0 to %u, found #%u",
                      store->node->url.shown, store->node->shards - 1, store->shard);
}

/* The node is that of a shard which is open already, or a new one. */
static pawl_status find_node(struct postgres_store *store, struct scope *scope, str rest,
                             const struct store_options *options)
{
    if (!options->beside) {
        TRY(pg_node_new(options, scope, rest, &store->node));
        store->shard = store->node->url.shard;
    } else {
        struct pg_url url;

        ASSERT(options->beside->ops == &postgres_store_ops);
        TRY(pg_url_read(scope, &scope->arena, rest, &url));
        store->node = postgres_of(options->beside)->node;
        store->shard = url.shard;
        pg_node_use(store->node);
    }
    store->reader = &pg_node_reader(store->node, store->shard)->link;
    store->read_lock = &pg_node_reader(store->node, store->shard)->lock;
    pg_node_link(store->node, &store->alone.link, SHARE_DEADLINE_MS);
    store->lane = options->own ? pg_node_lane(store->node, store->shard) : &store->alone;
    store->writer = &store->lane->link;
    return PAWL_OK;
}

/* Making a schema may take longer than a commit. */
static pawl_status find_schema(struct postgres_store *store, struct scope *scope,
                               const struct store_options *options)
{
    int deadline_ms = store->writer->deadline_ms;
    pawl_status status;

    if (store->node->shards > 0)
        return PAWL_OK;
    store->writer->deadline_ms = SHARE_DEADLINE_MS;
    status = link_connect(store->writer, scope);
    if (status == PAWL_OK)
        status = postgres_find_schema(store, scope, options);
    store->writer->deadline_ms = deadline_ms;
    return status;
}

static pawl_status prepare(struct postgres_store *store, struct scope *scope, str rest,
                           const struct store_options *options)
{
    pawl_status status;

    TRY_MEMORY(scope, store->sha && store->write_sha);
    TRY(find_node(store, scope, rest, options));
    pthread_mutex_lock(&store->lane->lock);
    status = find_schema(store, scope, options);
    if (status == PAWL_OK && store->shard >= store->node->shards)
        status = fail_shard(store, scope);
    if (status == PAWL_OK && options->own)
        status = own(store, scope, options->secret);
    pthread_mutex_unlock(&store->lane->lock);
    return status;
}

static pawl_status postgres_open(str rest, const struct store_options *options, struct scope *scope,
                                 struct store **out)
{
    struct postgres_store *store = postgres_new(options);
    pawl_status status;

    TRY_MEMORY(scope, store);
    status = prepare(store, scope, rest, options);
    if (status != PAWL_OK) {
        postgres_free(store);
        return status;
    }
    *out = &store->base;
    return PAWL_OK;
}

static void give_back(struct postgres_store *store)
{
    struct scope scope;

    scope_init(&scope, store->heap, 0);
    pthread_mutex_lock(&store->lane->lock);
    if (store->writer->conn && !atomic_load(&store->broken))
        (void)shard_release(store->writer, &scope, store->shard, store->epoch);
    if (!store->is_member)
        pg_node_disown(store->node, store->writer, store);
    pthread_mutex_unlock(&store->lane->lock);
    scope_fini(&scope);
}

static void postgres_close(struct store *base)
{
    struct postgres_store *store = postgres_of(base);

    if (store->in_turn)
        postgres_rollback(base);
    if (store->own)
        give_back(store);
    postgres_free(store);
}

/* ---- Reopening: claiming, never looking ---- */

/* Ours still: epoch + 1 waits for what was under way, and keeps out what has not begun. */
static pawl_status reclaim(struct postgres_store *store, struct scope *scope)
{
    struct shard_row row;
    pawl_status status = PLANTED(LOOK_NOT_CLAIM)
                             ? shard_read(store->writer, scope, store->shard, &row)
                             : shard_claim(store->writer, scope, store->shard, store->epoch,
                                           store->node->name, NULL, &row);

    if (status == PAWL_CONFLICT) {
        store->base.trouble = TROUBLE_TAKEN;
        return scope_fail(scope, PAWL_IN_USE,
                          "another node has claimed this shard: nothing more is written here");
    }
    TRY(status);
    TRY(pg_check_log(store, scope, &row));
    store->epoch = row.epoch;
    store->tip = row.tip;
    return PAWL_OK;
}

/* The row of a shared writer is free once its last transaction has ended. */
static pawl_status wait_for_turn(struct postgres_store *store, struct scope *scope)
{
    struct shard_row row;

    TRY(shard_lock(store->writer, scope, store->shard, &row));
    return link_script(store->writer, "ROLLBACK") == LINK_OK
               ? PAWL_OK
               : link_fail(store->writer, scope, "reopening");
}

static pawl_status postgres_reopen(struct store *base, struct scope *scope)
{
    struct postgres_store *store = postgres_of(base);
    pawl_status status;

    ASSERT(!store->in_turn);
    pthread_mutex_lock(&store->lane->lock);
    link_close(store->writer);
    status = link_connect(store->writer, scope);
    if (status == PAWL_OK)
        status = store->own ? reclaim(store, scope) : wait_for_turn(store, scope);
    pthread_mutex_unlock(&store->lane->lock);
    TRY(status);
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
