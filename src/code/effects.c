/* effects.c - one turn becomes drafts of entries.
 *
 * The entry of the event comes first and carries all that the turn changed; the end, if the
 * turn ended, is a second entry of the same commit. A state that another version wrote is migrated
 * by an entry before both. */
#include "base/limits.h"
#include "base/planted.h"
#include "code/code_int.h"
#include "model/interest.h"
#include "model/words.h"

static pawl_status fail_no_handler(const struct code_work *work)
{
    return scope_fail(work->scope, PAWL_NOT_KNOWN,
                      "no handler registered for code type '%.*s' in this program",
                      STR_ARG(words_shown(plan_of(work->definition)->name)));
}

/* The first of several waits wins and takes the others with it (E11, E12). */
static pawl_status add_spent(struct code_work *work, struct effect_list *effects)
{
    const struct code_memory *memory = work->memory;

    for (uint32_t i = 0; i < memory->call_count; i++)
        TRY(ADD_EFFECT(work, effects, .kind = EFFECT_END, .ordinal = memory->calls[i].ordinal,
                       .is_bare = true));
    for (uint32_t i = 0; i < memory->timer_count && !PLANTED(LOSERS_STAY); i++)
        TRY(ADD_EFFECT(work, effects, .kind = EFFECT_DISARM, .name = memory->timers[i].name,
                       .ordinal = memory->timers[i].ordinal));
    for (uint32_t i = 0; i < memory->signal_count; i++)
        if (!interest_is(memory->signals[i].name))
            TRY(ADD_EFFECT(work, effects, .kind = EFFECT_LEAVE, .name = memory->signals[i].name,
                           .state = memory->signals[i].value));
    return PAWL_OK;
}

/* ---- A turn that keeps what it does not name ---- */

static pawl_status end_call(struct code_work *work, const struct code_attempt *call,
                            struct effect_list *effects)
{
    TRY(ADD_EFFECT(work, effects, .kind = EFFECT_END, .ordinal = call->ordinal, .is_bare = true));
    if (code_memory_is_retried(work->memory, call->ordinal))
        return ADD_EFFECT(work, effects, .kind = EFFECT_DISARM, .name = TIMER_AGAIN,
                          .ordinal = call->ordinal);
    return PAWL_OK;
}

/* What the event was for is over. */
static pawl_status spend_cause(struct code_work *work, const struct cause *cause,
                               struct effect_list *effects)
{
    if (cause->is_owed)
        return ADD_EFFECT(work, effects, .kind = EFFECT_DISARM, .name = TIMER_TURN);
    if (cause->attempt)
        return end_call(work, cause->attempt, effects);
    if (cause->kind == PAWL_EVENT_TIMER)
        return ADD_EFFECT(work, effects, .kind = EFFECT_DISARM, .name = cause->name);
    if (cause->kind == PAWL_EVENT_SIGNAL)
        return ADD_EFFECT(work, effects, .kind = EFFECT_LEAVE, .name = cause->name);
    return PAWL_OK;
}

static pawl_status drop_call(struct code_work *work, uint32_t number, struct effect_list *effects)
{
    const struct code_memory *memory = work->memory;

    for (uint32_t i = 0; i < memory->call_count; i++)
        if (memory->calls[i].number == number)
            return end_call(work, &memory->calls[i], effects);
    return PAWL_OK; /* it has ended meanwhile */
}

static pawl_status add_dropped(struct code_work *work, struct effect_list *effects)
{
    const struct effect_list *dropped = &work->answer.dropped;

    for (uint32_t i = 0; i < dropped->count; i++) {
        const struct effect *effect = &dropped->items[i];
        bool is_there = effect->kind == EFFECT_DISARM
                            ? code_memory_has_timer(work->memory, effect->name)
                            : code_memory_has_signal(work->memory, effect->name);

        if (effect->kind == EFFECT_END)
            TRY(drop_call(work, effect->ordinal, effects));
        else if (is_there)
            TRY(effect_add(work->scope, effects, *effect));
    }
    return PAWL_OK;
}

static pawl_status add_over(struct code_work *work, const struct cause *cause,
                            struct effect_list *effects)
{
    if (!work->answer.keeps || work->answer.end != TURN_WAITS)
        return add_spent(work, effects);
    TRY(spend_cause(work, cause, effects));
    if (cause->is_owed && !plan_in_force(work->definition, work->memory)->is_replayed &&
        work->memory->owed_count > 1) /* other answers came while it was held */
        TRY(ADD_EFFECT(work, effects, .kind = EFFECT_ARM, .name = TIMER_TURN,
                       .due_at_ms = work->event->at_ms));
    return add_dropped(work, effects);
}

