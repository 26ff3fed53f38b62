/* memory_read.c - the memory store: one row by its name, and records.
 *
 * Every read holds the disk's lock and copies into the scope, except scan(): records never
 * move or change, so its callback gets them as they lie, without the lock, and may read. */
#include "store/instance_log.h"
#include "store/memory/memory_int.h"

pawl_status read_end(struct disk *disk, struct scope *scope)
{
    disk_unlock(disk);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

pawl_status memory_tip(struct store *store, struct scope *scope, struct store_tip *out)
{
    struct disk *disk = disk_lock(store);

    (void)scope;
    *out = disk->tip;
    disk_unlock(disk);
    return PAWL_OK;
}

struct head_row head_now(const struct cell *cell)
{
    return cell->has_head && cell->head.pos >= cell->latest.pos ? cell->head : cell->latest;
}

pawl_status memory_records(struct store *store, struct scope *scope, const uint64_t *positions,
                           uint32_t count, struct record *out, uint32_t *read)
{
    size_t begun = scope->arena.used;
    pawl_status status = PAWL_OK;

    for (*read = 0; status == PAWL_OK && *read < count; (*read)++) {
        if (*read > 0 && scope->arena.used - begun >= RECORDS_BYTES)
            break;
        status = memory_find_row(
            store, scope, &(struct find_query){ FIND_RECORD, { positions[*read] } }, &out[*read]);
    }
    return status;
}

pawl_status memory_scan(struct store *store, struct scope *scope, uint64_t from, record_fn fn,
                        void *context)
{
    pawl_status status = PAWL_OK;

    (void)scope;
    for (uint64_t pos = from > 0 ? from : 1; status == PAWL_OK; pos++) {
        struct disk *disk = disk_lock(store);
        const struct record *record = table_find(&disk->records, pos);

        disk_unlock(disk);
        if (!record)
            break;
        status = fn(context, record);
    }
    return status;
}

/* ---- One row ---- */

static bool find_head(const struct disk *disk, const struct find_query *query, struct head_row *out)
{
    uint64_t instance = query->by.head.instance;
    bool trust_rows = query->by.head.trust_rows;
    const struct cell *cell = table_find(&disk->cells, instance);

    if (!cell || (!cell->has_head && (trust_rows || cell->latest.pos == 0)))
        return false;
    *out = trust_rows ? cell->head : head_now(cell);
    out->paused = pause_of(disk, instance);
    return true;
}

static bool find_instance(const struct disk *disk, uint64_t number, struct arena *arena,
                          struct instance_row *out)
{
    const struct cell *cell = table_find(&disk->cells, number);

    if (!cell || !cell->has_row)
        return false;
    *out = cell->row;
    out->correlation = arena_str(arena, out->correlation);
    out->labels = arena_str(arena, out->labels);
    return true;
}

static bool find_record(const struct disk *disk, uint64_t pos, struct arena *arena,
                        struct record *out)
{
    const struct record *found = table_find(&disk->records, pos);

    if (!found)
        return false;
    *out = *found;
    out->body = arena_str(arena, out->body);
    out->key = arena_str(arena, out->key);
    return true;
}

static bool find_value(const struct disk *disk, uint64_t id, struct arena *arena, struct value *out)
{
    const struct value *found = table_find(&disk->values, id);

    if (!found)
        return false;
    *out = *found;
    out->bytes = arena_str(arena, out->bytes);
    return true;
}

static bool find_definition(const struct disk *disk, uint64_t id, struct arena *arena,
                            struct definition_row *out)
{
    const struct memory_definition *found = table_find(&disk->definitions, id);

    if (!found)
        return false;
    *out = found->row;
    out->name = arena_str(arena, out->name);
    out->source = arena_str(arena, out->source);
    out->compiled = arena_str(arena, out->compiled);
    return true;
}

const struct row *newest_named(const struct disk *disk, str name, bool past)
{
    const struct row key = { .kind = ROW_NAMED, .name = name, .tie = past ? UINT64_MAX : 0 };
    const struct row *row = tree_seek(&disk->rows, &key, past);

    if (!row || row->instance != 0 || row->kind != ROW_NAMED)
        return NULL;
    return past || str_eq(row->name, name) ? row : NULL;
}

static uint64_t number_of(const struct disk *disk, const struct row *key) /* 0: no such row */
{
    const struct row *row = row_find(disk, key);

    return row ? row->number : 0;
}

static bool find_snapshot(const struct disk *disk, uint64_t instance, struct arena *arena,
                          struct snapshot_row *out)
{
    const struct row *row =
        row_find(disk, &(struct row){ .instance = instance, .kind = ROW_SNAPSHOT });

    if (row)
        *out = (struct snapshot_row){ instance, row->number, arena_str(arena, row->text) };
    return row;
}

static bool find_key(const struct disk *disk, const uint8_t *id, struct key_row *out)
{
    const struct row key = { .kind = ROW_KEY, .name = { (const char *)id, KEY_ID_SIZE } };
    const struct row *row = row_find(disk, &key);

    if (!row)
        return false;
    *out = (struct key_row){ .at_ms = row->due_at_ms, .pos = row->number };
    memcpy(out->id, id, KEY_ID_SIZE);
    return true;
}

static bool find_standing(const struct disk *disk, const struct find_query *query,
                          struct arena *arena, struct standing_row *out)
{
    const struct row *row =
        row_find(disk, &(struct row){ .kind = ROW_STANDING,
                                      .ordinal = (uint32_t)-query->by.standing.what,
                                      .name = query->by.standing.id });

    if (row)
        *out = standing_of(row, arena);
    return row;
}

static bool find_any(const struct disk *disk, const struct find_query *query, struct arena *arena,
                     void *out)
{
    struct row key = { .kind = ROW_VALUE };
    const struct row *row;

    switch (query->kind) {
    case FIND_HEAD:
        return find_head(disk, query, out);
    case FIND_INSTANCE:
        return find_instance(disk, query->by.number, arena, out);
    case FIND_RECORD:
        return find_record(disk, query->by.number, arena, out);
    case FIND_VALUE:
    case FIND_BYTES:
        return find_value(disk, query->by.number, arena, out);
    case FIND_INTERNED:
        key.name = query->by.bytes;
        return find_value(disk, number_of(disk, &key), arena, out);
    case FIND_SNAPSHOT:
        return find_snapshot(disk, query->by.number, arena, out);
    case FIND_KEY:
        return find_key(disk, query->by.hash, out);
    case FIND_STANDING:
        return find_standing(disk, query, arena, out);
    case FIND_DEFINITION:
        return find_definition(disk, query->by.number, arena, out);
    case FIND_NAMED:
        key = (struct row){ .kind = ROW_NAMED,
                            .name = query->by.named.name,
                            .tie = UINT32_MAX - query->by.named.version };
        row = query->by.named.version ? row_find(disk, &key) : newest_named(disk, key.name, false);
        return find_definition(disk, row ? row->number : 0, arena, out);
    case FIND_INLINE:
        key =
            (struct row){ .kind = ROW_INLINE, .name = { (const char *)query->by.hash, SHA_SIZE } };
        return find_definition(disk, number_of(disk, &key), arena, out);
    }
    return false;
}

pawl_status memory_find_row(struct store *store, struct scope *scope,
                            const struct find_query *query, void *out)
{
    struct disk *disk = disk_lock(store);
    bool is_found = find_any(disk, query, &scope->arena, out);
    pawl_status status = read_end(disk, scope);

    if (!is_found)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such %s", find_word(query->kind));
    return status;
}

static struct record without_texts(const struct record *record)
{
    return (struct record){ .pos = record->pos,
                            .seq = record->seq,
                            .prev = record->prev,
                            .skip = record->skip,
                            .what = record->what,
                            .step = record->step,
                            .actor = record->actor,
                            .fired_at_ms = record->fired_at_ms };
}

pawl_status memory_records_of(struct store *store, struct scope *scope, struct chain_query *query,
                              struct record *out, uint32_t room, uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    size_t begun = scope->arena.used;
    bool is_found = true;
    pawl_status status;

    while (query->pos && *count < room && scope->arena.used - begun < RECORDS_BYTES) {
        const struct record *record = table_find(&disk->records, query->pos);

        is_found = record;
        if (!is_found)
            break;
        if (query->with_texts)
            (void)find_record(disk, query->pos, &scope->arena, &out[*count]);
        else
            out[*count] = without_texts(record);
        query->pos = chain_next(query, record);
        ++*count;
    }
    status = read_end(disk, scope);
    return is_found ? status : scope_fail(scope, PAWL_NOT_KNOWN, "there is no such record");
}

pawl_status memory_instance_logs(struct store *store, struct scope *scope,
                                 struct instance_log_query *queries, uint32_t count)
{
    return instance_log_gather(memory_find_row, store, scope, queries, count);
}
