/* history.c - an instance's entries, oldest first, read as they are asked for.
 *
 * There is no index on (instance, seq): every record knows the one before it, and every 64th
 * entry the one 64 before. A reader of a long history walks back along those once and notes the
 * positions of some entries, the marks. Then it reads forward, a window of positions at a time:
 * it holds one entry, however many there are. Both walks read no texts, and what does not match the
 * query is not read further. */
#include "engine/parts.h"

#define WINDOW      512u  /* entries whose positions are known at once; a multiple of SKIP_EVERY */
#define MARKS_MAX   8192u /* further apart in a longer history */
#define SCRATCH_MAX ((size_t)256 << 10)
#define AHEAD       64u        /* records that are read at one go, at most */
#define ACTORS      64u        /* whose names were compared with the query's */
#define UNWANTED    UINT64_MAX /* in the window: an entry that does not match */

_Static_assert(WINDOW % SKIP_EVERY == 0, "marks are entries that skip");

struct history_reader {
    struct heap heap; /* a copy: closing needs no engine */
    struct engine *engine;
    struct scope kept;    /* what lasts: the query's texts, an amended definition, marks */
    struct scope scratch; /* the entry that was read last */
    struct history_query query;
    struct head head;
    const struct definition *definition;
    struct value_texts texts;
    struct record record;
    struct scope ahead_scope; /* what of them is not in the records themselves */
    struct record ahead[AHEAD];
    uint32_t ahead_next, ahead_count, ahead_room; /* as many as were wanted so far */
    uint64_t next, last; /* numbers of entries */
    uint64_t stride, mark_count, *marks; /* marks[i]: of entry (i + 1) * stride; 0: not known */
    uint64_t window_first, window_end;   /* numbers; the end is not in it */
    uint64_t window[WINDOW]; /* positions; 0: not found */
    pawl_status walked; /* what a record that was walked over brought about */
    struct {
        uint64_t id; /* of the value; 0: none */
        bool is_wanted;
    } actors[ACTORS];
};

/* ---- Where the entries are ---- */

static void spare_scratch(struct history_reader *reader)
{
    if (reader->scratch.arena.used <= SCRATCH_MAX)
        return;
    scope_clear(&reader->scratch);
    reader->texts = (struct value_texts){ 0 };
}

/* Back along the chain, from query->pos on. */
static pawl_status walk(struct history_reader *reader, const struct chain_query *query,
                        record_sight see)
{
    spare_scratch(reader);
    reader->walked = PAWL_OK;
    TRY(store_walk(reader->engine->store, &reader->scratch, query, see, reader));
    return reader->walked;
}

static bool note_mark(void *context, const struct record *row)
{
    struct history_reader *reader = context;

    if (row->what >= 0 && row->seq > 0 && row->seq % reader->stride == 0 &&
        row->seq <= reader->last)
        reader->marks[row->seq / reader->stride - 1] = row->pos;
    return false;
}

/* Back from the last record to the first entry that is wanted. */
static pawl_status note_marks(struct history_reader *reader)
{
    const struct chain_query query = { .pos = reader->head.pos, .first = reader->next };

    if (reader->last - reader->next < WINDOW)
        return PAWL_OK;
    for (reader->stride = WINDOW; reader->last / reader->stride > MARKS_MAX; reader->stride *= 2)
        ;
    reader->mark_count = reader->last / reader->stride;
    reader->marks = ARENA_ARRAY(&reader->kept.arena, uint64_t, reader->mark_count);
    TRY_MEMORY(&reader->scratch, reader->marks);
    return walk(reader, &query, note_mark);
}

/* The nearest known record at or behind entry `end`. */
static uint64_t nearest(const struct history_reader *reader, uint64_t end)
{
    uint64_t mark = reader->stride ? (end + reader->stride - 1) / reader->stride : 0;
    bool has_mark = mark > 0 && mark <= reader->mark_count && reader->marks[mark - 1] > 0;

    return has_mark ? reader->marks[mark - 1] : reader->head.pos;
}

/* ---- Which of them ---- */

