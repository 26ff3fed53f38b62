/* calls.c - a call that fails is tried again as its type says, and all attempts of one call have the same
 * idempotency key: through restarts, pauses and loops of the code's own (E10, X8). */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>
#include <unistd.h>

#define SALE(has)                                                                                  \
    has(input, bool, patient)                                                                      \
    has(var, text, problem, 200)                                                                   \
    has(timer, GiveUp)                                                                             \
    has(timer, Later)                                                                              \
    has(call, charge, uint32_t)                                                                    \
    has(retry, charge, 4, PAWL_SECS(1), PAWL_SECS(3))                                              \
    has(no_retry, charge, "declined")                                                              \
    has(no_retry, charge, "stolen")                                                                \
    has(call, ship)                                                                                \
    has(result, uint32_t, charged)                                                                 \
    has(result, text, problem, 200)                                                                \
    has(await, charging)                                                                           \
    has(await, resting)

PAWL_CODE(sale, SALE)
{
    PAWL_BEGIN(SALE);
    PAWL_SELECT(charging) {
        PAWL_ON_CALL(charge, "{\"cents\":5}") {
            if (PAWL_ERROR)
                snprintf(self->problem, sizeof self->problem, "%s", PAWL_ERROR);
            else
                result->charged = got->charge;
        }
        PAWL_ON_TIMER(GiveUp, self->patient ? PAWL_DAYS(1) : PAWL_MS(1500)) {
            PAWL_TIMER(resting, Later, PAWL_SECS(10));
        }
    } PAWL_AWAIT;
    snprintf(result->problem, sizeof result->problem, "%s", self->problem);
    PAWL_END;
}

/* A loop of its own: the key is what makes its calls one. */
#define REFUND(has)                                                                                \
    has(var, uint32_t, tries)                                                                      \
    has(timer, Rest)                                                                               \
    has(call, charge, uint32_t)                                                                    \
    has(call, note)                                                                                 \
    has(result, uint32_t, tries)                                                                   \
    has(await, refunding)                                                                          \
    has(await, resting)                                                                            \
    has(await, logging)

PAWL_CODE(refund, REFUND)
{
    PAWL_BEGIN(REFUND);
    do {
        if (self->tries++ > 0)
            PAWL_TIMER(resting, Rest, PAWL_SECS(1));
        PAWL_TRY_CALL_KEYED(refunding, charge, "refund", "{}");
    } while (PAWL_ERROR);
    PAWL_CALL(logging, note, "{}");
    result->tries = self->tries;
    PAWL_END;
}

/* Without delays of its own. */
#define PLAIN(has)                                                                                 \
    has(call, charge) has(retry, charge, 9) has(result, bool, done) has(await, charging)
PAWL_CODE(plain, PLAIN)
{
    PAWL_BEGIN(PLAIN);
    PAWL_CALL(charging, charge, "{}");
    result->done = true;
    PAWL_END;
}

#define KEYED(has)                                                                                 \
    has(call, charge) has(retry, charge, 9) has(result, bool, done) has(await, charging)
PAWL_CODE(keyed, KEYED)
{
    PAWL_BEGIN(KEYED);
    PAWL_CALL_KEYED(charging, charge, "once", "{}");
    result->done = true;
    PAWL_END;
}

struct till {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
    uint32_t failures; /* how many attempts fail */
    const char *error;
    uint32_t calls, last_attempt;
    char key[160]; /* of the first */
};

static void charge(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct till *till = context;

    if (till->calls++ == 0)
        snprintf(till->key, sizeof till->key, "%s", call->idempotency_key);
    EXPECT_TEXT(call->idempotency_key, till->key);
    till->last_attempt = call->attempt;
    if (till->calls <= till->failures)
        pawl_answer_error(answer, till->error);
    else
        pawl_answer_result(answer, "5");
}

static void log_it(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct till *till = context;

    (void)answer;
    EXPECT(strcmp(call->idempotency_key, till->key) != 0); /* another call, another key */
}

