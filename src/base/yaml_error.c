/* yaml_error.c - what libyaml complains of, in plain words: what was expected, what was found. */
#include "base/node_int.h"
#include "base/text_int.h"
#include <stdio.h>

#define WORD_SIZE_MAX 24 /* of the author's text in an error */

/* The word at the beginning of `rest`, in quotes, or what is there instead of one. */
static void show_word(str rest, char *out, size_t size)
{
    size_t count = 0;
    str word;

    while (count < rest.size && !memchr(" \t\r\n", rest.data[count], 4))
        count++;
    word = utf8_head((str){ rest.data, count }, WORD_SIZE_MAX);
    if (rest.size == 0)
        (void)snprintf(out, size, "the end of the text");
    else if (count == 0)
        (void)snprintf(out, size, "the end of the %s", rest.data[0] == ' ' ? "word" : "line");
    else
        (void)snprintf(out, size, "'%.*s'", STR_ARG(word));
}

/* The first character alone: what follows it is not at fault. */
static str first_of(str rest)
{
    size_t size = rest.size > 0 ? utf8_size(rest) : 0;

    return size > 0 ? (str){ rest.data, size } : rest;
}

/* Where libyaml's `problem` has `part`, `expected` is what to say. With `tail` the line follows in
 * which the thing began that libyaml was reading, and then `tail`. */
static const struct {
    const char *part, *expected, *tail;
    bool is_one; /* one character is at fault, not a word */
} plain_words[] = {
    { "',' or ']'", "',' or ']' in the list that begins", "", true },
    { "',' or '}'", "',' or '}' in the map that begins", "", true },
    { "mapping values are not allowed",
      "quotes around a value that has ': ' in it, or a line indented like those beside it", NULL,
      true },
    { "unexpected end of stream", "the closing quote of the text that begins", "", false },
    { "unexpected document indicator", "the closing quote of the text that begins", "", false },
    { "did not find expected key", "a key of the map that begins", ", indented like its first key",
      false },
    { "expected '-' indicator", "'- ', an item of the list that begins", "", false },
    { "could not find expected ':'", "':' and a space behind the key", "", false },
    { "block sequence entries", "a list on lines of its own", NULL, false },
    { "expected node content", "a value", NULL, true },
    { "alphabetic or numeric", "quotes around a value that begins with '*' or '&'", NULL, false },
    { "unknown escape", "an escape that YAML knows (in single quotes \\ is no escape)", NULL, false },
};

static bool explain_plainly(const char *problem, uint32_t line, str rest,
                            struct yaml_complaint *out)
{
    for (size_t i = 0; i < sizeof plain_words / sizeof plain_words[0]; i++) {
        const char *expected = plain_words[i].expected, *tail = plain_words[i].tail;

        if (!strstr(problem, plain_words[i].part))
            continue;
        if (tail)
            (void)snprintf(out->expected, sizeof out->expected, "%s in line %u%s", expected, line,
                           tail);
        else
            (void)snprintf(out->expected, sizeof out->expected, "%s", expected);
        show_word(plain_words[i].is_one ? first_of(rest) : rest, out->found, sizeof out->found);
        return true;
    }
    return false;
}

/* A character that begins no plain value: a TAB before the first word, or one that is reserved. */
static bool explain_character(const char *problem, str rest, struct yaml_complaint *out)
{
    if (strstr(problem, "tab character") || (rest.size > 0 && rest.data[0] == '\t')) {
        (void)snprintf(out->expected, sizeof out->expected,
                       "spaces before the first word of a line");
        (void)snprintf(out->found, sizeof out->found,
                       "a TAB; YAML is not indented with TABs");
        return true;
    }
    if (!strstr(problem, "cannot start any token") || rest.size == 0)
        return false;
    (void)snprintf(out->expected, sizeof out->expected,
                   "quotes around a value that begins with '%.*s'", STR_ARG(first_of(rest)));
    show_word(rest, out->found, sizeof out->found);
    return true;
}

/* libyaml's own words: "did not find expected X", "found X", or a sentence. */
static void explain_as_told(const char *problem, str rest, struct yaml_complaint *out)
{
    static const char missing[] = "did not find expected ", found[] = "found ";

    if (strncmp(problem, missing, sizeof missing - 1) == 0) {
        (void)snprintf(out->expected, sizeof out->expected, "%s", problem + sizeof missing - 1);
        show_word(rest, out->found, sizeof out->found);
        return;
    }
    (void)snprintf(out->expected, sizeof out->expected, "YAML");
    (void)snprintf(out->found, sizeof out->found, "%s",
                   strncmp(problem, found, sizeof found - 1) == 0 ? problem + sizeof found - 1
                                                                  : problem);
}

bool yaml_explain_template(str text, size_t at, struct yaml_complaint *out)
{
    str rest = at < text.size ? str_from(text, at) : STR("");
    str line = str_before(rest, '\n'), shown;
    const char *end;

    end = str_starts(line, STR("{{")) ? memmem(line.data, line.size, "}}", 2) : NULL;
    if (!end)
        return false;
    shown = utf8_head((str){ line.data, (size_t)(end - line.data) + 2 }, sizeof out->found - 32);
    (void)snprintf(out->expected, sizeof out->expected,
                   "quotes around a value that has a template in it");
    (void)snprintf(out->found, sizeof out->found, "%.*s without them", STR_ARG(shown));
    return true;
}

void yaml_explain(const char *problem, uint32_t line, str text, size_t at,
                  struct yaml_complaint *out)
{
    str rest = at < text.size ? str_from(text, at) : STR("");

    if (!yaml_explain_template(text, at, out) && !explain_character(problem, rest, out) &&
        !explain_plainly(problem, line, rest, out))
        explain_as_told(problem, rest, out);
}
