/* evidence_checkpoint.c - a check that is stopped and goes on: it finds what one in one go finds, and
 * goes on only where the store still is the one it knew. */
#include "evidence_world.h"
#include "lib/fault.h"

/* The checkpoint that was kept last, and how many were. */
struct kept {
    char bytes[16384];
    size_t size;
    uint32_t count;
    uint32_t stop_after; /* progress says so, once it was told so often; 0: never */
    uint32_t told;
};

static void keep(void *context, str checkpoint)
{
    struct kept *kept = context;

    EXPECT(checkpoint.size <= sizeof kept->bytes);
    memcpy(kept->bytes, checkpoint.data, checkpoint.size);
    kept->size = checkpoint.size;
    kept->count++;
}

static bool progress(void *context, enum verify_part part, uint64_t done, uint64_t all)
{
    struct kept *kept = context;

    EXPECT(part <= VERIFY_VALUES && done <= all);
    return ++kept->told != kept->stop_after;
}

static str checkpoint_of(const struct kept *kept)
{
    return kept->size > 0 ? (str){ kept->bytes, kept->size } : STR_NONE;
}

static void check(struct world *w, struct kept *kept, uint64_t limit, struct verify_report *report)
{
    char copy[sizeof kept->bytes];
    str checkpoint = checkpoint_of(kept);
    pawl_error error;

    if (checkpoint.data)
        checkpoint.data = memcpy(copy, checkpoint.data, checkpoint.size);
    EXPECT_OK(verify_run(w->store, &heap_libc,
                         &(struct verify_request){ .limit = limit,
                                                   .checkpoint = checkpoint,
                                                   .keep = keep,
                                                   .progress = progress,
                                                   .context = kept },
                         report, &error));
}

/* Positions 1 to 10: as world_two_orders, then 8 create (a flow), 9 start, 10 step.start. */
static void some_of_all(struct world *w, struct test *t)
{
    world_two_orders(w, t);
    world_create(w, 3, DEFINITION_FLOW);
    world_record(w, 3, LIFE_T_START, "[[\"step\",1,0,1,\"ready\"],[\"arm\",\"late\",77,0]]");
    world_commit(w);
    world_record(w, 3, LIFE_T_STEP_START, "[[\"run\",1],[\"await\",\"go\",1]]");
    world_live(w, (struct live_change){ .kind = LIVE_STEP_PUT,
                                        .instance = 3,
                                        .ordinal = 1,
                                        .step.attempt = 1,
                                        .step.status = STEP_RUNNING });
    world_live(
        w, (struct live_change){
               .kind = LIVE_TIMER_PUT, .instance = 3, .name = STR("late"), .timer.due_at_ms = 77 });
    world_live(w, (struct live_change){
                      .kind = LIVE_WAIT_PUT, .instance = 3, .ordinal = 1, .name = STR("go") });
    world_commit(w);
}

TEST(verify, a_check_stopped_anywhere_goes_on_to_the_same_end)
{
    struct world w;
    struct verify_report report;

    some_of_all(&w, t);
    for (uint64_t limit = 1; limit < 10; limit++) {
        struct kept kept = { 0 };

        check(&w, &kept, limit, &report);
        EXPECT(report.stopped && report.valid && report.resumed == 0);
        EXPECT(report.pos >= limit && report.pos < 10);
        while (report.stopped) {
            uint64_t before = report.pos;

            check(&w, &kept, limit, &report);
            EXPECT_TEXT(report.not_resumed, "");
            EXPECT_EQ(report.resumed, before);
            EXPECT(report.pos > before);
        }
        EXPECT_TEXT(report.what, "");
        EXPECT_EQ(report.records, 10);
        EXPECT_EQ(report.entries, 5);
        EXPECT_EQ(report.instances, 3);
        EXPECT(memcmp(report.root, w.root, SHA_SIZE) == 0);
    }
    world_close(&w);
}

TEST(verify, a_check_stops_at_the_end_of_a_commit)
{
    struct world w;
    struct verify_report report;
    struct kept kept = { 0 };

    some_of_all(&w, t);
    check(&w, &kept, 4, &report); /* 4 and 5 are one commit */
    EXPECT(report.stopped);
    EXPECT_EQ(report.pos, 5);
    EXPECT_EQ(report.last, 10);
    world_close(&w);
}

