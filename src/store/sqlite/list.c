/* list.c - instances by what they are and where they stand.
 *
 * The statement is put together from the fragments below and nothing else; what the caller
 * says goes in as parameters, each with a number of its own. */
#include "base/assert.h"
#include "base/buf.h"
#include "read_int.h"

enum parameter {
    P_DEFINITION = 1,
    P_VERSION,
    P_KIND,
    P_STATE,
    P_SUBJECT,
    P_CORRELATION,
    P_CREATED_AFTER,
    P_CREATED_BEFORE,
    P_AFTER,
    P_LIMIT,
    P_LABEL, /* a key and a value for each label */
};

#define STATE_IS(test)                                                                             \
    " AND EXISTS (SELECT 1 FROM pawl_state s WHERE s.definition = i.definition"                    \
    " AND s.idx = i.state AND " test ")"
#define BUSY "(SELECT inst FROM pawl_step WHERE status IN (1, 2))"
#define HELD "(SELECT inst FROM pawl_pause)"
#define LABEL_IS(key, value)                                                                       \
    " AND EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(i.labels) THEN i.labels END) l"     \
    " WHERE l.key = ?" #key " AND l.value = ?" #value " AND l.type = 'text')"

static const char from_rows[] = "SELECT i.number FROM pawl_instance i WHERE 1";
static const char from_current[] = "SELECT i.number FROM pawl_current i WHERE 1";

static const char by_definition[] =
    " AND i.definition IN (SELECT id FROM pawl_definition WHERE name = ?1)";
static const char by_version[] =
    " AND i.definition IN (SELECT id FROM pawl_definition WHERE version = ?2)";
static const char by_kind[] =
    " AND i.definition IN (SELECT id FROM pawl_definition WHERE kind = ?3)";
static const char by_state[] = STATE_IS("s.name = ?4");
static const char by_subject[] =
    " AND i.subject = (SELECT id FROM pawl_value WHERE interned = 1 AND bytes = ?5)";
static const char by_correlation[] = " AND i.correlation = ?6";
static const char created_after[] = " AND i.instantiated_at >= ?7";
static const char created_before[] = " AND i.instantiated_at <= ?8";
static const char newest_first[] = " ORDER BY i.number DESC LIMIT ?10";
static const char newest_after[] = " AND i.number < ?9";
static const char oldest_first[] = " ORDER BY i.number LIMIT ?10";
static const char oldest_after[] = " AND i.number > ?9";

static const char *const by_label[] = {
    LABEL_IS(11, 12), LABEL_IS(13, 14), LABEL_IS(15, 16), LABEL_IS(17, 18),
    LABEL_IS(19, 20), LABEL_IS(21, 22), LABEL_IS(23, 24), LABEL_IS(25, 26),
};
#define LABEL_COUNT_MAX (sizeof by_label / sizeof *by_label)

/* A terminal state without a kind counts as completed. */
static const struct {
    const char *status, *fragment;
} by_status[] = {
    { "completed", STATE_IS("s.terminal IN (1, 2)") },
    { "failed", STATE_IS("s.terminal = 3") },
    { "cancelled", STATE_IS("s.terminal = 4") },
    { "paused", STATE_IS("s.terminal = 0") " AND i.number IN " HELD },
    { "running", STATE_IS("s.terminal = 0") " AND i.number IN " BUSY " AND i.number NOT IN " HELD },
    { "suspended",
      STATE_IS("s.terminal = 0") " AND i.number NOT IN " BUSY " AND i.number NOT IN " HELD },
};
#define STATUS_COUNT (sizeof by_status / sizeof *by_status)

static const char *find_status(str status)
{
    for (size_t i = 0; i < STATUS_COUNT; i++)
        if (str_is(status, by_status[i].status))
            return by_status[i].fragment;
    return NULL;
}

static void add(struct buf *text, bool wanted, const char *fragment)
{
    if (wanted)
        buf_str(text, str_of(fragment));
}

static void compose(const struct list_query *query, struct buf *text)
{
    add(text, !query->state.data && !query->status.data, from_rows);
    add(text, query->state.data || query->status.data, from_current);
    add(text, query->definition.data, by_definition);
    add(text, query->version != 0, by_version);
    add(text, query->kind != 0, by_kind);
    add(text, query->state.data, by_state);
    add(text, query->status.data, query->status.data ? find_status(query->status) : NULL);
    add(text, query->subject.data, by_subject);
    add(text, query->correlation.data, by_correlation);
    for (uint32_t i = 0; i < query->label_count; i++)
        add(text, true, by_label[i]);
    add(text, query->has_created_after, created_after);
    add(text, query->has_created_before, created_before);
    add(text, query->after != 0, query->oldest_first ? oldest_after : newest_after);
    add(text, true, query->oldest_first ? oldest_first : newest_first);
}

/* Only what the statement has: a parameter with a higher number than its last is an error. */
static void bind_query(sqlite3_stmt *statement, const struct list_query *query)
{
    bind_text(statement, P_DEFINITION, query->definition);
    bind_u64(statement, P_VERSION, query->version);
    bind_i64(statement, P_KIND, query->kind);
    bind_text(statement, P_STATE, query->state);
    bind_blob(statement, P_SUBJECT, query->subject);
    bind_text(statement, P_CORRELATION, query->correlation);
    bind_i64(statement, P_CREATED_AFTER, query->created_after_ms);
    bind_i64(statement, P_CREATED_BEFORE, query->created_before_ms);
    bind_u64(statement, P_AFTER, query->after);
    bind_u64(statement, P_LIMIT, query->limit);
    for (uint32_t i = 0; i < query->label_count; i++) {
        bind_text(statement, P_LABEL + 2 * (int)i, query->label_key[i]);
        bind_text(statement, P_LABEL + 2 * (int)i + 1, query->label_value[i]);
    }
}

static pawl_status run(struct sqlite_store *store, struct scope *scope, const char *text,
                       const struct list_query *query, uint64_t **out, uint32_t *count)
{
    void *rows = NULL;
    sqlite3_stmt *statement = NULL;
    pawl_status status;

    if (sqlite3_prepare_v2(store->reader.db, text, -1, &statement, NULL) != SQLITE_OK)
        return sqlite_fail(scope, store->reader.db, "preparing a list");
    bind_query(statement, query);
    status = read_rows(scope, statement, read_number, sizeof **out, query->limit, &rows, count);
    sqlite3_finalize(statement);
    if (status == PAWL_OK)
        *out = rows;
    return status;
}

static pawl_status check(struct scope *scope, const struct list_query *query)
{
    if (query->label_count > LABEL_COUNT_MAX)
        return scope_fail(scope, PAWL_INVALID_QUERY,
                          "at most %zu labels can be asked for, found %u", LABEL_COUNT_MAX,
                          query->label_count);
    if (query->status.data && !find_status(query->status))
        return scope_fail(scope, PAWL_INVALID_QUERY,
                          "status: expected running, suspended, paused, completed, failed or "
                          "cancelled, found '%.*s'",
                          STR_ARG(query->status));
    return PAWL_OK;
}

pawl_status sqlite_list(struct store *base, struct scope *scope, const struct list_query *query,
                        uint64_t **out, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct buf text;
    pawl_status status = check(scope, query);

    if (status != PAWL_OK)
        return status;
    buf_init(&text, store->heap, LIMIT_TEXT);
    compose(query, &text);
    buf_byte(&text, '\0');
    status = text.failed ? scope_no_memory(scope) : reader_enter(store, scope);
    if (status == PAWL_OK) {
        status = run(store, scope, text.data, query, out, count);
        reader_leave(store);
    }
    buf_fini(&text);
    return status;
}
