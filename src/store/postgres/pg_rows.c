/* pg_rows.c - many rows at once: the live rows of instances, and rows of a kind in its order. */
#include "base/assert.h"
#include "base/grow.h"
#include "postgres_int.h"

/* ---- Live rows ---- */

enum { STEPS, TIMERS, WAITS, CHILDREN, PAUSES };

/* Of each kind: instance, kind, ordinal, name, and what else it has, in the order of struct
 * live. */
#define LIVE_OF(which)                                                                             \
    "SELECT inst, 0, ord, ''::bytea, plan::bigint, attempt::bigint, status::bigint, lease_ms,"     \
    " ready_at, lease FROM pawl_step WHERE shard = $1 AND " which                                  \
    " UNION ALL SELECT inst, 1, ord, name, due, wall, shift, NULL, NULL, NULL FROM pawl_timer"     \
    " WHERE shard = $1 AND " which                                                                 \
    " UNION ALL SELECT inst, 2, ord, name, NULL, NULL, NULL, NULL, NULL, value FROM pawl_wait"     \
    " WHERE shard = $1 AND " which                                                                 \
    " UNION ALL SELECT inst, 2, 0, name, NULL, NULL, NULL, NULL, NULL, NULL FROM pawl_interest"    \
    " WHERE shard = $1 AND " which                                                                 \
    " UNION ALL SELECT inst, 3, ord, ''::bytea, child, abandon, ended, NULL, NULL, NULL"           \
    " FROM pawl_child WHERE shard = $1 AND " which                                                 \
    " UNION ALL SELECT inst, 4, 0, ''::bytea, pos, NULL, NULL, NULL, NULL, NULL FROM pawl_pause"   \
    " WHERE shard = $1 AND " which " ORDER BY 1, 2, 3, 4, 5"
const char pg_select_live[] = LIVE_OF("inst = ANY ($2)");

struct live_room {
    struct live *live;
    uint32_t capacity[4];
};

static bool add_step(struct scope *scope, const struct pg_rows *rows, struct live_room *room)
{
    struct live *live = room->live;

    if (!GROW(&scope->arena, live->steps, live->step_count, room->capacity[STEPS]))
        return false;
    live->steps[live->step_count++] = (struct live_step){
        .ordinal = cell_u32(rows, 2),
        .plan = cell_u32(rows, 4),
        .attempt = cell_u32(rows, 5),
        .status = (enum step_status)cell_u32(rows, 6),
        .lease_ms = cell_i64(rows, 7),
        .ready_at_ms = cell_i64(rows, 8),
        .lease = cell_str(rows, 9, &scope->arena),
    };
    return true;
}

static bool add_timer(struct scope *scope, const struct pg_rows *rows, struct live_room *room)
{
    struct live *live = room->live;

    if (!GROW(&scope->arena, live->timers, live->timer_count, room->capacity[TIMERS]))
        return false;
    live->timers[live->timer_count++] = (struct live_timer){
        .instance = cell_u64(rows, 0),
        .ordinal = cell_u32(rows, 2),
        .name = cell_str(rows, 3, &scope->arena),
        .due_at_ms = cell_i64(rows, 4),
        .wall = cell_i64(rows, 5) != 0,
        .shift_ms = cell_i64(rows, 6),
    };
    return true;
}

static bool add_wait(struct scope *scope, const struct pg_rows *rows, struct live_room *room)
{
    struct live *live = room->live;

    if (!GROW(&scope->arena, live->waits, live->wait_count, room->capacity[WAITS]))
        return false;
    live->waits[live->wait_count++] = (struct live_wait){
        .ordinal = cell_u32(rows, 2),
        .name = cell_str(rows, 3, &scope->arena),
        .value = cell_str(rows, 9, &scope->arena),
    };
    return true;
}

