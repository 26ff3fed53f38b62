/* api_null.c - NULL where pawl.h does not allow it: a refusal with a sentence, never a crash. */
#include "lib/test.h"
#include <pawl.h>
#include <stdio.h>

static pawl *p;
static pawl_error error;

static const char declaration[] = "{\"states\":[\"a\",\"b\"],\"initial_state\":\"a\","
                                  "\"terminal_states\":[\"b\"],\"transitions\":["
                                  "{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"b\"}]}";

static const char *begin(void)
{
    static pawl_id id;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .declaration = declaration }, &id, &error));
    return id.text;
}

/* `call`, which has just returned `status`, found `what` missing. */
static void refused(pawl_status status, const char *call, const char *what)
{
    char words[80];

    EXPECT_EQ(status, PAWL_INVALID_REQUEST);
    EXPECT_EQ(error.status, PAWL_INVALID_REQUEST);
    snprintf(words, sizeof words, "%s: expected %s, found NULL", call, what);
    EXPECT_TEXT(error.message, words);
}

TEST(api_null, a_signal_from_outside_says_what_is_missing)
{
    const pawl_code_type type = { .name = "t" };
    pawl_event event;

    refused(pawl_signal_from_name_and_payload(NULL, "x", NULL, NULL, &event, &error),
            "pawl_signal_from_name_and_payload", "type");
    refused(pawl_signal_from_name_and_payload(&type, NULL, NULL, NULL, &event, &error),
            "pawl_signal_from_name_and_payload", "wire_name");
    refused(pawl_signal_from_name_and_payload(&type, "x", NULL, NULL, NULL, &error),
            "pawl_signal_from_name_and_payload", "out");
}

TEST(api_null, instances_say_what_is_missing)
{
    const pawl_create_args create = { .declaration = declaration };
    const pawl_fire_args fire = { .action = "go" };
    const char *id = begin(), *state;
    pawl_id made;

    refused(pawl_open(NULL, "memory:", NULL, &error), "pawl_open", "out");
    refused(pawl_define(NULL, "x", 1, NULL, &error), "pawl_define", "p");
    refused(pawl_define(p, NULL, 1, NULL, &error), "pawl_define", "text");
    refused(pawl_create(NULL, &create, &made, &error), "pawl_create", "p");
    refused(pawl_create(p, NULL, &made, &error), "pawl_create", "args");
    refused(pawl_create(p, &create, NULL, &error), "pawl_create", "out");
    refused(pawl_fire(NULL, id, &fire, NULL, &error), "pawl_fire", "p");
    refused(pawl_fire(p, NULL, &fire, NULL, &error), "pawl_fire", "id");
    refused(pawl_fire(p, id, NULL, NULL, &error), "pawl_fire", "args");
    refused(pawl_fire_batch(NULL, NULL, 0, &error), "pawl_fire_batch", "p");
    refused(pawl_fire_batch(p, NULL, 1, &error), "pawl_fire_batch", "fires");
    refused(pawl_cancel(NULL, id, NULL, NULL, NULL, &error), "pawl_cancel", "p");
    refused(pawl_cancel(p, NULL, NULL, NULL, NULL, &error), "pawl_cancel", "id");
    refused(pawl_signal(NULL, id, "x", NULL, NULL, &error), "pawl_signal", "p");
    refused(pawl_signal(p, NULL, "x", NULL, NULL, &error), "pawl_signal", "id");
    refused(pawl_signal(p, id, NULL, NULL, NULL, &error), "pawl_signal", "name");
    refused(pawl_current(NULL, id, &state, &error), "pawl_current", "p");
    refused(pawl_current(p, NULL, &state, &error), "pawl_current", "id");
    refused(pawl_current(p, id, NULL, &error), "pawl_current", "out");
    pawl_close(p);
}

static void no_tool(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context, (void)call, (void)answer;
}

TEST(api_null, everything_else_says_what_is_missing)
{
    const char *id = begin();
    const pawl_code_type type = { .name = "t" };
    pawl_history *history;
    char *out;

    refused(pawl_history_open(NULL, id, NULL, &history, &error), "pawl_history_open", "p");
    EXPECT(history == NULL);
    refused(pawl_history_open(p, NULL, NULL, &history, &error), "pawl_history_open", "id");
    refused(pawl_history_open(p, id, NULL, NULL, &error), "pawl_history_open", "out");
    refused(pawl_tool_register(NULL, "t", no_tool, NULL, &error), "pawl_tool_register", "p");
    refused(pawl_tool_register(p, NULL, no_tool, NULL, &error), "pawl_tool_register", "name");
    refused(pawl_tool_register(p, "t", NULL, NULL, &error), "pawl_tool_register", "fn");
    refused(pawl_code_register(NULL, &type, &error), "pawl_code_register", "p");
    refused(pawl_code_register(p, NULL, &error), "pawl_code_register", "type");
    refused(pawl_run_due(NULL, &error), "pawl_run_due", "p");
    refused(pawl_run_due_within(NULL, 1, &error), "pawl_run_due_within", "p");
    refused(pawl_test_advance(NULL, 1, &error), "pawl_test_advance", "p");
    refused(pawl_declaration(NULL, id, &out, NULL, &error), "pawl_declaration", "p");
    EXPECT(out == NULL);
    refused(pawl_declaration(p, NULL, &out, NULL, &error), "pawl_declaration", "id");
    refused(pawl_declaration(p, id, NULL, NULL, &error), "pawl_declaration", "out");
    refused(pawl_test_fire_timer(NULL, id, "x", &error), "pawl_test_fire_timer", "p");
    refused(pawl_test_fire_timer(p, NULL, "x", &error), "pawl_test_fire_timer", "id");
    refused(pawl_test_fire_timer(p, id, NULL, &error), "pawl_test_fire_timer", "name");
    refused(pawl_call(NULL, "store.verify", "{}", &out, &error), "pawl_call", "p");
    EXPECT(out == NULL);
    refused(pawl_call(p, NULL, "{}", &out, &error), "pawl_call", "operation");
    refused(pawl_call(p, "store.verify", "{}", NULL, &error), "pawl_call", "out");
    pawl_close(p);
}

TEST(api_null, what_has_no_status_does_nothing)
{
    const char *id = begin();
    pawl_history *history;
    pawl_entry entry;

    EXPECT_EQ(pawl_next_due(NULL), -1);
    EXPECT(!pawl_history_next(NULL, &entry));
    EXPECT_OK(pawl_history_open(p, id, NULL, &history, NULL));
    EXPECT(!pawl_history_next(history, NULL));
    EXPECT_OK(pawl_history_close(history, NULL));
    EXPECT_OK(pawl_history_close(NULL, NULL));
    pawl_answer_result(NULL, "1");
    pawl_answer_error(NULL, NULL);
    pawl_turn_timer(NULL, "x", 1);
    pawl_turn_signal(NULL, "x");
    pawl_turn_complete(NULL, "1");
    pawl_turn_fail(NULL, NULL);
    pawl_free(p, NULL);
    pawl_free(NULL, NULL);
    pawl_close(p);
    pawl_close(NULL);
}

TEST(api_null, the_error_itself_may_be_missing_and_a_batch_of_none_is_done)
{
    begin();
    EXPECT_EQ(pawl_fire(p, NULL, NULL, NULL, NULL), PAWL_INVALID_REQUEST);
    EXPECT_EQ(pawl_call(NULL, NULL, NULL, NULL, NULL), PAWL_INVALID_REQUEST);
    EXPECT_OK(pawl_fire_batch(p, NULL, 0, NULL));
    pawl_close(p);
}
