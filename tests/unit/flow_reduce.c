/* flow_reduce.c - how a flow goes on: steps, retries, timers, ends. */
#include "base/limits.h"
#include "flow_rig.h"
#include "lib/fault.h"
#include <stdio.h>

static const char two_steps[] = "steps:\n"
                                "  a: {tool: one, args: {x: '{{input.x}}'}, next: b}\n"
                                "  b: {tool: two, args: {y: '{{steps.a.result.y}}'}, done: true}\n";

static const char one_leaf[] = "do: [{name: a, tool: x}]";

static void expect_rejected(struct rig *rig, pawl_status status, pawl_status wanted,
                            const char *part)
{
    EXPECT_EQ(status, wanted);
    EXPECT_HAS(rig->scope->error.message, part);
}

/* ---- The straight way ------------------------------------------------------------------- */

TEST(flow, b25_b28_steps_run_one_after_the_other_and_the_last_ones_result_is_the_flows)
{
    struct rig rig;
    struct flow_call call;

    rig_init(&rig, &t->scope, two_steps, "{\"x\":[1, 2]}");
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0]]\n");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_STORY(&rig, "step.start a.1#1 [[\"run\",1]]\n");
    EXPECT_OK(flow_call(rig.definition, rig.memory, 1, &t->scope, &call));
    EXPECT_STR(call.args, "{\"x\":[1,2]}");
    EXPECT_STR(call.tool, "one");
    EXPECT_EQ(call.timeout_ms, 120000);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 1, "{\"y\": 7}"));
    EXPECT_STORY(&rig, "step.complete a.1#1 {\"y\": 7} [[\"end\",1],"
                       "[\"step\",2,1]]\n");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(flow_call(rig.definition, rig.memory, 2, &t->scope, &call));
    EXPECT_STR(call.args, "{\"y\":7}");
    EXPECT_EQ(call.first_ordinal, 2);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 2, "\"ok\""));
    EXPECT_STORY(&rig, "step.complete b.2#1 \"ok\" [[\"end\",2]]\n"
                       "finish \"ok\"\n");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow, the_result_of_a_tree_is_its_context)
{
    struct rig rig;

    rig_init(&rig, &t->scope, one_leaf, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "5");
    EXPECT_STORY(&rig, "step.complete a.1#1 5 [[\"end\",1]]\n"
                       "finish {}\n");
    rig_fini(&rig);
}

TEST(flow, a_tool_that_answers_nothing_has_the_result_null)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "steps: {a: {tool: x, done: true}}", NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_STORY(&rig, "step.start a.1#1 [[\"run\",1]]\n");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 1, NULL));
    EXPECT_STORY(&rig, "step.complete a.1#1 null [[\"end\",1]]\nfinish null\n");
    rig_fini(&rig);
}

/* ---- Answers that come at the wrong time --------------------------------------------------- */

TEST(flow, b26_b34_an_attempt_is_taken_once_and_answered_once)
{
    struct rig rig;

    rig_init(&rig, &t->scope, two_steps, NULL);
    expect_rejected(&rig, rig_step(&rig, EVENT_STEP_START, 1, NULL), PAWL_NOT_KNOWN, "no step 1");
    rig_begin(&rig);
    expect_rejected(&rig, rig_step(&rig, EVENT_STEP_DONE, 1, "1"), PAWL_LEASE_LOST,
                    "attempt 1 is ready, not running");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT(rig_step(&rig, EVENT_STEP_START, 1, NULL) == PAWL_LEASE_LOST);
    EXPECT(rig_step(&rig, EVENT_STEP_DONE, 2, "1") == PAWL_NOT_KNOWN);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 1, "1"));
    EXPECT(rig_step(&rig, EVENT_STEP_DONE, 1, "1") == PAWL_LEASE_LOST);
    EXPECT(rig_step(&rig, EVENT_STEP_FAILED, 1, "1") == PAWL_LEASE_LOST);
    EXPECT(rig_step(&rig, EVENT_STEP_LOST, 1, NULL) == PAWL_LEASE_LOST);
    EXPECT(rig_step(&rig, EVENT_STEP_TIMEOUT, 1, NULL) == PAWL_LEASE_LOST);
    rig_run(&rig, 2, "2");
    EXPECT(rig_step(&rig, EVENT_STEP_DONE, 2, "1") == PAWL_LEASE_LOST);
    EXPECT_EQ(rig.attempts.count, 2);
    rig_fini(&rig);
}

