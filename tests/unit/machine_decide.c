/* machine_decide.c - what firing and cancelling do, and in which order they are refused. */
#include "base/limits.h"
#include "lib/fault.h"
#include "lib/test.h"
#include "machine/machine.h"

static const char order[] = "states: [new, paid, shipped, dropped, lost]\n"
                            "initial_state: new\n"
                            "terminal_states: [shipped, dropped, lost]\n"
                            "terminal_kinds: {shipped: success, dropped: cancel, lost: failure}\n"
                            "transitions:\n"
                            "- {from_state: new, action: pay, to_state: paid}\n"
                            "- {from_state: new, action: drop, to_state: dropped}\n"
                            "- {from_state: paid, action: ship, to_state: shipped, guard: packed}\n"
                            "- {from_state: paid, action: lose, to_state: lost, guard: searched,"
                            " requires_reason: true}\n"
                            "- {from_state: paid, action: wait, to_state: paid}\n"
                            "- {from_state: paid, action: veto, to_state: dropped, guard: boss}\n";

enum { NEW, PAID, SHIPPED, DROPPED, LOST };

static struct definition *compiled(struct test *t, const char *text)
{
    struct definition *definition;
    struct node *document;

    EXPECT_OK(node_read(&t->scope, str_of(text), &document));
    EXPECT_OK(machine_compile(&t->scope, document, false, NULL, &definition));
    return definition;
}

static pawl_status decide(struct test *t, uint32_t state, struct event event,
                          struct decision *decision)
{
    return machine_behavior.decide(compiled(t, order), &(struct standing){ .state = state }, &event,
                                   &t->scope, decision);
}

static pawl_status fire(struct test *t, uint32_t state, const char *action)
{
    struct decision decision;

    return decide(t, state, (struct event){ EVENT_FIRE, .name = str_of(action) }, &decision);
}

/* D22 */
TEST(machine_decide, a_declared_action_gives_one_entry_with_what_the_caller_said)
{
    struct decision decision = { 0 };
    struct event event = { EVENT_FIRE, .name = STR("pay"), .payload = STR("{\"eur\": 4.10}"),
                           .reason = STR("why not"), .actor = STR("ann") };

    EXPECT_OK(decide(t, NEW, event, &decision));
    EXPECT_EQ(decision.count, 1);
    EXPECT_EQ(decision.drafts[0].transition, 0);
    EXPECT_STR(decision.drafts[0].payload, "{\"eur\": 4.10}");
    EXPECT_STR(decision.drafts[0].reason, "why not");
    EXPECT_STR(decision.drafts[0].actor, "ann");
    EXPECT_EQ(decision.drafts[0].effects.count, 0);
}

TEST(machine_decide, what_was_not_supplied_is_not_recorded)
{
    struct decision decision = { 0 };

    EXPECT_OK(decide(t, NEW, (struct event){ EVENT_FIRE, .name = STR("pay") }, &decision));
    EXPECT(decision.drafts[0].payload.data == NULL);
    EXPECT(decision.drafts[0].reason.data == NULL);
    EXPECT(decision.drafts[0].actor.data == NULL);
}

TEST(machine_decide, an_undeclared_action_is_refused_with_the_legal_ones)
{
    EXPECT_EQ(fire(t, NEW, "ship"), PAWL_INVALID_TRANSITION);
    EXPECT_TEXT(t->scope.error.message, "no 'ship' from 'new'; legal now: pay, drop");
}

/* D13 */
TEST(machine_decide, actions_compare_byte_for_byte)
{
    EXPECT_EQ(fire(t, NEW, "Pay"), PAWL_INVALID_TRANSITION);
    EXPECT_EQ(fire(t, NEW, "pay "), PAWL_INVALID_TRANSITION);
    EXPECT_EQ(fire(t, NEW, "*"), PAWL_INVALID_TRANSITION);
    EXPECT_EQ(fire(t, NEW, ""), PAWL_INVALID_TRANSITION);
}

/* D18: terminal before all, then invalid-transition, reason-required, guard-not-satisfied */
TEST(machine_decide, the_first_refusal_in_order_is_the_answer)
{
    struct decision decision = { 0 };
    struct event event = { EVENT_FIRE, .name = STR("lose") };

    EXPECT_EQ(fire(t, SHIPPED, "ship"), PAWL_TERMINAL);
    EXPECT_EQ(fire(t, SHIPPED, "nonsense"), PAWL_TERMINAL);
    EXPECT_HAS(t->scope.error.message, "'shipped'");
    EXPECT_EQ(fire(t, NEW, "lose"), PAWL_INVALID_TRANSITION);
    EXPECT_EQ(decide(t, PAID, event, &decision), PAWL_REASON_REQUIRED);
    event.reason = STR(" \t\n");
    EXPECT_EQ(decide(t, PAID, event, &decision), PAWL_REASON_REQUIRED);
    event.reason = STR("gone");
    EXPECT_EQ(decide(t, PAID, event, &decision), PAWL_GUARD_NOT_SATISFIED);
    EXPECT_HAS(t->scope.error.message, "'searched'");
    EXPECT_EQ(decision.count, 0);
    event.guard_satisfied = true;
    EXPECT_OK(decide(t, PAID, event, &decision));
    EXPECT(decision.drafts[0].guard);
}

