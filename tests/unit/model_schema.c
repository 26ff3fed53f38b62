/* model_schema.c - the schema of an input: what it may say, what it accepts, which paths it has. */
#include "base/buf.h"
#include "lib/test.h"
#include "model/canonical.h"
#include "model/decimal.h"
#include "model/input_schema.h"
#include <stdio.h>
#include <time.h>

static struct node *read_text(struct test *t, const char *text)
{
    struct node *node = NULL;

    EXPECT_OK(node_read_yaml(&t->scope, str_of(text), &node));
    return node;
}

#define ORDER                                                                                      \
    "{\"type\":\"object\",\"required\":[\"amount\"],\"additionalProperties\":false,"               \
    "\"properties\":{\"amount\":{\"type\":\"number\",\"minimum\":1,\"maximum\":99.5},"             \
    "\"currency\":{\"enum\":[\"EUR\",\"USD\"]},\"kind\":{\"const\":7},"                            \
    "\"note\":{\"type\":[\"string\",\"null\"],\"minLength\":2,\"maxLength\":4},"                   \
    "\"count\":{\"type\":\"integer\"},"                                                            \
    "\"lines\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"price\"],"       \
    "\"properties\":{\"price\":{\"type\":\"number\"}}}},"                                          \
    "\"tags\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}}}"

TEST(model_schema, what_a_schema_allows_is_accepted)
{
    static const char *const inputs[] = {
        "{\"amount\":1}",
        "{\"amount\":99.50,\"currency\":\"USD\",\"kind\":7.0,\"note\":null,\"count\":1.0}",
        "{\"amount\":5e0,\"note\":\"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\",\"count\":1e3}",
        "{\"amount\":2,\"lines\":[{\"price\":1,\"more\":true},{\"price\":0}],\"tags\":{\"a\":\"b\"}}",
        "{\"amount\":2,\"lines\":[],\"tags\":{}}",
    };
    const struct node *schema = read_text(t, ORDER);

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        EXPECT_OK(input_schema_accept(&t->scope, schema, str_of(inputs[i])));
    EXPECT_OK(input_schema_accept(&t->scope, NULL, STR("7")));
}

TEST(model_schema, what_it_does_not_allow_is_named_with_its_path)
{
    static const struct {
        const char *input, *message;
    } bad[] = {
        { "{}", "input.amount: expected a number, found nothing" },
        { NULL, "input.amount: expected a number, found nothing" },
        { "7", "input: expected an object, found a number" },
        { "{\"amount\":\"1\"}", "input.amount: expected a number, found a string" },
        { "{\"amount\":0.5}", "input.amount: expected at least 1, found 0.5" },
        { "{\"amount\":1e3}", "input.amount: expected at most 99.5, found 1e3" },
        { "{\"amount\":1,\"currency\":\"GBP\"}",
          "input.currency: expected one of [\"EUR\",\"USD\"], found \"GBP\"" },
        { "{\"amount\":1,\"kind\":8}", "input.kind: expected 7, found 8" },
        { "{\"amount\":1,\"note\":7}", "input.note: expected a string or null, found a number" },
        { "{\"amount\":1,\"note\":\"a\"}", "input.note: expected at least 2 characters, found 1" },
        { "{\"amount\":1,\"note\":\"abcde\"}", "input.note: expected at most 4 characters, found 5" },
        { "{\"amount\":1,\"count\":1.5}",
          "input.count: expected a whole number, found a number with a fraction" },
        { "{\"amount\":1,\"lines\":[{\"price\":1},{\"price\":\"x\"}]}",
          "input.lines.1.price: expected a number, found a string" },
        { "{\"amount\":1,\"lines\":[{}]}", "input.lines.0.price: expected a number, found nothing" },
        { "{\"amount\":1,\"tags\":{\"a\":1}}", "input.tags.a: expected a string, found a number" },
        { "{\"amount\":1,\"amuont\":1}",
          "input.amuont: expected one of the properties amount, currency, kind, note, count, lines, "
          "tags, found another" },
    };
    const struct node *schema = read_text(t, ORDER);

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        str input = bad[i].input ? str_of(bad[i].input) : STR_NONE;

        EXPECT_EQ(input_schema_accept(&t->scope, schema, input), PAWL_INVALID_REQUEST);
        EXPECT_TEXT(t->scope.error.message, bad[i].message);
        t->scope.error = (pawl_error){ 0 };
    }
}

struct told {
    char text[600];
    uint32_t line, column;
};

static void tell(void *context, const struct node *at, const char *message)
{
    struct told *told = context;

    (void)snprintf(told->text, sizeof told->text, "%s", message);
    told->line = at->line;
    told->column = at->column;
}