/* ---- What the turn left and began ---- */

static pawl_status add_note(struct code_work *work, struct effect_list *effects)
{
    return work->answer.note.data
               ? ADD_EFFECT(work, effects, .kind = EFFECT_NOTE, .state = work->answer.note)
               : PAWL_OK;
}

static pawl_status add_state(struct code_work *work, struct effect_list *effects)
{
    if (!work->answer.state.data || (work->before.data && str_eq(work->before, work->answer.state)))
        return PAWL_OK;
    return ADD_EFFECT(work, effects, .kind = EFFECT_STATE, .state = work->answer.state);
}

static pawl_status add_all(struct code_work *work, struct effect_list *effects,
                           const struct effect_list *waits)
{
    for (uint32_t i = 0; i < waits->count; i++)
        TRY(effect_add(work->scope, effects, waits->items[i]));
    return PAWL_OK;
}

static pawl_status add_call(struct code_work *work, const struct turn_call *call, uint32_t ordinal,
                            struct effect_list *effects)
{
    const struct code_plan *plan = code_work_plan(work);
    struct effect step = { .kind = EFFECT_STEP, .ordinal = ordinal, .attempt = 1 };

    if (!plan_has(plan, code_called_kind(work, call), call->name, &step.plan))
        return scope_fail(work->scope, PAWL_NOT_KNOWN,
                          "the instance was created by a version of code type '%.*s' that does not "
                          "declare '%.*s'; its events wait for a build that does without",
                          STR_ARG(plan->name), STR_ARG(call->name));
    step.status = plan->steps[step.plan].kind == CODE_CALL ? STEP_READY : STEP_PENDING;
    TRY(effect_add(work->scope, effects, step));
    if (call->is_spawn)
        return ADD_EFFECT(work, effects, .kind = EFFECT_SPAWN, .ordinal = step.ordinal,
                          .name = STR(""), .definition = call->name, .input = call->args,
                          .is_abandoned = call->is_abandoned);
    return ADD_EFFECT(work, effects, .kind = EFFECT_CALL, .ordinal = step.ordinal,
                      .name = call->key, .state = call->args);
}

pawl_status code_add_calls(struct code_work *work, struct effect_list *effects)
{
    for (uint32_t i = 0; i < work->answer.call_count; i++)
        TRY(add_call(work, &work->answer.calls[i], work->memory->ordinals + 1 + i, effects));
    return PAWL_OK;
}

static pawl_status add_effects(struct code_work *work, const struct cause *cause,
                               struct effect_list *effects)
{
    TRY(add_over(work, cause, effects));
    TRY(add_state(work, effects));
    TRY(add_note(work, effects));
    if (work->answer.end != TURN_FAILS)
        TRY(add_all(work, effects, &work->answer.reduces));
    TRY(add_all(work, effects, &work->answer.sends));
    if (work->answer.end != TURN_WAITS)
        return PAWL_OK;
    TRY(add_all(work, effects, &work->answer.timers));
    TRY(add_all(work, effects, &work->answer.signals));
    TRY(code_add_interests(work, effects));
    return code_add_calls(work, effects);
}

static pawl_status add_end(struct code_work *work)
{
    uint32_t transition = work->answer.end == TURN_COMPLETES ? LIFE_T_FINISH : LIFE_T_FAIL;
    struct draft *draft;

    if (work->answer.end == TURN_WAITS)
        return PAWL_OK;
    draft = decision_add(work->scope, &work->decision, transition);
    TRY_MEMORY(work->scope, draft);
    draft->payload = work->answer.value;
    return PAWL_OK;
}

/* How an instance keeps what it knows is settled when it is created. */
static pawl_status check_replay(const struct code_work *work, const struct code_binding *binding)
{
    bool is_replayed = plan_in_force(work->definition, work->memory)->is_replayed;

    if (binding->is_replayed == is_replayed)
        return PAWL_OK;
    return scope_fail(
        work->scope, PAWL_NOT_KNOWN,
        "the instance was created by code that %s, and '%s' in this program %s; run "
        "it with the code it was created by, or start it again by this one",
        is_replayed ? "is replayed from its journal" : "keeps its variables", binding->type->name,
        binding->is_replayed ? "is replayed from its journal" : "keeps its variables");
}

