/* code_reduce.c - (memory, event) -> is it legal now, and its name -> one turn (effects.c). */
#include "base/limits.h"
#include "base/planted.h"
#include "code/code_int.h"
#include "model/fire.h"
#include "model/interest.h"
#include "model/words.h"

static const struct code_memory nothing_yet;

static pawl_status decide_start(struct code_work *work)
{
    if (work->standing->state != LIFE_CREATED)
        return scope_fail(work->scope, PAWL_NOT_AWAITING, "the instance has already started");
    return code_take_turn(work, &(struct cause){ .transition = LIFE_T_START,
                                                 .kind = PAWL_EVENT_START,
                                                 .payload = work->event->payload,
                                                 .recorded = work->event->given });
}

static void list_names(const struct code_work *work, struct buf *out)
{
    const struct code_memory *memory = work->memory;

    for (uint32_t i = 0; work->event->kind == EVENT_TIMER && i < memory->timer_count; i++)
        buf_item(out, memory->timers[i].name);
    for (uint32_t i = 0; work->event->kind == EVENT_SIGNAL && i < memory->signal_count; i++)
        if (!interest_is(memory->signals[i].name))
            buf_item(out, memory->signals[i].name);
    if (out->size == 0)
        buf_str(out, STR("none"));
}

static pawl_status fail_not_awaiting(const struct code_work *work)
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
static bool is_early(const struct code_work *work)
{
    for (uint32_t i = 0; i < work->memory->timer_count; i++)
        if (str_eq(work->memory->timers[i].name, work->event->name) &&
            work->memory->timers[i].ordinal == work->event->ordinal)
            return work->memory->timers[i].due_at_ms > work->event->at_ms &&
                   work->memory->timers[i].due_at_ms != work->event->due_at_ms &&
                   !work->event->is_forced && !PLANTED(TIMER_TWICE);
    return false;
}

/* Does the payload fit? Its sender still waits for an answer. A program that cannot ask the handler
 * keeps it. */
static pawl_status check_kept(struct code_work *work, str payload)
{
    const struct code_binding *binding = work->binding;
    struct turn_request request = { .kind = PAWL_EVENT_SIGNAL,
                                    .name = work->event->name,
                                    .payload = payload,
                                    .at_ms = work->event->at_ms,
                                    .is_strict = work->definition->compiler >= STRICT_COMPILER,
                                    .is_check = true };
    pawl_status status =
        binding ? binding->run(binding, &request, work->scope, &work->answer) : PAWL_OK;

    if (status == PAWL_INVALID_REQUEST || status == PAWL_NO_MEMORY)
        return status;
    work->scope->error = (pawl_error){ .status = PAWL_OK };
    return PAWL_OK;
}

/* No entry: it waits until the code awaits it. */
static pawl_status keep_signal(struct code_work *work)
{
    str payload = work->event->payload.data ? work->event->payload : STR("null");
    struct draft *draft;

    TRY(check_kept(work, payload));
    TRY(kept_check_room(work->scope, work->memory->kept, work->memory->kept_count, payload));
    draft = decision_add(work->scope, &work->decision, LIFE_T_SIGNAL);
    TRY_MEMORY(work->scope, draft);
    draft->keep = work->event->name;
    draft->payload = payload;
    draft->actor = work->event->actor;
    return PAWL_OK;
}

/* The turn for an event that is recorded already. It cannot be refused any more: where its payload
 * does not fit this build, the instance is held as for any mistake. */
static pawl_status decide_owed(struct code_work *work)
{
    static const struct code_owed none;
    const struct code_owed *owed = work->memory->owed_count > 0 ? work->memory->owed : &none;
    bool is_child = owed->kind == PAWL_EVENT_CHILD || owed->kind == PAWL_EVENT_CHILD_FAILED;
    struct cause cause = { .transition = LIFE_T_TIMER,
                           .kind = owed->kind,
                           .name = { owed->name.data, owed->name.size },
                           .payload = { owed->payload.data, owed->payload.size },
                           .recorded = STR("{\"timer\":\"~turn\"}"),
                           .is_owed = true };
    pawl_error words;
    pawl_status status;

    if (owed == &none)
        return code_fail_entry(work->scope, "owes a turn for no event");
    if (is_child && owed->child[0])
        cause.child_id = str_of(owed->child);
    if (owed->kind == PAWL_EVENT_START)
        cause.name = STR_NONE;
    status = code_take_turn(work, &cause);
    words = work->scope->error;
    return status == PAWL_INVALID_REQUEST
               ? scope_fail(work->scope, PAWL_PAUSED, "%.400s; correct the code, then resume",
                            words.message)
               : status;
}

