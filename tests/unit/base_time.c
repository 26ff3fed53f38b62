/* base_time.c - what instants and durations promise. */
#include "base/time.h"
#include "lib/test.h"

static void expect_time(const char *text, int64_t at_ms, const char *printed)
{
    char out[TIME_TEXT_SIZE];
    int64_t found = -1;

    if (!time_parse(str_of(text), &found))
        test_fail(__FILE__, __LINE__, "expected '%s' to be an instant", text);
    EXPECT_EQ(found, at_ms);
    time_print(found, out);
    EXPECT_TEXT(out, printed);
}

TEST(time, instants_are_read_at_any_offset_and_printed_in_utc) /* X12 */
{
    expect_time("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000Z");
    expect_time("2026-05-01T00:00:00.000Z", 1777593600000, "2026-05-01T00:00:00.000Z");
    expect_time("2026-05-01t02:30:00z", 1777602600000, "2026-05-01T02:30:00.000Z");
    expect_time("1985-04-12T23:20:50.52Z", 482196050520, "1985-04-12T23:20:50.520Z");
    expect_time("1996-12-19T16:39:57-08:00", 851042397000, "1996-12-20T00:39:57.000Z");
    expect_time("1937-01-01T12:00:27.87+00:20", -1041337172130, "1937-01-01T11:40:27.870Z");
    expect_time("2026-05-01T00:00:00-00:00", 1777593600000, "2026-05-01T00:00:00.000Z");
    expect_time("1969-12-31T23:59:59.9999Z", -1, "1969-12-31T23:59:59.999Z");
    expect_time("2000-02-29T12:00:00Z", 951825600000, "2000-02-29T12:00:00.000Z");
    expect_time("2026-05-01T00:00:00.00099999999999999999999Z", 1777593600000,
                "2026-05-01T00:00:00.000Z");
}

TEST(time, the_first_and_the_last_instant_are_in_range)
{
    expect_time("0000-01-01T00:00:00Z", INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z");
    expect_time("0000-02-29T00:00:00Z", INT64_C(-62162121600000), "0000-02-29T00:00:00.000Z");
    expect_time("9999-12-31T23:59:59.999Z", INT64_C(253402300799999), "9999-12-31T23:59:59.999Z");
    expect_time("9999-12-31T22:00:00-01:59", INT64_C(253402300740000), "9999-12-31T23:59:00.000Z");
}

TEST(time, a_leap_second_counts_as_the_next_second)
{
    expect_time("1990-12-31T23:59:60Z", 662688000000, "1991-01-01T00:00:00.000Z");
    expect_time("1990-12-31T15:59:60.5-08:00", 662688000500, "1991-01-01T00:00:00.500Z");
}

TEST(time, what_is_no_instant_is_refused)
{
    static const char *const bad[] = {
        "",
        "2026",
        "2026-05-01",
        "2026-05-01T00:00:00",
        "2026-05-01T00:00Z",
        "2026-05-01 00:00:00Z",
        "2026-05-01T00:00:00.Z",
        "2026-05-01T00:00:00,5Z",
        "2026-05-01T00:00:00Z ",
        " 2026-05-01T00:00:00Z",
        "2026-5-1T00:00:00Z",
        "+2026-05-01T00:00:00Z",
        "-001-05-01T00:00:00Z",
        "20260501T000000Z",
        "2026-00-01T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-05-01T24:00:00Z",
        "2026-05-01T00:60:00Z",
        "2026-05-01T00:00:61Z",
        "2026-05-01T12:00:60Z",
        "1990-12-31T23:59:60-08:00",
        "2026-05-01T00:00:00+24:00",
        "2026-05-01T00:00:00+01:60",
        "2026-05-01T00:00:00+0100",
        "2026-05-01T00:00:00+01",
        "2026-05-01T00:00:00UTC",
        "2026-05-01T00:00:00Z+01:00",
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "9999-12-31T23:59:60Z",
        "10000-01-01T00:00:00Z",
    };
    int64_t at_ms = 42;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (time_parse(str_of(bad[i]), &at_ms))
            test_fail(__FILE__, __LINE__, "expected '%s' to be refused", bad[i]);
    EXPECT(!time_parse(STR_NONE, &at_ms));
    EXPECT(!time_parse(STR("2026-05-01T00:00:00\0Z"), &at_ms));
    EXPECT_EQ(at_ms, 42);
}

TEST(time, every_day_of_ten_thousand_years_is_printed_and_read_again)
{
    int64_t step_ms = test_is_long() ? 86400000 - 1 : 11 * 86400000 - 1;
    char out[TIME_TEXT_SIZE];
    int64_t found;

    for (int64_t at_ms = INT64_C(-62167219200000); at_ms < INT64_C(253402300800000);
         at_ms += step_ms) {
        time_print(at_ms, out);
        if (!time_parse(str_of(out), &found) || found != at_ms)
            test_fail(__FILE__, __LINE__, "%s is not %" PRId64, out, at_ms);
    }
}

TEST(time, what_lies_outside_the_calendar_is_clamped)
{
    char out[TIME_TEXT_SIZE];

    time_print(INT64_MIN, out);
    EXPECT_TEXT(out, "0000-01-01T00:00:00.000Z");
    time_print(INT64_MAX, out);
    EXPECT_TEXT(out, "9999-12-31T23:59:59.999Z");
}

static void expect_duration(const char *text, int64_t ms, const char *printed)
{
    char out[TIME_TEXT_SIZE];
    int64_t found = -1;

    if (!duration_parse(str_of(text), &found))
        test_fail(__FILE__, __LINE__, "expected '%s' to be a duration", text);
    EXPECT_EQ(found, ms);
    duration_print(found, out);
    EXPECT_TEXT(out, printed);
}

TEST(time, durations_are_printed_in_their_shortest_exact_form)
{
    expect_duration("500ms", 500, "500ms");
    expect_duration("30s", 30000, "30s");
    expect_duration("90s", 90000, "90s");
    expect_duration("60s", 60000, "1m");
    expect_duration("5m", 300000, "5m");
    expect_duration("72h", 259200000, "3d");
    expect_duration("25h", 90000000, "25h");
    expect_duration("7d", 604800000, "7d");
    expect_duration("1500ms", 1500, "1500ms");
    expect_duration("0d", 0, "0s");
    expect_duration("36525d", INT64_C(3155760000000), "36525d");
    expect_duration("3155760000000ms", INT64_C(3155760000000), "36525d");
}

TEST(time, what_is_no_duration_is_refused)
{
    static const char *const bad[] = {
        "",
        "s",
        "5",
        "5 s",
        "-5s",
        "+5s",
        "1.5h",
        "5S",
        "5M",
        "5min",
        "1h30m",
        "5s ",
        " 5s",
        "5ss",
        "5mss",
        "36526d",
        "5\t",
        "1w",
        "0x5s",
        "1e3s",
        "5us",
        "ms",
        "3155760000001ms",
        "18446744073709551615d",
        "18446744073709551616ms",
        "99999999999999999999999999s",
    };
    int64_t ms = 42;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (duration_parse(str_of(bad[i]), &ms))
            test_fail(__FILE__, __LINE__, "expected '%s' to be refused", bad[i]);
    EXPECT(!duration_parse(STR_NONE, &ms));
    EXPECT_EQ(ms, 42);
}
