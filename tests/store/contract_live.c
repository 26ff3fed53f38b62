/* contract_live.c - the promises of store/store.h about numbers, heads and live rows. */
#include "store/contract.h"

/* ---- (5) and (6): numbers and heads ---- */

/* Contract (5) */
STORE_TEST(things_get_the_numbers_the_commit_says)
{
    struct change c = change_begin(s);
    struct definition_row definition;
    struct instance_row row;
    struct value value;

    add_definition(&c, STR("order"), 1, STR("a"));
    add_definition(&c, STR("order"), 2, STR("b"));
    add_value(&c, STR("x"), false);
    add_value(&c, STR("y"), false);
    add_instance(&c, 2)->subject = 2;
    add_instance(&c, 1)->parent = 1;
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_definition(s->store, s->scope, 2, &definition));
    EXPECT(definition.id == 2 && definition.version == 2);
    EXPECT_OK(store_value(s->store, s->scope, 2, &value));
    EXPECT_STR(value.bytes, "y");
    EXPECT_OK(store_instance(s->store, s->scope, 1, &row));
    EXPECT(row.number == 1 && row.definition == 2 && row.subject == 2 && row.created_pos == 1);
    EXPECT_OK(store_instance(s->store, s->scope, 2, &row));
    EXPECT(row.number == 2 && row.definition == 1 && row.parent == 1 && row.created_pos == 2);
}

/* Contract (6) */
STORE_TEST(a_head_never_goes_back)
{
    struct head_row head;
    struct change c;

    put_orders(s, 1);
    c = change_begin(s);
    add_entry(&c, 1, 1, 0, PAID);
    EXPECT_OK(change_commit(&c));
    c = change_begin(s);
    add_head(&c, 1, 0, 1, NEW); /* an old row, written late */
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_head(s->store, s->scope, 1, true, &head));
    EXPECT(head.seq == 1 && head.pos == 2 && head.state == PAID);
    c = change_begin(s);
    add_record(&c, 1, 1, CONTROL_PAUSE); /* same seq, higher position */
    add_head(&c, 1, 1, 3, PAID);
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_head(s->store, s->scope, 1, true, &head));
    EXPECT(head.seq == 1 && head.pos == 3);
}

/* Contract (4): the row as it is for an owner who knows what lags, the truth for all others. */
STORE_TEST(a_head_that_lags_is_overlaid_by_the_log_unless_rows_are_trusted)
{
    struct head_row head;
    struct change c;

    put_orders(s, 2);
    c = change_begin(s);
    c.lag = true;
    add_entry(&c, 1, 1, 0, PAID);
    add_entry(&c, 2, 1, 2, DROPPED);
    add_entry(&c, 1, 2, 1, SHIPPED);
    add_record(&c, 1, 2, CONTROL_ALARM);
    add_instance(&c, 1);
    add_record(&c, 0, 0, CONTROL_TOKEN);
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_head(s->store, s->scope, 1, true, &head));
    EXPECT(head.seq == 0 && head.pos == 1 && head.state == NEW);
    EXPECT_OK(store_head(s->store, s->scope, 1, false, &head));
    EXPECT(head.seq == 2 && head.pos == 6 && head.state == SHIPPED);
    EXPECT_OK(store_head(s->store, s->scope, 2, false, &head));
    EXPECT(head.seq == 1 && head.pos == 4 && head.state == DROPPED);
    EXPECT_OK(store_head(s->store, s->scope, 3, false, &head));
    EXPECT(head.seq == 0 && head.pos == 7 && head.state == NEW);
    EXPECT_OK(store_head(s->store, s->scope, 0, false, &head));
    EXPECT(head.seq == 0 && head.pos == 8);
}

/* ---- (7): live rows ---- */

/* Spread so that neither order of insertion nor of name is the order of due times. */
static int64_t spread_due(uint32_t i)
{
    return T0 + (int64_t)(i * 7919u % 100u);
}

