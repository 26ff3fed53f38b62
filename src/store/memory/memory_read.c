/* memory_read.c - the memory store: what is read by number, and definitions.
 *
 * Every read holds the disk's lock and copies into the scope, except scan(): records never
 * move or change, so its callback gets them as they lie, without the lock, and may read. */
#include "model/grow.h"
#include "store/memory/memory_int.h"
#include "store/past.h"

/* ---- By number ---- */

pawl_status read_end(struct disk *disk, struct scope *scope, bool found, const char *what,
                     uint64_t number)
{
    disk_unlock(disk);
    if (!found)
        return number > 0 ? scope_fail(scope, PAWL_NOT_KNOWN, "the store has no %s %llu", what,
                                       (unsigned long long)number)
                          : scope_fail(scope, PAWL_NOT_KNOWN, "the store has no such %s", what);
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

pawl_status memory_head(struct store *store, struct scope *scope, uint64_t instance,
                        bool trust_rows, struct head_row *out)
{
    struct disk *disk = disk_lock(store);
    const struct cell *cell = table_find(&disk->cells, instance);
    struct head_row head = { 0 };
    bool found = cell && (cell->has_head || (!trust_rows && cell->latest.pos > 0));
    pawl_status status;

    if (found)
        head = trust_rows ? cell->head : head_now(cell);
    head.paused = found && pause_of(disk, instance);
    status = read_end(disk, scope, found, "instance", instance);
    if (status == PAWL_OK)
        *out = head;
    return status;
}

pawl_status memory_instance(struct store *store, struct scope *scope, uint64_t number,
                            struct instance_row *out)
{
    struct disk *disk = disk_lock(store);
    const struct cell *cell = table_find(&disk->cells, number);
    struct instance_row row = { 0 };
    bool found = cell && cell->has_row;
    pawl_status status;

    if (found) {
        row = cell->row;
        row.correlation = arena_str(&scope->arena, row.correlation);
        row.labels = arena_str(&scope->arena, row.labels);
    }
    status = read_end(disk, scope, found, "instance", number);
    if (status == PAWL_OK)
        *out = row;
    return status;
}

pawl_status memory_record(struct store *store, struct scope *scope, uint64_t pos,
                          struct record *out)
{
    struct disk *disk = disk_lock(store);
    const struct record *found = table_find(&disk->records, pos);
    struct record record = { 0 };
    pawl_status status;

    if (found) {
        record = *found;
        record.body = arena_str(&scope->arena, record.body);
        record.key = arena_str(&scope->arena, record.key);
    }
    status = read_end(disk, scope, found, "record", pos);
    if (status == PAWL_OK)
        *out = record;
    return status;
}

pawl_status memory_records(struct store *store, struct scope *scope, const uint64_t *positions,
                           uint32_t count, struct record *out, uint32_t *read)
{
    size_t begun = scope->arena.used;
    pawl_status status = PAWL_OK;

    for (*read = 0; status == PAWL_OK && *read < count; (*read)++) {
        if (*read > 0 && scope->arena.used - begun >= RECORDS_BYTES)
            break;
        status = memory_record(store, scope, positions[*read], &out[*read]);
    }
    return status;
}

pawl_status memory_trail(struct store *store, struct scope *scope, const struct trail_query *query,
                         struct trail_row out[TRAIL_ROWS], uint32_t *count, uint64_t *rest)
{
    struct disk *disk = disk_lock(store);
    const struct record *found = NULL;
    uint64_t pos = query->pos;

    for (*count = 0; pos && *count < TRAIL_ROWS; pos = trail_next(query, &out[(*count)++])) {
        found = table_find(&disk->records, pos);
        if (!found)
            break;
        out[*count] = (struct trail_row){ .pos = pos,
                                          .seq = found->seq,
                                          .prev = found->prev,
                                          .skip = found->skip,
                                          .actor = found->actor,
                                          .fired_at_ms = found->fired_at_ms,
                                          .what = found->what };
    }
    *rest = pos;
    return read_end(disk, scope, found != NULL, "record", pos);
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

static pawl_status copy_value(struct disk *disk, struct scope *scope, uint64_t id,
                              struct value *out)
{
    const struct value *found = table_find(&disk->values, id);
    struct value value = { 0 };
    pawl_status status;

    if (found) {
        value = *found;
        value.bytes = arena_str(&scope->arena, value.bytes);
    }
    status = read_end(disk, scope, found, "value", id);
    if (status == PAWL_OK)
        *out = value;
    return status;
}

pawl_status memory_value(struct store *store, struct scope *scope, uint64_t id, struct value *out)
{
    return copy_value(disk_lock(store), scope, id, out);
}

static uint64_t number_of(const struct disk *disk, const struct row *key) /* 0: no such row */
{
    const struct row *row = tree_seek(&disk->rows, key, false);

    return row && compare_keys(row, key) == 0 ? row->number : 0;
}

pawl_status memory_find_value(struct store *store, struct scope *scope, str bytes,
                              struct value *out)
{
    struct disk *disk = disk_lock(store);
    uint64_t id = number_of(disk, &(struct row){ .kind = ROW_VALUE, .name = bytes });

    return copy_value(disk, scope, id, out);
}

/* ---- Definitions ---- */

static pawl_status copy_definition(struct disk *disk, struct scope *scope, uint64_t id,
                                   struct definition_row *out)
{
    const struct memory_definition *found = table_find(&disk->definitions, id);
    struct definition_row row = { 0 };
    pawl_status status;

    if (found) {
        row = found->row;
        row.name = arena_str(&scope->arena, row.name);
        row.source = arena_str(&scope->arena, row.source);
        row.compiled = arena_str(&scope->arena, row.compiled);
    }
    status = read_end(disk, scope, found, "definition", id);
    if (status == PAWL_OK)
        *out = row;
    return status;
}

pawl_status memory_definition(struct store *store, struct scope *scope, uint32_t id,
                              struct definition_row *out)
{
    return copy_definition(disk_lock(store), scope, id, out);
}

/* The newest version of the first name that is `name` or, with `past`, comes after it. */
static const struct row *newest_named(const struct disk *disk, str name, bool past)
{
    const struct row key = { .kind = ROW_NAMED, .name = name, .tie = past ? UINT64_MAX : 0 };
    const struct row *row = tree_seek(&disk->rows, &key, past);

    if (!row || row->instance != 0 || row->kind != ROW_NAMED)
        return NULL;
    return past || str_eq(row->name, name) ? row : NULL;
}

pawl_status memory_find_definition(struct store *store, struct scope *scope, str name,
                                   uint32_t version, const uint8_t *source_sha,
                                   struct definition_row *out)
{
    struct disk *disk = disk_lock(store);
    struct row key = { .kind = ROW_NAMED, .name = name, .tie = UINT32_MAX - version };
    const struct row *newest;

    if (name.size == 0)
        key = (struct row){ .kind = ROW_INLINE, .name = { (const char *)source_sha, SHA_SIZE } };
    else if (version == 0) {
        newest = newest_named(disk, name, false);
        key.tie = newest ? newest->tie : 0;
    }
    return copy_definition(disk, scope, number_of(disk, &key), out);
}

pawl_status memory_definitions(struct store *store, struct scope *scope, str after, uint32_t limit,
                               struct definition_row **out, uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    const struct row *at = newest_named(disk, after, true);
    struct definition_row *rows = NULL;
    uint32_t found = 0, capacity = 0;
    pawl_status status;

    for (; at && found < limit; at = newest_named(disk, at->name, true)) {
        const struct memory_definition *stored = table_find(&disk->definitions, at->number);

        rows = grow_array(&scope->arena, rows, found, &capacity, sizeof *rows);
        if (!rows)
            break;
        rows[found] = stored->row;
        rows[found].name = arena_str(&scope->arena, stored->row.name);
        rows[found].source = rows[found].compiled = STR_NONE;
        found++;
    }
    status = read_end(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = rows, *count = found;
    return status;
}
