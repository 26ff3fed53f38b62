/* evidence_verify.c - what a check of a store finds, where it says it is, and what it forgives. */
#include "evidence_world.h"

TEST(verify, a_store_with_definitions_alone_is_valid)
{
    struct world w;

    world_open(&w, t);
    world_expect_valid(&w, 2, 0, 0);
    world_close(&w);
}

TEST(verify, records_entries_and_instances_are_counted)
{
    struct world w;
    struct verify_report report;

    world_two_orders(&w, t);
    world_expect_valid(&w, 7, 3, 2);
    world_check(&w, 1, &report);
    EXPECT(report.valid);
    EXPECT_EQ(report.records, 3);
    EXPECT_EQ(report.entries, 2);
    world_close(&w);
}

TEST(verify, an_unknown_instance_is_not_known)
{
    struct world w;
    struct verify_report report;
    pawl_error error;

    world_two_orders(&w, t);
    EXPECT(verify_run(w.store, &heap_libc, &(struct verify_request){ .instance = 9 }, &report,
                      &error) == PAWL_NOT_KNOWN);
    EXPECT(verify_run(w.store, &heap_libc, &(struct verify_request){ .instance = UINT64_MAX },
                      &report, &error) == PAWL_NOT_KNOWN);
    world_close(&w);
}

TEST(verify, every_64th_entry_points_back)
{
    struct world w;

    world_two_orders(&w, t);
    for (int i = 0; i < 200; i++) {
        world_record(&w, 2, ORDER_NOTE, NULL);
        if (i % 50 == 49)
            world_commit(&w);
    }
    world_expect_valid(&w, 207, 203, 2);
    world_close(&w);
}

/* ---- damage, field by field ---- */

#define LIE(name, change)                                                                          \
    static void name(struct record *record)                                                        \
    {                                                                                              \
        if (record->pos == 4)                                                                      \
            change;                                                                                \
    }

LIE(lie_pos, record->pos++)
LIE(lie_instance, record->instance = 2)
LIE(lie_seq, record->seq ^= 2)
LIE(lie_prev, record->prev ^= 1)
LIE(lie_skip, record->skip = 1)
LIE(lie_what, record->what = ORDER_NOTE)
LIE(lie_far_what, record->what = INT32_MAX)
LIE(lie_low_what, record->what = INT32_MIN)
LIE(lie_flags, record->flags ^= 1)
LIE(lie_at, record->at_ms += 1)
LIE(lie_at_back, record->at_ms = 0)
LIE(lie_fired, record->fired_at_ms -= 1)
LIE(lie_step, record->step = 1)
LIE(lie_ordinal, record->ordinal = 1)
LIE(lie_attempt, record->attempt = 1)
LIE(lie_actor, record->actor = record->payload)
LIE(lie_no_actor, record->actor = 0)
LIE(lie_strange_actor, record->actor = UINT64_C(1) << 62)
LIE(lie_payload, record->payload = 0)
LIE(lie_reason, record->reason = record->actor)
LIE(lie_body, record->body = STR("[]"))
LIE(lie_key, record->key = STR("k"))
LIE(lie_hash, record->hash[31] ^= 1)
LIE(lie_create, record->what = CONTROL_CREATE)
LIE(lie_define, record->what = CONTROL_DEFINE)

TEST(verify, no_field_of_a_record_can_change_unseen)
{
    static void (*const lies[])(struct record *) = {
        lie_instance, lie_seq,           lie_prev,    lie_skip,    lie_what,
        lie_far_what, lie_low_what,      lie_flags,   lie_at,      lie_at_back,
        lie_fired,    lie_step,          lie_ordinal, lie_attempt, lie_actor,
        lie_no_actor, lie_strange_actor, lie_payload, lie_reason,  lie_body,
        lie_key,      lie_hash,          lie_create,  lie_define,  lie_pos,
    };
    struct world w;
    struct liar liar;
    struct verify_report report;
    pawl_error error;

    world_two_orders(&w, t);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        liar_init(&liar, w.store);
        liar.record = lies[i];
        EXPECT_OK(
            verify_run(&liar.store, &heap_libc, &(struct verify_request){ 0 }, &report, &error));
        EXPECT(!report.valid);
        EXPECT(report.what[0]);
        EXPECT_EQ(report.bad_pos, 4);
    }
    world_close(&w);
}

