/* code_turn.c - what a handler's turn becomes: entries and effects. */
#include "lib/fault.h"
#include "unit/code_fixture.h"
#include <math.h>

TEST(code_turn, starting_gives_the_handler_zeroed_aligned_state_and_the_input)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f,
        (struct event){ EVENT_START, .at_ms = 7, .payload = STR("{\"a\":1}"), .actor = STR("ann") },
        wait_for_all);
    EXPECT_EQ(f.script.kind, PAWL_EVENT_START);
    EXPECT_TEXT(f.script.payload, "{\"a\":1}");
    EXPECT_EQ(f.script.at_ms, 7);
    EXPECT(f.script.aligned);
    EXPECT_EQ(f.decision.count, 1);
    EXPECT_EQ(f.decision.drafts[0].transition, LIFE_T_START);
    EXPECT_STR(f.decision.drafts[0].actor, "ann");
    EXPECT(f.decision.drafts[0].payload.data == NULL);
}

TEST(code_turn, waiting_arms_its_timers_and_awaits_its_signals)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_for_all);
    EXPECT_STR(effects_of(&f, 0),
               "[[\"state\"," ZERO "],[\"arm\",\"tick\",1500,0],[\"arm\","
               "\"expire\",61000,0],[\"await\",\"pay\",0],[\"await\",\"stop\",0]]");
    EXPECT_STR(memory_of(&f), "{\"state\":" ZERO ",\"timers\":[[\"tick\",1500],[\"expire\",61000]],"
                              "\"signals\":[\"pay\",\"stop\"]}");
    EXPECT_EQ(f.standing.state, LIFE_RUNNING);
}

/* E19: count = 0; wait; count += 1; wait; done */
TEST(code_turn, the_example_of_the_seed_takes_three_turns)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_for_all);
    act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 2000 }, count_and_wait);
    EXPECT_STR(memory_of(&f), "{\"state\":" ONE ",\"timers\":[[\"tick\",3000]],\"signals\":[]}");
    act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 3000 }, complete);
    EXPECT_EQ(f.decision.count, 2);
    EXPECT_EQ(f.decision.drafts[1].transition, LIFE_T_FINISH);
    EXPECT_STR(f.decision.drafts[1].payload, "{\"total\": 4.10}");
    EXPECT_EQ(f.standing.state, LIFE_COMPLETED);
    EXPECT_STR(memory_of(&f), "{\"state\":" ONE ",\"timers\":[],\"signals\":[]}");
}

/* E11, E12: the first wins, the others go with it, a re-armed timer has its full duration */
TEST(code_turn, the_first_event_takes_all_other_waits_with_it)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_for_all);
    act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 2000 }, count_and_wait);
    EXPECT_EQ(f.script.kind, PAWL_EVENT_TIMER);
    EXPECT_TEXT(f.script.name, "tick");
    EXPECT_TEXT(f.script.payload, "null");
    EXPECT_EQ(f.decision.drafts[0].transition, LIFE_T_TIMER);
    EXPECT_STR(f.decision.drafts[0].payload, "{\"timer\":\"tick\"}");
    EXPECT_STR(effects_of(&f, 0),
               "[[\"disarm\",\"tick\",0],[\"disarm\",\"expire\",0],[\"leave\",\"pay\",0],"
               "[\"leave\",\"stop\",0],[\"state\"," ONE "],[\"arm\",\"tick\",3000,0]]");
    EXPECT_EQ(decide(&f, (struct event){ EVENT_SIGNAL, .name = STR("pay") }), PAWL_NOT_AWAITING);
    EXPECT_EQ(decide(&f, (struct event){ EVENT_TIMER, .name = STR("expire") }), PAWL_NOT_AWAITING);
}

/* E8 */
TEST(code_turn, a_signal_brings_its_payload_byte_for_byte)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_for_all);
    act(&f,
        (struct event){ EVENT_SIGNAL, .name = STR("pay"), .payload = STR("{\"eur\":  4.10}"),
                        .actor = STR("bob") },
        wait_for_all);
    EXPECT_EQ(f.script.kind, PAWL_EVENT_SIGNAL);
    EXPECT_TEXT(f.script.payload, "{\"eur\":  4.10}");
    EXPECT_EQ(f.decision.drafts[0].transition, LIFE_T_SIGNAL);
    EXPECT_STR(f.decision.drafts[0].payload, "{\"signal\":\"pay\",\"payload\":{\"eur\":  4.10}}");
    EXPECT_STR(f.decision.drafts[0].actor, "bob");
    act(&f, (struct event){ EVENT_SIGNAL, .name = STR("stop") }, complete);
    EXPECT_STR(f.decision.drafts[0].payload, "{\"signal\":\"stop\",\"payload\":null}");
}

