/* locals.c - what is evaluated when code waits, and what when it wakes: the arguments of an await once, and
 * an await anywhere (E6, E7). */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>

/* A value and a mark that it was asked for. */
static int64_t asked(uint32_t *times, int64_t value)
{
    ++*times;
    return value;
}

static const char *asked_text(uint32_t *times, const char *text)
{
    ++*times;
    return text;
}

#define LEAF(has) has(result, uint32_t, none)

PAWL_CODE(leaf, LEAF)
{
    PAWL_BEGIN(LEAF);
    PAWL_END;
}

#define ONCE(has)                                                                                  \
    has(var, uint32_t, alone)                                                                      \
    has(var, uint32_t, arms)                                                                       \
    has(timer, Tick)                                                                               \
    has(timer, Late)                                                                               \
    has(call, add, int64_t)                                                                        \
    has(external, ask, int64_t)                                                                    \
    has(child, leaf)                                                                               \
    has(result, uint32_t, alone)                                                                   \
    has(result, uint32_t, arms)                                                                    \
    has(await, timed)                                                                              \
    has(await, called)                                                                             \
    has(await, tried)                                                                              \
    has(await, asked_for)                                                                          \
    has(await, spawned)                                                                            \
    has(await, chosen)                                                                             \
    has(await, chosen_call)                                                                        \
    has(await, chosen_child)

PAWL_CODE(once, ONCE)
{
    PAWL_BEGIN(ONCE);
    PAWL_TIMER(timed, Tick, asked(&self->alone, PAWL_SECS(1)));
    PAWL_CALL(called, add, asked_text(&self->alone, "[1,2]"));
    PAWL_TRY_CALL(tried, add, asked_text(&self->alone, "[1,2]"));
    PAWL_EXTERNAL(asked_for, ask, asked_text(&self->alone, "1"));
    PAWL_SPAWN(spawned, leaf, asked_text(&self->alone, "{}"));
    PAWL_SELECT(chosen) {
        PAWL_ON_TIMER(Tick, asked(&self->arms, PAWL_SECS(1))) {}
        PAWL_ON_TIMER(Late, asked(&self->arms, PAWL_SECS(2))) {}
        PAWL_ON_EXTERNAL(ask, asked_text(&self->arms, "1")) {}
    } PAWL_AWAIT;
    PAWL_SELECT(chosen_call) {
        PAWL_ON_CALL(add, asked_text(&self->arms, "[1,2]")) {}
        PAWL_ON_TIMER(Late, PAWL_DAYS(2)) {}
    } PAWL_AWAIT;
    PAWL_SELECT(chosen_child) {
        PAWL_ON_CHILD(leaf, asked_text(&self->arms, "{}")) {}
    } PAWL_AWAIT;
    result->alone = self->alone;
    result->arms = self->arms;
    PAWL_END;
}

static void add(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    EXPECT_TEXT(call->args, "[1,2]");
    pawl_answer_result(answer, "3");
}

static void open_with(pawl_kit *kit, const pawl_code_type *type)
{
    pawl_kit_open(kit, NULL);
    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "add", add, NULL, &kit->error));
    pawl_kit_register(kit, leaf());
    pawl_kit_register(kit, type);
}

TEST(code_locals, the_arguments_of_an_await_are_evaluated_once)
{
    pawl_kit kit;
    const char *id;

    open_with(&kit, once());
    id = pawl_kit_start(&kit, "once", NULL);
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_OK(&kit, pawl_kit_answer(&kit, id, "4", NULL));
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(&kit, id, "{\"alone\":5,\"arms\":5}");
    pawl_kit_close(&kit);
}

#define SWITCHING(has)                                                                             \
    has(input, uint32_t, way)                                                                      \
    has(var, uint32_t, seen)                                                                       \
    has(timer, Tick)                                                                               \
    has(signal, Go, uint32_t)                                                                      \
    has(result, uint32_t, seen)                                                                    \
    has(await, ticking)                                                                            \
    has(await, going)

PAWL_CODE(switching, SWITCHING)
{
    PAWL_BEGIN(SWITCHING);
    switch (self->way) {
    case 1:
        PAWL_TIMER(ticking, Tick, PAWL_SECS(1));
        self->seen += 10;
        break;
    case 2:
        PAWL_SELECT(going) {
            PAWL_ON_SIGNAL(Go) {
                self->seen += got->Go;
                break;
            }
        } PAWL_AWAIT;
        self->seen += 1000; /* not reached: an arm of a switch of one's own leaves that switch */
        break;
    default:
        PAWL_FAIL("no such way");
    }
    result->seen = self->seen;
    PAWL_END;
}

TEST(code_locals, an_await_may_be_in_a_switch_of_ones_own)
{
    pawl_kit kit;
    const char *id;

    open_with(&kit, switching());
    id = pawl_kit_start(&kit, "switching", "{\"way\":1}");
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(&kit, id, "{\"seen\":10}");
    id = pawl_kit_start(&kit, "switching", "{\"way\":2}");
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "go", "7"));
    PAWL_EXPECT_RESULT(&kit, id, "{\"seen\":7}");
    pawl_kit_close(&kit);
}

#define GUARDED(has)                                                                               \
    has(input, bool, is_short)                                                                     \
    has(input, bool, is_twice)                                                                     \
    has(var, uint32_t, seen)                                                                       \
    has(timer, Tick)                                                                               \
    has(signal, Go)                                                                                \
    has(result, uint32_t, seen)                                                                    \
    has(await, waiting)

