/* base_text.c - what views, buffers and errors promise about text. */
#include "base/buf.h"
#include "base/limits.h"
#include "base/scope.h"
#include "lib/fault.h"
#include "lib/test.h"

TEST(text, views_compare_by_byte_and_the_shorter_comes_first)
{
    EXPECT(str_compare(STR("a"), STR("b")) < 0);
    EXPECT(str_compare(STR("b"), STR("a")) > 0);
    EXPECT(str_compare(STR("a"), STR("ab")) < 0);
    EXPECT(str_compare(STR("\xFF"), STR("a")) > 0);
    EXPECT(str_compare(STR("a\0b"), STR("a\0a")) > 0);
    EXPECT_EQ(str_compare(STR_NONE, STR("")), 0);
    EXPECT(str_compare(STR_NONE, STR("a")) < 0);
}

TEST(text, utf8_is_taken_strictly)
{
    static const str good[] = {
        STR_INIT(""),
        STR_INIT("a"),
        STR_INIT("\xC2\x80"),
        STR_INIT("\xDF\xBF"),
        STR_INIT("\xE0\xA0\x80"),
        STR_INIT("\xED\x9F\xBF"),
        STR_INIT("\xEE\x80\x80"),
        STR_INIT("\xEF\xBF\xBF"),
        STR_INIT("\xF0\x90\x80\x80"),
        STR_INIT("\xF4\x8F\xBF\xBF"),
    };
    static const str bad[] = {
        STR_INIT("\x80"),
        STR_INIT("\xBF"),
        STR_INIT("\xC0\x80"),
        STR_INIT("\xC1\xBF"),
        STR_INIT("\xC2"),
        STR_INIT("\xC2"
                 "a"),
        STR_INIT("\xE0\x9F\xBF"),
        STR_INIT("\xE1\x80"),
        STR_INIT("\xED\xA0\x80"),
        STR_INIT("\xED\xBF\xBF"),
        STR_INIT("\xF0\x8F\xBF\xBF"),
        STR_INIT("\xF1\x80\x80"),
        STR_INIT("\xF4\x90\x80\x80"),
        STR_INIT("\xF5\x80\x80\x80"),
        STR_INIT("\xFF"),
        STR_INIT("a\xC3"),
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        EXPECT(str_is_utf8(good[i], false));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT(!str_is_utf8(bad[i], true));
    EXPECT(str_is_utf8(STR("a\0b"), true));
    EXPECT(!str_is_utf8(STR("a\0b"), false));
}

TEST(text, blank_means_nothing_but_unicode_white_space)
{
    EXPECT(str_is_blank(STR("")));
    EXPECT(str_is_blank(STR_NONE));
    EXPECT(str_is_blank(STR(" \t\n\v\f\r")));
    EXPECT(str_is_blank(STR("\xC2\x85\xC2\xA0\xE1\x9A\x80\xE2\x80\x80\xE2\x80\x8A\xE2\x80\xA8"
                            "\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\x9F\xE3\x80\x80")));
    EXPECT(!str_is_blank(STR(" a ")));
    EXPECT(!str_is_blank(STR("\xE2\x80\x8B"))); /* the zero width space is none */
    EXPECT(!str_is_blank(STR("\0")));
    EXPECT(!str_is_blank(STR("\xE2\x80"))); /* cut off, and not read past */
}

TEST(text, decimal_numbers_do_not_overflow)
{
    uint64_t n = 42;

    EXPECT(!str_to_u64(STR(""), &n) && !str_to_u64(STR_NONE, &n) && !str_to_u64(STR("-1"), &n));
    EXPECT(!str_to_u64(STR("+1"), &n) && !str_to_u64(STR("1 "), &n) && !str_to_u64(STR("1\0"), &n));
    EXPECT(!str_to_u64(STR("18446744073709551616"), &n));
    EXPECT(!str_to_u64(STR("99999999999999999999"), &n));
    EXPECT_EQ(n, 42);
    EXPECT(str_to_u64(STR("18446744073709551615"), &n) && n == UINT64_MAX);
    EXPECT(str_to_u64(STR("007"), &n) && n == 7);
}

TEST(text, the_hash_is_fnv_1a)
{
    EXPECT(str_hash(STR("")) == UINT64_C(0xCBF29CE484222325));
    EXPECT(str_hash(STR("a")) == UINT64_C(0xAF63DC4C8601EC8C));
    EXPECT(str_hash(STR("foobar")) == UINT64_C(0x85944171F73967E8));
}

TEST(text, a_buffer_takes_what_fits_its_limit_and_is_failed_after)
{
    struct buf buf;

    buf_init(&buf, &heap_libc, 1000);
    for (int i = 0; i < 100; i++)
        buf_str(&buf, STR("0123456789"));
    EXPECT(!buf.failed);
    EXPECT_EQ(strlen(buf_text(&buf)), 1000);
    buf_byte(&buf, 'x');
    EXPECT(buf.failed);
    EXPECT_EQ(buf.size, 1000);
    EXPECT_TEXT(buf_text(&buf), "");
    EXPECT(buf_keep(&buf, &t->scope.arena).data == NULL);
    buf_clear(&buf);
    buf_fmt(&buf, "%s-%d", "a", 7);
    EXPECT_TEXT(buf_text(&buf), "a-7");
    buf_fini(&buf);
}

TEST(text, an_empty_buffer_is_an_empty_text)
{
    struct buf buf;

    buf_init(&buf, &heap_libc, 0);
    EXPECT_EQ(buf.limit, LIMIT_SCOPE);
    EXPECT_STR(buf_view(&buf), "");
    EXPECT_STR(buf_keep(&buf, &t->scope.arena), "");
    EXPECT_TEXT(buf_text(&buf), "");
    buf_fini(&buf);
}

TEST(text, numbers_are_written_whole)
{
    struct buf buf;

    buf_init(&buf, &heap_libc, 0);
    buf_u64(&buf, 0);
    buf_byte(&buf, ' ');
    buf_u64(&buf, UINT64_MAX);
    buf_byte(&buf, ' ');
    buf_i64(&buf, INT64_MIN);
    buf_byte(&buf, ' ');
    buf_i64(&buf, -1);
    EXPECT_STR(buf_view(&buf), "0 18446744073709551615 -9223372036854775808 -1");
    buf_fini(&buf);
}

static void expect_varint(uint64_t n, const char *hex)
{
    struct buf buf, found;

    buf_init(&buf, &heap_libc, 0);
    buf_init(&found, &heap_libc, 0);
    buf_varint(&buf, n);
    for (size_t i = 0; i < buf.size; i++)
        buf_fmt(&found, "%02x", (unsigned char)buf.data[i]);
    EXPECT_TEXT(buf_text(&found), hex);
    buf_fini(&found);
    buf_fini(&buf);
}

TEST(text, varints_are_leb128)
{
    expect_varint(0, "00");
    expect_varint(127, "7f");
    expect_varint(128, "8001");
    expect_varint(300, "ac02");
    expect_varint(UINT64_MAX, "ffffffffffffffffff01");
}

TEST(text, a_buffer_without_memory_is_failed_and_leaks_nothing)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct buf buf;

        buf_init(&buf, &fault.heap, 0);
        for (int i = 0; i < 2000; i++)
            buf_fmt(&buf, "%d,", i);
        EXPECT_EQ(buf.failed, fault.has_failed);
        EXPECT_EQ(buf_text(&buf)[0], fault.has_failed ? '\0' : '0');
        buf_fini(&buf);
    }
}

