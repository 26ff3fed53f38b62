/* engine_entries.c - following the log: entries in commit order, never before they are durable. */
#include "api/events.h"
#include "base/limits.h"
#include "engine_fixture.h"
#include <stdio.h>
#include <stdlib.h>

struct seen {
    char text[16384];
    uint64_t last;
    uint32_t count, created;
};

/* The text of an event does not end with a NUL. */
static const char *find(str json, const char *words)
{
    return memmem(json.data, json.size, words, strlen(words));
}

/* "1:pay" for an entry; creations are looked at by a test of their own. */
static pawl_status see(void *context, const struct log_event *event)
{
    struct seen *seen = context;
    const char *action = find(event->json, "\"action\":\"");
    size_t used = strlen(seen->text);

    if (event->position <= seen->last)
        return PAWL_CONFLICT;
    seen->last = event->position;
    if (strcmp(event->kind, EVENT_CREATED) == 0) {
        seen->created++;
        return find(event->json, "\"initial_state\":\"") ? PAWL_OK : PAWL_CONFLICT;
    }
    action += 10;
    snprintf(seen->text + used, sizeof seen->text - used, "%s%llu:%.*s", used ? " " : "",
             (unsigned long long)event->instance, (int)strcspn(action, "\""), action);
    seen->count++;
    return PAWL_OK;
}

static uint64_t end_of(pawl *p)
{
    struct shard_vector end;

    events_end(p, &end);
    return end.at[0];
}

/* Everything behind *after, `limit` at a time; *after is then the end. */
static const char *read_on(struct world *world, const char *instance, uint64_t *after,
                           uint32_t limit, struct seen *seen)
{
    struct shard_vector at = { 1, { *after } };
    struct scope scope;

    *seen = (struct seen){ .last = *after };
    do {
        *after = at.at[0];
        scope_init(&scope, &heap_libc, LIMIT_SCOPE);
        if (events_read(world->p, &scope, instance, &at, NULL, limit, see, seen) != PAWL_OK)
            snprintf(seen->text, sizeof seen->text, "failed: %s", scope.error.message);
        scope_fini(&scope);
    } while (*after != at.at[0]);
    return seen->text;
}

WORLD_TEST(entries, come_in_commit_order_once_each_whatever_the_page)
{
    struct seen seen;
    char one[27], two[27];

    world_define(world, ORDER);
    snprintf(one, sizeof one, "%s", world_create(world, "order", NULL));
    snprintf(two, sizeof two, "%s", world_create(world, "order", NULL));
    EXPECT_OK(world_fire(world, two, "pay"));
    EXPECT_OK(world_fire(world, one, "pay"));
    EXPECT_OK(world_fire(world, one, "note"));
    EXPECT_OK(world_fire(world, two, "note"));
    EXPECT_OK(world_fire(world, one, "note"));
    for (uint32_t limit = 1; limit < 9; limit++) {
        uint64_t after = 0, of_one = 0, of_two = 0;

        EXPECT_TEXT(read_on(world, "", &after, limit, &seen), "2:pay 1:pay 1:note 2:note 1:note");
        EXPECT_EQ(after, end_of(world->p));
        EXPECT_TEXT(read_on(world, one, &of_one, limit, &seen), "1:pay 1:note 1:note");
        EXPECT_EQ(of_one, after);
        EXPECT_TEXT(read_on(world, two, &of_two, limit, &seen), "2:pay 2:note");
    }
}

WORLD_TEST(entries, go_on_behind_any_position_without_gap_or_repeat)
{
    struct seen seen;
    const char *id;
    uint64_t begun;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    begun = end_of(world->p);
    EXPECT_OK(world_fire(world, id, "pay"));
    for (int i = 0; i < 200; i++)
        EXPECT_OK(world_fire(world, id, "note"));
    for (uint64_t from = 0; from <= end_of(world->p); from++) {
        uint64_t after = from, expected = from < begun ? 201 : 201 + begun - from;

        read_on(world, "", &after, 64, &seen);
        EXPECT_EQ(seen.count, expected);
        after = from;
        read_on(world, id, &after, 64, &seen);
        EXPECT_EQ(seen.count, expected);
        EXPECT_EQ(after, end_of(world->p));
    }
}

