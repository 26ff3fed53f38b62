/* base_yaml.c - what the YAML reader promises. */
#include "base/buf.h"
#include "base/node.h"
#include "lib/fault.h"
#include "lib/test.h"
#include <stdio.h>

static struct node *read_yaml(struct test *t, str text)
{
    struct node *node = NULL;

    EXPECT_OK(node_read_yaml(&t->scope, text, &node));
    EXPECT(node != NULL);
    return node;
}

static void expect_refused(struct test *t, str text, const char *message)
{
    struct node *node = NULL;

    EXPECT_EQ(node_read_yaml(&t->scope, text, &node), PAWL_INVALID_REQUEST);
    EXPECT(node == NULL);
    EXPECT_TEXT(t->scope.error.message, message);
    scope_clear(&t->scope);
}

static str as_json(struct test *t, str yaml)
{
    struct node *again = NULL;
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, 0);
    node_print(read_yaml(t, yaml), &buf);
    text = buf_keep(&buf, &t->scope.arena);
    buf_fini(&buf);
    EXPECT_OK(node_read_json(&t->scope, text, &again)); /* whatever is printed is JSON */
    return text;
}

TEST(yaml, a_definition_is_read_as_the_json_it_stands_for)
{
    EXPECT_STR(
        as_json(t, STR("name: order\n"
                       "states: [new, paid]\n"
                       "terminal_kinds: {paid: success}\n"
                       "transitions:\n"
                       "  - {from_state: new, action: pay, to_state: paid}\n"
                       "  - from_state: new\n"
                       "    after: 30s # a comment\n"
                       "note: |\n  two\n  lines\n")),
        "{\"name\":\"order\",\"states\":[\"new\",\"paid\"],"
        "\"terminal_kinds\":{\"paid\":\"success\"},\"transitions\":[{\"from_state\":\"new\","
        "\"action\":\"pay\",\"to_state\":\"paid\"},{\"from_state\":\"new\",\"after\":\"30s\"}],"
        "\"note\":\"two\\nlines\\n\"}");
}

TEST(yaml, a_member_knows_where_its_key_stands_and_where_its_value)
{
    const struct node *yaml = read_yaml(t, STR("a: 1\nlist:\n  - x: [2]\n    'y y':  3\n"));
    const struct node *element = node_at(node_find(yaml, "list"), 0), *member;
    struct node *json = NULL;

    member = node_find(element, "y y");
    EXPECT(member->key_line == 4 && member->key_column == 5);
    EXPECT(member->line == 4 && member->column == 13);
    EXPECT(node_find(yaml, "list")->key_line == 2 && node_find(yaml, "list")->line == 3);
    EXPECT_OK(node_read_json(&t->scope, STR("{\"a\":1,\n \"b\" : 2}"), &json));
    member = node_find(json, "b");
    EXPECT(member->key_line == 2 && member->key_column == 2);
    EXPECT(member->line == 2 && member->column == 8);
}

