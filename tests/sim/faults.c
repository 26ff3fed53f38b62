/* faults.c - what goes wrong: power cuts, kills, disks, memory, clocks, and a rival between two steps. */
#include "fault/vfs.h"
#include "sim/sim.h"

#define DEPTH_MAX   3  /* crashes while a store recovers */
#define WHOLE_EVERY 16 /* crashes between two checks of all that there is */

/* ---- Crashes ---- */

static void end_process(struct sim *sim, bool is_power_cut)
{
    if (!world_is_off()) /* it dies between two acts */
        disk_arm((struct disk_plan){ .ops = DISK_ALL, .fault = FAULT_POWER, .at = 1 });
    world_close(sim);
    if (is_power_cut)
        disk_power_on(dice_draw(&sim->dice));
    disk_arm((struct disk_plan){ 0 }); /* if only the process died, what it wrote is kept */
    sim->crashes++;
}

/* It recovers, and may crash while it does. */
static void open_again(struct sim *sim)
{
    pawl_status status = PAWL_OK;

    for (uint32_t depth = 0; depth < DEPTH_MAX && !sim->is_healing; depth++) {
        if (!dice_chance(&sim->dice, 250))
            break;
        disk_arm((struct disk_plan){
            .ops = DISK_CHANGES, .fault = FAULT_POWER, .at = 1 + dice_below(&sim->dice, 12) });
        status = world_open(sim);
        if (!disk_has_failed())
            break;
        sim_note(sim, "the power goes while it opens: %s", pawl_status_name(status));
        world_close(sim);
        disk_power_on(dice_draw(&sim->dice));
        sim->crashes++;
    }
    disk_arm((struct disk_plan){ 0 });
    if (!sim->nodes[0])
        status = world_open(sim);
    if (status != PAWL_OK)
        sim_fail(sim, "recovery", "the store does not open: %s: %s", pawl_status_name(status),
                 sim->error.message);
}

/* What the new process is given, and what it must find. */
static void begin_again(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->claim_count; i++)
        sim->claims[i].may_be_lost = true;
    if (dice_chance(&sim->dice, 300))
        sim->wall_ms += dice_below(&sim->dice, 100000);
    if (dice_chance(&sim->dice, 100))
        sim->release = 2;
    sim->is_faulty = false;
    open_again(sim);
    if (sim->crashes % WHOLE_EVERY == 0)
        check_whole(sim);
    else
        check_all(sim);
}

void world_crash(struct sim *sim, bool is_power_cut)
{
    sim_note(sim, "%s, clock %" PRId64 ", wall %" PRId64, is_power_cut ? "POWER CUT" : "KILLED",
             engine_now_ms(sim->nodes[0]->engine), sim->wall_ms);
    end_process(sim, is_power_cut);
    begin_again(sim);
}

void world_restart(struct sim *sim)
{
    sim_note(sim, "closed, clock %" PRId64, engine_now_ms(sim->nodes[0]->engine));
    world_close(sim);
    if (world_is_off()) { /* as it closed */
        disk_power_on(dice_draw(&sim->dice));
        sim->crashes++;
    }
    disk_arm((struct disk_plan){ 0 });
    begin_again(sim);
}

bool world_is_faulty(const struct sim *sim)
{
    return sim->is_faulty || disk_has_failed() || sim->heap.has_failed;
}

bool world_is_off(void)
{
    return disk_has_failed() && disk_is_off();
}

/* ---- Clocks ---- */

void world_jump(struct sim *sim)
{
    static const int64_t jumps[] = { 1000, 60000, 3600000, INT64_C(315360000000) };
    int64_t by_ms = jumps[dice_below(&sim->dice, sim->swarm.jumps_years ? 4 : 3)];

    sim->jumps++;
    world_set_wall(sim, sim->wall_ms + (dice_chance(&sim->dice, 500) ? by_ms : -by_ms));
    sim_note(sim, "the wall clock jumps to %" PRId64, sim->wall_ms);
}

/* A sync that takes long: time passes within a commit. */
static void on_sync(void *context)
{
    struct sim *sim = context;

    if (dice_chance(&sim->dice, sim->swarm.slow))
        world_pass(sim, dice_below(&sim->dice, 3000));
}

