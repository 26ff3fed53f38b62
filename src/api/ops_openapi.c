/* ops_openapi.c - openapi.get: the document never changes, so it is made once. */
#include "api/ops_int.h"
#include "api/schema.h"
#include "base/limits.h"
#include <stdatomic.h>

struct described {
    size_t size;
    char text[];
};

void described_free(struct described *described, const struct heap *heap)
{
    if (described)
        heap_free(heap, described, sizeof *described + described->size);
}

static pawl_status make(const struct op_call *call, struct described **out)
{
    const struct heap *heap = &call->p->heap;
    struct described *made = NULL;
    struct buf text;
    pawl_status status;

    buf_init(&text, heap, LIMIT_SCOPE);
    status = openapi_print(call->scope, &text);
    if (status == PAWL_OK && !text.failed)
        made = heap_new(heap, sizeof *made + text.size);
    if (made) {
        made->size = text.size;
        memcpy(made->text, text.data, text.size);
    } else if (status == PAWL_OK) {
        status = scope_no_memory(call->scope);
    }
    buf_fini(&text);
    *out = made;
    return status;
}

/* Of two who make it at once, the second throws its own away. */
pawl_status op_openapi(struct op_call *call, struct buf *out)
{
    struct described *kept = atomic_load(&call->p->described), *made;
    pawl_status status = PAWL_OK;

    if (!kept) {
        status = make(call, &made);
        if (status != PAWL_OK)
            return status;
        if (atomic_compare_exchange_strong(&call->p->described, &kept, made))
            kept = made;
        else
            described_free(made, &call->p->heap);
    }
    buf_add(out, kept->text, kept->size);
    return status;
}
