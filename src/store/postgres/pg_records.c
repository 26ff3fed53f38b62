/* pg_records.c - records: at positions, along an instance's chain, and all in order.
 *
 * A row of the log has the records of one commit in arrays. One record is the last row that begins
 * at or before it, and an element of each array; a scan takes rows whole. */
#include "base/limits.h"
#include "postgres_int.h"

const char pg_select_records[] =
    "SELECT " PG_RECORD_COLUMNS
    " FROM unnest($2) WITH ORDINALITY q(p, o), " PG_LOG_AT("q.p") " WHERE k <= l.n ORDER BY q.o";

void pg_read_record(const struct pg_rows *rows, struct arena *arena, void *out)
{
    struct record *record = out;

    *record = (struct record){
        .pos = cell_u64(rows, 0),
        .instance = cell_u64(rows, 1),
        .seq = cell_u32(rows, 2),
        .prev = cell_u64(rows, 3),
        .skip = cell_u64(rows, 4),
        .what = (int32_t)cell_i64(rows, 5),
        .flags = cell_u32(rows, 6),
        .at_ms = cell_i64(rows, 7),
        .fired_at_ms = cell_i64(rows, 8),
        .step = cell_u32(rows, 9),
        .ordinal = cell_u32(rows, 10),
        .attempt = cell_u32(rows, 11),
        .actor = cell_u64(rows, 12),
        .payload = cell_u64(rows, 13),
        .reason = cell_u64(rows, 14),
        .body = cell_str(rows, 15, arena),
        .key = cell_str(rows, 16, arena),
        .has_root = !cell_is_null(rows, 18),
    };
    cell_bytes(rows, 17, record->hash, SHA_SIZE);
    cell_bytes(rows, 18, record->root, SHA_SIZE);
}

static pawl_status fail_no_record(struct scope *scope)
{
    return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such record");
}

#define RECORDS_AT_ONCE 64u

pawl_status postgres_records(struct store *base, struct scope *scope, const uint64_t *positions,
                             uint32_t count, struct record *out, uint32_t *read)
{
    struct postgres_store *store = postgres_of(base);
    struct params params = { .arena = &scope->arena };
    struct statement statement = { pg_select_records, &params, NULL };
    struct pg_rows rows = { .pq = store->reader->pq };
    size_t begun = scope->arena.used;
    pawl_status status = PAWL_OK;

    *read = 0;
    count = count < RECORDS_AT_ONCE ? count : RECORDS_AT_ONCE;
    for (uint32_t i = 0; i < count; i++)
        if (positions[i] > INT64_MAX)
            return fail_no_record(scope);
    params_int4(&params, store->shard);
    params_numbers(&params, positions, count);
    TRY(pg_exchange(store, scope, &statement, 1));
    rows.result = statement.result;
    if (rows_count(&rows) < count)
        status = fail_no_record(scope);
    for (; status == PAWL_OK && *read < count; (*read)++) {
        if (*read > 0 && scope->arena.used - begun >= RECORDS_BYTES)
            break;
        rows.row = (int)*read;
        pg_read_record(&rows, &scope->arena, &out[*read]);
        status = scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
    }
    link_clear(store->reader, &statement, 1);
    return status;
}

/* ---- Along a chain ---- */

/* $2 where it begins, $3 room, $4 skip_from, $5 first, $6 with texts. As chain_next() has it; a
 * record's texts count against RECORDS_BYTES. */
static const char select_chain[] =
    "WITH RECURSIVE c(row, i, next, bytes, n) AS ("
    " SELECT l.pos, k, $2::bigint, 0::bigint, 0 FROM " PG_LOG_AT(
        "$2") " WHERE k <= l.n"
              " UNION ALL SELECT e.pos, e.k, e.next, e.bytes, c.n + 1 FROM c, LATERAL ("
              "SELECT l.pos, k, CASE"
              " WHEN l.seq[k] < $5 OR (l.seq[k] = $5 AND l.what[k] >= 0) THEN 0"
              " WHEN coalesce(l.skip[k], 0) > 0 AND l.seq[k] >= $4 THEN l.skip[k]"
              " WHEN l.prev[k] < c.next THEN l.prev[k] ELSE 0 END AS next,"
              " c.bytes + $6 * coalesce(length(l.body[k]), 0) + $6 * 200 AS bytes FROM " PG_LOG_AT(
                  "c.next") " WHERE k <= l.n) e WHERE c.next > 0 AND c.n < $3 AND c.bytes < 65536)"
                            " SELECT " PG_RECORD_COLUMNS
                            " FROM c JOIN pawl_log l ON l.shard = $1 AND l.pos = c.row,"
                            " LATERAL (SELECT c.i) x(k) WHERE c.n > 0 ORDER BY c.n";

