/* verify_rows.c - rows that follow from the log, after the log was replayed.
 *
 * A head row may lag behind the log, but not behind `flushed`, and what it says must have been
 * true at the position it names. A row that disagrees may belong to a commit that was made
 * since: the log is read on, and only a row that disagrees with all of it is wrong. */
#include "base/assert.h"
#include "evidence/verify_int.h"

#define RETRY_COUNT_MAX 100 /* for an instance that changes faster than we look */

/* ---- heads ---- */

/* The state after the record at `pos`: that of the last entry up to it. */
static pawl_status state_at(struct verify *v, const struct chain *chain, uint64_t pos,
                            uint32_t *out_state, uint64_t *out_seq)
{
    const struct definition *definition = chain->number ? chain_definition(v, chain) : NULL;
    struct record record;
    pawl_status status = store_record(v->store, &v->scope, pos, &record);

    if (status == PAWL_NOT_KNOWN || (status == PAWL_OK && record.instance != chain->number))
        return verify_bad(v, "its head row stands at %llu, which is not its record",
                          (unsigned long long)pos);
    TRY(status);
    *out_seq = record.seq;
    while (record.what < 0 && record.prev != 0) {
        if (record.prev >= record.pos) /* damaged since we read it */
            return verify_bad(v, "the record at %llu has changed", (unsigned long long)record.pos);
        TRY_FOUND(v, store_record(v->store, &v->scope, record.prev, &record), "a record has gone");
    }
    if (!definition)
        *out_state = 0;
    else if (record.what < 0)
        *out_state = definition->initial;
    else if ((uint32_t)record.what < definition->transition_count)
        *out_state = definition->transitions[record.what].to;
    return PAWL_OK;
}

static pawl_status check_head(struct verify *v, const struct chain *chain)
{
    struct head_row row;
    uint64_t seq = chain->seq;
    uint32_t state = chain->state;
    pawl_status status = store_head(v->store, &v->scope, chain->number, v->whole, &row);

    if (status == PAWL_NOT_KNOWN)
        return chain->flushed_pos > 0 ? verify_bad(v, "its head row is missing") : PAWL_OK;
    TRY(status);
    if (row.pos < chain->flushed_pos || row.pos > chain->pos)
        return verify_bad(v, "its head row stands at %llu; its last record is at %llu",
                          (unsigned long long)row.pos, (unsigned long long)chain->pos);
    if (row.pos != chain->pos)
        TRY(state_at(v, chain, row.pos, &state, &seq));
    if (row.seq != seq)
        return verify_bad(v, "its head row says seq %llu; the log says %llu",
                          (unsigned long long)row.seq, (unsigned long long)seq);
    if (row.state != state)
        return verify_bad(v, "its head row says state %u; the log says %u", row.state, state);
    return PAWL_OK;
}

/* A snapshot is what some entry says was kept after it; an older one may be gone. */
pawl_status verify_snapshot(struct verify *v, const struct chain *chain, struct snapshot_row *row,
                            bool *is_right)
{
    uint8_t sha[SHA_SIZE];
    pawl_status status = store_snapshot(v->store, &v->scope, chain->number, row);

    *is_right = status == PAWL_NOT_KNOWN;
    if (status != PAWL_OK)
        return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    sha_once(v->sha, row->text, sha);
    *is_right = row->seq == chain->snapshot_seq && memcmp(sha, chain->snapshot_sha, SHA_SIZE) == 0;
    return PAWL_OK;
}

/* ---- all of one instance ---- */

static pawl_status check_once(struct verify *v, uint32_t index)
{
    const struct chain *chain = &v->chains[index];
    struct snapshot_row row;
    bool is_right;

    scope_clear(&v->scope);
    verify_at(v, 0, chain->number, chain->seq);
    TRY(check_head(v, chain));
    if (chain->number == 0)
        return PAWL_OK;
    if (chain->is_opaque && !chain_has_ended(v, chain))
        return verify_bad(v, "a body was erased, but the instance has not ended");
    TRY(verify_snapshot(v, chain, &row, &is_right));
    if (!is_right)
        return verify_bad(v, "its snapshot of entry %llu is not the one an entry tells of",
                          (unsigned long long)row.seq);
    return verify_live(v, chain);
}

pawl_status verify_rows_of(struct verify *v, uint32_t index)
{
    pawl_status status = check_once(v, index);

    for (int i = 0;
         v->whole && status == PAWL_STORAGE_FAILURE && !v->report->valid && i < RETRY_COUNT_MAX;
         i++) {
        struct verify_report finding = *v->report;
        uint64_t pos = v->chains[index].pos;

        v->report->valid = true;
        v->report->what[0] = '\0';
        TRY(verify_catch_up(v));
        if (v->chains[index].pos == pos) {
            *v->report = finding;
            verify_at(v, 0, v->chains[index].number, v->chains[index].seq);
            return status;
        }
        status = check_once(v, index);
    }
    return status;
}

/* ---- instances that the log does not know ---- */

static pawl_status check_stray(struct verify *v, uint64_t number)
{
    struct instance_row row;
    pawl_status status;

    scope_clear(&v->scope);
    verify_at(v, 0, number, 0);
    status = store_instance(v->store, &v->scope, number, &row);
    if (status != PAWL_OK)
        return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    TRY(verify_catch_up(v));
    if (verify_find_chain(v, number))
        return PAWL_OK;
    verify_at(v, 0, number, 0);
    return verify_bad(v, "instance %llu has a row, but no record creates it",
                      (unsigned long long)number);
}

/* By what is there, not by number: those of an import have gaps between them. */
static pawl_status check_strays(struct verify *v)
{
    struct list_query query = { .oldest_first = true, .limit = BATCH_SIZE };
    uint64_t page[BATCH_SIZE], *numbers;
    uint32_t count;

    do {
        scope_clear(&v->scope);
        TRY(store_list(v->store, &v->scope, &query, &numbers, &count));
        if (count == 0)
            return PAWL_OK;
        ASSERT(count <= BATCH_SIZE);
        memcpy(page, numbers, count * sizeof *page);
        query.after = page[count - 1];
        for (uint32_t i = 0; i < count; i++)
            if (!verify_find_chain(v, page[i]))
                TRY(check_stray(v, page[i]));
    } while (count == BATCH_SIZE);
    return PAWL_OK;
}

pawl_status verify_all_rows(struct verify *v)
{
    verify_at(v, 0, 0, 0);
    TRY(check_strays(v));
    for (uint32_t i = 0; i < v->chain_count; i++) {
        TRY(verify_rows_of(v, i));
        if (i % BATCH_SIZE == 0)
            TRY(verify_tell(v, VERIFY_INSTANCES, i, v->chain_count - 1));
    }
    return PAWL_OK;
}