TEST(text, an_error_keeps_its_status_and_may_wrap_itself)
{
    EXPECT_EQ(scope_fail(&t->scope, PAWL_CONFLICT, "no '%s'", "x"), PAWL_CONFLICT);
    EXPECT_EQ(t->scope.error.status, PAWL_CONFLICT);
    EXPECT_EQ(scope_fail(&t->scope, PAWL_CONFLICT, "loading: %s", t->scope.error.message),
              PAWL_CONFLICT);
    EXPECT_TEXT(t->scope.error.message, "loading: no 'x'");
    EXPECT_EQ(scope_no_memory(&t->scope), PAWL_NO_MEMORY);
    scope_clear(&t->scope);
    EXPECT_EQ(t->scope.error.status, PAWL_OK);
    EXPECT_TEXT(t->scope.error.message, "");
}

TEST(text, an_error_too_long_is_cut_between_characters)
{
    char words[1200];

    for (size_t shift = 0; shift < 4; shift++) {
        memset(words, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof words; i += 3)
            memcpy(words + i, "\xE2\x82\xAC", 4);
        scope_fail(&t->scope, PAWL_CONFLICT, "%s", words);
        EXPECT(str_is_utf8(str_of(t->scope.error.message), false));
        EXPECT(strlen(t->scope.error.message) > 500);
    }
    scope_clear(&t->scope);
}

TEST(str, a_text_is_cut_at_the_first_mark)
{
    str rest = STR("a,,b,"), piece = STR_NONE;
    const char *pieces[] = { "a", "", "b" };

    EXPECT(str_is(str_before(STR("k=v=w"), '='), "k") &&
           str_is(str_after(STR("k=v=w"), '='), "v=w"));
    EXPECT(str_is(str_before(STR("k"), '='), "k") && !str_after(STR("k"), '=').data);
    EXPECT(str_after(STR("k="), '=').data && str_after(STR("k="), '=').size == 0);
    EXPECT(!str_before(STR_NONE, '=').data && !str_has(STR_NONE, '='));
    for (size_t i = 0; i < 3; i++)
        EXPECT(str_take(&rest, ',', &piece) && str_is(piece, pieces[i]));
    EXPECT(!str_take(&rest, ',', &piece)); /* what ends in a mark has no empty piece behind it */
}

TEST(str, trimming_leaves_what_is_inside_and_every_nul)
{
    EXPECT(str_is(str_trim(STR(" \t a b\t"), " \t"), "a b"));
    EXPECT_EQ(str_trim(STR("  "), " ").size, 0);
    EXPECT_EQ(str_trim((str){ " \0 ", 3 }, " ").size, 1);
    EXPECT(!str_trim(STR_NONE, " ").data);
    EXPECT_EQ(str_span(STR("12ab"), "0123456789"), 2);
}