static pawl_status see_actor(struct history_reader *reader, uint64_t id, bool *is_wanted)
{
    size_t slot = id % ACTORS;
    str name = STR_NONE;
    pawl_status status = PAWL_OK;

    if (id && reader->actors[slot].id != id) {
        spare_scratch(reader);
        status = value_text(reader->engine, &reader->scratch, id, &name);
        reader->actors[slot].id = status ? 0 : id;
        reader->actors[slot].is_wanted = name.data && str_eq(name, reader->query.actor);
    }
    *is_wanted = !status && id && reader->actors[slot].is_wanted;
    return status;
}

static bool is_transition_wanted(const struct history_reader *reader, int32_t what)
{
    const struct history_query *query = &reader->query;
    const struct definition *definition = reader->definition;
    const struct transition *transition;

    if ((uint32_t)what >= definition->transition_count)
        return true; /* for entry_open() to refuse */
    transition = &definition->transitions[what];
    if (query->from_state.data &&
        !str_eq(query->from_state, definition->states[transition->from].name))
        return false;
    if (query->to_state.data && !str_eq(query->to_state, definition->states[transition->to].name))
        return false;
    return !query->action.data || str_eq(query->action, transition->action);
}

/* Notes where an entry of the window is, or that it is not wanted. */
static bool note_entry(void *context, const struct record *row)
{
    struct history_reader *reader = context;
    const struct history_query *query = &reader->query;
    bool is_wanted;

    if (row->what < 0 || row->seq < reader->window_first || row->seq >= reader->window_end)
        return false;
    is_wanted =
        is_transition_wanted(reader, row->what) &&
        (!query->has_after || row->fired_at_ms >= query->after_ms) &&
        (!query->has_before || row->fired_at_ms <= query->before_ms - PLANTED(BEFORE_EXCLUSIVE));
    if (is_wanted && query->actor.data)
        reader->walked = see_actor(reader, row->actor, &is_wanted);
    reader->window[row->seq - reader->window_first] = is_wanted ? row->pos : UNWANTED;
    return reader->walked;
}

static pawl_status fill_window(struct history_reader *reader)
{
    uint64_t end = reader->next + WINDOW - 1;
    struct chain_query query = { .first = reader->next };

    if (end > reader->last)
        end = reader->last;
    memset(reader->window, 0, sizeof reader->window);
    reader->window_first = reader->next;
    reader->window_end = end + 1;
    query.pos = nearest(reader, end);
    query.skip_from = end + SKIP_EVERY;
    return walk(reader, &query, note_entry);
}

/* *pos is UNWANTED for an entry that does not match. */
static pawl_status find_next(struct history_reader *reader, uint64_t *pos)
{
    if (reader->next >= reader->window_end)
        TRY(fill_window(reader));
    *pos = reader->window[reader->next - reader->window_first];
    return *pos ? PAWL_OK
                : scope_fail(&reader->scratch, PAWL_STORAGE_FAILURE,
                             "entry %llu is not in its instance's chain; run pawl verify",
                             (unsigned long long)reader->next);
}

/* A transition_id names its entry's number; one of another instance matches nothing. */
static void narrow(struct history_reader *reader)
{
    const struct history_query *query = &reader->query;
    char id[ID_SIZE + 1];
    uint64_t seq;
    str of;

    id_print(reader->head.instance, reader->head.random, id);
    reader->next = query->sequence_from ? query->sequence_from : 1;
    reader->last = query->sequence_to && query->sequence_to < reader->head.seq ? query->sequence_to
                                                                              : reader->head.seq;
    if (!query->transition_id.data)
        return;
    if (!id_split(query->transition_id, '-', &of, &seq) || !str_is(of, id) ||
        seq < reader->next || seq > reader->last)
        reader->next = reader->last + 1;
    else
        reader->next = reader->last = seq;
}

static bool copy_query(struct history_reader *reader, const struct history_query *query)
{
    struct history_query *own = &reader->query;
    struct arena *arena = &reader->kept.arena;

    *own = *query;
    own->transition_id = arena_str(arena, query->transition_id);
    own->from_state = arena_str(arena, query->from_state);
    own->to_state = arena_str(arena, query->to_state);
    own->action = arena_str(arena, query->action);
    own->actor = arena_str(arena, query->actor);
    return !arena->failed;
}

