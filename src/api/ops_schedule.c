/* ops_schedule.c - schedule.preview: when a schedule is due next. */
#include "api/ops_int.h"
#include "base/time.h"
#include "calendar/calendar.h"

static pawl_status read_zone(const struct op_call *call, struct zone *out)
{
    str name = op_text(call, "zone");
    const char *members = zone_members(name.data ? name : STR("UTC"));
    struct buf text;
    struct node *node;
    str kept;

    if (!members)
        return query_refuse(call, "zone", "a time zone like Europe/Berlin or UTC");
    buf_init(&text, call->scope->arena.heap, 0);
    buf_fmt(&text, "{%s}", members);
    kept = buf_take(&text, &call->scope->arena);
    TRY_MEMORY(call->scope, kept.data);
    TRY(node_read_json(call->scope, kept, &node));
    return zone_read(node, &call->scope->arena, out) ? PAWL_OK : scope_no_memory(call->scope);
}

static pawl_status read_schedule(const struct op_call *call, struct schedule *out)
{
    str cron = op_text(call, "cron"), every = op_text(call, "every");
    char problem[CRON_PROBLEM_SIZE];
    int64_t ms;

    *out = (struct schedule){ .is_cron = cron.data != NULL };
    if (!cron.data == !every.data)
        return query_refuse(call, "cron", "either it or every");
    if (every.data && (!duration_parse(every, &ms) || ms < 1000 || ms % 1000 != 0))
        return query_refuse(call, "every", "a duration of whole seconds like 15m");
    if (every.data) {
        out->every = ms / 1000;
        return op_text(call, "zone").data ? query_refuse(call, "zone", "cron beside it") : PAWL_OK;
    }
    if (!cron_parse(cron, &out->cron, problem))
        return scope_fail(call->scope, PAWL_INVALID_QUERY, "the filter cron: %s", problem);
    return read_zone(call, &out->zone);
}

static void print_slot(const struct schedule *schedule, int64_t slot, struct buf *out)
{
    char local[LOCAL_TEXT_SIZE];

    local_print(&schedule->zone, slot, local);
    json_open(out, '{');
    json_put_time(out, "slot", slot * 1000);
    json_put_text(out, "local", local);
    json_close(out, '}');
}

pawl_status op_schedule_preview(struct op_call *call, struct buf *out)
{
    int64_t at_ms = engine_now_ms(op_engine(call)), slot;
    struct schedule schedule;
    uint32_t limit;
    str after;

    TRY(query_check(call, false));
    TRY(query_limit(call, &limit));
    after = op_text(call, "after");
    if (after.data && !query_time_of(after, &at_ms))
        return query_refuse(call, "after", "a time like 2026-05-01T00:00:00Z");
    TRY(read_schedule(call, &schedule));
    slot = at_ms / 1000;
    json_put_open(out, "slots", '[');
    for (uint32_t i = 0; i < limit; i++) {
        slot = slot_after(&schedule, slot);
        if (slot > TIME_LAST_MS / 1000)
            break;
        print_slot(&schedule, slot, out);
    }
    json_close(out, ']');
    return PAWL_OK;
}
