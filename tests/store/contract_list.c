/* contract_list.c - the promises of store/store.h about lists, and reads without memory. */
#include "lib/fault.h"
#include "store/contract.h"

/* ---- (9): list ---- */

static void expect_list(struct stand *s, struct list_query query, const char *expected)
{
    char found[256] = "";
    uint64_t *numbers;
    uint32_t count;

    query.limit = query.limit ? query.limit : 100;
    EXPECT_OK(store_list(s->store, s->scope, &query, &numbers, &count));
    for (uint32_t i = 0; i < count; i++)
        (void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s%u", i ? " " : "",
                       (unsigned)numbers[i]);
    EXPECT_TEXT(found, expected);
}

/* Contract (9) */
STORE_TEST(a_list_goes_on_where_it_stopped_whatever_was_created_meanwhile)
{
    struct change c;

    put_orders(s, 5);
    expect_list(s, (struct list_query){ .limit = 2, .oldest_first = true }, "1 2");
    expect_list(s, (struct list_query){ .limit = 2 }, "5 4");
    c = change_begin(s);
    add_instance(&c, 1);
    add_instance(&c, 1);
    EXPECT_OK(change_commit(&c));
    expect_list(s, (struct list_query){ .after = 2, .oldest_first = true }, "3 4 5 6 7");
    expect_list(s, (struct list_query){ .after = 4 }, "3 2 1");
    expect_list(s, (struct list_query){ .after = 7, .oldest_first = true }, "");
    expect_list(s, (struct list_query){ .after = 1 }, "");
}

/* Instances 1..6 that differ in all a list can ask for. */
static void put_variety(struct stand *s)
{
    struct change c = change_begin(s);
    struct instance_row *row;

    add_definition(&c, STR("order"), 1, STR("1"));
    add_definition(&c, STR("order"), 2, STR("2"))->kind = KIND_FLOW;
    add_definition(&c, STR_NONE, 0, STR("3"));
    add_value(&c, STR("A-17"), true);
    row = add_instance(&c, 1);
    row->subject = 1, row->correlation = STR("c1"), row->labels = STR("{\"a\":\"1\",\"b\":\"2\"}");
    row = add_instance(&c, 2);
    row->subject = 1, row->labels = STR("{\"a\":\"1\"}"), row->instantiated_at_ms = T0 - 1000;
    row = add_instance(&c, 3);
    row->correlation = STR("c1"), row->instantiated_at_ms = T0 - 2000;
    for (uint32_t i = 4; i <= 6; i++)
        add_instance(&c, 1);
    EXPECT_OK(change_commit(&c));
    c = change_begin(s);
    add_entry(&c, 1, 1, 0, PAID);
    add_step(&c, 2, 1, STEP_READY);
    add_step(&c, 3, 1, STEP_PENDING);
    add_entry(&c, 4, 1, 2, DROPPED);
    add_entry(&c, 5, 1, 3, BURNT);
    add_entry(&c, 6, 1, 0, PAID);
    c.heads[c.count[4] - 1] = (struct head_row){ 6, 2, c.tip.pos + 1, SHIPPED };
    add_record(&c, 6, 2, 1);
    EXPECT_OK(change_commit(&c));
}

/* Contract (9) */
STORE_TEST(a_list_gives_what_matches_every_filter)
{
    put_variety(s);
    expect_list(s, (struct list_query){ .definition = STR("order") }, "6 5 4 2 1");
    expect_list(s, (struct list_query){ .definition = STR("order"), .version = 2 }, "2");
    expect_list(s, (struct list_query){ .definition = STR("ord") }, "");
    expect_list(s, (struct list_query){ .kind = KIND_FLOW }, "2");
    expect_list(s, (struct list_query){ .state = STR("paid") }, "1");
    expect_list(s, (struct list_query){ .state = STR("new") }, "3 2");
    expect_list(s, (struct list_query){ .status = STATUS_RUNNING }, "2");
    expect_list(s, (struct list_query){ .status = STATUS_SUSPENDED }, "3 1");
    expect_list(s, (struct list_query){ .status = STATUS_COMPLETED }, "6");
    expect_list(s, (struct list_query){ .status = STATUS_FAILED }, "5");
    expect_list(s, (struct list_query){ .status = STATUS_CANCELLED }, "4");
    expect_list(s, (struct list_query){ .subject = STR("A-17"), .oldest_first = true }, "1 2");
    expect_list(s, (struct list_query){ .subject = STR("A-1") }, "");
    expect_list(s, (struct list_query){ .correlation = STR("c1") }, "3 1");
    expect_list(s, (struct list_query){ .correlation = STR("c1"), .state = STR("new") }, "3");
    expect_list(s, (struct list_query){ .subject = STR("A-17"), .limit = 1, .after = 2 }, "1");
}

