/* find.c - one row by what names it.
 *
 * All reads take turns on the reader connection. Each copies what it found into the arena and
 * resets its statement before the lock is given back, so that no snapshot stays open to hold
 * up the WAL. */
#include "base/assert.h"
#include "read_int.h"
#include "store/instance_log.h"

pawl_status reader_enter(struct sqlite_store *store, struct scope *scope)
{
    pawl_status status;

    pthread_mutex_lock(&store->read_lock); /* first: reopen() holds it while there is no reader */
    status = sqlite_check(store, scope);
    if (status != PAWL_OK) {
        pthread_mutex_unlock(&store->read_lock);
        return status;
    }
    store->is_guest = store->is_attached && !sqlite3_get_autocommit(store->reader.db);
    ASSERT(store->is_guest || sqlite3_get_autocommit(store->reader.db));
    return PAWL_OK;
}

/* A read that failed for want of memory or disk may have ended the host's transaction. */
static void note_lost(struct sqlite_store *store)
{
    if (!store->is_guest || !sqlite3_get_autocommit(store->reader.db))
        return;
    /* Only an attached store comes here, and that is used by one thread at a time. */
    if (store->is_joined || !store->in_turn)
        store->has_lost = true;
}

void reader_leave(struct sqlite_store *store)
{
    ASSERT(store->is_guest || sqlite3_get_autocommit(store->reader.db));
    note_lost(store);
    pthread_mutex_unlock(&store->read_lock);
}

static const char end_read[] = "COMMIT";

/* COMMIT is prepared first: ending the snapshot must not lack memory. In the host's transaction
 * there is a snapshot already, and its end is the host's. */
pawl_status reader_begin(struct sqlite_store *store, struct scope *scope)
{
    sqlite3_stmt *commit;
    pawl_status status;

    TRY(reader_enter(store, scope));
    status = statement_get(&store->reader, scope, end_read, &commit);
    if (status == PAWL_OK && !store->is_guest)
        status = connection_run(&store->reader, scope, "BEGIN");
    if (status != PAWL_OK)
        reader_leave(store);
    return status;
}

void reader_end(struct sqlite_store *store)
{
    struct scope scope;

    scope_init(&scope, store->heap, 0);
    if (!store->is_guest && !sqlite3_get_autocommit(store->reader.db) &&
        connection_run(&store->reader, &scope, end_read) != PAWL_OK)
        atomic_store(&store->broken, true); /* a read that cannot even end */
    note_lost(store);
    scope_fini(&scope);
    pthread_mutex_unlock(&store->read_lock);
}

