/* redrive_given.c - what an instance is given that runs another one again: made from the whole
 * history of the first. */
#include "base/limits.h"
#include "engine/parts.h"

struct identity engine_identity(const struct instance_view *view)
{
    return (struct identity){ .id = str_of(view->id),
                              .definition = view->definition_name,
                              .version = view->version,
                              .subject = view->subject,
                              .correlation = view->correlation,
                              .creator = view->created_by,
                              .labels = view->labels };
}

void *engine_memory_of(const struct definition *definition, const struct instance_view *view,
                       struct arena *arena)
{
    struct identity identity = engine_identity(view);
    const struct behavior *behavior = behavior_of(definition->kind);
    str input = view->input.data ? view->input : STR("{}");
    void *memory = behavior->memory_new(definition, input, arena);

    if (memory && behavior->introduce && !behavior->introduce(memory, &identity, arena))
        return NULL;
    return memory;
}

static pawl_status apply_entry(struct scope *scope, const struct definition *definition,
                               void *memory, const struct entry *entry, struct arena *arena)
{
    struct effect_list effects = { 0 };
    struct entry_view view = entry_to_fold(entry, &effects);

    if (entry->record->body.data)
        TRY(effects_read(scope, entry->record->body, &effects));
    return flow_behavior.apply(definition, memory, &view, scope, arena);
}

/* The old one's memory at its end, and what it was given itself. */
static pawl_status fold_history(struct engine *engine, struct scope *scope,
                                const struct definition *definition, struct flow_redrive *args,
                                void *memory)
{
    struct history_reader *history = NULL;
    struct scope scratch; /* of one entry */
    struct entry entry;
    bool is_found = true;
    pawl_status status = engine_history_open(engine, scope, args->retry_of, NULL, &history);

    scope_init(&scratch, scope->arena.heap, LIMIT_SCOPE);
    while (!status && is_found) {
        scope_clear(&scratch);
        status = engine_history_next(history, scope, &entry, &is_found);
        if (status || !is_found)
            break;
        if (entry.record->seq == 1)
            args->before = arena_str(&scope->arena, entry.payload);
        status = apply_entry(&scratch, definition, memory, &entry, &scope->arena);
        if (status)
            scope->error = scratch.error;
    }
    scope_fini(&scratch);
    engine_history_close(history);
    return status;
}

static pawl_status give_flow(struct engine *engine, struct scope *scope,
                             const struct redrive *redrive, str *out)
{
    const struct definition *definition = NULL, *now = NULL;
    struct recorded_payloads payloads;
    struct flow_attempts attempts;
    struct flow_redrive args = { .attempts = &attempts,
                                 .retry_of = str_of(redrive->view->id),
                                 .from = redrive->from,
                                 .definition = redrive->definition,
                                 .is_other = redrive->is_other };
    void *memory;

    TRY(engine_steps(engine, scope, args.retry_of, &attempts, &definition, &now));
    TRY(engine_payloads(engine, scope, args.retry_of, &payloads));
    memory = engine_memory_of(definition, redrive->view, &scope->arena);
    TRY_MEMORY(scope, memory);
    flow_behavior.attach(memory, &payloads.source);
    args.memory = memory;
    TRY(fold_history(engine, scope, definition, &args, memory));
    return flow_redrive(scope, &args, out);
}

/* Code leaves nothing behind but its input: what it called and did meanwhile is not known by a
 * name, so it begins at its beginning. */
pawl_status engine_redrive_given(struct engine *engine, struct scope *scope,
                                 const struct redrive *redrive, str *out)
{
    if (redrive->view->kind != KIND_CODE)
        return give_flow(engine, scope, redrive, out);
    if (redrive->from.data)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "from: code is run again from its beginning; leave it out");
    *out = json_object_of(&scope->arena, "retry_of", str_of(redrive->view->id));
    return out->data ? PAWL_OK : scope_no_memory(scope);
}
