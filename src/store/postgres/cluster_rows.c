/* cluster_rows.c - see cluster_rows.h. */
#include "cluster_rows.h"
#include "postgres_int.h"
#include <stdio.h>
#include <unistd.h>

static const char put_node[] =
    "INSERT INTO pawl_node (node, address, version, beat, ttl_ms, state, secret)"
    " VALUES ($1, $2, $3, now(), $4, 1, $5)";
static const char drop_old_nodes[] =
    "DELETE FROM pawl_node WHERE state = 3 AND now() - beat > interval '1 day'";
static const char beat_node[] =
    "UPDATE pawl_node SET beat = now() WHERE node = $1 AND state <> 3 RETURNING 1";
/* The difference of two times is the same everywhere; what is added to one depends on a time zone,
 * and Citus compares no column with it in an UPDATE. */
static const char declare_node[] = "UPDATE pawl_node SET state = 3 WHERE node = $1 AND state <> 3"
                                   " AND now() - beat > ttl_ms * interval '1 ms'";
static const char bury_node[] = "UPDATE pawl_node SET state = 3 WHERE node = $1";
static const char node_sessions[] =
    "SELECT 1 FROM pg_stat_activity WHERE application_name = 'pawl/' || $1 LIMIT 1";
static const char node_is_live[] = "SELECT 1 FROM pawl_node WHERE node = $1 AND state <> 3";
static const char delete_node[] = "DELETE FROM pawl_node WHERE node = $1";

#define SHARD_COLUMNS                                                                              \
    "s.epoch, s.node, s.store_id, s.pos, s.flushed, s.at, s.last_instance, s.last_value,"          \
    " s.last_definition, s.test_now, s.root, (SELECT shards FROM pawl_store WHERE one = 1),"       \
    " (SELECT due FROM pawl_kept k WHERE k.shard = s.shard AND what = -11 AND id = '" CLOCK_WALL   \
    "'), (SELECT pos FROM pawl_kept k WHERE k.shard = s.shard AND what = -11 AND id ="             \
    " '" CLOCK_WALL                                                                                \
    "'), (SELECT address FROM pawl_node WHERE node = s.node), EXISTS (SELECT 1 FROM pawl_node n"   \
    " WHERE n.node = s.node AND n.state <> 3 AND n.beat + n.ttl_ms * interval '1 ms' >= now()),"   \
    " (SELECT store_id FROM pawl_store WHERE one = 1)"
static const char select_shard[] = "SELECT " SHARD_COLUMNS " FROM pawl_shard s WHERE shard = $1";
static const char lock_shard[] =
    "SELECT " SHARD_COLUMNS " FROM pawl_shard s WHERE shard = $1 FOR UPDATE OF s";
static const char claim_shard[] =
    "UPDATE pawl_shard SET node = $3, epoch = epoch + 1 WHERE shard = $1 AND epoch = $2"
    " RETURNING 1"; /* Citus returns nothing that depends on the time */
static const char free_shard[] =
    "UPDATE pawl_shard SET node = NULL, epoch = epoch + 1 WHERE shard = $1 AND epoch = $2";
static const char begin[] = "BEGIN", commit[] = "COMMIT";
static const char short_wait[] = "SET LOCAL lock_timeout = '1500ms'";
/* Never one that waits for a standby: ending it would show a commit that no standby has. */
static const char end_sessions[] =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"
    " AND pid <> pg_backend_pid() AND wait_event IS DISTINCT FROM 'SyncRep'";

void node_name(struct env *env, char out[NODE_MAX])
{
    char host[40] = "host";
    uint32_t random[2];

    (void)gethostname(host, sizeof host);
    host[sizeof host - 1] = '\0';
    env->random(env, random, sizeof random);
    snprintf(out, NODE_MAX, "%s-%ld/%08x%08x", host, (long)getpid(), random[0], random[1]);
}

/* Statements without rows that matter. */
static pawl_status run(struct pg_link *link, struct scope *scope, struct statement *statements,
                       size_t count, const char *doing)
{
    enum link_end end;

    TRY_MEMORY(scope, !scope->arena.failed);
    end = link_exchange(link, statements, count);
    return end == LINK_OK ? PAWL_OK : link_fail(link, scope, doing);
}

