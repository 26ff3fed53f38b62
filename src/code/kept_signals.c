/* kept_signals.c - signals that came before anything awaited them are turns of their own as soon as
 * something does. */
#include "base/limits.h"
#include "code/code_int.h"

/* Each turn folds the memory once more, with all that is kept in it: what does not fit is left
 * to the event that the engine sends as long as code_has_kept(). */
#define KEPT_ROOM (LIMIT_SCOPE / 4)

pawl_status code_fold_ahead(struct code_work *work, uint32_t known, struct code_memory **out)
{
    struct arena *arena = &work->scope->arena;
    struct buf buf;
    void *memory;
    str text;

    buf_init(&buf, arena->heap, LIMIT_SCOPE);
    code_memory_print(work->definition, work->memory, &buf);
    text = buf_take(&buf, arena);
    TRY_MEMORY(work->scope, text.data);
    TRY(code_memory_load(work->definition, text, work->memory->input, work->scope, arena, &memory));
    memcpy(((struct code_memory *)memory)->id, work->memory->id, ID_SIZE);
    for (uint32_t i = known; i < work->decision.count; i++) {
        const struct draft *draft = &work->decision.drafts[i];
        struct entry_view entry = entry_of_draft(draft);

        entry.at_ms = work->event->at_ms;

        TRY(code_memory_apply(work->definition, memory, &entry, work->scope, arena));
    }
    *out = memory;
    return PAWL_OK;
}

/* Is one of the signals that the turn began to await kept? */
static bool waits_for_kept(const struct code_work *work)
{
    for (uint32_t i = 0; i < work->memory->kept_count; i++)
        for (uint32_t s = 0; s < work->answer.signals.count; s++)
            if (str_eq(work->memory->kept[i].name, work->answer.signals.items[s].name))
                return true;
    return false;
}

/* Its sender was answered long ago: a kept signal that does not fit its arm is passed over, with
 * an entry that says why. The instance waits on, as it did. */
static pawl_status pass_over(struct code_work *work, const struct cause *cause,
                             const struct turn_answer *waits)
{
    struct draft *draft = decision_add(work->scope, &work->decision, cause->transition);
    str words = arena_str(&work->scope->arena, str_of(work->scope->error.message));

    TRY_MEMORY(work->scope, draft && words.data);
    draft->payload = cause->recorded;
    draft->reason = words;
    work->answer = *waits;
    work->scope->error = (pawl_error){ .status = PAWL_OK };
    return PAWL_OK;
}

bool code_has_kept(const void *memory)
{
    return code_memory_kept(memory) != NULL;
}

/* The turn of one, by work->memory, as the event of its own. */
static pawl_status take_one(struct code_work *work, const struct kept_signal *kept, int64_t at_ms)
{
    const struct turn_answer waits = work->answer;
    struct event event = {
        .kind = EVENT_SIGNAL, .at_ms = at_ms, .name = kept->name, .payload = kept->payload
    };
    struct cause cause = { .transition = LIFE_T_SIGNAL,
                           .kind = PAWL_EVENT_SIGNAL,
                           .name = kept->name,
                           .payload = kept->payload,
                           .is_kept = true };
    uint32_t first = work->decision.count;
    pawl_status status;

    work->event = &event;
    work->answer = (struct turn_answer){ 0 };
    TRY(code_print_payload(work, &cause.recorded));
    status = code_take_turn(work, &cause);
    if (status == PAWL_INVALID_REQUEST) {
        work->decision.count = first;
        status = pass_over(work, &cause, &waits);
    }
    return status ? status
                  : ADD_EFFECT(work, &work->decision.drafts[first].effects, .kind = EFFECT_TAKE,
                               .name = kept->name);
}

/* Signals that were kept for what the turn has just begun to await, or for what was awaited
 * during a pause: a turn more for each, in order, in the same commit. */
pawl_status code_take_kept(struct code_work *work)
{
    const struct event *event = work->event;
    pawl_status status = PAWL_OK;
    uint32_t known = 0;

    while (status == PAWL_OK && work->answer.end == TURN_WAITS &&
           (event->kind == EVENT_WAKE || waits_for_kept(work)) &&
           (known == 0 || work->scope->arena.used < KEPT_ROOM)) {
        struct code_memory *memory = NULL;
        const struct kept_signal *kept;

        TRY(code_fold_ahead(work, known, &memory));
        known = work->decision.count;
        kept = code_memory_kept(memory);
        if (!kept) /* the last one was taken by the turn before */
            return PAWL_OK;
        work->memory = memory;
        status = take_one(work, kept, event->at_ms);
        work->event = event;
    }
    return status;
}
