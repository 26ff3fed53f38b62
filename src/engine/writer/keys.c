/* keys.c - idempotency keys: an accepted call that is repeated is answered from its record.
 *
 * A key rides in the record its call made, with the hash of the request; a call that made none
 * gets a `keyed` record. Keys are looked up in the drain, where no other thread commits: two calls
 * with one key are one record and two equal answers. The second of two in one commit is put
 * aside until that commit is over, so that whatever is answered is durable. */
#include "base/node.h"
#include "engine/parts.h"

/* ---- those of the batch ---- */

static uint32_t slot_of(const uint8_t id[KEY_ID_SIZE], uint32_t slot_count)
{
    uint32_t hash;

    memcpy(&hash, id, sizeof hash); /* ids are hashes already */
    return hash & (slot_count - 1);
}

static void take_slot(struct batch *batch, uint32_t *slots, uint32_t slot_count, uint32_t index)
{
    uint32_t slot = slot_of(batch->keys[index].id, slot_count);

    while (slots[slot])
        slot = (slot + 1) & (slot_count - 1);
    slots[slot] = index + 1;
}

bool keys_reserve(struct batch *batch)
{
    uint32_t slot_count = batch->key_slot_count ? batch->key_slot_count * 2 : 64;
    uint32_t *slots;

    if ((batch->key_count + 1) * 2 <= batch->key_slot_count)
        return true;
    slots = heap_new(batch->heap, sizeof *slots * slot_count);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < batch->key_count; i++)
        take_slot(batch, slots, slot_count, i);
    heap_free(batch->heap, batch->key_slots, sizeof *slots * batch->key_slot_count);
    batch->key_slots = slots;
    batch->key_slot_count = slot_count;
    return true;
}

void keys_note(struct batch *batch, const struct record *record)
{
    struct key_row *row = &batch->keys[batch->key_count];

    ASSERT(batch->key_count < batch->key_capacity);
    ASSERT(record->key.size == KEY_SIZE);
    *row = (struct key_row){ .at_ms = record->at_ms, .pos = record->pos };
    memcpy(row->id, record->key.data, KEY_ID_SIZE);
    take_slot(batch, batch->key_slots, batch->key_slot_count, batch->key_count++);
}

static bool is_in_batch(const struct batch *batch, const uint8_t id[KEY_ID_SIZE])
{
    uint32_t slot;

    if (!batch->key_count)
        return false;
    slot = slot_of(id, batch->key_slot_count);
    for (; batch->key_slots[slot]; slot = (slot + 1) & (batch->key_slot_count - 1))
        if (memcmp(batch->keys[batch->key_slots[slot] - 1].id, id, KEY_ID_SIZE) == 0)
            return true;
    return false;
}

/* ---- those of the store ---- */

/* The record that this very call made. NOT_KNOWN; CONFLICT: another call has used the key. */
static pawl_status find(struct engine *engine, struct scope *scope, const uint8_t *key,
                        int64_t now_ms, struct record *out)
{
    struct key_row row;
    pawl_status status;

    TRY(store_key(engine->store, scope, key, &row));
    if (row.at_ms < now_ms - KEY_KEPT_MS && !alarm_counts_key(engine, scope, row.at_ms))
        return scope_fail(scope, PAWL_NOT_KNOWN, "the key was used more than 7 days ago");
    status = store_record(engine->store, scope, row.pos, out);
    if (status == PAWL_NOT_KNOWN || (!status && out->key.size != KEY_SIZE))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "a key names position %llu, which has none: run pawl verify",
                          (unsigned long long)row.pos);
    if (!status && memcmp(out->key.data, key, KEY_SIZE) != 0)
        return scope_fail(scope, PAWL_CONFLICT,
                          "this idempotency key was used for another call; take a new key for a "
                          "new call");
    return status;
}

pawl_status keys_look(struct engine *engine, struct scope *scope, const uint8_t *key, int64_t at_ms,
                      enum key_use *use, struct record *record)
{
    pawl_status status;

    ASSERT_DRAINING(engine);
    *use = KEY_NEW;
    if (!key || PLANTED(KEY_IGNORED))
        return PAWL_OK;
    if (is_in_batch(&engine->writer.batch, key)) {
        *use = KEY_PENDING;
        return PAWL_OK;
    }
    status = find(engine, scope, key, at_ms, record);
    if (status == PAWL_NOT_KNOWN)
        return PAWL_OK;
    *use = KEY_REPEAT;
    return status;
}

pawl_status keys_find(struct engine *engine, struct scope *scope, const uint8_t *key,
                      struct record *out)
{
    return find(engine, scope, key, engine_now_ms(engine), out);
}

bool keys_explain(struct engine *engine, struct scope *scope, const uint8_t *key,
                  pawl_status *status, struct record *record)
{
    pawl_error first = scope->error;
    pawl_status found;

    if (!key || !*status || status_is_ours(*status) || *status == PAWL_IN_USE)
        return false;
    found = keys_find(engine, scope, key, record);
    if (found == PAWL_NOT_KNOWN)
        scope->error = first;
    else
        *status = found;
    return found == PAWL_OK;
}

/* ---- answers ---- */

static pawl_status damaged(struct scope *scope, const struct record *record)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the record at position %llu is not what its key was used for: run pawl "
                      "verify",
                      (unsigned long long)record->pos);
}

/* The instance of a record as it stood after it, for telling. */
static pawl_status stand_after(struct engine *engine, struct scope *scope,
                               const struct record *record, struct head *head,
                               struct definition_slot **slot)
{
    struct instance_row row;
    pawl_status status = store_instance(engine->store, scope, record->instance, &row);

