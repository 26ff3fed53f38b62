/* reduce.c - (memory, event) -> one turn of the handler -> drafts of entries.
 *
 * The entry of the event comes first and carries all that the turn changed; the end, if the
 * turn ended, is a second entry of the same commit. A state that another version wrote is migrated
 * by an entry before both. */
#include "base/limits.h"
#include "base/planted.h"
#include "code/code_int.h"
#include "model/fire.h"
#include "model/words.h"

static const struct code_memory nothing_yet;

struct work {
    const struct definition *definition;
    const struct standing *standing;
    const struct code_memory *memory;
    const struct event *event;
    struct scope *scope;
    struct turn_answer answer;
    str before; /* the state that the turn began with */
    struct decision decision;
};

/* What is recorded of the event: the transition, its payload, and the attempt it was of. */
struct cause {
    uint32_t transition;
    pawl_event_kind kind;
    str name, payload; /* for the handler */
    str recorded;      /* payload of the entry */
    const struct code_attempt *attempt;
};

static pawl_status fail_no_handler(const struct work *work)
{
    return scope_fail(work->scope, PAWL_NOT_KNOWN,
                      "no handler registered for code type '%.*s' in this program",
                      STR_ARG(words_shown(plan_of(work->definition)->name)));
}

static pawl_status add(struct work *work, struct effect_list *effects, struct effect effect)
{
    return effect_add(work->scope, effects, effect);
}

/* The first of several waits wins and takes the others with it (E11, E12). */
static pawl_status add_spent(struct work *work, struct effect_list *effects)
{
    const struct code_memory *memory = work->memory;
    pawl_status status = PAWL_OK;

    if (memory->call.ordinal > 0)
        status = add(work, effects,
                     (struct effect){
                         .kind = EFFECT_END, .ordinal = memory->call.ordinal, .is_bare = true });
    for (uint32_t i = 0; i < memory->timer_count && status == PAWL_OK; i++)
        status = add(work, effects,
                     (struct effect){ .kind = EFFECT_DISARM, .name = memory->timers[i].name });
    for (uint32_t i = 0; i < memory->signal_count && status == PAWL_OK; i++)
        status =
            add(work, effects, (struct effect){ .kind = EFFECT_LEAVE, .name = memory->signals[i] });
    return status;
}

static pawl_status add_state(struct work *work, struct effect_list *effects)
{
    if (!work->answer.state.data || (work->before.data && str_eq(work->before, work->answer.state)))
        return PAWL_OK;
    return add(work, effects, (struct effect){ .kind = EFFECT_STATE, .state = work->answer.state });
}

static pawl_status add_waits(struct work *work, struct effect_list *effects,
                             const struct effect_list *waits)
{
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < waits->count && status == PAWL_OK; i++)
        status = add(work, effects, waits->items[i]);
    return status;
}

/* The plan is the instance's own: what a later build declares is not in it. */
static pawl_status add_call(struct work *work, struct effect_list *effects)
{
    const struct code_plan *plan = plan_of(work->definition);
    struct effect step = { .kind = EFFECT_STEP,
                           .ordinal = work->memory->ordinals + 1,
                           .attempt = 1 };
    pawl_status status;

    if (!work->answer.call.data)
        return PAWL_OK;
    while (step.plan < plan->step_count && !str_eq(plan->steps[step.plan], work->answer.call))
        step.plan++;
    if (step.plan == plan->step_count)
        return scope_fail(work->scope, PAWL_NOT_KNOWN,
                          "the instance was created by a version of code type '%.*s' that does not "
                          "declare the call '%.*s'; its events wait for a build that does without",
                          STR_ARG(plan->name), STR_ARG(work->answer.call));
    step.status = step.plan < plan->call_count ? STEP_READY : STEP_PENDING;
    status = add(work, effects, step);
    if (status == PAWL_OK)
        status =
            add(work, effects,
                (struct effect){
                    .kind = EFFECT_CALL, .ordinal = step.ordinal, .state = work->answer.args });
    return status;
}

static pawl_status add_effects(struct work *work, struct effect_list *effects)
{
    pawl_status status = add_spent(work, effects);

    if (status == PAWL_OK)
        status = add_state(work, effects);
    if (status == PAWL_OK && work->answer.end != TURN_FAILS)
        status = add_waits(work, effects, &work->answer.reduces);
    if (status != PAWL_OK || work->answer.end != TURN_WAITS)
        return status;
    status = add_waits(work, effects, &work->answer.timers);
    if (status == PAWL_OK)
        status = add_waits(work, effects, &work->answer.signals);
    return status == PAWL_OK ? add_call(work, effects) : status;
}

