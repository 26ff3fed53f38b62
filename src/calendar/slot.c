/* slot.c - which instants a schedule means.
 *
 * A slot of cron is a time that local clocks show. Where they skip it, the slot is the instant of
 * the skip, once for all times that are skipped; where they show it twice, it is the first of both.
 * A cron expression of every hour means real time instead: each instant whose local time it has. */
#include "base/time.h"
#include "calendar/calendar.h"

#define DAY       86400
#define HOUR      3600
#define MARGIN    (4 * HOUR) /* further apart, local times are in the order of their instants */
#define DAYS_MAX  (8 * 366 + 2)
#define ALL_HOURS 0xffffffu
#define LAST_MAX  100u

static bool has_date(const struct cron *cron, int64_t days)
{
    struct date date = date_from_days(days);
    bool is_day = cron->days >> date.day & 1;
    bool is_weekday = cron->weekdays >> ((days + 4) % 7 + 7) % 7 & 1;

    if (!(cron->months >> date.month & 1))
        return false;
    return cron->any_day || cron->any_weekday ? is_day && is_weekday : is_day || is_weekday;
}

/* The first instant after `after` that this local time stands for. */
static int64_t instant_after(const struct schedule *schedule, int64_t local, int64_t after)
{
    int64_t again, first = zone_instant(&schedule->zone, local, &again);

    if (schedule->cron.hours != ALL_HOURS)
        return first > after ? first : SLOT_NONE;
    if (first + zone_offset(&schedule->zone, first) != local)
        return SLOT_NONE; /* skipped: it is no real time */
    return first > after ? first : again > after ? again : SLOT_NONE;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Are local times of that day in the order of their instants? No clock changes near it. */
static bool is_steady(const struct zone *zone, int64_t days)
{
    return zone_offset(zone, (days - 2) * DAY) == zone_offset(zone, (days + 3) * DAY);
}

/* The first slot of that local day after `after`. */
static int64_t slot_of_day(const struct schedule *schedule, int64_t days, int64_t after)
{
    const struct cron *cron = &schedule->cron;
    int64_t margin = is_steady(&schedule->zone, days) ? 0 : MARGIN, found = SLOT_NONE, until = 0;
    int64_t near = after + zone_offset(&schedule->zone, after) - margin - days * DAY;

    for (int64_t minute = near > 0 ? near / 60 : 0; minute < 1440; minute++) {
        if (!(cron->hours >> minute / 60 & 1) || !(cron->minutes >> minute % 60 & 1))
            continue;
        if (found != SLOT_NONE && minute > until)
            break;
        found = earlier(found, instant_after(schedule, days * DAY + minute * 60, after));
        if (found != SLOT_NONE && until == 0)
            until = minute + margin / 60;
    }
    return found;
}

static int64_t cron_after(const struct schedule *schedule, int64_t after)
{
    int64_t local = after + zone_offset(&schedule->zone, after);
    int64_t today = local / DAY - (local % DAY < 0), found = SLOT_NONE;

    for (int64_t days = today - 1; days < today + DAYS_MAX && found == SLOT_NONE; days++)
        if (has_date(&schedule->cron, days))
            found = slot_of_day(schedule, days, after);
    return found;
}

int64_t slot_after(const struct schedule *schedule, int64_t after)
{
    int64_t rest;

    if (schedule->is_cron)
        return cron_after(schedule, after);
    rest = (after % schedule->every + schedule->every) % schedule->every;
    return after - rest + schedule->every;
}

uint32_t slot_count(const struct schedule *schedule, int64_t after, int64_t until, uint32_t most)
{
    uint32_t count = 0;

    for (int64_t at = slot_after(schedule, after); at <= until && at != SLOT_NONE && count < most;
         at = slot_after(schedule, at))
        count++;
    return count;
}

/* Looks back an hour, two, four, ..., so that what is read is near what is asked for. */
int64_t slot_of_last(const struct schedule *schedule, int64_t after, int64_t until, uint32_t count)
{
    int64_t last[LAST_MAX], from = until;
    uint32_t found = 0;

    if (count == 0 || until <= after)
        return SLOT_NONE;
    count = count < LAST_MAX ? count : LAST_MAX;
    for (int64_t span = HOUR; found < count && from > after; span *= 2) {
        from = until - span > after ? until - span : after;
        found = 0;
        for (int64_t at = slot_after(schedule, from); at <= until && at != SLOT_NONE;
             at = slot_after(schedule, at))
            last[found++ % LAST_MAX] = at;
    }
    return found == 0 ? SLOT_NONE : last[(found - (found < count ? found : count)) % LAST_MAX];
}