pawl_status read_row(struct scope *scope, sqlite3_stmt *statement, const char *what,
                     row_reader *read, void *out)
{
    bool row = false;

    TRY(statement_step(statement, scope, &row));
    if (!row)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such %s", what);
    read(statement, &scope->arena, out);
    sqlite3_reset(statement);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

/* ---- Instances ---- */

static const char select_instance[] =
    "SELECT " INSTANCE_COLUMNS " FROM pawl_instance WHERE number = ?1";

void read_instance(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct instance_row *row = out;

    *row = (struct instance_row){
        .number = column_u64(statement, 0),
        .definition = column_u32(statement, 2),
        .instantiated_at_ms = column_i64(statement, 3),
        .created_pos = column_u64(statement, 4),
        .creator = column_u64(statement, 5),
        .subject = column_u64(statement, 6),
        .input = column_u64(statement, 7),
        .metadata = column_u64(statement, 8),
        .parent = column_u64(statement, 9),
        .correlation = column_str(statement, 10, arena),
        .labels = column_str(statement, 11, arena),
        .test = column_u64(statement, 12) != 0,
    };
    column_bytes(statement, 1, row->random, ID_RANDOM_SIZE);
}

/* ---- Values ---- */

#define VALUE_COLUMNS "id, commitment, salt, bytes, interned"

static const char select_value[] = "SELECT " VALUE_COLUMNS " FROM pawl_value WHERE id = ?1";
static const char select_interned[] =
    "SELECT " VALUE_COLUMNS " FROM pawl_value WHERE interned = 1 AND bytes = ?1";

struct value_column {
    struct value value;
    bool is_bare; /* its commitment is not stored: it follows from salt and bytes */
};

static void read_value(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct value_column *found = out;

    *found = (struct value_column){
        .value = { .id = column_u64(statement, 0),
                   .bytes = column_str(statement, 3, arena),
                   .interned = column_u64(statement, 4) == 1 },
        .is_bare = sqlite3_column_type(statement, 1) == SQLITE_NULL,
    };
    column_bytes(statement, 1, found->value.commitment, SHA_SIZE);
    column_bytes(statement, 2, found->value.salt, SALT_SIZE);
}

/* ---- Snapshots, keys, tokens and alarms ---- */

static const char select_snapshot[] = "SELECT inst, seq, text FROM pawl_snapshot WHERE inst = ?1";

static void read_snapshot(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    *(struct snapshot_row *)out = (struct snapshot_row){
        .instance = column_u64(statement, 0),
        .seq = column_u64(statement, 1),
        .text = column_str(statement, 2, arena),
    };
}

static const char select_key[] = "SELECT id, at, pos FROM pawl_key WHERE id = ?1";

static void read_key(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    struct key_row *row = out;

    (void)arena;
    column_bytes(statement, 0, row->id, KEY_ID_SIZE);
    row->at_ms = column_i64(statement, 1);
    row->pos = column_u64(statement, 2);
}

static const char select_standing[] =
    "SELECT what, id, due, pos, firing, wall FROM pawl_kept WHERE what = ?1 AND id = ?2";

void read_standing(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    *(struct standing_row *)out = (struct standing_row){
        .what = (int32_t)column_i64(statement, 0),
        .id = column_str(statement, 1, arena),
        .due_at_ms = column_i64(statement, 2),
        .pos = column_u64(statement, 3),
        .firing_ms = column_i64(statement, 4),
        .wall = column_u64(statement, 5) != 0,
    };
}

/* ---- Definitions ---- */

#define FROM_BOTH " FROM pawl_definition d LEFT JOIN pawl_source s ON s.id = d.source"
#define SELECT                                                                                     \
    "SELECT d.id, d.name, d.version, d.kind, d.created_at, s.sha256, d.compiled_sha256,"           \
    " s.bytes, d.compiled" FROM_BOTH

static const char select_definition[] = SELECT " WHERE d.id = ?1";
static const char select_newest[] = SELECT " WHERE d.name = ?1 ORDER BY d.version DESC LIMIT 1";
static const char select_version[] = SELECT " WHERE d.name = ?1 AND d.version = ?2";
static const char select_inline[] =
    SELECT " WHERE d.name IS NULL AND s.sha256 = ?1 AND d.compiler = ?2 ORDER BY d.id LIMIT 1";

void read_definition_facts(sqlite3_stmt *statement, struct arena *arena, void *out)
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
    struct definition_row *row = out;

    read_definition_facts(statement, arena, row);
    row->source = column_str(statement, 7, arena);
    row->compiled = column_str(statement, 8, arena);
}

/* ---- Any of them ---- */

struct finder {
    const char *text;
    row_reader *read;
};

static const struct finder finders[] = {
    [FIND_INSTANCE] = { select_instance, read_instance },
    [FIND_RECORD] = { select_record, read_record },
    [FIND_VALUE] = { select_value, read_value },
    [FIND_BYTES] = { select_value, read_value },
    [FIND_INTERNED] = { select_interned, read_value },
    [FIND_SNAPSHOT] = { select_snapshot, read_snapshot },
    [FIND_KEY] = { select_key, read_key },
    [FIND_STANDING] = { select_standing, read_standing },
    [FIND_DEFINITION] = { select_definition, read_definition },
    [FIND_NAMED] = { select_version, read_definition },
    [FIND_INLINE] = { select_inline, read_definition },
};
static const struct finder newest = { select_newest, read_definition };

