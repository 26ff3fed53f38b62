/* archive.c - instances that have ended leave the store, once an archive file has them.
 *
 * What leaves together is a family: an instance and all that it has begun, children's children too.
 * It is read without the drain, since what has ended does not change; the keeping lock keeps it
 * from being erased meanwhile. The commit writes an archive record, which names each instance with
 * the number of its records and the hash of the last one. Of each record the place stays, so every
 * root can still be proved (docs/format.md, "Archived instances"). */
#include "engine/keeping.h"
#include "engine/parts.h"
#include "model/effect.h"
#include <stdio.h>
#include <stdlib.h>

#define PAGE 64u /* records */

struct family {
    struct engine *engine;
    struct leaving *leaving;
    struct scope *scope;  /* has all of it, and the words of a failure */
    struct scope reading; /* a page of records */
    uint32_t at;          /* the member that is read */
    uint32_t member_capacity, departure_capacity, dropped_capacity, gone_capacity;
};

/* ---- gathering ---- */

static pawl_status add_member(struct family *family, uint64_t number)
{
    struct leaving *leaving = family->leaving;
    struct instance_row *row;

    TRY_MEMORY(family->scope, GROW(&family->scope->arena, leaving->members, leaving->member_count,
                                   family->member_capacity));
    row = &leaving->members[leaving->member_count].row;
    leaving->members[leaving->member_count] = (struct leaving_member){ 0 };
    TRY(store_instance(family->engine->store, family->scope, number, row));
    row->number = number;
    id_print(number, row->random, leaving->members[leaving->member_count].id);
    leaving->member_count++;
    return PAWL_OK;
}

static pawl_status drop_value(struct family *family, uint64_t id)
{
    struct leaving *leaving = family->leaving;

    if (!id)
        return PAWL_OK;
    TRY_MEMORY(family->scope, GROW(&family->scope->arena, leaving->dropped, leaving->dropped_count,
                                   family->dropped_capacity));
    leaving->dropped[leaving->dropped_count++] = id;
    return PAWL_OK;
}

/* A row that names what leaves goes along. */
static pawl_status drop_standing(struct family *family, int32_t what, str id, uint64_t pos)
{
    struct leaving *leaving = family->leaving;
    struct standing_row row;
    pawl_status status = store_standing(family->engine->store, family->scope, what, id, &row);

    if (status == PAWL_NOT_KNOWN || (!status && pos && row.pos != pos))
        return PAWL_OK;
    TRY(status);
    TRY_MEMORY(family->scope, GROW(&family->scope->arena, leaving->gone, leaving->gone_count,
                                   family->gone_capacity));
    leaving->gone[leaving->gone_count++] =
        (struct standing_change){ .row = { .what = what,
                                           .id = arena_str(&family->scope->arena, id) } };
    return family->scope->arena.failed ? scope_no_memory(family->scope) : PAWL_OK;
}

/* The children that it began, and the run of another instance that it was. */
static pawl_status take_effects(struct family *family, const struct record *record)
{
    uint64_t parent = family->leaving->members[family->at].row.number;
    struct effect_list effects = { 0 };
    struct instance_row row;

    TRY(effects_read(&family->reading, record->body, &effects));
    for (uint32_t i = 0; i < effects.count; i++) {
        const struct effect *effect = &effects.items[i];
        uint64_t number;

        if (effect->kind == EFFECT_REDRIVE && record->what == LIFE_T_START)
            TRY(drop_standing(family, LIFE_T_START, effect->name, record->pos));
        if (effect->kind != EFFECT_SPAWN || !id_parse(effect->name, &number, NULL))
            continue;
        TRY(store_instance(family->engine->store, &family->reading, number, &row));
        if (row.parent == parent)
            TRY(add_member(family, number));
    }
    return PAWL_OK;
}

static pawl_status take_record(struct family *family, const struct record *record)
{
    struct leaving *leaving = family->leaving;
    struct leaving_member *member = &leaving->members[family->at];

    TRY_MEMORY(family->scope, GROW(&family->scope->arena, leaving->departures,
                                   leaving->departure_count, family->departure_capacity));
    leaving->departures[leaving->departure_count++] =
        (struct departure){ .pos = record->pos,
                            .key = arena_str(&family->scope->arena, record->key) };
    member->records++;
    if (record->key.data)
        TRY_MEMORY(family->scope, !family->scope->arena.failed);
    TRY(drop_value(family, record->payload));
    TRY(drop_value(family, record->reason));
    return record->what >= 0 && record->body.data ? take_effects(family, record) : PAWL_OK;
}

