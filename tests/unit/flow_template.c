/* flow_template.c - what stands in args, and what a tool is given for it. */
#include "base/limits.h"
#include "flow/plan.h"
#include "flow_rig.h"
#include "lib/fault.h"
#include <stdio.h>

/* The args of the second of two steps, the first of which had `result`. */
static void expect_args(struct test *t, const char *args, const char *input, const char *result,
                        const char *wanted)
{
    struct rig rig;
    struct flow_call call;
    struct buf text;

    buf_init(&text, &heap_libc, 0);
    buf_fmt(&text, "{\"do\":[{\"name\":\"a.b\",\"tool\":\"x\"},{\"tool\":\"y\",\"args\":%s}]}",
            args);
    rig_init(&rig, &t->scope, buf_text(&text), input);
    rig_begin(&rig);
    rig_run(&rig, 1, result);
    EXPECT_OK(flow_call(rig.definition, rig.memory, 2, &t->scope, &call));
    EXPECT_STR(call.args, wanted);
    rig_fini(&rig);
    buf_fini(&text);
}

TEST(template, b21_a_string_that_is_exactly_one_template_keeps_the_json_type)
{
    const char *input =
        "{\"n\":1.50,\"t\":true,\"o\":{\"a\" : [1, 2]},\"z\":null,\"s\":\"\\u20ac\"}";

    expect_args(t, "{\"x\":\"{{input.n}}\"}", input, "1", "{\"x\":1.50}");
    expect_args(t, "{\"x\":\"{{input.t}}\"}", input, "1", "{\"x\":true}");
    expect_args(t, "{\"x\":\"{{input.o}}\"}", input, "1", "{\"x\":{\"a\":[1,2]}}");
    expect_args(t, "{\"x\":\"{{input.z}}\"}", input, "1", "{\"x\":null}");
    expect_args(t, "{\"x\":\"{{ input.s }}\"}", input, "1", "{\"x\":\"\\u20ac\"}");
    expect_args(t, "{\"x\":\"{{input}}\"}", "[1]", "1", "{\"x\":[1]}");
}

TEST(template, b21_templates_are_replaced_at_any_depth_and_other_values_are_unchanged)
{
    expect_args(t, "{\"a\":[{\"b\":[\"{{input.x}}\",1.0,null]}],\"c\":\"plain\",\"{{input.x}}\":1}",
                "{\"x\":5}", "1",
                "{\"a\":[{\"b\":[5,1.0,null]}],\"c\":\"plain\",\"{{input.x}}\":1}");
}

TEST(template, a_template_among_other_text_becomes_text_and_other_kinds_compact_json)
{
    expect_args(t, "{\"x\":\"a {{input.s}} b {{input.n}}{{input.o}}.\"}",
                "{\"s\":\"q\\\"\",\"n\":7,\"o\":{\"k\": 1}}", "1",
                "{\"x\":\"a q\\\" b 7{\\\"k\\\":1}.\"}");
}

TEST(template, b21_b23_a_missing_path_is_the_empty_text_and_so_is_every_path_without_an_input)
{
    expect_args(t, "{\"x\":\"{{input.nope}}\",\"y\":\"[{{input.a.b}}]\"}", "{\"a\":1}", "1",
                "{\"x\":\"\",\"y\":\"[]\"}");
    expect_args(t, "{\"x\":\"{{input.a}}\",\"y\":\"{{input}}\"}", NULL, "1",
                "{\"x\":\"\",\"y\":\"\"}");
    expect_args(t, "{\"x\":\"{{input.a}}\"}", "null", "1", "{\"x\":\"\"}");
    expect_args(t, "{\"x\":\"{{input.}}\",\"y\":\"{{input.a.}}\"}", "{\"a\":1}", "1",
                "{\"x\":\"\",\"y\":\"\"}");
}

TEST(template, a_key_that_contains_a_dot_is_tried_whole_first)
{
    const char *input = "{\"a\":{\"b\":{\"c\":1},\"b.c\":2},\"a.b\":{\"d\":3}}";

    expect_args(t, "{\"x\":\"{{input.a.b.c}}\"}", input, "1", "{\"x\":2}");
    expect_args(t, "{\"x\":\"{{input.a.b.d}}\"}", input, "1", "{\"x\":3}");
    expect_args(t, "{\"x\":\"{{input.a.b}}\"}", input, "1", "{\"x\":{\"d\":3}}");
    expect_args(t, "{\"x\":\"{{input.a.b.c}}\"}", "{\"a.b\":1,\"a\":{\"b\":{\"c\":9}}}", "1",
                "{\"x\":9}");
    expect_args(t, "{\"x\":\"{{input.}}\"}", "{\"\":4}", "1", "{\"x\":4}");
}