TEST(entries, are_the_same_after_a_restart)
{
    struct world world;
    struct seen seen;
    uint64_t after = 0, middle;
    char id[27];

    world_begin(&world, "sqlite");
    world_define(&world, ORDER);
    snprintf(id, sizeof id, "%s", world_create(&world, "order", NULL));
    EXPECT_OK(world_fire(&world, id, "pay"));
    middle = end_of(world.p);
    EXPECT_OK(world_fire(&world, id, "note"));
    world_close(&world);
    world_open(&world);
    EXPECT_TEXT(read_on(&world, "", &middle, 10, &seen), "1:note");
    EXPECT_OK(world_fire(&world, id, "note"));
    EXPECT_TEXT(read_on(&world, "", &middle, 10, &seen), "1:note");
    EXPECT_TEXT(read_on(&world, id, &after, 10, &seen), "1:pay 1:note 1:note");
    world_end(&world);
}

/* ---- Waking ---- */

struct watcher {
    struct world *world;
    uint64_t told, count;
    uint32_t early; /* entries that could be read before their commit was accepted */
    uint64_t after;
};

static void note(void *context, uint64_t position)
{
    struct watcher *watcher = context;

    watcher->told = position;
    watcher->count++;
}

static void look_early(void *context, enum env_point point)
{
    struct watcher *watcher = context;
    uint64_t after = watcher->after;
    struct seen seen;

    if (point != POINT_BEFORE_COMMIT && point != POINT_AFTER_COMMIT)
        return;
    read_on(watcher->world, "", &after, 100, &seen);
    watcher->early += seen.count;
}

WORLD_TEST(entries, wake_their_watcher_after_each_commit_and_are_not_there_before)
{
    struct watcher watcher = { .world = world };
    const char *id;

    world_define(world, ORDER);
    id = world_create(world, "order", NULL);
    watcher.after = end_of(world->p);
    events_watch(world->p, note, &watcher);
    env_sim_on_point(world->env, look_early, &watcher);
    EXPECT_OK(world_fire(world, id, "pay"));
    EXPECT_EQ(watcher.early, 0);
    EXPECT_EQ(watcher.count, 1);
    EXPECT_EQ(watcher.told, watcher.after + 1);
    EXPECT_EQ(watcher.told, end_of(world->p));
    EXPECT_EQ(world_fire(world, id, "drop"), PAWL_INVALID_TRANSITION);
    EXPECT_EQ(watcher.count, 1);
    events_watch(world->p, NULL, &watcher);
    env_sim_on_point(world->env, NULL, NULL);
    EXPECT_OK(world_fire(world, id, "note"));
    EXPECT_EQ(watcher.count, 1);
}

/* ---- Where a stream begins ---- */

static const char *start(struct world *world, const char *operation, const char *input)
{
    static char text[128];
    char *out = NULL;

    if (pawl_call(world->p, operation, input, &out, &world->error) != PAWL_OK)
        return pawl_status_name(world->error.status);
    snprintf(text, sizeof text, "%s", out);
    pawl_free(world->p, out);
    return text;
}

WORLD_TEST(entries, streams_begin_at_the_end_at_the_start_or_behind_a_cursor)
{
    char now[128], input[256];

    world_define(world, ORDER);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"from\":\"start\"}",
             world_create(world, "order", NULL));
    snprintf(now, sizeof now, "%s", start(world, "events", "{}"));
    EXPECT_HAS(now, "{\"after\":\"000000000");
    EXPECT_TEXT(start(world, "events", now), now);
    EXPECT_TEXT(start(world, "events", "{\"from\":\"start\"}"),
                "{\"after\":\"00000000000000000000000000\"}");
    EXPECT_TEXT(start(world, "instance.events", input),
                "{\"after\":\"00000000000000000000000000\"}");
    EXPECT_TEXT(start(world, "events", "{\"from\":\"end\"}"), "invalid-query");
    EXPECT_TEXT(start(world, "events", "{\"after\":\"7\"}"), "invalid-query");
    EXPECT_TEXT(start(world, "events", "{\"after\":\"00000000040000000000000000\"}"),
                "invalid-query");
    EXPECT_TEXT(start(world, "events", "{\"since\":\"start\"}"), "invalid-query");
    EXPECT_TEXT(start(world, "instance.events", "{\"instance_id\":\"x\",\"from\":\"end\"}"),
                "not-known");
    EXPECT_TEXT(start(world, "instance.events", "{\"instance_id\":\" \"}"), "invalid-request");
}
