/* latency.c - one flow of ten steps, alone, from its creation to its end: with tools in this
 * process, and through a worker that speaks HTTP. Both against one fsync of the same disk. */
#include "bench.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS       10
#define SYNCS       4 /* before and after each flow: it is compared with those */
#define ANSWER_SIZE 16384

/* What one page more costs: written behind the others and synced, as a WAL is. */
static double fsync_ms(int fd)
{
    static char page[4096];
    double begin = now_s();

    for (int i = 0; i < SYNCS; i++)
        if (write(fd, page, sizeof page) != sizeof page || fsync(fd) != 0)
            die("cannot write and sync");
    return (now_s() - begin) * 1e3 / SYNCS;
}

/* ---- Through a worker ---- */

/* The text of the first member `name` of what came, into `out`; false: there is none. */
static bool member(const char *text, const char *name, char *out, size_t size)
{
    char mark[64];
    const char *found, *end;

    snprintf(mark, sizeof mark, "\"%s\":\"", name);
    found = strstr(text, mark);
    end = found ? strchr(found + strlen(mark), '"') : NULL;
    if (!end || (size_t)(end - found) - strlen(mark) >= size)
        return false;
    found += strlen(mark);
    memcpy(out, found, (size_t)(end - found));
    out[end - found] = '\0';
    return true;
}

/* The steps that a claim has been given stand behind the results of what was answered. */
static const char *claimed_in(const char *answer)
{
    const char *found = strstr(answer, "\"steps\":");

    return found ? found : answer;
}

/* A worker's whole turn in one request: the answer of one step, and the claim of the next. */
static void work_through(int fd, char *answer)
{
    static const char claim[] = "{\"tools\":[\"far\"],\"worker\":\"bench\",\"wait\":\"20s\"}";
    char step[64], lease[64], body[512];

    http_ask(fd, "/v1/steps/claim", claim, answer, ANSWER_SIZE);
    for (int i = 1; i <= STEPS; i++) {
        if (!member(claimed_in(answer), "step_id", step, sizeof step) ||
            !member(claimed_in(answer), "lease", lease, sizeof lease))
            die("no step was handed out: %s", answer);
        snprintf(body, sizeof body,
                 "{\"steps\":[{\"step_id\":\"%s\",\"lease\":\"%s\",\"result\":{\"n\":1}}]%s%s}",
                 step, lease, i < STEPS ? ",\"claim\":" : "", i < STEPS ? claim : "");
        http_ask(fd, "/v1/steps/complete", body, answer, ANSWER_SIZE);
    }
}

static void define_far(const struct bench *bench)
{
    char text[1024];
    int used = snprintf(text, sizeof text, "name: far\nsteps:\n");
    pawl *p = store_open(bench, "far.db");

    for (int i = 1; i <= STEPS; i++) {
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "  s%d: {tool: far, args: {n: %d}, ", i, i);
        used += i < STEPS ? snprintf(text + used, sizeof text - (size_t)used, "next: s%d}\n", i + 1)
                          : snprintf(text + used, sizeof text - (size_t)used, "done: true}\n");
    }
    define(p, text);
    pawl_close(p);
}

static double worker_ms(int fd, char *answer)
{
    double begin = now_s();

    http_ask(fd, "/v1/instances", "{\"definition\":\"far\"}", answer, ANSWER_SIZE);
    work_through(fd, answer);
    return (now_s() - begin) * 1e3;
}

/* ---- The three in turns, one of each at a time: the disk has moods ---- */

struct times {
    double *sync, *here, *there, *here_ratio, *there_ratio;
    size_t count;
};

static void take_times(const struct bench *bench, const struct times *times)
{
    char path[PATH_SIZE], *answer = get_memory(ANSWER_SIZE);
    size_t arrived = 0;
    pawl *p = flow_alone_open(bench, &arrived);
    struct server server;
    int disk, fd;

    path_in(bench, "sync.bin", path);
    disk = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    define_far(bench);
    server_start(bench, "far.db", &server);
    fd = http_connect(server.port);
    for (size_t i = 0; i < times->count; i++) {
        double before = fsync_ms(disk), between;

        times->here[i] = flow_alone_ms(p);
        between = fsync_ms(disk);
        times->there[i] = worker_ms(fd, answer);
        times->here_ratio[i] = times->here[i] * 2 / (before + between);
        times->there_ratio[i] = times->there[i] * 2 / (between + fsync_ms(disk));
        times->sync[i] = between;
    }
    if (arrived != times->count)
        die("flows: %zu of %zu arrived", arrived, times->count);
    close(fd);
    close(disk);
    unlink(path);
    server_stop(&server);
    store_remove(bench, "far.db");
    flow_alone_close(bench, p);
    free(answer);
}

static void report_latency(struct bench *bench, struct row row, double *took, double *ratios,
                           size_t count, double sync_ms)
{
    row.unit = "x";
    row.sense = AT_MOST;
    row.value = median(ratios, count);
    beside(&row, "p50 %.2f ms, p99 %.2f ms beside %.2f ms", median(took, count),
           percentile(took, count, 99), sync_ms);
    report(bench, &row);
}

void measure_latency(struct bench *bench)
{
    size_t count = bench->quick ? 20 : 200;
    double *room = get_memory(sizeof(double) * count * 5);
    struct times times = { room, room + count, room + 2 * count, room + 3 * count, room + 4 * count,
                           count };
    double sync_ms;

    take_times(bench, &times);
    sync_ms = median(times.sync, count);
    report_latency(
        bench,
        (struct row){ .key = "flow_p50_vs_fsync",
                      .what = "one 10-step flow, p50, in this process, against one fsync",
                      .gate = 20,
                      .stretch = 12 },
        times.here, times.here_ratio, count, sync_ms);
    report_latency(
        bench,
        (struct row){ .key = "flow_worker_p50_vs_fsync",
                      .what = "one 10-step flow, p50, through a worker, against one fsync",
                      .gate = 40,
                      .stretch = 25 },
        times.there, times.there_ratio, count, sync_ms);
    free(room);
}
