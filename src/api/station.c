/* station.c - see station.h: joining and leaving, the gate of calls, and where shards are. */
#include "api/shards.h"
#include "api/station_int.h"
#include "base/figures.h"
#include "base/limits.h"
#include "base/planted.h"
#include "env/env.h"
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct station *station_of(pawl *p)
{
    return shard_home(p)->station;
}

struct station_shard *station_shard_of(pawl *p)
{
    struct station *node = station_of(p);

    for (uint32_t i = 0; i < node->count; i++)
        if (node->shards[i].p == p)
            return &node->shards[i];
    return &node->shards[SHARD_HOME];
}

int64_t station_tick_ms(const struct station *node)
{
    return node->env->tick_ms(node->env);
}

void station_changed(struct station *node)
{
    ASSERT_HOLDS(&node->lock);
    node->change++;
    pthread_cond_broadcast(&node->changed);
}

/* ---- What the last beat saw ---- */

struct station_map *station_map_use(struct station *node)
{
    struct station_map *map;

    guard_lock(&node->lock);
    map = node->map;
    if (map)
        map->users++;
    guard_unlock(&node->lock);
    return map;
}

void station_map_leave(struct station *node, struct station_map *map)
{
    bool is_last;

    if (!map)
        return;
    guard_lock(&node->lock);
    is_last = --map->users == 0;
    guard_unlock(&node->lock);
    if (!is_last)
        return;
    scope_fini(&map->scope);
    heap_free(&node->home->heap, map, sizeof *map);
}

/* ---- Joining and leaving ---- */

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static struct station *runtime_new(pawl *home, const struct cluster_me *me)
{
    uint32_t count = shards_count(home);
    struct station *node = heap_new(&home->heap, sizeof *node + count * sizeof *node->shards);

    if (!node)
        return NULL;
    node->home = home;
    node->count = count;
    for (uint32_t i = 0; i < count; i++)
        node->shards[i] = (struct station_shard){ .p = shard_at(home, i), .node = node };
    node->env = engine_env(home->engine);
    snprintf(node->address, sizeof node->address, "%s", me->address ? me->address : "");
    snprintf(node->secret, sizeof node->secret, "%s", me->secret ? me->secret : "");
    node->me = (struct cluster_me){ .address = me->address ? node->address : NULL,
                                    .secret = me->secret ? node->secret : NULL };
    node->peers = peers_new(&home->heap, node->env);
    node->beat_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    node->nudge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    guard_init(&node->lock);
    pthread_mutex_init(&node->store_lock, NULL);
    pthread_mutex_init(&node->roam_lock, NULL);
    init_condition(&node->changed);
    return node;
}

static void runtime_free(struct station *node)
{
    station_map_leave(node, node->map);
    peers_free(node->peers);
    if (node->beat_fd >= 0)
        close(node->beat_fd);
    if (node->nudge_fd >= 0)
        close(node->nudge_fd);
    pthread_cond_destroy(&node->changed);
    pthread_mutex_destroy(&node->store_lock);
    pthread_mutex_destroy(&node->roam_lock);
    guard_fini(&node->lock);
    heap_free(&node->home->heap, node, sizeof *node + node->count * sizeof *node->shards);
}

static pawl_status join(struct station *node, struct scope *scope)
{
    struct store *store = engine_store(node->home->engine);

    TRY_MEMORY(scope, node->peers && node->beat_fd >= 0 && node->nudge_fd >= 0);
    TRY(cluster_join(store, scope, &node->me));
    node->ttl_ms = cluster_ttl_ms(store);
    snprintf(node->name, sizeof node->name, "%s", cluster_name(store));
    return cluster_secret(store, scope, node->key);
}

/* A new cluster begins here: what has no owner is claimed before anything is served. */
static void settle(struct station *node)
{
    station_beat(node);
    while (station_keep(node))
        station_beat(node);
}

pawl_status station_start(pawl *home, const struct cluster_me *me, struct scope *scope)
{
    struct station *node = runtime_new(home, me);
    pawl_status status;

    TRY_MEMORY(scope, node);
    status = join(node, scope);
    if (status != PAWL_OK) {
        runtime_free(node);
        return status;
    }
    home->station = node;
    settle(node);
    node->has_beater = pthread_create(&node->beater, NULL, station_beat_thread, node) == 0;
    node->has_keeper = pthread_create(&node->keeper, NULL, station_keep_thread, node) == 0;
    if (station_nudge_start(node) && node->has_beater && node->has_keeper)
        return PAWL_OK;
    station_stop(home);
    return scope_fail(scope, PAWL_NO_MEMORY, "the system has no thread left for this node's lease");
}

