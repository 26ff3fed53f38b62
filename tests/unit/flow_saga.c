/* flow_saga.c - compensations: what was done is undone, in reverse order (CW1-CW5). */
#include "flow_rig.h"
#include <stdio.h>

static void expect_call(struct rig *rig, uint32_t ordinal, const char *step, const char *args)
{
    struct flow_call call = rig_call(rig, ordinal);

    EXPECT_STR(call.step, step);
    EXPECT_STR(call.args, args);
}

#define TRIP                                                                                       \
    "saga: true\ndo:\n"                                                                            \
    "  - {name: flight, tool: book, augment: {ref: ref}, compensate: {tool: free, args: {id: "     \
    "'{{steps.flight.result.ref}}', was: '{{context.ref}}'}}}\n"                                   \
    "  - {name: hotel, tool: book, augment: {ref: ref}, compensate: {name: leave, tool: free, "    \
    "args: {id: '{{steps.hotel.result.ref}}'}, retry: {max: 1}}}\n"                                \
    "  - {name: look, tool: look, compensate: read-only}\n"                                        \
    "  - {name: car, tool: book, compensate: {tool: free}}\n"

static void book_two(struct rig *rig)
{
    rig_begin(rig);
    rig_run(rig, 1, "{\"ref\":\"F\"}");
    rig_run(rig, 2, "{\"ref\":\"H\"}");
    rig_run(rig, 3, "1");
}

TEST(flow_saga, cw3_after_a_failure_what_was_done_is_undone_in_reverse_order_with_captured_arguments)
{
    struct rig rig;

    rig_init(&rig, &t->scope, TRIP, NULL);
    book_two(&rig);
    rig_fail(&rig, 4, "\"no car\"");
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    EXPECT_STORY_HAS(&rig, "compensate {\"because\":\"failed\",\"error\":\"no car\"}");
    expect_call(&rig, 5, "leave", "{\"id\":\"H\"}");
    EXPECT_EQ(flow_behavior.live_steps(rig.memory), 1);
    rig_run(&rig, 5, "null");
    expect_call(&rig, 6, "flight.compensate", "{\"id\":\"F\",\"was\":\"F\"}");
    rig_run(&rig, 6, "null");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_STR(rig.last_payload, "\"no car\"");
    rig_fini(&rig);
}

TEST(flow_saga, cw4_a_compensation_that_fails_holds_the_instance_and_is_tried_again_with_its_key)
{
    struct flow_call first, again;
    struct rig rig;

    rig_init(&rig, &t->scope, TRIP, NULL);
    book_two(&rig);
    rig_fail(&rig, 4, "\"no car\"");
    first = rig_call(&rig, 5);
    rig_fail(&rig, 5, "\"away\"");
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    EXPECT_STORY(&rig, "step.fail leave.5#1 \"away\" [[\"end\",5],[\"step\",6,3,2,\"ready\"]]\n");
    again = rig_call(&rig, 6);
    EXPECT_EQ(again.first_ordinal, first.first_ordinal);
    expect_call(&rig, 6, "leave", "{\"id\":\"H\"}");
    rig_run(&rig, 6, "null");
    rig_run(&rig, 7, "null");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
}

TEST(flow_saga, cw2_a_cancel_undoes_too_and_a_second_one_changes_nothing)
{
    struct event cancel = { .kind = EVENT_CANCEL, .actor = STR("ann"), .reason = STR("ill") };
    struct rig rig;

    rig_init(&rig, &t->scope, TRIP, NULL);
    book_two(&rig);
    EXPECT_OK(rig_do(&rig, cancel)); /* `car` is ready: it does not run any more */
    EXPECT_STORY(&rig,
                 "compensate {\"because\":\"cancelled\"} [[\"end\",4],[\"step\",5,3]]\n");
    EXPECT_EQ(rig_do(&rig, cancel), PAWL_CONFLICT);
    rig_run(&rig, 5, "null");
    EXPECT_EQ(rig_do(&rig, cancel), PAWL_CONFLICT);
    rig_run(&rig, 6, "null");
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

TEST(flow_saga, what_runs_when_it_fails_is_awaited_if_it_can_be_undone_and_ended_if_not)
{
    static const char text[] =
        "steps:\n  s: {tool: set, parallel: [a, b, c]}\n"
        "  a: {tool: x, compensate: {tool: u, args: {n: '{{steps.a.result}}'}}, join: j}\n"
        "  b: {tool: x, join: j}\n"
        "  c: {tool: x, retry: {max: 1}, join: j}\n  j: {tool: x, done: true}\n";
    struct rig rig;

    rig_init(&rig, &t->scope, text, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 3, NULL));
    rig_fail(&rig, 4, "\"no\"");
    EXPECT_STORY_HAS(&rig, "\"error\":\"no\"} [[\"end\",3]]");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 2, "7")); /* it leads nowhere any more */
    expect_call(&rig, 5, "a.compensate", "{\"n\":7}");
    rig_run(&rig, 5, "null");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_STR(rig.last_payload, "\"no\"");
    rig_fini(&rig);
}

