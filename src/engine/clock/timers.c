/* timers.c - fires what is due, in due order: durations by the store's clock, absolute times by the
 * wall clock; and moves the clock of tests.
 *
 * Armed timers are rows; the engine only knows when the next one falls due. A due timer is an
 * event like any other: the commit that handles it takes its row away, so it fires once. */
#include "base/time.h"
#include "engine/parts.h"

#define TIMERS_AT_ONCE   16384u /* each look for more waits for those before it */
#define TIMERS_TOGETHER 128u
#define TIMERS_IN_FLIGHT 1024u /* not yet committed: each has memory of its own */
#define STUCK_PAUSE_MS  1000
#define PAUSE_MAX_MS    1000 /* because the wall clock may be set */

static void note(int64_t *next_ms, int64_t due_at_ms)
{
    if (due_at_ms < *next_ms)
        *next_ms = due_at_ms;
}

/* The thread that fires sleeps until the next due time it knows, for at most a second. It is woken
 * if something falls due before that. */
void timers_note(struct engine *engine, const struct batch *batch)
{
    struct moment now = clock_read(engine);
    int64_t known_ms = engine->clock.next_due_ms, known_wall_ms = engine->clock.next_wall_ms;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < batch->live_count; i++) {
        const struct live_change *live = &batch->live[i];

        if (live->kind == LIVE_TIMER_PUT && !live->timer.test)
            note(live->timer.wall ? &engine->clock.next_wall_ms : &engine->clock.next_due_ms,
                 live->timer.due_at_ms);
    }
    for (uint32_t i = 0; i < batch->standing_count; i++) {
        const struct standing_row *row = &batch->standing[i].row;

        if (row->what == CONTROL_ALARM && batch->standing[i].is_put)
            note(row->wall ? &engine->clock.next_wall_ms : &engine->clock.next_due_ms, row->due_at_ms);
    }
    if ((engine->clock.next_due_ms < known_ms && engine->clock.next_due_ms - PAUSE_MAX_MS < now.at_ms) ||
        (engine->clock.next_wall_ms < known_wall_ms && engine->clock.next_wall_ms - PAUSE_MAX_MS < now.wall_ms))
        shell_changed(engine);
}

/* What an entry that a timer's end makes says of it; data NULL: its name says it. */
static str reason_of(str timer)
{
    if (str_is(timer, "~worker"))
        return STR("no worker took it in time");
    return str_is(timer, "~timeout") ? STR("the step's own timeout ran out") : STR_NONE;
}

static struct mail *mail_of(struct engine *engine, const struct live_timer *timer,
                            struct mail_group *group)
{
    struct event event = { .kind = EVENT_TIMER,
                           .ordinal = timer->ordinal,
                           .due_at_ms = timer->due_at_ms - timer->shift_ms,
                           .reason = reason_of(timer->name),
                           .actor = STR("pawl/timer") };
    struct mail *mail = mail_to(engine, timer->instance, &event);

    if (!mail)
        return NULL;
    mail->group = group;
    mail->may_ride = true;
    mail->event.name = arena_str(&mail->own.arena, timer->name);
    if (mail->event.name.data)
        return mail;
    mail_free(engine, mail);
    return NULL;
}

/* Together, so that instances that are asleep are restored with one look at the store, and share
 * commits; not all at once, so that these are written while the next are decided. */
static void post_some(struct engine *engine, const struct live_timer *due, uint32_t count,
                      struct mail_group *group)
{
    struct mail *mails[TIMERS_TOGETHER];
    uint32_t made = 0;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < count; i++) {
        struct mail *mail = mail_of(engine, &due[i], group);

        if (mail)
            mails[made++] = mail;
        else
            group->refused++;
    }
    group->left += made;
    mail_send_all(engine, mails, made);
}

/* Until no more than so many of them are left. The lock is released meanwhile. */
static void wait_for_most(struct engine *engine, const struct mail_group *group, uint32_t left)
{
    while (group->left > left)
        shell_wait(engine);
}