TEST(verify, a_finding_names_the_instance_and_the_entry)
{
    struct world w;
    struct liar liar;
    struct verify_report report;
    pawl_error error;
    char id[ID_SIZE + 1];

    world_two_orders(&w, t);
    id_print(1, w.chains[1].random, id);
    liar_init(&liar, w.store);
    liar.record = lie_hash;
    for (uint64_t number = 0; number < 2; number++) {
        EXPECT_OK(verify_run(&liar.store, &heap_libc,
                             &(struct verify_request){ .instance = number }, &report, &error));
        EXPECT_EQ(report.bad_pos, 4);
        EXPECT_EQ(report.bad_seq, 1);
        EXPECT_TEXT(report.bad_instance, id);
        EXPECT_TEXT(report.what, "the record does not match its hash");
    }
    world_close(&w);
}

LIE(lie_root, (record->has_root = true, record->root[0] = 1))

TEST(verify, a_root_in_the_midst_of_a_commit_is_seen)
{
    struct world w;
    struct liar liar;
    struct verify_report report;
    pawl_error error;

    world_two_orders(&w, t);
    liar_init(&liar, w.store);
    liar.record = lie_root;
    EXPECT_OK(verify_run(&liar.store, &heap_libc, &(struct verify_request){ 0 }, &report, &error));
    EXPECT_HAS(report.what, "the root of this commit");
    EXPECT_EQ(report.bad_pos, 4);
    world_close(&w);
}

static void lie_last_root(struct record *record)
{
    if (record->pos == 7)
        record->has_root = false;
}

TEST(verify, a_commit_without_its_end_is_seen)
{
    struct world w;
    struct liar liar;
    struct verify_report report;
    pawl_error error;

    world_two_orders(&w, t);
    liar_init(&liar, w.store);
    liar.record = lie_last_root;
    EXPECT_OK(verify_run(&liar.store, &heap_libc, &(struct verify_request){ 0 }, &report, &error));
    EXPECT_HAS(report.what, "no root");
    world_close(&w);
}

/* ---- what the other rows say ---- */

static void lie_value_bytes(struct value *value)
{
    value->bytes = STR("eve");
}

static void lie_commitment(struct value *value)
{
    value->commitment[0] ^= 1;
}

static void lie_source(struct definition_row *row)
{
    row->source = STR("another");
}

static void lie_compiled(struct definition_row *row)
{
    row->compiled = STR("{}");
}

static void lie_kind(struct definition_row *row)
{
    row->kind = KIND_CODE;
}

static void lie_version(struct definition_row *row)
{
    row->version++;
}

static void lie_created_pos(struct instance_row *row)
{
    row->created_pos++;
}

static void lie_definition(struct instance_row *row)
{
    row->definition = row->definition == 1 ? 2 : 99;
}

static void lie_parent(struct instance_row *row)
{
    row->parent = UINT64_MAX;
}

static void lie_labels(struct instance_row *row)
{
    row->labels = STR("{\"team\":\"x\"}");
}

static void lie_test(struct instance_row *row)
{
    row->test = !row->test;
}

static void lie_state(struct head_row *row)
{
    if (row->instance == 2)
        row->state++;
}

static void lie_head_seq(struct head_row *row)
{
    if (row->instance == 2)
        row->seq++;
}

static void lie_head_pos(struct head_row *row)
{
    if (row->instance == 2)
        row->pos = UINT64_MAX;
}

static void lie_timer(struct live *live)
{
    static struct live_timer timer = { .name = STR_INIT("ghost"), .due_at_ms = 1 };

    live->timers = &timer;
    live->timer_count = 1;
}

static void lie_tip(struct store_tip *tip)
{
    tip->pos++;
}

static void lie_last_value(struct store_tip *tip)
{
    tip->last_value = INT64_MAX;
}

static void lie_last_instance(struct store_tip *tip)
{
    tip->last_instance = INT64_MAX;
}

static void lie_store_id(struct store_tip *tip)
{
    tip->store_id[0] ^= 1;
}

