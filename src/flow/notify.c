/* notify.c - `notify`: a flow that ends, or that waits for a person, starts another one which tells
 * it to the outside.
 *
 * The order is an effect `send` of the very entry, so the other one is started once, also after a
 * death, and its steps are as durable as any. Whatever comes of it, this flow's own outcome stands.
 */
#include "flow/compile.h"

#define OUTCOME_MAX                                                                                \
    ((size_t)16 << 10) /* of a result or error that goes along: it is in the log twice */

/* Levels of what goes along: it stands some levels deep in the body of an entry. */
#define LEVELS_MAX 48u

/* Keys: `notify`. */
static const struct known_key notify_keys[] = {
    { "definition", "NAME or NAME@VERSION", "the flow that is started", NULL, "required" },
    { "on", "[completed, failed, gate]", "when", NULL, "completed and failed" },
    { "input", "OBJECT", "its input; `event` is added to it", NULL, "{}" },
    { 0 },
};

static const char *const words[] = { "completed", "failed", "gate", NULL };

static bool is_too_deep(str json)
{
    uint32_t depth = 0;
    bool is_quoted = false;

    for (size_t i = 0; i < json.size && depth <= LEVELS_MAX; i++) {
        char byte = json.data[i];

        if (is_quoted && byte == '\\')
            i++;
        else if (byte == '"')
            is_quoted = !is_quoted;
        else if (!is_quoted && (byte == '{' || byte == '['))
            depth++;
        else if (!is_quoted && (byte == '}' || byte == ']'))
            depth--;
    }
    return depth > LEVELS_MAX;
}

/* ---- Compiling ------------------------------------------------------------------------------- */

static void check_on(const struct source_step *step, const struct node *on)
{
    if (on->kind != NODE_ARRAY || on->count == 0)
        step_error(step, on, "'on' must be a list of completed, failed and gate");
    for (const struct node *word = on->kind == NODE_ARRAY ? on->first : NULL; word;
         word = word->next)
        if (word->kind != NODE_STRING || !str_is_one_of(word->text, words))
            step_error(step, word, "'on': expected completed, failed or gate, found %s",
                       word->kind == NODE_STRING
                           ? arena_text(&step->compiler->scope->arena, words_shown(word->text))
                           : node_kind_name(word->kind));
}

void compile_notify(struct compilation *compiler)
{
    const struct source_step step = { .compiler = compiler, .plan.name = STR("notify") };
    const struct node *notify = compiler->notify, *on = node_find(notify, "on");
    const struct node *definition = node_find(notify, "definition");
    const struct node *input = node_find(notify, "input");

    if (notify->kind != NODE_OBJECT || !definition || definition->kind != NODE_STRING ||
        str_is_blank(definition->text)) {
        step_error(&step, notify, "expected {definition: NAME, on: [completed, failed, gate]}");
        return;
    }
    compile_keys(compiler, &step, notify, notify_keys, "notify.");
    if (on)
        check_on(&step, on);
    if (input && input->kind != NODE_OBJECT)
        step_error(&step, input, "'input' must be an object, found %s",
                   node_kind_name(input->kind));
    if (input && is_too_deep(compile_print(compiler, input)))
        step_error(&step, input, "'input' has more than %u levels", LEVELS_MAX);
    if (node_find(input, "event"))
        step_error(&step, node_find(input, "event"),
                   "'input.event' is what happened; use another name");
    if (str_eq(str_before(definition->text, '@'), compiler->own_name))
        step_error(&step, definition, "a flow that notifies itself would never end");
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static const char *word_of(enum lifecycle_transition transition)
{
    return transition == LIFE_T_FINISH      ? "completed"
           : transition == LIFE_T_FAIL      ? "failed"
           : transition == LIFE_T_GATE_WAIT ? "gate"
                                            : NULL;
}

static bool is_wanted(const struct node *notify, const char *word)
{
    const struct node *on = node_find(notify, "on");

    for (const struct node *one = on ? on->first : NULL; one; one = one->next)
        if (str_is(one->text, word))
            return true;
    return !on && strcmp(word, "gate") != 0;
}

/* What happened, as far as the decision knows: its instance's id is added when it is recorded. */
static void print_event(const struct turn *turn, const char *word, const struct attempt *attempt,
                        str payload, struct buf *out)
{
    const char *key = strcmp(word, "failed") == 0 ? "error" : "result";

    json_put_open(out, "event", '{');
    json_put_text(out, "on", word);
    if (attempt)
        json_put_str(out, "step", turn->plan->steps[attempt->plan].name);
    else if (payload.size > OUTCOME_MAX || is_too_deep(payload))
        json_put_u64(out, "left_out", payload.size);
    else if (payload.data)
        json_put_raw(out, key, payload);
    if (turn->event->kind != EVENT_START)
        json_opt_raw(out, "instance", turn->memory->instance);
    json_close(out, '}');
}

void turn_notify(struct turn *turn, enum lifecycle_transition transition,
                 const struct attempt *attempt, str payload)
{
    const struct node *notify = turn->plan->notify, *input = node_find(notify, "input");
    const char *word = word_of(transition);
    struct buf order;

    if (!word || !is_wanted(notify, word))
        return;
    buf_init(&order, turn->scope->arena.heap, LIMIT_SCOPE);
    json_open(&order, '{');
    json_put_str(&order, "definition", node_text(notify, "definition"));
    json_put_open(&order, "input", '{');
    for (const struct node *member = input ? input->first : NULL; member; member = member->next) {
        json_key_str(&order, member->key);
        json_raw(&order, member->raw);
    }
    print_event(turn, word, attempt, payload, &order);
    json_close(&order, '}');
    json_close(&order, '}');
    turn_cause(turn, (struct effect){ .kind = EFFECT_SEND,
                                      .name = STR("notify"),
                                      .state = turn_take(turn, &order) });
}
