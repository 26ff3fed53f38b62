/* node.h - a document read in, JSON or YAML: one tree of nodes with positions.
 *
 * Nothing is lost: each node of a JSON text knows the exact bytes it came from
 * (numbers are never reprinted), each node of either knows line and column, so
 * that an error can say where. Nodes live in the arena they were read into; the
 * text they were read from must live as long (raw points into it). */
#ifndef PAWL_BASE_NODE_H
#define PAWL_BASE_NODE_H

#include "base/scope.h"

enum node_kind { NODE_NULL, NODE_BOOL, NODE_NUMBER, NODE_STRING, NODE_ARRAY, NODE_OBJECT };

struct node {
    enum node_kind kind;
    bool truth;              /* NODE_BOOL */
    bool is_missing;         /* NODE_NULL of YAML: no value is written, as in "tool:" */
    str text;                /* NODE_STRING: unescaped, NUL-terminated; NODE_NUMBER: as written */
    str raw;                 /* JSON: the exact bytes of this value; YAML: STR_NONE */
    uint32_t line, column;   /* 1-based; column counts bytes */
    uint32_t count;          /* of children */
    str key;                 /* if the parent is an object: unescaped */
    uint32_t key_line, key_column; /* the same for the key, if there is one */
    struct node *first, *next; /* children in document order */
};

/* Strict JSON (RFC 8259, UTF-8, no duplicate keys, depth at most NODE_DEPTH_MAX,
 * no BOM, no U+0000 in keys or strings, nothing after the value). On failure:
 * INVALID_REQUEST with "line L, column C: expected ..., found ...", or NO_MEMORY. */
pawl_status node_read_json(struct scope *scope, str text, struct node **out);

/* YAML 1.2 core schema, one document, no aliases, no tags but the core ones, no
 * duplicate keys, keys must be scalars. Same failures. */
pawl_status node_read_yaml(struct scope *scope, str text, struct node **out);

/* YAML or JSON by looking: JSON if the first byte that is not white space is '{' or '['. */
pawl_status node_read(struct scope *scope, str text, struct node **out);
bool text_looks_like_json(str text);

struct node *node_find(const struct node *object, const char *key); /* NULL: absent, or no object */
struct node *node_find_str(const struct node *object, str key);
struct node *node_at(const struct node *array, uint32_t index);
str node_text(const struct node *object,
              const char *key);                           /* a string's; data NULL: it is not one */
str node_raw(const struct node *object, const char *key); /* the bytes; data NULL: absent */
struct node *node_first(const struct node *object,
                        const char *key); /* child of a member, or NULL */

/* Compact JSON of a tree. Nodes with raw bytes are copied from them when they have no
 * white space to lose at this level; YAML nodes are printed. Numbers keep their text. */
struct buf;
void node_print(const struct node *node, struct buf *out);
str node_keep(const struct node *node,
              struct arena *arena); /* the same, there; data NULL: no memory */

bool node_to_i64(const struct node *node, int64_t *out); /* an integer literal in range */
bool node_to_u32(const struct node *node, uint32_t max, uint32_t *out); /* ... of 0 to `max` */
const char *node_kind_name(enum node_kind kind);         /* "an object", "a string", ... */

#define NODE_DEPTH_MAX 64

#endif
