/* expr_holds.c - expressions: what they see, and that none can do harm. */
#include "base/buf.h"
#include "base/limits.h"
#include "expr/expr.h"
#include "lib/fault.h"
#include "lib/test.h"
#include <stdio.h>

struct values {
    struct scope *scope;
    const char *result; /* JSON */
};

static const struct node *read_json(struct scope *scope, const char *json)
{
    struct node *node = NULL;

    EXPECT_OK(node_read_json(scope, str_of(json), &node));
    return node;
}

static const struct node *find_global(void *context, str name, pawl_status *status)
{
    struct values *values = context;

    (void)status;
    if (str_is(name, "result"))
        return read_json(values->scope, values->result);
    return str_is(name, "input") ? read_json(values->scope, "{\"n\":5,\"s\":\"five\"}") : NULL;
}

static bool find_step(void *context, str name, const struct node **out, pawl_status *status)
{
    struct values *values = context;

    (void)status;
    if (!str_is(name, "a") && !str_is(name, "not-yet"))
        return false;
    *out = str_is(name, "a") ? read_json(values->scope, "{\"b\":[1,2]}") : NULL;
    return true;
}

static pawl_status holds(struct scope *scope, const char *text, const char *result, bool *out)
{
    struct values values = { scope, result };
    struct expr_world world = { find_global, find_step, &values };

    return expr_holds(scope, str_of(text), &world, out);
}

