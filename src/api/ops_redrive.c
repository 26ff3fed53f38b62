/* ops_redrive.c - instance.redrive: a flow that failed is run again from where it failed, code
 * from its beginning, as a new instance that knows of the first (X7, C38). */
#include "api/ops_int.h"
#include "base/limits.h"
#include "base/sort.h"
#include "flow/flow.h"
#include "model/rights.h"
#include <stdlib.h>

static pawl_status check_ended(const struct op_call *call, const struct instance_view *view)
{
    if (view->kind == KIND_MACHINE)
        return scope_fail(call->scope, PAWL_INVALID_TRANSITION,
                          "only a flow or code can be run again; this is a machine");
    if (view->status == STATUS_COMPLETED)
        return scope_fail(call->scope, PAWL_TERMINAL, "it has completed: nothing in it failed");
    if (view->status != STATUS_FAILED && view->status != STATUS_CANCELLED)
        return scope_fail(call->scope, PAWL_CONFLICT,
                          "expected one that failed or was cancelled, found %s",
                          instance_status_name(view->status));
    return PAWL_OK;
}

/* The definition that it runs: the one asked for, else that of the first; of code the newest,
 * since the turns are those of the present build anyway. */
static pawl_status find_definition(const struct op_call *call, const struct instance_view *view,
                                   str *name, const struct definition **out)
{
    struct definition_row row;
    struct buf buf;

    *name = op_text(call, "definition");
    if (!name->data && view->kind == KIND_CODE) {
        *name = view->definition_name;
    } else if (!name->data) {
        buf_init(&buf, call->scope->arena.heap, 0);
        buf_fmt(&buf, "%.*s@%u", STR_ARG(view->definition_name), view->version);
        *name = buf_take(&buf, &call->scope->arena);
    }
    return name->data ? engine_find_kind(op_engine(call), call->scope, *name, view->kind, &row, out)
                      : scope_no_memory(call->scope);
}

/* The new instance may create only what the caller, the starter of the first one and those that
 * amended it may. */
static pawl_status read_rights(const struct op_call *call, str id, str *out)
{
    str ours, theirs;

    TRY(op_rights(call, false, &ours));
    TRY(engine_starter_rights(op_engine(call), call->scope, id, &theirs));
    TRY_MEMORY(call->scope, rights_meet(&call->scope->arena, ours, theirs, out));
    return PAWL_OK;
}

/* A conflict is reported after the key was looked for: a repeated call is answered again. */
static pawl_status check_once(const struct op_call *call, const struct instance_view *view,
                              struct create_args *args)
{
    pawl_status status = engine_redrive_once(op_engine(call), call->scope, view, args);

    if (status == PAWL_OK && view->erased.at_ms)
        status =
            scope_fail(call->scope, PAWL_CONFLICT,
                       "what it was given and what it found was erased; create a new instance");
    if (status != PAWL_CONFLICT)
        return status;
    args->late_status = status;
    args->late_words = arena_text(&call->scope->arena, str_of(call->scope->error.message));
    return args->late_words ? PAWL_OK : scope_no_memory(call->scope);
}

/* The engine refused it: another call's redrive was first, which is named then, or the flow did. */
static pawl_status name_other(const struct op_call *call, const struct instance_view *view)
{
    struct create_args unused = { 0 };
    pawl_error error = call->scope->error;

    if (engine_redrive_once(op_engine(call), call->scope, view, &unused) != PAWL_CONFLICT)
        call->scope->error = error;
    return PAWL_CONFLICT;
}

/* ---- What is not run again ---- */

/* What an instance took over when it began; `of` has data NULL: nothing, it is no redrive. */
struct taken_result {
    const struct node *done; /* names of steps */
    str of;                  /* the instance that it runs again */
    str *sorted;             /* the same names */
};