TEST(code_turn, variables_that_did_not_change_are_not_written_again)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, count_and_wait);
    act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 5000 }, wait_for_all);
    EXPECT_STR(effects_of(&f, 0),
               "[[\"disarm\",\"tick\",0],[\"arm\",\"tick\",5500,0],[\"arm\","
               "\"expire\",65000,0],[\"await\",\"pay\",0],[\"await\",\"stop\",0]]");
    EXPECT_HAS(memory_of(&f).data, ONE);
}

TEST(code_turn, a_handler_may_complete_or_fail_at_once)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, complete);
    EXPECT_EQ(f.decision.count, 2);
    EXPECT_STR(effects_of(&f, 0), "[[\"state\"," ZERO "]]");
    EXPECT_EQ(f.decision.drafts[1].effects.count, 0);
    EXPECT_EQ(f.standing.state, LIFE_COMPLETED);
    begin(&f, &t->scope);
    act(&f, start, fail);
    EXPECT_EQ(f.decision.drafts[1].transition, LIFE_T_FAIL);
    EXPECT_STR(f.decision.drafts[1].payload, "[\"no money\"]");
    EXPECT_EQ(f.standing.state, LIFE_FAILED);
}

static void wait_and_complete(pawl_turn *turn, void *state, const pawl_event *event)
{
    wait_for_all(turn, state, event);
    pawl_turn_fail(turn, "1");
    pawl_turn_complete(turn, NULL);
}

TEST(code_turn, ending_wins_over_waiting_and_the_last_end_counts)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_and_complete);
    EXPECT_STR(effects_of(&f, 0), "[[\"state\"," ZERO "]]");
    EXPECT_EQ(f.decision.drafts[1].transition, LIFE_T_FINISH);
    EXPECT_STR(f.decision.drafts[1].payload, "null");
}

static void do_nothing(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)turn;
    (void)state;
    (void)event;
}

static void arm_undeclared(pawl_turn *turn, void *state, const pawl_event *event)
{
    wait_for_all(turn, state, event);
    pawl_turn_timer(turn, "to\"ck", 1);
}

static void arm_null(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    pawl_turn_timer(turn, NULL, 1);
}

static void await_undeclared(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    pawl_turn_signal(turn, "tick");
}

static void complete_badly(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    pawl_turn_complete(turn, "{oops");
}

static void fail_badly(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    pawl_turn_fail(turn, "");
}

static void complete_hugely(pawl_turn *turn, void *state, const pawl_event *event)
{
    static char huge[LIMIT_TEXT + 2];

    (void)state;
    (void)event;
    memset(huge, '1', LIMIT_TEXT + 1);
    pawl_turn_complete(turn, huge);
}

static void forget_nul(pawl_turn *turn, void *state, const pawl_event *event)
{
    memset(((struct vars *)state)->name, 'x', sizeof((struct vars *)state)->name);
    wait_for_all(turn, state, event);
}

static void write_latin1(pawl_turn *turn, void *state, const pawl_event *event)
{
    memcpy(((struct vars *)state)->name, "\xE4", 2);
    wait_for_all(turn, state, event);
}

static void divide_by_zero(pawl_turn *turn, void *state, const pawl_event *event)
{
    ((struct vars *)state)->price = (double)INFINITY;
    wait_for_all(turn, state, event);
}

