/* clock.c - the wall clock jumps both ways while timers are armed and actions are fired.
 *
 * Promises (4) and (5) of engine.h: a timer never fires before its due time by the store's
 * clock, and that clock never goes back; and nothing is fired before its instance was created. */
#include "fault/scenario.h"
#include "fault/scenario_int.h"
#include "fault/stage.h"
#include "fault/vfs.h"
#include <stdio.h>

#define BEGUN_AT INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */
#define MINUTE   INT64_C(60000)
#define HOUR     (60 * MINUTE)
#define YEAR     (365 * 24 * HOUR)

struct world {
    struct env *env;
    pawl *p;
    int64_t wall_ms;
    uint64_t random;
    char door[27], kettle[27];
    uint32_t swings;
    pawl_error error;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w->random >> 33) % below;
}

static void open_world(struct world *w)
{
    w->env = env_sim_new(w->wall_ms, 11);
    EXPECT_OK(pawl_open_env(&w->p, stage_url, &(pawl_options){ .own = true }, w->env, &w->error));
    EXPECT_OK(scenario_register(w->p, &w->error));
}

static void create(struct world *w, const char *definition, const char *input, char out[27])
{
    pawl_id id;

    EXPECT_OK(pawl_create(w->p, &(pawl_create_args){ .definition = definition, .input = input },
                          &id, &w->error));
    memcpy(out, id.text, 27);
}

static void begin_world(struct world *w, uint64_t seed)
{
    const struct scenario *machine = scenario_find("machine");

    *w = (struct world){ .wall_ms = BEGUN_AT, .random = seed };
    disk_load(stage_path);
    open_world(w);
    EXPECT_OK(pawl_define(w->p, machine->source, strlen(machine->source), NULL, &w->error));
    create(w, "door", NULL, w->door);
    create(w, "kettle", "1000000", w->kettle);
}

static void jump(struct world *w)
{
    static const int64_t by[] = { 0,         1,          MINUTE - 1, MINUTE, MINUTE + 1, HOUR,
                                  -1,        -MINUTE,    -HOUR,      YEAR,   -YEAR,      -10 * YEAR,
                                  10 * YEAR, 1 * MINUTE, 2 * MINUTE, 30000 };

    w->wall_ms += by[draw(w, sizeof by / sizeof *by)];
    if (w->wall_ms < 1000)
        w->wall_ms = 1000;
    env_sim_set_wall(w->env, w->wall_ms);
}

/* Time passes, for all clocks. */
static void pass(struct world *w)
{
    static const int64_t by[] = { 0, 1, 30000, MINUTE - 1, MINUTE, HOUR };
    int64_t by_ms = by[draw(w, sizeof by / sizeof *by)];

    env_sim_advance(w->env, by_ms);
    w->wall_ms += by_ms;
}

static void swing(struct world *w)
{
    pawl_fire_args args = { .action = w->swings % 2 ? "shut" : "open" };
    pawl_status status = pawl_fire(w->p, w->door, &args, NULL, &w->error);

    EXPECT_EQ(status, w->wall_ms < BEGUN_AT ? PAWL_INVALID_REQUEST : PAWL_OK);
    w->swings += status == PAWL_OK;
}

static void reopen(struct world *w)
{
    pawl_close(w->p);
    open_world(w);
}

/* Entries of one instance: their times never fall; those of a timer come a minute or more
 * after the entry that armed it. */
static uint32_t check_times(struct world *w, const char *id, int64_t store_now_ms)
{
    pawl_history *history;
    pawl_entry entry;
    int64_t last_ms = BEGUN_AT; /* both were instantiated then */
    uint32_t count = 0;

    EXPECT_OK(pawl_history_open(w->p, id, NULL, &history, &w->error));
    while (pawl_history_next(history, &entry)) {
        bool is_timer = entry.actor_ref && strcmp(entry.actor_ref, "pawl/timer") == 0;

        EXPECT_EQ(entry.sequence_number, ++count);
        EXPECT(entry.recorded_at_ms >= last_ms + (is_timer ? MINUTE : 0));
        EXPECT(entry.recorded_at_ms <= store_now_ms);
        EXPECT(entry.fired_at_ms >= BEGUN_AT);
        last_ms = entry.recorded_at_ms;
    }
    EXPECT_OK(pawl_history_close(history, &w->error));
    return count;
}

