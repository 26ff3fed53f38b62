/* tick.c - the work of the core: a unit of it, all of it, and when there is more.
 *
 * Threads of the shell and callers that wait do units of the kinds that are theirs. A host with its
 * own loop calls engine_tick(). It asks when (engine_next_due_ms) or polls a descriptor (the
 * wakeup). That is set again wherever something may have become due, by any thread: a thread that
 * changes the answer calls engine_set_wakeup(). */
#include "engine/parts.h"

#define BROKEN_REST_MS 60000 /* a store that failed is tried again so much later */

/* Turns before commits, so that they share one. */
bool engine_work(struct engine *engine, struct scope *scope, unsigned kinds)
{
    ASSERT_LOCKED(engine);
    return ((kinds & WORK_TURNS) && actors_take_turn(engine)) ||
           (((kinds & WORK_COMMITS) || ((kinds & WORK_LED) && shell_leads(engine))) &&
            writer_drain(engine)) ||
           ((kinds & WORK_TURNS) && actors_pass_on(engine)) ||
           ((kinds & WORK_QUICK) && runner_run_quick(engine)) ||
           ((kinds & WORK_TOOLS) && runner_run_one(engine)) ||
           ((kinds & WORK_TIMERS) && timers_work(engine, scope)) ||
           ((kinds & WORK_ROWS) && writer_tidy(engine));
}

static bool has_work(const struct engine *engine)
{
    return engine->writer.first || engine->actors.runnable || engine->work.jobs.first ||
           engine->work.quick.first || steps_can_start(engine) || steps_are_lost(engine) ||
           engine->actors.ended_count || renewals_are_due(engine) ||
           (wakes_are_due(engine) && engine->options.own) || /* a shared one looks when it runs */
           (engine->actors.ended_lost && !engine->writer.broken && !engine->writer.commit_failed);
}

/* Milliseconds until rows that lag may be written; -1: none does. A store that fails is left alone
 * for a while. */
static int64_t flush_in_ms(struct engine *engine)
{
    if (engine->writer.broken)
        return RETRY_STORE_MS;
    if (!engine->options.own || engine->writer.tip.flushed >= engine->writer.tip.pos)
        return -1;
    return engine->writer.commit_failed ? RETRY_STORE_MS : 0;
}

/* The next due time by the store's clock. A future due time by the wall clock is not included. */
static int64_t timers_at(struct engine *engine)
{
    int64_t wait_ms = engine->clock.stuck_until_ms - engine->env->tick_ms(engine->env);
    int64_t left_ms = leases_left_ms(engine);
    struct moment now = clock_read(engine);

    if (engine->clock.stuck_timers && wait_ms > 0 && timers_next_due(engine) != INT64_MAX)
        return now.at_ms + wait_ms;
    if (left_ms == 0 || engine->clock.next_due_ms <= now.at_ms ||
        engine->clock.next_wall_ms <= now.wall_ms)
        return WAKEUP_NOW;
    return left_ms != INT64_MAX && now.at_ms + left_ms < engine->clock.next_due_ms
               ? now.at_ms + left_ms
               : engine->clock.next_due_ms;
}

/* When something is tried again that met a failing store. */
static int64_t retry_at(struct engine *engine)
{
    int64_t tick_ms = engine->env->tick_ms(engine->env), at_ms = INT64_MAX;

    if (engine->actors.later)
        at_ms = mail_retry_ms(engine);
    if (engine->work.ready_lost && engine->work.ready_look_ms < at_ms)
        at_ms = engine->work.ready_look_ms;
    if (at_ms == INT64_MAX)
        return WAKEUP_NEVER;
    return at_ms > tick_ms ? clock_at(engine) + at_ms - tick_ms : WAKEUP_NOW;
}

/* When there is something to do: WAKEUP_NOW, WAKEUP_NEVER, or a time by the store's clock. A future
 * due time by the wall clock is not included. */