static pawl_status add_end(struct work *work)
{
    uint32_t transition = work->answer.end == TURN_COMPLETES ? LIFE_T_FINISH : LIFE_T_FAIL;
    struct draft *draft;

    if (work->answer.end == TURN_WAITS)
        return PAWL_OK;
    draft = decision_add(work->scope, &work->decision, transition);
    if (!draft)
        return scope_no_memory(work->scope);
    draft->payload = work->answer.value;
    return PAWL_OK;
}

static uint32_t state_version(const struct work *work)
{
    return work->memory->version ? work->memory->version : plan_of(work->definition)->version;
}

static uint32_t type_version(const struct code_binding *binding)
{
    return binding->type->version > 0 ? binding->type->version : 1;
}

/* amend: the state as the new version has it, before it handles anything. */
static pawl_status add_migration(struct work *work, uint32_t version)
{
    struct draft *draft;
    pawl_status status;

    if (!work->answer.migrated.data)
        return PAWL_OK;
    draft = decision_add(work->scope, &work->decision, LIFE_T_AMEND);
    if (!draft)
        return scope_no_memory(work->scope);
    work->before = work->answer.migrated;
    status = add(work, &draft->effects,
                 (struct effect){ .kind = EFFECT_STATE, .state = work->answer.migrated });
    return status == PAWL_OK ? add(work, &draft->effects,
                                   (struct effect){ .kind = EFFECT_VERSION, .attempt = version })
                             : status;
}

static pawl_status run_handler(struct work *work, const struct code_binding *binding,
                               const struct cause *cause)
{
    uint32_t from = state_version(work), to = type_version(binding);
    struct turn_request request = { .kind = cause->kind,
                                    .name = cause->name,
                                    .payload = cause->payload,
                                    .at_ms = work->event->at_ms,
                                    .state = code_memory_state(work->memory),
                                    .from_version = from != to ? from : 0 };
    pawl_status status;

    if (cause->kind == PAWL_EVENT_START)
        request.from_version = 0;
    work->before = request.state;
    status = binding->run(binding, &request, work->scope, &work->answer);
    return status == PAWL_OK ? add_migration(work, to) : status;
}

/* One turn, recorded as its cause says. */
static pawl_status take_turn(struct work *work, const struct cause *cause)
{
    const struct code_binding *binding = plan_of(work->definition)->binding;
    pawl_status status;
    struct draft *draft;

    if (work->event->failure.data) { /* the turn was taken, and could not be committed */
        work->answer = (struct turn_answer){ .end = TURN_FAILS, .value = work->event->failure };
        status = PAWL_OK;
    } else {
        status = binding ? run_handler(work, binding, cause) : fail_no_handler(work);
    }
    if (status != PAWL_OK)
        return status;
    draft = decision_add(work->scope, &work->decision, cause->transition);
    if (!draft)
        return scope_no_memory(work->scope);
    draft->payload = cause->recorded;
    draft->actor = work->event->actor;
    if (cause->attempt) {
        draft->step = cause->attempt->plan + 1;
        draft->ordinal = cause->attempt->ordinal;
        draft->attempt = cause->attempt->attempt;
    }
    status = add_effects(work, &draft->effects);
    return status == PAWL_OK ? add_end(work) : status;
}

static pawl_status decide_start(struct work *work)
{
    if (work->standing->state != LIFE_CREATED)
        return scope_fail(work->scope, PAWL_NOT_AWAITING, "the instance has already started");
    return take_turn(work, &(struct cause){ .transition = LIFE_T_START,
                                            .kind = PAWL_EVENT_START,
                                            .payload = work->event->payload });
}

