/* schema_rules.c - what a schema of an input may say, and which paths it has. */
#include "model/input_schema.h"
#include "model/vocabulary.h"
#include "model/words.h"
#include <stdio.h>

struct ruling {
    schema_report *report;
    void *context;
};

static void tell(const struct ruling *ruling, const struct node *at, const char *keyword,
                 const char *expected)
{
    char message[200];

    (void)snprintf(message, sizeof message, "'%s' of an input's schema: expected %s, found %s",
                   keyword, expected, node_kind_name(at->kind));
    ruling->report(ruling->context, at, message);
}

static void check_schema(const struct ruling *ruling, const struct node *schema,
                         const char *keyword);

/* ---- Keywords -------------------------------------------------------------------------------- */

static void check_type(const struct ruling *ruling, const struct node *value)
{
    bool is_list = value->kind == NODE_ARRAY && value->count > 0;

    for (const struct node *word = is_list ? value->first : value; word;
         word = is_list ? word->next : NULL)
        if (!input_schema_is_type(word))
            ruling->report(ruling->context, word,
                           "'type' of an input's schema: expected null, boolean, integer, number, "
                           "string, array, object or a list of them");
}

static void check_properties(const struct ruling *ruling, const struct node *value)
{
    if (value->kind != NODE_OBJECT)
        tell(ruling, value, "properties", "{NAME: SCHEMA}");
    for (const struct node *node = value->kind == NODE_OBJECT ? value->first : NULL; node;
         node = node->next)
        check_schema(ruling, node, "properties");
}

static void check_required(const struct ruling *ruling, const struct node *value)
{
    if (value->kind != NODE_ARRAY)
        tell(ruling, value, "required", "a list of names");
    for (const struct node *node = value->kind == NODE_ARRAY ? value->first : NULL; node;
         node = node->next)
        if (node->kind != NODE_STRING)
            tell(ruling, node, "required", "a name");
}

static void check_items(const struct ruling *ruling, const struct node *value)
{
    check_schema(ruling, value, "items");
}

static void check_others(const struct ruling *ruling, const struct node *value)
{
    if (value->kind != NODE_BOOL)
        check_schema(ruling, value, "additionalProperties");
}

static void check_enum(const struct ruling *ruling, const struct node *value)
{
    if (value->kind != NODE_ARRAY || value->count == 0)
        tell(ruling, value, "enum", "a list of one or more values");
}

static void check_number(const struct ruling *ruling, const struct node *value)
{
    if (value->kind != NODE_NUMBER)
        tell(ruling, value, "minimum' or 'maximum", "a number");
}

static void check_length(const struct ruling *ruling, const struct node *value)
{
    int64_t length;

    if (!node_to_i64(value, &length) || length < 0)
        tell(ruling, value, "minLength' or 'maxLength", "a whole number of 0 or more");
}

static void check_description(const struct ruling *ruling, const struct node *value)
{
    if (value->kind != NODE_STRING)
        tell(ruling, value, "description", "a string");
}

static const struct {
    const char *word;
    void (*check)(const struct ruling *ruling, const struct node *value);
} rules[] = {
    { "type", check_type },         { "properties", check_properties },
    { "required", check_required }, { "items", check_items },
    { "enum", check_enum },         { "additionalProperties", check_others },
    { "minimum", check_number },    { "maximum", check_number },
    { "minLength", check_length },  { "maxLength", check_length },
    { "description", check_description },
};

/* ---- A schema -------------------------------------------------------------------------------- */

/* Keys: `input`, and of each schema inside it. */
static const struct known_key schema_keys[] = {
    { "type", "TYPE or [TYPE, ...]",
      "null, boolean, integer, number, string, array or object; a list: one of them", NULL, "any" },
    { "properties", "{NAME: SCHEMA}", "the members of an object", NULL },
    { "required", "[NAME, ...]", "members that must be there", NULL, "none" },
    { "additionalProperties", "true | false | SCHEMA", "members that are not listed", NULL,
      "true" },
    { "items", "SCHEMA", "each item of an array", NULL },
    { "enum", "[VALUE, ...]", "the values that are allowed", NULL },
    { "const", "VALUE", "the only value that is allowed", NULL },
    { "minimum", "NUMBER", "the least number", NULL },
    { "maximum", "NUMBER", "the greatest number", NULL },
    { "minLength", "NUMBER", "the least number of characters", NULL },
    { "maxLength", "NUMBER", "the greatest number of characters", NULL },
    KEY_DESCRIPTION,
    { 0 },
};

