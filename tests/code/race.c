/* race.c - events that race for one code instance are handled one after another, each once (E27). */
#include "buff.h"
#include "lib/test.h"
#include <pawl_test.h>
#include <pthread.h>
#include <unistd.h>

#define THREADS 6
#define SIGNALS 40

struct racer {
    pawl *p;
    const char *id, *name, *payload;
    int accepted, terminal, other;
};

static void *race(void *context)
{
    struct racer *racer = context;

    for (int i = 0; i < SIGNALS; i++) {
        pawl_error error;
        pawl_status status = pawl_signal(racer->p, racer->id, racer->name, racer->payload, NULL, &error);

        racer->accepted += status == PAWL_OK;
        racer->terminal += status == PAWL_TERMINAL;
        racer->other += status != PAWL_OK && status != PAWL_TERMINAL;
    }
    return NULL;
}

static void run_all(struct racer *racers)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void race_on(const char *url, uint32_t workers)
{
    pawl_options options = { .own = true, .test_clock = true, .workers = workers };
    struct racer racers[THREADS];
    pawl_kit kit = { .url = url };
    char wanted[64];
    const char *id;

    PAWL_EXPECT_OK(&kit, pawl_open(&kit.p, url, &options, &kit.error));
    pawl_kit_register(&kit, buff());
    id = pawl_kit_start(&kit, "buff", NULL);
    for (int i = 0; i < THREADS; i++)
        racers[i] = (struct racer){ .p = kit.p, .id = id, .name = "stack", .payload = "1" };
    run_all(racers);
    for (int i = 0; i < THREADS; i++)
        EXPECT_EQ(racers[i].accepted, SIGNALS);
    snprintf(wanted, sizeof wanted, "%d", 1 + THREADS * SIGNALS);
    PAWL_EXPECT_VARIABLE(&kit, id, "stacks", wanted);
    /* One ends it; whoever comes later hears that it has ended. */
    for (int i = 0; i < THREADS; i++)
        racers[i] = (struct racer){ .p = kit.p, .id = id, .name = "dispel" };
    run_all(racers);
    for (int i = 1; i < THREADS; i++) {
        racers[0].accepted += racers[i].accepted;
        racers[0].terminal += racers[i].terminal;
    }
    EXPECT_EQ(racers[0].accepted, 1);
    EXPECT_EQ(racers[0].terminal, THREADS * SIGNALS - 1);
    pawl_kit_close(&kit);
}

TEST(code_race, racing_signals_are_handled_one_after_another_each_once)
{
    race_on("memory:", 0);
}

TEST(code_race, the_same_with_workers)
{
    race_on("memory:", 2);
}
