/* contract.c - every numbered promise of store/store.h, over every backend. */
#include "store/contract.h"
#include "lib/fault.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static void expect_missing(struct stand *s, uint64_t instance, uint64_t pos, uint64_t value)
{
    struct instance_row row;
    struct head_row head;
    struct record record;
    struct value found;

    EXPECT_EQ(store_instance(s->store, s->scope, instance, &row), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_head(s->store, s->scope, instance, true, &head), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_head(s->store, s->scope, instance, false, &head), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_record(s->store, s->scope, pos, &record), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_value(s->store, s->scope, value, &found), PAWL_NOT_KNOWN);
}

static struct store_tip tip_of(struct stand *s)
{
    struct store_tip tip;

    EXPECT_OK(store_tip(s->store, s->scope, &tip));
    return tip;
}

/* ---- (1) and (2): all or nothing, durable ---- */

/* One commit with something of everything: definition 1, instance 1, value 1, snapshot. */
static void add_everything(struct change *c)
{
    uint32_t definition = add_definition(c, STR("order"), 1, STR("name: order\n"))->id;
    uint64_t actor = add_value(c, STR("ann"), true)->id;
    uint64_t number = add_instance(c, definition)->number;

    add_entry(c, number, 1, 0, PAID)->actor = actor;
    add_live(c, (struct live_change){ .kind = LIVE_TIMER_PUT,
                                      .instance = number,
                                      .name = STR("late"),
                                      .due_at_ms = T0 + 5 });
    add_live(c,
             (struct live_change){
                 .kind = LIVE_STEP_PUT, .instance = number, .ordinal = 1, .status = STEP_READY });
    add_snapshot(c, number, 1, STR("{}"));
    c->test_now_ms = T0 + 99;
}

static void expect_everything(struct stand *s)
{
    struct head_row head;
    struct record record;
    struct live live;
    struct snapshot_row snapshot;
    struct store_tip tip = tip_of(s);

    EXPECT_OK(store_head(s->store, s->scope, 1, true, &head));
    EXPECT(head.seq == 1 && head.pos == 2 && head.state == PAID && head.instance == 1);
    EXPECT_OK(store_record(s->store, s->scope, 2, &record));
    EXPECT(record.actor == 1 && record.has_root && record.what == 0 && record.seq == 1);
    EXPECT_OK(store_live(s->store, s->scope, 1, &live));
    EXPECT(live.step_count == 1 && live.timer_count == 1 && live.wait_count == 0);
    EXPECT_OK(store_snapshot(s->store, s->scope, 1, &snapshot));
    EXPECT_STR(snapshot.text, "{}");
    EXPECT(tip.pos == 2 && tip.flushed == 2 && tip.last_instance == 1 && tip.last_value == 1);
    EXPECT(tip.last_definition == 1 && tip.at_ms == T0 + 2 && tip.test_now_ms == T0 + 99);
    EXPECT(memcmp(tip.root, record.root, SHA_SIZE) == 0);
}

/* Contract (1), (10) */
STORE_TEST(a_commit_is_there_whole_at_once_and_after_reopening)
{
    struct change c = change_begin(s);

    add_everything(&c);
    EXPECT_OK(change_commit(&c));
    expect_everything(s);
    stand_reopen(s);
    expect_everything(s);
}

/* Contract (1) */
STORE_TEST(what_is_rolled_back_was_never_there)
{
    struct change c = change_begin(s);

    add_everything(&c);
    store_rollback(s->store);
    expect_missing(s, 1, 1, 1);
    EXPECT_EQ(tip_of(s).pos, 0);
    stand_reopen(s);
    expect_missing(s, 1, 1, 1);
    put_orders(s, 1); /* and the numbers are free */
    EXPECT_EQ(tip_of(s).last_instance, 1);
}

