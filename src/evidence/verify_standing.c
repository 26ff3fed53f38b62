/* verify_standing.c - tokens, alarms, holds and amends: what the log's records leave in force,
 * against the rows. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/node.h"
#include "evidence/verify_int.h"
#include "model/rights.h"

static void drop(struct verify *v, uint32_t index)
{
    union {
        const char *kept;
        char *ours;
    } id = { v->standing[index].id.data };

    heap_free(v->heap, id.ours, v->standing[index].id.size);
    v->firing_count -= v->standing[index].firing_ms != 0;
    v->standing[index] = v->standing[--v->standing_count];
}

void verify_drop_standing(struct verify *v)
{
    while (v->standing_count > 0)
        drop(v, v->standing_count - 1);
    heap_free(v->heap, v->standing, v->standing_capacity * sizeof *v->standing);
    v->standing = NULL;
    v->standing_capacity = 0;
}

static uint32_t find(const struct verify *v, int32_t what, str id)
{
    uint32_t i = 0;

    while (i < v->standing_count && (v->standing[i].what != what || !str_eq(v->standing[i].id, id)))
        i++;
    return i;
}

void verify_end_standing(struct verify *v, int32_t what, str id)
{
    uint32_t index = find(v, what, id);

    if (index < v->standing_count)
        drop(v, index);
}

pawl_status verify_put_standing(struct verify *v, const struct standing_row *row)
{
    char *copy;

    TRY_MEMORY(&v->scope,
               HEAP_GROW(v->heap, v->standing, v->standing_capacity, v->standing_count + 1));
    copy = heap_new(v->heap, row->id.size);
    TRY_MEMORY(&v->scope, copy);
    memcpy(copy, row->id.data, row->id.size);
    v->standing[v->standing_count] = *row;
    v->standing[v->standing_count++].id.data = copy;
    v->firing_count += row->firing_ms != 0;
    return PAWL_OK;
}

/* A `firing` record of an alarm over many instances: at most one, while the alarm is in force. */
static pawl_status note_firing(struct verify *v, const struct record *record, uint32_t index)
{
    if (record->what != CONTROL_ALARM || index == v->standing_count ||
        v->standing[index].firing_ms != 0 || record->at_ms == 0)
        return verify_bad(v, "an alarm is firing that is not in force, or fires a second time");
    v->standing[index].firing_ms = record->at_ms;
    v->firing_count++;
    return PAWL_OK;
}

static pawl_status note_over(struct verify *v, uint32_t index, str how)
{
    if (index == v->standing_count)
        return verify_bad(v, "a token, alarm or hold ends that is not in force");
    if (v->standing[index].firing_ms != 0 && str_is(how, "cancelled"))
        return verify_bad(v, "an alarm that was firing ends as cancelled");
    drop(v, index);
    return PAWL_OK;
}

int64_t verify_firing_since(const struct verify *v)
{
    int64_t since_ms = INT64_MAX;

    for (uint32_t i = 0; v->firing_count > 0 && i < v->standing_count; i++)
        if (v->standing[i].firing_ms != 0 && v->standing[i].firing_ms < since_ms)
            since_ms = v->standing[i].firing_ms;
    return since_ms;
}

pawl_status verify_replace_standing(struct verify *v, const struct standing_row *row)
{
    uint32_t index = find(v, row->what, row->id);

    if (index < v->standing_count)
        drop(v, index);
    return verify_put_standing(v, row);
}

pawl_status verify_note_standing(struct verify *v, const struct record *record)
{
    struct node *body = NULL, *wall;
    int64_t due_at_ms = 0;
    uint32_t index;
    str id;

    if (record->instance != 0)
        return verify_bad(v, "a token, alarm or hold in an instance's chain");
    if (!v->whole)
        return PAWL_OK;
    if (node_read_json(&v->scope, record->body, &body) == PAWL_NO_MEMORY)
        return PAWL_NO_MEMORY;
    id = node_text(body, "id");
    wall = node_find(body, "wall");
    if (id.size == 0)
        return verify_bad(v, "a token, alarm or hold without an id");
    index = find(v, record->what, id);
    if (node_find(body, "firing"))
        return note_firing(v, record, index);
    if (node_find(body, "over"))
        return note_over(v, index, node_text(body, "over"));
    if (index < v->standing_count || !node_to_i64(node_find(body, "due"), &due_at_ms))
        return verify_bad(v, "a token, alarm or hold that begins twice, or never falls due");
    return verify_put_standing(v,
                               &(struct standing_row){ .what = record->what,
                                                       .id = id,
                                                       .due_at_ms = due_at_ms,
                                                       .pos = record->pos,
                                                       .wall = wall && str_is(wall->raw, "true") });
}

