/* renew.c - a newer build takes the turns of an instance: what it declares is in force from then
 * on, by an entry `amend`. With a higher version that comes before anything else: the instance is
 * migrated, and waits for what the build has at its place. */
#include "base/limits.h"
#include "code/code_int.h"
#include "model/interest.h"

/* A state that was migrated before registrations were recorded with it says nothing. */
str code_declared(const struct code_work *work, const struct code_binding *binding)
{
    const struct code_plan *plan = plan_in_force(work->definition, work->memory);

    return str_eq(plan->source, binding->source) || (work->memory->version > 0 && !work->memory->plan)
               ? STR_NONE
               : plan->source;
}

const struct code_plan *code_work_plan(const struct code_work *work)
{
    return work->plan ? work->plan : plan_in_force(work->definition, work->memory);
}

enum code_step_kind code_called_kind(const struct code_work *work, const struct turn_call *call)
{
    const pawl_code_type *type = work->binding->type;

    if (call->is_spawn)
        return CODE_CHILD;
    for (const char *const *name = type->calls; name && *name; name++)
        if (str_is(call->name, *name))
            return CODE_CALL;
    return CODE_EXTERNAL;
}

uint32_t code_state_version(const struct code_work *work)
{
    return work->memory->version ? work->memory->version : plan_of(work->definition)->version;
}

uint32_t code_type_version(const struct code_binding *binding)
{
    return binding->type->version > 0 ? binding->type->version : 1;
}

/* ---- amend ----------------------------------------------------------------------------------- */

/* Does the turn begin what the registration before does not have? */
static bool calls_more(const struct code_work *work, const struct code_plan *plan)
{
    uint32_t index;

    for (uint32_t i = 0; i < work->answer.call_count; i++) {
        const struct turn_call *call = &work->answer.calls[i];

        if (!plan_has(plan, code_called_kind(work, call), call->name, &index))
            return true;
    }
    return false;
}

static bool is_plan_due(const struct code_work *work, const struct code_binding *binding)
{
    const struct code_plan *plan = plan_in_force(work->definition, work->memory);

    if (!binding->source.data || str_eq(plan->source, binding->source))
        return false;
    return work->is_renewing || work->answer.migrated.data || calls_more(work, plan);
}

static pawl_status add_plan(struct code_work *work, const struct code_binding *binding,
                            struct effect_list *effects)
{
    struct code_plan *plan = ARENA_NEW(&work->scope->arena, struct code_plan);
    struct effect effect = { .kind = EFFECT_PLAN, .state = binding->source };
    struct buf buf;

    TRY_MEMORY(work->scope, plan);
    TRY(plan_extend(work->scope, plan_in_force(work->definition, work->memory), binding->type,
                    plan));
    buf_init(&buf, work->scope->arena.heap, LIMIT_SCOPE);
    plan_print_steps(plan, &buf);
    effect.input = buf_take(&buf, &work->scope->arena);
    TRY_MEMORY(work->scope, effect.input.data);
    work->plan = plan;
    return effect_add(work->scope, effects, effect);
}

pawl_status code_add_amend(struct code_work *work, const struct code_binding *binding, uint32_t version)
{
    bool has_plan = is_plan_due(work, binding), is_migrated = work->answer.migrated.data != NULL;
    bool has_version = is_migrated || work->is_renewing;
    struct draft *draft;

    work->plan = NULL;
    if (!has_plan && !has_version)
        return PAWL_OK;
    draft = decision_add(work->scope, &work->decision, LIFE_T_AMEND);
    TRY_MEMORY(work->scope, draft);
    if (is_migrated) {
        work->before = work->answer.migrated;
        TRY(ADD_EFFECT(work, &draft->effects, .kind = EFFECT_STATE, .state = work->before));
    }
    if (has_version)
        TRY(ADD_EFFECT(work, &draft->effects, .kind = EFFECT_VERSION, .attempt = version));
    return has_plan ? add_plan(work, binding, &draft->effects) : PAWL_OK;
}

/* ---- A new way out --------------------------------------------------------------------------- */

bool code_is_renewal_due(const struct code_work *work)
{
    const struct code_binding *binding = work->binding;

    return binding && !binding->is_replayed && work->memory->state.data && !work->event->is_held &&
           !work->event->poison.data && !code_memory_has_timer(work->memory, TIMER_TURN) &&
           code_type_version(binding) > code_state_version(work);
}

static bool has_name(const struct effect_list *waits, str name)
{
    for (uint32_t i = 0; i < waits->count; i++)
        if (str_eq(waits->items[i].name, name))
            return true;
    return false;
}