/* False: there can be no such row. */
static bool bind_name(sqlite3_stmt *statement, const struct find_query *query)
{
    switch (query->kind) {
    case FIND_INTERNED:
        bind_blob(statement, 1, query->by.bytes);
        return true;
    case FIND_KEY:
        bind_bytes(statement, 1, query->by.hash, KEY_ID_SIZE);
        return true;
    case FIND_STANDING:
        bind_i64(statement, 1, query->by.standing.what);
        bind_text(statement, 2, query->by.standing.id);
        return true;
    case FIND_NAMED:
        bind_text(statement, 1, query->by.named.name);
        if (query->by.named.version != 0)
            bind_u64(statement, 2, query->by.named.version);
        return true;
    case FIND_INLINE:
        bind_bytes(statement, 1, query->by.hash, SHA_SIZE);
        bind_u64(statement, 2, COMPILER_NUMBER);
        return true;
    case FIND_HEAD:
    case FIND_INSTANCE:
    case FIND_RECORD:
    case FIND_VALUE:
    case FIND_BYTES:
    case FIND_SNAPSHOT:
    case FIND_DEFINITION:
        break;
    }
    if (query->by.number > INT64_MAX)
        return false;
    bind_u64(statement, 1, query->by.number);
    return true;
}

static pawl_status find_row(struct sqlite_store *store, struct scope *scope,
                            const struct find_query *query, void *out)
{
    bool is_newest = query->kind == FIND_NAMED && query->by.named.version == 0;
    const struct finder *finder = is_newest ? &newest : &finders[query->kind];
    sqlite3_stmt *statement;

    TRY(statement_get(&store->reader, scope, finder->text, &statement));
    if (!bind_name(statement, query))
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such %s", find_word(query->kind));
    return read_row(scope, statement, find_word(query->kind), finder->read, out);
}

pawl_status sqlite_find_inside(struct store *base, struct scope *scope,
                               const struct find_query *query, void *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    bool is_value = query->kind == FIND_VALUE || query->kind == FIND_INTERNED;
    struct value_column found;

    if (query->kind == FIND_HEAD)
        return head_find(&store->reader, scope, query->by.head.instance, query->by.head.trust_rows,
                         out);
    if (!is_value && query->kind != FIND_BYTES)
        return find_row(store, scope, query, out);
    TRY(find_row(store, scope, query, &found));
    /* The read lock is held: the hasher belongs to one caller at a time. With neither commitment
     * nor bytes the commitment stays zeros, for verify to find. */
    if (is_value && found.is_bare && found.value.bytes.data) {
        sha_begin(store->sha);
        sha_add(store->sha, found.value.salt, SALT_SIZE);
        sha_add(store->sha, found.value.bytes.data, found.value.bytes.size);
        sha_end(store->sha, found.value.commitment);
    }
    *(struct value *)out = found.value;
    return PAWL_OK;
}

/* A head with the tail of the log takes several statements. */
pawl_status sqlite_find_row(struct store *base, struct scope *scope, const struct find_query *query,
                            void *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    bool is_long = query->kind == FIND_HEAD && !query->by.head.trust_rows;
    pawl_status status;

    TRY(is_long ? reader_begin(store, scope) : reader_enter(store, scope));
    status = sqlite_find_inside(base, scope, query, out);
    if (is_long)
        reader_end(store);
    else
        reader_leave(store);
    return status;
}

/* All of it in one transaction. */
pawl_status sqlite_instance_logs(struct store *base, struct scope *scope,
                                 struct instance_log_query *queries, uint32_t count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status;

    TRY(reader_begin(store, scope));
    status = queries[0].is_whole
                 ? sqlite_read_whole(store, scope, &queries[0])
                 : instance_log_gather(sqlite_find_inside, base, scope, queries, count);
    reader_end(store);
    return status;
}
