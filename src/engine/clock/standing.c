/* standing.c - what stands from one control record to another, in the store's own chain: tokens and
 * alarms. The record that begins one says all about it; one with `over` ends it. */
#include "base/node.h"
#include "engine/parts.h"

static pawl_status load(struct engine *engine, struct scope *scope, const struct standing_row *row,
                        struct standing_fact *out)
{
    struct record record;
    pawl_status status = store_record(engine->store, scope, row->pos, &record);

    *out = (struct standing_fact){ .id = row->id,
                                   .due_at_ms = row->due_at_ms,
                                   .at_ms = record.at_ms,
                                   .is_firing = row->firing_ms != 0,
                                   .wall = row->wall };
    if (!status && record.what != row->what)
        status = PAWL_NOT_KNOWN;
    if (!status) {
        out->body = record.body;
        status = value_text(engine, scope, record.payload, &out->payload);
    }
    return status == PAWL_NOT_KNOWN
               ? scope_fail(scope, PAWL_STORAGE_FAILURE,
                            "a token or alarm names position %llu, which has none: run pawl verify",
                            (unsigned long long)row->pos)
               : status;
}

pawl_status engine_standing(struct engine *engine, struct scope *scope, int32_t what, str id,
                            struct standing_fact *out)
{
    struct standing_row row;

    TRY(store_standing(engine->store, scope, what, id, &row));
    return load(engine, scope, &row, out);
}

void engine_standing_pretend(struct engine *engine, struct scope *scope)
{
    struct record record;

    (void)store_record(engine->store, scope, 1, &record); /* its result is not used */
}

pawl_status engine_standing_list(struct engine *engine, struct scope *scope, int32_t what,
                                 uint32_t limit, struct standing_fact **out, uint32_t *count)
{
    struct standing_row *rows;

    TRY(store_standing_list(engine->store, scope, what, limit, &rows, count));
    *out = ARENA_ARRAY(&scope->arena, struct standing_fact, *count + 1);
    for (uint32_t i = 0; i < *count; i++)
        TRY(*out ? load(engine, scope, &rows[i], &(*out)[i]) : scope_no_memory(scope));
    return PAWL_OK;
}

/* ---- recording ---- */

struct keeping {
    const struct keep_args *args;
    char *id; /* out */
};

static pawl_status add(struct engine *engine, struct scope *scope, const struct keep_args *args,
                       int64_t at_ms, str id, str body)
{
    struct standing_row row = {
        .what = args->what, .id = id, .due_at_ms = args->due_at_ms, .wall = args->wall
    };

    TRY(batch_store_record(engine, scope, args->what, at_ms, body, args->payload, args->key));
    return batch_add_standing(engine, scope, row, !args->over.data);
}

static str print_body(struct engine *engine, struct scope *scope, const struct keep_args *args,
                      str id)
{
    struct buf body;

    ASSERT_DRAINING(engine);
    buf_init(&body, engine->heap, LIMIT_TEXT);
    json_open(&body, '{');
    json_put_str(&body, "id", id);
    if (args->over.data)
        json_put_str(&body, "over", args->over);
    else
        json_put_i64(&body, "due", args->due_at_ms);
    if (args->wall)
        json_put_bool(&body, "wall", true);
    json_opt_raw(&body, "more", args->more);
    json_close(&body, '}');
    return buf_take(&body, &scope->arena);
}

/* The id that a repeated call was given. */
static pawl_status repeat(struct scope *scope, const struct record *record, char *out)
{
    struct node *body, *id;

    if (node_read_json(scope, record->body, &body) == PAWL_OK &&
        (id = node_find(body, "id")) != NULL && id->text.size == STANDING_ID_SIZE) {
        memcpy(out, id->text.data, STANDING_ID_SIZE);
        return PAWL_OK;
    }
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "a record does not say its id: run pawl verify");
}

static str make_id(struct engine *engine, char id[STANDING_ID_SIZE + 1])
{
    uint8_t random[STANDING_ID_SIZE / 2];

    ASSERT_DRAINING(engine);
    engine->env->random(engine->env, random, sizeof random);
    writer_mark_id(engine, random);
    sha_hex(random, sizeof random, id);
    return (str){ id, STANDING_ID_SIZE };
}

/* What is done later belongs to the trace of the request that ordered it: a member of the operation
 * says so. Data NULL: no memory. */
static str with_trace(struct scope *scope, str operation)
{
    struct buf text;

    if (!scope->trace.data || operation.size < 2)
        return operation;
    buf_init(&text, scope->arena.heap, LIMIT_SCOPE);
    buf_str(&text, (str){ operation.data, operation.size - 1 });
    json_put_str(&text, "traceparent", scope->trace);
    json_close(&text, '}');
    return buf_take(&text, &scope->arena);
}

