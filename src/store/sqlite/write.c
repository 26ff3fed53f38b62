/* write.c - the rows of one commit. Each loop binds and steps; nothing is allocated per row.
 *
 * Values, records and heads are what a busy store writes: they go sixteen to a statement, because
 * beginning and ending a statement costs SQLite as much as the insert itself. */
#include "base/assert.h"
#include "sqlite_int.h"

#define ROWS_AT_ONCE   16u
#define TIMES_4(row)   row ", " row ", " row ", " row
#define TIMES_16(row)  TIMES_4(TIMES_4(row))
#define VALUE_COLUMNS  4
#define VALUE_ROW      "(?, ?, ?, ?)"
#define RECORD_COLUMNS 19
#define RECORD_ROW     "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define HEAD_COLUMNS   4
#define HEAD_ROW       "(?, ?, ?, ?)"

_Static_assert(ROWS_AT_ONCE *RECORD_COLUMNS <= STATEMENT_VARIABLES, "a host's limit is checked");

/* The commitment of a value that is there follows from it; once it is gone it stays for ever: every
 * hash over it can still be proved. */
#define PUT_VALUE "INSERT INTO pawl_value (id, salt, bytes, interned) VALUES "
static const char put_value[] = PUT_VALUE VALUE_ROW;
static const char put_values[] = PUT_VALUE TIMES_16(VALUE_ROW);
static const char erase_value[] =
    "INSERT INTO pawl_value (id, commitment, interned) VALUES (?1, ?2, 0)"
    " ON CONFLICT (id) DO UPDATE SET commitment = coalesce(commitment, excluded.commitment),"
    " salt = NULL, bytes = NULL, interned = 0";
static const char redact_record[] = "UPDATE pawl_log SET body = ?2, flags = ?3 WHERE pos = ?1";
static const char clear_instance[] =
    "UPDATE pawl_instance SET correlation = NULL, labels = NULL WHERE number = ?1";
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

static pawl_status write_instance(struct connection *writer, struct scope *scope,
                                  const struct instance_row *row)
{
    return RUN(writer, scope, put_instance, NUMBER(row->number), BYTES(row->random, ID_RANDOM_SIZE),
               NUMBER(row->definition), SIGNED(row->instantiated_at_ms), NUMBER(row->created_pos),
               OPTIONAL(row->creator), OPTIONAL(row->subject), OPTIONAL(row->input),
               OPTIONAL(row->metadata), OPTIONAL(row->parent), TEXT(row->correlation),
               TEXT(row->labels), OPTIONAL(row->test));
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

static void bind_value(sqlite3_stmt *statement, int before, const void *row)
{
    const struct value *value = row;

    bind_u64(statement, before + 1, value->id);
    bind_bytes(statement, before + 2, value->salt, SALT_SIZE);
    bind_blob(statement, before + 3, value->bytes);
    bind_unless_0(statement, before + 4, value->interned);
}

/* Into the parameters after `before`, which are NULL so far. */
static void bind_record(sqlite3_stmt *statement, int before, const void *row)
{
    const struct record *record = row;

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

static void bind_head(sqlite3_stmt *statement, int before, const void *of)
{
    const struct head_row *row = of;

    bind_u64(statement, before + 1, row->instance);
    bind_u64(statement, before + 2, row->seq);
    bind_u64(statement, before + 3, row->state);
    bind_u64(statement, before + 4, row->pos);
}

/* Rows of a kind: a statement for one of them, and one for ROWS_AT_ONCE. */
struct row_writer {
    const char *one, *many;
    void (*bind)(sqlite3_stmt *statement, int before, const void *row);
    int columns;
    size_t size; /* of a row in memory */
};

static const struct row_writer value_writer = { put_value, put_values, bind_value, VALUE_COLUMNS,
                                                sizeof(struct value) };
static const struct row_writer record_writer = { put_record, put_records, bind_record,
                                                 RECORD_COLUMNS, sizeof(struct record) };
static const struct row_writer head_writer = { put_head, put_heads, bind_head, HEAD_COLUMNS,
                                               sizeof(struct head_row) };

static pawl_status write_many(struct connection *writer, struct scope *scope,
                              const struct row_writer *how, const void *rows, size_t count)
{
    const char *row = rows;
    sqlite3_stmt *statement;

    for (size_t left = count, taken; left > 0; left -= taken) {
        taken = left >= ROWS_AT_ONCE ? ROWS_AT_ONCE : 1;
        TRY(statement_get(writer, scope, taken > 1 ? how->many : how->one, &statement));
        sqlite3_clear_bindings(statement);
        for (size_t i = 0; i < taken; i++, row += how->size)
            how->bind(statement, (int)i * how->columns, row);
        TRY(statement_run(statement, scope));
    }
    return PAWL_OK;
}

/* Those with bytes between two that are erased go together. */
static pawl_status write_values(struct connection *writer, struct scope *scope,
                                const struct value *values, size_t count)
{
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && values[next].bytes.data; next++)
            continue;
        TRY(write_many(writer, scope, &value_writer, values + i, next - i));
        if (next < count) {
            TRY(RUN(writer, scope, erase_value, NUMBER(values[next].id),
                    BYTES(values[next].commitment, SHA_SIZE)));
            next++;
        }
    }
    return PAWL_OK;
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

static pawl_status write_erased(struct connection *writer, struct scope *scope,
                                const struct commit *commit)
{
    TRY(write_values(writer, scope, commit->erasures, commit->erasure_count));
    for (size_t i = 0; i < commit->redaction_count; i++) {
        const struct redaction *redaction = &commit->redactions[i];

        TRY(RUN(writer, scope, redact_record, NUMBER(redaction->pos), BLOB(redaction->body),
                NUMBER(redaction->flags)));
    }
    for (size_t i = 0; i < commit->cleared_count; i++) {
        TRY(RUN(writer, scope, clear_instance, NUMBER(commit->cleared[i].number)));
        TRY(RUN(writer, scope, delete_snapshot, NUMBER(commit->cleared[i].number)));
    }
    return delete_labels(writer, scope, commit->cleared, commit->cleared_count);
}

pawl_status write_rows(struct connection *writer, struct scope *scope, const struct commit *commit)
{
    if (commit_erases(commit))
        TRY(write_erased(writer, scope, commit));
    TRY(write_values(writer, scope, commit->values, commit->value_count));
    for (size_t i = 0; i < commit->definition_count; i++)
        TRY(write_definition(writer, scope, &commit->definitions[i]));
    for (size_t i = 0; i < commit->instance_count; i++)
        TRY(write_instance(writer, scope, &commit->instances[i]));
    TRY(write_labels(writer, scope, commit));
    TRY(write_many(writer, scope, &record_writer, commit->records, commit->record_count));
    TRY(write_many(writer, scope, &head_writer, commit->heads, commit->head_count));
    for (size_t i = 0; i < commit->snapshot_count; i++)
        TRY(write_snapshot(writer, scope, &commit->snapshots[i]));
    return commit->flushed > 0 ? RUN(writer, scope, put_flushed, NUMBER(commit->flushed)) : PAWL_OK;
}
