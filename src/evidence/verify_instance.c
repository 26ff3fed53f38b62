/* verify_instance.c - the check of one instance: back along `prev` from its head to its
 * creation, then forward again. Roots and gaps of the log are the whole store's affair. */
#include "base/assert.h"
#include "evidence/verify_int.h"

#define PAGE_SIZE 512 /* instances of a definition that are asked for at once */
#define WALK_SIZE 256 /* records of an instance, likewise */

static pawl_status note_position(struct verify *v, uint64_t number, const struct record *record,
                                 struct path *path)
{
    verify_at(v, record->pos, number, 0);
    if (record->instance != number)
        return verify_bad(v, "the chain leads to a record of another instance");
    if (record->prev >= record->pos)
        return verify_bad(v, "prev does not lead back");
    TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, path->positions, path->capacity, path->count + 1));
    path->positions[path->count++] = record->pos;
    return PAWL_OK;
}

/* Records before a gap are noted, so that the finding names the gap. */
pawl_status verify_walk_back(struct verify *v, struct scope *scope, uint64_t number, uint64_t pos,
                             struct path *path)
{
    struct chain_query query = { .pos = pos, .skip_from = UINT64_MAX, .with_texts = true };
    struct record *records;
    pawl_status status;

    for (uint32_t count; query.pos != 0;) {
        scope_clear(scope);
        records = ARENA_ARRAY(&scope->arena, struct record, WALK_SIZE);
        TRY_MEMORY(&v->scope, records);
        status = store_records_of(v->store, scope, &query, records, WALK_SIZE, &count);
        for (uint32_t i = 0; i < count; i++)
            TRY(note_position(v, number, &records[i], path));
        verify_at(v, query.pos, number, 0);
        TRY_FOUND(v, status, "the record at this position is missing");
    }
    return PAWL_OK;
}

/* Did an import bring the record at `pos`? Then the nearest record of the store itself before it is
 * the import record that announces it. */
static pawl_status find_import(struct verify *v, uint64_t pos, bool *is_imported)
{
    struct record record = { .instance = 1 };
    uint64_t count = 0, at = pos;
    struct node *body;

    while (record.instance != 0 && at > 1) {
        scope_clear(&v->scope);
        TRY_FOUND(v, store_record(v->store, &v->scope, --at, &record), "a record has gone");
    }
    if (record.instance == 0 && record.what == CONTROL_IMPORT)
        TRY(verify_import_body(v, &record, &body, &count));
    *is_imported = pos - at <= count;
    return PAWL_OK;
}

/* Only the check of the whole store can tell whether the clock was shifted in between: this
 * store's, or that of the store which the record comes from. */
static pawl_status check_fall(struct verify *v, uint64_t pos)
{
    bool is_excused = v->tip.clock_pos != 0;

    if (!is_excused)
        TRY(find_import(v, pos, &is_excused));
    return is_excused
               ? PAWL_OK
               : verify_bad(v, "the time of this record is before that of the one before it");
}

static pawl_status check_at(struct verify *v, uint64_t pos)
{
    struct record record;
    bool falls;

    scope_clear(&v->scope);
    TRY_FOUND(v, store_record(v->store, &v->scope, pos, &record), "a record has gone");
    verify_at(v, pos, record.instance, record.seq);
    falls = v->pos > 0 && record.at_ms < v->at_ms;
    v->pos = pos;
    v->at_ms = record.at_ms;
    TRY(verify_record(v, &record));
    return falls ? check_fall(v, pos) : PAWL_OK;
}

static pawl_status walk_forward(struct verify *v, const struct path *path)
{
    for (uint32_t i = path->count; i > 0; i--) {
        TRY(check_at(v, path->positions[i - 1]));
        if (i % BATCH_SIZE == 0 && !v->request->definition.data)
            TRY(verify_tell(v, VERIFY_RECORDS, path->count - i, path->count));
    }
    return verify_replay_over(v, &v->chains[v->chain_count - 1]);
}

/* Its rows too, unless it was moved on meanwhile: then they belong to a later record. */
static pawl_status check_rows(struct verify *v, uint64_t number, uint64_t pos)
{
    struct head_row head;
    struct verify_report finding;
    pawl_status checked = verify_rows_of(v, 1), status;

    if (checked != PAWL_STORAGE_FAILURE || v->report->valid)
        return checked;
    finding = *v->report;
    scope_clear(&v->scope);
    status = store_head(v->store, &v->scope, number, false, &head);
    if (status != PAWL_OK || head.pos == pos)
        return checked;
    *v->report = finding;
    v->report->valid = true;
    v->report->bad_pos = v->report->bad_seq = 0;
    v->report->what[0] = '\0';
    return PAWL_OK;
}

pawl_status verify_one_instance(struct verify *v, uint64_t number)
{
    struct path path = { 0 };
    struct head_row head;
    pawl_status status = number <= ID_NUMBER_MAX
                             ? store_head(v->store, &v->scope, number, false, &head)
                             : PAWL_NOT_KNOWN;

    if (status == PAWL_NOT_KNOWN)
        return scope_fail(&v->scope, PAWL_NOT_KNOWN, "there is no instance %llu",
                          (unsigned long long)number);
    TRY(status);
    status = verify_walk_back(v, &v->scope, number, head.pos, &path);
    if (status == PAWL_OK && path.count == 0)
        status = verify_bad(v, "the instance has no record");
    if (status == PAWL_OK)
        status = walk_forward(v, &path);
    heap_free(v->heap, path.positions, path.capacity * sizeof *path.positions);
    TRY(status);
    ASSERT(v->chain_count == 2);
    TRY(verify_erasures_of_one(v));
    return check_rows(v, number, head.pos);
}

/* ---- all of a definition ---- */

static pawl_status check_page(struct verify *v, const uint64_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        pawl_status status = verify_one_instance(v, numbers[i]);

        if (status == PAWL_NOT_KNOWN) {
            verify_at(v, 0, numbers[i], 0);
            return verify_bad(v, "the instance has a row, but no record");
        }
        TRY(status);
        verify_forget_chain(v, &v->chains[1]);
        verify_forget_erasures(v);
        map_remove(&v->chain_map, numbers[i]);
        v->chain_count = 1;
        v->pos = 0;
        v->at_ms = 0;
        v->report->instances++;
        if (numbers[i] > v->tip.last_instance)
            v->tip.last_instance = numbers[i];
        TRY(verify_tell(v, VERIFY_INSTANCES, numbers[i], v->tip.last_instance));
    }
    return PAWL_OK;
}

pawl_status verify_instances_of(struct verify *v, str definition, uint32_t version)
{
    struct list_query query = {
        .definition = definition, .version = version, .oldest_first = true, .limit = PAGE_SIZE
    };
    struct definition_row row;
    uint64_t *page, numbers[PAGE_SIZE];
    uint32_t count;
    pawl_status status =
        store_find_definition(v->store, &v->scope, definition, version, NULL, &row);

    if (status == PAWL_NOT_KNOWN)
        return scope_fail(&v->scope, PAWL_NOT_KNOWN, "there is no definition '%.*s'%s",
                          STR_ARG(definition), version ? " of that version" : "");
    TRY(status);
    do {
        scope_clear(&v->scope);
        TRY(store_list(v->store, &v->scope, &query, &page, &count));
        memcpy(numbers, page, count * sizeof *numbers);
        TRY(check_page(v, numbers, count));
        query.after = count > 0 ? numbers[count - 1] : 0;
    } while (count == PAGE_SIZE);
    return PAWL_OK;
}
