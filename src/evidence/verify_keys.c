/* verify_keys.c - which record each idempotency key was used for, against the log.
 *
 * A key that was used in the last 7 days, or since a firing alarm began to fire, must have a row
 * that names its last record. Older rows may be gone. That a row names a record which has no such
 * key is found with the tables (store/sqlite/examine.c). */
#include "evidence/verify_int.h"
#include <stdlib.h>

pawl_status verify_note_key(struct verify *v, const struct record *record)
{
    struct key_row *row;

    if (record->key.size == 0)
        return PAWL_OK;
    if (record->key.size != KEY_SIZE)
        return verify_bad(v, "its key has %zu bytes; it must have %d", record->key.size, KEY_SIZE);
    if (!v->whole || (record->at_ms < v->tip.at_ms - KEY_KEPT_MS && v->firing_count == 0))
        return PAWL_OK;
    TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, v->keys, v->key_capacity, v->key_count + 1));
    row = &v->keys[v->key_count++];
    *row = (struct key_row){ .at_ms = record->at_ms, .pos = record->pos };
    memcpy(row->id, record->key.data, KEY_ID_SIZE);
    return PAWL_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const struct key_row *left = a, *right = b;
    int order = memcmp(left->id, right->id, KEY_ID_SIZE);

    return order ? order : (left->pos > right->pos) - (left->pos < right->pos);
}

/* It may have grown old while we looked. */
static bool is_old_by_now(struct verify *v, const struct key_row *row)
{
    struct store_tip tip;

    if (row->at_ms >= verify_firing_since(v))
        return false;
    return row->at_ms < v->peak_ms - KEY_KEPT_MS || /* the clock was ahead */
           (store_tip(v->store, &v->scope, &tip) == PAWL_OK &&
            row->at_ms < tip.at_ms - KEY_KEPT_MS);
}

static pawl_status check_key(struct verify *v, const struct key_row *row)
{
    struct key_row found;
    pawl_status status;

    scope_clear(&v->scope);
    verify_at(v, row->pos, 0, 0);
    status = store_key(v->store, &v->scope, row->id, &found);
    if (status == PAWL_NOT_KNOWN)
        return is_old_by_now(v, row) ? PAWL_OK
                                     : verify_bad(v, "the row of this record's key is missing");
    TRY(status);
    if (found.pos < row->pos)
        return verify_bad(v, "the row of this record's key names position %llu",
                          (unsigned long long)found.pos);
    if (found.pos == row->pos && found.at_ms != row->at_ms)
        return verify_bad(v, "the row of this record's key says another time");
    if (found.pos > v->pos)
        TRY(verify_catch_up(v));
    return found.pos > v->pos
               ? verify_bad(v, "the row of this record's key names a position after the last")
               : PAWL_OK;
}

pawl_status verify_all_keys(struct verify *v)
{
    uint32_t count = v->key_count;

    if (count > 1)
        qsort(v->keys, count, sizeof *v->keys, compare_rows);
    for (uint32_t i = 0; i < count; i++)
        if (i + 1 == count || memcmp(v->keys[i].id, v->keys[i + 1].id, KEY_ID_SIZE) != 0)
            TRY(check_key(v, &v->keys[i]));
    return PAWL_OK;
}
