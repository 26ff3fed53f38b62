/* talk.c - a request to an MCP server, from its envelope to its result. */
#include "base/limits.h"
#include "model/words.h"
#include "tool/remote/remote_int.h"
#include <stdarg.h>
#include <stdio.h>

#define LAST_WORD_MS 1000 /* to say that a request is given up */

bool talk_fails(struct remote_talk *talk, enum remote_fault fault, const char *format, ...)
{
    va_list args;

    if (talk->fault != FAULT_NONE)
        return false;
    talk->fault = fault;
    va_start(args, format);
    (void)vsnprintf(talk->words, sizeof talk->words, format, args);
    va_end(args);
    return false;
}

/* ---- Beginning and ending ---- */

static bool may_call(const struct remote_rule *rule, str creator)
{
    return !rule->is_restricted || (creator.data && rule_names_have(&rule->creators, creator));
}

static bool find_server(struct remote_talk *talk, struct call *call, str name)
{
    str shown = words_shown(name);

    talk->server = server_find(talk->remote, name);
    if (!talk->server)
        return call_refuse(call, "mcp: no server '%.*s' is in tools.mcp.servers of pawl.yaml",
                           STR_ARG(shown));
    if (may_call(talk->server->rule, str_of(call->given->created_by)))
        return true;
    return call_refuse(call, "forbidden: the server '%.*s' is not for '%s'", STR_ARG(shown),
                       call->given->created_by ? call->given->created_by : "");
}

bool talk_begin_by_link(struct remote_talk *talk, struct call *call, str server, uint64_t link)
{
    *talk =
        (struct remote_talk){ .remote = call->toolbox->remote, .scope = call->scope, .call = call };
    if (!find_server(talk, call, server))
        return false;
    talk->left_ms = talk->server->rule->timeout_ms;
    if (call->timeout_ms > 0 && call->timeout_ms < talk->left_ms)
        talk->left_ms = call->timeout_ms;
    if (talk->server->rule->argv)
        return link_acquire(talk, link);
    pthread_mutex_lock(&talk->remote->lock);
    talk->peer = talk->server->peer;
    pthread_mutex_unlock(&talk->remote->lock);
    if (talk->server->rule->era != ERA_UNKNOWN)
        talk->peer.era = (enum remote_era)talk->server->rule->era;
    return true;
}

bool talk_begin(struct remote_talk *talk, struct call *call, str server)
{
    return talk_begin_by_link(talk, call, server, 0);
}

void talk_end(struct remote_talk *talk)
{
    if (talk->link) {
        link_release(talk);
    } else if (talk->server) {
        pthread_mutex_lock(&talk->remote->lock);
        talk->server->peer = talk->peer;
        pthread_mutex_unlock(&talk->remote->lock);
    }
}

/* ---- What comes ---- */

static void put_head(struct buf *out, const struct node *id)
{
    buf_str(out, STR("{\"jsonrpc\":\"2.0\",\"id\":"));
    buf_str(out, id->raw);
}

static bool tell(struct remote_talk *talk, struct buf *message)
{
    str text = buf_take(message, &talk->scope->arena);

    if (!text.data)
        return talk_fails(talk, FAULT_MEMORY, "no memory");
    return talk->link ? stdio_tell(talk, text) : http_tell(talk, text);
}

/* An answer that was given to this very question before it came again. */
static bool answered(const struct remote_talk *talk, const struct node *params, str *out)
{
    const struct node *given =
        talk->answers ? node_find_str(talk->answers, node_text(params, "message")) : NULL;

    if (given)
        *out = given->raw;
    return given != NULL;
}

/* What a server asks for in the older era. */
static void take_request(struct remote_talk *talk, const struct node *message,
                         const struct node *id)
{
    str method = node_text(message, "method"), answer = STR_NONE;
    const struct node *params = node_find(message, "params");
    struct buf out;

    if (str_is(method, "ping")) {
        answer = STR("{}");
    } else if (ask_is_known(message) && !answered(talk, params, &answer) &&
               (!talk->held || !held_question(talk, params, &answer))) {
        talk->data = params;
        talk_fails(talk, FAULT_QUESTION, "it asks something first");
        return;
    }
    buf_init(&out, talk->scope->arena.heap, REMOTE_TEXT_MAX);
    put_head(&out, id);
    if (answer.data)
        json_put_raw(&out, "result", answer);
    else
        json_put_raw(&out, "error",
                     STR("{\"code\":-32601,\"message\":\"the client did not offer that\"}"));
    buf_byte(&out, '}');
    (void)tell(talk, &out);
}

static bool is_answer_to(const struct node *message, uint64_t id)
{
    const struct node *given = node_find(message, "id");
    int64_t number;

    return given && node_to_i64(given, &number) && (uint64_t)number == id;
}

bool talk_take(struct remote_talk *talk, uint64_t id, struct node *message)
{
    const struct node *given = node_find(message, "id");

    if (message->kind != NODE_OBJECT)
        return talk_fails(talk, FAULT_INVALID, "expected a message of JSON-RPC, found %s",
                          node_kind_name(message->kind));
    if (node_find(message, "method")) {
        if (given && given->kind != NODE_NULL)
            take_request(talk, message, given);
        return false; /* notifications are for those who watch, not for a step */
    }
    return is_answer_to(message, id);
}

/* ---- What is sent ---- */

