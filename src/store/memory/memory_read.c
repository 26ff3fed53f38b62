/* memory_read.c - the memory store: opening, closing, reading.
 *
 * "memory:" is private and goes with its handle. "memory:NAME" is one store for the whole
 * process, kept in a registry until its end: tests and simulators close and reopen it as
 * if it were a file. It outlives its handles, and with them the heap they were given, so
 * it lives on libc's.
 *
 * Every read holds the disk's lock and copies into the scope, except scan(): records never
 * move or change, so its callback gets them as they lie, without the lock, and may read. */
#include "model/grow.h"
#include "store/memory/memory_int.h"

/* ---- Opening and closing ---- */

static struct {
    pthread_mutex_t lock;
    struct disk *first;
} registry = { PTHREAD_MUTEX_INITIALIZER, NULL }; /* of the named ones alone */

/* Every row, without keeping the tree in order: turn left branches over until there is none,
 * free, go right. */
static void free_rows(struct disk *disk)
{
    struct row *row = disk->rows.root, *next;

    for (; row; row = next) {
        next = row->link[0].left;
        if (next) {
            row->link[0].left = next->link[0].right;
            next->link[0].right = row;
        } else {
            next = row->link[0].right;
            row_free(disk, row);
        }
    }
}

static void disk_free(struct disk *disk)
{
    free_rows(disk);
    for (size_t i = 0; i < disk->cells.count; i++)
        heap_free(disk->heap, disk->cells.slots[i].item, sizeof(struct cell));
    table_free(disk->heap, &disk->records);
    table_free(disk->heap, &disk->values);
    table_free(disk->heap, &disk->definitions);
    table_free(disk->heap, &disk->cells);
    disk_free_blocks(disk, NULL);
    heap_free(disk->heap, disk->name, disk->name_size + 1);
    pthread_cond_destroy(&disk->turn_over);
    pthread_mutex_destroy(&disk->lock);
    heap_free(disk->heap, disk, sizeof *disk);
}

static struct disk *disk_new(const struct heap *heap, struct env *env)
{
    struct disk *disk = heap_new(heap, sizeof *disk);

    if (!disk)
        return NULL;
    disk->heap = heap;
    disk->rows = (struct tree){ NULL, 0, compare_keys };
    disk->due = (struct tree){ NULL, 1, compare_due };
    disk->busy = (struct tree){ NULL, 1, compare_keys };
    pthread_mutex_init(&disk->lock, NULL); /* neither fails here: no attributes, no system */
    pthread_cond_init(&disk->turn_over, NULL);
    env->random(env, disk->tip.store_id, STORE_ID_SIZE);
    return disk;
}

static struct disk **find_named(str name)
{
    struct disk **at = &registry.first;

    while (*at && !str_eq((str){ (*at)->name, (*at)->name_size }, name))
        at = &(*at)->next;
    return at;
}

static struct disk *make_named(str name, struct env *env)
{
    struct disk *disk = disk_new(&heap_libc, env);

    if (!disk)
        return NULL;
    disk->name = heap_new(&heap_libc, name.size + 1);
    if (!disk->name) {
        disk_free(disk);
        return NULL;
    }
    memcpy(disk->name, name.data, name.size);
    disk->name_size = name.size;
    disk->next = registry.first;
    return registry.first = disk;
}

/* Under the registry's lock: what the name stands for, made if need be. */
static pawl_status find_disk(str name, const struct store_options *options, struct scope *scope,
                             struct disk **out)
{
    struct disk *disk = name.size > 0 ? *find_named(name) : NULL;

    if (!disk && !options->create)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no store memory:%.*s", STR_ARG(name));
    if (!disk)
        disk =
            name.size > 0 ? make_named(name, options->env) : disk_new(options->heap, options->env);
    if (!disk)
        return scope_no_memory(scope);
    if (options->own && disk->owner)
        return disk_fail_in_use(disk, scope);
    *out = disk;
    return PAWL_OK;
}

