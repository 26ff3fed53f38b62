/* step_reader.c - the attempts of one instance, one at a time.
 *
 * What an attempt was given is not stored: templates are replaced again, with the memory as it was
 * right after the entry that made the attempt. That memory is folded from the beginning, or from
 * the snapshot, of which there is one. Where both are far, step_given.c reads what the attempt
 * needs. */
#include "api/step_reader.h"
#include "api/step_given.h"
#include "base/limits.h"
#include "engine/workers.h"

#define WINDOW_ATTEMPTS 1024u /* at most */
#define FAR             512u  /* entries that are folded rather than looked for */
#define PROBE           64u   /* entries that are read to learn which attempts are made there */
#define FOLD_BYTES      ((size_t)4 << 20) /* below that the folded memory is not made smaller */

struct step_reader {
    struct heap heap; /* a copy */
    struct engine *engine;
    char id[ID_SIZE + 1];
    struct step_filter filter;
    struct scope kept;     /* what lasts as long as the reader */
    struct scope scratch;  /* one entry, one attempt */
    struct instance_view view;
    struct waiting *waiting; /* what it waits for; read when an attempt is pending */
    uint32_t waiting_count;
    bool has_waiting;
    /* The window: what became of some attempts. */
    struct scope window_scope;
    struct flow_attempts window;
    struct history_reader *entries; /* without values, of the whole history */
    uint32_t window_max;            /* attempts of the next one */
    uint32_t next;       /* in the window */
    uint64_t begins_at;  /* the number of an entry before every attempt behind the window */
    bool is_last_window;
    /* The fold. */
    struct history_reader *history;
    struct step_given given;
    struct snapshot_row snapshot; /* text.data NULL: none */
    bool has_looked;              /* ... for it */
    uint64_t folded;              /* the number of the last entry that was folded */
    struct arena arenas[2]; /* the memory is in one of them */
    int arena;
    size_t fold_size; /* of the memory when it was last made small */
    void *memory;
    struct recorded_payloads payloads; /* what the memory does not keep */
    uint32_t made; /* the last ordinal whose entry was folded */
    /* Steps that have not begun when their instance is amended go by the other plan. */
    struct step_reader *latest; /* whose memory is folded to the end; NULL: not asked yet */
    bool is_latest;             /* this is that one */
    uint32_t amended_at;        /* in that one: the last ordinal before the last amend */
    struct moved *moved;        /* likewise: begun after an amend and made before it */
};

struct moved {
    struct moved *next;
    uint32_t ordinal;
    struct flow_call given; /* when it began */
};

/* ---- What became of them ---- */

static pawl_status feed(struct step_reader *reader, const struct entry *entry)
{
    const struct record *record = entry->record;
    struct effect_list effects = { 0 };
    struct entry_view view = entry_of_record(record, &effects);
    uint32_t end = reader->window.after + reader->window.max;

    if (record->body.data)
        TRY(effects_read(&reader->scratch, record->body, &effects));
    reader->window.pos = record->pos;
    TRY(flow_attempts_apply(&reader->window_scope, &reader->window, &view));
    for (uint32_t i = 0; i < effects.count && reader->is_last_window; i++)
        if (effects.items[i].kind == EFFECT_STEP && effects.items[i].ordinal > end) {
            reader->is_last_window = false;
            reader->begins_at = record->seq;
        }
    return PAWL_OK;
}

static pawl_status seek_entries(struct step_reader *reader, struct scope *scope, uint64_t from,
                                uint64_t to)
{
    const struct history_query query = { .without_values = true };

    if (!reader->entries)
        TRY(engine_history_open(reader->engine, scope, str_of(reader->id), &query,
                                &reader->entries));
    engine_history_seek(reader->entries, from, to);
    return PAWL_OK;
}

/* Reads on until all of the window have ended and the next one has begun, or to the end. */
static pawl_status read_window(struct step_reader *reader, struct scope *scope)
{
    struct entry entry;
    bool is_found = true;
    pawl_status status = seek_entries(reader, scope, reader->begins_at, UINT64_MAX);

    reader->is_last_window = true;
    while (status == PAWL_OK && is_found && (reader->is_last_window || reader->window.live > 0)) {
        scope_clear(&reader->scratch);
        status = engine_history_next(reader->entries, scope, &entry, &is_found);
        if (status == PAWL_OK && is_found)
            status = feed(reader, &entry);
    }
    if (status != PAWL_OK && scope->error.status == PAWL_OK)
        scope->error =
            reader->scratch.error.status ? reader->scratch.error : reader->window_scope.error;
    return status;
}

