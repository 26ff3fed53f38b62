/* fuzz.h - what the fuzz targets share. A target takes any bytes and must neither crash nor
 * hang; beyond that, REQUIRE states what must hold for whatever is accepted. */
#ifndef PAWL_TESTS_FUZZ_FUZZ_H
#define PAWL_TESTS_FUZZ_FUZZ_H

#include "base/buf.h"
#include "base/limits.h"
#include "base/scope.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #condition), abort()))

#define FUZZ_NOW_MS INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */

/* Bytes taken off the front of an input; zeros at its end. */
struct feed {
    const uint8_t *data;
    size_t size;
};

static inline uint8_t feed_byte(struct feed *feed)
{
    uint8_t byte = 0;

    if (feed->size > 0) {
        byte = *feed->data++;
        feed->size--;
    }
    return byte;
}

static inline uint64_t feed_number(struct feed *feed, int bytes)
{
    uint64_t number = 0;

    while (bytes-- > 0)
        number = number << 8 | feed_byte(feed);
    return number;
}

static inline str feed_text(struct feed *feed, size_t size)
{
    str text = { (const char *)feed->data, size < feed->size ? size : feed->size };

    feed->data += text.size;
    feed->size -= text.size;
    return text;
}

/* What is printed twice must be the same text both times. */
static inline void require_same(const struct buf *a, const struct buf *b)
{
    REQUIRE(!a->failed);
    REQUIRE(!b->failed);
    REQUIRE(str_eq(buf_view(a), buf_view(b)));
}

#endif
