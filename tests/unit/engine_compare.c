/* engine_compare.c - is a new version safe for the instances under way? On every backend. */
#include "engine_fixture.h"
#include <stdio.h>

/* The answer's `against` for a text held against what a reference names. */
static const char *against(struct world *world, const char *reference, const char *text)
{
    static char answer[1 << 14];
    const char *member;
    char *given = NULL;
    struct buf input;

    buf_init(&input, &heap_libc, 1 << 16);
    json_open(&input, '{');
    json_key(&input, "text");
    json_text(&input, text);
    json_key(&input, "against");
    json_text(&input, reference);
    json_close(&input, '}');
    if (pawl_call(world->p, "definition.check", buf_text(&input), &given, &world->error))
        snprintf(answer, sizeof answer, "%s: %s", pawl_status_name(world->error.status),
                 world->error.message);
    else {
        member = strstr(given, "\"against\":");
        snprintf(answer, sizeof answer, "%.*s",
                 member ? (int)strlen(member + strlen("\"against\":")) - 1 : 0,
                 member ? member + strlen("\"against\":") : "");
    }
    pawl_free(world->p, given);
    buf_fini(&input);
    return answer;
}

#define HEAD                                                                                       \
    "name: order\ninitial_state: new\nterminal_states: [shipped, dropped]\n"                       \
    "terminal_kinds: {shipped: success, dropped: cancel}\n"
#define PAY  "  - {from_state: new, action: pay, to_state: paid}\n"
#define DROP "  - {from_state: new, action: drop, to_state: dropped}\n"
#define SHIP "  - {from_state: paid, action: ship, to_state: shipped}\n"
#define NOTE "  - {from_state: paid, action: note, to_state: paid}\n"

/* Two in new, one in paid, one that has ended. */
static void begin_orders(struct world *world)
{
    world_define(world, ORDER);
    world_create(world, "order", NULL);
    world_create(world, "order", NULL);
    EXPECT_OK(world_fire(world, world_create(world, "order", NULL), "pay"));
    EXPECT_OK(world_fire(world, world_create(world, "order", NULL), "drop"));
}

WORLD_TEST(compare, a_text_with_every_state_and_exit_that_is_needed_is_safe)
{
    static const char safe[] =
        "{\"name\":\"order\",\"versions\":[1],\"states\":["
        "{\"state\":\"new\",\"instances\":2,\"verdict\":\"safe\",\"missing\":[]},"
        "{\"state\":\"paid\",\"instances\":1,\"verdict\":\"safe\",\"missing\":[]}],"
        "\"steps\":[],\"safe\":true}";
    static const char more[] =
        HEAD "states: [new, paid, packed, shipped, dropped]\ntransitions:\n" PAY DROP SHIP NOTE
             "  - {from_state: paid, action: pack, to_state: packed}\n"
             "  - {from_state: packed, action: ship, to_state: shipped}\n";

    begin_orders(world);
    EXPECT_TEXT(against(world, "order", ORDER), safe);
    EXPECT_TEXT(against(world, "order", more), safe); /* rows lag */
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(against(world, "order", more), safe); /* they do not */
    world_close(world);
    world->options.own = false;
    world_open(world);
    EXPECT_TEXT(against(world, "order", more), safe);
}

WORLD_TEST(compare, missing_exits_are_named)
{
    begin_orders(world);
    EXPECT_TEXT(against(world, "order",
                        HEAD "states: [new, paid, shipped, dropped]\ntransitions:\n" PAY
                             "  - {from_state: paid, action: send, to_state: shipped}\n"),
                "{\"name\":\"order\",\"versions\":[1],\"states\":["
                "{\"state\":\"new\",\"instances\":2,\"verdict\":\"exits missing\","
                "\"missing\":[\"drop\"]},"
                "{\"state\":\"paid\",\"instances\":1,\"verdict\":\"exits missing\","
                "\"missing\":[\"note\",\"ship\"]}],\"steps\":[],\"safe\":false}");
}

