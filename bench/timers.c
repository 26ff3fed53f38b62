/* timers.c - many timers due at one instant: how late is the last of them, and is any early? Timers
 * of code, waits of flows and deadlines of machines; seen by the times of the entries they made,
 * which the commit that holds them gets when it begins, and by whoever is told (code: its handler).
 */
#include "bench.h"
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define TIMERS        10000
#define TIMER_WORKERS 4
#define MAKERS        64
#define HOLD_MS       2000 /* a deadline: from the commit that begins it */

struct alarm {
    pawl *p;
    const char *definition;
    int64_t target_ms, ahead_ms; /* long enough to create them all before they fall due */
    size_t wanted, next;         /* next: shared by the makers */
    size_t count;                /* of those that came back to us */
    double *told_ms, cpu_us, sleeps; /* of the process, while they fired */
};

static const char rest[] = "name: rest\nsteps:\n"
                           "  wait: {wait: {until: \"{{input.at}}\"}, next: end}\n"
                           "  end: {tool: set, args: {}, done: true}\n";

static const char lease[] =
    "name: lease\nstates: [free, held, over]\ninitial_state: free\nterminal_states: [over]\n"
    "terminal_kinds: {over: success}\ntransitions:\n"
    "  - {from_state: free, action: turn, to_state: held}\n"
    "  - {from_state: held, action: lapse, to_state: over}\n"
    "deadlines:\n  - {state: held, after: 2s, action: lapse}\n";

/* A handler must not read a clock: this one does, because it is what measures. */
static void handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    struct alarm *alarm = context;

    (void)state;
    if (event->kind == PAWL_EVENT_START) {
        pawl_turn_timer(turn, "ring", alarm->target_ms - event->at_ms);
        return;
    }
    alarm->told_ms[__atomic_fetch_add(&alarm->count, 1, __ATOMIC_RELAXED) % alarm->wanted] =
        (double)(wall_ms() - alarm->target_ms);
    pawl_turn_complete(turn, "null");
}

/* ---- Making them ---- */

static void *make_some(void *context)
{
    struct alarm *alarm = context;
    pawl_create_args args = { .definition = alarm->definition };
    time_t second = (time_t)(alarm->target_ms / 1000);
    char input[64];
    pawl_error error;
    struct tm tm;
    pawl_id id;

    strftime(input, sizeof input, "{\"at\":\"%Y-%m-%dT%H:%M:%SZ\"}", gmtime_r(&second, &tm));
    args.input = input;
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
        die("timers: creating %zu took longer than %lld ms", alarm->wanted,
            (long long)alarm->ahead_ms);
}

/* ---- What the store says afterwards ---- */

static const char select_due[] = /* each timer's entry, and when it was due */
    "SELECT l.at - coalesce(?1, b.at + ?2) FROM pawl_log l"
    " JOIN pawl_instance i ON i.number = l.inst"
    " JOIN pawl_transition t ON t.definition = i.definition AND t.idx = l.what"
    " LEFT JOIN pawl_log b ON b.pos = l.prev"
    " WHERE t.action IN ('timer', 'lapse')";

static size_t read_late(const struct bench *bench, const char *name, int64_t target_ms,
                        double *late, size_t room)
{
    char path[PATH_SIZE];
    sqlite3_stmt *statement;
    sqlite3 *db;
    size_t count = 0;

    path_in(bench, name, path);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, select_due, -1, &statement, NULL) != SQLITE_OK)
        die("%s: %s", path, sqlite3_errmsg(db));
    if (target_ms)
        sqlite3_bind_int64(statement, 1, target_ms);
    sqlite3_bind_int64(statement, 2, HOLD_MS);
    while (count < room && sqlite3_step(statement) == SQLITE_ROW)
        late[count++] = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return count;
}

static void note_use(struct alarm *alarm, double sign)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    alarm->cpu_us += sign * ((double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
                             (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec));
    alarm->sleeps += sign * (double)use.ru_nvcsw;
}

static void wait_for_all(const struct bench *bench, const char *name, struct alarm *alarm)
{
    double *late = get_memory(sizeof *late * alarm->wanted), begin = now_s();

    while (wall_ms() < alarm->target_ms - 5)
        rest_ms(1);
    note_use(alarm, -1);
    rest_ms(500); /* looking is work too */
    while (read_late(bench, name, alarm->target_ms, late, alarm->wanted) < alarm->wanted) {
        if (now_s() - begin > 120)
            die("timers: not all of %zu fired", alarm->wanted);
        rest_ms(500);
    }
    note_use(alarm, 1);
    free(late);
}

