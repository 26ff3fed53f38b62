/* verify_value.c - values against their commitments.
 *
 * A value is checked when the first record names it, so that the finding names the record;
 * those that none names are checked at the end. Actors recur: their commitments are kept. */
#include "base/assert.h"
#include "evidence/verify_int.h"

#define VALUES_PER_RECORD 8 /* more than a record and its row can name */

static bool is_checked(const struct verify *v, uint64_t id)
{
    return id / 64 < v->checked_count && (v->checked[id / 64] >> (id % 64) & 1) != 0;
}

/* An id out of all proportion is not kept in mind: the end of the check will name it. */
static pawl_status mark_checked(struct verify *v, uint64_t id)
{
    size_t count = v->checked_count > 0 ? v->checked_count : 64;
    uint64_t *words;

    if (id > (v->pos + 1) * VALUES_PER_RECORD)
        return PAWL_OK;
    while (count <= id / 64)
        count *= 2;
    if (count > v->checked_count) {
        words = heap_resize(v->heap, v->checked, v->checked_count * sizeof *words,
                            count * sizeof *words);
        TRY_MEMORY(&v->scope, words);
        memset(words + v->checked_count, 0, (count - v->checked_count) * sizeof *words);
        v->checked = words;
        v->checked_count = count;
    }
    v->checked[id / 64] |= UINT64_C(1) << (id % 64);
    return PAWL_OK;
}

static pawl_status check_value(struct verify *v, const struct value *value)
{
    uint8_t commitment[SHA_SIZE];

    if (value->bytes.data) {
        value_commit(v->sha, value->salt, value->bytes, commitment);
        if (memcmp(commitment, value->commitment, SHA_SIZE) != 0)
            return verify_bad(v, "value %llu does not match its commitment",
                              (unsigned long long)value->id);
    }
    return v->whole ? mark_checked(v, value->id) : PAWL_OK;
}

pawl_status verify_value(struct verify *v, uint64_t id, uint8_t out[SHA_SIZE])
{
    struct known_value *known = &v->values[id % VALUE_CACHE_SIZE];
    struct value value;

    ASSERT(id != 0);
    if (known->id != id) {
        TRY_FOUND(v, store_value(v->store, &v->scope, id, &value), "value %llu is missing",
                  (unsigned long long)id);
        value.id = id;
        TRY(check_value(v, &value));
        known->id = id;
        known->is_gone = !value.bytes.data;
        memcpy(known->commitment, value.commitment, SHA_SIZE);
    }
    memcpy(out, known->commitment, SHA_SIZE);
    return known->is_gone ? verify_use_erased(v, out) : PAWL_OK;
}

pawl_status verify_all_values(struct verify *v)
{
    uint8_t unused[SHA_SIZE];
    struct value value;

    verify_at(v, 0, 0, 0);
    if (v->tip.last_value / VALUES_PER_RECORD > v->tip.pos)
        return verify_bad(v, "there is a value %llu, but the log can't name so many",
                          (unsigned long long)v->tip.last_value);
    for (uint64_t id = 1; id <= v->tip.last_value; id++) {
        pawl_status status;

        if (id % (64 * BATCH_SIZE) == 0)
            TRY(verify_tell(v, VERIFY_VALUES, id, v->tip.last_value));
        if (is_checked(v, id))
            continue;
        scope_clear(&v->scope);
        status = store_value(v->store, &v->scope, id, &value);
        if (status == PAWL_OK)
            status = verify_value(v, id, unused);
        if (status != PAWL_NOT_KNOWN) /* else: a number that no record names */
            TRY(status);
    }
    return PAWL_OK;
}
