/* model_effect.c - effects as an entry's body, there and back. */
#include "base/limits.h"
#include "lib/fault.h"
#include "lib/test.h"
#include "model/effect.h"

#define EVERY                                                                                      \
    "[[\"step\",3,0],[\"step\",4,1,2,\"pending\"],[\"ready\",4],[\"run\",3],"                      \
    "[\"end\",3],[\"arm\",\"t \\\"1\",1700000000000,0],[\"disarm\",\"t\",7],[\"await\",\"s\",0],"  \
    "[\"leave\",\"s\",4294967295],[\"state\",{\"a\": 1.50,\"b\":[]}]]"

static str print(struct test *t, const struct effect_list *list)
{
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    effects_print(list, &buf);
    text = buf_keep(&buf, &t->scope.arena);
    buf_fini(&buf);
    return text;
}

TEST(model_effect, every_kind_is_read_and_printed_the_same)
{
    struct effect_list list;

    EXPECT_OK(effects_read(&t->scope, STR(EVERY), &list));
    EXPECT_EQ(list.count, 10);
    EXPECT_STR(print(t, &list), EVERY);
    EXPECT_EQ(list.items[0].status, STEP_READY);
    EXPECT_EQ(list.items[1].attempt, 2);
    EXPECT_STR(list.items[5].name, "t \"1");
    EXPECT_EQ(list.items[5].due_at_ms, INT64_C(1700000000000));
    EXPECT_STR(list.items[9].state, "{\"a\": 1.50,\"b\":[]}");
}

/* DESIGN.md section 7, disk per flow: these three kinds are most of what a flow records. */
#define SHORT                                                                                      \
    "[[3,0],[4,1,2,\"pending\"],[\"ready\",4],-3,3,[\"arm\",\"t \\\"1\",1700000000000,0],"           \
    "[\"disarm\",\"t\",7],[\"await\",\"s\",0],[\"leave\",\"s\",4294967295],"                           \
    "[\"state\",{\"a\": 1.50,\"b\":[]}]]"

TEST(model_effect, a_body_in_short_says_the_same_as_one_in_words)
{
    struct effect_list list;
    struct buf buf;

    EXPECT_OK(effects_read(&t->scope, STR(EVERY), &list));
    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    body_print(STR_NONE, &list, &buf);
    EXPECT_STR(buf_view(&buf), SHORT);
    EXPECT_OK(effects_read(&t->scope, buf_view(&buf), &list));
    EXPECT_STR(print(t, &list), EVERY);
    buf_fini(&buf);
}

TEST(model_effect, no_body_has_no_effects)
{
    struct effect_list list = { .count = 7 };

    EXPECT_OK(effects_read(&t->scope, STR_NONE, &list));
    EXPECT_EQ(list.count, 0);
    EXPECT_OK(effects_read(&t->scope, STR("[]"), &list));
    EXPECT_EQ(list.count, 0);
    EXPECT_STR(print(t, &list), "[]");
}

TEST(model_effect, effects_outlive_the_body_they_were_read_from)
{
    char body[] = "[[\"arm\",\"tick\",5,0],[\"state\",{\"n\":1}]]";
    struct effect_list list;

    EXPECT_OK(effects_read(&t->scope, str_of(body), &list));
    memset(body, '#', sizeof body);
    EXPECT_STR(list.items[0].name, "tick");
    EXPECT_STR(list.items[1].state, "{\"n\":1}");
}

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

TEST(model_effect, a_trace_before_the_effects_is_told_and_is_none_of_them)
{
    static const char *const none[] = { "[]",
                                        "[[\"end\",3]]",
                                        "[[\"await\",\"" TRACE "\",0]]",
                                        "[[\"end\",3],[\"trace\",\"" TRACE "\"]]",
                                        "[[\"trace\",\"" TRACE "\",1]]",
                                        "[[\"trace\",\"00-0\"]]" };
    struct effect_list list;
    struct buf body;

    buf_init(&body, &heap_libc, LIMIT_TEXT);
    EXPECT_OK(effects_read(&t->scope, STR(EVERY), &list));
    body_print(STR(TRACE), &list, &body);
    EXPECT_STR(body_trace(buf_view(&body)), TRACE);
    EXPECT_OK(effects_read(&t->scope, buf_view(&body), &list));
    EXPECT_STR(print(t, &list), EVERY);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        EXPECT(!body_trace(str_of(none[i])).data);
    for (size_t i = 3; i < sizeof none / sizeof *none; i++)
        EXPECT_EQ(effects_read(&t->scope, str_of(none[i]), &list), PAWL_STORAGE_FAILURE);
    buf_fini(&body);
}

TEST(model_effect, a_damaged_body_is_a_failure_of_the_store)
{
    static const char *const damaged[] = {
        "",
        "{}",
        "[",
        "[0]",
        "[-0]",
        "[1.5]",
        "[4294967296]",
        "[-4294967296]",
        "[true]",
        "[[1]]",
        "[[1,0,1]]",
        "[[]]",
        "[{\"a\":\"ready\"}]",
        "[[\"jump\",1]]",
        "[[\"ready\"]]",
        "[[\"ready\",\"1\"]]",
        "[[\"ready\",-1]]",
        "[[\"ready\",4294967296]]",
        "[[\"ready\",1.5]]",
        "[[\"ready\",1,1]]",
        "[[\"step\",1,0,1,\"done\"]]",
        "[[\"step\",1,0,1,\"\"]]",
        "[[\"step\",1,0,1]]",
        "[[\"arm\",7,5,0]]",
        "[[\"arm\",\"t\",\"5\",0]]",
        "[[\"arm\",\"t\",9223372036854775808,0]]",
        "[[\"state\",[]]]",
        "[[\"state\"]]",
        "[[\"await\",\"s\"]]",
    };

    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        struct effect_list list = { .count = 7 };

        EXPECT_EQ(effects_read(&t->scope, str_of(damaged[i]), &list), PAWL_STORAGE_FAILURE);
        EXPECT_EQ(list.count, 7);
    }
}

TEST(model_effect, a_list_grows_as_far_as_it_must)
{
    struct effect_list list = { 0 };

    for (uint32_t i = 0; i < 1000; i++)
        EXPECT_OK(effect_add(&t->scope, &list, (struct effect){ EFFECT_READY, .ordinal = i }));
    EXPECT_EQ(list.count, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        EXPECT_EQ(list.items[i].ordinal, i);
}

TEST(model_effect, every_status_has_its_word)
{
    EXPECT_TEXT(step_status_name(STEP_PENDING), "pending");
    EXPECT_TEXT(step_status_name(STEP_CANCELLED), "cancelled");
    EXPECT_TEXT(step_status_name((enum step_status)99), "unknown");
}

TEST(model_effect, no_memory_while_reading_is_a_status)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct effect_list list;
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, LIMIT_SCOPE);
        status = effects_read(&scope, STR(EVERY), &list);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        scope_fini(&scope);
    }
}
