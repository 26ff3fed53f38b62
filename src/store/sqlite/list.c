/* list.c - instances by what they are and where they stand.
 *
 * The statement is put together from the fragments below and nothing else; what the caller
 * says goes in as parameters, each with a number of its own.
 *
 * One filter drives: its index gives numbers in order, from the cursor on, and the others are
 * looked at row by row (a `+` keeps SQLite from choosing again). So a page costs what its rows
 * and those passed over cost, wherever it lies, and all pages together pass over each row once.
 * States have no index (see count_rows.c); a rare one is found by looking at all rows that the
 * driving filter gives, on a connection of its own. What ended in a time is between two positions
 * of the log, since its times never fall: where few records are between them, they drive. */
#include "base/buf.h"
#include "base/planted.h"
#include "base/sort.h"
#include "list_int.h"
#include <stdlib.h>

enum parameter {
    P_DEFINITION = 1,
    P_VERSION,
    P_KIND,
    P_DRIVING, /* the definition that drives */
    P_SUBJECT,
    P_CORRELATION,
    P_CREATED_AFTER,
    P_CREATED_BEFORE,
    P_AFTER,
    P_FIRST, /* no number below it can match */
    P_LIMIT, /* every statement has it */
    P_LABEL, /* a key and a value for each label */
    P_END_FIRST = 28,
    P_END_LAST,
};

static const char *const from[] = {
    [BY_SUBJECT] = " FROM pawl_instance i INDEXED BY pawl_instance_subject",
    [BY_CORRELATION] = " FROM pawl_instance i INDEXED BY pawl_instance_correlation",
    [BY_LABEL] = " FROM pawl_label l CROSS JOIN pawl_instance i",
    [BY_RUNNING] = " FROM pawl_instance i",
    [BY_PAUSED] = " FROM pawl_instance i",
    [BY_ENDED] = " FROM pawl_instance i",
    [BY_DEFINITION] = " FROM pawl_instance i INDEXED BY pawl_instance_definition",
    [BY_NUMBER] = " FROM pawl_instance i NOT INDEXED",
};

/* The driving filter first. */
static const char *const driving[] = {
    [BY_SUBJECT] =
        " WHERE i.subject = (SELECT id FROM pawl_value WHERE interned = 1 AND bytes = ?5)",
    [BY_CORRELATION] = " WHERE i.correlation = ?6",
    [BY_LABEL] = " WHERE l.key = ?12 AND l.value = ?13 AND i.number = l.inst",
    [BY_RUNNING] = " WHERE i.number IN (SELECT inst FROM pawl_step WHERE status IN (1, 2))",
    [BY_PAUSED] = " WHERE i.number IN (SELECT inst FROM pawl_pause)",
    [BY_ENDED] = " WHERE i.number IN (SELECT inst FROM pawl_log WHERE pos BETWEEN ?28 AND ?29)",
    [BY_DEFINITION] = " WHERE i.definition = ?4",
    [BY_NUMBER] = " WHERE 1",
};

#define OF_DEFINITION "(SELECT id FROM pawl_definition WHERE "
#define LABEL_IS(key, value)                                                                       \
    " AND EXISTS (SELECT 1 FROM pawl_label l WHERE l.key = ?" #key " AND l.value = ?" #value       \
    " AND l.inst = i.number)"

static const char select_numbers[] = "SELECT i.number";
static const char select_states[] =
    "SELECT i.number, i.definition, " HEAD_STATE ", coalesce(h.pos, i.created_pos)";
static const char join_head[] = " LEFT JOIN pawl_head h ON h.inst = i.number";
static const char by_definition[] = " AND +i.definition IN " OF_DEFINITION "name = ?1)";
static const char by_version[] = " AND +i.definition IN " OF_DEFINITION "version = ?2)";
static const char by_kind[] = " AND +i.definition IN " OF_DEFINITION "kind = ?3)";
static const char by_subject[] =
    " AND +i.subject = (SELECT id FROM pawl_value WHERE interned = 1 AND bytes = ?5)";
