/* kept.c - signals that came before anything awaited them are turns of their own as soon as
 * something does. */
#include "base/limits.h"
#include "code/code_int.h"

/* The memory as it will be after what was decided so far. */
static pawl_status fold_ahead(struct work *work, struct code_memory **out)
{
    struct arena *arena = &work->scope->arena;
    struct buf buf;
    void *memory;
    str text;
    pawl_status status;

    buf_init(&buf, arena->heap, LIMIT_SCOPE);
    code_memory_print(work->definition, work->memory, &buf);
    text = buf_keep(&buf, arena);
    buf_fini(&buf);
    if (!text.data)
        return scope_no_memory(work->scope);
    status = code_memory_load(work->definition, text, STR_NONE, work->scope, arena, &memory);
    for (uint32_t i = 0; i < work->decision.count && status == PAWL_OK; i++) {
        const struct draft *draft = &work->decision.drafts[i];
        struct entry_view entry = { .transition = draft->transition, .effects = &draft->effects };

        status = code_memory_apply(work->definition, memory, &entry, work->scope, arena);
    }
    if (status == PAWL_OK)
        *out = memory;
    return status;
}

/* Is one of the signals that the turn began to await kept? */
static bool waits_for_kept(const struct work *work)
{
    for (uint32_t i = 0; i < work->memory->kept_count && work->answer.end == TURN_WAITS; i++)
        for (uint32_t s = 0; s < work->answer.signals.count; s++)
            if (str_eq(work->memory->kept[i].name, work->answer.signals.items[s].name))
                return true;
    return false;
}

static str error_words(const struct work *work)
{
    struct buf buf;
    str kept;

    buf_init(&buf, work->scope->arena.heap, LIMIT_TEXT);
    json_text(&buf, work->scope->error.message);
    kept = buf_keep(&buf, &work->scope->arena);
    buf_fini(&buf);
    return kept;
}

/* Signals that were kept for what the turn has just begun to await: a turn more for each, in order,
 * in the same commit. What does not fit its arm is spent, and fails the instance with the words. */
pawl_status code_take_kept(struct work *work)
{
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && waits_for_kept(work)) {
        struct code_memory *memory = NULL;
        const struct code_kept *kept;
        struct event event = { .kind = EVENT_SIGNAL, .at_ms = work->event->at_ms };
        struct cause cause = { .transition = LIFE_T_SIGNAL, .kind = PAWL_EVENT_SIGNAL, .is_kept = true };
        uint32_t first = work->decision.count;

        status = fold_ahead(work, &memory);
        if (status != PAWL_OK)
            return status;
        kept = code_memory_kept(memory);
        event.name = cause.name = kept->name;
        event.payload = cause.payload = kept->payload;
        work->memory = memory;
        work->event = &event;
        work->answer = (struct turn_answer){ 0 };
        status = code_print_payload(work, &cause.recorded);
        if (status == PAWL_OK)
            status = code_take_turn(work, &cause);
        if (status == PAWL_INVALID_REQUEST) { /* nobody is there to be told */
            event.failure = error_words(work);
            work->decision.count = first;
            status =
                event.failure.data ? code_take_turn(work, &cause) : scope_no_memory(work->scope);
        }
        if (status == PAWL_OK)
            status = code_add(work, &work->decision.drafts[first].effects,
                              (struct effect){ .kind = EFFECT_TAKE, .name = kept->name });
    }
    return status;
}
