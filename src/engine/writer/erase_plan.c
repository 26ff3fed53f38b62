/* erase_plan.c - what there is to erase of an instance: its values, what its bodies say, what it is
 * found by, and what the store itself kept for it. */
#include "engine/parts.h"
#include "engine/writer/erasing.h"
#include "model/effect.h"
#include "model/erased_body.h"

#define ERASE_PAGE 64u /* records */

bool erase_is_full(const struct erase_slice *slice)
{
    return slice->value_count + slice->body_count >= ERASE_SLICE ||
           slice->target_count >= ERASE_INSTANCES || slice->bytes >= ERASE_BYTES;
}

pawl_status erase_add_value(struct erasing *erasing, uint64_t id)
{
    struct erase_slice *slice = &erasing->slice;
    const struct heap *heap = erasing->engine->heap;
    struct value value;

    if (!id || map_get(&slice->value_ids, id) != MAP_NONE)
        return PAWL_OK;
    TRY(store_value(erasing->engine->store, &slice->scope, id, &value));
    if (!value.bytes.data)
        return PAWL_OK;
    TRY_MEMORY(&erasing->reading,
               HEAP_GROW(heap, slice->values, slice->value_capacity, slice->value_count + 1) &&
                   map_put(&slice->value_ids, id, 0));
    value.id = id;
    value.bytes = STR_NONE;
    slice->values[slice->value_count++] = value;
    return PAWL_OK;
}

/* ---- bodies ---- */

static pawl_status commitment_of(struct erasing *erasing, uint64_t id, struct value *value,
                                 const uint8_t **out)
{
    *out = NULL;
    if (!id)
        return PAWL_OK;
    TRY(store_value(erasing->engine->store, &erasing->reading, id, value));
    *out = value->commitment;
    return PAWL_OK;
}

static pawl_status parent_text(struct erasing *erasing, uint64_t parent, char out[ID_SIZE + 1])
{
    out[0] = '\0';
    return parent ? engine_id_of(erasing->engine, &erasing->reading, parent, out) : PAWL_OK;
}

