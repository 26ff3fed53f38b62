/* flow_graph.c - graphs: branch, parallel, join, gates (seed 001). */
#include "flow_rig.h"
#include <stdio.h>

static pawl_status decide_gate(struct rig *rig, enum event_kind kind, uint32_t ordinal,
                               const char *actor, const char *reason)
{
    return rig_do(rig, (struct event){ .kind = kind,
                                       .ordinal = ordinal,
                                       .actor = actor ? str_of(actor) : STR_NONE,
                                       .reason = reason ? str_of(reason) : STR_NONE });
}

/* ---- Branches ------------------------------------------------------------------------------ */

#define BRANCHING                                                                                  \
    "steps:\n"                                                                                     \
    "  start: {tool: check, branch: [{if: 'result == true', then: yes_}, {if: 'result == "         \
    "false', then: no_}, {if: 'result == nil', then: nil_}, {if: 'result == 5', then: five}]}\n"   \
    "  yes_: {tool: x, done: true}\n  no_: {tool: x, done: true}\n  nil_: {tool: x, done: true}\n" \
    "  five: {tool: x, done: true}\n"

TEST(flow_graph, b13_b19_the_first_condition_that_holds_wins)
{
    static const char *const results[][2] = {
        { "true", "yes_" },  { "\"true\"", "yes_" }, { "false", "no_" },    { "\"false\"", "no_" },
        { "null", "nil_" },  { "\"\"", "nil_" },     { "\"nil\"", "nil_" }, { "5", "five" },
        { "\"5\"", "five" }, { "5.0", NULL },        { "{}", NULL },        { "\"TRUE\"", NULL },
    };

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        struct flow_call call;
        struct rig rig;

        rig_init(&rig, &t->scope, BRANCHING, NULL);
        rig_begin(&rig);
        rig_run(&rig, 1, results[i][0]);
        if (results[i][1]) {
            EXPECT_OK(flow_call(rig.definition, rig.memory, 2, rig.scope, &call));
            EXPECT_STR(call.step, results[i][1]);
        } else {
            EXPECT_EQ(rig.state, LIFE_FAILED);
            EXPECT_STR(rig.last_payload, "\"no-branch-matched\"");
            EXPECT_EQ(rig.attempts.items[0].status, STEP_DONE);
        }
        rig_fini(&rig);
    }
}

/* Where a flow of one branch goes with this condition and this result. */
static bool is_taken(struct rig *rig, const char *result)
{
    rig_begin(rig);
    rig_run(rig, 1, result);
    return rig->state == LIFE_RUNNING;
}

TEST(flow_graph, b19_a_quoted_value_is_the_text_between_its_quotes)
{
    static const struct {
        const char *condition, *result;
        bool holds;
    } cases[] = {
        { "result == \\\"yes\\\"", "\"yes\"", true },
        { "result == \\\"yes\\\"", "\"no\"", false },
        { "result == \\\"yes\\\"", "\"\\\"yes\\\"\"", false },
        { "result == 'yes'", "\"yes\"", true },
        { "result != \\\"yes\\\"", "\"yes\"", false },
        { "result != 'yes'", "\"no\"", true },
        { "result == \\\"\\\"", "\"\"", true },
        { "result == \\\"\\\"", "null", false },
        { "result == \\\"true\\\"", "\"true\"", true },
        { "result == \\\"true\\\"", "true", false },
        { "result != \\\"nil\\\"", "null", true },
        { "result == \\\"5\\\"", "5", true },
        { "result == \\\"a and b\\\"", "\"a and b\"", true },
        { "result == \\\"yes", "\"\\\"yes\"", true },
        { "result == \\\"a\\\" or \\\"b\\\"", "\"a\"", false },
        { "result == \\\"yes'", "\"yes\"", false },
    };
    char text[200];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig rig;

        (void)snprintf(text, sizeof text,
                       "steps: {a: {tool: x, branch: [{if: \"%s\", then: b}]}, b: {tool: x, done: "
                       "true}}",
                       cases[i].condition);
        rig_init(&rig, &t->scope, text, NULL);
        if (is_taken(&rig, cases[i].result) != cases[i].holds)
            test_fail(__FILE__, __LINE__, "%s with %s", cases[i].condition, cases[i].result);
        rig_fini(&rig);
    }
}

