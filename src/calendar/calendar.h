/* calendar.h - when a schedule is due: cron expressions, time zones, the next slot.
 *
 * Pure: no clock, no files. Instants are seconds since 1970-01-01T00:00:00Z.
 *
 * A compiled schedule keeps what it needs of its zone as JSON members (zone_rows; tools/gen-zones
 * writes them when pawl is built):
 *   "offsets":[STANDARD] or [STANDARD,SUMMER]  seconds east of Greenwich
 *   "begins":[MONTH,WEEK,WEEKDAY,SECOND]       when SUMMER begins each year, by the local clock;
 *                                              WEEK 5 is the last one, WEEKDAY 0 is Sunday, and
 *                                              SECOND counts from midnight, also past the day
 *   "ends":[...]                               when it ends
 *   "changes":[[AT,OFFSET],...]                the offsets until that rule counts, in order: the
 *                                              first also counts before, the rule from the last on
 * So it means the same on every machine, and for ever. */
#ifndef PAWL_CALENDAR_CALENDAR_H
#define PAWL_CALENDAR_CALENDAR_H

#include "base/node.h"

/* ---- Zones: zone.c ---- */

struct zone_row {
    const char *name, *members;
};
extern const struct zone_row zone_rows[]; /* by name */
extern const uint32_t zone_row_count;

struct zone_day { /* a day of each year, and a second of it */
    int64_t month, week, weekday, second;
};
struct zone_change {
    int64_t at, offset;
};
struct zone {
    int64_t standard, summer; /* the same where there is no summer time */
    struct zone_day begins, ends;
    const struct zone_change *changes;
    uint32_t change_count;
};

const char *zone_members(str name); /* NULL: there is no such zone */
/* Read the members of `node`; `zone` may point into the arena. False: they are no zone's. */
bool zone_read(const struct node *node, struct arena *arena, struct zone *out);
int64_t zone_offset(const struct zone *zone, int64_t at);
/* The instant when local clocks show `local` (seconds as if it were UTC) for the first time. Where
 * they skip it, the instant of the skip. *again: they show it a second time then; else the same. */
int64_t zone_instant(const struct zone *zone, int64_t local, int64_t *again);

/* ---- Cron expressions: cron.c ---- */

struct cron {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays; /* bit n: n is in it */
    bool any_day, any_weekday;              /* if neither, a date that is in one of them counts */
};

#define CRON_PROBLEM_SIZE 160
/* "minute hour day month weekday", or @daily and its like. False: `problem` says what is wrong. */
bool cron_parse(str text, struct cron *out, char problem[CRON_PROBLEM_SIZE]);

/* ---- Slots: slot.c ---- */

struct schedule {
    bool is_cron;
    struct cron cron;
    struct zone zone;
    int64_t every; /* seconds between two slots, from 1970 on; not of cron */
};

#define SLOT_NONE INT64_MAX /* no date of the next eight years, which have all dates there are */
/* The first slot after `after`. */
int64_t slot_after(const struct schedule *schedule, int64_t after);
/* How many slots are after `after` and not after `until`; at most `most`. */
uint32_t slot_count(const struct schedule *schedule, int64_t after, int64_t until, uint32_t most);
/* The first of the last `count` slots that are after `after` and not after `until`; SLOT_NONE. */
int64_t slot_of_last(const struct schedule *schedule, int64_t after, int64_t until, uint32_t count);

/* "2026-05-01T02:00:00+02:00". */
#define LOCAL_TEXT_SIZE 32
void local_print(const struct zone *zone, int64_t at, char out[LOCAL_TEXT_SIZE]);

#endif
