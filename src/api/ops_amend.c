/* ops_amend.c - instance.amend: a flow under way goes on by another definition. */
#include "api/ops_int.h"
#include "base/limits.h"
#include "flow/flow.h"

#define TRIES_MAX 10 /* it may go on while its results are gathered */

/* The last result of the step with this index, as far as `attempts` go. */
static str last_result(const struct flow_attempts *attempts, uint32_t plan)
{
    for (uint32_t i = attempts->count; i > 0; i--)
        if (attempts->items[i - 1].plan == plan && attempts->items[i - 1].status == STEP_DONE)
            return attempts->items[i - 1].result;
    return STR_NONE;
}

/* Results that the new definition asks for and the present one has no use for: it remembers none
 * of them, but its history does. data NULL: there are none. */
static pawl_status gather(const struct op_call *call, const struct definition *now,
                          const struct definition *next, const struct flow_attempts *attempts,
                          str *out)
{
    struct scope *scope = call->scope;
    struct buf buf;

    *out = STR_NONE;
    buf_init(&buf, scope->arena.heap, LIMIT_TEXT);
    json_open(&buf, '{');
    for (uint32_t i = 0; i < flow_step_count(now); i++) {
        str name = flow_step_name(now, i), result = last_result(attempts, i);

        if (!result.data || !flow_wants_result(next, name) || flow_wants_result(now, name))
            continue;
        json_key_str(&buf, name);
        json_raw(&buf, result);
        *out = name;
    }
    json_close(&buf, '}');
    if (out->data && !buf.failed)
        *out = buf_keep(&buf, &scope->arena);
    if (buf.failed || (out->data && out->size == 0)) {
        buf_fini(&buf);
        return scope_fail(scope, PAWL_TOO_LARGE,
                          "the results that '%.*s' asks for are over %u bytes",
                          STR_ARG(op_text(call, "definition")), LIMIT_TEXT);
    }
    buf_fini(&buf);
    return PAWL_OK;
}

static pawl_status amend_once(struct op_call *call, struct amend_args *args, struct amended *out,
                              bool *again)
{
    const struct definition *now = NULL, *next = NULL;
    struct flow_attempts attempts;
    struct instance_view view;
    struct definition_row row;
    pawl_status status = engine_get(op_engine(call), call->scope, args->instance, &view);

    *again = false;
    args->seq = 0;
    args->results = STR_NONE;
    if (status == PAWL_OK && view.kind == KIND_FLOW &&
        engine_find_kind(op_engine(call), call->scope, args->definition, KIND_FLOW, &row, &next) == PAWL_OK) {
        status = engine_steps(op_engine(call), call->scope, args->instance, &attempts, &now);
        if (status == PAWL_OK)
            status = gather(call, now, next, &attempts, &args->results);
        args->seq = args->results.data ? view.seq : 0;
    }
    if (status == PAWL_OK)
        status = engine_amend(op_engine(call), call->scope, args, out);
    if (status == PAWL_CONFLICT && args->seq) { /* refused, or has it gone on? */
        pawl_error error = call->scope->error;

        status = engine_get(op_engine(call), call->scope, args->instance, &view);
        *again = status == PAWL_OK && view.seq != args->seq;
        call->scope->error = error;
        status = status == PAWL_OK ? PAWL_CONFLICT : status;
    }
    return status;
}

pawl_status op_instance_amend(struct op_call *call, struct buf *out)
{
    struct amend_args args = { .instance = op_text(call, "instance_id"),
                               .definition = op_text(call, "definition"),
                               .actor = op_ref(call, "actor_ref"),
                               .late = ref_defect(call, "actor_ref"),
                               .key = call->key };
    struct amended amended;
    bool again;
    pawl_status status = op_rights(call, false, &args.rights);

    again = status == PAWL_OK;
    for (int i = 0; again && i < TRIES_MAX; i++)
        status = amend_once(call, &args, &amended, &again);
    if (status != PAWL_OK)
        return status;
    json_open(out, '{');
    json_key(out, "definition");
    json_str(out, amended.definition);
    json_key(out, "version");
    json_u64(out, amended.version);
    json_key(out, "sequence_number");
    json_u64(out, amended.sequence_number);
    json_close(out, '}');
    return PAWL_OK;
}
