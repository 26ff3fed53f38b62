/* open_schema.c - are the tables, indexes and views of a file those that our migrations make?
 *
 * The expected schema is not written down a second time. It is made in a database in memory, by the
 * file's migrations, or as a new file is made; the SQL text that SQLite stores for each object is
 * compared. A trigger on one of our tables or views could change what we write: opening rejects it.
 * An index on one of them could make commits fail. So an object is ours if its table is, whatever
 * its own name; an index also by its name. All others belong to the host, and are only listed. */
#include "base/grow.h"
#include "read_int.h"
#include <pthread.h>
#include <stdio.h>

struct object {
    str type, name, table, sql;
};

struct object_list {
    struct object *items;
    uint32_t count, capacity;
};

/* The table of a view is the view itself. ?1: the file is our own, and not a host's. */
#define OURS                                                                                       \
    "(substr(tbl_name, 1, 5) = 'pawl_' COLLATE NOCASE"                                             \
    " OR (type = 'index' AND substr(name, 1, 5) = 'pawl_' COLLATE NOCASE)"                         \
    " OR (?1 AND lower(tbl_name) IN ('workflows', 'workflow_steps')))"

/* Indexes that SQLite makes by itself have no text; they follow from their table's. */
#define OBJECTS "SELECT type, name, tbl_name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL"

static const char select_ours[] = OBJECTS " AND " OURS " ORDER BY name";
static const char select_foreign[] = OBJECTS " AND NOT " OURS " ORDER BY name LIMIT 4096";
static const char select_trigger[] = OBJECTS " AND type = 'trigger' AND " OURS " LIMIT 1";

/* ---- Listed ---- */

static pawl_status list_objects(sqlite3 *db, struct scope *scope, const char *text, bool is_hosted,
                                struct object_list *out)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, text, -1, &statement, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_bind_int(statement, 1, !is_hosted);
    while (code == SQLITE_OK && !scope->arena.failed && sqlite3_step(statement) == SQLITE_ROW)
        if (GROW(&scope->arena, out->items, out->count, out->capacity))
            out->items[out->count++] = (struct object){ column_str(statement, 0, &scope->arena),
                                                        column_str(statement, 1, &scope->arena),
                                                        column_str(statement, 2, &scope->arena),
                                                        column_str(statement, 3, &scope->arena) };
    if (sqlite3_finalize(statement) != SQLITE_OK || code != SQLITE_OK)
        return sqlite_fail(scope, db, "reading the schema");
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

/* ---- Refused when opening ---- */

pawl_status schema_refuse_triggers(sqlite3 *db, struct scope *scope, const char *path,
                                   bool is_hosted)
{
    struct object_list found = { 0 };
    pawl_status status = list_objects(db, scope, select_trigger, is_hosted, &found);

    if (status != PAWL_OK || found.count == 0)
        return status;
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "%s: " STORE_TRIGGER_WORDS ", found trigger %.*s on %.*s, which "
                      "could change what is recorded; drop it, then run pawl verify",
                      path, STR_ARG(found.items[0].name), STR_ARG(found.items[0].table));
}

/* ---- Expected ---- */

/* In a file of our own, user_version is the schema number. A row `schema` would be a second one. */
static pawl_status check_number(sqlite3 *db, object_fn fn, void *context)
{
    sqlite3_stmt *statement = NULL;
    bool is_there = sqlite3_prepare_v2(db, "SELECT 1 FROM pawl_meta WHERE key = 'schema'", -1,
                                       &statement, NULL) == SQLITE_OK &&
                    sqlite3_step(statement) == SQLITE_ROW;

    sqlite3_finalize(statement);
    return is_there ? fn(context, OBJECT_UNKNOWN, STR("row"), STR("schema"), STR("pawl_meta"))
                    : PAWL_OK;
}

static pawl_status list_expected(struct scope *scope, const struct schema *schema,
                                 struct object_list *out)
{
    sqlite3 *db = NULL;
    pawl_status status = PAWL_OK;

    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        schema_make(db, schema->version, schema->is_hosted) != SQLITE_OK)
        status = db ? sqlite_fail(scope, db, "making the expected schema") : scope_no_memory(scope);
    if (status == PAWL_OK)
        status = list_objects(db, scope, select_ours, schema->is_hosted, out);
    sqlite3_close(db);
    return status;
}

/* ---- Remembered ----
 *
 * Making the expected schema costs more than the rest of verifying a small store, and it is the
 * same for every file of a version. So the process remembers its digest; the objects themselves are
 * made again only to name those that differ. */

