/* chart.c - see chart.h. */
#include "chart.h"
#include <stdio.h>
#include <string.h>

/* ---- all of them ---- */

static unsigned power(unsigned base, unsigned exponent)
{
    return exponent ? base * power(base, exponent - 1) : 1;
}

/* A kind of chart is its number of places and how each but the first ends: 1 + 3 + 9 of them. */
static bool kind_of(unsigned kind, struct chart *out)
{
    *out = (struct chart){ .places = 1 };
    while (out->places <= PLACES && kind >= power(3, (unsigned)out->places - 1))
        kind -= power(3, (unsigned)out->places++ - 1);
    for (int place = 1; place < out->places && out->places <= PLACES; place++, kind /= 3)
        out->ending[place] = (signed char)(kind % 3);
    return out->places <= PLACES;
}

/* A transition is absent, or leads to one of the places with or without a gate. */
static unsigned fill(unsigned code, struct chart *out)
{
    unsigned choices = 1 + 2 * (unsigned)out->places;

    memset(out->leads_to, NOWHERE, sizeof out->leads_to);
    for (int place = 0; place < out->places; place++)
        for (int hand = 0; hand < HANDS && out->ending[place] == GOES_ON; hand++) {
            unsigned choice = code % choices;

            code /= choices;
            if (choice > 0) {
                out->leads_to[place][hand] = (signed char)((choice - 1) / 2);
                out->gated[place][hand] = (choice - 1) % 2;
            }
        }
    return code; /* more than 0: there is no such chart */
}

/* The same chart with other names: hands exchanged, or the two places behind the first. */
static struct chart renamed(const struct chart *chart, bool hands, bool places)
{
    struct chart other = *chart;

    for (int place = 0; place < chart->places; place++) {
        int as = places && place ? 3 - place : place;

        other.ending[as] = chart->ending[place];
        for (int hand = 0; hand < HANDS; hand++) {
            int to = chart->leads_to[place][hand], with = hands ? 1 - hand : hand;

            other.leads_to[as][with] = (signed char)(places && to > 0 ? 3 - to : to);
            other.gated[as][with] = chart->gated[place][hand];
        }
    }
    return other;
}

static int compare(const struct chart *a, const struct chart *b)
{
    int order = memcmp(a->ending, b->ending, sizeof a->ending);

    if (!order)
        order = memcmp(a->leads_to, b->leads_to, sizeof a->leads_to);
    return order ? order : memcmp(a->gated, b->gated, sizeof a->gated);
}

/* Of those that differ in names alone, the first is taken. */
static bool is_first_of_its_names(const struct chart *chart)
{
    for (int which = 1; which < (chart->places == PLACES ? 4 : 2); which++) {
        struct chart other = renamed(chart, which & 1, which & 2);

        if (compare(&other, chart) < 0)
            return false;
    }
    return true;
}

bool chart_next(struct chart_walk *walk, struct chart *out)
{
    while (kind_of(walk->kind, out)) {
        if (fill(walk->code, out)) {
            walk->kind++;
            walk->code = 0;
            continue;
        }
        walk->code++;
        walk->raw++;
        if (!is_first_of_its_names(out))
            continue;
        out->number = walk->found++;
        out->backwards = out->number % 2;
        return true;
    }
    return false;
}

static bool is_way_to_cancel(const struct chart *chart, int place, int hand)
{
    int to = chart->leads_to[place][hand];

    return to != NOWHERE && !chart->gated[place][hand] && chart->ending[to] == ENDS_BY_CANCEL;
}

bool chart_has_two_ways_to_cancel(const struct chart *chart)
{
    for (int place = 0; place < chart->places; place++)
        if (is_way_to_cancel(chart, place, 0) && is_way_to_cancel(chart, place, 1))
            return true;
    return false;
}

/* ---- in words ---- */

const char *place_name(int place)
{
    return (const char *const[]){ "start", "middle", "other" }[place];
}

const char *hand_name(int hand)
{
    return (const char *const[]){ "left", "right" }[hand];
}

