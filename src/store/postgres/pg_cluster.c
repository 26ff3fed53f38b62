/* pg_cluster.c - cluster.h over the rows of pawl_node and pawl_shard. Each verb is one round
 * trip. */
#include "base/assert.h"
#include "base/planted.h"
#include "postgres_int.h"
#include "store/cluster.h"
#include <stdio.h>

static const char beat_node[] =
    "UPDATE pawl_node SET beat = now(), state = $2, seen_home = $3, ready = $4"
    " WHERE node = $1 AND state <> 3 RETURNING 1";
static const char beat_blindly[] = /* a planted defect */
    "UPDATE pawl_node SET beat = now(), state = $2, seen_home = $3, ready = $4 WHERE node = $1"
    " RETURNING 1";
static const char list_nodes[] =
    "SELECT node, address, version, state, ttl_ms, coalesce(seen_home, 0),"
    " CASE WHEN state <> 3 AND beat + ttl_ms * interval '1 ms' >= now() THEN 1 ELSE 0 END,"
    " (extract(epoch FROM now() - beat) * 1000)::bigint, ready,"
    " (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM pawl_node"
    " WHERE state <> 3 OR beat > now() - interval '10 minutes' ORDER BY node LIMIT $1";
#define NOW_COLUMN 9 /* of each node's row */
static const char list_shards[] =
    "SELECT shard, node, epoch, pos, last_instance FROM pawl_shard ORDER BY shard";
static const char read_secret[] = "SELECT secret FROM pawl_store WHERE one = 1";

bool cluster_is_possible(const struct store *home)
{
    return home->ops == &postgres_store_ops;
}

const char *cluster_name(const struct store *home)
{
    return postgres_of((struct store *)(uintptr_t)home)->node->name;
}

int32_t cluster_ttl_ms(const struct store *home)
{
    return postgres_of((struct store *)(uintptr_t)home)->node->url.ttl_ms;
}

/* ---- Joining ---- */

/* Sessions tell whose they are by their name: those of the incarnation before are cut off. */
static void rename_link(struct pg_node *node, struct shared_link *shared)
{
    pthread_mutex_lock(&shared->lock);
    link_close(&shared->link);
    snprintf(shared->link.name, sizeof shared->link.name, "pawl/%s", node->name);
    pthread_mutex_unlock(&shared->lock);
}

static void take_name(struct pg_node *node)
{
    node_name(node->env, node->name);
    for (uint32_t i = 0; i < NODE_LINKS; i++) {
        rename_link(node, &node->lanes[i]);
        rename_link(node, &node->readers[i]);
    }
    link_close(&node->beater);
    snprintf(node->beater.name, sizeof node->beater.name, "pawl/%s", node->name);
}

pawl_status cluster_join(struct store *home, struct scope *scope, const struct cluster_me *me)
{
    struct pg_node *node = postgres_of(home)->node;

    take_name(node);
    TRY(link_connect(&node->beater, scope));
    TRY(node_register(&node->beater, scope, node->name, me->address, me->secret, node->url.ttl_ms));
    atomic_store(&node->is_over, false);
    return PAWL_OK;
}

pawl_status cluster_secret(struct store *home, struct scope *scope,
                           uint8_t out[CLUSTER_SECRET_SIZE])
{
    struct pg_node *node = postgres_of(home)->node;
    struct statement statement = { read_secret, NULL, NULL, false };
    enum link_end end;

    TRY(link_connect(&node->beater, scope));
    end = link_exchange(&node->beater, &statement, 1);
    memset(out, 0, CLUSTER_SECRET_SIZE);
    if (end == LINK_OK)
        cell_bytes(&(struct pg_rows){ node->beater.pq, statement.result, 0 }, 0, out,
                   CLUSTER_SECRET_SIZE);
    link_clear(&node->beater, &statement, 1);
    return end == LINK_OK ? PAWL_OK : link_fail(&node->beater, scope, "reading the secret");
}

/* ---- Beating ---- */

static void load_node(const struct pg_rows *rows, struct arena *arena, struct cluster_node *out)
{
    enum pg_node_state state = (enum pg_node_state)cell_u32(rows, 3);

    *out = (struct cluster_node){ .node = cell_str(rows, 0, arena),
                                  .address = cell_str(rows, 1, arena),
                                  .version = cell_str(rows, 2, arena),
                                  .is_leaving = state == NODE_LEAVING,
                                  .is_dead = state == NODE_DEAD,
                                  .ttl_ms = (int32_t)cell_i64(rows, 4),
                                  .seen_home = cell_u64(rows, 5),
                                  .is_live = cell_i64(rows, 6) != 0,
                                  .age_ms = cell_i64(rows, 7),
                                  .wants = cell_str(rows, 8, arena) };
}

static pawl_status load_nodes(struct pg_rows rows, struct scope *scope, struct cluster_view *out)
{
    uint32_t count = rows_count(&rows);

    out->nodes = ARENA_ARRAY(&scope->arena, struct cluster_node, count + 1);
    TRY_MEMORY(scope, out->nodes);
    for (rows.row = 0; (uint32_t)rows.row < count; rows.row++)
        load_node(&rows, &scope->arena, &out->nodes[out->node_count++]);
    return PAWL_OK;
}

