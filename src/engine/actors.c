/* actors.c - what the engine remembers of a flow or code instance, and how it is restored.
 *
 * Memory is folded from entries and nothing else: last snapshot, then every entry after it. */
#include "engine/engine_int.h"

struct actor *actor_new(struct engine *engine)
{
    struct actor *actor = heap_new(engine->heap, sizeof *actor);

    if (actor)
        arena_init_small(&actor->arena, engine->heap, LIMIT_SCOPE);
    return actor;
}

void actor_free(struct engine *engine, struct actor *actor)
{
    arena_fini(&actor->arena);
    heap_free(engine->heap, actor, sizeof *actor);
}

static bool is_idle(const struct actor *actor)
{
    return !actor->busy && !actor->first;
}

/* Past the limit, idle actors are let go: the next event restores them. */
static void make_room(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->actor_count && engine->actor_count >= ACTORS_KEPT;) {
        struct actor *actor = engine->actors[i];

        if (!is_idle(actor)) {
            i++;
            continue;
        }
        map_remove(&engine->actor_map, actor->instance);
        actor_free(engine, actor);
        engine->actors[i] = engine->actors[--engine->actor_count];
        if (i < engine->actor_count)
            map_put(&engine->actor_map, engine->actors[i]->instance, i);
    }
}

pawl_status actor_adopt(struct engine *engine, struct actor *actor)
{
    uint32_t capacity = engine->actor_capacity;

    ASSERT(actor->instance && map_get(&engine->actor_map, actor->instance) == MAP_NONE);
    if (engine->actor_count >= 2 * ACTORS_KEPT)
        make_room(engine);
    if (engine->actor_count == capacity) {
        uint32_t wanted = capacity ? capacity * 2 : 64;
        void *grown = heap_resize(engine->heap, engine->actors, sizeof(void *) * capacity,
                                  sizeof(void *) * wanted);

        if (!grown)
            return PAWL_NO_MEMORY;
        engine->actors = grown;
        engine->actor_capacity = wanted;
    }
    if (!map_put(&engine->actor_map, actor->instance, engine->actor_count))
        return PAWL_NO_MEMORY;
    engine->actors[engine->actor_count++] = actor;
    return PAWL_OK;
}

struct actor *actor_get(struct engine *engine, uint64_t instance)
{
    uint32_t index = map_get(&engine->actor_map, instance);
    struct actor *actor;

    if (index != MAP_NONE)
        return engine->actors[index];
    actor = actor_new(engine);
    if (!actor)
        return NULL;
    actor->instance = instance;
    if (actor_adopt(engine, actor) == PAWL_OK)
        return actor;
    actor_free(engine, actor);
    return NULL;
}

void actors_fini(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->actor_count; i++)
        actor_free(engine, engine->actors[i]);
    heap_free(engine->heap, engine->actors, sizeof(void *) * engine->actor_capacity);
    map_fini(&engine->actor_map);
}

/* ---- restoring ---- */

static pawl_status fold_kept(struct engine *engine, struct scope *scope, struct actor *actor,
                             const struct record *record)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);
    str name, payload;
    pawl_status status = signal_kept_name(scope, record, &name);

    if (!status)
        status = value_text(engine, scope, record->payload, &payload);
    return status || !behavior->keep
               ? status
               : behavior->keep(actor->memory, name, payload, scope, &actor->arena);
}

static pawl_status fold(struct engine *engine, struct scope *scope, struct actor *actor,
                        const struct record *record)
{
    struct effect_list effects = { 0 };
    struct entry_view entry = { .transition = (uint32_t)record->what,
                                .step = record->step,
                                .ordinal = record->ordinal,
                                .attempt = record->attempt,
                                .effects = &effects,
                                .at_ms = record->at_ms };
    pawl_status status = value_text(engine, scope, record->payload, &entry.payload);

    if (!status)
        status = value_text(engine, scope, record->reason, &entry.reason);
    if (!status && entry.transition == LIFE_T_GATE_APPROVE) /* who it was counts */
        status = value_text(engine, scope, record->actor, &entry.actor);
    if (!status && record->body.data)
        status = effects_read(scope, record->body, &effects);
    if (!status)
        status = behavior_of(actor->definition->kind)
                     ->apply(actor->definition, actor->memory, &entry, scope, &actor->arena);
    return status;
}

