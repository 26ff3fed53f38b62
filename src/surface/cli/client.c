/* client.c - one HTTP request over one TCP connection. Knows nothing of operations. */
#include "surface/cli/client.h"
#include "api/stores.h"
#include "base/buf.h"
#include "surface/cli/files.h"
#include "surface/cli/tunnel.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_WAIT_S 120 /* longer than any operation may take */

static pawl_status fail_address(struct scope *scope, const char *url)
{
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "expected http://host:port or http://host:port/v1/stores/NAME, found '%s'",
                      url);
}

/* The store behind the authority, which it is taken off. */
static bool take_store(str *rest, struct client *client)
{
    const str prefix = STR("/v1/stores/");
    const char *slash = memchr(rest->data, '/', rest->size);
    str path = slash ? str_from(*rest, (size_t)(slash - rest->data)) : STR("");

    rest->size -= path.size;
    if (path.size == 0)
        return true;
    if (!str_starts(path, prefix) || path.size >= sizeof client->store ||
        !store_name_is_valid(str_from(path, prefix.size)))
        return false;
    memcpy(client->store, path.data, path.size);
    return true;
}

/* A server on every address of its machine is called by one that it answers to. */
static void name_any(struct client *client)
{
    if (strcmp(client->host, "0.0.0.0") == 0)
        snprintf(client->host, sizeof client->host, "127.0.0.1");
    else if (strcmp(client->host, "[::]") == 0)
        snprintf(client->host, sizeof client->host, "[::1]");
}

pawl_status client_init(struct client *client, const char *url, struct scope *scope)
{
    str rest = str_of(url), port = STR("7295");
    uint64_t number;
    const char *colon;

    *client = (struct client){ .is_tls = str_starts(rest, STR("https://")) };
    if (!client->is_tls && !str_starts(rest, STR("http://")))
        return fail_address(scope, url);
    rest = str_from(rest, client->is_tls ? strlen("https://") : strlen("http://"));
    while (rest.size > 0 && rest.data[rest.size - 1] == '/')
        rest.size--;
    if (!take_store(&rest, client))
        return fail_address(scope, url);
    colon = rest.size > 0 && rest.data[rest.size - 1] != ']' ? memrchr(rest.data, ':', rest.size)
                                                            : NULL; /* of "[::1]" none is meant */
    if (colon) {
        port = str_from(rest, (size_t)(colon + 1 - rest.data));
        rest.size = (size_t)(colon - rest.data);
    }
    if (rest.size == 0 || rest.size >= sizeof client->host)
        return fail_address(scope, url);
    memcpy(client->host, rest.data, rest.size);
    name_any(client);
    if (!str_to_u64(port, &number) || number < 1 || number > UINT16_MAX)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "http%s://%s: expected a port from 1 to 65535, found '%.*s'",
                          client->is_tls ? "s" : "", client->host, STR_ARG(port));
    snprintf(client->port, sizeof client->port, "%u", (unsigned)number);
    snprintf(client->address, sizeof client->address, "http%s://%s:%s", client->is_tls ? "s" : "",
             client->host, client->port);
    return PAWL_OK;
}

/* ---- The connection ---- */