static pawl_status next_window(struct step_reader *reader, struct scope *scope, uint32_t after)
{
    scope_clear(&reader->window_scope);
    reader->window = (struct flow_attempts){ .after = after, .max = reader->window_max };
    reader->window_max =
        reader->window_max < WINDOW_ATTEMPTS / 2 ? 2 * reader->window_max : WINDOW_ATTEMPTS;
    reader->next = 0;
    return read_window(reader, scope);
}

/* ---- Where they are made ---- */

/* The first ordinal that an entry from `seq` on makes, if one of the next does; 0: none does. */
static pawl_status probe(struct step_reader *reader, struct scope *scope, uint64_t seq,
                         uint32_t *made)
{
    struct entry entry;
    bool is_found = true;
    pawl_status status = seek_entries(reader, scope, seq, seq + PROBE - 1);

    for (*made = 0; status == PAWL_OK && is_found && *made == 0;) {
        struct effect_list effects = { 0 };

        scope_clear(&reader->scratch);
        status = engine_history_next(reader->entries, scope, &entry, &is_found);
        if (status == PAWL_OK && is_found && entry.record->body.data)
            status = effects_read(&reader->scratch, entry.record->body, &effects);
        for (uint32_t i = effects.count; i > 0; i--)
            if (effects.items[i - 1].kind == EFFECT_STEP)
                *made = effects.items[i - 1].ordinal;
    }
    if (status != PAWL_OK && scope->error.status == PAWL_OK)
        scope->error = reader->scratch.error;
    return status;
}

/* The number of an entry before every attempt behind `after`. Ordinals grow with entries. */
static pawl_status find_begin(struct step_reader *reader, struct scope *scope, uint32_t after)
{
    uint64_t low = 1, high = reader->view.seq + 1;
    pawl_status status = PAWL_OK;

    while (after > 0 && high - low > 2 * PROBE && status == PAWL_OK) {
        uint64_t middle = low + (high - low) / 2;
        uint32_t made = 0;

        status = probe(reader, scope, middle, &made);
        if (made > 0 && made <= after + 1)
            low = middle;
        else
            high = middle;
    }
    reader->begins_at = low;
    return status;
}

/* ---- What they were given ---- */

static str input_of(const struct step_reader *reader)
{
    return reader->view.input.data ? reader->view.input : STR("{}");
}

static pawl_status introduce(struct step_reader *reader)
{
    const struct behavior *behavior = behavior_of(reader->view.definition->kind);
    struct identity identity = engine_identity(&reader->view);

    if (reader->memory && behavior->attach)
        behavior->attach(reader->memory, &reader->payloads.source);
    if (reader->memory && behavior->introduce &&
        !behavior->introduce(reader->memory, &identity, &reader->arenas[reader->arena]))
        reader->memory = NULL;
    return reader->memory ? PAWL_OK : scope_no_memory(&reader->scratch);
}

static pawl_status open_fold(struct step_reader *reader, uint64_t from)
{
    struct history_query query = { .sequence_from = from };

    engine_history_close(reader->history);
    reader->history = NULL;
    TRY(engine_history_open(reader->engine, &reader->scratch, str_of(reader->id), &query,
                            &reader->history));
    return engine_payloads(reader->engine, &reader->scratch, str_of(reader->id), &reader->payloads);
}

static pawl_status begin_fold(struct step_reader *reader)
{
    const struct definition *definition = reader->view.definition;

    TRY(open_fold(reader, 1));
    reader->memory = behavior_of(definition->kind)
                         ->memory_new(definition, input_of(reader), &reader->arenas[reader->arena]);
    return introduce(reader);
}

/* ... as it was right after the entry that the snapshot was made at. */
static pawl_status begin_at_snapshot(struct step_reader *reader)
{
    const struct definition *definition = reader->view.definition;

    TRY(open_fold(reader, reader->snapshot.seq + 1));
    arena_clear(&reader->arenas[0]);
    arena_clear(&reader->arenas[1]);
    reader->fold_size = 0;
    reader->folded = reader->snapshot.seq;
    TRY(behavior_of(definition->kind)
            ->memory_load(definition, reader->snapshot.text, input_of(reader), &reader->scratch,
                          &reader->arenas[reader->arena], &reader->memory));
    return introduce(reader);
}

