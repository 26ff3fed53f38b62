/* run_turn.c - one turn of a handler in this process: texts in, texts out. */
#include "base/limits.h"
#include "base/planted.h"
#include "code/code_int.h"
#include "model/words.h"

struct run {
    const pawl_code_type *type;
    const struct turn_request *request;
    struct scope *scope;
    pawl_event event;
    struct pawl_turn turn;
    void *state, *value;
    struct stored stored; /* the state, read */
    str phase;
};

static enum var_shape shape_of(const struct turn_request *request)
{
    return !request->is_strict         ? SHAPE_ANSWER
           : request->may_have_event ? SHAPE_STARTED
                                     : SHAPE_SENT;
}

/* The answer is recorded, so it cannot be refused: one that is not as the type declares it is an
 * error of its call. */
static pawl_status take_misfit(struct run *run)
{
    struct turn_answer *answer = run->turn.answer;
    struct arena *arena = &run->scope->arena;

    answer->misfit = arena_str(arena, str_of(run->scope->error.message));
    run->scope->error = (pawl_error){ .status = PAWL_OK };
    run->event.kind =
        run->event.kind == PAWL_EVENT_CHILD ? PAWL_EVENT_CHILD_FAILED : PAWL_EVENT_CALL_FAILED;
    run->event.payload = pawl_turn_quote(&run->turn, answer->misfit.data);
    memset(run->value, 0, run->type->payload_size);
    return arena->failed ? scope_no_memory(run->scope) : PAWL_OK;
}

static pawl_status read_payload(struct run *run)
{
    pawl_event_kind kind = run->event.kind;
    pawl_status status;

    if (kind != PAWL_EVENT_SIGNAL && kind != PAWL_EVENT_CALL && kind != PAWL_EVENT_CHILD)
        return PAWL_OK;
    status = payload_read(run->scope, run->type, &run->event, shape_of(run->request), run->value);
    return status == PAWL_INVALID_REQUEST && kind != PAWL_EVENT_SIGNAL ? take_misfit(run) : status;
}

/* Variables that changed their kind, or do not fit, stay as they begin: that is what the hook is
 * for. */
static void load_kept(struct run *run)
{
    const struct node *phase = node_find(run->stored.object, "phase");

    for (const pawl_var *var = run->type->vars; var && !vars_is_end(var); var++) {
        struct var_place place = { .scope = run->scope, .vars = var, .base = run->state };
        const struct node *value = stored_value(run->type, &run->stored, var);
        const struct node *before = declared_find(run->type, run->stored.declared, var);

        if (value && (!before || declared_is_alike(before, var)))
            (void)var_load(&place, var, value);
    }
    run->phase = phase && phase->kind == NODE_STRING ? phase->text : STR_NONE;
}

static pawl_status migrate(struct run *run)
{
    const pawl_code_type *type = run->type;
    const char *stored = arena_text(&run->scope->arena, run->request->state), *phase;

    TRY_MEMORY(run->scope, stored);
    load_kept(run);
    phase = type->migrate(type->context, run->request->from_version, stored, run->state);
    run->turn.answer->is_moved = phase != NULL;
    if (phase)
        run->phase = str_of(phase);
    if (type->phases && run->phase.data &&
        names_find(type->phases, run->phase.data) == names_count(type->phases))
        return scope_fail(run->scope, PAWL_NOT_KNOWN,
                          "code type '%s' migrated from version %u to the place '%.*s', which it "
                          "does not declare",
                          type->name, run->request->from_version, STR_ARG(words_shown(run->phase)));
    state_print(&run->turn, run->state, run->phase, &run->turn.answer->migrated);
    if (!run->turn.answer->migrated.data && run->turn.status == PAWL_OK)
        return scope_fail(run->scope, PAWL_NOT_KNOWN, "code type '%s' cannot be migrated: %.*s",
                          type->name, STR_ARG(run->turn.problem));
    return run->turn.status;
}

static pawl_status load(struct run *run)
{
    struct arena *arena = &run->scope->arena;
    const pawl_code_type *type = run->type;
    const struct turn_request *request = run->request;

    run->event = (pawl_event){ .kind = request->kind, .at_ms = request->at_ms };
    run->state = arena_alloc(arena, type->state_size + 1);
    run->value = arena_alloc(arena, type->payload_size + 1);
    run->event.name = request->name.data ? arena_text(arena, request->name) : NULL;
    run->event.child_id = request->child_id.data ? arena_text(arena, request->child_id) : NULL;
    run->event.payload = request->payload.data ? arena_text(arena, request->payload) : "null";
    TRY_MEMORY(run->scope, !arena->failed);
    run->event.value = run->value;
    if (type->initial && !(request->state.data && PLANTED(DEFAULTS_ZERO)))
        memcpy(run->state, type->initial, type->state_size);
    if (request->kind == PAWL_EVENT_START)
        return input_read(run->scope, type, str_of(run->event.payload), shape_of(request),
                          run->state);
    if (request->from_version > 0 && type->migrate)
        return migrate(run);
    return state_load(run->scope, type, &run->stored, run->state, &run->phase);
}

