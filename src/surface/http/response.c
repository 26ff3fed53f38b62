/* response.c - how it went: the answer, or the rejection as application/problem+json. */
#include "surface/http/stream_int.h"

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
    if (result == MHD_YES)
        result = MHD_queue_response(request->connection, (unsigned)answer->http_status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result queue_stream(struct request *request)
{
    struct MHD_Response *response = stream_response(request->stream);
    enum MHD_Result result = MHD_NO;

    if (response)
        result = MHD_queue_response(request->connection, 200, response);
    if (response)
        MHD_destroy_response(response);
    return result;
}

static bool is_question_of_methods(const struct request *request, pawl_status status)
{
    return str_is(request->method, "OPTIONS") && status == PAWL_NOT_ALLOWED;
}

enum MHD_Result respond(struct request *request)
{
    pawl_status status;

    if (request_run(request))
        return MHD_YES;
    status = request->status;
    if (request->stream)
        return queue_stream(request);
    if (is_question_of_methods(request, status)) {
        request->result = (struct op_answer){ .http_status = 204 };
    } else if (status != PAWL_OK) {
        buf_clear(&request->answer);
        op_problem(status, request->scope.error.message, &request->answer);
        request->result = (struct op_answer){ .http_status = pawl_status_http(status),
                                              .content_type = "application/problem+json" };
    }
    return request->answer.failed ? MHD_NO : queue(request, &request->result);
}
