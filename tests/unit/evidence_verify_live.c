/* evidence_verify_live.c - live rows against effects, and how a check gets on with the world:
 * a store that fails, one that is written to, a heap that is empty. */
#include "evidence_world.h"
#include "lib/fault.h"

/* ---- live rows ---- */

static void one_flow(struct world *w, struct test *t)
{
    world_open(w, t);
    world_create(w, 1, DEFINITION_FLOW);
    world_record(w, 1, LIFE_T_START,
                 "[[\"step\",1,0,1,\"ready\"],[\"step\",2,1,1,\"pending\"],[\"arm\",\"late\",77,0],"
                 "[\"await\",\"go\",1]]");
    world_record(w, 1, LIFE_T_STEP_START,
                 "[[\"run\",1],[\"disarm\",\"never\",4],[\"state\",{\"a\":1}]]");
    world_live(w, (struct live_change){ .kind = LIVE_STEP_PUT,
                                        .instance = 1,
                                        .ordinal = 1,
                                        .step.attempt = 1,
                                        .step.status = STEP_RUNNING });
    world_live(w, (struct live_change){ .kind = LIVE_STEP_PUT,
                                        .instance = 1,
                                        .ordinal = 2,
                                        .step.plan = 1,
                                        .step.attempt = 1,
                                        .step.status = STEP_PENDING });
    world_live(w,
               (struct live_change){
                   .kind = LIVE_TIMER_PUT, .instance = 1, .name = STR("late"), .timer.due_at_ms = 77 });
    world_live(w, (struct live_change){
                      .kind = LIVE_WAIT_PUT, .instance = 1, .ordinal = 1, .name = STR("go") });
    world_commit(w);
}

TEST(verify, live_rows_are_what_the_effects_leave_behind)
{
    struct world w;

    one_flow(&w, t);
    world_expect_valid(&w, 5, 2, 1);
    world_record(&w, 1, LIFE_T_FINISH, NULL);
    world_live(&w, (struct live_change){ .kind = LIVE_CLEAR, .instance = 1 });
    world_commit(&w);
    world_expect_valid(&w, 6, 3, 1);
    world_close(&w);
}

TEST(verify, a_live_row_too_few_too_many_or_changed_is_seen)
{
    static const struct {
        struct live_change change;
        const char *what;
    } cases[] = {
        { { .kind = LIVE_STEP_DELETE, .ordinal = 2 }, "step row 2 is missing" },
        { { .kind = LIVE_STEP_PUT, .ordinal = 9 }, "step row 9 does not follow" },
        { { .kind = LIVE_STEP_PUT, .ordinal = 2, .step.plan = 1, .step.attempt = 1, .step.status = STEP_READY },
          "step row 2 is not as" },
        { { .kind = LIVE_STEP_PUT, .ordinal = 2, .step.plan = 1, .step.attempt = 1, .step.ready_at_ms = 5 },
          "step row 2 is not as" },
        { { .kind = LIVE_TIMER_PUT, .name = STR_INIT("late"), .timer.due_at_ms = 78 },
          "timer row 0 late is not as" },
        { { .kind = LIVE_TIMER_DELETE, .name = STR_INIT("late") }, "timer row 0 late is missing" },
        { { .kind = LIVE_WAIT_DELETE, .ordinal = 1, .name = STR_INIT("go") }, "wait row 1 go" },
        { { .kind = LIVE_CLEAR }, "is missing" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct live_change change = cases[i].change;
        struct verify_report report;
        struct world w;

        one_flow(&w, t);
        change.instance = 1;
        world_live(&w, change);
        world_record(&w, 0, CONTROL_KEYED, "{}");
        world_commit(&w);
        world_expect_bad(&w, 0, 2, cases[i].what);
        world_check(&w, 1, &report);
        EXPECT(!report.valid);
        EXPECT_HAS(report.what, cases[i].what);
        world_close(&w);
    }
}

/* These two have the same 32-bit hash (FNV-1a). */
#define AWAITED   "{\"order\":\"70939\"}"
#define AS_HASHED "{\"order\":\"370974\"}"

TEST(verify, the_value_of_a_wait_is_compared_by_its_bytes)
{
    static const str values[] = { STR_INIT(AWAITED), STR_INIT(AS_HASHED), { NULL, 0 } };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct verify_report report;
        struct world w;

        world_open(&w, t);
        world_create(&w, 1, DEFINITION_FLOW);
        world_record(&w, 1, LIFE_T_START, "[[\"await\",\"go\",0," AWAITED "]]");
        world_live(&w, (struct live_change){ .kind = LIVE_WAIT_PUT,
                                             .instance = 1,
                                             .name = STR("go"),
                                             .wait.value = values[i] });
        world_commit(&w);
        world_check(&w, 0, &report);
        EXPECT_EQ(report.valid, i == 0);
        world_close(&w);
    }
}

/* A value with the form of a token's hash. */
#define LEASE "0123456789abcdef0123456789abcdef01234567"

