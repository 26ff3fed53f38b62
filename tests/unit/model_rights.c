/* model_rights.c - what lists of scopes allow, what two of them allow together, and reserved names. */
#include "lib/test.h"
#include "model/rights.h"

static const char *rights(struct test *t, const char *scopes, bool defines)
{
    str out;

    EXPECT(rights_of(&t->scope.arena, str_of(scopes), defines, &out));
    return out.data ? out.data : "anything";
}

static const char *meet(struct test *t, const char *a, const char *b)
{
    str out;

    EXPECT(rights_meet(&t->scope.arena, str_of(a), str_of(b), &out));
    return out.data ? out.data : "anything";
}

TEST(model_rights, a_starter_may_create_what_it_may_write)
{
    EXPECT_TEXT(rights(t, "write", false), "anything");
    EXPECT_TEXT(rights(t, "read,all", false), "anything");
    EXPECT_TEXT(rights(t, "write:b,read:x,write:a,all:c,write:b", false), "a,b,c");
    EXPECT_TEXT(rights(t, "write:b,write", false), "anything");
    EXPECT_TEXT(rights(t, "define,read", false), "");
    EXPECT_TEXT(rights(t, "define:a", false), "");
}

TEST(model_rights, a_definition_may_create_what_its_author_may_write_or_define)
{
    EXPECT_TEXT(rights(t, "define", true), "anything");
    EXPECT_TEXT(rights(t, "define:b,write:a,test", true), "a,b");
    EXPECT_TEXT(rights(t, "read", true), "");
}

TEST(model_rights, both_must_allow_it)
{
    EXPECT_TEXT(meet(t, NULL, NULL), "anything");
    EXPECT_TEXT(meet(t, "a,b", NULL), "a,b");
    EXPECT_TEXT(meet(t, NULL, "a,b"), "a,b");
    EXPECT_TEXT(meet(t, "a,b,d", "b,c,d"), "b,d");
    EXPECT_TEXT(meet(t, "a", "ab"), "");
    EXPECT_TEXT(meet(t, "", "a"), "");
    EXPECT(rights_allow(STR_NONE, STR("x")) && rights_allow(STR_NONE, STR_NONE));
    EXPECT(rights_allow(STR("a,b"), STR("b")) && !rights_allow(STR("a,b"), STR("a,b")));
    EXPECT(!rights_allow(STR("ab"), STR("a")) && !rights_allow(STR(""), STR("a")));
    EXPECT(!rights_allow(STR("a"), STR_NONE));
}

TEST(model_rights, what_is_within_another_gains_nothing)
{
    EXPECT(rights_within(STR("a"), STR("a,b")) && rights_within(STR(""), STR("")));
    EXPECT(rights_within(STR("a"), STR_NONE) && rights_within(STR_NONE, STR_NONE));
    EXPECT(!rights_within(STR("a,c"), STR("a,b")) && !rights_within(STR_NONE, STR("a")));
}

TEST(model_rights, recorded_ones_are_names_in_order_each_once)
{
    static const char *const bad[] = { "b,a", "a,a", "a,", ",a", "a,,b", "a b", "write:a", "a@1" };

    EXPECT(rights_are_valid(STR("")) && rights_are_valid(STR("a,b/c,d")));
    EXPECT(!rights_are_valid(STR_NONE));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        EXPECT(!rights_are_valid(str_of(bad[i])));
}

TEST(model_rights, the_engines_own_actors_begin_with_pawl_and_a_slash)
{
    EXPECT(actor_is_reserved(STR("pawl/timer")) && actor_is_reserved(STR("pawl/")));
    EXPECT(!actor_is_reserved(STR("pawl")) && !actor_is_reserved(STR("Pawl/timer")));
    EXPECT(!actor_is_reserved(STR(" pawl/timer")) && !actor_is_reserved(STR_NONE));
}
