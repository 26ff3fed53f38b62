/* attach.c - what an engine on a host's connection may remember.
 *
 * A shared engine forgets heads, actors and interned values with every turn anyway; only compiled
 * definitions stay in memory, by their number. A host that rolls back takes definitions back, and
 * the next one put gets the same number. No hook tells us (they are the host's, and ROLLBACK TO has
 * none), but the log does: as long as the last record that we saw is there with its root, which
 * covers everything before it, nothing that we saw was taken back. */
#include "engine/parts.h"

/* Is it still the definition of this number? If not it is put aside: names that were handed out
 * live until the engine closes. */
static pawl_status check_slot(struct engine *engine, struct scope *scope, uint32_t id)
{
    struct definition_slot *slot = engine->registry.definitions[id];
    struct definition_row row;
    pawl_status status = store_definition(engine->store, scope, id, &row);

    if (status && status != PAWL_NOT_KNOWN)
        return status;
    if (!status && str_eq(slot->name, row.name) && slot->version == row.version &&
        memcmp(slot->compiled_sha, row.compiled_sha, SHA_SIZE) == 0) {
        slot->is_doubtful = false;
        return attached_note(engine, scope);
    }
    slot->next = engine->registry.retired;
    engine->registry.retired = slot;
    engine->registry.definitions[id] = NULL;
    return PAWL_OK;
}

pawl_status attached_check(struct engine *engine, struct scope *scope, uint32_t id)
{
    struct record last;
    pawl_status status;
    bool holds = true;

    ASSERT_HOLDS(&engine->registry.lock);
    if (!engine->options.connection)
        return PAWL_OK;
    if (engine->registry.seen_pos) {
        status = store_record(engine->store, scope, engine->registry.seen_pos, &last);
        if (status && status != PAWL_NOT_KNOWN)
            return status;
        holds = !status && last.has_root &&
                memcmp(last.root, engine->registry.seen_root, SHA_SIZE) == 0;
    }
    for (uint32_t i = 0; !holds && i < engine->registry.definition_capacity; i++)
        if (engine->registry.definitions[i])
            engine->registry.definitions[i]->is_doubtful = true;
    if (!holds)
        engine->registry.seen_pos = 0;
    if (id < engine->registry.definition_capacity && engine->registry.definitions[id] &&
        engine->registry.definitions[id]->is_doubtful)
        TRY(check_slot(engine, scope, id));
    return PAWL_OK;
}

/* A definition was read: all that is known holds at the end of the log as it is now. */
pawl_status attached_note(struct engine *engine, struct scope *scope)
{
    struct store_tip tip;

    if (!engine->options.connection)
        return PAWL_OK;
    TRY(store_tip(engine->store, scope, &tip));
    engine->registry.seen_pos = tip.pos;
    memcpy(engine->registry.seen_root, tip.root, SHA_SIZE);
    return PAWL_OK;
}

void attached_fini(struct engine *engine)
{
    while (engine->registry.retired) {
        struct definition_slot *slot = engine->registry.retired;

        engine->registry.retired = slot->next;
        definition_slot_free(engine, slot);
    }
}
