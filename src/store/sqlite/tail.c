/* tail.c - see tail.h. */
#include "tail.h"
#include "base/assert.h"

static const char select_entries[] =
    "SELECT inst, what, pos FROM pawl_log WHERE pos > ?1 AND what >= 0 ORDER BY pos";
static const char select_flushed[] = "SELECT value FROM pawl_meta WHERE key = 'flushed'";
static const char select_target[] =
    "SELECT to_state FROM pawl_transition WHERE definition = ?1 AND idx = ?2";

pawl_status scan_open(struct sqlite_store *store, struct scope *scope, struct connection *out)
{
    pawl_status status;

    TRY(connection_open_sql(store, scope, out));
    if (sqlite3_exec(out->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK)
        return PAWL_OK;
    status = sqlite_fail(scope, out->db, "beginning to read");
    connection_close(out);
    return status;
}

static pawl_status read_entries(struct tail *tail, struct scope *scope, sqlite3_stmt *statement)
{
    for (;;) {
        bool row = false;
        uint64_t instance;

        TRY(statement_step(statement, scope, &row));
        if (!row)
            return PAWL_OK;
        instance = column_u64(statement, 0);
        if (instance != 0 && (!map_put(&tail->entries, instance, column_u32(statement, 1)) ||
                              !map_put(&tail->places, instance,
                                       (uint32_t)(column_u64(statement, 2) - tail->flushed))))
            return scope_no_memory(scope);
    }
}

pawl_status tail_begin(struct tail *tail, struct connection *connection, const struct heap *heap,
                       struct scope *scope)
{
    sqlite3_stmt *statement;

    ASSERT(!sqlite3_get_autocommit(connection->db));
    *tail = (struct tail){ 0 };
    map_init(&tail->entries, heap);
    map_init(&tail->places, heap);
    map_init(&tail->targets, heap);
    TRY(read_one_number(connection, scope, select_flushed, &tail->flushed));
    TRY(statement_get(connection, scope, select_target, &tail->target));
    TRY(statement_get(connection, scope, select_entries, &statement));
    bind_u64(statement, 1, tail->flushed);
    return read_entries(tail, scope, statement);
}

void tail_end(struct tail *tail)
{
    map_fini(&tail->entries);
    map_fini(&tail->places);
    map_fini(&tail->targets);
}

/* A transition leads to the same state for ever: asked for once. */
static pawl_status find_target(struct tail *tail, struct scope *scope, uint32_t definition,
                               uint32_t transition, uint32_t *out)
{
    uint64_t key = ((uint64_t)definition << 32 | transition) + 1, state = 0;
    pawl_status status;

    *out = map_get(&tail->targets, key);
    if (*out != MAP_NONE)
        return PAWL_OK;
    bind_u64(tail->target, 1, definition);
    bind_u64(tail->target, 2, transition);
    status = read_row(scope, tail->target, "transition", read_number, &state);
    if (status == PAWL_NOT_KNOWN || (status == PAWL_OK && state >= MAP_NONE))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "definition %u has no transition %u that an entry names; run pawl verify",
                          definition, transition);
    TRY(status);
    *out = (uint32_t)state;
    return map_put(&tail->targets, key, *out) ? PAWL_OK : scope_no_memory(scope);
}

uint64_t tail_pos(const struct tail *tail, uint64_t instance, uint64_t row_pos)
{
    uint32_t place =
        tail->places.count > 0 && instance != 0 ? map_get(&tail->places, instance) : MAP_NONE;

    return place == MAP_NONE ? row_pos : tail->flushed + place;
}

pawl_status tail_state(struct tail *tail, struct scope *scope, uint64_t instance,
                       uint32_t definition, uint32_t row_state, uint32_t *out)
{
    uint32_t transition =
        tail->entries.count > 0 && instance != 0 ? map_get(&tail->entries, instance) : MAP_NONE;

    if (transition != MAP_NONE)
        return find_target(tail, scope, definition, transition, out);
    *out = row_state;
    return PAWL_OK;
}