/* ---- Reading ---- */

/* The entry at `pos`, which is the one before reader->next, and some of those after it. */
static pawl_status read_ahead(struct history_reader *reader, uint64_t pos)
{
    uint64_t positions[AHEAD] = { pos };
    uint32_t count = 1;
    pawl_status status;

    reader->ahead_room = reader->ahead_room == 0       ? 1
                         : reader->ahead_room < AHEAD ? reader->ahead_room * 2
                                                       : AHEAD;
    for (uint64_t seq = reader->next; seq < reader->window_end && count < reader->ahead_room; seq++) {
        uint64_t next = reader->window[seq - reader->window_first];

        if (next && next != UNWANTED)
            positions[count++] = next;
    }
    scope_clear(&reader->ahead_scope);
    reader->ahead_next = 0;
    status = store_records(reader->engine->store, &reader->ahead_scope, positions, count,
                           reader->ahead, &reader->ahead_count);
    if (status) {
        reader->ahead_count = 0;
        reader->scratch.error = reader->ahead_scope.error;
    }
    return status;
}

static pawl_status begin(struct history_reader *reader, str id, const struct history_query *query)
{
    struct definition_slot *slot;

    TRY(engine_locate(reader->engine, &reader->scratch, id, &reader->head, &slot));
    reader->definition = slot->definition;
    if (query && !copy_query(reader, query))
        return scope_no_memory(&reader->scratch);
    narrow(reader);
    return reader->next <= reader->last ? note_marks(reader) : PAWL_OK;
}

pawl_status engine_history_open(struct engine *engine, struct scope *scope, str id,
                                const struct history_query *query, struct history_reader **out)
{
    struct history_reader *reader = heap_new(engine->heap, sizeof *reader);
    pawl_status status;

    *out = NULL;
    TRY_MEMORY(scope, reader);
    reader->heap = *engine->heap;
    reader->engine = engine;
    scope_init(&reader->kept, &reader->heap, LIMIT_SCOPE);
    scope_init(&reader->scratch, &reader->heap, LIMIT_SCOPE);
    scope_init(&reader->ahead_scope, &reader->heap, LIMIT_SCOPE);
    status = begin(reader, id, query);
    if (status) {
        scope->error = reader->scratch.error;
        engine_history_close(reader);
        return status;
    }
    *out = reader;
    return PAWL_OK;
}

void engine_history_close(struct history_reader *reader)
{
    struct heap heap;

    if (!reader)
        return;
    heap = reader->heap;
    scope_fini(&reader->kept);
    scope_fini(&reader->scratch);
    scope_fini(&reader->ahead_scope);
    heap_free(&heap, reader, sizeof *reader);
}

/* Opens the next entry, if it is wanted. */
static pawl_status read_next(struct history_reader *reader, struct entry *out, bool *is_found)
{
    struct engine *engine = reader->engine;
    const struct record *record = &reader->record;
    uint64_t pos;
    pawl_status status = find_next(reader, &pos);

    reader->next++;
    if (status || pos == UNWANTED)
        return status;
    spare_scratch(reader);
    if (reader->ahead_next == reader->ahead_count || reader->ahead[reader->ahead_next].pos != pos)
        TRY(read_ahead(reader, pos));
    reader->record = reader->ahead[reader->ahead_next++];
    if (record->step && record->step > work_step_count(reader->definition)) /* amended */
        TRY(amended_definition(engine, &reader->kept, &reader->head, &reader->definition));
    TRY(entry_open(engine, &reader->scratch, reader->definition, record, &reader->texts, out));
    *is_found = true;
    return reader->query.without_values ? PAWL_OK
                                        : entry_fill(engine, &reader->scratch, &reader->texts, out);
}

pawl_status engine_history_next(struct history_reader *reader, struct scope *scope,
                                struct entry *out, bool *is_found)
{
    pawl_status status = PAWL_OK;

