/* tools_promise.c - what the tool of a definition promises: its hints, and the schema of its
 * result. */
#include "surface/mcp/mcp_int.h"

/* ---- Hints ---- */

/* Tools of pawl that change nothing but the process itself. */
static bool is_inner(str tool)
{
    static const char *const tools[] = { "set", "log", "sleep", "fail", NULL };

    return str_is_one_of(tool, tools);
}

/* Does a step of it call anything that may act outside of pawl? What it spawns may, too. */
bool steps_reach_out(const struct node *steps)
{
    bool reaches = false;

    for (const struct node *one = steps ? steps->first : NULL; one && !reaches; one = one->next) {
        if (str_is(one->key, "tool"))
            reaches = one->kind != NODE_STRING || !is_inner(one->text);
        else if (str_is(one->key, "spawn") || str_is(one->key, "external") ||
                 str_is(one->key, "starts"))
            reaches = true;
        else if (!str_is(one->key, "args"))
            reaches = steps_reach_out(one);
    }
    return reaches;
}

/* What its author says, or else what its steps do. */
static void put_hint(const struct definition_tool *tool, const char *key, const char *name,
                     bool otherwise, struct buf *out)
{
    const struct node *said = node_find(tool->mcp, key);

    json_put_bool(out, name, said && said->kind == NODE_BOOL ? said->truth : otherwise);
}

void definition_hints_print(const struct definition_tool *tool, struct buf *out)
{
    json_put_open(out, "annotations", '{');
    put_hint(tool, "read_only", "readOnlyHint", false, out);
    put_hint(tool, "destructive", "destructiveHint", tool->reaches_out, out);
    put_hint(tool, "idempotent", "idempotentHint", false, out);
    put_hint(tool, "open_world", "openWorldHint", tool->reaches_out, out);
    json_close(out, '}');
}

/* ---- Results ---- */

/* Of a process that goes on, or has no result: task_handle(). */
#define HANDLE                                                                                     \
    "{\"type\":\"object\",\"required\":[\"process_id\",\"state\",\"status\"],\"properties\":{"     \
    "\"process_id\":{\"type\":\"string\"},\"state\":{\"type\":\"string\"},"                        \
    "\"status\":{\"type\":\"string\"},\"actions\":{\"type\":\"array\"},"                           \
    "\"waiting_for\":{\"type\":\"array\"}}}"

void definition_output_print(const struct definition_tool *tool, struct buf *out)
{
    const struct node *result = node_find(tool->mcp, "result");

    if (tool->is_machine) {
        json_put_raw(out, "outputSchema", STR(HANDLE));
        return;
    }
    json_put_open(out, "outputSchema", '{');
    json_put_text(out, "type", "object");
    if (result) {
        json_put_open(out, "anyOf", '[');
        node_print(result, out);
        buf_byte(out, ',');
        buf_str(out, STR(HANDLE));
        json_close(out, ']');
    } else {
        json_put_text(out, "description",
                      "The result; {\"result\": ...} if that is no object. Of a process that goes "
                      "on: process_id, state, status, actions, waiting_for.");
    }
    json_close(out, '}');
}

/* NULL: it declares none. */
static const struct node *declared_result(struct rpc_exchange *exchange,
                                          const struct task_view *view)
{
    str name = node_text(view->instance, "definition");
    struct definition_tool tool;

    if (!name.data ||
        definition_tool_at(exchange, name, node_raw(view->instance, "version"), &tool) != PAWL_OK)
        return NULL;
    return node_find(tool.mcp, "result");
}

void structured_put(struct rpc_exchange *exchange, const struct task_view *view,
                    const struct node *result, struct buf *out)
{
    const struct node *declared = declared_result(exchange, view);
    bool is_object = result && result->kind == NODE_OBJECT;

    if (is_object && op_fits_schema(&exchange->turn->work, declared, result->raw)) {
        json_put_raw(out, "structuredContent", result->raw);
        return;
    }
    json_put_open(out, "structuredContent", '{');
    if (result && !declared) {
        json_put_raw(out, "result", result->raw);
    } else {
        json_put_str(out, "process_id", view->id);
        json_put_str(out, "state", node_text(view->instance, "current_state"));
        json_put_str(out, "status", node_text(view->instance, "status"));
    }
    json_close(out, '}');
}
