/* engine_bounds.c - how many entries and live steps an instance may have, on every backend: at the
 * limit the instance is paused with a reason that names it, and nothing is lost. */
#include "engine_fixture.h"
#include <stdio.h>

#define ROUND                                                                                      \
    "name: round\nsteps:\n  start: {name: a, tool: set, args: {x: 1}, next: b}\n"                  \
    "  b: {tool: set, args: {x: 2}, next: start}\n"

#define METER                                                                                      \
    "name: meter\nstates: [on, off]\ninitial_state: on\nterminal_states: [off]\n"                  \
    "terminal_kinds: {off: cancel}\ntransitions:\n"                                               \
    "  - {from_state: on, action: count, to_state: on}\n"                                         \
    "  - {from_state: on, action: stop, to_state: off}\n"

#define ENTRIES_10 "limit: the instance has reached max_entries, 10 entries; cancel it, or raise"
#define STEPS_3    "limit: the instance needs more live steps than max_live_steps, 3; cancel it"

static pawl_status ask(struct world *world, const char *operation, const char *id, const char *part)
{
    char input[128], *out;
    pawl_status status;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    status = pawl_call(world->p, operation, input, &out, &world->error);
    if (!status)
        EXPECT_HAS(out, part);
    pawl_free(world->p, out);
    return status;
}

static unsigned entries(struct world *world, const char *id)
{
    unsigned count = 1;

    for (const char *at = world_actions(world, id); (at = strchr(at, ' ')) != NULL; at++)
        count++;
    return count;
}

static void reopen(struct world *world, bool own, uint32_t max_entries, uint32_t max_live_steps)
{
    world_close(world);
    world->options.own = own;
    world->options.max_entries = max_entries;
    world->options.max_live_steps = max_live_steps;
    world_open(world);
}

static void expect_held(struct world *world, const char *id, const char *reason)
{
    EXPECT_OK(ask(world, "instance.get", id, "\"status\":\"paused\""));
    EXPECT_OK(ask(world, "instance.get", id, "\"actor_ref\":\"pawl/limit\""));
    EXPECT_OK(ask(world, "instance.why", id, reason));
    world_expect_valid(world);
}

/* ---- entries ---- */

WORLD_TEST(bounds, a_flow_that_goes_round_is_held_at_its_bound_and_at_every_resume)
{
    const char *id;
    unsigned held_at;

    reopen(world, true, 10, 0);
    world_define(world, ROUND);
    id = world_create(world, "round", NULL);
    EXPECT_OK(pawl_run_due(world->p, &world->error)); /* else it would never return */
    expect_held(world, id, ENTRIES_10);
    held_at = entries(world, id);
    EXPECT(held_at >= 10 && held_at <= 11);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(ask(world, "instance.resume", id, "{\"status\":\"paused\"}"));
        EXPECT_OK(pawl_run_due(world->p, &world->error));
        expect_held(world, id, ENTRIES_10);
        EXPECT_EQ(entries(world, id), held_at);
        reopen(world, i % 2 == 1, 10, 0);
        expect_held(world, id, ENTRIES_10);
    }
    EXPECT_OK(ask(world, "instance.cancel", id, "cancelled"));
    world_expect_state(world, id, "cancelled");
    world_expect_valid(world);
}

WORLD_TEST(bounds, a_flow_continues_where_it_stopped_once_the_bound_is_raised)
{
    static const char flow[] =
        "name: six\nsteps:\n  start: {name: a, tool: set, args: {a: 1}, next: b}\n"
        "  b: {tool: set, args: {b: 1}, next: c}\n  c: {tool: set, args: {c: 1}, next: d}\n"
        "  d: {tool: set, args: {d: 1}, next: e}\n  e: {tool: set, args: {e: 1}, next: f}\n"
        "  f: {tool: set, args: {f: 1}, done: true}\n";
    const char *id;

    for (uint32_t most = 1; most < 12; most++) {
        reopen(world, true, most, 0);
        world_define(world, flow);
        id = world_create(world, "six", NULL);
        EXPECT_OK(pawl_run_due(world->p, &world->error));
        EXPECT_OK(ask(world, "instance.get", id, "\"status\":\"paused\""));
        EXPECT(entries(world, id) <= most + 1);
        reopen(world, true, 0, 0);
        EXPECT_OK(ask(world, "instance.resume", id, "{\"status\":\"running\"}"));
        EXPECT_OK(pawl_run_due(world->p, &world->error));
        world_expect_state(world, id, "completed");
        EXPECT_EQ(entries(world, id), 14);
    }
    world_expect_valid(world);
}

WORLD_TEST(bounds, a_fire_of_a_machine_at_its_bound_is_refused_with_the_reason)
{
    static const bool owns[] = { true, false };

    for (int i = 0; i < 2; i++) {
        const char *id;

        reopen(world, owns[i], 10, 0);
        world_define(world, METER);
        id = world_create(world, "meter", NULL);
        for (int n = 0; n < 10; n++)
            EXPECT_OK(world_fire(world, id, "count"));
        EXPECT_EQ(world_fire(world, id, "none"), PAWL_INVALID_TRANSITION);
        EXPECT_OK(ask(world, "instance.get", id, "\"status\":\"suspended\""));
        EXPECT_EQ(world_fire(world, id, "count"), PAWL_PAUSED);
        EXPECT_HAS(world->error.message, ENTRIES_10);
        expect_held(world, id, ENTRIES_10);
        EXPECT_EQ(world_fire(world, id, "count"), PAWL_PAUSED);
        EXPECT_OK(ask(world, "instance.resume", id, "{\"status\":\"paused\"}"));
        expect_held(world, id, ENTRIES_10);
        reopen(world, owns[i], 11, 0);
        EXPECT_EQ(world_fire(world, id, "count"), PAWL_PAUSED);
        EXPECT_OK(ask(world, "instance.resume", id, "{\"status\":\"suspended\"}"));
        EXPECT_OK(world_fire(world, id, "count"));
        EXPECT_EQ(world_fire(world, id, "count"), PAWL_PAUSED);
        EXPECT_OK(pawl_cancel(world->p, id, NULL, NULL, NULL, &world->error));
        world_expect_state(world, id, "off");
        world_expect_valid(world);
    }
}

