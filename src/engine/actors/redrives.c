/* redrives.c - which instance runs another one again.
 *
 * The new one's `start` says whom it follows; a standing row, under the id of the first, tells
 * readers where the last such start is. So one instance is run again once at a time: a redrive says
 * which rows it saw, and the drain compares. */
#include "engine/parts.h"
#include "model/rights.h"

/* ---- recording ---- */

pawl_status redrive_note(struct engine *engine, struct scope *scope, const struct head *head,
                         const struct draft *draft)
{
    const struct effect *effect = effects_first(&draft->effects, EFFECT_REDRIVE);
    str id;

    ASSERT_DRAINING(engine);
    if (!effect)
        return PAWL_OK;
    id = arena_str(&engine->writer.scope.arena, effect->name);
    TRY_MEMORY(scope, id.data);
    return batch_add_standing(
        engine, scope, (struct standing_row){ .what = LIFE_T_START, .id = id, .pos = head->pos },
        true);
}

static pawl_status last_start(struct engine *engine, struct scope *scope, str id, uint64_t *pos)
{
    struct standing_row row;
    pawl_status status = store_standing(engine->store, scope, LIFE_T_START, id, &row);

    *pos = status ? 0 : row.pos;
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

pawl_status redrive_check(struct engine *engine, struct scope *scope,
                          const struct create_args *args)
{
    ASSERT_DRAINING(engine);
    for (uint32_t i = 0; i < args->seen_count; i++) {
        uint64_t pos;

        TRY(last_start(engine, scope, args->seen[i].id, &pos));
        if (pos != args->seen[i].pos ||
            batch_changes_standing(engine, LIFE_T_START, args->seen[i].id))
            return scope_fail(scope, PAWL_CONFLICT,
                              "%.*s was run again by another call meanwhile; `pawl show` names its "
                              "successor",
                              STR_ARG(args->seen[i].id));
    }
    return PAWL_OK;
}

/* ---- reading ---- */

pawl_status engine_successor(struct engine *engine, struct scope *scope, str id,
                             struct successor *out)
{
    struct record record;

    out->id[0] = '\0';
    TRY(last_start(engine, scope, id, &out->pos));
    if (!out->pos)
        return PAWL_OK;
    TRY(store_record(engine->store, scope, out->pos, &record));
    return engine_id_of(engine, scope, record.instance, out->id);
}

/* ---- once at a time ---- */

#define CHAIN_MAX 1000 /* redrives of redrives */

struct redrive_chain {
    struct redrive_seen seen[CHAIN_MAX];
    uint32_t count;
};

static pawl_status see(struct engine *engine, struct scope *scope, struct redrive_chain *chain,
                       str id, struct successor *out)
{
    TRY(engine_successor(engine, scope, id, out));
    if (chain->count == CHAIN_MAX)
        return scope_fail(scope, PAWL_CONFLICT,
                          "%.*s is one of over %u that run each other again; create a new instance",
                          STR_ARG(id), CHAIN_MAX);
    chain->seen[chain->count++] = (struct redrive_seen){ arena_str(&scope->arena, id), out->pos };
    return PAWL_OK;
}

/* Has this one been left behind: was one that it runs again, in turn, run again since? */
static pawl_status look_before(struct engine *engine, struct scope *scope,
                               const struct instance_view *view, struct redrive_chain *chain)
{
    struct instance_view before = *view;
    struct successor successor;
    pawl_status status = PAWL_OK;

    while (!status && before.retry_of.data) {
        char id[ID_SIZE + 1];

        memcpy(id, before.id, sizeof id);
        TRY(see(engine, scope, chain, before.retry_of, &successor));
        if (successor.pos != 0 && strcmp(successor.id, id) != 0)
            return scope_fail(scope, PAWL_CONFLICT,
                              "%.*s, which it runs again, was run again since, as %s: redrive that",
                              STR_ARG(before.retry_of), successor.id);
        status = engine_get(engine, scope, before.retry_of, &before);
    }
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status; /* it did not move along */
}

/* The last of those that run it again, in turn; itself, if it is not run again. */
static pawl_status look_behind(struct engine *engine, struct scope *scope,
                               const struct instance_view *view, struct redrive_chain *chain,
                               struct instance_view *last)
{
    struct successor successor;

    *last = *view;
    TRY(see(engine, scope, chain, str_of(view->id), &successor));
    while (successor.pos != 0) {
        TRY(engine_get(engine, scope, str_of(successor.id), last));
        TRY(see(engine, scope, chain, str_of(last->id), &successor));
    }
    return PAWL_OK;
}

static bool can_run_again(const struct instance_view *view)
{
    return view->status == STATUS_FAILED || view->status == STATUS_CANCELLED;
}

pawl_status engine_redrive_once(struct engine *engine, struct scope *scope,
                                const struct instance_view *view, struct create_args *args)
{
    struct redrive_chain *chain = ARENA_NEW(&scope->arena, struct redrive_chain);
    struct instance_view last;

    TRY_MEMORY(scope, chain);
    args->seen = chain->seen;
    TRY(look_before(engine, scope, view, chain));
    TRY(look_behind(engine, scope, view, chain, &last));
    args->seen_count = chain->count;
    if (can_run_again(&last))
        return PAWL_OK;
    return scope_fail(scope, PAWL_CONFLICT, "it was run again already, as %s, which %s", last.id,
                      last.status == STATUS_COMPLETED ? "has completed" : "is under way");
}

/* ---- the children of a flow that is run again ----
 *
 * A step that spawns begins again if its child did not end well. Then the new child runs that child
 * again, or what has run it again since. One that has completed meanwhile gives its result. */

/* What the step had, and what it comes to now. */
struct child_again {
    struct instance_view first, last;
    struct redrive_chain chain;
};

/* What is in a scope of its own, for the decision. */
static pawl_status keep_again(struct scope *scope, const struct create_args *from,
                              struct create_args *to)
{
    struct redrive_seen *seen =
        ARENA_ARRAY(&scope->arena, struct redrive_seen, from->seen_count + 1);

    TRY_MEMORY(scope, seen);
    for (uint32_t i = 0; i < from->seen_count; i++)
        seen[i] =
            (struct redrive_seen){ arena_str(&scope->arena, from->seen[i].id), from->seen[i].pos };
    to->seen = seen;
    to->seen_count = from->seen_count;
    to->given = arena_str(&scope->arena, from->given);
    to->rights = arena_str(&scope->arena, from->rights);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

static pawl_status give_again(struct engine *engine, struct scope *scope,
                              const struct redrive *redrive, struct create_args *args)
{
    str theirs;

    TRY(engine_redrive_once(engine, scope, redrive->view, args));
    TRY(engine_redrive_given(engine, scope, redrive, &args->given));
    TRY(engine_starter_rights(engine, scope, str_of(redrive->view->id), &theirs));
    TRY_MEMORY(scope, rights_meet(&scope->arena, args->rights, theirs, &args->rights));
    return PAWL_OK;
}

/* In a scope of its own: a flow may have thousands of children. */
static pawl_status look_at_child(struct engine *engine, struct scope *scope, str id,
                                 const struct child_wanted *wanted, struct create_args *args,
                                 str *result)
{
    struct child_again *child = ARENA_NEW(&scope->arena, struct child_again);
    struct redrive redrive;

    TRY_MEMORY(scope, child);
    TRY(engine_get(engine, scope, id, &child->first));
    TRY(look_behind(engine, scope, &child->first, &child->chain, &child->last));
    if (!child->first.is_amended && !str_eq(child->first.definition_name, wanted->row->name))
        return PAWL_OK; /* the step asks for something else now */
    if (child->last.status == STATUS_COMPLETED)
        *result = child->last.result.data ? child->last.result : STR("null");
    else if (!can_run_again(&child->last))
        return scope_fail(scope, PAWL_CONFLICT,
                          "it is under way%s%s; cancel it, or let it end first",
                          str_is(id, child->last.id) ? "" : " as ",
                          str_is(id, child->last.id) ? "" : child->last.id);
    if (result->data || child->last.kind != wanted->definition->kind ||
        child->last.kind == KIND_MACHINE || child->last.erased.at_ms)
        return PAWL_OK; /* there is nothing to give: it begins at its beginning */
    redrive =
        (struct redrive){ .view = &child->last,
                          .definition = wanted->definition,
                          .is_other = child->last.version != wanted->row->version ||
                                      !str_eq(child->last.definition_name, wanted->row->name) };
    return give_again(engine, scope, &redrive, args);
}

pawl_status redrive_child(struct engine *engine, struct scope *scope, str id,
                          const struct child_wanted *wanted, struct create_args *args, str *result)
{
    struct create_args found = *args;
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;
    struct scope own;
    str done = STR_NONE;
    pawl_status status;

    if (!id_parse(id, &number, random)) /* older starts tell no child */
        return PAWL_OK;
    scope_init(&own, engine->heap, LIMIT_SCOPE);
    status = look_at_child(engine, &own, id, wanted, &found, &done);
    if (!status)
        status = keep_again(scope, &found, args);
    else if (status != PAWL_NOT_KNOWN)
        (void)scope_fail(scope, status, "child %.*s: %.400s", STR_ARG(id), own.error.message);
    *result = arena_str(&scope->arena, done);
    scope_fini(&own);
    if (status == PAWL_NOT_KNOWN) /* it did not move along */
        return PAWL_OK;
    return done.data && !result->data ? scope_no_memory(scope) : status;
}
