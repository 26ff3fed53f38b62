/* porter.c - accepts connections, and looks at the first request of each before the library gets
 * it: one that is malformed is told so here, in our words (head.c says why).
 *
 * Looking takes nothing out of the socket, so the library finds all of it. A slow client waits
 * here, until its head and a short body have arrived, and delays no other. */
#include "surface/http/porter.h"
#include "api/world.h"
#include "surface/http/head.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUESTS_MAX   4096u /* that are waited for; more go to the library as they are */
#define EVENTS       64
#define ACCEPTS      64 /* at once, before others are looked at */
#define TICK_MS      1000
#define LEAVE_S      2  /* to take a refusal, so that closing does not destroy it */
#define FULL_WAIT_MS 20 /* no file is left for a connection: try again */

struct guest {
    struct guest *next, **link;
    int fd;
    int64_t until_ms;
    bool is_stream;  /* its first request is for a stream */
    bool has_head;   /* of its first request, well-formed */
    bool is_leaving; /* it has been refused: what it still sends is thrown away */
    struct sockaddr_storage address;
    socklen_t address_size;
};

struct porter {
    struct http_server *server;
    int listener, epoll, stop_event;
    pthread_t thread;
    struct guest *first;
    uint32_t count;
};

static int64_t now_ms(const struct porter *porter)
{
    return world_tick_us(porter->server->p) / 1000;
}

/* ---- Guests ---- */

static void forget(struct porter *porter, struct guest *guest)
{
    if (guest->link) {
        *guest->link = guest->next;
        if (guest->next)
            guest->next->link = guest->link;
        porter->count--;
        atomic_fetch_sub(&porter->server->visits.count, 1);
        epoll_ctl(porter->epoll, EPOLL_CTL_DEL, guest->fd, NULL);
    }
    free(guest);
}

static void drop(struct porter *porter, struct guest *guest)
{
    int fd = guest->fd;

    forget(porter, guest);
    close(fd);
}

/* The descriptor is the library's from now on, also if it cannot take it. */
static void pass_on(struct porter *porter, struct guest *guest)
{
    struct sockaddr_storage address = guest->address;
    socklen_t size = guest->address_size;
    struct http_server *server = porter->server;
    struct MHD_Daemon *daemon = guest->is_stream ? server->stream_daemon : server->daemon;
    int fd = guest->fd;

    forget(porter, guest);
    MHD_add_connection(daemon, fd, (struct sockaddr *)&address, size);
}

/* Told at each arrival (edge-triggered): what was looked at is still there. */
static bool keep(struct porter *porter, struct guest *guest, int64_t seconds)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = guest };

    guest->until_ms = now_ms(porter) + seconds * 1000;
    if (guest->link)
        return true;
    if (epoll_ctl(porter->epoll, EPOLL_CTL_ADD, guest->fd, &event) != 0)
        return false;
    guest->next = porter->first;
    guest->link = &porter->first;
    if (guest->next)
        guest->next->link = &guest->next;
    porter->first = guest;
    porter->count++;
    atomic_fetch_add(&porter->server->visits.count, 1); /* a connection like any other */
    return true;
}

/* ---- Refusing ---- */

/* One write into an empty socket: it takes a kilobyte. */
static void refuse(struct porter *porter, struct guest *guest, const struct head_refusal *refusal)
{
    char target[1] = "";
    struct request request = { .server = porter->server, .target = target };
    struct buf body, answer;

    buf_init(&body, &heap_libc, LIMIT_TEXT);
    buf_init(&answer, &heap_libc, LIMIT_TEXT);
    request_number(&request);
    request.status = refusal->status;
    request.result.http_status = pawl_status_http(refusal->status);
    op_problem(refusal->status, refusal->words, &body);
    print_refusal(request.id, request.result.http_status, buf_view(&body), &answer);
    request.begun_us = world_tick_us(porter->server->p);
    count_answer(&request);
    guest->is_leaving = true;
    if (answer.failed || send(guest->fd, answer.data, answer.size, MSG_NOSIGNAL) < 0 ||
        shutdown(guest->fd, SHUT_WR) != 0 || !keep(porter, guest, LEAVE_S))
        drop(porter, guest);
    buf_fini(&answer);
    buf_fini(&body);
}

static void throw_away(struct porter *porter, struct guest *guest)
{
    char block[HEAD_LOOK];
    ssize_t size;

    do
        size = recv(guest->fd, block, sizeof block, MSG_DONTWAIT);
    while (size > 0);
    if (size == 0 || (errno != EAGAIN && errno != EINTR))
        drop(porter, guest);
}

/* ---- Looking ---- */

/* Everything that a client sent is in the socket once its end is: nothing was taken out. */
static bool is_cut_short(const struct guest *guest, uint64_t size)
{
    struct pollfd end = { .fd = guest->fd, .events = POLLRDHUP };
    int there = 0;

    return size > 0 && poll(&end, 1, 0) > 0 && (end.revents & POLLRDHUP) &&
           ioctl(guest->fd, FIONREAD, &there) == 0 && (uint64_t)there < size;
}

