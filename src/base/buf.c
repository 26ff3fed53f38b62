/* buf.c - a growing text with a limit. After a failure every write is ignored. */
#include "base/buf.h"
#include "base/assert.h"
#include "base/limits.h"
#include <stdio.h>

#define BUF_CAPACITY_MIN 256

void buf_init(struct buf *buf, const struct heap *heap, size_t limit)
{
    *buf = (struct buf){ .heap = heap, .limit = limit > 0 ? limit : LIMIT_SCOPE };
}

void buf_fini(struct buf *buf)
{
    heap_free(buf->heap, buf->data, buf->capacity);
    buf->data = NULL;
    buf->size = buf->capacity = 0;
}

void buf_clear(struct buf *buf)
{
    buf->size = 0;
    buf->failed = false;
}

/* Room for `extra` bytes and a NUL, which the limit does not count. */
static bool reserve(struct buf *buf, size_t extra)
{
    size_t capacity = buf->capacity > 0 ? buf->capacity : BUF_CAPACITY_MIN;
    char *data;

    if (buf->failed || buf->size > buf->limit || extra > buf->limit - buf->size) {
        buf->failed = true;
        return false;
    }
    if (extra < buf->capacity - buf->size)
        return true;
    while (extra >= capacity - buf->size)
        capacity = capacity <= buf->limit / 2 ? capacity * 2 : buf->limit + 1;
    data = heap_resize(buf->heap, buf->data, buf->capacity, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void buf_reserve(struct buf *buf, size_t extra)
{
    reserve(buf, extra);
}

void buf_add(struct buf *buf, const void *data, size_t size)
{
    if (size == 0 || !reserve(buf, size))
        return;
    memcpy(buf->data + buf->size, data, size);
    buf->size += size;
}

void buf_str(struct buf *buf, str s)
{
    buf_add(buf, s.data, s.size);
}

void buf_item(struct buf *buf, str s)
{
    if (buf->size > 0)
        buf_str(buf, STR(", "));
    buf_str(buf, s);
}

void buf_byte(struct buf *buf, unsigned char byte)
{
    if (reserve(buf, 1))
        buf->data[buf->size++] = (char)byte;
}

void buf_fmt(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    int size;

    va_start(args, format);
    va_copy(again, args);
    size = vsnprintf(NULL, 0, format, args);
    if (size < 0)
        buf->failed = true;
    else if (reserve(buf, (size_t)size)) {
        (void)vsnprintf(buf->data + buf->size, (size_t)size + 1, format, again);
        buf->size += (size_t)size;
    }
    va_end(again);
    va_end(args);
}

void buf_u64(struct buf *buf, uint64_t n)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    buf_add(buf, digits + at, sizeof digits - at);
}

void buf_i64(struct buf *buf, int64_t n)
{
    if (n < 0)
        buf_byte(buf, '-');
    buf_u64(buf, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

void buf_varint(struct buf *buf, uint64_t n)
{
    unsigned char bytes[10];
    size_t size = 0;

    while (n >= 0x80) {
        bytes[size++] = (unsigned char)(n | 0x80);
        n >>= 7;
    }
    bytes[size++] = (unsigned char)n;
    buf_add(buf, bytes, size);
}

str buf_view(const struct buf *buf)
{
    return (str){ buf->data ? buf->data : "", buf->size };
}

const char *buf_text(struct buf *buf)
{
    if (!reserve(buf, 0))
        return "";
    buf->data[buf->size] = '\0';
    return buf->data;
}

str buf_keep(const struct buf *buf, struct arena *arena)
{
    return buf->failed ? STR_NONE : arena_str(arena, buf_view(buf));
}

str buf_take(struct buf *buf, struct arena *arena)
{
    str kept = buf_keep(buf, arena);

    buf_fini(buf);
    return kept;
}
