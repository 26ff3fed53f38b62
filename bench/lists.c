/* lists.c - a page of 100 of a million instances: the first against one at the far end, for each
 * filter; and the counts of all of them. Through pawl_call(), so that a row costs what it costs. */
#include "bench.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAKERS 192
#define FEW    1000 /* so many are of the other definition, have the rare label, ... */

static const char common[] = "name: common\nstates: [new, held, done]\ninitial_state: new\n"
                             "terminal_states: [done]\nterminal_kinds: {done: success}\n"
                             "transitions:\n  - {from_state: new, action: hold, to_state: held}\n"
                             "  - {from_state: held, action: end, to_state: done}\n";
static const char rare[] = "name: rare\nstates: [odd]\ninitial_state: odd\ntransitions: []\n";

struct making {
    pawl *p;
    size_t wanted, next; /* next: shared by the makers */
    size_t rare;         /* one of so many is among the few */
};

static void make_one(struct making *making, size_t i)
{
    char subject[32], correlation[32];
    bool is_rare = i % making->rare == 0;
    pawl_create_args args = {
        .definition = is_rare ? "rare" : "common",
        .subject_ref = subject,
        .correlation_id = correlation,
        .labels = is_rare ? "{\"region\":\"eu\",\"tier\":\"gold\"}" : "{\"region\":\"eu\"}",
    };
    pawl_error error;
    pawl_fired fired;
    pawl_id id;

    snprintf(subject, sizeof subject, "s-%zu", i % making->rare);
    snprintf(correlation, sizeof correlation, "c-%zu", i % making->rare);
    check(pawl_create(making->p, &args, &id, &error), &error, "create");
    if (i % making->rare == 1)
        check(pawl_fire(making->p, id.text, &(pawl_fire_args){ .action = "hold" }, &fired, &error),
              &error, "fire");
}

static void *make_some(void *context)
{
    struct making *making = context;
    size_t i;

    while ((i = __atomic_fetch_add(&making->next, 1, __ATOMIC_RELAXED)) < making->wanted)
        make_one(making, i);
    return NULL;
}

static void make_all(struct making *making)
{
    pthread_t threads[MAKERS];

    for (size_t i = 0; i < MAKERS; i++)
        if (pthread_create(&threads[i], NULL, make_some, making) != 0)
            die("no thread");
    for (size_t i = 0; i < MAKERS; i++)
        pthread_join(threads[i], NULL);
}

/* Milliseconds of one call; *answer is the caller's. */
static double ask(pawl *p, const char *operation, const char *input, char **answer)
{
    pawl_error error;
    double begin = now_s();

    check(pawl_call(p, operation, input, answer, &error), &error, operation);
    return (now_s() - begin) * 1e3;
}

static double page(pawl *p, const char *filter, const char *more)
{
    double times[REPEATS];
    char input[512], *answer;

    for (int i = 0; i < REPEATS; i++) {
        snprintf(input, sizeof input, "{\"limit\":\"100\"%s%s}", filter, more);
        times[i] = ask(p, "instance.list", input, &answer);
        pawl_free(p, answer);
    }
    return median(times, REPEATS);
}

/* ,"after":"CURSOR" that stands behind the hundredth oldest: newest first, the last page. */
static void far_end(pawl *p, const char *filter, char *out, size_t size)
{
    char input[512], *answer, *next;

    snprintf(input, sizeof input, "{\"limit\":\"100\",\"order\":\"oldest\"%s}", filter);
    ask(p, "instance.list", input, &answer);
    next = strstr(answer, "\"next\":\"");
    if (!next)
        die("lists: no second page for %s", filter);
    snprintf(out, size, ",\"after\":\"%.26s\"", next + strlen("\"next\":\""));
    pawl_free(p, answer);
}

static void measure_pages(struct bench *bench, pawl *p, const char *name, const char *filter)
{
    struct row row = { .unit = "x", .sense = TOLD };
    char cursor[64];
    double first = page(p, filter, ""), far;

    far_end(p, filter, cursor, sizeof cursor);
    far = page(p, filter, cursor);
    row.value = far / first;
    snprintf(row.key, sizeof row.key, "list_%s_far_ratio", name);
    snprintf(row.what, sizeof row.what, "list by %s: the last page against the first", name);
    beside(&row, "first %.1f ms, last %.1f ms", first, far);
    report(bench, &row);
}

static void measure_counts(struct bench *bench, pawl *p, const char *name, const char *input)
{
    struct row row = { .unit = "ms", .sense = TOLD };
    double times[REPEATS];
    clock_t begin = clock();
    char *answer;

    for (int i = 0; i < REPEATS; i++) {
        times[i] = ask(p, "instance.counts", input, &answer);
        pawl_free(p, answer);
    }
    row.value = median(times, REPEATS);
    beside(&row, "CPU time %.0f ms", (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC / REPEATS);
    snprintf(row.key, sizeof row.key, "counts_%s_ms", name);
    snprintf(row.what, sizeof row.what, "counts of %s", name);
    report(bench, &row);
}

void measure_lists(struct bench *bench)
{
    static const char *const filters[][2] = {
        { "nothing", "" },
        { "definition", ",\"definition\":\"common\"" },
        { "rare definition", ",\"definition\":\"rare\"" },
        { "kind", ",\"kind\":\"machine\"" },
        { "subject", ",\"subject_ref\":\"s-7\"" },
        { "correlation", ",\"correlation_id\":\"c-7\"" },
        { "label", ",\"label.region\":\"eu\"" },
        { "rare label", ",\"label.region\":\"eu\",\"label.tier\":\"gold\"" },
        { "status", ",\"status\":\"suspended\"" },
        { "rare state", ",\"state\":\"held\"" },
        { "time", ",\"created_after\":\"2020-01-01T00:00:00Z\"" },
        { "all of it", ",\"definition\":\"common\",\"state\":\"held\",\"label.region\":\"eu\","
                       "\"subject_ref\":\"s-1\"" },
    };
    struct making making = { .wanted = bench->quick ? 20000 : 1000000 };
    pawl_error error;

    making.rare = making.wanted / FEW;
    making.p = store_open(bench, "lists.db");
    define(making.p, common);
    define(making.p, rare);
    make_all(&making);
    check(pawl_run_due(making.p, &error), &error, "flush");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        measure_pages(bench, making.p, filters[i][0], filters[i][1]);
    measure_counts(bench, making.p, "all", "{}");
    measure_counts(bench, making.p, "one rare definition", "{\"definition\":\"rare\"}");
    pawl_close(making.p);
    store_remove(bench, "lists.db");
}
