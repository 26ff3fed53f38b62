/* read.c - what callers see. Reads never wait for the drain.
 *
 * An owner answers from its memory where that is newer than the rows; any other process reads
 * rows and tail. Nothing that is not yet durable is ever shown: pending heads live in the
 * batch and reach the cache after the commit. */
#include "base/node.h"
#include "engine/parts.h"

pawl_status engine_locate(struct engine *engine, struct scope *scope, str id, struct head *out,
                          struct definition_slot **slot)
{
    uint8_t random[ID_RANDOM_SIZE];
    struct instance_row row;
    struct head_row head;
    uint64_t number;
    bool trust_rows, is_cached;
    pawl_status status;

    TRY(id_check(scope, id, &number, random));
    is_cached = head_is_cached(engine, number, out, &trust_rows);
    status = is_cached ? heads_make_whole(engine, scope, out)
                       : store_instance(engine->store, scope, number, &row);
    if (!status && !is_cached)
        status = store_head(engine->store, scope, number, trust_rows, &head);
    if (!status && !is_cached)
        *out = head_of_rows(&head, &row);
    if (status == PAWL_NOT_KNOWN || (!status && memcmp(random, out->random, sizeof random) != 0))
        return archive_words(engine, scope, id);
    return status ? status : definitions_of(engine, scope, out, slot);
}

pawl_status engine_current(struct engine *engine, struct scope *scope, str id, str *out)
{
    struct head head;
    struct definition_slot *slot;

    TRY(engine_locate(engine, scope, id, &head, &slot));
    *out = slot->definition->states[head.state].name;
    return PAWL_OK;
}

pawl_status engine_declaration(struct engine *engine, struct scope *scope, str id, str *out)
{
    struct head head;
    struct definition_slot *slot;
    struct definition_row row;

    TRY(engine_locate(engine, scope, id, &head, &slot));
    TRY(store_definition(engine->store, scope, head.definition, &row));
    *out = row.source;
    return PAWL_OK;
}

pawl_status engine_definition_now(struct engine *engine, struct scope *scope, str id,
                                  const struct definition **out)
{
    struct head head;
    struct definition_slot *slot;

    TRY(engine_locate(engine, scope, id, &head, &slot));
    *out = slot->definition;
    return amended_definition(engine, scope, &head, out);
}

#define LOOK_BACK_MAX 4096 /* records: other branches may have gone on for long */

#define EXPLAIN_MAX 1000000 /* records without texts: a second or so, and rarely any */

struct look_back {
    record_sight see;
    void *context;
    uint32_t count, max;
};

static bool look_at(void *context, const struct record *record)
{
    struct look_back *look = context;

    return look->see(look->context, record) || ++look->count == look->max;
}

pawl_status records_look_back(struct engine *engine, struct scope *scope, uint64_t pos,
                              record_sight see, void *context)
{
    struct look_back look = { .see = see, .context = context, .max = LOOK_BACK_MAX };
    const struct chain_query query = { pos, .skip_from = UINT64_MAX, .with_texts = true };

    return pos ? store_walk(engine->store, scope, &query, look_at, &look) : PAWL_OK;
}

pawl_status chain_look_back(struct engine *engine, struct scope *scope, uint64_t pos,
                            record_sight see, void *context)
{
    struct look_back look = { .see = see, .context = context, .max = EXPLAIN_MAX };
    const struct chain_query query = { pos, .skip_from = UINT64_MAX };

    return pos ? store_walk(engine->store, scope, &query, look_at, &look) : PAWL_OK;
}

/* The bytes of a value; data NULL: no such value, or it was erased. */
pawl_status value_text(struct engine *engine, struct scope *scope, uint64_t id, str *out)
{
    struct value value;

    *out = STR_NONE;
    if (!id)
        return PAWL_OK;
    TRY(store_value(engine->store, scope, id, &value));
    *out = value.bytes;
    return PAWL_OK;
}

enum instance_status status_of(const struct definition *definition, uint32_t state, bool is_paused,
                               const struct live *live)
{
    enum instance_status ended = instance_status_ended(definition->states[state].terminal);

    if (ended)
        return ended;
    if (is_paused)
        return STATUS_PAUSED;
    for (uint32_t i = 0; i < live->step_count; i++)
        if (live->steps[i].status == STEP_READY || live->steps[i].status == STEP_RUNNING)
            return STATUS_RUNNING;
    return STATUS_SUSPENDED;
}

