/* buf.h - a growing text with a limit. Sticky: write freely, check `failed` once. */
#ifndef PAWL_BASE_BUF_H
#define PAWL_BASE_BUF_H

#include "base/arena.h"
#include <stdarg.h>

struct buf {
    const struct heap *heap;
    char *data; /* not NUL-terminated until buf_text() */
    size_t size, capacity, limit;
    bool failed; /* no memory, or over the limit: what was written since is lost */
};

void buf_init(struct buf *buf, const struct heap *heap, size_t limit);
void buf_fini(struct buf *buf);
void buf_clear(struct buf *buf);

/* Room for so much more: what is written next, up to that, cannot fail. */
void buf_reserve(struct buf *buf, size_t extra);
void buf_add(struct buf *buf, const void *data, size_t size);
void buf_str(struct buf *buf, str s);
void buf_byte(struct buf *buf, unsigned char byte);
void buf_fmt(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_item(struct buf *buf, str s); /* one more of a list with commas, which is all it has */
void buf_u64(struct buf *buf, uint64_t n);  /* decimal */
void buf_i64(struct buf *buf, int64_t n);
void buf_varint(struct buf *buf, uint64_t n); /* LEB128 */

str buf_view(const struct buf *buf);          /* valid until the next write */
const char *buf_text(struct buf *buf);        /* NUL-terminated; "" if failed */
str buf_keep(const struct buf *buf, struct arena *arena); /* copied; data NULL if failed */
str buf_take(struct buf *buf, struct arena *arena);       /* the same, and frees the buffer */

/* JSON out. Commas are the caller's except in objects and arrays made with these:
 * json_open(b, '{'); json_key(b, "a"); json_str(b, s); ... json_close(b, '}').
 * They put commas by looking at the last byte written ('{', '[', ',' or ':' need none). */
void json_open(struct buf *buf, char bracket);
void json_close(struct buf *buf, char bracket);
void json_key(struct buf *buf, const char *key);
void json_key_str(struct buf *buf, str key);
void json_str(struct buf *buf, str s);       /* quoted and escaped; null if s.data is NULL */
void json_text(struct buf *buf, const char *text); /* the same from a C string */
void json_u64(struct buf *buf, uint64_t n);
void json_i64(struct buf *buf, int64_t n);
void json_bool(struct buf *buf, bool value);
void json_null(struct buf *buf);
void json_raw(struct buf *buf, str json);    /* as it is; null if json.data is NULL */
void json_time(struct buf *buf, int64_t at_ms); /* "2026-05-01T00:00:00.000Z" */
void json_hex(struct buf *buf, const void *bytes, size_t size); /* quoted, lower case */

/* A member of an object: json_put_str(out, "name", name) is json_key() and json_str(). */
#define JSON_PUT_MAP(X)                                                                            \
    X(str, str) X(text, const char *) X(u64, uint64_t) X(i64, int64_t) X(bool, bool) X(raw, str)   \
    X(time, int64_t)
#define X(name, type) void json_put_##name(struct buf *buf, const char *key, type value);
JSON_PUT_MAP(X)
#undef X
void json_put_u64_or_null(struct buf *buf, const char *key, uint64_t n);     /* 0: null */
void json_put_time_or_null(struct buf *buf, const char *key, int64_t at_ms); /* 0: null */
void json_put_open(struct buf *buf, const char *key, char bracket);
void json_put_hex(struct buf *buf, const char *key, const void *bytes, size_t size);
/* A string that needs no escapes. */
#define json_put_fmt(buf, key, format, ...)                                                        \
    (json_key((buf), (key)), buf_fmt((buf), "\"" format "\"", __VA_ARGS__))

/* A member that is left out where it has no value: data NULL, or 0. */
void json_opt_str(struct buf *buf, const char *key, str s);
void json_opt_raw(struct buf *buf, const char *key, str json);
void json_opt_u64(struct buf *buf, const char *key, uint64_t n);
/* An object of one member, in the arena; data NULL: no memory. */
str json_object_of(struct arena *arena, const char *key, str value);

#endif
