/* response.c - run what was asked for, and say how it went. */
#include "surface/http/http_int.h"
#include <strings.h>

/* ---- Content types ---- */

/* "application/json; charset=utf-8" is application/json. */
static bool is_type(str header, const char *type)
{
    size_t size = strlen(type);

    if (header.size < size || strncasecmp(header.data, type, size) != 0)
        return false;
    return header.size == size || memchr("; \t", header.data[size], 3) != NULL;
}

static void add_format(struct request *request, struct route *route)
{
    str header = request_header(request, "Content-Type");
    str format = STR_NONE;

    if (is_type(header, "application/json"))
        format = STR("json");
    else if (is_type(header, "application/yaml") || is_type(header, "application/x-yaml"))
        format = STR("yaml");
    if (format.data && route->count < HTTP_PAIRS_MAX)
        route->pairs[route->count++] = (struct op_pair){ STR("format"), format, IN_BODY };
}

/* ---- Running ---- */

static pawl_status read_body(struct request *request, struct op_request *out)
{
    str body = buf_view(&request->body);

    if (body.size == 0)
        return PAWL_OK;
    /* Whatever it calls itself, it must be JSON: curl -d says it is a form. A page of another site
     * that sends one is known by its Origin. */
    return node_read_json(&request->scope, body, &out->body);
}

static pawl_status run(struct request *request, struct op_answer *answer)
{
    struct scope *scope = &request->scope;
    struct op_request call = { 0 };
    struct op_principal who = { 0 };
    struct route route;
    pawl_status status;

    status = route_find(scope, request->method, str_of(request->target), &route, request->allow);
    if (status == PAWL_OK) /* before its body is looked at: a stranger learns nothing from that */
        status = request_authenticate(request, route.op, &who);
    if (status != PAWL_OK)
        return status;
    if (route.op->flags & OP_TEXT_BODY) {
        add_format(request, &route);
        call.text = buf_view(&request->body);
    } else if (!str_is(str_of(route.op->method), "GET")) {
        status = read_body(request, &call);
    }
    call.pairs = route.pairs;
    call.pair_count = route.count;
    call.key = request_header(request, "Idempotency-Key");
    call.principal = who.name;
    if (status == PAWL_OK && who.name.data)
        status = op_authorize(request->server->p, scope, route.op, &call, &who);
    if (status == PAWL_OK)
        status = op_run(request->server->p, route.op, &call, scope, &request->answer, answer);
    return status;
}

/* ---- Answering ---- */

/* The bytes stay in the request, which outlives the response. */
static enum MHD_Result queue(struct request *request, const struct op_answer *answer)
{
    str body = buf_view(&request->answer);
    struct MHD_Response *response;
    enum MHD_Result result = MHD_YES;

    response = MHD_create_response_from_buffer(
        body.size, body.size > 0 ? request->answer.data : NULL, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    if (answer->content_type)
        result = MHD_add_response_header(response, "Content-Type", answer->content_type);
    if (result == MHD_YES && answer->http_status != 200 && request->allow[0] &&
        (answer->http_status == 204 || answer->http_status == 405))
        result = MHD_add_response_header(response, "Allow", request->allow);
    if (result == MHD_YES && answer->http_status == 401)
        result = MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (result == MHD_YES)
        result = MHD_queue_response(request->connection, (unsigned)answer->http_status, response);
    MHD_destroy_response(response);
    return result;
}

static bool is_question_of_methods(const struct request *request, pawl_status status)
{
    return str_is(request->method, "OPTIONS") && status == PAWL_NOT_ALLOWED;
}

enum MHD_Result respond(struct request *request)
{
    struct op_answer answer = { 0 };
    pawl_status status = request->status;

    if (status == PAWL_OK)
        status = run(request, &answer);
    if (is_question_of_methods(request, status)) {
        answer = (struct op_answer){ .http_status = 204 };
    } else if (status != PAWL_OK) {
        buf_clear(&request->answer);
        op_problem(status, request->scope.error.message, &request->answer);
        answer = (struct op_answer){ pawl_status_http(status), "application/problem+json" };
    }
    return request->answer.failed ? MHD_NO : queue(request, &answer);
}