/* Contract (1), (2): one fails in the middle, then the same commit succeeds. */
static void commit_with_faults(struct stand *s, struct fault_heap *fault)
{
    const struct store_options options = { .create = true, .heap = &fault->heap };
    struct change c = { .stand = s };
    pawl_status status;
    struct live live;

    (void)snprintf(s->url, sizeof s->url, "memory:"); /* private: the fault heap is its own */
    if (stand_open(s, options, &s->store) != PAWL_OK)
        return;
    c = change_begin(s);
    add_everything(&c);
    status = change_commit(&c);
    if (status != PAWL_OK) {
        EXPECT_EQ(status, PAWL_NO_MEMORY);
        expect_missing(s, 1, 1, 1);
        EXPECT_OK(store_live(s->store, s->scope, 1, &live));
        EXPECT(live.step_count + live.timer_count == 0 && tip_of(s).changes == 0);
        c = change_begin(s);
        add_everything(&c);
        EXPECT_OK(change_commit(&c));
    }
    expect_everything(s);
    store_close(s->store);
}

TEST(store_memory, a_commit_that_runs_out_of_memory_anywhere_leaves_nothing)
{
    struct stand s = { .test = t, .scope = &t->scope, .is_memory = true };
    struct fault_heap fault = { 0 };
    uint32_t rounds = 0;

    s.env = env_sim_new(T0, 7);
    FAULT_EACH(fault, FAULT_ONCE)
    {
        commit_with_faults(&s, &fault);
        rounds++;
    }
    EXPECT(rounds > 8);
    s.env->close(s.env);
}

/* Contract (2), (10): whatever was committed last is what is there. */
STORE_TEST(a_store_may_be_reopened_after_each_commit)
{
    struct head_row head;
    uint8_t id[STORE_ID_SIZE];

    put_orders(s, 1);
    memcpy(id, tip_of(s).store_id, STORE_ID_SIZE);
    for (uint64_t seq = 1; seq <= 20; seq++) {
        struct change c = change_begin(s);

        EXPECT_EQ(c.tip.pos, seq);
        c.lag = seq % 3 == 0;
        add_entry(&c, 1, seq, 0, PAID);
        EXPECT_OK(change_commit(&c));
        stand_reopen(s);
        EXPECT_OK(store_head(s->store, s->scope, 1, false, &head));
        EXPECT(head.seq == seq && head.pos == seq + 1 && head.state == PAID);
    }
    EXPECT(memcmp(id, tip_of(s).store_id, STORE_ID_SIZE) == 0);
}

/* ---- (3) and (4): turns and rivals ---- */

/* Contract (3) */
STORE_TEST(begin_tells_the_tip_as_the_last_writer_left_it)
{
    struct store *rival = stand_another(s);
    struct store_tip first;
    struct change c;

    put_orders(s, 2);
    c = change_by(s, rival);
    first = c.tip;
    EXPECT(first.pos == 2 && first.last_instance == 2 && first.last_definition == 1);
    add_entry(&c, 2, 1, 0, PAID);
    EXPECT_OK(change_commit(&c));
    c = change_begin(s);
    EXPECT(c.tip.pos == 3 && c.tip.changes != first.changes);
    store_rollback(s->store);
    store_close(rival);
}

/* Contract (3), (5): both decided on the same tip; one is first, the other is refused whole. */
STORE_TEST(the_second_of_two_rival_commits_conflicts_and_changes_nothing)
{
    struct store *rival = stand_another(s);
    struct change late, early;

    put_orders(s, 1);
    late = change_by(s, rival);
    store_rollback(rival);
    early = change_begin(s);
    add_entry(&early, 1, 1, 0, PAID);
    EXPECT_OK(change_commit(&early));

    add_value(&late, STR("never"), true);
    add_entry(&late, 1, 1, 2, DROPPED);
    EXPECT_OK(store_begin(rival, s->scope, &(struct store_tip){ 0 }));
    EXPECT_EQ(change_commit(&late), PAWL_CONFLICT);
    EXPECT_EQ(store_find_value(s->store, s->scope, STR("never"), &(struct value){ 0 }),
              PAWL_NOT_KNOWN);
    EXPECT_EQ(tip_of(s).pos, 2);
    early = change_by(s, rival); /* the refused commit has ended its turn */
    store_rollback(rival);
    store_close(rival);
}