static void refuse_keyword(const struct ruling *ruling, const struct node *node)
{
    const struct node at_key = { .line = node->key_line, .column = node->key_column };
    const struct known_key *const tables[] = { schema_keys, NULL };
    char hint[KEY_HINT_SIZE], message[KEY_HINT_SIZE + WORDS_SIZE_MAX + 64];

    keys_hint(tables, node->key, hint);
    if (str_is(node->key, "default"))
        (void)snprintf(message, sizeof message,
                       "'default' of an input's schema is not supported: an input is recorded as "
                       "it is supplied; leave it out");
    else
        (void)snprintf(message, sizeof message, "unknown keyword '%.*s' of an input's schema; %s",
                       STR_ARG(words_shown(node->key)), hint);
    ruling->report(ruling->context, &at_key, message);
}

/* Depth is bounded by the document's. */
static void check_schema(const struct ruling *ruling, const struct node *schema,
                         const char *keyword)
{
    if (schema->kind != NODE_OBJECT) {
        tell(ruling, schema, keyword, "a schema: an object like {type: string}");
        return;
    }
    for (const struct node *node = schema->first; node; node = node->next) {
        if (!keys_have(schema_keys, node->key))
            refuse_keyword(ruling, node);
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
            if (str_is(node->key, rules[i].word))
                rules[i].check(ruling, node);
    }
}

void key_schema_check(const struct node *schema, const char *key, schema_report *report,
                      void *context)
{
    check_schema(&(struct ruling){ report, context }, schema, key);
}

void input_schema_check(const struct node *schema, schema_report *report, void *context)
{
    key_schema_check(schema, "input", report, context);
}

/* ---- Paths
 * ---------------------------------------------------------------------------------------- */

static bool may_be(const struct node *schema, const char *word)
{
    const struct node *type = node_find(schema, "type");

    if (!type)
        return true;
    for (const struct node *node = type->kind == NODE_ARRAY ? type->first : type; node;
         node = type->kind == NODE_ARRAY ? node->next : NULL)
        if (str_is(node->text, word))
            return true;
    return false;
}

static str behind(str path, size_t size)
{
    return path.size > size ? str_from(path, size + 1) : STR_NONE;
}

static bool has_item(const struct node *schema, str path)
{
    const struct node *items = node_find(schema, "items");
    size_t size = str_before(path, '.').size;
    uint64_t index;

    return may_be(schema, "array") && str_to_u64((str){ path.data, size }, &index) &&
           (!items || input_schema_has(items, behind(path, size)));
}

/* A key may have dots in it, so each listed one that the path begins with is tried. */
static bool has_property(const struct node *schema, str path)
{
    const struct node *properties = node_find(schema, "properties");
    const struct node *others = node_find(schema, "additionalProperties");

    if (!may_be(schema, "object"))
        return false;
    for (const struct node *node = properties ? properties->first : NULL; node; node = node->next)
        if (str_starts(path, node->key) &&
            (path.size == node->key.size || path.data[node->key.size] == '.') &&
            input_schema_has(node, behind(path, node->key.size)))
            return true;
    if (others && others->kind == NODE_OBJECT)
        return input_schema_has(others, behind(path, str_before(path, '.').size));
    return others ? others->truth : !properties;
}

bool input_schema_has(const struct node *schema, str path)
{
    return !path.data || has_property(schema, path) || has_item(schema, path);
}

/* What the first word of a path names in `schema`; NULL: nothing. */
static const struct node *member_schema(const struct node *schema, str path, size_t *size)
{
    const struct node *properties = node_find(schema, "properties");
    uint64_t index;

    for (const struct node *node = properties ? properties->first : NULL; node; node = node->next)
        if (str_starts(path, node->key) && path.size > node->key.size &&
            path.data[node->key.size] == '.') {
            *size = node->key.size;
            return node;
        }
    *size = str_before(path, '.').size;
    return *size < path.size && str_to_u64((str){ path.data, *size }, &index)
               ? node_find(schema, "items")
               : NULL;
}

const struct node *input_schema_reach(const struct node *schema, str *path)
{
    const struct node *member;
    size_t size;

    while ((member = member_schema(schema, *path, &size)) != NULL) {
        schema = member;
        *path = behind(*path, size);
    }
    return schema;
}
