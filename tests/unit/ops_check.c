/* ops_check.c - what is refused from the table alone, before the engine is asked: types,
 * unknown fields, what is missing or blank (DESIGN.md section 5, "Requests"). */
#include "api/ops.h"
#include "lib/test.h"

/* Run with a body and a path parameter `instance_id`; nothing here may reach the engine. */
static pawl_status refuse(struct test *t, const char *name, const char *id, const char *body)
{
    struct op_pair pair = { STR("instance_id"), str_of(id), IN_PATH };
    struct op_request request = { .pairs = &pair, .pair_count = id ? 1 : 0 };
    struct op_answer answer;
    struct op_call call;
    struct buf out;
    pawl_status status;
    bool waits;

    if (body)
        EXPECT_OK(node_read_json(&t->scope, str_of(body), &request.body));
    buf_init(&out, &heap_libc, 1 << 16);
    status = op_prepare(NULL, op_find(str_of(name)), &request, &t->scope, &call);
    if (status == PAWL_OK)
        status = op_start(&call, &out, &answer, &waits);
    EXPECT_EQ(out.size, 0);
    buf_fini(&out);
    return status;
}

TEST(ops_check, every_operation_is_found_by_its_name)
{
    for (const struct op *op = ops; op->name; op++) {
        EXPECT(op_find(str_of(op->name)) == op);
        EXPECT(op->handle && op->params && op->summary);
        EXPECT((op->path == NULL) == (op->method == NULL));
    }
    EXPECT(op_find(STR("instance.frie")) == NULL);
    EXPECT(op_find(STR("")) == NULL);
}

TEST(ops_check, a_blank_id_or_action_is_malformed) /* D18, D28 */
{
    EXPECT_EQ(refuse(t, "instance.fire", "", "{\"action\":\"go\"}"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.fire", " \t", "{\"action\":\"go\"}"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\"\"}"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\" \\u00a0 \"}"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":null}"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.fire", "x", NULL), PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "'action' is missing");
    EXPECT_EQ(refuse(t, "instance.current", " ", NULL), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.current", NULL, NULL), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "signal.send", "x", "{\"name\":\" \"}"), PAWL_INVALID_REQUEST);
}

TEST(ops_check, a_wrong_type_says_what_was_expected_and_found)
{
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":7}"), PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "'action': expected a string, found a number");
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\"go\",\"actor_ref\":[]}"),
              PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "'actor_ref'");
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\"go\",\"fired_at\":17}"),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\"go\",\"expected_sequence\":1.5}"),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\"go\",\"expected_sequence\":\"1\"}"),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"declaration\":{},\"labels\":\"a\"}"),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"declaration\":{},\"test\":1}"),
              PAWL_INVALID_REQUEST);
}

TEST(ops_check, an_unknown_field_is_named)
{
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\"go\",\"acter\":\"ann\"}"),
              PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "unknown field 'acter'");
    EXPECT_HAS(t->scope.error.message, "actor_ref");
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\"go\",\"x\":null}"),
              PAWL_INVALID_REQUEST);
}

TEST(ops_check, a_path_parameter_in_the_body_is_an_unknown_field)
{
    EXPECT_EQ(refuse(t, "instance.fire", "x", "{\"action\":\"go\",\"instance_id\":\"x\"}"),
              PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "unknown field 'instance_id'");
}

TEST(ops_check, a_body_must_be_an_object)
{
    EXPECT_EQ(refuse(t, "instance.fire", "x", "[]"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.fire", "x", "null"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.cancel", "x", "\"no\""), PAWL_INVALID_REQUEST);
}

TEST(ops_check, create_wants_a_definition_or_a_declaration_and_not_both)
{
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{}"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"declaration\":null}"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"declaration\":{},\"definition\":\"a\"}"),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"definition\":\" \"}"), PAWL_INVALID_REQUEST);
}

TEST(ops_check, a_declaration_that_is_no_object_is_an_invalid_declaration) /* D14 */
{
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"declaration\":[],\"actor_ref\":\" \"}"),
              PAWL_INVALID_DECLARATION);
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"declaration\":\"{}\"}"),
              PAWL_INVALID_DECLARATION);
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"declaration\":false}"),
              PAWL_INVALID_DECLARATION);
}

TEST(ops_check, labels_are_strings)
{
    EXPECT_EQ(refuse(t, "instance.create", NULL, "{\"declaration\":{},\"labels\":{\"a\":1}}"),
              PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "'a' must be a string");
}

TEST(ops_check, a_rejection_is_a_problem_with_its_token) /* X11 */
{
    struct buf out;

    buf_init(&out, &heap_libc, 1024);
    op_problem(PAWL_INVALID_TRANSITION, "no 'ship' from 'new'", &out);
    EXPECT_STR(buf_view(&out),
               "{\"type\":\"about:blank\",\"title\":\"the state does not declare the action\","
               "\"status\":409,\"detail\":\"no 'ship' from 'new'\","
               "\"reason\":\"invalid-transition\"}");
    buf_fini(&out);
    EXPECT_EQ(pawl_status_http(PAWL_INVALID_DEFINITION), 422);
    EXPECT_TEXT(pawl_status_name(PAWL_OK), "ok");
    EXPECT_TEXT(pawl_status_name((pawl_status)999), "unknown-status");
}

TEST(ops_check, every_operation_has_a_scope_word)
{
    static const char *const words[] = { OP_SCOPES };

    for (const struct op *op = ops; op->name; op++) {
        bool known = false;

        for (size_t i = 0; op->scope && i < sizeof words / sizeof *words; i++)
            known = known || strcmp(op->scope, words[i]) == 0;
        if (!known)
            test_fail(__FILE__, __LINE__, "%s has no scope", op->name);
        EXPECT(!op->scope || strcmp(op->scope, "none") != 0 || strcmp(op->name, "health.get") == 0);
    }
}
