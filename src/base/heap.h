/* heap.h - where memory comes from: the host's allocator, or a test's that fails. */
#ifndef PAWL_BASE_HEAP_H
#define PAWL_BASE_HEAP_H

#include <stddef.h>

struct heap {
    void *(*resize)(void *context, void *block, size_t old_size, size_t new_size);
    void *context;
};

extern const struct heap heap_libc;

void *heap_new(const struct heap *heap, size_t size); /* zeroed; NULL: no memory */
void *heap_resize(const struct heap *heap, void *block, size_t old_size, size_t new_size);
void heap_free(const struct heap *heap, void *block, size_t size); /* NULL is allowed */

#endif
