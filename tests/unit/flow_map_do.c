/* flow_map_do.c - a map that does several steps for each item, one after the other: map.do. */
#include "base/limits.h"
#include "flow_rig.h"
#include <stdio.h>

#define ORDER(more)                                                                                \
    "steps:\n"                                                                                     \
    "  each:\n    map:\n      over: '{{input.items}}'\n" more "      do:\n"                        \
    "        - {name: pick, tool: pick, retry: {max: 1}, args: {sku: '{{item}}', n: "              \
    "'{{index}}'}}\n"                                                                              \
    "        - {tool: pack, retry: {max: 1}, args: {box: '{{steps.pick.result.box}}', of: "        \
    "'{{item}}'}}\n"                                                                               \
    "        - {name: send, tool: send, retry: {max: 1}, args: {was: '{{= steps.pick.result.box "  \
    ".. "                                                                                          \
    "item }}'}}\n"                                                                                 \
    "    done: true\n"
#define ITEMS "{\"items\":[\"a\",\"b\",\"c\"]}"

TEST(flow_map_do, the_steps_of_an_item_follow_each_other_and_see_what_they_brought_for_it)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER(""), ITEMS);
    rig_begin(&rig);
    EXPECT_STORY_HAS(&rig, "[[\"step\",2,1],[\"step\",3,1],[\"step\",4,1]]");
    rig_run(&rig, 3, "{\"box\":\"B\"}");
    EXPECT_STORY_HAS(&rig, "step.complete pick.3#1 {\"box\":\"B\"} [[\"end\",3],[\"step\",5,2]]");
    rig_run(&rig, 2, "{\"box\":\"A\"}");
    EXPECT_TEXT(rig_args(&rig, 5), "{\"box\":\"B\",\"of\":\"b\"}");
    EXPECT_TEXT(rig_args(&rig, 6), "{\"box\":\"A\",\"of\":\"a\"}");
    rig_run(&rig, 5, "1");
    EXPECT_TEXT(rig_args(&rig, 7), "{\"was\":\"Bb\"}");
    rig_run(&rig, 7, "\"sent b\"");
    rig_run(&rig, 6, "1");
    rig_run(&rig, 8, "\"sent a\"");
    rig_run(&rig, 4, "{\"box\":\"C\"}");
    rig_run(&rig, 9, "1");
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    rig_run(&rig, 10, "\"sent c\"");
    EXPECT_STORY_HAS(&rig, "finish [\"sent a\",\"sent b\",\"sent c\"]");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_map_do, an_item_takes_one_place_until_its_last_step_is_done)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER("      max_parallel: 1\n"), ITEMS);
    rig_begin(&rig);
    for (uint32_t i = 2; i <= 10; i++) {
        EXPECT_EQ(flow_behavior.live_steps(rig.memory), 2);
        rig_run(&rig, i, "{\"box\":\"x\"}");
    }
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_map_do, a_step_that_fails_fails_its_item_and_those_under_way_go_on_to_their_end)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER("      max_parallel: 2\n"), ITEMS);
    rig_begin(&rig);
    rig_run(&rig, 2, "{\"box\":\"A\"}");
    rig_fail(&rig, 4, "\"torn\""); /* the second step of the first item */
    EXPECT_EQ(flow_behavior.live_steps(rig.memory), 2);
    rig_run(&rig, 3, "{\"box\":\"B\"}");
    rig_run(&rig, 5, "1");
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    rig_run(&rig, 6, "1");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_STR(rig.last_payload, "{\"reason\":\"item-failed\",\"index\":0,\"error\":\"torn\"}");
    rig_fini(&rig);
}

