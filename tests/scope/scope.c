/* scope.c - small scope, exhaustively: D35's ten invariants over every machine of up to three
 * states and two actions. Here a systematic part of it; run_scope.py walks the whole. */
#include "lib/test.h"
#include "walk.h"
#include <stdio.h>

/* Those of one and two states, and of three that none of ends; see below. */
#define CHARTS_WITHOUT_END (6 + 355 + (117649 + 343 + 9 * 49 + 7 * 49) / 4)

static char words[3000];

static void walk(unsigned first, unsigned step, int places, int depth)
{
    struct walked count = { 0 };

    if (!walk_charts(first, UINT32_MAX, step, places, depth, &count, words, sizeof words))
        test_fail(__FILE__, __LINE__, "%s", words);
    printf("# %" PRIu64 " machines, %" PRIu64 " sequences, %" PRIu64 " calls\n", count.charts,
           count.sequences, count.calls);
    EXPECT(count.charts > 10);
}

/* 13 kinds of chart: 9 + 625 + 2 * 25 + 117649 + 4 * 2401 + 4 * 49 in all. */
TEST(scope, every_machine_of_three_states_and_two_actions_is_among_them)
{
    struct chart_walk all = { 0 };
    struct chart chart;
    unsigned by_places[PLACES + 1] = { 0 };

    while (chart_next(&all, &chart))
        by_places[chart.places]++;
    EXPECT_EQ(all.raw, 9 + 625 + 2 * 25 + 117649 + 4 * 2401 + 4 * 49);
    EXPECT_EQ(by_places[1] + by_places[2] + by_places[3], all.found);
    /* Burnside: how many each exchange of names leaves alone, over the number of exchanges.
     * None, actions, the two later states, both. */
    EXPECT_EQ(by_places[1], (9 + 3) / 2);
    EXPECT_EQ(by_places[2], (625 + 2 * 25 + 25 + 2 * 5) / 2);
    EXPECT_EQ(by_places[3], (117649 + 4 * 2401 + 4 * 49 + (343 + 4 * 49 + 4 * 7) +
                             (9 * 49 + 2 * 9) + (7 * 49 + 2 * 7)) /
                                4);
}

/* D35, D16, D18, D20-D23, D26, D40, A17-A23 */
TEST(scope, with_two_states_every_sequence_of_two_calls_keeps_all_ten_invariants)
{
    walk(0, 1, 2, 2);
}

TEST(scope, with_two_states_every_sequence_of_four_calls_keeps_them_on_a_part)
{
    walk(0, 29, 2, 4);
}

/* Prime strides, so that no place, kind or gate is always the same. */
TEST(scope, with_three_states_every_sequence_of_four_calls_keeps_them_on_a_part)
{
    walk(0, 2003, 3, 4);
}

TEST(scope, with_three_states_of_which_some_are_terminal_they_are_kept_on_a_part)
{
    walk(CHARTS_WITHOUT_END, 157, 3, 4);
}

/* ---- the judge has eyes: D45's buggy twins, forged ---- */

static const struct chart twin = { .places = 3,
                                   .ending = { GOES_ON, GOES_ON, ENDS },
                                   .leads_to = { { 1, NOWHERE }, { 1, 2 }, { NOWHERE, NOWHERE } },
                                   .gated = { { 0, 0 }, { 0, 1 }, { 0, 0 } } };
static char declaration[1500];

static void show(struct trace *trace, struct shown *out)
{
    static const enum call calls[] = { FIRE_A, FIRE_A_ASSERTED, FIRE_B_ASSERTED };

    chart_print(&twin, declaration, sizeof declaration);
    *trace = (struct trace){ 0 };
    *out = (struct shown){ .is_known = true, .count = 3 };
    snprintf(out->declaration, sizeof out->declaration, "%s", declaration);
    for (int i = 0; i < 3; i++) {
        struct shown_entry *entry = &out->entries[i];

        EXPECT_TEXT(chart_call(&twin, trace, calls[i]), "ok");
        *entry = (struct shown_entry){
            .number = (uint64_t)i + 1, .guard = i == 2, .has_actor = i > 0, .fired_at_ms = 7
        };
        snprintf(entry->id, sizeof entry->id, "t-%d", i);
        snprintf(entry->from, sizeof entry->from, "%s", place_name(trace->steps[i].from));
        snprintf(entry->to, sizeof entry->to, "%s", place_name(trace->steps[i].to));
        snprintf(entry->action, sizeof entry->action, "%s", hand_name(trace->steps[i].hand));
        snprintf(entry->actor, sizeof entry->actor, i > 0 ? "ann" : "");
        memset(entry->hash, 'a' + i, 64);
    }
    snprintf(out->state, sizeof out->state, "other");
}

#define FORGERY(number, change)                                                                    \
    do {                                                                                           \
        struct trace trace;                                                                        \
        struct shown now, before;                                                                  \
        const char *broken;                                                                        \
        show(&trace, &now);                                                                        \
        before = now;                                                                              \
        before.count = 2;                                                                          \
        EXPECT(judge(&twin, declaration, &trace, &before, &now, 7) == NULL);                       \
        change;                                                                                    \
        broken = judge(&twin, declaration, &trace, &before, &now, 7);                              \
        EXPECT(broken != NULL);                                                                    \
        EXPECT_HAS(broken, number ": ");                                                           \
        EXPECT_EQ(strspn(broken, "0123456789"), sizeof number - 1);                                \
    } while (0)

#define PUT(field, text) snprintf(field, sizeof(field), "%s", text)

/* D35, D45: without the declared-check, the terminal-check, chain consistency, and the rest. */
TEST(scope, each_of_the_ten_invariants_is_missed_when_it_is_broken)
{
    FORGERY("1", now.declaration[3] = 'x');
    FORGERY("2", PUT(now.state, "nowhere"));
    FORGERY("3", PUT(now.entries[1].action, "neither"));
    FORGERY("3", PUT(now.entries[1].to, "other"));
    FORGERY("3", PUT(now.entries[0].action, "right"));
    FORGERY("4", PUT(now.entries[2].from, "other"));
    FORGERY("5", (now.count = 2, PUT(now.state, "middle")));
    FORGERY("5", now.entries[0].hash[5] = 'x');
    FORGERY("5", PUT(now.entries[0].id, "t-9"));
    FORGERY("6", now.entries[1].number = 1);
    FORGERY("6", now.entries[0].number = 0);
    FORGERY("6", now.entries[2].number = 4);
    FORGERY("7", PUT(now.state, "middle"));
    FORGERY("7", (now.entries[1] = now.entries[2], now.entries[1].number = 2,
                  PUT(now.entries[1].from, "middle"), now.entries[2].number = 3));
    FORGERY("8", now.entries[2].guard = false);
    FORGERY("8", now.entries[0].guard = true);
    FORGERY("9", now.entries[0].has_actor = true);
    FORGERY("9", PUT(now.entries[1].actor, "bob"));
    FORGERY("9", now.entries[1].has_actor = false);
    FORGERY("9", PUT(now.entries[2].id, "t-0"));
    FORGERY("9", now.entries[1].fired_at_ms = 0);
    FORGERY("9", now.entries[1].hash[40] = '\0');
    FORGERY("9", now.entries[1].has_reason = true);
    FORGERY("10", now.is_known = false);
    FORGERY("10", (now.count = 1, PUT(now.state, "middle")));
}
