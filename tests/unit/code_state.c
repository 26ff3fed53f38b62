/* code_state.c - what an instance remembers: its variables, and the memory that entries fold to. */
#include "unit/code_fixture.h"
#include <locale.h>

static void set_extremes(pawl_turn *turn, void *state, const pawl_event *event)
{
    struct vars *mine = state;

    mine->count = INT64_MIN;
    mine->price = 0.1 + 0.2;
    mine->paid = true;
    memcpy(mine->name, "\"\n\xC3\xA4", 5);
    wait_for_all(turn, state, event);
}

static void check_extremes(pawl_turn *turn, void *state, const pawl_event *event)
{
    struct vars *mine = state;

    (void)event;
    EXPECT(mine->count == INT64_MIN);
    EXPECT(mine->price == 0.1 + 0.2);
    EXPECT(mine->paid);
    EXPECT_TEXT(mine->name, "\"\n\xC3\xA4");
    pawl_turn_complete(turn, NULL);
}

/* E3, E18: the state passes as text, and a fresh process sees the same */
TEST(code_state, variables_come_back_exactly_as_they_were)
{
    struct fixture f;

    begin(&f, &t->scope);
    act(&f, start, set_extremes);
    EXPECT_HAS(memory_of(&f).data, "{\"count\":-9223372036854775808,\"price\":0.30000000000000004,"
                                   "\"paid\":true,\"name\":\"\\\"\\n\xC3\xA4\"}");
    act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .is_forced = true }, check_extremes);
}

static double wanted_double;

static void set_double(pawl_turn *turn, void *state, const pawl_event *event)
{
    ((struct vars *)state)->price = wanted_double;
    wait_for_all(turn, state, event);
}

static void check_double(pawl_turn *turn, void *state, const pawl_event *event)
{
    EXPECT(memcmp(&((struct vars *)state)->price, &wanted_double, sizeof wanted_double) == 0);
    wait_for_all(turn, state, event);
}

TEST(code_state, doubles_come_back_bit_for_bit_in_every_locale)
{
    static const double values[] = {
        0.0, -0.0, 1.5, -1e-310, 1.7976931348623157e308, 5e-324, 1.0 / 3, 1e21, 123456789012345680.0
    };

    (void)setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* with a comma, where it is installed */
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct fixture f;

        begin(&f, &t->scope);
        wanted_double = values[i];
        act(&f, start, set_double);
        EXPECT(strstr(memory_of(&f).data, "1,5") == NULL);
        act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .is_forced = true }, check_double);
    }
}

static void expect_state(pawl_turn *turn, void *state, const pawl_event *event)
{
    struct vars *mine = state;

    EXPECT_EQ(mine->count, 3);
    EXPECT(mine->price == 0 && !mine->paid && mine->name[0] == '\0');
    count_and_wait(turn, state, event);
}

TEST(code_state, a_newer_build_may_add_and_drop_variables)
{
    struct fixture f;

    begin(&f, &t->scope);
    EXPECT_OK(load(&f, "{\"state\":{\"old\":[1],\"count\":3,\"name\":null},\"timers\":[[\"tick\","
                       "5]],\"signals\":[]}"));
    f.standing = (struct standing){ .state = LIFE_RUNNING, .memory = f.memory };
    act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .is_forced = true }, expect_state);
}

#define OLD_VALUES "\"subscriptions\":{\"pay\":7.0},\"more-subscriptions\":{\"pay\":[70e-1,8]}}"

/* Older programs stored values as they were written: a filter in the same words still finds them, and
 * the next turn makes them one. */
TEST(code_state, a_value_that_an_older_program_stored_is_matched_as_written_and_then_by_value)
{
    struct event seven = { EVENT_SIGNAL, .name = STR("pay"), .filter = STR("7") };
    struct fixture f;

    begin(&f, &t->scope);
    EXPECT_OK(load(&f, "{\"state\":{\"count\":3," OLD_VALUES ",\"timers\":[],\"signals\":[[\"pay\",7.0],"
                       "\"~pay=70e-1\",\"~pay=8\"]}"));
    f.standing = (struct standing){ .state = LIFE_RUNNING, .memory = f.memory };
    f.script.act = wait_for_all;
    EXPECT_EQ(decide(&f, seven), PAWL_NOT_AWAITING);
    seven.filter_written = STR("70e-1");
    EXPECT_OK(decide(&f, seven));
    seven.filter_written = STR("7.0");
    act(&f, seven, wait_for_all);
    EXPECT_STR(memory_of(&f), "{\"state\":{\"subscriptions\":{\"pay\":7},"
                              "\"more-subscriptions\":{\"pay\":[8]},\"count\":3,\"price\":0,"
                              "\"paid\":false,\"name\":\"\"},"
                              "\"timers\":[[\"tick\",500],[\"expire\",60000]],"
                              "\"signals\":[\"~pay=8\",[\"pay\",7],\"stop\"]}");
    seven.filter_written = STR_NONE;
    EXPECT_OK(decide(&f, seven));
}

TEST(code_state, state_that_does_not_fit_its_variables_is_refused_in_words)
{
    static const char *const states[] = { "{\"name\":\"12345678\"}",
                                          "{\"name\":7}",
                                          "{\"count\":1.5}",
                                          "{\"count\":\"1\"}",
                                          "{\"count\":9223372036854775808}",
                                          "{\"price\":1e999}",
                                          "{\"price\":true}",
                                          "{\"paid\":0}" };
    char snapshot[128] = "";
    struct fixture f;

    begin(&f, &t->scope);
    f.script.act = complete;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct buf buf;

        buf_init(&buf, &heap_libc, sizeof snapshot);
        buf_fmt(&buf, "{\"state\":%s,\"timers\":[[\"tick\",5]],\"signals\":[]}", states[i]);
        EXPECT_OK(load(&f, buf_text(&buf)));
        f.standing = (struct standing){ .state = LIFE_RUNNING, .memory = f.memory };
        EXPECT_EQ(decide(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .is_forced = true }), PAWL_NOT_KNOWN);
        EXPECT_HAS(t->scope.error.message, "cannot hold the stored state: variable '");
        buf_fini(&buf);
    }
}

