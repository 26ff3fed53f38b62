/* holds.c - an instance on hold keeps what it holds: nothing of it is erased until the hold is
 * lifted. A record in the store's chain says who put it on hold and why, and a row names it. */
#include "engine/keeping.h"
#include "engine/parts.h"

pawl_status hold_check(struct engine *engine, struct scope *scope, str id)
{
    struct standing_row row;
    pawl_status status = store_standing(engine->store, scope, CONTROL_HOLD, id, &row);

    if (status == PAWL_NOT_KNOWN)
        return PAWL_OK;
    TRY(status);
    return scope_fail(
        scope, PAWL_CONFLICT,
        "instance '%.*s' is on hold: nothing of it is erased until the hold is lifted",
        STR_ARG(id));
}

struct hold_request {
    const struct hold_args *args;
    bool has_changed; /* out */
};

static str print_body(struct engine *engine, struct scope *scope, const struct hold_args *args)
{
    struct buf body;

    buf_init(&body, engine->heap, LIMIT_TEXT);
    json_open(&body, '{');
    json_put_str(&body, "id", args->id);
    if (args->is_lift)
        json_put_text(&body, "over", "lifted");
    else
        json_put_i64(&body, "due", 0);
    json_close(&body, '}');
    return buf_take(&body, &scope->arena);
}

static pawl_status add_record(struct engine *engine, struct scope *scope,
                              const struct hold_args *args, int64_t at_ms)
{
    struct standing_row row = { .what = CONTROL_HOLD, .id = args->id };
    str body = print_body(engine, scope, args);
    pawl_status status;

    TRY_MEMORY(scope, body.data);
    TRY(standing_room(engine, scope));
    TRY(batch_store_record_by(
        engine, scope,
        &(struct store_record){
            .what = CONTROL_HOLD, .body = body, .actor = args->actor, .reason = args->reason },
        at_ms));
    status = batch_add_standing(engine, scope, row, !args->is_lift);
    return status ? batch_spoil(engine, scope, status) : PAWL_OK;
}

/* What another call of this commit does to it is looked at when that is done. */
static pawl_status drain_hold(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct hold_request *hold = request->context;
    const struct hold_args *args = hold->args;
    struct definition_slot *slot;
    struct standing_row row;
    struct head *head;
    pawl_status status;

    ASSERT_DRAINING(engine);
    TRY(batch_locate(engine, request->scope, args->id, 2, &head, &slot));
    if (args->late)
        return scope_fail(request->scope, PAWL_INVALID_REQUEST, "%s", args->late);
    request->is_again = batch_changes_standing(engine, CONTROL_HOLD, args->id) ||
                        batch_changes_standing(engine, CONTROL_ERASE, args->id);
    if (request->is_again)
        return PAWL_OK;
    status = store_standing(engine->store, request->scope, CONTROL_HOLD, args->id, &row);
    if (status && status != PAWL_NOT_KNOWN)
        return status;
    hold->has_changed = (status == PAWL_OK) == args->is_lift;
    if (hold->has_changed)
        TRY(add_record(engine, request->scope, args, at_ms));
    request->accepted = hold->has_changed;
    return PAWL_OK;
}

pawl_status engine_hold(struct engine *engine, struct scope *scope, const struct hold_args *args,
                        bool *has_changed)
{
    struct hold_request hold = { .args = args };
    struct request request = { .drain = drain_hold, .scope = scope, .context = &hold };

    TRY(ref_check(scope, "actor_ref", args->actor));
    TRY(shell_submit(engine, &request));
    *has_changed = hold.has_changed;
    return PAWL_OK;
}

pawl_status engine_holds(struct engine *engine, struct scope *scope, uint32_t limit,
                         struct standing_hold **out, uint32_t *count)
{
    struct standing_row *rows;
    struct record record;

    TRY(store_standing_list(engine->store, scope, CONTROL_HOLD, limit, &rows, count));
    *out = ARENA_ARRAY(&scope->arena, struct standing_hold, *count + 1u);
    TRY_MEMORY(scope, *out);
    for (uint32_t i = 0; i < *count; i++) {
        struct standing_hold *held = &(*out)[i];

        TRY(store_record(engine->store, scope, rows[i].pos, &record));
        *held = (struct standing_hold){ .id = rows[i].id, .at_ms = record.at_ms };
        TRY(value_text(engine, scope, record.actor, &held->actor));
        TRY(value_text(engine, scope, record.reason, &held->reason));
    }
    return PAWL_OK;
}
