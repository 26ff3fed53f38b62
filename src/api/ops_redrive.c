/* ops_redrive.c - instance.redrive: a flow that failed is run again from where it failed, code
 * from its beginning, as a new instance that knows of the first (X7, C38). */
#include "api/ops_int.h"
#include "base/limits.h"
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

    if (status != PAWL_CONFLICT)
        return status;
    args->late_status = status;
    args->late_words = arena_text(&call->scope->arena, str_of(call->scope->error.message));
    return args->late_words ? PAWL_OK : scope_no_memory(call->scope);
}

/* Refused in the drain: by another call's redrive, which is named then, or by the flow. */
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

static int compare_names(const void *a, const void *b)
{
    return str_compare(*(const str *)a, *(const str *)b);
}

static bool sort_names(const struct op_call *call, struct taken_result *taken)
{
    uint32_t count = 0;

    taken->sorted = ARENA_ARRAY(&call->scope->arena, str, taken->done->count + 1);
    if (!taken->sorted)
        return false;
    for (const struct node *name = taken->done->first; name; name = name->next)
        taken->sorted[count++] = name->text;
    qsort(taken->sorted, count, sizeof(str), compare_names);
    return true;
}

/* Its first entry tells. */
static pawl_status read_taken(const struct op_call *call, str id, struct taken_result *out)
{
    struct history history = { 0 };
    struct history_query first = { .sequence_from = 1, .sequence_to = 1 };
    const struct node *of;
    struct node *given = NULL;
    pawl_status status = engine_history(op_engine(call), call->scope, id, &first, &history);

    *out = (struct taken_result){ .of = STR_NONE };
    if (status != PAWL_OK || history.count == 0 || !history.entries[0].payload.data ||
        !str_is(history.entries[0].action, "start") ||
        node_read_json(call->scope, history.entries[0].payload, &given) != PAWL_OK)
        return status;
    out->done = node_find(given, "done");
    of = node_find(given, "retry_of");
    if (!out->done || !of || out->done->kind != NODE_ARRAY || of->kind != NODE_STRING)
        return PAWL_OK;
    out->of = of->text;
    return sort_names(call, out) ? PAWL_OK : scope_no_memory(call->scope);
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

    while (at < count && bsearch(&name, chain[at].sorted, chain[at].done->count, sizeof(str),
                                 compare_names))
        at++;
    return chain[at - 1].of;
}

static void print_reused(const struct taken_result *chain, uint32_t count, struct buf *out)
{
    json_open(out, '[');
    for (const struct node *name = chain[0].done->first; name; name = name->next) {
        json_open(out, '{');
        json_put_str(out, "name", name->text);
        json_put_str(out, "instance_id", made_by(chain, count, name->text));
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* The steps whose results a redriven instance uses, each with the instance that it ran in. */
pawl_status read_reused(const struct op_call *call, str id, str *out)
{
    struct taken_result *chain = ARENA_ARRAY(&call->scope->arena, struct taken_result, TAKEN_MAX);
    uint32_t count = 0;
    struct buf buf;
    pawl_status status =
        chain ? read_chain(call, id, chain, &count) : scope_no_memory(call->scope);

    *out = STR_NONE;
    if (status != PAWL_OK || count == 0)
        return status;
    buf_init(&buf, call->scope->arena.heap, LIMIT_SCOPE);
    print_reused(chain, count, &buf);
    *out = buf_take(&buf, &call->scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(call->scope);
}

/* ---- The operation ---- */

static pawl_status run_again(const struct op_call *call, struct created *created)
{
    struct instance_view view;
    struct redrive redrive;
    const struct definition *next = NULL;
    const char *defect = op_ref_defect(call, "actor_ref");
    struct create_args args = { .key = call->key };
    str actor = op_ref(call, "actor_ref");
    pawl_status status =
        engine_get(op_engine(call), call->scope, op_text(call, "instance_id"), &view);

    if (status == PAWL_OK)
        status = check_ended(call, &view);
    if (status == PAWL_OK)
        status = find_definition(call, &view, &args.definition, &next);
    redrive = (struct redrive){ .view = &view,
                                .from = op_text(call, "from"),
                                .definition = next,
                                .is_other = op_text(call, "definition").data != NULL };
    if (status == PAWL_OK)
        status = engine_redrive_given(op_engine(call), call->scope, &redrive, &args.given);
    if (status == PAWL_OK)
        status = check_once(call, &view, &args);
    if (status == PAWL_OK)
        status = read_rights(call, str_of(view.id), &args.rights);
    if (status != PAWL_OK)
        return status;
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
    status = engine_create(op_engine(call), call->scope, &args, created);
    return status == PAWL_CONFLICT && args.late_status == PAWL_OK ? name_other(call, &view)
                                                                  : status;
}

pawl_status op_instance_redrive(struct op_call *call, struct buf *out)
{
    struct created created;

    TRY(run_again(call, &created));
    print_created(&created, out);
    return PAWL_OK;
}
