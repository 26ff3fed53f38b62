/* layout_rank.c - which rank each node has: one more than the highest it is reached from. An edge
 * that closes a circle is turned round for that, so that all others can go down. */
#include "drawing/drawing_int.h"

enum visit { NOT_SEEN, ON_PATH, LEFT };

struct ranking {
    const struct drawing *drawing;
    struct layout_edge *edges;
    uint32_t *exits, *exit_start; /* edges by their upper end */
    enum visit *visits;
    uint32_t *path, *next_exit; /* of the search, from its root */
    uint32_t *left;             /* nodes in the order they were left */
    uint32_t left_count;
};

static uint32_t upper_end(const struct ranking *ranking, uint32_t edge)
{
    const struct drawing_edge *drawn = &ranking->drawing->edges[edge];

    return ranking->edges[edge].is_turned ? drawn->to : drawn->from;
}

/* By counting: first how many each node has, then each into its place. */
static void index_exits(struct ranking *ranking)
{
    const struct drawing *drawing = ranking->drawing;

    memset(ranking->exit_start, 0, sizeof *ranking->exit_start * (drawing->node_count + 1));
    for (uint32_t i = 0; i < drawing->edge_count; i++)
        ranking->exit_start[upper_end(ranking, i)]++;
    for (uint32_t i = 1; i <= drawing->node_count; i++)
        ranking->exit_start[i] += ranking->exit_start[i - 1];
    for (uint32_t i = drawing->edge_count; i-- > 0;)
        ranking->exits[--ranking->exit_start[upper_end(ranking, i)]] = i;
}

/* Depth first, without recursion: a flow may be as deep as it is long. */
static void search_from(struct ranking *ranking, uint32_t root)
{
    uint32_t depth = 0;

    ranking->path[0] = root;
    ranking->next_exit[0] = ranking->exit_start[root];
    ranking->visits[root] = ON_PATH;
    for (;;) {
        uint32_t node = ranking->path[depth], edge, to;

        if (ranking->next_exit[depth] == ranking->exit_start[node + 1]) {
            ranking->visits[node] = LEFT;
            ranking->left[ranking->left_count++] = node;
            if (depth == 0)
                return;
            depth--;
            continue;
        }
        edge = ranking->exits[ranking->next_exit[depth]++];
        to = ranking->drawing->edges[edge].to;
        ranking->edges[edge].is_loop = to == node;
        ranking->edges[edge].is_turned = to != node && ranking->visits[to] == ON_PATH;
        if (ranking->visits[to] != NOT_SEEN)
            continue;
        depth++;
        ranking->path[depth] = to;
        ranking->next_exit[depth] = ranking->exit_start[to];
        ranking->visits[to] = ON_PATH;
    }
}

/* Those left last come first: a node with an edge to another was left after it. */
static void give_ranks(const struct ranking *ranking, uint32_t *ranks)
{
    for (uint32_t i = ranking->left_count; i-- > 0;) {
        uint32_t node = ranking->left[i];

        for (uint32_t j = ranking->exit_start[node]; j < ranking->exit_start[node + 1]; j++) {
            const struct layout_edge *edge = &ranking->edges[ranking->exits[j]];
            const struct drawing_edge *drawn = &ranking->drawing->edges[ranking->exits[j]];
            uint32_t lower = edge->is_turned ? drawn->from : drawn->to;

            if (!edge->is_loop && ranks[lower] < ranks[node] + 1)
                ranks[lower] = ranks[node] + 1;
        }
    }
}

pawl_status layout_rank(struct scope *scope, const struct drawing *drawing, uint32_t *ranks,
                        struct layout_edge *edges)
{
    struct arena *arena = &scope->arena;
    uint32_t count = drawing->node_count;
    struct ranking ranking = {
        .drawing = drawing,
        .edges = edges,
        .exits = ARENA_ARRAY(arena, uint32_t, drawing->edge_count + 1),
        .exit_start = ARENA_ARRAY(arena, uint32_t, count + 1),
        .visits = ARENA_ARRAY(arena, enum visit, count + 1),
        .path = ARENA_ARRAY(arena, uint32_t, count + 1),
        .next_exit = ARENA_ARRAY(arena, uint32_t, count + 1),
        .left = ARENA_ARRAY(arena, uint32_t, count + 1),
    };

    TRY_MEMORY(scope, !arena->failed);
    index_exits(&ranking);
    if (drawing->start != DRAWING_NONE)
        search_from(&ranking, drawing->start);
    for (uint32_t i = 0; i < count; i++)
        if (ranking.visits[i] == NOT_SEEN)
            search_from(&ranking, i);
    index_exits(&ranking); /* some are turned now */
    give_ranks(&ranking, ranks);
    return PAWL_OK;
}
