/* write_rows.c - the rows of one commit beside the log: values, instances, heads, snapshots, keys,
 * what stands. One statement for all rows of a table, which touches no row twice. */
#include "postgres_int.h"
#include <stdlib.h>

/* ---- The last of several rows with one name ---- */

typedef int row_order(const void *a, const void *b);

struct ordered {
    const char *row;
    row_order *order;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    int order = x->order(x->row, y->row);

    return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

/* A copy with the last row of each name, in order of names. NULL: no memory. */
static void *last_of_each(struct arena *arena, const void *rows, size_t size, size_t *count,
                          row_order *order)
{
    struct ordered *all = ARENA_ARRAY(arena, struct ordered, *count + 1);
    char *out = arena_alloc(arena, size * (*count + 1));
    size_t kept = 0;

    if (!all || !out)
        return NULL;
    for (size_t i = 0; i < *count; i++)
        all[i] = (struct ordered){ (const char *)rows + i * size, order };
    qsort(all, *count, sizeof *all, compare_ordered);
    for (size_t i = 0; i < *count; i++)
        if (i + 1 == *count || order(all[i].row, all[i + 1].row) != 0)
            memcpy(out + size * kept++, all[i].row, size);
    *count = kept;
    return out;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_value(const void *a, const void *b)
{
    return compare_u64(((const struct value *)a)->id, ((const struct value *)b)->id);
}

static int by_snapshot(const void *a, const void *b)
{
    return compare_u64(((const struct snapshot_row *)a)->instance,
                       ((const struct snapshot_row *)b)->instance);
}

static int by_key(const void *a, const void *b)
{
    return memcmp(((const struct key_row *)a)->id, ((const struct key_row *)b)->id, KEY_ID_SIZE);
}

static int by_standing(const void *a, const void *b)
{
    const struct standing_row *x = &((const struct standing_change *)a)->row;
    const struct standing_row *y = &((const struct standing_change *)b)->row;

    return x->what != y->what ? (x->what < y->what ? -1 : 1) : str_compare(x->id, y->id);
}

/* ---- Values ---- */

static const char put_values[] = "INSERT INTO pawl_value (shard, id, salt, bytes, interned, digest)"
                                 " SELECT $1, * FROM unnest($2, $3, $4, $5, $6)";
/* The commitment of one that is there follows from it; once it is gone it stays for ever. */
static const char erase_values[] =
    "INSERT INTO pawl_value AS v (shard, id, commitment, interned) SELECT $1, u.id, u.c, 0"
    " FROM unnest($2, $3) u(id, c) ON CONFLICT (shard, id) DO UPDATE SET"
    " commitment = coalesce(v.commitment, excluded.commitment), salt = NULL, bytes = NULL,"
    " interned = 0, digest = NULL";

struct value_put {
    struct value value;
    str digest; /* data NULL: not interned */
};

static pawl_status send_put_values(struct sending *sending, const struct value_put *values,
                                   size_t count)
{
    static const struct column columns[] = {
        COLUMN(struct value_put, value.id, FROM_U64, PG_INT8),
        BYTES_OF(struct value_put, value.salt, SALT_SIZE),
        COLUMN(struct value_put, value.bytes, FROM_STR, PG_BYTEA),
        OPTIONAL_OF(struct value_put, value.interned, FROM_BOOL, PG_INT4),
        COLUMN(struct value_put, digest, FROM_STR, PG_BYTEA),
    };
    struct params *params;

    if (count == 0)
        return PAWL_OK;
    params = sending_add(sending, put_values);
    TRY_MEMORY(sending->scope, params);
    PARAMS_COLUMNS(params, values, count, columns);
    return PAWL_OK;
}

pawl_status send_value_erasures(struct sending *sending, const struct value *values, size_t count)
{
    static const struct column columns[] = { COLUMN(struct value, id, FROM_U64, PG_INT8),
                                             BYTES_OF(struct value, commitment, SHA_SIZE) };
    struct params *params;

    if (count == 0)
        return PAWL_OK;
    params = sending_add(sending, erase_values);
    TRY_MEMORY(sending->scope, params);
    PARAMS_COLUMNS(params, values, count, columns);
    return PAWL_OK;
}

static str digest_of(struct sending *sending, const struct value *value)
{
    uint8_t hash[SHA_SIZE];

    if (!value->interned)
        return STR_NONE;
    sha_once(sending->store->write_sha, value->bytes, hash);
    return arena_str(&sending->scope->arena, (str){ (const char *)hash, DIGEST_SIZE });
}

/* Erasures go first: a text may be interned again in the same commit. A value that a later one of
 * its id erases is only erased. */
static pawl_status send_values(struct sending *sending, const struct commit *commit)
{
    size_t count = commit->value_count, put = 0, gone = 0;
    struct value_put *puts = ARENA_ARRAY(&sending->scope->arena, struct value_put, count + 1);
    struct value *erased = ARENA_ARRAY(&sending->scope->arena, struct value, count + 1);
    const struct value *values = commit->values;
    bool has_erased = false;

    for (size_t i = 0; i < count; i++)
        has_erased |= !values[i].bytes.data;
    if (has_erased)
        values = last_of_each(&sending->scope->arena, values, sizeof *values, &count, by_value);
    TRY_MEMORY(sending->scope, puts && erased && values);
    for (size_t i = 0; i < count; i++)
        if (values[i].bytes.data)
            puts[put++] = (struct value_put){ values[i], digest_of(sending, &values[i]) };
        else
            erased[gone++] = values[i];
    TRY(send_value_erasures(sending, erased, gone));
    return send_put_values(sending, puts, put);
}

/* ---- Instances, heads, snapshots ---- */

static const char put_instances[] =
    "INSERT INTO pawl_instance (shard, number, random, definition, instantiated_at, created_pos,"
    " creator, subject, input, metadata, parent, correlation, labels, test)"
    " SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

static pawl_status send_instances(struct sending *sending, const struct commit *commit)
{
    static const struct column columns[] = {
        COLUMN(struct instance_row, number, FROM_U64, PG_INT8),
        BYTES_OF(struct instance_row, random, ID_RANDOM_SIZE),
        COLUMN(struct instance_row, definition, FROM_U32, PG_INT4),
        COLUMN(struct instance_row, instantiated_at_ms, FROM_I64, PG_INT8),
        COLUMN(struct instance_row, created_pos, FROM_U64, PG_INT8),
        OPTIONAL_OF(struct instance_row, creator, FROM_U64, PG_INT8),
        OPTIONAL_OF(struct instance_row, subject, FROM_U64, PG_INT8),
        OPTIONAL_OF(struct instance_row, input, FROM_U64, PG_INT8),
        OPTIONAL_OF(struct instance_row, metadata, FROM_U64, PG_INT8),
        OPTIONAL_OF(struct instance_row, parent, FROM_U64, PG_INT8),
        COLUMN(struct instance_row, correlation, FROM_STR, PG_BYTEA),
        COLUMN(struct instance_row, labels, FROM_STR, PG_BYTEA),
        OPTIONAL_OF(struct instance_row, test, FROM_BOOL, PG_INT4),
    };
    struct params *params;

    if (commit->instance_count == 0)
        return PAWL_OK;
    params = sending_add(sending, put_instances);
    TRY_MEMORY(sending->scope, params);
    PARAMS_COLUMNS(params, commit->instances, commit->instance_count, columns);
    return PAWL_OK;
}

/* Contract (6). */
static const char put_heads[] =
    "INSERT INTO pawl_head AS h (shard, inst, seq, state, pos) SELECT $1, * FROM unnest($2, $3,"
    " $4, $5)"
    " ON CONFLICT (shard, inst) DO UPDATE SET seq = excluded.seq, state = excluded.state,"
    " pos = excluded.pos WHERE excluded.pos > h.pos OR excluded.seq > h.seq";

/* They are in order of instance: of several rows of one, the last that is newer counts. */
static pawl_status send_heads(struct sending *sending, const struct commit *commit)
{
    static const struct column columns[] = {
        COLUMN(struct head_row, instance, FROM_U64, PG_INT8),
        COLUMN(struct head_row, seq, FROM_U64, PG_INT4),
        COLUMN(struct head_row, state, FROM_U32, PG_INT4),
        COLUMN(struct head_row, pos, FROM_U64, PG_INT8),
    };
    struct head_row *rows;
    size_t count = 0;
    struct params *params;

    if (commit->head_count == 0)
        return PAWL_OK;
    rows = ARENA_ARRAY(&sending->scope->arena, struct head_row, commit->head_count);
    params = sending_add(sending, put_heads);
    TRY_MEMORY(sending->scope, rows && params);
    for (size_t i = 0; i < commit->head_count; i++) {
        const struct head_row *row = &commit->heads[i];

        if (count > 0 && rows[count - 1].instance == row->instance) {
            if (row->pos > rows[count - 1].pos || row->seq > rows[count - 1].seq)
                rows[count - 1] = *row;
        } else
            rows[count++] = *row;
    }
    PARAMS_COLUMNS(params, rows, count, columns);
    return PAWL_OK;
}

static const char delete_snapshots[] =
    "DELETE FROM pawl_snapshot WHERE shard = $1 AND inst = ANY ($2)";
static const char put_snapshots[] =
    "INSERT INTO pawl_snapshot (shard, inst, seq, text) SELECT $1, * FROM unnest($2, $3, $4)"
    " ON CONFLICT (shard, inst) DO UPDATE SET seq = excluded.seq, text = excluded.text";

static pawl_status send_snapshots(struct sending *sending, const struct commit *commit)
{
    static const struct column columns[] = {
        COLUMN(struct snapshot_row, instance, FROM_U64, PG_INT8),
        COLUMN(struct snapshot_row, seq, FROM_U64, PG_INT4),
        COLUMN(struct snapshot_row, text, FROM_STR, PG_BYTEA),
    };
    const struct snapshot_row *rows;
    struct params *params;
    size_t count = commit->snapshot_count;

    if (count == 0)
        return PAWL_OK;
    rows =
        last_of_each(&sending->scope->arena, commit->snapshots, sizeof *rows, &count, by_snapshot);
    params = sending_add(sending, commit->is_rebuild ? delete_snapshots : put_snapshots);
    TRY_MEMORY(sending->scope, rows && params);
    params_columns(params, rows, sizeof *rows, count, columns, commit->is_rebuild ? 1 : 3);
    return PAWL_OK;
}

/* ---- Keys, and what stands ---- */

/* Whole days that are old, but no key that was used since an alarm began to fire. */
static const char drop_keys[] =
    "DELETE FROM pawl_key k USING (SELECT day, id FROM pawl_key WHERE shard = $1"
    " AND day < least($2, coalesce((SELECT min(firing) FROM pawl_kept WHERE shard = $1"
    " AND firing IS NOT NULL), $2)) / 86400000 ORDER BY day, id LIMIT $3) o"
    " WHERE k.shard = $1 AND k.day = o.day AND k.id = o.id";
static const char put_keys[] =
    "INSERT INTO pawl_key (shard, day, id, at, pos)"
    " SELECT $1, (u.at / 86400000)::int, u.id, u.at, u.pos FROM unnest($2, $3, $4) u(id, at, pos)"
    " ON CONFLICT (shard, day, id) DO UPDATE SET at = excluded.at, pos = excluded.pos";

static pawl_status send_keys(struct sending *sending, const struct commit *commit)
{
    static const struct column columns[] = { BYTES_OF(struct key_row, id, KEY_ID_SIZE),
                                             COLUMN(struct key_row, at_ms, FROM_I64, PG_INT8),
                                             COLUMN(struct key_row, pos, FROM_U64, PG_INT8) };
    struct params *drop, *put;
    const struct key_row *rows;
    size_t count = commit->key_count;

    if (count == 0)
        return PAWL_OK;
    rows = last_of_each(&sending->scope->arena, commit->keys, sizeof *rows, &count, by_key);
    drop = sending_add(sending, drop_keys);
    put = sending_add(sending, put_keys);
    TRY_MEMORY(sending->scope, rows && drop && put);
    params_int(drop, commit->keys_before_ms);
    params_int(drop, (int64_t)commit->key_count * 2);
    PARAMS_COLUMNS(put, rows, count, columns);
    return PAWL_OK;
}

static const char put_standing[] =
    "INSERT INTO pawl_kept (shard, what, id, due, pos, firing, wall) SELECT $1, * FROM"
    " unnest($2, $3, $4, $5, $6, $7) ON CONFLICT (shard, what, id) DO UPDATE SET due ="
    " excluded.due,"
    " pos = excluded.pos, firing = excluded.firing, wall = excluded.wall";
static const char delete_standing[] = "DELETE FROM pawl_kept k USING unnest($2, $3) u(what, id)"
                                      " WHERE k.shard = $1 AND k.what = u.what AND k.id = u.id";

static pawl_status send_standing(struct sending *sending, const struct commit *commit, bool is_put)
{
    static const struct column columns[] = {
        COLUMN(struct standing_row, what, FROM_I32, PG_INT4),
        COLUMN(struct standing_row, id, FROM_STR, PG_BYTEA),
        COLUMN(struct standing_row, due_at_ms, FROM_I64, PG_INT8),
        COLUMN(struct standing_row, pos, FROM_U64, PG_INT8),
        OPTIONAL_OF(struct standing_row, firing_ms, FROM_I64, PG_INT8),
        OPTIONAL_OF(struct standing_row, wall, FROM_BOOL, PG_INT4),
    };
    size_t all = commit->standing_count, count = 0;
    const struct standing_change *changes;
    struct standing_row *rows;
    struct params *params;

    if (all == 0)
        return PAWL_OK;
    changes =
        last_of_each(&sending->scope->arena, commit->standing, sizeof *changes, &all, by_standing);
    rows = ARENA_ARRAY(&sending->scope->arena, struct standing_row, all);
    TRY_MEMORY(sending->scope, changes && rows);
    for (size_t i = 0; i < all; i++)
        if (changes[i].is_put == is_put)
            rows[count++] = changes[i].row;
    if (count == 0)
        return PAWL_OK;
    params = sending_add(sending, is_put ? put_standing : delete_standing);
    TRY_MEMORY(sending->scope, params);
    params_columns(params, rows, sizeof *rows, count, columns, is_put ? 6 : 2);
    return PAWL_OK;
}

/* ---- All of them ---- */

/* When the store's clock is shifted, every due time by it shifts by the same amount. */
static const char shift_timers[] =
    "UPDATE pawl_timer SET due = due + $2, shift = nullif(coalesce(shift, 0) + $2, 0)"
    " WHERE shard = $1 AND wall IS NULL AND due < $3";
static const char shift_alarms[] = "UPDATE pawl_kept SET due = due + $2 WHERE shard = $1"
                                   " AND what = -5 AND wall IS NULL AND due < $3";

static pawl_status send_shift(struct sending *sending, int64_t shift_ms)
{
    const char *const texts[] = { shift_timers, shift_alarms };

    for (int i = 0; i < 2 && shift_ms; i++) {
        struct params *params = sending_add(sending, texts[i]);

        TRY_MEMORY(sending->scope, params);
        params_int(params, shift_ms);
        params_int(params, DUE_NEVER_MS);
    }
    return PAWL_OK;
}

static const char *const delete_derived[] = {
    "DELETE FROM pawl_head WHERE shard = $1",     "DELETE FROM pawl_step WHERE shard = $1",
    "DELETE FROM pawl_timer WHERE shard = $1",    "DELETE FROM pawl_wait WHERE shard = $1",
    "DELETE FROM pawl_interest WHERE shard = $1", "DELETE FROM pawl_child WHERE shard = $1",
    "DELETE FROM pawl_pause WHERE shard = $1",    "DELETE FROM pawl_kept WHERE shard = $1",
    "DELETE FROM pawl_key WHERE shard = $1",
};

pawl_status send_rows(struct sending *sending, const struct commit *commit)
{
    for (size_t i = 0; commit->is_rebuild && i < sizeof delete_derived / sizeof *delete_derived;
         i++)
        TRY_MEMORY(sending->scope, sending_add(sending, delete_derived[i]));
    TRY(send_shift(sending, commit->shift_ms));
    if (commit->value_count > 0)
        TRY(send_values(sending, commit));
    TRY(send_instances(sending, commit));
    TRY(send_heads(sending, commit));
    TRY(send_snapshots(sending, commit));
    TRY(send_keys(sending, commit));
    TRY(send_standing(sending, commit, false));
    return send_standing(sending, commit, true);
}
