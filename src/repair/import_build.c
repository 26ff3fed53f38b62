/* import_build.c - one commit of what was read: records with new positions and the hashes they
 * have, values with new ids, and the live rows that follow. */
#include "base/limits.h"
#include "base/sort.h"
#include "model/rights.h"
#include "model/shard.h"
#include "repair/import_int.h"
#include <stdlib.h>

/* ---- Definitions: each is known by its name and version, or, inline, by its text ---- */

static bool is_needed(const struct import *import, const struct carried_definition *definition)
{
    for (uint32_t i = 0; i < import->instance_count; i++)
        if (import->instances[i].is_taken &&
            &import->definitions[import->instances[i].definition] == definition)
            return true;
    return false;
}

/* An inline definition begins with the first instance of it. */
static void begin_inline(struct building *b, uint32_t id, int64_t at_ms)
{
    for (uint32_t i = 0; i < b->definition_count; i++)
        if (b->definitions[i].id == id && b->definitions[i].created_at_ms == INT64_MIN)
            b->definitions[i].created_at_ms = at_ms;
}

static pawl_status find_known(struct building *b, struct carried_definition *definition)
{
    struct definition_row *row = &definition->row, known;
    pawl_status status =
        store_find_definition(b->store, b->scope, row->name, row->name.data ? row->version : 0,
                              row->name.data ? NULL : row->source_sha, &known);

    definition->is_there = status == PAWL_OK;
    if (status == PAWL_NOT_KNOWN) { /* it is added */
        if (!row->name.data && !is_needed(b->import, definition))
            return PAWL_OK;
        row->id = b->tip->last_definition + b->definition_count + 1;
        row->created_at_ms = row->name.data ? b->now_ms : INT64_MIN; /* inline: unknown yet */
        b->definitions[b->definition_count++] = *row;
        return PAWL_OK;
    }
    TRY(status);
    row->id = known.id;
    if (memcmp(known.source_sha, row->source_sha, SHA_SIZE) != 0 ||
        memcmp(known.compiled_sha, row->compiled_sha, SHA_SIZE) != 0)
        return scope_fail(b->scope, PAWL_CONFLICT,
                          "definition %.*s@%u: expected the text of the export, found another one "
                          "under this name and version",
                          STR_ARG(row->name), row->version);
    return PAWL_OK;
}

/* ---- Records ---- */

static const uint8_t *commitment_of(const struct import *import, uint64_t place)
{
    return place ? import->values[place - 1].commitment : NULL;
}

/* Another salt, another commitment: where the store has these bytes interned, its own stays the one
 * that is found by them. */
static void add_value(struct building *b, const struct carried_value *carried)
{
    struct value *value = &b->values[b->value_count++], known;

    *value = (struct value){ .id = b->tip->last_value + b->value_count,
                             .bytes = carried->bytes,
                             .interned = carried->interned };
    memcpy(value->commitment, carried->commitment, SHA_SIZE);
    memcpy(value->salt, carried->salt, SALT_SIZE);
    b->erased_count += !carried->bytes.data;
    if (value->interned && store_find_value(b->store, b->scope, value->bytes, &known) == PAWL_OK)
        value->interned = false;
}

static uint64_t value_id(struct building *b, uint64_t place)
{
    if (place == 0)
        return 0;
    if (b->value_ids[place - 1] == 0) {
        add_value(b, &b->import->values[place - 1]);
        b->value_ids[place - 1] = b->tip->last_value + b->value_count;
    }
    return b->value_ids[place - 1];
}

static void creation_of(const struct building *b, const struct carried_instance *instance,
                        struct buf *out)
{
    const struct import *import = b->import;
    const struct definition_row *definition = &import->definitions[instance->definition].row;
    struct creation_facts facts = {
        .source_sha = definition->source_sha,
        .compiled_sha = definition->compiled_sha,
        .name = definition->name,
        .version = definition->version,
        .subject = commitment_of(import, instance->row.subject),
        .input = commitment_of(import, instance->row.input),
        .metadata = commitment_of(import, instance->row.metadata),
        .correlation = instance->row.correlation,
        .labels = instance->row.labels,
        .parent_id = str_of(instance->parent),
        .test = instance->row.test,
    };

    creation_body(&facts, out);
}

/* It has another hash than its own, because a part of its body was erased. */
static bool is_named_body(struct import *import, const struct record *record,
                          const uint8_t now[SHA_SIZE])
{
    uint32_t place = map_get(&import->by_body, commitment_key(record->hash));
    struct carried_body *body = place != MAP_NONE ? &import->bodies[place] : NULL;

    if (!body || memcmp(body->hash, record->hash, SHA_SIZE) != 0)
        return false;
    memcpy(body->now, now, SHA_SIZE);
    body->is_used = true;
    return true;
}

