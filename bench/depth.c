/* depth.c - does a long history make the next entry dearer? Both must stay within 20 %. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- Entry 100,000 of an instance against entry 10 ---- */

#define SHALLOW_ENTRIES 20 /* of each fresh instance: around entry 10 */
#define SHALLOW_COUNT   25 /* fresh instances in one commit */
#define FIRES           (SHALLOW_ENTRIES * SHALLOW_COUNT)
#define PAIRS           60

static double fire_timed(struct crowd *crowd, const pawl_id *ids, size_t count)
{
    double begin;

    for (size_t i = 0; i < FIRES; i++)
        crowd->fires[i] = (pawl_batch_fire){ .id = ids[i * count / FIRES].text,
                                             .args = { .action = "turn", .actor_ref = ACTOR } };
    begin = now_s();
    crowd_fire_these(crowd, FIRES);
    return (now_s() - begin) * 1e3;
}

static void measure_entries(struct bench *bench)
{
    struct row row = { .key = "entry_deep_vs_shallow", .unit = "x", .sense = AT_MOST, .gate = 1.2 };
    size_t depth = bench->quick ? 5000 : 100000, pairs = bench->quick ? 8 : PAIRS;
    double deep[PAIRS], shallow[PAIRS];
    struct crowd crowd;

    snprintf(row.what, sizeof row.what, "entry %zu of an instance against entry 10", depth);
    crowd_make(bench, "depth.db", pairs * SHALLOW_COUNT + 1, &crowd);
    for (size_t done = 0; done < depth; done += FIRES)
        fire_timed(&crowd, crowd.ids, 1);
    for (size_t i = 0; i < pairs; i++) {
        deep[i] = fire_timed(&crowd, crowd.ids, 1);
        shallow[i] = fire_timed(&crowd, crowd.ids + 1 + i * SHALLOW_COUNT, SHALLOW_COUNT);
    }
    row.value = median(deep, pairs) / median(shallow, pairs);
    beside(&row, "%.2f ms against %.2f ms for %d fires in one commit", median(deep, pairs),
           median(shallow, pairs), FIRES);
    report(bench, &row);
    crowd_free(&crowd);
    store_remove(bench, "depth.db");
}

/* ---- Step 10,000 of a flow against step 10 ---- */

static const char circle[] = "name: circle\n"
                             "steps:\n"
                             "  start: {tool: set, args: {n: 1}, next: back}\n"
                             "  back: {tool: tick, next: start}\n";

#define WARM_TICKS   5   /* a tick is two steps: the fifth is step 10 */
#define WINDOW_TICKS 200 /* from there, and again before the end */

/* The tool `tick` notes when it is called, and ends the flow at the last place. */
struct ticks {
    double *at;
    size_t count, wanted;
};

static void tick(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct ticks *ticks = context;

    (void)call;
    if (ticks->count < ticks->wanted)
        ticks->at[ticks->count++] = now_s();
    if (ticks->count == ticks->wanted)
        pawl_answer_error(answer, "\"enough\"");
}

static void run_circle(pawl *p, struct ticks *ticks, size_t wanted)
{
    pawl_create_args args = { .definition = "circle" };
    pawl_error error;
    pawl_id id;

    ticks->count = 0;
    ticks->wanted = wanted;
    check(pawl_create(p, &args, &id, &error), &error, "create circle");
    check(pawl_run_due(p, &error), &error, "run circle");
    if (ticks->count != wanted)
        die("circle: %zu ticks, not %zu", ticks->count, wanted);
}

/* The median time of a step among the window that begins at tick `first`, in ms. */
static double step_ms(const struct ticks *ticks, size_t first)
{
    double gaps[WINDOW_TICKS];

    for (size_t i = 0; i < WINDOW_TICKS; i++)
        gaps[i] = (ticks->at[first + i + 1] - ticks->at[first + i]) * 1e3 / 2;
    return median(gaps, WINDOW_TICKS);
}

static void measure_steps(struct bench *bench)
{
    struct row row = { .key = "step_deep_vs_shallow", .unit = "x", .sense = AT_MOST, .gate = 1.2 };
    size_t wanted = bench->quick ? 500 : 5000;
    struct ticks ticks = { .at = get_memory(sizeof(double) * (wanted + 1)) };
    double ratios[REPEATS], deep = 0, shallow = 0;
    pawl *p = store_open(bench, "depth.db");
    pawl_error error;

    snprintf(row.what, sizeof row.what, "step %zu of a flow against step 10", 2 * wanted);
    check(pawl_tool_register(p, "tick", tick, &ticks, &error), &error, "register tick");
    define(p, circle);
    for (int i = 0; i < REPEATS; i++) {
        run_circle(p, &ticks, wanted);
        deep = step_ms(&ticks, wanted - WINDOW_TICKS - 1);
        run_circle(p, &ticks, WARM_TICKS + WINDOW_TICKS + 1);
        shallow = step_ms(&ticks, WARM_TICKS);
        ratios[i] = deep / shallow;
    }
    row.value = median(ratios, REPEATS);
    beside(&row, "%.3f ms against %.3f ms a step, ratios %.2f to %.2f", deep, shallow, ratios[0],
           ratios[REPEATS - 1]);
    report(bench, &row);
    pawl_close(p);
    free(ticks.at);
    store_remove(bench, "depth.db");
}

void measure_depth(struct bench *bench)
{
    measure_entries(bench);
    measure_steps(bench);
}
