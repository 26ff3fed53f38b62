/* client.c - one HTTP request over one TCP connection. Knows nothing of operations. */
#include "surface/cli/client.h"
#include "api/stores.h"
#include "base/buf.h"
#include "surface/cli/tunnel.h"
#include <arpa/inet.h>
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

static pawl_status take_port(struct client *client, str port, struct scope *scope)
{
    uint64_t number;

    if (!str_to_u64(port, &number) || number < 1 || number > UINT16_MAX)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "%s://%s: expected a port from 1 to 65535, found '%.*s'",
                          client->scheme, client->host, STR_ARG(port));
    snprintf(client->port, sizeof client->port, "%u", (unsigned)number);
    return PAWL_OK;
}

pawl_status client_init(struct client *client, const char *url, struct scope *scope)
{
    str rest = str_of(url);
    size_t host_size;
    const char *colon;

    *client = (struct client){ .scheme = "http", .port = "7295" };
    if (str_starts(rest, STR("https://")))
        client->scheme = "https";
    else if (!str_starts(rest, STR("http://")))
        return fail_address(scope, url);
    rest = str_from(rest, strlen(client->scheme) + strlen("://"));
    while (rest.size > 0 && rest.data[rest.size - 1] == '/')
        rest.size--;
    if (!take_store(&rest, client))
        return fail_address(scope, url);
    colon = rest.size > 0 && rest.data[rest.size - 1] != ']' ? memrchr(rest.data, ':', rest.size)
                                                            : NULL; /* of "[::1]" none is meant */
    host_size = colon ? (size_t)(colon - rest.data) : rest.size;
    if (host_size == 0 || host_size >= sizeof client->host)
        return fail_address(scope, url);
    memcpy(client->host, rest.data, host_size);
    name_any(client);
    return colon ? take_port(client, str_from(rest, host_size + 1), scope) : PAWL_OK;
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

static pawl_status fail_name(const struct client *client, struct scope *scope, int code)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the host name '%s' cannot be resolved: %s; check the address, or try its "
                      "number",
                      client->host, gai_strerror(code));
}

/* With TLS only to an owner at this machine, which client_is_loopback() has checked. */
static int dial_tls(const struct client *client, const char **why)
{
    int fd = tunnel_open(client->host, client->port, why);

    if (fd >= 0)
        limit_waits(fd);
    return fd;
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

static pawl_status dial(struct client *client, struct scope *scope, int *out)
{
    struct addrinfo *found = NULL;
    int fd, code = resolve(client, &found);
    const char *why = "";

    if (code != 0)
        return fail_name(client, scope, code);
    fd = client_is_tls(client) ? dial_tls(client, &why) : dial_plain(client, found, &why);
    freeaddrinfo(found);
    if (fd < 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "cannot reach %s://%s:%s: %s",
                          client->scheme, client->host, client->port, why);
    *out = fd;
    return PAWL_OK;
}

bool client_is_tls(const struct client *client)
{
    return strcmp(client->scheme, "https") == 0;
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

static void put_token(const struct client *client, struct buf *out)
{
    const char *token = client->token[0] ? client->token : getenv("PAWL_TOKEN");

    if (token)
        buf_fmt(out, "Authorization: Bearer %s\r\n", token);
}

static void print_request(const struct client *client, const struct http_request *request,
                          struct buf *out)
{
    buf_fmt(out,
            "%s %s HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: pawl/" PAWL_VERSION "\r\n"
            "Connection: close\r\n",
            request->method, request->target, client->host, client->port);
    if (request->content_type)
        buf_fmt(out, "Content-Type: %s\r\n", request->content_type);
    if (request->content_type || strcmp(request->method, "GET") != 0)
        buf_fmt(out, "Content-Length: %zu\r\n", request->body.size);
    put_token(client, out);
    if (request->key.data)
        buf_fmt(out, "Idempotency-Key: %.*s\r\n", STR_ARG(request->key));
    buf_str(out, STR("\r\n"));
    buf_str(out, request->body);
}

static bool write_all(int fd, str bytes)
{
    while (bytes.size > 0) {
        ssize_t size = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        bytes = str_from(bytes, (size_t)size);
    }
    return true;
}

static int wait_plainly(const struct client *client, int fd, int64_t waited_ms)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    if (poll(&ready, 1, CLIENT_LOOK_MS) > 0)
        return 1;
    if (waited_ms + CLIENT_LOOK_MS == CLIENT_SILENT_MS)
        fprintf(stderr, "pawl: %s://%s:%s has not answered for %d s; waiting for up to %d s\n",
                client->scheme, client->host, client->port, CLIENT_SILENT_MS / 1000, ANSWER_WAIT_S);
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

static bool read_all(const struct client *client, int fd, struct buf *in)
{
    char block[65536];

    while (!in->failed && await(client, fd)) {
        ssize_t size = recv(fd, block, sizeof block, 0);

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size == 0;
        buf_add(in, block, (size_t)size);
    }
    return false;
}

/* A server with a certificate ends a plain connection without a word, or with an alert of TLS. The
 * handshake alone sends nothing of ours. */
static bool speaks_tls(const struct client *client, str answer)
{
    const char *why;
    int fd;

    if (answer.size > 0 || client_is_tls(client))
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
                      "http://%s:%s answers with TLS, and the command line speaks plain HTTP: at the "
                      "server's machine give the store by its file, --store sqlite:FILE",
                      client->host, client->port);
}

/* What came is no whole answer of HTTP. */
static pawl_status fail_answer(const struct client *client, struct scope *scope, str bytes)
{
    if (client_check_tls(client, scope, bytes) != PAWL_OK)
        return scope->error.status;
    return scope_fail(scope, PAWL_OUTCOME_UNKNOWN,
                      "the answer of %s://%s:%s broke off: what came of it is not whole",
                      client->scheme, client->host, client->port);
}

pawl_status client_send(struct client *client, const struct http_request *request,
                        struct scope *scope, struct http_response *out)
{
    struct buf sent, received;
    pawl_status status = PAWL_OK;
    int fd = -1;

    TRY(dial(client, scope, &fd));
    buf_init(&sent, scope->arena.heap, CLIENT_ANSWER_MAX);
    buf_init(&received, scope->arena.heap, CLIENT_ANSWER_MAX);
    print_request(client, request, &sent);
    /* A server may answer and hang up before it has read all: look at what came anyway. */
    if (!sent.failed)
        write_all(fd, buf_view(&sent));
    if (!read_all(client, fd, &received) && received.size == 0)
        status = scope_fail(scope, PAWL_OUTCOME_UNKNOWN, "no answer from %s://%s:%s: %s",
                            client->scheme, client->host, client->port, strerror(errno));
    else if (!http_parse(scope, buf_view(&received), out))
        status = fail_answer(client, scope, buf_view(&received));
    close(fd);
    buf_fini(&sent);
    buf_fini(&received);
    return status;
}

/* By HTTP/1.0, whose answers come as they are and not in chunks. */
pawl_status client_stream(struct client *client, const char *target, const char *last,
                          struct scope *scope, int *fd)
{
    struct buf sent;
    bool is_sent;

    TRY(dial(client, scope, fd));
    buf_init(&sent, scope->arena.heap, CLIENT_ANSWER_MAX);
    buf_fmt(&sent, "GET %s HTTP/1.0\r\nHost: %s:%s\r\nUser-Agent: pawl/" PAWL_VERSION "\r\n",
            target, client->host, client->port);
    put_token(client, &sent);
    if (*last)
        buf_fmt(&sent, "Last-Event-ID: %s\r\n", last);
    buf_str(&sent, STR("\r\n"));
    is_sent = !sent.failed && write_all(*fd, buf_view(&sent));
    buf_fini(&sent);
    if (is_sent)
        return PAWL_OK;
    close(*fd);
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "cannot ask %s://%s:%s: %s",
                      client->scheme, client->host, client->port, strerror(errno));
}