static void post_timers(struct engine *engine, const struct live_timer *due, uint32_t count,
                        struct mail_group *group)
{
    for (uint32_t i = 0; i < count; i += TIMERS_TOGETHER) {
        uint32_t some = count - i < TIMERS_TOGETHER ? count - i : TIMERS_TOGETHER;

        wait_for_most(engine, group, TIMERS_IN_FLIGHT - TIMERS_TOGETHER);
        post_some(engine, due + i, some, group);
        if (PLANTED(TIMER_TWICE))
            post_some(engine, due + i, some, group);
    }
    wait_for_most(engine, group, 0);
}

/* Why timers stay armed though they are due: said once, when the first of them does. While a
 * program starts its code is still to come. */
static void log_refusal(struct engine *engine, const pawl_error *refusal)
{
    ASSERT_LOCKED(engine);
    if (refusal->status == PAWL_NOT_KNOWN && engine->options.alarms_wait)
        return;
    if (refusal->status && refusal->status != PAWL_PAUSED && refusal->status != PAWL_TERMINAL &&
        refusal->status != PAWL_NOT_AWAITING)
        engine_log(engine, PAWL_LOG_WARN, "timer.refused", refusal->message);
}

struct timers_fired {
    uint32_t count, refused;
    uint32_t late; /* of the refused: another event, such as a resume, took the timer's turn */
};

/* Fires what is due now by one of the clocks, and waits until all of it is decided and
 * committed. */
static pawl_status fire_some(struct engine *engine, struct scope *scope, bool wall, int64_t now_ms,
                             uint32_t most, struct timers_fired *fired)
{
    struct mail_group group = { 0 };
    struct live_timer *due;
    uint32_t left, count;

    TRY(store_due(engine->store, scope, wall, now_ms, most + engine->clock.stuck_timers, &due,
                  &count));
    left = count;
    TRY(deadlines_fire(engine, scope, due, &left, &group.refused));
    guard_lock(&engine->lock);
    post_timers(engine, due, left, &group);
    fired->count += count;
    fired->refused += group.refused;
    fired->late += group.late;
    if (!engine->clock.stuck_timers)
        log_refusal(engine, &group.refusal);
    guard_unlock(&engine->lock);
    return PAWL_OK;
}

/* Fires what is due by either clock, at most `most` each. */
static pawl_status fire_all(struct engine *engine, struct scope *scope, const struct moment *now,
                            uint32_t most, struct timers_fired *fired)
{
    *fired = (struct timers_fired){ 0 };
    TRY(fire_some(engine, scope, false, now->at_ms, most, fired));
    return fire_some(engine, scope, true, now->wall_ms, most, fired);
}

static pawl_status look_ahead_by(struct engine *engine, struct scope *scope, bool wall,
                                 int64_t *out)
{
    struct live_timer *due;
    uint32_t count;

    TRY(store_due(engine->store, scope, wall, INT64_MAX, 1, &due, &count));
    TRY(alarms_next(engine, scope, wall, out));
    if (count)
        note(out, due[0].due_at_ms);
    return PAWL_OK;
}

/* The due time of the first armed timer by each clock, as the store knows it. */
pawl_status timers_look_ahead(struct engine *engine, struct scope *scope)
{
    int64_t next_ms = INT64_MIN, next_wall_ms = INT64_MIN; /* unknown: ask the store again */
    pawl_status status;

    /* What is committed from here on is noted; what was committed before is found. */
    guard_lock(&engine->lock);
    engine->clock.next_due_ms = engine->clock.next_wall_ms = INT64_MAX;
    guard_unlock(&engine->lock);
    status = look_ahead_by(engine, scope, false, &next_ms);
    if (!status)
        status = look_ahead_by(engine, scope, true, &next_wall_ms);
    guard_lock(&engine->lock);
    note(&engine->clock.next_due_ms, status ? INT64_MIN : next_ms);
    note(&engine->clock.next_due_ms, engine->clock.retention_ms);
    note(&engine->clock.next_wall_ms, status ? INT64_MIN : next_wall_ms);
    engine_set_wakeup(engine);
    guard_unlock(&engine->lock);
    return status;
}

/* A timer whose instance cannot take it now (its handler is not in this program, say) stays
 * armed and is tried again a little later; others go on. */
