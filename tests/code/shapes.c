/* shapes.c - what comes from outside has a name and a shape that the type declares: names and payloads
 * become typed events (E8, E20), and what does not fit is refused by name (E24). */
#include "auction.h"
#include "buff.h"
#include "lib/test.h"
#include "combat.h"
#include "patrol.h"
#include <pawl_test.h>

TEST(shapes, a_wire_name_finds_the_timer_that_has_it)
{
    EXPECT_TEXT(pawl_timer_from_name(patrol(), "start_patrol"), "StartPatrol");
    EXPECT_TEXT(pawl_timer_from_name(patrol(), "arrival"), "Arrival");
    EXPECT(!pawl_timer_from_name(patrol(), "StartPatrol")); /* not the name outside */
    EXPECT(!pawl_timer_from_name(patrol(), "stand_down"));  /* a signal */
    EXPECT(!pawl_timer_from_name(patrol(), "lunch"));
    EXPECT(!pawl_timer_from_name(patrol(), NULL));
    EXPECT(!pawl_timer_from_name(NULL, "arrival"));
    EXPECT_TEXT(pawl_signal_from_name(patrol(), "threat_detected"), "ThreatDetected");
    EXPECT(!pawl_signal_from_name(patrol(), "arrival"));
    EXPECT(!pawl_signal_from_name(NULL, "arrival"));
}

TEST(shapes, a_wire_name_and_a_payload_become_a_typed_event)
{
    struct patrol_got got;
    struct auction_got bids;
    pawl_event event;
    pawl_error error;

    EXPECT_OK(pawl_signal_from_name_and_payload(patrol(), "threat_detected",
                                                "18446744073709551615", &got, &event, &error));
    EXPECT_EQ(event.kind, PAWL_EVENT_SIGNAL);
    EXPECT_TEXT(event.name, "threat_detected");
    EXPECT_TEXT(event.payload, "18446744073709551615");
    EXPECT(event.value == &got && got.ThreatDetected == UINT64_MAX);
    EXPECT_OK(pawl_signal_from_name_and_payload(patrol(), "stand_down", NULL, &got, &event, &error));
    EXPECT_TEXT(event.payload, "null");
    EXPECT_EQ(got.ThreatDetected, 0); /* of the call before: nothing is left */
    EXPECT_OK(pawl_signal_from_name_and_payload(auction(), "bid", "{\"bidder\":\"ann\",\"cents\":7}",
                                                &bids, &event, &error));
    EXPECT_TEXT(bids.Bid.bidder, "ann");
    EXPECT_EQ(bids.Bid.cents, 7);
}

TEST(shapes, a_name_or_payload_that_the_type_does_not_declare_is_refused)
{
    struct patrol_got got;
    pawl_event event = { .name = "before" };
    pawl_error error;

    EXPECT_EQ(pawl_signal_from_name_and_payload(patrol(), "flood", "1", &got, &event, &error),
              PAWL_NOT_KNOWN);
    EXPECT_TEXT(error.message, "code type 'patrol' has no signal 'flood'; its signals: "
                               "threat_detected, stand_down");
    EXPECT_EQ(pawl_signal_from_name_and_payload(patrol(), "threat_detected", "-1", &got, &event,
                                                &error),
              PAWL_INVALID_REQUEST);
    EXPECT_TEXT(error.message, "the payload of 'threat_detected': expected uint64 for "
                               "'ThreatDetected', found a number: -1");
    EXPECT_EQ(pawl_signal_from_name_and_payload(patrol(), "stand_down", "{", &got, &event, NULL),
              PAWL_INVALID_REQUEST);
    EXPECT_TEXT(event.name, "before"); /* a refusal changes nothing */
}

/* ---- Required and unknown members --------------------------------------------------------------- */

#define LINE(has) has(required, text, sku, 8) has(uint32_t, count)
PAWL_STRUCT(line, LINE);
#define OFFER(has) has(required, uint64_t, cents) has(text, note, 16)
PAWL_STRUCT(offer, OFFER);