/* Its first entry tells. */
static pawl_status read_taken(const struct op_call *call, str id, struct taken_result *out)
{
    struct history history = { 0 };
    struct history_query first = { .sequence_from = 1, .sequence_to = 1 };
    struct node *given = NULL;
    uint32_t count = 0;

    *out = (struct taken_result){ .of = STR_NONE };
    TRY(engine_history(op_engine(call), call->scope, id, &first, &history));
    if (history.count == 0 || !history.entries[0].payload.data ||
        !str_is(history.entries[0].action, "start") ||
        node_read_json(call->scope, history.entries[0].payload, &given) != PAWL_OK)
        return PAWL_OK;
    out->done = node_find(given, "done");
    if (!out->done || out->done->kind != NODE_ARRAY || !node_text(given, "retry_of").data)
        return PAWL_OK;
    out->of = node_text(given, "retry_of");
    out->sorted = ARENA_ARRAY(&call->scope->arena, str, out->done->count + 1);
    TRY_MEMORY(call->scope, out->sorted);
    for (const struct node *name = out->done->first; name; name = name->next)
        out->sorted[count++] = name->text;
    qsort(out->sorted, count, sizeof(str), compare_strs);
    return PAWL_OK;
}

#define TAKEN_MAX 64 /* redrives of redrives that are followed */

/* The instances behind one another that each took results over; [0] is the newest. */
static pawl_status read_chain(const struct op_call *call, str id,
                              struct taken_result chain[TAKEN_MAX], uint32_t *count)
{
    pawl_status status = PAWL_OK;

    for (*count = 0; *count < TAKEN_MAX; id = chain[(*count)++].of) {
        status = read_taken(call, id, &chain[*count]);
        if (status != PAWL_OK || !chain[*count].of.data)
            break;
    }
    return status == PAWL_NOT_KNOWN && *count > 0 ? PAWL_OK : status; /* it did not move along */
}

/* The instance in which the step ran: the first of the chain that did not take it over itself. */
static str made_by(const struct taken_result *chain, uint32_t count, str name)
{
    uint32_t at = 1;

    while (at < count &&
           bsearch(&name, chain[at].sorted, chain[at].done->count, sizeof(str), compare_strs))
        at++;
    return chain[at - 1].of;
}

/* The steps whose results a redriven instance uses, each with the instance that it ran in. */
pawl_status read_reused(const struct op_call *call, str id, str *out)
{
    struct taken_result *chain = ARENA_ARRAY(&call->scope->arena, struct taken_result, TAKEN_MAX);
    uint32_t count = 0;
    struct buf buf;

    *out = STR_NONE;
    TRY_MEMORY(call->scope, chain);
    TRY(read_chain(call, id, chain, &count));
    if (count == 0)
        return PAWL_OK;
    buf_init(&buf, call->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '[');
    for (const struct node *name = chain[0].done->first; name; name = name->next) {
        json_open(&buf, '{');
        json_put_str(&buf, "name", name->text);
        json_put_str(&buf, "instance_id", made_by(chain, count, name->text));
        json_close(&buf, '}');
    }
    json_close(&buf, ']');
    *out = buf_take(&buf, &call->scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(call->scope);
}

/* ---- The operation ---- */

pawl_status op_instance_redrive(struct op_call *call, struct buf *out)
{
    struct instance_view view;
    struct redrive redrive;
    struct created created;
    const struct definition *next = NULL;
    const char *defect = op_ref_defect(call, "actor_ref");
    struct create_args args = { .key = call->key };
    str actor = op_ref(call, "actor_ref");
    pawl_status status;

    TRY(engine_get(op_engine(call), call->scope, op_text(call, "instance_id"), &view));
    TRY(check_ended(call, &view));
    TRY(find_definition(call, &view, &args.definition, &next));
    redrive = (struct redrive){ .view = &view,
                                .from = op_text(call, "from"),
                                .definition = next,
                                .is_other = op_text(call, "definition").data != NULL };
    TRY(engine_redrive_given(op_engine(call), call->scope, &redrive, &args.given));
    TRY(check_once(call, &view, &args));
    TRY(read_rights(call, str_of(view.id), &args.rights));
    if (defect && args.late_status == PAWL_OK) {
        args.late_status = PAWL_INVALID_REQUEST;
        args.late_words = defect;
    }
    args.input = view.input;
    args.metadata = view.metadata;
    args.labels = view.labels;
    args.subject = view.subject;
    args.correlation = view.correlation;
    args.actor = actor.data ? actor : view.created_by;
    args.test = view.test;
    status = engine_create(op_engine(call), call->scope, &args, &created);
    if (status == PAWL_CONFLICT && args.late_status == PAWL_OK)
        return name_other(call, &view);
    if (status == PAWL_OK)
        print_created(&created, out);
    return status;
}
