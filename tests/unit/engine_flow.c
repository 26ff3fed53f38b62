/* engine_flow.c - a flow through the whole engine: steps, retries, timers, a death in the
 * middle. Numbers in parentheses are the promises of engine/engine.h. */
#include "engine_fixture.h"
#include "lib/fault.h"
#include <stdio.h>
#include <stdlib.h>

#define THREE                                                                                      \
    "name: three\nsteps:\n"                                                                        \
    "  start: {name: one, tool: set, args: {x: 1}, next: two}\n"                                   \
    "  two: {tool: work, args: {n: \"{{steps.one.result.x}}\"}, next: last,"                       \
    " retry: {max: 3, backoff: [10s, 60s]}, timeout: 30s}\n"                                       \
    "  last: {tool: set, args: {got: \"{{steps.two.result}}\", who: \"{{input.who}}\"}, done: "    \
    "true}\n"

struct work {
    int calls, failures_left;
    char args[64], key[64];
};

static void work_tool(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct work *work = context;

    work->calls++;
    strncpy(work->args, call->args, sizeof work->args - 1);
    strncpy(work->key, call->idempotency_key, sizeof work->key - 1);
    if (work->failures_left-- > 0)
        pawl_answer_error(answer, "\"not yet\"");
    else
        pawl_answer_result(answer, "42");
}

static void add_work(struct world *world, struct work *work)
{
    EXPECT_OK(pawl_tool_register(world->p, "work", work_tool, work, &world->error));
}

static void expect_member(struct world *world, const char *id, const char *part)
{
    char input[64], *out;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.get", input, &out, &world->error));
    EXPECT_HAS(out, part);
    pawl_free(world->p, out);
}

WORLD_TEST(flow, steps_run_in_order_and_the_last_result_is_the_flows)
{
    struct work work = { 0 };
    const char *id;

    add_work(world, &work);
    world_define(world, THREE);
    id = world_create(world, "three", "{\"who\":\"ann\"}");
    world_expect_state(world, id, "running");
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    world_expect_state(world, id, "completed");
    EXPECT_TEXT(world_actions(world, id), "start step.start step.complete step.start step.complete "
                                          "step.start step.complete finish");
    EXPECT_TEXT(work.args, "{\"n\":1}");
    expect_member(world, id, "\"result\":{\"got\":42,\"who\":\"ann\"}");
    expect_member(world, id, "\"status\":\"completed\"");
    world_expect_valid(world);
}