/* Its text says which reading: what compiler 2 wrote has no mark of a quoted value. */
TEST(flow_graph, b19_a_version_of_an_older_compiler_compares_with_the_quotes_too)
{
    static const char steps[] =
        "{\"notation\":\"graph\",\"first\":0,\"steps\":[{\"name\":\"a\",\"tool\":\"x\",\"args\":{},"
        "\"branch\":[[\"result == \\\"yes\\\"\",1]],\"max\":1,\"backoff\":[],\"idempotent\":true},"
        "{\"name\":\"b\",\"tool\":\"x\",\"args\":{},\"max\":1,\"backoff\":[],\"idempotent\":true}]}";
    static const char *const results[] = { "\"yes\"", "\"\\\"yes\\\"\"" };

    for (int i = 0; i < 2; i++) {
        struct rig rig;

        rig_init(&rig, &t->scope, "steps: {a: {tool: x, done: true}}", NULL);
        rig.definition->compiler = 2;
        rig.definition->plan_text = str_of(steps);
        EXPECT_OK(flow_behavior.prepare(rig.definition, rig.scope));
        rig.memory = flow_behavior.memory_new(rig.definition, rig.input, &rig.arena);
        EXPECT_EQ(is_taken(&rig, results[i]), i == 1);
        rig_fini(&rig);
    }
}

/* What is none of the six is an expression (flow_expr.c); it reaches nothing outside. */
TEST(flow_graph, b19_b20_conditions_have_no_effect_on_anything)
{
    static const char *const texts[] = { "system('rm')", "os.execute('rm')", "io.open('x')" };
    char text[200];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rig rig;

        (void)snprintf(text, sizeof text, "steps: {a: {tool: x, branch: [{if: \"%s\", then: a}]}}",
                       texts[i]);
        rig_init(&rig, &t->scope, text, NULL);
        rig_begin(&rig);
        rig_run(&rig, 1, "1");
        EXPECT_EQ(rig.state, LIFE_FAILED);
        EXPECT_HAS(rig.last_payload.data, "nil value");
        rig_fini(&rig);
    }
}

/* ---- Parallel and join ------------------------------------------------------------------------
 */

#define FAN                                                                                        \
    "steps:\n"                                                                                     \
    "  start: {tool: s, parallel: [a, b, c]}\n"                                                    \
    "  a: {tool: x, next: a2}\n  a2: {tool: x, join: end}\n"                                       \
    "  b: {tool: x, join: end}\n"                                                                  \
    "  c: {tool: x, branch: [{if: 'result == true', then: c2}]}\n  c2: {tool: x, join: end}\n"     \
    "  end: {tool: e, done: true}\n"

/* Answer the ready attempts in the order that `order` says; the last step ends the flow. */
static uint32_t play_order(struct rig *rig, uint32_t order, const char *c_result)
{
    uint32_t joined = 0;

    rig_begin(rig);
    rig_run(rig, 1, "0");
    for (uint32_t round = 0; rig->state == LIFE_RUNNING && round < 20; round++) {
        uint32_t live[16], count = 0, chosen;
        struct flow_call call;

        for (uint32_t i = 0; i < rig->attempts.count; i++)
            if (rig->attempts.items[i].status == STEP_READY)
                live[count++] = i + 1;
        EXPECT(count > 0);
        chosen = live[order % count];
        order /= count;
        EXPECT_OK(flow_call(rig->definition, rig->memory, chosen, rig->scope, &call));
        joined += str_is(call.step, "end");
        rig_run(rig, chosen, str_is(call.step, "c") ? c_result : "true");
    }
    return joined;
}