static bool owes_turn(const struct code_work *work)
{
    return code_memory_has_timer(work->memory, TIMER_TURN);
}

/* What came while the instance was held: an answer, or signals that were kept though they were
 * awaited (code_take_kept() takes those). */
static pawl_status decide_resumed(struct code_work *work)
{
    if (owes_turn(work))
        return decide_owed(work);
    return code_memory_kept(work->memory) ? PAWL_OK : fail_not_awaiting(work);
}

static bool awaits_event(const struct code_work *work)
{
    if (work->event->kind == EVENT_TIMER && str_eq(work->event->name, TIMER_AGAIN))
        return code_memory_is_retried(work->memory, work->event->ordinal);
    return work->event->kind == EVENT_TIMER
               ? code_memory_has_timer(work->memory, work->event->name)
               : code_memory_has_signal(work->memory, work->event->name) &&
                     code_memory_subscribes(work->memory, work->event);
}

static pawl_status decide_wakeup(struct code_work *work)
{
    bool is_timer = work->event->kind == EVENT_TIMER;
    bool awaited = awaits_event(work);
    struct cause cause = { .transition = is_timer ? LIFE_T_TIMER : LIFE_T_SIGNAL,
                           .kind = is_timer ? PAWL_EVENT_TIMER : PAWL_EVENT_SIGNAL,
                           .name = work->event->name,
                           .payload = work->event->payload };
    const struct code_plan *plan = plan_in_force(work->definition, work->memory);
    bool may_keep = !is_timer && plan_keeps_signal(plan, work->event->name) &&
                    code_memory_subscribes(work->memory, work->event);

    if (!is_timer && work->event->is_held && !may_keep)
        return scope_fail(work->scope, PAWL_PAUSED, PAUSED_WORDS);
    if (may_keep && (!awaited || work->event->is_held || !work->binding))
        return keep_signal(work);
    if (!awaited || (is_timer && is_early(work)))
        return fail_not_awaiting(work);
    if (is_timer && str_eq(work->event->name, TIMER_TURN))
        return decide_owed(work);
    if (is_timer && str_eq(work->event->name, TIMER_AGAIN))
        return code_retry_now(work);
    TRY(code_print_payload(work, &cause.recorded));
    return code_take_turn(work, &cause);
}

/* ---- Calls ------------------------------------------------------------------------------ */

const struct code_attempt *code_attempt_of(const struct code_work *work)
{
    static const struct code_attempt none;
    const struct code_attempt *call = code_memory_call(work->memory, work->event->ordinal);

    return call ? call : &none;
}

/* A draft of an attempt that needs no turn: it is started, or it is tried again. */
struct draft *code_draft_attempt(struct code_work *work, uint32_t transition)
{
    const struct code_attempt *call = code_attempt_of(work);
    struct draft *draft = decision_add(work->scope, &work->decision, transition);

    if (!draft)
        return NULL;
    draft->step = call->plan + 1;
    draft->ordinal = call->ordinal;
    draft->attempt = call->attempt;
    draft->actor = work->event->actor;
    return draft;
}

static pawl_status decide_call_start(struct code_work *work)
{
    const struct code_attempt *call = code_attempt_of(work);
    struct draft *draft;

    if (call->ordinal == 0 || call->status != STEP_READY)
        return scope_fail(work->scope, PAWL_LEASE_LOST, "attempt %u is not ready",
                          work->event->ordinal);
    draft = code_draft_attempt(work, LIFE_T_STEP_START);
    TRY_MEMORY(work->scope, draft);
    return ADD_EFFECT(work, &draft->effects, .kind = EFFECT_RUN, .ordinal = call->ordinal);
}

pawl_status code_add_attempt(struct code_work *work, struct draft *draft, enum step_status status)
{
    const struct code_attempt *call = code_attempt_of(work);

    TRY(ADD_EFFECT(work, &draft->effects, .kind = EFFECT_END, .ordinal = call->ordinal,
                   .is_bare = true));
    return ADD_EFFECT(work, &draft->effects, .kind = EFFECT_STEP,
                      .ordinal = work->memory->ordinals + 1, .plan = call->plan,
                      .attempt = call->attempt + 1, .status = status);
}