TEST(verify, a_lease_is_in_its_row_exactly_as_in_its_entry)
{
    static const struct {
        const char *body;
        str lease;
        int64_t lease_ms;
        bool is_valid;
    } cases[] = {
        { "[[\"run\",1,60000,\"" LEASE "\"]]", STR_INIT(LEASE), 60000, true },
        { "[[\"run\",1,60000,\"" LEASE "\"]]", STR_INIT(LEASE), 60001, false },
        { "[[\"run\",1,60000,\"" LEASE "\"]]", { NULL, 0 }, 0, false },
        { "[[\"run\",1,60000,\"" LEASE "\"]]",
          STR_INIT("1123456789abcdef0123456789abcdef01234567"), 60000, false },
        { "[-1]", { NULL, 0 }, 0, true },
        { "[-1]", STR_INIT(LEASE), 60000, false },
        { "[-1]", STR_INIT("0123456789abcdef0123456789abcdef"), 60000, false },
        { "[[\"run\",1,0,\"" LEASE "\"]]", STR_INIT(LEASE), 0, false },
        { "[[\"run\",1,60000,\"short\"]]", STR_INIT("short"), 60000, false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct verify_report report;
        struct world w;

        world_open(&w, t);
        world_create(&w, 1, DEFINITION_FLOW);
        world_record(&w, 1, LIFE_T_START, "[[1,0]]");
        world_record(&w, 1, LIFE_T_STEP_START, cases[i].body);
        world_live(&w, (struct live_change){ .kind = LIVE_STEP_PUT,
                                             .instance = 1,
                                             .ordinal = 1,
                                             .step.attempt = 1,
                                             .step.status = STEP_RUNNING,
                                             .step.lease = cases[i].lease,
                                             .step.lease_ms = cases[i].lease_ms });
        world_commit(&w);
        world_check(&w, 0, &report);
        EXPECT_EQ(report.valid, cases[i].is_valid);
        world_close(&w);
    }
}

TEST(verify, effects_that_make_no_sense_are_named)
{
    static const char *const bodies[] = {
        "[[\"run\",9]]", "[[\"fly\",1]]", "[", "[[]]", "{}", "[[\"step\",-1,0,1,\"ready\"]]"
    };

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct world w;

        one_flow(&w, t);
        world_record(&w, 1, LIFE_T_TIMER, bodies[i]);
        world_commit(&w);
        world_expect_bad(&w, 6, 3,
                         i == 0 ? "step row 9, which is not there" : "effects can't be read");
        world_close(&w);
    }
}

/* ---- the world around ---- */

TEST(verify, a_store_that_cannot_be_read_is_a_finding_not_an_error)
{
    struct world w;
    struct liar liar;
    struct verify_report report;
    pawl_error error;

    world_two_orders(&w, t);
    liar_init(&liar, w.store);
    liar.fail_pos = 5;
    for (uint64_t number = 0; number < 2; number++) {
        EXPECT_OK(verify_run(&liar.store, &heap_libc,
                             &(struct verify_request){ .instance = number }, &report, &error));
        EXPECT(!report.valid);
        EXPECT_HAS(report.what, "can't be read here: the disk is on fire");
    }
    world_close(&w);
}

/* Somebody writes while the rows are looked at: twelve commits, one per look. */
static struct world *writer;

static void write_meanwhile(struct live *live)
{
    (void)live;
    if (writer->pos >= 19)
        return;
    world_record(writer, 2, ORDER_NOTE, NULL);
    world_commit(writer);
}

TEST(verify, a_store_that_is_written_to_meanwhile_is_still_valid)
{
    struct world w;
    struct liar liar;
    struct verify_report report;
    pawl_error error;

    world_two_orders(&w, t);
    writer = &w;
    liar_init(&liar, w.store);
    liar.live = write_meanwhile;
    EXPECT_OK(verify_run(&liar.store, &heap_libc, &(struct verify_request){ 0 }, &report, &error));
    EXPECT_TEXT(report.what, "");
    EXPECT(report.valid);
    EXPECT(report.records > 7);
    world_close(&w);
}

static bool count_progress(void *context, enum verify_part part, uint64_t done, uint64_t all)
{
    uint64_t *count = context;

    (void)part;
    EXPECT(done <= all);
    ++*count;
    return true;
}

TEST(verify, progress_is_told)
{
    struct world w;
    struct verify_report report;
    pawl_error error;
    uint64_t count = 0;

    world_two_orders(&w, t);
    EXPECT_OK(verify_run(w.store, &heap_libc,
                         &(struct verify_request){ .progress = count_progress, .context = &count },
                         &report, &error));
    EXPECT(count > 0);
    world_close(&w);
}

TEST(verify, every_lack_of_memory_is_told_and_leaves_nothing_behind)
{
    struct world w;
    struct verify_report report;
    pawl_error error;

    one_flow(&w, t);
    for (uint64_t number = 0; number < 2; number++) {
        struct fault_heap fault = { 0 };

        FAULT_EACH(fault, FAULT_ONCE)
        {
            pawl_status status =
                verify_run(w.store, &fault.heap, &(struct verify_request){ .instance = number },
                           &report, &error);

            EXPECT(status == (fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK));
            EXPECT(fault.has_failed || report.valid);
        }
        EXPECT(fault.count > 10);
    }
    world_close(&w);
}
