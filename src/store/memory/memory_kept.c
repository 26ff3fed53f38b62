/* memory_kept.c - the memory store: tokens and alarms. There are few of them. */
#include "model/grow.h"
#include "store/memory/memory_int.h"
#include <stdlib.h>

static struct kept_row kept_of(const struct row *row, struct arena *arena)
{
    return (struct kept_row){ .what = -(int32_t)row->ordinal,
                              .id = arena_str(arena, row->name),
                              .due_at_ms = row->due_at_ms,
                              .pos = row->number,
                              .firing_ms = row->firing_ms,
                              .wall = row->wall };
}

pawl_status memory_kept(struct store *store, struct scope *scope, int32_t what, str id,
                        struct kept_row *out)
{
    struct disk *disk = disk_lock(store);
    const struct row key = { .kind = ROW_KEPT, .ordinal = (uint32_t)-what, .name = id };
    const struct row *row = tree_seek(&disk->rows, &key, false);
    bool found = row && compare_keys(row, &key) == 0;
    struct kept_row kept = { 0 };
    pawl_status status;

    if (found)
        kept = kept_of(row, &scope->arena);
    status = read_end(disk, scope, found, "token or alarm", 0);
    if (status == PAWL_OK)
        *out = kept;
    return status;
}

static int compare_kept(const void *a, const void *b)
{
    const struct kept_row *left = a, *right = b;
    int order = (left->due_at_ms > right->due_at_ms) - (left->due_at_ms < right->due_at_ms);

    return order ? order : str_compare(left->id, right->id);
}

/* `wall` NULL: by either clock. */
static pawl_status list_kept(struct store *store, struct scope *scope, int32_t what,
                             const bool *wall, uint32_t limit, struct kept_row **out,
                             uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    const struct row first = { .kind = ROW_KEPT, .ordinal = (uint32_t)-what };
    const struct row *row = tree_seek(&disk->rows, &first, false);
    struct kept_row *rows = NULL;
    uint32_t found = 0, capacity = 0;
    pawl_status status;

    for (; row && row->instance == 0 && row->kind == ROW_KEPT && row->ordinal == first.ordinal;
         row = tree_seek(&disk->rows, row, true)) {
        if (wall && row->wall != *wall)
            continue;
        rows = grow_array(&scope->arena, rows, found, &capacity, sizeof *rows);
        if (!rows)
            break;
        rows[found++] = kept_of(row, &scope->arena);
    }
    status = read_end(disk, scope, true, NULL, 0);
    if (status != PAWL_OK)
        return status;
    if (found > 1)
        qsort(rows, found, sizeof *rows, compare_kept);
    *out = rows;
    *count = found < limit ? found : limit;
    return PAWL_OK;
}

pawl_status memory_kept_list(struct store *store, struct scope *scope, int32_t what, uint32_t limit,
                             struct kept_row **out, uint32_t *count)
{
    return list_kept(store, scope, what, NULL, limit, out, count);
}

pawl_status memory_alarms(struct store *store, struct scope *scope, bool wall, uint32_t limit,
                          struct kept_row **out, uint32_t *count)
{
    return list_kept(store, scope, CONTROL_ALARM, &wall, limit, out, count);
}