TEST(flow, after_the_end_calls_are_terminal_and_answers_come_too_late)
{
    struct rig rig;

    rig_init(&rig, &t->scope, one_leaf, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    expect_rejected(&rig, rig_do(&rig, (struct event){ .kind = EVENT_CANCEL }), PAWL_TERMINAL,
                    "has ended in 'completed'");
    EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_FIRE, .name = STR("nope") }) ==
           PAWL_TERMINAL);
    EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("x") }) == PAWL_TERMINAL);
    EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_START }) == PAWL_TERMINAL);
    EXPECT(rig_step(&rig, EVENT_STEP_START, 1, NULL) == PAWL_LEASE_LOST);
    EXPECT(rig_timer(&rig, "a", 1) == PAWL_NOT_AWAITING);
    rig_fini(&rig);
}

TEST(flow, only_cancel_is_a_callers_action)
{
    static const char *const actions[] = { "start", "step.complete", "finish",
                                           "fail",  "timer",         "nope" };
    struct rig rig;

    rig_init(&rig, &t->scope, one_leaf, NULL);
    rig_begin(&rig);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_FIRE, .name = str_of(actions[i]) }) ==
               PAWL_INVALID_TRANSITION);
    expect_rejected(&rig, rig_do(&rig, (struct event){ .kind = EVENT_FIRE, .name = STR("nope") }),
                    PAWL_INVALID_TRANSITION, "no 'nope' from 'running'; legal now: cancel");
    EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_START }) == PAWL_INVALID_TRANSITION);
    EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("x") }) ==
           PAWL_NOT_AWAITING);
    EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_UNKNOWN }) == PAWL_INVALID_REQUEST);
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_FIRE, .name = STR("cancel") }));
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

TEST(flow, x6_cancel_works_before_the_start_and_while_a_step_runs_and_live_steps_become_cancelled)
{
    struct rig rig;

    rig_init(&rig, &t->scope, one_leaf, NULL);
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_CANCEL }));
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
    rig_init(&rig, &t->scope, one_leaf, NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    rig.now_ms = 5000;
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_CANCEL, .reason = STR("enough") }));
    EXPECT_STORY(&rig, "cancel\n");
    EXPECT_EQ(rig.attempts.items[0].status, STEP_CANCELLED);
    EXPECT_EQ(rig.attempts.items[0].completed_at_ms, 5000);
    EXPECT(rig_step(&rig, EVENT_STEP_DONE, 1, "1") == PAWL_LEASE_LOST);
    EXPECT(rig_step(&rig, EVENT_STEP_TIMEOUT, 1, NULL) == PAWL_LEASE_LOST);
    rig_fini(&rig);
}

/* ---- Whether it may be cancelled ------------------------------------------------------------ */

static pawl_status rig_cancel(struct rig *rig)
{
    return rig_do(rig, (struct event){ .kind = EVENT_CANCEL });
}

TEST(flow, one_that_says_so_is_never_cancelled_and_one_that_has_ended_is_terminal_first)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "cancel: false\nsteps: {a: {tool: x, done: true}}", NULL);
    expect_rejected(&rig, rig_cancel(&rig), PAWL_NO_CANCEL_TRANSITION, "'cancel: false'");
    rig_begin(&rig);
    expect_rejected(&rig, rig_cancel(&rig), PAWL_NO_CANCEL_TRANSITION, "'cancel: false'");
    expect_rejected(&rig, rig_do(&rig, (struct event){ .kind = EVENT_FIRE, .name = STR("cancel") }),
                    PAWL_INVALID_TRANSITION, "'cancel: false'");
    expect_rejected(&rig, rig_do(&rig, (struct event){ .kind = EVENT_FIRE, .name = STR("stop") }),
                    PAWL_INVALID_TRANSITION, "no 'stop' from 'running'");
    EXPECT(!strstr(rig.scope->error.message, "legal now: cancel"));
    rig_run(&rig, 1, "1");
    expect_rejected(&rig, rig_cancel(&rig), PAWL_TERMINAL, "ended");
    rig_fini(&rig);
}

static const char applies[] = "cancel: {not_from: [apply, rest]}\n"
                              "steps:\n"
                              "  copy: {tool: x, next: apply}\n"
                              "  apply: {tool: x, next: rest}\n"
                              "  rest: {tool: sleep, args: {for: 1s}, next: tell}\n"
                              "  tell: {tool: x, done: true}\n";