#define ORDER(has)                                                                                 \
    has(required, uint64_t, customer)                                                              \
    has(input, uint32_t, days, 3)                                                                  \
    has(input, part, first, line)                                                                  \
    has(input, parts, more, line, 4)                                                               \
    has(input, json, extra, 64)                                                                    \
    has(var, uint64_t, cents)                                                                      \
    has(var, uint32_t, added)                                                                      \
    has(signal, Add, part, line)                                                                   \
    has(signal, Later, part, line)                                                                 \
    has(signal, Ask)                                                                               \
    has(buffered, Later)                                                                           \
    has(call, price, part, offer)                                                                  \
    has(result, uint64_t, cents)                                                                   \
    has(result, uint32_t, added)                                                                   \
    has(await, adding)                                                                             \
    has(await, asking)                                                                             \
    has(await, waiting)

PAWL_CODE(order, ORDER)
{
    PAWL_BEGIN(ORDER);
    for (;;) {
        PAWL_SELECT(adding) {
            PAWL_ON_SIGNAL(Add) self->added += got->Add.count;
            PAWL_ON_SIGNAL(Ask) break;
        } PAWL_AWAIT;
    }
    PAWL_TRY_CALL(asking, price, "{}");
    self->cents = PAWL_ERROR ? 99 : got->price.cents;
    PAWL_SIGNAL(waiting, Later);
    self->added += got->Later.count;
    result->cents = self->cents;
    result->added = self->added;
    PAWL_END;
}

#define PARENT(has) has(input, json, given, 64) has(child, order) has(result, bool, refused) has(await, ordering)
PAWL_CODE(parent, PARENT)
{
    PAWL_BEGIN(PARENT);
    PAWL_TRY_SPAWN(ordering, order, self->given);
    result->refused = PAWL_ERROR != NULL;
    PAWL_END;
}

static void refuse_start(pawl_kit *kit, const char *input, const char *words)
{
    pawl_id id;
    pawl_create_args args = { .definition = "order", .input = input };

    PAWL_EXPECT_STATUS(kit, pawl_create(kit->p, &args, &id, &kit->error), PAWL_INVALID_REQUEST);
    EXPECT_TEXT(kit->error.message, words);
}

static void refuse_signal(pawl_kit *kit, const char *id, const char *name, const char *payload,
                          const char *words)
{
    PAWL_EXPECT_STATUS(kit, pawl_kit_signal(kit, id, name, payload), PAWL_INVALID_REQUEST);
    EXPECT_TEXT(kit->error.message, words);
}

static void open_order(pawl_kit *kit)
{
    pawl_kit_open(kit, NULL);
    pawl_kit_register(kit, order());
    pawl_kit_register(kit, parent());
}

TEST(shapes, an_input_lacks_no_required_member_and_has_none_that_is_unknown)
{
    pawl_kit kit;

    open_order(&kit);
    refuse_start(&kit, NULL, "input: expected uint64 for 'customer', which is required, found nothing");
    refuse_start(&kit, "{\"customer\":null}",
                 "input: expected uint64 for 'customer', which is required, found null");
    refuse_start(&kit, "{\"customer\":7,\"dayz\":1}",
                 "input: expected one of customer, days, first, more, extra, found the member 'dayz'; "
                 "did you mean 'days'?");
    refuse_start(&kit, "{\"customer\":7,\"cents\":1}", /* a variable, and no input */
                 "input: expected one of customer, days, first, more, extra, found the member "
                 "'cents'");
    refuse_start(&kit, "{\"customer\":7,\"first\":{\"count\":1}}",
                 "input: expected text for 'first.sku', which is required, found nothing");
    refuse_start(&kit, "{\"customer\":7,\"more\":[{\"sku\":\"a\"},{\"sku\":\"b\",\"size\":1}]}",
                 "input: expected one of sku, count, found the member 'more[1].size'");
    refuse_start(&kit, "{\"customer\":7,\"more\":[{\"sku\":\"123456789\"}]}",
                 "input: expected text that fits its size for 'more[0].sku', found a string");
    refuse_start(&kit, "{\"customer\":7,\"more\":[{\"sku\":\"a\"},5]}",
                 "input: expected struct for 'more[1]', found a number: 5");
    refuse_start(&kit, "{\"customer\":7,\"more\":[{\"sku\":\"a\"},{\"sku\":\"b\"},{\"sku\":\"c\"},"
                       "{\"sku\":\"d\"},{\"sku\":\"e\"}]}",
                 "input: expected a list of struct for 'more', found an array of 5 where at most 4 fit");
    refuse_start(&kit, "[]",
                 "input: expected an object with customer, days, first, more, extra, found an array");
    refuse_start(&kit, "5",
                 "input: expected an object with customer, days, first, more, extra, found a number");
    PAWL_EXPECT_STATE(&kit, pawl_kit_start(&kit, "order", "{\"customer\":7,\"extra\":{\"any\":[1]}}"),
                      "running");
    pawl_kit_close(&kit);
}

