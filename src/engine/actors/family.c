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

struct birth {
    struct birth *next, *parent; /* parent NULL: the instance whose decision it is */
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
};

/* The effect list may have been copied meanwhile (for a snapshot): found by its place. */
static struct effect *effect_of(const struct birth *birth)
{
    return &birth->wanted_by->drafts[birth->draft].effects.items[birth->item];
}

/* ---- before the drain ---- */

struct conception {
    struct engine *engine;
    struct scope *scope;
    int64_t at_ms;
    struct birth **first, *last;
    uint32_t count;
    size_t used; /* of the scope, before the first of them */
    str rights; /* what the deciding instance may create, once it was read */
    bool knows_rights;
};

static pawl_status decide_birth(struct conception *conception, struct birth *birth)
{
    struct engine *engine = conception->engine;
    pawl_status status;

    birth->actor = actor_new(engine);
    if (!birth->actor)
        return scope_no_memory(conception->scope);
    birth->actor->definition = birth->create.definition;
    status = create_decide(engine, conception->scope, &birth->args, birth->actor, conception->at_ms,
                           STR_NONE, &birth->decision, &birth->jobs);
    birth->create.decision = &birth->decision;
    birth->create.decided_at_ms = conception->at_ms;
    return status;
}

static void give_up(struct conception *conception, struct birth *birth)
{
    struct engine *engine = conception->engine;

    guard_lock(&engine->lock);
    steps_drop(engine, birth->jobs);
    guard_unlock(&engine->lock);
    if (birth->actor)
        actor_free(engine, birth->actor);
}

static bool has_outgrown(const struct conception *conception)
{
    return conception->scope->arena.used - conception->used > CHILDREN_BYTES;
}

/* `rights`: what the parent may create. The child starts with them. */
static pawl_status conceive_one(struct conception *conception, const struct actor *parent,
                                str rights, struct birth *birth)
{
    const struct effect *effect = effect_of(birth);
    pawl_status status;

    if (conception->count == CHILDREN_AT_ONCE || has_outgrown(conception))
        return scope_fail(conception->scope, PAWL_TOO_LARGE,
                          "too many children in one decision: %u", conception->count);
    birth->args = (struct create_args){ .definition = effect->definition,
                                        .may_have_event = true,
                                        .input = effect->input,
                                        .actor = parent->creator,
                                        .correlation = parent->correlation,
                                        .rights = rights,
                                        .test = parent->is_test };
    birth->create =
        (struct create_request){ .args = &birth->args, .row = &birth->row, .out = &birth->out };
    status = rights_check(conception->scope, rights, effect->definition);
    if (!status)
        status = create_resolve(conception->engine, conception->scope, &birth->args, &birth->row,
                                &birth->create.definition);
    if (!status)
        status = rights_of_creation(conception->engine, conception->scope, rights, &birth->row,
                                    &birth->rights);
    if (!status && birth->create.definition->kind != KIND_MACHINE)
        status = decide_birth(conception, birth);
    if (status) {
        give_up(conception, birth);
        return status;
    }
    if (conception->last)
        conception->last->next = birth;
    else
        *conception->first = birth;
    conception->last = birth;
    conception->count++;
    return PAWL_OK;
}

/* It cannot be created: the step that waits for it gets a failed child, in the same decision. */
static pawl_status fail_child(struct conception *conception, struct actor *parent,
                              struct decision *decision, uint32_t ordinal)
{
    struct event failed = { .kind = EVENT_CHILD,
                            .at_ms = conception->at_ms,
                            .ordinal = ordinal,
                            .outcome = TERMINAL_FAILURE };
    struct buf buf;

    buf_init(&buf, conception->engine->heap, LIMIT_TEXT);
    json_text(&buf, conception->scope->error.message);
    failed.payload = buf_take(&buf, &conception->scope->arena);
    if (!failed.payload.data)
        return scope_no_memory(conception->scope);
    conception->scope->error = (pawl_error){ .status = PAWL_OK };
    return actor_step(parent, &failed, conception->scope, decision);
}

/* The rights of a parent that this decision creates, or of the instance that decides. */
static pawl_status find_rights(struct conception *conception, const struct birth *parent,
                               const struct actor *actor, str *out)
{
    pawl_status status = PAWL_OK;

    if (!parent && !conception->knows_rights)
        status = rights_of_instance(conception->engine, conception->scope, actor->instance,
                                    &conception->rights);
    conception->knows_rights = conception->knows_rights || (!parent && !status);
    *out = parent ? parent->rights : conception->rights;
    return status;
}

