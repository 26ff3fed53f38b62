/* pg_find.c - one row by what names it. Every statement takes several names, so that expect.c reads
 * many rows with the same ones. */
#include "base/assert.h"
#include "model/definition.h"
#include "postgres_int.h"

/* ---- The statements, and their rows ---- */

const char pg_select_heads[] =
    "SELECT h.inst, h.seq, h.pos, h.state, EXISTS (SELECT 1 FROM pawl_pause p WHERE p.shard = $1"
    " AND p.inst = h.inst) FROM pawl_head h WHERE h.shard = $1 AND h.inst = ANY ($2)";

void pg_read_head(const struct pg_rows *rows, struct arena *arena, void *out)
{
    (void)arena;
    *(struct head_row *)out = (struct head_row){
        .instance = cell_u64(rows, 0),
        .seq = cell_u32(rows, 1),
        .pos = cell_u64(rows, 2),
        .state = cell_u32(rows, 3),
        .paused = cell_i64(rows, 4) != 0,
    };
}

/* The records behind the flushed position are newer than the head row: the last of them gives seq
 * and position, the last entry among them the state. */
static const char select_true_head[] =
    "WITH f AS (SELECT flushed FROM pawl_shard WHERE shard = $1), t AS MATERIALIZED ("
    " SELECT u.seq, l.pos + u.o - 1 AS pos, u.what FROM f, pawl_log l,"
    " unnest(l.inst, l.seq, l.what) WITH ORDINALITY u(inst, seq, what, o) WHERE l.shard = $1"
    " AND l.pos > f.flushed - 128 AND l.inst @> $2 AND u.inst = $3 AND l.pos + u.o - 1 >"
    " f.flushed),"
    " moved AS (SELECT what FROM t WHERE what >= 0 ORDER BY pos DESC LIMIT 1)"
    " SELECT $3, coalesce(e.seq, h.seq), coalesce(e.pos, h.pos),"
    " coalesce((SELECT x.to_state FROM moved m, pawl_instance i, pawl_transition x WHERE"
    " i.shard = $1"
    " AND i.number = $3 AND x.shard = $1 AND x.definition = i.definition AND x.idx = m.what),"
    " h.state,"
    " (SELECT (convert_from(d.compiled, 'UTF8')::json ->> 'initial')::int FROM pawl_instance i,"
    " pawl_definition d WHERE i.shard = $1 AND i.number = $3 AND d.shard = $1"
    " AND d.id = i.definition), 0),"
    " EXISTS (SELECT 1 FROM pawl_pause p WHERE p.shard = $1 AND p.inst = $3)"
    " FROM (SELECT 1) one LEFT JOIN (SELECT * FROM t ORDER BY pos DESC LIMIT 1) e ON true"
    " LEFT JOIN pawl_head h ON h.shard = $1 AND h.inst = $3"
    " WHERE e.pos IS NOT NULL OR h.pos IS NOT NULL";

const char pg_select_instances[] =
    "SELECT " PG_INSTANCE_COLUMNS " FROM pawl_instance i WHERE i.shard = $1 AND i.number = ANY"
    " ($2)";

void pg_read_instance(const struct pg_rows *rows, struct arena *arena, void *out)
{
    struct instance_row *row = out;

    *row = (struct instance_row){
        .number = cell_u64(rows, 0),
        .definition = cell_u32(rows, 2),
        .instantiated_at_ms = cell_i64(rows, 3),
        .created_pos = cell_u64(rows, 4),
        .creator = cell_u64(rows, 5),
        .subject = cell_u64(rows, 6),
        .input = cell_u64(rows, 7),
        .metadata = cell_u64(rows, 8),
        .parent = cell_u64(rows, 9),
        .correlation = cell_str(rows, 10, arena),
        .labels = cell_str(rows, 11, arena),
        .test = cell_i64(rows, 12) != 0,
    };
    cell_bytes(rows, 1, row->random, ID_RANDOM_SIZE);
}

