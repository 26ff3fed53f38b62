/* drawing.h - a definition as a picture: nodes, edges between them, and what an instance did.
 *
 * Pure: no store, no clock, no I/O. drawing_of() makes the picture of a definition, the
 * drawing_see...() functions mark in it what an instance did, and one of the languages prints
 * it: Mermaid, Graphviz, SVG (laid out here, by layers), text for a terminal, JSON, and JSON with
 * the place of everything (`layout`) for programs that draw.
 * Everything lives in the scope it was made in. */
#ifndef PAWL_DRAWING_DRAWING_H
#define PAWL_DRAWING_DRAWING_H

#include "base/buf.h"
#include "base/scope.h"
#include "model/definition.h"
#include "model/effect.h"

#define DRAWING_NONE UINT32_MAX

struct plan;

/* name, word in JSON and as a class */
#define DRAWING_SHAPE_MAP(X)                                                                       \
    X(START, "start")                                                                              \
    X(STATE, "state")                                                                              \
    X(STEP, "step")                                                                                \
    X(GATE, "gate")                                                                                \
    X(WAIT, "wait")                                                                                \
    X(FORK, "fork")                                                                                \
    X(END, "end")

enum drawing_shape {
#define X(name, word) SHAPE_##name,
    DRAWING_SHAPE_MAP(X)
#undef X
};

/* What an instance has to do with a node. PASSED: it was there and went on; PRESENT: it is there
 * now; the rest are how it ended there, or what a step came to. */
#define DRAWING_MARK_MAP(X)                                                                        \
    X(NONE, "", "")                                                                                \
    X(PASSED, "passed", "○")                                                                       \
    X(PRESENT, "present", "●")                                                                     \
    X(DONE, "done", "✔")                                                                           \
    X(ENDED, "ended", "◆") /* in a state that declares no kind */                                   \
    X(FAILED, "failed", "✘")                                                                       \
    X(CANCELLED, "cancelled", "■")

enum drawing_mark {
#define X(name, word, sign) MARK_##name,
    DRAWING_MARK_MAP(X)
#undef X
};

struct drawing_node {
    enum drawing_shape shape;
    str name, note;              /* note: a step's tool, what a wait waits for; may be "" */
    enum terminal_kind terminal; /* of a state or of the end */
    enum drawing_mark mark;
    uint32_t count; /* times a state was entered, attempts of a step */
};

struct drawing_edge {
    uint32_t from, to;
    str label, note;  /* an action or condition; its guard, its deadline, that it wants a reason */
    bool is_by_fault; /* the way of a failure, or of a deadline: drawn broken */
    uint32_t taken;   /* how many times */
};

/* A tree's forms, for the text: in pre-order with their depth. */
struct drawing_line {
    uint32_t depth, node; /* node DRAWING_NONE: a form like `dopar` */
    str word;
};

struct drawing {
    str title;
    bool is_marked; /* of an instance */
    struct drawing_node *nodes;
    uint32_t node_count, node_capacity;
    struct drawing_edge *edges;
    uint32_t edge_count, edge_capacity;
    struct drawing_line *lines; /* trees only */
    uint32_t line_count, line_capacity;
    uint32_t *of_transition; /* machines: the edge of a transition */
    uint32_t *of_step;       /* flows: the node of a step, by its place in the plan */
    uint32_t step_count;
    uint32_t start, end; /* the dots; DRAWING_NONE: none */
    /* Steps that an amend has removed are drawn once they are seen. */
    struct scope *scope;
    const struct plan *plan;
    bool has_failed; /* no memory for one of them */
};

/* The picture of a definition as definition_load() gives it; title: what it is called. */
pawl_status drawing_of(struct scope *scope, const struct definition *definition, str title,
                       struct drawing *out);

/* An instance of a machine: so many entries of this transition; and at last the state it is in. */
void drawing_see_entries(struct drawing *drawing, uint32_t transition, uint32_t count);
void drawing_see_state(struct drawing *drawing, const struct definition *definition,
                       uint32_t state);

/* Of a flow: attempt number `attempt` of a step, in the order of creation; what became of the last
 * one; that step `cause` made step `plan` begin (DRAWING_NONE: the start did), by its failure or
 * not; and at last how it ended (TERMINAL_NOT: it has not). NO_MEMORY. */
void drawing_see_attempt(struct drawing *drawing, uint32_t plan, uint32_t attempt);
void drawing_see_outcome(struct drawing *drawing, uint32_t plan, enum step_status status);
void drawing_see_way(struct drawing *drawing, uint32_t cause, bool by_fault, uint32_t plan);
pawl_status drawing_see_end(struct drawing *drawing, enum terminal_kind terminal);

/* The languages, in the order they are offered. */
#define DRAWING_FORMAT_MAP(X)                                                                      \
    X(text, "text/plain; charset=utf-8")                                                           \
    X(mermaid, "text/plain; charset=utf-8")                                                        \
    X(dot, "text/vnd.graphviz; charset=utf-8")                                                     \
    X(svg, "image/svg+xml")                                                                        \
    X(json, "application/json")                                                                    \
    X(layout, "application/json")

#define X(name, type)                                                                              \
    pawl_status drawing_##name(struct scope *scope, const struct drawing *drawing, struct buf *out);
DRAWING_FORMAT_MAP(X)
#undef X

/* By its name; false: there is no such language. */
typedef pawl_status (*drawing_print_fn)(struct scope *scope, const struct drawing *drawing,
                                        struct buf *out);
bool drawing_find_format(str name, drawing_print_fn *print, const char **content_type);
#define DRAWING_FORMATS "text, mermaid, dot, svg, json or layout"

#endif
