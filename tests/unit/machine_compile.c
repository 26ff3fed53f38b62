/* machine_compile.c - which documents are machines, and what is said about those that are not. */
#include "base/limits.h"
#include "lib/test.h"
#include "machine/machine.h"
#include <stdio.h>

#define RELEASE                                                                                    \
    "name: batch-release\n"                                                                        \
    "states: [sampled, testing, released, rejected, aborted]\n"                                    \
    "initial_state: sampled\n"                                                                     \
    "terminal_states: [released, rejected, aborted]\n"                                             \
    "terminal_kinds: {released: success, rejected: failure, aborted: cancel}\n"                    \
    "transitions:\n"                                                                               \
    "  - {from_state: sampled, action: begin-testing, to_state: testing}\n"                        \
    "  - {from_state: testing, action: release, to_state: released, guard: QP-sign-off}\n"         \
    "  - {from_state: testing, action: reject, to_state: rejected, requires_reason: true}\n"       \
    "  - {from_state: sampled, action: abort, to_state: aborted}\n"

/* An inline machine of two states with these transitions. */
#define WITH(transitions)                                                                          \
    "{\"states\":[\"a\",\"z\"],\"initial_state\":\"a\",\"terminal_states\":[\"z\"],"               \
    "\"transitions\":[" transitions "]}"
#define GO "{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"z\"}"

/* A registered machine whose terminal z is a success. */
#define REGISTERED(more)                                                                           \
    "states: [a, b, z]\ninitial_state: a\nterminal_states: [z]\nterminal_kinds: {z: "              \
    "success}\n" more

static pawl_status compile(struct test *t, const char *text, bool is_inline,
                           struct findings *findings, struct definition **out)
{
    struct node *document;

    EXPECT_OK(node_read(&t->scope, str_of(text), &document));
    return machine_compile(&t->scope, document, is_inline, findings, out);
}

static struct definition *compiled(struct test *t, const char *text, bool is_inline)
{
    struct definition *definition = NULL;

    EXPECT_OK(compile(t, text, is_inline, NULL, &definition));
    EXPECT(definition != NULL);
    return definition;
}

static void expect_refused(struct test *t, const char *text, bool is_inline, const char *words)
{
    struct definition *definition = NULL;
    struct findings findings = { 0 };
    pawl_status wanted = is_inline ? PAWL_INVALID_DECLARATION : PAWL_INVALID_DEFINITION;

    EXPECT_EQ(compile(t, text, is_inline, &findings, &definition), wanted);
    EXPECT(definition == NULL);
    EXPECT_HAS(t->scope.error.message, words);
    EXPECT(findings.count > 0);
    EXPECT(findings.items[0].line > 0);
    EXPECT(findings.items[0].column > 0);
    scope_clear(&t->scope);
}

static void expect_printed(const struct definition *definition, const char *text)
{
    struct buf buf;

    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    definition_print(definition, &buf);
    EXPECT_STR(buf_view(&buf), text);
    buf_fini(&buf);
}

TEST(machine_compile, a_registered_machine_compiles_in_declaration_order)
{
    expect_printed(compiled(t, RELEASE, false),
                   "{\"compiler\":3,\"kind\":\"machine\",\"states\":[{\"name\":\"sampled\"},"
                   "{\"name\":\"testing\"},{\"name\":\"released\",\"terminal\":\"success\"},"
                   "{\"name\":\"rejected\",\"terminal\":\"failure\"},"
                   "{\"name\":\"aborted\",\"terminal\":\"cancel\"}],\"initial\":0,\"transitions\":["
                   "{\"from\":0,\"action\":\"begin-testing\",\"to\":1},"
                   "{\"from\":1,\"action\":\"release\",\"to\":2,\"guard\":\"QP-sign-off\"},"
                   "{\"from\":1,\"action\":\"reject\",\"to\":3,\"requires_reason\":true},"
                   "{\"from\":0,\"action\":\"abort\",\"to\":4}]}");
}

