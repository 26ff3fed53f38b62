/* peer.c - see peer.h. */
#include "base/limits.h"
#include "peer/peer_int.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEPT_MAX 256u  /* connections without a request */
#define KEPT_MS  20000 /* shorter than a server keeps an idle one */
#define SEND_MS  10000

struct kept {
    char address[PEER_ADDRESS_MAX];
    int fd;
    int64_t since_ms;
};

struct peers {
    const struct heap *heap;
    struct env *env;
    pthread_mutex_t lock;
    struct kept kept[KEPT_MAX];
    uint32_t count;
};

struct peers *peers_new(const struct heap *heap, struct env *env)
{
    struct peers *peers = heap_new(heap, sizeof *peers);

    if (!peers)
        return NULL;
    peers->heap = heap;
    peers->env = env;
    pthread_mutex_init(&peers->lock, NULL);
    return peers;
}

void peers_free(struct peers *peers)
{
    if (!peers)
        return;
    for (uint32_t i = 0; i < peers->count; i++)
        close(peers->kept[i].fd);
    pthread_mutex_destroy(&peers->lock);
    heap_free(peers->heap, peers, sizeof *peers);
}

/* ---- Connecting ---- */

/* "http://[::1]:7295" -> "::1" and "7295". */
static bool take_apart(const char *address, char host[PEER_ADDRESS_MAX], char port[8])
{
    str rest = str_after(str_of(address), '/');
    const char *colon;
    size_t size;

    if (strncmp(address, "http://", 7) != 0)
        return false;
    rest = str_from(rest, 1);
    colon = memrchr(rest.data, ':', rest.size);
    size = colon ? (size_t)(colon - rest.data) : 0;
    if (!colon || size == 0 || size >= PEER_ADDRESS_MAX || rest.size - size - 1 > 5)
        return false;
    snprintf(port, 8, "%.*s", (int)(rest.size - size - 1), colon + 1);
    if (rest.data[0] == '[' && colon[-1] == ']')
        snprintf(host, PEER_ADDRESS_MAX, "%.*s", (int)size - 2, rest.data + 1);
    else
        snprintf(host, PEER_ADDRESS_MAX, "%.*s", (int)size, rest.data);
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        snprintf(host, PEER_ADDRESS_MAX, "%s", strchr(host, ':') ? "::1" : "127.0.0.1");
    return true;
}

static bool finish_connect(int fd)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    socklen_t size = sizeof errno;
    int code = ETIMEDOUT;

    if (poll(&ready, 1, PEER_CONNECT_MS) <= 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size))
        errno = code;
    else
        errno = code;
    return errno == 0;
}

static int dial_one(const struct addrinfo *at)
{
    int one = 1, fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0 ||
        (errno == EINPROGRESS && finish_connect(fd)))
        return fd;
    one = errno;
    close(fd);
    errno = one;
    return -1;
}

/* -1, with errno. */
static int dial(const char *address)
{
    struct addrinfo wanted = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    char host[PEER_ADDRESS_MAX], port[8];
    int fd = -1;

    errno = EINVAL;
    if (!take_apart(address, host, port))
        return -1;
    if (getaddrinfo(host, port, &wanted, &found) != 0) {
        errno = EHOSTUNREACH;
        return -1;
    }
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = dial_one(at);
    freeaddrinfo(found);
    return fd;
}

