/* node_json.c - strict JSON (RFC 8259) to nodes, in one pass and without recursion. */
#include "base/node_int.h"
#include "base/text_int.h"
#include <stdio.h>

#define END (-1) /* of the text, where a byte is asked for */

struct json_reader {
    struct tree tree;
    str text;
    size_t at, line_start;
    uint32_t line;
};

static int peek(const struct json_reader *reader)
{
    return reader->at < reader->text.size ? (unsigned char)reader->text.data[reader->at] : END;
}

static struct place here(const struct json_reader *reader)
{
    return (struct place){ reader->line, (uint32_t)(reader->at - reader->line_start + 1) };
}

static void skip_space(struct json_reader *reader)
{
    for (int byte = peek(reader); byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
         byte = peek(reader)) {
        reader->at++;
        if (byte == '\n') {
            reader->line++;
            reader->line_start = reader->at;
        }
    }
}

/* What stands at the cursor, in words. */
static void describe(const struct json_reader *reader, char *out, size_t out_size)
{
    str rest = str_from(reader->text, reader->at);
    size_t size = utf8_size(rest);
    int byte = peek(reader);

    if (byte == END)
        (void)snprintf(out, out_size, "the end of the text");
    else if (byte == '\n' || byte == '\r')
        (void)snprintf(out, out_size, "a line break");
    else if (str_starts(rest, STR("\xEF\xBB\xBF")))
        (void)snprintf(out, out_size, "a byte order mark");
    else if (size == 0 || byte < 0x20 || byte == 0x7F)
        (void)snprintf(out, out_size, "the byte 0x%02X", (unsigned)byte);
    else
        (void)snprintf(out, out_size, "'%.*s'", (int)size, rest.data);
}

static pawl_status fail_expected(struct json_reader *reader, const char *expected)
{
    char found[32];

    describe(reader, found, sizeof found);
    return tree_fail(&reader->tree, here(reader), expected, found);
}

/* ---- Strings: first checked to the closing quote, then unescaped ------------- */

/* The value of four hexadecimal digits at `at`, or -1. */
static int32_t hex4(str text, size_t at)
{
    int32_t value = 0;

    if (text.size < 4 || at > text.size - 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        char byte = text.data[i];

        if (byte >= '0' && byte <= '9')
            value = value << 4 | (byte - '0');
        else if ((byte | 32) >= 'a' && (byte | 32) <= 'f')
            value = value << 4 | ((byte | 32) - 'a' + 10);
        else
            return -1;
    }
    return value;
}

