/* write.c - the rows of one commit. Each loop binds and steps; nothing is allocated per row.
 *
 * Records and heads are what a busy store writes: they go sixteen to a statement, because
 * beginning and ending a statement costs SQLite as much as the insert itself. */
#include "base/assert.h"
#include "sqlite_int.h"

#define ROWS_AT_ONCE   16u
#define TIMES_4(row)   row ", " row ", " row ", " row
#define TIMES_16(row)  TIMES_4(TIMES_4(row))
#define RECORD_COLUMNS 19
#define RECORD_ROW     "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define HEAD_COLUMNS   4
#define HEAD_ROW       "(?, ?, ?, ?)"

_Static_assert(ROWS_AT_ONCE *RECORD_COLUMNS <= STATEMENT_VARIABLES, "a host's limit is checked");

/* The commitment of a value that is there follows from it; once it is gone it stays for ever: every
 * hash over it can still be proved. */
static const char put_value[] =
    "INSERT INTO pawl_value (id, salt, bytes, interned) VALUES (?1, ?2, ?3, ?4)";
static const char erase_value[] =
    "INSERT INTO pawl_value (id, commitment, interned) VALUES (?1, ?2, 0)"
    " ON CONFLICT (id) DO UPDATE SET commitment = coalesce(commitment, excluded.commitment),"
    " salt = NULL, bytes = NULL, interned = 0";
static const char put_instance[] =
    "INSERT INTO pawl_instance (number, random, definition, instantiated_at, created_pos, creator,"
    " subject, input, metadata, parent, correlation, labels, test)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
#define PUT_RECORD                                                                                 \
    "INSERT INTO pawl_log (pos, inst, seq, prev, skip, what, flags, at, fired, step, ord, "        \
    "attempt,"                                                                                     \
    " actor, payload, reason, body, key, hash, root) VALUES "
static const char put_record[] = PUT_RECORD RECORD_ROW;
static const char put_records[] = PUT_RECORD TIMES_16(RECORD_ROW);
/* Contract (6). */
#define PUT_HEAD "INSERT INTO pawl_head (inst, seq, state, pos) VALUES "
#define IF_NEWER                                                                                   \
    " ON CONFLICT (inst) DO UPDATE SET seq = excluded.seq, state = excluded.state,"                \
    " pos = excluded.pos WHERE excluded.pos > pos OR excluded.seq > seq"
static const char put_head[] = PUT_HEAD HEAD_ROW IF_NEWER;
static const char put_heads[] = PUT_HEAD TIMES_16(HEAD_ROW) IF_NEWER;
static const char delete_snapshot[] = "DELETE FROM pawl_snapshot WHERE inst = ?1";
static const char put_snapshot[] = "INSERT OR REPLACE INTO pawl_snapshot (inst, seq, text)"
                                   " VALUES (?1, ?2, ?3)";
static const char put_flushed[] =
    "INSERT OR REPLACE INTO pawl_meta (key, value) VALUES ('flushed', ?1)";

static pawl_status write_value(struct connection *writer, struct scope *scope,
                               const struct value *value)
{
    if (!value->bytes.data)
        return RUN(writer, scope, erase_value, NUMBER(value->id),
                   BYTES(value->commitment, SHA_SIZE));
    return RUN(writer, scope, put_value, NUMBER(value->id), BYTES(value->salt, SALT_SIZE),
               BLOB(value->bytes), OPTIONAL(value->interned));
}

static pawl_status write_values(struct connection *writer, struct scope *scope,
                                const struct commit *commit)
{
    for (size_t i = 0; i < commit->value_count; i++)
        TRY(write_value(writer, scope, &commit->values[i]));
    return PAWL_OK;
}

static pawl_status write_definitions(struct connection *writer, struct scope *scope,
                                     const struct commit *commit)
{
    for (size_t i = 0; i < commit->definition_count; i++)
        TRY(write_definition(writer, scope, &commit->definitions[i]));
    return PAWL_OK;
}

static pawl_status write_instance(struct connection *writer, struct scope *scope,
                                  const struct instance_row *row)
{
    return RUN(writer, scope, put_instance, NUMBER(row->number), BYTES(row->random, ID_RANDOM_SIZE),
               NUMBER(row->definition), SIGNED(row->instantiated_at_ms), NUMBER(row->created_pos),
               OPTIONAL(row->creator), OPTIONAL(row->subject), OPTIONAL(row->input),
               OPTIONAL(row->metadata), OPTIONAL(row->parent), TEXT(row->correlation),
               TEXT(row->labels), OPTIONAL(row->test));
}

static pawl_status write_instances(struct connection *writer, struct scope *scope,
                                   const struct commit *commit)
{
    for (size_t i = 0; i < commit->instance_count; i++)
        TRY(write_instance(writer, scope, &commit->instances[i]));
    return PAWL_OK;
}

/* A statement for one row, and one for ROWS_AT_ONCE of them. */
struct pair_texts {
    const char *one, *many;
};

static const struct pair_texts record_texts = { put_record, put_records };
static const struct pair_texts head_texts = { put_head, put_heads };

struct pair {
    sqlite3_stmt *one, *many; /* many NULL: there are too few rows for it */
};

static pawl_status pair_get(struct connection *writer, struct scope *scope, size_t count,
                            const struct pair_texts *texts, struct pair *out)
{
    pawl_status status = PAWL_OK;

    *out = (struct pair){ 0 };
    if (count > 0)
        status = statement_get(writer, scope, texts->one, &out->one);
    if (count >= ROWS_AT_ONCE && status == PAWL_OK)
        status = statement_get(writer, scope, texts->many, &out->many);
    return status;
}

