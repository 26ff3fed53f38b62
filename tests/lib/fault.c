/* fault.c - a heap that fails when it is told to. */
#include "lib/fault.h"
#include "base/assert.h"
#include <stdalign.h>
#include <stdlib.h>

struct header {
    alignas(max_align_t) size_t size;
};

static bool should_fail(struct fault_heap *fault)
{
    fault->count++;
    if (fault->fail_at == 0 || fault->count < fault->fail_at)
        return false;
    if (fault->mode == FAULT_ONCE && fault->count > fault->fail_at)
        return false;
    fault->has_failed = true;
    return true;
}

static void *fault_resize(void *context, void *block, size_t old_size, size_t new_size)
{
    struct fault_heap *fault = context;
    struct header *header = block ? (struct header *)block - 1 : NULL;

    ASSERT(IMPLIES(header, header->size == old_size));
    ASSERT(IMPLIES(!header, old_size == 0));
    if (new_size > 0 && should_fail(fault))
        return NULL;
    fault->live_size += new_size - old_size;
    fault->live += (new_size > 0) - (header != NULL);
    if (new_size == 0) {
        free(header);
        return NULL;
    }
    header = realloc(header, sizeof *header + new_size);
    ASSERT(header);
    header->size = new_size;
    return header + 1;
}

void fault_init(struct fault_heap *fault, uint64_t fail_at, enum fault_mode mode)
{
    *fault = (struct fault_heap){
        .heap = { .resize = fault_resize, .context = fault },
        .mode = mode,
        .fail_at = fail_at,
    };
}

bool fault_next(struct fault_heap *fault, enum fault_mode mode)
{
    ASSERT(fault->live == 0);
    if (fault->fail_at > 0 && !fault->has_failed)
        return false;
    fault_init(fault, fault->fail_at + 1, mode);
    return true;
}
