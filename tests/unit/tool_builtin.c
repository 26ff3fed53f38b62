/* tool_builtin.c - the toolbox, the tools that are built in, and those of a host. */
#include "base/limits.h"
#include "lib/fault.h"
#include "lib/test.h"
#include "tool/tool.h"
#include <pthread.h>
#include <stdio.h>

static char logged[200];

static void keep_log(void *context, pawl_log_level level, const char *event, const char *text)
{
    EXPECT(context == logged);
    EXPECT_EQ(level, PAWL_LOG_INFO);
    (void)snprintf(logged, sizeof logged, "%s|%s", event, text);
}

static struct toolbox *make_toolbox(const struct heap *heap)
{
    return toolbox_new(
        &(struct toolbox_options){ .heap = heap, .log = keep_log, .log_context = logged });
}

static struct tool_result run(struct test *t, struct toolbox *toolbox, const char *tool,
                              const char *args)
{
    pawl_tool_call call = { .tool = tool, .args = args, .step = "s", .idempotency_key = "k" };
    struct tool_result result = { 0 };

    EXPECT_OK(toolbox_run(toolbox, &call, 1000, NULL, &t->scope, &result));
    EXPECT(result.json.data != NULL);
    return result;
}

static void expect_result(struct test *t, struct toolbox *toolbox, const char *tool,
                          const char *args, const char *json)
{
    struct tool_result result = run(t, toolbox, tool, args);

    EXPECT_STR(result.json, json);
    EXPECT(!result.failed);
}

static void expect_error(struct test *t, struct toolbox *toolbox, const char *tool,
                         const char *args, const char *part)
{
    struct tool_result result = run(t, toolbox, tool, args);

    EXPECT(result.failed);
    EXPECT_HAS(result.json.data, part);
}

TEST(tool, log_tells_the_host_and_returns_its_message)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);

    expect_result(t, toolbox, "log", "{\"message\":\"a\\nb\"}", "\"a\\nb\"");
    EXPECT_TEXT(logged, "tool.log|a\nb");
    expect_result(t, toolbox, "log", "{\"message\": {\"n\" : 1.50}}", "{\"n\":1.50}");
    EXPECT_TEXT(logged, "tool.log|{\"n\":1.50}");
    expect_error(t, toolbox, "log", "{}", "no 'message'");
    EXPECT(run(t, toolbox, "log", "{}").is_final);
    toolbox_free(toolbox);
}

TEST(tool, set_returns_its_args_byte_for_byte_and_fail_fails_with_its_error)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);

    expect_result(t, toolbox, "set", "{\"a\": 1.00}", "{\"a\": 1.00}");
    expect_error(t, toolbox, "fail", "{\"error\":{\"code\":7}}", "{\"code\":7}");
    expect_error(t, toolbox, "fail", "{}", "\"failed\"");
    toolbox_free(toolbox);
}

TEST(tool, args_that_are_no_object_fail_in_words)
{
    static const char *const bad[] = { "", "{", "[1]", "null", "{\"a\":1}x" };
    struct toolbox *toolbox = make_toolbox(&heap_libc);

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_error(t, toolbox, "log", bad[i], "must be a JSON object");
    toolbox_free(toolbox);
}

TEST(tool, c2_set_returns_any_json_and_refuses_what_is_none)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);

    expect_result(t, toolbox, "set", "[1]", "[1]");
    expect_result(t, toolbox, "set", "null", "null");
    expect_error(t, toolbox, "set", "{\"a\":1}x", "must be JSON");
    expect_error(t, toolbox, "set", "", "must be JSON");
    toolbox_free(toolbox);
}

TEST(tool, exec_is_off_unless_it_is_allowed)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);

    EXPECT(toolbox_has(toolbox, STR("exec")));
    expect_error(t, toolbox, "exec", "{\"argv\":[\"true\"]}", "exec is off; ");
    toolbox_free(toolbox);
}

/* ---- Tools of a host --------------------------------------------------------------------- */

static void say(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    EXPECT_TEXT(call->idempotency_key, "k");
    if (call->attempt == 1)
        pawl_answer_error(answer, context);
    else if (context)
        pawl_answer_result(answer, context);
}

static void answer_twice(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_error(answer, "\"first\"");
    pawl_answer_result(answer, " [1, 2]\n");
}

static void answer_large(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    size_t size = *(size_t *)context;
    char *text = heap_new(&heap_libc, size + 1);

    (void)call;
    memset(text, '1', size);
    for (size_t i = 2; i < size; i += 2)
        text[i] = ',';
    text[0] = '[';
    text[size - 1] = ']';
    pawl_answer_result(answer, text);
    heap_free(&heap_libc, text, size + 1);
}

static void add(struct toolbox *toolbox, const char *name, pawl_tool_fn fn, void *context)
{
    pawl_error error;

    EXPECT_OK(toolbox_register(toolbox, name, fn, context, &error));
}

