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
