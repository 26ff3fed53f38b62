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
    if (atomic_load(&server->exchange_count) >
        0) /* one that joins after this looks after it, too */
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

/* ---- What is followed ---- */

void watch_join(struct mcp_server *server, struct mcp_watch *watch)
{
    struct mcp_watch **first = &server->buckets[watch->instance % BUCKETS];

    ASSERT_HOLDS(&server->lock);
    if (!watch->instance)
        return;
    watch->previous = NULL;
    watch->next = *first;
    if (*first)
        (*first)->previous = watch;
    *first = watch;
}

void watch_leave(struct mcp_server *server, struct mcp_watch *watch)
{
    ASSERT_HOLDS(&server->lock);
    if (!watch->instance)
        return;
    *(watch->previous ? &watch->previous->next : &server->buckets[watch->instance % BUCKETS]) =
        watch->next;
    if (watch->next)
        watch->next->previous = watch->previous;
    watch->instance = 0;
}

bool watch_take(struct mcp_server *server, struct mcp_watch *watch)
{
    bool has_changed;

    guard_lock(&server->lock);
    has_changed = watch->has_changed;
    watch->has_changed = false;
    guard_unlock(&server->lock);
    return has_changed;
}

static void lists_join(struct rpc_exchange *exchange)
{
    struct rpc_exchange **first = &exchange->server->followers;

    if (!exchange->follows_lists)
        return;
    exchange->of_lists = (struct exchange_link){ .next = *first };
    if (*first)
        (*first)->of_lists.previous = exchange;
    *first = exchange;
}

static void lists_leave(struct rpc_exchange *exchange)
{
    struct mcp_server *server = exchange->server;
    struct exchange_link *link = &exchange->of_lists;

    if (!exchange->follows_lists)
        return;
    *(link->previous ? &link->previous->of_lists.next : &server->followers) = link->next;
    if (link->next)
        link->next->of_lists.previous = link->previous;
    if (!server->followers)
        server->definitions_hash = 0;
}

static bool is_stream(const struct rpc_exchange *exchange)
{
    return exchange->method == &stream_method;
}

static void stream_leave(struct rpc_exchange *exchange)
{
    struct rpc_exchange **link = &exchange->session->streams;

    while (*link != exchange)
        link = &(*link)->next_stream;
    *link = exchange->next_stream;
}

/* Known once, by what it follows then. */
void watcher_join(struct rpc_exchange *exchange)
{
    struct mcp_server *server = exchange->server;

    if (exchange->is_known)
        return;
    guard_lock(&server->lock);
    if (atomic_fetch_add(&server->exchange_count, 1) == 0)
        events_end(server->p, &server->at);
    exchange->is_known = true;
    exchange->of_all = (struct exchange_link){ .next = server->first };
    if (server->first)
        server->first->of_all.previous = exchange;
    server->first = exchange;
    for (struct mcp_watch *one = exchange->watches; one; one = one->more)
        watch_join(server, one);
    lists_join(exchange);
    if (is_stream(exchange)) {
        exchange->next_stream = exchange->session->streams;
        exchange->session->streams = exchange;
    }
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
    for (struct mcp_watch *one = exchange->watches; one; one = one->more)
        watch_leave(server, one);
    lists_leave(exchange);
    if (is_stream(exchange))
        stream_leave(exchange);
    atomic_fetch_sub(&server->exchange_count, 1);
    guard_unlock(&server->lock);
    exchange->is_known = false;
}

/* ---- What has happened ---- */

static void wake_follower(struct mcp_watch *watch)
{
    watch->has_changed = true;
    if (watch->exchange)
        exchange_wake(watch->exchange);
    for (struct rpc_exchange *one = watch->exchange ? NULL : watch->session->streams, *next; one;
         one = next) {
        next = one->next_stream;
        exchange_wake(one);
    }
}

struct event_tally {
    struct mcp_server *server;
    uint64_t events;
};

