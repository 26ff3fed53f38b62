/* subscribe.c - several values of one signal, and broadcasts that are kept for a later wait. */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>
#include <unistd.h>

/* Sees things of two colours while it is awake, and reads its letters afterwards. */
#define WATCHER(has)                                                                               \
    has(var, uint32_t, looks)                                                                      \
    has(var, uint32_t, read)                                                                       \
    has(var, text, last, 32, "")                                                                   \
    has(signal, Seen, text, 32)                                                                    \
    has(signal, Letter, text, 32)                                                                  \
    has(signal, Narrow)                                                                            \
    has(signal, Sleep)                                                                             \
    has(buffered, Letter)                                                                          \
    has(await, awake)                                                                              \
    has(await, reading)

PAWL_CODE(watcher, WATCHER)
{
    PAWL_BEGIN(WATCHER);
    PAWL_SUBSCRIBE(Seen, "\"red\"");
    PAWL_SUBSCRIBE(Seen, "[1, 2]");
    PAWL_SUBSCRIBE(Seen, "[1,2]");
    PAWL_SUBSCRIBE(Letter, "1");
    PAWL_SUBSCRIBE(Letter, "2");
    for (;;) {
        PAWL_SELECT(awake) {
            PAWL_ON_SIGNAL(Seen) self->looks++;
            PAWL_ON_SIGNAL(Narrow) {
                PAWL_UNSUBSCRIBE(Seen, "\"red\"");
                PAWL_UNSUBSCRIBE(Seen, "\"blue\"");
                PAWL_SUBSCRIBE(Letter, NULL);
                PAWL_SUBSCRIBE(Letter, "3");
            }
            PAWL_ON_SIGNAL(Sleep) break;
        } PAWL_AWAIT;
    }
    while (self->read < 2) {
        PAWL_SIGNAL(reading, Letter);
        self->read++;
        memcpy(self->last, got->Letter, sizeof self->last);
    }
    PAWL_END;
}

/* Reads what has come between `begin` and `stop`. */
#define READER(has)                                                                                \
    has(var, uint32_t, digits)                                                                     \
    has(signal, Letter, uint32_t)                                                                  \
    has(signal, Begin)                                                                             \
    has(signal, Stop)                                                                              \
    has(buffered, Letter)                                                                          \
    has(await, resting)                                                                            \
    has(await, busy)

PAWL_CODE(reader, READER)
{
    PAWL_BEGIN(READER);
    for (;;) {
        PAWL_SIGNAL(resting, Begin);
        for (;;) {
            PAWL_SELECT(busy) {
                PAWL_ON_SIGNAL(Letter) self->digits = self->digits * 10 + got->Letter;
                PAWL_ON_SIGNAL(Stop) break;
            } PAWL_AWAIT;
        }
    }
    PAWL_END;
}

/* Subscribes to one value more with each signal. */
#define GREEDY(has)                                                                                \
    has(var, uint32_t, count)                                                                      \
    has(signal, More)                                                                              \
    has(await, asking)

PAWL_CODE(greedy, GREEDY)
{
    PAWL_BEGIN(GREEDY);
    for (;;) {
        for (unsigned n = 0; n < 128; n++) {
            self->count++;
            PAWL_SUBSCRIBE(More, pawl_turn_text(turn, "%u", (unsigned)self->count));
        }
        PAWL_SIGNAL(asking, More);
    }
    PAWL_END;
}

/* One value of each kind, spelled as no library would print it. */
#define CURIOUS(has)                                                                               \
    has(var, uint32_t, looks)                                                                      \
    has(signal, Seen)                                                                              \
    has(signal, Letter)                                                                            \
    has(buffered, Letter)                                                                          \
    has(await, awake)

static const char *const spelled[] = { "70e-1", "\"\\u0061\\/\"", "{\"b\":1.50,\"a\":[1E1]}",
                                       "-0.0", "0.0000001", "123456789012345678901234567890" };

PAWL_CODE(curious, CURIOUS)
{
    PAWL_BEGIN(CURIOUS);
    for (unsigned i = 0; i < sizeof spelled / sizeof spelled[0]; i++) {
        PAWL_SUBSCRIBE(Seen, spelled[i]);
        PAWL_SUBSCRIBE(Letter, spelled[i]);
    }
    for (;;) {
        PAWL_SIGNAL(awake, Seen);
        self->looks++;
    }
    PAWL_END;
}

