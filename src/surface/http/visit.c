/* visit.c - connections and their patience: who is slow to send a request, or to take an answer, is
 * let go, so that nobody can hold the server by doing nothing. */
#include "surface/http/http_int.h"
#include <stdlib.h>
#include <sys/socket.h>

static struct visit *visit_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void visit_allow(struct MHD_Connection *connection, int seconds)
{
    struct visit *visit = visit_of(connection);

    if (visit)
        atomic_store(&visit->left_s, seconds);
}

struct http_server *visit_server(struct MHD_Connection *connection)
{
    const struct visit *visit = visit_of(connection);

    return visit ? visit->server : NULL;
}

static void begin_visit(struct http_server *server, struct MHD_Connection *connection, void **kept)
{
    struct visits *visits = &server->visits;
    struct visit *visit = calloc(1, sizeof *visit);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    *kept = visit;
    atomic_fetch_add(&visits->count, 1);
    if (!visit || !info) /* it has the daemon's own patience then */
        return;
    visit->server = server;
    visit->fd = info->connect_fd;
    atomic_init(&visit->left_s, VISIT_HEAD_S);
    guard_lock(&visits->lock);
    visit->next = visits->first;
    visit->link = &visits->first;
    if (visit->next)
        visit->next->link = &visit->next;
    visits->first = visit;
    guard_unlock(&visits->lock);
}

/* The daemon says so before it closes the descriptor. */
static void end_visit(struct visits *visits, struct visit *visit)
{
    atomic_fetch_sub(&visits->count, 1);
    if (!visit)
        return;
    guard_lock(&visits->lock);
    if (visit->link)
        *visit->link = visit->next;
    if (visit->next)
        visit->next->link = visit->link;
    guard_unlock(&visits->lock);
    free(visit);
}

void on_visit(void *context, struct MHD_Connection *connection, void **kept,
              enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        begin_visit(server, connection, kept);
    else
        end_visit(&server->visits, *kept);
}

/* Every second. A connection whose time is up is shut, and the daemon finds it at its end. */
void visits_age(void *context, uint32_t seconds)
{
    struct visits *visits = context;

    guard_lock(&visits->lock);
    for (struct visit *visit = visits->first; visit; visit = visit->next) {
        int left = atomic_load(&visit->left_s);

        if (left == VISIT_ANY_S)
            continue;
        if (left > (int)seconds) {
            atomic_compare_exchange_strong(&visit->left_s, &left, left - (int)seconds);
            continue;
        }
        atomic_store(&visit->left_s, VISIT_ANY_S);
        atomic_fetch_add(&visits->dropped, 1);
        shutdown(visit->fd, SHUT_RDWR);
    }
    guard_unlock(&visits->lock);
}