TEST(flow, while_a_step_that_bars_it_is_ready_running_or_waiting_a_flow_is_not_cancelled)
{
    struct rig rig;

    rig_init(&rig, &t->scope, applies, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    expect_rejected(&rig, rig_cancel(&rig), PAWL_NO_CANCEL_TRANSITION, "step 'apply' is ready");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    expect_rejected(&rig, rig_cancel(&rig), PAWL_NO_CANCEL_TRANSITION, "step 'apply' is running");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 2, "\"no\"")); /* it waits for its retry */
    expect_rejected(&rig, rig_cancel(&rig), PAWL_NO_CANCEL_TRANSITION, "step 'apply' is pending");
    EXPECT_OK(rig_timer(&rig, "~retry", 3));
    rig_run(&rig, 3, "1");
    expect_rejected(&rig, rig_cancel(&rig), PAWL_NO_CANCEL_TRANSITION, "step 'rest' is pending");
    EXPECT_OK(rig_timer(&rig, "rest", 4));
    EXPECT_OK(rig_cancel(&rig));
    EXPECT_STORY(&rig, "cancel\n");
    rig_fini(&rig);
}

TEST(flow, before_a_step_that_bars_it_a_flow_is_cancelled_as_any_other)
{
    struct rig rig;

    rig_init(&rig, &t->scope, applies, NULL);
    EXPECT_OK(rig_cancel(&rig));
    rig_fini(&rig);
    rig_init(&rig, &t->scope, applies, NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_FIRE, .name = STR("cancel") }));
    EXPECT_EQ(rig.state, LIFE_CANCELLED);
    rig_fini(&rig);
}

/* ---- Retries --------------------------------------------------------------------------------- */

TEST(flow, b29_b30_a_failed_step_is_tried_three_times_with_backoff_and_then_the_flow_fails)
{
    struct rig rig;
    struct flow_call call;

    rig_init(&rig, &t->scope, "steps: {a: {tool: x, done: true}}", NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 1, "\"no\""));
    EXPECT_STORY(&rig, "step.fail a.1#1 \"no\" [[\"end\",1],"
                       "[\"step\",2,0,2,\"pending\"],[\"arm\",\"~retry\",31000,2]]\n");
    EXPECT(rig_step(&rig, EVENT_STEP_START, 2, NULL) == PAWL_LEASE_LOST);
    EXPECT(rig_step(&rig, EVENT_STEP_TIMEOUT, 2, NULL) == PAWL_LEASE_LOST);
    EXPECT(rig_timer(&rig, "~retry", 1) == PAWL_NOT_AWAITING);
    rig.now_ms = 31000;
    EXPECT_OK(rig_timer(&rig, "~retry", 2));
    EXPECT_STORY(&rig, "step.retry a.2#2 [[\"disarm\",\"~retry\",2],[\"ready\",2]]\n");
    EXPECT(rig_timer(&rig, "~retry", 2) == PAWL_NOT_AWAITING);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(flow_call(rig.definition, rig.memory, 2, &t->scope, &call));
    EXPECT_EQ(call.attempt, 2);
    EXPECT_EQ(call.first_ordinal, 1); /* its idempotency key stays */
    EXPECT_OK(rig_step(&rig, EVENT_STEP_TIMEOUT, 2, NULL));
    EXPECT_STORY(&rig, "step.timeout a.2#2 \"timeout\" [[\"end\",2],"
                       "[\"step\",3,0,3,\"pending\"],[\"arm\",\"~retry\",151000,3]]\n");
    EXPECT_OK(rig_timer(&rig, "~retry", 0)); /* by its name alone */
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 3, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 3, "{\"code\": 1}"));
    EXPECT_STORY(&rig, "step.fail a.3#3 {\"code\": 1} [[\"end\",3]]\n"
                       "fail {\"code\": 1}\n");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
}

#define OUTCOME_UNKNOWN                                                                            \
    "\"timeout: its outcome is unknown, and it is declared idempotent: false, so it is not run "   \
    "again\""

