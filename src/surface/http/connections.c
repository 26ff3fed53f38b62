/* connections.c - open connections and their patience: a client that is slow to send a request, or
 * to take an answer, is disconnected, so that it cannot hold the server by doing nothing. */
#include "api/stores.h"
#include "api/world.h"
#include "surface/http/http_int.h"
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const int patience_s[] = {
#define X(name, seconds) seconds,
    PATIENCE_MAP(X)
#undef X
};

/* ---- Lists ---- */

void connection_join(struct http_connections *all, struct http_connection *connection, int fd)
{
    connection->fd = fd;
    connection_wait(connection, PATIENCE_HEAD);
    guard_lock(&all->lock);
    connection->next = all->first;
    connection->link = &all->first;
    if (connection->next)
        connection->next->link = &connection->next;
    all->first = connection;
    guard_unlock(&all->lock);
    atomic_fetch_add(&all->count, 1);
}

/* Its descriptor is closed after this, never before: connections_age() may be using it. */
void connection_leave(struct http_connections *all, struct http_connection *connection)
{
    atomic_fetch_sub(&all->count, 1);
    guard_lock(&all->lock);
    *connection->link = connection->next;
    if (connection->next)
        connection->next->link = connection->link;
    guard_unlock(&all->lock);
}

void connection_wait(struct http_connection *connection, enum patience patience)
{
    atomic_store(&connection->patience, patience);
    atomic_store(&connection->left_s, patience_s[patience]);
}

uint32_t connections_count(const struct http_server *server)
{
    return atomic_load(&server->connections.count) + atomic_load(&server->arrivals.count);
}

/* ---- The library's connections ---- */

static struct http_connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

int connection_fd(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

void connection_allow(struct MHD_Connection *connection, enum patience patience)
{
    struct http_connection *known = connection_of(connection);

    if (known)
        connection_wait(known, patience);
}

/* ---- Steps in the last answer ---- */

#define CLOSED   7  /* TCP_CLOSE of <netinet/tcp.h>, whose struct tcp_info is older */
#define UNREAD_S 30 /* a reset that comes later tells nothing: routers drop idle connections, too */

static bool read_info(int fd, struct tcp_info *out)
{
    socklen_t size = sizeof *out;

    memset(out, 0, sizeof *out);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, out, &size) == 0;
}

/* A kernel resets a connection whose process ended, or closed it, before it read all that came.
 * When both sides close in order the state is the same afterwards, but then the client's kernel has
 * acknowledged this side's FIN, which counts as one byte more than was sent. (Over TLS a reset may
 * follow an answer that was read.) */
static bool was_reset(const struct http_connection *connection)
{
    struct tcp_info info;

    return read_info(connection->fd, &info) && info.tcpi_state == CLOSED &&
           info.tcpi_bytes_sent > 0 &&
           info.tcpi_bytes_acked + info.tcpi_bytes_retrans <=
               info.tcpi_bytes_sent + connection->acked_before;
}

static void forget_given(struct http_connection *connection)
{
    if (connection->given.count > 0)
        op_given_free(&connection->given);
    free(connection->store);
    connection->store = NULL;
}

/* Without memory they are lost as those of a worker that died. */
void connection_gave(struct web_request *request)
{
    struct http_connection *known = connection_of(request->connection);
    struct pollfd look = { .fd = known ? known->fd : -1, .events = 0 };

    if (!known || is_tls(request->server))
        return;
    if (poll(&look, 1, 0) > 0 && (look.revents & POLLERR)) { /* reset, and not read from since */
        op_not_sent(request->p, &request->result.given);
        return;
    }
    known->given = op_given_copy(&request->result.given);
    known->store = strndup(request->store.data, request->store.size);
    known->given_at_us = world_tick_us(request->server->p);
}

void connection_asks(struct MHD_Connection *connection)
{
    struct http_connection *known = connection_of(connection);

    if (known)
        forget_given(known);
}

/* The client did not read the answer: its steps are ready again, and no attempt is spent. */
static void take_back(struct http_server *server, struct http_connection *connection)
{
    pawl *p;

    if (connection->given.count == 0 || !was_reset(connection) ||
        world_tick_us(server->p) - connection->given_at_us > UNREAD_S * INT64_C(1000000))
        return;
    p = connection->store ? store_enter_open(server->p, str_of(connection->store)) : NULL;
    if (!p)
        return;
    op_not_sent(p, &connection->given);
    store_leave(p);
}

/* The daemon calls this before it closes the descriptor. Without memory a connection has the
 * daemon's own patience. */
void on_connection(void *context, struct MHD_Connection *connection, void **kept,
                   enum MHD_ConnectionNotificationCode code)
{
    struct http_connections *all = &((struct http_server *)context)->connections;
    bool is_new = code == MHD_CONNECTION_NOTIFY_STARTED;
    struct http_connection *known = is_new ? calloc(1, sizeof *known) : *kept;
    struct tcp_info info;

    *kept = known;
    if (known && is_new) {
        int fd = connection_fd(connection);

        known->acked_before = read_info(fd, &info) ? info.tcpi_bytes_acked : 0;
        connection_join(all, known, fd);
    } else if (known) {
        take_back(context, known);
        forget_given(known);
        connection_leave(all, known);
        free(known);
    }
}

/* ---- Patience ---- */

/* The library may have read the last bytes of a request together with the news that the client has
 * closed its side: epoll reports both once, and the library would wait for more until its time is
 * up. Shutting down the side that is closed already makes epoll report it again. */
static void report_end_again(const struct http_connection *connection)
{
    struct pollfd end = { .fd = connection->fd, .events = POLLRDHUP };
    int unread = 0;

    if (poll(&end, 1, 0) > 0 && (end.revents & POLLRDHUP) &&
        ioctl(connection->fd, FIONREAD, &unread) == 0 && unread == 0)
        shutdown(connection->fd, SHUT_RD);
}

/* A connection whose time is up is shut down; the thread that serves it then finds it closed. */
static void age(struct http_connections *all, struct http_connection *connection, int seconds)
{
    int left = atomic_load(&connection->left_s);

    if (left == FOREVER)
        return;
    if (left > seconds) {
        atomic_compare_exchange_strong(&connection->left_s, &left, left - seconds);
        if (atomic_load(&connection->patience) == PATIENCE_BODY)
            report_end_again(connection);
        return;
    }
    atomic_store(&connection->left_s, FOREVER);
    if (atomic_load(&connection->patience) != PATIENCE_REJECTED)
        atomic_fetch_add(&all->dropped, 1);
    shutdown(connection->fd, SHUT_RDWR);
}

static void age_all(struct http_connections *all, int seconds)
{
    guard_lock(&all->lock);
    for (struct http_connection *connection = all->first; connection; connection = connection->next)
        age(all, connection, seconds);
    guard_unlock(&all->lock);
}

void connections_age(void *context, uint32_t seconds)
{
    struct http_server *server = context;

    age_all(&server->connections, (int)seconds);
    age_all(&server->arrivals, (int)seconds);
}
