/* intern.c - values: actors and subjects that the store already knows, by their bytes; new ones.
 *
 * Used by the drain alone. What a batch adds is here at once and forgotten if its commit
 * fails; between batches the table is emptied when it has grown past LIMIT_ACTORS. */
#include "engine/parts.h"

static bool resize_slots(struct intern_table *table, uint32_t slot_count)
{
    struct interned *slots = heap_new(table->heap, sizeof *slots * slot_count);

    if (!slots)
        return false;
    for (uint32_t i = 0; i < table->slot_count; i++) {
        uint32_t slot;

        if (!table->slots[i].bytes)
            continue;
        slot = (uint32_t)str_hash((str){ table->slots[i].bytes, table->slots[i].size });
        while (slots[slot & (slot_count - 1)].bytes)
            slot++;
        slots[slot & (slot_count - 1)] = table->slots[i];
    }
    heap_free(table->heap, table->slots, sizeof *slots * table->slot_count);
    table->slots = slots;
    table->slot_count = slot_count;
    return true;
}

bool intern_init(struct intern_table *table, const struct heap *heap)
{
    *table = (struct intern_table){ .heap = heap };
    return resize_slots(table, 256);
}

void intern_clear(struct intern_table *table)
{
    for (uint32_t i = 0; i < table->slot_count; i++) {
        heap_free(table->heap, table->slots[i].bytes, table->slots[i].size + 1);
        table->slots[i] = (struct interned){ 0 };
    }
    table->count = 0;
}

void intern_fini(struct intern_table *table)
{
    intern_clear(table);
    heap_free(table->heap, table->slots, sizeof *table->slots * table->slot_count);
}

static struct interned *find_slot(struct intern_table *table, str bytes)
{
    uint32_t slot = (uint32_t)str_hash(bytes);

    for (;; slot++) {
        struct interned *item = &table->slots[slot & (table->slot_count - 1)];

        if (!item->bytes || str_eq((str){ item->bytes, item->size }, bytes))
            return item;
    }
}

bool intern_has(struct intern_table *table, str bytes)
{
    return find_slot(table, bytes)->bytes != NULL;
}

static bool remember(struct intern_table *table, str bytes, uint64_t id,
                     const uint8_t commitment[SHA_SIZE], const struct interned **out)
{
    struct interned *item;
    char *copy;

    if ((table->count + 1) * 2 > table->slot_count && !resize_slots(table, table->slot_count * 2))
        return false;
    copy = heap_new(table->heap, bytes.size + 1);
    if (!copy)
        return false;
    memcpy(copy, bytes.data, bytes.size);
    item = find_slot(table, bytes);
    *item = (struct interned){ .id = id, .size = bytes.size, .bytes = copy };
    memcpy(item->commitment, commitment, SHA_SIZE);
    table->count++;
    *out = item;
    return true;
}

/* Does this very commit erase it? Then the same text is a new value from now on. */
static bool is_erased_here(const struct engine *engine, uint64_t id)
{
    const struct batch *batch = &engine->writer.batch;

    for (uint32_t i = 0; i < batch->erasure_count; i++)
        if (batch->erasures[i].interned && batch->erasures[i].id == id)
            return true;
    return false;
}

pawl_status intern(struct engine *engine, struct scope *scope, str bytes, uint64_t *id,
                   const uint8_t **commitment)
{
    const struct interned *item;
    struct value known;
    pawl_status status;

    ASSERT_DRAINING(engine);
    *id = 0;
    if (!bytes.data)
        return PAWL_OK;
    item = find_slot(&engine->writer.interned, bytes);
    if (!item->bytes) {
        status = PLANTED(INTERNED_TWICE) ? PAWL_NOT_KNOWN
                                         : store_find_value(engine->store, scope, bytes, &known);
        if (status == PAWL_OK && is_erased_here(engine, known.id))
            status = PAWL_NOT_KNOWN;
        if (status == PAWL_NOT_KNOWN) {
            const uint8_t *fresh;

            known.id = batch_new_value(engine, bytes, true, &fresh);
            memcpy(known.commitment, fresh, SHA_SIZE);
        } else if (status) {
            return status;
        }
        TRY_MEMORY(scope,
                   remember(&engine->writer.interned, bytes, known.id, known.commitment, &item));
    }
    *id = item->id;
    *commitment = item->commitment;
    return PAWL_OK;
}

uint64_t batch_new_value(struct engine *engine, str bytes, bool interned,
                         const uint8_t **commitment)
{
    struct batch *batch = &engine->writer.batch;
    struct value *value = &batch->values[batch->value_count];

    ASSERT(batch->value_count < batch->value_capacity);
    *value = (struct value){ .id = engine->writer.tip.last_value + batch->value_count + 1,
                             .bytes = bytes,
                             .interned = interned };
    engine->env->random(engine->env, value->salt, SALT_SIZE);
    value_commit(engine->writer.sha, value->salt, bytes, value->commitment);
    batch->value_count++;
    *commitment = value->commitment;
    return value->id;
}

uint64_t batch_payload(struct engine *engine, uint64_t instance, str bytes,
                       const uint8_t **commitment)
{
    const struct batch *batch = &engine->writer.batch;
    const struct record *last =
        batch->record_count ? &batch->records[batch->record_count - 1] : NULL;
    uint64_t first = engine->writer.tip.last_value + 1;
    const struct value *before = NULL; /* that the entry before this one brought in this commit */

    if (last && last->instance == instance && last->what >= 0 && last->payload >= first)
        before = &batch->values[last->payload - first];
    if (!before || !str_eq(before->bytes, bytes))
        return batch_new_value(engine, bytes, false, commitment);
    *commitment = before->commitment;
    return before->id;
}
