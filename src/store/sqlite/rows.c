/* rows.c - many rows at once: the live rows of an instance, and rows of a kind in its order. */
#include "base/assert.h"
#include "base/grow.h"
#include "tail.h"

/* Step a bound statement to its end and read all rows into one array of the scope's. Rows are
 * `size` bytes each; there may be at most `limit`. `out` is where the pointer to the array goes. */
static pawl_status read_rows(struct scope *scope, sqlite3_stmt *statement, row_reader *read,
                             size_t size, uint32_t limit, void *out, uint32_t *count)
{
    char *rows = NULL;
    uint32_t found = 0, capacity = 0;
    bool row = true;

    while (found < limit) {
        TRY(statement_step(statement, scope, &row));
        if (!row)
            break;
        if (arena_grow(&scope->arena, &rows, found, &capacity, size))
            read(statement, &scope->arena, rows + size * found);
        if (scope->arena.failed)
            break;
        found++;
    }
    sqlite3_reset(statement);
    TRY_MEMORY(scope, !scope->arena.failed);
    memcpy(out, &rows, sizeof rows);
    *count = found;
    return PAWL_OK;
}

void read_number(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(uint64_t *)out = column_u64(statement, 0);
}

pawl_status read_one_number(struct connection *connection, struct scope *scope, const char *text,
                            uint64_t *out)
{
    sqlite3_stmt *statement;

    TRY(statement_get(connection, scope, text, &statement));
    return read_row(scope, statement, "number", read_number, out);
}

/* ---- How each kind is read ---- */

/* All live rows of an instance: the columns of each kind, then which kind it is (the places in
 * live_kinds[]), and by what the rows of that kind are ordered. */
static const char select_live[] =
    "SELECT ord, plan, attempt, status, lease, lease_ms, ready_at, 0, ord, NULL"
    " FROM pawl_step WHERE inst = ?1"
    " UNION ALL SELECT inst, ord, name, due, wall, shift, NULL, 1, ord, name"
    " FROM pawl_timer WHERE inst = ?1"
    " UNION ALL SELECT ord, name, value, NULL, NULL, NULL, NULL, 2, ord, name"
    " FROM pawl_wait WHERE inst = ?1"
    " UNION ALL SELECT 0, name, NULL, NULL, NULL, NULL, NULL, 2, 0, name"
    " FROM pawl_interest WHERE inst = ?1"
    " UNION ALL SELECT child, inst, ord, abandon, ended, NULL, NULL, 3, ord, NULL"
    " FROM pawl_child WHERE inst = ?1"
    " UNION ALL SELECT pos, NULL, NULL, NULL, NULL, NULL, NULL, 4, NULL, NULL"
    " FROM pawl_pause WHERE inst = ?1 ORDER BY 8, 9, 10";
#define KIND_COLUMN 7

static void read_step(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    *(struct live_step *)out = (struct live_step){
        .ordinal = column_u32(statement, 0),
        .plan = column_u32(statement, 1),
        .attempt = column_u32(statement, 2),
        .status = (enum step_status)column_u32(statement, 3),
        .lease = column_str(statement, 4, arena),
        .lease_ms = column_i64(statement, 5),
        .ready_at_ms = column_i64(statement, 6),
    };
}

static void read_timer(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    *(struct live_timer *)out = (struct live_timer){
        .instance = column_u64(statement, 0),
        .ordinal = column_u32(statement, 1),
        .name = column_str(statement, 2, arena),
        .due_at_ms = column_i64(statement, 3),
        .wall = column_u64(statement, 4) != 0,
        .shift_ms = column_i64(statement, 5),
    };
}

static void read_wait(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    *(struct live_wait *)out = (struct live_wait){
        .ordinal = column_u32(statement, 0),
        .name = column_str(statement, 1, arena),
        .value = column_str(statement, 2, arena),
    };
}

static void read_child(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(struct live_child *)out = (struct live_child){
        .child = column_u64(statement, 0),
        .parent = column_u64(statement, 1),
        .ordinal = column_u32(statement, 2),
        .abandon = column_u64(statement, 3) != 0,
        .ended = column_u64(statement, 4) != 0,
    };
}