static const char by_correlation[] = " AND +i.correlation = ?6";
#define BUSY "EXISTS (SELECT 1 FROM pawl_step p WHERE p.inst = i.number AND p.status IN (1, 2))"
#define HELD "EXISTS (SELECT 1 FROM pawl_pause p WHERE p.inst = i.number)"
static const char is_running[] = " AND " BUSY;
static const char is_waiting[] = " AND NOT " BUSY;
static const char is_held[] = " AND " HELD;
static const char is_free[] = " AND NOT " HELD;
static const char created_after[] = " AND +i.instantiated_at >= ?7";
static const char created_before[] = " AND +i.instantiated_at <= ?8";

/* The cursor, on the column that the driving index is ordered by. */
static const struct {
    const char *first, *older, *newer, *newest_first, *oldest_first;
} orders[] = { /* by number, by label */
               { " AND i.number >= ?10", " AND i.number < ?9", " AND i.number > ?9",
                 " ORDER BY i.number DESC LIMIT ?11", " ORDER BY i.number LIMIT ?11" },
               { " AND l.inst >= ?10", " AND l.inst < ?9", " AND l.inst > ?9",
                 " ORDER BY l.inst DESC LIMIT ?11", " ORDER BY l.inst LIMIT ?11" }
};

static const char *const by_label[] = {
    LABEL_IS(12, 13), LABEL_IS(14, 15), LABEL_IS(16, 17), LABEL_IS(18, 19),
    LABEL_IS(20, 21), LABEL_IS(22, 23), LABEL_IS(24, 25), LABEL_IS(26, 27),
};
#define LABEL_COUNT_MAX (sizeof by_label / sizeof *by_label)

/* Which kinds of state those that are asked for may be in: bits of enum terminal_kind. */
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

/* ---- the statement ---- */

static void add(struct buf *text, bool wanted, const char *fragment)
{
    if (wanted)
        buf_str(text, str_of(fragment));
}

/* Of what has not ended: what is held is neither running nor suspended. */
static void add_status(const struct list_query *query, enum driver driver, struct buf *text)
{
    bool running = query->status == STATUS_RUNNING, waiting = query->status == STATUS_SUSPENDED;

    add(text, running && driver != BY_RUNNING, is_running);
    add(text, waiting, is_waiting);
    add(text, running || waiting, is_free);
    add(text, query->status == STATUS_PAUSED && driver != BY_PAUSED, is_held);
}

static void add_filters(const struct listing *listing, struct buf *text)
{
    const struct list_query *query = listing->query;
    enum driver driver = listing->driver;

    add(text, query->definition.data && driver != BY_DEFINITION, by_definition);
    add(text, query->version != 0 && driver != BY_DEFINITION, by_version);
    add(text, query->kind != 0 && driver != BY_DEFINITION, by_kind);
    add(text, query->subject.data && driver != BY_SUBJECT, by_subject);
    add(text, query->correlation.data && driver != BY_CORRELATION, by_correlation);
    for (uint32_t i = driver == BY_LABEL ? 1 : 0; i < query->label_count; i++)
        add(text, true, by_label[i]);
    add_status(query, driver, text);
    add(text, query->created.has_after, created_after);
    add(text, query->created.has_before, created_before);
}

static void compose(const struct listing *listing, struct buf *text)
{
    const struct list_query *query = listing->query;
    int order = listing->driver == BY_LABEL;

    add(text, true, listing->by_state ? select_states : select_numbers);
    add(text, true, from[listing->driver]);
    add(text, listing->by_state, join_head);
    add(text, true, driving[listing->driver]);
    add_filters(listing, text);
    add(text, listing->first > 0, orders[order].first);
    add(text, query->after != 0, query->oldest_first ? orders[order].newer : orders[order].older);
    add(text, true, query->oldest_first ? orders[order].oldest_first : orders[order].newest_first);
    buf_byte(text, '\0');
}

