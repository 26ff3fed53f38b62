/* remote_steps.c - the tool `mcp.call` of the flow `pawl.mcp`: a tool of a server is called, or a
 * resource or a prompt of it read. What is read from the args of all five tools. */
#include "base/limits.h"
#include "model/words.h"
#include "tool/remote/remote_step.h"
#include <inttypes.h>

/* Of all five; they are for the flow pawl.mcp, and its authors see those of the tool mcp. */
static const struct known_key remote_arguments[] = {
    { "server", "NAME", "the server, as pawl.yaml names it", NULL, "required" },
    { "tool", "NAME", "the tool that is called", NULL, "" },
    { "args", "OBJECT", "what the tool, or the prompt, is given", NULL, "{}" },
    { "resource", "URI", "instead of a tool: the resource that is read", NULL, "" },
    { "prompt", "NAME", "instead of a tool: the prompt that is fetched", NULL, "" },
    { "list", "tools | resources | prompts", "instead of a tool: what is listed", NULL, "" },
    { "idempotent", "true | false", "whether a call may be repeated if its outcome is unknown",
      NULL, "what the tool says of itself" },
    { "again", "true | false", "whether an attempt before was lost", NULL, "false" },
    { "at", "OBJECT", "how the call stands", NULL, "" },
    { "answer", "ANYTHING", "what people said", NULL, "" },
    { "declined", "true | false", "whether they declined", NULL, "false" },
    { 0 },
};

/* ---- A tool ---- */

/* What a template left empty is not given. */
static const struct node *arguments_of(const struct call *call)
{
    const struct node *args = node_find(call->args, "args");

    return args && args->kind == NODE_STRING && args->text.size == 0 ? NULL : args;
}

bool given_is_true(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);

    return node && node->kind == NODE_BOOL && node->truth;
}

static bool wants_key(const struct node *tool, const char *name, const struct node *args)
{
    return node_find(node_find(node_find(tool, "inputSchema"), "properties"), name) &&
           !node_find(args, name);
}

static void put_arguments(struct remote_step *step, const struct node *args, struct buf *out)
{
    static const char *const keys[] = { "idempotency_key", "idempotencyKey" };

    json_put_open(out, "arguments", '{');
    for (const struct node *one = args ? args->first : NULL; one; one = one->next) {
        json_key_str(out, one->key);
        json_raw(out, one->raw);
    }
    for (int i = 0; i < 2; i++)
        if (wants_key(step->described, keys[i], args))
            json_put_text(out, keys[i], step->call->given->idempotency_key);
    json_close(out, '}');
}

static bool is_task_call(const struct remote_step *step)
{
    str support = node_text(node_find(step->described, "execution"), "taskSupport");

    return step->talk.peer.era == ERA_LEGACY && step->talk.peer.has_task_calls &&
           (str_is(support, "required") || str_is(support, "optional"));
}

