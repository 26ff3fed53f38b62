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

    if (memory->call.ordinal > 0)
        TRY(ADD_EFFECT(work, effects, .kind = EFFECT_END, .ordinal = memory->call.ordinal,
                       .is_bare = true));
    for (uint32_t i = 0; i < memory->timer_count && !PLANTED(LOSERS_STAY); i++)
        TRY(ADD_EFFECT(work, effects, .kind = EFFECT_DISARM, .name = memory->timers[i].name,
                       .ordinal =
                           str_eq(memory->timers[i].name, TIMER_AGAIN) ? memory->call.ordinal : 0));
    for (uint32_t i = 0; i < memory->signal_count; i++)
        if (!interest_is(memory->signals[i].name))
            TRY(ADD_EFFECT(work, effects, .kind = EFFECT_LEAVE, .name = memory->signals[i].name,
                           .state = memory->signals[i].value));
    return PAWL_OK;
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

pawl_status code_add_call(struct code_work *work, struct effect_list *effects)
{
    const struct code_plan *plan = code_work_plan(work);
    struct effect step = { .kind = EFFECT_STEP,
                           .ordinal = work->memory->ordinals + 1,
                           .attempt = 1 };

    if (!work->answer.call.data)
        return PAWL_OK;
    if (!plan_has(plan, code_called_kind(work), work->answer.call, &step.plan))
        return scope_fail(work->scope, PAWL_NOT_KNOWN,
                          "the instance was created by a version of code type '%.*s' that does not "
                          "declare '%.*s'; its events wait for a build that does without",
                          STR_ARG(plan->name), STR_ARG(work->answer.call));
    step.status = plan->steps[step.plan].kind == CODE_CALL ? STEP_READY : STEP_PENDING;
    TRY(effect_add(work->scope, effects, step));
    if (work->answer.is_spawn)
        return ADD_EFFECT(work, effects, .kind = EFFECT_SPAWN, .ordinal = step.ordinal,
                          .name = STR(""), .definition = work->answer.call,
                          .input = work->answer.args, .is_abandoned = work->answer.is_abandoned);
    return ADD_EFFECT(work, effects, .kind = EFFECT_CALL, .ordinal = step.ordinal,
                      .name = work->answer.key, .state = work->answer.args);
}

static pawl_status add_effects(struct code_work *work, struct effect_list *effects)
{
    TRY(add_spent(work, effects));
    TRY(add_state(work, effects));
    if (work->answer.end != TURN_FAILS)
        TRY(add_all(work, effects, &work->answer.reduces));
    if (work->answer.end != TURN_WAITS)
        return PAWL_OK;
    TRY(add_all(work, effects, &work->answer.timers));
    TRY(add_all(work, effects, &work->answer.signals));
    TRY(code_add_interests(work, effects));
    return code_add_call(work, effects);
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
                                    .from_version = from != to ? from : 0 };
    pawl_status status;

    request.may_have_event = work->event->may_have_event;
    request.is_strict = work->definition->compiler >= STRICT_COMPILER && !cause->is_kept && !cause->is_owed &&
                        (cause->kind == PAWL_EVENT_START || cause->kind == PAWL_EVENT_SIGNAL);
    if (cause->kind == PAWL_EVENT_START)
        request.from_version = 0;
    else
        request.declared = code_declared(work, binding);
    work->before = request.state;
    status = binding->run(binding, &request, work->scope, &work->answer);
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
    if (work->answer.end == TURN_HOLDS)
        return hold_turn(work, cause, hold_words(work));
    draft = draft_of(work, cause);
    TRY_MEMORY(work->scope, draft);
    draft->reason = work->answer.misfit;
    TRY(add_effects(work, &draft->effects));
    return add_end(work);
}

pawl_status code_owe_turn(struct code_work *work, const struct cause *cause, str reason)
{
    struct draft *draft = draft_of(work, cause);

    TRY_MEMORY(work->scope, draft);
    TRY(add_spent(work, &draft->effects));
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
