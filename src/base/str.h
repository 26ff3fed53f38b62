/* str.h - a view of bytes: pointer and size, no NUL promise, no ownership. */
#ifndef PAWL_BASE_STR_H
#define PAWL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct str {
    const char *data; /* NULL means absent, where a field may be absent */
    size_t size;
} str;

#define STR(literal) ((str){ "" literal, sizeof(literal) - 1 })
#define STR_INIT(literal) { "" literal, sizeof(literal) - 1 } /* for static tables */
#define STR_ARG(s) (int)(s).size, (s).data ? (s).data : ""    /* for "%.*s" */
#define STR_NONE ((str){ NULL, 0 })

static inline str str_of(const char *text) /* NULL gives STR_NONE */
{
    return (str){ text, text ? strlen(text) : 0 };
}

static inline bool str_eq(str a, str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool str_is(str a, const char *text)
{
    return str_eq(a, str_of(text));
}

static inline bool str_starts(str a, str prefix)
{
    return a.size >= prefix.size && memcmp(a.data, prefix.data, prefix.size) == 0;
}

static inline str str_from(str a, size_t start)
{
    return (str){ a.data + start, a.size - start };
}

static inline bool str_has(str a, char byte)
{
    return a.size > 0 && memchr(a.data, byte, a.size) != NULL;
}

/* Up to the first `mark`: all of it if there is no mark. */
str str_before(str a, char mark);

/* Behind the first `mark`: STR_NONE if there is no mark. */
str str_after(str a, char mark);

/* Take the next piece off `rest`, and the mark behind it. False: `rest` was empty. */
bool str_take(str *rest, char mark, str *out);

/* How many bytes at the front are among `bytes`? */
size_t str_span(str a, const char *bytes);

/* Without the bytes at both ends that are among `bytes`. */
str str_trim(str a, const char *bytes);

/* Is it one of these? NULL ends them. */
bool str_is_one_of(str a, const char *const *words);

/* Byte order, shorter first among equals; as memcmp() answers. */
int str_compare(str a, str b);

/* Nothing but Unicode White_Space (or empty)? Input must be valid UTF-8. */
bool str_is_blank(str s);

/* Strict UTF-8: no overlong forms, no surrogates, no NUL if `allow_nul` is false. */
bool str_is_utf8(str s, bool allow_nul);

/* Decimal digits only, no sign, no overflow. */
bool str_to_u64(str s, uint64_t *out);

uint64_t str_hash(str s); /* FNV-1a; for tables only */

#endif
