/* engine_code.c - a C handler through the whole engine. */
#include "base/time.h"
#include "engine/parts.h"
#include "engine_fixture.h"
#include <sqlite3.h>
#include <pawl_turn.h>
#include <stdio.h>

static void expect_get(struct world *world, const char *id, const char *part)
{
    char input[64], *out;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.get", input, &out, &world->error));
    EXPECT_HAS(out, part);
    pawl_free(world->p, out);
}

static void expect_why(struct world *world, const char *id, const char *part)
{
    char input[64], *out;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.why", input, &out, &world->error));
    EXPECT_HAS(out, part);
    pawl_free(world->p, out);
}

WORLD_TEST(code, variables_and_timers_survive_restarts) /* E1, E7 */
{
    const char *id = world_create(world, "ticker", NULL);

    for (int i = 0; i < 5; i++) {
        world_advance(world, 600);
        world_close(world);
        world_open(world);
        world_advance(world, 400);
    }
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, "ann", &world->error));
    world_expect_state(world, id, "completed");
    expect_get(world, id, "\"result\":5");
    world_expect_valid(world);
}

WORLD_TEST(code, the_first_of_timer_and_signal_wins_and_the_other_is_disarmed) /* E11, E12 */
{
    const char *id = world_create(world, "ticker", NULL);

    expect_why(world, id, "\"kind\":\"timer\",\"name\":\"tick\"");
    expect_why(world, id, "\"kind\":\"signal\",\"name\":\"stop\"");
    world_advance(world, 900);
    EXPECT_OK(pawl_signal(world->p, id, "slower", NULL, NULL, &world->error));
    world_advance(world, 1999); /* the tick of the first second is gone; two seconds anew */
    EXPECT_TEXT(world_actions(world, id), "start signal");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "start signal timer");
    world_expect_valid(world);
}

WORLD_TEST(code, a_signal_that_nothing_awaits_is_refused_by_name) /* E16 */
{
    const char *id = world_create(world, "ticker", NULL);

    EXPECT_EQ(pawl_signal(world->p, id, "faster", NULL, NULL, &world->error), PAWL_NOT_AWAITING);
    EXPECT_TEXT(world_actions(world, id), "start");
}

WORLD_TEST(code, cancel_always_works_and_nothing_happens_afterwards) /* E26, X6 */
{
    const char *id = world_create(world, "ticker", NULL);

    EXPECT_OK(pawl_cancel(world->p, id, NULL, NULL, NULL, &world->error));
    world_advance(world, 5000);
    EXPECT_TEXT(world_actions(world, id), "start cancel");
    EXPECT_EQ(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error), PAWL_TERMINAL);
    world_expect_valid(world);
}

WORLD_TEST(code, timers_of_a_test_instance_fire_only_by_hand) /* E25 */
{
    pawl_id id;

    EXPECT_OK(pawl_create(world->p, &(pawl_create_args){ .definition = "ticker", .test = true },
                          &id, &world->error));
    world_advance(world, 60000);
    EXPECT_TEXT(world_actions(world, id.text), "start");
    EXPECT_OK(pawl_test_fire_timer(world->p, id.text, "tick", &world->error));
    EXPECT_TEXT(world_actions(world, id.text), "start timer");
    EXPECT_EQ(pawl_test_fire_timer(world->p, id.text, "tock", &world->error), PAWL_NOT_AWAITING);
}

WORLD_TEST(code, a_hundred_turns_fold_to_the_same_state_after_a_restart)
{
    const char *id = world_create(world, "ticker", NULL);

    for (int i = 0; i < 100; i++)
        world_advance(world, 1000);
    world_close(world);
    world_open(world);
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
    expect_get(world, id, "\"result\":100");
    world_expect_valid(world);
}

/* ---- what a stranger found ---- */

static void wait_a_little(void *context, enum env_point point)
{
    if (point == POINT_BEFORE_BEGIN)
        env_sim_advance(context, 30);
}

