/* svg.c - a picture that needs no program: boxes where the layout put them, lines through the
 * places that it kept for them. */
#include "drawing/drawing_int.h"

#define PORT_GAP 16.0

/* Plain colours, so that every program that shows SVG understands them; in the dark they differ. */
static const char style[] =
    "<style>\n"
    "text{font:12px \"DejaVu Sans Mono\",Menlo,Consolas,monospace;fill:#1f2937;"
    "text-anchor:middle}\n"
    ".paper{fill:#ffffff}\n"
    "text.note{fill:#6b7280;font-size:11px}\n"
    "text.label{fill:#6b7280;stroke:#ffffff;stroke-width:4px;paint-order:stroke}\n"
    ".box,.ring{fill:#ffffff;stroke:#9ca3af;stroke-width:1.3px}\n"
    ".dot{fill:#1f2937}\n"
    ".edge{fill:none;stroke:#9ca3af;stroke-width:1.3px}\n"
    ".fault{stroke-dasharray:5 4}\n"
    ".wait .box{stroke-dasharray:6 3}\n"
    ".edge.taken{stroke:#2b6cb0;stroke-width:2.2px}\n"
    "text.label.taken{fill:#2b6cb0}\n"
    ".passed .box{stroke:#2b6cb0;stroke-width:2px}\n"
    ".present .box{fill:#fef3c7;stroke:#d97706;stroke-width:3px}\n"
    ".done .box,.done .ring{fill:#d1fae5;stroke:#059669;stroke-width:2px}\n"
    ".failed .box{fill:#fee2e2;stroke:#dc2626;stroke-width:2px}\n"
    ".ended .box{fill:#f3f4f6;stroke:#1f2937;stroke-width:2px}\n"
    ".cancelled .box{fill:#e5e7eb;stroke:#6b7280;stroke-width:2px}\n"
    ".head{fill:#9ca3af}.way{fill:#2b6cb0}.box.inner{fill:none}\n"
    "@media(prefers-color-scheme:dark){\n"
    "text{fill:#e5e7eb}.paper{fill:#111827}text.note,text.label{fill:#9ca3af}\n"
    "text.label{stroke:#111827}.box,.ring{fill:#111827;stroke:#6b7280}.dot{fill:#e5e7eb}\n"
    ".edge{stroke:#6b7280}.head{fill:#6b7280}.edge.taken{stroke:#63b3ed}.way{fill:#63b3ed}\n"
    "text.label.taken{fill:#63b3ed}.passed .box{stroke:#63b3ed}.present .box{fill:#78350f}\n"
    ".done .box,.done .ring{fill:#064e3b}.failed .box{fill:#7f1d1d}.cancelled .box,.ended "
    ".box{fill:#374151}\n"
    ".box.inner{fill:none}}\n"
    "</style>\n"
    "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" "
    "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"head\" "
    "d=\"M0 0L8 4L0 8z\"/></marker><marker id=\"way\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
    "markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path "
    "class=\"way\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n";

static void put_text(struct buf *out, str text)
{
    static const char *const escapes[256] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"
    };

    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (escapes[byte])
            buf_str(out, str_of(escapes[byte]));
        else
            buf_byte(out, byte < 0x20 || byte == 0x7F ? ' ' : byte);
    }
}

/* ---- Nodes ---- */

static void put_outline(const struct drawing_node *node, const struct layout_box *box, double width,
                        struct buf *out)
{
    double x = box->x - width / 2, y = box->y - box->height / 2, height = box->height;

    if (node->shape == SHAPE_GATE) {
        buf_fmt(out,
                "<polygon class=\"box\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f "
                "%.1f,%.1f\"/>",
                x - 6, box->y, x + 6, y, x + width - 6, y, x + width + 6, box->y, x + width - 6,
                y + height, x + 6, y + height);
        return;
    }
    buf_fmt(out,
            "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%d\"/>",
            x, y, width, height, node->shape == SHAPE_STEP ? 4 : 12);
    if (node->terminal != TERMINAL_NOT)
        buf_fmt(out,
                "<rect class=\"box inner\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\" rx=\"9\"/>",
                x + 3, y + 3, width - 6, height - 6);
}