PAWL_CODE(guarded, GUARDED)
{
    PAWL_BEGIN(GUARDED);
    PAWL_SELECT(waiting) {
        if (self->is_short) {
            PAWL_ON_TIMER(Tick, PAWL_SECS(1)) self->seen = 1;
        }
        if (!self->is_short || self->is_twice) {
            PAWL_ON_TIMER(Tick, PAWL_DAYS(1)) self->seen = 2;
        }
        PAWL_ON_SIGNAL(Go) self->seen = 3;
    } PAWL_AWAIT;
    result->seen = self->seen;
    PAWL_END;
}

TEST(code_locals, an_arm_in_braces_may_have_a_condition)
{
    pawl_kit kit;
    const char *id;

    open_with(&kit, guarded());
    id = pawl_kit_start(&kit, "guarded", "{\"is_short\":true}");
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(&kit, id, "{\"seen\":1}");
    id = pawl_kit_start(&kit, "guarded", "{\"is_short\":false}");
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_HISTORY(&kit, id, "start");
    pawl_kit_advance(&kit, PAWL_DAYS(1));
    PAWL_EXPECT_RESULT(&kit, id, "{\"seen\":2}");
    pawl_kit_close(&kit);
}

TEST(code_locals, two_arms_for_one_timer_that_the_compiler_cannot_see_pause_the_instance)
{
    pawl_kit kit;
    const char *id;

    open_with(&kit, guarded());
    id = pawl_kit_start(&kit, "guarded", "{\"is_short\":true,\"is_twice\":true}");
    EXPECT_HAS(pawl_kit_member(&kit, "instance.get", id, "pause"),
               "two arms of the select at 'waiting' wait for the timer 'tick'; keep one");
    pawl_kit_close(&kit);
}

#define CALLED(has)                                                                                \
    has(input, bool, is_twice)                                                                     \
    has(call, charge, uint32_t)                                                                    \
    has(timer, Tick)                                                                               \
    has(await, waiting)

PAWL_CODE(called, CALLED)
{
    PAWL_BEGIN(CALLED);
    PAWL_SELECT(waiting) {
        PAWL_ON_CALL(charge, "[1]") {}
        if (self->is_twice) {
            PAWL_ON_CALL(charge, "[2]") {}
        }
        PAWL_ON_TIMER(Tick, PAWL_DAYS(1)) {}
    } PAWL_AWAIT;
    PAWL_END;
}

TEST(code_locals, two_arms_for_one_call_that_the_compiler_cannot_see_pause_the_instance)
{
    pawl_kit kit;
    const char *id;

    open_with(&kit, called());
    id = pawl_kit_start(&kit, "called", "{\"is_twice\":true}");
    EXPECT_HAS(pawl_kit_member(&kit, "instance.get", id, "pause"),
               "the handler called two things in one turn; it may wait for one");
    id = pawl_kit_start(&kit, "called", "{\"is_twice\":false}");
    pawl_kit_advance(&kit, PAWL_DAYS(1));
    PAWL_EXPECT_STATE(&kit, id, "completed");
    pawl_kit_close(&kit);
}

#define INSIDE(has)                                                                                \
    has(var, uint32_t, seen)                                                                       \
    has(timer, Tick)                                                                               \
    has(signal, Go)                                                                                \
    has(signal, Stop)                                                                              \
    has(result, uint32_t, seen)                                                                    \
    has(await, outer)                                                                              \
    has(await, alone)                                                                              \
    has(await, inner)

PAWL_CODE(inside, INSIDE)
{
    PAWL_BEGIN(INSIDE);
    PAWL_SELECT(outer) {
        PAWL_ON_SIGNAL(Go) {
            self->seen += 1;
            PAWL_TIMER(alone, Tick, PAWL_SECS(1));
            self->seen += 10;
            PAWL_SELECT(inner) {
                PAWL_ON_TIMER(Tick, PAWL_SECS(1)) self->seen += 100;
            } PAWL_AWAIT;
            self->seen += 1000;
        }
        PAWL_ON_SIGNAL(Stop) {}
    } PAWL_AWAIT;
    result->seen = self->seen + 10000;
    PAWL_END;
}

TEST(code_locals, awaits_inside_of_an_arm_come_back_into_it_and_then_leave_its_select)
{
    pawl_kit kit;
    const char *id;

    open_with(&kit, inside());
    id = pawl_kit_start(&kit, "inside", NULL);
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "go", NULL));
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_VARIABLE(&kit, id, "phase", "\"inner\"");
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(&kit, id, "{\"seen\":11111}");
    pawl_kit_close(&kit);
}

/* What a local is worth whose declaration was jumped over, or that was given its value before an await. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
__attribute__((no_sanitize_address)) static void
look_at_a_local(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    volatile uint32_t lost[8];

    __asm__ volatile("" : : "r"(lost)); /* for one alone clang makes room by pushing a register */
    (void)context, (void)state, (void)event;
    pawl_turn_complete(turn, pawl_turn_text(turn, "%u", (unsigned)lost[3]));
}
#pragma GCC diagnostic pop

TEST(code_locals, a_lost_local_has_the_same_wrong_value_in_every_turn)
{
    static const pawl_code_type looking = { .name = "looking", .handle = look_at_a_local };
    pawl_kit kit;

    open_with(&kit, &looking);
    for (uint32_t i = 0; i < 3; i++)
        PAWL_EXPECT_RESULT(&kit, pawl_kit_start(&kit, "looking", NULL), "1515870810"); /* 0x5a5a5a5a */
    pawl_kit_close(&kit);
}