/* Promise (4): between deciding and recording time passes; the timer counts from the record. */
TEST(code_sqlite, a_timer_counts_from_the_time_of_the_entry_that_armed_it)
{
    char input[64], *out, until[TIME_TEXT_SIZE];
    pawl_history *history;
    struct world world;
    pawl_entry entry;
    const char *id;

    world_begin(&world, "sqlite");
    world_close(&world);
    world.options.own = false;
    world_open(&world);
    env_sim_on_point(world.env, wait_a_little, world.env);
    id = world_create(&world, "ticker", NULL);
    env_sim_on_point(world.env, NULL, NULL);
    EXPECT_OK(pawl_history_open(world.p, id, NULL, &history, &world.error));
    EXPECT(pawl_history_next(history, &entry));
    EXPECT_OK(pawl_history_close(history, &world.error));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world.p, "instance.why", input, &out, &world.error));
    time_print(entry.fired_at_ms + 1000, until);
    EXPECT_HAS(out, until);
    pawl_free(world.p, out);
    world_end(&world);
}

static void take_long(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    struct env *const *env = context;

    (void)state;
    (void)event;
    env_sim_advance(*env, 30); /* so much later it is recorded */
    pawl_turn_timer(turn, "tick", 1000);
    pawl_turn_signal(turn, "again");
}

/* Promise (4), where a timer that was due is delivered late: it has been armed anew meanwhile. */
TEST(code_sqlite, a_timer_that_was_armed_anew_is_not_fired_before_its_recorded_due_time)
{
    static const char *const timers[] = { "tick", NULL }, *const signals[] = { "again", NULL };
    const struct event tick = { .kind = EVENT_TIMER, .name = STR("tick") };
    struct world world;
    const pawl_code_type slow = { .name = "slow",
                                  .timers = timers,
                                  .signals = signals,
                                  .handle = take_long,
                                  .context = &world.env };
    const char *id;

    world_begin(&world, "sqlite");
    EXPECT_OK(pawl_code_register(world.p, &slow, &world.error));
    id = world_create(&world, "slow", NULL);
    for (int i = 0; i < 2; i++) { /* armed by the start, then by a signal */
        env_sim_advance(world.env, 999);
        EXPECT_EQ(engine_send(world.p->engine, &t->scope, 1, &tick, NULL, NULL, NULL),
                  PAWL_NOT_AWAITING);
        EXPECT_OK(pawl_signal(world.p, id, "again", NULL, NULL, &world.error));
    }
    env_sim_advance(world.env, 1000);
    EXPECT_OK(engine_send(world.p->engine, &t->scope, 1, &tick, NULL, NULL, NULL));
    EXPECT_TEXT(world_actions(&world, id), "start signal signal timer");
    world_expect_valid(&world);
    world_end(&world);
}

static void change_snapshot(const struct world *world)
{
    sqlite3 *db;

    EXPECT(sqlite3_open(world->url + strlen("sqlite:"), &db) == SQLITE_OK);
    EXPECT(sqlite3_exec(
               db, "UPDATE pawl_snapshot SET text = replace(text, '\"ticks\":', '\"ticks\":9')",
               NULL, NULL, NULL) == SQLITE_OK);
    EXPECT(sqlite3_changes(db) == 1);
    sqlite3_close(db);
}

TEST(code_sqlite, a_changed_snapshot_is_named_by_verify_and_never_used)
{
    struct snapshot_row row = { 0 };
    struct verify_report report;
    struct world world;
    uint64_t ticks = 0;
    char result[40];
    const char *id;

    world_begin(&world, "sqlite");
    id = world_create(&world, "ticker", NULL);
    /* Until the last entry is the one it was kept after: no later state hides what it says. */
    while (row.seq != ticks + 1) { /* `start` is the first entry, then one a tick */
        EXPECT(ticks < 1000);
        world_advance(&world, 1000);
        ticks++;
        store_snapshot(engine_store(world.p->engine), &t->scope, 1, &row);
    }
    snprintf(result, sizeof result, "\"result\":%llu", (unsigned long long)ticks);
    world_close(&world);
    change_snapshot(&world);
    world_open(&world);
    EXPECT_OK(verify_run(engine_store(world.p->engine), &world.p->heap,
                         &(struct verify_request){ .flows = &flow_behavior }, &report,
                         &world.error));
    EXPECT(!report.valid);
    EXPECT_HAS(report.what, "snapshot");
    EXPECT_OK(pawl_signal(world.p, id, "stop", NULL, NULL, &world.error));
    expect_get(&world, id, result);
    world_end(&world);
}