TEST(flow, x8_a_lost_attempt_counts_and_only_an_idempotent_step_is_ready_again_at_once)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "steps: {a: {tool: x, done: true, retry: {max: 2}}}", NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_LOST, 1, NULL));
    EXPECT_STORY(&rig, "step.fail a.1#1 \"lost\" [[\"end\",1],"
                       "[\"step\",2,0,2,\"ready\"]]\n");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_LOST, 2, NULL));
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
    rig_init(&rig, &t->scope, "do: [{name: a, tool: x, retry: {max: 5}}]", NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_LOST, 1, NULL));
    EXPECT_STORY(&rig, "step.fail a.1#1 \"lost\" [[\"end\",1]]\n"
                       "fail \"lost\"\n");
    rig_fini(&rig);
}

/* `idempotent: false` says that it must not be done twice. A leaf of a tree
 * says nothing by default, and its `retry` does. Plans of before do not have the member. */
TEST(flow, what_is_declared_not_idempotent_is_not_run_again_after_its_timeout)
{
    static const struct {
        const char *text, *story;
    } cases[] = {
        { "do: [{name: a, tool: x, timeout: 1s, retry: {max: 2}, idempotent: false}]", OUTCOME_UNKNOWN },
        { "do: [{name: a, tool: x, timeout: 1s, retry: {max: 2}}]", "\"timeout\"" },
        { "do: [{name: a, tool: x, timeout: 1s, idempotent: false}]", "\"timeout\"" }, /* no retry */
        { "steps: {a: {external: true, timeout: 1s, retry: {max: 2}, idempotent: false, done: true}}",
          OUTCOME_UNKNOWN },
        { "steps: {a: {wait: {signal: s}, timeout: 1s, retry: {max: 2}, idempotent: false, done: true}}",
          "\"timeout\"" },
    };
    static const bool ends[] = { true, false, true, true, false };
    struct rig rig;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rig_init(&rig, &t->scope, cases[i].text, NULL);
        rig_begin(&rig);
        if (strstr(cases[i].text, "tool"))
            EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
        EXPECT_OK(rig_timer(&rig, "~timeout", 1));
        EXPECT_HAS(buf_text(&rig.story), cases[i].story);
        EXPECT_EQ(rig.state, ends[i] ? LIFE_FAILED : LIFE_RUNNING);
        rig_fini(&rig);
    }
}

TEST(flow, a_failure_that_says_no_retry_ends_the_steps_attempts)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "steps: {a: {tool: x, done: true}}", NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_STEP_FAILED,
                                           .is_leased = true,
                                           .ordinal = 1,
                                           .payload = STR("\"bad\""),
                                           .no_retry = true }));
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_STR(rig.last_payload, "\"bad\"");
    rig_fini(&rig);
}

/* A model of B29, B30 and X8 in one screen: for every policy and every way the attempts may
 * end, what must the flow do? */
enum outcome { DONE, FAILED, TIMED_OUT, LOST, OUTCOME_COUNT };

struct model {
    uint32_t max;
    bool is_idempotent;
    enum outcome outcomes[4];
};

static enum lifecycle_state model_end(const struct model *model, uint32_t *attempts)
{
    for (*attempts = 1;; ++*attempts) {
        enum outcome outcome = model->outcomes[*attempts - 1];

        if (outcome == DONE)
            return LIFE_COMPLETED;
        if (*attempts == model->max ||
            ((outcome == LOST || outcome == TIMED_OUT) && !model->is_idempotent))
            return LIFE_FAILED;
    }
}

static void play_attempt(struct rig *rig, uint32_t ordinal, enum outcome outcome)
{
    EXPECT_OK(rig_step(rig, EVENT_STEP_START, ordinal, NULL));
    rig->now_ms += 10;
    if (outcome == DONE)
        EXPECT_OK(rig_step(rig, EVENT_STEP_DONE, ordinal, "1"));
    else if (outcome == FAILED)
        EXPECT_OK(rig_step(rig, EVENT_STEP_FAILED, ordinal, "\"no\""));
    else if (outcome == TIMED_OUT)
        EXPECT_OK(rig_step(rig, EVENT_STEP_TIMEOUT, ordinal, NULL));
    else
        EXPECT_OK(rig_step(rig, EVENT_STEP_LOST, ordinal, NULL));
}

static void wait_for_retry(struct rig *rig, uint32_t ordinal, enum outcome outcome)
{
    static const int64_t delays_ms[] = { 100, 200, 200 };
    char part[60];

    if (outcome == LOST)
        return;
    (void)snprintf(part, sizeof part, "[\"arm\",\"~retry\",%lld,%u]",
                   (long long)(rig->now_ms + delays_ms[ordinal - 2]), ordinal);
    EXPECT_HAS(buf_text(&rig->story), part);
    rig->now_ms += delays_ms[ordinal - 2];
    EXPECT_OK(rig_timer(rig, "~retry", ordinal));
}

