/* machine_check.c - what is legal but odd: each warning, where it is, and that it says what to do.
 */
#include "lib/test.h"
#include "machine/machine.h"
#include "model/words.h"

/* A machine with one way, a..z, and a cancel terminal x; transitions are added. */
#define MACHINE                                                                                    \
    "states: [a, b, z, x]\ninitial_state: a\nterminal_states: [z, x]\n"                            \
    "terminal_kinds: {z: success, x: cancel}\ntransitions:\n"                                      \
    "- {from_state: a, action: go, to_state: b}\n"                                                 \
    "- {from_state: b, action: go, to_state: z}\n"
#define DROP_ALL "- {from_state: '*', action: drop, to_state: x}\n"

static struct findings *check(struct test *t, const char *text, bool is_inline)
{
    struct findings *findings = ARENA_NEW(&t->scope.arena, struct findings);
    struct definition *definition;
    struct node *document;

    EXPECT_OK(node_read(&t->scope, str_of(text), &document));
    EXPECT_OK(machine_compile(&t->scope, document, is_inline, findings, &definition));
    for (uint32_t i = 0; i < findings->count; i++) {
        EXPECT(findings->items[i].is_warning);
        EXPECT(findings->items[i].line > 0 && findings->items[i].column > 0);
    }
    return findings;
}

/* Exactly one warning, with these words, at this place. */
static void expect_only(struct test *t, const char *text, uint32_t line, uint32_t column,
                        const char *words)
{
    const struct findings *findings = check(t, text, false);

    EXPECT_EQ(findings->count, 1);
    EXPECT_HAS(findings->items[0].message, words);
    EXPECT_EQ(findings->items[0].line, line);
    EXPECT_EQ(findings->items[0].column, column);
}

static void expect_none(struct test *t, const char *text)
{
    const struct findings *findings = check(t, text, false);

    EXPECT_TEXT(findings->count > 0 ? findings->items[0].message : "", "");
}

TEST(machine_check, a_machine_that_can_be_reached_ended_and_cancelled_has_no_warning)
{
    expect_none(t, MACHINE DROP_ALL);
}

/* D11 */
TEST(machine_check, a_state_that_no_way_leads_to_is_named)
{
    expect_only(t,
                "states: [a, z, lost]\ninitial_state: a\nterminal_states: [z]\n"
                "terminal_kinds: {z: success}\ntransitions:\n"
                "- {from_state: a, action: go, to_state: z}\n"
                "- {from_state: lost, action: go, to_state: z}\n",
                1, 16,
                "no way leads from the initial state to 'lost'; add a transition to it, or remove "
                "it");
}

/* D11 */
TEST(machine_check, a_state_that_leads_to_no_end_is_named)
{
    expect_only(t,
                "{\"states\":[\"a\",\"trap\",\"z\"],\n\"initial_state\":\"a\","
                "\"terminal_states\":[\"z\"],\"terminal_kinds\":{\"z\":\"success\"},"
                "\"transitions\":[{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"z\"},"
                "{\"from_state\":\"a\",\"action\":\"fall\",\"to_state\":\"trap\"},"
                "{\"from_state\":\"trap\",\"action\":\"turn\",\"to_state\":\"trap\"}]}",
                1, 16, "no way leads from 'trap' to a terminal state");
}

TEST(machine_check, a_machine_without_an_end_is_told_so_once)
{
    expect_only(t,
                "states: [a, b]\ninitial_state: a\ntransitions:\n"
                "- {from_state: a, action: go, to_state: b}\n",
                1, 1, "there is no terminal state");
}

/* A17: cancelling is a declared transition, or it is refused. */
TEST(machine_check, states_that_cannot_be_cancelled_are_named_in_one_warning)
{
    expect_only(t, MACHINE "- {from_state: a, action: drop, to_state: x}\n", 1, 13,
                "to a cancel state from 'b'");
    expect_only(t,
                "states: [a, b, c, z, x]\ninitial_state: a\nterminal_states: [z, x]\n"
                "terminal_kinds: {z: success, x: cancel}\ntransitions:\n"
                "- {from_state: a, action: go, to_state: b}\n"
                "- {from_state: b, action: go, to_state: c}\n"
                "- {from_state: c, action: go, to_state: z}\n"
                "- {from_state: b, action: drop, to_state: x}\n",
                1, 10, "to a cancel state from 'a', 'c'");
}

TEST(machine_check, a_guarded_way_does_not_count_as_a_way_to_cancel)
{
    expect_only(t, MACHINE "- {from_state: '*', action: drop, to_state: x, guard: chief}\n", 1, 10,
                "without a guard to a cancel state from 'a', 'b'");
}

TEST(machine_check, without_a_cancel_state_nobody_is_asked_how_to_cancel)
{
    expect_none(t, "states: [a, z]\ninitial_state: a\nterminal_states: [z]\n"
                   "terminal_kinds: {z: success}\ntransitions:\n"
                   "- {from_state: a, action: go, to_state: z}\n");
}

