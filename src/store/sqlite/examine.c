/* examine.c - rows that cannot be, or that do not repeat what other rows say.
 *
 * Tables repeat some things for people and their SQL; a verb of the store shows none of that, so
 * the check lies here. Each statement is a read of its own: the log goes on meanwhile. */
#include "base/limits.h"
#include "examine_int.h"
#include <stdarg.h>
#include <stdio.h>

pawl_status examine_bad(const struct examining *examining, uint64_t pos, uint64_t instance,
                        const char *format, ...)
{
    char words[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return examining->fn(examining->context, &(struct bad_row){ pos, instance, words });
}

pawl_status examine_run(const struct examining *examining, const char *text, examine_fn fn,
                        void *context)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(examining->db, text, -1, &statement, NULL);
    pawl_status status = PAWL_OK;

    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
            status = fn(context, statement);
        if (status != PAWL_OK)
            break;
    }
    if (status == PAWL_OK && code != SQLITE_DONE)
        status = sql_fail(examining->scope, examining->db);
    sqlite3_finalize(statement);
    return status;
}

str examine_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    return (str){ text ? text : "", (size_t)sqlite3_column_bytes(statement, column) };
}

/* ---- Rows that belong to nothing ---- */

/* A column holds a number or nothing: else it would read as one that it is not, or be cut off
 * on its way into a struct. */
#define IS_NO_NUMBER(column)  "typeof(" column ") NOT IN ('integer', 'null')"
#define IS_NOT_COUNT(column)  IS_NO_NUMBER(column) " OR " column " < 0"
#define IS_NOT_32_BIT(column) IS_NO_NUMBER(column) " OR " column " NOT BETWEEN 0 AND 4294967295"
#define IS_NOT_BETWEEN(column, low, high)                                                          \
    IS_NO_NUMBER(column) " OR " column " NOT BETWEEN " low " AND " high
/* Actors, creators among them, and subjects. */
#define IS_REFERENCE                                                                               \
    "(SELECT actor FROM pawl_log WHERE actor IS NOT NULL"                                          \
    " UNION SELECT subject FROM pawl_instance WHERE subject IS NOT NULL)"
/* All values that records name, by themselves or by the row of an instance. */
#define IS_NAMED                                                                                   \
    "(SELECT actor FROM pawl_log WHERE actor IS NOT NULL"                                          \
    " UNION ALL SELECT payload FROM pawl_log WHERE payload IS NOT NULL"                            \
    " UNION ALL SELECT reason FROM pawl_log WHERE reason IS NOT NULL"                              \
    " UNION ALL SELECT subject FROM pawl_instance WHERE subject IS NOT NULL"                       \
    " UNION ALL SELECT input FROM pawl_instance WHERE input IS NOT NULL"                           \
    " UNION ALL SELECT metadata FROM pawl_instance WHERE metadata IS NOT NULL)"
/* Names of actors and subjects stay when instances are moved into an archive file. */
#define SOME_LEFT              "EXISTS (SELECT 1 FROM pawl_kept WHERE what = -14)"
#define IS_NO_INSTANCE(column) column " NOT IN (SELECT number FROM pawl_instance)"
#define BELONGS_TO_NONE(what, table)                                                               \
    "SELECT inst, '" what " belongs to no instance' FROM " table                                   \
    " WHERE " IS_NO_INSTANCE("inst") " LIMIT 1"

/* Each gives the rows that should not be: a number, by whose name it is known what it counts,
 * and what is wrong there. */