/* X5: a bare machine may leave the kinds out, all of them or some. */
TEST(machine_compile, an_inline_terminal_state_needs_no_kind)
{
    struct definition *definition = compiled(t, WITH(GO), true);

    EXPECT_EQ(definition->states[1].terminal, TERMINAL_PLAIN);
    definition = compiled(t,
                          "{\"states\":[\"a\",\"y\",\"z\"],\"initial_state\":\"a\","
                          "\"terminal_states\":[\"y\",\"z\"],\"terminal_kinds\":"
                          "{\"y\":\"cancel\",\"z\":null},\"transitions\":[]}",
                          true);
    EXPECT_EQ(definition->states[1].terminal, TERMINAL_CANCEL);
    EXPECT_EQ(definition->states[2].terminal, TERMINAL_PLAIN);
}

/* A12, A13, A14 */
TEST(machine_compile, a_kind_is_one_of_three_and_belongs_to_a_terminal_state)
{
    expect_refused(t, "states: [a, z]\ninitial_state: a\nterminal_states: [z]\ntransitions: []\n",
                   false, "line 1, column 13: terminal state 'z' has no kind");
    expect_refused(t,
                   "states: [a, z]\ninitial_state: a\nterminal_states: [z]\ntransitions: []\n"
                   "terminal_kinds: {z: null}\n",
                   false, "terminal state 'z' has no kind");
    expect_refused(t, REGISTERED("transitions: []\n") "terminal_kinds2: 1\nname: 'a b'\n", false,
                   "'name'");
    expect_refused(t,
                   "states: [a, z]\ninitial_state: a\nterminal_states: [z]\ntransitions: []\n"
                   "terminal_kinds: {z: timeout}\n",
                   false, "expected success, failure or cancel, found 'timeout'");
    expect_refused(t,
                   "{\"states\":[\"a\"],\"initial_state\":\"a\",\"transitions\":[],"
                   "\"terminal_kinds\":{\"a\":\"success\"}}",
                   true, "'a', which is not terminal");
    expect_refused(t,
                   "{\"states\":[\"a\"],\"initial_state\":\"a\",\"transitions\":[],"
                   "\"terminal_kinds\":{\"q\":\"success\"}}",
                   true, "'q', which is not one of 'states'");
    expect_refused(t,
                   "{\"states\":[\"a\"],\"initial_state\":\"a\",\"transitions\":[],"
                   "\"terminal_kinds\":[]}",
                   true, "expected an object");
}

/* D6 */
TEST(machine_compile, states_are_unique_names_and_there_is_at_least_one)
{
    static const char *const refused[][2] = {
        { "{\"initial_state\":\"a\",\"transitions\":[]}", "'states' is missing" },
        { "{\"states\":null,\"initial_state\":\"a\",\"transitions\":[]}", "found null" },
        { "{\"states\":{},\"initial_state\":\"a\",\"transitions\":[]}", "found an object" },
        { "{\"states\":[],\"initial_state\":\"a\",\"transitions\":[]}", "found 0" },
        { "{\"states\":[\"a\",\"\"],\"initial_state\":\"a\",\"transitions\":[]}", "white space" },
        { "{\"states\":[\"a\",\"\xC2\xA0 \"],\"initial_state\":\"a\",\"transitions\":[]}",
          "line 1, column 16: a state" },
        { "{\"states\":[\"a\",7],\"initial_state\":\"a\",\"transitions\":[]}", "found a number" },
        { "{\"states\":[\"a\",\"b\",\"a\"],\"initial_state\":\"a\",\"transitions\":[]}",
          "line 1, column 20: state 'a' is declared twice, first at line 1, column 12" },
    };

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        expect_refused(t, refused[i][0], true, refused[i][1]);
}

/* D7 */
TEST(machine_compile, a_transition_names_states_that_exist_and_an_action)
{
    static const char *const refused[][2] = {
        { "{\"states\":[\"a\"],\"initial_state\":\"a\"}", "'transitions' is missing" },
        { "{\"states\":[\"a\"],\"initial_state\":\"a\",\"transitions\":null}", "found null" },
        { "{\"states\":[\"a\"],\"initial_state\":\"a\",\"transitions\":{}}", "found an object" },
        { WITH("3"), "found a number" },
        { WITH("{\"action\":\"go\",\"to_state\":\"z\"}"), "no 'from_state'" },
        { WITH("{\"from_state\":\"a\",\"to_state\":\"z\"}"), "no 'action'" },
        { WITH("{\"from_state\":\"a\",\"action\":\"go\"}"), "no 'to_state'" },
        { WITH("{\"from_state\":\"q\",\"action\":\"go\",\"to_state\":\"z\"}"), "found 'q'" },
        { WITH("{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"Z\"}"), "found 'Z'" },
        { WITH("{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"z \"}"), "found 'z '" },
        { WITH("{\"from_state\":\"a\",\"action\":\" \\t\",\"to_state\":\"z\"}"), "'action'" },
        { WITH("{\"from_state\":\"a\",\"action\":null,\"to_state\":\"z\"}"), "found null" },
        { WITH("{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"z\",\"guard\":\"\"}"),
          "'guard'" },
        { WITH("{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"z\",\"guard\":true}"),
          "'guard': expected a string, found a boolean" },
        { WITH("{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"z\","
               "\"requires_reason\":\"yes\"}"),
          "'requires_reason': expected true or false, found a string" },
    };

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        expect_refused(t, refused[i][0], true, refused[i][1]);
}