static void note_stuck(struct engine *engine, uint32_t refused)
{
    guard_lock(&engine->lock);
    engine->clock.stuck_timers = refused;
    engine->clock.stuck_until_ms = refused ? engine->env->tick_ms(engine->env) + STUCK_PAUSE_MS : 0;
    guard_unlock(&engine->lock);
}

static void set_busy(struct engine *engine, bool busy)
{
    guard_lock(&engine->lock);
    engine->clock.timers_busy = busy;
    shell_changed(engine);
    guard_unlock(&engine->lock);
}

pawl_status timers_fire_due(struct engine *engine, struct scope *scope, uint32_t *budget)
{
    struct moment now; /* what falls due meanwhile is left to the next call */
    struct timers_fired fired;
    uint32_t held = 0;
    bool is_late = false; /* nothing but late ones: the store is asked once more */
    pawl_status status, alarmed;

    set_busy(engine, true);
    guard_lock(&engine->lock);
    now = clock_read(engine);
    leases_expire(engine);
    quotas_open(engine);
    guard_unlock(&engine->lock);
    alarmed = alarms_fire_due(engine, scope, &now, &held); /* its failure stops no timer */
    renewals_run(engine);
    wakes_run(engine);
    retention_run(engine, &now);
    do {
        uint32_t most = budget && *budget < TIMERS_AT_ONCE ? *budget : TIMERS_AT_ONCE;

        status = fire_all(engine, scope, &now, most, &fired);
        if (budget)
            *budget -= fired.count < *budget ? fired.count : *budget;
        if (!status)
            status = timers_look_ahead(engine, scope);
        if (!status)
            note_stuck(engine, fired.refused + held);
        is_late = !is_late && fired.late > 0 && fired.late == fired.refused;
    } while (!status && (fired.count > fired.refused || is_late) && !engine->stopping &&
             (!budget || *budget > 0));
    set_busy(engine, false);
    return status ? status : alarmed;
}

void timers_look_again(struct engine *engine)
{
    guard_lock(&engine->lock);
    engine->clock.stuck_timers = 0;
    engine->clock.next_due_ms = engine->clock.next_wall_ms = INT64_MIN;
    shell_changed(engine);
    engine_set_wakeup(engine);
    guard_unlock(&engine->lock);
}

/* Converts a due time by the wall clock to the store's clock. */
static int64_t by_store(const struct moment *now, int64_t due_at_ms)
{
    if (due_at_ms == INT64_MAX || due_at_ms <= now->wall_ms)
        return due_at_ms == INT64_MAX ? INT64_MAX : now->at_ms;
    return due_at_ms - now->wall_ms > INT64_MAX - now->at_ms ? INT64_MAX
                                                              : now->at_ms + (due_at_ms - now->wall_ms);
}

/* The next due time of timers and leases; wall clock times converted as the clock stands now. Lock
 * held. */
int64_t timers_next_due(struct engine *engine)
{
    struct moment now = clock_read(engine);
    int64_t left_ms = leases_left_ms(engine), next_ms = engine->clock.next_due_ms;

    ASSERT_LOCKED(engine);
    note(&next_ms, by_store(&now, engine->clock.next_wall_ms));
    if (left_ms != INT64_MAX)
        note(&next_ms, now.at_ms + left_ms);
    return next_ms;
}

bool timers_are_due(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    return renewals_are_due(engine) || wakes_are_due(engine) ||
           (timers_next_due(engine) <= clock_at(engine) &&
            (!engine->clock.stuck_timers || engine->env->tick_ms(engine->env) >= engine->clock.stuck_until_ms));
}

/* How long until there may be something to do: at most a second, because the wall clock may be
 * set, and a clock that tests move says when it does. */
int64_t timers_pause_ms(struct engine *engine)
{
    int64_t now_ms = clock_at(engine);

    if (engine->clock.stuck_timers)
        return STUCK_PAUSE_MS;
    if (engine->options.test_clock || timers_next_due(engine) >= now_ms + PAUSE_MAX_MS)
        return PAUSE_MAX_MS;
    return timers_next_due(engine) > now_ms ? timers_next_due(engine) - now_ms : 1;
}

