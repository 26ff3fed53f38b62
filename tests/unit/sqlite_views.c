/* sqlite_views.c - what a person sees with SQL: the views, and store_sql(). */
#include "base/time.h"
#include "store/contract.h"

#define VIEW_TEST(test_name)                                                                       \
    static void body_##test_name(struct stand *s);                                                 \
    TEST(sqlite_views, test_name)                                                                  \
    {                                                                                              \
        stand_run(t, "sqlite", body_##test_name);                                                  \
    }                                                                                              \
    static void body_##test_name(struct stand *s)

struct table {
    struct stand *stand;
    uint32_t rows;
    bool marks_numbers;
    char text[4096]; /* values joined by |, rows ended by \n; NULL is -, a number has a # */
};

static pawl_status add_row(void *context, uint32_t count, const str *names, const str *values,
                           const bool *are_numbers)
{
    struct table *table = context;
    size_t size = strlen(table->text);

    for (uint32_t i = 0; i < count; i++) {
        EXPECT(names[i].size > 0);
        size += (size_t)snprintf(table->text + size, sizeof table->text - size, "%s%.*s%s",
                                 i > 0 ? "|" : "", (int)(values[i].data ? values[i].size : 1),
                                 values[i].data ? values[i].data : "-",
                                 table->marks_numbers && are_numbers[i] ? "#" : "");
    }
    EXPECT(size + 2 < sizeof table->text);
    memcpy(table->text + size, "\n", 2);
    table->rows++;
    return PAWL_OK;
}

static const char *ask(struct stand *s, const char *sql)
{
    static struct table table;

    table = (struct table){ .stand = s };
    EXPECT_OK(store_sql(s->store, s->scope, str_of(sql), 0, add_row, &table));
    return table.text;
}

VIEW_TEST(ids_in_sql_are_the_ids_that_the_engine_prints)
{
    static const uint64_t numbers[] = { 1, 31, 32, 1023, 1024, 987654321, ID_NUMBER_MAX };
    char wanted[sizeof numbers / sizeof *numbers][ID_SIZE + 1];
    uint8_t random[ID_RANDOM_SIZE];
    struct change c = change_begin(s);
    uint32_t id = add_definition(&c, STR("order"), 1, STR("x"))->id;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct instance_row *row = add_instance(&c, id);

        row->number = c.heads[c.count[4] - 1].instance = numbers[i];
        c.records[c.count[0] - 1].instance = numbers[i];
        s->env->random(s->env, random, sizeof random);
        memcpy(row->random, random, sizeof random);
        id_print(numbers[i], random, wanted[i]);
    }
    EXPECT_OK(change_commit(&c));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char sql[128];

        (void)snprintf(sql, sizeof sql, "SELECT id FROM pawl_instances WHERE number = %" PRIu64,
                       numbers[i]);
        EXPECT_EQ(strlen(ask(s, sql)), ID_SIZE + 1);
        EXPECT(memcmp(ask(s, sql), wanted[i], ID_SIZE) == 0);
    }
}

VIEW_TEST(instances_show_where_they_stand_although_rows_lag)
{
    struct change c;

    put_orders(s, 3);
    c = change_begin(s);
    c.lag = true;
    add_entry(&c, 1, 1, 0, PAID);
    add_entry(&c, 1, 2, 1, SHIPPED);
    add_entry(&c, 2, 1, 0, PAID);
    add_record(&c, 2, 1, CONTROL_PAUSE); /* no entry: the state stays */
    add_instance(&c, 1);                 /* without a head row yet */
    EXPECT_OK(change_commit(&c));
    EXPECT_TEXT(ask(s, "SELECT number, definition, version, kind, current_state, status,"
                       " terminal_kind, sequence_number FROM pawl_instances ORDER BY number"),
                "1|order|1|machine|shipped|completed|success|2\n"
                "2|order|1|machine|paid|suspended|-|1\n"
                "3|order|1|machine|new|suspended|-|0\n"
                "4|order|1|machine|new|suspended|-|0\n");
}

VIEW_TEST(the_initial_state_is_not_mistaken_for_a_name_that_looks_like_it)
{
    struct change c = change_begin(s);
    struct definition_row *row = add_definition(&c, STR("odd"), 1, STR("x"));

    row->compiled = STR("{\"compiler\":1,\"kind\":\"machine\",\"states\":["
                        "{\"name\":\"\\\"initial\\\":0\"},{\"name\":\"b\"}],\"initial\":1,"
                        "\"transitions\":[],\"plan\":{\"initial\":0}}");
    c.lag = true;
    add_instance(&c, 1);
    EXPECT_OK(change_commit(&c));
    EXPECT_TEXT(ask(s, "SELECT current_state FROM pawl_instances"), "b\n");
}

