/* count_rows.c - how many instances stand where.
 *
 * A scan: rows of heads and instances in order of number, each of them narrow. An index by
 * state would have to be written with every entry, which is what an entry must not cost; see
 * docs/performance.md for what the scan costs. It runs on a connection of its own, so that it
 * holds up neither other readers nor the drain. */
#include "base/assert.h"
#include "base/grow.h"
#include "tail.h"

static const char select_names[] =
    "SELECT d.name, d.version, s.name, s.terminal FROM pawl_state s"
    " JOIN pawl_definition d ON d.id = s.definition WHERE s.definition = ?1 AND s.idx = ?2";

struct count_cell {
    uint32_t definition, state;
    uint64_t total, running, paused;
};

/* Which of its numbers a row is counted in. */
enum counted { COUNT_TOTAL, COUNT_RUNNING, COUNT_PAUSED };

/* Of all instances, and of those of one definition. */
#define COUNTED(select)                                                                            \
    {                                                                                              \
        select, select " AND i.definition IN (SELECT id FROM pawl_definition"                      \
                       " WHERE name = ?1 AND (?2 = 0 OR version = ?2))"                            \
    }
static const char *const select_counted[][2] = {
    [COUNT_TOTAL] = COUNTED("SELECT i.number, i.definition, " HEAD_STATE " FROM pawl_instance i"
                            " LEFT JOIN pawl_head h ON h.inst = i.number WHERE 1"),
    [COUNT_RUNNING] =
        COUNTED("SELECT DISTINCT i.number, i.definition, " HEAD_STATE " FROM pawl_step p"
                " JOIN pawl_instance i ON i.number = p.inst"
                " LEFT JOIN pawl_head h ON h.inst = i.number WHERE p.status IN (1, 2)"
                " AND p.inst NOT IN (SELECT inst FROM pawl_pause)"),
    [COUNT_PAUSED] = COUNTED("SELECT i.number, i.definition, " HEAD_STATE " FROM pawl_pause p"
                             " JOIN pawl_instance i ON i.number = p.inst"
                             " LEFT JOIN pawl_head h ON h.inst = i.number WHERE 1"),
};

struct row_counting {
    struct sqlite_store *store;
    struct scope *scope;
    struct connection connection;
    struct tail tail;
    struct map places; /* definition and state -> index of its cell */
    struct count_cell *cells;
    uint32_t count, capacity;
    uint32_t last; /* index of the cell that was counted in last */
};

/* Most rows are like the one before. */
static struct count_cell *find_cell(struct row_counting *counting, uint32_t definition,
                                    uint32_t state)
{
    uint64_t key = ((uint64_t)definition << 32 | state) + 1;
    uint32_t index = counting->last;

    if (index < counting->count && counting->cells[index].definition == definition &&
        counting->cells[index].state == state)
        return &counting->cells[index];
    index = map_get(&counting->places, key);
    if (index == MAP_NONE) {
        if (!HEAP_GROW(counting->store->heap, counting->cells, counting->capacity,
                       counting->count + 1) ||
            !map_put(&counting->places, key, counting->count))
            return NULL;
        index = counting->count++;
        counting->cells[index] = (struct count_cell){ .definition = definition, .state = state };
    }
    counting->last = index;
    return &counting->cells[index];
}

static pawl_status count_row(struct row_counting *counting, sqlite3_stmt *statement,
                             enum counted counted)
{
    uint32_t definition = column_u32(statement, 1), state = 0;
    struct count_cell *cell;

    TRY(tail_state(&counting->tail, counting->scope, column_u64(statement, 0), definition,
                   column_u32(statement, 2), &state));
    cell = find_cell(counting, definition, state);
    TRY_MEMORY(counting->scope, cell);
    cell->total += counted == COUNT_TOTAL;
    cell->running += counted == COUNT_RUNNING;
    cell->paused += counted == COUNT_PAUSED;
    return PAWL_OK;
}

static pawl_status count_rows(struct row_counting *counting, str name, uint32_t version,
                              enum counted counted)
{
    sqlite3_stmt *statement;

    TRY(statement_get(&counting->connection, counting->scope,
                      select_counted[counted][name.data != NULL], &statement));
    if (name.data) {
        bind_text(statement, 1, name);
        bind_u64(statement, 2, version);
    }
    for (bool row = true;;) {
        TRY(statement_step(statement, counting->scope, &row));
        if (!row)
            return PAWL_OK;
        TRY(count_row(counting, statement, counted));
    }
}

static void read_names(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct state_count *row = out;

    row->definition = column_str(statement, 0, arena);
    row->version = column_u32(statement, 1);
    row->state = column_str(statement, 2, arena);
    row->terminal = (enum terminal_kind)(column_u32(statement, 3) % (TERMINAL_CANCEL + 1));
}

static pawl_status name_cells(struct row_counting *counting, struct state_count *out)
{
    sqlite3_stmt *statement;
    pawl_status status;

    TRY(statement_get(&counting->connection, counting->scope, select_names, &statement));
    for (uint32_t i = 0; i < counting->count; i++) {
        const struct count_cell *cell = &counting->cells[i];

        out[i] = (struct state_count){ .total = cell->total,
                                       .running = cell->running,
                                       .paused = cell->paused };
        bind_u64(statement, 1, cell->definition);
        bind_u64(statement, 2, cell->state);
        status = read_row(counting->scope, statement, "state", read_names, &out[i]);
        if (status == PAWL_NOT_KNOWN)
            return scope_fail(counting->scope, PAWL_STORAGE_FAILURE,
                              "definition %u has no state %u that an instance is in; run pawl "
                              "verify",
                              cell->definition, cell->state);
        TRY(status);
    }
    return PAWL_OK;
}

static pawl_status count_all(struct row_counting *counting, str name, uint32_t version,
                             struct state_count **out)
{
    struct state_count *rows;

    TRY(tail_begin(&counting->tail, &counting->connection, counting->store->heap, counting->scope));
    for (enum counted i = COUNT_TOTAL; i <= COUNT_PAUSED; i++)
        TRY(count_rows(counting, name, version, i));
    rows = ARENA_ARRAY(&counting->scope->arena, struct state_count, (size_t)counting->count + 1);
    TRY_MEMORY(counting->scope, rows);
    TRY(name_cells(counting, rows));
    *out = rows;
    return PAWL_OK;
}

pawl_status sqlite_counts(struct store *base, struct scope *scope, str name, uint32_t version,
                          struct state_count **out, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct row_counting counting = { .store = store, .scope = scope };
    pawl_status status;

    TRY(scan_open(store, scope, &counting.connection));
    map_init(&counting.places, store->heap);
    status = count_all(&counting, name, version, out);
    if (status == PAWL_OK)
        *count = counting.count;
    tail_end(&counting.tail);
    map_fini(&counting.places);
    heap_free(store->heap, counting.cells, sizeof *counting.cells * counting.capacity);
    connection_close(&counting.connection);
    return status;
}