static void play(struct test *t, const struct model *model)
{
    struct rig rig;
    char text[200];
    uint32_t wanted, ordinal = 1;
    enum lifecycle_state end = model_end(model, &wanted);

    (void)snprintf(text, sizeof text,
                   "steps: {a: {tool: x, done: true, idempotent: %s, "
                   "retry: {max: %u, backoff: [100ms, 200ms]}}}",
                   model->is_idempotent ? "true" : "false", model->max);
    scope_clear(&t->scope);
    rig_init(&rig, &t->scope, text, NULL);
    rig_begin(&rig);
    for (;; ordinal++) {
        play_attempt(&rig, ordinal, model->outcomes[ordinal - 1]);
        if (rig.state != LIFE_RUNNING)
            break;
        wait_for_retry(&rig, ordinal + 1, model->outcomes[ordinal - 1]);
    }
    EXPECT_EQ(rig.state, end);
    EXPECT_EQ(ordinal, wanted);
    EXPECT_EQ(rig.attempts.count, wanted);
    EXPECT_EQ(rig.attempts.items[ordinal - 1].attempt, wanted);
    rig_fini(&rig);
}

TEST(flow, b29_x8_every_policy_with_every_way_to_end_four_attempts_does_what_the_model_says)
{
    for (uint32_t bits = 0; bits < 256 * 8; bits++) {
        struct model model = { .max = 1 + (bits >> 8) % 4, .is_idempotent = bits >> 10 };

        for (int i = 0; i < 4; i++)
            model.outcomes[i] = (enum outcome)(bits >> (2 * i) & 3);
        play(t, &model);
    }
}

/* ---- Sleep --------------------------------------------------------------------------------------
 */

TEST(flow, sleep_is_a_durable_timer_named_by_its_step)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps: {nap: {tool: sleep, args: {for: 2s}, next: nap2},"
             " nap2: {tool: sleep, args: {for: '{{input.d}}'}, done: true}}",
             "{\"d\":\"30d\"}");
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"],[\"arm\",\"nap\",3000,1]]\n");
    EXPECT(rig_step(&rig, EVENT_STEP_START, 1, NULL) == PAWL_LEASE_LOST);
    EXPECT(rig_timer(&rig, "nap2", 1) == PAWL_NOT_AWAITING);
    rig.now_ms = 3000;
    EXPECT_OK(rig_timer(&rig, "nap", 1));
    EXPECT_STORY(&rig, "timer nap.1#1 null [[\"end\",1],"
                       "[\"step\",2,1,1,\"pending\"],[\"arm\",\"nap2\",2592003000,2]]\n");
    EXPECT_OK(rig_timer(&rig, "nap2", 2));
    EXPECT_STORY(&rig, "timer nap2.2#1 null [[\"end\",2]]\nfinish null\n");
    EXPECT_EQ(rig.attempts.items[1].status, STEP_DONE);
    rig_fini(&rig);
}

TEST(flow, a_sleep_may_take_its_duration_from_the_step_that_has_just_completed)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "do: [{name: ask, tool: x},"
             " {name: nap, tool: sleep, args: {for: '{{steps.ask.result.for}}'}}]",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "{\"for\":\"5s\"}");
    EXPECT_HAS(buf_text(&rig.story), "[\"arm\",\"nap\",6000,2]");
    rig_fini(&rig);
}

TEST(flow, a_sleep_with_a_bad_duration_fails_in_the_same_decision_without_a_retry)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "steps: {nap: {tool: sleep, args: {for: '{{input.d}}'}, done: true}}",
             "{\"d\":7}");
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"]]\n"
                       "step.fail nap.1#1 \"'for': expected a duration like \\\"30s\\\", found "
                       "7\" [[\"end\",1]]\n"
                       "fail \"'for': expected a duration like \\\"30s\\\", found 7\"\n");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_EQ(t->scope.error.status, PAWL_OK);
    EXPECT_EQ(rig.attempts.items[0].status, STEP_FAILED);
    rig_fini(&rig);
    rig_init(&rig, &t->scope,
             "do: [{tool: x}, {tool: sleep, args: {for: '{{steps.do.0.result}}'}}]", NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "\"later\"");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
}

/* ---- Memory
 * -------------------------------------------------------------------------------------- */

