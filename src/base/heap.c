/* heap.c - the host's allocator, and libc's for hosts that bring none. */
#include "base/heap.h"
#include "base/assert.h"
#include <stdlib.h>
#include <string.h>

static void *libc_resize(void *context, void *block, size_t old_size, size_t new_size)
{
    (void)context;
    (void)old_size;
    if (new_size > 0)
        return realloc(block, new_size);
    free(block);
    return NULL;
}

const struct heap heap_libc = { .resize = libc_resize };

void *heap_new(const struct heap *heap, size_t size)
{
    void *block;

    ASSERT(size > 0); /* size 0 means "free" to the host's allocator */
    block = heap->resize(heap->context, NULL, 0, size);
    return block ? memset(block, 0, size) : NULL;
}

void *heap_resize(const struct heap *heap, void *block, size_t old_size, size_t new_size)
{
    ASSERT(new_size > 0);
    return heap->resize(heap->context, block, old_size, new_size);
}

void heap_free(const struct heap *heap, void *block, size_t size)
{
    if (block)
        (void)heap->resize(heap->context, block, size, 0);
}
