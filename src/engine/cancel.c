/* cancel.c - cancelling what belongs together: each instance by its own declared way. */
#include "engine/engine_int.h"

/* A refusal is the instance's answer; anything else is ours, and ends the call. */
static bool is_refusal(pawl_status status)
{
    switch ((int)status) {
    case PAWL_STORAGE_FAILURE:
    case PAWL_OUTCOME_UNKNOWN:
    case PAWL_NO_MEMORY:
    case PAWL_IN_USE:
    case PAWL_OVERLOADED:
        return false;
    default:
        return status != PAWL_OK;
    }
}

static pawl_status cancel_page(struct engine *engine, struct scope *scope, const uint64_t *numbers,
                               uint32_t count, const struct cancel_args *args,
                               struct cancelled *out)
{
    struct batch_fire *fires = ARENA_ARRAY(&scope->arena, struct batch_fire, count);
    char(*ids)[ID_SIZE + 1] = arena_alloc(&scope->arena, sizeof *ids * count);
    pawl_status status = fires && ids ? PAWL_OK : scope_no_memory(scope);

    for (uint32_t i = 0; i < count && !status; i++) {
        status = engine_id_of(engine, scope, numbers[i], ids[i]);
        fires[i].args = (struct fire_args){
            .id = str_of(ids[i]), .actor = args->actor, .reason = args->reason, .is_cancel = true
        };
    }
    if (!status)
        status = engine_fire_batch(engine, scope, fires, count);
    for (uint32_t i = 0; i < count && !status; i++) {
        if (fires[i].status == PAWL_OK)
            out->cancelled++;
        else if (is_refusal(fires[i].status))
            out->refused++;
        else
            status = fires[i].status;
    }
    return status;
}

/* The newest one there is now: what is created meanwhile is not cancelled, so that this ends. */
static pawl_status find_last(struct engine *engine, struct scope *scope, str correlation,
                             uint64_t *out)
{
    struct list_query query = { .correlation = correlation, .limit = 1 };
    uint64_t *numbers;
    uint32_t count;
    pawl_status status = store_list(engine->store, scope, &query, &numbers, &count);

    if (!status)
        *out = count > 0 ? numbers[0] : 0;
    return status;
}

pawl_status engine_cancel_many(struct engine *engine, struct scope *scope,
                               const struct cancel_args *args, struct cancelled *out)
{
    struct list_query query = { .correlation = args->correlation,
                                .oldest_first = true,
                                .limit = LIMIT_LIST };
    struct cancelled done = { 0 };
    struct scope page;
    uint64_t last = 0, *numbers;
    uint32_t count = 0;
    pawl_status status = find_last(engine, scope, args->correlation, &last);

    scope_init(&page, engine->heap, LIMIT_SCOPE);
    while (!status && query.after < last) {
        scope_clear(&page);
        status = store_list(engine->store, &page, &query, &numbers, &count);
        while (!status && count > 0 && numbers[count - 1] > last)
            count--;
        if (status || count == 0)
            break;
        query.after = numbers[count - 1];
        status = cancel_page(engine, &page, numbers, count, args, &done);
    }
    if (status)
        scope->error = page.error;
    else
        *out = done;
    scope_fini(&page);
    return status;
}
