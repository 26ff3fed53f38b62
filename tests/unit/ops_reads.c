/* ops_reads.c - what reading a long history costs. Counted, not timed: the records and the values that
 * the store is asked for. */
#include "api/ops_int.h"
#include "lib/test.h"
#include <stdio.h>
#include <stdlib.h>

struct work {
    uint64_t records, values, calls;
    uint64_t passed; /* records of which no texts were read */
};

static struct work done;
static const struct store_ops *real_ops;

static pawl_status count_find(struct store *store, struct scope *scope,
                              const struct find_query *query, void *out)
{
    done.records += query->kind == FIND_RECORD;
    done.calls += query->kind == FIND_RECORD;
    done.values += query->kind == FIND_VALUE || query->kind == FIND_BYTES;
    return real_ops->find(store, scope, query, out);
}

static pawl_status count_records(struct store *store, struct scope *scope,
                                 const uint64_t *positions, uint32_t count, struct record *out,
                                 uint32_t *read)
{
    pawl_status status = real_ops->records(store, scope, positions, count, out, read);

    done.records += *read;
    done.calls++;
    return status;
}

static pawl_status count_records_of(struct store *store, struct scope *scope,
                                    struct chain_query *query, struct record *out, uint32_t room,
                                    uint32_t *count)
{
    uint32_t before = *count;
    pawl_status status = real_ops->records_of(store, scope, query, out, room, count);

    *(query->with_texts ? &done.records : &done.passed) += *count - before;
    return status;
}

/* What one call costs; *answer is the caller's. */
static struct work work_of(pawl *p, const char *operation, const char *input, char **answer)
{
    struct store *store = engine_store(p->engine);
    struct store_ops counted = *store->ops;
    pawl_error error = { 0 };

    real_ops = store->ops;
    counted.find = count_find;
    counted.records = count_records;
    counted.records_of = count_records_of;
    store->ops = &counted;
    done = (struct work){ 0 };
    if (pawl_call(p, operation, input, answer, &error))
        test_fail(__FILE__, __LINE__, "%s %s: %s", operation, input, error.message);
    store->ops = real_ops;
    return done;
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;

    for (const char *found = strstr(text, part); found; found = strstr(found + 1, part))
        count++;
    return count;
}

/* ---- A machine of many entries ---- */

#define NOTES 2000
#define DIARY                                                                                      \
    "{\"states\":[\"open\",\"seen\"],\"initial_state\":\"open\",\"terminal_states\":[],"           \
    "\"transitions\":[{\"from_state\":\"open\",\"action\":\"note\",\"to_state\":\"open\"},"        \
    "{\"from_state\":\"open\",\"action\":\"look\",\"to_state\":\"seen\"},"                         \
    "{\"from_state\":\"seen\",\"action\":\"note\",\"to_state\":\"open\"}]}"

/* Entries 101, 1001 and 1901 are by bob, of action look, and fired in 2020. */
static void make_diary(pawl *p, pawl_id *id)
{
    pawl_error error;

    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .declaration = DIARY,
                                              .instantiated_at = "2020-01-01T00:00:00Z" },
                          id, &error));
    for (int i = 1; i <= NOTES; i++) {
        bool is_rare = i == 101 || i == 1001 || i == 1901;

        EXPECT_OK(pawl_fire(p, id->text,
                            &(pawl_fire_args){ .action = is_rare ? "look" : "note",
                                               .actor_ref = is_rare ? "bob" : "ann",
                                               .reason = "it was time",
                                               .fired_at = is_rare ? "2020-05-01T00:00:00Z"
                                                                   : NULL },
                            NULL, &error));
    }
}

TEST(reads, a_filter_of_a_history_reads_the_records_that_it_returns_and_no_others)
{
    static const char *const filters[] = {
        "\"action\":\"look\"",
        "\"to_state\":\"seen\"",
        "\"from_state\":\"open\",\"to_state\":\"seen\"",
        "\"actor_ref\":\"bob\"",
        "\"fired_before\":\"2021-01-01T00:00:00Z\"",
        "\"action\":\"look\",\"limit\":\"3\"",
    };
    pawl *p = NULL;
    pawl_id id;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, NULL));
    make_diary(p, &id);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        char input[256], *answer = NULL;
        struct work work;

        snprintf(input, sizeof input, "{\"instance_id\":\"%s\",%s}", id.text, filters[i]);
        work = work_of(p, "instance.history", input, &answer);
        EXPECT_EQ(count_of(answer, "\"transition_id\""), 3);
        EXPECT_HAS(answer, "\"sequence_number\":1901");
        EXPECT(work.records == 3);
        EXPECT(work.values <= 8); /* names of actors, and three reasons */
        pawl_free(p, answer);
    }
    pawl_close(p);
}

