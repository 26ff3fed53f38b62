/* json_out.c - JSON into a buf. The commas come from looking at the last byte. */
#include "base/text_int.h"
#include "base/time.h"

static void separate(struct buf *buf)
{
    char last = buf->size > 0 ? buf->data[buf->size - 1] : '{';

    if (last != '{' && last != '[' && last != ',' && last != ':' && last != '\0')
        buf_byte(buf, ',');
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Are all of these eight bytes plain: no control, quote or backslash, and ASCII? The first that is
 * not has its highest bit set by the differences; a bit that they set above it does not matter. */
static bool are_plain(const char *bytes)
{
    uint64_t eight, quotes, backslashes;

    memcpy(&eight, bytes, sizeof eight);
    quotes = eight ^ EACH('"');
    backslashes = eight ^ EACH('\\');
    return ((eight | (eight - EACH(0x20)) | (quotes - EACH(1)) | (backslashes - EACH(1))) &
            EACH(0x80)) == 0;
}

size_t json_plain_size(str s)
{
    size_t at = 0;

    while (s.size - at >= 8 && are_plain(s.data + at))
        at += 8;
    while (at < s.size && s.data[at] >= 0x20 && s.data[at] != '"' && s.data[at] != '\\' &&
           (unsigned char)s.data[at] < 0x80)
        at++;
    return at;
}

/* How many bytes at the front of `s` can be in a JSON string as they are? */
static size_t fit_size(str s)
{
    size_t at = json_plain_size(s), size = 1;

    while (at < s.size && (unsigned char)s.data[at] >= 0x80 && size > 0) {
        size = utf8_size(str_from(s, at));
        at += size;
        at += json_plain_size(str_from(s, at));
    }
    return at;
}

static void escape(struct buf *buf, unsigned char byte)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = byte > 0 ? strchr(named, byte) : NULL;
    char text[] = { '\\', 'u', '0', '0', 0, 0 };

    if (byte >= 0x80) {
        buf_str(buf, STR("\xEF\xBF\xBD"));
        return;
    }
    if (found) {
        text[1] = letters[found - named];
        buf_add(buf, text, 2);
        return;
    }
    text[4] = "01"[byte >> 4];
    text[5] = "0123456789abcdef"[byte & 15];
    buf_add(buf, text, sizeof text);
}

void json_quote(struct buf *buf, str s)
{
    buf_byte(buf, '"');
    while (s.size > 0) {
        size_t size = fit_size(s);

        buf_add(buf, s.data, size);
        s = str_from(s, size);
        if (s.size == 0)
            break;
        escape(buf, (unsigned char)s.data[0]);
        s = str_from(s, 1);
    }
    buf_byte(buf, '"');
}

void json_open(struct buf *buf, char bracket)
{
    separate(buf);
    buf_byte(buf, (unsigned char)bracket);
}

void json_close(struct buf *buf, char bracket)
{
    buf_byte(buf, (unsigned char)bracket);
}

void json_key(struct buf *buf, const char *key)
{
    json_key_str(buf, str_of(key));
}

void json_key_str(struct buf *buf, str key)
{
    separate(buf);
    json_quote(buf, key);
    buf_byte(buf, ':');
}

void json_str(struct buf *buf, str s)
{
    separate(buf);
    if (s.data)
        json_quote(buf, s);
    else
        buf_str(buf, STR("null"));
}

void json_text(struct buf *buf, const char *text)
{
    json_str(buf, str_of(text));
}

void json_u64(struct buf *buf, uint64_t n)
{
    separate(buf);
    buf_u64(buf, n);
}

void json_i64(struct buf *buf, int64_t n)
{
    separate(buf);
    buf_i64(buf, n);
}

void json_bool(struct buf *buf, bool value)
{
    separate(buf);
    buf_str(buf, value ? STR("true") : STR("false"));
}

void json_null(struct buf *buf)
{
    separate(buf);
    buf_str(buf, STR("null"));
}

void json_raw(struct buf *buf, str json)
{
    separate(buf);
    buf_str(buf, json.data ? json : STR("null"));
}

void json_time(struct buf *buf, int64_t at_ms)
{
    char text[TIME_TEXT_SIZE];

    time_print(at_ms, text);
    json_text(buf, text);
}

void json_hex(struct buf *buf, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *byte = bytes;

    separate(buf);
    buf_byte(buf, '"');
    for (size_t i = 0; i < size; i++)
        buf_add(buf, (char[]){ digits[byte[i] >> 4], digits[byte[i] & 15] }, 2);
    buf_byte(buf, '"');
}

/* ---- A member ------------------------------------------------------------------------------- */

#define X(name, type)                                                                              \
    void json_put_##name(struct buf *buf, const char *key, type value)                             \
    {                                                                                              \
        json_key(buf, key);                                                                        \
        json_##name(buf, value);                                                                   \
    }
JSON_PUT_MAP(X)
#undef X

void json_put_u64_or_null(struct buf *buf, const char *key, uint64_t n)
{
    json_key(buf, key);
    if (n > 0)
        json_u64(buf, n);
    else
        json_null(buf);
}

void json_put_time_or_null(struct buf *buf, const char *key, int64_t at_ms)
{
    json_key(buf, key);
    if (at_ms != 0)
        json_time(buf, at_ms);
    else
        json_null(buf);
}

str json_object_of(struct arena *arena, const char *key, str value)
{
    struct buf buf;

    buf_init(&buf, arena->heap, 0);
    json_open(&buf, '{');
    json_put_str(&buf, key, value);
    json_close(&buf, '}');
    return buf_take(&buf, arena);
}

void json_put_open(struct buf *buf, const char *key, char bracket)
{
    json_key(buf, key);
    json_open(buf, bracket);
}

void json_put_hex(struct buf *buf, const char *key, const void *bytes, size_t size)
{
    json_key(buf, key);
    json_hex(buf, bytes, size);
}

void json_opt_str(struct buf *buf, const char *key, str s)
{
    if (s.data)
        json_put_str(buf, key, s);
}

void json_opt_raw(struct buf *buf, const char *key, str json)
{
    if (json.data)
        json_put_raw(buf, key, json);
}

void json_opt_u64(struct buf *buf, const char *key, uint64_t n)
{
    if (n > 0)
        json_put_u64(buf, key, n);
}