TEST(template, an_item_of_a_list_is_named_by_its_index)
{
    const char *input = "{\"l\":[10,{\"k\":\"v\"}]}";

    expect_args(t, "{\"x\":\"{{input.l.1.k}}\",\"y\":\"{{input.l.0}}\"}", input, "1",
                "{\"x\":\"v\",\"y\":10}");
    expect_args(t, "{\"x\":\"{{input.l.2}}\",\"y\":\"{{input.l.-1}}\",\"z\":\"{{input.l.k}}\"}",
                input, "1", "{\"x\":\"\",\"y\":\"\",\"z\":\"\"}");
}

TEST(template, the_result_of_an_earlier_step_is_found_by_its_name_even_with_dots_in_it)
{
    expect_args(t, "{\"x\":\"{{steps.a.b.result}}\",\"y\":\"{{steps.a.b.result.r.0}}\"}", NULL,
                "{\"r\": [8]}", "{\"x\":{\"r\":[8]},\"y\":8}");
    expect_args(t, "{\"x\":\"{{steps.do.1.result}}\"}", NULL, "1", "{\"x\":\"\"}");
}

TEST(template, what_a_template_brings_in_is_never_looked_at_again)
{
    expect_args(t, "{\"x\":\"{{input.a}}\",\"y\":\"-{{input.a}}-\"}",
                "{\"a\":\"{{input.b}}\",\"b\":\"secret\"}", "1",
                "{\"x\":\"{{input.b}}\",\"y\":\"-{{input.b}}-\"}");
    expect_args(t, "{\"x\":\"{{input.a}}input.b}}\"}", "{\"a\":\"{{\",\"b\":1}", "1",
                "{\"x\":\"{{input.b}}\"}");
}

TEST(template, braces_that_are_no_template_stay_as_they_are)
{
    static const char *const same[] = { "{\"x\":\"{{\"}",           "{\"x\":\"}}{{\"}",
                                        "{\"x\":\"{{}}\"}",         "{\"x\":\"{{.Names}}\"}",
                                        "{\"x\":\"{{inputs.a}}\"}", "{\"x\":\"{input.a}\"}",
                                        "{\"x\":\"{{input.a}\"}",   "{\"x\":\"{{{\"}" };

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        expect_args(t, same[i], "{\"a\":1}", "1", same[i]);
    expect_args(t, "{\"x\":\"{{{{input.a}}}}\"}", "{\"a\":1}", "1", "{\"x\":\"{{1}}\"}");
    expect_args(t, "{\"x\":\"{{{input.a}}}\"}", "{\"a\":1}", "1", "{\"x\":\"{1}\"}");
}

TEST(template, args_that_grow_over_a_megabyte_are_too_large_in_words)
{
    struct rig rig;
    struct flow_call call;
    struct buf text, input;

    buf_init(&text, &heap_libc, 0);
    buf_init(&input, &heap_libc, 0);
    buf_str(&text, STR("{\"do\":[{\"name\":\"grow\",\"tool\":\"x\",\"args\":{\"a\":[0"));
    for (int i = 0; i < 1000; i++)
        buf_str(&text, STR(",\"{{input.big}}\",\"-{{input.big}}{{input.big}}\""));
    buf_str(&text, STR("]}}]}"));
    buf_str(&input, STR("{\"big\":\""));
    for (int i = 0; i < 500000; i++)
        buf_str(&input, STR("\xC3\xA9"));
    buf_str(&input, STR("\"}"));
    rig_init(&rig, &t->scope, buf_text(&text), buf_text(&input));
    rig_begin(&rig);
    EXPECT_EQ(flow_call(rig.definition, rig.memory, 1, &t->scope, &call), PAWL_TOO_LARGE);
    EXPECT_HAS(t->scope.error.message, "over 1048576 bytes");
    rig_fini(&rig);
    buf_fini(&input);
    buf_fini(&text);
}

TEST(template, a_path_that_could_be_read_in_a_million_ways_is_looked_up_at_once)
{
    struct buf args, input;

    buf_init(&args, &heap_libc, 0);
    buf_init(&input, &heap_libc, 0);
    buf_str(&args, STR("{\"x\":\"{{input"));
    for (int i = 0; i < 50; i++)
        buf_str(&args, STR(".a"));
    buf_str(&args, STR(".z}}\"}"));
    for (int i = 0; i < 50; i++)
        buf_str(&input, STR("{\"a.a\":{},\"a\":"));
    buf_str(&input, STR("0"));
    for (int i = 0; i < 50; i++)
        buf_str(&input, STR("}"));
    expect_args(t, buf_text(&args), buf_text(&input), "1", "{\"x\":\"\"}");
    buf_fini(&input);
    buf_fini(&args);
}

