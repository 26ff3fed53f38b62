/* code.c - code, its tools, and the rows that the host keeps in the same file. */
#include "fault/stage.h"
#include "sim/sim.h"
#include <pawl_code.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define VIEWS_SIZE 2048 /* bytes of the statements that drop them */

/* ---- Plain code: it counts ticks down, a signal adds one, and it ends with a call ---- */

struct keeper {
    int64_t left, ticks, heard;
    bool is_calling;
};

static const pawl_var keeper_vars[] = {
    PAWL_VAR(struct keeper, left, PAWL_VAR_INT64),
    PAWL_VAR(struct keeper, ticks, PAWL_VAR_INT64),
    PAWL_VAR(struct keeper, heard, PAWL_VAR_INT64),
    PAWL_VAR(struct keeper, is_calling, PAWL_VAR_BOOL),
    { 0 },
};
static const char *const keeper_timers[] = { "tick", NULL };
static const char *const keeper_signals[] = { "more", NULL };
static const char *const keeper_calls[] = { "press", NULL };
static const pawl_retry keeper_retries[] = { { "press", 100, 1000, 1000 }, { 0 } };

static uint64_t read_number(const char *json, const char *name)
{
    const char *at = strstr(json, name);

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void keeper_handle(void *context, pawl_turn *turn, void *memory, const pawl_event *event)
{
    struct keeper *keeper = memory;

    (void)context;
    if (event->kind == PAWL_EVENT_START)
        keeper->left = (int64_t)read_number(event->payload, "\"count\":");
    else if (event->kind == PAWL_EVENT_TIMER) {
        keeper->ticks++;
        keeper->left--;
    } else if (event->kind == PAWL_EVENT_SIGNAL) {
        keeper->heard++;
        keeper->left++;
    } else {
        pawl_turn_complete(turn,
                           pawl_turn_text(turn, "{\"ticks\":%lld,\"heard\":%lld}",
                                          (long long)keeper->ticks, (long long)keeper->heard));
        return;
    }
    if (keeper->left == 0) {
        keeper->is_calling = true;
        pawl_turn_call(turn, "press", "{}");
        return;
    }
    pawl_turn_timer(turn, "tick", TICK_MS);
    if (keeper->heard < 3)
        pawl_turn_signal(turn, "more");
}

static const pawl_code_type keeper_type = {
    .name = "keeper",
    .timers = keeper_timers,
    .signals = keeper_signals,
    .calls = keeper_calls,
    .retries = keeper_retries,
    .vars = keeper_vars,
    .state_size = sizeof(struct keeper),
    .handle = keeper_handle,
};

/* ---- Code with places: it reads notes, which are kept while it is busy, or is bored; then it asks a
 * worker, and has the host count ---- */

#define CLERK(has)                                                                                 \
    has(input, uint32_t, n) has(input, uint32_t, count, 2) has(var, uint32_t, round)               \
        has(var, uint32_t, notes) has(var, uint32_t, bored) has(var, uint64_t, sum)                \
            has(signal, Note, json, 4096) has(buffered, Note) has(timer, Bored) has(call, fetch)   \
                has(retry, fetch, 5, PAWL_SECS(1), PAWL_SECS(1)) has(result, uint32_t, notes)      \
                    has(result, uint32_t, bored) has(result, uint64_t, sum) has(await, reading)    \
                        has(await, fetching)

/* The next release knows a variable more. */
#define CLERK2(has)                                                                                \
    has(version, 2) CLERK(has) has(var, uint32_t, bonus, BONUS) has(result, uint32_t, bonus)

#define CLERK_WORKS                                                                                \
    for (self->round = 0; self->round < self->count; self->round++) {                              \
        PAWL_SELECT(reading)                                                                       \
        {                                                                                          \
            PAWL_ON_SIGNAL(Note)                                                                   \
            {                                                                                      \
                self->notes++;                                                                     \
                self->sum += read_number(got->Note, "\"n\":");                                     \
            }                                                                                      \
            PAWL_ON_TIMER(Bored, BORED_MS) self->bored++;                                          \
        }                                                                                          \
        PAWL_AWAIT;                                                                                \
        PAWL_CALL(fetching, fetch, pawl_turn_text(turn, "{\"round\":%u}", self->round));           \
        PAWL_REDUCE(tally, pawl_turn_text(turn, "{\"n\":%u,\"round\":%u}", self->n, self->round)); \
    }                                                                                              \
    result->notes = self->notes;                                                                   \
    result->bored = self->bored;                                                                   \
    result->sum = self->sum

PAWL_CODE(clerk, CLERK)
{
    PAWL_BEGIN(CLERK);
    CLERK_WORKS;
    PAWL_END;
}

PAWL_CODE_AS(clerk2, "clerk", CLERK2)
{
    PAWL_BEGIN(CLERK2);
    CLERK_WORKS;
    result->bonus = self->bonus;
    PAWL_END;
}

/* ---- The host's own rows ---- */

/* One in seven is refused, after its row was written. */
#define REFUSES(n, round) (((n) + (round)) % 7 == 6)

static bool tally(void *context, sqlite3 *db, const char *args, char *words, size_t size)
{
    uint64_t n = read_number(args, "\"n\":"), round = read_number(args, "\"round\":");
    char sql[96];

    (void)context;
    snprintf(sql, sizeof sql, "INSERT INTO tally VALUES (%" PRIu64 ", %" PRIu64 ")", n, round);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK && !REFUSES(n, round))
        return true;
    snprintf(words, size, "this one is not counted");
    return false;
}

