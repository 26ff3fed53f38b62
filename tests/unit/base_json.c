/* base_json.c - what the JSON reader and printer promise. */
#include "base/buf.h"
#include "base/json_scan.h"
#include "base/limits.h"
#include "base/node.h"
#include "lib/fault.h"
#include "lib/test.h"
#include <stdlib.h>

static struct node *read_json(struct test *t, str text)
{
    struct node *node = NULL;

    EXPECT_OK(node_read_json(&t->scope, text, &node));
    EXPECT(node != NULL);
    return node;
}

/* The text must be refused with exactly these words, and `out` left alone. */
static void expect_refused(struct test *t, str text, const char *message)
{
    struct node *node = NULL;

    EXPECT_EQ(node_read_json(&t->scope, text, &node), PAWL_INVALID_REQUEST);
    EXPECT(node == NULL);
    EXPECT_EQ(t->scope.error.status, PAWL_INVALID_REQUEST);
    EXPECT_TEXT(t->scope.error.message, message);
    scope_clear(&t->scope);
}

static str print(struct test *t, const struct node *node)
{
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, 0);
    node_print(node, &buf);
    text = buf_keep(&buf, &t->scope.arena);
    buf_fini(&buf);
    return text;
}

static str repeat(struct test *t, str part, size_t count, str tail)
{
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, 0);
    while (count-- > 0)
        buf_str(&buf, part);
    buf_str(&buf, tail);
    text = buf_keep(&buf, &t->scope.arena);
    buf_fini(&buf);
    return text;
}

TEST(json, values_of_every_kind_are_read)
{
    struct node *root = read_json(t, STR(" [null, true, false, -1.50e+3, \"a\", [], {\"k\": 1}] "));
    enum node_kind kinds[] = { NODE_NULL,   NODE_BOOL,  NODE_BOOL,  NODE_NUMBER,
                               NODE_STRING, NODE_ARRAY, NODE_OBJECT };

    EXPECT_EQ(root->kind, NODE_ARRAY);
    EXPECT_EQ(root->count, 7);
    for (uint32_t i = 0; i < root->count; i++)
        EXPECT_EQ(node_at(root, i)->kind, kinds[i]);
    EXPECT(node_at(root, 1)->truth && !node_at(root, 2)->truth);
    EXPECT_STR(node_at(root, 3)->text, "-1.50e+3");
    EXPECT_STR(node_at(root, 4)->text, "a");
    EXPECT(node_at(root, 5)->first == NULL && node_at(root, 5)->count == 0);
    EXPECT_STR(node_find(node_at(root, 6), "k")->text, "1");
    EXPECT(node_at(root, 7) == NULL);
}

TEST(json, a_scalar_is_a_whole_text_too)
{
    EXPECT_EQ(read_json(t, STR("null"))->kind, NODE_NULL);
    EXPECT_STR(read_json(t, STR("\t\r\n0\n"))->text, "0");
    EXPECT_STR(read_json(t, STR("\"\""))->text, "");
}

TEST(json, every_value_knows_its_exact_bytes)
{
    struct node *root = read_json(t, STR(" { \"a\" : [ 1.0 , \"\\u0041\" ], \"b\":{ } } "));

    EXPECT_STR(root->raw, "{ \"a\" : [ 1.0 , \"\\u0041\" ], \"b\":{ } }");
    EXPECT_STR(root->first->raw, "[ 1.0 , \"\\u0041\" ]");
    EXPECT_STR(root->first->first->raw, "1.0");
    EXPECT_STR(root->first->first->next->raw, "\"\\u0041\"");
    EXPECT_STR(node_find(root, "b")->raw, "{ }");
}

TEST(json, every_value_knows_its_line_and_byte_column)
{
    struct node *root = read_json(t, STR("{\n  \"\xC3\xA9\": 1,\r\n\t\"b\": [\n2]}"));

    EXPECT_EQ(root->line, 1);
    EXPECT_EQ(root->column, 1);
    EXPECT_EQ(root->first->line, 2);
    EXPECT_EQ(root->first->column, 9);
    EXPECT_EQ(node_find(root, "b")->first->line, 4);
    EXPECT_EQ(node_find(root, "b")->first->column, 1);
}

