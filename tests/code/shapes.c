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
