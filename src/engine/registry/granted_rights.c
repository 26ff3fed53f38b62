/* granted_rights.c - what an instance may create.
 *
 * An instance spawns or starts others long after the calls that allowed it. So the log remembers
 * what those calls were allowed: a rights record behind the create record says what the starter may
 * create, a member of the define record says what the caller that put the version may create, and
 * a member of an amend's payload says what the callers that amended it may create. All of them must
 * allow it. Where everything was allowed, nothing is written. */
#include "base/node.h"
#include "engine/parts.h"
#include "model/rights.h"
#include "model/words.h"

static pawl_status read_rights(struct scope *scope, const struct record *record, str *out)
{
    struct node *body, *rights;
    pawl_status status = node_read_json(scope, record->body, &body);

    if (status == PAWL_NO_MEMORY)
        return status;
    rights = status || body->kind != NODE_OBJECT ? NULL : node_find(body, "rights");
    if (!rights || rights->kind != NODE_STRING || !rights_are_valid(rights->text))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the record at position %llu has no valid rights: run pawl verify",
                          (unsigned long long)record->pos);
    *out = rights->text;
    return PAWL_OK;
}

pawl_status engine_definition_rights(struct engine *engine, struct scope *scope, str name,
                                     uint32_t version, str *out)
{
    struct standing_row row;
    struct record record;
    struct buf id;
    pawl_status status;

    *out = STR_NONE;
    buf_init(&id, engine->heap, 0);
    rights_id(&id, name, version);
    status = id.failed ? scope_no_memory(scope)
                       : store_standing(engine->store, scope, CONTROL_DEFINE, buf_view(&id), &row);
    buf_fini(&id);
    if (status)
        return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    TRY(store_record(engine->store, scope, row.pos, &record));
    return read_rights(scope, &record, out);
}

static pawl_status starter_of(struct scope *scope, const struct record *record, struct starter *out)
{
    struct node *body;
    pawl_status status = node_read_json(scope, record->body, &body);

    if (status == PAWL_NO_MEMORY || (!status && starter_read(body, out)))
        return status;
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the record at position %llu has no valid rights: run pawl verify",
                      (unsigned long long)record->pos);
}

/* Reads the record right behind the create record, if it is a rights record. */
static pawl_status read_starter(struct engine *engine, struct scope *scope,
                                const struct instance_row *row, struct starter *out)
{
    struct record record;
    pawl_status status = store_record(engine->store, scope, row->created_pos + 1, &record);

    *out = (struct starter){ .rights = STR_NONE, .on_end = STR_NONE };
    if (status == PAWL_NOT_KNOWN ||
        (!status && (record.what != CONTROL_RIGHTS || record.instance != row->number)))
        return PAWL_OK;
    return status ? status : starter_of(scope, &record, out);
}

pawl_status starter_now(struct engine *engine, struct scope *scope, uint64_t instance,
                        struct starter *out)
{
    const struct record *record;
    struct instance_row row;
    pawl_status status = store_instance(engine->store, scope, instance, &row);

    ASSERT_DRAINING(engine);
    *out = (struct starter){ .rights = STR_NONE, .on_end = STR_NONE };
    if (status != PAWL_NOT_KNOWN)
        return status ? status : read_starter(engine, scope, &row, out);
    record = batch_find_record(engine, CONTROL_RIGHTS, instance); /* it is as new as this commit */
    return record ? starter_of(scope, record, out) : PAWL_OK;
}

/* What the starter and the callers that amended it may create. */
static pawl_status read_callers(struct engine *engine, struct scope *scope,
                                const struct instance_row *row, str *out)
{
    struct head head = { .instance = row->number };
    struct starter starter;
    str amenders = STR_NONE;

    TRY(read_starter(engine, scope, row, &starter));
    memcpy(head.random, row->random, ID_RANDOM_SIZE);
    if (engine->actors.has_amends)
        TRY(amended_rights(engine, scope, &head, &amenders));
    TRY_MEMORY(scope, rights_meet(&scope->arena, starter.rights, amenders, out));
    return PAWL_OK;
}

