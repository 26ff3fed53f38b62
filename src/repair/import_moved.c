/* import_moved.c - timers whose due time is no longer the one that they were armed for.
 *
 * A timer's entry has its due time by the clock that the other store had then. That clock may have
 * been shifted since (the file says by how much each timer has moved), and this store's clock may
 * be away from the wall clock. The import record behind the records says both, because the row of a
 * timer must follow from the log. */
#include "repair/import_int.h"
#include <stdlib.h>

static int compare_moved(const void *a, const void *b)
{
    const struct carried_moved *left = a, *right = b;

    if (left->instance != right->instance)
        return left->instance < right->instance ? -1 : 1;
    if (left->ordinal != right->ordinal)
        return left->ordinal < right->ordinal ? -1 : 1;
    return str_compare(left->name, right->name);
}

void import_sort_moved(struct import *import)
{
    if (import->moved_count > 1)
        qsort(import->moved, import->moved_count, sizeof *import->moved, compare_moved);
}

/* By how much the due time of a timer that is armed differs from that in its entry. */
int64_t import_moved_ms(const struct building *b, const struct carried_instance *instance,
                        const struct live_change *timer)
{
    const struct import *import = b->import;
    struct carried_moved key = { .instance = (uint32_t)(instance - import->instances),
                                 .ordinal = timer->ordinal,
                                 .name = timer->name };
    const struct carried_moved *found = NULL;

    if (timer->timer.wall || timer->timer.due_at_ms >= DUE_NEVER_MS ||
        timer->timer.due_at_ms <= -DUE_NEVER_MS)
        return 0;
    if (import->moved_count > 0)
        found = bsearch(&key, import->moved, import->moved_count, sizeof key, compare_moved);
    return b->offset_ms + (found ? found->by_ms : 0);
}

/* The members of the import record that say so; none if nothing has moved. */
void import_print_moved(const struct building *b, struct buf *out)
{
    const struct import *import = b->import;
    bool is_open = false;

    if (b->offset_ms)
        json_put_i64(out, "offset", b->offset_ms);
    for (uint32_t i = 0; i < import->moved_count; i++) {
        const struct carried_moved *moved = &import->moved[i];

        if (!import->instances[moved->instance].is_taken)
            continue;
        if (!is_open)
            json_put_open(out, "moved", '[');
        is_open = true;
        json_open(out, '[');
        json_text(out, import->instances[moved->instance].id);
        json_str(out, moved->name);
        json_u64(out, moved->ordinal);
        json_i64(out, moved->by_ms);
        json_close(out, ']');
    }
    if (is_open)
        json_close(out, ']');
}