/* Contract (5) */
STORE_TEST(a_position_that_leaves_a_gap_is_refused_whole)
{
    struct change c;

    put_orders(s, 1);
    c = change_begin(s);
    c.tip.pos++;
    add_value(&c, STR("never"), true);
    add_entry(&c, 1, 1, 0, PAID);
    EXPECT_EQ(change_commit(&c), PAWL_CONFLICT);
    expect_missing(s, 2, 2, 1);
    EXPECT_EQ(store_record(s->store, s->scope, 3, &(struct record){ 0 }), PAWL_NOT_KNOWN);
}

struct rival {
    struct stand stand; /* with a scope of its own */
    struct scope scope;
    pawl_status status;
    struct store_tip tip;
};

static void *begin_and_roll_back(void *context)
{
    struct rival *rival = context;

    rival->status = store_begin(rival->stand.store, &rival->scope, &rival->tip);
    if (rival->status == PAWL_OK)
        store_rollback(rival->stand.store);
    return NULL;
}

/* Contract (3): the rival's turn comes after ours, or it is told that it can't have one. */
STORE_TEST(nobody_else_gets_a_turn_between_begin_and_commit)
{
    struct rival rival = { .stand = *s };
    struct change c;
    pthread_t thread;

    put_orders(s, 1);
    scope_init(&rival.scope, &heap_libc, 0);
    rival.stand.store = stand_another(s);
    c = change_begin(s);
    add_entry(&c, 1, 1, 0, PAID);
    EXPECT(pthread_create(&thread, NULL, begin_and_roll_back, &rival) == 0);
    for (int i = 0; i < 1000; i++)
        sched_yield(); /* let it try; the outcome must be right either way */
    EXPECT_OK(change_commit(&c));
    pthread_join(thread, NULL);
    EXPECT(rival.status == PAWL_OK || rival.status == PAWL_IN_USE);
    EXPECT(rival.status != PAWL_OK || rival.tip.pos == 2);
    store_close(rival.stand.store);
    scope_fini(&rival.scope);
}

/* Contract (4) */
STORE_TEST(a_read_through_another_handle_sees_the_last_commit)
{
    struct store *reader = stand_another(s);
    struct head_row head;
    struct change c;

    put_orders(s, 1);
    for (uint64_t seq = 1; seq <= 5; seq++) {
        c = change_begin(s);
        add_entry(&c, 1, seq, 0, PAID);
        EXPECT_OK(store_head(reader, s->scope, 1, false, &head));
        EXPECT_EQ(head.seq, seq - 1); /* what is not committed cannot be read */
        EXPECT_OK(change_commit(&c));
        EXPECT_OK(store_head(reader, s->scope, 1, false, &head));
        EXPECT_EQ(head.seq, seq);
    }
    store_close(reader);
}

static void *read_heads(void *context)
{
    struct rival *reader = context;
    uint64_t last = 0;

    while (last < 200 && reader->status == PAWL_OK) {
        struct head_row head = { 0 };

        reader->status = store_head(reader->stand.store, &reader->scope, 1, false, &head);
        if (head.seq < last || head.pos != head.seq + 1)
            reader->status = PAWL_CONFLICT;
        last = head.seq;
        scope_clear(&reader->scope);
    }
    return NULL;
}

/* Contract (4): reads come from any thread, while the store is written. */
STORE_TEST(readers_in_other_threads_see_commits_in_order)
{
    struct rival readers[3];
    pthread_t threads[3];

    put_orders(s, 1);
    for (int i = 0; i < 3; i++) {
        readers[i] = (struct rival){ .stand = *s };
        scope_init(&readers[i].scope, &heap_libc, 0);
        EXPECT(pthread_create(&threads[i], NULL, read_heads, &readers[i]) == 0);
    }
    for (uint64_t seq = 1; seq <= 200; seq++) {
        struct change c = change_begin(s);

        add_entry(&c, 1, seq, 0, PAID);
        EXPECT_OK(change_commit(&c));
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_OK(readers[i].status);
        scope_fini(&readers[i].scope);
    }
}