    *is_found = false;
    while (!status && !*is_found && reader->next <= reader->last)
        status = read_next(reader, out, is_found);
    if (status)
        scope->error = reader->scratch.error.status ? reader->scratch.error : reader->kept.error;
    return status;
}

void engine_history_seek(struct history_reader *reader, uint64_t from, uint64_t to)
{
    reader->next = from;
    reader->last = to < reader->head.seq ? to : reader->head.seq;
    reader->window_first = reader->window_end = 0;
    reader->ahead_next = reader->ahead_count = reader->ahead_room = 0;
}

/* ---- Counted ---- */

struct taken {
    const struct definition *definition;
    uint32_t *counts;
    uint64_t refused; /* the position of an entry of no transition; 0: none */
};

static bool count_entry(void *context, const struct record *record)
{
    struct taken *taken = context;

    if (record->what >= (int32_t)taken->definition->transition_count)
        taken->refused = record->pos;
    else if (record->what >= 0)
        taken->counts[record->what]++;
    return taken->refused;
}

pawl_status engine_taken(struct engine *engine, struct scope *scope, str id, uint32_t *counts)
{
    struct taken taken = { .counts = counts };
    struct definition_slot *slot;
    struct head head;
    pawl_status status;

    TRY(engine_locate(engine, scope, id, &head, &slot));
    taken.definition = slot->definition;
    status = store_walk(engine->store, scope,
                        &(struct chain_query){ head.pos, .first = 1, .skip_from = UINT64_MAX },
                        count_entry, &taken);
    return !status && taken.refused ? entry_refuse(scope, taken.refused) : status;
}

/* ---- All at once ---- */

/* A copy that lasts as long as the scope. */
static pawl_status keep_entry(struct scope *scope, struct entry *entry)
{
    struct arena *arena = &scope->arena;
    struct record *record = arena_copy(arena, entry->record, sizeof *record);

    TRY_MEMORY(scope, record);
    record->body = arena_str(arena, record->body);
    record->key = arena_str(arena, record->key);
    entry->record = record;
    entry->actor = arena_str(arena, entry->actor);
    entry->reason = arena_str(arena, entry->reason);
    entry->payload = arena_str(arena, entry->payload);
    entry->step = arena_str(arena, entry->step);
    entry->tool = arena_str(arena, entry->tool);
    return arena->failed ? scope_no_memory(scope) : PAWL_OK;
}

pawl_status engine_history(struct engine *engine, struct scope *scope, str id,
                           const struct history_query *query, struct history *out)
{
    struct history_reader *reader;
    uint32_t capacity = 0;
    bool is_found = true;
    pawl_status status = engine_history_open(engine, scope, id, query, &reader);

    *out = (struct history){ 0 };
    while (!status && is_found) {
        struct entry entry;

        status = engine_history_next(reader, scope, &entry, &is_found);
        if (!status && is_found)
            status = keep_entry(scope, &entry);
        if (status || !is_found)
            break;
        if (GROW(&scope->arena, out->entries, out->count, capacity))
            out->entries[out->count++] = entry;
        else
            status = scope_no_memory(scope);
    }
    engine_history_close(reader);
    return status;
}

struct state_sight {
    struct scope *scope;
    pawl_status status;
    str state;
};

static bool find_state(void *context, const struct record *record)
{
    struct state_sight *sight = context;
    struct effect_list effects = { 0 };

    if (record->body.data && record->what >= 0)
        sight->status = effects_read(sight->scope, record->body, &effects);
    for (uint32_t i = 0; !sight->status && i < effects.count; i++) /* the last one counts */
        if (effects.items[i].kind == EFFECT_STATE)
            sight->state = effects.items[i].state;
    sight->state = arena_str(&sight->scope->arena, sight->state);
    return sight->status || sight->state.data;
}

