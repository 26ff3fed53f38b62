/* verify_place.c - the place a check has come to, as bytes: for one that is interrupted.
 *
 * A place lies between two commits and holds what verify_int.h remembers of the log up to there:
 * chains, what effects left behind, keys, tokens and alarms, erased values, which values were
 * compared. It holds no payloads: the memories of flows are folded again when they are needed.
 * The store's id and the root at the place show whether it is still the store that was checked;
 * definitions are read again. Numbers are varints; the last 32 bytes are H(all before). */
#include "base/assert.h"
#include "evidence/verify_int.h"
#include <stdio.h>

static const char place_tag[] = "pawl.verify.4";

/* ---- writing ---- */

static void put_text(struct buf *out, str text)
{
    buf_varint(out, text.size);
    buf_str(out, text);
}

/* The rows that effects leave behind, by the numbers that the file has for them. */
static const enum live_change_kind kept_kinds[] = { LIVE_STEP_PUT, LIVE_TIMER_PUT, LIVE_WAIT_PUT,
                                                    LIVE_CHILD_PUT };
#define KEPT_KINDS (sizeof kept_kinds / sizeof kept_kinds[0])

static uint64_t kind_number(enum live_change_kind kind)
{
    uint64_t number = 0;

    while (kept_kinds[number] != kind)
        ASSERT(++number < KEPT_KINDS);
    return number;
}

static void put_row(struct buf *out, const struct live_change *row)
{
    if (row->kind == LIVE_STEP_PUT) {
        buf_varint(out, row->step.plan);
        buf_varint(out, row->step.attempt);
        buf_varint(out, (uint64_t)row->step.status);
        put_text(out, row->step.lease);
        buf_zigzag(out, row->step.lease_ms);
        buf_zigzag(out, row->step.ready_at_ms);
    } else if (row->kind == LIVE_TIMER_PUT) {
        buf_zigzag(out, row->timer.due_at_ms);
        buf_zigzag(out, row->timer.shift_ms);
        buf_varint(out, row->timer.wall);
    } else if (row->kind == LIVE_WAIT_PUT) {
        put_text(out, row->wait.value);
    } else {
        buf_varint(out, row->child.number);
        buf_varint(out, row->child.is_abandoned);
    }
}

static void put_fold(struct buf *out, const struct fold *fold)
{
    buf_varint(out, fold ? fold->count : 0);
    for (uint32_t i = 0; fold && i < fold->count; i++) {
        const struct live_change *row = &fold->rows[i];

        buf_varint(out, kind_number(row->kind));
        buf_varint(out, row->ordinal);
        put_text(out, row->name);
        put_row(out, row);
    }
}

static void put_chain(struct buf *out, const struct chain *chain)
{
    buf_varint(out, chain->number);
    buf_varint(out, chain->seq);
    buf_varint(out, chain->pos);
    buf_varint(out, chain->skip_pos);
    buf_varint(out, chain->rules);
    buf_varint(out, chain->state);
    buf_varint(out, chain->is_blind);
    buf_varint(out, chain->paused_pos);
    buf_add(out, chain->random, ID_RANDOM_SIZE);
    buf_add(out, chain->hash, SHA_SIZE);
    buf_varint(out, chain->snapshot_seq);
    if (chain->snapshot_seq > 0)
        buf_add(out, chain->snapshot_sha, SHA_SIZE);
    put_fold(out, chain->fold);
}

static void put_rules(struct buf *out, const struct rules *rules)
{
    buf_varint(out, rules->id);
    buf_varint(out, rules->is_defined);
    buf_add(out, rules->compiled_sha, SHA_SIZE);
}

static void put_keys(const struct verify *v, struct buf *out)
{
    buf_varint(out, v->key_count);
    for (uint32_t i = 0; i < v->key_count; i++) {
        buf_add(out, v->keys[i].id, KEY_ID_SIZE);
        buf_zigzag(out, v->keys[i].at_ms);
        buf_varint(out, v->keys[i].pos);
    }
}

static void put_erasures(const struct verify *v, struct buf *out)
{
    buf_varint(out, v->erasure_count);
    for (uint32_t i = 0; i < v->erasure_count; i++) {
        buf_add(out, v->erasures[i].commitment, SHA_SIZE);
        buf_varint(out, v->erasures[i].is_gone);
        buf_varint(out, v->erasures[i].used_pos);
        buf_varint(out, v->erasures[i].erased_pos);
    }
}

static void put_standing(const struct verify *v, struct buf *out)
{
    buf_varint(out, v->standing_count);
    for (uint32_t i = 0; i < v->standing_count; i++) {
        buf_zigzag(out, v->standing[i].what);
        put_text(out, v->standing[i].id);
        buf_zigzag(out, v->standing[i].due_at_ms);
        buf_varint(out, v->standing[i].pos);
        buf_zigzag(out, v->standing[i].firing_ms);
        buf_varint(out, v->standing[i].wall);
    }
}

