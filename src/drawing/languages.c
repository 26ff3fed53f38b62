/* languages.c - a picture for Mermaid, for Graphviz, and as JSON. */
#include "drawing/drawing_int.h"
#include <stdio.h>

/* What a label's quotes would end, or a language would take for its own. */
static void put_quoted(struct buf *out, str text, bool is_mermaid)
{
    buf_byte(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (is_mermaid && strchr("\"#<>&;`", byte) && byte)
            buf_fmt(out, "#%u;", byte);
        else if (byte == '\\' || byte == '"')
            buf_fmt(out, "\\%c", byte);
        else
            buf_byte(out, byte < 0x20 || byte == 0x7F ? ' ' : byte);
    }
    buf_byte(out, '"');
}

static bool is_end_state(const struct drawing_node *node)
{
    return node->shape == SHAPE_STATE && node->terminal != TERMINAL_NOT;
}

static str node_words(struct scope *scope, const struct drawing_node *node, const char *line_end)
{
    size_t size = node->name.size + node->note.size + 64;
    char *text = arena_alloc(&scope->arena, size), times[24] = "";
    const char *sign = mark_looks[node->mark].sign;

    if (!text)
        return node->name;
    if (node->count > 1)
        snprintf(times, sizeof times, " ×%u", node->count);
    snprintf(text, size, "%s%s%.*s%s%s%.*s", sign, *sign ? " " : "", STR_ARG(node->name), times,
             node->note.size ? line_end : "", STR_ARG(node->note));
    return str_of(text);
}

/* ---- Mermaid ---- */

/* Around the words of a node, by its shape; a dot has no words. */
static const struct brackets {
    const char *left, *right;
} brackets_of[] = {
    [SHAPE_START] = { "((\" \"", "))" }, [SHAPE_STATE] = { "(", ")" },  [SHAPE_STEP] = { "[", "]" },
    [SHAPE_GATE] = { "{{", "}}" },       [SHAPE_WAIT] = { "([", "])" }, [SHAPE_FORK] = { "{", "}" },
    [SHAPE_END] = { "(((\" \"", ")))" },
};

static void mermaid_node(struct scope *scope, const struct drawing *drawing, uint32_t index,
                         struct buf *out)
{
    const struct drawing_node *node = &drawing->nodes[index];
    struct brackets brackets = brackets_of[node->shape];

    if (is_end_state(node))
        brackets = (struct brackets){ "[[", "]]" };
    buf_fmt(out, "    n%u%s", index, brackets.left);
    if (!drawing_is_dot(node))
        put_quoted(out, node_words(scope, node, " · "), true);
    buf_fmt(out, "%s\n", brackets.right);
    if (node->mark != MARK_NONE)
        buf_fmt(out, "    class n%u %s\n", index, mark_looks[node->mark].name);
}

static void mermaid_edge(struct scope *scope, const struct drawing_edge *edge, struct buf *out)
{
    str words = edge_words(scope, edge);
    const char *line = edge->is_by_fault ? "-.->" : "-->";

    buf_fmt(out, "    n%u %s", edge->from, edge->taken ? "==>" : line);
    if (words.size > 0) {
        buf_byte(out, '|');
        put_quoted(out, words, true);
        buf_byte(out, '|');
    }
    buf_fmt(out, " n%u\n", edge->to);
}

pawl_status drawing_mermaid(struct scope *scope, const struct drawing *drawing, struct buf *out)
{
    buf_fmt(out, "%%%% %.*s\nflowchart TD\n", STR_ARG(drawing->title));
    for (uint32_t i = 0; i < drawing->node_count; i++)
        mermaid_node(scope, drawing, i, out);
    for (uint32_t i = 0; i < drawing->edge_count; i++)
        mermaid_edge(scope, &drawing->edges[i], out);
    if (drawing->is_marked)
        buf_str(out, STR("    classDef passed stroke:#2b6cb0,stroke-width:2px\n"
                         "    classDef present fill:#fef3c7,stroke:#b45309,stroke-width:3px\n"
                         "    classDef done fill:#d1fae5,stroke:#047857,stroke-width:2px\n"
                         "    classDef failed fill:#fee2e2,stroke:#b91c1c,stroke-width:2px\n"
                         "    classDef ended fill:#f3f4f6,stroke:#1f2937,stroke-width:2px\n"
                         "    classDef cancelled fill:#e5e7eb,stroke:#6b7280,stroke-width:2px\n"));
    return PAWL_OK;
}

/* ---- Graphviz ---- */

static const char *const dot_shapes[] = {
    [SHAPE_START] = "shape=point,width=0.15",
    [SHAPE_STATE] = "shape=box,style=rounded",
    [SHAPE_STEP] = "shape=box,style=rounded",
    [SHAPE_GATE] = "shape=hexagon",
    [SHAPE_WAIT] = "shape=box,style=\"rounded,dashed\"",
    [SHAPE_FORK] = "shape=diamond",
    [SHAPE_END] = "shape=doublecircle,width=0.2",
};