TEST(json, escapes_are_undone_in_strings_and_keys)
{
    struct node *root = read_json(
        t, STR("{\"\\u006Bey\\n\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\uD83D\\uDE00\"}"));

    EXPECT_STR(root->first->key, "key\n");
    EXPECT_STR(root->first->text, "\"\\/\b\f\n\r\t\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    EXPECT_EQ(root->first->text.data[root->first->text.size], '\0');
    EXPECT_EQ(root->first->key.data[root->first->key.size], '\0');
}

TEST(json, what_is_not_json_is_refused_with_its_place)
{
    static const struct {
        str text;
        const char *message;
    } cases[] = {
        { STR_INIT(""), "line 1, column 1: expected a value, found the end of the text" },
        { STR_INIT("  \n "), "line 2, column 2: expected a value, found the end of the text" },
        { STR_INIT("[1,\n 2"), "line 2, column 3: expected ',' or ']', found the end of the text" },
        { STR_INIT("[1,]"), "line 1, column 4: expected a value, found ']'" },
        { STR_INIT("[,1]"), "line 1, column 2: expected a value, found ','" },
        { STR_INIT("[1}"), "line 1, column 3: expected ',' or ']', found '}'" },
        { STR_INIT("[1 2]"), "line 1, column 4: expected ',' or ']', found '2'" },
        { STR_INIT("{\"a\":1,}"), "line 1, column 8: expected a key in quotes, found '}'" },
        { STR_INIT("{a:1}"), "line 1, column 2: expected a key in quotes, found 'a'" },
        { STR_INIT("{\"a\" 1}"), "line 1, column 6: expected ':', found '1'" },
        { STR_INIT("{\"a\":}"), "line 1, column 6: expected a value, found '}'" },
        { STR_INIT("{\"a\":1]"), "line 1, column 7: expected ',' or '}', found ']'" },
        { STR_INIT("1 2"), "line 1, column 3: expected nothing after the value, found '2'" },
        { STR_INIT("{} x"), "line 1, column 4: expected nothing after the value, found 'x'" },
        { STR_INIT("]"), "line 1, column 1: expected a value, found ']'" },
        { STR_INIT("nul"), "line 1, column 1: expected a value, found 'n'" },
        { STR_INIT("True"), "line 1, column 1: expected a value, found 'T'" },
        { STR_INIT("truer"), "line 1, column 5: expected nothing after the value, found 'r'" },
        { STR_INIT("// x"), "line 1, column 1: expected a value, found '/'" },
        { STR_INIT("\xEF\xBB\xBF{}"),
          "line 1, column 1: expected a value, found a byte order mark" },
        { STR_INIT("\xFF"), "line 1, column 1: expected a value, found the byte 0xFF" },
        { STR_INIT("\0"), "line 1, column 1: expected a value, found the byte 0x00" },
        { STR_INIT("\xC2\xA0"), "line 1, column 1: expected a value, found '\xC2\xA0'" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(t, cases[i].text, cases[i].message);
    expect_refused(t, STR_NONE, "line 1, column 1: expected a value, found the end of the text");
}

TEST(json, numbers_that_are_none_are_refused)
{
    static const str bad[] = {
        STR_INIT("01"),  STR_INIT("-"),   STR_INIT("+1"),   STR_INIT(".5"),   STR_INIT("1."),
        STR_INIT("1e"),  STR_INIT("1e+"), STR_INIT("-01"),  STR_INIT("0x1F"), STR_INIT("1.e1"),
        STR_INIT("NaN"), STR_INIT("--1"), STR_INIT("1 .0"), STR_INIT("-a"),   STR_INIT("Infinity"),
    };
    struct node *node = NULL;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT_EQ(node_read_json(&t->scope, bad[i], &node), PAWL_INVALID_REQUEST);
    expect_refused(t, STR("[1.x]"),
                   "line 1, column 4: expected a digit after the point, found 'x'");
}

TEST(json, strings_that_are_none_are_refused)
{
    static const str bad[] = {
        STR_INIT("\""),
        STR_INIT("\"a"),
        STR_INIT("\"\\"),
        STR_INIT("\"\\\""),
        STR_INIT("\"\\x\""),
        STR_INIT("\"\\u\""),
        STR_INIT("\"\\u12\""),
        STR_INIT("\"\\u12g4\""),
        STR_INIT("\"\\ud800\""),
        STR_INIT("\"\\udc00\""),
        STR_INIT("\"\\ud800\\u0041\""),
        STR_INIT("\"\\ud800\\ud800\""),
        STR_INIT("\"\\u0000\""),
        STR_INIT("\"a\nb\""),
        STR_INIT("\"\t\""),
        STR_INIT("\"a\0b\""),
        STR_INIT("\"\x80\""),
        STR_INIT("\"\xC0\xAF\""),
        STR_INIT("\"\xED\xA0\x80\""),
        STR_INIT("\"\xF4\x90\x80\x80\""),
        STR_INIT("\"\xE2\x82\""),
        STR_INIT("\"\xF0\x9F\x98"),
        STR_INIT("\"\\ud83d\\u"),
        STR_INIT("\"\\uD83D\\uDE0"),
        STR_INIT("{\"\\u0000\":1}"),
        STR_INIT("'a'"),
    };
    struct node *node = NULL;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT_EQ(node_read_json(&t->scope, bad[i], &node), PAWL_INVALID_REQUEST);
    expect_refused(t, STR("\"ab\nc\""),
                   "line 1, column 4: expected a closing '\"' of the string, found a line break");
    expect_refused(t, STR("[\"a\\q\"]"),
                   "line 1, column 5: expected one of \"\\/bfnrtu after a backslash, found 'q'");
    expect_refused(t, STR("\"\xFF\""),
                   "line 1, column 2: expected valid UTF-8, found the byte 0xFF");
}

TEST(json, a_key_that_stands_twice_is_refused_even_if_escaped_otherwise)
{
    expect_refused(t, STR("{\"a\":1,\n \"b\":2, \"\\u0061\":3}"),
                   "line 2, column 9: expected each key once, found 'a' again");
    expect_refused(t, STR("[{\"\":1,\"\":2}]"),
                   "line 1, column 8: expected each key once, found '' again");
    read_json(t, STR("{\"a\":{\"a\":1},\"A\":[{\"a\":1},{\"a\":1}]}"));
}

TEST(json, nesting_is_allowed_to_64_levels_and_not_one_more)
{
    str closing = repeat(t, STR("]"), NODE_DEPTH_MAX, STR(""));
    struct node *node = NULL;

    read_json(t, repeat(t, STR("["), NODE_DEPTH_MAX, closing));
    EXPECT_EQ(node_read_json(&t->scope, repeat(t, STR("["), NODE_DEPTH_MAX + 1, closing), &node),
              PAWL_INVALID_REQUEST);
    EXPECT_TEXT(t->scope.error.message,
                "line 1, column 65: expected at most 64 levels of nesting, found one more");
    EXPECT_EQ(node_read_json(&t->scope, repeat(t, STR("{\"a\":"), 500000, STR("")), &node),
              PAWL_INVALID_REQUEST);
}

TEST(json, an_object_of_a_hundred_thousand_keys_is_read_at_once)
{
    struct buf buf;
    struct node *root, *node = NULL;

    buf_init(&buf, &heap_libc, 0);
    json_open(&buf, '{');
    for (int i = 0; i < 100000; i++) {
        buf_fmt(&buf, "%s\"k%d\":%d", i > 0 ? "," : "", i * 7919 % 100000, i);
    }
    root = read_json(t, repeat(t, buf_view(&buf), 1, STR("}")));
    EXPECT_EQ(root->count, 100000);
    EXPECT_EQ(node_read_json(&t->scope, repeat(t, buf_view(&buf), 1, STR(",\"k77\":0}")), &node),
              PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "expected each key once, found 'k77' again");
    buf_fini(&buf);
}

TEST(json, a_text_that_needs_more_than_the_scope_may_hold_is_no_memory)
{
    str text = repeat(t, STR("[[],"), 1, repeat(t, STR("[],"), 300000, STR("0]")));
    struct scope small;
    struct node *node = NULL;

    scope_init(&small, &heap_libc, 1 << 20);
    EXPECT_EQ(node_read_json(&small, text, &node), PAWL_NO_MEMORY);
    EXPECT_EQ(small.error.status, PAWL_NO_MEMORY);
    EXPECT(small.arena.used <= 1 << 20);
    EXPECT(node == NULL);
    scope_fini(&small);
}

TEST(json, any_value_of_a_mebibyte_fits_into_one_scope)
{
    struct scope scope;
    struct node *node;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    EXPECT_OK(node_read_json(
        &scope, repeat(t, STR("[0"), 1, repeat(t, STR(",0"), (1 << 19) - 2, STR("]"))), &node));
    scope_clear(&scope);
    EXPECT_OK(node_read_json(
        &scope, repeat(t, STR("[[]"), 1, repeat(t, STR(",[]"), 349520, STR("]"))), &node));
    scope_fini(&scope);
}

static const str sample =
    STR_INIT(" {\"a\": [1, {\"b\": \"x\\ty\", \"c\": null}], \"d\" :\t[true, \"\"]} ");

TEST(json, the_nth_allocation_may_fail_and_nothing_leaks)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct node *node = NULL;
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, 0);
        status = node_read_json(&scope, sample, &node);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        EXPECT((node != NULL) == (status == PAWL_OK));
        scope_fini(&scope);
    }
    EXPECT(fault.count > 0);
}

