/* introduce.c - what an instance is, told to its memory: for templates and conditions. */
#include "base/limits.h"
#include "flow/memory.h"

/* What is absent is a missing path: the empty text. */
static void print_member(struct buf *out, const char *key, str text)
{
    if (!text.data)
        return;
    json_put_str(out, key, text);
}

bool flow_introduce(void *state, const struct identity *identity, struct arena *arena)
{
    struct flow_memory *memory = state;
    struct buf buf;

    buf_init(&buf, arena->heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    print_member(&buf, "id", identity->id);
    print_member(&buf, "definition", identity->definition);
    json_put_u64(&buf, "version", identity->version);
    print_member(&buf, "subject_ref", identity->subject);
    print_member(&buf, "correlation_id", identity->correlation);
    print_member(&buf, "created_by", identity->creator);
    json_put_raw(&buf, "labels", identity->labels.data ? identity->labels : STR("{}"));
    json_close(&buf, '}');
    memory->instance = buf_take(&buf, arena);
    return memory->instance.data != NULL;
}
