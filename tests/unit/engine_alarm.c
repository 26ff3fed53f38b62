/* engine_alarm.c - operations that are done later, once (B40), by a clock that the test moves. */
#include "engine_fixture.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pawl_status call(struct world *world, const char *operation, const char *input, char *out,
                        size_t size)
{
    char *answer;
    pawl_status status = pawl_call(world->p, operation, input, &answer, &world->error);

    snprintf(out, size, "%s", answer ? answer : "");
    pawl_free(world->p, answer);
    return status;
}

static pawl_status set_operation(struct world *world, const char *when, const char *operation,
                                 const char *given, char alarm[17])
{
    char input[512], answer[128];
    pawl_status status;

    snprintf(input, sizeof input, "{%s,\"operation\":\"%s\",\"input\":%s}", when, operation, given);
    status = call(world, "alarm.set", input, answer, sizeof answer);
    if (!status)
        EXPECT(sscanf(answer, "{\"alarm_id\":\"%16[0-9a-f]\"}", alarm) == 1);
    return status;
}

static pawl_status set_fire(struct world *world, const char *when, const char *id,
                            const char *action, char alarm[17])
{
    char given[128];

    snprintf(given, sizeof given, "{\"instance_id\":\"%s\",\"action\":\"%s\"}", id, action);
    return set_operation(world, when, "instance.fire", given, alarm);
}

static pawl_status set_signal(struct world *world, const char *when, const char *id,
                              const char *name, char alarm[17])
{
    char given[128];

    snprintf(given, sizeof given, "{\"instance_id\":\"%s\",\"name\":\"%s\"}", id, name);
    return set_operation(world, when, "signal.send", given, alarm);
}

static void restart(struct world *world)
{
    world_close(world);
    world_open(world);
}

WORLD_TEST(alarm, it_fires_once_at_its_time_and_not_before) /* B40 */
{
    const char *id;
    char alarm[17];

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(set_fire(world, "\"after\":\"1h\"", id, "pay", alarm));
    EXPECT_OK(set_fire(world, "\"at\":\"2026-05-01T15:00:00+01:00\"", id, "note", alarm));
    world_advance(world, 3599999);
    EXPECT_TEXT(world_actions(world, id), "");
    restart(world);
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "pay");
    world_expect_valid(world);
    world_advance(world, 3600000);
    EXPECT_TEXT(world_actions(world, id), "pay note");
    world_advance(world, 36000000);
    EXPECT_TEXT(world_actions(world, id), "pay note");
    EXPECT_EQ(pawl_next_due(world->p), -1);
    world_expect_valid(world);
}

WORLD_TEST(alarm, one_that_is_overdue_fires_at_once_after_a_restart)
{
    const char *id;
    char alarm[17];

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(set_fire(world, "\"after\":\"1h\"", id, "pay", alarm));
    world_close(world);
    world->now_ms += 7200000;
    world_open(world);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "pay");
    EXPECT_OK(set_fire(world, "\"at\":\"2026-01-01T00:00:00Z\"", id, "note", alarm)); /* long ago */
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "pay note");
}

WORLD_TEST(alarm, one_that_is_cancelled_never_fires_and_is_listed_no_more)
{
    char alarm[17], input[64], answer[512];
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(set_fire(world, "\"after\":\"1h\"", id, "pay", alarm));
    EXPECT_OK(call(world, "alarm.list", "{}", answer, sizeof answer));
    EXPECT_HAS(answer, alarm);
    EXPECT_HAS(answer, "\"at\":\"2026-05-01T13:00:00.000Z\"");
    snprintf(input, sizeof input, "{\"alarm_id\":\"%s\"}", alarm);
    EXPECT_OK(call(world, "alarm.cancel", input, answer, sizeof answer));
    EXPECT_EQ(call(world, "alarm.cancel", input, answer, sizeof answer), PAWL_NOT_KNOWN);
    EXPECT_OK(call(world, "alarm.list", "{}", answer, sizeof answer));
    EXPECT_TEXT(answer, "{\"alarms\":[]}");
    world_advance(world, 7200000);
    EXPECT_TEXT(world_actions(world, id), "");
    world_expect_valid(world);
}

WORLD_TEST(alarm, what_is_refused_when_it_falls_due_is_over_too)
{
    char alarm[17], answer[512];
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(set_fire(world, "\"after\":\"1h\"", id, "note", alarm)); /* not from `new` */
    world_advance(world, 3600000);
    EXPECT_TEXT(world_actions(world, id), "");
    EXPECT_OK(call(world, "alarm.list", "{}", answer, sizeof answer));
    EXPECT_TEXT(answer, "{\"alarms\":[]}");
    world_expect_valid(world);
}

