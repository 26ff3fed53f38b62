/* flow_time.c - limits in time: how long a call may wait for a worker. */
#include "flow_rig.h"

TEST(flow_time, a_call_that_no_worker_takes_in_time_fails_with_an_error_of_its_own)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps:\n  call: {tool: x, wait_for_worker: 10s, retry: {max: 2, "
             "backoff: [1s]}, on_error: other, done: true}\n"
             "  other: {tool: y, done: true}\n",
             NULL);
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0],[\"arm\",\"~worker\",11000,1]]\n");
    rig.now_ms = 11000;
    EXPECT_OK(rig_timer(&rig, "~worker", 1));
    EXPECT_STORY(&rig, "step.timeout call.1#1 \"no-worker\" [[\"end\",1],[\"step\",2,0,2,"
                       "\"pending\"],[\"arm\",\"~retry\",12000,2]]\n");
    rig.now_ms = 12000;
    EXPECT_OK(rig_timer(&rig, "~retry", 2));
    EXPECT_STORY(&rig, "step.retry call.2#2 [[\"disarm\",\"~retry\",2],[\"ready\",2],"
                       "[\"arm\",\"~worker\",22000,2]]\n");
    rig.now_ms = 22000;
    EXPECT_OK(rig_timer(&rig, "~worker", 2));
    EXPECT_TEXT(rig_name(&rig, 3), "other");
    rig_fini(&rig);
}

TEST(flow_time, a_call_that_is_taken_in_time_has_its_own_timeout_from_then_on)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps:\n  call: {tool: x, wait_for_worker: 10s, timeout: 60s, "
             "retry: {max: 1}, done: true}\n",
             NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_STORY(&rig, "step.start call.1#1 [[\"run\",1],[\"disarm\",\"~worker\",1],"
                       "[\"arm\",\"~timeout\",61000,1]]\n");
    EXPECT_EQ(rig_timer(&rig, "~worker", 1), PAWL_NOT_AWAITING);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_RETURNED, 1, NULL)); /* it waits anew */
    EXPECT_STORY_HAS(&rig, "[\"ready\",1],[\"arm\",\"~worker\",11000,1]");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 1, "1"));
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_time, a_limit_for_workers_is_refused_where_no_worker_is_awaited)
{
    rig_refused(&t->scope, "do: [{wait: {signal: go}, wait_for_worker: 1s}]",
                "'wait_for_worker' belongs to a step that calls a tool");
    rig_refused(&t->scope, "do: [{tool: x, wait_for_worker: 0s}]",
                "'wait_for_worker' must be more than 0");
    rig_refused(&t->scope, "do: [{tool: x, wait_for_worker: soon}]", "'wait_for_worker'");
}

/* ---- Groups ---- */

TEST(flow_time, a_group_whose_time_is_over_ends_and_the_rescue_around_it_sees_why)
{
    static const char text[] =
        "do:\n"
        "  - try:\n"
        "      - dopar: [{name: a, tool: x}, {do: [{name: b, tool: x}, {name: c, tool: x}]}]\n"
        "        timeout: 10s\n"
        "      - {name: never, tool: x}\n"
        "    rescue: [{name: why, tool: x, args: {e: '{{context.exec/last-error}}'}}]\n"
        "  - {name: last, tool: x}\n";
    struct rig rig;

    rig_init(&rig, &t->scope, text, NULL);
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"],[\"arm\",\"~timeout\",11000,1],"
                       "[\"step\",2,1],[\"step\",3,2]]\n");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    rig.now_ms = 11000;
    EXPECT_OK(rig_timer(&rig, "~timeout", 1));
    EXPECT_STORY(&rig, "step.timeout do.0.try.0.dopar.1#1 \"timeout\" [[\"disarm\",\"~timeout\",1],"
                       "[\"end\",2],[\"end\",3],[\"end\",1],[\"step\",4,5]]\n");
    EXPECT_TEXT(rig_args(&rig, 4), "{\"e\":\"timeout\"}");
    rig_run(&rig, 4, "1");
    rig_run(&rig, 5, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_time, a_group_that_ends_in_time_takes_its_timer_with_it)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "timeout: 1h\ndo: [{name: a, tool: x}, {name: b, tool: x}]", NULL);
    rig_begin(&rig);
    rig_run(&rig, 2, "1");
    rig_run(&rig, 3, "1");
    EXPECT_STORY_HAS(&rig, "step.complete b.3#1 1 [[\"end\",3],[\"end\",1]]\nfinish");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_time, a_tree_whose_time_is_over_cleans_up_and_fails_with_timeout)
{
    static const char text[] = "timeout: 1h\n"
                               "do:\n"
                               "  - {try: [{name: a, wait: {signal: s}}], rescue: [{tool: never}], "
                               "finally: [{name: f, tool: x, args: {e: "
                               "'{{context.exec/last-error}}'}}]}\n"
                               "  - {name: b, tool: x}\n";
    struct rig rig;

    rig_init(&rig, &t->scope, text, NULL);
    rig_begin(&rig);
    rig.now_ms += 3600000;
    EXPECT_OK(rig_timer(&rig, "~timeout", 1));
    EXPECT_TEXT(rig_name(&rig, 3), "f");
    EXPECT_TEXT(rig_args(&rig, 3), "{\"e\":\"timeout\"}");
    EXPECT_EQ(rig_timer(&rig, "~timeout", 1), PAWL_NOT_AWAITING);
    rig_run(&rig, 3, "1");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_STR(rig.last_payload, "\"timeout\"");
    rig_fini(&rig);
}

