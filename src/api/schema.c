/* schema.c - from the words of describe/ to JSON Schema. */
#include "api/schema.h"

extern const str describe_files[][2];

/* ---- Reading ---- */

static pawl_status bad_file(struct scope *scope, str name)
{
    pawl_error words = scope->error;

    return scope_fail(scope, PAWL_INVALID_DEFINITION, "src/api/describe/%.*s: %s", STR_ARG(name),
                      words.message);
}

pawl_status describe_open(struct scope *scope, struct describe *out)
{
    pawl_status status = PAWL_OK;

    out->count = 0;
    for (uint32_t i = 0; describe_files[i][0].data && status == PAWL_OK; i++) {
        ASSERT(i < DESCRIBE_MAX);
        status = node_read_yaml(scope, describe_files[i][1], &out->files[i]);
        out->count = i + 1;
        if (status ==
            PAWL_INVALID_REQUEST) /* a fault of ours: two merges may bring one block twice */
            status = bad_file(scope, describe_files[i][0]);
    }
    return status;
}

const struct node *describe_find(const struct describe *describe, const char *section, str name)
{
    const struct node *found = NULL;

    for (uint32_t i = 0; i < describe->count && !found; i++)
        found = node_find_str(node_find(describe->files[i], section), name);
    return found;
}

/* ---- Types ---- */

static void print_member(struct buf *out, const char *key, const char *text)
{
    json_key(out, key);
    json_text(out, text);
}

/* Cut `text` at the first `mark`: what stands before it; the rest stays. */
static str cut(str *text, str mark)
{
    const char *found = memmem(text->data, text->size, mark.data, mark.size);
    str head = { text->data, found ? (size_t)(found - text->data) : text->size };

    *text = found ? str_from(*text, head.size + mark.size) : STR("");
    return head;
}

static void print_enum(str words, struct buf *out)
{
    print_member(out, "type", "string");
    json_key(out, "enum");
    json_open(out, '[');
    while (words.size > 0)
        json_str(out, cut(&words, STR(" ")));
    json_close(out, ']');
}

static void print_reference(str name, struct buf *out)
{
    json_key(out, "$ref");
    buf_fmt(out, "\"#/components/schemas/%.*s\"", STR_ARG(name));
}

static bool print_plain(str word, struct buf *out)
{
    static const char *const plain[][2] = {
        { "text", "string" },  { "int", "integer" },   { "count", "integer" },
        { "bool", "boolean" }, { "object", "object" }, { "null", "null" },
    };

    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (str_is(word, plain[i][0])) {
            print_member(out, "type", plain[i][1]);
            if (str_is(word, "count"))
                buf_str(out, STR(",\"minimum\":0"));
            return true;
        }
    return str_is(word, "json"); /* anything */
}

static void print_word(str word, struct buf *out)
{
    const str list = STR("list of "), one_of = STR("in ");

    if (str_starts(word, one_of)) {
        print_enum(str_from(word, one_of.size), out);
    } else if (str_starts(word, list)) {
        print_member(out, "type", "array");
        json_key(out, "items");
        json_open(out, '{');
        print_word(str_from(word, list.size), out);
        json_close(out, '}');
    } else if (!print_plain(word, out)) {
        print_reference(word, out);
    }
}

static void print_words(str text, bool nullable, struct buf *out)
{
    const str or_else = STR(" | ");
    bool has_many = nullable || memmem(text.data, text.size, or_else.data, or_else.size);

    if (!has_many || str_is(text, "json")) {
        print_word(text, out);
        return;
    }
    json_key(out, "anyOf");
    json_open(out, '[');
    while (text.size > 0) {
        json_open(out, '{');
        print_word(cut(&text, or_else), out);
        json_close(out, '}');
    }
    if (nullable)
        buf_str(out, STR(",{\"type\":\"null\"}"));
    json_close(out, ']');
}

static str member_name(str key, bool *is_optional)
{
    *is_optional = key.size > 1 && key.data[key.size - 1] == '?';
    key.size -= *is_optional ? 1 : 0;
    return key;
}