static void put_dot(const struct drawing_node *node, const struct layout_box *box, struct buf *out)
{
    if (node->shape == SHAPE_END)
        buf_fmt(out, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"7\"/>", box->x, box->y);
    buf_fmt(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/></g>\n", box->x, box->y,
            node->shape == SHAPE_END ? 4 : 6);
}

static void put_node(struct scope *scope, const struct drawing *drawing,
                     const struct layout_box *box, struct buf *out)
{
    const struct drawing_node *node = &drawing->nodes[box->node];
    double y = box->y + (node->note.size ? -3 : 4);

    buf_fmt(out, "<g class=\"node %s %s\">", shape_names[node->shape], mark_looks[node->mark].name);
    if (drawing_is_dot(node)) {
        put_dot(node, box, out);
        return;
    }
    put_outline(node, box, box->width - 2 * loops_width(scope, drawing, box->node), out);
    buf_fmt(out, "<text x=\"%.1f\" y=\"%.1f\">", box->x, y);
    put_text(out, caption(scope, node->name));
    if (node->count > 1)
        buf_fmt(out, " ×%u", node->count);
    buf_str(out, STR("</text>"));
    if (node->note.size > 0) {
        buf_fmt(out, "<text class=\"note\" x=\"%.1f\" y=\"%.1f\">", box->x, box->y + 13);
        put_text(out, caption(scope, node->note));
        buf_str(out, STR("</text>"));
    }
    buf_str(out, STR("</g>\n"));
}

/* ---- Edges ---- */

/* Lines that leave a node leave it side by side, in the order of where they go. */
static double port_of(const struct layout *layout, const struct layout_box *box, bool is_lower,
                      uint32_t other)
{
    const uint32_t *others = is_lower ? box->below : box->above;
    uint32_t count = is_lower ? box->below_count : box->above_count, before = 0;
    double room = box->width * 0.7;
    double gap = count > 1 && room / count < PORT_GAP ? room / count : PORT_GAP;

    if (box->node == DRAWING_NONE)
        return box->x;
    for (uint32_t i = 0; i < count; i++) {
        double x = layout->boxes[others[i]].x;

        if (x < layout->boxes[other].x || (x == layout->boxes[other].x && others[i] < other))
            before++;
    }
    return box->x + (before - (count - 1) / 2.0) * gap;
}

struct point {
    double x, y;
};

/* From the upper end to the lower one, or the other way round, so that the arrow is at its end. */
static void put_way(const struct layout *layout, const struct layout_edge *edge, struct buf *out)
{
    for (uint32_t i = 0; i + 1 < edge->count; i++) {
        uint32_t at = edge->is_turned ? edge->count - 2 - i : i;
        uint32_t upper = edge->boxes[at], lower = edge->boxes[at + 1];
        const struct layout_box *above = &layout->boxes[upper], *below = &layout->boxes[lower];
        struct point top = { port_of(layout, above, true, lower), above->y + above->height / 2 };
        struct point bottom = { port_of(layout, below, false, upper),
                                below->y - below->height / 2 };
        struct point from = edge->is_turned ? bottom : top, to = edge->is_turned ? top : bottom;

        double middle = (from.y + to.y) / 2;

        buf_fmt(out, i == 0 ? "M%.1f %.1f" : "L%.1f %.1f", from.x, from.y);
        if (from.x == to.x)
            buf_fmt(out, "L%.1f %.1f", to.x, to.y);
        else
            buf_fmt(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", from.x, middle, to.x, middle, to.x,
                    to.y);
    }
}

