/* reduces.c - what a host does in the same transaction as a turn of its code (E13).
 *
 * A commit with a reduce has one request only, so that undoing it undoes no other. If it fails the
 * event is decided once more, to fail the instance with its words. */
#include "engine/parts.h"
#include "store/sqlite.h"

pawl_status engine_reduce_register(struct engine *engine, struct scope *scope, str name,
                                   pawl_reduce_fn run, void *context)
{
    struct reducer *grown;
    uint32_t count = engine->registry.reducer_count;
    char *kept;

    if (engine->options.connection)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "an attachment has no reduces: the transaction is the host's own");
    if (!name.data || str_is_blank(name) || name.size > LIMIT_NAME)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "the name of a reduce: expected 1 to %d bytes", LIMIT_NAME);
    guard_lock(&engine->registry.lock);
    kept = arena_text(&engine->registry.code_arena, name);
    grown = kept ? heap_resize(engine->heap, engine->registry.reducers, sizeof *grown * count,
                               sizeof *grown * (count + 1))
                 : NULL;
    if (grown) {
        engine->registry.reducers = grown;
        grown[engine->registry.reducer_count++] = (struct reducer){ kept, run, context };
    }
    guard_unlock(&engine->registry.lock);
    wakes_look_again(engine);
    timers_look_again(engine); /* those that waited for it */
    return grown ? PAWL_OK : scope_no_memory(scope);
}

void reduces_fini(struct engine *engine)
{
    heap_free(engine->heap, engine->registry.reducers, sizeof *engine->registry.reducers * engine->registry.reducer_count);
}

/* The last of a name counts. */
static pawl_status find(struct engine *engine, struct scope *scope, str name, struct reduce *out)
{
    pawl_status status = PAWL_NOT_KNOWN;

    guard_lock(&engine->registry.lock);
    for (uint32_t i = 0; i < engine->registry.reducer_count; i++)
        if (str_is(name, engine->registry.reducers[i].name)) {
            *out = (struct reduce){ .name = engine->registry.reducers[i].name,
                                    .run = engine->registry.reducers[i].run,
                                    .context = engine->registry.reducers[i].context };
            status = PAWL_OK;
        }
    guard_unlock(&engine->registry.lock);
    return status ? scope_fail(scope, status, "no reduce '%.*s' is registered in this program",
                               STR_ARG(name))
                  : PAWL_OK;
}

static uint32_t count_of(const struct decision *decision)
{
    uint32_t count = 0;

    for (uint32_t d = 0; d < decision->count; d++)
        for (uint32_t e = 0; e < decision->drafts[d].effects.count; e++)
            count += decision->drafts[d].effects.items[e].kind == EFFECT_REDUCE;
    return count;
}

bool reduces_any(const struct decision *decision)
{
    return count_of(decision) > 0;
}

static pawl_status add_one(struct engine *engine, struct scope *scope, const struct effect *effect,
                           struct request *request)
{
    struct reduce *reduce = &request->reduces[request->reduce_count];

    if (effect->kind != EFFECT_REDUCE)
        return PAWL_OK;
    TRY(find(engine, scope, effect->name, reduce));
    reduce->args = arena_text(&scope->arena, effect->state);
    TRY_MEMORY(scope, reduce->args);
    request->reduce_count++;
    return PAWL_OK;
}

static pawl_status add_all(struct engine *engine, struct scope *scope,
                           const struct decision *decision, struct request *request)
{
    for (uint32_t d = 0; d < decision->count; d++)
        for (uint32_t e = 0; e < decision->drafts[d].effects.count; e++)
            TRY(add_one(engine, scope, &decision->drafts[d].effects.items[e], request));
    return PAWL_OK;
}

/* Find what the decision asks for, and the starts of the children it wants. NOT_KNOWN: it is not
 * here, and the event waits. */
pawl_status reduces_of(struct engine *engine, struct scope *scope, const struct decision *decision,
                       const struct child_plan *child_plans, struct request *request)
{
    uint32_t count = count_of(decision);

    for (const struct child_plan *child_plan = child_plans; child_plan;)
        count += count_of(family_decision(child_plan, &child_plan));
    if (!count)
        return PAWL_OK;
    request->reduces = ARENA_ARRAY(&scope->arena, struct reduce, count);
    TRY_MEMORY(scope, request->reduces);
    TRY(add_all(engine, scope, decision, request));
    for (const struct child_plan *child_plan = child_plans; child_plan;)
        TRY(add_all(engine, scope, family_decision(child_plan, &child_plan), request));
    return PAWL_OK;
}

bool reduces_failed(const struct request *request)
{
    for (size_t i = 0; i < request->reduce_count; i++)
        if (request->reduces[i].has_failed)
            return true;
    return false;
}

/* The scope's error message as a JSON string; data NULL: no memory. */
str error_as_json(struct scope *scope)
{
    struct buf buf;

    buf_init(&buf, scope->arena.heap, LIMIT_TEXT);
    json_text(&buf, scope->error.message);
    return buf_take(&buf, &scope->arena);
}
