/* drawing_int.h - private to src/drawing: building a picture, and its layout. */
#ifndef PAWL_DRAWING_DRAWING_INT_H
#define PAWL_DRAWING_DRAWING_INT_H

#include "base/grow.h"
#include "drawing/drawing.h"
#include "flow/plan.h"

/* ---- build.c ---- */

struct builder {
    struct scope *scope;
    struct drawing *drawing;
    bool failed; /* no memory: nothing more is added */
};

/* Add to a list that has a count and a capacity; its index, or DRAWING_NONE: it has failed. */
#define BUILD_ADD(builder, items, count, capacity, item)                                           \
    (GROW(&(builder)->scope->arena, items, count, capacity)                                        \
         ? ((items)[count] = (item), (count)++)                                                    \
         : ((builder)->failed = true, DRAWING_NONE))

uint32_t build_node(struct builder *builder, struct drawing_node node);
uint32_t build_edge(struct builder *builder, struct drawing_edge edge);
str build_text(struct builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
uint32_t build_step(struct builder *builder, const struct plan_step *step);

void build_graph(struct builder *builder, const struct plan *plan);
void build_tree(struct builder *builder, const struct plan *plan);
void build_belongings(struct builder *builder, const struct plan *plan);

/* The step that this one is done for, or undoes; STEP_NONE: it stands for itself. */
static inline uint32_t plan_owner(const struct plan_step *step)
{
    return step->of != STEP_NONE ? step->of : step->undoes;
}

extern const char *const shape_names[];
extern const struct mark_look {
    const char *name, *sign;
} mark_looks[];

static inline bool drawing_is_dot(const struct drawing_node *node)
{
    return node->shape == SHAPE_START || node->shape == SHAPE_END;
}

/* "pay [guard QP]": a label with its note. */
str edge_words(struct scope *scope, const struct drawing_edge *edge);
/* Of one line, and cut where there is no room for more, as edge_caption() is: its words. */
str caption(struct scope *scope, str text);
str edge_caption(struct scope *scope, const struct drawing_edge *edge);

/* The members of both in JSON, without the brackets. */
void json_node_members(const struct drawing_node *node, uint32_t index, struct buf *out);
void json_edge_members(const struct drawing_edge *edge, struct buf *out);

/* Nodes from top to bottom, for a list. NO_MEMORY. */
pawl_status drawing_order(struct scope *scope, const struct drawing *drawing, uint32_t **out);

/* ---- layout.c: where everything lies, in pixels ---- */

#define LINE_HEIGHT 16.0
#define LOOP_WIDTH  30.0 /* of a loop, without its label */

struct layout_box { /* a node, or a place that an edge passes through */
    uint32_t rank, order;
    uint32_t node, edge; /* one of them DRAWING_NONE */
    double x, y;         /* of its middle */
    double width, height;
    double wish; /* where it would like to be */
    uint32_t *above, *below;
    uint32_t above_count, below_count;
};

struct layout_edge {
    uint32_t *boxes; /* from its upper end to its lower one, ends included */
    uint32_t count;
    uint32_t label; /* the box whose middle its label has; DRAWING_NONE: none */
    bool is_turned; /* drawn against its direction */
    bool is_loop;   /* from a node to itself */
};

struct layout {
    struct layout_box *boxes;
    uint32_t box_count, box_capacity;
    uint32_t **ranks; /* boxes of each rank, in order */
    uint32_t *rank_sizes;
    uint32_t rank_count;
    struct layout_edge *edges; /* as those of the drawing */
    double width, height;
};

pawl_status layout_make(struct scope *scope, const struct drawing *drawing, struct layout *out);

/* layout_rank.c: which rank each node has; edges that would go up are turned. NO_MEMORY. */
pawl_status layout_rank(struct scope *scope, const struct drawing *drawing, uint32_t *ranks,
                        struct layout_edge *edges);
/* layout_place.c: the order in each rank, then the places. NO_MEMORY. */
pawl_status layout_order(struct scope *scope, struct layout *layout);
pawl_status layout_place(struct scope *scope, struct layout *layout);

/* Of what hangs at the right of a node: edges from it to itself, with their labels. */
double loops_width(struct scope *scope, const struct drawing *drawing, uint32_t node);
/* Those among the first `count` edges; their labels stand below each other. */
uint32_t loops_of(const struct drawing *drawing, uint32_t node, uint32_t count);
double text_width(str text); /* as the letters of the picture are wide */

/* svg.c: the line of an edge as SVG's `d`; the middle of its label, false: it has none. */
void edge_path(struct scope *scope, const struct drawing *drawing, const struct layout *layout,
               uint32_t index, struct buf *out);
bool edge_label(struct scope *scope, const struct drawing *drawing, const struct layout *layout,
                uint32_t index, double *x, double *y);

#endif
