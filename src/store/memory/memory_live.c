/* memory_live.c - the memory store: steps, timers and waits of instances, and snapshots. */
#include "model/grow.h"
#include "store/memory/memory_int.h"
#include "store/past.h"

static bool add_step(struct live *live, uint32_t *capacity, const struct row *row,
                     struct arena *arena)
{
    live->steps = grow_array(arena, live->steps, live->step_count, capacity, sizeof *live->steps);
    if (live->steps)
        live->steps[live->step_count++] = (struct live_step){ .ordinal = row->ordinal,
                                                              .plan = row->plan,
                                                              .attempt = row->attempt,
                                                              .status = row->status,
                                                              .lease = arena_str(arena, row->text),
                                                              .lease_ms = row->due_at_ms,
                                                              .ready_at_ms = row->ready_at_ms };
    return live->steps;
}

static bool add_timer(struct live_timer **timers, uint32_t *count, uint32_t *capacity,
                      const struct row *row, struct arena *arena)
{
    *timers = grow_array(arena, *timers, *count, capacity, sizeof **timers);
    if (*timers)
        (*timers)[(*count)++] = (struct live_timer){ .instance = row->instance,
                                                     .ordinal = row->ordinal,
                                                     .name = arena_str(arena, row->name),
                                                     .due_at_ms = row->due_at_ms,
                                                     .wall = row->wall,
                                                     .shift_ms = row->shift_ms };
    return *timers;
}

static bool add_wait(struct live *live, uint32_t *capacity, const struct row *row,
                     struct arena *arena)
{
    live->waits = grow_array(arena, live->waits, live->wait_count, capacity, sizeof *live->waits);
    if (live->waits)
        live->waits[live->wait_count++] =
            (struct live_wait){ .ordinal = row->ordinal,
                                .name = arena_str(arena, row->name),
                                .value =
                                    row->text.size > 0 ? arena_str(arena, row->text) : STR_NONE };
    return live->waits;
}

pawl_status memory_live(struct store *store, struct scope *scope, uint64_t instance,
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
        else if (row->kind == ROW_PAUSE)
            live.paused_pos = row->number;
        else
            added = add_wait(&live, &capacity[ROW_WAIT], row, &scope->arena);
    added = added &&
            list_children(disk, &(struct child_query){ .parent = instance, .limit = UINT32_MAX },
                          &scope->arena, &live.children, &live.child_count);
    status = read_end(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = live;
    return status;
}

const struct row *pause_of(const struct disk *disk, uint64_t instance)
{
    const struct row key = { .instance = instance, .kind = ROW_PAUSE };
    const struct row *row = tree_seek(&disk->rows, &key, false);

    return row && compare_keys(row, &key) == 0 ? row : NULL;
}

/* The first timer by that clock, at or after this one, whose instance is not paused. */
static const struct row *skip_held(const struct disk *disk, bool wall, const struct row *row)
{
    while (row && row->wall == wall && pause_of(disk, row->instance))
        row = tree_seek(&disk->due, row, true);
    return row && row->wall == wall ? row : NULL;
}

pawl_status memory_due(struct store *store, struct scope *scope, bool wall, int64_t now_ms,
                       uint32_t limit, struct live_timer **out, uint32_t *count, int64_t *next_ms)
{
    struct disk *disk = disk_lock(store);
    const struct row first = { .wall = wall, .due_at_ms = INT64_MIN };
    const struct row *row = skip_held(disk, wall, tree_seek(&disk->due, &first, false));
    struct live_timer *timers = NULL;
    uint32_t found = 0, capacity = 0;
    int64_t next;
    pawl_status status;

    while (row && row->due_at_ms <= now_ms && found < limit &&
           add_timer(&timers, &found, &capacity, row, &scope->arena)) {
        const struct cell *cell = table_find(&disk->cells, row->instance);

        timers[found - 1].definition = cell && cell->has_row ? cell->row.definition : 0;
        row = skip_held(disk, wall, tree_seek(&disk->due, row, true));
    }
    next = row ? row->due_at_ms : INT64_MAX;
    status = read_end(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = timers, *count = found, *next_ms = next;
    return status;
}

const struct row *busy_from(const struct disk *disk, uint64_t instance)
{
    return tree_seek(&disk->busy, &(struct row){ .instance = instance }, false);
}

/* The first step row of any instance from this one on; step rows come first of an instance's. */
static const struct row *stepping_from(const struct disk *disk, uint64_t instance)
{
    const struct row *row;

    do {
        row =
            tree_seek(&disk->rows, &(struct row){ .instance = instance, .kind = ROW_STEP }, false);
        instance = row ? row->instance + 1 : 0;
    } while (row && row->kind != ROW_STEP);
    return row;
}

bool add_number(uint64_t **numbers, uint32_t *count, uint32_t *capacity, uint64_t number,
                struct arena *arena)
{
    *numbers = grow_array(arena, *numbers, *count, capacity, sizeof **numbers);
    if (*numbers)
        (*numbers)[(*count)++] = number;
    return *numbers;
}

pawl_status memory_busy(struct store *store, struct scope *scope, uint64_t after, bool pending,
                        uint32_t limit, uint64_t **out, uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    const struct row *row = pending ? stepping_from(disk, after + 1) : busy_from(disk, after + 1);
    uint64_t *numbers = NULL;
    uint32_t found = 0, capacity = 0;
    pawl_status status;

    while (row && found < limit &&
           add_number(&numbers, &found, &capacity, row->instance, &scope->arena))
        row = pending ? stepping_from(disk, row->instance + 1) : busy_from(disk, row->instance + 1);
    status = read_end(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = numbers, *count = found;
    return status;
}

pawl_status memory_key(struct store *store, struct scope *scope, const uint8_t id[KEY_ID_SIZE],
                       struct key_row *out)
{
    struct disk *disk = disk_lock(store);
    const struct row key = { .kind = ROW_KEY, .name = { (const char *)id, KEY_ID_SIZE } };
    const struct row *row = tree_seek(&disk->rows, &key, false);
    bool found = row && compare_keys(row, &key) == 0;
    struct key_row result = { 0 };
    pawl_status status;

    if (found)
        result = (struct key_row){ .at_ms = row->due_at_ms, .pos = row->number };
    memcpy(result.id, id, KEY_ID_SIZE);
    status = read_end(disk, scope, found, "key", 0);
    if (status == PAWL_OK)
        *out = result;
    return status;
}

pawl_status memory_snapshot(struct store *store, struct scope *scope, uint64_t instance,
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
    status = read_end(disk, scope, found, "snapshot of instance", instance);
    if (status == PAWL_OK)
        *out = snapshot;
    return status;
}

pawl_status memory_pasts(struct store *store, struct scope *scope, struct past_query *queries,
                         uint32_t count)
{
    static const struct past_reads reads = { memory_head, memory_instance, memory_record,
                                             memory_value, memory_snapshot };

    return past_gather(&reads, store, scope, queries, count);
}