/* What a creation's hash would cover if it had never had a correlation and labels. */
static pawl_status creation_now(struct erasing *erasing, const struct instance_row *row, str *out)
{
    struct scope *scope = &erasing->reading;
    struct definition_row definition;
    struct value values[3];
    const uint8_t *of[3];
    char parent[ID_SIZE + 1];
    struct buf body;

    TRY(store_definition(erasing->engine->store, scope, row->definition, &definition));
    TRY(commitment_of(erasing, row->subject, &values[0], &of[0]));
    TRY(commitment_of(erasing, row->input, &values[1], &of[1]));
    TRY(commitment_of(erasing, row->metadata, &values[2], &of[2]));
    TRY(parent_text(erasing, row->parent, parent));
    buf_init(&body, erasing->engine->heap, LIMIT_SCOPE);
    creation_body(&(struct creation_facts){ .source_sha = definition.source_sha,
                                            .compiled_sha = definition.compiled_sha,
                                            .name = definition.name,
                                            .version = definition.version,
                                            .subject = of[0],
                                            .input = of[1],
                                            .metadata = of[2],
                                            .parent_id = str_of(parent),
                                            .test = row->test },
                  &body);
    *out = buf_take(&body, &scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

static pawl_status hash_now(struct erasing *erasing, const char *id, const struct record *record,
                            str covered, uint8_t out[SHA_SIZE])
{
    struct scope *scope = &erasing->reading;
    struct record before = { 0 };
    struct value values[3];
    struct commitments of;

    if (record->prev)
        TRY(store_record(erasing->engine->store, scope, record->prev, &before));
    TRY(commitment_of(erasing, record->actor, &values[0], &of.actor));
    TRY(commitment_of(erasing, record->payload, &values[1], &of.payload));
    TRY(commitment_of(erasing, record->reason, &values[2], &of.reason));
    record_hash(erasing->sha, before.hash, id, record, covered, &of, out);
    return PAWL_OK;
}

/* `body`: what the record has from now on; `covered`: what its hash would cover. */
static pawl_status add_body(struct erasing *erasing, const char *id, const struct record *record,
                            str body, str covered)
{
    struct erase_slice *slice = &erasing->slice;
    const struct heap *heap = erasing->engine->heap;
    struct record now = *record;
    uint32_t at = slice->body_count;

    TRY_MEMORY(&erasing->reading, HEAP_GROW(heap, slice->bodies, slice->body_capacity, at + 1) &&
                                      HEAP_GROW(heap, slice->hashes, slice->hash_capacity, at + 1));
    now.flags |= RECORD_ERASED;
    TRY(hash_now(erasing, id, &now, covered, slice->hashes[at][1]));
    memcpy(slice->hashes[at][0], record->hash, SHA_SIZE);
    slice->bodies[at] = (struct redaction){ .pos = record->pos,
                                            .flags = now.flags,
                                            .body = arena_str(&slice->scope.arena, body) };
    TRY_MEMORY(&erasing->reading, !slice->scope.arena.failed);
    slice->bytes += body.size;
    slice->body_count++;
    return PAWL_OK;
}

/* ---- one record ---- */

struct erase_walk {
    struct erasing *erasing;
    struct erase_target target;
    struct instance_row row;
    char id[ID_SIZE + 1];
    uint64_t last_pos; /* of its last record, which is marked in any case */
};

/* Children were given what their parent had. */
static pawl_status note_children(struct erasing *erasing, str body)
{
    struct effect_list effects = { 0 };
    uint64_t number;

    TRY(effects_read(&erasing->reading, body, &effects));
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind != EFFECT_SPAWN ||
            !id_parse(effects.items[i].name, &number, NULL))
            continue;
        TRY_MEMORY(&erasing->reading,
                   HEAP_GROW(erasing->engine->heap, erasing->waiting, erasing->waiting_capacity,
                             erasing->waiting_count + 1));
        erasing->waiting[erasing->waiting_count++] = number;
    }
    return PAWL_OK;
}

static pawl_status gather_creation(struct erase_walk *work, const struct record *record)
{
    struct erasing *erasing = work->erasing;
    struct erase_slice *slice = &erasing->slice;
    str covered;

    TRY(erase_add_value(erasing, work->row.input));
    TRY(erase_add_value(erasing, work->row.metadata));
    if (erasing->oldest_pos == 0 || record->pos < erasing->oldest_pos)
        erasing->oldest_pos = record->pos;
    TRY_MEMORY(&erasing->reading, HEAP_GROW(erasing->engine->heap, slice->cleared,
                                            slice->cleared_capacity, slice->cleared_count + 1));
    slice->cleared[slice->cleared_count++] =
        (struct instance_row){ .number = work->row.number,
                               .labels = arena_str(&slice->scope.arena, work->row.labels) };
    if ((record->flags & RECORD_ERASED) || (!work->row.correlation.data && !work->row.labels.data))
        return PAWL_OK;
    TRY(creation_now(erasing, &work->row, &covered));
    return add_body(erasing, work->id, record, STR_NONE, covered);
}

static pawl_status gather_record(struct erase_walk *work, const struct record *record)
{
    struct erasing *erasing = work->erasing;
    bool is_private;
    str body;

    if (record->what == CONTROL_ERASE) /* its reason says why: that is no part of what goes */
        return PAWL_OK;
    TRY(erase_add_value(erasing, record->payload));
    TRY(erase_add_value(erasing, record->reason));
    if (record->what == CONTROL_CREATE)
        return gather_creation(work, record);
    if (record->what >= 0 && record->body.data)
        TRY(note_children(erasing, record->body));
    TRY(redact_body(&erasing->reading, record, &is_private, &body));
    if ((record->flags & RECORD_ERASED) || (!is_private && record->pos != work->last_pos))
        return PAWL_OK;
    return add_body(erasing, work->id, record, body, body);
}

