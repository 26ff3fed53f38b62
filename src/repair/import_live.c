/* import_live.c - the live rows that a record leaves behind, as changes in their order. */
#include "base/grow.h"
#include "repair/import_int.h"

static void add_change(struct building *b, struct live_change change)
{
    if (GROW(&b->scope->arena, b->live, b->live_count, b->live_capacity))
        b->live[b->live_count++] = change;
}

static void add_timer(struct building *b, const struct carried_instance *instance,
                      struct live_change timer)
{
    timer.timer.test = instance->row.test;
    timer.timer.shift_ms = import_moved_ms(b, instance, &timer);
    timer.timer.due_at_ms += timer.timer.shift_ms;
    add_change(b, timer);
}

static void add_effect(struct building *b, const struct carried_instance *instance,
                       const struct record *record, const struct effect *effect)
{
    struct live_change change = { .instance = instance->row.number };

    if (!live_change_of(effect, record->step, record->attempt, record->at_ms, &change))
        return;
    if (change.kind == LIVE_TIMER_PUT)
        add_timer(b, instance, change);
    else
        add_change(b, change);
}

static void arm_deadlines(struct building *b, const struct carried_instance *instance,
                          const struct definition *definition, int64_t at_ms)
{
    for (uint32_t i = 0; i < definition->deadline_count; i++)
        if (definition->deadlines[i].state == definition->initial)
            add_timer(b, instance,
                      (struct live_change){ .kind = LIVE_TIMER_PUT,
                                            .instance = instance->row.number,
                                            .name = definition->deadlines[i].name,
                                            .timer.due_at_ms =
                                                at_ms + definition->deadlines[i].after_ms });
}

pawl_status import_live(struct building *b, struct carried_instance *instance,
                        const struct record *record)
{
    const struct definition *definition = b->import->definitions[instance->definition].loaded;
    struct effect_list effects = { 0 };

    if (record->what >= 0 && record->body.size > 0)
        TRY(effects_read(b->scope, record->body, &effects));
    for (uint32_t i = 0; i < effects.count; i++)
        add_effect(b, instance, record, &effects.items[i]);
    if (record->what == CONTROL_CREATE)
        arm_deadlines(b, instance, definition, record->at_ms);
    if (record->what == CONTROL_PAUSE || record->what == CONTROL_RESUME)
        add_change(b,
                   (struct live_change){ .kind = record->what == CONTROL_PAUSE ? LIVE_PAUSE_PUT
                                                                               : LIVE_PAUSE_DELETE,
                                         .instance = instance->row.number,
                                         .pause.pos = record->pos });
    if (record->what >= 0 && definition->states[instance->state].terminal != TERMINAL_NOT) {
        if (instance->row.parent != 0)
            add_change(b, (struct live_change){ .kind = LIVE_CHILD_ENDED,
                                                .instance = instance->row.number });
        add_change(b, (struct live_change){ .kind = LIVE_CLEAR, .instance = instance->row.number });
    }
    return b->scope->arena.failed ? scope_no_memory(b->scope) : PAWL_OK;
}
