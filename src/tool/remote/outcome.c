/* outcome.c - what a server answers, as the result of a step of the flow `pawl.mcp`:
 *   {"state":"done","result":{...}}
 *   {"state":"working","after":"500ms","task":ID,...}
 *   {"state":"input","ask":{...},...} */
#include "base/limits.h"
#include "model/words.h"
#include "tool/remote/remote_step.h"
#include <inttypes.h>

#define POLL_MS       1000
#define POLL_LEAST_MS 100
#define POLL_MOST_MS  60000
#define POLLS_EVEN    20 /* then the pauses grow */

/* ---- Failing ---- */

static void put_content(const struct node *result, struct buf *out)
{
    json_opt_raw(out, "content", node_raw(result, "content"));
    json_opt_raw(out, "structuredContent", node_raw(result, "structuredContent"));
}

void step_fails_as(struct remote_step *step, const char *kind, str message,
                   const struct node *result, bool is_final)
{
    struct call *call = step->call;
    struct buf out;

    buf_init(&out, call->scope->arena.heap, LIMIT_TEXT);
    json_open(&out, '{');
    json_put_text(&out, "kind", kind);
    json_put_str(&out, "message", message);
    json_put_str(&out, "server", step->server);
    json_opt_str(&out, "tool", step->tool);
    if (step->talk.fault == FAULT_ERROR)
        json_put_i64(&out, "code", step->talk.code);
    if (step->talk.fault == FAULT_HTTP)
        json_put_i64(&out, "status", step->talk.status);
    if (result)
        put_content(result, &out);
    json_close(&out, '}');
    if (out.failed && result) {
        buf_fini(&out);
        step_fails_as(step, kind, message, NULL, is_final);
        return;
    }
    call->result.json = buf_take(&out, &call->scope->arena);
    call->result.failed = true;
    call->result.is_final = is_final;
    if (!call->result.json.data)
        call_no_memory(call);
}

void step_fails_by_talk(struct remote_step *step, bool is_read)
{
    static const struct {
        const char *kind;
        bool is_final;
    } faults[] = {
        [FAULT_UNREACHABLE] = { "unreachable", false },
        [FAULT_BROKEN] = { "unknown-outcome", true },
        [FAULT_LATE] = { "unknown-outcome", true },
        [FAULT_STOPPED] = { "stopped", false },
        [FAULT_ERROR] = { "refused", true },
        [FAULT_HTTP] = { "refused", true },
        [FAULT_INVALID] = { "invalid-answer", true },
        [FAULT_QUESTION] = { "invalid-answer", true },
        [FAULT_MEMORY] = { "too-large", true },
    };
    struct remote_talk *talk = &step->talk;
    const char *kind = faults[talk->fault].kind;
    bool is_final = faults[talk->fault].is_final;
    bool is_unknown = talk->fault == FAULT_BROKEN || talk->fault == FAULT_LATE ||
                      (talk->fault == FAULT_HTTP && talk->status >= 500 && talk->status != 503);

    if (talk->fault == FAULT_HTTP && (talk->status == 429 || talk->status == 503)) {
        kind = "unreachable";
        is_final = false;
    } else if (is_unknown) {
        kind = is_read || step->is_safe ? "interrupted" : "unknown-outcome";
        is_final = !is_read && !step->is_safe;
    }
    step_fails_as(step, kind, str_of(talk->words), NULL, is_final);
    step->call->result.is_cut = talk->fault == FAULT_STOPPED;
}

/* ---- Results ---- */

void step_print_end(struct remote_step *step, struct buf *out)
{
    if (out->failed)
        step_fails_as(step, "too-large", STR("the answer is over 1 MiB"), NULL, true);
    else
        call_result(step->call, buf_view(out));
    buf_fini(out);
}

void step_print_begin(struct remote_step *step, const char *state, struct buf *out)
{
    buf_init(out, step->call->scope->arena.heap, LIMIT_TEXT);
    json_open(out, '{');
    json_put_text(out, "state", state);
}

void step_put_task(struct remote_step *step, str task, struct buf *out)
{
    json_put_str(out, "task", task);
    if (step->talk.link)
        json_put_u64(out, "link", step->talk.link->number);
    else
        json_opt_raw(out, "link", node_raw(step->at, "link"));
}

/* All texts of a result, for flows that want no more. */
static void put_text(const struct node *list, const char *inner, struct buf *out)
{
    struct buf text;

    buf_init(&text, out->heap, LIMIT_TEXT);
    for (const struct node *one = list; one; one = one->next) {
        const struct node *holder = inner ? node_find(one, inner) : one;
        str part = node_text(holder, "text");

        if (!part.data)
            continue;
        if (text.size > 0)
            buf_byte(&text, '\n');
        buf_str(&text, part);
    }
    json_put_str(out, "text", text.failed ? STR("") : buf_view(&text));
    buf_fini(&text);
}

static void put_members(const struct node *result, struct buf *out)
{
    for (const struct node *one = result->first; one; one = one->next) {
        if (str_is(one->key, "_meta") || str_is(one->key, "resultType") ||
            str_is(one->key, "isError") || str_is(one->key, "text"))
            continue;
        json_key_str(out, one->key);
        json_raw(out, one->raw);
    }
}

static str words_of(const struct node *result)
{
    for (const struct node *one = node_first(result, "content"); one; one = one->next)
        if (node_text(one, "text").data)
            return node_text(one, "text");
    return STR("the tool reports an error");
}

