/* when.c - times as people type them: RFC 3339, a date, a duration from now, a word for a day.
 *
 * A day begins at midnight UTC, as every time that is printed is UTC. */
#include "base/time.h"
#include "surface/cli/cli.h"

#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

/* "now", or the beginning of a day; *is_day: the latter. */
static bool read_word(str text, int64_t now, int64_t *out, bool *is_day)
{
    static const struct {
        const char *word;
        int64_t days;
    } words[] = { { "yesterday", -1 }, { "today", 0 }, { "tomorrow", 1 } };

    *is_day = false;
    *out = now;
    if (str_is(text, "now"))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_is(text, words[i].word)) {
            *out = now - now % DAY_MS + words[i].days * DAY_MS;
            *is_day = true;
            return true;
        }
    return false;
}

/* What is left out of "2026-11-08T09:30:00Z" from its end. */
static bool read_date(str text, int64_t *out, bool *is_day)
{
    static const struct {
        size_t size;
        const char *rest;
    } forms[] = { { 10, "T00:00:00Z" }, { 16, ":00Z" }, { 19, "Z" } };
    char whole[32];

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text.size != forms[i].size)
            continue;
        snprintf(whole, sizeof whole, "%.*s%s", STR_ARG(text), forms[i].rest);
        *is_day = i == 0;
        if (time_parse(str_of(whole), out))
            return true;
    }
    *is_day = false;
    return time_parse(text, out);
}

bool when_read(enum option_kind kind, const char *value, char out[WHEN_SIZE])
{
    int64_t now = now_ms(), at_ms, span_ms;
    str text = str_of(value);
    bool is_day = false;

    if (duration_parse(text, &span_ms))
        at_ms = kind == OPTION_DUE ? now + span_ms : now - span_ms;
    else if (!read_word(text, now, &at_ms, &is_day) && !read_date(text, &at_ms, &is_day))
        return false;
    if (is_day && kind == OPTION_UNTIL)
        at_ms += DAY_MS - 1;
    time_print(at_ms, out);
    return true;
}

/* One side of a span; an open one is empty. */
static bool read_side(enum option_kind kind, str text, char out[WHEN_SIZE])
{
    char value[WHEN_SIZE];

    out[0] = '\0';
    if (text.size == 0)
        return true;
    if (text.size >= sizeof value)
        return false;
    snprintf(value, sizeof value, "%.*s", STR_ARG(text));
    return when_read(kind, value, out);
}

bool when_read_span(const char *value, char out[WHEN_SPAN_SIZE])
{
    const char *dots = strstr(value, "..");
    str first = dots ? (str){ value, (size_t)(dots - value) } : str_of(value);
    str last = dots ? str_of(dots + 2) : first;
    char from[WHEN_SIZE], to[WHEN_SIZE];
    int64_t span_ms;

    if (!dots && duration_parse(first, &span_ms))
        last = STR("now");
    if (first.size + last.size == 0 || !read_side(OPTION_SINCE, first, from) ||
        !read_side(OPTION_UNTIL, last, to))
        return false;
    snprintf(out, WHEN_SPAN_SIZE, "%s..%s", from, to);
    return true;
}

bool when_is_backward(const char *span)
{
    const char *dots = strstr(span, "..");
    int64_t from, to;

    return dots && time_parse((str){ span, (size_t)(dots - span) }, &from) &&
           time_parse(str_of(dots + 2), &to) && to < from;
}