static void own(struct memory *memory, const char *address)
{
    struct disk *disk = disk_lock(&memory->store);
    str text = str_of(address);

    text.size = text.size < sizeof disk->owner_address ? text.size : sizeof disk->owner_address - 1;
    disk->owner = memory;
    memset(disk->owner_address, 0, sizeof disk->owner_address);
    if (text.size > 0)
        memcpy(disk->owner_address, text.data, text.size);
    disk_unlock(disk);
}

static pawl_status memory_open(str rest, const struct store_options *options, struct scope *scope,
                               struct store **out)
{
    struct memory *memory = heap_new(options->heap, sizeof *memory);
    pawl_status status;

    if (!memory)
        return scope_no_memory(scope);
    *memory = (struct memory){ { &memory_store_ops }, options->heap, NULL };
    pthread_mutex_lock(&registry.lock);
    status = find_disk(rest, options, scope, &memory->disk);
    if (status == PAWL_OK) {
        memory->disk->handle_count++;
        if (options->own)
            own(memory, options->address);
        *out = &memory->store;
    } else
        heap_free(options->heap, memory, sizeof *memory);
    pthread_mutex_unlock(&registry.lock);
    return status;
}

static void memory_close(struct store *store)
{
    struct memory *memory = (struct memory *)store;
    struct disk *disk;

    pthread_mutex_lock(&registry.lock);
    disk = disk_lock(store);
    if (disk->writer == memory)
        disk_end_turn(disk);
    if (disk->owner == memory)
        disk->owner = NULL;
    disk->handle_count--;
    disk_unlock(disk);
    if (!disk->name)
        disk_free(disk);
    pthread_mutex_unlock(&registry.lock);
    heap_free(memory->heap, memory, sizeof *memory);
}

/* ---- By number ---- */

/* How a read ends: unlock, and OK unless something was missing or could not be copied. */
static pawl_status finish(struct disk *disk, struct scope *scope, bool found, const char *what,
                          uint64_t number)
{
    disk_unlock(disk);
    if (!found)
        return number > 0 ? scope_fail(scope, PAWL_NOT_KNOWN, "the store has no %s %llu", what,
                                       (unsigned long long)number)
                          : scope_fail(scope, PAWL_NOT_KNOWN, "the store has no such %s", what);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

static pawl_status memory_tip(struct store *store, struct scope *scope, struct store_tip *out)
{
    struct disk *disk = disk_lock(store);

    (void)scope;
    *out = disk->tip;
    disk_unlock(disk);
    return PAWL_OK;
}

/* Where an instance really stands: the row, unless the log has gone on since. */
static struct head_row head_now(const struct cell *cell)
{
    return cell->has_head && cell->head.pos >= cell->latest.pos ? cell->head : cell->latest;
}

static pawl_status memory_head(struct store *store, struct scope *scope, uint64_t instance,
                               bool trust_rows, struct head_row *out)
{
    struct disk *disk = disk_lock(store);
    const struct cell *cell = table_find(&disk->cells, instance);
    struct head_row head = { 0 };
    bool found = cell && (cell->has_head || (!trust_rows && cell->latest.pos > 0));
    pawl_status status;

    if (found)
        head = trust_rows ? cell->head : head_now(cell);
    status = finish(disk, scope, found, "instance", instance);
    if (status == PAWL_OK)
        *out = head;
    return status;
}

static pawl_status memory_instance(struct store *store, struct scope *scope, uint64_t number,
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
    status = finish(disk, scope, found, "instance", number);
    if (status == PAWL_OK)
        *out = row;
    return status;
}

static pawl_status memory_record(struct store *store, struct scope *scope, uint64_t pos,
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
    status = finish(disk, scope, found, "record", pos);
    if (status == PAWL_OK)
        *out = record;
    return status;
}

static pawl_status memory_scan(struct store *store, struct scope *scope, uint64_t from,
                               record_fn fn, void *context)
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
    status = finish(disk, scope, found, "value", id);
    if (status == PAWL_OK)
        *out = value;
    return status;
}