TEST(flow, a_loop_of_ten_thousand_rounds_takes_no_more_memory_than_one_of_a_hundred)
{
    const struct definition *definition;
    struct rig rig;
    size_t used = 0;
    char result[100];

    rig_init(&rig, &t->scope,
             "steps: {a: {tool: x, args: {last: '{{steps.b.result}}'}, next: b},"
             " b: {tool: y, args: {}, next: a}}",
             NULL);
    definition = rig.definition;
    EXPECT(definition != NULL);
    for (uint32_t i = 1; i <= 10000; i++) {
        struct effect effects[] = { { .kind = EFFECT_END, .ordinal = i - 1 },
                                    { .kind = EFFECT_STEP,
                                      .ordinal = i,
                                      .plan = (i + 1) % 2,
                                      .attempt = 1,
                                      .status = STEP_READY } };
        struct effect_list list = { effects + (i == 1), i == 1 ? 1 : 2, 2 };
        struct entry_view entry = { .transition = i == 1 ? LIFE_T_START : LIFE_T_STEP_COMPLETE,
                                    .step = i == 1 ? 0 : (i + 1 - 1) % 2 + 1,
                                    .ordinal = i - 1,
                                    .attempt = 1,
                                    .payload = str_of(result),
                                    .effects = &list };

        (void)snprintf(result, sizeof result, "\"%.*s\"", (int)(i % 64),
                       "0123456789012345678901234567890123456789012345678901234567890123");
        entry.payload = str_of(result);
        EXPECT_OK(flow_behavior.apply(definition, rig.memory, &entry, &t->scope, &rig.arena));
        if (i == 100)
            used = rig.arena.used;
    }
    EXPECT_EQ(rig.arena.used, used);
    EXPECT(rig_print(&rig).size < 300);
    rig_fini(&rig);
}

TEST(flow, only_results_that_a_template_asks_for_are_remembered)
{
    struct rig rig;

    rig_init(&rig, &t->scope, two_steps, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "{\"y\":\"seen\"}");
    rig_run(&rig, 2, "\"unseen\"");
    EXPECT_STR(rig_print(&rig),
               "{\"ordinal\":2,\"live\":[],\"results\":[[0,{\"y\":\"seen\"}]],\"done\":[[0,3]]}");
    rig_fini(&rig);
}

TEST(flow, a_snapshot_cut_or_changed_at_any_byte_is_refused_or_read_but_never_crashes)
{
    struct rig rig;
    struct arena arena;
    struct scope scope;
    void *memory;
    char *text;
    str whole;

    rig_init(&rig, &t->scope, two_steps, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "{\"y\":1}");
    whole = rig_print(&rig);
    text = arena_text(&t->scope.arena, whole);
    arena_init(&arena, &heap_libc, 0);
    scope_init(&scope, &heap_libc, 0);
    for (size_t i = 0; i < whole.size; i++) {
        EXPECT(flow_behavior.memory_load(rig.definition, (str){ text, i }, STR_NONE, &scope, &arena,
                                         &memory) == PAWL_STORAGE_FAILURE);
        for (const char *byte = "9-\"x]{"; *byte; byte++) {
            text[i] = *byte;
            (void)flow_behavior.memory_load(rig.definition, (str){ text, whole.size }, STR_NONE,
                                            &scope, &arena, &memory);
            scope_clear(&scope);
            arena_clear(&arena);
        }
        text[i] = whole.data[i];
    }
    scope_fini(&scope);
    arena_fini(&arena);
    rig_fini(&rig);
}

TEST(flow, a_history_that_does_not_follow_the_plan_is_a_storage_failure)
{
    static const struct effect bad[] = {
        { .kind = EFFECT_STEP, .ordinal = 1, .plan = 2, .attempt = 1 },
        { .kind = EFFECT_STEP, .ordinal = 2, .plan = 0, .attempt = 1 },
        { .kind = EFFECT_READY, .ordinal = 1 },
        { .kind = EFFECT_RUN, .ordinal = 0 },
        { .kind = EFFECT_END, .ordinal = 7 },
        { .kind = EFFECT_ARM, .ordinal = 1, .name = STR_INIT("~retry") },
        { .kind = EFFECT_AWAIT, .ordinal = 0, .name = STR_INIT("x") },
        { .kind = EFFECT_STATE, .state = STR_INIT("{}") },
    };
    struct flow_attempts attempts = { 0 };
    struct rig rig;

    rig_init(&rig, &t->scope, two_steps, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct effect effect = bad[i];
        struct effect_list list = { &effect, 1, 1 };
        struct entry_view entry = { .transition = LIFE_T_STEP_START, .effects = &list };

        EXPECT(flow_behavior.apply(rig.definition, rig.memory, &entry, &t->scope, &rig.arena) ==
               PAWL_STORAGE_FAILURE);
        if (i > 0 && i < 5)
            EXPECT(flow_attempts_apply(&t->scope, &attempts, &entry) == PAWL_STORAGE_FAILURE);
    }
    rig_fini(&rig);
}