void step_take_done(struct remote_step *step, const struct node *result)
{
    const struct node *error = node_find(result, "isError");
    struct buf out;

    if (error && error->kind == NODE_BOOL && error->truth) {
        step_fails_as(step, "tool-error", words_of(result), result, false);
        return;
    }
    step_print_begin(step, "done", &out);
    json_put_open(&out, "result", '{');
    put_members(result, &out);
    if (node_find(result, "content"))
        put_text(node_first(result, "content"), NULL, &out);
    else if (node_find(result, "contents"))
        put_text(node_first(result, "contents"), NULL, &out);
    else if (node_find(result, "messages"))
        put_text(node_first(result, "messages"), "content", &out);
    json_close(&out, '}');
    json_close(&out, '}');
    step_print_end(step, &out);
}

/* Short pauses first; they grow with what a task takes. */
static int64_t pause_of(const struct node *task, int64_t polls)
{
    int64_t pause = POLL_MS;

    if (!node_to_i64(node_find(task, "pollIntervalMs"), &pause))
        node_to_i64(node_find(task, "pollInterval"), &pause);
    pause = pause < POLL_LEAST_MS ? POLL_LEAST_MS : pause > POLL_MOST_MS ? POLL_MOST_MS : pause;
    for (; polls > POLLS_EVEN && pause < POLL_MOST_MS; polls--)
        pause += pause / 20;
    return pause;
}

void step_take_working(struct remote_step *step, const struct node *task, str id)
{
    int64_t polls = 0;
    struct buf out;

    node_to_i64(node_find(step->at, "polls"), &polls);
    step_print_begin(step, "working", &out);
    json_put_fmt(&out, "after", "%" PRId64 "ms", pause_of(task, polls));
    step_put_task(step, id, &out);
    json_put_i64(&out, "polls", polls + 1);
    json_opt_raw(&out, "answered", node_raw(step->at, "answered"));
    json_opt_str(&out, "status", node_text(task, "statusMessage"));
    json_close(&out, '}');
    step_print_end(step, &out);
}

/* ---- Questions ---- */

static bool is_answered(const struct node *at, str key)
{
    for (const struct node *one = node_first(at, "answered"); one; one = one->next)
        if (str_eq(one->text, key))
            return true;
    return false;
}

const struct node *step_open_question(const struct node *requests, const struct node *responses,
                                      const struct node *at)
{
    for (const struct node *one = requests ? requests->first : NULL; one; one = one->next)
        if (!is_answered(at, one->key) && !(responses && node_find_str(responses, one->key)))
            return one;
    return NULL;
}

void step_put_input(struct remote_step *step, const struct node *requests, str responses,
                    const struct node *next, str state, str task)
{
    struct buf out;

    step_print_begin(step, "input", &out);
    json_put_raw(&out, "requests", requests->raw);
    json_put_raw(&out, "responses", responses);
    json_opt_raw(&out, "requestState", state);
    if (task.data)
        step_put_task(step, task, &out);
    json_opt_raw(&out, "polls", node_raw(step->at, "polls"));
    json_opt_raw(&out, "answered", node_raw(step->at, "answered"));
    json_key(&out, "ask");
    ask_print(step->server, step->tool, next->key, node_find(next, "params"), &out);
    json_close(&out, '}');
    step_print_end(step, &out);
}

static void take_questions(struct remote_step *step, const struct node *from, str task)
{
    const struct node *requests = node_find(from, "inputRequests");
    const struct node *next = step_open_question(requests, NULL, step->at);

    if (task.data && !next) { /* all of them are answered: the server will see it */
        step_take_working(step, from, task);
        return;
    }
    for (const struct node *one = requests ? requests->first : NULL; one; one = one->next)
        if (!ask_is_known(one)) {
            step_fails_as(step, "invalid-answer",
                          STR("the server asks for what pawl does not offer (sampling or roots)"),
                          NULL, true);
            return;
        }
    if (next)
        step_put_input(step, requests, STR("{}"), next, node_raw(from, "requestState"), task);
    else
        step_fails_as(step, "invalid-answer", STR("it wants input and asks nothing"), NULL, true);
}

/* ---- What a server answers ---- */

void step_take_task(struct remote_step *step, const struct node *task)
{
    str id = node_text(task, "taskId"), status = node_text(task, "status");
    const struct node *error = node_find(task, "error"), *result = node_find(task, "result");

    if (!id.data || id.size > 512) {
        step_fails_as(step, "invalid-answer", STR("a task without an id"), NULL, true);
    } else if (str_is(status, "cancelled")) {
        step_fails_as(step, "cancelled", STR("the server has cancelled its task"), NULL, true);
    } else if (str_is(status, "completed") && result && result->kind == NODE_OBJECT) {
        step_take_done(step, result);
    } else if (str_is(status, "failed") && error) {
        step->talk.fault = FAULT_ERROR;
        node_to_i64(node_find(error, "code"), &step->talk.code);
        step_fails_as(step, "refused", words_shown(node_text(error, "message")), NULL, true);
    } else if (str_is(status, "input_required") && node_find(task, "inputRequests")) {
        take_questions(step, task, id);
    } else {
        if (step->talk.link)
            step->talk.link->has_tasks = true;
        step_take_working(step, task, id);
    }
}

void step_take_result(struct remote_step *step, const struct node *result)
{
    str type = node_text(result, "resultType");
    const struct node *task = node_find(result, "task");

    if (step->talk.peer.era == ERA_LEGACY && task && task->kind == NODE_OBJECT)
        step_take_task(step, task);
    else if (str_is(type, "task"))
        step_take_task(step, result);
    else if (str_is(type, "input_required"))
        take_questions(step, result, STR_NONE);
    else if (!type.data || str_is(type, "complete"))
        step_take_done(step, result);
    else
        step_fails_as(step, "invalid-answer", STR("a result of a type that pawl does not know"),
                      NULL, true);
}
