/* engine_alarm.c - operations that are done later, once (B40), by a clock that the test moves. */
#include "engine_fixture.h"
#include <stdio.h>
#include <stdlib.h>

static pawl_status call(struct world *world, const char *operation, const char *input, char *out,
                        size_t size)
{
    char *answer;
    pawl_status status = pawl_call(world->p, operation, input, &answer, &world->error);

    snprintf(out, size, "%s", answer ? answer : "");
    pawl_free(world->p, answer);
    return status;
}

static pawl_status set_fire(struct world *world, const char *when, const char *id,
                            const char *action, char alarm[17])
{
    char input[256], answer[128];
    pawl_status status;

    snprintf(input, sizeof input,
             "{%s,\"operation\":\"instance.fire\",\"input\":{\"instance_id\":\"%s\","
             "\"action\":\"%s\"}}",
             when, id, action);
    status = call(world, "alarm.set", input, answer, sizeof answer);
    if (!status)
        EXPECT(sscanf(answer, "{\"alarm_id\":\"%16[0-9a-f]\"}", alarm) == 1);
    return status;
}

static void restart(struct world *world)
{
    world_close(world);
    world_open(world);
}

WORLD_TEST(alarm, it_fires_once_at_its_time_and_not_before) /* B40 */
{
    const char *id;
    char alarm[17];

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(set_fire(world, "\"after\":\"1h\"", id, "pay", alarm));
    EXPECT_OK(set_fire(world, "\"at\":\"2026-05-01T15:00:00+01:00\"", id, "note", alarm));
    world_advance(world, 3599999);
    EXPECT_TEXT(world_actions(world, id), "");
    restart(world);
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "pay");
    world_expect_valid(world);
    world_advance(world, 3600000);
    EXPECT_TEXT(world_actions(world, id), "pay note");
    world_advance(world, 36000000);
    EXPECT_TEXT(world_actions(world, id), "pay note");
    EXPECT_EQ(pawl_next_due(world->p), -1);
    world_expect_valid(world);
}

WORLD_TEST(alarm, one_that_is_overdue_fires_at_once_after_a_restart)
{
    const char *id;
    char alarm[17];

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(set_fire(world, "\"after\":\"1h\"", id, "pay", alarm));
    world_close(world);
    world->now_ms += 7200000;
    world_open(world);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "pay");
    EXPECT_OK(set_fire(world, "\"at\":\"2026-01-01T00:00:00Z\"", id, "note", alarm)); /* long ago */
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "pay note");
}

WORLD_TEST(alarm, one_that_is_cancelled_never_fires_and_is_listed_no_more)
{
    char alarm[17], input[64], answer[512];
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(set_fire(world, "\"after\":\"1h\"", id, "pay", alarm));
    EXPECT_OK(call(world, "alarm.list", "{}", answer, sizeof answer));
    EXPECT_HAS(answer, alarm);
    EXPECT_HAS(answer, "\"at\":\"2026-05-01T13:00:00.000Z\"");
    snprintf(input, sizeof input, "{\"alarm_id\":\"%s\"}", alarm);
    EXPECT_OK(call(world, "alarm.cancel", input, answer, sizeof answer));
    EXPECT_EQ(call(world, "alarm.cancel", input, answer, sizeof answer), PAWL_NOT_KNOWN);
    EXPECT_OK(call(world, "alarm.list", "{}", answer, sizeof answer));
    EXPECT_TEXT(answer, "{\"alarms\":[]}");
    world_advance(world, 7200000);
    EXPECT_TEXT(world_actions(world, id), "");
    world_expect_valid(world);
}

WORLD_TEST(alarm, what_is_refused_when_it_falls_due_is_over_too)
{
    char alarm[17], answer[512];
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(set_fire(world, "\"after\":\"1h\"", id, "note", alarm)); /* not from `new` */
    world_advance(world, 3600000);
    EXPECT_TEXT(world_actions(world, id), "");
    EXPECT_OK(call(world, "alarm.list", "{}", answer, sizeof answer));
    EXPECT_TEXT(answer, "{\"alarms\":[]}");
    world_expect_valid(world);
}

