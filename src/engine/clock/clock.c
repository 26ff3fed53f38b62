/* clock.c - the store's clock, the wall clock, and the clock that tests move.
 *
 * The store's clock stamps every record and drives every duration. It equals the wall clock as long
 * as the wall clock advances like the boot clock, which cannot be set. When the wall clock jumps,
 * the store's clock continues as if there had been no jump: from then on the two are `offset`
 * apart, and a clock record says so. Times shown to people (fired_at, instantiated_at) and absolute
 * times follow the wall clock. A new process has no earlier reading of the boot clock to compare
 * with: only the wall clock says how much time has passed. */
#include "base/time.h"
#include "engine/parts.h"
#include "engine/health.h"
#include <inttypes.h>
#include <stdio.h>

#define READ_AT_ONCE_MS 50 /* readings further apart than this cannot be compared */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool is_jump(int64_t by_ms)
{
    return by_ms > CLOCK_JUMP_MS || by_ms < -CLOCK_JUMP_MS;
}

/* Reads both clocks at one instant: if the thread was descheduled in between, it reads again. */
static void read_both(struct env *env, int64_t *wall_ms, int64_t *boot_ms)
{
    int64_t begun_ms;

    do {
        begun_ms = env->boot_ms(env);
        *wall_ms = env->now_ms(env);
        *boot_ms = env->boot_ms(env);
    } while (*boot_ms - begun_ms > READ_AT_ONCE_MS);
}

/* The store's clock continues from `at_ms`, `offset_ms` away from the wall clock. */
static void continue_from(struct clock *clock, int64_t at_ms, int64_t offset_ms, int64_t boot_ms)
{
    clock->offset_ms = offset_ms;
    clock->at_ms = at_ms;
    clock->base_ms = at_ms - boot_ms;
}

/* Follows small steps of the wall clock. After a small step back the store's clock stands still
 * until the wall clock has caught up. */
static int64_t follow(struct clock *clock, int64_t wall_ms, int64_t boot_ms)
{
    int64_t steady_ms = clock->base_ms + boot_ms;

    if (is_jump(wall_ms + clock->offset_ms - steady_ms)) {
        clock->offset_ms = steady_ms - wall_ms;
        if (!is_jump(clock->offset_ms))
            clock->offset_ms = 0; /* the wall clock has returned */
    }
    clock->at_ms = later(clock->at_ms, wall_ms + clock->offset_ms);
    return clock->at_ms;
}

static struct moment read_real(struct engine *engine)
{
    struct clock *clock = &engine->clock;
    struct moment now;
    int64_t boot_ms;

    guard_lock(&clock->lock);
    read_both(engine->env, &now.wall_ms, &boot_ms);
    now.at_ms = PLANTED(CLOCK_FALLS) ? now.wall_ms : follow(clock, now.wall_ms, boot_ms);
    guard_unlock(&clock->lock);
    return now;
}

struct moment clock_read(struct engine *engine)
{
    int64_t at_ms = engine->clock.test_now_ms;

    ASSERT_LOCKED_OR_DRAINING(engine);
    if (!engine->options.test_clock)
        return read_real(engine);
    if (!PLANTED(CLOCK_FALLS))
        at_ms = later(at_ms, engine->writer.tip.at_ms);
    return (struct moment){ at_ms, at_ms };
}

int64_t clock_wall(struct engine *engine)
{
    return engine->options.test_clock ? engine->clock.test_now_ms : engine->env->now_ms(engine->env);
}

/* What the clock's own lock guards, at one moment. */
struct offsets {
    int64_t offset_ms, tip_offset_ms;
    uint64_t tip_pos;
};

static struct offsets read_offsets(struct engine *engine)
{
    const struct clock *clock = &engine->clock;
    struct offsets out;

    guard_lock(&engine->clock.lock);
    out = (struct offsets){ clock->offset_ms, clock->tip_offset_ms, clock->tip_pos };
    guard_unlock(&engine->clock.lock);
    return out;
}

static bool offset_is_news(struct engine *engine)
{
    struct offsets now = read_offsets(engine);

    return !engine->options.test_clock && now.offset_ms != now.tip_offset_ms;
}

int64_t clock_at(struct engine *engine)
{
    return clock_read(engine).at_ms;
}

struct moment clock_now(struct engine *engine)
{
    struct moment now;

    guard_lock(&engine->lock); /* guards the test clock */
    now = clock_read(engine);
    guard_unlock(&engine->lock);
    return now;
}

int64_t engine_now_ms(struct engine *engine)
{
    return clock_now(engine).at_ms;
}

int64_t engine_wall_ms(struct engine *engine)
{
    return clock_now(engine).wall_ms;
}

int64_t engine_clock_offset_ms(struct engine *engine)
{
    if (engine->options.test_clock)
        return 0;
    read_real(engine);
    return read_offsets(engine).offset_ms;
}