TEST(flow_saga, without_anything_done_a_failure_and_a_cancel_end_at_once)
{
    struct rig rig;

    rig_init(&rig, &t->scope, TRIP, NULL);
    rig_begin(&rig);
    rig_fail(&rig, 1, "1");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
    rig_init(&rig, &t->scope, TRIP, NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_CANCEL }));
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

TEST(flow_saga, after_a_pivot_what_was_done_before_it_stays)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "do:\n  - {name: a, tool: x, compensate: {tool: u}}\n"
             "  - {name: p, tool: x, compensate: pivot}\n"
             "  - {name: b, tool: x, compensate: {tool: u}}\n  - {name: c, tool: x}\n",
             NULL);
    rig_begin(&rig);
    for (uint32_t i = 1; i <= 3; i++)
        rig_run(&rig, i, "1");
    rig_fail(&rig, 4, "1");
    expect_call(&rig, 5, "b.compensate", "{}");
    rig_run(&rig, 5, "1");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
}

TEST(flow_saga, the_items_of_a_map_are_undone_in_reverse_order_of_their_completion)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "do: [{name: m, map: {over: [a, b, c], step: {name: s, tool: x, compensate: {tool: u, "
             "args: {i: '{{item}}', r: '{{steps.s.result}}'}}}}}]",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 3, "1");
    rig_run(&rig, 2, "2");
    rig_fail(&rig, 4, "\"no\"");
    expect_call(&rig, 5, "s.compensate", "{\"i\":\"a\",\"r\":2}");
    rig_run(&rig, 5, "1");
    expect_call(&rig, 6, "s.compensate", "{\"i\":\"b\",\"r\":1}");
    rig_run(&rig, 6, "1");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
}

TEST(flow_saga, what_was_undone_is_not_run_again)
{
    struct flow_redrive args;
    struct rig rig;
    str given;

    rig_init(&rig, &t->scope, TRIP, NULL);
    book_two(&rig);
    rig_fail(&rig, 4, "1");
    rig_run(&rig, 5, "1");
    rig_run(&rig, 6, "1");
    args = (struct flow_redrive){ .definition = rig.definition,
                                  .memory = rig.memory,
                                  .attempts = &rig.attempts,
                                  .retry_of = STR("x") };
    EXPECT_EQ(flow_redrive(rig.scope, &args, &given), PAWL_CONFLICT);
    rig_fini(&rig);
}

TEST(flow_saga, cw1_a_saga_demands_that_every_effect_says_how_it_is_undone)
{
    static const char *const bad[][2] = {
        { "saga: true\ndo: [{tool: x}]", "a saga needs 'compensate' here" },
        { "saga: true\ndo: [{spawn: {definition: x}}]", "a saga needs 'compensate' here" },
        { "saga: true\ndo: [{external: true}]", "a saga needs 'compensate' here" },
        { "saga: true\ndo: [{map: {over: [], step: {tool: x}}}]", "a saga needs 'compensate' here" },
        { "saga: yes please\ndo: [{tool: log, args: {message: a}}]", "'saga' must be true or false" },
        { "do: [{tool: x, compensate: maybe}]", "or read-only, or pivot, found a string" },
        { "do: [{tool: x, compensate: [1]}]", "or read-only, or pivot, found an array" },
        { "do: [{tool: log, args: {message: a}, compensate: {tool: u}}]", "nothing that could be undone" },
        { "do: [{wait: {timer: 1s}, compensate: {tool: u}}]", "nothing that could be undone" },
        { "do: [{tool: x, compensate: {tool: u, compensate: {tool: v}}}]", "no compensation of its own" },
        { "do: [{tool: x, compensate: {wait: {timer: 1s}}}]", "a compensation calls a tool" },
        { "do: [{tool: x, compensate: {tool: u, augment: {a: b}}}]", "puts nothing into the context" },
        { "steps: {a: {tool: x, compensate: {tool: u, next: a}, done: true}}", "not to a compensation" },
        { "do: [{tool: x, compensate: {tool: u, more: 1}}]", "unknown key 'more'" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        rig_refused(&t->scope, bad[i][0], bad[i][1]);
    (void)rig_compile(&t->scope,
                      "saga: true\ndo: [{tool: log, args: {message: a}}, {wait: {timer: 1s}}, "
                      "{approval: {}}, {tool: x, compensate: pivot}]",
                      NULL);
}