static pawl_status check_hash(struct building *b, struct carried_instance *instance,
                              const struct record *given, const struct record *record)
{
    const struct commitments commitments = { commitment_of(b->import, given->actor),
                                             commitment_of(b->import, given->payload),
                                             commitment_of(b->import, given->reason) };
    struct buf creation;
    uint8_t hash[SHA_SIZE];
    bool is_creation = given->what == CONTROL_CREATE;

    buf_init(&creation, b->scope->arena.heap, LIMIT_SCOPE);
    if (is_creation)
        creation_of(b, instance, &creation);
    record_hash(b->import->sha, instance->hash, instance->id, record,
                is_creation ? buf_view(&creation) : record->body, &commitments, hash);
    buf_fini(&creation);
    memcpy(instance->hash, record->hash, SHA_SIZE);
    if ((record->flags & RECORD_ERASED) ? is_named_body(b->import, record, hash)
                                        : memcmp(hash, record->hash, SHA_SIZE) == 0)
        return PAWL_OK;
    return scope_fail(
        b->scope, PAWL_INVALID_REQUEST,
        "instance %s, entry %llu (%s): its hash does not check; the file was changed, "
        "or a line is missing",
        instance->id, (unsigned long long)record->seq,
        is_creation       ? "its creation"
        : given->what < 0 ? "a control record"
                          : "a transition");
}

/* ---- One record after the other ---- */

/* An amend may bring a plan (code is also amended without one), and a start may say which instance
 * it runs again. */
static pawl_status note_effects(struct building *b, struct carried_instance *instance,
                                const struct record *record)
{
    struct effect_list effects = { 0 };

    TRY(effects_read(b->scope, record->body, &effects));
    for (uint32_t i = 0; i < effects.count; i++)
        if (record->what == LIFE_T_AMEND && effects.items[i].kind == EFFECT_PLAN) {
            instance->amended = record->pos;
        } else if (record->what == LIFE_T_START && effects.items[i].kind == EFFECT_REDRIVE) {
            instance->redrives = effects.items[i].name;
            instance->started = record->pos;
        }
    return PAWL_OK;
}

static pawl_status step_on(struct building *b, struct carried_instance *instance,
                           const struct record *record)
{
    const struct definition *definition = b->import->definitions[instance->definition].loaded;

    if (record->what >= 0 && (uint32_t)record->what >= definition->transition_count)
        return scope_fail(b->scope, PAWL_INVALID_REQUEST,
                          "instance %s, entry %llu: its definition has no transition %d",
                          instance->id, (unsigned long long)record->seq, record->what);
    instance->state = record->what >= 0                ? definition->transitions[record->what].to
                      : record->what == CONTROL_CREATE ? definition->initial
                                                       : instance->state;
    instance->pos = record->pos;
    instance->seq = record->seq;
    if (record->what >= 0 && record->seq % SKIP_EVERY == 0)
        instance->skip = record->pos;
    return definition->kind != KIND_MACHINE &&
                   (record->what == LIFE_T_AMEND || record->what == LIFE_T_START)
               ? note_effects(b, instance, record)
               : PAWL_OK;
}

static pawl_status add_record(struct building *b, const struct carried_record *carried)
{
    struct carried_instance *instance = &b->import->instances[carried->instance];
    const struct record *given = &carried->record;
    struct record *record = import_next_record(b);
    uint64_t pos = record->pos;

    *record = *given;
    record->pos = pos;
    record->prev = instance->pos;
    record->skip = given->what >= 0 && given->seq % SKIP_EVERY == 0 ? instance->skip : 0;
    record->actor = value_id(b, given->actor);
    record->payload = value_id(b, given->payload);
    record->reason = value_id(b, given->reason);
    if (given->what == CONTROL_CREATE) {
        struct instance_row *row = &b->instances[b->instance_count++];

        *row = instance->row;
        row->definition = b->import->definitions[instance->definition].row.id;
        row->created_pos = pos;
        begin_inline(b, row->definition, given->at_ms);
        row->creator = value_id(b, row->creator);
        row->subject = value_id(b, row->subject);
        row->input = value_id(b, row->input);
        row->metadata = value_id(b, row->metadata);
    }
    TRY(check_hash(b, instance, given, record));
    TRY(step_on(b, instance, record));
    if (record->key.data) {
        struct key_row *key = &b->keys[b->key_count++];

        *key = (struct key_row){ .at_ms = record->at_ms, .pos = pos };
        memcpy(key->id, record->key.data, KEY_ID_SIZE);
    }
    return import_live(b, instance, record);
}

/* ---- All of it ---- */

/* A rights record stays right behind its create record, also in a file whose records come from
 * several stores. */
static uint64_t place_of(const struct carried_record *carried)
{
    return carried->position - (carried->record.what == CONTROL_RIGHTS && carried->position > 0);
}