static bool add_child(struct scope *scope, const struct pg_rows *rows, struct live_room *room)
{
    struct live *live = room->live;

    if (!GROW(&scope->arena, live->children, live->child_count, room->capacity[CHILDREN]))
        return false;
    live->children[live->child_count++] = (struct live_child){
        .child = cell_u64(rows, 4),
        .parent = cell_u64(rows, 0),
        .ordinal = cell_u32(rows, 2),
        .abandon = cell_i64(rows, 5) != 0,
        .ended = cell_i64(rows, 6) != 0,
    };
    return true;
}

/* The rows of one instance, from rows->row on, which is moved behind them. */
pawl_status live_take(struct scope *scope, struct pg_rows *rows, struct live *out)
{
    static bool (*const adders[])(struct scope *, const struct pg_rows *,
                                  struct live_room *) = { add_step, add_timer, add_wait,
                                                          add_child };
    struct live_room room = { .live = out };
    uint32_t count = rows_count(rows);
    uint64_t instance = (uint32_t)rows->row < count ? cell_u64(rows, 0) : 0;

    *out = (struct live){ 0 };
    for (; (uint32_t)rows->row < count && cell_u64(rows, 0) == instance; rows->row++) {
        uint32_t kind = cell_u32(rows, 1);

        if (kind == PAUSES)
            out->paused_pos = cell_u64(rows, 4);
        else
            TRY_MEMORY(scope, adders[kind](scope, rows, &room) && !scope->arena.failed);
    }
    return PAWL_OK;
}

pawl_status postgres_live(struct store *base, struct scope *scope, uint64_t instance,
                          struct live *out)
{
    struct postgres_store *store = postgres_of(base);
    struct params params = { .arena = &scope->arena };
    struct statement statement = { pg_select_live, &params, NULL };
    struct pg_rows rows = { .pq = store->reader->pq };
    pawl_status status;

    TRY(postgres_check(store, scope));
    if (gathered_live(scope, instance, out, &status) ||
        expected_live(store, scope, instance, out, &status))
        return status;
    params_int4(&params, store->shard);
    params_numbers(&params, &instance, 1);
    TRY(pg_exchange(store, scope, &statement, 1));
    rows.result = statement.result;
    status = live_take(scope, &rows, out);
    link_clear(store->reader, &statement, 1);
    return status;
}

/* The instances with steps that are asked for, with all of their live rows, in one statement. */
#define BUSY(status)                                                                               \
    LIVE_OF("inst IN (SELECT DISTINCT inst FROM pawl_step WHERE shard = $1" status                 \
            " AND inst > $3 ORDER BY inst LIMIT $2)")
static const char select_busy[] = BUSY(" AND status IN (1, 2)");
static const char select_stepping[] = BUSY("");

static pawl_status take_busy(struct scope *scope, struct pg_rows *rows, void **out, uint32_t *count)
{
    struct busy_row *found = NULL;
    uint32_t capacity = 0;

    *count = 0;
    while ((uint32_t)rows->row < rows_count(rows)) {
        TRY_MEMORY(scope, GROW(&scope->arena, found, *count, capacity));
        found[*count].instance = cell_u64(rows, 0);
        TRY(live_take(scope, rows, &found[*count].live));
        ++*count;
    }
    *out = found;
    return PAWL_OK;
}

/* ---- Rows of a kind; $2 is the limit ---- */

#define SELECT_DUE(whose)                                                                          \
    "SELECT t.inst, 1, t.ord, t.name, t.due, t.wall, t.shift, (SELECT i.definition"                \
    " FROM pawl_instance i WHERE i.shard = $1 AND i.number = t.inst) FROM pawl_timer t"            \
    " WHERE t.shard = $1 AND t.test = 0 AND t.wall " whose " AND t.due <= $3 AND NOT EXISTS ("     \
    "SELECT 1 FROM pawl_pause p WHERE p.shard = $1 AND p.inst = t.inst)"                           \
    " ORDER BY t.due, t.inst, t.ord, t.name LIMIT $2"
static const char select_due[] = SELECT_DUE("IS NULL");
static const char select_due_by_wall[] = SELECT_DUE("= 1");

