/* import_live.c - the live rows that a record leaves behind, as changes in their order. */
#include "api/import_int.h"

static void add_change(struct building *b, struct live_change change)
{
    ASSERT(b->live_count < b->live_capacity);
    b->live[b->live_count++] = change;
}

static void add_timer(struct building *b, const struct carried_instance *instance,
                      struct live_change timer)
{
    timer.shift_ms = import_moved_ms(b, instance, &timer);
    timer.due_at_ms += timer.shift_ms;
    add_change(b, timer);
}

/* Of one that could not be created there is no id, and nothing is left behind. */
static void add_child(struct building *b, const struct carried_instance *instance,
                      const struct effect *effect)
{
    uint64_t child = 0;

    if (effect->name.size == ID_SIZE && id_parse(effect->name, &child, NULL))
        add_change(b, (struct live_change){ .kind = LIVE_CHILD_PUT,
                                            .instance = instance->row.number,
                                            .ordinal = effect->ordinal,
                                            .child = child,
                                            .abandon = effect->is_abandoned });
}

static void add_effect(struct building *b, const struct carried_instance *instance,
                       const struct record *record, const struct effect *effect)
{
    static const int kinds[] = {
        [EFFECT_STEP] = LIVE_STEP_PUT,  [EFFECT_READY] = LIVE_STEP_PUT,
        [EFFECT_RUN] = LIVE_STEP_PUT,   [EFFECT_END] = LIVE_STEP_DELETE,
        [EFFECT_DISARM] = LIVE_TIMER_DELETE,
        [EFFECT_AWAIT] = LIVE_WAIT_PUT, [EFFECT_LEAVE] = LIVE_WAIT_DELETE,
    };
    bool is_new = effect->kind == EFFECT_STEP;
    enum step_status status;

    if (effect->kind == EFFECT_ARM) {
        add_timer(b, instance,
                  (struct live_change){ .kind = LIVE_TIMER_PUT,
                                        .instance = instance->row.number,
                                        .ordinal = effect->ordinal,
                                        .name = effect->name,
                                        .due_at_ms = effect->due_at_ms,
                                        .wall = effect->wall,
                                        .test = instance->row.test });
        return;
    }
    if (effect->kind == EFFECT_SPAWN)
        add_child(b, instance, effect);
    if ((size_t)effect->kind >= sizeof kinds / sizeof kinds[0])
        return; /* nothing of it is live */
    status = is_new                         ? effect->status
             : effect->kind == EFFECT_READY ? STEP_READY
                                            : STEP_RUNNING;
    add_change(b, (struct live_change){
                      .kind = (enum live_change_kind)kinds[effect->kind],
                      .instance = instance->row.number,
                      .ordinal = effect->ordinal,
                      .plan = is_new         ? effect->plan
                              : record->step ? record->step - 1
                                             : 0,
                      .attempt = is_new ? effect->attempt : record->attempt,
                      .status = status,
                      .ready_at_ms = status == STEP_READY ? record->at_ms : 0,
                      .name = effect->kind == EFFECT_RUN ? effect->lease : effect->name,
                      .due_at_ms = effect->kind == EFFECT_RUN ? effect->lease_ms : 0,
                      .value = effect->kind == EFFECT_AWAIT ? effect->state : STR_NONE,
                      .test = instance->row.test,
                  });
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
                                            .due_at_ms = at_ms + definition->deadlines[i].after_ms,
                                            .test = instance->row.test });
}

static pawl_status reserve_live(struct building *b, uint32_t more)
{
    uint32_t wanted = b->live_capacity ? b->live_capacity : 64;
    struct live_change *grown;

    if (b->live_count + more <= b->live_capacity)
        return PAWL_OK;
    while (wanted < b->live_count + more)
        wanted *= 2;
    grown = ARENA_ARRAY(&b->scope->arena, struct live_change, wanted);
    if (!grown)
        return scope_no_memory(b->scope);
    if (b->live_count > 0)
        memcpy(grown, b->live, b->live_count * sizeof *grown);
    b->live = grown;
    b->live_capacity = wanted;
    return PAWL_OK;
}

pawl_status import_live(struct building *b, struct carried_instance *instance,
                        const struct record *record)
{
    const struct definition *definition = b->import->definitions[instance->definition].loaded;
    struct effect_list effects = { 0 };
    pawl_status status = PAWL_OK;

    if (record->what >= 0 && record->body.size > 0)
        status = effects_read(b->scope, record->body, &effects);
    if (status == PAWL_OK)
        status = reserve_live(b, effects.count + definition->deadline_count + 2);
    if (status != PAWL_OK)
        return status;
    for (uint32_t i = 0; i < effects.count; i++)
        add_effect(b, instance, record, &effects.items[i]);
    if (record->what == CONTROL_CREATE)
        arm_deadlines(b, instance, definition, record->at_ms);
    if (record->what == CONTROL_PAUSE || record->what == CONTROL_RESUME)
        add_change(b,
                   (struct live_change){ .kind = record->what == CONTROL_PAUSE ? LIVE_PAUSE_PUT
                                                                               : LIVE_PAUSE_DELETE,
                                         .instance = instance->row.number,
                                         .pos = record->pos });
    if (record->what < 0 || definition->states[instance->state].terminal == TERMINAL_NOT)
        return PAWL_OK;
    if (instance->row.parent != 0)
        add_change(
            b, (struct live_change){ .kind = LIVE_CHILD_ENDED, .instance = instance->row.number });
    add_change(b, (struct live_change){ .kind = LIVE_CLEAR, .instance = instance->row.number });
    return PAWL_OK;
}