/* An amend stands until the next one of its instance: readers find the last by its row. */
pawl_status verify_note_amend(struct verify *v, const struct chain *chain,
                              const struct record *record)
{
    struct standing_row row = { .what = record->what, .pos = record->pos };
    char id[ID_SIZE + 1];

    id_print(chain->number, chain->random, id);
    row.id = str_of(id);
    return verify_replace_standing(v, &row);
}

uint64_t verify_amended_at(const struct verify *v, const struct chain *chain)
{
    char id[ID_SIZE + 1];
    uint32_t index;

    id_print(chain->number, chain->random, id);
    index = find(v, LIFE_T_AMEND, str_of(id));
    return index < v->standing_count ? v->standing[index].pos : 0;
}

/* A start that runs another instance again stands until the next one that does. */
pawl_status verify_note_redrive(struct verify *v, const struct record *record)
{
    struct effect_list effects = { 0 };
    pawl_status status = PAWL_OK;
    struct scope scope; /* of its own: a start may have thousands of effects, to be folded next */

    scope_init(&scope, v->heap, LIMIT_SCOPE);
    if (v->whole && record->body.data)
        status = effects_read(&scope, record->body, &effects);
    if (status != PAWL_OK)
        v->scope.error = scope.error;
    for (uint32_t i = 0; i < effects.count && status == PAWL_OK; i++)
        if (effects.items[i].kind == EFFECT_REDRIVE)
            status = verify_replace_standing(v, &(struct standing_row){ .what = LIFE_T_START,
                                                                        .id = effects.items[i].name,
                                                                        .pos = record->pos });
    scope_fini(&scope);
    return status;
}

pawl_status verify_note_rights(struct verify *v, const struct record *record, str name,
                               uint32_t version)
{
    struct buf id;
    pawl_status status;

    if (!v->whole)
        return PAWL_OK;
    buf_init(&id, v->heap, 0);
    rights_id(&id, name, version);
    status = id.failed ? scope_no_memory(&v->scope)
                       : verify_put_standing(v, &(struct standing_row){ .what = CONTROL_DEFINE,
                                                                        .id = buf_view(&id),
                                                                        .pos = record->pos });
    buf_fini(&id);
    return status;
}

static pawl_status check_kind(struct verify *v, int32_t what)
{
    struct standing_row *rows = NULL;
    uint32_t count = 0, expected = 0;

    if (what == CONTROL_ERASE) /* there may be as many as instances */
        return verify_erased_rows(v);
    if (what == CONTROL_ARCHIVE)
        return verify_archive_rows(v);
    TRY(store_standing_list(v->store, &v->scope, what, UINT32_MAX, &rows, &count));
    for (uint32_t i = 0; i < v->standing_count; i++)
        expected += v->standing[i].what == what;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = find(v, what, rows[i].id);

        if (index == v->standing_count || v->standing[index].pos != rows[i].pos ||
            v->standing[index].due_at_ms != rows[i].due_at_ms ||
            v->standing[index].firing_ms != rows[i].firing_ms ||
            v->standing[index].wall != rows[i].wall)
            return verify_bad(v,
                              "the row of a token, alarm, hold, amend, redrive, definition or "
                              "clock is not what the "
                              "log says: %.*s",
                              STR_ARG(rows[i].id));
    }
    if (count != expected)
        return verify_bad(
            v, "the row of a token, alarm, hold, amend, redrive, definition or clock is missing");
    return PAWL_OK;
}

/* Again, if the log went on meanwhile: a row may belong to a later commit. */
pawl_status verify_all_standing(struct verify *v)
{
    static const int32_t kinds[] = { CONTROL_TOKEN,  CONTROL_ALARM, LIFE_T_AMEND,
                                     CONTROL_DEFINE, CONTROL_CLOCK, LIFE_T_START,
                                     CONTROL_ERASE,  CONTROL_HOLD,  CONTROL_ARCHIVE };
    pawl_status status = PAWL_OK;

    for (size_t i = 0; status == PAWL_OK && i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t pos;

        do {
            pos = v->pos;
            scope_clear(&v->scope);
            verify_at(v, 0, 0, 0);
            status = check_kind(v, kinds[i]);
            if (status != PAWL_STORAGE_FAILURE || v->report->valid)
                break;
            v->report->valid = true;
            if (verify_catch_up(v) != PAWL_OK)
                return PAWL_STORAGE_FAILURE;
            v->report->valid = v->pos != pos;
        } while (v->pos != pos);
    }
    return status;
}
