/* code_types.c - processes written in C: their registrations, and which definitions they run. */
#include "code/code.h"
#include "engine/engine_int.h"

void definitions_bind(struct engine *engine, struct definition_slot *slot)
{
    for (uint32_t i = 0; i < engine->code_count; i++) {
        const pawl_code_type *type = engine->code_types[i];

        if (slot->definition->kind == KIND_CODE && str_is(slot->name, type->name))
            slot->definition->plan = (void *)(uintptr_t)type;
    }
}

static const char *const *copy_names(struct arena *arena, const char *const *names)
{
    size_t count = 0;
    char **copy;

    while (names && names[count])
        count++;
    copy = ARENA_ARRAY(arena, char *, count + 1);
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = arena_text(arena, str_of(names[i]));
    return (const char *const *)copy;
}

/* Arguments are borrowed for the call, handlers are called long after it: keep a copy. */
static const pawl_code_type *copy_type(struct arena *arena, const pawl_code_type *type)
{
    pawl_code_type *copy = arena_copy(arena, type, sizeof *type);
    size_t count = 0;
    pawl_var *vars;

    while (type->vars && type->vars[count].name)
        count++;
    vars = ARENA_ARRAY(arena, pawl_var, count + 1);
    for (size_t i = 0; vars && i < count; i++) {
        vars[i] = type->vars[i];
        vars[i].name = arena_text(arena, str_of(type->vars[i].name));
    }
    if (!copy || !vars)
        return NULL;
    copy->name = arena_text(arena, str_of(type->name));
    copy->timers = copy_names(arena, type->timers);
    copy->signals = copy_names(arena, type->signals);
    copy->vars = vars;
    return arena->failed ? NULL : copy;
}

static pawl_status keep_type(struct engine *engine, struct scope *scope, const pawl_code_type *type)
{
    size_t size = sizeof *engine->code_types;
    const pawl_code_type *copy;
    void *grown = NULL;

    pthread_mutex_lock(&engine->definitions_lock);
    copy = copy_type(&engine->code_arena, type);
    if (copy)
        grown = heap_resize(engine->heap, engine->code_types, size * engine->code_count,
                            size * (engine->code_count + 1));
    if (grown) {
        engine->code_types = grown;
        engine->code_types[engine->code_count++] = copy;
        for (uint32_t i = 0; i < engine->definition_capacity; i++)
            if (engine->definitions[i])
                definitions_bind(engine, engine->definitions[i]);
    }
    pthread_mutex_unlock(&engine->definitions_lock);
    timers_look_again(engine); /* those that waited for this handler */
    return grown ? PAWL_OK : scope_no_memory(scope);
}

pawl_status engine_code_register(struct engine *engine, const pawl_code_type *type,
                                 struct scope *scope)
{
    struct define_request define = { 0 };
    struct definition_row newest;
    struct definition *definition;
    str source;
    pawl_status status = code_compile(scope, type, &definition);

    if (!status)
        status = code_source(scope, type, &source);
    if (!status)
        status = definition_row_make(engine, scope, source, definition, &define.row);
    if (status)
        return status;
    define.row.name = str_of(type->name);
    status = keep_type(engine, scope, type);
    if (status)
        return status;
    /* Programs register at every start: look before asking for the turn to write. */
    status = store_find_definition(engine->store, scope, define.row.name, 0, NULL, &newest);
    if (status == PAWL_OK && memcmp(newest.source_sha, define.row.source_sha, SHA_SIZE) == 0)
        return PAWL_OK;
    return status && status != PAWL_NOT_KNOWN ? status : definition_put(engine, scope, &define);
}
