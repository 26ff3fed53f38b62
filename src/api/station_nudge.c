/* station_nudge.c - news for other nodes, before their next beat: a shard has another owner, steps
 * wait (for nodes where claims wait), the log has grown (for nodes where streams are open).
 *
 * A nudge is a signed GET /v1/nodes: a node that gets one beats at once. It contains nothing, and
 * it may be lost: the next beat finds the same a little later. */
#include "api/shards.h"
#include "api/station_int.h"
#include "base/limits.h"
#include "engine/workers.h"
#include "env/env.h"
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NUDGE_EVERY_MS 20    /* news that come meanwhile go together */
#define WANT_MS        10000 /* after the last claim that waited */
#define NUDGED_MAX     64u

/* In a node's row: c for steps that wait, s for commits. */
static const char claims[] = "c", streams[] = "s", both[] = "cs";

/* ---- What is wanted ---- */

const char *station_wants(struct station *node)
{
    int64_t roamed_ms = atomic_load(&node->roamed_ms);
    bool has_claims = roamed_ms && station_tick_ms(node) - roamed_ms < WANT_MS;
    bool has_streams = atomic_load(&node->streams) > 0;

    if (has_claims)
        return has_streams ? both : claims;
    return has_streams ? streams : NULL;
}

static unsigned wants_of(const struct cluster_node *one)
{
    return (str_has(one->wants, 'c') ? NEWS_STEPS : 0) |
           (str_has(one->wants, 's') ? NEWS_COMMITS : 0);
}

static bool may_hear(const struct station *node, const struct cluster_node *one)
{
    return one->is_live && !one->is_dead && one->address.size > 0 &&
           one->address.size < NODE_ADDRESS_MAX && one->node.size < NODE_NAME_MAX &&
           !str_is(one->node, node->name);
}

void station_note_wants(struct station *node, const struct cluster_view *view)
{
    unsigned wanted = 0;

    for (uint32_t i = 0; i < view->node_count; i++)
        if (may_hear(node, &view->nodes[i]))
            wanted |= wants_of(&view->nodes[i]) | NEWS_OWNERS;
    atomic_store(&node->wanted, wanted);
}

void station_count_streams(pawl *p, int by)
{
    struct station *node = station_of(p);

    if (node && atomic_fetch_add(&node->streams, by) == 0)
        (void)eventfd_write(node->beat_fd, 1);
}

/* ---- Telling ---- */

void station_tell(struct station *node, unsigned news)
{
    news &= atomic_load(&node->wanted);
    if (news && (atomic_fetch_or(&node->news, news) & news) != news)
        (void)eventfd_write(node->nudge_fd, 1);
}

static void on_commit(void *context, uint64_t position)
{
    struct station_shard *shard = context;

    (void)position;
    if (atomic_load(&shard->is_ours))
        station_tell(shard->node, NEWS_COMMITS);
}

static void on_unclaimed(void *context)
{
    station_tell(context, NEWS_STEPS);
}

/* An answer is not waited for longer than one look. */
static bool give_up(void *context)
{
    (void)context;
    return false;
}

static void nudge_one(struct station *node, const struct station_where *where)
{
    struct station_signing what = { .method = STR("GET"),
                                    .target = STR("/v1/nodes"),
                                    .who = { .name = STR("node"), .scopes = STR("read") } };
    char signature[SIGNED_SIZE];
    struct peer_answer answer;
    struct scope scope;
    struct buf out;
    str as;

    scope_init(&scope, &node->home->heap, LIMIT_SCOPE);
    buf_init(&out, &node->home->heap, LIMIT_SCOPE);
    station_body_hash(node->home, STR(""), what.body);
    if (station_sign(node->home, &scope, &what, where->node, signature, &as) == PAWL_OK) {
        const struct peer_header headers[] = { { SIGNED_HEADER, str_of(signature) },
                                               { AS_HEADER, as },
                                               { NULL, STR_NONE } };
        const struct peer_request request = {
            .method = "GET", .target = "/v1/nodes", .headers = headers, .may_wait = give_up
        };

        peer_call(node->peers, &scope, where->address, &request, &out, &answer);
    }
    buf_fini(&out);
    scope_fini(&scope);
}

/* The nodes that want this news. The map is not held while they are called. */
static uint32_t find_hearers(struct station *node, unsigned news, struct station_where *out)
{
    struct station_map *map = station_map_use(node);
    uint32_t count = 0;

    for (uint32_t i = 0; map && i < map->view.node_count && count < NUDGED_MAX; i++) {
        const struct cluster_node *one = &map->view.nodes[i];

        if (!may_hear(node, one) || !((wants_of(one) | NEWS_OWNERS) & news))
            continue;
        (void)snprintf(out[count].node, NODE_NAME_MAX, "%.*s", STR_ARG(one->node));
        (void)snprintf(out[count].address, NODE_ADDRESS_MAX, "%.*s", STR_ARG(one->address));
        count++;
    }
    station_map_leave(node, map);
    return count;
}

static bool is_stopping(struct station *node)
{
    bool stops;

    guard_lock(&node->lock);
    stops = node->is_stopping;
    guard_unlock(&node->lock);
    return stops;
}

static void *nudge_thread(void *context)
{
    struct station *node = context;
    struct pollfd wake = { .fd = node->nudge_fd, .events = POLLIN };
    struct station_where hearers[NUDGED_MAX];
    eventfd_t count;

    while (poll(&wake, 1, -1) < 0 || !is_stopping(node)) {
        unsigned news;
        uint32_t told;

        (void)eventfd_read(node->nudge_fd, &count);
        news = atomic_exchange(&node->news, 0);
        told = find_hearers(node, news, hearers);
        for (uint32_t i = 0; i < told; i++)
            nudge_one(node, &hearers[i]);
        (void)poll(NULL, 0, NUDGE_EVERY_MS);
    }
    return NULL;
}

/* ---- Beginning and ending ---- */

static void listen_to_engines(struct station *node, bool begin)
{
    for (uint32_t i = 0; i < node->count; i++) {
        struct engine *engine = node->shards[i].p->engine;

        (void)engine_watch(engine, begin ? on_commit : NULL, &node->shards[i]);
        engine_watch_unclaimed(engine, begin ? on_unclaimed : NULL, node);
    }
}

bool station_nudge_start(struct station *node)
{
    node->has_nudger = pthread_create(&node->nudger, NULL, nudge_thread, node) == 0;
    if (node->has_nudger)
        listen_to_engines(node, true);
    return node->has_nudger;
}

void station_nudge_stop(struct station *node)
{
    if (!node->has_nudger)
        return;
    listen_to_engines(node, false);
    (void)eventfd_write(node->nudge_fd, 1);
    pthread_join(node->nudger, NULL);
}

void station_look_now(pawl *p)
{
    struct station *node = station_of(p);

    if (!node)
        return;
    (void)eventfd_write(node->beat_fd, 1);
    roaming_wake_all(node);
}
