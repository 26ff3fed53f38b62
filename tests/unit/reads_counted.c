/* reads_counted.c - how much an operation reads from the store, counted as SELECT statements that
 * SQLite runs and as rows that these return. The counts are written down once, in the table below. A
 * count that grows is a defect; for a count that falls, lower the table.
 *
 * SQLite itself counts, so the figures do not depend on which verbs the store's port has. */
#include "engine_fixture.h"
#include <dlfcn.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>

#define NOTES      200 /* entries of the machine */
#define INSTANCES  60  /* of the machine, and a third as many of the flow */
#define INPUT_SIZE 256

struct reads {
    int statements, rows;
};

/* An operation, first in a store that was just opened (cold), then once more (warm). */
static const struct {
    const char *name, *operation, *members; /* of the input, beside the instance */
    enum { ANY, MACHINE, FLOW, CODE } instance;
    struct reads cold, warm;
} table[] = {
    { "fire", "instance.fire", "\"action\":\"note\"", MACHINE, { 6, 5 }, { 0, 0 } },
    { "signal", "signal.send", "\"name\":\"slower\"", CODE, { 8, 7 }, { 0, 0 } },
    { "create", "instance.create", "\"definition\":\"order\"", ANY, { 4, 3 }, { 0, 0 } },

    { "show @last", "instance.find", "", ANY, { 3, 3 }, { 3, 3 } },
    { "show machine", "instance.view", "\"entries\":\"24\"", MACHINE, { 5, 27 }, { 3, 26 } },
    { "show flow", "instance.view", "\"entries\":\"24\"", FLOW, { 3, 7 }, { 3, 7 } },
    { "show code", "instance.view", "\"entries\":\"24\"", CODE, { 5, 8 }, { 3, 7 } },

    /* The parts of it, each for itself. */
    { "machine", "instance.get", "", MACHINE, { 6, 5 }, { 4, 4 } },
    { "flow", "instance.get", "", FLOW, { 10, 9 }, { 10, 9 } },
    { "code", "instance.get", "", CODE, { 11, 12 }, { 9, 11 } },
    { "path", "instance.history", "\"sequence_from\":151", MACHINE, { 110, 109 }, { 108, 108 } },
    { "steps",
      "instance.steps",
      "\"limit\":1000,\"without_args\":\"true\"",
      FLOW,
      { 38, 37 },
      { 38, 37 } },
    { "graph", "instance.graph", "\"format\":\"json\"", FLOW, { 22, 21 }, { 22, 21 } },
    { "context", "instance.variables", "", FLOW, { 11, 11 }, { 11, 11 } },
    { "variables", "instance.variables", "", CODE, { 5, 4 }, { 3, 3 } },

    { "why of a machine", "instance.why", "", MACHINE, { 5, 3 }, { 3, 2 } },
    { "why of a flow", "instance.why", "", FLOW, { 3, 7 }, { 3, 7 } },
    { "why of code", "instance.why", "", CODE, { 5, 8 }, { 3, 7 } },

    { "live steps", "step.list", "\"limit\":10", ANY, { 441, 440 }, { 441, 440 } },
    { "live steps of a tool",
      "step.list",
      "\"limit\":10,\"tool\":\"work\"",
      ANY,
      { 441, 440 },
      { 441, 440 } },
    { "steps of one instance", "step.list", "", FLOW, { 44, 43 }, { 44, 43 } },

    { "whole history", "instance.history", "", MACHINE, { 410, 409 }, { 408, 408 } },
    { "first page of a history",
      "instance.history",
      "\"limit\":10",
      MACHINE,
      { 223, 222 },
      { 221, 221 } },
    { "page in the middle",
      "instance.history",
      "\"limit\":10,\"sequence_from\":100",
      MACHINE,
      { 124, 123 },
      { 122, 122 } },
    { "one entry",
      "instance.history",
      "\"sequence_number\":\"100\"",
      MACHINE,
      { 47, 46 },
      { 45, 45 } },
    { "history of a flow", "instance.history", "", FLOW, { 16, 16 }, { 16, 16 } },

    { "list", "instance.list", "\"limit\":20", ANY, { 212, 215 }, { 208, 213 } },
    { "list of a definition",
      "instance.list",
      "\"limit\":20,\"definition\":\"order\"",
      ANY,
      { 104, 123 },
      { 102, 122 } },
    { "list by state",
      "instance.list",
      "\"limit\":20,\"definition\":\"order\",\"state\":\"paid\"",
      ANY,
      { 108, 167 },
      { 106, 166 } },
    { "list by status",
      "instance.list",
      "\"limit\":20,\"status\":\"suspended\"",
      ANY,
      { 115, 134 },
      { 111, 132 } },
    { "list of flows",
      "instance.list",
      "\"limit\":20,\"kind\":\"flow\"",
      ANY,
      { 222, 221 },
      { 222, 221 } },
    { "definitions", "definition.list", "", ANY, { 1, 3 }, { 1, 3 } },
};

