/* memory.c - the reference store: turns, and how a commit is written.
 *
 * A commit has two halves. Staging does all that can fail: it copies every text, makes
 * every row and reserves every place, and undoes that if memory runs out. Applying then
 * only links what was staged and cannot fail. Between the two lies the all-or-nothing. */
#include "base/assert.h"
#include "store/memory/memory_int.h"
#include <stdalign.h>
#include <unistd.h>

/* ---- Bytes that stay ---- */

struct block {
    struct block *next;
    size_t size, used;
    alignas(max_align_t) unsigned char data[];
};

#define ALIGNMENT  alignof(max_align_t)
#define BLOCK_SIZE (((size_t)64 << 10) - sizeof(struct block))

/* What a commit is turned into before anything of it can be seen. */
struct staging {
    struct disk *disk;
    const struct commit *commit;
    struct block *mark; /* blocks and bytes from before, to go back to */
    size_t mark_used;
    bool failed; /* sticky: there was no memory */
    struct record *records;
    struct value *values;
    struct memory_definition *definitions;
    struct instance_row *instances;
    struct row **rows; /* of the live changes that put, in order; then all others */
    size_t row_count;
};

static struct block *add_block(struct staging *staging, size_t size)
{
    struct disk *disk = staging->disk;
    size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    struct block *block = heap_resize(disk->heap, NULL, 0, sizeof *block + room);

    if (!block)
        return NULL;
    *block = (struct block){ disk->blocks, room, 0 };
    return disk->blocks = block;
}