static void read_due(const struct pg_rows *rows, struct arena *arena, void *out)
{
    *(struct live_timer *)out = (struct live_timer){
        .instance = cell_u64(rows, 0),
        .ordinal = cell_u32(rows, 2),
        .name = cell_str(rows, 3, arena),
        .due_at_ms = cell_i64(rows, 4),
        .wall = cell_i64(rows, 5) != 0,
        .shift_ms = cell_i64(rows, 6),
        .definition = cell_u32(rows, 7),
    };
}

static const char select_awaiting[] =
    "SELECT w.inst, h.pos, (SELECT l.what[(h.pos - l.pos + 1)::int] FROM pawl_log l WHERE"
    " l.shard = $1"
    " AND l.pos <= h.pos ORDER BY l.pos DESC LIMIT 1) FROM (SELECT DISTINCT inst FROM pawl_wait"
    " WHERE shard = $1 AND inst > $3 ORDER BY inst LIMIT $2) w"
    " JOIN pawl_head h ON h.shard = $1 AND h.inst = w.inst ORDER BY w.inst";

static void read_last(const struct pg_rows *rows, struct arena *arena, void *out)
{
    (void)arena;
    *(struct last_row *)out = (struct last_row){ .instance = cell_u64(rows, 0),
                                                 .pos = cell_u64(rows, 1),
                                                 .what = (int32_t)cell_i64(rows, 2) };
}

static const char select_children[] =
    "SELECT child, inst, ord, abandon, ended FROM pawl_child WHERE shard = $1"
    " AND ($3 = 0 OR child = $3) AND ($4 = 0 OR inst = $4) AND ($5 = 0 OR ord = $5)"
    " AND ($7 = 0 OR ended = 1) AND child > $6 ORDER BY child LIMIT $2";

static void read_child(const struct pg_rows *rows, struct arena *arena, void *out)
{
    (void)arena;
    *(struct live_child *)out = (struct live_child){
        .child = cell_u64(rows, 0),
        .parent = cell_u64(rows, 1),
        .ordinal = cell_u32(rows, 2),
        .abandon = cell_i64(rows, 3) != 0,
        .ended = cell_i64(rows, 4) != 0,
    };
}

/* A range of an index each, merged. NULL: not asked for. */
static const char select_waiting[] =
    "SELECT inst FROM pawl_wait WHERE shard = $1 AND name = $4 AND inst > $3"
    " AND ($5::bytea IS NULL OR value = $5 OR value = $7)"
    " UNION SELECT inst FROM pawl_interest WHERE shard = $1 AND name = $6 AND inst > $3"
    " UNION SELECT inst FROM pawl_interest WHERE shard = $1 AND name = $8 AND inst > $3"
    " ORDER BY inst LIMIT $2";

#define SELECT_KEPT "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE shard = $1"
static const char select_standing[] = SELECT_KEPT " AND what = $3 ORDER BY due, id LIMIT $2";
static const char select_alarms[] =
    SELECT_KEPT " AND what = -5 AND wall IS NULL ORDER BY due, id LIMIT $2";
static const char select_alarms_by_wall[] =
    SELECT_KEPT " AND what = -5 AND wall = 1 ORDER BY due, id LIMIT $2";

static const char select_names[] =
    "SELECT DISTINCT ON (name) id, name, version, kind, created_at, source, compiled_sha256"
    " FROM pawl_definition WHERE shard = $1 AND name > $3 ORDER BY name, version DESC LIMIT $2";

static const char select_counts_of_steps[] =
    "SELECT d.version, p.plan, count(*) FROM pawl_definition d JOIN pawl_instance i"
    " ON i.shard = $1 AND i.definition = d.id JOIN pawl_step p ON p.shard = $1 AND p.inst ="
    " i.number"
    " WHERE d.shard = $1 AND d.name = $3 GROUP BY 1, 2 ORDER BY 1, 2 LIMIT $2";

static void read_step_count(const struct pg_rows *rows, struct arena *arena, void *out)
{
    (void)arena;
    *(struct step_count *)out = (struct step_count){ .version = cell_u32(rows, 0),
                                                     .plan = cell_u32(rows, 1),
                                                     .total = cell_u64(rows, 2) };
}

