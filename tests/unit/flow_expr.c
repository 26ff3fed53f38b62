/* flow_expr.c - branches whose condition is an expression (DESIGN.md, section 4). */
#include "flow_rig.h"
#include <stdio.h>

#define FLOW                                                                                       \
    "steps:\n"                                                                                     \
    "  start: {tool: x, augment: {seen: identity}, next: check}\n"                                 \
    "  check: {tool: x, branch: [{if: 'result > 3', then: high}, {if: "                            \
    "'steps.start.result.ok and context.seen.ok and result == input.limit', then: "                \
    "equal}, {if: '#steps.check.result > 1', then: long}]}\n"                                      \
    "  high: {tool: x, done: true}\n  equal: {tool: x, done: true}\n  long: {tool: x, done: "      \
    "true}\n"

static void expect_step(struct rig *rig, uint32_t ordinal, const char *name)
{
    struct flow_call call;

    EXPECT_OK(flow_call(rig->definition, rig->memory, ordinal, rig->scope, &call));
    EXPECT_STR(call.step, name);
}

TEST(flow_expr, an_expression_sees_result_input_context_and_steps)
{
    static const char *const results[][2] = { { "4", "high" }, { "3", "equal" }, { "1", NULL } };

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        struct rig rig;

        rig_init(&rig, &t->scope, FLOW, "{\"limit\":3}");
        rig_begin(&rig);
        rig_run(&rig, 1, "{\"ok\":true}");
        rig_run(&rig, 2, results[i][0]);
        if (results[i][1])
            expect_step(&rig, 3, results[i][1]);
        else
            EXPECT_EQ(rig.state, LIFE_FAILED); /* the length of a number */
        rig_fini(&rig);
    }
}

TEST(flow_expr, an_expression_looks_at_one_member_of_the_context_or_at_all_of_them)
{
    static const char *const conditions[] = {
        "context.a.n == 1 and context.b == nil and context.c == 'x' and context.none == nil",
        "#context == 3 and context.a.n == 1 and type(context) == 'table'",
        "context.a == context.a and context['a'].n == result",
        "local a, keys = context.a, '' for key, value in pairs(context) do keys = keys .. key "
        "if key == 'a' and value ~= a then return false end end return keys == 'bca'",
        "local keys = '' for key in pairs(context) do keys = keys .. key end return keys == 'bca' "
        "and context.a == context.a and context.c == 'x'",
    };

    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        char text[1024];
        struct rig rig;

        snprintf(text, sizeof text,
                 "steps:\n  start: {name: s, tool: x, augment: {a: a, b: b, c: c}, next: check}\n"
                 "  check: {tool: x, augment: {a.n: identity}, branch: [{if: 'false', then: no}, "
                 "{if: \"%s\", then: yes}, {if: 'true', then: no}]}\n"
                 "  \"yes\": {tool: x, done: true}\n  \"no\": {tool: x, done: true}\n",
                 conditions[i]);
        rig_init(&rig, &t->scope, text, NULL);
        rig_begin(&rig);
        rig_run(&rig, 1, "{\"a\":{},\"b\":null,\"c\":\"x\"}");
        rig_run(&rig, 2, "1");
        if (rig.state != LIFE_RUNNING)
            test_fail(__FILE__, __LINE__, "%s: %s", conditions[i], rig.last_payload.data);
        expect_step(&rig, 3, "yes");
        rig_fini(&rig);
    }
}

/* The rig finds each decision again from its entries alone, so verify would. */
TEST(flow_expr, a_condition_that_cannot_be_told_fails_the_step_at_once)
{
    struct rig rig;

    rig_init(&rig, &t->scope, FLOW, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "{\"ok\":true}");
    rig_run(&rig, 2, "\"text\"");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_EQ(rig.attempts.items[1].status, STEP_FAILED);
    EXPECT_HAS(rig.attempts.items[1].error.data, "attempt to compare");
    EXPECT_EQ(rig.attempts.count, 2); /* no other attempt: it would be told no better */
    rig_fini(&rig);
}

TEST(flow_expr, a_condition_without_end_fails_the_step)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "steps: {a: {tool: x, branch: [{if: 'while true do end', then: a}]}}",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_HAS(rig.last_payload.data, "50000 operations");
    rig_fini(&rig);
}

