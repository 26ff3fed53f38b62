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
