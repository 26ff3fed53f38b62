/* ops_fault.c - every allocation of a call fails in turn: whoever is told no-memory may be
 * sure that nothing has changed (engine.h, promise 1). */
#include "lib/test.h"
#include <stdio.h>
#include <stdlib.h>

static long countdown = -1; /* allocations until one fails; -1: never */

static void *resize(void *context, void *block, size_t old_size, size_t new_size)
{
    (void)context;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    if (countdown >= 0 && countdown-- == 0)
        return NULL;
    return realloc(block, new_size);
}

static pawl *p;
static pawl_error error;

static pawl_status call(const char *operation, const char *input, char out[256])
{
    char *answer;
    pawl_status status = pawl_call(p, operation, input, &answer, &error);

    countdown = -1;
    if (status == PAWL_OK) {
        snprintf(out, 256, "%s", answer);
        pawl_free(p, answer);
    }
    return status;
}

static unsigned long long next_sequence(const char *id)
{
    char input[64], *answer;
    unsigned long long number = 0;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(p, "instance.get", input, &answer, &error));
    sscanf(strstr(answer, "next_sequence_number\":") + 22, "%llu", &number);
    pawl_free(p, answer);
    return number;
}

TEST(ops_fault, no_memory_means_that_nothing_has_changed)
{
    char out[256], id[32] = "", input[128];
    unsigned long long next;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .resize = resize }, &error));
    EXPECT_OK(call("instance.create",
                   "{\"declaration\":{\"states\":[\"a\"],\"initial_state\":\"a\","
                   "\"terminal_states\":[],\"transitions\":[{\"from_state\":\"a\","
                   "\"action\":\"go\",\"to_state\":\"a\"}]}}",
                   out));
    sscanf(strstr(out, "instance_id\":\"") + 14, "%26s", id);
    next = next_sequence(id);
    for (long round = 0, done = 0; !done; round++) {
        pawl_status status;

        snprintf(input, sizeof input,
                 "{\"instance_id\":\"%s\",\"action\":\"go\",\"actor_ref\":\"a%ld\"}", id, round);
        countdown = round;
        status = call("instance.fire", input, out);
        done = status == PAWL_OK;
        EXPECT(done || status == PAWL_NO_MEMORY || status == PAWL_OUTCOME_UNKNOWN);
        next += status == PAWL_NO_MEMORY ? 0 : 1;
        EXPECT_EQ(next_sequence(id), next);
    }
    pawl_close(p);
}

TEST(ops_fault, a_check_that_runs_out_of_memory_says_so)
{
    static const char order[] =
        "{\"name\":\"order\",\"text\":\"states: [new, paid, Paid, gone]\\ninitial_state: new\\n"
        "terminal_states: [gone]\\nterminal_kinds: {gone: cancel}\\ntransitions:\\n"
        "- {from_state: new, action: pay, to_state: paid}\\n"
        "- {from_state: paid, action: drop, to_state: gone}\\n\"}";
    static const char check[] =
        "{\"against\":\"order\",\"text\":\"states: [new, gone]\\ninitial_state: new\\n"
        "terminal_states: [gone]\\nterminal_kinds: {gone: cancel}\\ntransitions:\\n"
        "- {from_state: new, action: drop, to_state: gone}\\n\"}";
    char out[256] = "";
    pawl_status status = PAWL_NO_MEMORY;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .resize = resize }, &error));
    EXPECT_OK(call("definition.put", order, out));
    EXPECT_OK(call("instance.create", "{\"definition\":\"order\"}", out));
    for (long round = 0; status == PAWL_NO_MEMORY; round++) {
        countdown = round;
        status = call("definition.check", check, out);
    }
    EXPECT_OK(status);
    EXPECT(strstr(out, "\"missing\":[\"pay\"]"));
    pawl_close(p);
}

/* ---- A worker's turn ---- */

static unsigned count_of(const char *text, const char *part)
{
    unsigned count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

/* Answers to all that `last` gave, and a claim. */
static void print_turn(const char *last, char *out, size_t size)
{
    const char *at = last ? strstr(last, "\"steps\":[{") : NULL;
    size_t used = (size_t)snprintf(out, size, "{\"steps\":[");

    for (const char *comma = ""; at && (at = strstr(at, "\"step_id\":\"")); comma = ",") {
        const char *lease = strstr(at, "\"lease\":\"");

        used += (size_t)snprintf(out + used, size - used,
                                 "%s{\"step_id\":\"%.*s\",\"lease\":\"%.32s\",\"result\":1}", comma,
                                 (int)strcspn(at + 11, "\""), at + 11, lease + 9);
        at = lease;
    }
    snprintf(out + used, size - used,
             "],\"claim\":{\"tools\":[\"saw\"],\"worker\":\"w/1\",\"max\":5}}");
}

/* Turns until there is nothing left to do, now and after what was leased to nobody has run out. */
static void work_to_the_end(char *last)
{
    for (int idle = 0; idle < 2;) {
        char turn[512];

        print_turn(last, turn, sizeof turn);
        pawl_free(p, last);
        EXPECT_OK(pawl_call(p, "step.complete_many", turn, &last, &error));
        if (!strstr(last, "\"lease\"")) {
            idle++;
            EXPECT_OK(pawl_test_advance(p, 400000, &error));
        }
    }
    pawl_free(p, last);
}

static void expect_each_step_once(const char *id)
{
    char input[64], *answer;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(p, "instance.history", input, &answer, &error));
    EXPECT_EQ(count_of(answer, "\"action\":\"step.complete\""), 3);
    EXPECT_EQ(count_of(answer, "\"action\":\"finish\""), 1);
    pawl_free(p, answer);
}

/* Whatever it was that it lacked: the step is answered once, what it made ready is worked on. */
TEST(ops_fault, a_turn_that_lacks_memory_loses_no_step)
{
    static const char flow[] =
        "{\"name\":\"saws\",\"text\":\"do:\\n- {action: saw, payload: {}, idempotent: true, retry: {max: 9}}\\n"
        "- {action: saw, payload: {}, idempotent: true, retry: {max: 9}}\\n"
        "- {action: saw, payload: {}, idempotent: true, retry: {max: 9}}\\n\"}";
    bool was_short = true;
    char out[256] = "";

    EXPECT_OK(pawl_open(
        &p, "memory:", &(pawl_options){ .resize = resize, .own = true, .test_clock = true },
        &error));
    EXPECT_OK(call("definition.put", flow, out));
    for (long round = 0; was_short; round++) {
        char id[32] = "", turn[512], *last, *next = NULL;
        pawl_status status;

        EXPECT_OK(call("instance.create", "{\"definition\":\"saws\"}", out));
        sscanf(strstr(out, "instance_id\":\"") + 14, "%26s", id);
        EXPECT_OK(pawl_call(p, "step.claim", "{\"tools\":[\"saw\"],\"worker\":\"w/1\",\"max\":5}",
                            &last, &error));
        print_turn(last, turn, sizeof turn);
        countdown = round;
        status = pawl_call(p, "step.complete_many", turn, &next, &error);
        was_short = countdown < 0;
        countdown = -1;
        EXPECT(status == PAWL_OK || status == PAWL_NO_MEMORY || status == PAWL_OUTCOME_UNKNOWN);
        work_to_the_end(status ? last : next);
        if (!status)
            pawl_free(p, last);
        expect_each_step_once(id);
    }
    pawl_close(p);
}
