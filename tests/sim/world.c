/* world.c - the store on its simulated disk: opening, faults, crashes and time. */
#include "base/limits.h"
#include "fault/sqlite_heap.h"
#include "fault/stage.h"
#include "fault/vfs.h"
#include "sim/sim.h"
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BEGUN_AT  INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */
#define DEPTH_MAX 3                      /* crashes while a store recovers */

/* ---- Dice ---- */

uint64_t dice_draw(struct dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint32_t dice_below(struct dice *dice, uint32_t bound)
{
    return (uint32_t)(dice_draw(dice) % bound);
}

bool dice_chance(struct dice *dice, uint32_t per_thousand)
{
    return dice_below(dice, 1000) < per_thousand;
}

/* ---- The trace ---- */

void sim_note(struct sim *sim, const char *format, ...)
{
    char *line = sim->trace[sim->trace_count++ % TRACE_LINES];
    va_list args;
    int size;

    size = snprintf(line, TRACE_WIDTH, "%4u %9.3f s  ", sim->step, (double)sim->elapsed_ms / 1000);
    va_start(args, format);
    vsnprintf(line + size, TRACE_WIDTH - (size_t)size, format, args);
    va_end(args);
    for (const char *c = line; *c; c++)
        sim->trace_hash = (sim->trace_hash ^ (uint8_t)*c) * UINT64_C(0x100000001B3);
    if (getenv("PAWL_SIM_TRACE"))
        printf("# %s\n", line);
}

_Noreturn void sim_fail(struct sim *sim, const char *rule, const char *format, ...)
{
    uint32_t first = sim->trace_count > TRACE_LINES ? sim->trace_count - TRACE_LINES : 0;
    char words[600];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    for (uint32_t i = first; i < sim->trace_count; i++)
        printf("# %s\n", sim->trace[i % TRACE_LINES]);
    printf("# seed %" PRIu64 ", step %u: %s: %s\n# to repeat it: script/simulate --seed %" PRIu64
           "\n",
           sim->seed, sim->step, rule, words, sim->seed);
    test_fail(__FILE__, __LINE__, "seed %" PRIu64 " breaks %s", sim->seed, rule);
}

/* ---- Opening ---- */

static pawl_status open_node(struct sim *sim, uint32_t index)
{
    pawl_options options = { .own = !sim->swarm.is_shared,
                             .resize = sim->heap.heap.resize,
                             .resize_context = sim->heap.heap.context };
    pawl_status status;

    sim->envs[index] = env_sim_new(sim->wall_ms, dice_draw(&sim->dice));
    status = pawl_open_env(&sim->nodes[index], stage_url, &options, sim->envs[index], &sim->error);
    if (status == PAWL_OK)
        status = processes_register(sim, sim->nodes[index]);
    return status;
}

static void close_nodes(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        pawl_close(sim->nodes[i]);
        sim->nodes[i] = NULL;
        sim->envs[i] = NULL; /* went with it */
    }
}

static pawl_status open_nodes(struct sim *sim)
{
    pawl_status status = PAWL_OK;

    sim->life++;
    sim->heap.fail_at = 0;
    for (uint32_t i = 0; i < sim->node_count && status == PAWL_OK; i++)
        status = open_node(sim, i);
    if (status != PAWL_OK)
        close_nodes(sim);
    return status;
}

/* ---- Crashes ---- */

static void end_process(struct sim *sim, bool is_power_cut)
{
    if (!world_is_off()) /* it dies between two acts */
        disk_arm((struct disk_plan){ .ops = DISK_ALL, .fault = FAULT_POWER, .at = 1 });
    close_nodes(sim);
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
        status = open_nodes(sim);
        if (!disk_has_failed())
            break;
        sim_note(sim, "the power goes while it opens: %s", pawl_status_name(status));
        close_nodes(sim);
        disk_power_on(dice_draw(&sim->dice));
        sim->crashes++;
    }
    disk_arm((struct disk_plan){ 0 });
    if (!sim->nodes[0])
        status = open_nodes(sim);
    if (status != PAWL_OK)
        sim_fail(sim, "recovery", "the store does not open: %s: %s", pawl_status_name(status),
                 sim->error.message);
}