TEST(flow_time, a_group_is_tried_again_as_a_whole)
{
    static const char text[] = "try:\n"
                               "  - {name: a, tool: x}\n"
                               "  - {name: b, tool: x}\n"
                               "retry: {max: 2, backoff: [5s], on: [busy, timeout]}\n"
                               "timeout: 60s\n"
                               "rescue: [{name: r, tool: x}]\n";
    struct rig rig;

    for (int way = 0; way < 3; way++) {
        rig_init(&rig, &t->scope, text, NULL);
        rig_begin(&rig);
        rig_run(&rig, 2, "1");
        rig_fail(&rig, 3, way == 1 ? "\"broken\"" : "\"busy\"");
        if (way == 1) { /* an error of another kind */
            EXPECT_TEXT(rig_name(&rig, 4), "r");
            rig_fini(&rig);
            continue;
        }
        EXPECT_STORY(&rig, "step.fail b.3#1 \"busy\" [[\"end\",3],[\"end\",1],[\"step\",4,0,2,"
                           "\"pending\"],[\"arm\",\"~retry\",6000,4]]\n");
        rig.now_ms = 6000;
        EXPECT_OK(rig_timer(&rig, "~retry", 4));
        EXPECT_STORY(&rig, "step.retry try.4#2 [[\"disarm\",\"~retry\",4],[\"arm\",\"~timeout\","
                           "66000,4],[\"step\",5,1]]\n");
        rig_run(&rig, 5, "1");
        if (way == 0) {
            rig_run(&rig, 6, "1");
            EXPECT_EQ(rig.state, LIFE_COMPLETED);
        } else { /* its last attempt runs out of time */
            rig.now_ms = 66000;
            EXPECT_OK(rig_timer(&rig, "~timeout", 4));
            EXPECT_TEXT(rig_name(&rig, 7), "r");
            rig_run(&rig, 7, "1");
            EXPECT_EQ(rig.state, LIFE_COMPLETED);
        }
        rig_fini(&rig);
    }
}

TEST(flow_time, a_group_that_ran_out_of_time_is_tried_again_when_it_has_cleaned_up)
{
    static const char text[] =
        "do:\n"
        "  - do: [{try: [{name: a, tool: x}], finally: [{name: f, tool: x}]}]\n"
        "    timeout: 10s\n    retry: {max: 2, backoff: [1s]}\n"
        "  - {name: z, tool: x}\n";
    struct event cancel = { .kind = EVENT_CANCEL };
    struct rig rig;

    for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
        rig_init(&rig, &t->scope, text, NULL);
        rig_begin(&rig);
        rig.now_ms = 11000;
        EXPECT_OK(rig_timer(&rig, "~timeout", 1));
        EXPECT_TEXT(rig_name(&rig, 3), "f");
        if (is_cancelled)
            EXPECT_OK(rig_do(&rig, cancel));
        rig_run(&rig, 3, "1");
        if (is_cancelled) {
            EXPECT_EQ(rig.state, LIFE_CANCELLED);
        } else {
            EXPECT_STORY_HAS(&rig, "[\"end\",1],[\"step\",4,0,2,\"pending\"]");
            rig.now_ms = 12000;
            EXPECT_OK(rig_timer(&rig, "~retry", 4));
            rig_run(&rig, 5, "1");
            rig_run(&rig, 6, "1");
            EXPECT_TEXT(rig_name(&rig, 7), "z");
        }
        rig_fini(&rig);
    }
}

TEST(flow_time, the_limits_of_a_group_are_checked)
{
    rig_refused(&t->scope, "do: [{do: [{tool: x}], timeout: 0s}]", "'timeout' must be more than 0");
    rig_refused(&t->scope, "do: [{dopar: [{tool: x}], timeout: now}]", "'timeout'");
    rig_refused(&t->scope, "do: [{do: [{tool: x}], retry: {max: 0}}]", "max");
    rig_refused(&t->scope, "do: [{do: [{tool: x}], retry: 3}]", "'retry' must be");
}

/* ---- A graph that has a time as a whole ---- */