/* Contract (9): every filter beside every other, whichever of them drives. */
STORE_TEST(filters_together_give_what_each_of_them_gives)
{
    put_variety(s);
    expect_list(s, (struct list_query){ .definition = STR("order"), .correlation = STR("c1") },
                "1");
    expect_list(s, (struct list_query){ .subject = STR("A-17"), .kind = KIND_FLOW }, "2");
    expect_list(s,
                (struct list_query){ .label_count = 1,
                                     .label_key = { STR("a") },
                                     .label_value = { STR("1") },
                                     .status = STATUS_RUNNING },
                "2");
    expect_list(s,
                (struct list_query){ .label_count = 1,
                                     .label_key = { STR("a") },
                                     .label_value = { STR("1") },
                                     .definition = STR("order"),
                                     .version = 1,
                                     .oldest_first = true },
                "1");
    expect_list(s, (struct list_query){ .kind = KIND_MACHINE, .status = STATUS_SUSPENDED }, "3 1");
    expect_list(s, (struct list_query){ .definition = STR("order"), .limit = 2, .after = 5 },
                "4 2");
    expect_list(s,
                (struct list_query){
                    .definition = STR("order"), .limit = 2, .after = 1, .oldest_first = true },
                "2 4");
    expect_list(s,
                (struct list_query){ .definition = STR("order"),
                                     .created.has_after = true,
                                     .created.after_ms = T0,
                                     .state = STR("shipped") },
                "6");
    expect_list(s, (struct list_query){ .status = STATUS_RUNNING, .state = STR("paid") }, "");
}

/* Contract (9) */
STORE_TEST(a_list_matches_labels_and_times_inclusively)
{
    struct list_query query = { .label_count = 1,
                                .label_key = { STR("a"), STR("b") },
                                .label_value = { STR("1"), STR("2") } };

    put_variety(s);
    expect_list(s, query, "2 1");
    query.label_count = 2;
    expect_list(s, query, "1");
    query.label_value[1] = STR("3");
    expect_list(s, query, "");
    query = (struct list_query){ .created.has_after = true, .created.after_ms = T0 - 1000 };
    expect_list(s, query, "6 5 4 2 1");
    query.created.has_before = true;
    query.created.before_ms = T0 - 1;
    expect_list(s, query, "2");
    query.created.has_after = false;
    query.created.before_ms = T0 - 1000;
    expect_list(s, query, "3 2");
    query = (struct list_query){ .created.has_after = true, .created.after_ms = T0 + 100000 };
    expect_list(s, query, "");
}

/* Contract (4), (9): state in a list is not older than the log. */
STORE_TEST(a_list_by_state_sees_through_rows_that_lag)
{
    struct change c;

    put_orders(s, 3);
    c = change_begin(s);
    c.lag = true;
    add_entry(&c, 2, 1, 0, PAID);
    add_entry(&c, 3, 1, 2, DROPPED);
    EXPECT_OK(change_commit(&c));
    expect_list(s, (struct list_query){ .state = STR("paid") }, "2");
    expect_list(s, (struct list_query){ .state = STR("new") }, "1");
    expect_list(s, (struct list_query){ .status = STATUS_CANCELLED }, "3");
}

/* ---- Counts ---- */

static void expect_counts(struct stand *s, str name, uint32_t version, const char *expected)
{
    char found[256] = "";
    struct state_count *counts;
    uint32_t count;

    EXPECT_OK(store_counts(s->store, s->scope, name, version, &counts, &count));
    for (int definition = 1; definition <= 3; definition++) /* in no order: sort by version */
        for (uint32_t i = 0; i < count; i++)
            if ((counts[i].definition.data ? (int)counts[i].version : 3) == definition)
                (void)snprintf(found + strlen(found), sizeof found - strlen(found),
                               "%s%.*s@%u:%.*s=%u/%u", found[0] ? " " : "",
                               STR_ARG(counts[i].definition), counts[i].version,
                               STR_ARG(counts[i].state), (unsigned)counts[i].total,
                               (unsigned)counts[i].running);
    EXPECT_TEXT(found, expected);
}

STORE_TEST(counts_are_by_version_and_state_and_tell_who_is_running)
{
    expect_counts(s, STR_NONE, 0, "");
    put_variety(s);
    expect_counts(s, STR("order"), 2, "order@2:new=1/1");
    expect_counts(s, STR("ord"), 0, "");
    expect_counts(s, STR("order"), 3, "");
}