/* What was awaited came, but cannot be used: an entry of a wait that only a check finds again. */
TEST(flow_expr, a_wait_and_a_gate_fail_alike)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps: {a: {wait: {signal: s}, branch: [{if: 'result > 3', then: b}]}, b: {tool: "
             "null, branch: [{if: 'result > 3', then: b}]}}",
             NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(
        &rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("s"), .payload = STR("4") }));
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_APPROVE, .ordinal = 2 }));
    EXPECT_EQ(rig.state, LIFE_FAILED);
    rig_fini(&rig);
    rig_init(&rig, &t->scope,
             "steps: {a: {wait: {signal: s}, branch: [{if: 'result > 3', then: b}]}, b: {tool: x, "
             "done: true}}",
             NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_SIGNAL, .name = STR("s") }));
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_EQ(rig.attempts.items[0].status, STEP_FAILED);
    rig_fini(&rig);
}

static void expect_refused(struct test *t, const char *condition, const char *words)
{
    struct findings findings = { 0 };
    struct definition *definition;
    struct node *document;
    char text[400];

    (void)snprintf(
        text, sizeof text,
        "steps:\n  a: {tool: x, branch: [{if: \"%s\", then: a}]}\n  b-c: {tool: x, done: "
        "true}",
        condition);
    EXPECT_OK(node_read(&t->scope, str_of(text), &document));
    EXPECT_EQ(flow_compile(&t->scope, document, &findings, &definition), PAWL_INVALID_DEFINITION);
    EXPECT(findings.count > 0);
    EXPECT_HAS(findings.items[0].message, words);
    EXPECT_EQ(findings.items[0].line, 2);
    EXPECT_EQ(findings.items[0].column, 30);
}

TEST(flow_expr, what_does_not_compile_is_refused_with_line_and_column)
{
    expect_refused(t, "result >", "is not an expression: condition:1:");
    expect_refused(t, "result ==", "is not an expression");
    expect_refused(t, "", "'if' is empty");
    expect_refused(t, "(result", "is not an expression");
    expect_refused(t, "steps.nosuch.result > 1", "names steps.nosuch");
    expect_refused(t, "steps['b-d'].result > 1", "names steps.b-d");
}

TEST(flow_expr, a_condition_that_cannot_be_told_is_named_with_its_step)
{
    struct rig rig;

    rig_init(&rig, &t->scope, FLOW, "{\"limit\":3}");
    rig_begin(&rig);
    rig_run(&rig, 1, "{\"ok\":true}");
    rig_run(&rig, 2, "1");
    EXPECT_STR(rig.last_payload, "\"step 'check': condition 3, '#steps.check.result > 1': attempt to "
                                 "get length of a number value (field 'result')\"");
    rig_fini(&rig);
    rig_init(&rig, &t->scope, FLOW, "{\"limit\":3}");
    rig.definition->compiler = 2; /* its words are in old histories */
    rig_begin(&rig);
    rig_run(&rig, 1, "{\"ok\":true}");
    rig_run(&rig, 2, "1");
    EXPECT_STR(rig.last_payload,
               "\"condition:1: attempt to get length of a number value (field 'result')\"");
    rig_fini(&rig);
}

static void expect_warned(struct scope *scope, const char *condition, const char *words)
{
    struct findings findings = { 0 };
    char text[300];

    (void)snprintf(text, sizeof text,
                   "steps: {a: {tool: x, branch: [{if: \"%s\", then: b}]}, b: {tool: x, done: true}}",
                   condition);
    (void)rig_compile(scope, text, &findings);
    EXPECT_EQ(findings.count, words != NULL);
    if (findings.count == 0 || !words)
        return;
    EXPECT(findings.items[0].is_warning && findings.items[0].column > 0);
    EXPECT_HAS(findings.items[0].message, words);
}

TEST(flow_expr, a_global_that_is_always_nil_is_warned_of_with_a_hint)
{
    expect_warned(
        &t->scope, "imput.x > 3",
        "names 'imput', which is always nil; did you mean 'input'? known are result, error, input, "
        "context, steps, instance, type, tostring, tonumber, ipairs, pairs, string, math");
    expect_warned(&t->scope, "default", "for the last branch write if: \"true\"");
    expect_warned(&t->scope, "input.x ~= null", "write nil");
    expect_warned(&t->scope, "zzz", "always nil; known are");
    expect_warned(&t->scope, "local n = 1 return input.x > n", NULL);
    expect_warned(&t->scope, "result.x > 3 and context.foo == 'bar'", NULL);
    expect_warned(&t->scope, "result == foo", NULL); /* one of the six forms: a text */
}