TEST(reads, the_graph_of_a_machine_reads_no_record_of_its_past)
{
    pawl *p = NULL;
    pawl_id id;
    char input[96], *answer = NULL;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, NULL));
    make_diary(p, &id);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"format\":\"json\"}", id.text);
    EXPECT(work_of(p, "instance.graph", input, &answer).records <= 2);
    EXPECT_HAS(answer, "\"taken\":1994");
    EXPECT_EQ(count_of(answer, "\"taken\":3"), 2);
    pawl_free(p, answer);
    pawl_close(p);
}

TEST(reads, the_graph_of_some_entries_reads_those)
{
    pawl *p = NULL;
    pawl_id id;
    char input[160], *answer = NULL;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, NULL));
    make_diary(p, &id);
    snprintf(input, sizeof input,
             "{\"instance_id\":\"%s\",\"format\":\"json\",\"sequence_from\":1001,\"sequence_to\":1010}",
             id.text);
    EXPECT(work_of(p, "instance.graph", input, &answer).records <= 12);
    EXPECT_HAS(answer, "\"taken\":8");
    EXPECT_EQ(count_of(answer, "\"taken\":1}"), 3); /* look, the way back, and the creation */
    pawl_free(p, answer);
    pawl_close(p);
}

/* ---- A flow of many steps ---- */

#define STEPS 300 /* and one that no worker takes */

static void define_chain(pawl *p, int version)
{
    static char text[STEPS * 64];
    size_t size = (size_t)snprintf(text, sizeof text,
                                   "name: chain\nsteps:\n  start: {name: s0, tool: set, next: s1}\n");
    pawl_error error;

    for (int i = 1; i < STEPS; i++)
        size += (size_t)snprintf(text + size, sizeof text - size,
                                 "  s%d: {tool: set, next: s%d}\n", i, i + 1);
    snprintf(text + size, sizeof text - size,
             "  s%d: {tool: far%s, args: {x: \"{{s%d}}\"}, done: true}\n", STEPS,
             version == 1 ? "" : "2", STEPS - 1);
    EXPECT_OK(pawl_define(p, text, strlen(text), NULL, &error));
}

static void make_chain(pawl **p, pawl_id *id)
{
    pawl_error error;
    char input[96], *answer = NULL;

    EXPECT_OK(pawl_open(p, "memory:", &(pawl_options){ .own = true }, &error));
    define_chain(*p, 1);
    EXPECT_OK(pawl_create(*p, &(pawl_create_args){ .definition = "chain" }, id, &error));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id->text);
    do {
        pawl_free(*p, answer);
        EXPECT_OK(pawl_run_due(*p, &error));
        EXPECT_OK(pawl_call(*p, "instance.get", input, &answer, &error));
    } while (!strstr(answer, "\"next_sequence_number\":602"));
    pawl_free(*p, answer);
}

TEST(reads, entries_one_after_the_other_are_read_many_at_a_time)
{
    pawl *p;
    pawl_id id;
    char input[96], *answer = NULL;
    struct work work;

    make_chain(&p, &id);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id.text);
    work = work_of(p, "instance.history", input, &answer);
    EXPECT(work.records == 2 * STEPS + 1 && work.calls < 2 * STEPS / 20);
    pawl_free(p, answer);
    pawl_close(p);
}

TEST(reads, the_graph_of_a_flow_reads_each_entry_once)
{
    pawl *p;
    pawl_id id;
    char input[96], *answer = NULL;

    make_chain(&p, &id);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"format\":\"json\"}", id.text);
    EXPECT(work_of(p, "instance.graph", input, &answer).records <= 2 * STEPS + 8);
    EXPECT_EQ(count_of(answer, "\"mark\":\"done\""), STEPS);
    EXPECT_EQ(count_of(answer, "\"mark\":\"present\""), 1);
    pawl_free(p, answer);
    pawl_close(p);
}

/* What `steps` says of the step of this ordinal, from its id to its last member. */
static str step_in(const char *steps, const char *id, uint32_t ordinal)
{
    char mark[64];
    const char *from, *to;

    snprintf(mark, sizeof mark, "{\"step_id\":\"%s.%u\"", id, ordinal);
    from = strstr(steps, mark);
    EXPECT(from != NULL);
    to = strstr(from, "\"completed_at\"");
    EXPECT(to != NULL);
    return (str){ from, (size_t)(to - from) };
}