static struct {
    pthread_mutex_t lock;
    struct {
        uint32_t version; /* 0: none yet */
        uint8_t digest[SHA_SIZE];
    } of[2]; /* of a file of our own; of a host's */
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pawl_status digest_of(const struct sqlite_store *store, struct scope *scope,
                             const struct object_list *list, uint8_t out[SHA_SIZE])
{
    struct sha *sha = sha_new(store->heap);

    TRY_MEMORY(scope, sha);
    sha_begin(sha);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct object *object = &list->items[i];
        const str parts[] = { object->type, object->name, object->table, object->sql };

        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            sha_add(sha, parts[k].data, parts[k].size);
            sha_add(sha, "", 1);
        }
    }
    sha_end(sha, out);
    sha_free(sha);
    return PAWL_OK;
}

static bool is_known(const struct schema *schema, const uint8_t digest[SHA_SIZE])
{
    bool is_same;

    pthread_mutex_lock(&known.lock);
    is_same = known.of[schema->is_hosted].version == schema->version &&
              memcmp(known.of[schema->is_hosted].digest, digest, SHA_SIZE) == 0;
    pthread_mutex_unlock(&known.lock);
    return is_same;
}

/* `found` itself where its objects are those that were remembered: then nothing differs. */
static pawl_status expect_objects(const struct sqlite_store *store, struct scope *scope,
                                  const struct schema *schema, const struct object_list *found,
                                  struct object_list *out)
{
    uint8_t digest[SHA_SIZE];

    TRY(digest_of(store, scope, found, digest));
    if (is_known(schema, digest)) {
        *out = *found;
        return PAWL_OK;
    }
    TRY(list_expected(scope, schema, out));
    TRY(digest_of(store, scope, out, digest));
    pthread_mutex_lock(&known.lock);
    known.of[schema->is_hosted].version = schema->version;
    memcpy(known.of[schema->is_hosted].digest, digest, SHA_SIZE);
    pthread_mutex_unlock(&known.lock);
    return PAWL_OK;
}

/* ---- Compared ---- */

static const struct object *find(const struct object_list *list, str name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i].name, name))
            return &list->items[i];
    return NULL;
}

static enum object_verdict judge(const struct object *object, const struct object *expected)
{
    if (str_is(object->type, "trigger"))
        return OBJECT_TRIGGER;
    if (!expected)
        return OBJECT_UNKNOWN;
    return str_eq(object->type, expected->type) && str_eq(object->table, expected->table) &&
                   str_eq(object->sql, expected->sql)
               ? OBJECT_RIGHT
               : OBJECT_CHANGED;
}

static pawl_status compare(const struct object_list *found, const struct object_list *expected,
                           object_fn fn, void *context)
{
    for (uint32_t i = 0; i < found->count; i++) {
        const struct object *object = &found->items[i];
        enum object_verdict verdict = judge(object, find(expected, object->name));

        if (verdict != OBJECT_RIGHT)
            TRY(fn(context, verdict, object->type, object->name, object->table));
    }
    for (uint32_t i = 0; i < expected->count; i++) {
        const struct object *object = &expected->items[i];

        if (!find(found, object->name))
            TRY(fn(context, OBJECT_MISSING, object->type, object->name, object->table));
    }
    return PAWL_OK;
}

pawl_status sqlite_objects(struct store *base, struct scope *scope, object_fn fn, void *context)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct object_list ours = { 0 }, foreign = { 0 }, expected = { 0 };
    struct schema schema = { 0 };
    pawl_status status;
    sqlite3 *db;

    TRY(reader_begin(store, scope));
    db = store->reader.db;
    status = schema_read(db, scope, &schema);
    if (status == PAWL_OK)
        status = list_objects(db, scope, select_ours, schema.is_hosted, &ours);
    if (status == PAWL_OK)
        status = list_objects(db, scope, select_foreign, schema.is_hosted, &foreign);
    if (status == PAWL_OK && !schema.is_hosted)
        status = check_number(db, fn, context);
    reader_end(store);
    TRY(status);
    TRY(expect_objects(store, scope, &schema, &ours, &expected));
    for (uint32_t i = 0; i < foreign.count; i++)
        TRY(fn(context, OBJECT_FOREIGN, foreign.items[i].type, foreign.items[i].name,
               foreign.items[i].table));
    return compare(&ours, &expected, fn, context);
}

/* ---- What the file says of itself ---- */

static const char select_facts[] =
    "SELECT sqlite_version(), (SELECT value FROM pawl_meta WHERE key = 'format'),"
    " (SELECT user_version FROM pragma_user_version)";

static void read_facts(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    *(struct store_facts *)out = (struct store_facts){
        .sqlite = column_str(statement, 0, arena),
        .format = column_str(statement, 1, arena),
        .migrations = column_str(statement, 2, arena),
    };
}

pawl_status sqlite_facts(struct store *base, struct scope *scope, struct store_facts *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    pawl_status status;

    TRY(reader_enter(store, scope));
    status = statement_get(&store->reader, scope, select_facts, &statement);
    if (status == PAWL_OK)
        status = read_row(scope, statement, "fact", read_facts, out);
    reader_leave(store);
    return status;
}
