/* layout_place.c - the order in each rank (those that belong together beside each other), and then
 * the places: as near to what each box wishes as its neighbours allow. */
#include "drawing/drawing_int.h"
#include <stdlib.h>

#define SWEEPS   12
#define GAP      26.0
#define LINE_GAP 10.0 /* beside a line that only passes */

/* ---- The order ---- */

struct weighed {
    uint32_t box, order;
    double weight;
};

static int compare_weight(const void *a, const void *b)
{
    const struct weighed *one = a, *other = b;

    if (one->weight != other->weight)
        return one->weight < other->weight ? -1 : 1;
    return one->order < other->order ? -1 : one->order > other->order;
}

/* Of the orders of some boxes, or of their places; `otherwise` without any. */
static double mean(const struct layout *layout, const uint32_t *boxes, uint32_t count,
                   bool of_places, double otherwise)
{
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += of_places ? layout->boxes[boxes[i]].x : layout->boxes[boxes[i]].order;
    return count > 0 ? sum / count : otherwise;
}

static void order_rank(struct layout *layout, struct weighed *work, uint32_t rank, bool downwards)
{
    uint32_t count = layout->rank_sizes[rank];

    for (uint32_t i = 0; i < count; i++) {
        const struct layout_box *box = &layout->boxes[layout->ranks[rank][i]];

        work[i] = (struct weighed){ .box = layout->ranks[rank][i], .order = i };
        work[i].weight = downwards ? mean(layout, box->above, box->above_count, false, i)
                                   : mean(layout, box->below, box->below_count, false, i);
    }
    qsort(work, count, sizeof *work, compare_weight);
    for (uint32_t i = 0; i < count; i++) {
        layout->ranks[rank][i] = work[i].box;
        layout->boxes[work[i].box].order = i;
    }
}

pawl_status layout_order(struct scope *scope, struct layout *layout)
{
    struct weighed *work = ARENA_ARRAY(&scope->arena, struct weighed, layout->box_count + 1);

    TRY_MEMORY(scope, work);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (uint32_t i = 1; i < layout->rank_count; i++)
            order_rank(layout, work, i, true);
        for (uint32_t i = layout->rank_count - 1; sweep + 1 < SWEEPS && i-- > 0;)
            order_rank(layout, work, i, false);
    }
    return PAWL_OK;
}

/* ---- The places ---- */

static double apart(const struct layout_box *left, const struct layout_box *right)
{
    bool are_nodes = left->node != DRAWING_NONE && right->node != DRAWING_NONE;

    return left->width / 2 + right->width / 2 + (are_nodes ? GAP : LINE_GAP);
}

static void make_wishes(struct layout *layout, uint32_t rank, bool above, bool below)
{
    for (uint32_t i = 0; i < layout->rank_sizes[rank]; i++) {
        struct layout_box *box = &layout->boxes[layout->ranks[rank][i]];
        bool has_above = above && box->above_count > 0, has_below = below && box->below_count > 0;
        double sum = mean(layout, box->above, has_above ? box->above_count : 0, true, 0) +
                     mean(layout, box->below, has_below ? box->below_count : 0, true, 0);

        box->wish = has_above || has_below ? sum / (has_above + has_below) : box->x;
    }
}

/* The places that differ least (by squares) from the wishes: neighbours whose wishes are too near
 * to each other form a group, which is placed at the mean of their wishes. */
struct group {
    double sum; /* of wishes, each less its offset in the rank */
    uint32_t count;
};

/* The places of a rank, by its neighbours above and below. */
static void place_rank(struct layout *layout, uint32_t rank, bool above, bool below,
                       struct group *groups)
{
    uint32_t count = layout->rank_sizes[rank], group_count = 0, at = 0;
    double offset = 0;

    make_wishes(layout, rank, above, below);
    for (uint32_t i = 0; i < count; i++) {
        struct layout_box *box = &layout->boxes[layout->ranks[rank][i]];

        if (i > 0)
            offset += apart(&layout->boxes[layout->ranks[rank][i - 1]], box);
        box->x = offset; /* until the groups are known */
        groups[group_count++] = (struct group){ .sum = box->wish - offset, .count = 1 };
        while (group_count > 1 && groups[group_count - 2].sum / groups[group_count - 2].count >
                                      groups[group_count - 1].sum / groups[group_count - 1].count) {
            groups[group_count - 2].sum += groups[group_count - 1].sum;
            groups[group_count - 2].count += groups[group_count - 1].count;
            group_count--;
        }
    }
    for (uint32_t i = 0; i < group_count; i++)
        for (uint32_t j = 0; j < groups[i].count; j++)
            layout->boxes[layout->ranks[rank][at++]].x += groups[i].sum / groups[i].count;
}

pawl_status layout_place(struct scope *scope, struct layout *layout)
{
    struct group *groups = ARENA_ARRAY(&scope->arena, struct group, layout->box_count + 1);

    TRY_MEMORY(scope, groups);
    for (uint32_t i = 0; i < layout->rank_count; i++)
        place_rank(layout, i, false, false, groups);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool is_last = sweep + 1 == SWEEPS;

        for (uint32_t i = 1; i < layout->rank_count; i++)
            place_rank(layout, i, true, is_last, groups);
        for (uint32_t i = layout->rank_count - 1; i-- > 0;)
            place_rank(layout, i, is_last, true, groups);
    }
    return PAWL_OK;
}