/* ---- Any of them ---- */

struct pg_lister {
    const char *text;
    pg_row_reader *read;
    size_t size;
};

static struct pg_lister lister_of(const struct rows_query *query)
{
    switch (query->kind) {
    case LIST_DEFINITIONS:
        return (struct pg_lister){ select_names, pg_read_definition_facts,
                                   sizeof(struct definition_row) };
    case LIST_DUE:
        return (struct pg_lister){ query->by.clock.wall ? select_due_by_wall : select_due, read_due,
                                   sizeof(struct live_timer) };
    case LIST_BUSY:
        return (struct pg_lister){ query->by.numbers.pending ? select_stepping : select_busy, NULL,
                                   0 };
    case LIST_AWAITING:
        return (struct pg_lister){ select_awaiting, read_last, sizeof(struct last_row) };
    case LIST_CHILDREN:
        return (struct pg_lister){ select_children, read_child, sizeof(struct live_child) };
    case LIST_WAITING:
        return (struct pg_lister){ select_waiting, pg_read_number, sizeof(uint64_t) };
    case LIST_STANDING:
        return (struct pg_lister){ select_standing, pg_read_standing, sizeof(struct standing_row) };
    case LIST_ALARMS:
        return (struct pg_lister){ query->by.clock.wall ? select_alarms_by_wall : select_alarms,
                                   pg_read_standing, sizeof(struct standing_row) };
    case LIST_STEPS:
        break;
    }
    return (struct pg_lister){ select_counts_of_steps, read_step_count, sizeof(struct step_count) };
}

static void add_children(struct params *params, const struct child_query *query)
{
    params_int(params, (int64_t)query->child);
    params_int(params, (int64_t)query->parent);
    params_int(params, query->ordinal);
    params_int(params, (int64_t)query->after);
    params_int(params, query->ended);
}

static void add_waiting(struct params *params, const struct wait_query *query)
{
    params_int(params, (int64_t)query->after);
    params_bytes(params, query->name);
    params_bytes(params, query->filter);
    params_bytes(params, query->also);
    params_bytes(params, query->or_filter);
    params_bytes(params, query->or_also);
}

static void add_query(struct params *params, const struct rows_query *query)
{
    switch (query->kind) {
    case LIST_DEFINITIONS:
        params_bytes(params, query->by.name.data ? query->by.name : STR(""));
        return;
    case LIST_BUSY:
    case LIST_AWAITING:
        params_int(params, (int64_t)query->by.numbers.after);
        return;
    case LIST_CHILDREN:
        add_children(params, query->by.children);
        return;
    case LIST_WAITING:
        add_waiting(params, query->by.waiting);
        return;
    case LIST_STANDING:
        params_int4(params, query->by.what);
        return;
    case LIST_STEPS:
        params_bytes(params, query->by.name);
        return;
    case LIST_DUE:
        params_int(params, query->by.clock.until_ms);
        return;
    case LIST_ALARMS:
        return;
    }
}

pawl_status postgres_rows(struct store *base, struct scope *scope, const struct rows_query *query,
                          void **out, uint32_t *count)
{
    struct postgres_store *store = postgres_of(base);
    struct pg_lister lister = lister_of(query);
    struct params params = { .arena = &scope->arena };
    struct statement statement = { lister.text, &params, NULL };
    struct pg_rows rows = { .pq = store->reader->pq };
    pawl_status status;

    params_int4(&params, store->shard);
    params_int(&params, query->limit);
    add_query(&params, query);
    if (query->kind == LIST_STEPS)
        TRY(pg_exchange_long(store, scope, &statement));
    else
        TRY(pg_exchange(store, scope, &statement, 1));
    rows.result = statement.result;
    status = query->kind == LIST_BUSY
                 ? take_busy(scope, &rows, out, count)
                 : pg_read_all(scope, &rows, lister.read, lister.size, out, count);
    link_clear(store->reader, &statement, 1);
    return status;
}
