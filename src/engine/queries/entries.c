/* entries.c - entries read off the log: one record made readable, and the log followed in
 * commit order for a subscriber that is woken after each commit. */
#include "engine/parts.h"

/* ---- One record, made readable ---- */

static pawl_status text_of(struct engine *engine, struct scope *scope, struct value_texts *texts,
                           int slot, uint64_t id, str *out)
{
    *out = STR_NONE;
    if (!id)
        return PAWL_OK;
    if (texts->ids[slot] != id) {
        texts->ids[slot] = 0;
        TRY(value_text(engine, scope, id, &texts->texts[slot]));
        texts->ids[slot] = id;
    }
    *out = texts->texts[slot];
    return PAWL_OK;
}

pawl_status entry_refuse(struct scope *scope, uint64_t pos)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "position %llu names no transition; run pawl verify",
                      (unsigned long long)pos);
}

pawl_status entry_open(struct engine *engine, struct scope *scope,
                       const struct definition *definition, const struct record *record,
                       struct value_texts *texts, struct entry *out)
{
    const struct transition *transition;

    if ((uint32_t)record->what >= definition->transition_count)
        return entry_refuse(scope, record->pos);
    transition = &definition->transitions[record->what];
    *out = (struct entry){ .record = record,
                           .transition = transition,
                           .from = definition->states[transition->from].name,
                           .to = definition->states[transition->to].name,
                           .action = transition->action };
    if (record->step) {
        out->step = work_step_name(definition, record->step - 1);
        out->tool = work_unnamed_tool(definition, record->step - 1);
        if (definition->kind == KIND_FLOW)
            out->kind = flow_unnamed_kind(definition, record->step - 1);
    }
    return text_of(engine, scope, texts, 0, record->actor, &out->actor);
}

pawl_status entry_fill(struct engine *engine, struct scope *scope, struct value_texts *texts,
                       struct entry *entry)
{
    TRY(text_of(engine, scope, texts, 1, entry->record->payload, &entry->payload));
    return text_of(engine, scope, texts, 1, entry->record->reason, &entry->reason);
}

/* ---- Following ---- */

/* The place of this context, or else a free one; NULL: none is. */
static struct log_watcher *watcher_find(struct engine *engine, const void *context)
{
    struct log_watcher *free_one = NULL;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < LOG_WATCHERS; i++) {
        struct log_watcher *watcher = &engine->writer.watchers[i];

        if (watcher->committed && watcher->context == context)
            return watcher;
        if (!watcher->committed && !free_one)
            free_one = watcher;
    }
    return free_one;
}

bool engine_watch(struct engine *engine, void (*committed)(void *context, uint64_t position),
                  void *context)
{
    struct log_watcher *watcher;

    guard_lock(&engine->lock);
    watcher = watcher_find(engine, context);
    if (watcher)
        *watcher = (struct log_watcher){ committed, context };
    guard_unlock(&engine->lock);
    return watcher != NULL;
}

void engine_tell_watchers(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < LOG_WATCHERS; i++) {
        const struct log_watcher *watcher = &engine->writer.watchers[i];

        if (watcher->committed)
            watcher->committed(watcher->context, engine->writer.tip.pos);
    }
}

void engine_poke_watchers(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine_tell_watchers(engine);
    guard_unlock(&engine->lock);
}

/* Others write too: what they have committed is in the store, and durable. */
static uint64_t shared_position(struct engine *engine)
{
    struct store_tip tip = { 0 };
    struct scope scope;

    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    if (store_tip(engine->store, &scope, &tip) != PAWL_OK)
        tip.pos = 0;
    scope_fini(&scope);
    return tip.pos;
}

uint64_t engine_position(struct engine *engine)
{
    uint64_t position, shared = engine->options.own ? 0 : shared_position(engine);

    guard_lock(&engine->lock);
    position = engine->writer.tip.pos;
    guard_unlock(&engine->lock);
    return shared > position ? shared : position;
}

struct following {
    struct engine *engine;
    struct scope *scope;
    struct value_texts texts;
    entry_fn fn;
    void *context;
    uint64_t end, reached; /* `end`: what lies behind is not known to be durable */
    uint32_t left;
    bool is_full;
    struct head head; /* number and random bits of the last one met: entries come in runs */
    char id[ID_SIZE + 1];
    const struct definition *definition;
};

/* An owner has most instances at hand; `definition` and the random bits never change. */
static pawl_status meet(struct following *following, uint64_t instance)
{
    struct definition_slot *slot;
    struct head head;

    if (following->head.instance == instance)
        return PAWL_OK;
    TRY(head_fixed(following->engine, following->scope, instance, &head));
    TRY(definitions_get(following->engine, following->scope, head.definition, &slot));
    id_print(instance, head.random, following->id);
    following->definition = slot->definition;
    following->head = head;
    return PAWL_OK;
}