/* A server that is pawl too starts nothing twice for one key. */
static void put_meta(const struct remote_talk *talk, str key, struct buf *out)
{
    json_put_open(out, "_meta", '{');
    json_opt_str(out, "pawl/idempotencyKey", key);
    if (talk->peer.era != ERA_MODERN) {
        json_close(out, '}');
        return;
    }
    json_put_text(out, "io.modelcontextprotocol/protocolVersion", MODERN_VERSION);
    json_put_raw(out, "io.modelcontextprotocol/clientInfo",
                 STR("{\"name\":\"pawl\",\"version\":\"" PAWL_VERSION "\"}"));
    json_put_raw(out, "io.modelcontextprotocol/clientCapabilities",
                 STR("{\"elicitation\":{\"form\":{},\"url\":{}},\"extensions\":{\"" TASKS_EXTENSION
                     "\":{}}}"));
    if (talk->call && talk->call->given->traceparent)
        json_put_text(out, "traceparent", talk->call->given->traceparent);
    json_close(out, '}');
}

static str envelope(struct remote_talk *talk, const struct remote_request *request, uint64_t id)
{
    struct buf out;
    str text;

    buf_init(&out, talk->scope->arena.heap, REMOTE_TEXT_MAX);
    buf_str(&out, STR("{\"jsonrpc\":\"2.0\""));
    if (id)
        json_put_u64(&out, "id", id);
    json_put_text(&out, "method", request->method);
    if (request->params.size > 0 || talk->peer.era == ERA_MODERN) {
        json_put_open(&out, "params", '{');
        buf_str(&out, request->params);
        if (talk->peer.era == ERA_MODERN || request->key.size > 0)
            put_meta(talk, request->key, &out);
        json_close(&out, '}');
    }
    buf_byte(&out, '}');
    text = buf_take(&out, &talk->scope->arena);
    if (!text.data)
        talk_fails(talk, FAULT_MEMORY, "no memory, or a request of over 4 MiB");
    return text;
}

/* ---- Its answer ---- */

static bool take_error(struct remote_talk *talk, const struct node *error)
{
    str words = words_shown(node_text(error, "message"));

    talk->code = 0;
    node_to_i64(node_find(error, "code"), &talk->code);
    talk->data = node_find(error, "data");
    return talk_fails(talk, FAULT_ERROR, "%.*s", STR_ARG(words));
}

static bool read_answer(struct remote_talk *talk, struct node *message, struct node **result)
{
    struct node *error = node_find(message, "error");

    *result = node_find(message, "result");
    if (error && error->kind == NODE_OBJECT)
        return take_error(talk, error);
    if (!*result || (*result)->kind != NODE_OBJECT)
        return talk_fails(talk, FAULT_INVALID, "its answer has neither a result nor an error");
    return true;
}

/* A request that is given up is called back. */
static void call_back(struct remote_talk *talk, uint64_t id)
{
    enum remote_fault fault = talk->fault;
    char words[WORDS_MAX];
    struct buf out;

    if (!talk->link && talk->peer.era == ERA_MODERN)
        return; /* the end of the connection says it */
    memcpy(words, talk->words, sizeof words);
    talk->fault = FAULT_NONE;
    buf_init(&out, talk->scope->arena.heap, LIMIT_TEXT);
    buf_fmt(&out,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
            "{\"requestId\":%llu",
            (unsigned long long)id);
    if (talk->peer.era == ERA_MODERN)
        put_meta(talk, STR_NONE, &out);
    buf_str(&out, STR("}}"));
    talk->left_ms = LAST_WORD_MS;
    talk->is_last_word = true;
    (void)tell(talk, &out);
    talk->fault = fault;
    memcpy(talk->words, words, sizeof words);
}

bool talk_once(struct remote_talk *talk, const struct remote_request *request, struct node **result)
{
    uint64_t id = request->is_notification ? 0 : ++talk->remote->last_id;
    str body = envelope(talk, request, id);
    struct node *message = NULL;
    bool is_done;

    *result = NULL;
    if (!body.data)
        return false;
    is_done = talk->link ? stdio_exchange(talk, body, id, &message)
                         : http_exchange(talk, request, body, id, &message);
    if (!is_done && id && (talk->fault == FAULT_STOPPED || talk->fault == FAULT_LATE))
        call_back(talk, id);
    if (!is_done || !id)
        return is_done;
    return read_answer(talk, message, result);
}

static bool names_version(const struct node *data, const char *version)
{
    for (const struct node *one = node_first(data, "supported"); one; one = one->next)
        if (one->kind == NODE_STRING && str_is(one->text, version))
            return true;
    return false;
}

/* Is it worth asking a second time, because what we knew of the server was not true any more? The
 * server has done nothing in these cases. */
static bool may_mend(struct remote_talk *talk)
{
    if (talk->fault == FAULT_ERROR && talk->code == -32022) {
        if (!names_version(talk->data, MODERN_VERSION))
            talk->peer.era = ERA_LEGACY;
        return true;
    }
    if (talk->fault == FAULT_ERROR && talk->code == -32020) {
        tools_forget(talk);
        return true;
    }
    if (talk->fault == FAULT_HTTP && talk->status == 404 && talk->peer.session[0] != '\0') {
        era_forget(talk);
        return true;
    }
    return false;
}

bool talk_request(struct remote_talk *talk, const struct remote_request *request,
                  struct node **result)
{
    *result = NULL;
    if (talk->fault != FAULT_NONE || !era_find(talk))
        return false;
    if (talk_once(talk, request, result))
        return true;
    if (!may_mend(talk))
        return false;
    talk->fault = FAULT_NONE;
    return era_find(talk) && talk_once(talk, request, result);
}