pawl_status engine_starter_rights(struct engine *engine, struct scope *scope, str id, str *out)
{
    struct definition_slot *slot;
    struct instance_row row;
    struct head head;

    TRY(engine_locate(engine, scope, id, &head, &slot));
    TRY(store_instance(engine->store, scope, head.instance, &row));
    return read_callers(engine, scope, &row, out);
}

/* The rights of the version in force: an amended flow runs by another version than it began
 * with. */
static pawl_status read_definition(struct engine *engine, struct scope *scope,
                                   const struct instance_row *row, str *out)
{
    struct definition_slot *slot;
    struct head head = { .instance = row->number };
    uint32_t version = 0;
    bool is_amended;
    str name = STR_NONE;

    TRY(definitions_get(engine, scope, row->definition, &slot));
    memcpy(head.random, row->random, ID_RANDOM_SIZE);
    if (slot->definition->kind == KIND_FLOW && engine->actors.has_amends)
        TRY(amended_name(engine, scope, &head, &name, &version, &is_amended));
    *out = slot->rights;
    return name.data ? engine_definition_rights(engine, scope, name, version, out) : PAWL_OK;
}

pawl_status rights_of_instance(struct engine *engine, struct scope *scope, uint64_t instance,
                               str *out)
{
    struct instance_row row;
    str callers = STR_NONE, definition = STR_NONE;

    TRY(store_instance(engine->store, scope, instance, &row));
    TRY(read_callers(engine, scope, &row, &callers));
    TRY(read_definition(engine, scope, &row, &definition));
    TRY_MEMORY(scope, rights_meet(&scope->arena, callers, definition, out));
    return PAWL_OK;
}

pawl_status rights_of_creation(struct engine *engine, struct scope *scope, str starter,
                               const struct definition_row *row, str *out)
{
    struct definition_slot *slot;
    str definition = STR_NONE;

    if (row->name.data)
        TRY(definitions_get(engine, scope, row->id, &slot));
    if (row->name.data)
        definition = slot->rights;
    TRY_MEMORY(scope, rights_meet(&scope->arena, starter, definition, out));
    return PAWL_OK;
}

/* Called before the definition is looked up: a caller that may not create it must not learn whether
 * it exists. */
pawl_status rights_check(struct scope *scope, str rights, str reference)
{
    str definition = reference_name(reference);

    if (own_texts_have(definition) || rights_allow(rights, definition))
        return PAWL_OK;
    return scope_fail(scope, PAWL_FORBIDDEN,
                      "forbidden: this instance may not create one of '%.*s'; its starter, the "
                      "author of its definition and callers that amended it may all create: %.*s",
                      STR_ARG(words_shown(definition)),
                      STR_ARG(rights.size ? words_shown(rights) : STR("nothing")));
}

/* ---- recording ---- */

pawl_status starter_record(struct engine *engine, struct scope *scope, struct head *head,
                           const struct starter *starter, int64_t at_ms)
{
    struct record *record;
    struct buf buf;
    str body;

    ASSERT_DRAINING(engine);
    if (starter_is_empty(starter))
        return PAWL_OK;
    buf_init(&buf, engine->heap, LIMIT_SCOPE);
    starter_print(&buf, starter);
    body = buf_take(&buf, &scope->arena);
    TRY_MEMORY(scope, body.data);
    record = batch_record(engine, CONTROL_RIGHTS, head, at_ms, body, NULL);
    batch_seal(engine, head, record, body, &(struct commitments){ 0 });
    return PAWL_OK;
}

/* Adds the row that says where the rights of a version are recorded; a version without limits has
 * no row. */
pawl_status rights_note(struct engine *engine, struct scope *scope,
                        const struct definition_row *row)
{
    struct buf id;
    str text;

    ASSERT_DRAINING(engine);
    if (!row->rights.data)
        return PAWL_OK;
    buf_init(&id, engine->heap, 0);
    rights_id(&id, row->name, row->version);
    text = buf_take(&id, &engine->writer.scope.arena);
    TRY_MEMORY(scope, text.data);
    return batch_add_standing(engine, scope,
                              (struct standing_row){ .what = CONTROL_DEFINE, .id = text }, true);
}