/* The statement for the next of `left` rows, all its parameters NULL; it takes *taken rows. */
static sqlite3_stmt *pair_next(const struct pair *pair, size_t left, size_t *taken)
{
    sqlite3_stmt *statement = left >= ROWS_AT_ONCE ? pair->many : pair->one;

    *taken = left >= ROWS_AT_ONCE ? ROWS_AT_ONCE : 1;
    sqlite3_clear_bindings(statement);
    return statement;
}

/* What is not bound is NULL, which counts as 0. */
static void bind_unless_0(sqlite3_stmt *statement, int index, uint64_t n)
{
    if (n > 0)
        bind_u64(statement, index, n);
}

/* Every 64th entry has a skip pointer, which is 0 for the first of them: written, not NULL. */
static bool has_skip(const struct record *record)
{
    return record->skip > 0 ||
           (record->what >= 0 && record->seq > 0 && record->seq % SKIP_EVERY == 0);
}

/* Into the parameters after `before`, which are NULL so far. */
static void bind_record(sqlite3_stmt *statement, int before, const struct record *record)
{
    bind_u64(statement, before + 1, record->pos);
    bind_u64(statement, before + 2, record->instance);
    bind_u64(statement, before + 3, record->seq);
    bind_unless_0(statement, before + 4, record->prev);
    if (has_skip(record))
        bind_u64(statement, before + 5, record->skip);
    bind_i64(statement, before + 6, record->what);
    bind_unless_0(statement, before + 7, record->flags);
    bind_i64(statement, before + 8, record->at_ms);
    if (record->fired_at_ms != record->at_ms)
        bind_i64(statement, before + 9, record->fired_at_ms);
    bind_unless_0(statement, before + 10, record->step);
    bind_unless_0(statement, before + 11, record->ordinal);
    bind_unless_0(statement, before + 12, record->attempt);
    bind_unless_0(statement, before + 13, record->actor);
    bind_unless_0(statement, before + 14, record->payload);
    bind_unless_0(statement, before + 15, record->reason);
    if (record->body.data)
        bind_blob(statement, before + 16, record->body);
    if (record->key.data)
        bind_blob(statement, before + 17, record->key);
    bind_bytes(statement, before + 18, record->hash, SHA_SIZE);
    if (record->has_root)
        bind_bytes(statement, before + 19, record->root, SHA_SIZE);
}

static pawl_status write_records(struct connection *writer, struct scope *scope,
                                 const struct commit *commit)
{
    struct pair pair;
    sqlite3_stmt *statement;
    size_t done = 0, taken;
    pawl_status status = pair_get(writer, scope, commit->record_count, &record_texts, &pair);

    while (done < commit->record_count && status == PAWL_OK) {
        statement = pair_next(&pair, commit->record_count - done, &taken);
        for (size_t i = 0; i < taken; i++)
            bind_record(statement, (int)i * RECORD_COLUMNS, &commit->records[done + i]);
        status = statement_run(statement, scope);
        done += taken;
    }
    return status;
}

static void bind_head(sqlite3_stmt *statement, int before, const struct head_row *row)
{
    bind_u64(statement, before + 1, row->instance);
    bind_u64(statement, before + 2, row->seq);
    bind_u64(statement, before + 3, row->state);
    bind_u64(statement, before + 4, row->pos);
}

static pawl_status write_heads(struct connection *writer, struct scope *scope,
                               const struct commit *commit)
{
    struct pair pair;
    sqlite3_stmt *statement;
    size_t done = 0, taken;
    pawl_status status = pair_get(writer, scope, commit->head_count, &head_texts, &pair);

    while (done < commit->head_count && status == PAWL_OK) {
        statement = pair_next(&pair, commit->head_count - done, &taken);
        for (size_t i = 0; i < taken; i++)
            bind_head(statement, (int)i * HEAD_COLUMNS, &commit->heads[done + i]);
        status = statement_run(statement, scope);
        done += taken;
    }
    return status;
}

/* One without a text is deleted. */
static pawl_status write_snapshot(struct connection *writer, struct scope *scope,
                                  const struct snapshot_row *snapshot)
{
    if (!snapshot->text.data)
        return RUN(writer, scope, delete_snapshot, NUMBER(snapshot->instance));
    return RUN(writer, scope, put_snapshot, NUMBER(snapshot->instance), NUMBER(snapshot->seq),
               TEXT(snapshot->text));
}

static pawl_status write_snapshots(struct connection *writer, struct scope *scope,
                                   const struct commit *commit)
{
    for (size_t i = 0; i < commit->snapshot_count; i++)
        TRY(write_snapshot(writer, scope, &commit->snapshots[i]));
    return PAWL_OK;
}

pawl_status write_rows(struct connection *writer, struct scope *scope, const struct commit *commit)
{
    TRY(write_values(writer, scope, commit));
    TRY(write_definitions(writer, scope, commit));
    TRY(write_instances(writer, scope, commit));
    TRY(write_labels(writer, scope, commit));
    TRY(write_records(writer, scope, commit));
    TRY(write_heads(writer, scope, commit));
    TRY(write_snapshots(writer, scope, commit));
    return commit->flushed > 0 ? RUN(writer, scope, put_flushed, NUMBER(commit->flushed)) : PAWL_OK;
}
