/* reduce.c - (memory, event) -> one turn of the handler -> drafts of entries.
 *
 * The entry of the event comes first and carries all that the turn changed; the end, if the
 * turn ended, is a second entry of the same commit. */
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
    struct pawl_turn turn;
    str state; /* the variables after the turn; data NULL: they cannot be printed */
    struct decision decision;
};

static pawl_status fail_no_handler(const struct work *work)
{
    str name = code_name(work->definition, work->scope);

    return scope_fail(work->scope, PAWL_NOT_KNOWN,
                      "no handler registered for code type '%.*s' in this program", STR_ARG(name));
}

static pawl_event_kind handler_kind(enum event_kind kind)
{
    return kind == EVENT_TIMER    ? PAWL_EVENT_TIMER
           : kind == EVENT_SIGNAL ? PAWL_EVENT_SIGNAL
                                  : PAWL_EVENT_START;
}

/* Call the handler on a fresh, zeroed, aligned copy of the variables. */
static pawl_status run_handler(struct work *work)
{
    const pawl_code_type *type = work->turn.type;
    struct arena *arena = &work->scope->arena;
    void *state = arena_alloc(arena, type->state_size);
    pawl_event event = { .kind = handler_kind(work->event->kind), .at_ms = work->event->at_ms };
    pawl_status status;

    event.name = work->event->name.data ? arena_text(arena, work->event->name) : NULL;
    event.payload = work->event->payload.data ? arena_text(arena, work->event->payload) : "null";
    if (arena->failed)
        return scope_no_memory(work->scope);
    status = state_load(work->scope, type, code_memory_state(work->memory), state);
    if (status != PAWL_OK)
        return status;
    type->handle(type->context, &work->turn, state, &event);
    state_print(&work->turn, state, &work->state);
    return turn_settle(&work->turn);
}

/* The first of several waits wins and takes the others with it (E11, E12). */
static pawl_status add_spent(struct work *work, struct effect_list *effects)
{
    const struct code_memory *memory = work->memory;
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < memory->timer_count && status == PAWL_OK; i++)
        status =
            effect_add(work->scope, effects,
                       (struct effect){ .kind = EFFECT_DISARM, .name = memory->timers[i].name });
    for (uint32_t i = 0; i < memory->signal_count && status == PAWL_OK; i++)
        status = effect_add(work->scope, effects,
                            (struct effect){ .kind = EFFECT_LEAVE, .name = memory->signals[i] });
    return status;
}

static pawl_status add_state(struct work *work, struct effect_list *effects)
{
    str before = code_memory_state(work->memory);

    if (!work->state.data || (before.data && str_eq(before, work->state)))
        return PAWL_OK;
    return effect_add(work->scope, effects,
                      (struct effect){ .kind = EFFECT_STATE, .state = work->state });
}

static pawl_status add_waits(struct work *work, struct effect_list *effects,
                             const struct effect_list *waits)
{
    pawl_status status = PAWL_OK;

    if (work->turn.end != TURN_WAITS)
        return PAWL_OK;
    for (uint32_t i = 0; i < waits->count && status == PAWL_OK; i++)
        status = effect_add(work->scope, effects, waits->items[i]);
    return status;
}

static pawl_status add_effects(struct work *work, struct effect_list *effects)
{
    pawl_status status = add_spent(work, effects);

    if (status == PAWL_OK)
        status = add_state(work, effects);
    if (status == PAWL_OK)
        status = add_waits(work, effects, &work->turn.timers);
    if (status == PAWL_OK)
        status = add_waits(work, effects, &work->turn.signals);
    return status;
}

static pawl_status add_end(struct work *work)
{
    uint32_t transition = work->turn.end == TURN_COMPLETES ? LIFE_T_FINISH : LIFE_T_FAIL;
    struct draft *draft;

    if (work->turn.end == TURN_WAITS)
        return PAWL_OK;
    draft = decision_add(work->scope, &work->decision, transition);
    if (!draft)
        return scope_no_memory(work->scope);
    draft->payload = work->turn.value;
    return PAWL_OK;
}

/* One turn, recorded by an entry of `transition` with `payload`. */
static pawl_status take_turn(struct work *work, uint32_t transition, str payload)
{
    pawl_status status;
    struct draft *draft;

    if (!work->definition->plan)
        return fail_no_handler(work);
    work->turn = (struct pawl_turn){ .scope = work->scope,
                                     .type = work->definition->plan,
                                     .at_ms = work->event->at_ms };
    status = run_handler(work);
    if (status != PAWL_OK)
        return status;
    draft = decision_add(work->scope, &work->decision, transition);
    if (!draft)
        return scope_no_memory(work->scope);
    draft->payload = payload;
    draft->actor = work->event->actor;
    status = add_effects(work, &draft->effects);
    return status == PAWL_OK ? add_end(work) : status;
}

static pawl_status decide_start(struct work *work)
{
    if (work->standing->state != LIFE_CREATED)
        return scope_fail(work->scope, PAWL_NOT_AWAITING, "the instance has already started");
    return take_turn(work, LIFE_T_START, STR_NONE);
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
    pawl_status status;
    str payload;

    if (!awaited || (is_timer && is_early(work)))
        return fail_not_awaiting(work);
    status = print_payload(work, &payload);
    if (status != PAWL_OK)
        return status;
    return take_turn(work, is_timer ? LIFE_T_TIMER : LIFE_T_SIGNAL, payload);
}

static pawl_status decide_turn(struct work *work, struct decision *out)
{
    pawl_status status = fire_check_open(work->definition, work->standing, work->scope);

    if (status == PAWL_OK)
        status = work->event->kind == EVENT_START ? decide_start(work) : decide_wakeup(work);
    if (status == PAWL_OK)
        *out = work->decision;
    return status;
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

    switch (event->kind) {
    case EVENT_START:
    case EVENT_TIMER:
    case EVENT_SIGNAL:
        return decide_turn(&work, out);
    case EVENT_FIRE:
        return fire_decide(definition, standing, event, scope, out);
    case EVENT_CANCEL:
        return fire_decide_cancel(definition, standing, event, scope, out);
    case EVENT_UNKNOWN:
    case EVENT_STEP_START:
    case EVENT_STEP_DONE:
    case EVENT_STEP_FAILED:
    case EVENT_STEP_LOST:
    case EVENT_STEP_SPOILED:
    case EVENT_STEP_TIMEOUT:
    case EVENT_APPROVE:
    case EVENT_REJECT:
    case EVENT_CHILD:
    case EVENT_AMEND:
        break;
    }
    status = fire_check_open(definition, standing, scope);
    return status != PAWL_OK ? status
                             : scope_fail(scope, PAWL_NOT_AWAITING, "a code instance has no steps");
}

const struct behavior code_behavior = {
    .kind = KIND_CODE,
    .decide = decide,
    .memory_new = code_memory_new,
    .apply = code_memory_apply,
    .restamp = code_memory_restamp,
    .memory_print = code_memory_print,
    .memory_load = code_memory_load,
};
