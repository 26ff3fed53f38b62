/* cancels.c - cancelling what belongs together: each instance by its own declared way. */
#include "engine/parts.h"

/* Was it cancelled with its parent, by this very call? */
static bool went_along(struct engine *engine, struct scope *scope, str id, uint64_t begun_pos)
{
    struct definition_slot *slot;
    struct head head;

    return engine_locate(engine, scope, id, &head, &slot) == PAWL_OK && head.pos > begun_pos &&
           slot->definition->states[head.state].terminal == TERMINAL_CANCEL;
}

/* Flows and code before machines, each kind oldest first: a parent is cancelled before its
 * children, and does not hear of their end instead. */
static pawl_status order_fires(struct engine *engine, struct scope *scope, struct batch_fire *fires,
                               uint32_t count, uint32_t *first_machine)
{
    struct batch_fire *ordered = ARENA_ARRAY(&scope->arena, struct batch_fire, count);
    bool *is_machine = ARENA_ARRAY(&scope->arena, bool, count);
    struct definition_slot *slot;
    struct head head;
    uint32_t next = 0;

    TRY_MEMORY(scope, ordered && is_machine);
    for (uint32_t i = 0; i < count; i++) {
        TRY(engine_locate(engine, scope, fires[i].args.id, &head, &slot));
        is_machine[i] = slot->definition->kind == KIND_MACHINE;
        if (!is_machine[i])
            ordered[next++] = fires[i];
    }
    *first_machine = next;
    for (uint32_t i = 0; i < count; i++)
        if (is_machine[i])
            ordered[next++] = fires[i];
    memcpy(fires, ordered, sizeof *fires * count);
    return PAWL_OK;
}

static pawl_status count_fires(struct engine *engine, struct scope *scope,
                               const struct batch_fire *fires, uint32_t count, uint64_t begun_pos,
                               struct cancelled *out)
{
    for (uint32_t i = 0; i < count; i++)
        if (fires[i].status == PAWL_OK || (fires[i].status == PAWL_TERMINAL &&
                                           went_along(engine, scope, fires[i].args.id, begun_pos)))
            out->cancelled++;
        else if (status_is_passing(fires[i].status))
            return fires[i].status;
        else
            out->refused++;
    return PAWL_OK;
}

static pawl_status cancel_page(struct engine *engine, struct scope *scope, const uint64_t *numbers,
                               uint32_t count, const struct cancel_args *args, uint64_t begun_pos,
                               struct cancelled *out)
{
    struct batch_fire *fires = ARENA_ARRAY(&scope->arena, struct batch_fire, count);
    char(*ids)[ID_SIZE + 1] = arena_alloc(&scope->arena, sizeof *ids * count);
    uint32_t machines = 0;

    TRY_MEMORY(scope, fires && ids);
    for (uint32_t i = 0; i < count; i++) {
        TRY(engine_id_of(engine, scope, numbers[i], ids[i]));
        fires[i].args = (struct fire_args){
            .id = str_of(ids[i]), .actor = args->actor, .reason = args->reason, .is_cancel = true
        };
    }
    TRY(order_fires(engine, scope, fires, count, &machines));
    if (machines > 0)
        TRY(engine_fire_batch(engine, scope, fires, machines));
    if (machines < count)
        TRY(engine_fire_batch(engine, scope, fires + machines, count - machines));
    return count_fires(engine, scope, fires, count, begun_pos, out);
}

pawl_status engine_cancel_many(struct engine *engine, struct scope *scope,
                               const struct cancel_args *args, struct cancelled *out)
{
    struct list_query query = { .correlation = args->correlation,
                                .oldest_first = true,
                                .limit = LIMIT_LIST };
    struct list_query newest = { .correlation = args->correlation, .limit = 1 };
    struct cancelled done = { 0 };
    struct scope page;
    uint64_t begun_pos = engine_position(engine), last, *numbers;
    uint32_t count;
    pawl_status status = PAWL_OK;

    /* The newest one there is now: instances created meanwhile are not cancelled, so this ends. */
    TRY(store_list(engine->store, scope, &newest, &numbers, &count));
    last = count > 0 ? numbers[0] : 0;
    scope_init(&page, engine->heap, LIMIT_SCOPE);
    page.trace = scope->trace;
    while (!status && query.after < last) {
        scope_clear(&page);
        status = store_list(engine->store, &page, &query, &numbers, &count);
        while (!status && count > 0 && numbers[count - 1] > last)
            count--;
        if (status || count == 0)
            break;
        query.after = numbers[count - 1];
        status = cancel_page(engine, &page, numbers, count, args, begun_pos, &done);
    }
    if (!status)
        *out = done;
    return scope_leave(&page, scope, status);
}
