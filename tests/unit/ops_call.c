/* ops_call.c - the operations by name, on a real engine: what they answer, and in which order
 * they refuse (DESIGN.md section 5). */
#include "base/node.h"
#include "lib/test.h"
#include <stdarg.h>
#include <stdio.h>

#define DECLARATION                                                                                \
    "{\"states\":[\"a\",\"b\",\"done\",\"gone\"],\"initial_state\":\"a\",\"extra\": 1.50,"         \
    "\"terminal_states\":[\"done\",\"gone\"],\"terminal_kinds\":{\"done\":\"success\","            \
    "\"gone\":\"cancel\"},\"transitions\":["                                                       \
    "{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"b\"},"                                 \
    "{\"from_state\":\"a\",\"action\":\"drop\",\"to_state\":\"gone\",\"requires_reason\":true},"   \
    "{\"from_state\":\"b\",\"action\":\"end\",\"to_state\":\"done\",\"guard\":\"sure\"}]}"

static pawl *p;
static pawl_error error;
static char *answer;

static void begin(void)
{
    EXPECT_OK(pawl_open(&p, "memory:", NULL, &error));
}

static void end(void)
{
    pawl_free(p, answer);
    answer = NULL;
    pawl_close(p);
}

static pawl_status call(const char *operation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static pawl_status call(const char *operation, const char *format, ...)
{
    char input[4096];
    pawl_status status;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(input, sizeof input, format, arguments);
    va_end(arguments);
    pawl_free(p, answer);
    status = pawl_call(p, operation, input, &answer, &error);
    EXPECT((status == PAWL_OK) == (answer != NULL));
    EXPECT_EQ(error.status, status);
    return status;
}

static str member(struct test *t, const char *key)
{
    struct node *node, *found;

    EXPECT_OK(node_read_json(&t->scope, arena_str(&t->scope.arena, str_of(answer)), &node));
    found = node_find(node, key);
    EXPECT(found != NULL);
    return found->kind == NODE_STRING ? found->text : found->raw;
}

static const char *create(struct test *t)
{
    EXPECT_OK(call("instance.create", "{\"declaration\":" DECLARATION "}"));
    return arena_text(&t->scope.arena, member(t, "instance_id"));
}

TEST(ops_call, an_unknown_operation_is_not_known)
{
    begin();
    EXPECT_EQ(call("instance.frie", "{}"), PAWL_NOT_KNOWN);
    EXPECT_EQ(call("store.list", "{"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(call("store.list", "{\"x\":1}"), PAWL_INVALID_REQUEST);
    EXPECT_OK(call("store.list", "{}"));
    EXPECT_TEXT(answer, "{\"stores\":[\"default\"]}");
    end();
}

TEST(ops_call, an_instance_shows_everything_with_null_for_what_is_absent)
{
    begin();
    create(t);
    EXPECT_OK(call("instance.list", "{}"));
    EXPECT_HAS(answer, "\"definition\":null,\"version\":null,\"kind\":\"machine\","
                       "\"current_state\":\"a\",\"status\":\"suspended\",\"terminal_kind\":null,"
                       "\"actions\":[{\"action\":\"go\",\"to_state\":\"b\"},{\"action\":\"drop\","
                       "\"to_state\":\"gone\",\"requires_reason\":true}],\"can_cancel\":true,"
                       "\"next_sequence_number\":1,\"subject_ref\":null,\"correlation_id\":null,"
                       "\"labels\":null,\"parent_id\":null,\"created_by\":null,");
    EXPECT_HAS(answer, "\"input\":null,\"instance_metadata\":null,\"result\":null,\"error\":null}"
                       "],\"next\":null}");
    end();
}

TEST(ops_call, a_declaration_comes_back_byte_for_byte) /* D12 */
{
    const char *id;

    begin();
    id = create(t);
    EXPECT_OK(call("instance.declaration", "{\"instance_id\":\"%s\"}", id));
    EXPECT_TEXT(answer, DECLARATION);
    end();
}

TEST(ops_call, fire_refuses_in_the_order_of_the_contract) /* D18, D20 */
{
    const char *late = "\"actor_ref\":\" \",\"fired_at\":\"2999-01-01T00:00:00Z\"", *id;

    begin();
    id = create(t);
    EXPECT_EQ(call("instance.fire", "{\"instance_id\":\"x\",\"action\":\" \",%s}", late),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(call("instance.fire", "{\"instance_id\":\"x\",\"action\":\"go\",%s}", late),
              PAWL_NOT_KNOWN);
    EXPECT_EQ(call("instance.fire", "{\"instance_id\":\"%s\",\"action\":\"end\",%s}", id, late),
              PAWL_INVALID_TRANSITION);
    EXPECT_HAS(error.message, "go, drop");
    EXPECT_EQ(call("instance.fire",
                   "{\"instance_id\":\"%s\",\"action\":\"drop\",\"reason\":\" \",%s}", id, late),
              PAWL_REASON_REQUIRED);
    EXPECT_EQ(call("instance.fire",
                   "{\"instance_id\":\"%s\",\"action\":\"go\",\"expected_sequence\":2,%s}", id,
                   late),
              PAWL_CONFLICT);
    EXPECT_EQ(call("instance.fire", "{\"instance_id\":\"%s\",\"action\":\"go\",%s}", id, late),
              PAWL_INVALID_REQUEST);
    EXPECT_OK(call("instance.fire", "{\"instance_id\":\"%s\",\"action\":\"go\"}", id));
    EXPECT_EQ(call("instance.fire",
                   "{\"instance_id\":\"%s\",\"action\":\"end\",\"guard_satisfied\":\"true\",%s}",
                   id, late),
              PAWL_GUARD_NOT_SATISFIED);
    EXPECT_OK(call("instance.fire",
                   "{\"instance_id\":\"%s\",\"action\":\"end\",\"guard_satisfied\":true}", id));
    EXPECT_EQ(call("instance.fire", "{\"instance_id\":\"%s\",\"action\":\"zzz\",%s}", id, late),
              PAWL_TERMINAL);
    end();
}

TEST(ops_call, a_bad_declaration_wins_over_bad_values_and_an_unknown_field_over_both) /* D14 */
{
    begin();
    EXPECT_EQ(call("instance.create", "{\"declaration\":{\"states\":[]},\"actor_ref\":\" \"}"),
              PAWL_INVALID_DECLARATION);
    EXPECT_EQ(call("instance.create", "{\"declaration\":{},\"instantiated_at\":\"never\"}"),
              PAWL_INVALID_DECLARATION);
    EXPECT_EQ(call("instance.create", "{\"declaration\":{},\"bogus\":1}"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(call("instance.create", "{\"definition\":\"nope\",\"actor_ref\":\" \"}"),
              PAWL_NOT_KNOWN);
    EXPECT_EQ(call("instance.create", "{\"declaration\":" DECLARATION ",\"subject_ref\":\" \"}"),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(call("instance.create", "{\"declaration\":" DECLARATION ",\"instance_metadata\":{}}"),
              PAWL_INVALID_REQUEST);
    EXPECT_OK(call("instance.create", "{\"declaration\":" DECLARATION ",\"actor_ref\":\"\"}"));
    end();
}

TEST(ops_call, a_history_query_is_refused_after_the_instance_is_known) /* D29, D31 */
{
    static const char *const bad[] = {
        "\"bogus\":\"1\"",      "\"action\":\"\"",         "\"actor_ref\":null",
        "\"from_state\":\" \"", "\"sequence_from\":\"x\"", "\"sequence_from\":2,\"sequence_to\":1",
        "\"action\":[]",        "\"fired_after\":\"now\"", "\"limit\":0",
    };
    const char *id;

    begin();
    id = create(t);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EXPECT_EQ(call("instance.history", "{\"instance_id\":\" \",%s}", bad[i]),
                  PAWL_INVALID_REQUEST);
        EXPECT_EQ(call("instance.history", "{\"instance_id\":\"x\",%s}", bad[i]), PAWL_NOT_KNOWN);
        EXPECT_EQ(call("instance.history", "{\"instance_id\":\"%s\",%s}", id, bad[i]),
                  PAWL_INVALID_QUERY);
    }
    EXPECT_OK(call("instance.history", "{\"instance_id\":\"%s\",\"sequence_to\":0}", id));
    EXPECT_TEXT(answer, "{\"entries\":[]}");
    end();
}

static bool finds_it(const char *id, const char *bound, int day)
{
    EXPECT_OK(call("instance.history", "{\"instance_id\":\"%s\",\"%s\":\"2026-02-0%dT00:00:00Z\"}",
                   id, bound, day));
    return strstr(answer, "\"action\":\"go\"") != NULL;
}

TEST(ops_call, the_bounds_of_a_history_are_inclusive) /* D29 */
{
    const char *id;

    begin();
    EXPECT_OK(call("instance.create", "{\"declaration\":" DECLARATION
                                      ",\"instantiated_at\":\"2026-02-01T00:00:00Z\"}"));
    id = arena_text(&t->scope.arena, member(t, "instance_id"));
    EXPECT_OK(call("instance.fire",
                   "{\"instance_id\":\"%s\",\"action\":\"go\","
                   "\"fired_at\":\"2026-02-03T00:00:00Z\"}",
                   id));
    for (int day = 2; day <= 4; day++) {
        EXPECT(finds_it(id, "fired_before", day) == (day >= 3));
        EXPECT(finds_it(id, "fired_after", day) == (day <= 3));
    }
    end();
}

TEST(ops_call, an_entry_has_what_was_supplied_and_nothing_else) /* D21, D22, D33 */
{
    const char *id;

    begin();
    id = create(t);
    EXPECT_OK(call("instance.fire",
                   "{\"instance_id\":\"%s\",\"action\":\"go\",\"guard_satisfied\":true,"
                   "\"actor_ref\":\"\",\"payload\":{\"n\": 1.00}}",
                   id));
    EXPECT_OK(call("instance.history", "{\"instance_id\":\"%s\"}", id));
    EXPECT_HAS(answer, "\"payload\":{\"n\": 1.00},\"hash\":");
    EXPECT(!strstr(answer, "actor_ref") && !strstr(answer, "guard") && !strstr(answer, "reason"));
    EXPECT_OK(call("instance.history", "{\"instance_id\":\"%s\",\"actor_ref\":\"ann\"}", id));
    EXPECT_TEXT(answer, "{\"entries\":[]}");
    EXPECT_OK(call("instance.verify", "{\"instance_id\":\"%s\"}", id));
    EXPECT_TEXT(answer, "{\"valid\":true,\"entries\":1}");
    end();
}

TEST(ops_call, cancel_refuses_what_cannot_be_before_how_it_was_asked) /* A17, A18, A22 */
{
    const char *id;

    begin();
    id = create(t);
    EXPECT_EQ(call("instance.cancel", "{\"instance_id\":\"x\",\"actor_ref\":\" \"}"),
              PAWL_NOT_KNOWN);
    EXPECT_EQ(call("instance.cancel", "{\"instance_id\":\"%s\",\"actor_ref\":\" \"}", id),
              PAWL_REASON_REQUIRED);
    EXPECT_EQ(call("instance.cancel",
                   "{\"instance_id\":\"%s\",\"actor_ref\":\" \",\"reason\":\"r\"}", id),
              PAWL_INVALID_REQUEST);
    EXPECT_OK(call("instance.cancel", "{\"instance_id\":\"%s\",\"reason\":\"r\"}", id));
    EXPECT_TEXT(answer, "{\"new_state\":\"gone\",\"terminal_kind\":\"cancel\"}");
    EXPECT_EQ(call("instance.cancel", "{\"instance_id\":\"%s\",\"reason\":\" \"}", id),
              PAWL_TERMINAL);
    id = create(t);
    EXPECT_OK(call("instance.fire", "{\"instance_id\":\"%s\",\"action\":\"go\"}", id));
    EXPECT_EQ(call("instance.cancel", "{\"instance_id\":\"%s\",\"actor_ref\":\" \"}", id),
              PAWL_NO_CANCEL_TRANSITION);
    end();
}

TEST(ops_call, a_list_goes_on_where_it_stopped)
{
    char after[40] = "", *seen = arena_alloc(&t->scope.arena, 4096);
    int rows = 0;

    begin();
    for (int i = 0; i < 5; i++)
        create(t);
    do {
        EXPECT_OK(call("instance.list", "{\"limit\":2,\"order\":\"oldest\"%s}", after));
        rows += strstr(answer, "\"instance_id\"") ? 1 : 0;
        EXPECT(strcmp(seen, answer) != 0);
        snprintf(seen, 4096, "%s", answer);
        snprintf(after, sizeof after, ",\"after\":\"%.*s\"", STR_ARG(member(t, "next")));
    } while (!str_is(member(t, "next"), "null"));
    EXPECT_EQ(rows, 3);
    EXPECT_EQ(call("instance.list", "{\"after\":\"elsewhere\"}"), PAWL_INVALID_QUERY);
    EXPECT_EQ(call("instance.list", "{\"limit\":1001}"), PAWL_INVALID_QUERY);
    EXPECT_EQ(call("instance.list", "{\"status\":\"asleep\"}"), PAWL_INVALID_QUERY);
    EXPECT_EQ(call("instance.list", "{\"label.\":\"x\"}"), PAWL_INVALID_QUERY);
    EXPECT_OK(call("instance.list", "{\"status\":\"paused\"}"));
    EXPECT_TEXT(answer, "{\"instances\":[],\"next\":null}");
    end();
}

TEST(ops_call, a_definition_is_checked_with_its_places)
{
    begin();
    EXPECT_OK(call("definition.check", "{\"text\":\"a: [\"}"));
    EXPECT_HAS(answer, "{\"errors\":[{\"message\":\"expected a value, found the end of the text");
    EXPECT_OK(call("definition.check", "{\"text\":\"a: 1\",\"format\":\"json\"}"));
    EXPECT_HAS(answer, "\"line\":1,\"column\":1}],\"warnings\":[]}");
    EXPECT_EQ(call("definition.put", "{\"name\":\"a b\",\"text\":\"\"}"), PAWL_INVALID_DEFINITION);
    EXPECT_EQ(call("definition.put", "{\"name\":\"a\",\"text\":\"a: 1\",\"format\":\"json\"}"),
              PAWL_INVALID_DEFINITION);
    EXPECT_EQ(call("definition.put", "{\"name\":\"a\",\"text\":\"\",\"format\":\"xml\"}"),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(call("definition.get", "{\"name\":\"a\"}"), PAWL_NOT_KNOWN);
    end();
}

TEST(ops_call, the_clock_of_a_store_without_a_test_clock_cannot_be_moved)
{
    begin();
    EXPECT_EQ(call("test.advance", "{\"by\":\"1s\"}"), PAWL_NOT_KNOWN);
    EXPECT_EQ(call("test.advance", "{\"by\":1}"), PAWL_INVALID_REQUEST);
    end();
}

/* B26, B34, RELIABILITY.md decision 6: whoever holds another lease, or none any more, is not heard.
 */
TEST(ops_call, an_answer_counts_only_with_the_lease_it_was_given_with)
{
    static const char claim[] = "{\"tools\":[\"far\"],\"worker\":\"w\",\"max\":2}";
    char step[2][40], lease[2][64];
    const char *at;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .own = true, .test_clock = true }, &error));
    EXPECT_OK(call("definition.put", "{\"name\":\"f\",\"text\":\"%s\"}",
                   "steps: {a: {tool: far, retry: {max: 2, backoff: [1s]}, done: true}}"));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(call("instance.create", "{\"definition\":\"f\"}"));
    EXPECT_OK(call("step.claim", "%s", claim));
    at = answer;
    for (int i = 0; i < 2; i++) {
        at = strstr(at, "\"step_id\":\"");
        EXPECT(at != NULL);
        EXPECT_EQ(sscanf(at, "\"step_id\":\"%39[^\"]\",\"lease\":\"%63[^\"]\"", step[i], lease[i]),
                  2);
        at++;
    }
    EXPECT_EQ(call("step.complete", "{\"step_id\":\"%s\",\"lease\":\"%s\",\"result\":1}", step[0],
                   lease[1]),
              PAWL_LEASE_LOST);
    EXPECT_EQ(call("step.heartbeat", "{\"step_id\":\"%s\",\"lease\":\"%s\"}", step[1], lease[0]),
              PAWL_LEASE_LOST);
    EXPECT_OK(call("step.complete", "{\"step_id\":\"%s\",\"lease\":\"%s\",\"result\":1}", step[0],
                   lease[0]));
    EXPECT_OK(call("test.advance", "{\"by\":\"121s\"}"));
    EXPECT_EQ(call("step.complete", "{\"step_id\":\"%s\",\"lease\":\"%s\",\"result\":1}", step[1],
                   lease[1]),
              PAWL_LEASE_LOST);
    end();
}

TEST(ops_call, no_caller_of_the_library_takes_a_name_of_the_engines_own)
{
    pawl_fire_args fire = { .action = "go", .actor_ref = "pawl/timer" };
    pawl_create_args create = { .declaration = DECLARATION, .actor_ref = "pawl/timer" };
    pawl_id id;

    begin();
    EXPECT_EQ(pawl_create(p, &create, &id, &error), PAWL_INVALID_REQUEST);
    EXPECT_HAS(error.message, "'actor_ref' begins with 'pawl/'");
    create.actor_ref = "pawl";
    EXPECT_OK(pawl_create(p, &create, &id, &error));
    EXPECT_EQ(pawl_fire(p, id.text, &fire, NULL, &error), PAWL_INVALID_REQUEST);
    EXPECT_HAS(error.message, "'actor_ref' begins with 'pawl/'");
    fire.action = "end"; /* the error of the action comes first */
    EXPECT_EQ(pawl_fire(p, id.text, &fire, NULL, &error), PAWL_INVALID_TRANSITION);
    EXPECT_EQ(pawl_cancel(p, id.text, "pawl/timer", "why", NULL, &error), PAWL_INVALID_REQUEST);
    EXPECT_EQ(call("instance.fire",
                   "{\"instance_id\":\"%s\",\"action\":\"go\",\"actor_ref\":\"pawl/x\"}", id.text),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(call("token.create", "{\"scopes\":\"write\",\"actor\":\"pawl/x\"}"),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(call("token.create", "{\"scopes\":\"write\",\"actor\":\"\"}"), PAWL_INVALID_REQUEST);
    EXPECT_HAS(error.message, "'actor' is empty");
    EXPECT_OK(call("instance.history", "{\"instance_id\":\"%s\"}", id.text));
    EXPECT_HAS(answer, "\"entries\":[]");
    end();
}

#define LINE(definition)                                                                           \
    "{\\\"operation\\\":\\\"instance.create\\\",\\\"input\\\":{\\\"definition\\\":\\\"" definition "\\\"}}\\n"

TEST(ops_call, a_batch_warns_of_what_an_input_lacks_as_a_creation_alone_does)
{
    begin();
    EXPECT_OK(call("definition.put", "{\"name\":\"gap\",\"text\":\"do: [{action: set, payload: {a: "
                                     "'{{input.x}}'}}]\"}"));
    EXPECT_OK(call("instance.create", "{\"definition\":\"gap\"}"));
    EXPECT_HAS(answer, "\"warnings\":[{\"message\":\"the input has no 'x'");
    EXPECT_OK(call("batch", "{\"text\":\"" LINE("gap") LINE("gap") "\"}"));
    EXPECT_HAS(answer, "\"warnings\":[{\"message\":\"the input has no 'x'");
    EXPECT_HAS(strchr(answer, '\n'), "\"warnings\":[{\"message\":\"the input has no 'x'");
    end();
}

TEST(ops_call, the_steps_of_an_instance_can_be_read_from_a_step_on)
{
    const char *id;

    begin();
    EXPECT_OK(call("definition.put", "{\"name\":\"w\",\"text\":\"dopar: [{wait: {signal: a}}, "
                                     "{wait: {signal: b}}, {wait: {signal: c}}]\"}"));
    EXPECT_OK(call("instance.create", "{\"definition\":\"w\"}"));
    id = arena_text(&t->scope.arena, member(t, "instance_id"));
    EXPECT_OK(call("instance.steps", "{\"instance_id\":\"%s\",\"after\":\"%s.2\"}", id, id));
    EXPECT_HAS(answer, "\"name\":\"dopar.2\"");
    EXPECT(!strstr(answer, "\"name\":\"dopar.1\""));
    EXPECT(call("instance.steps", "{\"instance_id\":\"%s\",\"after\":\"2\"}", id) ==
           PAWL_INVALID_QUERY);
    EXPECT_HAS(error.message, "expected `next` of a page or the id of a step, found '2'");
    end();
}

/* An answer that pawl_call() has no room for says what its operation takes. */
TEST(ops_call, an_export_that_is_too_large_is_not_told_to_ask_for_a_page)
{
    static const char wheel[] =
        "{\"states\":[\"a\",\"b\"],\"initial_state\":\"a\",\"terminal_states\":"
        "[\"b\"],\"transitions\":[{\"from_state\":\"a\",\"action\":\"go\","
        "\"to_state\":\"a\"}]}";
    static char payload[1000003], input[64];
    pawl_id id;

    memset(payload, 'x', sizeof payload - 1);
    payload[0] = payload[sizeof payload - 2] = '"';
    begin();
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .declaration = wheel }, &id, &error));
    for (int i = 0; i < 68; i++)
        EXPECT_OK(pawl_fire(p, id.text, &(pawl_fire_args){ .action = "go", .payload = payload },
                            NULL, &error));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id.text);
    EXPECT_EQ(pawl_call(p, "instance.history", input, &answer, &error), PAWL_TOO_LARGE);
    EXPECT(strstr(error.message, "ask for a page of it (limit, and then after)"));
    EXPECT_EQ(pawl_call(p, "instance.export", input, &answer, &error), PAWL_TOO_LARGE);
    EXPECT(strstr(error.message, "in pieces, at /v1/instances/{instance_id}/export"));
    EXPECT(!strstr(error.message, "limit"));
    end();
}

#define LOT                                                                                        \
    "states: [new, testing, good]\\ninitial_state: new\\nterminal_states: [good]\\n"               \
    "terminal_kinds: {good: success}\\ntransitions:\\n"                                            \
    "  - {from_state: new, action: begin, to_state: testing, starts: {definition: work, "          \
    "on_end: {completed: release}}}\\n"                                                            \
    "  - {from_state: testing, action: release, to_state: good, by: engine}\\n"

TEST(ops_call, a_machine_learns_of_the_end_of_what_it_started)
{
    str id;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .test_clock = true }, &error));
    EXPECT_OK(call("definition.put", "{\"name\":\"lot\",\"text\":\"" LOT "\"}"));
    EXPECT_OK(call("definition.put", "{\"name\":\"work\",\"text\":\"do: [{wait: {timer: 1h}}]\"}"));
    EXPECT_OK(call("instance.create", "{\"definition\":\"lot\"}"));
    id = member(t, "instance_id");
    EXPECT_OK(
        call("instance.fire", "{\"instance_id\":\"%.*s\",\"action\":\"begin\"}", STR_ARG(id)));
    EXPECT_OK(call("test.advance", "{\"by\":\"10m\"}"));
    EXPECT_EQ(
        call("instance.fire", "{\"instance_id\":\"%.*s\",\"action\":\"release\"}", STR_ARG(id)),
        PAWL_INVALID_TRANSITION);
    EXPECT_OK(call("test.advance", "{\"by\":\"2h\"}"));
    EXPECT_OK(call("instance.current", "{\"instance_id\":\"%.*s\"}", STR_ARG(id)));
    EXPECT_STR(member(t, "current_state"), "good");
    end();
}