TEST(code_state, a_snapshot_is_loaded_and_printed_the_same)
{
    static const char *const snapshots[] = {
        "{\"state\":null,\"timers\":[],\"signals\":[]}",
        "{\"state\":" ONE ",\"timers\":[[\"tick\",-5],[\"t \\\"2\",9223372036854775807]],"
        "\"signals\":[\"a\",\"b\"]}",
    };

    for (size_t i = 0; i < 2; i++) {
        struct fixture f;

        begin(&f, &t->scope);
        EXPECT_OK(load(&f, snapshots[i]));
        EXPECT_STR(memory_of(&f), snapshots[i]);
    }
}

TEST(code_state, a_damaged_snapshot_is_a_failure_of_the_store)
{
    static const char *const damaged[] = {
        "",
        "[]",
        "{}",
        "{\"state\":7,\"timers\":[],\"signals\":[]}",
        "{\"state\":{},\"timers\":{},\"signals\":[]}",
        "{\"state\":{},\"timers\":[1],\"signals\":[]}",
        "{\"state\":{},\"timers\":[[]],\"signals\":[]}",
        "{\"state\":{},\"timers\":[[\"a\"]],\"signals\":[]}",
        "{\"state\":{},\"timers\":[[1,\"a\"]],\"signals\":[]}",
        "{\"state\":{},\"timers\":[[\"a\",1,2]],\"signals\":[]}",
        "{\"state\":{},\"timers\":[],\"signals\":[1]}",
        "{\"state\":{},\"timers\":[]}",
        "{\"state\":{},\"timers\":[[\"~turn\",1]],\"signals\":[]}",
        "{\"state\":{},\"timers\":[],\"signals\":[],\"owed\":[0,0,null]}", /* it has no calls */
        "{\"state\":{},\"timers\":[],\"signals\":[],\"owed\":7}",
    };
    struct fixture f;
    void *before;

    begin(&f, &t->scope);
    before = f.memory;
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++)
        EXPECT_EQ(load(&f, damaged[i]), PAWL_STORAGE_FAILURE);
    EXPECT(f.memory == before);
}

TEST(code_state, an_entry_that_cannot_be_ours_is_a_failure_of_the_store)
{
    struct effect step = { EFFECT_STEP };
    struct effect_list list = { &step, 1, 1 };
    struct entry_view view = { .transition = LIFE_T_START, .effects = &list };
    struct fixture f;

    begin(&f, &t->scope);
    EXPECT_EQ(code_behavior.apply(f.definition, f.memory, &view, f.scope, &f.scope->arena),
              PAWL_STORAGE_FAILURE);
    view = (struct entry_view){ .transition = LIFE_T_COUNT };
    EXPECT_EQ(code_behavior.apply(f.definition, f.memory, &view, f.scope, &f.scope->arena),
              PAWL_STORAGE_FAILURE);
}

/* E3: stateless handlers; the same arguments, the same turn */
TEST(code_state, folding_every_entry_gives_the_same_memory_as_the_snapshot)
{
    struct fixture f, again;
    str snapshot;

    begin(&f, &t->scope);
    begin(&again, &t->scope);
    act(&f, start, wait_for_all);
    act(&f, (struct event){ EVENT_SIGNAL, .name = STR("pay"), .at_ms = 5 }, count_and_wait);
    snapshot = memory_of(&f);
    EXPECT_OK(load(&again, snapshot.data));
    again.standing = f.standing;
    again.standing.memory = again.memory;
    act(&f, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 9, .is_forced = true }, count_and_wait);
    act(&again, (struct event){ EVENT_TIMER, .name = STR("tick"), .at_ms = 9, .is_forced = true }, count_and_wait);
    EXPECT_STR(memory_of(&again), memory_of(&f).data);
    EXPECT_STR(effects_of(&again, 0), effects_of(&f, 0).data);
}

TEST(code_state, ten_thousand_turns_do_not_grow_the_memory)
{
    struct scope own;
    struct arena arena;
    struct fixture f;
    size_t used = 0;

    scope_init(&own, &heap_libc, LIMIT_SCOPE);
    arena_init(&arena, &heap_libc, LIMIT_SCOPE);
    begin(&f, &t->scope);
    f.memory = code_behavior.memory_new(f.definition, STR_NONE, &arena);
    f.standing = (struct standing){ .state = LIFE_CREATED, .memory = f.memory };
    f.script.act = count_and_wait;
    f.scope = &own;
    for (int i = 0; i < 10000; i++) {
        struct event event = { i == 0 ? EVENT_START : EVENT_TIMER, .name = STR("tick"), .is_forced = true };
        struct entry_view view;

        EXPECT_OK(decide(&f, event));
        view = (struct entry_view){ .transition = f.decision.drafts[0].transition,
                                    .effects = &f.decision.drafts[0].effects };
        EXPECT_OK(code_behavior.apply(f.definition, f.memory, &view, &own, &arena));
        f.standing.state = LIFE_RUNNING;
        scope_clear(&own);
        used = i == 10 ? arena.used : used;
    }
    EXPECT_EQ(arena.used, used);
    arena_fini(&arena);
    scope_fini(&own);
}
