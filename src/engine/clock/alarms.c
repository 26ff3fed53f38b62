/* alarms.c - operations that were asked for later.
 *
 * The engine hands a due alarm to engine_options.alarm, which runs its operation. An operation that
 * is one decision is committed together with the alarm's end, and only while the alarm is in force:
 * the drain checks that (alarm_permits()). So after an acknowledged cancel nothing happens, and
 * nothing happens twice. An operation over many instances takes many commits. The first one records
 * that the alarm is firing. From then on the alarm cannot be cancelled, and every key used since
 * then counts until the alarm's end is recorded, so that no instance is reached twice. */
#include "engine/parts.h"

#define ALARMS_AT_ONCE 64u

/* ---- recording ---- */

bool alarm_permits(struct engine *engine, struct request *request)
{
    str id = request->scope->alarm;
    struct standing_row row;

    ASSERT_DRAINING(engine);
    if (batch_changes_standing(engine, CONTROL_ALARM, id)) {
        /* Decide again when the outcome of this commit is known. */
        request->is_stale = request->decide != NULL;
        request->is_again = !request->is_stale;
        request->status = request->is_stale
                              ? scope_fail(request->scope, PAWL_CONFLICT, "the alarm may be over")
                              : PAWL_OK;
        return false;
    }
    request->status = store_standing(engine->store, request->scope, CONTROL_ALARM, id, &row);
    if (request->status == PAWL_NOT_KNOWN)
        scope_fail(request->scope, PAWL_NOT_KNOWN, "the alarm is over");
    return request->status == PAWL_OK;
}

/* The operation is in the batch already. If the alarm's end cannot be added, the whole batch
 * fails. */
void alarm_fired(struct engine *engine, struct request *request, int64_t at_ms)
{
    pawl_status status = alarm_record_end(engine, request->scope, request->scope->alarm, at_ms);

    ASSERT_DRAINING(engine);
    if (status)
        batch_spoil(engine, request->scope, status);
}

/* ---- over many ---- */

pawl_status engine_alarm_begin(struct engine *engine, struct scope *scope,
                               struct standing_fact *alarm)
{
    int64_t since_ms;

    TRY(alarm_record_firing(engine, scope, alarm->id, &since_ms));
    alarm->has_begun = true;
    guard_lock(&engine->lock);
    if (engine->clock.firing_count++ == 0 || since_ms < engine->clock.firing_since_ms)
        engine->clock.firing_since_ms = since_ms;
    guard_unlock(&engine->lock);
    return PAWL_OK;
}

/* The key of an alarm's single decision never expires: an older program may have died before it
 * recorded the alarm's end. */
bool alarm_counts_key(struct engine *engine, const struct scope *scope, int64_t used_at_ms)
{
    bool counts;

    guard_lock(&engine->lock);
    counts = scope->alarm.data || (engine->clock.firing_count && used_at_ms >= engine->clock.firing_since_ms);
    guard_unlock(&engine->lock);
    return counts;
}

/* ---- what is due ---- */

static pawl_status perform(struct engine *engine, struct scope *work, str id, bool *is_gone)
{
    struct standing_fact alarm = { 0 };
    pawl_status status = engine_standing(engine, work, CONTROL_ALARM, id, &alarm);

    *is_gone = status == PAWL_NOT_KNOWN;
    if (!status) {
        status = engine->options.alarm(engine->options.alarm_context, engine, work, &alarm);
        guard_lock(&engine->lock);
        engine->clock.firing_count -= alarm.has_begun;
        guard_unlock(&engine->lock);
    }
    /* Over the limit of one unit of work: so it would be the next time. */
    return status == PAWL_NO_MEMORY && work->arena.is_full
               ? scope_fail(work, PAWL_TOO_LARGE, "it takes more than %zu bytes of memory",
                            work->arena.limit)
               : status;
}

/* A machine with `on_end` also learns if what it starts could not be created. */
static pawl_status tell_starter(struct engine *engine, struct scope *scope, str on_end, str error,
                                str *out)
{
    struct ended ended = { .id = STR_NONE, .status = STATUS_FAILED, .payload = error };

    return on_end.data ? on_end_fire(scope, engine->heap, on_end, &ended, out) : PAWL_OK;
}

