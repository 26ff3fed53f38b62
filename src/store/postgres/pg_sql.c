/* pg_sql.c - read-only SQL for people, on a connection of its own, and what the database says of
 * itself. */
#include "base/grow.h"
#include "base/limits.h"
#include "base/time.h"
#include "postgres_int.h"
#include <stdio.h>

struct sql_reading {
    struct scope *scope;
    const struct pq_api *pq;
    row_fn fn;
    void *context;
};

/* int2, int4, int8: their texts are numbers in JSON. */
static bool is_number(Oid type)
{
    return type == 20 || type == 21 || type == 23;
}

static pawl_status see_row(void *context, PGresult *result)
{
    struct sql_reading *reading = context;
    const struct pq_api *pq = reading->pq;
    struct pg_rows rows = { pq, result, 0 };
    uint32_t columns = (uint32_t)pq->nfields(result);
    str *names = ARENA_ARRAY(&reading->scope->arena, str, 2 * (size_t)columns + 1);
    bool *are_numbers = ARENA_ARRAY(&reading->scope->arena, bool, (size_t)columns + 1);

    TRY_MEMORY(reading->scope, names && are_numbers);
    if (rows_count(&rows) == 0)
        return PAWL_OK;
    for (uint32_t i = 0; i < columns; i++) {
        names[i] = str_of(pq->fname(result, (int)i));
        names[columns + i] = cell_view(&rows, (int)i);
        are_numbers[i] = is_number(pq->ftype(result, (int)i));
    }
    return reading->fn(reading->context, columns, names, names + columns, are_numbers);
}

static pawl_status fail_late(struct scope *scope, int64_t limit_ms)
{
    char limit[TIME_TEXT_SIZE];

    duration_print(limit_ms, limit);
    return scope_fail(scope, PAWL_TOO_LARGE,
                      "the statement took longer than %s and was stopped: ask for less, or give"
                      " it "
                      "more time with --timeout",
                      limit);
}

static pawl_status judge(struct pg_link *link, struct scope *scope, enum link_end end,
                         int64_t limit_ms)
{
    if (end == LINK_OK)
        return PAWL_OK;
    if (strcmp(link->state, "57014") == 0)
        return fail_late(scope, limit_ms);
    if (strcmp(link->state, "25006") == 0)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "expected a statement that only reads, found one that writes");
    if (end == LINK_REFUSED && strncmp(link->state, "53", 2) != 0)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s", link->words);
    return link_fail(link, scope, "running SQL");
}

pawl_status postgres_sql(struct store *base, struct scope *scope, str text, int64_t limit_ms,
                         row_fn fn, void *context)
{
    struct postgres_store *store = postgres_of(base);
    struct sql_reading reading = { scope, store->reader->pq, fn, context };
    char settings[120], *statement = arena_text(&scope->arena, text);
    pawl_status status = PAWL_OK;
    struct pg_link link;
    enum link_end end;

    TRY(postgres_check(store, scope));
    TRY_MEMORY(scope, statement);
    pg_node_link(store->node, &link, LONG_DEADLINE_MS);
    link.may_read_only = true;
    TRY(link_connect(&link, scope));
    snprintf(settings, sizeof settings, "BEGIN READ ONLY; SET LOCAL statement_timeout = %lld",
             (long long)limit_ms);
    end = link_script(&link, settings);
    if (end == LINK_OK)
        end = link_stream(&link, statement, see_row, &reading, &status);
    if (status == PAWL_OK)
        status = judge(&link, scope, end, limit_ms);
    link_close(&link);
    return status;
}

pawl_status postgres_facts(struct store *base, struct scope *scope, struct store_facts *out)
{
    static const char select_facts[] = "SELECT 'PostgreSQL ' || current_setting('server_version'), "
                                       "format::text, schema::text FROM pawl_store";
    struct postgres_store *store = postgres_of(base);
    struct statement statement = { select_facts, NULL, NULL, false };
    struct pg_rows rows = { .pq = store->reader->pq };

    TRY(pg_exchange(store, scope, &statement, 1));
    rows.result = statement.result;
    if (rows_count(&rows) > 0) {
        out->sqlite = cell_str(&rows, 0, &scope->arena);
        out->format = cell_str(&rows, 1, &scope->arena);
        out->migrations = cell_str(&rows, 2, &scope->arena);
    }
    link_clear(store->reader, &statement, 1);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}
