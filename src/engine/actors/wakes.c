/* wakes.c - kept signals that are awaited, and that their instance was not given.
 *
 * A resume is a commit, and giving the instance what was kept meanwhile is another one. So is the
 * next part of signals that are too many for one decision. A death in between leaves them kept, and
 * so does a resume by a program that has not got the code. The program that opens the store next
 * looks once for instances that await a signal and whose last record says that there may be such a
 * thing, a page at a time, between timers. */
#include "engine/parts.h"
#include <stdatomic.h>

void wakes_look(struct engine *engine)
{
    engine->actors.wakes.is_again = engine->actors.wakes.is_due = true;
}

/* Code or a reduce is here that was not. */
void wakes_look_again(struct engine *engine)
{
    if (atomic_exchange(&engine->actors.wakes.was_refused, false))
        wakes_look(engine);
}

bool wakes_are_due(const struct engine *engine)
{
    return engine->actors.wakes.is_due && engine->env->tick_ms(engine->env) >= engine->actors.wakes.retry_ms;
}

/* Was it resumed, or did it take a kept signal, and nothing but more of them came since? */
static pawl_status is_left(struct engine *engine, struct scope *scope, const struct last_row *last,
                           bool *out)
{
    struct record record = { .what = last->what, .prev = last->pos };
    struct effect_list effects = { 0 };

    *out = last->what == CONTROL_RESUME;
    if (last->what != CONTROL_KEEP_SIGNAL && last->what != LIFE_T_SIGNAL)
        return PAWL_OK;
    do
        TRY(store_record(engine->store, scope, record.prev, &record));
    while (record.what == CONTROL_KEEP_SIGNAL);
    if (record.what == LIFE_T_SIGNAL)
        TRY(effects_read(scope, record.body, &effects));
    *out = record.what == CONTROL_RESUME || effects_first(&effects, EFFECT_TAKE);
    return PAWL_OK;
}

static pawl_status look_at_page(struct engine *engine, struct scope *scope)
{
    struct wakes *wakes = &engine->actors.wakes;
    uint64_t numbers[WAKES_AT_ONCE];
    struct last_row *rows;
    uint32_t count, found = 0;
    bool is_one;

    TRY(store_awaiting(engine->store, scope, wakes->after, WAKES_AT_ONCE, &rows, &count));
    for (uint32_t i = 0; i < count; i++) {
        TRY(is_left(engine, scope, &rows[i], &is_one));
        if (is_one)
            numbers[found++] = rows[i].instance;
    }
    wakes->after = count == WAKES_AT_ONCE ? rows[count - 1].instance : 0;
    if (count < WAKES_AT_ONCE)
        wakes->is_due = atomic_exchange(&wakes->is_again, false);
    return mail_wake_all(engine, scope, numbers, found);
}

void wakes_run(struct engine *engine)
{
    struct scope scope;
    pawl_status status;

    if (!wakes_are_due(engine) || atomic_exchange(&engine->actors.wakes.is_busy, true))
        return;
    if (!engine->actors.wakes.after)
        engine->actors.wakes.is_again = false;
    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    status = look_at_page(engine, &scope);
    if (status) {
        engine_log(engine, PAWL_LOG_WARN, "wakes.failed", scope.error.message);
        engine->actors.wakes.retry_ms = engine->env->tick_ms(engine->env) + RETRY_STORE_MS;
    }
    scope_fini(&scope);
    engine->actors.wakes.is_busy = false;
}
