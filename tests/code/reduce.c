/* reduce.c - the host's own rows in the same transaction as a turn of its code (E13, X13). */
#include "combat.h"
#include "lib/test.h"
#include <pawl_test.h>
#include <sqlite3.h>
#include <unistd.h>

struct field {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
    const char *sql; /* what the reduce does */
    int calls;
    bool refuses;
    sqlite3_stmt *open;
};

static bool apply(void *context, sqlite3 *db, const char *args, char *words, size_t size)
{
    struct field *field = context;
    char *error = NULL;

    EXPECT_HAS(args, "{\"target\":9,\"damage\":50}");
    field->calls++;
    if (field->refuses) {
        snprintf(words, size, "out of \"range\"");
        return false;
    }
    if (!db || sqlite3_exec(db, field->sql, NULL, NULL, &error) == SQLITE_OK)
        return true;
    snprintf(words, size, "%s", error);
    sqlite3_free(error);
    return false;
}

#define HIT "UPDATE enemy SET health = health - 50 WHERE id = 9"

static void begin(struct field *field, bool in_memory)
{
    *field = (struct field){ .sql = HIT };
    test_folder(field->folder);
    snprintf(field->url, sizeof field->url, "sqlite:%s/game.db", field->folder);
    pawl_kit_open(&field->kit, in_memory ? NULL : field->url);
    PAWL_EXPECT_OK(&field->kit, pawl_reduce_register(field->kit.p, "apply_damage", apply, field,
                                                     &field->kit.error));
    pawl_kit_register(&field->kit, combat());
}

static sqlite3 *open_file(const struct field *field)
{
    sqlite3 *db;

    EXPECT(sqlite3_open(field->url + strlen("sqlite:"), &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    return db;
}

static void prepare(const struct field *field)
{
    sqlite3 *db = open_file(field);

    EXPECT(sqlite3_exec(db,
                        "CREATE TABLE enemy (id INTEGER PRIMARY KEY, health, note UNIQUE);"
                        "INSERT INTO enemy VALUES (9, 200, 'a'), (10, 1, 'b')",
                        NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

static int health(const struct field *field)
{
    sqlite3 *db = open_file(field);
    sqlite3_stmt *statement;
    int found;

    EXPECT(sqlite3_prepare_v2(db, "SELECT health FROM enemy WHERE id = 9", -1, &statement, NULL) ==
           SQLITE_OK);
    EXPECT(sqlite3_step(statement) == SQLITE_ROW);
    found = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return found;
}

static void end(struct field *field)
{
    char *out, command[96];

    PAWL_EXPECT_OK(&field->kit,
                   pawl_call(field->kit.p, "store.verify", NULL, &out, &field->kit.error));
    EXPECT_HAS(out, "\"valid\":true");
    pawl_free(field->kit.p, out);
    pawl_kit_close(&field->kit);
    snprintf(command, sizeof command, "rm -r %s", field->folder);
    EXPECT(system(command) == 0);
}

TEST(reduce, the_hosts_rows_and_the_entry_are_there_together)
{
    struct field field;
    const char *id;

    begin(&field, false);
    prepare(&field);
    id = pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}");
    EXPECT_EQ(health(&field), 150);
    pawl_kit_advance(&field.kit, 1000);
    EXPECT_EQ(health(&field), 100);
    pawl_kit_advance(&field.kit, 1000);
    PAWL_EXPECT_HISTORY(&field.kit, id, "start timer:delay timer:delay finish");
    PAWL_EXPECT_RESULT(&field.kit, id, "{\"victory\":true,\"rounds\":2}");
    EXPECT_EQ(health(&field), 100);
    EXPECT_EQ(field.calls, 2);
    end(&field);
}

TEST(reduce, one_that_refuses_undoes_its_turn_alone_and_fails_the_instance)
{
    struct field field;
    const char *id, *other;

    begin(&field, false);
    prepare(&field);
    id = pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}");
    other = pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}");
    field.refuses = true;
    PAWL_EXPECT_OK(&field.kit, pawl_test_advance(field.kit.p, 1000, &field.kit.error));
    PAWL_EXPECT_HISTORY(&field.kit, id, "start timer:delay fail");
    PAWL_EXPECT_ERROR(&field.kit, id, "\"reduce 'apply_damage': out of \\\"range\\\"\"");
    PAWL_EXPECT_VARIABLE(&field.kit, id, "rounds", "1"); /* nothing of the turn is kept */
    PAWL_EXPECT_STATE(&field.kit, other, "failed");
    EXPECT_EQ(health(&field), 100);
    id = pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}");
    PAWL_EXPECT_HISTORY(&field.kit, id, "start fail");
    end(&field);
}

/* What a reduce may not do, and what each says. */
TEST(reduce, our_tables_and_the_transaction_are_out_of_its_reach)
{
    static const struct {
        const char *sql, *words;
    } rows[] = {
        { HIT "; DELETE FROM pawl_log", "not authorized" },
        { HIT "; SELECT count(*) FROM pawl_head", "reduce 'apply_damage': " },
        { HIT "; SELECT * FROM pawl_instances", "reduce 'apply_damage': " },
        { HIT "; DROP TABLE pawl_log", "not authorized" },
        { HIT "; CREATE TRIGGER t AFTER UPDATE ON pawl_head BEGIN SELECT 1; END", "not authorized" },
        { HIT "; ALTER TABLE PAWL_head ADD COLUMN x", "not authorized" },
        { HIT "; COMMIT", "not authorized" },
        { HIT "; ROLLBACK", "not authorized" },
        { HIT "; SAVEPOINT s", "not authorized" },
        { HIT "; PRAGMA user_version = 7", "not authorized" },
        { HIT "; ATTACH ':memory:' AS x", "not authorized" },
        { HIT "; INSERT OR ROLLBACK INTO enemy VALUES (11, 1, 'a')", "it ended the transaction" },
        { "UPDATE nowhere SET x = 1", "no such table" },
    };
    struct field field;

    begin(&field, false);
    prepare(&field);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *id;

        field.sql = rows[i].sql;
        id = pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}");
        PAWL_EXPECT_STATE(&field.kit, id, "failed");
        EXPECT_HAS(pawl_kit_member(&field.kit, "instance.get", id, "error"), rows[i].words);
        EXPECT_EQ(health(&field), 200);
    }
    field.sql = HIT;
    PAWL_EXPECT_STATE(&field.kit, pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}"), "running");
    EXPECT_EQ(health(&field), 150);
    end(&field);
}