WORLD_TEST(compare, a_state_that_is_gone_or_has_become_an_end_is_not_safe)
{
    begin_orders(world);
    EXPECT_HAS(against(world, "order",
                       HEAD "states: [new, shipped, dropped]\ntransitions:\n" DROP
                            "  - {from_state: new, action: pay, to_state: shipped}\n"),
               "{\"state\":\"new\",\"instances\":2,\"verdict\":\"safe\",\"missing\":[]},"
               "{\"state\":\"paid\",\"instances\":1,\"verdict\":\"state is gone\",\"missing\":[]}],"
               "\"steps\":[],\"safe\":false}");
    EXPECT_HAS(against(world, "order",
                       "name: order\nstates: [new, paid]\ninitial_state: new\n"
                       "terminal_states: [paid]\nterminal_kinds: {paid: success}\n"
                       "transitions:\n" PAY
                       "  - {from_state: new, action: drop, to_state: paid}\n"),
               "\"instances\":1,\"verdict\":\"state is terminal now\"");
}

WORLD_TEST(compare, a_state_where_nobody_is_may_go)
{
    world_define(world, ORDER);
    world_create(world, "order", NULL);
    EXPECT_HAS(against(world, "order",
                       HEAD "states: [new, shipped, dropped]\ntransitions:\n" DROP
                            "  - {from_state: new, action: pay, to_state: shipped}\n"),
               "\"safe\":true}");
}

WORLD_TEST(compare, what_any_running_version_needs_is_needed_and_one_can_be_asked_for_alone)
{
    static const char second[] =
        HEAD "states: [new, paid, shipped, dropped]\ntransitions:\n" PAY DROP SHIP
             "  - {from_state: new, action: hold, to_state: new}\n";

    begin_orders(world);
    world_define(world, second);
    world_create(world, "order", NULL);
    EXPECT_HAS(against(world, "order", ORDER),
               "\"versions\":[1,2],\"states\":[{\"state\":\"new\",\"instances\":3,\"verdict\":"
               "\"exits missing\",\"missing\":[\"hold\"]},{\"state\":\"paid\",\"instances\":1,");
    EXPECT_HAS(against(world, "order@1", ORDER), "\"versions\":[1],");
    EXPECT_HAS(against(world, "order@1", ORDER), "\"safe\":true}");
    EXPECT_HAS(against(world, "order@2", ORDER), "\"instances\":1,\"verdict\":\"exits missing\"");
}

WORLD_TEST(compare, without_instances_every_text_is_safe_and_without_a_definition_none)
{
    world_define(world, ORDER);
    EXPECT_TEXT(against(world, "order", ORDER),
                "{\"name\":\"order\",\"versions\":[],\"states\":[],\"steps\":[],\"safe\":true}");
    EXPECT_TEXT(against(world, "ordre", ORDER), "not-known: no definition 'ordre' to compare with");
    EXPECT_HAS(against(world, "order@2", ORDER), "not-known: ");
    EXPECT_HAS(against(world, "a b", ORDER), "not-known: ");
    EXPECT_TEXT(against(world, "order", "states: [a]\n"), "null"); /* it has errors */
}

#define FLOW(second)                                                                               \
    "name: report\nsteps:\n  start: {name: begin, tool: set, args: {a: 1}, next: two}\n"           \
    "  two: {name: " second ", tool: sleep, args: {for: 1h}, done: true}\n"