/* What is held is neither running nor suspended, in lists and in counts. */
STORE_TEST(what_is_paused_is_listed_and_counted_as_that_alone)
{
    struct state_count *counts;
    uint32_t count;
    struct change c;

    put_orders(s, 4);
    c = change_begin(s);
    add_step(&c, 1, 1, STEP_READY);
    add_step(&c, 2, 1, STEP_READY);
    for (uint64_t n = 2; n <= 3; n++) {
        add_record(&c, n, 0, CONTROL_PAUSE);
        add_live(&c,
                 (struct live_change){ .kind = LIVE_PAUSE_PUT, .instance = n, .pause.pos = c.tip.pos });
    }
    EXPECT_OK(change_commit(&c));
    expect_list(s, (struct list_query){ .status = STATUS_PAUSED }, "3 2");
    expect_list(s, (struct list_query){ .status = STATUS_RUNNING }, "1");
    expect_list(s, (struct list_query){ .status = STATUS_SUSPENDED }, "4");
    expect_list(s, (struct list_query){ .status = STATUS_PAUSED, .definition = STR("order") },
                "3 2");
    expect_list(s, (struct list_query){ .status = STATUS_PAUSED, .after = 3 }, "2");
    EXPECT_OK(store_counts(s->store, s->scope, STR_NONE, 0, &counts, &count));
    EXPECT_EQ(count, 1);
    EXPECT(counts[0].total == 4 && counts[0].running == 1 && counts[0].paused == 2);
}

/* Contract (4): counts are not older than the log. */
STORE_TEST(counts_see_through_rows_that_lag)
{
    struct change c;

    put_orders(s, 3);
    expect_counts(s, STR_NONE, 0, "order@1:new=3/0");
    c = change_begin(s);
    c.lag = true;
    add_entry(&c, 2, 1, 0, PAID);
    add_entry(&c, 1, 1, 0, PAID);
    add_entry(&c, 3, 1, 0, PAID);
    EXPECT_OK(change_commit(&c));
    expect_counts(s, STR_NONE, 0, "order@1:paid=3/0");
}

STORE_TEST(live_steps_are_counted_by_version_and_step)
{
    struct step_count *counts;
    struct change c;
    uint32_t count;

    put_variety(s); /* instance 2 is of version 2, 1 and 4..6 are of version 1, 3 is inline */
    c = change_begin(s);
    add_step(&c, 2, 7, STEP_PENDING);
    add_step(&c, 1, 1, STEP_RUNNING);
    add_step(&c, 4, 1, STEP_READY);
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_step_counts(s->store, s->scope, STR("order"), &counts, &count));
    EXPECT_EQ(count, 3);
    EXPECT(counts[0].version == 1 && counts[0].total == 2);
    EXPECT(counts[1].version == 2 && counts[1].total == 1);
    EXPECT(counts[2].version == 2 && counts[2].total == 1);
    EXPECT(counts[1].plan < counts[2].plan);
    EXPECT_OK(store_step_counts(s->store, s->scope, STR("ord"), &counts, &count));
    EXPECT_EQ(count, 0);
}

/* ---- Memory ---- */

static void expect_ok_or_no_memory(pawl_status status)
{
    EXPECT(status == PAWL_OK || status == PAWL_NO_MEMORY);
}

/* One round of every read that copies, with a scope that runs out of memory once. */
static void read_all(struct stand *s, struct scope *scope)
{
    struct list_query query = {
        .limit = 9, .label_count = 1, .label_key = { STR("a") }, .label_value = { STR("1") }
    };
    struct definition_row definition, *definitions;
    struct live_timer *timers;
    struct state_count *counts;
    struct step_count *steps;
    struct record record;
    struct live live;
    struct busy_row *busy;
    uint64_t *numbers;
    uint32_t count;

    expect_ok_or_no_memory(store_record(s->store, scope, 2, &record));
    expect_ok_or_no_memory(store_definition(s->store, scope, 1, &definition));
    expect_ok_or_no_memory(store_definitions(s->store, scope, STR_NONE, 9, &definitions, &count));
    expect_ok_or_no_memory(store_live(s->store, scope, 2, &live));
    expect_ok_or_no_memory(store_due(s->store, scope, false, T0, 9, &timers, &count));
    expect_ok_or_no_memory(store_busy(s->store, scope, 0, true, 9, &busy, &count));
    expect_ok_or_no_memory(store_list(s->store, scope, &query, &numbers, &count));
    expect_ok_or_no_memory(store_counts(s->store, scope, STR_NONE, 0, &counts, &count));
    expect_ok_or_no_memory(store_step_counts(s->store, scope, STR("order"), &steps, &count));
}

STORE_TEST(a_read_that_runs_out_of_memory_says_so)
{
    struct fault_heap fault = { 0 };

    put_variety(s);
    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct scope scope;

        scope_init(&scope, &fault.heap, 0);
        read_all(s, &scope);
        scope_fini(&scope);
    }
}