static pawl_status load_shards(struct pg_rows rows, struct scope *scope, struct cluster_view *out)
{
    uint32_t count = rows_count(&rows);

    out->shards = ARENA_ARRAY(&scope->arena, struct cluster_shard, count + 1);
    TRY_MEMORY(scope, out->shards);
    for (rows.row = 0; (uint32_t)rows.row < count; rows.row++) {
        if (cell_u32(&rows, 0) != out->shard_count)
            return scope_fail(scope, PAWL_STORAGE_FAILURE,
                              "pawl_shard: expected shard %u, found %u", out->shard_count,
                              cell_u32(&rows, 0));
        out->shards[out->shard_count++] =
            (struct cluster_shard){ .node = cell_str(&rows, 1, &scope->arena),
                                    .epoch = cell_i64(&rows, 2),
                                    .pos = cell_u64(&rows, 3),
                                    .last_instance = cell_u64(&rows, 4) };
    }
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

static pawl_status load_view(struct pg_link *link, struct scope *scope,
                             const struct statement *statements, struct cluster_view *out)
{
    struct pg_rows first = { link->pq, statements[0].result, 0 };
    struct pg_rows nodes = { link->pq, statements[1].result, 0 };

    out->is_over = rows_count(&first) == 0 || rows_count(&nodes) == 0;
    if (out->is_over)
        return PAWL_OK;
    out->now_ms = cell_i64(&nodes, NOW_COLUMN);
    TRY(load_nodes(nodes, scope, out));
    return load_shards((struct pg_rows){ link->pq, statements[2].result, 0 }, scope, out);
}

#define NODES_LISTED 256

pawl_status cluster_beat(struct store *home, struct scope *scope, const struct cluster_me *me,
                         struct cluster_view *out)
{
    struct pg_node *node = postgres_of(home)->node;
    struct params mine = { .arena = &scope->arena }, most = { .arena = &scope->arena };
    struct statement statements[] = { { PLANTED(BLIND_RENEWAL) ? beat_blindly : beat_node, &mine,
                                        NULL, false },
                                      { list_nodes, &most, NULL, false },
                                      { list_shards, NULL, NULL, false } };
    enum link_end end;
    pawl_status status;

    *out = (struct cluster_view){ 0 };
    TRY(link_connect(&node->beater, scope));
    params_text(&mine, str_of(node->name));
    params_int4(&mine, me->is_leaving ? NODE_LEAVING : NODE_UP);
    params_int(&mine, (int64_t)me->seen_home);
    params_text(&mine, me->wants ? str_of(me->wants) : STR_NONE);
    params_int(&most, NODES_LISTED);
    TRY_MEMORY(scope, !scope->arena.failed);
    end = link_exchange(&node->beater, statements, 3);
    status = end == LINK_OK ? load_view(&node->beater, scope, statements, out)
                            : link_fail(&node->beater, scope, "beating");
    link_clear(&node->beater, statements, 3);
    if (status == PAWL_OK && out->is_over)
        atomic_store(&node->is_over, true);
    return status;
}

pawl_status cluster_declare(struct store *home, struct scope *scope, str name, str address,
                            bool *is_dead)
{
    struct pg_node *node = postgres_of(home)->node;

    TRY(link_connect(&node->beater, scope));
    return shard_look_at_owner(&node->beater, scope,
                               &(struct shard_row){ .node = name, .address = address }, is_dead);
}

/* ---- Claiming ---- */

static pawl_status claim_row(struct postgres_store *store, struct scope *scope,
                             const struct cluster_shard *seen, struct pg_link *link,
                             struct shard_row *row)
{
    char old[NODE_MAX + 8];
    pawl_status status;

    snprintf(old, sizeof old, "pawl/%.*s", STR_ARG(seen->node));
    TRY(link_connect(link, scope));
    TRY(shard_claim(link, scope, store->shard, seen->epoch, store->node->name,
                    seen->node.size ? old : NULL, row));
    status = pg_check_log(store, scope, row);
    if (status != PAWL_OK) {
        pawl_error kept = scope->error;

        (void)shard_release(link, scope, store->shard, row->epoch);
        scope->error = kept;
    }
    return status;
}

pawl_status cluster_claim(struct store *base, struct scope *scope, const struct cluster_shard *seen)
{
    struct postgres_store *store = postgres_of(base);
    struct shared_link *lane = pg_node_lane(store->node, store->shard);
    struct shard_row row;
    pawl_status status;

    ASSERT(store->is_member && !store->own && !store->in_turn);
    pthread_mutex_lock(&lane->lock);
    status = claim_row(store, scope, seen, &lane->link, &row);
    pthread_mutex_unlock(&lane->lock);
    TRY(status);
    store->lane = lane;
    store->writer = &lane->link;
    store->epoch = row.epoch;
    store->tip = row.tip;
    base->trouble = TROUBLE_NONE;
    atomic_store(&store->broken, false);
    atomic_fetch_add(&store->changes, 1);
    store->own = true;
    return PAWL_OK;
}

pawl_status cluster_release(struct store *base, struct scope *scope, bool is_lost)
{
    struct postgres_store *store = postgres_of(base);
    pawl_status status = PAWL_OK;

    ASSERT(store->own && !store->in_turn);
    if (!is_lost) {
        pthread_mutex_lock(&store->lane->lock);
        status = link_connect(store->writer, scope);
        if (status == PAWL_OK)
            status = shard_release(store->writer, scope, store->shard, store->epoch);
        pthread_mutex_unlock(&store->lane->lock);
    }
    store->own = false;
    store->lane = &store->alone;
    store->writer = &store->alone.link;
    base->trouble = TROUBLE_NONE;
    atomic_store(&store->broken, false);
    atomic_fetch_add(&store->changes, 1);
    return status;
}

void cluster_leave(struct store *home)
{
    struct pg_node *node = postgres_of(home)->node;
    struct scope scope;

    scope_init(&scope, node->heap, 0);
    if (link_connect(&node->beater, &scope) == PAWL_OK)
        (void)node_leave(&node->beater, &scope, node->name);
    scope_fini(&scope);
}
