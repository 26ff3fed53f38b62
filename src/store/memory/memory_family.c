/* memory_family.c - the memory store: children that somebody waits for, and who awaits a signal. */
#include "model/grow.h"
#include "store/memory/memory_int.h"

static bool is_asked_for(const struct row *row, const struct child_query *query)
{
    return row->kind == ROW_CHILD && row->instance > query->after &&
           (!query->child || row->instance == query->child) &&
           (!query->parent || row->number == query->parent) &&
           (!query->ordinal || row->plan == query->ordinal) && (!query->ended || row->attempt == 1);
}

static bool add_child(const struct row *row, struct arena *arena, struct live_child **out,
                      uint32_t *count, uint32_t *capacity)
{
    *out = grow_array(arena, *out, *count, capacity, sizeof **out);
    if (*out)
        (*out)[(*count)++] = (struct live_child){ .child = row->instance,
                                                  .parent = row->number,
                                                  .ordinal = row->plan,
                                                  .abandon = row->test,
                                                  .ended = row->attempt == 1 };
    return *out;
}

bool list_children(const struct disk *disk, const struct child_query *query, struct arena *arena,
                   struct live_child **out, uint32_t *count)
{
    struct row first = { .number = query->parent };
    const struct row *row;
    uint32_t capacity = 0;
    bool added = true;

    *out = NULL;
    *count = 0;
    for (row = tree_seek(&disk->children, &first, false);
         row && added && *count < query->limit && (!query->parent || row->number == query->parent);
         row = tree_seek(&disk->children, row, true))
        if (is_asked_for(row, query))
            added = add_child(row, arena, out, count, &capacity);
    return added;
}

pawl_status memory_children(struct store *store, struct scope *scope,
                            const struct child_query *query, struct live_child **out,
                            uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    const struct row key = { .instance = query->child, .kind = ROW_CHILD };
    const struct row *row = query->child ? tree_seek(&disk->rows, &key, false) : NULL;
    struct live_child *found = NULL;
    uint32_t found_count = 0, capacity = 0;
    pawl_status status;

    if (!query->child)
        (void)list_children(disk, query, &scope->arena, &found, &found_count);
    else if (row && compare_keys(row, &key) == 0 && is_asked_for(row, query))
        (void)add_child(row, &scope->arena, &found, &found_count, &capacity);
    status = read_end(disk, scope, true, NULL, 0); /* says if there was no memory */
    if (status == PAWL_OK)
        *out = found, *count = found_count;
    return status;
}

/* The first instance behind `after` that has such a row; 0: none. */
static uint64_t next_waiting(struct disk *disk, str name, str filter, uint64_t after)
{
    const struct row first = { .name = name, .instance = after + 1 };
    const struct row *row = name.data ? tree_seek(&disk->waits, &first, false) : NULL;

    while (row && str_eq(row->name, name) && filter.data && !str_eq(row->text, filter))
        row = tree_seek(&disk->waits, row, true);
    return row && str_eq(row->name, name) ? row->instance : 0;
}

static uint64_t earlier(uint64_t one, uint64_t other)
{
    return one && (!other || one < other) ? one : other;
}

static uint64_t next_of_all(struct disk *disk, const struct wait_query *query, uint64_t after)
{
    uint64_t next = earlier(next_waiting(disk, query->name, query->filter, after),
                            next_waiting(disk, query->also, STR_NONE, after));

    if (!query->or_filter.data)
        return next;
    next = earlier(next, next_waiting(disk, query->name, query->or_filter, after));
    return earlier(next, next_waiting(disk, query->or_also, STR_NONE, after));
}

pawl_status memory_waiting(struct store *store, struct scope *scope, const struct wait_query *query,
                           uint64_t **out, uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    uint64_t *numbers = NULL, last = query->after;
    uint32_t found = 0, capacity = 0;
    bool added = true;
    pawl_status status;

    while (added && found < query->limit) {
        last = next_of_all(disk, query, last);
        if (!last)
            break;
        added = add_number(&numbers, &found, &capacity, last, &scope->arena);
    }
    status = read_end(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = numbers, *count = found;
    return status;
}