struct ground {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
};

static void begin(struct ground *ground)
{
    memset(ground, 0, sizeof *ground);
    test_folder(ground->folder);
    snprintf(ground->url, sizeof ground->url, "sqlite:%s/game.db", ground->folder);
    pawl_kit_open(&ground->kit, ground->url);
    pawl_kit_register(&ground->kit, watcher());
    pawl_kit_register(&ground->kit, greedy());
    pawl_kit_register(&ground->kit, reader());
    pawl_kit_register(&ground->kit, curious());
}

static void end(struct ground *ground)
{
    char *out, command[96];

    PAWL_EXPECT_OK(&ground->kit,
                   pawl_call(ground->kit.p, "store.verify", NULL, &out, &ground->kit.error));
    EXPECT_HAS(out, "\"valid\":true");
    pawl_free(ground->kit.p, out);
    pawl_kit_close(&ground->kit);
    snprintf(command, sizeof command, "rm -r %s", ground->folder);
    EXPECT(system(command) == 0);
}

static void call(struct ground *ground, const char *operation, const char *input, const char *answer)
{
    char *out;

    PAWL_EXPECT_OK(&ground->kit,
                   pawl_call(ground->kit.p, operation, input, &out, &ground->kit.error));
    EXPECT_TEXT(out, answer);
    pawl_free(ground->kit.p, out);
}

static void broadcast(struct ground *ground, const char *name, const char *filter,
                      const char *answer)
{
    char input[256];

    snprintf(input, sizeof input, "{\"name\":\"%s\",\"filter\":%s,\"payload\":%s}", name, filter,
             filter[0] == '"' ? filter : "\"x\"");
    call(ground, "signal.broadcast", input, answer);
}

TEST(code_subscribe, each_value_that_was_subscribed_to_is_matched_and_no_other)
{
    struct ground ground;
    const char *id;

    begin(&ground);
    id = pawl_kit_start(&ground.kit, "watcher", NULL);
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "subscriptions", "{\"seen\":\"red\",\"letter\":1}");
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "more-subscriptions", "{\"seen\":[[1,2]],\"letter\":[2]}");
    broadcast(&ground, "seen", "\"red\"", "{\"delivered\":1}");
    broadcast(&ground, "seen", "[1, 2]", "{\"delivered\":1}");
    pawl_kit_restart(&ground.kit);
    broadcast(&ground, "seen", "[1,2]", "{\"delivered\":1}");
    broadcast(&ground, "seen", "1", "{\"delivered\":0}");
    broadcast(&ground, "seen", "\"blue\"", "{\"delivered\":0}");
    broadcast(&ground, "seen", "null", "{\"delivered\":1}");
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "looks", "4");
    end(&ground);
}

TEST(code_subscribe, a_value_that_was_taken_back_is_not_matched)
{
    struct ground ground;
    const char *id;

    begin(&ground);
    id = pawl_kit_start(&ground.kit, "watcher", NULL);
    PAWL_EXPECT_OK(&ground.kit, pawl_kit_signal(&ground.kit, id, "narrow", NULL));
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "subscriptions", "{\"seen\":[1,2],\"letter\":3}");
    broadcast(&ground, "seen", "\"red\"", "{\"delivered\":0}");
    broadcast(&ground, "seen", "[1,2]", "{\"delivered\":1}");
    broadcast(&ground, "letter", "1", "{\"delivered\":0}");
    broadcast(&ground, "letter", "2", "{\"delivered\":0}");
    broadcast(&ground, "letter", "3", "{\"delivered\":0,\"kept\":1}");
    end(&ground);
}

/* A signal that is not buffered reaches only what awaits it: those are not asked. */
TEST(code_subscribe, a_broadcast_of_a_buffered_signal_is_kept_by_its_subscribers_until_they_await_it)
{
    struct ground ground;
    const char *id;

    begin(&ground);
    id = pawl_kit_start(&ground.kit, "watcher", NULL);
    broadcast(&ground, "letter", "2", "{\"delivered\":0,\"kept\":1}");
    broadcast(&ground, "letter", "3", "{\"delivered\":0}");
    call(&ground, "signal.broadcast", "{\"name\":\"letter\",\"payload\":\"last\"}",
         "{\"delivered\":0,\"kept\":1}");
    pawl_kit_restart(&ground.kit);
    PAWL_EXPECT_OK(&ground.kit, pawl_kit_signal(&ground.kit, id, "sleep", NULL));
    PAWL_EXPECT_HISTORY(&ground.kit, id, "start signal:sleep signal:letter signal:letter finish");
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "last", "\"last\"");
    call(&ground, "signal.broadcast", "{\"name\":\"letter\"}", "{\"delivered\":0}");
    id = pawl_kit_start(&ground.kit, "watcher", NULL);
    PAWL_EXPECT_OK(&ground.kit, pawl_kit_signal(&ground.kit, id, "sleep", NULL));
    broadcast(&ground, "seen", "\"red\"", "{\"delivered\":0}");
    broadcast(&ground, "letter", "2", "{\"delivered\":1}");
    end(&ground);
}

