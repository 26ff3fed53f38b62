/* acceptor.c - accepts connections, waits for the head of the first request, and picks the daemon
 * that serves the connection: streams of entries have a daemon of their own.
 *
 * Looking takes nothing out of the socket, so the library reads all of it. Nothing is parsed here
 * but the end of the head and the target of its first line. Two kinds of heads are rejected here,
 * because no callback of the library shows them: without an end within HEAD_LOOK bytes, and
 * ambiguous ones. */
#include "api/world.h"
#include "surface/http/http_int.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define ARRIVALS_MAX    4096u /* that are waited for; more go to the library as they are */
#define HEAD_LOOK       8192u
#define STREAM_HEAD_MAX 2048u /* what the small memory of a stream's connection surely holds, */
#define STREAM_NOTES    3200u /* with what the library notes of each line */
#define LINE_NOTE       64u
#define EVENTS          64
#define ACCEPTS         64 /* at once, before others are looked at */
#define FULL_WAIT_MS    20 /* no file is left for a connection: try again */

/* ---- Arrivals ---- */

/* Returns its descriptor. */
static int forget(struct acceptor *acceptor, struct http_connection *arrival)
{
    int fd = arrival->fd;

    connection_leave(&acceptor->server->arrivals, arrival);
    epoll_ctl(acceptor->epoll, EPOLL_CTL_DEL, fd, NULL);
    free(arrival);
    return fd;
}

static void drop(struct acceptor *acceptor, struct http_connection *arrival)
{
    close(forget(acceptor, arrival));
}

/* The descriptor is the library's from now on, also if it cannot take it. The library wants an
 * address beside it, which nothing here asks for. */
static void pass_on(struct MHD_Daemon *daemon, int fd)
{
    struct sockaddr_in address = { .sin_family = AF_INET };

    MHD_add_connection(daemon, fd, (struct sockaddr *)&address, sizeof address);
}

/* Edge-triggered, because bytes that have been looked at are still in the socket. If too many wait,
 * or without memory, the library takes the connection as it is. */
static void wait_for_head(struct acceptor *acceptor, int fd)
{
    struct http_connections *arrivals = &acceptor->server->arrivals;
    struct http_connection *arrival =
        atomic_load(&arrivals->count) < ARRIVALS_MAX ? calloc(1, sizeof *arrival) : NULL;
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = arrival };

    if (arrival && epoll_ctl(acceptor->epoll, EPOLL_CTL_ADD, fd, &event) == 0) {
        connection_join(arrivals, arrival, fd);
    } else {
        free(arrival);
        pass_on(acceptor->server->daemon, fd);
    }
}

static void accept_some(struct acceptor *acceptor)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(acceptor->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            wait_for_head(acceptor, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            poll(NULL, 0, FULL_WAIT_MS);
        return;
    }
}

/* ---- Rejecting ---- */

static void discard(struct acceptor *acceptor, struct http_connection *arrival)
{
    char block[HEAD_LOOK];
    ssize_t size;

    do
        size = recv(arrival->fd, block, sizeof block, MSG_DONTWAIT);
    while (size > 0);
    if (size == 0 || (errno != EAGAIN && errno != EINTR))
        drop(acceptor, arrival);
}

static void reject(struct acceptor *acceptor, struct http_connection *arrival, pawl_status status,
                   const char *words)
{
    char target[1] = "";
    struct web_request request = { .server = acceptor->server, .target = target };

    request_number(&request);
    request.begun_us = world_tick_us(acceptor->server->p);
    request.status = status;
    snprintf(request.scope.error.message, sizeof request.scope.error.message, "%s", words);
    connection_wait(arrival, PATIENCE_REJECTED);
    if (reject_past(&request, arrival->fd) && shutdown(arrival->fd, SHUT_WR) == 0)
        discard(acceptor, arrival);
    else
        drop(acceptor, arrival);
}

/* ---- Looking ---- */

/* With the empty line that ends it; 0: that has not arrived. */
static size_t head_size(str bytes)
{
    size_t at = 0;
    const char *end;

    while (at < bytes.size && (end = memchr(bytes.data + at, '\n', bytes.size - at)) != NULL) {
        size_t line = (size_t)(end - bytes.data) - at;

        at += line + 1;
        if (line == 0 || (line == 1 && end[-1] == '\r'))
            return at;
    }
    return 0;
}

/* A NUL, a folded line, a line without a name: the library reads these in its own way, and an
 * intermediary may read them in another. Its callbacks do not show them. */