static void equip(struct till *till)
{
    PAWL_EXPECT_OK(&till->kit,
                   pawl_tool_register(till->kit.p, "charge", charge, till, &till->kit.error));
    PAWL_EXPECT_OK(&till->kit,
                   pawl_tool_register(till->kit.p, "note", log_it, till, &till->kit.error));
}

static void begin(struct till *till, uint32_t failures, const char *error)
{
    *till = (struct till){ .failures = failures, .error = error };
    test_folder(till->folder);
    snprintf(till->url, sizeof till->url, "sqlite:%s/till.db", till->folder);
    pawl_kit_open(&till->kit, till->url);
    pawl_kit_register(&till->kit, sale());
    pawl_kit_register(&till->kit, refund());
    pawl_kit_register(&till->kit, plain());
    pawl_kit_register(&till->kit, keyed());
    equip(till);
}

static void end(struct till *till)
{
    char command[96], *out = NULL;

    PAWL_EXPECT_OK(&till->kit, pawl_call(till->kit.p, "store.verify", NULL, &out, &till->kit.error));
    EXPECT_HAS(out, "\"valid\":true");
    pawl_free(till->kit.p, out);
    pawl_kit_close(&till->kit);
    snprintf(command, sizeof command, "rm -r %s", till->folder);
    EXPECT_EQ(system(command), 0);
}

#define ONCE  "step.start:charge step.fail:charge step.retry:charge "
#define LAST  "step.start:charge step.fail:charge "

TEST(calls, a_failed_call_is_tried_again_after_its_delay_with_the_same_key)
{
    struct till till;
    const char *id;

    begin(&till, 3, "\"down\"");
    id = pawl_kit_start(&till.kit, "sale", "{\"patient\":true}");
    pawl_kit_advance(&till.kit, PAWL_MS(999));
    EXPECT_EQ(till.calls, 1);
    pawl_kit_advance(&till.kit, PAWL_MS(1));
    EXPECT_EQ(till.calls, 2);
    pawl_kit_advance(&till.kit, PAWL_MS(1999)); /* twice as long */
    EXPECT_EQ(till.calls, 2);
    pawl_kit_advance(&till.kit, PAWL_MS(1));
    EXPECT_EQ(till.calls, 3);
    pawl_kit_advance(&till.kit, PAWL_MS(2999)); /* at most 3 s */
    EXPECT_EQ(till.calls, 3);
    pawl_kit_advance(&till.kit, PAWL_MS(1));
    EXPECT_EQ(till.calls, 4);
    EXPECT_EQ(till.last_attempt, 4);
    PAWL_EXPECT_RESULT(&till.kit, id, "{\"charged\":5,\"problem\":\"\"}");
    PAWL_EXPECT_HISTORY(&till.kit, id,
                        "start " ONCE ONCE ONCE "step.start:charge step.complete:charge finish");
    end(&till);
}

TEST(calls, when_its_attempts_are_used_up_the_code_gets_the_last_error)
{
    struct till till;
    const char *id;

    begin(&till, 9, "{\"code\":\"down\"}");
    id = pawl_kit_start(&till.kit, "sale", "{\"patient\":true}");
    pawl_kit_advance(&till.kit, PAWL_MINUTES(1));
    EXPECT_EQ(till.calls, 4);
    PAWL_EXPECT_RESULT(&till.kit, id, "{\"charged\":0,\"problem\":\"{\\\"code\\\":\\\"down\\\"}\"}");
    PAWL_EXPECT_HISTORY(&till.kit, id, "start " ONCE ONCE ONCE LAST "finish");
    end(&till);
}

TEST(calls, an_error_that_is_declared_as_final_is_not_tried_again)
{
    static const char *const errors[] = { "\"declined\"", "{\"code\":\"stolen\",\"at\":1}",
                                          "{\"reason\":\"declined\"}", "{\"error\":\"stolen\"}" };

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct till till;
        const char *id;

        begin(&till, 9, errors[i]);
        id = pawl_kit_start(&till.kit, "sale", "{\"patient\":true}");
        pawl_kit_advance(&till.kit, PAWL_MINUTES(1));
        EXPECT_EQ(till.calls, 1);
        PAWL_EXPECT_HISTORY(&till.kit, id, "start " LAST "finish");
        end(&till);
    }
}

