/* gather.c - several calls, externals and children at once; another instance is started or signalled with the
 * commit of a turn; arguments printed from structs. */
#include "basket.h"
#include "lib/test.h"
#include <pawl_test.h>
#include <unistd.h>

/* Externals and a child, so that a test chooses the order of the answers. */
#define PANEL_LIST(has)                                                                            \
    has(input, uint32_t, members, 3) has(input, bool, strict) has(var, texts, said, 32, 8)         \
        has(timer, Late) has(signal, Begin) has(external, vote) has(child, parcel)                 \
            has(result, texts, said, 32, 8) has(await, before) has(await, voting)                  \
                has(await, resting)

#define PANEL_CODE                                                                                 \
    PAWL_BEGIN(PANEL_LIST);                                                                        \
    PAWL_SELECT(before)                                                                            \
    {                                                                                              \
        PAWL_ON_SIGNAL(Begin)                                                                      \
        {                                                                                          \
        }                                                                                          \
        PAWL_ON_TIMER(Late, PAWL_DAYS(9))                                                          \
        {                                                                                          \
        }                                                                                          \
    }                                                                                              \
    PAWL_AWAIT;                                                                                    \
    PAWL_GATHER(voting)                                                                            \
    {                                                                                              \
        for (uint32_t i = 0; i < self->members; i++)                                               \
            PAWL_GATHER_EXTERNAL(vote, pawl_turn_text(turn, "%u", i));                             \
        if (self->members > 0)                                                                     \
            PAWL_GATHER_CHILD(parcel, NULL);                                                       \
    }                                                                                              \
    PAWL_EACH                                                                                      \
    {                                                                                              \
        if (PAWL_ERROR && self->strict)                                                            \
            PAWL_FAIL("member %u: %s", PAWL_WHICH, PAWL_ERROR);                                    \
        snprintf(self->said[self->said_count++], 32, "%u%s", PAWL_WHICH, PAWL_ERROR ? " no" : ""); \
    }                                                                                              \
    PAWL_GATHERED;                                                                                 \
    PAWL_TIMER(resting, Late, PAWL_SECS(1));                                                       \
    memcpy(result->said, self->said, sizeof result->said);                                         \
    result->said_count = self->said_count;                                                         \
    PAWL_END;

PAWL_CODE(panel, PANEL_LIST){ PANEL_CODE }

#define PANEL_2(has) has(version, 2) PANEL_LIST(has)
PAWL_CODE_AS(panel_2, "panel", PANEL_2)
{
    PANEL_CODE
}

struct shop {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
    uint32_t prices;
    char charged[200];
};

static void price(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct shop *shop = context;

    shop->prices++;
    if (strstr(call->args, "\"gone\""))
        pawl_answer_error(answer, "\"sold out\"");
    else
        pawl_answer_result(answer, "7");
}

static void charge(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct shop *shop = context;

    snprintf(shop->charged, sizeof shop->charged, "%s", call->args);
    pawl_answer_result(answer, "null");
}

static void equip(struct shop *shop)
{
    PAWL_EXPECT_OK(&shop->kit,
                   pawl_tool_register(shop->kit.p, "price", price, shop, &shop->kit.error));
    PAWL_EXPECT_OK(&shop->kit,
                   pawl_tool_register(shop->kit.p, "charge", charge, shop, &shop->kit.error));
}

static void begin(struct shop *shop)
{
    memset(shop, 0, sizeof *shop);
    test_folder(shop->folder);
    snprintf(shop->url, sizeof shop->url, "sqlite:%s/shop.db", shop->folder);
    pawl_kit_open(&shop->kit, shop->url);
    pawl_kit_register(&shop->kit, basket());
    pawl_kit_register(&shop->kit, parcel());
    pawl_kit_register(&shop->kit, panel());
    equip(shop);
}

static void end(struct shop *shop)
{
    char *out, command[96];

    PAWL_EXPECT_OK(&shop->kit,
                   pawl_call(shop->kit.p, "store.verify", NULL, &out, &shop->kit.error));
    EXPECT_HAS(out, "\"valid\":true");
    pawl_free(shop->kit.p, out);
    pawl_kit_close(&shop->kit);
    snprintf(command, sizeof command, "rm -r %s", shop->folder);
    EXPECT(system(command) == 0);
}

