/* response.c - how it went: the answer, or the rejection as application/problem+json. */
#include "base/sha.h"
#include "surface/http/stream_int.h"
#include <stdio.h>

#define COOKIE_SIZE 512
#define TAG_BYTES   16
_Static_assert(TAG_SIZE >= 2 * TAG_BYTES + 5, "with W/, quotes and NUL");

/* ---- What never changes ---- */

/* The tag of an answer is the hash of its bytes, before they are compressed. False: no memory for
 * it, and no harm done. */
static bool print_tag(str body, char out[TAG_SIZE])
{
    struct sha *sha = sha_new(&heap_libc);
    uint8_t hash[SHA_SIZE];

    if (!sha)
        return false;
    sha_once(sha, body, hash);
    sha_free(sha);
    out[0] = '"';
    sha_hex(hash, TAG_BYTES, out + 1);
    memcpy(out + 1 + 2 * (size_t)TAG_BYTES, "\"", 2);
    return true;
}

/* Is the tag among those the client has? Compared weakly, as If-None-Match is. */
static void tag(struct web_request *request)
{
    str has;

    if (!request->op || !(request->op->flags & OP_FIXED) || request->result.http_status != 200 ||
        !print_tag(buf_view(&request->answer), request->tag))
        return;
    has = request_header(request, "If-None-Match");
    if (has.data && (str_is(has, "*") || strstr(has.data, request->tag))) {
        request->result.http_status = 304;
        buf_clear(&request->answer);
    }
}

/* By the worker that made the answer, else by the thread that sends it. A tag is the same for both
 * codings, so that of a compressed answer is weak. */
void answer_prepare(struct web_request *request, bool may_take_time)
{
    if (request->is_prepared || request->stream || request->result.pieces || request->answer.failed)
        return;
    request->is_prepared = true;
    tag(request);
    answer_compress(request, may_take_time);
    if (request->is_gzip && request->tag[0]) {
        memmove(request->tag + 2, request->tag, strlen(request->tag) + 1);
        memcpy(request->tag, "W/", 2);
    }
}

/* ---- Answering ---- */

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return !value || !value[0] || MHD_add_response_header(response, name, value) == MHD_YES;
}

/* HttpOnly: no script reads it. Strict: no other site makes a browser send it. */
static bool add_cookie(const struct web_request *request, struct MHD_Response *response)
{
    str token = request->result.page.token;
    char name[COOKIE_NAME_SIZE], cookie[COOKIE_SIZE];
    int size;

    if (!token.data)
        return true;
    cookie_name(request->server, name);
    size = snprintf(cookie, sizeof cookie, "%s=%.*s; Path=/; HttpOnly; SameSite=Strict%s%s", name,
                    STR_ARG(token), is_tls(request->server) ? "; Secure" : "",
                    token.size == 0 ? "; Max-Age=0" : "");
    return size > 0 && size < COOKIE_SIZE && add(response, "Set-Cookie", cookie);
}

/* A page is asked for again at each use (its tag tells whether it is the same), and shows nothing
 * of another site, nor itself in one. */
static bool describe_page(const struct web_request *request, struct MHD_Response *response)
{
    const char *policy = request->result.page.policy;

    return add_cookie(request, response) &&
           (!policy || (add(response, "Content-Security-Policy", policy) &&
                        add(response, "Cache-Control", "no-cache") &&
                        add(response, "Referrer-Policy", "no-referrer") &&
                        add(response, "Cross-Origin-Opener-Policy", "same-origin")));
}

static bool add_all(struct MHD_Response *response, const struct op_header *header)
{
    for (; header; header = header->next)
        if (!add(response, header->name, header->value))
            return false;
    return true;
}

#define CHALLENGE_SIZE 512

/* Why a token is not enough (RFC 6750), and, of an address that another surface mounted, where that
 * is described (RFC 9728). */
static void put_challenge(const struct web_request *request, struct buf *out)
{
    str host = request_header(request, "Host");

    if (request->result.http_status == 403)
        buf_fmt(out, ", error=\"insufficient_scope\", scope=\"%s\"", request->result.lacks);
    else if (request->is_mounted && request_has_token(request))
        buf_str(out, STR(", error=\"invalid_token\""));
    if (request->is_mounted && host.data && host.size <= CHALLENGE_SIZE / 2)
        buf_fmt(out, ", resource_metadata=\"%s://%.*s/.well-known/oauth-protected-resource%s\"",
                is_tls(request->server) ? "https" : "http", STR_ARG(host), request->op->path);
}