static void arm_many(struct stand *s, uint32_t count)
{
    static char names[1000][8];
    struct change c = change_begin(s);

    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "t%u", i % 13);
        add_live(&c, (struct live_change){ .kind = LIVE_TIMER_PUT,
                                           .instance = 1 + i % 10,
                                           .ordinal = i / 130,
                                           .name = str_of(names[i]),
                                           .timer.due_at_ms = spread_due(i) });
    }
    EXPECT_OK(change_commit(&c));
}

static bool in_due_order(const struct live_timer *a, const struct live_timer *b)
{
    if (a->due_at_ms != b->due_at_ms)
        return a->due_at_ms < b->due_at_ms;
    if (a->instance != b->instance)
        return a->instance < b->instance;
    return a->ordinal != b->ordinal ? a->ordinal < b->ordinal : str_compare(a->name, b->name) < 0;
}

/* Contract (7) */
STORE_TEST(a_thousand_timers_come_due_in_order)
{
    struct live_timer *timers;
    uint32_t count, expected = 0;

    put_orders(s, 10);
    arm_many(s, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        expected += spread_due(i) <= T0 + 49;
    EXPECT_OK(store_due(s->store, s->scope, false, T0 + 49, 2000, &timers, &count));
    EXPECT_EQ(count, expected);
    for (uint32_t i = 1; i < count; i++)
        EXPECT(in_due_order(&timers[i - 1], &timers[i]) && timers[i].due_at_ms <= T0 + 49 &&
               timers[i].definition == 1);
    EXPECT_OK(store_due(s->store, s->scope, false, INT64_MAX, 1500, &timers, &count));
    EXPECT_EQ(count, 1000);
}

/* Contract (7) */
STORE_TEST(due_gives_no_more_than_asked_and_nothing_that_is_due_later)
{
    struct live_timer *timers;
    uint32_t count;

    put_orders(s, 10);
    EXPECT_OK(store_due(s->store, s->scope, false, INT64_MAX, 5, &timers, &count));
    EXPECT_EQ(count, 0);
    arm_many(s, 100); /* each due time once */
    EXPECT_OK(store_due(s->store, s->scope, false, T0 + 49, 5, &timers, &count));
    EXPECT(count == 5 && timers[4].due_at_ms == T0 + 4);
    EXPECT_OK(store_due(s->store, s->scope, false, T0, 5, &timers, &count));
    EXPECT(count == 1 && timers[0].due_at_ms == T0);
    EXPECT_OK(store_due(s->store, s->scope, false, T0 - 1, 5, &timers, &count));
    EXPECT_EQ(count, 0);
}

/* Contract (7): put again is moved, deleted is gone, a test instance's is never due. */
STORE_TEST(timers_are_moved_taken_back_and_kept_from_test_instances)
{
    struct live_change timer = { .kind = LIVE_TIMER_PUT, .instance = 1, .name = STR("a") };
    struct live_timer *timers;
    struct live live;
    uint32_t count;
    struct change c;

    put_orders(s, 2);
    c = change_begin(s);
    timer.timer.due_at_ms = T0;
    add_live(&c, timer);
    timer.timer.due_at_ms = T0 + 10;
    add_live(&c, timer);
    add_live(&c, (struct live_change){ .kind = LIVE_TIMER_PUT, .instance = 1, .name = STR("b") });
    add_live(&c,
             (struct live_change){ .kind = LIVE_TIMER_DELETE, .instance = 1, .name = STR("b") });
    add_live(&c,
             (struct live_change){ .kind = LIVE_TIMER_DELETE, .instance = 1, .name = STR("c") });
    timer.instance = 2;
    timer.timer.test = true;
    add_live(&c, timer);
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_due(s->store, s->scope, false, T0 + 10, 9, &timers, &count));
    EXPECT(count == 1 && timers[0].instance == 1);
    EXPECT_OK(store_live(s->store, s->scope, 2, &live));
    EXPECT(live.timer_count == 1 && live.timers[0].due_at_ms == T0 + 10);
    EXPECT_STR(live.timers[0].name, "a");
}

