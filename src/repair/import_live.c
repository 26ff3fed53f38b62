/* import_live.c - the live rows that a record leaves behind, as changes in their order. */
#include "base/grow.h"
#include "model/deadline.h"
#include "repair/import_int.h"

static void add_change(struct building *b, const struct carried_instance *instance,
                       struct live_change change)
{
    change.instance = instance->row.number;
    if (change.kind == LIVE_TIMER_PUT) {
        change.timer.test = instance->row.test;
        change.timer.shift_ms = import_moved_ms(b, instance, &change);
        change.timer.due_at_ms += change.timer.shift_ms;
    }
    if (GROW(&b->scope->arena, b->live, b->live_count, b->live_capacity))
        b->live[b->live_count++] = change;
}

pawl_status import_live(struct building *b, struct carried_instance *instance,
                        const struct record *record)
{
    const struct definition *definition = b->import->definitions[instance->definition].loaded;
    bool is_over = definition->states[instance->state].terminal != TERMINAL_NOT;
    struct effect_list effects = { 0 };

    if (record->what >= 0 && record->body.size > 0)
        TRY(effects_read(b->scope, record->body, &effects));
    if (record->what == CONTROL_CREATE)
        TRY(deadline_effects(b->scope, definition->deadlines, definition->deadline_count,
                             DEADLINE_NO_STATE, instance->state, is_over, record->at_ms, &effects));
    for (uint32_t i = 0; i < effects.count; i++) {
        struct live_change change = { 0 };

        if (live_change_of(&effects.items[i], record->step, record->attempt, record->at_ms,
                           &change))
            add_change(b, instance, change);
    }
    if (record->what == CONTROL_PAUSE || record->what == CONTROL_RESUME)
        add_change(b, instance,
                   (struct live_change){ .kind = record->what == CONTROL_PAUSE ? LIVE_PAUSE_PUT
                                                                               : LIVE_PAUSE_DELETE,
                                         .pause.pos = record->pos });
    if (record->what >= 0 && is_over && instance->row.parent != 0)
        add_change(b, instance, (struct live_change){ .kind = LIVE_CHILD_ENDED });
    if (record->what >= 0 && is_over)
        add_change(b, instance, (struct live_change){ .kind = LIVE_CLEAR });
    return b->scope->arena.failed ? scope_no_memory(b->scope) : PAWL_OK;
}
