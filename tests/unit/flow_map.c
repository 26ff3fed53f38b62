/* flow_map.c - a step for each item of a list: map. */
#include "base/limits.h"
#include "flow_rig.h"
#include <stdio.h>

#define ORDER(more)                                                                                \
    "steps:\n"                                                                                     \
    "  each:\n    map:\n      over: '{{input.items}}'\n" more                                      \
    "      step: {tool: pack, retry: {max: 1}, args: {sku: '{{item.sku}}', n: '{{index}}', all: "  \
    "'{{input.items.0.sku}}', text: 'no {{index}} is {{item.sku}}'}}\n"                            \
    "    augment: {packed: identity}\n    next: last\n"                                            \
    "  last: {tool: x, args: {all: '{{steps.each.result}}', c: '{{context.packed}}'}, done: "      \
    "true}\n"
#define ITEMS "{\"items\":[{\"sku\":\"a\"},{\"sku\":\"b\"},{\"sku\":\"c\"}]}"

TEST(flow_map, each_item_has_its_step_and_the_results_are_in_the_order_of_the_list)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER(""), ITEMS);
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"]]\n"
                       "step.start each.1#1 [{\"sku\":\"a\"},{\"sku\":\"b\"},{\"sku\":\"c\"}] "
                       "[[\"step\",2,1],[\"step\",3,1],[\"step\",4,1]]\n");
    EXPECT_TEXT(rig_args(&rig, 3), "{\"sku\":\"b\",\"n\":1,\"all\":\"a\",\"text\":\"no 1 is b\"}");
    rig_run(&rig, 4, "\"C\"");
    rig_run(&rig, 2, "\"A\"");
    rig_run(&rig, 3, "\"B\"");
    EXPECT_STORY_HAS(&rig,
                     "step.complete each.1#1 [\"A\",\"B\",\"C\"] [[\"end\",1],[\"step\",5,2]]");
    EXPECT_TEXT(rig_args(&rig, 5), "{\"all\":[\"A\",\"B\",\"C\"],\"c\":[\"A\",\"B\",\"C\"]}");
    rig_run(&rig, 5, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_map, no_more_items_are_under_way_than_max_parallel)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER("      max_parallel: 1\n"), ITEMS);
    rig_begin(&rig);
    for (uint32_t i = 2; i <= 4; i++) {
        char args[8];

        EXPECT_EQ(flow_behavior.live_steps(rig.memory), 2);
        (void)snprintf(args, sizeof args, "\"n\":%u", i - 2);
        EXPECT_HAS(rig_args(&rig, i), args);
        rig_run(&rig, i, "1");
    }
    EXPECT_STORY_HAS(&rig, "[1,1,1]");
    rig_fini(&rig);
}

TEST(flow_map, the_first_failure_begins_no_more_and_what_was_begun_runs_to_its_end)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER("      max_parallel: 2\n"), ITEMS);
    rig_begin(&rig);
    rig_fail(&rig, 3, "\"no\"");
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    EXPECT_EQ(flow_behavior.live_steps(rig.memory), 2);
    rig_run(&rig, 2, "1");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_STR(rig.last_payload, "{\"reason\":\"item-failed\",\"index\":1,\"error\":\"no\"}");
    rig_fini(&rig);
}

TEST(flow_map, failures_that_are_tolerated_stand_in_their_places)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER("      tolerate: all\n"), ITEMS);
    rig_begin(&rig);
    rig_fail(&rig, 2, "\"a\"");
    rig_run(&rig, 3, "7");
    rig_fail(&rig, 4, "\"c\"");
    EXPECT_STORY_HAS(&rig,
                     "step.complete each.1#1 [{\"failed\":true,\"index\":0,\"error\":\"a\"},7,"
                     "{\"failed\":true,\"index\":2,\"error\":\"c\"}]");
    rig_fini(&rig);
    rig_init(&rig, &t->scope, ORDER("      tolerate: 1\n      collect: false\n"), ITEMS);
    rig_begin(&rig);
    rig_fail(&rig, 2, "\"a\"");
    rig_run(&rig, 3, "7");
    rig_run(&rig, 4, "7");
    EXPECT_STORY_HAS(&rig, "step.complete each.1#1 {\"count\":3,\"failed\":1}");
    rig_fini(&rig);
    rig_init(&rig, &t->scope, ORDER("      tolerate: 1\n"), ITEMS);
    rig_begin(&rig);
    rig_fail(&rig, 4, "\"c\"");
    rig_fail(&rig, 3, "\"b\"");
    rig_run(&rig, 2, "7");
    EXPECT_STR(rig.last_payload, "{\"reason\":\"item-failed\",\"index\":1,\"error\":\"b\"}");
    rig_fini(&rig);
}

