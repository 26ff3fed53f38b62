/* alarms.c - operations that were asked for later.
 *
 * An alarm that falls due is handed to whoever knows operations (engine_options.alarm), who runs
 * it with an idempotency key made from the alarm's id; then it is over. A death in between does no
 * harm: it falls due again, and its key is answered. */
#include "engine/engine_int.h"

#define ALARMS_AT_ONCE 64u

static bool is_passing(pawl_status status)
{
    return status == PAWL_STORAGE_FAILURE || status == PAWL_OUTCOME_UNKNOWN ||
           status == PAWL_NO_MEMORY || status == PAWL_IN_USE || status == PAWL_OVERLOADED;
}

static str print_refusal(struct engine *engine, struct scope *scope, pawl_status status,
                         const char *words)
{
    struct buf text;
    str kept;

    buf_init(&text, engine->heap, LIMIT_TEXT);
    json_open(&text, '{');
    json_key(&text, "reason");
    json_text(&text, pawl_status_name(status));
    json_key(&text, "detail");
    json_text(&text, words);
    json_close(&text, '}');
    kept = buf_keep(&text, &scope->arena);
    buf_fini(&text);
    return kept;
}

/* Over the limit of one unit of work: so it would be the next time. */
static bool is_too_large(const struct scope *work, pawl_status status)
{
    return status == PAWL_NO_MEMORY && work->arena.is_full;
}

static pawl_status perform(struct engine *engine, struct scope *work, str id, bool *is_gone)
{
    struct kept alarm;
    pawl_status status = engine_kept(engine, work, CONTROL_ALARM, id, &alarm);

    *is_gone = status == PAWL_NOT_KNOWN;
    if (!status)
        status = engine->options.alarm(engine->options.alarm_context, engine, work, &alarm);
    return is_too_large(work, status)
               ? scope_fail(work, PAWL_TOO_LARGE, "it takes more than %zu bytes of memory",
                            work->arena.limit)
               : status;
}

/* The store failed, not the alarm: it stays. What is refused is over too, and the log says why. */
static pawl_status fire_one(struct engine *engine, struct scope *scope, str id)
{
    struct keep_args over = { .what = CONTROL_ALARM, .id = id, .over = STR("fired") };
    struct scope work;
    bool is_gone; /* cancelled meanwhile */
    pawl_status status;

    scope_init(&work, engine->heap, LIMIT_SCOPE);
    status = perform(engine, &work, id, &is_gone);
    if (is_passing(status))
        scope->error = work.error;
    if (status && !is_passing(status) && !is_gone) {
        over.over = STR("refused");
        over.more = print_refusal(engine, scope, status, work.error.message);
        engine_log(engine, PAWL_LOG_WARN, "alarm.refused", work.error.message);
    }
    scope_fini(&work);
    if (is_passing(status) || is_gone)
        return is_gone ? PAWL_OK : status;
    status = engine_keep(engine, scope, &over, NULL);
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status; /* somebody was as quick as we */
}

pawl_status alarms_fire_due(struct engine *engine, struct scope *scope, int64_t now_ms)
{
    struct kept_row *rows;
    uint32_t count = 0, fired;
    pawl_status status = PAWL_OK;

    if (!engine->options.alarm)
        return PAWL_OK;
    do { /* what each is for is read when it is its turn: it may be large */
        status =
            store_kept_list(engine->store, scope, CONTROL_ALARM, ALARMS_AT_ONCE, &rows, &count);
        for (fired = 0; !status && fired < count && rows[fired].due_at_ms <= now_ms; fired++)
            status = fire_one(engine, scope, rows[fired].id);
    } while (!status && fired == ALARMS_AT_ONCE && !engine->stopping);
    return status;
}

pawl_status alarms_next(struct engine *engine, struct scope *scope, int64_t *out)
{
    struct kept_row *rows;
    uint32_t count = 0;
    pawl_status status = PAWL_OK;

    *out = INT64_MAX;
    if (engine->options.alarm)
        status = store_kept_list(engine->store, scope, CONTROL_ALARM, 1, &rows, &count);
    if (!status && count)
        *out = rows[0].due_at_ms;
    return status;
}
