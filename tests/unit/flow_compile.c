/* flow_compile.c - what a flow's definition may say, and what is said back. */
#include "base/limits.h"
#include "flow_rig.h"
#include <stdio.h>

static const struct finding *find(const struct findings *findings, const char *part)
{
    for (uint32_t i = 0; i < findings->count; i++)
        if (strstr(findings->items[i].message, part))
            return &findings->items[i];
    return NULL;
}

static void expect_plan(struct scope *scope, const char *text, const char *plan)
{
    EXPECT_STR(rig_compile(scope, text, NULL)->plan_text, plan);
}

static void expect_plan_has(struct scope *scope, const char *text, const char *part)
{
    EXPECT_HAS(arena_str(&scope->arena, rig_compile(scope, text, NULL)->plan_text).data, part);
}

static const struct finding *expect_refused(struct scope *scope, const char *text, const char *part)
{
    struct definition *definition = NULL;
    struct findings findings = { 0 };
    struct node *document = NULL;
    const struct finding *finding;

    EXPECT_OK(node_read(scope, str_of(text), &document));
    if (flow_compile(scope, document, &findings, &definition) != PAWL_INVALID_DEFINITION)
        test_fail(__FILE__, __LINE__, "not refused: %s", text);
    EXPECT(definition == NULL);
    EXPECT_HAS(scope->error.message, "line ");
    finding = find(&findings, part);
    if (!finding || finding->is_warning)
        test_fail(__FILE__, __LINE__, "expected '%s', found '%s'", part, scope->error.message);
    EXPECT(finding->line > 0 && finding->column > 0);
    return finding;
}

static void expect_warning(struct scope *scope, const char *text, const char *part)
{
    struct findings findings = { 0 };
    const struct finding *finding;

    rig_compile(scope, text, &findings);
    finding = find(&findings, part);
    if (!finding || !finding->is_warning || finding->line == 0)
        test_fail(__FILE__, __LINE__, "expected the warning '%s'", part);
}

/* ---- Notations -------------------------------------------------------------------- */

TEST(flow_compile, b10_b11_x8_a_graph_compiles_to_the_canonical_plan_with_its_defaults)
{
    expect_plan(&t->scope,
                "name: research\n"
                "steps:\n"
                "  start: {name: search, tool: find, args: {q: '{{input.topic}}'}, next: end}\n"
                "  end: {tool: log, args: {message: done}, done: true}\n",
                "{\"notation\":\"graph\",\"first\":0,\"steps\":["
                "{\"name\":\"search\",\"tool\":\"find\",\"args\":{\"q\":\"{{input.topic}}\"},"
                "\"next\":1,\"max\":3,\"backoff\":[30000,120000,300000],"
                "\"idempotent\":true},"
                "{\"name\":\"end\",\"tool\":\"log\",\"args\":{\"message\":\"done\"},\"max\":3,"
                "\"backoff\":[30000,120000,300000],\"idempotent\":true}]}");
}

TEST(flow_compile, x8_a_tree_compiles_to_a_sequence_of_leaves_named_by_their_path)
{
    expect_plan(&t->scope,
                "do:\n"
                "  - {action: git/create, payload: {n: 1.50}}\n"
                "  - do:\n"
                "      - {tool: log, args: {message: x}, name: say}\n"
                "      - {action: a, payload: {}}\n",
                "{\"notation\":\"tree\",\"first\":0,\"steps\":["
                "{\"name\":\"do.0\",\"tool\":\"git/create\",\"args\":{\"n\":1.50},"
                "\"max\":1,\"backoff\":[],\"idempotent\":false},"
                "{\"name\":\"say\",\"tool\":\"log\",\"args\":{\"message\":\"x\"},"
                "\"max\":1,\"backoff\":[],\"idempotent\":false},"
                "{\"name\":\"do.1.do.1\",\"tool\":\"a\",\"args\":{},"
                "\"max\":1,\"backoff\":[],\"idempotent\":false}],"
                "\"tree\":[\"do\",0,[\"do\",1,2]]}");
}

TEST(flow_compile, c2_a_leaf_alone_is_a_program_called_by_its_name_or_else_by_its_action)
{
    expect_plan(&t->scope, "name: greet\naction: log\npayload: {message: a}\noutput: done\n",
                "{\"notation\":\"tree\",\"first\":0,\"steps\":["
                "{\"name\":\"greet\",\"tool\":\"log\",\"args\":{\"message\":\"a\"},"
                "\"max\":1,\"backoff\":[],\"idempotent\":false}],"
                "\"tree\":0,\"output\":\"done\"}");
    EXPECT_STR(flow_step_name(rig_compile(&t->scope, "action: log\npayload: {}", NULL), 0), "log");
    EXPECT_STR(flow_step_name(rig_compile(&t->scope, "wait: {timer: 1s}", NULL), 0), "wait");
    EXPECT_STR(flow_step_name(rig_compile(&t->scope, "tool: null", NULL), 0), "gate");
    expect_refused(&t->scope, "action: log\npayload: {}\nnxt: a", "unknown key 'nxt'");
    expect_refused(&t->scope, "action: log\npayload: {}\ndo: []", "unknown key 'action'");
    expect_refused(&t->scope, "action: log\npayload: {}\nnext: a", "belongs to 'steps'");
}

TEST(flow_compile, a_bare_map_with_an_object_under_start_is_a_graph)
{
    struct definition *definition =
        rig_compile(&t->scope,
                    "{\"b\":{\"tool\":\"log\",\"done\":true},\"name\":\"research\","
                    "\"start\":{\"tool\":\"log\",\"next\":\"b\"}}",
                    NULL);

    EXPECT_HAS(definition->plan_text.data, "\"first\":1");
    EXPECT_EQ(definition->kind, KIND_FLOW);
    EXPECT_EQ(definition->state_count, LIFE_STATE_COUNT);
    EXPECT_STR(flow_step_name(definition, 1), "start");
}