WORLD_TEST(bounds, a_code_instance_is_held_at_its_bound_and_its_timer_fires_later)
{
    const char *id;

    reopen(world, true, 3, 0);
    id = world_create(world, "ticker", NULL);
    for (int i = 0; i < 4; i++)
        world_advance(world, 1500);
    EXPECT_TEXT(world_actions(world, id), "start timer timer");
    expect_held(world, id, "max_entries, 3 entries");
    EXPECT_EQ(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error), PAWL_PAUSED);
    reopen(world, true, 0, 0);
    world_advance(world, 1500);
    EXPECT_TEXT(world_actions(world, id), "start timer timer");
    EXPECT_OK(ask(world, "instance.resume", id, "{\"status\":\"suspended\"}"));
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start timer timer timer");
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
    world_expect_valid(world);
}

/* ---- live steps ---- */

#define PACK(name) "{action: pack, payload: {}, name: " name "}\n"
#define WIDE                                                                                       \
    "name: wide\ndo:\n  - " PACK("first") "  - dopar:\n    - " PACK("a") "    - " PACK("b")        \
    "    - " PACK("c") "    - " PACK("d")

static void pack(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)call;
    ++*(int *)context;
    pawl_answer_result(answer, "1");
}

WORLD_TEST(bounds, a_decision_that_needs_too_many_live_steps_holds_its_instance_and_loses_nothing)
{
    const char *id;
    int calls = 0;

    reopen(world, true, 0, 3);
    EXPECT_OK(pawl_tool_register(world->p, "pack", pack, &calls, &world->error));
    world_define(world, WIDE);
    id = world_create(world, "wide", "{}");
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    expect_held(world, id, STEPS_3);
    EXPECT_TEXT(world_actions(world, id), "start step.start step.complete");
    EXPECT_OK(ask(world, "instance.resume", id, "{\"status\":\"paused\"}"));
    expect_held(world, id, STEPS_3);
    EXPECT_EQ(calls, 1);
    reopen(world, true, 0, 4);
    EXPECT_OK(pawl_tool_register(world->p, "pack", pack, &calls, &world->error));
    expect_held(world, id, STEPS_3);
    EXPECT_OK(ask(world, "instance.resume", id, "{\"status\":\"running\"}"));
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    world_expect_state(world, id, "completed");
    EXPECT_EQ(calls, 5);
    world_expect_valid(world);
}

WORLD_TEST(bounds, a_flow_that_would_begin_with_too_many_live_steps_is_not_created)
{
    pawl_id id;

    reopen(world, true, 0, 1);
    world_define(world, "name: two\ndo:\n  - dopar:\n    - {action: pack, payload: {}, name: a}\n"
                        "    - {action: pack, payload: {}, name: b}\n");
    EXPECT_EQ(pawl_create(world->p, &(pawl_create_args){ .definition = "two" }, &id, &world->error),
              PAWL_INVALID_REQUEST);
    EXPECT_HAS(world->error.message, "it cannot begin: limit: the instance needs more live steps");
    world_expect_valid(world);
}

/* ---- A batch whose scope is full ---------------------------------------------------------------- */

enum { LINES = 40 };

static size_t count_created(struct world *world)
{
    char *answer;
    size_t count = 0;

    EXPECT_OK(pawl_call(world->p, "instance.list", "{\"limit\":1000}", &answer, &world->error));
    for (const char *at = answer; (at = strstr(at, "\"instance_id\"")) != NULL; at++)
        count++;
    pawl_free(world->p, answer);
    return count;
}

/* How many of it say that they were created, and were. */
static size_t create_within(struct world *world, size_t limit)
{
    static const char machine[] = "{\"states\":[\"a state with a name of some length\"],"
                                  "\"initial_state\":\"a state with a name of some length\","
                                  "\"terminal_states\":[],\"transitions\":[]}";
    struct batch_create creates[LINES] = { 0 };
    size_t before = count_created(world), created = 0;
    struct scope scope;
    pawl_status status;

    for (size_t i = 0; i < LINES; i++)
        creates[i].args.declaration = str_of(machine);
    scope_init(&scope, &heap_libc, limit);
    status = engine_create_batch(world->p->engine, &scope, creates, LINES);
    for (size_t i = 0; i < LINES && status == PAWL_OK; i++)
        created += creates[i].status == PAWL_OK;
    for (size_t i = 0; i < LINES && status == PAWL_OK; i++)
        EXPECT(creates[i].status || creates[i].created.state.size > 30);
    EXPECT_EQ(count_created(world), before + created);
    scope_fini(&scope);
    return created;
}

TEST(bounds, a_creation_of_a_batch_that_is_rejected_for_memory_was_not_made)
{
    struct world world;

    world_begin(&world, "memory");
    for (size_t limit = 8192; create_within(&world, limit) < LINES; limit += 256)
        EXPECT(limit < 1 << 20);
    world_end(&world);
}
