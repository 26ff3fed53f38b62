/* engine_pause.c - pause and resume, of every kind, on every backend (DESIGN.md, "pause sets a
 * flag"). */
#include "base/limits.h"
#include "base/planted.h"
#include "engine_fixture.h"
#include <stdio.h>
#include <stdlib.h>

#define TRIP                                                                                       \
    "name: trip\nsteps:\n  start: {name: pack, tool: pack, next: fold}\n"                          \
    "  fold: {tool: set, args: {folded: 1}, next: ride}\n"                                         \
    "  ride: {tool: sleep, args: {for: 1m}, next: unpack}\n"                                       \
    "  unpack: {tool: set, args: {got: 1}, done: true}\n"

static pawl_status ask(struct world *world, const char *operation, const char *id,
                       const char *members, const char *part)
{
    char input[256], *out;
    pawl_status status;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"%s}", id, members);
    status = pawl_call(world->p, operation, input, &out, &world->error);
    if (!status)
        EXPECT_HAS(out, part);
    pawl_free(world->p, out);
    return status;
}

static void hold(struct world *world, const char *id)
{
    EXPECT_OK(ask(world, "instance.pause", id, ",\"actor_ref\":\"ann\",\"reason\":\"audit\"",
                  "{\"status\":\"paused\"}"));
}

static void let_go(struct world *world, const char *id, const char *status)
{
    char answer[64];

    snprintf(answer, sizeof answer, "{\"status\":\"%s\"}", status);
    EXPECT_OK(ask(world, "instance.resume", id, "", answer));
}

static void restart(struct world *world, bool own)
{
    world_close(world);
    world->options.own = own;
    world_open(world);
}

WORLD_TEST(pause, a_paused_machine_takes_nothing_but_cancel_also_after_a_restart)
{
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, id, "pay"));
    hold(world, id);
    hold(world, id); /* twice is once */
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(world_fire(world, id, "note"), PAWL_PAUSED);
        EXPECT_EQ(world_fire(world, id, "none"), PAWL_INVALID_TRANSITION);
        EXPECT_EQ(world_fire(world, id, "ship"), PAWL_GUARD_NOT_SATISFIED);
        EXPECT_EQ(pawl_fire(world->p, id,
                            &(pawl_fire_args){ .action = "note", .expected_sequence = 9 }, NULL,
                            &world->error),
                  PAWL_PAUSED); /* before conflict */
        EXPECT_EQ(pawl_signal(world->p, id, "x", NULL, NULL, &world->error), PAWL_PAUSED);
        EXPECT_OK(ask(world, "instance.get", id, "", "\"status\":\"paused\""));
        EXPECT_OK(ask(world, "instance.why", id, "", "{\"kind\":\"pause\",\"name\":\"audit\""));
        world_expect_valid(world);
        restart(world, i % 2 == 1);
    }
    EXPECT_TEXT(world_actions(world, id), "pay");
    let_go(world, id, "suspended");
    let_go(world, id, "suspended");
    EXPECT_OK(world_fire(world, id, "note"));
    world_expect_valid(world);
}

WORLD_TEST(pause, a_paused_instance_of_any_kind_can_be_cancelled_and_is_then_not_held)
{
    static const char *const kinds[] = { "order", "trip", "ticker" };

    world_define(world, ORDER);
    world_define(world, TRIP);
    for (int i = 0; i < 3; i++) {
        const char *id = world_create(world, kinds[i], NULL);

        hold(world, id);
        EXPECT_OK(pawl_cancel(world->p, id, NULL, NULL, NULL, &world->error));
        EXPECT_OK(ask(world, "instance.get", id, "", "\"status\":\"cancelled\""));
        EXPECT_EQ(ask(world, "instance.pause", id, "", ""), PAWL_TERMINAL);
        EXPECT_EQ(ask(world, "instance.resume", id, "", ""), PAWL_TERMINAL);
    }
    world_expect_valid(world);
}

WORLD_TEST(pause, timers_of_a_paused_instance_fire_at_resume_and_not_before)
{
    const char *id = world_create(world, "ticker", NULL);
    const char *other = world_create(world, "ticker", NULL);

    hold(world, id);
    EXPECT_EQ(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error), PAWL_PAUSED);
    world_advance(world, 1500);
    restart(world, true);
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "start");
    EXPECT_TEXT(world_actions(world, other), "start timer");
    let_go(world, id, "suspended");
    EXPECT_EQ(pawl_next_due(world->p), 0);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start timer");
    EXPECT_OK(pawl_signal(world->p, id, "stop", NULL, NULL, &world->error));
    world_expect_valid(world);
}

