/* json_scan.c - looking into a JSON text without reading it into nodes. */
#include "base/json_scan.h"

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static str skip_space(str text)
{
    size_t at = 0;

    while (at < text.size && is_space(text.data[at]))
        at++;
    return (str){ text.data + at, text.size - at };
}

/* ---- Where a value ends ---------------------------------------------------------------------- */

/* Behind the closing quote of the string that begins at `at`. */
static size_t string_end(str text, size_t at)
{
    const char *from = text.data + at + 1, *end = text.data + text.size, *escape;
    const char *quote = from < end ? memchr(from, '"', (size_t)(end - from)) : NULL;

    while (quote && (escape = memchr(from, '\\', (size_t)(quote - from))) != NULL) {
        from = escape + 2 < end ? escape + 2 : end;
        if (from > quote)
            quote = memchr(from, '"', (size_t)(end - from));
    }
    return quote ? (size_t)(quote + 1 - text.data) : text.size;
}

/* Behind the bracket that closes the one at `at`. */
static size_t group_end(str text, size_t at)
{
    size_t depth = 0;

    while (at < text.size) {
        char byte = text.data[at];

        if (byte == '"') {
            at = string_end(text, at);
            continue;
        }
        depth += byte == '{' || byte == '[';
        depth -= byte == '}' || byte == ']';
        at++;
        if (depth == 0)
            return at;
    }
    return text.size;
}

static size_t value_size(str text)
{
    size_t at = 0;

    if (text.size > 0 && text.data[0] == '"')
        return string_end(text, 0);
    if (text.size > 0 && (text.data[0] == '{' || text.data[0] == '['))
        return group_end(text, 0);
    while (at < text.size && !is_space(text.data[at]) && !memchr(",]}", text.data[at], 3))
        at++;
    return at;
}

/* ---- Members --------------------------------------------------------------------------------- */

void json_scan_begin(struct json_scan *scan, str value)
{
    bool is_group;

    value = skip_space(value.data ? value : STR(""));
    is_group = value.size > 0 && (value.data[0] == '{' || value.data[0] == '[');
    scan->is_object = value.size > 0 && value.data[0] == '{';
    scan->rest = is_group ? str_from(value, 1) : (str){ value.data, 0 };
}

static bool scan_key(struct json_scan *scan, str *key)
{
    size_t size;

    *key = STR_NONE;
    if (!scan->is_object)
        return true;
    if (scan->rest.size == 0 || scan->rest.data[0] != '"')
        return false;
    size = string_end(scan->rest, 0);
    if (size < 2)
        return false;
    *key = (str){ scan->rest.data + 1, size - 2 };
    scan->rest = skip_space(str_from(scan->rest, size));
    if (scan->rest.size == 0 || scan->rest.data[0] != ':')
        return false;
    scan->rest = skip_space(str_from(scan->rest, 1));
    return true;
}

bool json_scan_next(struct json_scan *scan, str *key, str *value)
{
    scan->rest = skip_space(scan->rest);
    if (scan->rest.size > 0 && scan->rest.data[0] == ',')
        scan->rest = skip_space(str_from(scan->rest, 1));
    if (scan->rest.size == 0 || memchr("]}", scan->rest.data[0], 2) || !scan_key(scan, key))
        return false;
    *value = (str){ scan->rest.data, value_size(scan->rest) };
    scan->rest = str_from(scan->rest, value->size);
    return value->size > 0;
}

bool json_scan_is_whole(const struct json_scan *scan)
{
    str rest = skip_space(scan->rest);

    return rest.size > 0 && rest.data[0] == (scan->is_object ? '}' : ']') &&
           skip_space(str_from(rest, 1)).size == 0;
}

/* With escapes it is read as any JSON string is, quotes and all. */
str json_unescape(struct arena *arena, str text)
{
    struct scope reading = { .arena = *arena };
    struct node *node = NULL;
    pawl_status status;

    if (text.size == 0 || !memchr(text.data, '\\', text.size))
        return text.data ? text : STR("");
    status = node_read_json(&reading, (str){ text.data - 1, text.size + 2 }, &node);
    *arena = reading.arena;
    if (status == PAWL_NO_MEMORY)
        return STR_NONE;
    return status == PAWL_OK && node->kind == NODE_STRING ? node->text : text;
}

bool json_member(struct arena *arena, str value, str key, str *out)
{
    struct json_scan scan;
    str found, member;

    *out = STR_NONE;
    json_scan_begin(&scan, value);
    while (!out->data && scan.is_object && json_scan_next(&scan, &found, &member))
        if (str_eq(json_unescape(arena, found), key))
            *out = member;
    return out->data != NULL;
}

/* ---- One value ------------------------------------------------------------------------------- */

void json_peek(struct arena *arena, str value, struct node *out)
{
    char first;

    value = skip_space(value);
    value.size = value_size(value);
    first = value.size > 0 ? value.data[0] : 'n';
    *out = (struct node){ .kind = NODE_NUMBER, .raw = value, .text = value };
    if (first == '"' && value.size >= 2) {
        out->kind = NODE_STRING;
        out->text = json_unescape(arena, (str){ value.data + 1, value.size - 2 });
    } else if (first == '{' || first == '[') {
        out->kind = first == '{' ? NODE_OBJECT : NODE_ARRAY;
        out->text = STR_NONE;
    } else if (first == 't' || first == 'f' || first == 'n') {
        out->kind = first == 'n' ? NODE_NULL : NODE_BOOL;
        out->truth = first == 't';
        out->text = STR_NONE;
    }
}

void json_compact(struct buf *out, str value)
{
    while (value.size > 0) {
        size_t end = 0;

        while (end < value.size && !is_space(value.data[end]))
            end = value.data[end] == '"' ? string_end(value, end) : end + 1;
        buf_str(out, (str){ value.data, end });
        value = skip_space(str_from(value, end));
    }
}
