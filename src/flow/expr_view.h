/* expr_view.h - what an expression sees of a flow: values, read when they are first looked at. */
#ifndef PAWL_FLOW_EXPR_VIEW_H
#define PAWL_FLOW_EXPR_VIEW_H

#include "expr/expr.h"
#include "flow/flow_int.h"

struct read_member {
    struct node *node;
    struct read_member *next;
};

/* Values are read into a scope that lasts as long as the view: one branch is chosen, or the
 * arguments of one step are made. */
struct view {
    struct scope *scope, *values;
    const struct template_source *source;
    str text;                  /* the result of the step that branches, ... */
    const struct node *result; /* ... read when an expression first asks for it */
    str error;                 /* of a step that failed; data NULL: it did not */
    str state;                 /* of a query, the instance's, JSON; data NULL: not a query */
    const struct node *input, *instance, *item, *index; /* likewise; NULL: not asked for yet */
    struct node open;            /* the context, whose members are read when they are asked for: */
    struct read_member *members; /* these were */
    const struct node *whole;    /* all of it; NULL: it was not asked for */
};

/* What expr_holds() and expr_value() ask. */
struct expr_world view_world(struct view *view);

#endif