TEST(code_turn, a_turn_that_cannot_stand_holds_the_instance_in_words_and_is_owed)
{
    static const struct {
        void (*act)(pawl_turn *turn, void *state, const pawl_event *event);
        const char *problem;
    } rows[] = {
        { do_nothing, "the handler neither waited nor ended;" },
        { arm_undeclared, "the handler armed the timer 'to\"ck', which its type does not declare;" },
        { arm_null, "the handler armed the timer '', which its type does not declare;" },
        { await_undeclared, "the handler awaited the signal 'tick', which its type does not declare" },
        { complete_badly, "the handler's result is not JSON: line 1, column 2: " },
        { fail_badly, "the handler's error is not JSON: line 1, column 1: " },
        { complete_hugely, "the handler's result has 1048577 bytes" },
        { forget_nul, "the variable 'name' does not end in NUL within its 8 bytes;" },
        { write_latin1, "the variable 'name' is not UTF-8;" },
        { divide_by_zero, "the variable 'price' is not a finite number;" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;

        begin(&f, &t->scope);
        act(&f, start, rows[i].act);
        EXPECT_EQ(f.decision.count, 1);
        EXPECT_HAS(f.decision.hold.data, rows[i].problem);
        EXPECT_HAS(f.decision.hold.data, "the code of 'shop/cart' cannot go on: ");
        EXPECT_STR(f.decision.drafts[0].reason, f.decision.hold.data);
        EXPECT_STR(effects_of(&f, 0), "[[\"arm\",\"~turn\",1000,0]]");
        EXPECT_EQ(f.standing.state, LIFE_RUNNING);
        EXPECT_EQ(decide(&f, (struct event){ EVENT_WAKE, .at_ms = 2000 }), PAWL_PAUSED);
        EXPECT_HAS(t->scope.error.message, rows[i].problem);
        act(&f, (struct event){ EVENT_WAKE, .at_ms = 2000 }, complete);
        EXPECT_EQ(f.script.kind, PAWL_EVENT_START);
        EXPECT_EQ(f.standing.state, LIFE_COMPLETED);
    }
}

TEST(code_turn, the_event_of_a_turn_that_is_owed_is_given_again_as_it_came)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_for_all);
    act(&f, (struct event){ EVENT_SIGNAL, .name = STR("pay"), .payload = STR("{\"eur\":  4.10}") },
        do_nothing);
    EXPECT_STR(f.decision.drafts[0].payload, "{\"signal\":\"pay\",\"payload\":{\"eur\":  4.10}}");
    EXPECT_HAS(memory_of(&f).data, "\"owed\":[3,\"pay\",{\"eur\":  4.10}]");
    act(&f, (struct event){ EVENT_TIMER, .name = STR("~turn"), .at_ms = 2000 }, wait_for_all);
    EXPECT_EQ(f.script.kind, PAWL_EVENT_SIGNAL);
    EXPECT_TEXT(f.script.name, "pay");
    EXPECT_TEXT(f.script.payload, "{\"eur\":  4.10}");
    act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 3000 }, do_nothing);
    EXPECT_HAS(memory_of(&f).data, "\"owed\":[2,\"tick\",null]");
    act(&f, (struct event){ EVENT_WAKE, .at_ms = 4000 }, complete);
    EXPECT_EQ(f.script.kind, PAWL_EVENT_TIMER);
    EXPECT_TEXT(f.script.name, "tick");
}

static void arm_oddly(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    pawl_turn_timer(turn, "tick", 1);
    pawl_turn_timer(turn, "expire", INT64_MAX);
    pawl_turn_timer(turn, "tick", -5);
    pawl_turn_signal(turn, "pay");
    pawl_turn_signal(turn, "pay");
}

TEST(code_turn, a_timer_armed_twice_is_armed_as_said_last_and_never_in_the_past)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, arm_oddly);
    EXPECT_STR(effects_of(&f, 0), "[[\"state\"," ZERO "],[\"arm\",\"tick\",1001,0],[\"arm\","
                                  "\"expire\",9223372036854775807,0],[\"await\",\"pay\",0]]");
}

/* E16 */
TEST(code_turn, what_is_not_awaited_is_refused_with_what_is)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_for_all);
    EXPECT_EQ(decide(&f, (struct event){ EVENT_SIGNAL, .name = STR("play") }), PAWL_NOT_AWAITING);
    EXPECT_TEXT(t->scope.error.message, "no signal 'play' is awaited; awaited now: pay, stop");
    EXPECT_EQ(decide(&f, (struct event){ EVENT_TIMER, .name = STR("tock") }), PAWL_NOT_AWAITING);
    EXPECT_TEXT(t->scope.error.message, "no timer 'tock' is armed; armed now: tick, expire");
    EXPECT_EQ(decide(&f, (struct event){ EVENT_STEP_DONE }), PAWL_LEASE_LOST);
    EXPECT_EQ(decide(&f, (struct event){ EVENT_APPROVE }), PAWL_NOT_AWAITING);
    EXPECT_EQ(decide(&f, start), PAWL_NOT_AWAITING);
    EXPECT_EQ(f.decision.count, 0);
}

/* X6: code can always be cancelled */
TEST(code_turn, cancelling_needs_no_handler_and_works_as_an_action_too)
{
    struct fixture f;

    begin(&f, &t->scope);
    code_bind(f.definition, NULL);
    EXPECT_OK(decide(&f, (struct event){ EVENT_CANCEL, .reason = STR("r") }));
    EXPECT_EQ(f.decision.drafts[0].transition, LIFE_T_CANCEL_CREATED);
    code_bind(f.definition, &f.binding);
    act(&f, start, wait_for_all);
    code_bind(f.definition, NULL);
    EXPECT_OK(decide(&f, (struct event){ EVENT_FIRE, .name = STR("cancel") }));
    EXPECT_EQ(f.decision.drafts[0].transition, LIFE_T_CANCEL);
    EXPECT_OK(decide(&f, (struct event){ EVENT_CANCEL, .reason = STR("r"), .actor = STR("ann") }));
    EXPECT_EQ(f.decision.drafts[0].transition, LIFE_T_CANCEL);
    EXPECT_STR(f.decision.drafts[0].reason, "r");
    EXPECT_OK(apply(&f));
    EXPECT_EQ(f.standing.state, LIFE_CANCELLED);
    EXPECT_STR(memory_of(&f), "{\"state\":" ZERO ",\"timers\":[],\"signals\":[]}");
}

