/* plan_next.c - pawl_next_steps(): seed 001's next_steps. */
#include "lib/test.h"
#include <pawl.h>

#define FLOW                                                                                       \
    "steps:\n"                                                                                     \
    "  start: {name: search, tool: find, args: {q: '{{input.topic}}'}, next: check}\n"             \
    "  check: {tool: look, augment: {seen: n}, branch: [{if: 'result.n > 3', then: fan}, {if: "    \
    "'result == \"no\"', then: sorry}]}\n"                                                         \
    "  fan: {tool: split, parallel: [a, b, gate]}\n"                                               \
    "  a: {tool: x, args: {n: '{{context.seen}}', r: '{{steps.search.result}}'}, join: end}\n"     \
    "  b: {tool: x, join: end}\n"                                                                  \
    "  gate: {tool: null, join: end}\n"                                                            \
    "  end: {tool: x, done: true}\n"                                                               \
    "  sorry: {tool: x, done: true}\n"

static char *next_of(const char *flow, pawl_next_args args)
{
    char *next = NULL;
    pawl_error error;

    if (pawl_next_steps(flow, &args, &next, &error) != PAWL_OK)
        test_fail(__FILE__, __LINE__, "%s", error.message);
    return next;
}

static void expect_next(const char *flow, pawl_next_args args, const char *wanted)
{
    char *next = next_of(flow, args);

    EXPECT_TEXT(next, wanted);
    pawl_plan_free(next);
}

static void expect_refused(const char *flow, pawl_next_args args, pawl_status status,
                           const char *words)
{
    char *next = NULL;
    pawl_error error;

    EXPECT_EQ(pawl_next_steps(flow, &args, &next, &error), status);
    EXPECT(next == NULL);
    EXPECT_HAS(error.message, words);
}

#define STEP(name, tool, args)                                                                     \
    "{\"name\":\"" name "\",\"kind\":\"tool\",\"tool\":\"" tool "\",\"args\":" args "}"

TEST(plan_next, b18_a_flow_begins_with_its_first_step)
{
    expect_next(FLOW, (pawl_next_args){ .input = "{\"topic\":\"pawls\"}" },
                "{\"status\":\"pending\",\"steps\":[" STEP("search", "find", "{\"q\":\"pawls\"}")
                "],\"joined\":[],\"context\":{}}");
}

TEST(plan_next, b12_b18_next_is_one_step_found_by_its_key_or_name)
{
    static const char wanted[] = "{\"status\":\"pending\",\"steps\":[" STEP(
        "check", "look", "{}") "],\"joined\":[],\"context\":{}}";

    expect_next(FLOW, (pawl_next_args){ .step = "start" }, wanted);
    expect_next(FLOW, (pawl_next_args){ .step = "search" }, wanted);
}

TEST(plan_next, b13_b18_a_branch_is_the_first_that_holds)
{
    expect_next(FLOW, (pawl_next_args){ .step = "check", .result = "{\"n\":4}" },
                "{\"status\":\"pending\",\"steps\":[" STEP("fan", "split", "{}")
                "],\"joined\":[],\"context\":{\"seen\":4}}");
    expect_next(FLOW, (pawl_next_args){ .step = "check", .result = "{\"n\":1}" },
                "{\"status\":\"failure\",\"steps\":[],\"joined\":[],\"context\":{\"seen\":1},"
                "\"error\":\"no-branch-matched\"}");
}

TEST(plan_next, b14_b18_parallel_is_all_of_them)
{
    expect_next(
        FLOW,
        (pawl_next_args){ .step = "fan", .context = "{\"seen\":4}", .results = "{\"search\":[7]}" },
        "{\"status\":\"pending\",\"steps\":[" STEP("a", "x", "{\"n\":4,\"r\":[7]}") "," STEP(
            "b", "x", "{}") ",{\"name\":\"gate\",\"kind\":\"gate\",\"tool\":null,\"args\":{}}],"
                            "\"joined\":[],\"context\":{\"seen\":4}}");
}