TEST(flow_graph, b14_b15_a_join_happens_once_in_every_order)
{
    for (uint32_t order = 0; order < 400; order++) {
        struct rig rig;

        rig_init(&rig, &t->scope, FAN, NULL);
        EXPECT_EQ(play_order(&rig, order, "true"), 1);
        EXPECT_EQ(rig.state, LIFE_COMPLETED);
        EXPECT_EQ(rig.attempts.count, 7);
        rig_fini(&rig);
    }
}

TEST(flow_graph, b13_b15_a_branch_that_leads_nowhere_does_not_hold_a_join_up_in_any_order)
{
    for (uint32_t order = 0; order < 400; order++) {
        struct rig rig;

        rig_init(&rig, &t->scope, FAN, NULL);
        EXPECT_EQ(play_order(&rig, order, "false"), 1);
        EXPECT_EQ(rig.state, LIFE_COMPLETED);
        rig_fini(&rig);
    }
}

/* The outer join is written down before the inner one, which leads to it. */
TEST(flow_graph, b15_a_join_waits_for_those_who_wait_at_another_join_that_leads_to_it)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps:\n"
             "  start: {tool: s, parallel: [a, inner]}\n"
             "  outer: {tool: e, done: true}\n"
             "  inner: {tool: x, join: outer}\n"
             "  a: {tool: x, join: inner}\n",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "0");
    rig_run(&rig, 3, "0"); /* the inner one, begun by start: it waits at the outer join */
    rig_run(&rig, 2, "0"); /* a joins at the inner one, which is not over yet for the outer */
    EXPECT_EQ(rig.attempts.count, 4);
    rig_run(&rig, 4, "0");
    EXPECT_EQ(rig.attempts.count, 5);
    rig_run(&rig, 5, "0");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

/* Another way leads to the step of the join, and is taken while somebody waits there; and that step
 * is tried again. */
TEST(flow_graph, b15_who_waits_at_a_join_is_not_forgotten_when_its_step_begins_for_another_reason)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps:\n"
             "  start: {tool: s, parallel: [a, b, c]}\n"
             "  a: {tool: x, join: end}\n"
             "  b: {tool: x, branch: [{if: 'result == true', then: end}]}\n"
             "  c: {tool: x, branch: [{if: 'result == true', then: a}]}\n"
             "  end: {tool: x, branch: [{if: 'result == true', then: last}]}\n"
             "  last: {tool: x, done: true}\n",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "0");
    rig_run(&rig, 2, "0");    /* a waits at the join: c may come */
    rig_run(&rig, 3, "true"); /* b goes to its step directly */
    EXPECT_EQ(rig.attempts.count, 5);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 5, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 5, "1")); /* and is tried again: 6 */
    rig_run(&rig, 4, "0");
    EXPECT_EQ(rig.attempts.count, 7); /* c does not: a goes on */
    rig_run(&rig, 7, "true");
    rig_run(&rig, 8, "0");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_graph, b16_done_ends_the_flow_and_cancels_what_still_runs)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps: {s: {tool: x, parallel: [a, b]}, a: {tool: x, done: true}, b: {tool: x, done: "
             "true}}",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "0");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 3, NULL));
    rig_run(&rig, 2, "\"first\"");
    EXPECT_STR(rig.last_payload, "\"first\"");
    EXPECT_EQ(rig.attempts.items[2].status, STEP_CANCELLED);
    EXPECT_EQ(rig_step(&rig, EVENT_STEP_DONE, 3, "1"), PAWL_LEASE_LOST);
    rig_fini(&rig);
}

TEST(flow_graph, a_parallel_step_that_fails_for_good_fails_the_flow_at_once)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "steps: {s: {tool: x, parallel: [a, b]}, a: {tool: x, retry: {max: 1}, done: true}, b: "
        "{tool: x, done: true}}",
        NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "0");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 2, "\"no\""));
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_EQ(rig.attempts.items[2].status, STEP_CANCELLED);
    rig_fini(&rig);
}

/* ---- Gates
 * --------------------------------------------------------------------------------------- */

