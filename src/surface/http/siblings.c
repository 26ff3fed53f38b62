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

/* A store that has been streamed from since it was opened. */
struct sibling {
    struct sibling *next;
    pawl *p;
    struct hub *hub;
};

/* ---- Streams ---- */

static struct sibling *find(const struct siblings *siblings, pawl *p)
{
    struct sibling *sibling = siblings->first;

    while (sibling && sibling->p != p)
        sibling = sibling->next;
    return sibling;
}

/* Whoever asks uses the store, so it cannot be closed meanwhile. */
struct hub *sibling_hub(struct http_server *server, pawl *p)
{
    struct siblings *siblings = &server->siblings;
    struct sibling *sibling;

    if (p == server->p)
        return server->hub;
    guard_lock(&siblings->lock);
    sibling = find(siblings, p);
    if (!sibling && !atomic_load(&server->is_stopping) && (sibling = calloc(1, sizeof *sibling)) != NULL) {
        sibling->p = p;
        sibling->hub = hub_start(p, NULL, NULL);
        sibling->next = siblings->first;
        siblings->first = sibling;
    }
    guard_unlock(&siblings->lock);
    return sibling ? sibling->hub : NULL;
}

static void free_sibling(struct sibling *sibling)
{
    hub_free(sibling->hub);
    free(sibling);
}

/* Its last stream has ended: nobody uses it. */
static void on_closing(void *context, pawl *p)
{
    struct siblings *siblings = &((struct http_server *)context)->siblings;
    struct sibling *sibling, **link = &siblings->first;

    guard_lock(&siblings->lock);
    sibling = find(siblings, p);
    while (sibling && *link != sibling)
        link = &(*link)->next;
    if (sibling)
        *link = sibling->next;
    guard_unlock(&siblings->lock);
    if (!sibling)
        return;
    if (sibling->hub)
        hub_end_streams(sibling->hub);
    free_sibling(sibling);
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
    for (struct sibling *sibling = server->siblings.first; sibling; sibling = sibling->next) {
        totals.count += sibling->hub ? sibling->hub->stream_count : 0;
        totals.bytes += sibling->hub ? sibling->hub->sent_bytes : 0;
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
static void wake_all(struct http_server *server)
{
    struct scope scope;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    stores_wake(server->p, &scope);
    scope_fini(&scope);
}

bool siblings_start(struct http_server *server)
{
    struct siblings *siblings = &server->siblings;

    guard_init(&siblings->lock);
    siblings->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    stores_set_hooks(server->p, &(struct store_hooks){ on_opened, on_closing, server });
    wake_all(server);
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
    uint64_t one = 1;
    ssize_t written;

    if (siblings->is_running) {
        written = write(siblings->stop_event, &one, sizeof one);
        (void)written;
        pthread_join(siblings->thread, NULL);
    }
    siblings->is_running = false;
    guard_lock(&siblings->lock);
    for (struct sibling *sibling = siblings->first; sibling; sibling = sibling->next)
        if (sibling->hub)
            hub_end_streams(sibling->hub);
    guard_unlock(&siblings->lock);
}

void siblings_free(struct http_server *server)
{
    struct siblings *siblings = &server->siblings;
    struct sibling *next;

    stores_set_hooks(server->p, NULL);
    for (struct sibling *sibling = siblings->first; sibling; sibling = next) {
        next = sibling->next;
        free_sibling(sibling);
    }
    if (siblings->stop_event >= 0)
        close(siblings->stop_event);
    guard_fini(&siblings->lock);
}