TEST(yaml, plain_scalars_mean_what_the_core_schema_says)
{
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        { "~", "null" },
        { "null", "null" },
        { "Null", "null" },
        { "nULL", "\"nULL\"" },
        { "---", "null" },
        { "true", "true" },
        { "FALSE", "false" },
        { "tRue", "\"tRue\"" },
        { "yes", "\"yes\"" }, /* a boolean in YAML 1.1 */
        { "off", "\"off\"" },
        { "0", "0" },
        { "-0", "-0" },
        { "+12", "12" },
        { "007", "7" }, /* octal in YAML 1.1 */
        { "-007", "-7" },
        { "000", "0" },
        { "0x1F", "31" },
        { "0xffffffffffffffff", "18446744073709551615" },
        { "0o17", "15" },
        { "0o8", "\"0o8\"" },
        { "0x", "\"0x\"" },
        { "-0x1", "\"-0x1\"" },
        { "0b1", "\"0b1\"" },
        { "1_000", "\"1_000\"" },
        { "12:30", "\"12:30\"" },
        { "1.50", "1.50" },
        { "1.", "1" },
        { ".5", "0.5" },
        { "-.5e3", "-0.5e3" },
        { "+1.E-2", "1E-2" },
        { "01.10", "1.10" },
        { "1e3", "1e3" },
        { "1e", "\"1e\"" },
        { ".", "\".\"" },
        { ".e1", "\".e1\"" },
        { "1.2.3", "\"1.2.3\"" },
        { "+", "\"+\"" },
        { "123456789012345678901234567890", "123456789012345678901234567890" },
        { "2026-05-01", "\"2026-05-01\"" },
        { "'12'", "\"12\"" },
        { "\"\\t\\u20ac\\x07\"", "\"\\t\xE2\x82\xAC\\u0007\"" },
        { "\".inf\"", "\".inf\"" },
        { ".infinity", "\".infinity\"" },
        { "<<", "\"<<\"" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        EXPECT_STR(as_json(t, str_of(cases[i].yaml)), cases[i].json);
}

TEST(yaml, what_json_cannot_say_is_refused)
{
    expect_refused(t, STR("a: .inf"), "line 1, column 4: expected a finite number, found .inf");
    expect_refused(t, STR("-.INF"), "line 1, column 1: expected a finite number, found -.INF");
    expect_refused(t, STR("- 1\n- .NaN"), "line 2, column 3: expected a finite number, found .NaN");
    expect_refused(t, STR("0x10000000000000000"),
                   "line 1, column 1: expected a number of at most 64 bits, found "
                   "0x10000000000000000");
    expect_refused(t, STR("\"a\\0b\""), "line 1, column 1: expected a text without NUL, found one");
    expect_refused(t, STR("\"\\0\": 1"),
                   "line 1, column 1: expected a text without NUL, found one");
}

TEST(yaml, only_tags_of_the_core_schema_are_known)
{
    EXPECT_STR(as_json(t, STR("[!!str 12, !!int 0x10, !!float 1, !!float '2.5', !!bool 'true', "
                              "!!null '', ! 7, !!seq [], !!map {}]")),
               "[\"12\",16,1,2.5,true,null,\"7\",[],{}]");
    EXPECT_STR(as_json(t, STR("!!str a: 1")), "{\"a\":1}");
    expect_refused(t, STR("a: !ruby/object {}"),
                   "line 1, column 4: expected a tag of the core schema, found !ruby/object");
    expect_refused(t, STR("!x a"), "line 1, column 1: expected a tag of the core schema, found !x");
    expect_refused(t, STR("!x a: 1"),
                   "line 1, column 1: expected a tag of the core schema, found !x");
    expect_refused(t, STR("!!binary aGk="),
                   "line 1, column 1: expected a tag of the core schema, "
                   "found tag:yaml.org,2002:binary");
    expect_refused(t, STR("!!int x"),
                   "line 1, column 1: expected a value that fits its tag, found x");
    expect_refused(t, STR("!!int 1.5"),
                   "line 1, column 1: expected a value that fits its tag, found 1.5");
    expect_refused(t, STR("!!float .nan"),
                   "line 1, column 1: expected a finite number, found .nan");
}

TEST(yaml, aliases_are_refused_so_that_a_small_text_stays_small)
{
    expect_refused(t, STR("a: &x [1, 2]\nb: *x\n"),
                   "line 2, column 4: expected no aliases, found *x");
    expect_refused(t, STR("a: &a {<<: *a}"), "line 1, column 12: expected no aliases, found *a");
    EXPECT_STR(as_json(t, STR("a: &unused 1")), "{\"a\":1}");
}

TEST(yaml, one_text_is_one_document)
{
    expect_refused(t, STR("a: 1\n---\nb: 2\n"),
                   "line 2, column 1: expected one document, found another");
    expect_refused(t, STR(""), "line 1, column 1: expected a value, found the end of the text");
    expect_refused(t, STR_NONE, "line 1, column 1: expected a value, found the end of the text");
    expect_refused(t, STR("# only\n"),
                   "line 2, column 1: expected a value, found the end of the text");
    EXPECT_STR(as_json(t, STR("%YAML 1.2\n---\na: 1\n...\n")), "{\"a\":1}");
}

TEST(yaml, keys_are_scalars_taken_by_their_text)
{
    EXPECT_STR(
        as_json(t, STR("{1: a, 0x1F: b, null: c, true: d, '': e, on: f}")),
        "{\"1\":\"a\",\"0x1F\":\"b\",\"null\":\"c\",\"true\":\"d\",\"\":\"e\",\"on\":\"f\"}");
    expect_refused(t, STR("? [a]\n: 1"),
                   "line 1, column 3: expected a scalar as a key, found an array");
    expect_refused(t, STR("{{a: 1}: 2}"),
                   "line 1, column 2: expected a scalar as a key, found an object");
}

TEST(yaml, a_key_that_stands_twice_is_refused_where_it_stands)
{
    expect_refused(t, STR("a:\n  x: 1\nb: 2\n'a':\n  y: 1\n"),
                   "line 4, column 1: expected each key once, found 'a' again");
    expect_refused(t, STR("- {k: 1, l: 2, k: 3}"),
                   "line 1, column 16: expected each key once, found 'k' again");
}

TEST(yaml, nodes_know_their_line_and_byte_column)
{
    struct node *root = read_yaml(t, STR("\xC3\xA9: [\xE2\x82\xAC, x]\r\nb:\r\n  - c\r\n"));

    EXPECT_EQ(root->first->column, 5);
    EXPECT_EQ(node_at(root->first, 1)->line, 1);
    EXPECT_EQ(node_at(root->first, 1)->column, 11);
    EXPECT_EQ(node_find(root, "b")->first->line, 3);
    EXPECT_EQ(node_find(root, "b")->first->column, 5);
    EXPECT(root->raw.data == NULL && root->first->raw.data == NULL);
}

TEST(yaml, what_is_no_yaml_is_refused_with_its_place)
{
    static const str bad[] = {
        STR_INIT("a: [1, 2"),
        STR_INIT("a: b: c"),
        STR_INIT("\t- x"),
        STR_INIT("'open"),
        STR_INIT("{a: 1]"),
        STR_INIT("@x"),
        STR_INIT("a: %x\n-"),
        STR_INIT("*"),
        STR_INIT("- a\nb"),
        STR_INIT("%YAML 3.0\n--- a"),
        STR_INIT("\"\\ud800\""),
        STR_INIT("!<"),
        STR_INIT("a: |9x"),
        STR_INIT("\"\\q\""),
        STR_INIT("\xFF\xFE"
                 "a\0"),
        STR_INIT("[a, b}"),
    };
    struct node *node = NULL;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT_EQ(node_read_yaml(&t->scope, bad[i], &node), PAWL_INVALID_REQUEST);
        EXPECT(strncmp(t->scope.error.message, "line ", 5) == 0);
        EXPECT_HAS(t->scope.error.message, ": expected ");
        EXPECT_HAS(t->scope.error.message, ", found ");
    }
    expect_refused(t, STR("a: 1\n\xC3\xA9: b: c"),
                   "line 2, column 6: expected quotes around a value that has ': ' in it, or a line "
                   "indented like those beside it, found ':'");
    expect_refused(t, STR("a: 1\r\nb: \x01"),
                   "line 2, column 4: expected YAML, found control characters are not allowed");
    expect_refused(t, STR("a: 1\nb: x\xED\xA0\x80"),
                   "line 2, column 5: expected YAML, found invalid Unicode character");
}