static void expect_holds(struct scope *scope, const char *text, const char *result, bool wanted)
{
    bool is_true = !wanted;

    EXPECT_OK(expr_check(scope, EXPR_CONDITION, str_of(text)));
    if (holds(scope, text, result, &is_true) != PAWL_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", text, scope->error.message);
    if (is_true != wanted)
        test_fail(__FILE__, __LINE__, "%s is %s", text, is_true ? "true" : "false");
}

/* It compiles, and then ends with these words. */
static void expect_fails(struct scope *scope, const char *text, const char *result,
                         const char *words)
{
    bool ignored;

    if (expr_check(scope, EXPR_CONDITION, str_of(text)) != PAWL_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", text, scope->error.message);
    if (holds(scope, text, result, &ignored) != PAWL_INVALID_REQUEST)
        test_fail(__FILE__, __LINE__, "%s was not refused", text);
    EXPECT_HAS(scope->error.message, words);
}

TEST(expr, an_expression_compares_and_calculates)
{
    static const struct {
        const char *text, *result;
        bool wanted;
    } cases[] = {
        { "result > 3", "5", true },
        { "result > 3", "3", false },
        { "(result == 5) and input.n == 5", "5", true },
        { "result.a.b[2] == 'x'", "{\"a\":{\"b\":[1,\"x\"]}}", true },
        { "#result == 3 and result[4] == nil", "[1,null,3]", true },
        { "result == nil", "null", true },
        { "result.missing == nil", "{}", true },
        { "result.x == 0.1", "{\"x\":0.1}", true },
        { "result.x == 9007199254740993", "{\"x\":9007199254740993}", true },
        { "result.big > 1e300", "{\"big\":1e301}", true },
        { "not result", "false", true },
        { "result", "0", true },
        { "steps.a.result.b[1] + steps.a.result.b[2] == 3", "0", true },
        { "steps['not-yet'].result == nil", "0", true },
        { "instance == nil and nosuch == nil", "0", true },
        { "result:upper() == 'ABC' and result:sub(2) == 'bc' and result:len() == 3", "\"aBc\"",
          false },
        { "result:upper() == 'ABC' and result:sub(2) == 'Bc' and result:sub(-1) == 'c'", "\"aBc\"",
          true },
        { "result:lower():find('b') == 2 and not result:find('x')", "\"aBc\"", true },
        { "result:find('.') == nil and result:find('') == 1", "\"abc\"", true },
        { "string.starts(result, 'ab') and result:ends('bc') and not result:ends('abcd')",
          "\"abc\"", true },
        { "string.rep(result, 3) == 'ababab' and ('x'):rep(0) == ''", "\"ab\"", true },
        { "math.floor(result) == 2 and math.ceil(result) == 3 and math.abs(-result) == result",
          "2.5", true },
        { "math.min(3, result, 9) == 2 and math.max(3, 1) == 3", "2", true },
        { "tonumber(result) == 12 and tostring(12) == result and tonumber('x') == nil", "\"12\"",
          true },
        { "type(result) == 'table' and type(result.a) == 'number' and type(nil) == 'nil'",
          "{\"a\":1}", true },
        { "local n = 0; for i, v in ipairs(result) do n = n + i * v end; return n == 14", "[1,2,3]",
          true },
        { "local n = ''; for k, v in pairs(result) do n = n .. k .. v end; return n == 'z1a2m3'",
          "{\"z\":1,\"a\":2,\"m\":3}", true },
        { "  if result then return 1 end", "true", true },
        { "(function() return result end)()", "true", true },
        { "\n  result >= 1\n  and result <= 2 -- in between\n", "1.5", true },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_holds(&t->scope, cases[i].text, cases[i].result, cases[i].wanted);
}

TEST(expr, what_is_no_expression_is_refused_with_its_place)
{
    static const char *const texts[] = {
        "result >", "result > > 3",         "'unfinished",   "a b",     ")",
        "x = 1",    "local x = ; return x", "return return", "\x1bLua", "goto nowhere"
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        EXPECT_EQ(expr_check(&t->scope, EXPR_CONDITION, str_of(texts[i])), PAWL_INVALID_DEFINITION);
        EXPECT_HAS(t->scope.error.message, "condition:");
    }
    EXPECT_EQ(expr_check(&t->scope, EXPR_CONDITION, STR("1 +\n2 +\n)")), PAWL_INVALID_DEFINITION);
    EXPECT_HAS(t->scope.error.message, "condition:3:");
}

TEST(expr, a_mistake_at_run_time_is_told_and_nothing_else_happens)
{
    expect_fails(&t->scope, "result > 3", "\"x\"", "attempt to compare");
    expect_fails(&t->scope, "result.a.b", "{}", "field 'a'");
    expect_fails(&t->scope, "nosuch()", "1", "global 'nosuch'");
    expect_fails(&t->scope, "steps.other.result", "1", "there is no 'other'");
    expect_fails(&t->scope, "(function() result.a = 2 end)()", "{\"a\":1}", "cannot be changed");
    expect_fails(&t->scope, "tostring(result)", "{}", "has no text");
    expect_fails(&t->scope, "'x' .. result == ''", "{}", "concatenate");
    expect_fails(&t->scope, "(function() for k in pairs({}) do end end)()", "1",
                 "expected a value of the flow");
}

TEST(expr, what_could_reach_outside_is_not_there)
{
    static const char *const names[] = {
        "pcall",
        "xpcall",
        "load",
        "loadstring",
        "loadfile",
        "dofile",
        "require",
        "coroutine",
        "os",
        "io",
        "debug",
        "package",
        "error",
        "_G",
        "rawget",
        "rawset",
        "select",
        "getmetatable",
        "setmetatable",
        "next",
        "print",
        "collectgarbage",
        "warn",
        "table",
        "utf8",
        "string.format",
        "string.gsub",
        "string.match",
        "string.gmatch",
        "string.dump",
        "string.pack",
        "string.char",
        "math.random",
        "('').format",
        "('').gsub",
        "('').match",
        "math.randomseed",
        "rawequal",
    };
    char text[100];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int size = snprintf(text, sizeof text, "%s == nil", names[i]);

        EXPECT(size > 0 && (size_t)size < sizeof text);
        expect_holds(&t->scope, text, "1", true);
    }
}

#define OPERATIONS                                                                                 \
    "it takes more than" /* operations, most of them; a few meet the count of bytes first */

/* Each of these would go on for ever, or nearly so. The counts stop them, not a clock. */
TEST(expr, what_would_not_end_is_ended_by_the_count_of_operations)
{
    static const char *const texts[] = {
        "while true do end",
        "(function() while true do end end)()",
        "repeat until false",
        "::again:: goto again", /* begins no expression: see below */
        "for i = 1, 1e15 do end",
        "local function f() return f() end return f()",
        "local s = ('x'):rep(1000) for i = 1, 1e9 do s:upper() end",
        "local s = ('a'):rep(200000) for i = 1, 1e9 do s:find('b') end",
        "local a, b = ('a'):rep(200000), ('a'):rep(199999) .. 'a' while true do c = a == b end",
        "local a, b = ('a'):rep(200000), ('a'):rep(199999) .. 'b' while true do c = a < b end",
        "local a, t = ('a'):rep(200000), {} for i = 1, 1e9 do t[('a'):rep(199999) .. 'a'] = 1 end",
        "for i = 1, 1e9 do local x = result[1000] local y = result[1] end",
        "local function f() return pcall(f) end while true do end",
        "for i = 1, 1e9 do for j, v in ipairs(result) do end end",
    };
    struct buf json;

    buf_init(&json, &heap_libc, 0);
    buf_byte(&json, '[');
    for (int i = 0; i < 1000; i++)
        buf_str(&json, i > 0 ? STR(",1") : STR("1"));
    buf_byte(&json, ']');
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i][0] != ':')
            expect_fails(&t->scope, texts[i], buf_text(&json), OPERATIONS);
    expect_fails(&t->scope, "do ::again:: goto again end", "1", OPERATIONS);
    buf_fini(&json);
}

