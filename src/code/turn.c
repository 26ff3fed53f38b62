/* turn.c - what a handler says during one event: wait for these, or end so. */
#include "base/limits.h"
#include "base/node.h"
#include "code/code_int.h"
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

/* The declared name itself, which lives as long as the type; or STR_NONE. */
static str find_declared(const char *const *names, const char *name)
{
    for (; names && name && *names; names++)
        if (strcmp(*names, name) == 0)
            return str_of(*names);
    return STR_NONE;
}

static struct effect *find_effect(const struct effect_list *list, str name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i].name, name))
            return &list->items[i];
    return NULL;
}

static int64_t due_after(int64_t at_ms, int64_t after_ms)
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

void pawl_turn_timer(pawl_turn *turn, const char *name, int64_t after_ms)
{
    str declared = turn ? find_declared(turn->type->timers, name) : STR_NONE;
    struct effect effect = { .kind = EFFECT_ARM, .name = declared };

    if (!turn)
        return;
    if (!declared.data) {
        turn_problem(turn, "the handler armed the timer '%.80s', which its type does not declare",
                     name ? name : "");
        return;
    }
    effect.due_at_ms = due_after(turn->at_ms, after_ms);
    add(turn, &turn->timers, effect);
}

void pawl_turn_signal(pawl_turn *turn, const char *name)
{
    str declared = turn ? find_declared(turn->type->signals, name) : STR_NONE;

    if (!turn)
        return;
    if (declared.data)
        add(turn, &turn->signals, (struct effect){ .kind = EFFECT_AWAIT, .name = declared });
    else
        turn_problem(turn,
                     "the handler awaited the signal '%.80s', which its type does not declare",
                     name ? name : "");
}

/* What is wrong with a JSON text is the turn's problem. */
static void check_json(struct pawl_turn *turn, const char *what, str json)
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

static void end(struct pawl_turn *turn, enum turn_end how, const char *what, const char *json)
{
    str value = str_of(json ? json : "null");

    if (!turn)
        return;
    check_json(turn, what, value);
    turn->end = how;
    turn->value = arena_str(&turn->scope->arena, value);
    if (!turn->value.data && turn->status == PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
}

void pawl_turn_complete(pawl_turn *turn, const char *result_json)
{
    end(turn, TURN_COMPLETES, "result", result_json);
}

void pawl_turn_fail(pawl_turn *turn, const char *error_json)
{
    end(turn, TURN_FAILS, "error", error_json);
}

/* A JSON string of the words is the error that the instance failed with. */
static pawl_status fail_by_problem(struct pawl_turn *turn)
{
    struct buf buf;

    buf_init(&buf, turn->scope->arena.heap, LIMIT_TEXT);
    json_str(&buf, turn->problem);
    turn->end = TURN_FAILS;
    turn->value = buf_keep(&buf, &turn->scope->arena);
    buf_fini(&buf);
    return turn->value.data ? PAWL_OK : scope_no_memory(turn->scope);
}

pawl_status turn_settle(struct pawl_turn *turn)
{
    if (turn->end == TURN_WAITS && turn->timers.count == 0 && turn->signals.count == 0)
        turn_problem(turn, "the handler neither waited nor ended");
    if (turn->status != PAWL_OK)
        return turn->status;
    return turn->problem.data ? fail_by_problem(turn) : PAWL_OK;
}