static pawl_status call_with_templates(struct scope *scope, struct arena *arena)
{
    struct effect step = { .kind = EFFECT_STEP, .ordinal = 1, .attempt = 1, .status = STEP_READY };
    struct effect over[] = {
        { .kind = EFFECT_END, .ordinal = 1 },
        { .kind = EFFECT_STEP, .ordinal = 2, .plan = 1, .attempt = 1, .status = STEP_READY },
    };
    struct effect_list list = { &step, 1, 1 }, next = { over, 2, 2 };
    struct entry_view start = { .transition = LIFE_T_START, .effects = &list };
    struct entry_view complete = { .transition = LIFE_T_STEP_COMPLETE,
                                   .step = 1,
                                   .ordinal = 1,
                                   .effects = &next,
                                   .payload = STR("{\"r\":[1,2,3]}") };
    struct definition *definition;
    struct flow_call call;
    struct node *document;
    void *memory;
    pawl_status status =
        node_read_json(scope,
                       STR("{\"do\":[{\"name\":\"a\",\"tool\":\"x\",\"args\":{}},{\"tool\":\"x\","
                           "\"args\":{\"b\":\"{{steps.a.result.r}}\",\"c\":\"-{{input.q}}\"}}]}"),
                       &document);

    if (status == PAWL_OK)
        status = flow_compile(scope, document, NULL, &definition);
    if (status != PAWL_OK)
        return status;
    memory = flow_behavior.memory_new(definition, STR("{\"q\":\"w\"}"), arena);
    if (!memory)
        return PAWL_NO_MEMORY;
    status = flow_behavior.apply(definition, memory, &start, scope, arena);
    if (status == PAWL_OK)
        status = flow_behavior.apply(definition, memory, &complete, scope, arena);
    if (status == PAWL_OK)
        status = flow_call(definition, memory, 2, scope, &call);
    if (status == PAWL_OK)
        EXPECT_STR(call.args, "{\"b\":[1,2,3],\"c\":\"-w\"}");
    return status;
}

TEST(template, every_allocation_that_fails_is_no_memory_and_leaks_nothing)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_FOR_EVER)
    {
        struct scope scope;
        struct arena arena;
        pawl_status status;

        scope_init(&scope, &fault.heap, 0);
        arena_init(&arena, &fault.heap, 0);
        status = call_with_templates(&scope, &arena);
        EXPECT(status == (fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK));
        arena_fini(&arena);
        scope_fini(&scope);
    }
}

/* ---- What a template cannot be ---------------------------------------------------------------- */

static void expect_hint(struct scope *scope, const char *template, const char *words)
{
    struct findings findings = { 0 };
    char text[300];

    (void)snprintf(text, sizeof text,
                   "do: [{name: a, action: x, payload: {}}, {action: y, payload: {v: \"%s\"}}]",
                   template);
    (void)rig_compile(scope, text, &findings);
    EXPECT_EQ(findings.count, words != NULL);
    if (findings.count == 0 || !words)
        return;
    EXPECT(findings.items[0].is_warning && findings.items[0].column > 0);
    EXPECT_HAS(findings.items[0].message, words);
}

TEST(flow_template, a_path_that_hardly_any_value_has_is_warned_of_with_a_hint)
{
    expect_hint(&t->scope, "{{{{input.x}}}}", "stay around the value; write {{input.x}}");
    expect_hint(&t->scope, "{{input.l[1]}}", "write {{input.l.1}}: a path has dots");
    expect_hint(&t->scope, "{{input.l['k'][0].x}}", "write {{input.l.k.0.x}}");
    expect_hint(&t->scope, "{{steps.a.result.l[1]}}", "write {{steps.a.result.l.1}}");
    expect_hint(&t->scope, "{{input[0]}}", "stays as it is");
    expect_hint(&t->scope, "{{input.x|upper}}", "a template has no filters");
    expect_hint(&t->scope, "{{a|b}}", "a template has no filters");
    expect_hint(&t->scope, "{{input.n + 1}}", "to calculate, write an expression");
    expect_hint(&t->scope, "{{context.a ?? 'x'}}", "to calculate, write an expression");
    expect_hint(&t->scope, "{{inputs.n}}", "did you mean 'input'?");
    expect_hint(&t->scope, "{{foo}}", "stays as it is");
    expect_hint(&t->scope, "{{input.s", "{{input.s stays as it is: expected }}");
    expect_hint(&t->scope, "a {{ steps.a.result } b", "expected }} at the end of the template");
    expect_hint(&t->scope, "{{input.s {{input.t}}", "expected }} at the end");
}

