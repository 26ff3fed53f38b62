/* json_scan.h - looking into a JSON text without reading it into nodes.
 *
 * A node takes a hundred bytes, and so a large value of many small ones takes fifty times its size.
 * What is asked here takes no memory but for keys and strings with escapes. The text was accepted
 * once (node.h); of any other text the answers mean nothing, but nothing outside it is read. */
#ifndef PAWL_BASE_JSON_SCAN_H
#define PAWL_BASE_JSON_SCAN_H

#include "base/buf.h"
#include "base/node.h"

/* The members of an object, or the items of an array, in order. Anything else has none. */
struct json_scan {
    str rest; /* what follows the member that was given last */
    bool is_object;
};
void json_scan_begin(struct json_scan *scan, str value);
/* `key` is what is between the quotes, with its escapes; data NULL in an array. */
bool json_scan_next(struct json_scan *scan, str *key, str *value);

/* After the last one: is there the closing bracket, and nothing behind it? */
bool json_scan_is_whole(const struct json_scan *scan);

/* The text of a key or a string: `text` itself if nothing in it is escaped, else a copy in the
 * arena; data NULL: no memory. */
str json_unescape(struct arena *arena, str text);

/* The member of an object with this key; false, and data NULL: none, or no object. */
bool json_member(struct arena *arena, str value, str key, str *out);

/* A scalar as a node, and of an array or an object its kind and its bytes without its children. */
void json_peek(struct arena *arena, str value, struct node *out);

/* The same value without white space between its tokens, as node_print() writes it. */
void json_compact(struct buf *out, str value);

#endif
