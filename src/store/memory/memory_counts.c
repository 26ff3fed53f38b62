/* memory_counts.c - the memory store: how many instances stand where. */
#include "store/memory/memory_int.h"

/* One count for each state of each definition, in the order of their numbers. */
struct counting {
    const struct disk *disk;
    size_t *first; /* of each definition's counts */
    struct state_count *all;
    size_t count;
};

static const struct memory_definition *definition_at(const struct disk *disk, size_t index)
{
    return disk->definitions.slots[index].item;
}

static bool counting_begin(struct counting *counting, struct scope *scope)
{
    const struct disk *disk = counting->disk;
    size_t definitions = disk->definitions.count;

    counting->first = ARENA_ARRAY(&scope->arena, size_t, definitions + 1);
    for (size_t i = 0; i < definitions && counting->first; i++) {
        counting->first[i] = counting->count;
        counting->count += definition_at(disk, i)->state_count;
    }
    counting->all = ARENA_ARRAY(&scope->arena, struct state_count, counting->count + 1);
    return !scope->arena.failed;
}

static void count_cell(struct counting *counting, const struct cell *cell)
{
    const struct table *definitions = &counting->disk->definitions;
    size_t at = table_seek(definitions, cell->row.definition);
    uint32_t state = head_now(cell).state;
    const struct row *busy = busy_from(counting->disk, cell->row.number);

    if (!cell->has_row || at == definitions->count ||
        definitions->slots[at].id != cell->row.definition ||
        state >= definition_at(counting->disk, at)->state_count)
        return;
    counting->all[counting->first[at] + state].total++;
    if (pause_of(counting->disk, cell->row.number))
        counting->all[counting->first[at] + state].paused++;
    else if (busy && busy->instance == cell->row.number)
        counting->all[counting->first[at] + state].running++;
}

/* Only what is wanted and not nothing, with its names. */
static uint32_t keep(struct counting *counting, struct scope *scope, str name, uint32_t version)
{
    uint32_t kept = 0;

    for (size_t i = 0; i < counting->disk->definitions.count; i++) {
        const struct memory_definition *definition = definition_at(counting->disk, i);

        if (name.data && (!str_eq(definition->row.name, name) ||
                          (version != 0 && version != definition->row.version)))
            continue;
        for (size_t s = 0; s < definition->state_count; s++) {
            struct state_count one = counting->all[counting->first[i] + s];

            if (one.total == 0)
                continue;
            one.definition = arena_str(&scope->arena, definition->row.name);
            one.version = definition->row.version;
            one.state = arena_str(&scope->arena, definition->states[s].name);
            one.terminal = definition->states[s].terminal;
            counting->all[kept++] = one;
        }
    }
    return kept;
}

pawl_status memory_counts(struct store *store, struct scope *scope, str name, uint32_t version,
                          struct state_count **out, uint32_t *count)
{
    struct disk *disk = disk_lock(store);
    struct counting counting = { .disk = disk };
    uint32_t kept = 0;

    if (counting_begin(&counting, scope)) {
        for (size_t i = 0; i < disk->cells.count; i++)
            count_cell(&counting, disk->cells.slots[i].item);
        kept = keep(&counting, scope, name, version);
    }
    TRY(read_end(disk, scope));
    *out = counting.all, *count = kept;
    return PAWL_OK;
}