static void answer_step(struct shop *shop, const char *id, unsigned ordinal, bool fails)
{
    char input[128], *out = NULL;

    snprintf(input, sizeof input, "{\"step_id\":\"%s.%u\",\"%s\":\"x\"}", id, ordinal,
             fails ? "error" : "result");
    PAWL_EXPECT_OK(&shop->kit, pawl_call(shop->kit.p, fails ? "step.fail" : "step.complete", input,
                                         &out, &shop->kit.error));
    pawl_free(shop->kit.p, out);
}

/* The newest instance of the definition. */
static const char *newest(struct shop *shop, const char *definition, char out[27])
{
    char input[96], *list = NULL;

    snprintf(input, sizeof input, "{\"definition\":\"%s\",\"limit\":1}", definition);
    PAWL_EXPECT_OK(&shop->kit,
                   pawl_call(shop->kit.p, "instance.list", input, &list, &shop->kit.error));
    EXPECT_HAS(list, "\"instance_id\":\"");
    memcpy(out, strstr(list, "\"instance_id\":\"") + strlen("\"instance_id\":\""), 26);
    out[26] = '\0';
    pawl_free(shop->kit.p, list);
    return out;
}

TEST(gather, calls_begin_together_and_each_answer_has_its_number)
{
    struct shop shop;
    const char *id;
    char other[27];

    begin(&shop);
    id = pawl_kit_start(&shop.kit, "basket",
                        "{\"customer\":\"ann\",\"lines\":[{\"sku\":\"tea\",\"count\":2},"
                        "{\"sku\":\"gone\",\"count\":9},{\"sku\":\"cup\",\"count\":3}]}");
    pawl_kit_advance(&shop.kit, 1);
    EXPECT_EQ(shop.prices, 3);
    PAWL_EXPECT_RESULT(&shop.kit, id, "{\"sum\":35,\"missing\":1}");
    EXPECT_TEXT(shop.charged, "{\"customer\":\"ann\",\"cents\":35}");
    EXPECT_HAS(pawl_kit_ask(&shop.kit, "instance.get", newest(&shop, "parcel", other)),
               "\"cents\":35");
    end(&shop);
}

TEST(gather, another_instance_is_started_and_signalled_once_through_a_restart)
{
    struct shop shop;
    char told[27], input[200], *list = NULL;
    const char *id;

    begin(&shop);
    snprintf(told, sizeof told, "%s", pawl_kit_start(&shop.kit, "panel", NULL));
    snprintf(input, sizeof input, "{\"lines\":[{\"sku\":\"tea\",\"count\":1}],\"tell\":\"%s\"}",
             told);
    id = pawl_kit_start(&shop.kit, "basket", input);
    pawl_kit_restart(&shop.kit);
    equip(&shop);
    pawl_kit_advance(&shop.kit, 1);
    PAWL_EXPECT_RESULT(&shop.kit, id, "{\"sum\":7,\"missing\":0}");
    pawl_kit_restart(&shop.kit); /* nothing is sent again */
    pawl_kit_advance(&shop.kit, PAWL_SECS(5));
    PAWL_EXPECT_OK(&shop.kit, pawl_call(shop.kit.p, "instance.list", "{\"definition\":\"parcel\"}",
                                        &list, &shop.kit.error));
    EXPECT(strstr(strstr(list, "\"instance_id\"") + 1, "\"instance_id\"") == NULL);
    pawl_free(shop.kit.p, list);
    end(&shop);
}

TEST(gather, externals_and_children_answer_in_any_order_and_through_restarts)
{
    struct shop shop;
    const char *id;
    char child[27];

    begin(&shop);
    id = pawl_kit_start(&shop.kit, "panel", NULL);
    PAWL_EXPECT_OK(&shop.kit, pawl_kit_signal(&shop.kit, id, "begin", NULL));
    EXPECT_HAS(pawl_kit_ask(&shop.kit, "instance.why", id), "\"kind\":\"child\"");
    pawl_kit_restart(&shop.kit);
    answer_step(&shop, id, 2, false);
    pawl_kit_restart(&shop.kit);
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "phase", "\"voting\"");
    answer_step(&shop, id, 3, true);
    PAWL_EXPECT_OK(&shop.kit,
                   pawl_kit_signal(&shop.kit, newest(&shop, "parcel", child), "fetched", NULL));
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "phase", "\"voting\"");
    answer_step(&shop, id, 1, false);
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "phase", "\"resting\"");
    pawl_kit_advance(&shop.kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(&shop.kit, id, "{\"said\":[\"1\",\"2 no\",\"3\",\"0\"]}");
    PAWL_EXPECT_HISTORY(
        &shop.kit, id,
        "start signal:begin step.complete:vote step.fail:vote child:parcel step.complete:vote "
        "timer:late finish");
    end(&shop);
}