/* ---- When something was fired ---- */

/* Can the wall clock read a time before an instance was created? Not if it never jumped. */
static bool may_be_early(struct engine *engine, const struct moment *now)
{
    return now->wall_ms < now->at_ms || read_offsets(engine).tip_pos || offset_is_news(engine);
}

pawl_status clock_check_fired(struct engine *engine, struct scope *scope,
                              const struct fire_args *args, uint64_t instance,
                              struct moment now)
{
    int64_t fired_at_ms = args->has_fired_at ? args->fired_at_ms : now.wall_ms;
    char text[TIME_TEXT_SIZE], created[TIME_TEXT_SIZE];
    struct instance_row row;
    struct offsets offsets;
    pawl_status status;

    time_print(fired_at_ms, text);
    if (fired_at_ms > now.wall_ms)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "fired_at: %s lies in the future", text);
    if (!args->has_fired_at &&
        (args->is_timer || args->is_cancel || scope->is_alarms || !may_be_early(engine, &now)))
        return PAWL_OK;
    status = store_instance(engine->store, scope, instance, &row);
    if (status == PAWL_NOT_KNOWN) /* created in this very batch: nothing earlier was committed */
        return PAWL_OK;
    if (status || fired_at_ms >= row.instantiated_at_ms || PLANTED(FIRED_TOO_EARLY))
        return status;
    if (args->has_fired_at)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "fired_at: %s is before the instance was created", text);
    /* Was it created under a clock that was ahead and has been corrected since? Then its time of
     * creation is the mistake, and no caller can do anything about it. */
    offsets = read_offsets(engine);
    if (offsets.tip_pos > row.created_pos && offsets.tip_offset_ms == 0 && offsets.offset_ms == 0)
        return PAWL_OK;
    time_print(row.instantiated_at_ms, created);
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "this machine's clock reads %s, before the instance was created at %s; set "
                      "the clock, or stop the server and run `pawl doctor --accept-clock`",
                      text, created);
}

/* The wall clock, but never a time before the instance was created. Timers and workers do not
 * choose the time, so they are not rejected because of it. */
pawl_status clock_fired_at(struct engine *engine, struct scope *scope, uint64_t instance,
                           int64_t *out)
{
    struct instance_row row;
    pawl_status status;

    *out = engine->writer.now.wall_ms;
    if (!may_be_early(engine, &engine->writer.now))
        return PAWL_OK;
    status = store_instance(engine->store, scope, instance, &row);
    if (!status)
        *out = later(*out, row.instantiated_at_ms);
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status; /* created in this very batch */
}

/* ---- What the store knows of it ---- */

/* A store clock that is ahead stamps records with times in the future: operators should know. */
static void report_health(struct engine *engine, int64_t offset_ms)
{
    if (offset_ms > 0)
        health_set(engine, HEALTH_CLOCK_JUMPED,
                   "the store's clock is %" PRId64 " s ahead of this machine's, which was ahead "
                   "once or has been set back; durations are not affected; stop the server and run "
                   "`pawl doctor --accept-clock`",
                   offset_ms / 1000);
    else if (offset_ms < 0)
        health_set(engine, HEALTH_CLOCK_JUMPED,
                   "this machine's clock has jumped and is %" PRId64 " s ahead of the store's; "
                   "durations are not affected; the next start sets the store's clock to it",
                   -offset_ms / 1000);
    else
        health_clear(engine, HEALTH_CLOCK_JUMPED);
}

/* After every change of the tip. Workers ask about jumps without the engine's lock. */
void clock_copy_tip(struct engine *engine)
{
    struct clock *clock = &engine->clock;

    ASSERT_LOCKED(engine);
    guard_lock(&clock->lock);
    clock->tip_pos = engine->writer.tip.clock_pos;
    clock->tip_offset_ms = engine->writer.tip.clock_offset_ms;
    guard_unlock(&clock->lock);
}

/* Another process has written: adopt the offset of its clock record, and do not fall behind the
 * times of its records. */
void clock_follow_tip(struct engine *engine)
{
    struct clock *clock = &engine->clock;
    const struct store_tip *tip = &engine->writer.tip;
    int64_t wall_ms, boot_ms;

    if (engine->options.test_clock)
        return;
    guard_lock(&clock->lock);
    read_both(engine->env, &wall_ms, &boot_ms);
    if (tip->clock_pos > clock->seen_pos) {
        continue_from(clock, later(wall_ms + tip->clock_offset_ms, tip->at_ms),
                      tip->clock_offset_ms, boot_ms);
        clock->seen_pos = tip->clock_pos;
    }
    follow(clock, wall_ms, boot_ms);
    if (is_jump(later(tip->at_ms - clock->at_ms, 0)))
        continue_from(clock, tip->at_ms, tip->at_ms - wall_ms, boot_ms);
    clock->at_ms = later(clock->at_ms, tip->at_ms);
    guard_unlock(&clock->lock);
}