/* Records a jump soon, even if there is no other commit. The lock is released meanwhile. */
static bool keep_clock(struct engine *engine, struct scope *scope)
{
    ASSERT_LOCKED(engine);
    if (!engine->options.own || !clock_has_news(engine) ||
        engine->env->tick_ms(engine->env) < engine->clock.retry_ms)
        return false;
    engine->clock.retry_ms = engine->env->tick_ms(engine->env) + RETRY_STORE_MS;
    guard_unlock(&engine->lock);
    scope_clear(scope);
    clock_keep(engine, scope);
    guard_lock(&engine->lock);
    return true;
}

static void fire_or_note(struct engine *engine, struct scope *scope)
{
    if (timers_fire_due(engine, scope, NULL)) {
        engine_log(engine, PAWL_LOG_ERROR, "timers.failed", scope->error.message);
        note_stuck(engine, 1);
    }
}

bool timers_work(struct engine *engine, struct scope *scope)
{
    ASSERT_LOCKED(engine);
    if (steps_are_lost(engine)) {
        guard_unlock(&engine->lock);
        recover_ready(engine);
        guard_lock(&engine->lock);
        return true;
    }
    if (keep_clock(engine, scope))
        return true;
    if (engine->clock.timers_busy)
        return false;
    if (!timers_are_due(engine))
        return timers_restore_ahead(engine, scope);
    engine->clock.timers_busy = true; /* from here on: another may move the clock as well */
    guard_unlock(&engine->lock);
    scope_clear(scope);
    fire_or_note(engine, scope);
    guard_lock(&engine->lock);
    return true;
}

/* ---- the clock that tests move ---- */

static bool is_idle(struct engine *engine)
{
    return !engine->writer.first && !engine->writer.drainer && !engine->actors.runnable &&
           !engine->work.ready && !engine->work.ready_lost && !engine->work.jobs_under_way &&
           !engine->actors.mail_under_way && !engine->actors.ended_count &&
           !engine->clock.timers_busy && !renewals_are_due(engine) && !wakes_are_due(engine) &&
           (timers_next_due(engine) > clock_at(engine) || engine->clock.stuck_timers);
}

/* By this thread itself, but for tools: another would have to be woken for each turn. */
static pawl_status settle(struct engine *engine, struct scope *scope)
{
    if (!shell_has_threads(engine))
        return engine_tick(engine, scope, 0, NULL);
    guard_lock(&engine->lock);
    while (family_tell(engine)) /* if the store cannot tell, its news is not waited for */
        continue;
    while (!is_idle(engine))
        if (!engine_work(engine, scope, WORK_WAITING | WORK_TIMERS))
            shell_sleep_for(engine, 5);
    guard_unlock(&engine->lock);
    return PAWL_OK;
}

static void set_clock(struct engine *engine, int64_t now_ms)
{
    guard_lock(&engine->lock);
    engine->clock.test_now_ms = now_ms;
    shell_changed(engine);
    engine_set_wakeup(engine);
    guard_unlock(&engine->lock);
}

struct advance {
    int64_t by_ms;
    uint64_t turns;  /* at most so many looks at what is due */
    bool is_all;     /* the clock is moved all the way, whatever is due */
    str id;          /* no longer than until this instance has ended; data NULL: none */
    int64_t from_ms, target_ms;
    bool is_over;    /* nothing more is due until then */
};

/* What is due now happens, and the clock goes to what is due next, if that is not too late. */
static pawl_status advance_once(struct engine *engine, struct scope *scope, struct advance *advance)
{
    int64_t now_ms = engine_now_ms(engine), next_ms;
    struct definition_slot *slot;
    struct head head;

    TRY(settle(engine, scope));
    if (advance->id.data) {
        TRY(engine_locate(engine, scope, advance->id, &head, &slot));
        advance->is_over = slot->definition->states[head.state].terminal != TERMINAL_NOT;
    }
    if (advance->is_over)
        return PAWL_OK;
    TRY(timers_look_ahead(engine, scope));
    guard_lock(&engine->lock);
    next_ms = timers_next_due(engine);
    guard_unlock(&engine->lock);
    advance->is_over = next_ms > advance->target_ms || engine->clock.stuck_timers;
    if (!advance->is_over)
        set_clock(engine, next_ms > now_ms ? next_ms : now_ms);
    return PAWL_OK;
}