TEST(verify, who_asks_to_stop_is_heard_and_the_checkpoint_kept)
{
    struct world w;
    struct verify_report report;

    some_of_all(&w, t);
    for (uint32_t told = 1; told < 3; told++) { /* in the log; among the rows */
        struct kept kept = { .stop_after = told };

        check(&w, &kept, 0, &report);
        EXPECT(report.stopped);
        EXPECT_EQ(kept.count, 1);
        check(&w, &kept, 0, &report);
        EXPECT(report.valid && !report.stopped);
        EXPECT_EQ(report.resumed, 10);
    }
    world_close(&w);
}

/* A process that is killed keeps nothing any more: what it kept on its way must do. */
TEST(verify, the_checkpoint_is_kept_on_the_way)
{
    struct world w;
    struct verify_report report;
    struct kept kept = { 0 };
    pawl_error error;

    some_of_all(&w, t);
    EXPECT_OK(
        verify_run(w.store, &heap_libc,
                   &(struct verify_request){ .keep_every = 3, .keep = keep, .context = &kept },
                   &report, &error));
    EXPECT(report.valid);
    EXPECT_EQ(kept.count, 3); /* after 3, 7 and 10 */
    check(&w, &kept, 0, &report);
    EXPECT(report.valid);
    EXPECT_EQ(report.resumed, 10);
    EXPECT_EQ(report.records, 10);
    world_close(&w);
}

TEST(verify, what_was_appended_since_is_checked)
{
    struct world w;
    struct verify_report report;
    struct kept kept = { 0 };

    some_of_all(&w, t);
    check(&w, &kept, 9, &report);
    w.lag = true;
    world_record(&w, 2, ORDER_NOTE, NULL);
    world_commit(&w);
    check(&w, &kept, 0, &report);
    EXPECT_TEXT(report.what, "");
    EXPECT_EQ(report.records, 11);
    kept = (struct kept){ 0 };
    check(&w, &kept, 9, &report);
    world_record(&w, 1, ORDER_NOTE, NULL); /* it has ended */
    world_commit(&w);
    check(&w, &kept, 0, &report);
    EXPECT_HAS(report.what, "after the instance has ended");
    EXPECT_EQ(report.bad_pos, 12);
    world_close(&w);
}

/* ---- damage ---- */

static void lie_late(struct record *record)
{
    if (record->pos == 10)
        record->at_ms++;
}

static void lie_root(struct record *record)
{
    if (record->pos == 7)
        record->root[0] ^= 1;
}

static void lie_definition(struct definition_row *row)
{
    if (row->id == DEFINITION_ORDER)
        row->compiled_sha[0] ^= 1;
}

static void lie_head(struct head_row *row)
{
    if (row->instance == 1)
        row->state = 0;
}

/* As it stood once; but head rows are said to be right up to the last position. */
static void lie_lag(struct head_row *row)
{
    if (row->instance == 1)
        *row = (struct head_row){ .instance = 1, .pos = 3 };
}

static void lie_value(struct value *value)
{
    if (value->id == 12) /* the payload of entry 2 of the flow, after the checkpoint */
        value->bytes = STR("x");
}

TEST(verify, damage_behind_the_checkpoint_and_in_any_row_is_found)
{
    struct world w;
    struct liar liar;
    struct verify_report report;

    some_of_all(&w, t);
    for (int i = 0; i < 5; i++) {
        struct kept kept = { 0 };
        struct store *truth = w.store;

        check(&w, &kept, 7, &report);
        EXPECT_EQ(report.pos, 7);
        liar_init(&liar, truth);
        liar.record = i == 0 ? lie_late : NULL;
        liar.definition = i == 1 ? lie_definition : NULL;
        liar.head = i == 2 ? lie_head : i == 4 ? lie_lag : NULL;
        liar.value = i == 3 ? lie_value : NULL;
        w.store = &liar.store;
        check(&w, &kept, 0, &report);
        w.store = truth;
        EXPECT(!report.valid && report.what[0]);
        EXPECT(i != 0 || report.bad_pos == 10);
    }
    world_close(&w);
}

TEST(verify, a_checkpoint_is_used_only_where_the_log_has_its_root)
{
    struct world w, other;
    struct liar liar;
    struct kept kept = { 0 };
    struct verify_report report;

    some_of_all(&w, t);
    check(&w, &kept, 7, &report);
    liar_init(&liar, w.store);
    liar.record = lie_root;
    other = w;
    other.store = &liar.store;
    check(&other, &kept, 0, &report);
    EXPECT_HAS(report.not_resumed, "another root");
    EXPECT(!report.valid);
    EXPECT_EQ(report.bad_pos, 7);
    world_close(&w);
}

