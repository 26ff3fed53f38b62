/* people_words.c - times, statuses and members of answers, for people. */
#include "base/buf.h"
#include "base/ids.h"
#include "base/time.h"
#include "surface/cli/term.h"
#include <stdlib.h>
#include <time.h>

#define NARROW      100 /* columns */
#define DATE_SIZE   11 /* "2026-05-01 " */

#define SECOND 1000
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * (int64_t)HOUR)

str member_str(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);

    return node && (node->kind == NODE_STRING || node->kind == NODE_NUMBER) ? node->text : STR("");
}

str member_json(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);

    return node && node->kind != NODE_NULL ? node->raw : STR_NONE;
}

int64_t member_int(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);
    int64_t value = 0;

    return node && node_to_i64(node, &value) ? value : 0;
}

const char *counted(struct arena *arena, int64_t count, const char *one, const char *many)
{
    const char *noun = count == 1 ? one : many;
    size_t size = strlen(noun) + 32;
    char *text = arena_alloc(arena, size);

    if (text)
        snprintf(text, size, "%lld %s", (long long)count, noun);
    return text ? text : "";
}

bool member_true(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);

    return node && node->kind == NODE_BOOL && node->truth;
}

struct status_look {
    const char *status, *mark;
    enum style style;
};

static const struct status_look looks[] = {
    { "running", "▶", LIVE },   { STATUS_WAITING, "●", WARN }, { "paused", "‖", WARN },
    { "completed", "✔", GOOD }, { "done", "✔", GOOD },         { "failed", "✘", BAD },
    { "ended", "◆", BOLD },     { "cancelled", "■", DIM },     { "pending", "○", DIM },
    { "ready", "▷", LIVE },
};

str status_words(str status)
{
    return str_is(status, "suspended") ? STR(STATUS_WAITING) : status;
}

static const struct status_look *look_of(str status)
{
    static const struct status_look unknown = { "", "·", PLAIN };

    status = status_words(status);
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++)
        if (str_is(status, looks[i].status))
            return &looks[i];
    return &unknown;
}

/* An end that declares no kind is shown as neither good nor bad, though the wire says
 * `completed`. */
str status_shown(const struct node *instance)
{
    str status = member_str(instance, "status");

    return str_is(status, "completed") && member_str(instance, "terminal_kind").size == 0
               ? STR("ended")
               : status_words(status);
}

enum style status_style(str status)
{
    return look_of(status)->style;
}

const char *status_mark(str status)
{
    return look_of(status)->mark;
}

int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec / 1000000;
}

uint64_t id_number(str id)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number = 0;

    id.size = id.size > ID_SIZE ? ID_SIZE : id.size; /* a step's begins with its instance's */
    return id_parse(id, &number, random) ? number : 0;
}

str short_id(const struct term *term, str id, char text[SHORT_ID_SIZE])
{
    uint64_t number = id_number(id);

    if (!term->tty || term->width >= NARROW || number == 0)
        return id;
    snprintf(text, SHORT_ID_SIZE, "%llu", (unsigned long long)number);
    return str_of(text);
}

/* With date and zone: a reader may be elsewhere, and read it later. */
void moment_print(str rfc3339, char out[MOMENT_SIZE])
{
    int64_t at_ms;

    out[0] = '\0';
    if (!time_parse(rfc3339, &at_ms))
        return;
    time_print(at_ms, out);
    out[DATE_SIZE - 1] = ' ';
    memcpy(strchr(out, '.'), "Z", sizeof "Z"); /* without milliseconds */
}

void moment_cut(char moment[MOMENT_SIZE])
{
    if (strlen(moment) > 16)
        snprintf(moment + 16, MOMENT_SIZE - 16, "Z");
}

void moment_print_beside(const char *other, str rfc3339, char out[MOMENT_SIZE])
{
    moment_print(rfc3339, out);
    if (out[0] && strncmp(other, out, DATE_SIZE) == 0)
        memmove(out, out + DATE_SIZE, strlen(out + DATE_SIZE) + 1);
}

void span_print(int64_t ms, char out[MOMENT_SIZE])
{
    long long tenths = ms / 100;

    if (ms < SECOND)
        snprintf(out, MOMENT_SIZE, "%lld ms", (long long)ms);
    else if (ms < MINUTE)
        snprintf(out, MOMENT_SIZE, "%lld.%lld s", tenths / 10, tenths % 10);
    else if (ms < HOUR)
        snprintf(out, MOMENT_SIZE, "%lld min", (long long)(ms / MINUTE));
    else if (ms < 2 * DAY)
        snprintf(out, MOMENT_SIZE, "%lld h", (long long)(ms / HOUR));
    else
        snprintf(out, MOMENT_SIZE, "%lld d", (long long)(ms / DAY));
}

/* From an hour on in two units: "6 d 23 h". */
static void print_span_finely(int64_t ms, char out[MOMENT_SIZE])
{
    bool is_day = ms >= DAY;
    long long unit = is_day ? DAY : HOUR, rest = ms % unit / (is_day ? HOUR : MINUTE);
    int size;

    if (ms < HOUR) {
        span_print(ms, out);
        return;
    }
    size = snprintf(out, MOMENT_SIZE, "%lld %s", ms / unit, is_day ? "d" : "h");
    if (rest > 0)
        snprintf(out + size, (size_t)(MOMENT_SIZE - size), " %lld %s", rest, is_day ? "h" : "min");
}

/* A time as its distance from now; `past` are words for one that is over, "": "... ago". */
static void print_distance(str rfc3339, const char *past, char out[MOMENT_SIZE])
{
    char span[MOMENT_SIZE];
    int64_t at_ms, distance;

    out[0] = '\0';
    if (!time_parse(rfc3339, &at_ms))
        return;
    distance = at_ms - now_ms();
    print_span_finely(distance < 0 ? -distance : distance, span);
    if (distance >= 0)
        snprintf(out, MOMENT_SIZE, "in %.30s", span);
    else if (*past)
        snprintf(out, MOMENT_SIZE, "%s %.20s", past, span);
    else
        snprintf(out, MOMENT_SIZE, "%.30s ago", span);
}

void distance_print(str rfc3339, char out[MOMENT_SIZE])
{
    print_distance(rfc3339, "", out);
}

void until_print(str rfc3339, char out[MOMENT_SIZE])
{
    print_distance(rfc3339, "overdue by", out);
}

void elapsed_print(str before, str after, char out[MOMENT_SIZE])
{
    int64_t from_ms, to_ms;
    char span[MOMENT_SIZE];

    out[0] = '\0';
    if (!time_parse(before, &from_ms) || !time_parse(after, &to_ms) || to_ms <= from_ms)
        return;
    span_print(to_ms - from_ms, span);
    snprintf(out, MOMENT_SIZE, "+%.30s", span);
}