TEST(code_subscribe, a_paused_subscriber_keeps_a_broadcast_and_takes_it_when_it_is_resumed)
{
    struct ground ground;
    const char *id;
    char input[64];

    begin(&ground);
    id = pawl_kit_start(&ground.kit, "watcher", NULL);
    PAWL_EXPECT_OK(&ground.kit, pawl_kit_signal(&ground.kit, id, "sleep", NULL));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    call(&ground, "instance.pause", input, "{\"status\":\"paused\"}");
    broadcast(&ground, "letter", "1", "{\"delivered\":0,\"kept\":1}");
    broadcast(&ground, "seen", "\"red\"", "{\"delivered\":0}");
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "read", "0");
    call(&ground, "instance.resume", input, "{\"status\":\"suspended\"}");
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "read", "1");
    end(&ground);
}

/* Spent one by one, however many there are: the last of them leaves it waiting for another. */
TEST(code_subscribe, kept_signals_are_taken_in_order_and_the_next_one_is_awaited)
{
    struct ground ground;
    const char *id;

    begin(&ground);
    id = pawl_kit_start(&ground.kit, "reader", NULL);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < round; i++)
            PAWL_EXPECT_OK(&ground.kit, pawl_kit_signal(&ground.kit, id, "letter", i ? "2" : "1"));
        PAWL_EXPECT_OK(&ground.kit, pawl_kit_signal(&ground.kit, id, "begin", NULL));
        PAWL_EXPECT_OK(&ground.kit, pawl_kit_signal(&ground.kit, id, "stop", NULL));
    }
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "digits", "112122");
    end(&ground);
}

TEST(code_subscribe, an_instance_that_keeps_a_thousand_signals_is_counted_as_full)
{
    struct ground ground;
    const char *id;

    begin(&ground);
    id = pawl_kit_start(&ground.kit, "watcher", NULL);
    for (int i = 0; i < 1000; i++)
        PAWL_EXPECT_OK(&ground.kit, pawl_kit_signal(&ground.kit, id, "letter", "\"x\""));
    (void)pawl_kit_start(&ground.kit, "watcher", NULL);
    broadcast(&ground, "letter", "1", "{\"delivered\":0,\"kept\":1,\"full\":1}");
    end(&ground);
}

TEST(code_subscribe, more_than_256_values_of_a_signal_pause_the_instance_with_the_reason)
{
    struct ground ground;
    const char *id;

    begin(&ground);
    id = pawl_kit_start(&ground.kit, "greedy", NULL);
    broadcast(&ground, "more", "128", "{\"delivered\":1}");
    broadcast(&ground, "more", "256", "{\"delivered\":1}");
    EXPECT_HAS(pawl_kit_ask(&ground.kit, "instance.why", id),
               "more than 256 values of the signal 'more'");
    end(&ground);
}

/* ---- Values ---- */

static void broadcast_value(struct ground *ground, const char *name, const char *filter,
                            const char *answer)
{
    char input[256];

    snprintf(input, sizeof input, "{\"name\":\"%s\",\"filter\":%s}", name, filter);
    call(ground, "signal.broadcast", input, answer);
}

