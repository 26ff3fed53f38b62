/* read_definition.c - definitions, by id, by name, by the text of an inline one. */
#include "base/assert.h"
#include "model/definition.h"
#include "read_int.h"

#define FACTS     "d.id, d.name, d.version, d.kind, d.created_at, s.sha256, d.compiled_sha256"
#define FROM_BOTH " FROM pawl_definition d LEFT JOIN pawl_source s ON s.id = d.source"
#define SELECT    "SELECT " FACTS ", s.bytes, d.compiled" FROM_BOTH

static const char select_id[] = SELECT " WHERE d.id = ?1";
static const char select_newest[] = SELECT " WHERE d.name = ?1 ORDER BY d.version DESC LIMIT 1";
static const char select_version[] = SELECT " WHERE d.name = ?1 AND d.version = ?2";
static const char select_inline[] =
    SELECT " WHERE d.name IS NULL AND s.sha256 = ?1 AND d.compiler = ?2 ORDER BY d.id LIMIT 1";
/* SQLite takes the other columns from the row that max() took. */
static const char select_names[] =
    "SELECT d.id, d.name, max(d.version), d.kind, d.created_at, s.sha256,"
    " d.compiled_sha256" FROM_BOTH " WHERE d.name > ?1 GROUP BY d.name ORDER BY d.name LIMIT ?2";

static void read_facts(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct definition_row *row = out;

    *row = (struct definition_row){
        .id = column_u32(statement, 0),
        .name = column_str(statement, 1, arena),
        .version = column_u32(statement, 2),
        .kind = (int)column_i64(statement, 3),
        .created_at_ms = column_i64(statement, 4),
    };
    column_bytes(statement, 5, row->source_sha, SHA_SIZE);
    column_bytes(statement, 6, row->compiled_sha, SHA_SIZE);
}

static void read_definition(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct definition_row row;

    read_facts(statement, arena, &row);
    row.source = column_str(statement, 7, arena);
    row.compiled = column_str(statement, 8, arena);
    if (!arena->failed)
        *(struct definition_row *)out = row;
}

pawl_status sqlite_definition(struct store *base, struct scope *scope, uint32_t id,
                              struct definition_row *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = statement_get(&store->reader, scope, STATEMENT_DEFINITION, select_id, &statement);
    if (status == PAWL_OK) {
        bind_u64(statement, 1, id);
        status = read_row(scope, statement, "definition", read_definition, out);
    }
    reader_leave(store);
    return status;
}

static pawl_status prepare_inline(struct connection *reader, struct scope *scope,
                                  const uint8_t *source_sha, sqlite3_stmt **out)
{
    pawl_status status =
        statement_get(reader, scope, STATEMENT_DEFINITION_INLINE, select_inline, out);

    ASSERT(source_sha);
    if (status != PAWL_OK)
        return status;
    bind_bytes(*out, 1, source_sha, SHA_SIZE);
    bind_u64(*out, 2, COMPILER_NUMBER);
    return PAWL_OK;
}

static pawl_status prepare_named(struct connection *reader, struct scope *scope, str name,
                                 uint32_t version, sqlite3_stmt **out)
{
    pawl_status status =
        version == 0
            ? statement_get(reader, scope, STATEMENT_DEFINITION_NEWEST, select_newest, out)
            : statement_get(reader, scope, STATEMENT_DEFINITION_VERSION, select_version, out);

    if (status != PAWL_OK)
        return status;
    bind_text(*out, 1, name);
    if (version != 0)
        bind_u64(*out, 2, version);
    return PAWL_OK;
}

pawl_status sqlite_find_definition(struct store *base, struct scope *scope, str name,
                                   uint32_t version, const uint8_t *source_sha,
                                   struct definition_row *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement = NULL;
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = name.size == 0 ? prepare_inline(&store->reader, scope, source_sha, &statement)
                            : prepare_named(&store->reader, scope, name, version, &statement);
    if (status == PAWL_OK)
        status = read_row(scope, statement, "definition", read_definition, out);
    reader_leave(store);
    return status;
}

static pawl_status read_names(struct sqlite_store *store, struct scope *scope, str after,
                              uint32_t limit, struct definition_row **out, uint32_t *count)
{
    void *rows = NULL;
    sqlite3_stmt *statement;
    pawl_status status =
        statement_get(&store->reader, scope, STATEMENT_DEFINITIONS, select_names, &statement);

    if (status != PAWL_OK)
        return status;
    bind_text(statement, 1, after.data ? after : STR(""));
    bind_u64(statement, 2, limit);
    status = read_rows(scope, statement, read_facts, sizeof **out, limit, &rows, count);
    if (status == PAWL_OK)
        *out = rows;
    return status;
}

pawl_status sqlite_definitions(struct store *base, struct scope *scope, str after, uint32_t limit,
                               struct definition_row **out, uint32_t *count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status = reader_enter(store, scope);

    if (status != PAWL_OK)
        return status;
    status = read_names(store, scope, after, limit, out, count);
    reader_leave(store);
    return status;
}