TEST(flow_compile, b10_without_start_the_first_step_of_the_document_is_the_first)
{
    expect_plan(&t->scope, "steps: {z: {tool: log, next: a}, a: {tool: log, done: true}}",
                "{\"notation\":\"graph\",\"first\":0,\"steps\":["
                "{\"name\":\"z\",\"tool\":\"log\",\"args\":{},\"next\":1,\"max\":3,"
                "\"backoff\":[30000,120000,300000],\"idempotent\":true},"
                "{\"name\":\"a\",\"tool\":\"log\",\"args\":{},\"max\":3,"
                "\"backoff\":[30000,120000,300000],\"idempotent\":true}]}");
}

TEST(flow_compile, b12_a_step_is_found_by_its_key_or_else_by_its_name)
{
    struct definition *definition = rig_compile(&t->scope,
                                                "steps:\n"
                                                "  start: {name: first, tool: log, next: third}\n"
                                                "  b: {name: third, tool: log, next: b2}\n"
                                                "  b2: {name: b3, tool: log, done: true}\n",
                                                NULL);

    EXPECT_HAS(definition->plan_text.data,
               "{\"name\":\"first\",\"tool\":\"log\",\"args\":{},\"next\":1");
    EXPECT_HAS(definition->plan_text.data,
               "{\"name\":\"third\",\"tool\":\"log\",\"args\":{},\"next\":2");
}

/* ---- Whether it may be cancelled ----------------------------------------------------- */

static const char migration[] = "cancel: %s\n"
                                "steps:\n"
                                "  copy: {tool: x, next: apply}\n"
                                "  apply: {name: apply schema, tool: x, next: tell}\n"
                                "  tell: {tool: x, done: true}\n";

static const char *with_cancel(struct scope *scope, const char *rule)
{
    size_t size = sizeof migration + strlen(rule);
    char *text = arena_alloc(&scope->arena, size);

    (void)snprintf(text, size, migration, rule);
    return text;
}

static void expect_rule(struct scope *scope, const char *text, const char *rule)
{
    str plan = rig_compile(scope, text, NULL)->plan_text;
    const char *found = strstr(plan.data, "],\"cancel\"");

    EXPECT_TEXT(found ? found + 1 : "}", rule);
}

TEST(flow_compile, a_flow_says_that_it_cannot_be_cancelled_or_from_which_steps_it_cannot)
{
    struct findings findings = { 0 };

    expect_rule(&t->scope, with_cancel(&t->scope, "false"), ",\"cancel\":false}");
    expect_rule(&t->scope, with_cancel(&t->scope, "true"), "}");
    expect_rule(&t->scope, with_cancel(&t->scope, "{not_from: [tell, apply]}"),
                ",\"cancel\":[1,2]}"); /* in the order of the steps */
    expect_rule(&t->scope, with_cancel(&t->scope, "{not_from: [apply schema]}"),
                ",\"cancel\":[1]}");
    expect_rule(&t->scope, "cancel: false\ndo: [{name: a, tool: x}]", ",\"cancel\":false}");
    expect_rule(&t->scope,
                "cancel: {not_from: [b]}\ntry: [{name: a, tool: x}]\n"
                "finally: [{name: b, tool: x}]",
                ",\"cancel\":[1],\"cleans\":true}");
    rig_compile(&t->scope, with_cancel(&t->scope, "{not_from: [apply]}"), &findings);
    EXPECT_EQ(findings.count, 0);
}

TEST(flow_compile, a_rule_for_cancelling_that_makes_no_sense_is_refused_where_it_stands)
{
    static const struct {
        const char *rule, *part;
        uint32_t line, column;
    } bad[] = {
        { "never", "'cancel' must be true, false or {not_from: [STEP, ...]}, found a string", 1, 9 },
        { "[apply]", "found an array", 1, 9 },
        { "{}", "'cancel' needs 'not_from', a list of one or more steps", 1, 9 },
        { "{not_from: apply}", "'cancel.not_from' must be a list of one or more steps", 1, 20 },
        { "{not_from: []}", "'cancel.not_from' must be a list of one or more steps", 1, 20 },
        { "{not_from: [7]}", "'cancel.not_from' lists names of steps, found a number", 1, 21 },
        { "{not_from: [copy, aply]}",
          "'cancel.not_from' names 'aply', and there is no such step; did you mean 'apply'?", 1, 27 },
        { "{not_from: [nothing]}", "'cancel.not_from' names 'nothing', and there is no such step",
          1, 21 },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct finding *finding =
            expect_refused(&t->scope, with_cancel(&t->scope, bad[i].rule), bad[i].part);

        EXPECT_EQ(finding->line, bad[i].line);
        EXPECT_EQ(finding->column, bad[i].column);
    }
    expect_refused(&t->scope, with_cancel(&t->scope, "{not_from: [apply], not_form: 1}"),
                   "unknown key 'cancel.not_form'; did you mean 'not_from'?");
    expect_warning(&t->scope, with_cancel(&t->scope, "{not_from: [apply, apply]}"),
                   "'cancel.not_from' names 'apply' twice");
}

TEST(flow_compile, a_step_of_a_bare_map_may_be_called_cancel)
{
    expect_rule(&t->scope,
                "start: {tool: x, next: cancel}\ncancel: {tool: x, done: true}", "}");
}

TEST(flow_compile, more_than_one_notation_is_refused)
{
    expect_refused(&t->scope, "steps: {a: {tool: log, done: true}}\ndo: []", "of one kind");
    expect_refused(&t->scope, "states: [a]\ndo: []", "of one kind");
    expect_refused(&t->scope, "steps: {a: {tool: x, done: true}}\nstart: {tool: x, done: true}",
                   "of one kind");
    expect_refused(&t->scope, "states: [a]", "makes a machine");
    expect_refused(&t->scope, "name: x", "not a flow");
    expect_refused(&t->scope, "[1]", "must be an object");
}

