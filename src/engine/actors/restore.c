/* restore.c - a flow or code instance is brought back from what the store knows of it.
 *
 * Memory is folded from entries and nothing else: last snapshot, then every entry after it. */
#include "engine/parts.h"

static pawl_status fold_entry(struct engine *engine, struct scope *scope, struct actor *actor,
                              const struct instance_log_record *log)
{
    const struct record *record = &log->record;
    struct effect_list effects = { 0 };
    struct entry_view entry = entry_of_record(record, &effects);

    entry.payload = log->payload;
    entry.reason = log->reason;
    entry.actor = log->actor;
    if (!log->reason.data)
        TRY(value_text(engine, scope, record->reason, &entry.reason));
    if (!log->actor.data && /* who it was counts */
        (entry.transition == LIFE_T_GATE_APPROVE || lifecycle_is_stop(entry.transition)))
        TRY(value_text(engine, scope, record->actor, &entry.actor));
    if (record->body.data)
        TRY(effects_read(scope, record->body, &effects));
    return behavior_of(actor->definition->kind)
        ->apply(actor->definition, actor->memory, &entry, scope, &actor->arena);
}

/* The record before; 0: none that is folded. */
static uint64_t before(const struct record *record)
{
    return record->what >= 0 && record->seq <= 1 ? 0 : record->prev;
}

/* ---- Records, one at a time: each may hold a megabyte ---------------------------------------- */

#define SCRATCH_MAX ((size_t)256 << 10)

/* The records before those that were read at one go, the last first. */
struct trail {
    const struct heap *heap;
    uint64_t *positions;
    uint32_t count, capacity;
    uint64_t seq;    /* back to this entry; 0: to the first */
    bool has_failed; /* no memory */
};

static bool note_earlier(void *context, const struct record *record)
{
    struct trail *trail = context;

    trail->has_failed =
        !HEAP_GROW(trail->heap, trail->positions, trail->capacity, trail->count + 1);
    if (!trail->has_failed)
        trail->positions[trail->count++] = record->pos;
    return trail->has_failed || !before(record) || (record->what >= 0 && record->seq <= trail->seq);
}

/* The oldest record that was found: it may name the snapshot. */
static pawl_status read_oldest(struct engine *engine, struct scope *scratch,
                               const struct instance_log *log, const struct trail *trail,
                               struct record *out)
{
    if (trail->count > 0)
        return store_record(engine->store, scratch, trail->positions[trail->count - 1], out);
    *out = log->record_count > 0 ? log->records[log->record_count - 1].record
                                 : (struct record){ .what = -1 };
    return PAWL_OK;
}

/* Adds the records back to entry `seq`, unless those that were read at one go reach that far. */
static pawl_status find_earlier(struct engine *engine, struct scope *scratch,
                                const struct instance_log *log, uint64_t seq, struct trail *trail)
{
    struct chain_query query = { .skip_from = UINT64_MAX };
    struct record oldest;

    TRY(read_oldest(engine, scratch, log, trail, &oldest));
    trail->seq = seq;
    query.pos = oldest.what >= 0 && oldest.seq <= seq ? 0 : before(&oldest);
    if (query.pos)
        TRY(store_walk(engine->store, scratch, &query, note_earlier, trail));
    return trail->has_failed ? scope_no_memory(scratch) : PAWL_OK;
}

static pawl_status fold_one(struct engine *engine, struct scope *scratch, struct actor *actor,
                            struct instance_log_record *log)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);
    str name;

    if (log->is_left)
        TRY(value_text(engine, scratch, log->record.payload, &log->payload));
    if (log->record.what >= 0)
        return fold_entry(engine, scratch, actor, log);
    if (log->record.what != CONTROL_KEEP_SIGNAL || !behavior->keep)
        return PAWL_OK;
    TRY(signal_kept_name(scratch, &log->record, &name));
    return behavior->keep(actor->memory, name, log->payload, scratch, &actor->arena);
}

/* Does entry `seq`, or the memory after it, know of this record? A kept signal has the number of
 * the entry before it. */