TEST(verify, a_checkpoint_that_is_changed_in_any_byte_or_cut_is_not_used)
{
    struct world w;
    struct kept kept = { 0 };
    struct verify_report report;
    size_t size;

    some_of_all(&w, t);
    check(&w, &kept, 9, &report);
    size = kept.size;
    for (size_t i = 0; i < size; i += 7) {
        kept.bytes[i] ^= 1;
        check(&w, &kept, 0, &report);
        EXPECT_HAS(report.not_resumed, "damaged");
        EXPECT(report.valid && report.resumed == 0);
        kept.bytes[i] ^= 1;
        kept.size = i;
        check(&w, &kept, 0, &report);
        EXPECT(report.valid && report.resumed == 0 && report.records == 10);
        kept.size = size;
    }
    world_close(&w);
}

/* One that was written by hand, hash and all, may be nonsense; it may not do harm. */
TEST(verify, a_forged_checkpoint_never_crashes)
{
    struct world w;
    struct kept kept = { 0 }, forged;
    struct verify_report report;
    size_t body;

    some_of_all(&w, t);
    check(&w, &kept, 9, &report);
    body = kept.size - SHA_SIZE;
    for (size_t i = 0; i < body; i++) {
        forged = kept;
        forged.bytes[i] = (char)(forged.bytes[i] ^ (i % 2 ? 0x7F : 0x80));
        sha_once(w.sha, (str){ forged.bytes, body }, (uint8_t *)forged.bytes + body);
        check(&w, &forged, 0, &report);
    }
    world_close(&w);
}

TEST(verify, a_checkpoint_in_another_store_is_not_used)
{
    struct world w;
    struct kept kept = { 0 };
    struct verify_report report;

    some_of_all(&w, t);
    check(&w, &kept, 9, &report);
    kept.bytes[sizeof "pawl.verify.1" - 1] ^= 1; /* the first byte of the store's id */
    sha_once(w.sha, (str){ kept.bytes, kept.size - SHA_SIZE },
             (uint8_t *)kept.bytes + kept.size - SHA_SIZE);
    check(&w, &kept, 0, &report);
    EXPECT_HAS(report.not_resumed, "another store");
    EXPECT(report.valid && report.resumed == 0);
    world_close(&w);
}

TEST(verify, lack_of_memory_while_going_on_is_told_and_leaves_nothing_behind)
{
    struct world w;
    struct kept kept = { 0 };
    struct verify_report report;
    struct fault_heap fault = { 0 };
    pawl_error error;

    some_of_all(&w, t);
    check(&w, &kept, 9, &report);
    FAULT_EACH(fault, FAULT_ONCE)
    {
        pawl_status status = verify_run(
            w.store, &fault.heap, &(struct verify_request){ .checkpoint = checkpoint_of(&kept) },
            &report, &error);

        EXPECT(status == (fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK));
    }
    world_close(&w);
}

/* ---- all of a definition ---- */

static void check_definition(struct store *store, const char *name, uint32_t version,
                             struct verify_report *report)
{
    pawl_error error;

    EXPECT_OK(verify_run(store, &heap_libc,
                         &(struct verify_request){ .definition = str_of(name), .version = version },
                         report, &error));
}

TEST(verify, all_instances_of_a_definition_are_checked_and_no_others)
{
    struct world w;
    struct liar liar;
    struct verify_report report;
    pawl_error error;

    some_of_all(&w, t);
    check_definition(w.store, "order", 0, &report);
    EXPECT(report.valid);
    EXPECT_EQ(report.instances, 2);
    EXPECT_EQ(report.entries, 3);
    liar_init(&liar, w.store);
    liar.record = lie_late; /* a record of the flow */
    check_definition(&liar.store, "order", 1, &report);
    EXPECT(report.valid);
    check_definition(&liar.store, "flow", 1, &report);
    EXPECT(!report.valid);
    EXPECT_EQ(report.bad_pos, 10);
    EXPECT_EQ(report.bad_seq, 2);
    EXPECT(verify_run(w.store, &heap_libc,
                      &(struct verify_request){ .definition = STR("order"), .version = 2 }, &report,
                      &error) == PAWL_NOT_KNOWN);
    world_close(&w);
}