STORE_TEST(an_owner_is_alone_in_writing_and_is_named_to_others)
{
    const struct store_options own = { .own = true, .address = "http://127.0.0.1:7295" };
    struct store *owner, *second;
    struct store_tip tip;

    put_orders(s, 1);
    EXPECT_OK(stand_open(s, own, &owner));
    EXPECT_EQ(stand_open(s, own, &second), PAWL_IN_USE);
    EXPECT_HAS(s->scope->error.message, "http://127.0.0.1:7295");
    EXPECT_EQ(store_begin(s->store, s->scope, &tip), PAWL_IN_USE);
    EXPECT_EQ(tip_of(s).pos, 1); /* reading needs no turn */
    EXPECT_OK(store_begin(owner, s->scope, &tip));
    store_rollback(owner);
    store_close(owner);
    EXPECT_OK(store_begin(s->store, s->scope, &tip));
    store_rollback(s->store);
}

STORE_TEST(a_store_that_is_missing_is_made_only_if_asked_for)
{
    struct store *store;

    strcat(s->url, "-other");
    EXPECT_EQ(stand_open(s, (struct store_options){ 0 }, &store), PAWL_NOT_KNOWN);
    EXPECT_OK(stand_open(s, (struct store_options){ .create = true }, &store));
    store_close(store);
    EXPECT_OK(stand_open(s, (struct store_options){ 0 }, &store));
    store_close(store);
}

TEST(store_memory, a_private_store_is_gone_with_its_handle)
{
    struct stand s = { .test = t, .scope = &t->scope, .is_memory = true, .url = "memory:" };
    const struct store_options create = { .create = true };
    struct store *other;

    s.env = env_sim_new(T0, 7);
    EXPECT_OK(stand_open(&s, create, &s.store));
    put_orders(&s, 1);
    EXPECT_OK(stand_open(&s, create, &other));
    store_close(s.store);
    s.store = other;
    EXPECT_EQ(tip_of(&s).pos, 0);
    store_close(other);
    s.env->close(s.env);
}

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
                                           .due_at_ms = spread_due(i) });
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
    int64_t next_ms;

    put_orders(s, 10);
    arm_many(s, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        expected += spread_due(i) <= T0 + 49;
    EXPECT_OK(store_due(s->store, s->scope, T0 + 49, 2000, &timers, &count, &next_ms));
    EXPECT_EQ(count, expected);
    EXPECT_EQ(next_ms, T0 + 50);
    for (uint32_t i = 1; i < count; i++)
        EXPECT(in_due_order(&timers[i - 1], &timers[i]) && timers[i].due_at_ms <= T0 + 49);
    EXPECT_OK(store_due(s->store, s->scope, INT64_MAX, 1500, &timers, &count, &next_ms));
    EXPECT(count == 1000 && next_ms == INT64_MAX);
}

/* Contract (7) */
STORE_TEST(due_gives_no_more_than_asked_and_tells_when_the_next_one_is)
{
    struct live_timer *timers;
    uint32_t count;
    int64_t next_ms;

    put_orders(s, 10);
    EXPECT_OK(store_due(s->store, s->scope, INT64_MAX, 5, &timers, &count, &next_ms));
    EXPECT(count == 0 && next_ms == INT64_MAX);
    arm_many(s, 100); /* each due time once */
    EXPECT_OK(store_due(s->store, s->scope, T0 + 49, 5, &timers, &count, &next_ms));
    EXPECT(count == 5 && timers[4].due_at_ms == T0 + 4 && next_ms == T0 + 5);
    EXPECT_OK(store_due(s->store, s->scope, T0 - 1, 5, &timers, &count, &next_ms));
    EXPECT(count == 0 && next_ms == T0);
}