/* ---- one instance ---- */

static pawl_status add_target(struct erase_walk *work, bool is_done)
{
    struct erasing *erasing = work->erasing;
    struct erase_slice *slice = &erasing->slice;

    TRY_MEMORY(&erasing->reading, HEAP_GROW(erasing->engine->heap, slice->targets,
                                            slice->target_capacity, slice->target_count + 1));
    work->target.is_done = is_done;
    work->target.id = arena_str(&slice->scope.arena, str_of(work->id));
    TRY_MEMORY(&erasing->reading, work->target.id.data);
    slice->targets[slice->target_count++] = work->target;
    return PAWL_OK;
}

/* From its last record back. A slice may be written in between. */
static pawl_status walk(struct erase_walk *work, struct scope *page)
{
    struct chain_query query = { work->last_pos, .skip_from = UINT64_MAX, .with_texts = true };
    struct erasing *erasing = work->erasing;
    struct record *records;
    pawl_status status;
    uint32_t count;

    while (query.pos) {
        scope_clear(page);
        records = ARENA_ARRAY(&page->arena, struct record, ERASE_PAGE);
        TRY_MEMORY(&erasing->reading, records);
        status =
            store_records_of(erasing->engine->store, page, &query, records, ERASE_PAGE, &count);
        if (status)
            erasing->reading.error = page->error;
        TRY(status);
        for (uint32_t i = 0; i < count; i++) {
            scope_clear(&erasing->reading);
            TRY(gather_record(work, &records[i]));
            if (!erase_is_full(&erasing->slice))
                continue;
            TRY(add_target(work, false));
            TRY(erase_flush(erasing));
        }
    }
    return PAWL_OK;
}

/* Has it been erased to the end before? */
static pawl_status is_erased(struct erase_walk *work, bool *out)
{
    struct standing_row row;
    pawl_status status = store_standing(work->erasing->engine->store, &work->erasing->reading,
                                        CONTROL_ERASE, str_of(work->id), &row);

    *out = status == PAWL_OK;
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static pawl_status locate(struct erase_walk *work, struct scope *scope)
{
    struct definition_slot *slot;
    struct head head;

    id_print(work->target.number, work->row.random, work->id);
    TRY(engine_locate(work->erasing->engine, scope, str_of(work->id), &head, &slot));
    work->last_pos = head.pos;
    if (slot->definition->states[head.state].terminal == TERMINAL_NOT)
        return scope_fail(scope, PAWL_CONFLICT,
                          "instance '%s' has not ended: expected one that has; cancel it first",
                          work->id);
    return hold_check(work->erasing->engine, scope, str_of(work->id));
}

static pawl_status gather(struct erase_walk *work, struct scope *row_scope, struct scope *page)
{
    struct erasing *erasing = work->erasing;
    bool before = false;
    pawl_status status =
        store_instance(erasing->engine->store, row_scope, work->target.number, &work->row);

    work->row.number = work->target.number;
    status = status ? status : locate(work, row_scope);
    if (status)
        erasing->reading.error = row_scope->error;
    TRY(status);
    TRY(is_erased(work, &before));
    TRY(walk(work, page));
    TRY_MEMORY(&erasing->reading, map_put(&erasing->gone, work->target.number, 0));
    erasing->out->repeated += before;
    if (before)
        return PAWL_OK;
    TRY(add_target(work, true));
    return erase_is_full(&erasing->slice) ? erase_flush(erasing) : PAWL_OK;
}

pawl_status erase_gather(struct erasing *erasing, uint64_t number)
{
    struct erase_walk work = { .erasing = erasing, .target.number = number };
    struct scope row, page;
    pawl_status status;

    scope_init(&row, erasing->engine->heap, LIMIT_SCOPE);
    scope_init(&page, erasing->engine->heap, LIMIT_SCOPE);
    status = gather(&work, &row, &page);
    scope_fini(&page);
    scope_fini(&row);
    return status;
}
