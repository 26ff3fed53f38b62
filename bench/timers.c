/* timers.c - many timers due at one instant: how late is the last of them? */
#include "bench.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMERS        10000
#define TIMER_WORKERS 4
#define MAKERS        64
#define AHEAD_MS      8000 /* long enough to create them all before they fall due */

struct alarm {
    pawl *p;
    int64_t target_ms;
    size_t wanted, next; /* next: shared by the makers */
    double *late_ms;
    size_t count;
};

/* A handler must not read a clock: this one does, because it is what measures. */
static void handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    struct alarm *alarm = context;

    (void)state;
    if (event->kind == PAWL_EVENT_START) {
        pawl_turn_timer(turn, "ring", alarm->target_ms - event->at_ms);
        return;
    }
    alarm->late_ms[__atomic_fetch_add(&alarm->count, 1, __ATOMIC_RELAXED) % alarm->wanted] =
        (double)(wall_ms() - alarm->target_ms);
    pawl_turn_complete(turn, "null");
}

static void *make_some(void *context)
{
    struct alarm *alarm = context;
    pawl_create_args args = { .definition = "alarm" };
    pawl_error error;
    pawl_id id;

    while (__atomic_fetch_add(&alarm->next, 1, __ATOMIC_RELAXED) < alarm->wanted)
        check(pawl_create(alarm->p, &args, &id, &error), &error, "create alarm");
    return NULL;
}

static void make_all(struct alarm *alarm)
{
    pthread_t threads[MAKERS];

    for (size_t i = 0; i < MAKERS; i++)
        if (pthread_create(&threads[i], NULL, make_some, alarm) != 0)
            die("no thread");
    for (size_t i = 0; i < MAKERS; i++)
        pthread_join(threads[i], NULL);
    if (wall_ms() >= alarm->target_ms)
        die("timers: creating %zu took longer than %d ms", alarm->wanted, AHEAD_MS);
}

static void wait_for_all(const struct alarm *alarm)
{
    double begin = now_s();

    while (__atomic_load_n(&alarm->count, __ATOMIC_RELAXED) < alarm->wanted) {
        if (now_s() - begin > 60)
            die("timers: only %zu of %zu fired", alarm->count, alarm->wanted);
        rest_ms(10);
    }
}

void measure_timers(struct bench *bench)
{
    static const char *const timers[] = { "ring", NULL };
    struct alarm alarm = { .wanted = bench->quick ? 500 : TIMERS };
    pawl_code_type type = {
        .name = "alarm", .timers = timers, .handle = handle, .context = &alarm
    };
    struct row row = { .key = "timer_late_p99_ms", .unit = "ms", .sense = TOLD };
    pawl_options options = { .own = true, .workers = TIMER_WORKERS };
    char path[PATH_SIZE], url[PATH_SIZE + 8];
    pawl_error error;

    path_in(bench, "timers.db", path);
    snprintf(url, sizeof url, "sqlite:%s", path);
    check(pawl_open(&alarm.p, url, &options, &error), &error, url);
    check(pawl_code_register(alarm.p, &type, &error), &error, "register alarm");
    alarm.late_ms = get_memory(sizeof(double) * alarm.wanted);
    alarm.target_ms = wall_ms() + AHEAD_MS;
    make_all(&alarm);
    wait_for_all(&alarm);
    pawl_close(alarm.p);
    row.value = percentile(alarm.late_ms, alarm.wanted, 99);
    snprintf(row.what, sizeof row.what, "%zu timers due at one instant, p99 lateness",
             alarm.wanted);
    beside(&row, "first %.0f ms, median %.0f ms; gate of a later issue 250 ms, none early",
           alarm.late_ms[0], median(alarm.late_ms, alarm.wanted));
    report(bench, &row);
    free(alarm.late_ms);
    store_remove(bench, "timers.db");
}