static void arm_at_once(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    (void)event;
    pawl_turn_timer(turn, "again", 0);
}

TEST(code_sqlite, a_handler_that_never_rests_keeps_neither_close_nor_run_due_from_ending)
{
    static const char *const timers[] = { "again", NULL };
    const pawl_code_type restless = { .name = "restless", .timers = timers, .handle = arm_at_once };
    struct world world;

    world_begin(&world, "sqlite");
    EXPECT_OK(pawl_code_register(world.p, &restless, &world.error));
    world_create(&world, "restless", NULL);
    world_advance(&world, 5);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    world_close(&world);
    world.options.workers = 2;
    EXPECT_OK(pawl_open(&world.p, world.url, &world.options, &world.error));
    EXPECT_OK(pawl_code_register(world.p, &restless, &world.error));
    pawl_close(world.p);
    world.p = NULL;
    world_end(&world);
}

/* ---- Children of code -------------------------------------------------------------------------- */

static void complete_at_once(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    (void)event;
    pawl_turn_complete(turn, "7");
}

/* A flow whose first entry creates it, and one that comes to it later. */
WORLD_TEST(code, a_type_that_is_put_when_it_is_used_is_put_by_a_spawn_too)
{
    const pawl_code_type offered = { .name = "offered", .handle = complete_at_once };
    struct scope scope;
    const char *id;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    EXPECT_OK(engine_code_offer(world->p->engine, &offered, &scope));
    scope_fini(&scope);
    world_define(world, "name: later\ndo: [{wait: {signal: go}}, {spawn: {definition: offered}}]\n");
    id = world_create(world, "later", "{}");
    EXPECT_OK(pawl_signal(world->p, id, "go", NULL, NULL, &world->error));
    world_advance(world, 1);
    world_expect_state(world, id, "completed");
    world_define(world, "name: at-once\ndo: [{spawn: {definition: offered}}]\n");
    id = world_create(world, "at-once", "{}");
    world_advance(world, 1);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

static void fail_the_first_time(void *context, pawl_turn *turn, void *state,
                                const pawl_event *event)
{
    if ((*(int *)context)++ == 0)
        pawl_turn_fail(turn, "\"no\"");
    else
        complete_at_once(context, turn, state, event);
}

WORLD_TEST(code, a_child_that_is_code_is_run_again_with_its_parent)
{
    int runs = 0;
    const pawl_code_type kid = { .name = "kid", .handle = fail_the_first_time, .context = &runs };
    char input[80], *out;
    const char *id;

    EXPECT_OK(pawl_code_register(world->p, &kid, &world->error));
    world_define(world, "name: parent\ndo: [{spawn: {definition: kid}}]\n");
    id = world_create(world, "parent", "{}");
    world_advance(world, 1);
    world_expect_state(world, id, "failed");
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.redrive", input, &out, &world->error));
    pawl_free(world->p, out);
    world_advance(world, 1);
    EXPECT_OK(pawl_call(world->p, "instance.list",
                        "{\"definition\":\"kid\",\"status\":\"completed\"}", &out, &world->error));
    EXPECT_HAS(out, "\"result\":7");
    pawl_free(world->p, out);
    EXPECT_OK(pawl_call(world->p, "instance.list", "{\"definition\":\"kid\",\"status\":\"failed\"}",
                        &out, &world->error));
    EXPECT_HAS(out, "\"retried_as\":\"");
    pawl_free(world->p, out);
    EXPECT_EQ(runs, 2);
    world_expect_valid(world);
}

static bool count_reduce(void *context, struct sqlite3 *db, const char *args, char *words,
                         size_t size)
{
    (void)db;
    (void)args;
    (void)words;
    (void)size;
    ++*(int *)context;
    return true;
}

static void reduce_and_complete(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    pawl_turn_reduce(turn, "count", "1");
    complete_at_once(context, turn, state, event);
}

TEST(code_sqlite, the_reduce_of_a_child_runs_when_its_parent_is_created_in_a_batch)
{
    const pawl_code_type kid = { .name = "kid", .handle = reduce_and_complete };
    static const char batch[] =
        "{\"text\":\"{\\\"operation\\\":\\\"instance.create\\\",\\\"input\\\":"
        "{\\\"definition\\\":\\\"parent\\\"}}\\n{\\\"operation\\\":"
        "\\\"instance.create\\\",\\\"input\\\":{\\\"definition\\\":\\\"parent\\\"}}\\n\"}";
    struct world world;
    int count = 0;
    char *out;

    world_begin(&world, "sqlite");
    EXPECT_OK(pawl_code_register(world.p, &kid, &world.error));
    EXPECT_OK(pawl_reduce_register(world.p, "count", count_reduce, &count, &world.error));
    world_define(&world, "name: parent\ndo: [{spawn: {definition: kid}}]\n");
    EXPECT_OK(pawl_call(world.p, "batch", batch, &out, &world.error));
    EXPECT_HAS(out, "\"status\":201");
    pawl_free(world.p, out);
    EXPECT_EQ(count, 2);
    world_expect_valid(&world);
    world_end(&world);
}

/* ---- A store that fails once ---- */

static struct store_ops failing_ops;
static const struct store_ops *real_ops;
static bool fails_next;

static pawl_status fail_once(struct scope *scope)
{
    fails_next = false;
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "a read that fails once");
}

