/* questions.c - a gate is a question to the client: the form that people fill in, and their answer.
 * The key of a question is the id of the gate's step, which is never used again. */
#include "surface/mcp/mcp_int.h"

/* Only what the client can ask, and only those who may decide. */
bool gate_is_for(const struct rpc_exchange *exchange, const struct node *waiting)
{
    return exchange->caps.form && str_is(node_text(waiting, "kind"), "approval") &&
           caller_may_decide(exchange, node_find(node_find(waiting, "approval"), "by"));
}

static void put_schema(struct buf *out)
{
    buf_str(out, STR(",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
                     "\"decision\":{\"type\":\"string\",\"title\":\"Decision\","
                     "\"enum\":[\"approve\",\"reject\"],\"default\":\"approve\"},"
                     "\"comment\":{\"type\":\"string\",\"title\":\"Comment\","
                     "\"description\":\"why; it is recorded\"}}}"));
}

/* What the gate asks (`approval.ask`), or whether it is approved. */
void gate_form(struct rpc_exchange *exchange, const struct task_view *view, const struct node *gate,
               struct buf *out)
{
    const struct node *ask = node_find(gate, "ask"), *schema = node_find(ask, "requestedSchema");
    str subject = node_text(view->instance, "subject_ref"), question = node_text(ask, "message");
    struct buf words;

    buf_init(&words, &heap_libc, LIMIT_TEXT);
    if (!question.data)
        buf_fmt(&words, "Approve '%.*s' of %.*s%s%.*s?", STR_ARG(node_text(gate, "name")),
                STR_ARG(node_text(view->instance, "definition")), subject.data ? " for " : "",
                STR_ARG(subject));
    if (exchange->version >= MCP_2025_11_25)
        json_put_text(out, "mode", "form");
    json_put_str(out, "message", question.data ? question : buf_view(&words));
    if (schema && schema->kind == NODE_OBJECT)
        json_put_raw(out, "requestedSchema", schema->raw);
    else
        put_schema(out);
    buf_fini(&words);
}

void gates_print(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out)
{
    json_put_open(out, "inputRequests", '{');
    for (const struct node *one = view->waiting->first; one; one = one->next) {
        if (!gate_is_for(exchange, one))
            continue;
        json_key_str(out, node_text(one, "step_id"));
        json_open(out, '{');
        json_put_text(out, "method", "elicitation/create");
        json_put_open(out, "params", '{');
        gate_form(exchange, view, one, out);
        json_close(out, '}');
        json_close(out, '}');
    }
    json_close(out, '}');
}

/* What the form does not ask for goes into the process, as the result of the gate. */
static bool has_more(const struct node *content)
{
    for (const struct node *one = content ? content->first : NULL; one; one = one->next)
        if (!str_is(one->key, "decision") && !str_is(one->key, "comment"))
            return true;
    return false;
}

/* The first answer that is recorded counts. A form that was closed, or that says neither approve
 * nor reject, leaves the gate open. */
pawl_status gate_decide(struct rpc_exchange *exchange, str step_id, const struct node *answer)
{
    str action = node_text(answer, "action");
    const struct node *content = node_find(answer, "content"),
                      *said = node_find(content, "decision");
    bool rejects = str_is(action, "decline") || (said && str_is(said->text, "reject"));
    struct node *done;
    pawl_status status;

    if (!rejects && (!str_is(action, "accept") || (said && !str_is(said->text, "approve"))))
        return PAWL_OK;
    status = op_ask_node(
        exchange, rejects ? "step.reject" : "step.approve",
        MEMBERS({ "step_id", step_id }, { "reason", node_text(content, "comment") },
                { "payload", .json = !rejects && has_more(content) ? content->raw : STR_NONE }),
        &done);
    return status == PAWL_NOT_AWAITING || status == PAWL_TERMINAL ? PAWL_OK : status;
}

/* ---- Legacy: by a request to the client ---- */

static void ask_about(struct rpc_exchange *exchange, const struct task_view *view,
                      const struct node *gate)
{
    struct buf params;
    str kept = arena_str(&exchange->arena, node_text(gate, "step_id"));

    if (!kept.data)
        return;
    exchange->kept_text = kept;
    buf_init(&params, &heap_libc, LIMIT_TEXT);
    gate_form(exchange, view, gate, &params);
    buf_fmt(&params, ",\"_meta\":{\"" RELATED_TASK "\":{\"taskId\":\"%.*s\"}}", STR_ARG(view->id));
    exchange_ask(exchange, "elicitation/create", buf_view(&params));
    buf_fini(&params);
}

static uint64_t step_number(str step_id)
{
    uint64_t number = 0;
    str id;

    return step_id.data && id_split(step_id, '.', &id, &number) ? number : 0;
}

/* Each gate is asked about once in an exchange: a client that closes the form is not asked
 * again. */
pawl_status gate_ask(struct rpc_exchange *exchange, const struct task_view *view)
{
    if (exchange->asked && exchange->reply.data) {
        const struct node *answer = reply_result(exchange);

        exchange->asked = 0;
        exchange->reply = STR_NONE;
        if (answer)
            TRY(gate_decide(exchange, exchange->kept_text, answer));
        exchange_wait(exchange, 1); /* another gate may be open */
        return PAWL_OK;
    }
    if (exchange->asked)
        return PAWL_OK;
    for (const struct node *one = view->waiting ? view->waiting->first : NULL; one; one = one->next)
        if (gate_is_for(exchange, one) &&
            step_number(node_text(one, "step_id")) > step_number(exchange->kept_text)) {
            ask_about(exchange, view, one);
            return PAWL_OK;
        }
    return PAWL_OK;
}