/* D20, D21 */
TEST(machine_decide, a_guard_is_recorded_only_where_one_is_declared)
{
    struct event event = { EVENT_FIRE, .name = STR("wait"), .guard_satisfied = true };
    struct decision decision = { 0 };

    EXPECT_OK(decide(t, PAID, event, &decision));
    EXPECT(!decision.drafts[0].guard);
    event.name = STR("ship");
    EXPECT_OK(decide(t, PAID, event, &decision));
    EXPECT(decision.drafts[0].guard);
}

/* A17, A23 */
TEST(machine_decide, cancelling_fires_the_declared_transition_into_a_cancel_state)
{
    struct decision decision = { 0 };
    struct event event = { EVENT_CANCEL, .reason = STR("no more"), .actor = STR("ann") };

    EXPECT_OK(decide(t, NEW, event, &decision));
    EXPECT_EQ(decision.count, 1);
    EXPECT_EQ(decision.drafts[0].transition, 1);
    EXPECT_STR(decision.drafts[0].reason, "no more");
    EXPECT_STR(decision.drafts[0].actor, "ann");
    EXPECT(!decision.drafts[0].guard);
}

/* A18, A22 */
TEST(machine_decide, cancelling_is_refused_where_only_guards_lead_and_after_the_end)
{
    struct decision decision = { 0 };

    EXPECT_EQ(decide(t, PAID, (struct event){ EVENT_CANCEL }, &decision),
              PAWL_NO_CANCEL_TRANSITION);
    EXPECT_HAS(t->scope.error.message, "no way to cancel from 'paid'");
    EXPECT_HAS(t->scope.error.message, "legal now: ship, lose, wait, veto");
    EXPECT_EQ(decide(t, DROPPED, (struct event){ EVENT_CANCEL }, &decision), PAWL_TERMINAL);
    EXPECT_EQ(decision.count, 0);
}

/* A20: by kind, never by name */
TEST(machine_decide, cancelling_looks_at_the_kind_and_not_at_the_name)
{
    struct definition *definition =
        compiled(t, "states: [a, cancelled, gone]\ninitial_state: a\n"
                    "terminal_states: [cancelled, gone]\n"
                    "terminal_kinds: {cancelled: success, gone: cancel}\ntransitions:\n"
                    "- {from_state: a, action: cancel, to_state: cancelled}\n"
                    "- {from_state: a, action: leave, to_state: gone, requires_reason: true}\n");
    struct decision decision = { 0 };

    EXPECT_OK(machine_behavior.decide(definition, &(struct standing){ .state = 0 },
                                      &(struct event){ EVENT_CANCEL, .reason = STR("r") },
                                      &t->scope, &decision));
    EXPECT_EQ(decision.drafts[0].transition, 1);
}

TEST(machine_decide, a_machine_awaits_no_timer_signal_or_step)
{
    static const enum event_kind kinds[] = { EVENT_START,      EVENT_TIMER,     EVENT_SIGNAL,
                                             EVENT_STEP_START, EVENT_STEP_DONE, EVENT_STEP_FAILED,
                                             EVENT_STEP_LOST,  EVENT_UNKNOWN };
    struct decision decision = { 0 };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        EXPECT_EQ(decide(t, NEW, (struct event){ kinds[i] }, &decision), PAWL_NOT_AWAITING);
        EXPECT_EQ(decide(t, LOST, (struct event){ kinds[i] }, &decision), PAWL_TERMINAL);
    }
    EXPECT_EQ(decision.count, 0);
}

TEST(machine_decide, a_state_without_exits_has_no_legal_actions)
{
    struct definition *definition = compiled(t, "states: [a]\ninitial_state: a\ntransitions: []\n");
    struct decision decision;

    EXPECT_EQ(machine_behavior.decide(definition, &(struct standing){ .state = 0 },
                                      &(struct event){ EVENT_FIRE, .name = STR("go") }, &t->scope,
                                      &decision),
              PAWL_INVALID_TRANSITION);
    EXPECT_TEXT(t->scope.error.message, "no 'go' from 'a'; legal now: none");
}

TEST(machine_decide, a_huge_action_does_not_push_the_legal_ones_out_of_the_message)
{
    char action[4001];

    memset(action, 'x', sizeof action - 1);
    action[sizeof action - 1] = '\0';
    EXPECT_EQ(fire(t, NEW, action), PAWL_INVALID_TRANSITION);
    EXPECT_HAS(t->scope.error.message, "legal now: pay, drop");
}