static void print_required(const struct node *type, struct buf *out)
{
    bool is_optional;

    json_key(out, "required");
    json_open(out, '[');
    for (const struct node *member = type->first; member; member = member->next) {
        str name = member_name(member->key, &is_optional);

        if (!is_optional)
            json_str(out, name);
    }
    json_close(out, ']');
}

static void print_object(const struct node *type, struct buf *out)
{
    const struct node *any = node_find(type, "*");
    bool is_optional;

    print_member(out, "type", "object");
    if (any) {
        json_key(out, "additionalProperties");
        schema_print(any, out);
        return;
    }
    json_key(out, "properties");
    json_open(out, '{');
    for (const struct node *member = type->first; member; member = member->next) {
        json_key_str(out, member_name(member->key, &is_optional));
        schema_print(member, out);
    }
    json_close(out, '}');
    print_required(type, out);
    json_key(out, "additionalProperties");
    json_bool(out, false);
}

/* The members of the schema, without its braces. */
static void print_type(const struct node *type, bool nullable, struct buf *out)
{
    str text = type->text, words;

    if (type->kind == NODE_OBJECT) {
        print_object(type, out);
    } else if (type->kind == NODE_ARRAY) {
        print_member(out, "type", "array");
        json_key(out, "items");
        schema_print(type->first, out);
    } else {
        words = cut(&text, STR(" -- "));
        print_words(type->kind == NODE_NULL ? STR("null") : words, nullable, out);
        if (text.size > 0) {
            json_key(out, "description");
            json_str(out, text);
        }
    }
}

void schema_print(const struct node *type, struct buf *out)
{
    json_open(out, '{');
    print_type(type, false, out);
    json_close(out, '}');
}

/* ---- Named ones ---- */

static void print_scalar(const struct node *scalar, struct buf *out)
{
    json_key_str(out, scalar->key);
    json_open(out, '{');
    print_member(out, "type", "string");
    for (const struct node *member = scalar->first; member; member = member->next) {
        bool is_example = str_is(member->key, "example");

        json_key_str(out, is_example ? STR("examples") : member->key);
        if (is_example)
            json_open(out, '[');
        json_str(out, member->text);
        if (is_example)
            json_close(out, ']');
    }
    json_close(out, '}');
}

void schema_print_named(const struct describe *describe, struct buf *out)
{
    for (uint32_t i = 0; i < describe->count; i++) {
        const struct node *scalars = node_find(describe->files[i], "scalars");
        const struct node *types = node_find(describe->files[i], "types");

        for (const struct node *scalar = scalars ? scalars->first : NULL; scalar;
             scalar = scalar->next)
            print_scalar(scalar, out);
        for (const struct node *type = types ? types->first : NULL; type; type = type->next) {
            json_key_str(out, type->key);
            schema_print(type, out);
        }
    }
}

/* ---- Parameters ---- */

static str word_of(enum op_type type)
{
    switch (type) {
    case OP_STRING:
        return STR("text");
    case OP_INTEGER:
        return STR("int");
    case OP_BOOL:
        return STR("bool");
    case OP_OBJECT:
        return STR("object");
    case OP_JSON:
        return STR("json");
    }
    return STR("json");
}

void schema_print_param(const struct op_param *param, const struct node *of, struct buf *out)
{
    const struct node *refined = node_find(of ? node_find(of, "takes") : NULL, param->name);
    bool nullable = param->place == IN_BODY && !param->required;

    json_open(out, '{');
    if (refined)
        print_type(refined, nullable, out);
    else
        print_words(word_of(param->type), nullable, out);
    print_member(out, "description", param->summary);
    json_close(out, '}');
}

void schema_print_object(const struct op *op, const struct node *of, enum op_place place,
                         struct buf *out)
{
    json_open(out, '{');
    print_member(out, "type", "object");
    json_key(out, "properties");
    json_open(out, '{');
    for (const struct op_param *param = op->params; param->name; param++)
        if (param->place == place) {
            json_key(out, param->name);
            schema_print_param(param, of, out);
        }
    json_close(out, '}');
    json_key(out, "required");
    json_open(out, '[');
    for (const struct op_param *param = op->params; param->name; param++)
        if (param->place == place && param->required)
            json_text(out, param->name);
    json_close(out, ']');
    json_key(out, "additionalProperties");
    json_bool(out, false);
    json_close(out, '}');
}