/* A copy for ever, or zeros if data is NULL. */
static void *keep(struct staging *staging, const void *data, size_t size)
{
    struct block *block = staging->disk->blocks;
    size_t room = (size + ALIGNMENT) / ALIGNMENT * ALIGNMENT; /* one byte more: texts end in NUL */
    unsigned char *copy;

    if (!staging->failed && (!block || block->size - block->used < room))
        staging->failed = !(block = add_block(staging, room));
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

void disk_free_blocks(struct disk *disk, const struct block *until)
{
    struct block *block;

    while ((block = disk->blocks) != until) {
        disk->blocks = block->next;
        heap_free(disk->heap, block, sizeof *block + block->size);
    }
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

static void row_delete(struct disk *disk, const struct row *key)
{
    struct row *row = tree_seek(&disk->rows, key, false);

    if (row && compare_keys(row, key) == 0)
        row_drop(disk, row);
}

static void row_put(struct disk *disk, struct row *row)
{
    struct tree *second = second_tree(disk, row);

    row_delete(disk, row);
    tree_insert(&disk->rows, row);
    if (second)
        tree_insert(second, row);
}

static void rows_clear(struct disk *disk, uint64_t instance)
{
    const struct row first = { .instance = instance, .kind = ROW_STEP };
    struct row *row;

    while ((row = tree_seek(&disk->rows, &first, false)) && row->instance == instance &&
           row->kind <= ROW_WAIT)
        row_drop(disk, row);
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
        pawl_status status = definition_load(scope, row.compiled, &compiled);

        if (status != PAWL_OK)
            return status;
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

/* The row that a live change is about. */
static struct row row_of(const struct live_change *change)
{
    static const enum row_kind kinds[] = {
        [LIVE_STEP_PUT] = ROW_STEP,   [LIVE_STEP_DELETE] = ROW_STEP,
        [LIVE_TIMER_PUT] = ROW_TIMER, [LIVE_TIMER_DELETE] = ROW_TIMER,
        [LIVE_WAIT_PUT] = ROW_WAIT,   [LIVE_WAIT_DELETE] = ROW_WAIT,
        [LIVE_CLEAR] = ROW_STEP,
    };
    struct row row = { .instance = change->instance,
                       .kind = kinds[change->kind],
                       .ordinal = change->ordinal,
                       .plan = change->plan,
                       .attempt = change->attempt,
                       .status = change->status,
                       .due_at_ms = change->due_at_ms,
                       .test = change->test };

    if (row.kind != ROW_STEP)
        row.name = change->name;
    return row;
}

static bool is_put(const struct live_change *change)
{
    return change->kind == LIVE_STEP_PUT || change->kind == LIVE_TIMER_PUT ||
           change->kind == LIVE_WAIT_PUT;
}

static void stage_live(struct staging *staging)
{
    const struct commit *commit = staging->commit;

    for (size_t i = 0; i < commit->live_count; i++)
        if (is_put(&commit->live[i]))
            stage_row(staging, row_of(&commit->live[i]));
    for (size_t i = 0; i < commit->snapshot_count; i++)
        stage_row(staging, (struct row){ .instance = commit->snapshots[i].instance,
                                         .kind = ROW_SNAPSHOT,
                                         .number = commit->snapshots[i].seq,
                                         .text = commit->snapshots[i].text });
}

static pawl_status stage_all(struct staging *staging, struct scope *scope)
{
    const struct commit *commit = staging->commit;
    struct disk *disk = staging->disk;
    size_t rows = commit->live_count + commit->snapshot_count + commit->value_count +
                  commit->definition_count;
    pawl_status status;

    staging->rows = ARENA_ARRAY(&scope->arena, struct row *, rows);
    staging->failed = !staging->rows ||
                      !table_reserve(disk->heap, &disk->records, commit->record_count) ||
                      !table_reserve(disk->heap, &disk->values, commit->value_count) ||
                      !table_reserve(disk->heap, &disk->definitions, commit->definition_count);
    stage_live(staging);
    stage_values(staging);
    stage_instances(staging);
    stage_records(staging);
    for (size_t i = 0; i < commit->head_count; i++)
        stage_cell(staging, commit->heads[i].instance);
    status = stage_definitions(staging, scope);
    if (status != PAWL_OK)
        return status;
    return staging->failed ? scope_no_memory(scope) : PAWL_OK;
}

static void unstage(struct staging *staging)
{
    for (size_t i = 0; i < staging->row_count; i++)
        row_free(staging->disk, staging->rows[i]);
    disk_free_blocks(staging->disk, staging->mark);
    if (staging->mark)
        staging->mark->used = staging->mark_used;
}

/* ---- Applying: from here on nothing can fail ---- */

static void apply_rows(struct staging *staging)
{
    const struct commit *commit = staging->commit;
    struct disk *disk = staging->disk;
    size_t next = 0;

    for (size_t i = 0; i < commit->live_count; i++) {
        const struct row key = row_of(&commit->live[i]);

        if (is_put(&commit->live[i]))
            row_put(disk, staging->rows[next++]);
        else if (commit->live[i].kind == LIVE_CLEAR)
            rows_clear(disk, key.instance);
        else
            row_delete(disk, &key);
    }
    while (next < staging->row_count)
        row_put(disk, staging->rows[next++]);
}

/* Where the instance stands after this record. */
static void follow(struct disk *disk, const struct record *record)
{
    struct cell *cell = table_find(&disk->cells, record->instance);
    const struct memory_definition *definition =
        table_find(&disk->definitions, cell->row.definition);

    cell->latest.instance = record->instance;
    cell->latest.seq = record->seq;
    cell->latest.pos = record->pos;
    if (definition && record->what == CONTROL_CREATE)
        cell->latest.state = definition->initial;
    else if (definition && record->what >= 0 &&
             (uint32_t)record->what < definition->transition_count)
        cell->latest.state = definition->to[record->what];
}

/* A value that is there, put again without bytes. */
static bool is_erasure(const struct disk *disk, const struct value *value)
{
    return !value->bytes.data && table_find(&disk->values, value->id);
}

/* Bytes and salt go, for good: they are wiped where they lie. The commitment stays. */
static void erase(struct disk *disk, struct value *value)
{
    union {
        const char *kept;
        char *ours; /* keep() made the copy */
    } bytes = { value->bytes.data };

    if (value->interned && value->bytes.data)
        row_delete(disk, &(struct row){ .kind = ROW_VALUE, .name = value->bytes });
    if (value->bytes.data)
        explicit_bzero(bytes.ours, value->bytes.size);
    memset(value->salt, 0, SALT_SIZE);
    value->bytes = STR_NONE;
    value->interned = false;
}

static void apply_tables(struct staging *staging)
{
    const struct commit *commit = staging->commit;
    struct disk *disk = staging->disk;

    for (size_t i = 0; i < commit->value_count; i++)
        if (is_erasure(disk, &commit->values[i]))
            erase(disk, table_find(&disk->values, commit->values[i].id));
        else
            table_put(&disk->values, staging->values[i].id, &staging->values[i]);
    for (size_t i = 0; i < commit->definition_count; i++)
        table_put(&disk->definitions, staging->definitions[i].row.id, &staging->definitions[i]);
    for (size_t i = 0; i < commit->instance_count; i++) {
        struct cell *cell = table_find(&disk->cells, staging->instances[i].number);

        cell->row = staging->instances[i];
        cell->has_row = true;
    }
    for (size_t i = 0; i < commit->record_count; i++) {
        table_put(&disk->records, staging->records[i].pos, &staging->records[i]);
        follow(disk, &staging->records[i]);
    }
}

static void apply_heads(struct disk *disk, const struct commit *commit)
{
    for (size_t i = 0; i < commit->head_count; i++) {
        const struct head_row *head = &commit->heads[i];
        struct cell *cell = table_find(&disk->cells, head->instance);

        if (cell->has_head && head->seq <= cell->head.seq && head->pos <= cell->head.pos)
            continue; /* contract (6) */
        cell->head = *head;
        cell->has_head = true;
    }
}

static void apply_tip(struct disk *disk, const struct commit *commit)
{
    struct store_tip *tip = &disk->tip;

    if (commit->record_count > 0) {
        const struct record *last = &commit->records[commit->record_count - 1];

        tip->pos = last->pos;
        tip->at_ms = last->at_ms;
        memcpy(tip->root, last->root, SHA_SIZE);
    }
    for (size_t i = 0; i < commit->value_count; i++)
        if (commit->values[i].id > tip->last_value)
            tip->last_value = commit->values[i].id;
    if (commit->definition_count > 0)
        tip->last_definition = commit->definitions[commit->definition_count - 1].id;
    if (commit->instance_count > 0)
        tip->last_instance = commit->instances[commit->instance_count - 1].number;
    tip->flushed = commit->flushed > 0 ? commit->flushed : tip->flushed;
    tip->test_now_ms = commit->test_now_ms != 0 ? commit->test_now_ms : tip->test_now_ms;
    tip->changes++;
}

/* Contract (5): numbers go on from the tip, positions without a gap. */
static pawl_status check_numbers(const struct disk *disk, const struct commit *commit,
                                 struct scope *scope)
{
    const struct store_tip *tip = &disk->tip;
    uint64_t value = tip->last_value, instance = tip->last_instance;
    uint32_t definition = tip->last_definition;
    bool fits = true;

    for (size_t i = 0; i < commit->record_count; i++)
        fits = fits && commit->records[i].pos == tip->pos + 1 + i;
    for (size_t i = 0; i < commit->value_count; i++)
        if (!is_erasure(disk, &commit->values[i])) {
            fits = fits && commit->values[i].id > value;
            value = commit->values[i].id;
        }
    for (size_t i = 0; i < commit->definition_count; definition = commit->definitions[i++].id)
        fits = fits && commit->definitions[i].id > definition;
    for (size_t i = 0; i < commit->instance_count; instance = commit->instances[i++].number)
        fits = fits && commit->instances[i].number > instance;
    if (fits)
        return PAWL_OK;
    return scope_fail(scope, PAWL_CONFLICT,
                      "the commit's numbers do not go on from position %llu, where the store is",
                      (unsigned long long)tip->pos);
}

static pawl_status write_commit(struct disk *disk, const struct commit *commit, struct scope *scope)
{
    struct staging staging = { .disk = disk,
                               .commit = commit,
                               .mark = disk->blocks,
                               .mark_used = disk->blocks ? disk->blocks->used : 0 };
    pawl_status status = check_numbers(disk, commit, scope);

    if (status == PAWL_OK)
        status = stage_all(&staging, scope);
    if (status != PAWL_OK) {
        unstage(&staging);
        return status;
    }
    apply_tables(&staging); /* first: a text that is erased may be interned anew */
    apply_rows(&staging);
    apply_heads(disk, commit);
    apply_tip(disk, commit);
    return PAWL_OK;
}

/* ---- Turns ---- */

pawl_status disk_fail_in_use(const struct disk *disk, struct scope *scope)
{
    return scope_fail(scope, PAWL_IN_USE, "memory:%.*s is owned by process %ld%s%s",
                      (int)disk->name_size, disk->name ? disk->name : "", (long)getpid(),
                      disk->owner_address[0] ? " at " : "", disk->owner_address);
}

/* Another thread's turn ends by itself; the same thread would wait for itself for ever. */
static pawl_status wait_for_turn(struct disk *disk, struct scope *scope)
{
    while (disk->writer) {
        if (pthread_equal(disk->writer_thread, pthread_self()))
            return scope_fail(scope, PAWL_IN_USE,
                              "this thread already has its turn to write, by another handle");
        pthread_cond_wait(&disk->turn_over, &disk->lock);
    }
    return PAWL_OK;
}

pawl_status memory_begin(struct store *store, struct scope *scope, struct store_tip *out)
{
    const struct memory *memory = (struct memory *)store;
    struct disk *disk = disk_lock(store);
    pawl_status status = wait_for_turn(disk, scope);

    if (status == PAWL_OK && disk->owner && disk->owner != memory)
        status = disk_fail_in_use(disk, scope);
    if (status == PAWL_OK) {
        disk->writer = memory;
        disk->writer_thread = pthread_self();
        *out = disk->tip;
    }
    disk_unlock(disk);
    return status;
}

void disk_end_turn(struct disk *disk)
{
    disk->writer = NULL;
    pthread_cond_signal(&disk->turn_over);
}

pawl_status memory_commit(struct store *store, struct scope *scope, const struct commit *commit)
{
    struct disk *disk = disk_lock(store);
    pawl_status status;

    ASSERT(disk->writer == (struct memory *)store);
    status = write_commit(disk, commit, scope);
    disk_end_turn(disk);
    disk_unlock(disk);
    return status;
}

void memory_rollback(struct store *store)
{
    struct disk *disk = disk_lock(store);

    ASSERT(disk->writer == (struct memory *)store);
    disk_end_turn(disk);
    disk_unlock(disk);
}