TEST(json, any_limit_of_memory_gives_ok_or_no_memory)
{
    bool fits = false;

    for (size_t limit = 1; limit < 8192; limit += 13) {
        struct node *node = NULL;
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &heap_libc, limit);
        status = node_read_json(&scope, sample, &node);
        EXPECT(status == PAWL_OK || (status == PAWL_NO_MEMORY && !fits));
        fits = status == PAWL_OK;
        EXPECT(scope.arena.used <= limit);
        scope_fini(&scope);
    }
    EXPECT(fits);
}

TEST(json, every_beginning_of_a_text_is_refused_without_reading_past_it)
{
    str text =
        STR("{\"a\\u00e9\\ud83d\\ude00\":[-1.5e+10,true,false,null,\"\xE2\x82\xAC\"],\"b\":{}}");
    struct node *node = NULL;

    for (size_t size = 0; size < text.size; size++) {
        char *copy = heap_new(&heap_libc, size + 1); /* exact, so that a sanitizer sees */

        copy = heap_resize(&heap_libc, copy, size + 1, size > 0 ? size : 1);
        memcpy(copy, text.data, size);
        EXPECT_EQ(node_read_json(&t->scope, (str){ copy, size }, &node), PAWL_INVALID_REQUEST);
        heap_free(&heap_libc, copy, size);
    }
    read_json(t, text);
}