static bool is_known(const struct record *record, uint64_t seq)
{
    return record->seq < seq || (record->seq == seq && record->what >= 0);
}

static pawl_status fold_trail(struct engine *engine, struct scope *scratch, struct actor *actor,
                              const struct trail *trail, uint64_t seq)
{
    for (size_t i = trail->count; i > 0; i--) {
        struct instance_log_record log = { .is_left = true };

        scope_clear(scratch);
        TRY(store_record(engine->store, scratch, trail->positions[i - 1], &log.record));
        if (!is_known(&log.record, seq))
            TRY(fold_one(engine, scratch, actor, &log));
    }
    return PAWL_OK;
}

/* Those that were read at one go, oldest first. */
static pawl_status fold_tail(struct engine *engine, struct scope *scratch, struct actor *actor,
                             const struct instance_log *log, uint64_t seq)
{
    for (uint32_t i = log->record_count; i > 0; i--) {
        if (scratch->arena.used > SCRATCH_MAX)
            scope_clear(scratch);
        if (!is_known(&log->records[i - 1].record, seq))
            TRY(fold_one(engine, scratch, actor, &log->records[i - 1]));
    }
    return PAWL_OK;
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

pawl_status engine_snapshot(struct engine *engine, struct scope *scope, str id,
                            struct snapshot_row *out)
{
    struct history_query query = { .without_values = true };
    struct history found = { 0 };
    struct definition_slot *slot;
    struct head head;
    pawl_status status;

    *out = (struct snapshot_row){ 0 };
    status = engine_locate(engine, scope, id, &head, &slot);
    if (!status)
        status = store_snapshot(engine->store, scope, head.instance, out);
    query.sequence_from = query.sequence_to = out->seq;
    if (!status && out->seq > 0)
        status = engine_history(engine, scope, id, &query, &found);
    if (status || found.count != 1 || !is_told(scope, found.entries[0].record, out->text))
        *out = (struct snapshot_row){ 0 };
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

/* The last snapshot, if it can be trusted: it may be thrown away at any time. Else no memory is
 * there. */
static pawl_status load_snapshot(struct engine *engine, struct scope *scratch, struct actor *actor,
                                 const struct instance_log *log, struct trail *trail)
{
    const struct snapshot_row *snapshot = &log->snapshot;
    struct record oldest;
    pawl_status status;

    TRY(find_earlier(engine, scratch, log, snapshot->seq, trail));
    TRY(read_oldest(engine, scratch, log, trail, &oldest));
    if (oldest.what >= 0 && oldest.seq == snapshot->seq &&
        is_told(scratch, &oldest, snapshot->text)) {
        status = behavior_of(actor->definition->kind)
                     ->memory_load(actor->definition, snapshot->text, actor->input, scratch,
                                   &actor->arena, &actor->memory);
        if (!status || status == PAWL_NO_MEMORY)
            return status;
    }
    actor->memory = NULL;
    engine_log(engine, PAWL_LOG_WARN, "snapshot.ignored",
               "a snapshot is not what its entry tells of; the history is folded instead");
    return PAWL_OK;
}

static pawl_status begin_memory(struct engine *engine, struct scope *scratch, struct actor *actor,
                                struct instance_log *log, struct trail *trail)
{
    pawl_status status = PAWL_OK;

    actor->memory = NULL;
    if (log->snapshot.text.data)
        status = load_snapshot(engine, scratch, actor, log, trail);
    if (!status && !actor->memory) {
        log->snapshot = (struct snapshot_row){ 0 };
        actor->memory = behavior_of(actor->definition->kind)
                            ->memory_new(actor->definition, actor->input, &actor->arena);
        status =
            actor->memory ? find_earlier(engine, scratch, log, 0, trail) : scope_no_memory(scratch);
    }
    if (!status)
        payloads_attach(engine, actor);
    actor->snapshot_seq = (uint32_t)log->snapshot.seq;
    actor->snapshot_size = log->snapshot.text.size;
    actor->bytes_since_snapshot = 0;
    return status;
}

static pawl_status restore_memory(struct engine *engine, struct scope *scope, struct actor *actor,
                                  struct instance_log *log)
{
    struct trail trail = { .heap = engine->heap };
    struct scope scratch;
    pawl_status status;

    scope_init(&scratch, engine->heap, LIMIT_SCOPE);
    status = begin_memory(engine, &scratch, actor, log, &trail);
    if (!status)
        status = fold_trail(engine, &scratch, actor, &trail, log->snapshot.seq);
    if (!status)
        status = fold_tail(engine, &scratch, actor, log, log->snapshot.seq);
    scope->arena.is_full = scope->arena.is_full || scratch.arena.is_full;
    heap_free(engine->heap, trail.positions, sizeof *trail.positions * trail.capacity);
    return scope_leave(&scratch, scope, status);
}

static pawl_status introduce(struct engine *engine, struct scope *scope, struct actor *actor,
                             const struct instance_log *log, const struct definition_slot *slot)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);
    const struct instance_row *row = &log->instance;
    struct identity identity = { .definition = slot->name,
                                 .version = slot->version,
                                 .creator = actor->creator,
                                 .correlation = row->correlation,
                                 .labels = row->labels,
                                 .subject = log->subject };
    char id[ID_SIZE + 1];

    if (!log->is_whole)
        TRY(value_text(engine, scope, row->subject, &identity.subject));
    if (!behavior->introduce)
        return PAWL_OK;
    id_print(row->number, row->random, id);
    identity.id = str_of(id);
    return behavior->introduce(actor->memory, &identity, &actor->arena) ? PAWL_OK
                                                                        : scope_no_memory(scope);
}

