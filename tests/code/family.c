/* family.c - children, broadcasts and kept signals of code, by the kit that users have. */
#include "combat.h"
#include "lib/test.h"
#include "patrol.h"
#include "quest.h"
#include <pawl_test.h>
#include <unistd.h>

static bool nothing(void *context, struct sqlite3 *db, const char *args, char *words, size_t size)
{
    const bool *refuses = context;

    (void)db;
    (void)args;
    (void)words;
    (void)size;
    return !*refuses;
}

struct field {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
    bool refuses;
};

static void open_again(struct field *field)
{
    PAWL_EXPECT_OK(&field->kit, pawl_reduce_register(field->kit.p, "apply_damage", nothing,
                                                     &field->refuses, &field->kit.error));
}

static void begin(struct field *field)
{
    memset(field, 0, sizeof *field);
    test_folder(field->folder);
    snprintf(field->url, sizeof field->url, "sqlite:%s/game.db", field->folder);
    pawl_kit_open(&field->kit, field->url);
    pawl_kit_register(&field->kit, combat());
    pawl_kit_register(&field->kit, patrol());
    pawl_kit_register(&field->kit, quest());
    open_again(field);
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

/* The id of the instance that was created last. */
static void last_id(struct field *field, char out[27])
{
    char *list;

    PAWL_EXPECT_OK(&field->kit, pawl_call(field->kit.p, "instance.list", "{\"limit\":1}", &list,
                                          &field->kit.error));
    memcpy(out, strstr(list, "\"instance_id\":\"") + strlen("\"instance_id\":\""), 26);
    out[26] = '\0';
    pawl_free(field->kit.p, list);
}

/* E9, E31: the parent is suspended until its child completes, also through a restart. */
TEST(code_family, a_patrol_fights_and_walks_on)
{
    struct field field;
    const char *id;

    begin(&field);
    id = pawl_kit_start(&field.kit, "patrol", NULL);
    pawl_kit_advance(&field.kit, PAWL_SECS(6));
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "threat_detected", "77"));
    EXPECT_HAS(pawl_kit_ask(&field.kit, "instance.why", id), "\"kind\":\"child\",\"name\":\"combat\"");
    EXPECT_HAS(pawl_kit_ask(&field.kit, "instance.get", id), "\"status\":\"suspended\"");
    pawl_kit_restart(&field.kit);
    open_again(&field);
    pawl_kit_advance(&field.kit, PAWL_SECS(2));
    PAWL_EXPECT_VARIABLE(&field.kit, id, "fights", "1");
    pawl_kit_advance(&field.kit, PAWL_SECS(30));
    PAWL_EXPECT_HISTORY(&field.kit, id,
                        "start timer:start_patrol signal:threat_detected child:combat timer:arrival "
                        "timer:arrival timer:arrival finish");
    PAWL_EXPECT_RESULT(&field.kit, id, "{\"waypoint\":3,\"fights\":1}");
    end(&field);
}

#define LOOSE(has) has(child, patrol) has(await, apart)

PAWL_CODE(loose, LOOSE)
{
    PAWL_BEGIN(LOOSE);
    PAWL_SPAWN_ABANDON(apart, patrol, "{}");
    PAWL_END;
}

TEST(code_family, a_child_that_is_abandoned_outlives_its_parent)
{
    struct field field;
    const char *id;
    char child[27];

    begin(&field);
    pawl_kit_register(&field.kit, loose());
    id = pawl_kit_start(&field.kit, "loose", NULL);
    last_id(&field, child);
    PAWL_EXPECT_OK(&field.kit, pawl_cancel(field.kit.p, id, NULL, NULL, NULL, &field.kit.error));
    PAWL_EXPECT_STATE(&field.kit, id, "cancelled");
    PAWL_EXPECT_STATE(&field.kit, child, "running");
    end(&field);
}

