/* examples.c - the examples of durable code, by the kit that users have. */
#include "auction.h"
#include "buff.h"
#include "conditional.h"
#include "countdown.h"
#include "counter.h"
#include "damage.h"
#include "day_night.h"
#include "lib/test.h"
#include "production.h"
#include "respawn.h"
#include "trade.h"
#include <pawl_test.h>
#include <unistd.h>

static void open_all(pawl_kit *kit)
{
    const pawl_code_type *const types[] = { buff(),    counter(),  conditional(), counting_down(),
                                            auction(), trade(),    damage(),      production(),
                                            respawn(), day_night() };

    pawl_kit_open(kit, NULL);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        pawl_kit_register(kit, types[i]);
}

/* A test with a store in memory that knows all examples. */
#define KIT_TEST(name)                                                                             \
    static void play_##name(pawl_kit *kit);                                                        \
    TEST(examples, name)                                                                           \
    {                                                                                              \
        pawl_kit kit;                                                                              \
                                                                                                   \
        open_all(&kit);                                                                            \
        play_##name(&kit);                                                                         \
        pawl_kit_close(&kit);                                                                      \
    }                                                                                              \
    static void play_##name(pawl_kit *kit)

#define TELL(id, signal, payload) PAWL_EXPECT_OK(kit, pawl_kit_signal(kit, id, signal, payload))
#define REFUSED(status, id, signal, payload)                                                       \
    PAWL_EXPECT_STATUS(kit, pawl_kit_signal(kit, id, signal, payload), status)

/* E1, E7, E11, E12, E31: stacking begins the time anew. */
KIT_TEST(a_buff_stacks_and_expires)
{
    const char *id;

    id = pawl_kit_start(kit, "buff", "{\"duration_secs\":60}");
    PAWL_EXPECT_VARIABLE(kit, id, "phase", "\"buffed\"");
    pawl_kit_advance(kit, PAWL_SECS(59));
    TELL(id, "stack", "4");
    pawl_kit_advance(kit, PAWL_SECS(59));
    PAWL_EXPECT_STATE(kit, id, "running");
    REFUSED(PAWL_INVALID_REQUEST, id, "stack", "\"four\"");
    REFUSED(PAWL_NOT_AWAITING, id, "heal", NULL);
    pawl_kit_advance(kit, PAWL_SECS(1));
    PAWL_EXPECT_HISTORY(kit, id, "start signal:stack timer:expire finish");
    PAWL_EXPECT_RESULT(kit, id, "{\"final_stacks\":5}");
    id = pawl_kit_start(kit, "buff", NULL);
    TELL(id, "dispel", NULL);
    PAWL_EXPECT_RESULT(kit, id, "{\"final_stacks\":1}");
}

/* E17, E19 */
KIT_TEST(a_for_loop_counts_across_awaits)
{
    const char *id;

    id = pawl_kit_start(kit, "counter", "{\"iterations\":4}");
    pawl_kit_advance(kit, PAWL_SECS(2));
    PAWL_EXPECT_VARIABLE(kit, id, "count", "2");
    pawl_kit_advance(kit, PAWL_DAYS(30));
    PAWL_EXPECT_HISTORY(kit, id, "start timer:tick timer:tick timer:tick timer:tick finish");
    PAWL_EXPECT_RESULT(kit, id, "{\"final_count\":4}");
    id = pawl_kit_start(kit, "counter", "{\"iterations\":0}");
    PAWL_EXPECT_HISTORY(kit, id, "start finish");
}