#define SELECT_DUE(whose)                                                                          \
    "SELECT inst, ord, name, due, wall, shift,"                                                    \
    " (SELECT definition FROM pawl_instance WHERE number = inst)"                                  \
    " FROM pawl_timer WHERE test = 0 AND wall " whose " AND due <= ?2"                             \
    " AND inst NOT IN (SELECT inst FROM pawl_pause) ORDER BY due, inst, ord, name LIMIT ?1"
static const char select_due[] = SELECT_DUE("IS NULL");
static const char select_due_by_wall[] = SELECT_DUE("= 1");
static const char select_busy[] = "SELECT DISTINCT inst FROM pawl_step WHERE status IN (1, 2)"
                                  " AND inst > ?2 ORDER BY inst LIMIT ?1";

static void read_due_timer(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    read_timer(statement, arena, out);
    ((struct live_timer *)out)->definition = column_u32(statement, 6);
}

static void read_busy(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(struct busy_row *)out = (struct busy_row){ .instance = column_u64(statement, 0) };
}

static const char select_stepping[] = "SELECT DISTINCT inst FROM pawl_step WHERE inst > ?2"
                                      " ORDER BY inst LIMIT ?1";

static const char select_awaiting[] =
    "SELECT w.inst, l.pos, l.what FROM"
    " (SELECT DISTINCT inst FROM pawl_wait WHERE inst > ?2 ORDER BY inst LIMIT ?1) AS w"
    " CROSS JOIN pawl_head AS h ON h.inst = w.inst CROSS JOIN pawl_log AS l ON l.pos = h.pos"
    " ORDER BY w.inst";

static void read_last(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(struct last_row *)out = (struct last_row){ .instance = column_u64(statement, 0),
                                                 .pos = column_u64(statement, 1),
                                                 .what = sqlite3_column_int(statement, 2) };
}

/* What is not asked for is 0. Each text has the column in front by which SQLite is to find rows. */
#define CHILDREN(found_by)                                                                         \
    "SELECT child, inst, ord, abandon, ended FROM pawl_child WHERE " found_by                      \
    " AND (?2 = 0 OR child = ?2) AND (?3 = 0 OR inst = ?3) AND (?4 = 0 OR ord = ?4)"               \
    " AND (?6 = 0 OR ended = 1) AND child > ?5 ORDER BY child LIMIT ?1"

static const char select_child[] = CHILDREN("child = ?2");
static const char select_children[] = CHILDREN("inst = ?3");
static const char select_ended[] = CHILDREN("ended = 1");

/* A range of an index each, merged: a page costs what it returns. */
#define WAITS(by_value) "SELECT inst FROM pawl_wait WHERE name = ?2" by_value " AND inst > ?3"
#define INTERESTS(name) " UNION SELECT inst FROM pawl_interest WHERE name = " name " AND inst > ?3"
#define IN_ORDER        " ORDER BY inst LIMIT ?1"

static const char select_waiting[] = WAITS("") INTERESTS("?5") IN_ORDER;
static const char select_waiting_value[] = WAITS(" AND value = ?4") INTERESTS("?5") IN_ORDER;
static const char select_waiting_either[] = WAITS(" AND value = ?4")
    INTERESTS("?5") " UNION " WAITS(" AND value = ?6") INTERESTS("?7") IN_ORDER;

static const char select_standing[] =
    "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE "
    "what = ?2 ORDER BY due, id LIMIT ?1";
/* Here `what` is a literal: only so their partial indexes are used. */
static const char select_alarms[] =
    "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE what = -5 AND wall IS NULL"
    " ORDER BY due, id LIMIT ?1";
static const char select_alarms_by_wall[] =
    "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE what = -5 AND wall = 1"
    " ORDER BY due, id LIMIT ?1";

/* SQLite takes the other columns from the row that max() took. */
static const char select_names[] =
    "SELECT d.id, d.name, max(d.version), d.kind, d.created_at, s.sha256,"
    " d.compiled_sha256"
    " FROM pawl_definition d LEFT JOIN pawl_source s ON s.id = d.source"
    " WHERE d.name > ?2 GROUP BY d.name ORDER BY d.name LIMIT ?1";

