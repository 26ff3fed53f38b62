/* cron.c - "0 2 * * mon-fri" and its like. */
#include "calendar/calendar.h"
#include <stdio.h>

#define BLANKS " \t"

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul",
                                           "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const weekday_names[] = {
    "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL
};

static const struct field {
    const char *word;
    uint32_t low, high;
    const char *const *names; /* of `low` and those behind it; NULL: none */
} fields[] = {
    { "minute", 0, 59, NULL },
    { "hour", 0, 23, NULL },
    { "day", 1, 31, NULL },
    { "month", 1, 12, month_names },
    { "weekday", 0, 7, weekday_names }, /* 0 and 7: Sunday */
};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static const struct {
    const char *word, *text;
} nicknames[] = {
    { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },
    { "@midnight", "0 0 * * *" }, { "@weekly", "0 0 * * 0" },
    { "@monthly", "0 0 1 * *" },  { "@yearly", "0 0 1 1 *" },
    { "@annually", "0 0 1 1 *" }, { NULL, NULL },
};

static bool is_named(str text, const char *name)
{
    if (text.size != 3)
        return false;
    for (size_t i = 0; i < 3; i++)
        if ((text.data[i] | 0x20) != name[i])
            return false;
    return true;
}

static bool read_value(const struct field *field, str text, uint32_t *out)
{
    uint64_t number;

    for (uint32_t i = 0; field->names && field->names[i]; i++)
        if (is_named(text, field->names[i])) {
            *out = field->low + i;
            return true;
        }
    if (!str_to_u64(text, &number) || number < field->low || number > field->high)
        return false;
    *out = (uint32_t)number;
    return true;
}

/* VALUE, FIRST-LAST or *, each with /STEP. A value with a step goes on to the end. */
static bool read_range(const struct field *field, str text, uint64_t *bits)
{
    str range = str_before(text, '/'), step_text = str_after(text, '/');
    uint32_t first = field->low, last = field->high;
    uint64_t step = 1;

    if (step_text.data && (!str_to_u64(step_text, &step) || step == 0 || step > field->high))
        return false;
    if (!str_is(range, "*")) {
        str end = str_after(range, '-');

        if (!read_value(field, str_before(range, '-'), &first) ||
            (end.data && (!read_value(field, end, &last) || last < first)))
            return false;
        if (!end.data && !step_text.data)
            last = first;
    }
    for (uint64_t i = first; i <= last; i += step)
        *bits |= UINT64_C(1) << i;
    return true;
}

static bool read_field(const struct field *field, str text, uint64_t *bits,
                       char problem[CRON_PROBLEM_SIZE])
{
    str rest = text, item;

    *bits = 0;
    while (str_take(&rest, ',', &item))
        if (!read_range(field, item, bits)) {
            (void)snprintf(problem, CRON_PROBLEM_SIZE,
                           "the %s: expected %u to %u%s, a range, a list or *, found '%.*s'",
                           field->word, field->low, field->high, field->names ? " or a name" : "",
                           (int)(item.size < 40 ? item.size : 40), item.data);
            return false;
        }
    if (text.data[text.size - 1] != ',')
        return true;
    (void)snprintf(problem, CRON_PROBLEM_SIZE, "the %s: a list does not end with a comma",
                   field->word);
    return false;
}

/* The next word; false: it was the last. */
static bool take_word(str *rest, str *out)
{
    size_t blanks = str_span(*rest, BLANKS), size = 0;

    *rest = str_from(*rest, blanks);
    while (size < rest->size && !strchr(BLANKS, rest->data[size]))
        size++;
    *out = (str){ rest->data, size };
    *rest = str_from(*rest, size);
    return size > 0;
}

static str without_nickname(str text)
{
    for (uint32_t i = 0; nicknames[i].word; i++)
        if (str_is(text, nicknames[i].word))
            return str_of(nicknames[i].text);
    return text;
}

bool cron_parse(str text, struct cron *out, char problem[CRON_PROBLEM_SIZE])
{
    str rest = without_nickname(str_trim(text, BLANKS)), word;
    uint64_t bits[FIELD_COUNT];
    bool is_any[FIELD_COUNT];
    uint32_t count = 0;

    for (; take_word(&rest, &word); count++) {
        if (count < FIELD_COUNT && !read_field(&fields[count], word, &bits[count], problem))
            return false;
        if (count < FIELD_COUNT)
            is_any[count] = word.data[0] == '*';
    }
    if (count != FIELD_COUNT) {
        (void)snprintf(problem, CRON_PROBLEM_SIZE,
                       "expected 5 fields (minute hour day month weekday) or @daily and its like, "
                       "found %u",
                       count);
        return false;
    }
    *out = (struct cron){ .minutes = bits[0],
                          .hours = (uint32_t)bits[1],
                          .days = (uint32_t)bits[2],
                          .months = (uint32_t)bits[3],
                          .weekdays = (uint32_t)(bits[4] | bits[4] >> 7) & 0x7f,
                          .any_day = is_any[2],
                          .any_weekday = is_any[4] };
    return true;
}