static void put_place(const struct verify *v, struct buf *out)
{
    buf_add(out, place_tag, sizeof place_tag - 1);
    buf_add(out, v->tip.store_id, STORE_ID_SIZE);
    buf_varint(out, v->pos);
    buf_add(out, v->root, SHA_SIZE);
    buf_zigzag(out, v->at_ms);
    buf_zigzag(out, v->peak_ms);
    buf_varint(out, v->report->records);
    buf_varint(out, v->report->entries);
    buf_varint(out, v->request->flows != NULL);
    buf_varint(out, v->rules_count);
    for (uint32_t i = 0; i < v->rules_count; i++)
        put_rules(out, &v->rules[i]);
    buf_varint(out, v->chain_count);
    for (uint32_t i = 0; i < v->chain_count; i++)
        put_chain(out, &v->chains[i]);
    put_keys(v, out);
    put_standing(v, out);
    put_erasures(v, out);
    buf_varint(out, v->checked_count);
    buf_add(out, v->checked, v->checked_count * sizeof *v->checked);
}

/* Without memory for it the check itself goes on: only its place is not kept. */
void verify_keep_place(struct verify *v)
{
    struct buf place;
    uint8_t sha[SHA_SIZE];

    ASSERT(v->request->keep && !v->in_commit && v->undecided == 0);
    v->kept_pos = v->pos;
    if (v->pos == 0)
        return;
    buf_init(&place, v->heap, SIZE_MAX / 2);
    put_place(v, &place);
    sha_once(v->sha, buf_view(&place), sha);
    buf_add(&place, sha, SHA_SIZE);
    if (!place.failed)
        v->request->keep(v->request->context, buf_view(&place));
    buf_fini(&place);
}

/* ---- reading ---- */

struct place_reader {
    const uint8_t *at, *end;
    bool failed; /* sticky: it ended too soon, or a number is too large */
};

static void take(struct place_reader *reader, void *out, size_t size)
{
    if (reader->failed || (size_t)(reader->end - reader->at) < size) {
        reader->failed = true;
        memset(out, 0, size);
        return;
    }
    if (size > 0)
        memcpy(out, reader->at, size);
    reader->at += size;
}

static uint64_t take_number(struct place_reader *reader, uint64_t max)
{
    uint64_t n = 0;
    uint8_t byte = 0x80;

    for (unsigned shift = 0; shift < 64 && (byte & 0x80) != 0; shift += 7) {
        take(reader, &byte, 1);
        n |= (uint64_t)(byte & 0x7F) << shift;
    }
    if ((byte & 0x80) != 0 || n > max)
        reader->failed = true;
    return reader->failed ? 0 : n;
}

static int64_t take_zigzag(struct place_reader *reader)
{
    uint64_t n = take_number(reader, UINT64_MAX);

    return (int64_t)((n >> 1) ^ (n & 1 ? UINT64_MAX : 0));
}

static uint32_t take_u32(struct place_reader *reader)
{
    return (uint32_t)take_number(reader, UINT32_MAX);
}

/* What it gives lies in the place. */
static str take_text(struct place_reader *reader)
{
    size_t size = take_number(reader, SIZE_MAX);
    str text = { (const char *)reader->at, size };

    if (size > (size_t)(reader->end - reader->at)) {
        reader->failed = true;
        return STR("");
    }
    reader->at += size;
    return text;
}

static void take_rest(struct place_reader *reader, struct live_change *row)
{
    if (row->kind == LIVE_STEP_PUT) {
        row->step.plan = take_u32(reader);
        row->step.attempt = take_u32(reader);
        row->step.status = (enum step_status)take_number(reader, STEP_CANCELLED);
        row->step.lease = take_text(reader);
        row->step.lease_ms = take_zigzag(reader);
        row->step.ready_at_ms = take_zigzag(reader);
    } else if (row->kind == LIVE_TIMER_PUT) {
        row->timer.due_at_ms = take_zigzag(reader);
        row->timer.shift_ms = take_zigzag(reader);
        row->timer.wall = take_number(reader, 1) != 0;
    } else if (row->kind == LIVE_WAIT_PUT) {
        row->wait.value = take_text(reader);
    } else {
        row->child.number = take_number(reader, ID_NUMBER_MAX);
        row->child.is_abandoned = take_number(reader, 1) == 1;
    }
}

