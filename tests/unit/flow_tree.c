/* flow_tree.c - trees: do, dopar, try/rescue/finally, the context (seed 002). */
#include "base/limits.h"
#include "flow_rig.h"
#include <stdio.h>

/* Play a tree whose leaves are called by the tool they call: a tool that begins with F fails.
 * What ran, in order; results come in the order in which the steps were created. */
static const char *play(struct rig *rig)
{
    static char ran[1000];
    size_t used = 0;

    ran[0] = '\0';
    rig_begin(rig);
    for (uint32_t ordinal = 1; rig->state == LIFE_RUNNING; ordinal++) {
        struct flow_call call;

        EXPECT_OK(flow_call(rig->definition, rig->memory, ordinal, rig->scope, &call));
        used += (size_t)snprintf(ran + used, sizeof ran - used, "%s%.*s", used > 0 ? " " : "",
                                 STR_ARG(call.tool));
        EXPECT_OK(rig_step(rig, EVENT_STEP_START, ordinal, NULL));
        EXPECT_OK(rig_step(rig, call.tool.data[0] == 'F' ? EVENT_STEP_FAILED : EVENT_STEP_DONE,
                           ordinal, "{\"tool\":1}"));
    }
    return ran;
}

struct outcome {
    const char *tree, *ran;
    bool is_success;
};

#define L(name) "{action: " name ", payload: {}}"

TEST(flow_tree, c15_c16_c17_every_tree_ends_as_the_table_says)
{
    static const struct outcome table[] = {
        { "do: [" L("a1") ", " L("a2") "]", "a1 a2", true },
        { "do: [" L("a1") ", " L("F") ", " L("a3") "]", "a1 F", false },
        { "try: [" L("a1") ", " L("a2") "]\nrescue: [" L("F") "]", "a1 a2", true },
        { "try: [" L("a1") ", " L("F") ", " L("F") "]\nrescue: [" L("a4") "]", "a1 F a4", true },
        { "try: [" L("a1") ", " L("F") "]\nrescue: [" L("a2") ", " L("F") "]", "a1 F a2 F", false },
        { "try: [" L("a1") ", " L("F") "]\nrescue: [" L("a2") "]\nfinally: [" L("a3") ", " L(
              "F") "]",
          "a1 F a2 a3 F", false },
        { "try: [" L("a1") ", " L("F") "]\nfinally: [" L("a4") "]", "a1 F a4", false },
        { "try: [" L("a1") ", " L("a2") "]\nfinally: [" L("a3") "]", "a1 a2 a3", true },
        { "try: [" L("a1") ", " L("a2") "]\nfinally: [" L("F") "]", "a1 a2 F", false },
        { "try: [" L("F") "]\nrescue: [" L("F") "]\nfinally: [" L("f1") "]", "F F f1", false },
        { "do: [{try: [" L("F") "], rescue: [" L("r") "]}, " L("after") "]", "F r after", true },
        { "do: [{try: [" L("F") "], finally: [" L("f") "]}, " L("after") "]", "F f", false },
        { "action: a1\npayload: {}", "a1", true },
        { "action: F\npayload: {}", "F", false },
        { "try: []", "", true },
        { "do: []", "", true },
        { "dopar: [{do: []}, {try: [], rescue: [" L("r") "]}]", "", true },
        { "do: [{do: []}, " L("a1") ", {dopar: []}]", "a1", true },
        { "try: []\nfinally: [" L("f") "]", "f", true },
        { "do: [" L("a1") ", {try: [{do: [" L("a2") ", {do: [" L("a3") ", " L("a4") "]}, " L("a5") ", " L(
              "a6") ", " L("F7") ", " L("a8") "]}], rescue: [" L("r1") ", " L("Fail") "], finally: "
                                                                                      "[" L("f1") "]}]",
          "a1 a2 a3 a4 a5 a6 F7 r1 Fail f1", false },
        { "try: [{dopar: [" L("a1") ", " L("a2") "]}, " L("b1") "]\nfinally: [" L("f1") "]",
          "a1 a2 b1 f1", true },
        { "dopar: [" L("F") ", {do: [" L("a1") ", " L("a2") "]}]", "F a1 a2", false },
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct rig rig;

        rig_init(&rig, &t->scope, table[i].tree, NULL);
        EXPECT_TEXT(play(&rig), table[i].ran);
        EXPECT_EQ(rig.state, table[i].is_success ? LIFE_COMPLETED : LIFE_FAILED);
        rig_fini(&rig);
    }
}

