/* world.c - the store on its simulated disk: opening and calling it, and its time. */
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

#define BEGUN_AT INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */
#define YEARS_MS INT64_C(315360000000)  /* ten of them */

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
    if (sim->is_traced)
        printf("# %s\n", line);
}

_Noreturn void sim_fail(struct sim *sim, const char *rule, const char *format, ...)
{
    uint32_t first = sim->trace_count > TRACE_LINES ? sim->trace_count - TRACE_LINES : 0;
    const char *bug = getenv("PAWL_BUG");
    char words[600];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    for (uint32_t i = first; i < sim->trace_count; i++)
        printf("# %s\n", sim->trace[i % TRACE_LINES]);
    printf("# seed %" PRIu64 ", step %u: %s: %s\n# to repeat it: script/simulate --seed %" PRIu64
           " --runs 1 --trace%s%s\n",
           sim->seed, sim->step, rule, words, sim->seed, bug ? " --bug " : "", bug ? bug : "");
    test_fail(__FILE__, __LINE__, "seed %" PRIu64 " breaks %s", sim->seed, rule);
}

/* ---- Opening ---- */

static void note_latest(struct sim *sim)
{
    if (sim->wall_ms > sim->latest_ms)
        sim->latest_ms = sim->wall_ms;
}

static pawl_status open_node(struct sim *sim, uint32_t index)
{
    pawl_options options = { .own = !sim->is_shared,
                             .resize = sim->heap.heap.resize,
                             .resize_context = sim->heap.heap.context };
    pawl_status status;

    sim->envs[index] = env_sim_new(sim->wall_ms, dice_draw(&sim->dice));
    status = pawl_open_env(&sim->nodes[index], stage_url, &options, sim->envs[index], &sim->error);
    if (status == PAWL_OK)
        status = code_register(sim, sim->nodes[index]);
    if (status == PAWL_OK)
        faults_watch(sim, index);
    return status;
}

void world_close(struct sim *sim)
{
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        pawl_close(sim->nodes[i]);
        sim->nodes[i] = NULL;
        sim->envs[i] = NULL; /* went with it */
    }
}

pawl_status world_open(struct sim *sim)
{
    pawl_status status = PAWL_OK;

    sim->life++;
    note_latest(sim);
    sim->heap.fail_at = 0;
    sim->is_shared = !sim->is_healing && dice_chance(&sim->dice, sim->swarm.shared);
    sim->node_count = sim->is_shared ? NODES_MAX : 1;
    for (uint32_t i = 0; i < sim->node_count && status == PAWL_OK; i++)
        status = open_node(sim, i);
    if (status != PAWL_OK)
        world_close(sim);
    return status;
}

/* Another program that would own the store beside its owner. */
void world_rival(struct sim *sim)
{
    pawl_options options = { .own = true };
    pawl *rival = NULL;
    pawl_status status = pawl_open_env(
        &rival, stage_url, &options, env_sim_new(sim->wall_ms, dice_draw(&sim->dice)), &sim->error);

    if (status == PAWL_OK && !sim->is_shared)
        sim_fail(sim, "one owner", "a second owner opened the store");
    sim_note(sim, "a second owner: %s", pawl_status_name(status));
    pawl_close(rival);
}

/* ---- Time ---- */

void world_pass(struct sim *sim, int64_t by_ms)
{
    sim->elapsed_ms += by_ms;
    sim->wall_ms += by_ms;
    note_latest(sim);
    for (uint32_t i = 0; i < sim->node_count; i++)
        if (sim->envs[i])
            env_sim_advance(sim->envs[i], by_ms);
}

void world_set_wall(struct sim *sim, int64_t wall_ms)
{
    sim->wall_ms = wall_ms < BEGUN_AT - YEARS_MS ? BEGUN_AT : wall_ms;
    for (uint32_t i = 0; i < sim->node_count; i++)
        env_sim_set_wall(sim->envs[i], sim->wall_ms);
    note_latest(sim);
}

/* ---- Calls ---- */

