/* run.c - a run of a seed, and the tests: seeds of the day, one seed twice, one seed by its number. */
#include "fault/stage.h"
#include "sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HEAL_ROUNDS 400
#define RESTING     120000 /* ms: longer than any wait of a process */

/* ---- The end ---- */

static bool is_over(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->subject_count; i++)
        if (sim->subjects[i].id[0] && !sim->subjects[i].has_ended)
            return false;
    return true;
}

static void name_idle(struct sim *sim)
{
    struct node *answer;

    for (uint32_t i = 0; i < sim->subject_count; i++)
        if (sim->subjects[i].id[0] && !sim->subjects[i].has_ended) {
            sim_look(sim, &answer, "instance.get", "{\"instance_id\":\"%s\"}", sim->subjects[i].id);
            sim_look(sim, &answer, "instance.why", "{\"instance_id\":\"%s\"}", sim->subjects[i].id);
            sim_look(sim, &answer, "instance.steps", "{\"instance_id\":\"%s\"}",
                     sim->subjects[i].id);
        }
}

/* No faults any more: open calls are repeated (one half of them), workers answer, time passes. Every
 * instance must end. */
void heal(struct sim *sim)
{
    world_heal(sim);
    for (uint32_t i = 0; i < sim->act_count; i++)
        if (sim->acts[i].outcome == OUTCOME_OPEN && dice_chance(&sim->dice, 500))
            client_retry(sim, i);
    check_all(sim);
    for (uint32_t round = 0; !is_over(sim); round++) {
        sim->step++;
        if (round == HEAL_ROUNDS) {
            name_idle(sim);
            sim_fail(sim, "C14 progress", "something has not ended after %u rounds", round);
        }
        for (uint32_t i = 0; i < sim->subject_count; i++)
            if (sim->subjects[i].id[0] && !sim->subjects[i].has_ended && round % 4 == 0)
                client_push(sim, &sim->subjects[i]);
        if (!sim->swarm.is_shared)
            worker_finish_all(sim);
        world_pass(sim, 15000 + dice_below(&sim->dice, 30000));
        sim_run_due(sim);
        check_all(sim);
        scope_clear(&sim->scope);
    }
}

/* ---- A run ---- */

static void act_once(struct sim *sim)
{
    uint32_t drawn = dice_below(&sim->dice, 100);

    world_arm(sim);
    if (dice_chance(&sim->dice, sim->swarm.jump))
        world_jump(sim);
    if (drawn < 40)
        client_act(sim);
    else if (drawn < 70 && !sim->swarm.is_shared)
        worker_act(sim);
    else if (drawn < 78)
        client_read(sim);
    else if (drawn < 92) {
        world_pass(sim, dice_below(&sim->dice, dice_chance(&sim->dice, 300) ? 60000 : 2000));
        sim_run_due(sim);
    } else if (drawn < 96)
        stream_follow(sim);
    else if (!sim->is_faulty) {
        world_calm(sim);
        check_all(sim);
    }
    world_settle(sim);
    if (dice_chance(&sim->dice, sim->swarm.kill / 4))
        world_crash(sim, false);
}

struct sim_result sim_run(uint64_t seed)
{
    static struct sim sim; /* one run at a time */
    struct sim_result result;
    uint32_t steps;

    world_begin(&sim, seed);
    steps = 40 + dice_below(&sim.dice, 160);
    for (sim.step = 1; sim.step <= steps; sim.step++) {
        act_once(&sim);
        scope_clear(&sim.scope);
    }
    heal(&sim);
    check_store(&sim);
    stream_check(&sim);
    result = (struct sim_result){ sim.trace_hash, sim.crashes, sim.act_count, sim.claim_count,
                                  sim.elapsed_ms };
    world_end(&sim);
    return result;
}

/* ---- Tests ---- */

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static int64_t seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* The same seeds from day to day: script/simulate tries others. */
static uint64_t first_seed(void)
{
    return from_environment("PAWL_SIM_SEED", 1);
}

TEST(sim, no_promise_is_broken_by_crashes_faults_and_jumps)
{
    uint64_t first = first_seed(), runs = from_environment("PAWL_SIM_RUNS", UINT64_MAX), done = 0;
    int64_t until = seconds_now() + (int64_t)from_environment("PAWL_SIM_SECONDS", 30);
    uint64_t crashes = 0, acts = 0;
    int64_t years_ms = 0;

    stage_begin();
    for (; done < runs && (seconds_now() < until || done == 0); done++) {
        struct sim_result result = sim_run(first + done);

        crashes += result.crashes;
        acts += result.acts + result.claims;
        years_ms += result.elapsed_ms;
    }
    printf("# seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " runs, %" PRIu64 " crashes, %" PRIu64
           " calls, %" PRId64 " days of simulated time\n",
           first, first + done - 1, done, crashes, acts, years_ms / 86400000);
}

TEST(sim, a_seed_repeats_exactly)
{
    uint64_t first = first_seed();

    stage_begin();
    for (uint64_t seed = first; seed < first + 20; seed++) {
        struct sim_result once = sim_run(seed), again = sim_run(seed);

        if (once.trace_hash != again.trace_hash)
            test_fail(__FILE__, __LINE__, "seed %" PRIu64 " ran differently the second time", seed);
    }
}