STORE_TEST(live_rows_are_what_the_changes_leave_in_order)
{
    struct live live;
    struct change c;

    put_orders(s, 3);
    c = change_begin(s);
    add_step(&c, 2, 4, STEP_READY);
    add_step(&c, 2, 3, STEP_PENDING);
    add_step(&c, 2, 4, STEP_RUNNING);
    add_step(&c, 2, 5, STEP_READY);
    add_live(&c, (struct live_change){ .kind = LIVE_STEP_DELETE, .instance = 2, .ordinal = 5 });
    add_live(&c, (struct live_change){ .kind = LIVE_WAIT_PUT, .instance = 2, .name = STR("go") });
    add_live(&c, (struct live_change){ .kind = LIVE_WAIT_PUT, .instance = 2, .name = STR("no") });
    add_live(&c,
             (struct live_change){ .kind = LIVE_WAIT_DELETE, .instance = 2, .name = STR("no") });
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_live(s->store, s->scope, 2, &live));
    EXPECT(live.step_count == 2 && live.timer_count == 0 && live.wait_count == 1);
    EXPECT(live.steps[0].ordinal == 3 && live.steps[0].status == STEP_PENDING);
    EXPECT(live.steps[1].ordinal == 4 && live.steps[1].status == STEP_RUNNING);
    EXPECT(live.steps[1].plan == 8 && live.steps[1].attempt == 3);
    EXPECT_STR(live.waits[0].name, "go");
}

STORE_TEST(clear_takes_all_live_rows_of_one_instance_and_nothing_else)
{
    struct snapshot_row snapshot;
    struct live live;
    struct change c;

    put_orders(s, 3);
    c = change_begin(s);
    for (uint64_t number = 1; number <= 3; number++) {
        add_step(&c, number, 1, STEP_READY);
        add_live(&c, (struct live_change){
                         .kind = LIVE_WAIT_PUT, .instance = number, .name = STR("w") });
        add_live(&c, (struct live_change){ .kind = LIVE_TIMER_PUT,
                                           .instance = number,
                                           .name = STR("t"),
                                           .timer.due_at_ms = T0 });
        add_snapshot(&c, number, 0, STR("s"));
    }
    EXPECT_OK(change_commit(&c));
    c = change_begin(s);
    add_live(&c, (struct live_change){ .kind = LIVE_CLEAR, .instance = 2 });
    add_step(&c, 2, 9, STEP_READY); /* applied in order: this one stays */
    EXPECT_OK(change_commit(&c));
    for (uint64_t number = 1; number <= 3; number++) {
        EXPECT_OK(store_live(s->store, s->scope, number, &live));
        EXPECT(live.step_count == 1 && live.timer_count == (number != 2));
        EXPECT(live.wait_count == (number != 2));
        EXPECT(live.steps[0].ordinal == (number == 2 ? 9 : 1));
    }
    EXPECT_OK(store_snapshot(s->store, s->scope, 2, &snapshot));
}

STORE_TEST(busy_names_instances_with_ready_or_running_steps_once)
{
    struct busy_row *rows;
    uint32_t count;
    struct change c;

    put_orders(s, 5);
    c = change_begin(s);
    add_step(&c, 1, 1, STEP_READY);
    add_step(&c, 1, 2, STEP_RUNNING);
    add_step(&c, 2, 1, STEP_PENDING);
    add_step(&c, 4, 1, STEP_RUNNING);
    add_step(&c, 5, 1, STEP_READY);
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_busy(s->store, s->scope, 0, false, 2, &rows, &count));
    EXPECT(count == 2 && rows[0].instance == 1 && rows[1].instance == 4);
    EXPECT(rows[1].live.step_count == 1 && rows[1].live.steps[0].status == STEP_RUNNING);
    EXPECT_OK(store_busy(s->store, s->scope, 4, false, 2, &rows, &count));
    EXPECT(count == 1 && rows[0].instance == 5);
    EXPECT_OK(store_busy(s->store, s->scope, 0, true, 2, &rows, &count));
    EXPECT(count == 2 && rows[0].instance == 1 && rows[1].instance == 2);
    EXPECT_OK(store_busy(s->store, s->scope, 2, true, 9, &rows, &count));
    EXPECT(count == 2 && rows[0].instance == 4 && rows[1].instance == 5);
}