TEST(reads, the_ready_steps_of_a_long_flow_are_found_by_their_rows)
{
    pawl *p;
    pawl_id id;
    char input[96], *answer = NULL, *all = NULL;
    struct work work;

    make_chain(&p, &id);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id.text);
    work_of(p, "instance.steps", input, &all);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"status\":\"ready\"}", id.text);
    work = work_of(p, "step.list", input, &answer);
    EXPECT(work.records < STEPS && work.values < STEPS);
    EXPECT_EQ(count_of(answer, "\"step_id\""), 1);
    EXPECT(str_eq(step_in(answer, id.text, STEPS + 1), step_in(all, id.text, STEPS + 1)));
    pawl_free(p, answer);
    work = work_of(p, "step.list", "{\"status\":\"ready\",\"tool\":\"far\"}", &answer);
    EXPECT(work.records < STEPS && work.values < STEPS);
    EXPECT(str_eq(step_in(answer, id.text, STEPS + 1), step_in(all, id.text, STEPS + 1)));
    pawl_free(p, answer);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"status\":\"running\"}", id.text);
    EXPECT(work_of(p, "step.list", input, &answer).records < 8);
    EXPECT_HAS(answer, "{\"steps\":[]");
    pawl_free(p, answer);
    pawl_free(p, all);
    pawl_close(p);
}

TEST(reads, a_page_of_steps_is_a_part_of_the_whole_and_reads_no_history_before_it)
{
    static const uint32_t places[] = { 1, 2, 70, 150, STEPS - 10, STEPS };
    pawl *p;
    pawl_id id;
    char input[160], *answer = NULL, *all = NULL;

    make_chain(&p, &id);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id.text);
    work_of(p, "instance.steps", input, &all);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"limit\":1,\"after\":\"%s.%u\"}",
                 id.text, id.text, places[i]);
        work_of(p, "instance.steps", input, &answer);
        EXPECT(str_eq(step_in(answer, id.text, places[i] + 1), step_in(all, id.text, places[i] + 1)));
        pawl_free(p, answer);
    }
    snprintf(input, sizeof input,
             "{\"instance_id\":\"%s\",\"limit\":1,\"after\":\"%s.%u\",\"without_args\":\"true\"}", id.text,
             id.text, STEPS);
    EXPECT(work_of(p, "instance.steps", input, &answer).records < STEPS);
    EXPECT_HAS(answer, "\"name\":\"s300\",\"tool\":\"far\",\"status\":\"ready\",\"attempt\":1,\"args\":null");
    pawl_free(p, answer);
    pawl_free(p, all);
    pawl_close(p);
}

/* ---- A flow that goes round ---- */

#define ROUNDS 2000 /* of three steps, after one that runs once */

/* Each round turns what the context has; %s are more arguments of its last step. */
static const char loop[] =
    "name: loop\nsteps:\n"
    "  start: {name: once, tool: set, args: {n: \"{{input.n}}\", a: 1, b: 2, c: 3},"
    " augment: {seen.a: a, seen.b: b, seen.c: c}, next: turn}\n"
    "  turn: {tool: set, args: {n: \"{{steps.once.result.n}}\", before: "
    "\"{{steps.tell.result.a}}\","
    " a: \"{{context.seen.b}}\", b: \"{{context.seen.c}}\", c: \"{{context.seen.a}}\"},"
    " augment: {seen.a: a, seen.b: b, seen.c: c}, next: look}\n"
    "  look: {tool: set, args: {a: \"{{steps.turn.result.a}}\", never: \"{{steps.end.result}}\"},"
    " next: tell}\n"
    "  tell: {tool: set, args: {a: \"{{context.seen.a}} {{steps.look.result.a}}\"%s}, next: turn}\n"
    "  end: {tool: set, done: true}\n";

static void make_loop(pawl **p, pawl_id *id, const char *more, uint32_t rounds)
{
    pawl_error error;
    char text[sizeof loop + 64], input[96], *answer = NULL;
    uint64_t seq = 0;

    EXPECT_OK(pawl_open(p, "memory:", &(pawl_options){ .own = true }, &error));
    snprintf(text, sizeof text, loop, more);
    EXPECT_OK(pawl_define(*p, text, strlen(text), NULL, &error));
    EXPECT_OK(pawl_create(*p, &(pawl_create_args){ .definition = "loop", .input = "{\"n\":7}" }, id,
                          &error));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id->text);
    while (seq < 6 * rounds) {
        EXPECT_OK(pawl_run_due_within(*p, 1000, &error));
        EXPECT_OK(pawl_call(*p, "instance.get", input, &answer, &error));
        seq = strtoull(strstr(answer, "next_sequence_number\":") + 22, NULL, 10);
        pawl_free(*p, answer);
    }
}