/* Contract (7): put again is moved, deleted is gone, a test instance's is never due. */
STORE_TEST(timers_are_moved_taken_back_and_kept_from_test_instances)
{
    struct live_change timer = { .kind = LIVE_TIMER_PUT, .instance = 1, .name = STR("a") };
    struct live_timer *timers;
    struct live live;
    uint32_t count;
    int64_t next_ms;
    struct change c;

    put_orders(s, 2);
    c = change_begin(s);
    timer.due_at_ms = T0;
    add_live(&c, timer);
    timer.due_at_ms = T0 + 10;
    add_live(&c, timer);
    add_live(&c, (struct live_change){ .kind = LIVE_TIMER_PUT, .instance = 1, .name = STR("b") });
    add_live(&c,
             (struct live_change){ .kind = LIVE_TIMER_DELETE, .instance = 1, .name = STR("b") });
    add_live(&c,
             (struct live_change){ .kind = LIVE_TIMER_DELETE, .instance = 1, .name = STR("c") });
    timer.instance = 2;
    timer.test = true;
    add_live(&c, timer);
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_due(s->store, s->scope, T0 + 10, 9, &timers, &count, &next_ms));
    EXPECT(count == 1 && timers[0].instance == 1 && next_ms == INT64_MAX);
    EXPECT_OK(store_live(s->store, s->scope, 2, &live));
    EXPECT(live.timer_count == 1 && live.timers[0].due_at_ms == T0 + 10);
    EXPECT_STR(live.timers[0].name, "a");
}

static void add_step(struct change *c, uint64_t instance, uint32_t ordinal, enum step_status status)
{
    add_live(c, (struct live_change){ .kind = LIVE_STEP_PUT,
                                      .instance = instance,
                                      .ordinal = ordinal,
                                      .plan = ordinal * 2,
                                      .attempt = 3,
                                      .status = status });
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
                                           .due_at_ms = T0 });
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
    uint64_t *numbers;
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
    EXPECT_OK(store_busy(s->store, s->scope, 0, 2, &numbers, &count));
    EXPECT(count == 2 && numbers[0] == 1 && numbers[1] == 4);
    EXPECT_OK(store_busy(s->store, s->scope, 4, 2, &numbers, &count));
    EXPECT(count == 1 && numbers[0] == 5);
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

/* ---- (8) and (11): bytes ---- */

/* Contract (8) */
STORE_TEST(an_interned_value_is_found_by_its_exact_bytes)
{
    const str found[] = { STR("ann"), STR("Ann"), STR("ann\0"), STR("ann "), STR("\xc3\xa4") };
    struct change c = change_begin(s);
    struct value value;

    for (size_t i = 0; i < 5; i++)
        add_value(&c, found[i], true);
    add_value(&c, STR("payload"), false);
    EXPECT_OK(change_commit(&c));
    for (size_t i = 0; i < 5; i++) {
        EXPECT_OK(store_find_value(s->store, s->scope, found[i], &value));
        EXPECT(value.id == i + 1 && value.interned && same_bytes(value.bytes, found[i]));
    }
    EXPECT_EQ(store_find_value(s->store, s->scope, STR("an"), &value), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_find_value(s->store, s->scope, STR("payload"), &value), PAWL_NOT_KNOWN);
}

STORE_TEST(an_erased_value_keeps_its_commitment_and_nothing_else)
{
    struct change c = change_begin(s);
    const uint8_t zeros[SALT_SIZE] = { 0 };
    struct value erased = *add_value(&c, STR("ann"), true), value;

    add_value(&c, STR("bob"), true);
    EXPECT_OK(change_commit(&c));
    c = change_begin(s);
    erased.bytes = STR_NONE;
    *add_value(&c, STR_NONE, false) = erased;
    add_value(&c, STR("ann"), true)->id = 3; /* somebody new of the same name */
    EXPECT_OK(change_commit(&c));
    stand_reopen(s);
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    EXPECT(!value.bytes.data && memcmp(value.salt, zeros, SALT_SIZE) == 0);
    EXPECT(memcmp(value.commitment, erased.commitment, SHA_SIZE) == 0);
    EXPECT_OK(store_find_value(s->store, s->scope, STR("ann"), &value));
    EXPECT_EQ(value.id, 3);
    EXPECT_EQ(tip_of(s).last_value, 3);
}

