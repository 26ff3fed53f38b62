/* gates.c - what is known of a gate that waits: since when, until when, and for whom. */
#include "engine/engine_int.h"

#define RECORDS_MAX 4096 /* looked at for `since`: other branches may go on for long */

static const struct live_step *gate_of(const struct definition *definition, const struct live *live,
                                       const struct waiting *waiting)
{
    for (uint32_t i = 0; waiting->ordinal && i < live->step_count; i++)
        if (live->steps[i].ordinal == waiting->ordinal && live->steps[i].status == STEP_PENDING &&
            work_is_gate(definition, live->steps[i].plan))
            return &live->steps[i];
    return NULL;
}

static pawl_status read_approval(struct scope *scope, const struct definition *definition,
                                 uint32_t plan_index, str *out)
{
    struct buf buf;

    buf_init(&buf, scope->arena.heap, 0);
    flow_print_approval(definition, plan_index, &buf);
    *out = buf_keep(&buf, &scope->arena);
    buf_fini(&buf);
    return out->data ? PAWL_OK : scope_no_memory(scope);
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

static uint32_t note_since(const struct record *record, struct waiting *waiting, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (waiting[i].approval.data && waiting[i].ordinal == record->ordinal) {
            waiting[i].since_ms = record->at_ms;
            return 1;
        }
    return 0;
}

/* From the last record back to the entries in which the gates began to wait. */
static pawl_status read_since(struct engine *engine, struct scope *scope, const struct head *head,
                              struct waiting *waiting, uint32_t count, uint32_t gate_count)
{
    struct record record = { .prev = head->pos };
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < RECORDS_MAX && gate_count && record.prev && !status; i++) {
        status = store_record(engine->store, scope, record.prev, &record);
        if (!status && record.what == LIFE_T_GATE_WAIT)
            gate_count -= note_since(&record, waiting, count);
    }
    return status;
}

pawl_status why_gates(struct engine *engine, struct scope *scope, const struct head *head,
                      const struct definition *definition, const struct live *live,
                      struct waiting *waiting, uint32_t count)
{
    uint32_t gate_count = 0;
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < count && !status; i++) {
        const struct live_step *gate = gate_of(definition, live, &waiting[i]);

        if (!gate)
            continue;
        status = read_approval(scope, definition, gate->plan, &waiting[i].approval);
        read_until(engine, live, &waiting[i]);
        gate_count++;
    }
    if (!status && definition->compiler >= GATE_COMPILER)
        status = read_since(engine, scope, head, waiting, count, gate_count);
    return status;
}