TEST(machine_compile, a_guard_of_null_is_no_guard)
{
    struct definition *definition =
        compiled(t,
                 WITH("{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"z\",\"guard\":null,"
                      "\"requires_reason\":null}"),
                 true);

    EXPECT(definition->transitions[0].guard.data == NULL);
    EXPECT(!definition->transitions[0].requires_reason);
}

/* D8 */
TEST(machine_compile, an_action_is_declared_once_for_a_state)
{
    expect_refused(t, WITH(GO "," GO), true, "'go' is declared twice");
    expect_refused(t,
                   WITH(GO ",{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"a\","
                           "\"guard\":\"g\"}"),
                   true, "'go' is declared twice");
    (void)compiled(t, WITH(GO ",{\"from_state\":\"a\",\"action\":\"Go\",\"to_state\":\"a\"}"),
                   true);
}

/* D9, D10 */
TEST(machine_compile, an_instance_begins_where_it_has_not_ended_and_ends_for_good)
{
    static const char *const refused[][2] = {
        { "{\"states\":[\"a\"],\"transitions\":[]}", "'initial_state' is missing" },
        { "{\"states\":[\"a\"],\"initial_state\":\"b\",\"transitions\":[]}", "found 'b'" },
        { "{\"states\":[\"a\"],\"initial_state\":\"a\",\"terminal_states\":[\"a\"],"
          "\"transitions\":[]}",
          "expected a state that is not terminal, found 'a'" },
        { "{\"states\":[\"a\"],\"initial_state\":\"a\",\"terminal_states\":[\"b\"],"
          "\"transitions\":[]}",
          "a terminal state: expected one of 'states', found 'b'" },
        { "{\"states\":[\"a\"],\"initial_state\":\"a\",\"terminal_states\":\"a\","
          "\"transitions\":[]}",
          "'terminal_states': expected an array" },
        { WITH("{\"from_state\":\"z\",\"action\":\"reopen\",\"to_state\":\"a\"}"),
          "nothing may leave a terminal state" },
        { WITH("{\"from_state\":\"z\",\"action\":\"stay\",\"to_state\":\"z\"}"),
          "nothing may leave a terminal state" },
    };

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        expect_refused(t, refused[i][0], true, refused[i][1]);
}

/* D7, D11 */
TEST(machine_compile, loops_dead_ends_and_no_transitions_at_all_are_legal)
{
    (void)compiled(t, "{\"states\":[\"a\"],\"initial_state\":\"a\",\"transitions\":[]}", true);
    (void)compiled(t,
                   "states: [a, b, c]\ninitial_state: a\ntransitions:\n"
                   "- {from_state: a, action: stay, to_state: a}\n"
                   "- {from_state: a, action: go, to_state: b}\n"
                   "- {from_state: b, action: go, to_state: a}\n",
                   false);
}

TEST(machine_compile, what_is_not_an_object_is_no_machine)
{
    expect_refused(t, "[]", true, "found an array");
    expect_refused(t, "7", true, "found a number");
    expect_refused(t, "null", false, "found null");
}