static const char *ask(pawl_kit *kit, const char *operation, const char *input)
{
    static char answer[4096];
    char *out = NULL;

    PAWL_EXPECT_OK(kit, pawl_call(kit->p, operation, input, &out, &kit->error));
    snprintf(answer, sizeof answer, "%s", out);
    pawl_free(kit->p, out);
    return answer;
}

/* The id of the newest order. */
static void newest(pawl_kit *kit, char out[27])
{
    const char *found = strstr(ask(kit, "instance.list", "{\"definition\":\"order\",\"limit\":1}"),
                               "\"instance_id\":\"");

    EXPECT(found != NULL);
    snprintf(out, 27, "%s", found + 15);
}

/* `event` is what a machine adds to the input of what its transition starts: a caller cannot pretend
 * that one did, now or by an alarm. What is run again has the input of the first. */
TEST(shapes, an_input_has_the_event_that_a_machine_adds_and_no_caller_may_add_it)
{
    static const char door[] = "name: door\nstates: [shut, open]\ninitial_state: shut\n"
                               "terminal_states: [open]\nterminal_kinds: {open: success}\ntransitions:\n"
                               "  - {from_state: shut, action: go, to_state: open, starts: {definition: "
                               "order, input: {customer: 7}}}\n";
    char order[27], input[64];
    pawl_fired fired;
    pawl_kit kit;

    open_order(&kit);
    refuse_start(&kit, "{\"customer\":7,\"event\":{\"action\":\"go\"}}",
                 "input: expected one of customer, days, first, more, extra, found the member 'event'");
    (void)ask(&kit, "alarm.set", "{\"operation\":\"instance.create\",\"after\":\"1s\",\"input\":{"
                                 "\"definition\":\"order\",\"input\":{\"customer\":7,\"event\":{}},"
                                 "\"instance_metadata\":{\"started_by\":{}}}}");
    pawl_kit_advance(&kit, PAWL_SECS(1));
    EXPECT_HAS(ask(&kit, "instance.list", "{\"definition\":\"order\"}"), "\"instances\":[]");
    PAWL_EXPECT_OK(&kit, pawl_define(kit.p, door, sizeof door - 1, NULL, &kit.error));
    PAWL_EXPECT_OK(&kit, pawl_fire(kit.p, pawl_kit_start(&kit, "door", NULL),
                                   &(pawl_fire_args){ .action = "go" }, &fired, &kit.error));
    pawl_kit_advance(&kit, 0);
    newest(&kit, order);
    EXPECT_HAS(pawl_kit_ask(&kit, "instance.get", order), "\"event\":{\"instance_id\"");
    (void)pawl_kit_ask(&kit, "instance.cancel", order);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", order);
    EXPECT_HAS(ask(&kit, "instance.redrive", input), "\"instance_id\"");
    pawl_kit_close(&kit);
}

