/* condition.c - the six conditions of a branch, matched and never evaluated (B19, B20).
 *
 * `result == true`, `== false`, `== nil`, `!= nil`, and `result == V`, `result != V`, where V is
 * the rest of the text, byte for byte; from compiler 3 on a V in quotes is the text between them.
 * Strings are compared as they are, numbers by the text they were written in; no other value
 * equals a V. */
#include "base/node.h"
#include "flow/flow_int.h"

#define EQUAL   STR("result == ")
#define UNEQUAL STR("result != ")

bool condition_is_pattern(str text)
{
    return (str_starts(text, EQUAL) || str_starts(text, UNEQUAL)) && text.size > EQUAL.size;
}

/* V of one of the six forms. */
str condition_value(str text)
{
    return str_from(text, EQUAL.size);
}

bool condition_is_quoted(str text)
{
    str value = condition_is_pattern(text) ? condition_value(text) : STR_NONE;
    char quote = value.size >= 2 ? value.data[0] : '\0';

    return (quote == '"' || quote == '\'') &&
           memchr(value.data + 1, quote, value.size - 1) == value.data + value.size - 1;
}

bool condition_begins_quoted(str text)
{
    return condition_is_pattern(text) && memchr("\"'", condition_value(text).data[0], 2);
}

static bool is_word(const struct node *result, const char *word)
{
    return result->kind == NODE_STRING && str_is(result->text, word);
}

static bool is_nil(const struct node *result)
{
    return result->kind == NODE_NULL || is_word(result, "") || is_word(result, "nil");
}

static bool equals(const struct node *result, str value)
{
    return (result->kind == NODE_STRING || result->kind == NODE_NUMBER) &&
           str_eq(result->text, value);
}

/* The special forms come before the general ones: `!= true` is a general one. */
bool condition_matches(const struct plan_target *target, const struct node *result)
{
    str text = target->condition, value = condition_value(text);

    if (target->is_quoted) /* only the general forms have a V in quotes: "true" is the text */
        return equals(result, (str){ value.data + 1, value.size - 2 }) == str_starts(text, EQUAL);
    if (str_starts(text, UNEQUAL))
        return str_is(value, "nil") ? !is_nil(result) : !equals(result, value);
    if (str_is(value, "true") || str_is(value, "false"))
        return equals(result, value) ||
               (result->kind == NODE_BOOL && result->truth == str_is(value, "true"));
    return str_is(value, "nil") ? is_nil(result) : equals(result, value);
}
