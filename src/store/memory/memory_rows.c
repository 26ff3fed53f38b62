/* memory_rows.c - the memory store: rows of a kind, in its order. */
#include "store/memory/memory_int.h"
#include <stdlib.h>

const struct row *pause_of(const struct disk *disk, uint64_t instance)
{
    return row_find(disk, &(struct row){ .instance = instance, .kind = ROW_PAUSE });
}

/* ---- Definitions ---- */

static void list_definitions(const struct disk *disk, const struct rows_query *query,
                             struct found *found)
{
    const struct row *at = newest_named(disk, query->by.name, true);

    for (; at && found->count < query->limit; at = newest_named(disk, at->name, true)) {
        const struct memory_definition *stored = table_find(&disk->definitions, at->number);
        struct definition_row row = stored->row;

        row.name = arena_str(found->arena, row.name);
        row.source = row.compiled = STR_NONE;
        if (!found_add(found, &row))
            return;
    }
}

/* ---- Timers ---- */

/* The first timer by that clock, at or after this one, whose instance is not paused. */
static const struct row *skip_held(const struct disk *disk, bool wall, const struct row *row)
{
    while (row && row->wall == wall && pause_of(disk, row->instance))
        row = tree_seek(&disk->due, row, true);
    return row && row->wall == wall ? row : NULL;
}

static void list_due(const struct disk *disk, const struct rows_query *query, struct found *found)
{
    bool wall = query->by.clock.wall;
    const struct row first = { .wall = wall, .due_at_ms = INT64_MIN };
    const struct row *row = skip_held(disk, wall, tree_seek(&disk->due, &first, false));

    while (row && row->due_at_ms <= query->by.clock.until_ms && found->count < query->limit) {
        const struct cell *cell = table_find(&disk->cells, row->instance);
        struct live_timer timer = timer_of(row, found->arena);

        timer.definition = cell && cell->has_row ? cell->row.definition : 0;
        if (!found_add(found, &timer))
            return;
        row = skip_held(disk, wall, tree_seek(&disk->due, row, true));
    }
}

/* ---- Instances with steps ---- */

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

static void list_busy(const struct disk *disk, const struct rows_query *query, struct found *found)
{
    const struct row *(*from)(const struct disk *, uint64_t) =
        query->by.numbers.pending ? stepping_from : busy_from;
    const struct row *row = from(disk, query->by.numbers.after + 1);

    for (; row && found->count < query->limit; row = from(disk, row->instance + 1)) {
        struct busy_row busy = { row->instance,
                                 live_of_instance(disk, row->instance, found->arena) };

        if (!found_add(found, &busy))
            return;
    }
}

/* ---- Families ---- */

static bool is_asked_for(const struct row *row, const struct child_query *query)
{
    return row->kind == ROW_CHILD && row->instance > query->after &&
           (!query->child || row->instance == query->child) &&
           (!query->parent || row->number == query->parent) &&
           (!query->ordinal || row->plan == query->ordinal) && (!query->ended || row->attempt == 1);
}

static bool add_child(struct found *found, const struct row *row)
{
    return found_add(found, &(struct live_child){ .child = row->instance,
                                                  .parent = row->number,
                                                  .ordinal = row->plan,
                                                  .abandon = row->test,
                                                  .ended = row->attempt == 1 });
}

void list_children(const struct disk *disk, const struct child_query *query, struct found *found)
{
    const struct row first = { .number = query->parent };
    const struct row key = { .instance = query->child, .kind = ROW_CHILD };
    const struct row *row = query->child ? row_find(disk, &key) : NULL;

    if (row && is_asked_for(row, query))
        (void)add_child(found, row);
    if (query->child)
        return;
    for (row = tree_seek(&disk->children, &first, false);
         row && found->count < query->limit && (!query->parent || row->number == query->parent);
         row = tree_seek(&disk->children, row, true))
        if (is_asked_for(row, query) && !add_child(found, row))
            return;
}

/* The first instance behind `after` that has such a row; 0: none. */
static uint64_t next_waiting(const struct disk *disk, str name, str filter, uint64_t after)
{
    const struct row first = { .name = name, .instance = after + 1 };
    const struct row *row = name.data ? tree_seek(&disk->waits, &first, false) : NULL;

    while (row && str_eq(row->name, name) && filter.data && !str_eq(row->text, filter))
        row = tree_seek(&disk->waits, row, true);
    return row && str_eq(row->name, name) ? row->instance : 0;
}

static uint64_t next_of_all(const struct disk *disk, const struct wait_query *query, uint64_t after)
{
    const uint64_t found[] = {
        next_waiting(disk, query->name, query->filter, after),
        next_waiting(disk, query->also, STR_NONE, after),
        query->or_filter.data ? next_waiting(disk, query->name, query->or_filter, after) : 0,
        query->or_filter.data ? next_waiting(disk, query->or_also, STR_NONE, after) : 0,
    };
    uint64_t next = 0;

    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (found[i] && (!next || found[i] < next))
            next = found[i];
    return next;
}

/* ---- Tokens and alarms: there are few of them ---- */