/* In the order of their store. Times do not give it: they fall where a clock was accepted. */
static int compare_records(const void *a, const void *b)
{
    const struct carried_record *left = a, *right = b;
    uint64_t left_pos = place_of(left), right_pos = place_of(right);

    if (left_pos != right_pos)
        return left_pos < right_pos ? -1 : 1;
    if (left->instance != right->instance)
        return left->instance < right->instance ? -1 : 1;
    return (left->position > right->position) - (left->position < right->position);
}

static bool make_room(struct building *b)
{
    const struct import *import = b->import;
    struct arena *arena = &b->scope->arena;
    uint32_t records = import->record_count + import->definition_count + 4;

    b->records = ARENA_ARRAY(arena, struct record, records);
    b->keys = ARENA_ARRAY(arena, struct key_row, records);
    b->values = ARENA_ARRAY(arena, struct value, import->value_count + 1);
    b->value_ids = ARENA_ARRAY(arena, uint64_t, import->value_count + 1);
    b->definitions = ARENA_ARRAY(arena, struct definition_row, import->definition_count + 1);
    b->instances = ARENA_ARRAY(arena, struct instance_row, import->instance_count + 1);
    b->heads = ARENA_ARRAY(arena, struct head_row, import->instance_count + 2);
    b->standing = ARENA_ARRAY(arena, struct standing_change,
                              3 * import->instance_count + import->definition_count + 2);
    return !arena->failed;
}

static pawl_status read_store_chain(struct building *b)
{
    struct head_row head;
    struct record record;
    pawl_status status = store_head(b->store, b->scope, 0, false, &head);

    if (status != PAWL_OK)
        return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    TRY(store_record(b->store, b->scope, head.pos, &record));
    b->store_pos = head.pos;
    memcpy(b->store_hash, record.hash, SHA_SIZE);
    return PAWL_OK;
}

static pawl_status add_definitions(struct building *b)
{
    struct import *import = b->import;

    TRY(read_store_chain(b));
    for (uint32_t i = 0; i < import->definition_count; i++) {
        if (b->tip->offset != SHARD_HOME && !is_needed(import, &import->definitions[i]))
            continue; /* the home shard has them all */
        TRY(find_known(b, &import->definitions[i]));
        if (!import->definitions[i].is_there && import->definitions[i].row.name.data)
            TRY(import_add_define(b, &import->definitions[i].row));
    }
    return PAWL_OK;
}

static bool is_wanted(const struct import *import, const struct carried_record *record)
{
    return import->instances[record->instance].is_taken;
}

static pawl_status add_records(struct building *b)
{
    struct import *import = b->import;
    uint32_t count = 0;

    for (uint32_t i = 0; i < import->body_count; i++)
        import->bodies[i].is_used = false; /* in the store that was built before */
    for (uint32_t i = 0; i < import->record_count; i++) {
        count += is_wanted(import, &import->records[i]);
        if (import->records[i].record.at_ms > b->now_ms)
            return scope_fail(b->scope, PAWL_CONFLICT,
                              "instance %s: its records are of a time that has not come here yet%s",
                              import->instances[import->records[i].instance].id,
                              b->offset_ms < 0 ? "; this store's clock is behind this machine's, "
                                                 "run `pawl doctor --accept-clock` on it first"
                                               : "");
    }
    if (count == 0)
        return PAWL_OK;
    TRY(import_add_begin(b, count));
    for (uint32_t i = 0; i < import->record_count; i++)
        if (is_wanted(import, &import->records[i]))
            TRY(add_record(b, &import->records[i]));
    TRY(import_add_end(b));
    return import_add_erase(b);
}

static void forget_chains(struct import *import)
{
    for (uint32_t i = 0; i < import->instance_count; i++) {
        struct carried_instance *one = &import->instances[i];

        one->pos = one->seq = one->skip = one->amended = one->state = 0;
        one->redrives = STR_NONE;
        memset(one->hash, 0, SHA_SIZE);
    }
}

/* Does it run another instance again, by a start of this import? */
static bool is_redrive(const struct carried_instance *one)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;

    return one->is_taken && one->redrives.data && id_parse(one->redrives, &number, random);
}

/* By the instance that is run again, then by age. Its whole id: instances of several stores may
 * have the same number. */
static int by_redriven(const void *context, uint32_t a, uint32_t b)
{
    const struct carried_instance *instances = context, *one = &instances[a],
                                  *other = &instances[b];
    int order = str_compare(one->redrives, other->redrives);

    return order ? order : (one->started > other->started) - (one->started < other->started);
}

