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
    struct connection connection = { 0 };
    pawl_status status = sqlite_check(store, scope);

    if (status == PAWL_OK)
        status = connection_open(&connection, scope, sqlite_name(store), USE_SQL);
    if (status != PAWL_OK)
        return status;
    if (sqlite3_exec(connection.db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        status = sqlite_fail(scope, connection.db, "beginning to read");
        connection_close(&connection);
        return status;
    }
    *out = connection;
    return PAWL_OK;
}

/* Closing ends the snapshot. */
void scan_close(struct connection *connection)
{
    connection_close(connection);
}

static pawl_status prepare(sqlite3 *db, struct scope *scope, const char *text, sqlite3_stmt **out)
{
    if (sqlite3_prepare_v2(db, text, -1, out, NULL) != SQLITE_OK)
        return sqlite_fail(scope, db, "preparing to read the tail");
    return PAWL_OK;
}

static pawl_status read_entries(struct tail *tail, struct scope *scope, sqlite3_stmt *statement)
{
    for (;;) {
        bool row = false;
        pawl_status status = statement_step(statement, scope, &row);

        if (status != PAWL_OK || !row)
            return status;
        if (column_u64(statement, 0) != 0 &&
            (!map_put(&tail->entries, column_u64(statement, 0), column_u32(statement, 1)) ||
             !map_put(&tail->places, column_u64(statement, 0),
                      (uint32_t)(column_u64(statement, 2) - tail->flushed))))
            return scope_no_memory(scope);
    }
}

static pawl_status read_flushed(struct tail *tail, struct scope *scope, sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    pawl_status status = prepare(db, scope, select_flushed, &statement);

    if (status == PAWL_OK)
        status = read_row(scope, statement, "position", read_number, &tail->flushed);
    sqlite3_finalize(statement);
    return status;
}

pawl_status tail_begin(struct tail *tail, struct connection *connection, const struct heap *heap,
                       struct scope *scope)
{
    sqlite3_stmt *statement = NULL;
    pawl_status status;

    ASSERT(!sqlite3_get_autocommit(connection->db));
    *tail = (struct tail){ 0 };
    map_init(&tail->entries, heap);
    map_init(&tail->places, heap);
    map_init(&tail->targets, heap);
    status = read_flushed(tail, scope, connection->db);
    if (status == PAWL_OK)
        status = prepare(connection->db, scope, select_entries, &statement);
    if (status == PAWL_OK)
        status = prepare(connection->db, scope, select_target, &tail->target);
    if (status == PAWL_OK) {
        bind_u64(statement, 1, tail->flushed);
        status = read_entries(tail, scope, statement);
    }
    sqlite3_finalize(statement);
    return status;
}

void tail_end(struct tail *tail)
{
    sqlite3_finalize(tail->target);
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
    if (status != PAWL_OK)
        return status;
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
