/* handler.c - the plain interface under pawl_code.h: every result, and every event (E3, E4, E5). */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>

static const char *const names[] = { "wake", NULL }, *const calls[] = { "add", NULL };
static const char *const externals[] = { "ask", NULL }, *const children[] = { "leaf", NULL };
static const char *const phases[] = { "first", "second", NULL };

static void leaf_handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    if (strstr(event->payload, "fail"))
        pawl_turn_fail(turn, "{\"leaf\":1}"); /* Fail */
    else
        pawl_turn_complete(turn, event->payload); /* Complete */
}

struct walk {
    char trace[512], child[32];
    int64_t step;
};

static const pawl_var vars[] = { PAWL_VAR(struct walk, trace, PAWL_VAR_TEXT),
                                 PAWL_VAR(struct walk, child, PAWL_VAR_TEXT),
                                 PAWL_VAR(struct walk, step, PAWL_VAR_INT64),
                                 { 0 } };

/* One of each result, in turn; each event is written down. */
static void walk_handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    static const char *const kinds[] = { "",     "start",      "timer", "signal",
                                         "call", "call-failed", "child", "child-failed" };
    struct walk *self = state;
    size_t used = strlen(self->trace);

    (void)context;
    snprintf(self->trace + used, sizeof self->trace - used, "%s %s %s; ", kinds[event->kind],
             event->name ? event->name : "-", event->payload);
    EXPECT(!event->child_id == (event->kind < PAWL_EVENT_CHILD));
    if (event->child_id)
        snprintf(self->child, sizeof self->child, "%s", event->child_id);
    EXPECT(self->step == 0 ? event->phase == NULL : strcmp(event->phase, phases[1]) == 0);
    pawl_turn_phase(turn, "second");
    switch (self->step++) {
    case 0: /* Suspend */
        pawl_turn_timer(turn, "wake", PAWL_SECS(1));
        pawl_turn_signal(turn, "wake");
        break;
    case 1:
        pawl_turn_signal(turn, "wake");
        break;
    case 2: /* CallProcedure */
        pawl_turn_call(turn, "add", "[1,2]");
        break;
    case 3:
    case 4:
        pawl_turn_call(turn, "ask", NULL);
        break;
    case 5: /* SpawnChild */
        pawl_turn_spawn(turn, "leaf", "\"well\"", false);
        break;
    case 6:
        pawl_turn_spawn(turn, "leaf", "\"fail\"", false);
        break;
    default:
        pawl_turn_complete(turn, NULL);
    }
}

static void add(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    EXPECT_TEXT(call->args, "[1,2]");
    pawl_answer_result(answer, "3");
}

TEST(handler, every_result_leads_to_its_event)
{
    pawl_kit kit;
    const char *id;
    char child[64];
    const pawl_code_type leaf = { .name = "leaf", .handle = leaf_handle };
    const pawl_code_type walk = { .name = "walk",
                                  .timers = names,
                                  .signals = names,
                                  .calls = calls,
                                  .externals = externals,
                                  .children = children,
                                  .phases = phases,
                                  .vars = vars,
                                  .state_size = sizeof(struct walk),
                                  .handle = walk_handle };

    pawl_kit_open(&kit, NULL);
    pawl_kit_register(&kit, &leaf);
    pawl_kit_register(&kit, &walk);
    PAWL_EXPECT_OK(&kit, pawl_tool_register(kit.p, "add", add, NULL, &kit.error));
    id = pawl_kit_start(&kit, "walk", "[]");
    pawl_kit_advance(&kit, PAWL_MS(999)); /* E21: durations in milliseconds and seconds */
    PAWL_EXPECT_HISTORY(&kit, id, "start");
    pawl_kit_advance(&kit, PAWL_MS(1));
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "wake", "{\"a\": 1}"));
    pawl_kit_advance(&kit, 0);
    PAWL_EXPECT_OK(&kit, pawl_kit_answer(&kit, id, "7", NULL));
    PAWL_EXPECT_OK(&kit, pawl_kit_answer(&kit, id, NULL, "\"no\""));
    pawl_kit_advance(&kit, 0);
    PAWL_EXPECT_STATE(&kit, id, "completed");
    PAWL_EXPECT_VARIABLE(&kit, id, "trace",
                         "\"start - []; timer wake null; signal wake {\\\"a\\\": 1}; call add 3; "
                         "call ask 7; call-failed ask \\\"no\\\"; child leaf \\\"well\\\"; "
                         "child-failed leaf {\\\"leaf\\\":1}; \"");
    snprintf(child, sizeof child, "%s", pawl_kit_member(&kit, "instance.variables", id, "child"));
    child[strlen(child) - 1] = '\0'; /* its quotes */
    PAWL_EXPECT_ERROR(&kit, child + 1, "{\"leaf\":1}"); /* E5: it is told which one has ended */
    pawl_kit_close(&kit);
}