VIEW_TEST(history_names_states_actor_and_times)
{
    char time[TIME_TEXT_SIZE], id[ID_SIZE + 1], wanted[512];
    uint8_t random[ID_RANDOM_SIZE];
    struct record *entry;
    struct change c;

    put_orders(s, 1);
    c = change_begin(s);
    entry = add_entry(&c, 1, 1, 0, PAID);
    entry->actor = add_value(&c, STR("ada"), true)->id;
    entry->payload = add_value(&c, STR("{\"n\":1}"), false)->id;
    entry->fired_at_ms = T0 + 86399999;
    entry->flags = RECORD_GUARD;
    EXPECT_OK(change_commit(&c));
    time_print(T0 + 86399999, time);
    memset(random, 1, sizeof random);
    id_print(1, random, id);
    (void)snprintf(wanted, sizeof wanted, "1|%s-1|new|pay|paid|ada|%s|1|-|{\"n\":1}|-|-\n", id,
                   time);
    EXPECT_TEXT(ask(s, "SELECT sequence_number, transition_id, from_state, action, to_state, "
                       "actor_ref, fired_at, guard_satisfied, reason, payload,"
                       " step_ordinal, attempt FROM pawl_history"),
                wanted);
    EXPECT_TEXT(ask(s, "SELECT hash FROM pawl_history"),
                "0202020202020202020202020202020202020202020202020202020202020202\n");
}

VIEW_TEST(definitions_states_transitions_and_steps_can_be_read)
{
    struct change c;

    put_orders(s, 1);
    c = change_begin(s);
    add_live(&c, (struct live_change){ .kind = LIVE_STEP_PUT,
                                       .instance = 1,
                                       .ordinal = 3,
                                       .step.attempt = 1,
                                       .step.status = STEP_READY });
    EXPECT_OK(change_commit(&c));
    EXPECT_TEXT(ask(s, "SELECT name, version, kind, text FROM pawl_definitions"),
                "order|1|machine|name: order\n\n");
    EXPECT_TEXT(ask(s, "SELECT name, terminal, terminal_kind FROM pawl_states ORDER BY idx"),
                "new|0|-\npaid|0|-\nshipped|1|success\ndropped|1|cancel\nburnt|1|failure\n");
    EXPECT_TEXT(ask(s, "SELECT from_state, action, to_state, by FROM pawl_transitions"
                       " WHERE idx = 1"),
                "paid|ship|shipped|caller\n");
    EXPECT_TEXT(ask(s, "SELECT substr(step_id, 27), status FROM pawl_steps"), ".3|ready\n");
    EXPECT_TEXT(ask(s, "SELECT status FROM pawl_instances"), "running\n");
}

/* ---- store_sql() ---- */

static void expect_refused(struct stand *s, const char *sql, const char *words)
{
    struct table table = { .stand = s };

    EXPECT(store_sql(s->store, s->scope, str_of(sql), 0, add_row, &table) == PAWL_INVALID_REQUEST);
    EXPECT_HAS(s->scope->error.message, words);
    EXPECT_EQ(table.rows, 0);
}

VIEW_TEST(sql_that_is_more_than_one_reading_statement_is_refused)
{
    put_orders(s, 1);
    expect_refused(s, "DELETE FROM pawl_log", "not authorized");
    expect_refused(s, "UPDATE pawl_head SET state = 1", "not authorized");
    expect_refused(s, "ATTACH 'x.db' AS x", "not authorized");
    expect_refused(s, "PRAGMA user_version = 7", "not authorized");
    expect_refused(s, "PRAGMA journal_mode = DELETE", "not authorized");
    expect_refused(s, "CREATE TEMP TABLE t (a)", "not authorized");
    expect_refused(s, "BEGIN", "not authorized");
    expect_refused(s, "SELECT load_extension('x')", "not authorized");
    expect_refused(s, "SELECT 1; SELECT 2", "expected one statement, found more");
    expect_refused(s, "SELECT 1; DELETE FROM pawl_log", "expected one statement, found more");
    expect_refused(s, "SELEC 1", "syntax error");
    expect_refused(s, "SELECT * FROM nowhere", "no such table: nowhere");
    expect_refused(s, "-- nothing", "found none");
    expect_refused(s, "", "found none");
    EXPECT_TEXT(ask(s, "SELECT count(*) FROM pawl_log"), "1\n");
}

VIEW_TEST(sql_tells_numbers_from_texts)
{
    static struct table table = { .marks_numbers = true };

    EXPECT_OK(store_sql(s->store, s->scope,
                        STR("SELECT 7, '7', -1.5, 1e300, 9e999, -9e999, NULL, x'07'"), 0,
                        add_row, &table));
    EXPECT_TEXT(table.text, "7#|7|-1.5#|1.0e+300#|Inf|-Inf|-|07\n");
}

VIEW_TEST(sql_gives_blobs_as_hex_and_null_as_absent)
{
    EXPECT_TEXT(ask(s, "SELECT x'00ff', NULL, 'text', 1.5, x'' ; -- done\n"), "00ff|-|text|1.5|\n");
}

static pawl_status read_within(void *context, uint32_t count, const str *names, const str *values,
                               const bool *are_numbers)
{
    struct stand *s = context;
    struct record record;

    (void)count, (void)names, (void)values, (void)are_numbers;
    EXPECT_OK(store_record(s->store, s->scope, 1, &record));
    return PAWL_TERMINAL;
}

VIEW_TEST(sql_lets_the_caller_read_and_stop_within)
{
    put_orders(s, 2);
    EXPECT(store_sql(s->store, s->scope, STR("SELECT pos FROM pawl_log"), 0, read_within, s) ==
           PAWL_TERMINAL);
}