/* An operation that was one decision has ended its alarm in its own commit; every other alarm ends
 * here. A rejected operation ends it as `refused`, with the scope's error message. */
static pawl_status end(struct engine *engine, struct scope *scope, str id, str on_end,
                       pawl_status refused)
{
    struct keep_args over = { .what = CONTROL_ALARM, .id = id, .over = STR("fired") };
    pawl_error why = scope->error;
    struct buf text;
    pawl_status status;

    if (refused) {
        buf_init(&text, engine->heap, LIMIT_TEXT);
        json_open(&text, '{');
        json_put_text(&text, "reason", pawl_status_name(refused));
        json_put_text(&text, "detail", why.message);
        json_close(&text, '}');
        over.over = STR("refused");
        over.more = buf_take(&text, &scope->arena);
        TRY_MEMORY(scope, over.more.data);
        TRY(tell_starter(engine, scope, on_end, over.more, &over.then));
    }
    status = engine_keep(engine, scope, &over, NULL);
    if (status == PAWL_NOT_KNOWN) /* it has ended already, or was cancelled */
        return PAWL_OK;
    if (!status && refused)
        engine_log(engine, PAWL_LOG_WARN, "alarm.refused", why.message);
    return status;
}

/* The store failed, not the alarm: it stays. What is refused is over too, and the log says why. A
 * machine that is held learns of an end when it goes on: *is_held. */
static pawl_status fire_one(struct engine *engine, struct scope *scope, str id, bool *is_held)
{
    struct scope work;
    bool is_gone; /* cancelled meanwhile */
    pawl_status status;
    str on_end;

    scope_init(&work, engine->heap, LIMIT_SCOPE);
    status = perform(engine, &work, id, &is_gone);
    *is_held = status == PAWL_PAUSED && work.is_machines;
    on_end = status && work.on_end.data ? arena_str(&scope->arena, work.on_end) : STR_NONE;
    status = scope_leave(&work, scope, status);
    TRY_MEMORY(scope, !scope->arena.failed);
    if (is_gone || *is_held)
        return PAWL_OK;
    return status_is_passing(status) ? status : end(engine, scope, id, on_end, status);
}

/* Those that are held stay in front of the list, and the others are read behind them. */
static pawl_status fire_due_by(struct engine *engine, struct scope *scope, bool wall,
                               int64_t now_ms, uint32_t *held_count)
{
    struct standing_row *rows;
    uint32_t count = 0, at, held = 0;
    pawl_status status = PAWL_OK;

    do { /* what each is for is read when it is its turn: it may be large */
        status = store_alarms(engine->store, scope, wall, ALARMS_AT_ONCE + held, &rows, &count);
        for (at = held; !status && at < count && rows[at].due_at_ms <= now_ms; at++) {
            bool is_held;

            status = fire_one(engine, scope, rows[at].id, &is_held);
            held += is_held;
        }
    } while (!status && count > 0 && at == count && count >= ALARMS_AT_ONCE && !engine->stopping);
    *held_count += held;
    return status;
}

static bool may_fire(struct engine *engine)
{
    bool may;

    guard_lock(&engine->lock);
    may = engine->options.alarm && !engine->options.alarms_wait;
    guard_unlock(&engine->lock);
    return may;
}

void engine_alarms_go(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine->options.alarms_wait = false;
    guard_unlock(&engine->lock);
    timers_look_again(engine);
}

pawl_status alarms_fire_due(struct engine *engine, struct scope *scope, const struct moment *now,
                            uint32_t *held)
{
    *held = 0;
    if (!may_fire(engine))
        return PAWL_OK;
    TRY(fire_due_by(engine, scope, false, now->at_ms, held));
    return fire_due_by(engine, scope, true, now->wall_ms, held);
}

pawl_status alarms_next(struct engine *engine, struct scope *scope, bool wall, int64_t *out)
{
    struct standing_row *rows;
    uint32_t count = 0;

    *out = INT64_MAX;
    if (may_fire(engine))
        TRY(store_alarms(engine->store, scope, wall, 1, &rows, &count));
    if (count)
        *out = rows[0].due_at_ms;
    return PAWL_OK;
}
