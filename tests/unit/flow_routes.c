/* flow_routes.c - where errors lead: `on_error` of a graph's steps, and which errors are tried
 * again. */
#include "flow_rig.h"
#include <stdio.h>

/* ---- on_error -------------------------------------------------------------------------------- */

#define PAYMENT                                                                                    \
    "steps:\n"                                                                                     \
    "  charge:\n"                                                                                  \
    "    tool: charge\n    retry: {max: 2, backoff: [1s]}\n    next: ship\n"                       \
    "    on_error:\n"                                                                              \
    "      - {if: 'error == \"declined\"', then: refuse}\n"                                        \
    "      - {if: 'error.code == 7 and input.big', then: call}\n"                                  \
    "  ship: {tool: ship, on_error: call, done: true}\n"                                           \
    "  refuse: {tool: mail, args: {why: '{{context.exec/last-error}}'}, done: true}\n"             \
    "  call: {tool: phone, args: {why: '{{context.exec/last-error}}'}, done: true}\n"

TEST(flow_routes, a_step_that_failed_for_good_leads_where_its_first_condition_holds)
{
    static const char *const ends[][2] = {
        { "\"declined\"", "refuse" },
        { "{\"code\":7}", "call" },
        { "{\"code\":8}", NULL },
    };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct flow_call call;
        struct rig rig;

        rig_init(&rig, &t->scope, PAYMENT, "{\"big\":true}");
        rig_begin(&rig);
        rig_fail(&rig, 1, ends[i][0]); /* tried again first */
        EXPECT_EQ(rig.state, LIFE_RUNNING);
        EXPECT_OK(rig_timer(&rig, "~retry", 2));
        rig_fail(&rig, 2, ends[i][0]);
        if (ends[i][1]) {
            EXPECT_TEXT(rig_name(&rig, 3), ends[i][1]);
            EXPECT_OK(flow_call(rig.definition, rig.memory, 3, rig.scope, &call));
            EXPECT_HAS(arena_str(&rig.scope->arena, call.args).data, ends[i][0]);
            rig_run(&rig, 3, "1");
            EXPECT_EQ(rig.state, LIFE_COMPLETED);
        } else {
            EXPECT_EQ(rig.state, LIFE_FAILED);
            EXPECT_STR(rig.last_payload, "{\"code\":8}");
        }
        rig_fini(&rig);
    }
}

TEST(flow_routes, an_error_of_another_kind_fails_the_flow_with_what_its_condition_said)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps:\n  a: {tool: x, retry: {max: 1}, done: true, on_error: [{if: 'error.n > 3', "
             "then: b}]}\n  b: {tool: x, done: true}\n",
             NULL);
    rig_begin(&rig);
    rig_fail(&rig, 1, "{}");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_HAS(arena_str(&t->scope.arena, rig.last_payload).data, "step 'a': condition 1");
    rig_fini(&rig);
}

TEST(flow_routes, rejected_gates_and_timeouts_and_steps_that_cannot_begin_lead_there_too)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps:\n  g: {approval: {}, on_error: t, done: true}\n"
             "  t: {external: true, timeout: 1m, on_error: s, done: true}\n"
             "  s: {tool: sleep, args: {for: '{{input.x}}'}, on_error: e, done: true}\n"
             "  e: {tool: x, done: true}\n",
             NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_REJECT, .ordinal = 1 }));
    EXPECT_STORY(&rig, "gate.reject g.1#1 \"rejected\" [[\"end\",1],[\"step\",2,1,1,\"pending\"],"
                       "[\"arm\",\"~timeout\",61000,2]]\n");
    EXPECT_OK(rig_timer(&rig, "~timeout", 2));
    EXPECT_STORY_HAS(&rig, "step.fail s.3#1");
    EXPECT_TEXT(rig_name(&rig, 4), "e");
    rig_fini(&rig);
}

/* The one that fails went another way: the join is not waited for by it. */
TEST(flow_routes, a_branch_whose_error_leads_away_is_not_waited_for_at_the_join)
{
    static const char text[] = "steps:\n  s: {tool: x, parallel: [a, b]}\n"
                               "  a: {tool: x, join: j}\n"
                               "  b: {tool: x, retry: {max: 1}, join: j, on_error: away}\n"
                               "  away: {tool: x, next: rest}\n"
                               "  rest: {wait: {timer: 1h}, done: true}\n"
                               "  j: {tool: x, next: rest}\n";
    struct rig rig;

    rig_init(&rig, &t->scope, text, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "1"); /* a waits at j */
    rig_fail(&rig, 3, "\"no\"");
    EXPECT_STORY_HAS(&rig, "[\"step\",4,3],[\"step\",5,5]");
    rig_fini(&rig);
}