#define GATED                                                                                      \
    "steps:\n  ask: {tool: null, approval: {by: [ann, bob, cat], count: 2}, next: act}\n"          \
    "  act: {tool: x, args: {by: '{{steps.ask.result}}'}, done: true}\n"

TEST(flow_graph, b37_b38_a_gate_waits_until_enough_of_those_named_have_approved)
{
    struct flow_call call;
    struct rig rig;

    rig_init(&rig, &t->scope, GATED, NULL);
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"]]\n"
                       "gate.wait ask.1#1 {\"by\":[\"ann\",\"bob\",\"cat\"],\"count\":2}\n");
    EXPECT_EQ(decide_gate(&rig, EVENT_APPROVE, 1, "eve", NULL), PAWL_FORBIDDEN);
    EXPECT_EQ(decide_gate(&rig, EVENT_APPROVE, 1, NULL, NULL), PAWL_FORBIDDEN);
    EXPECT_OK(decide_gate(&rig, EVENT_APPROVE, 1, "ann", NULL));
    EXPECT_OK(decide_gate(&rig, EVENT_APPROVE, 1, "ann", NULL));
    EXPECT_EQ(rig.attempts.items[0].status, STEP_PENDING);
    EXPECT_OK(decide_gate(&rig, EVENT_APPROVE, 1, "cat", NULL));
    EXPECT_STORY(&rig, "gate.approve ask.1#1 \"approved\" [[\"end\",1],[\"step\",2,1]]\n");
    EXPECT_EQ(decide_gate(&rig, EVENT_APPROVE, 1, "bob", NULL), PAWL_NOT_AWAITING);
    EXPECT_OK(flow_call(rig.definition, rig.memory, 2, rig.scope, &call));
    EXPECT_STR(call.args, "{\"by\":\"approved\"}");
    rig_fini(&rig);
}

TEST(flow_graph, what_a_gate_asks_is_recorded_with_it)
{
    struct rig rig;

    rig_init(
        &rig, &t->scope,
        "steps: {a: {approval: {ask: {message: \"Pay {{input.n}}?\", n: \"{{input.n}}\"}}, done: "
        "true}}",
        "{\"n\":7}");
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"]]\n"
                       "gate.wait a.1#1 {\"by\":null,\"count\":1,\"ask\":{\"message\":\"Pay "
                       "7?\",\"n\":7}}\n");
    EXPECT_OK(decide_gate(&rig, EVENT_APPROVE, 1, "ann", NULL));
    rig_fini(&rig);
}

TEST(flow_graph, each_gate_that_is_reached_has_an_entry_of_its_own)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps:\n  a: {tool: x, parallel: [g, h, b]}\n"
             "  g: {tool: null, timeout: 5s, join: z}\n  h: {tool: null, join: z}\n"
             "  b: {tool: y, join: z}\n  z: {tool: z, done: true}\n",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    EXPECT_STORY(&rig, "step.complete a.1#1 1 [[\"end\",1],[\"step\",2,1,1,\"pending\"],"
                       "[\"arm\",\"~timeout\",6000,2],[\"step\",3,2,1,\"pending\"],[\"step\",4,3]]\n"
                       "gate.wait g.2#1\ngate.wait h.3#1\n");
    rig_fini(&rig);
}

TEST(flow_graph, a_version_of_an_older_compiler_records_no_gate_wait)
{
    struct rig rig;

    rig_init(&rig, &t->scope, GATED, NULL);
    rig.definition->compiler = 2;
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"]]\n");
    rig_fini(&rig);
}

TEST(flow_graph, a_rejected_gate_fails_with_the_reason_and_without_a_retry)
{
    struct rig rig;

    rig_init(&rig, &t->scope, GATED, NULL);
    rig_begin(&rig);
    EXPECT_EQ(decide_gate(&rig, EVENT_REJECT, 1, "eve", "no"), PAWL_FORBIDDEN);
    EXPECT_OK(decide_gate(&rig, EVENT_REJECT, 1, "bob", "too dear"));
    EXPECT_STORY(&rig, "gate.reject ask.1#1 \"too dear\" [[\"end\",1]]\nfail \"too dear\"\n");
    EXPECT_EQ(decide_gate(&rig, EVENT_REJECT, 1, "bob", NULL), PAWL_NOT_AWAITING);
    rig_fini(&rig);
}