/* Live rows never lag, so the tail of the log is not looked at. */
static const char select_step_counts[] =
    "SELECT d.version, p.plan, count(*) FROM pawl_step p"
    " JOIN pawl_instance i ON i.number = p.inst JOIN pawl_definition d ON d.id = i.definition"
    " WHERE d.name = ?2 GROUP BY d.version, p.plan ORDER BY d.version, p.plan LIMIT ?1";

static void read_step_count(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(struct step_count *)out = (struct step_count){
        .version = column_u32(statement, 0),
        .plan = column_u32(statement, 1),
        .total = column_u64(statement, 2),
    };
}

/* ---- Any of them ---- */

struct lister {
    const char *text;
    row_reader *read;
    size_t size;
};

#define LISTER(text, read, type) ((struct lister){ text, read, sizeof(type) })

enum { STEPS, TIMERS, WAITS, CHILDREN_LEFT, PAUSES, LIVE_KINDS };

static const struct {
    row_reader *read;
    size_t size;
} live_kinds[LIVE_KINDS] = {
    [STEPS] = { read_step, sizeof(struct live_step) },
    [TIMERS] = { read_timer, sizeof(struct live_timer) },
    [WAITS] = { read_wait, sizeof(struct live_wait) },
    [CHILDREN_LEFT] = { read_child, sizeof(struct live_child) },
    [PAUSES] = { read_number, sizeof(uint64_t) },
};

struct live_array {
    char *rows;
    uint32_t count, capacity;
};

static pawl_status read_live_row(struct scope *scope, sqlite3_stmt *statement,
                                 struct live_array arrays[LIVE_KINDS])
{
    uint32_t kind = column_u32(statement, KIND_COLUMN);
    struct live_array *array = &arrays[kind];
    size_t size = live_kinds[kind].size;

    TRY_MEMORY(scope,
               arena_grow(&scope->arena, &array->rows, array->count, &array->capacity, size));
    live_kinds[kind].read(statement, &scope->arena, array->rows + size * array->count++);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

static struct live live_of(const struct live_array arrays[LIVE_KINDS])
{
    return (struct live){
        .steps = (void *)arrays[STEPS].rows,
        .step_count = arrays[STEPS].count,
        .timers = (void *)arrays[TIMERS].rows,
        .timer_count = arrays[TIMERS].count,
        .waits = (void *)arrays[WAITS].rows,
        .wait_count = arrays[WAITS].count,
        .children = (void *)arrays[CHILDREN_LEFT].rows,
        .child_count = arrays[CHILDREN_LEFT].count,
        .paused_pos = arrays[PAUSES].count ? *(uint64_t *)(void *)arrays[PAUSES].rows : 0,
    };
}

pawl_status live_read(struct sqlite_store *store, struct scope *scope, uint64_t instance,
                      struct live *out)
{
    struct live_array arrays[LIVE_KINDS] = { 0 };
    sqlite3_stmt *statement;
    bool row = true;
    pawl_status status;

    TRY(statement_get(&store->reader, scope, select_live, &statement));
    bind_u64(statement, 1, instance);
    do {
        status = statement_step(statement, scope, &row);
        if (status == PAWL_OK && row)
            status = read_live_row(scope, statement, arrays);
    } while (status == PAWL_OK && row);
    sqlite3_reset(statement);
    *out = live_of(arrays);
    return status;
}

pawl_status sqlite_live(struct store *base, struct scope *scope, uint64_t instance,
                        struct live *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status;

    TRY(reader_begin(store, scope));
    status = live_read(store, scope, instance, out);
    reader_end(store);
    return status;
}

static struct lister lister_of(const struct rows_query *query)
{
    const struct child_query *children = query->by.children;
    const struct wait_query *waiting = query->by.waiting;