/* An owner's clock follows, as it follows any step of the wall clock; before it owns the store it
 * begins with the right time. */
void engine_correct_clock(struct engine *engine, int64_t by_ms)
{
    struct clock *clock = &engine->clock;
    int64_t wall_ms, boot_ms;

    if (engine->options.test_clock || !engine->env->correct)
        return;
    guard_lock(&clock->lock);
    engine->env->correct(engine->env, by_ms);
    read_both(engine->env, &wall_ms, &boot_ms);
    if (!engine->options.own)
        continue_from(clock, wall_ms + clock->tip_offset_ms, clock->tip_offset_ms, boot_ms);
    guard_unlock(&clock->lock);
}

struct clock_mark engine_clock_mark(struct engine *engine)
{
    struct clock_mark mark;

    guard_lock(&engine->clock.lock);
    mark = (struct clock_mark){ !engine->options.test_clock, engine->clock.base_ms,
                                engine->clock.tip_pos };
    guard_unlock(&engine->clock.lock);
    return mark;
}

/* If there is no clock record since the mark was made, the store's clock has continued with the
 * boot clock. follow() decides whether the wall clock has jumped meanwhile. */
static bool continue_from_mark(struct engine *engine, int64_t wall_ms, int64_t boot_ms)
{
    const struct clock_mark *mark = &engine->options.clock;
    struct clock *clock = &engine->clock;
    const struct store_tip *tip = &engine->writer.tip;

    if (!mark->is_set || mark->clock_pos != tip->clock_pos)
        return false;
    continue_from(clock, later(mark->base_ms + boot_ms, tip->at_ms), tip->clock_offset_ms, boot_ms);
    follow(clock, wall_ms, boot_ms);
    return true;
}

/* The wall clock decides how much time has passed since the last record. A wall clock that went
 * back counts as a jump: the store's clock never goes back. */
void clock_start(struct engine *engine)
{
    struct clock *clock = &engine->clock;
    const struct store_tip *tip = &engine->writer.tip;
    int64_t wall_ms, boot_ms, offset_ms = tip->clock_offset_ms;

    if (engine->options.test_clock) {
        if (engine->options.home) /* the home shard's clock is the store's */
            engine->clock.test_now_ms =
                later(engine->clock.test_now_ms, engine->options.home->clock.test_now_ms);
        if (!engine->clock.test_now_ms) /* no time is recorded */
            engine->clock.test_now_ms = engine->env->now_ms(engine->env);
        return;
    }
    read_both(engine->env, &wall_ms, &boot_ms);
    if (tip->pos && wall_ms + offset_ms < tip->at_ms - CLOCK_JUMP_MS)
        offset_ms = tip->at_ms - wall_ms;
    if (!continue_from_mark(engine, wall_ms, boot_ms))
        continue_from(clock, later(wall_ms + offset_ms, tip->at_ms), offset_ms, boot_ms);
    clock->seen_pos = tip->clock_pos;
    report_health(engine, clock->offset_ms);
}

/* ---- Clock records ---- */

static str print_clock(struct engine *engine, struct scope *scope, int64_t wall_ms,
                       int64_t offset_ms, int64_t shift_ms)
{
    struct buf body;

    buf_init(&body, engine->heap, LIMIT_TEXT);
    json_open(&body, '{');
    json_put_i64(&body, "wall", wall_ms);
    json_put_i64(&body, "offset", offset_ms);
    if (shift_ms)
        json_put_i64(&body, "shift", shift_ms);
    json_close(&body, '}');
    return buf_take(&body, &scope->arena);
}

static str print_test(struct engine *engine, struct scope *scope, int64_t now_ms)
{
    struct buf body;

    buf_init(&body, engine->heap, LIMIT_TEXT);
    json_open(&body, '{');
    json_put_i64(&body, "test_now", now_ms);
    json_close(&body, '}');
    return buf_take(&body, &scope->arena);
}

static pawl_status add_record(struct engine *engine, struct scope *scope, int64_t at_ms, str body,
                              const char *id, int64_t value)
{
    struct standing_row row = { .what = CONTROL_CLOCK, .id = str_of(id), .due_at_ms = value };

    TRY_MEMORY(scope, body.data);
    TRY(standing_room(engine, scope));
    TRY(batch_store_record(engine, scope, CONTROL_CLOCK, at_ms, body, STR_NONE, NULL));
    return batch_add_standing(engine, scope, row, true);
}

static bool test_is_news(const struct engine *engine)
{
    return engine->writer.tip.test_is_old || (engine->options.test_clock && !engine->writer.tip.test_now_ms);
}

