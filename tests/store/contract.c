/* contract.c - every numbered promise of store/store.h, over every backend: here what a commit
 * is, whose turn it is and what a kill leaves; in contract_*.c what is read. */
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
                                      .timer.due_at_ms = T0 + 5 });
    add_live(c,
             (struct live_change){
                 .kind = LIVE_STEP_PUT, .instance = number, .ordinal = 1, .step.status = STEP_READY });
    add_snapshot(c, number, 1, STR("{}"));
    c->standing = (struct standing_change){
        .row = { .what = CONTROL_CLOCK, .id = STR(CLOCK_TEST), .due_at_ms = T0 + 99, .pos = 2 },
        .is_put = true
    };
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
    for (int i = 0; i < 20; i++)
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

    (void)snprintf(s->url + strlen(s->url), sizeof s->url - strlen(s->url), "_other");
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

/* ---- The chain of an instance ---- */

#define ROOM 16u

static uint32_t chain_of(struct stand *s, struct chain_query query, struct record *out)
{
    uint32_t count = 0;

    EXPECT_OK(store_records_of(s->store, s->scope, &query, out, ROOM, &count));
    EXPECT_EQ(query.pos, 0);
    return count;
}

/* Contract (15): in pages of `room`, with and without texts, as record by record. */
static void expect_as_one_by_one(struct stand *s, uint64_t pos, uint32_t room, bool with_texts)
{
    struct chain_query query = { .pos = pos, .skip_from = UINT64_MAX, .with_texts = with_texts };
    struct record page[ROOM], one;
    uint32_t count;

    while (query.pos) {
        EXPECT_OK(store_records_of(s->store, s->scope, &query, page, room, &count));
        for (uint32_t i = 0; i < count; i++, pos = one.prev) {
            EXPECT_OK(store_record(s->store, s->scope, pos, &one));
            EXPECT(page[i].pos == one.pos && page[i].seq == one.seq && page[i].what == one.what);
            EXPECT(page[i].prev == one.prev && page[i].skip == one.skip);
            EXPECT(page[i].actor == one.actor && page[i].fired_at_ms == one.fired_at_ms);
            EXPECT(same_bytes(page[i].body, with_texts ? one.body : STR_NONE));
            EXPECT((memcmp(page[i].hash, one.hash, SHA_SIZE) == 0) == with_texts);
        }
    }
    EXPECT_EQ(pos, 0);
}

STORE_TEST(a_chain_leads_back_along_an_instances_records_to_an_entry)
{
    struct record rows[ROOM];
    struct chain_query query;
    struct change c;
    uint64_t first;

    put_orders(s, 2);
    c = change_begin(s);
    c.lag = true;
    first = c.tip.pos + 1; /* entries of both, in turn */
    for (uint64_t seq = 1; seq <= 6; seq++) {
        struct record *record = add_entry(&c, 1, seq, seq == 6 ? 1 : 0, PAID);

        record->prev = seq == 1 ? first - 2 : record->pos - 2;
        record->skip = seq == 6 ? first + 2 : 0; /* entry 2 */
        record->fired_at_ms = (int64_t)seq;
        record->body = STR("[]");
        add_entry(&c, 2, seq, 0, PAID)->prev = record->pos - 1;
    }
    EXPECT_OK(change_commit(&c));
    query = (struct chain_query){ .pos = first + 10, .first = 3, .skip_from = 7 };
    EXPECT_EQ(chain_of(s, query, rows), 4);
    EXPECT(rows[0].seq == 6 && rows[0].what == 1 && rows[0].prev == first + 8);
    EXPECT(rows[3].pos == first + 4 && rows[3].seq == 3 && rows[3].fired_at_ms == 3);
    query.first = query.skip_from = 1;
    EXPECT_EQ(chain_of(s, query, rows), 3); /* by its skip */
    EXPECT(rows[1].seq == 2 && rows[2].seq == 1);
    query = (struct chain_query){ .pos = first + 10, .skip_from = 7 };
    EXPECT_EQ(chain_of(s, query, rows), 7);
    EXPECT(rows[6].pos == first - 2 && rows[6].what == CONTROL_CREATE);
    EXPECT_EQ(store_records_of(s->store, s->scope, &(struct chain_query){ .pos = 99 }, rows, ROOM,
                               &(uint32_t){ 0 }),
              PAWL_NOT_KNOWN);
    for (uint32_t room = 1; room <= ROOM; room *= 4) {
        expect_as_one_by_one(s, first + 10, room, true);
        expect_as_one_by_one(s, first + 10, room, false);
    }
}