TEST(machine_decide, a_refusal_under_many_long_actions_still_is_one)
{
    const struct definition *definition;
    struct decision decision;
    struct buf buf;

    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    buf_str(&buf, STR("states: [a]\ninitial_state: a\ntransitions:\n"));
    for (int i = 0; i < 300; i++)
        buf_fmt(&buf, "- {from_state: a, action: x%0900d, to_state: a}\n", i);
    definition = compiled(t, buf_text(&buf));
    EXPECT_EQ(machine_behavior.decide(definition, &(struct standing){ .state = 0 },
                                      &(struct event){ EVENT_FIRE, .name = STR("go") }, &t->scope,
                                      &decision),
              PAWL_INVALID_TRANSITION);
    EXPECT_HAS(t->scope.error.message, "no 'go' from 'a'; legal now: x000");
    buf_fini(&buf);
}

TEST(machine_decide, no_memory_is_a_status_and_decides_nothing)
{
    const struct definition *definition = compiled(t, order);
    static const struct event events[] = { { EVENT_FIRE, .name = STR_INIT("pay") },
                                           { EVENT_FIRE, .name = STR_INIT("nonsense") },
                                           { EVENT_CANCEL } };
    static const pawl_status wanted[] = { PAWL_OK, PAWL_INVALID_TRANSITION, PAWL_OK };

    for (int i = 0; i < 3; i++) {
        struct fault_heap fault = { 0 };

        FAULT_EACH(fault, FAULT_ONCE)
        {
            struct decision decision = { 0 };
            struct scope scope;
            pawl_status status;

            scope_init(&scope, &fault.heap, LIMIT_SCOPE);
            status = machine_behavior.decide(definition, &(struct standing){ .state = NEW },
                                             &events[i], &scope, &decision);
            EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : wanted[i]);
            EXPECT_EQ(decision.count, status == PAWL_OK);
            scope_fini(&scope);
        }
    }
}

/* ---- deadlines ---- */

static const char claim[] = "states: [open, asked, lapsed]\n"
                            "initial_state: open\n"
                            "terminal_states: [lapsed]\n"
                            "terminal_kinds: {lapsed: failure}\n"
                            "transitions:\n"
                            "- {from_state: open, action: ask, to_state: asked}\n"
                            "- {from_state: asked, action: remind, to_state: asked}\n"
                            "- {from_state: asked, action: lapse, to_state: lapsed}\n"
                            "deadlines:\n"
                            "- {state: asked, after: 2s, action: remind}\n"
                            "- {state: asked, after: 5s, action: lapse}\n"
                            "- {state: open, after: 1s, action: ask}\n";

enum { OPEN, ASKED };

static pawl_status expire(struct test *t, struct standing standing, struct event event,
                          struct decision *decision)
{
    return machine_behavior.decide(compiled(t, claim), &standing, &event, &t->scope, decision);
}

/* A timer that was seen to be due may be late: the state was left and entered again meanwhile. */
TEST(machine_decide, a_deadline_fires_when_its_state_was_held_that_long_and_not_before)
{
    struct standing standing = { .state = ASKED, .entered_at_ms = 1000 };
    struct event event = { EVENT_TIMER, .at_ms = 2999, .name = STR("remind") };
    struct decision decision = { 0 };

    EXPECT_EQ(expire(t, standing, event, &decision), PAWL_NOT_AWAITING);
    EXPECT_HAS(t->scope.error.message, "not due yet");
    event.is_forced = true;
    EXPECT_OK(expire(t, standing, event, &decision));
    event.is_forced = false;
    event.at_ms = 3000;
    EXPECT_OK(expire(t, standing, event, &decision));
    EXPECT_EQ(decision.drafts[0].transition, 1);
    event.name = STR("ask"); /* a deadline, but of another state */
    EXPECT_EQ(expire(t, standing, event, &decision), PAWL_NOT_AWAITING);
    standing.state = 2;
    EXPECT_EQ(expire(t, standing, event, &decision), PAWL_TERMINAL);
}

TEST(machine_decide, an_entry_disarms_what_it_leaves_and_arms_what_it_enters)
{
    struct decision decision = { 0 };
    struct buf buf;

    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    EXPECT_OK(expire(t, (struct standing){ .state = ASKED },
                     (struct event){ EVENT_FIRE, .at_ms = 7000, .name = STR("remind") },
                     &decision));
    effects_print(&decision.drafts[0].effects, &buf);
    EXPECT_STR(buf_view(&buf), "[[\"disarm\",\"remind\",0],[\"disarm\",\"lapse\",0],"
                               "[\"arm\",\"remind\",9000,0],[\"arm\",\"lapse\",12000,0]]");
    EXPECT_OK(expire(t, (struct standing){ .state = ASKED },
                     (struct event){ EVENT_FIRE, .at_ms = 7000, .name = STR("lapse") }, &decision));
    EXPECT_EQ(decision.drafts[0].effects.count, 0); /* an end is an end of all timers */
    buf_fini(&buf);
}