/* clang-format off */
static const char *const stray_queries[] = {
    "SELECT inst, 'a head row belongs to no instance' FROM pawl_head"
    " WHERE inst <> 0 AND " IS_NO_INSTANCE("inst") " LIMIT 1",
    BELONGS_TO_NONE("a step row", "pawl_step"),
    BELONGS_TO_NONE("a wait row", "pawl_wait"),
    BELONGS_TO_NONE("an interest row", "pawl_interest"),
    "SELECT inst, 'an interest row does not begin with ~' FROM pawl_interest"
    " WHERE substr(name, 1, 1) IS NOT '~' LIMIT 1",
    "SELECT inst, 'a wait row that should be an interest row' FROM pawl_wait"
    " WHERE ord = 0 AND substr(name, 1, 1) = '~' LIMIT 1",
    "SELECT inst, 'a child row belongs to no instance, or to one of another parent' FROM pawl_child"
    " LEFT JOIN pawl_instance ON number = child WHERE parent IS NOT inst OR " IS_NOT_32_BIT("ord")
    " OR " IS_NOT_BETWEEN("abandon", "0", "1") " OR " IS_NOT_BETWEEN("ended", "0", "1") " LIMIT 1",
    "SELECT inst, 'a pause row belongs to no instance' FROM pawl_pause"
    " WHERE " IS_NO_INSTANCE("inst") " OR " IS_NOT_COUNT("pos") " LIMIT 1",
    BELONGS_TO_NONE("a timer row", "pawl_timer"),
    "SELECT inst, 'a timer row is marked as a test, or not, unlike its instance' FROM pawl_timer"
    " JOIN pawl_instance ON number = inst"
    " WHERE coalesce(pawl_timer.test, 0) <> coalesce(pawl_instance.test, 0) LIMIT 1",
    "SELECT id, 'a source belongs to no definition' FROM pawl_source AS s"
    " WHERE NOT EXISTS (SELECT 1 FROM pawl_definition WHERE source = s.id) LIMIT 1",
    "SELECT definition, 'a state row belongs to no definition' FROM pawl_state"
    " WHERE definition IS NULL OR definition NOT IN (SELECT id FROM pawl_definition) LIMIT 1",
    "SELECT definition, 'a transition row belongs to no definition' FROM pawl_transition"
    " WHERE definition IS NULL OR definition NOT IN (SELECT id FROM pawl_definition) LIMIT 1",
    BELONGS_TO_NONE("a snapshot", "pawl_snapshot"),
    "SELECT id, 'no record names this value' FROM pawl_value WHERE id NOT IN " IS_NAMED
    " AND NOT " SOME_LEFT " LIMIT 1",
    "SELECT id, 'half of a value is erased' FROM pawl_value"
    " WHERE (salt IS NULL) <> (bytes IS NULL) OR (bytes IS NULL AND commitment IS NULL) LIMIT 1",
    "SELECT id, 'a value has the wrong type' FROM pawl_value WHERE bytes IS NOT NULL"
    " AND (typeof(bytes) NOT IN ('blob', 'text') OR typeof(salt) NOT IN ('blob', 'text')"
    " OR length(CAST(salt AS BLOB)) <> 16) LIMIT 1",
    "SELECT id, 'a value is found by its bytes (interned) that is no actor and no subject'"
    " FROM pawl_value WHERE " IS_NOT_BETWEEN("interned", "0", "1") " OR (interned = 1 AND"
    " (bytes IS NULL OR (id NOT IN " IS_REFERENCE " AND NOT " SOME_LEFT "))) LIMIT 1",
    "SELECT id, 'an actor or subject is not found by its bytes (interned)' FROM pawl_value AS v"
    " WHERE coalesce(interned, 0) = 0 AND bytes IS NOT NULL AND id IN " IS_REFERENCE
    " AND NOT EXISTS (SELECT 1 FROM pawl_value AS w"
    " WHERE w.interned = 1 AND w.bytes = v.bytes AND w.id < v.id) LIMIT 1",
    "SELECT key, 'pawl_meta has an unknown row' FROM pawl_meta"
    " WHERE key NOT IN ('format', 'store_id', 'flushed', 'test_now', 'schema',"
    " 'whole_id', 'shard', 'shards')"
    " OR typeof(key) <> 'text' LIMIT 1",
    "SELECT value, 'pawl_meta has a test clock, and a clock record must hold it' FROM pawl_meta"
    " WHERE key = 'test_now' AND (value = 0"
    " OR EXISTS (SELECT 1 FROM pawl_kept WHERE what = -11 AND id = '" CLOCK_TEST "')"
    " OR EXISTS (SELECT 1 FROM pawl_definition WHERE compiler > 1))",
    "SELECT 'flushed', 'pawl_meta has no such row, or no number there' WHERE NOT EXISTS"
    " (SELECT 1 FROM pawl_meta WHERE key = 'flushed' AND value IS NOT NULL)",
    "SELECT value, 'head rows are said to be right up to a position that is not there'"
    " FROM pawl_meta WHERE key = 'flushed'"
    " AND value NOT BETWEEN 0 AND (SELECT coalesce(max(pos), 0) FROM pawl_log)",
    "SELECT 1, 'half of what makes it a shard is missing' WHERE (SELECT count(*) FROM pawl_meta"
    " WHERE key IN ('whole_id', 'shard', 'shards')) NOT IN (0, 3)",
    "SELECT number, 'the number of this instance is another shard''s' FROM pawl_instance,"
    " (SELECT value AS shard FROM pawl_meta WHERE key = 'shard'),"
    " (SELECT value AS shards FROM pawl_meta WHERE key = 'shards')"
    " WHERE number % shards <> shard LIMIT 1",
    "SELECT 1, 'the format is not'"
    " WHERE (SELECT value FROM pawl_meta WHERE key = 'format') IS NOT 1",
    "SELECT pos, 'a number of this record is out of range' FROM pawl_log WHERE pos < 1"
    " OR " IS_NOT_COUNT("inst") " OR " IS_NOT_COUNT("seq") " OR " IS_NOT_COUNT("prev")
    " OR " IS_NOT_COUNT("skip") " OR " IS_NOT_BETWEEN("what", "-15", "2147483647")
    " OR " IS_NOT_32_BIT("flags") " OR " IS_NO_NUMBER("at") " OR " IS_NO_NUMBER("fired")
    " OR " IS_NOT_32_BIT("step") " OR " IS_NOT_32_BIT("ord") " OR " IS_NOT_32_BIT("attempt")
    " OR " IS_NOT_COUNT("actor") " OR " IS_NOT_COUNT("payload") " OR " IS_NOT_COUNT("reason")
    " LIMIT 1",
    "SELECT id, 'there can be no such value' FROM pawl_value WHERE id < 1 LIMIT 1",
    "SELECT id, 'a number of this definition is out of range' FROM pawl_definition WHERE id < 1"
    " OR " IS_NOT_32_BIT("version") " OR " IS_NOT_BETWEEN("kind", "1", "3") " LIMIT 1",
    "SELECT number, 'a number in the row of this instance is out of range' FROM pawl_instance"
    " WHERE number < 1 OR " IS_NOT_32_BIT("definition") " OR " IS_NO_NUMBER("instantiated_at")
    " OR " IS_NOT_COUNT("created_pos") " OR " IS_NOT_COUNT("creator")
    " OR " IS_NOT_COUNT("subject") " OR " IS_NOT_COUNT("input") " OR " IS_NOT_COUNT("metadata")
    " OR " IS_NOT_COUNT("parent") " OR " IS_NOT_BETWEEN("test", "0", "1") " LIMIT 1",
    "SELECT inst, 'a number in the head row of this instance is out of range' FROM pawl_head"
    " WHERE " IS_NOT_COUNT("seq") " OR " IS_NOT_32_BIT("state") " OR " IS_NOT_COUNT("pos")
    " LIMIT 1",
    "SELECT inst, 'a number in a step row of this instance is out of range' FROM pawl_step"
    " WHERE " IS_NOT_32_BIT("ord") " OR " IS_NOT_32_BIT("plan") " OR " IS_NOT_32_BIT("attempt")
    " OR " IS_NOT_BETWEEN("status", "0", "2") " LIMIT 1",
    "SELECT inst, 'a number in a timer row of this instance is out of range' FROM pawl_timer"
    " WHERE " IS_NOT_32_BIT("ord") " OR " IS_NO_NUMBER("due") " OR coalesce(wall, 1) <> 1"
    " OR typeof(coalesce(shift, 1)) <> 'integer' OR shift = 0 LIMIT 1",
    "SELECT inst, 'a number in a wait row of this instance is out of range' FROM pawl_wait"
    " WHERE " IS_NOT_32_BIT("ord") " LIMIT 1",
    "SELECT id, 'the row of a token, alarm, hold, amend, redrive, definition or clock is out of range'"
    " FROM pawl_kept WHERE what NOT IN (-2, -5, -7, -8, -11, -13, -14, 0, 11)"
    " OR " IS_NO_NUMBER("due") " OR " IS_NOT_COUNT("pos") " OR " IS_NO_NUMBER("firing")
    " OR firing = 0 OR coalesce(wall, 1) <> 1 LIMIT 1",
    "SELECT k.pos AS pos, 'a key row names a record that has no such key, or another time'"
    " FROM pawl_key k LEFT JOIN pawl_log l ON l.pos = k.pos"
    " WHERE l.pos IS NULL OR substr(l.key, 1, 16) IS NOT k.id OR l.at IS NOT k.at LIMIT 1",
};
/* clang-format on */

