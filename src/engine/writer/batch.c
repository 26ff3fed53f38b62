/* batch.c - one commit in the making: records numbered, stamped and chained.
 *
 * Space is reserved before anything is appended, so that appending cannot fail and a request
 * is in the batch wholly or not at all. Texts are borrowed from the requests' scopes, which
 * live until the commit is over. */
#include "engine/parts.h"
#include <stdlib.h>

void batch_init(struct batch *batch, const struct heap *heap)
{
    *batch = (struct batch){ .heap = heap };
}

void batch_fini(struct batch *batch)
{
    if (!batch->heap)
        return;
#define X(type, items, name)                                                                       \
    heap_free(batch->heap, batch->items, sizeof(type) * batch->name##_capacity);
    BATCH_LISTS(X)
#undef X
    heap_free(batch->heap, batch->slots, sizeof *batch->slots * batch->slot_count);
    heap_free(batch->heap, batch->key_slots, sizeof *batch->key_slots * batch->key_slot_count);
    *batch = (struct batch){ 0 };
}

void batch_clear(struct batch *batch)
{
    if (batch->key_count)
        memset(batch->key_slots, 0, sizeof *batch->key_slots * batch->key_slot_count);
#define X(type, items, name) batch->name##_count = 0;
    BATCH_LISTS(X)
#undef X
    batch->flushed = 0;
    batch->reduce_count = 0;
    batch->shift_ms = 0;
    if (batch->slots)
        memset(batch->slots, 0, sizeof *batch->slots * batch->slot_count);
}

#define ROOM(batch, items, name, more)                                                             \
    HEAP_GROW((batch)->heap, (batch)->items, (batch)->name##_capacity,                             \
              (batch)->name##_count + (more))

pawl_status standing_room(struct engine *engine, struct scope *scope)
{
    struct batch *batch = &engine->writer.batch;

    ASSERT_DRAINING(engine);
    TRY_MEMORY(scope, ROOM(batch, standing, standing, 1));
    return batch_reserve(engine, scope, 2, 1);
}

bool batch_changes_standing(const struct engine *engine, int32_t what, str id)
{
    const struct batch *batch = &engine->writer.batch;

    for (uint32_t i = 0; i < batch->standing_count; i++)
        if (batch->standing[i].row.what == what && str_eq(batch->standing[i].row.id, id))
            return true;
    return false;
}

pawl_status batch_add_standing(struct engine *engine, struct scope *scope, struct standing_row row,
                               bool is_put)
{
    struct batch *batch = &engine->writer.batch;

    ASSERT_DRAINING(engine);
    TRY_MEMORY(scope, ROOM(batch, standing, standing, 1));
    if (!row.pos)
        row.pos = batch->records[batch->record_count - 1].pos;
    batch->standing[batch->standing_count++] = (struct standing_change){ row, is_put };
    return PAWL_OK;
}

const struct record *batch_find_record(const struct engine *engine, int32_t what, uint64_t instance)
{
    const struct batch *batch = &engine->writer.batch;

    for (uint32_t i = 0; i < batch->record_count; i++)
        if (batch->records[i].instance == instance && batch->records[i].what == what)
            return &batch->records[i];
    return NULL;
}

static uint32_t slot_of(uint64_t instance, uint32_t slot_count)
{
    return (uint32_t)((instance * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (slot_count - 1);
}

static bool grow_slots(struct batch *batch)
{
    uint32_t slot_count = batch->slot_count ? batch->slot_count * 2 : 256;
    uint32_t *slots;

    if ((batch->head_count + 2) * 2 <= batch->slot_count)
        return true;
    slots = heap_new(batch->heap, sizeof *slots * slot_count);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < batch->head_count; i++) {
        uint32_t slot = slot_of(batch->heads[i].instance, slot_count);

        while (slots[slot])
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = i + 1;
    }
    heap_free(batch->heap, batch->slots, sizeof *slots * batch->slot_count);
    batch->slots = slots;
    batch->slot_count = slot_count;
    return true;
}

/* Room for one more head, `records` records with their values, and `live` changes. */
pawl_status batch_reserve(struct engine *engine, struct scope *scope, uint32_t records,
                          uint32_t live)
{
    struct batch *batch = &engine->writer.batch;

    TRY_MEMORY(scope, grow_slots(batch));
    TRY_MEMORY(scope, ROOM(batch, records, record, records));
    TRY_MEMORY(scope, ROOM(batch, values, value, records * 3 + 4));
    TRY_MEMORY(scope, ROOM(batch, instances, instance, 1));
    TRY_MEMORY(scope, ROOM(batch, definitions, definition, 1));
    TRY_MEMORY(scope, ROOM(batch, live, live, live + 1));
    TRY_MEMORY(scope, ROOM(batch, snapshots, snapshot, 1));
    TRY_MEMORY(scope, ROOM(batch, heads, head, 2));
    TRY_MEMORY(scope, ROOM(batch, ends, end, 1));
    TRY_MEMORY(scope, ROOM(batch, rows, row, batch->head_count + 2));
    TRY_MEMORY(scope, ROOM(batch, keys, key, 1));
    TRY_MEMORY(scope, keys_reserve(batch));
    return PAWL_OK;
}

struct head *batch_find(struct batch *batch, uint64_t instance)
{
    uint32_t slot;

    if (!batch->slot_count)
        return NULL;
    slot = slot_of(instance, batch->slot_count);
    while (batch->slots[slot]) {
        struct head *head = &batch->heads[batch->slots[slot] - 1];

        if (head->instance == instance)
            return head;
        slot = (slot + 1) & (batch->slot_count - 1);
    }
    return NULL;
}

struct head *batch_put(struct batch *batch, const struct head *head)
{
    uint32_t slot = slot_of(head->instance, batch->slot_count);

    ASSERT(batch->head_count < batch->head_capacity);
    while (batch->slots[slot])
        slot = (slot + 1) & (batch->slot_count - 1);
    batch->heads[batch->head_count] = *head;
    batch->slots[slot] = ++batch->head_count;
    return &batch->heads[batch->head_count - 1];
}

/* Read a head from the store: row, last record, and what creation fixed. */
static pawl_status load_head(struct engine *engine, struct scope *scope, uint64_t instance,
                             struct head *out)
{
    struct head_row row;
    struct record record;
    struct instance_row fixed = { 0 };
    pawl_status status;

    TRY(store_head(engine->store, scope, instance, engine->options.own, &row));
    status = store_record(engine->store, scope, row.pos, &record);
    if (!status && instance)
        status = store_instance(engine->store, scope, instance, &fixed);
    if (status)
        return status == PAWL_NOT_KNOWN
                   ? scope_fail(scope, PAWL_STORAGE_FAILURE,
                                "instance number %llu has a head row but no record or row: run "
                                "pawl verify",
                                (unsigned long long)instance)
                   : status;
    *out = head_of_rows(&row, &fixed);
    if (PLANTED(SEQUENCE_RESET))
        out->seq = 0;
    memcpy(out->hash, record.hash, SHA_SIZE);
    return PAWL_OK;
}

pawl_status pause_by_row(struct engine *engine, struct scope *scope, uint64_t instance, bool *out)
{
    struct head_row row;
    pawl_status status = store_head(engine->store, scope, instance, true, &row);

    *out = !status && row.paused;
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

/* A head that came from the tail of the log knows its last transition, not its state. */
static pawl_status make_whole(struct engine *engine, struct scope *scope, struct head *head)
{
    struct instance_row fixed;
    struct definition_slot *slot;
    bool paused = false;

    TRY(store_instance(engine->store, scope, head->instance, &fixed));
    TRY(pause_by_row(engine, scope, head->instance, &paused));
    TRY(definitions_get(engine, scope, fixed.definition, &slot));
    if (!(head->flags & HEAD_FRESH) && head->state >= slot->definition->transition_count)
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "position %llu names no transition",
                          (unsigned long long)head->pos);
    head->state =
        (uint16_t)(head->flags & HEAD_FRESH ? slot->definition->initial
                                            : slot->definition->transitions[head->state].to);
    head->definition = fixed.definition;
    memcpy(head->random, fixed.random, ID_RANDOM_SIZE);
    head->flags = (uint8_t)((head->flags & HEAD_DIRTY) | head_flags(&fixed, paused));
    return PAWL_OK;
}

pawl_status heads_make_whole(struct engine *engine, struct scope *scope, struct head *head)
{
    return head->flags & HEAD_RAW ? make_whole(engine, scope, head) : PAWL_OK;
}

pawl_status batch_head(struct engine *engine, struct scope *scope, uint64_t instance,
                       struct head **out)
{
    struct head head = { 0 };
    const struct head *cached;
    bool is_known;
    pawl_status status = PAWL_OK;

    ASSERT_DRAINING(engine);
    *out = batch_find(&engine->writer.batch, instance);
    if (*out)
        return PAWL_OK;
    guard_lock(&engine->lock);
    cached = instance ? heads_find(&engine->writer.heads, instance) : NULL;
    if (cached)
        head = *cached;
    guard_unlock(&engine->lock);
    is_known = cached && !(head.flags & HEAD_RAW);
    if (!cached)
        status = load_head(engine, scope, instance, &head);
    else if (!is_known)
        status = make_whole(engine, scope, &head);
    if (status)
        return status;
    if (instance && engine->options.own && !is_known) {
        guard_lock(&engine->lock);
        cached = heads_add(&engine->writer.heads, &head);
        guard_unlock(&engine->lock);
        TRY_MEMORY(scope, cached);
    }
    *out = batch_put(&engine->writer.batch, &head);
    return PAWL_OK;
}

pawl_status batch_locate(struct engine *engine, struct scope *scope, str id, uint32_t room,
                         struct head **head, struct definition_slot **slot)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;
    pawl_status status;

    TRY(id_check(scope, id, &number, random));
    TRY(batch_reserve(engine, scope, room, room));
    status = batch_head(engine, scope, number, head);
    if (status == PAWL_NOT_KNOWN ||
        (!status && memcmp(random, (*head)->random, sizeof random) != 0))
        return archive_words(engine, scope, id);
    TRY(status);
    return definitions_of(engine, scope, *head, slot);
}

/* A record of the log, or of this very batch. */
static pawl_status read_back(struct engine *engine, struct scope *scope, uint64_t pos,
                             struct record *out)
{
    if (pos <= engine->writer.tip.pos)
        return store_record(engine->store, scope, pos, out);
    *out = engine->writer.batch.records[pos - engine->writer.tip.pos - 1];
    return PAWL_OK;
}

pawl_status batch_entered_at(struct engine *engine, struct scope *scope, const struct head *head,
                             int64_t *out)
{
    struct record record = { .prev = head->pos };

    do
        TRY(read_back(engine, scope, record.prev, &record));
    while (record.what < 0 && record.what != CONTROL_CREATE && record.prev);
    *out = record.at_ms;
    return PAWL_OK;
}

/* Find the last entry whose number is a multiple of 64, for a head that was read cold. It is
 * asked for by every 64th entry only: on average that is one record read for each entry. */
static pawl_status know_skip(struct engine *engine, struct scope *scope, struct head *head)
{
    struct record record;
    uint64_t pos = head->pos;

    if (head->skip != SKIP_UNKNOWN)
        return PAWL_OK;
    for (head->skip = 0; head->seq >= SKIP_EVERY && pos; pos = record.prev) {
        pawl_status status = read_back(engine, scope, pos, &record);

        if (status) {
            head->skip = SKIP_UNKNOWN;
            return status;
        }
        if (record.what >= 0 && record.seq % SKIP_EVERY == 0) {
            head->skip = pos;
            break;
        }
    }
    return PAWL_OK;
}

pawl_status batch_spoil(struct engine *engine, const struct scope *scope, pawl_status status)
{
    ASSERT_DRAINING(engine);
    engine->writer.batch_status = status;
    engine->writer.scope.error = scope->error;
    return status;
}

struct record *batch_record(struct engine *engine, int32_t what, struct head *head, int64_t at_ms,
                            str body, const uint8_t *key)
{
    struct batch *batch = &engine->writer.batch;
    struct record *record = &batch->records[batch->record_count];

    ASSERT_DRAINING(engine);
    ASSERT(batch->record_count < batch->record_capacity);
    if (what >= 0)
        head->seq++;
    *record = (struct record){ .pos = engine->writer.tip.pos + batch->record_count + 1,
                               .instance = head->instance,
                               .seq = head->seq,
                               .prev = head->pos,
                               .what = what,
                               .at_ms = at_ms,
                               .fired_at_ms = at_ms,
                               .body = body,
                               .key = key ? (str){ (const char *)key, KEY_SIZE } : STR_NONE };
    if (what >= 0 && head->seq % SKIP_EVERY == 0) {
        ASSERT(head->skip != SKIP_UNKNOWN);
        record->skip = head->skip;
        head->skip = record->pos;
    }
    batch->record_count++;
    return record;
}

void batch_seal(struct engine *engine, struct head *head, struct record *record, str body,
                const struct commitments *commitments)
{
    char id[ID_SIZE + 1]; /* of the store's own chain: zeros */

    id_print(head->instance, head->random, id);
    record_hash(engine->writer.sha, head->hash, id, record, body, commitments, record->hash);
    memcpy(head->hash, record->hash, SHA_SIZE);
    head->pos = record->pos;
    if (record->key.data)
        keys_note(&engine->writer.batch, record);
}

pawl_status batch_store_record_by(struct engine *engine, struct scope *scope,
                                  const struct store_record *draft, int64_t at_ms)
{
    struct commitments commitments = { 0 };
    struct record *record;
    struct head *head;
    uint64_t actor;
    pawl_status status = batch_head(engine, scope, 0, &head);

    if (status == PAWL_NOT_KNOWN) /* its first record */
        head = batch_put(&engine->writer.batch, &(struct head){ .instance = 0 });
    else
        TRY(status);
    TRY(intern(engine, scope, draft->actor, &actor, &commitments.actor));
    head->flags |= HEAD_NOW;
    record = batch_record(engine, draft->what, head, at_ms, draft->body, draft->key);
    record->actor = actor;
    if (draft->payload.data)
        record->payload = batch_new_value(engine, draft->payload, false, &commitments.payload);
    if (draft->reason.data)
        record->reason = batch_new_value(engine, draft->reason, false, &commitments.reason);
    batch_seal(engine, head, record, draft->body, &commitments);
    return PAWL_OK;
}

pawl_status batch_store_record(struct engine *engine, struct scope *scope, int32_t what,
                               int64_t at_ms, str body, str payload, const uint8_t *key)
{
    return batch_store_record_by(
        engine, scope,
        &(struct store_record){ .what = what, .body = body, .payload = payload, .key = key },
        at_ms);
}

static pawl_status draft_body(struct engine *engine, struct scope *scope, const struct draft *draft,
                              str *out)
{
    struct buf buf;

    if (!draft->effects.count && !scope->trace.data) {
        *out = STR_NONE;
        return PAWL_OK;
    }
    buf_init(&buf, engine->heap, LIMIT_SCOPE);
    body_print(scope->trace, &draft->effects, &buf);
    *out = buf_take(&buf, &scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

static void note_end(struct batch *batch, const struct head *head, const struct draft *draft,
                     enum terminal_kind terminal)
{
    struct batch_end *end = &batch->ends[batch->end_count];

    ASSERT(batch->end_count < batch->end_capacity);
    batch->end_count++;
    *end = (struct batch_end){ .instance = head->instance,
                               .status = instance_status_ended(terminal),
                               .payload = draft->payload,
                               .reason = draft->reason };
    memcpy(end->random, head->random, ID_RANDOM_SIZE);
}

pawl_status batch_entry(struct engine *engine, struct scope *scope, struct head *head,
                        const struct definition *definition, const struct draft *draft,
                        int64_t at_ms, int64_t fired_at_ms, const uint8_t *key)
{
    struct commitments commitments = { 0 };
    struct record *record;
    uint64_t actor, payload = 0;
    str body;

    ASSERT_DRAINING(engine);
    ASSERT(draft->transition < definition->transition_count);
    if (definition->transitions[draft->transition].from != head->state)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "instance number %llu: its row and its history differ; run pawl verify",
                          (unsigned long long)head->instance);
    if ((head->seq + 1) % SKIP_EVERY == 0)
        TRY(know_skip(engine, scope, head));
    TRY(draft_body(engine, scope, draft, &body));
    TRY(intern(engine, scope, draft->actor, &actor, &commitments.actor));
    if (draft->payload.data) /* it looks at the record before */
        payload = batch_payload(engine, head->instance, draft->payload, &commitments.payload);
    record = batch_record(engine, (int32_t)draft->transition, head, at_ms, body, key);
    record->fired_at_ms = fired_at_ms;
    record->flags = draft->guard ? RECORD_GUARD : 0;
    record->step = draft->step;
    record->ordinal = draft->ordinal;
    record->attempt = draft->attempt;
    record->actor = actor;
    record->payload = payload;
    if (draft->reason.data)
        record->reason = batch_new_value(engine, draft->reason, false, &commitments.reason);
    batch_seal(engine, head, record, body, &commitments);
    head->state = (uint16_t)definition->transitions[draft->transition].to;
    if ((head->flags & HEAD_CHILD) && definition->states[head->state].terminal != TERMINAL_NOT)
        engine->writer.batch.live[engine->writer.batch.live_count++] =
            (struct live_change){ .kind = LIVE_CHILD_ENDED, .instance = head->instance };
    if ((head->flags & HEAD_TOLD) && definition->states[head->state].terminal != TERMINAL_NOT)
        note_end(&engine->writer.batch, head, draft, definition->states[head->state].terminal);
    return PAWL_OK;
}
