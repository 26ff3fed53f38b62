/* layout.c - where everything lies: ranks from top to bottom, an edge passing through one box in
 * every rank between its ends, so that lines and labels have room of their own. */
#include "base/grow.h"
#include "drawing/drawing_int.h"

#define BOXES_MAX    20000u
#define LETTER_WIDTH 7.3
#define NODE_PADDING 24.0
#define RANK_GAP     16.0
#define DOT_SIZE     14.0
#define MARGIN       16.0

/* Columns as a terminal would count them: wide letters are wide here too. */
double text_width(str text)
{
    double width = 0;

    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if ((byte & 0xC0) == 0x80)
            continue;
        width += byte >= 0xE3 && byte != 0xEF ? 2 * LETTER_WIDTH : LETTER_WIDTH;
    }
    return width;
}

static uint32_t add_box(struct scope *scope, struct layout *layout, struct layout_box box)
{
    if (!GROW(&scope->arena, layout->boxes, layout->box_count, layout->box_capacity))
        return DRAWING_NONE;
    layout->boxes[layout->box_count] = box;
    return layout->box_count++;
}

double loops_width(struct scope *scope, const struct drawing *drawing, uint32_t node)
{
    double widest = 0;

    for (uint32_t i = 0; i < drawing->edge_count; i++)
        if (drawing->edges[i].from == node && drawing->edges[i].to == node) {
            double width = LOOP_WIDTH + text_width(edge_caption(scope, &drawing->edges[i]));

            widest = width > widest ? width : widest;
        }
    return widest;
}

uint32_t loops_of(const struct drawing *drawing, uint32_t node, uint32_t count)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++)
        found += drawing->edges[i].from == node && drawing->edges[i].to == node;
    return found;
}

static struct layout_box box_of(struct scope *scope, const struct drawing *drawing, uint32_t index)
{
    const struct drawing_node *node = &drawing->nodes[index];
    struct layout_box box = { .node = index, .edge = DRAWING_NONE };
    double name = text_width(caption(scope, node->name)) + (node->count > 1 ? 4 : 0) * LETTER_WIDTH;
    double note = text_width(caption(scope, node->note));
    double loops = loops_of(drawing, index, drawing->edge_count) * LINE_HEIGHT;

    box.width = box.height = DOT_SIZE;
    if (drawing_is_dot(node))
        return box;
    box.width = (name > note ? name : note) + NODE_PADDING;
    box.height = (node->note.size ? 2 : 1) * LINE_HEIGHT + 14;
    box.height = loops > box.height ? loops : box.height;
    /* A loop hangs at the right; what is as wide at the left keeps the node in the middle. */
    box.width += 2 * loops_width(scope, drawing, index);
    return box;
}

/* The boxes of an edge between its ends; its label has the middle one. */
static bool thread_edge(struct scope *scope, const struct drawing *drawing, struct layout *layout,
                        uint32_t index)
{
    struct layout_edge *edge = &layout->edges[index];
    const struct drawing_edge *drawn = &drawing->edges[index];
    uint32_t upper = edge->is_turned ? drawn->to : drawn->from;
    uint32_t lower = edge->is_turned ? drawn->from : drawn->to;
    uint32_t first = layout->boxes[upper].rank, last = layout->boxes[lower].rank;
    str words = edge_caption(scope, drawn);

    edge->label = DRAWING_NONE;
    if (edge->is_loop)
        return true;
    edge->count = last - first + 1;
    edge->boxes = ARENA_ARRAY(&scope->arena, uint32_t, edge->count);
    if (!edge->boxes)
        return false;
    edge->boxes[0] = upper;
    edge->boxes[edge->count - 1] = lower;
    for (uint32_t rank = first + 1; rank < last; rank++) {
        bool is_label = words.size > 0 && rank == first + edge->count / 2;
        struct layout_box box = { .rank = rank, .node = DRAWING_NONE, .edge = index };

        if (is_label) {
            box.width = text_width(words) + 12;
            box.height = LINE_HEIGHT;
        }
        edge->boxes[rank - first] = add_box(scope, layout, box);
        if (edge->boxes[rank - first] == DRAWING_NONE)
            return false;
        if (is_label)
            edge->label = edge->boxes[rank - first];
    }
    return true;
}

