/* ops_steps.c - instance.steps: every attempt of every step, in creation order.
 *
 * What a step was given is not stored: templates are replaced again, with the memory as it
 * was right after the entry that made the attempt. */
#include "api/ops_int.h"
#include "flow/flow.h"

struct fold {
    const struct op_call *call;
    const struct definition *definition;
    void *memory;
    struct flow_call *given; /* by ordinal - 1 */
    uint32_t count;
};

static pawl_status read_given(struct fold *fold, const struct effect_list *effects)
{
    struct scope *scope = fold->call->scope;

    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];
        pawl_status status;

        if (effect->kind != EFFECT_STEP || effect->ordinal == 0 || effect->ordinal > fold->count)
            continue;
        status = flow_call(fold->definition, fold->memory, effect->ordinal, scope,
                           &fold->given[effect->ordinal - 1]);
        if (status != PAWL_OK && status != PAWL_LEASE_LOST)
            return status;
    }
    return PAWL_OK;
}

static pawl_status apply_entry(struct fold *fold, const struct entry *entry)
{
    const struct record *record = entry->record;
    struct scope *scope = fold->call->scope;
    struct effect_list effects = { 0 };
    struct entry_view view = {
        .transition = (uint32_t)record->what,
        .step = record->step,
        .ordinal = record->ordinal,
        .attempt = record->attempt,
        .payload = entry->payload,
        .reason = entry->reason,
        .effects = &effects,
        .at_ms = record->at_ms,
    };
    pawl_status status = PAWL_OK;

    if (record->body.data)
        status = effects_read(scope, record->body, &effects);
    if (status == PAWL_OK)
        status = flow_behavior.apply(fold->definition, fold->memory, &view, scope, &scope->arena);
    return status == PAWL_OK ? read_given(fold, &effects) : status;
}

static pawl_status fold_history(struct fold *fold)
{
    struct scope *scope = fold->call->scope;
    struct engine *engine = op_engine(fold->call);
    str id = op_text(fold->call, "instance_id");
    struct history history = { 0 };
    struct instance_view view;
    pawl_status status = engine_get(engine, scope, id, &view);

    if (status == PAWL_OK)
        status = engine_history(engine, scope, id, &(struct history_query){ 0 }, &history);
    if (status != PAWL_OK)
        return status;
    fold->given = ARENA_ARRAY(&scope->arena, struct flow_call, fold->count);
    fold->memory = flow_behavior.memory_new(fold->definition, view.input, &scope->arena);
    if (!fold->given || !fold->memory)
        return scope_no_memory(scope);
    for (size_t i = 0; i < history.count && status == PAWL_OK; i++)
        status = apply_entry(fold, &history.entries[i]);
    return status;
}

static void print_instant(struct buf *out, const char *key, int64_t at_ms)
{
    json_key(out, key);
    if (at_ms != 0)
        json_time(out, at_ms);
    else
        json_null(out);
}

static void print_step(const struct fold *fold, const struct flow_attempt *attempt,
                       const struct flow_call *given, struct buf *out)
{
    str id = op_text(fold->call, "instance_id");

    json_open(out, '{');
    json_key(out, "step_id");
    buf_fmt(out, "\"%.*s.%u\"", STR_ARG(id), attempt->ordinal);
    json_key(out, "instance_id");
    json_str(out, id);
    json_key(out, "name");
    json_str(out, flow_step_name(fold->definition, attempt->plan));
    json_key(out, "tool");
    json_str(out, given->tool);
    json_key(out, "status");
    json_text(out, step_status_name(attempt->status));
    json_key(out, "attempt");
    json_u64(out, attempt->attempt);
    json_key(out, "args");
    json_raw(out, given->args);
    json_key(out, "result");
    json_raw(out, attempt->result);
    json_key(out, "error");
    json_raw(out, attempt->error);
    print_instant(out, "ready_at", attempt->ready_at_ms);
    print_instant(out, "started_at", attempt->started_at_ms);
    print_instant(out, "completed_at", attempt->completed_at_ms);
    json_close(out, '}');
}

pawl_status op_instance_steps(struct op_call *call, struct buf *out)
{
    struct fold fold = { .call = call };
    struct flow_attempts attempts = { 0 };
    pawl_status status = engine_steps(op_engine(call), call->scope, op_text(call, "instance_id"),
                                      &attempts, &fold.definition);

    fold.count = attempts.count;
    if (status == PAWL_OK && attempts.count > 0)
        status = fold_history(&fold);
    if (status != PAWL_OK)
        return status;
    json_open(out, '{');
    json_key(out, "steps");
    json_open(out, '[');
    for (uint32_t i = 0; i < attempts.count; i++)
        print_step(&fold, &attempts.items[i], &fold.given[attempts.items[i].ordinal - 1], out);
    json_close(out, ']');
    json_close(out, '}');
    return PAWL_OK;
}