/* ---- Counting ---- */

static atomic_int statements, rows;

static bool is_select(const char *text)
{
    return text && (sqlite3_strnicmp(text, "SELECT", 6) == 0 || sqlite3_strnicmp(text, "WITH", 4) == 0);
}

static int note(unsigned what, void *context, void *statement, void *detail)
{
    (void)context, (void)detail;
    if (!is_select(sqlite3_sql(statement)))
        return 0;
    if (what == SQLITE_TRACE_STMT)
        statements++;
    else
        rows++;
    return 0;
}

/* Called by SQLite for each connection that is opened. */
static int count_connection(sqlite3 *db, const char **error, const struct sqlite3_api_routines *api)
{
    (void)error, (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_ROW, note, NULL);
}

static struct reads reads_of(struct world *world, const char *operation, const char *input)
{
    char *answer = NULL;

    statements = rows = 0;
    if (pawl_call(world->p, operation, input, &answer, &world->error))
        test_fail(__FILE__, __LINE__, "%s %s: %s", operation, input, world->error.message);
    pawl_free(world->p, answer);
    return (struct reads){ statements, rows };
}

/* ---- The store ---- */

#define REVIEW                                                                                     \
    "name: review\nsteps:\n"                                                                       \
    "  start: {name: one, tool: set, args: {x: 1}, next: two}\n"                                   \
    "  two: {tool: set, args: {y: \"{{steps.one.result.x}}\"}, next: three}\n"                     \
    "  three: {tool: work, done: true}\n"

static void make(struct world *world, const char *ids[])
{
    world_define(world, ORDER);
    world_define(world, REVIEW);
    for (int i = 0; i < INSTANCES; i++) {
        ids[MACHINE] = world_create(world, "order", NULL);
        if (i % 3 == 0)
            EXPECT_OK(world_fire(world, ids[MACHINE], "pay"));
    }
    EXPECT_OK(world_fire(world, ids[MACHINE], "pay"));
    for (int i = 1; i < NOTES; i++)
        EXPECT_OK(world_fire(world, ids[MACHINE], "note"));
    for (int i = 0; i < INSTANCES / 3; i++)
        ids[FLOW] = world_create(world, "review", NULL);
    ids[CODE] = world_create(world, "ticker", NULL);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
}

/* ---- The test ---- */

static void put_input(char out[INPUT_SIZE], const char *id, const char *members)
{
    if (id)
        snprintf(out, INPUT_SIZE, "{\"instance_id\":\"%s\"%s%s}", id, members[0] ? "," : "", members);
    else
        snprintf(out, INPUT_SIZE, "{%s}", members);
}

static bool is_as_written(const char *name, const char *when, struct reads found,
                          struct reads written)
{
    bool grew = found.statements > written.statements || found.rows > written.rows;

    if (found.statements == written.statements && found.rows == written.rows)
        return true;
    printf("# %s, %s: %d statements and %d rows, the table has %d and %d: %s\n", name, when,
           found.statements, found.rows, written.statements, written.rows,
           grew ? "it reads more than it did" : "lower the table");
    return false;
}

TEST(reads, no_operation_reads_more_than_the_table_says)
{
    const char *ids[CODE + 1] = { NULL };
    struct world world;
    int wrong = 0;

    EXPECT_EQ(sqlite3_auto_extension((void (*)(void))count_connection), SQLITE_OK);
    world_begin(&world, "sqlite");
    make(&world, ids);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char input[INPUT_SIZE];
        struct reads cold, warm;

        put_input(input, ids[table[i].instance], table[i].members);
        world_close(&world);
        world_open(&world);
        cold = reads_of(&world, table[i].operation, input);
        warm = reads_of(&world, table[i].operation, input);
        wrong += !is_as_written(table[i].name, "cold", cold, table[i].cold);
        wrong += !is_as_written(table[i].name, "warm", warm, table[i].warm);
    }
    world_end(&world);
    EXPECT_EQ(wrong, 0);
}