TEST(tool, a_hosts_tool_answers_with_a_result_an_error_or_nothing)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);
    pawl_tool_call call = { .tool = "two", .args = "{}", .idempotency_key = "k", .attempt = 1 };
    struct tool_result result;
    char two[] = "{\"n\":2}";

    add(toolbox, "two", say, two);
    add(toolbox, "silent", say, NULL);
    add(toolbox, "git/clone", answer_twice, NULL);
    expect_result(t, toolbox, "two", "{}", "{\"n\":2}");
    expect_result(t, toolbox, "silent", "{}", "null");
    expect_result(t, toolbox, "git/clone", "{}", "[1, 2]");
    EXPECT_OK(toolbox_run(toolbox, &call, 0, NULL, &t->scope, &result));
    EXPECT(result.failed);
    EXPECT_STR(result.json, "{\"n\":2}");
    EXPECT(toolbox_has(toolbox, STR("two")));
    EXPECT(!toolbox_has(toolbox, STR("three")));
    toolbox_free(toolbox);
}

TEST(tool, an_answer_that_is_no_json_is_a_failure_in_words)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);
    char bad[] = "{oops", worse[] = "\xFF";

    add(toolbox, "bad", say, bad);
    add(toolbox, "worse", say, worse);
    expect_error(t, toolbox, "bad", "{}", "the tool's answer is not JSON: line 1, column 2");
    expect_error(t, toolbox, "worse", "{}", "is not JSON");
    toolbox_free(toolbox);
}

TEST(tool, an_answer_may_have_a_megabyte_and_not_a_byte_more)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);
    size_t most = LIMIT_TEXT - 1, over = LIMIT_TEXT + 1;

    add(toolbox, "most", answer_large, &most);
    add(toolbox, "over", answer_large, &over);
    EXPECT_EQ(run(t, toolbox, "most", "{}").json.size, most);
    expect_error(t, toolbox, "over", "{}", "is over 1048576 bytes");
    toolbox_free(toolbox);
}

TEST(tool, an_unknown_tool_fails_and_those_that_are_known_are_named)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);
    char name[40];

    add(toolbox, "pay", answer_twice, NULL);
    expect_error(t, toolbox, "nope", "{}", "unknown tool 'nope'; known: exec, fail, http, log, set, pay");
    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "a-tool-with-a-long-name-%d", i);
        add(toolbox, name, answer_twice, NULL);
    }
    expect_error(t, toolbox, "nope", "{}", ", ...");
    toolbox_free(toolbox);
}

TEST(tool, a_bad_or_taken_name_is_refused)
{
    static const char *const bad[] = { "",    "a b",  "a@1",   "log", "exec",
                                       "set", "fail", "sleep", "pay", "\xC3\xA9" };
    struct toolbox *toolbox = make_toolbox(&heap_libc);
    pawl_error error;

    add(toolbox, "pay", answer_twice, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT(toolbox_register(toolbox, bad[i], say, NULL, &error) == PAWL_INVALID_REQUEST);
        EXPECT(error.status == PAWL_INVALID_REQUEST && error.message[0]);
    }
    EXPECT(toolbox_register(toolbox, NULL, say, NULL, NULL) == PAWL_INVALID_REQUEST);
    EXPECT(toolbox_register(toolbox, "x", NULL, NULL, &error) == PAWL_INVALID_REQUEST);
    EXPECT(!toolbox_has(toolbox, STR("x")));
    toolbox_free(toolbox);
}

/* ---- Memory and threads -------------------------------------------------------------------- */

static bool use_all(struct fault_heap *fault, const char *tool)
{
    pawl_tool_call call = { .tool = tool, .args = "{\"message\":\"x\"}", .idempotency_key = "k" };
    struct toolbox *toolbox = make_toolbox(&fault->heap);
    struct tool_result result;
    struct scope scope;
    pawl_status status;

    if (!toolbox)
        return false;
    status = toolbox_register(toolbox, "two", answer_twice, NULL, NULL);
    scope_init(&scope, &fault->heap, 0);
    if (status == PAWL_OK)
        status = toolbox_run(toolbox, &call, 0, NULL, &scope, &result);
    EXPECT(status == PAWL_OK || status == PAWL_NO_MEMORY);
    scope_fini(&scope);
    toolbox_free(toolbox);
    return status == PAWL_OK;
}

TEST(tool, every_allocation_that_fails_is_no_memory_and_leaks_nothing)
{
    static const char *const tools[] = { "log", "set", "fail", "two", "nope", "exec" };

    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        struct fault_heap fault = { 0 };

        FAULT_EACH(fault, FAULT_ONCE)
        {
            bool done = use_all(&fault, tools[i]);

            EXPECT(done || fault.has_failed);
        }
    }
}

static void *register_and_run(void *context)
{
    struct toolbox *toolbox = context;
    pawl_tool_call call = { .tool = "shared", .args = "{}", .idempotency_key = "k" };
    struct tool_result result;
    struct scope scope;

    (void)toolbox_register(toolbox, "shared", answer_twice, NULL, NULL);
    scope_init(&scope, &heap_libc, 0);
    for (int i = 0; i < 200; i++)
        if (!toolbox_has(toolbox, STR("shared")) ||
            toolbox_run(toolbox, &call, 0, NULL, &scope, &result) != PAWL_OK || result.failed)
            break;
        else if (i == 199)
            context = NULL;
    scope_fini(&scope);
    return context; /* NULL: all went well */
}

TEST(tool, threads_may_register_look_up_and_run_at_once)
{
    struct toolbox *toolbox = make_toolbox(&heap_libc);
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, register_and_run, toolbox), 0);
    for (int i = 0; i < 4; i++) {
        void *left = toolbox;

        pthread_join(threads[i], &left);
        EXPECT(left == NULL);
    }
    toolbox_free(toolbox);
}