WORLD_TEST(flow, a_failed_step_is_tried_again_after_its_backoff_and_never_before) /* B29, B30 */
{
    struct work work = { .failures_left = 2 };
    const char *id;

    add_work(world, &work);
    world_define(world, THREE);
    id = world_create(world, "three", NULL);
    world_advance(world, 0);
    EXPECT_EQ(work.calls, 1);
    expect_member(world, id, "\"status\":\"suspended\"");
    world_advance(world, 9999);
    EXPECT_EQ(work.calls, 1);
    world_advance(world, 1);
    EXPECT_EQ(work.calls, 2);
    world_close(world);
    world_open(world);
    add_work(world, &work);
    world_advance(world, 59999);
    EXPECT_EQ(work.calls, 2);
    world_advance(world, 1);
    EXPECT_EQ(work.calls, 3);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

WORLD_TEST(flow, the_idempotency_key_is_the_same_over_all_attempts)
{
    struct work work = { .failures_left = 1 };
    char first[64];

    add_work(world, &work);
    world_define(world, THREE);
    world_create(world, "three", NULL);
    world_advance(world, 0);
    memcpy(first, work.key, sizeof first);
    world_advance(world, 10000);
    EXPECT_EQ(work.calls, 2);
    EXPECT_TEXT(work.key, first);
}

WORLD_TEST(flow, a_step_that_never_succeeds_fails_the_flow_with_its_error)
{
    struct work work = { .failures_left = 99 };
    const char *id;

    add_work(world, &work);
    world_define(world, THREE);
    id = world_create(world, "three", NULL);
    for (int i = 0; i < 5; i++)
        world_advance(world, 60000);
    EXPECT_EQ(work.calls, 3);
    world_expect_state(world, id, "failed");
    expect_member(world, id, "\"error\":\"not yet\"");
    world_expect_valid(world);
}

WORLD_TEST(flow, a_sleep_is_a_durable_timer_that_fires_at_its_first_due_time) /* E7, (4) */
{
    const char *id;

    world_define(world, "name: nap\nsteps:\n"
                        "  start: {name: nap, tool: sleep, args: {for: 5m}, next: end}\n"
                        "  end: {tool: set, args: {}, done: true}\n");
    id = world_create(world, "nap", NULL);
    world_advance(world, 3 * 60000);
    world_close(world);
    world_open(world);
    world_advance(world, 2 * 60000 - 1);
    world_expect_state(world, id, "running");
    expect_member(world, id, "\"status\":\"suspended\"");
    world_advance(world, 1);
    world_expect_state(world, id, "completed");
    EXPECT_TEXT(world_actions(world, id), "start timer step.start step.complete finish");
    world_expect_valid(world);
}

static uint64_t count_commits(struct world *world)
{
    struct engine_figures figures;
    uint64_t count = 0;

    engine_figures(world->p->engine, &figures);
    for (int i = 0; i <= HISTOGRAM_BOUNDS; i++)
        count += figures.commit->counts[i];
    return count;
}

/* (4): each has its entry, and its place in the order of due times and ordinals. */
WORLD_TEST(flow, timers_of_one_instance_that_fall_due_together_share_commits)
{
    struct buf text;
    const char *id;
    uint64_t before;

    buf_init(&text, &heap_libc, 0);
    buf_fmt(&text, "name: naps\ndopar:\n");
    for (int i = 0; i < 300; i++)
        buf_fmt(&text, "- {wait: {timer: 5m}}\n");
    world_define(world, buf_text(&text));
    id = world_create(world, "naps", NULL);
    before = count_commits(world);
    world_advance(world, 5 * 60000);
    world_expect_state(world, id, "completed");
    EXPECT(count_commits(world) - before < 60);
    world_expect_valid(world);
    buf_fini(&text);
}

/* (8): the process dies while a tool runs; graph steps are idempotent, so it runs again. */
WORLD_TEST(flow, what_ran_when_its_process_died_is_lost_and_runs_again)
{
    struct work work = { 0 };
    const char *id;

    world_define(world, THREE);
    id = world_create(world, "three", NULL); /* step one is started, and then nothing runs it */
    EXPECT_TEXT(world_actions(world, id), "start step.start");
    world_close(world);
    world_open(world);
    add_work(world, &work);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id),
                "start step.start step.fail step.start step.complete step.start step.complete "
                "step.start step.complete finish");
    world_expect_valid(world);
}

WORLD_TEST(flow, cancel_ends_it_and_a_later_answer_changes_nothing) /* B45 */
{
    const char *id, *before;
    char kept[256];

    world_define(world, THREE);
    id = world_create(world, "three", NULL);
    EXPECT_OK(pawl_cancel(world->p, id, "ann", "no longer needed", NULL, &world->error));
    world_expect_state(world, id, "cancelled");
    before = world_actions(world, id);
    strncpy(kept, before, sizeof kept - 1);
    kept[255] = '\0';
    EXPECT_OK(pawl_run_due(world->p, &world->error)); /* the started tool answers now */
    EXPECT_TEXT(world_actions(world, id), kept);
    EXPECT_EQ(pawl_next_due(world->p), -1);
    world_expect_valid(world);
}

WORLD_TEST(flow, the_engines_own_transitions_cannot_be_fired_from_outside)
{
    const char *id;

    world_define(world, THREE);
    id = world_create(world, "three", NULL);
    EXPECT_EQ(world_fire(world, id, "finish"), PAWL_INVALID_TRANSITION);
    EXPECT_HAS(world->error.message, "legal now: cancel");
    EXPECT_OK(world_fire(world, id, "cancel"));
    world_expect_state(world, id, "cancelled");
}

/* Snapshots: a long history is restored without folding all of it, to the same memory. */
WORLD_TEST(flow, a_flow_that_has_gone_round_many_times_goes_on_after_a_restart)
{
    struct work work = { .failures_left = 400 };
    const char *id;

    add_work(world, &work);
    world_define(world, "name: round\nsteps:\n"
                        "  start: {name: a, tool: work, args: {}, next: b,"
                        " retry: {max: 1000, backoff: [1s]}}\n"
                        "  b: {tool: set, args: {}, done: true}\n");
    id = world_create(world, "round", NULL);
    for (int i = 0; i < 200; i++)
        world_advance(world, 1000);
    world_close(world);
    world_open(world);
    add_work(world, &work);
    for (int i = 0; i < 220; i++)
        world_advance(world, 1000);
    world_expect_state(world, id, "completed");
    EXPECT_EQ(work.calls, 401);
    world_expect_valid(world);
}

