/* pg_list.c - instances by what they are and where they stand, and how many stand where.
 *
 * The statement is put together from the fragments below and nothing else; what the caller says
 * goes in as parameters. A filter that is not asked for is NULL or 0 and matches all. */
#include "base/buf.h"
#include "base/limits.h"
#include "base/planted.h"
#include "postgres_int.h"

/* Where each instance stands: head rows with the tail of the log laid over them. */
#define STANDING                                                                                   \
    "WITH tail AS MATERIALIZED (SELECT DISTINCT ON (u.inst) u.inst, l.pos + u.o - 1 AS pos,"       \
    " u.what"                                                                                      \
    " FROM pawl_shard f, pawl_log l, unnest(l.inst, l.what) WITH ORDINALITY u(inst, what, o)"      \
    " WHERE f.shard = $1 AND l.shard = $1 AND l.pos > f.flushed - 128"                             \
    " AND l.pos + u.o - 1 > f.flushed AND u.what >= 0 AND u.inst > 0"                              \
    " ORDER BY u.inst, l.pos + u.o - 1 DESC)"
#define STATE                                                                                      \
    "coalesce(x.to_state, h.state,"                                                                \
    " (convert_from(d.compiled, 'UTF8')::json ->> 'initial')::int, 0)"
#define JOINS                                                                                      \
    " JOIN pawl_definition d ON d.shard = $1 AND d.id = i.definition"                              \
    " LEFT JOIN pawl_head h ON h.shard = $1 AND h.inst = i.number"                                 \
    " LEFT JOIN tail t ON t.inst = i.number"                                                       \
    " LEFT JOIN pawl_transition x ON x.shard = $1 AND x.definition = i.definition"                 \
    " AND x.idx = t.what"                                                                          \
    " LEFT JOIN pawl_state s ON s.shard = $1 AND s.definition = i.definition AND s.idx = " STATE
#define IS_BUSY                                                                                    \
    "EXISTS (SELECT 1 FROM pawl_step p WHERE p.shard = $1 AND p.inst = i.number"                   \
    " AND p.status IN (1, 2))"
#define IS_HELD "EXISTS (SELECT 1 FROM pawl_pause p WHERE p.shard = $1 AND p.inst = i.number)"
#define ENDED_AT                                                                                   \
    "(SELECT coalesce(l.ats[(coalesce(t.pos, h.pos) - l.pos + 1)::int], l.at) FROM pawl_log l"     \
    " WHERE l.shard = $1 AND l.pos <= coalesce(t.pos, h.pos) ORDER BY l.pos DESC LIMIT 1)"

/* ---- Lists ---- */

struct composing {
    struct buf text;
    struct params params;
};

/* A fragment; each % in it is the next parameter, which has been added before. */
static void add(struct composing *c, const char *fragment)
{
    for (; *fragment; fragment++)
        if (*fragment == '%')
            buf_fmt(&c->text, "$%d", c->params.count);
        else
            buf_byte(&c->text, (unsigned char)*fragment);
}

static void add_text(struct composing *c, str value, const char *fragment)
{
    if (!value.data)
        return;
    params_bytes(&c->params, value);
    add(c, fragment);
}

static void add_number(struct composing *c, bool wanted, int64_t value, const char *fragment)
{
    if (!wanted)
        return;
    params_int(&c->params, value);
    add(c, fragment);
}

static void add_labels(struct composing *c, const struct list_query *query)
{
    for (uint32_t i = 0; i < query->label_count; i++) {
        params_bytes(&c->params, query->label_key[i]);
        add(c, " AND EXISTS (SELECT 1 FROM pawl_label b WHERE b.shard = $1 AND b.key = %");
        params_bytes(&c->params, query->label_value[i]);
        add(c, " AND b.value = % AND b.inst = i.number)");
    }
}

/* Which kinds of state those that are asked for may be in. */
static unsigned terminals_wanted(const struct list_query *query)
{
    bool is_ended = query->status >= STATUS_COMPLETED;
    unsigned wanted = query->status == STATUS_ANY ? UINT32_MAX : 0;

    for (enum terminal_kind i = TERMINAL_NOT; query->status && i <= TERMINAL_CANCEL; i++)
        if (instance_status_ended(i) == (is_ended ? query->status : STATUS_ANY))
            wanted |= 1u << i;
    if (query->is_active)
        wanted &= 1u << TERMINAL_NOT;
    if (query->has_ended || query->ended.has_after || query->ended.has_before)
        wanted &= ~(1u << TERMINAL_NOT);
    return wanted;
}

static void add_state(struct composing *c, const struct list_query *query)
{
    bool running = query->status == STATUS_RUNNING, waiting = query->status == STATUS_SUSPENDED;

    add_text(c, query->state, " AND s.name = %");
    buf_fmt(&c->text,
            " AND (%u >> coalesce(s.terminal, 0)) & 1 ="
            " 1",
            terminals_wanted(query) & 31);
    add(c, running ? " AND " IS_BUSY : waiting ? " AND NOT " IS_BUSY : "");
    add(c, running || waiting ? " AND NOT " IS_HELD : "");
    add(c, query->status == STATUS_PAUSED ? " AND " IS_HELD : "");
    add_number(c, query->ended.has_after, query->ended.after_ms, " AND " ENDED_AT " >= %");
    add_number(c, query->ended.has_before, query->ended.before_ms, " AND " ENDED_AT " <= %");
}

#define OF_DEFINITION " AND i.definition IN (SELECT id FROM pawl_definition WHERE shard = $1 AND "

