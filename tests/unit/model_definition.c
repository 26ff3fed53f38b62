/* model_definition.c - compiled definitions, there and back, and what they answer. */
#include "base/limits.h"
#include "lib/fault.h"
#include "lib/test.h"
#include "model/decision.h"
#include <stdlib.h>

#define SMALL                                                                                      \
    "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"},{\"name\":\"b \\\"\\u00e4"  \
    "\"},{\"name\":\"z\",\"terminal\":\"plain\"},{\"name\":\"s\",\"terminal\":\"success\"},"       \
    "{\"name\":\"f\",\"terminal\":\"failure\"},{\"name\":\"c\",\"terminal\":\"cancel\"}],"         \
    "\"initial\":1,\"transitions\":[{\"from\":1,\"action\":\"go\",\"to\":0},"                      \
    "{\"from\":0,\"action\":\"go\",\"to\":2,\"guard\":\"g\",\"requires_reason\":true},"            \
    "{\"from\":1,\"action\":\"tick\",\"to\":1,\"by\":\"engine\"},"                                 \
    "{\"from\":1,\"action\":\"veto\",\"to\":5,\"guard\":\"g\"},"                                   \
    "{\"from\":1,\"action\":\"drop\",\"to\":5},{\"from\":1,\"action\":\"quit\",\"to\":5}]"

static struct definition *load(struct test *t, const char *text)
{
    struct definition *definition = NULL;

    EXPECT_OK(definition_load(&t->scope, str_of(text), &definition));
    return definition;
}

static str print(struct test *t, const struct definition *definition)
{
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, LIMIT_SCOPE);
    definition_print(definition, &buf);
    text = buf_keep(&buf, &t->scope.arena);
    buf_fini(&buf);
    return text;
}

TEST(model_definition, what_is_loaded_is_printed_the_same)
{
    static const char *const texts[] = {
        SMALL "}",
        SMALL ",\"plan\":{\"any\": [1.50, \"thing\"]}}",
        ("{\"compiler\":1,\"kind\":\"flow\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
         "\"transitions\":[]}"),
    };

    /* The a-umlaut comes out as itself, the rest as it went in. */
    EXPECT(strlen(texts[0]) == print(t, load(t, texts[0])).size + strlen("\\u00e4") - 2);
    for (size_t i = 0; i < 3; i++) {
        str once = print(t, load(t, texts[i]));

        EXPECT_STR(print(t, load(t, once.data)), once.data);
    }
    EXPECT_STR(load(t, texts[1])->plan_text, "{\"any\": [1.50, \"thing\"]}");
    EXPECT_STR(print(t, load(t, texts[2])), texts[2]);
}

TEST(model_definition, a_loaded_definition_outlives_the_text_it_came_from)
{
    char *text = strdup(SMALL ",\"plan\":{\"a\":1}}");
    struct definition *definition = load(t, text);

    memset(text, '#', strlen(text));
    free(text);
    EXPECT_STR(definition->states[0].name, "a");
    EXPECT_STR(definition->transitions[1].guard, "g");
    EXPECT_STR(definition->plan_text, "{\"a\":1}");
    EXPECT_EQ(definition->states[0].name.data[1], '\0');
}

TEST(model_definition, a_transition_is_found_by_state_and_action)
{
    const struct definition *definition = load(t, SMALL "}");

    EXPECT_EQ(definition_transition_index(definition, definition_find(definition, 1, STR("go"))),
              0);
    EXPECT_EQ(definition_transition_index(definition, definition_find(definition, 0, STR("go"))),
              1);
    EXPECT_EQ(definition_transition_index(definition, definition_find(definition, 1, STR("tick"))),
              2);
    EXPECT(definition_find(definition, 0, STR("tick")) == NULL);
    EXPECT(definition_find(definition, 5, STR("go")) == NULL);
    EXPECT_EQ(definition_find_state(definition, STR("b \"\xC3\xA4")), 1);
    EXPECT_EQ(definition_find_state(definition, STR("B")), UINT32_MAX);
}

/* A17: the first declared unguarded one */
TEST(model_definition, the_first_unguarded_way_into_a_cancel_state_cancels)
{
    const struct definition *definition = load(t, SMALL "}");

    EXPECT_STR(definition_find_cancel(definition, 1)->action, "drop");
    EXPECT(definition_find_cancel(definition, 0) == NULL);
}

TEST(model_definition, legal_actions_leave_out_what_the_engine_fires)
{
    const struct definition *definition = load(t, SMALL "}");
    struct buf buf;

    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    definition_legal_actions(definition, 1, &buf);
    EXPECT_STR(buf_view(&buf), "go, veto, drop, quit");
    buf_clear(&buf);
    definition_legal_actions(definition, 2, &buf);
    EXPECT_STR(buf_view(&buf), "none");
    buf_fini(&buf);
}