static pawl_status take_row(struct verify *v, struct place_reader *reader, struct chain *chain)
{
    struct live_change row = { .kind = kept_kinds[take_number(reader, KEPT_KINDS - 1)] };

    row.ordinal = take_u32(reader);
    row.name = take_text(reader);
    take_rest(reader, &row);
    return reader->failed ? PAWL_OK : verify_put_row(v, chain, row);
}

/* Head rows must be right up to `flushed` as it is now, which may be further than it was. */
static pawl_status find_flushed(struct verify *v, struct chain *chain)
{
    uint64_t pos = chain->pos;
    struct record record;
    pawl_status status = PAWL_OK;

    while (pos > v->tip.flushed && status == PAWL_OK) {
        scope_clear(&v->scope);
        verify_at(v, pos, chain->number, 0);
        status = store_record(v->store, &v->scope, pos, &record);
        if (status == PAWL_NOT_KNOWN || (status == PAWL_OK && record.prev >= pos))
            return verify_bad(v, "the record at this position has changed since it was checked");
        if (status == PAWL_OK)
            pos = record.prev;
    }
    chain->flushed_pos = pos;
    return status;
}

static pawl_status take_chain(struct verify *v, struct place_reader *reader, uint32_t index)
{
    struct chain chain = { .number = take_number(reader, ID_NUMBER_MAX) };
    uint32_t fact_count;

    chain.seq = take_number(reader, UINT64_MAX);
    chain.pos = take_number(reader, v->pos);
    chain.skip_pos = take_number(reader, v->pos);
    chain.rules = (uint32_t)take_number(reader, v->rules_count);
    chain.state = take_u32(reader);
    chain.is_blind = take_number(reader, 1) == 1;
    chain.paused_pos = take_number(reader, v->pos);
    take(reader, chain.random, ID_RANDOM_SIZE);
    take(reader, chain.hash, SHA_SIZE);
    chain.snapshot_seq = take_number(reader, chain.seq);
    if (chain.snapshot_seq > 0)
        take(reader, chain.snapshot_sha, SHA_SIZE);
    fact_count = take_u32(reader);
    if (index > 0 && (chain.number == 0 || chain.rules >= v->rules_count ||
                      chain.state >= v->rules[chain.rules].state_count))
        reader->failed = true;
    if (reader->failed)
        return PAWL_OK;
    if (!HEAP_GROW(v->heap, v->chains, v->chain_capacity, index + 1) ||
        (index > 0 && !map_put(&v->chain_map, chain.number, index)))
        return scope_no_memory(&v->scope);
    v->chains[index] = chain;
    v->chain_count = index + 1;
    for (uint32_t i = 0; !reader->failed && i < fact_count; i++)
        TRY(take_row(v, reader, &v->chains[index]));
    return find_flushed(v, &v->chains[index]);
}

/* Definitions are not remembered but read again: *same if each is the one it was. */
static pawl_status take_rules(struct verify *v, struct place_reader *reader, bool *same)
{
    uint32_t id = take_u32(reader), index;
    bool is_defined = take_number(reader, 1) == 1;
    uint8_t sha[SHA_SIZE];

    take(reader, sha, SHA_SIZE);
    if (reader->failed)
        return PAWL_OK;
    scope_clear(&v->scope);
    verify_at(v, 0, 0, 0);
    TRY(verify_definition(v, id, &index));
    v->rules[index].is_defined = is_defined;
    *same = *same && memcmp(sha, v->rules[index].compiled_sha, SHA_SIZE) == 0;
    return PAWL_OK;
}

static pawl_status take_checked(struct verify *v, struct place_reader *reader)
{
    size_t count = take_number(reader, (uint64_t)(reader->end - reader->at) / sizeof *v->checked);

    if (reader->failed || count == 0)
        return PAWL_OK;
    v->checked = heap_new(v->heap, count * sizeof *v->checked);
    TRY_MEMORY(&v->scope, v->checked);
    v->checked_count = count;
    take(reader, v->checked, count * sizeof *v->checked);
    return PAWL_OK;
}

static pawl_status take_keys(struct verify *v, struct place_reader *reader)
{
    uint32_t count = take_u32(reader);

    for (uint32_t i = 0; !reader->failed && i < count; i++) {
        struct key_row row = { 0 };

        take(reader, row.id, KEY_ID_SIZE);
        row.at_ms = take_zigzag(reader);
        row.pos = take_number(reader, v->pos);
        TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, v->keys, v->key_capacity, v->key_count + 1));
        v->keys[v->key_count++] = row;
    }
    return PAWL_OK;
}