TEST(flow_expr, operators_of_other_languages_are_refused_with_those_of_lua)
{
    expect_refused(t, "input.a && input.b", "write 'and' for &&");
    expect_refused(t, "input.a || input.b", "write 'or' for ||");
    expect_refused(t, "input.a != 3", "write ~= for !=");
    expect_refused(t, "!input.a", "write 'not' for !");
    expect_refused(t, "input.a = 3", "write == to compare");
}

TEST(flow_expr, a_quote_that_is_no_quoted_text_is_warned_of)
{
    static const char *const texts[] = { "result == \\\"yes", "result != \\\"yes'",
                                         "result == 'it's'" };
    char text[200];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct findings findings = { 0 };

        (void)snprintf(text, sizeof text,
                       "steps: {a: {tool: x, branch: [{if: \"%s\", then: b}]}, b: {tool: x, done: "
                       "true}}",
                       texts[i]);
        (void)rig_compile(&t->scope, text, &findings);
        EXPECT_EQ(findings.count, 1);
        EXPECT_HAS(findings.items[0].message, "the quotes too");
    }
}

/* What YAML's `if: |` writes ends with a newline. */
TEST(flow_expr, blanks_around_a_condition_do_not_count)
{
    static const char *const texts[][2] = {
        { "result == true\\n", "true" },
        { "  result == \\\"yes\\\" \\n", "\"yes\"" },
        { "result == some text\\t", "\"some text\"" },
        { "\\nresult.n > 3\\n", "{\"n\":4}" },
    };
    char text[200];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct findings findings = { 0 };
        struct rig rig;

        (void)snprintf(text, sizeof text,
                       "steps: {a: {tool: x, branch: [{if: \"%s\", then: b}]}, b: {tool: x, done: "
                       "true}}",
                       texts[i][0]);
        (void)rig_compile(&t->scope, text, &findings);
        EXPECT_EQ(findings.count, 0);
        rig_init(&rig, &t->scope, text, NULL);
        rig_begin(&rig);
        rig_run(&rig, 1, texts[i][1]);
        expect_step(&rig, 2, "b");
        rig_fini(&rig);
    }
}

TEST(flow_expr, words_of_other_languages_in_a_comparison_are_warned_of)
{
    static const char *const texts[][2] = {
        { "result == null", "compared with the text null; write nil" },
        { "result != None", "compared with the text None; write nil" },
        { "result == True", "compared with the text True; write true" },
        { "result == 3 && true", "begin with a parenthesis; write 'and' for &&" },
        { "result == 3 || result == 4", "begin with a parenthesis; write 'or' for ||" },
    };
    char text[200];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct findings findings = { 0 };

        (void)snprintf(text, sizeof text,
                       "steps: {a: {tool: x, branch: [{if: '%s', then: b}]}, b: {tool: x, done: "
                       "true}}",
                       texts[i][0]);
        (void)rig_compile(&t->scope, text, &findings);
        EXPECT_EQ(findings.count, 1);
        EXPECT_HAS(findings.items[0].message, texts[i][1]);
    }
}

TEST(flow_expr, the_six_forms_stay_what_they_are_and_a_misreading_is_warned_of)
{
    struct findings findings = { 0 };
    struct definition *definition;
    struct rig rig;

    definition = rig_compile(&t->scope,
                             "steps: {a: {tool: x, branch: [{if: 'result == 5 and input.x', then: "
                             "b}]}, b: {tool: x, done: true}}",
                             &findings);
    EXPECT(definition != NULL);
    EXPECT_EQ(findings.count, 1);
    EXPECT_HAS(findings.items[0].message, "begin with a parenthesis");
    rig_init(&rig, &t->scope,
             "steps: {a: {tool: x, branch: [{if: 'result == 5 and input.x', then: b}]}, b: {tool: "
             "x, done: true}}",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "\"5 and input.x\"");
    expect_step(&rig, 2, "b");
    rig_fini(&rig);
}