/* Can it be cancelled: is there a transition for it, and does the definition in force allow it
 * where the flow stands? A flow that the engine has paused can always be cancelled. */
static pawl_status read_can_cancel(struct engine *engine, struct scope *scope,
                                   const struct head *head, const struct definition *definition,
                                   const struct live *live, bool *out)
{
    *out = definition->states[head->state].terminal == TERMINAL_NOT &&
           definition_find_cancel(definition, head->state) != NULL;
    if (*out && definition->kind == KIND_FLOW)
        TRY(amended_definition(engine, scope, head, &definition));
    return *out && bars_cancel(definition, live)
               ? poison_holds(engine, scope, live->paused_pos, out)
               : PAWL_OK;
}

/* The last record of an instance that was erased says so, and its row names who did it. */
pawl_status read_erased(struct engine *engine, struct scope *scope, const struct record *last,
                        struct instance_view *out)
{
    struct standing_row row = { 0 };
    struct record record;
    pawl_status status;

    if (!(last->flags & RECORD_ERASED))
        return PAWL_OK;
    status = store_standing(engine->store, scope, CONTROL_ERASE, str_of(out->id), &row);
    if (status == PAWL_OK)
        status = store_record(engine->store, scope, row.pos, &record);
    if (status == PAWL_NOT_KNOWN) /* a part of it is erased, and the rest is on its way */
        return PAWL_OK;
    TRY(status);
    out->erased.at_ms = record.at_ms;
    TRY(value_text(engine, scope, record.actor, &out->erased.actor));
    return value_text(engine, scope, record.reason, &out->erased.reason);
}

/* The result or error of an instance that has ended is its last entry's payload. */
static pawl_status read_end(struct engine *engine, struct scope *scope, const struct head *head,
                            struct instance_view *out)
{
    const struct state *state = &out->definition->states[head->state];
    struct record record;
    str payload = STR_NONE;

    TRY(store_record(engine->store, scope, head->pos, &record));
    if (out->kind != KIND_MACHINE)
        TRY(value_text(engine, scope, record.payload, &payload));
    out->updated_at_ms = record.at_ms;
    if (state->terminal == TERMINAL_SUCCESS)
        out->result = payload;
    else if (state->terminal == TERMINAL_FAILURE)
        out->error = payload;
    return read_erased(engine, scope, &record, out);
}

/* The first entry is right behind the creation and its rights. In a store that it was moved to it
 * may be elsewhere. */
pawl_status read_first_entry(struct engine *engine, struct scope *scope,
                             const struct instance_row *row, struct record *out)
{
    pawl_status status = store_record(engine->store, scope, row->created_pos + 1, out);

    if (!status && out->what == CONTROL_RIGHTS)
        status = store_record(engine->store, scope, row->created_pos + 2, out);
    return !status && (out->instance != row->number || out->what < 0) ? PAWL_NOT_KNOWN : status;
}

pawl_status read_retry_of(struct scope *scope, str payload, struct instance_view *out)
{
    struct node *node = NULL, *id;

    if (payload.data)
        TRY(node_read_json(scope, payload, &node));
    id = node_find(node, "retry_of");
    if (id && id->kind == NODE_STRING)
        out->retry_of = id->text;
    return PAWL_OK;
}

pawl_status find_retry_of(struct engine *engine, struct scope *scope,
                          const struct instance_row *row, struct instance_view *out)
{
    struct record record;
    str text = STR_NONE;
    pawl_status status = read_first_entry(engine, scope, row, &record);

    if (status == PAWL_NOT_KNOWN || (!status && (record.what != LIFE_T_START || !record.payload)))
        return PAWL_OK;
    TRY(status);
    TRY(value_text(engine, scope, record.payload, &text));
    return read_retry_of(scope, text, out);
}

static pawl_status read_fixed(struct engine *engine, struct scope *scope, uint64_t number,
                              struct instance_view *out)
{
    struct instance_row row;

