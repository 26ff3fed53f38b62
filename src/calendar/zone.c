/* zone.c - what local clocks show, and when. */
#include "base/time.h"
#include "calendar/calendar.h"
#include <stdio.h>

#define DAY 86400

const char *zone_members(str name)
{
    uint32_t low = 0, high = zone_row_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = str_compare(str_of(zone_rows[middle].name), name);

        if (order == 0)
            return zone_rows[middle].members;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- Reading ---- */

/* So many integers; false: `node` is something else. */
static bool read_numbers(const struct node *node, uint32_t count, int64_t *out)
{
    const struct node *item = node ? node->first : NULL;

    if (!node || node->kind != NODE_ARRAY || node->count != count)
        return false;
    for (uint32_t i = 0; i < count; i++, item = item->next)
        if (!node_to_i64(item, &out[i]))
            return false;
    return true;
}

static bool read_day(const struct node *node, struct zone_day *out)
{
    int64_t numbers[4];

    if (!read_numbers(node, 4, numbers))
        return false;
    *out = (struct zone_day){ numbers[0], numbers[1], numbers[2], numbers[3] };
    return out->month >= 1 && out->month <= 12 && out->week >= 1 && out->week <= 5 &&
           out->weekday >= 0 && out->weekday <= 6 && out->second > -8 * DAY &&
           out->second < 8 * DAY;
}

static bool offset_is_valid(int64_t offset)
{
    return offset > -DAY && offset < DAY;
}

static bool read_changes(const struct node *node, struct arena *arena, struct zone *out)
{
    struct zone_change *changes;
    uint32_t count = 0;

    if (!node)
        return true;
    if (node->kind != NODE_ARRAY)
        return false;
    changes = ARENA_ARRAY(arena, struct zone_change, (size_t)node->count + 1);
    for (const struct node *item = node->first; item && changes; item = item->next, count++) {
        int64_t numbers[2];

        if (!read_numbers(item, 2, numbers) || !offset_is_valid(numbers[1]) ||
            (count > 0 && numbers[0] <= changes[count - 1].at))
            return false;
        changes[count] = (struct zone_change){ numbers[0], numbers[1] };
    }
    out->changes = changes;
    out->change_count = count;
    return changes != NULL;
}

bool zone_read(const struct node *node, struct arena *arena, struct zone *out)
{
    const struct node *offsets = node_find(node, "offsets");
    int64_t numbers[2] = { 0, 0 };

    *out = (struct zone){ 0 };
    if (!offsets || !read_numbers(offsets, offsets->count == 1 ? 1 : 2, numbers))
        return false;
    out->standard = numbers[0];
    out->summer = offsets->count == 1 ? numbers[0] : numbers[1];
    if (!offset_is_valid(out->standard) || !offset_is_valid(out->summer))
        return false;
    if (offsets->count == 2 && (!read_day(node_find(node, "begins"), &out->begins) ||
                                !read_day(node_find(node, "ends"), &out->ends)))
        return false;
    return read_changes(node_find(node, "changes"), arena, out);
}

/* ---- Offsets ---- */

static int64_t floor_days(int64_t seconds)
{
    return seconds / DAY - (seconds % DAY < 0);
}

/* 1970-01-01 was a Thursday. */
static int64_t weekday_of(int64_t days)
{
    return ((days + 4) % 7 + 7) % 7;
}

/* When it happens in a year, by the local clock. */
static int64_t second_of(const struct zone_day *day, int64_t year)
{
    struct date date = { year, day->month, 1 };
    int64_t first = days_from_date(date);

    date.day += (day->weekday - weekday_of(first) + 7) % 7 + 7 * (day->week - 1);
    while (!date_exists(date)) /* the last of its month */
        date.day -= 7;
    return days_from_date(date) * DAY + day->second;
}

static int64_t offset_by_rule(const struct zone *zone, int64_t at)
{
    int64_t year = date_from_days(floor_days(at + zone->standard)).year, begins, ends;
    bool is_summer;

    if (zone->standard == zone->summer)
        return zone->standard;
    begins = second_of(&zone->begins, year) - zone->standard;
    ends = second_of(&zone->ends, year) - zone->summer;
    is_summer = begins < ends ? at >= begins && at < ends : at >= begins || at < ends;
    return is_summer ? zone->summer : zone->standard;
}

int64_t zone_offset(const struct zone *zone, int64_t at)
{
    uint32_t i = zone->change_count;

    if (i == 0 || at >= zone->changes[i - 1].at)
        return offset_by_rule(zone, at);
    while (i > 1 && at < zone->changes[i - 1].at)
        i--;
    return zone->changes[i - 1].offset;
}

/* The instant after `low` and not after `high` from which on the offset is that at `high`. */
static int64_t find_change(const struct zone *zone, int64_t low, int64_t high)
{
    int64_t after = zone_offset(zone, high);

    while (low + 1 < high) {
        int64_t middle = low + (high - low) / 2;

        if (zone_offset(zone, middle) == after)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* No clock is a day or more from Greenwich, and no two changes are within two days. */
int64_t zone_instant(const struct zone *zone, int64_t local, int64_t *again)
{
    int64_t before = zone_offset(zone, local - DAY), after = zone_offset(zone, local + DAY);
    int64_t first = local - before, second = local - after;
    bool is_first = zone_offset(zone, first) == before;
    bool is_second = zone_offset(zone, second) == after;

    if (!is_first && !is_second)
        first = second = find_change(zone, second, first);
    else if (!is_first)
        first = second;
    else if (!is_second)
        second = first;
    *again = second;
    return first;
}

void local_print(const struct zone *zone, int64_t at, char out[LOCAL_TEXT_SIZE])
{
    int64_t offset = zone_offset(zone, at), away = offset < 0 ? -offset : offset;
    char text[TIME_TEXT_SIZE];

    time_print((at + offset) * 1000, text);
    (void)snprintf(out, LOCAL_TEXT_SIZE, "%.19s%c%02d:%02d", text, offset < 0 ? '-' : '+',
                   (int)(away / 3600), (int)(away / 60 % 60));
}
