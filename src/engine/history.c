/* history.c - an instance's entries, walked back from its last one.
 *
 * There is no index on (instance, seq): every record knows the one before it, and every 64th
 * entry the one 64 before, so that a late range is found without reading what comes after. */
#include "engine/engine_int.h"

struct walk {
    struct engine *engine;
    struct scope *scope;
    const struct definition *definition;
    const struct history_query *query;
    struct entry *entries;
    size_t count, capacity;
    struct value_texts texts;
    const struct head *head;
};

static bool is_wanted(const struct history_query *query, const struct entry *entry)
{
    const struct record *record = entry->record;

    if (query->from_state.data && !str_eq(query->from_state, entry->from))
        return false;
    if (query->to_state.data && !str_eq(query->to_state, entry->to))
        return false;
    if (query->action.data && !str_eq(query->action, entry->action))
        return false;
    if (query->actor.data && (!entry->actor.data || !str_eq(query->actor, entry->actor)))
        return false;
    if (query->has_after && record->fired_at_ms < query->after_ms)
        return false;
    return !query->has_before ||
           record->fired_at_ms <= query->before_ms - PLANTED(BEFORE_EXCLUSIVE);
}

static pawl_status room_for_one(struct walk *walk)
{
    struct entry *grown;

    if (walk->count < walk->capacity)
        return PAWL_OK;
    walk->capacity = walk->capacity ? walk->capacity * 2 : 16;
    grown = ARENA_ARRAY(&walk->scope->arena, struct entry, walk->capacity);
    if (!grown)
        return scope_no_memory(walk->scope);
    if (walk->count)
        memcpy(grown, walk->entries, sizeof *grown * walk->count);
    walk->entries = grown;
    return PAWL_OK;
}

static pawl_status add(struct walk *walk, const struct record *record)
{
    struct entry entry;
    pawl_status status = PAWL_OK;

    if (record->step && record->step > flow_step_count(walk->definition)) /* of an amend */
        status = amended_definition(walk->engine, walk->scope, walk->head, &walk->definition);
    if (!status)
        status =
            entry_open(walk->engine, walk->scope, walk->definition, record, &walk->texts, &entry);
    if (status || !is_wanted(walk->query, &entry))
        return status;
    status = entry_fill(walk->engine, walk->scope, &walk->texts, &entry);
    if (!status)
        status = room_for_one(walk);
    if (!status)
        walk->entries[walk->count++] = entry;
    return status;
}

static void reverse(struct entry *entries, size_t count)
{
    for (size_t i = 0; i + 1 < count - i; i++) {
        struct entry swapped = entries[i];

        entries[i] = entries[count - 1 - i];
        entries[count - 1 - i] = swapped;
    }
}

/* From `pos` back to entry `first`; entries past `last` are skipped, 64 at a time where possible.
 */
static pawl_status walk_back(struct walk *walk, uint64_t pos, uint64_t first, uint64_t last)
{
    while (pos) {
        struct record *record = ARENA_NEW(&walk->scope->arena, struct record);
        pawl_status status;

        if (!record)
            return scope_no_memory(walk->scope);
        status = store_record(walk->engine->store, walk->scope, pos, record);
        if (!status && record->what >= 0 && record->seq <= last && record->seq >= first)
            status = add(walk, record);
        if (status)
            return status;
        if (record->seq < first || record->seq == 0)
            return PAWL_OK;
        pos = record->skip && record->seq > last + SKIP_EVERY ? record->skip : record->prev;
    }
    return PAWL_OK;
}

/* A transition_id names its entry's number; one of another instance matches nothing. */
static bool narrow(const struct history_query *query, const char *id, uint64_t *first,
                   uint64_t *last)
{
    uint64_t seq;
    str of;

    *first = query->sequence_from ? query->sequence_from : 1;
    *last = query->sequence_to ? query->sequence_to : UINT64_MAX - SKIP_EVERY;
    if (!query->transition_id.data)
        return true;
    if (!id_split(query->transition_id, '-', &of, &seq) || !str_is(of, id) || seq < *first ||
        seq > *last)
        return false;
    *first = *last = seq;
    return true;
}

pawl_status engine_history(struct engine *engine, struct scope *scope, str id,
                           const struct history_query *query, struct history *out)
{
    const struct history_query all = { 0 };
    struct walk walk = { .engine = engine, .scope = scope, .query = query ? query : &all };
    struct definition_slot *slot;
    struct head head;
    char text[ID_SIZE + 1];
    uint64_t first, last;
    pawl_status status = engine_locate(engine, scope, id, &head, &slot);

    if (status)
        return status;
    id_print(head.instance, head.random, text);
    walk.definition = slot->definition;
    walk.head = &head;
    if (narrow(walk.query, text, &first, &last))
        status = walk_back(&walk, head.pos, first, last);
    if (status)
        return status;
    reverse(walk.entries, walk.count);
    *out = (struct history){ .entries = walk.entries, .count = walk.count };
    return PAWL_OK;
}

static str state_in(const struct effect_list *effects)
{
    for (uint32_t i = effects->count; i > 0; i--)
        if (effects->items[i - 1].kind == EFFECT_STATE)
            return effects->items[i - 1].state;
    return STR_NONE;
}

pawl_status engine_variables(struct engine *engine, struct scope *scope, str id, str *out)
{
    struct definition_slot *slot;
    struct record record;
    struct head head;
    pawl_status status = engine_locate(engine, scope, id, &head, &slot);

    *out = STR_NONE;
    if (status || slot->definition->kind != KIND_CODE)
        return status;
    for (uint64_t pos = head.pos; pos && !out->data && !status; pos = record.prev) {
        struct effect_list effects = { 0 };

        status = store_record(engine->store, scope, pos, &record);
        if (!status && record.body.data && record.what >= 0)
            status = effects_read(scope, record.body, &effects);
        if (!status)
            *out = state_in(&effects);
    }
    return status;
}

pawl_status engine_steps(struct engine *engine, struct scope *scope, str id,
                         struct flow_attempts *out, const struct definition **definition)
{
    struct definition_slot *slot;
    struct history history;
    struct head head;
    pawl_status status = engine_locate(engine, scope, id, &head, &slot);

    if (!status)
        status = engine_history(engine, scope, id, NULL, &history);
    *out = (struct flow_attempts){ 0 };
    if (status)
        return status;
    *definition = slot->definition;
    for (size_t i = 0; i < history.count && !status && slot->definition->kind != KIND_MACHINE; i++) {
        const struct record *record = history.entries[i].record;
        struct effect_list effects = { 0 };
        struct entry_view entry = { .transition = (uint32_t)record->what,
                                    .step = record->step,
                                    .ordinal = record->ordinal,
                                    .attempt = record->attempt,
                                    .payload = history.entries[i].payload,
                                    .effects = &effects,
                                    .at_ms = record->at_ms };

        if (record->body.data)
            status = effects_read(scope, record->body, &effects);
        if (!status)
            status = flow_attempts_apply(scope, out, &entry);
    }
    return status;
}