/* ---- What this version does not know ------------------------------------------------ */

/* ---- Keys ------------------------------------------------------------------------------ */

TEST(flow_compile, an_unknown_key_is_an_error_at_the_key_that_names_the_known_ones)
{
    static const struct {
        const char *text, *part;
        uint32_t line, column;
    } bad[] = {
        { "steps: {a: {tool: x, done: true}}\ncolour: red",
          "unknown key 'colour'; known here: steps, timeout, name, description, ", 2, 1 },
        { "do: [{tool: x}]\noutptu: 1", "unknown key 'outptu'; did you mean 'output'?", 2, 1 },
        { "do: [{tool: x}]\nrescue: []",
          "unknown key 'rescue'; known here: do, timeout, retry, description", 2, 1 },
        { "signals: {go: {bufer: true}}\ndo: [{tool: x}]",
          "unknown key 'signals.go.bufer'; did you mean 'buffer'? known here: buffer", 1, 16 },
        { "steps: {a: {tool: x, done: true, timout: 3s}}",
          "step 'a': unknown key 'timout'; did you mean 'timeout'? known here: name, ", 1, 34 },
        { "do: [{tool: x, colour: red}]", "step 'do.0': unknown key 'colour'; known here: ", 1,
          16 },
        { "do: [{do: [{tool: x}], augment: 3s}]",
          "unknown key 'augment' beside 'do'; known here: do, timeout, retry, description", 1, 24 },
        { "do: [{try: [{tool: x}], catch: [{tool: y}]}]",
          "unknown key 'catch' beside 'try'; did you mean 'rescue'? known here: try, rescue, "
          "finally, timeout, retry, description",
          1, 25 },
        { "try: [{tool: x}]\nresque: [{tool: y}]", "did you mean 'rescue'?", 2, 1 },
        { "do: [{tool: x, retry: {backof: [1s]}}]",
          "step 'do.0': unknown key 'retry.backof'; did you mean 'backoff'? known here: max, "
          "backoff",
          1, 24 },
        { "do: [{tool: x, retry: {backoff: {initial: 1s, facter: 2}}}]",
          "unknown key 'retry.backoff.facter'; did you mean 'factor'?", 1, 47 },
        { "do: [{tool: null, approval: {who: ann}}]",
          "unknown key 'approval.who'; known here: by, count, ask", 1, 30 },
        { "do: [{tool: mcp, args: {server: a, tool: b, speed: 1}}]",
          "the tool mcp does not know 'speed'; it takes server, tool, resource", 1, 52 },
        { "do: [{tool: mcp, args: {server: a, tool: b, list: tools}}]",
          "the tool mcp takes one of 'tool', 'resource', 'prompt' and 'list'", 1, 24 },
        { "do: [{tool: null, args: {a: 1}, approval: {ask: b}}]",
          "a gate has either 'args' or 'approval.ask'", 1, 49 },
        { "do: [{wait: {signal: s, then: x}}]",
          "unknown key 'wait.then'; known here: timer, until, signal, value", 1, 25 },
        { "do: [{select: [{signal: s, then: [{tool: x}]}]}]",
          "unknown key 'select.then'; did you mean 'do'? known here: ", 1, 28 },
        { "steps: {a: {select: [{signal: s, then: a, note: b}]}}", "unknown key 'select.note'", 1,
          43 },
        { "steps: {a: {tool: x, branch: [{if: 'true', than: a, then: a}]}}",
          "unknown key 'branch.than'; did you mean 'then'? known here: if, then", 1, 44 },
        { "do: [{spawn: {definition: d, inputs: {}}}]",
          "unknown key 'spawn.inputs'; did you mean 'input'? known here: definition, input, "
          "on_parent_end",
          1, 30 },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct finding *finding = expect_refused(&t->scope, bad[i].text, bad[i].part);

        EXPECT_EQ(finding->line, bad[i].line);
        EXPECT_EQ(finding->column, bad[i].column);
    }
}

TEST(flow_compile, a_key_that_begins_with_x_is_free_everywhere)
{
    static const char *const texts[] = {
        "x-owner: {team: a}\nsignals: {go: {buffer: true, x-a: 1}}\ncancel: {not_from: [a], x-a: 1}\n"
        "steps: {a: {tool: x, x-a: 1, retry: {max: 2, x-a: 1, backoff: {initial: 1s, x-a: 1}},"
        " branch: [{if: 'true', then: b, x-a: 1}]},\n"
        " b: {select: [{signal: s, then: c, x-a: 1}]}, c: {wait: {timer: 1s, x-a: 1}, next: d},\n"
        " d: {tool: null, approval: {by: [ann], x-a: 1}, next: e},\n"
        " e: {spawn: {definition: f, x-a: 1}, done: true}}",
        "x-a: 1\ntry: [{do: [{tool: x, x-a: 1}], x-a: 1}]",
        "x-a: 1\nstart: {tool: x, done: true}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct findings findings = { 0 };
        const struct definition *definition = rig_compile(&t->scope, texts[i], &findings);

        EXPECT_EQ(findings.count, 0);
        EXPECT(!strstr(arena_str(&t->scope.arena, definition->plan_text).data, "x-a"));
    }
}

TEST(flow_compile, in_a_bare_map_an_object_is_a_step_whatever_it_is_called)
{
    expect_plan_has(&t->scope, "start: {tool: x, next: x-ray}\nx-ray: {tool: y, done: true}",
                    "{\"name\":\"x-ray\",\"tool\":\"y\"");
}

/* ---- Input ------------------------------------------------------------------------------ */

#define WITH_INPUT "input: {type: object, properties: {topic: {type: string}, who: {}}}\n"

