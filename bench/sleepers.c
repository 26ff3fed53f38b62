/* sleepers.c - a million code instances that wait, each for a timer and for a broadcast of its group:
 * how much memory they hold, how soon a server is ready, how late timers are among them, and what a
 * broadcast to ten of them costs. */
#include "bench.h"
#include <malloc.h>
#include <pawl_code.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLEEPERS    1000000
#define FEW         10000 /* of the store that a broadcast is compared with */
#define GROUP       10    /* reached by one broadcast */
#define MAKERS      192
#define DUE         10000
#define AHEAD_MS    15000 /* long enough to create them all before they fall due */
#define WAKES       4000  /* broadcasts before a kill: 40,000 entries of tail */
#define BROADCASTS  200
#define SETTLE_MS   300
#define WORKERS     4

/* Where the time of a timer's handler goes, and when it was to be called. */
static struct {
    int64_t target_ms;
    double late_ms[DUE];
    size_t count;
} due;

#define SLEEPER(has)                                                                               \
    has(input, uint32_t, group)                                                                    \
    has(input, int64_t, until_ms)                                                                  \
    has(var, uint64_t, wakes)                                                                      \
    has(timer, Tire)                                                                               \
    has(signal, Wake)                                                                              \
    has(await, asleep)

/* A handler must not read a clock: this one does, because it is what measures. */
PAWL_CODE(sleeper, SLEEPER)
{
    PAWL_BEGIN(SLEEPER);
    PAWL_SUBSCRIBE(Wake, pawl_turn_text(turn, "%u", (unsigned)self->group));
    for (;;) {
        PAWL_SELECT(asleep) {
            PAWL_ON_TIMER(Tire, self->until_ms ? PAWL_UNTIL(self->until_ms) : PAWL_DAYS(30))
                break;
            PAWL_ON_SIGNAL(Wake) self->wakes++;
        } PAWL_AWAIT;
    }
    if (self->until_ms)
        due.late_ms[__atomic_fetch_add(&due.count, 1, __ATOMIC_RELAXED) % DUE] =
            (double)(wall_ms() - self->until_ms);
    PAWL_END;
}

/* ---- making them ---- */

struct making {
    pawl *p;
    size_t next, count; /* next: shared by the makers */
    int64_t until_ms;
};

static void *make_some(void *context)
{
    struct making *making = context;
    pawl_error error;
    pawl_id id;

    for (;;) {
        size_t i = __atomic_fetch_add(&making->next, 1, __ATOMIC_RELAXED);
        char input[80];

        if (i >= making->count)
            return NULL;
        snprintf(input, sizeof input, "{\"group\":%zu,\"until_ms\":%lld}",
                 making->until_ms ? SLEEPERS : i / GROUP, (long long)making->until_ms);
        check(pawl_create(making->p,
                          &(pawl_create_args){ .definition = "sleeper", .input = input }, &id,
                          &error),
              &error, "create sleeper");
    }
}

static void make(pawl *p, size_t count, int64_t until_ms)
{
    struct making making = { p, 0, count, until_ms };
    pthread_t threads[MAKERS];

    for (size_t i = 0; i < MAKERS; i++)
        if (pthread_create(&threads[i], NULL, make_some, &making) != 0)
            die("no thread");
    for (size_t i = 0; i < MAKERS; i++)
        pthread_join(threads[i], NULL);
}

static pawl *open_with(const struct bench *bench, const char *name, unsigned workers)
{
    char path[PATH_SIZE], url[PATH_SIZE + 8];
    pawl_options options = { .own = true, .workers = workers };
    pawl_error error;
    pawl *p;

    path_in(bench, name, path);
    snprintf(url, sizeof url, "sqlite:%s", path);
    check(pawl_open(&p, url, &options, &error), &error, url);
    check(pawl_code_register(p, sleeper(), &error), &error, "register sleeper");
    return p;
}

static void broadcast(pawl *p, size_t group)
{
    char input[64], *out;
    pawl_error error;

    snprintf(input, sizeof input, "{\"name\":\"wake\",\"filter\":%zu}", group);
    check(pawl_call(p, "signal.broadcast", input, &out, &error), &error, "broadcast");
    if (!strstr(out, "\"delivered\":10"))
        die("sleepers: a broadcast reached %s", out);
    pawl_free(p, out);
}

/* ---- another process, so that its memory is its own and it can be killed ---- */

