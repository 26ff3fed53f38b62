/* actors.c - the flow and code instances that the engine remembers; restore.c brings back others.
 */
#include "engine/parts.h"

struct actor *actor_new(struct engine *engine)
{
    struct actor *actor = heap_new(engine->heap, sizeof *actor);

    if (actor)
        arena_init_small(&actor->arena, engine->heap, LIMIT_SCOPE);
    return actor;
}

void actor_free(struct engine *engine, struct actor *actor)
{
    arena_fini(&actor->arena);
    heap_free(engine->heap, actor, sizeof *actor);
}

/* Let go of the one at the hand. Its head goes with it: what sleeps takes no memory at all. The
 * last one takes its place, and is passed over. */
static void let_go(struct engine *engine)
{
    uint32_t hand = engine->actors.hand;
    struct actor *actor = engine->actors.items[hand];

    map_remove(&engine->actors.map, actor->instance);
    heads_release(&engine->writer.heads, actor->instance);
    actor_free(engine, actor);
    engine->actors.items[hand] = engine->actors.items[--engine->actors.count];
    if (hand < engine->actors.count)
        map_put(&engine->actors.map, engine->actors.items[hand]->instance, hand);
}

/* Past the limit, some that are idle and were not asked for since the hand last came by are let go:
 * the next event restores them. A few at a time, for there may be thousands, and looking no further
 * than pays, for all of them may be busy. */
static void make_room(struct engine *engine)
{
    uint32_t gone = 0;

    for (uint32_t looked = 0; looked < 4 * ACTORS_LET_GO && gone < ACTORS_LET_GO; looked++) {
        struct actor *actor;
        bool stays;

        engine->actors.hand %= engine->actors.count;
        actor = engine->actors.items[engine->actors.hand];
        stays = actor->busy || actor->first || actor->is_recent;
        actor->is_recent = false;
        if (!stays)
            let_go(engine);
        gone += !stays;
        engine->actors.hand++;
    }
}

struct actor *actor_take_ahead(struct engine *engine, uint64_t instance)
{
    struct actor *actor;

    ASSERT_LOCKED(engine);
    engine->actors.ahead++; /* first, so that none of these has to go for the next */
    actor = actor_get(engine, instance);
    if (!actor || actor->busy || actor->is_loaded)
        return NULL;
    actor->busy = true;
    return actor;
}

bool actors_are_runnable(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->actors.runnable != NULL;
}

bool actors_are_ahead(const struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return engine->actors.ahead > 0;
}

/* Twice around: the first time finds those that were just asked for. The lock is released now and
 * then, for there may be thousands. */
void actors_forget_ahead(struct engine *engine)
{
    uint32_t rounds = engine->actors.count / (2 * ACTORS_LET_GO) + 2;

    ASSERT_LOCKED(engine);
    engine->actors.ahead = 0;
    while (engine->actors.count > ACTORS_KEPT && rounds-- > 0) {
        make_room(engine);
        guard_unlock(&engine->lock);
        guard_lock(&engine->lock);
    }
}

pawl_status actor_adopt(struct engine *engine, struct actor *actor)
{
    ASSERT_LOCKED(engine);
    ASSERT(actor->instance && map_get(&engine->actors.map, actor->instance) == MAP_NONE);
    if (engine->actors.count >= ACTORS_KEPT + engine->actors.ahead)
        make_room(engine);
    if (!HEAP_GROW(engine->heap, engine->actors.items, engine->actors.capacity,
                   engine->actors.count + 1) ||
        !map_put(&engine->actors.map, actor->instance, engine->actors.count))
        return PAWL_NO_MEMORY;
    engine->actors.items[engine->actors.count++] = actor;
    return PAWL_OK;
}

struct actor *actor_get(struct engine *engine, uint64_t instance)
{
    uint32_t index = map_get(&engine->actors.map, instance);
    struct actor *actor;

    ASSERT_LOCKED(engine);
    if (index != MAP_NONE) {
        engine->actors.items[index]->is_recent = true;
        return engine->actors.items[index];
    }
    actor = actor_new(engine);
    if (!actor)
        return NULL;
    actor->instance = instance;
    if (actor_adopt(engine, actor) == PAWL_OK)
        return actor;
    actor_free(engine, actor);
    return NULL;
}

void actors_fini(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->actors.count; i++)
        actor_free(engine, engine->actors.items[i]);
    heap_free(engine->heap, engine->actors.items, sizeof(void *) * engine->actors.capacity);
    map_fini(&engine->actors.map);
}
