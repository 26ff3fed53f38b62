/* read_rows.c - many rows at once: live rows, due timers, busy instances. */
#include "base/assert.h"
#include "read_int.h"

#define ROWS_FIRST 16u

/* Twice the room; the old rows stay in the arena until the scope ends. */
static void *grow(struct arena *arena, const void *rows, size_t size, uint32_t count,
                  uint32_t *capacity)
{
    uint32_t more = *capacity ? *capacity * 2 : ROWS_FIRST;
    char *larger = arena_alloc(arena, size * more);

    if (larger && count > 0)
        memcpy(larger, rows, size * count);
    *capacity = more;
    return larger;
}

pawl_status read_rows(struct scope *scope, sqlite3_stmt *statement, row_reader *read, size_t size,
                      uint32_t limit, void **out, uint32_t *count)
{
    char *rows = NULL;
    uint32_t found = 0, capacity = 0;
    bool row = true;

    while (found < limit) {
        pawl_status status = statement_step(statement, scope, &row);

        if (status != PAWL_OK)
            return status;
        if (!row)
            break;
        if (found == capacity)
            rows = grow(&scope->arena, rows, size, found, &capacity);
        if (rows)
            read(statement, &scope->arena, rows + size * found);
        if (scope->arena.failed)
            break;
        found++;
    }
    sqlite3_reset(statement);
    if (scope->arena.failed)
        return scope_no_memory(scope);
    *out = rows;
    *count = found;
    return PAWL_OK;
}

void read_number(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(uint64_t *)out = column_u64(statement, 0);
}

/* ---- Live rows of one instance ---- */

static const char select_steps[] = "SELECT ord, plan, attempt, status, lease, lease_ms,"
                                   " ready_at FROM pawl_step WHERE inst = ?1 ORDER BY ord";
static const char select_timers[] =
    "SELECT inst, ord, name, due, wall, shift FROM pawl_timer WHERE inst = ?1 ORDER BY ord, name";
static const char select_waits[] =
    "SELECT ord, name, value FROM pawl_wait WHERE inst = ?1"
    " UNION ALL SELECT 0, name, NULL FROM pawl_interest WHERE inst = ?1 ORDER BY 1, 2";

static const char select_children_of[] =
    "SELECT child, inst, ord, abandon, ended FROM pawl_child WHERE inst = ?1 ORDER BY ord";

static const char select_pause[] = "SELECT pos FROM pawl_pause WHERE inst = ?1";

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

void read_child(sqlite3_stmt *statement, struct arena *arena, void *out)
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

static pawl_status read_of(struct sqlite_store *store, struct scope *scope, enum statement id,
                           const char *text, uint64_t instance, row_reader *read, size_t size,
                           void **out, uint32_t *count)
{
    sqlite3_stmt *statement;
    pawl_status status = statement_get(&store->reader, scope, id, text, &statement);

    if (status != PAWL_OK)
        return status;
    bind_u64(statement, 1, instance);
    return read_rows(scope, statement, read, size, UINT32_MAX, out, count);
}

static pawl_status read_live(struct sqlite_store *store, struct scope *scope, uint64_t instance,
                             struct live *out)
{
    void *steps = NULL, *timers = NULL, *waits = NULL, *children = NULL, *pauses = NULL;
    struct live live = { 0 };
    uint32_t pause_count = 0;
    pawl_status status = read_of(store, scope, STATEMENT_LIVE_STEPS, select_steps, instance,
                                 read_step, sizeof(struct live_step), &steps, &live.step_count);

    if (status == PAWL_OK)
        status = read_of(store, scope, STATEMENT_LIVE_TIMERS, select_timers, instance, read_timer,
                         sizeof(struct live_timer), &timers, &live.timer_count);
    if (status == PAWL_OK)
        status = read_of(store, scope, STATEMENT_LIVE_WAITS, select_waits, instance, read_wait,
                         sizeof(struct live_wait), &waits, &live.wait_count);
    if (status == PAWL_OK)
        status = read_of(store, scope, STATEMENT_CHILDREN_OF, select_children_of, instance,
                         read_child, sizeof(struct live_child), &children, &live.child_count);
    if (status == PAWL_OK)
        status = read_of(store, scope, STATEMENT_LIVE_PAUSE, select_pause, instance, read_number,
                         sizeof(uint64_t), &pauses, &pause_count);
    if (status != PAWL_OK)
        return status;
    live.paused_pos = pause_count ? *(uint64_t *)pauses : 0;
    live.steps = steps;
    live.timers = timers;
    live.waits = waits;
    live.children = children;
    *out = live;
    return PAWL_OK;
}

pawl_status sqlite_live(struct store *base, struct scope *scope, uint64_t instance,
                        struct live *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status = reader_begin(store, scope);

    if (status != PAWL_OK)
        return status;
    status = read_live(store, scope, instance, out);
    reader_end(store);
    return status;
}