/* E17: the condition is evaluated once; the branch that was taken goes on. */
KIT_TEST(a_condition_keeps_its_branch)
{
    const char *brief, *lengthy;

    brief = pawl_kit_start(kit, "conditional", "{\"use_short_timer\":true}");
    lengthy = pawl_kit_start(kit, "conditional", NULL);
    pawl_kit_advance(kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(kit, brief, "{\"value\":10}");
    PAWL_EXPECT_VARIABLE(kit, lengthy, "phase", "\"long_wait\"");
    pawl_kit_advance(kit, PAWL_SECS(4));
    PAWL_EXPECT_RESULT(kit, lengthy, "{\"value\":50}");
}

KIT_TEST(a_countdown_is_lengthened_and_stopped)
{
    const char *id;

    id = pawl_kit_start(kit, "examples/countdown", "{\"from\":2}");
    TELL(id, "add", "1");
    pawl_kit_advance(kit, PAWL_SECS(3));
    PAWL_EXPECT_RESULT(kit, id, "{\"left\":0,\"stopped\":false}");
    id = pawl_kit_start(kit, "examples/countdown", NULL);
    pawl_kit_advance(kit, PAWL_SECS(4));
    TELL(id, "cancel", NULL);
    PAWL_EXPECT_RESULT(kit, id, "{\"left\":6,\"stopped\":true}");
}

KIT_TEST(an_auction_goes_on_while_there_are_bids)
{
    const char *id;

    id = pawl_kit_start(kit, "auction", "{\"item\":\"a chair\",\"reserve_cents\":500}");
    TELL(id, "bid", "{\"bidder\":\"ann\",\"cents\":400}");
    pawl_kit_advance(kit, PAWL_MINUTES(59));
    TELL(id, "bid", "{\"bidder\":\"bob\",\"cents\":600}");
    TELL(id, "bid", "{\"bidder\":\"cy\",\"cents\":500}");
    REFUSED(PAWL_INVALID_REQUEST, id, "bid", "{\"cents\":-1}");
    pawl_kit_advance(kit, PAWL_MINUTES(60));
    PAWL_EXPECT_RESULT(kit, id, "{\"sold\":true,\"best\":{\"bidder\":\"bob\",\"cents\":600}}");
    id = pawl_kit_start(kit, "auction", "{\"item\":\"a \\\"lamp\\\"\"}");
    TELL(id, "withdraw", NULL);
    PAWL_EXPECT_STATE(kit, id, "failed");
    PAWL_EXPECT_ERROR(kit, id, "\"a \\\"lamp\\\" was withdrawn\"");
    id = pawl_kit_start(kit, "auction", NULL);
    pawl_kit_advance(kit, PAWL_DAYS(30));
    PAWL_EXPECT_HISTORY(kit, id, "start timer:close finish");
    PAWL_EXPECT_RESULT(kit, id, "{\"sold\":false,\"best\":{\"bidder\":\"\",\"cents\":0}}");
}

/* E10: a procedure that somebody outside completes. */
KIT_TEST(a_trade_waits_for_both_sides_and_for_the_goods)
{
    const char *id;

    id = pawl_kit_start(kit, "trade", "{\"buyer\":1,\"seller\":2}");
    TELL(id, "accept", "1");
    TELL(id, "accept", "2");
    EXPECT_HAS(pawl_kit_ask(kit, "instance.why", id), "\"name\":\"transfer_goods\"");
    EXPECT_HAS(pawl_kit_ask(kit, "instance.get", id), "\"status\":\"suspended\"");
    EXPECT_HAS(pawl_kit_ask(kit, "instance.steps", id), "\"args\":{\"from\":2,\"to\":1}");
    REFUSED(PAWL_NOT_AWAITING, id, "decline", "1");
    PAWL_EXPECT_OK(kit, pawl_kit_answer(kit, id, "77", NULL));
    PAWL_EXPECT_HISTORY(kit, id,
                        "start signal:accept signal:accept step.complete:transfer_goods finish");
    PAWL_EXPECT_RESULT(kit, id, "{\"receipt\":77}");
    PAWL_EXPECT_STATUS(kit, pawl_kit_answer(kit, id, "78", NULL), PAWL_LEASE_LOST);
    id = pawl_kit_start(kit, "trade", "{\"buyer\":1,\"seller\":2}");
    pawl_kit_advance(kit, PAWL_MINUTES(5));
    PAWL_EXPECT_ERROR(kit, id, "\"no reply for five minutes\"");
}

KIT_TEST(an_answer_that_is_an_error_or_no_number_fails_the_trade_in_words)
{
    const char *id;

    for (int i = 0; i < 2; i++) {
        id = pawl_kit_start(kit, "trade", "{\"buyer\":1,\"seller\":1}");
        TELL(id, "accept", "1");
        PAWL_EXPECT_OK(kit, pawl_kit_answer(kit, id, "\"x\"", i ? NULL : "{\"code\":7}"));
        PAWL_EXPECT_STATE(kit, id, "failed");
        PAWL_EXPECT_ERROR(kit, id,
                          i ? "\"the payload of 'transfer_goods': expected uint64 for "
                              "'transfer_goods', found a string\""
                            : "{\"code\":7}");
    }
}

/* E11: an arm may break or continue the loop around it, also from a select within a select. */
KIT_TEST(a_production_line_is_held_and_goes_on)
{
    const char *id;

    id = pawl_kit_start(kit, "production", "{\"pieces\":2,\"secs_each\":5}");
    pawl_kit_advance(kit, PAWL_SECS(7));
    TELL(id, "hold", NULL);
    pawl_kit_advance(kit, PAWL_DAYS(3));
    PAWL_EXPECT_VARIABLE(kit, id, "made", "1");
    PAWL_EXPECT_VARIABLE(kit, id, "phase", "\"held\"");
    TELL(id, "continue", NULL);
    pawl_kit_advance(kit, PAWL_SECS(3));
    PAWL_EXPECT_RESULT(kit, id, "{\"made\":2}");
    id = pawl_kit_start(kit, "production", NULL);
    TELL(id, "hold", NULL);
    TELL(id, "abort", NULL);
    PAWL_EXPECT_RESULT(kit, id, "{\"made\":0}");
}

/* E31: out of a loop by its count, in it by a timer or a signal. */
KIT_TEST(who_falls_is_back_in_time_or_is_raised)
{
    const char *id;

    id = pawl_kit_start(kit, "respawn", NULL);
    TELL(id, "fall", NULL);
    REFUSED(PAWL_NOT_AWAITING, id, "fall", NULL);
    pawl_kit_advance(kit, PAWL_SECS(299));
    PAWL_EXPECT_VARIABLE(kit, id, "phase", "\"down\"");
    pawl_kit_advance(kit, PAWL_SECS(1));
    TELL(id, "fall", NULL);
    TELL(id, "raise", NULL);
    pawl_kit_advance(kit, PAWL_DAYS(1)); /* the time it was raised before does not come */
    PAWL_EXPECT_VARIABLE(kit, id, "phase", "\"alive\"");
    TELL(id, "fall", NULL);
    PAWL_EXPECT_RESULT(kit, id, "{\"fallen\":3,\"raised\":1}");
    PAWL_EXPECT_HISTORY(kit, id,
                        "start signal:fall timer:respawn signal:fall signal:raise "
                        "signal:fall finish");
}

/* E31: a singleton is what has one key. */
KIT_TEST(day_and_night_take_turns_and_there_is_one_of_them)
{
    const pawl_create_args world = { .definition = "day_night", .idempotency_key = "the-world" };
    pawl_id id, again;

    PAWL_EXPECT_OK(kit, pawl_create(kit->p, &world, &id, &kit->error));
    PAWL_EXPECT_OK(kit, pawl_create(kit->p, &world, &again, &kit->error));
    EXPECT_TEXT(again.text, id.text);
    pawl_kit_advance(kit, PAWL_SECS(600));
    PAWL_EXPECT_VARIABLE(kit, id.text, "is_night", "true");
    pawl_kit_advance(kit, PAWL_SECS(2 * 900));
    PAWL_EXPECT_VARIABLE(kit, id.text, "is_night", "true");
    PAWL_EXPECT_VARIABLE(kit, id.text, "days", "2");
    TELL(id.text, "end", NULL);
    PAWL_EXPECT_RESULT(kit, id.text, "{\"days\":2}");
}

static void compute(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    int *calls = context;

    EXPECT_TEXT(call->args, "{\"target\":9}");
    EXPECT_TEXT(call->step, "compute_damage");
    ++*calls;
    pawl_answer_result(answer, "40");
}

static void refuse(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_error(answer, "\"no ink\"");
}

/* E10, X13: a procedure that is a tool; its failure may be handled. */
KIT_TEST(a_call_of_a_tool_brings_its_result_or_its_error)
{
    const char *id;
    int calls = 0;

    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "compute_damage", compute, &calls, &kit->error));
    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "log_death", refuse, NULL, &kit->error));
    id = pawl_kit_start(kit, "damage", "{\"health\":80,\"target\":9}");
    pawl_kit_advance(kit, PAWL_MINUTES(1));
    PAWL_EXPECT_HISTORY(kit, id,
                        "start step.start:compute_damage step.complete:compute_damage timer:delay "
                        "step.start:compute_damage step.complete:compute_damage timer:delay "
                        "step.start:log_death step.fail:log_death finish");
    PAWL_EXPECT_RESULT(kit, id, "{\"hits\":1002}");
    EXPECT_EQ(calls, 2);
}