TEST(yaml, a_tab_that_indents_is_called_a_tab)
{
    static const str tabs[] = {
        STR_INIT("a:\n\tb: 1\n"),
        STR_INIT("a: 1\n\tb: 2\n"),
        STR_INIT("b:\n\t- tool: x\n"),
        STR_INIT("a: |\n\tx\n"),
    };

    for (size_t i = 0; i < sizeof tabs / sizeof tabs[0]; i++)
        expect_refused(t, tabs[i],
                       "line 2, column 1: expected spaces before the first word of a line, found a "
                       "TAB; YAML is not indented with TABs");
}

TEST(yaml, a_template_without_quotes_is_told_to_be_quoted)
{
    static const struct {
        const char *text;
        uint32_t line, column;
    } bad[] = {
        { "args:\n  message: {{input.x}}\n", 2, 12 },
        { "args: {m: {{input.x}}}", 1, 11 },
        { "args: {m: hi {{input.x}}}", 1, 14 },
        { "l: [{{input.x}}]", 1, 5 },
        { "args:\n  {{input.x}}: 1\n", 2, 3 },
        { "{a: 1, {{input.x}}: 2}", 1, 8 },
        { "- {{input.x}}", 1, 3 },
        { "{do: [{m: {{input.x}} and more}]}", 1, 11 },
    };
    char message[200];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(message, sizeof message,
                       "line %u, column %u: expected quotes around a value that has a template in "
                       "it, found {{input.x}} without them",
                       bad[i].line, bad[i].column);
        expect_refused(t, str_of(bad[i].text), message);
    }
}