static int count(struct world *world, const char *where)
{
    char input[512], answer[256];
    const char *rows;

    snprintf(input, sizeof input, "{\"text\":\"SELECT count(*) FROM pawl_log WHERE %s\"}", where);
    EXPECT_OK(call(world, "store.sql", input, answer, sizeof answer));
    rows = strstr(answer, "\"rows\":[[");
    EXPECT(rows != NULL);
    return rows ? atoi(rows + strlen("\"rows\":[[")) : -1;
}

TEST(alarm_sqlite, one_that_is_refused_leaves_a_record_that_says_why)
{
    struct world world;
    char alarm[17];

    world_begin(&world, "sqlite");
    world_define(&world, ORDER);
    EXPECT_OK(set_fire(&world, "\"after\":\"1h\"", world_create(&world, "order", NULL), "note", alarm));
    world_advance(&world, 3600000);
    EXPECT_EQ(count(&world, "what = -5 AND CAST(body AS TEXT) LIKE '%over%:%refused%invalid-transition%'"), 1);
    world_end(&world);
}

/* ---- cancel against the due time ---- */

enum { RACERS = 6, ROUNDS = 20 };

struct racer {
    struct world world; /* with its own error */
    const char *id;
    bool is_code;
    int64_t pause_us;
    pawl_status status;
};

/* Sets an alarm and cancels it around its due time. */
static void *set_and_cancel(void *context)
{
    struct racer *racer = context;
    char alarm[17] = "", input[64], answer[64];
    const char *when = "\"after\":\"4ms\"";

    EXPECT_OK(racer->is_code ? set_signal(&racer->world, when, racer->id, "stop", alarm)
                             : set_fire(&racer->world, when, racer->id, "pay", alarm));
    snprintf(input, sizeof input, "{\"alarm_id\":\"%s\"}", alarm);
    usleep((useconds_t)racer->pause_us);
    racer->status = call(&racer->world, "alarm.cancel", input, answer, sizeof answer);
    return NULL;
}