/* ---- Within a call ---- */

/* The engine has come to a named point. There the power may go; and between a decision and its commit
 * another process, which shares the store, may be faster. */
static void on_point(void *context, enum env_point point)
{
    struct node_point *at = context;
    struct sim *sim = at->sim;

    if (sim->is_healing || sim->inside || world_is_off())
        return;
    if (dice_chance(&sim->dice, sim->swarm.point)) {
        sim_note(sim, "the power goes %s", env_point_name(point));
        sim->is_faulty = world_is_faulty(sim); /* another one may have hit before */
        disk_arm((struct disk_plan){ .ops = DISK_ALL, .fault = FAULT_POWER, .at = 1 });
    } else if (sim->is_shared && sim->nodes[1] && point == POINT_BEFORE_BEGIN &&
               dice_chance(&sim->dice, sim->swarm.meddle)) {
        sim->inside = 2 - at->index;
        sim->meddled++;
        sim_note(sim, "meanwhile, process %u:", 1 - at->index);
        client_act(sim);
        sim->inside = 0;
    }
}

void faults_watch(struct sim *sim, uint32_t index)
{
    sim->points[index] = (struct node_point){ sim, index };
    env_sim_on_point(sim->envs[index], on_point, &sim->points[index]);
}

void faults_begin(struct sim *sim)
{
    disk_on_sync(on_sync, sim);
}

/* ---- Faults ---- */

static void arm_disk(struct sim *sim, enum disk_fault fault, unsigned ops, bool for_ever)
{
    disk_arm((struct disk_plan){
        .ops = ops, .fault = fault, .at = 1 + dice_below(&sim->dice, 16), .for_ever = for_ever });
}

void world_arm(struct sim *sim)
{
    static const enum disk_fault faults[] = { FAULT_EIO, FAULT_FULL, FAULT_SHORT, FAULT_AFTER };

    if (sim->is_healing)
        return;
    if (dice_chance(&sim->dice, sim->swarm.power + sim->swarm.kill))
        arm_disk(sim, FAULT_POWER, dice_chance(&sim->dice, 500) ? DISK_CHANGES : DISK_SYNC, false);
    else if (dice_chance(&sim->dice, sim->swarm.disk))
        arm_disk(sim, faults[dice_below(&sim->dice, 4)],
                 dice_chance(&sim->dice, 800) ? DISK_CHANGES : DISK_CHANGES | DISK_READ,
                 dice_chance(&sim->dice, 300));
    if (dice_chance(&sim->dice, sim->swarm.memory)) {
        sim->heap.has_failed = false;
        sim->heap.fail_at = sim->heap.count + 1 + dice_below(&sim->dice, 200);
    }
}

/* A fault that has hit is over, unless it stays for some acts. What has not hit may hit later. */
void world_settle(struct sim *sim)
{
    sim->is_faulty = world_is_faulty(sim);
    if (world_is_off())
        world_crash(sim, dice_below(&sim->dice, sim->swarm.power + sim->swarm.kill + 1) <
                             sim->swarm.power);
    else if (disk_has_failed() && dice_chance(&sim->dice, 500))
        disk_arm((struct disk_plan){ 0 });
    if (sim->heap.has_failed)
        sim->heap.fail_at = 0;
    sim->heap.has_failed = false;
}

/* Faults that have not hit yet do not hit. */
void world_calm(struct sim *sim)
{
    if (!disk_has_failed())
        disk_arm((struct disk_plan){ 0 });
    sim->heap.fail_at = 0;
}

void world_heal(struct sim *sim)
{
    sim->is_healing = true;
    sim->heap.fail_at = 0;
    if (!world_is_off())
        disk_arm((struct disk_plan){ 0 });
    if (world_is_off() || dice_chance(&sim->dice, 500))
        world_crash(sim, false);
    else if (sim->is_shared) /* only an owner runs steps */
        world_restart(sim);
    sim_run_due(sim);                  /* as a host's loop does, which mends a store that failed */
    if (sim->wall_ms < sim->latest_ms) /* fires before a creation are refused */
        world_set_wall(sim, sim->latest_ms);
    sim_note(sim, "the faults are over");
}