/* Contract (11) */
STORE_TEST(bytes_come_back_as_they_went_in)
{
    const str odd = STR("a\0b\xff\xfe\"'\n\0");
    struct change c = change_begin(s);
    struct definition_row definition;
    struct instance_row row;
    struct snapshot_row snapshot;
    struct record record;
    struct value value;

    add_definition(&c, STR("order"), 1, odd);
    add_value(&c, odd, false);
    add_value(&c, STR(""), false);
    add_value(&c, STR_NONE, false);
    add_instance(&c, 1)->labels = odd;
    c.instances[0].correlation = odd;
    add_entry(&c, 1, 1, 0, PAID)->body = odd;
    c.records[1].key = odd;
    add_snapshot(&c, 1, 1, odd);
    EXPECT_OK(change_commit(&c));
    stand_reopen(s);
    EXPECT_OK(store_definition(s->store, s->scope, 1, &definition));
    EXPECT(same_bytes(definition.source, odd) && same_bytes(definition.compiled, STR(COMPILED)));
    EXPECT(memcmp(definition.source_sha, c.definitions[0].source_sha, SHA_SIZE) == 0);
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    EXPECT(same_bytes(value.bytes, odd) && memcmp(value.salt, c.values[0].salt, SALT_SIZE) == 0);
    EXPECT(memcmp(value.commitment, c.values[0].commitment, SHA_SIZE) == 0);
    EXPECT_OK(store_value(s->store, s->scope, 2, &value));
    EXPECT(same_bytes(value.bytes, STR(""))); /* empty is not absent */
    EXPECT_OK(store_value(s->store, s->scope, 3, &value));
    EXPECT(!value.bytes.data);
    EXPECT_OK(store_instance(s->store, s->scope, 1, &row));
    EXPECT(same_bytes(row.labels, odd) && same_bytes(row.correlation, odd));
    EXPECT(memcmp(row.random, c.instances[0].random, ID_RANDOM_SIZE) == 0);
    EXPECT_OK(store_record(s->store, s->scope, 2, &record));
    EXPECT(same_bytes(record.body, odd) && same_bytes(record.key, odd));
    EXPECT(memcmp(record.hash, c.records[1].hash, SHA_SIZE) == 0);
    EXPECT_OK(store_snapshot(s->store, s->scope, 1, &snapshot));
    EXPECT(same_bytes(snapshot.text, odd));
}

/* Contract (11): every column of a record, and what is absent stays absent. */
STORE_TEST(a_record_comes_back_field_by_field)
{
    struct change c = change_begin(s);
    struct record in, out;

    add_definition(&c, STR("order"), 1, STR("a"));
    add_instance(&c, 1);
    for (int i = 0; i < 3; i++)
        add_value(&c, STR("v"), false);
    in = *add_entry(&c, 1, 1, 0, PAID);
    in.prev = 1, in.skip = 1, in.flags = RECORD_GUARD, in.fired_at_ms = -5;
    in.step = 2, in.ordinal = 3, in.attempt = 4, in.actor = 1, in.payload = 2, in.reason = 3;
    c.records[1] = in;
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_record(s->store, s->scope, 2, &out));
    EXPECT(out.pos == 2 && out.instance == 1 && out.seq == 1 && out.prev == 1 && out.skip == 1);
    EXPECT(out.what == 0 && out.flags == RECORD_GUARD && out.at_ms == in.at_ms);
    EXPECT(out.fired_at_ms == -5 && out.step == 2 && out.ordinal == 3 && out.attempt == 4);
    EXPECT(out.actor == 1 && out.payload == 2 && out.reason == 3 && out.has_root);
    EXPECT(!out.body.data && !out.key.data);
    EXPECT_OK(store_record(s->store, s->scope, 1, &out));
    EXPECT(out.what == CONTROL_CREATE && out.prev == 0 && out.actor == 0 && !out.has_root);
    EXPECT_EQ(out.fired_at_ms, out.at_ms);
}

