/* engine_width.c - what a wide flow costs, compared with narrow ones in the same run. */
#include "base/buf.h"
#include "engine_fixture.h"
#include <stdio.h>
#include <time.h>

enum { NARROW = 500, LEASED = 100 /* ten times as many are one claim's most */, TIMES = 10 };
enum { PUTS = 600 };

/* Of `leaf` each # is the number of the leaf. */
static void print_leaf(struct buf *text, const char *leaf, int number)
{
    for (; *leaf; leaf++)
        if (*leaf == '#')
            buf_fmt(text, "%d", number);
        else
            buf_byte(text, (unsigned char)*leaf);
}

static void define_wide(struct world *world, int width, const char *leaf)
{
    struct buf text;

    buf_init(&text, &heap_libc, 0);
    buf_fmt(&text, "name: wide%d\ndopar:\n", width);
    for (int i = 0; i < width; i++) {
        buf_fmt(&text, "  - ");
        print_leaf(&text, leaf, i);
        buf_byte(&text, '\n');
    }
    world_define(world, buf_text(&text));
    buf_fini(&text);
}

#define SET "{action: set, payload: {a: 1}}"
#define SAW "{action: saw, payload: {a: 1}}"

static void turn(struct world *world, struct buf *body)
{
    char *answer;

    EXPECT_OK(pawl_call(world->p, "step.complete_many", buf_text(body), &answer, &world->error));
    buf_clear(body);
    buf_fmt(body, "{\"steps\":[");
    for (const char *at = strstr(answer, "\"steps\":"); at && (at = strstr(at, "\"step_id\":\""));) {
        const char *lease = strstr(at, "\"lease\":\"");

        buf_fmt(body, "%s{\"step_id\":\"%.*s\",\"lease\":\"%.32s\"}",
                body->data[body->size - 1] == '[' ? "" : ",", (int)strcspn(at + 11, "\""), at + 11,
                lease + 9);
        at = lease;
    }
    buf_fmt(body, "],\"claim\":{\"tools\":[\"saw\"],\"worker\":\"w/1\",\"max\":1000}}");
    pawl_free(world->p, answer);
}

static void run_here(struct world *world, const char *id)
{
    (void)id;
    world_advance(world, 1);
}

static void run_by_worker(struct world *world, const char *id)
{
    struct buf body;

    (void)id;
    buf_init(&body, &heap_libc, 0);
    buf_fmt(&body, "{\"steps\":[],\"claim\":{\"tools\":[\"saw\"],\"worker\":\"w/1\",\"max\":1000}}");
    do
        turn(world, &body);
    while (strstr(buf_text(&body), "step_id"));
    buf_fini(&body);
}

static void cancel(struct world *world, const char *id)
{
    EXPECT_OK(pawl_cancel(world->p, id, NULL, "x", NULL, &world->error));
}

static double cpu_of(struct world *world, int times, int width,
                     void (*run)(struct world *world, const char *id), const char *end)
{
    char name[16];
    clock_t begun = clock();

    snprintf(name, sizeof name, "wide%d", width);
    for (int i = 0; i < times; i++) {
        const char *id = world_create(world, name, "{}");

        run(world, id);
        if (end)
            world_expect_state(world, id, end);
    }
    return (double)(clock() - begun) / CLOCKS_PER_SEC;
}

/* One of ten times the width costs at most `factor` times as much as ten. */
static void compare(struct world *world, int width, double factor, const char *leaf,
                    void (*run)(struct world *world, const char *id), const char *end)
{
    double narrow, wide;

    define_wide(world, width, leaf);
    define_wide(world, TIMES * width, leaf);
    narrow = cpu_of(world, TIMES, width, run, end);
    wide = cpu_of(world, 1, TIMES * width, run, end);
    printf("# ten of %d: %.2f s, one of %d: %.2f s\n", width, narrow, TIMES * width, wide);
    EXPECT(wide < factor * narrow + 0.3); /* much below what it took: minutes */
}