/* ---- flows ---- */

static struct world *held_in;
static char held_id[27];

static void pack(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    if (held_in && strcmp(call->instance_id, held_id) == 0)
        hold(held_in, held_id); /* while its step runs */
    pawl_answer_result(answer, "1");
}

WORLD_TEST(pause, a_running_step_may_complete_but_starts_nothing)
{
    const char *id;

    EXPECT_OK(pawl_tool_register(world->p, "pack", pack, NULL, &world->error));
    world_define(world, TRIP);
    id = world_create(world, "trip", NULL);
    snprintf(held_id, sizeof held_id, "%s", id);
    held_in = world;
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    held_in = NULL;
    EXPECT_TEXT(world_actions(world, id), "start step.start step.complete");
    restart(world, true);
    world_advance(world, 120000);
    EXPECT_TEXT(world_actions(world, id), "start step.start step.complete");
    EXPECT_OK(ask(world, "instance.get", id, "", "\"status\":\"paused\""));
    let_go(world, id, "running");
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    world_advance(world, 60000);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

WORLD_TEST(pause, what_became_ready_before_a_pause_is_started_at_resume)
{
    const char *id;

    world_define(world, TRIP); /* no tool `pack` yet */
    id = world_create(world, "trip", NULL);
    hold(world, id);
    EXPECT_OK(pawl_tool_register(world->p, "pack", pack, NULL, &world->error));
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start");
    let_go(world, id, "running");
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_HAS(world_actions(world, id), "start step.start step.complete");
    world_advance(world, 60000);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

static void count_call(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    int *calls = context;

    EXPECT_EQ(call->attempt, 1);
    ++*calls;
    pawl_answer_result(answer, "1");
}

WORLD_TEST(pause, what_was_started_and_has_not_begun_is_given_back)
{
    int calls = 0;
    const char *id;

    EXPECT_OK(pawl_tool_register(world->p, "pack", count_call, &calls, &world->error));
    world_define(world, TRIP);
    id = world_create(world, "trip", NULL);
    EXPECT_TEXT(world_actions(world, id), "start step.start");
    hold(world, id);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "start step.start step.retry");
    EXPECT_EQ(calls, 0);
    let_go(world, id, "running");
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_EQ(calls, 1);
    world_advance(world, 60000);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

WORLD_TEST(pause, lists_tell_paused_instances_from_others)
{
    const char *first, *second;
    char *out;

    world_define(world, ORDER);
    first = world_create(world, "order", NULL);
    second = world_create(world, "order", NULL);
    hold(world, first);
    EXPECT_OK(pawl_call(world->p, "instance.list", "{\"status\":\"paused\"}", &out, &world->error));
    EXPECT_HAS(out, first);
    EXPECT(!strstr(out, second));
    pawl_free(world->p, out);
    EXPECT_OK(
        pawl_call(world->p, "instance.list", "{\"status\":\"suspended\"}", &out, &world->error));
    EXPECT_HAS(out, second);
    EXPECT(!strstr(out, first));
    pawl_free(world->p, out);
}

WORLD_TEST(pause, a_repeated_pause_with_a_key_is_answered_as_the_first_time)
{
    const char *id, *key = ",\"idempotency_key\":\"p\"", *other = ",\"idempotency_key\":\"q\"";

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    EXPECT_OK(ask(world, "instance.pause", id, key, "{\"status\":\"paused\"}"));
    EXPECT_OK(ask(world, "instance.pause", id, other, "{\"status\":\"paused\"}")); /* no change */
    let_go(world, id, "suspended");
    EXPECT_OK(ask(world, "instance.pause", id, key, "{\"status\":\"paused\"}"));
    EXPECT_OK(ask(world, "instance.pause", id, other, "{\"status\":\"paused\"}"));
    EXPECT_OK(world_fire(world, id, "pay")); /* neither was done again */
    EXPECT_EQ(ask(world, "instance.resume", id, key, ""), PAWL_CONFLICT);
    world_expect_valid(world);
}

/* ---- Poison ---- */

#define BRANCHES 72 /* of a megabyte each: more than one decision may hold, when it is restored */

/* {"x":1,"much":"xxx..."}: a megabyte; free it. */
static char *make_much(void)
{
    static const char begin[] = "{\"x\":1,\"much\":\"";
    char *much = malloc(1000000 + sizeof begin + 2);

    memcpy(much, begin, sizeof begin - 1);
    memset(much + sizeof begin - 1, 'x', 1000000);
    memcpy(much + sizeof begin - 1 + 1000000, "\"}", 3);
    return much;
}

static void answer_much(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)call;
    pawl_answer_result(answer, context);
}

/* `group`: dopar, or do. An attempt that is lost is tried again. */
static void define_large(struct world *world, const char *group)
{
    struct buf text;

    buf_init(&text, &heap_libc, LIMIT_TEXT);
    buf_fmt(&text, "name: large\ncancel: false\ndo:\n  - %s:\n", group);
    for (int i = 0; i < BRANCHES; i++)
        buf_fmt(&text,
                "    - {action: much, payload: {}, name: k%d, idempotent: true, retry: {max: 9}}\n",
                i);
    buf_fmt(&text, "  - {action: set, payload: {");
    for (int i = 0; i < BRANCHES; i++)
        buf_fmt(&text, "%sk%d: '{{steps.k%d.result.x}}'", i ? ", " : "", i, i);
    buf_fmt(&text, "}}\n%c", 0);
    world_define(world, text.data);
    buf_fini(&text);
}

/* Issue 14: what the results of an instance take together is no limit, in one life or in several. */
TEST(pause_memory, a_flow_with_more_results_than_one_decision_may_hold_completes)
{
    struct world here, *world = &here;
    char *much = make_much();
    const char *id;

    world_begin(world, "memory");
    EXPECT_OK(pawl_tool_register(world->p, "much", answer_much, much, &world->error));
    define_large(world, "dopar");
    id = world_create(world, "large", "{}");
    for (int i = 0; i < 4; i++)
        world_advance(world, 1100);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
    world_end(world);
    free(much);
}

/* Issue 5 section 2, DESIGN.md section 2 (lost and poison): a named reason in `why`, and no end of
 * trying without it; resumed, it is tried once more. A flow that keeps its results in memory, as a
 * planted defect makes it do, comes to such an event. */
TEST(pause_memory, an_event_that_can_never_be_decided_holds_its_instance)
{
    struct world here, *world = &here;
    char *much;
    const char *id;

    if (!planted_is_built())
        return;
    setenv("PAWL_BUG", "RESULTS_WHOLE", 1); /* of this test's process alone */
    much = make_much();
    world_begin(world, "memory");
    EXPECT_OK(pawl_tool_register(world->p, "much", answer_much, much, &world->error));
    define_large(world, "do");
    id = world_create(world, "large", "{}");
    EXPECT_OK(ask(world, "instance.get", id, "", "\"actions\":[],\"can_cancel\":false"));
    EXPECT_EQ(ask(world, "instance.cancel", id, "", ""), PAWL_NO_CANCEL_TRANSITION);
    for (int i = 0; i < 4; i++) /* it meets the limit, rests, and meets it again */
        world_advance(world, 1100);
    EXPECT_OK(ask(world, "instance.why", id, "", "\"kind\":\"pause\",\"name\":\"poison: an event"));
    EXPECT_OK(ask(world, "instance.resume", id, "", "\"status\":\"running\""));
    world_advance(world, 1100); /* tried once more */
    EXPECT_OK(ask(world, "instance.why", id, "", "poison: an event"));
    world_close(world); /* what was counted is forgotten: it is found to be too large again */
    world_open(world);
    EXPECT_OK(ask(world, "instance.resume", id, "", "\"status\":\"running\""));
    EXPECT_OK(pawl_tool_register(world->p, "much", answer_much, much, &world->error));
    for (int i = 0; i < 4; i++)
        world_advance(world, 1100);
    EXPECT_OK(ask(world, "instance.why", id, "", "poison: an event"));
    /* Its definition says `cancel: false`, but a cancel is its only way out now. */
    EXPECT_OK(ask(world, "instance.get", id, "", "\"can_cancel\":true"));
    EXPECT_OK(ask(world, "instance.cancel", id, ",\"reason\":\"too large\"", "cancelled"));
    world_expect_state(world, id, "cancelled");
    unsetenv("PAWL_BUG");
    world_expect_valid(world);
    world_end(world);
    free(much);
}