const char pg_select_values[] =
    "SELECT " PG_VALUE_COLUMNS " FROM pawl_value v WHERE v.shard = $1 AND v.id = ANY ($2)";
const char pg_select_interned[] =
    "SELECT " PG_VALUE_COLUMNS " FROM pawl_value v WHERE v.shard = $1 AND v.digest = ANY ($2)"
    " AND v.digest IS NOT NULL";

void pg_read_value(const struct pg_rows *rows, struct arena *arena, void *out)
{
    struct value_row *row = out;

    *row = (struct value_row){
        .value = { .id = cell_u64(rows, 0),
                   .bytes = cell_str(rows, 3, arena),
                   .interned = cell_i64(rows, 4) == 1 },
        .is_bare = cell_is_null(rows, 1),
    };
    cell_bytes(rows, 1, row->value.commitment, SHA_SIZE);
    cell_bytes(rows, 2, row->value.salt, SALT_SIZE);
}

void pg_value_commit(struct postgres_store *store, struct value_row *row)
{
    if (!row->is_bare || !row->value.bytes.data)
        return;
    pthread_mutex_lock(store->read_lock); /* the hasher is one caller's at a time */
    sha_begin(store->sha);
    sha_add(store->sha, row->value.salt, SALT_SIZE);
    sha_add(store->sha, row->value.bytes.data, row->value.bytes.size);
    sha_end(store->sha, row->value.commitment);
    pthread_mutex_unlock(store->read_lock);
}

void pg_value_digest(struct postgres_store *store, str bytes, uint8_t out[SHA_SIZE])
{
    pthread_mutex_lock(store->read_lock);
    sha_once(store->sha, bytes, out);
    pthread_mutex_unlock(store->read_lock);
}

const char pg_select_snapshots[] =
    "SELECT inst, seq, text FROM pawl_snapshot WHERE shard = $1 AND inst = ANY ($2)";

void pg_read_snapshot(const struct pg_rows *rows, struct arena *arena, void *out)
{
    *(struct snapshot_row *)out = (struct snapshot_row){
        .instance = cell_u64(rows, 0),
        .seq = cell_u32(rows, 1),
        .text = cell_str(rows, 2, arena),
    };
}

/* The days that there are, each found by its index entry, and then the key in each. */
const char pg_select_keys[] =
    "WITH RECURSIVE d(day) AS (SELECT min(day) FROM pawl_key WHERE shard = $1 UNION ALL"
    " SELECT (SELECT min(day) FROM pawl_key WHERE shard = $1 AND day > d.day) FROM d"
    " WHERE d.day IS NOT NULL) SELECT DISTINCT ON (k.id) k.id, k.at, k.pos FROM d"
    " JOIN pawl_key k ON k.shard = $1 AND k.day = d.day AND k.id = ANY ($2) ORDER BY k.id,"
    " k.pos DESC";

void pg_read_key(const struct pg_rows *rows, struct arena *arena, void *out)
{
    struct key_row *row = out;

    (void)arena;
    cell_bytes(rows, 0, row->id, KEY_ID_SIZE);
    row->at_ms = cell_i64(rows, 1);
    row->pos = cell_u64(rows, 2);
}

static const char select_standing[] = "SELECT what, id, due, pos, firing, wall FROM pawl_kept"
                                      " WHERE shard = $1 AND what = $2 AND id = $3";

void pg_read_standing(const struct pg_rows *rows, struct arena *arena, void *out)
{
    *(struct standing_row *)out = (struct standing_row){
        .what = (int32_t)cell_i64(rows, 0),
        .id = cell_str(rows, 1, arena),
        .due_at_ms = cell_i64(rows, 2),
        .pos = cell_u64(rows, 3),
        .firing_ms = cell_i64(rows, 4),
        .wall = cell_i64(rows, 5) != 0,
    };
}