/* ---- What is due, what is busy ---- */

#define SELECT_DUE(whose)                                                                          \
    "SELECT inst, ord, name, due, wall, shift,"                                                    \
    " (SELECT definition FROM pawl_instance WHERE number = inst)"                                  \
    " FROM pawl_timer WHERE test = 0 AND wall " whose                                              \
    " AND inst NOT IN (SELECT inst FROM pawl_pause) ORDER BY due, inst, ord, name LIMIT ?1"
static const char select_due[] = SELECT_DUE("IS NULL");
static const char select_due_by_wall[] = SELECT_DUE("= 1");
static const char select_busy[] = "SELECT DISTINCT inst FROM pawl_step WHERE status IN (1, 2)"
                                  " AND inst > ?1 ORDER BY inst LIMIT ?2";

static void read_due_timer(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    read_timer(statement, arena, out);
    ((struct live_timer *)out)->definition = column_u32(statement, 6);
}

/* One row more than asked for tells when the next is due. */
static pawl_status read_due(struct sqlite_store *store, struct scope *scope, bool wall,
                            uint32_t limit, struct live_timer **out, uint32_t *count)
{
    void *rows = NULL;
    sqlite3_stmt *statement;
    pawl_status status =
        wall ? statement_get(&store->reader, scope, STATEMENT_DUE_BY_WALL, select_due_by_wall,
                             &statement)
             : statement_get(&store->reader, scope, STATEMENT_DUE, select_due, &statement);

    if (status != PAWL_OK)
        return status;
    bind_u64(statement, 1, (uint64_t)limit + 1);
    status = read_rows(scope, statement, read_due_timer, sizeof **out, UINT32_MAX, &rows, count);
    *out = rows;
    return status;
}

pawl_status sqlite_due(struct store *base, struct scope *scope, bool wall, int64_t now_ms,
                       uint32_t limit, struct live_timer **out, uint32_t *count, int64_t *next_ms)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct live_timer *timers = NULL;
    uint32_t found = 0, due = 0;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = read_due(store, scope, wall, limit, &timers, &found);
    reader_leave(store);
    if (status != PAWL_OK)
        return status;
    while (due < found && due < limit && timers[due].due_at_ms <= now_ms)
        due++;
    *out = timers;
    *count = due;
    *next_ms = due < found ? timers[due].due_at_ms : INT64_MAX;
    return PAWL_OK;
}

static const char select_stepping[] = "SELECT DISTINCT inst FROM pawl_step WHERE inst > ?1"
                                      " ORDER BY inst LIMIT ?2";

static pawl_status read_busy(struct sqlite_store *store, struct scope *scope, uint64_t after,
                             bool pending, uint32_t limit, uint64_t **out, uint32_t *count)
{
    void *rows = NULL;
    sqlite3_stmt *statement;
    pawl_status status =
        pending
            ? statement_get(&store->reader, scope, STATEMENT_STEPPING, select_stepping, &statement)
            : statement_get(&store->reader, scope, STATEMENT_BUSY, select_busy, &statement);

    if (status != PAWL_OK)
        return status;
    bind_u64(statement, 1, after);
    bind_u64(statement, 2, limit);
    status = read_rows(scope, statement, read_number, sizeof **out, limit, &rows, count);
    if (status == PAWL_OK)
        *out = rows;
    return status;
}

pawl_status sqlite_busy(struct store *base, struct scope *scope, uint64_t after, bool pending,
                        uint32_t limit, uint64_t **out, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = read_busy(store, scope, after, pending, limit, out, count);
    reader_leave(store);
    return status;
}

static const char select_awaiting[] =
    "SELECT w.inst, l.pos, l.what FROM"
    " (SELECT DISTINCT inst FROM pawl_wait WHERE inst > ?1 ORDER BY inst LIMIT ?2) AS w"
    " CROSS JOIN pawl_head AS h ON h.inst = w.inst CROSS JOIN pawl_log AS l ON l.pos = h.pos"
    " ORDER BY w.inst";

static void read_last(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(struct last_row *)out = (struct last_row){ .instance = column_u64(statement, 0),
                                                 .pos = column_u64(statement, 1),
                                                 .what = sqlite3_column_int(statement, 2) };
}

pawl_status sqlite_awaiting(struct store *base, struct scope *scope, uint64_t after,
                            uint32_t limit, struct last_row **out, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    void *rows = NULL;
    sqlite3_stmt *statement;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = statement_get(&store->reader, scope, STATEMENT_AWAITING, select_awaiting, &statement);
    if (status == PAWL_OK) {
        bind_u64(statement, 1, after);
        bind_u64(statement, 2, limit);
        status = read_rows(scope, statement, read_last, sizeof **out, limit, &rows, count);
    }
    reader_leave(store);
    *out = rows;
    return status;
}