static pawl_status instance_fails(struct store *store, struct scope *scope,
                                  const struct find_query *query, void *out)
{
    return fails_next && query->kind == FIND_INSTANCE ? fail_once(scope)
                                                      : real_ops->find(store, scope, query, out);
}

static pawl_status instance_logs_fail(struct store *store, struct scope *scope,
                                      struct instance_log_query *queries, uint32_t count)
{
    return fails_next ? fail_once(scope) : real_ops->instance_logs(store, scope, queries, count);
}

static void begin_failing(struct world *world)
{
    struct store *store = engine_store(world->p->engine);

    real_ops = store->ops;
    failing_ops = *real_ops;
    store->ops = &failing_ops;
    fails_next = true;
}

/* It ticks later than the store is tried again. */
static const char *create_slow(struct world *world)
{
    const char *id = world_create(world, "ticker", NULL);

    EXPECT_OK(pawl_signal(world->p, id, "slower", NULL, NULL, &world->error));
    return id;
}

/* A newer build is registered, and one read on the way fails. */
static void expect_renewed(struct world *world, const char *id)
{
    pawl_code_type newer = ticker_type;

    newer.version = 2;
    EXPECT_OK(pawl_code_register(world->p, &newer, &world->error));
    for (int i = 0; i < 5; i++)
        world_advance(world, RETRY_STORE_MS / 3 + 1);
    EXPECT(!fails_next);
    EXPECT_TEXT(world_actions(world, id), "start signal amend");
    engine_store(world->p->engine)->ops = real_ops;
    world_expect_valid(world);
}

WORLD_TEST(code, an_instance_whose_row_could_not_be_read_is_brought_to_the_new_version_all_the_same)
{
    const char *id = create_slow(world);

    begin_failing(world);
    failing_ops.find = instance_fails;
    expect_renewed(world, id);
}

WORLD_TEST(code, an_instance_that_could_not_be_restored_is_brought_to_the_new_version_later)
{
    const char *id = create_slow(world);

    world_close(world);
    world_open(world);
    begin_failing(world);
    failing_ops.instance_logs = instance_logs_fail;
    expect_renewed(world, id);
}
