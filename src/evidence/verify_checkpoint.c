/* verify_checkpoint.c - how far a check has come, as bytes: for one that is interrupted.
 *
 * A checkpoint lies between two commits and holds what verify_int.h remembers of the log up to
 * there: chains, what effects left behind, keys, tokens and alarms, erased values, which values
 * were compared. It holds no payloads: the memories of flows are folded again when they are needed.
 * The store's id and the root at the checkpoint show whether it is still the store that was
 * checked; definitions are read again. Numbers are varints; the last 32 bytes are H(all before).
 *
 * Each pass_...() is a list of members in the order of the file: it writes them, or reads them. */
#include "base/assert.h"
#include "evidence/verify_int.h"
#include <stdio.h>

static const char checkpoint_tag[] = "pawl.verify.5";

struct checkpoint {
    struct buf *out; /* NULL: it is read */
    const uint8_t *at, *end;
    bool failed; /* sticky: it ended too soon, or a number is too large */
};

/* ---- members ---- */

static void pass_bytes(struct checkpoint *file, void *bytes, size_t size)
{
    if (file->out) {
        buf_add(file->out, bytes, size);
        return;
    }
    file->failed = file->failed || (size_t)(file->end - file->at) < size;
    memset(bytes, 0, size);
    if (file->failed || size == 0)
        return;
    memcpy(bytes, file->at, size);
    file->at += size;
}

/* What is read is at most `max`. */
static void pass_number(struct checkpoint *file, uint64_t *number, uint64_t max)
{
    uint64_t n = 0;
    uint8_t byte = 0x80;

    if (file->out) {
        buf_varint(file->out, *number);
        return;
    }
    for (unsigned shift = 0; shift < 64 && (byte & 0x80) != 0; shift += 7) {
        pass_bytes(file, &byte, 1);
        n |= (uint64_t)(byte & 0x7F) << shift;
    }
    file->failed = file->failed || (byte & 0x80) != 0 || n > max;
    *number = file->failed ? 0 : n;
}

static void pass_u32(struct checkpoint *file, uint32_t *number, uint64_t max)
{
    uint64_t n = *number;

    pass_number(file, &n, max);
    *number = (uint32_t)n;
}

static void pass_bool(struct checkpoint *file, bool *truth)
{
    uint64_t n = *truth;

    pass_number(file, &n, 1);
    *truth = n == 1;
}

static void pass_signed(struct checkpoint *file, int64_t *number)
{
    uint64_t n = ((uint64_t)*number << 1) ^ (*number < 0 ? UINT64_MAX : 0);

    pass_number(file, &n, UINT64_MAX);
    *number = (int64_t)((n >> 1) ^ (n & 1 ? UINT64_MAX : 0));
}

/* What is read lies in the checkpoint. */
static void pass_text(struct checkpoint *file, str *text)
{
    uint64_t size = text->size;

    pass_number(file, &size, SIZE_MAX);
    if (file->out) {
        buf_str(file->out, *text);
        return;
    }
    file->failed = file->failed || size > (size_t)(file->end - file->at);
    *text = file->failed ? STR("") : (str){ (const char *)file->at, size };
    file->at += text->size;
}

/* ---- structs ---- */

/* The rows that effects leave behind, by the numbers that the file has for them. */
static const enum live_change_kind kept_kinds[] = { LIVE_STEP_PUT, LIVE_TIMER_PUT, LIVE_WAIT_PUT,
                                                    LIVE_CHILD_PUT };
#define KEPT_KINDS (sizeof kept_kinds / sizeof kept_kinds[0])

static void pass_row(struct checkpoint *file, struct live_change *row)
{
    uint64_t kind = 0;

    while (file->out && kept_kinds[kind] != row->kind)
        ASSERT(++kind < KEPT_KINDS);
    pass_number(file, &kind, KEPT_KINDS - 1);
    row->kind = kept_kinds[kind];
    pass_u32(file, &row->ordinal, UINT32_MAX);
    pass_text(file, &row->name);
    if (row->kind == LIVE_STEP_PUT) {
        uint32_t status = row->step.status;

        pass_u32(file, &row->step.plan, UINT32_MAX);
        pass_u32(file, &row->step.attempt, UINT32_MAX);
        pass_u32(file, &status, STEP_CANCELLED);
        row->step.status = (enum step_status)status;
        pass_text(file, &row->step.lease);
        pass_signed(file, &row->step.lease_ms);
        pass_signed(file, &row->step.ready_at_ms);
    } else if (row->kind == LIVE_TIMER_PUT) {
        pass_signed(file, &row->timer.due_at_ms);
        pass_signed(file, &row->timer.shift_ms);
        pass_bool(file, &row->timer.wall);
    } else if (row->kind == LIVE_WAIT_PUT) {
        pass_text(file, &row->wait.value);
    } else {
        pass_number(file, &row->child.number, ID_NUMBER_MAX);
        pass_bool(file, &row->child.is_abandoned);
    }
}

