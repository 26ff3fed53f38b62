/* client.c - many keep-alive connections from one thread: as little of the machine as possible
 * for the one who measures. */
#include "bench.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_SIZE 2048
#define EVENTS    256

/* An answer under way: its head is kept, of its body only the size is counted. */
struct line {
    int fd;
    size_t used, left;
    char head[HEAD_SIZE];
    bool has_head;
};

int http_connect(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void send_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);

        if (sent < 0)
            die("send: %s", strerror(errno));
        text += sent;
        size -= (size_t)sent;
    }
}

/* Take in what came; true: the answer is whole. */
static bool take_in(struct line *line)
{
    static _Thread_local char piece[65536];
    ssize_t size = recv(line->fd, piece, sizeof piece, 0);
    const char *end, *length;
    size_t kept;

    if (size <= 0)
        die("the server has closed a connection");
    if (line->has_head) {
        line->left -= (size_t)size;
        return line->left == 0;
    }
    kept = (size_t)size < HEAD_SIZE - 1 - line->used ? (size_t)size : HEAD_SIZE - 1 - line->used;
    memcpy(line->head + line->used, piece, kept);
    line->used += (size_t)size;
    line->head[line->used < HEAD_SIZE - 1 ? line->used : HEAD_SIZE - 1] = '\0';
    end = strstr(line->head, "\r\n\r\n");
    if (!end)
        return false;
    length = strcasestr(line->head, "content-length:");
    if (strncmp(line->head, "HTTP/1.1 200", 12) != 0 || !length)
        die("expected 200 with a length, found: %s", line->head);
    line->has_head = true;
    line->left = (size_t)(end + 4 - line->head) + strtoul(length + 15, NULL, 10) - line->used;
    return line->left == 0;
}

static void ask(struct line *line, const struct question *question)
{
    size_t size;
    const char *text = question->next(question->context, &size);

    line->used = line->left = 0;
    line->has_head = false;
    send_all(line->fd, text, size);
}

void http_ask(int fd, const char *path, const char *body, char *answer, size_t room)
{
    char head[512];
    size_t used = 0, wanted = room;
    int size = snprintf(head, sizeof head,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        path, strlen(body));

    send_all(fd, head, (size_t)size);
    send_all(fd, body, strlen(body));
    while (used < wanted) {
        ssize_t got = recv(fd, answer + used, room - 1 - used, 0);
        const char *end, *length;

        if (got <= 0)
            die("the server has closed a connection");
        used += (size_t)got;
        answer[used] = '\0';
        end = strstr(answer, "\r\n\r\n");
        length = end ? strcasestr(answer, "content-length:") : NULL;
        if (length)
            wanted = (size_t)(end + 4 - answer) + strtoul(length + 15, NULL, 10);
    }
    if (strncmp(answer, "HTTP/1.1 20", 11) != 0)
        die("POST %s: expected a success, found: %s", path, answer);
    memmove(answer, strstr(answer, "\r\n\r\n") + 4,
            used - (size_t)(strstr(answer, "\r\n\r\n") + 4 - answer) + 1);
}

double http_rate(int port, int connections, double seconds, const struct question *question)
{
    struct line *lines = get_memory(sizeof *lines * (size_t)connections);
    struct epoll_event events[EVENTS];
    int loop = epoll_create1(EPOLL_CLOEXEC);
    double begin = now_s(), until = begin + seconds;
    size_t answers = 0;

    for (int i = 0; i < connections; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = &lines[i] };

        lines[i].fd = http_connect(port);
        if (epoll_ctl(loop, EPOLL_CTL_ADD, lines[i].fd, &event) != 0)
            die("epoll: %s", strerror(errno));
        ask(&lines[i], question);
    }
    while (now_s() < until) {
        int count = epoll_wait(loop, events, EVENTS, 1000);

        for (int i = 0; i < count; i++) {
            struct line *line = events[i].data.ptr;

            if (!take_in(line))
                continue;
            answers++;
            ask(line, question);
        }
    }
    until = now_s();
    for (int i = 0; i < connections; i++)
        close(lines[i].fd);
    close(loop);
    free(lines);
    return (double)answers / (until - begin);
}

/* ---- Streams ---- */

void files_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Read from all of them until each has said `word`. */
static void wait_for_word(const int *streams, int count, const char *word)
{
    struct epoll_event events[EVENTS];
    int loop = epoll_create1(EPOLL_CLOEXEC), left = count;
    char text[4096];

    for (int i = 0; i < count; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.fd = streams[i] };

        epoll_ctl(loop, EPOLL_CTL_ADD, streams[i], &event);
    }
    while (left > 0) {
        int ready = epoll_wait(loop, events, EVENTS, 30000);

        if (ready <= 0)
            die("%d streams wait in vain for '%s'", left, word);
        for (int i = 0; i < ready; i++) {
            ssize_t size = recv(events[i].data.fd, text, sizeof text - 1, 0);

            if (size <= 0)
                die("a stream has ended");
            text[size] = '\0';
            if (!strstr(text, word))
                continue;
            epoll_ctl(loop, EPOLL_CTL_DEL, events[i].data.fd, NULL);
            left--;
        }
    }
    close(loop);
}

void streams_open(int port, int *streams, int count, const char *text, const char *word)
{
    for (int i = 0; i < count; i++) {
        streams[i] = http_connect(port);
        send_all(streams[i], text, strlen(text));
        if (i % 500 == 499 || i == count - 1)
            wait_for_word(streams + i / 500 * 500, i % 500 + 1, word);
    }
}

double streams_hear(const int *streams, int count, int port, const struct question *question,
                    const char *word)
{
    struct line line = { .fd = http_connect(port) };
    double begin = now_s();

    ask(&line, question);
    wait_for_word(streams, count, word);
    begin = now_s() - begin;
    close(line.fd);
    return begin;
}