static pawl_status ask_replayed(struct code_work *work, const struct code_binding *binding,
                                const struct cause *cause, struct turn_request *request)
{
    struct turn_journal journal;

    request->from_version = 0;
    request->declared = STR_NONE;
    TRY(journal_request(work, cause, &journal));
    request->journal = &journal;
    TRY(binding->run(binding, request, work->scope, &work->answer));
    request->journal = NULL;
    return PAWL_OK;
}

static uint32_t number_of(const struct code_work *work, const struct cause *cause)
{
    return cause->is_owed   ? work->memory->owed[0].call
           : cause->attempt ? cause->attempt->number
                            : 0;
}

static pawl_status run_handler(struct code_work *work, const struct code_binding *binding,
                               const struct cause *cause)
{
    uint32_t from = code_state_version(work), to = code_type_version(binding);
    struct turn_request request = { .kind = cause->kind,
                                    .name = cause->name,
                                    .payload = cause->payload,
                                    .child_id = cause->child_id,
                                    .at_ms = work->event->at_ms,
                                    .state = code_memory_state(work->memory),
                                    .from_version = from != to ? from : 0,
                                    .call = number_of(work, cause),
                                    .first_call = work->memory->first_call };
    pawl_status status;

    TRY(check_replay(work, binding));
    request.open_calls = work->memory->call_count - (cause->attempt && !cause->is_owed ? 1u : 0u) +
                         (cause->is_owed ? work->memory->owed_count - 1 : 0);

    request.may_have_event = work->event->may_have_event;
    request.is_strict = work->definition->compiler >= STRICT_COMPILER && !cause->is_kept && !cause->is_owed &&
                        (cause->kind == PAWL_EVENT_START || cause->kind == PAWL_EVENT_SIGNAL);
    if (cause->kind == PAWL_EVENT_START)
        request.from_version = 0;
    else
        request.declared = code_declared(work, binding);
    work->before = request.state;
    status = binding->is_replayed ? ask_replayed(work, binding, cause, &request)
                                  : binding->run(binding, &request, work->scope, &work->answer);
    return status == PAWL_OK && work->answer.end != TURN_HOLDS
               ? code_add_amend(work, binding, to)
               : status;
}

/* {"retry_of":ID}: the instance runs another one again, from its beginning. */
static bool add_redrive(struct code_work *work, struct draft *draft)
{
    struct node *root = NULL;
    const struct node *id = NULL;

    if (node_read_json(work->scope, work->event->given, &root) == PAWL_OK)
        id = node_find(root, "retry_of");
    return id && id->kind == NODE_STRING &&
           ADD_EFFECT(work, &draft->effects, .kind = EFFECT_REDRIVE, .name = id->text) == PAWL_OK;
}

static struct draft *draft_of(struct code_work *work, const struct cause *cause)
{
    struct draft *draft = decision_add(work->scope, &work->decision, cause->transition);

    if (!draft || (work->event->given.data && !add_redrive(work, draft)))
        return NULL;
    draft->payload = cause->recorded;
    draft->actor = work->event->actor;
    if (cause->attempt) {
        draft->step = cause->attempt->plan + 1;
        draft->ordinal = cause->attempt->ordinal;
        draft->attempt = cause->attempt->attempt;
    }
    return draft;
}

/* What `pawl show`, `why`, `list` and the history print. */
static str hold_words(struct code_work *work)
{
    struct buf buf;

    buf_init(&buf, work->scope->arena.heap, LIMIT_TEXT);
    buf_fmt(&buf, "the code of '%.*s' cannot go on: %.*s; correct it, then resume",
            STR_ARG(words_shown(plan_of(work->definition)->name)), STR_ARG(work->answer.problem));
    return buf_take(&buf, &work->scope->arena);
}

/* The turn is invalid, by a mistake of its author. The event is recorded with the reason, its turn
 * is owed, and the instance is paused, all in one commit. Where the turn was owed already, only the
 * pause is new. */
static pawl_status hold_turn(struct code_work *work, const struct cause *cause, str words)
{
    TRY_MEMORY(work->scope, words.data);
    if (cause->is_owed)
        return scope_fail(work->scope, PAWL_PAUSED, "%.*s", STR_ARG(words));
    work->scope->error = (pawl_error){ .status = PAWL_OK };
    work->decision.hold = words;
    return code_owe_turn(work, cause, words);
}

