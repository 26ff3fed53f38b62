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

static pawl_status apply_entry(struct scope *scope, const struct definition *definition,
                               void *memory, const struct entry *entry, struct arena *arena)
{
    struct effect_list effects = { 0 };
    struct entry_view view = entry_to_fold(entry, &effects);
    pawl_status status = PAWL_OK;

    if (entry->record->body.data)
        status = effects_read(scope, entry->record->body, &effects);
    return status == PAWL_OK ? flow_behavior.apply(definition, memory, &view, scope, arena)
                             : status;
}

/* The old one's memory at its end, and what it was given itself. */
static pawl_status fold_history(const struct op_call *call, const struct definition *definition,
                                struct flow_redrive *args, void *memory)
{
    struct history_reader *history = NULL;
    struct scope scratch; /* of one entry */
    struct entry entry;
    bool is_found = true;
    pawl_status status =
        engine_history_open(op_engine(call), call->scope, args->retry_of, NULL, &history);

    scope_init(&scratch, call->scope->arena.heap, LIMIT_SCOPE);
    while (status == PAWL_OK && is_found) {
        scope_clear(&scratch);
        status = engine_history_next(history, call->scope, &entry, &is_found);
        if (status != PAWL_OK || !is_found)
            break;
        if (entry.record->seq == 1)
            args->before = arena_str(&call->scope->arena, entry.payload);
        status = apply_entry(&scratch, definition, memory, &entry, &call->scope->arena);
        if (status != PAWL_OK)
            call->scope->error = scratch.error;
    }
    scope_fini(&scratch);
    engine_history_close(history);
    return status;
}

/* What the new one is given: from the whole history of the old. */
static pawl_status read_given(const struct op_call *call, const struct instance_view *view,
                              const struct definition *next, str *out)
{
    const struct definition *definition = NULL, *now = NULL;
    struct past_payloads payloads;
    struct flow_attempts attempts;
    struct flow_redrive args = { .attempts = &attempts,
                                 .retry_of = str_of(view->id),
                                 .from = op_text(call, "from"),
                                 .definition = next,
                                 .is_other = op_text(call, "definition").data != NULL };
    struct engine *engine = op_engine(call);
    void *memory = NULL;
    pawl_status status =
        engine_steps(engine, call->scope, args.retry_of, &attempts, &definition, &now);

    if (status == PAWL_OK)
        status = engine_payloads(engine, call->scope, args.retry_of, &payloads);
    if (status != PAWL_OK)
        return status;
    memory = memory_of(definition, view, &call->scope->arena);
    TRY_MEMORY(call->scope, memory);
    flow_behavior.attach(memory, &payloads.source);
    args.memory = memory;
    TRY(fold_history(call, definition, &args, memory));
    return flow_redrive(call->scope, &args, out);
}

/* Code leaves nothing behind but its input: what it called and did meanwhile is not known by a
 * name, so it begins at its beginning. */
static pawl_status give_code(const struct op_call *call, const struct instance_view *view, str *out)
{
    struct buf buf;

    if (op_text(call, "from").data)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "from: code is run again from its beginning; leave it out");
    buf_init(&buf, call->scope->arena.heap, 0);
    json_open(&buf, '{');
    json_put_text(&buf, "retry_of", view->id);
    json_close(&buf, '}');
    *out = buf_take(&buf, &call->scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(call->scope);
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

/* ---- Once at a time ---- */

#define CHAIN_MAX 1000 /* redrives of redrives */

struct redrive_chain {
    struct redrive_seen seen[CHAIN_MAX];
    uint32_t count;
};

static pawl_status see(const struct op_call *call, struct redrive_chain *chain, str id,
                       struct successor *out)
{
    pawl_status status = engine_successor(op_engine(call), call->scope, id, out);

    if (status == PAWL_OK && chain->count == CHAIN_MAX)
        return scope_fail(call->scope, PAWL_CONFLICT,
                          "%.*s is one of over %u that run each other again; create a new instance",
                          STR_ARG(id), CHAIN_MAX);
    if (status == PAWL_OK)
        chain->seen[chain->count++] =
            (struct redrive_seen){ arena_str(&call->scope->arena, id), out->pos };
    return status;
}

/* Has this one been left behind: was one that it runs again, in turn, run again since? */
static pawl_status look_before(const struct op_call *call, const struct instance_view *view,
                               struct redrive_chain *chain)
{
    struct instance_view before = *view;
    struct successor successor;
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && before.retry_of.data) {
        char id[ID_SIZE + 1];

        memcpy(id, before.id, sizeof id);
        status = see(call, chain, before.retry_of, &successor);
        if (status == PAWL_OK && successor.pos != 0 && strcmp(successor.id, id) != 0)
            return scope_fail(call->scope, PAWL_CONFLICT,
                              "%.*s, which it runs again, was run again since, as %s: redrive that",
                              STR_ARG(before.retry_of), successor.id);
        if (status == PAWL_OK)
            status = engine_get(op_engine(call), call->scope, before.retry_of, &before);
    }
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status; /* it did not move along */
}

/* Does a successor of it still run, or has one done it? */
static pawl_status look_behind(const struct op_call *call, const struct instance_view *view,
                               struct redrive_chain *chain)
{
    struct instance_view last = *view;
    struct successor successor;
    pawl_status status = see(call, chain, str_of(view->id), &successor);

    while (status == PAWL_OK && successor.pos != 0) {
        status = engine_get(op_engine(call), call->scope, str_of(successor.id), &last);
        if (status == PAWL_OK)
            status = see(call, chain, str_of(last.id), &successor);
    }
    if (status == PAWL_OK && last.status != STATUS_FAILED && last.status != STATUS_CANCELLED)
        return scope_fail(call->scope, PAWL_CONFLICT, "it was run again already, as %s, which %s",
                          last.id, last.status == STATUS_COMPLETED ? "has completed" : "is under way");
    return status;
}

/* A conflict is reported after the key was looked for: a repeated call is answered again. */
static pawl_status check_once(const struct op_call *call, const struct instance_view *view,
                              struct create_args *args)
{
    struct redrive_chain *chain = ARENA_NEW(&call->scope->arena, struct redrive_chain);
    pawl_status status = chain ? look_before(call, view, chain) : scope_no_memory(call->scope);

    if (status == PAWL_OK)
        status = look_behind(call, view, chain);
    if (chain) {
        args->seen = chain->seen;
        args->seen_count = chain->count;
    }
    if (status != PAWL_CONFLICT)
        return status;
    args->late_status = status;
    args->late_words = arena_text(&call->scope->arena, str_of(call->scope->error.message));
    return args->late_words ? PAWL_OK : scope_no_memory(call->scope);
}

/* Refused in the drain: by another call's redrive, which is named then, or by the flow. */
static pawl_status name_other(const struct op_call *call, const struct instance_view *view)
{
    struct redrive_chain *chain = ARENA_NEW(&call->scope->arena, struct redrive_chain);
    pawl_error error = call->scope->error;

    if (!chain || look_behind(call, view, chain) != PAWL_CONFLICT)
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

static pawl_status redrive(const struct op_call *call, struct created *created)
{
    struct instance_view view;
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
    if (status == PAWL_OK)
        status = view.kind == KIND_CODE ? give_code(call, &view, &args.given)
                                        : read_given(call, &view, next, &args.given);
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

    TRY(redrive(call, &created));
    print_created(&created, out);
    return PAWL_OK;
}