static bool leave_open(void *context, sqlite3 *db, const char *args, char *words, size_t size)
{
    struct field *field = context;

    (void)args;
    (void)words;
    (void)size;
    EXPECT(sqlite3_prepare_v2(db, "SELECT * FROM enemy", -1, &field->open, NULL) == SQLITE_OK);
    EXPECT(sqlite3_step(field->open) == SQLITE_ROW);
    return true;
}

TEST(reduce, a_statement_left_open_is_named)
{
    struct field field;
    const char *id;

    begin(&field, false);
    prepare(&field);
    PAWL_EXPECT_OK(&field.kit, pawl_reduce_register(field.kit.p, "apply_damage", leave_open, &field,
                                                    &field.kit.error));
    id = pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}");
    EXPECT_HAS(pawl_kit_member(&field.kit, "instance.get", id, "error"), "left a statement open");
    sqlite3_finalize(field.open);
    end(&field);
}

#define UNKNOWN_REDUCE "\"refused\":\"no reduce 'apply_damage' is registered in this program\""

/* Calls, and has a reduce in the turn that its answer takes. */
#define BOOKING(has)                                                                               \
    has(call, charge, uint32_t)                                                                    \
    has(external, confirm, uint32_t)                                                               \
    has(input, bool, by_hand)                                                                      \
    has(var, uint32_t, receipt)                                                                    \
    has(result, uint32_t, receipt)                                                                 \
    has(await, charging)                                                                           \
    has(await, confirming)

PAWL_CODE(booking, BOOKING)
{
    PAWL_BEGIN(BOOKING);
    if (self->by_hand) {
        PAWL_EXTERNAL(confirming, confirm, "{}");
        self->receipt = got->confirm;
    } else {
        PAWL_CALL(charging, charge, "{}");
        self->receipt = got->charge;
    }
    PAWL_REDUCE(apply_damage, "{\"target\":9,\"damage\":50}");
    result->receipt = self->receipt;
    PAWL_END;
}

static void charge(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct field *field = context;

    (void)call;
    field->calls++;
    pawl_answer_result(answer, "7");
}

/* An answer comes once: it is recorded, and its turn is taken where the reduce is. */
static void expect_answer_kept(struct field *field, const char *id, const char *history)
{
    PAWL_EXPECT_HISTORY(&field->kit, id, history);
    EXPECT_HAS(pawl_kit_member(&field->kit, "instance.get", id, "status"), "suspended");
    EXPECT_HAS(pawl_kit_ask(&field->kit, "instance.why", id), UNKNOWN_REDUCE);
}

TEST(reduce, an_answer_whose_turn_has_an_unknown_reduce_is_kept_and_taken_where_the_reduce_is_known)
{
    struct field field;
    const char *called, *by_hand;

    begin(&field, false);
    prepare(&field);
    pawl_kit_register(&field.kit, booking());
    pawl_kit_restart(&field.kit); /* without the reduce */
    PAWL_EXPECT_OK(&field.kit,
                   pawl_tool_register(field.kit.p, "charge", charge, &field, &field.kit.error));
    field.calls = 0;
    called = pawl_kit_start(&field.kit, "booking", NULL);
    by_hand = pawl_kit_start(&field.kit, "booking", "{\"by_hand\":true}");
    PAWL_EXPECT_OK(&field.kit, pawl_kit_answer(&field.kit, by_hand, "8", NULL));
    pawl_kit_advance(&field.kit, PAWL_DAYS(1));
    expect_answer_kept(&field, called, "start step.start:charge step.complete:charge");
    expect_answer_kept(&field, by_hand, "start step.complete:confirm");
    EXPECT_EQ(field.calls, 1);
    pawl_kit_restart(&field.kit);
    PAWL_EXPECT_OK(&field.kit, pawl_reduce_register(field.kit.p, "apply_damage", apply, &field,
                                                    &field.kit.error));
    pawl_kit_advance(&field.kit, 0);
    PAWL_EXPECT_RESULT(&field.kit, called, "{\"receipt\":7}");
    PAWL_EXPECT_RESULT(&field.kit, by_hand, "{\"receipt\":8}");
    EXPECT(!strstr(pawl_kit_ask(&field.kit, "instance.why", by_hand), "refused"));
    EXPECT_EQ(health(&field), 100);
    end(&field);
}

