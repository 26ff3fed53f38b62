/* listen.c - an address in words, and a socket that has it. */
#include "surface/http/http_int.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
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

/* ---- Addresses ---- */

static bool is_v6(const struct address *address)
{
    return address->socket.any.sa_family == AF_INET6;
}

/* Where the union has the host's bytes. */
static void *host_of(struct address *address)
{
    return is_v6(address) ? (void *)&address->socket.v6.sin6_addr
                          : (void *)&address->socket.v4.sin_addr;
}

static in_port_t *port_of(struct address *address)
{
    return is_v6(address) ? &address->socket.v6.sin6_port : &address->socket.v4.sin_port;
}

static bool address_of(int listener, struct address *out)
{
    *out = (struct address){ .size = sizeof out->socket };
    return getsockname(listener, &out->socket.any, &out->size) == 0;
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
    snprintf(host, sizeof host, "%.*s", (int)(stop - start), text.data + start);
    if (rest.size > 0 && (rest.data[0] != ':' || !str_to_u64(str_from(rest, 1), &port)))
        return false;
    out->socket.any.sa_family = has_brackets ? AF_INET6 : AF_INET;
    out->size = has_brackets ? sizeof out->socket.v6 : sizeof out->socket.v4;
    *port_of(out) = htons((uint16_t)port);
    if (!has_brackets && strcmp(host, "localhost") == 0)
        out->socket.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (inet_pton(out->socket.any.sa_family, host, host_of(out)) != 1)
        return false;
    return port <= UINT16_MAX;
}

uint16_t socket_port(int listener)
{
    struct address address;

    return address_of(listener, &address) ? ntohs(*port_of(&address)) : 0;
}

bool socket_is_loopback(int listener)
{
    struct address address;

    if (!address_of(listener, &address))
        return false;
    if (is_v6(&address))
        return IN6_IS_ADDR_LOOPBACK(&address.socket.v6.sin6_addr);
    return ntohl(address.socket.v4.sin_addr.s_addr) >> 24 == 127;
}

/* ---- Sockets ---- */

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
        return http_fail(error, PAWL_INVALID_REQUEST,
                         "cannot listen on '%s': expected an address like 127.0.0.1:%d or [::1]:%d",
                         listen, HTTP_PORT, HTTP_PORT);
    listener = open_socket(&address);
    if (listener < 0)
        return http_fail(error, errno == EADDRINUSE ? PAWL_IN_USE : PAWL_INVALID_REQUEST,
                         "cannot listen on %s: %s; choose another address with --listen HOST:PORT",
                         listen,
                         errno == EADDRINUSE ? "another program listens there" : strerror(errno));
    *out_port = socket_port(listener);
    return listener;
}

/* ---- A socket that was opened elsewhere ---- */

bool http_adopt(int listener, char out[HTTP_ADDRESS_SIZE], pawl_error *error)
{
    struct address address;
    char host[INET6_ADDRSTRLEN];
    int listens = 0;
    socklen_t size = sizeof listens;

    if (getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens ||
        !address_of(listener, &address) ||
        (address.socket.any.sa_family != AF_INET && !is_v6(&address))) {
        http_fail(error, PAWL_INVALID_REQUEST,
                  "the socket that was given: expected one that listens on an IP address");
        return false;
    }
    inet_ntop(address.socket.any.sa_family, host_of(&address), host, sizeof host);
    snprintf(out, HTTP_ADDRESS_SIZE, is_v6(&address) ? "[%s]:%u" : "%s:%u", host,
             ntohs(*port_of(&address)));
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    return true;
}