static void say(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

/* Make `count`, or wake some of the `count` that are there; say so, and wait for the end. */
void child_sleepers(const struct bench *bench, const char *name, size_t count, bool wake)
{
    uint64_t seed = (uint64_t)wall_ms();
    pawl *p;

    mallopt(M_ARENA_MAX, 2); /* or glibc keeps sixteen heaps, each with holes */
    p = open_with(bench, name, 0);
    say("open");
    if (!wake)
        make(p, count, 0);
    for (size_t i = 0; wake && i < WAKES && i < count / GROUP; i++)
        broadcast(p, random_next(&seed) % (count / GROUP));
    say("done");
    pause();
}

static pid_t start_child(const struct bench *bench, size_t count, bool wake, int *output)
{
    char self[PATH_SIZE] = "", verb[] = "--sleepers", name[] = "sleepers.db", number[32], how[8];
    char dir[PATH_SIZE];
    char *words[] = { self, verb, dir, name, number, how, NULL };

    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        die("cannot find this program");
    memcpy(dir, bench->dir, sizeof dir);
    snprintf(number, sizeof number, "%zu", count);
    snprintf(how, sizeof how, "%d", wake);
    return child_start(words, output);
}

static void hear(int output, const char *expected)
{
    char line[64];

    child_line(output, line, sizeof line);
    if (strcmp(line, expected) != 0)
        die("sleepers: the child says '%s', not '%s'", line, expected);
}

/* ---- the rows ---- */

static void measure_memory(struct bench *bench, size_t count)
{
    struct row row = { .key = "resident_1m_suspended_mib",
                       .unit = "MiB",
                       .sense = AT_MOST,
                       .gate = 128,
                       .stretch = 96 };
    struct row each = { .key = "resident_suspended_b",
                        .what = "resident: each of them, beyond the empty store's",
                        .unit = "B",
                        .sense = AT_MOST,
                        .gate = 100 };
    double before, begin = now_s();
    int output;
    pid_t pid = start_child(bench, count, false, &output);

    hear(output, "open");
    before = resident_mib(pid);
    hear(output, "done");
    rest_ms(SETTLE_MS);
    row.value = resident_mib(pid);
    child_end(pid, SIGKILL);
    close(output);
    snprintf(row.what, sizeof row.what, "resident: %zu suspended code instances, just created",
             count);
    beside(&row, "created at %.0f per second", (double)count / (now_s() - begin));
    report(bench, &row);
    each.value = (row.value - before) * 1024 * 1024 / (double)count;
    report(bench, &each);
}

static void measure_ready(struct bench *bench, size_t count, bool killed)
{
    struct row row = { .unit = "ms", .sense = AT_MOST, .gate = 300, .stretch = 100 };
    double ready[REPEATS], resident = 0;
    struct server server;

    for (int i = 0; i < REPEATS; i++) {
        if (killed) {
            int output;
            pid_t pid = start_child(bench, count, true, &output);

            hear(output, "open");
            hear(output, "done");
            child_end(pid, SIGKILL);
            close(output);
        }
        server_start(bench, "sleepers.db", &server);
        ready[i] = server.ready_ms;
        rest_ms(SETTLE_MS);
        resident = resident_mib(server.pid);
        server_stop(&server);
    }
    snprintf(row.key, sizeof row.key, "ready_1m_suspended%s_ms", killed ? "_killed" : "");
    snprintf(row.what, sizeof row.what, "ready: %zu suspended with a timer each%s", count,
             killed ? ", after a kill -9" : "");
    row.value = median(ready, REPEATS);
    beside(&row, "%.1f to %.1f ms; then %.1f MiB resident", ready[0], ready[REPEATS - 1], resident);
    report(bench, &row);
}

static void measure_due(struct bench *bench, size_t count)
{
    size_t wanted = bench->quick ? 500 : DUE;
    struct row row = { .key = "timer_late_1m_p99_ms",
                       .unit = "ms",
                       .sense = AT_MOST,
                       .gate = 250,
                       .stretch = 100 };
    pawl *p = open_with(bench, "sleepers.db", WORKERS);
    int64_t until_ms = wall_ms() + AHEAD_MS;
    double begin = now_s();

    make(p, wanted, until_ms);
    if (wall_ms() >= until_ms)
        die("sleepers: creating %zu took longer than %d ms", wanted, AHEAD_MS);
    while (__atomic_load_n(&due.count, __ATOMIC_RELAXED) < wanted) {
        if (now_s() - begin > 120)
            die("sleepers: only %zu of %zu timers fired", due.count, wanted);
        rest_ms(10);
    }
    pawl_close(p);
    row.value = percentile(due.late_ms, wanted, 99);
    snprintf(row.what, sizeof row.what, "%zu timers due at one instant, of %zu armed, p99 late",
             wanted, count + wanted);
    if (due.late_ms[0] < 0)
        die("sleepers: a timer fired %.0f ms early", -due.late_ms[0]);
    beside(&row, "none early; first %.0f ms, median %.0f ms", due.late_ms[0],
           median(due.late_ms, wanted));
    report(bench, &row);
}

/* Milliseconds of one broadcast to ten that have been asleep since the store was opened. */
static double time_broadcasts(const struct bench *bench, const char *name, size_t count)
{
    pawl *p = open_with(bench, name, 0);
    double ms[BROADCASTS];
    uint64_t seed = 7;

    for (int i = 0; i < BROADCASTS; i++) {
        double begin = now_s();

        broadcast(p, random_next(&seed) % (count / GROUP));
        ms[i] = (now_s() - begin) * 1e3;
    }
    pawl_close(p);
    return median(ms, BROADCASTS);
}

static void measure_broadcast(struct bench *bench, size_t count)
{
    size_t few = bench->quick ? count / 10 : FEW;
    struct row row = {
        .key = "broadcast_10_of_1m", .unit = "x", .sense = AT_MOST, .gate = 2, .stretch = 1.3
    };
    double small_ms, big_ms;
    pawl *p = open_with(bench, "few.db", 0);

    make(p, few, 0);
    pawl_close(p);
    small_ms = time_broadcasts(bench, "few.db", few);
    big_ms = time_broadcasts(bench, "sleepers.db", count);
    row.value = big_ms / small_ms;
    snprintf(row.what, sizeof row.what, "broadcast to 10 of %zu, against 10 of %zu", count, few);
    beside(&row, "%.2f ms against %.2f ms", big_ms, small_ms);
    report(bench, &row);
    store_remove(bench, "few.db");
}

void measure_sleepers(struct bench *bench)
{
    size_t count = bench->quick ? 2000 : SLEEPERS;

    measure_memory(bench, count);
    measure_ready(bench, count, false);
    measure_ready(bench, count, true);
    measure_due(bench, count);
    measure_broadcast(bench, count);
    store_remove(bench, "sleepers.db");
}