TEST(flow_compile, the_schema_of_the_input_is_part_of_the_definition)
{
    const struct definition *definition =
        rig_compile(&t->scope, WITH_INPUT "do: [{tool: x, args: {q: '{{input.topic}}'}}]", NULL);

    EXPECT_STR(definition->input_text,
               "{\"type\":\"object\",\"properties\":{\"topic\":{\"type\":\"string\"},\"who\":{}}}");
    EXPECT(rig_compile(&t->scope, "do: [{tool: x}]", NULL)->input_text.data == NULL);
    expect_refused(&t->scope, "input: {typ: object}\ndo: [{tool: x}]",
                   "unknown keyword 'typ' of an input's schema; did you mean 'type'?");
    expect_refused(&t->scope, "input: text\ndo: [{tool: x}]", "expected a schema");
}

TEST(flow_compile, with_a_schema_a_template_path_that_it_lacks_is_an_error)
{
    const struct finding *finding;

    finding = expect_refused(
        &t->scope, WITH_INPUT "do:\n  - {tool: x, args: {q: '{{input.topci}}'}}\n",
        "step 'do.0': {{input.topci}}: the schema under 'input' has no such path; did you mean "
        "'topic'?");
    EXPECT_EQ(finding->line, 3);
    expect_refused(&t->scope, WITH_INPUT "do: [{tool: x, args: {q: '{{input.topic.a}}'}}]",
                   "{{input.topic.a}}: the schema under 'input' has no such path");
    expect_refused(&t->scope, WITH_INPUT "do: [{tool: x}]\noutput: '{{input.b}}'",
                   "{{input.b}}: the schema under 'input' has no such path; add it");
    rig_compile(&t->scope, WITH_INPUT "do: [{tool: x, args: {q: '{{input.who.name}} {{input}}'}}]",
                NULL);
    rig_compile(&t->scope, "do: [{tool: x, args: {q: '{{input.anything}}'}}]", NULL);
}

TEST(flow_compile, a_slip_in_a_template_path_is_looked_for_among_the_members_of_what_precedes_it)
{
    static const char schema[] = "input: {type: object, properties: {who: {type: object, properties: "
                                 "{name: {}, mail: {}}}, list: {type: array, items: {type: object, "
                                 "properties: {price: {}}}}}}\n";
    static const char *const slips[][2] = {
        { "{{input.who.nme}}", "did you mean 'name'?" },
        { "{{input.list.0.prize}}", "did you mean 'price'?" },
        { "{{input.hwo.name}}", "did you mean 'who'?" },
        { "{{input.who.zzzz}}", "add it to its 'properties'" },
    };

    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
        char text[512];

        snprintf(text, sizeof text, "%sdo: [{tool: x, args: {q: '%s'}}]", schema, slips[i][0]);
        expect_refused(&t->scope, text, slips[i][1]);
    }
}

TEST(flow_compile, in_a_bare_map_input_is_a_step)
{
    expect_plan_has(&t->scope, "start: {tool: x, next: input}\ninput: {tool: y, done: true}",
                    "{\"name\":\"input\",\"tool\":\"y\"");
}

/* ---- Gates ------------------------------------------------------------------------------ */

TEST(flow_compile, a_tool_without_a_value_is_no_gate_and_is_refused)
{
    const struct finding *finding;

    finding = expect_refused(&t->scope, "steps:\n  a:\n    tool:\n    done: true\n",
                             "step 'a': 'tool' has no value; name a tool, or write 'tool: null' or "
                             "'approval: {}' for a gate");
    EXPECT_EQ(finding->line, 3);
    EXPECT_EQ(finding->column, 5);
    expect_refused(&t->scope, "do: [{action: , payload: {}}]", "step 'do.0': 'action' has no value");
    expect_plan_has(&t->scope, "do: [{tool: null}]", "\"kind\":\"gate\"");
    expect_plan_has(&t->scope, "do: [{tool: ~}]", "\"kind\":\"gate\"");
    expect_plan_has(&t->scope, "{\"do\":[{\"tool\":null}]}", "\"kind\":\"gate\"");
}

TEST(flow_compile, approval_alone_makes_a_gate)
{
    expect_plan_has(&t->scope, "steps: {a: {approval: {by: [ann, bob], count: 2}, done: true}}",
                    "{\"name\":\"a\",\"kind\":\"gate\",\"args\":{},\"max\":1,"
                    "\"backoff\":[],\"idempotent\":true,\"by\":[\"ann\",\"bob\"],\"count\":2}");
    expect_plan_has(&t->scope, "do: [{approval: {}}]", "\"kind\":\"gate\"");
    expect_refused(&t->scope, "do: [{approval: }]",
                   "step 'do.0': 'approval' must be {by, count}, found no value; write {} if "
                   "anyone may approve");
    expect_refused(&t->scope, "do: [{approval: null}]", "found null; write {} if anyone may");
    expect_refused(&t->scope, "do: [{approval: {}, external: true}]", "only a gate");
    expect_refused(&t->scope, "do: [{approval: {}, tool: x}]", "only a gate");
    expect_refused(&t->scope, "do: [{approval: {}, wait: {timer: 1s}}]", "only a gate");
}

/* ---- Ways on --------------------------------------------------------------------------- */

TEST(flow_compile, b11_a_step_has_exactly_one_way_on_and_it_leads_somewhere)
{
    expect_refused(&t->scope, "steps: {x: {tool: log}}", "step 'x': no way on");
    expect_refused(&t->scope, "steps: {x: {tool: log, done: false}}", "no way on");
    expect_refused(&t->scope, "steps: {x: {tool: log, done: true, next: x}}",
                   "already says what follows");
    expect_refused(&t->scope, "steps: {x: {tool: log, done: 1}}", "must be true or false");
    expect_refused(&t->scope, "steps: {x: {tool: log, next: 1}}", "'next' must name a step");
    expect_refused(&t->scope, "steps: {x: {tool: log, next: nowhere}}", "'nowhere'");
    expect_refused(&t->scope, "do: [{tool: log, next: a}]", "belongs to 'steps'");
}