/* Is the snapshot nearer to the entry `seq` than what was folded so far? */
static pawl_status look_for_snapshot(struct step_reader *reader, uint64_t seq, bool *is_nearer)
{
    pawl_status status = PAWL_OK;

    *is_nearer = false;
    if (seq <= PROBE || reader->is_latest)
        return PAWL_OK;
    if (!reader->has_looked)
        status = engine_snapshot(reader->engine, &reader->kept, str_of(reader->id),
                                 &reader->snapshot);
    if (status != PAWL_OK)
        reader->scratch.error = reader->kept.error;
    reader->has_looked = true;
    *is_nearer = reader->snapshot.text.data && reader->snapshot.seq <= seq &&
                 reader->snapshot.seq > reader->folded;
    return status;
}

/* The arena holds what was folded away as well: the memory is printed and loaded into the other. */
static pawl_status compact(struct step_reader *reader)
{
    const struct definition *definition = reader->view.definition;
    const struct behavior *behavior = behavior_of(definition->kind);
    struct arena *arena = &reader->arenas[reader->arena], *other = &reader->arenas[!reader->arena];
    struct buf text;
    str kept;
    pawl_status status;

    if (arena->used < FOLD_BYTES || arena->used < 2 * reader->fold_size)
        return PAWL_OK;
    buf_init(&text, &reader->heap, LIMIT_SCOPE);
    behavior->memory_print(definition, reader->memory, &text);
    kept = buf_take(&text, other);
    TRY_MEMORY(&reader->scratch, kept.data);
    status = behavior->memory_load(definition, kept, input_of(reader), &reader->scratch, other,
                                   &reader->memory);
    arena_clear(arena);
    reader->arena = !reader->arena;
    reader->fold_size = other->used;
    return status == PAWL_OK ? introduce(reader) : status;
}

static pawl_status note_moved(struct step_reader *reader, const struct record *record)
{
    struct moved *moved;

    if (record->what == LIFE_T_AMEND)
        reader->amended_at = reader->made;
    if (record->what != LIFE_T_STEP_START || record->ordinal > reader->amended_at)
        return PAWL_OK;
    moved = ARENA_NEW(&reader->kept.arena, struct moved);
    TRY_MEMORY(&reader->scratch, moved);
    *moved = (struct moved){ .next = reader->moved, .ordinal = record->ordinal };
    reader->moved = moved;
    return work_call(reader->view.definition, reader->memory, record->ordinal, &reader->kept,
                     &moved->given);
}

static pawl_status fold_entry(struct step_reader *reader, const struct entry *entry)
{
    const struct record *record = entry->record;
    const struct definition *definition = reader->view.definition;
    struct effect_list effects = { 0 };
    struct entry_view view = entry_to_fold(entry, &effects);

    reader->folded = record->seq;
    if (record->body.data)
        TRY(effects_read(&reader->scratch, record->body, &effects));
    TRY(behavior_of(definition->kind)
            ->apply(definition, reader->memory, &view, &reader->scratch,
                    &reader->arenas[reader->arena]));
    for (uint32_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == EFFECT_STEP && effects.items[i].ordinal > reader->made)
            reader->made = effects.items[i].ordinal;
    return definition->kind == KIND_FLOW ? note_moved(reader, record) : PAWL_OK;
}

/* Up to entry `seq`, or to the last one. */
static pawl_status fold_until(struct step_reader *reader, uint64_t seq)
{
    struct entry entry;
    bool is_found = true, is_nearer;
    pawl_status status = look_for_snapshot(reader, seq, &is_nearer);

    if (status == PAWL_OK && is_nearer)
        status = begin_at_snapshot(reader);
    else if (status == PAWL_OK && !reader->history)
        status = begin_fold(reader);
    while (status == PAWL_OK && is_found && reader->folded < seq) {
        scope_clear(&reader->scratch);
        status = compact(reader);
        if (status == PAWL_OK)
            status = engine_history_next(reader->history, &reader->scratch, &entry, &is_found);
        if (status == PAWL_OK && is_found)
            status = fold_entry(reader, &entry);
    }
    return status;
}

/* ---- One of them ---- */

/* A result or an error is the payload of the entry that ended the attempt. */
static pawl_status read_outcome(struct step_reader *reader, struct step_view *out)
{
    struct store *store = engine_store(reader->engine);
    struct value value = { 0 };
    struct record record;

    if (out->attempt->ended_pos == 0)
        return PAWL_OK;
    TRY(store_record(store, &reader->scratch, out->attempt->ended_pos, &record));
    if (record.payload)
        TRY(store_value(store, &reader->scratch, record.payload, &value));
    *(out->attempt->status == STEP_FAILED ? &out->error : &out->result) = value.bytes;
    return PAWL_OK;
}

/* ---- Gates ---- */