static bool add_challenge(const struct web_request *request, struct MHD_Response *response)
{
    int http = request->result.http_status;
    struct buf words, challenge;
    bool is_added;

    if (http != 401 && !(http == 403 && request->result.lacks))
        return true;
    buf_init(&words, &heap_libc, CHALLENGE_SIZE);
    buf_init(&challenge, &heap_libc, CHALLENGE_SIZE);
    put_challenge(request, &words);
    buf_str(&challenge, STR("Bearer"));
    if (words.size > 0)
        buf_fmt(&challenge, " %.*s", STR_ARG(str_from(buf_view(&words), 2)));
    is_added = !challenge.failed && add(response, "WWW-Authenticate", buf_text(&challenge));
    buf_fini(&words);
    buf_fini(&challenge);
    return is_added;
}

static bool describe(const struct web_request *request, struct MHD_Response *response)
{
    int http = request->result.http_status;
    bool names_methods = http == 204 || http == 405, varies = http == 304 || answer_varies(request);

    return add_all(response, request->result.headers) &&
           add(response, "Content-Type", http == 304 ? NULL : request->result.content_type) &&
           add(response, "X-Content-Type-Options", request->stream ? NULL : "nosniff") &&
           add(response, "Cache-Control", request->stream ? "no-store" : NULL) &&
           add(response, "Allow", names_methods ? request->allow : NULL) &&
           add(response, "Content-Encoding", request->is_gzip ? "gzip" : NULL) &&
           add(response, "Vary", varies ? "Accept-Encoding" : NULL) &&
           add(response, "X-Request-Id", request->id) &&
           add(response, "traceparent", request->trace) && add(response, "ETag", request->tag) &&
           add_challenge(request, response) &&
           add(response, "Retry-After", http == 503 ? "1" : NULL) &&
           add(response, "Connection", request->is_last ? "close" : NULL) &&
           describe_page(request, response);
}

/* The response is released in any case; NULL: no memory. */
static enum MHD_Result queue(struct web_request *request, struct MHD_Response *response)
{
    enum MHD_Result result = MHD_NO;

    if (!response)
        return MHD_NO;
    body_release(request);
    count_answer(request);
    if (describe(request, response))
        result = MHD_queue_response(request->connection, (unsigned)request->result.http_status,
                                    response);
    MHD_destroy_response(response);
    return result;
}

/* ---- In pieces ---- */

#define PIECE_BLOCK ((size_t)32 << 10)
#define LIVE_BLOCK                                                                                 \
    ((size_t)512) /* of one that may be silent for days: thousands are open at once */

/* By the thread of the connection. A worker reads the next piece, so that a slow client holds no
 * thread. */
static ssize_t read_pieces(void *context, uint64_t offset, char *out, size_t size)
{
    struct web_request *request = context;
    size_t left = request->answer.size - request->sent;

    (void)offset;
    if (request->status != PAWL_OK)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (left > 0) {
        if (request->sent == 0)
            connection_allow(request->connection, PATIENCE_PIECE);
        size = size < left ? size : left;
        memcpy(out, request->answer.data + request->sent, size);
        request->sent += size;
        return (ssize_t)size;
    }
    if (!request->result.pieces)
        return MHD_CONTENT_READER_END_OF_STREAM;
    connection_allow(request->connection,
                     request->result.pieces->sleep ? PATIENCE_ANY : PATIENCE_PIECE);
    return request_read_on(request) ? 0 : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* The bytes stay in the request, which outlives the response. */
static struct MHD_Response *response_of(struct web_request *request)
{
    if (request->result.pieces)
        return MHD_create_response_from_callback(
            MHD_SIZE_UNKNOWN, request->result.pieces->sleep ? LIVE_BLOCK : PIECE_BLOCK, read_pieces,
            request, NULL);
    answer_prepare(request, false);
    return MHD_create_response_from_buffer(request->answer.size,
                                           request->answer.size > 0 ? request->answer.data : NULL,
                                           MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result request_serve(struct web_request *request)
{
    pawl_status status;

    connection_allow(request->connection, PATIENCE_ANY);
    if (request_run(request))
        return MHD_YES;
    status = request->status;
    if (request->stream)
        return queue(request, stream_response(request->stream));
    connection_allow(request->connection, PATIENCE_ANSWER);
    if (str_is(request->method, "OPTIONS") && status == PAWL_NOT_ALLOWED) {
        request->result = (struct op_answer){ .http_status = 204 };
    } else if (status != PAWL_OK) {
        buf_clear(&request->answer);
        op_problem_remote(status, request->scope.error.message, &request->answer);
        request->result = (struct op_answer){ .http_status = pawl_status_http(status),
                                              .content_type = "application/problem+json" };
    }
    return request->answer.failed ? MHD_NO : queue(request, response_of(request));
}
