/* flows.c - flows of ten steps: how many steps a second, and what one leaves on the disk. */
#include "bench.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES        (2 * FLOW_STEPS + 2) /* start, step.start and step.complete of each, finish */
#define FLOWS_AT_ONCE  64
#define FLOW_WORKERS   4
#define FLOWS_PER_DISK 1000

/* Nine steps of `tool`, each with these keys, and one of the tool that counts. */
static void print_flow(const char *name, const char *tool, const char *keys, char *out, size_t size)
{
    int used = snprintf(out, size, "name: %s\nsteps:\n", name);

    for (int i = 1; i < FLOW_STEPS; i++)
        used +=
            snprintf(out + used, size - (size_t)used,
                     "  s%d: {tool: %s, args: {n: %d}%s, next: s%d}\n", i, tool, i, keys, i + 1);
    snprintf(out + used, size - (size_t)used, "  s%d: {tool: last, done: true}\n", FLOW_STEPS);
}

static sem_t room; /* for another flow, where as many as may be are kept under way */

/* The tool of the last step: counts those that arrive. */
static void last(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)call;
    pawl_answer_result(answer, "{\"n\":10}");
    __atomic_fetch_add((size_t *)context, 1, __ATOMIC_RELAXED);
    sem_post(&room);
}

static void work(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, "{\"n\":1}");
}

pawl *flow_open(const char *url, const pawl_options *options, const char *tool, size_t *arrived)
{
    char text[1024];
    pawl_error error;
    pawl *p;

    check(pawl_open(&p, url, options, &error), &error, url);
    check(pawl_tool_register(p, "last", last, arrived, &error), &error, "register last");
    check(pawl_tool_register(p, "work", work, NULL, &error), &error, "register work");
    print_flow("ten", tool, "", text, sizeof text);
    define(p, text);
    return p;
}

static pawl *open_with_flow(const struct bench *bench, const char *tool, uint32_t workers,
                            size_t *arrived)
{
    char path[PATH_SIZE], url[PATH_SIZE + 8];
    pawl_options options = { .own = true, .workers = workers };

    path_in(bench, "flows.db", path);
    snprintf(url, sizeof url, "sqlite:%s", path);
    return flow_open(url, &options, tool, arrived);
}

static void start_flow_of(pawl *p, const char *definition)
{
    pawl_create_args args = { .definition = definition };
    pawl_error error;
    pawl_id id;

    check(pawl_create(p, &args, &id, &error), &error, definition);
}

static void start_flow(pawl *p)
{
    start_flow_of(p, "ten");
}

static void *start_one(void *context)
{
    start_flow(context);
    return NULL;
}

/* `count` flows, at most FLOWS_AT_ONCE at a time, begun together. */
static void run_rounds(pawl *p, const size_t *arrived, size_t count)
{
    pthread_t threads[FLOWS_AT_ONCE];
    size_t first = __atomic_load_n(arrived, __ATOMIC_RELAXED), wanted = 0;

    while (wanted < count) {
        size_t now = count - wanted < FLOWS_AT_ONCE ? count - wanted : FLOWS_AT_ONCE;

        wanted += now;
        for (size_t i = 0; i < now; i++)
            if (pthread_create(&threads[i], NULL, start_one, p) != 0)
                die("no thread");
        for (size_t i = 0; i < now; i++)
            pthread_join(threads[i], NULL);
        while (__atomic_load_n(arrived, __ATOMIC_RELAXED) - first < wanted)
            rest_ms(1);
    }
}

struct stream {
    pawl *p;
    const char *definition;
    double end;
    size_t begun;
};

/* Whenever one has arrived the next begins, until the time is over. */
static void *start_many(void *context)
{
    struct stream *stream = context;

    for (;;) {
        sem_wait(&room);
        if (now_s() >= stream->end)
            break;
        start_flow_of(stream->p, stream->definition);
        __atomic_fetch_add(&stream->begun, 1, __ATOMIC_RELAXED);
    }
    sem_post(&room); /* the others are to see it too */
    return NULL;
}