TEST(flow_routes, an_error_that_leads_to_the_step_of_a_join_begins_it_beside_those_who_wait)
{
    static const char text[] = "steps:\n  s: {tool: x, parallel: [a, b, c]}\n"
                               "  a: {tool: x, join: j}\n"
                               "  b: {tool: x, retry: {max: 1}, done: true, on_error: j}\n"
                               "  c: {tool: x, join: j}\n"
                               "  j: {tool: x, next: w}\n  w: {external: true, done: true}\n";
    struct rig rig;

    rig_init(&rig, &t->scope, text, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "1");
    rig_fail(&rig, 3, "\"no\"");
    EXPECT_TEXT(rig_name(&rig, 5), "j");
    rig_run(&rig, 4, "1"); /* c arrives: a and c begin it once more */
    EXPECT_TEXT(rig_name(&rig, 6), "j");
    rig_fini(&rig);
}

TEST(flow_routes, a_redrive_begins_where_the_error_led_and_not_at_what_failed)
{
    struct flow_redrive args;
    struct rig rig;
    str given;

    rig_init(&rig, &t->scope,
             "steps:\n  a: {tool: x, retry: {max: 1}, on_error: b, done: true}\n"
             "  b: {tool: x, retry: {max: 1}, done: true}\n",
             NULL);
    rig_begin(&rig);
    rig_fail(&rig, 1, "1");
    rig_fail(&rig, 2, "2");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    args = (struct flow_redrive){ .definition = rig.definition,
                                  .memory = rig.memory,
                                  .attempts = &rig.attempts,
                                  .retry_of = STR("x") };
    EXPECT_OK(flow_redrive(rig.scope, &args, &given));
    EXPECT_HAS(arena_str(&t->scope.arena, given).data, "\"begin\":[\"b\"]");
    EXPECT_HAS(arena_str(&t->scope.arena, given).data, "\"exec/last-error\":1");
    rig_fini(&rig);
}