static void race(struct world *world, int round, int *won)
{
    struct racer racers[RACERS];
    pthread_t threads[RACERS];

    for (int i = 0; i < RACERS; i++) {
        bool is_code = i % 2 == 0;

        racers[i] = (struct racer){ .world = *world,
                                    .id = world_create(world, is_code ? "ticker" : "order", NULL),
                                    .is_code = is_code,
                                    .pause_us = 2000 + 200 * round + 30 * i };
        EXPECT(pthread_create(&threads[i], NULL, set_and_cancel, &racers[i]) == 0);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    usleep(10000); /* all that was due by then has happened by now */
    for (int i = 0; i < RACERS; i++) {
        const char *word = racers[i].is_code ? "signal" : "pay";
        bool happened = strstr(world_actions(world, racers[i].id), word) != NULL;

        EXPECT(racers[i].status == PAWL_OK || racers[i].status == PAWL_NOT_KNOWN);
        EXPECT_EQ(happened, racers[i].status != PAWL_OK);
        *won += racers[i].status == PAWL_OK;
    }
}

WORLD_TEST(alarm, of_a_cancel_and_the_due_time_one_wins_and_the_answer_says_which)
{
    int won = 0;

    world_close(world);
    world->options.workers = 2;
    EXPECT_OK(pawl_open(&world->p, world->url, &world->options, &world->error));
    EXPECT_OK(pawl_code_register(world->p, &ticker_type, &world->error));
    world_define(world, ORDER);
    for (int round = 0; round < ROUNDS; round++)
        race(world, round, &won);
    printf("# %d of %d cancels came in time\n", won, RACERS * ROUNDS);
    world_expect_valid(world);
    pawl_close(world->p);
    world->p = NULL;
}

/* ---- deaths and a long rest ---- */

#define EIGHT_DAYS (INT64_C(8) * 24 * 3600 * 1000)

struct death {
    enum env_point point;
    int left;
};

static void die(void *context, enum env_point point)
{
    struct death *death = context;

    if (point == death->point && --death->left == 0)
        _exit(9);
}

/* Another process runs what is due and dies at that point; false: it survived. */
static bool dies(struct world *world, int64_t by_ms, enum env_point point, int nth)
{
    struct death death = { point, nth };
    int status;
    pid_t child;

    world_close(world);
    child = fork();
    if (child == 0) {
        world_open(world);
        env_sim_on_point(world->env, die, &death);
        env_sim_advance(world->env, by_ms);
        pawl_run_due(world->p, &world->error);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
    world->now_ms += by_ms;
    return WEXITSTATUS(status) == 9;
}

static int times(const char *text, const char *word)
{
    int found = 0;

    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        found++;
    return found;
}

static bool happens_once(const char *when, enum env_point point, int nth)
{
    struct world world;
    const char *machine, *code;
    char alarm[17], answer[256];
    bool died;

    world_begin(&world, "sqlite");
    world_define(&world, ORDER);
    machine = world_create(&world, "order", NULL);
    EXPECT_OK(world_fire(&world, machine, "pay"));
    code = world_create(&world, "ticker", NULL);
    EXPECT_OK(set_fire(&world, when, machine, "note", alarm));
    EXPECT_OK(set_signal(&world, when, code, "slower", alarm));
    EXPECT_OK(set_operation(&world, when, "instance.create", "{\"definition\":\"order\"}", alarm));
    died = dies(&world, 100, point, nth);
    world.now_ms += EIGHT_DAYS;
    world_open(&world);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT_TEXT(world_actions(&world, machine), "pay note");
    EXPECT_EQ(times(world_actions(&world, code), "signal"), 1);
    EXPECT_OK(call(&world, "instance.counts", "{\"definition\":\"order\"}", answer, sizeof answer));
    EXPECT_HAS(answer, "\"total\":2");
    world_expect_valid(&world);
    world_end(&world);
    return died;
}

TEST(alarm_sqlite, it_happens_once_whichever_commit_a_process_dies_at_and_however_long_it_rests)
{
    int deaths = 0;

    for (enum env_point point = POINT_BEFORE_COMMIT; point <= POINT_AFTER_COMMIT; point++)
        for (int nth = 1; happens_once("\"after\":\"100ms\"", point, nth); nth++)
            deaths++;
    EXPECT(deaths >= 6);
}

#define KEEPER                                                                                     \
    "{\"name\":\"keeper\",\"signals\":{\"slower\":{\"buffer\":true}},\"steps\":{"                      \
    "\"start\":{\"wait\":{\"signal\":\"go\"},\"next\":\"then\"},"                                     \
    "\"then\":{\"wait\":{\"signal\":\"slower\"},\"done\":true}}}"

/* An alarm over four instances that wait and two that keep, in several commits: the process dies, the
 * store rests, the alarm continues. */
static bool reaches_each_once(enum env_point point, int nth, bool *was_firing)
{
    struct world world;
    const char *ids[4];
    char alarm[17], answer[512], input[64];
    bool died;

    world_begin(&world, "sqlite");
    for (int i = 0; i < 4; i++)
        ids[i] = world_create(&world, "ticker", NULL);
    world_define(&world, KEEPER);
    for (int i = 0; i < 2; i++)
        (void)world_create(&world, "keeper", NULL);
    EXPECT_OK(set_operation(&world, "\"after\":\"100ms\"", "signal.broadcast", "{\"name\":\"slower\"}",
                            alarm));
    died = dies(&world, 100, point, nth);
    world.now_ms += EIGHT_DAYS;
    world_open(&world);
    EXPECT_OK(call(&world, "alarm.list", "{}", answer, sizeof answer));
    if (strstr(answer, "\"firing\":true")) {
        *was_firing = true;
        snprintf(input, sizeof input, "{\"alarm_id\":\"%s\"}", alarm);
        EXPECT_EQ(call(&world, "alarm.cancel", input, answer, sizeof answer), PAWL_CONFLICT);
        EXPECT_HAS(world.error.message, "firing");
    }
    EXPECT_OK(call(&world, "instance.create", /* its commit deletes old keys */
                   "{\"definition\":\"ticker\",\"idempotency_key\":\"k\"}", answer, sizeof answer));
    world_expect_valid(&world);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(times(world_actions(&world, ids[i]), "signal"), 1);
    EXPECT_EQ(count(&world, "what = -6"), 2);
    EXPECT_EQ(count(&world, "what = -5 AND CAST(body AS TEXT) LIKE '%firing%'"), 1);
    EXPECT_EQ(count(&world, "what = -5 AND CAST(body AS TEXT) LIKE '%over%:%fired%'"), 1);
    world_expect_valid(&world);
    world_end(&world);
    return died;
}

TEST(alarm_sqlite, one_over_many_reaches_each_once_and_cannot_be_cancelled_once_it_is_firing)
{
    bool was_firing = false;
    int deaths = 0;

    for (enum env_point point = POINT_BEFORE_COMMIT; point <= POINT_AFTER_COMMIT; point++)
        for (int nth = 1; reaches_each_once(point, nth, &was_firing); nth++)
            deaths++;
    EXPECT(deaths >= 6);
    EXPECT(was_firing);
}

WORLD_TEST(alarm, what_cannot_be_done_later_is_refused_now)
{
    static const char *const inputs[] = {
        "{\"operation\":\"instance.fire\",\"input\":{}}",
        ("{\"after\":\"1h\",\"at\":\"2026-05-01T00:00:00Z\",\"operation\":\"instance.create\","
         "\"input\":{}}"),
        "{\"after\":\"soon\",\"operation\":\"instance.create\",\"input\":{}}",
        "{\"after\":\"1h\",\"operation\":\"instance.get\",\"input\":{}}",
        "{\"after\":\"1h\",\"operation\":\"test.advance\",\"input\":{}}",
        "{\"after\":\"1h\",\"operation\":\"none\",\"input\":{}}",
        "{\"after\":\"1h\",\"operation\":\"instance.fire\",\"input\":{\"action\":\"pay\"}}",
        "{\"after\":\"1h\",\"operation\":\"instance.create\",\"input\":{\"colour\":1}}",
    };
    char answer[128];

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        EXPECT_EQ(call(world, "alarm.set", inputs[i], answer, sizeof answer), PAWL_INVALID_REQUEST);
}

WORLD_TEST(alarm, any_writing_operation_can_be_done_later_also_for_code_and_another_alarm)
{
    const char *id = world_create(world, "ticker", NULL);
    char input[512], answer[512];

    snprintf(input, sizeof input,
             "{\"after\":\"100ms\",\"operation\":\"alarm.set\",\"input\":{\"after\":\"100ms\","
             "\"operation\":\"signal.send\",\"input\":{\"instance_id\":\"%s\",\"name\":\"stop\"}}}",
             id);
    EXPECT_OK(call(world, "alarm.set", input, answer, sizeof answer));
    world_advance(world, 100);
    EXPECT_TEXT(world_actions(world, id), "start");
    world_advance(world, 100);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

WORLD_TEST(alarm, a_repeated_set_with_a_key_is_one_alarm)
{
    const char *input = "{\"after\":\"1h\",\"operation\":\"instance.create\",\"input\":{"
                        "\"definition\":\"order\"},\"idempotency_key\":\"k\"}";
    char first[128], again[128], list[2048];

    world_define(world, ORDER);
    EXPECT_OK(call(world, "alarm.set", input, first, sizeof first));
    restart(world);
    EXPECT_OK(call(world, "alarm.set", input, again, sizeof again));
    EXPECT_TEXT(again, first);
    world_advance(world, 3600000);
    EXPECT_OK(call(world, "instance.list", "{\"limit\":2}", list, sizeof list));
    EXPECT_HAS(list, "\"definition\":\"order\"");
    EXPECT_HAS(list, "\"next\":null");
}

/* An alarm for a creation whose input is a text of `size`. */
static void set_large(struct world *world, size_t size)
{
    static const char begin[] = "{\"after\":\"1s\",\"operation\":\"instance.create\",\"input\":{"
                                "\"definition\":\"order\",\"input\":\"",
                      end[] = "\"}}";
    char *input = malloc(sizeof begin + size + sizeof end), answer[128];

    memcpy(input, begin, sizeof begin);
    memset(input + sizeof begin - 1, 'x', size);
    memcpy(input + sizeof begin - 1 + size, end, sizeof end);
    EXPECT_OK(call(world, "alarm.set", input, answer, sizeof answer));
    free(input);
}

TEST(alarm_memory, large_ones_that_are_due_together_are_all_done) /* more than one scope holds */
{
    enum { MANY = 66, SIZE = (1 << 20) - 200 };
    struct world world;
    char answer[256];

    world_begin(&world, "memory");
    world_define(&world, ORDER);
    for (int i = 0; i < MANY; i++)
        set_large(&world, SIZE);
    world_advance(&world, 1000);
    EXPECT_OK(call(&world, "instance.counts", "{}", answer, sizeof answer));
    EXPECT(strstr(answer, "\"total\":66") != NULL);
    EXPECT_EQ(pawl_next_due(world.p), -1);
    world_end(&world);
}