/* Without texts a record has only these fields. */
static void strip(struct record *record)
{
    *record = (struct record){ .pos = record->pos,
                               .seq = record->seq,
                               .prev = record->prev,
                               .skip = record->skip,
                               .what = record->what,
                               .step = record->step,
                               .actor = record->actor,
                               .fired_at_ms = record->fired_at_ms };
}

pawl_status postgres_records_of(struct store *base, struct scope *scope, struct chain_query *query,
                                struct record *out, uint32_t room, uint32_t *count)
{
    struct postgres_store *store = postgres_of(base);
    struct params params = { .arena = &scope->arena };
    struct statement statement = { select_chain, &params, NULL };
    struct pg_rows rows = { .pq = store->reader->pq };
    pawl_status status = PAWL_OK;

    if (query->pos > INT64_MAX)
        return fail_no_record(scope);
    params_int4(&params, store->shard);
    params_int(&params, (int64_t)query->pos);
    params_int4(&params, room);
    params_int(&params, query->skip_from > INT64_MAX ? INT64_MAX : (int64_t)query->skip_from);
    params_int(&params, query->first > INT64_MAX ? INT64_MAX : (int64_t)query->first);
    params_int(&params, query->with_texts);
    TRY(pg_exchange(store, scope, &statement, 1));
    rows.result = statement.result;
    if (rows_count(&rows) == 0)
        status = fail_no_record(scope);
    for (uint32_t i = 0; i < rows_count(&rows) && i < room && status == PAWL_OK; i++) {
        rows.row = (int)i;
        pg_read_record(&rows, &scope->arena, &out[i]);
        if (!query->with_texts)
            strip(&out[i]);
        query->pos = chain_next(query, &out[i]);
        ++*count;
        status = scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
    }
    link_clear(store->reader, &statement, 1);
    return status;
}

/* ---- All of them ---- */

#define SCAN_ROWS 16 /* of the log, in one page */

static const char select_rows[] =
    "SELECT pos, n, at, inst, seq, prev, skip, what, flags, ats, fired, step, ord, attempt,"
    " actor,"
    " payload, reason, body, keys, hash, root FROM pawl_log WHERE shard = $1 AND pos >= coalesce("
    "(SELECT max(pos) FROM pawl_log WHERE shard = $1 AND pos <= $2), 0) ORDER BY pos LIMIT $3";

enum {
    ROW_POS,
    ROW_N,
    ROW_AT,
    ROW_INST,
    ROW_SEQ,
    ROW_PREV,
    ROW_SKIP,
    ROW_WHAT,
    ROW_FLAGS,
    ROW_ATS,
    ROW_FIRED,
    ROW_STEP,
    ROW_ORD,
    ROW_ATTEMPT,
    ROW_ACTOR,
    ROW_PAYLOAD,
    ROW_REASON,
    ROW_BODY,
    ROW_KEYS,
    ROW_HASH,
    ROW_ROOT,
    ROW_COLUMNS
};

struct unpacking {
    struct elements columns[ROW_COLUMNS];
    uint64_t pos;
    uint32_t left;
    int64_t at_ms;
    str hash, root;
};

static struct unpacking unpack(const struct pg_rows *rows)
{
    struct unpacking row = { .pos = cell_u64(rows, ROW_POS),
                             .left = cell_u32(rows, ROW_N),
                             .at_ms = cell_i64(rows, ROW_AT),
                             .hash = cell_view(rows, ROW_HASH),
                             .root = cell_view(rows, ROW_ROOT) };