TEST(flow_tree, c18_c19_rescue_and_finally_wait_for_what_was_dispatched)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "try: [{dopar: [" L("F") ", " L("slow") "]}]\nrescue: [" L("r") "]\nfinally: [" L("f") "]",
        NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 1, "\"no\""));
    EXPECT_STORY(&rig, "step.fail try.0.dopar.0.1#1 \"no\" [[\"end\",1]]\n");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 2, "1"));
    EXPECT_STORY(&rig, "step.complete try.0.dopar.1.2#1 1 [[\"end\",2],[\"step\",3,2]]\n");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 3, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 3, "2"));
    EXPECT_STORY(&rig, "step.complete rescue.0.3#1 2 [[\"end\",3],[\"step\",4,3]]\n");
    rig_fini(&rig);
}

TEST(flow_tree, c25_c26_augments_put_results_into_the_context_and_later_ones_win)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "do:\n"
             "  - {tool: a, args: {}, augment: {first: identity}}\n"
             "  - {tool: a, args: {}, augment: {second: identity}}\n"
             "  - {tool: a, args: {}, augment: {nested.one: identity}}\n"
             "  - {tool: a, args: {}, augment: {nested.two: nested.key}}\n"
             "  - {tool: a, args: {x: '{{context.nested.two}}'}, augment: {nested.three: output, "
             "second: output2, none: missing}}\n",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "1");
    rig_run(&rig, 3, "3");
    rig_run(&rig, 4, "{\"nested\":{\"key\":4}}");
    rig_run(&rig, 5, "{\"output\":5,\"output2\":2}");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    EXPECT_STR(rig.last_payload, "{\"first\":1,\"nested\":{\"one\":3,\"two\":4,\"three\":5},"
                                 "\"second\":2,\"none\":null}");
    rig_fini(&rig);
}

TEST(flow_tree, c24_c27_a_rescue_sees_the_context_and_what_went_wrong)
{
    struct flow_call call;
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "try:\n  - {tool: a, args: {}, augment: {k: identity}}\n  - {tool: F, args: {}, augment: "
        "{never: identity}}\n"
        "rescue:\n  - {tool: r, args: {e: '{{context.exec/last-error}}', k: '{{context.k}}'}}\n"
        "output: {seen: '{{context.never}}', k: '{{context.k}}'}\n",
        NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "7");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 2, "{\"code\":3}"));
    EXPECT_OK(flow_call(rig.definition, rig.memory, 3, rig.scope, &call));
    EXPECT_STR(call.args, "{\"e\":{\"code\":3},\"k\":7}");
    rig_run(&rig, 3, "null");
    EXPECT_STR(rig.last_payload, "{\"seen\":\"\",\"k\":7}");
    rig_fini(&rig);
}

/* The context is as large as it may be: what went wrong does not fit in, but is recorded. */
TEST(flow_tree, a_failure_is_recorded_also_where_the_context_is_full)
{
    static char big[LIMIT_TEXT - 64];
    struct rig rig;

    memset(big, 'x', sizeof big - 1);
    big[0] = big[sizeof big - 2] = '"';
    rig_init(&rig, &t->scope,
             "try: [{tool: a, args: {}, augment: {k: identity}}, {tool: F, args: {}}]\n"
             "rescue: [{tool: r, args: {e: '{{context.exec/last-error}}'}}]\n",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, big);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 2,
                       "\"a long story of what went wrong, longer than what is left of the room\""));
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    rig_run(&rig, 3, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

/* ---- What went wrong: each try has its own error ---------------------------------------------- */

#define SEE(name) "{name: " name ", action: x, payload: {e: '{{context.exec/last-error}}'}}"
#define TRY_SEE(name) "{try: [" L("F" name) "], rescue: [" SEE("see-" name) "]}"

static void fail_step(struct rig *rig, uint32_t ordinal, const char *error)
{
    EXPECT_OK(rig_step(rig, EVENT_STEP_START, ordinal, NULL));
    EXPECT_OK(rig_step(rig, EVENT_STEP_FAILED, ordinal, error));
}

static void expect_seen(struct rig *rig, uint32_t ordinal, const char *name, const char *args)
{
    struct flow_call call;

    EXPECT_OK(flow_call(rig->definition, rig->memory, ordinal, rig->scope, &call));
    EXPECT_STR(call.step, name);
    EXPECT_STR(call.args, args);
}

TEST(flow_tree, c27_of_two_tries_side_by_side_each_sees_its_own_error)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "dopar: [" TRY_SEE("a") ", " TRY_SEE("b") "]", NULL);
    rig_begin(&rig);
    fail_step(&rig, 1, "\"of a\"");
    fail_step(&rig, 2, "\"of b\"");
    expect_seen(&rig, 3, "see-a", "{\"e\":\"of a\"}");
    expect_seen(&rig, 4, "see-b", "{\"e\":\"of b\"}");
    rig_run(&rig, 3, "1");
    rig_run(&rig, 4, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    EXPECT_STR(rig.last_payload, "{\"exec/last-error\":\"of b\"}");
    rig_fini(&rig);
}