    TRY(store_instance(engine->store, scope, number, &row));
    TRY(value_text(engine, scope, row.subject, &out->subject));
    TRY(value_text(engine, scope, row.creator, &out->created_by));
    TRY(value_text(engine, scope, row.input, &out->input));
    TRY(value_text(engine, scope, row.metadata, &out->metadata));
    if (row.parent)
        TRY(engine_id_of(engine, scope, row.parent, out->parent_id));
    out->correlation = row.correlation;
    out->labels = row.labels;
    out->instantiated_at_ms = row.instantiated_at_ms;
    out->test = row.test;
    return out->kind != KIND_MACHINE ? find_retry_of(engine, scope, &row, out) : PAWL_OK;
}

/* Head and live rows of one moment: read again if the instance moved in between. */
static pawl_status read_moment(struct engine *engine, struct scope *scope, str id,
                               struct head *head, struct definition_slot **slot, struct live *live)
{
    struct head after;

    TRY(engine_locate(engine, scope, id, head, slot));
    for (int tries = 0; tries < 10; tries++) {
        *live = (struct live){ 0 };
        if ((*slot)->definition->kind == KIND_MACHINE && !(*slot)->definition->deadline_count)
            return PAWL_OK;
        TRY(store_live(engine->store, scope, head->instance, live));
        TRY(engine_locate(engine, scope, id, &after, slot));
        if (after.pos == head->pos)
            break;
        *head = after;
    }
    return PAWL_OK;
}

/* Who paused it; at_ms 0: it was resumed meanwhile. */
static pawl_status read_pause(struct engine *engine, struct scope *scope, const struct head *head,
                              struct pause_view *out)
{
    struct record record = { 0 };
    struct live live;

    *out = (struct pause_view){ 0 };
    TRY(store_live(engine->store, scope, head->instance, &live));
    if (live.paused_pos)
        TRY(store_record(engine->store, scope, live.paused_pos, &record));
    out->at_ms = record.at_ms;
    TRY(value_text(engine, scope, record.actor, &out->actor));
    return value_text(engine, scope, record.reason, &out->reason);
}

pawl_status read_successor(struct engine *engine, struct scope *scope, struct instance_view *out)
{
    struct successor successor;

    TRY(engine_successor(engine, scope, str_of(out->id), &successor));
    memcpy(out->retried_as, successor.id, sizeof out->retried_as);
    return PAWL_OK;
}

pawl_status engine_get(struct engine *engine, struct scope *scope, str id,
                       struct instance_view *out)
{
    struct definition_slot *slot;
    struct live live;
    struct head head;

    TRY(read_moment(engine, scope, id, &head, &slot, &live));
    *out = (struct instance_view){ .definition_name = slot->name,
                                   .version = slot->version,
                                   .kind = slot->definition->kind,
                                   .definition = slot->definition,
                                   .state = head.state,
                                   .seq = head.seq };
    id_print(head.instance, head.random, out->id);
    out->status = status_of(slot->definition, head.state, head.flags & HEAD_PAUSED, &live);
    TRY(read_fixed(engine, scope, head.instance, out));
    TRY(read_can_cancel(engine, scope, &head, slot->definition, &live, &out->can_cancel));
    if (out->status == STATUS_PAUSED)
        TRY(read_pause(engine, scope, &head, &out->pause));
    if (out->status == STATUS_PAUSED && !out->pause.at_ms)
        out->status = status_of(slot->definition, head.state, false, &live);
    if ((out->status == STATUS_FAILED || out->status == STATUS_CANCELLED) &&
        out->kind != KIND_MACHINE)
        TRY(read_successor(engine, scope, out));
    if (out->kind == KIND_FLOW)
        TRY(amended_name(engine, scope, &head, &out->definition_name, &out->version,
                         &out->is_amended));
    return read_end(engine, scope, &head, out);
}

pawl_status engine_list(struct engine *engine, struct scope *scope, const struct list_query *query,
                        uint64_t **numbers, uint32_t *count)
{
    return store_list(engine->store, scope, query, numbers, count);
}

pawl_status engine_id_of(struct engine *engine, struct scope *scope, uint64_t number,
                         char out[ID_SIZE + 1])
{
    struct head head;

    TRY(head_fixed(engine, scope, number, &head)); /* mostly without a read */
    id_print(number, head.random, out);
    return PAWL_OK;
}