TEST(flow_compile, a_step_that_no_way_leads_to_and_a_cycle_without_a_wait_are_warnings)
{
    expect_warning(&t->scope, "steps: {a: {tool: x, done: true}, b: {tool: x, done: true}}",
                   "step 'b': no way leads here");
    expect_warning(&t->scope, "steps: {a: {tool: x, next: b}, b: {tool: x, next: a}}",
                   "step 'a': a cycle without a wait leads through it");
    expect_warning(&t->scope, "steps: {a: {tool: x, next: a}}", "cycle without a wait");
    expect_warning(
        &t->scope,
        "steps: {a: {tool: x, next: c}, b: {tool: x, done: true},"
        " c: {tool: x, branch: [{if: 'result == 1', then: b}, {if: 'result == 2', then: c}]}}",
        "step 'c': a cycle without a wait leads through it");
}

TEST(flow_compile, a_cycle_without_a_wait_is_valid_with_a_warning_in_every_form)
{
    expect_warning(&t->scope, "steps: {a: {tool: set, args: {}, next: b}, b: {tool: log, next: a}}",
                   "cycle without a wait");
    expect_warning(&t->scope,
                   "steps: {a: {tool: set, branch: [{if: 'result.go', then: a}, {if: 'true', then: "
                   "b}]}, b: {tool: set, done: true}}",
                   "cycle without a wait");
    expect_warning(&t->scope,
                   "steps: {a: {tool: set, parallel: [b, c]}, b: {tool: set, join: a}, c: {tool: "
                   "set, join: a}}",
                   "cycle without a wait");
    expect_warning(&t->scope, "name: me\ndo: [{spawn: {definition: me}}]", "spawns the flow itself");
    expect_warning(&t->scope,
                   "name: me\nsteps: {a: {tool: set, next: b}, b: {spawn: {definition: me@2}, done: "
                   "true}}",
                   "a cycle without a wait");
    expect_warning(&t->scope, "name: me\nspawn: {definition: me}", "spawns the flow itself");
}

TEST(flow_compile, a_spawn_of_itself_behind_a_wait_and_of_another_are_no_findings)
{
    static const char *const texts[] = {
        "name: me\ndo: [{wait: {timer: 1h}}, {spawn: {definition: me}}]",
        "name: me\ndo: [{action: sleep, payload: {for: 1h}}, {spawn: {definition: me}}]",
        "name: me\ndo: [{spawn: {definition: meet}}]",
        "do: [{spawn: {definition: me}}]",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct findings findings = { 0 };

        (void)rig_compile(&t->scope, texts[i], &findings);
        EXPECT_EQ(findings.count, 0);
    }
}

TEST(flow_compile, a_log_without_a_message_is_a_warning)
{
    struct findings findings = { 0 };

    expect_warning(&t->scope, "do: [{action: log, payload: a}]",
                   "step 'do.0': the built-in log takes {message: TEXT}, and fails with a string");
    expect_warning(&t->scope, "do: [{tool: log}]", "and fails with no message");
    expect_warning(&t->scope, "do: [{tool: log, args: {text: a}}]", "and fails with no message");
    rig_compile(&t->scope,
                "do: [{tool: log, args: {message: a}}, {action: log, payload: '{{input}}'},"
                " {tool: logs}]",
                &findings);
    EXPECT_EQ(findings.count, 0);
}

TEST(flow_compile, a_cycle_with_a_sleep_in_it_is_no_finding)
{
    struct findings findings = { 0 };

    rig_compile(&t->scope,
                "steps: {a: {tool: x, next: b}, b: {tool: sleep, args: {for: 1h}, next: a}}",
                &findings);
    EXPECT_EQ(findings.count, 0);
}

/* ---- Names, tools, args ------------------------------------------------------------------ */

TEST(flow_compile, names_are_unique_not_blank_not_too_long_and_not_the_engines)
{
    char text[400], name[LIMIT_NAME + 2];

    expect_refused(&t->scope, "steps: {a: {name: b, tool: x, next: b}, b: {tool: x, done: true}}",
                   "step 'b': another step has this name");
    expect_refused(&t->scope, "steps: {a: {name: ' ', tool: x, done: true}}", "not blank");
    expect_refused(&t->scope, "steps: {'~retry': {tool: x, done: true}}", "without '~'");
    expect_refused(&t->scope, "steps: {a: {name: 7, tool: x, done: true}}", "must be a string");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    (void)snprintf(text, sizeof text, "do: [{tool: x, name: %s}]", name);
    expect_refused(&t->scope, text, "1..128 bytes");
}

TEST(flow_compile, tool_and_action_are_the_same_thing_and_only_one_may_be_given)
{
    expect_refused(&t->scope, "steps: {a: {tool: x, action: x, done: true}}", "keep one");
    expect_refused(&t->scope, "steps: {a: {tool: x, args: {}, payload: {}, done: true}}",
                   "keep one");
    expect_refused(&t->scope, "steps: {a: {done: true}}", "step 'a': the step does nothing");
    expect_refused(&t->scope, "steps: {a: {tool: 'a b', done: true}}", "must name a tool");
    expect_refused(&t->scope, "steps: {a: {tool: x, args: [1], done: true}}", "must be an object");
    rig_compile(&t->scope, "steps: {a: {action: x, payload: {}, done: true}}", NULL);
    rig_compile(&t->scope, "steps: {a: {action: x, done: true}}", NULL);
}

TEST(flow_compile, c2_a_payload_is_any_json)
{
    rig_compile(&t->scope, "do: [{action: x, payload: 5}, {action: x, payload: [1, '{{input}}']}]",
                NULL);
    rig_compile(&t->scope,
                "do: [{action: x, payload: '{{input.all}}'}, {action: x, payload: null}]", NULL);
}

