/* write.c - the rows of one commit. Each loop binds and steps; nothing is allocated per row. */
#include "base/assert.h"
#include "sqlite_int.h"

static const char put_value[] =
    "INSERT INTO pawl_value (id, commitment, salt, bytes, interned) VALUES (?1, ?2, ?3, ?4, ?5)";
/* The commitment stays for ever: every hash over it can still be proved. */
static const char erase_value[] =
    "INSERT INTO pawl_value (id, commitment, interned) VALUES (?1, ?2, 0)"
    " ON CONFLICT (id) DO UPDATE SET salt = NULL, bytes = NULL, interned = 0";
static const char put_instance[] =
    "INSERT INTO pawl_instance (number, random, definition, instantiated_at, created_pos, creator,"
    " subject, input, metadata, parent, correlation, labels, test)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
static const char put_record[] =
    "INSERT INTO pawl_log (pos, inst, seq, prev, skip, what, flags, at, fired, step, ord, attempt,"
    " actor, payload, reason, body, key, hash, root)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
    " ?19)";
/* Contract (6). */
static const char put_head[] =
    "INSERT INTO pawl_head (inst, seq, state, pos) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (inst) DO UPDATE SET seq = excluded.seq, state = excluded.state,"
    " pos = excluded.pos WHERE excluded.pos > pos OR excluded.seq > seq";
static const char put_snapshot[] = "INSERT OR REPLACE INTO pawl_snapshot (inst, seq, text)"
                                   " VALUES (?1, ?2, ?3)";
static const char put_meta[] = "INSERT OR REPLACE INTO pawl_meta (key, value) VALUES (?1, ?2)";

static void bind_value(sqlite3_stmt *statement, const struct value *value)
{
    bind_u64(statement, 1, value->id);
    bind_bytes(statement, 2, value->commitment, SHA_SIZE);
    if (!value->bytes.data)
        return;
    bind_bytes(statement, 3, value->salt, SALT_SIZE);
    bind_blob(statement, 4, value->bytes);
    bind_optional(statement, 5, value->interned);
}

static pawl_status write_values(struct connection *writer, struct scope *scope,
                                const struct commit *commit)
{
    sqlite3_stmt *put, *erase;
    pawl_status status;

    if (commit->value_count == 0)
        return PAWL_OK;
    status = statement_get(writer, scope, STATEMENT_PUT_VALUE, put_value, &put);
    if (status == PAWL_OK)
        status = statement_get(writer, scope, STATEMENT_ERASE_VALUE, erase_value, &erase);
    for (size_t i = 0; i < commit->value_count && status == PAWL_OK; i++) {
        sqlite3_stmt *statement = commit->values[i].bytes.data ? put : erase;

        bind_value(statement, &commit->values[i]);
        status = statement_run(statement, scope);
    }
    return status;
}

static pawl_status write_definitions(struct connection *writer, struct scope *scope,
                                     const struct commit *commit)
{
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < commit->definition_count && status == PAWL_OK; i++)
        status = write_definition(writer, scope, &commit->definitions[i]);
    return status;
}

static void bind_instance(sqlite3_stmt *statement, const struct instance_row *row)
{
    bind_u64(statement, 1, row->number);
    bind_bytes(statement, 2, row->random, ID_RANDOM_SIZE);
    bind_u64(statement, 3, row->definition);
    bind_i64(statement, 4, row->instantiated_at_ms);
    bind_u64(statement, 5, row->created_pos);
    bind_optional(statement, 6, row->creator);
    bind_optional(statement, 7, row->subject);
    bind_optional(statement, 8, row->input);
    bind_optional(statement, 9, row->metadata);
    bind_optional(statement, 10, row->parent);
    bind_text(statement, 11, row->correlation);
    bind_text(statement, 12, row->labels);
    bind_optional(statement, 13, row->test);
}

static pawl_status write_instances(struct connection *writer, struct scope *scope,
                                   const struct commit *commit)
{
    sqlite3_stmt *statement;
    pawl_status status;

    if (commit->instance_count == 0)
        return PAWL_OK;
    status = statement_get(writer, scope, STATEMENT_PUT_INSTANCE, put_instance, &statement);
    for (size_t i = 0; i < commit->instance_count && status == PAWL_OK; i++) {
        bind_instance(statement, &commit->instances[i]);
        status = statement_run(statement, scope);
    }
    return status;
}

/* Every 64th entry has a skip pointer, which is 0 for the first of them: written, not NULL. */
static void bind_skip(sqlite3_stmt *statement, int index, const struct record *record)
{
    if (record->what >= 0 && record->seq > 0 && record->seq % SKIP_EVERY == 0)
        bind_u64(statement, index, record->skip);
    else
        bind_optional(statement, index, record->skip);
}