pawl_status node_register(struct pg_link *link, struct scope *scope, const char *node,
                          const char *address, const char *secret, int32_t ttl_ms)
{
    struct params params = { .arena = &scope->arena };
    struct statement statements[] = { { put_node, &params, NULL }, { drop_old_nodes, NULL, NULL } };
    pawl_status status;

    params_text(&params, str_of(node));
    params_text(&params, str_of(address));
    params_text(&params, STR(PAWL_VERSION));
    params_int4(&params, ttl_ms);
    params_text(&params, str_of(secret));
    status = run(link, scope, statements, 2, "registering this node");
    link_clear(link, statements, 2);
    return status;
}

static pawl_status run_on_node(struct pg_link *link, struct scope *scope, const char *text,
                               str node, uint32_t *rows)
{
    struct params params = { .arena = &scope->arena };
    struct statement statement = { text, &params, NULL };
    pawl_status status;

    params_text(&params, node);
    status = run(link, scope, &statement, 1, "looking after nodes");
    *rows = rows_count(&(struct pg_rows){ link->pq, statement.result, 0 });
    link_clear(link, &statement, 1);
    return status;
}

pawl_status node_beat(struct pg_link *link, struct scope *scope, const char *node, bool *is_over)
{
    uint32_t rows;

    TRY(run_on_node(link, scope, beat_node, str_of(node), &rows));
    *is_over = rows == 0;
    return PAWL_OK;
}

pawl_status node_declare(struct pg_link *link, struct scope *scope, str node, bool *is_dead)
{
    uint32_t rows;

    TRY(run_on_node(link, scope, declare_node, node, &rows));
    TRY(run_on_node(link, scope, node_is_live, node, &rows));
    *is_dead = rows == 0;
    return PAWL_OK;
}

pawl_status node_bury(struct pg_link *link, struct scope *scope, str node)
{
    uint32_t rows;

    return run_on_node(link, scope, bury_node, node, &rows);
}

pawl_status node_is_gone(struct pg_link *link, struct scope *scope, str node, str address,
                         bool *is_gone)
{
    uint32_t sessions = 1;

    *is_gone = false;
    if (!address.data || !address_refuses(address))
        return PAWL_OK;
    TRY(run_on_node(link, scope, node_sessions, node, &sessions));
    *is_gone = sessions == 0;
    return PAWL_OK;
}

pawl_status node_leave(struct pg_link *link, struct scope *scope, const char *node)
{
    uint32_t rows;

    return run_on_node(link, scope, delete_node, str_of(node), &rows);
}

/* ---- Shards ---- */

static void load_shard(const struct pg_rows *rows, struct scope *scope, uint32_t shard,
                       struct shard_row *out)
{
    struct store_tip *tip = &out->tip;

    *out = (struct shard_row){
        .is_there = true,
        .epoch = cell_i64(rows, 0),
        .node = cell_str(rows, 1, &scope->arena),
        .address = cell_str(rows, 14, &scope->arena),
        .is_owner_live = cell_i64(rows, 15) != 0,
        .tip = { .pos = cell_u64(rows, 3),
                 .flushed = cell_u64(rows, 4),
                 .at_ms = cell_i64(rows, 5),
                 .last_instance = cell_u64(rows, 6),
                 .last_value = cell_u64(rows, 7),
                 .last_definition = cell_u32(rows, 8),
                 .test_now_ms = cell_i64(rows, 9),
                 .stride = cell_u32(rows, 11),
                 .offset = shard,
                 .clock_offset_ms = cell_i64(rows, 12),
                 .clock_pos = cell_u64(rows, 13) },
    };
    cell_bytes(rows, 2, tip->store_id, STORE_ID_SIZE);
    cell_bytes(rows, tip->stride > 1 ? 16 : 2, tip->whole_id, STORE_ID_SIZE);
    cell_bytes(rows, 10, tip->root, SHA_SIZE);
}

