/* ops_amend.c - instance.amend: a running flow moves to another definition. */
#include "api/ops_int.h"
#include "base/limits.h"
#include "flow/flow.h"

#define TRIES_MAX 10 /* it may go on while its results are gathered */

/* Results that the new definition asks for and the present one has no use for: it remembers none
 * of them, but its history does. *out: the entries that have them; data NULL: no result is
 * needed. */
static pawl_status gather(const struct op_call *call, const struct definition *now,
                          const struct definition *next, const struct flow_attempts *attempts,
                          str *out)
{
    struct scope *scope = call->scope;
    bool has_any = false;
    struct buf buf;

    *out = STR_NONE;
    buf_init(&buf, scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_open(&buf, '{');
    for (uint32_t i = 0; i < flow_step_count(now); i++) {
        const struct flow_attempt *last = flow_last_result(attempts, i);
        str name = flow_step_name(now, i);

        if (!last || !flow_wants_result(next, name) || flow_wants_result(now, name))
            continue;
        has_any = true;
        json_key_str(&buf, name);
        json_u64(&buf, last->ended_seq);
    }
    json_close(&buf, '}');
    if (has_any)
        *out = buf_keep(&buf, &scope->arena);
    buf_fini(&buf);
    return has_any && !out->data ? scope_no_memory(scope) : PAWL_OK;
}

static pawl_status amend_once(struct op_call *call, struct amend_args *args, struct amended *out,
                              bool *again)
{
    const struct definition *first = NULL, *now = NULL, *next = NULL;
    struct flow_attempts attempts;
    struct instance_view view;
    struct definition_row row;
    struct engine *engine = op_engine(call);
    pawl_status status;

    *again = false;
    args->seq = 0;
    args->entries = STR_NONE;
    TRY(engine_get(engine, call->scope, args->instance, &view));
    if (view.kind == KIND_FLOW && engine_find_kind(engine, call->scope, args->definition, KIND_FLOW,
                                                   &row, &next) == PAWL_OK) {
        TRY(engine_steps(engine, call->scope, args->instance, &attempts, &first, &now));
        TRY(gather(call, now, next, &attempts, &args->entries));
        args->seq = args->entries.data ? view.seq : 0;
    }
    status = engine_amend(engine, call->scope, args, out);
    if (status == PAWL_CONFLICT && args->seq) { /* refused, or has it gone on? */
        pawl_error error = call->scope->error;

        status = engine_get(engine, call->scope, args->instance, &view);
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
                               .late = op_ref_defect(call, "actor_ref"),
                               .key = call->key };
    struct amended amended;
    bool again = true;
    pawl_status status = PAWL_OK;

    TRY(op_rights(call, false, &args.rights));
    for (int i = 0; again && i < TRIES_MAX; i++)
        status = amend_once(call, &args, &amended, &again);
    TRY(status);
    json_put_str(out, "definition", amended.definition);
    json_put_u64(out, "version", amended.version);
    json_put_u64(out, "sequence_number", amended.sequence_number);
    return PAWL_OK;
}