TEST(flow_compile, c2_an_action_of_a_tree_needs_its_payload)
{
    expect_refused(&t->scope, "do: [{action: x}]", "needs its 'payload'");
    expect_refused(&t->scope, "do: [{payload: {}}]", "the step does nothing");
    expect_refused(&t->scope, "do: [1]", "must be an object");
    expect_refused(&t->scope, "do: {a: 1}", "must be an array");
    expect_refused(&t->scope, "steps: {}", "at least one step");
    expect_refused(&t->scope, "steps: []", "must be an object of steps");
}

/* ---- Retries, times ------------------------------------------------------------------------ */

static void expect_retry(struct scope *scope, const char *retry, const char *printed)
{
    char text[300];

    (void)snprintf(text, sizeof text, "steps: {a: {tool: x, done: true, %s}}", retry);
    EXPECT_HAS(rig_compile(scope, text, NULL)->plan_text.data, printed);
}

TEST(flow_compile, b30_x8_a_backoff_is_a_list_or_grows_by_a_factor)
{
    expect_retry(&t->scope, "retry: {max: 5}", "\"max\":5,\"backoff\":[30000,120000,300000]");
    expect_retry(&t->scope, "retry: {max: 1}", "\"max\":1,\"backoff\":[]");
    expect_retry(&t->scope, "retry: {max: 2, backoff: [1s, 500ms]}", "\"backoff\":[1000,500]");
    expect_retry(&t->scope, "retry: {max: 6, backoff: {initial: 1s, factor: 3, max: 20s}}",
                 "\"backoff\":[1000,3000,9000,20000]");
    expect_retry(&t->scope, "retry: {max: 4, backoff: {initial: 1s, factor: 1.5}}",
                 "\"backoff\":[1000,1500,2250]");
    expect_retry(&t->scope, "retry: {max: 4, backoff: {initial: 1s}}",
                 "\"backoff\":[1000,2000,4000]");
    expect_retry(&t->scope, "retry: {max: 900, backoff: {initial: 1s, factor: 1}}",
                 "\"backoff\":[1000]");
    expect_retry(&t->scope, "retry: {max: 9, backoff: {initial: 36500d, factor: 1000}}",
                 "\"backoff\":[3153600000000,");
    expect_refused(&t->scope, "steps: {a: {tool: x, timeout: 0s, done: true}}", "more than 0");
    expect_retry(&t->scope, "timeout: 5m, idempotent: false",
                 "\"timeout\":300000,\"idempotent\":false,\"once\":true");
    EXPECT(!strstr(rig_compile(&t->scope, "do: [{tool: x}]", NULL)->plan_text.data, "once"));
}

TEST(flow_compile, a_retry_or_a_time_that_has_no_sense_is_refused)
{
    static const char *const bad[] = {
        "retry: 3",
        "retry: {max: 0}",
        "retry: {max: 1001}",
        "retry: {max: 2.5}",
        "retry: {max: '3'}",
        "retry: {max: 99999999999999999999}",
        "retry: {backoff: []}",
        "retry: {backoff: [30]}",
        "retry: {backoff: 30s}",
        "retry: {backoff: [30s, soon]}",
        "retry: {backoff: {factor: 2}}",
        "retry: {backoff: {initial: 1s, factor: 0.5}}",
        "retry: {backoff: {initial: 1s, factor: null}}",
        "retry: {backoff: {initial: 1s, factor: 1.0001}}",
        "retry: {backoff: {initial: 1s, factor: 1e3}}",
        "retry: {backoff: {initial: 1s, factor: 1001}}",
        "retry: {backoff: {initial: 1s, max: x}}",
        "timeout: 30",
        "timeout: -1s",
        "timeout: null",
        "idempotent: 1",
    };
    char text[300];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(text, sizeof text, "steps: {a: {tool: x, done: true, %s}}", bad[i]);
        expect_refused(&t->scope, text, "step 'a': ");
    }
    expect_refused(&t->scope, "do: [{tool: x, retry: {times: 3}}]", "'retry.times'");
}

TEST(flow_compile, sleep_needs_a_duration_or_a_template_that_will_bring_one)
{
    expect_refused(&t->scope, "do: [{tool: sleep}]", "sleep needs {for: DURATION}");
    expect_refused(&t->scope, "do: [{tool: sleep, args: {for: 5}}]", "sleep needs");
    expect_refused(&t->scope, "do: [{tool: sleep, args: {for: soon}}]", "sleep needs");
    expect_refused(&t->scope, "do: [{tool: sleep, args: {for: '{{later}}'}}]", "sleep needs");
    expect_warning(&t->scope, "do: [{tool: sleep, args: {for: 5s, why: tired}}]", "'why'");
    rig_compile(&t->scope, "do: [{tool: sleep, args: {for: '{{input.delay}}'}}]", NULL);
}

TEST(flow_compile, b21_a_template_that_names_no_step_is_refused_and_a_strangers_is_left_alone)
{
    expect_refused(&t->scope, "do: [{tool: x, args: {a: [{b: '{{steps.y.result}}'}]}}]",
                   "names no result");
    expect_refused(&t->scope, "do: [{tool: x, name: y, args: {a: '{{steps.y.error}}'}}]",
                   "names no result");
    expect_refused(&t->scope, "do: [{tool: x, name: y, args: {a: '{{steps.y.results}}'}}]",
                   "names no result");
    expect_refused(&t->scope, "do: [{tool: x, args: {a: '{{steps}}'}}]", "names no result");
    expect_warning(&t->scope, "do: [{tool: exec, args: {argv: [docker, '{{.Names}}']}}]",
                   "{{.Names}} stays as it is");
    rig_compile(&t->scope, "do: [{tool: x, args: {a: '{{steps.do.0.result.x}}'}}]", NULL);
}

TEST(flow_compile, a_template_that_names_no_step_says_so_and_suggests_one)
{
    expect_refused(&t->scope, "do: [{tool: x, name: search, args: {a: '{{steps.serch.result.x}}'}}]",
                   "{{steps.serch.result.x}} names no result: there is no step 'serch'; did you mean "
                   "'search'?");
    expect_refused(&t->scope, "do: [{tool: x, name: y, args: {a: '{{steps.nope.result}}'}}]",
                   "names no result: there is no step 'nope'");
}

