/* page.c - what the library would answer by itself, said in our words.
 *
 * What it cannot parse it answers with a page of HTML, and no option changes that. But it queues
 * its page by MHD_queue_response(), as anybody does, and of two definitions of a name the dynamic
 * linker takes the program's: so the page comes by here, on every connection, whatever came before
 * it and behind TLS too. Our own answers are queued by queue_answer(), which asks the library's.
 *
 * Ours is weak: in a program that holds the library itself, the library's wins, and its page stays
 * what it is. */
#include "api/world.h"
#include "surface/http/http_int.h"
#include <dlfcn.h>
#include <sys/socket.h>

#define OWN_NAME "MHD_queue_response"

typedef enum MHD_Result (*queue_fn)(struct MHD_Connection *connection, unsigned status,
                                    struct MHD_Response *response);

static queue_fn library_queue(void)
{
    static _Atomic(queue_fn) found;
    queue_fn queue = atomic_load_explicit(&found, memory_order_relaxed);

    if (queue)
        return queue;
    *(void **)&queue = dlsym(RTLD_NEXT, OWN_NAME);
    if (!queue) /* it is in this very program, and so not behind us */
        queue = MHD_queue_response;
    atomic_store_explicit(&found, queue, memory_order_relaxed);
    return queue;
}

enum MHD_Result queue_answer(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response)
{
    return library_queue()(connection, status, response);
}

void print_refusal(const char *id, int http, str body, struct buf *out)
{
    const char *phrase = MHD_get_reason_phrase_for((unsigned)http);

    buf_fmt(out,
            "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\n"
            "X-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\n%s%sConnection: "
            "close\r\nContent-Length: %zu\r\n\r\n",
            http, phrase ? phrase : "Refused", id, http == 401 ? "WWW-Authenticate: Bearer\r\n" : "",
            http == 503 ? "Retry-After: 1\r\n" : "", body.size);
    buf_str(out, body);
}

/* The library's status, as ours, with the words for it. */
static pawl_status translate(unsigned http, const char **words)
{
    switch (http) {
    case MHD_HTTP_CONTENT_TOO_LARGE:
        *words = "the body, or a chunk of it, is too large";
        return PAWL_TOO_LARGE;
    case MHD_HTTP_URI_TOO_LONG:
    case MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE:
        *words = "request line and headers: expected at most 6000 bytes";
        return PAWL_TOO_LARGE;
    case MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED:
        *words = "expected HTTP/1.1 or HTTP/1.0, found another version";
        return PAWL_INVALID_REQUEST;
    case MHD_HTTP_INTERNAL_SERVER_ERROR:
    case MHD_HTTP_SERVICE_UNAVAILABLE:
        *words = "there is no memory to answer with; try again";
        return PAWL_NO_MEMORY;
    default:
        *words = "the request is malformed: a request line, header, length or chunk that HTTP/1.1 "
                 "does not know";
        return PAWL_INVALID_REQUEST;
    }
}

static bool describe(const struct request *request, struct MHD_Response *response)
{
    return MHD_add_response_header(response, "Content-Type", "application/problem+json") ==
               MHD_YES &&
           MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES &&
           MHD_add_response_header(response, "X-Request-Id", request->id) == MHD_YES;
}

static enum MHD_Result queue_problem(struct MHD_Connection *connection,
                                     const struct request *request, struct buf *body)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body->size, body->data, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_NO;

    if (response && describe(request, response))
        result = queue_answer(connection, (unsigned)request->result.http_status, response);
    if (response)
        MHD_destroy_response(response);
    return result;
}

/* ---- A length that is none ----
 *
 * Having queued its page for one, the library (0.9.75) forgets that it did and prints the head
 * twice. So we send it ourselves, into a socket that has nothing else to send, and the library is
 * told that nothing was queued: it closes. */

static bool length_is_bad(struct MHD_Connection *connection)
{
    str length = str_of(
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH));
    uint64_t number;

    return length.data && (!str_to_u64(length, &number) || number > INT64_MAX);
}

/* Through TLS where there is some; its library is here if ours uses it. */
bool send_bytes(struct MHD_Connection *connection, const struct buf *bytes)
{
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    ssize_t (*send_tls)(void *session, const void *data, size_t size) = NULL;
    ssize_t sent = 0;

    if (tls && tls->tls_session) {
        *(void **)&send_tls = dlsym(RTLD_DEFAULT, "gnutls_record_send");
        sent = send_tls ? send_tls(tls->tls_session, bytes->data, bytes->size) : 0;
    } else if (info) {
        sent = send(info->connect_fd, bytes->data, bytes->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    return sent == (ssize_t)bytes->size; /* a client that does not take a kilobyte gets no answer */
}

static void send_problem(struct MHD_Connection *connection, const struct request *request,
                         const struct buf *body)
{
    struct buf answer;

    buf_init(&answer, &heap_libc, LIMIT_TEXT);
    print_refusal(request->id, request->result.http_status, buf_view(body), &answer);
    if (!answer.failed)
        (void)send_bytes(connection, &answer);
    buf_fini(&answer);
}

/* A rejection instead of the page. */
static enum MHD_Result reject(struct MHD_Connection *connection, struct http_server *server,
                              unsigned http)
{
    char target[1] = "";
    struct request request = { .server = server, .target = target };
    enum MHD_Result result = MHD_NO;
    struct buf body;
    const char *words;

    buf_init(&body, &heap_libc, LIMIT_TEXT);
    request.status = translate(http, &words);
    request.result.http_status = pawl_status_http(request.status);
    request_number(&request);
    request.begun_us = world_tick_us(server->p);
    count_answer(&request);
    op_problem(request.status, words, &body);
    if (!body.failed && length_is_bad(connection))
        send_problem(connection, &request, &body);
    else if (!body.failed)
        result = queue_problem(connection, &request, &body);
    buf_fini(&body);
    return result;
}

/* Called by the library alone. */
__attribute__((weak, visibility("default"))) enum MHD_Result
MHD_queue_response(struct MHD_Connection *connection, unsigned status,
                   struct MHD_Response *response)
{
    struct http_server *server = visit_server(connection);

    return server ? reject(connection, server, status) : queue_answer(connection, status, response);
}