/* {"timer":NAME}, or {"signal":NAME,"payload":VALUE} with the value byte for byte. */
static pawl_status print_payload(struct work *work, str *out)
{
    bool is_signal = work->event->kind == EVENT_SIGNAL;
    struct buf buf;

    buf_init(&buf, work->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_key(&buf, is_signal ? "signal" : "timer");
    json_str(&buf, work->event->name);
    if (is_signal) {
        json_key(&buf, "payload");
        json_raw(&buf, work->event->payload);
    }
    json_close(&buf, '}');
    *out = buf_keep(&buf, &work->scope->arena);
    buf_fini(&buf);
    return out->data ? PAWL_OK : scope_no_memory(work->scope);
}

static void list_names(const struct work *work, struct buf *out)
{
    const struct code_memory *memory = work->memory;
    const char *comma = "";

    for (uint32_t i = 0; work->event->kind == EVENT_TIMER && i < memory->timer_count; i++) {
        buf_fmt(out, "%s%.*s", comma, STR_ARG(memory->timers[i].name));
        comma = ", ";
    }
    for (uint32_t i = 0; work->event->kind == EVENT_SIGNAL && i < memory->signal_count; i++) {
        buf_fmt(out, "%s%.*s", comma, STR_ARG(memory->signals[i]));
        comma = ", ";
    }
    if (comma[0] == '\0')
        buf_str(out, STR("none"));
}

static pawl_status fail_not_awaiting(const struct work *work)
{
    bool is_timer = work->event->kind == EVENT_TIMER;
    struct buf names;
    pawl_status status;

    buf_init(&names, work->scope->arena.heap, LIMIT_TEXT);
    list_names(work, &names);
    status = scope_fail(work->scope, PAWL_NOT_AWAITING, "no %s '%.*s' is %s; %s now: %.*s",
                        is_timer ? "timer" : "signal", STR_ARG(words_shown(work->event->name)),
                        is_timer ? "armed" : "awaited", is_timer ? "armed" : "awaited",
                        STR_ARG(buf_view(&names)));
    if (names.failed)
        status = scope_no_memory(work->scope);
    buf_fini(&names);
    return status;
}

/* A timer that was armed again meanwhile is not the one that was due. */
static bool is_early(const struct work *work)
{
    for (uint32_t i = 0; i < work->memory->timer_count; i++)
        if (str_eq(work->memory->timers[i].name, work->event->name))
            return work->memory->timers[i].due_at_ms > work->event->at_ms &&
                   !work->event->is_forced && !PLANTED(TIMER_TWICE);
    return false;
}

static pawl_status decide_wakeup(struct work *work)
{
    bool is_timer = work->event->kind == EVENT_TIMER;
    bool awaited = is_timer ? code_memory_has_timer(work->memory, work->event->name)
                            : code_memory_has_signal(work->memory, work->event->name);
    struct cause cause = { .transition = is_timer ? LIFE_T_TIMER : LIFE_T_SIGNAL,
                           .kind = is_timer ? PAWL_EVENT_TIMER : PAWL_EVENT_SIGNAL,
                           .name = work->event->name,
                           .payload = work->event->payload };
    pawl_status status;

    if (!awaited || (is_timer && is_early(work)))
        return fail_not_awaiting(work);
    status = print_payload(work, &cause.recorded);
    return status == PAWL_OK ? take_turn(work, &cause) : status;
}

/* ---- Calls ------------------------------------------------------------------------------ */

/* A draft of an attempt that needs no turn: it is started, or it is tried again. */
static struct draft *draft_attempt(struct work *work, uint32_t transition)
{
    const struct code_attempt *call = &work->memory->call;
    struct draft *draft = decision_add(work->scope, &work->decision, transition);

    if (!draft)
        return NULL;
    draft->step = call->plan + 1;
    draft->ordinal = call->ordinal;
    draft->attempt = call->attempt;
    draft->actor = work->event->actor;
    return draft;
}

static pawl_status decide_call_start(struct work *work)
{
    const struct code_attempt *call = &work->memory->call;
    struct draft *draft;

    if (call->ordinal != work->event->ordinal || call->status != STEP_READY)
        return scope_fail(work->scope, PAWL_LEASE_LOST, "attempt %u is not ready",
                          work->event->ordinal);
    draft = draft_attempt(work, LIFE_T_STEP_START);
    if (!draft)
        return scope_no_memory(work->scope);
    return add(work, &draft->effects,
               (struct effect){ .kind = EFFECT_RUN, .ordinal = call->ordinal });
}

/* It ran in a process that died. Nothing was wrong with it: another attempt, with the same key. */
static pawl_status decide_call_lost(struct work *work)
{
    const struct code_attempt *call = &work->memory->call;
    struct draft *draft = draft_attempt(work, LIFE_T_STEP_FAIL);
    pawl_status status;

    if (!draft)
        return scope_no_memory(work->scope);
    draft->payload = STR("\"lost\"");
    status = add(work, &draft->effects,
                 (struct effect){ .kind = EFFECT_END, .ordinal = call->ordinal, .is_bare = true });
    return status == PAWL_OK ? add(work, &draft->effects,
                                   (struct effect){ .kind = EFFECT_STEP,
                                                    .ordinal = work->memory->ordinals + 1,
                                                    .plan = call->plan,
                                                    .attempt = call->attempt + 1,
                                                    .status = STEP_READY })
                             : status;
}

static pawl_status check_call(struct work *work)
{
    const struct code_attempt *call = &work->memory->call;

    if (call->ordinal == 0 || call->ordinal != work->event->ordinal)
        return scope_fail(work->scope, PAWL_LEASE_LOST, "attempt %u is over", work->event->ordinal);
    if (call->status == STEP_PENDING) /* external: ended from where it waits */
        return PAWL_OK;
    if (call->status != STEP_RUNNING)
        return scope_fail(work->scope, PAWL_LEASE_LOST, "attempt %u is not being worked on",
                          call->ordinal);
    return work->event->is_leased || work->event->kind == EVENT_STEP_LOST ||
                   work->event->kind == EVENT_STEP_TIMEOUT
               ? PAWL_OK
               : scope_fail(work->scope, PAWL_INVALID_REQUEST,
                            "lease: missing; only an external step is ended without one");
}

static pawl_status decide_call_end(struct work *work)
{
    struct cause cause = { .transition = LIFE_T_STEP_COMPLETE,
                           .kind = PAWL_EVENT_CALL,
                           .name = code_step_name(work->definition, work->memory->call.plan),
                           .payload = work->event->payload,
                           .attempt = &work->memory->call };
    pawl_status status = check_call(work);

    if (status != PAWL_OK)
        return status;
    if (work->event->kind == EVENT_STEP_LOST)
        return decide_call_lost(work);
    if (work->event->kind != EVENT_STEP_DONE)
        cause.kind = PAWL_EVENT_CALL_FAILED;
    if (work->event->kind == EVENT_STEP_FAILED)
        cause.transition = LIFE_T_STEP_FAIL;
    if (work->event->kind == EVENT_STEP_TIMEOUT) {
        cause.transition = LIFE_T_STEP_TIMEOUT;
        cause.payload = STR("\"timeout\"");
    }
    if (!cause.payload.data)
        cause.payload = STR("null");
    cause.recorded = cause.payload;
    return take_turn(work, &cause);
}

/* ---- The port --------------------------------------------------------------------------- */

static pawl_status decide_open(struct work *work)
{
    switch (work->event->kind) {
    case EVENT_START:
        return decide_start(work);
    case EVENT_TIMER:
    case EVENT_SIGNAL:
        return decide_wakeup(work);
    case EVENT_STEP_START:
        return decide_call_start(work);
    case EVENT_STEP_DONE:
    case EVENT_STEP_FAILED:
    case EVENT_STEP_LOST:
    case EVENT_STEP_TIMEOUT:
        return decide_call_end(work);
    case EVENT_UNKNOWN:
    case EVENT_FIRE:
    case EVENT_CANCEL:
    case EVENT_APPROVE:
    case EVENT_REJECT:
    case EVENT_CHILD:
    case EVENT_AMEND:
    case EVENT_STEP_SPOILED:
        break;
    }
    return scope_fail(work->scope, PAWL_NOT_AWAITING, "a code instance has no gates");
}

static pawl_status decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out)
{
    struct work work = { .definition = definition,
                         .standing = standing,
                         .memory = standing->memory ? standing->memory : &nothing_yet,
                         .event = event,
                         .scope = scope };
    pawl_status status;

    if (event->kind == EVENT_FIRE)
        return fire_decide(definition, standing, event, scope, out);
    if (event->kind == EVENT_CANCEL)
        return fire_decide_cancel(definition, standing, event, scope, out);
    status = fire_check_open(definition, standing, scope);
    if (status == PAWL_OK)
        status = decide_open(&work);
    if (status == PAWL_OK)
        *out = work.decision;
    return status;
}

const struct behavior code_behavior = {
    .kind = KIND_CODE,
    .prepare = code_prepare,
    .decide = decide,
    .memory_new = code_memory_new,
    .apply = code_memory_apply,
    .restamp = code_memory_restamp,
    .memory_print = code_memory_print,
    .memory_load = code_memory_load,
};