/* Without the rows that follow it. */
static void pass_chain(struct checkpoint *file, const struct verify *v, struct chain *chain,
                       uint32_t *row_count)
{
    pass_number(file, &chain->number, ID_NUMBER_MAX);
    pass_number(file, &chain->seq, UINT64_MAX);
    pass_number(file, &chain->pos, v->pos);
    pass_number(file, &chain->skip_pos, v->pos);
    pass_u32(file, &chain->rules, v->rules_count);
    pass_u32(file, &chain->state, UINT32_MAX);
    pass_bool(file, &chain->is_blind);
    pass_bool(file, &chain->is_opaque);
    pass_number(file, &chain->erased_pos, v->pos);
    pass_number(file, &chain->paused_pos, v->pos);
    pass_bytes(file, chain->random, ID_RANDOM_SIZE);
    pass_bytes(file, chain->hash, SHA_SIZE);
    pass_number(file, &chain->snapshot_seq, chain->seq);
    if (chain->snapshot_seq > 0)
        pass_bytes(file, chain->snapshot_sha, SHA_SIZE);
    pass_u32(file, row_count, UINT32_MAX);
}

static void pass_rules(struct checkpoint *file, struct rules *rules)
{
    pass_u32(file, &rules->id, UINT32_MAX);
    pass_bool(file, &rules->is_defined);
    pass_bytes(file, rules->compiled_sha, SHA_SIZE);
}

static void pass_key(struct checkpoint *file, const struct verify *v, struct key_row *row)
{
    pass_bytes(file, row->id, KEY_ID_SIZE);
    pass_signed(file, &row->at_ms);
    pass_number(file, &row->pos, v->pos);
}

static void pass_standing(struct checkpoint *file, const struct verify *v, struct standing_row *row)
{
    int64_t what = row->what;

    pass_signed(file, &what);
    row->what = (int32_t)what;
    pass_text(file, &row->id);
    pass_signed(file, &row->due_at_ms);
    pass_number(file, &row->pos, v->pos);
    pass_signed(file, &row->firing_ms);
    pass_bool(file, &row->wall);
}

static void pass_erasure(struct checkpoint *file, const struct verify *v, struct erasure *erasure)
{
    pass_bytes(file, erasure->commitment, SHA_SIZE);
    pass_bool(file, &erasure->is_gone);
    pass_number(file, &erasure->used_pos, v->pos);
    pass_number(file, &erasure->erased_pos, v->pos);
}

/* What the check is of, and where. */
static void pass_head(struct checkpoint *file, struct verify *v, char tag[sizeof checkpoint_tag],
                      uint8_t store_id[STORE_ID_SIZE], bool *had_flows)
{
    pass_bytes(file, tag, sizeof checkpoint_tag - 1);
    pass_bytes(file, store_id, STORE_ID_SIZE);
    pass_number(file, &v->pos, UINT64_MAX);
    pass_bytes(file, v->root, SHA_SIZE);
    pass_signed(file, &v->at_ms);
    pass_signed(file, &v->peak_ms);
    pass_number(file, &v->report->records, UINT64_MAX);
    pass_number(file, &v->report->entries, UINT64_MAX);
    pass_bool(file, had_flows);
}

/* ---- writing ---- */

static void put_chain(struct checkpoint *file, const struct verify *v, struct chain *chain)
{
    uint32_t count = chain->fold ? chain->fold->count : 0;

    pass_chain(file, v, chain, &count);
    for (uint32_t i = 0; i < count; i++)
        pass_row(file, &chain->fold->rows[i]);
}

static void put_all(struct checkpoint *file, struct verify *v)
{
    char tag[sizeof checkpoint_tag];
    bool has_flows = v->request->flows != NULL;

    memcpy(tag, checkpoint_tag, sizeof tag);
    pass_head(file, v, tag, v->tip.store_id, &has_flows);
    buf_varint(file->out, v->rules_count);
    for (uint32_t i = 0; i < v->rules_count; i++)
        pass_rules(file, &v->rules[i]);
    buf_varint(file->out, v->chain_count);
    for (uint32_t i = 0; i < v->chain_count; i++)
        put_chain(file, v, &v->chains[i]);
    buf_varint(file->out, v->key_count);
    for (uint32_t i = 0; i < v->key_count; i++)
        pass_key(file, v, &v->keys[i]);
    buf_varint(file->out, v->standing_count);
    for (uint32_t i = 0; i < v->standing_count; i++)
        pass_standing(file, v, &v->standing[i]);
    buf_varint(file->out, v->erasure_count);
    for (uint32_t i = 0; i < v->erasure_count; i++)
        pass_erasure(file, v, &v->erasures[i]);
    buf_varint(file->out, v->checked_count);
    buf_add(file->out, v->checked, v->checked_count * sizeof *v->checked);
}