static bool is_ambiguous(str head)
{
    bool begins = true; /* a line */

    for (size_t i = 0; i < head.size; i++) {
        if (!head.data[i] || (begins && strchr(" \t:", head.data[i])))
            return true;
        begins = head.data[i] == '\n';
    }
    return false;
}

static uint32_t count_lines(str head)
{
    uint32_t count = 0;

    for (size_t i = 0; i < head.size; i++)
        count += head.data[i] == '\n';
    return count;
}

static bool has_line(str head, str line)
{
    for (size_t i = 0; i + line.size <= head.size; i++)
        if (strncasecmp(head.data + i, line.data, line.size) == 0)
            return true;
    return false;
}

/* "GET .../events", "GET /mcp", or a POST of MCP that says that it listens; each perhaps with a
 * query. If it is none after all, it is answered all the same. */
static bool begins_with_stream(str head)
{
    const str get = STR("GET "), post = STR("POST /mcp "), events = STR("/events");
    size_t size = get.size;

    if (str_starts(head, post))
        return has_line(head, STR("\nMcp-Method: subscriptions/listen"));
    if (!str_starts(head, get))
        return false;
    while (size < head.size && !strchr(" ?\n", head.data[size]))
        size++;
    if (str_is((str){ head.data + get.size, size - get.size }, "/mcp"))
        return true;
    return size >= get.size + events.size &&
           memcmp(head.data + size - events.size, events.data, events.size) == 0;
}

/* has_ended: it will send no more. */
static void look(struct acceptor *acceptor, struct http_connection *arrival, bool has_ended)
{
    char bytes[HEAD_LOOK];
    ssize_t size = recv(arrival->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    str head = { bytes, size > 0 ? (size_t)size : 0 };
    bool is_stream;

    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        drop(acceptor, arrival);
        return;
    }
    head = str_from(head, str_span(head, "\r\n")); /* without empty lines */
    head.size = head_size(head);
    is_stream = head.size <= STREAM_HEAD_MAX && begins_with_stream(head) &&
                head.size + (size_t)LINE_NOTE * count_lines(head) <= STREAM_NOTES;
    if (is_ambiguous(head))
        reject(acceptor, arrival, PAWL_INVALID_REQUEST,
               "the head: expected lines of the form NAME: VALUE, found a NUL, a line that begins "
               "with a blank, or no name");
    else if (head.size > 0)
        pass_on(is_stream ? acceptor->server->stream_daemon : acceptor->server->daemon,
                forget(acceptor, arrival));
    else if (size == HEAD_LOOK)
        reject(acceptor, arrival, PAWL_TOO_LARGE, HEAD_TOO_LARGE);
    else if (has_ended)
        drop(acceptor, arrival);
}

/* ---- The thread ---- */

/* False: stop. There is one event for each arrival in a round, so none is of one that has ended. */
static bool take_events(struct acceptor *acceptor, struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        struct http_connection *arrival = events[i].data.ptr;

        if (events[i].data.ptr == &acceptor->stop_event)
            return false;
        if (events[i].data.ptr == &acceptor->listener)
            accept_some(acceptor);
        else if (atomic_load(&arrival->patience) == PATIENCE_REJECTED)
            discard(acceptor, arrival);
        else
            look(acceptor, arrival, events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
    }
    return true;
}

static void *acceptor_thread(void *context)
{
    struct acceptor *acceptor = context;
    struct epoll_event events[EVENTS];
    int count;

    do
        count = epoll_wait(acceptor->epoll, events, EVENTS, -1);
    while (count < 0 || take_events(acceptor, events, count));
    return NULL;
}

static bool watch(struct acceptor *acceptor, int *fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = fd };

    return epoll_ctl(acceptor->epoll, EPOLL_CTL_ADD, *fd, &event) == 0;
}

bool acceptor_start(struct http_server *server, int listener)
{
    struct acceptor *acceptor = &server->acceptor;

    *acceptor = (struct acceptor){ .server = server,
                                   .listener = listener,
                                   .epoll = epoll_create1(EPOLL_CLOEXEC),
                                   .stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    if (watch(acceptor, &acceptor->listener) && watch(acceptor, &acceptor->stop_event) &&
        (errno = pthread_create(&acceptor->thread, NULL, acceptor_thread, acceptor)) == 0)
        return true;
    close(acceptor->epoll);
    close(acceptor->stop_event);
    return false;
}

void acceptor_stop(struct http_server *server)
{
    struct acceptor *acceptor = &server->acceptor;

    wake_fd(acceptor->stop_event);
    pthread_join(acceptor->thread, NULL);
    while (server->arrivals.first)
        drop(acceptor, server->arrivals.first);
    close(acceptor->listener);
    close(acceptor->epoll);
    close(acceptor->stop_event);
}
