/* interests.c - the rows by which broadcasts find a code instance (model/interest.h): one for
 * each signal that it keeps, and one for each value that it has subscribed to of such a signal.
 * Of a signal that it does not keep, only while it awaits it, and of the second value on: its
 * wait has the first. */
#include "base/grow.h"
#include "code/code_int.h"
#include "model/interest.h"

struct rows {
    struct arena *arena;
    str *names;
    uint32_t count, capacity;
};

bool plan_keeps_signal(const struct code_plan *plan, str signal)
{
    for (uint32_t i = 0; i < plan->buffered_count; i++)
        if (str_eq(plan->buffered[i], signal))
            return true;
    return false;
}

static bool awaits(const struct code_work *work, str signal)
{
    for (uint32_t i = 0; i < work->answer.signals.count; i++)
        if (str_eq(work->answer.signals.items[i].name, signal))
            return true;
    return false;
}

static bool add_row(struct rows *rows, str signal, str value)
{
    str name = interest_name(rows->arena, signal, value);

    if (!name.data || !GROW(rows->arena, rows->names, rows->count, rows->capacity))
        return false;
    rows->names[rows->count++] = name;
    return true;
}

/* Those that it should have after the turn. */
static bool list_rows(const struct code_work *work, struct rows *rows)
{
    const struct code_plan *plan = code_work_plan(work);
    const struct effect_list *all = &work->answer.subscriptions;
    bool ok = true;

    for (uint32_t i = 0; i < plan->buffered_count && ok; i++)
        ok = add_row(rows, plan->buffered[i], STR_NONE);
    for (uint32_t i = 0; i < all->count && ok; i++) {
        str signal = all->items[i].name;
        bool is_first = i == 0 || !str_eq(all->items[i - 1].name, signal);

        if (plan_keeps_signal(plan, signal) || (!is_first && awaits(work, signal)))
            ok = add_row(rows, signal, all->items[i].state);
    }
    return ok;
}

static bool has_row(const struct rows *rows, str name)
{
    for (uint32_t i = 0; i < rows->count; i++)
        if (str_eq(rows->names[i], name))
            return true;
    return false;
}

pawl_status code_add_interests(struct code_work *work, struct effect_list *effects)
{
    const struct code_memory *memory = work->memory;
    struct rows rows = { .arena = &work->scope->arena };

    TRY_MEMORY(work->scope, list_rows(work, &rows));
    for (uint32_t i = 0; i < memory->signal_count; i++)
        if (interest_is(memory->signals[i].name) && !has_row(&rows, memory->signals[i].name))
            TRY(ADD_EFFECT(work, effects, .kind = EFFECT_LEAVE, .name = memory->signals[i].name));
    for (uint32_t i = 0; i < rows.count; i++)
        if (!code_memory_has_wait(memory, rows.names[i]))
            TRY(ADD_EFFECT(work, effects, .kind = EFFECT_AWAIT, .name = rows.names[i]));
    return PAWL_OK;
}
