/* deadline.c - see deadline.h. */
#include "model/deadline.h"

static pawl_status add_all(struct scope *scope, const struct deadline *deadlines, uint32_t count,
                           uint32_t state, enum effect_kind kind, int64_t at_ms,
                           struct effect_list *out)
{
    for (uint32_t i = 0; i < count; i++)
        if (deadlines[i].state == state)
            TRY(effect_add(scope, out,
                           (struct effect){ .kind = kind,
                                            .name = deadlines[i].name,
                                            .due_at_ms = kind == EFFECT_ARM
                                                             ? at_ms + deadlines[i].after_ms
                                                             : 0 }));
    return PAWL_OK;
}

pawl_status deadline_effects(struct scope *scope, const struct deadline *deadlines, uint32_t count,
                             uint32_t from, uint32_t to, bool to_is_terminal, int64_t at_ms,
                             struct effect_list *out)
{
    if (to_is_terminal)
        return PAWL_OK;
    if (from != DEADLINE_NO_STATE)
        TRY(add_all(scope, deadlines, count, from, EFFECT_DISARM, at_ms, out));
    return add_all(scope, deadlines, count, to, EFFECT_ARM, at_ms, out);
}

const struct deadline *deadline_find(const struct definition *definition, uint32_t state, str name)
{
    for (uint32_t i = 0; i < definition->deadline_count; i++)
        if (definition->deadlines[i].state == state && str_eq(definition->deadlines[i].name, name))
            return &definition->deadlines[i];
    return NULL;
}