/* However many are armed. */
TEST(reads, a_timer_that_fires_reads_none_that_is_due_later)
{
    struct world world;

    EXPECT_EQ(sqlite3_auto_extension((void (*)(void))count_connection), SQLITE_OK);
    world_begin(&world, "sqlite");
    (void)world_create(&world, "ticker", NULL);
    world_advance(&world, 500);
    for (int i = 0; i < 200; i++)
        (void)world_create(&world, "ticker", NULL);
    statements = rows = 0;
    world_advance(&world, 500);
    EXPECT(rows < 20);
    world_end(&world);
}

/* ---- Calls of SQLite ---- */

static atomic_int steps;

/* In place of SQLite's own, in this program. */
int sqlite3_step(sqlite3_stmt *statement)
{
    static int (*step)(sqlite3_stmt *);

    if (!step)
        *(void **)&step = dlsym(RTLD_NEXT, "sqlite3_step");
    steps++;
    return step(statement);
}

/* Eleven steps: start, a start and an end of each but the last, which waits. 22 entries. */
#define LONG_REVIEW                                                                                \
    "name: long\nsteps:\n  start: {name: s0, tool: set, args: {x: 1}, next: s1}\n" STEP_TO(        \
        "s1", "s2") STEP_TO("s2", "s3") STEP_TO("s3", "s4") STEP_TO("s4", "s5")                    \
        STEP_TO("s5", "s6") STEP_TO("s6", "s7") STEP_TO("s7", "s8")                                \
            STEP_TO("s8", "s9") "  s9: {tool: set, args: {x: 1}, next: ask}\n  ask: {approval: "   \
                                "{by: [ann]}, timeout: 7d, done: true}\n"
#define STEP_TO(name, next) "  " name ": {tool: set, args: {x: 1}, next: " next "}\n"

/* What `pawl show` asks once it has opened the store: this operation, by a process that does not own
 * it. Every call of sqlite3_step() is counted: each row, each end, BEGIN and COMMIT; and so is the
 * definition, which is not known yet. */
TEST(reads, a_view_of_22_entries_is_one_read_of_at_most_30_steps)
{
    char input[INPUT_SIZE], *answer = NULL;
    struct world world;
    const char *id;

    world_begin(&world, "sqlite");
    world_define(&world, LONG_REVIEW);
    id = world_create(&world, "long", NULL);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    world_close(&world);
    world.options.own = false;
    world_open(&world);
    put_input(input, id, "");
    steps = 0;
    EXPECT_OK(pawl_call(world.p, "instance.view", input, &answer, &world.error));
    if (steps > 30)
        test_fail(__FILE__, __LINE__, "sqlite3_step() was called %d times", steps);
    EXPECT(strstr(answer, "\"next_sequence_number\":23,") != NULL);
    pawl_free(world.p, answer);
    world_end(&world);
}

/* ---- The inbox ---- */

#define SLEEPER "name: sleeper\nsteps: {nap: {tool: sleep, args: {for: 7d}, done: true}}\n"

static struct reads inbox_of(struct world *world, const char *query, int gates)
{
    char *answer = NULL;
    int found = 0;

    statements = rows = 0;
    EXPECT_OK(pawl_call(world->p, "gate.list", query, &answer, &world->error));
    for (const char *at = answer; (at = strstr(at, "\"step\":\"ask\"")); at++)
        found++;
    EXPECT_EQ(found, gates);
    pawl_free(world->p, answer);
    return (struct reads){ statements, rows };
}

/* What waits for something else costs its rows. A gate costs what its last records are, however
 * long the way to it was. What a filter leaves out has no record read. */
TEST(reads, an_inbox_reads_the_log_of_gates_alone_and_of_those_the_end)
{
    struct reads all, none, slept;
    struct world world;

    EXPECT_EQ(sqlite3_auto_extension((void (*)(void))count_connection), SQLITE_OK);
    world_begin(&world, "sqlite");
    world_define(&world, LONG_REVIEW);
    world_define(&world, SLEEPER);
    for (int i = 0; i < 10; i++)
        (void)world_create(&world, "sleeper", NULL);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    slept = inbox_of(&world, "{}", 0);
    for (int i = 0; i < 10; i++)
        (void)world_create(&world, "long", NULL);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    all = inbox_of(&world, "{}", 10);
    none = inbox_of(&world, "{\"approver\":\"eve\"}", 0);
    EXPECT_EQ(slept.statements, 1 + 10 * 2);
    EXPECT_EQ(slept.rows, 10 * 4);
    EXPECT_EQ(none.statements - slept.statements, 10 * 2);
    EXPECT_EQ(none.rows - slept.rows, 10 * 4);
    EXPECT_EQ(all.statements - none.statements, 10 * 2);
    EXPECT_EQ(all.rows - none.rows, 10 * 2);
    world_end(&world);
}
