/* reduce_begin.c - a step begins: its row, its timers, and what it waits for.
 *
 * A tool's row is ready and somebody takes it; everything else is pending where it stands,
 * and its timers, signals or approvals end it. */
#include "base/json_scan.h"
#include "base/time.h"
#include "flow/flow_int.h"
#include "model/canonical.h"
#include "model/grow.h"
#include "model/words.h"

#define BOUND_COMPILER 3 /* from it on, children and waits that begin together have bounds */

static str shown_json(const struct node *node)
{
    return node && node->raw.data ? words_shown(node->raw) : STR("nothing");
}

static pawl_status bad_value(const struct turn *turn, const char *key, const char *expected,
                             const struct node *found)
{
    return scope_fail(turn->scope, PAWL_INVALID_REQUEST, "'%s': expected %s, found %.*s", key,
                      expected, STR_ARG(shown_json(found)));
}

/* ---- What it waits for ------------------------------------------------------------------- */

/* A timer is called like its step; a select's second and later ones get a number. */
static str timer_name(struct turn *turn, const struct plan_step *step, uint32_t arm, bool is_first)
{
    struct buf buf;
    str name;

    if (is_first)
        return step->name;
    buf_init(&buf, turn->scope->arena.heap, 0);
    buf_fmt(&buf, "%.*s.%u", STR_ARG(step->name), arm);
    name = buf_keep(&buf, &turn->scope->arena);
    buf_fini(&buf);
    if (!name.data)
        turn->status = scope_no_memory(turn->scope);
    return name;
}

/* An absolute time follows the wall clock; before compiler 2 it followed the store's clock. */
static pawl_status due_of(const struct turn *turn, const struct node *arm, int64_t *out_ms,
                          bool *out_wall)
{
    const struct node *timer = node_find(arm, "timer"), *until = node_find(arm, "until");
    int64_t ms;

    *out_wall = !timer && turn->compiler >= 2;
    if (timer && timer->kind == NODE_STRING && duration_parse(timer->text, &ms)) {
        *out_ms = turn->event->at_ms + ms;
        return PAWL_OK;
    }
    if (timer)
        return bad_value(turn, "timer", "a duration like \"30s\"", timer);
    if (until->kind != NODE_STRING || !time_parse(until->text, &ms))
        return bad_value(turn, "until", "a time like \"2026-05-01T00:00:00Z\"", until);
    *out_ms = *out_wall || ms > turn->event->at_ms ? ms : turn->event->at_ms;
    return PAWL_OK;
}

static pawl_status await_signal(struct turn *turn, uint32_t ordinal, const struct node *arm)
{
    const struct node *signal = node_find(arm, "signal"), *value = node_find(arm, "value");
    str text = value ? value->raw : STR_NONE;

    if (signal->kind != NODE_STRING || str_is_blank(signal->text) ||
        signal->text.size > LIMIT_ACTION)
        return bad_value(turn, "signal", "the name of a signal", signal);
    if (value && turn->compiler >= COMPILER_CANONICAL_VALUES && turn->status == PAWL_OK)
        turn->status = canonical_print(turn->scope, value, &text);
    turn_cause(turn, (struct effect){
                         .kind = EFFECT_AWAIT, .ordinal = ordinal, .name = signal->text, .state = text });
    return turn->status;
}

static pawl_status arm_all(struct turn *turn, const struct plan_step *step, struct begun *begun,
                           const struct node *arms)
{
    uint32_t ordinal = begun->attempt.ordinal;
    uint32_t index = 0, timer_count = 0;
    pawl_status status = PAWL_OK;
    int64_t due_at_ms = 0;
    bool wall = false;

    for (const struct node *arm = arms->first; arm && status == PAWL_OK; arm = arm->next, index++) {
        const struct node *signal = node_find(arm, "signal");

        status = signal ? await_signal(turn, ordinal, arm) : due_of(turn, arm, &due_at_ms, &wall);
        if (status == PAWL_OK && !signal)
            turn_cause(turn, (struct effect){ .kind = EFFECT_ARM,
                                              .ordinal = ordinal,
                                              .name = timer_name(turn, step, index,
                                                                 timer_count++ == 0),
                                              .due_at_ms = due_at_ms,
                                              .wall = wall });
    }
    return status;
}

/* `sleep {for}` is a wait under another name. */
static pawl_status arm_sleep(struct turn *turn, const struct plan_step *step, uint32_t ordinal,
                             const struct node *args)
{
    const struct node *duration = node_find(args, "for");
    int64_t ms;

    if (!duration || duration->kind != NODE_STRING || !duration_parse(duration->text, &ms))
        return bad_value(turn, "for", "a duration like \"30s\"", duration);
    turn_arm(turn, ordinal, step->name, turn->event->at_ms + ms);
    return turn->status;
}