static void add_filters(struct composing *c, const struct list_query *query)
{
    add_text(c, query->definition, OF_DEFINITION "name = %)");
    add_number(c, query->version != 0, query->version, OF_DEFINITION "version = %)");
    add_number(c, query->kind != 0, query->kind, OF_DEFINITION "kind = %)");
    add_text(c, query->correlation, " AND i.correlation = %");
    add_labels(c, query);
    add_number(c, query->created.has_after, query->created.after_ms,
               " AND i.instantiated_at >="
               " %");
    add_number(c, query->created.has_before, query->created.before_ms,
               " AND i.instantiated_at <= %");
}

static void add_page(struct composing *c, const struct list_query *query)
{
    uint64_t after = query->after + (PLANTED(CURSOR_SKIPS) ? query->oldest_first ? 1 : -1 : 0);

    add_number(c, query->after != 0, (int64_t)after,
               query->oldest_first ? " AND i.number > %" : " AND i.number < %");
    add_number(c, true, query->limit,
               query->oldest_first ? " ORDER BY i.number LIMIT %"
                                   : " ORDER BY i.number DESC LIMIT %");
}

static void compose(struct composing *c, struct postgres_store *store,
                    const struct list_query *query, uint8_t digest[SHA_SIZE])
{
    bool by_state = list_query_by_state(query);

    params_int4(&c->params, store->shard);
    add(c, by_state ? STANDING : "");
    add(c, " SELECT i.number FROM pawl_instance i");
    add(c, by_state ? JOINS : "");
    add(c, " WHERE i.shard = $1");
    if (query->subject.data) {
        pg_value_digest(store, query->subject, digest);
        params_bytes(&c->params, (str){ (const char *)digest, DIGEST_SIZE });
        add(c, " AND i.subject = (SELECT id FROM pawl_value WHERE shard = $1 AND digest = %)");
    }
    add_filters(c, query);
    if (by_state)
        add_state(c, query);
    add_page(c, query);
}

/* Composed texts are many: they are not prepared. */
static pawl_status run_composed(struct postgres_store *store, struct scope *scope,
                                struct composing *c, bool is_long, PGresult **out)
{
    struct statement statement = { buf_text(&c->text), &c->params, NULL, true };

    TRY_MEMORY(scope, !c->text.failed);
    TRY(is_long ? pg_exchange_long(store, scope, &statement)
                : pg_exchange(store, scope, &statement, 1));
    *out = statement.result;
    return PAWL_OK;
}

pawl_status postgres_list(struct store *base, struct scope *scope, const struct list_query *query,
                          uint64_t **out, uint32_t *count)
{
    struct postgres_store *store = postgres_of(base);
    struct composing c = { .params = { .arena = &scope->arena } };
    struct pg_rows rows = { .pq = store->reader->pq };
    uint8_t digest[SHA_SIZE];
    pawl_status status;

    if (query->label_count > sizeof query->label_key / sizeof *query->label_key)
        return scope_fail(scope, PAWL_INVALID_QUERY, "expected at most 8 labels");
    buf_init(&c.text, store->heap, LIMIT_TEXT);
    compose(&c, store, query, digest);
    status = run_composed(store, scope, &c, list_query_by_state(query), &rows.result);
    if (status == PAWL_OK)
        status = pg_read_all(scope, &rows, pg_read_number, sizeof(uint64_t), out, count);
    rows.pq->clear(rows.result);
    buf_fini(&c.text);
    return status;
}

/* ---- Counts ---- */

static const char select_counts[] = STANDING
    " SELECT d.name, d.version, s.name, s.terminal, count(*), count(*) FILTER (WHERE NOT " IS_HELD
    " AND " IS_BUSY "), count(*) FILTER (WHERE " IS_HELD "), min(i.number) FROM pawl_instance"
    " i" JOINS
    " WHERE i.shard = $1 AND ($2::bytea IS NULL OR (d.name = $2 AND ($3 = 0 OR d.version = $3)))"
    " GROUP BY d.id, d.name, d.version, s.idx, s.name, s.terminal";

static void read_count(const struct pg_rows *rows, struct arena *arena, void *out)
{
    *(struct state_count *)out = (struct state_count){
        .definition = cell_str(rows, 0, arena),
        .version = cell_u32(rows, 1),
        .state = cell_str(rows, 2, arena),
        .terminal = (enum terminal_kind)(cell_u32(rows, 3) % (TERMINAL_CANCEL + 1)),
        .total = cell_u64(rows, 4),
        .running = cell_u64(rows, 5),
        .paused = cell_u64(rows, 6),
    };
}

pawl_status postgres_counts(struct store *base, struct scope *scope, str name, uint32_t version,
                            struct state_count **out, uint32_t *count)
{
    struct postgres_store *store = postgres_of(base);
    struct params params = { .arena = &scope->arena };
    struct statement statement = { select_counts, &params, NULL };
    struct pg_rows rows = { .pq = store->reader->pq };
    pawl_status status;

    params_int4(&params, store->shard);
    params_bytes(&params, name);
    params_int4(&params, version);
    TRY(pg_exchange_long(store, scope, &statement));
    rows.result = statement.result;
    status = pg_read_all(scope, &rows, read_count, sizeof(struct state_count), out, count);
    for (uint32_t i = 0; status == PAWL_OK && i < *count; i++)
        if (!(*out)[i].state.data)
            status = scope_fail(scope, PAWL_STORAGE_FAILURE,
                                "an instance is in a state that its definition does not have;"
                                " run "
                                "pawl verify");
    link_clear(store->reader, &statement, 1);
    return status;
}
