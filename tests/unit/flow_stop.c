/* flow_stop.c - a tree is cancelled and cleans up: its `finally` runs, and compensations. */
#include "flow_rig.h"
#include <stdio.h>

static const struct event cancel = { .kind = EVENT_CANCEL,
                                     .actor = STR_INIT("ann"),
                                     .reason = STR_INIT("ill") };

static str last_of(struct rig *rig)
{
    return buf_view(&rig->story);
}

#define ROOM                                                                                       \
    "do:\n"                                                                                        \
    "  - try:\n"                                                                                   \
    "      - {name: enter, tool: x}\n"                                                             \
    "      - try: [{name: work, tool: x, retry: {max: 9}}, {name: more, tool: x}]\n"               \
    "        rescue: [{name: rescue, tool: x}]\n"                                                  \
    "        finally: [{name: light, tool: x, args: {why: '{{context.exec/last-error}}'}}, "       \
    "{name: heat, tool: x}]\n"                                                                     \
    "      - {name: next, tool: x}\n"                                                              \
    "    finally: [{name: door, tool: x}]\n"                                                       \
    "  - {name: after, tool: x}\n"

TEST(flow_stop, a_cancel_runs_each_open_finally_the_innermost_first_and_nothing_else)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ROOM, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_do(&rig, cancel));
    EXPECT_STORY(&rig, "clean-up [[\"end\",2],[\"step\",3,4]]\n");
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    EXPECT_EQ(rig_step(&rig, EVENT_STEP_DONE, 2, "1"), PAWL_LEASE_LOST);
    EXPECT_TEXT(rig_name(&rig, 3), "light");
    EXPECT_TEXT(rig_args(&rig, 3), "{\"why\":\"cancelled\"}");
    EXPECT_EQ(rig_do(&rig, cancel), PAWL_NO_CANCEL_TRANSITION);
    rig_run(&rig, 3, "1");
    EXPECT_TEXT(rig_name(&rig, 4), "heat");
    rig_run(&rig, 4, "1");
    EXPECT_TEXT(rig_name(&rig, 5), "door");
    EXPECT_EQ(rig_do(&rig, cancel), PAWL_NO_CANCEL_TRANSITION);
    rig_run(&rig, 5, "1");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    EXPECT_HAS(last_of(&rig).data, "\ncancel\n");
    EXPECT_EQ(rig.attempts.items[1].status, STEP_CANCELLED);
    EXPECT_EQ(rig.attempts.items[2].status, STEP_DONE);
    rig_fini(&rig);
}