/* Without memory for it the check itself goes on: only its checkpoint is not kept. */
void verify_keep_checkpoint(struct verify *v)
{
    struct buf bytes;
    uint8_t sha[SHA_SIZE];

    ASSERT(v->request->keep && !v->in_commit && v->undecided == 0);
    v->kept_pos = v->pos;
    if (v->pos == 0)
        return;
    buf_init(&bytes, v->heap, SIZE_MAX / 2);
    put_all(&(struct checkpoint){ .out = &bytes }, v);
    sha_once(v->sha, buf_view(&bytes), sha);
    buf_add(&bytes, sha, SHA_SIZE);
    if (!bytes.failed)
        v->request->keep(v->request->context, buf_view(&bytes));
    buf_fini(&bytes);
}

/* ---- reading ---- */

static uint32_t take_count(struct checkpoint *file)
{
    uint32_t count = 0;

    pass_u32(file, &count, UINT32_MAX);
    return count;
}

/* Head rows must be right up to `flushed` as it is now, which may be further than it was. */
static pawl_status find_flushed(struct verify *v, struct chain *chain)
{
    uint64_t pos = chain->pos;
    struct record record;
    pawl_status status;

    while (pos > v->tip.flushed) {
        scope_clear(&v->scope);
        verify_at(v, pos, chain->number, 0);
        status = store_record(v->store, &v->scope, pos, &record);
        if (status == PAWL_NOT_KNOWN || (status == PAWL_OK && record.prev >= pos))
            return verify_bad(v, "the record at this position has changed since it was checked");
        TRY(status);
        pos = record.prev;
    }
    chain->flushed_pos = pos;
    return PAWL_OK;
}

static pawl_status take_chain(struct verify *v, struct checkpoint *file, uint32_t index)
{
    struct chain chain = { 0 };
    uint32_t row_count = 0;

    pass_chain(file, v, &chain, &row_count);
    if (index > 0 && (chain.number == 0 || chain.rules >= v->rules_count ||
                      chain.state >= chain_definition(v, &chain)->state_count))
        file->failed = true;
    if (file->failed)
        return PAWL_OK;
    if (!HEAP_GROW(v->heap, v->chains, v->chain_capacity, index + 1) ||
        (index > 0 && !map_put(&v->chain_map, chain.number, index)))
        return scope_no_memory(&v->scope);
    v->chains[index] = chain;
    v->chain_count = index + 1;
    for (uint32_t i = 0; !file->failed && i < row_count; i++) {
        struct live_change row = { 0 };

        pass_row(file, &row);
        if (!file->failed)
            TRY(verify_put_row(v, &v->chains[index], row));
    }
    return find_flushed(v, &v->chains[index]);
}

/* Definitions are not remembered but read again: *same if each is the one it was. */
static pawl_status take_rules(struct verify *v, struct checkpoint *file, bool *same)
{
    struct rules then = { 0 };
    uint32_t index;

    pass_rules(file, &then);
    if (file->failed)
        return PAWL_OK;
    scope_clear(&v->scope);
    verify_at(v, 0, 0, 0);
    TRY(verify_definition(v, then.id, &index));
    v->rules[index].is_defined = then.is_defined;
    *same = *same && memcmp(then.compiled_sha, v->rules[index].compiled_sha, SHA_SIZE) == 0;
    return PAWL_OK;
}

static pawl_status take_checked(struct verify *v, struct checkpoint *file)
{
    uint64_t count = 0;

    pass_number(file, &count, (uint64_t)(file->end - file->at) / sizeof *v->checked);
    if (file->failed || count == 0)
        return PAWL_OK;
    v->checked = heap_new(v->heap, count * sizeof *v->checked);
    TRY_MEMORY(&v->scope, v->checked);
    v->checked_count = count;
    pass_bytes(file, v->checked, count * sizeof *v->checked);
    return PAWL_OK;
}

