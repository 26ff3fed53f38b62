/* connections.c - open connections and their patience: a client that is slow to send a request, or
 * to take an answer, is disconnected, so that it cannot hold the server by doing nothing. */
#include "surface/http/http_int.h"
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

/* Its descriptor is closed after this, never before: connections_age() uses it under the lock. */
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

/* The daemon calls this before it closes the descriptor. Without memory a connection has the
 * daemon's own patience. */
void on_connection(void *context, struct MHD_Connection *connection, void **kept,
                   enum MHD_ConnectionNotificationCode code)
{
    struct http_connections *all = &((struct http_server *)context)->connections;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *kept = calloc(1, sizeof(struct http_connection));
        if (*kept)
            connection_join(all, *kept, connection_fd(connection));
    } else if (*kept) {
        connection_leave(all, *kept);
        free(*kept);
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