static const char *const dot_colours[] = {
    [MARK_NONE] = "",
    [MARK_PASSED] = ",color=\"#2b6cb0\",penwidth=2",
    [MARK_PRESENT] = ",color=\"#b45309\",penwidth=3",
    [MARK_DONE] = ",color=\"#047857\",penwidth=2",
    [MARK_ENDED] = ",color=\"#1f2937\",penwidth=2",
    [MARK_FAILED] = ",color=\"#b91c1c\",penwidth=2",
    [MARK_CANCELLED] = ",color=\"#6b7280\",penwidth=2",
};

pawl_status drawing_dot(struct scope *scope, const struct drawing *drawing, struct buf *out)
{
    buf_str(out, STR("digraph "));
    put_quoted(out, drawing->title, false);
    buf_str(out, STR(" {\n  node [fontname=\"Helvetica\"];\n  edge [fontname=\"Helvetica\"];\n"));
    for (uint32_t i = 0; i < drawing->node_count; i++) {
        const struct drawing_node *node = &drawing->nodes[i];

        buf_fmt(out, "  n%u [label=", i);
        put_quoted(out, node_words(scope, node, ", "), false);
        buf_fmt(out, ",%s%s%s];\n", dot_shapes[node->shape],
                is_end_state(node) ? ",peripheries=2" : "", dot_colours[node->mark]);
    }
    for (uint32_t i = 0; i < drawing->edge_count; i++) {
        const struct drawing_edge *edge = &drawing->edges[i];

        buf_fmt(out, "  n%u -> n%u [label=", edge->from, edge->to);
        put_quoted(out, edge_words(scope, edge), false);
        buf_fmt(out, "%s%s];\n", edge->is_by_fault ? ",style=dashed" : "",
                edge->taken ? ",color=\"#2b6cb0\",penwidth=2" : "");
    }
    buf_str(out, STR("}\n"));
    return PAWL_OK;
}

/* ---- JSON ---- */

void json_node_members(const struct drawing_node *node, uint32_t index, struct buf *out)
{
    /* A state that declares no kind has always been `done` here. */
    enum drawing_mark mark = node->mark == MARK_ENDED ? MARK_DONE : node->mark;

    json_put_u64(out, "id", index);
    json_put_text(out, "shape", shape_names[node->shape]);
    json_put_str(out, "name", node->name);
    json_put_str(out, "note", node->note);
    json_put_text(out, "terminal_kind", terminal_kind_name(node->terminal));
    json_put_text(out, "mark", node->mark == MARK_NONE ? NULL : mark_looks[mark].name);
    json_put_u64(out, "count", node->count);
}

void json_edge_members(const struct drawing_edge *edge, struct buf *out)
{
    json_put_u64(out, "from", edge->from);
    json_put_u64(out, "to", edge->to);
    json_put_str(out, "label", edge->label);
    json_put_str(out, "note", edge->note);
    json_put_u64(out, "taken", edge->taken);
}

static void json_line(uint32_t depth, uint32_t node, str word, struct buf *out)
{
    json_open(out, '{');
    json_put_u64(out, "depth", depth);
    json_key(out, "node");
    if (node == DRAWING_NONE)
        json_null(out);
    else
        json_u64(out, node);
    json_put_str(out, "word", word);
    json_close(out, '}');
}

/* For a list: a tree's forms, else the nodes from top to bottom. */
static pawl_status json_lines(struct scope *scope, const struct drawing *drawing, struct buf *out)
{
    uint32_t *order;

    TRY(drawing_order(scope, drawing, &order));
    for (uint32_t i = 0; i < drawing->line_count; i++)
        json_line(drawing->lines[i].depth, drawing->lines[i].node, drawing->lines[i].word, out);
    for (uint32_t i = 0; i < drawing->node_count && drawing->line_count == 0; i++)
        if (order[i] != drawing->start && order[i] != drawing->end)
            json_line(0, order[i], STR(""), out);
    return PAWL_OK;
}

pawl_status drawing_json(struct scope *scope, const struct drawing *drawing, struct buf *out)
{
    pawl_status status;

    json_open(out, '{');
    json_put_str(out, "title", drawing->title);
    json_put_open(out, "nodes", '[');
    for (uint32_t i = 0; i < drawing->node_count; i++) {
        json_open(out, '{');
        json_node_members(&drawing->nodes[i], i, out);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_put_open(out, "edges", '[');
    for (uint32_t i = 0; i < drawing->edge_count; i++) {
        json_open(out, '{');
        json_edge_members(&drawing->edges[i], out);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_put_open(out, "lines", '[');
    status = json_lines(scope, drawing, out);
    json_close(out, ']');
    json_close(out, '}');
    return status;
}