TEST(plan_next, b15_b18_a_join_begins_once_when_nobody_is_under_way_who_can_arrive)
{
    expect_next(FLOW, (pawl_next_args){ .step = "a", .live = "[\"b\",\"gate\"]" },
                "{\"status\":\"pending\",\"steps\":[],\"joined\":[\"end\"],\"context\":{}}");
    expect_next(FLOW, (pawl_next_args){ .step = "gate", .live = "[\"b\"]", .joined = "[\"end\"]" },
                "{\"status\":\"pending\",\"steps\":[],\"joined\":[\"end\"],\"context\":{}}");
    expect_next(FLOW, (pawl_next_args){ .step = "b", .joined = "[\"end\"]" },
                "{\"status\":\"pending\",\"steps\":[" STEP("end", "x", "{}")
                "],\"joined\":[],\"context\":{}}");
}

TEST(plan_next, b16_b18_done_is_the_end)
{
    expect_next(FLOW, (pawl_next_args){ .step = "end", .result = "{\"all\":1}" },
                "{\"status\":\"success\",\"steps\":[],\"joined\":[],\"context\":{},\"result\":"
                "{\"all\":1}}");
}

TEST(plan_next, a_select_goes_on_with_the_arm_of_its_result)
{
    static const char flow[] =
        "start: {select: [{signal: paid, then: a}, {timer: 3d, then: b}]}\n"
        "a: {tool: x, done: true}\nb: {wait: {timer: 5s}, done: true}\n";

    expect_next(flow, (pawl_next_args){ .step = "start", .result = "{\"arm\":1}" },
                "{\"status\":\"pending\",\"steps\":[{\"name\":\"b\",\"kind\":\"wait\",\"tool\":null,"
                "\"args\":{\"arms\":[{\"timer\":\"5s\"}]}}],\"joined\":[],\"context\":{}}");
    expect_refused(flow, (pawl_next_args){ .step = "start", .result = "{\"arm\":2}" },
                   PAWL_INVALID_REQUEST, "expected {\"arm\": 0 to 1}, found 2");
    expect_refused(flow, (pawl_next_args){ .step = "start" }, PAWL_INVALID_REQUEST,
                   "expected {\"arm\": 0 to 1}, found null");
}

TEST(plan_next, what_makes_no_sense_is_named)
{
    expect_refused(FLOW, (pawl_next_args){ .step = "absent" }, PAWL_INVALID_REQUEST,
                   "has no step 'absent'");
    expect_refused(FLOW, (pawl_next_args){ .step = "a", .live = "[\"z\"]" }, PAWL_INVALID_REQUEST,
                   "has no step 'z'");
    expect_refused(FLOW, (pawl_next_args){ .step = "a", .live = "[1]" }, PAWL_INVALID_REQUEST,
                   "live: expected names of steps");
    expect_refused(FLOW, (pawl_next_args){ .step = "a", .joined = "{}" }, PAWL_INVALID_REQUEST,
                   "joined: expected a list of steps");
    expect_refused(FLOW, (pawl_next_args){ .step = "b", .joined = "[\"b\"]" }, PAWL_INVALID_REQUEST,
                   "joined: expected steps that others join, found 'b'");
    expect_refused(FLOW, (pawl_next_args){ .step = "a", .input = "[]" }, PAWL_INVALID_REQUEST,
                   "input: expected an object");
    expect_refused(FLOW, (pawl_next_args){ .step = "a", .result = "yes" }, PAWL_INVALID_REQUEST,
                   "result: expected JSON, found 'yes'");
    expect_refused("do: [{action: x, payload: {}}]", (pawl_next_args){ .step = "a" },
                   PAWL_INVALID_DEFINITION, "use pawl_plan_make()");
    expect_refused("steps: {}", (pawl_next_args){ 0 }, PAWL_INVALID_DEFINITION, "at least one step");
}
