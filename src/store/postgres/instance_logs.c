/* instance_logs.c - all that restoring an instance takes, in one or two round trips: its rows and
 * the last records of its chain are read ahead, and gathered from there as every store gathers
 * them. What is not among them is read when it is asked for, a chain in long pieces. */
#include "base/limits.h"
#include "postgres_int.h"

#define CHAIN_PIECE 128 /* records */

/* $2: positions where chains begin; $3: how many records of each. */
#define CHAINS                                                                                     \
    "WITH RECURSIVE c(row, i, next, bytes, n) AS ("                                                \
    " SELECT 0::bigint, 0, p, 0::bigint, 0 FROM unnest($2) q(p)"                                   \
    " UNION ALL SELECT e.pos, e.k, e.next, e.bytes, c.n + 1 FROM c, LATERAL ("                     \
    "SELECT l.pos, k, CASE WHEN l.what[k] >= 0 AND l.seq[k] <= 1 THEN 0"                           \
    " WHEN l.prev[k] < c.next THEN l.prev[k] ELSE 0 END AS next,"                                  \
    " c.bytes + coalesce(length(l.body[k]), 0) AS bytes FROM " PG_LOG_AT(                          \
        "c.next") " WHERE k <= l.n) e WHERE c.next > 0 AND c.n < $3 AND c.bytes < 1048576)"
static const char select_chains[] =
    CHAINS " SELECT " PG_RECORD_COLUMNS " FROM c JOIN pawl_log l ON l.shard = $1 AND l.pos ="
           " c.row,"
           " LATERAL (SELECT c.i) x(k) WHERE c.n > 0";
/* Payloads by size: what is too large is left for its own read. */
static const char select_chain_values[] =
    CHAINS " SELECT " PG_VALUE_COLUMNS " FROM pawl_value v WHERE v.shard = $1"
           " AND coalesce(length(v.bytes), 0) < 65536 AND v.id IN (SELECT unnest("
           "ARRAY[l.actor[c.i], l.payload[c.i], l.reason[c.i]]) FROM c JOIN pawl_log l"
           " ON l.shard = $1 AND l.pos = c.row WHERE c.n > 0)";
static const char select_instance_values[] =
    "SELECT " PG_VALUE_COLUMNS " FROM pawl_value v WHERE v.shard = $1"
    " AND coalesce(length(v.bytes), 0) < 65536 AND v.id IN (SELECT unnest("
    "ARRAY[creator, subject, input, metadata]) FROM pawl_instance WHERE shard = $1"
    " AND number = ANY ($2))";

struct logs {
    struct postgres_store *store;
    struct reading_ahead ahead;
    bool is_whole;
};

/* The find of instance_log_gather() has no context of its own. */
static _Thread_local struct logs *gathering;

static pawl_status read_pieces(struct logs *logs, struct scope *scope, const uint64_t *positions,
                               uint32_t count)
{
    struct params params = { .arena = &scope->arena };
    struct statement statements[] = { { select_chains, &params, NULL, false },
                                      { select_chain_values, &params, NULL, false } };

    params_int4(&params, logs->store->shard);
    params_numbers(&params, positions, count);
    params_int4(&params, CHAIN_PIECE);
    TRY(pg_exchange(logs->store, scope, statements, 2));
    (void)pg_ahead_add(&logs->ahead, AHEAD_RECORDS, &statements[0].result);
    (void)pg_ahead_add(&logs->ahead, AHEAD_VALUES, &statements[1].result);
    link_clear(logs->store->reader, statements, 2); /* what was not taken is read one by one */
    return PAWL_OK;
}

static pawl_status find_gathered(struct store *base, struct scope *scope,
                                 const struct find_query *query, void *out)
{
    struct logs *logs = gathering;
    pawl_status status;

    if (pg_ahead_find(&logs->ahead, scope, query, out, &status))
        return status;
    if (query->kind != FIND_RECORD)
        return postgres_find_row(base, scope, query, out);
    TRY(read_pieces(logs, scope, &query->by.number, 1));
    if (pg_ahead_find(&logs->ahead, scope, query, out, &status))
        return status;
    return postgres_find_by(logs->store, scope, query, out);
}