#define SELECT_DEFINITION(distinct)                                                                \
    "SELECT " distinct                                                                             \
    "d.id, d.name, d.version, d.kind, d.created_at, d.source, d.compiled_sha256,"                  \
    " s.bytes, d.compiled FROM pawl_definition d LEFT JOIN pawl_source s ON s.shard = d.shard"     \
    " AND s.sha256 = d.source WHERE d.shard = $1"
static const char select_definition[] = SELECT_DEFINITION("") " AND d.id = ANY ($2)";
const char pg_select_newest[] =
    SELECT_DEFINITION("DISTINCT ON (d.name) ") " AND d.name = ANY ($2) ORDER BY d.name,"
                                               " d.version DESC";
static const char select_version[] = SELECT_DEFINITION("") " AND d.name = $2 AND d.version = $3";
static const char select_inline[] =
    SELECT_DEFINITION("") " AND d.name IS NULL AND d.source = $2 AND d.compiler = $3"
                          " ORDER BY d.id LIMIT 1";

void pg_read_definition_facts(const struct pg_rows *rows, struct arena *arena, void *out)
{
    struct definition_row *row = out;

    *row = (struct definition_row){
        .id = cell_u32(rows, 0),
        .name = cell_str(rows, 1, arena),
        .version = cell_u32(rows, 2),
        .kind = (int)cell_i64(rows, 3),
        .created_at_ms = cell_i64(rows, 4),
    };
    cell_bytes(rows, 5, row->source_sha, SHA_SIZE);
    cell_bytes(rows, 6, row->compiled_sha, SHA_SIZE);
}

void pg_read_definition(const struct pg_rows *rows, struct arena *arena, void *out)
{
    struct definition_row *row = out;

    pg_read_definition_facts(rows, arena, row);
    row->source = cell_str(rows, 7, arena);
    row->compiled = cell_str(rows, 8, arena);
}

/* ---- Any of them ---- */

struct pg_finder {
    const char *text;
    pg_row_reader *read;
};

static struct pg_finder finder_of(const struct find_query *query)
{
    switch (query->kind) {
    case FIND_HEAD:
        return (struct pg_finder){ query->by.head.trust_rows ? pg_select_heads : select_true_head,
                                   pg_read_head };
    case FIND_INSTANCE:
        return (struct pg_finder){ pg_select_instances, pg_read_instance };
    case FIND_RECORD:
        return (struct pg_finder){ pg_select_records, pg_read_record };
    case FIND_VALUE:
    case FIND_BYTES:
        return (struct pg_finder){ pg_select_values, pg_read_value };
    case FIND_INTERNED:
        return (struct pg_finder){ pg_select_interned, pg_read_value };
    case FIND_SNAPSHOT:
        return (struct pg_finder){ pg_select_snapshots, pg_read_snapshot };
    case FIND_KEY:
        return (struct pg_finder){ pg_select_keys, pg_read_key };
    case FIND_STANDING:
        return (struct pg_finder){ select_standing, pg_read_standing };
    case FIND_DEFINITION:
        return (struct pg_finder){ select_definition, pg_read_definition };
    case FIND_NAMED:
        return (struct pg_finder){ query->by.named.version ? select_version : pg_select_newest,
                                   pg_read_definition };
    case FIND_INLINE:
        break;
    }
    return (struct pg_finder){ select_inline, pg_read_definition };
}

static void add_one(struct params *params, str bytes)
{
    static const struct column one = { FROM_STR, PG_BYTEA, 0, 0, false };

    params_column(params, &bytes, sizeof bytes, 1, &one);
}

static void add_head_name(struct params *params, const struct find_query *query)
{
    params_numbers(params, &query->by.head.instance, 1);
    if (!query->by.head.trust_rows)
        params_int(params, (int64_t)query->by.head.instance);
}

