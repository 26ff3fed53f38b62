/* code.c - a code instance from its wake to its next wait, against a machine's fire, with the same
 * number of them in a commit. A wake takes its timer and its signal back, counts, and arms both anew. */
#include "bench.h"
#include <pawl_code.h>
#include <stdio.h>
#include <string.h>

#define WAKES  64 /* in one commit: of one broadcast */
#define GROUPS 10
#define TURN_S 1.5 /* of both sides together, one of REPEATS */

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

static void make_wakers(pawl *p)
{
    char input[32];
    pawl_error error;
    pawl_id id;

    check(pawl_code_register(p, waker(), &error), &error, "register waker");
    for (int i = 0; i < GROUPS * WAKES; i++) {
        snprintf(input, sizeof input, "{\"group\":%d}", i / WAKES);
        check(pawl_create(p, &(pawl_create_args){ .definition = "waker", .input = input }, &id,
                          &error),
              &error, "create waker");
    }
}

static void wake_group(pawl *p, int group)
{
    char input[64], *out;
    pawl_error error;

    snprintf(input, sizeof input, "{\"name\":\"wake\",\"filter\":%d}", group);
    check(pawl_call(p, "signal.broadcast", input, &out, &error), &error, "broadcast");
    if (!strstr(out, "\"delivered\":64"))
        die("code: a broadcast reached %s", out);
    pawl_free(p, out);
}

/* Both sides in turns; seconds for the same number of wakes and fires. */
static void run_turn(const struct bench *bench, pawl *p, struct crowd *crowd, double *wake_rate,
                     double *fire_rate)
{
    double wake_s = 0, fire_s = 0, limit = bench->quick ? 0.2 : TURN_S;
    double count = 0;

    while (wake_s + fire_s < limit) {
        for (int group = 0; group < GROUPS; group++) {
            double begin = now_s(), middle;

            wake_group(p, group);
            middle = now_s();
            crowd_fire(crowd, WAKES);
            wake_s += middle - begin;
            fire_s += now_s() - middle;
            count += WAKES;
        }
    }
    *wake_rate = count / wake_s;
    *fire_rate = count / fire_s;
}

void measure_code(struct bench *bench)
{
    struct row row = { .key = "code_wake_vs_fire",
                       .unit = "x",
                       .sense = AT_LEAST,
                       .gate = 0.4,
                       .what = "64 wakes to suspend in a commit, against 64 fires of machines" };
    double wakes[REPEATS], fires[REPEATS], ratios[REPEATS];
    struct crowd crowd;
    pawl *p = store_open(bench, "code.db");

    make_wakers(p);
    crowd_make(bench, "fired.db", GROUPS * WAKES, &crowd);
    run_turn(bench, p, &crowd, &wakes[0], &fires[0]); /* warms up */
    for (int i = 0; i < REPEATS; i++) {
        run_turn(bench, p, &crowd, &wakes[i], &fires[i]);
        ratios[i] = wakes[i] / fires[i];
    }
    pawl_close(p);
    crowd_close(&crowd);
    crowd_free(&crowd);
    row.value = median(ratios, REPEATS);
    beside(&row, "%.0f wakes/s, %.0f fires/s, ratios %.2f to %.2f", median(wakes, REPEATS),
           median(fires, REPEATS), ratios[0], ratios[REPEATS - 1]);
    report(bench, &row);
    store_remove(bench, "code.db");
    store_remove(bench, "fired.db");
}
