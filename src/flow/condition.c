/* condition.c - the six conditions of a branch, matched and never evaluated (B19, B20).
 *
 * `result == true`, `== false`, `== nil`, `!= nil`, and `result == V`, `result != V`, where V is
 * the rest of the text, byte for byte. Strings are compared as they are, numbers by the text
 * they were written in; no other value equals a V. */
#include "base/node.h"
#include "flow/flow_int.h"

#define EQUAL   STR("result == ")
#define UNEQUAL STR("result != ")

bool condition_is_pattern(str text)
{
    return (str_starts(text, EQUAL) || str_starts(text, UNEQUAL)) && text.size > EQUAL.size;
}

static bool is_word(const struct node *result, const char *word)
{
    return result->kind == NODE_STRING && str_is(result->text, word);
}

static bool is_nil(const struct node *result)
{
    return result->kind == NODE_NULL || is_word(result, "") || is_word(result, "nil");
}

static bool is_bool(const struct node *result, bool truth)
{
    return (result->kind == NODE_BOOL && result->truth == truth) ||
           is_word(result, truth ? "true" : "false");
}

static bool equals(const struct node *result, str value)
{
    return (result->kind == NODE_STRING || result->kind == NODE_NUMBER) &&
           str_eq(result->text, value);
}

/* The special forms come before the general ones: `!= true` is a general one. */
bool condition_matches(str text, const struct node *result)
{
    str value = str_from(text, EQUAL.size);

    if (!condition_is_pattern(text))
        return false;
    if (str_starts(text, UNEQUAL))
        return str_is(value, "nil") ? !is_nil(result) : !equals(result, value);
    if (str_is(value, "true") || str_is(value, "false"))
        return is_bool(result, str_is(value, "true"));
    return str_is(value, "nil") ? is_nil(result) : equals(result, value);
}
