/* starters.c - which worker started a step, as the history says: for leases of before a restart.
 *
 * A thousand leases of one instance may run out together. So what one look back finds is kept for a
 * moment. Not for longer: another process may start steps of the instance, too. */
#include "engine/parts.h"

#define KEPT_FOR_MS    1000

void starters_init(struct engine *engine)
{
    guard_init(&engine->work.starters.lock);
    map_init(&engine->work.starters.places, engine->heap);
}

void starters_fini(struct engine *engine)
{
    struct starters *starters = &engine->work.starters;

    map_fini(&starters->places);
    heap_free(engine->heap, starters->actors, starters->capacity * sizeof *starters->actors);
    guard_fini(&starters->lock);
}

struct starter_sight {
    struct engine *engine;
    bool has_failed; /* no memory */
};

/* The last start of each attempt; true: there is no memory for more. */
static bool note_start(void *context, const struct record *record)
{
    struct starter_sight *sight = context;
    struct starters *starters = &sight->engine->work.starters;

    if (record->what != LIFE_T_STEP_START ||
        map_get(&starters->places, record->ordinal) != MAP_NONE)
        return false;
    sight->has_failed = !HEAP_GROW(sight->engine->heap, starters->actors, starters->capacity,
                                   starters->count + 1) ||
                        !map_put(&starters->places, record->ordinal, starters->count);
    if (!sight->has_failed)
        starters->actors[starters->count++] = record->actor;
    return sight->has_failed;
}

static pawl_status look(struct engine *engine, struct scope *scope, uint64_t instance)
{
    struct starters *starters = &engine->work.starters;
    struct starter_sight sight = { .engine = engine };
    struct head_row head;

    map_clear(&starters->places);
    starters->count = 0;
    starters->instance = 0;
    TRY(head_row_now(engine, scope, instance, &head));
    TRY(records_look_back(engine, scope, head.pos, note_start, &sight));
    TRY_MEMORY(scope, !sight.has_failed);
    starters->instance = instance;
    starters->looked_ms = engine->env->tick_ms(engine->env);
    return PAWL_OK;
}

pawl_status starter_find(struct engine *engine, struct scope *scope, uint64_t instance,
                         uint32_t ordinal, uint64_t *out_actor)
{
    struct starters *starters = &engine->work.starters;
    pawl_status status = PAWL_OK;
    uint32_t place = MAP_NONE;

    guard_lock(&starters->lock);
    if (starters->instance != instance ||
        engine->env->tick_ms(engine->env) - starters->looked_ms > KEPT_FOR_MS)
        status = look(engine, scope, instance);
    if (!status)
        place = map_get(&starters->places, ordinal);
    *out_actor = place == MAP_NONE ? 0 : starters->actors[place];
    guard_unlock(&starters->lock);
    return status;
}