TEST(json, every_single_byte_changed_is_read_or_refused)
{
    char text[] = "{\"a\\u00e9\":[-1.5e+10,true,\"\xE2\x82\xAC\"],\"b\":{}}";
    struct node *node;

    for (size_t at = 0; at < sizeof text - 1; at++) {
        char was = text[at];

        for (int byte = 0; byte < 256; byte++) {
            pawl_status status;

            text[at] = (char)byte;
            status = node_read_json(&t->scope, (str){ text, sizeof text - 1 }, &node);
            EXPECT(status == PAWL_OK || status == PAWL_INVALID_REQUEST);
            if (status == PAWL_OK)
                EXPECT(str_is_utf8(print(t, node), false));
            else
                EXPECT(strncmp(t->scope.error.message, "line ", 5) == 0);
            scope_clear(&t->scope);
        }
        text[at] = was;
    }
}

TEST(json, printing_takes_out_white_space_and_nothing_else)
{
    EXPECT_STR(print(t, read_json(t, STR(" {\t\"a b\" : [ 1.50 , -0 , 1E+2 , \"x \\u0041 \\\" y\" "
                                         "] ,\n\"\\\\\":{ } , \"e\" : [ ] } "))),
               "{\"a b\":[1.50,-0,1E+2,\"x \\u0041 \\\" y\"],\"\\\\\":{},\"e\":[]}");
    EXPECT_STR(print(t, read_json(t, STR(" \"a  b\" "))), "\"a  b\"");
    EXPECT_STR(print(t, read_json(t, STR("{ \"\\\"k \\\" \" : 1 }"))), "{\"\\\"k \\\" \":1}");
    EXPECT_STR(print(t, node_at(read_json(t, STR("[1, [ 2, 3 ] ]")), 1)), "[2,3]");
}

