/* memory_commit.c - a commit: check its numbers, stage it, apply it.
 *
 * Staging (memory_stage.c) does all that can fail. Applying only links what was staged and
 * cannot fail. Between the two lies the all-or-nothing. */
#include "store/memory/memory_int.h"
#include "store/sqlite.h"

/* ---- Rows ---- */

static void row_delete(struct disk *disk, const struct row *key)
{
    struct row *row = row_find(disk, key);

    if (row)
        row_drop(disk, row);
}

static void row_put(struct disk *disk, struct row *row)
{
    struct row_tree *second = second_tree(disk, row);

    row_delete(disk, row);
    tree_insert(&disk->rows, row);
    if (second)
        tree_insert(second, row);
}

/* The rows of a parent's children, or of the one that its step `ordinal` waits for. */
static void children_clear(struct disk *disk, uint64_t parent, uint32_t ordinal)
{
    const struct row first = { .number = parent };
    struct row *row = tree_seek(&disk->children, &first, false), *next;

    for (; row && row->number == parent; row = next) {
        next = tree_seek(&disk->children, row, true);
        if (ordinal == 0 || row->plan == ordinal)
            row_drop(disk, row);
    }
}

static void rows_clear(struct disk *disk, uint64_t instance)
{
    const struct row first = { .instance = instance, .kind = ROW_STEP };
    struct row *row;

    while ((row = tree_seek(&disk->rows, &first, false)) && row->instance == instance &&
           row->kind <= ROW_WAIT)
        row_drop(disk, row);
    children_clear(disk, instance, 0);
}

/* Timers, waits and child of one step row. */
static void rows_clear_step(struct disk *disk, const struct row *step)
{
    for (enum row_kind kind = ROW_TIMER; kind <= ROW_WAIT; kind++) {
        struct row first = { .instance = step->instance, .kind = kind, .ordinal = step->ordinal };
        struct row *row;

        while ((row = tree_seek(&disk->rows, &first, false)) && row->instance == first.instance &&
               row->kind == kind && row->ordinal == first.ordinal)
            row_drop(disk, row);
    }
    children_clear(disk, step->instance, step->ordinal);
}

/* ---- Applying: from here on nothing can fail ---- */

/* The earliest `firing` time of an alarm that has not ended, or `before_ms` if that is earlier. */
static int64_t firing_since(struct disk *disk, int64_t before_ms)
{
    const struct row first = { .kind = ROW_STANDING };
    const struct row *row = tree_seek(&disk->rows, &first, false);

    for (; row && row->instance == 0 && row->kind == ROW_STANDING;
         row = tree_seek(&disk->rows, row, true))
        if (row->firing_ms && row->firing_ms < before_ms)
            before_ms = row->firing_ms;
    return before_ms;
}

/* Twice as many as are added: what is old does not pile up, and no commit waits for it long. */
static void drop_old_keys(struct disk *disk, const struct commit *commit)
{
    const struct row first = { .due_at_ms = INT64_MIN };
    bool has_looked = false;
    int64_t before_ms = commit->keys_before_ms;

    for (size_t i = 0; i < 2 * commit->key_count; i++) {
        struct row *row = tree_seek(&disk->keys, &first, false);

        if (row && row->due_at_ms < before_ms && !has_looked) {
            before_ms = firing_since(disk, before_ms);
            has_looked = true;
        }
        if (!row || row->due_at_ms >= before_ms)
            return;
        row_drop(disk, row);
    }
}

/* Shifts all rows that are due by the store's clock by the same amount, so their order stays. */
static void shift_rows(struct disk *disk, int64_t by_ms)
{
    struct row *row = tree_seek(&disk->rows, &(struct row){ 0 }, false);

    for (; row; row = tree_seek(&disk->rows, row, true)) {
        bool is_alarm = row->kind == ROW_STANDING && row->ordinal == (uint32_t)-CONTROL_ALARM;

        if ((row->kind != ROW_TIMER && !is_alarm) || row->wall || row->due_at_ms >= DUE_NEVER_MS)
            continue;
        row->due_at_ms += by_ms;
        row->shift_ms += by_ms;
    }
}

static void apply_rows(struct staging *staging)
{
    const struct commit *commit = staging->commit;
    struct disk *disk = staging->disk;
    size_t next = 0;

    if (commit->shift_ms)
        shift_rows(disk, commit->shift_ms);
    for (size_t i = 0; i < commit->live_count; i++) {
        const struct row key = live_row(&commit->live[i]);

        if (live_is_put(&commit->live[i]))
            row_put(disk, staging->rows[next++]);
        else if (commit->live[i].kind == LIVE_CLEAR)
            rows_clear(disk, key.instance);
        else if (commit->live[i].kind != LIVE_CHILD_ENDED)
            row_delete(disk, &key);
        else if (row_find(disk, &key))
            row_find(disk, &key)->attempt = 1;
        if (commit->live[i].kind == LIVE_STEP_DELETE && !commit->live[i].step.is_bare)
            rows_clear_step(disk, &key);
    }
    drop_old_keys(disk, commit);
    for (size_t i = 0; i < commit->standing_count; i++)
        if (!commit->standing[i].is_put)
            row_delete(disk, &(struct row){ .kind = ROW_STANDING,
                                            .ordinal = (uint32_t)-commit->standing[i].row.what,
                                            .name = commit->standing[i].row.id });
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

/* What was here is not read again; its bytes stay in this process's memory until it ends. */
static void apply_erased(struct staging *staging)
{
    const struct commit *commit = staging->commit;
    struct disk *disk = staging->disk;

    for (size_t i = 0; i < commit->erasure_count; i++)
        if (table_find(&disk->values, commit->erasures[i].id))
            erase(disk, table_find(&disk->values, commit->erasures[i].id));
    for (size_t i = 0; i < commit->redaction_count; i++) {
        struct record *record = table_find(&disk->records, staging->redactions[i].pos);

        if (record) {
            record->body = staging->redactions[i].body;
            record->flags = staging->redactions[i].flags;
        }
    }
    for (size_t i = 0; i < commit->cleared_count; i++) {
        struct cell *cell = table_find(&disk->cells, commit->cleared[i].number);

        if (cell)
            cell->row.correlation = cell->row.labels = STR_NONE;
        row_delete(disk,
                   &(struct row){ .instance = commit->cleared[i].number, .kind = ROW_SNAPSHOT });
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

/* There is no database to give, and nothing that could be undone: they go first. */
static pawl_status run_reduces(const struct commit *commit, struct scope *scope)
{
    char words[REDUCE_WORDS];

    for (size_t i = 0; i < commit->reduce_count; i++) {
        struct reduce *reduce = &commit->reduces[i];

        reduce->has_failed = !reduce_run(reduce, NULL, words);
        if (reduce->has_failed)
            return scope_fail(scope, PAWL_CONFLICT, "reduce '%s': %s", reduce->name,
                              words[0] ? words : "it said no");
    }
    return PAWL_OK;
}

pawl_status disk_commit(struct disk *disk, const struct commit *commit, struct scope *scope)
{
    struct staging staging = { .disk = disk, .commit = commit };

    if (commit->is_rebuild)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "expected a store in a file, found one without rows to rebuild");
    TRY(check_numbers(disk, commit, scope));
    TRY(run_reduces(commit, scope));
    TRY(commit_stage(&staging, scope));
    apply_erased(&staging);
    apply_tables(&staging); /* first: a text that is erased may be interned again */
    apply_rows(&staging);
    apply_heads(disk, commit);
    tip_advance(&disk->tip, commit);
    disk->tip.changes++;
    return PAWL_OK;
}