/* Heads first, where they are not known: the chains begin there. */
static pawl_status read_log_rows(struct logs *logs, struct scope *scope,
                             const struct instance_log_query *queries, uint32_t count,
                             const uint64_t *numbers)
{
    static const struct {
        enum ahead_kind kind;
        const char *text;
    } all[] = { { AHEAD_HEADS, pg_select_heads },
                { AHEAD_ROWS, pg_select_instances },
                { AHEAD_VALUES, select_instance_values },
                { AHEAD_SNAPSHOTS, pg_select_snapshots },
                { AHEAD_LIVE, pg_select_live } };
    uint32_t asked = queries[0].is_whole ? 5 : 4;
    struct params params = { .arena = &scope->arena };
    struct statement statements[5];

    params_int4(&params, logs->store->shard);
    params_numbers(&params, numbers, count);
    for (uint32_t i = 0; i < asked; i++)
        statements[i] = (struct statement){ all[i].text, &params, NULL, false };
    TRY(pg_exchange(logs->store, scope, statements, asked));
    for (uint32_t i = 0; i < asked; i++)
        if (!pg_ahead_add(&logs->ahead, all[i].kind, &statements[i].result)) {
            link_clear(logs->store->reader, statements, asked);
            return scope_no_memory(scope);
        }
    pg_ahead_note_missing(&logs->ahead, AHEAD_ROWS, numbers, count);
    pg_ahead_note_missing(&logs->ahead, AHEAD_SNAPSHOTS, numbers, count);
    if (queries[0].is_whole)
        pg_ahead_note_missing(&logs->ahead, AHEAD_LIVE, numbers, count);
    return PAWL_OK;
}

/* Where the chains begin: as the caller knows, or as the head rows say. */
static uint32_t begin_chains(struct logs *logs, struct scope *scope,
                             const struct instance_log_query *queries, uint32_t count,
                             uint64_t *positions)
{
    uint32_t found = 0;
    struct head_row head;
    pawl_status status;

    for (uint32_t i = 0; i < count; i++) {
        const struct find_query query = { .kind = FIND_HEAD,
                                          .by.head = { queries[i].instance, true } };

        if (queries[i].is_known)
            positions[found++] = queries[i].head.pos;
        else if (queries[i].trust_rows &&
                 pg_ahead_find(&logs->ahead, scope, &query, &head, &status) && status == PAWL_OK)
            positions[found++] = head.pos;
    }
    return found;
}

static pawl_status gather(struct logs *logs, struct scope *scope,
                          struct instance_log_query *queries, uint32_t count)
{
    uint64_t *numbers = ARENA_ARRAY(&scope->arena, uint64_t, 2 * (size_t)count);
    uint32_t chains;

    TRY_MEMORY(scope, numbers);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = queries[i].instance;
    TRY(read_log_rows(logs, scope, queries, count, numbers));
    chains = begin_chains(logs, scope, queries, count, numbers + count);
    if (chains > 0)
        TRY(read_pieces(logs, scope, numbers + count, chains));
    return instance_log_gather(find_gathered, &logs->store->base, scope, queries, count);
}

pawl_status postgres_instance_logs(struct store *base, struct scope *scope,
                                   struct instance_log_query *queries, uint32_t count)
{
    struct logs logs = { .store = postgres_of(base) }, *outer = gathering;
    pawl_status status;

    TRY(postgres_check(logs.store, scope));
    pg_ahead_init(&logs.ahead, logs.store);
    gathering = &logs;
    status = gather(&logs, scope, queries, count);
    gathering = outer;
    pg_ahead_fini(&logs.ahead);
    return status;
}

/* The live rows of an instance that is being gathered. */
bool gathered_live(struct scope *scope, uint64_t instance, struct live *out, pawl_status *status)
{
    return gathering && pg_ahead_live(&gathering->ahead, scope, instance, out, status);
}
