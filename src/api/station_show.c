/* station_show.c - the nodes and shards of a store, for people and for metrics. */
#include "api/station_int.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/figures.h"

static const char *state_of(const struct cluster_node *node)
{
    if (node->is_dead)
        return "dead";
    if (!node->is_live)
        return "silent";
    return node->is_leaving ? "leaving" : "up";
}

static uint32_t owned_by(const struct cluster_view *view, str name)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < view->shard_count; i++)
        count += view->shards[i].node.data && str_eq(view->shards[i].node, name);
    return count;
}

static void print_node(const struct station *node, const struct cluster_view *view,
                       const struct cluster_node *one, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "node", one->node);
    json_put_str(out, "address", one->address);
    json_put_str(out, "version", one->version);
    json_put_text(out, "state", state_of(one));
    json_put_bool(out, "this", str_is(one->node, node->name));
    json_put_i64(out, "beat_age_ms", one->age_ms > 0 ? one->age_ms : 0);
    json_put_i64(out, "lease_ms", one->ttl_ms);
    json_put_u64(out, "shards", owned_by(view, one->node));
    json_close(out, '}');
}

static void print_shard(const struct cluster_view *view, uint32_t i, struct buf *out)
{
    const struct cluster_shard *shard = &view->shards[i];

    json_open(out, '{');
    json_put_u64(out, "shard", i);
    json_put_str(out, "node", shard->node);
    json_put_i64(out, "epoch", shard->epoch);
    json_put_u64(out, "position", shard->pos);
    json_close(out, '}');
}

static void print_all(const struct station *node, const struct cluster_view *view,
                      struct buf *out)
{
    json_put_open(out, "nodes", '[');
    for (uint32_t i = 0; i < view->node_count; i++)
        print_node(node, view, &view->nodes[i], out);
    json_close(out, ']');
    json_put_open(out, "shards", '[');
    for (uint32_t i = 0; i < view->shard_count; i++)
        print_shard(view, i, out);
    json_close(out, ']');
    json_put_i64(out, "clock_difference_ms", node ? node->skew_ms : 0);
}

void station_print(pawl *p, struct buf *out)
{
    const struct cluster_view none = { 0 };
    struct station *node = station_of(p);
    struct station_map *map = node ? station_map_use(node) : NULL;

    print_all(node, map ? &map->view : &none, out);
    if (map)
        station_map_leave(node, map);
}

/* Of a store that one process has to itself there is nothing. */
void station_print_figures(pawl *p, struct buf *out)
{
    struct station *node = station_of(p);
    uint64_t owned = 0, forwarded, repeated, failed, beats;
    int64_t skew_ms;

    if (!node)
        return;
    guard_lock(&node->lock);
    for (uint32_t i = 0; i < node->count; i++)
        owned += node->shards[i].is_open;
    forwarded = node->forwarded;
    repeated = node->repeated;
    failed = node->failed_beats;
    beats = node->beats;
    skew_ms = node->skew_ms < 0 ? -node->skew_ms : node->skew_ms;
    guard_unlock(&node->lock);
    figure_alone(out, "pawl_node_shards", "gauge", "Shards that this node owns.", owned);
    figure_alone(out, "pawl_node_beats_total", "counter", "Beats that were answered.", beats);
    figure_alone(out, "pawl_node_beats_failed_total", "counter", "Beats that were not.", failed);
    figure_alone(out, "pawl_node_forwarded_total", "counter", "Calls sent to other nodes.",
                 forwarded);
    figure_alone(out, "pawl_node_repeated_total", "counter",
                 "Times a call waited for an owner, and was tried again.", repeated);
    figure_alone(out, "pawl_node_clock_difference_ms", "gauge",
                 "Between this machine's clock and the database's.", (uint64_t)skew_ms);
}

/* Another node that asks has news: a nudge. */
pawl_status op_node_list(struct op_call *call, struct buf *out)
{
    if (call->is_forwarded)
        station_look_now(call->p);
    station_print(call->p, out);
    return PAWL_OK;
}