static void limit_waits(int fd)
{
    struct timeval wait = { .tv_sec = ANSWER_WAIT_S };

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

static int try_address(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    limit_waits(fd);
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    close(fd);
    return -1;
}

static int dial_plain(struct client *client, const struct addrinfo *found, const char **why)
{
    int fd = -1;

    for (const struct addrinfo *address = found; address && fd < 0; address = address->ai_next)
        fd = try_address(address);
    client->nothing_listens = fd < 0 && errno == ECONNREFUSED;
    *why = strerror(errno);
    return fd;
}

/* The resolver takes an IPv6 address without its brackets. */
static int resolve(const struct client *client, struct addrinfo **found)
{
    struct addrinfo wanted = { .ai_socktype = SOCK_STREAM };
    char host[sizeof client->host];
    size_t size = strlen(client->host);
    bool has_brackets = size > 2 && client->host[0] == '[' && client->host[size - 1] == ']';

    snprintf(host, sizeof host, "%.*s", (int)(has_brackets ? size - 2 : size),
             client->host + has_brackets);
    return getaddrinfo(host, client->port, &wanted, found);
}

/* With TLS only to an owner at this machine, which client_is_loopback() has checked. */
static pawl_status dial(struct client *client, struct scope *scope, int *out)
{
    struct addrinfo *found = NULL;
    int code = resolve(client, &found);
    const char *why = "";

    if (code != 0)
        return scope_fail(
            scope, PAWL_STORAGE_FAILURE,
            "the host name '%s' cannot be resolved: %s; check the address, or try its "
            "number",
            client->host, gai_strerror(code));
    *out = client->is_tls ? tunnel_open(client->host, client->port, &why)
                          : dial_plain(client, found, &why);
    freeaddrinfo(found);
    if (*out < 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "cannot reach %s: %s", client->address, why);
    limit_waits(*out); /* of a tunnel: a plain connection has them from its beginning */
    return PAWL_OK;
}

bool client_is_loopback(const struct client *client)
{
    struct in_addr v4;

    return strcmp(client->host, "[::1]") == 0 ||
           (inet_pton(AF_INET, client->host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

bool client_reaches(struct client *client)
{
    struct scope scope;
    pawl_status status;
    int fd = -1;

    scope_init(&scope, &heap_libc, 4096);
    status = dial(client, &scope, &fd);
    scope_fini(&scope);
    if (status == PAWL_OK)
        close(fd);
    return status == PAWL_OK;
}

/* A stream is asked for by HTTP/1.0, whose answers come as they are and not in chunks. */
static void print_request(const struct client *client, const struct http_request *request,
                          struct buf *out)
{
    const char *token = client->token[0] ? client->token : getenv("PAWL_TOKEN");

    buf_fmt(out, "%s %s HTTP/1.%d\r\nHost: %s:%s\r\nUser-Agent: pawl/" PAWL_VERSION "\r\n",
            request->method, request->target, request->last ? 0 : 1, client->host, client->port);
    if (!request->last)
        buf_str(out, STR("Connection: close\r\n"));
    else if (*request->last)
        buf_fmt(out, "Last-Event-ID: %s\r\n", request->last);
    if (request->content_type)
        buf_fmt(out, "Content-Type: %s\r\n", request->content_type);
    if (request->content_type || strcmp(request->method, "GET") != 0)
        buf_fmt(out, "Content-Length: %zu\r\n", request->body.size);
    if (token)
        buf_fmt(out, "Authorization: Bearer %s\r\n", token);
    if (request->key.data)
        buf_fmt(out, "Idempotency-Key: %.*s\r\n", STR_ARG(request->key));
    buf_str(out, STR("\r\n"));
    buf_str(out, request->body);
}

static int wait_plainly(const struct client *client, int fd, int64_t waited_ms)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    if (poll(&ready, 1, CLIENT_LOOK_MS) > 0)
        return 1;
    if (waited_ms + CLIENT_LOOK_MS == CLIENT_SILENT_MS)
        fprintf(stderr, "pawl: %s has not answered for %d s; waiting for up to %d s\n",
                client->address, CLIENT_SILENT_MS / 1000, ANSWER_WAIT_S);
    return 0;
}

/* Until there is something to read. False, with errno: there is not. */
static bool await(const struct client *client, int fd)
{
    for (int64_t waited_ms = 0; waited_ms < ANSWER_WAIT_S * 1000; waited_ms += CLIENT_LOOK_MS) {
        int found = client->wait ? client->wait(client->wait_context, fd, waited_ms)
                                 : wait_plainly(client, fd, waited_ms);

        errno = ECANCELED;
        if (found != 0)
            return found > 0;
    }
    errno = ETIMEDOUT;
    return false;
}

/* A server with a certificate ends a plain connection without a word, or with an alert of TLS. The
 * handshake alone sends nothing of ours. */
static bool speaks_tls(const struct client *client, str answer)
{
    const char *why;
    int fd;

    if (answer.size > 0 || client->is_tls)
        return answer.size >= 2 && answer.data[0] == 0x15 && answer.data[1] == 0x03;
    fd = tunnel_open(client->host, client->port, &why);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

pawl_status client_check_tls(const struct client *client, struct scope *scope, str answer)
{
    if (!speaks_tls(client, answer))
        return PAWL_OK;
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "http://%s:%s answers with TLS, and the command line speaks plain HTTP: at "
                      "the server's machine give the store by its file, --store sqlite:FILE",
                      client->host, client->port);
}

/* Connect and send. *is_sent: all of it. */
static pawl_status send_request(struct client *client, const struct http_request *request,
                                struct scope *scope, int *fd, bool *is_sent)
{
    struct buf sent;

    TRY(dial(client, scope, fd));
    buf_init(&sent, scope->arena.heap, CLIENT_ANSWER_MAX);
    print_request(client, request, &sent);
    *is_sent = !sent.failed && write_whole(*fd, buf_view(&sent));
    buf_fini(&sent);
    return PAWL_OK;
}

pawl_status client_stream(struct client *client, const char *target, const char *last,
                          struct scope *scope, int *fd)
{
    struct http_request request = { .method = "GET", .target = target, .last = last };
    bool is_sent;

    TRY(send_request(client, &request, scope, fd, &is_sent));
    if (is_sent)
        return PAWL_OK;
    close(*fd);
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "cannot ask %s: %s", client->address,
                      strerror(errno));
}

/* ---- The answer ---- */

/* An answer as it is read. */
struct intake {
    struct scope *scope;
    const struct answer_to *to;
    struct buf held, body; /* read, and not taken apart yet; the body, if it is gathered */
    bool has_head, has_length, is_chunked, is_whole;
    uint64_t status, left; /* left: of the body, or of its present chunk */
    pawl_status failure;
};

/* The next line of what is held; data NULL: it is not whole yet. */
static str next_line(const struct intake *intake, size_t start)
{
    str rest = str_from(buf_view(&intake->held), start);
    const char *end = rest.size ? memmem(rest.data, rest.size, "\r\n", 2) : NULL;

    return end ? (str){ rest.data, (size_t)(end - rest.data) } : STR_NONE;
}

/* Drops what was taken. */
static void take_off(struct buf *held, size_t size)
{
    memmove(held->data, held->data + size, held->size - size);
    held->size -= size;
}

static bool fail_intake(struct intake *intake, pawl_status failure)
{
    intake->failure = failure;
    return false;
}

static bool take_header(struct intake *intake, str line)
{
    str name = str_before(line, ':'), value = str_trim(str_after(line, ':'), " ");

    if (name.size == 17 && strncasecmp(name.data, "Transfer-Encoding", 17) == 0)
        intake->is_chunked = true;
    if (name.size != 14 || strncasecmp(name.data, "Content-Length", 14) != 0)
        return true;
    intake->has_length = true;
    return str_to_u64(value, &intake->left);
}

/* False: it is not whole yet, or is no head of HTTP. */
static bool take_head(struct intake *intake)
{
    str line = next_line(intake, 0);
    size_t used = line.size + 2;

    if (!intake->held.size || !memmem(intake->held.data, intake->held.size, "\r\n\r\n", 4))
        return false;
    intake->left = UINT64_MAX;
    if (line.size < 12 || !str_starts(line, STR("HTTP/1.")) ||
        !str_to_u64((str){ line.data + 9, 3 }, &intake->status))
        return fail_intake(intake, PAWL_OUTCOME_UNKNOWN);
    while ((line = next_line(intake, used)).size > 0) {
        if (!take_header(intake, line))
            return fail_intake(intake, PAWL_OUTCOME_UNKNOWN);
        used += line.size + 2;
    }
    intake->has_head = true;
    intake->is_whole = intake->left == 0 && !intake->is_chunked;
    intake->left = intake->is_chunked ? 0 : intake->left;
    take_off(&intake->held, used + 2);
    return true;
}

/* The line with the size of the next chunk, and the empty one before it. */
static bool take_size(struct intake *intake)
{
    str line = next_line(intake, 0);

    if (!line.data)
        return false;
    if (line.size > 0 && !isxdigit((unsigned char)line.data[0]))
        return fail_intake(intake, PAWL_OUTCOME_UNKNOWN);
    if (line.size > 0) {
        intake->left = strtoull(line.data, NULL, 16); /* the line's end ends it */
        intake->is_whole = intake->left == 0;
    }
    take_off(&intake->held, line.size + 2);
    return !intake->is_whole;
}

/* A rejection is always gathered: it is a problem to be read. */
static bool take_some(struct intake *intake)
{
    size_t size = intake->held.size < intake->left ? intake->held.size : (size_t)intake->left;
    bool is_gathered = !intake->to->put || intake->status >= 300;

    if (intake->is_chunked && intake->left == 0)
        return take_size(intake);
    if (size == 0)
        return false;
    if (is_gathered)
        buf_add(&intake->body, intake->held.data, size);
    else if (!intake->to->put(intake->to->context, intake->scope, (str){ intake->held.data, size }))
        return fail_intake(intake, PAWL_STORAGE_FAILURE);
    intake->left -= size;
    intake->is_whole = !intake->is_chunked && intake->left == 0;
    take_off(&intake->held, size);
    return !intake->is_whole;
}

/* To the end of the answer, which is that of the connection if the head gives no length. False,
 * with errno: the connection failed first. */
static bool take_in(const struct client *client, struct intake *intake, int fd)
{
    char block[65536];

    while (intake->failure == PAWL_OK && !intake->is_whole && await(client, fd)) {
        ssize_t size = recv(fd, block, sizeof block, 0);

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0) {
            intake->is_whole =
                size == 0 && intake->has_head && !intake->has_length && !intake->is_chunked;
            return size == 0;
        }
        buf_add(&intake->held, block, (size_t)size);
        if (intake->has_head || take_head(intake))
            while (take_some(intake))
                continue;
        if (intake->held.failed || intake->body.failed)
            intake->failure = PAWL_OUTCOME_UNKNOWN;
    }
    return intake->failure != PAWL_OK || intake->is_whole;
}

/* What is wrong with an answer; `has_ended` as take_in() returned it. */
static pawl_status check_intake(const struct client *client, const struct intake *intake,
                                bool has_ended)
{
    bool has_bytes = intake->has_head || intake->held.size > 0;

    if (intake->is_whole || intake->failure == PAWL_STORAGE_FAILURE)
        return intake->failure;
    if (!has_ended && !has_bytes)
        return scope_fail(intake->scope, PAWL_OUTCOME_UNKNOWN, "no answer from %s: %s",
                          client->address, strerror(errno));
    if (!intake->has_head)
        TRY(client_check_tls(client, intake->scope, buf_view(&intake->held)));
    return scope_fail(intake->scope, PAWL_OUTCOME_UNKNOWN,
                      "the answer of %s broke off: what came of it is not whole", client->address);
}

pawl_status client_send(struct client *client, const struct http_request *request,
                        struct scope *scope, const struct answer_to *to, struct http_response *out)
{
    struct intake intake = { .scope = scope, .to = to };
    pawl_status status;
    bool is_sent;
    int fd;

    /* A server may answer and hang up before it has read all: look at what came anyway. */
    TRY(send_request(client, request, scope, &fd, &is_sent));
    buf_init(&intake.held, scope->arena.heap, CLIENT_ANSWER_MAX);
    buf_init(&intake.body, scope->arena.heap, CLIENT_ANSWER_MAX);
    status = check_intake(client, &intake, take_in(client, &intake, fd));
    close(fd);
    buf_fini(&intake.held);
    *out = (struct http_response){ intake.status, buf_take(&intake.body, &scope->arena) };
    return status == PAWL_OK && !out->body.data ? scope_no_memory(scope) : status;
}