TEST(flow_map_do, failures_that_are_tolerated_stand_in_their_places)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER("      tolerate: all\n"), ITEMS);
    rig_begin(&rig);
    rig_fail(&rig, 2, "\"gone\"");
    rig_run(&rig, 3, "{\"box\":\"B\"}");
    rig_run(&rig, 4, "{\"box\":\"C\"}");
    rig_fail(&rig, 5, "7");
    rig_run(&rig, 6, "1");
    rig_run(&rig, 7, "\"sent c\"");
    EXPECT_STORY_HAS(&rig, "finish [{\"failed\":true,\"index\":0,\"error\":\"gone\"},{\"failed\":"
                           "true,\"index\":1,\"error\":7},\"sent c\"]");
    rig_fini(&rig);
}

TEST(flow_map_do, a_step_may_be_of_any_kind_and_is_tried_again_with_the_same_item)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "do: [{name: m, map: {over: [1s, 2s], as: time, do: [{name: s, tool: x}, {wait: {timer: "
        "'{{time}}'}}, {approval: {}}, {wait: {signal: go, value: '{{time}} "
        "{{steps.s.result}}'}, timeout: 5s, retry: {max: 2, backoff: [1s]}}]}, augment: {m: "
        "identity}}]",
        "{}");
    rig_begin(&rig);
    rig_run(&rig, 2, "\"S1\"");
    EXPECT_STORY_HAS(&rig, "[\"arm\",\"m.map.1\",2000,4]");
    EXPECT_OK(rig_timer(&rig, "m.map.1", 4));
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_APPROVE, .ordinal = 5 }));
    EXPECT_STORY_HAS(&rig, "\"1s S1\"");
    EXPECT_OK(rig_timer(&rig, "~timeout", 6));
    EXPECT_OK(rig_timer(&rig, "~retry", 7));
    EXPECT_STORY_HAS(&rig, "\"1s S1\"");
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("go") }));
    rig_fail(&rig, 3, "\"no\"");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
}

TEST(flow_map_do, a_redrive_goes_on_at_the_step_that_failed_with_its_key_and_what_was_brought)
{
    struct flow_redrive args;
    struct rig rig, again;
    struct flow_call call;
    str given;

    rig_init(&rig, &t->scope, ORDER(""), ITEMS);
    rig_begin(&rig);
    rig_run(&rig, 2, "{\"box\":\"A\"}"); /* 5: pack a */
    rig_run(&rig, 3, "{\"box\":\"B\"}"); /* 6: pack b */
    rig_run(&rig, 6, "1");               /* 7: send b */
    rig_run(&rig, 7, "\"sent b\"");
    rig_fail(&rig, 4, "\"no c\"");
    rig_run(&rig, 5, "1"); /* 8: send a */
    rig_fail(&rig, 8, "\"no a\"");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    args = (struct flow_redrive){ .definition = rig.definition,
                                  .memory = rig.memory,
                                  .attempts = &rig.attempts,
                                  .retry_of = STR("x") };
    EXPECT_OK(flow_redrive(rig.scope, &args, &given));
    EXPECT_HAS(
        arena_str(&t->scope.arena, given).data,
        "\"keys\":[[\"each\",\"x.1\"]],\"maps\":[[\"each\",[[0,null,{\"at\":\"send\",\"key\":"
        "\"x.8\",\"results\":{\"pick\":{\"box\":\"A\"},\"each.map.1\":1}}],[1,\"sent b\"],[2,"
        "null,{\"at\":\"pick\",\"key\":\"x.4\",\"results\":{}}]]]]");
    rig_init(&again, &t->scope, ORDER(""), ITEMS);
    EXPECT_OK(rig_do(&again, (struct event){ .kind = EVENT_START, .given = given }));
    EXPECT_EQ(flow_behavior.live_steps(again.memory), 3);
    EXPECT_OK(flow_call(again.definition, again.memory, 2, &t->scope, &call));
    EXPECT_STR(call.args, "{\"was\":\"Aa\"}");
    EXPECT_STR(call.key, "x.8");
    EXPECT_OK(flow_call(again.definition, again.memory, 3, &t->scope, &call));
    EXPECT_STR(call.args, "{\"sku\":\"c\",\"n\":2}");
    EXPECT_STR(call.key, "x.4");
    rig_run(&again, 2, "\"sent a\"");
    rig_run(&again, 3, "{\"box\":\"C\"}");
    EXPECT_OK(flow_call(again.definition, again.memory, 4, &t->scope, &call));
    EXPECT(!call.key.data);
    rig_run(&again, 4, "1");
    rig_run(&again, 5, "\"sent c\"");
    EXPECT_STORY_HAS(&again, "[\"sent a\",\"sent b\",\"sent c\"]");
    rig_fini(&again);
    rig_fini(&rig);
}

