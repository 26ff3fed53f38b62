/* kept_text.c - what a memory keeps of results and errors: the text, or which entry has it.
 *
 * Results may be a megabyte each, and a flow has thousands of steps. So a memory keeps small
 * ones, and of the others the number of their entry: the engine gives it a way to read that
 * entry again (struct payload_source). A memory without such a way keeps every text. */
#include "base/assert.h"
#include "base/planted.h"
#include "flow/flow_int.h"

#define KEPT_CAPACITY_MIN 64
#define KEPT_TEXT_MAX     ((size_t)16 << 10) /* of one text */
#define KEPT_TEXTS_MAX    ((size_t)4 << 20)  /* of all texts of one memory together */

bool memory_keep(struct kept_text *kept, str json, struct arena *arena)
{
    size_t capacity = kept->capacity > 0 ? kept->capacity : KEPT_CAPACITY_MIN;

    /* Doubling: all the blocks a slot has outgrown are together no larger than its last. */
    while (capacity < json.size)
        capacity *= 2;
    if (capacity > kept->capacity) {
        char *data = arena_alloc(arena, capacity);

        if (!data)
            return false;
        kept->data = data;
        kept->capacity = capacity;
    }
    memcpy(kept->data, json.data, json.size);
    kept->size = json.size;
    kept->seq = 0;
    return true;
}

bool memory_keep_payload(struct flow_memory *memory, struct kept_text *kept, str json, uint32_t seq,
                         struct arena *arena)
{
    memory->kept_size -= kept_view(kept).size;
    if (memory->payloads && seq > 0 && !PLANTED(RESULTS_WHOLE) &&
        (json.size > KEPT_TEXT_MAX || memory->kept_size + json.size > KEPT_TEXTS_MAX)) {
        kept->seq = seq;
        return true;
    }
    memory->kept_size += json.size;
    return memory_keep(kept, json, arena);
}

pawl_status memory_text(const struct flow_memory *memory, const struct kept_text *kept,
                        struct scope *scope, str *out)
{
    pawl_status status;

    *out = kept_view(kept);
    if (kept->seq == 0)
        return PAWL_OK;
    if (!memory->payloads)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "entry %u cannot be read again here: its memory was made elsewhere",
                          kept->seq);
    status = memory->payloads->read(memory->payloads->context, scope, kept->seq, out);
    if (status == PAWL_OK && !out->data)
        *out = RESULT_NULL; /* it was erased */
    ASSERT(status == PAWL_OK || status_is_trouble(status));
    return status;
}

/* Of the item whose step asks: other items have results of the same step. */
static pawl_status item_result(const struct template_source *source, uint32_t step,
                               struct scope *scope, str *out)
{
    const struct passed *passed = source->item.way ? source->item.way->passed : NULL;

    *out = STR_NONE;
    while (passed && passed->plan != step)
        passed = passed->next;
    return passed ? memory_text(source->memory, &passed->text, scope, out) : PAWL_OK;
}

pawl_status template_result(const struct template_source *source, uint32_t step,
                            struct scope *scope, str *out)
{
    uint32_t slot = source->plan->steps[step].result_slot;

    if (source->fresh.data && source->fresh_slot == slot) {
        *out = source->fresh;
        return PAWL_OK;
    }
    if (source->plan->steps[step].of != STEP_NONE)
        return item_result(source, step, scope, out);
    for (const struct fresh *older = source->older; older; older = older->next)
        if (older->slot == slot) {
            *out = older->text;
            return PAWL_OK;
        }
    return memory_text(source->memory, &source->memory->results[slot], scope, out);
}

void flow_attach(void *state, const struct payload_source *payloads)
{
    ((struct flow_memory *)state)->payloads = payloads;
}
