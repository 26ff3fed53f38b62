/* code.c - a code instance from its wake to its next wait, against a machine's fire, with the same
 * number of them in a commit; turns of a test; a broadcast that ten times as many keep. A wake takes its timer and its signal back, counts, and arms both again.
 *
 * "Rows" are those that are written: a machine with a deadline, fired with a payload, writes what a wake
 * writes; against a plain fire, one row in the log, the ratio is told. The sync of a commit is the same for both and hides what they cost themselves: so the ratio of CPU time
 * is told beside that of time. */
#include "bench.h"
#include "ticker.h"
#include <pawl_code.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GROUPS 4
#define TURN_S 1.0 /* of both sides together, one of REPEATS */

#define WAKER(has)                                                                                 \
    has(input, uint32_t, group)                                                                    \
    has(var, uint64_t, wakes)                                                                      \
    has(timer, Tire)                                                                               \
    has(signal, Wake)                                                                              \
    has(await, asleep)

PAWL_CODE(waker, WAKER)
{
    PAWL_BEGIN(WAKER);
    PAWL_SUBSCRIBE(Wake, pawl_turn_text(turn, "%u", (unsigned)self->group));
    for (;;) {
        PAWL_SELECT(asleep) {
            PAWL_ON_TIMER(Tire, PAWL_DAYS(30)) break;
            PAWL_ON_SIGNAL(Wake) self->wakes++;
        } PAWL_AWAIT;
    }
    PAWL_END;
}

