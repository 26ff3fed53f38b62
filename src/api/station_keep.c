/* station_keep.c - the thread that declares the dead, claims what falls to this node and hands
 * over what falls to others. */
#include "api/shards.h"
#include "api/station_int.h"
#include "base/limits.h"
#include "base/planted.h"
#include "engine/workers.h"
#include "env/env.h"
#include <stdio.h>
#include <sys/eventfd.h>

#define HANDED_AT_ONCE 2u
#define LATE_BEATS     2 /* a node that missed one is looked at: its process may be gone */

static void tell(struct station_shard *shard, pawl_log_level level, const char *event,
                 const char *words)
{
    engine_log(shard->p->engine, level, event, words);
}

/* ---- Giving up ---- */

static pawl_status give(void *context, struct store *store, struct scope *scope)
{
    return cluster_release(store, scope, *(const bool *)context);
}

/* Calls that came are answered first; those that come now wait for the next owner. One that waits
 * for a step is answered at once. */
static void close_gate(struct station *node, struct station_shard *shard)
{
    guard_lock(&node->lock);
    shard->is_open = false;
    atomic_store(&shard->is_ours, false);
    station_changed(node);
    guard_unlock(&node->lock);
    engine_claims_end(shard->p->engine);
    guard_lock(&node->lock);
    while (shard->users > 0)
        guard_wait(&node->lock, &node->changed);
    guard_unlock(&node->lock);
}

static void give_up(struct station *node, struct station_shard *shard, bool is_lost)
{
    struct scope scope;
    pawl_status status;

    scope_init(&scope, &node->home->heap, LIMIT_SCOPE);
    close_gate(node, shard);
    status = engine_disown(shard->p->engine, &scope, give, &is_lost);
    if (status != PAWL_OK)
        tell(shard, PAWL_LOG_WARN, "shard.kept", scope.error.message);
    guard_lock(&node->lock);
    shard->losses += is_lost;
    station_changed(node);
    guard_unlock(&node->lock);
    station_tell(node, NEWS_OWNERS);
    scope_fini(&scope);
}

/* This incarnation is over (rule 1): all that it remembers is dropped, and it begins as another. */
static void begin_anew(struct station *node)
{
    struct store *store = engine_store(node->home->engine);
    struct scope scope;
    pawl_status status;

    for (uint32_t i = 0; i < node->count; i++)
        if (engine_owns(node->shards[i].p->engine))
            give_up(node, &node->shards[i], true);
    scope_init(&scope, &node->home->heap, LIMIT_SCOPE);
    pthread_mutex_lock(&node->store_lock);
    status = cluster_join(store, &scope, &node->me);
    guard_lock(&node->lock);
    if (status == PAWL_OK) {
        node->is_over = false;
        snprintf(node->name, sizeof node->name, "%s", cluster_name(store));
    }
    guard_unlock(&node->lock);
    pthread_mutex_unlock(&node->store_lock);
    engine_log(node->home->engine, PAWL_LOG_WARN, "node.over",
               status == PAWL_OK ? "this node was declared dead, since it did not beat for longer "
                                   "than its lease: it has begun again, and owns nothing yet"
                                 : scope.error.message);
    scope_fini(&scope);
    (void)eventfd_write(node->beat_fd, 1);
}

/* ---- Claiming ---- */

static pawl_status take(void *context, struct store *store, struct scope *scope)
{
    return cluster_claim(store, scope, context);
}

static void note_refusal(struct station *node, struct station_shard *shard,
                         const struct scope *scope, pawl_status status)
{
    bool went_back =
        status == PAWL_STORAGE_FAILURE && strstr(scope->error.message, "went backwards");

    guard_lock(&node->lock);
    shard->is_refused = shard->is_refused || went_back;
    guard_unlock(&node->lock);
    if (status != PAWL_CONFLICT)
        tell(shard, went_back ? PAWL_LOG_ERROR : PAWL_LOG_WARN,
             went_back ? "store.went-backwards" : "shard.unclaimed", scope->error.message);
}

static void claim(struct station *node, struct station_shard *shard,
                  const struct cluster_shard *seen)
{
    struct scope scope;
    pawl_status status;

    scope_init(&scope, &node->home->heap, LIMIT_SCOPE);
    status = engine_own(shard->p->engine, &scope, take, (void *)(uintptr_t)seen);
    if (status == PAWL_OK) {
        guard_lock(&node->lock);
        shard->is_open = true;
        atomic_store(&shard->is_ours, true);
        shard->free_ms = 0;
        shard->claims++;
        station_changed(node);
        guard_unlock(&node->lock);
        station_tell(node, NEWS_OWNERS);
    } else {
        note_refusal(node, shard, &scope, status);
        if (engine_owns(shard->p->engine))
            give_up(node, shard, false);
    }
    scope_fini(&scope);
}

/* ---- Who is there ---- */

struct looking {
    struct station *node;
    const struct cluster_view *view;
    struct node_member members[NODES_MAX];
    uint32_t member_count, me;
    uint32_t *owners, *heirs;
    int64_t now_ms, calm_ms;
    bool is_leaving, is_suspicious;
    char name[NODE_NAME_MAX];
};

static const struct cluster_node *node_named(const struct cluster_view *view, str name)
{
    for (uint32_t i = 0; name.data && i < view->node_count; i++)
        if (str_eq(view->nodes[i].node, name))
            return &view->nodes[i];
    return NULL;
}

static void find_members(struct looking *look)
{
    look->me = SHARD_NO_NODE;
    for (uint32_t i = 0; i < look->view->node_count && look->member_count < NODES_MAX; i++) {
        const struct cluster_node *node = &look->view->nodes[i];

        if (node->is_dead || !node->is_live)
            continue;
        if (str_is(node->node, look->name))
            look->me = look->member_count;
        look->members[look->member_count++] =
            (struct node_member){ node->node, !node->is_leaving && node->address.size > 0 };
    }
}