/* What is due is fired, and nothing else. */
static uint32_t run_due(struct world *w)
{
    int64_t before_ms = engine_now_ms(w->p->engine), after_ms;

    EXPECT_OK(pawl_run_due(w->p, &w->error));
    after_ms = engine_now_ms(w->p->engine);
    EXPECT(after_ms >= before_ms);
    EXPECT(pawl_next_due(w->p) != 0);
    EXPECT_EQ(check_times(w, w->door, after_ms), w->swings);
    return check_times(w, w->kettle, after_ms);
}

static void check_store(struct world *w)
{
    struct verify_report report;

    EXPECT_OK(verify_run(engine_store(w->p->engine), &heap_libc,
                         &(struct verify_request){ .flows = &flow_behavior }, &report, &w->error));
    if (!report.valid)
        test_fail(__FILE__, __LINE__, "verify found: %s", report.what);
}

TEST(clock, jumps_both_ways_make_no_timer_early_and_no_time_fall)
{
    uint64_t seeds = test_is_long() ? 200 : 25;
    uint32_t fired = 0;

    stage_begin();
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct world w;
        uint32_t entries = 0;

        begin_world(&w, seed);
        for (int i = 0; i < 40; i++) {
            jump(&w);
            pass(&w);
            if (draw(&w, 3) == 0)
                swing(&w);
            if (draw(&w, 8) == 0)
                reopen(&w);
            entries = run_due(&w);
        }
        check_store(&w);
        pawl_close(w.p);
        fired += entries;
    }
    EXPECT(fired > 5 * seeds);
    printf("# %u entries by timers in %" PRIu64 " worlds\n", fired, seeds);
}

TEST(clock, a_timer_waits_for_its_time_and_not_for_the_wall_clock)
{
    static const int64_t jumps[] = { -YEAR, -HOUR, HOUR, YEAR };

    stage_begin();
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        struct world w;
        uint32_t before;

        begin_world(&w, 1);
        before = run_due(&w);
        env_sim_set_wall(w.env, BEGUN_AT + jumps[i]);
        env_sim_advance(w.env, MINUTE - 1);
        EXPECT_EQ(run_due(&w), before);
        w.wall_ms = BEGUN_AT + jumps[i] + MINUTE - 1; /* a restart at another wall time */
        reopen(&w);
        EXPECT_EQ(run_due(&w), before);
        env_sim_advance(w.env, 1);
        EXPECT_EQ(run_due(&w), before + 1);
        EXPECT_EQ(run_due(&w), before + 1);
        check_store(&w);
        pawl_close(w.p);
    }
}

TEST(clock, an_action_fired_while_the_clock_is_back_is_not_older_than_its_instance)
{
    struct world w;

    stage_begin();
    begin_world(&w, 1);
    w.wall_ms = BEGUN_AT - 10 * YEAR;
    env_sim_set_wall(w.env, w.wall_ms);
    swing(&w);
    EXPECT_EQ(check_times(&w, w.door, BEGUN_AT), 0);
    w.wall_ms = BEGUN_AT;
    env_sim_set_wall(w.env, w.wall_ms);
    swing(&w);
    EXPECT_EQ(check_times(&w, w.door, BEGUN_AT), 1);
    check_store(&w);
    pawl_close(w.p);
}

/* ---- Leases: the tenth defect of seed 001 (RELIABILITY.md) ---- */