TEST(verify, no_row_can_change_unseen)
{
    const struct liar lies[] = {
        { .value = lie_value_bytes },    { .value = lie_commitment },
        { .definition = lie_source },    { .definition = lie_compiled },
        { .definition = lie_kind },      { .definition = lie_version },
        { .instance = lie_created_pos }, { .instance = lie_definition },
        { .instance = lie_parent },      { .instance = lie_labels },
        { .instance = lie_test },        { .head = lie_state },
        { .head = lie_head_seq },        { .head = lie_head_pos },
        { .live = lie_timer },           { .tip = lie_tip },
        { .tip = lie_last_value },       { .tip = lie_last_instance },
        { .tip = lie_store_id },
    };
    struct world w;
    struct verify_report report;
    pawl_error error;

    world_two_orders(&w, t);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct liar liar = lies[i], honest;

        liar_init(&honest, w.store);
        liar.store = honest.store;
        liar.truth = w.store;
        EXPECT_OK(
            verify_run(&liar.store, &heap_libc, &(struct verify_request){ 0 }, &report, &error));
        EXPECT(!report.valid);
        EXPECT(report.what[0]);
    }
    world_close(&w);
}

TEST(verify, head_rows_may_lag_behind_the_log)
{
    struct world w;

    world_two_orders(&w, t);
    w.lag = true;
    world_record(&w, 2, ORDER_NOTE, NULL);
    world_record(&w, 2, ORDER_PAY, NULL);
    world_record(&w, 2, CONTROL_PAUSE, NULL);
    world_live(&w, (struct live_change){ .kind = LIVE_PAUSE_PUT, .instance = 2, .pause.pos = 10 });
    world_commit(&w);
    world_expect_valid(&w, 10, 5, 2);
    w.lag = false;
    world_record(&w, 0, CONTROL_KEYED, "{}");
    world_commit(&w);
    world_expect_valid(&w, 11, 5, 2);
    world_close(&w);
}

/* ---- rightly hashed, and yet not allowed ---- */

TEST(verify, a_transition_from_another_state_is_refused_though_its_hash_is_right)
{
    struct world w;

    world_two_orders(&w, t);
    world_record(&w, 2, ORDER_SHIP, NULL);
    world_commit(&w);
    world_expect_bad(&w, 8, 2, "leaves state 1, but the instance was in state 0");
    world_close(&w);
}

TEST(verify, an_undeclared_transition_is_refused)
{
    struct world w;

    world_two_orders(&w, t);
    world_record(&w, 2, 17, NULL);
    world_commit(&w);
    world_expect_bad(&w, 8, 2, "transition 17 is not declared");
    world_close(&w);
}

TEST(verify, nothing_follows_a_terminal_state)
{
    struct world w;

    world_two_orders(&w, t);
    world_record(&w, 1, ORDER_NOTE, NULL);
    world_commit(&w);
    world_expect_bad(&w, 8, 3, "after the instance has ended");
    world_close(&w);
}

TEST(verify, a_guard_is_asserted_exactly_where_it_is_declared)
{
    for (int32_t what = 0; what <= ORDER_NOTE; what += ORDER_NOTE) {
        struct world w;
        struct record *record;

        world_two_orders(&w, t);
        record = world_record(&w, 2, what, NULL);
        record->flags ^= RECORD_GUARD;
        world_seal(&w, record);
        world_commit(&w);
        world_expect_bad(&w, 8, 2, what == ORDER_PAY ? "was not asserted" : "is not declared");
        world_close(&w);
    }
}

/* D35, invariant 9: every entry is complete. */
TEST(verify, an_entry_has_a_reason_where_its_transition_requires_one)
{
    struct world w;
    struct record *record;

    world_two_orders(&w, t);
    world_record(&w, 2, ORDER_VOID, NULL);
    world_commit(&w);
    world_expect_bad(&w, 8, 2, "requires a reason");
    world_close(&w);
    world_two_orders(&w, t);
    record = world_record(&w, 2, ORDER_VOID, NULL);
    record->reason = record->payload;
    world_seal(&w, record);
    world_commit(&w);
    world_expect_valid(&w, 8, 4, 2);
    world_close(&w);
}

TEST(verify, an_instance_without_a_create_record_is_seen)
{
    struct world w;

    world_two_orders(&w, t);
    w.instances[0] = (struct instance_row){ .number = 3, .definition = 1 };
    w.next.instance_count = 1;
    world_record(&w, 0, CONTROL_KEYED, "{}");
    world_commit(&w);
    world_expect_bad(&w, 0, 0, "no record creates it");
    world_close(&w);
}