static pawl_status walk(struct family *family, uint64_t pos)
{
    struct chain_query query = { pos, .skip_from = UINT64_MAX, .with_texts = true };
    struct scope page;
    pawl_status status = PAWL_OK;

    scope_init(&page, family->engine->heap, LIMIT_SCOPE);
    while (query.pos && !status) {
        struct record *records;
        uint32_t count = 0;

        scope_clear(&page);
        records = ARENA_ARRAY(&page.arena, struct record, PAGE);
        status = records
                     ? store_records_of(family->engine->store, &page, &query, records, PAGE, &count)
                     : scope_no_memory(&page);
        if (status)
            family->scope->error = page.error;
        for (uint32_t i = 0; i < count && !status; i++) {
            scope_clear(&family->reading);
            status = take_record(family, &records[i]);
            if (status && !family->scope->error.status)
                family->scope->error = family->reading.error;
        }
        if (!status && family->leaving->departure_count > ARCHIVE_RECORDS)
            status = scope_fail(family->scope, PAWL_CONFLICT,
                                "instance '%s' has more than %u records with what it began: "
                                "expected fewer to be moved at once",
                                family->leaving->members[0].id, ARCHIVE_RECORDS);
    }
    scope_fini(&page);
    return status;
}

/* ---- may it leave? ---- */

static pawl_status check_member(struct family *family, const struct leaving_member *member,
                                struct head *head)
{
    struct engine *engine = family->engine;
    struct definition_slot *slot;
    struct store_tip tip;

    TRY(engine_locate(engine, family->scope, str_of(member->id), head, &slot));
    if (slot->definition->states[head->state].terminal == TERMINAL_NOT)
        return scope_fail(family->scope, PAWL_CONFLICT,
                          "instance '%s' has not ended: expected one that has, with all that it "
                          "began",
                          member->id);
    TRY(store_tip(engine->store, family->scope, &tip));
    if (member->row.number == tip.last_instance)
        return scope_fail(family->scope, PAWL_CONFLICT,
                          "instance '%s' is the newest of the store, which keeps its number: "
                          "expected an older one",
                          member->id);
    return hold_check(engine, family->scope, str_of(member->id));
}

static pawl_status take_member(struct family *family)
{
    struct leaving_member *member = &family->leaving->members[family->at];
    struct standing_row erased = { 0 };
    struct record last;
    struct head head;
    pawl_status status;

    TRY(check_member(family, member, &head));
    TRY(store_record(family->engine->store, family->scope, head.pos, &last));
    memcpy(member->last_hash, last.hash, SHA_SIZE);
    status = store_standing(family->engine->store, family->scope, CONTROL_ERASE, str_of(member->id),
                            &erased);
    if (status && status != PAWL_NOT_KNOWN)
        return status;
    member->erased_pos = erased.pos;
    TRY(drop_value(family, member->row.input));
    TRY(drop_value(family, member->row.metadata));
    TRY(drop_standing(family, CONTROL_ERASE, str_of(member->id), 0));
    TRY(drop_standing(family, LIFE_T_AMEND, str_of(member->id), 0));
    return walk(family, head.pos);
}

static pawl_status take_root(struct family *family, str id)
{
    struct definition_slot *slot;
    struct head head;
    char parent[ID_SIZE + 1];

    TRY(engine_locate(family->engine, family->scope, id, &head, &slot));
    TRY(add_member(family, head.instance));
    if (!family->leaving->members[0].row.parent)
        return PAWL_OK;
    TRY(engine_id_of(family->engine, family->scope, family->leaving->members[0].row.parent,
                     parent));
    return scope_fail(family->scope, PAWL_CONFLICT,
                      "instance '%.*s' was begun by '%s': expected that one, with which it leaves",
                      STR_ARG(id), parent);
}