WORLD_TEST(compare, flows_are_compared_by_the_names_of_live_steps)
{
    world_define(world, FLOW("rest"));
    world_create(world, "report", NULL);
    world_advance(world, 1000);
    EXPECT_TEXT(
        against(world, "report", FLOW("rest")),
        "{\"name\":\"report\",\"versions\":[1],\"states\":["
        "{\"state\":\"running\",\"instances\":1,\"verdict\":\"safe\",\"missing\":[]}],"
        "\"steps\":[{\"step\":\"rest\",\"instances\":1,\"verdict\":\"safe\",\"missing\":[]}],"
        "\"safe\":true}");
    EXPECT_HAS(against(world, "report", FLOW("sleep")),
               "\"steps\":[{\"step\":\"rest\",\"instances\":1,\"verdict\":\"step is gone\","
               "\"missing\":[]}],\"safe\":false}");
    EXPECT_HAS(against(world, "report", ORDER),
               "{\"state\":\"running\",\"instances\":1,\"verdict\":\"kind is different\"");
}

#define SELECT(arms)                                                                               \
    "name: pick\nsteps:\n  start: {name: w, select: [" arms "]}\n  b: {tool: set, done: true}\n"

WORLD_TEST(compare, arms_of_a_live_select_that_are_missing_are_named)
{
    world_define(world, SELECT("{signal: s0, then: b}, {signal: s1, then: b}, {timer: 1h, then: b}"));
    world_create(world, "pick", NULL);
    world_advance(world, 1000);
    EXPECT_HAS(against(world, "pick",
                       SELECT("{timer: 2h, then: b}, {signal: s1, then: b}, {signal: s0, then: b}")),
               "\"safe\":true}");
    EXPECT_HAS(against(world, "pick", SELECT("{signal: s0, then: b}")),
               "\"steps\":[{\"step\":\"w\",\"instances\":1,\"verdict\":\"arms missing\","
               "\"missing\":[\"signal s1\",\"timer 1h\"]}],\"safe\":false}");
}

WORLD_TEST(compare, one_version_of_a_flow_is_asked_for_alone)
{
    world_define(world, FLOW("rest"));
    world_create(world, "report", NULL);
    world_define(world, FLOW("nap"));
    world_create(world, "report", NULL);
    world_advance(world, 1000);
    EXPECT_HAS(against(world, "report", FLOW("nap")),
               "\"steps\":[{\"step\":\"nap\",\"instances\":1,\"verdict\":\"safe\",\"missing\":[]},"
               "{\"step\":\"rest\",\"instances\":1,\"verdict\":\"step is gone\"");
    EXPECT_HAS(against(world, "report@2", FLOW("nap")), "\"safe\":true}");
    EXPECT_HAS(against(world, "report@1", FLOW("nap")), "\"safe\":false}");
}

WORLD_TEST(compare, an_exit_that_two_versions_need_is_named_once)
{
    begin_orders(world);
    world_define(world, ORDER "# another text\n");
    world_create(world, "order", NULL);
    EXPECT_HAS(against(world, "order",
                       HEAD "states: [new, paid, shipped, dropped]\ntransitions:\n" PAY SHIP NOTE),
               "{\"state\":\"new\",\"instances\":3,\"verdict\":\"exits missing\","
               "\"missing\":[\"drop\"]}");
}

WORLD_TEST(compare, what_is_wrong_for_one_version_is_wrong_though_the_others_are_safe)
{
    static const char machine[] = "name: report\nstates: [running, done]\ninitial_state: running\n"
                                  "terminal_states: [done]\nterminal_kinds: {done: success}\n"
                                  "transitions:\n"
                                  "  - {from_state: running, action: end, to_state: done}\n";

    world_define(world, FLOW("rest"));
    world_create(world, "report", NULL);
    world_advance(world, 1000);
    world_define(world, machine);
    world_create(world, "report", NULL);
    EXPECT_HAS(against(world, "report", machine),
               "\"versions\":[1,2],\"states\":[{\"state\":\"running\",\"instances\":2,"
               "\"verdict\":\"kind is different\"");
    EXPECT_HAS(against(world, "report", FLOW("rest")),
               "\"verdict\":\"kind is different\",\"missing\":[]}],\"steps\":[{\"step\":\"rest\","
               "\"instances\":1,\"verdict\":\"safe\"");
}