/* The five steps behind `after`, which are as the list of all steps has them. */
static struct work read_page(pawl *p, const pawl_id *id, uint32_t after, const char *all)
{
    char input[160], *answer = NULL;
    struct work work;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"limit\":5,\"after\":\"%s.%u\"}",
             id->text, id->text, after);
    work = work_of(p, "instance.steps", input, &answer);
    for (uint32_t n = after + 1; n <= after + 5; n++) {
        str found = step_in(answer, id->text, n), wanted = step_in(all, id->text, n);

        if (!str_eq(found, wanted))
            test_fail(__FILE__, __LINE__, "found %.*s, wanted %.*s", STR_ARG(found),
                      STR_ARG(wanted));
    }
    pawl_free(p, answer);
    return work;
}

static const uint32_t places[] = { 3, 500, 2000, 2001, 3002, 3003, 4000, 5990 };
#define PLACES (sizeof places / sizeof *places)

TEST(reads, a_page_of_steps_costs_the_same_wherever_it_is_in_a_long_flow)
{
    pawl *p;
    pawl_id id;
    char input[96], *all = NULL;

    make_loop(&p, &id, "", ROUNDS);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id.text);
    work_of(p, "instance.steps", input, &all);
    for (size_t i = 0; i < PLACES; i++) {
        struct work work = read_page(p, &id, places[i], all);

        if (work.records >= 400 || work.values >= 100 || work.passed >= 5000)
            test_fail(__FILE__, __LINE__, "after %u: %llu records, %llu values, %llu passed",
                      places[i], (unsigned long long)work.records, (unsigned long long)work.values,
                      (unsigned long long)work.passed);
    }
    pawl_free(p, all);
    pawl_close(p);
}

TEST(reads, arguments_that_show_the_order_of_the_context_are_the_same_on_every_page)
{
    pawl *p;
    pawl_id id;
    char input[96], *all = NULL;

    make_loop(&p, &id, ", all: \"{{context.seen}}\"", ROUNDS);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id.text);
    work_of(p, "instance.steps", input, &all);
    for (size_t i = 0; i < PLACES; i++)
        (void)read_page(p, &id, places[i], all);
    pawl_free(p, all);
    pawl_close(p);
}

/* ---- Code that calls without end ---- */

struct caller {
    int64_t calls;
};

static const pawl_var caller_vars[] = { PAWL_VAR(struct caller, calls, PAWL_VAR_INT64), { 0 } };
static const char *const caller_calls[] = { "set", NULL };

static void caller_handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    struct caller *caller = state;
    char args[48];

    (void)context, (void)event;
    snprintf(args, sizeof args, "{\"n\":%lld}", (long long)++caller->calls);
    pawl_turn_call(turn, "set", args);
}

static const pawl_code_type caller_type = { .name = "caller",
                                            .calls = caller_calls,
                                            .vars = caller_vars,
                                            .state_size = sizeof(struct caller),
                                            .handle = caller_handle };

TEST(reads, a_page_of_calls_reads_none_of_the_history_before_it)
{
    pawl *p;
    pawl_id id;
    pawl_error error;
    char input[96], *all = NULL;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .own = true }, &error));
    EXPECT_OK(pawl_code_register(p, &caller_type, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "caller" }, &id, &error));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(pawl_run_due_within(p, 1000, &error));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id.text);
    work_of(p, "instance.steps", input, &all);
    EXPECT_HAS(all, "\"args\":{\"n\":900}");
    EXPECT(read_page(p, &id, 700, all).records < 200);
    pawl_free(p, all);
    pawl_close(p);
}

TEST(reads, what_an_amended_flow_waits_for_is_known_without_reading_its_past)
{
    pawl *p;
    pawl_id id;
    char input[96], *answer = NULL;

    make_chain(&p, &id);
    define_chain(p, 2);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"definition\":\"chain\"}", id.text);
    work_of(p, "instance.amend", input, &answer);
    pawl_free(p, answer);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id.text);
    EXPECT(work_of(p, "instance.why", input, &answer).records < 16);
    EXPECT_HAS(answer, "\"tool\":\"far2\"");
    pawl_free(p, answer);
    pawl_close(p);
}

TEST(reads, a_status_that_no_step_has_is_looked_for_without_reading_values)
{
    pawl *p;
    pawl_id id;
    char input[96], *answer = NULL;
    struct work work;

    make_chain(&p, &id);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"status\":\"failed\"}", id.text);
    work = work_of(p, "step.list", input, &answer);
    EXPECT(work.records < 2 * STEPS + 16 && work.values < 16);
    EXPECT_HAS(answer, "{\"steps\":[]");
    pawl_free(p, answer);
    pawl_close(p);
}
