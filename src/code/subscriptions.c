/* subscriptions.c - the values of a signal for which broadcasts are to reach the instance: said in
 * a turn, stored with its state.
 *
 * The state has `"subscriptions":{SIGNAL:VALUE}` with the first value of each, as it had when there
 * was only one, and `"more-subscriptions":{SIGNAL:[VALUE,...]}` with the others. */
#include "base/grow.h"
#include "base/limits.h"
#include "code/code_int.h"
#include "model/canonical.h"

#define MORE "more-subscriptions" /* no variable can have this name */

/* ---- said in a turn ---- */

static uint32_t find_value(const struct code_values *values, str value)
{
    uint32_t i = 0;

    while (i < values->count && !str_eq(values->items[i], value))
        i++;
    return i;
}

static bool add_value(struct code_values *values, str value, struct arena *arena)
{
    if (!value.data || !GROW(arena, values->items, values->count, values->capacity))
        return false;
    values->items[values->count++] = value;
    return true;
}

/* As it is compared. Data NULL: the turn has a problem, or no memory. */
static str read_value(struct pawl_turn *turn, str json)
{
    struct node *node;
    str value = STR_NONE;

    turn_check_json(turn, "subscription", json);
    if (turn->problem.data || turn->status != PAWL_OK)
        return STR_NONE;
    if (node_read_json(turn->scope, json, &node) != PAWL_OK ||
        canonical_print(turn->scope, node, &value) != PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
    return value;
}

void say_subscribe(struct pawl_turn *turn, unsigned signal, const char *value_json)
{
    struct code_values *values = &turn->subscriptions[signal];
    str value;

    if (!value_json) {
        values->count = 0;
        return;
    }
    value = read_value(turn, str_of(value_json));
    if (!value.data || find_value(values, value) < values->count)
        return;
    if (values->count == LIMIT_SUBSCRIPTIONS)
        turn_problem(turn,
                     "the handler subscribed to more than %u values of the signal '%s'; take back "
                     "those that it no longer needs with PAWL_UNSUBSCRIBE",
                     LIMIT_SUBSCRIPTIONS, turn->type->signals[signal]);
    else if (!add_value(values, value, &turn->scope->arena))
        turn->status = scope_no_memory(turn->scope);
}

void say_unsubscribe(struct pawl_turn *turn, unsigned signal, const char *value_json)
{
    struct code_values *values = &turn->subscriptions[signal];
    str value = value_json ? read_value(turn, str_of(value_json)) : STR_NONE;
    uint32_t at = find_value(values, value);

    if (!value_json)
        values->count = 0;
    else if (value.data && at < values->count)
        ARRAY_DROP(values->items, values->count, at);
}

/* The signal's place in the type; false: it is the turn's problem. */
static bool find_signal(struct pawl_turn *turn, const char *name, unsigned *out)
{
    *out = turn ? names_find(turn->type->signals, name) : 0;
    if (turn && *out == names_count(turn->type->signals))
        turn_problem(turn, "the handler subscribed to '%.80s', which its type does not declare",
                     name ? name : "");
    return turn && *out < names_count(turn->type->signals);
}

void pawl_turn_subscribe(pawl_turn *turn, const char *signal, const char *value_json)
{
    unsigned at;

    if (find_signal(turn, signal, &at))
        say_subscribe(turn, at, value_json);
}

void pawl_turn_unsubscribe(pawl_turn *turn, const char *signal, const char *value_json)
{
    unsigned at;

    if (find_signal(turn, signal, &at))
        say_unsubscribe(turn, at, value_json);
}

static void tell_first(struct pawl_turn *turn, str signal, str value)
{
    struct effect_list *awaited = &turn->answer->signals;

    for (uint32_t i = 0; i < awaited->count; i++)
        if (str_eq(awaited->items[i].name, signal))
            awaited->items[i].state = value;
}

void turn_tell_subscriptions(struct pawl_turn *turn)
{
    for (unsigned i = 0; i < names_count(turn->type->signals); i++) {
        const struct code_values *values = &turn->subscriptions[i];
        str signal = str_of(turn->type->signals[i]);

        for (uint32_t v = 0; v < values->count && turn->status == PAWL_OK; v++)
            turn->status = effect_add(
                turn->scope, &turn->answer->subscriptions,
                (struct effect){ .kind = EFFECT_AWAIT, .name = signal, .state = values->items[v] });
        if (values->count > 0)
            tell_first(turn, signal, values->items[0]);
    }
}

/* ---- stored with the state ---- */

/* Older programs stored values as they were written: two of them may be one. */
static bool read_stored(struct scope *scope, const struct node *node, struct code_values *out)
{
    str value;

    return canonical_print(scope, node, &value) == PAWL_OK &&
           (find_value(out, value) < out->count || add_value(out, value, &scope->arena));
}

static bool read_values(struct scope *scope, const struct node *first, const struct node *more,
                        struct code_values *out)
{
    bool ok = !first || read_stored(scope, first, out);

    for (const struct node *node = more && more->kind == NODE_ARRAY ? more->first : NULL;
         node && ok; node = node->next)
        ok = read_stored(scope, node, out);
    return ok;
}

pawl_status subscriptions_read(struct scope *scope, const pawl_code_type *type,
                               const struct node *stored, struct code_values **out)
{
    const struct node *firsts = stored ? node_find(stored, "subscriptions") : NULL;
    const struct node *mores = stored ? node_find(stored, MORE) : NULL;
    unsigned count = names_count(type->signals);
    bool ok;

    *out = ARENA_ARRAY(&scope->arena, struct code_values, count + 1);
    ok = *out != NULL;
    for (unsigned i = 0; i < count && ok; i++)
        ok = read_values(scope, node_find(firsts, type->signals[i]),
                         node_find(mores, type->signals[i]), &(*out)[i]);
    return ok ? PAWL_OK : scope_no_memory(scope);
}

static void print_others(const struct code_values *values, struct buf *out)
{
    json_open(out, '[');
    for (uint32_t i = 1; i < values->count; i++)
        json_raw(out, values->items[i]);
    json_close(out, ']');
}

/* An object of the signals that have at least `least` values; none: nothing. */
static void print_some(const struct pawl_turn *turn, const char *key, uint32_t least,
                       struct buf *out)
{
    bool has_any = false;

    for (unsigned i = 0; turn->subscriptions && i < names_count(turn->type->signals); i++) {
        const struct code_values *values = &turn->subscriptions[i];

        if (values->count < least)
            continue;
        if (!has_any)
            json_put_open(out, key, '{');
        has_any = true;
        json_key(out, turn->type->signals[i]);
        if (least > 1)
            print_others(values, out);
        else
            json_raw(out, values->items[0]);
    }
    if (has_any)
        json_close(out, '}');
}

void subscriptions_print(const struct pawl_turn *turn, struct buf *out)
{
    print_some(turn, "subscriptions", 1, out);
    print_some(turn, MORE, 2, out);
}