/* ---- External steps and waits ---------------------------------------------------------------- */

TEST(flow_graph, b39_an_external_step_waits_and_is_ended_from_outside)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "steps: {e: {external: true, done: true}}", NULL);
    rig_begin(&rig);
    EXPECT_EQ(rig_step(&rig, EVENT_STEP_START, 1, NULL), PAWL_LEASE_LOST);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 1, "{\"ok\":1}"));
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    EXPECT_STR(rig.last_payload, "{\"ok\":1}");
    rig_fini(&rig);
}

TEST(flow_graph, a_wait_that_times_out_fails_and_is_tried_again_where_it_says_so)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps: {w: {wait: {signal: go}, timeout: 5s, retry: {max: 2, backoff: [1s]}, done: "
             "true}}",
             NULL);
    rig_begin(&rig);
    EXPECT_STORY(&rig, "start [[\"step\",1,0,1,\"pending\"],[\"arm\",\"~timeout\",6000,1],"
                       "[\"await\",\"go\",1]]\n");
    EXPECT_OK(rig_timer(&rig, "~timeout", 1));
    EXPECT_STORY(&rig, "step.timeout w.1#1 \"timeout\" [[\"end\",1],[\"step\",2,0,2,\"pending\"],"
                       "[\"arm\",\"~retry\",2000,2]]\n");
    EXPECT_EQ(rig_do(&rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("go") }),
              PAWL_NOT_AWAITING);
    EXPECT_OK(rig_timer(&rig, "~retry", 2));
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("go") }));
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_graph, a_select_takes_the_way_of_its_arm)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps:\n  s: {select: [{timer: 1s, then: late}, {signal: paid, then: ship}]}\n"
             "  late: {tool: x, done: true}\n  ship: {tool: x, done: true}\n",
             NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_timer(&rig, "s", 1));
    EXPECT_STORY(&rig, "timer s.1#1 {\"arm\":0,\"payload\":null} [[\"end\",1],[\"step\",2,1]]\n");
    rig_fini(&rig);
}

TEST(flow_graph, ways_that_make_no_sense_are_refused_or_warned_of_with_words)
{
    static const char *const texts[][2] = {
        { "steps: {a: {tool: x, parallel: []}}", "must be a list" },
        { "steps: {a: {tool: x, parallel: [1]}}", "lists names of steps" },
        { "steps: {a: {tool: x, parallel: [b]}}", "no such step" },
        { "steps: {a: {tool: x, join: b}}", "no such step" },
        { "steps: {a: {tool: x, branch: [{then: a}]}}", "a branch is" },
        { "steps: {a: {select: [{timer: 1s}]}}", "needs 'then: STEP'" },
        { "steps: {a: {select: [{timer: 1s, then: a}], next: a}}", "arms are its way on" },
        { "steps: {a: {tool: x, next: a, join: a}}", "already says what follows" },
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct definition *definition;
        struct node *document;

        EXPECT_OK(node_read(&t->scope, str_of(texts[i][0]), &document));
        EXPECT_EQ(flow_compile(&t->scope, document, NULL, &definition), PAWL_INVALID_DEFINITION);
        EXPECT_HAS(t->scope.error.message, texts[i][1]);
        t->scope.error = (pawl_error){ 0 };
    }
}

/* ---- Running again ------------------------------------------------------------------------------ */

#define NO_JOIN                                                                                    \
    "steps: {s: {tool: x, parallel: [a, b]}, a: {tool: x, next: end}, b: {tool: x, done: true}, "  \
    "end: {tool: x, next: b}}"