TEST(flow_map_do, what_an_item_did_is_undone_the_last_first_and_a_cancel_begins_no_next_step)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "try: [{name: m, map: {over: [a, b], do: [{name: p, tool: p, compensate: {tool: u, args: "
        "{i: '{{item}}', r: '{{steps.p.result}}'}}}, {name: q, tool: q, compensate: {tool: v, "
        "args: {p: '{{steps.p.result}}', q: '{{steps.q.result}}'}}}]}}]\n"
        "finally: [{name: f, tool: f}]",
        "{}");
    rig_begin(&rig);
    rig_run(&rig, 2, "1"); /* 4: q of a */
    rig_run(&rig, 4, "2");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 3, NULL));
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_CANCEL }));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 3, "3")); /* awaited, since it may be done */
    EXPECT_STORY_HAS(&rig, "step.fail m.1#1");
    rig_run(&rig, 5, "0"); /* the finally */
    EXPECT_TEXT(rig_args(&rig, 6), "{\"i\":\"b\",\"r\":3}");
    rig_run(&rig, 6, "0");
    EXPECT_TEXT(rig_args(&rig, 7), "{\"p\":1,\"q\":2}");
    rig_run(&rig, 7, "0");
    EXPECT_TEXT(rig_args(&rig, 8), "{\"i\":\"a\",\"r\":1}");
    rig_run(&rig, 8, "0");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

TEST(flow_map_do, what_stands_below_a_select_is_checked_as_its_own)
{
    struct findings findings = { 0 };

    (void)rig_compile(
        &t->scope,
        "do: [{name: s, select: [{timer: 1s, do: [{map: {over: [1], do: [{name: p, tool: "
        "x}, {tool: x, args: {i: '{{item}}', p: '{{steps.p.result}}'}}]}}]}]}]",
        &findings);
    EXPECT_EQ(findings.count, 0);
}

TEST(flow_map_do, the_list_of_steps_is_checked)
{
    static const char *const bad[][2] = {
        { "{over: [1]}", "a map needs 'step: STEP' or 'do: [STEP, ...]'" },
        { "{over: [1], do: []}", "map.do must be a list of steps" },
        { "{over: [1], do: {tool: x}}", "map.do must be a list of steps" },
        { "{over: [1], step: [{tool: x}]}", "map.step must be one step; a list" },
        { "{over: [1], step: {tool: x}, do: [{tool: x}]}", "'step' or 'do', not both" },
        { "{over: [1], do: [7]}", "a step must be an object" },
        { "{over: [1], do: [{tool: x}, {map: {over: [], step: {tool: x}}}]}",
          "a map cannot be the step of another one" },
        { "{over: [1], do: [{tool: x, args: {a: '{{steps.q.result}}'}}, {name: q, tool: x}]}",
          "only a later step of the same item sees them" },
        { "{over: [1], do: [{name: q, tool: x}, {tool: x, args: {a: '{{= steps.z.result }}'}}]}",
          "there is no such step" },
        { "{over: [1], do: [{tool: x, args: {a: '{{= steps.q.result }}'}}, {name: q, tool: x}]}",
          "there is no such step with a result" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];

        (void)snprintf(text, sizeof text, "steps: {a: {map: %s, done: true}}", bad[i][0]);
        rig_refused(&t->scope, text, bad[i][1]);
    }
    EXPECT_HAS(arena_str(&t->scope.arena, rig_compile(&t->scope, ORDER(""), NULL)->plan_text).data,
               "\"of\":0,\"then\":2}");
}