/* E26: a child that fails reaches its parent as the failure of the spawn. */
TEST(code_family, a_child_that_fails_or_is_cancelled_fails_its_parent_unless_handled)
{
    struct field field;
    const char *id;
    char child[27];

    begin(&field);
    id = pawl_kit_start(&field.kit, "patrol", NULL);
    pawl_kit_advance(&field.kit, PAWL_SECS(1));
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "threat_detected", "77"));
    last_id(&field, child);
    field.refuses = true; /* the second round cannot be committed */
    pawl_kit_advance(&field.kit, PAWL_SECS(1));
    PAWL_EXPECT_STATE(&field.kit, child, "failed");
    PAWL_EXPECT_HISTORY(&field.kit, id,
                        "start timer:start_patrol signal:threat_detected child:combat "
                        "step.fail:combat fail");
    PAWL_EXPECT_ERROR(&field.kit, id, "\"reduce 'apply_damage': it said no\"");
    field.refuses = false;
    id = pawl_kit_start(&field.kit, "patrol", NULL);
    pawl_kit_advance(&field.kit, PAWL_SECS(1));
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "threat_detected", "77"));
    last_id(&field, child);
    PAWL_EXPECT_OK(&field.kit,
                   pawl_cancel(field.kit.p, child, NULL, NULL, NULL, &field.kit.error));
    pawl_kit_advance(&field.kit, 0);
    PAWL_EXPECT_ERROR(&field.kit, id, "\"child-cancelled\"");
    end(&field);
}

/* E26: children of a cancelled parent are cancelled; afterwards nothing has an effect. */
TEST(code_family, cancelling_a_parent_cancels_its_child)
{
    struct field field;
    const char *id;
    char child[27];

    begin(&field);
    id = pawl_kit_start(&field.kit, "patrol", NULL);
    pawl_kit_advance(&field.kit, PAWL_SECS(1));
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "threat_detected", "77"));
    last_id(&field, child);
    PAWL_EXPECT_OK(&field.kit, pawl_cancel(field.kit.p, id, NULL, NULL, NULL, &field.kit.error));
    PAWL_EXPECT_STATE(&field.kit, child, "cancelled");
    pawl_kit_advance(&field.kit, PAWL_DAYS(1));
    PAWL_EXPECT_STATUS(&field.kit, pawl_kit_signal(&field.kit, child, "flee", NULL), PAWL_TERMINAL);
    end(&field);
}

/* E13, E27: a child whose start cannot be committed fails the turn that spawned it, and is not there. */
TEST(code_family, a_child_that_cannot_begin_fails_its_parent_in_the_same_commit)
{
    struct field field;
    const char *id;
    char last[27];

    begin(&field);
    id = pawl_kit_start(&field.kit, "patrol", NULL);
    pawl_kit_advance(&field.kit, PAWL_SECS(1));
    field.refuses = true;
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "threat_detected", "77"));
    PAWL_EXPECT_HISTORY(&field.kit, id,
                        "start timer:start_patrol signal:threat_detected fail");
    last_id(&field, last);
    EXPECT_TEXT(last, id);
    end(&field);
}

static void broadcast(struct field *field, const char *input, const char *delivered)
{
    char *out;

    PAWL_EXPECT_OK(&field->kit,
                   pawl_call(field->kit.p, "signal.broadcast", input, &out, &field->kit.error));
    EXPECT_HAS(out, delivered);
    pawl_free(field->kit.p, out);
}

/* E14, E15, E31: exactly those with a matching subscription; without a filter all of that name. */
TEST(code_family, a_broadcast_reaches_those_who_asked_for_it)
{
    struct field field;
    const char *wolf, *bear;

    begin(&field);
    wolf = pawl_kit_start(&field.kit, "quest", "{\"enemy\":\"wolf\",\"item\":5}");
    bear = pawl_kit_start(&field.kit, "quest", "{\"enemy\":\"bear\",\"item\":6}");
    PAWL_EXPECT_VARIABLE(&field.kit, wolf, "subscriptions",
                         "{\"enemy_killed\":\"wolf\",\"item_collected\":5}");
    broadcast(&field, "{\"name\":\"enemy_killed\",\"filter\":\"wolf\",\"payload\":\"wolf\"}",
              "\"delivered\":1");
    PAWL_EXPECT_VARIABLE(&field.kit, wolf, "killed", "1");
    PAWL_EXPECT_VARIABLE(&field.kit, bear, "killed", "0");
    broadcast(&field, "{\"name\":\"enemy_killed\",\"filter\":\"rat\",\"payload\":\"rat\"}",
              "\"delivered\":0");
    broadcast(&field, "{\"name\":\"enemy_killed\",\"payload\":\"any\"}", "\"delivered\":2");
    PAWL_EXPECT_VARIABLE(&field.kit, wolf, "phase", "\"gathering\"");
    pawl_kit_restart(&field.kit);
    broadcast(&field, "{\"name\":\"item_collected\",\"filter\":5,\"payload\":5}", "\"delivered\":1");
    PAWL_EXPECT_RESULT(&field.kit, wolf, "{\"completed\":true}");
    PAWL_EXPECT_STATE(&field.kit, bear, "running");
    end(&field);
}