/* X4, D26 */
TEST(machine_compile, a_star_becomes_a_transition_of_every_state_that_is_not_terminal)
{
    struct definition *definition =
        compiled(t,
                 "states: [a, b, c, z]\ninitial_state: a\nterminal_states: [z]\n"
                 "terminal_kinds: {z: cancel}\ntransitions:\n"
                 "- {from_state: a, action: go, to_state: b}\n"
                 "- {from_state: '*', action: drop, to_state: z, guard: g, requires_reason: true}\n"
                 "- {from_state: b, action: drop, to_state: a}\n"
                 "- {from_state: b, action: go, to_state: c}\n",
                 false);

    expect_printed(definition,
                   "{\"compiler\":3,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"},{\"name\":"
                   "\"b\"},{\"name\":\"c\"},{\"name\":\"z\",\"terminal\":\"cancel\"}],"
                   "\"initial\":0,\"transitions\":["
                   "{\"from\":0,\"action\":\"go\",\"to\":1},"
                   "{\"from\":0,\"action\":\"drop\",\"to\":3,\"guard\":\"g\",\"requires_reason\":"
                   "true},"
                   "{\"from\":2,\"action\":\"drop\",\"to\":3,\"guard\":\"g\",\"requires_reason\":"
                   "true},"
                   "{\"from\":1,\"action\":\"drop\",\"to\":0},"
                   "{\"from\":1,\"action\":\"go\",\"to\":2}]}");
}

TEST(machine_compile, two_stars_of_one_action_are_one_too_many)
{
    expect_refused(t,
                   REGISTERED("transitions:\n- {from_state: '*', action: go, to_state: z}\n"
                              "- {from_state: '*', action: go, to_state: b}\n"),
                   false, "'go' is declared twice");
}

TEST(machine_compile, inline_there_is_no_star_but_a_state_may_be_called_so)
{
    struct definition *definition;

    expect_refused(t, WITH("{\"from_state\":\"*\",\"action\":\"go\",\"to_state\":\"z\"}"), true,
                   "found '*'");
    definition = compiled(t,
                          "{\"states\":[\"a\",\"*\"],\"initial_state\":\"*\",\"transitions\":"
                          "[{\"from_state\":\"*\",\"action\":\"go\",\"to_state\":\"a\"}]}",
                          true);
    EXPECT_EQ(definition->transition_count, 1);
    EXPECT_EQ(definition->transitions[0].from, 1);
    expect_refused(t, "states: ['*']\ninitial_state: '*'\ntransitions: []\n", false,
                   "cannot be called '*'");
}

/* A registered machine with these deadlines; lines are counted from the first. */
#define DEADLINES(more)                                                                            \
    REGISTERED("transitions:\n"                                                                    \
               "  - {from_state: a, action: go, to_state: b}\n"                                    \
               "  - {from_state: a, action: guarded, to_state: b, guard: g}\n"                     \
               "  - {from_state: a, action: reasoned, to_state: b, requires_reason: true}\n"       \
               "  - {from_state: '*', action: end, to_state: z}\n"                                 \
               "deadlines:\n" more)

TEST(machine_compile, deadlines_name_a_state_a_time_and_a_declared_action)
{
    const struct definition *definition =
        compiled(t,
                 DEADLINES("  - {state: b, after: 3d, action: end}\n"
                           "  - {state: a, after: 500ms, action: go}\n"
                           "  - {state: a, after: 1h, action: end, description: x}\n"),
                 false);
    struct buf buf;

    EXPECT_EQ(definition->deadline_count, 3);
    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    definition_print(definition, &buf);
    EXPECT_HAS(arena_text(&t->scope.arena, buf_view(&buf)),
               "],\"deadlines\":[{\"state\":1,\"after\":259200000,\"transition\":4},"
               "{\"state\":0,\"after\":500,\"transition\":0},"
               "{\"state\":0,\"after\":3600000,\"transition\":3}]}");
    buf_fini(&buf);
    definition = compiled(t,
                          "{\"states\":[\"a\",\"z\"],\"initial_state\":\"a\","
                          "\"transitions\":[" GO "],\"deadlines\":[{\"state\":\"a\","
                          "\"after\":\"1s\",\"action\":\"go\"}]}",
                          true);
    EXPECT_EQ(definition->deadline_count, 1);
}