/* Where an instance stood after entry `seq`. */
static pawl_status head_after(struct engine *engine, struct scope *scope, str id, uint64_t seq,
                              const struct definition *definition, struct head_row *out)
{
    struct history_query query = { .sequence_from = seq,
                                   .sequence_to = seq,
                                   .without_values = true };
    struct history found = { 0 };

    TRY(engine_history(engine, scope, id, &query, &found));
    if (found.count != 1)
        return scope_fail(scope, PAWL_NOT_KNOWN, "instance %.26s has no entry %llu", id.data,
                          (unsigned long long)seq);
    out->seq = seq;
    out->pos = found.entries[0].record->pos;
    out->state = definition->transitions[found.entries[0].record->what].to;
    return PAWL_OK;
}

pawl_status engine_variables(struct engine *engine, struct scope *scope, str id, uint64_t seq,
                             str *out)
{
    struct state_sight sight = { .scope = scope };
    struct definition_slot *slot;
    struct head_row at = { 0 };
    struct head head;

    *out = STR_NONE;
    TRY(engine_locate(engine, scope, id, &head, &slot));
    at = (struct head_row){ .instance = head.instance, .pos = head.pos };
    if (seq > 0)
        TRY(head_after(engine, scope, id, seq, slot->definition, &at));
    if (slot->definition->kind == KIND_FLOW)
        return restore_context(engine, scope, head.instance, seq > 0 ? &at : NULL, out);
    if (slot->definition->kind != KIND_CODE)
        return PAWL_OK;
    TRY(store_walk(engine->store, scope,
                   &(struct chain_query){ at.pos, .skip_from = UINT64_MAX, .with_texts = true },
                   find_state, &sight));
    *out = sight.state;
    return sight.status;
}

/* ---- Queries ---- */

struct query_asked {
    str name, state, value;
};

static pawl_status read_query(void *context, const void *memory, struct scope *scope)
{
    struct query_asked *asked = context;

    return flow_query(memory, asked->name, asked->state, scope, &asked->value);
}

pawl_status engine_query(struct engine *engine, struct scope *scope, str id, str name, str *out)
{
    struct query_asked asked = { .name = name };
    struct definition_slot *slot;
    struct head head;

    TRY(engine_locate(engine, scope, id, &head, &slot));
    if (slot->definition->kind != KIND_FLOW)
        return scope_fail(scope, PAWL_NOT_KNOWN, "only flows have queries");
    TRY(engine_current(engine, scope, id, &asked.state));
    TRY(restore_read(engine, scope, head.instance, NULL, read_query, &asked));
    *out = asked.value;
    return PAWL_OK;
}

/* ---- Attempts ---- */

static pawl_status feed_all(struct history_reader *history, struct scope *scope,
                            struct flow_attempts *attempts)
{
    struct scope scratch; /* of the effects of one entry */
    struct entry entry;
    bool is_found = true;
    pawl_status status = PAWL_OK;

    scope_init(&scratch, scope->arena.heap, LIMIT_SCOPE);
    while (!status && is_found) {
        struct effect_list effects = { 0 };
        struct entry_view view;

        scope_clear(&scratch);
        status = engine_history_next(history, scope, &entry, &is_found);
        if (status || !is_found)
            break;
        view = entry_of_record(entry.record, &effects);
        if (entry.record->body.data)
            status = effects_read(&scratch, entry.record->body, &effects);
        if (status)
            scope->error = scratch.error;
        else
            status = flow_attempts_apply(scope, attempts, &view);
    }
    scope_fini(&scratch);
    return status;
}

pawl_status engine_steps(struct engine *engine, struct scope *scope, str id,
                         struct flow_attempts *out, const struct definition **definition,
                         const struct definition **now)
{
    const struct history_query query = { .without_values = true };
    struct history_reader *history = NULL;
    struct definition_slot *slot;
    struct head head;
    pawl_status status;

    *out = (struct flow_attempts){ .is_sparse = true };
    TRY(engine_locate(engine, scope, id, &head, &slot));
    *definition = *now = slot->definition;
    TRY(amended_definition(engine, scope, &head, now));
    if (slot->definition->kind == KIND_MACHINE)
        return PAWL_OK;
    TRY(engine_history_open(engine, scope, id, &query, &history));
    status = feed_all(history, scope, out);
    engine_history_close(history);
    return status;
}