static pawl_status take_shard(struct pg_link *link, struct scope *scope, uint32_t shard,
                              const struct statement *statement, struct shard_row *out)
{
    struct pg_rows rows = { link->pq, statement->result, 0 };

    *out = (struct shard_row){ 0 };
    if (rows_count(&rows) > 0)
        load_shard(&rows, scope, shard, out);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

pawl_status shard_read(struct pg_link *link, struct scope *scope, uint32_t shard,
                       struct shard_row *out)
{
    struct params params = { .arena = &scope->arena };
    struct statement statement = { select_shard, &params, NULL };
    pawl_status status;

    params_int4(&params, shard);
    status = run(link, scope, &statement, 1, "reading where the log ends");
    if (status == PAWL_OK)
        status = take_shard(link, scope, shard, &statement, out);
    link_clear(link, &statement, 1);
    return status;
}

pawl_status shard_lock(struct pg_link *link, struct scope *scope, uint32_t shard,
                       struct shard_row *out)
{
    struct params params = { .arena = &scope->arena };
    struct statement statements[] = { { begin, NULL, NULL }, { lock_shard, &params, NULL } };
    pawl_status status;

    params_int4(&params, shard);
    status = run(link, scope, statements, 2, "taking the turn to write");
    if (status == PAWL_OK)
        status = take_shard(link, scope, shard, &statements[1], out);
    link_clear(link, statements, 2);
    return status;
}

static pawl_status end_old_sessions(struct pg_link *link, struct scope *scope, const char *old)
{
    uint32_t rows;

    return run_on_node(link, scope, end_sessions, str_of(old), &rows);
}

static pawl_status try_claim(struct pg_link *link, struct scope *scope, uint32_t shard,
                             int64_t seen, const char *node, struct shard_row *out, bool *is_locked)
{
    struct params params = { .arena = &scope->arena }, which = { .arena = &scope->arena };
    struct statement statements[] = { { begin, NULL, NULL },
                                      { short_wait, NULL, NULL },
                                      { claim_shard, &params, NULL },
                                      { select_shard, &which, NULL },
                                      { commit, NULL, NULL } };
    pawl_status status;

    *out = (struct shard_row){ 0 };
    params_int4(&params, shard);
    params_int(&params, seen);
    params_text(&params, str_of(node));
    params_int4(&which, shard);
    status = run(link, scope, statements, 5, "claiming the shard");
    if (status == PAWL_OK && rows_count(&(struct pg_rows){ link->pq, statements[2].result, 0 }) > 0)
        status = take_shard(link, scope, shard, &statements[3], out);
    link_clear(link, statements, 5);
    *is_locked = strcmp(link->state, "55P03") == 0;
    if (status != PAWL_OK && link->conn)
        (void)link_script(link, "ROLLBACK");
    return status;
}

#define CLAIM_TRIES 3

pawl_status shard_claim(struct pg_link *link, struct scope *scope, uint32_t shard, int64_t seen,
                        const char *node, const char *old, struct shard_row *out)
{
    pawl_status status = PAWL_OK;
    bool is_locked;

    for (int i = 0; i < CLAIM_TRIES; i++) {
        status = try_claim(link, scope, shard, seen, node, out, &is_locked);
        if (status == PAWL_OK || !is_locked)
            break;
        if (old)
            TRY(end_old_sessions(link, scope, old));
    }
    if (status == PAWL_OK && !out->is_there)
        return scope_fail(scope, PAWL_CONFLICT, "another node has claimed this shard meanwhile");
    return status;
}

pawl_status shard_release(struct pg_link *link, struct scope *scope, uint32_t shard, int64_t epoch)
{
    struct params params = { .arena = &scope->arena };
    struct statement statement = { free_shard, &params, NULL };
    pawl_status status;

    params_int4(&params, shard);
    params_int(&params, epoch);
    status = run(link, scope, &statement, 1, "releasing the shard");
    link_clear(link, &statement, 1);
    return status;
}

pawl_status shard_look_at_owner(struct pg_link *link, struct scope *scope,
                                const struct shard_row *row, bool *is_dead)
{
    TRY(node_declare(link, scope, row->node, is_dead));
    if (*is_dead)
        return PAWL_OK;
    TRY(node_is_gone(link, scope, row->node, row->address, is_dead));
    return *is_dead ? node_bury(link, scope, row->node) : PAWL_OK;
}

pawl_status shard_take_from_dead(struct pg_link *link, struct scope *scope, struct shard_row *row,
                                 uint32_t shard)
{
    bool is_dead = false;

    TRY(shard_look_at_owner(link, scope, row, &is_dead));
    if (!is_dead)
        return PAWL_OK;
    TRY(shard_release(link, scope, shard, row->epoch));
    row->epoch++;
    row->node = STR_NONE;
    return PAWL_OK;
}