TEST(machine_compile, a_deadline_that_cannot_be_kept_is_refused_with_its_place)
{
    static const struct {
        const char *deadline, *words;
    } all[] = {
        { "  - {state: b, after: 1s, action: go}\n",
          "line 11, column 35: a deadline's 'action': no 'go' is declared from 'b'" },
        { "  - {state: q, after: 1s, action: go}\n",
          "line 11, column 13: a deadline's 'state': expected one of 'states', found 'q'" },
        { "  - {state: z, after: 1s, action: go}\n",
          "column 13: a deadline's 'state': expected one that is not terminal" },
        { "  - {state: a, after: soon, action: go}\n",
          "column 23: a deadline's 'after': expected a duration above 0" },
        { "  - {state: a, after: 0s, action: go}\n", "expected a duration above 0" },
        { "  - {state: a, after: 5, action: go}\n", "found a number" },
        { "  - {state: a, after: 1s, action: guarded}\n", "'guarded' has a guard" },
        { "  - {state: a, after: 1s, action: reasoned}\n", "'reasoned' requires a reason" },
        { "  - {after: 1s, action: go}\n", "a deadline has no 'state'" },
        { "  - {state: a, action: go}\n", "a deadline has no 'after'" },
        { "  - {state: a, after: 1s}\n", "a deadline has no 'action'" },
        { "  - a\n", "a deadline: expected an object" },
        { "  - {state: a, after: 1s, action: go}\n  - {state: a, after: 2s, action: go}\n",
          "line 12, column 5: a second deadline fires 'go' from 'a'" },
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[2048];

        snprintf(text, sizeof text, DEADLINES("%s"), all[i].deadline);
        expect_refused(t, text, false, all[i].words);
    }
    expect_refused(t, REGISTERED("transitions: []\ndeadlines: {a: 1h}\n"), false,
                   "'deadlines': expected an array");
    expect_refused(t,
                   "{\"states\":[\"a\"],\"initial_state\":\"a\",\"transitions\":[],"
                   "\"deadlines\":{\"a\":1}}",
                   true, "'deadlines': expected an array");
}

TEST(machine_compile, a_definition_is_a_machine_or_a_flow_and_never_both)
{
    expect_refused(t, REGISTERED("transitions: []\nsteps: {}\n"), false,
                   "'states' makes a machine and 'steps' a flow");
}

static const struct finding *find(const struct findings *findings, const char *words)
{
    for (uint32_t i = 0; i < findings->count; i++)
        if (strstr(findings->items[i].message, words))
            return &findings->items[i];
    return NULL;
}

TEST(machine_compile, odd_states_are_warnings_with_their_place)
{
    struct findings findings = { 0 };
    struct definition *definition = NULL;

    EXPECT_OK(compile(t,
                      "states: [a, b, c, z]\ninitial_state: a\nterminal_states: [z]\n"
                      "terminal_kinds: {z: success}\ntransitions:\n"
                      "- {from_state: a, action: go, to_state: z}\n"
                      "- {from_state: a, action: trap, to_state: c}\n",
                      false, &findings, &definition));
    EXPECT(definition != NULL);
    EXPECT_EQ(findings.count, 2);
    for (uint32_t i = 0; i < findings.count; i++)
        EXPECT(findings.items[i].is_warning);
    EXPECT_EQ(find(&findings, "no way leads from the initial state to 'b'")->column, 13);
    EXPECT_EQ(find(&findings, "no way leads from 'c' to a terminal state")->column, 16);
}

#define MACHINE(transition, more)                                                                  \
    "states: [a, z]\ninitial_state: a\nterminal_states: [z]\nterminal_kinds: {z: success}\n"       \
    "transitions:\n- {" transition "}\n" more "\n"
#define WAY_ON "from_state: a, action: go, to_state: z"

TEST(machine_compile, an_unknown_key_is_an_error_at_the_key_that_names_the_known_ones)
{
    static const struct {
        const char *text, *part;
        uint32_t line, column;
    } bad[] = {
        { MACHINE(WAY_ON, "colour: red"), "unknown key 'colour'; known here: name, description, input, states",
          7, 1 },
        { MACHINE(WAY_ON, "inital_state: a"), "unknown key 'inital_state'; did you mean 'initial_state'?",
          7, 1 },
        { MACHINE(WAY_ON ", gaurd: g", ""), "unknown key 'gaurd'; did you mean 'guard'? known here: ", 6,
          44 },
        { MACHINE("from: a, action: go, to_state: z", ""),
          "unknown key 'from'; did you mean 'from_state'?", 6, 4 },
        { MACHINE("from_state: a, action: go, to: z", ""),
          "unknown key 'to'; did you mean 'to_state'?", 6, 31 },
        { MACHINE(WAY_ON ", starts: {definition: d, inptu: {}}", ""),
          "unknown key 'starts.inptu'; did you mean 'input'? known here: definition, input", 6, 68 },
        { MACHINE(WAY_ON, "deadlines: [{state: a, after: 1s, action: go, at: 1}]"),
          "unknown key 'at'; known here: state, after, action, description", 7, 47 },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct findings findings = { 0 };
        struct definition *definition = NULL;
        const struct finding *finding;

        EXPECT_EQ(compile(t, bad[i].text, false, &findings, &definition),
                      PAWL_INVALID_DEFINITION);
        finding = find(&findings, bad[i].part);
        if (!finding || finding->is_warning || findings.count != 1)
            test_fail(__FILE__, __LINE__, "expected '%s', found '%s'", bad[i].part,
                      t->scope.error.message);
        EXPECT_EQ(finding->line, bad[i].line);
        EXPECT_EQ(finding->column, bad[i].column);
    }
}