static pawl_status name_stray(void *context, sqlite3_stmt *statement)
{
    const char *name = sqlite3_column_name(statement, 0);
    str where = examine_text(statement, 0), what = examine_text(statement, 1);
    uint64_t number = 0, pos = 0, instance = 0;

    if (name && str_to_u64(where, &number)) {
        pos = strcmp(name, "pos") == 0 ? number : 0;
        instance = strcmp(name, "inst") == 0 || strcmp(name, "number") == 0 ? number : 0;
    }
    return examine_bad(context, pos, instance, "%.*s: %.*s", STR_ARG(what), STR_ARG(where));
}

/* ---- Indexes repeat columns: what is found by one must be what is there ---- */

static pawl_status name_damage(void *context, sqlite3_stmt *statement)
{
    str found = examine_text(statement, 0);

    return str_is(found, "ok")
               ? PAWL_OK
               : examine_bad(context, 0, 0, "SQLite finds damage: %.*s", STR_ARG(found));
}

/* ---- Every column holds what its table declares: INTEGER, TEXT, BLOB, or nothing ----
 *
 * SQLite accepts any value in any column. A value of another storage class reads like the right one
 * here but not elsewhere: no query finds a name that is a BLOB. The columns are those in the file,
 * which were compared with ours before (open_schema.c). */

