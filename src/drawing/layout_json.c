/* layout_json.c - the picture as JSON with the place of everything, for programs that draw it
 * themselves: a page can light what has changed without moving the rest. */
#include "drawing/drawing_int.h"

static void put_number(struct buf *out, const char *key, double value)
{
    json_key(out, key);
    buf_fmt(out, "%.1f", value);
}

/* Without the room that its loops take at both sides. */
static void put_box(struct scope *scope, const struct drawing *drawing,
                    const struct layout_box *box, struct buf *out)
{
    json_open(out, '{');
    json_node_members(&drawing->nodes[box->node], box->node, out);
    put_number(out, "x", box->x);
    put_number(out, "y", box->y);
    put_number(out, "width", box->width - 2 * loops_width(scope, drawing, box->node));
    put_number(out, "height", box->height);
    json_close(out, '}');
}

static void put_edge(struct scope *scope, const struct drawing *drawing,
                     const struct layout *layout, uint32_t index, struct buf *out)
{
    const struct drawing_edge *edge = &drawing->edges[index];
    double x, y;

    json_open(out, '{');
    json_edge_members(edge, out);
    json_put_bool(out, "by_fault", edge->is_by_fault);
    json_key(out, "path");
    buf_byte(out, '"');
    edge_path(scope, drawing, layout, index, out);
    buf_byte(out, '"');
    if (edge_label(scope, drawing, layout, index, &x, &y)) {
        json_put_str(out, "words", edge_caption(scope, edge));
        put_number(out, "x", x);
        put_number(out, "y", y);
    }
    json_close(out, '}');
}

pawl_status drawing_layout(struct scope *scope, const struct drawing *drawing, struct buf *out)
{
    struct layout layout;

    TRY(layout_make(scope, drawing, &layout));
    json_open(out, '{');
    json_put_str(out, "title", drawing->title);
    put_number(out, "width", layout.width);
    put_number(out, "height", layout.height);
    json_put_open(out, "nodes", '[');
    for (uint32_t i = 0; i < drawing->node_count; i++)
        put_box(scope, drawing, &layout.boxes[i], out);
    json_close(out, ']');
    json_put_open(out, "edges", '[');
    for (uint32_t i = 0; i < drawing->edge_count; i++)
        put_edge(scope, drawing, &layout, i, out);
    json_close(out, ']');
    json_close(out, '}');
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}
