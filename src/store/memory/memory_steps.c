/* memory_steps.c - the memory store: how many instances of a definition are at which step. */
#include "model/grow.h"
#include "store/memory/memory_int.h"

struct step_counting {
    struct step_count *items; /* in order of version and step */
    uint32_t count, capacity;
};

static bool is_before(const struct step_count *item, uint32_t version, uint32_t plan)
{
    return item->version != version ? item->version < version : item->plan < plan;
}

static bool count_step(struct step_counting *counting, struct arena *arena, uint32_t version,
                       uint32_t plan)
{
    struct step_count *items = counting->items;
    uint32_t at = 0;

    while (at < counting->count && is_before(&items[at], version, plan))
        at++;
    if (at == counting->count || items[at].version != version || items[at].plan != plan) {
        items = grow_array(arena, items, counting->count, &counting->capacity, sizeof *items);
        if (!items)
            return false;
        memmove(items + at + 1, items + at, sizeof *items * (counting->count++ - at));
        items[at] = (struct step_count){ .version = version, .plan = plan };
        counting->items = items;
    }
    items[at].total++;
    return true;
}

/* Every live step of one instance. */
static bool count_steps(const struct disk *disk, struct step_counting *counting,
                        struct arena *arena, uint64_t instance, uint32_t version)
{
    const struct row first = { .instance = instance, .kind = ROW_STEP };
    const struct row *row = tree_seek(&disk->rows, &first, false);
    bool counted = true;

    for (; counted && row && row->instance == instance && row->kind == ROW_STEP;
         row = tree_seek(&disk->rows, row, true))
        counted = count_step(counting, arena, version, row->plan);
    return counted;
}

pawl_status memory_step_counts(struct store *store, struct scope *scope, str name,
                               struct step_count **out, uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    struct step_counting counting = { 0 };
    bool counted = true;
    pawl_status status;

    for (size_t i = 0; counted && i < disk->cells.count; i++) {
        const struct cell *cell = disk->cells.slots[i].item;
        const struct memory_definition *definition =
            cell->has_row ? table_find(&disk->definitions, cell->row.definition) : NULL;

        if (definition && definition->row.name.data && str_eq(definition->row.name, name))
            counted = count_steps(disk, &counting, &scope->arena, cell->row.number,
                                  definition->row.version);
    }
    status = read_end(disk, scope, true, NULL, 0);
    if (status == PAWL_OK)
        *out = counting.items, *count = counting.count;
    return status;
}