static const char far_flow[] =
    "name: far\nsteps: {a: {tool: elsewhere, retry: {max: 2, backoff: [1s]}, done: true}}\n";

struct claim {
    char instance[27], step[40], lease[64];
};

/* The text of a member of the answer. */
static void take_member(const char *answer, const char *name, char *out, size_t size)
{
    const char *at = strstr(answer, name);

    EXPECT(at != NULL);
    at = strchr(at + strlen(name) + 1, '"') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

/* A worker elsewhere has a minute for a step. */
static void claim_step(struct world *w, struct claim *out)
{
    char *answer = NULL;

    EXPECT_OK(pawl_define(w->p, far_flow, strlen(far_flow), NULL, &w->error));
    create(w, "far", NULL, out->instance);
    EXPECT_OK(pawl_call(w->p, "step.claim",
                        "{\"tools\":[\"elsewhere\"],\"worker\":\"w\",\"lease\":\"60s\"}", &answer,
                        &w->error));
    take_member(answer, "\"step_id\"", out->step, sizeof out->step);
    take_member(answer, "\"lease\"", out->lease, sizeof out->lease);
    pawl_free(w->p, answer);
}

static pawl_status complete(struct world *w, const struct claim *claim)
{
    char input[256], *answer = NULL;
    pawl_status status;

    snprintf(input, sizeof input, "{\"step_id\":\"%s\",\"lease\":\"%s\",\"result\":1}", claim->step,
             claim->lease);
    status = pawl_call(w->p, "step.complete", input, &answer, &w->error);
    pawl_free(w->p, answer);
    return status;
}

TEST(clock, a_clock_that_jumps_ahead_takes_no_lease_from_whoever_works)
{
    struct claim claim;
    struct world w;

    stage_begin();
    begin_world(&w, 1);
    claim_step(&w, &claim);
    env_sim_set_wall(w.env, BEGUN_AT + YEAR);
    EXPECT_OK(pawl_run_due(w.p, &w.error));
    env_sim_advance(w.env, MINUTE - 1);
    EXPECT_OK(pawl_run_due(w.p, &w.error));
    EXPECT_OK(complete(&w, &claim));
    check_store(&w);
    pawl_close(w.p);
}

TEST(clock, a_clock_that_fell_back_lets_a_lease_run_out_in_its_time)
{
    struct claim claim;
    struct world w;

    stage_begin();
    begin_world(&w, 1);
    claim_step(&w, &claim);
    env_sim_set_wall(w.env, BEGUN_AT - YEAR);
    env_sim_advance(w.env, MINUTE - 1);
    EXPECT_OK(pawl_run_due(w.p, &w.error)); /* rows that lag */
    EXPECT_EQ(pawl_next_due(w.p), 1);
    env_sim_advance(w.env, 1);
    EXPECT_EQ(pawl_next_due(w.p), 0);
    EXPECT_OK(pawl_run_due(w.p, &w.error));
    EXPECT_EQ(complete(&w, &claim), PAWL_LEASE_LOST);
    check_store(&w);
    pawl_close(w.p);
}

/* Each opens with the clock where it began: years behind the store's, as likely as not. */
TEST(clock, machines_do_all_they_can_while_the_clock_jumps)
{
    static const char *const names[] = { "machine", "inline", "versions", "batch_shared" };
    uint64_t seeds = test_is_long() ? 100 : 6;

    stage_begin();
    for (uint64_t seed = 1; seed <= seeds; seed++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            struct witness w;

            disk_load(stage_path);
            witness_init(&w, scenario_find(names[i]), stage_url);
            w.jumps = seed;
            for (uint32_t act = 0; w.scenario->acts[w.next].kind != ACT_END; act++) {
                if (act % 4 == 0) {
                    witness_close(&w);
                    EXPECT_OK(witness_open(&w));
                }
                EXPECT(witness_act_once(&w));
            }
            witness_finish(&w);
            witness_close(&w);
        }
}
