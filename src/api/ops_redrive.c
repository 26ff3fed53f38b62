/* ops_redrive.c - instance.redrive: a flow that failed is run again from where it failed, as a new
 * instance that knows of the first (X7, C38). */
#include "api/ops_int.h"
#include "flow/flow.h"
#include "model/rights.h"

static pawl_status check_ended(const struct op_call *call, const struct instance_view *view)
{
    if (view->kind != KIND_FLOW)
        return scope_fail(call->scope, PAWL_INVALID_TRANSITION,
                          "only a flow can be run again from where it failed; this is a %s",
                          definition_kind_name(view->kind));
    if (view->status == STATUS_COMPLETED)
        return scope_fail(call->scope, PAWL_TERMINAL, "it has completed: nothing in it failed");
    if (view->status != STATUS_FAILED && view->status != STATUS_CANCELLED)
        return scope_fail(call->scope, PAWL_CONFLICT,
                          "expected one that failed or was cancelled, found %s",
                          instance_status_name(view->status));
    return PAWL_OK;
}

static pawl_status apply_entry(const struct op_call *call, const struct definition *definition,
                               void *memory, const struct entry *entry)
{
    struct scope *scope = call->scope;
    struct effect_list effects = { 0 };
    struct entry_view view = { .transition = (uint32_t)entry->record->what,
                               .step = entry->record->step,
                               .ordinal = entry->record->ordinal,
                               .attempt = entry->record->attempt,
                               .payload = entry->payload,
                               .reason = entry->reason,
                               .actor = entry->actor,
                               .effects = &effects,
                               .at_ms = entry->record->at_ms };
    pawl_status status = PAWL_OK;

    if (entry->record->body.data)
        status = effects_read(scope, entry->record->body, &effects);
    return status == PAWL_OK ? flow_behavior.apply(definition, memory, &view, scope, &scope->arena)
                             : status;
}

/* What the new one is given: from the whole history of the old. */
static pawl_status read_given(const struct op_call *call, const struct instance_view *view,
                              str *out)
{
    const struct definition *definition = NULL;
    struct flow_attempts attempts;
    struct history history = { 0 };
    struct engine *engine = op_engine(call);
    str id = str_of(view->id);
    void *memory = NULL;
    pawl_status status = engine_steps(engine, call->scope, id, &attempts, &definition);

    if (status == PAWL_OK)
        status = engine_history(engine, call->scope, id, &(struct history_query){ 0 }, &history);
    if (status == PAWL_OK)
        memory = memory_of(definition, view, &call->scope->arena);
    if (status == PAWL_OK && !memory)
        return scope_no_memory(call->scope);
    for (size_t i = 0; i < history.count && status == PAWL_OK; i++)
        status = apply_entry(call, definition, memory, &history.entries[i]);
    if (status != PAWL_OK)
        return status;
    return flow_redrive(call->scope, memory, &attempts, id,
                        history.count > 0 ? history.entries[0].payload : STR_NONE, out);
}

static pawl_status name_definition(const struct op_call *call, const struct instance_view *view,
                                   struct create_args *args)
{
    struct buf buf;

    if (!view->definition_name.data)
        return engine_declaration(op_engine(call), call->scope, str_of(view->id),
                                  &args->declaration);
    buf_init(&buf, call->scope->arena.heap, 0);
    buf_fmt(&buf, "%.*s@%u", STR_ARG(view->definition_name), view->version);
    args->definition = buf_keep(&buf, &call->scope->arena);
    buf_fini(&buf);
    return args->definition.data ? PAWL_OK : scope_no_memory(call->scope);
}

/* The new instance may create only what the caller, the starter of the first one and those that
 * amended it may. */
static pawl_status read_rights(const struct op_call *call, str id, str *out)
{
    str ours, theirs;
    pawl_status status = op_rights(call, false, &ours);

    if (status == PAWL_OK)
        status = engine_starter_rights(op_engine(call), call->scope, id, &theirs);
    if (status == PAWL_OK && !rights_meet(&call->scope->arena, ours, theirs, out))
        status = scope_no_memory(call->scope);
    return status;
}

static pawl_status redrive(const struct op_call *call, struct created *created)
{
    struct instance_view view;
    const char *defect = ref_defect(call, "actor_ref");
    struct create_args args = { .key = call->key,
                                .late_status = defect ? PAWL_INVALID_REQUEST : PAWL_OK,
                                .late_words = defect };
    str actor = op_ref(call, "actor_ref");
    pawl_status status =
        engine_get(op_engine(call), call->scope, op_text(call, "instance_id"), &view);

    if (status == PAWL_OK)
        status = check_ended(call, &view);
    if (status == PAWL_OK)
        status = name_definition(call, &view, &args);
    if (status == PAWL_OK)
        status = read_given(call, &view, &args.given);
    if (status == PAWL_OK)
        status = read_rights(call, str_of(view.id), &args.rights);
    if (status != PAWL_OK)
        return status;
    args.input = view.input;
    args.metadata = view.metadata;
    args.labels = view.labels;
    args.subject = view.subject;
    args.correlation = view.correlation;
    args.actor = actor.data ? actor : view.created_by;
    args.test = view.test;
    return engine_create(op_engine(call), call->scope, &args, created);
}

pawl_status op_instance_redrive(struct op_call *call, struct buf *out)
{
    struct created created;
    pawl_status status = redrive(call, &created);

    if (status == PAWL_OK)
        print_created(&created, out);
    return status;
}