/* E24: an unknown type is an error, and nothing is created; so is input that does not fit. */
KIT_TEST(what_cannot_begin_creates_nothing)
{
    char *out;
    pawl_id id;

    PAWL_EXPECT_STATUS(
        kit, pawl_create(kit->p, &(pawl_create_args){ .definition = "debuff" }, &id, &kit->error),
        PAWL_NOT_KNOWN);
    PAWL_EXPECT_STATUS(kit,
                       pawl_create(kit->p,
                                   &(pawl_create_args){ .definition = "buff",
                                                        .input = "{\"duration_secs\":\"long\"}" },
                                   &id, &kit->error),
                       PAWL_INVALID_REQUEST);
    EXPECT_HAS(kit->error.message, "'duration_secs'");
    PAWL_EXPECT_OK(kit, pawl_call(kit->p, "instance.list", NULL, &out, &kit->error));
    EXPECT_HAS(out, "\"instances\":[]");
    pawl_free(kit->p, out);
}

/* E25 */
KIT_TEST(a_test_instance_is_driven_by_hand)
{
    const char *id;

    id = pawl_kit_create(kit, &(pawl_create_args){ .definition = "counter", .test = true });
    pawl_kit_advance(kit, PAWL_DAYS(1));
    PAWL_EXPECT_HISTORY(kit, id, "start");
    for (int i = 0; i < 3; i++)
        PAWL_EXPECT_OK(kit, pawl_test_fire_timer(kit->p, id, "tick", &kit->error));
    PAWL_EXPECT_RESULT(kit, id, "{\"final_count\":3}");
}