static bool has_others(struct station *node)
{
    struct station_map *map = station_map_use(node);
    bool has = false;

    for (uint32_t i = 0; map && i < map->view.node_count; i++) {
        const struct cluster_node *one = &map->view.nodes[i];

        has = has ||
              (one->is_live && !one->is_dead && !one->is_leaving && !str_is(one->node, node->name));
    }
    station_map_leave(node, map);
    return has;
}

/* Do the others have it all, or are there no others? */
static bool is_followed(struct station *node)
{
    struct station_map *map = station_map_use(node);
    uint32_t theirs = 0, count = map ? map->view.shard_count : 0;

    for (uint32_t i = 0; i < count; i++)
        theirs += map->view.shards[i].node.data && !str_is(map->view.shards[i].node, node->name);
    station_map_leave(node, map);
    return theirs == count || !has_others(node);
}

static bool owns_some(struct station *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (engine_owns(node->shards[i].p->engine))
            return true;
    return false;
}

static void rest(struct station *node, int64_t for_ms)
{
    int64_t until_ms = station_tick_ms(node) + for_ms;
    struct timespec at = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };

    guard_lock(&node->lock);
    while (station_tick_ms(node) < until_ms)
        guard_wait_until(&node->lock, &node->changed, &at);
    guard_unlock(&node->lock);
}

#define RETIRE_MS 15000 /* then it leaves without: the lease runs out */

static uint64_t begin_leaving(struct station *node)
{
    uint64_t change;

    guard_lock(&node->lock);
    node->is_leaving = true;
    station_changed(node);
    change = node->change;
    guard_unlock(&node->lock);
    (void)eventfd_write(node->beat_fd, 1);
    return change;
}

/* Others forward to this node until they have seen, with a beat, who follows. */
void station_retire(pawl *home)
{
    struct station *node = home->station;
    int64_t until_ms, look_ms;
    uint64_t change;

    if (!node || !node->has_keeper)
        return;
    look_ms = node->ttl_ms / BEATS_OF_A_TTL;
    until_ms = station_tick_ms(node) + RETIRE_MS;
    change = begin_leaving(node);
    while ((owns_some(node) || !is_followed(node)) && station_tick_ms(node) < until_ms) {
        station_await(home, change, station_tick_ms(node) + 50);
        guard_lock(&node->lock);
        change = node->change;
        guard_unlock(&node->lock);
    }
    if (has_others(node))
        rest(node, look_ms + look_ms / 2);
}

void station_stop(pawl *home)
{
    struct station *node = home->station;

    if (!node)
        return;
    guard_lock(&node->lock);
    node->is_stopping = true;
    station_changed(node);
    guard_unlock(&node->lock);
    (void)eventfd_write(node->beat_fd, 1);
    station_nudge_stop(node);
    if (node->has_keeper)
        pthread_join(node->keeper, NULL);
    if (node->has_beater)
        pthread_join(node->beater, NULL);
    if (!owns_some(node)) /* else its row stays until its lease has run out */
        cluster_leave(engine_store(home->engine));
    home->station = NULL;
    runtime_free(node);
}

/* ---- The gate ---- */

/* The shards that a call is about: one of them, or all. */
struct shard_range {
    uint32_t first, end;
};

static struct shard_range range_of(const struct station *node, const struct station_shard *shard,
                                   bool all)
{
    uint32_t at = (uint32_t)(shard - node->shards);

    return all ? (struct shard_range){ 0, node->count } : (struct shard_range){ at, at + 1 };
}

static bool are_open(const struct station *node, struct shard_range range)
{
    bool are = true;

    ASSERT_HOLDS(&node->lock);
    for (uint32_t i = range.first; i < range.end; i++)
        are = are && node->shards[i].is_open;
    return are;
}

bool station_enter(pawl *p, bool all)
{
    struct station *node = station_of(p);
    struct shard_range range = range_of(node, station_shard_of(p), all);
    bool is_open;

    guard_lock(&node->lock);
    is_open = are_open(node, range);
    for (uint32_t i = range.first; i < range.end; i++)
        node->shards[i].users += is_open;
    guard_unlock(&node->lock);
    return is_open;
}

void station_exit(pawl *p, bool all)
{
    struct station *node = station_of(p);
    struct shard_range range = range_of(node, station_shard_of(p), all);

    guard_lock(&node->lock);
    for (uint32_t i = range.first; i < range.end; i++) {
        ASSERT(node->shards[i].users > 0);
        if (--node->shards[i].users == 0 && !node->shards[i].is_open)
            pthread_cond_broadcast(&node->changed);
    }
    guard_unlock(&node->lock);
}

