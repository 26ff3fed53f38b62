/* family.c - children that somebody waits for, and who awaits a signal: found by index alone. */
#include "read_int.h"

/* What is not asked for is 0. Each text has the column in front by which SQLite is to find rows. */
#define CHILDREN(found_by)                                                                         \
    "SELECT child, inst, ord, abandon, ended FROM pawl_child WHERE " found_by                      \
    " AND (?1 = 0 OR child = ?1) AND (?2 = 0 OR inst = ?2) AND (?3 = 0 OR ord = ?3)"               \
    " AND (?6 = 0 OR ended = 1) AND child > ?4 ORDER BY child LIMIT ?5"

static const char select_child[] = CHILDREN("child = ?1");
static const char select_children[] = CHILDREN("inst = ?2");
static const char select_ended[] = CHILDREN("ended = 1");

/* A range of an index each, merged: a page costs what it returns. */
#define WAITS(by_value)                                                                            \
    "SELECT inst FROM pawl_wait WHERE name = ?1" by_value " AND inst > ?2"
#define INTERESTS(name)                                                                            \
    " UNION SELECT inst FROM pawl_interest WHERE name = " name " AND inst > ?2"
#define IN_ORDER " ORDER BY inst LIMIT ?3"

static const char select_waiting[] = WAITS("") INTERESTS("?5") IN_ORDER;
static const char select_waiting_value[] = WAITS(" AND value = ?4") INTERESTS("?5") IN_ORDER;
static const char select_waiting_either[] = WAITS(" AND value = ?4") INTERESTS("?5") " UNION " WAITS(
    " AND value = ?6") INTERESTS("?7") IN_ORDER;

static pawl_status children_statement(struct sqlite_store *store, struct scope *scope,
                                      const struct child_query *query, sqlite3_stmt **out)
{
    if (query->child)
        return statement_get(&store->reader, scope, STATEMENT_CHILD, select_child, out);
    if (query->ended)
        return statement_get(&store->reader, scope, STATEMENT_CHILDREN_ENDED, select_ended, out);
    return statement_get(&store->reader, scope, STATEMENT_CHILDREN, select_children, out);
}

static pawl_status read_children(struct sqlite_store *store, struct scope *scope,
                                 const struct child_query *query, struct live_child **out,
                                 uint32_t *count)
{
    void *rows = NULL;
    sqlite3_stmt *statement;
    pawl_status status = children_statement(store, scope, query, &statement);

    if (status != PAWL_OK)
        return status;
    bind_u64(statement, 1, query->child);
    bind_u64(statement, 2, query->parent);
    bind_u64(statement, 3, query->ordinal);
    bind_u64(statement, 4, query->after);
    bind_u64(statement, 5, query->limit);
    bind_u64(statement, 6, query->ended);
    status = read_rows(scope, statement, read_child, sizeof **out, query->limit, &rows, count);
    if (status == PAWL_OK)
        *out = rows;
    return status;
}

pawl_status sqlite_children(struct store *base, struct scope *scope,
                            const struct child_query *query, struct live_child **out,
                            uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = read_children(store, scope, query, out, count);
    reader_leave(store);
    return status;
}

static pawl_status waiting_statement(struct sqlite_store *store, struct scope *scope,
                                     const struct wait_query *query, sqlite3_stmt **out)
{
    if (!query->filter.data)
        return statement_get(&store->reader, scope, STATEMENT_WAITING, select_waiting, out);
    if (!query->or_filter.data)
        return statement_get(&store->reader, scope, STATEMENT_WAITING_VALUE, select_waiting_value,
                             out);
    return statement_get(&store->reader, scope, STATEMENT_WAITING_EITHER, select_waiting_either,
                         out);
}

static void bind_if_any(sqlite3_stmt *statement, int at, str text)
{
    if (text.data)
        bind_text(statement, at, text);
}

static pawl_status read_waiting(struct sqlite_store *store, struct scope *scope,
                                const struct wait_query *query, uint64_t **out, uint32_t *count)
{
    void *rows = NULL;
    sqlite3_stmt *statement;
    pawl_status status = waiting_statement(store, scope, query, &statement);

    if (status != PAWL_OK)
        return status;
    bind_text(statement, 1, query->name);
    bind_u64(statement, 2, query->after);
    bind_u64(statement, 3, query->limit);
    bind_if_any(statement, 4, query->filter);
    bind_if_any(statement, 5, query->also);
    bind_if_any(statement, 6, query->or_filter);
    bind_if_any(statement, 7, query->or_also);
    status = read_rows(scope, statement, read_number, sizeof **out, query->limit, &rows, count);
    if (status == PAWL_OK)
        *out = rows;
    return status;
}

pawl_status sqlite_waiting(struct store *base, struct scope *scope, const struct wait_query *query,
                           uint64_t **out, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = read_waiting(store, scope, query, out, count);
    reader_leave(store);
    return status;
}