TEST(flow_compile, a_path_with_an_empty_part_or_a_default_is_warned_of)
{
    expect_warning(&t->scope, "do: [{tool: x, args: {a: '{{input.}}'}}]",
                   "a path has a name before and after each dot");
    expect_warning(&t->scope, "do: [{tool: x, args: {a: '{{context..x}}'}}]",
                   "a path has a name before and after each dot");
    expect_warning(&t->scope, "do: [{tool: x, args: {a: '{{input.x:default}}'}}]",
                   "a template has no default");
}

/* ---- Hostile documents ------------------------------------------------------------------------
 */

TEST(flow_compile, all_errors_are_collected_and_the_first_is_the_scopes)
{
    struct findings findings = { 0 };
    struct definition *definition = NULL;
    struct node *document = NULL;

    EXPECT_OK(
        node_read(&t->scope, STR("steps:\n  a: {tool: 1, next: b}\n  c: {tool: x}\n"), &document));
    EXPECT(flow_compile(&t->scope, document, &findings, &definition) == PAWL_INVALID_DEFINITION);
    EXPECT_EQ(findings.count, 3);
    EXPECT_HAS(t->scope.error.message, "line 2, column ");
    EXPECT_HAS(t->scope.error.message, "step 'a': 'tool' must name a tool");
}

static str many_steps(struct scope *scope, uint32_t count, const char *tail)
{
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, 0);
    buf_str(&buf, STR("{\"steps\":{"));
    for (uint32_t i = 0; i < count; i++)
        buf_fmt(&buf, "%s\"s%u\":{\"tool\":\"x\",\"next\":\"s%u\"%s}", i > 0 ? "," : "", i,
                (i + 1) % count, tail);
    buf_str(&buf, STR("}}"));
    text = buf_keep(&buf, &scope->arena);
    buf_fini(&buf);
    return text;
}

TEST(flow_compile, ten_thousand_steps_are_the_most_and_are_compiled_in_order)
{
    struct definition *definition = NULL;
    struct node *document = NULL;

    EXPECT_OK(node_read_json(&t->scope, many_steps(&t->scope, LIMIT_STEPS, ""), &document));
    EXPECT_OK(flow_compile(&t->scope, document, NULL, &definition));
    EXPECT_STR(flow_step_name(definition, LIMIT_STEPS - 1), "s9999");
    scope_clear(&t->scope);
    EXPECT_OK(node_read_json(&t->scope, many_steps(&t->scope, LIMIT_STEPS + 1, ""), &document));
    EXPECT(flow_compile(&t->scope, document, NULL, &definition) == PAWL_INVALID_DEFINITION);
    EXPECT_HAS(t->scope.error.message, "more than 10000 steps");
}

TEST(flow_compile, a_document_full_of_mistakes_brings_a_bounded_number_of_findings)
{
    struct findings findings = { 0 };
    struct definition *definition = NULL;
    struct node *document = NULL;

    EXPECT_OK(
        node_read_json(&t->scope, many_steps(&t->scope, 5000, ",\"a\":1,\"payload\":\"{{.x}}\""),
                       &document));
    EXPECT(flow_compile(&t->scope, document, &findings, &definition) == PAWL_INVALID_DEFINITION);
    EXPECT_EQ(findings.count, 200);
}

TEST(flow_compile, a_name_of_a_megabyte_does_not_hide_what_a_message_has_to_say)
{
    struct definition *definition = NULL;
    struct node *document = NULL;
    struct buf buf;

    buf_init(&buf, &heap_libc, 0);
    buf_str(&buf, STR("{\"do\":[{\"name\":\""));
    for (int i = 0; i < 300000; i++)
        buf_str(&buf, STR("\xE2\x82\xAC"));
    buf_str(&buf, STR("\",\"tool\":\"x\"}]}"));
    EXPECT_OK(node_read_json(&t->scope, buf_view(&buf), &document));
    EXPECT(flow_compile(&t->scope, document, NULL, &definition) == PAWL_INVALID_DEFINITION);
    EXPECT_HAS(t->scope.error.message, "not blank");
    EXPECT(str_is_utf8(str_of(t->scope.error.message), false));
    buf_fini(&buf);
}

/* `count` groups inside each other, with one leaf and its payload: 2 * count + 2 levels of JSON. */
static pawl_status read_nested(struct scope *scope, const char *open, const char *close, int count,
                               struct node **out)
{
    struct buf buf;
    pawl_status status;

    buf_init(&buf, &heap_libc, 0);
    for (int i = 0; i < count; i++)
        buf_str(&buf, str_of(open));
    buf_str(&buf, STR("{\"action\":\"x\",\"payload\":{}}"));
    for (int i = 0; i < count; i++)
        buf_str(&buf, str_of(close));
    status = node_read_json(scope, buf_keep(&buf, &scope->arena), out);
    buf_fini(&buf);
    return status;
}

static void expect_loads(struct scope *scope, const struct definition *definition)
{
    struct definition *loaded = NULL;
    struct buf text;

    buf_init(&text, &heap_libc, 0);
    definition_print(definition, &text);
    EXPECT_OK(definition_load(scope, buf_view(&text), &loaded));
    EXPECT_OK(flow_behavior.prepare(loaded, scope));
    EXPECT_STR(flow_step_name(loaded, 0), flow_step_name(definition, 0).data);
    buf_fini(&text);
}