/* A short body is waited for here: the library closes without an answer if its client closes its
 * side in the middle. */
static void meet(struct porter *porter, struct guest *guest, str bytes)
{
    static const struct head_refusal cut = {
        PAWL_INVALID_REQUEST, "the body: expected as many bytes as Content-Length says, found "
                              "fewer before the client closed its side"
    };
    bool is_expecting;
    uint64_t size = head_request_size(bytes, &is_expecting);
    bool is_first = !guest->has_head;

    guest->has_head = true;
    guest->is_stream = head_is_stream(bytes);
    if (is_cut_short(guest, size))
        refuse(porter, guest, &cut);
    else if (size <= bytes.size || size > HEAD_LOOK || is_expecting || porter->count >= GUESTS_MAX)
        pass_on(porter, guest);
    else if (is_first && !keep(porter, guest, VISIT_BODY_S))
        drop(porter, guest);
}

/* has_ended: it will send no more. */
static void look(struct porter *porter, struct guest *guest, bool has_ended)
{
    char bytes[HEAD_LOOK];
    ssize_t size = recv(guest->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    struct head_refusal refusal;
    enum head_verdict verdict = HEAD_MORE;

    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        drop(porter, guest);
        return;
    }
    if (size > 0)
        verdict = head_judge((str){ bytes, (size_t)size }, &refusal);
    if (verdict == HEAD_BAD)
        refuse(porter, guest, &refusal);
    else if (verdict == HEAD_SOUND)
        meet(porter, guest, (str){ bytes, (size_t)size });
    else if (porter->count >= GUESTS_MAX)
        pass_on(porter, guest);
    else if (has_ended || (!guest->link && !keep(porter, guest, VISIT_HEAD_S)))
        drop(porter, guest);
}

static void welcome(struct porter *porter)
{
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        int fd = accept4(porter->listener, (struct sockaddr *)&address, &size,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct guest *guest;

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                poll(NULL, 0, FULL_WAIT_MS);
            return;
        }
        guest = calloc(1, sizeof *guest);
        if (!guest) {
            close(fd);
            continue;
        }
        guest->fd = fd;
        guest->address = address;
        guest->address_size = size;
        look(porter, guest, false);
    }
}

static void drop_late(struct porter *porter)
{
    int64_t now = now_ms(porter);
    struct guest *next;

    for (struct guest *guest = porter->first; guest; guest = next) {
        next = guest->next;
        if (guest->until_ms > now)
            continue;
        if (!guest->is_leaving)
            atomic_fetch_add(&porter->server->visits.dropped, 1);
        drop(porter, guest);
    }
}

/* ---- The thread ---- */

/* False: it is told to stop. An event may be of a guest that an earlier one of the same round has
 * ended: there is only one event for each in a round, so none is. */
static bool take_events(struct porter *porter, struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        struct guest *guest = events[i].data.ptr;

        if (events[i].data.ptr == &porter->stop_event)
            return false;
        if (events[i].data.ptr == &porter->listener)
            welcome(porter);
        else if (guest->is_leaving)
            throw_away(porter, guest);
        else
            look(porter, guest, events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
    }
    return true;
}

static void *porter_thread(void *context)
{
    struct porter *porter = context;
    struct epoll_event events[EVENTS];
    int64_t aged_ms = now_ms(porter);

    for (;;) {
        int count = epoll_wait(porter->epoll, events, EVENTS, porter->count ? TICK_MS : -1);

        if (count > 0 && !take_events(porter, events, count))
            return NULL;
        if (now_ms(porter) - aged_ms < TICK_MS)
            continue;
        aged_ms = now_ms(porter);
        drop_late(porter);
    }
}

static bool watch(struct porter *porter, int *fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = fd };

    return epoll_ctl(porter->epoll, EPOLL_CTL_ADD, *fd, &event) == 0;
}

struct porter *porter_start(struct http_server *server, int listener)
{
    struct porter *porter = calloc(1, sizeof *porter);

    if (!porter)
        return NULL;
    porter->server = server;
    porter->listener = listener;
    porter->epoll = epoll_create1(EPOLL_CLOEXEC);
    porter->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (porter->epoll >= 0 && porter->stop_event >= 0 && watch(porter, &porter->listener) &&
        watch(porter, &porter->stop_event) &&
        (errno = pthread_create(&porter->thread, NULL, porter_thread, porter)) == 0)
        return porter;
    close(porter->epoll);
    close(porter->stop_event);
    free(porter);
    return NULL;
}

void porter_stop(struct porter *porter)
{
    uint64_t one = 1;
    ssize_t written;

    if (!porter)
        return;
    written = write(porter->stop_event, &one, sizeof one);
    (void)written;
    pthread_join(porter->thread, NULL);
    while (porter->first)
        drop(porter, porter->first);
    close(porter->listener);
    close(porter->epoll);
    close(porter->stop_event);
    free(porter);
}