static uint32_t member_named(const struct looking *look, str name)
{
    for (uint32_t i = 0; name.data && i < look->member_count; i++)
        if (str_eq(look->members[i].node, name))
            return i;
    return SHARD_NO_NODE;
}

/* ---- One shard ---- */

/* Rule 3: declared in its own row first. */
static bool declare(struct looking *look, const struct cluster_shard *seen)
{
    const struct cluster_node *owner = node_named(look->view, seen->node);
    struct station *node = look->node;
    bool is_dead = owner == NULL;
    struct scope scope;

    if (!owner)
        return true;
    scope_init(&scope, &node->home->heap, LIMIT_SCOPE);
    pthread_mutex_lock(&node->store_lock);
    if (cluster_declare(engine_store(node->home->engine), &scope, owner->node, owner->address,
                        &is_dead) != PAWL_OK)
        is_dead = false;
    pthread_mutex_unlock(&node->store_lock);
    scope_fini(&scope);
    return is_dead;
}

/* Rule 4: a process that has ended is found before its lease runs out. */
static bool is_worth_a_look(const struct looking *look, const struct cluster_node *owner)
{
    return owner && !owner->is_dead &&
           (look->is_suspicious ||
            owner->age_ms > (int64_t)owner->ttl_ms * LATE_BEATS / BEATS_OF_A_TTL);
}

static struct shard_look look_at(struct looking *look, uint32_t i, const struct cluster_node *owner)
{
    struct station_shard *shard = &look->node->shards[i];
    bool is_live = owner && owner->is_live && !owner->is_dead;

    if (is_live)
        shard->free_ms = 0;
    else if (!shard->free_ms)
        shard->free_ms = look->now_ms;
    return (struct shard_look){ .has_owner = look->view->shards[i].node.data != NULL,
                                .is_mine = engine_owns(shard->p->engine),
                                .is_owner_live = is_live,
                                .am_heir = look->heirs[i] == look->me,
                                .is_leaving = look->is_leaving,
                                .free_ms = shard->free_ms ? look->now_ms - shard->free_ms : 0,
                                .calm_ms = look->calm_ms,
                                .calm_after_ms = (int64_t)look->node->ttl_ms * CALM_LEASES };
}

static bool keep_one(struct looking *look, uint32_t i, uint32_t *handed)
{
    struct station *node = look->node;
    struct station_shard *shard = &node->shards[i];
    const struct cluster_shard *seen = &look->view->shards[i];
    const struct cluster_node *owner = node_named(look->view, seen->node);
    struct shard_look facts = look_at(look, i, owner);
    enum shard_act act = shard_decide(&facts);

    if (facts.is_mine && engine_is_taken(shard->p->engine)) {
        give_up(node, shard, true);
        return true;
    }
    if (shard->is_refused && act != SHARD_HAND_OVER)
        return false;
    if (act == SHARD_LEAVE && !facts.is_mine && is_worth_a_look(look, owner) &&
        !str_is(owner->node, look->name))
        return declare(look, seen);
    if (act == SHARD_HAND_OVER && (look->is_leaving || (*handed)++ < HANDED_AT_ONCE))
        give_up(node, shard, false);
    else if (act == SHARD_CLAIM || (act == SHARD_DECLARE && declare(look, seen)))
        claim(node, shard, seen);
    else
        return false;
    return true;
}

static bool keep_all(struct looking *look)
{
    uint32_t owners[SHARDS_MAX], heirs[SHARDS_MAX], handed = 0, count = look->view->shard_count;
    bool any = false;

    look->owners = owners;
    look->heirs = heirs;
    find_members(look);
    if (count > look->node->count)
        count = look->node->count;
    for (uint32_t i = 0; i < count; i++)
        owners[i] = member_named(look, look->view->shards[i].node);
    shards_assign(look->members, look->member_count, owners,
                  !engine_has_test_clock(look->node->home->engine), heirs, count);
    for (uint32_t i = 0; i < count && look->me != SHARD_NO_NODE; i++)
        any = keep_one(look, i, &handed) || any;
    look->owners = look->heirs = NULL;
    return any;
}

bool station_keep(struct station *node)
{
    struct station_map *map = station_map_use(node);
    struct looking look = { .node = node, .now_ms = station_tick_ms(node) };
    bool any = false, is_over;

    guard_lock(&node->lock);
    look.calm_ms = look.now_ms - node->calm_since_ms;
    look.is_leaving = node->is_leaving;
    look.is_suspicious = node->is_suspicious;
    node->is_suspicious = false;
    snprintf(look.name, sizeof look.name, "%s", node->name);
    is_over = node->is_over;
    guard_unlock(&node->lock);
    if (is_over) {
        begin_anew(node);
        any = true;
    } else if (map) {
        look.view = &map->view;
        any = keep_all(&look);
    }
    station_map_leave(node, map);
    return any;
}

void *station_keep_thread(void *context)
{
    struct station *node = context;
    uint64_t seen = 0;

    for (;;) {
        guard_lock(&node->lock);
        while (!node->is_stopping && node->beats == seen && !node->is_over &&
               !node->is_suspicious && !node->is_leaving)
            guard_wait(&node->lock, &node->changed);
        seen = node->beats;
        if (node->is_stopping) {
            guard_unlock(&node->lock);
            return NULL;
        }
        guard_unlock(&node->lock);
        if (station_keep(node))
            (void)eventfd_write(node->beat_fd, 1);
        else if (node->is_leaving)
            station_await(node->home, node->change, station_tick_ms(node) + 20);
    }
}