/* No turn: does the payload fit? */
static pawl_status check(const pawl_code_type *type, const struct turn_request *request,
                         struct scope *scope)
{
    struct arena *arena = &scope->arena;
    void *value = arena_alloc(arena, type->payload_size + 1);
    pawl_event event = { .kind = request->kind,
                         .name = arena_text(arena, request->name),
                         .payload = arena_text(arena, request->payload) };

    return arena->failed ? scope_no_memory(scope)
                         : payload_read(scope, type, &event, shape_of(request), value);
}

static const char *renewal_problem(const struct pawl_turn *turn)
{
    const struct turn_answer *answer = turn->answer;
    bool waits = answer->timers.count > 0 || answer->signals.count > 0 || answer->call_count > 0;

    return turn->problem.data             ? turn->problem.data
           : answer->end != TURN_WAITS    ? "it ends"
           : answer->reduces.count > 0    ? "it asks for a reduce"
           : !waits                       ? "it does not wait there"
                                          : NULL;
}

/* A local that code has lost across an await is what was left on the stack, often its own old
 * value: the mistake would show in production first. So the handler's part of the stack is filled
 * before it runs, and the mistake shows in the first test. As a number the pattern is large, so
 * that a loop ends; as a pointer it is invalid. */
#define STACK_FILL 2048
#define STACK_BYTE 0x5a
#define STACK_HEAD 64 /* more than what a function has there besides its variables */

__attribute__((noinline, no_sanitize_address)) static void fill_stack(void)
{
    unsigned char below[STACK_FILL];

    memset(below, STACK_BYTE, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory"); /* it is not left out */
}

__attribute__((noinline, no_sanitize_address)) static void handle_below(struct run *run)
{
    unsigned char head[STACK_HEAD];

    __asm__ volatile("" : : "r"(head) : "memory");
    run->type->handle(run->type->context, &run->turn, run->state, &run->event);
    __asm__ volatile("" : : "r"(head) : "memory");
}

static void handle(struct run *run)
{
    fill_stack();
    handle_below(run);
}

/* What it waits for at its place by this build; nothing has happened. */
static pawl_status renew(struct run *run)
{
    const char *problem;

    if (!run->type->renews || !run->event.phase)
        return PAWL_OK;
    handle(run);
    problem = renewal_problem(&run->turn);
    if (run->turn.status == PAWL_OK && problem)
        return scope_fail(run->scope, PAWL_NOT_KNOWN,
                          "code type '%s' cannot go on with an instance of version %u at '%s': %s",
                          run->type->name, run->request->from_version, run->event.phase, problem);
    turn_tell_subscriptions(&run->turn);
    run->turn.answer->is_renewed = true;
    return run->turn.status;
}

static pawl_status take_turn(struct run *run)
{
    handle(run);
    state_print(&run->turn, run->state, run->turn.phase, &run->turn.answer->state);
    return turn_settle(&run->turn);
}

pawl_status code_run(const struct code_binding *binding, const struct turn_request *request,
                     struct scope *scope, struct turn_answer *out)
{
    struct turn_answer answer = { 0 };
    struct run run = { .type = binding->type, .request = request, .scope = scope };

    run.turn = (struct pawl_turn){ .scope = scope,
                                   .type = binding->type,
                                   .event = &run.event,
                                   .answer = &answer,
                                   .open_calls = request->open_calls,
                                   .which = request->call >= request->first_call
                                                ? request->call - request->first_call
                                                : 0 };
    if (request->is_check) {
        *out = answer;
        return check(binding->type, request, scope);
    }
    TRY(state_read(scope, binding->type, request->state, &run.stored.object));
    TRY(declared_read(scope, request->declared, &run.stored.declared));
    TRY(subscriptions_read(scope, binding->type, run.stored.object, &run.turn.subscriptions));
    TRY(load(&run));
    TRY(read_payload(&run));
    run.event.phase = run.phase.data ? arena_text(&scope->arena, run.phase) : NULL;
    run.turn.phase = str_of(run.event.phase);
    if (run.phase.data && !run.event.phase)
        return scope_no_memory(scope);
    TRY(request->kind == PAWL_EVENT_RENEW ? renew(&run) : take_turn(&run));
    *out = answer;
    return PAWL_OK;
}