TEST(flow_map, an_empty_list_is_done_at_once_and_what_follows_sees_what_came_before)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "do:\n  - {name: a, tool: x, augment: {a: identity}}\n"
             "  - {name: m, map: {over: '{{steps.a.result}}', step: {tool: x}}, augment: {m: "
             "identity}}\n"
             "  - {name: z, tool: x, args: {a: '{{steps.a.result}}', m: '{{steps.m.result}}', c: "
             "'{{context}}'}}\n",
             "{}");
    rig_begin(&rig);
    rig_run(&rig, 1, "[]");
    EXPECT_TEXT(rig_args(&rig, 3), "{\"a\":[],\"m\":[],\"c\":{\"a\":[],\"m\":[]}}");
    rig_fini(&rig);
}

TEST(flow_map, what_is_no_list_fails_the_step)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ORDER(""), "{\"items\":{\"a\":1}}");
    rig_begin(&rig);
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_STR(rig.last_payload, "\"'over': expected a list, found {\\\"a\\\":1}\"");
    rig_fini(&rig);
}

TEST(flow_map, items_are_tried_again_and_may_wait_spawn_or_fail_to_begin)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "do: [{name: m, map: {over: [1s, 2s, x], as: time, tolerate: 1, step: {tool: sleep, args: "
        "{for: '{{time}}'}}}}]",
        "{}");
    rig_begin(&rig);
    EXPECT_STORY_HAS(&rig, "[\"arm\",\"m.map.0\",2000,2]");
    EXPECT_STORY_HAS(&rig, "step.fail m.map.0.4#1");
    EXPECT_OK(rig_timer(&rig, "m.map.0", 3));
    EXPECT_OK(rig_timer(&rig, "m.map.0", 2));
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
    rig_init(
        &rig, &t->scope,
        "do: [{name: m, map: {over: [a, b], step: {tool: x, args: {v: '{{item}}'}, retry: {max: 2, "
        "backoff: [1s]}}}}]",
        "{}");
    rig_begin(&rig);
    rig_fail(&rig, 2, "1");
    EXPECT_OK(rig_timer(&rig, "~retry", 4));
    EXPECT_TEXT(rig_args(&rig, 4), "{\"v\":\"a\"}");
    rig_run(&rig, 4, "1");
    rig_run(&rig, 3, "2");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_map, a_timeout_of_the_map_ends_its_items)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "steps: {m: {map: {over: [1, 2], step: {tool: x}}, timeout: 1m, on_error: z, done: true}, "
        "z: {tool: x, done: true}}",
        "{}");
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_timer(&rig, "~timeout", 1));
    EXPECT_STORY(
        &rig,
        "step.timeout m.1#1 \"timeout\" [[\"end\",1],[\"end\",2],[\"end\",3],[\"step\",4,2]]\n");
    rig_fini(&rig);
}

TEST(flow_map, a_redrive_runs_only_the_items_that_were_not_done)
{
    struct flow_redrive args;
    struct rig rig, again;
    str given;

    rig_init(&rig, &t->scope, ORDER(""), ITEMS);
    rig_begin(&rig);
    rig_run(&rig, 4, "\"C\"");
    rig_fail(&rig, 3, "\"no\"");
    rig_run(&rig, 2, "\"A\"");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    args = (struct flow_redrive){ .definition = rig.definition,
                                  .memory = rig.memory,
                                  .attempts = &rig.attempts,
                                  .retry_of = STR("x") };
    EXPECT_OK(flow_redrive(rig.scope, &args, &given));
    EXPECT_HAS(arena_str(&t->scope.arena, given).data,
               "\"keys\":[[\"each\",\"x.1\"],[\"each.map.0\",\"x.3\"]],\"maps\":[[\"each\",[[0,"
               "\"A\"],[2,\"C\"]]]]");
    rig_init(&again, &t->scope, ORDER(""), ITEMS);
    EXPECT_OK(rig_do(&again, (struct event){ .kind = EVENT_START, .given = given }));
    EXPECT_EQ(flow_behavior.live_steps(again.memory), 2);
    EXPECT_HAS(rig_args(&again, 2), "\"sku\":\"b\"");
    rig_run(&again, 2, "\"B\"");
    EXPECT_STORY_HAS(&again, "[\"A\",\"B\",\"C\"]");
    rig_fini(&again);
    rig_fini(&rig);
}