#define WITH_DEADLINES(deadlines)                                                                  \
    "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"            \
    "\"transitions\":[{\"from\":0,\"action\":\"x\",\"to\":0},{\"from\":0,\"action\":\"y\",\"to\":" \
    "0,"                                                                                           \
    "\"guard\":\"g\"}],\"deadlines\":" deadlines "}"

TEST(model_definition, deadlines_come_back_as_they_were_printed)
{
    static const char text[] = WITH_DEADLINES("[{\"state\":0,\"after\":1500,\"transition\":0}]");
    struct definition *definition;
    struct buf buf;

    EXPECT_OK(definition_load(&t->scope, str_of(text), &definition));
    EXPECT_EQ(definition->deadline_count, 1);
    EXPECT_STR(definition->deadlines[0].name, "x");
    buf_init(&buf, &heap_libc, 1 << 16);
    definition_print(definition, &buf);
    EXPECT_STR(buf_view(&buf), text);
    buf_fini(&buf);
}

TEST(model_definition, a_damaged_text_is_a_failure_of_the_store)
{
    static const char *const damaged[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,\"transitions\":[]}",
        "{\"compiler\":0,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[]}",
        "{\"compiler\":99,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[]}",
        "{\"compiler\":1,\"kind\":\"unknown\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[],\"initial\":0,\"transitions\":[]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[7],\"initial\":0,\"transitions\":[]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\",\"terminal\":\"no\"}],"
        "\"initial\":0,\"transitions\":[]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\",\"terminal\":1}],"
        "\"initial\":0,\"transitions\":[]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":1,"
        "\"transitions\":[]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":-1,"
        "\"transitions\":[]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[0]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[{\"from\":1,\"action\":\"x\",\"to\":0}]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[{\"from\":0,\"action\":\"x\",\"to\":4294967296}]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[{\"from\":0,\"action\":7,\"to\":0}]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[{\"from\":0,\"action\":\"x\",\"to\":0,\"by\":\"me\"}]}",
        "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"a\",\"terminal\":\"plain\"}"
        "],\"initial\":0,\"transitions\":[{\"from\":0,\"action\":\"x\",\"to\":0}]}",
        "{\"compiler\":3,\"kind\":\"machine\",\"states\":[{\"name\":\"a\"}],\"initial\":0,"
        "\"transitions\":[{\"from\":0,\"action\":\"x\",\"to\":0}],\"input\":{\"type\":\"text\"}}",
        WITH_DEADLINES("[]"),
        WITH_DEADLINES("7"),
        WITH_DEADLINES("[{\"state\":1,\"after\":5,\"transition\":0}]"),
        WITH_DEADLINES("[{\"state\":0,\"after\":5,\"transition\":2}]"),
        WITH_DEADLINES("[{\"state\":0,\"after\":5,\"transition\":1}]"), /* guarded */
        WITH_DEADLINES("[{\"state\":0,\"after\":0,\"transition\":0}]"),
        WITH_DEADLINES("[{\"state\":0,\"after\":9000000000000000000,\"transition\":0}]"),
        WITH_DEADLINES("[{\"state\":0,\"transition\":0}]"),
    };

    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        struct definition *definition = NULL;

        EXPECT_EQ(definition_load(&t->scope, str_of(damaged[i]), &definition),
                  PAWL_STORAGE_FAILURE);
        EXPECT(definition == NULL);
    }
}

TEST(model_definition, every_cut_of_a_text_is_refused)
{
    static const char text[] = SMALL ",\"plan\":{\"a\":1}}";

    for (size_t size = 0; size + 1 < sizeof text; size++) {
        struct definition *definition;

        EXPECT_EQ(definition_load(&t->scope, (str){ text, size }, &definition),
                  PAWL_STORAGE_FAILURE);
    }
}

TEST(model_definition, names_are_one_to_128_of_a_small_alphabet)
{
    char name[130];

    memset(name, 'a', sizeof name);
    EXPECT(definition_name_is_valid(STR("a")));
    EXPECT(definition_name_is_valid(STR("Az09._/-")));
    EXPECT(definition_name_is_valid((str){ name, 128 }));
    EXPECT(!definition_name_is_valid((str){ name, 129 }));
    EXPECT(!definition_name_is_valid(STR("")));
    EXPECT(!definition_name_is_valid(STR_NONE));
    EXPECT(!definition_name_is_valid(STR("a@1")));
    EXPECT(!definition_name_is_valid(STR("a b")));
    EXPECT(!definition_name_is_valid(STR("\xC3\xA4")));
    EXPECT(!definition_name_is_valid((str){ "a\0b", 3 }));
}