pawl_status engine_leaving(struct engine *engine, struct scope *scope, str id, struct leaving *out)
{
    struct family family = { .engine = engine, .leaving = out, .scope = scope };
    pawl_status status;

    ASSERT_KEEPING(engine);
    *out = (struct leaving){ 0 };
    if (!engine->store->ops->archives || !engine->store->file)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "expected a store in a file of its own, which can have an archive file "
                          "beside it");
    scope_init(&family.reading, engine->heap, LIMIT_SCOPE);
    status = take_root(&family, id);
    for (; !status && family.at < out->member_count; family.at++)
        status = take_member(&family);
    scope_fini(&family.reading);
    return status;
}

/* ---- leaving ---- */

struct depart_request {
    const struct leaving *leaving;
    uint32_t count;
    const struct archive_args *args;
};

/* Instances that one of these was the last to run again: that is not told of them any more. */
static void print_redriven(struct buf *body, const struct depart_request *depart)
{
    bool has_begun = false;

    for (uint32_t f = 0; f < depart->count; f++)
        for (uint32_t i = 0; i < depart->leaving[f].gone_count; i++) {
            const struct standing_row *row = &depart->leaving[f].gone[i].row;

            if (row->what != LIFE_T_START)
                continue;
            if (!has_begun)
                json_put_open(body, "redriven", '[');
            has_begun = true;
            json_str(body, row->id);
        }
    if (has_begun)
        json_close(body, ']');
}

static str print_body(struct engine *engine, struct scope *scope,
                      const struct depart_request *depart)
{
    struct buf body;

    buf_init(&body, engine->heap, LIMIT_SCOPE);
    json_open(&body, '{');
    json_put_open(&body, "instances", '[');
    for (uint32_t f = 0; f < depart->count; f++)
        for (uint32_t i = 0; i < depart->leaving[f].member_count; i++) {
            const struct leaving_member *member = &depart->leaving[f].members[i];

            json_open(&body, '[');
            json_str(&body, str_of(member->id));
            json_u64(&body, member->records);
            json_hex(&body, member->last_hash, SHA_SIZE);
            json_close(&body, ']');
        }
    json_close(&body, ']');
    print_redriven(&body, depart);
    json_put_hex(&body, "to", depart->args->store_id, STORE_ID_SIZE);
    json_close(&body, '}');
    return buf_take(&body, &scope->arena);
}

/* Nothing but a hold can have come since it was read; and, of a store without an owner, what
 * another process erased, or moved. */
static pawl_status check_member_again(struct engine *engine, struct scope *scope,
                                      const struct leaving_member *member)
{
    struct standing_row row = { 0 };
    struct instance_row there;
    str id = str_of(member->id);
    pawl_status status;

    if (batch_changes_standing(engine, CONTROL_HOLD, id) ||
        batch_changes_standing(engine, CONTROL_ERASE, id) ||
        batch_changes_standing(engine, CONTROL_ARCHIVE, id))
        return scope_fail(scope, PAWL_OVERLOADED, "instance '%.*s' is put on hold just now",
                          STR_ARG(id));
    TRY(hold_check(engine, scope, id));
    TRY(store_instance(engine->store, scope, member->row.number, &there));
    status = store_standing(engine->store, scope, CONTROL_ERASE, id, &row);
    if (status && status != PAWL_NOT_KNOWN)
        return status;
    if ((status ? 0 : row.pos) == member->erased_pos)
        return PAWL_OK;
    return scope_fail(scope, PAWL_CONFLICT,
                      "instance '%.*s' was erased while it was moved: erase it in the archive "
                      "file, too",
                      STR_ARG(id));
}

static pawl_status check_again(struct engine *engine, struct scope *scope,
                               const struct leaving *leaving)
{
    for (uint32_t i = 0; i < leaving->member_count; i++)
        TRY(check_member_again(engine, scope, &leaving->members[i]));
    return PAWL_OK;
}