/* It ran in a process that died. Nothing was wrong with it: another attempt, with the same key. */
static pawl_status decide_call_lost(struct code_work *work)
{
    struct draft *draft = code_draft_attempt(work, LIFE_T_STEP_FAIL);

    TRY_MEMORY(work->scope, draft);
    draft->payload = STR("\"lost\"");
    return code_add_attempt(work, draft, STEP_READY);
}

/* Nothing of it is under way: the same attempt is ready again, with its key. */
static pawl_status decide_call_returned(struct code_work *work)
{
    struct draft *draft = code_draft_attempt(work, LIFE_T_STEP_RETRY);

    TRY_MEMORY(work->scope, draft);
    draft->reason = work->event->reason;
    return ADD_EFFECT(work, &draft->effects, .kind = EFFECT_READY, .ordinal = work->event->ordinal);
}

static pawl_status check_call(struct code_work *work)
{
    const struct code_attempt *call = code_attempt_of(work);

    if (call->ordinal == 0)
        return scope_fail(work->scope, PAWL_LEASE_LOST, "attempt %u is over", work->event->ordinal);
    if (call->status == STEP_PENDING && !code_memory_is_retried(work->memory, call->ordinal))
        return PAWL_OK; /* external: ended from where it waits */
    if (call->status != STEP_RUNNING)
        return scope_fail(work->scope, PAWL_LEASE_LOST, "attempt %u is not being worked on",
                          call->ordinal);
    return work->event->is_leased || work->event->kind == EVENT_STEP_LOST ||
                   work->event->kind == EVENT_STEP_TIMEOUT
               ? PAWL_OK
               : scope_fail(work->scope, PAWL_INVALID_REQUEST,
                            "lease: missing; only an external step is ended without one");
}

static pawl_status decide_call_end(struct code_work *work)
{
    const struct code_attempt *call = code_attempt_of(work);
    struct cause cause = { .transition = LIFE_T_STEP_COMPLETE,
                           .kind = PAWL_EVENT_CALL,
                           .name = code_step_name_now(work->definition, work->memory, call->plan),
                           .payload = work->event->payload,
                           .attempt = call };
    int64_t due_at_ms;
    bool is_again;

    TRY(check_call(work));
    if (work->event->kind == EVENT_STEP_LOST)
        return decide_call_lost(work);
    if (work->event->kind == EVENT_STEP_RETURNED)
        return decide_call_returned(work);
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
    TRY(code_retry_due(work, &cause, &is_again, &due_at_ms));
    if (is_again)
        return code_try_again(work, &cause, due_at_ms);
    return work->event->is_deferred || (work->event->is_held && !PLANTED(TURN_WHILE_HELD))
               ? code_owe_turn(work, &cause, STR_NONE)
               : code_take_turn(work, &cause);
}

/* ---- Children --------------------------------------------------------------------------- */

