/* listen.c - an address in words, and a socket that has it. */
#include "surface/http/http_int.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } socket;
    socklen_t size;
};

static int fail(pawl_error *error, pawl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(pawl_error *error, pawl_status status, const char *format, ...)
{
    va_list arguments;

    if (!error)
        return -1;
    error->status = status;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return -1;
}

static bool parse_v4(const char *host, uint16_t port, struct address *out)
{
    struct sockaddr_in *v4 = &out->socket.v4;

    if (inet_pton(AF_INET, host, &v4->sin_addr) != 1)
        return false;
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    out->size = sizeof *v4;
    return true;
}

static bool parse_v6(const char *host, uint16_t port, struct address *out)
{
    struct sockaddr_in6 *v6 = &out->socket.v6;

    if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
        return false;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    out->size = sizeof *v6;
    return true;
}

/* "HOST:PORT" or "[HOST]:PORT"; without a port it is ours. */
static bool parse_address(str text, struct address *out)
{
    bool has_brackets = text.size > 0 && text.data[0] == '[';
    const char *end =
        has_brackets ? memchr(text.data, ']', text.size) : memchr(text.data, ':', text.size);
    size_t start = has_brackets ? 1 : 0;
    size_t stop = end ? (size_t)(end - text.data) : text.size;
    str rest = str_from(text, stop + (has_brackets && end ? 1 : 0));
    uint64_t port = HTTP_PORT;
    char host[64];

    if ((has_brackets && !end) || stop - start >= sizeof host)
        return false;
    memcpy(host, text.data + start, stop - start);
    host[stop - start] = 0;
    if (rest.size > 0 && (rest.data[0] != ':' || !str_to_u64(str_from(rest, 1), &port)))
        return false;
    if (port > UINT16_MAX)
        return false;
    if (has_brackets)
        return parse_v6(host, (uint16_t)port, out);
    return parse_v4(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, (uint16_t)port, out);
}

uint16_t socket_port(int listener)
{
    struct address address = { .size = sizeof address.socket };

    if (getsockname(listener, &address.socket.any, &address.size) != 0)
        return 0;
    return address.socket.any.sa_family == AF_INET6 ? ntohs(address.socket.v6.sin6_port)
                                                    : ntohs(address.socket.v4.sin_port);
}

bool socket_is_loopback(int listener)
{
    struct address address = { .size = sizeof address.socket };

    if (getsockname(listener, &address.socket.any, &address.size) != 0)
        return false;
    if (address.socket.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address.socket.v6.sin6_addr);
    return ntohl(address.socket.v4.sin_addr.s_addr) >> 24 == 127;
}

static int open_socket(const struct address *address)
{
    int one = 1;
    int listener =
        socket(address->socket.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (listener < 0)
        return -1;
    if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(listener, &address->socket.any, address->size) == 0 && listen(listener, 1024) == 0)
        return listener;
    one = errno;
    close(listener);
    errno = one;
    return -1;
}

int http_bind(const char *listen, uint16_t *out_port, pawl_error *error)
{
    struct address address = { 0 };
    int listener;

    if (!parse_address(str_of(listen), &address))
        return fail(error, PAWL_INVALID_REQUEST,
                    "cannot listen on '%s': expected an address like 127.0.0.1:%d or [::1]:%d",
                    listen, HTTP_PORT, HTTP_PORT);
    listener = open_socket(&address);
    if (listener < 0)
        return fail(error, errno == EADDRINUSE ? PAWL_IN_USE : PAWL_INVALID_REQUEST,
                    "cannot listen on %s: %s; say another address with --listen HOST:PORT", listen,
                    strerror(errno));
    *out_port = socket_port(listener);
    return listener;
}

/* ---- One that somebody else opened ---- */

static bool is_listening(int listener)
{
    int answer = 0;
    socklen_t size = sizeof answer;

    return getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &answer, &size) == 0 && answer;
}

bool http_adopt(int listener, char out[HTTP_ADDRESS_SIZE], pawl_error *error)
{
    struct address address = { .size = sizeof address.socket };
    char host[INET6_ADDRSTRLEN];
    bool is_v6;

    if (!is_listening(listener) || getsockname(listener, &address.socket.any, &address.size) != 0 ||
        (address.socket.any.sa_family != AF_INET && address.socket.any.sa_family != AF_INET6)) {
        fail(error, PAWL_INVALID_REQUEST,
             "the socket that was given: expected one that listens on an IP address");
        return false;
    }
    is_v6 = address.socket.any.sa_family == AF_INET6;
    inet_ntop(address.socket.any.sa_family,
              is_v6 ? (void *)&address.socket.v6.sin6_addr : (void *)&address.socket.v4.sin_addr,
              host, sizeof host);
    snprintf(out, HTTP_ADDRESS_SIZE, is_v6 ? "[%s]:%u" : "%s:%u", host, socket_port(listener));
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    return true;
}