TEST(yaml, what_libyaml_complains_of_is_said_in_plain_words)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "a:\n  b: [1, 2}\n",
          "line 2, column 11: expected ',' or ']' in the list that begins in line 2, found '}'" },
        { "a: [1, 2",
          "line 1, column 9: expected ',' or ']' in the list that begins in line 1, found the end "
          "of the text" },
        { "a: {b: 1 c: 2}",
          "line 1, column 11: expected ',' or '}' in the map that begins in line 1, found ':'" },
        { "a: 'x\nb: 1\n",
          "line 3, column 1: expected the closing quote of the text that begins in line 1, found "
          "the end of the text" },
        { "a: @x",
          "line 1, column 4: expected quotes around a value that begins with '@', found '@x'" },
        { "a:\n  b: 1\n c: 2\n",
          "line 3, column 2: expected a key of the map that begins in line 1, indented like its "
          "first key, found 'c:'" },
        { "a: 'it's'",
          "line 1, column 8: expected a key of the map that begins in line 1, indented like its "
          "first key, found 's''" },
        { "a:\n  - b\n  c: 1\n",
          "line 3, column 3: expected '- ', an item of the list that begins in line 2, found "
          "'c:'" },
        { "a: 1\nb\nc: 2\n",
          "line 3, column 1: expected ':' and a space behind the key in line 2, found 'c:'" },
        { "a: - b",
          "line 1, column 4: expected a list on lines of its own, found '-'" },
        { "a: ]", "line 1, column 4: expected a value, found ']'" },
        { "a: & b", "line 1, column 5: expected quotes around a value that begins with '*' or '&', "
                    "found the end of the word" },
        { "a: \"\\q\"",
          "line 1, column 5: expected an escape that YAML knows (in single quotes \\ is no escape), "
          "found '\\q\"'" },
        { "a: |9x", "line 1, column 6: expected comment or line break, found 'x'" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_refused(t, str_of(bad[i].text), bad[i].message);
}

TEST(yaml, a_value_that_is_not_written_is_told_from_null)
{
    const struct node *root =
        read_yaml(t, STR("a:\nb: null\nc: ~\nd: !!null\ne: ''\n"));

    EXPECT(node_find(root, "a")->kind == NODE_NULL && node_find(root, "a")->is_missing);
    EXPECT(node_find(root, "b")->kind == NODE_NULL && !node_find(root, "b")->is_missing);
    EXPECT(node_find(root, "c")->kind == NODE_NULL && !node_find(root, "c")->is_missing);
    EXPECT(node_find(root, "d")->kind == NODE_NULL && !node_find(root, "d")->is_missing);
    EXPECT(node_find(root, "e")->kind == NODE_STRING && !node_find(root, "e")->is_missing);
}

TEST(yaml, the_end_of_the_text_is_where_it_ends)
{
    struct node *node;

    EXPECT_EQ(node_read_yaml(&t->scope, STR("a: 1\nb: [\xC3\xA9,"), &node), PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "line 2, column 8: expected a value, found the end of the text");
}

TEST(yaml, tag_directives_are_refused_before_they_cost_anything)
{
    struct node *node;
    struct buf buf;

    expect_refused(t, STR("# x\n\n%YAML 1.2\n%TAG !a! b\n--- 1"),
                   "line 4, column 1: expected no %TAG directive, found one");
    expect_refused(t, STR("a: 1\n...\n# x\n%TAG !a! b\n--- 1"),
                   "line 4, column 1: expected no %TAG directive, found one");
    expect_refused(t, STR("a: 1\n...\n... # x\n\xC2\x85 \t\r%TAG !a! b\n--- 1"),
                   "line 6, column 1: expected no %TAG directive, found one");
    expect_refused(t, STR("a: 1\n%TAG !a! b\n--- 1"),
                   "line 2, column 1: expected no %TAG directive, found one");
    EXPECT_STR(as_json(t, STR("\"a\n%TAG b\"")), "\"a %TAG b\"");
    buf_init(&buf, &heap_libc, 0);
    for (int i = 0; i < 100000; i++)
        buf_fmt(&buf, "%%TAG !a%d! x\n", i);
    EXPECT_EQ(node_read_yaml(&t->scope, buf_view(&buf), &node), PAWL_INVALID_REQUEST);
    buf_fini(&buf);
}