TEST(calls, without_delays_of_its_own_a_call_has_those_of_steps)
{
    static const int64_t delays[] = { 30000, 120000, 300000, 300000 };
    struct till till;

    begin(&till, 9, "\"down\"");
    (void)pawl_kit_start(&till.kit, "plain", NULL);
    pawl_kit_advance(&till.kit, 0);
    for (uint32_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        pawl_kit_advance(&till.kit, delays[i] - 1);
        EXPECT_EQ(till.calls, i + 1);
        pawl_kit_advance(&till.kit, PAWL_MS(1));
        EXPECT_EQ(till.calls, i + 2);
    }
    end(&till);
}

/* So long that the instance is restored from a snapshot, once its history is not short. */
static const char *long_error(void)
{
    static char error[8000];

    memset(error, 'x', sizeof error - 1);
    error[0] = error[sizeof error - 2] = '"';
    return error;
}

TEST(calls, key_and_attempt_survive_restarts_between_attempts)
{
    struct till till;
    const char *id;

    begin(&till, 2, "\"down\"");
    id = pawl_kit_start(&till.kit, "sale", "{\"patient\":true}");
    pawl_kit_advance(&till.kit, PAWL_MS(500));
    pawl_kit_restart(&till.kit);
    equip(&till);
    pawl_kit_advance(&till.kit, PAWL_MS(499));
    EXPECT_EQ(till.calls, 1);
    pawl_kit_advance(&till.kit, PAWL_MS(1));
    EXPECT_EQ(till.calls, 2);
    pawl_kit_restart(&till.kit);
    equip(&till);
    pawl_kit_advance(&till.kit, PAWL_SECS(2));
    EXPECT_EQ(till.last_attempt, 3);
    PAWL_EXPECT_RESULT(&till.kit, id, "{\"charged\":5,\"problem\":\"\"}");
    end(&till);
}

/* The key that a call has by itself, and one of its own. */
TEST(calls, key_and_attempt_survive_in_a_snapshot)
{
    static const char *const types[] = { "plain", "keyed" };

    for (int i = 0; i < 2; i++) {
        struct till till;
        const char *id;

        begin(&till, 6, long_error());
        id = pawl_kit_start(&till.kit, types[i], NULL);
        pawl_kit_advance(&till.kit, PAWL_MINUTES(15)); /* 30 s, 2, 5 and 5 minutes */
        EXPECT_EQ(till.calls, 5);
        pawl_kit_restart(&till.kit);
        equip(&till);
        pawl_kit_advance(&till.kit, PAWL_MINUTES(10));
        EXPECT_EQ(till.last_attempt, 7);
        PAWL_EXPECT_RESULT(&till.kit, id, "{\"done\":true}");
        end(&till);
    }
}

TEST(calls, what_wins_while_a_call_backs_off_ends_its_attempts)
{
    struct till till;
    const char *id;

    begin(&till, 9, "\"down\"");
    id = pawl_kit_start(&till.kit, "sale", "{\"patient\":false}");
    pawl_kit_advance(&till.kit, PAWL_MS(1500)); /* the second attempt failed at 1000 */
    EXPECT_EQ(till.calls, 2);
    PAWL_EXPECT_VARIABLE(&till.kit, id, "phase", "\"resting\"");
    pawl_kit_advance(&till.kit, PAWL_SECS(9)); /* the third would be at 3000 */
    EXPECT_EQ(till.calls, 2);
    pawl_kit_advance(&till.kit, PAWL_SECS(1));
    PAWL_EXPECT_HISTORY(&till.kit, id,
                        "start " ONCE LAST "timer:give_up timer:later finish");
    end(&till);
}