/* The entry `start` stands behind its creation, but perhaps not in a store that it was moved to;
 * then its tools get no trace. */
static str restore_trace(struct engine *engine, struct scope *scope, const struct instance_log *log)
{
    struct record record;

    for (uint32_t i = log->record_count; i > 0; i--)
        if (log->records[i - 1].record.seq == 1 && log->records[i - 1].record.what >= 0)
            return body_trace(log->records[i - 1].record.body);
    if (read_first_entry(engine, scope, &log->instance, &record) != PAWL_OK)
        return STR_NONE;
    return body_trace(record.body);
}

/* An owner knows where it stands, or knows that the row is right, and need not look through the
 * tail of the log. */
static bool head_is_known(struct engine *engine, uint64_t instance, struct head_row *out,
                          bool *trust_rows)
{
    struct head head = { .instance = instance };
    bool is_known = head_is_cached(engine, instance, &head, trust_rows) && !(head.flags & HEAD_RAW);

    *trust_rows = *trust_rows && !(head.flags & HEAD_RAW);
    *out = row_of_head(&head);
    return is_known;
}

pawl_status head_row_now(struct engine *engine, struct scope *scope, uint64_t instance,
                         struct head_row *out)
{
    bool trust_rows;

    return head_is_known(engine, instance, out, &trust_rows)
               ? PAWL_OK
               : store_head(engine->store, scope, instance, trust_rows, out);
}

void instance_log_ask(struct engine *engine, uint64_t instance, struct instance_log *out,
                      struct instance_log_query *query)
{
    *query = (struct instance_log_query){ .instance = instance, .out = out };
    query->is_known = head_is_known(engine, instance, &query->head, &query->trust_rows);
}

/* What the drain would have to read again. As long as the actor is remembered its head does not
 * leave but for want of room; so one that is not there has not changed since it was read. */
static void learn_head(struct engine *engine, const struct instance_log *log, uint32_t generation)
{
    struct head head = head_of_rows(&log->head, &log->instance);

    memcpy(head.hash, log->records[0].record.hash, SHA_SIZE);
    guard_lock(&engine->lock);
    if (engine->options.own && engine->actors.generation == generation)
        heads_learn(&engine->writer.heads, &head);
    guard_unlock(&engine->lock);
}