pawl_status alarm_record_start(struct engine *engine, struct scope *scope, str operation,
                               int64_t at_ms)
{
    struct keep_args args = { .what = CONTROL_ALARM,
                              .payload = with_trace(scope, operation),
                              .due_at_ms = at_ms };
    char *room = arena_alloc(&scope->arena, STANDING_ID_SIZE + 1);
    str id = room ? make_id(engine, room) : STR_NONE;
    str body = room ? print_body(engine, scope, &args, id) : STR_NONE;

    ASSERT_DRAINING(engine);
    return body.data && args.payload.data ? add(engine, scope, &args, at_ms, id, body)
                                          : scope_no_memory(scope);
}

/* Records an alarm's end, in the same commit as its operation. */
pawl_status alarm_record_end(struct engine *engine, struct scope *scope, str id, int64_t at_ms)
{
    struct keep_args args = { .what = CONTROL_ALARM, .id = id, .over = STR("fired") };
    str body = print_body(engine, scope, &args, id);

    ASSERT_DRAINING(engine);
    TRY_MEMORY(scope, body.data);
    TRY(standing_room(engine, scope));
    return add(engine, scope, &args, at_ms, id, body);
}

static pawl_status alarm_order(struct engine *engine, struct scope *scope, str operation,
                               int64_t at_ms)
{
    TRY(standing_room(engine, scope));
    return alarm_record_start(engine, scope, operation, at_ms);
}

static pawl_status drain_keep(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct keeping *keeping = request->context;
    const struct keep_args *args = keeping->args;
    struct standing_row row;
    struct record record;
    enum key_use use;
    str id = args->id, body;

    TRY(keys_look(engine, request->scope, args->key, at_ms, &use, &record));
    request->is_again = use == KEY_PENDING ||
                        (args->over.data && batch_changes_standing(engine, args->what, args->id));
    if (use == KEY_REPEAT)
        return repeat(request->scope, &record, keeping->id);
    if (request->is_again)
        return PAWL_OK;
    if (args->over.data) {
        TRY(store_standing(engine->store, request->scope, args->what, id, &row));
        if (args->unless_firing && row.firing_ms)
            return scope_fail(request->scope, PAWL_CONFLICT,
                              "the alarm is firing: it has reached some instances already, and "
                              "will reach the rest");
    } else {
        id = make_id(engine, keeping->id);
    }
    body = print_body(engine, request->scope, args, id);
    TRY_MEMORY(request->scope, body.data);
    TRY(standing_room(engine, request->scope));
    TRY(add(engine, request->scope, args, at_ms, id, body));
    if (args->then.data && (alarm_order(engine, request->scope, args->then, at_ms) != PAWL_OK))
        return batch_spoil(engine, request->scope, request->scope->error.status);
    request->accepted = true;
    return PAWL_OK;
}

pawl_status engine_keep(struct engine *engine, struct scope *scope, const struct keep_args *args,
                        char id[STANDING_ID_SIZE + 1])
{
    char unused[STANDING_ID_SIZE + 1] = "";
    struct keeping keeping = { args, id ? id : unused };
    struct request request = { .drain = drain_keep, .scope = scope, .context = &keeping };

    keeping.id[STANDING_ID_SIZE] = '\0';
    TRY(shell_submit(engine, &request));
    if (args->what == CONTROL_ALARM)
        timers_look_again(engine);
    return PAWL_OK;
}

/* ---- an alarm over many ---- */

/* The alarm's row stays and says since when it is firing. */
static pawl_status drain_firing(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct standing_row *row = request->context;
    struct buf buf;
    str body;

    request->is_again = batch_changes_standing(engine, CONTROL_ALARM, row->id);
    if (request->is_again)
        return PAWL_OK;
    TRY(store_standing(engine->store, request->scope, CONTROL_ALARM, row->id, row));
    if (row->firing_ms)
        return PAWL_OK;
    buf_init(&buf, engine->heap, LIMIT_TEXT);
    json_open(&buf, '{');
    json_put_str(&buf, "id", row->id);
    json_put_bool(&buf, "firing", true);
    json_close(&buf, '}');
    body = buf_take(&buf, &request->scope->arena);
    TRY_MEMORY(request->scope, body.data);
    TRY(standing_room(engine, request->scope));
    TRY(batch_store_record(engine, request->scope, CONTROL_ALARM, at_ms, body, STR_NONE, NULL));
    row->firing_ms = at_ms;
    request->accepted = true;
    return batch_add_standing(engine, request->scope, *row, true);
}

pawl_status alarm_record_firing(struct engine *engine, struct scope *scope, str id,
                                int64_t *since_ms)
{
    struct standing_row row = { .what = CONTROL_ALARM, .id = id };
    struct request request = { .drain = drain_firing, .scope = scope, .context = &row };
    pawl_status status = shell_submit(engine, &request);

    *since_ms = row.firing_ms;
    return status;
}

void engine_random(struct engine *engine, uint8_t *out, size_t size)
{
    guard_lock(&engine->lock);
    engine->env->random(engine->env, out, size);
    guard_unlock(&engine->lock);
}