/* Keys, tokens and alarms, erased values. */
static pawl_status take_rest(struct verify *v, struct checkpoint *file)
{
    for (uint32_t left = take_count(file); !file->failed && left > 0; left--) {
        struct key_row row = { 0 };

        pass_key(file, v, &row);
        TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, v->keys, v->key_capacity, v->key_count + 1));
        v->keys[v->key_count++] = row;
    }
    for (uint32_t left = take_count(file); !file->failed && left > 0; left--) {
        struct standing_row row = { 0 };

        pass_standing(file, v, &row);
        file->failed = file->failed || row.id.size == 0;
        if (!file->failed)
            TRY(verify_put_standing(v, &row));
    }
    for (uint32_t left = take_count(file); !file->failed && left > 0; left--) {
        struct erasure erasure = { 0 };

        pass_erasure(file, v, &erasure);
        if (!file->failed)
            TRY(verify_put_erasure(v, &erasure));
    }
    return take_checked(v, file);
}

static pawl_status take_all(struct verify *v, struct checkpoint *file, const char **why)
{
    uint32_t count;
    bool same = true;

    for (uint32_t left = take_count(file); !file->failed && left > 0; left--)
        TRY(take_rules(v, file, &same));
    if (!same) {
        *why = "a definition is no longer the one it was";
        return PAWL_OK;
    }
    count = take_count(file);
    for (uint32_t i = 0; !file->failed && i < count; i++)
        TRY(take_chain(v, file, i));
    TRY(take_rest(v, file));
    if (file->failed || file->at != file->end || v->chain_count != count || count == 0)
        *why = "it is not a checkpoint";
    return PAWL_OK;
}

/* Is this a checkpoint of this store, and does its log still lead there? */
static pawl_status check_head(struct verify *v, struct checkpoint *file, const char **why)
{
    char tag[sizeof checkpoint_tag] = "";
    uint8_t store_id[STORE_ID_SIZE];
    struct record record;
    bool had_flows = false;
    pawl_status status;

    pass_head(file, v, tag, store_id, &had_flows);
    if (file->failed || strcmp(tag, checkpoint_tag) != 0 || v->pos == 0)
        *why = "it is not a checkpoint";
    else if (memcmp(store_id, v->tip.store_id, STORE_ID_SIZE) != 0)
        *why = "it is of another store";
    if (*why)
        return PAWL_OK;
    status = store_record(v->store, &v->scope, v->pos, &record);
    if (status == PAWL_NOT_KNOWN || (status == PAWL_OK && !record.has_root))
        *why = "the log has no end of a commit there";
    else if (status == PAWL_OK && memcmp(record.root, v->root, SHA_SIZE) != 0)
        *why = "the log has another root there";
    else if (status == PAWL_OK && !had_flows && v->request->flows)
        *why = "flows were not decided again then";
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static bool is_whole(struct verify *v, str bytes)
{
    uint8_t sha[SHA_SIZE];

    if (bytes.size < SHA_SIZE)
        return false;
    bytes.size -= SHA_SIZE;
    sha_once(v->sha, bytes, sha);
    return memcmp(sha, bytes.data + bytes.size, SHA_SIZE) == 0;
}

/* Forget what was taken, and say why. */
static pawl_status begin_again(struct verify *v, const char *why)
{
    for (uint32_t i = 0; i < v->chain_count; i++)
        verify_forget_chain(v, &v->chains[i]);
    v->chains[0] = (struct chain){ .number = 0 };
    v->chain_count = 1;
    map_clear(&v->chain_map);
    v->rules_count = 0;
    map_clear(&v->rules_map);
    heap_free(v->heap, v->checked, v->checked_count * sizeof *v->checked);
    v->checked = NULL;
    v->checked_count = 0;
    v->key_count = 0;
    verify_drop_standing(v);
    verify_forget_erasures(v);
    verify_drop_archived(v);
    v->pos = v->report->records = v->report->entries = 0;
    v->at_ms = v->peak_ms = 0;
    (void)snprintf(v->report->not_resumed, sizeof v->report->not_resumed, "%s", why);
    return VERIFY_STOPPED;
}

/* What a checkpoint knows of them may have gone since. */
static pawl_status any_archived(struct verify *v, bool *out)
{
    struct standing_row *rows;
    uint32_t count = 0;

    TRY(store_standing_list(v->store, &v->scope, CONTROL_ARCHIVE, 1, &rows, &count));
    *out = count > 0;
    return PAWL_OK;
}

pawl_status verify_resume(struct verify *v)
{
    str bytes = v->request->checkpoint;
    struct checkpoint file = { .at = (const uint8_t *)bytes.data };
    const char *why = NULL;
    bool is_moved;

    if (!is_whole(v, bytes))
        return begin_again(v, "it is damaged");
    TRY(any_archived(v, &is_moved));
    if (is_moved)
        return begin_again(v, "instances were moved into an archive file");
    file.end = file.at + bytes.size - SHA_SIZE;
    TRY(check_head(v, &file, &why));
    if (!why)
        TRY(take_all(v, &file, &why));
    return why ? begin_again(v, why) : PAWL_OK;
}