struct scanning {
    struct stand *stand;
    uint64_t next, stop_at;
};

static pawl_status see_record(void *context, const struct record *record)
{
    struct scanning *scanning = context;
    struct head_row head;

    EXPECT_EQ(record->pos, scanning->next++);
    EXPECT_OK(store_head(scanning->stand->store, scanning->stand->scope, 1, false, &head));
    return record->pos == scanning->stop_at ? PAWL_PAUSED : PAWL_OK;
}

STORE_TEST(a_scan_goes_in_order_from_any_position_until_it_is_told_to_stop)
{
    struct scanning scanning = { .stand = s, .next = 1 };

    put_orders(s, 30);
    EXPECT_OK(store_scan(s->store, s->scope, 1, see_record, &scanning));
    EXPECT_EQ(scanning.next, 31);
    scanning.next = 10;
    scanning.stop_at = 20;
    EXPECT_EQ(store_scan(s->store, s->scope, 10, see_record, &scanning), PAWL_PAUSED);
    EXPECT_EQ(scanning.next, 21);
    EXPECT_OK(store_scan(s->store, s->scope, 31, see_record, &scanning));
}

/* ---- Definitions ---- */

STORE_TEST(definitions_are_found_by_name_newest_first_and_inline_by_source)
{
    struct change c = change_begin(s);
    struct definition_row row;
    uint8_t sha[SHA_SIZE];

    add_definition(&c, STR("order"), 1, STR("one"));
    add_definition(&c, STR("order"), 2, STR("two"));
    add_definition(&c, STR_NONE, 0, STR("inline"));
    add_definition(&c, STR("ord"), 1, STR("one")); /* the same text, another name */
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_find_definition(s->store, s->scope, STR("order"), 0, NULL, &row));
    EXPECT(row.id == 2 && row.version == 2);
    EXPECT_STR(row.source, "two");
    EXPECT_OK(store_find_definition(s->store, s->scope, STR("order"), 1, NULL, &row));
    EXPECT_EQ(row.id, 1);
    EXPECT_EQ(store_find_definition(s->store, s->scope, STR("order"), 3, NULL, &row),
              PAWL_NOT_KNOWN);
    EXPECT_EQ(store_find_definition(s->store, s->scope, STR("orde"), 0, NULL, &row),
              PAWL_NOT_KNOWN);
    hash_text(STR("inline"), sha);
    EXPECT_OK(store_find_definition(s->store, s->scope, STR_NONE, 0, sha, &row));
    EXPECT(row.id == 3 && !row.name.data && row.version == 0 && row.kind == KIND_MACHINE);
    hash_text(STR("one"), sha);
    EXPECT_EQ(store_find_definition(s->store, s->scope, STR_NONE, 0, sha, &row), PAWL_NOT_KNOWN);
}