#define TIMED                                                                                      \
    "timeout: 1h\nsteps:\n"                                                                        \
    "  a: {tool: x, retry: {max: 1}, parallel: [b, c]}\n"                                          \
    "  b: {tool: x, retry: {max: 1}, join: d, on_error: d}\n"                                      \
    "  c: {wait: {signal: go}, join: d}\n"                                                         \
    "  d: {tool: x, retry: {max: 1}, done: true}\n"

TEST(flow_time, a_graph_that_takes_too_long_fails_whatever_is_under_way)
{
    struct rig rig;

    rig_init(&rig, &t->scope, TIMED, "{}");
    rig_begin(&rig);
    EXPECT_STORY_HAS(&rig, "start [[\"step\",1,4,1,\"pending\"],[\"arm\",\"~timeout\",3601000,1],"
                           "[\"step\",2,0]]");
    rig_run(&rig, 2, "1");
    EXPECT_EQ(flow_behavior.live_steps(rig.memory), 3);
    EXPECT_OK(rig_timer(&rig, "~timeout", 1));
    EXPECT_STORY(&rig, "step.timeout steps.1#1 \"timeout\" [[\"disarm\",\"~timeout\",1]]\n"
                       "fail \"timeout\"\n");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
}

TEST(flow_time, the_time_of_a_graph_is_no_branch_of_it_and_ends_with_it)
{
    struct rig rig;

    rig_init(&rig, &t->scope, TIMED, "{}");
    rig_begin(&rig);
    rig_run(&rig, 2, "1");
    rig_run(&rig, 3, "1");
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("go") }));
    rig_run(&rig, 5, "7"); /* what it joins at */
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
    rig_init(&rig, &t->scope,
             "timeout: 1h\nsteps: {a: {tool: x, branch: [{if: 'result == 1', then: a}]}}", "{}");
    rig_begin(&rig);
    rig_run(&rig, 2, "2");
    EXPECT_STR(rig.last_payload, "\"no-branch-matched\"");
    rig_fini(&rig);
}

TEST(flow_time, what_a_graph_did_is_undone_when_its_time_is_over)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "timeout: 1h\nsteps: {a: {tool: x, compensate: {tool: u}, next: b}, b: {tool: y, "
             "compensate: {tool: v}, done: true}}",
             "{}");
    rig_begin(&rig);
    rig_run(&rig, 2, "1");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 3, NULL));
    EXPECT_OK(rig_timer(&rig, "~timeout", 1));
    EXPECT_STORY_HAS(&rig,
                     "compensate {\"because\":\"failed\",\"error\":\"timeout\"} [[\"end\",1]]");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 3, "2")); /* awaited: it may be done */
    rig_run(&rig, 4, "0");
    rig_run(&rig, 5, "0");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_STR(rig.last_payload, "\"timeout\"");
    rig_fini(&rig);
}

TEST(flow_time, a_graph_that_is_run_again_has_all_of_its_time)
{
    struct flow_redrive args;
    struct rig rig, again;
    str given;

    rig_init(&rig, &t->scope, TIMED, "{}");
    rig_begin(&rig);
    rig_run(&rig, 2, "1");
    EXPECT_OK(rig_timer(&rig, "~timeout", 1));
    args = (struct flow_redrive){ .definition = rig.definition,
                                  .memory = rig.memory,
                                  .attempts = &rig.attempts,
                                  .retry_of = STR("x") };
    EXPECT_OK(flow_redrive(rig.scope, &args, &given));
    EXPECT_HAS(
        arena_str(&t->scope.arena, given).data,
        "\"begin\":[\"b\",\"c\"],\"joins\":[],\"done\":[\"a\"],\"keys\":[[\"b\",\"x.3\"],[\"c\","
        "\"x.4\"]]");
    rig_init(&again, &t->scope, TIMED, "{}");
    again.now_ms = 5000;
    EXPECT_OK(rig_do(&again, (struct event){ .kind = EVENT_START, .given = given }));
    EXPECT_STORY_HAS(&again, "[\"arm\",\"~timeout\",3605000,3]");
    EXPECT_EQ(flow_behavior.live_steps(again.memory), 3);
    rig_fini(&again);
    rig_fini(&rig);
}

TEST(flow_time, no_way_leads_to_what_is_part_of_another_step)
{
    rig_refused(&t->scope, "timeout: 0s\nsteps: {a: {tool: x, done: true}}",
                "'timeout' must be more than 0");
    rig_refused(&t->scope, "timeout: soon\nsteps: {a: {tool: x, done: true}}",
                "must be a duration");
    rig_refused(&t->scope, "timeout: 1h\nsteps: {a: {tool: x, next: steps}}", "in no way");
    rig_refused(&t->scope, "steps: {a: {map: {over: [1], step: {tool: x}}, next: a.map.0}}",
                "'next' names 'a.map.0', which is a part of another step and in no way");
    rig_refused(&t->scope,
                "steps: {a: {tool: x, compensate: {tool: u}, on_error: a.compensate, "
                "done: true}}",
                "which is a part of another step and in no way");
}
