/* promises.c - the first four promises of engine/engine.h and the ninth, each where it is hardest
 * to keep: at a power cut, at a restart, beside a rival, at a timer's due time, when a call is
 * repeated. */
#include "fault/door.h"
#include "fault/scenario.h"
#include "fault/scenario_int.h"
#include "fault/stage.h"
#include "fault/vfs.h"
#include <stdio.h>

#define BEGUN_AT INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */

static pawl_error error;

static void expect_valid(pawl *p)
{
    struct verify_report report;

    EXPECT_OK(verify_run(engine_store(p->engine), &heap_libc,
                         &(struct verify_request){ .flows = &flow_behavior }, &report, &error));
    if (!report.valid)
        test_fail(__FILE__, __LINE__, "verify found: %s", report.what);
}

/* (1). The power is cut right after the call. */
TEST(promises, what_was_acknowledged_is_there_after_a_power_cut)
{
    pawl_id id;
    pawl *p;

    stage_begin();
    disk_load(stage_path);
    p = door_open(true, &error);
    id = door_make(p, &error);
    EXPECT_OK(pawl_fire(p, id.text, &(pawl_fire_args){ .action = "open" }, NULL, &error));
    disk_arm((struct disk_plan){ .ops = DISK_ALL, .fault = FAULT_POWER, .at = 1 });
    pawl_close(p);
    disk_power_on(0);
    p = door_open(true, &error);
    EXPECT_EQ(door_entries(p, &id, &error), 1);
    expect_valid(p);
    pawl_close(p);
}

TEST(promises, numbers_go_on_across_restarts) /* (3) */
{
    static const char *const actions[] = { "open", "shut", "open" };
    pawl_id id;
    pawl *p;

    stage_begin();
    disk_load(stage_path);
    p = door_open(true, &error);
    id = door_make(p, &error);
    for (uint64_t i = 0; i < 3; i++) {
        pawl_fired fired;

        EXPECT_OK(pawl_fire(p, id.text,
                            &(pawl_fire_args){ .action = actions[i], .actor_ref = "ann" }, &fired,
                            &error));
        EXPECT_EQ(fired.sequence_number, i + 1);
        pawl_close(p);
        p = door_open(true, &error);
    }
    EXPECT_EQ(door_entries(p, &id, &error), 3);
    expect_valid(p);
    pawl_close(p);
}

struct rival {
    pawl *p;
    pawl_id id;
    bool has_struck;
};

static void strike(void *context, enum env_point point)
{
    struct rival *rival = context;

    if (point != POINT_BEFORE_BEGIN || rival->has_struck)
        return;
    rival->has_struck = true;
    EXPECT_OK(pawl_signal(rival->p, rival->id.text, "refill", "1", NULL, &error));
}

/* (2), B7. Between a program's decision and its turn to write, another one moves the
 * instance on; so it decides again. The kettle hears one refill only. */
TEST(promises, a_decision_that_is_no_longer_true_is_made_again)
{
    struct env *env = env_sim_new(BEGUN_AT, 4);
    struct rival rival = { 0 };
    pawl *p = NULL;

    stage_begin();
    disk_load(stage_path);
    rival.p = door_open(false, &error);
    EXPECT_OK(pawl_open_env(&p, stage_url, &(pawl_options){ .test_clock = true }, env, &error));
    EXPECT_OK(scenario_register(p, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "kettle", .input = "5" }, &rival.id,
                          &error));
    env_sim_on_point(env, strike, &rival);
    EXPECT(pawl_signal(p, rival.id.text, "refill", "1", NULL, &error) == PAWL_NOT_AWAITING);
    EXPECT(rival.has_struck);
    expect_valid(p);
    pawl_close(p);
    pawl_close(rival.p);
}

static void cut_after_ack(void *context, enum env_point point)
{
    (void)context;
    if (point == POINT_AFTER_ACK)
        disk_arm((struct disk_plan){ .ops = DISK_ALL, .fault = FAULT_POWER, .at = 1 });
}

/* (1), and 10 of the ten invariants: what is answered with storage-failure has changed nothing. */
TEST(promises, a_signal_that_is_durable_is_not_reported_as_failed)
{
    struct env *env = env_sim_new(BEGUN_AT, 4);
    char input[160], *out = NULL;
    pawl_id id;
    pawl *p = NULL;

    stage_begin();
    disk_load(stage_path);
    EXPECT_OK(pawl_open_env(&p, stage_url, &(pawl_options){ .own = true, .test_clock = true }, env,
                            &error));
    EXPECT_OK(scenario_register(p, &error));
    EXPECT_OK(
        pawl_create(p, &(pawl_create_args){ .definition = "kettle", .input = "5" }, &id, &error));
    env_sim_on_point(env, cut_after_ack, NULL);
    snprintf(input, sizeof input,
             "{\"instance_id\":\"%s\",\"name\":\"refill\",\"payload\":1,"
             "\"idempotency_key\":\"once\"}",
             id.text);
    EXPECT_OK(pawl_call(p, "signal.send", input, &out, &error));
    EXPECT_HAS(out, "\"delivered\":1");
    pawl_free(p, out);
    pawl_close(p);
    disk_power_on(0);
    p = door_open(true, &error);
    EXPECT_EQ(door_entries(p, &id, &error), 2);
    pawl_close(p);
}

TEST(promises, a_timer_fires_once) /* (4) */
{
    pawl_id id;
    uint64_t before;
    pawl *p;

    stage_begin();
    disk_load(stage_path);
    p = door_open(true, &error);
    EXPECT_OK(
        pawl_create(p, &(pawl_create_args){ .definition = "kettle", .input = "5" }, &id, &error));
    before = door_entries(p, &id, &error);
    EXPECT_OK(pawl_test_advance(p, 60000, &error));
    EXPECT_EQ(door_entries(p, &id, &error), before + 1);
    expect_valid(p);
    pawl_close(p);
}

/* (9) */
TEST(promises, a_call_with_a_key_is_accepted_once)
{
    pawl_fire_args fire = { .action = "open", .idempotency_key = "once" };
    pawl_fired fired;
    pawl_id id;
    pawl *p;

    stage_begin();
    disk_load(stage_path);
    p = door_open(true, &error);
    id = door_make(p, &error);
    EXPECT_OK(pawl_fire(p, id.text, &fire, &fired, &error));
    EXPECT_OK(pawl_fire(p, id.text, &(pawl_fire_args){ .action = "shut" }, NULL, &error));
    EXPECT_OK(pawl_fire(p, id.text, &fire, &fired, &error));
    EXPECT_EQ(door_entries(p, &id, &error), 2);
    expect_valid(p);
    pawl_close(p);
}