/* Of one that did not end well there is a note, with what it said, before the step fails. */
static pawl_status note_child(struct code_work *work, str error)
{
    struct draft *draft = code_draft_attempt(work, LIFE_T_CHILD);
    struct buf buf;

    TRY_MEMORY(work->scope, draft);
    draft->reason = work->event->reason;
    buf_init(&buf, work->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_put_text(&buf, "status", work->event->outcome == TERMINAL_CANCEL ? "cancelled" : "failed");
    if (work->event->outcome == TERMINAL_FAILURE)
        json_put_raw(&buf, "error", error);
    json_close(&buf, '}');
    draft->payload = buf_take(&buf, &work->scope->arena);
    return draft->payload.data ? PAWL_OK : scope_no_memory(work->scope);
}

static pawl_status decide_child(struct code_work *work)
{
    const struct code_attempt *call = code_attempt_of(work);
    enum terminal_kind outcome = work->event->outcome;
    struct cause cause = { .transition = LIFE_T_CHILD,
                           .kind = PAWL_EVENT_CHILD,
                           .name = code_step_name_now(work->definition, work->memory, call->plan),
                           .payload = work->event->payload,
                           .child_id = work->event->name,
                           .attempt = call };

    if (call->ordinal == 0 || !code_memory_spawns(work->definition, work->memory, call->plan))
        return scope_fail(work->scope, PAWL_NOT_AWAITING, "nothing waits for this child");
    if (!cause.payload.data)
        cause.payload = STR("null");
    if (outcome == TERMINAL_FAILURE || outcome == TERMINAL_CANCEL) {
        TRY(note_child(work, cause.payload));
        cause.transition = LIFE_T_STEP_FAIL;
        cause.kind = PAWL_EVENT_CHILD_FAILED;
        if (outcome == TERMINAL_CANCEL)
            cause.payload = STR("\"child-cancelled\"");
    }
    cause.recorded = cause.payload;
    return code_take_turn(work, &cause);
}

/* ---- The port --------------------------------------------------------------------------- */

/* It was resumed, or a type has a higher version now. */
static pawl_status decide_wake(struct code_work *work)
{
    if (work->event->is_held)
        return scope_fail(work->scope, PAWL_PAUSED, PAUSED_WORDS);
    if (work->event->poison.data && !owes_turn(work))
        return scope_fail(work->scope, PAWL_PAUSED, "%.*s; correct the code, then resume",
                          STR_ARG(work->event->poison));
    return work->is_renewed ? PAWL_OK : decide_resumed(work);
}

static pawl_status decide_open(struct code_work *work)
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
    case EVENT_STEP_RETURNED:
    case EVENT_STEP_TIMEOUT:
        return decide_call_end(work);
    case EVENT_CHILD:
        return decide_child(work);
    case EVENT_WAKE:
        return decide_wake(work);
    case EVENT_UNKNOWN:
    case EVENT_FIRE:
    case EVENT_CANCEL:
    case EVENT_APPROVE:
    case EVENT_REJECT:
    case EVENT_AMEND:
    case EVENT_STEP_SPOILED:
        break;
    }
    return scope_fail(work->scope, PAWL_NOT_AWAITING, "a code instance has no gates");
}

static bool is_answer(enum event_kind kind)
{
    return kind == EVENT_STEP_START || kind == EVENT_STEP_DONE || kind == EVENT_STEP_FAILED ||
           kind == EVENT_STEP_LOST || kind == EVENT_STEP_RETURNED || kind == EVENT_STEP_TIMEOUT;
}

/* A worker that answers a call of an ended instance has lost its lease. */
static pawl_status check_open(const struct code_work *work)
{
    pawl_status status = fire_check_open(work->definition, work->standing, work->scope);

    if (status != PAWL_TERMINAL || !is_answer(work->event->kind))
        return status;
    return scope_fail(work->scope, PAWL_LEASE_LOST, "attempt %u is over, and so is its instance",
                      work->event->ordinal);
}

/* Does the event run the code? The start of a call does not. */
static bool may_renew(const struct event *event)
{
    enum event_kind kind = event->kind;

    if (event->is_deferred)
        return false;
    return kind == EVENT_TIMER || kind == EVENT_SIGNAL || kind == EVENT_STEP_DONE ||
           kind == EVENT_STEP_FAILED || kind == EVENT_STEP_TIMEOUT || kind == EVENT_CHILD ||
           kind == EVENT_WAKE;
}

static pawl_status decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out)
{
    struct code_work work = { .definition = definition,
                              .binding = plan_of(definition)->binding,
                              .standing = standing,
                              .memory = standing->memory ? standing->memory : &nothing_yet,
                              .event = event,
                              .scope = scope };

    if (event->kind == EVENT_FIRE)
        return fire_decide(definition, standing, event, scope, out);
    if (event->kind == EVENT_CANCEL)
        return fire_decide_cancel(definition, standing, event, scope, out);
    TRY(check_open(&work));
    if (may_renew(event) && code_is_renewal_due(&work))
        TRY(code_renew(&work));
    TRY(decide_open(&work));
    TRY(code_take_kept(&work));
    *out = work.decision;
    return PAWL_OK;
}

const struct behavior code_behavior = {
    .kind = KIND_CODE,
    .prepare = code_prepare,
    .decide = decide,
    .memory_new = code_memory_new,
    .introduce = code_introduce,
    .live_steps = code_live_steps,
    .apply = code_memory_apply,
    .restamp = code_memory_restamp,
    .keep = code_memory_keep,
    .has_kept = code_has_kept,
    .memory_print = code_memory_print,
    .memory_load = code_memory_load,
};
