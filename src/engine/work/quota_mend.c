/* quota_mend.c - after a commit of unknown outcome: places of what that commit ended are given
 * back, and what it began has its places.
 *
 * A hold without a row is a leak, unless a decision is on its way that brings the row: then its
 * instance has its turn, and is looked at later. */
#include "engine/parts.h"

void quotas_doubt(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    engine->work.quotas.is_suspect = true;
}

bool quotas_are_doubted(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->work.quotas.is_suspect;
}

struct quota_place {
    uint64_t instance;
    uint32_t ordinal; /* 0: the instance itself */
};

/* Of instances that have no turn now. False: no memory. */
static bool list_held(struct engine *engine, struct scope *scope, struct quota_place **out,
                      uint32_t *count)
{
    const struct quotas *quotas = &engine->work.quotas;
    struct quota_place *held =
        ARENA_ARRAY(&scope->arena, struct quota_place, quotas->hold_count + 1);

    ASSERT_LOCKED(engine);
    *out = held;
    *count = 0;
    for (uint32_t i = 0; held && i < quotas->hold_count; i++) {
        const struct quota_hold *hold = &quotas->holds[i];
        const struct actor *actor = hold->instance ? actor_get(engine, hold->instance) : NULL;

        if (actor && actor->busy)
            engine->work.quotas.is_suspect = true;
        else if (hold->instance)
            held[(*count)++] = (struct quota_place){ hold->instance, hold->ordinal };
    }
    return held != NULL;
}

/* An instance that has not ended has rows: of a step, or of what it waits for. */
static bool is_there(const struct live *live, uint32_t ordinal)
{
    if (ordinal == 0)
        return live->step_count || live->timer_count || live->wait_count || live->child_count;
    for (uint32_t i = 0; i < live->step_count; i++)
        if (live->steps[i].ordinal == ordinal)
            return true;
    return false;
}

static pawl_status look_at(struct engine *engine, struct scope *scope,
                           const struct quota_place *held)
{
    struct live live;

    scope_clear(scope);
    TRY(store_live(engine->store, scope, held->instance, &live));
    if (is_there(&live, held->ordinal))
        return PAWL_OK;
    guard_lock(&engine->lock);
    quotas_give_back(engine, held->instance, held->ordinal);
    guard_unlock(&engine->lock);
    return PAWL_OK;
}

pawl_status quotas_mend(struct engine *engine, struct scope *scope)
{
    struct quota_place *held = NULL;
    struct scope one;
    uint32_t count = 0;
    pawl_status status;
    bool was_suspect, is_listed = true;

    guard_lock(&engine->lock);
    was_suspect = engine->work.quotas.is_suspect;
    engine->work.quotas.is_suspect = false;
    if (was_suspect)
        is_listed = list_held(engine, scope, &held, &count);
    engine->work.quotas.is_suspect = engine->work.quotas.is_suspect || !is_listed;
    guard_unlock(&engine->lock);
    TRY_MEMORY(scope, is_listed);
    if (!was_suspect)
        return PAWL_OK;
    scope_init(&one, engine->heap, LIMIT_SCOPE);
    status = quotas_recover_running(engine, scope);
    for (uint32_t i = 0; i < count && !status; i++)
        status = look_at(engine, &one, &held[i]);
    status = scope_leave(&one, scope, status);
    guard_lock(&engine->lock);
    engine->work.quotas.is_suspect = engine->work.quotas.is_suspect || status;
    guard_unlock(&engine->lock);
    return status;
}