static int64_t due_at(struct engine *engine)
{
    int64_t at_ms = timers_at(engine), flush_ms = flush_in_ms(engine), again_ms = retry_at(engine);

    ASSERT_LOCKED(engine);
    if (has_work(engine) || flush_ms == 0)
        return WAKEUP_NOW;
    if (flush_ms > 0 && clock_at(engine) + flush_ms < at_ms)
        at_ms = clock_at(engine) + flush_ms;
    return again_ms < at_ms ? again_ms : at_ms;
}

static void look_ahead(struct engine *engine)
{
    struct scope scope;

    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    timers_look_ahead(engine, &scope);
    scope_fini(&scope);
}

/* Timers that were disarmed are still waited for: a host's loop would wake up for nothing, or never
 * see that there is nothing more. */
static void look_after_work(struct engine *engine)
{
    bool waits;

    guard_lock(&engine->lock);
    waits = (engine->clock.next_due_ms != INT64_MAX || engine->clock.next_wall_ms != INT64_MAX) &&
            !shell_has_threads(engine);
    guard_unlock(&engine->lock);
    if (waits)
        look_ahead(engine);
}

int64_t engine_next_due_ms(struct engine *engine)
{
    int64_t at_ms, left_ms, wall_ms;
    struct moment now;

    if (engine->options.connection) /* a rollback takes timers back, and brings back fired ones */
        look_ahead(engine);
    guard_lock(&engine->lock);
    at_ms = due_at(engine);
    now = clock_read(engine);
    left_ms = at_ms == WAKEUP_NEVER ? INT64_MAX : at_ms == WAKEUP_NOW ? 0 : at_ms - now.at_ms;
    wall_ms = engine->clock.next_wall_ms;
    guard_unlock(&engine->lock);
    if (wall_ms <= now.wall_ms) /* due, or unknown: INT64_MIN */
        return 0;
    if (wall_ms != INT64_MAX && wall_ms - now.wall_ms < left_ms)
        left_ms = wall_ms - now.wall_ms;
    return left_ms == INT64_MAX ? -1 : left_ms < 0 ? 0 : left_ms;
}

/* What is known of the future is in the store, and nothing is under way or held in memory alone. A
 * store that failed is as good as closed. */
bool engine_is_at_rest(struct engine *engine, int64_t *due_in_ms)
{
    bool is_idle, is_broken;

    *due_in_ms = engine_next_due_ms(engine);
    guard_lock(&engine->lock);
    is_broken = engine->writer.broken;
    is_idle = *due_in_ms != 0 && !has_work(engine) && !engine->writer.drainer &&
              !engine->actors.later && !engine->clock.timers_busy && !engine->work.jobs_under_way &&
              !engine->actors.mail_under_way && !engine->work.lease_count &&
              !engine->work.waiting && !engine->clock.stuck_timers && !engine->work.ready_lost &&
              engine->writer.tip.flushed >= engine->writer.tip.pos;
    guard_unlock(&engine->lock);
    if (is_broken)
        *due_in_ms = BROKEN_REST_MS;
    return is_broken || is_idle;
}

static void run_waiting(struct engine *engine, uint32_t *budget)
{
    unsigned kinds = shell_has_threads(engine) ? WORK_WAITING : WORK_WAITING | WORK_TOOLS;

    guard_lock(&engine->lock);
    while (*budget > 0 && engine_work(engine, NULL, kinds))
        --*budget;
    guard_unlock(&engine->lock);
}

static bool is_time_to_look(struct engine *engine)
{
    bool is_time;

    guard_lock(&engine->lock);
    is_time = steps_are_lost(engine) && !shell_has_threads(engine);
    guard_unlock(&engine->lock);
    return is_time;
}

/* Records a jump soon, even without another commit. If that fails, a later call tries again. */
static void keep_clock(struct engine *engine, struct scope *scope)
{
    bool has_news;

    guard_lock(&engine->lock);
    has_news = clock_has_news(engine);
    guard_unlock(&engine->lock);
    if (has_news)
        clock_keep(engine, scope);
}