TEST(gather, what_was_awaited_before_is_over_when_a_gather_begins)
{
    struct shop shop;
    const char *id;

    begin(&shop);
    id = pawl_kit_start(&shop.kit, "panel", "{\"members\":1}");
    PAWL_EXPECT_OK(&shop.kit, pawl_kit_signal(&shop.kit, id, "begin", NULL));
    PAWL_EXPECT_STATUS(&shop.kit, pawl_kit_signal(&shop.kit, id, "begin", NULL), PAWL_NOT_AWAITING);
    pawl_kit_advance(&shop.kit, PAWL_DAYS(10)); /* no timer is left of it */
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "phase", "\"voting\"");
    end(&shop);
}

TEST(gather, of_nothing_goes_on_at_once)
{
    struct shop shop;
    const char *id;

    begin(&shop);
    id = pawl_kit_start(&shop.kit, "panel", "{\"members\":0}");
    PAWL_EXPECT_OK(&shop.kit, pawl_kit_signal(&shop.kit, id, "begin", NULL));
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "phase", "\"resting\"");
    end(&shop);
}

TEST(gather, an_end_in_between_gives_up_what_is_under_way)
{
    struct shop shop;
    const char *id;
    char child[27];

    begin(&shop);
    id = pawl_kit_start(&shop.kit, "panel", "{\"members\":2,\"strict\":true}");
    PAWL_EXPECT_OK(&shop.kit, pawl_kit_signal(&shop.kit, id, "begin", NULL));
    answer_step(&shop, id, 2, true);
    PAWL_EXPECT_ERROR(&shop.kit, id, "\"member 1: \\\"x\\\"\"");
    EXPECT_HAS(pawl_kit_ask(&shop.kit, "instance.get", newest(&shop, "parcel", child)),
               "cancelled");
    end(&shop);
}

TEST(gather, answers_while_it_is_paused_are_handled_at_resume_in_their_order)
{
    struct shop shop;
    const char *id;
    char *out = NULL, input[64];

    begin(&shop);
    id = pawl_kit_start(&shop.kit, "panel", "{\"members\":3}");
    PAWL_EXPECT_OK(&shop.kit, pawl_kit_signal(&shop.kit, id, "begin", NULL));
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"reason\":\"lunch\"}", id);
    PAWL_EXPECT_OK(&shop.kit,
                   pawl_call(shop.kit.p, "instance.pause", input, &out, &shop.kit.error));
    pawl_free(shop.kit.p, out);
    answer_step(&shop, id, 2, false); /* two of them, in this order, and a restart in between */
    pawl_kit_restart(&shop.kit);
    answer_step(&shop, id, 1, true);
    PAWL_EXPECT_OK(&shop.kit,
                   pawl_call(shop.kit.p, "instance.resume", input, &out, &shop.kit.error));
    pawl_free(shop.kit.p, out);
    pawl_kit_advance(&shop.kit, 1);
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "said", "[\"1\",\"0 no\"]");
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "phase", "\"voting\"");
    answer_step(&shop, id, 3, false);
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "said", "[\"1\",\"0 no\",\"2\"]");
    PAWL_EXPECT_HISTORY(
        &shop.kit, id,
        "start signal:begin step.complete:vote step.fail:vote timer:~turn timer:~turn "
        "step.complete:vote");
    end(&shop);
}

TEST(gather, a_newer_version_begins_nothing_twice)
{
    struct shop shop;
    const char *id;

    begin(&shop);
    id = pawl_kit_start(&shop.kit, "panel", "{\"members\":2}");
    PAWL_EXPECT_OK(&shop.kit, pawl_kit_signal(&shop.kit, id, "begin", NULL));
    answer_step(&shop, id, 1, false);
    pawl_kit_register(&shop.kit, panel_2());
    pawl_kit_advance(&shop.kit, 1);
    answer_step(&shop, id, 2, false);
    PAWL_EXPECT_VARIABLE(&shop.kit, id, "said", "[\"0\",\"1\"]");
    PAWL_EXPECT_HISTORY(&shop.kit, id,
                        "start signal:begin step.complete:vote amend step.complete:vote");
    end(&shop);
}