static pawl_status tell_entry(struct following *following, const struct record *record)
{
    struct entry entry;

    TRY(meet(following, record->instance));
    if (record->step && record->step > work_step_count(following->definition))
        TRY(amended_definition(following->engine, following->scope, &following->head,
                               &following->definition));
    TRY(entry_open(following->engine, following->scope, following->definition, record,
                   &following->texts, &entry));
    TRY(entry_fill(following->engine, following->scope, &following->texts, &entry));
    return following->fn(following->context, str_of(following->id), &entry);
}

/* ---- Creations ---- */

static pawl_status read_creation(const struct following *following,
                                 const struct instance_row *row, struct creation *out)
{
    struct engine *engine = following->engine;
    struct definition_slot *slot;

    TRY(definitions_get(engine, following->scope, row->definition, &slot));
    TRY(value_text(engine, following->scope, row->subject, &out->subject));
    if (row->parent) {
        char *id = arena_alloc(&following->scope->arena, ID_SIZE + 1);

        TRY_MEMORY(following->scope, id);
        TRY(engine_id_of(engine, following->scope, row->parent, id));
        out->parent_id = str_of(id);
    }
    out->definition = slot->name;
    out->version = slot->version;
    out->kind = slot->definition->kind;
    out->state = slot->definition->states[slot->definition->initial].name;
    out->correlation = row->correlation;
    return PAWL_OK;
}

static pawl_status tell_creation(struct following *following, const struct record *record)
{
    struct engine *engine = following->engine;
    struct creation creation = { 0 };
    struct entry entry = { .record = record, .creation = &creation };
    struct instance_row row;
    char id[ID_SIZE + 1];

    TRY(store_instance(engine->store, following->scope, record->instance, &row));
    TRY(read_creation(following, &row, &creation));
    TRY(text_of(engine, following->scope, &following->texts, 0, record->actor, &entry.actor));
    id_print(row.number, row.random, id);
    return following->fn(following->context, str_of(id), &entry);
}

static pawl_status follow_record(void *context, const struct record *record)
{
    struct following *following = context;
    pawl_status status = PAWL_OK;

    if (record->pos > following->end || following->left == 0) {
        following->is_full = true;
        return PAWL_CONFLICT; /* ends the scan; not reported */
    }
    following->left--;
    if (record->what >= 0)
        status = tell_entry(following, record);
    else if (record->what == CONTROL_CREATE)
        status = tell_creation(following, record);
    if (status == PAWL_NOT_KNOWN) /* it was moved into the archive file since it was read */
        status = PAWL_OK;
    TRY(status);
    following->reached = record->pos;
    return PAWL_OK;
}

pawl_status engine_entries(struct engine *engine, struct scope *scope, uint64_t after,
                           uint32_t limit, entry_fn fn, void *context, uint64_t *reached)
{
    struct following following = {
        .engine = engine,
        .scope = scope,
        .fn = fn,
        .context = context,
        .end = engine_position(engine),
        .reached = after,
        .left = limit,
    };
    pawl_status status = PAWL_OK;

    if (after < following.end)
        status = store_scan(engine->store, scope, after + 1, follow_record, &following);
    if (status && !following.is_full)
        return status;
    *reached = following.reached;
    return PAWL_OK;
}

/* ---- One instance ---- */

/* The number of the first entry that may lie behind `after`: the next one if the record there is
 * this instance's own, as it is for a reader that continues; else it has to be looked for from the
 * first. */
static pawl_status first_behind(struct engine *engine, struct scope *scope, uint64_t instance,
                                uint64_t after, uint64_t *out)
{
    struct record record;
    pawl_status status = PAWL_NOT_KNOWN;

    if (after)
        status = store_record(engine->store, scope, after, &record);
    *out = !status && record.instance == instance ? record.seq + 1 : 1;
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

pawl_status engine_entries_of(struct engine *engine, struct scope *scope, str id, uint64_t after,
                              uint32_t limit, entry_fn fn, void *context, uint64_t *reached)
{
    struct history_query query = { 0 };
    struct history_reader *reader = NULL;
    struct definition_slot *slot;
    struct entry entry;
    struct head head;
    uint64_t end = engine_position(engine), last = 0;
    bool is_found = true;
    pawl_status status = engine_locate(engine, scope, id, &head, &slot);

    if (!status)
        status = first_behind(engine, scope, head.instance, after, &query.sequence_from);
    if (!status && head.pos > after)
        status = engine_history_open(engine, scope, id, &query, &reader);
    while (!status && reader && is_found && limit > 0) {
        status = engine_history_next(reader, scope, &entry, &is_found);
        if (status || !is_found || entry.record->pos <= after)
            continue;
        if (entry.record->pos > end)
            break;
        status = fn(context, id, &entry);
        last = entry.record->pos;
        limit--;
    }
    engine_history_close(reader);
    if (!status)
        *reached = limit == 0 ? last : end;
    return status;
}

struct entry_view entry_to_fold(const struct entry *entry, const struct effect_list *effects)
{
    struct entry_view view = entry_of_record(entry->record, effects);

    view.payload = entry->payload;
    view.reason = entry->reason;
    view.actor = entry->actor;
    return view;
}
