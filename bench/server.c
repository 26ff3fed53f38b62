/* server.c - from outside: how soon it is ready, and how much memory it holds. */
#include "bench.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTLE_MS   300
#define LOAD_S      4
#define CONNECTIONS 64
#define TAIL_FIRES  60000 /* before the kill: the tail of the log is then about as long as it gets \
                           */

static void report_ready(struct bench *bench, const char *key, const char *what, double gate,
                         double stretch, double *ready)
{
    struct row row = { .unit = "ms", .sense = AT_MOST, .gate = gate, .stretch = stretch };

    snprintf(row.key, sizeof row.key, "%s", key);
    snprintf(row.what, sizeof row.what, "%s", what);
    row.value = median(ready, REPEATS);
    beside(&row, "%.1f to %.1f ms, from exec to the line that says so", ready[0],
           ready[REPEATS - 1]);
    report(bench, &row);
}

static void report_resident(struct bench *bench, const char *key, const char *what, double gate,
                            double stretch, double mib)
{
    struct row row = {
        .unit = "MiB", .sense = AT_MOST, .gate = gate, .stretch = stretch, .value = mib
    };

    snprintf(row.key, sizeof row.key, "%s", key);
    snprintf(row.what, sizeof row.what, "%s", what);
    report(bench, &row);
}

/* ---- A small store ---- */

static void measure_empty(struct bench *bench)
{
    double ready[REPEATS], fresh[REPEATS], resident[REPEATS];
    struct row row = { .key = "ready_new_ms",
                       .what = "ready: a store that is not there yet",
                       .unit = "ms",
                       .sense = TOLD };
    struct server server;

    for (int i = 0; i < REPEATS; i++) {
        store_remove(bench, "empty.db");
        server_start(bench, "empty.db", &server);
        fresh[i] = server.ready_ms;
        server_stop(&server);
        server_start(bench, "empty.db", &server);
        ready[i] = server.ready_ms;
        rest_ms(SETTLE_MS);
        resident[i] = resident_mib(server.pid);
        server_stop(&server);
    }
    store_remove(bench, "empty.db");
    report_ready(bench, "ready_empty_ms", "ready: an empty store", 30, 15, ready);
    row.value = median(fresh, REPEATS);
    report(bench, &row);
    report_resident(bench, "resident_idle_mib", "resident: idle server", 25, 15,
                    median(resident, REPEATS));
}

static void measure_loaded(struct bench *bench)
{
    struct row row = {
        .key = "resident_10k_mib", .unit = "MiB", .sense = AT_MOST, .gate = 40, .stretch = 30
    };
    struct server server;
    struct crowd crowd;
    double rate;

    crowd_make(bench, "small.db", bench->quick ? 1000 : 10000, &crowd);
    crowd_close(&crowd);
    server_start(bench, "small.db", &server);
    rate = server_load(&server, &crowd, CONNECTIONS, bench->quick ? 0.5 : LOAD_S, &row.value);
    server_stop(&server);
    snprintf(row.what, sizeof row.what, "resident: %zu instances under load over HTTP",
             crowd.count);
    beside(&row, "%.0f fires/s over %d connections", rate, CONNECTIONS);
    report(bench, &row);
    crowd_free(&crowd);
    store_remove(bench, "small.db");
}

/* Flows that wait for a signal, in a store that a server has just opened: they are rows, and nothing
 * in memory. Against the same server with one such flow. */
static double waiting_mib(struct bench *bench, size_t count)
{
    static const char text[] = "name: waits\nsteps:\n  a: {wait: {signal: go}, done: true}\n";
    struct server server;
    struct crowd crowd;
    double resident;

    crowd_make_of(bench, "waits.db", text, "waits", count, &crowd);
    crowd_free(&crowd);
    server_start(bench, "waits.db", &server);
    rest_ms(SETTLE_MS);
    resident = resident_mib(server.pid);
    server_stop(&server);
    store_remove(bench, "waits.db");
    return resident;
}

static void measure_waiting(struct bench *bench)
{
    size_t count = bench->quick ? 2000 : 50000;
    double one = waiting_mib(bench, 1), all = waiting_mib(bench, count);
    struct row row = { .key = "resident_per_suspended_b",
                       .what = "resident: each suspended flow",
                       .unit = "B",
                       .sense = AT_MOST,
                       .gate = 100 };

    row.value = all > one ? (all - one) * (1 << 20) / (double)count : 0;
    beside(&row, "%.1f MiB with %zu, %.1f MiB with one", all, count, one);
    report(bench, &row);
}