/* A call copies its arguments, and to Lua that is one operation, however many they are. */
TEST(expr, what_copies_more_and_more_arguments_is_ended_by_the_count_of_operations)
{
    expect_fails(&t->scope, "local function f(...) return f(1, ...) end return f()", "1",
                 "more than 50000 operations");
    expect_fails(&t->scope, "local function f(n) return 1, f(n - 1) end return f(1)", "1",
                 "more than 50000 operations");
    expect_holds(
        &t->scope,
        "local function f(n) return n == 0 and 0 or n + f(n - 1) end return f(150) == 11325", "1",
        true);
}

#define NILS "nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,"

TEST(expr, what_would_eat_all_memory_is_ended_by_the_count_of_bytes)
{
    expect_fails(&t->scope, "local s = 'x' while true do s = s .. s end", "1",
                 "a text of more than");
    expect_fails(&t->scope, "('x'):rep(1e9)", "1", "more than 262144 bytes");
    expect_fails(&t->scope, "('x'):rep(1e6):rep(1e6)", "1", "more than 262144 bytes");
    expect_fails(&t->scope, "('x'):rep(math.floor(2^62))", "1", "more than 262144 bytes");
    expect_fails(&t->scope, "local t = {} for i = 1, 1e9 do t[i] = {" NILS NILS "} end", "1",
                 "bytes of memory");
    expect_fails(&t->scope, "local t = {} for i = 1, 1e9 do t[i] = i .. 'x' .. i end", "1",
                 "condition:");
    expect_fails(&t->scope, "local t = {} for i = 1, 1e9 do t[i] = nil t[-i] = i end", "1",
                 "condition:");
    expect_fails(&t->scope, "local function f() return 1 + f() end return f()", "1", "condition:");
    expect_fails(&t->scope, "for i = 1, 1e9 do local s = ('x'):rep(250000) end", "1", "condition:");
}

TEST(expr, a_long_text_can_be_looked_at_and_one_past_the_limit_cannot)
{
    struct buf json;

    buf_init(&json, &heap_libc, 0);
    buf_byte(&json, '"');
    for (size_t i = 0; i < EXPR_STRING_MAX - 100; i++)
        buf_byte(&json, 'x');
    buf_byte(&json, '"');
    expect_holds(&t->scope, "#result > 100 and result:find('xx') == 1", buf_text(&json), true);
    json.size--;
    for (size_t i = 0; i < 200; i++)
        buf_byte(&json, 'x');
    buf_byte(&json, '"');
    expect_fails(&t->scope, "#result > 100", buf_text(&json), "a text of more than");
    buf_fini(&json);
}

/* Looking for a member is work in C, which Lua does not count. */
TEST(expr, a_look_into_a_large_object_costs_what_it_takes)
{
    struct buf json;

    buf_init(&json, &heap_libc, 0);
    buf_byte(&json, '{');
    for (int i = 0; i < 20000; i++)
        buf_fmt(&json, "\"k%d\":1,", i);
    buf_str(&json, STR("\"last\":1}"));
    expect_holds(&t->scope, "result.last == 1", buf_text(&json), true);
    expect_fails(&t->scope, "for i = 1, 100 do local x = result.last end", buf_text(&json),
                 "more than 50000 operations");
    expect_holds(&t->scope, "for i = 1, 100 do local x = result.last end return true",
                 "{\"last\":1}", true);
    buf_fini(&json);
}

/* The depth of an expression is Lua's parser's to bound; its length is ours. */
TEST(expr, a_deep_or_long_text_is_refused_when_it_is_put)
{
    char text[EXPR_TEXT_MAX + 2];

    memset(text, '(', sizeof text);
    EXPECT_EQ(expr_check(&t->scope, EXPR_CONDITION, (str){ text, 1000 }), PAWL_INVALID_DEFINITION);
    EXPECT_HAS(t->scope.error.message, "condition:");
    memset(text, ' ', sizeof text);
    text[EXPR_TEXT_MAX - 1] = '1';
    EXPECT_OK(expr_check(&t->scope, EXPR_CONDITION, (str){ text, EXPR_TEXT_MAX }));
    EXPECT_EQ(expr_check(&t->scope, EXPR_CONDITION, (str){ text, EXPR_TEXT_MAX + 1 }),
              PAWL_INVALID_DEFINITION);
    EXPECT_HAS(t->scope.error.message, "4096");
}

