/* code_types.c - processes written in C: their handlers, and which definitions they run. */
#include "code/code.h"
#include "engine/parts.h"

void definitions_bind(struct engine *engine, struct definition_slot *slot)
{
    for (uint32_t i = 0; i < engine->registry.code_count; i++)
        if (slot->definition->kind == KIND_CODE &&
            str_is(slot->name, engine->registry.code_types[i]->type->name))
            code_bind(slot->definition, engine->registry.code_types[i]);
}

static const struct code_binding *copy_binding(struct arena *arena,
                                               const struct code_binding *binding)
{
    struct code_binding *copy = arena_copy(arena, binding, sizeof *binding);

    if (copy) {
        copy->type = code_copy(arena, binding->type);
        copy->source = arena_str(arena, binding->source);
    }
    return copy && copy->type && copy->source.data ? copy : NULL;
}

static pawl_status keep_binding(struct engine *engine, struct scope *scope,
                                const struct code_binding *binding)
{
    size_t size = sizeof(void *); /* of one row */
    const struct code_binding *copy;
    void *grown = NULL;

    guard_lock(&engine->registry.lock);
    copy = copy_binding(&engine->registry.code_arena, binding);
    if (copy)
        grown = heap_resize(engine->heap, engine->registry.code_types, size * engine->registry.code_count,
                            size * (engine->registry.code_count + 1));
    if (grown) {
        engine->registry.code_types = grown;
        engine->registry.code_types[engine->registry.code_count++] = copy;
        renewals_note(engine, copy);
        wakes_look_again(engine);
        for (uint32_t i = 0; i < engine->registry.definition_capacity; i++)
            if (engine->registry.definitions[i])
                definitions_bind(engine, engine->registry.definitions[i]);
    }
    guard_unlock(&engine->registry.lock);
    timers_look_again(engine); /* those that waited for this handler */
    family_look_again(engine);
    return grown ? PAWL_OK : scope_no_memory(scope);
}

void engine_code_came(struct engine *engine)
{
    guard_lock(&engine->registry.lock);
    wakes_look_again(engine);
    guard_unlock(&engine->registry.lock);
    timers_look_again(engine);
    family_look_again(engine);
}

/* Programs register at every start: look before asking for the turn to write. */
static pawl_status put_definition(struct engine *engine, struct scope *scope,
                                  struct define_request *define)
{
    struct definition_row newest;
    pawl_status status =
        store_find_definition(engine->store, scope, define->row.name, 0, NULL, &newest);

    if (status == PAWL_OK && memcmp(newest.source_sha, define->row.source_sha, SHA_SIZE) == 0)
        return PAWL_OK;
    if (status && status != PAWL_NOT_KNOWN)
        return status;
    TRY(definition_put(engine, scope, define));
    retention_changed(engine, define->row.source);
    return PAWL_OK;
}

static pawl_status make_row(struct engine *engine, struct scope *scope,
                            const struct code_binding *binding, struct definition_row *out)
{
    struct definition *definition = NULL;

    TRY(code_compile(scope, binding, &definition));
    if (binding->source.data) /* it knows more about itself than its names */
        definition->plan_text = binding->source;
    TRY(definition_row_make(engine, scope, definition->plan_text, definition, out));
    out->name = str_of(binding->type->name);
    return PAWL_OK;
}

/* The last that was registered with this name; NULL: none. */
static const struct code_binding *find_binding(struct engine *engine, str name,
                                               bool is_put_when_used)
{
    const struct code_binding *found = NULL;

    guard_lock(&engine->registry.lock);
    for (uint32_t i = 0; i < engine->registry.code_count; i++)
        if ((engine->registry.code_types[i]->is_put_when_used || !is_put_when_used) &&
            str_is(name, engine->registry.code_types[i]->type->name))
            found = engine->registry.code_types[i];
    guard_unlock(&engine->registry.lock);
    return found;
}

/* In another process, perhaps on another machine: its first turn may take as long as it likes. */
bool code_is_elsewhere(struct engine *engine, str reference)
{
    const struct code_binding *binding = find_binding(engine, reference_name(reference), false);

    return binding && binding->run != code_run;
}

bool code_is_put_when_used(struct engine *engine, str reference)
{
    return find_binding(engine, reference_name(reference), true) != NULL;
}

pawl_status code_put_when_used(struct engine *engine, struct scope *scope, str reference)
{
    const struct code_binding *binding = find_binding(engine, reference_name(reference), true);
    struct define_request define = { 0 };

    if (!binding)
        return PAWL_OK;
    if (engine->options.home)
        engine = engine->options.home;
    TRY(make_row(engine, scope, binding, &define.row));
    return put_definition(engine, scope, &define);
}

pawl_status engine_code_bind(struct engine *engine, const struct code_binding *binding,
                             struct scope *scope)
{
    struct define_request define = { 0 };
    struct code_binding wired = *binding; /* with the names that it will have */

    wired.type = code_copy(&scope->arena, binding->type);
    TRY_MEMORY(scope, wired.type);
    TRY(make_row(engine, scope, &wired, &define.row));
    if (!wired.source.data)
        TRY(code_source(scope, wired.type, &wired.source));
    if (wired.run == code_run)
        (void)deaths_open(engine);
    TRY(keep_binding(engine, scope, &wired));
    if (binding->is_put_when_used || engine->options.home) /* the home shard's is put */
        return PAWL_OK;
    return put_definition(engine, scope, &define);
}

bool engine_has_code(struct engine *engine, str name)
{
    return find_binding(engine, name, false) != NULL;
}

pawl_status engine_code_register(struct engine *engine, const pawl_code_type *type,
                                 struct scope *scope)
{
    struct code_binding binding = { .type = type, .run = code_run };

    return engine_code_bind(engine, &binding, scope);
}

pawl_status engine_code_offer(struct engine *engine, const pawl_code_type *type,
                              struct scope *scope)
{
    struct code_binding binding = { .type = type, .run = code_run, .is_put_when_used = true };

    return engine_code_bind(engine, &binding, scope);
}
