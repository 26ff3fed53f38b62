/* node.c - finding one's way in a document, and printing it. */
#include "base/node.h"
#include "base/text_int.h"

bool text_looks_like_json(str text)
{
    size_t at = str_span(text, " \t\n\r");

    return at < text.size && (text.data[at] == '{' || text.data[at] == '[');
}

pawl_status node_read(struct scope *scope, str text, struct node **out)
{
    return text_looks_like_json(text) ? node_read_json(scope, text, out)
                                      : node_read_yaml(scope, text, out);
}

struct node *node_find_str(const struct node *object, str key)
{
    if (!object || object->kind != NODE_OBJECT)
        return NULL;
    for (struct node *child = object->first; child; child = child->next)
        if (str_eq(child->key, key))
            return child;
    return NULL;
}

struct node *node_find(const struct node *object, const char *key)
{
    return node_find_str(object, str_of(key));
}

str node_text(const struct node *object, const char *key)
{
    const struct node *member = node_find(object, key);

    return member && member->kind == NODE_STRING ? member->text : STR_NONE;
}

str node_raw(const struct node *object, const char *key)
{
    const struct node *member = node_find(object, key);

    return member ? member->raw : STR_NONE;
}

struct node *node_first(const struct node *object, const char *key)
{
    const struct node *member = node_find(object, key);

    return member ? member->first : NULL;
}

struct node *node_at(const struct node *array, uint32_t index)
{
    struct node *child;

    if (!array || index >= array->count)
        return NULL;
    for (child = array->first; index > 0; index--)
        child = child->next;
    return child;
}

/* Copy brackets, keys, colons and commas as they were written, without the white space. */
static void print_between(const char *at, const char *end, struct buf *out)
{
    bool quoted = false;

    for (; at < end; at++) {
        if (*at == '"')
            quoted = !quoted;
        if (quoted || !memchr(" \t\n\r", *at, 4))
            buf_byte(out, (unsigned char)*at);
        if (*at == '\\' && at + 1 < end)
            buf_byte(out, (unsigned char)*++at); /* it may be a quote that ends nothing */
    }
}

static void print_raw(const struct node *node, struct buf *out)
{
    const char *at = node->raw.data;

    if (node->kind != NODE_ARRAY && node->kind != NODE_OBJECT) {
        buf_str(out, node->raw);
        return;
    }
    for (const struct node *child = node->first; child; child = child->next) {
        print_between(at, child->raw.data, out);
        print_raw(child, out);
        at = child->raw.data + child->raw.size;
    }
    print_between(at, node->raw.data + node->raw.size, out);
}

static void print_children(const struct node *node, struct buf *out)
{
    bool is_object = node->kind == NODE_OBJECT;

    buf_byte(out, is_object ? '{' : '[');
    for (const struct node *child = node->first; child; child = child->next) {
        if (child != node->first)
            buf_byte(out, ',');
        if (is_object) {
            json_quote(out, child->key);
            buf_byte(out, ':');
        }
        node_print(child, out);
    }
    buf_byte(out, is_object ? '}' : ']');
}

void node_print(const struct node *node, struct buf *out)
{
    if (node->raw.data) {
        print_raw(node, out);
        return;
    }
    switch (node->kind) {
    case NODE_NULL:
        buf_str(out, STR("null"));
        break;
    case NODE_BOOL:
        buf_str(out, node->truth ? STR("true") : STR("false"));
        break;
    case NODE_NUMBER:
        buf_str(out, node->text);
        break;
    case NODE_STRING:
        json_quote(out, node->text);
        break;
    case NODE_ARRAY:
    case NODE_OBJECT:
        print_children(node, out);
        break;
    }
}

str node_keep(const struct node *node, struct arena *arena)
{
    struct buf buf;

    buf_init(&buf, arena->heap, 0);
    node_print(node, &buf);
    return buf_take(&buf, arena);
}

bool node_to_i64(const struct node *node, int64_t *out)
{
    bool negative;
    uint64_t n;

    if (!node || node->kind != NODE_NUMBER)
        return false;
    negative = str_starts(node->text, STR("-"));
    if (!str_to_u64(str_from(node->text, negative ? 1 : 0), &n))
        return false;
    if (n > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = !negative ? (int64_t)n : n == 0 ? 0 : -(int64_t)(n - 1) - 1;
    return true;
}

bool node_to_u32(const struct node *node, uint32_t max, uint32_t *out)
{
    int64_t n;

    if (!node_to_i64(node, &n) || n < 0 || n > max)
        return false;
    *out = (uint32_t)n;
    return true;
}

const char *node_kind_name(enum node_kind kind)
{
    switch (kind) {
    case NODE_NULL:
        return "null";
    case NODE_BOOL:
        return "a boolean";
    case NODE_NUMBER:
        return "a number";
    case NODE_STRING:
        return "a string";
    case NODE_ARRAY:
        return "an array";
    case NODE_OBJECT:
        return "an object";
    }
    return "nothing known";
}
