/* erasing.c - what ten thousand instances hold leaves a store: how many a second, and what that does
 * to the file. */
#include "bench.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MAKERS    64
#define INSTANCES 10000

static const char order[] = "name: order\nstates: [new, paid]\ninitial_state: new\n"
                            "terminal_states: [paid]\nterminal_kinds: {paid: success}\n"
                            "transitions:\n  - {from_state: new, action: pay, to_state: paid}\n";

struct making {
    pawl *p;
    size_t wanted, next; /* next: shared by the makers */
};

static void make_one(pawl *p)
{
    pawl_create_args args = { .definition = "order",
                              .subject_ref = "customer",
                              .labels = "{\"region\":\"eu\"}",
                              .input = "{\"card\":\"4711 0815 4711 0815\",\"name\":\"ann\"}" };
    pawl_fire_args fire = { .action = "pay",
                            .reason = "the customer paid",
                            .payload = "{\"amount\":12,\"receipt\":\"R-4711\"}" };
    pawl_error error;
    pawl_fired fired;
    pawl_id id;

    check(pawl_create(p, &args, &id, &error), &error, "create");
    check(pawl_fire(p, id.text, &fire, &fired, &error), &error, "fire");
}

static void *make_some(void *context)
{
    struct making *making = context;

    while (__atomic_fetch_add(&making->next, 1, __ATOMIC_RELAXED) < making->wanted)
        make_one(making->p);
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

void measure_erasing(struct bench *bench)
{
    struct row row = { .key = "erase_rate",
                       .what = "instances erased a second, with a subject of 10,000",
                       .unit = "/s",
                       .sense = bench->quick ? TOLD : AT_LEAST,
                       .gate = 2000 };
    struct making making = { .wanted = bench->quick ? INSTANCES / 10 : INSTANCES };
    double before, begin, took;
    pawl_error error;
    char *answer;

    making.p = store_open(bench, "erasing.db");
    define(making.p, order);
    make_all(&making);
    check(pawl_run_due(making.p, &error), &error, "flush");
    before = store_bytes(bench, "erasing.db");
    begin = now_s();
    check(pawl_call(making.p, "subject.erase", "{\"subject_ref\":\"customer\"}", &answer, &error),
          &error, "subject.erase");
    took = now_s() - begin;
    if (!strstr(answer, "\"left\":0"))
        die("erasing: something is left: %s", answer);
    pawl_free(making.p, answer);
    row.value = (double)making.wanted / took;
    beside(&row, "%.0f B an instance before, %.0f B behind it", before / (double)making.wanted,
           store_bytes(bench, "erasing.db") / (double)making.wanted);
    report(bench, &row);
    pawl_close(making.p);
    store_remove(bench, "erasing.db");
}