TEST(flow_routes, on_error_is_checked_and_compiled)
{
    static const char *const bad[][2] = {
        { "steps: {a: {tool: x, done: true, on_error: b}}",
          "'on_error' names 'b', and there is no such step" },
        { "steps: {a: {tool: x, done: true, on_error: []}}", "found an empty one" },
        { "steps: {a: {tool: x, done: true, on_error: 7}}", "found a number" },
        { "steps: {a: {tool: x, done: true, on_error: [{if: 'true'}]}}",
          "each of 'on_error' is {if: CONDITION, then: STEP}" },
        { "steps: {a: {tool: x, done: true, on_error: [{if: 'true', then: a, more: 1}]}}",
          "unknown key 'on_error.more'" },
        { "steps: {a: {tool: x, done: true, on_error: [{if: 'result == 1', then: a}]}}",
          "a step that failed has no result" },
        { "steps: {a: {tool: x, done: true, on_error: [{if: 'error ==', then: a}]}}",
          "is not an expression" },
        { "do: [{tool: x, on_error: a}]", "'on_error' belongs to 'steps', not to a tree" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        rig_refused(&t->scope, bad[i][0], bad[i][1]);
    EXPECT_HAS(arena_str(&t->scope.arena, rig_compile(&t->scope, PAYMENT, NULL)->plan_text).data,
               "\"on_error\":[[\"error == \\\"declined\\\"\",2],[\"error.code == 7 and "
               "input.big\",3]]}");
    EXPECT_HAS(arena_str(&t->scope.arena, rig_compile(&t->scope, PAYMENT, NULL)->plan_text).data,
               "\"on_error\":[3]}");
}

/* ---- retry: on, never ------------------------------------------------------------------------ */

TEST(flow_routes, only_the_kinds_of_errors_that_are_listed_are_tried_again)
{
    static const struct {
        const char *rule, *error;
        bool is_tried;
    } cases[] = {
        { "on: [timeout, busy]", "\"busy\"", true },
        { "on: [timeout, busy]", "\"busy: later\"", true },
        { "on: [timeout, busy]", "\"busybody\"", false },
        { "on: [503]", "{\"status\":503}", true },
        { "on: [503]", "503", true },
        { "on: [503]", "{\"status\":404}", false },
        { "on: [E1]", "{\"message\":\"E1\",\"code\":\"E1\"}", true },
        { "on: [child-failed]", "{\"reason\":\"child-failed\",\"error\":1}", true },
        { "never: [declined]", "\"declined\"", false },
        { "never: [declined]", "\"other\"", true },
        { "never: [declined]", "null", true },
        { "on: [a, b], never: [b]", "\"b\"", false },
        { "on: [a, b], never: [b]", "{\"kind\":\"a\"}", true },
        { "on: [a]", "[\"a\"]", false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        struct rig rig;

        (void)snprintf(text, sizeof text,
                       "steps: {a: {tool: x, retry: {max: 2, backoff: [1s], %s}, done: true}}",
                       cases[i].rule);
        rig_init(&rig, &t->scope, text, NULL);
        rig_begin(&rig);
        rig_fail(&rig, 1, cases[i].error);
        EXPECT_EQ(rig.state == LIFE_RUNNING, cases[i].is_tried);
        rig_fini(&rig);
    }
}

TEST(flow_routes, kinds_of_errors_are_checked_and_compiled)
{
    static const char *const bad[][2] = {
        { "on: timeout", "retry.on must list" },
        { "never: []", "retry.never must list" },
        { "on: [{}]", "a kind of errors is a text or a number, found an object" },
        { "only: [a]", "unknown key 'retry.only'" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[120];

        (void)snprintf(text, sizeof text, "steps: {a: {tool: x, retry: {%s}, done: true}}",
                       bad[i][0]);
        rig_refused(&t->scope, text, bad[i][1]);
    }
    EXPECT_HAS(arena_str(&t->scope.arena,
                         rig_compile(&t->scope,
                                     "steps: {a: {tool: x, retry: {on: [timeout, 503], never: "
                                     "[x]}, done: true}}",
                                     NULL)
                             ->plan_text)
                   .data,
               "\"on\":[\"timeout\",\"503\"],\"never\":[\"x\"]}");
}

TEST(flow_routes, a_call_of_a_server_fails_with_its_own_error_and_is_not_repeated_if_it_may_be_done)
{
    static const struct {
        const char *error, *story;
    } cases[] = {
        { "{\"kind\":\"tool-error\"}",
          "child ask.1#1 {\"status\":\"failed\",\"error\":{\"kind\":\"tool-error\"}}\n"
          "step.fail ask.1#1 {\"kind\":\"tool-error\"} "
          "[[\"end\",1],[\"step\",2,0,2,\"pending\"],[\"arm\",\"~retry\",2000,2]]\n" },
        { "{\"kind\":\"unknown-outcome\"}",
          "child ask.1#1 {\"status\":\"failed\",\"error\":{\"kind\":\"unknown-outcome\"}}\n"
          "step.fail ask.1#1 {\"kind\":\"unknown-outcome\"} [[\"end\",1]]\n"
          "fail {\"kind\":\"unknown-outcome\"}\n" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig rig;

        rig_init(&rig, &t->scope,
                 "steps: {ask: {tool: mcp, args: {server: s, tool: x, args: {n: \"{{input.n}}\"}}, "
                 "retry: {max: 2, backoff: [1s]}, done: true}}",
                 "{\"n\":7}");
        rig_begin(&rig);
        EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_CHILD,
                                               .ordinal = 1,
                                               .outcome = TERMINAL_FAILURE,
                                               .payload = str_of(cases[i].error) }));
        EXPECT_STORY(&rig, cases[i].story);
        rig_fini(&rig);
    }
}

TEST(flow_routes, a_child_that_failed_is_started_again_as_another_one)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps: {a: {spawn: {definition: kid}, retry: {max: 2, backoff: [1s]}, done: true}}",
             NULL);
    rig_begin(&rig);
    EXPECT_STORY_HAS(&rig, "[\"spawn\",1");
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_CHILD,
                                           .ordinal = 1,
                                           .outcome = TERMINAL_FAILURE,
                                           .payload = STR("\"no\"") }));
    EXPECT_STORY_HAS(&rig, "[\"step\",2,0,2,\"pending\"],[\"arm\",\"~retry\",2000,2]");
    EXPECT_OK(rig_timer(&rig, "~retry", 2));
    EXPECT_STORY_HAS(&rig, "[\"spawn\",2");
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_CHILD,
                                           .ordinal = 2,
                                           .outcome = TERMINAL_SUCCESS,
                                           .payload = STR("7") }));
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    EXPECT_STR(rig.last_payload, "7");
    rig_fini(&rig);
}