/* FLOWS_AT_ONCE under way all the time, and at the end all have arrived; flows per second. */
static double run_flows_of(pawl *p, const char *definition, const size_t *arrived, double seconds)
{
    double begin = now_s();
    struct stream stream = { .p = p, .definition = definition, .end = begin + seconds };
    size_t first = __atomic_load_n(arrived, __ATOMIC_RELAXED);
    pthread_t threads[FLOWS_AT_ONCE];

    sem_init(&room, 0, FLOWS_AT_ONCE);
    for (size_t i = 0; i < FLOWS_AT_ONCE; i++)
        if (pthread_create(&threads[i], NULL, start_many, &stream) != 0)
            die("no thread");
    for (size_t i = 0; i < FLOWS_AT_ONCE; i++)
        pthread_join(threads[i], NULL);
    while (__atomic_load_n(arrived, __ATOMIC_RELAXED) - first < stream.begun)
        rest_ms(1);
    return (double)stream.begun / (now_s() - begin);
}

double flow_rate(pawl *p, const size_t *arrived, double seconds)
{
    return run_flows_of(p, "ten", arrived, seconds);
}

static double append_rate(struct append *append, double seconds)
{
    double begin = now_s();
    size_t rows = 0;

    for (; now_s() - begin < seconds; rows += 64)
        append_commit(append, 64, 10000);
    return (double)rows / (now_s() - begin);
}

static void measure_rate(struct bench *bench, const char *tool, struct row row)
{
    double ratios[REPEATS], flows[REPEATS], seconds = bench->quick ? 0.3 : 1.5;
    struct append *append = append_open(bench, "append.db");
    size_t arrived = 0;
    pawl *p = open_with_flow(bench, tool, FLOW_WORKERS, &arrived);

    flow_rate(p, &arrived, seconds / 2);
    for (int i = 0; i < REPEATS; i++) {
        double rate = append_rate(append, seconds / 2);

        flows[i] = flow_rate(p, &arrived, seconds);
        ratios[i] = flows[i] * ENTRIES / rate;
    }
    row.value = median(ratios, REPEATS);
    beside(&row, "%.0f steps/s, %d threads for tools", median(flows, REPEATS) * FLOW_STEPS,
           FLOW_WORKERS);
    report(bench, &row);
    pawl_close(p);
    append_close(append);
    store_remove(bench, "flows.db");
    store_remove(bench, "append.db");
}

/* Limits that are never reached, on every step. */
static void measure_limits(struct bench *bench)
{
    double ratios[REPEATS], flows[REPEATS], seconds = bench->quick ? 0.3 : 1.5;
    struct row row = { .key = "flow_limits_vs_none",
                       .sense = AT_LEAST,
                       .gate = 0.95,
                       .unit = "x",
                       .what = "the same flows with a rate on each step, against those without" };
    char text[2048];
    size_t arrived = 0;
    pawl *p = open_with_flow(bench, "work", FLOW_WORKERS, &arrived);

    print_flow("limited", "work", ", rate: {max: 100000, per: 1s}", text, sizeof text);
    define(p, text);
    flow_rate(p, &arrived, seconds / 2);
    for (int i = 0; i < REPEATS; i++) {
        double without = flow_rate(p, &arrived, seconds);

        flows[i] = run_flows_of(p, "limited", &arrived, seconds);
        ratios[i] = flows[i] / without;
    }
    row.value = median(ratios, REPEATS);
    beside(&row, "%.0f steps/s with limits", median(flows, REPEATS) * FLOW_STEPS);
    report(bench, &row);
    pawl_close(p);
    store_remove(bench, "flows.db");
}

void measure_flows(struct bench *bench)
{
    measure_limits(bench);
    measure_rate(bench, "work",
                 (struct row){ .key = "flow_tools_vs_append",
                               .sense = AT_LEAST,
                               .gate = 0.25,
                               .stretch = 0.5,
                               .unit = "x",
                               .what = "10 registered tools, 64 flows at once, against append" });
    measure_rate(bench, "set",
                 (struct row){ .key = "flow_entries_vs_append",
                               .sense = TOLD,
                               .unit = "x",
                               .what = "9 `set` steps and a tool, 64 at once, against append" });
    measure_latency(bench);
}