static size_t print_transitions(const struct chart *chart, char *out, size_t size)
{
    const char *comma = "";
    size_t used = 0;

    for (int i = 0; i < chart->places * HANDS; i++) {
        int at = chart->backwards ? chart->places * HANDS - 1 - i : i;
        int place = at / HANDS, hand = at % HANDS, to = chart->leads_to[place][hand];

        if (to == NOWHERE)
            continue;
        used +=
            (size_t)snprintf(out + used, size - used,
                             "%s{\"from_state\":\"%s\",\"action\":\"%s\",\"to_state\":\"%s\"%s}",
                             comma, place_name(place), hand_name(hand), place_name(to),
                             chart->gated[place][hand] ? ",\"guard\":\"gate\"" : "");
        comma = ",";
    }
    return used;
}

/* Kinds: every other ending is called failure, success, or has no kind at all. */
static void print_endings(const struct chart *chart, char *names, char *kinds, size_t size)
{
    static const char *const words[] = { NULL, "success", "failure" };

    names[0] = kinds[0] = '\0';
    for (int place = 1; place < chart->places; place++) {
        const char *kind = chart->ending[place] == ENDS_BY_CANCEL
                               ? "cancel"
                               : words[(chart->number + (unsigned)place) % 3];
        size_t at = strlen(names), kind_at = strlen(kinds);

        if (chart->ending[place] == GOES_ON)
            continue;
        snprintf(names + at, size - at, "%s\"%s\"", at ? "," : "", place_name(place));
        if (kind)
            snprintf(kinds + kind_at, size - kind_at, "%s\"%s\":\"%s\"", kind_at ? "," : "",
                     place_name(place), kind);
    }
}

void chart_print(const struct chart *chart, char *out, size_t size)
{
    char names[100], kinds[100];
    size_t used = (size_t)snprintf(out, size, "{\"states\":[");

    for (int i = 0; i < chart->places; i++)
        used += (size_t)snprintf(out + used, size - used, "%s\"%s\"", i ? "," : "",
                                 place_name((int)((unsigned)i + chart->number) % chart->places));
    print_endings(chart, names, kinds, sizeof names);
    used += (size_t)snprintf(out + used, size - used,
                             "],\"initial_state\":\"start\",\"terminal_states\":[%s],"
                             "\"terminal_kinds\":{%s},\"transitions\":[",
                             names, kinds);
    used += print_transitions(chart, out + used, size - used);
    snprintf(out + used, size - used, "]}");
}

/* ---- what must happen ---- */

static const char *go(const struct chart *chart, struct trace *trace, int hand, bool named,
                      bool by_cancel)
{
    int from = trace->place, to = chart->leads_to[from][hand];

    trace->steps[trace->length].from = from;
    trace->steps[trace->length].hand = hand;
    trace->steps[trace->length].to = to;
    trace->steps[trace->length].gated = chart->gated[from][hand];
    trace->steps[trace->length].named = named;
    trace->steps[trace->length++].by_cancel = by_cancel;
    trace->place = to;
    return "ok";
}

static const char *call_off(const struct chart *chart, struct trace *trace)
{
    for (int i = 0; i < HANDS; i++) {
        int hand = chart->backwards ? HANDS - 1 - i : i;

        if (is_way_to_cancel(chart, trace->place, hand))
            return go(chart, trace, hand, false, true);
    }
    return "no-cancel-transition";
}

const char *chart_call(const struct chart *chart, struct trace *trace, enum call call)
{
    bool asserted = call == FIRE_A_ASSERTED || call == FIRE_B_ASSERTED;
    int hand = call == FIRE_A || call == FIRE_A_ASSERTED ? 0 : 1;

    if (chart->ending[trace->place] != GOES_ON)
        return "terminal";
    if (call == CANCEL)
        return call_off(chart, trace);
    if (call == FIRE_UNKNOWN || chart->leads_to[trace->place][hand] == NOWHERE)
        return "invalid-transition";
    if (chart->gated[trace->place][hand] && !asserted)
        return "guard-not-satisfied";
    return go(chart, trace, hand, asserted, false);
}
