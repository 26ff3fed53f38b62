/* list_plan.c - before the rows of a list: which index drives it. */
#include "list_int.h"

/* `text` gives the first row from number ?1 on, and its time, which never falls. *out: the first
 * number up to `high` whose time is not before `at_ms`; the next number if no instance is that
 * late. */
static pawl_status find_at(const struct listing *listing, const char *text, uint64_t high,
                           int64_t at_ms, uint64_t *out)
{
    sqlite3_stmt *statement;
    uint64_t low = 1;
    bool row = false;

    TRY(statement_get(listing->connection, listing->scope, text, &statement));
    while (low <= high) {
        uint64_t middle = low + (high - low) / 2;

        bind_u64(statement, 1, middle);
        TRY(statement_step(statement, listing->scope, &row));
        if (row && column_i64(statement, 1) < at_ms)
            low = column_u64(statement, 0) + 1;
        else
            high = middle - 1;
        sqlite3_reset(statement);
    }
    *out = low;
    return PAWL_OK;
}

static const char select_definitions[] =
    "SELECT id FROM pawl_definition WHERE (?1 IS NULL OR name = ?1) AND (?2 = 0 OR version = ?2)"
    " AND (?3 = 0 OR kind = ?3) ORDER BY id LIMIT ?4";

/* The definitions that match, one more than can be merged at most. */
static pawl_status find_definitions(struct listing *listing)
{
    const struct list_query *query = listing->query;
    sqlite3_stmt *statement;

    TRY(statement_get(listing->connection, listing->scope, select_definitions, &statement));
    bind_text(statement, 1, query->definition);
    bind_u64(statement, 2, query->version);
    bind_i64(statement, 3, query->kind);
    bind_u64(statement, 4, DEFINITIONS_MERGED + 1);
    for (bool row = true;;) {
        TRY(statement_step(statement, listing->scope, &row));
        if (!row)
            return PAWL_OK;
        listing->definitions[listing->definition_count++] = column_u32(statement, 0);
    }
}

/* Subjects and correlations are of few instances each, a label may be of all of them. */
static pawl_status choose_driver(struct listing *listing)
{
    const struct list_query *query = listing->query;
    pawl_status status = PAWL_OK;

    listing->driver = BY_NUMBER;
    if (query->subject.data)
        listing->driver = BY_SUBJECT;
    else if (query->correlation.data)
        listing->driver = BY_CORRELATION;
    else if (query->label_count > 0)
        listing->driver = BY_LABEL;
    else if (query->status == STATUS_RUNNING)
        listing->driver = BY_RUNNING;
    else if (query->status == STATUS_PAUSED)
        listing->driver = BY_PAUSED;
    else if (query->definition.data || query->version != 0 || query->kind != 0) {
        status = find_definitions(listing);
        if (listing->definition_count <= DEFINITIONS_MERGED)
            listing->driver = BY_DEFINITION;
    }
    return status;
}

/* ---- labels ---- */

#define LABEL_LOOK 10000 /* rows; a label of more is common enough */

static const char count_label[] =
    "SELECT count(*) FROM (SELECT 1 FROM pawl_label WHERE key = ?1 AND value = ?2 LIMIT ?3)";

/* The rarest of the labels that are asked for drives. */
static pawl_status choose_label(struct listing *listing)
{
    const struct list_query *query = listing->query;
    uint64_t fewest = UINT64_MAX, found = 0;
    sqlite3_stmt *statement;

    TRY(statement_get(listing->connection, listing->scope, count_label, &statement));
    for (uint32_t i = 0; i < query->label_count; i++) {
        bind_text(statement, 1, query->label_key[i]);
        bind_text(statement, 2, query->label_value[i]);
        bind_u64(statement, 3, LABEL_LOOK);
        TRY(read_row(listing->scope, statement, "label", read_number, &found));
        if (found >= fewest)
            continue;
        listing->label = i;
        fewest = found;
    }
    return PAWL_OK;
}

#define RECORDS_PER_ROW 4 /* a record is wider than a row */

static const char select_created[] =
    "SELECT i.number, r.at FROM pawl_instance i JOIN pawl_log r ON r.pos = i.created_pos"
    " WHERE i.number >= ?1 ORDER BY i.number LIMIT 1";
static const char select_last[] = "SELECT max(number) FROM pawl_instance";

static const char select_clock[] =
    "SELECT count(*) FROM pawl_kept WHERE what = -11 AND id = '" CLOCK_WALL "'";

/* Without a clock record, numbers grow with the times of their create records, and no instance has
 * an instantiated_at after its record's time. So a binary search finds the first number recorded at
 * or after that time, and no match has a lower number. After a jump of the clock that order does
 * not hold: all instances are compared. */
static pawl_status find_first(struct listing *listing)
{
    uint64_t has_jumped = 0, last = 0;

    TRY(read_one_number(listing->connection, listing->scope, select_clock, &has_jumped));
    if (has_jumped)
        return PAWL_OK;
    TRY(read_one_number(listing->connection, listing->scope, select_last, &last));
    return find_at(listing, select_created, last, listing->query->created.after_ms,
                   &listing->first);
}

/* ---- ends ---- */

static const char select_log_end[] = "SELECT coalesce(max(pos), 0) FROM pawl_log";
static const char select_at[] = "SELECT pos, at FROM pawl_log WHERE pos >= ?1 ORDER BY pos LIMIT 1";

/* Between which positions what is asked for has ended. Fewer records than there are instances that
 * would be looked at else: they drive. */
static pawl_status choose_ends(struct listing *listing)
{
    const struct time_span *ended = &listing->query->ended;
    uint64_t end = 0, behind, numbers = 0;

    TRY(read_one_number(listing->connection, listing->scope, select_log_end, &end));
    listing->end_first = 1;
    behind = end + 1;
    if (ended->has_after)
        TRY(find_at(listing, select_at, end, ended->after_ms, &listing->end_first));
    if (ended->has_before && ended->before_ms < INT64_MAX)
        TRY(find_at(listing, select_at, end, ended->before_ms + 1, &behind));
    listing->end_last = behind - 1;
    if (listing->driver < BY_DEFINITION)
        return PAWL_OK;
    TRY(read_one_number(listing->connection, listing->scope, select_last, &numbers));
    if (listing->end_last + 1 - listing->end_first < numbers / RECORDS_PER_ROW)
        listing->driver = BY_ENDED;
    return PAWL_OK;
}

pawl_status list_plan(struct listing *listing)
{
    TRY(choose_driver(listing));
    if (listing->by_end)
        TRY(choose_ends(listing));
    if (listing->driver == BY_LABEL && listing->query->label_count > 1)
        TRY(choose_label(listing));
    return listing->query->created.has_after ? find_first(listing) : PAWL_OK;
}