TEST(flow_stop, a_finally_that_runs_already_goes_on_and_one_that_fails_ends_it_all_the_same)
{
    struct rig rig;

    rig_init(&rig, &t->scope, ROOM, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "1");
    rig_run(&rig, 3, "1"); /* `more`: light is ready */
    EXPECT_TEXT(rig_name(&rig, 4), "light");
    EXPECT_OK(rig_do(&rig, cancel));
    EXPECT_STORY(&rig, "clean-up\n");
    rig_fail(&rig, 4, "\"dark\"");
    EXPECT_TEXT(rig_name(&rig, 5), "door");
    rig_fail(&rig, 5, "\"stuck\"");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

TEST(flow_stop, what_lies_in_a_finally_has_its_own_rescue_and_attempts_while_it_is_cancelled)
{
    static const char text[] = "try: [{name: a, tool: x}]\n"
                               "finally:\n"
                               "  - try: [{name: b, tool: x, retry: {max: 2, backoff: [1s]}}]\n"
                               "    rescue: [{name: c, tool: x}]\n"
                               "  - dopar: [{name: d, tool: x}, {name: e, tool: x}]\n";
    struct rig rig;

    rig_init(&rig, &t->scope, text, NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(&rig, cancel));
    rig_fail(&rig, 2, "\"no\"");
    rig.now_ms += 1000;
    EXPECT_OK(rig_timer(&rig, "~retry", 3));
    rig_fail(&rig, 3, "\"no\"");
    EXPECT_TEXT(rig_name(&rig, 4), "c");
    rig_run(&rig, 4, "1");
    rig_run(&rig, 6, "1");
    rig_run(&rig, 5, "1");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

TEST(flow_stop, branches_clean_up_beside_each_other_and_then_what_is_around_them)
{
    static const char text[] =
        "try:\n"
        "  - dopar:\n"
        "      - {try: [{name: a, tool: x}], finally: [{name: a1, tool: x}]}\n"
        "      - {name: b, tool: x}\n"
        "      - {try: [{name: c, wait: {signal: go}}], rescue: [{name: r, tool: x}], "
        "finally: [{name: c1, tool: x}]}\n"
        "finally: [{name: z, tool: x}]\n";
    struct rig rig;

    rig_init(&rig, &t->scope, text, NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(&rig, cancel));
    EXPECT_STORY(&rig, "clean-up [[\"end\",1],[\"step\",4,1],[\"end\",2],[\"end\",3],"
                       "[\"step\",5,5]]\n");
    rig_run(&rig, 5, "1");
    EXPECT_EQ(flow_behavior.live_steps(rig.memory), 1);
    rig_run(&rig, 4, "1");
    EXPECT_TEXT(rig_name(&rig, 6), "z");
    rig_run(&rig, 6, "1");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

TEST(flow_stop, what_runs_and_can_be_undone_is_awaited_and_undone_after_the_finally)
{
    static const char text[] =
        "do:\n"
        "  - {name: one, tool: x, compensate: {name: undo-one, tool: u}}\n"
        "  - try:\n"
        "      - {name: two, tool: x, retry: {max: 3}, compensate: {name: undo-two, tool: u}}\n"
        "      - {name: three, tool: x}\n"
        "    finally: [{name: last, tool: x}]\n";
    struct rig rig;

    for (int fails = 0; fails < 2; fails++) {
        rig_init(&rig, &t->scope, text, NULL);
        rig_begin(&rig);
        rig_run(&rig, 1, "1");
        EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
        EXPECT_OK(rig_do(&rig, cancel));
        EXPECT_STORY(&rig, "clean-up\n");
        EXPECT_OK(rig_step(&rig, fails ? EVENT_STEP_FAILED : EVENT_STEP_DONE, 2, "\"2\""));
        EXPECT_TEXT(rig_name(&rig, 3), "last");
        rig_run(&rig, 3, "1");
        EXPECT_STORY_HAS(&rig, "compensate {\"because\":\"cancelled\"}");
        if (!fails) {
            EXPECT_TEXT(rig_name(&rig, 4), "undo-two");
            rig_run(&rig, 4, "1");
        }
        EXPECT_TEXT(rig_name(&rig, 5 - (uint32_t)fails), "undo-one");
        rig_run(&rig, 5 - (uint32_t)fails, "1");
        EXPECT_EQ(rig.state, LIFE_CANCELLED);
        rig_fini(&rig);
    }
}

TEST(flow_stop, the_items_of_a_map_end_with_it_and_no_other_begins)
{
    static const char text[] =
        "try: [{map: {over: [1, 2, 3], max_parallel: 2, step: {name: pack, tool: x%s}}}]\n"
        "finally: [{name: last, tool: x}]\n";
    char one[256];
    struct rig rig;

    snprintf(one, sizeof one, text, "");
    rig_init(&rig, &t->scope, one, NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(&rig, cancel));
    EXPECT_STORY(&rig, "clean-up [[\"end\",1],[\"end\",2],[\"end\",3],[\"step\",4,2]]\n");
    rig_run(&rig, 4, "1");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
    snprintf(one, sizeof one, text, ", compensate: {name: undo, tool: u}");
    rig_init(&rig, &t->scope, one, NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_do(&rig, cancel));
    EXPECT_STORY(&rig, "clean-up\n"); /* an item runs: its map waits */
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 2, "1"));
    rig_run(&rig, 3, "1");
    EXPECT_TEXT(rig_name(&rig, 4), "last");
    rig_run(&rig, 4, "1");
    EXPECT_TEXT(rig_name(&rig, 5), "undo");
    rig_run(&rig, 5, "1");
    EXPECT_TEXT(rig_name(&rig, 6), "undo");
    rig_run(&rig, 6, "1");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

TEST(flow_stop, a_flow_whose_finally_is_not_open_is_cancelled_at_once)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "do: [{name: a, tool: x}, {try: [{tool: y}], finally: [{tool: z}]}]",
             NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(&rig, cancel));
    EXPECT_STORY(&rig, "cancel\n");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}