/* ---- One flow, alone ---- */

pawl *flow_alone_open(const struct bench *bench, size_t *arrived)
{
    return open_with_flow(bench, "work", 0, arrived);
}

double flow_alone_ms(pawl *p)
{
    double begin = now_s();
    pawl_error error;

    start_flow(p);
    check(pawl_run_due(p, &error), &error, "run ten");
    return (now_s() - begin) * 1e3;
}

void flow_alone_close(const struct bench *bench, pawl *p)
{
    pawl_close(p);
    store_remove(bench, "flows.db");
}

/* ---- Disk ---- */

/* Workers: they share commits, and so roots, as those of a server do; without, each stands alone.
 */
static void measure_flow_disk(struct bench *bench, const char *tool, uint32_t workers,
                              struct row row)
{
    size_t arrived = 0, count = bench->quick ? 100 : FLOWS_PER_DISK;
    double before;
    pawl_error error;
    pawl *p = open_with_flow(bench, tool, 0, &arrived);

    pawl_close(p);
    before = store_bytes(bench, "flows.db");
    p = open_with_flow(bench, tool, workers, &arrived);
    if (workers > 0)
        run_rounds(p, &arrived, count);
    for (size_t i = 0; i < count && workers == 0; i++) {
        start_flow(p);
        if (i % FLOWS_AT_ONCE == FLOWS_AT_ONCE - 1 || i + 1 == count)
            check(pawl_run_due(p, &error), &error, "run ten");
    }
    pawl_close(p);
    if (arrived != count)
        die("flows: %zu of %zu arrived", arrived, count);
    row.value = (store_bytes(bench, "flows.db") - before) / (double)count / 1024;
    beside(&row, "%zu flows, %d entries each", count, ENTRIES);
    report(bench, &row);
    store_remove(bench, "flows.db");
}

static void measure_entry_disk(struct bench *bench)
{
    struct row row = { .key = "disk_per_entry",
                       .unit = "B",
                       .sense = AT_MOST,
                       .gate = 110,
                       .stretch = 80,
                       .what = "disk per entry with hash and actor, 64 per commit" };
    size_t commits = bench->quick ? 300 : 3000;
    struct crowd crowd;
    double before;

    crowd_make(bench, "disk.db", bench->quick ? 1000 : 10000, &crowd);
    crowd_close(&crowd);
    before = store_bytes(bench, "disk.db");
    crowd_reopen(bench, "disk.db", &crowd);
    for (size_t i = 0; i < commits; i++)
        crowd_fire(&crowd, 64);
    crowd_close(&crowd);
    row.value = (store_bytes(bench, "disk.db") - before) / (double)(commits * 64);
    beside(&row, "%zu entries, %.1f MiB", commits * 64,
           (store_bytes(bench, "disk.db") - before) / (1 << 20));
    report(bench, &row);
    crowd_free(&crowd);
    store_remove(bench, "disk.db");
}

void measure_disk(struct bench *bench)
{
    measure_entry_disk(bench);
    measure_flow_disk(bench, "work", FLOW_WORKERS,
                      (struct row){ .key = "disk_per_flow",
                                    .unit = "KiB",
                                    .sense = AT_MOST,
                                    .gate = 2.5,
                                    .stretch = 1.5,
                                    .what = "disk per completed 10-step flow, 64 at once" });
    measure_flow_disk(bench, "set", 0,
                      (struct row){ .key = "disk_per_set_flow",
                                    .unit = "KiB",
                                    .sense = TOLD,
                                    .what = "disk per flow of 9 `set` steps and a tool" });
    measure_flow_disk(bench, "work", 0,
                      (struct row){ .key = "disk_per_lone_flow",
                                    .unit = "KiB",
                                    .sense = TOLD,
                                    .what = "disk per 10-step flow, each commit for one step" });
}
