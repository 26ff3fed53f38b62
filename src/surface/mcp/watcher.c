/* watcher.c - the surface's life, and its watcher: one thread that wakes exchanges when an instance
 * that they watch has changed, or when their time has come. */
#include "api/events.h"
#include "api/world.h"
#include "surface/mcp/http_mcp.h"
#include "surface/mcp/mcp_int.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_PAGE 1024

/* ---- Waking ---- */

void watcher_wake(struct mcp_server *server)
{
    ssize_t written = write(server->event, &(uint64_t){ 1 }, sizeof(uint64_t));

    (void)written; /* it is full only if the watcher is awake */
}

static void on_commit(void *context, uint64_t position)
{
    struct mcp_server *server = context;

    (void)position;
    watcher_wake(server);
}

void exchange_wake(struct rpc_exchange *exchange)
{
    ASSERT_HOLDS(&exchange->server->lock);
    if (!exchange->is_asleep) {
        exchange->is_woken = true;
        return;
    }
    exchange->is_asleep = false;
    exchange->wake(exchange->wake_context); /* from now on it is another thread's */
}

static struct rpc_exchange **bucket_of(struct mcp_server *server,
                                       const struct rpc_exchange *exchange)
{
    return &server->buckets[exchange->watches_all ? BUCKETS : exchange->watched % BUCKETS];
}

static bool is_listed(const struct rpc_exchange *exchange)
{
    return exchange->watches_all || exchange->watched;
}

static void bucket_leave(struct rpc_exchange *exchange)
{
    struct exchange_link *link = &exchange->of_bucket;

    if (!is_listed(exchange))
        return;
    *(link->previous ? &link->previous->of_bucket.next : bucket_of(exchange->server, exchange)) =
        link->next;
    if (link->next)
        link->next->of_bucket.previous = link->previous;
}

static void bucket_join(struct rpc_exchange *exchange)
{
    struct rpc_exchange **first = bucket_of(exchange->server, exchange);

    if (!is_listed(exchange))
        return;
    exchange->of_bucket = (struct exchange_link){ .next = *first };
    if (*first)
        (*first)->of_bucket.previous = exchange;
    *first = exchange;
}

/* Known once, by what it watches then: an exchange watches one thing only. */
void watcher_join(struct rpc_exchange *exchange)
{
    struct mcp_server *server = exchange->server;

    if (exchange->is_known)
        return;
    guard_lock(&server->lock);
    if (server->exchange_count++ == 0)
        events_end(server->p, &server->at);
    exchange->is_known = true;
    exchange->of_all = (struct exchange_link){ .next = server->first };
    if (server->first)
        server->first->of_all.previous = exchange;
    server->first = exchange;
    bucket_join(exchange);
    guard_unlock(&server->lock);
}

void watcher_leave(struct rpc_exchange *exchange)
{
    struct mcp_server *server = exchange->server;
    struct exchange_link *link = &exchange->of_all;

    if (!exchange->is_known)
        return;
    guard_lock(&server->lock);
    *(link->previous ? &link->previous->of_all.next : &server->first) = link->next;
    if (link->next)
        link->next->of_all.previous = link->previous;
    bucket_leave(exchange);
    if (!server->buckets[BUCKETS])
        server->definitions_hash = 0;
    server->exchange_count--;
    guard_unlock(&server->lock);
    exchange->is_known = false;
}

/* ---- What has happened ---- */

static pawl_status on_event(void *context, const struct log_event *event)
{
    struct mcp_server *server = context;

    guard_lock(&server->lock);
    for (struct rpc_exchange *one = server->buckets[event->instance % BUCKETS], *next; one;
         one = next) {
        next = one->of_bucket.next;
        if (one->watched == event->instance)
            exchange_wake(one);
    }
    guard_unlock(&server->lock);
    return PAWL_OK;
}

void lists_wake(struct mcp_server *server)
{
    guard_lock(&server->lock);
    for (struct rpc_exchange *one = server->buckets[BUCKETS], *next; one; one = next) {
        next = one->of_bucket.next;
        exchange_wake(one);
    }
    guard_unlock(&server->lock);
}

static bool hash_piece(void *context, struct scope *scope, str piece)
{
    uint64_t *hash = context;

    (void)scope;
    *hash = *hash * 31 + str_hash(piece);
    return true;
}

/* A definition may have been put by any surface; its record is not among the events. Only asked
 * while an exchange follows lists. */
