/* sites.c - the stores beside the first, as this server has them: their streams, and the thread
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
struct site {
    struct site *next;
    pawl *p;
    struct hub *hub;
};

/* ---- Streams ---- */

static struct site *find(const struct sites *sites, pawl *p)
{
    struct site *site = sites->first;

    while (site && site->p != p)
        site = site->next;
    return site;
}

/* Whoever asks uses the store, so it cannot be closed meanwhile. */
struct hub *site_hub(struct http_server *server, pawl *p)
{
    struct sites *sites = &server->sites;
    struct site *site;

    if (p == server->p)
        return server->hub;
    guard_lock(&sites->lock);
    site = find(sites, p);
    if (!site && !atomic_load(&server->is_stopping) && (site = calloc(1, sizeof *site)) != NULL) {
        site->p = p;
        site->hub = hub_start(p, NULL, NULL);
        site->next = sites->first;
        sites->first = site;
    }
    guard_unlock(&sites->lock);
    return site ? site->hub : NULL;
}

static void free_site(struct site *site)
{
    hub_free(site->hub);
    free(site);
}

/* Its last stream has ended: nobody uses it. */
static void on_closing(void *context, pawl *p)
{
    struct sites *sites = &((struct http_server *)context)->sites;
    struct site *site, **link = &sites->first;

    guard_lock(&sites->lock);
    site = find(sites, p);
    while (site && *link != site)
        link = &(*link)->next;
    if (site)
        *link = site->next;
    guard_unlock(&sites->lock);
    if (!site)
        return;
    if (site->hub)
        hub_end_streams(site->hub);
    free_site(site);
}

static pawl_status on_opened(void *context, pawl *p, pawl_error *error)
{
    const struct http_options *options = &((struct http_server *)context)->options;

    return options->opened ? options->opened(options->opened_context, p, error) : PAWL_OK;
}

struct stream_totals sites_streams(struct http_server *server)
{
    struct stream_totals totals = { server->hub->stream_count, server->hub->sent_bytes };

    guard_lock(&server->sites.lock);
    for (struct site *site = server->sites.first; site; site = site->next) {
        totals.count += site->hub ? site->hub->stream_count : 0;
        totals.bytes += site->hub ? site->hub->sent_bytes : 0;
    }
    guard_unlock(&server->sites.lock);
    return totals;
}

/* ---- The thread ---- */

static void *tend_thread(void *context)
{
    struct http_server *server = context;
    struct pollfd stop = { .fd = server->sites.stop_event, .events = POLLIN };

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

bool sites_start(struct http_server *server)
{
    struct sites *sites = &server->sites;

    guard_init(&sites->lock);
    sites->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    stores_set_hooks(server->p, &(struct store_hooks){ on_opened, on_closing, server });
    wake_all(server);
    if (sites->stop_event < 0)
        return false;
    errno = pthread_create(&sites->thread, NULL, tend_thread, server);
    sites->is_running = errno == 0;
    return sites->is_running;
}

/* The thread goes first: from then on nothing is opened or closed but by requests. */
void sites_end_streams(struct http_server *server)
{
    struct sites *sites = &server->sites;
    uint64_t one = 1;
    ssize_t written;

    if (sites->is_running) {
        written = write(sites->stop_event, &one, sizeof one);
        (void)written;
        pthread_join(sites->thread, NULL);
    }
    sites->is_running = false;
    guard_lock(&sites->lock);
    for (struct site *site = sites->first; site; site = site->next)
        if (site->hub)
            hub_end_streams(site->hub);
    guard_unlock(&sites->lock);
}

void sites_free(struct http_server *server)
{
    struct sites *sites = &server->sites;
    struct site *next;

    stores_set_hooks(server->p, NULL);
    for (struct site *site = sites->first; site; site = next) {
        next = site->next;
        free_site(site);
    }
    if (sites->stop_event >= 0)
        close(sites->stop_event);
    guard_fini(&sites->lock);
}