/* Is anything left that could wake it? What the event was for is over. */
static bool waits_for_something(const struct code_work *work, const struct cause *cause)
{
    const struct code_memory *memory = work->memory;
    const struct turn_answer *answer = &work->answer;
    uint32_t left = memory->call_count + memory->timer_count, gone = answer->dropped.count;

    for (uint32_t i = 0; i < memory->signal_count; i++)
        left += !interest_is(memory->signals[i].name);
    gone += cause->kind != PAWL_EVENT_START || cause->is_owed;
    return answer->timers.count + answer->signals.count + answer->call_count > 0 ||
           (answer->keeps && left > gone);
}

/* The process of a module is not trusted to say what a turn may say. */
static bool may_send(const struct turn_answer *answer)
{
    for (uint32_t i = 0; i < answer->sends.count; i++)
        if (!str_is(answer->sends.items[i].name, "instance.create") &&
            !str_is(answer->sends.items[i].name, "signal.send"))
            return false;
    return true;
}

static void check_answer(struct code_work *work, const struct cause *cause)
{
    struct turn_answer *answer = &work->answer;

    if (!may_send(answer))
        *answer = (struct turn_answer){
            .end = TURN_HOLDS,
            .problem = STR("the code ordered an operation other than instance.create and "
                           "signal.send")
        };
    if (answer->end == TURN_WAITS && !waits_for_something(work, cause))
        *answer = (struct turn_answer){ .end = TURN_HOLDS,
                                        .problem = STR("the code neither waited nor ended") };
}

/* One turn, recorded as its cause says. */
pawl_status code_take_turn(struct code_work *work, const struct cause *cause)
{
    const struct code_binding *binding = work->binding;
    pawl_status status;
    struct draft *draft;

    if (work->event->failure.data) { /* the turn was taken, and could not be committed */
        work->answer = (struct turn_answer){ .end = TURN_FAILS, .value = work->event->failure };
        status = PAWL_OK;
    } else if (work->event->poison.data) {
        work->answer = (struct turn_answer){ .end = TURN_HOLDS, .problem = work->event->poison };
        status = PAWL_OK;
    } else {
        status = binding ? run_handler(work, binding, cause) : fail_no_handler(work);
    }
    /* Its process ended, and it has no sender that can be refused. */
    if (status == PAWL_PAUSED &&
        (cause->is_kept || (cause->kind != PAWL_EVENT_START && cause->kind != PAWL_EVENT_SIGNAL)))
        return hold_turn(work, cause,
                         arena_str(&work->scope->arena, str_of(work->scope->error.message)));
    if (status != PAWL_OK)
        return status;
    check_answer(work, cause);
    if (work->answer.end == TURN_HOLDS)
        return hold_turn(work, cause, hold_words(work));
    draft = draft_of(work, cause);
    TRY_MEMORY(work->scope, draft);
    draft->reason = work->answer.misfit;
    TRY(add_effects(work, cause, &draft->effects));
    return add_end(work);
}

pawl_status code_owe_turn(struct code_work *work, const struct cause *cause, str reason)
{
    bool keeps = plan_in_force(work->definition, work->memory)->is_replayed ||
                 work->memory->call_count > 1 || work->memory->owed_count > 0;
    struct draft *draft = draft_of(work, cause);

    TRY_MEMORY(work->scope, draft);
    TRY(keeps ? spend_cause(work, cause, &draft->effects) : add_spent(work, &draft->effects));
    draft->reason = reason;
    return ADD_EFFECT(work, &draft->effects, .kind = EFFECT_ARM, .name = TIMER_TURN,
                      .due_at_ms = work->event->at_ms);
}

/* {"timer":NAME}, or {"signal":NAME,"payload":VALUE} with the value byte for byte. */
pawl_status code_print_payload(struct code_work *work, str *out)
{
    bool is_signal = work->event->kind == EVENT_SIGNAL;
    struct buf buf;

    buf_init(&buf, work->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_key(&buf, is_signal ? "signal" : "timer");
    json_str(&buf, work->event->name);
    if (is_signal)
        json_put_raw(&buf, "payload", work->event->payload);
    json_close(&buf, '}');
    *out = buf_take(&buf, &work->scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(work->scope);
}