/* Each turn in a scope that is cleared: there may be millions of them. */
static pawl_status take_turns(struct engine *engine, struct scope *turn, struct advance *advance)
{
    for (; advance->turns > 0 && !advance->is_over; advance->turns--) {
        scope_clear(turn);
        TRY(advance_once(engine, turn, advance));
    }
    if (!advance->is_over) /* the clock was moved to what is due: a caller finds it done */
        TRY(settle(engine, turn));
    return PAWL_OK;
}

/* The clock is set by one advance at a time. */
static pawl_status aim(struct engine *engine, struct scope *scope, struct advance *advance)
{
    advance->from_ms = engine_now_ms(engine);
    if (advance->by_ms < 0 || advance->by_ms > TIME_LAST_MS - advance->from_ms)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "by: expected a duration of 0 ms or more that ends before the year "
                          "10000, found %lld ms",
                          (long long)advance->by_ms);
    advance->target_ms = advance->from_ms + advance->by_ms;
    return PAWL_OK;
}

static pawl_status advance_by(struct engine *engine, struct scope *scope, struct advance *advance,
                              int64_t *out_moved_ms)
{
    struct scope turn;
    pawl_status status;

    scope_init(&turn, engine->heap, LIMIT_SCOPE);
    turn.trace = scope->trace;
    shell_begin_advance(engine);
    status = aim(engine, &turn, advance);
    if (!status)
        status = take_turns(engine, &turn, advance);
    if (!status && advance->is_all)
        set_clock(engine, advance->target_ms);
    *out_moved_ms = engine_now_ms(engine) - advance->from_ms;
    shell_end_advance(engine);
    return scope_leave(&turn, scope, status);
}

pawl_status engine_advance_turns(struct engine *engine, struct scope *scope, str id, uint32_t turns,
                                 int64_t most_ms, int64_t *out_moved_ms)
{
    struct advance advance = { .by_ms = most_ms, .turns = turns, .id = id };

    TRY(advance_by(engine, scope, &advance, out_moved_ms));
    return clock_keep_test(engine, scope);
}

pawl_status engine_advance(struct engine *engine, struct scope *scope, int64_t by_ms)
{
    struct advance advance = { .by_ms = by_ms, .turns = UINT64_MAX, .is_all = true };
    int64_t moved_ms;

    if (!engine->options.test_clock)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "the clock of this store is real; open it with the test clock");
    engine_mend(engine);
    TRY(advance_by(engine, scope, &advance, &moved_ms));
    return clock_keep_test(engine, scope);
}

static pawl_status fire_timer_new(struct engine *engine, struct scope *scope, str id, str name,
                                  const uint8_t *key)
{
    struct fire_args fire = { .id = id,
                              .action = name,
                              .actor = STR("pawl/timer"),
                              .is_timer = true,
                              .is_forced = true,
                              .key = key };
    struct live live;
    struct head head;
    struct fired fired;
    struct definition_slot *slot;

    TRY(engine_locate(engine, scope, id, &head, &slot));
    if (!(head.flags & HEAD_TEST))
        return scope_fail(scope, PAWL_NOT_AWAITING,
                          "only timers of test instances are fired by hand");
    if (slot->definition->kind == KIND_MACHINE)
        return engine_fire(engine, scope, &fire, &fired);
    TRY(store_live(engine->store, scope, head.instance, &live));
    for (uint32_t i = 0; i < live.timer_count; i++) {
        struct event event = { .kind = EVENT_TIMER,
                               .ordinal = live.timers[i].ordinal,
                               .name = live.timers[i].name,
                               .is_forced = true,
                               .reason = reason_of(live.timers[i].name),
                               .actor = STR("pawl/timer") };

        if (str_eq(live.timers[i].name, name))
            return engine_send(engine, scope, head.instance, &event, NULL, key, NULL);
    }
    return scope_fail(scope, PAWL_NOT_AWAITING, "no timer '%.*s' is armed", STR_ARG(name));
}

pawl_status engine_fire_timer(struct engine *engine, struct scope *scope, str id, str name,
                              const uint8_t *key)
{
    struct record record;
    pawl_status status = fire_timer_new(engine, scope, id, name, key);

    return keys_explain(engine, scope, key, &status, &record) ? PAWL_OK : status;
}
