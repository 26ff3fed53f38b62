/* names.c - which steps an expression speaks of, as far as its text tells. */
#include "expr/expr.h"

static bool is_word_byte(char byte)
{
    return byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z');
}

static size_t skip_blank(str text, size_t at)
{
    return at + str_span(str_from(text, at), " \t\r\n");
}

/* `.NAME` */
static bool read_word(str text, size_t at, str *out)
{
    size_t from = skip_blank(text, at), to = from;

    while (to < text.size && is_word_byte(text.data[to]))
        to++;
    *out = (str){ text.data + from, to - from };
    return to > from;
}

/* `["NAME"]`; a name with a backslash is left to the run. */
static bool read_quoted(str text, size_t at, str *out)
{
    size_t from = skip_blank(text, at), to;
    char quote = from < text.size ? text.data[from] : '\0';

    if (quote != '"' && quote != '\'')
        return false;
    for (to = ++from; to < text.size && text.data[to] != quote; to++)
        if (text.data[to] == '\\')
            return false;
    *out = (str){ text.data + from, to - from };
    at = skip_blank(text, to + 1);
    return at < text.size && text.data[at] == ']';
}

/* Is the word at `at` a name of its own, neither a part of one nor a member? */
static bool stands_alone(str text, size_t at)
{
    return at == 0 || (!is_word_byte(text.data[at - 1]) && text.data[at - 1] != '.' &&
                       text.data[at - 1] != '"' && text.data[at - 1] != '\'');
}

bool expr_next_step(str text, size_t *at, str *out)
{
    for (; *at + 5 < text.size; ++*at) {
        size_t next;

        if (memcmp(text.data + *at, "steps", 5) != 0 || !stands_alone(text, *at))
            continue;
        next = skip_blank(text, *at + 5);
        if (next < text.size && ((text.data[next] == '.' && read_word(text, next + 1, out)) ||
                                 (text.data[next] == '[' && read_quoted(text, next + 1, out)))) {
            *at = (size_t)(out->data - text.data);
            return true;
        }
    }
    return false;
}
