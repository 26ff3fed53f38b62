/* station_beat.c - the thread that says that this node is up, and sees what the others are
 * doing. */
#include "api/shards.h"
#include "api/station_int.h"
#include "base/limits.h"
#include "env/env.h"
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>

/* The names of those that are up: as long as they are the same, the cluster is calm. */
static uint64_t hash_members(const struct cluster_view *view)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < view->node_count; i++)
        if (view->nodes[i].is_live && !view->nodes[i].is_leaving)
            hash = hash * 31 + shard_weight(view->nodes[i].node, 0);
    return hash;
}

static void tell(struct station *node, pawl_log_level level, const char *event, const char *words)
{
    engine_log(node->home->engine, level, event, words);
}

/* The machine's clock, as the others see it; true: it is far off, and was not before. */
static bool note_skew(struct station *node, int64_t skew_ms, int64_t by_ms)
{
    bool is_far = skew_ms >= SKEW_WARN_MS || skew_ms <= -SKEW_WARN_MS, is_news;

    guard_lock(&node->lock);
    node->skew_ms = skew_ms;
    node->correction_ms = by_ms;
    node->is_corrected = true;
    is_news = is_far && !node->skew_was_told;
    node->skew_was_told = is_far;
    guard_unlock(&node->lock);
    return is_news;
}

/* This node's wall clock is the database's. The beater alone changes it. */
static void note_clock(struct station *node, int64_t sent_ms, int64_t database_ms)
{
    int64_t answered_ms = node->env->now_ms(node->env), left_ms, skew_ms, by_ms;
    char words[200];

    if (!clock_difference(sent_ms, answered_ms, database_ms, &left_ms))
        return;
    skew_ms = node->correction_ms + left_ms;
    by_ms =
        clock_correction(node->correction_ms, left_ms, answered_ms - sent_ms, !node->is_corrected);
    for (uint32_t i = 0; i < node->count && by_ms != node->correction_ms; i++)
        engine_correct_clock(node->shards[i].p->engine, by_ms);
    if (!note_skew(node, skew_ms, by_ms))
        return;
    snprintf(words, sizeof words,
             "this machine's clock is %lld ms %s the database's: this node corrects it for its own "
             "use; set the clock",
             (long long)(skew_ms < 0 ? -skew_ms : skew_ms), skew_ms < 0 ? "ahead of" : "behind");
    tell(node, PAWL_LOG_WARN, "clock.skew", words);
}

/* Ids sort by creation to within a beat: new ones lie above all that any node has given out. */
static void raise_numbers(struct station *node, const struct cluster_view *view)
{
    for (uint32_t i = 0; i < view->shard_count; i++) {
        uint64_t mine = view->shards[i].last_instance, seen = node->home->group.highest;

        while (seen < mine &&
               !atomic_compare_exchange_weak(&node->home->group.highest, &seen, mine))
            continue;
    }
}

/* Streams of shards that others write look for what is new. */
static void tell_streams(struct station *node, const struct cluster_view *before,
                         const struct cluster_view *now)
{
    for (uint32_t i = 0; i < node->count && i < now->shard_count; i++)
        if (!before || i >= before->shard_count || before->shards[i].pos != now->shards[i].pos)
            if (!engine_owns(node->shards[i].p->engine))
                engine_poke_watchers(node->shards[i].p->engine);
}

static bool is_news(const struct cluster_view *a, const struct cluster_view *b)
{
    if (!a || a->node_count != b->node_count || a->shard_count != b->shard_count)
        return true;
    for (uint32_t i = 0; i < a->node_count; i++)
        if (!str_eq(a->nodes[i].node, b->nodes[i].node) ||
            a->nodes[i].is_dead != b->nodes[i].is_dead ||
            a->nodes[i].is_live != b->nodes[i].is_live ||
            a->nodes[i].is_leaving != b->nodes[i].is_leaving)
            return true;
    for (uint32_t i = 0; i < a->shard_count; i++)
        if (a->shards[i].epoch != b->shards[i].epoch)
            return true;
    return false;
}

static void publish(struct station *node, struct station_map *map)
{
    struct station_map *before;
    uint64_t hash = hash_members(&map->view);
    bool has_news;

    tell_streams(node, node->map ? &node->map->view : NULL, &map->view);
    guard_lock(&node->lock);
    before = node->map;
    has_news = is_news(before ? &before->view : NULL, &map->view);
    node->map = map;
    if (hash != node->calm_hash || !node->calm_since_ms)
        node->calm_since_ms = station_tick_ms(node);
    node->calm_hash = hash;
    if (has_news)
        station_changed(node);
    else
        pthread_cond_broadcast(&node->changed); /* the keeper looks at every beat */
    guard_unlock(&node->lock);
    station_map_leave(node, before);
}

static void note_failure(struct station *node, const struct scope *scope)
{
    bool is_first;

    guard_lock(&node->lock);
    node->failed_beats++;
    is_first = !node->is_away;
    node->is_away = true;
    guard_unlock(&node->lock);
    if (is_first)
        tell(node, PAWL_LOG_WARN, "node.away", scope->error.message);
}

static void take_view(struct station *node, struct station_map *map, int64_t sent_ms)
{
    bool is_over = map->view.is_over;

    if (!is_over)
        atomic_store(&node->sent_ms, sent_ms);
    guard_lock(&node->lock);
    node->beats++;
    node->is_away = false;
    if (is_over) {
        node->is_over = true;
        station_changed(node);
    }
    guard_unlock(&node->lock);
    if (is_over) {
        station_map_leave(node, map);
        return;
    }
    raise_numbers(node, &map->view);
    station_note_wants(node, &map->view);
    publish(node, map);
}

void station_beat(struct station *node)
{
    struct station_map *map = heap_new(&node->home->heap, sizeof *map);
    int64_t sent_ms = station_tick_ms(node), wall_ms = node->env->now_ms(node->env);
    struct cluster_me me;
    pawl_status status;
    bool is_over;

    if (!map)
        return;
    map->users = 1;
    scope_init(&map->scope, &node->home->heap, LIMIT_SCOPE);
    pthread_mutex_lock(&node->store_lock);
    guard_lock(&node->lock);
    me = node->me;
    me.is_leaving = node->is_leaving;
    is_over = node->is_over;
    guard_unlock(&node->lock);
    me.wants = station_wants(node);
    me.seen_home = engine_position(node->home->engine);
    status = is_over ? PAWL_CONFLICT
                     : cluster_beat(engine_store(node->home->engine), &map->scope, &me, &map->view);
    pthread_mutex_unlock(&node->store_lock);
    if (status != PAWL_OK) {
        if (!is_over)
            note_failure(node, &map->scope);
        station_map_leave(node, map);
        return;
    }
    if (!map->view.is_over)
        note_clock(node, wall_ms, map->view.now_ms);
    take_view(node, map, sent_ms);
}

static bool is_stopping(struct station *node)
{
    bool stops;

    guard_lock(&node->lock);
    stops = node->is_stopping;
    guard_unlock(&node->lock);
    return stops;
}

void *station_beat_thread(void *context)
{
    struct station *node = context;
    struct pollfd wake = { .fd = node->beat_fd, .events = POLLIN };
    eventfd_t count;

    while (!is_stopping(node)) {
        if (poll(&wake, 1, node->ttl_ms / BEATS_OF_A_TTL) > 0)
            (void)eventfd_read(node->beat_fd, &count);
        if (!is_stopping(node))
            station_beat(node);
    }
    return NULL;
}