/* ---- One kind ---- */

static pawl *open_timers(const struct bench *bench, const char *name)
{
    pawl_options options = { .own = true, .workers = TIMER_WORKERS };
    char path[PATH_SIZE], url[PATH_SIZE + 8];
    pawl_error error;
    pawl *p;

    path_in(bench, name, path);
    snprintf(url, sizeof url, "sqlite:%s", path);
    check(pawl_open(&p, url, &options, &error), &error, url);
    return p;
}

static void report_late(struct bench *bench, const char *name, const struct alarm *alarm,
                        const char *key, const char *what)
{
    struct row row = { .unit = "ms", .sense = AT_MOST, .gate = 250, .stretch = 100 };
    double *late = get_memory(sizeof *late * alarm->wanted);
    size_t count = read_late(bench, name, alarm->target_ms, late, alarm->wanted);

    row.value = percentile(late, count, 99);
    if (alarm->told_ms && percentile(alarm->told_ms, alarm->wanted, 99) > row.value)
        row.value = percentile(alarm->told_ms, alarm->wanted, 99);
    snprintf(row.key, sizeof row.key, "%s", key);
    snprintf(row.what, sizeof row.what, "%zu %s due at one instant, p99 lateness", count, what);
    beside(&row,
           "first %.0f, median %.0f, last %.0f ms; %s; %.1f us of CPU each, %.0f sleeps of threads",
           late[0], median(late, count), late[count - 1], late[0] < 0 ? "EARLY" : "none early",
           alarm->cpu_us / (double)count, alarm->sleeps);
    if (late[0] < 0)
        row.value = 1e9; /* never early */
    report(bench, &row);
    free(late);
    store_remove(bench, name);
}

static void measure_made(struct bench *bench, const char *definition, const char *key,
                         const char *what)
{
    static const char *const names[] = { "ring", NULL };
    struct alarm alarm = { .definition = definition,
                           .wanted = bench->quick ? 500 : TIMERS,
                           .ahead_ms = bench->quick ? 4000 : 12000,
                           .p = open_timers(bench, "timers.db") };
    pawl_code_type type = { .name = "alarm", .timers = names, .handle = handle, .context = &alarm };
    pawl_error error;

    if (strcmp(definition, type.name) == 0)
        check(pawl_code_register(alarm.p, &type, &error), &error, "register alarm");
    define(alarm.p, rest);
    alarm.told_ms = get_memory(sizeof(double) * alarm.wanted);
    alarm.target_ms = (wall_ms() + alarm.ahead_ms) / 1000 * 1000;
    make_all(&alarm);
    wait_for_all(bench, "timers.db", &alarm);
    pawl_close(alarm.p);
    report_late(bench, "timers.db", &alarm, key, what);
    free(alarm.told_ms);
}

static void measure_deadlines(struct bench *bench)
{
    struct alarm alarm = { .wanted = bench->quick ? 500 : TIMERS };
    struct crowd crowd;

    crowd_make_of(bench, "timers.db", lease, "lease", alarm.wanted, &crowd);
    crowd_close(&crowd);
    alarm.p = crowd.p = open_timers(bench, "timers.db");
    for (size_t done = 0; done < alarm.wanted; done += crowd.fires_room / 2) {
        size_t i = 0;

        for (; i < crowd.fires_room / 2 && done + i < alarm.wanted; i++)
            crowd.fires[i] =
                (pawl_batch_fire){ .id = crowd.ids[done + i].text, .args = { .action = "turn" } };
        crowd_fire_these(&crowd, i);
    }
    wait_for_all(bench, "timers.db", &alarm);
    crowd_free(&crowd);
    report_late(bench, "timers.db", &alarm, "deadline_late_p99_ms", "deadlines of machines");
}

void measure_timers(struct bench *bench)
{
    measure_made(bench, "alarm", "timer_late_p99_ms", "timers of code");
    measure_made(bench, "rest", "wait_late_p99_ms", "waits of flows");
    measure_deadlines(bench);
}