static pawl_status conceive_effect(struct conception *conception, struct birth *parent,
                                   struct actor *actor, struct decision *decision, uint32_t draft,
                                   uint32_t item)
{
    struct birth *birth = ARENA_NEW(&conception->scope->arena, struct birth);
    str rights;
    pawl_status status;

    if (!birth)
        return scope_no_memory(conception->scope);
    *birth =
        (struct birth){ .parent = parent, .wanted_by = decision, .draft = draft, .item = item };
    status = find_rights(conception, parent, actor, &rights);
    if (!status)
        status = conceive_one(conception, actor, rights, birth);
    if (status && !family_is_ours(status) &&
        actor->definition->states[actor->state].terminal != TERMINAL_NOT)
        return PAWL_OK; /* no step waits for it any more */
    return status && !family_is_ours(status)
               ? fail_child(conception, actor, decision, effect_of(birth)->ordinal)
               : status;
}

/* What one decision wants. What fails adds to it, and what that begins may want more. */
static pawl_status conceive_of(struct conception *conception, struct birth *parent,
                               struct actor *actor, struct decision *decision)
{
    pawl_status status = PAWL_OK;

    for (uint32_t d = 0; d < decision->count && !status; d++)
        for (uint32_t e = 0; e < decision->drafts[d].effects.count && !status; e++)
            if (decision->drafts[d].effects.items[e].kind == EFFECT_SPAWN &&
                (actor->definition->states[actor->state].terminal == TERMINAL_NOT ||
                 decision->drafts[d].effects.items[e].is_abandoned))
                status = conceive_effect(conception, parent, actor, decision, d, e);
    return status;
}

/* The engine learns of an amend when it is recorded. */
static bool amends(const struct decision *decision)
{
    for (uint32_t i = 0; i < decision->count; i++)
        if (decision->drafts[i].transition == LIFE_T_AMEND && !decision->drafts[i].keep.data)
            return true;
    return false;
}

pawl_status family_conceive(struct engine *engine, struct scope *scope, struct actor *actor,
                            const str *rights, int64_t at_ms, struct decision *decision,
                            struct birth **births)
{
    struct conception conception = { .engine = engine,
                                     .scope = scope,
                                     .at_ms = at_ms,
                                     .first = births,
                                     .used = scope->arena.used,
                                     .rights = rights ? *rights : STR_NONE,
                                     .knows_rights = rights != NULL };
    pawl_status status;

    *births = NULL;
    if (!family_is_possible(engine, actor->definition) && !amends(decision))
        return PAWL_OK;
    status = conceive_of(&conception, NULL, actor, decision);
    for (struct birth *birth = *births; birth && !status; birth = birth->next)
        if (birth->actor)
            status = conceive_of(&conception, birth, birth->actor, &birth->decision);
    return status;
}

const struct decision *family_decision(const struct birth *birth, const struct birth **next)
{
    *next = birth->next;
    return &birth->decision;
}

/* ---- in the drain ---- */

static void name_parent(struct birth *birth, uint64_t number, const char *id)
{
    birth->create.parent = number;
    memcpy(birth->create.parent_id, id, ID_SIZE + 1);
}

void family_number(struct engine *engine, struct birth *births, uint64_t parent,
                   const uint8_t random[ID_RANDOM_SIZE])
{
    uint64_t index = engine->writer.batch.instance_count;
    char id[ID_SIZE + 1];

    ASSERT_DRAINING(engine);
    id_print(parent, random, id);
    for (struct birth *birth = births; birth; birth = birth->next) {
        struct effect *effect = effect_of(birth);

        birth->create.number = tip_new_instance(&engine->writer.tip, index++);
        engine->env->random(engine->env, birth->create.random, ID_RANDOM_SIZE);
        id_print(birth->create.number, birth->create.random, birth->out.id);
        effect->name = str_of(birth->out.id);
        effect->child = birth->create.number;
        if (birth->parent)
            name_parent(birth, birth->parent->create.number, birth->parent->out.id);
        else
            name_parent(birth, parent, id);
    }
}

pawl_status family_bear(struct engine *engine, struct scope *scope, struct birth *births,
                        int64_t at_ms)
{
    pawl_status status = PAWL_OK;

    ASSERT_DRAINING(engine);
    for (struct birth *birth = births; birth && !status; birth = birth->next)
        status = create_record(engine, scope, &birth->create, at_ms);
    return status ? batch_spoil(engine, scope, status) : PAWL_OK;
}

/* ---- after the commit ---- */

void family_over(struct engine *engine, struct birth *births, bool is_refused)
{
    ASSERT_LOCKED(engine);
    for (struct birth *birth = births; birth; birth = birth->next)
        if (birth->actor)
            create_over(engine, &birth->create, birth->actor, birth->jobs, is_refused);
}