/* Code that reads no payload gets none; the history has what was sent. */
TEST(shapes, a_signal_without_a_kind_takes_any_payload_and_the_history_keeps_it)
{
    pawl_kit kit;
    const char *id;

    open_order(&kit);
    id = pawl_kit_start(&kit, "order", "{\"customer\":7}");
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "ask", "{\"why\":[\"because\"]}"));
    EXPECT_HAS(pawl_kit_ask(&kit, "instance.history", id),
               "{\"signal\":\"ask\",\"payload\":{\"why\":[\"because\"]}}");
    pawl_kit_close(&kit);
}

TEST(shapes, a_signal_with_an_unknown_or_without_a_required_member_is_refused)
{
    pawl_kit kit;
    const char *id;

    open_order(&kit);
    id = pawl_kit_start(&kit, "order", "{\"customer\":7}");
    refuse_signal(&kit, id, "add", "{\"sku\":\"a\",\"cuont\":2}",
                  "the payload of 'add': expected one of sku, count, found the member 'cuont'; did "
                  "you mean 'count'?");
    refuse_signal(&kit, id, "add", "{\"count\":2}",
                  "the payload of 'add': expected text for 'sku', which is required, found nothing");
    PAWL_EXPECT_HISTORY(&kit, id, "start"); /* nothing changes */
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "add", "{\"sku\":\"a\",\"count\":2}"));
    PAWL_EXPECT_VARIABLE(&kit, id, "added", "2");
    pawl_kit_close(&kit);
}

TEST(shapes, a_signal_that_is_kept_is_checked_when_it_is_sent)
{
    pawl_kit kit;
    const char *id;

    open_order(&kit);
    id = pawl_kit_start(&kit, "order", "{\"customer\":7}");
    refuse_signal(&kit, id, "later", "{\"sku\":\"a\",\"cuont\":2}",
                  "the payload of 'later': expected one of sku, count, found the member 'cuont'; did "
                  "you mean 'count'?");
    refuse_signal(&kit, id, "later", "7",
                  "the payload of 'later': expected struct for 'Later', found a number: 7");
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "later", "{\"sku\":\"a\",\"count\":2}"));
    pawl_kit_close(&kit);
}

static const char *price_answer;

static void price(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, price_answer);
}

static const char *answered(pawl_kit *kit, const char *answer)
{
    const char *id = pawl_kit_start(kit, "order", "{\"customer\":7}");

    price_answer = answer;
    PAWL_EXPECT_OK(kit, pawl_kit_signal(kit, id, "ask", NULL));
    pawl_kit_advance(kit, 0);
    PAWL_EXPECT_OK(kit, pawl_kit_signal(kit, id, "later", "{\"sku\":\"a\"}"));
    return id;
}

/* Tools change by themselves: what they answer beyond the declaration is passed over. */
TEST(shapes, an_answer_may_have_more_members_than_declared_but_lacks_no_required_one)
{
    pawl_kit kit;

    open_order(&kit);
    PAWL_EXPECT_OK(&kit, pawl_tool_register(kit.p, "price", price, NULL, &kit.error));
    PAWL_EXPECT_RESULT(&kit, answered(&kit, "{\"cents\":5,\"currency\":\"EUR\"}"),
                       "{\"cents\":5,\"added\":0}");
    PAWL_EXPECT_RESULT(&kit, answered(&kit, "{\"note\":\"soon\"}"), "{\"cents\":99,\"added\":0}");
    pawl_kit_close(&kit);
}

TEST(shapes, the_input_of_a_child_that_does_not_fit_is_an_error_of_its_spawn)
{
    pawl_kit kit;

    open_order(&kit);
    PAWL_EXPECT_RESULT(&kit, pawl_kit_start(&kit, "parent", "{\"given\":{\"days\":1}}"),
                       "{\"refused\":true}");
    PAWL_EXPECT_RESULT(&kit, pawl_kit_start(&kit, "parent", "{\"given\":{\"customer\":1,\"dayz\":2}}"),
                       "{\"refused\":true}");
    pawl_kit_close(&kit);
}
