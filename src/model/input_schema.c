/* input_schema.c - an input is held against a schema: the first difference, with its path. */
#include "model/input_schema.h"
#include "base/buf.h"
#include "model/decimal.h"
#include "model/node_index.h"
#include "model/words.h"
#include <stdio.h>

/* ---- Types ---------------------------------------------------------------------------------- */

static const struct {
    const char *word, *name;
    enum node_kind kind;
} types[] = {
    { "null", "null", NODE_NULL },        { "boolean", "true or false", NODE_BOOL },
    { "integer", "a whole number", NODE_NUMBER }, { "number", "a number", NODE_NUMBER },
    { "string", "a string", NODE_STRING },    { "array", "an array", NODE_ARRAY },
    { "object", "an object", NODE_OBJECT },
};
#define TYPE_COUNT (sizeof types / sizeof types[0])

static size_t find_type(const struct node *word)
{
    size_t i = 0;

    while (i < TYPE_COUNT &&
           !(word->kind == NODE_STRING && str_is(word->text, types[i].word)))
        i++;
    return i;
}

bool input_schema_is_type(const struct node *word)
{
    return find_type(word) < TYPE_COUNT;
}

static bool is_of_type(const struct node *value, size_t type)
{
    return type < TYPE_COUNT && value->kind == types[type].kind &&
           (strcmp(types[type].word, "integer") != 0 || decimal_is_whole(value->text));
}

/* `type` is a word or a list of them: the first, and the one after `word`. */
static const struct node *first_type(const struct node *type)
{
    return type && type->kind == NODE_ARRAY ? type->first : type;
}

static const struct node *next_type(const struct node *type, const struct node *word)
{
    return type->kind == NODE_ARRAY ? word->next : NULL;
}

/* "a string or null" */
static void name_types(const struct node *type, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (const struct node *word = first_type(type); word && used < size;
         word = next_type(type, word))
        used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? " or " : "",
                                 types[find_type(word)].name);
    if (used == 0)
        (void)snprintf(out, size, "a value");
}

/* ---- One refusal ----------------------------------------------------------------------------- */

struct acceptance {
    struct scope *scope;
    struct node_index index;
    const struct node *way[NODE_DEPTH_MAX + 1]; /* from the input down to what is looked at */
    uint32_t depth;
};

static uint32_t index_in(const struct node *parent, const struct node *child)
{
    uint32_t index = 0;

    for (const struct node *node = parent->first; node != child; node = node->next)
        index++;
    return index;
}

/* "input.lines.3.price", and `last` if that is a property that is not there. */
static void print_path(const struct acceptance *acceptance, str last, struct buf *out)
{
    buf_str(out, STR("input"));
    for (uint32_t i = 1; i < acceptance->depth; i++) {
        const struct node *parent = acceptance->way[i - 1], *node = acceptance->way[i];

        buf_byte(out, '.');
        if (parent->kind == NODE_ARRAY)
            buf_u64(out, index_in(parent, node));
        else
            buf_str(out, words_shown(node->key));
    }
    if (last.data) {
        buf_byte(out, '.');
        buf_str(out, words_shown(last));
    }
}

static pawl_status refuse(const struct acceptance *acceptance, str last, const char *expected,
                          const char *found)
{
    struct buf path;
    str text;

    buf_init(&path, acceptance->scope->arena.heap, 0);
    print_path(acceptance, last, &path);
    text = buf_take(&path, &acceptance->scope->arena);
    TRY_MEMORY(acceptance->scope, text.data);
    return scope_fail(acceptance->scope, PAWL_INVALID_REQUEST, "%.200s: expected %s, found %s",
                      text.data, expected, found);
}

/* The value as JSON, cut. */
static void show_value(const struct acceptance *acceptance, const struct node *value, char *out,
                       size_t size)
{
    struct buf buf;
    str text;

    buf_init(&buf, acceptance->scope->arena.heap, 0);
    node_print(value, &buf);
    text = words_shown(buf_view(&buf));
    if (buf.failed || !text.data)
        (void)snprintf(out, size, "%s", node_kind_name(value->kind));
    else
        (void)snprintf(out, size, "%.*s%s", STR_ARG(text),
                       buf_view(&buf).size > text.size ? "..." : "");
    buf_fini(&buf);
}

/* ---- Keywords -------------------------------------------------------------------------------- */

static pawl_status check_type(const struct acceptance *acceptance, const struct node *schema,
                              const struct node *value)
{
    const struct node *type = node_find(schema, "type");
    char expected[128];

    if (!type)
        return PAWL_OK;
    for (const struct node *word = first_type(type); word; word = next_type(type, word))
        if (is_of_type(value, find_type(word)))
            return PAWL_OK;
    name_types(type, expected, sizeof expected);
    return refuse(acceptance, STR_NONE, expected,
                  value->kind == NODE_NUMBER && !decimal_is_whole(value->text)
                      ? "a number with a fraction"
                      : node_kind_name(value->kind));
}