    if (!status)
        status = definitions_get(engine, scope, row.definition, slot);
    if (status)
        return status == PAWL_NOT_KNOWN ? damaged(scope, record) : status;
    if (record->what >= 0 && (uint32_t)record->what >= (*slot)->definition->transition_count)
        return damaged(scope, record);
    *head = (struct head){ .instance = record->instance, .seq = (uint32_t)record->seq };
    head->state = (uint16_t)(record->what >= 0 ? (*slot)->definition->transitions[record->what].to
                                               : (*slot)->definition->initial);
    memcpy(head->random, row.random, ID_RANDOM_SIZE);
    return PAWL_OK;
}

pawl_status keys_fired(struct engine *engine, struct scope *scope, const struct record *record,
                       struct fired *out)
{
    struct definition_slot *slot;
    struct head head;

    if (record->what < 0 && record->what != CONTROL_KEEP_SIGNAL)
        return damaged(scope, record);
    TRY(stand_after(engine, scope, record, &head, &slot));
    fired_tell(&head, slot->definition, out);
    return PAWL_OK;
}

/* What began with the creation is in its commit, right behind it. */
static pawl_status last_of_creation(struct engine *engine, struct scope *scope,
                                    const struct record *creation, struct record *out)
{
    struct record next = *creation;
    pawl_status status = PAWL_OK;

    *out = *creation;
    while (!status && !next.has_root) {
        status = store_record(engine->store, scope, next.pos + 1, &next);
        if (!status && (next.instance != creation->instance || next.what < 0))
            break;
        if (!status)
            *out = next;
    }
    return status == PAWL_NOT_KNOWN ? damaged(scope, creation) : status;
}

pawl_status keys_created(struct engine *engine, struct scope *scope, const struct record *record,
                         struct created *out)
{
    struct definition_slot *slot;
    struct record last = { 0 };
    struct head head;

    if (record->what == CONTROL_KEYED)
        return singleton_told(engine, scope, record, out);
    TRY(record->what == CONTROL_CREATE ? last_of_creation(engine, scope, record, &last)
                                       : damaged(scope, record));
    TRY(stand_after(engine, scope, &last, &head, &slot));
    id_print(head.instance, head.random, out->id);
    out->state = slot->definition->states[head.state].name;
    out->definition = slot->definition;
    out->is_existing = false;
    return PAWL_OK;
}

pawl_status keys_defined(struct scope *scope, const struct record *record,
                         struct define_request *out)
{
    struct node *body, *member = NULL;
    int64_t version = 0;
    pawl_status status;

    if (record->what != CONTROL_DEFINE && record->what != CONTROL_KEYED)
        return damaged(scope, record);
    status = node_read_json(scope, record->body, &body);
    if (!status)
        member = node_find(body, "version");
    if (status == PAWL_NO_MEMORY)
        return status;
    if (!member || !node_to_i64(member, &version) || version < 1 || version > UINT32_MAX)
        return damaged(scope, record);
    out->row.version = (uint32_t)version;
    out->is_new = record->what == CONTROL_DEFINE;
    return PAWL_OK;
}

/* ---- calls that made no record ---- */

static bool is_taken(const struct engine *engine, const uint8_t *key)
{
    for (const struct key_turn *turn = engine->writer.key_turns; turn; turn = turn->next)
        if (memcmp(turn->key, key, KEY_ID_SIZE) == 0)
            return true;
    return false;
}

void engine_key_enter(struct engine *engine, struct key_turn *turn, const uint8_t *key)
{
    guard_lock(&engine->lock);
    while (is_taken(engine, key))
        shell_sleep(engine);
    *turn = (struct key_turn){ key, engine->writer.key_turns };
    engine->writer.key_turns = turn;
    guard_unlock(&engine->lock);
}

void engine_key_leave(struct engine *engine, struct key_turn *turn)
{
    struct key_turn **at = &engine->writer.key_turns;

    guard_lock(&engine->lock);
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    shell_changed(engine);
    guard_unlock(&engine->lock);
}

struct keep {
    const uint8_t *key;
    str body, payload;
};

static pawl_status keep_key(struct engine *engine, struct request *request, int64_t at_ms)
{
    const struct keep *keep = request->context;
    struct record record;
    enum key_use use;

    TRY(keys_look(engine, request->scope, keep->key, at_ms, &use, &record));
    request->is_again = use == KEY_PENDING;
    if (use != KEY_NEW)
        return PAWL_OK;
    TRY(batch_reserve(engine, request->scope, 1, 0));
    TRY(batch_store_record(engine, request->scope, CONTROL_KEYED, at_ms, keep->body, keep->payload,
                           keep->key));
    request->accepted = true;
    return PAWL_OK;
}

pawl_status engine_key_keep(struct engine *engine, struct scope *scope, const uint8_t *key,
                            str body, str payload)
{
    struct keep keep = { key, body, payload };
    struct request request = { .drain = keep_key, .scope = scope, .context = &keep };

    return shell_submit(engine, &request);
}

pawl_status engine_key_find(struct engine *engine, struct scope *scope, const uint8_t *key,
                            str *body, str *payload)
{
    struct record record;

    TRY(keys_find(engine, scope, key, &record));
    if (record.what != CONTROL_KEYED)
        return damaged(scope, &record);
    TRY(value_text(engine, scope, record.payload, payload));
    *body = record.body;
    return PAWL_OK;
}