/* Who it is and where it is created is the engine's to know; here it is wanted. */
static pawl_status begin_child(struct turn *turn, uint32_t ordinal, str args)
{
    struct arena *arena = &turn->scope->arena;
    struct node definition = { 0 };
    str found, input, end;

    if (json_member(arena, args, STR("definition"), &found))
        json_peek(arena, found, &definition);
    if (definition.kind != NODE_STRING || str_is_blank(definition.text))
        return bad_value(turn, "definition", "the name of a definition", &definition);
    (void)json_member(arena, args, STR("input"), &input);
    (void)json_member(arena, args, STR("on_parent_end"), &end);
    turn_cause(turn, (struct effect){ .kind = EFFECT_SPAWN,
                                      .ordinal = ordinal,
                                      .name = STR(""),
                                      .definition = definition.text,
                                      .input = input,
                                      .is_abandoned = str_is(end, "\"abandon\"") });
    return turn->status;
}

/* What they ask for is one commit's to hold. Asked before the arguments of a step are there and
 * again with them, so that many that are too many need no memory. */
static pawl_status check_size(struct turn *turn, const struct plan_step *step, size_t size)
{
    bool is_spawn = step->kind == STEP_KIND_SPAWN;
    size_t *sum = is_spawn ? &turn->spawn_size : &turn->wait_size;
    size_t most = is_spawn ? LIMIT_SPAWN_INPUT : LIMIT_WAIT_VALUES;

    if (turn->compiler < BOUND_COMPILER)
        return PAWL_OK;
    *sum += size;
    if (*sum <= most)
        return PAWL_OK;
    return scope_fail(turn->scope, PAWL_TOO_LARGE,
                      "the %s that begin together: expected at most %zu bytes, "
                      "found %zu with this one",
                      is_spawn ? "inputs of children" : "values of waits", most, *sum);
}

static pawl_status begin_waiting(struct turn *turn, const struct plan_step *step,
                                 struct begun *begun)
{
    struct template_source source = turn_step_source(turn, step);
    uint32_t ordinal = begun->attempt.ordinal;
    struct node *args = NULL;
    pawl_status status;
    str text;

    if (step->kind == STEP_KIND_GATE || step->kind == STEP_KIND_EXTERNAL)
        return PAWL_OK;
    status = check_size(turn, step, 0);
    if (status == PAWL_OK)
        status = template_expand(&source, step, turn->scope, &text);
    if (status == PAWL_OK)
        status = check_size(turn, step, text.size);
    if (status == PAWL_OK && step->kind == STEP_KIND_SPAWN)
        return begin_child(turn, ordinal, text);
    if (status == PAWL_OK)
        status = node_read_own(turn->scope, text, &args);
    if (status != PAWL_OK)
        return status;
    if (step_is_sleep(step))
        return arm_sleep(turn, step, ordinal, args);
    return arm_all(turn, step, begun, node_find(args, "arms"));
}

/* What an attempt that nobody takes needs besides its row; or why it cannot begin. */
static void wait_for(struct turn *turn, struct begun *begun)
{
    const struct attempt *attempt = &begun->attempt;
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    pawl_status status;

    if (turn->status != PAWL_OK)
        return;
    if (step->timeout_ms > 0)
        turn_arm(turn, attempt->ordinal, TIMER_TIMEOUT, turn->event->at_ms + step->timeout_ms);
    status = begin_waiting(turn, step, begun);
    if (status_is_trouble(status))
        turn->status = status;
    if (status != PAWL_OK && turn->status == PAWL_OK)
        begun->error = turn_take_error(turn);
}

/* ---- The step ------------------------------------------------------------------------------ */

static void note_begun(struct turn *turn, const struct attempt *attempt, bool is_ready)
{
    struct begun noted = { .attempt = *attempt };
    struct begun *begun = grow_array(&turn->scope->arena, turn->begun, turn->begun_count,
                                     &turn->begun_capacity, sizeof *begun);

    if (!begun) {
        turn->status = scope_no_memory(turn->scope);
        return;
    }
    turn->begun = begun;
    if (!is_ready)
        wait_for(turn, &noted);
    turn->begun[turn->begun_count++] = noted;
}

void begin_step(struct turn *turn, uint32_t index)
{
    bool is_ready = step_is_taken(&turn->plan->steps[index]);
    struct attempt attempt = turn_create(turn, index, 1, is_ready ? STEP_READY : STEP_PENDING);

    note_begun(turn, &attempt, is_ready);
}

void begin_again(struct turn *turn, const struct attempt *attempt)
{
    bool is_ready = step_is_taken(&turn->plan->steps[attempt->plan]);

    turn_cause(turn, (struct effect){
                         .kind = EFFECT_DISARM, .ordinal = attempt->ordinal, .name = TIMER_RETRY });
    if (is_ready)
        turn_cause(turn, (struct effect){ .kind = EFFECT_READY, .ordinal = attempt->ordinal });
    note_begun(turn, attempt, is_ready);
}