/* Steps put something into a context that is so large already. */
static void define_large(struct world *world, const char *name, int size)
{
    struct buf text;

    buf_init(&text, &heap_libc, 0);
    buf_fmt(&text, "name: %s\ndo:\n  - {action: set, payload: {m: \"%0*d\"}, augment: {big: m}}\n"
                   "  - dopar:\n", name, size, 0);
    for (int i = 0; i < PUTS; i++)
        buf_fmt(&text, "      - {action: set, payload: {v: 1}, augment: {k%d: v}}\n", i);
    world_define(world, buf_text(&text));
    buf_fini(&text);
}

static double cpu_of_one(struct world *world, const char *name)
{
    clock_t begun = clock();
    const char *id = world_create(world, name, "{}");

    world_advance(world, 1);
    world_expect_state(world, id, "completed");
    return (double)(clock() - begun) / CLOCKS_PER_SEC;
}

/* Slow: one kind of store is enough for each. */
#define WIDTH_TEST(backend, name)                                                                  \
    static void width_##name##_on(struct world *world);                                            \
    TEST(width_##backend, name)                                                                    \
    {                                                                                              \
        struct world world;                                                                        \
        world_begin(&world, #backend);                                                             \
        width_##name##_on(&world);                                                                 \
        world_end(&world);                                                                         \
    }                                                                                              \
    static void width_##name##_on(struct world *world)

WIDTH_TEST(memory, a_dopar_that_the_engine_runs_costs_no_more_than_three_times_ten_of_a_tenth)
{
    compare(world, NARROW, 3, SET, run_here, "completed");
}

WIDTH_TEST(memory, a_dopar_whose_leaves_augment_costs_no_more_than_three_times_ten_of_a_tenth)
{
    compare(world, NARROW, 3,
            "{action: set, payload: {a: 1}, augment: {k#: a, all.in.k#: identity}}", run_here,
            "completed");
}

WIDTH_TEST(memory, augmenting_a_large_context_costs_what_is_put)
{
    double small, large;

    define_large(world, "small", 100);
    define_large(world, "large", 900000);
    small = cpu_of_one(world, "small");
    large = cpu_of_one(world, "large");
    printf("# 600 puts into a context of 100 bytes: %.2f s, of 900,000: %.2f s\n", small, large);
    EXPECT(large < 3 * small + 1); /* much below what it took: minutes */
}

WIDTH_TEST(sqlite, a_dopar_that_a_worker_runs_costs_no_more_than_three_times_ten_of_a_tenth)
{
    compare(world, NARROW, 3, SAW, run_by_worker, "completed");
}

WIDTH_TEST(sqlite, cancelling_a_dopar_costs_no_more_than_three_times_ten_of_a_tenth)
{
    compare(world, NARROW, 3, SAW, cancel, "cancelled");
}

static void lose_leases(struct world *world, const char *id)
{
    char *answer;

    EXPECT_OK(pawl_call(world->p, "step.claim",
                        "{\"tools\":[\"saw\"],\"worker\":\"w/1\",\"max\":1000,\"lease\":\"1s\"}",
                        &answer, &world->error));
    EXPECT(strstr(answer, "step_id"));
    pawl_free(world->p, answer);
    world_advance(world, 1001);
    (void)pawl_cancel(world->p, id, NULL, "x", NULL, &world->error); /* it may have failed */
}

WIDTH_TEST(memory, losing_the_leases_of_a_dopar_costs_no_more_than_twice_ten_of_a_tenth)
{
    compare(world, LEASED, 2, SAW, lose_leases, NULL);
}

/* The server restarts in between: whose the leases were is in the history alone. */
static void lose_leases_of_before(struct world *world, const char *id)
{
    char *answer;

    EXPECT_OK(pawl_call(world->p, "step.claim",
                        "{\"tools\":[\"saw\"],\"worker\":\"w/1\",\"max\":1000,\"lease\":\"1s\"}",
                        &answer, &world->error));
    pawl_free(world->p, answer);
    world_close(world);
    world_open(world);
    world_advance(world, 1001);
    (void)pawl_cancel(world->p, id, NULL, "x", NULL, &world->error);
}

WIDTH_TEST(memory, losing_leases_after_a_restart_costs_no_more_than_twice_ten_of_a_tenth)
{
    compare(world, LEASED, 2, SAW, lose_leases_of_before, NULL);
}