#define TRY_LAST(name) "{try: [" L(name) "], finally: [" SEE("last-" name) "]}"

TEST(flow_tree, c27_the_finally_of_a_try_that_did_not_fail_sees_no_error)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "dopar: [" TRY_LAST("a") ", " TRY_SEE("b") "]", NULL);
    rig_begin(&rig);
    fail_step(&rig, 2, "\"of b\"");
    rig_run(&rig, 1, "1");
    expect_seen(&rig, 4, "last-a", "{\"e\":\"\"}");
    expect_seen(&rig, 3, "see-b", "{\"e\":\"of b\"}");
    rig_fini(&rig);
    rig_init(&rig, &t->scope,
             "do: [" TRY_SEE("b") ", " TRY_LAST("a") ", {try: [" L("c") "], rescue: [" TRY_LAST(
                 "d") "]}, " SEE("after") "]",
             NULL);
    rig_begin(&rig);
    fail_step(&rig, 1, "\"of b\"");
    rig_run(&rig, 2, "1");
    rig_run(&rig, 3, "1");
    expect_seen(&rig, 4, "last-a", "{\"e\":\"\"}");
    rig_run(&rig, 4, "1");
    fail_step(&rig, 5, "\"of c\"");
    rig_run(&rig, 6, "1"); /* d, in the rescue of c */
    expect_seen(&rig, 7, "last-d", "{\"e\":\"of c\"}");
    rig_run(&rig, 7, "1");
    expect_seen(&rig, 8, "after", "{\"e\":\"of c\"}"); /* beside all of them: the last one */
    rig_fini(&rig);
}

TEST(flow_tree, c27_a_version_of_an_older_compiler_has_one_error_for_all)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "dopar: [" TRY_SEE("a") ", " TRY_SEE("b") "]", NULL);
    rig.definition->compiler = 2;
    rig_begin(&rig);
    fail_step(&rig, 1, "\"of a\"");
    fail_step(&rig, 2, "\"of b\"");
    expect_seen(&rig, 3, "see-a", "{\"e\":\"of b\"}");
    rig_fini(&rig);
}

TEST(flow_tree, c27_of_nested_tries_the_innermost_error_is_seen)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "try:\n  - try: [" L("F1") "]\n    rescue: [" SEE("inner") ", {try: [" SEE(
                 "formed") "]}, " L("F2") "]\n    finally: [" SEE("last") "]\n"
                                                                          "rescue: [" SEE(
                                                                              "outer") "]\n",
             NULL);
    rig_begin(&rig);
    fail_step(&rig, 1, "\"one\"");
    expect_seen(&rig, 2, "inner", "{\"e\":\"one\"}");
    rig_run(&rig, 2, "1");
    expect_seen(&rig, 3, "formed", "{\"e\":\"one\"}");
    rig_run(&rig, 3, "1");
    fail_step(&rig, 4, "\"two\"");
    expect_seen(&rig, 5, "last", "{\"e\":\"two\"}");
    rig_run(&rig, 5, "1");
    expect_seen(&rig, 6, "outer", "{\"e\":\"two\"}");
    rig_run(&rig, 6, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

/* What was rescued beside it failed nothing. */
TEST(flow_tree, c27_a_try_sees_what_failed_it_and_so_does_the_flow)
{
    static const char *const trees[] = {
        "try: [{dopar: [" L("F") ", " TRY_SEE("b") "]}]\nrescue: [" SEE("see") "]",
        "try: [{dopar: [" L("F") ", " TRY_SEE("b") "]}]",
    };

    for (int i = 0; i < 2; i++) {
        struct rig rig;

        rig_init(&rig, &t->scope, trees[i], NULL);
        rig_begin(&rig);
        fail_step(&rig, 1, "\"what failed it\"");
        fail_step(&rig, 2, "\"rescued\"");
        rig_run(&rig, 3, "1");
        if (i == 0)
            expect_seen(&rig, 4, "see", "{\"e\":\"what failed it\"}");
        else
            EXPECT_STR(rig.last_payload, "\"what failed it\"");
        rig_fini(&rig);
    }
}

TEST(flow_tree, c27_a_wait_in_a_rescue_sees_the_error_as_well)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "dopar:\n  - try: [" L("F") "]\n    rescue: [" L("r") ", {name: w, wait: {timer: "
             "'{{context.exec/last-error}}'}}]\n  - try: [" L("F2") "]\n    rescue: [" L(
                 "r2") "]\n",
             NULL);
    rig_begin(&rig);
    fail_step(&rig, 1, "\"5s\"");
    fail_step(&rig, 2, "\"no duration\"");
    rig_run(&rig, 3, "1");
    EXPECT_STORY(&rig, "step.complete dopar.0.rescue.0.3#1 1 [[\"end\",3],"
                       "[\"step\",5,2,1,\"pending\"],[\"arm\",\"w\",6000,5]]\n");
    rig_fini(&rig);
}

