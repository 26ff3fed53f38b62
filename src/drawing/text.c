/* text.c - a picture in letters: a tree as a tree; anything else as its nodes from top to bottom,
 * each with the ways out of it. */
#include "drawing/drawing_int.h"

static void put_plain(struct buf *out, str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        buf_byte(out, byte < 0x20 || byte == 0x7F ? ' ' : byte);
    }
}

static void put_name(const struct drawing *drawing, const struct drawing_node *node,
                     struct buf *out)
{
    const char *terminal = terminal_kind_name(node->terminal);

    if (drawing->is_marked)
        buf_fmt(out, "%s ", node->mark == MARK_NONE ? "·" : mark_looks[node->mark].sign);
    put_plain(out, node->name);
    if (node->count > 1)
        buf_fmt(out, " ×%u", node->count);
    if (node->note.size > 0) {
        buf_str(out, STR("  "));
        put_plain(out, node->note);
    }
    if (node->shape == SHAPE_STATE && node->terminal != TERMINAL_NOT)
        buf_fmt(out, "  (%s)", terminal ? terminal : "end");
    buf_byte(out, '\n');
}

/* ---- A tree ---- */

/* Does another line follow at this depth before one that is less deep? */
static bool has_sibling(const struct drawing *drawing, uint32_t line, uint32_t depth)
{
    for (uint32_t i = line + 1; i < drawing->line_count; i++)
        if (drawing->lines[i].depth <= depth)
            return drawing->lines[i].depth == depth;
    return false;
}

static void put_branches(const struct drawing *drawing, uint32_t line, struct buf *out)
{
    uint32_t depth = drawing->lines[line].depth;

    for (uint32_t i = 1; i < depth; i++)
        buf_str(out, str_of(has_sibling(drawing, line, i) ? "│  " : "   "));
    if (depth > 0)
        buf_str(out, str_of(has_sibling(drawing, line, depth) ? "├─ " : "└─ "));
}

static void put_tree(const struct drawing *drawing, struct buf *out)
{
    for (uint32_t i = 0; i < drawing->line_count; i++) {
        const struct drawing_line *line = &drawing->lines[i];

        put_branches(drawing, i, out);
        if (line->node != DRAWING_NONE) {
            put_name(drawing, &drawing->nodes[line->node], out);
            continue;
        }
        put_plain(out, line->word);
        buf_byte(out, '\n');
    }
}

/* ---- Anything else ---- */

static void put_exits(struct scope *scope, const struct drawing *drawing, uint32_t node,
                      struct buf *out)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < drawing->edge_count; i++)
        left += drawing->edges[i].from == node;
    for (uint32_t i = 0; i < drawing->edge_count; i++) {
        const struct drawing_edge *edge = &drawing->edges[i];
        str words = edge_words(scope, edge);

        if (edge->from != node)
            continue;
        left--;
        buf_fmt(out, "  %s%s ", left ? "├" : "└", edge->taken ? "━" : "─");
        put_plain(out, words);
        buf_fmt(out, "%s→ ", words.size ? " " : "");
        put_plain(out, edge->to == drawing->end ? STR("(done)") : drawing->nodes[edge->to].name);
        if (edge->taken > 1)
            buf_fmt(out, "  ×%u", edge->taken);
        buf_byte(out, '\n');
    }
}

/* By counting: how many each rank has, then each node into its place. */
pawl_status drawing_order(struct scope *scope, const struct drawing *drawing, uint32_t **out)
{
    uint32_t count = drawing->node_count;
    uint32_t *ranks = ARENA_ARRAY(&scope->arena, uint32_t, count + 1);
    uint32_t *starts = ARENA_ARRAY(&scope->arena, uint32_t, count + 1);
    uint32_t *order = ARENA_ARRAY(&scope->arena, uint32_t, count + 1);
    struct layout_edge *edges =
        ARENA_ARRAY(&scope->arena, struct layout_edge, drawing->edge_count + 1);

    TRY_MEMORY(scope, ranks && starts && order && edges);
    TRY(layout_rank(scope, drawing, ranks, edges));
    for (uint32_t i = 0; i < count; i++)
        starts[ranks[i] + 1]++; /* a rank is less than the number of nodes */
    for (uint32_t i = 1; i <= count; i++)
        starts[i] += starts[i - 1];
    for (uint32_t i = 0; i < count; i++)
        order[starts[ranks[i]]++] = i;
    *out = order;
    return PAWL_OK;
}

static pawl_status put_nodes(struct scope *scope, const struct drawing *drawing, struct buf *out)
{
    uint32_t *order;

    TRY(drawing_order(scope, drawing, &order));
    for (uint32_t i = 0; i < drawing->node_count; i++) {
        if (order[i] == drawing->start || order[i] == drawing->end)
            continue;
        put_name(drawing, &drawing->nodes[order[i]], out);
        put_exits(scope, drawing, order[i], out);
    }
    return PAWL_OK;
}

pawl_status drawing_text(struct scope *scope, const struct drawing *drawing, struct buf *out)
{
    put_plain(out, drawing->title);
    buf_byte(out, '\n');
    if (drawing->line_count == 0)
        return put_nodes(scope, drawing, out);
    put_tree(drawing, out);
    return PAWL_OK;
}
