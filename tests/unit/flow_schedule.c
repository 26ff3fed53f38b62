/* flow_schedule.c - a step that waits for a schedule: what its plan keeps of a zone, which slot it
 * chooses, what it says of those that it left out. tests/http/run_schedule.py compares slots with a
 * model. */
#include "base/time.h"
#include "calendar/calendar.h"
#include "flow_rig.h"
#include <stdio.h>

#define HOURLY                                                                                     \
    "steps:\n"                                                                                     \
    "  tick: {schedule: {cron: '0 * * * *', zone: Asia/Kolkata%s}, next: work}\n"                  \
    "  work: {tool: x, next: tick}\n"

static int64_t at(const char *text)
{
    int64_t ms = 0;

    EXPECT(time_parse(str_of(text), &ms));
    return ms;
}

static void begin(struct rig *rig, struct scope *scope, const char *more, const char *now)
{
    char text[256];

    (void)snprintf(text, sizeof text, HOURLY, more);
    rig_init(rig, scope, arena_str(&scope->arena, str_of(text)).data, NULL);
    rig->now_ms = at(now);
    rig_begin(rig);
}

static void expect_story(struct rig *rig, const char *part)
{
    EXPECT_HAS(buf_text(&rig->story), part);
}

TEST(flow_schedule, a_plan_keeps_the_rules_of_its_zone_so_that_it_means_the_same_for_ever)
{
    struct definition *definition = rig_compile(
        &t->scope, "steps: {tick: {schedule: {cron: '@daily', zone: Europe/Berlin}, next: tick}}",
        NULL);

    EXPECT_HAS(arena_str(&t->scope.arena, definition->plan_text).data,
               "\"args\":{\"cron\":\"@daily\",\"zone\":\"Europe/Berlin\","
               "\"offsets\":[3600,7200],\"begins\":[3,5,0,7200],\"ends\":[10,5,0,10800],"
               "\"last\":\"{{steps.tick.result.slot}}\"}");
}

TEST(flow_schedule, a_step_waits_by_the_wall_clock_for_a_timer_that_names_its_slot)
{
    struct rig rig;

    begin(&rig, &t->scope, "", "2026-05-01T10:00:00Z");
    expect_story(&rig, "[\"arm\",\"tick@2026-05-01T10:30:00Z\",");
    expect_story(&rig, ",\"wall\"]");
    rig.now_ms = at("2026-05-01T10:30:00.007Z");
    EXPECT_OK(rig_timer(&rig, "tick@2026-05-01T10:30:00Z", 1));
    EXPECT_STR(rig.last_payload, "{\"slot\":\"2026-05-01T10:30:00.000Z\",\"local\":"
                                 "\"2026-05-01T16:00:00+05:30\",\"missed\":0}");
    rig_fini(&rig);
}

/* Its second round begins at `now`; the first one's slot was 10:30. */
static void second_round(struct rig *rig, const char *now)
{
    rig->now_ms = at("2026-05-01T10:30:00Z");
    EXPECT_OK(rig_timer(rig, "tick@2026-05-01T10:30:00Z", 1));
    rig->now_ms = at(now);
    rig_run(rig, 2, "1");
}

TEST(flow_schedule, slots_that_passed_are_left_out_unless_they_are_made_up_for)
{
    static const struct {
        const char *more, *now, *slot;
        int missed;
    } cases[] = {
        { "", "2026-05-01T10:30:01Z", "11:30", 0 },
        { "", "2026-05-01T14:00:00Z", "14:30", 3 },
        { "", "2026-05-01T14:30:00Z", "15:30", 4 },
        { ", catch_up: 1", "2026-05-01T14:00:00Z", "13:30", 2 },
        { ", catch_up: 2", "2026-05-01T14:00:00Z", "12:30", 1 },
        { ", catch_up: 9", "2026-05-01T14:00:00Z", "11:30", 0 },
        { "", "2026-05-01T09:00:00Z", "11:30", 0 }, /* the clock went back */
        { ", catch_up: 9", "2026-05-01T09:00:00Z", "11:30", 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64], result[64];
        struct rig rig;

        begin(&rig, &t->scope, cases[i].more, "2026-05-01T10:00:00Z");
        second_round(&rig, cases[i].now);
        (void)snprintf(name, sizeof name, "tick@2026-05-01T%s:00Z", cases[i].slot);
        expect_story(&rig, name);
        EXPECT_OK(rig_timer(&rig, name, 3));
        (void)snprintf(result, sizeof result, "\"missed\":%d}", cases[i].missed);
        EXPECT_HAS(arena_str(&t->scope.arena, rig.last_payload).data, result);
        rig_fini(&rig);
    }
}

TEST(flow_schedule, a_text_that_an_input_brings_and_that_is_no_schedule_fails_the_step_by_name)
{
    static const char *const inputs[][2] = {
        { "{\"when\":\"0 25 * * *\"}", "the hour: expected 0 to 23" },
        { "{\"when\":7}", "'cron'" },
        { "{}", "expected 5 fields" },
        { "{\"when\":\"0 0 30 2 *\"}", "a date that exists" },
    };

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        struct rig rig;

        rig_init(&rig, &t->scope, "steps: {tick: {schedule: {cron: '{{input.when}}'}, done: true}}",
                 inputs[i][0]);
        rig_begin(&rig);
        EXPECT_EQ(rig.state, LIFE_FAILED);
        EXPECT_HAS(arena_str(&t->scope.arena, rig.last_payload).data, inputs[i][1]);
        rig_fini(&rig);
    }
}

TEST(flow_schedule, members_that_are_no_zone_are_refused)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"offsets\":[]}",
        "{\"offsets\":[1,2]}",
        "{\"offsets\":[90000]}",
        "{\"offsets\":[0],\"changes\":5}",
        "{\"offsets\":[0],\"changes\":[[2,0],[1,0]]}",
        "{\"offsets\":[0,1],\"begins\":[13,1,0,0],\"ends\":[1,1,0,0]}",
        "{\"offsets\":[0,1],\"begins\":[1,1,0,0],\"ends\":[1,6,0,0]}",
        "{\"offsets\":[0,1],\"begins\":[1,1,7,0],\"ends\":[1,1,0,0]}",
        "{\"offsets\":[0,1],\"begins\":[1,1,0,9999999],\"ends\":[1,1,0,0]}",
    };
    struct node *node;
    struct zone zone;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        EXPECT_OK(node_read_json(&t->scope, str_of(texts[i]), &node));
        EXPECT(!zone_read(node, &t->scope.arena, &zone));
    }
}
