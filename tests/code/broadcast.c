/* broadcast.c - a broadcast touches the instances that it reaches, however many others have subscribed
 * (E14). Counted in what SQLite does: steps of its machine, and steps of scans. */
#include "lib/test.h"
#include <pawl_code.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP 10

#define LISTENER(has)                                                                              \
    has(input, uint32_t, group)                                                                    \
    has(var, uint32_t, heard)                                                                      \
    has(timer, Tire)                                                                               \
    has(signal, Call)                                                                              \
    has(await, listening)

PAWL_CODE(listener, LISTENER)
{
    PAWL_BEGIN(LISTENER);
    PAWL_SUBSCRIBE(Call, pawl_turn_text(turn, "%u", (unsigned)self->group));
    for (;;) {
        PAWL_SELECT(listening) {
            PAWL_ON_SIGNAL(Call) self->heard++;
            PAWL_ON_TIMER(Tire, PAWL_DAYS(1)) break;
        } PAWL_AWAIT;
    }
    PAWL_END;
}

/* Awaits something else, and keeps what it is called for. */
#define KEEPER(has)                                                                                \
    has(input, uint32_t, group)                                                                    \
    has(timer, Tire)                                                                               \
    has(signal, Call)                                                                              \
    has(buffered, Call)                                                                            \
    has(await, sleeping)

PAWL_CODE(keeper, KEEPER)
{
    PAWL_BEGIN(KEEPER);
    PAWL_SUBSCRIBE(Call, pawl_turn_text(turn, "%u", (unsigned)self->group));
    PAWL_SUBSCRIBE(Call, pawl_turn_text(turn, "%u", 1000000 + (unsigned)self->group));
    PAWL_TIMER(sleeping, Tire, PAWL_DAYS(1));
    PAWL_END;
}

struct count {
    long steps, scans;
    long finding; /* of the steps: by which it is known whom to ask */
};

static int count_statement(unsigned what, void *context, void *statement, void *time)
{
    struct count *count = context;
    long steps;

    (void)what;
    (void)time;
    steps = sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
    count->steps += steps;
    if (strstr(sqlite3_sql(statement), "SELECT inst FROM pawl_interest"))
        count->finding += steps;
    count->scans += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
    return 0;
}

static void run(sqlite3 *db, const char *sql)
{
    EXPECT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void subscribe(pawl *p, sqlite3 *db, const char *type, int count)
{
    pawl_error error;
    pawl_id id;

    run(db, "BEGIN IMMEDIATE");
    for (int i = 0; i < count; i++) {
        char input[32];

        snprintf(input, sizeof input, "{\"group\":%d}", i / GROUP);
        EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = type, .input = input },
                              &id, &error));
    }
    run(db, "COMMIT");
}

static void open_on(pawl **p, sqlite3 *db)
{
    pawl_error error;

    EXPECT_OK(pawl_attach(p, db, NULL, &error));
    EXPECT_OK(pawl_code_register(*p, listener(), &error));
    EXPECT_OK(pawl_code_register(*p, keeper(), &error));
}

/* What a broadcast costs where `count` have subscribed, in tens. */
static struct count broadcast_among(const char *type, int count, bool is_asleep, const char *input,
                                    const char *answer)
{
    char folder[TEST_FOLDER_SIZE], path[96], command[96], *out;
    struct count counted = { 0 };
    pawl_error error;
    sqlite3 *db;
    pawl *p;

    test_folder(folder);
    snprintf(path, sizeof path, "%s/host.db", folder);
    EXPECT_EQ(sqlite3_open(path, &db), SQLITE_OK);
    run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    open_on(&p, db);
    EXPECT_EQ(sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, count_statement, &counted), SQLITE_OK);
    subscribe(p, db, type, count); /* with it on: what statements have counted so far is forgotten */
    if (is_asleep) {
        pawl_close(p);
        open_on(&p, db);
    }
    counted = (struct count){ 0 };
    EXPECT_OK(pawl_call(p, "signal.broadcast", input, &out, &error));
    EXPECT_TEXT(out, answer);
    pawl_free(p, out);
    pawl_close(p);
    sqlite3_close(db);
    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT(system(command) == 0);
    return counted;
}

static void expect_alike(const char *type, const char *answer)
{
    static const char input[] = "{\"name\":\"call\",\"filter\":3}";
    struct count few = broadcast_among(type, 100, false, input, answer);
    struct count many = broadcast_among(type, 2000, false, input, answer);

    EXPECT(few.steps > 100);
    EXPECT(many.steps < few.steps + few.steps / 10);
    EXPECT(many.scans <= few.scans);
}

TEST(code_broadcast, a_broadcast_to_ten_costs_the_same_among_two_thousand_as_among_a_hundred)
{
    expect_alike("listener", "{\"delivered\":10}");
}

TEST(code_broadcast, a_broadcast_that_ten_keep_costs_the_same_among_two_thousand_as_among_a_hundred)
{
    expect_alike("keeper", "{\"delivered\":0,\"kept\":10}");
}

/* All of them sleep: what each costs does not grow with their number. */
TEST(code_broadcast, a_broadcast_that_a_thousand_keep_costs_at_most_twelve_times_one_that_a_hundred_keep)
{
    static const char input[] = "{\"name\":\"call\"}";
    struct count few =
        broadcast_among("keeper", 100, true, input, "{\"delivered\":0,\"kept\":100}");
    struct count many =
        broadcast_among("keeper", 1000, true, input, "{\"delivered\":0,\"kept\":1000}");

    EXPECT(few.finding > 100 && few.steps > few.finding);
    EXPECT(many.finding <= 12 * few.finding);
    EXPECT(many.steps <= 12 * few.steps);
    EXPECT(many.scans <= 12 * few.scans);
}