WORLD_TEST(flow, a_check_that_decides_again_tells_every_lack_of_memory)
{
    struct work work = { .failures_left = 2 };
    struct fault_heap fault = { 0 };
    struct verify_report report;
    pawl_error error;

    add_work(world, &work);
    world_define(world, "name: again\nsteps:\n"
                        "  start: {name: a, tool: work, args: {}, next: b,"
                        " retry: {max: 3, backoff: [1s]}}\n"
                        "  b: {tool: sleep, args: {for: \"{{input.d}}\"}, done: true}\n");
    world_create(world, "again", "{\"d\":\"1h\"}");
    world_create(world, "again", "{\"d\":17}");
    world_advance(world, 5000);
    FAULT_EACH(fault, FAULT_ONCE)
    {
        pawl_status status =
            verify_run(engine_store(world->p->engine), &fault.heap,
                       &(struct verify_request){ .flows = &flow_behavior }, &report, &error);

        EXPECT(status == (fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK));
        EXPECT(fault.has_failed || report.valid);
    }
}

/* ---- The schema of the input ---- */

#define RESEARCH                                                                                   \
    "name: research\ninput: {type: object, required: [topic], properties: {topic: {type: string}}}\n" \
    "do: [{name: keep, tool: set, args: {about: '{{input.topic}}'}}]\n"

static void expect_input_refused(struct world *world, const char *definition, const char *input,
                                 const char *message)
{
    pawl_create_args args = { .definition = definition, .input = input };
    pawl_id id;

    EXPECT_EQ(pawl_create(world->p, &args, &id, &world->error), PAWL_INVALID_REQUEST);
    EXPECT_TEXT(world->error.message, message);
}

WORLD_TEST(flow, an_input_that_its_schema_does_not_allow_starts_nothing_also_after_a_restart)
{
    world_define(world, RESEARCH);
    world_define(world, "name: parcel\nstates: [a, z]\ninitial_state: a\nterminal_states: [z]\n"
                        "terminal_kinds: {z: success}\ninput: {properties: {kg: {minimum: 1}}}\n"
                        "transitions: [{from_state: a, action: go, to_state: z}]\n");
    for (int round = 0; round < 2; round++) {
        expect_input_refused(world, "research", NULL,
                             "input.topic: expected a string, found nothing");
        expect_input_refused(world, "research", "{\"topic\":7}",
                             "input.topic: expected a string, found a number");
        expect_input_refused(world, "parcel", "{\"kg\":0.5}",
                             "input.kg: expected at least 1, found 0.5");
        (void)world_create(world, "parcel", "{\"kg\":2}");
        (void)world_create(world, "research", "{\"topic\":\"pawls\"}");
        if (strcmp(world->url, "memory:") == 0)
            break;
        world_close(world);
        world_open(world);
    }
    world_expect_valid(world);
}

WORLD_TEST(flow, a_child_whose_input_is_refused_has_failed_and_its_parent_knows_why)
{
    const char *id;

    world_define(world, RESEARCH);
    world_define(world, "name: parent\ndo: [{name: ask, spawn: {definition: research, input: {topic: "
                        "'{{input.n}}'}}}]\n");
    id = world_create(world, "parent", "{\"n\":7}");
    expect_member(world, id, "\"current_state\":\"failed\"");
    EXPECT_TEXT(world_actions(world, id), "start child step.fail fail");
    id = world_create(world, "parent", "{\"n\":\"pawls\"}");
    world_advance(world, 1000);
    expect_member(world, id, "\"current_state\":\"completed\"");
}

/* A dopar of so many of this step, with the input of all of them. */
static const char *begin_many(struct world *world, const char *step, int count, size_t size)
{
    struct buf text, input;
    const char *id;

    buf_init(&text, &heap_libc, 0);
    buf_init(&input, &heap_libc, 0);
    buf_fmt(&text, "name: many%d\ndopar:\n", count);
    for (int i = 0; i < count; i++)
        buf_fmt(&text, "  - {%s}\n", step);
    world_define(world, "name: child\ndo: [{action: set, payload: {}}]\n");
    world_define(world, buf_text(&text));
    buf_byte(&input, '"');
    for (size_t i = 0; i < size; i++)
        buf_byte(&input, 'x');
    buf_byte(&input, '"');
    snprintf(text.data, text.size, "many%d", count);
    id = world_create(world, text.data, buf_text(&input));
    buf_fini(&input);
    buf_fini(&text);
    world_advance(world, 1000);
    return id;
}