bool clock_has_news(struct engine *engine)
{
    ASSERT_LOCKED_OR_DRAINING(engine);
    clock_read(engine);
    return test_is_news(engine) || offset_is_news(engine);
}

/* After the records of a commit: adds clock records for what the store does not know
 * yet. */
pawl_status clock_note(struct engine *engine, const struct moment *now)
{
    struct scope *scope = &engine->writer.scope;
    int64_t test_ms = engine->writer.tip.test_is_old ? engine->writer.tip.test_now_ms : engine->clock.test_now_ms;
    int64_t offset_ms;

    if (test_is_news(engine))
        TRY(add_record(engine, scope, now->at_ms, print_test(engine, scope, test_ms), CLOCK_TEST,
                       test_ms));
    if (!offset_is_news(engine))
        return PAWL_OK;
    offset_ms = read_offsets(engine).offset_ms;
    return add_record(engine, scope, now->at_ms,
                      print_clock(engine, scope, now->wall_ms, offset_ms, 0), CLOCK_WALL,
                      offset_ms);
}

/* Makes a commit that holds clock records only. */
static pawl_status drain_keep(struct engine *engine, struct request *request, int64_t at_ms)
{
    int64_t test_ms = engine->clock.test_now_ms;

    ASSERT_DRAINING(engine);
    if (request->context && engine->options.test_clock)
        TRY(add_record(engine, request->scope, at_ms, print_test(engine, request->scope, test_ms),
                       CLOCK_TEST, test_ms));
    else if (clock_has_news(engine))
        TRY(clock_note(engine, &engine->writer.now));
    request->accepted = true;
    return PAWL_OK;
}

/* Records an offset that the store does not know yet. Called by an owner, soon after a jump. */
pawl_status clock_keep(struct engine *engine, struct scope *scope)
{
    struct request request = { .drain = drain_keep, .scope = scope };

    return shell_submit(engine, &request);
}

/* Records the present time of the test clock. */
pawl_status clock_keep_test(struct engine *engine, struct scope *scope)
{
    struct request request = { .drain = drain_keep, .scope = scope, .context = engine };

    return shell_submit(engine, &request);
}

/* ---- Setting it right ---- */

/* From this record on the store's clock equals the wall clock, and every due time by the store's
 * clock moves with it. This is the only record that may be older than the one before it. */
static pawl_status drain_shift(struct engine *engine, struct request *request, int64_t at_ms)
{
    int64_t wall_ms = engine->writer.now.wall_ms, shift_ms = wall_ms - at_ms;

    TRY(add_record(engine, request->scope, wall_ms,
                   print_clock(engine, request->scope, wall_ms, 0, shift_ms), CLOCK_WALL, 0));
    engine->writer.batch.shift_ms = shift_ms;
    request->accepted = true;
    return PAWL_OK;
}

/* After the commit of a shift. */
void clock_shifted(struct engine *engine)
{
    struct clock *clock = &engine->clock;
    int64_t wall_ms, boot_ms;

    ASSERT_LOCKED(engine);
    guard_lock(&clock->lock);
    read_both(engine->env, &wall_ms, &boot_ms);
    continue_from(clock, later(wall_ms, engine->writer.tip.at_ms), 0, boot_ms);
    guard_unlock(&clock->lock);
    engine->clock.next_due_ms = INT64_MIN; /* unknown: ask the store */
}

/* After a commit: report an offset that it recorded, once. */
void clock_committed(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    if (engine->options.test_clock || engine->writer.tip.clock_pos == engine->clock.seen_pos)
        return;
    engine->clock.seen_pos = engine->writer.tip.clock_pos;
    report_health(engine, engine->writer.tip.clock_offset_ms);
}

/* At opening: ends a jump that an earlier process recorded, if the wall clock has passed the last
 * record's time. */
void clock_realign(struct engine *engine, struct scope *scope)
{
    struct request shift = { .drain = drain_shift, .scope = scope };

    if (!engine->options.own || engine->options.test_clock || !engine->writer.tip.clock_offset_ms ||
        engine->clock.offset_ms != engine->writer.tip.clock_offset_ms ||
        engine->env->now_ms(engine->env) < engine->writer.tip.at_ms)
        return;
    if (shell_submit(engine, &shift)) /* the store's clock keeps its offset */
        engine_log(engine, PAWL_LOG_WARN, "clock.kept", scope->error.message);
}

pawl_status engine_accept_clock(struct engine *engine, struct scope *scope, int64_t *ahead_ms)
{
    struct request shift = { .drain = drain_shift, .scope = scope };

    *ahead_ms = engine_clock_offset_ms(engine);
    if (engine->options.test_clock || !engine->options.own)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "only a process that owns the store, without a test clock, can accept "
                          "the clock");
    return *ahead_ms ? shell_submit(engine, &shift) : PAWL_OK;
}