void measure_server(struct bench *bench)
{
    measure_empty(bench);
    measure_waiting(bench);
    measure_loaded(bench);
}

/* ---- A million: another process of this program fires, so that its memory is its own ---- */

/* The ids, in a file: what a child reads of it does not count as its memory. */
static void write_ids(const struct bench *bench, const struct crowd *crowd)
{
    char path[PATH_SIZE];
    FILE *file;

    path_in(bench, "big.ids", path);
    file = fopen(path, "w");
    if (!file || fwrite(crowd->ids, sizeof *crowd->ids, crowd->count, file) != crowd->count ||
        fclose(file) != 0)
        die("cannot write %s", path);
}

static pid_t start_firing(const struct bench *bench, const struct big *big, size_t batch,
                          size_t fires, int *output)
{
    char self[PATH_SIZE] = "", verb[] = "--child", numbers[3][32], dir[PATH_SIZE], name[64];
    char *words[] = { self, verb, dir, name, numbers[0], numbers[1], numbers[2], NULL };

    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        die("cannot find this program");
    memcpy(dir, bench->dir, sizeof dir);
    snprintf(name, sizeof name, "%s", big->name);
    snprintf(numbers[0], sizeof numbers[0], "%zu", big->crowd.count);
    snprintf(numbers[1], sizeof numbers[1], "%zu", batch);
    snprintf(numbers[2], sizeof numbers[2], "%zu", fires);
    return child_start(words, output);
}

/* The child: fire every instance in turn, far apart, `fires` in all; then say so and wait. */
void child_fire(const struct bench *bench, const char *name, size_t count, size_t batch,
                size_t fires)
{
    struct crowd crowd = { .p = store_open(bench, name), .fires_room = batch };
    pawl_id *ids = get_memory(sizeof *ids * batch);
    size_t at = (size_t)wall_ms() % count;
    char path[PATH_SIZE];
    int fd;

    path_in(bench, "big.ids", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    crowd.fires = get_memory(sizeof *crowd.fires * batch);
    for (size_t done = 0; done < fires; done += batch) {
        for (size_t i = 0; i < batch; i++, at = (at + 611953) % count) {
            if (pread(fd, &ids[i], sizeof *ids, (off_t)(at * sizeof *ids)) != sizeof *ids)
                die("cannot read %s", path);
            crowd.fires[i] = (pawl_batch_fire){ .id = ids[i].text,
                                                .args = { .action = "turn", .actor_ref = ACTOR } };
        }
        crowd_fire_these(&crowd, batch);
    }
    printf("fired\n");
    fflush(stdout);
    pause();
}

static void measure_big_resident(struct bench *bench, struct big *big)
{
    char line[64], what[80];
    double resident, begin = now_s();
    int output;
    pid_t pid = start_firing(bench, big, 1000, big->crowd.count, &output);

    child_line(output, line, sizeof line);
    if (strcmp(line, "fired") != 0)
        die("the child that fires has failed");
    resident = resident_mib(pid);
    told("  %zu instances fired once each after opening, %.0f per second", big->crowd.count,
         (double)big->crowd.count / (now_s() - begin));
    child_end(pid, SIGKILL);
    close(output);
    snprintf(what, sizeof what, "resident: %zu instances, each fired since opening",
             big->crowd.count);
    report_resident(bench, "resident_1m_mib", what, 128, 96, resident);
}

static void measure_big_ready(struct bench *bench, struct big *big, bool killed)
{
    double ready[REPEATS];
    struct server server;
    char what[80];

    for (int i = 0; i < REPEATS; i++) {
        if (killed) {
            char line[64];
            int output;
            pid_t pid = start_firing(bench, big, 64, bench->quick ? 2000 : TAIL_FIRES, &output);

            child_line(output, line, sizeof line);
            child_end(pid, SIGKILL);
            close(output);
        }
        server_start(bench, big->name, &server);
        ready[i] = server.ready_ms;
        rest_ms(SETTLE_MS);
        server_stop(&server);
    }
    snprintf(what, sizeof what, "ready: %zu instances%s", big->crowd.count,
             killed ? ", after a kill -9" : "");
    report_ready(bench, killed ? "ready_1m_killed_ms" : "ready_1m_ms", what, 300, 100, ready);
}

void measure_million_server(struct bench *bench, struct big *big)
{
    struct server server;

    write_ids(bench, &big->crowd);
    crowd_close(&big->crowd);
    measure_big_resident(bench, big);
    server_start(bench, big->name, &server); /* puts right what the child left behind */
    server_stop(&server);
    measure_big_ready(bench, big, false);
    measure_big_ready(bench, big, true);
}