static void bind_record(sqlite3_stmt *statement, const struct record *record)
{
    bind_u64(statement, 1, record->pos);
    bind_u64(statement, 2, record->instance);
    bind_u64(statement, 3, record->seq);
    bind_optional(statement, 4, record->prev);
    bind_skip(statement, 5, record);
    bind_i64(statement, 6, record->what);
    bind_optional(statement, 7, record->flags);
    bind_i64(statement, 8, record->at_ms);
    if (record->fired_at_ms != record->at_ms)
        bind_i64(statement, 9, record->fired_at_ms);
    else
        bind_optional(statement, 9, 0);
    bind_optional(statement, 10, record->step);
    bind_optional(statement, 11, record->ordinal);
    bind_optional(statement, 12, record->attempt);
    bind_optional(statement, 13, record->actor);
    bind_optional(statement, 14, record->payload);
    bind_optional(statement, 15, record->reason);
    bind_blob(statement, 16, record->body);
    bind_blob(statement, 17, record->key);
    bind_bytes(statement, 18, record->hash, SHA_SIZE);
    bind_blob(statement, 19,
              record->has_root ? (str){ (const char *)record->root, SHA_SIZE } : STR_NONE);
}

static pawl_status write_records(struct connection *writer, struct scope *scope,
                                 const struct commit *commit)
{
    sqlite3_stmt *statement;
    pawl_status status;

    if (commit->record_count == 0)
        return PAWL_OK;
    status = statement_get(writer, scope, STATEMENT_PUT_RECORD, put_record, &statement);
    for (size_t i = 0; i < commit->record_count && status == PAWL_OK; i++) {
        bind_record(statement, &commit->records[i]);
        status = statement_run(statement, scope);
    }
    return status;
}

static pawl_status write_heads(struct connection *writer, struct scope *scope,
                               const struct commit *commit)
{
    sqlite3_stmt *statement;
    pawl_status status;

    if (commit->head_count == 0)
        return PAWL_OK;
    status = statement_get(writer, scope, STATEMENT_PUT_HEAD, put_head, &statement);
    for (size_t i = 0; i < commit->head_count && status == PAWL_OK; i++) {
        bind_u64(statement, 1, commit->heads[i].instance);
        bind_u64(statement, 2, commit->heads[i].seq);
        bind_u64(statement, 3, commit->heads[i].state);
        bind_u64(statement, 4, commit->heads[i].pos);
        status = statement_run(statement, scope);
    }
    return status;
}

static pawl_status write_snapshots(struct connection *writer, struct scope *scope,
                                   const struct commit *commit)
{
    sqlite3_stmt *statement;
    pawl_status status;

    if (commit->snapshot_count == 0)
        return PAWL_OK;
    status = statement_get(writer, scope, STATEMENT_PUT_SNAPSHOT, put_snapshot, &statement);
    for (size_t i = 0; i < commit->snapshot_count && status == PAWL_OK; i++) {
        bind_u64(statement, 1, commit->snapshots[i].instance);
        bind_u64(statement, 2, commit->snapshots[i].seq);
        bind_text(statement, 3, commit->snapshots[i].text);
        status = statement_run(statement, scope);
    }
    return status;
}

static pawl_status write_meta(struct connection *writer, struct scope *scope, str key, int64_t n)
{
    sqlite3_stmt *statement;
    pawl_status status;

    if (n == 0)
        return PAWL_OK;
    status = statement_get(writer, scope, STATEMENT_PUT_META, put_meta, &statement);
    if (status != PAWL_OK)
        return status;
    bind_text(statement, 1, key);
    bind_i64(statement, 2, n);
    return statement_run(statement, scope);
}

pawl_status write_rows(struct connection *writer, struct scope *scope, const struct commit *commit)
{
    pawl_status status = write_values(writer, scope, commit);

    if (status == PAWL_OK)
        status = write_definitions(writer, scope, commit);
    if (status == PAWL_OK)
        status = write_instances(writer, scope, commit);
    if (status == PAWL_OK)
        status = write_records(writer, scope, commit);
    if (status == PAWL_OK)
        status = write_heads(writer, scope, commit);
    if (status == PAWL_OK)
        status = write_snapshots(writer, scope, commit);
    if (status == PAWL_OK)
        status = write_meta(writer, scope, STR("flushed"), (int64_t)commit->flushed);
    if (status == PAWL_OK)
        status = write_meta(writer, scope, STR("test_now"), commit->test_now_ms);
    return status;
}
