/* flow_if.c - conditions in trees: if, elif, else. */
#include "flow_rig.h"
#include <stdio.h>

#define SIZES                                                                                      \
    "do:\n"                                                                                        \
    "  - {name: look, tool: x, augment: {n: n}}\n"                                                 \
    "  - name: choose\n    if: 'steps.look.result.n > 100'\n"                                      \
    "    then: [{name: large, tool: x}]\n"                                                         \
    "    elif:\n      - {if: 'context.n > 10', then: [{name: middle, tool: x}]}\n"                 \
    "      - {if: 'input.skip', then: []}\n"                                                       \
    "    else: [{name: small, tool: x}]\n"                                                         \
    "  - {name: last, tool: x}\n"

TEST(flow_if, the_first_condition_that_holds_chooses_what_is_done)
{
    static const char *const ways[][4] = {
        { "{\"n\":101}", "{}", "large", "0" },
        { "{\"n\":11}", "{}", "middle", "1" },
        { "{\"n\":1}", "{\"skip\":true}", "last", "2" },
        { "{\"n\":1}", "{}", "small", "3" },
    };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char story[120];
        struct rig rig;

        rig_init(&rig, &t->scope, SIZES, ways[i][1]);
        rig_begin(&rig);
        rig_run(&rig, 1, ways[i][0]);
        (void)snprintf(story, sizeof story, "step.complete choose.2#1 {\"arm\":%s} [[\"end\",2]",
                       ways[i][3]);
        EXPECT_STORY_HAS(&rig, story);
        EXPECT_TEXT(rig_name(&rig, 3), ways[i][2]);
        rig_run(&rig, 3, "1");
        if (strcmp(ways[i][2], "last") != 0) {
            EXPECT_TEXT(rig_name(&rig, 4), "last");
            rig_run(&rig, 4, "1");
        }
        EXPECT_EQ(rig.state, LIFE_COMPLETED);
        rig_fini(&rig);
    }
}

TEST(flow_if, conditions_in_a_row_and_within_each_other_are_decided_at_once)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "do:\n"
        "  - {if: 'input.a', then: [{if: 'not input.b', then: [{tool: x}]}, {name: in, tool: x}]}\n"
        "  - {if: 'input.c', then: [{tool: x}]}\n"
        "  - dopar: [{if: 'true', then: [{name: one, tool: x}]}, {if: 'false', then: [{tool: "
        "x}]}]\n",
        "{\"a\":1,\"b\":1}");
    rig_begin(&rig);
    EXPECT_TEXT(rig_name(&rig, 3), "in");
    rig_run(&rig, 3, "1");
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    EXPECT_TEXT(rig_name(&rig, 7), "one");
    rig_run(&rig, 7, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_if, a_condition_that_cannot_be_told_fails_its_step_and_a_rescue_sees_the_error)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "try:\n  - {name: c, if: 'input.x > 1', then: [{tool: x}]}\n"
        "rescue:\n  - {if: 'error and error:find(\"condition 1\")', then: [{name: ok, tool: x}]}\n",
        "{}");
    rig_begin(&rig);
    EXPECT_STORY_HAS(&rig, "step.fail c.1#1 \"step 'c': condition 1, 'input.x > 1': ");
    EXPECT_TEXT(rig_name(&rig, 3), "ok");
    rig_fini(&rig);
}

TEST(flow_if, a_flow_that_only_decides_completes_at_once)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "if: 'false'\nthen: [{tool: x}]\n", "{}");
    rig_begin(&rig);
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_if, a_redrive_goes_on_below_the_arm_that_was_chosen)
{
    struct flow_redrive args;
    struct rig rig, again;
    str given;

    rig_init(&rig, &t->scope, SIZES, "{}");
    rig_begin(&rig);
    rig_run(&rig, 1, "{\"n\":11}");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 3, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 3, "\"no\""));
    EXPECT_EQ(rig.state, LIFE_FAILED);
    args = (struct flow_redrive){ .definition = rig.definition,
                                  .memory = rig.memory,
                                  .attempts = &rig.attempts,
                                  .retry_of = STR("x") };
    EXPECT_OK(flow_redrive(rig.scope, &args, &given));
    rig_init(&again, &t->scope, SIZES, "{}");
    EXPECT_OK(rig_do(&again, (struct event){ .kind = EVENT_START, .given = given }));
    EXPECT_TEXT(rig_name(&again, 1), "middle");
    rig_fini(&again);
    rig_fini(&rig);
}

TEST(flow_if, an_if_is_checked)
{
    static const char *const bad[][2] = {
        { "do: [{if: 'true'}]", "an 'if' needs 'then: [STEP, ...]'" },
        { "do: [{if: 1, then: []}]", "'if' must be a condition in quotes" },
        { "do: [{if: 'x ==', then: []}]", "is not an expression" },
        { "do: [{if: 'result == 1', then: []}]", "has no 'result' here" },
        { "do: [{if: 'true', then: 7}]", "'then' must be an array of steps" },
        { "do: [{if: 'true', then: [], else: {}}]", "'else' must be an array of steps" },
        { "do: [{if: 'true', then: [], elif: 1}]", "'elif' must be a list of {if, then}" },
        { "do: [{if: 'true', then: [], elif: [1]}]", "each of 'elif' is {if, then}" },
        { "do: [{if: 'true', then: [], elif: [{if: 'true', then: [], more: 1}]}]",
          "unknown key 'elif.more'" },
        { "do: [{tool: x, then: []}]", "'then' belongs to a step with 'if'" },
        { "do: [{tool: x, if: 'true', then: []}]", "do not go together" },
        { "do: [{if: 'true', then: [], retry: {max: 2}}]", "a condition is not tried again" },
        { "do: [{if: 'true', then: [], timeout: 1s}]", "remove 'timeout'" },
        { "do: [{if: 'steps.none.result', then: []}]", "names steps.none" },
        { "do: [{name: c, if: 'true', then: []}, {tool: x, args: {a: '{{steps.c.result}}'}}]",
          "a condition has no result" },
        { "do: [{name: c, if: 'true', then: []}, {if: 'steps.c.result', then: []}]",
          "no such step with a result" },
        { "steps: {a: {if: 'true', then: [], done: true}}", "'if' belongs to a tree" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        rig_refused(&t->scope, bad[i][0], bad[i][1]);
    EXPECT_HAS(arena_str(&t->scope.arena, rig_compile(&t->scope, SIZES, NULL)->plan_text).data,
               "\"tree\":[\"do\",0,[\"select\",1,[\"do\",2],[\"do\",3],[\"do\"],[\"do\",4]],5]");
}