static void add_name(struct postgres_store *store, struct params *params,
                     const struct find_query *query, uint8_t digest[SHA_SIZE])
{
    switch (query->kind) {
    case FIND_HEAD:
        add_head_name(params, query);
        return;
    case FIND_INTERNED:
        pg_value_digest(store, query->by.bytes, digest);
        add_one(params, (str){ (const char *)digest, DIGEST_SIZE });
        return;
    case FIND_KEY:
        add_one(params, (str){ (const char *)query->by.hash, KEY_ID_SIZE });
        return;
    case FIND_STANDING:
        params_int4(params, query->by.standing.what);
        params_bytes(params, query->by.standing.id);
        return;
    case FIND_NAMED:
        if (!query->by.named.version) {
            add_one(params, query->by.named.name);
            return;
        }
        params_bytes(params, query->by.named.name);
        params_int4(params, query->by.named.version);
        return;
    case FIND_INLINE:
        params_bytes(params, (str){ (const char *)query->by.hash, SHA_SIZE });
        params_int4(params, COMPILER_NUMBER);
        return;
    case FIND_INSTANCE:
    case FIND_RECORD:
    case FIND_VALUE:
    case FIND_BYTES:
    case FIND_SNAPSHOT:
    case FIND_DEFINITION:
        break;
    }
    params_numbers(params, &query->by.number, 1);
}

/* No row has a larger number. */
static bool is_too_large(const struct find_query *query)
{
    switch (query->kind) {
    case FIND_HEAD:
        return query->by.head.instance > INT64_MAX;
    case FIND_INSTANCE:
    case FIND_RECORD:
    case FIND_VALUE:
    case FIND_BYTES:
    case FIND_SNAPSHOT:
    case FIND_DEFINITION:
        return query->by.number > INT64_MAX;
    case FIND_INTERNED:
    case FIND_KEY:
    case FIND_STANDING:
    case FIND_NAMED:
    case FIND_INLINE:
        break;
    }
    return false;
}

static pawl_status fail_missing(struct scope *scope, enum find_kind kind)
{
    return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such %s", find_word(kind));
}

static pawl_status take_row(struct postgres_store *store, struct scope *scope,
                            const struct find_query *query, struct pg_rows *rows, void *out)
{
    bool is_value =
        query->kind == FIND_VALUE || query->kind == FIND_INTERNED || query->kind == FIND_BYTES;
    struct value_row value;

    finder_of(query).read(rows, &scope->arena, is_value ? &value : out);
    TRY_MEMORY(scope, !scope->arena.failed);
    if (!is_value)
        return PAWL_OK;
    if (query->kind == FIND_INTERNED && !str_eq(value.value.bytes, query->by.bytes))
        return fail_missing(scope, query->kind); /* another text with the same 128 bits */
    if (query->kind != FIND_BYTES)
        pg_value_commit(store, &value);
    *(struct value *)out = value.value;
    return PAWL_OK;
}

pawl_status postgres_find_by(struct postgres_store *store, struct scope *scope,
                             const struct find_query *query, void *out)
{
    struct params params = { .arena = &scope->arena };
    struct statement statement = { finder_of(query).text, &params, NULL };
    struct pg_rows rows = { .pq = store->reader->pq };
    uint8_t digest[SHA_SIZE];
    pawl_status status;

    if (is_too_large(query))
        return fail_missing(scope, query->kind);
    params_int4(&params, store->shard);
    add_name(store, &params, query, digest);
    TRY(pg_exchange(store, scope, &statement, 1));
    rows.result = statement.result;
    status = rows_count(&rows) > 0 ? take_row(store, scope, query, &rows, out)
                                   : fail_missing(scope, query->kind);
    link_clear(store->reader, &statement, 1);
    return status;
}

pawl_status postgres_find_row(struct store *base, struct scope *scope,
                              const struct find_query *query, void *out)
{
    struct postgres_store *store = postgres_of(base);
    pawl_status status;

    TRY(postgres_check(store, scope));
    if (expected_find(store, scope, query, out, &status))
        return status;
    return postgres_find_by(store, scope, query, out);
}