/* Only up to what the statement has: a parameter with a higher number than its last is an error. */
static void bind_query(sqlite3_stmt *statement, const struct listing *listing, uint32_t definition)
{
    const struct list_query *query = listing->query;

    bind_text(statement, P_DEFINITION, query->definition);
    bind_u64(statement, P_VERSION, query->version);
    bind_i64(statement, P_KIND, query->kind);
    bind_u64(statement, P_DRIVING, definition);
    bind_blob(statement, P_SUBJECT, query->subject);
    bind_text(statement, P_CORRELATION, query->correlation);
    bind_i64(statement, P_CREATED_AFTER, query->created.after_ms);
    bind_i64(statement, P_CREATED_BEFORE, query->created.before_ms);
    bind_u64(statement, P_AFTER,
             query->after + (PLANTED(CURSOR_SKIPS) ? query->oldest_first ? 1 : -1 : 0));
    if (listing->by_state) /* how many to look at is not known */
        bind_i64(statement, P_LIMIT, -1);
    else
        bind_u64(statement, P_LIMIT, query->limit);
    bind_u64(statement, P_FIRST, listing->first);
    if (listing->driver == BY_ENDED) {
        bind_u64(statement, P_END_FIRST, listing->end_first);
        bind_u64(statement, P_END_LAST, listing->end_last);
    }
    for (uint32_t i = 0; i < query->label_count; i++) { /* the driving one first */
        uint32_t label = i == 0 ? listing->label : i == listing->label ? 0 : i;

        bind_text(statement, P_LABEL + 2 * (int)i, query->label_key[label]);
        bind_text(statement, P_LABEL + 2 * (int)i + 1, query->label_value[label]);
    }
}

/* ---- states ---- */

static const char select_state[] =
    "SELECT name, terminal FROM pawl_state WHERE definition = ?1 AND idx = ?2";

/* Is this state of this definition one that is asked for? The same for all who are in it. */
static pawl_status state_fits(struct listing *listing, uint32_t definition, uint32_t state,
                              bool *out)
{
    uint64_t key = ((uint64_t)definition << 32 | state) + 1;
    uint32_t known = map_get(&listing->fitting, key);
    str wanted = listing->query->state, name;
    bool row = false;
    pawl_status status = PAWL_OK;

    if (known == MAP_NONE) {
        bind_u64(listing->state, 1, definition);
        bind_u64(listing->state, 2, state);
        status = statement_step(listing->state, listing->scope, &row);
        name = (str){ row ? (const char *)sqlite3_column_text(listing->state, 0) : NULL,
                      row ? (size_t)sqlite3_column_bytes(listing->state, 0) : 0 };
        known = row && (!wanted.data || (name.data && str_eq(name, wanted))) &&
                (listing->terminals >> (column_u32(listing->state, 1) & 7) & 1);
        sqlite3_reset(listing->state);
        if (status == PAWL_OK && !map_put(&listing->fitting, key, known))
            status = scope_no_memory(listing->scope);
    }
    *out = known == 1;
    return status;
}

static pawl_status row_fits(struct listing *listing, sqlite3_stmt *statement, bool *out)
{
    uint32_t definition, state = 0;
    uint64_t pos;

    *out = true;
    if (!listing->by_state)
        return PAWL_OK;
    pos = tail_pos(&listing->tail, column_u64(statement, 0), column_u64(statement, 3));
    *out = !listing->by_end || (pos >= listing->end_first && pos <= listing->end_last);
    if (!*out)
        return PAWL_OK;
    definition = column_u32(statement, 1);
    TRY(tail_state(&listing->tail, listing->scope, column_u64(statement, 0), definition,
                   column_u32(statement, 2), &state));
    return state_fits(listing, definition, state, out);
}

/* ---- rows ---- */