static const char *spawn_many(struct world *world, int count, size_t size)
{
    return begin_many(world, "spawn: {definition: child, input: '{{input}}'}", count, size);
}

static const char *await_many(struct world *world, int count, size_t size)
{
    return begin_many(world, "wait: {signal: go, value: '{{input}}'}", count, size);
}

TEST(flow_memory, waits_for_values_of_eight_megabytes_together_begin_together)
{
    struct world world;

    world_begin(&world, "memory");
    expect_member(&world, await_many(&world, 9, 900000), "\"current_state\":\"running\"");
    expect_member(&world, await_many(&world, 9000, 800), "\"current_state\":\"running\"");
    world_expect_valid(&world);
    world_end(&world);
}

static void expect_failed_steps(struct world *world, const char *id, int count, const char *words)
{
    pawl_history *history;
    pawl_entry entry;
    int found = 0;

    EXPECT_OK(pawl_history_open(world->p, id, NULL, &history, &world->error));
    while (pawl_history_next(history, &entry))
        if (strcmp(entry.action, "step.fail") == 0) {
            EXPECT_HAS(entry.payload, words);
            found++;
        }
    EXPECT_OK(pawl_history_close(history, &world->error));
    EXPECT_EQ(found, count);
}

TEST(flow_memory, waits_for_values_of_more_together_fail_by_name)
{
    struct world world;
    const char *id;

    world_begin(&world, "memory");
    id = await_many(&world, 100, 900000);
    expect_failed_steps(&world, id, 91, "the values of waits that begin together: expected at most 8388608 bytes");
    world_expect_valid(&world);
    world_end(&world);
}

TEST(flow_memory, children_whose_inputs_are_eight_megabytes_together_begin_together)
{
    struct world world;

    world_begin(&world, "memory");
    expect_member(&world, spawn_many(&world, 9, 900000), "\"current_state\":\"completed\"");
    expect_member(&world, spawn_many(&world, 400, 20000), "\"current_state\":\"completed\"");
    world_end(&world);
}

TEST(flow_memory, children_whose_inputs_are_more_together_fail_by_name)
{
    struct world world;
    const char *id;

    world_begin(&world, "memory");
    id = spawn_many(&world, 100, 900000);
    expect_member(&world, id, "\"current_state\":\"failed\"");
    expect_member(&world, id, "expected at most 8388608 bytes, found 9");
    world_expect_valid(&world);
    world_end(&world);
}

/* ---- Kept signals ---- */

#define TAKES                                                                                      \
    "name: takes\nsignals: {go: {buffer: true}}\nsteps:\n"                                         \
    "  start: {name: gate, approval: {}, next: wait}\n"                                             \
    "  wait: {wait: {signal: go}, branch: [{if: 'result == 999', then: end},"                       \
    " {if: 'true', then: wait}]}\n"                                                                \
    "  end: {tool: set, args: {}, done: true}\n"

static void approve(struct world *world, const char *id)
{
    char body[80], *answer;

    snprintf(body, sizeof body, "{\"step_id\":\"%s.1\",\"actor_ref\":\"ann\"}", id);
    EXPECT_OK(pawl_call(world->p, "step.approve", body, &answer, &world->error));
    pawl_free(world->p, answer);
}

/* The payloads of the signals that were taken are 0, 1, 2 ... */
static void expect_in_order(struct world *world, const char *id)
{
    pawl_history *history;
    pawl_entry entry;
    int next = 0;

    EXPECT_OK(pawl_history_open(world->p, id, NULL, &history, &world->error));
    while (pawl_history_next(history, &entry))
        if (strcmp(entry.action, "signal") == 0)
            EXPECT_EQ(strtol(entry.payload, NULL, 10), next++);
    EXPECT_OK(pawl_history_close(history, &world->error));
    EXPECT_EQ(next, 1000);
}

WORLD_TEST(flow, a_thousand_kept_signals_are_taken_in_their_order_by_what_waits_for_them)
{
    char payload[16];
    const char *id;

    world_define(world, TAKES);
    id = world_create(world, "takes", "{}");
    for (int i = 0; i < 1000; i++) {
        snprintf(payload, sizeof payload, "%d", i);
        EXPECT_OK(pawl_signal(world->p, id, "go", payload, NULL, &world->error));
    }
    approve(world, id);
    world_advance(world, 1);
    expect_in_order(world, id);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}
