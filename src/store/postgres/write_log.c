/* write_log.c - records, packed: a row of the log has at most 128 of them, or 256 KiB, and ends
 * where a commit ends. A column that no record of a row has is NULL. */
#include "postgres_int.h"

#define PUT_ROW                                                                                    \
    "INSERT INTO pawl_log (shard, pos, n, at, inst, seq, prev, what, hash, skip, flags, "          \
    "ats, fired, step, ord, attempt, actor, payload, reason, body, keys, root) VALUES "            \
    "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, "           \
    "$19, $20, $21, $22)"
static const char put_row[] = PUT_ROW;
/* With the planted defects NO_FENCE and FENCE_EARLY nothing stops a stale owner, the key of the log
 * neither. */
static const char put_any_row[] = PUT_ROW " ON CONFLICT (shard, pos) DO NOTHING";

static size_t record_size(const struct record *record)
{
    return 100 + record->body.size + record->key.size;
}

/* How many of these records go into the next row. */
static size_t row_end(const struct record *records, size_t count)
{
    size_t taken = 0, size = 0;

    while (taken < count && taken < LOG_ROW_RECORDS) {
        size += record_size(&records[taken]);
        if (taken > 0 && size > LOG_ROW_BYTES)
            break;
        if (records[taken++].has_root)
            break;
    }
    return taken;
}

bool log_is_one_row(const struct commit *commit)
{
    return row_end(commit->records, commit->record_count) == commit->record_count;
}

static bool has_any(const struct record *records, size_t count, const struct column *column)
{
    static const char zeros[8];

    for (size_t i = 0; i < count; i++) {
        const char *field = (const char *)&records[i] + column->offset;
        size_t size = column->from == FROM_U64 || column->from == FROM_STR ? 8 : 4;

        if (memcmp(field, zeros, size) != 0) /* a str begins with its pointer */
            return true;
    }
    return false;
}

static void add_hashes(struct params *params, const struct record *records, size_t count)
{
    char *all = arena_alloc(params->arena, count * SHA_SIZE);

    for (size_t i = 0; all && i < count; i++)
        memcpy(all + i * SHA_SIZE, records[i].hash, SHA_SIZE);
    params_bytes(params, (str){ all, count * SHA_SIZE });
}

/* Each its own time, unless they have one in common. */
static void add_times(struct params *params, const struct record *records, size_t count)
{
    static const struct column at = COLUMN(struct record, at_ms, FROM_I64, PG_INT8);
    bool differs = false;

    for (size_t i = 0; i < count; i++)
        differs |= records[i].at_ms != records[0].at_ms;
    if (differs)
        params_column(params, records, sizeof *records, count, &at);
    else
        params_null(params, PG_INT8, true);
}

/* NULL where it is the record's time. Bytes of a number are an element as the server wants it. */
static void add_fired(struct params *params, const struct record *records, size_t count)
{
    bool differs = false;
    int64_t *times;

    for (size_t i = 0; i < count; i++)
        differs |= records[i].fired_at_ms != records[i].at_ms;
    times = differs ? ARENA_ARRAY(params->arena, int64_t, count) : NULL;
    for (size_t i = 0; times && i < count; i++)
        times[i] =
            records[i].fired_at_ms == records[i].at_ms ? PARAMS_NO_NUMBER : records[i].fired_at_ms;
    params_optional_numbers(params, times, times ? count : 0);
}

void log_params(struct params *params, const struct record *records, size_t count)
{
    static const struct column first[] = {
        COLUMN(struct record, instance, FROM_U64, PG_INT8),
        COLUMN(struct record, seq, FROM_U64, PG_INT4),
        COLUMN(struct record, prev, FROM_U64, PG_INT8),
        COLUMN(struct record, what, FROM_I32, PG_INT4),
    };
    static const struct column before[] = {
        COLUMN(struct record, skip, FROM_U64, PG_INT8),
        COLUMN(struct record, flags, FROM_U32, PG_INT4),
    };
    static const struct column behind[] = {
        COLUMN(struct record, step, FROM_U32, PG_INT4),
        COLUMN(struct record, ordinal, FROM_U32, PG_INT4),
        COLUMN(struct record, attempt, FROM_U32, PG_INT4),
        COLUMN(struct record, actor, FROM_U64, PG_INT8),
        COLUMN(struct record, payload, FROM_U64, PG_INT8),
        COLUMN(struct record, reason, FROM_U64, PG_INT8),
        COLUMN(struct record, body, FROM_STR, PG_BYTEA),
        COLUMN(struct record, key, FROM_STR, PG_BYTEA),
    };
    const struct record *last = &records[count - 1];

    params_int(params, (int64_t)records[0].pos);
    params_int4(params, (int64_t)count);
    params_int(params, records[0].at_ms);
    PARAMS_COLUMNS(params, records, count, first);
    add_hashes(params, records, count);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (has_any(records, count, &before[i]))
            params_column(params, records, sizeof *records, count, &before[i]);
        else
            params_null(params, before[i].to, true);
    add_times(params, records, count);
    add_fired(params, records, count);
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++)
        if (has_any(records, count, &behind[i]))
            params_column(params, records, sizeof *records, count, &behind[i]);
        else
            params_null(params, behind[i].to, true);
    params_bytes(params, last->has_root ? (str){ (const char *)last->root, SHA_SIZE } : STR_NONE);
}

pawl_status send_log(struct sending *sending, const struct commit *commit)
{
    for (size_t done = 0, taken; done < commit->record_count; done += taken) {
        struct params *params = sending_add(sending, pg_has_fence() ? put_row : put_any_row);

        taken = row_end(commit->records + done, commit->record_count - done);
        TRY_MEMORY(sending->scope, params);
        log_params(params, commit->records + done, taken);
    }
    return PAWL_OK;
}