TEST(flow_map, a_map_that_ends_last_completes_the_join_or_leads_nowhere)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "steps: {a: {tool: x, parallel: [m, b]}, m: {map: {over: [1], step: {tool: x}}, join: j}, "
        "b: {tool: x, join: j}, j: {tool: x, done: true}}",
        "{}");
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    rig_run(&rig, 3, "1");
    rig_run(&rig, 4, "1"); /* the item */
    EXPECT_STORY_HAS(&rig, "step.complete m.2#1 [1] [[\"end\",2],[\"step\",5,4]]");
    rig_run(&rig, 5, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
    rig_init(
        &rig, &t->scope,
        "steps: {m: {map: {over: [1], step: {tool: x}}, branch: [{if: 'result == 7', then: m}]}}",
        "{}");
    rig_begin(&rig);
    rig_run(&rig, 2, "1");
    EXPECT_STR(rig.last_payload, "\"no-branch-matched\"");
    rig_fini(&rig);
}

TEST(flow_map, a_map_is_checked)
{
    static const char *const bad[][2] = {
        { "{step: {tool: x}}", "a map needs 'over: LIST'" },
        { "{over: [1]}", "a map needs 'step: STEP' or 'do: [STEP, ...]'" },
        { "{over: 7, step: {tool: x}}", "map.over must be a list or a template" },
        { "{over: [], step: 7}", "a step must be an object" },
        { "{over: [], step: {tool: x}, more: 1}", "unknown key 'map.more'" },
        { "{over: [], step: {tool: x, next: a}}",
          "'next' belongs to 'steps', not to a step of a map" },
        { "{over: [], as: steps, step: {tool: x}}", "map.as must be a name" },
        { "{over: [], as: 'a b', step: {tool: x}}", "map.as must be a name" },
        { "{over: [], max_parallel: 0, step: {tool: x}}",
          "map.max_parallel must be a number from 1" },
        { "{over: [], tolerate: some, step: {tool: x}}",
          "map.tolerate must be a number from 0, or 'all'" },
        { "{over: [], collect: 1, step: {tool: x}}", "map.collect must be true or false" },
        { "{over: [], step: {map: {over: [], step: {tool: x}}}}",
          "a map cannot be the step of another one" },
        { "{over: [], step: {select: [{timer: 1s, then: a}]}}",
          "a select cannot be a step of a map" },
        { "{over: [], step: {tool: x, augment: {a: b}}}", "puts nothing into the context" },
        { "{over: '{{steps.b.result}}', step: {name: b, tool: x}}",
          "results of a map's items are its own result" },
        { "7", "'map' must be {over, step} or {over, do}" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];

        (void)snprintf(text, sizeof text, "steps: {a: {map: %s, done: true}}", bad[i][0]);
        rig_refused(&t->scope, text, bad[i][1]);
    }
    rig_refused(&t->scope, "do: [{map: {over: [], step: {tool: x}}, retry: {max: 2}}]",
                "a map is not tried again");
    EXPECT_HAS(arena_str(&t->scope.arena, rig_compile(&t->scope, ORDER(""), NULL)->plan_text).data,
               "\"idempotent\":true,\"of\":0}");
}

TEST(map, an_expression_makes_the_list_and_sees_the_item_and_its_number)
{
    struct rig rig;
    struct flow_call call;

    rig_init(&rig, &t->scope,
             "steps: {m: {map: {over: '{{= local t = {} for _, i in ipairs(input.l) do if i.n > 1 "
             "then t[#t + 1] = i end end return t }}', as: row, "
             "step: {tool: x, args: {v: '{{= row.n * 10 + index }}'}}}, done: true}}",
             "{\"l\":[{\"n\":1},{\"n\":2},{\"n\":3}]}");
    rig_begin(&rig);
    EXPECT_OK(flow_call(rig.definition, rig.memory, 2, &t->scope, &call));
    EXPECT_STR(call.args, "{\"v\":20}");
    EXPECT_OK(flow_call(rig.definition, rig.memory, 3, &t->scope, &call));
    EXPECT_STR(call.args, "{\"v\":31}");
    rig_run(&rig, 2, "1");
    rig_run(&rig, 3, "2");
    EXPECT_STR(rig.last_payload, "[1,2]");
    rig_fini(&rig);
}