void look_at_definitions(struct mcp_server *server)
{
    struct scope scope;
    uint64_t hash = 1;
    bool is_followed, is_there;

    guard_lock(&server->lock);
    is_followed = server->buckets[BUCKETS] != NULL;
    guard_unlock(&server->lock);
    if (!is_followed)
        return;
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    is_there = op_call_pieces(server->p, "definition.list", STR("{\"limit\":\"1000\"}"), &scope,
                              hash_piece, &hash) == PAWL_OK;
    scope_fini(&scope);
    guard_lock(&server->lock);
    if (is_there && server->definitions_hash && server->definitions_hash != hash)
        atomic_fetch_add(&server->tools_changed, 1);
    if (is_there)
        server->definitions_hash = hash;
    guard_unlock(&server->lock);
}

/* If the log cannot be read, all are woken and look for themselves. */
static void look_at_log(struct mcp_server *server)
{
    struct shard_vector at, end;
    struct scope scope;
    bool has_more;

    events_end(server->p, &end);
    guard_lock(&server->lock);
    vector_copy(&at, &server->at);
    has_more = server->exchange_count > 0 && !vector_reaches(&at, &end);
    guard_unlock(&server->lock);
    if (!has_more)
        return;
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    while (!vector_reaches(&at, &end) &&
           events_read(server->p, &scope, "", &at, &end, EVENTS_PAGE, on_event, server) == PAWL_OK)
        scope_clear(&scope);
    scope_fini(&scope);
    guard_lock(&server->lock);
    for (uint32_t i = 0; i < at.count; i++) /* one that joined meanwhile may have moved it on */
        if (at.at[i] > server->at.at[i])
            server->at.at[i] = at.at[i];
    guard_unlock(&server->lock);
    look_at_definitions(server);
    lists_wake(server);
}

static void wake_due(struct mcp_server *server)
{
    int64_t now = tick_ms(server), first = 0;

    guard_lock(&server->lock);
    if (server->due_ms && server->due_ms <= now) {
        for (struct rpc_exchange *one = server->first, *next; one; one = next) {
            next = one->of_all.next;
            if (!one->is_asleep || !one->due_ms)
                continue;
            if (one->due_ms <= now)
                exchange_wake(one);
            else if (!first || one->due_ms < first)
                first = one->due_ms;
        }
        server->due_ms = first;
    }
    guard_unlock(&server->lock);
}

static int time_left(struct mcp_server *server)
{
    int64_t left = -1;

    guard_lock(&server->lock);
    if (server->due_ms) {
        left = server->due_ms - tick_ms(server);
        left = left < 0 ? 0 : left > 60000 ? 60000 : left;
    }
    guard_unlock(&server->lock);
    return (int)left;
}

static void *watch_thread(void *context)
{
    struct mcp_server *server = context;
    struct pollfd event = { .fd = server->event, .events = POLLIN };
    uint64_t count;

    while (!atomic_load(&server->is_stopping)) {
        if (poll(&event, 1, time_left(server)) > 0 &&
            read(server->event, &count, sizeof count) < 0 && errno != EAGAIN)
            break;
        look_at_log(server);
        wake_due(server);
    }
    return NULL;
}

/* ---- Start and stop ---- */

struct mcp_server *mcp_start(pawl *p, const struct mcp_options *options)
{
    struct mcp_server *server = calloc(1, sizeof *server);

    if (!server)
        return NULL;
    server->p = p;
    server->options = *options;
    guard_init(&server->lock);
    world_random(p, server->secret, sizeof server->secret);
    rows_fill(server);
    server->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->event >= 0 && events_watch(p, on_commit, server)) {
        errno = pthread_create(&server->thread, NULL, watch_thread, server);
        server->is_running = errno == 0;
    }
    if (server->is_running)
        return server;
    mcp_free(server);
    return NULL;
}

const struct op *mcp_rows(const struct mcp_server *server)
{
    return server->rows;
}

void mcp_end_streams(struct mcp_server *server)
{
    if (!server || atomic_exchange(&server->is_stopping, true))
        return;
    guard_lock(&server->lock);
    for (struct rpc_exchange *one = server->first, *next; one; one = next) {
        next = one->of_all.next;
        exchange_wake(one);
    }
    guard_unlock(&server->lock);
    watcher_wake(server);
}

void mcp_free(struct mcp_server *server)
{
    if (!server)
        return;
    mcp_end_streams(server);
    if (server->is_running)
        pthread_join(server->thread, NULL);
    events_watch(server->p, NULL, server);
    ASSERT(server->exchange_count == 0);
    sessions_free(server);
    if (server->event >= 0)
        close(server->event);
    guard_fini(&server->lock);
    free(server);
}
