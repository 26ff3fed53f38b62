/* flow_kept.c - a memory keeps small results and errors; large ones stay in their entries, and are
 * read there. */
#include "base/limits.h"
#include "flow_rig.h"
#include <stdio.h>

#define LARGE 900000

/* {"id":ID,"big":"xxx..."} */
static const char *large(struct test *t, const char *id)
{
    char *text = arena_alloc(&t->scope.arena, LARGE + 64);
    int size = snprintf(text, 64, "{\"id\":\"%s\",\"big\":\"", id);

    memset(text + size, 'x', LARGE);
    memcpy(text + size + LARGE, "\"}", 3);
    return text;
}

/* [0,0,0,...]: a node for every two bytes. */
static const char *dense(struct test *t, size_t size)
{
    char *text = arena_alloc(&t->scope.arena, size + 1);

    for (size_t i = 0; i < size; i++)
        text[i] = i % 2 ? '0' : ',';
    text[0] = '[';
    text[size - 1] = ']';
    return text;
}

static const char *args_of(struct rig *rig, uint32_t ordinal)
{
    struct flow_call call = { 0 };

    EXPECT_OK(flow_call(rig->definition, rig->memory, ordinal, rig->scope, &call));
    return call.args.data;
}

TEST(kept, a_large_result_stays_in_its_entry_and_templates_read_it_there)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "name: f\nsteps:\n  start: {name: a, tool: t, next: b}\n"
             "  b: {tool: t, args: {id: '{{steps.a.result.id}}', none: '{{steps.a.result.no}}'}, "
             "next: c}\n"
             "  c: {tool: t, args: {id: '{{steps.a.result.id}}{{steps.b.result}}'}, done: true}\n"
             "output: '{{steps.a.result.id}}'\n",
             NULL);
    rig_attach(&rig);
    rig_begin(&rig);
    rig_run(&rig, 1, large(t, "first"));
    EXPECT_STR(rig_print(&rig), "{\"ordinal\":2,\"live\":[[1,2,1,2,\"ready\",false]],"
                                "\"results\":[[0,null,3]],\"done\":[[0,3]]}");
    EXPECT_TEXT(args_of(&rig, 2), "{\"id\":\"first\",\"none\":\"\"}");
    EXPECT_EQ(rig.read_count, 1);
    rig_run(&rig, 2, "7");
    EXPECT_HAS(rig_print(&rig).data, "\"results\":[[0,null,3],[1,7]]");
    EXPECT_TEXT(args_of(&rig, 3), "{\"id\":\"first7\"}");
    rig_run(&rig, 3, "1");
    EXPECT_STR(rig.last_payload, "\"first\"");
    rig_fini(&rig);
}

TEST(kept, a_result_that_replaces_another_is_the_one_that_is_read_whatever_their_sizes)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "name: f\nsteps:\n  start: {name: a, tool: t, next: b}\n"
             "  b: {tool: t, args: {id: '{{steps.a.result.id}}'}, next: a}\n",
             NULL);
    rig_attach(&rig);
    rig_begin(&rig);
    for (uint32_t i = 0; i < 6; i++) {
        char id[8], small[24], expected[24];

        snprintf(id, sizeof id, "%u", i);
        snprintf(small, sizeof small, "{\"id\":\"%u\"}", i);
        snprintf(expected, sizeof expected, "{\"id\":\"%u\"}", i);
        rig_run(&rig, 2 * i + 1, i % 2 ? small : large(t, id));
        EXPECT_TEXT(args_of(&rig, 2 * i + 2), expected);
        rig_run(&rig, 2 * i + 2, "1");
    }
    rig_fini(&rig);
}

/* An event with a scope of its own, as the engine gives it; and only its entry lasts. */
static void answer(struct rig *rig, enum event_kind kind, uint32_t ordinal, const char *payload)
{
    struct standing standing = { rig->state, rig->seq, rig->memory };
    struct event event = {
        .kind = kind, .ordinal = ordinal, .is_leased = true, .payload = str_of(payload)
    };
    struct decision decision = { 0 };
    struct scope own;

    scope_init(&own, &heap_libc, 0);
    EXPECT_OK(flow_behavior.decide(rig->definition, &standing, &event, &own, &decision));
    for (uint32_t i = 0; i < decision.count; i++) {
        const struct draft *draft = &decision.drafts[i];
        struct entry_view view = { .seq = (uint32_t)++rig->seq,
                                   .transition = draft->transition,
                                   .step = draft->step,
                                   .ordinal = draft->ordinal,
                                   .attempt = draft->attempt,
                                   .payload = draft->payload,
                                   .effects = &draft->effects };

        rig->payloads[rig->seq] = str_of(draft->payload.data ? payload : NULL);
        rig->state = rig->definition->transitions[draft->transition].to;
        EXPECT_OK(flow_behavior.apply(rig->definition, rig->memory, &view, &own, &rig->arena));
    }
    scope_fini(&own);
}

static size_t args_size(struct rig *rig, uint32_t ordinal)
{
    struct scope own, *lasting = rig->scope;
    size_t size;

    scope_init(&own, &heap_libc, 0);
    rig->scope = &own;
    size = strlen(args_of(rig, ordinal));
    rig->scope = lasting;
    scope_fini(&own);
    return size;
}