/* E16, E25: a signal that is declared buffered is consumed once, in order, when it is awaited. */
TEST(code_family, a_buffered_signal_waits_for_whoever_awaits_it)
{
    struct field field;
    const char *id;

    begin(&field);
    id = pawl_kit_start(&field.kit, "quest", "{\"item\":5,\"kills\":1}");
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "item_collected", "5"));
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "item_collected", "6"));
    PAWL_EXPECT_HISTORY(&field.kit, id, "start");
    pawl_kit_restart(&field.kit);
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "enemy_killed", "\"wolf\""));
    PAWL_EXPECT_HISTORY(&field.kit, id, "start signal:enemy_killed signal:item_collected finish");
    PAWL_EXPECT_RESULT(&field.kit, id, "{\"completed\":true}");
    id = pawl_kit_start(&field.kit, "quest", "{\"item\":5,\"kills\":1}");
    PAWL_EXPECT_STATUS(&field.kit, pawl_kit_signal(&field.kit, id, "item_collected", "\"five\""),
                       PAWL_INVALID_REQUEST);
    EXPECT_HAS(field.kit.error.message, "expected uint64");
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "enemy_killed", "\"wolf\""));
    PAWL_EXPECT_STATE(&field.kit, id, "running");
    end(&field);
}

/* E14, E16: found while hunting, whether the world says it to one quest, to those that asked or to all. */
TEST(code_family, a_quest_cannot_hang_on_an_item_that_was_found_while_it_hunted)
{
    static const char *const found[] = {
        "{\"name\":\"item_collected\",\"filter\":5,\"payload\":5}",
        "{\"name\":\"item_collected\",\"payload\":5}",
    };
    struct field field;
    const char *id, *other;

    begin(&field);
    for (int i = 0; i < 2; i++) {
        id = pawl_kit_start(&field.kit, "quest", "{\"item\":5}");
        broadcast(&field, "{\"name\":\"item_collected\",\"filter\":7,\"payload\":7}",
                  "{\"delivered\":0}");
        broadcast(&field, found[i], "{\"delivered\":0,\"kept\":1}");
        EXPECT_HAS(pawl_kit_ask(&field.kit, "instance.why", id),
                   "{\"waiting_for\":[{\"kind\":\"signal\",\"name\":\"enemy_killed\"}]}");
        PAWL_EXPECT_HISTORY(&field.kit, id, "start");
        pawl_kit_restart(&field.kit);
        open_again(&field);
        for (int kill = 0; kill < 2; kill++)
            broadcast(&field, "{\"name\":\"enemy_killed\",\"filter\":\"wolf\",\"payload\":\"wolf\"}",
                      "{\"delivered\":1}");
        PAWL_EXPECT_HISTORY(&field.kit, id,
                            "start signal:enemy_killed signal:enemy_killed signal:item_collected finish");
        PAWL_EXPECT_RESULT(&field.kit, id, "{\"completed\":true}");
    }
    other = pawl_kit_start(&field.kit, "quest", "{\"item\":6}");
    broadcast(&field, found[0], "{\"delivered\":0}");
    PAWL_EXPECT_HISTORY(&field.kit, other, "start");
    end(&field);
}

/* By a broadcast without a filter, and by a signal: kept while it hunts, and awaited later. */
TEST(code_family, a_quest_does_not_end_by_another_item)
{
    struct field field;
    const char *id;

    begin(&field);
    id = pawl_kit_start(&field.kit, "quest", "{\"item\":5,\"kills\":1}");
    broadcast(&field, "{\"name\":\"item_collected\",\"payload\":9}", "{\"delivered\":0,\"kept\":1}");
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "item_collected", "8"));
    PAWL_EXPECT_OK(&field.kit, pawl_kit_signal(&field.kit, id, "enemy_killed", "\"wolf\""));
    PAWL_EXPECT_STATE(&field.kit, id, "running");
    PAWL_EXPECT_VARIABLE(&field.kit, id, "phase", "\"gathering\"");
    PAWL_EXPECT_VARIABLE(&field.kit, id, "collected", "false");
    broadcast(&field, "{\"name\":\"item_collected\",\"payload\":7}", "{\"delivered\":1}");
    broadcast(&field, "{\"name\":\"item_collected\",\"payload\":\"five\"}",
              "{\"delivered\":0,\"refused\":1}");
    pawl_kit_restart(&field.kit);
    broadcast(&field, "{\"name\":\"item_collected\",\"payload\":5}", "{\"delivered\":1}");
    PAWL_EXPECT_RESULT(&field.kit, id, "{\"completed\":true}");
    end(&field);
}