/* What verify relies on: where a limit falls is the same every time, whatever else the process
 * has allocated meanwhile and however Lua has seeded its hashes. */
TEST(expr, the_same_text_meets_its_limit_at_the_same_place_every_time)
{
    bool at = false, first = false, over = false;
    char text[200];
    long low = 1, high = 100000;

    while (low + 1 < high) { /* the largest loop that is still allowed */
        long middle = (low + high) / 2;

        (void)snprintf(text, sizeof text,
                       "local t = {} for i = 1, %ld do t['k' .. i] = i end return true", middle);
        if (holds(&t->scope, text, "1", &at) == PAWL_OK)
            low = middle;
        else
            high = middle;
    }
    for (int i = 0; i < 20; i++) {
        (void)snprintf(text, sizeof text,
                       "local t = {} for i = 1, %ld do t['k' .. i] = i end return true", low);
        EXPECT_OK(holds(&t->scope, text, "1", &first));
        (void)snprintf(text, sizeof text,
                       "local t = {} for i = 1, %ld do t['k' .. i] = i end return true", high);
        EXPECT_EQ(holds(&t->scope, text, "1", &over), PAWL_INVALID_REQUEST);
    }
}

TEST(expr, steps_that_are_named_are_found_in_the_text)
{
    static const char text[] =
        "steps.a.result == steps [ \"b c\" ].result or x.steps.no or mysteps.no or "
        "steps . d . result > steps['e'].result or steps[f] or stepsg.h";
    static const char *const wanted[] = { "a", "b c", "d", "e" };
    size_t at = 0, count = 0;
    str name;

    while (expr_next_step(str_of(text), &at, &name)) {
        EXPECT(count < 4);
        EXPECT_STR(name, wanted[count++]);
    }
    EXPECT_EQ(count, 4);
}

static void expect_unknown(const char *text, const char *wanted)
{
    struct expr_unknown unknown;
    char found[200] = "";
    str name;

    expr_unknown_begin(&unknown, EXPR_CONDITION, str_of(text));
    while (expr_unknown_next(&unknown, &name)) {
        size_t used = strlen(found);

        (void)snprintf(found + used, sizeof found - used, "%s%.*s", used > 0 ? " " : "",
                       STR_ARG(name));
    }
    EXPECT_TEXT(found, wanted);
}

TEST(expr, names_that_nothing_gives_it_are_found_in_the_text)
{
    expect_unknown("foo and result.foo > input.bar and foo", "foo");
    expect_unknown("imput.x > 3 or reslt", "imput reslt");
    expect_unknown("system('rm')", "system");
    expect_unknown("result:upper() == 'foo bar' -- nor foo\nand bar", "bar");
    expect_unknown("result == [==[ a ]] foo ]==] .. \"b\\\"foo\" .. c", "c");
    expect_unknown("local a, b <const> = 1, 2 return a + b + d", "d");
    expect_unknown("for i, v in ipairs(result) do if v > x then return i end end", "x");
    expect_unknown("function (a, b) return a .. b .. c end", "c");
    expect_unknown("local function f(a) return a end return f(1) == 0x1F and 1e-5 < 3.5", "");
    expect_unknown("local t = {key = 1, ['k'] = 2} return t.key == t.k", "");
    expect_unknown("#result..input.x == null", "null");
    expect_unknown("goto done ::done:: return true", "");
    expect_unknown("math.floor(result) == tonumber(string.sub('1', 1)) and type(steps) == _ENV", "");
    expect_unknown("", "");
    expect_unknown("'", "");
    expect_unknown("[[", "");
    expect_unknown("--[[", "");
    expect_unknown("a\\", "a");
}

TEST(expr, every_lack_of_memory_is_told)
{
    struct values values = { &t->scope, "[1,2]" };
    struct expr_world world = { find_global, find_step, &values };
    struct fault_heap fault = { 0 };
    bool is_true = false;

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, LIMIT_SCOPE);
        status = expr_holds(&scope, STR("result[2] == 2 and ('x'):rep(100000) ~= '' and steps.a"),
                            &world, &is_true);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        scope_fini(&scope);
    }
    EXPECT(is_true && fault.count > 3);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static pawl_status value_of(struct scope *scope, const char *text, const char *result, str *out)
{
    struct values values = { scope, result };
    struct expr_world world = { find_global, find_step, &values };

    return expr_value(scope, EXPR_VALUE, str_of(text), &world, out);
}