/* What creation fixed, and where it stands. */
static pawl_status restore_standing(struct engine *engine, struct scope *scope, struct actor *actor,
                                    const struct instance_log *log, struct definition *definition)
{
    arena_clear(&actor->arena);
    actor->definition = definition;
    actor->is_test = log->instance.test;
    actor->state = log->head.state;
    actor->seq = (uint32_t)log->head.seq;
    actor->pos = log->head.pos;
    actor->input = arena_str(&actor->arena, log->input.data ? log->input : STR("{}"));
    actor->creator = arena_str(&actor->arena, log->creator);
    actor->correlation = arena_str(&actor->arena, log->instance.correlation);
    actor->trace = arena_str(&actor->arena, restore_trace(engine, scope, log));
    return actor->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

static pawl_status restore(struct engine *engine, struct scope *scope, struct actor *actor,
                           struct instance_log *log)
{
    struct definition_slot *slot;

    TRY(definitions_get(engine, scope, log->instance.definition, &slot));
    if (!log->record_count || log->head.state >= slot->definition->state_count ||
        !behavior_of(slot->definition->kind)->memory_new)
        return scope_fail(
            scope, PAWL_STORAGE_FAILURE,
            "instance number %llu is no flow or code in a state it has: run pawl verify",
            (unsigned long long)log->instance.number);
    TRY(restore_standing(engine, scope, actor, log, slot->definition));
    TRY(restore_memory(engine, scope, actor, log));
    return introduce(engine, scope, actor, log, slot);
}

static bool is_remembered(const struct engine *engine, const struct actor *actor)
{
    return actor->is_loaded && engine->options.own && actor->generation == engine->actors.generation;
}

static void note_load(struct engine *engine, struct actor *actor, const struct scope *work,
                      const struct instance_log *log, uint32_t generation, pawl_status status)
{
    if (!status)
        learn_head(engine, log, generation);
    actor->generation = generation;
    actor->is_loaded = !status;
    actor->loaded_size = actor->arena.used;
    actor->is_too_large = status == PAWL_NO_MEMORY && (work->arena.is_full || actor->arena.is_full);
}

/* `is_kept`: false for an actor of a reader's own, which no event reaches. What it says is as old
 * as its entries, and the heads, which only turns keep in step with commits, do not learn of it. */
static pawl_status read_actor(struct engine *engine, struct scope *scope, struct actor *actor,
                              bool is_kept)
{
    uint32_t generation = engine->actors.generation;
    struct instance_log_query query;
    struct instance_log log;
    struct scope work;
    pawl_status status;

    scope_init(&work, engine->heap, LIMIT_SCOPE);
    instance_log_ask(engine, actor->instance, &log, &query);
    status = store_instance_logs(engine->store, &work, &query, 1);
    if (!status)
        status = restore(engine, &work, actor, &log);
    if (is_kept)
        note_load(engine, actor, &work, &log, generation, status);
    return scope_leave(&work, scope, status);
}

/* Make sure what we remember is true. A shared engine can't know, so it looks each time. */
pawl_status actor_load(struct engine *engine, struct scope *scope, struct actor *actor)
{
    return is_remembered(engine, actor) ? PAWL_OK : read_actor(engine, scope, actor, true);
}

/* Back to the snapshot's entry, as restore() expects it. */
static struct instance_log cut_at_snapshot(const struct instance_log *log)
{
    struct instance_log cut = *log;

    for (uint32_t i = 0; log->snapshot.text.data && i < log->record_count; i++)
        if (log->records[i].record.what >= 0 && log->records[i].record.seq == log->snapshot.seq)
            cut.record_count = i + 1;
    return cut;
}

static pawl_status print_known(struct scope *scope, const struct actor *actor, bool *is_done,
                               uint32_t steps, str *context)
{
    struct buf text;

    for (uint32_t i = 0; is_done && i < steps; i++) {
        uint32_t seq = flow_done(actor->memory, i);

        is_done[i] = seq > 0 && seq != FLOW_DONE_UNKNOWN;
    }
    buf_init(&text, scope->arena.heap, 0);
    flow_print_context(actor->memory, &text);
    *context = buf_take(&text, &scope->arena);
    return context->data ? PAWL_OK : scope_no_memory(scope);
}

pawl_status restore_known(struct engine *engine, struct scope *scope,
                          const struct instance_log *log, bool *is_done, uint32_t steps,
                          str *context)
{
    struct actor actor = { .instance = log->instance.number };
    struct instance_log cut = cut_at_snapshot(log);
    struct scope work;
    pawl_status status;

    arena_init(&actor.arena, engine->heap, LIMIT_SCOPE);
    scope_init(&work, engine->heap, LIMIT_SCOPE);
    status = restore(engine, &work, &actor, &cut);
    status = scope_leave(&work, scope, status);
    if (!status)
        status = print_known(scope, &actor, is_done, steps, context);
    arena_fini(&actor.arena);
    return status;
}

/* As it was after an entry of the past: its log is read back from there. A later snapshot knows of
 * what came after. */
static pawl_status read_actor_at(struct engine *engine, struct scope *scope, struct actor *actor,
                                 const struct head_row *at)
{
    struct instance_log log;
    struct instance_log_query query = {
        .instance = actor->instance, .out = &log, .head = *at, .is_known = true
    };
    struct scope work;
    pawl_status status;

    scope_init(&work, engine->heap, LIMIT_SCOPE);
    status = store_instance_logs(engine->store, &work, &query, 1);
    if (!status && log.snapshot.seq > at->seq)
        log.snapshot = (struct snapshot_row){ 0 };
    if (!status)
        status = restore(engine, &work, actor, &log);
    return scope_leave(&work, scope, status);
}

pawl_status restore_read(struct engine *engine, struct scope *scope, uint64_t instance,
                         const struct head_row *at, restored_fn *read, void *context)
{
    struct actor actor = { .instance = instance };
    pawl_status status;

    arena_init(&actor.arena, engine->heap, LIMIT_SCOPE);
    status =
        at ? read_actor_at(engine, scope, &actor, at) : read_actor(engine, scope, &actor, false);
    if (!status)
        status = read(context, actor.memory, scope);
    arena_fini(&actor.arena);
    return status;
}

static pawl_status read_context(void *context, const void *memory, struct scope *scope)
{
    str *out = context;
    struct buf text;

    buf_init(&text, scope->arena.heap, 0);
    flow_print_context(memory, &text);
    *out = buf_take(&text, &scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

pawl_status restore_context(struct engine *engine, struct scope *scope, uint64_t instance,
                            const struct head_row *at, str *out)
{
    return restore_read(engine, scope, instance, at, read_context, out);
}

/* Actors whose turn is ours, with one look at the store. What cannot be restored here is looked at
 * again, by itself, when its event is decided, and fails there with its words. */
void actors_load(struct engine *engine, struct actor *const *actors, uint32_t count)
{
    struct instance_log_query queries[ACTORS_AT_ONCE];
    struct instance_log logs[ACTORS_AT_ONCE];
    struct actor *asked[ACTORS_AT_ONCE];
    uint32_t generation = engine->actors.generation, wanted = 0;
    struct scope work;

    ASSERT(count <= ACTORS_AT_ONCE);
    for (uint32_t i = 0; i < count; i++)
        if (!is_remembered(engine, actors[i])) {
            instance_log_ask(engine, actors[i]->instance, &logs[wanted], &queries[wanted]);
            asked[wanted++] = actors[i];
        }
    if (wanted < 2 || !engine->options.own)
        return;
    scope_init(&work, engine->heap, LIMIT_SCOPE);
    store_instance_logs(engine->store, &work, queries, wanted);
    for (uint32_t i = 0; i < wanted && queries[i].is_read; i++)
        note_load(engine, asked[i], &work, &logs[i], generation,
                  restore(engine, &work, asked[i], &logs[i]));
    scope_fini(&work);
}