/* ---- The answer ---- */

static bool take_line(str *rest, str *line)
{
    const char *end = rest->size ? memmem(rest->data, rest->size, "\r\n", 2) : NULL;

    if (!end)
        return false;
    *line = (str){ rest->data, (size_t)(end - rest->data) };
    *rest = str_from(*rest, line->size + 2);
    return true;
}

static bool is_header(str line, const char *name, str *value)
{
    size_t size = strlen(name);

    if (line.size <= size || line.data[size] != ':' || strncasecmp(line.data, name, size) != 0)
        return false;
    *value = str_from(line, size + 1);
    while (value->size > 0 && value->data[0] == ' ')
        *value = str_from(*value, 1);
    return true;
}

static bool take_hex(str text, size_t *out)
{
    size_t value = 0, at = 0;

    for (; at < text.size && at < 8; at++) {
        static const char digits[] = "0123456789abcdef";
        const char *found = text.data[at] ? strchr(digits, text.data[at] | 0x20) : NULL;

        if (!found)
            break;
        value = value * 16 + (size_t)(found - digits);
    }
    *out = value;
    return at > 0;
}

static bool join_chunks(struct scope *scope, str rest, str *out)
{
    char *joined = arena_alloc(&scope->arena, rest.size + 1);
    size_t size = 0, chunk;
    str line;

    while (joined && take_line(&rest, &line) && take_hex(line, &chunk)) {
        if (chunk == 0) {
            *out = (str){ joined, size };
            return true;
        }
        if (rest.size < chunk + 2)
            return false;
        memcpy(joined + size, rest.data, chunk);
        size += chunk;
        rest = str_from(rest, chunk + 2);
    }
    return false;
}

