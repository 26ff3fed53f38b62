/* machine_timers.c - timers of machines: a state that has been held long enough fires an action.
 *
 * Their rows are like those of flows and code, but a machine has no actor: what is due becomes a
 * fire like a caller's, decided in the drain against the instance's state at that time. So the
 * first of them wins, and what has been left or entered again meanwhile is not fired. */
#include "engine/parts.h"
#include "model/deadline.h"

void deadlines_arm(struct engine *engine, const struct head *head,
                   const struct definition *definition, int64_t at_ms)
{
    struct batch *batch = &engine->writer.batch;

    for (uint32_t i = 0; i < definition->deadline_count; i++) {
        if (definition->deadlines[i].state != head->state)
            continue;
        ASSERT(batch->live_count < batch->live_capacity);
        batch->live[batch->live_count++] =
            (struct live_change){ .kind = LIVE_TIMER_PUT,
                                  .instance = head->instance,
                                  .name = definition->deadlines[i].name,
                                  .timer.due_at_ms = at_ms + definition->deadlines[i].after_ms,
                                  .timer.test = (head->flags & HEAD_TEST) != 0 };
    }
}

/* Is it a machine's? Then `fire` fires it. Only an instance's own timers have ordinal 0. */
static pawl_status take(struct engine *engine, struct scope *scope, const struct live_timer *timer,
                        struct batch_fire *fire, bool *taken)
{
    struct definition_slot *slot;
    char id[ID_SIZE + 1];
    struct head head;
    pawl_status status;

    *taken = false;
    if (timer->ordinal != 0)
        return PAWL_OK;
    /* The instance itself is looked at only if it is a machine. */
    if (timer->definition && !definitions_get(engine, scope, timer->definition, &slot) &&
        slot->definition->kind != KIND_MACHINE)
        return PAWL_OK;
    status = head_fixed(engine, scope, timer->instance, &head);
    if (!status)
        status = definitions_get(engine, scope, head.definition, &slot);
    if (status == PAWL_NO_MEMORY)
        return status;
    if (status || slot->definition->kind != KIND_MACHINE) /* one that is damaged is refused alone */
        return PAWL_OK;
    id_print(timer->instance, head.random, id);
    *fire = (struct batch_fire){ .args = { .id = arena_str(&scope->arena, str_of(id)),
                                           .action = timer->name,
                                           .actor = STR("pawl/timer"),
                                           .due_at_ms = timer->due_at_ms - timer->shift_ms,
                                           .is_timer = true } };
    *taken = true;
    return fire->args.id.data ? PAWL_OK : scope_no_memory(scope);
}

/* Leaving the state deletes the row; only a row that is still there is stuck. */
static bool is_stuck(struct engine *engine, struct scope *scope, const struct live_timer *timer)
{
    struct live live;

    if (store_live(engine->store, scope, timer->instance, &live))
        return true;
    if (live.paused_pos) /* not due while it is held: resuming looks again */
        return false;
    for (uint32_t i = 0; i < live.timer_count; i++)
        if (live.timers[i].ordinal == 0 && str_eq(live.timers[i].name, timer->name))
            return live.timers[i].due_at_ms == timer->due_at_ms;
    return false;
}

pawl_status deadlines_fire(struct engine *engine, struct scope *scope, struct live_timer *due,
                           uint32_t *count, uint32_t *refused)
{
    struct batch_fire *fires = ARENA_ARRAY(&scope->arena, struct batch_fire, (size_t)*count + 1);
    struct live_timer *mine = ARENA_ARRAY(&scope->arena, struct live_timer, (size_t)*count + 1);
    uint32_t taken = 0, left = 0;

    TRY_MEMORY(scope, fires && mine);
    for (uint32_t i = 0; i < *count; i++) {
        bool is_taken;

        TRY(take(engine, scope, &due[i], &fires[taken], &is_taken));
        if (is_taken)
            mine[taken++] = due[i];
        else
            due[left++] = due[i];
    }
    for (uint32_t at = 0; at < taken; at += LIMIT_DRAIN)
        TRY(engine_fire_batch(engine, scope, fires + at,
                              taken - at < LIMIT_DRAIN ? taken - at : LIMIT_DRAIN));
    for (uint32_t i = 0; i < taken; i++)
        if (fires[i].status && is_stuck(engine, scope, &mine[i]))
            ++*refused;
    *count = left;
    return PAWL_OK;
}
