/* verify_erase.c - values without bytes, and the erase records that name them.
 *
 * An attacker who can write to the file can remove a value's bytes and leave its commitment, and
 * every hash still matches. So a value without bytes is valid only if an erase record names it, and
 * the last such record stands behind the last record that uses the value. Uses and erasures are
 * collected along the log and compared at its end. */
#include "base/node.h"
#include "evidence/verify_int.h"

/* The map leads to the last erasure with these first bytes; each leads to the one before it. */
static pawl_status find_or_add(struct verify *v, const uint8_t commitment[SHA_SIZE],
                               struct erasure **out)
{
    uint32_t last = map_get(&v->erasure_map, commitment_key(commitment)), i = last;

    while (i != MAP_NONE && memcmp(v->erasures[i].commitment, commitment, SHA_SIZE) != 0)
        i = v->erasures[i].before;
    if (i == MAP_NONE) {
        TRY_MEMORY(&v->scope,
                   HEAP_GROW(v->heap, v->erasures, v->erasure_capacity, v->erasure_count + 1) &&
                       map_put(&v->erasure_map, commitment_key(commitment), v->erasure_count));
        i = v->erasure_count++;
        v->erasures[i] = (struct erasure){ .before = last };
        memcpy(v->erasures[i].commitment, commitment, SHA_SIZE);
    }
    *out = &v->erasures[i];
    return PAWL_OK;
}

pawl_status verify_put_erasure(struct verify *v, const struct erasure *erasure)
{
    struct erasure *added;

    TRY(find_or_add(v, erasure->commitment, &added));
    added->is_gone = erasure->is_gone;
    added->used_pos = erasure->used_pos;
    added->erased_pos = erasure->erased_pos;
    return PAWL_OK;
}

pawl_status verify_use_erased(struct verify *v, const uint8_t commitment[SHA_SIZE])
{
    struct erasure *erasure;

    TRY(find_or_add(v, commitment, &erasure));
    erasure->is_gone = true;
    if (v->where_pos > erasure->used_pos)
        erasure->used_pos = v->where_pos;
    return PAWL_OK;
}

pawl_status verify_erase(struct verify *v, const struct record *record)
{
    struct node *body = NULL, *list, *item;
    uint8_t commitment[SHA_SIZE];
    struct erasure *erasure;

    if (node_read_json(&v->scope, record->body, &body) == PAWL_NO_MEMORY)
        return PAWL_NO_MEMORY;
    list = body ? node_find(body, "values") : NULL;
    if (!list || list->kind != NODE_ARRAY || !list->first)
        return verify_bad(v, "an erase record that names no values");
    for (item = list->first; item; item = item->next) {
        if (item->kind != NODE_STRING || !sha_unhex(item->text, commitment, SHA_SIZE))
            return verify_bad(v, "an erase record names something that is not a commitment");
        TRY(find_or_add(v, commitment, &erasure));
        erasure->erased_pos = record->pos;
    }
    return PAWL_OK;
}

static bool is_open(const struct erasure *erasure)
{
    return erasure->is_gone &&
           (erasure->erased_pos == 0 || erasure->erased_pos <= erasure->used_pos);
}

pawl_status verify_all_erasures(struct verify *v)
{
    for (uint32_t i = 0; i < v->erasure_count; i++) {
        const struct erasure *erasure = &v->erasures[i];

        if (!is_open(erasure))
            continue;
        verify_at(v, erasure->used_pos, v->where_instance, v->where_seq);
        return verify_bad(v, erasure->erased_pos
                                 ? "a value that this record names has no bytes, but the erase "
                                   "record that names it comes before this one"
                                 : "a value that this record names has no bytes, and no erase "
                                   "record names it");
    }
    return PAWL_OK;
}

void verify_forget_erasures(struct verify *v)
{
    v->erasure_count = 0;
    map_clear(&v->erasure_map);
}

/* ---- one instance: erase records in the store's own chain count too ---- */

/* The position up to which the store's chain must be read backwards; 0 if nothing is open. */
static uint64_t first_open(const struct verify *v)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < v->erasure_count; i++)
        if (is_open(&v->erasures[i]) && (first == 0 || v->erasures[i].used_pos < first))
            first = v->erasures[i].used_pos;
    return first;
}

/* Checks the record's hash from that of the record before it and from its values' commitments. */
static pawl_status check_hash(struct verify *v, const struct record *record)
{
    struct record before = { 0 };

    if (record->prev)
        TRY(store_record(v->store, &v->scope, record->prev, &before));
    return verify_hash(v, before.hash, STORE_CHAIN_ID, record, record->body, "erase record");
}

/* The last record that names a value counts. Reading backwards finds it first. */
static pawl_status note_erase(struct verify *v, const struct record *record)
{
    struct erasure *kept;
    uint32_t count = v->erasure_count;
    pawl_status status;

    TRY(check_hash(v, record));
    if (count == 0)
        return PAWL_OK;
    kept = ARENA_ARRAY(&v->scope.arena, struct erasure, count);
    TRY_MEMORY(&v->scope, kept);
    memcpy(kept, v->erasures, count * sizeof *kept);
    status = verify_erase(v, record);
    for (uint32_t i = 0; i < count; i++)
        if (kept[i].erased_pos > v->erasures[i].erased_pos)
            v->erasures[i].erased_pos = kept[i].erased_pos;
    return status;
}

pawl_status verify_erasures_of_one(struct verify *v)
{
    uint64_t instance = v->where_instance, seq = v->where_seq, first = first_open(v);
    struct record record = { 0 };
    struct head_row head;
    pawl_status status;

    if (v->erasure_count == 0 || (first == 0 && verify_all_erasures(v) == PAWL_OK))
        return PAWL_OK;
    scope_clear(&v->scope);
    status = store_head(v->store, &v->scope, 0, false, &head);
    record.prev = status == PAWL_OK ? head.pos : 0;
    while (record.prev > first && first_open(v) > 0) {
        scope_clear(&v->scope);
        verify_at(v, record.prev, 0, 0);
        status = store_record(v->store, &v->scope, record.prev, &record);
        if (status != PAWL_OK || record.prev >= record.pos)
            return verify_bad(v, "the store's own chain can't be followed here");
        if (record.what == CONTROL_ERASE && record.instance == 0)
            TRY(note_erase(v, &record));
    }
    verify_at(v, 0, instance, seq);
    return verify_all_erasures(v);
}