bool peer_reaches(const char *address, bool *refuses)
{
    int fd = dial(address);

    *refuses = fd < 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* ---- Kept connections ---- */

/* Neither closed by the other side nor with an answer that is not waited for. */
static bool is_sound(int fd)
{
    struct pollfd look = { .fd = fd, .events = POLLIN };

    return poll(&look, 1, 0) == 0;
}

static int take_kept(struct peers *peers, const char *address)
{
    int64_t now_ms = peers->env->tick_ms(peers->env);
    int fd = -1;

    pthread_mutex_lock(&peers->lock);
    for (uint32_t i = peers->count; i > 0 && fd < 0; i--) {
        struct kept *kept = &peers->kept[i - 1];
        bool is_old = now_ms - kept->since_ms > KEPT_MS;

        if (!is_old && strcmp(kept->address, address) != 0)
            continue;
        if (is_old || !is_sound(kept->fd))
            close(kept->fd);
        else
            fd = kept->fd;
        *kept = peers->kept[--peers->count];
    }
    pthread_mutex_unlock(&peers->lock);
    return fd;
}

static void keep(struct peers *peers, const char *address, int fd)
{
    pthread_mutex_lock(&peers->lock);
    if (peers->count == KEPT_MAX) {
        close(fd);
    } else {
        struct kept *kept = &peers->kept[peers->count++];

        snprintf(kept->address, sizeof kept->address, "%s", address);
        kept->fd = fd;
        kept->since_ms = peers->env->tick_ms(peers->env);
    }
    pthread_mutex_unlock(&peers->lock);
}

/* ---- Asking ---- */

static void print_request(const char *address, const struct peer_request *request, struct buf *out)
{
    buf_fmt(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", request->method, request->target, address + 7);
    for (const struct peer_header *header = request->headers; header && header->name; header++)
        if (header->value.data)
            buf_fmt(out, "%s: %.*s\r\n", header->name, STR_ARG(header->value));
    if (request->body.data || strcmp(request->method, "GET") != 0)
        buf_fmt(out, "Content-Length: %zu\r\n", request->body.size);
    buf_str(out, STR("\r\n"));
    buf_str(out, request->body);
}

/* *is_begun: some of it may have arrived. */
static bool send_all(int fd, str bytes, bool *is_begun)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };

    while (bytes.size > 0) {
        ssize_t size = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);

        if (size > 0) {
            *is_begun = true;
            bytes = str_from(bytes, (size_t)size);
        } else if (errno != EINTR && (errno != EAGAIN || poll(&ready, 1, SEND_MS) <= 0)) {
            return false;
        }
    }
    return true;
}

/* False: the connection ended, or waiting was given up. */
static bool receive(int fd, const struct peer_request *request, struct peer_intake *intake)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    char block[16384];

    for (;;) {
        ssize_t size = recv(fd, block, sizeof block, 0);

        if (size > 0) {
            if (intake_take(intake, (str){ block, (size_t)size }))
                return intake->is_whole;
        } else if (size == 0) {
            return intake_end(intake);
        } else if (errno != EAGAIN && errno != EINTR) {
            return false;
        } else if (poll(&ready, 1, PEER_LOOK_MS) == 0 && request->may_wait &&
                   !request->may_wait(request->context)) {
            return false;
        }
    }
}

static void fail(struct peer_answer *answer, enum peer_end end, const char *why)
{
    answer->end = end;
    answer->why = why;
}

static void ask(struct peers *peers, struct scope *scope, const char *address, int fd,
                const struct peer_request *request, struct buf *out, struct peer_answer *answer)
{
    struct peer_intake intake = { .body = out, .begun = out->size, .scope = scope };
    bool is_begun = false, is_sent, is_done = false;
    struct buf text;

    buf_init(&text, peers->heap, PEER_ANSWER_MAX);
    buf_init(&intake.held, peers->heap, PEER_ANSWER_MAX);
    print_request(address, request, &text);
    is_sent = !text.failed && send_all(fd, buf_view(&text), &is_begun);
    if (is_sent)
        is_done = receive(fd, request, &intake);
    if (is_done)
        *answer = (struct peer_answer){ .status = intake.status, .type = intake.type };
    else if (!is_begun)
        fail(answer, PEER_NOT_SENT, "the connection was closed");
    else
        fail(answer, PEER_UNKNOWN, "the connection ended, or was given up, before the answer");
    if (!is_done)
        out->size = intake.begun;
    if (is_done && intake.is_kept && intake.held.size == 0)
        keep(peers, address, fd);
    else
        close(fd);
    buf_fini(&text);
    buf_fini(&intake.held);
}

void peer_call(struct peers *peers, struct scope *scope, const char *address,
               const struct peer_request *request, struct buf *out, struct peer_answer *answer)
{
    int fd = take_kept(peers, address);

    *answer = (struct peer_answer){ .end = PEER_ANSWERED };
    if (fd < 0)
        fd = dial(address);
    if (fd >= 0) {
        ask(peers, scope, address, fd, request, out, answer);
        return;
    }
    answer->was_refused = errno == ECONNREFUSED;
    fail(answer, PEER_NOT_SENT,
         answer->was_refused ? "nothing listens there" : "it cannot be reached");
}
