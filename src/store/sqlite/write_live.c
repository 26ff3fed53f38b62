/* write_live.c - live rows: steps, timers, waits and children, changed in the order the commit
 * says. */
#include "base/assert.h"
#include "model/interest.h"
#include "sqlite_int.h"

static const char put_step[] =
    "INSERT INTO pawl_step (inst, ord, plan, attempt, status, lease, lease_ms, ready_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    " ON CONFLICT (inst, ord) DO UPDATE SET plan = excluded.plan, attempt = excluded.attempt,"
    " status = excluded.status, lease = excluded.lease, lease_ms = excluded.lease_ms,"
    " ready_at = excluded.ready_at";
static const char put_timer[] =
    "INSERT INTO pawl_timer (inst, ord, name, due, test, wall, shift)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, 0))"
    " ON CONFLICT (inst, ord, name) DO UPDATE SET due = excluded.due, test = excluded.test,"
    " wall = excluded.wall, shift = excluded.shift";
static const char put_wait[] =
    "INSERT INTO pawl_wait (inst, ord, name, value) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value";
static const char put_child[] =
    "INSERT OR REPLACE INTO pawl_child (child, inst, ord, abandon, ended)"
    " VALUES (?1, ?2, ?3, ?4, 0)";
static const char end_child[] = "UPDATE pawl_child SET ended = 1 WHERE child = ?1";
static const char delete_step[] = "DELETE FROM pawl_step WHERE inst = ?1 AND ord = ?2";
static const char clear_step_timers[] = "DELETE FROM pawl_timer WHERE inst = ?1 AND ord = ?2";
static const char clear_step_waits[] = "DELETE FROM pawl_wait WHERE inst = ?1 AND ord = ?2";
static const char clear_step_child[] = "DELETE FROM pawl_child WHERE inst = ?1 AND ord = ?2";
static const char delete_timer[] =
    "DELETE FROM pawl_timer WHERE inst = ?1 AND ord = ?2 AND name = ?3";
static const char delete_wait[] =
    "DELETE FROM pawl_wait WHERE inst = ?1 AND ord = ?2 AND name = ?3";

/* Rows of model/interest.h are in a table of their own. */
static const char put_interest[] =
    "INSERT OR IGNORE INTO pawl_interest (inst, name) VALUES (?1, ?3)";
static const char delete_interest[] = "DELETE FROM pawl_interest WHERE inst = ?1 AND name = ?3";

static const char put_pause[] = "INSERT OR REPLACE INTO pawl_pause (inst, pos) VALUES (?1, ?2)";
static const char delete_pause[] = "DELETE FROM pawl_pause WHERE inst = ?1";

/* A row that is named by instance and ordinal, and where there is one by a name. */
static pawl_status run_row(struct connection *writer, struct scope *scope, const char *text,
                           const struct live_change *change)
{
    sqlite3_stmt *statement;

    TRY(statement_get(writer, scope, text, &statement));
    bind_u64(statement, 1, change->instance);
    bind_u64(statement, 2, change->ordinal);
    if (change->name.data)
        bind_text(statement, 3, change->name);
    if (text == put_wait)
        bind_text(statement, 4, change->wait.value);
    return statement_run(statement, scope);
}

static pawl_status run_wait(struct connection *writer, struct scope *scope,
                            const struct live_change *change)
{
    bool put = change->kind == LIVE_WAIT_PUT;

    if (change->ordinal == 0 && interest_is(change->name))
        return run_row(writer, scope, put ? put_interest : delete_interest, change);
    return run_row(writer, scope, put ? put_wait : delete_wait, change);
}

/* A step row goes with its timers, waits and child, where it may have any. */
static pawl_status delete_one_step(struct connection *writer, struct scope *scope,
                                   const struct live_change *change)
{
    TRY(run_row(writer, scope, delete_step, change));
    if (change->step.is_bare)
        return PAWL_OK;
    TRY(run_row(writer, scope, clear_step_timers, change));
    TRY(run_row(writer, scope, clear_step_waits, change));
    return run_row(writer, scope, clear_step_child, change);
}

