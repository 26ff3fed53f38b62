/* early.c - rejections that are sent past the library, because it cannot answer yet: while a body
 * comes in, and when a client has closed its side before the end of its body.
 *
 * Only into a plain socket that has nothing else to send. Within TLS a body is read to its end, and
 * the rejection follows it. */
#include "surface/http/http_int.h"
#include <sys/socket.h>

static void print_rejection(const struct web_request *request, struct buf *out)
{
    int http = request->result.http_status;
    const char *phrase = MHD_get_reason_phrase_for((unsigned)http);
    struct buf body;

    buf_init(&body, &heap_libc, LIMIT_TEXT);
    op_problem_remote(request->status, request->scope.error.message, &body);
    buf_fmt(out,
            "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\n"
            "X-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\n%s%sConnection: "
            "close\r\nContent-Length: %zu\r\n\r\n",
            http, phrase ? phrase : "Rejected", request->id,
            http == 401 ? "WWW-Authenticate: Bearer\r\n" : "",
            http == 503 ? "Retry-After: 1\r\n" : "", body.size);
    buf_str(out, buf_view(&body));
    out->failed = out->failed || body.failed;
    buf_fini(&body);
}

/* A client that does not take a kilobyte gets no answer. */
bool reject_past(struct web_request *request, int fd)
{
    struct buf answer;
    bool is_sent;

    buf_init(&answer, &heap_libc, LIMIT_TEXT);
    request->result = (struct op_answer){ .http_status = pawl_status_http(request->status) };
    print_rejection(request, &answer);
    count_answer(request);
    is_sent = !answer.failed && send(fd, answer.data, answer.size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                                    (ssize_t)answer.size;
    buf_fini(&answer);
    return is_sent;
}

/* Closing the connection now would destroy an answer that the client has not read yet: the rest of
 * its body is read and discarded. */
enum MHD_Result reject_now(struct web_request *request)
{
    if (is_tls(request->server))
        return MHD_YES;
    request->is_discarding = true;
    connection_allow(request->connection, PATIENCE_DRAIN);
    return reject_past(request, connection_fd(request->connection)) ? MHD_YES : MHD_NO;
}

void reject_cut_short(struct web_request *request)
{
    if (!request->has_begun || request->is_whole || request->is_discarding ||
        is_tls(request->server))
        return;
    if (request->status == PAWL_OK)
        request->status = scope_fail(&request->scope, PAWL_INVALID_REQUEST,
                                     "the body: expected as many bytes as Content-Length says, or "
                                     "chunks to their end, found fewer before the client closed "
                                     "its side");
    reject_past(request, connection_fd(request->connection));
}
