/* memory_list.c - the memory store: instances by what they are like. */
#include "store/memory/memory_int.h"

static bool fits_text(str wanted, str found)
{
    return !wanted.data || (found.data && str_eq(wanted, found));
}

static enum instance_status status_of(const struct disk *disk, const struct cell *cell,
                                      enum terminal_kind terminal)
{
    enum instance_status ended = instance_status_ended(terminal);
    const struct row *busy;

    if (ended)
        return ended;
    if (pause_of(disk, cell->row.number))
        return STATUS_PAUSED;
    busy = busy_from(disk, cell->row.number);
    return busy && busy->instance == cell->row.number ? STATUS_RUNNING : STATUS_SUSPENDED;
}

/* One that began in a terminal state ended when it was created. */
static bool fits_end(const struct disk *disk, const struct list_query *query,
                     const struct cell *cell, enum terminal_kind terminal)
{
    const struct record *last = table_find(&disk->records, head_now(cell).pos);
    int64_t at_ms = last ? last->at_ms : 0;

    if (terminal == TERMINAL_NOT)
        return !query->has_ended && !query->ended.has_after && !query->ended.has_before;
    return !query->is_active && time_is_within(&query->ended, at_ms);
}

static bool fits_state(const struct disk *disk, const struct list_query *query,
                       const struct cell *cell, const struct memory_definition *definition)
{
    uint32_t state = head_now(cell).state;
    enum terminal_kind terminal;

    if (state >= definition->state_count)
        return !list_query_by_state(query);
    terminal = definition->states[state].terminal;
    return fits_text(query->state, definition->states[state].name) &&
           (!query->status || query->status == status_of(disk, cell, terminal)) &&
           fits_end(disk, query, cell, terminal);
}

static bool fits_row(const struct disk *disk, const struct list_query *query,
                     const struct instance_row *row)
{
    const struct value *subject = table_find(&disk->values, row->subject);

    return fits_text(query->subject, subject ? subject->bytes : STR_NONE) &&
           fits_text(query->correlation, row->correlation) &&
           time_is_within(&query->created, row->instantiated_at_ms);
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
    if (!definition || !fits_text(query->definition, definition->row.name) ||
        (query->version && query->version != definition->row.version) ||
        (query->kind && query->kind != definition->row.kind) ||
        !fits_row(disk, query, &cell->row) || !fits_state(disk, query, cell, definition))
        return PAWL_OK;
    return fits_labels(query, cell->row.labels, scratch, out);
}

static pawl_status list_cells(const struct disk *disk, const struct list_query *query,
                              struct scope *scope, struct scope *scratch, struct found *found)
{
    const struct table *cells = &disk->cells;
    bool up = query->oldest_first;
    size_t at = table_seek(cells, up ? query->after + 1 : query->after ? query->after : UINT64_MAX);

    while ((up ? at < cells->count : at > 0) && found->count < query->limit) {
        const struct cell *cell = cells->slots[up ? at : at - 1].item;
        bool wanted;
        pawl_status status = fits(disk, query, cell, scratch, &wanted);

        if (status == PAWL_NO_MEMORY || (wanted && !found_add(found, &cell->row.number)))
            return scope_no_memory(scope);
        at = up ? at + 1 : at - 1;
    }
    return PAWL_OK;
}

pawl_status memory_list(struct store *store, struct scope *scope, const struct list_query *query,
                        uint64_t **out, uint32_t *count)
{
    struct found found = { .arena = &scope->arena, .size = sizeof **out };
    struct scope scratch;
    struct disk *disk = disk_lock(store);
    pawl_status status;

    scope_init(&scratch, disk->heap, 0);
    status = list_cells(disk, query, scope, &scratch, &found);
    scope_fini(&scratch);
    disk_unlock(disk);
    if (status == PAWL_OK)
        *out = found.rows, *count = found.count;
    return status;
}