TEST(calls, a_paused_instance_tries_again_when_it_is_resumed)
{
    struct till till;
    const char *id;

    begin(&till, 1, "\"down\"");
    id = pawl_kit_start(&till.kit, "sale", "{\"patient\":true}");
    pawl_kit_advance(&till.kit, 0);
    EXPECT_HAS(pawl_kit_ask(&till.kit, "instance.pause", id), "paused");
    pawl_kit_advance(&till.kit, PAWL_SECS(30));
    EXPECT_EQ(till.calls, 1);
    (void)pawl_kit_ask(&till.kit, "instance.resume", id);
    pawl_kit_advance(&till.kit, 0);
    EXPECT_EQ(till.calls, 2);
    PAWL_EXPECT_RESULT(&till.kit, id, "{\"charged\":5,\"problem\":\"\"}");
    end(&till);
}

TEST(calls, a_pause_before_a_call_begins_costs_no_attempt)
{
    struct till till;
    const char *id;

    begin(&till, 0, NULL);
    id = pawl_kit_start(&till.kit, "sale", "{\"patient\":true}");
    EXPECT_HAS(pawl_kit_ask(&till.kit, "instance.pause", id), "paused");
    pawl_kit_advance(&till.kit, 0);
    PAWL_EXPECT_HISTORY(&till.kit, id, "start step.start:charge step.retry:charge");
    (void)pawl_kit_ask(&till.kit, "instance.resume", id);
    pawl_kit_advance(&till.kit, 0);
    EXPECT_EQ(till.calls, 1);
    EXPECT_EQ(till.last_attempt, 1);
    PAWL_EXPECT_RESULT(&till.kit, id, "{\"charged\":5,\"problem\":\"\"}");
    end(&till);
}

TEST(calls, a_call_with_a_key_keeps_it_in_a_loop_of_the_codes_own)
{
    struct till till;
    const char *id;
    char key[160];

    begin(&till, 2, "\"down\"");
    id = pawl_kit_start(&till.kit, "refund", NULL);
    snprintf(key, sizeof key, "%s:refund", id);
    pawl_kit_advance(&till.kit, 0);
    EXPECT_EQ(till.calls, 1);
    pawl_kit_restart(&till.kit);
    pawl_kit_advance(&till.kit, PAWL_SECS(1)); /* it calls, and there is no tool yet */
    pawl_kit_restart(&till.kit);
    equip(&till);
    pawl_kit_advance(&till.kit, PAWL_SECS(5));
    EXPECT_EQ(till.calls, 3);
    EXPECT_TEXT(till.key, key);
    PAWL_EXPECT_RESULT(&till.kit, id, "{\"tries\":3}");
    end(&till);
}

/* ---- Workers elsewhere -------------------------------------------------------------------------- */

static const char *ask(struct till *till, const char *operation, const char *input)
{
    static char answer[4096];
    char *out = NULL;

    PAWL_EXPECT_OK(&till->kit, pawl_call(till->kit.p, operation, input, &out, &till->kit.error));
    snprintf(answer, sizeof answer, "%s", out);
    pawl_free(till->kit.p, out);
    return answer;
}

/* The text of a member, or its number; into `out`. */
static void member(const char *json, const char *name, char *out, size_t size)
{
    char head[40];
    const char *at;

    snprintf(head, sizeof head, "\"%s\":", name);
    at = strstr(json, head);
    EXPECT(at != NULL);
    at += strlen(head) + (at[strlen(head)] == '"');
    snprintf(out, size, "%.*s", (int)strcspn(at, "\",}"), at);
}

static void fail_step(struct till *till, const char *claim, const char *more)
{
    char step[40], lease[40], input[200];

    member(claim, "step_id", step, sizeof step);
    member(claim, "lease", lease, sizeof lease);
    snprintf(input, sizeof input, "{\"step_id\":\"%s\",\"lease\":\"%s\",\"error\":\"down\"%s}", step,
             lease, more);
    (void)ask(till, "step.fail", input);
}

#define CLAIM "{\"worker\":\"w\",\"tools\":[\"charge\"]}"