    switch (query->kind) {
    case LIST_DEFINITIONS:
        return LISTER(select_names, read_definition_facts, struct definition_row);
    case LIST_DUE:
        return LISTER(query->by.clock.wall ? select_due_by_wall : select_due, read_due_timer,
                      struct live_timer);
    case LIST_BUSY:
        return LISTER(query->by.numbers.pending ? select_stepping : select_busy, read_busy,
                      struct busy_row);
    case LIST_AWAITING:
        return LISTER(select_awaiting, read_last, struct last_row);
    case LIST_CHILDREN:
        return LISTER(children->child   ? select_child
                      : children->ended ? select_ended
                                        : select_children,
                      read_child, struct live_child);
    case LIST_WAITING:
        return LISTER(!waiting->filter.data      ? select_waiting
                      : !waiting->or_filter.data ? select_waiting_value
                                                 : select_waiting_either,
                      read_number, uint64_t);
    case LIST_STANDING:
        return LISTER(select_standing, read_standing, struct standing_row);
    case LIST_ALARMS:
        return LISTER(query->by.clock.wall ? select_alarms_by_wall : select_alarms, read_standing,
                      struct standing_row);
    case LIST_STEPS:
        break;
    }
    return LISTER(select_step_counts, read_step_count, struct step_count);
}

static void bind_if_any(sqlite3_stmt *statement, int at, str text)
{
    if (text.data)
        bind_text(statement, at, text);
}

static void bind_children(sqlite3_stmt *statement, const struct child_query *query)
{
    bind_u64(statement, 2, query->child);
    bind_u64(statement, 3, query->parent);
    bind_u64(statement, 4, query->ordinal);
    bind_u64(statement, 5, query->after);
    bind_u64(statement, 6, query->ended);
}

static void bind_waiting(sqlite3_stmt *statement, const struct wait_query *query)
{
    bind_text(statement, 2, query->name);
    bind_u64(statement, 3, query->after);
    bind_if_any(statement, 4, query->filter);
    bind_if_any(statement, 5, query->also);
    bind_if_any(statement, 6, query->or_filter);
    bind_if_any(statement, 7, query->or_also);
}

/* In every statement ?1 is the limit. */
static void bind_rows(sqlite3_stmt *statement, const struct rows_query *query)
{
    bind_u64(statement, 1, query->limit);
    switch (query->kind) {
    case LIST_DEFINITIONS:
        bind_text(statement, 2, query->by.name.data ? query->by.name : STR(""));
        break;
    case LIST_BUSY:
    case LIST_AWAITING:
        bind_u64(statement, 2, query->by.numbers.after);
        break;
    case LIST_CHILDREN:
        bind_children(statement, query->by.children);
        break;
    case LIST_WAITING:
        bind_waiting(statement, query->by.waiting);
        break;
    case LIST_STANDING:
        bind_i64(statement, 2, query->by.what);
        break;
    case LIST_STEPS:
        bind_text(statement, 2, query->by.name);
        break;
    case LIST_DUE:
        bind_i64(statement, 2, query->by.clock.until_ms);
        break;
    case LIST_ALARMS:
        break;
    }
}

static pawl_status list_rows(struct connection *connection, struct scope *scope,
                             const struct rows_query *query, void **out, uint32_t *count)
{
    const struct lister lister = lister_of(query);
    sqlite3_stmt *statement;

    TRY(statement_get(connection, scope, lister.text, &statement));
    bind_rows(statement, query);
    return read_rows(scope, statement, lister.read, lister.size, query->limit, out, count);
}

/* On a connection of its own: all instances of the definition are looked at. */
static pawl_status list_steps(struct sqlite_store *store, struct scope *scope,
                              const struct rows_query *query, void **out, uint32_t *count)
{
    struct connection connection;
    pawl_status status;

    TRY(scan_open(store, scope, &connection));
    status = list_rows(&connection, scope, query, out, count);
    connection_close(&connection);
    return status;
}

/* In one transaction: the live rows belong to the numbers. */
static pawl_status list_busy(struct sqlite_store *store, struct scope *scope,
                             const struct rows_query *query, void **out, uint32_t *count)
{
    pawl_status status;

    TRY(reader_begin(store, scope));
    status = list_rows(&store->reader, scope, query, out, count);
    for (uint32_t i = 0; status == PAWL_OK && i < *count; i++) {
        struct busy_row *rows = *out;

        status = live_read(store, scope, rows[i].instance, &rows[i].live);
    }
    reader_end(store);
    return status;
}

pawl_status sqlite_rows(struct store *base, struct scope *scope, const struct rows_query *query,
                        void **out, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status;

    if (query->kind == LIST_STEPS)
        return list_steps(store, scope, query, out, count);
    if (query->kind == LIST_BUSY)
        return list_busy(store, scope, query, out, count);
    TRY(reader_enter(store, scope));
    status = list_rows(&store->reader, scope, query, out, count);
    reader_leave(store);
    return status;
}