/* Entries after `seq`, oldest first, by walking back from `pos`. */
static pawl_status fold_tail(struct engine *engine, struct scope *scope, struct actor *actor,
                             uint64_t pos, uint64_t seq)
{
    struct record *records = NULL;
    uint32_t count = 0, capacity = 0;
    pawl_status status = PAWL_OK;

    while (pos) {
        struct record record;

        status = store_record(engine->store, scope, pos, &record);
        /* A kept signal has the number of the entry before it: what came after the snapshot counts.
         */
        if (status || record.seq < seq || (record.seq == seq && record.what >= 0))
            break;
        if (count == capacity) {
            struct record *grown;

            capacity = capacity ? capacity * 2 : 64;
            grown = ARENA_ARRAY(&scope->arena, struct record, capacity);
            if (!grown)
                return scope_no_memory(scope);
            if (count)
                memcpy(grown, records, sizeof *records * count);
            records = grown;
        }
        if (record.what >= 0 || record.what == CONTROL_KEEP_SIGNAL)
            records[count++] = record;
        pos = record.prev;
    }
    while (count && !status) {
        const struct record *record = &records[--count];

        status = record->what >= 0 ? fold(engine, scope, actor, record)
                                   : fold_kept(engine, scope, actor, record);
    }
    return status;
}

/* Is this the snapshot that entry `snapshot->seq` tells of? */
static bool is_told(struct scope *scope, const struct record *record, str text)
{
    struct effect_list effects = { 0 };
    struct sha *sha = sha_new(scope->arena.heap);
    char hex[2 * SHA_SIZE + 1] = "";
    uint8_t hash[SHA_SIZE];
    bool told = false;

    if (!sha || effects_read(scope, record->body, &effects))
        effects.count = 0;
    if (sha) {
        sha_once(sha, text, hash);
        sha_hex(hash, SHA_SIZE, hex);
    }
    sha_free(sha);
    for (uint32_t i = 0; i < effects.count; i++)
        told = told ||
               (effects.items[i].kind == EFFECT_SNAPSHOT && str_is(effects.items[i].name, hex));
    return told;
}

static bool snapshot_holds(struct engine *engine, struct scope *scope,
                           const struct snapshot_row *snapshot, uint64_t pos)
{
    struct record record = { .seq = UINT64_MAX };

    for (; pos && record.seq > snapshot->seq; pos = record.prev)
        if (store_record(engine->store, scope, pos, &record))
            return false;
    while (pos && record.what < 0 && record.seq == snapshot->seq) {
        if (store_record(engine->store, scope, pos, &record))
            return false;
        pos = record.prev;
    }
    return record.what >= 0 && record.seq == snapshot->seq &&
           is_told(scope, &record, snapshot->text);
}

/* The last snapshot, if it can be trusted: it may be thrown away at any time. */
static bool load_snapshot(struct engine *engine, struct scope *scope, struct actor *actor,
                          uint64_t pos, struct snapshot_row *snapshot)
{
    if (store_snapshot(engine->store, scope, actor->instance, snapshot))
        return false;
    if (snapshot_holds(engine, scope, snapshot, pos) &&
        behavior_of(actor->definition->kind)
                ->memory_load(actor->definition, snapshot->text, actor->input, scope, &actor->arena,
                              &actor->memory) == PAWL_OK)
        return true;
    engine_log(engine, PAWL_LOG_WARN, "snapshot.ignored",
               "a snapshot is not what its entry tells of; the history is folded instead");
    return false;
}

static pawl_status restore_memory(struct engine *engine, struct scope *scope, struct actor *actor,
                                  uint64_t pos)
{
    struct snapshot_row snapshot = { 0 };

    if (!load_snapshot(engine, scope, actor, pos, &snapshot)) {
        snapshot = (struct snapshot_row){ 0 };
        actor->memory = behavior_of(actor->definition->kind)
                            ->memory_new(actor->definition, actor->input, &actor->arena);
    }
    actor->snapshot_seq = (uint32_t)snapshot.seq;
    actor->snapshot_size = snapshot.text.size;
    actor->bytes_since_snapshot = 0;
    return actor->memory ? fold_tail(engine, scope, actor, pos, snapshot.seq)
                         : scope_no_memory(scope);
}