/* Of several that run the same one again, the row names the last. */
static pawl_status add_redrives(struct building *b)
{
    const struct import *import = b->import;
    const struct carried_instance *instances = import->instances;
    uint32_t *order = ARENA_ARRAY(&b->scope->arena, uint32_t, import->instance_count + 1),
             count = 0;

    TRY_MEMORY(b->scope, order);
    for (uint32_t i = 0; i < import->instance_count; i++)
        if (is_redrive(&instances[i]))
            order[count++] = i;
    sort_indices(order, count, by_redriven, instances);
    for (uint32_t i = 0; i < count; i++) {
        const struct carried_instance *one = &instances[order[i]];

        if (i + 1 < count && str_eq(one->redrives, instances[order[i + 1]].redrives))
            continue;
        b->standing[b->standing_count++] = (struct standing_change){
            .row = { .what = LIFE_T_START, .id = one->redrives, .pos = one->started },
            .is_put = true,
        };
    }
    return PAWL_OK;
}

static void add_heads(struct building *b)
{
    const struct import *import = b->import;

    if (b->store_pos > b->tip->pos)
        b->heads[b->head_count++] = (struct head_row){ .pos = b->store_pos };
    for (uint32_t i = 0; i < import->instance_count; i++) {
        const struct carried_instance *one = &import->instances[i];

        if (!one->is_taken)
            continue;
        b->heads[b->head_count++] = (struct head_row){
            .instance = one->row.number, .seq = one->seq, .pos = one->pos, .state = one->state
        };
        if (one->amended > 0)
            b->standing[b->standing_count++] = (struct standing_change){
                .row = { .what = LIFE_T_AMEND, .id = str_of(one->id), .pos = one->amended },
                .is_put = true,
            };
    }
    qsort(b->heads, b->head_count, sizeof *b->heads, compare_numbers_first);
}

/* One commit, one root. */
static void seal(struct building *b)
{
    uint8_t root[SHA_SIZE];
    struct record *last;

    if (b->record_count == 0)
        return;
    if (b->tip->pos == 0)
        root_first(b->import->sha, b->tip->store_id, root);
    else
        memcpy(root, b->tip->root, SHA_SIZE);
    root_begin(b->import->sha, root);
    for (uint32_t i = 0; i < b->record_count; i++)
        root_add(b->import->sha, b->records[i].hash);
    last = &b->records[b->record_count - 1];
    root_end(b->import->sha, last->root);
    last->has_root = true;
}

/* Old keys may be gone; of one that was used twice the last counts. */
static void keep_keys(struct building *b)
{
    int64_t oldest = b->record_count ? b->records[b->record_count - 1].at_ms - KEY_KEPT_MS : 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->key_count; i++)
        if (b->keys[i].at_ms >= oldest)
            b->keys[kept++] = b->keys[i];
    b->key_count = kept;
}

/* The time by this store's clock. The clock never goes back, so that it is ahead of a wall clock
 * that did. */
static void read_clock(struct building *b)
{
    int64_t wall_ms = b->import->env->now_ms(b->import->env);

    b->now_ms = wall_ms + b->tip->clock_offset_ms;
    if (b->now_ms < b->tip->at_ms)
        b->now_ms = b->tip->at_ms;
    if (b->now_ms < b->import->not_before_ms)
        b->now_ms = b->import->not_before_ms;
    b->offset_ms = b->now_ms - wall_ms;
    if (b->offset_ms <= CLOCK_JUMP_MS && b->offset_ms >= -CLOCK_JUMP_MS)
        b->offset_ms = 0;
}

pawl_status import_build(struct import *import, struct store *store, const struct store_tip *tip,
                         struct scope *scope, struct commit *out)
{
    struct building b = { .import = import, .store = store, .tip = tip, .scope = scope };

    TRY_MEMORY(scope, make_room(&b));
    read_clock(&b);
    import_sort_moved(import);
    if (import->record_count > 1)
        qsort(import->records, import->record_count, sizeof *import->records, compare_records);
    forget_chains(import);
    TRY(add_definitions(&b));
    TRY(add_records(&b));
    TRY(import_add_clock(&b));
    TRY(add_redrives(&b));
    add_heads(&b);
    qsort(b.instances, b.instance_count, sizeof *b.instances, compare_numbers_first);
    seal(&b);
    keep_keys(&b);
    *out = (struct commit){ .records = b.records,
                            .record_count = b.record_count,
                            .values = b.values,
                            .value_count = b.value_count,
                            .definitions = b.definitions,
                            .definition_count = b.definition_count,
                            .instances = b.instances,
                            .instance_count = b.instance_count,
                            .heads = b.heads,
                            .head_count = b.head_count,
                            .live = b.live,
                            .live_count = b.live_count,
                            .keys = b.keys,
                            .key_count = b.key_count,
                            .standing = b.standing,
                            .standing_count = b.standing_count,
                            .keys_before_ms = INT64_MIN,
                            /* Rows of others that lag still do. */
                            .flushed = tip->flushed == tip->pos ? tip->pos + b.record_count : 0 };
    return PAWL_OK;
}
