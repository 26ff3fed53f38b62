/* step_wait.c - a step that waits for a timer, a time or a signal: `wait`. The arms of `select`
 * are read and begun here, too: a wait is a select with one arm and one way on.
 *
 * Its args are {"arms":[{"timer":"30s"},{"signal":"paid","value":V}]}. */
#include "base/time.h"
#include "flow/compile.h"
#include "model/canonical.h"

/* Keys: a step that waits. */
static const struct known_key wait_step_keys[] = {
    { "wait", "{timer | until | signal}", "waits instead of calling a tool", NULL },
    { 0 },
};

/* Keys: `wait`. */
static const struct known_key wait_keys[] = {
    { "timer", "DURATION", "for this long", NULL },
    { "until", "TIME", "until this time", NULL },
    { "signal", "NAME", "for this signal", NULL },
    { "value", "ANYTHING", "of a signal: what a broadcast's filter is compared with", NULL,
      "none" },
    { 0 },
};

/* ---- Compiling ------------------------------------------------------------------------------ */

static void check_value(const struct source_step *step, const struct node *value)
{
    bool is_text = value->kind == NODE_STRING;
    int64_t ms;

    if (is_text && compile_has_template(step, value->text))
        return;
    if (str_is(value->key, "timer"))
        compile_duration(step, value, "'timer'", &ms);
    else if (str_is(value->key, "until") && (!is_text || !time_parse(value->text, &ms)))
        step_error(step, value, "'until' must be a time in RFC 3339");
    else if (str_is(value->key, "signal") && (!is_text || str_is_blank(value->text)))
        step_error(step, value, "'signal' must name a signal");
}

/* What one arm waits for; NULL, and said so, if that is not exactly one thing. */
static const struct node *read_arm(const struct source_step *step, const struct node *arm)
{
    static const char *const words[] = { "timer", "until", "signal", NULL };
    const struct node *value = node_find(arm, "value"), *found = NULL;
    uint32_t count = 0;

    for (const struct node *node = arm->first; node && arm->kind == NODE_OBJECT; node = node->next)
        if (str_is_one_of(node->key, words)) {
            found = node;
            count++;
        }
    if (count != 1) {
        step_error(step, arm,
                   "expected one of {timer: DURATION}, {until: TIME}, {signal: NAME}, found %s",
                   count == 0 ? "none of them" : "several");
        return NULL;
    }
    if (value && !str_is(found->key, "signal"))
        step_error(step, value, "'value' belongs to a signal");
    check_value(step, found);
    return found;
}

static void print_arm(const struct node *arm, const struct node *value, struct buf *out)
{
    json_open(out, '{');
    if (value) {
        json_key_str(out, value->key);
        node_print(value, out);
    }
    if (value && node_find(arm, "value")) {
        json_key(out, "value");
        node_print(node_find(arm, "value"), out);
    }
    json_close(out, '}');
}

void arms_compile(struct source_step *step, const struct node *first,
                  const struct known_key *more_keys, bool is_one)
{
    const struct known_key *const tables[] = { wait_keys, more_keys, NULL };
    struct buf buf;

    buf_init(&buf, step->compiler->scope->arena.heap, 0);
    json_open(&buf, '{');
    json_put_open(&buf, "arms", '[');
    for (const struct node *arm = first; arm; arm = is_one ? NULL : arm->next) {
        const struct node *value = read_arm(step, arm);

        compile_tables(step->compiler, step, arm, tables, is_one ? "wait." : "select.", "");
        print_arm(arm, value, &buf);
    }
    json_close(&buf, ']');
    json_close(&buf, '}');
    step->plan.args = compile_take(step->compiler, &buf);
}

static void wait_compile(struct source_step *step, const struct node *wait)
{
    step->plan.args_node = wait;
    arms_compile(step, wait, NULL, true);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

/* A timer is called like its step; a select's second and later ones get a number. */
static str timer_name(struct turn *turn, const struct plan_step *step, uint32_t arm, bool is_first)
{
    struct buf buf;

    if (is_first)
        return step->name;
    buf_init(&buf, turn->scope->arena.heap, 0);
    buf_fmt(&buf, "%.*s.%u", STR_ARG(step->name), arm);
    return turn_take(turn, &buf);
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
        return begin_refuse(turn, "timer", "a duration like \"30s\"", timer);
    if (until->kind != NODE_STRING || !time_parse(until->text, &ms))
        return begin_refuse(turn, "until", "a time like \"2026-05-01T00:00:00Z\"", until);
    *out_ms = *out_wall || ms > turn->event->at_ms ? ms : turn->event->at_ms;
    return PAWL_OK;
}

static pawl_status await_signal(struct turn *turn, uint32_t ordinal, const struct node *arm)
{
    const struct node *signal = node_find(arm, "signal"), *value = node_find(arm, "value");
    str text = value ? value->raw : STR_NONE;

    if (signal->kind != NODE_STRING || str_is_blank(signal->text) ||
        signal->text.size > LIMIT_ACTION)
        return begin_refuse(turn, "signal", "the name of a signal", signal);
    if (value && turn->compiler >= COMPILER_CANONICAL_VALUES && turn->status == PAWL_OK)
        turn->status = canonical_print(turn->scope, value, &text);
    turn_cause(turn,
               (struct effect){
                   .kind = EFFECT_AWAIT, .ordinal = ordinal, .name = signal->text, .state = text });
    return turn->status;
}

pawl_status arms_begin(struct turn *turn, const struct plan_step *step, uint32_t ordinal)
{
    struct node *args = NULL;
    pawl_status status = begin_args_node(turn, step, &args);
    uint32_t index = 0, timer_count = 0;
    int64_t due_at_ms = 0;
    bool wall = false;

    for (const struct node *arm = node_first(args, "arms"); arm && status == PAWL_OK;
         arm = arm->next, index++) {
        const struct node *signal = node_find(arm, "signal");

        status = signal ? await_signal(turn, ordinal, arm) : due_of(turn, arm, &due_at_ms, &wall);
        if (status == PAWL_OK && !signal)
            turn_cause(turn,
                       (struct effect){ .kind = EFFECT_ARM,
                                        .ordinal = ordinal,
                                        .name = timer_name(turn, step, index, timer_count++ == 0),
                                        .due_at_ms = due_at_ms,
                                        .wall = wall });
    }
    return status;
}

/* ---- In pictures ------------------------------------------------------------------------------
 */

const struct node *plan_arms(const struct plan_step *step)
{
    return node_find(step->args_node, "arms");
}

void arm_print(const struct node *arm, struct buf *out)
{
    if (arm && arm->first && arm->first->kind == NODE_STRING)
        buf_fmt(out, "%.*s%s%.200s", STR_ARG(arm->first->key), arm->first->text.size > 0 ? " " : "",
                arm->first->text.data);
}

static void wait_note(const struct plan_step *step, struct buf *out)
{
    arm_print(node_at(plan_arms(step), 0), out);
}

const struct step_kind step_kind_wait = {
    .word = "wait",
    .about = "waits for a time or a signal",
    .key = "wait",
    .keys = wait_step_keys,
    .is_alone = true,
    .has_own_args = true,
    .has_arms = true,
    .look = LOOK_WAIT,
    .note = wait_note,
    .compile = wait_compile,
    .begin = arms_begin,
};