bool station_enter_these(pawl *p, const bool *these)
{
    struct station *node = station_of(p);
    bool are = true;

    guard_lock(&node->lock);
    for (uint32_t i = 0; i < node->count; i++)
        are = are && (!these[i] || node->shards[i].is_open);
    for (uint32_t i = 0; i < node->count; i++)
        node->shards[i].users += are && these[i];
    guard_unlock(&node->lock);
    return are;
}

uint32_t station_enter_own(pawl *p, bool *out)
{
    struct station *node = station_of(p);
    uint32_t count = 0;

    guard_lock(&node->lock);
    for (uint32_t i = 0; i < node->count; i++) {
        out[i] = node->shards[i].is_open;
        node->shards[i].users += out[i];
        count += out[i];
    }
    guard_unlock(&node->lock);
    return count;
}

void station_exit_these(pawl *p, const bool *these)
{
    for (uint32_t i = 0; i < station_of(p)->count; i++)
        if (these[i])
            station_exit(shard_at(p, i), false);
}

/* ---- Where ---- */

static const struct cluster_node *find_node(const struct cluster_view *view, str name)
{
    for (uint32_t i = 0; i < view->node_count; i++)
        if (str_eq(view->nodes[i].node, name))
            return &view->nodes[i];
    return NULL;
}

static enum station_place find_there(struct station *node, uint32_t shard,
                                     struct station_where *out)
{
    const struct cluster_view *view = node->map ? &node->map->view : NULL;
    const struct cluster_node *owner;

    if (!view || shard >= view->shard_count || !view->shards[shard].node.data)
        return STATION_NOWHERE;
    owner = find_node(view, view->shards[shard].node);
    if (!owner || owner->is_dead || !owner->address.size || str_is(owner->node, node->name) ||
        owner->address.size >= sizeof out->address || owner->node.size >= sizeof out->node)
        return STATION_NOWHERE;
    snprintf(out->node, sizeof out->node, "%.*s", STR_ARG(owner->node));
    snprintf(out->address, sizeof out->address, "%.*s", STR_ARG(owner->address));
    return STATION_THERE;
}

enum station_place station_find(pawl *p, bool all, struct station_where *out)
{
    struct station *node = station_of(p);
    struct station_shard *shard = station_shard_of(p);
    enum station_place place = STATION_HERE;

    guard_lock(&node->lock);
    out->change = node->change;
    if (!are_open(node, range_of(node, shard, all)))
        place = find_there(node, (uint32_t)(shard - node->shards), out);
    guard_unlock(&node->lock);
    return place;
}

bool station_is_up(pawl *p, const char *name)
{
    struct station *node = station_of(p);
    const struct cluster_node *found = NULL;
    bool is;

    guard_lock(&node->lock);
    if (node->map)
        found = find_node(&node->map->view, str_of(name));
    is = found && found->is_live && !found->is_dead;
    guard_unlock(&node->lock);
    return is;
}

void station_await(pawl *p, uint64_t change, int64_t until_ms)
{
    struct station *node = station_of(p);
    struct timespec at = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };

    guard_lock(&node->lock);
    while (node->change == change && station_tick_ms(node) < until_ms)
        guard_wait_until(&node->lock, &node->changed, &at);
    guard_unlock(&node->lock);
}

void station_suspect(pawl *p)
{
    struct station *node = station_of(p);

    guard_lock(&node->lock);
    node->is_suspicious = true;
    pthread_cond_broadcast(&node->changed);
    guard_unlock(&node->lock);
}

#define BEAT_WAIT_MS 300 /* a database that has come back answers sooner */

static bool is_trusted(struct station *node)
{
    return lease_holds(atomic_load(&node->sent_ms), station_tick_ms(node), node->ttl_ms);
}

bool station_may_read(pawl *p)
{
    struct station *node = station_of(p);
    int64_t until_ms;

    if (PLANTED(STALE_READ) || !engine_owns(p->engine) || is_trusted(node))
        return true;
    until_ms = station_tick_ms(node) + BEAT_WAIT_MS;
    (void)eventfd_write(node->beat_fd, 1);
    guard_lock(&node->lock);
    while (!is_trusted(node) && station_tick_ms(node) < until_ms) {
        const struct timespec at = { .tv_sec = until_ms / 1000,
                                     .tv_nsec = until_ms % 1000 * 1000000 };

        guard_wait_until(&node->lock, &node->changed, &at);
    }
    guard_unlock(&node->lock);
    return is_trusted(node);
}