static pawl_status take_standing(struct verify *v, struct place_reader *reader)
{
    uint32_t count = take_u32(reader);

    for (uint32_t i = 0; !reader->failed && i < count; i++) {
        struct standing_row row = { .what = (int32_t)take_zigzag(reader) };

        row.id = take_text(reader);
        row.due_at_ms = take_zigzag(reader);
        row.pos = take_number(reader, v->pos);
        row.firing_ms = take_zigzag(reader);
        row.wall = take_number(reader, 1) != 0;
        if (row.id.size == 0)
            reader->failed = true;
        if (!reader->failed)
            TRY(verify_put_standing(v, &row));
    }
    return PAWL_OK;
}

static pawl_status take_erasures(struct verify *v, struct place_reader *reader)
{
    uint32_t count = take_u32(reader);

    for (uint32_t i = 0; !reader->failed && i < count; i++) {
        struct erasure erasure = { .is_gone = false };

        take(reader, erasure.commitment, SHA_SIZE);
        erasure.is_gone = take_number(reader, 1) == 1;
        erasure.used_pos = take_number(reader, v->pos);
        erasure.erased_pos = take_number(reader, v->pos);
        if (!reader->failed)
            TRY(verify_put_erasure(v, &erasure));
    }
    return PAWL_OK;
}

static pawl_status take_all(struct verify *v, struct place_reader *reader, const char **why)
{
    static pawl_status (*const takers[])(struct verify *, struct place_reader *) = {
        take_keys, take_standing, take_erasures, take_checked
    };
    uint32_t count = take_u32(reader);
    bool same = true;
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; status == PAWL_OK && !reader->failed && i < count; i++)
        status = take_rules(v, reader, &same);
    if (status == PAWL_OK && !same)
        *why = "a definition is no longer the one it was";
    if (*why)
        return status;
    count = take_u32(reader);
    for (uint32_t i = 0; status == PAWL_OK && !reader->failed && i < count; i++)
        status = take_chain(v, reader, i);
    for (size_t i = 0; status == PAWL_OK && i < sizeof takers / sizeof *takers; i++)
        status = takers[i](v, reader);
    if (reader->failed || reader->at != reader->end || v->chain_count != count || count == 0)
        *why = "it is no place of a check";
    return status;
}

/* Is this a place of this store, and does its log still lead there? */
static pawl_status check_place(struct verify *v, struct place_reader *reader, const char **why)
{
    char tag[sizeof place_tag] = "";
    uint8_t store_id[STORE_ID_SIZE];
    struct record record;
    pawl_status status;

    take(reader, tag, sizeof place_tag - 1);
    take(reader, store_id, STORE_ID_SIZE);
    v->pos = take_number(reader, UINT64_MAX);
    take(reader, v->root, SHA_SIZE);
    v->at_ms = take_zigzag(reader);
    v->peak_ms = take_zigzag(reader);
    if (reader->failed || strcmp(tag, place_tag) != 0 || v->pos == 0)
        *why = "it is no place of a check";
    else if (memcmp(store_id, v->tip.store_id, STORE_ID_SIZE) != 0)
        *why = "it is a place in another store";
    if (*why)
        return PAWL_OK;
    status = store_record(v->store, &v->scope, v->pos, &record);
    if (status == PAWL_NOT_KNOWN || (status == PAWL_OK && !record.has_root))
        *why = "the log has no end of a commit there";
    else if (status == PAWL_OK && memcmp(record.root, v->root, SHA_SIZE) != 0)
        *why = "the log has another root there";
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static bool is_whole(struct verify *v, str place)
{
    uint8_t sha[SHA_SIZE];

    if (place.size < SHA_SIZE)
        return false;
    place.size -= SHA_SIZE;
    sha_once(v->sha, place, sha);
    return memcmp(sha, place.data + place.size, SHA_SIZE) == 0;
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
    v->pos = v->report->records = v->report->entries = 0;
    v->at_ms = v->peak_ms = 0;
    (void)snprintf(v->report->not_resumed, sizeof v->report->not_resumed, "%s", why);
    return VERIFY_STOPPED;
}

pawl_status verify_resume(struct verify *v)
{
    str place = v->request->place;
    struct place_reader reader = { .at = (const uint8_t *)place.data };
    const char *why = NULL;
    bool had_flows;
    pawl_status status;

    if (!is_whole(v, place))
        return begin_again(v, "it is damaged");
    reader.end = reader.at + place.size - SHA_SIZE;
    status = check_place(v, &reader, &why);
    v->report->records = take_number(&reader, UINT64_MAX);
    v->report->entries = take_number(&reader, UINT64_MAX);
    had_flows = take_number(&reader, 1) == 1;
    if (!why && !had_flows && v->request->flows)
        why = "flows were not decided again then";
    if (status == PAWL_OK && !why)
        status = take_all(v, &reader, &why);
    return status == PAWL_OK && why ? begin_again(v, why) : status;
}