TEST(calls, a_worker_sees_the_key_and_the_attempt_and_may_end_the_attempts)
{
    struct till till;
    const char *id;
    char key[80], again[80], attempt[8], step[40], input[80], *out = NULL;

    begin(&till, 0, NULL);
    pawl_kit_restart(&till.kit); /* without tools */
    id = pawl_kit_start(&till.kit, "sale", "{\"patient\":true}");
    member(ask(&till, "step.claim", CLAIM), "idempotency_key", key, sizeof key);
    EXPECT_HAS(key, id);
    pawl_kit_restart(&till.kit); /* the lease is the worker's, and stays */
    pawl_kit_advance(&till.kit, PAWL_MINUTES(10)); /* it ran out: tried again */
    out = strdup(ask(&till, "step.claim", CLAIM));
    member(out, "idempotency_key", again, sizeof again);
    member(out, "attempt", attempt, sizeof attempt);
    EXPECT_TEXT(again, key);
    EXPECT_TEXT(attempt, "2");
    fail_step(&till, out, "");
    member(out, "step_id", step, sizeof step);
    free(out);
    step[strlen(step) - 1]++; /* the attempt that backs off is not a step to be answered */
    snprintf(input, sizeof input, "{\"step_id\":\"%s\",\"result\":5}", step);
    PAWL_EXPECT_STATUS(&till.kit, pawl_call(till.kit.p, "step.complete", input, &out, &till.kit.error),
                       PAWL_LEASE_LOST);
    pawl_kit_advance(&till.kit, PAWL_SECS(2));
    out = strdup(ask(&till, "step.claim", CLAIM));
    member(out, "attempt", attempt, sizeof attempt);
    EXPECT_TEXT(attempt, "3");
    fail_step(&till, out, ",\"retry\":false");
    free(out);
    PAWL_EXPECT_RESULT(&till.kit, id, "{\"charged\":0,\"problem\":\"\\\"down\\\"\"}");
    end(&till);
}

/* ---- Declarations ------------------------------------------------------------------------------- */

static const char *const charges[] = { "charge", NULL };

static void odd(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    if (context)
        pawl_turn_call_keyed(turn, "charge", context, "{}");
    else
        pawl_turn_complete(turn, NULL);
}

TEST(calls, a_policy_that_makes_no_sense_is_refused_when_the_type_is_registered)
{
    static const struct {
        pawl_retry retry[3];
        pawl_no_retry no_retry[2];
        const char *words;
    } rows[] = {
        { { { "pay", 2, 0, 0 } }, { { 0 } },
          "retry of 'pay': expected one of the type's calls, found none of that name" },
        { { { "charge", 0, 0, 0 } }, { { 0 } },
          "retry of 'charge': expected 1..1000 attempts, all of them counted, found 0" },
        { { { "charge", 1001, 0, 0 } }, { { 0 } },
          "retry of 'charge': expected 1..1000 attempts, all of them counted, found 1001" },
        { { { "charge", 2, -1, 0 } }, { { 0 } },
          "retry of 'charge': expected delays of 0 ms or more, the first not longer than the longest, "
          "found -1 and 0" },
        { { { "charge", 2, 9, 8 } }, { { 0 } },
          "retry of 'charge': expected delays of 0 ms or more, the first not longer than the longest, "
          "found 9 and 8" },
        { { { "charge", 2, 0, 0 }, { "charge", 3, 0, 0 } }, { { 0 } },
          "retry of 'charge' is declared twice; keep one" },
        { { { 0 } }, { { "charge", "declined" } },
          "no_retry of 'charge': expected a call that has a retry, found none" },
    };
    pawl_kit kit;
    pawl_error error;

    pawl_kit_open(&kit, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const pawl_code_type type = { .name = "odd",
                                      .calls = charges,
                                      .retries = rows[i].retry,
                                      .no_retries = rows[i].no_retry,
                                      .handle = odd };

        EXPECT_EQ(pawl_code_register(kit.p, &type, &error), PAWL_INVALID_REQUEST);
        EXPECT_TEXT(error.message, rows[i].words);
    }
    pawl_kit_close(&kit);
}