TEST(code_subscribe, a_filter_is_compared_as_a_value_however_it_is_written)
{
    static const char *const same[] = { "7", "7.0", "0.7e1", "\"a/\"", "\"\\u0061/\"",
                                        "{\"a\":[10],\"b\":1.5}", "{ \"b\" : 15e-1, \"a\" : [ 10.0 ] }",
                                        "0", "-0", "0e9", "1e-7", "1.0E-07",
                                        "123456789012345678901234567890.0" };
    static const char *const other[] = { "7.1", "-7", "\"7\"", "\"A/\"", "[7]", "{\"a\":[10]}",
                                         "{\"a\":[10],\"b\":1.5,\"c\":null}", "false", "1e-8",
                                         "123456789012345678901234567891" };
    struct ground ground;
    const char *id;

    begin(&ground);
    id = pawl_kit_start(&ground.kit, "curious", NULL);
    for (unsigned i = 0; i < sizeof same / sizeof same[0]; i++) {
        broadcast_value(&ground, "seen", same[i], "{\"delivered\":1}");
        broadcast_value(&ground, "letter", same[i], "{\"delivered\":0,\"kept\":1}");
    }
    for (unsigned i = 0; i < sizeof other / sizeof other[0]; i++) {
        broadcast_value(&ground, "seen", other[i], "{\"delivered\":0}");
        broadcast_value(&ground, "letter", other[i], "{\"delivered\":0}");
    }
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "looks", "13");
    PAWL_EXPECT_VARIABLE(&ground.kit, id, "subscriptions", "{\"seen\":7,\"letter\":7}");
    end(&ground);
}

/* One waits for the value, the other keeps it before it does. */
TEST(code_subscribe, a_flows_wait_has_a_value_however_it_is_written)
{
    static const char text[] = "name: waiter\nsignals: {go: {buffer: true}}\nsteps:\n"
                               "  start: {wait: {timer: 1h}, next: both}\n"
                               "  both: {wait: {signal: go, value: \"{{input.value}}\"}, done: true}\n";
    struct ground ground;
    const char *early, *late;

    begin(&ground);
    PAWL_EXPECT_OK(&ground.kit, pawl_define(ground.kit.p, text, sizeof text - 1, NULL, &ground.kit.error));
    late = pawl_kit_start(&ground.kit, "waiter", "{\"value\":{\"b\":70e-1,\"a\":\"\\u0061\"}}");
    pawl_kit_advance(&ground.kit, PAWL_MINUTES(61));
    early = pawl_kit_start(&ground.kit, "waiter", "{\"value\":{\"b\":7.0,\"a\":\"a\"}}");
    broadcast_value(&ground, "go", "{\"a\":\"b\",\"b\":7}", "{\"delivered\":0}");
    broadcast_value(&ground, "go", "{\"a\":\"a\",\"b\":7}", "{\"delivered\":1,\"kept\":1}");
    PAWL_EXPECT_STATE(&ground.kit, late, "completed");
    pawl_kit_advance(&ground.kit, PAWL_MINUTES(61));
    PAWL_EXPECT_STATE(&ground.kit, early, "completed");
    end(&ground);
}

TEST(code_subscribe, of_two_waits_of_a_flow_a_filter_takes_the_one_that_has_its_value)
{
    static const char text[] = "name: pair\ndopar:\n"
                               "  - {name: one, wait: {signal: go, value: 1}}\n"
                               "  - {name: two, wait: {signal: go, value: 2}}\n";
    struct ground ground;
    const char *id;

    begin(&ground);
    PAWL_EXPECT_OK(&ground.kit, pawl_define(ground.kit.p, text, sizeof text - 1, NULL, &ground.kit.error));
    id = pawl_kit_start(&ground.kit, "pair", NULL);
    broadcast_value(&ground, "go", "2.0", "{\"delivered\":1}");
    broadcast_value(&ground, "go", "2", "{\"delivered\":0}");
    PAWL_EXPECT_STATE(&ground.kit, id, "running");
    broadcast_value(&ground, "go", "1", "{\"delivered\":1}");
    PAWL_EXPECT_STATE(&ground.kit, id, "completed");
    end(&ground);
}

/* ---- What does not fit ---- */

/* Of one name, and of another shape. */
#define COUNTS(has)                                                                                \
    has(var, uint32_t, sum) has(signal, Letter, uint32_t) has(await, counting)
PAWL_CODE(counts, COUNTS)
{
    PAWL_BEGIN(COUNTS);
    for (;;) {
        PAWL_SIGNAL(counting, Letter);
        self->sum += got->Letter;
    }
    PAWL_END;
}

struct lines {
    char text[8000];
    unsigned count;
};

static void keep_line(void *context, pawl_log_level level, const char *event, const char *text)
{
    struct lines *lines = context;
    size_t size = strlen(lines->text);

    if (level < PAWL_LOG_WARN)
        return;
    lines->count++;
    snprintf(lines->text + size, sizeof lines->text - size, "%s: %s\n", event, text);
}

