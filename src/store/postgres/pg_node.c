/* pg_node.c - see pg_node.h. A node of owners says every half second that it is up.
 *
 * If it was declared dead meanwhile, another node may have claimed its shards: their stores then
 * begin no more turns. A beat that fails is tried again with the next; the lease decides. */
#include "postgres_int.h"
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- Connections ---- */

/* No mutex fails: none has attributes. */
void shared_link_init(struct shared_link *shared)
{
    pthread_mutex_init(&shared->lock, NULL);
    pthread_mutex_init(&shared->queue_lock, NULL);
    pthread_cond_init(&shared->has_run, NULL);
}

void shared_link_fini(struct shared_link *shared)
{
    link_close(&shared->link);
    pthread_mutex_destroy(&shared->lock);
    pthread_mutex_destroy(&shared->queue_lock);
    pthread_cond_destroy(&shared->has_run);
}

void pg_node_link(const struct pg_node *node, struct pg_link *link, int deadline_ms)
{
    *link = (struct pg_link){
        .pq = node->beater.pq, .url = &node->url, .env = node->env, .deadline_ms = deadline_ms
    };
    snprintf(link->name, sizeof link->name, "pawl/%s", node->name);
}

struct shared_link *pg_node_lane(struct pg_node *node, uint32_t shard)
{
    return &node->lanes[shard % NODE_LINKS];
}

struct shared_link *pg_node_reader(struct pg_node *node, uint32_t shard)
{
    return &node->readers[shard % NODE_LINKS];
}

/* ---- Beginning and ending ---- */

static void node_free(struct pg_node *node)
{
    for (uint32_t i = 0; i < NODE_LINKS; i++) {
        shared_link_fini(&node->lanes[i]);
        shared_link_fini(&node->readers[i]);
    }
    link_close(&node->beater);
    pthread_mutex_destroy(&node->lock);
    scope_fini(&node->kept);
    if (node->env)
        node->env->close(node->env);
    heap_free(node->heap, node, sizeof *node);
}

static pawl_status prepare(struct pg_node *node, const struct store_options *options,
                           struct scope *scope, str rest)
{
    int deadline_ms;

    TRY_MEMORY(scope, node->env);
    TRY(pg_url_read(scope, &node->kept.arena, rest, &node->url));
    if (options->address)
        node->address = arena_text(&node->kept.arena, str_of(options->address));
    TRY_MEMORY(scope, !node->kept.arena.failed);
    node_name(node->env, node->name);
    node->beater.pq = pq_get(scope);
    if (!node->beater.pq)
        return PAWL_STORAGE_FAILURE;
    deadline_ms = options->own || options->member ? node->url.ttl_ms / 4 * 3 : SHARE_DEADLINE_MS;
    pg_node_link(node, &node->beater, deadline_ms);
    for (uint32_t i = 0; i < NODE_LINKS; i++) {
        pg_node_link(node, &node->lanes[i].link, deadline_ms);
        pg_node_link(node, &node->readers[i].link, READ_DEADLINE_MS);
    }
    return PAWL_OK;
}

pawl_status pg_node_new(const struct store_options *options, struct scope *scope, str rest,
                        struct pg_node **out)
{
    struct pg_node *node = heap_new(options->heap, sizeof *node);
    pawl_status status;

    TRY_MEMORY(scope, node);
    node->heap = options->heap;
    node->env = options->env->share(options->env);
    node->users = 1;
    node->stop_fd = -1;
    scope_init(&node->kept, node->heap, 0);
    pthread_mutex_init(&node->lock, NULL);
    for (uint32_t i = 0; i < NODE_LINKS; i++) {
        shared_link_init(&node->lanes[i]);
        shared_link_init(&node->readers[i]);
    }
    status = prepare(node, options, scope, rest);
    if (status == PAWL_OK)
        *out = node;
    else
        node_free(node);
    return status;
}

void pg_node_use(struct pg_node *node)
{
    pthread_mutex_lock(&node->lock);
    node->users++;
    pthread_mutex_unlock(&node->lock);
}

void pg_node_leave(struct pg_node *node)
{
    bool is_last;

    pthread_mutex_lock(&node->lock);
    is_last = --node->users == 0;
    pthread_mutex_unlock(&node->lock);
    if (is_last)
        node_free(node);
}

/* ---- The lease ---- */

static void tell_owners(struct pg_node *node)
{
    pthread_mutex_lock(&node->lock);
    for (struct postgres_store *store = node->owners; store; store = store->next_owner)
        if (store->lost)
            store->lost(store->lost_context,
                        "this node was declared dead, since it did not beat for longer than its "
                        "lease: another has the store");
    pthread_mutex_unlock(&node->lock);
}

static void beat(struct pg_node *node)
{
    struct scope scope;
    bool is_over = false;

    scope_init(&scope, node->heap, 0);
    if (link_connect(&node->beater, &scope) == PAWL_OK &&
        node_beat(&node->beater, &scope, node->name, &is_over) == PAWL_OK && is_over &&
        !atomic_exchange(&node->is_over, true))
        tell_owners(node);
    scope_fini(&scope);
}

static void *beat_on(void *context)
{
    struct pg_node *node = context;
    struct pollfd stop = { .fd = node->stop_fd, .events = POLLIN };

    while (poll(&stop, 1, node->url.ttl_ms / BEATS_OF_A_LEASE) <= 0)
        beat(node);
    return NULL;
}

static pawl_status start(struct pg_node *node, struct scope *scope)
{
    node->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (node->stop_fd < 0 || pthread_create(&node->beat_thread, NULL, beat_on, node) != 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the system has no thread left for keeping the store's lease");
    node->is_beating = true;
    return PAWL_OK;
}

static void stop(struct pg_node *node)
{
    if (node->is_beating) {
        (void)eventfd_write(node->stop_fd, 1);
        (void)pthread_join(node->beat_thread, NULL);
    }
    node->is_beating = false;
    if (node->stop_fd >= 0)
        (void)close(node->stop_fd);
    node->stop_fd = -1;
}

static void put_owner(struct pg_node *node, struct postgres_store *store)
{
    pthread_mutex_lock(&node->lock);
    store->next_owner = node->owners;
    node->owners = store;
    pthread_mutex_unlock(&node->lock);
}

static void take_owner(struct pg_node *node, struct postgres_store *store)
{
    struct postgres_store **at = &node->owners;

    pthread_mutex_lock(&node->lock);
    while (*at && *at != store)
        at = &(*at)->next_owner;
    if (*at)
        *at = store->next_owner;
    pthread_mutex_unlock(&node->lock);
}

pawl_status pg_node_own(struct pg_node *node, struct pg_link *link, struct scope *scope,
                        const char *secret, struct postgres_store *store)
{
    pawl_status status = PAWL_OK;

    put_owner(node, store);
    if (node->is_beating)
        return PAWL_OK;
    status = node_register(link, scope, node->name, node->address, secret, node->url.ttl_ms);
    if (status == PAWL_OK)
        status = start(node, scope);
    if (status != PAWL_OK)
        take_owner(node, store);
    return status;
}

void pg_node_disown(struct pg_node *node, struct pg_link *link, struct postgres_store *store)
{
    struct scope scope;

    take_owner(node, store);
    if (node->owners)
        return;
    stop(node);
    scope_init(&scope, node->heap, 0);
    if (link->conn)
        (void)node_leave(link, &scope, node->name);
    scope_fini(&scope);
}