static str call_params(struct remote_step *step, const struct node *args, const struct node *at)
{
    struct buf out;

    buf_init(&out, step->call->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_put_str(&out, "name", step->tool);
    put_arguments(step, args, &out);
    if (is_task_call(step))
        json_put_raw(&out, "task", STR("{}"));
    if (at) {
        json_put_raw(&out, "inputResponses", node_raw(at, "responses"));
        json_opt_raw(&out, "requestState", node_raw(at, "requestState"));
    }
    return buf_take(&out, &step->call->scope->arena);
}

static bool read_tool(struct remote_step *step)
{
    str shown = words_shown(step->tool);

    if (!tools_find(&step->talk, step->tool, &step->described)) {
        if (step->talk.fault != FAULT_ERROR) {
            step_fails_by_talk(step, true);
            return false;
        }
        step->talk.fault = FAULT_NONE; /* it lists nothing: perhaps it answers all the same */
        return true;
    }
    if (step->described) {
        const struct node *hints = node_find(step->described, "annotations");

        step->is_safe = step->is_safe || given_is_true(hints, "readOnlyHint") ||
                        given_is_true(hints, "idempotentHint");
        return true;
    }
    return call_refuse(step->call, "mcp: the server '%.*s' has no tool '%.*s'",
                       STR_ARG(step->server), STR_ARG(shown));
}

void step_take_held(struct remote_step *step, bool is_done, uint64_t number,
                    const struct held_result *held)
{
    struct node *node;
    struct buf out;

    if (!is_done) {
        step_fails_by_talk(step, false);
    } else if (node_read_json(step->call->scope, held->text, &node) != PAWL_OK) {
        call_no_memory(step->call);
    } else if (!held->is_question) {
        step_take_result(step, node);
    } else {
        step_print_begin(step, "input", &out);
        json_put_fmt(&out, "held", "%" PRIu64, number);
        json_put_raw(&out, "params", node->raw);
        json_key(&out, "ask");
        ask_print(step->server, step->tool, STR_NONE, node, &out);
        json_close(&out, '}');
        step_print_end(step, &out);
    }
}

/* A call of the older era that is no task may ask on its own connection. */
static void call_held(struct remote_step *step, str params)
{
    struct held_result held = { 0 };
    struct remote_talk why;
    uint64_t number = 0;
    bool is_done = held_begin(step->call, &step->talk, step->tool, params, &number, &held, &why);

    step->talk = why;
    step->talk.scope = step->call->scope;
    step->talk.server = NULL; /* it is ended where it went to */
    step_take_held(step, is_done, number, &held);
}

void step_call_tool(struct remote_step *step, const struct node *at)
{
    const struct node *args = arguments_of(step->call);
    struct remote_request request = { .method = "tools/call", .name = step->tool };
    struct node *result;

    if (!read_tool(step))
        return;
    if (given_is_true(step->call->args, "again") && !step->is_safe) {
        step_fails_as(
            step, "unknown-outcome",
            STR("pawl ended during the call, and the tool does not say that it may be called "
                "again"),
            NULL, true);
        return;
    }
    request.params = call_params(step, args, at);
    if (!request.params.data) {
        step_fails_as(step, "too-large", STR("its arguments are over 2 MiB"), NULL, true);
    } else if (step->talk.peer.era == ERA_LEGACY && !is_task_call(step)) {
        call_held(step, request.params);
    } else {
        request.key = str_of(step->call->given->idempotency_key);
        if (step->described && !step->talk.link && step->talk.peer.era == ERA_MODERN)
            (void)tools_headers(&step->talk, step->described, args, &request);
        if (talk_request(&step->talk, &request, &result))
            step_take_result(step, result);
        else
            step_fails_by_talk(step, false);
    }
}

static void ask_server(struct remote_step *step, const char *method, const char *key, str name,
                       const struct node *args)
{
    struct remote_request request = { .method = method, .name = name };
    struct node *result;
    struct buf params;

    buf_init(&params, step->call->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    if (key)
        json_put_str(&params, key, name);
    if (args)
        json_put_raw(&params, "arguments", args->raw);
    request.params = key ? buf_take(&params, &step->call->scope->arena) : STR_NONE;
    if (talk_request(&step->talk, &request, &result))
        step_take_result(step, result);
    else
        step_fails_by_talk(step, true);
}

static void list(struct remote_step *step, str what)
{
    struct node *tools;
    struct buf out;

    if (str_is(what, "resources") || str_is(what, "prompts")) {
        ask_server(step, str_is(what, "prompts") ? "prompts/list" : "resources/list", NULL,
                   STR_NONE, NULL);
        return;
    }
    tools_forget(&step->talk);
    if (!tools_list(&step->talk, &tools)) {
        step_fails_by_talk(step, true);
        return;
    }
    step_print_begin(step, "done", &out);
    json_put_open(&out, "result", '{');
    json_put_raw(&out, "tools", tools->raw);
    json_close(&out, '}');
    json_close(&out, '}');
    step_print_end(step, &out);
}

/* ---- Beginning ---- */

bool step_read(struct remote_step *step, struct call *call)
{
    *step = (struct remote_step){ .call = call };
    if (!call_knows(call, remote_arguments))
        return false;
    step->server = node_text(call->args, "server");
    step->tool = node_text(call->args, "tool");
    step->at = node_find(call->args, "at");
    step->is_safe = given_is_true(call->args, "idempotent");
    if (!step->server.data)
        return call_refuse(call, "%s: 'server' must name a server of tools.mcp.servers",
                           call->given->tool);
    if (step->at && step->at->kind != NODE_OBJECT)
        step->at = NULL;
    return true;
}

bool step_begin_talk(struct remote_step *step)
{
    uint64_t link = 0;
    str text = node_raw(step->at, "link");

    if (text.data)
        (void)str_to_u64(text, &link);
    if (talk_begin_by_link(&step->talk, step->call, step->server, link))
        return true;
    if (!step->call->result.failed)
        step_fails_by_talk(step, true);
    return false;
}

void remote_call_run(struct call *call)
{
    const struct node *args = arguments_of(call);
    str resource = node_text(call->args, "resource"), prompt = node_text(call->args, "prompt"),
        what = node_text(call->args, "list");
    struct remote_step step;

    if (!step_read(&step, call))
        return;
    if ((step.tool.size > 0) + (resource.size > 0) + (prompt.size > 0) + (what.size > 0) != 1) {
        call_refuse(call, "mcp: name one of 'tool', 'resource', 'prompt' and 'list'");
        return;
    }
    if (args && args->kind != NODE_OBJECT) {
        call_refuse(call, "mcp: 'args' must be an object, found %s", node_kind_name(args->kind));
        return;
    }
    if (!step_begin_talk(&step))
        return;
    if (step.tool.size > 0)
        step_call_tool(&step, NULL);
    else if (resource.size > 0)
        ask_server(&step, "resources/read", "uri", resource, NULL);
    else if (prompt.size > 0)
        ask_server(&step, "prompts/get", "name", prompt, args);
    else
        list(&step, what);
    talk_end(&step.talk);
}