static pawl_status clear(struct connection *writer, struct scope *scope, uint64_t instance,
                         unsigned rows)
{
    static const struct {
        enum live_rows rows;
        const char *text;
    } tables[] = {
        { ROWS_STEPS, "DELETE FROM pawl_step WHERE inst = ?1" },
        { ROWS_TIMERS, "DELETE FROM pawl_timer WHERE inst = ?1" },
        { ROWS_WAITS, "DELETE FROM pawl_wait WHERE inst = ?1" },
        { ROWS_WAITS, "DELETE FROM pawl_interest WHERE inst = ?1" },
        { ROWS_CHILDREN, "DELETE FROM pawl_child WHERE inst = ?1" },
        { ROWS_PAUSE, delete_pause },
    };

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (rows & tables[i].rows)
            TRY(RUN(writer, scope, tables[i].text, NUMBER(instance)));
    return PAWL_OK;
}

static pawl_status write_change(struct connection *writer, struct scope *scope,
                                const struct live_change *change)
{
    uint64_t instance = change->instance;

    switch (change->kind) {
    case LIVE_STEP_PUT:
        ASSERT(change->step.status <= STEP_RUNNING); /* what is over is no longer live */
        return RUN(writer, scope, put_step, NUMBER(instance), NUMBER(change->ordinal),
                   NUMBER(change->step.plan), NUMBER(change->step.attempt),
                   NUMBER(change->step.status), TEXT(change->step.lease),
                   OPTIONAL(change->step.lease_ms), OPTIONAL(change->step.ready_at_ms));
    case LIVE_STEP_DELETE:
        return delete_one_step(writer, scope, change);
    case LIVE_TIMER_PUT:
        return RUN(writer, scope, put_timer, NUMBER(instance), NUMBER(change->ordinal),
                   TEXT(change->name), SIGNED(change->timer.due_at_ms), NUMBER(change->timer.test),
                   OPTIONAL(change->timer.wall), SIGNED(change->timer.shift_ms));
    case LIVE_TIMER_DELETE:
        return run_row(writer, scope, delete_timer, change);
    case LIVE_WAIT_PUT:
    case LIVE_WAIT_DELETE:
        return run_wait(writer, scope, change);
    case LIVE_PAUSE_PUT:
        return RUN(writer, scope, put_pause, NUMBER(instance), NUMBER(change->pause.pos));
    case LIVE_PAUSE_DELETE:
        return RUN(writer, scope, delete_pause, NUMBER(instance));
    case LIVE_CHILD_PUT:
        return RUN(writer, scope, put_child, NUMBER(change->child.number), NUMBER(instance),
                   NUMBER(change->ordinal), NUMBER(change->child.is_abandoned));
    case LIVE_CHILD_ENDED:
        return RUN(writer, scope, end_child, NUMBER(instance));
    case LIVE_CLEAR:
        return clear(writer, scope, instance, change->rows ? change->rows : ROWS_ALL);
    }
    panic_at(__FILE__, __LINE__, "a live change of no kind");
}

/* When the store's clock is shifted, every due time by it shifts by the same amount. */
static const char shift_timers[] =
    "UPDATE pawl_timer SET due = due + ?1, shift = nullif(coalesce(shift, 0) + ?1, 0)"
    " WHERE wall IS NULL AND due < ?2";
static const char shift_alarms[] =
    "UPDATE pawl_kept SET due = due + ?1 WHERE what = -5 AND wall IS NULL AND due < ?2";

pawl_status write_live(struct connection *writer, struct scope *scope, const struct commit *commit)
{
    if (commit->shift_ms) {
        TRY(RUN(writer, scope, shift_timers, SIGNED(commit->shift_ms), SIGNED(DUE_NEVER_MS)));
        TRY(RUN(writer, scope, shift_alarms, SIGNED(commit->shift_ms), SIGNED(DUE_NEVER_MS)));
    }
    for (size_t i = 0; i < commit->live_count; i++)
        TRY(write_change(writer, scope, &commit->live[i]));
    return PAWL_OK;
}
