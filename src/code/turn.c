/* turn.c - what a handler says during one event: wait for these, or end so. */
#include "base/grow.h"
#include "base/limits.h"
#include "code/code_int.h"
#include <stdarg.h>
#include <stdio.h>

void turn_problem(struct pawl_turn *turn, const char *format, ...)
{
    char words[400];
    va_list args;

    if (turn->problem.data)
        return;
    va_start(args, format);
    if (vsnprintf(words, sizeof words, format, args) < 0)
        words[0] = '\0';
    va_end(args);
    turn->problem = arena_str(&turn->scope->arena, str_of(words));
    if (!turn->problem.data)
        turn->status = scope_no_memory(turn->scope);
}

static struct effect *find_effect(const struct effect_list *list, str name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i].name, name))
            return &list->items[i];
    return NULL;
}

int64_t turn_due_after(int64_t at_ms, int64_t after_ms)
{
    if (after_ms < 1)
        after_ms = 1; /* or a handler could keep one instant going for ever */
    return at_ms > INT64_MAX - after_ms ? INT64_MAX : at_ms + after_ms;
}

static void add(struct pawl_turn *turn, struct effect_list *list, struct effect effect)
{
    struct effect *found = find_effect(list, effect.name);

    if (found)
        *found = effect;
    else if (turn->status == PAWL_OK)
        turn->status = effect_add(turn->scope, list, effect);
}

void say_timer(struct pawl_turn *turn, const char *declared, int64_t due_at_ms)
{
    add(turn, &turn->answer->timers,
        (struct effect){ .kind = EFFECT_ARM, .name = str_of(declared), .due_at_ms = due_at_ms });
}

void say_signal(struct pawl_turn *turn, const char *declared)
{
    add(turn, &turn->answer->signals,
        (struct effect){ .kind = EFFECT_AWAIT, .name = str_of(declared) });
}

/* The name as the type declares it. NULL: it does not, which is the turn's problem. */
static const char *find_declared(struct pawl_turn *turn, const char *const *names, const char *name,
                                 const char *did)
{
    unsigned at = names_find(names, name);

    if (at < names_count(names))
        return names[at];
    turn_problem(turn, "the handler %s '%.80s', which its type does not declare", did,
                 name ? name : "");
    return NULL;
}

int64_t pawl_turn_now(const pawl_turn *turn)
{
    return turn ? turn->event->at_ms : 0;
}

void pawl_turn_timer(pawl_turn *turn, const char *name, int64_t after_ms)
{
    const char *declared =
        turn ? find_declared(turn, turn->type->timers, name, "armed the timer") : NULL;

    if (declared)
        say_timer(turn, declared, turn_due_after(turn->event->at_ms, after_ms));
}

void pawl_turn_signal(pawl_turn *turn, const char *name)
{
    const char *declared =
        turn ? find_declared(turn, turn->type->signals, name, "awaited the signal") : NULL;

    if (declared)
        say_signal(turn, declared);
}

void turn_check_json(struct pawl_turn *turn, const char *what, str json)
{
    struct scope reading;
    struct node *node;
    pawl_status status;

    if (json.size > LIMIT_TEXT) {
        turn_problem(turn, "the handler's %s has %zu bytes, and at most %u are kept", what,
                     json.size, LIMIT_TEXT);
        return;
    }
    scope_init(&reading, turn->scope->arena.heap, LIMIT_SCOPE);
    status = node_read_json(&reading, json, &node);
    if (status == PAWL_NO_MEMORY)
        turn->status = scope_no_memory(turn->scope);
    else if (status != PAWL_OK)
        turn_problem(turn, "the handler's %s is not JSON: %s", what, reading.error.message);
    scope_fini(&reading);
}

