/* siblings.c - the stores beside the first, as this server has them: their streams, and the thread
 * that opens them when something falls due and closes them when they rest. */
#include "api/stores.h"
#include "surface/http/stream_int.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TEND_MS 1000

/* ---- Streams: the hubs of those stores that have been streamed from since they were opened --- */

/* Where the list has the hub of this store; *link is NULL: nowhere. */
static struct hub **find(struct siblings *siblings, const pawl *p)
{
    struct hub **link = &siblings->first;

    ASSERT_HOLDS(&siblings->lock);
    while (*link && (*link)->p != p)
        link = &(*link)->next;
    return link;
}

/* The caller uses the store, so it cannot be closed meanwhile. */
struct hub *sibling_hub(struct http_server *server, pawl *p)
{
    struct siblings *siblings = &server->siblings;
    struct hub **link, *hub;

    if (p == server->p)
        return server->hub;
    guard_lock(&siblings->lock);
    link = find(siblings, p);
    if (!*link && !atomic_load(&server->is_stopping))
        *link = hub_start(p, NULL, NULL);
    hub = *link;
    guard_unlock(&siblings->lock);
    return hub;
}

/* Its last stream has ended: nothing uses it. */
static void on_closing(void *context, pawl *p)
{
    struct siblings *siblings = &((struct http_server *)context)->siblings;
    struct hub **link, *hub;

    guard_lock(&siblings->lock);
    link = find(siblings, p);
    hub = *link;
    if (hub)
        *link = hub->next;
    guard_unlock(&siblings->lock);
    hub_end_streams(hub);
    hub_free(hub);
}

static pawl_status on_opened(void *context, pawl *p, pawl_error *error)
{
    const struct http_options *options = &((struct http_server *)context)->options;

    return options->opened ? options->opened(options->opened_context, p, error) : PAWL_OK;
}

struct stream_totals siblings_streams(struct http_server *server)
{
    struct stream_totals totals = { server->hub->stream_count, server->hub->sent_bytes };

    guard_lock(&server->siblings.lock);
    for (const struct hub *hub = server->siblings.first; hub; hub = hub->next) {
        totals.count += hub->stream_count;
        totals.bytes += hub->sent_bytes;
    }
    guard_unlock(&server->siblings.lock);
    return totals;
}

/* ---- The thread ---- */

static void *tend_thread(void *context)
{
    struct http_server *server = context;
    struct pollfd stop = { .fd = server->siblings.stop_event, .events = POLLIN };

    do
        stores_tend(server->p);
    while (poll(&stop, 1, TEND_MS) <= 0);
    return NULL;
}

/* A list that cannot be read now is no reason not to serve: each store is found when it is used. */
bool siblings_start(struct http_server *server)
{
    struct siblings *siblings = &server->siblings;
    struct scope scope;

    guard_init(&siblings->lock);
    siblings->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    stores_set_hooks(server->p, &(struct store_hooks){ on_opened, on_closing, server });
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    stores_wake(server->p, &scope);
    scope_fini(&scope);
    if (siblings->stop_event < 0)
        return false;
    errno = pthread_create(&siblings->thread, NULL, tend_thread, server);
    siblings->is_running = errno == 0;
    return siblings->is_running;
}

/* The thread goes first: from then on nothing is opened or closed but by requests. */
void siblings_end_streams(struct http_server *server)
{
    struct siblings *siblings = &server->siblings;

    if (siblings->is_running) {
        wake_fd(siblings->stop_event);
        pthread_join(siblings->thread, NULL);
    }
    siblings->is_running = false;
    guard_lock(&siblings->lock);
    for (struct hub *hub = siblings->first; hub; hub = hub->next)
        hub_end_streams(hub);
    guard_unlock(&siblings->lock);
}

void siblings_free(struct http_server *server)
{
    struct siblings *siblings = &server->siblings;
    struct hub *next;

    stores_set_hooks(server->p, NULL);
    for (struct hub *hub = siblings->first; hub; hub = next) {
        next = hub->next;
        hub_free(hub);
    }
    if (siblings->stop_event >= 0)
        close(siblings->stop_event);
    guard_fini(&siblings->lock);
}