/* Up to `limit` numbers of one statement. */
static pawl_status take_rows(struct listing *listing, sqlite3_stmt *statement)
{
    uint32_t end = listing->count + listing->query->limit;
    bool row = true, fits;

    while (listing->count < end) {
        TRY(statement_step(statement, listing->scope, &row));
        if (!row)
            break;
        TRY(row_fits(listing, statement, &fits));
        if (fits)
            listing->numbers[listing->count++] = column_u64(statement, 0);
    }
    return PAWL_OK;
}

static int compare_down(const void *a, const void *b)
{
    return compare_numbers_first(b, a);
}

static pawl_status run(struct listing *listing, const char *text)
{
    bool many = listing->driver == BY_DEFINITION;
    uint32_t runs = many ? listing->definition_count : 1, limit = listing->query->limit;
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = listing->connection->db;
    pawl_status status = PAWL_OK;

    if (sqlite3_prepare_v2(db, text, -1, &statement, NULL) != SQLITE_OK)
        return sqlite_fail(listing->scope, db, "preparing a list");

    listing->numbers =
        ARENA_ARRAY(&listing->scope->arena, uint64_t, (size_t)limit * (runs ? runs : 1) + 1);
    if (!listing->numbers)
        status = scope_no_memory(listing->scope);
    for (uint32_t i = 0; i < runs && status == PAWL_OK; i++) {
        bind_query(statement, listing, many ? listing->definitions[i] : 0);
        status = take_rows(listing, statement);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    if (runs > 1 && listing->count > 0)
        qsort(listing->numbers, listing->count, sizeof *listing->numbers,
              listing->query->oldest_first ? compare_numbers_first : compare_down);
    if (listing->count > limit)
        listing->count = limit;
    return status;
}

static pawl_status list(struct listing *listing)
{
    struct connection *connection = listing->connection;
    struct buf text;
    pawl_status status;

    TRY(list_plan(listing));
    if (listing->by_state) {
        TRY(tail_begin(&listing->tail, connection, listing->store->heap, listing->scope));
        TRY(statement_get(connection, listing->scope, select_state, &listing->state));
    }
    buf_init(&text, listing->store->heap, LIMIT_TEXT);
    compose(listing, &text);
    status = text.failed ? scope_no_memory(listing->scope) : run(listing, text.data);
    buf_fini(&text);
    return status;
}

/* A list by state may look at many rows: on a connection of its own it delays no other reader. */
static pawl_status list_by_state(struct listing *listing)
{
    struct connection connection;
    pawl_status status;

    TRY(scan_open(listing->store, listing->scope, &connection));
    listing->connection = &connection;
    map_init(&listing->fitting, listing->store->heap);
    status = list(listing);
    tail_end(&listing->tail);
    map_fini(&listing->fitting);
    connection_close(&connection);
    return status;
}

static pawl_status list_by_rows(struct listing *listing)
{
    pawl_status status;

    TRY(reader_begin(listing->store, listing->scope));
    listing->connection = &listing->store->reader;
    status = list(listing);
    reader_end(listing->store);
    return status;
}

pawl_status sqlite_list(struct store *base, struct scope *scope, const struct list_query *query,
                        uint64_t **out, uint32_t *count)
{
    struct listing listing = {
        .store = sqlite_store_of(base),
        .scope = scope,
        .query = query,
        .by_state = list_query_by_state(query),
        .by_end = query->ended.has_after || query->ended.has_before,
        .terminals = terminals_wanted(query),
    };

    if (query->label_count > LABEL_COUNT_MAX)
        return scope_fail(scope, PAWL_INVALID_QUERY,
                          "at most %zu labels can be asked for, found %u", LABEL_COUNT_MAX,
                          query->label_count);
    TRY(listing.by_state ? list_by_state(&listing) : list_by_rows(&listing));
    *out = listing.numbers, *count = listing.count;
    return PAWL_OK;
}