    for (int i = ROW_INST; i <= ROW_KEYS; i++)
        row.columns[i] = elements_of(cell_view(rows, i));
    return row;
}

static void take_fixed(struct unpacking *row, struct record *out)
{
    str given;

    *out = (struct record){
        .pos = row->pos++,
        .instance = (uint64_t)element_i64(&row->columns[ROW_INST]),
        .seq = (uint32_t)element_i64(&row->columns[ROW_SEQ]),
        .prev = (uint64_t)element_i64(&row->columns[ROW_PREV]),
        .skip = (uint64_t)element_i64(&row->columns[ROW_SKIP]),
        .what = (int32_t)element_i64(&row->columns[ROW_WHAT]),
        .flags = (uint32_t)element_i64(&row->columns[ROW_FLAGS]),
        .at_ms = row->columns[ROW_ATS].count ? element_i64(&row->columns[ROW_ATS]) : row->at_ms,
        .step = (uint32_t)element_i64(&row->columns[ROW_STEP]),
        .ordinal = (uint32_t)element_i64(&row->columns[ROW_ORD]),
        .attempt = (uint32_t)element_i64(&row->columns[ROW_ATTEMPT]),
        .actor = (uint64_t)element_i64(&row->columns[ROW_ACTOR]),
        .payload = (uint64_t)element_i64(&row->columns[ROW_PAYLOAD]),
        .reason = (uint64_t)element_i64(&row->columns[ROW_REASON]),
    };
    (void)element_next(&row->columns[ROW_BODY], &out->body);
    (void)element_next(&row->columns[ROW_KEYS], &out->key);
    out->fired_at_ms = out->at_ms;
    if (element_next(&row->columns[ROW_FIRED], &given) && given.data)
        out->fired_at_ms = element_number(given);
}

/* What it names lies in the result. */
static bool take_record(struct unpacking *row, struct record *out)
{
    if (row->left == 0)
        return false;
    row->left--;
    take_fixed(row, out);
    if (row->hash.size >= SHA_SIZE) {
        memcpy(out->hash, row->hash.data, SHA_SIZE);
        row->hash = str_from(row->hash, SHA_SIZE);
    }
    out->has_root = row->left == 0 && row->root.size == SHA_SIZE;
    if (out->has_root)
        memcpy(out->root, row->root.data, SHA_SIZE);
    return true;
}

static pawl_status see_rows(struct pg_rows *rows, uint64_t *from, record_fn fn, void *context)
{
    pawl_status status = PAWL_OK;
    struct record record;

    for (uint32_t i = 0; i < rows_count(rows) && status == PAWL_OK; i++) {
        struct unpacking row;

        rows->row = (int)i;
        row = unpack(rows);
        while (status == PAWL_OK && take_record(&row, &record)) {
            if (record.pos < *from)
                continue;
            *from = record.pos + 1;
            status = fn(context, &record);
        }
    }
    return status;
}

/* The reader is free while `fn` runs, and `fn` may read. */
pawl_status postgres_scan(struct store *base, struct scope *scope, uint64_t from, record_fn fn,
                          void *context)
{
    struct postgres_store *store = postgres_of(base);
    struct scope page;
    pawl_status status = PAWL_OK;
    bool is_more = true;

    scope_init(&page, store->heap, LIMIT_SCOPE);
    while (is_more && status == PAWL_OK) {
        struct params params = { .arena = &page.arena };
        struct statement statement = { select_rows, &params, NULL };
        struct pg_rows rows = { .pq = store->reader->pq };
        uint64_t begun = from;

        scope_clear(&page);
        params_int4(&params, store->shard);
        params_int(&params, (int64_t)from);
        params_int4(&params, SCAN_ROWS);
        status = pg_exchange(store, &page, &statement, 1);
        if (status != PAWL_OK) {
            scope_fail(scope, status, "%s", page.error.message);
            break;
        }
        rows.result = statement.result;
        status = see_rows(&rows, &from, fn, context);
        is_more = from > begun;
        link_clear(store->reader, &statement, 1);
    }
    scope_fini(&page);
    return status;
}