static pawl_status make_room(struct engine *engine, struct scope *scope,
                             const struct depart_request *depart)
{
    struct batch *batch = &engine->writer.batch;
    struct heads *heads = &engine->writer.heads;
    uint32_t records = 0, values = 0, members = 0, rows = 0;

    for (uint32_t i = 0; i < depart->count; i++) {
        records += depart->leaving[i].departure_count;
        values += depart->leaving[i].dropped_count;
        members += depart->leaving[i].member_count;
        rows += depart->leaving[i].gone_count;
    }
    TRY(batch_reserve(engine, scope, 2, 1));
    TRY_MEMORY(scope, HEAP_GROW(batch->heap, batch->departures, batch->departure_capacity,
                                batch->departure_count + records) &&
                          HEAP_GROW(batch->heap, batch->dropped, batch->dropped_capacity,
                                    batch->dropped_count + values) &&
                          HEAP_GROW(batch->heap, batch->departed, batch->departed_capacity,
                                    batch->departed_count + members) &&
                          HEAP_GROW(batch->heap, batch->standing, batch->standing_capacity,
                                    batch->standing_count + members + rows) &&
                          HEAP_GROW(heads->heap, heads->free_list, heads->free_capacity,
                                    heads->free_count + batch->departed_count + members));
    return PAWL_OK;
}

static void append(struct engine *engine, const struct leaving *leaving, uint64_t pos)
{
    struct batch *batch = &engine->writer.batch;

    for (uint32_t i = 0; i < leaving->departure_count; i++) {
        batch->departures[batch->departure_count] = leaving->departures[i];
        batch->departures[batch->departure_count++].archived = pos;
    }
    for (uint32_t i = 0; i < leaving->dropped_count; i++)
        batch->dropped[batch->dropped_count++] = leaving->dropped[i];
    for (uint32_t i = 0; i < leaving->gone_count; i++)
        batch->standing[batch->standing_count++] = leaving->gone[i];
    for (uint32_t i = 0; i < leaving->member_count; i++) {
        batch->departed[batch->departed_count++] = leaving->members[i].row;
        batch->standing[batch->standing_count++] = (struct standing_change){
            .row = { .what = CONTROL_ARCHIVE, .id = str_of(leaving->members[i].id), .pos = pos },
            .is_put = true
        };
    }
}

static pawl_status drain_depart(struct engine *engine, struct request *request, int64_t at_ms)
{
    const struct depart_request *depart = request->context;
    struct scope *scope = request->scope;
    str body = print_body(engine, scope, depart);
    uint64_t pos;

    ASSERT_DRAINING(engine);
    TRY_MEMORY(scope, body.data);
    for (uint32_t i = 0; i < depart->count; i++)
        TRY(check_again(engine, scope, &depart->leaving[i]));
    TRY(make_room(engine, scope, depart));
    pos = engine->writer.tip.pos + engine->writer.batch.record_count + 1;
    for (uint32_t i = 0; i < depart->count; i++)
        append(engine, &depart->leaving[i], pos);
    request->accepted = true;
    return batch_store_record_by(engine, scope,
                                 &(struct store_record){ .what = CONTROL_ARCHIVE,
                                                         .body = body,
                                                         .actor = depart->args->actor,
                                                         .reason = depart->args->reason },
                                 at_ms);
}

pawl_status engine_depart(struct engine *engine, struct scope *scope, const struct leaving *leaving,
                          uint32_t count, const struct archive_args *args)
{
    struct depart_request depart = { .leaving = leaving, .count = count, .args = args };
    struct request request = { .drain = drain_depart, .scope = scope, .context = &depart };

    ASSERT_KEEPING(engine);
    TRY(ref_check(scope, "actor_ref", args->actor));
    return shell_submit(engine, &request);
}

void archive_committed(struct engine *engine, const struct batch *batch)
{
    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < batch->departed_count; i++)
        heads_leave(&engine->writer.heads, batch->departed[i].number);
}

/* ---- where it is ---- */

pawl_status archive_words(struct engine *engine, struct scope *scope, str id)
{
    struct standing_row row;
    struct record record;
    char at[TIME_TEXT_SIZE];

    if (store_standing(engine->store, scope, CONTROL_ARCHIVE, id, &row) != PAWL_OK ||
        store_record(engine->store, scope, row.pos, &record) != PAWL_OK)
        return scope_fail(scope, PAWL_NOT_KNOWN, "no instance '%.*s'", STR_ARG(id));
    time_print(record.at_ms, at);
    return scope_fail(scope, PAWL_NOT_KNOWN,
                      "no instance '%.*s': it was moved into the archive file at %s", STR_ARG(id),
                      at);
}