static pawl_status check_values(struct acceptance *acceptance, const struct node *schema,
                                const struct node *value)
{
    const struct node *listed = node_find(schema, "enum"), *one = node_find(schema, "const");
    char expected[128], list[120], found[128];

    if ((!listed || node_index_has(&acceptance->index, listed, value)) &&
        (!one || node_index_compare(&acceptance->index, one, value) == 0))
        return PAWL_OK;
    show_value(acceptance, listed ? listed : one, list, sizeof list);
    (void)snprintf(expected, sizeof expected, "%s%s", listed ? "one of " : "", list);
    show_value(acceptance, value, found, sizeof found);
    return refuse(acceptance, STR_NONE, expected, found);
}

static size_t count_characters(str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return count;
}

/* A bound of a number, or of a string's length: `bound` on one side of `value`. */
static pawl_status check_bound(const struct acceptance *acceptance, const struct node *schema,
                               const char *word, int side, str value, const char *what)
{
    const struct node *bound = node_find(schema, word);
    char expected[128], found[128];

    if (!bound || decimal_compare(value, bound->text) * side >= 0)
        return PAWL_OK;
    (void)snprintf(expected, sizeof expected, "%s %.*s%s", side > 0 ? "at least" : "at most",
                   STR_ARG(words_shown(bound->text)), what);
    (void)snprintf(found, sizeof found, "%.*s", STR_ARG(words_shown(value)));
    return refuse(acceptance, STR_NONE, expected, found);
}

static pawl_status check_bounds(const struct acceptance *acceptance, const struct node *schema,
                                const struct node *value)
{
    char text[24];

    if (value->kind == NODE_NUMBER) {
        TRY(check_bound(acceptance, schema, "minimum", 1, value->text, ""));
        return check_bound(acceptance, schema, "maximum", -1, value->text, "");
    }
    if (value->kind != NODE_STRING)
        return PAWL_OK;
    (void)snprintf(text, sizeof text, "%zu", count_characters(value->text));
    TRY(check_bound(acceptance, schema, "minLength", 1, str_of(text), " characters"));
    return check_bound(acceptance, schema, "maxLength", -1, str_of(text), " characters");
}

static pawl_status check_required(struct acceptance *acceptance, const struct node *schema,
                                  const struct node *value)
{
    const struct node *required = node_find(schema, "required");

    for (const struct node *name = required ? required->first : NULL; name; name = name->next) {
        const struct node *property;
        char expected[128];

        if (node_index_member(&acceptance->index, value, name->text))
            continue;
        property = node_find_str(node_find(schema, "properties"), name->text);
        name_types(property ? node_find(property, "type") : NULL, expected, sizeof expected);
        return refuse(acceptance, name->text, expected, "nothing");
    }
    return PAWL_OK;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static pawl_status check_value(struct acceptance *acceptance, const struct node *schema,
                               const struct node *value);

static pawl_status refuse_property(const struct acceptance *acceptance, const struct node *schema,
                                   const struct node *member)
{
    const struct node *properties = node_find(schema, "properties");
    char expected[200];
    size_t used;

    if (!properties || !properties->first)
        return refuse(acceptance, member->key, "no property", "one");
    used = (size_t)snprintf(expected, sizeof expected, "one of the properties ");
    for (const struct node *known = properties->first; known && used < sizeof expected;
         known = known->next)
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%.*s%s",
                                 STR_ARG(words_shown(known->key)), known->next ? ", " : "");
    return refuse(acceptance, member->key, expected, "another");
}

static pawl_status check_member(struct acceptance *acceptance, const struct node *schema,
                                const struct node *member)
{
    const struct node *property =
        node_index_member(&acceptance->index, node_find(schema, "properties"), member->key);
    const struct node *others = node_find(schema, "additionalProperties");

    if (!property && others && others->kind == NODE_BOOL && !others->truth)
        return refuse_property(acceptance, schema, member);
    if (!property && others && others->kind == NODE_OBJECT)
        property = others;
    return property ? check_value(acceptance, property, member) : PAWL_OK;
}

static pawl_status check_children(struct acceptance *acceptance, const struct node *schema,
                                  const struct node *value)
{
    const struct node *items = node_find(schema, "items");

    if (value->kind == NODE_OBJECT)
        TRY(check_required(acceptance, schema, value));
    for (const struct node *child = value->first; child; child = child->next)
        if (value->kind == NODE_OBJECT)
            TRY(check_member(acceptance, schema, child));
        else if (items)
            TRY(check_value(acceptance, items, child));
    return PAWL_OK;
}

/* Depth is bounded by the input's. */
static pawl_status check_value(struct acceptance *acceptance, const struct node *schema,
                               const struct node *value)
{
    pawl_status status;

    acceptance->way[acceptance->depth++] = value;
    status = check_type(acceptance, schema, value);
    if (!status)
        status = check_values(acceptance, schema, value);
    if (!status)
        status = check_bounds(acceptance, schema, value);
    if (!status)
        status = check_children(acceptance, schema, value);
    acceptance->depth--;
    return status;
}

pawl_status input_schema_accept(struct scope *scope, const struct node *schema, str input)
{
    struct acceptance acceptance = { .scope = scope };
    struct node *value;
    pawl_status status;

    if (!schema)
        return PAWL_OK;
    TRY(node_read_json(scope, input.data ? input : STR("{}"), &value));
    node_index_init(&acceptance.index, &scope->arena);
    status = check_value(&acceptance, schema, value);
    node_index_fini(&acceptance.index);
    return scope->arena.failed ? scope_no_memory(scope) : status;
}
