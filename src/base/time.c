/* time.c - instants and durations as text, in the proleptic Gregorian calendar. */
#include "base/time.h"
#include <stdio.h>

#define DAY_MS          INT64_C(86400000)
#define AT_MS_MIN       INT64_C(-62167219200000) /* 0000-01-01T00:00:00.000Z */
#define DURATION_MS_MAX (36525 * DAY_MS)         /* 100 years */

/* The calendar repeats every 400 years. Days are counted from 1 March of the year -400:
 * so nothing here is negative, and the leap day is the last day of its year. */
#define ERA_YEARS  400
#define ERA_DAYS   146097
#define EPOCH_DAYS (719468 + ERA_DAYS) /* 1970-01-01 */

int64_t days_from_date(struct date date)
{
    int64_t year = date.year + ERA_YEARS - (date.month <= 2);
    int64_t month = (date.month + 9) % 12;
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;

    return year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - EPOCH_DAYS;
}

struct date date_from_days(int64_t days)
{
    int64_t era = (days + EPOCH_DAYS) / ERA_DAYS, day_of_era = (days + EPOCH_DAYS) % ERA_DAYS;
    int64_t year =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / (ERA_DAYS - 1)) / 365;
    int64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * day_of_year + 2) / 153;

    return (struct date){
        .year = (era - 1) * ERA_YEARS + year + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = day_of_year - (153 * month + 2) / 5 + 1,
    };
}

bool date_exists(struct date date)
{
    static const int8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0);

    if (date.month < 1 || date.month > 12 || date.day < 1)
        return false;
    return date.day <= days[date.month - 1] + (leap && date.month == 2);
}

/* Take exactly `count` digits off the front. */
static bool take_digits(str *text, size_t count, int64_t *out)
{
    *out = 0;
    if (text->size < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (text->data[i] < '0' || text->data[i] > '9')
            return false;
        *out = *out * 10 + (text->data[i] - '0');
    }
    *text = str_from(*text, count);
    return true;
}

/* Take one character off the front, if it is one of `any`. */
static bool take_one(str *text, const char *any, char *out)
{
    if (text->size == 0 || text->data[0] == '\0' || !strchr(any, text->data[0]))
        return false;
    if (out)
        *out = text->data[0];
    *text = str_from(*text, 1);
    return true;
}

static bool take_date(str *text, int64_t *out_days)
{
    struct date date;

    if (!take_digits(text, 4, &date.year) || !take_one(text, "-", NULL) ||
        !take_digits(text, 2, &date.month) || !take_one(text, "-", NULL) ||
        !take_digits(text, 2, &date.day) || !date_exists(date))
        return false;
    *out_days = days_from_date(date);
    return true;
}

static bool take_hour_minute(str *text, int64_t *out_ms)
{
    int64_t hour, minute;

    if (!take_digits(text, 2, &hour) || !take_one(text, ":", NULL) ||
        !take_digits(text, 2, &minute) || hour > 23 || minute > 59)
        return false;
    *out_ms = (hour * 60 + minute) * 60000;
    return true;
}

/* ".123456": the first three digits count. No point at all is no fraction. */
static bool take_fraction(str *text, int64_t *out_ms)
{
    int64_t ms = 0, weight = 100, digit;
    size_t size_before;

    if (!take_one(text, ".", NULL)) {
        *out_ms = 0;
        return true;
    }
    size_before = text->size;
    for (; take_digits(text, 1, &digit); weight /= 10)
        ms += digit * weight;
    *out_ms = ms;
    return text->size < size_before;
}

static bool take_offset(str *text, int64_t *out_ms)
{
    char sign;

    *out_ms = 0;
    if (take_one(text, "Zz", NULL))
        return true;
    if (!take_one(text, "+-", &sign) || !take_hour_minute(text, out_ms))
        return false;
    if (sign == '-')
        *out_ms = -*out_ms;
    return true;
}

bool time_parse(str text, int64_t *out_at_ms)
{
    int64_t days, minute_ms, seconds, fraction_ms, offset_ms, at_ms;

    if (!take_date(&text, &days) || !take_one(&text, "Tt", NULL) ||
        !take_hour_minute(&text, &minute_ms) || !take_one(&text, ":", NULL) ||
        !take_digits(&text, 2, &seconds) || seconds > 60 || !take_fraction(&text, &fraction_ms) ||
        !take_offset(&text, &offset_ms) || text.size > 0)
        return false;
    at_ms = days * DAY_MS + minute_ms + seconds * 1000 - offset_ms;
    /* A second 60 exists only at the end of a day in UTC. */
    if (seconds == 60 && at_ms % DAY_MS != 0)
        return false;
    at_ms += fraction_ms;
    if (at_ms < AT_MS_MIN || at_ms > TIME_LAST_MS)
        return false;
    *out_at_ms = at_ms;
    return true;
}

static void put_digits(char *out, uint64_t number, int count)
{
    while (count-- > 0) {
        out[count] = (char)('0' + number % 10);
        number /= 10;
    }
}

/* By hand, since an entry has several: printf() needs five times as long. */
void time_print(int64_t at_ms, char out[TIME_TEXT_SIZE])
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    int64_t days, rest;
    struct date date;

    at_ms = at_ms < AT_MS_MIN ? AT_MS_MIN : at_ms > TIME_LAST_MS ? TIME_LAST_MS : at_ms;
    rest = (at_ms - AT_MS_MIN) % DAY_MS; /* AT_MS_MIN is a midnight */
    days = (at_ms - rest) / DAY_MS;
    date = date_from_days(days);
    memcpy(out, form, sizeof form);
    put_digits(out, (uint64_t)date.year, 4);
    put_digits(out + 5, (uint64_t)date.month, 2);
    put_digits(out + 8, (uint64_t)date.day, 2);
    put_digits(out + 11, (uint64_t)(rest / 3600000), 2);
    put_digits(out + 14, (uint64_t)(rest / 60000 % 60), 2);
    put_digits(out + 17, (uint64_t)(rest / 1000 % 60), 2);
    put_digits(out + 20, (uint64_t)(rest % 1000), 3);
}

struct unit {
    str name;
    int64_t ms;
};

static const struct unit units[] = {
    /* the largest first */
    { STR_INIT("d"), DAY_MS }, { STR_INIT("h"), 3600000 }, { STR_INIT("m"), 60000 },
    { STR_INIT("s"), 1000 },   { STR_INIT("ms"), 1 },
};

#define UNIT_COUNT (sizeof units / sizeof units[0])

bool duration_parse(str text, int64_t *out_ms)
{
    size_t digits = str_span(text, "0123456789");
    uint64_t n;

    if (!str_to_u64((str){ text.data, digits }, &n))
        return false;
    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (str_eq(str_from(text, digits), units[i].name)) {
            if (n > (uint64_t)(DURATION_MS_MAX / units[i].ms))
                return false;
            *out_ms = (int64_t)n * units[i].ms;
            return true;
        }
    return false;
}

void duration_print(int64_t ms, char out[TIME_TEXT_SIZE])
{
    size_t i = 0;

    while (ms % units[i].ms != 0)
        i++;
    if (ms == 0)
        (void)snprintf(out, TIME_TEXT_SIZE, "0s");
    else
        (void)snprintf(out, TIME_TEXT_SIZE, "%lld%s", (long long)(ms / units[i].ms),
                       units[i].name.data);
}