static pawl_status memory_value(struct store *store, struct scope *scope, uint64_t id,
                                struct value *out)
{
    return copy_value(disk_lock(store), scope, id, out);
}

static uint64_t number_of(const struct disk *disk, const struct row *key) /* 0: no such row */
{
    const struct row *row = tree_seek(&disk->rows, key, false);

    return row && compare_keys(row, key) == 0 ? row->number : 0;
}

static pawl_status memory_find_value(struct store *store, struct scope *scope, str bytes,
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
    status = finish(disk, scope, found, "definition", id);
    if (status == PAWL_OK)
        *out = row;
    return status;
}

static pawl_status memory_definition(struct store *store, struct scope *scope, uint32_t id,
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

static pawl_status memory_find_definition(struct store *store, struct scope *scope, str name,
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

static pawl_status memory_definitions(struct store *store, struct scope *scope, str after,
                                      uint32_t limit, struct definition_row **out, uint32_t *count)
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
    status = finish(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = rows, *count = found;
    return status;
}

/* ---- Live rows ---- */

static bool add_step(struct live *live, uint32_t *capacity, const struct row *row,
                     struct arena *arena)
{
    live->steps = grow_array(arena, live->steps, live->step_count, capacity, sizeof *live->steps);
    if (live->steps)
        live->steps[live->step_count++] =
            (struct live_step){ row->ordinal, row->plan, row->attempt, row->status };
    return live->steps;
}

static bool add_timer(struct live_timer **timers, uint32_t *count, uint32_t *capacity,
                      const struct row *row, struct arena *arena)
{
    *timers = grow_array(arena, *timers, *count, capacity, sizeof **timers);
    if (*timers)
        (*timers)[(*count)++] = (struct live_timer){ row->instance, row->ordinal,
                                                     arena_str(arena, row->name), row->due_at_ms };
    return *timers;
}

static bool add_wait(struct live *live, uint32_t *capacity, const struct row *row,
                     struct arena *arena)
{
    live->waits = grow_array(arena, live->waits, live->wait_count, capacity, sizeof *live->waits);
    if (live->waits)
        live->waits[live->wait_count++] =
            (struct live_wait){ row->ordinal, arena_str(arena, row->name) };
    return live->waits;
}

static pawl_status memory_live(struct store *store, struct scope *scope, uint64_t instance,
                               struct live *out)
{
    struct disk *disk = disk_lock(store);
    const struct row first = { .instance = instance, .kind = ROW_STEP };
    const struct row *row = tree_seek(&disk->rows, &first, false);
    uint32_t capacity[ROW_WAIT + 1] = { 0 };
    struct live live = { 0 };
    bool added = true;
    pawl_status status;

    for (; added && row && row->instance == instance && row->kind <= ROW_WAIT;
         row = tree_seek(&disk->rows, row, true))
        if (row->kind == ROW_STEP)
            added = add_step(&live, &capacity[ROW_STEP], row, &scope->arena);
        else if (row->kind == ROW_TIMER)
            added = add_timer(&live.timers, &live.timer_count, &capacity[ROW_TIMER], row,
                              &scope->arena);
        else
            added = add_wait(&live, &capacity[ROW_WAIT], row, &scope->arena);
    status = finish(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = live;
    return status;
}

static pawl_status memory_due(struct store *store, struct scope *scope, int64_t now_ms,
                              uint32_t limit, struct live_timer **out, uint32_t *count,
                              int64_t *next_ms)
{
    struct disk *disk = disk_lock(store);
    const struct row first = { .due_at_ms = INT64_MIN };
    const struct row *row = tree_seek(&disk->due, &first, false);
    struct live_timer *timers = NULL;
    uint32_t found = 0, capacity = 0;
    int64_t next;
    pawl_status status;

    while (row && row->due_at_ms <= now_ms && found < limit &&
           add_timer(&timers, &found, &capacity, row, &scope->arena))
        row = tree_seek(&disk->due, row, true);
    next = row ? row->due_at_ms : INT64_MAX;
    status = finish(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = timers, *count = found, *next_ms = next;
    return status;
}

static const struct row *busy_from(const struct disk *disk, uint64_t instance)
{
    return tree_seek(&disk->busy, &(struct row){ .instance = instance }, false);
}

static bool add_number(uint64_t **numbers, uint32_t *count, uint32_t *capacity, uint64_t number,
                       struct arena *arena)
{
    *numbers = grow_array(arena, *numbers, *count, capacity, sizeof **numbers);
    if (*numbers)
        (*numbers)[(*count)++] = number;
    return *numbers;
}

static pawl_status memory_busy(struct store *store, struct scope *scope, uint64_t after,
                               uint32_t limit, uint64_t **out, uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    const struct row *row = busy_from(disk, after + 1);
    uint64_t *numbers = NULL;
    uint32_t found = 0, capacity = 0;
    pawl_status status;

    while (row && found < limit &&
           add_number(&numbers, &found, &capacity, row->instance, &scope->arena))
        row = busy_from(disk, row->instance + 1);
    status = finish(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = numbers, *count = found;
    return status;
}

static pawl_status memory_snapshot(struct store *store, struct scope *scope, uint64_t instance,
                                   struct snapshot_row *out)
{
    struct disk *disk = disk_lock(store);
    const struct row key = { .instance = instance, .kind = ROW_SNAPSHOT };
    const struct row *row = tree_seek(&disk->rows, &key, false);
    bool found = row && compare_keys(row, &key) == 0;
    struct snapshot_row snapshot = { .instance = instance };
    pawl_status status;

    if (found) {
        snapshot.seq = row->number;
        snapshot.text = arena_str(&scope->arena, row->text);
    }
    status = finish(disk, scope, found, "snapshot of instance", instance);
    if (status == PAWL_OK)
        *out = snapshot;
    return status;
}

/* ---- list ---- */

static bool fits_text(str wanted, str found)
{
    return !wanted.data || (found.data && str_eq(wanted, found));
}

static const char *status_of(const struct disk *disk, const struct cell *cell,
                             enum terminal_kind terminal)
{
    const struct row *busy;

    switch (terminal) {
    case TERMINAL_PLAIN:
    case TERMINAL_SUCCESS:
        return "completed";
    case TERMINAL_FAILURE:
        return "failed";
    case TERMINAL_CANCEL:
        return "cancelled";
    case TERMINAL_NOT:
        break;
    }
    busy = busy_from(disk, cell->row.number);
    return busy && busy->instance == cell->row.number ? "running" : "suspended";
}

static bool is_status(str status)
{
    static const char *const all[] = { "running", "suspended", "completed", "failed", "cancelled" };
    bool known = false;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        known = known || str_is(status, all[i]);
    return known;
}

static bool fits_state(const struct disk *disk, const struct list_query *query,
                       const struct cell *cell, const struct memory_definition *definition)
{
    uint32_t state = head_now(cell).state;

    if (!query->state.data && !query->status.data)
        return true;
    return state < definition->state_count &&
           fits_text(query->state, definition->states[state].name) &&
           fits_text(query->status,
                     str_of(status_of(disk, cell, definition->states[state].terminal)));
}

static bool fits_definition(const struct list_query *query,
                            const struct memory_definition *definition)
{
    return fits_text(query->definition, definition->row.name) &&
           (query->version == 0 || query->version == definition->row.version) &&
           (query->kind == 0 || query->kind == definition->row.kind);
}

static bool fits_row(const struct disk *disk, const struct list_query *query,
                     const struct instance_row *row)
{
    const struct value *subject = table_find(&disk->values, row->subject);

    return fits_text(query->subject, subject ? subject->bytes : STR_NONE) &&
           fits_text(query->correlation, row->correlation) &&
           (!query->has_created_after || row->instantiated_at_ms >= query->created_after_ms) &&
           (!query->has_created_before || row->instantiated_at_ms <= query->created_before_ms);
}

/* Labels are parsed in a scratch scope: a sparse filter looks at a million of them. */
static pawl_status fits_labels(const struct list_query *query, str labels, struct scope *scratch,
                               bool *out)
{
    struct node *object = NULL;
    pawl_status status = PAWL_OK;
    bool fits = true;

    if (query->label_count > 0 && labels.data)
        status = node_read_json(scratch, labels, &object);
    for (uint32_t i = 0; i < query->label_count && fits; i++) {
        const struct node *label = object ? node_find_str(object, query->label_key[i]) : NULL;

        fits = label && label->kind == NODE_STRING && str_eq(label->text, query->label_value[i]);
    }
    scope_clear(scratch);
    *out = fits;
    return status == PAWL_NO_MEMORY ? status : PAWL_OK; /* what is no JSON has no labels */
}

static pawl_status fits(const struct disk *disk, const struct list_query *query,
                        const struct cell *cell, struct scope *scratch, bool *out)
{
    const struct memory_definition *definition;

    *out = false;
    if (!cell->has_row)
        return PAWL_OK;
    definition = table_find(&disk->definitions, cell->row.definition);
    if (!definition || !fits_definition(query, definition) || !fits_row(disk, query, &cell->row) ||
        !fits_state(disk, query, cell, definition))
        return PAWL_OK;
    return fits_labels(query, cell->row.labels, scratch, out);
}

struct listing {
    uint64_t *numbers;
    uint32_t count, capacity;
};

static pawl_status list_cells(const struct disk *disk, const struct list_query *query,
                              struct scope *scope, struct scope *scratch, struct listing *listing)
{
    const struct table *cells = &disk->cells;
    bool up = query->oldest_first;
    size_t at = table_seek(cells, up ? query->after + 1 : query->after ? query->after : UINT64_MAX);

    while ((up ? at < cells->count : at > 0) && listing->count < query->limit) {
        const struct cell *cell = cells->slots[up ? at : at - 1].item;
        bool wanted;
        pawl_status status = fits(disk, query, cell, scratch, &wanted);

        if (status == PAWL_NO_MEMORY ||
            (wanted && !add_number(&listing->numbers, &listing->count, &listing->capacity,
                                   cell->row.number, &scope->arena)))
            return scope_no_memory(scope);
        at = up ? at + 1 : at - 1;
    }
    return PAWL_OK;
}

static pawl_status memory_list(struct store *store, struct scope *scope,
                               const struct list_query *query, uint64_t **out, uint32_t *count)
{
    struct listing listing = { 0 };
    struct scope scratch;
    struct disk *disk;
    pawl_status status;

    if (query->status.data && !is_status(query->status))
        return scope_fail(scope, PAWL_INVALID_QUERY,
                          "status: expected running, suspended, completed, failed or cancelled, "
                          "found '%.*s'",
                          STR_ARG(query->status));
    disk = disk_lock(store);
    scope_init(&scratch, disk->heap, 0);
    status = list_cells(disk, query, scope, &scratch, &listing);
    scope_fini(&scratch);
    disk_unlock(disk);
    if (status == PAWL_OK)
        *out = listing.numbers, *count = listing.count;
    return status;
}

const struct store_ops memory_store_ops = {
    .scheme = "memory",
    .open = memory_open,
    .close = memory_close,
    .begin = memory_begin,
    .commit = memory_commit,
    .rollback = memory_rollback,
    .tip = memory_tip,
    .head = memory_head,
    .instance = memory_instance,
    .record = memory_record,
    .scan = memory_scan,
    .value = memory_value,
    .find_value = memory_find_value,
    .definition = memory_definition,
    .find_definition = memory_find_definition,
    .definitions = memory_definitions,
    .live = memory_live,
    .due = memory_due,
    .busy = memory_busy,
    .snapshot = memory_snapshot,
    .list = memory_list,
};