TEST(code_subscribe, instances_that_a_broadcast_does_not_fit_are_counted_and_named_and_the_others_have_it)
{
    struct lines lines = { .count = 0 };
    pawl_options options = { .own = true, .test_clock = true, .log = keep_line, .log_context = &lines };
    const char *awaits, *keeps, *fits;
    char words[160], *out;
    pawl_kit kit;

    pawl_kit_open(&kit, NULL);
    pawl_close(kit.p);
    PAWL_EXPECT_OK(&kit, pawl_open(&kit.p, "memory:", &options, &kit.error));
    pawl_kit_register(&kit, watcher());
    pawl_kit_register(&kit, reader());
    pawl_kit_register(&kit, counts());
    fits = pawl_kit_start(&kit, "watcher", NULL);
    awaits = pawl_kit_start(&kit, "counts", NULL);
    keeps = pawl_kit_start(&kit, "reader", NULL);
    PAWL_EXPECT_OK(&kit, pawl_call(kit.p, "signal.broadcast", "{\"name\":\"letter\",\"payload\":\"x\"}",
                                   &out, &kit.error));
    EXPECT_TEXT(out, "{\"delivered\":0,\"kept\":1,\"refused\":2}");
    pawl_free(kit.p, out);
    EXPECT_EQ(lines.count, 2);
    snprintf(words, sizeof words, "signal.refused: %s: a broadcast of 'letter' does not fit: the payload of "
             "'letter': expected uint32 for 'Letter', found a string\n", awaits);
    EXPECT_HAS(lines.text, words);
    EXPECT_HAS(lines.text, keeps);
    PAWL_EXPECT_HISTORY(&kit, awaits, "start");
    PAWL_EXPECT_HISTORY(&kit, keeps, "start");
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, fits, "sleep", NULL));
    PAWL_EXPECT_VARIABLE(&kit, fits, "last", "\"x\"");
    for (unsigned i = 0; i < 20; i++)
        (void)pawl_kit_start(&kit, "counts", NULL);
    lines.count = 0;
    PAWL_EXPECT_OK(&kit, pawl_call(kit.p, "signal.broadcast", "{\"name\":\"letter\",\"payload\":[]}",
                                   &out, &kit.error));
    EXPECT_TEXT(out, "{\"delivered\":0,\"refused\":23}");
    pawl_free(kit.p, out);
    EXPECT_EQ(lines.count, 9);
    EXPECT_HAS(lines.text, "signal.refused: a broadcast of 'letter' does not fit 15 instances more\n");
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, awaits, "letter", "3"));
    PAWL_EXPECT_VARIABLE(&kit, awaits, "sum", "3");
    pawl_kit_close(&kit);
}

/* ---- More than one commit can take ---- */

#define HOARDER(has)                                                                               \
    has(var, uint32_t, taken)                                                                      \
    has(var, text, ballast, 8192, "")                                                              \
    has(signal, Letter, uint32_t)                                                                  \
    has(timer, Open)                                                                               \
    has(buffered, Letter)                                                                          \
    has(result, uint32_t, taken)                                                                   \
    has(await, shut)                                                                               \
    has(await, open)

PAWL_CODE(hoarder, HOARDER)
{
    PAWL_BEGIN(HOARDER);
    memset(self->ballast, 'x', sizeof self->ballast - 1);
    PAWL_TIMER(shut, Open, PAWL_SECS(1));
    while (self->taken < 1000) {
        PAWL_SIGNAL(open, Letter);
        if (got->Letter != self->taken)
            PAWL_FAIL("\"not in order\"");
        self->taken++;
    }
    result->taken = self->taken;
    PAWL_END;
}

TEST(subscribe, a_thousand_kept_signals_are_taken_in_their_order_in_as_many_commits_as_it_takes)
{
    pawl_kit kit;
    const char *id;
    char letter[16];

    pawl_kit_open(&kit, NULL);
    pawl_kit_register(&kit, hoarder());
    id = pawl_kit_start(&kit, "hoarder", "{}");
    for (int i = 0; i < 1000; i++) {
        snprintf(letter, sizeof letter, "%d", i);
        PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "letter", letter));
    }
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(&kit, id, "{\"taken\":1000}");
    pawl_kit_close(&kit);
}