STORE_TEST(a_snapshot_is_replaced_by_the_next_one)
{
    struct snapshot_row snapshot;
    struct change c;

    put_orders(s, 1);
    EXPECT_EQ(store_snapshot(s->store, s->scope, 1, &snapshot), PAWL_NOT_KNOWN);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        c = change_begin(s);
        add_snapshot(&c, 1, seq, seq == 3 ? STR("{\"third\":3}") : STR("{}"));
        EXPECT_OK(change_commit(&c));
    }
    EXPECT_OK(store_snapshot(s->store, s->scope, 1, &snapshot));
    EXPECT(snapshot.instance == 1 && snapshot.seq == 3);
    EXPECT_STR(snapshot.text, "{\"third\":3}");
}

/* ---- (12): keys ---- */

static pawl_status find_key(struct stand *s, uint8_t id, struct key_row *out)
{
    uint8_t bytes[KEY_ID_SIZE];

    memset(bytes, id, sizeof bytes);
    return store_key(s->store, s->scope, bytes, out);
}

#define DAY_MS INT64_C(86400000) /* a store may drop whole days */

/* A record of its own for this key, `day` days later. */
static void use_key(struct change *c, uint8_t id, int64_t day)
{
    struct record *record = add_record(c, 1, 0, CONTROL_KEYED);

    record->at_ms = record->fired_at_ms = T0 + day * DAY_MS;
    add_key(c, id, record);
}

/* Contract (12) */
STORE_TEST(a_key_names_its_last_record_and_only_old_ones_go_a_few_at_a_time)
{
    struct key_row row;
    struct change c;

    put_orders(s, 1);
    c = change_begin(s);
    for (uint8_t id = 1; id <= 5; id++)
        use_key(&c, id, id);
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(find_key(s, 3, &row));
    EXPECT(row.pos == 4 && row.at_ms == T0 + 3 * DAY_MS && row.id[0] == 3);
    EXPECT_EQ(find_key(s, 6, &row), PAWL_NOT_KNOWN);
    c = change_begin(s);
    use_key(&c, 5, 6);                  /* used again */
    c.keys_before_ms = T0 + 4 * DAY_MS; /* the first three are older */
    EXPECT_OK(change_commit(&c));
    EXPECT_EQ(find_key(s, 1, &row), PAWL_NOT_KNOWN);
    EXPECT_EQ(find_key(s, 2, &row), PAWL_NOT_KNOWN);
    EXPECT_OK(find_key(s, 3, &row)); /* two for one */
    EXPECT_OK(find_key(s, 4, &row));
    EXPECT_OK(find_key(s, 5, &row));
    EXPECT_EQ(row.pos, 7);
    if (!s->is_memory)
        stand_reopen(s);
    EXPECT_OK(find_key(s, 5, &row));
}

/* ---- (7): pauses; tokens and alarms ---- */

static uint32_t count_due(struct stand *s)
{
    struct live_timer *timers;
    uint32_t count;

    EXPECT_OK(store_due(s->store, s->scope, false, T0 + 100, 10, &timers, &count));
    return count;
}

/* Contract (7) */
STORE_TEST(timers_of_a_paused_instance_are_not_due_until_it_is_resumed_or_cleared)
{
    struct head_row head;
    struct live live;
    struct change c;

    put_orders(s, 2);
    c = change_begin(s);
    for (uint64_t n = 1; n <= 2; n++)
        add_live(&c, (struct live_change){ .kind = LIVE_TIMER_PUT,
                                           .instance = n,
                                           .name = STR("t"),
                                           .timer.due_at_ms = T0 + (int64_t)n });
    add_record(&c, 1, 0, CONTROL_PAUSE);
    add_live(&c, (struct live_change){ .kind = LIVE_PAUSE_PUT, .instance = 1, .pause.pos = c.tip.pos });
    EXPECT_OK(change_commit(&c));
    EXPECT_EQ(count_due(s), 1);
    EXPECT_OK(store_live(s->store, s->scope, 1, &live));
    EXPECT_EQ(live.paused_pos, c.tip.pos);
    EXPECT_OK(store_head(s->store, s->scope, 1, true, &head));
    EXPECT(head.paused);
    EXPECT_OK(store_head(s->store, s->scope, 2, true, &head));
    EXPECT(!head.paused);
    c = change_begin(s);
    add_live(&c, (struct live_change){ .kind = LIVE_PAUSE_DELETE, .instance = 1 });
    add_live(&c, (struct live_change){ .kind = LIVE_PAUSE_PUT, .instance = 2, .pause.pos = 1 });
    add_live(&c, (struct live_change){ .kind = LIVE_CLEAR, .instance = 2 });
    EXPECT_OK(change_commit(&c));
    EXPECT_EQ(count_due(s), 1); /* the first one's; the second has none left */
    EXPECT_OK(store_live(s->store, s->scope, 2, &live));
    EXPECT_EQ(live.paused_pos, 0);
}