TEST(flow_template, b21_odd_keys_and_unclosed_braces_stay_what_they_are)
{
    static const char *const texts[] = { "{{input.a-b}}",   "{{input.a b}}",
                                         "{{input.a/b}}",   "{{context.exec/last-error}}",
                                         "{{input.l.0.x}}", "{{input.price (EUR)}}",
                                         "{{.s", "{{ inputs.s }", "{input.s" };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        expect_hint(&t->scope, texts[i], NULL);
}

/* ---- Expressions ----------------------------------------------------------------------------- */

TEST(template, an_expression_is_replaced_by_its_value_and_keeps_the_type)
{
    const char *input = "{\"n\":3,\"s\":\"q\",\"l\":[{\"p\":2},{\"p\":5}]}";

    expect_args(t, "{\"x\":\"{{= input.n * 2 }}\",\"y\":\"{{=input.l[2].p}}\"}", input, "1",
                "{\"x\":6,\"y\":5}");
    expect_args(t, "{\"x\":\"n: {{= input.n + 0.5 }}, {{= input.none }}{{input.s}} {{= {} }}\"}",
                input, "1", "{\"x\":\"n: 3.5, q []\"}");
    expect_args(t, "{\"x\":\"{{= {a = {b = input.l[1]}} }}\"}", input, "1",
                "{\"x\":{\"a\":{\"b\":{\"p\":2}}}}");
    expect_args(t, "{\"x\":\"{{= input.none }}\",\"y\":\"{{= steps['a.b'].result.k .. '!' }}\"}",
                input, "{\"k\":\"v\"}", "{\"x\":null,\"y\":\"v!\"}");
    expect_args(
        t, "{\"x\":\"{{= local n = 0 for _, i in ipairs(input.l) do n = n + i.p end return n }}\"}",
        input, "1", "{\"x\":7}");
}

TEST(template, what_an_expression_brings_in_is_not_searched_again)
{
    expect_args(t, "{\"x\":\"{{= '{{input.n}}' }} {{= input.s }}\"}",
                "{\"n\":1,\"s\":\"{{= 1 }}\"}", "1", "{\"x\":\"{{input.n}} {{= 1 }}\"}");
}

TEST(template, an_expression_that_fails_says_which_one_it_is)
{
    struct rig rig;
    struct flow_call call;

    rig_init(&rig, &t->scope, "do: [{tool: x, args: {v: '{{= input.n + 1 }}'}}]", "{\"n\":\"x\"}");
    rig_begin(&rig);
    EXPECT_EQ(flow_call(rig.definition, rig.memory, 1, &t->scope, &call), PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "expression 'input.n + 1': attempt to ");
    rig_fini(&rig);
}

/* A plan of a version before expressions has no `calculates`. */
TEST(template, in_a_plan_of_before_expressions_their_braces_stay_as_they_are)
{
    struct rig rig;
    struct flow_call call;

    rig_init(&rig, &t->scope, "do: [{tool: x, args: {v: '{{= input.n }}', w: '{{input.n}}'}}]",
             "{\"n\":1}");
    EXPECT_HAS(arena_str(&t->scope.arena, rig.definition->plan_text).data, ",\"calculates\":true}");
    ((struct plan *)rig.definition->plan)->calculates = false;
    rig_begin(&rig);
    EXPECT_OK(flow_call(rig.definition, rig.memory, 1, &t->scope, &call));
    EXPECT_STR(call.args, "{\"v\":\"{{= input.n }}\",\"w\":1}");
    rig_fini(&rig);
}

TEST(template, an_expression_in_a_duration_an_output_and_a_spawn_is_evaluated_when_it_is_needed)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "do: [{name: s, tool: sleep, args: {for: '{{= input.n * 2 }}s'}},"
             " {name: b, tool: x, augment: {r: identity}}]\n"
             "output: {sum: '{{= context.r + input.n }}'}",
             "{\"n\":4}");
    rig_begin(&rig);
    EXPECT_STORY_HAS(&rig, "[\"arm\",\"s\",9000,1]");
    rig.now_ms = 9000;
    EXPECT_OK(rig_timer(&rig, "s", 1));
    rig_run(&rig, 2, "38");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    EXPECT_STR(rig.last_payload, "{\"sum\":42}");
    rig_fini(&rig);
}

TEST(template, an_expression_that_fails_in_an_output_fails_the_flow)
{
    struct rig rig;

    rig_init(&rig, &t->scope, "do: [{tool: x}]\noutput: '{{= input.a.b }}'", "{}");
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    EXPECT_EQ(rig.state, LIFE_FAILED);
    EXPECT_HAS(rig.last_payload.data, "expression 'input.a.b': attempt to index a nil value");
    rig_fini(&rig);
}
