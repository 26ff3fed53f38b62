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

/* Rests and reads by turns; what comes while it rests is kept. */
#define READER(has)                                                                                \
    has(var, uint32_t, letters)                                                                    \
    has(signal, Letter)                                                                            \
    has(signal, Begin)                                                                             \
    has(signal, Stop)                                                                              \
    has(buffered, Letter)                                                                          \
    has(await, resting)                                                                            \
    has(await, reading)

PAWL_CODE(reader, READER)
{
    PAWL_BEGIN(READER);
    for (;;) {
        PAWL_SIGNAL(resting, Begin);
        for (;;) {
            PAWL_SELECT(reading) {
                PAWL_ON_SIGNAL(Letter) self->letters++;
                PAWL_ON_SIGNAL(Stop) break;
            } PAWL_AWAIT;
        }
    }
    PAWL_END;
}

static void *toggle(void *context)
{
    struct racer *racer = context;
    pawl_error error;

    for (int i = 0; i < SIGNALS; i++) {
        (void)pawl_signal(racer->p, racer->id, "begin", NULL, NULL, &error);
        (void)pawl_signal(racer->p, racer->id, "stop", NULL, NULL, &error);
    }
    return NULL;
}

/* How many instances it has reached in all. */
static int broadcast_all(pawl_kit *kit)
{
    int reached = 0;

    for (int i = 0; i < SIGNALS; i++) {
        char *out, *kept;

        PAWL_EXPECT_OK(kit, pawl_call(kit->p, "signal.broadcast", "{\"name\":\"letter\"}", &out,
                                      &kit->error));
        kept = strstr(out, "\"kept\":");
        reached += atoi(out + strlen("{\"delivered\":")) + (kept ? atoi(kept + strlen("\"kept\":")) : 0);
        pawl_free(kit->p, out);
    }
    return reached;
}

TEST(code_race, a_broadcast_is_taken_once_also_by_those_that_begin_to_await_it_meanwhile)
{
    pawl_options options = { .own = true, .test_clock = true, .workers = 2 };
    pawl_kit kit = { .url = "memory:" };
    struct racer racers[THREADS];
    pthread_t threads[THREADS];

    PAWL_EXPECT_OK(&kit, pawl_open(&kit.p, kit.url, &options, &kit.error));
    pawl_kit_register(&kit, reader());
    for (int i = 0; i < THREADS; i++)
        racers[i] = (struct racer){ .p = kit.p, .id = pawl_kit_start(&kit, "reader", NULL) };
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, toggle, &racers[i]) == 0);
    EXPECT_EQ(broadcast_all(&kit), THREADS * SIGNALS);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        (void)pawl_kit_signal(&kit, racers[i].id, "begin", NULL);
        PAWL_EXPECT_VARIABLE(&kit, racers[i].id, "letters", "40");
    }
    pawl_kit_close(&kit);
}