static pawl_status read_gate(struct step_reader *reader, struct step_view *out)
{
    pawl_status status = PAWL_OK;

    if (out->attempt->status != STEP_PENDING)
        return PAWL_OK;
    if (!reader->has_waiting)
        status = engine_why(reader->engine, &reader->kept, str_of(reader->id), &reader->waiting,
                            &reader->waiting_count, NULL);
    reader->has_waiting = true;
    for (uint32_t i = 0; i < reader->waiting_count && status == PAWL_OK; i++)
        if (reader->waiting[i].approval.data && reader->waiting[i].ordinal == out->attempt->ordinal)
            out->gate = &reader->waiting[i];
    return status;
}

/* ---- All of an attempt ---- */

/* As the instance is now. */
static pawl_status fold_latest(struct step_reader *reader)
{
    pawl_status status;

    if (!reader->latest)
        TRY(step_reader_open(reader->engine, &reader->scratch, str_of(reader->id), 0,
                             &(struct step_filter){ 0 }, &reader->latest));
    reader->latest->is_latest = true;
    status = fold_until(reader->latest, UINT64_MAX);
    if (status != PAWL_OK)
        reader->scratch.error = reader->latest->scratch.error;
    return status;
}

/* Of an amended instance: by the plan in force when it began, or now. */
static pawl_status read_amended(struct step_reader *reader, const struct flow_attempt *attempt,
                                struct flow_call *out)
{
    bool has_begun = attempt->status != STEP_READY && attempt->status != STEP_PENDING;
    const struct moved *moved;

    TRY(fold_latest(reader));
    moved = reader->latest->moved;
    while (moved && moved->ordinal != attempt->ordinal)
        moved = moved->next;
    if (!moved)
        return work_call(reader->view.definition,
                         has_begun ? reader->memory : reader->latest->memory, attempt->ordinal,
                         &reader->scratch, out);
    *out = moved->given;
    return PAWL_OK;
}

/* From where on entry `seq` would be folded: is that far? A snapshot that is behind it then tells
 * where results are. */
static pawl_status look_how_far(struct step_reader *reader, uint64_t seq, bool *is_far)
{
    const struct definition *definition = reader->view.definition;
    bool is_nearer;
    void *later = NULL;

    TRY(look_for_snapshot(reader, seq, &is_nearer));
    *is_far = seq - (is_nearer ? reader->snapshot.seq : reader->folded) > FAR;
    if (!*is_far || reader->given.engine)
        return PAWL_OK;
    if (reader->snapshot.text.data)
        TRY(behavior_of(definition->kind)
                ->memory_load(definition, reader->snapshot.text, input_of(reader), &reader->scratch,
                              &reader->kept.arena, &later));
    reader->given = (struct step_given){ .engine = reader->engine,
                                         .view = &reader->view,
                                         .later = definition->kind == KIND_FLOW ? later : NULL,
                                         .kept = &reader->kept };
    return PAWL_OK;
}

static pawl_status read_given(struct step_reader *reader, const struct flow_attempt *attempt,
                              struct flow_call *out)
{
    bool is_far, is_known = false;

    TRY(look_how_far(reader, attempt->made_seq, &is_far));
    if (is_far)
        TRY(step_given_read(&reader->given, attempt, &reader->scratch, out, &is_known));
    if (is_known)
        return PAWL_OK;
    TRY(fold_until(reader, attempt->made_seq));
    if (reader->view.is_amended && reader->view.definition->kind == KIND_FLOW)
        return read_amended(reader, attempt, out);
    return work_call(reader->view.definition, reader->memory, attempt->ordinal, &reader->scratch,
                     out);
}

/* What an attempt was given, or which step it is of. */
static pawl_status read_call(struct step_reader *reader, struct step_view *out)
{
    const struct definition *definition = reader->view.definition;
    struct flow_call given = { 0 };
    pawl_status status;

    if (reader->filter.without_args && definition->kind == KIND_FLOW && !reader->view.is_amended) {
        out->tool = flow_plan_tool(definition, out->attempt->plan);
        out->name = work_step_name(definition, out->attempt->plan);
        return PAWL_OK;
    }
    status = read_given(reader, out->attempt, &given);
    if (status != PAWL_OK && status != PAWL_LEASE_LOST)
        return status;
    out->tool = given.tool;
    out->args = given.args;
    out->name = reader->memory ? work_step_name_now(definition, reader->memory, out->attempt->plan)
                               : work_step_name(definition, out->attempt->plan);
    return PAWL_OK;
}

/* The next of the window; NULL: it is not asked for. */
static const struct flow_attempt *take_if_wanted(struct step_reader *reader)
{
    const struct flow_attempt *attempt = &reader->window.items[reader->next++];
    unsigned statuses = reader->filter.statuses;

    return statuses == 0 || (statuses & 1u << attempt->status) ? attempt : NULL;
}

