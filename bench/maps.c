/* maps.c - a map of many items: how many a second, and whether ten times as many cost more than ten
 * times as much. */
#include "bench.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ITEMS       10000
#define ENTRIES     (2.0 * ITEMS) /* step.start and step.complete of each */
#define MAP_WORKERS 4

static void work(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, "{\"n\":1}");
}

/* The step behind the map. */
static void last(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)call;
    pawl_answer_result(answer, "null");
    __atomic_fetch_add((size_t *)context, 1, __ATOMIC_RELAXED);
}

static char *print_input(int items)
{
    size_t size = 32 + (size_t)items * 8, used;
    char *text = get_memory(size);

    used = (size_t)snprintf(text, size, "{\"items\":[0");
    for (int i = 1; i < items; i++)
        used += (size_t)snprintf(text + used, size - used, ",%d", i);
    snprintf(text + used, size - used, "]}");
    return text;
}

static pawl *open_with_map(const struct bench *bench, size_t *arrived)
{
    char path[PATH_SIZE], url[PATH_SIZE + 8];
    pawl_options options = { .own = true, .workers = MAP_WORKERS };
    pawl_error error;
    pawl *p;

    path_in(bench, "maps.db", path);
    snprintf(url, sizeof url, "sqlite:%s", path);
    check(pawl_open(&p, url, &options, &error), &error, url);
    check(pawl_tool_register(p, "last", last, arrived, &error), &error, "register last");
    check(pawl_tool_register(p, "work", work, NULL, &error), &error, "register work");
    define(p, "name: each\ndo:\n"
              "  - map: {over: '{{input.items}}', step: {tool: work, args: {n: '{{item}}'}}}\n"
              "  - {tool: last}\n");
    return p;
}

/* Of this process, all threads: what a map costs, also beside other programs. */
static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One after the other; seconds of CPU, and by the clock. */
static double run_maps(pawl *p, const size_t *arrived, int maps, int items, double *elapsed)
{
    char *input = print_input(items);
    pawl_create_args args = { .definition = "each", .input = input };
    double begin = now_s(), before_cpu = cpu_s();
    pawl_error error;
    pawl_id id;

    for (int i = 0; i < maps; i++) {
        size_t before = __atomic_load_n(arrived, __ATOMIC_RELAXED);

        check(pawl_create(p, &args, &id, &error), &error, "create each");
        while (__atomic_load_n(arrived, __ATOMIC_RELAXED) == before)
            rest_ms(1);
    }
    free(input);
    *elapsed = now_s() - begin;
    return cpu_s() - before_cpu;
}

static double append_rate(struct append *append, double seconds)
{
    double begin = now_s();
    size_t rows = 0;

    for (; now_s() - begin < seconds; rows += 64)
        append_commit(append, 64, 10000);
    return (double)rows / (now_s() - begin);
}

void measure_maps(struct bench *bench)
{
    double ratios[REPEATS], times[REPEATS], rates[REPEATS], elapsed;
    struct append *append = append_open(bench, "append.db");
    struct row rate = { .key = "map_items_vs_append",
                        .sense = AT_LEAST,
                        .gate = 0.25,
                        .unit = "x",
                        .what = "a map of 10,000 items with a registered tool, against append" };
    struct row tenfold = { .key = "map_10x",
                           .sense = AT_MOST,
                           .gate = 1.3,
                           .unit = "x",
                           .what = "CPU of a map of 10,000 items against 10 maps of 1,000" };
    size_t arrived = 0;
    pawl *p = open_with_map(bench, &arrived);
    int repeats = bench->quick ? 1 : REPEATS;

    run_maps(p, &arrived, 1, ITEMS / 10, &elapsed);
    for (int i = 0; i < repeats; i++) {
        double rows = append_rate(append, bench->quick ? 0.15 : 0.75);

        ratios[i] = run_maps(p, &arrived, 1, ITEMS, &times[i]);
        ratios[i] /= run_maps(p, &arrived, 10, ITEMS / 10, &elapsed);
        rates[i] = ENTRIES / times[i] / rows;
    }
    rate.value = median(rates, (size_t)repeats);
    tenfold.value = median(ratios, (size_t)repeats);
    beside(&rate, "%.0f items/s, %d threads for tools", ITEMS / median(times, (size_t)repeats),
           MAP_WORKERS);
    report(bench, &rate);
    report(bench, &tenfold);
    pawl_close(p);
    append_close(append);
    store_remove(bench, "maps.db");
    store_remove(bench, "append.db");
}
