/* amends.c - a flow under way goes on by another definition (B42, X2), code by another
 * registration.
 *
 * The entry says all: its payload which definition, its effect which plan. A standing row, under
 * the instance's id, tells readers where the last such entry is. */
#include "base/node_own.h"
#include "code/code.h"
#include "engine/parts.h"
#include "model/fire.h"
#include "model/input_schema.h"
#include "model/rights.h"

/* ---- recording ---- */

pawl_status amend_note(struct engine *engine, struct scope *scope, const struct head *head)
{
    char *id = arena_alloc(&engine->writer.scope.arena, ID_SIZE + 1);

    ASSERT_DRAINING(engine);
    TRY_MEMORY(scope, id);
    engine->actors.has_amends = true;
    id_print(head->instance, head->random, id);
    return batch_add_standing(
        engine, scope,
        (struct standing_row){ .what = LIFE_T_AMEND, .id = str_of(id), .pos = head->pos }, true);
}

/* ---- reading ---- */

/* The position of the last amend, 0 if there was none. */
static pawl_status last_amend(struct engine *engine, struct scope *scope, const struct head *head,
                              uint64_t *pos)
{
    char id[ID_SIZE + 1];
    struct standing_row row;
    pawl_status status;

    id_print(head->instance, head->random, id);
    status = store_standing(engine->store, scope, LIFE_T_AMEND, str_of(id), &row);
    *pos = status ? 0 : row.pos;
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

/* The plan of one amend, on top of the definition as it was in force. */
static pawl_status apply_amend(struct scope *scope, str body, const struct definition **definition)
{
    struct effect_list effects = { 0 };
    struct definition *amended = NULL;

    TRY(effects_read(scope, body, &effects));
    TRY((*definition)->kind == KIND_CODE ? code_amended(scope, *definition, &effects, &amended)
                                         : flow_amended(scope, *definition, &effects, &amended));
    *definition = amended;
    return PAWL_OK;
}

static bool is_amend(void *context, const struct record *record)
{
    uint64_t *pos = context;

    *pos = record->what == LIFE_T_AMEND ? record->pos : 0;
    return *pos;
}

/* Plans of flows build on those before them: from the first amend to the one at `pos`. A plan of
 * code is whole. */
static pawl_status fold_amends(struct engine *engine, struct scope *scope, uint64_t pos,
                               const struct definition **definition)
{
    struct chain_query query = { .skip_from = UINT64_MAX };
    struct record record;
    uint64_t before = 0;

    TRY(store_record(engine->store, scope, pos, &record));
    query.pos = (*definition)->kind == KIND_FLOW ? record.prev : 0;
    if (query.pos)
        TRY(store_walk(engine->store, scope, &query, is_amend, &before));
    if (before)
        TRY(fold_amends(engine, scope, before, definition));
    return apply_amend(scope, record.body, definition);
}

pawl_status amended_definition(struct engine *engine, struct scope *scope, const struct head *head,
                               const struct definition **definition)
{
    uint64_t pos = 0;

    if ((*definition)->kind != KIND_MACHINE && engine->actors.has_amends)
        TRY(last_amend(engine, scope, head, &pos));
    return pos ? fold_amends(engine, scope, pos, definition) : PAWL_OK;
}

pawl_status amended_in_drain(struct engine *engine, struct scope *scope, const struct head *head,
                             const struct definition **definition)
{
    const struct batch *batch = &engine->writer.batch;
    char id[ID_SIZE + 1];

    ASSERT_DRAINING(engine);
    TRY(amended_definition(engine, scope, head, definition));
    id_print(head->instance, head->random, id);
    for (uint32_t i = 0; i < batch->standing_count; i++) {
        const struct standing_row *row = &batch->standing[i].row;
        const struct record *record;

        if (row->what != LIFE_T_AMEND || !str_is(row->id, id))
            continue;
        record = &batch->records[row->pos - engine->writer.tip.pos - 1];
        ASSERT(record->pos == row->pos);
        TRY(apply_amend(scope, record->body, definition));
    }
    return PAWL_OK;
}

pawl_status amended_code_version(struct engine *engine, struct scope *scope,
                                 const struct head *head, uint32_t *out)
{
    struct effect_list effects = { 0 };
    struct record record;
    uint64_t pos;

    *out = 0;
    TRY(last_amend(engine, scope, head, &pos));
    if (!pos)
        return PAWL_OK;
    TRY(store_record(engine->store, scope, pos, &record));
    TRY(effects_read(scope, record.body, &effects));
    return code_plan_version(scope, &effects, out);
}

/* {"definition":NAME,"version":N,...} */
static pawl_status read_name(struct scope *scope, str payload, str *name, uint32_t *version)
{
    struct node *document, *found;
    int64_t number = 0;

    if (!payload.data) /* erased: only the first name is left */
        return PAWL_OK;
    TRY(node_read_own(scope, payload, &document));
    found = node_find(document, "definition");
    if (found && found->kind == NODE_STRING &&
        node_to_i64(node_find(document, "version"), &number)) {
        *name = found->text;
        *version = (uint32_t)number;
    }
    return PAWL_OK;
}

/* The payload of the last amend; data NULL: there was none, or it was erased. Amends of code have
 * none, and say nothing of rights or names. */
static pawl_status last_payload(struct engine *engine, struct scope *scope, const struct head *head,
                                bool *is_amended, str *out)
{
    struct record record = { 0 };
    uint64_t pos;

    *out = STR_NONE;
    TRY(last_amend(engine, scope, head, &pos));
    if (pos)
        TRY(store_record(engine->store, scope, pos, &record));
    *is_amended = record.payload != 0;
    return *is_amended ? value_text(engine, scope, record.payload, out) : PAWL_OK;
}

pawl_status amended_name(struct engine *engine, struct scope *scope, const struct head *head,
                         str *name, uint32_t *version, bool *is_amended)
{
    str payload;

    TRY(last_payload(engine, scope, head, is_amended, &payload));
    return *is_amended ? read_name(scope, payload, name, version) : PAWL_OK;
}

/* Where the payload was erased, or cannot be read, nothing is allowed. */
pawl_status amended_rights(struct engine *engine, struct scope *scope, const struct head *head,
                           str *out)
{
    struct node *document = NULL, *rights;
    bool is_amended;
    str payload;
    pawl_status status = last_payload(engine, scope, head, &is_amended, &payload);

    *out = STR_NONE;
    if (status || !is_amended)
        return status;
    *out = STR("");
    if (payload.data)
        status = node_read_own(scope, payload, &document);
    rights = document ? node_find(document, "rights") : NULL;
    if (document && !rights)
        *out = STR_NONE;
    else if (rights && rights->kind == NODE_STRING && rights_are_valid(rights->text))
        *out = rights->text;
    return status;
}

/* ---- amending ---- */

static str print_payload(struct engine *engine, struct scope *scope,
                         const struct definition_row *row, str entries, str rights)
{
    struct buf buf;

    buf_init(&buf, engine->heap, 2 * (size_t)LIMIT_TEXT);
    json_open(&buf, '{');
    json_put_str(&buf, "definition", row->name);
    json_put_u64(&buf, "version", row->version);
    json_opt_raw(&buf, "entries", entries);
    rights_member(&buf, rights);
    json_close(&buf, '}');
    return buf_take(&buf, &scope->arena);
}

pawl_status engine_find_kind(struct engine *engine, struct scope *scope, str text,
                             enum definition_kind kind, struct definition_row *row,
                             const struct definition **out)
{
    struct definition_slot *slot;

    TRY(definition_find_registered(engine, scope, text, row));
    TRY(definitions_get(engine, scope, row->id, &slot));
    if (slot->definition->kind != kind)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "definition: expected %s%s, found the %s '%.*s'",
                          kind == KIND_CODE ? "" : "a ", definition_kind_name(kind),
                          definition_kind_name(slot->definition->kind), STR_ARG(text));
    *out = slot->definition;
    return PAWL_OK;
}

