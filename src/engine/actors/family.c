/* family.c - parents and children: born together. What happens at their ends is in family_end.c.
 *
 * A child is created in the commit of the entry that wants it: its version is found and its start
 * decided before the drain, like any creation's; in the drain it gets its number, which the entry
 * tells. */
#include "base/node.h"
#include "engine/parts.h"

/* In one decision, and what they may need of the scope beside what was in it before: flows that
 * spawn themselves come to an end, with enough left to say so. What LIMIT_SPAWN_INPUT lets a flow
 * begin fits. */
#define CHILDREN_AT_ONCE 10000u
#define CHILDREN_BYTES   (LIMIT_SCOPE / 4)

struct child_plan {
    struct child_plan *next, *parent; /* parent NULL: the instance whose decision it is */
    const struct decision *wanted_by;
    uint32_t draft, item; /* the effect, which learns its id */
    struct create_args args;
    struct definition_row row;
    struct created out;
    struct create_request create;
    struct decision decision;
    struct actor *actor; /* NULL: a machine */
    struct job *jobs;
    str rights; /* what it may create itself */
    str trace;  /* of its parent's creation, else of the request that it is created by */
    str result; /* of the child that it would run again, and that has completed; data NULL: none */
};

/* The effect list may have been copied meanwhile (for a snapshot): found by its place. */
static struct effect *effect_of(const struct child_plan *child_plan)
{
    return &child_plan->wanted_by->drafts[child_plan->draft].effects.items[child_plan->item];
}

/* ---- before the drain ---- */

struct child_planning {
    struct engine *engine;
    struct scope *scope;
    int64_t at_ms;
    struct child_plan **end; /* of their list */
    uint32_t count;
    size_t used; /* of the scope, before the first of them */
    str rights; /* what the deciding instance may create, once it was read */
    bool knows_rights;
    bool is_creation; /* of the deciding instance: it can be refused ... */
    bool is_refused;  /* ... because it cannot run a child again */
};

static pawl_status decide_child_plan(struct child_planning *planning, struct child_plan *child_plan)
{
    struct engine *engine = planning->engine;
    struct actor *actor = actor_new(engine);
    str trace = planning->scope->trace;
    pawl_status status;

    TRY_MEMORY(planning->scope, actor);
    child_plan->actor = actor;
    actor->definition = child_plan->create.definition;
    planning->scope->trace = child_plan->trace;
    status = create_decide(engine, planning->scope, &child_plan->args, actor, planning->at_ms,
                           STR_NONE, &child_plan->decision, &child_plan->jobs);
    planning->scope->trace = trace;
    child_plan->create.decision = &child_plan->decision;
    child_plan->create.decided_at_ms = planning->at_ms;
    if (!status)
        return PAWL_OK;
    guard_lock(&engine->lock);
    steps_drop(engine, child_plan->jobs);
    guard_unlock(&engine->lock);
    actor_free(engine, actor);
    return status;
}

/* The child that the step had in the instance that its flow runs again, if it had one. */
static pawl_status run_again(struct child_planning *planning, const struct actor *parent,
                             struct child_plan *child_plan)
{
    struct child_wanted wanted = { &child_plan->row, child_plan->create.definition };
    str before = STR_NONE;
    pawl_status status;

    if (parent->definition->kind == KIND_FLOW)
        before = flow_child_before(parent->memory, effect_of(child_plan)->ordinal);
    if (!before.data)
        return PAWL_OK;
    status = redrive_child(planning->engine, planning->scope, before, &wanted, &child_plan->args,
                           &child_plan->result);
    planning->is_refused = status && planning->is_creation;
    return status;
}

/* `rights`: what the parent may create. The child starts with them. */
static pawl_status plan_one(struct child_planning *planning, const struct actor *parent, str rights,
                            struct child_plan *child_plan)
{
    const struct effect *effect = effect_of(child_plan);