static bool is_failure(pawl_status status)
{
    return status == PAWL_STORAGE_FAILURE || status == PAWL_NO_MEMORY ||
           status == PAWL_OUTCOME_UNKNOWN;
}

pawl *sim_node(struct sim *sim)
{
    return sim->nodes[sim->inside           ? sim->inside - 1
                      : sim->node_count > 1 ? dice_below(&sim->dice, sim->node_count)
                                            : 0];
}

static pawl_status call(struct sim *sim, struct node **out, const char *operation,
                        const char *input)
{
    pawl *p = sim_node(sim);
    char *text = NULL;
    pawl_status status = pawl_call(p, operation, input, &text, &sim->error);

    *out = NULL;
    if (status == PAWL_OK &&
        node_read_json(&sim->scope, arena_str(&sim->scope.arena, str_of(text)), out) != PAWL_OK)
        sim_fail(sim, "answers", "%s: no JSON: %s", operation, text);
    sim_note(sim, "%s %.160s: %s %.80s", operation, input, pawl_status_name(status),
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
    char input[INPUT_MAX];
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
    pawl *p = sim_node(sim);
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

    sim->swarm = (struct swarm){ .power = draw_rate(dice, 100),
                                 .kill = draw_rate(dice, 100),
                                 .disk = draw_rate(dice, 60),
                                 .memory = draw_rate(dice, 40),
                                 .jump = draw_rate(dice, 60),
                                 .lost = draw_rate(dice, 120),
                                 .repeat = draw_rate(dice, 120),
                                 .late = draw_rate(dice, 300),
                                 .slow = draw_rate(dice, 100),
                                 .pause = draw_rate(dice, 60),
                                 .point = draw_rate(dice, 20),
                                 .meddle = draw_rate(dice, 300),
                                 .restart = draw_rate(dice, 20),
                                 .jumps_years = dice_chance(dice, 200) };
    if (dice_chance(dice, 500)) { /* a storm */
        sim->swarm.power = 200 + dice_below(dice, 500);
        sim->swarm.kill = 200 + dice_below(dice, 500);
    }
    sim->swarm.shared = dice_chance(dice, 700) ? 0 : dice_chance(dice, 500) ? 500 : 1000;
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

/* A store with all definitions, which every run begins with. */
void world_prepare(void)
{
    static struct sim sim;

    sim = (struct sim){ .wall_ms = BEGUN_AT, .release = 1, .is_healing = true };
    fault_init(&sim.heap, 0, FAULT_ONCE);
    disk_load(stage_path);
    disk_arm((struct disk_plan){ 0 });
    EXPECT_OK(world_open(&sim));
    for (const char *const *source = process_sources; *source; source++)
        EXPECT_OK(pawl_define(sim.nodes[0], *source, strlen(*source), NULL, &sim.error));
    world_close(&sim);
    tally_begin();
    views_drop();
    disk_save(stage_path);
}

void world_begin(struct sim *sim, uint64_t seed)
{
    *sim = (struct sim){ .seed = seed,
                         .dice = { seed },
                         .wall_ms = BEGUN_AT,
                         .latest_ms = BEGUN_AT,
                         .release = 1,
                         .is_traced = getenv("PAWL_SIM_TRACE") != NULL };
    fault_init(&sim->heap, 0, FAULT_ONCE);
    scope_init(&sim->scope, &heap_libc, LIMIT_SCOPE);
    draw_swarm(sim);
    disk_load(stage_path);
    disk_arm((struct disk_plan){ 0 });
    sqlite3_randomness(0, NULL); /* begins again by the disk's */
    forget_files();
    faults_begin(sim);
    EXPECT_OK(world_open(sim));
}

void world_end(struct sim *sim)
{
    world_close(sim);
    disk_on_sync(NULL, NULL);
    scope_fini(&sim->scope);
    free(sim->stream);
    if (sim->heap.live || sqlite_heap_live() || !disk_is_closed())
        sim_fail(sim, "C15 bounded",
                 "%" PRIu64 " blocks of pawl's, %" PRIu64 " of SQLite's, files %s", sim->heap.live,
                 sqlite_heap_live(), disk_is_closed() ? "closed" : "open");
}