TEST(model_schema, a_keyword_beyond_the_subset_is_refused_by_name)
{
    static const struct {
        const char *schema, *part;
        uint32_t column;
    } bad[] = {
        { "{type: object, patern: x}", "unknown keyword 'patern' of an input's schema; known here: "
                                       "type, properties, required",
          16 },
        { "{properties: {a: {pattern: x}}}", "unknown keyword 'pattern'", 19 },
        { "{propertys: {}}", "did you mean 'properties'?", 2 },
        { "{default: 1}", "'default' of an input's schema is not supported", 2 },
        { "{type: text}", "'type' of an input's schema: expected null, boolean", 8 },
        { "{type: []}", "'type' of an input's schema: expected null, boolean", 8 },
        { "{type: [string, 7]}", "'type' of an input's schema", 17 },
        { "{properties: [a]}", "'properties' of an input's schema: expected {NAME: SCHEMA}", 14 },
        { "{properties: {a: string}}", "expected a schema: an object like {type: string}, found a "
                                       "string",
          18 },
        { "{required: a}", "'required' of an input's schema: expected a list of names", 12 },
        { "{required: [1]}", "'required' of an input's schema: expected a name", 13 },
        { "{items: [{}]}", "'items' of an input's schema: expected a schema", 9 },
        { "{additionalProperties: 1}", "'additionalProperties' of an input's schema", 24 },
        { "{enum: []}", "'enum' of an input's schema: expected a list of one or more values", 8 },
        { "{minimum: '1'}", "expected a number, found a string", 11 },
        { "{maxLength: -1}", "expected a whole number of 0 or more", 13 },
        { "text", "'input' of an input's schema: expected a schema", 1 },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct told told = { 0 };

        input_schema_check(read_text(t, bad[i].schema), tell, &told);
        EXPECT_HAS(told.text, bad[i].part);
        EXPECT_EQ(told.column, bad[i].column);
    }
}

TEST(model_schema, the_paths_it_has_are_those_that_it_lists_or_leaves_open)
{
    static const struct {
        const char *schema, *path;
        bool has;
    } paths[] = {
        { "{type: object, properties: {a: {}}}", "a", true },
        { "{type: object, properties: {a: {}}}", "a.b.c", true },
        { "{type: object, properties: {a: {}}}", "b", false },
        { "{type: object, properties: {a: {type: string}}}", "a.b", false },
        { "{type: object, properties: {a.b: {type: string}}}", "a.b", true },
        { "{type: object, properties: {a: {}}, additionalProperties: true}", "b", true },
        { "{type: object, properties: {a: {}}, additionalProperties: {type: string}}", "b", true },
        { "{type: object, properties: {a: {}}, additionalProperties: {type: string}}", "b.c",
          false },
        { "{type: object}", "a.b", true },
        { "{type: string}", "a", false },
        { "{additionalProperties: false}", "a", false },
        { "{properties: {l: {type: array, items: {properties: {p: {}}}}}}", "l.3.p", true },
        { "{properties: {l: {type: array, items: {properties: {p: {}}}}}}", "l.3.q", false },
        { "{properties: {l: {type: array}}}", "l.first", false },
    };

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (input_schema_has(read_text(t, paths[i].schema), str_of(paths[i].path)) != paths[i].has)
            test_fail(__FILE__, __LINE__, "%s: %s", paths[i].schema, paths[i].path);
    EXPECT(input_schema_has(read_text(t, "{type: string}"), STR_NONE));
}

TEST(model_schema, numbers_are_compared_by_value_and_exactly)
{
    static const struct {
        const char *a, *b;
        int order;
    } pairs[] = {
        { "1", "1.0", 0 },      { "10e-1", "1", 0 },     { "0", "-0.0", 0 },  { "0e9", "0", 0 },
        { "0.05", "5e-2", 0 },  { "-1", "1", -1 },       { "-2", "-1", -1 },  { "9", "10", -1 },
        { "0.1", "0.09", 1 },   { "1e400", "1e399", 1 }, { "1E+2", "100", 0 }, { "1.10", "1.1", 0 },
        { "123.456", "123.457", -1 },
        { "9007199254740993", "9007199254740992", 1 },
        { "1e99999999999999999999", "2", 1 },
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        EXPECT_EQ(decimal_compare(str_of(pairs[i].a), str_of(pairs[i].b)), pairs[i].order);
        EXPECT_EQ(decimal_compare(str_of(pairs[i].b), str_of(pairs[i].a)), -pairs[i].order);
    }
    EXPECT(decimal_is_whole(STR("1.0")) && decimal_is_whole(STR("12e1")));
    EXPECT(decimal_is_whole(STR("1.5e1")) && decimal_is_whole(STR("0.0")));
    EXPECT(!decimal_is_whole(STR("1.5")) && !decimal_is_whole(STR("1e-1")));
}

