/* contract_family.c - the store contract: children, and who awaits a signal. */
#include "store/contract.h"

static void add_child(struct change *c, uint64_t parent, uint32_t ordinal, uint64_t child,
                      bool abandon)
{
    add_live(c, (struct live_change){ .kind = LIVE_CHILD_PUT,
                                      .instance = parent,
                                      .ordinal = ordinal,
                                      .child.number = child,
                                      .child.is_abandoned = abandon });
}

static uint32_t children(struct stand *s, struct child_query query, struct live_child **out)
{
    uint32_t count = 99;

    query.limit = query.limit ? query.limit : 10;
    EXPECT_OK(store_children(s->store, s->scope, &query, out, &count));
    return count;
}

STORE_TEST(children_are_found_by_parent_by_step_by_number_and_when_they_have_ended)
{
    struct live_child *found;
    struct live live;
    struct change c;

    put_orders(s, 6);
    c = change_begin(s);
    add_child(&c, 1, 7, 3, false);
    add_child(&c, 1, 8, 4, true);
    add_child(&c, 2, 7, 5, false);
    add_live(&c, (struct live_change){ .kind = LIVE_CHILD_ENDED, .instance = 4 });
    add_live(&c, (struct live_change){ .kind = LIVE_CHILD_ENDED, .instance = 6 }); /* nobody's */
    EXPECT_OK(change_commit(&c));
    EXPECT_EQ(children(s, (struct child_query){ .parent = 1 }, &found), 2);
    EXPECT(found[0].child == 3 && found[0].ordinal == 7 && !found[0].ended && !found[0].abandon);
    EXPECT(found[1].child == 4 && found[1].parent == 1 && found[1].ended && found[1].abandon);
    EXPECT_EQ(children(s, (struct child_query){ .parent = 1, .after = 3 }, &found), 1);
    EXPECT_EQ(children(s, (struct child_query){ .parent = 1, .limit = 1 }, &found), 1);
    EXPECT_EQ(children(s, (struct child_query){ .parent = 1, .ordinal = 8 }, &found), 1);
    EXPECT_EQ(children(s, (struct child_query){ .ended = true }, &found), 1);
    EXPECT_EQ(found[0].child, 4);
    EXPECT_EQ(children(s, (struct child_query){ .child = 5 }, &found), 1);
    EXPECT_EQ(children(s, (struct child_query){ .child = 5, .ended = true }, &found), 0);
    EXPECT_EQ(children(s, (struct child_query){ .child = 6 }, &found), 0);
    EXPECT_OK(store_live(s->store, s->scope, 1, &live));
    EXPECT(live.child_count == 2 && live.children[1].child == 4);
}

STORE_TEST(a_child_row_goes_with_the_step_that_waits_and_with_its_parent_not_with_the_child)
{
    struct live_child *found;
    struct change c;

    put_orders(s, 6);
    c = change_begin(s);
    add_child(&c, 1, 7, 3, false);
    add_child(&c, 1, 8, 4, false);
    add_child(&c, 2, 1, 5, false);
    add_live(&c, (struct live_change){ .kind = LIVE_CLEAR, .instance = 3 });
    add_live(&c, (struct live_change){ .kind = LIVE_STEP_DELETE, .instance = 1, .ordinal = 8 });
    add_live(&c, (struct live_change){ .kind = LIVE_CLEAR, .instance = 2 });
    EXPECT_OK(change_commit(&c));
    EXPECT_EQ(children(s, (struct child_query){ .parent = 1 }, &found), 1);
    EXPECT_EQ(found[0].child, 3);
    EXPECT_EQ(children(s, (struct child_query){ .parent = 2 }, &found), 0);
}

/* Their numbers as a text: "1 3 ". */
static const char *waiting(struct stand *s, struct wait_query query)
{
    static char text[64];
    uint64_t *numbers;
    uint32_t count;
    size_t size = 0;

    query.limit = query.limit ? query.limit : 10;
    EXPECT_OK(store_waiting(s->store, s->scope, &query, &numbers, &count));
    text[0] = '\0';
    for (uint32_t i = 0; i < count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%d ", (int)numbers[i]);
    return text;
}

STORE_TEST(who_awaits_a_signal_is_found_by_its_name_and_value)
{
    static const str values[] = { STR_INIT("1"), STR_INIT("\"a\""), STR_INIT("1") };
    struct wait_query go = { .name = STR("go") };
    struct change c;

    put_orders(s, 4);
    c = change_begin(s);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t ordinal = 1; ordinal <= 2; ordinal++)
            add_live(&c, (struct live_change){ .kind = LIVE_WAIT_PUT,
                                               .instance = i + 1,
                                               .ordinal = ordinal,
                                               .name = STR("go"),
                                               .wait.value = i < 3 ? values[i] : STR_NONE });
    add_live(&c, (struct live_change){ .kind = LIVE_WAIT_PUT, .instance = 4, .name = STR("no") });
    EXPECT_OK(change_commit(&c));
    EXPECT_TEXT(waiting(s, go), "1 2 3 4 ");
    go.after = 1;
    go.limit = 2;
    EXPECT_TEXT(waiting(s, go), "2 3 ");
    EXPECT_TEXT(waiting(s, (struct wait_query){ .name = STR("go"), .filter = STR("1") }), "1 3 ");
    EXPECT_TEXT(waiting(s, (struct wait_query){ .name = STR("go"), .filter = STR("2") }), "");
    go = (struct wait_query){ .name = STR("go"), .filter = STR("1"), .or_filter = STR("\"a\"") };
    EXPECT_TEXT(waiting(s, go), "1 2 3 ");
    go.after = 1;
    go.limit = 1;
    EXPECT_TEXT(waiting(s, go), "2 ");
}

STORE_TEST(who_awaits_a_signal_and_who_keeps_it_are_found_together_each_once)
{
    struct wait_query go = { .name = STR("go"), .also = STR("~go") };
    struct change c;

    put_orders(s, 6);
    c = change_begin(s);
    for (uint32_t i = 1; i <= 6; i++) {
        if (i % 2 == 1)
            add_live(&c, (struct live_change){ .kind = LIVE_WAIT_PUT,
                                               .instance = i,
                                               .ordinal = i,
                                               .name = STR("go"),
                                               .wait.value = STR("1") });
        if (i % 3 != 1)
            add_live(&c, (struct live_change){
                             .kind = LIVE_WAIT_PUT, .instance = i, .name = STR("~go") });
    }
    EXPECT_OK(change_commit(&c));
    EXPECT_TEXT(waiting(s, go), "1 2 3 5 6 ");
    go.after = 2;
    go.limit = 2;
    EXPECT_TEXT(waiting(s, go), "3 5 ");
    go.filter = STR("2");
    EXPECT_TEXT(waiting(s, go), "3 5 ");
    go.filter = STR("1");
    go.after = 0;
    EXPECT_TEXT(waiting(s, go), "1 2 ");
    go = (struct wait_query){ .name = STR("go"), .filter = STR("2"), .also = STR("~no") };
    EXPECT_TEXT(waiting(s, go), "");
    go.or_filter = STR("3");
    go.or_also = STR("~go");
    EXPECT_TEXT(waiting(s, go), "2 3 5 6 ");
}