static sqlite3 *open_rows(void)
{
    sqlite3 *db;

    EXPECT(sqlite3_open(stage_path, &db) == SQLITE_OK);
    return db;
}

void tally_begin(void)
{
    sqlite3 *db = open_rows();

    EXPECT(sqlite3_exec(db, "CREATE TABLE tally (n INTEGER, round INTEGER)", NULL, NULL, NULL) ==
           SQLITE_OK);
    sqlite3_close(db);
}

static int add_drop(void *context, int count, char **columns, char **names)
{
    char *text = context;

    (void)count;
    (void)names;
    snprintf(text + strlen(text), VIEWS_SIZE - strlen(text), "DROP VIEW %s;", columns[0]);
    return 0;
}

/* The views that people ask by SQL are most of the schema, and reading the schema was a third of
 * what a simulated crash costs. No call of this simulation uses them. */
void views_drop(void)
{
    sqlite3 *db = open_rows();
    char drops[VIEWS_SIZE] = "";

    EXPECT(sqlite3_exec(db, "SELECT name FROM sqlite_master WHERE type = 'view'", add_drop, drops,
                        NULL) == SQLITE_OK);
    EXPECT(sqlite3_exec(db, drops, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

/* The rows that an instance must have left, by its history alone. */
static uint32_t count_turns(const struct subject *subject)
{
    return subject->process == PROCESS_CLERK && strcmp(subject->fold.state, "completed") == 0
               ? subject->rounds
               : 0;
}

/* Rows of turns that were taken are there; those of turns that were refused are not. */
void tally_check(struct sim *sim)
{
    sqlite3 *db = open_rows();
    sqlite3_stmt *statement;
    uint32_t least = 0, rows = 0;

    EXPECT(sqlite3_prepare_v2(db, "SELECT n, round FROM tally", -1, &statement, NULL) == SQLITE_OK);
    for (; sqlite3_step(statement) == SQLITE_ROW; rows++)
        if (REFUSES(sqlite3_column_int(statement, 0), sqlite3_column_int(statement, 1)))
            sim_fail(sim, "X13 host rows", "the row %d, %d was refused, and is there",
                     sqlite3_column_int(statement, 0), sqlite3_column_int(statement, 1));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    for (uint32_t i = 0; i < sim->subject_count; i++)
        least += count_turns(&sim->subjects[i]);
    if (rows < least)
        sim_fail(sim, "X13 host rows", "%u rows of completed turns, and %u are there", least, rows);
}

/* ---- The tool that runs in the process ---- */

static void press(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct sim *sim = context;

    (void)call;
    if (!sim->is_healing && dice_chance(&sim->dice, 100))
        pawl_answer_error(answer, "\"jammed\"");
    else
        pawl_answer_result(answer, "{\"pressed\":true}");
}

pawl_status code_register(struct sim *sim, pawl *p)
{
    pawl_status status = pawl_tool_register(p, "press", press, sim, &sim->error);

    if (status == PAWL_OK)
        status = pawl_reduce_register(p, "tally", tally, sim, &sim->error);
    if (status == PAWL_OK)
        status = pawl_code_register(p, &keeper_type, &sim->error);
    return status == PAWL_OK
               ? pawl_code_register(p, sim->release > 1 ? clerk2() : clerk(), &sim->error)
               : status;
}