static void keep(struct change *c, str id, int64_t due_at_ms, bool is_put)
{
    const struct standing_change change = {
        .row = { CONTROL_ALARM, id, due_at_ms, add_record(c, 0, 0, CONTROL_ALARM)->pos, 0 },
        .is_put = is_put,
    };
    struct record *last = &c->records[c->count[0] - 1];

    last->has_root = true;
    EXPECT_OK(store_commit(c->store, c->stand->scope,
                           &(struct commit){ .records = c->records,
                                             .record_count = c->count[0],
                                             .standing = &change,
                                             .standing_count = 1 }));
}

STORE_TEST(what_is_kept_is_found_by_its_id_and_listed_by_its_time_until_it_is_over)
{
    static const char *const ids[] = { "late", "early", "gone" };
    struct standing_row row, *rows;
    struct change c;
    uint32_t count;

    for (int i = 0; i < 3; i++) {
        c = change_begin(s);
        keep(&c, str_of(ids[i]), T0 + 30 - i, true);
    }
    c = change_begin(s);
    keep(&c, STR("gone"), 0, false);
    EXPECT_OK(store_standing(s->store, s->scope, CONTROL_ALARM, STR("late"), &row));
    EXPECT(row.pos == 1 && row.due_at_ms == T0 + 30 && row.what == CONTROL_ALARM);
    EXPECT_EQ(store_standing(s->store, s->scope, CONTROL_ALARM, STR("gone"), &row), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_standing(s->store, s->scope, CONTROL_TOKEN, STR("late"), &row), PAWL_NOT_KNOWN);
    EXPECT_OK(store_standing_list(s->store, s->scope, CONTROL_ALARM, 10, &rows, &count));
    EXPECT_EQ(count, 2);
    EXPECT_STR(rows[0].id, "early");
    EXPECT_STR(rows[1].id, "late");
    EXPECT_OK(store_standing_list(s->store, s->scope, CONTROL_ALARM, 1, &rows, &count));
    EXPECT_EQ(count, 1);
}

/* ---- Many rows in one commit ---- */

#define MANY_STEPS 700

/* Contract (5): those named and no others, however many. */
STORE_TEST(very_many_rows_go_in_one_commit_as_few_do)
{
    struct live live;
    struct change c;

    put_orders(s, 2);
    c = change_begin(s);
    for (uint32_t i = 1; i <= MANY_STEPS; i++)
        for (uint64_t instance = 1; instance <= 2; instance++)
            add_step(&c, instance, i, STEP_READY);
    EXPECT_OK(change_commit(&c));
    c = change_begin(s);
    for (uint32_t i = 2; i <= MANY_STEPS; i++)
        add_live(&c, (struct live_change){
                         .kind = LIVE_STEP_DELETE, .instance = 1 + i % 2, .ordinal = i });
    EXPECT_OK(change_commit(&c));
    for (uint64_t instance = 1; instance <= 2; instance++) {
        EXPECT_OK(store_live(s->store, s->scope, instance, &live));
        EXPECT_EQ(live.step_count, instance == 1 ? MANY_STEPS / 2 + 0u : MANY_STEPS / 2 + 1u);
        for (uint32_t i = 1; i < live.step_count; i++)
            EXPECT_EQ(live.steps[i].ordinal % 2, instance == 1 ? 1u : 0u);
    }
}