/* The hook named the place: what was waited for elsewhere is over. */
static pawl_status add_left(struct code_work *work, struct effect_list *effects)
{
    const struct code_memory *memory = work->memory;

    for (uint32_t i = 0; i < memory->timer_count; i++)
        if (!has_name(&work->answer.timers, memory->timers[i].name) &&
            !str_eq(memory->timers[i].name, TIMER_AGAIN)) /* of a call that it still waits for */
            TRY(ADD_EFFECT(work, effects, .kind = EFFECT_DISARM, .name = memory->timers[i].name));
    for (uint32_t i = 0; i < memory->signal_count; i++)
        if (!has_name(&work->answer.signals, memory->signals[i].name) &&
            !interest_is(memory->signals[i].name))
            TRY(ADD_EFFECT(work, effects, .kind = EFFECT_LEAVE, .name = memory->signals[i].name,
                           .state = memory->signals[i].value));
    return PAWL_OK;
}

static pawl_status fail_bare(const struct code_work *work, str name)
{
    return scope_fail(work->scope, PAWL_NOT_KNOWN,
                      "code type '%.*s' in this program waits for '%.*s' alone at the place where "
                      "the instance is brought to, and has its arguments only for code that comes "
                      "there; write a PAWL_SELECT at that place",
                      STR_ARG(plan_of(work->definition)->name), STR_ARG(name));
}

static pawl_status add_timer(struct code_work *work, struct effect_list *effects,
                             const struct effect *timer)
{
    if (code_memory_has_timer(work->memory, timer->name))
        return PAWL_OK;
    return timer->due_at_ms == TIMER_BARE ? fail_bare(work, timer->name)
                                          : effect_add(work->scope, effects, *timer);
}

/* What is armed and awaited already stays as it is: a timer has its due time. */
static pawl_status add_arms(struct code_work *work, struct effect_list *effects)
{
    const struct turn_answer *answer = &work->answer;

    for (uint32_t i = 0; i < answer->timers.count; i++)
        TRY(add_timer(work, effects, &answer->timers.items[i]));
    for (uint32_t i = 0; i < answer->signals.count; i++)
        if (!code_memory_has_signal(work->memory, answer->signals.items[i].name))
            TRY(effect_add(work->scope, effects, answer->signals.items[i]));
    return PAWL_OK;
}

static const struct turn_call *called(const struct code_work *work)
{
    return work->answer.call_count > 0 ? &work->answer.calls[0] : NULL;
}

static bool is_called(const struct code_work *work, const struct code_attempt *begun)
{
    uint32_t index;

    for (uint32_t i = 0; i < work->answer.call_count; i++) {
        const struct turn_call *call = &work->answer.calls[i];

        if (plan_has(code_work_plan(work), code_called_kind(work, call), call->name, &index) &&
            index == begun->plan)
            return true;
    }
    return false;
}

/* What has begun is not begun again, and not given up. */
static pawl_status add_begun(struct code_work *work, struct effect_list *effects)
{
    const struct code_attempt *begun = NULL;

    if (work->memory->call_count == 0)
        return work->answer.is_bare ? fail_bare(work, called(work)->name)
                                    : code_add_calls(work, effects);
    for (uint32_t i = 0; i < work->memory->call_count && !begun; i++)
        if (!is_called(work, &work->memory->calls[i]))
            begun = &work->memory->calls[i];
    if (!begun || (!called(work) && !work->answer.is_moved))
        return PAWL_OK;
    return scope_fail(work->scope, PAWL_NOT_KNOWN,
                      "the instance has begun '%.*s', which code type '%.*s' in this program does "
                      "not wait for at its place; run it with a build that does, or let 'migrate' "
                      "return NULL until that is over",
                      STR_ARG(code_step_name_now(work->definition, work->memory, begun->plan)),
                      STR_ARG(plan_of(work->definition)->name));
}

static pawl_status add_waits(struct code_work *work, struct effect_list *effects)
{
    if (!work->answer.is_renewed)
        return PAWL_OK;
    if (work->answer.is_moved)
        TRY(add_left(work, effects));
    TRY(add_arms(work, effects));
    TRY(code_add_interests(work, effects));
    return add_begun(work, effects);
}

pawl_status code_renew(struct code_work *work)
{
    const struct code_binding *binding = work->binding;
    struct turn_request request = { .kind = PAWL_EVENT_RENEW,
                                    .at_ms = work->event->at_ms,
                                    .state = code_memory_state(work->memory),
                                    .from_version = code_state_version(work),
                                    .declared = code_declared(work, binding) };
    struct code_memory *memory = NULL;

    TRY(binding->run(binding, &request, work->scope, &work->answer));
    work->is_renewing = true;
    TRY(code_add_amend(work, binding, code_type_version(binding)));
    TRY(add_waits(work, &work->decision.drafts[work->decision.count - 1].effects));
    TRY(code_fold_ahead(work, 0, &memory));
    work->memory = memory;
    work->plan = NULL;
    work->is_renewing = false;
    work->is_renewed = true;
    if (work->event->kind != EVENT_WAKE) /* else it takes signals that were kept for its new arms */
        work->answer = (struct turn_answer){ 0 };
    return PAWL_OK;
}