static bool count_links(struct scope *scope, struct layout *layout, uint32_t edge_count)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < edge_count; i++)
            for (uint32_t j = 0; j + 1 < layout->edges[i].count; j++) {
                uint32_t upper = layout->edges[i].boxes[j], lower = layout->edges[i].boxes[j + 1];
                struct layout_box *above = &layout->boxes[upper], *below = &layout->boxes[lower];

                if (pass == 1) {
                    above->below[above->below_count] = lower;
                    below->above[below->above_count] = upper;
                }
                above->below_count++;
                below->above_count++;
            }
        for (uint32_t i = 0; pass == 0 && i < layout->box_count; i++) {
            struct layout_box *box = &layout->boxes[i];

            box->above = ARENA_ARRAY(&scope->arena, uint32_t, box->above_count + 1);
            box->below = ARENA_ARRAY(&scope->arena, uint32_t, box->below_count + 1);
            box->above_count = box->below_count = 0;
        }
        if (scope->arena.failed)
            return false;
    }
    return true;
}

static bool fill_ranks(struct scope *scope, struct layout *layout)
{
    for (uint32_t i = 0; i < layout->box_count; i++)
        if (layout->boxes[i].rank + 1 > layout->rank_count)
            layout->rank_count = layout->boxes[i].rank + 1;
    layout->ranks = ARENA_ARRAY(&scope->arena, uint32_t *, layout->rank_count + 1);
    layout->rank_sizes = ARENA_ARRAY(&scope->arena, uint32_t, layout->rank_count + 1);
    if (!layout->ranks || !layout->rank_sizes)
        return false;
    for (uint32_t i = 0; i < layout->box_count; i++)
        layout->rank_sizes[layout->boxes[i].rank]++;
    for (uint32_t i = 0; i < layout->rank_count; i++) {
        layout->ranks[i] = ARENA_ARRAY(&scope->arena, uint32_t, layout->rank_sizes[i] + 1);
        if (!layout->ranks[i])
            return false;
        layout->rank_sizes[i] = 0;
    }
    for (uint32_t i = 0; i < layout->box_count; i++) {
        struct layout_box *box = &layout->boxes[i];

        box->order = layout->rank_sizes[box->rank];
        layout->ranks[box->rank][layout->rank_sizes[box->rank]++] = i;
    }
    return true;
}

/* Heights of the ranks are those of the highest in each; then the whole is moved into view. */
static void place_ranks(struct layout *layout)
{
    double y = MARGIN, left = 0, right = 0;

    for (uint32_t i = 0; i < layout->rank_count; i++) {
        double height = 0;

        for (uint32_t j = 0; j < layout->rank_sizes[i]; j++)
            if (layout->boxes[layout->ranks[i][j]].height > height)
                height = layout->boxes[layout->ranks[i][j]].height;
        for (uint32_t j = 0; j < layout->rank_sizes[i]; j++)
            layout->boxes[layout->ranks[i][j]].y = y + height / 2;
        y += height + RANK_GAP;
    }
    for (uint32_t i = 0; i < layout->box_count; i++) {
        const struct layout_box *box = &layout->boxes[i];

        left = i == 0 || box->x - box->width / 2 < left ? box->x - box->width / 2 : left;
        right = i == 0 || box->x + box->width / 2 > right ? box->x + box->width / 2 : right;
    }
    for (uint32_t i = 0; i < layout->box_count; i++)
        layout->boxes[i].x += MARGIN - left;
    layout->width = right - left + 2 * MARGIN;
    layout->height = y - RANK_GAP + MARGIN;
}

static pawl_status make_boxes(struct scope *scope, const struct drawing *drawing,
                              struct layout *layout)
{
    uint32_t *ranks = ARENA_ARRAY(&scope->arena, uint32_t, drawing->node_count + 1);

    layout->edges = ARENA_ARRAY(&scope->arena, struct layout_edge, drawing->edge_count + 1);
    TRY_MEMORY(scope, ranks && layout->edges);
    TRY(layout_rank(scope, drawing, ranks, layout->edges));
    for (uint32_t i = 0; i < drawing->node_count; i++) {
        struct layout_box box = box_of(scope, drawing, i);

        box.rank = 2 * ranks[i]; /* between two nodes there is always a rank for labels */
        if (add_box(scope, layout, box) == DRAWING_NONE)
            return scope_no_memory(scope);
    }
    for (uint32_t i = 0; i < drawing->edge_count; i++) {
        TRY_MEMORY(scope, thread_edge(scope, drawing, layout, i));
        if (layout->box_count > BOXES_MAX)
            return scope_fail(scope, PAWL_TOO_LARGE,
                              "the picture: expected at most %u places for nodes and lines, found "
                              "more; the formats dot and mermaid have no limit",
                              BOXES_MAX);
    }
    return PAWL_OK;
}

pawl_status layout_make(struct scope *scope, const struct drawing *drawing, struct layout *out)
{
    *out = (struct layout){ 0 };
    TRY(make_boxes(scope, drawing, out));
    TRY_MEMORY(scope, count_links(scope, out, drawing->edge_count) && fill_ranks(scope, out));
    TRY(layout_order(scope, out));
    TRY(layout_place(scope, out));
    place_ranks(out);
    return PAWL_OK;
}