static const char *canonical(struct test *t, const char *json)
{
    struct node *node = NULL;
    str text;

    EXPECT_OK(node_read_json(&t->scope, str_of(json), &node));
    EXPECT_OK(canonical_print(&t->scope, node, &text));
    return text.data;
}

TEST(model_schema, values_that_are_equal_have_one_text)
{
    static const char *const rows[][2] = {
        { "7.00", "7" }, { "70e-1", "7" }, { "-0.0e5", "0" }, { "1E+2", "100" }, { "1.50", "1.5" },
        { "-12.5e-1", "-1.25" }, { "0.0000010", "0.000001" }, { "0.0000001", "1e-7" },
        { "18446744073709551615", "18446744073709551615" },
        { "100000000000000000000", "100000000000000000000" }, { "1000000000000000000000", "1e21" },
        { "1234567890123456789012.5", "1.2345678901234567890125e21" },
        { "1e400", "1e400" }, { "12e-400", "1.2e-399" },
        { "\"\\u0061\\/\\u00e9\\n\\u0001\"", "\"a/\xc3\xa9\\n\\u0001\"" },
        { "[ 1.0 , [], { } ,null]", "[1,[],{},null]" },
        { "{\"b\":1.0,\"a\":{\"\\u0064\":false,\"c\":[]},\"ab\":true}",
          "{\"a\":{\"c\":[],\"d\":false},\"ab\":true,\"b\":1}" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_TEXT(canonical(t, rows[i][0]), rows[i][1]);
        EXPECT_TEXT(canonical(t, rows[i][1]), rows[i][1]);
    }
}

/* ---- Cost --------------------------------------------------------------------------------------- */

enum { FEW = 500, TIMES = 10, AT_MOST = 40 /* a square would be 100 */ };

/* `before`, then `count` times `each` with a number for its %d, then `after`. */
static str repeat(struct test *t, const char *before, const char *each, const char *after, int count)
{
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, 0);
    buf_str(&buf, str_of(before));
    for (int i = 0; i < count; i++) {
        const char *number = strchr(each, '%');

        buf_fmt(&buf, "%s%.*s%d%s", i ? "," : "", (int)(number - each), each, i, number + 1);
    }
    buf_str(&buf, str_of(after));
    text = buf_keep(&buf, &t->scope.arena);
    buf_fini(&buf);
    return text;
}

struct cost {
    const char *schema[3], *input[3];
};

static double seconds_of(struct test *t, const struct cost *cost, int count)
{
    str input = repeat(t, cost->input[0], cost->input[1], cost->input[2], count);
    struct node *schema = NULL;
    clock_t begun;

    EXPECT_OK(node_read_json(&t->scope,
                             repeat(t, cost->schema[0], cost->schema[1], cost->schema[2], count),
                             &schema));
    begun = clock();
    EXPECT_OK(input_schema_accept(&t->scope, schema, input));
    return (double)(clock() - begun) / CLOCKS_PER_SEC;
}

TEST(model_schema, an_input_of_ten_times_the_size_does_not_cost_the_square)
{
    static const struct cost costs[] = {
        { { "{\"properties\":{", "\"p%\":{}", "}}" }, { "{", "\"q%\":1", "}" } },
        { { "{\"properties\":{", "\"p%\":{}", "}}" }, { "{", "\"p%\":1", "}" } },
        { { "{\"required\":[", "\"p%\"", "]}" }, { "{", "\"p%\":1", "}" } },
        { { "{\"items\":{\"enum\":[", "\"p%\"", "]}}" }, { "[", "\"p%\"", "]" } },
        { { "{\"items\":{\"enum\":[", "%", "]}}" }, { "[", "%.0", "]" } },
        { { "{\"items\":{\"enum\":[", "{\"a\":1,\"b\":%}", "]}}" },
          { "[", "{\"b\":%,\"a\":1.0}", "]" } },
        { { "{\"const\":{", "\"p%\":1", "}}" }, { "{", "\"p%\":1e0", "}" } },
    };

    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        double few = seconds_of(t, &costs[i], FEW), many = seconds_of(t, &costs[i], FEW * TIMES);

        printf("# form %zu: %.4f s, ten times as many %.4f s\n", i, few, many);
        EXPECT(many < few * AT_MOST + 0.01);
    }
}