TEST(model_definition, the_lifecycle_is_the_one_the_format_names)
{
    struct definition definition = { .kind = KIND_FLOW, .compiler = COMPILER_NUMBER };

    EXPECT_OK(definition_set_lifecycle(&definition, &t->scope));
    EXPECT_EQ(definition.state_count, 5);
    EXPECT_EQ(definition.transition_count, 19);
    EXPECT_STR(definition.transitions[16].action, "gate.wait");
    EXPECT_STR(definition.transitions[17].action, "compensate");
    EXPECT_STR(definition.transitions[18].action, "clean-up");
    EXPECT_EQ(definition.initial, LIFE_CREATED);
    EXPECT_STR(definition.states[LIFE_CANCELLED].name, "cancelled");
    EXPECT_EQ(definition.states[LIFE_FAILED].terminal, TERMINAL_FAILURE);
    EXPECT_STR(definition.transitions[LIFE_T_STEP_COMPLETE].action, "step.complete");
    EXPECT_EQ(definition_transition_index(
                  &definition, definition_find(&definition, LIFE_CREATED, STR("cancel"))),
              LIFE_T_CANCEL_CREATED);
    EXPECT_EQ(definition_transition_index(
                  &definition, definition_find(&definition, LIFE_RUNNING, STR("cancel"))),
              LIFE_T_CANCEL);
    EXPECT(definition_find(&definition, LIFE_RUNNING, STR("finish"))->by_engine);
}

/* D8 holds for the lifecycle too. */
TEST(model_definition, no_action_of_the_lifecycle_is_declared_twice_for_a_state)
{
    struct definition definition = { 0 };

    EXPECT_OK(definition_set_lifecycle(&definition, &t->scope));
    for (uint32_t i = 0; i < definition.transition_count; i++) {
        const struct transition *transition = &definition.transitions[i];

        EXPECT(definition_find(&definition, transition->from, transition->action) == transition);
        EXPECT_EQ(definition.states[transition->from].terminal, TERMINAL_NOT);
    }
}

TEST(model_definition, drafts_are_added_in_order_however_many)
{
    struct decision decision = { 0 };

    for (uint32_t i = 0; i < 1000; i++) {
        struct draft *draft = decision_add(&t->scope, &decision, i);

        EXPECT(draft && !draft->payload.data && draft->effects.count == 0);
        draft->ordinal = i;
    }
    EXPECT_EQ(decision.count, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        EXPECT(decision.drafts[i].transition == i && decision.drafts[i].ordinal == i);
}

TEST(model_definition, no_memory_while_loading_is_a_status)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct definition *definition = NULL;
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, LIMIT_SCOPE);
        status = definition_load(&scope, STR(SMALL ",\"plan\":{\"a\":1}}"), &definition);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        EXPECT(!definition == (status != PAWL_OK));
        scope_fini(&scope);
    }
}

TEST(model_definition, a_scope_of_any_size_suffices_or_says_that_it_does_not)
{
    pawl_status status = PAWL_NO_MEMORY;

    for (size_t limit = 16; status != PAWL_OK; limit += 16) {
        struct definition *definition = NULL;
        struct scope scope;

        EXPECT(limit < LIMIT_TEXT);
        scope_init(&scope, &heap_libc, limit);
        status = definition_load(&scope, STR(SMALL ",\"plan\":{\"a\":1}}"), &definition);
        EXPECT(status == PAWL_OK || status == PAWL_NO_MEMORY);
        EXPECT(!definition == (status != PAWL_OK));
        scope_fini(&scope);
    }
}

TEST(model_definition, a_reference_is_a_name_and_maybe_a_version)
{
    static const struct {
        const char *text, *name;
        uint32_t version;
        bool is_one;
    } rows[] = {
        { "order", "order", 0, true },       { "order@2", "order", 2, true },
        { "order@", "order", 0, false },     { "order@0", "order", 0, false },
        { "order@2x", "order", 0, false },   { "order@4294967296", "order", 0, false },
        { "order@1@2", "order", 0, false },  { "@3", "", 3, true },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t version = 9;
        str name;

        EXPECT_EQ(reference_split(str_of(rows[i].text), &name, &version), rows[i].is_one);
        EXPECT_EQ(version, rows[i].version);
        EXPECT(str_is(name, rows[i].name));
        EXPECT(str_is(reference_name(str_of(rows[i].text)), rows[i].name));
    }
    EXPECT(!reference_name(STR_NONE).data);
}
