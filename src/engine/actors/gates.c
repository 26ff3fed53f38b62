/* gates.c - what is known of a gate that waits: since when, until when, and for whom. */
#include "engine/parts.h"

static const struct live_step *gate_of(const struct live *live, const struct waiting *waiting)
{
    bool is_gate = strcmp(waiting->kind, WHY_APPROVAL) == 0;

    for (uint32_t i = 0; is_gate && i < live->step_count; i++)
        if (live->steps[i].ordinal == waiting->ordinal)
            return &live->steps[i];
    return NULL;
}

/* Times are shown by the wall clock. */
static void read_until(struct engine *engine, const struct live *live, struct waiting *waiting)
{
    for (uint32_t i = 0; i < live->timer_count; i++)
        if (live->timers[i].ordinal == waiting->ordinal &&
            str_is(live->timers[i].name, "~timeout")) {
            waiting->has_until = true;
            waiting->until_ms = live->timers[i].due_at_ms - engine_clock_offset_ms(engine);
        }
}

struct gates {
    struct waiting *waiting;
    uint32_t count, left; /* so many gates are not found yet */
};

static bool note_since(void *context, const struct record *record)
{
    struct gates *gates = context;

    for (uint32_t i = 0; i < gates->count && record->what == LIFE_T_GATE_WAIT; i++)
        if (gates->waiting[i].approval.data && gates->waiting[i].ordinal == record->ordinal) {
            gates->waiting[i].since_ms = record->at_ms;
            gates->left--;
        }
    return gates->left == 0;
}

pawl_status why_gates(struct engine *engine, struct scope *scope, const struct head *head,
                      const struct definition *definition, const struct live *live,
                      struct waiting *waiting, uint32_t count)
{
    struct gates gates = { waiting, count, 0 };

    for (uint32_t i = 0; i < count; i++) {
        const struct live_step *gate = gate_of(live, &waiting[i]);
        struct buf buf;

        if (!gate)
            continue;
        buf_init(&buf, scope->arena.heap, 0);
        flow_print_approval(definition, gate->plan, &buf);
        waiting[i].approval = buf_take(&buf, &scope->arena);
        TRY_MEMORY(scope, waiting[i].approval.data);
        read_until(engine, live, &waiting[i]);
        gates.left++;
    }
    if (gates.left == 0 || definition->compiler < GATE_COMPILER)
        return PAWL_OK;
    return records_look_back(engine, scope, head->pos, note_since, &gates);
}