static bool is_high_surrogate(int32_t unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool is_low_surrogate(int32_t unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* The cursor is on the backslash of a \u escape. */
static pawl_status skip_unicode_escape(struct json_reader *reader)
{
    int32_t unit = hex4(reader->text, reader->at + 2), low = -1;
    str rest = str_from(reader->text, reader->at);

    if (unit < 0)
        return tree_fail(&reader->tree, here(reader), "four hexadecimal digits after \\u",
                         "something else");
    if (unit == 0)
        return tree_fail(&reader->tree, here(reader), "a character other than NUL", "\\u0000");
    if (is_high_surrogate(unit) && str_starts(str_from(rest, 6), STR("\\u")))
        low = hex4(rest, 8);
    if (is_low_surrogate(unit) || (is_high_surrogate(unit) && !is_low_surrogate(low)))
        return tree_fail(&reader->tree, here(reader), "a pair of surrogates", "one alone");
    reader->at += is_high_surrogate(unit) ? 12 : 6;
    return PAWL_OK;
}

static pawl_status skip_escape(struct json_reader *reader)
{
    char next = reader->at + 1 < reader->text.size ? reader->text.data[reader->at + 1] : '\0';

    if (next == 'u')
        return skip_unicode_escape(reader);
    reader->at++;
    if (next == '\0' || !strchr("\"\\/bfnrt", next))
        return fail_expected(reader, "one of \"\\/bfnrtu after a backslash");
    reader->at++;
    return PAWL_OK;
}

static void skip_plain(struct json_reader *reader)
{
    reader->at += json_plain_size(str_from(reader->text, reader->at));
}

/* Past the closing quote; all between is valid then. The cursor is on the opening one. */
static pawl_status skip_string(struct json_reader *reader)
{
    reader->at++;
    skip_plain(reader);
    while (peek(reader) != '"') {
        int byte = peek(reader);
        size_t size = byte == END ? 0 : utf8_size(str_from(reader->text, reader->at));

        if (byte == END || byte < 0x20)
            return fail_expected(reader, "a closing '\"' of the string");
        if (size == 0)
            return fail_expected(reader, "valid UTF-8");
        if (byte == '\\')
            TRY(skip_escape(reader));
        else
            reader->at += size;
        skip_plain(reader);
    }
    reader->at++;
    return PAWL_OK;
}

/* Write what the escape at the front of `text` stands for; how much of it was read? */
static size_t unescape_one(str text, char **out)
{
    static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
    const char *letter = strchr(letters, text.data[1]);
    uint32_t character;

    if (text.data[1] != 'u') {
        *(*out)++ = letter ? controls[letter - letters] : text.data[1];
        return 2;
    }
    character = (uint32_t)hex4(text, 2);
    if (!is_high_surrogate((int32_t)character)) {
        *out += utf8_encode(character, *out);
        return 6;
    }
    character = 0x10000 + ((character - 0xD800) << 10) + (uint32_t)(hex4(text, 8) - 0xDC00);
    *out += utf8_encode(character, *out);
    return 12;
}

/* `text` is what stands between the quotes, already checked. */
static pawl_status unescape(struct json_reader *reader, str text, str *out)
{
    /* An escape is never shorter than what it stands for. */
    char *data = arena_alloc(&reader->tree.scope->arena, text.size + 1), *end = data;

    TRY_MEMORY(reader->tree.scope, data);
    while (text.size > 0) {
        size_t size = str_before(text, '\\').size;

        memcpy(end, text.data, size);
        end += size;
        text = str_from(text, size);
        if (text.size > 0)
            text = str_from(text, unescape_one(text, &end));
    }
    *out = (str){ data, (size_t)(end - data) };
    return PAWL_OK;
}

static pawl_status read_string(struct json_reader *reader, str *out)
{
    size_t start = reader->at + 1;

    TRY(skip_string(reader));
    return unescape(reader, (str){ reader->text.data + start, reader->at - 1 - start }, out);
}

/* ---- Numbers and words ---------------------------------------------------------- */

static bool skip_byte(struct json_reader *reader, const char *any)
{
    int byte = peek(reader);

    if (byte <= 0 || !strchr(any, byte))
        return false;
    reader->at++;
    return true;
}

static bool skip_digits(struct json_reader *reader)
{
    size_t start = reader->at;

    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->at++;
    return reader->at > start;
}

static pawl_status read_number(struct json_reader *reader, struct node *node)
{
    size_t start = reader->at;

    (void)skip_byte(reader, "-");
    if (!skip_byte(reader, "0") && !skip_digits(reader))
        return fail_expected(reader, "a digit");
    if (skip_byte(reader, ".") && !skip_digits(reader))
        return fail_expected(reader, "a digit after the point");
    if (skip_byte(reader, "eE")) {
        (void)skip_byte(reader, "+-");
        if (!skip_digits(reader))
            return fail_expected(reader, "a digit of the exponent");
    }
    node->text = (str){ reader->text.data + start, reader->at - start };
    return PAWL_OK;
}

static pawl_status read_word(struct json_reader *reader, struct node *node)
{
    static const str words[] = { STR_INIT("null"), STR_INIT("true"), STR_INIT("false") };

    for (size_t i = 0; i < 3; i++)
        if (str_starts(str_from(reader->text, reader->at), words[i])) {
            node->truth = i == 1;
            reader->at += words[i].size;
            return PAWL_OK;
        }
    return fail_expected(reader, "a value");
}

/* ---- Values ----------------------------------------------------------------------- */

static bool kind_from_byte(int byte, enum node_kind *out)
{
    switch (byte) {
    case '{':
        *out = NODE_OBJECT;
        return true;
    case '[':
        *out = NODE_ARRAY;
        return true;
    case '"':
        *out = NODE_STRING;
        return true;
    case 'n':
        *out = NODE_NULL;
        return true;
    case 't':
    case 'f':
        *out = NODE_BOOL;
        return true;
    default:
        *out = NODE_NUMBER;
        return byte == '-' || (byte >= '0' && byte <= '9');
    }
}

/* A scalar whole; of an array or object the bracket, which opens it. */
static pawl_status read_body(struct json_reader *reader, struct node *node)
{
    switch (node->kind) {
    case NODE_OBJECT:
    case NODE_ARRAY:
        reader->at++;
        return tree_open(&reader->tree, node);
    case NODE_STRING:
        return read_string(reader, &node->text);
    case NODE_NUMBER:
        return read_number(reader, node);
    case NODE_NULL:
    case NODE_BOOL:
        break;
    }
    return read_word(reader, node);
}

/* `"key" :` up to its value. */
static pawl_status read_key(struct json_reader *reader, str *out)
{
    if (peek(reader) != '"')
        return fail_expected(reader, "a key in quotes");
    TRY(read_string(reader, out));
    skip_space(reader);
    if (!skip_byte(reader, ":"))
        return fail_expected(reader, "':'");
    skip_space(reader);
    return PAWL_OK;
}

/* The next value, with its key in an object. */
static pawl_status read_item(struct json_reader *reader, struct node **out)
{
    const struct node *parent = tree_top(&reader->tree);
    struct place key_place = here(reader);
    pawl_status status;
    enum node_kind kind;
    str key = STR_NONE;
    size_t start;

    if (parent && parent->kind == NODE_OBJECT)
        TRY(read_key(reader, &key));
    if (!kind_from_byte(peek(reader), &kind))
        return fail_expected(reader, "a value");
    TRY(tree_add(&reader->tree, kind, here(reader), key, key_place, out));
    start = reader->at;
    status = read_body(reader, *out);
    (*out)->raw = (str){ reader->text.data + start, reader->at - start };
    return status;
}

static pawl_status close_top(struct json_reader *reader, struct node *top)
{
    reader->at++;
    top->raw.size = (size_t)(reader->text.data + reader->at - top->raw.data);
    return tree_close(&reader->tree);
}

/* After a value, or in one just opened: up to the next item, or to the end of the root. */
static pawl_status read_between(struct json_reader *reader, bool just_opened)
{
    struct node *top;

    while ((top = tree_top(&reader->tree)) != NULL) {
        bool is_object = top->kind == NODE_OBJECT;

        skip_space(reader);
        if (peek(reader) == (is_object ? '}' : ']')) {
            TRY(close_top(reader, top));
            just_opened = false;
            continue;
        }
        if (!just_opened && !skip_byte(reader, ","))
            return fail_expected(reader, is_object ? "',' or '}'" : "',' or ']'");
        skip_space(reader);
        return PAWL_OK;
    }
    return PAWL_OK;
}

static pawl_status read_text(struct scope *scope, str text, bool is_own, struct node **out)
{
    struct json_reader reader = { .tree = { .scope = scope, .is_own = is_own },
                                  .text = text.data ? text : STR(""),
                                  .line = 1 };

    skip_space(&reader);
    do {
        uint32_t depth = reader.tree.depth;
        struct node *item;

        TRY(read_item(&reader, &item));
        TRY(read_between(&reader, reader.tree.depth > depth));
    } while (reader.tree.depth > 0);
    skip_space(&reader);
    if (peek(&reader) != END)
        return fail_expected(&reader, "nothing after the value");
    *out = reader.tree.root;
    return PAWL_OK;
}

pawl_status node_read_json(struct scope *scope, str text, struct node **out)
{
    return read_text(scope, text, false, out);
}

pawl_status node_read_own(struct scope *scope, str text, struct node **out)
{
    return read_text(scope, text, true, out);
}