    if (planning->count == CHILDREN_AT_ONCE ||
        planning->scope->arena.used - planning->used > CHILDREN_BYTES)
        return scope_fail(planning->scope, PAWL_TOO_LARGE, "too many children in one decision: %u",
                          planning->count);
    child_plan->args = (struct create_args){ .definition = effect->definition,
                                             .may_have_event = true,
                                             .input = effect->input,
                                             .actor = parent->creator,
                                             .correlation = parent->correlation,
                                             .rights = rights,
                                             .test = parent->is_test };
    child_plan->trace = parent->trace.data ? arena_str(&planning->scope->arena, parent->trace)
                                           : planning->scope->trace;
    child_plan->create = (struct create_request){ .args = &child_plan->args,
                                                  .row = &child_plan->row,
                                                  .out = &child_plan->out };
    TRY(rights_check(planning->scope, rights, effect->definition));
    TRY(create_resolve(planning->engine, planning->scope, &child_plan->args, &child_plan->row,
                       &child_plan->create.definition));
    TRY(run_again(planning, parent, child_plan));
    if (child_plan->result.data)
        return PAWL_OK;
    TRY(rights_of_creation(planning->engine, planning->scope, child_plan->args.rights,
                           &child_plan->row, &child_plan->rights));
    if (child_plan->create.definition->kind != KIND_MACHINE)
        TRY(decide_child_plan(planning, child_plan));
    *planning->end = child_plan;
    planning->end = &child_plan->next;
    planning->count++;
    return PAWL_OK;
}

/* None is created: the step that waits for it gets its end in the same decision. */
static pawl_status end_child(struct child_planning *planning, struct actor *parent,
                             struct decision *decision, const struct child_plan *child_plan)
{
    bool is_done = child_plan->result.data != NULL;
    struct event end = { .kind = EVENT_CHILD,
                         .at_ms = planning->at_ms,
                         .ordinal = effect_of(child_plan)->ordinal,
                         .payload = is_done ? child_plan->result : error_as_json(planning->scope),
                         .outcome = is_done ? TERMINAL_SUCCESS : TERMINAL_FAILURE };

    TRY_MEMORY(planning->scope, end.payload.data);
    planning->scope->error = (pawl_error){ .status = PAWL_OK };
    return actor_step(parent, &end, planning->scope, decision);
}

static pawl_status plan_effect(struct child_planning *planning, struct child_plan *parent,
                               struct actor *actor, struct decision *decision, uint32_t draft,
                               uint32_t item)
{
    struct child_plan *child_plan = ARENA_NEW(&planning->scope->arena, struct child_plan);
    pawl_status status = PAWL_OK;

    TRY_MEMORY(planning->scope, child_plan);
    *child_plan = (struct child_plan){
        .parent = parent, .wanted_by = decision, .draft = draft, .item = item
    };
    if (!parent && !planning->knows_rights) {
        status = rights_of_instance(planning->engine, planning->scope, actor->instance,
                                    &planning->rights);
        planning->knows_rights = !status;
    }
    if (!status)
        status = plan_one(planning, actor, parent ? parent->rights : planning->rights, child_plan);
    if (planning->is_refused || (!status && !child_plan->result.data))
        return status;
    if (status && !status_is_ours(status) &&
        actor->definition->states[actor->state].terminal != TERMINAL_NOT)
        return PAWL_OK; /* no step waits for it any more */
    return status_is_ours(status) ? status : end_child(planning, actor, decision, child_plan);
}

/* What one decision wants. What fails adds to it, and what that begins may want more. */
static pawl_status plan_of(struct child_planning *planning, struct child_plan *parent,
                           struct actor *actor, struct decision *decision)
{
    for (uint32_t d = 0; d < decision->count; d++)
        for (uint32_t e = 0; e < decision->drafts[d].effects.count; e++)
            if (decision->drafts[d].effects.items[e].kind == EFFECT_SPAWN &&
                (actor->definition->states[actor->state].terminal == TERMINAL_NOT ||
                 decision->drafts[d].effects.items[e].is_abandoned))
                TRY(plan_effect(planning, parent, actor, decision, d, e));
    return PAWL_OK;
}