TEST(machine_check, many_states_that_cannot_be_cancelled_are_counted)
{
    const struct findings *findings;
    struct buf text;

    buf_init(&text, &heap_libc, 1 << 16);
    buf_fmt(&text, "initial_state: s0\nterminal_states: [x]\nterminal_kinds: {x: cancel}\n"
                   "states: [x");
    for (int i = 0; i <= 40; i++)
        buf_fmt(&text, ", s%d", i);
    buf_fmt(&text, "]\ntransitions:\n- {from_state: s40, action: drop, to_state: x}\n");
    for (int i = 0; i < 40; i++)
        buf_fmt(&text, "- {from_state: s%d, action: go, to_state: s%d}\n", i, i + 1);
    findings = check(t, buf_text(&text), false);
    buf_fini(&text);
    EXPECT_EQ(findings->count, 1);
    EXPECT_HAS(findings->items[0].message, "from 's0', 's1', ");
    EXPECT_HAS(findings->items[0].message, " and 18 more");
}

TEST(machine_check, a_kind_that_no_instance_can_end_with_is_named)
{
    const struct findings *findings =
        check(t,
              "states: [a, z, burnt]\ninitial_state: a\nterminal_states: [z, burnt]\n"
              "terminal_kinds: {z: success, burnt: failure}\ntransitions:\n"
              "- {from_state: a, action: go, to_state: z}\n",
              false);

    EXPECT_EQ(findings->count, 2);
    EXPECT_HAS(findings->items[0].message, "to 'burnt'");
    EXPECT_HAS(findings->items[1].message, "no instance can end with the kind failure");
    EXPECT_EQ(findings->items[1].line, 4);
    EXPECT_EQ(findings->items[1].column, 30);
}

/* D13: they are different names. */
TEST(machine_check, names_that_differ_only_in_case_or_blanks_are_told_apart)
{
    expect_only(
        t,
        MACHINE DROP_ALL "- {from_state: a, action: skip, to_state: z, guard: QP sign-off}\n"
                         "- {from_state: b, action: skip, to_state: z, guard: QP-sign-off}\n"
                         "- {from_state: b, action: jump, to_state: z, guard: QP-sign-off}\n",
        10, 53, "guard 'QP-sign-off' is another one than 'QP sign-off' at line 9, column 53");
    expect_only(t, MACHINE DROP_ALL "- {from_state: a, action: Go, to_state: z}\n", 9, 27,
                "action 'Go' is another one than 'go' at line 6, column 27");
    expect_only(t,
                "states: [a, A, z]\ninitial_state: a\nterminal_states: [z]\n"
                "terminal_kinds: {z: success}\ntransitions:\n"
                "- {from_state: a, action: go, to_state: A}\n"
                "- {from_state: A, action: go, to_state: z}\n",
                1, 13, "state 'A' is another one than 'a' at line 1, column 10");
}

TEST(machine_check, one_guard_of_many_transitions_is_one_guard)
{
    expect_none(t,
                MACHINE DROP_ALL "- {from_state: a, action: skip, to_state: z, guard: signed}\n"
                                 "- {from_state: b, action: skip, to_state: z, guard: signed}\n");
}

/* X4 */
TEST(machine_check, a_star_that_stands_for_no_state_is_told)
{
    expect_only(t,
                MACHINE "- {from_state: a, action: drop, to_state: x}\n"
                        "- {from_state: b, action: drop, to_state: x}\n" DROP_ALL,
                10, 3, "this '*' stands for no state");
}

/* D12: what is odd about an inline machine is its author's business. */
TEST(machine_check, an_inline_machine_has_no_warnings)
{
    EXPECT_EQ(check(t,
                    "{\"states\":[\"a\",\"A\",\"lost\",\"x\"],\"initial_state\":\"a\","
                    "\"terminal_states\":[\"x\"],\"terminal_kinds\":{\"x\":\"cancel\"},"
                    "\"gaurd\":1,\"transitions\":[]}",
                    true)
                  ->count,
              0);
}

TEST(machine_check, a_word_is_near_if_hardly_a_letter_is_wrong)
{
    static const char *const known[] = { "guard", "action", "to_state", NULL };

    EXPECT_TEXT(words_nearest(STR("guards"), known), "guard");
    EXPECT_TEXT(words_nearest(STR("acton"), known), "action");
    EXPECT_TEXT(words_nearest(STR("tostate"), known), "to_state");
    EXPECT_TEXT(words_nearest(STR("ot_state"), known), "to_state");
    EXPECT(words_nearest(STR("goal"), known) == NULL);
    EXPECT(words_nearest(STR(""), known) == NULL);
    EXPECT(words_nearest(STR("a_word_that_is_far_longer_than_any_of_ours_is"), known) == NULL);
}
