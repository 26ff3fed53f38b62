/* request.c - the headers of a request: which are rejected; and the escapes of a URL.
 *
 * The library below accepts two lengths, a length beside chunks, and a missing Host. With each of
 * them an intermediary may read another request than we do, so they are rejected here. */
#include "base/sha.h"
#include "surface/http/http_int.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

struct framing {
    str length, host, origin, coding;
    uint32_t length_count, host_count, coding_count;
    uint32_t key_count;
    bool is_unequal; /* two lengths that differ */
    bool is_unsound; /* a name or a value that others may read in another way */
};

static bool same_name(const char *name, const char *other)
{
    return strcasecmp(name, other) == 0;
}

/* A name with a blank in it, or a line end in a value, is read as another header by an
 * intermediary.
 */
static enum MHD_Result look_at_header(void *context, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    struct framing *framing = context;
    str text = str_of(value ? value : "");

    (void)kind;
    framing->is_unsound |= !name[0] || strpbrk(name, " \t\r\n()<>@,;:\\\"/[]?={}") ||
                           (value && strpbrk(value, "\r\n"));
    if (same_name(name, "Content-Length")) {
        framing->is_unequal |= framing->length_count++ > 0 && !str_eq(text, framing->length);
        framing->length = text;
    } else if (same_name(name, "Transfer-Encoding")) {
        framing->coding = text;
        framing->coding_count++;
    } else if (same_name(name, "Host")) {
        framing->host = text;
        framing->host_count++;
    } else if (same_name(name, "Origin")) {
        framing->origin = text;
    } else if (same_name(name, "Idempotency-Key")) {
        framing->key_count++;
    }
    return MHD_YES;
}

str request_header(const struct web_request *request, const char *name)
{
    return str_of(MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name));
}

/* ---- Names of this machine ---- */

/* Is it in the list "a,b", with any port or none? */
static bool host_is_among(str list, str host)
{
    uint64_t port = 0;
    str one;

    while (str_take(&list, ',', &one))
        if (one.size > 0 && host.size >= one.size &&
            strncasecmp(host.data, one.data, one.size) == 0 &&
            (host.size == one.size ||
             (host.data[one.size] == ':' && str_to_u64(str_from(host, one.size + 1), &port) &&
              port <= UINT16_MAX)))
            return true;
    return false;
}

bool host_is_local(str host)
{
    return host_is_among(STR("localhost,127.0.0.1,[::1]"), host);
}

static bool host_is_given(const struct web_request *request, str host)
{
    return host_is_among(str_of(request->server->options.hosts), host);
}

static str after_colon(str host)
{
    const char *bracket = memchr(host.data, ']', host.size);
    size_t start = bracket ? (size_t)(bracket - host.data) : 0;
    const char *colon = memchr(host.data + start, ':', host.size - start);

    return colon ? str_from(host, (size_t)(colon - host.data) + 1) : STR("");
}

/* A page may call us if it came from us: a local name without a port, or with ours, be it
 * the one we listen on or the one that the browser uses (a forwarded port). */
static bool origin_is_ours(const struct web_request *request, str origin, str host)
{
    const str scheme = str_starts(origin, STR("https://")) ? STR("https://") : STR("http://");
    char own[8];
    str authority, port;

    if (!str_starts(origin, scheme))
        return false;
    authority = str_from(origin, scheme.size);
    if (host_is_given(request, authority))
        return str_eq(authority, host);
    if (!host_is_local(authority))
        return false;
    port = after_colon(authority);
    snprintf(own, sizeof own, "%u", request->server->port);
    return port.size == 0 || str_is(port, own) || str_eq(port, after_colon(host));
}

/* ---- Headers ---- */

static pawl_status check_framing(struct web_request *request, const struct framing *framing)
{
    if (framing->coding_count > 0 && framing->length_count > 0)
        return scope_fail(&request->scope, PAWL_INVALID_REQUEST,
                          "both Transfer-Encoding and Content-Length: send one of them");
    if (framing->is_unequal)
        return scope_fail(&request->scope, PAWL_INVALID_REQUEST,
                          "two Content-Length headers that differ");
    if (framing->coding_count > 1 ||
        (framing->coding_count == 1 && !same_name(framing->coding.data, "chunked")))
        return scope_fail(&request->scope, PAWL_INVALID_REQUEST,
                          "Transfer-Encoding: expected chunked, found '%.*s'",
                          STR_ARG(framing->coding));
    if (framing->is_unsound)
        return scope_fail(&request->scope, PAWL_INVALID_REQUEST,
                          "a header: expected a name of letters, digits and -, and a value on one "
                          "line, found others");
    return PAWL_OK;
}