static const char select_columns[] =
    "SELECT t.name, c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c"
    " WHERE t.type = 'table' AND t.name LIKE 'pawl\\_%' ESCAPE '\\' ORDER BY t.name, c.cid";

struct type_check {
    struct examining *examining;
    char table[64];  /* "": none yet */
    struct buf text; /* the query for its columns so far */
};

static pawl_status name_column(void *context, sqlite3_stmt *statement)
{
    const struct type_check *check = context;
    str column = examine_text(statement, 0);

    return examine_bad(check->examining, 0, 0,
                       "a row of %s holds in %.*s what the column does not declare", check->table,
                       STR_ARG(column));
}

/* All columns of the table are known: its rows are looked at. */
static pawl_status end_table(struct type_check *check)
{
    if (!check->table[0])
        return PAWL_OK;
    buf_fmt(&check->text, " END AS wrong FROM %s WHERE wrong IS NOT NULL LIMIT 1", check->table);
    buf_byte(&check->text, '\0');
    return check->text.failed ? scope_no_memory(check->examining->scope)
                              : examine_run(check->examining, check->text.data, name_column, check);
}

/* A column, as one more case. pawl_meta's value has no type. */
static pawl_status add_column(void *context, sqlite3_stmt *statement)
{
    struct type_check *check = context;
    str table = examine_text(statement, 0), name = examine_text(statement, 1),
        type = examine_text(statement, 2);
    pawl_status status = PAWL_OK;

    if (!str_is(table, check->table)) {
        status = end_table(check);
        snprintf(check->table, sizeof check->table, "%.*s", STR_ARG(table));
        buf_clear(&check->text);
        buf_str(&check->text, STR("SELECT CASE"));
    }
    if (type.size > 0)
        buf_fmt(&check->text, " WHEN typeof(%.*s) NOT IN ('null', lower('%.*s')) THEN '%.*s'",
                STR_ARG(name), STR_ARG(type), STR_ARG(name));
    else
        buf_fmt(&check->text,
                " WHEN typeof(%.*s) <> CASE WHEN key IN ('store_id', 'whole_id') THEN 'blob'"
                " ELSE 'integer' END"
                " THEN '%.*s'",
                STR_ARG(name), STR_ARG(name));
    return status;
}

static pawl_status examine_types(struct examining *examining)
{
    struct type_check check = { .examining = examining };
    pawl_status status;

    buf_init(&check.text, examining->store->heap, LIMIT_TEXT);
    status = examine_run(examining, select_columns, add_column, &check);
    if (status == PAWL_OK)
        status = end_table(&check);
    buf_fini(&check.text);
    return status;
}

/* ---- All of it ---- */

static pawl_status examine_all(struct examining *examining)
{
    TRY(examine_run(examining, "PRAGMA integrity_check", name_damage, examining));
    TRY(examine_definitions(examining));
    for (size_t i = 0; i < sizeof stray_queries / sizeof *stray_queries; i++)
        TRY(examine_run(examining, stray_queries[i], name_stray, examining));
    TRY(examine_types(examining));
    return examine_labels(examining);
}

pawl_status sqlite_examine(struct store *base, struct scope *scope, bad_row_fn fn, void *context)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection connection;
    struct examining examining = { .store = store, .scope = scope, .fn = fn, .context = context };
    pawl_status status;

    TRY(connection_open_sql(store, scope, &connection));
    examining.db = connection.db;
    status = examine_all(&examining);
    if (status == PAWL_INVALID_REQUEST) /* these statements are right: a table is not there */
        status =
            examine_bad(&examining, 0, 0, "its tables can't be read: %.200s", scope->error.message);
    connection_close(&connection);
    return status;
}