bool http_parse(struct scope *scope, str bytes, struct http_response *out)
{
    str line, value, type = STR("");
    uint64_t length = UINT64_MAX, status;
    bool chunked = false;

    if (!take_line(&bytes, &line) || line.size < 12 || !str_starts(line, STR("HTTP/1.")) ||
        !str_to_u64((str){ line.data + 9, 3 }, &status))
        return false;
    while (take_line(&bytes, &line) && line.size > 0) {
        if (is_header(line, "Content-Length", &value) && !str_to_u64(value, &length))
            return false;
        if (is_header(line, "Transfer-Encoding", &value))
            chunked = true;
        if (is_header(line, "Content-Type", &value))
            type = value;
    }
    if (line.size > 0 || (length != UINT64_MAX && bytes.size < length))
        return false;
    if (!chunked && length != UINT64_MAX)
        bytes.size = (size_t)length;
    if (chunked && !join_chunks(scope, bytes, &bytes))
        return false;
    *out = (struct http_response){ .status = (int)status,
                                   .content_type = arena_str(&scope->arena, type),
                                   .body = arena_str(&scope->arena, bytes) };
    return out->body.data != NULL;
}

/* ---- An answer that is taken as it comes ---- */

struct intake {
    struct scope *scope;
    bool (*put)(void *context, struct scope *scope, str piece);
    void *context;
    struct buf held; /* what has not been taken apart yet; of a rejection, all of it */
    bool has_head, is_chunked, is_whole, is_rejection;
    uint64_t left; /* of the body, or of its present chunk */
    pawl_status status;
};

/* Drops what was taken. */
static void take_off(struct buf *held, size_t size)
{
    memmove(held->data, held->data + size, held->size - size);
    held->size -= size;
}

static bool take_head(struct intake *intake)
{
    str rest = buf_view(&intake->held), line, value;
    uint64_t status = 0;

    if (!rest.size || !memmem(rest.data, rest.size, "\r\n\r\n", 4))
        return false;
    intake->left = UINT64_MAX;
    if (!take_line(&rest, &line) || line.size < 12 || !str_to_u64((str){ line.data + 9, 3 }, &status))
        status = 0;
    intake->is_rejection = status < 200 || status >= 300;
    while (take_line(&rest, &line) && line.size > 0) {
        if (is_header(line, "Content-Length", &value))
            (void)str_to_u64(value, &intake->left);
        if (is_header(line, "Transfer-Encoding", &value))
            intake->is_chunked = true;
    }
    intake->has_head = true;
    if (intake->is_rejection)
        return false;
    if (intake->is_chunked)
        intake->left = 0;
    take_off(&intake->held, intake->held.size - rest.size);
    return true;
}

/* The line with the size of the next chunk, and the empty one before it. */
static bool take_size(struct intake *intake)
{
    str rest = buf_view(&intake->held), line;
    size_t size;

    if (!take_line(&rest, &line))
        return false;
    if (line.size > 0 && !take_hex(line, &size)) {
        intake->status = PAWL_OUTCOME_UNKNOWN;
        return false;
    }
    if (line.size > 0) {
        intake->left = size;
        intake->is_whole = size == 0;
    }
    take_off(&intake->held, intake->held.size - rest.size);
    return !intake->is_whole;
}

static bool take_some(struct intake *intake)
{
    size_t size = intake->held.size < intake->left ? intake->held.size : (size_t)intake->left;

    if (intake->is_chunked && intake->left == 0)
        return take_size(intake);
    if (size == 0)
        return false;
    if (!intake->put(intake->context, intake->scope, (str){ intake->held.data, size }))
        intake->status = PAWL_STORAGE_FAILURE;
    intake->left -= size;
    intake->is_whole = !intake->is_chunked && intake->left == 0;
    take_off(&intake->held, size);
    return intake->status == PAWL_OK && !intake->is_whole;
}

static void take_in(const struct client *client, struct intake *intake, int fd)
{
    char block[65536];
    ssize_t size;

    while (intake->status == PAWL_OK && !intake->is_whole && await(client, fd)) {
        size = recv(fd, block, sizeof block, 0);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return;
        buf_add(&intake->held, block, (size_t)size);
        if (intake->held.failed || intake->is_rejection ||
            (!intake->has_head && !take_head(intake)))
            continue;
        while (take_some(intake))
            continue;
    }
}

pawl_status client_send_pieces(struct client *client, const struct http_request *request,
                               struct scope *scope,
                               bool (*put)(void *context, struct scope *scope, str piece),
                               void *context, struct http_response *out)
{
    struct intake intake = { .scope = scope, .put = put, .context = context };
    struct buf sent;
    int fd = -1;
    pawl_status status = PAWL_OK;

    TRY(dial(client, scope, &fd));
    buf_init(&sent, scope->arena.heap, CLIENT_ANSWER_MAX);
    buf_init(&intake.held, scope->arena.heap, CLIENT_ANSWER_MAX);
    print_request(client, request, &sent);
    if (!sent.failed)
        write_all(fd, buf_view(&sent));
    take_in(client, &intake, fd);
    close(fd);
    *out = (struct http_response){ .status = 200 };
    if (intake.is_rejection)
        status = http_parse(scope, buf_view(&intake.held), out) ? PAWL_OK : fail_answer(client, scope, buf_view(&intake.held));
    else if (intake.status == PAWL_STORAGE_FAILURE)
        status = PAWL_STORAGE_FAILURE;
    else if (!intake.is_whole)
        status = fail_answer(client, scope, buf_view(&intake.held));
    buf_fini(&sent);
    buf_fini(&intake.held);
    return status;
}