TEST(expr, the_value_of_an_expression_is_json)
{
    static const char *const cases[][3] = {
        { "1 + 1", "0", "2" },
        { "7 / 2", "0", "3.5" },
        { "10 / 2", "0", "5" },
        { "0.1 + 0.2", "0", "0.30000000000000004" },
        { "9007199254740993", "0", "9007199254740993" },
        { "'a' .. \"'\" .. '\"'", "0", "\"a'\\\"\"" },
        { "nil", "0", "null" },
        { "not result", "false", "true" },
        { "result", "{ \"b\": [1.50, \"\\u20ac\"], \"a\": {} }",
          "{\"b\":[1.50,\"\\u20ac\"],\"a\":{}}" },
        { "{b = 1, a = {result, 'x'}, c = {}}", "[2]", "{\"a\":[[2],\"x\"],\"b\":1,\"c\":[]}" },
        { "local t = {} for i, v in ipairs(result) do if v > 1 then t[#t + 1] = {n = v} end end "
          "return t",
          "[1,2,3]", "[{\"n\":2},{\"n\":3}]" },
        { "{[2] = 'b', [1] = 'a'}", "0", "[\"a\",\"b\"]" },
        { "('\\255'):rep(2)", "0", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str found = STR_NONE, again = STR_NONE;

        EXPECT_OK(expr_check(&t->scope, EXPR_VALUE, str_of(cases[i][0])));
        EXPECT_OK(value_of(&t->scope, cases[i][0], cases[i][1], &found));
        EXPECT_OK(value_of(&t->scope, cases[i][0], cases[i][1], &again));
        EXPECT_STR(found, cases[i][2]);
        EXPECT(str_eq(found, again));
    }
}

TEST(expr, what_json_does_not_have_is_no_value)
{
    static const char *const cases[][2] = {
        { "1 / 0", "a number that JSON does not have" },
        { "0 / 0", "a number that JSON does not have" },
        { "math.floor", "a function is no value" },
        { "{1, nil, 3}", "a list of 2 items lacks number 2" },
        { "{1, a = 2}", "found a number among texts" },
        { "{[true] = 1}", "found a boolean among texts" },
        { "local t = {} t.t = t return t", "more than 64 levels" },
        { "local t = {1, 2, 3} for i = 1, 30 do t = {t, t, t} end return t", "50000 operations" },
        { "local t, s = {}, ('x'):rep(30000) for i = 1, 40 do t[i] = s end return t",
          "a value of more than 1048576 bytes" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str found = STR_NONE;

        EXPECT_EQ(value_of(&t->scope, cases[i][0], "0", &found), PAWL_INVALID_REQUEST);
        EXPECT_HAS(t->scope.error.message, cases[i][1]);
        EXPECT_HAS(t->scope.error.message, "expression:");
    }
}

TEST(expr, the_end_of_an_expression_is_not_looked_for_in_quotes_tables_and_comments)
{
    static const struct {
        const char *text;
        size_t end;
    } cases[] = {
        { " 1 }} rest", 3 },  { "{a={1}}}}", 7 },        { "'}}' .. \"}}\" }}", 13 },
        { "[[ }} ]] }}", 9 }, { "1 --[[ }} ]] }}", 13 }, { "1 -- }}\n}}", 8 },
        { "", SIZE_MAX },     { "1 }", SIZE_MAX },       { "1 } }", SIZE_MAX },
        { "'}}", SIZE_MAX },  { "{1}}", SIZE_MAX },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        EXPECT_EQ(expr_end(str_of(cases[i].text)), cases[i].end);
}

TEST(expr, without_memory_the_value_of_an_expression_is_told_no_reason)
{
    str text = STR("local t = {} for i = 1, 20 do t[i] = {n = i, s = ('x'):rep(i)} end return t");
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct scope scope;
        str found = STR_NONE;
        struct values values = { &t->scope, "0" };
        struct expr_world world = { find_global, find_step, &values };
        pawl_status status;

        scope_init(&scope, &fault.heap, LIMIT_SCOPE);
        status = expr_value(&scope, EXPR_VALUE, text, &world, &found);
        scope_fini(&scope);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    }
}