void world_crash(struct sim *sim, bool is_power_cut)
{
    sim_note(sim, "%s, clock %" PRId64 ", wall %" PRId64, is_power_cut ? "POWER CUT" : "KILLED",
             engine_now_ms(sim->nodes[0]->engine), sim->wall_ms);
    end_process(sim, is_power_cut);
    for (uint32_t i = 0; i < sim->claim_count; i++)
        sim->claims[i].may_be_lost = true;
    if (dice_chance(&sim->dice, 300))
        sim->wall_ms += dice_below(&sim->dice, 100000);
    sim->is_faulty = false;
    open_again(sim);
    check_all(sim);
    if (sim->crashes % 4 == 0)
        check_store(sim);
}

bool world_is_faulty(const struct sim *sim)
{
    return sim->is_faulty || disk_has_failed() || sim->heap.has_failed;
}

bool world_is_off(void)
{
    return disk_has_failed() && disk_is_off();
}

/* ---- Time ---- */

static void note_latest(struct sim *sim)
{
    if (sim->wall_ms > sim->latest_ms)
        sim->latest_ms = sim->wall_ms;
}

void world_pass(struct sim *sim, int64_t by_ms)
{
    sim->elapsed_ms += by_ms;
    sim->wall_ms += by_ms;
    note_latest(sim);
    for (uint32_t i = 0; i < sim->node_count; i++)
        if (sim->envs[i])
            env_sim_advance(sim->envs[i], by_ms);
}

static void set_wall(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++)
        env_sim_set_wall(sim->envs[i], sim->wall_ms);
    note_latest(sim);
}

void world_jump(struct sim *sim)
{
    static const int64_t jumps[] = { 1000, 60000, 3600000, INT64_C(315360000000) };
    int64_t by_ms = jumps[dice_below(&sim->dice, sim->swarm.jumps_years ? 4 : 3)];

    sim->jumps++;
    sim->wall_ms += dice_chance(&sim->dice, 500) ? by_ms : -by_ms;
    if (sim->wall_ms < BEGUN_AT - INT64_C(315360000000))
        sim->wall_ms = BEGUN_AT;
    set_wall(sim);
    sim_note(sim, "the wall clock jumps to %" PRId64, sim->wall_ms);
}

/* A sync that takes long: time passes within a commit. */
static void on_sync(void *context)
{
    struct sim *sim = context;

    if (dice_chance(&sim->dice, sim->swarm.slow))
        world_pass(sim, dice_below(&sim->dice, 3000));
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
    if (sim->wall_ms < sim->latest_ms) { /* fires before a creation are refused */
        sim->wall_ms = sim->latest_ms;
        set_wall(sim);
    }
    sim_note(sim, "the faults are over");
}

/* ---- Calls ---- */

static bool is_failure(pawl_status status)
{
    return status == PAWL_STORAGE_FAILURE || status == PAWL_NO_MEMORY ||
           status == PAWL_OUTCOME_UNKNOWN;
}

static pawl_status call(struct sim *sim, struct node **out, const char *operation,
                        const char *input)
{
    pawl *p = sim->nodes[dice_below(&sim->dice, sim->node_count)];
    char *text = NULL;
    pawl_status status = pawl_call(p, operation, input, &text, &sim->error);

    *out = NULL;
    if (status == PAWL_OK &&
        node_read_json(&sim->scope, arena_str(&sim->scope.arena, str_of(text)), out) != PAWL_OK)
        sim_fail(sim, "answers", "%s: no JSON: %s", operation, text);
    sim_note(sim, "%s %s: %s %.60s", operation, input, pawl_status_name(status),
             status == PAWL_OK ? text : sim->error.message);
    pawl_free(p, text);
    if (is_failure(status) && !world_is_faulty(sim))
        sim_fail(sim, "honest failures", "%s failed without a fault: %s: %s", operation,
                 pawl_status_name(status), sim->error.message);
    return status;
}

pawl_status sim_ask(struct sim *sim, struct node **out, const char *operation, const char *format,
                    ...)
{
    char input[1024];
    va_list args;
    pawl_status status;

    va_start(args, format);
    vsnprintf(input, sizeof input, format, args);
    va_end(args);
    status = call(sim, out, operation, input);
    if (status == PAWL_OK && strcmp(operation, "instance.fire") == 0)
        sim->is_faulty = false; /* what it wrote is durable: it has mended */
    sim->unknown_count += status == PAWL_OUTCOME_UNKNOWN;
    if (sim->is_healing || !dice_chance(&sim->dice, sim->swarm.lost))
        return status;
    sim_note(sim, "... and the answer is lost");
    sim->unknown_count++;
    *out = NULL;
    return PAWL_OUTCOME_UNKNOWN;
}