static double cpu_s(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void make_wakers(pawl *p, int size)
{
    char input[32];
    pawl_error error;
    pawl_id id;

    check(pawl_code_register(p, waker(), &error), &error, "register waker");
    for (int i = 0; i < GROUPS * size; i++) {
        snprintf(input, sizeof input, "{\"group\":%d}", i / size);
        check(pawl_create(p, &(pawl_create_args){ .definition = "waker", .input = input }, &id,
                          &error),
              &error, "create waker");
    }
}

static void wake_group(pawl *p, int group, int size)
{
    char input[64], delivered[32], *out;
    pawl_error error;

    snprintf(input, sizeof input, "{\"name\":\"wake\",\"filter\":%d}", group);
    snprintf(delivered, sizeof delivered, "\"delivered\":%d", size);
    check(pawl_call(p, "signal.broadcast", input, &out, &error), &error, "broadcast");
    if (!strstr(out, delivered))
        die("code: a broadcast reached %s", out);
    pawl_free(p, out);
}

struct pair { /* seconds of either side for the same count */
    double wake_s, fire_s, wake_cpu_s, fire_cpu_s, count;
};

static void run_turn(const struct bench *bench, pawl *p, struct crowd *crowd, int size,
                     struct pair *out)
{
    double limit = bench->quick ? 0.2 : TURN_S;

    *out = (struct pair){ 0 };
    while (out->wake_s + out->fire_s < limit) {
        for (int group = 0; group < GROUPS; group++) {
            double begin = now_s(), begin_cpu = cpu_s(), middle, middle_cpu;

            wake_group(p, group, size);
            middle = now_s();
            middle_cpu = cpu_s();
            crowd_fire(crowd, (size_t)size);
            out->wake_s += middle - begin;
            out->wake_cpu_s += middle_cpu - begin_cpu;
            out->fire_s += now_s() - middle;
            out->fire_cpu_s += cpu_s() - middle_cpu;
            out->count += size;
        }
    }
}

/* A machine whose fires write what a wake does: an entry with a payload, and a timer that is armed anew. */
static const char clockwork[] = "name: wheel\n"
                                "states: [here, there, late]\n"
                                "initial_state: here\n"
                                "terminal_states: [late]\n"
                                "terminal_kinds: {late: failure}\n"
                                "deadlines:\n"
                                "  - {state: here, after: 30d, action: tire}\n"
                                "  - {state: there, after: 30d, action: tire}\n"
                                "transitions:\n"
                                "  - {from_state: here, action: turn, to_state: there}\n"
                                "  - {from_state: there, action: turn, to_state: here}\n"
                                "  - {from_state: here, action: tire, to_state: late}\n"
                                "  - {from_state: there, action: tire, to_state: late}\n";

struct subject {
    pawl *p;
    struct crowd crowd;
    int size; /* in one commit */
};

static void measure_against(struct bench *bench, struct subject *subject, struct row *row)
{
    double ratios[REPEATS], cpu[REPEATS], wakes[REPEATS], fires[REPEATS];
    struct pair pair;

    run_turn(bench, subject->p, &subject->crowd, subject->size, &pair); /* warms up */
    for (int i = 0; i < REPEATS; i++) {
        run_turn(bench, subject->p, &subject->crowd, subject->size, &pair);
        ratios[i] = pair.fire_s / pair.wake_s;
        cpu[i] = pair.fire_cpu_s / pair.wake_cpu_s;
        wakes[i] = pair.wake_cpu_s / pair.count * 1e6;
        fires[i] = pair.fire_cpu_s / pair.count * 1e6;
    }
    row->value = median(ratios, REPEATS);
    beside(row, "%.2f to %.2f; of CPU %.2f: %.1f us a wake, %.1f us a fire", ratios[0],
           ratios[REPEATS - 1], median(cpu, REPEATS), median(wakes, REPEATS),
           median(fires, REPEATS));
    report(bench, row);
}

static void measure_size(struct bench *bench, int size)
{
    struct subject subject = { .p = store_open(bench, "code.db"), .size = size };
    size_t count = (size_t)(GROUPS * size);
    struct row row = { .unit = "x", .sense = AT_LEAST, .gate = 0.4 };

    make_wakers(subject.p, size);
    for (int plain = 0; plain < 2; plain++) {
        if (plain)
            crowd_make(bench, "fired.db", count, &subject.crowd);
        else
            crowd_make_of(bench, "fired.db", clockwork, "wheel", count, &subject.crowd);
        subject.crowd.payload = plain ? NULL : "{\"signal\":\"wake\",\"payload\":null}";
        row.sense = plain ? TOLD : AT_LEAST;
        snprintf(row.key, sizeof row.key, "code_wake_vs_%sfire_%d", plain ? "plain_" : "", size);
        snprintf(row.what, sizeof row.what, "%d wakes in a commit, against %d %s", size, size,
                 plain ? "plain fires" : "fires that write the same rows");
        measure_against(bench, &subject, &row);
        crowd_free(&subject.crowd);
        store_remove(bench, "fired.db");
    }
    pawl_close(subject.p);
    store_remove(bench, "code.db");
}

/* ---- Turns that a test waits for: one call moves the clock over all of them ---- */

static pawl *open_clock(int turns)
{
    pawl_options options = { .own = true, .test_clock = true };
    char input[32];
    pawl_error error;
    pawl_id id;
    pawl *p;

    check(pawl_open(&p, "memory:", &options, &error), &error, "open");
    check(pawl_code_register(p, ticker(), &error), &error, "register ticker");
    snprintf(input, sizeof input, "{\"most\":%d}", turns);
    check(pawl_create(p, &(pawl_create_args){ .definition = "ticker", .input = input }, &id, &error),
          &error, "create ticker");
    return p;
}

/* Seconds for so many turns, in `calls` calls. */
static double advance_s(int turns, int calls)
{
    pawl *p = open_clock(turns);
    pawl_error error;
    double begun = now_s();

    for (int i = 0; i < calls; i++)
        check(pawl_test_advance(p, (int64_t)1000 * turns / calls, &error), &error, "advance");
    begun = now_s() - begun;
    pawl_close(p);
    return begun;
}

/* Seconds that `pawl run --test` takes for so many turns, with its start and all that it prints. */
static double trial_s(struct bench *bench, char *const *words)
{
    char text[1 << 16];
    size_t used = 0;
    double begun = now_s();
    ssize_t size;
    int output;
    pid_t pid = child_start(words, &output);

    while ((size = read(output, text + used, sizeof text - 1 - used)) > 0) {
        used += (size_t)size;
        if (used > sizeof text / 2) { /* only its end is looked at */
            memmove(text, text + used - 100, 100);
            used = 100;
        }
    }
    text[used] = '\0';
    child_end(pid, 0);
    close(output);
    if (!strstr(text, "completed"))
        die("%s run --test did not end with 'completed'", bench->program);
    return now_s() - begun;
}

static void measure_trial(struct bench *bench, bool in_module, double host_rate)
{
    int turns = bench->quick ? 2000 : 200000;
    char program[PATH_SIZE], module[PATH_SIZE + 32], input[32];
    char run[] = "run", test[] = "--test", given[] = "--input", with[] = "--module";
    char ticker[] = "ticker", countdown[] = "countdown";
    char *words[] = { program, run,  in_module ? ticker : countdown, test, given,
                      input,   in_module ? with : NULL, module, NULL };
    struct row row = { .unit = "/s", .sense = bench->quick ? TOLD : AT_LEAST, .gate = 20000 };

    memcpy(program, bench->program, sizeof program);
    snprintf(module, sizeof module, "%.*sbench/ticker.so",
             (int)(strrchr(program, '/') + 1 - program), program);
    snprintf(input, sizeof input, "{\"%s\":%d}", in_module ? "most" : "from", turns);
    snprintf(row.key, sizeof row.key, "code_turns_of_a_trial%s", in_module ? "_with_a_module" : "");
    snprintf(row.what, sizeof row.what, "turns of pawl run --test%s",
             in_module ? ", of code in a module" : "");
    row.value = turns / trial_s(bench, words);
    beside(&row, "%.2f x an advance in a host program", row.value / host_rate);
    report(bench, &row);
}

static void measure_turns(struct bench *bench)
{
    int turns = bench->quick ? 2000 : 1000000, few = turns / 100;
    double one_by_one = advance_s(few, few), all = advance_s(turns, 1);
    struct row row = { .key = "code_turns_of_a_test",
                       .what = "turns of an advance over a million of them",
                       .unit = "/s",
                       .sense = bench->quick ? TOLD : AT_LEAST,
                       .gate = 20000 };

    row.value = turns / all;
    beside(&row, "%.1f x one call for each turn, at a hundredth of them",
           row.value / (few / one_by_one));
    report(bench, &row);
    measure_trial(bench, false, row.value);
    measure_trial(bench, true, row.value);
}

/* ---- A broadcast that many keep which sleep ---- */

#define KEEPER(has)                                                                                \
    has(timer, Tire) has(signal, Call) has(buffered, Call) has(await, asleep)

PAWL_CODE(keeper, KEEPER)
{
    PAWL_BEGIN(KEEPER);
    PAWL_TIMER(asleep, Tire, PAWL_DAYS(30));
    PAWL_END;
}

struct keepers {
    pawl *p;
    int left; /* to be made */
};

static void *make_keepers(void *context)
{
    struct keepers *keepers = context;
    pawl_error error;
    pawl_id id;

    while (__atomic_fetch_sub(&keepers->left, 1, __ATOMIC_RELAXED) > 0)
        check(pawl_create(keepers->p, &(pawl_create_args){ .definition = "keeper" }, &id, &error),
              &error, "create keeper");
    return NULL;
}

static pawl *open_keepers(const struct bench *bench, const char *name)
{
    pawl *p = store_open(bench, name);
    pawl_error error;

    check(pawl_code_register(p, keeper(), &error), &error, "register keeper");
    return p;
}

/* Many at once, so that they share commits. */
static void fill_keepers(const struct bench *bench, const char *name, int count)
{
    struct keepers keepers = { open_keepers(bench, name), count };
    pthread_t threads[64];

    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        if (pthread_create(&threads[i], NULL, make_keepers, &keepers) != 0)
            die("no thread");
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        pthread_join(threads[i], NULL);
    pawl_close(keepers.p);
}

/* CPU seconds of a broadcast that all of them keep, the first since the store was opened. */
static double keep_s(const struct bench *bench, const char *name, int count)
{
    pawl *p = open_keepers(bench, name);
    char kept[32], *out;
    pawl_error error;
    double begun = cpu_s();

    check(pawl_call(p, "signal.broadcast", "{\"name\":\"call\"}", &out, &error), &error,
          "broadcast");
    begun = cpu_s() - begun;
    snprintf(kept, sizeof kept, "\"kept\":%d}", count);
    if (!strstr(out, kept))
        die("code: a broadcast was kept by %s", out);
    pawl_free(p, out);
    pawl_close(p);
    return begun;
}

static void measure_keepers(struct bench *bench)
{
    int few = bench->quick ? 100 : 1000, many = 10 * few;
    struct row row = { .key = "broadcast_kept_10x", .unit = "x", .sense = AT_MOST, .gate = 12 };
    double ratios[REPEATS], each[REPEATS];

    fill_keepers(bench, "few.db", few);
    fill_keepers(bench, "many.db", many);
    for (int i = 0; i < REPEATS; i++) {
        double small_s = keep_s(bench, "few.db", few), big_s = keep_s(bench, "many.db", many);

        ratios[i] = big_s / small_s;
        each[i] = big_s / many * 1e6;
    }
    row.value = median(ratios, REPEATS);
    snprintf(row.what, sizeof row.what, "CPU of a broadcast that %d keep, against %d", many, few);
    beside(&row, "%.1f to %.1f x; %.1f us each", ratios[0], ratios[REPEATS - 1],
           median(each, REPEATS));
    report(bench, &row);
    store_remove(bench, "few.db");
    store_remove(bench, "many.db");
}

void measure_code(struct bench *bench)
{
    measure_keepers(bench);
    measure_turns(bench);
    measure_size(bench, 64);
    measure_size(bench, bench->quick ? 100 : 1000);
}
