/* memory_live.c - the memory store: the live rows of one instance, and how rows are listed. */
#include "base/grow.h"
#include "store/memory/memory_int.h"

bool found_add(struct found *found, const void *row)
{
    if (!arena_grow(found->arena, &found->rows, found->count, &found->capacity, found->size))
        return false;
    memcpy((char *)found->rows + found->size * found->count++, row, found->size);
    return true;
}

struct live_timer timer_of(const struct row *row, struct arena *arena)
{
    return (struct live_timer){ .instance = row->instance,
                                .ordinal = row->ordinal,
                                .name = arena_str(arena, row->name),
                                .due_at_ms = row->due_at_ms,
                                .wall = row->wall,
                                .shift_ms = row->shift_ms };
}

static struct live_step step_of(const struct row *row, struct arena *arena)
{
    return (struct live_step){ .ordinal = row->ordinal,
                               .plan = row->plan,
                               .attempt = row->attempt,
                               .status = row->status,
                               .lease = arena_str(arena, row->text),
                               .lease_ms = row->due_at_ms,
                               .ready_at_ms = row->ready_at_ms };
}

static struct live_wait wait_of(const struct row *row, struct arena *arena)
{
    return (struct live_wait){ .ordinal = row->ordinal,
                               .name = arena_str(arena, row->name),
                               .value =
                                   row->text.size > 0 ? arena_str(arena, row->text) : STR_NONE };
}

struct live live_of_instance(const struct disk *disk, uint64_t instance, struct arena *arena)
{
    const struct row first = { .instance = instance, .kind = ROW_STEP };
    const struct row *row = tree_seek(&disk->rows, &first, false);
    struct found steps = { .arena = arena, .size = sizeof(struct live_step) };
    struct found timers = { .arena = arena, .size = sizeof(struct live_timer) };
    struct found waits = { .arena = arena, .size = sizeof(struct live_wait) };
    struct found children = { .arena = arena, .size = sizeof(struct live_child) };
    uint64_t paused_pos = 0;
    bool added = true;

    for (; added && row && row->instance == instance && row->kind <= ROW_WAIT;
         row = tree_seek(&disk->rows, row, true))
        if (row->kind == ROW_STEP)
            added = found_add(&steps, &(struct live_step[]){ step_of(row, arena) });
        else if (row->kind == ROW_TIMER)
            added = found_add(&timers, &(struct live_timer[]){ timer_of(row, arena) });
        else if (row->kind == ROW_PAUSE)
            paused_pos = row->number;
        else
            added = found_add(&waits, &(struct live_wait[]){ wait_of(row, arena) });
    list_children(disk, &(struct child_query){ .parent = instance, .limit = UINT32_MAX },
                  &children);
    return (struct live){ .steps = steps.rows,
                          .step_count = steps.count,
                          .timers = timers.rows,
                          .timer_count = timers.count,
                          .waits = waits.rows,
                          .wait_count = waits.count,
                          .children = children.rows,
                          .child_count = children.count,
                          .paused_pos = paused_pos };
}

pawl_status memory_live(struct store *store, struct scope *scope, uint64_t instance,
                        struct live *out)
{
    struct disk *disk = disk_lock(store);
    struct live live = live_of_instance(disk, instance, &scope->arena);

    TRY(read_end(disk, scope));
    *out = live;
    return PAWL_OK;
}