TEST(code_turn, the_engines_transitions_cannot_be_fired_from_outside)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_for_all);
    EXPECT_EQ(decide(&f, (struct event){ EVENT_FIRE, .name = STR("finish") }),
              PAWL_INVALID_TRANSITION);
    EXPECT_TEXT(t->scope.error.message, "no 'finish' from 'running'; legal now: cancel");
}

TEST(code_turn, nothing_happens_after_the_end)
{
    static const enum event_kind kinds[] = { EVENT_START, EVENT_FIRE, EVENT_CANCEL, EVENT_TIMER,
                                             EVENT_SIGNAL };
    static const enum event_kind answers[] = { EVENT_STEP_START, EVENT_STEP_DONE, EVENT_STEP_FAILED,
                                               EVENT_STEP_LOST, EVENT_STEP_TIMEOUT };
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, complete);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        EXPECT_EQ(decide(&f, (struct event){ kinds[i], .name = STR("tick") }), PAWL_TERMINAL);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        EXPECT_EQ(decide(&f, (struct event){ answers[i], .ordinal = 1 }), PAWL_LEASE_LOST);
}

TEST(code_turn, without_its_handler_an_instance_waits_and_says_for_what)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, wait_for_all);
    code_bind(f.definition, NULL);
    EXPECT_EQ(decide(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .is_forced = true }),
              PAWL_NOT_KNOWN);
    EXPECT_TEXT(t->scope.error.message,
                "no handler registered for code type 'shop/cart' in this program");
    EXPECT_EQ(decide(&f, (struct event){ EVENT_SIGNAL, .name = STR("play") }), PAWL_NOT_AWAITING);
}

/* One life under a heap that fails; the first status that is not OK, or OK. */
static pawl_status live(struct fixture *f, struct scope *scope)
{
    struct event signal = { EVENT_SIGNAL, .name = STR("pay"), .payload = STR("{\"a\":[1]}") };
    void *memory = code_behavior.memory_new(f->definition, STR_NONE, &scope->arena);
    pawl_status status;

    if (!memory)
        return scope_no_memory(scope);
    f->scope = scope;
    f->memory = memory;
    f->standing = (struct standing){ .state = LIFE_CREATED, .memory = memory };
    f->script.act = wait_for_all;
    status = decide(f, start);
    if (status == PAWL_OK)
        status = apply(f);
    f->script.act = arm_undeclared;
    if (status == PAWL_OK)
        status = decide(f, signal);
    f->script.act = complete;
    if (status == PAWL_OK)
        status = decide(f, signal);
    if (status == PAWL_OK)
        status = apply(f);
    if (status == PAWL_OK)
        status = load(f, "{\"state\":" ONE ",\"timers\":[[\"tick\",1]],\"signals\":[\"pay\"]}");
    return status;
}

TEST(code_turn, no_memory_is_a_status_wherever_it_strikes)
{
    struct fault_heap fault = { 0 };
    struct fixture f;

    begin(&f, &t->scope);
    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, LIMIT_SCOPE);
        status = live(&f, &scope);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        scope_fini(&scope);
    }
}

TEST(code_turn, a_scope_of_any_size_suffices_or_says_that_it_does_not)
{
    pawl_status status = PAWL_NO_MEMORY;
    struct fixture f;

    begin(&f, &t->scope);
    for (size_t limit = 16; status != PAWL_OK; limit += 16) {
        struct scope scope;

        EXPECT(limit < LIMIT_TEXT);
        scope_init(&scope, &heap_libc, limit);
        status = live(&f, &scope);
        EXPECT(status == PAWL_OK || status == PAWL_NO_MEMORY);
        scope_fini(&scope);
    }
}

/* A late delivery of a timer that was armed again meanwhile: promise (4) of the engine. */
TEST(code_turn, a_timer_that_is_not_due_is_refused_unless_forced)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, (struct event){ EVENT_START, .at_ms = 1000 }, count_and_wait);
    EXPECT_EQ(decide(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 1999 }),
              PAWL_NOT_AWAITING);
    EXPECT_OK(decide(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 2000 }));
    EXPECT_OK(decide(
        &f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 1500, .is_forced = true }));
}