TEST(yaml, a_byte_order_mark_is_passed_over)
{
    EXPECT_STR(as_json(t, STR("\xEF\xBB\xBF"
                              "a: 1")),
               "{\"a\":1}");
}

TEST(yaml, nesting_is_allowed_to_64_levels_and_not_one_more)
{
    char text[200000];
    struct node *node = NULL;

    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    read_yaml(t, (str){ text, 128 });
    memset(text, '[', sizeof text);
    EXPECT_EQ(node_read_yaml(&t->scope, (str){ text, sizeof text }, &node), PAWL_INVALID_REQUEST);
    EXPECT_TEXT(t->scope.error.message,
                "line 1, column 65: expected at most 64 levels of nesting, found one more");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 2 ? ' ' : '-';
    EXPECT_EQ(node_read_yaml(&t->scope, (str){ text, sizeof text }, &node), PAWL_INVALID_REQUEST);
}

TEST(yaml, twenty_thousand_keys_on_one_line_are_read_at_once)
{
    struct buf buf;
    struct node *root;

    buf_init(&buf, &heap_libc, 0);
    buf_byte(&buf, '{');
    for (int i = 0; i < 20000; i++)
        buf_fmt(&buf, "\xC3\xA9%d: 1, ", i);
    buf_byte(&buf, '}');
    root = read_yaml(t, buf_view(&buf));
    EXPECT_EQ(root->count, 20000);
    EXPECT_EQ(node_at(root, 19999)->column, buf.size - 3);
    buf_fini(&buf);
}

static const str sample = STR_INIT("a: [1, 0x10, .5, text]\nb:\n  c: ~\n  d: {e: true, f: 'q'}\n");

TEST(yaml, the_nth_allocation_may_fail_and_nothing_leaks)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_FOR_EVER)
    {
        struct node *node = NULL;
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, 0);
        status = node_read_yaml(&scope, sample, &node);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        EXPECT((node != NULL) == (status == PAWL_OK));
        scope_fini(&scope);
    }
}

TEST(yaml, any_limit_of_memory_gives_ok_or_no_memory)
{
    bool fits = false;

    for (size_t limit = 1; limit < 8192; limit += 13) {
        struct node *node = NULL;
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &heap_libc, limit);
        status = node_read_yaml(&scope, sample, &node);
        EXPECT(status == PAWL_OK || (status == PAWL_NO_MEMORY && !fits));
        fits = status == PAWL_OK;
        scope_fini(&scope);
    }
    EXPECT(fits);
}

TEST(yaml, every_single_byte_changed_is_read_or_refused)
{
    char text[] = "\xC3\xA9: [1, !!str 'x']\nb:\n  - c: \"\\u20ac\"\n";
    struct node *node;

    for (size_t at = 0; at < sizeof text - 1; at++) {
        char was = text[at];

        for (int byte = 0; byte < 256; byte++) {
            pawl_status status;

            text[at] = (char)byte;
            status = node_read_yaml(&t->scope, (str){ text, sizeof text - 1 }, &node);
            EXPECT(status == PAWL_OK || status == PAWL_INVALID_REQUEST);
            if (status == PAWL_OK)
                as_json(t, (str){ text, sizeof text - 1 });
            else
                EXPECT(str_is_utf8(str_of(t->scope.error.message), false));
            scope_clear(&t->scope);
        }
        text[at] = was;
    }
}

TEST(yaml, json_is_recognised_by_its_bracket)
{
    struct node *node = NULL;

    EXPECT_OK(node_read(&t->scope, STR(" \n\t{\"a\":1}"), &node));
    EXPECT(node->raw.data != NULL);
    EXPECT_OK(node_read(&t->scope, STR("[1]"), &node));
    EXPECT(node->raw.data != NULL);
    EXPECT_OK(node_read(&t->scope, STR("a: 1"), &node));
    EXPECT(node->raw.data == NULL);
    EXPECT_EQ(node_read(&t->scope, STR("{a: 1}"), &node), PAWL_INVALID_REQUEST);
    EXPECT_EQ(node_read(&t->scope, STR(""), &node), PAWL_INVALID_REQUEST);
}