/* *out NULL: no attempt is left. */
static pawl_status next_wanted(struct step_reader *reader, struct scope *scope,
                               const struct flow_attempt **out)
{
    pawl_status status = PAWL_OK;

    for (*out = NULL; status == PAWL_OK && !*out;) {
        if (reader->next == reader->window.count && reader->is_last_window)
            return PAWL_OK;
        if (reader->next == reader->window.count)
            status = next_window(reader, scope, reader->window.after + reader->window.count);
        else
            *out = take_if_wanted(reader);
    }
    return status;
}

pawl_status step_reader_seek(struct step_reader *reader, struct scope *scope, uint32_t ordinal)
{
    uint32_t after = reader->window.after;

    if (ordinal > after && ordinal - after <= reader->window.count) {
        reader->next = ordinal - after - 1;
        return PAWL_OK;
    }
    TRY(find_begin(reader, scope, ordinal - 1));
    return next_window(reader, scope, ordinal - 1);
}

static pawl_status read_progress(struct step_reader *reader, struct step_view *out)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t instance = 0;

    (void)id_parse(str_of(reader->id), &instance, random);
    return lease_progress(reader->engine, &reader->scratch, instance, out->attempt->ordinal,
                          &out->progress, &out->progress_ms);
}

pawl_status step_reader_next(struct step_reader *reader, struct scope *scope,
                             struct step_view *out, bool *is_found)
{
    const struct flow_attempt *attempt = NULL;
    pawl_status status = PAWL_OK;

    if (reader->view.definition->kind != KIND_MACHINE)
        status = next_wanted(reader, scope, &attempt);
    *is_found = attempt != NULL;
    if (status != PAWL_OK || !attempt)
        return status;
    *out = (struct step_view){ .attempt = attempt };
    scope_clear(&reader->scratch);
    status = read_call(reader, out);
    if (status == PAWL_OK)
        status = read_outcome(reader, out);
    if (status == PAWL_OK)
        status = read_gate(reader, out);
    if (status == PAWL_OK && attempt->status == STEP_RUNNING)
        status = read_progress(reader, out);
    if (status != PAWL_OK)
        scope->error = reader->scratch.error.status ? reader->scratch.error : reader->kept.error;
    return status;
}

/* ---- Opening and closing ---- */

static pawl_status begin(struct step_reader *reader, struct scope *scope, str id, uint32_t after)
{
    pawl_status status = engine_get(reader->engine, &reader->kept, id, &reader->view);

    if (status != PAWL_OK)
        scope->error = reader->kept.error;
    TRY(status);
    memcpy(reader->id, reader->view.id, ID_SIZE);
    if (reader->view.definition->kind == KIND_MACHINE)
        return PAWL_OK;
    TRY(find_begin(reader, scope, after));
    return next_window(reader, scope, after);
}

pawl_status step_reader_open(struct engine *engine, struct scope *scope, str id, uint32_t after,
                             const struct step_filter *filter, struct step_reader **out)
{
    struct step_reader *reader = heap_new(engine_heap(engine), sizeof *reader);
    pawl_status status;

    *out = NULL;
    TRY_MEMORY(scope, reader);
    reader->heap = *engine_heap(engine);
    reader->engine = engine;
    reader->filter = *filter;
    reader->window_max =
        filter->count > 0 && filter->count < WINDOW_ATTEMPTS ? filter->count : WINDOW_ATTEMPTS;
    scope_init(&reader->kept, &reader->heap, LIMIT_SCOPE);
    scope_init(&reader->scratch, &reader->heap, LIMIT_SCOPE);
    scope_init(&reader->window_scope, &reader->heap, LIMIT_SCOPE);
    arena_init(&reader->arenas[0], &reader->heap, LIMIT_SCOPE);
    arena_init(&reader->arenas[1], &reader->heap, LIMIT_SCOPE);
    status = begin(reader, scope, id, after);
    if (status == PAWL_OK)
        *out = reader;
    else
        step_reader_close(reader);
    return status;
}

void step_reader_close(struct step_reader *reader)
{
    struct heap heap;

    if (!reader)
        return;
    heap = reader->heap;
    engine_history_close(reader->entries);
    engine_history_close(reader->history);
    step_reader_close(reader->latest);
    arena_fini(&reader->arenas[0]);
    arena_fini(&reader->arenas[1]);
    scope_fini(&reader->kept);
    scope_fini(&reader->scratch);
    scope_fini(&reader->window_scope);
    heap_free(&heap, reader, sizeof *reader);
}