static pawl_status introduce(struct engine *engine, struct scope *scope, struct actor *actor,
                             const struct instance_row *row, const struct definition_slot *slot)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);
    struct identity identity = { .definition = slot->name,
                                 .version = slot->version,
                                 .creator = actor->creator,
                                 .correlation = row->correlation,
                                 .labels = row->labels };
    char id[ID_SIZE + 1];
    pawl_status status = value_text(engine, scope, row->subject, &identity.subject);

    if (status || !behavior->introduce)
        return status;
    id_print(row->number, row->random, id);
    identity.id = str_of(id);
    return behavior->introduce(actor->memory, &identity, &actor->arena) ? PAWL_OK
                                                                        : scope_no_memory(scope);
}

/* The entry `start` stands behind its creation, but perhaps not in a store that it was moved to;
 * then its tools are told no trace. */
static str restore_trace(struct engine *engine, struct scope *scope, const struct instance_row *row)
{
    struct record record;

    if (store_record(engine->store, scope, row->created_pos + 1, &record) != PAWL_OK ||
        record.instance != row->number || record.what < 0)
        return STR_NONE;
    return body_trace(record.body);
}

/* Where it stands: an owner knows, or knows that the row is right, and need not look through the
 * tail of the log. */
static pawl_status find_head(struct engine *engine, struct scope *scope, uint64_t instance,
                             struct head_row *out)
{
    struct head head = { 0 };
    bool trust_rows;

    if (!head_is_cached(engine, instance, &head, &trust_rows) || (head.flags & HEAD_RAW))
        return store_head(engine->store, scope, instance, trust_rows && !(head.flags & HEAD_RAW),
                          out);
    *out = (struct head_row){
        .instance = instance, .seq = head.seq, .pos = head.pos, .state = head.state
    };
    return PAWL_OK;
}

static pawl_status restore(struct engine *engine, struct scope *scope, struct actor *actor)
{
    struct head_row head;
    struct instance_row row;
    struct definition_slot *slot;
    str input;
    pawl_status status = find_head(engine, scope, actor->instance, &head);

    if (!status)
        status = store_instance(engine->store, scope, actor->instance, &row);
    if (!status)
        status = definitions_get(engine, scope, row.definition, &slot);
    if (!status)
        status = value_text(engine, scope, row.input, &input);
    if (!status && (head.state >= slot->definition->state_count ||
                    !behavior_of(slot->definition->kind)->memory_new))
        status = scope_fail(scope, PAWL_STORAGE_FAILURE,
                            "instance number %llu is no flow or code in a state it has: run pawl "
                            "verify",
                            (unsigned long long)actor->instance);
    if (status)
        return status;
    arena_clear(&actor->arena);
    actor->definition = slot->definition;
    actor->is_test = row.test;
    actor->state = head.state;
    actor->seq = (uint32_t)head.seq;
    actor->pos = head.pos;
    actor->input = arena_str(&actor->arena, input.data ? input : STR("{}"));
    status = value_text(engine, scope, row.creator, &actor->creator);
    if (status)
        return status;
    actor->creator = arena_str(&actor->arena, actor->creator);
    actor->correlation = arena_str(&actor->arena, row.correlation);
    actor->trace = arena_str(&actor->arena, restore_trace(engine, scope, &row));
    if (actor->arena.failed)
        return scope_no_memory(scope);
    status = restore_memory(engine, scope, actor, head.pos);
    return status ? status : introduce(engine, scope, actor, &row, slot);
}

/* Make sure what we remember is true. A shared engine can't know, so it looks each time. */
pawl_status actor_load(struct engine *engine, struct scope *scope, struct actor *actor)
{
    uint32_t generation = engine->generation;
    struct scope work;
    pawl_status status;

    if (actor->is_loaded && engine->options.own && actor->generation == generation)
        return PAWL_OK;
    actor->generation = generation;
    scope_init(&work, engine->heap, LIMIT_SCOPE);
    status = restore(engine, &work, actor);
    if (status)
        scope->error = work.error;
    scope_fini(&work);
    actor->is_loaded = !status;
    return status;
}