static void undeclared(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    ((void (*)(pawl_turn *))context)(turn);
}

static void call_unknown(pawl_turn *turn)
{
    pawl_turn_call(turn, "sub", NULL);
}

static void spawn_unknown(pawl_turn *turn)
{
    pawl_turn_spawn(turn, "twig", NULL, false);
}

static void wait_nowhere(pawl_turn *turn)
{
    pawl_turn_signal(turn, "wake");
    pawl_turn_phase(turn, "third");
}

static void call_two(pawl_turn *turn)
{
    pawl_turn_call(turn, "add", NULL);
    pawl_turn_call(turn, "ask", NULL);
}

static void subscribe_unknown(pawl_turn *turn)
{
    pawl_turn_subscribe(turn, "sleep", "1");
}

static void pass_no_json(pawl_turn *turn)
{
    pawl_turn_call(turn, "add", "{");
}

/* Subscribes once, and names no place that it waits at. */
static void follow(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    if (event->kind == PAWL_EVENT_START) {
        pawl_turn_subscribe(turn, "wake", "1");
        pawl_turn_subscribe(turn, "wake", "2");
    }
    pawl_turn_signal(turn, "wake");
}

TEST(handler, a_subscription_lasts_without_places_too)
{
    const pawl_code_type type = { .name = "follower", .signals = names, .handle = follow };
    static const char *const filters[] = { "1", "2", "1", "3" };
    pawl_kit kit;
    char input[64], *out;

    pawl_kit_open(&kit, NULL);
    pawl_kit_register(&kit, &type);
    (void)pawl_kit_start(&kit, "follower", NULL);
    for (int i = 0; i < 4; i++) {
        snprintf(input, sizeof input, "{\"name\":\"wake\",\"filter\":%s}", filters[i]);
        PAWL_EXPECT_OK(&kit, pawl_call(kit.p, "signal.broadcast", input, &out, &kit.error));
        EXPECT_TEXT(out, i < 3 ? "{\"delivered\":1}" : "{\"delivered\":0}");
        pawl_free(kit.p, out);
    }
    pawl_kit_close(&kit);
}

TEST(handler, what_a_type_does_not_declare_pauses_the_instance_in_words)
{
    static const struct {
        void (*act)(pawl_turn *turn);
        const char *words;
    } rows[] = {
        { call_unknown, "called 'sub', which its type does not declare" },
        { spawn_unknown, "spawned 'twig', which its type does not declare" },
        { wait_nowhere, "waits at 'third', a place its type does not declare" },
        { call_two, "called two things in one turn" },
        { subscribe_unknown, "subscribed to 'sleep', which its type does not declare" },
        { pass_no_json, "the handler's arguments is not JSON" },
    };
    pawl_kit kit;

    pawl_kit_open(&kit, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const pawl_code_type type = { .name = "odd",
                                      .signals = names,
                                      .calls = calls,
                                      .externals = externals,
                                      .children = children,
                                      .phases = phases,
                                      .handle = undeclared,
                                      .context = (void *)(uintptr_t)rows[i].act };
        const char *id;

        pawl_kit_register(&kit, &type);
        id = pawl_kit_start(&kit, "odd", NULL);
        PAWL_EXPECT_STATE(&kit, id, "running");
        EXPECT_HAS(pawl_kit_member(&kit, "instance.get", id, "pause"), rows[i].words);
    }
    pawl_kit_close(&kit);
}