static void tell_tick(struct engine *engine, const struct tick *before, struct tick *out)
{
    out->due_in_ms = engine_next_due_ms(engine);
    guard_lock(&engine->lock);
    out->commits = engine->writer.commits - before->commits;
    out->answers = engine->writer.answers - before->answers;
    guard_unlock(&engine->lock);
}

pawl_status engine_tick(struct engine *engine, struct scope *scope, uint32_t budget,
                        struct tick *out)
{
    struct tick before = { 0 };
    bool is_bounded = budget > 0;
    uint32_t left = is_bounded ? budget : UINT32_MAX;
    pawl_status status = PAWL_OK;
    bool due;

    guard_lock(&engine->lock);
    before.commits = engine->writer.commits;
    before.answers = engine->writer.answers;
    guard_unlock(&engine->lock);
    engine_mend(engine);
    if (engine->options.own)
        keep_clock(engine, scope);
    if (engine->options.connection) /* a rollback takes timers back, and brings back fired ones */
        look_ahead(engine);
    do {
        if (is_time_to_look(engine))
            recover_ready(engine);
        if (!is_bounded)
            left = UINT32_MAX;
        run_waiting(engine, &left);
        guard_lock(&engine->lock);
        due = left > 0 && timers_are_due(engine) && !shell_has_threads(engine);
        guard_unlock(&engine->lock);
        if (due)
            status = timers_fire_due(engine, scope, is_bounded ? &left : NULL);
    } while (due && !status && engine->options.test_clock);
    run_waiting(engine, &left);
    if (!shell_has_threads(engine) && left > 0)
        engine_sweep(engine);
    look_after_work(engine);
    guard_lock(&engine->lock);
    engine->clock.wakeup_is_stale = true;
    engine_set_wakeup(engine);
    guard_unlock(&engine->lock);
    if (out)
        tell_tick(engine, &before, out);
    return status;
}

/* ---- the descriptor that a host polls ---- */

/* Converts a time by the store's clock to one by the boot clock. */
static int64_t by_boot(struct engine *engine, int64_t at_ms)
{
    int64_t left_ms;

    if (at_ms == WAKEUP_NOW || at_ms == WAKEUP_NEVER)
        return at_ms;
    left_ms = at_ms - clock_at(engine);
    return left_ms > DUE_NEVER_MS ? WAKEUP_NEVER : engine->env->boot_ms(engine->env) + left_ms;
}

/* With threads of the engine's own there is nothing for the host to do. A clock that tests move
 * does what is due as it moves: later is never. */
void engine_set_wakeup(struct engine *engine)
{
    int64_t at_ms, boot_ms, wall_ms = engine->clock.next_wall_ms;

    ASSERT_LOCKED(engine);
    if (engine->clock.wakeup.fd < 0)
        return;
    at_ms = shell_has_threads(engine) ? WAKEUP_NEVER : due_at(engine);
    if (engine->options.test_clock && at_ms != WAKEUP_NOW)
        at_ms = WAKEUP_NEVER;
    if (engine->options.test_clock || shell_has_threads(engine))
        wall_ms = WAKEUP_NEVER;
    boot_ms = by_boot(engine, at_ms);
    if (boot_ms != engine->clock.wakeup_boot_ms || wall_ms != engine->clock.wakeup_wall_ms ||
        engine->clock.wakeup_is_stale)
        env_wakeup_set(engine->env, &engine->clock.wakeup, boot_ms, wall_ms);
    engine->clock.wakeup_boot_ms = boot_ms;
    engine->clock.wakeup_wall_ms = wall_ms;
    engine->clock.wakeup_is_stale = false;
}

int engine_wakeup_fd(struct engine *engine)
{
    int fd;

    guard_lock(&engine->lock);
    if (engine->clock.wakeup.fd < 0 && env_wakeup_new(&engine->clock.wakeup)) {
        engine->clock.wakeup_boot_ms = engine->clock.wakeup_wall_ms = WAKEUP_NEVER;
        engine_set_wakeup(engine);
    }
    fd = engine->clock.wakeup.fd;
    guard_unlock(&engine->lock);
    return fd;
}