/* A user followed a link: the browser says so, and shows the answer to that user alone. */
static bool is_navigation(const struct web_request *request)
{
    return (str_is(request->method, "GET") || str_is(request->method, "HEAD")) &&
           str_is(request_header(request, "Sec-Fetch-Mode"), "navigate") &&
           str_is(request_header(request, "Sec-Fetch-Dest"), "document");
}

static pawl_status check_source(struct web_request *request, const struct framing *framing)
{
    str host = request->authority ? str_of(request->authority) : framing->host;

    if (framing->host_count != 1 || framing->host.size == 0)
        return scope_fail(&request->scope, PAWL_INVALID_REQUEST, "expected one Host header");
    if (request_header(request, OP_SIGNED_HEADER).data)
        return PAWL_OK; /* another node: its signature counts, and no page can send one */
    if (!host_is_local(host) && !host_is_given(request, host))
        return scope_fail(&request->scope, PAWL_FORBIDDEN,
                          "the Host '%.*s' is not a name of this server: use localhost, "
                          "127.0.0.1 or [::1], or serve with --host NAME",
                          STR_ARG(host));
    if (str_is(request_header(request, "Sec-Fetch-Site"), "cross-site") && !is_navigation(request))
        return scope_fail(&request->scope, PAWL_FORBIDDEN,
                          "pages of other sites may not call this server");
    if (framing->origin.data && !origin_is_ours(request, framing->origin, host))
        return scope_fail(&request->scope, PAWL_FORBIDDEN,
                          "pages from '%.*s' may not call this server", STR_ARG(framing->origin));
    return PAWL_OK;
}

pawl_status body_too_large(struct web_request *request)
{
    count_refused(request->server, HTTP_LIMIT_BODY);
    return scope_fail(&request->scope, PAWL_TOO_LARGE, "the body is over %u bytes",
                      request->body_limit);
}

/* A client that sends Expect, or announces an endless body, is answered now and disconnected. Any
 * other would not read the answer before it has sent its body, so that is read and discarded. */
static pawl_status check_length(struct web_request *request, const struct framing *framing,
                                bool *answer_now)
{
    uint64_t length = 0;

    request->length = framing->coding_count > 0 ? HTTP_CHUNKED : 0;
    if (framing->length_count == 0)
        return PAWL_OK;
    if (!str_to_u64(framing->length, &length)) { /* the library has rejected others */
        *answer_now = true;
        return scope_fail(&request->scope, PAWL_INVALID_REQUEST,
                          "Content-Length: expected a number of bytes");
    }
    request->length = length;
    if (length <= request->body_limit)
        return PAWL_OK;
    *answer_now = length > HTTP_DRAIN_MAX || request_header(request, "Expect").data;
    return body_too_large(request);
}

pawl_status request_check(struct web_request *request, bool *answer_now)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct framing framing = { 0 };

    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, look_at_header, &framing);
    *answer_now = true;
    if (info && info->header_size > HEAD_MAX)
        return scope_fail(&request->scope, PAWL_TOO_LARGE, HEAD_TOO_LARGE);
    TRY(check_framing(request, &framing));
    *answer_now = false;
    TRY(check_length(request, &framing, answer_now));
    TRY(check_source(request, &framing));
    if (framing.key_count > 1)
        return scope_fail(&request->scope, PAWL_INVALID_REQUEST,
                          "expected one Idempotency-Key, found %u", framing.key_count);
    return PAWL_OK;
}

/* ---- Escapes ---- */

/* The byte that "%XX" means. */
static bool read_escape(str text, char *out)
{
    char digits[2];

    if (text.size < 3)
        return false;
    digits[0] = (char)tolower((unsigned char)text.data[1]);
    digits[1] = (char)tolower((unsigned char)text.data[2]);
    return sha_unhex((str){ digits, 2 }, (uint8_t *)out, 1);
}

pawl_status url_decode(struct scope *scope, str text, bool is_query, str *out)
{
    char *decoded = arena_alloc(&scope->arena, text.size + 1);
    size_t size = 0;

    TRY_MEMORY(scope, decoded);
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (c == '%') {
            if (!read_escape(str_from(text, i), &c))
                return scope_fail(scope, PAWL_INVALID_REQUEST,
                                  "'%.*s': a %% must be followed by two hexadecimal digits",
                                  STR_ARG(text));
            i += 2;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        decoded[size++] = c;
    }
    *out = (str){ decoded, size };
    if (!str_is_utf8(*out, false))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "'%.*s' does not stand for UTF-8 text without NUL", STR_ARG(text));
    return PAWL_OK;
}