pawl_status sim_look(struct sim *sim, struct node **out, const char *operation, const char *format,
                     ...)
{
    char input[256];
    va_list args;

    va_start(args, format);
    vsnprintf(input, sizeof input, format, args);
    va_end(args);
    return call(sim, out, operation, input);
}

pawl_status sim_run_due(struct sim *sim)
{
    pawl *p = sim->nodes[dice_below(&sim->dice, sim->node_count)];
    pawl_status status = pawl_run_due(p, &sim->error);

    sim_note(sim, "run_due: %s, clock %" PRId64 ", wall %" PRId64, pawl_status_name(status),
             engine_now_ms(p->engine), sim->wall_ms);
    if (status != PAWL_OK && !world_is_faulty(sim))
        sim_fail(sim, "honest failures", "run_due failed without a fault: %s", sim->error.message);
    return status;
}

str sim_text(const struct node *object, const char *name)
{
    const struct node *member = object ? node_find(object, name) : NULL;

    return member && member->kind == NODE_STRING ? member->text : (str){ 0 };
}

int64_t sim_number(const struct node *object, const char *name)
{
    const struct node *member = object ? node_find(object, name) : NULL;
    int64_t number = 0;

    return member && node_to_i64(member, &number) ? number : -1;
}

/* ---- A run ---- */

/* Each kind of fault is on in about half of the seeds, at a rate of its own: a uniform mix finds
 * less. */
static uint32_t draw_rate(struct dice *dice, uint32_t most)
{
    return dice_chance(dice, 500) ? 1 + dice_below(dice, most) : 0;
}

static void draw_swarm(struct sim *sim)
{
    struct dice *dice = &sim->dice;

    sim->swarm = (struct swarm){ .power = draw_rate(dice, 60),
                                 .kill = draw_rate(dice, 60),
                                 .disk = draw_rate(dice, 60),
                                 .memory = draw_rate(dice, 40),
                                 .jump = draw_rate(dice, 60),
                                 .lost = draw_rate(dice, 120),
                                 .repeat = draw_rate(dice, 120),
                                 .late = draw_rate(dice, 300),
                                 .slow = draw_rate(dice, 100),
                                 .pause = draw_rate(dice, 60),
                                 .jumps_years = dice_chance(dice, 200),
                                 .is_shared = dice_chance(dice, 200) };
    if (dice_chance(dice, 200)) { /* a storm */
        sim->swarm.power = dice_below(dice, 400);
        sim->swarm.kill = dice_below(dice, 400);
    }
    sim->node_count = sim->swarm.is_shared ? NODES_MAX : 1;
}

static void forget_files(void) /* beside the store, on the real disk */
{
    static const char *const beside[] = { "-turns", "-owner", "-head" };
    char path[160];

    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(path, sizeof path, "%s%s", stage_path, beside[i]);
        unlink(path);
    }
}

void world_begin(struct sim *sim, uint64_t seed)
{
    *sim =
        (struct sim){ .seed = seed, .dice = { seed }, .wall_ms = BEGUN_AT, .latest_ms = BEGUN_AT };
    fault_init(&sim->heap, 0, FAULT_ONCE);
    scope_init(&sim->scope, &heap_libc, LIMIT_SCOPE);
    draw_swarm(sim);
    disk_load(stage_path);
    disk_arm((struct disk_plan){ 0 });
    sqlite3_randomness(0, NULL); /* begins again by the disk's */
    forget_files();
    disk_on_sync(on_sync, sim);
    EXPECT_OK(open_nodes(sim));
    for (uint32_t i = 0; i < PROCESS_COUNT; i++)
        if (process_source((enum process)i))
            EXPECT_OK(pawl_define(sim->nodes[0], process_source((enum process)i),
                                  strlen(process_source((enum process)i)), NULL, &sim->error));
}

void world_end(struct sim *sim)
{
    close_nodes(sim);
    disk_on_sync(NULL, NULL);
    scope_fini(&sim->scope);
    free(sim->stream);
    if (sim->heap.live || sqlite_heap_live() || !disk_is_closed())
        sim_fail(sim, "C15 bounded",
                 "%" PRIu64 " blocks of pawl's, %" PRIu64 " of SQLite's, files %s", sim->heap.live,
                 sqlite_heap_live(), disk_is_closed() ? "closed" : "open");
}