WORLD_TEST(alarm, what_cannot_be_done_later_is_refused_now)
{
    static const char *const inputs[] = {
        "{\"operation\":\"instance.fire\",\"input\":{}}",
        "{\"after\":\"1h\",\"at\":\"2026-05-01T00:00:00Z\",\"operation\":\"instance.create\","
        "\"input\":{}}",
        "{\"after\":\"soon\",\"operation\":\"instance.create\",\"input\":{}}",
        "{\"after\":\"1h\",\"operation\":\"instance.get\",\"input\":{}}",
        "{\"after\":\"1h\",\"operation\":\"test.advance\",\"input\":{}}",
        "{\"after\":\"1h\",\"operation\":\"none\",\"input\":{}}",
        "{\"after\":\"1h\",\"operation\":\"instance.fire\",\"input\":{\"action\":\"pay\"}}",
        "{\"after\":\"1h\",\"operation\":\"instance.create\",\"input\":{\"colour\":1}}",
    };
    char answer[128];

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        EXPECT_EQ(call(world, "alarm.set", inputs[i], answer, sizeof answer), PAWL_INVALID_REQUEST);
}

WORLD_TEST(alarm, any_writing_operation_can_be_done_later_also_for_code_and_another_alarm)
{
    const char *id = world_create(world, "ticker", NULL);
    char input[512], answer[512];

    snprintf(input, sizeof input,
             "{\"after\":\"100ms\",\"operation\":\"alarm.set\",\"input\":{\"after\":\"100ms\","
             "\"operation\":\"signal.send\",\"input\":{\"instance_id\":\"%s\",\"name\":\"stop\"}}}",
             id);
    EXPECT_OK(call(world, "alarm.set", input, answer, sizeof answer));
    world_advance(world, 100);
    EXPECT_TEXT(world_actions(world, id), "start");
    world_advance(world, 100);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

WORLD_TEST(alarm, a_repeated_set_with_a_key_is_one_alarm)
{
    const char *input = "{\"after\":\"1h\",\"operation\":\"instance.create\",\"input\":{"
                        "\"definition\":\"order\"},\"idempotency_key\":\"k\"}";
    char first[128], again[128], list[2048];

    world_define(world, ORDER);
    EXPECT_OK(call(world, "alarm.set", input, first, sizeof first));
    restart(world);
    EXPECT_OK(call(world, "alarm.set", input, again, sizeof again));
    EXPECT_TEXT(again, first);
    world_advance(world, 3600000);
    EXPECT_OK(call(world, "instance.list", "{\"limit\":2}", list, sizeof list));
    EXPECT_HAS(list, "\"definition\":\"order\"");
    EXPECT_HAS(list, "\"next\":null");
}

/* An alarm for a creation whose input is a text of `size`. */
static void set_large(struct world *world, size_t size)
{
    static const char begin[] = "{\"after\":\"1s\",\"operation\":\"instance.create\",\"input\":{"
                                "\"definition\":\"order\",\"input\":\"",
                      end[] = "\"}}";
    char *input = malloc(sizeof begin + size + sizeof end), answer[128];

    memcpy(input, begin, sizeof begin);
    memset(input + sizeof begin - 1, 'x', size);
    memcpy(input + sizeof begin - 1 + size, end, sizeof end);
    EXPECT_OK(call(world, "alarm.set", input, answer, sizeof answer));
    free(input);
}

TEST(alarm_memory, large_ones_that_are_due_together_are_all_done) /* more than one scope holds */
{
    enum { MANY = 66, SIZE = (1 << 20) - 200 };
    struct world world;
    char answer[256];

    world_begin(&world, "memory");
    world_define(&world, ORDER);
    for (int i = 0; i < MANY; i++)
        set_large(&world, SIZE);
    world_advance(&world, 1000);
    EXPECT_OK(call(&world, "instance.counts", "{}", answer, sizeof answer));
    EXPECT(strstr(answer, "\"total\":66") != NULL);
    EXPECT_EQ(pawl_next_due(world.p), -1);
    world_end(&world);
}