struct standing_row standing_of(const struct row *row, struct arena *arena)
{
    return (struct standing_row){ .what = -(int32_t)row->ordinal,
                                  .id = arena_str(arena, row->name),
                                  .due_at_ms = row->due_at_ms,
                                  .pos = row->number,
                                  .firing_ms = row->firing_ms,
                                  .wall = row->wall };
}

static int compare_standing(const void *a, const void *b)
{
    const struct standing_row *left = a, *right = b;
    int order = (left->due_at_ms > right->due_at_ms) - (left->due_at_ms < right->due_at_ms);

    return order ? order : str_compare(left->id, right->id);
}

/* `wall` NULL: by either clock. */
static void list_standing(const struct disk *disk, int32_t what, const bool *wall, uint32_t limit,
                          struct found *found)
{
    const struct row first = { .kind = ROW_STANDING, .ordinal = (uint32_t)-what };
    const struct row *row = tree_seek(&disk->rows, &first, false);

    for (; row && row->instance == 0 && row->kind == ROW_STANDING && row->ordinal == first.ordinal;
         row = tree_seek(&disk->rows, row, true))
        if (!wall || row->wall == *wall)
            (void)found_add(found, &(struct standing_row[]){ standing_of(row, found->arena) });
    if (found->count > 1)
        qsort(found->rows, found->count, sizeof(struct standing_row), compare_standing);
    found->count = found->count < limit ? found->count : limit;
}

/* ---- Live steps of a definition, counted ---- */

static bool count_step(struct found *found, uint32_t version, uint32_t plan)
{
    const struct step_count none = { .version = version, .plan = plan };
    struct step_count *items = found->rows;
    uint32_t at = 0;

    while (at < found->count &&
           (items[at].version < version || (items[at].version == version && items[at].plan < plan)))
        at++;
    if (at == found->count || items[at].version != version || items[at].plan != plan) {
        if (!found_add(found, &none))
            return false;
        items = found->rows;
        memmove(items + at + 1, items + at, sizeof *items * (found->count - 1 - at));
        items[at] = none;
    }
    items[at].total++;
    return true;
}

/* Every live step of one instance. */
static bool count_steps(const struct disk *disk, struct found *found, uint64_t instance,
                        uint32_t version)
{
    const struct row first = { .instance = instance, .kind = ROW_STEP };
    const struct row *row = tree_seek(&disk->rows, &first, false);

    for (; row && row->instance == instance && row->kind == ROW_STEP;
         row = tree_seek(&disk->rows, row, true))
        if (!count_step(found, version, row->plan))
            return false;
    return true;
}

static void list_steps(const struct disk *disk, str name, struct found *found)
{
    for (size_t i = 0; i < disk->cells.count; i++) {
        const struct cell *cell = disk->cells.slots[i].item;
        const struct memory_definition *definition =
            cell->has_row ? table_find(&disk->definitions, cell->row.definition) : NULL;

        if (definition && definition->row.name.data && str_eq(definition->row.name, name) &&
            !count_steps(disk, found, cell->row.number, definition->row.version))
            return;
    }
}

/* ---- Any of them ---- */

static void list_any(const struct disk *disk, const struct rows_query *query, struct found *found)
{
    const struct wait_query *waiting = query->by.waiting;

    switch (query->kind) {
    case LIST_DEFINITIONS:
        list_definitions(disk, query, found);
        break;
    case LIST_DUE:
        list_due(disk, query, found);
        break;
    case LIST_BUSY:
        list_busy(disk, query, found);
        break;
    case LIST_AWAITING:
        break; /* what this store holds does not outlive its process */
    case LIST_CHILDREN:
        list_children(disk, query->by.children, found);
        break;
    case LIST_WAITING:
        for (uint64_t next = next_of_all(disk, waiting, waiting->after);
             next && found->count < waiting->limit && found_add(found, &next);)
            next = next_of_all(disk, waiting, next);
        break;
    case LIST_STANDING:
        list_standing(disk, query->by.what, NULL, query->limit, found);
        break;
    case LIST_ALARMS:
        list_standing(disk, CONTROL_ALARM, &query->by.clock.wall, query->limit, found);
        break;
    case LIST_STEPS:
        list_steps(disk, query->by.name, found);
        break;
    }
}

pawl_status memory_rows(struct store *store, struct scope *scope, const struct rows_query *query,
                        void **out, uint32_t *count)
{
    static const size_t sizes[] = {
        [LIST_DEFINITIONS] = sizeof(struct definition_row),
        [LIST_DUE] = sizeof(struct live_timer),
        [LIST_BUSY] = sizeof(struct busy_row),
        [LIST_AWAITING] = sizeof(struct last_row),
        [LIST_CHILDREN] = sizeof(struct live_child),
        [LIST_WAITING] = sizeof(uint64_t),
        [LIST_STANDING] = sizeof(struct standing_row),
        [LIST_ALARMS] = sizeof(struct standing_row),
        [LIST_STEPS] = sizeof(struct step_count),
    };
    struct found found = { .arena = &scope->arena, .size = sizes[query->kind] };
    struct disk *disk = disk_lock(store);

    list_any(disk, query, &found);
    TRY(read_end(disk, scope));
    *out = found.rows, *count = found.count;
    return PAWL_OK;
}