TEST(flow_tree, a_step_that_cannot_begin_fails_and_is_rescued_in_the_same_decision)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "try:\n  - {wait: {timer: '{{input.d}}'}, name: w}\nrescue:\n  - " L("r") "\n",
             "{\"d\":\"soon\"}");
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"]]\n"
                       "step.fail w.1#1 \"'timer': expected a duration like \\\"30s\\\", found "
                       "\\\"soon\\\"\" [[\"end\",1],[\"step\",2,1]]\n");
    rig_run(&rig, 2, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_tree, a_select_goes_on_under_the_arm_that_won_and_the_losers_are_gone) /* E11, E12 */
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "do:\n"
             "  - name: race\n"
             "    select:\n"
             "      - {signal: paid, do: [" L("ship") "]}\n"
                                                      "      - {timer: 3d, do: [" L(
                                                          "drop") "]}\n"
                                                                  "  - " L("after") "\n",
             NULL);
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"],[\"await\",\"paid\",1],"
                       "[\"arm\",\"race\",259201000,1]]\n");
    EXPECT_EQ(rig_do(&rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("other") }),
              PAWL_NOT_AWAITING);
    EXPECT_OK(rig_do(
        &rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("paid"), .payload = STR("9") }));
    EXPECT_STORY(&rig, "signal race.1#1 {\"arm\":0,\"payload\":9} [[\"end\",1],[\"step\",2,1]]\n");
    EXPECT_EQ(rig_timer(&rig, "race", 1), PAWL_NOT_AWAITING);
    rig_run(&rig, 2, "1");
    rig_run(&rig, 3, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_tree, groups_that_make_no_sense_are_refused_with_words)
{
    static const char *const texts[][2] = {
        { "do: {a: 1}", "'do' must be an array" },
        { "do: [{do: [], dopar: []}]", "a group is of one kind" },
        { "dopar: [{select: []}]", "must be a list of arms" },
        { "do: [{select: [{timer: 1s, signal: x}]}]", "found several" },
        { "do: [{select: [{timer: 1s, then: x}]}]", "did you mean 'do'?" },
        { "do: [{wait: {timer: soon}}]", "must be a duration" },
        { "do: [{wait: {until: tomorrow}}]", "RFC 3339" },
        { "do: [{tool: a, args: {}, augment: {a..b: c}}]", "dotted paths" },
        { "do: [{tool: a, args: {}, augment: {a: 1}}]", "dotted paths" },
        { "do: [{tool: a, wait: {timer: 1s}}]", "keep one" },
        { "do: [{external: true, wait: {timer: 1s}}]", "keep one" },
        { "do: [{tool: a, approval: {count: 2}}]", "only a gate" },
        { "do: [{tool: null, approval: {by: [ann], count: 2}}]", "only 1 may approve" },
        { "do: [{tool: null, retry: {max: 2}}]", "not tried again" },
    };
    struct findings findings;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct definition *definition;
        struct node *document;

        findings = (struct findings){ 0 };
        EXPECT_OK(node_read(&t->scope, str_of(texts[i][0]), &document));
        EXPECT_EQ(flow_compile(&t->scope, document, &findings, &definition),
                  PAWL_INVALID_DEFINITION);
        EXPECT_HAS(t->scope.error.message, texts[i][1]);
        t->scope.error = (pawl_error){ 0 };
    }
}