TEST(reduce, one_that_is_not_registered_leaves_the_event_waiting_and_why_says_so)
{
    struct field field;
    const char *id;

    begin(&field, false);
    prepare(&field);
    id = pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}");
    pawl_kit_restart(&field.kit);
    pawl_kit_advance(&field.kit, 5000);
    PAWL_EXPECT_HISTORY(&field.kit, id, "start");
    EXPECT_HAS(pawl_kit_ask(&field.kit, "instance.why", id), "\"name\":\"delay\"");
    EXPECT_HAS(pawl_kit_ask(&field.kit, "instance.why", id), UNKNOWN_REDUCE);
    PAWL_EXPECT_OK(&field.kit, pawl_reduce_register(field.kit.p, "apply_damage", apply, &field,
                                                    &field.kit.error));
    pawl_kit_advance(&field.kit, 0);
    PAWL_EXPECT_HISTORY(&field.kit, id, "start timer:delay");
    (void)pawl_kit_ask(&field.kit, "instance.pause", id);
    pawl_kit_advance(&field.kit, 5000); /* due again, and not refused */
    EXPECT(!strstr(pawl_kit_ask(&field.kit, "instance.why", id), "refused"));
    (void)pawl_kit_ask(&field.kit, "instance.resume", id);
    pawl_kit_advance(&field.kit, 0);
    PAWL_EXPECT_STATE(&field.kit, id, "completed");
    EXPECT_EQ(health(&field), 100);
    end(&field);
}

TEST(reduce, a_store_in_memory_has_no_database_to_give)
{
    struct field field;

    begin(&field, true);
    PAWL_EXPECT_STATE(&field.kit, pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}"), "running");
    EXPECT_EQ(field.calls, 1);
    field.refuses = true;
    PAWL_EXPECT_STATE(&field.kit, pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}"), "failed");
    end(&field);
}

static void expect_refused(struct field *field, pawl_status status, const char *call)
{
    char words[64];

    snprintf(words, sizeof words, "%s: not from a reduce", call);
    EXPECT_EQ(status, PAWL_INVALID_REQUEST);
    EXPECT_HAS(field->kit.error.message, words);
}

/* Each of them would wait for the commit that waits for this to end. */
static bool call_pawl(void *context, sqlite3 *db, const char *args, char *words, size_t size)
{
    struct field *field = context;
    pawl *p = field->kit.p, *other = NULL;
    pawl_error *error = &field->kit.error;
    pawl_create_args create = { .definition = "combat" };
    pawl_history *history = NULL;
    char *text = NULL;
    pawl_id id;

    (void)db, (void)args, (void)words, (void)size;
    field->calls++;
    expect_refused(field, pawl_create(p, &create, &id, error), "pawl_create");
    expect_refused(field, pawl_signal(p, "x", "flee", NULL, NULL, error), "pawl_signal");
    expect_refused(field, pawl_call(p, "instance.list", NULL, &text, error), "pawl_call");
    expect_refused(field, pawl_history_open(p, "x", NULL, &history, error), "pawl_history_open");
    expect_refused(field, pawl_run_due(p, error), "pawl_run_due");
    expect_refused(field, pawl_open(&other, field->url, NULL, error), "pawl_open");
    EXPECT_EQ(pawl_next_due(p), -1);
    EXPECT_EQ(pawl_plan_make("{}", &text, error) == PAWL_OK, false); /* it needs no store */
    EXPECT(!strstr(error->message, "reduce"));
    return true;
}

static void expect_calls_refused(bool in_memory)
{
    struct field field;

    begin(&field, in_memory);
    PAWL_EXPECT_OK(&field.kit, pawl_reduce_register(field.kit.p, "apply_damage", call_pawl, &field,
                                                    &field.kit.error));
    PAWL_EXPECT_STATE(&field.kit, pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}"), "running");
    EXPECT_EQ(field.calls, 1);
    PAWL_EXPECT_STATE(&field.kit, pawl_kit_start(&field.kit, "combat", "{\"target_id\":9}"), "running");
    end(&field);
}

TEST(reduce, a_call_of_pawl_from_a_reduce_is_refused_with_a_sentence_and_works_after_it)
{
    alarm(60); /* it waited for itself, for ever */
    expect_calls_refused(false);
    expect_calls_refused(true);
    alarm(0);
}