/* The engine learns of an amend when it is recorded. */
static bool amends(const struct decision *decision)
{
    for (uint32_t i = 0; i < decision->count; i++)
        if (decision->drafts[i].transition == LIFE_T_AMEND && !decision->drafts[i].keep.data)
            return true;
    return false;
}

pawl_status family_plan(struct engine *engine, struct scope *scope, struct actor *actor,
                        const str *rights, int64_t at_ms, struct decision *decision,
                        struct child_plan **child_plans)
{
    struct child_planning planning = { .engine = engine,
                                       .scope = scope,
                                       .at_ms = at_ms,
                                       .end = child_plans,
                                       .used = scope->arena.used,
                                       .rights = rights ? *rights : STR_NONE,
                                       .knows_rights = rights != NULL,
                                       .is_creation = actor->instance == 0 };

    *child_plans = NULL;
    if (!family_is_possible(engine, actor->definition) && !amends(decision))
        return PAWL_OK;
    TRY(plan_of(&planning, NULL, actor, decision));
    for (struct child_plan *child_plan = *child_plans; child_plan; child_plan = child_plan->next)
        if (child_plan->actor)
            TRY(plan_of(&planning, child_plan, child_plan->actor, &child_plan->decision));
    return PAWL_OK;
}

const struct decision *family_decision(const struct child_plan *child_plan,
                                       const struct child_plan **next)
{
    *next = child_plan->next;
    return &child_plan->decision;
}

/* ---- recording ---- */

void family_number(struct engine *engine, struct child_plan *child_plans, uint64_t parent,
                   const uint8_t random[ID_RANDOM_SIZE])
{
    uint64_t index = engine->writer.batch.instance_count;
    char id[ID_SIZE + 1];

    ASSERT_DRAINING(engine);
    id_print(parent, random, id);
    for (struct child_plan *child_plan = child_plans; child_plan; child_plan = child_plan->next) {
        const struct child_plan *above = child_plan->parent;
        struct effect *effect = effect_of(child_plan);

        child_plan->create.number = tip_new_instance(&engine->writer.tip, index++);
        engine->env->random(engine->env, child_plan->create.random, ID_RANDOM_SIZE);
        id_print(child_plan->create.number, child_plan->create.random, child_plan->out.id);
        effect->name = str_of(child_plan->out.id);
        effect->child = child_plan->create.number;
        child_plan->create.parent = above ? above->create.number : parent;
        memcpy(child_plan->create.parent_id, above ? above->out.id : id, sizeof id);
    }
}

pawl_status family_check(struct engine *engine, struct scope *scope,
                         const struct child_plan *child_plans)
{
    for (const struct child_plan *one = child_plans; one; one = one->next)
        TRY(redrive_check(engine, scope, &one->args));
    return PAWL_OK;
}

pawl_status family_record(struct engine *engine, struct scope *scope,
                          struct child_plan *child_plans, int64_t at_ms)
{
    pawl_status status = PAWL_OK;
    str trace = scope->trace;

    ASSERT_DRAINING(engine);
    for (struct child_plan *child_plan = child_plans; child_plan && !status;
         child_plan = child_plan->next) {
        scope->trace = child_plan->trace;
        status = create_record(engine, scope, &child_plan->create, at_ms);
    }
    scope->trace = trace;
    return status ? batch_spoil(engine, scope, status) : PAWL_OK;
}

/* ---- after the commit ---- */

void family_over(struct engine *engine, struct child_plan *child_plans, bool is_refused)
{
    ASSERT_LOCKED(engine);
    for (struct child_plan *child_plan = child_plans; child_plan; child_plan = child_plan->next)
        if (child_plan->actor)
            create_over(engine, &child_plan->create, child_plan->actor, child_plan->jobs,
                        is_refused);
}