TEST(json, printing_adds_nothing_before_the_value)
{
    struct buf buf;

    buf_init(&buf, &heap_libc, 0);
    buf_str(&buf, STR("n is "));
    node_print(read_json(t, STR("[ 5 ]")), &buf);
    EXPECT_STR(buf_view(&buf), "n is [5]");
    buf_fini(&buf);
}

TEST(json, integers_are_taken_only_if_they_are_integers_in_range)
{
    static const struct {
        str text;
        bool valid;
        int64_t value;
    } cases[] = {
        { STR_INIT("0"), true, 0 },
        { STR_INIT("-0"), true, 0 },
        { STR_INIT("-17"), true, -17 },
        { STR_INIT("9223372036854775807"), true, INT64_MAX },
        { STR_INIT("-9223372036854775808"), true, INT64_MIN },
        { STR_INIT("9223372036854775808"), false, 0 },
        { STR_INIT("-9223372036854775809"), false, 0 },
        { STR_INIT("99999999999999999999999"), false, 0 },
        { STR_INIT("1.0"), false, 0 },
        { STR_INIT("1e2"), false, 0 },
        { STR_INIT("\"1\""), false, 0 },
        { STR_INIT("null"), false, 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 42;

        EXPECT_EQ(node_to_i64(read_json(t, cases[i].text), &value), cases[i].valid);
        EXPECT_EQ(value, cases[i].valid ? cases[i].value : 42);
    }
    EXPECT(!node_to_i64(NULL, &(int64_t){ 0 }));
}

TEST(json, looking_for_what_is_not_there_finds_nothing)
{
    struct node *root = read_json(t, STR("{\"a\":[1]}"));

    EXPECT(node_find(root, "b") == NULL);
    EXPECT(node_find(root, "") == NULL);
    EXPECT(node_find(root->first, "a") == NULL);
    EXPECT(node_find(NULL, "a") == NULL);
    EXPECT(node_at(NULL, 0) == NULL);
    EXPECT(node_at(root->first, 1) == NULL);
}

TEST(json, writing_puts_commas_where_they_belong)
{
    struct buf buf;

    buf_init(&buf, &heap_libc, 0);
    json_open(&buf, '{');
    json_key(&buf, "a");
    json_open(&buf, '[');
    json_u64(&buf, UINT64_MAX);
    json_i64(&buf, INT64_MIN);
    json_open(&buf, '{');
    json_close(&buf, '}');
    json_null(&buf);
    json_close(&buf, ']');
    json_key_str(&buf, STR("b\""));
    json_bool(&buf, true);
    json_key(&buf, "c");
    json_raw(&buf, STR_NONE);
    json_key(&buf, "d");
    json_time(&buf, 1777593600000);
    json_key(&buf, "e");
    json_text(&buf, NULL);
    json_close(&buf, '}');
    EXPECT_STR(buf_view(&buf),
               "{\"a\":[18446744073709551615,-9223372036854775808,{},null],"
               "\"b\\\"\":true,\"c\":null,\"d\":\"2026-05-01T00:00:00.000Z\",\"e\":null}");
    EXPECT_STR(print(t, read_json(t, buf_view(&buf))), buf_text(&buf));
    buf_fini(&buf);
}

TEST(json, a_string_that_is_written_can_be_read_again)
{
    char every[256];
    struct buf buf;

    for (int i = 0; i < 255; i++)
        every[i] = (char)(i + 1);
    buf_init(&buf, &heap_libc, 0);
    json_str(&buf, (str){ every, 127 });
    EXPECT_STR(read_json(t, buf_view(&buf))->text,
               arena_text(&t->scope.arena, (str){ every, 127 }));
    buf_clear(&buf);
    json_str(&buf, (str){ every, 255 }); /* what is no UTF-8 is replaced, never passed on */
    EXPECT(str_is_utf8(buf_view(&buf), false));
    read_json(t, buf_view(&buf));
    buf_clear(&buf);
    json_str(&buf, STR("a\xFF\xE2\x82z\0\x7F"));
    EXPECT_STR(buf_view(&buf), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\\u0000\x7F\"");
    buf_fini(&buf);
}

/* ---- Looking into a text without reading it ---- */

static const char *const scanned[] = {
    "{}", "[]", "0", "-1.50e+3", "null", "true", "\"\"", "\"a\\\"]}\\\\\"", " [ 1 , [ ] , { } ] ",
    "{ \"a b\" : \"  , \" , \"\\u0061\\n\":[\"]\",{\"x\":[[[]]]}] ,\"\":null }",
    "\n{\"k\":\t[true,false,null,0.10,\"\xC3\xA9\"]}\n",
};

static void expect_same(struct test *t, str text, const struct node *node)
{
    struct scope *scope = &t->scope;
    struct json_scan scan;
    struct node peeked;
    str key, value;

    json_peek(&scope->arena, text, &peeked);
    EXPECT_EQ(peeked.kind, node->kind);
    EXPECT_EQ(peeked.truth, node->truth);
    EXPECT(str_eq(peeked.raw, node->raw) && str_eq(peeked.text, node->text));
    json_scan_begin(&scan, text);
    for (const struct node *child = node->first; child; child = child->next) {
        EXPECT(json_scan_next(&scan, &key, &value));
        EXPECT(str_eq(value, child->raw));
        if (node->kind == NODE_OBJECT)
            EXPECT(str_eq(json_unescape(&scope->arena, key), child->key));
        expect_same(t, value, child);
    }
    EXPECT(!json_scan_next(&scan, &key, &value));
    EXPECT_EQ(json_scan_is_whole(&scan), node->kind == NODE_OBJECT || node->kind == NODE_ARRAY);
}

TEST(json, a_scan_finds_what_reading_finds_and_compacts_as_printing_does)
{
    struct buf buf;

    buf_init(&buf, &heap_libc, 0);
    for (size_t i = 0; i < sizeof scanned / sizeof scanned[0]; i++) {
        const struct node *node = read_json(t, str_of(scanned[i]));

        expect_same(t, str_of(scanned[i]), node);
        buf_clear(&buf);
        json_compact(&buf, str_of(scanned[i]));
        EXPECT_STR(buf_view(&buf), print(t, node).data);
    }
    buf_fini(&buf);
}

/* The sanitizers see what is read. */
TEST(json, a_scan_of_a_text_cut_or_changed_at_any_byte_reads_nothing_outside_it)
{
    for (size_t i = 0; i < sizeof scanned / sizeof scanned[0]; i++)
        for (size_t size = 0, whole = strlen(scanned[i]); size < whole; size++)
            for (const char *byte = "x\"\\{[]}:,"; *byte; byte++) {
                char *text = malloc(size + 1);
                struct json_scan scan;
                struct node peeked;
                str key, value;

                memcpy(text, scanned[i], size);
                if (size > 0)
                    text[size / 2] = *byte;
                json_peek(&t->scope.arena, (str){ text, size }, &peeked);
                json_scan_begin(&scan, (str){ text, size });
                while (json_scan_next(&scan, &key, &value))
                    json_unescape(&t->scope.arena, key.data ? key : STR(""));
                (void)json_member(&t->scope.arena, (str){ text, size }, STR("k"), &value);
                free(text);
            }
}