static str keep(struct pawl_turn *turn, str text)
{
    str kept = arena_str(&turn->scope->arena, text);

    if (!kept.data && turn->status == PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
    return kept;
}

/* It becomes part of a header and of an environment: printable ASCII without blanks. */
static bool is_key(const char *key)
{
    size_t size = strlen(key);

    for (size_t i = 0; i < size; i++)
        if (key[i] < '!' || key[i] > '~')
            return false;
    return size > 0 && size <= LIMIT_CALL_KEY;
}

static void add_call(struct pawl_turn *turn, struct turn_call call)
{
    struct turn_answer *answer = turn->answer;

    if (GROW(&turn->scope->arena, answer->calls, answer->call_count, answer->call_capacity))
        answer->calls[answer->call_count++] = call;
    else if (turn->status == PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
}

void say_call(struct pawl_turn *turn, const char *declared, const char *key, const char *args_json)
{
    str args = str_of(args_json ? args_json : "null");

    if (turn->answer->call_count > 0 && !turn->is_gathering)
        turn_problem(turn, "the handler called two things in one turn; it may wait for one, or "
                           "gather several");
    turn_check_json(turn, "arguments", args);
    if (key && !is_key(key))
        turn_problem(turn,
                     "the key of a call: expected 1..%d printable ASCII characters without blanks, "
                     "found '%.80s'",
                     LIMIT_CALL_KEY, key);
    add_call(turn, (struct turn_call){ .name = str_of(declared),
                                       .args = keep(turn, args),
                                       .key = key ? keep(turn, str_of(key)) : STR_NONE });
}

void say_spawn(struct pawl_turn *turn, const char *declared, const char *input_json, bool abandon)
{
    struct turn_answer *answer = turn->answer;
    uint32_t before = answer->call_count;

    say_call(turn, declared, NULL, input_json ? input_json : "{}");
    if (answer->call_count == before)
        return;
    answer->calls[before].is_spawn = true;
    answer->calls[before].is_abandoned = abandon;
}

void pawl_turn_spawn(pawl_turn *turn, const char *definition, const char *input_json, bool abandon)
{
    const char *declared =
        turn ? find_declared(turn, turn->type->children, definition, "spawned") : NULL;

    if (declared)
        say_spawn(turn, declared, input_json, abandon);
}

void pawl_turn_call(pawl_turn *turn, const char *name, const char *args_json)
{
    pawl_turn_call_keyed(turn, name, NULL, args_json);
}

void pawl_turn_call_keyed(pawl_turn *turn, const char *name, const char *key, const char *args_json)
{
    const char *declared;
    unsigned call;

    if (!turn)
        return;
    call = names_find(turn->type->calls, name);
    declared = call < names_count(turn->type->calls)
                   ? turn->type->calls[call]
                   : find_declared(turn, turn->type->externals, name, "called");
    if (declared)
        say_call(turn, declared, key, args_json);
}

void pawl_turn_reduce(pawl_turn *turn, const char *name, const char *args_json)
{
    str args = str_of(args_json ? args_json : "null");
    struct effect effect = { .kind = EFFECT_REDUCE };

    if (!turn)
        return;
    if (!name || !str_is_utf8(str_of(name), false) || str_is_blank(str_of(name))) {
        turn_problem(turn, "the handler asked for a reduce without a name");
        return;
    }
    turn_check_json(turn, "arguments", args);
    effect.name = keep(turn, str_of(name));
    effect.state = keep(turn, args);
    if (turn->status == PAWL_OK)
        turn->status = effect_add(turn->scope, &turn->answer->reduces, effect);
}

/* ---- Orders: another instance is started or signalled with the commit ------------------------ */

static void add_send(struct pawl_turn *turn, const char *operation, struct buf *input)
{
    struct effect effect = { .kind = EFFECT_SEND, .name = str_of(operation) };

    effect.state = buf_keep(input, &turn->scope->arena);
    buf_fini(input);
    if (!effect.state.data && turn->status == PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
    if (effect.state.size > LIMIT_TEXT)
        turn_problem(turn, "an order of %s has %zu bytes, and at most %u are kept", operation,
                     effect.state.size, LIMIT_TEXT);
    if (turn->status == PAWL_OK)
        turn->status = effect_add(turn->scope, &turn->answer->sends, effect);
}

static bool is_said(struct pawl_turn *turn, const char *name, const char *what)
{
    if (name && name[0] && str_is_utf8(str_of(name), false))
        return true;
    turn_problem(turn, "the handler %s", what);
    return false;
}

void pawl_turn_start(pawl_turn *turn, const char *definition, const char *input_json)
{
    str input = str_of(input_json ? input_json : "{}");
    struct buf buf;

    if (!turn || !is_said(turn, definition, "started a definition without a name"))
        return;
    turn_check_json(turn, "input", input);
    buf_init(&buf, turn->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_put_text(&buf, "definition", definition);
    json_put_raw(&buf, "input", input);
    json_close(&buf, '}');
    add_send(turn, "instance.create", &buf);
}

void pawl_turn_send(pawl_turn *turn, const char *instance_id, const char *signal,
                    const char *payload_json)
{
    str payload = str_of(payload_json ? payload_json : "null");
    struct buf buf;

    if (!turn || !is_said(turn, instance_id, "signalled an instance without an id") ||
        !is_said(turn, signal, "sent a signal without a name"))
        return;
    turn_check_json(turn, "payload", payload);
    buf_init(&buf, turn->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_put_text(&buf, "instance_id", instance_id);
    json_put_text(&buf, "name", signal);
    json_put_raw(&buf, "payload", payload);
    json_close(&buf, '}');
    add_send(turn, "signal.send", &buf);
}

void pawl_turn_phase(pawl_turn *turn, const char *phase)
{
    unsigned at = turn ? names_find(turn->type->phases, phase) : 0;

    if (!turn)
        return;
    if (at < names_count(turn->type->phases))
        turn->phase = str_of(turn->type->phases[at]);
    else
        turn_problem(turn, "the handler waits at '%.80s', a place its type does not declare",
                     phase ? phase : "");
}

void say_end(struct pawl_turn *turn, enum turn_end how, const char *what, const char *json)
{
    str value = str_of(json ? json : "null");

    turn_check_json(turn, what, value);
    turn->answer->end = how;
    turn->answer->value = keep(turn, value);
}

void pawl_turn_complete(pawl_turn *turn, const char *result_json)
{
    if (turn)
        say_end(turn, TURN_COMPLETES, "result", result_json);
}

void pawl_turn_fail(pawl_turn *turn, const char *error_json)
{
    if (turn)
        say_end(turn, TURN_FAILS, "error", error_json);
}

void pawl_turn_return(pawl_turn *turn, const void *result)
{
    if (!turn)
        return;
    turn->answer->end = TURN_COMPLETES;
    turn->answer->value = STR("null");
    if (turn->type->result && result)
        result_print(turn, result, &turn->answer->value);
}

const char *pawl_turn_text(pawl_turn *turn, const char *format, ...)
{
    va_list args, again;
    char *text;
    int size;

    if (!turn || !format)
        return "";
    va_start(args, format);
    va_copy(again, args);
    size = vsnprintf(NULL, 0, format, args);
    text = size < 0 ? NULL : arena_alloc(&turn->scope->arena, (size_t)size + 1);
    if (text)
        (void)vsnprintf(text, (size_t)size + 1, format, again);
    else
        turn->status = scope_no_memory(turn->scope);
    va_end(again);
    va_end(args);
    return text ? text : "";
}

const char *pawl_turn_quote(pawl_turn *turn, const char *text)
{
    const char *quoted = NULL;
    struct buf buf;

    if (!turn)
        return "null";
    if (text && !str_is_utf8(str_of(text), false)) {
        turn_problem(turn, "the handler quoted a text that is not UTF-8");
        return "null";
    }
    buf_init(&buf, turn->scope->arena.heap, LIMIT_SCOPE);
    json_text(&buf, text);
    if (!buf.failed)
        quoted = arena_text(&turn->scope->arena, buf_view(&buf));
    buf_fini(&buf);
    if (!quoted)
        turn->status = scope_no_memory(turn->scope);
    return quoted ? quoted : "null";
}

const char *pawl_turn_json(pawl_turn *turn, const pawl_var *fields, const void *value)
{
    const char *text = NULL;
    str printed = STR_NONE;

    if (!turn || !fields || !value)
        return "null";
    struct_print(turn, fields, value, &printed);
    if (printed.data)
        text = arena_text(&turn->scope->arena, printed);
    return text ? text : "null";
}

pawl_status turn_settle(struct pawl_turn *turn)
{
    struct turn_answer *answer = turn->answer;

    if (answer->end == TURN_WAITS && answer->timers.count == 0 && answer->signals.count == 0 &&
        answer->call_count == 0 && !(answer->keeps && turn->open_calls > 0))
        turn_problem(turn, "the handler neither waited nor ended; code leaves by PAWL_DONE or "
                           "PAWL_FAIL, not by a plain return");
    turn_tell_subscriptions(turn);
    if (turn->status == PAWL_OK && turn->problem.data)
        *answer = (struct turn_answer){ .end = TURN_HOLDS, .problem = turn->problem };
    return turn->status;
}
