/* remote_task.c - the tools `mcp.look`, `mcp.answer`, `mcp.keep` and `mcp.cancel`: a task of a
 * server, and what it asks; and what servers offer. */
#include "base/limits.h"
#include "model/words.h"
#include "tool/remote/remote_step.h"
#include <inttypes.h>

#define RESULT_WAIT_MS 3000 /* for a task of the older era, after an answer */
#define CANCEL_MS      10000

/* ---- mcp.look ---- */

static bool ask_task(struct remote_step *step, const char *method, str more, struct node **result)
{
    struct remote_request request = { .method = method, .name = node_text(step->at, "task") };
    struct buf params;

    buf_init(&params, step->call->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_put_str(&params, "taskId", request.name);
    if (more.data)
        json_put_raw(&params, "inputResponses", more);
    request.params = buf_take(&params, &step->call->scope->arena);
    return talk_request(&step->talk, &request, result);
}

static void fail_task(struct remote_step *step)
{
    if (step->talk.fault == FAULT_ERROR && step->talk.code == -32602)
        step_fails_as(step, "task-lost", str_of(step->talk.words), NULL, true);
    else
        step_fails_by_talk(step, true);
}

/* The older era tells a result, and asks what it wants to know, on a request of its own. */
static void look_at_result(struct remote_step *step, const struct node *task)
{
    struct node *result;
    int64_t left = step->talk.left_ms;
    struct buf out;

    step->talk.left_ms = RESULT_WAIT_MS < left ? RESULT_WAIT_MS : left;
    if (ask_task(step, "tasks/result", STR_NONE, &result)) {
        step_take_done(step, result);
    } else if (step->talk.fault == FAULT_QUESTION) {
        step_print_begin(step, "input", &out);
        step_put_task(step, node_text(step->at, "task"), &out);
        json_put_raw(&out, "params", step->talk.data ? step->talk.data->raw : STR("{}"));
        json_key(&out, "ask");
        ask_print(step->server, step->tool, STR_NONE, step->talk.data, &out);
        json_close(&out, '}');
        step_print_end(step, &out);
    } else if (step->talk.fault == FAULT_LATE) {
        step->talk.fault = FAULT_NONE;
        step_take_working(step, task, node_text(step->at, "task"));
    } else {
        fail_task(step);
    }
}

static void look(struct remote_step *step)
{
    struct node *task;

    if (!ask_task(step, "tasks/get", STR_NONE, &task))
        fail_task(step);
    else if (step->talk.peer.era == ERA_LEGACY && !str_is(node_text(task, "status"), "working") &&
             !str_is(node_text(task, "status"), "cancelled"))
        look_at_result(step, task);
    else
        step_take_task(step, task);
}

void remote_look_run(struct call *call)
{
    struct remote_step step;

    if (!step_read(&step, call))
        return;
    if (!node_text(step.at, "task").data) {
        call_refuse(call, "mcp.look: 'at' names no task");
        return;
    }
    if (!step_begin_talk(&step))
        return;
    look(&step);
    talk_end(&step.talk);
}

/* ---- mcp.answer ---- */

/* The responses with one more; data NULL: no memory. */
static str add_response(struct remote_step *step, str key, const struct node *question)
{
    const struct node *before = node_find(step->at, "responses");
    struct buf out;

    buf_init(&out, step->call->scope->arena.heap, LIMIT_TEXT);
    json_open(&out, '{');
    for (const struct node *one = before ? before->first : NULL; one; one = one->next) {
        json_key_str(&out, one->key);
        json_raw(&out, one->raw);
    }
    json_key_str(&out, key);
    ask_answer(node_find(question, "params"), node_find(step->call->args, "answer"),
               given_is_true(step->call->args, "declined"), &out);
    json_close(&out, '}');
    return buf_take(&out, &step->call->scope->arena);
}

/* The same state, with the responses and with the keys that are answered by now. */
static struct node *stand_after(struct remote_step *step, const struct node *responses)
{
    struct node *at = NULL;
    struct buf out;
    str text;

    buf_init(&out, step->call->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_open(&out, '{');
    json_opt_raw(&out, "task", node_raw(step->at, "task"));
    json_opt_raw(&out, "link", node_raw(step->at, "link"));
    json_opt_raw(&out, "requestState", node_raw(step->at, "requestState"));
    json_put_raw(&out, "responses", responses->raw);
    json_put_open(&out, "answered", '[');
    for (const struct node *one = node_first(step->at, "answered"); one; one = one->next)
        json_raw(&out, one->raw);
    for (const struct node *one = responses->first; one; one = one->next)
        json_str(&out, one->key);
    json_close(&out, ']');
    json_close(&out, '}');
    text = buf_take(&out, &step->call->scope->arena);
    if (text.data)
        (void)node_read_json(step->call->scope, text, &at);
    return at;
}

static void answer_questions(struct remote_step *step)
{
    const struct node *requests = node_find(step->at, "requests");
    const struct node *now =
        step_open_question(requests, node_find(step->at, "responses"), step->at);
    str text = now ? add_response(step, now->key, now) : STR_NONE;
    struct node *responses = NULL, *result, *at;
    const struct node *next;

    if (!text.data || node_read_json(step->call->scope, text, &responses) != PAWL_OK) {
        call_refuse(step->call, "mcp.answer: 'at' has no question, or the answer is over 1 MiB");
        return;
    }
    next = step_open_question(requests, responses, step->at);
    at = stand_after(step, responses);
    if (next) {
        step_put_input(step, requests, responses->raw, next, node_raw(step->at, "requestState"),
                       node_text(step->at, "task"));
    } else if (!at) {
        call_no_memory(step->call);
    } else if (!node_text(at, "task").data) {
        step->at = NULL; /* the next questions are new ones */
        step_call_tool(step, at);
    } else {
        step->at = at;
        if (ask_task(step, "tasks/update", responses->raw, &result))
            look(step);
        else
            fail_task(step);
    }
}

static str answer_to(struct remote_step *step)
{
    struct buf out;

    buf_init(&out, step->call->scope->arena.heap, LIMIT_TEXT);
    ask_answer(node_find(step->at, "params"), node_find(step->call->args, "answer"),
               given_is_true(step->call->args, "declined"), &out);
    return buf_take(&out, &step->call->scope->arena);
}

static void answer_held(struct remote_step *step, uint64_t number)
{
    struct held_result held = { 0 };
    bool is_done = held_answer(step->call, number, answer_to(step), &held, &step->talk);

    step_take_held(step, is_done, number, &held);
}

/* A task of the older era asks again on the next request for its result. */
static void answer_task(struct remote_step *step)
{
    str answer = answer_to(step), text;
    struct node *answers = NULL;
    struct buf out;

    buf_init(&out, step->call->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_open(&out, '{');
    json_key_str(&out, node_text(node_find(step->at, "params"), "message"));
    json_raw(&out, answer);
    json_close(&out, '}');
    text = buf_take(&out, &step->call->scope->arena);
    if (!answer.data || !text.data ||
        node_read_json(step->call->scope, text, &answers) != PAWL_OK) {
        call_no_memory(step->call);
        return;
    }
    step->talk.answers = answers;
    look_at_result(step, NULL);
}

void remote_answer_run(struct call *call)
{
    struct remote_step step;
    uint64_t held = 0;

    if (!step_read(&step, call))
        return;
    if (str_to_u64(node_text(step.at, "held"), &held) && call->toolbox->remote) {
        step.talk.remote = call->toolbox->remote;
        answer_held(&step, held);
        return;
    }
    if (!step_begin_talk(&step))
        return;
    if (node_find(step.at, "requests"))
        answer_questions(&step);
    else if (node_text(step.at, "task").data)
        answer_task(&step);
    else
        call_refuse(call, "mcp.answer: 'at' has no question");
    talk_end(&step.talk);
}

/* ---- mcp.keep ---- */

/* Returns where the call stands: the step that has `mcp.cancel` as its compensation. */
void remote_keep_run(struct call *call)
{
    const struct node *at = node_find(call->args, "at");

    call_result(call, at ? at->raw : STR("null"));
}

/* ---- mcp.cancel ---- */

/* As far as possible: the flow that calls this has ended, whatever the server says. */
void remote_cancel_run(struct call *call)
{
    struct remote_step step;
    struct node *result;
    bool is_done = false;
    uint64_t held = 0;

    if (!step_read(&step, call))
        return;
    if (str_to_u64(node_text(step.at, "held"), &held)) {
        held_drop(call->toolbox->remote, held);
        is_done = true;
    } else if (node_text(step.at, "task").data && step_begin_talk(&step)) {
        step.talk.left_ms = step.talk.left_ms < CANCEL_MS ? step.talk.left_ms : CANCEL_MS;
        is_done = ask_task(&step, "tasks/cancel", STR_NONE, &result);
        talk_end(&step.talk);
    }
    call->result = (struct tool_result){ 0 };
    call_result(call, is_done ? STR("{\"cancelled\":true}") : STR("{\"cancelled\":false}"));
}

/* ---- What is there ---- */

static void print_server(struct call *call, struct remote_server *server, struct buf *out)
{
    static const char *const eras[] = { NULL, MODERN_VERSION, NULL };
    struct remote_step step = { .call = call, .server = server->rule->name };
    struct node *tools = NULL;
    bool is_there = step_begin_talk(&step) && tools_list(&step.talk, &tools);
    const char *version = eras[step.talk.peer.era];

    json_open(out, '{');
    json_put_str(out, "server", server->rule->name);
    json_put_text(out, "transport", server->rule->argv ? "stdio" : "http");
    if (step.talk.peer.era == ERA_LEGACY)
        version = step.talk.peer.version;
    json_put_text(out, "version", version);
    json_put_raw(out, "tools", is_there ? tools->raw : STR("[]"));
    json_put_text(out, "error", is_there ? NULL : step.talk.words);
    json_close(out, '}');
    talk_end(&step.talk);
}

void remote_print_servers(struct toolbox *toolbox, struct scope *scope, struct buf *out)
{
    struct remote *remote = toolbox->remote;

    json_open(out, '[');
    for (uint32_t i = 0; remote && i < remote->count; i++) {
        const char *only = remote->servers[i].rule->creators.count > 0
                               ? remote->servers[i].rule->creators.items[0].data
                               : NULL;
        pawl_tool_call given = { .tool = "mcp.call", .created_by = only, .idempotency_key = "" };
        struct call call = {
            .toolbox = toolbox, .given = &given, .scope = scope, .timeout_ms = 10000
        };

        print_server(&call, &remote->servers[i], out);
    }
    json_close(out, ']');
}
