/* beat.c - an owner's lease: a thread that says every half second that this node is up.
 *
 * If it was declared dead meanwhile, another node may have claimed the shard: this store then
 * begins no more turns. A beat that fails is tried again with the next; the lease decides. */
#include "postgres_int.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void beat(struct postgres_store *store)
{
    struct scope scope;
    bool is_over = false;

    scope_init(&scope, store->heap, 0);
    if (link_connect(&store->beater, &scope) == PAWL_OK &&
        node_beat(&store->beater, &scope, store->node, &is_over) == PAWL_OK && is_over &&
        !atomic_exchange(&store->is_over, true) && store->lost)
        store->lost(store->lost_context,
                    "this node was declared dead, since it did not beat for longer than its "
                    "lease: another has the store");
    scope_fini(&scope);
}

static void *beat_on(void *context)
{
    struct postgres_store *store = context;
    struct pollfd stop = { .fd = store->stop_fd, .events = POLLIN };

    while (poll(&stop, 1, store->url.ttl_ms / BEATS_OF_A_LEASE) <= 0)
        beat(store);
    return NULL;
}

pawl_status beat_start(struct postgres_store *store, struct scope *scope)
{
    store->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (store->stop_fd < 0 || pthread_create(&store->beat_thread, NULL, beat_on, store) != 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the system has no thread left for keeping the store's lease");
    store->is_beating = true;
    return PAWL_OK;
}

void beat_stop(struct postgres_store *store)
{
    if (store->is_beating) {
        (void)eventfd_write(store->stop_fd, 1);
        (void)pthread_join(store->beat_thread, NULL);
    }
    store->is_beating = false;
    if (store->stop_fd >= 0)
        (void)close(store->stop_fd);
    store->stop_fd = -1;
}