/* What the first instance waited at is no join in the definition that its successor runs. */
TEST(flow_graph, a_redrive_forgets_the_join_of_a_step_that_nothing_joins_any_more)
{
    struct rig rig;

    rig_init(&rig, &t->scope, NO_JOIN, NULL);
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_START,
                                           .given = STR("{\"retry_of\":\"x\",\"begin\":[\"a\"],"
                                                        "\"joins\":[\"end\"],\"keys\":[]}") }));
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "1");
    rig_run(&rig, 3, "1");
    EXPECT_EQ(rig.attempts.count, 3);
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

#define LINE                                                                                       \
    "steps: {a: {tool: x, next: b}, b: {tool: x, next: c}, c: {tool: x, next: d}, d: {tool: x, "   \
    "retry: {max: 1}, done: true}}"

static str given_from(struct rig *rig, const char *from)
{
    struct flow_redrive args = { .definition = rig->definition,
                                 .memory = rig->memory,
                                 .attempts = &rig->attempts,
                                 .retry_of = STR("x"),
                                 .from = str_of(from) };
    str given = STR_NONE;

    EXPECT_OK(flow_redrive(rig->scope, &args, &given));
    return given;
}

TEST(flow_graph, what_a_redrive_runs_again_does_not_count_as_done)
{
    struct rig rig;

    rig_init(&rig, &t->scope, LINE, NULL);
    rig_begin(&rig);
    for (uint32_t i = 1; i <= 3; i++)
        rig_run(&rig, i, "1");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 4, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 4, "1"));
    EXPECT_HAS(given_from(&rig, NULL).data, "\"done\":[\"a\",\"b\",\"c\"]");
    EXPECT_HAS(given_from(&rig, "b").data, "\"begin\":[\"b\"],\"joins\":[],\"done\":[\"a\"]");
    rig_fini(&rig);
    rig_init(&rig, &t->scope,
             "steps: {a: {tool: x, next: b}, b: {tool: x, branch: [{if: 'result == 1', then: c}]}, "
             "c: {tool: x, done: true}}",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "2"); /* no branch matches: by the same definition b is run again */
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_HAS(given_from(&rig, NULL).data, "\"done\":[\"a\"]");
    rig_fini(&rig);
}

/* A forged or damaged store: verify decides the events of a history again, and a redrive of a redrive
 * reads what the first was given. */
TEST(flow_graph, what_a_redrive_gives_is_refused_by_name_if_it_has_another_form)
{
    static const char *const bad[][2] = {
        { "{\"after\":[1]}", "(`after` has another form)" },
        { "{\"after\":[[\"a\"]]}", "(`after` has another form)" },
        { "{\"after\":[[1,2]]}", "(`after` has another form)" },
        { "{\"keys\":[1]}", "(`keys` has another form)" },
        { "{\"keys\":[[\"a\",1]]}", "(`keys` has another form)" },
        { "{\"keys\":{\"a\":[\"a\",\"b\"]}}", "(`keys` has another form)" },
        { "{\"done\":[1]}", "(`done` has another form)" },
        { "{\"failed\":[null]}", "(`failed` has another form)" },
        { "{\"begin\":\"a\"}", "(`begin` has another form)" },
        { "{\"joins\":[[]]}", "(`joins` has another form)" },
        { "{\"arms\":[1]}", "(`arms` has another form)" },
        { "{\"results\":[1]}", "(`results` has another form)" },
        { "{\"context\":1}", "(`context` has another form)" },
    };
    struct rig rig;

    rig_init(&rig, &t->scope, NO_JOIN, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct flow_redrive args = { .definition = rig.definition,
                                     .memory = rig.memory,
                                     .attempts = &rig.attempts,
                                     .retry_of = STR("x"),
                                     .before = str_of(bad[i][0]) };
        str given;

        EXPECT_EQ(rig_do(&rig, (struct event){ .kind = EVENT_START, .given = str_of(bad[i][0]) }),
                  PAWL_STORAGE_FAILURE);
        EXPECT_HAS(rig.scope->error.message, bad[i][1]);
        EXPECT_EQ(flow_redrive(rig.scope, &args, &given), PAWL_STORAGE_FAILURE);
        EXPECT_HAS(rig.scope->error.message, bad[i][1]);
    }
    rig_fini(&rig);
}
