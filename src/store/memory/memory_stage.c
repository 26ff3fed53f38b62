/* memory_stage.c - the first half of a commit: all that can fail.
 *
 * Copies every text, makes every row and reserves every place, and takes all of that back
 * if memory runs out. Nothing staged can be seen before memory_commit.c links it. */
#include "store/memory/memory_int.h"

/* ---- Bytes that stay ---- */

#define ALIGNMENT alignof(max_align_t)

/* A copy for ever, or zeros if data is NULL. */
static void *keep(struct staging *staging, const void *data, size_t size)
{
    struct block *block = staging->disk->blocks;
    size_t room = (size + ALIGNMENT) / ALIGNMENT * ALIGNMENT; /* one byte more: texts end in NUL */
    unsigned char *copy;

    if (!staging->failed && (!block || block->size - block->used < room))
        staging->failed = !(block = disk_add_block(staging->disk, room));
    if (staging->failed)
        return NULL;
    copy = block->data + block->used;
    block->used += room;
    memset(copy, 0, room);
    return data && size > 0 ? memcpy(copy, data, size) : copy;
}

static str keep_str(struct staging *staging, str s)
{
    return s.data ? (str){ keep(staging, s.data, s.size), s.size } : s;
}

/* ---- Rows ---- */

/* Mixed from a counter (splitmix64): the same commits grow the same tree. */
static uint64_t next_weight(struct disk *disk)
{
    uint64_t n = ++disk->row_number * UINT64_C(0x9E3779B97F4A7C15);

    n = (n ^ n >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    n = (n ^ n >> 27) * UINT64_C(0x94D049BB133111EB);
    return n ^ n >> 31;
}

/* Stage a row like this one, with its texts in its own memory. */
static void stage_row(struct staging *staging, struct row like)
{
    struct row *row = NULL;
    char *bytes;

    if (!staging->failed)
        row = heap_resize(staging->disk->heap, NULL, 0, row_size(&like));
    if (!row) {
        staging->failed = true;
        return;
    }
    bytes = (char *)(row + 1);
    *row = like;
    row->link[0].weight = row->link[1].weight = next_weight(staging->disk);
    if (like.name.size > 0)
        memcpy(bytes, like.name.data, like.name.size);
    if (like.text.size > 0)
        memcpy(bytes + like.name.size, like.text.data, like.text.size);
    row->name.data = bytes;
    row->text.data = bytes + like.name.size;
    staging->rows[staging->row_count++] = row;
}

/* ---- Staging ---- */

static void stage_cell(struct staging *staging, uint64_t number)
{
    struct disk *disk = staging->disk;
    struct cell *cell;

    if (staging->failed || table_find(&disk->cells, number))
        return;
    cell = table_reserve(disk->heap, &disk->cells, 1) ? heap_new(disk->heap, sizeof *cell) : NULL;
    if (cell)
        table_put(&disk->cells, number, cell);
    staging->failed = !cell;
}

static void stage_records(struct staging *staging)
{
    const struct commit *commit = staging->commit;
    struct record *records = keep(staging, commit->records, commit->record_count * sizeof *records);

    for (size_t i = 0; !staging->failed && i < commit->record_count; i++) {
        records[i].body = keep_str(staging, records[i].body);
        records[i].key = keep_str(staging, records[i].key);
        stage_cell(staging, records[i].instance);
    }
    staging->records = records;
}

static void stage_redactions(struct staging *staging)
{
    const struct commit *commit = staging->commit;
    struct redaction *redactions =
        keep(staging, commit->redactions, commit->redaction_count * sizeof *redactions);

    for (size_t i = 0; !staging->failed && i < commit->redaction_count; i++)
        redactions[i].body = keep_str(staging, redactions[i].body);
    staging->redactions = redactions;
}

static void stage_values(struct staging *staging)
{
    const struct commit *commit = staging->commit;
    struct value *values = keep(staging, commit->values, commit->value_count * sizeof *values);

    for (size_t i = 0; !staging->failed && i < commit->value_count; i++) {
        values[i].bytes = keep_str(staging, values[i].bytes);
        if (values[i].interned && values[i].bytes.data)
            stage_row(
                staging,
                (struct row){ .kind = ROW_VALUE, .name = values[i].bytes, .number = values[i].id });
    }
    staging->values = values;
}

static void stage_instances(struct staging *staging)
{
    const struct commit *commit = staging->commit;
    struct instance_row *rows =
        keep(staging, commit->instances, commit->instance_count * sizeof *rows);

    for (size_t i = 0; !staging->failed && i < commit->instance_count; i++) {
        rows[i].correlation = keep_str(staging, rows[i].correlation);
        rows[i].labels = keep_str(staging, rows[i].labels);
        stage_cell(staging, rows[i].number);
    }
    staging->instances = rows;
}

/* Keep what reading needs of a compiled definition: names, ends and targets. */
static void keep_compiled(struct staging *staging, const struct definition *compiled,
                          struct memory_definition *out)
{
    struct state *states = keep(staging, compiled->states, compiled->state_count * sizeof *states);
    uint32_t *to = keep(staging, NULL, compiled->transition_count * sizeof *to);

    for (uint32_t i = 0; !staging->failed && i < compiled->state_count; i++)
        states[i].name = keep_str(staging, states[i].name);
    for (uint32_t i = 0; !staging->failed && i < compiled->transition_count; i++)
        to[i] = compiled->transitions[i].to;
    out->compiler = compiled->compiler;
    out->initial = compiled->initial;
    out->states = states;
    out->state_count = compiled->state_count;
    out->to = to;
    out->transition_count = compiled->transition_count;
}

/* How a definition is looked up: by name, newest version first, or an inline one by its
 * source, if it was compiled as the present compiler would. */
static void stage_definition_row(struct staging *staging, const struct memory_definition *stored)
{
    const struct definition_row *row = &stored->row;
    const str sha = { (const char *)row->source_sha, SHA_SIZE };

    if (row->name.data)
        stage_row(staging, (struct row){ .kind = ROW_NAMED,
                                         .name = row->name,
                                         .tie = UINT32_MAX - row->version,
                                         .number = row->id });
    else if (stored->compiler == COMPILER_NUMBER)
        stage_row(staging, (struct row){ .kind = ROW_INLINE, .name = sha, .number = row->id });
}

static pawl_status stage_definitions(struct staging *staging, struct scope *scope)
{
    const struct commit *commit = staging->commit;
    struct memory_definition *all = keep(staging, NULL, commit->definition_count * sizeof *all);

    for (size_t i = 0; !staging->failed && i < commit->definition_count; i++) {
        struct definition_row row = commit->definitions[i];
        struct definition *compiled;

        TRY(definition_load(scope, row.compiled, &compiled));
        row.name = keep_str(staging, row.name);
        row.source = keep_str(staging, row.source);
        row.compiled = keep_str(staging, row.compiled);
        all[i].row = row;
        keep_compiled(staging, compiled, &all[i]);
        stage_definition_row(staging, &all[i]);
    }
    staging->definitions = all;
    return PAWL_OK;
}

/* What is put, or what finds the row that goes. */
struct row live_row(const struct live_change *change)
{
    struct row row = { .instance = change->instance,
                       .kind = ROW_STEP,
                       .ordinal = change->ordinal,
                       .name = change->name };

    switch (change->kind) {
    case LIVE_STEP_PUT:
        row.plan = change->step.plan;
        row.attempt = change->step.attempt;
        row.status = change->step.status;
        row.text = change->step.lease;
        row.due_at_ms = change->step.lease_ms;
        row.ready_at_ms = change->step.ready_at_ms;
        return row;
    case LIVE_TIMER_PUT:
        row.due_at_ms = change->timer.due_at_ms;
        row.shift_ms = change->timer.shift_ms;
        row.wall = change->timer.wall;
        row.test = change->timer.test; /* fall through */
    case LIVE_TIMER_DELETE:
        row.kind = ROW_TIMER;
        return row;
    case LIVE_WAIT_PUT:
        row.text = change->wait.value; /* fall through */
    case LIVE_WAIT_DELETE:
        row.kind = ROW_WAIT;
        return row;
    case LIVE_PAUSE_PUT:
        row.number = change->pause.pos; /* fall through */
    case LIVE_PAUSE_DELETE:
        row.kind = ROW_PAUSE;
        return row;
    case LIVE_CHILD_PUT:
        return (struct row){ .instance = change->child.number,
                             .kind = ROW_CHILD,
                             .number = change->instance,
                             .plan = change->ordinal,
                             .test = change->child.is_abandoned };
    case LIVE_CHILD_ENDED:
        row.kind = ROW_CHILD;
        return row;
    case LIVE_STEP_DELETE:
    case LIVE_CLEAR:
        return row;
    }
    panic_at(__FILE__, __LINE__, "a live change of no kind");
}

bool live_is_put(const struct live_change *change)
{
    return change->kind == LIVE_STEP_PUT || change->kind == LIVE_TIMER_PUT ||
           change->kind == LIVE_WAIT_PUT || change->kind == LIVE_PAUSE_PUT ||
           change->kind == LIVE_CHILD_PUT;
}

static void stage_live(struct staging *staging)
{
    const struct commit *commit = staging->commit;

    for (size_t i = 0; i < commit->live_count; i++)
        if (live_is_put(&commit->live[i]))
            stage_row(staging, live_row(&commit->live[i]));
    for (size_t i = 0; i < commit->snapshot_count; i++)
        stage_row(staging, (struct row){ .instance = commit->snapshots[i].instance,
                                         .kind = ROW_SNAPSHOT,
                                         .number = commit->snapshots[i].seq,
                                         .text = commit->snapshots[i].text });
}

static void stage_keys(struct staging *staging)
{
    const struct commit *commit = staging->commit;

    for (size_t i = 0; i < commit->standing_count; i++)
        if (commit->standing[i].is_put)
            stage_row(staging, (struct row){ .kind = ROW_STANDING,
                                             .ordinal = (uint32_t)-commit->standing[i].row.what,
                                             .name = commit->standing[i].row.id,
                                             .number = commit->standing[i].row.pos,
                                             .due_at_ms = commit->standing[i].row.due_at_ms,
                                             .firing_ms = commit->standing[i].row.firing_ms,
                                             .wall = commit->standing[i].row.wall });

    for (size_t i = 0; i < commit->key_count; i++)
        stage_row(staging, (struct row){ .kind = ROW_KEY,
                                         .name = { (const char *)commit->keys[i].id, KEY_ID_SIZE },
                                         .number = commit->keys[i].pos,
                                         .due_at_ms = commit->keys[i].at_ms });
}

static pawl_status stage_all(struct staging *staging, struct scope *scope)
{
    const struct commit *commit = staging->commit;
    struct disk *disk = staging->disk;
    size_t rows = commit->live_count + commit->snapshot_count + commit->value_count +
                  commit->definition_count + commit->key_count + commit->standing_count;

    staging->rows = ARENA_ARRAY(&scope->arena, struct row *, rows);
    staging->failed = !staging->rows ||
                      !table_reserve(disk->heap, &disk->records, commit->record_count) ||
                      !table_reserve(disk->heap, &disk->values, commit->value_count) ||
                      !table_reserve(disk->heap, &disk->definitions, commit->definition_count);
    stage_live(staging);
    stage_keys(staging);
    stage_values(staging);
    stage_instances(staging);
    stage_records(staging);
    stage_redactions(staging);
    for (size_t i = 0; i < commit->head_count; i++)
        stage_cell(staging, commit->heads[i].instance);
    TRY(stage_definitions(staging, scope));
    return staging->failed ? scope_no_memory(scope) : PAWL_OK;
}

pawl_status commit_stage(struct staging *staging, struct scope *scope)
{
    struct disk *disk = staging->disk;
    struct block *mark = disk->blocks;
    size_t mark_used = mark ? mark->used : 0;
    pawl_status status = stage_all(staging, scope);

    if (status == PAWL_OK)
        return PAWL_OK;
    for (size_t i = 0; i < staging->row_count; i++)
        row_free(disk, staging->rows[i]);
    disk_free_blocks(disk, mark);
    if (mark)
        mark->used = mark_used;
    return status;
}