TEST(machine_compile, a_key_that_begins_with_x_is_free_everywhere)
{
    struct findings findings = { 0 };
    struct definition *definition = NULL;

    EXPECT_OK(compile(t,
                      MACHINE(WAY_ON ", x-a: 1, starts: {definition: d, x-a: 1}",
                              "x-owner: {team: a}\n"
                              "deadlines: [{state: a, after: 1s, action: go, x-a: 1}]"),
                      false, &findings, &definition));
    EXPECT_EQ(findings.count, 0);
}

TEST(machine_compile, the_schema_of_the_input_is_part_of_a_registered_definition)
{
    struct definition *definition = NULL;

    EXPECT_OK(compile(t, MACHINE(WAY_ON, "input: {type: object}"), false, NULL, &definition));
    EXPECT_STR(definition->input_text, "{\"type\":\"object\"}");
    EXPECT_EQ(compile(t, MACHINE(WAY_ON, "input: {type: text}"), false, NULL, &definition),
              PAWL_INVALID_DEFINITION);
    EXPECT_HAS(t->scope.error.message, "'type' of an input's schema: expected null, boolean");
    scope_clear(&t->scope);
    EXPECT_OK(compile(t, MACHINE(WAY_ON, "input: {type: text}"), true, NULL, &definition));
    EXPECT(!definition->input_text.data);
}

TEST(machine_compile, inline_a_key_of_another_language_is_corrected_where_the_right_one_is_missing)
{
    struct definition *definition;

    EXPECT_EQ(compile(t,
                          "{\"states\":[\"a\"],\"initial_state\":\"a\",\"transitions\":"
                          "[{\"from\":\"a\",\"action\":\"go\",\"to_state\":\"a\"}]}",
                          true, NULL, &definition),
                  PAWL_INVALID_DECLARATION);
    EXPECT_HAS(t->scope.error.message, "a transition has no 'from_state'; did you mean it by 'from'");
}

TEST(machine_compile, inline_unknown_keys_are_no_business_of_ours)
{
    struct findings findings = { 0 };
    struct definition *definition;

    EXPECT_OK(compile(t,
                      "{\"states\":[\"a\",\"b\"],\"initial_state\":\"a\",\"transitions\":[],"
                      "\"colour\":\"red\"}",
                      true, &findings, &definition));
    EXPECT_EQ(findings.count, 0);
}

TEST(machine_compile, a_machine_that_cannot_end_gets_one_warning)
{
    struct findings findings = { 0 };
    struct definition *definition;

    EXPECT_OK(compile(t, "states: [a]\ninitial_state: a\ntransitions: []\n", false, &findings,
                      &definition));
    EXPECT_EQ(findings.count, 1);
    EXPECT_HAS(findings.items[0].message, "never end");
}

TEST(machine_compile, every_error_is_reported_and_the_first_is_the_answer)
{
    struct findings findings = { 0 };
    struct definition *definition = NULL;

    EXPECT_EQ(compile(t,
                      "{\"states\":[\"a\",\"\"],\n\"initial_state\":\"x\",\n\"transitions\":[\n"
                      "{\"from_state\":\"q\",\"action\":\"\",\"to_state\":\"r\"},3]}",
                      true, &findings, &definition),
              PAWL_INVALID_DECLARATION);
    EXPECT_EQ(findings.count, 6);
    EXPECT_HAS(t->scope.error.message, "line 1, column 16: a state");
    EXPECT_EQ(findings.items[1].line, 2);
    EXPECT_EQ(findings.items[5].line, 4);
}