TEST(flow_compile, trees_nest_as_deep_as_json_whatever_the_names)
{
    static const char *const groups[][3] = {
        { "{\"do\":[", "]}", "do.0.do.0" },
        { "{\"dopar\":[", "]}", "dopar.0.dopar.0" },
        { "{\"try\":[", "]}", "try.0.try.0" },
        { "{\"try\":[],\"rescue\":[],\"finally\":[", "]}", "finally.0.finally.0" },
    };

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        struct definition *definition = NULL;
        struct node *document = NULL;

        EXPECT_OK(read_nested(&t->scope, groups[i][0], groups[i][1], 31, &document));
        EXPECT_OK(flow_compile(&t->scope, document, NULL, &definition));
        EXPECT(str_starts(flow_step_name(definition, 0), str_of(groups[i][2])));
        expect_loads(&t->scope, definition);
        for (int count = 32; count <= 640; count *= 20) {
            EXPECT_EQ(read_nested(&t->scope, groups[i][0], groups[i][1], count, &document),
                      PAWL_INVALID_REQUEST);
            EXPECT_HAS(t->scope.error.message, "at most 64 levels of nesting");
        }
    }
}

TEST(flow_compile, a_select_in_a_select_nests_as_deep_as_json)
{
    struct definition *definition = NULL;
    struct node *document = NULL;

    EXPECT_OK(read_nested(&t->scope, "{\"do\":[{\"select\":[{\"signal\":\"a\",\"do\":[", "]}]}]}",
                          10, &document));
    EXPECT_OK(flow_compile(&t->scope, document, NULL, &definition));
    expect_loads(&t->scope, definition);
}

/* What a tool is given lies deeper in the compiled text than in the document. */
TEST(flow_compile, args_nest_as_deep_as_json)
{
    struct definition *definition = NULL;
    struct node *document = NULL;
    struct buf buf;

    buf_init(&buf, &heap_libc, 0);
    buf_str(&buf, STR("{\"do\":[{\"action\":\"x\",\"payload\":"));
    for (int i = 0; i < 61; i++)
        buf_byte(&buf, '[');
    for (int i = 0; i < 61; i++)
        buf_byte(&buf, ']');
    buf_str(&buf, STR("}]}"));
    EXPECT_OK(node_read_json(&t->scope, buf_view(&buf), &document));
    EXPECT_OK(flow_compile(&t->scope, document, NULL, &definition));
    expect_loads(&t->scope, definition);
    buf_fini(&buf);
}

/* ---- The printed plan
 * ---------------------------------------------------------------------------- */

TEST(flow_compile, a_printed_definition_loads_and_prints_again_to_the_same_bytes)
{
    struct definition *compiled =
        rig_compile(&t->scope, "do: [{tool: x, args: {a: '{{input}}', b: \"\\u20ac\"}}]", NULL);
    struct definition *loaded = NULL;
    struct buf first, second;

    buf_init(&first, &heap_libc, 0);
    buf_init(&second, &heap_libc, 0);
    definition_print(compiled, &first);
    EXPECT_OK(definition_load(&t->scope, buf_view(&first), &loaded));
    EXPECT_OK(flow_behavior.prepare(loaded, &t->scope));
    definition_print(loaded, &second);
    EXPECT_TEXT(buf_text(&second), buf_text(&first));
    EXPECT_STR(flow_step_name(loaded, 0), "do.0");
    buf_fini(&first);
    buf_fini(&second);
}

TEST(flow_compile, a_plan_cut_or_changed_at_any_byte_is_refused_or_read_but_never_crashes)
{
    struct definition *definition = rig_compile(
        &t->scope, "steps: {a: {tool: x, args: {b: '{{steps.a.result}}'}, next: a}}", NULL);
    str whole = definition->plan_text;
    char *text = arena_text(&t->scope.arena, whole);
    struct scope scope;

    scope_init(&scope, &heap_libc, 0);
    for (size_t i = 0; i < whole.size; i++) {
        definition->plan_text = (str){ text, i };
        EXPECT(flow_behavior.prepare(definition, &scope) == PAWL_STORAGE_FAILURE);
        definition->plan_text = (str){ text, whole.size };
        for (const char *byte = "9-\"x]{"; *byte; byte++) {
            text[i] = *byte;
            (void)flow_behavior.prepare(definition, &scope);
            scope_clear(&scope);
        }
        text[i] = whole.data[i];
    }
    scope_fini(&scope);
}

TEST(compile, an_expression_is_compiled_when_the_definition_is)
{
    static const char *const cases[][2] = {
        { "do: [{tool: x, args: {v: '{{= input. }}'}}]",
          "'input.' is not an expression: expression:1:" },
        { "do: [{tool: x, args: {v: '{{= a && b }}'}}]", "write 'and' for &&" },
        { "do: [{tool: x, args: {v: '{{= }}'}}]", "{{= }} is empty" },
        { "do: [{tool: x, args: {v: '{{= 1 }'}}]",
          "{{= 1 }: expected }} at the end of the expression" },
        { "do: [{tool: x, args: {v: '{{= steps.no.result }}'}}]",
          "the expression names steps.no, and there is no such step" },
        { "do: [{tool: x}]\noutput: '{{= 1 + }}'", "'output': '1 +' is not an expression" },
    };
    struct buf many;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(&t->scope, cases[i][0], cases[i][1]);
    buf_init(&many, &heap_libc, 0);
    buf_fmt(&many, "do: [{tool: x, args: {v: '");
    for (uint32_t i = 0; i <= LIMIT_STEP_EXPRESSIONS; i++)
        buf_fmt(&many, "{{=1}}");
    buf_fmt(&many, "'}}]");
    expect_refused(&t->scope, buf_text(&many), "more than 64 expressions in one step");
    buf_fini(&many);
    expect_warning(&t->scope, "do: [{tool: x, args: {v: '{{= imput.x }}'}}]",
                   "the expression names 'imput', which is always nil; did you mean 'input'?");
    expect_warning(&t->scope, "do: [{tool: x, args: {v: '{{= result }}'}}]",
                   "the expression names 'result', which is always nil");
    expect_warning(&t->scope, "do: [{tool: x, args: {v: '{{input.x | upper}}'}}]",
                   "write an expression: {{= ... }}");
}
