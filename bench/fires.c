/* fires.c - the library's rows: fires per second against the yardstick, and how long the
 * slowest commits take. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_S        2.4  /* of both sides together, one of REPEATS */
#define CHUNK_ROWS    2000 /* of one side before the other goes on: short, the disk has moods */
#define LATENCIES_MAX 200000

/* What one side did. */
struct side {
    double rates[REPEATS]; /* rows per second */
    double seconds;        /* of the present turn */
    size_t rows;
    double *latencies; /* of each commit, in ms; NULL: not wanted */
    size_t latency_count;
};

struct contest {
    struct append *append;
    struct crowd *crowd;
    size_t size; /* rows per commit */
    struct side append_side, fire_side;
};

static void note(struct side *side, double seconds, size_t rows)
{
    side->seconds += seconds;
    side->rows += rows;
    if (side->latencies && side->latency_count < LATENCIES_MAX)
        side->latencies[side->latency_count++] = seconds * 1e3;
}

static void run_append(struct contest *contest, size_t commits)
{
    for (size_t i = 0; i < commits; i++) {
        double begin = now_s();

        append_commit(contest->append, contest->size, contest->crowd->count);
        note(&contest->append_side, now_s() - begin, contest->size);
    }
}

static void run_fires(struct contest *contest, size_t commits)
{
    for (size_t i = 0; i < commits; i++) {
        double begin = now_s();

        crowd_fire(contest->crowd, contest->size);
        note(&contest->fire_side, now_s() - begin, contest->size);
    }
}

static void run_turn(struct contest *contest, double seconds)
{
    size_t chunk = CHUNK_ROWS / contest->size;
    size_t commits = chunk > 10 ? 10 : chunk;

    contest->append_side.seconds = contest->fire_side.seconds = 0;
    contest->append_side.rows = contest->fire_side.rows = 0;
    while (contest->append_side.seconds + contest->fire_side.seconds < seconds) {
        run_append(contest, commits);
        run_fires(contest, commits);
    }
}

/* Both sides in turns. The first turn warms up and does not count. */
static void run_contest(const struct bench *bench, struct contest *contest)
{
    double seconds = bench->quick ? 0.2 : TURN_S;

    contest->append = append_open(bench, "append.db");
    run_turn(contest, seconds / 2);
    contest->append_side.latency_count = contest->fire_side.latency_count = 0;
    for (int turn = 0; turn < REPEATS; turn++) {
        run_turn(contest, seconds);
        contest->append_side.rates[turn] =
            (double)contest->append_side.rows / contest->append_side.seconds;
        contest->fire_side.rates[turn] =
            (double)contest->fire_side.rows / contest->fire_side.seconds;
    }
    append_close(contest->append);
    store_remove(bench, "append.db");
}

/* The median of the ratios of each turn: what slows both down cancels out. */
static void report_ratio(struct bench *bench, struct row *row, const struct contest *contest)
{
    struct side append = contest->append_side, fire = contest->fire_side;
    double ratios[REPEATS];

    for (int i = 0; i < REPEATS; i++)
        ratios[i] = fire.rates[i] / append.rates[i];
    row->value = median(ratios, REPEATS);
    row->unit = "x";
    row->sense = AT_LEAST;
    beside(row, "%.0f fires/s, append %.0f/s, ratios %.2f to %.2f", median(fire.rates, REPEATS),
           median(append.rates, REPEATS), ratios[0], ratios[REPEATS - 1]);
    report(bench, row);
}

static void measure_batches(struct bench *bench, struct crowd *crowd, const char *crowd_name,
                            size_t size, double gate, double stretch)
{
    struct contest contest = { .crowd = crowd, .size = size };
    struct row row = { .gate = gate, .stretch = stretch };

    snprintf(row.key, sizeof row.key, "fire_%zu_%s_vs_append", size, crowd_name);
    if (size == 1)
        snprintf(row.what, sizeof row.what, "one fire per commit, 1 thread, against append");
    else
        snprintf(row.what, sizeof row.what, "batch of %zu, %zu instances, against append", size,
                 crowd->count);
    run_contest(bench, &contest);
    report_ratio(bench, &row, &contest);
}

void measure_fires(struct bench *bench)
{
    struct crowd crowd;

    crowd_make(bench, "small.db", bench->quick ? 1000 : 10000, &crowd);
    measure_batches(bench, &crowd, "10k", 1, 0.85, 0.95);
    measure_batches(bench, &crowd, "10k", 64, 0.5, 0.7);
    measure_batches(bench, &crowd, "10k", 1000, 0.5, 0.8);
    crowd_free(&crowd);
    store_remove(bench, "small.db");
}

/* ---- A million ---- */

void big_make(const struct bench *bench, struct big *big)
{
    size_t count = bench->quick ? 20000 : 1000000;
    double begin = now_s(), seconds;

    big->name = "big.db";
    crowd_make(bench, big->name, count, &big->crowd);
    seconds = now_s() - begin;
    told("  %zu instances created in %.1f s, %.0f per second", count, seconds,
         (double)count / seconds);
}

static void report_tail(struct bench *bench, struct side *append, struct side *fire)
{
    struct row row = { .key = "commit_p99_over_p50",
                       .what = "commit p99 against its p50, a million fired at random, 64 each",
                       .unit = "x",
                       .sense = AT_MOST,
                       .gate = 10,
                       .stretch = 4 };
    double p50 = median(fire->latencies, fire->latency_count);
    double p99 = percentile(fire->latencies, fire->latency_count, 99);

    row.value = p99 / p50;
    beside(&row, "p50 %.2f ms, p99 %.2f ms, worst %.0f ms; append p99/p50 %.1f", p50, p99,
           fire->latencies[fire->latency_count - 1],
           percentile(append->latencies, append->latency_count, 99) /
               median(append->latencies, append->latency_count));
    report(bench, &row);
}

void measure_million_fires(struct bench *bench, struct big *big)
{
    struct contest contest = { .crowd = &big->crowd, .size = 64 };
    struct row row = { .key = "fire_64_1m_vs_append", .gate = 0.4, .stretch = 0.6 };

    contest.append_side.latencies = get_memory(sizeof(double) * LATENCIES_MAX);
    contest.fire_side.latencies = get_memory(sizeof(double) * LATENCIES_MAX);
    snprintf(row.what, sizeof row.what, "batch of 64, %zu instances, against append",
             big->crowd.count);
    run_contest(bench, &contest);
    report_ratio(bench, &row, &contest);
    report_tail(bench, &contest.append_side, &contest.fire_side);
    free(contest.append_side.latencies);
    free(contest.fire_side.latencies);
    measure_batches(bench, &big->crowd, "1m", 1000, 0.3, 0.5);
}