static pawl_status on_event(void *context, const struct log_event *event)
{
    struct event_tally *tally = context;
    struct mcp_server *server = tally->server;

    tally->events++;
    guard_lock(&server->lock);
    for (struct mcp_watch *one = server->buckets[event->instance % BUCKETS], *next; one;
         one = next) {
        next = one->next;
        if (one->instance == event->instance)
            wake_follower(one);
    }
    guard_unlock(&server->lock);
    return PAWL_OK;
}

/* They look for themselves. */
static void wake_all(struct mcp_server *server)
{
    guard_lock(&server->lock);
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct mcp_watch *one = server->buckets[i], *next; one; one = next) {
            next = one->next;
            wake_follower(one);
        }
    guard_unlock(&server->lock);
}

void lists_wake(struct mcp_server *server)
{
    guard_lock(&server->lock);
    for (struct rpc_exchange *one = server->followers, *next; one; one = next) {
        next = one->of_lists.next;
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

/* A definition may have been put by any surface. Only asked while an exchange follows lists. */
void look_at_definitions(struct mcp_server *server)
{
    struct scope scope;
    uint64_t hash = 1;
    bool is_followed, is_there, has_changed;

    guard_lock(&server->lock);
    is_followed = server->followers != NULL;
    guard_unlock(&server->lock);
    if (!is_followed)
        return;
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    is_there = op_call_pieces(server->p, "definition.list", STR("{\"limit\":\"1000\"}"), &scope,
                              hash_piece, &hash) == PAWL_OK;
    scope_fini(&scope);
    guard_lock(&server->lock);
    has_changed = is_there && server->definitions_hash && server->definitions_hash != hash;
    if (has_changed)
        atomic_fetch_add(&server->tools_changed, 1);
    if (is_there)
        server->definitions_hash = hash;
    guard_unlock(&server->lock);
    if (has_changed)
        lists_wake(server);
}

static uint64_t records_between(const struct shard_vector *at, const struct shard_vector *end)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < at->count && i < end->count; i++)
        count += end->at[i] - at->at[i];
    return count;
}

/* Wakes those who follow what happened between them. True: there were records that are no events;
 * they may be of definitions. */
static bool tell_followers(struct mcp_server *server, struct shard_vector *at,
                           const struct shard_vector *end)
{
    uint64_t records = records_between(at, end);
    struct event_tally tally = { .server = server };
    pawl_status status = PAWL_OK;
    struct scope scope;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    while (status == PAWL_OK && !vector_reaches(at, end)) {
        status = events_read(server->p, &scope, "", at, end, EVENTS_PAGE, on_event, &tally);
        scope_clear(&scope);
    }
    scope_fini(&scope);
    if (status != PAWL_OK)
        wake_all(server);
    return status != PAWL_OK || tally.events != records;
}

static void look_at_log(struct mcp_server *server)
{
    struct shard_vector at, end;
    bool has_more, may_be_defined;

    if (atomic_load(&server->exchange_count) == 0)
        return;
    events_end(server->p, &end);
    guard_lock(&server->lock);
    vector_copy(&at, &server->at);
    has_more = atomic_load(&server->exchange_count) > 0 && !vector_reaches(&at, &end);
    guard_unlock(&server->lock);
    if (!has_more)
        return;
    may_be_defined = tell_followers(server, &at, &end);
    guard_lock(&server->lock);
    for (uint32_t i = 0; i < at.count; i++) /* one that joined meanwhile may have moved it on */
        if (at.at[i] > server->at.at[i])
            server->at.at[i] = at.at[i];
    guard_unlock(&server->lock);
    if (may_be_defined)
        look_at_definitions(server);
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
    ASSERT(atomic_load(&server->exchange_count) == 0);
    sessions_free(server);
    if (server->event >= 0)
        close(server->event);
    guard_fini(&server->lock);
    free(server);
}
