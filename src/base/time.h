/* time.h - instants and durations as text. Reads no clock. */
#ifndef PAWL_BASE_TIME_H
#define PAWL_BASE_TIME_H

#include "base/str.h"

#define TIME_TEXT_SIZE 32

/* RFC 3339, any offset, any number of fraction digits (cut to milliseconds); years
 * 0000..9999; a leap second counts as the next second. False if it is not one. */
bool time_parse(str text, int64_t *out_at_ms);

#define TIME_LAST_MS INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

/* UTC with milliseconds and a Z; at_ms outside years 0000..9999 is clamped. */
void time_print(int64_t at_ms, char out[TIME_TEXT_SIZE]);

/* "500ms", "30s", "5m", "72h", "7d": a whole number and one unit, at most 100 years. */
bool duration_parse(str text, int64_t *out_ms);

/* A date of the proleptic Gregorian calendar, from the year -399 on, and its number of days since
 * 1970-01-01. */
struct date {
    int64_t year, month, day;
};
int64_t days_from_date(struct date date);
struct date date_from_days(int64_t days);
bool date_exists(struct date date);

/* From one moment to another, both inclusive; each end may be open. */
struct time_span {
    bool has_after, has_before;
    int64_t after_ms, before_ms;
};
static inline bool time_is_within(const struct time_span *span, int64_t at_ms)
{
    return (!span->has_after || at_ms >= span->after_ms) &&
           (!span->has_before || at_ms <= span->before_ms);
}

/* The shortest exact form of the above: 90000 is "90s", 60000 is "1m". */
void duration_print(int64_t ms, char out[TIME_TEXT_SIZE]);

#endif