/* A snapshot may be thrown away: then the entry that tells of it is folded like any other. */
TEST(flow, an_entry_that_tells_of_a_snapshot_is_folded_without_an_attempt)
{
    struct effect told = { .kind = EFFECT_SNAPSHOT, .name = STR("00") };
    struct effect_list effects = { &told, 1, 1 };
    struct entry_view entry = { .transition = LIFE_T_STEP_RETRY, .effects = &effects };
    struct rig rig;
    str before;

    rig_init(&rig, &t->scope, "do: [{tool: x}]\n", "{}");
    rig_begin(&rig);
    before = rig_print(&rig);
    EXPECT_OK(flow_behavior.apply(rig.definition, rig.memory, &entry, rig.scope, &rig.arena));
    EXPECT_STR(rig_print(&rig), before.data);
    rig_fini(&rig);
}

TEST(flow, attempts_tell_when_each_was_ready_started_and_over)
{
    const struct flow_attempt *attempt;
    struct rig rig;

    rig_init(&rig, &t->scope, "steps: {a: {tool: x, done: true}}", NULL);
    rig_begin(&rig);
    rig.now_ms = 2000;
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    rig.now_ms = 3000;
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 1, "\"no\""));
    EXPECT_EQ(rig.attempts.count, 2);
    attempt = &rig.attempts.items[0];
    EXPECT_EQ(attempt->ready_at_ms, 1000);
    EXPECT_EQ(attempt->started_at_ms, 2000);
    EXPECT_EQ(attempt->completed_at_ms, 3000);
    EXPECT_EQ(attempt->status, STEP_FAILED);
    EXPECT_STR(attempt->error, "\"no\"");
    EXPECT(!attempt->result.data);
    EXPECT_EQ(rig.attempts.items[1].status, STEP_PENDING);
    EXPECT_EQ(rig.attempts.items[1].ready_at_ms, 0);
    rig.now_ms = 33000;
    EXPECT_OK(rig_timer(&rig, "~retry", 2));
    rig_run(&rig, 2, "[4]");
    EXPECT_EQ(rig.attempts.items[1].ready_at_ms, 33000);
    EXPECT_EQ(rig.attempts.items[1].status, STEP_DONE);
    EXPECT_STR(rig.attempts.items[1].result, "[4]");
    rig_fini(&rig);
}

/* ---- No memory
 * ------------------------------------------------------------------------------------- */

static bool compile_and_start(struct fault_heap *fault)
{
    struct standing standing = { LIFE_CREATED, 0, NULL };
    struct event event = { .kind = EVENT_START };
    struct definition *definition;
    struct decision decision;
    struct findings findings = { 0 };
    struct node *document;
    struct scope scope;
    pawl_status status;

    scope_init(&scope, &fault->heap, 0);
    status = node_read(&scope,
                       STR("{\"do\":[{\"tool\":\"sleep\",\"args\":{\"for\":"
                           "\"{{input.d}}\",\"x\":1}},{\"do\":[{\"tool\":\"y\"}]}]}"),
                       &document);
    if (status == PAWL_OK)
        status = flow_compile(&scope, document, &findings, &definition);
    if (status == PAWL_OK) {
        standing.memory = flow_behavior.memory_new(definition, STR("{\"d\":true}"), &scope.arena);
        status = standing.memory
                     ? flow_behavior.decide(definition, &standing, &event, &scope, &decision)
                     : PAWL_NO_MEMORY;
    }
    EXPECT(status == PAWL_OK || status == PAWL_NO_MEMORY);
    scope_fini(&scope);
    return status == PAWL_OK;
}

TEST(flow, every_allocation_that_fails_is_no_memory_and_leaks_nothing)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        bool done = compile_and_start(&fault);

        EXPECT(done == !fault.has_failed);
    }
}