STORE_TEST(definitions_lists_each_name_once_with_its_newest_version)
{
    struct change c = change_begin(s);
    struct definition_row *rows;
    uint32_t count;

    add_definition(&c, STR("b"), 1, STR("1"));
    add_definition(&c, STR("a/x"), 1, STR("2"));
    add_definition(&c, STR("b"), 2, STR("3"));
    add_definition(&c, STR_NONE, 0, STR("4"));
    add_definition(&c, STR("Z"), 1, STR("5"));
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_definitions(s->store, s->scope, STR_NONE, 2, &rows, &count));
    EXPECT_EQ(count, 2);
    EXPECT_STR(rows[0].name, "Z");
    EXPECT_STR(rows[1].name, "a/x");
    EXPECT_OK(store_definitions(s->store, s->scope, STR("a/x"), 2, &rows, &count));
    EXPECT(count == 1 && rows[0].version == 2 && rows[0].id == 3);
    EXPECT_STR(rows[0].name, "b");
}

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
    row->subject = 1, row->labels = STR("{\"a\":\"1\"}"), row->instantiated_at_ms = T0 + 1000;
    row = add_instance(&c, 3);
    row->correlation = STR("c1"), row->instantiated_at_ms = T0 + 2000;
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
    expect_list(s, (struct list_query){ .status = STR("running") }, "2");
    expect_list(s, (struct list_query){ .status = STR("suspended") }, "3 1");
    expect_list(s, (struct list_query){ .status = STR("completed") }, "6");
    expect_list(s, (struct list_query){ .status = STR("failed") }, "5");
    expect_list(s, (struct list_query){ .status = STR("cancelled") }, "4");
    expect_list(s, (struct list_query){ .subject = STR("A-17"), .oldest_first = true }, "1 2");
    expect_list(s, (struct list_query){ .subject = STR("A-1") }, "");
    expect_list(s, (struct list_query){ .correlation = STR("c1") }, "3 1");
    expect_list(s, (struct list_query){ .correlation = STR("c1"), .state = STR("new") }, "3");
    expect_list(s, (struct list_query){ .subject = STR("A-17"), .limit = 1, .after = 2 }, "1");
}

STORE_TEST(a_status_nobody_can_have_is_refused)
{
    struct list_query query = { .status = STR("sleeping"), .limit = 1 };
    uint64_t *numbers;
    uint32_t count;

    EXPECT_EQ(store_list(s->store, s->scope, &query, &numbers, &count), PAWL_INVALID_QUERY);
    EXPECT_HAS(s->scope->error.message, "sleeping");
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
    query = (struct list_query){ .has_created_after = true, .created_after_ms = T0 + 1000 };
    expect_list(s, query, "3 2");
    query.has_created_before = true;
    query.created_before_ms = T0 + 1999;
    expect_list(s, query, "2");
    query.has_created_after = false;
    query.created_before_ms = T0 + 1000;
    expect_list(s, query, "6 5 4 2 1");
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
    expect_list(s, (struct list_query){ .status = STR("cancelled") }, "3");
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
    struct record record;
    struct live live;
    uint64_t *numbers;
    uint32_t count;
    int64_t next_ms;

    expect_ok_or_no_memory(store_record(s->store, scope, 2, &record));
    expect_ok_or_no_memory(store_definition(s->store, scope, 1, &definition));
    expect_ok_or_no_memory(store_definitions(s->store, scope, STR_NONE, 9, &definitions, &count));
    expect_ok_or_no_memory(store_live(s->store, scope, 2, &live));
    expect_ok_or_no_memory(store_due(s->store, scope, T0, 9, &timers, &count, &next_ms));
    expect_ok_or_no_memory(store_busy(s->store, scope, 0, 9, &numbers, &count));
    expect_ok_or_no_memory(store_list(s->store, scope, &query, &numbers, &count));
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

/* ---- (10): kill ---- */

/* The child commits once, takes a second turn, and dies in it. */
_Noreturn static void commit_and_die(struct stand *s)
{
    struct change c;

    s->store = stand_another(s);
    put_orders(s, 1);
    c = change_begin(s);
    add_entry(&c, 1, 1, 0, PAID);
    kill(getpid(), SIGKILL);
    _exit(1);
}

/* Contract (10): a process is killed; for a store in memory its handle is dropped instead. */
STORE_TEST(what_was_committed_is_there_after_a_kill_and_nothing_else)
{
    int status;
    pid_t child;

    if (s->is_memory) {
        put_orders(s, 1);
        (void)change_begin(s);
        stand_reopen(s);
    } else {
        store_close(s->store);
        child = fork();
        if (child == 0)
            commit_and_die(s);
        EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        s->store = stand_another(s);
    }
    EXPECT_EQ(tip_of(s).pos, 1);
    EXPECT_EQ(store_record(s->store, s->scope, 2, &(struct record){ 0 }), PAWL_NOT_KNOWN);
    (void)change_begin(s); /* the dead one's turn is over */
    store_rollback(s->store);
}