/* Issue 14: 180 MB of results, all of them read: whole by the next step, and in part by the last. */
TEST(kept, two_hundred_steps_with_results_of_a_megabyte_each_are_read_whole_and_in_part)
{
    const char *text = large(t, "x");
    struct buf flow;
    struct rig rig;

    buf_init(&flow, &heap_libc, 0);
    buf_str(&flow, STR("{\"steps\":{\"start\":{\"name\":\"s0\",\"tool\":\"t\",\"next\":\"s1\"}"));
    for (int i = 1; i < 200; i++)
        buf_fmt(&flow,
                ",\"s%d\":{\"tool\":\"t\",\"args\":{\"a\":\"{{steps.s%d.result}}\"},\"next\":\"s%d\"}",
                i, i - 1, i + 1);
    buf_str(&flow, STR(",\"s200\":{\"tool\":\"t\",\"done\":true,\"args\":{\"all\":\""));
    for (int i = 0; i < 200; i++)
        buf_fmt(&flow, "{{steps.s%d.result.id}}", i);
    buf_str(&flow, STR("\"}}}}"));
    rig_init(&rig, &t->scope, buf_text(&flow), NULL);
    rig_attach(&rig);
    answer(&rig, EVENT_START, 0, NULL);
    for (uint32_t i = 1; i <= 200; i++) {
        answer(&rig, EVENT_STEP_START, i, NULL);
        answer(&rig, EVENT_STEP_DONE, i, text);
        EXPECT_EQ(args_size(&rig, i + 1),
                  i < 200 ? strlen(text) + strlen("{\"a\":}") : 200 + strlen("{\"all\":\"\"}"));
    }
    EXPECT(rig_print(&rig).size < 16384);
    EXPECT(rig.arena.used < (size_t)1 << 20);
    rig_fini(&rig);
    buf_fini(&flow);
}

TEST(kept, a_large_error_stays_in_its_entry_and_rescue_reads_it_there)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "name: f\ntry: [{name: a, action: t, payload: {}}]\n"
             "rescue: [{name: r, action: t, payload: {e: '{{context.exec/last-error.id}}'}}]\n"
             "finally: [{name: z, action: t, payload: {e: '{{context.exec/last-error.id}}'}}]\n",
             NULL);
    rig_attach(&rig);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 1, large(t, "broken")));
    EXPECT_TEXT(args_of(&rig, 2), "{\"e\":\"broken\"}");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 2, large(t, "worse")));
    EXPECT_TEXT(args_of(&rig, 3), "{\"e\":\"worse\"}");
    rig_run(&rig, 3, "1");
    EXPECT_HAS(rig.last_payload.data, "{\"id\":\"worse\",");
    rig_fini(&rig);
}

TEST(kept, values_of_many_small_ones_pass_templates_contexts_and_conditions)
{
    struct buf input;
    struct rig rig;

    buf_init(&input, &heap_libc, 0);
    buf_fmt(&input, "{\"l\":%s}", dense(t, LARGE + 1));
    rig_init(&rig, &t->scope,
             "name: f\nsteps:\n"
             "  start: {name: a, tool: t, augment: {x: '3', y: '5', z: '7'}, branch: "
             "[{if: result == 1, then: c}, {if: 'result[2] == 0', then: b}]}\n"
             "  b: {tool: t, args: {a: '{{steps.a.result.9}}', i: '{{input.l.8}}', c: "
             "'{{context.y}}'}, branch: [{if: 'input.l[1] == 1 or steps.a.result[1] == 1', then: c}]}\n"
             "  c: {tool: t, done: true}\n",
             buf_text(&input));
    rig_attach(&rig);
    rig_begin(&rig);
    rig_run(&rig, 1, dense(t, LARGE + 1));
    EXPECT_TEXT(args_of(&rig, 2), "{\"a\":0,\"i\":0,\"c\":0}");
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_DONE, 2, "1")); /* two of them are too much for one condition */
    EXPECT_HAS(rig.last_payload.data, "step 'b': condition 1, 'input.l[1] == 1");
    EXPECT_HAS(rig.last_payload.data, "the values that it reads need more than 64 MiB of memory");
    rig_fini(&rig);
    buf_fini(&input);
}

TEST(kept, kept_signals_are_at_most_16_mib_together)
{
    struct event event = { .kind = EVENT_SIGNAL, .name = STR("go") };
    struct rig rig;
    int kept = 0;

    rig_init(&rig, &t->scope,
             "name: f\nsignals: {go: {buffer: true}}\nsteps:\n"
             "  start: {name: a, tool: t, next: b}\n  b: {wait: {signal: go}, done: true}\n",
             NULL);
    rig_begin(&rig);
    event.payload = str_of(large(t, "x"));
    for (pawl_status status = PAWL_OK; status == PAWL_OK; kept += status == PAWL_OK) {
        struct standing standing = { rig.state, rig.seq, rig.memory };
        struct decision decision = { 0 };

        status = flow_behavior.decide(rig.definition, &standing, &event, &t->scope, &decision);
        EXPECT(status == PAWL_OK || status == PAWL_OVERLOADED);
        if (status == PAWL_OK)
            EXPECT_OK(flow_behavior.keep(rig.memory, event.name, event.payload, &t->scope,
                                         &rig.arena));
    }
    EXPECT_EQ(kept, LIMIT_KEPT_TEXT / event.payload.size);
    EXPECT_HAS(t->scope.error.message, "18 signals are kept already and nothing takes them: with "
                                       "this one their payloads would be over 16 MiB");
    rig_fini(&rig);
}
