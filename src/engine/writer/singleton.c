/* singleton.c - a creation that gives what is there: the instance of this definition about this
 * subject that has not ended. Only the drain can say so: nothing begins or ends meanwhile. */
#include "base/node.h"
#include "engine/parts.h"

#define AT_ONCE 16u

static bool is_of(struct engine *engine, struct scope *scope, const struct head *head, str name)
{
    struct definition_slot *slot;

    return definitions_of(engine, scope, head, &slot) == PAWL_OK && str_eq(slot->name, name) &&
           slot->definition->states[head->state].terminal == TERMINAL_NOT;
}

/* One that this batch creates. */
static pawl_status look_in_batch(struct engine *engine, struct scope *scope,
                                 const struct create_request *create, struct head **out)
{
    struct batch *batch = &engine->writer.batch;
    const uint8_t *commitment;
    uint64_t subject;

    if (batch->instance_count == 0)
        return PAWL_OK;
    TRY(intern(engine, scope, create->args->subject, &subject, &commitment));
    for (size_t i = 0; i < batch->instance_count && !*out; i++) {
        struct head *head = batch->instances[i].subject == subject
                                ? batch_find(batch, batch->instances[i].number)
                                : NULL;

        if (head && is_of(engine, scope, head, create->row->name))
            *out = head;
    }
    return PAWL_OK;
}

/* Rows of machines lag: one that says that it is under way may have ended, and is looked at. */
static pawl_status look_in_store(struct engine *engine, struct scope *scope,
                                 const struct create_request *create, struct head **out)
{
    struct list_query query = { .definition = create->row->name,
                                .subject = create->args->subject,
                                .is_active = true,
                                .limit = AT_ONCE };
    char id[ID_SIZE + 1];
    struct definition_slot *slot;
    uint64_t *numbers;
    uint32_t count;

    do {
        TRY(store_list(engine->store, scope, &query, &numbers, &count));
        for (uint32_t i = 0; i < count && !*out; i++) {
            struct head *head;

            query.after = numbers[i];
            TRY(engine_id_of(engine, scope, numbers[i], id));
            TRY(batch_locate(engine, scope, (str){ id, ID_SIZE }, 1, &head, &slot));
            if (is_of(engine, scope, head, create->row->name))
                *out = head;
        }
    } while (!*out && count == AT_ONCE);
    return PAWL_OK;
}

/* The key is remembered with what was found: {"instance":ID}. */
static pawl_status keep_key(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct create_request *create = request->create;
    str body = json_object_of(&request->scope->arena, "instance", str_of(create->out->id));

    TRY_MEMORY(request->scope, body.data);
    TRY(batch_reserve(engine, request->scope, 1, 0));
    TRY(batch_store_record(engine, request->scope, CONTROL_KEYED, at_ms, body, STR_NONE,
                           create->args->key));
    request->accepted = true;
    return PAWL_OK;
}

pawl_status singleton_find(struct engine *engine, struct request *request, int64_t at_ms,
                           bool *is_there)
{
    struct create_request *create = request->create;
    struct head *head = NULL;

    ASSERT_DRAINING(engine);
    TRY(look_in_batch(engine, request->scope, create, &head));
    if (!head)
        TRY(look_in_store(engine, request->scope, create, &head));
    *is_there = head != NULL;
    if (!head)
        return PAWL_OK;
    create->is_repeat = create->out->is_existing = true;
    id_print(head->instance, head->random, create->out->id);
    create->out->state = create->definition->states[head->state].name;
    return create->args->key ? keep_key(engine, request, at_ms) : PAWL_OK;
}

pawl_status singleton_told(struct engine *engine, struct scope *scope, const struct record *record,
                           struct created *out)
{
    struct node *body, *id;
    struct definition_slot *slot;
    struct head head;

    TRY(node_read_json(scope, record->body, &body));
    id = node_find(body, "instance");
    if (!id || id->kind != NODE_STRING || id->text.size != ID_SIZE)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the record at position %llu names no instance: run pawl verify",
                          (unsigned long long)record->pos);
    TRY(engine_locate(engine, scope, id->text, &head, &slot));
    id_print(head.instance, head.random, out->id);
    out->is_existing = true;
    out->state = slot->definition->states[head.state].name;
    out->definition = slot->definition;
    return PAWL_OK;
}