/* An instance keeps its input, so a version whose schema does not allow it is refused. */
static pawl_status check_input(struct engine *engine, struct scope *scope, uint64_t instance,
                               const struct node *schema)
{
    struct instance_row row;
    str input = STR_NONE;

    if (!schema)
        return PAWL_OK;
    TRY(store_instance(engine->store, scope, instance, &row));
    TRY(value_text(engine, scope, row.input, &input));
    if (row.input && !input.data) /* erased */
        return PAWL_OK;
    return input_schema_accept(scope, schema, input);
}

static pawl_status amend_new(struct engine *engine, struct scope *scope,
                             const struct amend_args *args, struct amended *out)
{
    const struct definition *definition = NULL;
    struct definition_row row;
    struct definition_slot *slot;
    struct fired fired = { 0 };
    struct event event = {
        .kind = EVENT_AMEND, .actor = args->actor, .expected_seq = args->seq, .late = args->late
    };
    struct head head;
    str earlier, rights;
    pawl_status status;

    TRY(engine_locate(engine, scope, args->instance, &head, &slot));
    TRY(fire_check_open(slot->definition, &(struct standing){ .state = head.state }, scope));
    if (slot->definition->kind != KIND_FLOW)
        return scope_fail(scope, PAWL_INVALID_TRANSITION,
                          "only a flow can be amended; this is a %s, and its declaration is fixed",
                          definition_kind_name(slot->definition->kind));
    TRY(engine_find_kind(engine, scope, args->definition, KIND_FLOW, &row, &definition));
    TRY(check_input(engine, scope, head.instance, definition->input_schema));
    /* Amends add up: a later one lifts no limit of an earlier one. */
    TRY(amended_rights(engine, scope, &head, &earlier));
    TRY_MEMORY(scope, rights_meet(&scope->arena, args->rights, earlier, &rights));
    event.payload = print_payload(engine, scope, &row, args->entries, rights);
    event.given = definition->plan_text;
    TRY_MEMORY(scope, event.payload.data);
    status = engine_send(engine, scope, head.instance, &event, NULL, args->key, &fired);
    *out = (struct amended){ .definition = row.name,
                             .version = row.version,
                             .sequence_number = fired.seq };
    return status;
}

pawl_status engine_amend(struct engine *engine, struct scope *scope, const struct amend_args *args,
                         struct amended *out)
{
    struct record record;
    str payload;
    pawl_status status = amend_new(engine, scope, args, out);

    if (!keys_explain(engine, scope, args->key, &status, &record))
        return status;
    TRY(value_text(engine, scope, record.payload, &payload));
    out->sequence_number = record.seq;
    return read_name(scope, payload, &out->definition, &out->version);
}