static void put_label(struct scope *scope, const struct drawing_edge *edge, double x, double y,
                      struct buf *out)
{
    buf_fmt(out, "<text class=\"label%s\" x=\"%.1f\" y=\"%.1f\">", edge->taken ? " taken" : "", x,
            y + 4);
    put_text(out, edge_caption(scope, edge));
    if (edge->taken > 1)
        buf_fmt(out, " ×%u", edge->taken);
    buf_str(out, STR("</text>\n"));
}

/* At the right of its node a loop hangs. */
static void put_loop(struct scope *scope, const struct drawing *drawing,
                     const struct layout_box *box, struct buf *out)
{
    double x = box->x + box->width / 2 - loops_width(scope, drawing, box->node);

    buf_fmt(out, "M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x, box->y - 7, x + 26, box->y - 14,
            x + 26, box->y + 14, x + 1, box->y + 7);
}

void edge_path(struct scope *scope, const struct drawing *drawing, const struct layout *layout,
               uint32_t index, struct buf *out)
{
    if (layout->edges[index].is_loop)
        put_loop(scope, drawing, &layout->boxes[drawing->edges[index].from], out);
    else
        put_way(layout, &layout->edges[index], out);
}

static void put_line(struct scope *scope, const struct drawing *drawing,
                     const struct layout *layout, uint32_t index, struct buf *out)
{
    const struct drawing_edge *edge = &drawing->edges[index];

    buf_fmt(out, "<path class=\"edge%s%s\" marker-end=\"url(#%s)\" d=\"",
            edge->is_by_fault ? " fault" : "", edge->taken ? " taken" : "",
            edge->taken ? "way" : "head");
    edge_path(scope, drawing, layout, index, out);
    buf_str(out, STR("\"/>\n"));
}

bool edge_label(struct scope *scope, const struct drawing *drawing, const struct layout *layout,
                uint32_t index, double *x, double *y)
{
    const struct drawing_edge *edge = &drawing->edges[index];
    const struct layout_edge *laid = &layout->edges[index];
    const struct layout_box *box = &layout->boxes[laid->is_loop ? edge->from : 0];

    if (!laid->is_loop && laid->label == DRAWING_NONE)
        return false;
    if (!laid->is_loop)
        box = &layout->boxes[laid->label];
    *x = box->x;
    *y = box->y;
    if (laid->is_loop) {
        uint32_t above = loops_of(drawing, edge->from, index);
        uint32_t all = loops_of(drawing, edge->from, drawing->edge_count);

        *x += box->width / 2 - loops_width(scope, drawing, edge->from) + LOOP_WIDTH - 4 +
              text_width(edge_caption(scope, edge)) / 2;
        *y += (above - (all - 1) / 2.0) * LINE_HEIGHT;
    }
    return true;
}

static void put_labels(struct scope *scope, const struct drawing *drawing,
                       const struct layout *layout, struct buf *out)
{
    double x, y;

    for (uint32_t i = 0; i < drawing->edge_count; i++)
        if (edge_label(scope, drawing, layout, i, &x, &y))
            put_label(scope, &drawing->edges[i], x, y, out);
}

pawl_status drawing_svg(struct scope *scope, const struct drawing *drawing, struct buf *out)
{
    struct layout layout;

    TRY(layout_make(scope, drawing, &layout));
    buf_fmt(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>",
            layout.width, layout.height, layout.width, layout.height);
    put_text(out, drawing->title);
    buf_str(out, STR("</title>\n"));
    buf_str(out, str_of(style));
    buf_str(out, STR("<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n"));
    for (uint32_t i = 0; i < drawing->edge_count; i++)
        put_line(scope, drawing, &layout, i, out);
    for (uint32_t i = 0; i < drawing->node_count; i++)
        put_node(scope, drawing, &layout.boxes[i], out);
    put_labels(scope, drawing, &layout, out);
    buf_str(out, STR("</svg>\n"));
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}
