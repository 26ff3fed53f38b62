/* node_int.h - private to base: how a reader, JSON or YAML, builds its tree. */
#ifndef PAWL_BASE_NODE_INT_H
#define PAWL_BASE_NODE_INT_H

#include "base/node_own.h"

struct place {
    uint32_t line, column; /* 1-based; column counts bytes */
};

struct tree {
    struct scope *scope;
    struct node *open[NODE_OWN_DEPTH_MAX]; /* arrays and objects not yet closed, outermost first */
    struct node *last[NODE_OWN_DEPTH_MAX]; /* the newest child of each */
    uint32_t depth;
    bool is_own; /* pawl's own text: NODE_OWN_DEPTH_MAX holds */
    struct node *root;
};

/* Add a node to the innermost open one, or as the root; under `key` if that is an
 * object. Fails with NO_MEMORY. */
pawl_status tree_add(struct tree *tree, enum node_kind kind, struct place place, str key,
                     struct place key_place, struct node **out);

/* Open the node that was added last: what comes next are its children. Fails with
 * INVALID_REQUEST if that is too deep. */
pawl_status tree_open(struct tree *tree, struct node *node);

/* Close the innermost node. Fails with INVALID_REQUEST if an object has a key twice. */
pawl_status tree_close(struct tree *tree);

/* The innermost open node, or NULL. */
struct node *tree_top(const struct tree *tree);

/* INVALID_REQUEST with "line L, column C: expected ..., found ...". */
pawl_status tree_fail(struct tree *tree, struct place place, const char *expected,
                      const char *found);

/* yaml_error.c: what is wrong with a text, in plain words. */
struct yaml_complaint {
    char expected[128], found[128];
};

/* libyaml's `problem` at the byte `at` of `text`, while it read what began in `line`. */
void yaml_explain(const char *problem, uint32_t line, str text, size_t at,
                  struct yaml_complaint *out);

/* False if no template without quotes ({{input.x}}) is at the byte `at`. */
bool yaml_explain_template(str text, size_t at, struct yaml_complaint *out);

/* The YAML core schema: what an untagged plain scalar stands for. */
enum yaml_kind { YAML_NULL, YAML_BOOL, YAML_INT, YAML_FLOAT, YAML_NOT_FINITE, YAML_STR };
enum yaml_kind yaml_resolve(str text);

/* The JSON form of a YAML_INT or YAML_FLOAT, in the arena; data is NULL if there is no
 * memory. False if it is a hexadecimal or octal number of more than 64 bits. */
bool yaml_number(struct arena *arena, str text, str *out);

#endif
